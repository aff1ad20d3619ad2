-- What the arms of a duel did.
CREATE TABLE bench_internal.duel_log (
    run_id       bigint NOT NULL,
    node         int NOT NULL DEFAULT 0,
    arm          text NOT NULL,
    batch        int NOT NULL,
    transactions bigint NOT NULL,
    latency_ms   double precision NOT NULL,
    timed        bigint NOT NULL,
    busy_us      double precision NOT NULL,
    PRIMARY KEY (run_id, node, arm, batch)
);
COMMENT ON TABLE bench_internal.duel_log IS 'One row per arm of a duel and batch: the measured time is divided into 64 batches';
COMMENT ON COLUMN bench_internal.duel_log.run_id IS 'The run';
COMMENT ON COLUMN bench_internal.duel_log.node IS 'As in bench.samples';
COMMENT ON COLUMN bench_internal.duel_log.arm IS 'a or b';
COMMENT ON COLUMN bench_internal.duel_log.batch IS 'Number of the batch, from 0';
COMMENT ON COLUMN bench_internal.duel_log.transactions IS 'Transactions without an error';
COMMENT ON COLUMN bench_internal.duel_log.latency_ms IS 'Sum of their latencies in milliseconds';
COMMENT ON COLUMN bench_internal.duel_log.timed IS 'Transactions of stretches whose processor time was read';
COMMENT ON COLUMN bench_internal.duel_log.busy_us IS 'Processor time of these stretches in microseconds';
SELECT pg_catalog.pg_extension_config_dump('bench_internal.duel_log', '');
