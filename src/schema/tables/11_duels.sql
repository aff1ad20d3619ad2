-- What the arms of a duel did.
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
    minor_faults bigint[] NOT NULL,
    alone        jsonb,
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
COMMENT ON COLUMN bench_internal.duel_log.minor_faults IS 'Minor page faults of the sessions meanwhile';
COMMENT ON COLUMN bench_internal.duel_log.alone IS 'Processor time (cpu_us) and minor page faults (minor_faults) per transaction before the measurement, in sessions that had executed no other arm, each with its standard error (…_error); NULL if there are too few';
COMMENT ON COLUMN bench_internal.duel_log.latencies IS 'Array of histograms of all latencies, as bucket: count; bucket numbers as in bench.latencies, in order of low_ms';

CREATE TABLE bench_internal.duel_statement_log (
    run_id     bigint NOT NULL,
    node       int NOT NULL DEFAULT 0,
    script     int NOT NULL,
    command    int NOT NULL,
    executions bigint[] NOT NULL,
    latency_ms double precision[] NOT NULL,
    timed      bigint[],
    busy_us    double precision[],
    PRIMARY KEY (run_id, node, script, command)
);
COMMENT ON TABLE bench_internal.duel_statement_log IS 'One row per command of a duel, with arrays as in bench_internal.duel_log';
COMMENT ON COLUMN bench_internal.duel_statement_log.run_id IS 'The run';
COMMENT ON COLUMN bench_internal.duel_statement_log.node IS 'As in bench.samples';
COMMENT ON COLUMN bench_internal.duel_statement_log.script IS 'As in bench.statements';
COMMENT ON COLUMN bench_internal.duel_statement_log.command IS 'As in bench.statements';
COMMENT ON COLUMN bench_internal.duel_statement_log.executions IS 'Executions';
COMMENT ON COLUMN bench_internal.duel_statement_log.latency_ms IS 'Sum of their latencies in milliseconds';
COMMENT ON COLUMN bench_internal.duel_statement_log.timed IS 'Executions whose processor time was read, a sample of them; 0 over connections';
COMMENT ON COLUMN bench_internal.duel_statement_log.busy_us IS 'Their processor time in microseconds';

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
SELECT pg_extension_config_dump('bench_internal.duel_log', '');
SELECT pg_extension_config_dump('bench_internal.duel_statement_log', '');
SELECT pg_extension_config_dump('bench_internal.duel_wait_log', '');
