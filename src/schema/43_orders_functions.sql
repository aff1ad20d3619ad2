-- The transactions of workload orders as functions: one call each instead of several statements. They name their tables by the
-- caller's search_path, which in a run leads to the fixture's.

CREATE FUNCTION bench_internal.orders_new_order(warehouse_id int, district_id int, customer_id int, items int[], suppliers int[], quantities int[])
    RETURNS TABLE (order_id int, total numeric) VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
DECLARE
    warehouse_tax numeric;
    district_tax numeric;
    discount numeric;
    price numeric;
    info text;
    amount numeric;
    line int;
BEGIN
    total := 0;
    SELECT w_tax, c_discount INTO warehouse_tax, discount FROM warehouse JOIN customer ON c_w_id = w_id
    WHERE w_id = warehouse_id AND c_d_id = district_id AND c_id = customer_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = warehouse_id AND d_id = district_id
    RETURNING d_next_o_id - 1, d_tax INTO order_id, district_tax;
    INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (warehouse_id, district_id, order_id, customer_id, now(), cardinality(items),
            (warehouse_id = ALL (suppliers))::int);
    INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (warehouse_id, district_id, order_id);
    -- In the order of the stocks, so that two of these do not wait for each other.
    FOR line IN SELECT n FROM generate_subscripts(items, 1) AS n ORDER BY suppliers[n], items[n] LOOP
        SELECT i_price INTO price FROM item WHERE i_id = items[line];
        IF NOT FOUND THEN
            -- Caught below: with that the order is rolled back.
            RAISE no_data_found;
        END IF;
        UPDATE stock
        SET s_quantity = s_quantity - quantities[line] + CASE WHEN s_quantity - quantities[line] >= 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + quantities[line], s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = warehouse_id THEN 0 ELSE 1 END
        WHERE s_w_id = suppliers[line] AND s_i_id = items[line]
        RETURNING (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[district_id]
        INTO info;
        amount := price * quantities[line];
        total := total + amount;
        INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
        VALUES (warehouse_id, district_id, order_id, line, items[line], suppliers[line], quantities[line], amount, info);
    END LOOP;
    total := total * (1 - discount) * (1 + warehouse_tax + district_tax);
    RETURN NEXT;
EXCEPTION
    WHEN no_data_found THEN RETURN;
END $$;
COMMENT ON FUNCTION bench_internal.orders_new_order IS
'Enters an order in fixture orders, in the schema that search_path leads to, and returns its number and its total; no row if an item does not exist: then the order is rolled back. items, suppliers (warehouses) and quantities have one element for each line. For workload orders_functions, derived from TPC-C; not comparable with published TPC results.';

CREATE FUNCTION bench_internal.orders_last_name(number int)
    RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[number / 100 + 1]
        || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[number / 10 % 10 + 1]
        || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[number % 10 + 1];
COMMENT ON FUNCTION bench_internal.orders_last_name IS 'Returns the last name of a number from 0 to 999: TPC-C 4.3.2.3. For the functions of workload orders_functions.';

CREATE FUNCTION bench_internal.orders_payment(warehouse_id int, district_id int, customer_warehouse_id int, customer_district_id int, customer_id int, name_number int, cents int)
    RETURNS TABLE (paying_customer int, balance numeric) VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
DECLARE
    amount numeric := cents::numeric / 100;
    warehouse_name text;
    district_name text;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = warehouse_id RETURNING w_name INTO warehouse_name;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = warehouse_id AND d_id = district_id
    RETURNING d_name INTO district_name;
    paying_customer := coalesce(customer_id, bench_internal.orders_customer(customer_warehouse_id, customer_district_id, name_number));
    UPDATE customer
    SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount, c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC'
                 THEN left(format('%s %s %s %s %s %s|', c_id, c_d_id, c_w_id, district_id, warehouse_id, amount) || c_data, 500)
                 ELSE c_data END
    WHERE c_w_id = customer_warehouse_id AND c_d_id = customer_district_id AND c_id = paying_customer
    RETURNING c_balance INTO balance;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (paying_customer, customer_district_id, customer_warehouse_id, district_id, warehouse_id, now(), amount,
            warehouse_name || '    ' || district_name);
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION bench_internal.orders_payment IS
'Books a payment in fixture orders, in the schema that search_path leads to. customer NULL: the customer is found by the last name of name_number, from 0 to 999. For workload orders_functions, derived from TPC-C; not comparable with published TPC results.';

CREATE FUNCTION bench_internal.orders_customer(warehouse_id int, district_id int, name_number int)
    RETURNS int VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT c_id FROM (
        SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS namesakes FROM customer
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_last = bench_internal.orders_last_name(name_number)
    ) AS same WHERE place = (namesakes + 1) / 2);
END $$;
COMMENT ON FUNCTION bench_internal.orders_customer IS
'Returns the number of the customer of a district with a last name, of several the middle one by first name. For workload orders_functions, derived from TPC-C; not comparable with published TPC results.';

CREATE FUNCTION bench_internal.orders_status(warehouse_id int, district_id int, customer_id int, name_number int)
    RETURNS TABLE (order_id int, entered timestamptz, carrier int, supplier_id int, item_id int, quantity int, amount numeric, delivered timestamptz)
    VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
DECLARE
    who int := coalesce(customer_id, bench_internal.orders_customer(warehouse_id, district_id, name_number));
BEGIN
    PERFORM c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = who;
    SELECT o_id, o_entry_d, o_carrier_id INTO order_id, entered, carrier FROM orders
    WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_c_id = who ORDER BY o_id DESC LIMIT 1;
    RETURN QUERY SELECT order_id, entered, carrier, ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = order_id;
END $$;
COMMENT ON FUNCTION bench_internal.orders_status IS
'Returns the lines of a customer''s last order in fixture orders, in the schema that search_path leads to. customer NULL: as for bench_internal.orders_payment. For workload orders_functions, derived from TPC-C; not comparable with published TPC results.';

CREATE FUNCTION bench_internal.orders_delivery(warehouse_id int, carrier int)
    RETURNS int VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
DECLARE
    district_id int;
    oldest int;
    who int;
    amount numeric;
    orders_delivered int := 0;
BEGIN
    FOR district_id IN 1..10 LOOP
        SELECT no_o_id INTO oldest FROM new_order WHERE no_w_id = warehouse_id AND no_d_id = district_id ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM new_order WHERE no_w_id = warehouse_id AND no_d_id = district_id AND no_o_id = oldest;
        UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = warehouse_id AND o_d_id = district_id AND o_id = oldest RETURNING o_c_id INTO who;
        WITH lines AS (
            UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = warehouse_id AND ol_d_id = district_id AND ol_o_id = oldest
            RETURNING ol_amount
        )
        SELECT sum(ol_amount) INTO amount FROM lines;
        UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = warehouse_id AND c_d_id = district_id AND c_id = who;
        orders_delivered := orders_delivered + 1;
    END LOOP;
    RETURN orders_delivered;
END $$;
COMMENT ON FUNCTION bench_internal.orders_delivery IS
'Delivers the oldest order of each district of a warehouse in fixture orders, in the schema that search_path leads to, and returns how many districts had one. For workload orders_functions, derived from TPC-C; not comparable with published TPC results.';

CREATE FUNCTION bench_internal.orders_stock_level(warehouse_id int, district_id int, threshold int)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    next_order int := (SELECT d_next_o_id FROM district WHERE d_w_id = warehouse_id AND d_id = district_id);
BEGIN
    RETURN (SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
            WHERE ol_w_id = warehouse_id AND ol_d_id = district_id
              AND ol_o_id >= next_order - 20 AND ol_o_id < next_order AND s_quantity < threshold);
END $$;
COMMENT ON FUNCTION bench_internal.orders_stock_level IS
'Returns how many of the items of a district''s last 20 orders are below the threshold in fixture orders, in the schema that search_path leads to. For workload orders_functions, derived from TPC-C; not comparable with published TPC results.';

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
SELECT order_id, total FROM bench_internal.orders_new_order(:w_id, :d_id, :c_id,
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
SELECT paying_customer, balance FROM bench_internal.orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, NULL, :name, :cents);
\else
SELECT paying_customer, balance FROM bench_internal.orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, :c_id, NULL, :cents);
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
SELECT * FROM bench_internal.orders_status(:w_id, :d_id, NULL, :name);
\else
SELECT * FROM bench_internal.orders_status(:w_id, :d_id, :c_id, NULL);
\endif$$,
     'Reads a customer''s last order by one call'),
    ('delivery',
$$\set w_id random(1, :scale)
\set carrier random(1, 10)
SELECT bench_internal.orders_delivery(:w_id, :carrier);$$,
     'Delivers the oldest order of each of the ten districts of a warehouse by one call'),
    ('stock_level',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
\set threshold random(10, 20)
SELECT bench_internal.orders_stock_level(:w_id, :d_id, :threshold);$$,
     'Counts the scarce items among those of a district''s last 20 orders by one call')
) AS builtin (name, script, description);

INSERT INTO bench.workloads (name, owner, fixture, script, mix, description, builtin)
VALUES ('orders_functions', current_user, 'orders', '',
        'orders_functions/new_order@45,orders_functions/payment@43,orders_functions/order_status@4,orders_functions/delivery@4,orders_functions/stock_level@4',
        'As orders, with one call of a function for each transaction; derived from TPC-C; not comparable with published TPC results', true);
