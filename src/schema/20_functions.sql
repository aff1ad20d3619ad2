-- Functions. Those that start work are for whoever is granted them.

CREATE FUNCTION bench.load(fixture text, rows bigint DEFAULT NULL, jobs int DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'load_sql_wrapper';
COMMENT ON FUNCTION bench.load IS
'Loads a fixture''s tables with background workers, in place of what it had, and returns the number of rows written. rows NULL: the fixture''s small default; jobs NULL: as many as processors and free worker slots allow. Options: schema (default bench_data), unlogged, fillfactor, tablespace, index_tablespace, reloptions (an object of storage parameters), index (after the load, or before it); of pk: info (md5, short or now) and crt_time (timestamp or timestamptz); of wide_multi: tables, one for each client; of tpcb, whose tables are those of pgbench -i: scale (100000 rows each, the accounts), partitions and partition_method (range or hash) of pgbench_accounts, foreign_keys; of what Citus can distribute: distribute (of pk, events and shards: true, by id, which is the default of shards; of tpcb: account, with accounts and history by account, tellers and branches by their own ids, or branch, with all by branch and co-located) and shard_count. The workers commit by themselves: a ROLLBACK of the caller does not undo the load. A load that fails leaves the previous fixture as it was. The rows are frozen from the start, as after COPY with FREEZE: transactions that are older than the load see them as well.';

CREATE FUNCTION bench.create_fixture(name text, ddl text, rows_query text, after_ddl text DEFAULT NULL, rows bigint DEFAULT 1000000)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'create_fixture_wrapper';
COMMENT ON FUNCTION bench.create_fixture IS
'Defines a fixture, in place of the owner''s own older one. ddl makes its tables, one of them called as the fixture, without a schema; rows_query is a SELECT of that table''s rows with the ids $1 to $2; after_ddl comes after the rows, for indexes; rows is how many ids bench.load takes when it is not told. The statements run as the role that loads, not as the one that has defined them. Built-in fixtures cannot be replaced.';

CREATE FUNCTION bench.drop_fixture(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_fixture_wrapper';
COMMENT ON FUNCTION bench.drop_fixture IS 'Removes a definition that bench.create_fixture has made; bench.unload drops the tables.';

CREATE FUNCTION bench_internal.builtin_fixtures()
    RETURNS TABLE (name text, ddl text, rows_query text, after_ddl text, rows bigint)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'builtin_fixtures_wrapper';
COMMENT ON FUNCTION bench_internal.builtin_fixtures IS 'What the built-in fixtures are made of; read bench.fixture_definitions.';

CREATE FUNCTION bench.unload(fixture text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'unload_wrapper';
COMMENT ON FUNCTION bench.unload IS 'Drops a loaded fixture''s tables.';

CREATE FUNCTION bench.create_workload(name text, script text, fixture text DEFAULT NULL, description text DEFAULT NULL)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'create_workload_wrapper';
COMMENT ON FUNCTION bench.create_workload IS
'Stores a script under a name, in place of the owner''s own older one. Scripts are in pgbench''s language: SQL statements, :variables and meta commands. Built-in workloads cannot be replaced.';

CREATE FUNCTION bench.drop_workload(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_workload_wrapper';
COMMENT ON FUNCTION bench.drop_workload IS 'Removes a workload; built-in ones stay.';

CREATE FUNCTION bench.preview(script text, transactions int DEFAULT 1, client int DEFAULT 0, seed bigint DEFAULT 0, variables jsonb DEFAULT '{}')
    RETURNS TABLE (transaction int, command int, line int, output text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION bench.preview IS
'Shows what a client would do with a script, without a server: each statement with its values, and what debug() prints. transaction and command count from 1. client and seed choose the random numbers, as pgbench --random-seed with a thread for each client; what \gset and \aset would set stays as it is written.';

CREATE FUNCTION bench.run(
    workload        text,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT 1,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'run_wrapper';
COMMENT ON FUNCTION bench.run IS
'Runs a workload with that many concurrent sessions of the calling role, waits for it, and returns the run''s id. secs: measured seconds after warmup seconds (10 if neither secs nor transactions is given); transactions: per client, instead of secs; max_tries: tries per transaction at a serialization failure or deadlock, 0 for no limit; seed NULL: a random one, recorded; rate: transactions per second to be started over all clients, whether or not those before have ended, with latencies counted from when they were due; latency_limit: milliseconds above which a transaction is late, or skipped under a rate if it cannot make it any more; query_mode: simple, extended or prepared, as pgbench -M; variables: script variables, as pgbench -D; settings: configuration parameters of every client; sample_interval: seconds; results: serialize turns rows into text as for a client, discard does not look at them. Canceling the call stops the run; what was measured stays.';

CREATE FUNCTION bench.start(
    workload        text,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT 1,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_wrapper';
COMMENT ON FUNCTION bench.start IS
'Starts a run as bench.run does and returns its id at once; the run goes on without the session. See bench.wait, bench.stop and bench.progress.';

CREATE FUNCTION bench.wait(run_id bigint, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_wrapper';
COMMENT ON FUNCTION bench.wait IS
'Waits until a run has ended, timeout seconds at most (NULL: however long), and returns its status. Ending the wait changes nothing about the run.';

CREATE FUNCTION bench.stop(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'stop_wrapper';
COMMENT ON FUNCTION bench.stop IS
'Ends a run within a second; what was measured stays. False when it was not under way. For roles with the privileges of the run''s role or of pg_signal_backend.';

CREATE FUNCTION bench_internal.status_of(status text, segment bigint, run_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_of_wrapper';
COMMENT ON FUNCTION bench_internal.status_of IS 'A run''s status: crashed where its coordinator is gone and could not write down the end.';

CREATE FUNCTION bench_internal.run_progress(segment bigint, run_id bigint)
    RETURNS TABLE (phase text, elapsed double precision, remaining double precision, tps double precision,
                   latency_avg_ms double precision, transactions bigint, clients int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'run_progress_wrapper';
COMMENT ON FUNCTION bench_internal.run_progress IS 'Where a run under way stands; read bench.progress.';

CREATE FUNCTION bench_internal.load_progress(segment bigint, load_id bigint)
    RETURNS TABLE (phase text, elapsed double precision, remaining double precision, rows bigint, rows_per_sec double precision,
                   loaders int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'load_progress_wrapper';
COMMENT ON FUNCTION bench_internal.load_progress IS 'Where a load under way stands; read bench.progress.';

CREATE FUNCTION bench.percentile(run_id bigint, p double precision)
    RETURNS double precision VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'percentile_wrapper';
COMMENT ON FUNCTION bench.percentile IS
'A percentile of a run''s latencies in milliseconds, within 1 %; p is a fraction, as in percentile_cont: 0.99 for the 99th. The rank p * (n - 1) from 0 is interpolated between its neighbours, the latencies of a bucket lying evenly in it; HdrHistogram tells the upper end of the bucket that has rank ceil(p * n) from 1, which is higher by up to a bucket. NULL when the run has no histogram.';

CREATE FUNCTION bench.findings(run_id bigint)
    RETURNS TABLE (severity text, topic text, finding text, figures jsonb, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'findings_wrapper';
COMMENT ON FUNCTION bench.findings IS
'What there is to say of a run, the gravest first: dips and what coincides with them, a warm-up that was not over, drift, processors and quotas, vacuums, plans. severity is critical (the figures are not what they seem), warning (something kept them from being better or steadier) or notice; advice is what to try. No rows for a clean run.';

CREATE FUNCTION bench.report(run_id bigint, format text DEFAULT 'text')
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'report_wrapper';
COMMENT ON FUNCTION bench.report IS
'A report of a run: text (100 columns), markdown, json (schema_version says which schema; fields are added, not changed) or html (one file with plots that needs no network and no script): psql -XAtc "SELECT bench.report(1, ''html'')" > report.html';

REVOKE ALL ON FUNCTION
    bench.load, bench.unload, bench.create_fixture, bench.drop_fixture, bench.create_workload, bench.drop_workload, bench.run, bench.start
    FROM PUBLIC;
