-- Experiments: sweeps, comparisons, and what runs of the same kind say over time.

CREATE FUNCTION bench.sweep(
    workload        text             DEFAULT NULL,
    clients         int[]            DEFAULT NULL,
    rounds          int              DEFAULT 1,
    variants        jsonb            DEFAULT '{}',
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_sweep_wrapper';
COMMENT ON FUNCTION bench.sweep IS
'Runs a workload with each number of clients, in each variant, for several rounds, waits for all runs to end, and returns the sweep''s id. Each round runs in random order; server parameters of variants are restored at the end. SELECT * FROM bench.help(''sweep'') describes the arguments.';

CREATE FUNCTION bench.start_sweep(
    workload        text             DEFAULT NULL,
    clients         int[]            DEFAULT NULL,
    rounds          int              DEFAULT 1,
    variants        jsonb            DEFAULT '{}',
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_sweep_wrapper';
COMMENT ON FUNCTION bench.start_sweep IS
'Starts a sweep with the arguments of bench.sweep and returns its id immediately; the sweep does not depend on the session. See bench.wait_sweep, bench.stop_sweep and bench.sweeps.';

CREATE FUNCTION bench_internal.prewarm(relation oid)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prewarm_table_wrapper';
COMMENT ON FUNCTION bench_internal.prewarm IS
'Reads a table, its TOAST table and the indexes of both into shared buffers and returns the number of blocks read; 0 for a partitioned table, which has no blocks. Requires SELECT on the table. For sweeps with before => ''prewarm''.';

CREATE FUNCTION bench.wait_sweep(sweep_id bigint, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_sweep_wrapper';
COMMENT ON FUNCTION bench.wait_sweep IS
'Waits until a sweep has ended, or for timeout seconds (NULL: no limit), and returns the sweep''s status. Canceling the wait does not stop the sweep.';

CREATE FUNCTION bench.stop_sweep(sweep_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'stop_sweep_wrapper';
COMMENT ON FUNCTION bench.stop_sweep IS
'Stops a sweep and its active run, and keeps the results; bench.resume_sweep can continue it. Of a sweep that waits for a restart, restores postgresql.auto.conf. Returns false if the sweep was neither active nor waiting. Requires the privileges of the sweep''s role or of pg_signal_backend.';

CREATE FUNCTION bench.resume_sweep(sweep_id bigint, start_failure text DEFAULT NULL)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_resume_sweep_wrapper';
COMMENT ON FUNCTION bench.resume_sweep IS
'Continues a sweep after a stop, a crash or a server restart: performs the runs that are missing or did not complete, in their order. start_failure: why the server did not start with the settings that the sweep waits for; the runs of that variant then fail. Returns immediately, like bench.start_sweep. Only the sweep''s role can resume it.';

CREATE FUNCTION bench_internal.sweep_status_of(status text, segment bigint, sweep_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_status_of_wrapper';
COMMENT ON FUNCTION bench_internal.sweep_status_of IS 'Status of a sweep: crashed if its leader no longer exists and has not recorded the end.';

CREATE FUNCTION bench_internal.sweep_progress(segment bigint, sweep_id bigint)
    RETURNS TABLE (done int, total int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_progress_wrapper';
COMMENT ON FUNCTION bench_internal.sweep_progress IS 'Progress of an active sweep in runs, for bench.sweeps.';

CREATE FUNCTION bench.sweep_report(sweep_id bigint, format text DEFAULT 'text')
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_report_wrapper';
COMMENT ON FUNCTION bench.sweep_report IS
'Returns a report of a sweep in a format of bench.report: TPS and latencies by clients and variant, scalability, and curves.';

CREATE FUNCTION bench.scalability(sweep_id bigint)
    RETURNS TABLE (variant text, lambda double precision, sigma double precision, kappa double precision,
                   peak_clients double precision, peak_tps double precision, r2 double precision, verdict text,
                   lambda_low double precision, lambda_high double precision, sigma_low double precision, sigma_high double precision,
                   kappa_low double precision, kappa_high double precision, peak_clients_low double precision,
                   peak_clients_high double precision, peak_tps_low double precision, peak_tps_high double precision)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'scalability_wrapper';
COMMENT ON FUNCTION bench.scalability IS
'Fits Gunther''s universal scalability law to the completed runs of each variant of a sweep, and returns its parameters and peak with 95 % intervals: lambda (TPS of one client), sigma (contention), kappa (crosstalk). verdict is fits, no peak, does not fit, or not enough rungs (fewer than four numbers of clients).';

CREATE FUNCTION bench.compare(baseline bigint[], candidate bigint[], margin double precision DEFAULT 0.02)
    RETURNS TABLE (metric text, baseline double precision, candidate double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text, differences jsonb, script text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_compare_wrapper';
COMMENT ON FUNCTION bench.compare IS
'Compares two sets of completed runs: for each metric, the ratio candidate / baseline with its interval and the verdict same, faster, slower or inconclusive. advice estimates how many runs per side would decide; in the row of tps, differences lists settings, versions and machines that are not the same in all runs. For a mix, the mean latency of each script follows.';

CREATE FUNCTION bench.compare_statements(baseline bigint[], candidate bigint[], margin double precision DEFAULT 0.02)
    RETURNS TABLE (workload text, command int, statement text, baseline_count bigint, candidate_count bigint,
                   baseline_share double precision, candidate_share double precision, baseline_ms double precision,
                   candidate_ms double precision, ratio double precision, ratio_low double precision, ratio_high double precision,
                   p95_ratio double precision, p95_ratio_low double precision, p95_ratio_high double precision, verdict text, advice text,
                   effect double precision, baseline_rows double precision, candidate_rows double precision,
                   baseline_blocks double precision, candidate_blocks double precision, baseline_failed bigint, candidate_failed bigint,
                   plan_changed boolean, baseline_plan text, candidate_plan text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'compare_statements_wrapper';
COMMENT ON FUNCTION bench.compare_statements IS
'Compares two sets of completed runs statement by statement: executions, shares of the time, the ratio candidate / baseline of mean latency and p95 with intervals, rows, blocks, errors and plans. The verdicts on all statements hold together (Holm). effect is how much longer a transaction takes because of the statement; the costliest comes first.';

CREATE FUNCTION bench.compare_report(baseline bigint[], candidate bigint[], format text DEFAULT 'text', margin double precision DEFAULT 0.02,
                                     paired boolean DEFAULT false)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'compare_report_wrapper';
COMMENT ON FUNCTION bench.compare_report IS
'Returns a report of two sets of completed runs in a format of bench.report: verdict, ratios with intervals, waits, plans, settings and machines that differ, and plots. With paired, runs at the same position of both arrays form a pair.';

CREATE FUNCTION bench.ab(
    workload        text             DEFAULT NULL,
    a               jsonb            DEFAULT NULL,
    b               jsonb            DEFAULT NULL,
    rounds          int              DEFAULT 10,
    margin          double precision DEFAULT 0.02,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS TABLE (metric text, baseline double precision, candidate double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text, differences jsonb, script text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_ab_wrapper';
COMMENT ON FUNCTION bench.ab IS
'Runs a workload under two variants in random pairs, waits for all runs to end, and compares them within the pairs; the runs are stored as a sweep. Returns the columns of bench.compare; bench.compare_report reports on the same runs.';

CREATE FUNCTION bench.change_points(workload text, metric text DEFAULT 'tps', tags jsonb DEFAULT '{}', margin double precision DEFAULT 0.02)
    RETURNS TABLE (run_id bigint, at timestamptz, before double precision, after double precision, change double precision,
                   p double precision, change_low double precision, change_high double precision, differences jsonb)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_change_points_wrapper';
COMMENT ON FUNCTION bench.change_points IS
'Finds the runs at which the results of a workload shifted to another level, in the last 1000 runs of each series of bench.history with these tags. Returns the first run of each new level, the mean levels before and after, the relative change with its 95 % interval, the significance, and what else differs between the runs before and after, as bench.compare has it.';

CREATE FUNCTION bench.calibrate(
    workload        text             DEFAULT NULL,
    rounds          int              DEFAULT 10,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS TABLE (metric text, mean double precision, cv double precision, cv_low double precision, cv_high double precision,
                   rounds int, detectable double precision, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_calibrate_wrapper';
COMMENT ON FUNCTION bench.calibrate IS
'Repeats a workload in equal runs, waits for all runs to end, and returns how much they vary (cv) and which differences a comparison of 3, 5, 10 and 20 runs per side can show (detectable). The runs are stored as a sweep.';

CREATE FUNCTION bench.capacity(
    workload        text             DEFAULT NULL,
    latency_limits  double precision[] DEFAULT NULL,
    percentile      double precision DEFAULT 0.99,
    trials          int              DEFAULT 3,
    margin          double precision DEFAULT 0.05,
    rounds          int              DEFAULT 1,
    max_failed      double precision DEFAULT 0,
    clients         int              DEFAULT NULL,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_capacity_wrapper';
COMMENT ON FUNCTION bench.capacity IS
'Searches for the highest rate of transactions that a server sustains within latency_limit at the percentile, waits for the search to end, and returns its id as a sweep. See bench.capacities, bench.sweep_report and SELECT * FROM bench.help(''capacity'').';

CREATE FUNCTION bench.start_capacity(
    workload        text             DEFAULT NULL,
    latency_limits  double precision[] DEFAULT NULL,
    percentile      double precision DEFAULT 0.99,
    trials          int              DEFAULT 3,
    margin          double precision DEFAULT 0.05,
    rounds          int              DEFAULT 1,
    max_failed      double precision DEFAULT 0,
    clients         int              DEFAULT NULL,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_capacity_wrapper';
COMMENT ON FUNCTION bench.start_capacity IS
'Starts a search with the arguments of bench.capacity and returns its id as a sweep immediately; the search does not depend on the session. See bench.wait_sweep, bench.stop_sweep, bench.resume_sweep and bench.capacities.';

CREATE FUNCTION bench.screen(
    workload        text             DEFAULT NULL,
    factors         jsonb            DEFAULT NULL,
    rounds          int              DEFAULT 2,
    margin          double precision DEFAULT 0.02,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS TABLE (factor text, a text, b text, effect double precision, effect_low double precision, effect_high double precision,
                   verdict text, aliases text, error text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_screen_wrapper';
COMMENT ON FUNCTION bench.screen IS
'Finds which of up to 15 settings matter for a workload: factors has two values for each. Settings of the session are compared by duels, those of the server by runs of combinations in random order. Returns, with intervals that hold together, the change of TPS (with rate: of the mean latency) from the first value to the second, the largest first. The runs are stored as a sweep.';

CREATE FUNCTION bench.start_screen(
    workload        text             DEFAULT NULL,
    factors         jsonb            DEFAULT NULL,
    rounds          int              DEFAULT 2,
    margin          double precision DEFAULT 0.02,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_screen_wrapper';
COMMENT ON FUNCTION bench.start_screen IS
'Starts a screen with the arguments of bench.screen and returns its id as a sweep immediately; the screen does not depend on the session. See bench.wait_sweep, bench.stop_sweep, bench.resume_sweep and bench.screen_results.';

CREATE FUNCTION bench.screen_results(sweep_id bigint, metric text DEFAULT NULL, margin double precision DEFAULT NULL)
    RETURNS TABLE (factor text, a text, b text, effect double precision, effect_low double precision, effect_high double precision,
                   verdict text, aliases text, error text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'screen_results_wrapper';
COMMENT ON FUNCTION bench.screen_results IS
'Returns what the runs of a screen show so far, as bench.screen. metric: tps, latency_avg_ms or server_cpu_us; NULL: tps, with rate the latency. margin NULL: that of the screen.';

CREATE FUNCTION bench.index_worth(
    workload        text             DEFAULT NULL,
    index           text             DEFAULT NULL,
    rounds          int              DEFAULT 1,
    margin          double precision DEFAULT 0.02,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS TABLE (index text, bytes bigint, saved_us double precision, saved_low double precision, saved_high double precision,
                   cost_us double precision, cost_low double precision, cost_high double precision, verdict text, definition text,
                   reads_run_id bigint, writes_run_id bigint, error text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_index_worth_wrapper';
COMMENT ON FUNCTION bench.index_worth IS
'Finds what indexes are worth to a workload: all valid ones of the tables that its statements name, also behind views, or the one named, or one that a CREATE INDEX would make. A duel with the index hidden from the planner says what it saves; another one, on copies of the table with it and without it, what it costs to maintain. Times are microseconds of a transaction. The runs are stored as a sweep; no index of yours is dropped.';

CREATE FUNCTION bench.start_index_worth(
    workload        text             DEFAULT NULL,
    index           text             DEFAULT NULL,
    rounds          int              DEFAULT 1,
    margin          double precision DEFAULT 0.02,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_index_worth_wrapper';
COMMENT ON FUNCTION bench.start_index_worth IS
'Starts what bench.index_worth does, with its arguments, and returns its id as a sweep immediately. See bench.wait_sweep, bench.stop_sweep, bench.resume_sweep and bench.index_worth_results.';

CREATE FUNCTION bench.index_worth_results(sweep_id bigint, metric text DEFAULT NULL, margin double precision DEFAULT NULL)
    RETURNS TABLE (index text, bytes bigint, saved_us double precision, saved_low double precision, saved_high double precision,
                   cost_us double precision, cost_low double precision, cost_high double precision, verdict text, definition text,
                   reads_run_id bigint, writes_run_id bigint, error text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'index_worth_results_wrapper';
COMMENT ON FUNCTION bench.index_worth_results IS
'Returns what the runs of bench.index_worth show so far. metric: latency_avg_ms, or server_cpu_us for processor time, both in microseconds; NULL: processor time if clients spent more than 5 % of their time waiting for a processor. margin NULL: as given.';

CREATE FUNCTION bench.rehearse(
    workload        text             DEFAULT NULL,
    change          jsonb            DEFAULT NULL,
    blocker         text             DEFAULT NULL,
    blocker_secs    double precision DEFAULT 3,
    lock_timeout    double precision DEFAULT NULL,
    tries           int              DEFAULT 1,
    pause           double precision DEFAULT 1,
    quiet_secs      double precision DEFAULT 5,
    wait_limit      double precision DEFAULT 1,
    give_up         double precision DEFAULT 60,
    change_limit    double precision DEFAULT 600,
    alternative     boolean          DEFAULT false,
    undo            text             DEFAULT 'revert',
    clients         int              DEFAULT NULL,
@run_arguments@
)
    RETURNS TABLE (variant text, verdict text, longest_wait_ms double precision, quiet_longest_ms double precision, waited bigint,
                   transactions bigint, failed jsonb, secs_without_commit double precision, tps_before double precision,
                   tps_during double precision, tps_after double precision, back_secs double precision, change_secs double precision,
                   tries int, lock_wait_secs double precision, held_secs double precision, lock_mode text, locked text,
                   blocked_by jsonb, most_queued int, wal_bytes bigint, made_bytes bigint, least_disk_free_bytes bigint,
                   replay_lag_ms double precision, plans jsonb, better text, statements text, answer text, error text, run_id bigint)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_rehearse_wrapper';
COMMENT ON FUNCTION bench.rehearse IS
'Rehearses a change of the database under load: runs the workload, makes the change in the middle of the run, waits until throughput is back, undoes the change, and returns what the clients felt: safe, or whom it blocks for how long, what it breaks and what it slows. change has apply and revert, texts as psql -c takes them. blocker: a transaction that is open when the change begins. The load has the rate given, or half of what a closed loop reaches. See SELECT * FROM bench.help(''rehearse'').';

CREATE FUNCTION bench.start_rehearse(
    workload        text             DEFAULT NULL,
    change          jsonb            DEFAULT NULL,
    blocker         text             DEFAULT NULL,
    blocker_secs    double precision DEFAULT 3,
    lock_timeout    double precision DEFAULT NULL,
    tries           int              DEFAULT 1,
    pause           double precision DEFAULT 1,
    quiet_secs      double precision DEFAULT 5,
    wait_limit      double precision DEFAULT 1,
    give_up         double precision DEFAULT 60,
    change_limit    double precision DEFAULT 600,
    alternative     boolean          DEFAULT false,
    undo            text             DEFAULT 'revert',
    clients         int              DEFAULT NULL,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_rehearse_wrapper';
COMMENT ON FUNCTION bench.start_rehearse IS
'Starts what bench.rehearse does, with its arguments, and returns its id as a sweep immediately. See bench.wait_sweep, bench.stop_sweep, bench.resume_sweep and bench.rehearse_results.';

CREATE FUNCTION bench.rehearse_results(sweep_id bigint)
    RETURNS TABLE (variant text, verdict text, longest_wait_ms double precision, quiet_longest_ms double precision, waited bigint,
                   transactions bigint, failed jsonb, secs_without_commit double precision, tps_before double precision,
                   tps_during double precision, tps_after double precision, back_secs double precision, change_secs double precision,
                   tries int, lock_wait_secs double precision, held_secs double precision, lock_mode text, locked text,
                   blocked_by jsonb, most_queued int, wal_bytes bigint, made_bytes bigint, least_disk_free_bytes bigint,
                   replay_lag_ms double precision, plans jsonb, better text, statements text, answer text, error text, run_id bigint)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'rehearse_results_wrapper';
COMMENT ON FUNCTION bench.rehearse_results IS
'Returns what a rehearsal has shown so far, as bench.rehearse: a row for the change, and one for its alternative.';

CREATE FUNCTION bench.rehearse_report(sweep_id bigint, format text DEFAULT 'text')
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'rehearse_report_wrapper';
COMMENT ON FUNCTION bench.rehearse_report IS
'Returns a report of a rehearsal in a format of bench.report, or as junit: the verdict, the course, the queue for locks, and a plot with the change shaded.';

CREATE VIEW bench.rehearsal_steps WITH (security_barrier) AS
SELECT s.sweep_id, c.change ->> 'variant' AS variant, (r.rehearsal ->> 'run_id')::bigint AS run_id, p.step,
       p.began, p.ended
FROM bench_internal.sweep_log s
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(s.changes) = 'array' THEN s.changes END) AS c (change)
CROSS JOIN LATERAL (SELECT c.change -> 'rehearsal') AS r (rehearsal)
CROSS JOIN LATERAL (VALUES
    (1, 'quiet', 0, (r.rehearsal ->> 'change_begin')::float8),
    (2, 'blocker', (r.rehearsal ->> 'blocker_begin')::float8, (r.rehearsal ->> 'blocker_end')::float8),
    (3, 'change', (r.rehearsal ->> 'change_begin')::float8, (r.rehearsal ->> 'change_end')::float8),
    (4, 'recovery', (r.rehearsal ->> 'change_end')::float8, (r.rehearsal ->> 'back')::float8)
) AS p (place, step, began, ended)
WHERE bench_internal.is_visible(s.owner_oid) AND jsonb_typeof(r.rehearsal) = 'object' AND p.began IS NOT NULL;
COMMENT ON VIEW bench.rehearsal_steps IS 'Course of each rehearsal by bench.rehearse: one row per step';
COMMENT ON COLUMN bench.rehearsal_steps.sweep_id IS 'The rehearsal, as a sweep';
COMMENT ON COLUMN bench.rehearsal_steps.variant IS 'change or alternative';
COMMENT ON COLUMN bench.rehearsal_steps.run_id IS 'The run in which it was rehearsed';
COMMENT ON COLUMN bench.rehearsal_steps.step IS 'quiet (load alone), blocker, change, or recovery (until throughput is back)';
COMMENT ON COLUMN bench.rehearsal_steps.began IS 'Begin, in seconds since the measurement began, as elapsed of bench.samples';
COMMENT ON COLUMN bench.rehearsal_steps.ended IS 'End, likewise; NULL: not before the end of the run';

CREATE VIEW bench.rehearsal_queue WITH (security_barrier) AS
SELECT s.sweep_id, c.change ->> 'variant' AS variant, (r.rehearsal ->> 'run_id')::bigint AS run_id, (q.wait ->> 'pid')::int AS pid,
       q.wait ->> 'session' AS session, q.wait ->> 'mode' AS mode, q.wait ->> 'locked' AS locked,
       ARRAY(SELECT b::int FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(q.wait -> 'blocked_by') = 'array' THEN q.wait -> 'blocked_by' END) AS b) AS blocked_by,
       (q.wait ->> 'begin')::float8 AS began, (q.wait ->> 'end')::float8 AS ended
FROM bench_internal.sweep_log s
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(s.changes) = 'array' THEN s.changes END) AS c (change)
CROSS JOIN LATERAL (SELECT c.change -> 'rehearsal') AS r (rehearsal)
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(r.rehearsal -> 'queue') = 'array' THEN r.rehearsal -> 'queue' END) AS q (wait)
WHERE bench_internal.is_visible(s.owner_oid);
COMMENT ON VIEW bench.rehearsal_queue IS 'Sessions that waited for locks while a change was rehearsed, looked at every 20 ms: one row per wait, at most 1000';
COMMENT ON COLUMN bench.rehearsal_queue.sweep_id IS 'The rehearsal, as a sweep';
COMMENT ON COLUMN bench.rehearsal_queue.variant IS 'change or alternative';
COMMENT ON COLUMN bench.rehearsal_queue.run_id IS 'The run in which it was rehearsed';
COMMENT ON COLUMN bench.rehearsal_queue.pid IS 'Process that waited';
COMMENT ON COLUMN bench.rehearsal_queue.session IS 'change, client, or other';
COMMENT ON COLUMN bench.rehearsal_queue.mode IS 'Mode of the lock, as in pg_locks';
COMMENT ON COLUMN bench.rehearsal_queue.locked IS 'Table or index that the lock is on, or the kind of another object';
COMMENT ON COLUMN bench.rehearsal_queue.blocked_by IS 'Processes that it waited for when it was first seen';
COMMENT ON COLUMN bench.rehearsal_queue.began IS 'Begin of the wait, in seconds since the measurement began';
COMMENT ON COLUMN bench.rehearsal_queue.ended IS 'When the wait was last seen, likewise';

REVOKE ALL ON FUNCTION bench.rehearse, bench.start_rehearse, bench.index_worth, bench.start_index_worth, bench.sweep, bench.start_sweep, bench.resume_sweep, bench.ab, bench.calibrate, bench.capacity, bench.start_capacity, bench.screen, bench.start_screen FROM PUBLIC;

CREATE VIEW bench.sweeps WITH (security_barrier) AS
SELECT s.sweep_id, s.options ->> 'workload' AS workload,
       ARRAY(SELECT c.value::int FROM jsonb_array_elements(CASE WHEN jsonb_typeof(s.options -> 'clients') = 'array' THEN s.options -> 'clients' END) WITH ORDINALITY AS c (value, place) ORDER BY c.place) AS clients,
       (s.options ->> 'secs')::float8 AS secs, CASE WHEN jsonb_exists(s.options, 'until') THEN n.rounds ELSE (s.options ->> 'rounds')::int END AS rounds, s.options -> 'variants' AS variants,
       (s.options ->> 'warmup')::float8 AS warmup, (s.options ->> 'rate')::float8 AS rate,
       s.options -> 'variables' AS variables, s.options -> 'settings' AS settings,
       ARRAY(SELECT b.value FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(s.options -> 'before') = 'array' THEN s.options -> 'before' END) WITH ORDINALITY AS b (value, place) ORDER BY b.place) AS before,
       (s.options ->> 'seed')::bigint AS seed, s.options ->> 'query_mode' AS query_mode, s.options ->> 'nodes' AS nodes, s.options -> 'tags' AS tags,
       bench_internal.sweep_status_of(s.status, s.segment, s.sweep_id) AS status, n.runs, n.completed, s.started_at, s.resumed_at, s.finished_at,
       -- The remaining runs take as long, each, as those since the sweep began or was resumed.
       CASE WHEN n.since > 0 AND isfinite(coalesce(s.resumed_at, s.started_at)) THEN extract(epoch FROM clock_timestamp() - coalesce(s.resumed_at, s.started_at)) / n.since * (p.total - p.done)
       END::double precision AS remaining,
       bench_internal.role_name(s.owner_oid, s.role) AS role, s.error, s.server_version, s.extension_version, coalesce(s.options -> 'run', '{}') AS run, s.options -> 'search' AS search,
       CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE') THEN s.waits_for - '{place,failed,server_start}'::text[] END AS waits_for
FROM bench_internal.sweep_log s
CROSS JOIN LATERAL (
    SELECT count(*)::int AS runs, (count(*) FILTER (WHERE r.status = 'completed' AND l.error IS NULL))::int AS completed,
           count(*) FILTER (WHERE r.finished_at >= coalesce(s.resumed_at, s.started_at)) AS since, max(l.round) AS rounds
    FROM bench_internal.sweep_run_log l LEFT JOIN bench_internal.run_log r USING (run_id) WHERE l.sweep_id = s.sweep_id
) n
LEFT JOIN LATERAL bench_internal.sweep_progress(s.segment, s.sweep_id) p ON s.status = 'running'
WHERE bench_internal.is_visible(s.owner_oid);
COMMENT ON VIEW bench.sweeps IS 'One row per sweep: its arguments, status and progress. Visible to roles with the privileges of the sweep''s role or of pg_read_all_stats.';
COMMENT ON COLUMN bench.sweeps.sweep_id IS 'The sweep';
COMMENT ON COLUMN bench.sweeps.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.sweeps.clients IS 'Numbers of concurrent sessions';
COMMENT ON COLUMN bench.sweeps.secs IS 'Measured seconds of each run';
COMMENT ON COLUMN bench.sweeps.rounds IS 'Runs of each variant with each number of clients';
COMMENT ON COLUMN bench.sweeps.variants IS 'Variants: name, settings, variables, load, system, restart, sql, schemas, duel, run; a single one without a name if none were given';
COMMENT ON COLUMN bench.sweeps.warmup IS 'Seconds of warm-up before the measurement of each run; NULL: until its throughput was steady';
COMMENT ON COLUMN bench.sweeps.rate IS 'Target transactions per second of each run; NULL: each client starts a transaction when its last one ends';
COMMENT ON COLUMN bench.sweeps.variables IS 'Script variables of all runs';
COMMENT ON COLUMN bench.sweeps.settings IS 'Configuration parameters set for every client of all runs';
COMMENT ON COLUMN bench.sweeps.before IS 'Actions before each run';
COMMENT ON COLUMN bench.sweeps.seed IS 'Seed of the order of the runs and of their random numbers, which are the same for all runs of a round';
COMMENT ON COLUMN bench.sweeps.query_mode IS 'As in bench.runs';
COMMENT ON COLUMN bench.sweeps.nodes IS 'Nodes on which the clients run, as in bench.runs';
COMMENT ON COLUMN bench.sweeps.tags IS 'Labels chosen by the user, also set on each run';
COMMENT ON COLUMN bench.sweeps.status IS 'running, waiting for restart (bench.resume_sweep continues it then), completed, incomplete (some runs are missing or did not complete), canceled, failed (no run completed), revert failed (what a variant''s sql changed in the database is still there; error says what, and bench.resume_sweep tries again) or crashed (the leader is gone)';
COMMENT ON COLUMN bench.sweeps.runs IS 'Number of planned runs';
COMMENT ON COLUMN bench.sweeps.completed IS 'Number of completed runs';
COMMENT ON COLUMN bench.sweeps.started_at IS 'When the sweep started';
COMMENT ON COLUMN bench.sweeps.resumed_at IS 'When the sweep was last resumed';
COMMENT ON COLUMN bench.sweeps.finished_at IS 'When the sweep ended';
COMMENT ON COLUMN bench.sweeps.remaining IS 'Estimated seconds until the end; NULL if the sweep is not active or no run has ended yet';
COMMENT ON COLUMN bench.sweeps.role IS 'Role that called, and that the clients run as';
COMMENT ON COLUMN bench.sweeps.error IS 'Reason for not completing: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.sweeps.server_version IS 'server_version at the start of the sweep';
COMMENT ON COLUMN bench.sweeps.extension_version IS 'Version of the extension at the start of the sweep';
COMMENT ON COLUMN bench.sweeps.run IS 'driver, target, jobs and reconnect of all runs, as in bench.runs, where they are not the defaults';
COMMENT ON COLUMN bench.sweeps.waits_for IS 'The restart that the sweep waits for: command, variant, set (the settings in postgresql.auto.conf), own (what to restore there), pending (settings that the restart changes). Visible to roles with the privileges of pg_read_all_settings';
COMMENT ON COLUMN bench.sweeps.search IS 'For a search by bench.capacity: latency_limits_ms, percentile, trials, margin, max_failed and rounds; NULL for other sweeps';

CREATE VIEW bench.sweep_changes WITH (security_barrier) AS
SELECT s.sweep_id, c.round, c.variant, c.apply_secs, c.revert_secs, c.made, c.made_bytes, c.error,
       CASE WHEN c.revert_secs IS NULL THEN ARRAY(
           SELECT t.value FROM jsonb_array_elements(s.options -> 'variants') v CROSS JOIN LATERAL jsonb_array_elements_text(v.value -> 'sql' -> 'revert') WITH ORDINALITY AS t (value, place)
           WHERE v.value ->> 'name' = c.variant ORDER BY t.place) END AS to_revert
FROM bench_internal.sweep_log s
CROSS JOIN LATERAL jsonb_to_recordset(CASE WHEN jsonb_typeof(s.changes) = 'array' THEN s.changes END)
    AS c (round int, variant text, apply_secs double precision, revert_secs double precision, made text[], made_bytes bigint, error text)
WHERE bench_internal.is_visible(s.owner_oid);
COMMENT ON VIEW bench.sweep_changes IS 'What the SQL of a sweep''s variants did to the database: one row each time that it was applied';
COMMENT ON COLUMN bench.sweep_changes.sweep_id IS 'The sweep';
COMMENT ON COLUMN bench.sweep_changes.round IS 'Round, starting at 1';
COMMENT ON COLUMN bench.sweep_changes.variant IS 'Name of the variant';
COMMENT ON COLUMN bench.sweep_changes.apply_secs IS 'Seconds that its statements took; NULL: they were not completed';
COMMENT ON COLUMN bench.sweep_changes.revert_secs IS 'Seconds that the statements took that undid them; NULL: not undone';
COMMENT ON COLUMN bench.sweep_changes.made IS 'Relations that were created or rewritten meanwhile';
COMMENT ON COLUMN bench.sweep_changes.made_bytes IS 'Their size in bytes, with that of TOAST tables';
COMMENT ON COLUMN bench.sweep_changes.error IS 'Reason why it could not be applied or undone';
COMMENT ON COLUMN bench.sweep_changes.to_revert IS 'Statements that undo it, if that has not been done';

CREATE VIEW bench.sweep_runs WITH (security_barrier) AS
SELECT l.sweep_id, l.place, l.round, l.variant, l.clients, l.run_id,
       CASE WHEN r.run_id IS NOT NULL THEN bench_internal.status_of(r.status, r.segment, r.run_id) END AS status,
       coalesce(l.error, r.error ->> 'message') AS error,
       u.secs, u.transactions, u.failed, u.tps, u.tps_min, u.tps_max, u.latency_avg_ms, u.latency_p50_ms, u.latency_p95_ms,
       u.latency_p99_ms, (SELECT avg(x.cpu_idle ORDER BY x.node, x.elapsed)
        FROM bench.samples x WHERE x.run_id = l.run_id) AS cpu_idle,
       u.server_cpu_us, u.connect_avg_ms,
       CASE WHEN l.purpose IS NULL THEN (s.options ->> 'rate')::float8 ELSE l.rate END AS rate, l.purpose, l.outcome, u.driver_cpu_us, u.nopm
FROM bench_internal.sweep_run_log l
JOIN bench_internal.sweep_log s USING (sweep_id)
LEFT JOIN bench_internal.run_log r ON r.run_id = l.run_id
LEFT JOIN bench.summary u ON u.run_id = l.run_id
WHERE bench_internal.is_visible(s.owner_oid);
COMMENT ON VIEW bench.sweep_runs IS 'Runs of each sweep: one row per number of clients, variant and round';
COMMENT ON COLUMN bench.sweep_runs.sweep_id IS 'The sweep';
COMMENT ON COLUMN bench.sweep_runs.place IS 'Position in the order of the runs, starting at 1';
COMMENT ON COLUMN bench.sweep_runs.round IS 'Round, starting at 1';
COMMENT ON COLUMN bench.sweep_runs.variant IS 'Name of the variant; empty if the sweep has no variants';
COMMENT ON COLUMN bench.sweep_runs.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.sweep_runs.run_id IS 'Run, the latest one if it was repeated; NULL if it has not been made yet';
COMMENT ON COLUMN bench.sweep_runs.status IS 'As in bench.runs';
COMMENT ON COLUMN bench.sweep_runs.error IS 'Reason why the run could not start or did not complete';
COMMENT ON COLUMN bench.sweep_runs.secs IS 'Measured seconds';
COMMENT ON COLUMN bench.sweep_runs.transactions IS 'Transactions committed during the measurement';
COMMENT ON COLUMN bench.sweep_runs.failed IS 'Failed transactions';
COMMENT ON COLUMN bench.sweep_runs.tps IS 'transactions / secs';
COMMENT ON COLUMN bench.sweep_runs.tps_min IS 'Lowest TPS of its samples';
COMMENT ON COLUMN bench.sweep_runs.tps_max IS 'Highest TPS of its samples';
COMMENT ON COLUMN bench.sweep_runs.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.latency_p50_ms IS 'Median latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.cpu_idle IS 'Mean share of all processors'' time idle';
COMMENT ON COLUMN bench.sweep_runs.server_cpu_us IS 'Processor time of the clients'' processes per committed transaction in microseconds, as in bench.summary';
COMMENT ON COLUMN bench.sweep_runs.connect_avg_ms IS 'With reconnect: mean time to open a connection in milliseconds, as in bench.summary';
COMMENT ON COLUMN bench.sweep_runs.driver_cpu_us IS 'With driver => wire: processor time of the run''s jobs per committed transaction in microseconds, as in bench.summary';
COMMENT ON COLUMN bench.sweep_runs.rate IS 'Target transactions per second; NULL: each client starts a transaction when its last one ends';
COMMENT ON COLUMN bench.sweep_runs.purpose IS 'In a search by bench.capacity: estimate (without a rate, for the first guess), trial, overload, return (does a rate that passed still pass after an overload) or operating (70 % of the answer, over a checkpoint if the role may issue one)';
COMMENT ON COLUMN bench.sweep_runs.outcome IS 'In a search by bench.capacity: tps; latency_ms at the percentile; due, done and failed transactions; lag_growth in seconds per second, null: none; service_ms, the mean time from start to end; busy, the share of the clients'' time within transactions; cpu_idle; checkpoints; ended_early, true if errors ended clients';
COMMENT ON COLUMN bench.sweep_runs.nopm IS 'New orders per minute, as in bench.summary';

-- In the order of the rounds: sums of floats depend on their order, and one that a plan chooses would let two readings
-- of the view differ in the last digit.
CREATE VIEW bench.sweep_results AS
SELECT sweep_id, clients, variant, count(*)::int AS rounds,
       avg(tps ORDER BY round) AS tps_avg, min(tps) AS tps_min, max(tps) AS tps_max,
       stddev_samp(tps ORDER BY round) AS tps_stddev,
       avg(latency_avg_ms ORDER BY round) AS latency_avg_ms,
       avg(latency_p50_ms ORDER BY round) AS latency_p50_ms,
       avg(latency_p95_ms ORDER BY round) AS latency_p95_ms,
       avg(latency_p99_ms ORDER BY round) AS latency_p99_ms,
       sum(failed)::bigint AS failed, avg(cpu_idle ORDER BY round) AS cpu_idle,
       array_agg(run_id ORDER BY round) AS run_ids,
       avg(server_cpu_us ORDER BY round) AS server_cpu_us,
       avg(connect_avg_ms ORDER BY round) AS connect_avg_ms, rate,
       avg(driver_cpu_us ORDER BY round) AS driver_cpu_us,
       avg(nopm ORDER BY round) AS nopm
FROM bench.sweep_runs
WHERE status = 'completed'
GROUP BY sweep_id, clients, variant, rate;
COMMENT ON VIEW bench.sweep_results IS 'Results of each sweep: one row per number of clients, variant and rate, over the completed runs';
COMMENT ON COLUMN bench.sweep_results.sweep_id IS 'The sweep';
COMMENT ON COLUMN bench.sweep_results.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.sweep_results.variant IS 'Name of the variant; empty if the sweep has no variants';
COMMENT ON COLUMN bench.sweep_results.rounds IS 'Number of completed runs';
COMMENT ON COLUMN bench.sweep_results.tps_avg IS 'Mean of the runs'' TPS';
COMMENT ON COLUMN bench.sweep_results.tps_min IS 'TPS of the slowest run';
COMMENT ON COLUMN bench.sweep_results.tps_max IS 'TPS of the fastest run';
COMMENT ON COLUMN bench.sweep_results.tps_stddev IS 'Standard deviation of the runs'' TPS; NULL for a single run';
COMMENT ON COLUMN bench.sweep_results.latency_avg_ms IS 'Mean of the runs'' mean latencies in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p50_ms IS 'Mean of the runs'' median latencies in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p95_ms IS 'Mean of the runs'' 95th percentiles in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p99_ms IS 'Mean of the runs'' 99th percentiles in milliseconds';
COMMENT ON COLUMN bench.sweep_results.failed IS 'Failed transactions of all runs';
COMMENT ON COLUMN bench.sweep_results.cpu_idle IS 'Mean of the runs'' shares of processors'' time idle';
COMMENT ON COLUMN bench.sweep_results.run_ids IS 'Runs, ordered by round, for bench.compare';
COMMENT ON COLUMN bench.sweep_results.server_cpu_us IS 'Mean of the runs'' processor times per committed transaction in microseconds';
COMMENT ON COLUMN bench.sweep_results.connect_avg_ms IS 'With reconnect: mean of the runs'' mean times to open a connection in milliseconds';
COMMENT ON COLUMN bench.sweep_results.rate IS 'Target transactions per second; NULL: each client starts a transaction when its last one ends';
COMMENT ON COLUMN bench.sweep_results.driver_cpu_us IS 'With driver => wire: mean of the runs'' processor times of their jobs per committed transaction in microseconds';
COMMENT ON COLUMN bench.sweep_results.nopm IS 'Mean of the runs'' new orders per minute, as in bench.summary';

CREATE VIEW bench.capacities WITH (security_barrier) AS
SELECT s.sweep_id, s.options ->> 'workload' AS workload, (a.answer ->> 'latency_limit_ms')::float8 AS latency_limit,
       (a.answer ->> 'percentile')::float8 AS percentile, (a.answer ->> 'rate')::float8 AS rate,
       (a.answer ->> 'rate_low')::float8 AS rate_low, (a.answer ->> 'rate_high')::float8 AS rate_high,
       (a.answer ->> 'operating_rate')::float8 AS operating_rate, a.answer ->> 'limited_by' AS limited_by,
       CASE WHEN jsonb_typeof(a.answer -> 'hysteresis') = 'boolean' THEN (a.answer -> 'hysteresis')::boolean END AS hysteresis,
       (a.answer ->> 'trials')::int AS trials,
       ARRAY(SELECT l.run_id FROM bench_internal.sweep_run_log l WHERE l.sweep_id = s.sweep_id AND a.answer -> 'failing' @> to_jsonb(l.place) ORDER BY l.place) AS failing_runs
FROM bench_internal.sweep_log s
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(s.answers) = 'array' THEN s.answers END) WITH ORDINALITY AS a (answer, place)
WHERE bench_internal.is_visible(s.owner_oid);
COMMENT ON VIEW bench.capacities IS 'Results of the searches by bench.capacity that have ended: one row per objective';
COMMENT ON COLUMN bench.capacities.sweep_id IS 'The search, as a sweep';
COMMENT ON COLUMN bench.capacities.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.capacities.latency_limit IS 'The objective: milliseconds allowed at the percentile; NULL: throughput alone';
COMMENT ON COLUMN bench.capacities.percentile IS 'Percentile of the latency, between 0 and 1';
COMMENT ON COLUMN bench.capacities.rate IS 'Highest rate sustained, in transactions per second; with several rounds, the geometric mean; NULL: in at least one round, no rate passed';
COMMENT ON COLUMN bench.capacities.rate_low IS 'With one round, rate itself; with several, the lower bound of the 95 % interval of rate';
COMMENT ON COLUMN bench.capacities.rate_high IS 'With one round, the lowest failing rate; with several, the upper bound of the 95 % interval of rate';
COMMENT ON COLUMN bench.capacities.operating_rate IS '70 % of rate, if a longer run sustained it, over a checkpoint if the role may issue one; otherwise NULL';
COMMENT ON COLUMN bench.capacities.limited_by IS 'First limit reached: latency, throughput (transactions not done, or a growing lag), errors, or clients (all clients were busy while the server was not: use more clients); NULL: no rate failed';
COMMENT ON COLUMN bench.capacities.hysteresis IS 'True if, after an overload, a rate no longer passed that had passed before in the last round; NULL: not tried';
COMMENT ON COLUMN bench.capacities.trials IS 'Number of trials of the search, all rounds';
COMMENT ON COLUMN bench.capacities.failing_runs IS 'Failed trials at the lowest failing rate of each round: their reports show what was saturated';

CREATE VIEW bench.history AS
SELECT r.workload,
       -- All that bench.runs shows of a run but what differs from run to run, and what does not affect results.
       jsonb_strip_nulls((to_jsonb(r) - '{run_id,sweep_id,workload,seed,sample_interval,tags,status,started_at,finished_at,error,horizon_held,server_version,extension_version,environment,part_of,before,log_rate,logged,log_lost,warmup_took,feeders,run_as}'::text[]) || jsonb_build_object(
           'number_of_nodes', CASE WHEN r.nodes <> 'local' THEN (SELECT count(*) FROM bench.nodes n WHERE n.run_id = r.run_id AND n.clients > 0) END,
           'system', nullif(r.system, '{}'), 'applied', nullif(r.applied, '{}'),
           'origin', CASE WHEN r.origin IS NOT NULL THEN coalesce(r.origin ->> 'system_identifier', 'unknown') END, 'script',
           md5(r.script || coalesce(jsonb_path_query_array(r.feeders, '$[*].keyvalue() ? (@.key != "rows").value', '{}', true)::text, '')))) AS options,
       r.tags, r.run_id, r.started_at, s.tps, s.latency_avg_ms, s.latency_p50_ms, s.latency_p95_ms, s.latency_p99_ms,
       s.server_cpu_us
FROM bench.runs r JOIN bench.summary s USING (run_id)
WHERE r.status = 'completed' AND r.part_of IS NULL
  AND NOT EXISTS (SELECT FROM bench_internal.run_log l WHERE l.run_id = r.run_id AND l.duel IS NOT NULL);
COMMENT ON VIEW bench.history IS 'Completed runs in comparable series: all runs of a series have the same workload, options and tags. Duels are not among them';
COMMENT ON COLUMN bench.history.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.history.options IS 'Other arguments of bench.run that affect the results; the fixture with its rows and options; script: a hash of the script as run and of its feeders; system: server parameters set by a sweep; applied: statements by which a sweep changed the database; role; origin: the server of an imported run';
COMMENT ON COLUMN bench.history.tags IS 'Labels chosen by the user';
COMMENT ON COLUMN bench.history.run_id IS 'The run';
COMMENT ON COLUMN bench.history.started_at IS 'When the clients started';
COMMENT ON COLUMN bench.history.tps IS 'Transactions per second of the whole run';
COMMENT ON COLUMN bench.history.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.history.latency_p50_ms IS 'Median latency in milliseconds';
COMMENT ON COLUMN bench.history.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.history.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.history.server_cpu_us IS 'Processor time of the clients'' processes per committed transaction in microseconds, as in bench.summary';

CREATE VIEW bench.metrics WITH (security_barrier) AS
SELECT s.at AS "time", m.metric, m.value, s.run_id, s.node, r.workload
FROM bench.samples s
JOIN bench.runs r USING (run_id)
CROSS JOIN LATERAL (
    VALUES ('tps', s.tps), ('failed', s.failed), ('aborted', s.aborted), ('retried', s.retried), ('skipped', s.skipped), ('late', s.late),
        ('latency_avg_ms', s.latency_avg_ms), ('latency_p50_ms', s.latency_p50_ms), ('latency_p95_ms', s.latency_p95_ms),
        ('latency_p99_ms', s.latency_p99_ms), ('latency_max_ms', s.latency_max_ms), ('lag_avg_ms', s.lag_avg_ms),
        ('wal_bytes', s.wal_bytes), ('wal_fpi', s.wal_fpi), ('checkpoints', s.checkpoints),
        ('blks_hit', s.blks_hit), ('blks_read', s.blks_read), ('temp_bytes', s.temp_bytes),
        ('cpu_user', s.cpu_user), ('cpu_system', s.cpu_system), ('cpu_iowait', s.cpu_iowait), ('cpu_steal', s.cpu_steal),
        ('cpu_idle', s.cpu_idle), ('disk_read_bytes', s.disk_read_bytes), ('disk_written_bytes', s.disk_written_bytes)
    UNION ALL
    SELECT 'wait ' || w.key, w.value::float8
    FROM jsonb_each(CASE WHEN jsonb_typeof(s.waits) = 'object' THEN s.waits END) w
) AS m (metric, value)
WHERE m.value IS NOT NULL;
COMMENT ON VIEW bench.metrics IS 'Samples of the runs that bench.runs shows, one row per metric: time series as Grafana reads them';
COMMENT ON COLUMN bench.metrics."time" IS 'End of the interval';
COMMENT ON COLUMN bench.metrics.metric IS 'A column of bench.samples, or the word wait and a wait event, with its share of the clients'' time';
COMMENT ON COLUMN bench.metrics.value IS 'Value of the interval';
COMMENT ON COLUMN bench.metrics.run_id IS 'The run';
COMMENT ON COLUMN bench.metrics.node IS 'As in bench.samples';
COMMENT ON COLUMN bench.metrics.workload IS 'Name of the workload, or the mix as given';

GRANT SELECT ON bench.sweeps, bench.sweep_runs, bench.sweep_changes, bench.rehearsal_steps, bench.rehearsal_queue, bench.sweep_results, bench.capacities, bench.history, bench.metrics TO PUBLIC;
