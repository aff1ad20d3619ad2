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

-- What nobody calls by hand. PUBLIC has USAGE and, but for functions of triggers, EXECUTE: views check the privileges of whoever
-- reads them on the functions that they call, and what runs with the caller's rights (bodies in PL/pgSQL, questions of other
-- nodes) looks the names up as the caller.
CREATE SCHEMA bench_internal;
GRANT USAGE ON SCHEMA bench_internal TO PUBLIC;
COMMENT ON SCHEMA bench_internal IS 'pgbench_ext: functions that its views, other functions and other nodes call; not for users';

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
    part_of           jsonb,
    counted_from      timestamptz
);
-- When a run's work can have reached the server's counters, for bench.audits: from the first reading of them until its end.
-- A clock may be set back.
CREATE INDEX run_log_counted ON bench.run_log USING gist (
    tstzrange(least(counted_from, started_at), CASE WHEN finished_at IS NOT NULL THEN greatest(finished_at, least(counted_from, started_at)) END))
    WHERE started_at IS NOT NULL AND origin IS NULL;
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
COMMENT ON TABLE bench.samples IS 'One row per run, node and measured interval, of the runs that bench.runs shows. A transaction belongs to the interval in which it ended, by its own client''s clock.';
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
    rows           bigint,
    writes         bigint,
    empty_writes   bigint,
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
CREATE TYPE bench_internal.relation_reading AS (
    oid bigint, relation text, kind text, bytes bigint, live bigint, dead bigint, inserted bigint, updated bigint, hot_updated bigint,
    deleted bigint, mod_since_analyze bigint, seq_scan bigint, seq_tup_read bigint, idx_scan bigint,
    vacuums bigint, autovacuums bigint, analyzes bigint, autoanalyzes bigint,
    last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz
);
COMMENT ON TYPE bench_internal.relation_reading IS 'A table or an index as the recorder reads it before and after a run';

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
