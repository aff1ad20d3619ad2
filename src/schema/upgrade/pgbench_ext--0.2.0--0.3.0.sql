-- From 0.2.0 to 0.3.0: tables that were there. What is new the install SQL makes.

-- Tables that only views show are internal, with their sequences, and so is what jobs of pg_cron call.
ALTER TABLE bench.audit_log SET SCHEMA bench_internal;
ALTER TABLE bench.call_log SET SCHEMA bench_internal;
ALTER TABLE bench.capture_list SET SCHEMA bench_internal;
ALTER TABLE bench.error_log SET SCHEMA bench_internal;
ALTER TABLE bench.event_log SET SCHEMA bench_internal;
ALTER TABLE bench.load_log SET SCHEMA bench_internal;
ALTER TABLE bench.node_log SET SCHEMA bench_internal;
ALTER TABLE bench.relation_log SET SCHEMA bench_internal;
ALTER TABLE bench.run_log SET SCHEMA bench_internal;
ALTER TABLE bench.script_log SET SCHEMA bench_internal;
ALTER TABLE bench.statement_log SET SCHEMA bench_internal;
ALTER TABLE bench.sweep_log SET SCHEMA bench_internal;
ALTER TABLE bench.sweep_run_log SET SCHEMA bench_internal;
ALTER TABLE bench.wait_log SET SCHEMA bench_internal;
ALTER TABLE bench.custom_fixtures SET SCHEMA bench_internal;
UPDATE bench_internal.kept_grants SET object = 'bench_internal.' || regexp_replace(object, '^bench[.]', '')
WHERE object = 'bench.start_scheduled'
   OR kind IN ('TABLE', 'SEQUENCE') AND object ~ '^(bench[.])?([a-z_]+_log|capture_list|custom_fixtures|[a-z_]+_id_seq|summary_of_all)$';
DO $$ BEGIN
IF EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_class c ON c.oid = d.objid JOIN pg_roles r ON r.oid = c.relowner
           WHERE e.extname = 'pg_cron' AND d.classid = 'pg_class'::regclass AND d.deptype = 'e' AND d.objid = to_regclass('cron.job') AND r.rolsuper) THEN
    UPDATE cron.job SET command = replace(command, 'SELECT bench.start_scheduled(', 'SELECT bench_internal.start_scheduled(')
    WHERE starts_with(command, 'SELECT bench.start_scheduled(') AND database = current_database();
END IF;
END $$;

-- Whose rows are whose goes by OIDs: they are the roles' that have the names now.
ALTER TABLE bench.workloads ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.fixtures ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench_internal.custom_fixtures ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench_internal.run_log ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench_internal.sweep_log ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench_internal.capture_list ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench_internal.load_log ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench_internal.load_log ALTER COLUMN owner_oid DROP DEFAULT;
UPDATE bench.workloads SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = owner;
UPDATE bench.fixtures SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = owner;
UPDATE bench_internal.custom_fixtures SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = owner;
UPDATE bench_internal.run_log SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
UPDATE bench_internal.sweep_log SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
UPDATE bench_internal.capture_list SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
UPDATE bench_internal.load_log SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
DROP INDEX bench_internal.run_log_origin_key;

-- Captured statements run in sessions of the role that executed them, and theirs are the workloads. Of several roles, or of one
-- that nobody knows any more, they are nobody's: such a capture is to be made anew.
ALTER TABLE bench_internal.run_log ADD COLUMN run_as text;
ALTER TABLE bench.capture_statements ADD COLUMN role text;
UPDATE bench.capture_statements SET role = roles[1] WHERE cardinality(roles) = 1;
UPDATE bench.workloads w SET private = true, owner = coalesce(s.role, w.owner),
    owner_oid = coalesce((SELECT r.oid FROM pg_roles r WHERE r.rolname = s.role), 0)
FROM bench.capture_statements s WHERE s.workload = w.name AND s.kept;
ALTER TABLE bench.capture_statements DROP COLUMN roles;

-- Loads that have ended stay.
ALTER TABLE bench_internal.load_log ADD COLUMN status text NOT NULL DEFAULT 'running';
ALTER TABLE bench_internal.load_log ADD COLUMN started_at timestamptz NOT NULL DEFAULT clock_timestamp();
ALTER TABLE bench_internal.load_log ADD COLUMN finished_at timestamptz;
ALTER TABLE bench_internal.load_log ADD COLUMN error jsonb;

-- What a capture knows of the whole database, and what it has to put back.
ALTER TABLE bench_internal.capture_list ADD COLUMN activity jsonb;
ALTER TABLE bench_internal.capture_list ADD COLUMN system_settings jsonb;
ALTER TABLE bench.capture_statements ADD COLUMN statements int;
ALTER TABLE bench.samples ADD COLUMN wal_syncs bigint;
ALTER TABLE bench.warmup_samples ADD COLUMN wal_syncs bigint;

-- What the arms of a duel were, and did.
ALTER TABLE bench_internal.run_log ADD COLUMN duel jsonb;
CREATE TABLE bench_internal.duel_log (
    run_id       bigint NOT NULL,
    node         int NOT NULL DEFAULT 0,
    arm          text NOT NULL,
    transactions bigint[] NOT NULL,
    latency_ms   double precision[] NOT NULL,
    failed       bigint[] NOT NULL,
    retried      bigint[] NOT NULL,
    timed        bigint[] NOT NULL,
    busy_us      double precision[] NOT NULL,
    counted      bigint[] NOT NULL,
    blocks       bigint[] NOT NULL,
    wal_bytes    bigint[] NOT NULL,
    rows         bigint[] NOT NULL,
    latencies    jsonb NOT NULL,
    PRIMARY KEY (run_id, node, arm)
);
COMMENT ON TABLE bench_internal.duel_log IS 'One row per arm of a duel. Arrays have an element per batch: the measured time is divided into 64 batches, fewer if the run ended early';
COMMENT ON COLUMN bench_internal.duel_log.run_id IS 'The run';
COMMENT ON COLUMN bench_internal.duel_log.node IS 'As in bench.samples';
COMMENT ON COLUMN bench_internal.duel_log.arm IS 'a or b';
COMMENT ON COLUMN bench_internal.duel_log.transactions IS 'Transactions without an error';
COMMENT ON COLUMN bench_internal.duel_log.latency_ms IS 'Sum of their latencies in milliseconds, without lag';
COMMENT ON COLUMN bench_internal.duel_log.failed IS 'Transactions given up at an error';
COMMENT ON COLUMN bench_internal.duel_log.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench_internal.duel_log.timed IS 'Transactions whose processor time is known';
COMMENT ON COLUMN bench_internal.duel_log.busy_us IS 'Their processor time in microseconds';
COMMENT ON COLUMN bench_internal.duel_log.counted IS 'Transactions whose blocks, WAL and rows are known';
COMMENT ON COLUMN bench_internal.duel_log.blocks IS 'Blocks of shared buffers that they looked up';
COMMENT ON COLUMN bench_internal.duel_log.wal_bytes IS 'Bytes of WAL that they wrote';
COMMENT ON COLUMN bench_internal.duel_log.rows IS 'Rows that their statements returned or changed';
COMMENT ON COLUMN bench_internal.duel_log.latencies IS 'Array of histograms of all latencies, as bucket: count; bucket numbers as in bench.latencies, in order of low_ms';

CREATE TABLE bench_internal.duel_statement_log (
    run_id     bigint NOT NULL,
    node       int NOT NULL DEFAULT 0,
    script     int NOT NULL,
    command    int NOT NULL,
    executions bigint[] NOT NULL,
    latency_ms double precision[] NOT NULL,
    PRIMARY KEY (run_id, node, script, command)
);
COMMENT ON TABLE bench_internal.duel_statement_log IS 'One row per command of a duel, with arrays as in bench_internal.duel_log';
COMMENT ON COLUMN bench_internal.duel_statement_log.run_id IS 'The run';
COMMENT ON COLUMN bench_internal.duel_statement_log.node IS 'As in bench.samples';
COMMENT ON COLUMN bench_internal.duel_statement_log.script IS 'As in bench.statements';
COMMENT ON COLUMN bench_internal.duel_statement_log.command IS 'As in bench.statements';
COMMENT ON COLUMN bench_internal.duel_statement_log.executions IS 'Executions';
COMMENT ON COLUMN bench_internal.duel_statement_log.latency_ms IS 'Sum of their latencies in milliseconds';

CREATE TABLE bench_internal.duel_wait_log (
    run_id          bigint NOT NULL,
    node            int NOT NULL DEFAULT 0,
    arm             text NOT NULL,
    wait_event_type text NOT NULL,
    wait_event      text NOT NULL,
    share           double precision NOT NULL,
    PRIMARY KEY (run_id, node, arm, wait_event_type, wait_event)
);
COMMENT ON TABLE bench_internal.duel_wait_log IS 'One row per wait event of an arm of a duel, as bench.waits';
COMMENT ON COLUMN bench_internal.duel_wait_log.run_id IS 'The run';
COMMENT ON COLUMN bench_internal.duel_wait_log.node IS 'As in bench.samples';
COMMENT ON COLUMN bench_internal.duel_wait_log.arm IS 'a or b';
COMMENT ON COLUMN bench_internal.duel_wait_log.wait_event_type IS 'As in bench.waits';
COMMENT ON COLUMN bench_internal.duel_wait_log.wait_event IS 'As in bench.waits';
COMMENT ON COLUMN bench_internal.duel_wait_log.share IS 'Share of the time of the arm''s transactions; the shares of an arm add up to 1';
SELECT pg_catalog.pg_extension_config_dump('bench_internal.duel_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench_internal.duel_statement_log', '');
SELECT pg_catalog.pg_extension_config_dump('bench_internal.duel_wait_log', '');

-- No name that has to be quoted.
ALTER TABLE bench.feeders RENAME COLUMN "order" TO pick;

-- Settings that a driver's sessions do not support are called so.
UPDATE bench_internal.run_log SET environment = environment - 'unserved_defaults'
    || jsonb_build_object('unsupported_settings', environment -> 'unserved_defaults') WHERE environment ? 'unserved_defaults';
UPDATE bench_internal.node_log SET environment = environment - 'unserved_defaults'
    || jsonb_build_object('unsupported_settings', environment -> 'unserved_defaults') WHERE environment ? 'unserved_defaults';

-- What has another name keeps its users' grants.
UPDATE bench_internal.kept_grants SET object = 'bench.stop_capture' WHERE object = 'bench.cancel_capture';

-- Statements that change the database for runs of a sweep.
ALTER TABLE bench_internal.run_log ADD COLUMN applied text[] NOT NULL DEFAULT '{}';
ALTER TABLE bench_internal.run_log ADD COLUMN rates jsonb;
ALTER TABLE bench_internal.sweep_log ADD COLUMN changes jsonb;
COMMENT ON COLUMN bench_internal.sweep_log.changes IS 'What the SQL of its variants did, one element per time that it was applied; NULL: nothing. Read bench.sweep_changes instead.';
ALTER TABLE bench_internal.sweep_log ADD COLUMN waits_for jsonb;
COMMENT ON COLUMN bench_internal.sweep_log.waits_for IS 'The restart of the server that the sweep waits for; NULL: none. Read bench.sweeps instead.';
ALTER TABLE bench_internal.sweep_log DROP CONSTRAINT sweep_log_status_check,
    ADD CONSTRAINT sweep_log_status_check CHECK (status IN ('running', 'waiting for restart', 'completed', 'incomplete', 'canceled', 'failed', 'revert failed'));
