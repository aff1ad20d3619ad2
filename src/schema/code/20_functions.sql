-- Functions. Those that start work are for whoever is granted them.

CREATE FUNCTION bench.load(fixture text, rows bigint DEFAULT NULL, jobs int DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'load_sql_wrapper';
COMMENT ON FUNCTION bench.load IS
'Loads a fixture with parallel background workers, replacing its previous tables, and returns the number of rows. The workers commit independently: rolling back the calling transaction does not undo the load, but a load that fails keeps the previous tables. See SELECT * FROM bench.help(''load'').';

CREATE FUNCTION bench.start_load(fixture text, rows bigint DEFAULT NULL, jobs int DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_load_wrapper';
COMMENT ON FUNCTION bench.start_load IS
'Starts a load with the arguments of bench.load and returns its id immediately; the load does not depend on the session. See bench.wait_load, bench.stop_load, bench.loads and bench.progress.';

CREATE FUNCTION bench.wait_load(load_id bigint, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_load_wrapper';
COMMENT ON FUNCTION bench.wait_load IS
'Waits until a load has ended, or for timeout seconds (NULL: no limit), and returns the load''s status. Canceling the wait does not stop the load.';

CREATE FUNCTION bench.stop_load(load_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'stop_load_wrapper';
COMMENT ON FUNCTION bench.stop_load IS
'Stops a load and removes what it has made; the fixture''s previous tables stay. Returns false if the load was not active. Requires the privileges of the load''s role or of pg_signal_backend.';

CREATE FUNCTION bench_internal.load_status_of(status text, segment bigint, load_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'load_status_of_wrapper';
COMMENT ON FUNCTION bench_internal.load_status_of IS 'Status of a load: crashed if its leader is gone without having recorded the end.';

CREATE FUNCTION bench.create_fixture(name text, ddl text, rows_query text, after_ddl text DEFAULT NULL, rows bigint DEFAULT 1000000)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'create_fixture_wrapper';
COMMENT ON FUNCTION bench.create_fixture IS
'Defines a fixture, or replaces your own of this name: statements that create its tables, and a SELECT that returns its rows. They run with the privileges of the role that loads the fixture. See SELECT * FROM bench.help(''create_fixture'').';

CREATE FUNCTION bench.drop_fixture(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_fixture_wrapper';
COMMENT ON FUNCTION bench.drop_fixture IS 'Removes a fixture definition made by bench.create_fixture. Use bench.unload to drop the tables.';

CREATE FUNCTION bench_internal.builtin_fixtures()
    RETURNS TABLE (name text, ddl text, rows_query text, after_ddl text, rows bigint)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'builtin_fixtures_wrapper';
COMMENT ON FUNCTION bench_internal.builtin_fixtures IS 'Definitions of the built-in fixtures, for bench.fixture_definitions.';

CREATE FUNCTION bench.unload(fixture text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'unload_wrapper';
COMMENT ON FUNCTION bench.unload IS 'Drops a loaded fixture''s tables.';

CREATE FUNCTION bench.create_workload(name text, script text, fixture text DEFAULT NULL, description text DEFAULT NULL)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'create_workload_wrapper';
COMMENT ON FUNCTION bench.create_workload IS
'Stores a script in pgbench''s language under a name, or replaces your own workload of this name. Built-in workloads cannot be replaced.';

CREATE FUNCTION bench.drop_workload(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_workload_wrapper';
COMMENT ON FUNCTION bench.drop_workload IS 'Removes a workload with its feeders and captured values. Built-in workloads cannot be removed.';

CREATE FUNCTION bench.add_feeder(workload text, query text, prefix text DEFAULT '', pick text DEFAULT 'random', once boolean DEFAULT false, max_rows int DEFAULT 100000)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'add_feeder_wrapper';
COMMENT ON FUNCTION bench.add_feeder IS
'Gives a workload of your own a feeder, or replaces its feeder of this prefix: a SELECT whose columns become variables of the script, one row per transaction. Before each run, the SELECT is executed once, as the role that runs the workload.';

CREATE FUNCTION bench.drop_feeder(workload text, prefix text DEFAULT '')
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_feeder_wrapper';
COMMENT ON FUNCTION bench.drop_feeder IS 'Removes the feeder of a prefix from a workload.';

CREATE FUNCTION bench.preview(script text, transactions int DEFAULT 1, client int DEFAULT 0, seed bigint DEFAULT 0, variables jsonb DEFAULT '{}', workload text DEFAULT NULL)
    RETURNS TABLE (transaction int, command int, line int, output text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION bench.preview IS
'Shows the statements that a client would send, with their values, and the output of debug(), without sending them. The same seed and client give the same random numbers as pgbench --random-seed with one thread per client.';

CREATE FUNCTION bench.run(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_run_wrapper';
COMMENT ON FUNCTION bench.run IS
'Runs a workload in concurrent sessions, waits for the run to end, and returns its id; canceling the call stops the run and keeps its results. SELECT * FROM bench.help(''run'') describes the arguments.';

CREATE FUNCTION bench.start(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_wrapper';
COMMENT ON FUNCTION bench.start IS
'Starts a run with the arguments of bench.run and returns its id immediately; the run does not depend on the session. See bench.wait, bench.stop and bench.progress.';

CREATE FUNCTION bench.preflight(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS TABLE (topic text, severity text, finding text, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_preflight_wrapper';
COMMENT ON FUNCTION bench.preflight IS
'Lists conditions that would spoil a run with these arguments if it started now: load, checkpoints, vacuums, locks, dead rows, bloat, old transactions, replication slots, settings. It starts and loads nothing, and fails with the error with which the run would fail before it starts.';

CREATE FUNCTION bench.wait(run_id bigint, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_wrapper';
COMMENT ON FUNCTION bench.wait IS
'Waits until a run has ended, or for timeout seconds (NULL: no limit), and returns the run''s status. Canceling the wait does not stop the run.';

CREATE FUNCTION bench.stop(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'stop_wrapper';
COMMENT ON FUNCTION bench.stop IS
'Stops a run within a second and keeps its results. Returns false if the run was not active. Requires the privileges of the run''s role or of pg_signal_backend.';

CREATE FUNCTION bench_internal.status_of(status text, segment bigint, run_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_of_wrapper';
COMMENT ON FUNCTION bench_internal.status_of IS 'Status of a run: crashed if its coordinator no longer exists and has not recorded the end.';

CREATE FUNCTION bench_internal.run_progress(segment bigint, run_id bigint)
    RETURNS TABLE (phase text, elapsed double precision, remaining double precision, tps double precision,
                   latency_avg_ms double precision, transactions bigint, clients int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'run_progress_wrapper';
COMMENT ON FUNCTION bench_internal.run_progress IS 'Progress of an active run, for bench.progress.';

CREATE FUNCTION bench_internal.load_progress(segment bigint, load_id bigint)
    RETURNS TABLE (phase text, elapsed double precision, remaining double precision, rows bigint, rows_per_sec double precision,
                   loaders int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'load_progress_wrapper';
COMMENT ON FUNCTION bench_internal.load_progress IS 'Progress of an active load, for bench.progress.';

CREATE FUNCTION bench.percentile(run_id bigint, percentile double precision)
    RETURNS double precision VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'percentile_wrapper';
COMMENT ON FUNCTION bench.percentile IS
'Returns a percentile of a run''s latencies in milliseconds, within 1 %, or NULL if the run has no histogram. The percentile is a fraction and is interpolated, as in percentile_cont.';

CREATE FUNCTION bench.findings(run_id bigint)
    RETURNS TABLE (severity text, topic text, finding text, figures jsonb, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'findings_wrapper';
COMMENT ON FUNCTION bench.findings IS
'Returns findings about a run with advice, the most severe first; a clean run has none. severity is critical (the figures are misleading), warning (something made them worse or less steady) or notice.';

CREATE FUNCTION bench.report(run_id bigint, format text DEFAULT 'text')
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'report_wrapper';
COMMENT ON FUNCTION bench.report IS
'Returns a report of a run as text, markdown, json or html, or in a format for other programs: openmetrics, junit. Format schema is the JSON schema of json, whatever the run. To write it to a file: psql -XAtc "SELECT bench.report(1, ''html'')" > report.html';

CREATE FUNCTION bench.help(name text DEFAULT NULL)
    RETURNS SETOF text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'help_wrapper';
COMMENT ON FUNCTION bench.help IS
'Lists the functions of schema bench by group, one sentence each; with a name, shows one function with its arguments and an example.';

CREATE FUNCTION bench.version()
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'version_wrapper';
COMMENT ON FUNCTION bench.version IS
'Returns the version of the library that this session has loaded, the PostgreSQL version it was built for, and a hash of its sources';

REVOKE ALL ON FUNCTION
    bench.load, bench.start_load, bench.unload, bench.create_fixture, bench.drop_fixture, bench.create_workload, bench.drop_workload, bench.add_feeder, bench.drop_feeder, bench.run, bench.start, bench.preflight
    FROM PUBLIC;
