-- Workload orders, derived from TPC-C revision 5.11 (https://www.tpc.org/tpcc/); not comparable with published TPC results.
-- Its five transactions are clauses 2.4 to 2.8; what is drawn is by clauses 2.1.6, 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT 'orders/' || name, current_user, 'orders', script, description, true
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
BEGIN;
SELECT w_tax, c_discount, c_last, c_credit FROM warehouse JOIN customer ON c_w_id = w_id
WHERE w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_next_o_id - 1 AS o_id, d_tax \gset
INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
VALUES (:w_id, :d_id, :o_id, :c_id, now(), :lines,
        (:w_id = ALL ((ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines]))::int);
INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (:w_id, :d_id, :o_id);
WITH line AS MATERIALIZED (
    SELECT l.number, l.i_id, l.supply_w_id, l.quantity, i_price * l.quantity AS amount
    FROM unnest((ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14]::int[])[1 : :lines - 1] || :last_item::int,
                (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines],
                (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[])[1 : :lines]) WITH ORDINALITY AS l (i_id, supply_w_id, quantity, number)
    JOIN item ON item.i_id = l.i_id
), taken AS (
    UPDATE stock
    SET s_quantity = s_quantity - need.quantity + CASE WHEN s_quantity - need.quantity >= 10 THEN 0 ELSE 91 END,
        s_ytd = s_ytd + need.quantity, s_order_cnt = s_order_cnt + need.lines,
        s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = :w_id THEN 0 ELSE need.lines END
    FROM (SELECT supply_w_id, i_id, sum(quantity)::int AS quantity, count(*)::int AS lines
          FROM line GROUP BY supply_w_id, i_id ORDER BY supply_w_id, i_id) AS need
    WHERE s_w_id = need.supply_w_id AND s_i_id = need.i_id
    RETURNING s_w_id, s_i_id, (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[:d_id] AS dist_info
), written AS (
    INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
    SELECT :w_id, :d_id, :o_id, number, i_id, supply_w_id, quantity, amount, dist_info
    FROM line JOIN taken ON s_w_id = supply_w_id AND s_i_id = i_id
    RETURNING ol_amount
)
SELECT count(*) AS written, sum(ol_amount) AS total FROM written \gset
\if :written < :lines
ROLLBACK;
\else
COMMIT;
\endif$$,
     'Enters an order of 5 to 15 lines; 1 % of the orders are rolled back, because an item does not exist'),
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
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :cents::numeric / 100 WHERE w_id = :w_id
RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip;
UPDATE district SET d_ytd = d_ytd + :cents::numeric / 100 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip;
\if :by_name
SELECT c_id FROM (
    SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS found FROM customer
    WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id
      AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 100 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 10 % 10 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name % 10 + 1]
) AS same WHERE place = (found + 1) / 2 \gset
\endif
UPDATE customer
SET c_balance = c_balance - :cents::numeric / 100, c_ytd_payment = c_ytd_payment + :cents::numeric / 100,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE WHEN c_credit = 'BC'
             THEN left(c_id::text || ' ' || c_d_id::text || ' ' || c_w_id::text || ' ' || :d_id::int::text || ' ' || :w_id::int::text
                       || ' ' || (:cents::numeric / 100)::text || '|' || c_data, 500)
             ELSE c_data END
WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id AND c_id = :c_id
RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
          c_credit_lim, c_discount, c_balance, CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END;
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
SELECT :c_id, :c_d_id, :c_w_id, d_id, w_id, now(), :cents::numeric / 100, w_name || '    ' || d_name
FROM warehouse JOIN district ON d_w_id = w_id WHERE w_id = :w_id AND d_id = :d_id;
COMMIT;$$,
     'Books a payment of a customer, in 15 % of cases of another warehouse'),
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
BEGIN;
\if :by_name
SELECT c_id FROM (
    SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS found FROM customer
    WHERE c_w_id = :w_id AND c_d_id = :d_id
      AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 100 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 10 % 10 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name % 10 + 1]
) AS same WHERE place = (found + 1) / 2 \gset
\endif
SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_c_id = :c_id
ORDER BY o_id DESC LIMIT 1 \gset
SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;
COMMIT;$$,
     'Reads a customer''s last order'),
    ('delivery',
$$\set w_id random(1, :scale)
\set carrier random(1, 10)
-- the oldest order of each district that is not delivered yet; a district that has none is passed over
BEGIN;
WITH oldest AS (
    SELECT n.no_d_id, n.no_o_id FROM generate_series(1, 10) AS d
    CROSS JOIN LATERAL (SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = d
                        ORDER BY no_o_id LIMIT 1 FOR UPDATE) AS n
), taken AS (
    DELETE FROM new_order USING oldest
    WHERE no_w_id = :w_id AND new_order.no_d_id = oldest.no_d_id AND new_order.no_o_id = oldest.no_o_id
    RETURNING new_order.no_d_id AS d_id, new_order.no_o_id AS o_id
), delivered AS (
    UPDATE orders SET o_carrier_id = :carrier FROM taken WHERE o_w_id = :w_id AND o_d_id = d_id AND orders.o_id = taken.o_id
    RETURNING o_d_id, o_c_id
), lines AS (
    UPDATE order_line SET ol_delivery_d = now() FROM taken WHERE ol_w_id = :w_id AND ol_d_id = d_id AND ol_o_id = o_id
    RETURNING ol_d_id, ol_amount
)
UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
FROM delivered JOIN (SELECT ol_d_id, sum(ol_amount) AS amount FROM lines GROUP BY ol_d_id) AS sums ON ol_d_id = o_d_id
WHERE c_w_id = :w_id AND c_d_id = o_d_id AND c_id = o_c_id;
COMMIT;$$,
     'Delivers the oldest order of each of the ten districts of a warehouse'),
    ('stock_level',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
\set threshold random(10, 20)
-- how many of the items of the district's last 20 orders are scarce
BEGIN;
SELECT d_next_o_id AS next FROM district WHERE d_w_id = :w_id AND d_id = :d_id \gset
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id >= :next - 20 AND ol_o_id < :next AND s_quantity < :threshold;
COMMIT;$$,
     'Counts the scarce items among those of a district''s last 20 orders')
) AS builtin (name, script, description);

-- With a client for each terminal, of which a warehouse has ten, and the times of clause 5.2.5.7. A terminal's warehouse stays the same,
-- and the district that its stock levels are of.
INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin, keying_secs, think_secs)
SELECT 'orders_keyed/' || t.name, w.owner, w.fixture,
       replace(CASE t.name WHEN 'stock_level' THEN replace(w.script, E'\\set d_id random(1, 10)', E'\\set d_id :client_id % 10 + 1') ELSE w.script END,
               E'\\set w_id random(1, :scale)', E'\\set w_id :client_id / 10 % :scale + 1'),
       w.description || '; at a terminal', true, t.keying_secs, t.think_secs
FROM (VALUES ('new_order', 18, 12), ('payment', 3, 12), ('order_status', 2, 10), ('delivery', 2, 5), ('stock_level', 2, 5))
     AS t (name, keying_secs, think_secs)
JOIN bench.workloads AS w ON w.name = 'orders/' || t.name AND w.builtin;

INSERT INTO bench.workloads (name, owner, fixture, script, mix, description, builtin)
VALUES ('orders', current_user, 'orders', '',
        'orders/new_order@45,orders/payment@43,orders/order_status@4,orders/delivery@4,orders/stock_level@4',
        'Five transactions of wholesale suppliers, derived from TPC-C; not comparable with published TPC results', true),
       ('orders_deck', current_user, 'orders', '',
        'deck:orders/new_order@10,orders/payment@10,orders/order_status@1,orders/delivery@1,orders/stock_level@1',
        'As orders, dealt from shuffled decks of 23 cards; derived from TPC-C; not comparable with published TPC results', true),
       ('orders_keyed', current_user, 'orders', '',
        'orders_keyed/new_order@45,orders_keyed/payment@43,orders_keyed/order_status@4,orders_keyed/delivery@4,orders_keyed/stock_level@4',
        'As orders, with keying and think times, a client for each terminal; derived from TPC-C; not comparable with published TPC results', true);
