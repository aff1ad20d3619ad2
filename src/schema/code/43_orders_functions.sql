-- Workload orders_functions: the transactions of workload orders by one call of a function each, which are part of the fixture.
-- What is drawn is what those draw before they begin.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT 'orders_functions/' || t.name, w.owner, w.fixture, split_part(w.script, 'BEGIN;', 1) || t.call, t.description, true
FROM (VALUES
    ('new_order',
$$SELECT order_id, total FROM orders_new_order(:w_id, :d_id, :c_id,
    (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14]::int[])[1 : :lines - 1] || :last_item::int,
    (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines],
    (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[])[1 : :lines]);$$,
     'Enters an order by one call; 1 % of the orders are rolled back, because an item does not exist'),
    ('payment',
$$\if :by_name
SELECT paying_customer, balance FROM orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, NULL, :name, :cents);
\else
SELECT paying_customer, balance FROM orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, :c_id, NULL, :cents);
\endif$$,
     'Books a payment by one call'),
    ('order_status',
$$\if :by_name
SELECT * FROM orders_status(:w_id, :d_id, NULL, :name);
\else
SELECT * FROM orders_status(:w_id, :d_id, :c_id, NULL);
\endif$$,
     'Reads a customer''s last order by one call'),
    ('delivery',
     'SELECT orders_delivery(:w_id, :carrier);',
     'Delivers the oldest order of each of the ten districts of a warehouse by one call'),
    ('stock_level',
     'SELECT orders_stock_level(:w_id, :d_id, :threshold);',
     'Counts the scarce items among those of a district''s last 20 orders by one call')
) AS t (name, call, description)
JOIN bench.workloads AS w ON w.name = 'orders/' || t.name AND w.builtin;

INSERT INTO bench.workloads (name, owner, fixture, script, mix, description, builtin)
VALUES ('orders_functions', current_user, 'orders', '',
        'orders_functions/new_order@45,orders_functions/payment@43,orders_functions/order_status@4,orders_functions/delivery@4,orders_functions/stock_level@4',
        'As orders, with one call of a function for each transaction; derived from TPC-C; not comparable with published TPC results', true);
