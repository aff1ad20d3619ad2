--
-- What users of pgbench try: a script without a workload, a scale, --exit-on-abort
--
\pset format unaligned
\pset footer off
SET client_min_messages = error;
SELECT bench.load('tpcb', options => '{"scale": 2}') AS rows;

-- A script instead of a workload
SELECT bench.run(script => 'SELECT 1;', clients => 2, transactions => 10) AS run_id \gset
SELECT workload, fixture, script, status FROM bench.runs WHERE run_id = :run_id;
SELECT script, workload, weight, fixture, transactions FROM bench.scripts WHERE run_id = :run_id;
SELECT workload, transactions, failed FROM bench.summary WHERE run_id = :run_id;
SELECT bench.report(:run_id) ~ format('run %s: script with 2 clients', :run_id) AS report;
-- bench.start takes it as well; another script makes another series, and a comparison says so
SELECT bench.start(script => E'\\set x random(1, 10)\nSELECT :x;', transactions => 10, seed => 1) AS other_id \gset
SELECT bench.wait(:other_id);
SELECT count(DISTINCT (workload, options)) AS series FROM bench.history WHERE run_id IN (:run_id, :other_id);
SET client_min_messages = warning;
SELECT c.metric FROM bench.compare(ARRAY[:run_id], ARRAY[:other_id]) c WHERE c.metric = 'tps';
-- Variables: scale is 1 and there are no rows, for there is no fixture
SELECT bench.run(script => 'SELECT 1 / (2 - :scale), :client_id, :x;', transactions => 10, variables => '{"x": 7}')
    AS run_id \gset
SELECT status FROM bench.runs WHERE run_id = :run_id;
SELECT bench.run(script => 'SELECT :rows;');
-- What is wrong with it
SELECT bench.run('pk_select', script => 'SELECT 1;');
SELECT bench.run();
SELECT bench.run('tpcb-lik');
SELECT bench.run('SELECT 1');
SELECT bench.run(script => '');
SELECT bench.run(script => E'SELECT 1;\n\\set x 1 +\nSELECT :x;');
SELECT bench.create_workload('the_same', E'SELECT 1;\n\\set x 1 +\nSELECT :x;');
SELECT bench.run(script => E'SELECT 1;\nSELECT nonesuch;');
-- It runs with the privileges of the caller
CREATE ROLE regress_bench_script LOGIN;
GRANT EXECUTE ON FUNCTION bench.run TO regress_bench_script;
SET ROLE regress_bench_script;
SELECT bench.run(script => 'SELECT * FROM bench_internal.run_log;');
SELECT bench.run(script => 'SELECT 1;', transactions => 5) AS run_id \gset
SELECT role, workload, status FROM bench.runs WHERE run_id = :run_id;
RESET ROLE;

-- A scale that the tables do not have
SELECT bench.run('tpcb', transactions => 10, variables => '{"scale": 50}');
SELECT bench.start('pk_select,select-only', transactions => 10, variables => '{"scale": "1"}');
SELECT bench.sweep('tpcb', clients => '{1}', secs => 1, variables => '{"scale": 2.5}');
SELECT bench.run('tpcb', transactions => 10, variables => '{"scale": 2}') AS run_id \gset
SELECT status FROM bench.runs WHERE run_id = :run_id;
-- is a script's own affair, or one that nobody reads
SELECT bench.create_workload('own_scale', script, fixture) FROM bench.workloads WHERE name = 'tpcb_select';
SELECT bench.run('own_scale', transactions => 10, variables => '{"scale": 50}') AS run_id \gset
SELECT status FROM bench.runs WHERE run_id = :run_id;
SELECT bench.load('pk', 1000);
SELECT bench.run('pk_select', transactions => 10, variables => '{"scale": 50}') AS run_id \gset
SELECT status FROM bench.runs WHERE run_id = :run_id;

-- The first client that an error ends, ends the run, whatever time there is left
SET client_min_messages = error;
SELECT bench.run(script => 'SELECT 1 / (:client_id - 1);', clients => 3, secs => 600, exit_on_abort => true)
    AS run_id \gset
SELECT status, error ->> 'message' AS message, error ->> 'detail' AS detail FROM bench.runs WHERE run_id = :run_id;
SELECT count FROM bench.errors WHERE run_id = :run_id AND sqlstate = '22012';
-- A serialization failure ends no client
SELECT bench.run(script => $$DO 'BEGIN RAISE serialization_failure; END';$$, transactions => 5, exit_on_abort => true)
    AS run_id \gset
SELECT status, failed, aborted FROM bench.summary WHERE run_id = :run_id;
-- Errors of any class fail their transactions only, by either driver; those of meta commands end the client
SELECT bench.run(script => 'SELECT 1 / :client_id;', clients => 2, transactions => 5, continue_on_error => true)
    AS engine \gset
SELECT bench.run(script => 'SELECT 1 / :client_id;', clients => 2, transactions => 5, continue_on_error => true,
    driver => 'wire') AS wire \gset
SELECT r.driver, r.status, s.transactions, s.failed, s.aborted, e.sqlstate, e.failed AS of_these
FROM bench.runs r JOIN bench.summary s USING (run_id) JOIN bench.errors e USING (run_id)
WHERE run_id IN (:engine, :wire) ORDER BY r.driver;
SELECT bench.run(script => E'SELECT 1 / 0;\n\\set x 1 / 0', transactions => 5, continue_on_error => true)
    AS run_id \gset
SELECT r.status, s.failed, s.aborted FROM bench.summary s JOIN bench.runs r USING (run_id) WHERE run_id = :run_id;
SELECT bench.run(script => E'SELECT 1;\n\\set x 1 / 0', transactions => 5, continue_on_error => true)
    AS run_id \gset
SELECT r.status, s.failed, s.aborted FROM bench.summary s JOIN bench.runs r USING (run_id) WHERE run_id = :run_id;
SET client_min_messages = warning;
SELECT bench.run('pk_select', continue_on_error => NULL);
SELECT bench.run('pk_select', nodes => 'all', exit_on_abort => true);
SELECT bench.run('pk_select', exit_on_abort => NULL);

-- EXPLAIN ANALYZE is named as what keeps the snapshot
EXPLAIN (ANALYZE) SELECT bench.run('pk_select', transactions => 10) \g /dev/null

SELECT bench.drop_workload('own_scale');
SELECT bench.unload('pk'), bench.unload('tpcb');
REVOKE EXECUTE ON FUNCTION bench.run FROM regress_bench_script;
DROP ROLE regress_bench_script;
