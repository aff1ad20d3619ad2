-- Captures: what pg_stat_statements or the log has seen of an application, as a mix of workloads under one name. The
-- workloads and feeders themselves are in bench.workloads and bench.feeders.

CREATE TABLE bench_internal.capture_list (
    name        text PRIMARY KEY,
    role        text NOT NULL,
    source      text NOT NULL,
    options     jsonb NOT NULL DEFAULT '{}',
    status      text NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz,
    secs        double precision,
    pid         int,
    calls       bigint,
    exec_ms     double precision,
    dealloc     bigint,
    notes       text[] NOT NULL DEFAULT '{}',
    error       jsonb,
    owner_oid   oid NOT NULL DEFAULT 0,
    activity    jsonb,
    system_settings jsonb
);
COMMENT ON TABLE bench_internal.capture_list IS 'One row per capture, for bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.name IS 'Name of the capture';
COMMENT ON COLUMN bench_internal.capture_list.role IS 'Name that the role that captured had then';
COMMENT ON COLUMN bench_internal.capture_list.source IS 'statements: pg_stat_statements; log: the server''s log';
COMMENT ON COLUMN bench_internal.capture_list.options IS 'Options as given';
COMMENT ON COLUMN bench_internal.capture_list.status IS 'As in bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.started_at IS 'When the capture began';
COMMENT ON COLUMN bench_internal.capture_list.finished_at IS 'When the capture ended';
COMMENT ON COLUMN bench_internal.capture_list.secs IS 'Seconds captured; 0: everything that the view had';
COMMENT ON COLUMN bench_internal.capture_list.pid IS 'Process that captures';
COMMENT ON COLUMN bench_internal.capture_list.calls IS 'As in bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.exec_ms IS 'As in bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.dealloc IS 'As in bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.notes IS 'As in bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.error IS 'As in bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.activity IS 'As in bench.captures';
COMMENT ON COLUMN bench_internal.capture_list.system_settings IS 'Entries of postgresql.auto.conf for the logging parameters that the capture sets: own, what to restore, null where there was no entry; set, what is written; server, the system identifier and the OID of the database, as a copy of the database restores nothing. NULL once they are restored';
COMMENT ON COLUMN bench_internal.capture_list.owner_oid IS 'OID of the role that captured. 0, or a role that no longer exists: superusers only';

CREATE TABLE bench.capture_statements (
    capture          text NOT NULL,
    number           int NOT NULL,
    workload         text,
    weight           int,
    queryid          bigint,
    query            text,
    role             text,
    calls            bigint NOT NULL,
    rows             bigint,
    shared_blks_hit  bigint,
    shared_blks_read bigint,
    exec_ms          double precision,
    share            double precision NOT NULL,
    kept             boolean NOT NULL GENERATED ALWAYS AS (workload IS NOT NULL) STORED,
    reason           text,
    statements       int,
    PRIMARY KEY (capture, number)
);
COMMENT ON TABLE bench.capture_statements IS 'One row per statement of a capture, or per kind of transaction of a capture from the log: counters as captured, and whether a workload was made of it. Visible like bench.captures.';
COMMENT ON COLUMN bench.capture_statements.capture IS 'Name of the capture';
COMMENT ON COLUMN bench.capture_statements.number IS 'Place in the capture, from 1: the largest share first';
COMMENT ON COLUMN bench.capture_statements.workload IS 'Workload that was made of it; NULL: none';
COMMENT ON COLUMN bench.capture_statements.weight IS 'Its weight in the mix';
COMMENT ON COLUMN bench.capture_statements.queryid IS 'As in pg_stat_statements';
COMMENT ON COLUMN bench.capture_statements.query IS 'Text as pg_stat_statements has it; NULL: not visible to the role that captured, or lost';
COMMENT ON COLUMN bench.capture_statements.role IS 'Role that executed it, according to pg_stat_statements or the log; bench.workloads.owner is the role whose sessions execute its workload';
COMMENT ON COLUMN bench.capture_statements.calls IS 'Calls';
COMMENT ON COLUMN bench.capture_statements.rows IS 'Rows returned or changed by these calls';
COMMENT ON COLUMN bench.capture_statements.shared_blks_hit IS 'Blocks that they found in shared buffers';
COMMENT ON COLUMN bench.capture_statements.shared_blks_read IS 'Blocks that they read into shared buffers';
COMMENT ON COLUMN bench.capture_statements.exec_ms IS 'Their execution time in milliseconds';
COMMENT ON COLUMN bench.capture_statements.share IS 'Share of the execution time of all statements captured, kept or not';
COMMENT ON COLUMN bench.capture_statements.statements IS 'Statements of a transaction, BEGIN and COMMIT not counted; NULL: the row is one statement';
COMMENT ON COLUMN bench.capture_statements.kept IS 'True if a workload was made of it';
COMMENT ON COLUMN bench.capture_statements.reason IS 'Why no workload was made of it; for a kept statement, the omissions of its replay';

CREATE TABLE bench.captured_rows (
    workload   text NOT NULL,
    prefix     text NOT NULL,
    row_number int NOT NULL,
    weight     double precision,
    row        jsonb NOT NULL,
    PRIMARY KEY (workload, prefix, row_number)
);
COMMENT ON TABLE bench.captured_rows IS 'Parameter values that a capture has stored, because no table''s rows provide suitable values. Visible to members of the role whose sessions run the workload.';
COMMENT ON COLUMN bench.captured_rows.workload IS 'Workload that was made by the capture';
COMMENT ON COLUMN bench.captured_rows.prefix IS 'Prefix of the feeder that selects these rows';
COMMENT ON COLUMN bench.captured_rows.row_number IS 'Number of the row, from 1';
COMMENT ON COLUMN bench.captured_rows.weight IS 'How often it is to be drawn, relative to the others';
COMMENT ON COLUMN bench.captured_rows.row IS 'Values by the names of variables';

-- What pg_stat_statements counted of a run's statements, for bench.fidelity.
CREATE TABLE bench_internal.call_log (
    run_id           bigint NOT NULL,
    node             int NOT NULL DEFAULT 0,
    script           int NOT NULL,
    calls            bigint NOT NULL,
    rows             bigint NOT NULL,
    shared_blks_hit  bigint NOT NULL,
    shared_blks_read bigint NOT NULL,
    exec_ms          double precision NOT NULL,
    PRIMARY KEY (run_id, node, script)
);
COMMENT ON TABLE bench_internal.call_log IS 'One row per run and script of a capture: counters of pg_stat_statements for its statements, for bench.fidelity';
COMMENT ON COLUMN bench_internal.call_log.run_id IS 'The run';
COMMENT ON COLUMN bench_internal.call_log.node IS 'As in bench.samples';
COMMENT ON COLUMN bench_internal.call_log.script IS 'Number of the script in the run''s mix, from 0';
COMMENT ON COLUMN bench_internal.call_log.calls IS 'Calls of the script''s statements';
COMMENT ON COLUMN bench_internal.call_log.rows IS 'Rows that they returned or changed';
COMMENT ON COLUMN bench_internal.call_log.shared_blks_hit IS 'Blocks that they found in shared buffers';
COMMENT ON COLUMN bench_internal.call_log.shared_blks_read IS 'Blocks that they read into shared buffers';
COMMENT ON COLUMN bench_internal.call_log.exec_ms IS 'Their execution time in milliseconds';

SELECT pg_extension_config_dump('bench_internal.capture_list', '');
SELECT pg_extension_config_dump('bench.capture_statements', '');
SELECT pg_extension_config_dump('bench.captured_rows', '');
SELECT pg_extension_config_dump('bench_internal.call_log', '');
