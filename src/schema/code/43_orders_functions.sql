-- Workload orders_functions: the transactions of workload orders by one call of a function each, which are part of the fixture.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT 'orders_functions/' || name, current_user, 'orders', script, description, true
FROM (VALUES
    ('new_order',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
\set lines random(5, 15)
-- of each line: the item, by NURand(8191, 1, 100000), the warehouse that supplies it, in 1 % of cases another one, and how many
\set c_item hash(2) & 8191
\set others greatest(1, :scale - 1)
\set i1 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i2 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i3 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i4 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i5 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i6 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i7 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i8 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i9 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i10 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i11 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i12 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i13 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i14 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
-- the last line's item does not exist in 1 % of cases: then the transaction is rolled back
\set last_item CASE WHEN random(1, 100) = 1 THEN 100001 ELSE ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1 END
\set s1 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s2 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s3 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s4 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s5 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s6 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s7 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s8 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s9 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s10 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s11 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s12 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s13 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s14 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s15 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set q1 random(1, 10)
\set q2 random(1, 10)
\set q3 random(1, 10)
\set q4 random(1, 10)
\set q5 random(1, 10)
\set q6 random(1, 10)
\set q7 random(1, 10)
\set q8 random(1, 10)
\set q9 random(1, 10)
\set q10 random(1, 10)
\set q11 random(1, 10)
\set q12 random(1, 10)
\set q13 random(1, 10)
\set q14 random(1, 10)
\set q15 random(1, 10)
SELECT order_id, total FROM orders_new_order(:w_id, :d_id, :c_id,
    (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14]::int[])[1 : :lines - 1] || :last_item::int,
    (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines],
    (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[])[1 : :lines]);$$,
     'Enters an order by one call; 1 % of the orders are rolled back, because an item does not exist'),
    ('payment',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
-- 60 % of the customers are found by their last name, whose number is NURand(255, 0, 999). Its constant lies between 65 and
-- 119, but for 96 and 112, above that of the load, which is 86
\set by_name random(1, 100) <= 60
\set delta 65 + (hash(3) & 65535) % 53
\set delta :delta + CASE WHEN :delta >= 96 THEN 1 ELSE 0 END
\set delta :delta + CASE WHEN :delta >= 112 THEN 1 ELSE 0 END
\set name ((random(0, 255) | random(0, 999)) + 86 + :delta) % 1000
-- 15 % of the customers are of another warehouse
\set others greatest(1, :scale - 1)
\set is_remote random(1, 100) <= 15
\set c_w_id CASE WHEN :is_remote THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set c_d_id CASE WHEN :is_remote THEN random(1, 10) ELSE :d_id END
\set cents random(100, 500000)
\if :by_name
SELECT paying_customer, balance FROM orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, NULL, :name, :cents);
\else
SELECT paying_customer, balance FROM orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, :c_id, NULL, :cents);
\endif$$,
     'Books a payment by one call'),
    ('order_status',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
-- 60 % of the customers are found by their last name, whose number is NURand(255, 0, 999). Its constant lies between 65 and
-- 119, but for 96 and 112, above that of the load, which is 86
\set by_name random(1, 100) <= 60
\set delta 65 + (hash(3) & 65535) % 53
\set delta :delta + CASE WHEN :delta >= 96 THEN 1 ELSE 0 END
\set delta :delta + CASE WHEN :delta >= 112 THEN 1 ELSE 0 END
\set name ((random(0, 255) | random(0, 999)) + 86 + :delta) % 1000
\if :by_name
SELECT * FROM orders_status(:w_id, :d_id, NULL, :name);
\else
SELECT * FROM orders_status(:w_id, :d_id, :c_id, NULL);
\endif$$,
     'Reads a customer''s last order by one call'),
    ('delivery',
$$\set w_id random(1, :scale)
\set carrier random(1, 10)
SELECT orders_delivery(:w_id, :carrier);$$,
     'Delivers the oldest order of each of the ten districts of a warehouse by one call'),
    ('stock_level',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
\set threshold random(10, 20)
SELECT orders_stock_level(:w_id, :d_id, :threshold);$$,
     'Counts the scarce items among those of a district''s last 20 orders by one call')
) AS builtin (name, script, description);

INSERT INTO bench.workloads (name, owner, fixture, script, mix, description, builtin)
VALUES ('orders_functions', current_user, 'orders', '',
        'orders_functions/new_order@45,orders_functions/payment@43,orders_functions/order_status@4,orders_functions/delivery@4,orders_functions/stock_level@4',
        'As orders, with one call of a function for each transaction; derived from TPC-C; not comparable with published TPC results', true);
