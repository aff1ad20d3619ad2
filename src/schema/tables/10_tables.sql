-- Tables and their grants. Users read; only the extension's own functions, which check who is
-- asking, and the recorder, which is a superuser's background worker, write.

-- The owner of a schema can drop and rename what is in it: it has to be the one who installs.
DO $$
BEGIN
    IF (SELECT nspowner FROM pg_namespace WHERE nspname = 'bench') <> current_user::regrole THEN
        RAISE insufficient_privilege
            USING MESSAGE = 'schema "bench" exists and belongs to another role',
                  HINT = 'Drop or rename it, or ALTER SCHEMA bench OWNER TO CURRENT_USER.';
    END IF;
END $$;

GRANT USAGE ON SCHEMA bench TO PUBLIC;
COMMENT ON SCHEMA bench IS 'pgbench_ext: benchmarks from inside the server';

-- Internal functions. PUBLIC has USAGE and, but for functions of triggers, EXECUTE: views check the privileges of whoever
-- reads them on the functions that they call, and what runs with the caller's rights (bodies in PL/pgSQL, questions of other
-- nodes) looks the names up as the caller.
CREATE SCHEMA bench_internal;
GRANT USAGE ON SCHEMA bench_internal TO PUBLIC;
COMMENT ON SCHEMA bench_internal IS 'pgbench_ext: internal functions, called by its views, its other functions and other nodes; not for users';

CREATE TABLE bench.workloads (
    name        text PRIMARY KEY,
    owner       text NOT NULL,
    fixture     text,
    script      text NOT NULL,
    description text,
    builtin     boolean NOT NULL DEFAULT false,
    mix         text,
    private     boolean NOT NULL DEFAULT false,
    keying_secs double precision,
    think_secs  double precision,
    owner_oid   oid NOT NULL DEFAULT 0
);
COMMENT ON TABLE bench.workloads IS 'Workloads: the scripts that clients run, one transaction at a time. Use bench.create_workload and bench.drop_workload to change them.';
COMMENT ON COLUMN bench.workloads.name IS 'Name, as given to bench.run';
COMMENT ON COLUMN bench.workloads.owner IS 'Name that the role that owns it had when it was stored';
COMMENT ON COLUMN bench.workloads.fixture IS 'Fixture whose tables the script uses; NULL: none of the extension''s';
COMMENT ON COLUMN bench.workloads.script IS 'Script, in pgbench''s language';
COMMENT ON COLUMN bench.workloads.description IS 'What one transaction does';
COMMENT ON COLUMN bench.workloads.builtin IS 'True if it comes with the extension: it then cannot be replaced or dropped';
COMMENT ON COLUMN bench.workloads.mix IS 'Workloads that this name stands for, with their weights, as bench.run takes them; its own script is then empty. NULL: none';
COMMENT ON COLUMN bench.workloads.private IS 'True if it was captured: members of its owner see it, and nobody else';
COMMENT ON COLUMN bench.workloads.keying_secs IS 'Time that a client waits before each transaction, in seconds, multiplied by variable keying of the run; no part of the latency. NULL: it does not wait';
COMMENT ON COLUMN bench.workloads.think_secs IS 'Mean of the exponentially distributed times that a client waits after each transaction, in seconds, multiplied by variable think of the run; no part of the latency. NULL: it does not wait';
COMMENT ON COLUMN bench.workloads.owner_oid IS 'OID of the role that owns it: this role, its members and superusers may replace and drop it. 0, or a role that no longer exists: superusers only';

CREATE TABLE bench.feeders (
    workload text NOT NULL,
    prefix   text NOT NULL,
    query    text NOT NULL,
    pick      text NOT NULL,
    once     boolean NOT NULL,
    max_rows int NOT NULL,
    PRIMARY KEY (workload, prefix)
);
COMMENT ON TABLE bench.feeders IS 'Feeders of workloads: queries whose rows become variables of the script, one row per transaction. Use bench.add_feeder and bench.drop_feeder to change them.';
COMMENT ON COLUMN bench.feeders.workload IS 'Name of the workload';
COMMENT ON COLUMN bench.feeders.prefix IS 'Put before each column''s name to form the variable''s';
COMMENT ON COLUMN bench.feeders.query IS 'SELECT that returns the rows; it runs as the role whose sessions run the workload';
COMMENT ON COLUMN bench.feeders.pick IS 'Which row a transaction takes: random, sequence (one after the other, over all clients) or weighted (by column weight)';
COMMENT ON COLUMN bench.feeders.once IS 'With sequence: the run ends when each row has been taken';
COMMENT ON COLUMN bench.feeders.max_rows IS 'Rows kept at most: of more, a random choice of this size; with sequence, more are an error';

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
    owner_oid    oid NOT NULL DEFAULT 0,
    PRIMARY KEY (schema, name)
);
COMMENT ON TABLE bench.fixtures IS 'Loaded fixtures: the tables that workloads use. Use bench.load and bench.unload to change them.';
COMMENT ON COLUMN bench.fixtures.name IS 'Name of the fixture';
COMMENT ON COLUMN bench.fixtures.owner IS 'Name that the role that loaded it had then';
COMMENT ON COLUMN bench.fixtures.schema IS 'Schema of its tables, which is first in the clients'' search_path';
COMMENT ON COLUMN bench.fixtures.relations IS 'Its tables; a table dropped since shows as a number';
COMMENT ON COLUMN bench.fixtures.rows IS 'Rows loaded, with ids from 1 to this number; scripts read it as variable rows';
COMMENT ON COLUMN bench.fixtures.options IS 'Options as given to bench.load';
COMMENT ON COLUMN bench.fixtures.loaded_at IS 'When the load ended';
COMMENT ON COLUMN bench.fixtures.load_secs IS 'Seconds spent writing the rows, and distributing them to the shards of a Citus cluster; indexes and VACUUM are not included';
COMMENT ON COLUMN bench.fixtures.rows_per_sec IS 'Rows written per second of load_secs';
COMMENT ON COLUMN bench.fixtures.table_bytes IS 'Bytes of the tables after the load, including their maps and TOAST; for distributed tables, of all shards';
COMMENT ON COLUMN bench.fixtures.index_bytes IS 'Bytes of the indexes after the load';
COMMENT ON COLUMN bench.fixtures.index_levels IS 'Levels of the largest table''s primary key, including root and leaves: one more than level in pageinspect''s bt_metap; NULL for a distributed table';
COMMENT ON COLUMN bench.fixtures.key_correlation IS 'Correlation, as in pg_stats, between that key''s values and the order of the rows in the table: below 1 where several jobs wrote in parallel';
COMMENT ON COLUMN bench.fixtures.index_secs IS 'Seconds spent building indexes';
COMMENT ON COLUMN bench.fixtures.vacuum_secs IS 'Seconds spent on VACUUM and ANALYZE';
COMMENT ON COLUMN bench.fixtures.rows_query IS 'SELECT that defines the rows with the ids $1 to $2';
COMMENT ON COLUMN bench.fixtures.owner_oid IS 'OID of the role that loaded it: this role, its members and superusers may replace and unload it. 0, or a role that no longer exists: superusers only';

CREATE TABLE bench_internal.custom_fixtures (
    name       text PRIMARY KEY,
    owner      text NOT NULL,
    ddl        text NOT NULL,
    rows_query text NOT NULL,
    after_ddl  text,
    rows       bigint NOT NULL,
    owner_oid  oid NOT NULL DEFAULT 0
);
COMMENT ON TABLE bench_internal.custom_fixtures IS 'Internal: fixtures that users defined with bench.create_fixture. Read bench.fixture_definitions instead.';

CREATE SEQUENCE bench_internal.load_id_seq;
COMMENT ON SEQUENCE bench_internal.load_id_seq IS 'Internal: ids of loads';

CREATE TABLE bench_internal.load_log (
    load_id    bigint PRIMARY KEY,
    fixture    text NOT NULL,
    schema     text NOT NULL,
    role       text NOT NULL,
    segment    bigint NOT NULL,
    owner_oid  oid NOT NULL,
    status     text NOT NULL DEFAULT 'running',
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    error      jsonb,
    UNIQUE (schema, fixture)
);
ALTER SEQUENCE bench_internal.load_id_seq OWNED BY bench_internal.load_log.load_id;
COMMENT ON TABLE bench_internal.load_log IS 'Internal: the last load of each fixture in each schema. One under way builds its tables in a schema named bench_loading_ and its id; the next load removes what a crash has left of it. Read bench.loads instead.';

-- No foreign keys between the tables of results: only the recorder writes them, and a parallel
-- restore of an extension's tables does not know their order.
CREATE SEQUENCE bench_internal.run_id_seq;

CREATE TABLE bench_internal.run_log (
    run_id            bigint PRIMARY KEY DEFAULT nextval('bench_internal.run_id_seq'),
    sweep_id          bigint,
    workload          text NOT NULL,
    fixture           text,
    fixture_rows      bigint[],
    fixture_options   jsonb,
    script            text NOT NULL,
    clients           int NOT NULL,
    secs              double precision,
    transactions      bigint,
    warmup            double precision,
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
    counted_from      timestamptz,
    before            text NOT NULL DEFAULT 'none',
    log_rate          double precision NOT NULL DEFAULT 0,
    logged            bigint,
    log_lost          bigint,
    server_cpu_us     double precision,
    target            text,
    jobs              int,
    reconnect         boolean NOT NULL DEFAULT false,
    on_disconnect     text NOT NULL DEFAULT 'end',
    connect_avg_ms    double precision,
    connect_p50_ms    double precision,
    connect_p95_ms    double precision,
    connect_p99_ms    double precision,
    connect_max_ms    double precision,
    unknown           bigint,
    warmup_took       double precision,
    feeders           jsonb,
    run_as            text,
    clients_stuck     int[],
    owner_oid         oid NOT NULL DEFAULT 0,
    duel              jsonb,
    applied           text[] NOT NULL DEFAULT '{}',
    rates             jsonb
);
-- For bench.audits: when a run's work can have reached the server's counters, from their first reading to the run's end.
-- The clock may have been set back meanwhile.
CREATE INDEX run_log_counted ON bench_internal.run_log USING gist (
    tstzrange(least(counted_from, started_at), CASE WHEN finished_at IS NOT NULL THEN greatest(finished_at, least(counted_from, started_at)) END))
    WHERE started_at IS NOT NULL AND origin IS NULL;
-- A role can import a run of another server only once.
CREATE UNIQUE INDEX run_log_origin_key ON bench_internal.run_log
    (owner_oid, (origin -> 'system_identifier'), (origin -> 'database'), (origin -> 'run_id'), (origin -> 'started_at')) WHERE origin IS NOT NULL AND owner_oid <> 0;
ALTER SEQUENCE bench_internal.run_id_seq OWNED BY bench_internal.run_log.run_id;
COMMENT ON SEQUENCE bench_internal.run_id_seq IS 'Internal: ids of runs';
COMMENT ON TABLE bench_internal.run_log IS 'Internal: one row per run. Read bench.runs and bench.summary instead.';

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
    aborted           bigint,
    latency_histogram jsonb,
    replay_lag_ms     double precision,
    replay_lag_bytes  bigint,
    wal_syncs         bigint,
    PRIMARY KEY (run_id, node, elapsed)
);
COMMENT ON TABLE bench.samples IS 'One row per run, node and measured interval, for the runs that bench.runs shows. A transaction counts in the interval in which it ended.';
CREATE TABLE bench.warmup_samples (LIKE bench.samples INCLUDING ALL);
COMMENT ON TABLE bench.warmup_samples IS 'Samples of the warm-up, with the columns of bench.samples; elapsed counts from the start of the warm-up. With warmup NULL they are 0.25 seconds long, or sample_interval if that is shorter';

CREATE TABLE bench.latencies (
    run_id  bigint NOT NULL,
    node    int NOT NULL DEFAULT 0,
    script  int NOT NULL,
    low_ms  double precision NOT NULL,
    high_ms double precision NOT NULL,
    count   bigint NOT NULL,
    PRIMARY KEY (run_id, node, script, low_ms)
);
COMMENT ON TABLE bench.latencies IS 'Latency histogram of each run''s measured transactions and of those under way at the end of the measurement: one row per run, node, script and nonempty bucket. A bucket is at most 1 % wide.';
COMMENT ON COLUMN bench.latencies.run_id IS 'The run';
COMMENT ON COLUMN bench.latencies.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.latencies.script IS 'Index of the script in a mix, starting at 0';
COMMENT ON COLUMN bench.latencies.low_ms IS 'Lower bound of the bucket in milliseconds, inclusive';
COMMENT ON COLUMN bench.latencies.high_ms IS 'Upper bound of the bucket in milliseconds, exclusive';
COMMENT ON COLUMN bench.latencies.count IS 'Transactions in the bucket';

CREATE TABLE bench.standbys (
    run_id           bigint NOT NULL,
    node             int NOT NULL DEFAULT 0,
    elapsed          double precision NOT NULL,
    pid              int NOT NULL,
    name             text NOT NULL,
    state            text,
    sync_state       text,
    write_lag_ms     double precision,
    flush_lag_ms     double precision,
    replay_lag_ms    double precision,
    replay_lag_bytes bigint,
    PRIMARY KEY (run_id, node, elapsed, pid)
);
COMMENT ON TABLE bench.standbys IS 'Standbys of the server under test: one row per standby (or other receiver of WAL) and measured interval, as pg_stat_replication shows them at its end to the run''s role. Empty for roles without pg_read_all_stats.';
COMMENT ON COLUMN bench.standbys.run_id IS 'The run';
COMMENT ON COLUMN bench.standbys.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.standbys.elapsed IS 'End of the interval, in seconds since measuring began, as in bench.samples';
COMMENT ON COLUMN bench.standbys.pid IS 'Process id of the WAL sender';
COMMENT ON COLUMN bench.standbys.name IS 'application_name of the standby';
COMMENT ON COLUMN bench.standbys.state IS 'State of the WAL sender, as in pg_stat_replication: streaming, catchup, backup, …';
COMMENT ON COLUMN bench.standbys.sync_state IS 'As in pg_stat_replication: async, sync, quorum or potential';
COMMENT ON COLUMN bench.standbys.write_lag_ms IS 'Milliseconds from the flush of recent WAL here until the standby confirmed its write; NULL if all is confirmed and no more WAL came';
COMMENT ON COLUMN bench.standbys.flush_lag_ms IS 'Milliseconds until the standby confirmed the flush, as write_lag_ms';
COMMENT ON COLUMN bench.standbys.replay_lag_ms IS 'Milliseconds until the standby confirmed the replay, as write_lag_ms';
COMMENT ON COLUMN bench.standbys.replay_lag_bytes IS 'Bytes of WAL sent to the standby and not yet replayed there';

CREATE TABLE bench.transactions (
    run_id      bigint NOT NULL,
    node        int NOT NULL DEFAULT 0,
    client      int NOT NULL,
    transaction bigint NOT NULL,
    script      int NOT NULL,
    started     timestamptz NOT NULL,
    lag_ms      double precision,
    latency_ms  double precision,
    retries     int NOT NULL,
    outcome     text NOT NULL,
    PRIMARY KEY (run_id, node, client, transaction)
);
COMMENT ON TABLE bench.transactions IS 'Log of single transactions: one row per measured or skipped transaction, or for a share of them, of runs with a log_rate';
COMMENT ON COLUMN bench.transactions.run_id IS 'The run';
COMMENT ON COLUMN bench.transactions.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.transactions.client IS 'Index of the client on its node, starting at 0';
COMMENT ON COLUMN bench.transactions.transaction IS 'Number of the transaction among the client''s measured and skipped ones, logged or not, starting at 1';
COMMENT ON COLUMN bench.transactions.script IS 'Index of the script in a mix, starting at 0';
COMMENT ON COLUMN bench.transactions.started IS 'When the transaction started or was skipped';
COMMENT ON COLUMN bench.transactions.lag_ms IS 'With a rate: milliseconds from when the transaction was due until it started or was skipped';
COMMENT ON COLUMN bench.transactions.latency_ms IS 'Milliseconds from the start of the transaction, or with a rate from when it was due, until its end, including retries; NULL if it was skipped';
COMMENT ON COLUMN bench.transactions.retries IS 'Tries beyond the first, after serialization failures and deadlocks';
COMMENT ON COLUMN bench.transactions.outcome IS 'processed; left open: processed, but the script ended within a transaction block, which ended the client; failed: serialization failure or deadlock after the last try; aborted: another error ended the client; skipped; unknown: its connection was lost when it may have been committed';

CREATE TABLE bench_internal.error_log (
    run_id   bigint NOT NULL,
    node     int NOT NULL DEFAULT 0,
    sqlstate text NOT NULL,
    message  text NOT NULL,
    detail   text,
    count    bigint NOT NULL,
    retried  bigint NOT NULL,
    failed   bigint NOT NULL,
    first_at timestamptz,
    context  text,
    PRIMARY KEY (run_id, node, sqlstate)
);
COMMENT ON TABLE bench_internal.error_log IS 'Internal: errors of each run. Read bench.errors instead.';

CREATE TABLE bench_internal.script_log (
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
    aborted           bigint,
    PRIMARY KEY (run_id, node, script)
);
COMMENT ON TABLE bench_internal.script_log IS 'Internal: scripts of each run. Read bench.scripts instead.';

CREATE TABLE bench_internal.statement_log (
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
COMMENT ON TABLE bench_internal.statement_log IS 'Internal: commands of each run''s scripts. Read bench.statements instead.';

CREATE TABLE bench_internal.wait_log (
    run_id          bigint NOT NULL,
    node            int NOT NULL DEFAULT 0,
    wait_event_type text NOT NULL,
    wait_event      text NOT NULL,
    share           double precision NOT NULL,
    PRIMARY KEY (run_id, node, wait_event_type, wait_event)
);
COMMENT ON TABLE bench_internal.wait_log IS 'Internal: wait events of each run. Read bench.waits instead.';

CREATE TABLE bench_internal.event_log (
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
COMMENT ON TABLE bench_internal.event_log IS 'Internal: checkpoints and vacuums during each run. Read bench.events instead.';

-- A relation as the recorder reads it; no table of results.
DO $$ BEGIN
IF to_regtype('bench_internal.relation_reading') IS NULL THEN
CREATE TYPE bench_internal.relation_reading AS (
    oid bigint, relation text, kind text, bytes bigint, live bigint, dead bigint, inserted bigint, updated bigint, hot_updated bigint,
    deleted bigint, mod_since_analyze bigint, seq_scan bigint, seq_tup_read bigint, idx_scan bigint,
    vacuums bigint, autovacuums bigint, analyzes bigint, autoanalyzes bigint,
    last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz
);
END IF;
END $$;
COMMENT ON TYPE bench_internal.relation_reading IS 'State of a table or index, read before and after a run';

CREATE TABLE bench_internal.relation_log (
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
COMMENT ON TABLE bench_internal.relation_log IS 'Internal: tables and indexes of each run. Read bench.relations instead.';

CREATE TABLE bench_internal.audit_log (
    run_id  bigint NOT NULL,
    node    int NOT NULL DEFAULT 0,
    counter text NOT NULL,
    harness bigint,
    server  bigint,
    judged  boolean NOT NULL,
    reason  text NOT NULL,
    PRIMARY KEY (run_id, node, counter)
);
COMMENT ON TABLE bench_internal.audit_log IS 'Internal: counters of each run''s audit. Read bench.audit(run_id) or bench.audits instead.';

CREATE TABLE bench_internal.node_log (
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
    aborted           bigint,
    server_cpu_us     double precision,
    machine           int,
    clients_stuck     int[],
    PRIMARY KEY (run_id, node)
);
COMMENT ON TABLE bench_internal.node_log IS 'Internal: nodes of the Citus cluster that each run used. Read bench.nodes instead.';

CREATE SEQUENCE bench_internal.sweep_id_seq;
COMMENT ON SEQUENCE bench_internal.sweep_id_seq IS 'Internal: ids of sweeps';

CREATE TABLE bench_internal.sweep_log (
    sweep_id          bigint PRIMARY KEY DEFAULT nextval('bench_internal.sweep_id_seq'),
    options           jsonb NOT NULL,
    status            text NOT NULL CHECK (status IN ('running', 'waiting for restart', 'completed', 'incomplete', 'canceled', 'failed', 'revert failed')),
    started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    resumed_at        timestamptz,
    finished_at       timestamptz,
    role              text NOT NULL,
    error             jsonb,
    server_version    text NOT NULL DEFAULT current_setting('server_version'),
    extension_version text NOT NULL,
    segment           bigint NOT NULL,
    system_settings   jsonb,
    answers           jsonb,
    owner_oid         oid NOT NULL DEFAULT 0,
    changes           jsonb,
    waits_for         jsonb
);
ALTER SEQUENCE bench_internal.sweep_id_seq OWNED BY bench_internal.sweep_log.sweep_id;
COMMENT ON TABLE bench_internal.sweep_log IS 'Internal: one row per sweep. Read bench.sweeps instead.';
COMMENT ON COLUMN bench_internal.sweep_log.system_settings IS 'Entries of postgresql.auto.conf for the server parameters that the sweep sets: own, what to restore, null where there was no entry; set, what is written; server, the system identifier and the OID of the database, as a copy of the database restores nothing. NULL once they are restored';
COMMENT ON COLUMN bench_internal.sweep_log.answers IS 'Results of a search for a capacity, one element per objective; NULL until the search has ended. Read bench.capacities instead.';
COMMENT ON COLUMN bench_internal.sweep_log.changes IS 'What the SQL of its variants did, one element per time that it was applied; NULL: nothing. Read bench.sweep_changes instead.';
COMMENT ON COLUMN bench_internal.sweep_log.waits_for IS 'The restart of the server that the sweep waits for; NULL: none. Read bench.sweeps instead.';

CREATE TABLE bench_internal.sweep_run_log (
    sweep_id bigint NOT NULL,
    place    int NOT NULL,
    round    int NOT NULL,
    variant  text NOT NULL,
    clients  int NOT NULL,
    run_id   bigint,
    error    text,
    rate     double precision,
    purpose  text CHECK (purpose IN ('estimate', 'trial', 'overload', 'return', 'operating')),
    outcome  jsonb,
    PRIMARY KEY (sweep_id, place)
);
COMMENT ON TABLE bench_internal.sweep_run_log IS 'Internal: planned runs of each sweep, in order. Read bench.sweep_runs instead.';

DO $$
DECLARE
    relation regclass;
BEGIN
    FOREACH relation IN ARRAY '{bench.samples,bench.warmup_samples}'::regclass[] LOOP
        EXECUTE format('COMMENT ON COLUMN %s.run_id IS %L', relation, 'The run');
        EXECUTE format('COMMENT ON COLUMN %s.node IS %L', relation, 'Node id in Citus (pg_dist_node); 0 for a run on one node');
        EXECUTE format('COMMENT ON COLUMN %s.elapsed IS %L', relation, 'End of the interval, in seconds since the phase began');
        EXECUTE format('COMMENT ON COLUMN %s.secs IS %L', relation, 'Actual length of the interval in seconds');
        EXECUTE format('COMMENT ON COLUMN %s.at IS %L', relation, 'End of the interval');
        EXECUTE format('COMMENT ON COLUMN %s.clients IS %L', relation, 'Active clients');
        EXECUTE format('COMMENT ON COLUMN %s.transactions IS %L', relation, 'Transactions committed in the interval');
        EXECUTE format('COMMENT ON COLUMN %s.tps IS %L', relation, 'transactions / secs');
        EXECUTE format('COMMENT ON COLUMN %s.failed IS %L', relation, 'Failed transactions: those given up at a serialization failure or deadlock after max_tries');
        EXECUTE format('COMMENT ON COLUMN %s.aborted IS %L', relation, 'Clients that another error ended, each with its transaction');
        EXECUTE format('COMMENT ON COLUMN %s.retried IS %L', relation, 'Transactions that took more than one try');
        EXECUTE format('COMMENT ON COLUMN %s.skipped IS %L', relation, 'With a rate: transactions skipped because they could no longer meet latency_limit');
        EXECUTE format('COMMENT ON COLUMN %s.late IS %L', relation, 'Committed transactions that took longer than latency_limit');
        EXECUTE format('COMMENT ON COLUMN %s.latency_avg_ms IS %L', relation, 'Mean latency of committed transactions in milliseconds, including retries; with a rate, counted from the scheduled start');
        EXECUTE format('COMMENT ON COLUMN %s.latency_stddev_ms IS %L', relation, 'Standard deviation of the latency in milliseconds');
        EXECUTE format('COMMENT ON COLUMN %s.latency_p50_ms IS %L', relation, 'Median latency in milliseconds, within 1 %');
        EXECUTE format('COMMENT ON COLUMN %s.latency_p95_ms IS %L', relation, '95th percentile of the latency in milliseconds, within 1 %');
        EXECUTE format('COMMENT ON COLUMN %s.latency_p99_ms IS %L', relation, '99th percentile of the latency in milliseconds, within 1 %');
        EXECUTE format('COMMENT ON COLUMN %s.latency_max_ms IS %L', relation, 'Maximum latency in milliseconds');
        EXECUTE format('COMMENT ON COLUMN %s.latency_histogram IS %L', relation, 'Latency histogram of the interval''s committed transactions, as bucket: count; bucket k holds 10^(k/10) to 10^((k+1)/10) microseconds');
        EXECUTE format('COMMENT ON COLUMN %s.lag_avg_ms IS %L', relation, 'With a rate: mean delay between scheduled and actual start in milliseconds, which is part of the latency');
        EXECUTE format('COMMENT ON COLUMN %s.wal_bytes IS %L', relation, 'Bytes of WAL that the whole server generated, from pg_stat_wal, to which sessions report at most once a second. This column and the following ones are NULL if the interval was not observed');
        EXECUTE format('COMMENT ON COLUMN %s.wal_records IS %L', relation, 'WAL records of the whole server');
        EXECUTE format('COMMENT ON COLUMN %s.wal_fpi IS %L', relation, 'Full-page images in the WAL of the whole server');
        EXECUTE format('COMMENT ON COLUMN %s.wal_buffers_full IS %L', relation, 'Times WAL was written to disk because the WAL buffers were full');
        EXECUTE format('COMMENT ON COLUMN %s.wal_syncs IS %L', relation, 'Times the whole server flushed WAL to disk by a system call');
        EXECUTE format('COMMENT ON COLUMN %s.checkpoints IS %L', relation, 'Checkpoints that started in the interval');
        EXECUTE format('COMMENT ON COLUMN %s.buffers_checkpoint IS %L', relation, 'Buffers written by the checkpointer');
        EXECUTE format('COMMENT ON COLUMN %s.buffers_clean IS %L', relation, 'Buffers written by the background writer');
        EXECUTE format('COMMENT ON COLUMN %s.buffers_backend IS %L', relation, 'Pages that sessions wrote or extended relations by, instead of leaving that to the checkpointer or the background writer. PostgreSQL 15 reports them at the checkpointers next look, later versions with the sessions statistics');
        EXECUTE format('COMMENT ON COLUMN %s.blks_hit IS %L', relation, 'Blocks of this database found in shared buffers');
        EXECUTE format('COMMENT ON COLUMN %s.blks_read IS %L', relation, 'Blocks of this database read from outside shared buffers');
        EXECUTE format('COMMENT ON COLUMN %s.temp_files IS %L', relation, 'Temporary files created in this database');
        EXECUTE format('COMMENT ON COLUMN %s.temp_bytes IS %L', relation, 'Bytes written to temporary files in this database');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_user IS %L', relation, 'Share of all processors'' time in user mode; the cpu_, memory_ and disk_ columns are NULL if the platform does not provide them');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_system IS %L', relation, 'Share of all processors'' time in the kernel, including interrupts');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_iowait IS %L', relation, 'Share of all processors'' time idle while I/O was pending');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_steal IS %L', relation, 'Share of all processors'' time that the hypervisor gave to other machines');
        EXECUTE format('COMMENT ON COLUMN %s.cpu_idle IS %L', relation, 'Share of all processors'' time idle');
        EXECUTE format('COMMENT ON COLUMN %s.memory_available_bytes IS %L', relation, 'Bytes of memory available without swapping, at the end of the interval');
        EXECUTE format('COMMENT ON COLUMN %s.memory_dirty_bytes IS %L', relation, 'Bytes written to files but not yet to disk, at the end of the interval');
        EXECUTE format('COMMENT ON COLUMN %s.disk_read_bytes IS %L', relation, 'Bytes the machine read from disks');
        EXECUTE format('COMMENT ON COLUMN %s.disk_written_bytes IS %L', relation, 'Bytes the machine wrote to disks');
        EXECUTE format('COMMENT ON COLUMN %s.throttled_secs IS %L', relation, 'Seconds during which the CPU quota of the server''s control group throttled it');
        EXECUTE format('COMMENT ON COLUMN %s.replay_lag_ms IS %L', relation, 'End of the interval: milliseconds for which replay on the standby is behind. Target a standby: age of the last commit it has replayed, 0 if it has replayed all WAL received; the clocks of both servers go into it. Otherwise: the greatest replay_lag of the server''s standbys in pg_stat_replication. NULL without a standby, or if the role may not see it');
        EXECUTE format('COMMENT ON COLUMN %s.replay_lag_bytes IS %L', relation, 'End of the interval: bytes of WAL that the standby has received (target a standby) or was sent (the standby furthest behind) and not yet replayed. NULL as replay_lag_ms');
        EXECUTE format('COMMENT ON COLUMN %s.waits IS %L', relation, 'Share of the clients'' time per wait event, as type:event. CPU: running on a processor; Runnable: waiting for a processor. The shares add up to 1');
    END LOOP;
END $$;

GRANT SELECT ON bench.workloads, bench.feeders, bench.fixtures, bench.samples, bench.warmup_samples, bench.latencies, bench.transactions, bench.standbys TO PUBLIC;

-- Results, the users' own workloads and fixtures, and the sequence go into dumps.
SELECT pg_extension_config_dump('bench.workloads', 'WHERE NOT builtin');
SELECT pg_extension_config_dump('bench.feeders', '');
SELECT pg_extension_config_dump('bench.fixtures', '');
SELECT pg_extension_config_dump('bench_internal.custom_fixtures', '');
SELECT pg_extension_config_dump('bench_internal.run_id_seq', '');
SELECT pg_extension_config_dump('bench_internal.run_log', '');
SELECT pg_extension_config_dump('bench_internal.sweep_id_seq', '');
SELECT pg_extension_config_dump('bench_internal.sweep_log', '');
SELECT pg_extension_config_dump('bench_internal.sweep_run_log', '');
SELECT pg_extension_config_dump('bench.samples', '');
SELECT pg_extension_config_dump('bench.warmup_samples', '');
SELECT pg_extension_config_dump('bench.latencies', '');
SELECT pg_extension_config_dump('bench.transactions', '');
SELECT pg_extension_config_dump('bench.standbys', '');
SELECT pg_extension_config_dump('bench_internal.error_log', '');
SELECT pg_extension_config_dump('bench_internal.script_log', '');
SELECT pg_extension_config_dump('bench_internal.statement_log', '');
SELECT pg_extension_config_dump('bench_internal.wait_log', '');
SELECT pg_extension_config_dump('bench_internal.event_log', '');
SELECT pg_extension_config_dump('bench_internal.relation_log', '');
SELECT pg_extension_config_dump('bench_internal.audit_log', '');
SELECT pg_extension_config_dump('bench_internal.node_log', '');
