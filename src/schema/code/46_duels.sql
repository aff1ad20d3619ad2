-- Duels: two arms that take turns in one run.
CREATE VIEW bench.duels WITH (security_barrier) AS
SELECT r.run_id, r.workload, r.duel -> 'a' AS a, r.duel -> 'b' AS b, r.clients, r.started_at, r.status,
       (SELECT sum(d.transactions) FROM bench_internal.duel_log d WHERE d.run_id = r.run_id AND d.arm = 'a')::bigint AS a_transactions,
       (SELECT sum(d.transactions) FROM bench_internal.duel_log d WHERE d.run_id = r.run_id AND d.arm = 'b')::bigint AS b_transactions
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
'Runs a workload once, with two arms that take turns every few milliseconds in each session, and compares their time per transaction. Disturbances affect both arms equally. See bench.duels and bench.duel_statements.';

CREATE FUNCTION bench.start_duel(
    workload        text             DEFAULT NULL,
    a               jsonb            DEFAULT NULL,
    b               jsonb            DEFAULT NULL,
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
'Compares the arms of a duel, as bench.duel does: for each metric, the ratio b / a with its 95 % confidence interval and the verdict faster, slower, same or inconclusive.';

CREATE FUNCTION bench.duel_statements(run_id bigint)
    RETURNS TABLE (workload text, command int, statement text, a_count bigint, b_count bigint, a_latency_avg_ms double precision,
                   b_latency_avg_ms double precision, ratio double precision, a_latency_p95_ms double precision,
                   b_latency_p95_ms double precision, a_rows double precision, b_rows double precision, a_plan text, b_plan text)
    STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT left(s.workload, -4), a.command, a.statement, a.count, b.count, a.latency_avg_ms, b.latency_avg_ms,
           b.latency_avg_ms / nullif(a.latency_avg_ms, 0), a.latency_p95_ms, b.latency_p95_ms,
           a.rows::double precision / nullif(a.generic_plans + a.custom_plans, 0), b.rows::double precision / nullif(b.generic_plans + b.custom_plans, 0),
           a.plan, b.plan
    FROM bench.duels d
    JOIN bench.statements a ON a.run_id = d.run_id AND a.script % 2 = 0
    JOIN bench.statements b ON b.run_id = a.run_id AND b.node = a.node AND b.script = a.script + 1 AND b.command = a.command
    JOIN bench.scripts s ON s.run_id = a.run_id AND s.node = a.node AND s.script = a.script
    WHERE d.run_id = duel_statements.run_id
    ORDER BY a.script, a.command;
END;
COMMENT ON FUNCTION bench.duel_statements IS
'Returns both arms of a duel side by side for each command of the scripts: executions, latencies, rows per execution, and plans.';

REVOKE ALL ON FUNCTION bench.duel, bench.start_duel FROM PUBLIC;
