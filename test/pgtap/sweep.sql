-- Sweeps: what each run of one is, what it begins with, and what is made of the figures; who may.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
DROP ROLE IF EXISTS swp_alice, swp_bob, swp_stats, swp_signal, swp_boss;
CREATE ROLE swp_alice LOGIN;
CREATE ROLE swp_bob LOGIN;
CREATE ROLE swp_boss LOGIN IN ROLE swp_alice;
CREATE ROLE swp_stats LOGIN IN ROLE pg_read_all_stats;
CREATE ROLE swp_signal LOGIN IN ROLE pg_signal_backend;
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO PUBLIC;
SELECT bench.load('pk', 1000, options => '{"fillfactor": 90}'), bench.load('log', 0);
CREATE TABLE public.swp_seen (client int, seed bigint, x int, work_mem text, relation oid, rows bigint);
GRANT ALL ON public.swp_seen TO PUBLIC;
SELECT bench.create_workload('swp_see', $$
    INSERT INTO public.swp_seen SELECT :client_id, :random_seed, :x, current_setting('work_mem'), 'pk'::regclass, :rows;
$$, 'pk');
SELECT bench.create_workload('swp_idle', 'SELECT 1;', 'pk'), bench.create_workload('swp_plain', 'SELECT 1;');
\o

--
-- The plan, and what a run carries of it
--
SELECT bench.sweep('swp_see', '{2,1}', secs => 0.2, rounds => 2, rate => 200, seed => 3, tags => '{"swp": "plan"}',
    settings => '{"work_mem": "5MB", "jit": "off"}', variables => '{"x": 1}',
    variants => '{"own": {"work_mem": "7MB", "variables": {"x": 2}, "settings": {"enable_sort": "off"}},
        "base": {}}') AS sweep \gset
SELECT results_eq('SELECT round, variant, clients, count(*)::int FROM bench.sweep_runs WHERE sweep_id = ' || :sweep
    || ' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3',
    $$
        SELECT r, v, c, 1
        FROM generate_series(1, 2) r, unnest('{base,own}'::text[]) v, generate_series(1, 2) c
        ORDER BY 1, 2, 3
    $$, 'each rung of each variant once in each round');
SELECT is(array_agg(round ORDER BY place), '{1,1,1,1,2,2,2,2}', 'round after round')
FROM bench.sweep_runs
WHERE sweep_id = :sweep;
SELECT
    is(status, 'completed', 'the sweep is completed'),
    is(completed, 8, 'so are its runs'),
    is(clients, '{2,1}', 'the rungs are as they were given')
FROM bench.sweeps
WHERE sweep_id = :sweep;
CREATE TEMP VIEW made AS
SELECT s.*, r.seed, r.settings, r.variables, r.tags, r.sweep_id AS run_sweep_id, r.clients AS run_clients,
    r.environment, r.fixture_rows
FROM bench.sweep_runs s JOIN bench.runs r USING (run_id);
GRANT SELECT ON made TO PUBLIC;
SELECT
    ok(bool_and(run_sweep_id = sweep_id), 'runs carry the sweep''s id'),
    ok(bool_and(tags = '{"swp": "plan"}'), 'and its tags'),
    ok(bool_and(run_clients = clients), 'and their rungs'),
    ok(bool_and(rate = 200), 'and the rate'),
    is(count(DISTINCT (round, seed)), 2::bigint, 'one seed a round'),
    is(count(DISTINCT seed), 2::bigint, 'another in each'),
    ok(bool_and(settings = CASE variant
        WHEN 'own' THEN '{"work_mem": "7MB", "jit": "off", "enable_sort": "off"}'::jsonb
        ELSE '{"work_mem": "5MB", "jit": "off"}'
    END),
        'a variant''s settings go before the sweep''s'),
    ok(bool_and(variables = CASE variant WHEN 'own' THEN '{"x": 2}'::jsonb ELSE '{"x": 1}' END), 'its variables, too')
FROM made
WHERE sweep_id = :sweep;
SELECT results_eq($$
    SELECT DISTINCT m.variant, s.x, s.work_mem
    FROM public.swp_seen s JOIN made m ON m.seed = s.seed AND (m.variables ->> 'x')::int = s.x
    WHERE m.sweep_id =
$$ || :sweep || ' ORDER BY 1', $$VALUES ('base', 1, '5MB'), ('own', 2, '7MB')$$, 'which the clients have in force');
SELECT is(count(*), 4::bigint, 'and no others') FROM (SELECT DISTINCT seed, x, work_mem FROM public.swp_seen) AS s;
SELECT is((
    SELECT v ->> 'setting'
    FROM jsonb_array_elements(environment -> 'server_settings') AS v
    WHERE v ->> 'name' = 'work_mem'
), CASE variant WHEN 'own' THEN '7MB' ELSE '5MB' END, 'the environment has them: ' || variant)
FROM made
WHERE sweep_id = :sweep AND round = 1 AND clients = 1;
-- the same seed, the same plan
SELECT bench.sweep('swp_plain', '{2,1}', secs => 0.1, rounds => 2, seed => 3,
    variants => '{"own": {}, "base": {}}') AS again \gset
SELECT results_eq(
    'SELECT place, round, variant, clients FROM bench.sweep_runs WHERE sweep_id = ' || :again || ' ORDER BY place',
    'SELECT place, round, variant, clients FROM bench.sweep_runs WHERE sweep_id = ' || :sweep || ' ORDER BY place',
    'the same seed gives the same order');
SELECT is(array_agg(seed ORDER BY place), (SELECT array_agg(seed ORDER BY place) FROM made WHERE sweep_id = :sweep),
    'and the same seeds')
FROM made
WHERE sweep_id = :again;

--
-- Variants that load
--
TRUNCATE public.swp_seen;
SELECT bench.sweep('swp_see', '{1,2}', secs => 0.2, rounds => 2, rate => 200, seed => 1, variables => '{"x": 1}',
    variants =>
        '{"small": {"load": {"rows": 100}}, "large": {"load": {"rows": 5000, "fillfactor": 50}}}') AS sweep \gset
SELECT is(count(*), 8::bigint, 'variants that load: all runs are completed')
FROM made
WHERE sweep_id = :sweep AND status = 'completed';
SELECT ok(bool_and(fixture_rows = ARRAY[CASE variant WHEN 'small' THEN 100 ELSE 5000 END]::bigint[]),
    'each run has its variant''s rows')
FROM made
WHERE sweep_id = :sweep;
SELECT
    is(count(DISTINCT (seed, rows)), 4::bigint, 'the script''s rows, too'),
    is(count(DISTINCT relation), 4::bigint, 'each variant is loaded once in a round'),
    is(array_agg(DISTINCT rows), '{100,5000}', 'with as many rows as asked for')
FROM public.swp_seen;
SELECT ok(bool_and(variant = before) FILTER (WHERE place IN (2, 4, 6, 8)),
    'a variant''s runs of a round follow each other')
FROM (SELECT place, variant, lag(variant) OVER (ORDER BY place) AS before FROM made WHERE sweep_id = :sweep) AS s;
SELECT
    is(f.rows, m.fixture_rows[1], 'bench.fixtures has the last one'),
    is(f.options ->> 'fillfactor', CASE m.variant WHEN 'large' THEN '50' ELSE '90' END,
        'a variant''s options go before those that it was loaded with')
FROM bench.fixtures f, made m
WHERE f.name = 'pk' AND f.schema = 'bench_data' AND m.sweep_id = :sweep AND m.place = 8;

--
-- The state before each run
--
SELECT bench.load('pk', 2000, options => '{"fillfactor": 80}') \g /dev/null
SELECT vacuum_count AS vacuums, analyze_count AS analyzes
FROM pg_stat_user_tables
WHERE relid = 'bench_data.pk'::regclass \gset
SELECT bench.sweep('pk_update', '{1,2}', secs => 0.2, before => 'vacuum') AS sweep \gset
SELECT is(completed, 2, 'before => vacuum: completed') FROM bench.sweeps WHERE sweep_id = :sweep;
SELECT
    is(vacuum_count, :vacuums + 2::bigint, 'a VACUUM before each run'),
    is(analyze_count, :analyzes + 2::bigint, 'with ANALYZE')
FROM pg_stat_user_tables
WHERE relid = 'bench_data.pk'::regclass;

INSERT INTO bench_data.log (id) SELECT g FROM generate_series(1000001, 1000003) AS g;
SELECT pg_relation_filenode('bench_data.log') AS node \gset
SELECT bench.sweep('pk_insert', '{1,2}', secs => 0.2, before => 'truncate') AS sweep \gset
SELECT
    ok(pg_relation_filenode('bench_data.log') <> :node, 'before => truncate: emptied'),
    is((SELECT count(*) FROM bench_data.log WHERE id > 1000000), 0::bigint, 'what was there is gone'),
    ok(count(*) BETWEEN (SELECT transactions FROM bench.sweep_runs WHERE sweep_id = :sweep AND place = 2) AND
        (SELECT sum(transactions) - 1 FROM bench.sweep_runs WHERE sweep_id = :sweep),
        'before each run, and not after')
FROM bench_data.log;

DELETE FROM bench_data.pk WHERE id <= 500;
SELECT loaded_at AS loaded, relations[1]::oid AS relation
FROM bench.fixtures
WHERE name = 'pk' AND schema = 'bench_data' \gset
TRUNCATE public.swp_seen;
SELECT bench.sweep('swp_see', '{1,2}', secs => 0.2, rate => 200, variables => '{"x": 1}', before => 'reload')
    AS sweep \gset
SELECT
    ok(loaded_at > :'loaded', 'before => reload: loaded anew'),
    is(rows, 2000::bigint, 'as it was'),
    is(options ->> 'fillfactor', '80', 'with its options'),
    is((SELECT count(*) FROM bench_data.pk), 2000::bigint, 'and its rows')
FROM bench.fixtures
WHERE name = 'pk' AND schema = 'bench_data';
SELECT
    is(count(DISTINCT relation), 2::bigint, 'before each run'),
    ok(bool_and(relation <> :relation), 'the first as well')
FROM public.swp_seen;

-- Reads are counted when the process ends that has made them.
SELECT bench.load('pk', 20000) \g /dev/null
VACUUM ANALYZE bench_data.pk;
SELECT
    heap_blks_read + heap_blks_hit AS heap,
    idx_blks_read + idx_blks_hit AS index,
    pg_relation_size(relid) / current_setting('block_size')::int AS heap_blocks,
    pg_indexes_size(relid) / current_setting('block_size')::int AS index_blocks
FROM pg_statio_user_tables
WHERE relid = 'bench_data.pk'::regclass \gset
SELECT bench.sweep('swp_idle', '{1,2}', secs => 0.1, before => 'prewarm') AS sweep \gset
CALL pg_temp.until(format($$
    SELECT heap_blks_read + heap_blks_hit >= %s FROM pg_statio_user_tables WHERE relid = %L::regclass
$$, :heap + 2 * :heap_blocks, 'bench_data.pk')) \g /dev/null
SELECT is(completed, 2, 'before => prewarm: completed') FROM bench.sweeps WHERE sweep_id = :sweep;
SELECT
    ok(heap_blks_read + heap_blks_hit >= :heap + 2 * :heap_blocks, 'the table is read before each run'),
    ok(idx_blks_read + idx_blks_hit >= :index + 2 * :index_blocks, 'and its index')
FROM pg_statio_user_tables
WHERE relid = 'bench_data.pk'::regclass;

SELECT checkpoint_lsn AS lsn FROM pg_control_checkpoint() \gset
SELECT bench.sweep('pk_update', '{1}', secs => 0.1, before => 'checkpoint') AS sweep \gset
SELECT ok(checkpoint_lsn > :'lsn', 'before => checkpoint: a checkpoint') FROM pg_control_checkpoint();
SELECT bench.sweep('pk_update', '{1}', secs => 0.1, before => ' checkpoint , vacuum,vacuum') AS sweep \gset
SELECT
    is(before, '{vacuum,checkpoint}', 'several steps, in their order, each once'),
    is(status, 'completed', 'are all taken')
FROM bench.sweeps
WHERE sweep_id = :sweep;
SELECT bench.sweep('swp_plain', '{1}', secs => 0.1, before => 'reload,vacuum,prewarm,truncate') AS sweep \gset
SELECT is(status, 'completed', 'a workload without a fixture has none of it') FROM bench.sweeps WHERE sweep_id = :sweep;

--
-- Results
--
SELECT bench.sweep('pk_update', '{1,2,3,4}', secs => 0.2, rounds => 3, tags => '{"swp": "results"}',
    variants => '{"a": {"synchronous_commit": "off"}, "b": {"synchronous_commit": "on"}}') AS sweep \gset
SELECT is((
    SELECT array_agg((clients, CASE variant WHEN 'a' THEN 'off' ELSE 'on' END, rounds, tps_avg::numeric(20,6), tps_min,
        tps_max, tps_stddev::numeric(20,4), latency_avg_ms::numeric(20,9), latency_p99_ms::numeric(20,9),
        server_cpu_us::numeric(20,6), failed)::text ORDER BY clients,
        variant)
    FROM bench.sweep_results
    WHERE sweep_id = :sweep
), (
    SELECT array_agg(s::text ORDER BY clients, sync)
    FROM (
        SELECT
            r.clients,
            r.settings ->> 'synchronous_commit' AS sync,
            count(*)::int,
            avg(u.tps)::numeric(20,6),
            min(u.tps),
            max(u.tps),
            stddev_samp(u.tps)::numeric(20,4),
            avg(u.latency_avg_ms)::numeric(20,9),
            avg(u.latency_p99_ms)::numeric(20,9),
            avg(u.server_cpu_us)::numeric(20,6),
            sum(u.failed)::bigint
        FROM bench.summary u JOIN bench.runs r USING (run_id)
        WHERE r.sweep_id = :sweep
        GROUP BY 1, 2
    ) AS s
), 'bench.sweep_results is what bench.summary has');
SELECT is((SELECT run_ids FROM bench.sweep_results WHERE sweep_id = :sweep AND clients = 2 AND variant = 'a'),
    (SELECT array_agg(run_id ORDER BY round) FROM made WHERE sweep_id = :sweep AND clients = 2 AND variant = 'a'),
    'run_ids are those of the rounds');
SELECT
    is(count(*), 2::bigint, 'bench.scalability: a row for each variant'),
    ok(bool_and(verdict IN ('fits', 'no peak', 'does not fit')), 'with four rungs there is a verdict'),
    ok(bool_and(lambda IS NULL OR lambda BETWEEN lambda_low AND lambda_high), 'estimates within their intervals')
FROM bench.scalability(:sweep);
SELECT
    is((document -> 'sweep' ->> 'sweep_id')::bigint, :sweep::bigint, 'the report as JSON: the sweep'),
    is(jsonb_array_length(document -> 'runs'), 24, 'and its runs'),
    is((SELECT string_agg(DISTINCT format('%s %s', r ->> 'run_id', f ->> 'finding'), E'\n')
        FROM jsonb_array_elements(document -> 'runs') AS r, jsonb_array_elements(r -> 'findings') AS f),
        (SELECT string_agg(DISTINCT format('%s %s', m.run_id, f.finding), E'\n')
        FROM made m, LATERAL bench.findings(m.run_id) AS f WHERE m.sweep_id = :sweep), 'with their findings')
FROM (SELECT bench.sweep_report(:sweep, 'json')::jsonb AS document) AS s;
SELECT is((SELECT count(*) FROM regexp_matches(bench.sweep_report(:sweep, 'html'), ' id="run-([0-9]+)"', 'g')),
    24::bigint, 'the page has a row of each run');

--
-- Comparisons
--
SELECT run_ids AS a FROM bench.sweep_results WHERE sweep_id = :sweep AND variant = 'a' AND clients = 1 \gset
SELECT run_ids AS b FROM bench.sweep_results WHERE sweep_id = :sweep AND variant = 'b' AND clients = 1 \gset
CREATE FUNCTION pg_temp.ratio(a bigint[], b bigint[], metric text) RETURNS numeric LANGUAGE sql AS $$
    SELECT exp((avg(ln(v)) FILTER (WHERE run_id = ANY (b))
        - avg(ln(v)) FILTER (WHERE run_id = ANY (a)))::float8)::numeric(12,8)
    FROM (SELECT run_id, (to_jsonb(u) ->> metric)::float8 AS v FROM bench.summary u WHERE run_id = ANY (a || b)) AS s
$$;
SELECT
    ok(abs(ratio / pg_temp.ratio(:'a', :'b', metric)::float8 - 1) < 1e-4,
        'bench.compare: the ratio of geometric means, ' || metric),
    ok(abs(ln(ratio_low) + ln(ratio_high) - 2 * ln(ratio)) < 3e-4, 'in the middle of its interval, as logarithms')
FROM bench.compare(:'a', :'b');
SELECT ok(abs(c.ratio * d.ratio - 1) < 2e-4, 'the other way round it is its inverse, ' || metric)
FROM bench.compare(:'a', :'b') c JOIN bench.compare(:'b', :'a') d USING (metric);
SELECT
    ok(abs(baseline / (SELECT avg(tps) FROM bench.summary WHERE run_id = ANY (:'a')) - 1) < 1e-4,
        'baseline is the mean of its runs'),
    ok(jsonb_path_exists(differences,
        '$[*] ? (@.what == "setting synchronous_commit" && @.baseline == "off" && @.candidate == "on")'),
        'differences name the setting')
FROM bench.compare(:'a', :'b')
WHERE metric = 'tps';
SELECT ok(bool_and(CASE verdict
    WHEN 'same' THEN ratio_low >= 0.5 AND ratio_high <= 2
    WHEN 'faster' THEN ratio_low > 1
    WHEN 'slower' THEN ratio_high < 1
    ELSE advice IS NOT NULL
END),
    'the verdict on tps is of the interval')
FROM bench.compare(:'a', :'b', 0.5)
WHERE metric = 'tps';

SELECT coalesce(max(sweep_id), 0) AS before FROM bench.sweeps \gset
CREATE TEMP TABLE ab AS
SELECT * FROM bench.ab('pk_update', '{"synchronous_commit": "off"}', '{"synchronous_commit": "on"}', rounds => 4,
    secs => 0.2);
SELECT max(sweep_id) AS sweep FROM bench.sweeps \gset
SELECT
    ok(:sweep > :before, 'bench.ab keeps its runs as a sweep'),
    is(array_agg(metric), '{tps,latency_avg_ms,latency_p50_ms,latency_p95_ms,latency_p99_ms,server_cpu_us}',
        'a line for each metric'),
    ok(bool_and(verdict IN ('same', 'faster', 'slower', 'inconclusive')), 'with a verdict'),
    ok(bool_and((advice IS NOT NULL) = (verdict = 'inconclusive')), 'advice where that is inconclusive'),
    ok(bool_and(ratio BETWEEN ratio_low AND ratio_high), 'a ratio and its interval')
FROM ab;
SELECT
    is(rounds, 4, 'as many rounds as asked for'),
    is(clients, '{1}', 'one rung'),
    is(status, 'completed', 'completed')
FROM bench.sweeps
WHERE sweep_id = :sweep;
SELECT is(count(*), 4::bigint, 'a pair in each round')
FROM (
    SELECT round
    FROM bench.sweep_runs
    WHERE sweep_id = :sweep
    GROUP BY round
    HAVING array_agg(variant ORDER BY variant) = '{a,b}'
) AS s;
SELECT ok(abs(ratio / pg_temp.ratio(
        (SELECT run_ids FROM bench.sweep_results WHERE sweep_id = :sweep AND variant = 'a'),
        (SELECT run_ids FROM bench.sweep_results WHERE sweep_id = :sweep AND variant = 'b'),
        metric)::float8 - 1) < 1e-4,
    'the ratio is that of the pairs: ' || metric)
FROM ab;

--
-- History
--
SELECT
    is(count(*), 24::bigint, 'bench.history has the runs of a sweep'),
    is(count(DISTINCT options), 8::bigint, 'a series for each rung and variant')
FROM bench.history
WHERE workload = 'pk_update' AND tags = '{"swp": "results"}';
-- Twenty runs that were never made: a step down by a fifth after the tenth.
\o /dev/null
CREATE TEMP TABLE series (i int, run_id bigint, tps float8);
INSERT INTO series
SELECT i, nextval('bench_internal.run_id_seq'), CASE WHEN i <= 10 THEN 1000 ELSE 800 END + (i * 37 % 11)
FROM generate_series(1, 20) AS i;
INSERT INTO bench_internal.run_log (run_id, workload, script, clients, secs, warmup, max_tries, seed, results,
    variables, settings, sample_interval, tags, status, started_at, finished_at, role, horizon_held, extension_version,
    segment, coordinator_pid, latency_avg_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, server_cpu_us,
    server_version)
SELECT
    run_id,
    'swp_past',
    'SELECT 1;',
    1,
    1,
    0,
    1,
    i,
    'serialize',
    '{}',
    '{}',
    1,
    jsonb_build_object('series', 'step'),
    'completed',
    '2026-01-01'::timestamptz + i * interval '1 day',
    '2026-01-02',
    current_user,
    false,
    '0',
    0,
    0,
    1000 / tps,
    1,
    1,
    1000 / tps,
    9000 / tps,
    CASE WHEN i <= 10 THEN '17.4' ELSE '18.1' END
FROM series;
INSERT INTO bench.samples (run_id, elapsed, secs, at, clients, transactions, tps, failed, retried)
SELECT run_id, 1, 1, '2026-01-01', 1, tps, tps, 0, 0
FROM series;
\o
SELECT
    is(array_agg(i), '{11}', 'bench.change_points: a step is found at the first run of the new level'),
    is(max(before), (SELECT avg(tps) FROM series WHERE i <= 10), 'before is the mean until then'),
    is(max(after), (SELECT avg(tps) FROM series WHERE i > 10), 'after the mean since'),
    ok(bool_and(abs(change
        - (exp((SELECT avg(ln(tps)) FILTER (WHERE i > 10) - avg(ln(tps)) FILTER (WHERE i <= 10) FROM series))
            - 1)) < 1e-5),
        'change is that of the geometric means'),
    ok(bool_and(change BETWEEN change_low AND change_high AND change_high < 0), 'within its interval'),
    ok(bool_and(p BETWEEN 0 AND 0.05), 'significant'),
    ok(bool_and(at = '2026-01-12'), 'with its time'),
    is(jsonb_agg(c.differences), '[[{"what": "server_version", "baseline": "17.4", "candidate": "18.1"}]]',
        'and what else changed then')
FROM bench.change_points('swp_past') c JOIN series USING (run_id);
SELECT
    is(count(*), 1::bigint, 'by tags'),
    ok(bool_and(change > 0), 'and by latency, which rises')
FROM bench.change_points('swp_past', 'latency_p99_ms', '{"series": "step"}');
SELECT is(count(*), 1::bigint, 'and by processor time') FROM bench.change_points('swp_past', 'server_cpu_us');
SELECT is(count(*), 0::bigint, 'a level metric has no change') FROM bench.change_points('swp_past', 'latency_p50_ms');
SELECT is(count(*), 0::bigint, 'other tags have no runs')
FROM bench.change_points('swp_past', tags => '{"series": "other"}');
-- the same figures in two series: none changes
UPDATE bench_internal.run_log SET clients = 2 WHERE run_id IN (SELECT run_id FROM series WHERE i > 10);
SELECT is(count(*), 0::bigint, 'runs of other options are another series') FROM bench.change_points('swp_past');
SELECT is(count(DISTINCT options), 2::bigint, 'in bench.history, too') FROM bench.history WHERE workload = 'swp_past';

--
-- As many rounds as make means sure: Stein's number by the first five
--
SELECT bench.create_workload('swp_waits', E'\\sleep 2 ms\nSELECT 1;') \g /dev/null
SELECT bench.sweep('swp_waits', '{1,2}', secs => 0.1, rounds => NULL) AS sweep \gset
SELECT
    is(status, 'completed', 'rounds => NULL') ,
    ok(rounds BETWEEN 5 AND 50, 'rounds => NULL: bench.sweeps has the most that there were')
FROM bench.sweeps WHERE sweep_id = :sweep;
SELECT is(
    count(*),
    -- 2.776: Student's quantile of four degrees of freedom.
    least(50, greatest(5, ceil((2.7764451 / ln(1.02::float)) ^ 2
        * var_samp(ln(tps)) FILTER (WHERE round <= 5))))::bigint,
    'rounds => NULL: ' || clients || ' clients have as many rounds as they need')
FROM bench.sweep_runs WHERE sweep_id = :sweep GROUP BY clients ORDER BY clients;
SELECT count(*) AS metrics FROM bench.ab('swp_waits', '{}', '{}', rounds => NULL, secs => 0.1) \gset
SELECT max(sweep_id) AS sweep FROM bench.sweeps \gset
SELECT is(
    array_agg(DISTINCT n),
    ARRAY[least(50, greatest(5, ceil((2.7764451 / ln(1.02::float)) ^ 2 * max(spread))))::bigint],
    'bench.ab with rounds => NULL: as many pairs as their ratio needs')
FROM (SELECT count(*) AS n FROM bench.sweep_runs WHERE sweep_id = :sweep GROUP BY variant) AS variants,
    (SELECT var_samp(ln(b.tps / a.tps)) AS spread
     FROM bench.sweep_runs a JOIN bench.sweep_runs b USING (sweep_id, round)
     WHERE sweep_id = :sweep AND a.variant = 'a' AND b.variant = 'b' AND round <= 5) AS ratio;
-- Taken up after its first rounds, it makes the others.
SELECT bench.start_sweep('swp_waits', '{1}', secs => 0.1, rounds => NULL, seed => 7) AS sweep \gset
SELECT bench.wait_sweep(:sweep) \g /dev/null
DELETE FROM bench_internal.sweep_run_log WHERE sweep_id = :sweep AND round > 5;
UPDATE bench_internal.sweep_log SET status = 'canceled' WHERE sweep_id = :sweep;
SELECT bench.resume_sweep(:sweep) \g /dev/null
SELECT is(bench.wait_sweep(:sweep), 'completed', 'rounds => NULL: it can be taken up');
SELECT is(
    count(*), least(50, greatest(5, ceil((2.7764451 / ln(1.02::float)) ^ 2
        * var_samp(ln(tps)) FILTER (WHERE round <= 5))))::bigint, 'rounds => NULL, resumed: has as many as it needs')
FROM bench.sweep_runs WHERE sweep_id = :sweep;

--
-- Who may
--
SET SESSION AUTHORIZATION swp_bob;
SELECT throws_ok(call, '42501', NULL, call || ' is not for everybody')
FROM unnest(ARRAY[$$SELECT bench.sweep('swp_plain', '{1}')$$, $$SELECT bench.start_sweep('swp_plain', '{1}')$$,
    'SELECT bench.resume_sweep(1)', $$SELECT bench.ab('swp_plain', '{}', '{}')$$,
    $$SELECT bench.calibrate('swp_plain')$$, $$SELECT bench.capacity('swp_plain')$$,
    $$SELECT bench.start_capacity('swp_plain')$$, 'SELECT * FROM bench_internal.sweep_log',
    'SELECT * FROM bench_internal.sweep_run_log', 'UPDATE bench_internal.sweep_log SET status = NULL',
    $$SELECT nextval('bench_internal.sweep_id_seq')$$]) AS call;
RESET SESSION AUTHORIZATION;
GRANT EXECUTE ON FUNCTION bench.sweep, bench.start_sweep, bench.resume_sweep, bench.ab, bench.load TO swp_alice,
    swp_bob;
GRANT USAGE ON SCHEMA bench_data TO swp_alice;
GRANT SELECT, UPDATE ON bench_data.pk TO swp_alice;
SET SESSION AUTHORIZATION swp_alice;
SELECT bench.sweep('pk_update', '{1,2}', secs => 0.2, variants => '{"x": {"work_mem": "5MB"}}') AS sweep \gset
SELECT
    is(status, 'completed', 'an ordinary role sweeps') ,
    is(role, 'swp_alice', 'as itself')
FROM bench.sweeps
WHERE sweep_id = :sweep;
SELECT ok(bool_and(role = 'swp_alice'), 'its runs as well') FROM bench.runs WHERE sweep_id = :sweep;
SELECT
    throws_ok($$SELECT bench.sweep('pk_update', '{1}', secs => 0.2, before => 'vacuum')$$, '42501', NULL,
        'what it may not vacuum is refused'),
    throws_ok($$SELECT bench.sweep('pk_update', '{1}', secs => 0.2,
            variants => '{"x": {"system": {"work_mem": "5MB"}}}')$$,
        '42501', NULL, 'so are parameters of the server'),
    throws_ok($$SELECT bench.sweep('pk_update', '{1}', secs => 0.2, before => 'checkpoint')$$, '42501', NULL,
        'and a checkpoint'),
    throws_ok($$SELECT * FROM bench.ab('pk_update', '{"system": {"work_mem": "5MB"}}', '{}')$$, '42501', NULL,
        'also in bench.ab');
SELECT bench.start_sweep('pk_update', '{1,2}', secs => 60) AS going \gset
RESET SESSION AUTHORIZATION;
CREATE FUNCTION pg_temp.seen(sweep bigint) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s %s %s', (SELECT count(*) FROM bench.sweeps WHERE sweep_id = sweep),
        (SELECT count(*) FROM bench.sweep_runs WHERE sweep_id = sweep),
        (SELECT count(*) FROM bench.sweep_results WHERE sweep_id = sweep),
        (SELECT count(*) FROM bench.history h JOIN bench.runs r USING (run_id) WHERE r.sweep_id = sweep))
$$;
SELECT is(pg_temp.seen(:sweep), '1 2 2 2', 'a superuser sees it');
SET SESSION AUTHORIZATION swp_bob;
SELECT is(pg_temp.seen(:sweep), '0 0 0 0', 'another role sees nothing of it');
SELECT throws_ok(format(call, sweep), '42501', NULL, format(call, 'another''s sweep') || ' is refused')
FROM unnest('{SELECT bench.stop_sweep(%s),SELECT bench.resume_sweep(%s),SELECT bench.sweep_report(%s),'
    'SELECT * FROM bench.scalability(%s)}'::text[]) AS call,
    unnest(ARRAY[:going]) AS sweep;
SELECT is(count(*), 0::bigint, 'nor does a change point tell of it') FROM bench.change_points('swp_past');
RESET SESSION AUTHORIZATION;
SELECT run_ids[1] AS hers FROM bench.sweep_results WHERE sweep_id = :sweep LIMIT 1 \gset
SET SESSION AUTHORIZATION swp_bob;
SELECT throws_ok(format('SELECT * FROM bench.compare(ARRAY[%s], ARRAY[%s])', :hers, :hers + 1), '42501', NULL,
    'nor can its runs be compared');
SET SESSION AUTHORIZATION swp_stats;
SELECT
    is(pg_temp.seen(:sweep), '1 2 2 2', 'pg_read_all_stats sees it'),
    ok(length(bench.sweep_report(:sweep)) > 100, 'and reports it');
SELECT throws_ok(format('SELECT bench.stop_sweep(%s)', :going), '42501', NULL, 'but does not stop it');
SET SESSION AUTHORIZATION swp_boss;
SELECT is(pg_temp.seen(:sweep), '1 2 2 2', 'a member of the role sees it');
SET SESSION AUTHORIZATION swp_signal;
SELECT
    is(pg_temp.seen(:sweep), '0 0 0 0', 'pg_signal_backend sees nothing'),
    is(bench.stop_sweep(:going), true, 'but stops it');
RESET SESSION AUTHORIZATION;
SELECT is(bench.wait_sweep(:going), 'canceled', 'which ends it');
GRANT EXECUTE ON FUNCTION bench.resume_sweep TO swp_boss;
SET SESSION AUTHORIZATION swp_boss;
SELECT throws_ok(format('SELECT bench.resume_sweep(%s)', :going), '42501', NULL, 'a member does not resume it');
SET ROLE swp_alice;
SELECT is(bench.resume_sweep(:going), :going::bigint, 'as the role it can');
RESET ROLE;
SELECT is(bench.stop_sweep(:going), true, 'a member stops it');
RESET SESSION AUTHORIZATION;
SELECT throws_ok(format('SELECT bench.resume_sweep(%s)', :going), '42501', NULL,
    'a superuser does not resume it either');
SELECT bench.start_sweep('swp_plain', '{1}', secs => 60) AS going \gset
SET SESSION AUTHORIZATION swp_signal;
SELECT throws_ok(format('SELECT bench.stop_sweep(%s)', :going), '42501', NULL,
    'pg_signal_backend does not stop a superuser''s');
RESET SESSION AUTHORIZATION;
SELECT is(bench.stop_sweep(:going), true, 'the superuser does');

\o /dev/null
DELETE FROM bench.samples WHERE run_id IN (SELECT run_id FROM series);
DELETE FROM bench_internal.run_log WHERE run_id IN (SELECT run_id FROM series);
SELECT bench.unload('pk'), bench.unload('log');
SELECT bench.drop_workload(name) FROM bench.workloads WHERE name LIKE 'swp\_%';
DROP TABLE public.swp_seen;
DROP OWNED BY swp_alice, swp_bob, swp_boss, swp_stats, swp_signal;
DROP ROLE swp_alice, swp_bob, swp_boss, swp_stats, swp_signal;
\o
SELECT * FROM finish();
