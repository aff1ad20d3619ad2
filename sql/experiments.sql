--
-- Sweeps, comparisons and history: what is refused, and what a small sweep leaves. Nothing that varies is shown.
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
SELECT bench.load('pk', 1000), bench.load('log', 0);
SELECT bench.create_workload('nothing', 'SELECT 1;');
SELECT
    coalesce((SELECT max(sweep_id) FROM bench.sweeps), 0) AS last_sweep,
    coalesce((SELECT max(run_id) FROM bench.runs), 0) AS last_run \gset
CREATE ROLE regress_sweeper LOGIN;
GRANT EXECUTE ON FUNCTION bench.sweep, bench.start_sweep, bench.resume_sweep, bench.ab, bench.run TO regress_sweeper;
-- An error without the numbers that vary.
CREATE FUNCTION pg_temp.error_of(call text, OUT code text, OUT message text, OUT detail text, OUT hint text)
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
    message := 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT;
    message := regexp_replace(message, '\d{1,10}', 'N', 'g');
    detail := regexp_replace(detail, '\d+', 'N', 'g');
    hint := regexp_replace(hint, '\d+', 'N', 'g');
END $$;

-- NULLs
SELECT bench.sweep(NULL, '{1}');
SELECT bench.sweep('nothing', NULL);
SELECT bench.sweep('nothing', '{1}', max_tries => NULL);
SELECT bench.sweep('nothing', '{1}', results => NULL);
SELECT bench.sweep('nothing', '{1}', variants => NULL);
SELECT bench.sweep('nothing', '{1}', warmup => NULL, nodes => 'workers');
SELECT bench.sweep('nothing', '{1}', variables => NULL);
SELECT bench.sweep('nothing', '{1}', settings => NULL);
SELECT bench.sweep('nothing', '{1}', before => NULL);
SELECT bench.sweep('nothing', '{1}', query_mode => NULL);
SELECT bench.sweep('nothing', '{1}', nodes => NULL);
SELECT bench.sweep('nothing', '{1}', tags => NULL);
SELECT bench.start_sweep('nothing', NULL);
SELECT bench.wait_sweep(NULL);
SELECT bench.stop_sweep(NULL);
SELECT bench.resume_sweep(NULL);
SELECT bench.sweep_report(NULL);
SELECT bench.sweep_report(-1, NULL);
SELECT * FROM bench.scalability(NULL);
SELECT * FROM bench.ab('nothing', NULL, '{}');
SELECT * FROM bench.ab('nothing', '{}', NULL);
SELECT * FROM bench.ab(NULL, '{}', '{}');
SELECT * FROM bench.ab('nothing', '{}', '{}', clients => NULL);
SELECT * FROM bench.ab('nothing', '{}', '{}', margin => NULL);
SELECT * FROM bench.ab('nothing', '{}', '{}', margin => 2);
SELECT * FROM bench.ab('nothing', '{}', '{}', secs => 1, transactions => 1);
SELECT * FROM bench.ab('nothing', '{}', '{}', script => 'SELECT 1');
SELECT * FROM bench.calibrate('nothing', rounds => 2);
SELECT * FROM bench.calibrate('nothing', rounds => NULL);
SELECT * FROM bench.calibrate(NULL);
SELECT * FROM bench.calibrate('nonesuch');
SELECT * FROM bench.calibrate('nothing', clients => 0);
SELECT bench.capacity(NULL);
SELECT bench.capacity('nonesuch');
SELECT bench.capacity('nothing', rate => 100);
SELECT bench.capacity('nothing', rates => '{"0": 100}');
SELECT bench.capacity('nothing', transactions => 100);
SELECT bench.capacity('nothing', latency_limit => 0);
SELECT bench.capacity('nothing', latency_limit => 'NaN');
SELECT bench.capacity('nothing', latency_limit => 5, latency_limits => '{5}');
SELECT bench.capacity('nothing', latency_limits => '{}');
SELECT bench.capacity('nothing', latency_limits => '{5,NULL}');
SELECT bench.capacity('nothing', latency_limits => array_fill(1, '{21}'));
SELECT bench.capacity('nothing', percentile => 99);
SELECT bench.capacity('nothing', percentile => NULL);
SELECT bench.capacity('nothing', clients => 0);
SELECT bench.capacity('nothing', clients => 1000);
SELECT bench.capacity('nothing', secs => 0);
SELECT bench.capacity('nothing', trials => 0);
SELECT bench.capacity('nothing', margin => 0);
SELECT bench.capacity('nothing', rounds => 101);
SELECT bench.capacity('nothing', max_failed => 2);
SELECT bench.capacity('nothing', driver => 'libpq');
SELECT bench.start_capacity('nothing', trials => NULL);
SELECT * FROM bench.compare(NULL, '{1}');
SELECT * FROM bench.compare('{-1}', '{-2}', NULL);
SELECT * FROM bench.compare('{NULL}', '{2}');
SELECT * FROM bench.change_points(NULL);
SELECT * FROM bench.change_points('nothing', NULL);
SELECT * FROM bench.change_points('nothing', tags => NULL);
SELECT * FROM bench.change_points('nothing', margin => NULL);
SELECT
    bench_internal.sweep_status_of(NULL, NULL, NULL),
    bench_internal.sweep_status_of('completed', NULL, NULL),
    bench_internal.sweep_status_of('running', 0, -1);
SELECT count(*)
FROM bench_internal.sweep_progress(NULL, NULL) AS a FULL JOIN bench_internal.sweep_progress(0, -1) AS b ON true;

-- Unknown names and words
SELECT bench.sweep('nonesuch', '{1}');
SELECT bench.sweep('nothing', '{1}', before => 'wash');
SELECT bench.sweep('nothing', '{1}', before => '');
SELECT bench.sweep('nothing', '{1}', before => 'vacuum,');
SELECT bench.sweep('nothing', '{1}', before => 'none,vacuum');
SELECT bench.sweep('nothing', '{1}', query_mode => 'telepathic');
SELECT bench.sweep('nothing', '{1}', nodes => 'some');
SELECT bench.sweep('nothing', '{1}', driver => 'pigeon');
SELECT bench.sweep('nothing', '{1}', driver => NULL);
SELECT bench.sweep('nothing', '{1}', driver => 'wire', reconnect => NULL);
SELECT bench.sweep('nothing', '{1}', jobs => 2);
SELECT bench.sweep('nothing', '{1}', driver => 'wire', target => 'nonesuch');
SELECT bench.wait_sweep(-1);
SELECT bench.wait_sweep(9223372036854775807);
SELECT bench.stop_sweep(-1);
SELECT bench.resume_sweep(-1);
SELECT bench.sweep_report(-1);
SELECT bench.sweep_report(-1, 'pdf');
SELECT * FROM bench.scalability(-1);
SELECT * FROM bench.compare('{-1}', '{-2}');
SELECT * FROM bench.change_points('nothing', 'beauty');
SELECT * FROM bench.change_points('nothing', 'tps; SELECT 1');
SELECT * FROM bench.change_points('nothing', tags => '[1]');
SELECT * FROM bench.change_points('nothing', margin => 2);
-- a workload of which there is no history has no change
SELECT count(*) FROM bench.change_points('nonesuch');

-- Numbers out of range
SELECT bench.sweep('nothing', '{}');
SELECT bench.sweep('nothing', '{0}');
SELECT bench.sweep('nothing', '{1,-2}');
SELECT bench.sweep('nothing', '{1,NULL}');
SELECT bench.sweep('nothing', '{1,2,1}');
SELECT bench.sweep('nothing', '{1}', secs => 0);
SELECT bench.sweep('nothing', '{1}', secs => -1);
SELECT bench.sweep('nothing', '{1}', secs => 'Infinity');
SELECT bench.sweep('nothing', '{1}', warmup => -1);
SELECT bench.sweep('nothing', '{1}', rate => 0);
SELECT bench.sweep('nothing', '{1}', rounds => 0);
SELECT bench.sweep('nothing', '{1}', rounds => -1);
SELECT bench.sweep('nothing', '{1,2}', rounds => 10000);
SELECT bench.sweep('nothing', '{1,2}', rounds => 2147483647, variants => '{"a": {}, "b": {}}');
SELECT bench.wait_sweep(-1, -1);
SELECT * FROM bench.ab('nothing', '{}', '{}', rounds => 0);
SELECT * FROM bench.ab('nothing', '{}', '{}', clients => 0);
SELECT code, message, detail ~ '^Needed: N .*; configured: N; in use: N\.$' AS detail, hint
FROM pg_temp.error_of($$SELECT bench.sweep('nothing', '{1,100000}')$$);

-- Variants
SELECT bench.sweep('nothing', '{1}', variants => '[]');
SELECT bench.sweep('nothing', '{1}', variants => '"off"');
SELECT bench.sweep('nothing', '{1}', variants => 'null');
SELECT bench.sweep('nothing', '{1}', variants => '{"off": "synchronous_commit"}');
SELECT bench.sweep('nothing', '{1}', variants => '{"": {}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"colours": {"red": 1}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"nosuchsetting": 1}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"work_mem": "much"}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"settings": {"shared_buffers": "1GB"}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"variables": {"1x": 1}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"load": {"rows": 10}}}');
SELECT bench.sweep('pk_select@1,pk_insert@1', '{1}', variants => '{"a": {"load": {"rows": 10}}}');
SELECT bench.sweep('pk_select', '{1}', variants => '{"a": {"load": {"rows": "many"}}}');
SELECT bench.sweep('pk_select', '{1}', variants => '{"a": {"load": {"rows": -1}}}');
SELECT bench.sweep('pk_select', '{1}', variants => '{"a": {"load": {"rows": 10, "jobs": 0}}}');
SELECT bench.sweep('pk_select', '{1}', variants => '{"a": {"load": {"colour": "red"}}}');
SELECT bench.sweep('nothing', '{1}', variables => '[1]');
SELECT bench.sweep('nothing', '{1}', settings => '[1]');
SELECT bench.sweep('nothing', '{1}', tags => '[1]');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"load": {"rows": 10}}}', before => 'reload');
SELECT * FROM bench.ab('nothing', '5', '{}');
SELECT * FROM bench.ab('nothing', '{}', '{"hide_indexes": "pk_pkey"}');
SELECT * FROM bench.ab('nothing', '{}', '{"nosuchsetting": 1}');

-- Parameters of the server
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"nosuchsetting": 1}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"shared_buffers": "1GB"}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"block_size": 1}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"full_page_writes": "perhaps"}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"checkpoint_completion_target": 2}}}');
SELECT * FROM bench.ab('nothing', '{"system": {"shared_buffers": "1GB"}}', '{}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"restart": {"nosuchsetting": 1}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"restart": {"work_mem": "1GB"}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"restart": {"block_size": 1}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"restart": {"shared_buffers": "much"}}}');
SELECT * FROM bench.ab('nothing', '{"restart": {"shared_buffers": "1GB"}}', '{}');
SET ROLE regress_sweeper;
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"full_page_writes": "off"}}}');
SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"session_replication_role": "replica"}}');
RESET ROLE;

-- The state before each run
SELECT bench_internal.prewarm(NULL);
SET ROLE regress_sweeper;
SELECT bench_internal.prewarm(oid) FROM pg_class WHERE relname = 'pk' AND relnamespace = 'bench_data'::regnamespace;
SELECT bench.sweep('nothing', '{1}', before => 'checkpoint');
RESET ROLE;
SELECT bench.sweep('pk_update', '{1}', before => 'truncate');
SELECT count(*) AS rows FROM bench_data.pk;
-- nothing has been begun so far
SELECT count(*) AS sweeps, (SELECT count(*) FROM bench.runs WHERE run_id > :last_run) AS runs
FROM bench_internal.sweep_log
WHERE sweep_id > :last_sweep;

-- what can only be seen later is the run's error
SET client_min_messages = error;
SELECT bench.sweep('pk_insert', '{1}', secs => 0.2,
    variants => '{"full": {"load": {"rows": 10}}, "empty": {"load": {"rows": 0}}}', before => 'truncate') AS sweep \gset
SELECT status, runs, completed, error FROM bench.sweeps WHERE sweep_id = :sweep;
SELECT variant, run_id IS NOT NULL AS run, status, error FROM bench.sweep_runs WHERE sweep_id = :sweep ORDER BY variant;
SET client_min_messages = warning;

-- Whatever a run takes, its experiments take
SELECT bench.sweep(NULL, '{1,2}', script => 'SELECT 1;', transactions => 5, max_tries => 3, results => 'discard',
    log_rate => 1, sample_interval => 0.5, latency_limit => 5000) AS sweep \gset
SELECT workload, secs, run FROM bench.sweeps WHERE sweep_id = :sweep;
SELECT r.workload, r.clients, r.secs, r.transactions, r.max_tries, r.results, r.sample_interval, r.latency_limit,
       (SELECT count(*) FROM bench.transactions t WHERE t.run_id = r.run_id) AS logged
FROM bench.sweep_runs s JOIN bench.runs r USING (run_id) WHERE s.sweep_id = :sweep ORDER BY r.clients;
SELECT line FROM regexp_split_to_table(bench.sweep_report(:sweep), '\n') AS line WHERE line ~ 'per client';
SELECT bench.create_workload('divide_at_times', 'SELECT 1 / (:client_id % 2);');
SELECT metric, baseline > 0 AS a, candidate > 0 AS b, verdict <> '' AS verdict
FROM bench.ab('divide_at_times', '{}', '{"work_mem": "1MB"}', rounds => 3, clients => 2, secs => 0.1, warmup => 0.1,
    max_tries => 0, continue_on_error => true, margin => 0.5, before => 'none', tags => '{"errors": "go on"}')
WHERE metric = 'tps';
SELECT count(*) AS runs, bool_and(r.max_tries = 0) AS tries, bool_and(r.status = 'completed') AS completed,
       bool_and(s.failed > 0) AS failed, bool_and(r.warmup = 0.1) AS warmup
FROM bench.runs r JOIN bench.summary s USING (run_id) WHERE r.tags @> '{"errors": "go on"}';
SELECT bench.drop_workload('divide_at_times');

-- The order of the runs: random in each round, and the same for a seed
SELECT bench.sweep('pk_update', '{1,2,3}', secs => 0.2, rounds => 2,
    variants => '{"off": {"synchronous_commit": "off"}, "on": {"synchronous_commit": "on"}}', seed => 1,
    tags => '{"host": "a"}', settings => '{"work_mem": "5MB"}', variables => '{"x": 1}', warmup => 0.1,
    query_mode => 'extended') AS sweep \gset
SELECT
    string_agg(variant || clients, ' ' ORDER BY place) FILTER (WHERE round = 1) AS first,
    string_agg(variant || clients, ' ' ORDER BY place) FILTER (WHERE round = 2) AS second
FROM bench.sweep_runs
WHERE sweep_id = :sweep;
SELECT
    round,
    variant,
    clients,
    count(*),
    bool_and(status = 'completed') AS completed,
    bool_and(error IS NULL) AS no_error,
    bool_and(tps > 0 AND tps_min <= tps_max) AS tps,
    bool_and(latency_p50_ms <= latency_p95_ms AND latency_p95_ms <= latency_p99_ms) AS latencies,
    bool_and(failed = 0) AS failed
FROM bench.sweep_runs
WHERE sweep_id = :sweep
GROUP BY round, variant, clients
ORDER BY 1, 2, 3;
SELECT min(place), max(place), count(DISTINCT place), bool_and(run_id > before) IS NOT FALSE AS in_order
FROM (
    SELECT place, run_id, lag(run_id) OVER (ORDER BY place) AS before FROM bench.sweep_runs WHERE sweep_id = :sweep
) AS s;
SELECT
    workload,
    clients,
    secs,
    rounds,
    variants,
    warmup,
    rate,
    variables,
    settings,
    before,
    seed,
    query_mode,
    run,
    nodes,
    tags,
    status,
    runs,
    completed,
    started_at < finished_at AS times,
    resumed_at,
    remaining,
    role = current_user AS role,
    error,
    server_version = current_setting('server_version') AS server_version,
    extension_version = (SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext') AS extension_version
FROM bench.sweeps
WHERE sweep_id = :sweep \gx
SELECT
    clients,
    variant,
    rounds,
    array_length(run_ids, 1) AS runs,
    tps_min <= tps_avg AND tps_avg <= tps_max AS tps,
    tps_stddev >= 0 AS stddev,
    failed
FROM bench.sweep_results
WHERE sweep_id = :sweep
ORDER BY clients, variant;
SELECT variant, verdict, lambda, peak_tps FROM bench.scalability(:sweep);

-- Equal runs
SELECT
    metric,
    rounds,
    mean > 0 AS mean,
    cv BETWEEN cv_low AND cv_high AS cv,
    detectable <= lag(detectable) OVER (PARTITION BY metric ORDER BY rounds) AS less,
    advice ~ '1 %: .* runs per side; 2 %: .*; 5 %: ' AS advice
FROM bench.calibrate('nothing', clients => 2, secs => 0.2, rounds => 4, tags => '{"calibrated": true}');
SELECT clients, rounds, status, tags FROM bench.sweeps WHERE tags ? 'calibrated';

-- What a calibration of runs like those of the baseline says of a comparison
SELECT count(*) FROM bench.calibrate('nothing', secs => 0.2, rounds => 5);
SELECT max(sweep_id) AS calibration FROM bench.sweeps \gset
SELECT bench.sweep('nothing', '{1}', secs => 0.2, rounds => 4, tags => '{"side": "a"}') AS alike \gset
SELECT bench.sweep('nothing', '{1}', secs => 0.1, rounds => 4) AS shorter \gset
SELECT
    s.sweep_id = :alike AS alike,
    bool_and(coalesce(c.advice, '') ~ format(
        'equal runs vary by [0-9.]+ %% \(calibration of sweep %s\)(\. It can(not)? show|: 2 runs per side can show) ',
        :calibration
    )) AS told
FROM bench.sweep_results s, bench.compare(s.run_ids[1:2], s.run_ids[3:4]) AS c
WHERE s.sweep_id IN (:alike, :shorter) AND c.verdict IN ('same', 'inconclusive')
GROUP BY s.sweep_id
ORDER BY s.sweep_id;
-- in a report and in an A/B comparison as well
SELECT
    regexp_replace(bench.compare_report(s.run_ids[1:2], s.run_ids[3:4]), '\s+', ' ', 'g')
            ~ format('calibration of sweep %s', :calibration)
        OR c.verdict NOT IN ('same', 'inconclusive') AS told
FROM bench.sweep_results s, bench.compare(s.run_ids[1:2], s.run_ids[3:4]) AS c
WHERE s.sweep_id = :alike AND c.metric = 'tps';
SELECT bool_and(advice ~ format('calibration of sweep %s', :calibration)) AS told
FROM bench.ab('nothing', '{}', '{"application_name": "b"}', rounds => 2, secs => 0.2)
WHERE verdict IN ('same', 'inconclusive');
-- one with a tag is for runs with that tag, and one of three runs is too few
SELECT count(*) FROM bench.calibrate('nothing', secs => 0.1, rounds => 5, tags => '{"side": "b"}');
SELECT count(*) FROM bench.calibrate('nothing', secs => 0.1, rounds => 3);
SELECT count(*) FILTER (WHERE c.advice ~ 'calibration') AS told
FROM bench.sweep_results s, bench.compare(s.run_ids[1:2], s.run_ids[3:4]) AS c
WHERE s.sweep_id = :shorter;

-- Over connections, but for a variant that is not
SELECT bench.sweep('nothing', '{1}', secs => 0.1, driver => 'wire', jobs => 1,
    variants => '{"wire": {}, "engine": {"driver": "engine"}}') AS sweep \gset wire_
SELECT s.variant, s.status, r.driver, r.jobs, w.run
FROM bench.sweep_runs s JOIN bench.runs r USING (run_id) JOIN bench.sweeps w ON w.sweep_id = s.sweep_id
WHERE s.sweep_id = :wire_sweep
ORDER BY s.variant;
SELECT
    format,
    bench.sweep_report(:sweep, format) ~ 'update' AS workload,
    length(bench.sweep_report(:sweep, format)) > 500 AS long
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SELECT
    bench.sweep_report(:sweep, 'json')::jsonb -> 'sweep' ->> 'status' AS json,
    bench.sweep_report(:sweep, 'html') ~ '<svg' AS curves;
SELECT bench.wait_sweep(:sweep) AS wait, bench.wait_sweep(:sweep, 0) AS at_once, bench.stop_sweep(:sweep) AS stop;
SELECT (pg_temp.error_of('SELECT bench.resume_sweep(' || :sweep || ')')).*;
SELECT (pg_temp.error_of('SELECT bench.wait_sweep(' || :sweep || ', -1)')).*;

-- Comparisons of its runs
SELECT run_ids[1] AS a, run_ids[2] AS b
FROM bench.sweep_results
WHERE sweep_id = :sweep AND variant = 'off' AND clients = 1 \gset
SELECT run_ids[1] AS c, run_ids[2] AS d
FROM bench.sweep_results
WHERE sweep_id = :sweep AND variant = 'on' AND clients = 1 \gset
SELECT
    metric,
    ratio_low <= ratio AND ratio <= ratio_high AS ratio,
    verdict IN ('same', 'faster', 'slower', 'inconclusive') AS verdict,
    advice IS NULL OR verdict = 'inconclusive' AS advice,
    jsonb_path_query_array(differences, '$[*] ? (@.what starts with "setting")') AS settings
FROM bench.compare(ARRAY[:a, :b], ARRAY[:c, :d]);
SELECT
    metric,
    baseline > 0 AS baseline,
    candidate > 0 AS candidate,
    ratio > 0 AS ratio,
    ratio_low,
    ratio_high,
    verdict,
    length(advice) > 20 AS advice
FROM bench.compare(ARRAY[:a], ARRAY[:c]);
SELECT * FROM bench.compare(ARRAY[:a], NULL);
SELECT * FROM bench.compare('{}', ARRAY[:c]);
SELECT * FROM bench.compare(ARRAY[:a], '{}');
SELECT (pg_temp.error_of(format('SELECT * FROM bench.compare(%L, %L)', ARRAY[:a, :b], ARRAY[:c, :b]))).*;
SELECT (pg_temp.error_of(format('SELECT * FROM bench.compare(%L, %L)', ARRAY[:a, :a], ARRAY[:c]))).*;
SELECT (pg_temp.error_of(format('SELECT * FROM bench.compare(%L, ''{-1}'')', ARRAY[:a]))).*;
-- Runs of another script
SELECT bench.run('nothing', transactions => 5) AS e \gset
SELECT metric FROM bench.compare(ARRAY[:a], ARRAY[:e]) WHERE metric = 'tps';
-- Reports of them
SELECT
    format,
    length(report) > 500 AS length,
    report ~ '(faster|slower|as fast as the baseline)' AS conclusion,
    strpos(replace(report, '\', ''), 'synchronous_commit') > 0 AS differs
FROM unnest('{text,markdown,json,html}'::text[]) AS format,
    bench.compare_report(ARRAY[:a, :b], ARRAY[:c, :d], format) AS report;
WITH report AS MATERIALIZED (
    SELECT paired, json -> 'comparison' AS sides, jsonb_path_query_array(json, '$.runs[*].run_id') AS runs,
        json #> '{runs,2,samples,tps}' AS samples
    FROM unnest('{f,t}'::boolean[]) AS paired,
        CAST(bench.compare_report(ARRAY[:a, :b], ARRAY[:c, :d], 'json', 0.5, paired) AS jsonb) AS json
)
SELECT
    paired,
    sides -> 'paired' AS said,
    sides -> 'margin' AS margin,
    sides -> 'verdict' = sides #> '{metrics,0,verdict}' AS verdict,
    runs = to_jsonb(ARRAY[:a, :b, :c, :d]) AS runs,
    jsonb_array_length(samples) = (SELECT count(*) FROM bench.samples WHERE run_id = :c) AS samples,
    (SELECT sum((b ->> 'count')::bigint) FROM jsonb_array_elements(sides -> 'baseline_latencies') AS b)
        = (SELECT sum(count) FROM bench.latencies WHERE run_id IN (:a, :b)) AS latencies,
    jsonb_typeof(sides -> 'waits') AS waits,
    jsonb_typeof(sides -> 'plans') AS plans
FROM report;
SELECT
    abs((bench.compare_report(ARRAY[:a, :b], ARRAY[:c, :d], 'json')::jsonb
            #> '{comparison,metrics,0,ratio_low}')::float8
        / (SELECT ratio_low FROM bench.compare(ARRAY[:a, :b], ARRAY[:c, :d]) WHERE metric = 'tps') - 1) < 1e-4
        AS same_interval;
SELECT bench.compare_report(ARRAY[:a], NULL);
SELECT bench.compare_report(NULL, ARRAY[:a]);
SELECT bench.compare_report(ARRAY[:a], ARRAY[:c], NULL);
SELECT bench.compare_report(ARRAY[:a], ARRAY[:c], 'pdf');
SELECT bench.compare_report(ARRAY[:a], ARRAY[:c], 'text', NULL);
SELECT bench.compare_report(ARRAY[:a], ARRAY[:c], 'text', 2);
SELECT bench.compare_report(ARRAY[:a], ARRAY[:c], paired => NULL);
SELECT bench.compare_report(ARRAY[:a, :b], ARRAY[:c], paired => true);
SELECT bench.compare_report('{}', ARRAY[:c]);
SELECT * FROM bench.compare(ARRAY[:a], ARRAY[:c], -0.01);
SELECT * FROM bench.compare(ARRAY[:a], ARRAY[:c], 1);
SELECT * FROM bench.compare(ARRAY[:a], ARRAY[:c], 2.5);
SELECT * FROM bench.compare(ARRAY[:a], ARRAY[:c], 'NaN');
SELECT bench.create_workload('divide', 'SELECT 1 / 0;');
SET client_min_messages = error;
SELECT bench.run('divide', transactions => 1) AS failed \gset
SELECT (pg_temp.error_of(format('SELECT * FROM bench.compare(%L, %L)', ARRAY[:a], ARRAY[:failed]))).*;
SELECT bench.start('pk_select', secs => 60) AS unended \gset
DO $$
BEGIN
    WHILE EXISTS (SELECT FROM bench.runs WHERE status = 'starting') LOOP PERFORM pg_sleep(0.02); END LOOP;
END $$;
SELECT (pg_temp.error_of(format('SELECT * FROM bench.compare(%L, %L)', ARRAY[:a], ARRAY[:unended]))).*;
SELECT bench.stop(:unended);
-- a sweep none of whose runs completes
SELECT bench.sweep('divide', '{1,2}', secs => 0.2) AS sweep \gset
SELECT status, runs, completed FROM bench.sweeps WHERE sweep_id = :sweep;
SELECT place, status, run_id IS NOT NULL AS run, error FROM bench.sweep_runs WHERE sweep_id = :sweep ORDER BY place;
SELECT count(*) AS results FROM bench.sweep_results WHERE sweep_id = :sweep;
SELECT verdict FROM bench.scalability(:sweep);
SELECT
    format,
    length(bench.sweep_report(:sweep, format)) > 100 AS report,
    strpos(bench.sweep_report(:sweep, format), 'division by zero') > 0 AS says_why
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SET client_min_messages = warning;

-- History: the runs of a series are alike
SELECT count(*) AS runs, count(DISTINCT options) AS series, bool_and(tags = '{"host": "a"}') AS tags
FROM bench.history
WHERE tags @> '{"host": "a"}';
SELECT count(*) FROM bench.change_points('pk_update', tags => '{"host": "a"}');
SELECT count(*) FILTER (WHERE run_id = :failed) AS failed, count(*) FILTER (WHERE run_id = :unended) AS canceled
FROM bench.history;

DROP OWNED BY regress_sweeper;
DROP ROLE regress_sweeper;
SELECT bench.drop_workload('nothing'), bench.drop_workload('divide');
SELECT bench.unload('pk'), bench.unload('log');
