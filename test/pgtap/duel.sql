-- Duels: both arms have as much time, with what is theirs and nothing of the other's; hidden indexes are hidden from
-- the planner of one arm and from nothing else.
SET client_min_messages = error;
SELECT no_plan();

SELECT bench.load('pk', 20000) \g /dev/null

--
-- Settings, variables, mixes
--
CREATE TEMP TABLE found AS SELECT *
FROM bench.duel('pk_select', '{}', '{"enable_indexscan": "off", "settings": {"enable_indexonlyscan": false}}',
    clients => 3, secs => 5, seed => 7);
SELECT is(array_agg(metric), '{latency_avg_ms,latency_p50_ms,latency_p95_ms,latency_p99_ms,server_cpu_us,blocks,'
    'wal_bytes,rows,failed,retried,minor_faults}', 'all metrics are there') FROM found;
SELECT is_empty($$ SELECT * FROM found WHERE metric NOT IN ('wal_bytes', 'failed', 'retried', 'minor_faults')
    AND (ratio_low <= ratio AND ratio <= ratio_high AND a > 0 AND b > 0) IS NOT TRUE $$,
    'those with figures have intervals');
SELECT results_eq($$ SELECT a, b, ratio, verdict FROM found WHERE metric = 'rows' $$,
    $$ VALUES (1.0::float8, 1.0::float8, 1.0::float8, 'same') $$, 'both return as many rows');
SELECT set_eq($$ SELECT metric, a, b, verdict FROM found WHERE metric IN ('failed', 'retried') $$,
    $$ VALUES ('failed', 0.0::float8, 0.0::float8, 'same'), ('retried', 0.0, 0.0, 'same') $$, 'and nothing fails');
SELECT is(verdict, 'slower', 'b takes more processor time') FROM found WHERE metric = 'server_cpu_us';
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT row_eq(format('SELECT workload, a, b, clients, status FROM bench.duels WHERE run_id = %s', :run_id),
    ROW('pk_select'::text, '{}'::jsonb,
        '{"settings": {"enable_indexonlyscan": false}, "enable_indexscan": "off"}'::jsonb, 3, 'completed'::text),
    'bench.duels has the arms as they were given');
SELECT set_eq(format('SELECT script, workload FROM bench.scripts WHERE run_id = %s', :run_id),
    $$ VALUES (0, 'pk_select [a]'), (1, 'pk_select [b]') $$, 'each arm is a script');
SELECT ok(abs(ln(a_transactions * r.a / b_transactions / r.b)) < 0.3 AND a_transactions > 100,
    'both have as much time')
FROM bench.duels, bench.duel_results(run_id) r WHERE run_id = :run_id AND metric = 'latency_avg_ms';
SELECT is(a_transactions + b_transactions, s.transactions, 'all transactions are of an arm')
FROM bench.duels JOIN bench.summary s USING (run_id) WHERE run_id = :run_id;
SELECT ok(a_plan LIKE '%Index Scan using%' AND b_plan LIKE '%Bitmap Heap Scan%' AND a_rows = 1 AND b_rows = 1,
    'each has its plans, under its settings')
FROM bench.duel_statements(:run_id) WHERE statement LIKE 'SELECT%';
SELECT ok(a_cpu_us > 0 AND b_cpu_us > 0 AND cpu_ratio BETWEEN cpu_ratio_low AND cpu_ratio_high,
    'and processor times')
FROM bench.duel_statements(:run_id) WHERE statement LIKE 'SELECT%';
SELECT is_empty(format('SELECT * FROM bench.audit(%s) WHERE NOT ok', :run_id), 'the audit holds');
SELECT ok(abs(sum(a_share) - 1) < 1e-3 AND abs(sum(b_share) - 1) < 1e-3 AND min(a_ms) >= 0,
    'the waits of each arm are all of its time') FROM bench.duel_waits(:run_id);
SELECT ok(abs(effect_us - 1e3 * (l.b - l.a)) < 0.1 * 1e3 * l.b AND s.ratio BETWEEN s.ratio_low AND s.ratio_high,
    'the only statement makes the difference')
FROM bench.duel_statements(:run_id) AS s, bench.duel_results(:run_id) AS l
WHERE s.statement LIKE 'SELECT%' AND l.metric = 'latency_avg_ms';
-- Beside others' work the time by the clock may stay open.
SELECT matches(bench.report(:run_id), CASE verdict WHEN 'slower' THEN 'b takes \S+ .s more \(\+'
        ELSE 'Not decided: b takes \S+ .s (more|less) \([+−]' END ||
    '\S+ %, \S+ to \S+\) of \S+ .s\..*Duel.*server_cpu_.*Waits of both arms',
    'the report has the sentence and the arms')
FROM found WHERE metric = 'latency_avg_ms';
SELECT alike(bench.report(:run_id, 'html'), '%plot-arms%plot-arm-distributions%', 'and plots of both');

CREATE TABLE seen (n int, work_mem text, jit text);
SELECT bench.duel(NULL, '{"variables": {"n": 1}, "work_mem": "1MB"}', '{"variables": {"n": 2}, "jit": "off"}',
    clients => 2, secs => 1, settings => '{"jit": "on", "work_mem": "2MB"}',
    script => $$INSERT INTO seen VALUES (:n, current_setting('work_mem'), current_setting('jit'));$$) \g /dev/null
SELECT set_eq('SELECT DISTINCT n, work_mem, jit FROM seen', $$ VALUES (1, '1MB', 'on'), (2, '2MB', 'off') $$,
    'an arm has its own settings and variables, and of the other''s those of the run');
SELECT bench.duel('pk_select@3,pk_update@1', '{}', '{"synchronous_commit": "off"}', clients => 2, secs => 1,
    warmup => 0.3, rate => 400) \g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT is(array_agg(workload ORDER BY script),
    ARRAY['pk_select [a]', 'pk_select [b]', 'pk_update [a]', 'pk_update [b]'], 'a mix, under a rate')
FROM bench.scripts WHERE run_id = :run_id;
SELECT ok(min(transactions) > 20, 'all of it is run') FROM bench.scripts WHERE run_id = :run_id;
SELECT is(count(*), 11::bigint, 'results are there for later, too') FROM bench.duel_results(:run_id, 0.5);
SELECT throws_like(format('SELECT * FROM bench.compare_duels(ARRAY[%s, %s])', min(run_id), max(run_id)),
    'duels % and % have other arms', 'duels of other arms are not compared together') FROM bench.duels;
-- What each arm runs, and how.
SELECT bench.duel(NULL, '{"script": "SELECT 1", "query_mode": "simple"}',
    '{"script": "SELECT count(*) FROM generate_series(1, 200)"}', secs => 1) \g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT set_eq(format('SELECT statement, a_count > 0 AS a, b_count > 0, ratio FROM bench.duel_statements(%s)', :run_id),
    $$ VALUES ('SELECT 1', true, NULL::bool, NULL::float8),
        ('SELECT count(*) FROM generate_series(1, 200)', NULL, true, NULL) $$,
    'arms have scripts of their own');
SELECT set_eq(
    format('SELECT script, generic_plans + custom_plans > 0 FROM bench.statements WHERE run_id = %s', :run_id),
    $$ VALUES (0, true), (1, true) $$, 'both of which are executed');
SELECT bench.create_workload('duel_other', 'SELECT * FROM pk WHERE id = 1 + :client_id;', fixture => 'pk') \g /dev/null
SELECT bench.duel('pk_select', '{"results": "discard"}',
    '{"workload": "duel_other", "plan_cache_mode": "force_custom_plan"}', clients => 2, secs => 1) \g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT is(array_agg(workload ORDER BY script), '{"pk_select [a]","duel_other [b]"}', 'or workloads of their own')
FROM bench.scripts WHERE run_id = :run_id;
SELECT ok(custom_plans > 0 AND generic_plans = 0, 'under their own settings') FROM bench.statements
WHERE run_id = :run_id AND script = 1;
CREATE ROLE duel_role;
ALTER ROLE duel_role SET work_mem = '3MB';
ALTER ROLE duel_role SET jit = 'on';
DELETE FROM seen;
SELECT bench.duel(NULL, '{}', '{"role_settings": "duel_role", "jit": "off"}', secs => 0.5,
    settings => '{"jit": "on", "work_mem": "2MB"}',
    script => $$INSERT INTO seen VALUES (0, current_setting('work_mem'), current_setting('jit'));$$) \g /dev/null
SELECT set_eq('SELECT DISTINCT work_mem, jit FROM seen', $$ VALUES ('2MB', 'on'), ('3MB', 'off') $$,
    'or the settings of a role');
-- Different rows are told.
SELECT bench.duel(NULL, '{"script": "SELECT generate_series(1, 3)"}', '{"script": "SELECT generate_series(1, 2)"}',
    secs => 1)
\g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT set_eq(format('SELECT topic, severity FROM bench.findings(%s) WHERE topic = ''rows''', :run_id),
    $$ VALUES ('rows', 'warning') $$, 'arms that return different rows are told');
-- Writes, with errors and retries by arm.
SELECT set_eq($$ SELECT metric, a > 0 AS a, b > 0, verdict FROM bench.duel(NULL,
        '{"variables": {"divisor": 0}}', '{"variables": {"divisor": 1}}',
        script => 'INSERT INTO seen VALUES (1 / :divisor);', secs => 1, continue_on_error => true)
    WHERE metric IN ('failed', 'wal_bytes') $$,
    $$ VALUES ('failed', true, false, 'inconclusive'), ('wal_bytes', false, true, 'inconclusive') $$,
    'errors and WAL are of an arm');

--
-- Until it is certain
--
SELECT bench.duel(NULL, '{"variables": {"n": 10}}', '{"variables": {"n": 400}}', margin => 0.05, secs => 8,
    script => 'SELECT count(*) FROM generate_series(1, :n);') \g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT ok(s.secs BETWEEN 1.9 AND 2.9 AND r.status = 'completed',
    'a plain difference takes a quarter of the time: ' || s.secs)
FROM bench.summary s JOIN bench.runs r USING (run_id) WHERE run_id = :run_id;
SELECT is(verdict, 'slower', 'and is found') FROM bench.duel_results(:run_id) WHERE metric = 'latency_avg_ms';
SELECT * FROM check_test(bench.no_slower_ok('pk_select', '{}', '{}', 0.2, secs => 2), true, 'no_slower_ok, same arms');
SELECT * FROM check_test(bench.no_slower_ok(NULL, '{"script": "SELECT 1"}',
    '{"script": "SELECT count(*) FROM generate_series(1, 500)"}', 0.2, secs => 2), false, 'no_slower_ok, a slower arm');
SELECT * FROM check_test(bench.duel_ok(NULL, '{"script": "SELECT count(*) FROM generate_series(1, 500)"}',
    '{"script": "SELECT 1"}', secs => 2), true, 'duel_ok, a faster arm');
SELECT * FROM check_test(bench.duel_ok(NULL, '{"script": "SELECT 1"}',
    '{"script": "SELECT count(*) FROM generate_series(1, 500)"}', secs => 2), false, 'duel_ok, a slower arm');

--
-- Over connections
--
DELETE FROM seen;
SELECT set_eq($$ SELECT metric, a > 0 AS a, b > 0 FROM bench.duel(NULL, '{"variables": {"n": 1}, "work_mem": "1MB"}',
        '{"variables": {"n": 2}, "jit": "off", "query_mode": "simple"}', clients => 3, secs => 1,
        driver => 'wire', jobs => 2, settings => '{"jit": "on", "work_mem": "2MB"}',
        script => 'INSERT INTO seen VALUES (:n, current_setting(''work_mem''), current_setting(''jit''));')
    WHERE metric IN ('latency_avg_ms', 'latency_p95_ms', 'server_cpu_us') $$,
    $$ VALUES ('latency_avg_ms', true, true), ('latency_p95_ms', true, true), ('server_cpu_us', true, true) $$,
    'a duel over connections has latencies, and processor time of the backends');
SELECT set_eq('SELECT DISTINCT n, work_mem, jit FROM seen', $$ VALUES (1, '1MB', 'on'), (2, '2MB', 'off') $$,
    'sessions are switched');
SELECT ok(abs(ln(a_transactions * r.a / b_transactions / r.b)) < 0.3 AND a_transactions > 50,
    'both have as much time')
FROM bench.duels, bench.duel_results(run_id) r
WHERE run_id = (SELECT max(run_id) FROM bench.duels) AND metric = 'latency_avg_ms';
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT is_empty(format('SELECT * FROM bench.audit(%s) WHERE NOT ok', :run_id), 'the audit holds');
SELECT ok(a_count > 0 AND a_cpu_us IS NULL AND cpu_ratio IS NULL, 'no processor times by statement')
FROM bench.duel_statements(:run_id);
SELECT throws_ok(format('SELECT * FROM bench.duel(''pk_select'', ''{}'', %L, secs => 1, driver => ''wire'')', arm),
    code, NULL, arm)
FROM (VALUES ('{"hide_indexes": "pk_pkey"}', '0A000'), ('{"results": "discard"}', '0A000'),
    ('{"role_settings": "postgres"}', '0A000'),
    ('{"work_mem; DROP": 1}', '22023'), ('{"shared_buffers": 1}', '55P02')) AS t (arm, code);
SELECT throws_ok($$SELECT * FROM bench.duel('pk_select', '{}', '{}', driver => 'wire', reconnect => true)$$, '0A000');

SELECT bench.start_duel('pk_update', '{}', '{}', secs => 60) AS started \gset
SELECT pg_sleep(0.7) \g /dev/null
SELECT is(bench.stop(:started), true, 'a duel is stopped');
SELECT is(bench.wait(:started), 'canceled', 'as any run');

--
-- Hidden indexes
--
CREATE TABLE hidden (id int, other int, part int) PARTITION BY RANGE (part);
CREATE TABLE hidden_1 PARTITION OF hidden FOR VALUES FROM (0) TO (1);
CREATE TABLE hidden_2 PARTITION OF hidden FOR VALUES FROM (1) TO (2);
CREATE UNIQUE INDEX hidden_id ON hidden (id, part);
CREATE INDEX hidden_other ON hidden (other);
INSERT INTO hidden SELECT i, i, i % 2 FROM generate_series(1, 20000) AS i;
ANALYZE hidden;
SELECT bench.duel(NULL, '{}', '{"hide_indexes": ["hidden_other", "hidden_id"]}', clients => 2, secs => 1, script => $$
\set id random(1, 20000)
SELECT count(*) FROM hidden WHERE other = :id;
INSERT INTO hidden VALUES (:id, :id, :id % 2) ON CONFLICT (id, part) DO UPDATE SET other = hidden.other;
$$) \g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT ok(a_plan LIKE '%Index%Scan%hidden_2_other_idx%' AND b_plan NOT LIKE '%Index%', 'those of partitions are hidden')
FROM bench.duel_statements(:run_id) WHERE statement LIKE 'SELECT%';
SELECT is(count(*), 20000::bigint, 'ON CONFLICT and the constraint hold') FROM hidden;
SELECT is((SELECT sum(failed) FROM bench.scripts WHERE run_id = :run_id), 0::numeric, 'without an error');
SELECT ok(indisvalid, 'nothing has changed') FROM pg_index WHERE indexrelid = 'hidden_other'::regclass;

SELECT throws_ok(format('SELECT * FROM bench.duel(''pk_select'', ''{}'', %L, secs => 1)', arm), code, NULL, arm)
FROM (VALUES ('{"hide_indexes": "nothing"}', '42704'), ('{"hide_indexes": ["pk"]}', '42809'),
    ('{"hide_indexes": "pg_class_oid_index"}', '0A000'), ('{"hide_indexes": 3}', '22023'), ('{"system": {}}', '0A000'),
    ('{"query_mode": "none"}', '22023'), ('{"workload": "no such"}', '42704'),
    ('{"workload": "pk_select,pk_update"}', '22023'), ('{"role_settings": "no such"}', '42704'),
    ('{"driver": "wire"}', '0A000'), ('{"script": "SELEC"}', '42601'),
    ('{"x": {}}', '22023'), ('[]', '22023'),
    ('{"shared_buffers": "1GB"}', '55P02'),
    ('{"variables": {"n": 1}}', '22023')) AS t (arm, code);
SELECT throws_ok($$SELECT * FROM bench.duel('pk_select', '{}', '{}', transactions => 10)$$, '0A000');
SELECT throws_ok($$SELECT * FROM bench.duel('pk_select', NULL, '{}')$$, '22004');
SELECT throws_ok($$SELECT * FROM bench.duel('pk_select', '{}', '{}', margin => -1)$$, '22023');
SELECT throws_ok($$SELECT * FROM bench.duel_results(-1)$$, '42704');
SELECT bench.run('pk_select', transactions => 5) AS run_id \gset
SELECT throws_ok(format('SELECT * FROM bench.duel_results(%s)', :run_id), '55000', NULL, 'another run is none');
SELECT throws_ok(format('SELECT * FROM bench.duel_statements(%s)', :run_id), '55000', NULL,
    'nor has it statements of arms');

-- What an arm's session begins without would stay in the other.
SELECT throws_ok($$SELECT * FROM bench.duel('pk_select', '{}', '{"app.tenant": "x"}', secs => 1)$$, '22023', NULL,
    'a parameter without a value has to be in both arms');
SELECT lives_ok($$SELECT * FROM bench.duel('pk_select', '{"app.tenant": "y"}', '{"app.tenant": "x"}', secs => 0.5)$$,
    'then it may differ');
-- Rows of feeders come once, whichever arm takes them.
CREATE TABLE queue (id int PRIMARY KEY);
INSERT INTO queue SELECT generate_series(1, 200);
SELECT bench.create_workload('duel_fed', 'DELETE FROM queue WHERE id = :id;') \g /dev/null
SELECT bench.add_feeder('duel_fed', 'SELECT id FROM queue', pick => 'sequence', once => true) \g /dev/null
SELECT bench.duel('duel_fed', '{}', '{"jit": "off"}', clients => 2, secs => 5) \g /dev/null
SELECT is(count(*), 0::bigint, 'all rows of a feeder were taken') FROM queue;
SELECT is(sum(s.transactions), 200::numeric, 'each once') FROM bench.scripts s
WHERE run_id = (SELECT max(run_id) FROM bench.duels);
-- Transactions that are longer than a batch.
SELECT is(count(ratio), 1::bigint, 'slow transactions have a ratio')
FROM bench.duel(NULL, '{}', '{}', secs => 3, script => 'SELECT pg_sleep(0.1);') WHERE metric = 'latency_avg_ms';
SELECT is_empty(format('SELECT * FROM bench.history WHERE run_id IN (SELECT run_id FROM bench.duels)'),
    'duels are no part of a series');

-- Others see nothing of it.
CREATE ROLE duel_stranger;
SET ROLE duel_stranger;
SELECT is_empty('SELECT * FROM bench.duels', 'strangers see no duels');
SELECT throws_ok($$SELECT * FROM bench.duel('pk_select', '{}', '{}')$$, '42501', NULL, 'nor may they make any');
SELECT throws_ok($$SELECT bench.duel_ok('pk_select', '{}', '{}')$$, '42501', NULL, 'as an assertion either');
RESET ROLE;
SELECT max(run_id) AS run_id FROM bench.duels \gset
SET ROLE duel_stranger;
SELECT throws_ok(format('SELECT * FROM bench.duel_results(%s)', :run_id), '42501', NULL, 'or learn of others''');
SELECT throws_ok(format('SELECT * FROM bench.duel_waits(%s)', :run_id), '42501', NULL, 'of none');
RESET ROLE;

-- A duel goes with its run, and to another server.
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT bench.import(d) AS imported FROM bench.export(ARRAY[:run_id]) AS d \gset
SELECT results_eq(format('SELECT metric, a, b FROM bench.duel_results((%L::bigint[])[1])', :'imported'),
    format('SELECT metric, a, b FROM bench.duel_results(%s)', :run_id), 'an imported duel says the same');
SELECT bench.delete_run((:'imported'::bigint[])[1]) \g /dev/null
SELECT bench.import(jsonb_set(d, '{run_log,0,duel}', '[1]')) AS odd FROM bench.export(ARRAY[:run_id]) AS d \gset
SELECT lives_ok(format('SELECT bench.report((%L::bigint[])[1])', :'odd'), 'whatever an imported document has for arms');
SELECT bench.delete_run(:run_id) \g /dev/null
SELECT is_empty(format('SELECT * FROM bench_internal.duel_log WHERE run_id = %s', :run_id), 'it goes with its run');
SELECT * FROM finish();
