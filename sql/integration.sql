--
-- Other extensions: what is said where they are not, and pgTAP in a schema of its own
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
\set SHOW_CONTEXT never
SELECT bench.create_workload('nothing', 'SELECT 1;');
SELECT bench.run('nothing', transactions => 10) AS run_id \gset
SELECT bench.start('nothing', secs => 60) AS stopped \gset
SELECT bench.stop(:stopped);

-- pg_cron: arguments come first. The server may preload a library of the tests.
CREATE FUNCTION pg_temp.hint_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE statement;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN regexp_replace(hint, '"[^"]*/sensor-\d+\.so", ', '');
END $$;
\set VERBOSITY terse
SELECT bench.schedule('nightly', '0 2 * * *', 'nothing', clients => 2);
SELECT bench.unschedule('nightly');
\set VERBOSITY default
SELECT pg_temp.hint_of($$SELECT bench.unschedule('nightly')$$);
SELECT bench.schedule('nightly', '0 2 * * *', 'nonesuch');
SELECT bench.schedule('nightly', '0 2 * * *', 'nothing', clients => 0);
\set VERBOSITY sqlstate
SELECT bench.schedule('nightly', '0 2 * * *', 'nothing', clients => 100000);
\set VERBOSITY default
SELECT bench.schedule('nightly', '0 2 * * *', 'nothing', tags => '{"job": "mine"}');
SELECT bench.schedule('nightly', '0 2 * * *', NULL);
SELECT bench.schedule(NULL, '0 2 * * *', 'nothing');
SELECT bench.schedule('nightly', NULL, 'nothing');
SELECT bench.schedule('', '0 2 * * *', 'nothing');
SELECT bench.schedule(repeat('é', 32), '0 2 * * *', 'nothing');
SELECT bench.unschedule(NULL);
SELECT bench.unschedule('');

-- What a job calls
SELECT bench_internal.start_scheduled('nothing', tags => '{"job": "mine"}') AS first \gset
SELECT bench_internal.start_scheduled('nothing', tags => '{"job": "another"}') > :first AS "another job";
SELECT bench.stop(run_id) FROM bench.runs WHERE run_id >= :first ORDER BY run_id;
SELECT bench_internal.start_scheduled('nothing', transactions => 1, tags => '{"job": "mine"}') AS again \gset
SELECT :again > :first AS again, bench.wait(:again);
SELECT bench_internal.start_scheduled('nothing');
SELECT bench_internal.start_scheduled('nothing', tags => '{"job": 1}');
SELECT bench_internal.start_scheduled('nonesuch', tags => '{"job": "mine"}');

-- pgTAP
SELECT bench.tps_ok(:run_id, '>', 1);
SELECT bench.audit_ok(:run_id);
\set VERBOSITY sqlstate
SELECT bench.latency_ok(:run_id, 0.5, '>', 1);
\set VERBOSITY default
SELECT bench.tps_ok(:run_id, '=>', 1);
SELECT bench.tps_ok(:run_id, NULL, 1);
SELECT bench.tps_ok(:run_id, '>', NULL);
SELECT bench.tps_ok(NULL, '>', 1);
SELECT bench.tps_ok(-1, '>', 1);
SELECT bench.latency_ok(:run_id, 99, '>', 1);
SELECT bench.latency_ok(:run_id, NULL, '>', 1);
SELECT bench.latency_ok(:run_id, 0.5, '~', 1);
SELECT bench.latency_ok(NULL, 0.5, '>', 1);
SELECT bench.latency_ok(-1, 0.5, '>', 1);
SELECT bench.audit_ok(NULL);
SELECT bench.audit_ok(-1);
SELECT bench.no_regression_ok('{-1}', '{-1}');
SELECT bench.no_regression_ok('{-1}', '{-1}', 1);
SELECT bench.no_regression_ok('{-1}', '{-1}', NULL);

-- In whatever schema it is
CREATE SCHEMA "it's tap";
CREATE EXTENSION pgtap SCHEMA "it's tap";
BEGIN;
SET LOCAL search_path = "it's tap";
SELECT plan(3);
SET LOCAL search_path = pg_catalog;
SELECT bench.tps_ok(:run_id, '>', 0, 'tps');
SELECT bench.latency_ok(:run_id, 0.5, '>', 0, 'latency');
SELECT replace(bench.audit_ok(:stopped, 'audit'), 'run ' || :stopped, 'run N') AS audit_ok;
SHOW search_path;
SET LOCAL search_path = "it's tap";
SELECT * FROM finish();
ROLLBACK;
DROP SCHEMA "it's tap" CASCADE;
SELECT bench.drop_workload('nothing');
