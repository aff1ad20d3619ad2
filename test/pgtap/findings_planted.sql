-- What bench.findings says of runs in which something was planted that shows whatever the machine's speed.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
SELECT bench.load('pk', 20000);
SELECT bench.create_workload('pln_update', 'UPDATE pk SET info = ''x'' WHERE id = 1 + :client_id;', 'pk');
SELECT bench.create_workload('pln_count', 'SELECT count(info) FROM pk;', 'pk');
SELECT bench.create_workload('pln_slow', 'SELECT pg_sleep(0.02);');
\o
-- The findings of a run on one topic.
CREATE FUNCTION pg_temp.told(run bigint, about text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(severity || ': ' || finding, E'\n') FROM bench.findings(run) WHERE topic = about
$$;

-- A run in which nothing was planted
SELECT bench.run('pln_update', transactions => 30) AS quiet \gset
SELECT is(pg_temp.told(:quiet, topic), NULL, format('nothing planted: nothing on %s', topic))
FROM unnest('{unlogged,scale,workers,rate,log,failed,clients}'::text[]) AS topic;

-- fsync is off in the clusters of these tests.
SELECT alike(pg_temp.told(:quiet, 'safety'), 'notice: The server ran with fsync = off%', 'fsync off is told')
WHERE current_setting('fsync') = 'off';

-- A transaction that has written holds the horizon while it waits.
BEGIN;
CREATE TABLE public.pln_written ();
SELECT bench.run('pln_update', transactions => 30) AS run_id \gset
COMMIT;
SELECT alike(pg_temp.told(:run_id, 'horizon'), 'warning: 30 rows were updated or deleted%held back the xmin horizon.',
    'a horizon that is held is told');
DROP TABLE public.pln_written;

-- Parallel plans without parallel workers
SELECT bench.run('pln_count', transactions => 30, settings => '{"max_parallel_workers": 0, "parallel_setup_cost": 0,
    "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, "max_parallel_workers_per_gather": 2}') AS run_id \gset
SELECT ok(pg_temp.told(:run_id, 'workers') IS NOT NULL, 'parallel workers that did not start are told');

-- A rate that cannot be reached
SELECT bench.run('pln_slow', 2, secs => 2, rate => 2000) AS run_id \gset
SELECT alike(pg_temp.told(:run_id, 'rate'), 'warning: The run fell behind its rate of 2,000 tps%',
    'transactions that were due and not started are told');
SELECT bench.run('pln_slow', 2, secs => 2, rate => 2000, latency_limit => 50) AS run_id \gset
SELECT alike(pg_temp.told(:run_id, 'rate'), 'warning: %were skipped because they were already too late%',
    'skipped transactions are told');

-- An error that ends a client
SELECT bench.create_workload('pln_fails', 'SELECT 1 / :client_id::int;') \g /dev/null
SELECT bench.run('pln_fails', 2, transactions => 30) AS run_id \gset
SELECT alike(pg_temp.told(:run_id, 'clients'), 'critical: An error ended 1 of 2 clients%',
    'clients that errors ended are told');

\o /dev/null
SELECT bench.unload('pk');
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'pln\_%') AS w;
\o
DROP SCHEMA IF EXISTS bench_data;
SELECT * FROM finish();
