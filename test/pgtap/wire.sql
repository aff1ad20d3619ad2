-- The driver over connections: what it runs, counts and records is what the engine does.
\ir ../lib/pgtap.sql
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
SELECT bench.load('pk', 1000);
DROP TABLE IF EXISTS public.wire_rows, public.wire_once;
CREATE TABLE public.wire_rows (run text, client int, a text, b text, c text);
CREATE TABLE public.wire_once (id int PRIMARY KEY, n int);
INSERT INTO public.wire_once VALUES (1, 0);
\o

--
-- The same rows, variables and outcomes
--
-- Each script leaves what it has come to in wire_rows, under the name of the run in variable run.
CREATE TEMPORARY TABLE scripts (name text, modes text[], script text);
INSERT INTO scripts VALUES
('draws', '{simple,extended,prepared}', $$
\set a random(1, 1000000000)
\set b random_zipfian(1, 1000, 1.2)
\set c random_gaussian(1, 100, 2.5) * 1.5
INSERT INTO public.wire_rows VALUES (:run, :client_id, :a, :b, :c);
$$),
('branches', '{simple,extended,prepared}', $$
\set a random(1, 3)
\if :a = 1
INSERT INTO public.wire_rows VALUES (:run, :client_id, 'one', NULL, NULL);
\elif :a = 2
INSERT INTO public.wire_rows VALUES (:run, :client_id, 'two', :a, NULL);
\else
\set b :a * 2
INSERT INTO public.wire_rows VALUES (:run, :client_id, 'more', :a, :b);
\endif
$$),
('gset of numbers', '{simple,extended,prepared}', $$
\set a random(1, 100)
SELECT :a + 1 AS b, -3 AS c \gset got_
INSERT INTO public.wire_rows VALUES (:run, :client_id, :got_b, :got_c, NULL);
$$),
('gset of texts', '{extended,prepared}', $$
\set a random(1, 100)
SELECT :a + 1 AS b, 'text with ''quotes'' and ünï'::text AS t, NULL::int AS n \gset got_
INSERT INTO public.wire_rows VALUES (:run, :client_id, :got_b, length(:got_t), :got_n);
$$),
('aset', '{simple}', $$
SELECT 1 AS x \; SELECT 7 AS y WHERE false \; SELECT generate_series(1, 3) AS z \aset
INSERT INTO public.wire_rows VALUES (:run, :client_id, :x, :z, NULL);
$$),
('block', '{simple,extended,prepared}', $$
\set a random(1, 100)
BEGIN;
INSERT INTO public.wire_rows VALUES (:run, :client_id, :a, 'kept', NULL);
SAVEPOINT s;
INSERT INTO public.wire_rows VALUES (:run, :client_id, :a, 'taken back', NULL);
ROLLBACK TO s;
END;
$$);

-- Runs a script by both drivers, and says how they differ. In mode 'simple' values are text, so that texts have quotes.
CREATE FUNCTION pg_temp.differences(script text, mode text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    by_which text;
    ran bigint;
BEGIN
    DELETE FROM public.wire_rows;
    FOREACH by_which IN ARRAY '{engine,wire}'::text[] LOOP
        ran := bench.run(script => script, clients => 3, transactions => 20, seed => 42, query_mode => mode,
            driver => by_which,
            variables => jsonb_build_object('run',
                CASE mode WHEN 'simple' THEN quote_literal(by_which) ELSE by_which END));
        RETURN QUERY SELECT format('%s: %s with %s transactions', by_which, s.status, s.transactions)
            FROM bench.summary s WHERE s.run_id = ran AND (s.status, s.transactions) <> ('completed', 60);
    END LOOP;
    RETURN QUERY
        WITH counted AS (SELECT w.run, w.client, w.a, w.b, w.c, count(*) AS n FROM public.wire_rows w
                         GROUP BY 1, 2, 3, 4, 5)
        SELECT format('%s|%s|%s|%s|%s: by one driver only', c.client, c.a, c.b, c.c, c.n) FROM counted c
        GROUP BY c.client, c.a, c.b, c.c, c.n HAVING count(*) <> 2;
    IF (SELECT count(*) FROM public.wire_rows) <> 120 THEN
        RETURN NEXT format('%s rows', (SELECT count(*) FROM public.wire_rows));
    END IF;
END $$;

SELECT is_empty(format('SELECT * FROM pg_temp.differences(%L, %L)', script, mode), format('%s, %s', name, mode))
FROM scripts, unnest(modes) AS mode ORDER BY name, mode;

--
-- Counts, samples, statements, the log
--
SELECT bench.run('pk_update', 3, transactions => 200, driver => 'wire', jobs => 2, log_rate => 1) AS run_id \gset
SELECT is(driver, 'wire', 'the run names its driver'), is(status, 'completed', 'it completes'),
    is(transactions, 600::bigint, 'with every transaction'), is(failed, 0::bigint, 'none failed')
FROM bench.summary WHERE run_id = :run_id;
SELECT is(sum(transactions), 600::numeric, 'the samples have them') FROM bench.samples WHERE run_id = :run_id;
SELECT is(count(*), 600::bigint, 'the log has them'), is(count(DISTINCT client), 3::bigint, 'of three clients')
FROM bench.transactions WHERE run_id = :run_id;
SELECT is_empty(format('SELECT * FROM bench.audit(%s) WHERE NOT ok', :run_id), 'the audit finds nothing wrong');
SELECT is(ok, true, 'the server has counted as many updates')
FROM bench.audit(:run_id) WHERE counter = 'n_tup_upd';
SELECT is(count, 600::bigint, 'the statement was executed as often') FROM bench.statements
WHERE run_id = :run_id AND statement LIKE 'UPDATE%';
SELECT ok((environment ->> 'driver_cpu_secs')::float8 > 0, 'the driver''s own processor time')
FROM bench.runs WHERE run_id = :run_id;
SELECT ok((environment ->> 'driver_busy')::float8 > 0, 'how busy its busiest job was')
FROM bench.runs WHERE run_id = :run_id;
SELECT
    ok((e ->> 'driver_wait_avg_us')::float8 >= 0, 'how long answers waited for a job'),
    ok((e ->> 'driver_wait_max_ms')::float8 * 1000 >= (e ->> 'driver_wait_avg_us')::float8,
        'at most longer than on average'),
    ok((e ->> 'driver_round_max_ms')::float8 >= (e ->> 'driver_wait_max_ms')::float8,
        'no answer waits longer than its round takes'),
    ok((e ->> 'driver_context_switches')::float8 > 0, 'context switches of the jobs'),
    ok((e ->> 'server_context_switches')::float8 > 0, 'and of the backends')
FROM (SELECT environment AS e FROM bench.runs WHERE run_id = :run_id) AS r;
-- A backend that sleeps and then waits for its client is off the processor twice.
SELECT bench.run(script => 'SELECT pg_sleep(0.02);', clients => 2, transactions => 10,
    driver => 'wire') AS slept \gset
SELECT ok((environment ->> 'server_context_switches')::float8 BETWEEN 1 AND 100,
    'a context switch for each sleep at least')
FROM bench.runs WHERE run_id = :slept;
SELECT ok(sum(share) BETWEEN 0.999 AND 1.001, 'waits of the clients'' sessions'),
    ok(bool_or(wait_event = 'ClientRead'), 'which wait for their client, too')
FROM bench.waits WHERE run_id = :run_id;
SELECT is(count(*), 0::bigint, 'no session is left') FROM pg_stat_activity WHERE application_name = 'pgbench_ext';

-- A mix with weights, by several jobs, under a rate with a limit.
SELECT bench.run('pk_select@3,pk_update@1', 4, secs => 1, driver => 'wire', jobs => 3, rate => 400,
    latency_limit => 1000) AS run_id \gset
SELECT is(status, 'completed', 'a mix under a rate completes'),
    ok(transactions BETWEEN 200 AND 600, 'at about that rate')
FROM bench.summary WHERE run_id = :run_id;
SELECT is_empty(format('SELECT * FROM bench.audit(%s) WHERE NOT ok', :run_id), 'its audit finds nothing wrong');
SELECT is(count(*), 2::bigint, 'both scripts ran') FROM bench.scripts WHERE run_id = :run_id AND transactions > 0;

-- The session is that of the role, with the settings of the run.
SELECT bench.run(script => $$SELECT current_user AS u, session_user AS s, current_setting('work_mem') AS w,
    current_setting('application_name') AS p \gset
INSERT INTO public.wire_rows VALUES ('session', 0, :u || ' ' || :s, :w, :p);$$,
    transactions => 1, driver => 'wire', settings => '{"work_mem": "7MB"}') AS run_id \gset
SELECT is(concat_ws(' ', a, b, c), format('%1$s %1$s 7MB pgbench_ext', current_user), 'role and settings')
FROM public.wire_rows WHERE run = 'session';

--
-- Errors
--
-- SQLSTATE, message and the place in the script, by both drivers.
CREATE FUNCTION pg_temp.errors_of(given text, by_which text, tries int DEFAULT 1) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    ran bigint := bench.run(script => given, clients => 2, transactions => 3, max_tries => tries, driver => by_which);
BEGIN
    RETURN QUERY SELECT concat_ws('|', s.status, s.transactions, s.failed, s.aborted) FROM bench.summary s
        WHERE s.run_id = ran;
    RETURN QUERY SELECT concat_ws('|', e.sqlstate, e.message, e.detail, e.count, e.retried, e.failed)
        FROM bench.errors e WHERE e.run_id = ran ORDER BY e.sqlstate;
END $$;
SELECT is(
    ARRAY(SELECT pg_temp.errors_of(script, 'wire', tries)), ARRAY(SELECT pg_temp.errors_of(script, 'engine', tries)),
    'as by the engine: ' || name)
FROM (VALUES
    ('an error ends the client', 1, E'SELECT 1;\nSELECT 1 / (:client_id::int * 0);'),
    ('in a block', 1, E'BEGIN;\nSELECT 1 / (:client_id::int * 0);\nEND;'),
    ('of a meta command', 1, E'SELECT 1;\n\\set x 1 / 0'),
    ('a block left open', 1, E'BEGIN;\nSELECT 1;'),
    ('no row for \gset', 1, E'SELECT 1 AS x WHERE false \\gset\n'),
    ('no name for a variable', 1, E'SELECT 1 AS "a b" \\gset\n'),
    ('a serialization failure is given up', 1, $$DO 'BEGIN RAISE serialization_failure; END';$$),
    ('a serialization failure is tried again', 3, $$DO 'BEGIN RAISE serialization_failure; END';$$),
    ('in a block, which is rolled back', 2,
        E'BEGIN;\nSELECT 1;\nDO \'BEGIN RAISE serialization_failure; END\';\nEND;')
) AS s (name, tries, script);

-- Retries that succeed.
\o /dev/null
SELECT bench.run(script => E'BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT n FROM public.wire_once;\n'
    'UPDATE public.wire_once SET n = n + 1;\nEND;', clients => 4, transactions => 25, max_tries => 0,
    latency_limit => 60000, driver => 'wire', jobs => 2);
\o
SELECT is(n, 100, 'every transaction has come through in the end') FROM public.wire_once;

-- What is wrong with a statement is found before the run.
PREPARE wrong AS SELECT bench.run(script => 'SELECT nothing;', driver => 'wire');
SELECT throws_ok('wrong', '42703', NULL, 'an undefined column ends the run before it begins');

--
-- Pipelines
--
\o /dev/null
SELECT pg_temp.workload('wire_pipe', $$
\startpipeline
BEGIN;
INSERT INTO public.wire_rows VALUES ('pipe', :client_id, 'first', NULL, NULL);
INSERT INTO public.wire_rows VALUES ('pipe', :client_id, 'second', NULL, NULL);
COMMIT;
\syncpipeline
INSERT INTO public.wire_rows VALUES ('pipe', :client_id, 'third', NULL, NULL);
\endpipeline
SELECT 1;
$$);
\o
SELECT count(bench.run('wire_pipe', 2, transactions => 10, driver => 'wire', query_mode => mode)) AS runs
FROM unnest('{extended,prepared}'::text[]) AS mode \gset
SELECT is(string_agg(a || ' ' || n, ', ' ORDER BY a), 'first 40, second 40, third 40', 'pipelines execute all of it')
FROM (SELECT a, count(*) AS n FROM public.wire_rows WHERE run = 'pipe' GROUP BY a) AS x;
\o /dev/null
SELECT pg_temp.workload('wire_around', $$
\startpipeline
\if false
\endpipeline
\endif
INSERT INTO public.wire_rows VALUES ('around', :client_id, 'fourth', NULL, NULL);
\endpipeline
$$);
SELECT bench.run('wire_around', 2, transactions => 10, driver => 'wire', query_mode => 'prepared');
\o
SELECT is(count(*), 20::bigint, 'statements behind an \endpipeline that was not come to are executed')
FROM public.wire_rows WHERE run = 'around';
SELECT is((SELECT array_agg(e) FROM pg_temp.errors_of(script, 'wire') AS e), expected, name)
FROM (VALUES
    ('an error in a pipeline ends the client',
     E'\\startpipeline\nSELECT 1;\nSELECT 1 / (:client_id::int * 0);\n\\endpipeline',
     ARRAY['incomplete|0|0|2', '22012|division by zero|script "script", line 4:' || E'\n\\endpipeline|2|0|2']),
    ('an open pipeline at the end', E'\\startpipeline\nSELECT 1;',
     ARRAY['incomplete|0|0|2', '55000|end of script reached with pipeline open|script "script", line 2:'
        || E'\nSELECT 1;|2|0|2']),
    ('a pipeline in a pipeline', E'\\startpipeline\n\\startpipeline\nSELECT 1;',
     ARRAY['incomplete|0|0|2', '55000|already in pipeline mode|script "script", line 2:' || E'\n\\startpipeline|2|0|2'])
) AS s (name, script, expected);

--
-- A connection for each transaction
--
-- The table is the session's: a transaction that found one of another would fail.
CREATE TEMPORARY TABLE reconnected AS
SELECT mode, bench.run(script => E'CREATE TEMPORARY TABLE mine (id int);\nINSERT INTO mine VALUES (:client_id);\n'
    'INSERT INTO public.wire_rows VALUES (''anew'', :client_id, NULL, NULL, NULL);', clients => 3, transactions => 8,
    query_mode => mode, driver => 'wire', jobs => 2, reconnect => true, seed => 1) AS run_id
FROM unnest('{simple,extended}'::text[]) AS mode;
SELECT is(format('%s %s %s %s', r.status, s.transactions, s.failed, s.aborted), 'completed 24 0 0',
        mode || ': each transaction has a session of its own'),
    ok(r.reconnect AND r.jobs = 2, 'which the run tells'),
    ok(s.connect_avg_ms > 0 AND s.connect_avg_ms <= s.connect_max_ms, 'with the times to connect'),
    ok(s.connect_p50_ms <= s.connect_p95_ms AND s.connect_p95_ms <= s.connect_p99_ms, 'and their percentiles'),
    is(s.server_cpu_us, NULL, 'and no processor time of sessions that are gone'),
    ok(bench.report(run_id) LIKE '%Time to connect, ms%', 'in the report as well')
FROM reconnected JOIN bench.runs r USING (run_id) JOIN bench.summary s USING (run_id) ORDER BY mode;
SELECT is(count(*), 48::bigint, 'every transaction was committed') FROM public.wire_rows WHERE run = 'anew';
SELECT bench.run('pk_update', 4, transactions => 50, driver => 'wire', jobs => 2, reconnect => true) AS run_id \gset
SELECT is(format('%s %s', status, transactions), 'completed 200', 'statements are prepared anew in each')
FROM bench.summary WHERE run_id = :run_id;
SELECT is(ok, true, 'all sessions have handed in their statistics')
FROM bench.audit(:run_id) WHERE counter = 'n_tup_upd';
SELECT is(count(bench.run('wire_pipe', 2, transactions => 3, driver => 'wire', reconnect => true)), 1::bigint,
    'pipelines in each');
SELECT bench.run('pk_select', 2, secs => 1, rate => 40, driver => 'wire', reconnect => true) AS run_id \gset
SELECT is(status, 'completed', 'under a rate'), ok(lag_max_ms > 0, 'connecting delays the start')
FROM bench.summary WHERE run_id = :run_id;
SELECT bench.run('pk_select', 2, transactions => 5, driver => 'wire') AS run_id \gset
SELECT is(format('%s %s', connect_avg_ms, connect_max_ms), ' ', 'without it, no connections are timed')
FROM bench.summary WHERE run_id = :run_id;
SELECT is(
    ARRAY(SELECT (bench.report(run_id, 'json')::jsonb #>> '{summary,connect_p99_ms}')::float8
          FROM reconnected ORDER BY run_id),
    ARRAY(SELECT s.connect_p99_ms FROM bench.summary s JOIN reconnected USING (run_id) ORDER BY run_id),
    'the JSON report has them');
SELECT bench.sweep('pk_select', '{2}', secs => 0.3, rounds => 2,
    variants => '{"anew": {"driver": "wire", "reconnect": true}}') AS sweep \gset
SELECT is(r.connect_avg_ms, (SELECT avg(s.connect_avg_ms ORDER BY s.run_id) FROM bench.summary s
        WHERE s.run_id = ANY (r.run_ids)), 'a sweep has the mean of its runs'),
    ok(bench.sweep_report(:sweep) LIKE '%connect ms%', 'in its report as well'),
    is((bench.sweep_report(:sweep, 'json')::jsonb #>> '{results,0,connect_avg_ms}')::float8::numeric(9, 6),
        r.connect_avg_ms::numeric(9, 6), 'and in JSON')
FROM bench.sweep_results r WHERE sweep_id = :sweep;

SELECT is(count(*), 0::bigint, 'no session is left of any run')
FROM pg_stat_activity WHERE application_name = 'pgbench_ext';

\o /dev/null
SELECT bench.drop_workload('wire_pipe');
SELECT bench.drop_workload('wire_around');
DROP TABLE public.wire_rows, public.wire_once;
\o
SELECT * FROM finish();
