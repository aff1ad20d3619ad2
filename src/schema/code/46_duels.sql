-- Duels: two arms that take turns in one run.
CREATE VIEW bench.duels WITH (security_barrier) AS
SELECT r.run_id, r.workload, r.duel -> 'a' AS a, r.duel -> 'b' AS b, r.clients, r.started_at, r.status,
       (SELECT sum(n) FROM bench_internal.duel_log d, unnest(d.transactions) AS n WHERE d.run_id = r.run_id AND d.arm = 'a')::bigint AS a_transactions,
       (SELECT sum(n) FROM bench_internal.duel_log d, unnest(d.transactions) AS n WHERE d.run_id = r.run_id AND d.arm = 'b')::bigint AS b_transactions
FROM bench_internal.run_log r
WHERE r.duel IS NOT NULL AND bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.duels IS 'One row per duel: a run with two arms. bench.duel_results compares them';
COMMENT ON COLUMN bench.duels.run_id IS 'The run';
COMMENT ON COLUMN bench.duels.workload IS 'Workload or mix';
COMMENT ON COLUMN bench.duels.a IS 'Arm a, as given';
COMMENT ON COLUMN bench.duels.b IS 'Arm b, as given';
COMMENT ON COLUMN bench.duels.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.duels.started_at IS 'Start of the run';
COMMENT ON COLUMN bench.duels.status IS 'As in bench.runs, without a look at whether the run is still under way';
COMMENT ON COLUMN bench.duels.a_transactions IS 'Measured transactions of arm a without an error';
COMMENT ON COLUMN bench.duels.b_transactions IS 'Measured transactions of arm b without an error';
GRANT SELECT ON bench.duels TO PUBLIC;

CREATE FUNCTION bench.duel(
    workload        text             DEFAULT NULL,
    a               jsonb            DEFAULT NULL,
    b               jsonb            DEFAULT NULL,
    margin          double precision DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS TABLE (metric text, a double precision, b double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_duel_wrapper';
COMMENT ON FUNCTION bench.duel IS
'Runs a workload once, with two arms that take turns every few milliseconds in each session, and compares them. Disturbances affect both arms equally. With margin, the run ends as soon as the verdict is certain. See bench.duels, bench.duel_statements and bench.duel_waits.';

CREATE FUNCTION bench.start_duel(
    workload        text             DEFAULT NULL,
    a               jsonb            DEFAULT NULL,
    b               jsonb            DEFAULT NULL,
    margin          double precision DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_duel_wrapper';
COMMENT ON FUNCTION bench.start_duel IS
'Starts a duel with the arguments of bench.duel and returns the run''s id immediately. bench.duel_results compares the arms when it has ended.';

CREATE FUNCTION bench.duel_results(run_id bigint, margin double precision DEFAULT NULL)
    RETURNS TABLE (metric text, a double precision, b double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'duel_results_wrapper';
COMMENT ON FUNCTION bench.duel_results IS
'Compares the arms of a duel, as bench.duel does: for each metric, the ratio b / a with its confidence interval and the verdict faster, slower, same or inconclusive; more or less for metrics that are not times.';

CREATE FUNCTION bench.compare_duels(run_ids bigint[], margin double precision DEFAULT 0.02)
    RETURNS TABLE (metric text, a double precision, b double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'compare_duels_wrapper';
COMMENT ON FUNCTION bench.compare_duels IS
'Compares the arms over several duels of the same arms, as bench.duel_results does of one. The interval is that between the duels: it contains what a single session, or a single duel, was lucky with.';

CREATE FUNCTION bench.duel_statements(run_id bigint, margin double precision DEFAULT NULL)
    RETURNS TABLE (workload text, command int, statement text, a_count bigint, b_count bigint, a_latency_avg_ms double precision,
                   b_latency_avg_ms double precision, ratio double precision, ratio_low double precision, ratio_high double precision,
                   a_cpu_us double precision, b_cpu_us double precision, cpu_ratio double precision, cpu_ratio_low double precision,
                   cpu_ratio_high double precision, verdict text, advice text, effect_us double precision, a_latency_p95_ms double precision, b_latency_p95_ms double precision,
                   a_rows double precision, b_rows double precision, a_plan text, b_plan text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'duel_statements_wrapper';
COMMENT ON FUNCTION bench.duel_statements IS
'Returns both arms of a duel side by side for each command of the scripts: executions, latencies and processor times with ratio and interval, the verdict, microseconds that it adds to a transaction of b, rows per execution, and plans. The intervals of all statements hold together.';

CREATE FUNCTION bench.duel_waits(run_id bigint)
    RETURNS TABLE (wait_event_type text, wait_event text, a_share double precision, b_share double precision, a_ms double precision,
                   b_ms double precision)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'duel_waits_wrapper';
COMMENT ON FUNCTION bench.duel_waits IS
'Returns what the transactions of both arms of a duel waited for: shares of each arm''s time, and milliseconds per transaction.';

CREATE FUNCTION bench.verify(
    workload        text             DEFAULT NULL,
    a               jsonb            DEFAULT NULL,
    b               jsonb            DEFAULT NULL,
    margin          double precision DEFAULT 0.05,
    rounds          int              DEFAULT 10,
    answers         int              DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS TABLE (workload text, command int, statement text, baseline_count bigint, candidate_count bigint,
                   baseline_share double precision, candidate_share double precision, baseline_ms double precision,
                   candidate_ms double precision, ratio double precision, ratio_low double precision, ratio_high double precision,
                   baseline_cpu_us double precision, candidate_cpu_us double precision, cpu_ratio double precision,
                   cpu_ratio_low double precision, cpu_ratio_high double precision,
                   p95_ratio double precision, p95_ratio_low double precision, p95_ratio_high double precision, verdict text, advice text,
                   effect double precision, baseline_rows double precision, candidate_rows double precision,
                   baseline_blocks double precision, candidate_blocks double precision, baseline_failed bigint, candidate_failed bigint,
                   plan_changed boolean, baseline_plan text, candidate_plan text, answers text, answer_example jsonb)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_verify_wrapper';
COMMENT ON FUNCTION bench.verify IS
'Runs a workload in two ways and returns a verdict on each statement, as bench.compare_statements does: in a duel where a and b can take turns in one run, otherwise in random pairs of runs, as bench.ab. With answers, bench.answers executes each statement so often before. See bench.verify_report.';

CREATE FUNCTION bench.verify_report(run_id bigint, format text DEFAULT 'text', margin double precision DEFAULT 0.05,
                                    max_missing double precision DEFAULT 0.05)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'verify_report_wrapper';
COMMENT ON FUNCTION bench.verify_report IS
'Returns a report of a duel, or of all pairs of runs that a run is part of, with the statements of both sides: text, markdown, json, html, schema or junit. junit has a test for each statement, which fails if the statement is slower or answers differently, or if its transactions fail more often; of a capture, statements that are not replayed are skipped, and one test fails if they took more than max_missing (a fraction) of the captured time.';

CREATE FUNCTION bench.answers(
    workload        text             DEFAULT NULL,
    a               jsonb            DEFAULT NULL,
    b               jsonb            DEFAULT NULL,
    executions      int              DEFAULT 100,
    tolerance       double precision DEFAULT 1e-9,
    key             text             DEFAULT NULL,
    examples        int              DEFAULT 3,
    limit_secs      double precision DEFAULT 60,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    query_mode      text             DEFAULT 'prepared',
    script          text             DEFAULT NULL,
    run_as          name             DEFAULT NULL
)
    RETURNS TABLE (workload text, command int, statement text, executions bigint, same bigint, differ bigint, unstable bigint,
                   failed_a bigint, failed_b bigint, verdict text, kind text, cause text, example jsonb, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'answers_wrapper';
COMMENT ON FUNCTION bench.answers IS
'Executes each statement of a workload in two arms with the same values and compares the rows, under one snapshot here, or over connections to the arms targets, whose data must stand still: the verdict is same, differs, unstable, fails or not compared. What statements write is rolled back; sequences move. Arms are those of bench.duel.';

CREATE FUNCTION bench.recall(
    workload        text             DEFAULT NULL,
    index           regclass         DEFAULT NULL,
    vary            jsonb            DEFAULT '{}',
    at_least        double precision DEFAULT 0.95,
    executions      int              DEFAULT 100,
    key             text             DEFAULT NULL,
    limit_secs      double precision DEFAULT 60,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    script          text             DEFAULT NULL,
    run_as          name             DEFAULT NULL
)
    RETURNS TABLE (settings jsonb, executions bigint, recall double precision, recall_min double precision,
                   recall_p5 double precision, short bigint, index_ms double precision, exact_ms double precision, picks boolean)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'recall_wrapper';
COMMENT ON FUNCTION bench.recall IS
'Compares the answers that queries get by an approximate index with the exact ones, which they get without it: the share of the exact rows that is returned, for each combination of the parameters in vary. picks marks the first combination whose mean is at_least.';

REVOKE ALL ON FUNCTION bench.answers, bench.duel, bench.recall, bench.start_duel, bench.verify FROM PUBLIC;
