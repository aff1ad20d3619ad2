-- Feeders: which rows transactions take, what their values are in statements, and as whom they are read.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
DROP TABLE IF EXISTS public.fdr_rows, public.fdr_got, public.fdr_locked;
DROP ROLE IF EXISTS fdr_alice, fdr_bob;
CREATE TABLE public.fdr_rows (id int PRIMARY KEY, note text, flag boolean, list text[], share double precision,
    real_share real,
    money numeric, owner text, weight int);
INSERT INTO public.fdr_rows
SELECT id, CASE id % 8 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'it''s' WHEN 3 THEN E'back\\slash\\' WHEN 4 THEN
    E'two\nlines'
        WHEN 5 THEN E'ü \u20ac \U0001F600' WHEN 6 THEN E'\'); DROP TABLE public.fdr_got;
        --' ELSE E'\\\' OR 1 = 1 /* $1 :id */' END,
    CASE WHEN id % 3 > 0 THEN id % 3 = 1 END, ARRAY[id::text, NULL, '{"x"}', E'a\\b'], id / 7.0::float8,
    id / 10.0::real,
    1.50 * id, CASE WHEN id <= 10 THEN 'fdr_alice' ELSE 'fdr_bob' END, id % 4 + 1
FROM generate_series(1, 40) AS id;
CREATE TABLE public.fdr_got (client int, id int, note text, flag boolean, list text[], share double precision,
    real_share real,
    money numeric);
SELECT bench.create_workload('fdr_all',
    'INSERT INTO public.fdr_got VALUES (:client_id, :id, :note, :flag, :list, :share, :real_share, :money);');
SELECT bench.add_feeder('fdr_all', 'SELECT id, note, flag, list, share, real_share, money FROM public.fdr_rows');
CREATE FUNCTION pg_temp.got() RETURNS text LANGUAGE sql AS $$
    WITH g AS (DELETE FROM public.fdr_got RETURNING *)
    SELECT format('%s %s', count(*), md5(string_agg(g::text, ',' ORDER BY client, id, g::text))) FROM g
$$;
CREATE FUNCTION pg_temp.wrong() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM public.fdr_got g LEFT JOIN public.fdr_rows r ON r.id = g.id
    WHERE (g.note, g.flag, g.list, g.share, g.real_share, g.money)
        IS DISTINCT FROM (r.note, r.flag, r.list, r.share, r.real_share, r.money)
$$;
\o

--
-- The same rows in either driver and each mode, with their values as they are
--
CREATE TEMP TABLE runs (driver text, mode text, got text, wrong bigint, rows int);
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT driver, mode FROM unnest('{engine,wire}'::text[]) AS driver,
        unnest('{simple,extended,prepared}'::text[]) AS mode LOOP
        PERFORM bench.run('fdr_all', clients => 2, transactions => 40, seed => 7, driver => r.driver,
        query_mode => r.mode);
        INSERT INTO pg_temp.runs SELECT r.driver, r.mode, NULL, pg_temp.wrong(), count(DISTINCT id) FROM public.fdr_got;
        UPDATE pg_temp.runs SET got = pg_temp.got() WHERE got IS NULL;
    END LOOP;
END $$;
SELECT is(count(*)::int, 6, 'both drivers in three modes') FROM pg_temp.runs;
SELECT is(wrong, 0::bigint, format('%s, %s: each value is that of its row', driver, mode)) FROM pg_temp.runs;
SELECT is(count(DISTINCT got), 1::bigint, 'the same seed gives the same rows to each of them') FROM pg_temp.runs;
SELECT ok(min(rows) BETWEEN 25 AND 40, '80 transactions take most of 40 rows') FROM pg_temp.runs;
SELECT bench.run('fdr_all', clients => 2, transactions => 40, seed => 8) \g /dev/null
SELECT isnt(pg_temp.got(), max(got), 'another seed gives others') FROM pg_temp.runs;
-- An expression takes numbers and booleans for what they are.
SELECT is(output, 'debug(script=0,command=1): ' || expected, 'an expression on ' || expected)
FROM (VALUES ('\set x debug(:i + 1)', 'int 3'), ('\set x debug(:d * 2)', 'double 0.5'), ('\set x debug(:b)',
    'boolean true'),
    ('\set x debug(:n)', 'null')) AS v (script, expected),
    bench.create_workload('fdr_typed', 'SELECT 1;'),
    bench.add_feeder('fdr_typed', 'SELECT 2::smallint AS i, 0.25::float8 AS d, true AS b, NULL::int AS n'),
    LATERAL (SELECT output FROM bench.preview(script, workload => 'fdr_typed') LIMIT 1) AS p;

--
-- Orders
--
SELECT bench.add_feeder('fdr_all', 'SELECT id, note, flag, list, share, real_share, money FROM public.fdr_rows',
    pick => 'sequence')
\g /dev/null
SELECT bench.run('fdr_all', clients => 4, transactions => 20, driver => 'wire') AS run_id \gset
SELECT ok((bench.report(:run_id, 'json')::jsonb #>> '{environment,driver_wait_max_ms}')::float8 < 60000,
    'no answer waits for a job longer than a run takes, whatever the job has done before');
SELECT is((SELECT array_agg(DISTINCT n) FROM (SELECT count(*) AS n FROM public.fdr_got GROUP BY id) AS c), '{2}',
    'in sequence 4 clients take each of 40 rows twice with 80 transactions');
SELECT is(count(DISTINCT id), 40::bigint, 'and none is left out') FROM public.fdr_got;
SELECT pg_temp.got() \g /dev/null
SELECT bench.add_feeder('fdr_all', 'SELECT id, note, flag, list, share, real_share, money FROM public.fdr_rows',
    pick => 'sequence',
    once => true) \g /dev/null
SELECT bench.run('fdr_all', clients => 4, secs => 60, driver => driver, rate => rate) AS run
FROM (VALUES ('engine', NULL), ('wire', NULL), ('engine', 10000)) AS v (driver, rate) \g /dev/null
SELECT is((SELECT array_agg(n) FROM (SELECT count(*) AS n FROM public.fdr_got GROUP BY id) AS c),
    array_fill(3::bigint, ARRAY[40]),
    'once: each of three runs took each row once');
SELECT is(array_agg(s.status || ' ' || s.transactions || ' ' || (r.finished_at - r.started_at < interval '30 s') ORDER
    BY run_id),
    '{completed 40 true,completed 40 true,completed 40 true}', 'and ended with the last one')
FROM (SELECT * FROM bench.runs ORDER BY run_id DESC LIMIT 3) AS r JOIN bench.summary s USING (run_id);
SELECT pg_temp.got() \g /dev/null
SELECT bench.create_workload('fdr_weighted', 'INSERT INTO public.fdr_got (id) VALUES (:id);') \g /dev/null
SELECT bench.add_feeder('fdr_weighted', 'SELECT id, weight FROM public.fdr_rows', pick => 'weighted') \g /dev/null
SELECT bench.run('fdr_weighted', transactions => 8000, seed => 1) \g /dev/null
-- The 99.9th percentile with 39 degrees of freedom is 72.055.
SELECT ok(sum((coalesce(n, 0) - expected) ^ 2 / expected) < 72.055, 'weighted: rows come as often as their weights say')
FROM (SELECT r.id, 8000.0 * weight / sum(weight) OVER () AS expected FROM public.fdr_rows r) AS e
LEFT JOIN (SELECT id, count(*) AS n FROM public.fdr_got GROUP BY id) AS g USING (id);
SELECT pg_temp.got() \g /dev/null

--
-- On a target, its rows
--
\o /dev/null
SELECT setting AS directory FROM pg_settings WHERE name = 'unix_socket_directories' \gset
SELECT format('CREATE SERVER fdr_target FOREIGN DATA WRAPPER bench_wire OPTIONS (host %L, port %L, dbname %L)',
    :'directory',
    current_setting('port'), current_database()) \gexec
CREATE USER MAPPING FOR CURRENT_USER SERVER fdr_target;
SELECT bench.add_feeder('fdr_all', 'SELECT id, note, flag, list, share, real_share, money FROM public.fdr_rows -- all');
SELECT bench.run('fdr_all', clients => 2, transactions => 40, seed => 7, driver => 'wire',
    target => 'fdr_target') AS run \gset
\o
SELECT is(pg_temp.wrong(), 0::bigint, 'over a target each value is that of its row');
SELECT is(pg_temp.got(), max(got), 'and the rows are those that the run without it took') FROM pg_temp.runs;
SELECT is(feeders #> '{0,rows}', '40', 'as many as there are') FROM bench.runs WHERE run_id = :run;
SELECT bench.add_feeder('fdr_all', 'SELECT 1 / (id - 3) AS id FROM public.fdr_rows') \g /dev/null
SELECT throws_ok($$SELECT bench.run('fdr_all', transactions => 1, driver => 'wire', target => 'fdr_target')$$, '22012',
    'division by zero', 'an error of the target''s is the call''s');
DROP SERVER fdr_target CASCADE;

--
-- Retries keep their row
--
\o /dev/null
CREATE TABLE public.fdr_locked (id int PRIMARY KEY, n int);
INSERT INTO public.fdr_locked SELECT id, 0 FROM generate_series(1, 3) AS id;
SELECT bench.create_workload('fdr_retries', $$
\set x :row
INSERT INTO public.fdr_got (id, note) VALUES (:row, 'try');
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE public.fdr_locked SET n = n + :row WHERE id = 1;
INSERT INTO public.fdr_got (id, note) VALUES (:row, 'done');
END;
$$);
SELECT bench.add_feeder('fdr_retries', 'SELECT id AS row FROM generate_series(1, 400) AS id', pick => 'sequence',
    once => true);
SELECT bench.run('fdr_retries', clients => 4, secs => 60, max_tries => 0) AS run \gset
\o
SELECT is(count(*) FILTER (WHERE note = 'done'), 400::bigint, 'each row is worked off once, however often it was tried')
FROM public.fdr_got;
SELECT is(count(DISTINCT id) FILTER (WHERE note = 'done'), 400::bigint,
    'no row of a failed try was lost') FROM public.fdr_got;
SELECT is(n, 80200, 'and none counted twice') FROM public.fdr_locked WHERE id = 1;
SELECT ok(count(*) FILTER (WHERE note = 'try') >= 400 + retried, 'there were as many tries more as retries')
FROM public.fdr_got, LATERAL (SELECT retried FROM bench.summary WHERE run_id = :run) AS s GROUP BY retried;
TRUNCATE public.fdr_got;

--
-- As the role that runs, leaving nothing behind
--
\o /dev/null
CREATE ROLE fdr_alice LOGIN;
CREATE ROLE fdr_bob LOGIN;
GRANT EXECUTE ON FUNCTION bench.run, bench.create_workload, bench.add_feeder TO fdr_alice, fdr_bob;
ALTER TABLE public.fdr_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON public.fdr_rows USING (owner = current_user);
GRANT SELECT ON public.fdr_rows TO fdr_alice, fdr_bob;
GRANT INSERT ON public.fdr_got TO fdr_alice, fdr_bob;
-- Of a superuser, who could become either of them.
SELECT bench.create_workload('fdr_shared', 'INSERT INTO public.fdr_got (id) VALUES (:id);');
SELECT bench.add_feeder('fdr_shared', 'SELECT id FROM public.fdr_rows');
SET ROLE fdr_alice;
SELECT bench.run('fdr_shared', transactions => 60);
\o
RESET ROLE;
SELECT ok(max(id) <= 10 AND count(*) = 60, 'rows are those that the role sees under row-level security') FROM
    public.fdr_got;
TRUNCATE public.fdr_got;
SET ROLE fdr_bob;
SELECT bench.run('fdr_shared', transactions => 60) \g /dev/null
RESET ROLE;
SELECT ok(min(id) > 10 AND count(*) = 60, 'of the role that runs, not of the one whose workload it is') FROM
    public.fdr_got;
TRUNCATE public.fdr_got;
REVOKE SELECT ON public.fdr_rows FROM fdr_bob;
SET ROLE fdr_bob;
SELECT throws_ok($$SELECT bench.run('fdr_shared', transactions => 60)$$, '42501',
    'permission denied for table fdr_rows',
    'a role without privileges on the rows has no run');
RESET ROLE;
-- A query runs in a session of the role, which is nobody else, and cannot change or keep anything.
\o /dev/null
CREATE SCHEMA fdr_hostile AUTHORIZATION fdr_bob;
CREATE FUNCTION fdr_hostile.become() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RESET ROLE; RETURN current_user; END $$;
CREATE FUNCTION fdr_hostile.write() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.fdr_got (id) VALUES
    (1); RETURN 1; END $$;
CREATE FUNCTION fdr_hostile.set() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('work_mem', '1MB',
    false); RETURN 1; END $$;
SET ROLE fdr_bob;
SELECT bench.create_workload('fdr_bobs', 'SELECT :id;');
\o
SELECT bench.add_feeder('fdr_bobs', 'SELECT fdr_hostile.become() AS id') \g /dev/null
SELECT is(output, 'SELECT  ''fdr_bob'' ', 'a query that resets the role stays what it is')
FROM bench.preview(NULL, workload => 'fdr_bobs');
SELECT bench.add_feeder('fdr_bobs', 'SELECT fdr_hostile.write() AS id') \g /dev/null
SELECT throws_ok($$SELECT bench.run('fdr_bobs', transactions => 1)$$, '25006', NULL, 'nor write by a function');
SELECT current_setting('work_mem') AS work_mem \gset
SELECT bench.add_feeder('fdr_bobs', 'SELECT fdr_hostile.set() AS id') \g /dev/null
SELECT bench.run('fdr_bobs', transactions => 1) \g /dev/null
SELECT is(current_setting('work_mem'), :'work_mem', 'what it sets does not last');
RESET ROLE;
SELECT is(current_user, session_user, 'the session is its own again');
-- In one transaction with the call.
SELECT bench.add_feeder('fdr_all', 'SELECT id, note, flag, list, share, real_share, money FROM public.fdr_rows')
\g /dev/null
BEGIN;
SELECT bench.start('fdr_all', transactions => 1) AS run \gset
-- Before an assertion of pgTAP's assigns one.
SELECT pg_current_xact_id_if_assigned() IS NULL AS has_none \gset
SELECT is(count(*), 0::bigint, 'no lock on the table stays after the call')
FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'public.fdr_rows'::regclass;
SELECT ok(:'has_none', 'nor is there a transaction id');
COMMIT;
SELECT is(bench.wait(:run), 'completed', 'and the run goes its way');

--
-- Sweeps, several feeders, mixes
--
\o /dev/null
SELECT bench.create_workload('fdr_two', 'INSERT INTO public.fdr_got (id, note) VALUES (:a_id, :b_id);');
SELECT bench.add_feeder('fdr_two', 'SELECT id FROM generate_series(1, 5) AS id', prefix => 'a_', pick => 'sequence');
SELECT bench.add_feeder('fdr_two', 'SELECT id FROM generate_series(11, 15) AS id', prefix => 'b_',
    pick => 'sequence');
TRUNCATE public.fdr_got;
SELECT bench.sweep('fdr_two', '{1,2}', secs => 0.2) AS sweep \gset
\o
SELECT is(array_agg(DISTINCT jsonb_path_query_array(r.feeders, '$[*].rows')), ARRAY['[5, 5]'::jsonb],
    'the runs of a sweep are fed')
FROM bench.sweep_runs s JOIN bench.runs r USING (run_id) WHERE s.sweep_id = :sweep;
SELECT is(count(DISTINCT (id, note)), 5::bigint, 'two feeders in sequence go side by side with one client')
FROM (SELECT id, note FROM public.fdr_got LIMIT 20) AS g;
SELECT bench.run('fdr_two,fdr_weighted', transactions => 100, seed => 3) AS run \gset
SELECT is(status, 'completed', 'a mix has the feeders of its scripts') FROM bench.runs WHERE run_id = :run;
SELECT is(jsonb_path_query_array(feeders, '$[*].workload'), '["fdr_two", "fdr_two", "fdr_weighted"]',
    'each under its workload')
FROM bench.runs WHERE run_id = :run;
SELECT bench.run('fdr_two', transactions => 1, seed => 3) AS one \gset
SELECT bench.add_feeder('fdr_two', 'SELECT id FROM generate_series(1, 6) AS id', prefix => 'a_', pick => 'sequence')
\g /dev/null
SELECT bench.run('fdr_two', transactions => 1, seed => 3) AS other \gset
SELECT isnt(a.options, b.options, 'a run with other feeders is one of another series')
FROM bench.history a, bench.history b WHERE a.run_id = :one AND b.run_id = :other;
SELECT is(bench.export(ARRAY[:other]) #> '{run_log,0,feeders,0,query}', '"SELECT id FROM generate_series(1, 6) AS id"',
    'an export has the queries');

\o /dev/null
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'fdr\_%') AS w;
DROP SCHEMA fdr_hostile CASCADE;
DROP TABLE public.fdr_rows, public.fdr_got, public.fdr_locked;
REVOKE EXECUTE ON FUNCTION bench.run, bench.create_workload, bench.add_feeder FROM fdr_alice, fdr_bob;
DROP ROLE fdr_alice, fdr_bob;
\o
SELECT is(count(*), 0::bigint, 'feeders go with their workloads') FROM bench.feeders;
SELECT * FROM finish();
