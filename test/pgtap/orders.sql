-- Fixture and workload orders: rows, conditions, transactions, shares; bench.check.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public;
DROP SCHEMA IF EXISTS ord_selected, ord_copied CASCADE;
CREATE SCHEMA ord_copied;
CREATE TEMP TABLE names AS SELECT unnest(
    '{warehouse,district,stock,customer,orders,new_order,order_line,history,item}'::text[]) AS name;
-- How many rows two tables do not have in common, but for when they were made.
CREATE FUNCTION pg_temp.differences(name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    columns text := (
        SELECT string_agg(format(CASE atttypid WHEN 'timestamptz'::regtype THEN '%I IS NULL' ELSE '%I' END, attname),
                          ', ' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = ('bench_data.' || name)::regclass AND attnum > 0);
    found bigint;
BEGIN
    EXECUTE format('WITH a AS (SELECT %1$s FROM bench_data.%2$I), b AS (SELECT %1$s FROM ord_selected.%2$I)
        SELECT count(*) FROM ((TABLE a EXCEPT ALL TABLE b) UNION ALL (TABLE b EXCEPT ALL TABLE a)) AS d', columns, name)
        INTO found;
    RETURN found;
END $$;
-- What is on the first pages of a table: of each row what the server reads of its header, and its data.
CREATE FUNCTION pg_temp.items(t regclass)
    RETURNS TABLE (natts int, flags int, t_hoff int, lp_len int, t_bits text, t_data bytea) LANGUAGE sql AS $$
    SELECT i.t_infomask2 & 2047, i.t_infomask & 7, i.t_hoff, i.lp_len, i.t_bits, i.t_data
    FROM generate_series(0, least(50, pg_relation_size(t) / current_setting('block_size')::int) - 1) AS page,
         heap_page_items(get_raw_page(t::text, page::int)) AS i WHERE lp_len > 0
$$;
-- How many of these rows have other bytes when the same values are inserted.
CREATE FUNCTION pg_temp.other_bytes(name text, place text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    columns text := (
        SELECT string_agg(format('%I::text::%s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = ('bench_data.' || name)::regclass AND attnum > 0);
    found bigint;
BEGIN
    DROP TABLE IF EXISTS ord_copied.copy;
    EXECUTE format('CREATE TABLE ord_copied.copy AS SELECT * FROM bench_data.%I WHERE false', name);
    EXECUTE format('INSERT INTO ord_copied.copy SELECT %s FROM bench_data.%I WHERE %s', columns, name, place);
    EXECUTE format('SELECT count(*) FROM (SELECT * FROM pg_temp.items(''ord_copied.copy'')
        EXCEPT ALL SELECT * FROM pg_temp.items(%L)) AS d', 'bench_data.' || name) INTO found;
    RETURN found;
END $$;
-- Numbers of the conditions that do not hold after a statement, which changes these rows of a table; they are then as
-- before.
CREATE PROCEDURE pg_temp.break(name text, place text, change text, INOUT broken text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE saved AS SELECT * FROM bench_data.%I WHERE %s', name, place);
    EXECUTE format(change, 'bench_data.' || name, place);
    COMMIT;
    broken := (SELECT coalesce(string_agg(split_part(condition, ':', 1), ' '
                                          ORDER BY substring(condition FROM '^\d+')::int), '')
               FROM bench.check('orders') WHERE NOT ok);
    EXECUTE format('DELETE FROM bench_data.%I WHERE %s', name, place);
    EXECUTE format('INSERT INTO bench_data.%I SELECT * FROM saved', name);
    DROP TABLE saved;
    COMMIT;
END $$;
-- The quantile 0.999 of chi-square with so many degrees of freedom, by Wilson and Hilferty's approximation.
CREATE FUNCTION pg_temp.chi_square_limit(df numeric) RETURNS numeric LANGUAGE sql AS
    'SELECT df * (1 - 2 / (9 * df) + 3.0902 * sqrt(2 / (9 * df))) ^ 3';
-- How often NURand(255, 0, 999) is each number, of 256,000 cases, before its constant is added.
CREATE TEMP TABLE nurand AS
SELECT a | b AS number, count(*) AS cases FROM generate_series(0, 255) AS a, generate_series(0, 999) AS b GROUP BY 1;
\o

--
-- Rows
--
SELECT is(bench.load('orders', jobs => 2), 100000::bigint, 'a warehouse has 100,000 stocks');
SELECT bench.load('orders', options => '{"schema": "ord_selected", "partitions": 2}') \g /dev/null
SELECT is(pg_temp.differences(name), 0::bigint, name || ': the rows are those of the SELECT') FROM names;
SELECT bench.unload('orders') FROM (SELECT) AS twice \g /dev/null
SELECT is(array_agg(schema), '{bench_data}', 'the newest of one''s own goes first') FROM bench.fixtures
WHERE name = 'orders';
DROP SCHEMA IF EXISTS ord_selected CASCADE;
SELECT is(pg_temp.other_bytes(name, 'ctid < ''(40,0)'''), 0::bigint,
    name || ': every byte is as if the values had been inserted') FROM names;
SELECT is(pg_temp.other_bytes(name, format('ctid < ''(40,0)'' AND %I IS NULL', nulls)), 0::bigint,
    name || ': NULLs, too')
FROM (VALUES ('orders', 'o_carrier_id'), ('order_line', 'ol_delivery_d')) AS v (name, nulls);
SELECT is(count(*), 9000::bigint, 'orders without a carrier') FROM bench_data.orders WHERE o_carrier_id IS NULL;
SELECT is(count(DISTINCT o_c_id), 3000::bigint, 'each customer has an order') FROM bench_data.orders WHERE o_d_id = 7;
SELECT is(count(*), 1000::bigint, 'the first thousand customers of a district have all last names')
FROM (SELECT DISTINCT c_last FROM bench_data.customer WHERE c_d_id = 3 AND c_id <= 1000) AS n;
SELECT is(c_last, 'OUGHTANTIPRI', 'the last name of 163') FROM bench_data.customer WHERE c_d_id = 1 AND c_id = 164;
SELECT ok(count(*) BETWEEN 9000 AND 11000, format('%s of 100,000 stocks are original', count(*)))
FROM bench_data.stock WHERE s_data LIKE '%ORIGINAL%';
-- The others' are by NURand with the constant of the load, which is 86.
WITH names AS (
    SELECT bench_data.orders_last_name((number::int + 86) % 1000) AS name, sum(cases) AS cases
    FROM nurand GROUP BY 1
), groups AS (
    SELECT sum(cases) / 256000.0 * 20000 AS cases, sum(seen) AS seen FROM (
        SELECT n.cases, (SELECT count(*) FROM bench_data.customer WHERE c_last = n.name AND c_id > 1000) AS seen,
               row_number() OVER (ORDER BY n.cases, n.name) AS place FROM names AS n) AS x GROUP BY place / 20
)
SELECT ok(sum((seen - cases) ^ 2 / cases) < pg_temp.chi_square_limit(count(*) - 1),
    format('last names are by NURand: chi-square %s of %s groups', round(sum((seen - cases) ^ 2 / cases), 1), count(*)))
FROM groups;

--
-- bench.check
--
SELECT is(string_agg(condition, '; ') FILTER (WHERE ok IS NOT true), NULL, 'all conditions hold after a load'),
    is(count(*), 13::bigint, 'twelve, and one of the rows')
FROM bench.check('orders') WHERE condition NOT LIKE 'index%';
SELECT is(bool_and(ok IS NULL AND detail = 'extension amcheck is not installed'), true, 'indexes need amcheck')
FROM bench.check('orders') WHERE condition LIKE 'index%';
CALL pg_temp.break('warehouse', 'true', 'UPDATE %s SET w_ytd = w_ytd + 0.01 WHERE %s') \gset
SELECT is(:'broken'::text, '1 8', 'a warehouse''s balance');
CALL pg_temp.break('district', 'd_id = 4', 'UPDATE %s SET d_next_o_id = d_next_o_id + 1 WHERE %s') \gset
SELECT is(:'broken'::text, '2', 'a district''s next order');
CALL pg_temp.break('new_order', 'no_d_id = 4 AND no_o_id = 2500', 'DELETE FROM %s WHERE %s') \gset
SELECT is(:'broken'::text, '3 5 11', 'a new order');
CALL pg_temp.break('order_line', 'ol_d_id = 4 AND ol_o_id = 1 AND ol_number = 1', 'DELETE FROM %s WHERE %s') \gset
SELECT is(:'broken'::text, '4 6', 'an order line');
CALL pg_temp.break('order_line', 'ol_d_id = 4 AND ol_o_id = 1', 'UPDATE %s SET ol_delivery_d = NULL WHERE %s') \gset
SELECT is(:'broken'::text, '7', 'a time of delivery');
CALL pg_temp.break('district', 'd_id = 4', 'UPDATE %s SET d_ytd = d_ytd + 1 WHERE %s') \gset
SELECT is(:'broken'::text, '1 9', 'a district''s balance');
CALL pg_temp.break('customer', 'c_d_id = 4 AND c_id = 5', 'UPDATE %s SET c_balance = 0 WHERE %s') \gset
SELECT is(:'broken'::text, '10 12', 'a customer''s balance');
CALL pg_temp.break('item', 'i_id = 1', 'DELETE FROM %s WHERE %s') \gset
SELECT is(:'broken'::text, 'rows of the tables whose size is fixed', 'an item');
-- A district whose orders are all delivered has none to be numbered.
CALL pg_temp.break('new_order', 'no_d_id = 4', 'DELETE FROM %s WHERE %s') \gset
SELECT is(:'broken'::text, '5 11', 'conditions 2 and 3 pass over districts without new orders');
SELECT is(pg_temp.sqlstate_of('SELECT * FROM bench.check(''orders_of_nobody'')'), '42704', 'an unknown fixture');
SELECT bench.load('tpcb') \g /dev/null
SELECT is(pg_temp.sqlstate_of('SELECT * FROM bench.check(''events'')'), '55000', 'one that is not loaded');

--
-- Runs
--
SELECT bench.run('orders', 3, transactions => 700, seed => 21, max_tries => 10) AS run_id \gset
SELECT is(s.status, 'completed', 'a run completes'), is(s.transactions, 2100::bigint, 'all transactions are committed'),
    is(s.failed + s.aborted, 0::bigint, 'none fails: a rollback by intention is none'),
    ok(abs(nopm - 60 * n.transactions / secs) < 1e-6, 'new orders per minute') FROM bench.summary AS s,
    bench.scripts AS n WHERE s.run_id = :run_id AND n.run_id = s.run_id AND n.workload = 'orders/new_order';
SELECT is(array_agg(workload || '@' || weight ORDER BY script),
    '{orders/new_order@45,orders/payment@43,orders/order_status@4,orders/delivery@4,orders/stock_level@4}',
    'a name stands for five workloads with their weights'),
    ok(sum((transactions - 21.0 * weight) ^ 2 / (21 * weight)) < pg_temp.chi_square_limit(4),
        format('shares are those of the weights: chi-square %s',
            round(sum((transactions - 21.0 * weight) ^ 2 / (21 * weight)), 1)))
FROM bench.scripts WHERE run_id = :run_id;
SELECT ok(s.transactions - o.made BETWEEN 1 AND 25,
    format('%s of %s new orders are rolled back', s.transactions - o.made, s.transactions))
FROM bench.scripts AS s, (SELECT count(*) AS made FROM bench_data.orders WHERE o_id > 3000) AS o
WHERE run_id = :run_id AND workload = 'orders/new_order';
SELECT is(count(*), s.transactions, 'each payment is in the history')
FROM bench.scripts AS s, bench_data.history AS h WHERE run_id = :run_id AND workload = 'orders/payment'
    AND h_date > (SELECT started_at FROM bench.runs WHERE run_id = :run_id) GROUP BY s.transactions;
SELECT ok(count(*) > 0, 'orders are delivered') FROM bench_data.orders WHERE o_id > 2100 AND o_carrier_id IS NOT NULL;
SELECT is(string_agg(concat_ws(': ', condition, detail), '; ') FILTER (WHERE ok IS NOT true),
    '11: a district has 2100 more orders than new orders: holds until the first delivery after the load',
    'all conditions but the eleventh hold after a run') FROM bench.check('orders') WHERE condition NOT LIKE 'index%';
SELECT alike(bench.report(:run_id, 'markdown'), '%not comparable with published TPC results%',
    'the report says what it is not');
SELECT bench.run('orders_functions', 3, transactions => 300, seed => 22, max_tries => 10) AS run_id \gset
SELECT is(status || ' ' || transactions, 'completed 900', 'by functions') FROM bench.summary WHERE run_id = :run_id;
SELECT ok(s.transactions > o.made, 'with orders that are rolled back')
FROM bench.scripts AS s, (SELECT count(*) AS made FROM bench_data.orders WHERE o_entry_d > (
    SELECT started_at FROM bench.runs WHERE run_id = :run_id)) AS o
WHERE run_id = :run_id AND workload = 'orders_functions/new_order';
SELECT bench.run('orders@2,pk_select@90', 1, transactions => 50, seed => 23) AS run_id \gset
SELECT is(array_agg(weight ORDER BY script), '{90,86,8,8,8,90}', 'a weight multiplies those that the name stands for')
FROM bench.scripts WHERE run_id = :run_id;
-- A deck of cards: each client deals all 23 before it shuffles again.
SELECT bench.run('orders_deck', 2, transactions => 46, seed => 27, max_tries => 10) AS run_id \gset
SELECT is(array_agg(workload || ' ' || transactions ORDER BY script),
    '{"orders/new_order 40","orders/payment 40","orders/order_status 4","orders/delivery 4","orders/stock_level 4"}',
    'shares of decks are exact') FROM bench.scripts WHERE run_id = :run_id;
SELECT ok(nopm > 0, 'new orders of a deck are counted') FROM bench.summary WHERE run_id = :run_id;
SELECT bench.run('deck:pk_select@3,pk_update', 1, transactions => 8, seed => 28) AS run_id \gset
SELECT is(array_agg(transactions ORDER BY script), '{6,2}', 'any mix may be a deck') FROM bench.scripts
WHERE run_id = :run_id;
SELECT is(pg_temp.sqlstate_of('SELECT bench.run(''orders_deck,pk_select'', transactions => 1)'), '22023',
    'but not a part of one');
SELECT is(pg_temp.sqlstate_of('SELECT bench.create_workload(''deck:mine'', ''SELECT 1;'')'), '22023',
    'no workload has such a name');
-- Keying and think times, in thousandths.
SELECT bench.run('orders_keyed', 12, secs => 1.5, seed => 29, max_tries => 10, log_rate => 1, sample_interval => 0.5,
    variables => '{"keying": 0.02, "think": 0.001}') AS run_id \gset
SELECT is(status, 'completed', 'with keying and think times'), ok(nopm > 0, 'new orders per minute of these')
FROM bench.summary WHERE run_id = :run_id;
-- If the latencies had the keying in them, the two would be twice the time.
SELECT is(count(*) FILTER (WHERE spent_ms > took_ms), 0::bigint, 'no latency has any keying in it'),
    is(count(*), 12::bigint, 'of any client') FROM (
    SELECT client, sum(latency_ms + 20 * (ARRAY[18, 3, 2, 2, 2])[t.script + 1]) AS spent_ms,
           1000 * extract(epoch FROM max(started) - min(r.started_at)) + max(latency_ms) + 50 AS took_ms
    FROM bench.transactions AS t JOIN bench.runs AS r USING (run_id) WHERE run_id = :run_id GROUP BY client) AS c;
SELECT is(min(output), 'BEGIN', 'the transactions are the same'),
    is(count(*) FILTER (WHERE output ~ 'd_w_id = 3 AND d_id = '), 5::bigint, 'a terminal has a warehouse of its own')
FROM bench.preview((SELECT script FROM bench.workloads WHERE name = 'orders_keyed/stock_level'), 5, client => 27,
    variables => '{"scale": 4}') WHERE output ~ 'BEGIN|d_next_o_id';
SELECT is(count(*) FILTER (WHERE output ~ 'd_id = 8'), 5::bigint, 'and a district, for the stock level')
FROM bench.preview((SELECT script FROM bench.workloads WHERE name = 'orders_keyed/stock_level'), 5, client => 27,
    variables => '{"scale": 4}') WHERE output ~ 'd_next_o_id';
SELECT bench.run('orders_keyed', 40, secs => 1, driver => 'wire', seed => 30, max_tries => 10,
    variables => '{"keying": 0.01, "think": 0.01}') AS run_id \gset
SELECT ok(status = 'completed' AND transactions > 0, 'over connections') FROM bench.summary WHERE run_id = :run_id;
SELECT is(pg_temp.sqlstate_of('SELECT bench.run(''orders_keyed'', rate => 10, secs => 1)'), '22023', 'without a rate');
SELECT is(pg_temp.sqlstate_of('SELECT bench.run(''orders_keyed'', secs => 1, variables => ''{"think": -1}'')'),
    '22023', 'times are not negative');
-- Errors that are retried; more clients than the ten districts have rows.
SELECT bench.run('orders', 8, transactions => 60, seed => 24, max_tries => 1000,
    settings => '{"default_transaction_isolation": "repeatable read"}') AS run_id \gset
SELECT is(status || ' ' || transactions, 'completed 480', 'retries end') FROM bench.summary WHERE run_id = :run_id;
SELECT ok(bool_and(sqlstate IN ('40001', '40P01')) AND sum(retried) > 0, 'serialization failures are counted by kind')
FROM bench.errors WHERE run_id = :run_id;
-- A stop, and a cancel.
SELECT bench.start('orders', 4, secs => 60, max_tries => 10) AS run_id \gset
CALL pg_temp.until(format('SELECT sum(transactions) > 20 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
SELECT bench.stop(:run_id), bench.wait(:run_id) \g /dev/null
SET statement_timeout = '1500ms';
SELECT is(pg_temp.canceled('SELECT bench.run(''orders_functions'', 4, secs => 60, max_tries => 10)'), true, 'a cancel');
RESET statement_timeout;
CREATE EXTENSION amcheck SCHEMA public;
SELECT bench.check_ok('orders', 'all conditions hold after functions, retries, a stop and a cancel');
SELECT is(count(*) FILTER (WHERE NOT ok OR ok IS NULL), 0::bigint, 'indexes agree with their tables'),
    is(count(*), 10::bigint, 'all of them') FROM bench.check('orders') WHERE condition LIKE 'index%';

-- The functions are part of the fixture.
SELECT is(array_agg(DISTINCT n.nspname::text), '{bench_data}', 'the functions are in the fixture''s schema'),
    is(count(*), 7::bigint, 'all seven'), is(bool_or(p.prosecdef), false, 'with their callers'' rights')
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.proname LIKE 'orders\_%';
SELECT bench.load('orders', options => '{"schema": "ord \"odd'' $$ $function$"}') \g /dev/null
CREATE TEMP TABLE before_functions AS SELECT
    (SELECT sum(d_next_o_id) FROM "ord ""odd' $$ $function$".district) AS odd,
    (SELECT sum(d_next_o_id) FROM bench_data.district) AS usual;
SET search_path = bench_data, pg_catalog;
SELECT order_id FROM "ord ""odd' $$ $function$".orders_new_order(1, 1, 1, '{1,2}', '{1,1}', '{1,1}') \g /dev/null
RESET search_path;
SELECT is((SELECT sum(d_next_o_id) FROM "ord ""odd' $$ $function$".district) - odd, 1::bigint,
        'each works on its own schema''s tables, whatever the search_path'),
    is((SELECT sum(d_next_o_id) FROM bench_data.district) - usual, 0::bigint, 'and on no others')
FROM before_functions;
SELECT bench.unload('orders') \g /dev/null
SELECT is(count(*), 7::bigint, 'they go with their fixture') FROM pg_proc WHERE proname LIKE 'orders\_%';
SELECT bench.load('orders', 0) \g /dev/null
SELECT is(count(*), 7::bigint, 'another load replaces them') FROM pg_proc WHERE proname LIKE 'orders\_%';
SELECT bench.unload('orders') \g /dev/null
SELECT is(count(*), 0::bigint, 'none is left') FROM pg_proc WHERE proname LIKE 'orders\_%';
CREATE FUNCTION bench_data.orders_delivery(int, int) RETURNS int LANGUAGE sql RETURN 1;
SELECT is(pg_temp.sqlstate_of('SELECT bench.load(''orders'')'), '42723', 'one of somebody''s own is not replaced');
SELECT is(bench_data.orders_delivery(1, 1), 1, 'and still there');
DROP FUNCTION bench_data.orders_delivery(int, int);

-- NURand in pgbench's language
WITH drawn AS (
    SELECT (regexp_match(output, '\d+'))[1]::int AS number, count(*) AS seen
    FROM bench.preview($$\set name (random(0, 255) | random(0, 999)) % 1000
SELECT :name;$$, 20000, seed => 25) GROUP BY 1
), expected AS (SELECT number % 1000 AS number, sum(cases) AS cases FROM nurand GROUP BY 1),
groups AS (
    SELECT sum(cases) / 256000.0 * 20000 AS want, sum(coalesce(seen, 0)) AS have FROM (
        SELECT e.cases, d.seen, row_number() OVER (ORDER BY e.cases, number) AS place
        FROM expected AS e LEFT JOIN drawn AS d USING (number)) AS x GROUP BY place / 20
)
SELECT ok(sum((have - want) ^ 2 / want) < pg_temp.chi_square_limit(count(*) - 1),
    format('NURand by random and |: chi-square %s of %s groups', round(sum((have - want) ^ 2 / want), 1), count(*)))
FROM groups;

--
-- Other fixtures
--
SELECT bench.run('tpcb', 2, transactions => 50) AS run_id \gset
SELECT is(count(*) FILTER (WHERE ok IS NOT true), 0::bigint, 'tpcb: sums are equal after a run')
FROM bench.check('tpcb');
SELECT bench.run('tpcb_simple_update', 2, transactions => 50) AS run_id \gset
SELECT is(count(*) FILTER (WHERE NOT ok), 0::bigint, 'and after one that leaves branches and tellers alone'),
    is(string_agg(detail, '; '), 'a run of tpcb_simple_update has changed accounts alone', 'which is said')
FROM bench.check('tpcb');
UPDATE bench_data.pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1;
SELECT is(string_agg(condition, '; ') FILTER (WHERE NOT ok), 'the tellers'' balances add up to the branches''',
    'a teller''s balance') FROM bench.check('tpcb');
SELECT bench.load('pk', 1000), bench.load('log', 10) \g /dev/null
SELECT is(count(*) FILTER (WHERE ok), 2::bigint, 'pk: ids and index') FROM bench.check('pk');
DELETE FROM bench_data.pk WHERE id = 7;
SELECT is(detail, '999 rows with 999 ids from 1 to 1000 instead of 1000', 'a row is missing') FROM bench.check('pk')
WHERE NOT ok;
SELECT bench.run('pk_insert', transactions => 5) AS run_id \gset
SELECT is(array_agg(coalesce(detail, 'ok') ORDER BY condition), '{"15 rows, 10 were loaded",ok}', 'log: rows and index')
FROM bench.check('log');
SELECT * FROM finish();
