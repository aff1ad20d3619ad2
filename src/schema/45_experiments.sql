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

CREATE FUNCTION bench_internal.prewarm(relation oid)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prewarm_table_wrapper';
COMMENT ON FUNCTION bench_internal.prewarm IS
'Reads a table, its TOAST table and the indexes of both into shared buffers, and returns the number of blocks; 0 for a partitioned table, which has none of its own. For roles with SELECT on the table. Sweeps with before => ''prewarm'' do this before each run.';

CREATE FUNCTION bench.wait_sweep(sweep_id bigint, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_sweep_wrapper';
COMMENT ON FUNCTION bench.wait_sweep IS
'Waits until a sweep has ended, timeout seconds at most (NULL: however long), and returns its status. Ending the wait changes nothing about the sweep.';

CREATE FUNCTION bench.stop_sweep(sweep_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'stop_sweep_wrapper';
COMMENT ON FUNCTION bench.stop_sweep IS
'Ends a sweep, and the run under way; everything so far stays, and bench.resume_sweep can make the rest. False when it was not under way. For roles with the privileges of the sweep''s role or of pg_signal_backend.';

CREATE FUNCTION bench.resume_sweep(sweep_id bigint)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'resume_sweep_wrapper';
COMMENT ON FUNCTION bench.resume_sweep IS
'Makes the runs of a sweep that are missing or did not complete, in their order, after a stop, a crash or a restart of the server; returns at once, as bench.start_sweep. For the sweep''s own role.';

CREATE FUNCTION bench_internal.sweep_status_of(status text, segment bigint, sweep_id bigint)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_status_of_wrapper';
COMMENT ON FUNCTION bench_internal.sweep_status_of IS 'A sweep''s status: crashed where its leader is gone and could not write down the end.';

CREATE FUNCTION bench_internal.sweep_progress(segment bigint, sweep_id bigint)
    RETURNS TABLE (done int, total int)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_progress_wrapper';
COMMENT ON FUNCTION bench_internal.sweep_progress IS 'Where a sweep under way stands, in runs; read bench.sweeps.';

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
'Gunther''s universal scalability law, fitted to the completed runs of each variant of a sweep: lambda is the TPS of one client, sigma contention, kappa crosstalk; peak_clients and peak_tps are where TPS peaks; each with a 95 % interval. A rung counts once, with its rounds'' mean. verdict: fits, no peak (its interval reaches beyond twice the last rung, or TPS only falls), does not fit, not enough rungs (fewer than four).';

CREATE FUNCTION bench.compare(baseline bigint[], candidate bigint[], margin double precision DEFAULT 0.02)
    RETURNS TABLE (metric text, baseline double precision, candidate double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text, differences jsonb)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'compare_wrapper';
COMMENT ON FUNCTION bench.compare IS
'Compares completed runs with completed runs: candidate / baseline with its interval, of the runs'' TPS (95 %) and latencies (98.75 % each, and so 95 % for the four together). verdict: same (the whole interval within the margin), faster, slower, or inconclusive, and then advice says with how many runs a side to start anew. differences: settings, versions and machines that are not the same on both sides, beside the verdict on tps.';

CREATE FUNCTION bench.ab(workload text, a jsonb, b jsonb, rounds int DEFAULT 10, clients int DEFAULT 1, secs double precision DEFAULT 10)
    RETURNS TABLE (metric text, baseline double precision, candidate double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text, differences jsonb)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'ab_wrapper';
COMMENT ON FUNCTION bench.ab IS
'Runs a workload under the settings of a and those of b, a pair of runs in random order in each round, waits for it, and compares the pairs: a is the baseline, b the candidate. a and b are variants of bench.sweep, which the runs are kept as. Columns as of bench.compare, with a margin of 0.02.';

CREATE FUNCTION bench.change_points(workload text, metric text DEFAULT 'tps', tags jsonb DEFAULT '{}', margin double precision DEFAULT 0.02)
    RETURNS TABLE (run_id bigint, at timestamptz, before double precision, after double precision, change double precision,
                   p double precision, change_low double precision, change_high double precision)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'level_changes_wrapper';
COMMENT ON FUNCTION bench.change_points IS
'Where runs of a workload changed their level: E-divisive change points of each series of bench.history whose tags include these, of its last 1000 runs. margin is the least change worth telling, as a fraction; a level has at least three runs that show it. run_id is the first run of the new level; before and after are the mean levels, change is the ratio of their geometric means less 1, with its 95 % interval (NULL where a run had none), p the significance. metric: tps, latency_avg_ms, latency_p50_ms, latency_p95_ms or latency_p99_ms.';

REVOKE ALL ON FUNCTION bench.sweep, bench.start_sweep, bench.resume_sweep, bench.ab FROM PUBLIC;

CREATE VIEW bench.sweeps WITH (security_barrier) AS
SELECT s.sweep_id, s.options ->> 'workload' AS workload,
       ARRAY(SELECT bench_internal.as_int(bench_internal.json_figure(c.value)::numeric) FROM jsonb_array_elements(CASE WHEN jsonb_typeof(s.options -> 'clients') = 'array' THEN s.options -> 'clients' END) WITH ORDINALITY AS c (value, place) ORDER BY c.place) AS clients,
       bench_internal.json_figure(s.options -> 'secs') AS secs, bench_internal.as_int(bench_internal.json_figure(s.options -> 'rounds')::numeric) AS rounds, s.options -> 'variants' AS variants,
       bench_internal.json_figure(s.options -> 'warmup_secs') AS warmup, bench_internal.json_figure(s.options -> 'rate') AS rate,
       s.options -> 'variables' AS variables, s.options -> 'settings' AS settings,
       ARRAY(SELECT b.value FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(s.options -> 'before') = 'array' THEN s.options -> 'before' END) WITH ORDINALITY AS b (value, place) ORDER BY b.place) AS before,
       CASE WHEN jsonb_typeof(s.options -> 'seed') = 'number' THEN bench_internal.as_bigint((s.options -> 'seed')::numeric) END AS seed, s.options ->> 'query_mode' AS query_mode, s.options ->> 'nodes' AS nodes, s.options -> 'tags' AS tags,
       bench_internal.sweep_status_of(s.status, s.segment, s.sweep_id) AS status, n.runs, n.completed, s.started_at, s.resumed_at, s.finished_at,
       -- What is left takes as long a run as what is done since it began, or was taken up.
       CASE WHEN n.since > 0 AND isfinite(coalesce(s.resumed_at, s.started_at)) THEN extract(epoch FROM clock_timestamp() - coalesce(s.resumed_at, s.started_at)) / n.since * (p.total - p.done)
       END::double precision AS remaining,
       s.role, s.error, s.server_version, s.extension_version
FROM bench.sweep_log s
CROSS JOIN LATERAL (
    SELECT count(*)::int AS runs, (count(*) FILTER (WHERE r.status = 'completed' AND l.error IS NULL))::int AS completed,
           count(*) FILTER (WHERE r.finished_at >= coalesce(s.resumed_at, s.started_at)) AS since
    FROM bench.sweep_run_log l LEFT JOIN bench.run_log r USING (run_id) WHERE l.sweep_id = s.sweep_id
) n
LEFT JOIN LATERAL bench_internal.sweep_progress(s.segment, s.sweep_id) p ON s.status = 'running'
WHERE bench_internal.is_visible(s.role);
COMMENT ON VIEW bench.sweeps IS 'Sweeps, as they were asked for, how far they are and how they ended. Visible to roles with the privileges of the sweep''s role or of pg_read_all_stats.';
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
       CASE WHEN r.run_id IS NOT NULL THEN bench_internal.status_of(r.status, r.segment, r.run_id) END AS status,
       coalesce(l.error, r.error ->> 'message') AS error,
       u.secs, u.transactions, u.failed, u.tps, u.tps_min, u.tps_max, u.latency_avg_ms, u.latency_p50_ms, u.latency_p95_ms,
       u.latency_p99_ms, (SELECT avg(bench_internal.figure(x.cpu_idle)) FROM bench.samples x WHERE x.run_id = l.run_id) AS cpu_idle
FROM bench.sweep_run_log l
JOIN bench.sweep_log s USING (sweep_id)
LEFT JOIN bench.run_log r ON r.run_id = l.run_id
LEFT JOIN bench.summary u ON u.run_id = l.run_id
WHERE bench_internal.is_visible(s.role);
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
       stddev_samp(tps) AS tps_stddev, avg(bench_internal.figure(latency_avg_ms)) AS latency_avg_ms, avg(bench_internal.figure(latency_p50_ms)) AS latency_p50_ms,
       avg(bench_internal.figure(latency_p95_ms)) AS latency_p95_ms, avg(bench_internal.figure(latency_p99_ms)) AS latency_p99_ms, bench_internal.as_bigint(sum(failed)) AS failed, avg(cpu_idle) AS cpu_idle,
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
