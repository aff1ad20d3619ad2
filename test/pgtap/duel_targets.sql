-- Duels of two targets: half of the connections lead to each, and each does what its arm does.
SET client_min_messages = error;
CREATE DATABASE duel_b;
\c duel_b
SET client_min_messages = error;
CREATE EXTENSION pgbench_ext;
SELECT bench.load('pk', 5000) \g /dev/null
ALTER TABLE bench_data.pk DROP CONSTRAINT pk_pkey;
CREATE TABLE seen (arm text, work_mem text);
CREATE FUNCTION there() RETURNS int LANGUAGE sql AS 'SELECT 1';
\c postgres
SET client_min_messages = error;
SELECT bench.load('pk', 5000) \g /dev/null
CREATE TABLE seen (arm text, work_mem text);
SELECT setting AS directory FROM pg_settings WHERE name = 'unix_socket_directories' \gset
SELECT format('CREATE SERVER target_%s FOREIGN DATA WRAPPER bench_wire OPTIONS (host %L, port %L, dbname %L)',
    arm, :'directory', current_setting('port'), datname)
FROM (VALUES ('a', current_database()), ('b', 'duel_b')) AS target (arm, datname) \gexec
CREATE USER MAPPING FOR CURRENT_USER SERVER target_a;
CREATE USER MAPPING FOR CURRENT_USER SERVER target_b;

-- Arms of two targets may differ in whatever else arms may.
SELECT bench.duel(NULL, '{"variables": {"arm": "a"}}', '{"variables": {"arm": "b"}, "work_mem": "1MB",
        "target": "target_b"}', target => 'target_a', driver => 'wire', clients => 2, secs => 1, warmup => 0.2,
    settings => '{"work_mem": "2MB"}', rate => 300,
    script => 'INSERT INTO public.seen VALUES (:arm, current_setting(''work_mem''));') \g /dev/null
\c duel_b
SELECT string_agg(DISTINCT concat_ws(' ', arm, work_mem), ',') AS seen_b FROM seen \gset
\c postgres
SET client_min_messages = error;
SELECT no_plan();

CREATE TEMP TABLE found AS SELECT *
FROM bench.duel('pk_select', '{"target": "target_a"}', '{"target": "target_b"}', driver => 'wire', clients => 4,
    jobs => 2, secs => 4);
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT results_eq($$ SELECT verdict, a > 0, ratio > 2, ratio_low > 1, ratio_low < ratio, ratio < ratio_high FROM found
    WHERE metric = 'latency_avg_ms' $$, $$ VALUES ('slower', true, true, true, true, true) $$,
    'the one without the index takes longer');
SELECT is(array_agg(metric ORDER BY metric),
    '{failed,latency_avg_ms,latency_p50_ms,latency_p95_ms,latency_p99_ms,retried,server_cpu_us}',
    'what the protocol tells is measured, and the processor time of processes of this machine')
FROM found WHERE a IS NOT NULL AND b IS NOT NULL;
SELECT results_eq($$ SELECT verdict, ratio > 2,
        b BETWEEN 0 AND (SELECT 1000 * b FROM found WHERE metric = 'latency_avg_ms')
    FROM found WHERE metric = 'server_cpu_us' $$, $$ VALUES ('slower', true, true) $$,
    'the one without the index takes more of it, and not more than its latency');
-- Several duels together: each is a batch.
SELECT bench.start_duel('pk_select', '{"target": "target_a"}', '{"target": "target_b"}', driver => 'wire', clients => 2,
    secs => 1) AS again_id \gset
SELECT bench.wait(:again_id) \g /dev/null
SELECT results_eq(format('SELECT metric, t.a BETWEEN least(f.a, s.a) AND greatest(f.a, s.a),
            t.b BETWEEN least(f.b, s.b) AND greatest(f.b, s.b), t.ratio_low < t.ratio
        FROM bench.compare_duels(ARRAY[%1$s, %2$s]) t JOIN bench.duel_results(%1$s) f USING (metric)
            JOIN bench.duel_results(%2$s) s USING (metric)
        WHERE metric IN (''latency_avg_ms'', ''server_cpu_us'')', :run_id, :again_id),
    $$ VALUES ('latency_avg_ms', true, true, true), ('server_cpu_us', true, true, true) $$,
    'what two duels say lies between what each says');
SELECT throws_ok(format('SELECT * FROM bench.compare_duels(ARRAY[%s])', :run_id), '22023',
    'run_ids has fewer than two duels', 'one says nothing of how far duels are apart');
SELECT ok((SELECT f.a * a_transactions FROM found f, bench.duels WHERE run_id = :run_id AND metric = 'latency_avg_ms')
        BETWEEN 4000 * 2 * 0.05 AND 4000 * 2 * 0.7,
    'the clients of an arm wait while the other has its stretch');
SELECT ok(a_transactions > b_transactions AND b_transactions > 0, 'each goes at its own pace') FROM bench.duels
WHERE run_id = :run_id;
SELECT is(a_transactions + b_transactions, s.transactions, 'and all transactions are of an arm')
FROM bench.duels JOIN bench.summary s USING (run_id) WHERE run_id = :run_id;
SELECT row_eq(format('SELECT target, clients, status FROM bench.runs WHERE run_id = %s', :run_id),
    ROW('target_a'::text, 4, 'completed'::text), 'the run is one on the target of arm a');
SELECT is_empty(format('SELECT * FROM bench.duel_waits(%s)', :run_id),
    'waits are not compared: one target is observed');
SELECT is_empty(format('SELECT * FROM bench.audit(%s) WHERE NOT ok', :run_id), 'the audit holds');
SELECT results_eq(format('SELECT statement, verdict FROM bench.duel_statements(%s)
    WHERE statement LIKE ''SELECT%%''', :run_id),
    $$ VALUES ('SELECT * FROM pk WHERE id = :id;', 'slower') $$, 'statements are compared');
SELECT alike(bench.report(:run_id), '%Statements of both arms%SELECT * FROM pk WHERE id = :id;%',
    'the report has them');
SELECT results_eq(format('SELECT a_plan, b_plan FROM bench.duel_statements(%s)
    WHERE statement LIKE ''SELECT%%''', :run_id),
    $$ VALUES (E'generic plan:\nIndex Scan using pk_pkey on pk\n  Index Cond: (id = $1)',
        E'generic plan:\nSeq Scan on pk\n  Filter: (id = $1)') $$, 'with the generic plans of both targets');
SELECT alike(bench.report(:run_id, 'markdown'),
    format('%%_a, PostgreSQL %s%%_b, PostgreSQL %1$s%%', current_setting('server_version')),
    'the report has the version of each');

SELECT results_eq('SELECT DISTINCT arm, work_mem FROM seen', $$ VALUES ('a', '2MB') $$, 'arm a works on its target');
SELECT is(:'seen_b'::text, 'b 1MB', 'and arm b on its own');
SELECT is(bench.duel(NULL, '{"target": "target_a", "script": "SELECT 1"}',
    '{"target": "target_b", "script": "SELECT public.there()"}', driver => 'wire', clients => 2, secs => 1) IS NULL,
    false, 'each has the statements that it can execute') LIMIT 1;
SELECT is(b_transactions > 0 AND failed = 0, true, 'which succeed') FROM bench.duels JOIN bench.summary USING (run_id)
ORDER BY run_id DESC LIMIT 1;
SELECT bench.duel('pk_select', '{"target": "target_a"}', '{"target": "target_a", "work_mem": "1MB"}', driver => 'wire',
    secs => 1) \g /dev/null
SELECT bench.duel('pk_select', '{"target": "target_a"}',
    '{"target": "target_a", "enable_indexscan": "off", "enable_bitmapscan": "off"}', driver => 'wire', secs => 1)
\g /dev/null
SELECT ok(a_plan LIKE '%Index Scan%' AND b_plan LIKE '%Seq Scan%', 'each has the plan under its settings')
FROM bench.duel_statements((SELECT max(run_id) FROM bench.duels)) WHERE statement LIKE 'SELECT%';
SELECT ok(abs(a_transactions - b_transactions) <= 10000 AND a_transactions > 0,
    'arms with the same target take turns, of one client too')
FROM bench.duels ORDER BY run_id DESC LIMIT 1;

-- What cannot be
PREPARE try(jsonb, jsonb, int, text) AS
SELECT * FROM bench.duel('pk_select', $1, $2, driver => 'wire', clients => $3, secs => 1, before => $4);
SELECT throws_ok(format('EXECUTE try(%L, %L, %s, ''none'')', a, b, clients), code, message, message)
FROM (VALUES
    ('{"target": "target_a"}', '{"target": "target_b"}', 3, '22023',
        'a duel of two targets needs an even number of clients, not 3'),
    ('{"target": "target_a"}', '{}', 2, '22023', 'arm b has no target'),
    ('{"target": "target_a"}', '{"target": "nowhere"}', 2, '42704', 'server "nowhere" does not exist'),
    ('{"target": "target_a"}', '{"target": 1}', 2, '22023', 'target of arm b must be text'),
    ('{"target": "target_b"}', '{"target": "target_a", "script": "SELECT public.there()"}', 2, '42883',
        'function public.there() does not exist')) AS arms (a, b, clients, code, message);
SELECT throws_ok($$ EXECUTE try('{"target": "target_a"}', '{"target": "target_b"}', 2, 'vacuum') $$, '0A000',
    'a duel with before and two targets is not supported');
SELECT throws_ok($$ SELECT * FROM bench.duel('pk_select', '{"target": "target_a"}', '{"target": "target_b"}') $$,
    '22023', 'target requires driver => ''wire''');
SELECT bench.load('pk', 4000) \g /dev/null
SELECT throws_ok($$ EXECUTE try('{"target": "target_a"}', '{"target": "target_b"}', 2, 'none') $$, '55000',
    'fixture "pk" differs on the targets of both arms');
SELECT is(count(*), 0::bigint, 'no run is left of these') FROM bench.runs WHERE status <> 'completed';

SELECT * FROM finish();
