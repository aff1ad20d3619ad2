\echo Use "CREATE EXTENSION pgbench_ext" to load this file. \quit
-- Tables and their grants. Users read; only the extension's own functions, which check who is
-- asking, and the recorder, which is a superuser's background worker, write.

-- The owner of a schema can drop and rename what is in it: it has to be the one who installs.
DO $$
BEGIN
    IF (SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'bench') <> current_user::regrole THEN
        RAISE insufficient_privilege
            USING MESSAGE = 'schema "bench" exists and belongs to another role',
                  HINT = 'Drop or rename it, or ALTER SCHEMA bench OWNER TO CURRENT_USER.';
    END IF;
END $$;

GRANT USAGE ON SCHEMA bench TO PUBLIC;
COMMENT ON SCHEMA bench IS 'pgbench_ext: benchmarks from inside the server';

CREATE TABLE bench.workloads (
    name        text PRIMARY KEY,
    owner       text NOT NULL,
    fixture     text,
    script      text NOT NULL,
    description text,
    builtin     boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE bench.workloads IS 'Workloads: scripts that clients run, a transaction at a time. Written by bench.create_workload and bench.drop_workload.';
COMMENT ON COLUMN bench.workloads.name IS 'What bench.run is given';
COMMENT ON COLUMN bench.workloads.owner IS 'Name of the role that may replace and drop it, with its members and superusers';
COMMENT ON COLUMN bench.workloads.fixture IS 'The fixture whose tables it works on; NULL: none of the extension''s';
COMMENT ON COLUMN bench.workloads.script IS 'The script, in pgbench''s language';
COMMENT ON COLUMN bench.workloads.description IS 'What one transaction does';
COMMENT ON COLUMN bench.workloads.builtin IS 'Whether it comes with the extension: then it cannot be replaced or dropped';

CREATE TABLE bench.fixtures (
    name         text NOT NULL,
    owner        text NOT NULL,
    schema       text NOT NULL,
    relations    regclass[] NOT NULL,
    rows         bigint NOT NULL,
    options      jsonb NOT NULL,
    loaded_at    timestamptz NOT NULL,
    load_secs    double precision NOT NULL,
    rows_per_sec double precision,
    table_bytes  bigint,
    index_bytes  bigint,
    index_levels int,
    key_correlation real,
    index_secs   double precision,
    vacuum_secs  double precision,
    rows_query   text,
    PRIMARY KEY (schema, name)
);
COMMENT ON TABLE bench.fixtures IS 'Loaded fixtures: tables that workloads work on. Written by bench.load and bench.unload.';
COMMENT ON COLUMN bench.fixtures.name IS 'Name of the fixture';
COMMENT ON COLUMN bench.fixtures.owner IS 'Name of the role that loaded it';
COMMENT ON COLUMN bench.fixtures.schema IS 'Schema of its tables; clients have it first in their search_path';
COMMENT ON COLUMN bench.fixtures.relations IS 'Its tables; a number stands for one that was dropped since';
COMMENT ON COLUMN bench.fixtures.rows IS 'Rows loaded: ids are 1 to this; the script variable of this name';
COMMENT ON COLUMN bench.fixtures.options IS 'Options as given to bench.load';
COMMENT ON COLUMN bench.fixtures.loaded_at IS 'When the load had ended';
COMMENT ON COLUMN bench.fixtures.load_secs IS 'Seconds spent on writing the rows, and on distributing them over the shards of a Citus cluster, without what came after that';
COMMENT ON COLUMN bench.fixtures.rows_per_sec IS 'Rows written per second, without what came after them';
COMMENT ON COLUMN bench.fixtures.table_bytes IS 'Bytes of the tables after the load, maps and TOAST included; of all shards where they are distributed';
COMMENT ON COLUMN bench.fixtures.index_bytes IS 'Bytes of the indexes after the load';
COMMENT ON COLUMN bench.fixtures.index_levels IS 'Levels of the largest table''s primary key, its root and its leaves among them: one more than level of pageinspect''s bt_metap; NULL where it is distributed';
COMMENT ON COLUMN bench.fixtures.key_correlation IS 'Correlation of that key''s values with their place in the table, as in pg_stats: several jobs write side by side';
COMMENT ON COLUMN bench.fixtures.index_secs IS 'Seconds spent on indexes';
COMMENT ON COLUMN bench.fixtures.vacuum_secs IS 'Seconds spent on VACUUM and ANALYZE';
COMMENT ON COLUMN bench.fixtures.rows_query IS 'The SELECT that defines the rows of the ids $1 to $2';

CREATE TABLE bench.custom_fixtures (
    name       text PRIMARY KEY,
    owner      text NOT NULL,
    ddl        text NOT NULL,
    rows_query text NOT NULL,
    after_ddl  text,
    rows       bigint NOT NULL
);
COMMENT ON TABLE bench.custom_fixtures IS 'Fixtures that users have defined; read bench.fixture_definitions. Written by bench.create_fixture and bench.drop_fixture.';

CREATE SEQUENCE bench.load_id_seq;
COMMENT ON SEQUENCE bench.load_id_seq IS 'Ids of loads';

CREATE TABLE bench.load_log (
    load_id    bigint PRIMARY KEY,
    fixture    text NOT NULL,
    schema     text NOT NULL,
    role       text NOT NULL,
    segment    bigint NOT NULL,
    UNIQUE (schema, fixture)
);
ALTER SEQUENCE bench.load_id_seq OWNED BY bench.load_log.load_id;
COMMENT ON TABLE bench.load_log IS 'Loads under way, each with a schema bench_loading_ and its id that its tables are made in; read bench.progress. What a crash has left here, and of such schemas, is removed by the next load.';

-- No foreign keys between the tables of results: only the recorder writes them, and a parallel
-- restore of an extension's tables does not know their order.
CREATE SEQUENCE bench.run_id_seq;

CREATE TABLE bench.run_log (
    run_id            bigint PRIMARY KEY DEFAULT nextval('bench.run_id_seq'),
    sweep_id          bigint,
    workload          text NOT NULL,
    fixture           text,
    fixture_rows      bigint[],
    fixture_options   jsonb,
    script            text NOT NULL,
    clients           int NOT NULL,
    secs              double precision,
    transactions      bigint,
    warmup            double precision NOT NULL,
    max_tries         int NOT NULL,
    rate              double precision,
    latency_limit     double precision,
    seed              bigint NOT NULL,
    driver            text NOT NULL DEFAULT 'engine',
    query_mode        text NOT NULL DEFAULT 'prepared',
    results           text NOT NULL,
    nodes             text NOT NULL DEFAULT 'local',
    variables         jsonb NOT NULL,
    settings          jsonb NOT NULL,
    system            jsonb NOT NULL DEFAULT '{}',
    sample_interval   double precision NOT NULL,
    tags              jsonb NOT NULL,
    status            text NOT NULL CHECK (status IN ('starting', 'running', 'completed', 'incomplete', 'canceled', 'failed', 'crashed')),
    started_at        timestamptz,
    finished_at       timestamptz,
    role              text NOT NULL,
    error             jsonb,
    horizon_held      boolean NOT NULL,
    server_version    text NOT NULL DEFAULT current_setting('server_version'),
    extension_version text NOT NULL,
    environment       jsonb NOT NULL DEFAULT '{}',
    segment           bigint NOT NULL,
    coordinator_pid   int NOT NULL,
    latency_avg_ms    double precision,
    latency_stddev_ms double precision,
    latency_p50_ms    double precision,
    latency_p95_ms    double precision,
    latency_p99_ms    double precision,
    latency_p999_ms   double precision,
    latency_max_ms    double precision,
    lag_avg_ms        double precision,
    lag_max_ms        double precision,
    backlog           bigint,
    origin            jsonb,
    part_of           jsonb
);
-- A role has a run of another server once.
CREATE UNIQUE INDEX run_log_origin_key ON bench.run_log
    (role, (origin -> 'system_identifier'), (origin -> 'database'), (origin -> 'run_id'), (origin -> 'started_at')) WHERE origin IS NOT NULL;
ALTER SEQUENCE bench.run_id_seq OWNED BY bench.run_log.run_id;
COMMENT ON SEQUENCE bench.run_id_seq IS 'Ids of runs';
COMMENT ON TABLE bench.run_log IS 'What the recorder writes of each run; read bench.runs and bench.summary';

CREATE TABLE bench.samples (
    run_id            bigint NOT NULL,
    node              int NOT NULL DEFAULT 0,
    elapsed           double precision NOT NULL,
    secs              double precision NOT NULL,
    at                timestamptz NOT NULL,
    clients           int NOT NULL,
    transactions      bigint NOT NULL,
    tps               double precision NOT NULL,
    failed            bigint NOT NULL,
    retried           bigint NOT NULL,
    skipped           bigint NOT NULL DEFAULT 0,
    late              bigint NOT NULL DEFAULT 0,
    latency_avg_ms    double precision,
    latency_stddev_ms double precision,
    latency_p50_ms    double precision,
    latency_p95_ms    double precision,
    latency_p99_ms    double precision,
    latency_max_ms    double precision,
    lag_avg_ms        double precision,
    wal_bytes         bigint,
    wal_records       bigint,
    wal_fpi           bigint,
    wal_buffers_full  bigint,
    checkpoints       int,
    buffers_checkpoint bigint,
    buffers_clean     bigint,
    buffers_backend   bigint,
    blks_hit          bigint,
    blks_read         bigint,
    temp_files        bigint,
    temp_bytes        bigint,
    cpu_user          double precision,
    cpu_system        double precision,
    cpu_iowait        double precision,
    cpu_steal         double precision,
    cpu_idle          double precision,
    memory_available_bytes bigint,
    memory_dirty_bytes bigint,
    disk_read_bytes   bigint,
    disk_written_bytes bigint,
    throttled_secs    double precision,
    waits             jsonb,
    PRIMARY KEY (run_id, node, elapsed)
);
COMMENT ON TABLE bench.samples IS 'One row per run, node and measured interval, for everybody to read. A transaction belongs to the interval in which it ended, by its own client''s clock.';
CREATE TABLE bench.warmup_samples (LIKE bench.samples INCLUDING ALL);
COMMENT ON TABLE bench.warmup_samples IS 'The same as bench.samples, of the warm-up: elapsed counts from its begin';

CREATE TABLE bench.latencies (
    run_id  bigint NOT NULL,
    node    int NOT NULL DEFAULT 0,
    script  int NOT NULL,
    low_ms  double precision NOT NULL,
    high_ms double precision NOT NULL,
    count   bigint NOT NULL,
    PRIMARY KEY (run_id, node, script, low_ms)
);
COMMENT ON TABLE bench.latencies IS 'Histogram of the latencies of a run''s measured transactions: one row per run, node, script and bucket that is not empty. A bucket is at most 1 % wide.';
COMMENT ON COLUMN bench.latencies.run_id IS 'The run';
COMMENT ON COLUMN bench.latencies.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.latencies.script IS 'Index of the script in a mix, from 0';
COMMENT ON COLUMN bench.latencies.low_ms IS 'Lower bound of the bucket in milliseconds, inclusive';
COMMENT ON COLUMN bench.latencies.high_ms IS 'Upper bound of the bucket in milliseconds, exclusive';
COMMENT ON COLUMN bench.latencies.count IS 'Transactions in the bucket';

CREATE TABLE bench.error_log (
    run_id   bigint NOT NULL,
    node     int NOT NULL DEFAULT 0,
    sqlstate text NOT NULL,
    message  text NOT NULL,
    detail   text,
    count    bigint NOT NULL,
    retried  bigint NOT NULL,
    failed   bigint NOT NULL,
    first_at timestamptz,
    PRIMARY KEY (run_id, node, sqlstate)
);
COMMENT ON TABLE bench.error_log IS 'What the recorder writes of each run''s errors; read bench.errors';

CREATE TABLE bench.script_log (
    run_id            bigint NOT NULL,
    node              int NOT NULL DEFAULT 0,
    script            int NOT NULL,
    workload          text NOT NULL,
    weight            int NOT NULL,
    fixture           text,
    transactions      bigint NOT NULL,
    failed            bigint NOT NULL,
    retried           bigint NOT NULL,
    skipped           bigint NOT NULL,
    late              bigint NOT NULL,
    latency_avg_ms    double precision,
    latency_stddev_ms double precision,
    latency_p50_ms    double precision,
    latency_p95_ms    double precision,
    latency_p99_ms    double precision,
    latency_max_ms    double precision,
    PRIMARY KEY (run_id, node, script)
);
COMMENT ON TABLE bench.script_log IS 'What the recorder writes of each run''s scripts; read bench.scripts';

CREATE TABLE bench.statement_log (
    run_id         bigint NOT NULL,
    node           int NOT NULL DEFAULT 0,
    script         int NOT NULL,
    command        int NOT NULL,
    line           int NOT NULL,
    statement      text NOT NULL,
    count          bigint NOT NULL,
    failed         bigint NOT NULL,
    retried        bigint NOT NULL,
    latency_avg_ms double precision,
    latency_p95_ms double precision,
    plan           text,
    generic_plans  bigint NOT NULL,
    custom_plans   bigint NOT NULL,
    plan_changes   bigint NOT NULL,
    workers_planned bigint NOT NULL,
    workers_launched bigint NOT NULL,
    PRIMARY KEY (run_id, node, script, command)
);
COMMENT ON TABLE bench.statement_log IS 'What the recorder writes of each run''s commands; read bench.statements';

CREATE TABLE bench.wait_log (
    run_id          bigint NOT NULL,
    node            int NOT NULL DEFAULT 0,
    wait_event_type text NOT NULL,
    wait_event      text NOT NULL,
    share           double precision NOT NULL,
    PRIMARY KEY (run_id, node, wait_event_type, wait_event)
);
COMMENT ON TABLE bench.wait_log IS 'What the recorder writes of each run''s waits; read bench.waits';

CREATE TABLE bench.event_log (
    run_id   bigint NOT NULL,
    node     int NOT NULL DEFAULT 0,
    event    int NOT NULL,
    kind     text NOT NULL,
    relation text,
    detail   text,
    started  double precision NOT NULL,
    ended    double precision,
    PRIMARY KEY (run_id, node, event)
);
COMMENT ON TABLE bench.event_log IS 'What the recorder writes of checkpoints and vacuums during each run; read bench.events';

-- Not a table of results: the shape in which the recorder reads a relation.
CREATE TYPE bench.relation_reading AS (
    oid bigint, relation text, kind text, bytes bigint, live bigint, dead bigint, inserted bigint, updated bigint, hot_updated bigint,
    deleted bigint, mod_since_analyze bigint, seq_scan bigint, seq_tup_read bigint, idx_scan bigint,
    vacuums bigint, autovacuums bigint, analyzes bigint, autoanalyzes bigint,
    last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz
);
COMMENT ON TYPE bench.relation_reading IS 'A table or an index as the recorder reads it before and after a run';

CREATE TABLE bench.relation_log (
    run_id            bigint NOT NULL,
    node              int NOT NULL DEFAULT 0,
    relation          text NOT NULL,
    kind              text NOT NULL,
    bytes_before      bigint,
    bytes_after       bigint,
    live_before       bigint,
    live              bigint,
    dead_before       bigint,
    dead              bigint,
    inserted          bigint,
    updated           bigint,
    hot_updated       bigint,
    deleted           bigint,
    mod_since_analyze bigint,
    seq_scan          bigint,
    seq_tup_read      bigint,
    idx_scan          bigint,
    vacuums           bigint,
    autovacuums       bigint,
    analyzes          bigint,
    autoanalyzes      bigint,
    last_vacuum       timestamptz,
    last_autovacuum   timestamptz,
    last_analyze      timestamptz,
    last_autoanalyze  timestamptz,
    PRIMARY KEY (run_id, node, relation)
);
COMMENT ON TABLE bench.relation_log IS 'What the recorder writes of each run''s tables and indexes; read bench.relations';

CREATE TABLE bench.audit_log (
    run_id  bigint NOT NULL,
    node    int NOT NULL DEFAULT 0,
    counter text NOT NULL,
    harness bigint,
    server  bigint,
    judged  boolean NOT NULL,
    reason  text NOT NULL,
    PRIMARY KEY (run_id, node, counter)
);
COMMENT ON TABLE bench.audit_log IS 'What the recorder writes of each run''s audit; read bench.audit(run_id)';

CREATE TABLE bench.node_log (
    run_id            bigint NOT NULL,
    node              int NOT NULL,
    name              text NOT NULL,
    is_coordinator    boolean NOT NULL,
    clients           int NOT NULL,
    status            text,
    error             jsonb,
    start_offset_ms   double precision,
    clock_offset_ms   double precision,
    clock_error_ms    double precision,
    secs              double precision,
    transactions      bigint,
    failed            bigint,
    retried           bigint,
    latency_avg_ms    double precision,
    latency_stddev_ms double precision,
    latency_p50_ms    double precision,
    latency_p95_ms    double precision,
    latency_p99_ms    double precision,
    latency_p999_ms   double precision,
    latency_max_ms    double precision,
    lag_avg_ms        double precision,
    lag_max_ms        double precision,
    backlog           bigint,
    environment       jsonb,
    processors        int,
    cpu_user          double precision,
    cpu_system        double precision,
    cpu_iowait        double precision,
    cpu_steal         double precision,
    cpu_idle          double precision,
    prepared          bigint,
    connections_opened bigint,
    connections_reused bigint,
    prepared_left     bigint,
    settings          jsonb,
    PRIMARY KEY (run_id, node)
);
COMMENT ON TABLE bench.node_log IS 'What the recorder writes of the nodes of the Citus cluster that a run was on; read bench.nodes';

CREATE SEQUENCE bench.sweep_id_seq;
COMMENT ON SEQUENCE bench.sweep_id_seq IS 'Ids of sweeps';

CREATE TABLE bench.sweep_log (
    sweep_id          bigint PRIMARY KEY DEFAULT nextval('bench.sweep_id_seq'),
    options           jsonb NOT NULL,
    status            text NOT NULL CHECK (status IN ('running', 'completed', 'incomplete', 'canceled', 'failed')),
    started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    resumed_at        timestamptz,
    finished_at       timestamptz,
    role              text NOT NULL,
    error             jsonb,
    server_version    text NOT NULL DEFAULT current_setting('server_version'),
    extension_version text NOT NULL,
    segment           bigint NOT NULL,
    system_settings   jsonb
);
ALTER SEQUENCE bench.sweep_id_seq OWNED BY bench.sweep_log.sweep_id;
COMMENT ON TABLE bench.sweep_log IS 'What is kept of each sweep; read bench.sweeps';
COMMENT ON COLUMN bench.sweep_log.system_settings IS 'What postgresql.auto.conf had for the parameters that the sweep is about to set there, null for none; NULL when it has them again';

CREATE TABLE bench.sweep_run_log (
    sweep_id bigint NOT NULL,
    place    int NOT NULL,
    round    int NOT NULL,
    variant  text NOT NULL,
    clients  int NOT NULL,
    run_id   bigint,
    error    text,
    PRIMARY KEY (sweep_id, place)
);
COMMENT ON TABLE bench.sweep_run_log IS 'The runs that each sweep is to make, in their order; read bench.sweep_runs';

DO $$
DECLARE
    relation regclass;
BEGIN
    FOREACH relation IN ARRAY '{bench.samples,bench.warmup_samples}'::regclass[] LOOP
        EXECUTE format('COMMENT ON COLUMN %s.run_id IS %L', relation, 'The run');
        EXECUTE format('COMMENT ON COLUMN %s.node IS %L', relation, 'Citus'' number for the node; 0: the only one that clients ran on');
        EXECUTE format('COMMENT ON COLUMN %s.elapsed IS %L', relation, 'End of the interval, in seconds since the phase began');
        EXECUTE format('COMMENT ON COLUMN %s.secs IS %L', relation, 'True length of the interval in seconds');
        EXECUTE format('COMMENT ON COLUMN %s.at IS %L', relation, 'End of the interval');
        EXECUTE format('COMMENT ON COLUMN %s.clients IS %L', relation, 'Clients at work in the interval');
        EXECUTE format('COMMENT ON COLUMN %s.transactions IS %L', relation, 'Transactions committed in the interval');
        EXECUTE format('COMMENT ON COLUMN %s.tps IS %L', relation, 'transactions / secs');
        EXECUTE format('COMMENT ON COLUMN %s.failed IS %L', relation, 'Transactions given up after an error, or after max_tries serialization failures and deadlocks');
        EXECUTE format('COMMENT ON COLUMN %s.retried IS %L', relation, 'Transactions that took more than one try');
        EXECUTE format('COMMENT ON COLUMN %s.skipped IS %L', relation, 'Transactions not started, under a rate, because they would have been above the latency_limit');
        EXECUTE format('COMMENT ON COLUMN %s.late IS %L', relation, 'Committed transactions above the latency_limit');
        EXECUTE format('COMMENT ON COLUMN %s.latency_avg_ms IS %L', relation, 'Mean latency of committed transactions in milliseconds, retries included; under a rate since they were due');
        EXECUTE format('COMMENT ON COLUMN %s.latency_stddev_ms IS %L', relation, 'Standard deviation of the latency in milliseconds');
        EXECUTE format('COMMENT ON COLUMN %s.latency_p50_ms IS %L', relation, 'Median latency in milliseconds, within 1 %');
        EXECUTE format('COMMENT ON COLUMN %s.latency_p95_ms IS %L', relation, '95th percentile of the latency in milliseconds, within 1 %');
        EXECUTE format('COMMENT ON COLUMN %s.latency_p99_ms IS %L', relation, '99th percentile of the latency in milliseconds, within 1 %');
        EXECUTE format('COMMENT ON COLUMN %s.latency_max_ms IS %L', relation, 'Greatest latency in milliseconds');
        EXECUTE format('COMMENT ON COLUMN %s.lag_avg_ms IS %L', relation, 'Mean delay of the start behind the schedule under a rate, in milliseconds; it is part of the latency');
        EXECUTE format('COMMENT ON COLUMN %s.wal_bytes IS %L', relation, 'Bytes of WAL that the whole server generated, as pg_stat_wal: sessions report theirs once a second at most. This column and those after it are NULL where the interval was not observed');
        EXECUTE format('COMMENT ON COLUMN %s.wal_records IS %L', relation, 'WAL records, as wal_bytes');
        EXECUTE format('COMMENT ON COLUMN %s.wal_fpi IS %L', relation, 'Full-page images in the WAL, as wal_bytes');
        EXECUTE format('COMMENT ON COLUMN %s.wal_buffers_full IS %L', relation, 'Times that WAL was written because its buffers were full');
        EXECUTE format('COMMENT ON COLUMN %s.checkpoints IS %L', relation, 'Checkpoints that began in the interval');
        EXECUTE format('COMMENT ON COLUMN %s.buffers_checkpoint IS %L', relation, 'Buffers written by the checkpointer');
        EXECUTE format('COMMENT ON COLUMN %s.buffers_clean IS %L', relation, 'Buffers written by the background writer');
        EXECUTE format('COMMENT ON COLUMN %s.buffers_backend IS %L', relation, 'Buffers that sessions had to write themselves');
        EXECUTE format('COMMENT ON COLUMN %s.blks_hit IS %L', relation, 'Buffers of this database found in shared buffers');
        EXECUTE format('COMMENT ON COLUMN %s.blks_read IS %L', relation, 'Buffers of this database that were not');
        EXECUTE format('COMMENT ON COLUMN %s.temp_files IS %L', relation, 'Temporary files of this database');
        EXECUTE format('COMMENT ON COLUMN %s.temp_bytes IS %L', relation, 'Bytes written to them');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_user IS %L', relation, 'Share of all processors'' time in user mode; NULL, like the others, where the platform does not tell');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_system IS %L', relation, 'Share in the kernel, interrupts included');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_iowait IS %L', relation, 'Share idle while something waited for a disk');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_steal IS %L', relation, 'Share that the hypervisor gave to others');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_idle IS %L', relation, 'Share idle');
        EXECUTE format('COMMENT ON COLUMN %s.memory_available_bytes IS %L', relation, 'Bytes of memory to be had without swapping, at the interval''s end');
        EXECUTE format('COMMENT ON COLUMN %s.memory_dirty_bytes IS %L', relation, 'Bytes written to files and not yet to disk, at the interval''s end');
        EXECUTE format('COMMENT ON COLUMN %s.disk_read_bytes IS %L', relation, 'Bytes that the machine read from disks');
        EXECUTE format('COMMENT ON COLUMN %s.disk_written_bytes IS %L', relation, 'Bytes that the machine wrote to disks');
        EXECUTE format('COMMENT ON COLUMN %s.throttled_secs IS %L', relation, 'Seconds for which the control group''s quota kept the server off the processors');
        EXECUTE format('COMMENT ON COLUMN %s.waits IS %L', relation, 'Share of the clients'' time by wait event, as type:event; CPU: running on a processor, Runnable: waiting for one. They add up to 1');
    END LOOP;
END $$;

GRANT SELECT ON bench.workloads, bench.fixtures, bench.samples, bench.warmup_samples, bench.latencies TO PUBLIC;

-- Results, the users' own workloads and fixtures, and the sequence go into dumps.
SELECT pg_catalog.pg_extension_config_dump('bench.workloads', 'WHERE NOT builtin');
SELECT pg_catalog.pg_extension_config_dump('bench.fixtures', '');
SELECT pg_catalog.pg_extension_config_dump('bench.custom_fixtures', '');
SELECT pg_catalog.pg_extension_config_dump('bench.run_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('bench.run_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.sweep_id_seq', '');
-- What is to be put back into this server's configuration is not to be put into another's.
SELECT pg_catalog.pg_extension_config_dump('bench.sweep_log', 'WHERE system_settings IS NULL');
SELECT pg_catalog.pg_extension_config_dump('bench.sweep_run_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.samples', '');
SELECT pg_catalog.pg_extension_config_dump('bench.warmup_samples', '');
SELECT pg_catalog.pg_extension_config_dump('bench.latencies', '');
SELECT pg_catalog.pg_extension_config_dump('bench.error_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.script_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.statement_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.wait_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.event_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.relation_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.audit_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench.node_log', '');
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

CREATE FUNCTION bench.builtin_fixtures()
    RETURNS TABLE (name text, ddl text, rows_query text, after_ddl text, rows bigint)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'builtin_fixtures_wrapper';
COMMENT ON FUNCTION bench.builtin_fixtures IS 'What the built-in fixtures are made of; read bench.fixture_definitions.';

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
'Ends a run within a second; what was measured stays. False when it was not under way. For members of the run''s role and of pg_signal_backend.';

CREATE FUNCTION bench.status_of(status text, segment bigint, run_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_of_wrapper';
COMMENT ON FUNCTION bench.status_of IS 'A run''s status: crashed where its coordinator is gone and could not write down the end.';

CREATE FUNCTION bench.run_progress(segment bigint, run_id bigint)
    RETURNS TABLE (phase text, elapsed double precision, remaining double precision, tps double precision,
                   latency_avg_ms double precision, transactions bigint, clients int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'run_progress_wrapper';
COMMENT ON FUNCTION bench.run_progress IS 'Where a run under way stands; read bench.progress.';

CREATE FUNCTION bench.load_progress(segment bigint, load_id bigint)
    RETURNS TABLE (phase text, elapsed double precision, remaining double precision, rows bigint, rows_per_sec double precision,
                   loaders int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'load_progress_wrapper';
COMMENT ON FUNCTION bench.load_progress IS 'Where a load under way stands; read bench.progress.';

CREATE FUNCTION bench.percentile(run_id bigint, p double precision)
    RETURNS double precision VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'percentile_wrapper';
COMMENT ON FUNCTION bench.percentile IS
'A percentile of a run''s latencies in milliseconds, within 1 %; p is a fraction, as in percentile_cont: 0.99 for the 99th. NULL when the run has no histogram.';

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
-- Runs that come and go.

CREATE FUNCTION bench.export(run_ids bigint[])
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_wrapper';
COMMENT ON FUNCTION bench.export IS
'Everything that is kept of runs that are over, samples and histograms included, as one document for bench.import; format_version says in which form. For those who may see the runs: psql -XAtc "SELECT bench.export(''{1,2}'')" > runs.json';

CREATE FUNCTION bench.import(document jsonb)
    RETURNS bigint[] VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'import_wrapper';
COMMENT ON FUNCTION bench.import IS
'Takes over the runs of a document that bench.export has made, here or on another server, and returns their ids here in the document''s order. They belong to the calling role, and their column origin in bench.runs says where they come from. All of the document or nothing; a run that the role has imported already is refused.';

CREATE FUNCTION bench.prune(older_than interval)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prune_wrapper';
COMMENT ON FUNCTION bench.prune IS
'Deletes runs with all that was measured of them, and returns how many: those that ended longer ago than older_than, and imported ones that came longer ago; of the roles that the calling role has the privileges of. Never one that is under way.';

REVOKE ALL ON FUNCTION bench.import, bench.prune FROM PUBLIC;
-- Views. Rows of runs and errors are for members of the run's role and of pg_read_all_stats.

CREATE FUNCTION bench.is_visible(role text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE sql
    RETURN pg_has_role(current_user, 'pg_read_all_stats', 'MEMBER')
           OR EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = role AND pg_has_role(current_user, r.oid, 'MEMBER'));
COMMENT ON FUNCTION bench.is_visible IS 'Whether the current role may see the runs of another: is it, is its member, or is a member of pg_read_all_stats.';

CREATE VIEW bench.runs WITH (security_barrier) AS
SELECT run_id, sweep_id, workload, fixture, fixture_rows, fixture_options, script, clients, secs, transactions, warmup, rate, latency_limit, max_tries, seed,
       driver, query_mode, results, nodes, variables, settings, system, sample_interval, tags,
       bench.status_of(status, segment, run_id) AS status, started_at, finished_at, role, error, horizon_held,
       server_version, extension_version, environment, origin, part_of
FROM bench.run_log
WHERE bench.is_visible(role);
COMMENT ON VIEW bench.runs IS 'Runs, as they were asked for and how they ended. Visible to members of the run''s role and of pg_read_all_stats.';
COMMENT ON COLUMN bench.runs.run_id IS 'The run';
COMMENT ON COLUMN bench.runs.sweep_id IS 'The sweep it is part of';
COMMENT ON COLUMN bench.runs.workload IS 'The workload''s name, or the mix as given';
COMMENT ON COLUMN bench.runs.fixture IS 'The fixture it worked on; several are separated by commas';
COMMENT ON COLUMN bench.runs.fixture_rows IS 'Rows that each of these was loaded with';
COMMENT ON COLUMN bench.runs.fixture_options IS 'Options of bench.load that each of these was loaded with; null for one that is not the extension''s own';
COMMENT ON COLUMN bench.runs.script IS 'The script as run; those of a mix each under a comment with its name and weight';
COMMENT ON COLUMN bench.runs.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.runs.secs IS 'Measured seconds asked for';
COMMENT ON COLUMN bench.runs.transactions IS 'Transactions per client asked for';
COMMENT ON COLUMN bench.runs.warmup IS 'Seconds run before the measuring';
COMMENT ON COLUMN bench.runs.rate IS 'Transactions per second that were to be started, over all clients; NULL: each after the other';
COMMENT ON COLUMN bench.runs.latency_limit IS 'Milliseconds above which a transaction was late';
COMMENT ON COLUMN bench.runs.max_tries IS 'Tries per transaction at a serialization failure or deadlock; 0: no limit';
COMMENT ON COLUMN bench.runs.seed IS 'Seed of the random numbers, given or drawn';
COMMENT ON COLUMN bench.runs.driver IS 'engine: inside the server';
COMMENT ON COLUMN bench.runs.query_mode IS 'simple: values as text, extended: as parameters, both parsed and planned each time; prepared: parsed once, planned as prepared statements are';
COMMENT ON COLUMN bench.runs.results IS 'serialize: rows turned into text and dropped; discard: not looked at';
COMMENT ON COLUMN bench.runs.nodes IS 'local: the clients ran on this server only; workers, all: on those nodes of the Citus cluster, as many on each; see bench.nodes';
COMMENT ON COLUMN bench.runs.variables IS 'Script variables given';
COMMENT ON COLUMN bench.runs.settings IS 'Configuration parameters set in every client''s session';
COMMENT ON COLUMN bench.runs.system IS 'Parameters of the whole server that its sweep had set for it';
COMMENT ON COLUMN bench.runs.sample_interval IS 'Seconds';
COMMENT ON COLUMN bench.runs.tags IS 'The user''s own labels';
COMMENT ON COLUMN bench.runs.status IS 'starting, running, completed, incomplete (clients were lost), canceled, failed (nothing was measured), crashed (the coordinator is gone)';
COMMENT ON COLUMN bench.runs.started_at IS 'When the clients were let loose';
COMMENT ON COLUMN bench.runs.finished_at IS 'When the results were written';
COMMENT ON COLUMN bench.runs.role IS 'The role that called and that the clients ran as';
COMMENT ON COLUMN bench.runs.error IS 'Why it did not complete: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.runs.horizon_held IS 'Whether a waiting caller held back the xmin horizon: then dead rows could not be pruned';
COMMENT ON COLUMN bench.runs.server_version IS 'server_version at that time';
COMMENT ON COLUMN bench.runs.extension_version IS 'The extension''s version at that time';
COMMENT ON COLUMN bench.runs.environment IS 'What it ran on: server_settings (not at their defaults, in a client''s session), version, processors, memory, kernel, filesystem, costs of a clock read and of a flush to disk, unserved_defaults (parameters that were on and that the engine''s sessions do not honour), transaction ids used';
COMMENT ON COLUMN bench.runs.origin IS 'Of a run that bench.import has taken over: run_id, role, database, system_identifier (see pg_control_system) and started_at where it ran, exported_at, imported_at; NULL for those made here';
COMMENT ON COLUMN bench.runs.part_of IS 'Of what is this node''s part of another node''s run, while it is not fetched: node, name and run_id there';

CREATE VIEW bench.errors WITH (security_barrier) AS
SELECT e.run_id, e.node, e.sqlstate, e.message, e.detail, e.count, e.retried, e.failed, e.first_at
FROM bench.error_log e JOIN bench.run_log r USING (run_id)
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.errors IS 'Errors of a run''s clients by SQLSTATE, those that were retried included';
COMMENT ON COLUMN bench.errors.run_id IS 'The run';
COMMENT ON COLUMN bench.errors.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.errors.sqlstate IS 'SQLSTATE';
COMMENT ON COLUMN bench.errors.message IS 'Message of the first one';
COMMENT ON COLUMN bench.errors.detail IS 'Where in the script the first one was, and what the server added to it';
COMMENT ON COLUMN bench.errors.count IS 'How many, in all phases of the run';
COMMENT ON COLUMN bench.errors.retried IS 'Of these: tries that were followed by another one';
COMMENT ON COLUMN bench.errors.failed IS 'Of these: transactions that were given up';
COMMENT ON COLUMN bench.errors.first_at IS 'When the first one came';

CREATE VIEW bench.scripts WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.workload, s.weight, s.fixture, s.transactions,
       s.transactions / (SELECT sum(x.secs ORDER BY x.elapsed) FROM bench.samples x WHERE x.run_id = s.run_id AND x.node = s.node) AS tps,
       s.failed, s.retried, s.skipped, s.late, s.latency_avg_ms, s.latency_stddev_ms, s.latency_p50_ms, s.latency_p95_ms,
       s.latency_p99_ms, s.latency_max_ms
FROM bench.script_log s JOIN bench.run_log r USING (run_id)
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.scripts IS 'One row per run, node and script of its mix: what was measured of it';
COMMENT ON COLUMN bench.scripts.run_id IS 'The run';
COMMENT ON COLUMN bench.scripts.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.scripts.script IS 'Index of the script in the mix, from 0';
COMMENT ON COLUMN bench.scripts.workload IS 'The workload''s name';
COMMENT ON COLUMN bench.scripts.weight IS 'Its share of the transactions, relative to the other weights';
COMMENT ON COLUMN bench.scripts.fixture IS 'The fixture it worked on';
COMMENT ON COLUMN bench.scripts.transactions IS 'Transactions committed while measuring';
COMMENT ON COLUMN bench.scripts.tps IS 'transactions per measured second';
COMMENT ON COLUMN bench.scripts.failed IS 'Transactions given up while measuring';
COMMENT ON COLUMN bench.scripts.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.scripts.skipped IS 'Transactions not started, under a rate, because they would have been above the latency_limit';
COMMENT ON COLUMN bench.scripts.late IS 'Committed transactions above the latency_limit';
COMMENT ON COLUMN bench.scripts.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_stddev_ms IS 'Standard deviation of the latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p50_ms IS 'Median latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p99_ms IS '99th percentile in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_max_ms IS 'Greatest latency in milliseconds';

CREATE VIEW bench.statements WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.command, s.line, s.statement, s.count, s.failed, s.retried, s.latency_avg_ms,
       s.latency_p95_ms, s.plan, s.generic_plans, s.custom_plans, s.plan_changes, s.workers_planned, s.workers_launched
FROM bench.statement_log s JOIN bench.run_log r USING (run_id)
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.statements IS 'One row per run, node, script and command, meta commands too: what was measured of it';
COMMENT ON COLUMN bench.statements.run_id IS 'The run';
COMMENT ON COLUMN bench.statements.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.statements.script IS 'Index of the script in the mix, from 0';
COMMENT ON COLUMN bench.statements.command IS 'Place of the command in the script, from 1';
COMMENT ON COLUMN bench.statements.line IS 'Line of the script that it begins at, from 1';
COMMENT ON COLUMN bench.statements.statement IS 'The command as written';
COMMENT ON COLUMN bench.statements.count IS 'Executions without an error while measuring, those of tries that were repeated included';
COMMENT ON COLUMN bench.statements.failed IS 'Transactions given up at this command';
COMMENT ON COLUMN bench.statements.retried IS 'Tries that ended at this command and were followed by another one';
COMMENT ON COLUMN bench.statements.latency_avg_ms IS 'Mean time of an execution in milliseconds';
COMMENT ON COLUMN bench.statements.latency_p95_ms IS '95th percentile of the time of an execution in milliseconds, within 2 % from a microsecond on';
COMMENT ON COLUMN bench.statements.plan IS 'The plan as executed, in EXPLAIN''s form under a line that says whether it was generic or custom; one that changed has each of its forms, with when it was first seen. NULL for what has none: meta commands, utilities, several statements at once, as rules make them';
COMMENT ON COLUMN bench.statements.generic_plans IS 'Executions by a generic plan, in all phases';
COMMENT ON COLUMN bench.statements.custom_plans IS 'Executions by a plan made for the values at hand, in all phases';
COMMENT ON COLUMN bench.statements.plan_changes IS 'How often a client had a plan of another form than the time before, the step from custom to generic apart';
COMMENT ON COLUMN bench.statements.workers_planned IS 'Parallel workers that its plans asked for, in all phases';
COMMENT ON COLUMN bench.statements.workers_launched IS 'Parallel workers that it got';

CREATE VIEW bench.waits WITH (security_barrier) AS
SELECT w.run_id, w.node, w.wait_event_type, w.wait_event, w.share
FROM bench.wait_log w JOIN bench.run_log r USING (run_id)
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.waits IS 'What the clients of a run waited for while it was measured, sampled 100 times a second, of few clients up to 400 times; of each interval, see the column waits of bench.samples';
COMMENT ON COLUMN bench.waits.run_id IS 'The run';
COMMENT ON COLUMN bench.waits.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.waits.wait_event_type IS 'As in pg_stat_activity; CPU: running on a processor; Runnable: waiting for one; Client: what pgbench''s sessions wait in while a script sleeps or waits for its turn; Unobserved: of clients that ended before they were looked at';
COMMENT ON COLUMN bench.waits.wait_event IS 'As in pg_stat_activity';
COMMENT ON COLUMN bench.waits.share IS 'Share of the clients'' time; the shares of a run add up to 1';

CREATE VIEW bench.events WITH (security_barrier) AS
SELECT e.run_id, e.node, e.event, e.kind, e.relation, e.detail, e.started, e.ended
FROM bench.event_log e JOIN bench.run_log r USING (run_id)
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.events IS 'Checkpoints, and vacuums of the run''s tables, while a run went on';
COMMENT ON COLUMN bench.events.run_id IS 'The run';
COMMENT ON COLUMN bench.events.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.events.event IS 'Its number, from 1';
COMMENT ON COLUMN bench.events.kind IS 'checkpoint, vacuum or autovacuum';
COMMENT ON COLUMN bench.events.relation IS 'The table that was vacuumed';
COMMENT ON COLUMN bench.events.detail IS 'Of a checkpoint: timed or requested, where that is known, or begun before the run';
COMMENT ON COLUMN bench.events.started IS 'Seconds since measuring began; negative before. Of a vacuum shorter than an interval its end; of a checkpoint begun before the run when that was seen';
COMMENT ON COLUMN bench.events.ended IS 'The same; NULL when it went on longer than the run';

CREATE VIEW bench.relations WITH (security_barrier) AS
SELECT l.run_id, l.node, l.relation, l.kind, l.bytes_before, l.bytes_after, l.live_before, l.live, l.dead_before, l.dead,
       l.inserted, l.updated, l.hot_updated, l.deleted, l.mod_since_analyze, l.seq_scan, l.seq_tup_read, l.idx_scan,
       l.vacuums, l.autovacuums, l.analyzes, l.autoanalyzes,
       l.last_vacuum, l.last_autovacuum, l.last_analyze, l.last_autoanalyze
FROM bench.relation_log l JOIN bench.run_log r USING (run_id)
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.relations IS 'The run''s tables and their indexes before and after it, by the server''s statistics; counts are of all phases of the run and of whoever else used them';
COMMENT ON COLUMN bench.relations.run_id IS 'The run';
COMMENT ON COLUMN bench.relations.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.relations.relation IS 'The table or index';
COMMENT ON COLUMN bench.relations.kind IS 'table or index';
COMMENT ON COLUMN bench.relations.bytes_before IS 'Bytes before the run, of a table with its maps and TOAST; NULL where somebody''s lock was in the way';
COMMENT ON COLUMN bench.relations.bytes_after IS 'Bytes after it';
COMMENT ON COLUMN bench.relations.live_before IS 'Live rows before, an estimate';
COMMENT ON COLUMN bench.relations.live IS 'Live rows after, an estimate';
COMMENT ON COLUMN bench.relations.dead_before IS 'Dead rows before, an estimate';
COMMENT ON COLUMN bench.relations.dead IS 'Dead rows after, an estimate';
COMMENT ON COLUMN bench.relations.inserted IS 'Rows inserted';
COMMENT ON COLUMN bench.relations.updated IS 'Rows updated, HOT updates included';
COMMENT ON COLUMN bench.relations.hot_updated IS 'Rows updated without new index entries';
COMMENT ON COLUMN bench.relations.deleted IS 'Rows deleted';
COMMENT ON COLUMN bench.relations.mod_since_analyze IS 'Rows changed since the last ANALYZE, after the run';
COMMENT ON COLUMN bench.relations.seq_scan IS 'Sequential scans';
COMMENT ON COLUMN bench.relations.seq_tup_read IS 'Live rows that they read';
COMMENT ON COLUMN bench.relations.idx_scan IS 'Index scans; of a table, those of all its indexes';
COMMENT ON COLUMN bench.relations.vacuums IS 'Vacuums by hand that ended meanwhile';
COMMENT ON COLUMN bench.relations.autovacuums IS 'Autovacuums that ended meanwhile';
COMMENT ON COLUMN bench.relations.analyzes IS 'Analyzes by hand';
COMMENT ON COLUMN bench.relations.autoanalyzes IS 'Analyzes by autovacuum';
COMMENT ON COLUMN bench.relations.last_vacuum IS 'When the last vacuum by hand ended';
COMMENT ON COLUMN bench.relations.last_autovacuum IS 'When the last autovacuum ended';
COMMENT ON COLUMN bench.relations.last_analyze IS 'When the last analyze by hand ended';
COMMENT ON COLUMN bench.relations.last_autoanalyze IS 'When the last analyze by autovacuum ended';

-- For the extension's own functions, which ask about the run of their caller.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples}'::text[] LOOP
        EXECUTE format($view$
CREATE VIEW bench.total_%1$s AS
SELECT x.run_id, max(x.elapsed) AS elapsed, max(x.secs) AS secs, max(x.at) AS at, count(*)::int AS nodes,
       sum(x.clients)::int AS clients, sum(x.transactions)::bigint AS transactions, sum(x.tps) AS tps,
       sum(x.failed)::bigint AS failed, sum(x.retried)::bigint AS retried, sum(x.skipped)::bigint AS skipped, sum(x.late)::bigint AS late,
       sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_stddev_ms)
            WHEN sum(x.transactions) > 0 THEN
                sqrt(greatest(0, sum((x.latency_stddev_ms ^ 2 + x.latency_avg_ms ^ 2) * x.transactions) / sum(x.transactions)
                                 - (sum(x.latency_avg_ms * x.transactions) / sum(x.transactions)) ^ 2)) END AS latency_stddev_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_p50_ms) END AS latency_p50_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_p95_ms) END AS latency_p95_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_p99_ms) END AS latency_p99_ms,
       max(x.latency_max_ms) AS latency_max_ms,
       sum(x.lag_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS lag_avg_ms,
       sum(x.wal_bytes)::bigint AS wal_bytes, sum(x.wal_records)::bigint AS wal_records, sum(x.wal_fpi)::bigint AS wal_fpi,
       sum(x.wal_buffers_full)::bigint AS wal_buffers_full, sum(x.checkpoints)::int AS checkpoints,
       sum(x.buffers_checkpoint)::bigint AS buffers_checkpoint, sum(x.buffers_clean)::bigint AS buffers_clean,
       sum(x.buffers_backend)::bigint AS buffers_backend, sum(x.blks_hit)::bigint AS blks_hit, sum(x.blks_read)::bigint AS blks_read,
       sum(x.temp_files)::bigint AS temp_files, sum(x.temp_bytes)::bigint AS temp_bytes,
       avg(x.cpu_user) AS cpu_user, avg(x.cpu_system) AS cpu_system, avg(x.cpu_iowait) AS cpu_iowait, avg(x.cpu_steal) AS cpu_steal,
       avg(x.cpu_idle) AS cpu_idle, sum(x.memory_available_bytes)::bigint AS memory_available_bytes,
       sum(x.memory_dirty_bytes)::bigint AS memory_dirty_bytes, sum(x.disk_read_bytes)::bigint AS disk_read_bytes,
       sum(x.disk_written_bytes)::bigint AS disk_written_bytes, sum(x.throttled_secs) AS throttled_secs
FROM (SELECT s.*, row_number() OVER (PARTITION BY s.run_id, s.node ORDER BY s.elapsed) AS place FROM bench.%1$s s) x
GROUP BY x.run_id, x.place
$view$, name);
        EXECUTE format('COMMENT ON VIEW bench.total_%1$s IS %2$L', name,
            'bench.' || name || ' of all nodes together: one row per run and interval. Counts are added up, shares of processors are means of the nodes, and percentiles are NULL where there are several: those of the parts do not tell those of the whole.');
        EXECUTE format('COMMENT ON COLUMN bench.total_%s.nodes IS %L', name, 'Nodes with this interval');
        EXECUTE (SELECT string_agg(format('COMMENT ON COLUMN bench.total_%1$s.%2$I IS %3$L', name, a.attname, col_description(a.attrelid, a.attnum)), '; ')
                 FROM pg_attribute a
                 WHERE a.attrelid = ('bench.' || name)::regclass AND a.attnum > 0
                   AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = ('bench.total_' || name)::regclass AND t.attname = a.attname));
    END LOOP;
END $$;

CREATE VIEW bench.summary_of_all AS
SELECT r.run_id, r.workload, r.clients, r.driver, r.results, r.status, r.segment, r.role, r.started_at,
       s.secs, s.transactions, s.failed, s.retried, s.tps, s.tps_avg, s.tps_min, s.tps_max, s.tps_stddev,
       s.latency_avg_ms, coalesce(r.latency_stddev_ms, s.latency_stddev_ms) AS latency_stddev_ms,
       r.latency_p50_ms, r.latency_p95_ms, r.latency_p99_ms, r.latency_p999_ms, s.latency_max_ms,
       s.skipped, s.late, r.rate, r.latency_limit, coalesce(r.lag_avg_ms, s.lag_avg_ms) AS lag_avg_ms, r.lag_max_ms, r.backlog
FROM bench.run_log r
LEFT JOIN LATERAL (
    SELECT sum(x.secs) AS secs, sum(x.transactions)::bigint AS transactions, sum(x.failed)::bigint AS failed,
           sum(x.retried)::bigint AS retried,
           -- the sum of the nodes'
           (SELECT sum(n.tps) FROM (SELECT sum(y.transactions) / sum(y.secs) AS tps
                                    FROM (SELECT * FROM bench.samples z WHERE z.run_id = r.run_id ORDER BY z.node, z.elapsed) y
                                    GROUP BY y.node) n) AS tps,
           avg(x.tps) AS tps_avg, min(x.tps) AS tps_min, max(x.tps) AS tps_max, stddev_samp(x.tps) AS tps_stddev,
           sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms,
           -- of the whole: the mean of the squares less the square of the mean
           CASE WHEN sum(x.transactions) > 0 THEN sqrt(greatest(0, sum((x.latency_stddev_ms ^ 2 + x.latency_avg_ms ^ 2) * x.transactions) / nullif(sum(x.transactions), 0)
                            - (sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0)) ^ 2)) END AS latency_stddev_ms,
           max(x.latency_max_ms) AS latency_max_ms, sum(x.skipped)::bigint AS skipped, sum(x.late)::bigint AS late,
           sum(x.lag_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS lag_avg_ms
    -- in order, for sums of floating-point numbers depend on it
    FROM (SELECT * FROM bench.total_samples y WHERE y.run_id = r.run_id ORDER BY y.elapsed) x
) s ON true;
COMMENT ON VIEW bench.summary_of_all IS 'What bench.summary shows, of everybody''s runs';

CREATE VIEW bench.summary WITH (security_barrier) AS
SELECT run_id, workload, clients, driver, results, bench.status_of(status, segment, run_id) AS status, started_at,
       secs, transactions, failed, retried, tps, tps_avg, tps_min, tps_max, tps_stddev,
       latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_p999_ms, latency_max_ms,
       skipped, late, lag_avg_ms, lag_max_ms, backlog
FROM bench.summary_of_all
WHERE bench.is_visible(role);
COMMENT ON VIEW bench.summary IS 'One row per run: what was measured';
COMMENT ON COLUMN bench.summary.run_id IS 'The run';
COMMENT ON COLUMN bench.summary.workload IS 'The workload''s name';
COMMENT ON COLUMN bench.summary.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.summary.driver IS 'engine: inside the server';
COMMENT ON COLUMN bench.summary.results IS 'serialize: rows turned into text and dropped; discard: not looked at';
COMMENT ON COLUMN bench.summary.status IS 'As in bench.runs';
COMMENT ON COLUMN bench.summary.started_at IS 'When the clients were let loose';
COMMENT ON COLUMN bench.summary.secs IS 'Seconds measured';
COMMENT ON COLUMN bench.summary.transactions IS 'Transactions committed while measuring';
COMMENT ON COLUMN bench.summary.failed IS 'Transactions given up while measuring';
COMMENT ON COLUMN bench.summary.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.summary.tps IS 'transactions / secs, of the whole';
COMMENT ON COLUMN bench.summary.tps_avg IS 'Mean of the samples';
COMMENT ON COLUMN bench.summary.tps_min IS 'Least of the samples';
COMMENT ON COLUMN bench.summary.tps_max IS 'Greatest of the samples';
COMMENT ON COLUMN bench.summary.tps_stddev IS 'Standard deviation of the samples';
COMMENT ON COLUMN bench.summary.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.summary.latency_stddev_ms IS 'Standard deviation of the latency in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p50_ms IS 'Median latency in milliseconds; NULL until the run has ended, like the other percentiles';
COMMENT ON COLUMN bench.summary.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p99_ms IS '99th percentile in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p999_ms IS '99.9th percentile in milliseconds; below 10,000 transactions it is noise';
COMMENT ON COLUMN bench.summary.latency_max_ms IS 'Greatest latency in milliseconds';
COMMENT ON COLUMN bench.summary.skipped IS 'Transactions not started, under a rate, because they would have been above the latency_limit';
COMMENT ON COLUMN bench.summary.late IS 'Committed transactions above the latency_limit';
COMMENT ON COLUMN bench.summary.lag_avg_ms IS 'Mean delay of the start behind the schedule under a rate, in milliseconds; it is part of the latency';
COMMENT ON COLUMN bench.summary.lag_max_ms IS 'Greatest delay of a start in milliseconds; NULL until the run has ended';
COMMENT ON COLUMN bench.summary.backlog IS 'Transactions due before the end that were neither started nor skipped: how far the run fell behind its rate';

CREATE VIEW bench.nodes WITH (security_barrier) AS
SELECT r.run_id, k.node, coalesce(n.name, 'local') AS name, coalesce(n.is_coordinator, false) AS is_coordinator,
       coalesce(n.clients, r.clients) AS clients,
       CASE WHEN coalesce(n.clients, 1) > 0 THEN coalesce(n.status, bench.status_of(r.status, r.segment, r.run_id)) END AS status,
       coalesce(n.error, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.error END) AS error,
       n.start_offset_ms, n.clock_offset_ms, n.clock_error_ms,
       s.secs, s.transactions, s.failed, s.retried, s.transactions / s.secs AS tps,
       s.latency_avg_ms, coalesce(n.latency_p95_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_p95_ms END) AS latency_p95_ms,
       coalesce(n.latency_p99_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_p99_ms END) AS latency_p99_ms, s.latency_max_ms,
       coalesce(n.processors, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN (r.environment ->> 'processors')::int END) AS processors,
       coalesce(s.cpu_user, n.cpu_user) AS cpu_user, coalesce(s.cpu_system, n.cpu_system) AS cpu_system,
       coalesce(s.cpu_iowait, n.cpu_iowait) AS cpu_iowait, coalesce(s.cpu_steal, n.cpu_steal) AS cpu_steal,
       coalesce(s.cpu_idle, n.cpu_idle) AS cpu_idle,
       n.prepared, n.connections_opened, n.connections_reused, n.prepared_left, n.settings
FROM bench.run_log r
CROSS JOIN LATERAL (
    SELECT l.node FROM bench.node_log l WHERE l.run_id = r.run_id
    UNION ALL
    SELECT 0 WHERE NOT EXISTS (SELECT FROM bench.node_log l WHERE l.run_id = r.run_id) AND r.nodes = 'local'
) k
LEFT JOIN bench.node_log n ON n.run_id = r.run_id AND n.node = k.node
LEFT JOIN LATERAL (
    SELECT sum(x.secs) AS secs, sum(x.transactions)::bigint AS transactions, sum(x.failed)::bigint AS failed, sum(x.retried)::bigint AS retried,
           sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms, max(x.latency_max_ms) AS latency_max_ms,
           sum(x.cpu_user * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_user IS NOT NULL), 0) AS cpu_user,
           sum(x.cpu_system * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_system IS NOT NULL), 0) AS cpu_system,
           sum(x.cpu_iowait * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_iowait IS NOT NULL), 0) AS cpu_iowait,
           sum(x.cpu_steal * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_steal IS NOT NULL), 0) AS cpu_steal,
           sum(x.cpu_idle * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_idle IS NOT NULL), 0) AS cpu_idle
    FROM bench.samples x WHERE x.run_id = r.run_id AND x.node = k.node
) s ON true
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.nodes IS 'One row per run and node, nodes of the Citus cluster that only served others'' statements included';
COMMENT ON COLUMN bench.nodes.run_id IS 'The run';
COMMENT ON COLUMN bench.nodes.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.nodes.name IS 'Host and port, as other nodes reach it; local where there is no cluster';
COMMENT ON COLUMN bench.nodes.is_coordinator IS 'Whether it is Citus'' coordinator';
COMMENT ON COLUMN bench.nodes.clients IS 'Clients that ran on it; 0 where it only served others'' statements';
COMMENT ON COLUMN bench.nodes.status IS 'How its part ended, as in bench.runs; NULL without clients';
COMMENT ON COLUMN bench.nodes.error IS 'Why it did not complete: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.nodes.start_offset_ms IS 'How much later than agreed its clients'' time began, in milliseconds, by the clock of the node that was asked for the run';
COMMENT ON COLUMN bench.nodes.clock_offset_ms IS 'Its clock less that of the node that was asked, in milliseconds';
COMMENT ON COLUMN bench.nodes.clock_error_ms IS 'The most that clock_offset_ms may be wrong by';
COMMENT ON COLUMN bench.nodes.secs IS 'Seconds measured';
COMMENT ON COLUMN bench.nodes.transactions IS 'Transactions committed while measuring';
COMMENT ON COLUMN bench.nodes.failed IS 'Transactions given up while measuring';
COMMENT ON COLUMN bench.nodes.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.nodes.tps IS 'transactions / secs; those of all nodes add up to that of bench.summary';
COMMENT ON COLUMN bench.nodes.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_p99_ms IS '99th percentile in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_max_ms IS 'Greatest latency in milliseconds';
COMMENT ON COLUMN bench.nodes.processors IS 'Processors of its machine';
COMMENT ON COLUMN bench.nodes.cpu_user IS 'Share of all its processors'' time in user mode; of a node without clients from just before the start to just after the end';
COMMENT ON COLUMN bench.nodes.cpu_system IS 'Share in the kernel, interrupts included';
COMMENT ON COLUMN bench.nodes.cpu_iowait IS 'Share idle while something waited for a disk';
COMMENT ON COLUMN bench.nodes.cpu_steal IS 'Share that the hypervisor gave to others';
COMMENT ON COLUMN bench.nodes.cpu_idle IS 'Share idle';
COMMENT ON COLUMN bench.nodes.prepared IS 'Transactions that it has had other nodes prepare for a two-phase commit, one for each connection';
COMMENT ON COLUMN bench.nodes.connections_opened IS 'Connections that its sessions opened to other nodes; NULL where Citus does not count them (citus.enable_stat_counters, 13.1 and newer)';
COMMENT ON COLUMN bench.nodes.connections_reused IS 'Times that they found one open';
COMMENT ON COLUMN bench.nodes.prepared_left IS 'Prepared transactions of Citus'' that were on it when the run had ended';
COMMENT ON COLUMN bench.nodes.settings IS 'Parameters of Citus'' that decide what is measured';

CREATE VIEW bench.progress WITH (security_barrier) AS
SELECT r.run_id, p.phase, p.elapsed, p.remaining, p.tps, p.latency_avg_ms, p.transactions, p.clients,
       NULL::text AS fixture, NULL::bigint AS rows, NULL::double precision AS rows_per_sec
FROM bench.run_log r, LATERAL bench.run_progress(r.segment, r.run_id) p
WHERE r.status IN ('starting', 'running') AND bench.is_visible(r.role)
UNION ALL
SELECT NULL, p.phase, p.elapsed, p.remaining, NULL, NULL, NULL, p.loaders, l.fixture, p.rows, p.rows_per_sec
FROM bench.load_log l, LATERAL bench.load_progress(l.segment, l.load_id) p
WHERE bench.is_visible(l.role);
COMMENT ON VIEW bench.progress IS 'Runs and loads under way';
COMMENT ON COLUMN bench.progress.run_id IS 'The run; NULL for a load';
COMMENT ON COLUMN bench.progress.phase IS 'Of a run: starting, ramp, warm-up, measurement, drain; of a load: starting, loading rows, building indexes, vacuuming';
COMMENT ON COLUMN bench.progress.elapsed IS 'Seconds since the phase of a run, or a load, began';
COMMENT ON COLUMN bench.progress.remaining IS 'Seconds until the measuring ends, or until the rows are loaded; NULL where that cannot be told, as for a run of so many transactions';
COMMENT ON COLUMN bench.progress.tps IS 'Transactions per second of the last sample';
COMMENT ON COLUMN bench.progress.latency_avg_ms IS 'Mean latency of the last sample in milliseconds';
COMMENT ON COLUMN bench.progress.transactions IS 'Measured transactions so far';
COMMENT ON COLUMN bench.progress.clients IS 'Clients, or loaders, at work';
COMMENT ON COLUMN bench.progress.fixture IS 'The fixture that is being loaded';
COMMENT ON COLUMN bench.progress.rows IS 'Rows loaded so far';
COMMENT ON COLUMN bench.progress.rows_per_sec IS 'Rows loaded per second so far';

CREATE VIEW bench.fixture_definitions AS
SELECT name, (SELECT r.rolname::text FROM pg_catalog.pg_roles r JOIN pg_catalog.pg_namespace n ON n.nspowner = r.oid WHERE n.nspname = 'bench') AS owner,
       ddl, rows_query, after_ddl, rows, true AS builtin
FROM bench.builtin_fixtures()
UNION ALL
SELECT name, owner, ddl, rows_query, after_ddl, rows, false
FROM bench.custom_fixtures;
COMMENT ON VIEW bench.fixture_definitions IS 'Fixtures that bench.load can load';
COMMENT ON COLUMN bench.fixture_definitions.name IS 'What bench.load is given';
COMMENT ON COLUMN bench.fixture_definitions.owner IS 'Name of the role that may replace and drop it, with its members and superusers';
COMMENT ON COLUMN bench.fixture_definitions.ddl IS 'Makes its tables; of a built-in one without options';
COMMENT ON COLUMN bench.fixture_definitions.rows_query IS 'The SELECT that defines the rows with the ids $1 to $2';
COMMENT ON COLUMN bench.fixture_definitions.after_ddl IS 'What comes after the rows: indexes';
COMMENT ON COLUMN bench.fixture_definitions.rows IS 'How many ids, unless bench.load is told';
COMMENT ON COLUMN bench.fixture_definitions.builtin IS 'Whether it comes with the extension: then it cannot be replaced or dropped';

CREATE VIEW bench.audits WITH (security_barrier) AS
SELECT a.run_id, a.node, a.counter, a.harness, a.server, a.harness - a.server AS difference,
       CASE WHEN a.judged AND (o.run_id IS NULL OR a.counter = 'samples') THEN a.harness = a.server END AS ok,
       CASE WHEN a.judged AND o.run_id IS NOT NULL AND a.counter <> 'samples'
            THEN format('run %s worked on the same fixture, or ran the same workload, at the same time', o.run_id) ELSE a.reason END AS reason
FROM bench.audit_log a
JOIN bench.run_log r USING (run_id)
LEFT JOIN LATERAL (
    SELECT min(x.run_id) AS run_id FROM bench.run_log x
    -- of other servers' runs that was said when they were exported
    WHERE x.run_id <> a.run_id AND x.origin IS NULL AND r.origin IS NULL
      -- a run on several nodes and its part on this one are one
      AND NOT (x.nodes <> 'local' AND r.nodes <> 'local' AND (r.part_of ->> 'run_id')::bigint IS NOT DISTINCT FROM x.run_id)
      AND NOT (x.nodes <> 'local' AND r.nodes <> 'local' AND (x.part_of ->> 'run_id')::bigint IS NOT DISTINCT FROM r.run_id)
      AND (string_to_array(x.fixture, ',') && string_to_array(r.fixture, ',')
           -- names of a mix, without their weights
           OR string_to_array(rtrim(regexp_replace(x.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ',')
              && string_to_array(rtrim(regexp_replace(r.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ','))
      AND x.started_at < r.finished_at AND coalesce(x.finished_at, CASE WHEN bench.status_of(x.status, x.segment, x.run_id) = 'crashed'
                                      THEN x.started_at ELSE 'infinity' END) > r.started_at
) o ON true
WHERE bench.is_visible(r.role);
COMMENT ON VIEW bench.audits IS 'What bench.audit(run_id) shows, of all runs';
COMMENT ON COLUMN bench.audits.run_id IS 'The run';
COMMENT ON COLUMN bench.audits.node IS 'Citus'' number for the node; 0: the only one that clients ran on, or all of them together';
COMMENT ON COLUMN bench.audits.counter IS 'Name of the server''s counter';
COMMENT ON COLUMN bench.audits.harness IS 'What the clients counted, in all phases of the run';
COMMENT ON COLUMN bench.audits.server IS 'How far the server''s counter went meanwhile';
COMMENT ON COLUMN bench.audits.difference IS 'harness less server';
COMMENT ON COLUMN bench.audits.ok IS 'Whether the two are equal; NULL where they need not be';
COMMENT ON COLUMN bench.audits.reason IS 'What is counted, or why it is not judged';

CREATE FUNCTION bench.audit(run_id bigint)
    RETURNS TABLE (counter text, harness bigint, server bigint, difference bigint, ok boolean, reason text)
    VOLATILE PARALLEL UNSAFE LANGUAGE sql
BEGIN ATOMIC
    SELECT a.counter, a.harness, a.server, a.difference, a.ok, a.reason
    FROM bench.audits a WHERE a.run_id = audit.run_id AND a.node = 0 ORDER BY a.counter;
END;
COMMENT ON FUNCTION bench.audit IS
'Compares what the harness counted with the server''s own counters: ok is true where they are equal, false where they should be and are not, NULL where the reason says why they need not be.';

GRANT SELECT ON bench.total_samples, bench.total_warmup_samples, bench.nodes, bench.runs, bench.errors, bench.scripts, bench.statements, bench.summary, bench.progress, bench.audits, bench.waits, bench.events, bench.relations, bench.fixture_definitions TO PUBLIC;
-- The workloads that come with the extension: ordinary scripts.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT name, current_user, fixture, script, description, true
FROM (VALUES
    ('pk_select', 'pk', E'\\set id random(1, :rows)\nSELECT * FROM pk WHERE id = :id;',
     'Reads the whole row of a uniformly random id'),
    ('pk_update', 'pk', E'\\set id random(1, :rows)\nUPDATE pk SET crt_time = now() WHERE id = :id;',
     'Sets the timestamp of a uniformly random id to now()'),
    ('pk_update_hot', 'pk',
     E'\\set id random(1, :rows)\n\\set hot_id random(1, greatest(1, :rows / 10))\nWITH hot AS (UPDATE pk SET crt_time = now() WHERE id = :hot_id) SELECT * FROM pk WHERE id = :id;',
     'Reads a uniformly random row and sets the timestamp of a random one of the first tenth, in one statement'),
    ('name_select', 'name', E'\\set id random(1, :rows)\nSELECT name FROM name WHERE id = :id;',
     'Reads a text of a uniformly random id'),
    ('name_update', 'name', E'\\set id random(1, :rows)\nUPDATE name SET name = ''updated'' WHERE id = :id;',
     'Sets the text of a uniformly random id to a constant'),
    ('pk_insert', 'log', E'INSERT INTO log (info) VALUES (''hello world'');',
     'Inserts one row with a serial primary key'),
    ('insert_single', 'wide', E'INSERT INTO wide (crt_time) VALUES (now());',
     'Inserts one row of 22 columns'),
    ('insert_batch', 'wide', E'INSERT INTO wide (crt_time) SELECT now() FROM generate_series(1, 400);',
     'Inserts 400 rows of 22 columns in one statement'),
    ('insert_single_multi', 'wide_multi', E'INSERT INTO wide_multi_:client_id (crt_time) VALUES (now());',
     'Inserts one row of 22 columns, each client into a table of its own'),
    ('insert_batch_multi', 'wide_multi', E'INSERT INTO wide_multi_:client_id (crt_time) SELECT now() FROM generate_series(1, 400);',
     'Inserts 400 rows of 22 columns in one statement, each client into a table of its own'),
    -- pgbench's own, word for word.
    ('tpcb', 'tpcb',
$$\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;$$,
     'As pgbench''s tpcb-like: adds to the balances of an account, a teller and a branch, and to the history'),
    ('tpcb_simple_update', 'tpcb',
$$\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;$$,
     'As pgbench''s simple-update: without the updates of a teller and a branch'),
    ('tpcb_select', 'tpcb',
$$\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;$$,
     'As pgbench''s select-only: reads the balance of a uniformly random account'),
    -- Every statement says its branch, by which the tables can be distributed.
    ('tpcb_branch', 'tpcb',
$$\set bid random(1, 1 * :scale)
\set aid random(100000 * (:bid - 1) + 1, 100000 * :bid)
\set tid random(10 * (:bid - 1) + 1, 10 * :bid)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE bid = :bid AND aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE bid = :bid AND aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE bid = :bid AND tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;$$,
     'As tpcb, with an account and a teller of the branch, and the branch in every statement: for "distribute": "branch"'),
    ('insert_9_shards', 'shards',
     'INSERT INTO shards (id) VALUES (:shard_key_1), (:shard_key_2), (:shard_key_3), (:shard_key_4), (:shard_key_5), (:shard_key_6), (:shard_key_7), (:shard_key_8), (:shard_key_9);',
     'Inserts nine rows of one column in one statement, each into another shard'),
    ('insert_2_shards', 'shards',
     'INSERT INTO shards (id) VALUES (:shard_key_1), (:shard_key_1), (:shard_key_1), (:shard_key_1), (:shard_key_1), (:shard_key_2), (:shard_key_2), (:shard_key_2), (:shard_key_2);',
     'Inserts nine rows of one column in one statement, into two shards'),
    ('insert_1_shard', 'shards',
     E'\\set id random(1, 1000000000)\nINSERT INTO shards (id) VALUES (:id), (:id), (:id), (:id), (:id), (:id), (:id), (:id), (:id);',
     'Inserts nine rows of one column in one statement, into one shard, a random one each time'),
    ('insert_1_row', 'shards', E'\\set id random(1, 1000000000)\nINSERT INTO shards (id) VALUES (:id);',
     'Inserts one row of one column into a random shard'),
    ('count_all', 'events', 'SELECT count(*) FROM events;',
     'Counts all rows'),
    ('group_count', 'events', 'SELECT c1, count(*) FROM events GROUP BY c1 ORDER BY count(*) DESC LIMIT 10;',
     'Finds the ten values of a column of 101 that the most rows have')
) AS builtin (name, fixture, script, description);
-- Experiments: sweeps, comparisons, and what runs of the same kind say over time.

CREATE FUNCTION bench.sweep(
    workload        text,
    clients         int[],
    secs            double precision DEFAULT 10,
    rounds          int              DEFAULT 1,
    variants        jsonb            DEFAULT '{}',
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    before          text             DEFAULT 'none',
    seed            bigint           DEFAULT NULL,
    query_mode      text             DEFAULT 'prepared',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_wrapper';
COMMENT ON FUNCTION bench.sweep IS
'Runs a workload at each of the rungs of clients, in each variant, rounds times, in a random order within each round (seed; by variant where variants load), waits for all of it, and returns the sweep''s id. secs, warmup, rate, variables, settings, query_mode and tags are those of each run. A variant is an object of configuration parameters of the clients'' sessions; its groups may be settings (the same), variables (of the script), load (rows, jobs and options of bench.load) and system (parameters of the whole server: for superusers, and put back at the end, after a stop, and after a crash). before: none, reload, truncate (what was loaded without rows), vacuum, prewarm, checkpoint, or several of them, separated by commas, before each run.';

CREATE FUNCTION bench.start_sweep(
    workload        text,
    clients         int[],
    secs            double precision DEFAULT 10,
    rounds          int              DEFAULT 1,
    variants        jsonb            DEFAULT '{}',
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    before          text             DEFAULT 'none',
    seed            bigint           DEFAULT NULL,
    query_mode      text             DEFAULT 'prepared',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_sweep_wrapper';
COMMENT ON FUNCTION bench.start_sweep IS
'Starts a sweep as bench.sweep does and returns its id at once; the sweep goes on without the session. See bench.wait_sweep, bench.stop_sweep and bench.sweeps.';

CREATE FUNCTION bench.wait_sweep(sweep_id bigint, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_sweep_wrapper';
COMMENT ON FUNCTION bench.wait_sweep IS
'Waits until a sweep has ended, timeout seconds at most (NULL: however long), and returns its status. Ending the wait changes nothing about the sweep.';

CREATE FUNCTION bench.stop_sweep(sweep_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'stop_sweep_wrapper';
COMMENT ON FUNCTION bench.stop_sweep IS
'Ends a sweep, and the run under way; everything so far stays, and bench.resume_sweep can make the rest. False when it was not under way. For members of the sweep''s role and of pg_signal_backend.';

CREATE FUNCTION bench.resume_sweep(sweep_id bigint)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'resume_sweep_wrapper';
COMMENT ON FUNCTION bench.resume_sweep IS
'Makes the runs of a sweep that are missing or did not complete, in their order, after a stop, a crash or a restart of the server; returns at once, as bench.start_sweep. For the sweep''s own role.';

CREATE FUNCTION bench.sweep_status_of(status text, segment bigint, sweep_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_status_of_wrapper';
COMMENT ON FUNCTION bench.sweep_status_of IS 'A sweep''s status: crashed where its leader is gone and could not write down the end.';

CREATE FUNCTION bench.sweep_progress(segment bigint, sweep_id bigint)
    RETURNS TABLE (done int, total int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_progress_wrapper';
COMMENT ON FUNCTION bench.sweep_progress IS 'Where a sweep under way stands, in runs; read bench.sweeps.';

CREATE FUNCTION bench.sweep_report(sweep_id bigint, format text DEFAULT 'text')
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_report_wrapper';
COMMENT ON FUNCTION bench.sweep_report IS
'A report of a sweep in the formats of bench.report: TPS and latencies by clients and variant, how they scale, and the curves.';

CREATE FUNCTION bench.scalability(sweep_id bigint)
    RETURNS TABLE (variant text, lambda double precision, sigma double precision, kappa double precision,
                   peak_clients double precision, peak_tps double precision, r2 double precision, verdict text,
                   lambda_low double precision, lambda_high double precision, sigma_low double precision, sigma_high double precision,
                   kappa_low double precision, kappa_high double precision, peak_clients_low double precision,
                   peak_clients_high double precision, peak_tps_low double precision, peak_tps_high double precision)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'scalability_wrapper';
COMMENT ON FUNCTION bench.scalability IS
'Gunther''s universal scalability law, fitted to the completed runs of each variant of a sweep: lambda is the TPS of one client, sigma contention, kappa crosstalk; where TPS peaks, and what it is there; each with a 95 % interval. verdict: fits, no peak (TPS still grows), does not fit, not enough rungs.';

CREATE FUNCTION bench.compare(baseline bigint[], candidate bigint[], margin double precision DEFAULT 0.02)
    RETURNS TABLE (metric text, baseline double precision, candidate double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text, differences jsonb)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'compare_wrapper';
COMMENT ON FUNCTION bench.compare IS
'Compares completed runs with completed runs: candidate / baseline with its interval, of the runs'' TPS (95 %) and latencies (98.75 % each, and so 95 % for the four together). verdict: same (the whole interval within the margin), faster, slower, or inconclusive, and then advice says how many more runs a side would tell. differences: settings, versions and machines that are not the same on both sides, beside the verdict on tps.';

CREATE FUNCTION bench.ab(workload text, a jsonb, b jsonb, rounds int DEFAULT 10, clients int DEFAULT 1, secs double precision DEFAULT 10)
    RETURNS TABLE (metric text, baseline double precision, candidate double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text, differences jsonb)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'ab_wrapper';
COMMENT ON FUNCTION bench.ab IS
'Runs a workload under the settings of a and those of b, a pair of runs in random order in each round, waits for it, and compares the pairs: a is the baseline, b the candidate. a and b are variants of bench.sweep, which the runs are kept as. Columns as of bench.compare, with a margin of 0.02.';

CREATE FUNCTION bench.change_points(workload text, metric text DEFAULT 'tps', tags jsonb DEFAULT '{}')
    RETURNS TABLE (run_id bigint, at timestamptz, before double precision, after double precision, change double precision,
                   p double precision, change_low double precision, change_high double precision)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'change_points_wrapper';
COMMENT ON FUNCTION bench.change_points IS
'Where runs of a workload changed their level: E-divisive change points of each series of bench.history whose tags include these, of its last 1000 runs. run_id is the first run of the new level; before and after are the mean levels, change is the ratio of their geometric means less 1, with its 95 % interval (NULL where a run had none), p the significance. metric: tps, latency_avg_ms, latency_p50_ms, latency_p95_ms or latency_p99_ms.';

REVOKE ALL ON FUNCTION bench.sweep, bench.start_sweep, bench.resume_sweep, bench.ab FROM PUBLIC;

CREATE VIEW bench.sweeps WITH (security_barrier) AS
SELECT s.sweep_id, s.options ->> 'workload' AS workload,
       ARRAY(SELECT c.value::int FROM jsonb_array_elements_text(s.options -> 'clients') WITH ORDINALITY AS c (value, place) ORDER BY c.place) AS clients,
       (s.options ->> 'secs')::double precision AS secs, (s.options ->> 'rounds')::int AS rounds, s.options -> 'variants' AS variants,
       (s.options ->> 'warmup_secs')::double precision AS warmup, (s.options ->> 'rate')::double precision AS rate,
       s.options -> 'variables' AS variables, s.options -> 'settings' AS settings,
       ARRAY(SELECT b.value FROM jsonb_array_elements_text(s.options -> 'before') WITH ORDINALITY AS b (value, place) ORDER BY b.place) AS before,
       (s.options ->> 'seed')::bigint AS seed, s.options ->> 'query_mode' AS query_mode, s.options ->> 'nodes' AS nodes, s.options -> 'tags' AS tags,
       bench.sweep_status_of(s.status, s.segment, s.sweep_id) AS status, n.runs, n.completed, s.started_at, s.resumed_at, s.finished_at,
       -- What is left takes as long a run as what is done since it began, or was taken up.
       CASE WHEN n.since > 0 THEN extract(epoch FROM clock_timestamp() - coalesce(s.resumed_at, s.started_at)) / n.since * (p.total - p.done)
       END::double precision AS remaining,
       s.role, s.error, s.server_version, s.extension_version
FROM bench.sweep_log s
CROSS JOIN LATERAL (
    SELECT count(*)::int AS runs, (count(*) FILTER (WHERE r.status = 'completed' AND l.error IS NULL))::int AS completed,
           count(*) FILTER (WHERE r.finished_at >= coalesce(s.resumed_at, s.started_at)) AS since
    FROM bench.sweep_run_log l LEFT JOIN bench.run_log r USING (run_id) WHERE l.sweep_id = s.sweep_id
) n
LEFT JOIN LATERAL bench.sweep_progress(s.segment, s.sweep_id) p ON s.status = 'running'
WHERE bench.is_visible(s.role);
COMMENT ON VIEW bench.sweeps IS 'Sweeps, as they were asked for, how far they are and how they ended. Visible to members of the sweep''s role and of pg_read_all_stats.';
COMMENT ON COLUMN bench.sweeps.sweep_id IS 'The sweep';
COMMENT ON COLUMN bench.sweeps.workload IS 'The workload''s name, or the mix as given';
COMMENT ON COLUMN bench.sweeps.clients IS 'The rungs: concurrent sessions';
COMMENT ON COLUMN bench.sweeps.secs IS 'Measured seconds of each run';
COMMENT ON COLUMN bench.sweeps.rounds IS 'How often each rung of each variant is run';
COMMENT ON COLUMN bench.sweeps.variants IS 'The variants: name, settings, variables, load, system; one without a name where none were asked for';
COMMENT ON COLUMN bench.sweeps.warmup IS 'Seconds before the measuring of each run';
COMMENT ON COLUMN bench.sweeps.rate IS 'Transactions per second that were to be started in each run; NULL: each after the other';
COMMENT ON COLUMN bench.sweeps.variables IS 'Script variables of all runs';
COMMENT ON COLUMN bench.sweeps.settings IS 'Configuration parameters of all runs'' sessions';
COMMENT ON COLUMN bench.sweeps.before IS 'What is done before each run';
COMMENT ON COLUMN bench.sweeps.seed IS 'Seed of the runs'' order and of their random numbers, which are the same for all runs of a round';
COMMENT ON COLUMN bench.sweeps.query_mode IS 'As in bench.runs';
COMMENT ON COLUMN bench.sweeps.nodes IS 'Where the clients ran, as in bench.runs';
COMMENT ON COLUMN bench.sweeps.tags IS 'The user''s own labels, of each run as well';
COMMENT ON COLUMN bench.sweeps.status IS 'running, completed, incomplete (some runs are missing or did not complete), canceled, failed (no run completed), crashed (the leader is gone)';
COMMENT ON COLUMN bench.sweeps.runs IS 'How many runs there are to be';
COMMENT ON COLUMN bench.sweeps.completed IS 'How many have completed';
COMMENT ON COLUMN bench.sweeps.started_at IS 'When it began';
COMMENT ON COLUMN bench.sweeps.resumed_at IS 'When it was taken up again, the last time';
COMMENT ON COLUMN bench.sweeps.finished_at IS 'When it ended';
COMMENT ON COLUMN bench.sweeps.remaining IS 'Seconds until it will have ended, at the pace so far; NULL when it is not under way or no run has ended yet';
COMMENT ON COLUMN bench.sweeps.role IS 'The role that called and that the clients run as';
COMMENT ON COLUMN bench.sweeps.error IS 'Why it did not complete: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.sweeps.server_version IS 'server_version at its begin';
COMMENT ON COLUMN bench.sweeps.extension_version IS 'The extension''s version at its begin';

CREATE VIEW bench.sweep_runs WITH (security_barrier) AS
SELECT l.sweep_id, l.place, l.round, l.variant, l.clients, l.run_id,
       CASE WHEN r.run_id IS NOT NULL THEN bench.status_of(r.status, r.segment, r.run_id) END AS status,
       coalesce(l.error, r.error ->> 'message') AS error,
       u.secs, u.transactions, u.failed, u.tps, u.tps_min, u.tps_max, u.latency_avg_ms, u.latency_p50_ms, u.latency_p95_ms,
       u.latency_p99_ms, (SELECT avg(x.cpu_idle) FROM bench.samples x WHERE x.run_id = l.run_id) AS cpu_idle
FROM bench.sweep_run_log l
JOIN bench.sweep_log s USING (sweep_id)
LEFT JOIN bench.run_log r ON r.run_id = l.run_id
LEFT JOIN bench.summary u ON u.run_id = l.run_id
WHERE bench.is_visible(s.role);
COMMENT ON VIEW bench.sweep_runs IS 'The runs of each sweep: one row for each rung, variant and round';
COMMENT ON COLUMN bench.sweep_runs.sweep_id IS 'The sweep';
COMMENT ON COLUMN bench.sweep_runs.place IS 'Its place in the order of the runs, from 1';
COMMENT ON COLUMN bench.sweep_runs.round IS 'From 1';
COMMENT ON COLUMN bench.sweep_runs.variant IS 'Name of the variant; empty where there are none';
COMMENT ON COLUMN bench.sweep_runs.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.sweep_runs.run_id IS 'The run, the last one where it was made again; NULL: not made yet';
COMMENT ON COLUMN bench.sweep_runs.status IS 'As in bench.runs';
COMMENT ON COLUMN bench.sweep_runs.error IS 'Why it could not be made, or did not complete';
COMMENT ON COLUMN bench.sweep_runs.secs IS 'Seconds measured';
COMMENT ON COLUMN bench.sweep_runs.transactions IS 'Transactions committed while measuring';
COMMENT ON COLUMN bench.sweep_runs.failed IS 'Transactions given up';
COMMENT ON COLUMN bench.sweep_runs.tps IS 'transactions / secs';
COMMENT ON COLUMN bench.sweep_runs.tps_min IS 'Least TPS of its intervals';
COMMENT ON COLUMN bench.sweep_runs.tps_max IS 'Greatest TPS of its intervals';
COMMENT ON COLUMN bench.sweep_runs.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.latency_p50_ms IS 'Median latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.latency_p99_ms IS '99th percentile in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.cpu_idle IS 'Share of all processors'' time that was idle, mean over its intervals';

CREATE VIEW bench.sweep_results AS
SELECT sweep_id, clients, variant, count(*)::int AS rounds, avg(tps) AS tps_avg, min(tps) AS tps_min, max(tps) AS tps_max,
       stddev_samp(tps) AS tps_stddev, avg(latency_avg_ms) AS latency_avg_ms, avg(latency_p50_ms) AS latency_p50_ms,
       avg(latency_p95_ms) AS latency_p95_ms, avg(latency_p99_ms) AS latency_p99_ms, sum(failed)::bigint AS failed, avg(cpu_idle) AS cpu_idle,
       array_agg(run_id ORDER BY round) AS run_ids
FROM bench.sweep_runs
WHERE status = 'completed'
GROUP BY sweep_id, clients, variant;
COMMENT ON VIEW bench.sweep_results IS 'What each sweep has found: one row for each rung and variant, over the completed runs';
COMMENT ON COLUMN bench.sweep_results.sweep_id IS 'The sweep';
COMMENT ON COLUMN bench.sweep_results.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.sweep_results.variant IS 'Name of the variant; empty where there are none';
COMMENT ON COLUMN bench.sweep_results.rounds IS 'How many runs have completed';
COMMENT ON COLUMN bench.sweep_results.tps_avg IS 'Mean of the runs'' TPS';
COMMENT ON COLUMN bench.sweep_results.tps_min IS 'TPS of the slowest run';
COMMENT ON COLUMN bench.sweep_results.tps_max IS 'TPS of the fastest run';
COMMENT ON COLUMN bench.sweep_results.tps_stddev IS 'Standard deviation of the runs'' TPS; NULL of a single run';
COMMENT ON COLUMN bench.sweep_results.latency_avg_ms IS 'Mean over the runs of the mean latency in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p50_ms IS 'Mean over the runs of the median latency in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p95_ms IS 'Mean over the runs of the 95th percentile in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p99_ms IS 'Mean over the runs of the 99th percentile in milliseconds';
COMMENT ON COLUMN bench.sweep_results.failed IS 'Transactions given up in all runs';
COMMENT ON COLUMN bench.sweep_results.cpu_idle IS 'Mean over the runs of the processors'' idle share';
COMMENT ON COLUMN bench.sweep_results.run_ids IS 'The runs, by round; for bench.compare';

CREATE VIEW bench.history AS
SELECT r.workload,
       jsonb_strip_nulls(jsonb_build_object('clients', r.clients, 'secs', r.secs, 'transactions', r.transactions, 'warmup', r.warmup,
           'rate', r.rate, 'latency_limit', r.latency_limit, 'max_tries', r.max_tries, 'driver', r.driver, 'query_mode', r.query_mode,
           'results', r.results, 'nodes', r.nodes,
           'number_of_nodes', CASE WHEN r.nodes <> 'local' THEN (SELECT count(*) FROM bench.nodes n WHERE n.run_id = r.run_id AND n.clients > 0) END, 'variables', r.variables, 'settings', r.settings, 'fixture', r.fixture,
           'fixture_rows', r.fixture_rows, 'fixture_options', r.fixture_options, 'system', nullif(r.system, '{}'), 'role', r.role,
           'origin', CASE WHEN r.origin IS NOT NULL THEN coalesce(r.origin ->> 'system_identifier', 'unknown') END, 'script', md5(r.script))) AS options,
       r.tags, r.run_id, r.started_at, s.tps, s.latency_avg_ms, s.latency_p50_ms, s.latency_p95_ms, s.latency_p99_ms
FROM bench.runs r JOIN bench.summary s USING (run_id)
WHERE r.status = 'completed' AND r.part_of IS NULL;
COMMENT ON VIEW bench.history IS 'Completed runs by what makes them comparable: workload, options and tags are the same for all runs of a series';
COMMENT ON COLUMN bench.history.workload IS 'The workload''s name, or the mix as given';
COMMENT ON COLUMN bench.history.options IS 'The other arguments of bench.run that shape the figures, the fixture, its rows and its options, script: a hash of the script as run, system: parameters of the whole server that a sweep had set, the role, and origin: the server that an imported run is from';
COMMENT ON COLUMN bench.history.tags IS 'The user''s own labels';
COMMENT ON COLUMN bench.history.run_id IS 'The run';
COMMENT ON COLUMN bench.history.started_at IS 'When its clients were let loose';
COMMENT ON COLUMN bench.history.tps IS 'Transactions per second of the whole';
COMMENT ON COLUMN bench.history.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.history.latency_p50_ms IS 'Median latency in milliseconds';
COMMENT ON COLUMN bench.history.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.history.latency_p99_ms IS '99th percentile in milliseconds';

GRANT SELECT ON bench.sweeps, bench.sweep_runs, bench.sweep_results, bench.history TO PUBLIC;
-- What nodes of a Citus cluster ask each other, each in the name of the role that called bench.run.

CREATE FUNCTION bench.node_state(tables text[]) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'node_state_wrapper';
COMMENT ON FUNCTION bench.node_state IS
'The state of this node, as a run on a Citus cluster reads it of each before and after: its clock (microseconds), processors (ticks of their time), the counters of these tables'' shards here, two-phase commits, connections, limits and parameters.';

CREATE FUNCTION bench.start_part(request jsonb) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_part_wrapper';
COMMENT ON FUNCTION bench.start_part IS
'Starts this node''s part of a run that another node was asked for; its clients wait for bench.begin_part. Returns the run''s id here, or the error. Called by the other node.';

CREATE FUNCTION bench.part_state(run_id bigint, stop boolean) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'part_state_wrapper';
COMMENT ON FUNCTION bench.part_state IS
'How far a part is; stop ends it. A part that nobody asks after for 20 seconds ends itself. Called by the node that the run belongs to.';

CREATE FUNCTION bench.begin_part(run_id bigint, begins_us bigint) RETURNS boolean
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'begin_part_wrapper';
COMMENT ON FUNCTION bench.begin_part IS
'Says when the clients of a part are to begin, by this node''s clock, in microseconds since 2000-01-01 00:00 UTC; false when it is too late for that. Called by the node that the run belongs to.';

CREATE FUNCTION bench.drop_part(run_id bigint) RETURNS boolean
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_part_wrapper';
COMMENT ON FUNCTION bench.drop_part IS
'Forgets a part of a run that has ended, when the node that the run belongs to has taken over what it measured.';
-- Jobs of pg_cron that start runs. pg_cron is looked for when they are called.

CREATE FUNCTION bench.schedule(
    name            text,
    schedule        text,
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
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'schedule_wrapper';
COMMENT ON FUNCTION bench.schedule IS
'Makes a job of pg_cron that starts a run, as the calling role, and returns the job''s id. name: of the job, at most 63 bytes; a job of this role that is called so is replaced, as by cron.schedule. schedule: minute, hour, day of the month, month and day of the week, in GMT, or the time zone of cron.timezone. The rest is as for bench.run, and is checked now. The job does not wait for its run; while that is under way it starts no other. The runs have the job''s name as their tag "job". Where pg_cron is in another database, the hint of the error is the call to be made there.';

CREATE FUNCTION bench.unschedule(name text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'unschedule_wrapper';
COMMENT ON FUNCTION bench.unschedule IS
'Drops the calling role''s job of this name, and ends its run if one is under way, as bench.stop does. False when there was neither.';

CREATE FUNCTION bench.start_scheduled(
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
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_scheduled_wrapper';
COMMENT ON FUNCTION bench.start_scheduled IS
'What a job of bench.schedule calls: bench.start, unless a run of the calling role with the same tag "job" is under way; then a WARNING says so and its id is returned.';

REVOKE ALL ON FUNCTION bench.schedule, bench.unschedule, bench.start_scheduled FROM PUBLIC;
-- Assertions for pgTAP, which is looked for when they are called. They read runs that have ended, and run nothing.

CREATE FUNCTION bench.tap(passed boolean, description text, remark text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pgtap');
    verdict text;
    remarks text;
BEGIN
    IF home IS NULL THEN
        RAISE object_not_in_prerequisite_state
            USING MESSAGE = 'extension "pgtap" is not installed', HINT = 'CREATE EXTENSION pgtap.';
    END IF;
    -- pgTAP's functions call each other by their bare names, and keep their counts in temporary tables.
    PERFORM set_config('search_path', format('pg_catalog, %I, pg_temp', home), true);
    EXECUTE format('SELECT %I.ok($1, $2)', home) INTO verdict USING passed, description;
    EXECUTE format('SELECT %I.diag($1)', home) INTO remarks USING remark;
    RETURN concat_ws(E'\n', verdict, remarks);
END $$;
COMMENT ON FUNCTION bench.tap IS
'The TAP lines of pgTAP''s ok(), and of diag() for a remark that is not NULL, from whatever schema pgTAP is in. For the assertions.';

CREATE FUNCTION bench.status_to_assert(run_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text;
BEGIN
    SELECT r.status INTO status FROM bench.runs r WHERE r.run_id = status_to_assert.run_id;
    IF NOT FOUND THEN
        -- It knows why, and says so.
        PERFORM FROM bench.findings(run_id);
    END IF;
    RETURN status;
END $$;
COMMENT ON FUNCTION bench.status_to_assert IS
'A run''s status; 22004 for NULL, 42704 for a run that does not exist, 42501 for one that the caller may not see. For the assertions.';

CREATE FUNCTION bench.figure_ok(run_id bigint, figure text, have double precision, op text, want double precision, unit text, description text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text := bench.status_to_assert(run_id);
    run record;
    holds boolean;
    remark text;
BEGIN
    IF want = 'NaN' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'value must be a number, not NaN';
    END IF;
    IF op IS NULL OR want IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = format('%s must not be null', CASE WHEN op IS NULL THEN 'op' ELSE 'value' END);
    END IF;
    CASE op
        WHEN '>' THEN holds := have > want;
        WHEN '>=' THEN holds := have >= want;
        WHEN '<' THEN holds := have < want;
        WHEN '<=' THEN holds := have <= want;
        WHEN '=' THEN holds := have = want;
        WHEN '<>' THEN holds := have <> want;
        ELSE
            RAISE invalid_parameter_value
                USING MESSAGE = format('unrecognized value for op: "%s"', op),
                      HINT = 'Available values: ''>'', ''>='', ''<'', ''<='', ''='', ''<>''.';
    END CASE;
    holds := status = 'completed' AND coalesce(holds, false);
    IF NOT holds THEN
        SELECT * INTO run FROM bench.summary s WHERE s.run_id = figure_ok.run_id;
        remark := concat_ws(E'\n',
            format('        have: %s', coalesce(have::text, 'nothing measured')),
            format('        want: %s %s', op, want),
            format('         run: %s, %s with %s clients, is %s', run_id, run.workload, run.clients, status),
            CASE WHEN run.secs > 0 THEN format('     samples: tps min %s, max %s over %s s', run.tps_min, run.tps_max, run.secs) END);
    END IF;
    RETURN bench.tap(holds, coalesce(description, format('run %s: %s %s %s', run_id, figure, op, want) || unit), remark);
END $$;
COMMENT ON FUNCTION bench.figure_ok IS 'Whether a figure of a completed run compares so, as TAP. For bench.tps_ok and bench.latency_ok.';

CREATE FUNCTION bench.tps_ok(run_id bigint, op text, value double precision, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tps double precision := (SELECT s.tps FROM bench.summary s WHERE s.run_id = tps_ok.run_id);
BEGIN
    RETURN bench.figure_ok(run_id, 'tps', tps, op, value, '', description);
END $$;
COMMENT ON FUNCTION bench.tps_ok IS
'pgTAP assertion: the run has completed with tps (of the whole) >, >=, <, <=, = or <> value, in transactions per second.';

CREATE FUNCTION bench.latency_ok(run_id bigint, p double precision, op text, value_ms double precision, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latency_ms double precision := bench.percentile(run_id, p);
BEGIN
    RETURN bench.figure_ok(run_id, format('p%s latency', trim_scale(p::numeric * 100)), latency_ms, op, value_ms, ' ms', description);
END $$;
COMMENT ON FUNCTION bench.latency_ok IS
'pgTAP assertion: the run has completed with a percentile of its latencies >, >=, <, <=, = or <> value_ms, in milliseconds; p is a fraction, as in bench.percentile.';

CREATE FUNCTION bench.audit_ok(run_id bigint, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text := bench.status_to_assert(run_id);
    judged bigint;
    wrong text;
    remark text;
BEGIN
    SELECT count(a.ok), string_agg(format('%s: harness %s, server %s, difference %s', a.counter, a.harness, a.server, a.difference)
                                   || coalesce(' (' || a.reason || ')', ''), E'\n' ORDER BY a.counter) FILTER (WHERE NOT a.ok)
    INTO judged, wrong FROM bench.audit(run_id) a;
    remark := nullif(concat_ws(E'\n',
        CASE WHEN status <> 'completed' THEN format('run %s is %s', run_id, status) END,
        CASE WHEN judged = 0 THEN format('run %s has no counters that could be held against the server''s', run_id) END,
        wrong), '');
    RETURN bench.tap(remark IS NULL, coalesce(description, format('run %s: audit', run_id)), remark);
END $$;
COMMENT ON FUNCTION bench.audit_ok IS
'pgTAP assertion: the run has completed, and every counter that bench.audit judges is equal to the server''s. A run without any fails.';

CREATE FUNCTION bench.no_regression_ok(baseline bigint[], candidate bigint[], tolerance double precision DEFAULT 0.05, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tps record;
    remark text;
    passed boolean;
BEGIN
    IF tolerance IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'tolerance must not be null';
    ELSIF NOT (tolerance >= 0 AND tolerance < 1) THEN
        RAISE invalid_parameter_value
            USING MESSAGE = format('tolerance must be at least 0 and below 1, not %s', tolerance),
                  HINT = 'It is a share: 0.05 lets 5 % pass.';
    END IF;
    description := coalesce(description, format('runs %s: no regression beyond %s %% from runs %s', array_to_string(candidate, ', ', 'null'),
                                                trim_scale(tolerance::numeric * 100), array_to_string(baseline, ', ', 'null')));
    SELECT string_agg(format('run %s is %s', r.run_id, r.status), E'\n' ORDER BY r.run_id) INTO remark
    FROM (SELECT u.run_id, bench.status_to_assert(u.run_id) AS status FROM unnest(baseline || candidate) AS u (run_id)) AS r
    WHERE r.status <> 'completed';
    IF remark IS NOT NULL THEN
        RETURN bench.tap(false, description, remark);
    END IF;
    SELECT c.* INTO STRICT tps FROM bench.compare(baseline, candidate, tolerance) AS c WHERE c.metric = 'tps';
    -- A side at which nothing was done has no interval, and needs none.
    passed := coalesce(coalesce(tps.ratio_high, CASE WHEN tps.verdict = 'slower' THEN tps.ratio END) >= 1 - tolerance, true);
    IF NOT passed OR tps.verdict NOT IN ('same', 'faster') THEN
        remark := concat_ws(E'\n',
            format('     tps: %s, baseline %s', round(tps.candidate::numeric, 1), round(tps.baseline::numeric, 1)),
            format('   ratio: %s', round(tps.ratio::numeric, 4))
                || CASE WHEN num_nulls(tps.ratio_low, tps.ratio_high) = 0
                        THEN format(', 95 %% interval %s to %s', round(tps.ratio_low::numeric, 4), round(tps.ratio_high::numeric, 4))
                        ELSE ', no interval' END
                || format('; a regression is below %s', 1 - tolerance),
            format(' verdict: %s', tps.verdict),
            '  advice: ' || tps.advice,
            'differences: ' || tps.differences::text);
    END IF;
    RETURN bench.tap(passed, description, remark);
END $$;
COMMENT ON FUNCTION bench.no_regression_ok IS
'pgTAP assertion: fails only where the candidate runs are slower beyond the tolerance (a share: 0.05 is 5 %) with confidence, that is where the whole 95 % interval of the ratio of their TPS, as bench.compare has it, is below 1 - tolerance. What passes without being shown the same or faster says so in the diagnostics.';
