-- Functions. Those that start work are for whoever is granted them.

CREATE FUNCTION bench.load(fixture text, rows bigint DEFAULT NULL, jobs int DEFAULT NULL, options jsonb DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'load_sql_wrapper';
COMMENT ON FUNCTION bench.load IS
'Loads a fixture with parallel background workers, replacing its previous tables, and returns the number of rows written. rows NULL: the fixture''s small default. jobs NULL: as many as processors and free worker slots allow. Options of all fixtures: schema (default bench_data), unlogged, fillfactor, tablespace, index_tablespace, reloptions (an object of storage parameters), adopt (true: replace your own tables of these names that are no fixture), index (after or before: build the primary key after or before the rows). pk: info (md5, short or now), crt_time (timestamp or timestamptz). wide_multi: tables (one per client). tpcb, with the tables of pgbench -i: scale (100000 accounts each), partitions and partition_method (range or hash) of pgbench_accounts, foreign_keys. orders, nine tables derived from TPC-C: warehouses (100000 stocks each), partitions and partition_method of all tables but item by warehouse, foreign_keys. With Citus: shard_count, shard_replication_factor, colocate_with and distribute (pk, events, shards: true, by id, the default of shards; orders: true, by warehouse, with item as a reference table; tpcb: account, accounts and history by account, tellers and branches by their own ids, or branch, all tables by branch and co-located). The workers commit on their own: rolling back the calling transaction does not undo the load. If a load fails, the previous tables stay. Rows are frozen, as by COPY FREEZE: transactions older than the load see them, too.';

CREATE FUNCTION bench.create_fixture(name text, ddl text, rows_query text, after_ddl text DEFAULT NULL, rows bigint DEFAULT 1000000)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'create_fixture_wrapper';
COMMENT ON FUNCTION bench.create_fixture IS
'Defines a fixture, or replaces your own of this name. ddl creates its tables with unqualified names, one of them named like the fixture. rows_query is a SELECT that returns that table''s rows with the ids $1 to $2. after_ddl runs after the rows are loaded: create indexes there. rows is the default number of ids for bench.load. The statements run with the privileges of the role that loads the fixture, not of the role that defined it. Built-in fixtures cannot be replaced.';

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
'Stores a script under a name, or replaces your own of this name. Scripts use pgbench''s language: SQL statements, :variables and meta commands. Built-in workloads cannot be replaced.';

CREATE FUNCTION bench.drop_workload(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_workload_wrapper';
COMMENT ON FUNCTION bench.drop_workload IS 'Removes a workload. Built-in workloads cannot be removed.';

CREATE FUNCTION bench.add_feeder(workload text, query text, prefix text DEFAULT '', pick text DEFAULT 'random', once boolean DEFAULT false, max_rows int DEFAULT 100000)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'add_feeder_wrapper';
COMMENT ON FUNCTION bench.add_feeder IS
'Gives a workload of your own a feeder, or replaces its feeder of this prefix: a SELECT whose columns become variables of the script, named prefix and column; each transaction takes one row. Before a run the rows are read once, as the role that runs the workload. pick: random, sequence (each row once over all clients, then from the beginning) or weighted (as often as column weight says). once: with sequence, the run ends when each row has been taken. max_rows: rows to keep at most; of more, a random choice of this size is kept.';

CREATE FUNCTION bench.drop_feeder(workload text, prefix text DEFAULT '')
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_feeder_wrapper';
COMMENT ON FUNCTION bench.drop_feeder IS 'Removes the feeder of a prefix from a workload.';

CREATE FUNCTION bench.preview(script text, transactions int DEFAULT 1, client int DEFAULT 0, seed bigint DEFAULT 0, variables jsonb DEFAULT '{}', workload text DEFAULT NULL)
    RETURNS TABLE (transaction int, command int, line int, output text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION bench.preview IS
'Shows what a client would send, without sending it: each statement with its values, and the output of debug(). transaction and command count from 1. client and seed determine the random numbers, as in pgbench --random-seed with one thread per client. Variables that \gset and \aset would set are shown as written. workload: use the feeders of this workload, and its script if script is NULL.';

CREATE FUNCTION bench.run(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_run_wrapper';
COMMENT ON FUNCTION bench.run IS
'Runs a workload in concurrent sessions of the calling role or of another one, waits for the run to end, and returns its id. clients: number of sessions. secs: measured seconds, after the warm-up (10 if neither secs nor transactions is given). warmup: seconds to run before measuring; NULL: until throughput is steady, at most 300 seconds. transactions: transactions per client, instead of secs. rate: target transactions per second over all clients; latencies then count from the scheduled start. latency_limit: milliseconds; slower transactions count as late, and with a rate, transactions that can no longer meet it are skipped. max_tries: tries per transaction after serialization failures and deadlocks; 0: no limit. seed NULL: a random one, which is recorded. variables: script variables, as pgbench -D. settings: configuration parameters of every client. sample_interval: seconds of each sample; NULL: 0.25 below 30 secs, 0.5 below 60, else 1. query_mode: simple, extended or prepared, as pgbench -M. results: serialize converts rows to text as for a client; discard ignores them. nodes: local, workers or all nodes of a Citus cluster. script: a script to run instead of a workload. before: what to do before the run, as in bench.sweep. log_rate: share of the transactions to log in bench.transactions. exit_on_abort: end the run as soon as an error ends a client. continue_on_error: an error of a statement fails its transaction and not the client. driver: engine executes transactions inside the server; wire sends them over connections to its Unix-domain socket, which jobs workers share (NULL: half of the processors). target: with wire, a foreign server to connect to; NULL: this server and database. reconnect: with wire, a connection for each transaction, as pgbench -C. on_disconnect: with wire, what a client does that loses its connection: end, or reconnect. run_as: the role whose sessions the clients are, which you must be able to SET ROLE to; NULL: your own, and for a capture the roles that executed its statements. Canceling the call stops the run; results up to then are kept.';

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
'Returns what would spoil a run with these arguments if it started now, without starting it or loading anything: other load, checkpoints under way or due, vacuums, locks and dead rows of the fixture''s tables, bloat, old transactions and replication slots, settings without durability, swapping, frequency governors. No rows: nothing was found. Takes a quarter of a second. Fails with the error that the run would fail with before it starts. topic: one word. severity: warning or notice, as in bench.findings. advice: what to do. What the calling role may not see is left out. bench.run tells the certain ones as NOTICEs, and with 10 s or more also what others do.';

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
COMMENT ON FUNCTION bench_internal.status_of IS 'Status of a run: crashed if its coordinator is gone without having recorded the end.';

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
'Returns a percentile of a run''s latencies in milliseconds, within 1 %. percentile is a fraction, as in percentile_cont: 0.99 for the 99th percentile. The value at rank percentile * (n - 1), counted from 0, is interpolated between its neighbors, assuming that latencies are spread evenly within a bucket. HdrHistogram returns the upper end of the bucket at rank ceil(percentile * n), counted from 1, which is higher by at most one bucket. NULL if the run has no histogram.';

CREATE FUNCTION bench.findings(run_id bigint)
    RETURNS TABLE (severity text, topic text, finding text, figures jsonb, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'findings_wrapper';
COMMENT ON FUNCTION bench.findings IS
'Returns findings about a run, the most severe first: dips in throughput and their causes, a warm-up that was too short, drift, processors and quotas, vacuums, plans. severity: critical (the figures are misleading), warning (something made them worse or less steady) or notice. advice: what to try. A clean run has no findings.';

CREATE FUNCTION bench.report(run_id bigint, format text DEFAULT 'text')
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'report_wrapper';
COMMENT ON FUNCTION bench.report IS
'Returns a report of a run. format: text (100 columns), markdown, json (schema_version names its schema; fields are added, never changed) or html (one file with plots, without network access or scripts); for other programs: bmf (Bencher), github-bigger and github-smaller (github-action-benchmark), otava (Apache Otava), openmetrics (Prometheus): psql -XAtc "SELECT bench.report(1, ''html'')" > report.html';

CREATE FUNCTION bench.help(name text DEFAULT NULL)
    RETURNS SETOF text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'help_wrapper';
COMMENT ON FUNCTION bench.help IS
'Lists the functions of schema bench by group, one sentence each; with a name, shows one function with its arguments and an example.';

CREATE FUNCTION bench.version()
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'version_wrapper';
COMMENT ON FUNCTION bench.version IS
'Returns the version of the library that this session has loaded, the PostgreSQL version that it was built for, and a hash of its sources: equal hashes are equal sources';

REVOKE ALL ON FUNCTION
    bench.load, bench.unload, bench.create_fixture, bench.drop_fixture, bench.create_workload, bench.drop_workload, bench.add_feeder, bench.drop_feeder, bench.run, bench.start, bench.preflight
    FROM PUBLIC;
