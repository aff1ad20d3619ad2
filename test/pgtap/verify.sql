-- A verdict on each statement of a workload that is run in two ways: in a duel, or in pairs of runs.
SET client_min_messages = error;
SELECT no_plan();

SELECT bench.load('pk', 5000) \g /dev/null
CREATE FUNCTION half(int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('work_mem') = '1MB' THEN
        RAISE 'not with so little';
    END IF;
    RETURN $1 / 2;
END $$;
SELECT bench.create_workload('verified', $$
\set id random(1, :rows)
SELECT * FROM pk WHERE id = :id;
SELECT count(*) FROM generate_series(1, 20);
$$, fixture => 'pk') \g /dev/null
SELECT bench.create_workload('halves', 'SELECT public.half(4);') \g /dev/null

--
-- Arms that take turns
--
CREATE TEMP TABLE duel AS SELECT * FROM bench.verify('verified', '{}',
    '{"enable_indexscan": "off", "enable_bitmapscan": "off"}', clients => 2, secs => 2);
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT results_eq('SELECT workload, command, statement, verdict, plan_changed FROM duel LIMIT 1',
    $$ VALUES ('verified', 2, 'SELECT * FROM pk WHERE id = :id;', 'slower', true) $$,
    'the statement without its index comes first');
SELECT ok(ratio > 5 AND ratio_low < ratio AND ratio < ratio_high AND effect > 1 AND p95_ratio > 2
    AND p95_ratio_low IS NULL AND baseline_plan LIKE '%Index Scan%' AND candidate_plan LIKE '%Seq Scan%'
    AND baseline_rows = 1 AND candidate_rows = 1, 'with its figures') FROM duel WHERE command = 2;
SELECT ok(count(*) = 2 AND abs(sum(baseline_share) - 1) < 1e-4 AND abs(sum(candidate_share) - 1) < 1e-4
    AND bool_and(baseline_count > 0 AND candidate_count > 0 AND baseline_failed = 0 AND candidate_failed = 0)
    AND bool_and(NOT plan_changed) FILTER (WHERE command = 3), 'and so have all that are executed') FROM duel;
SELECT bag_eq('SELECT statement, baseline_ms, ratio, ratio_low, ratio_high, verdict FROM duel',
    format('SELECT statement, a_latency_avg_ms, ratio, ratio_low, ratio_high, verdict
        FROM bench.duel_statements(%s, 0.05) WHERE statement LIKE ''SELECT%%''', :run_id),
    'which are those of the duel');
SELECT alike(bench.verify_report(:run_id), '%Statements of both arms%SELECT * FROM pk WHERE id = :id%',
    'the report is that of the duel');
SELECT alike(bench.verify_report(:run_id, 'junit'),
    E'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites tests="2" failures="%" skipped="%">%'
    '<testcase classname="verified" name="2: SELECT * FROM pk WHERE id = :id;"%'
    '<failure message="%" type="slower">%Index Scan%Seq Scan%',
    'and for continuous integration, there is a failure');

-- What shares a session with a much slower statement, and what is slower itself
SELECT bench.load('pk', 50000) \g /dev/null
SELECT is_empty($$ SELECT command, ratio, cpu_ratio, verdict, advice
    FROM bench.verify('verified', '{}', '{"enable_indexscan": "off", "enable_bitmapscan": "off"}', secs => 1)
    WHERE command = 3 AND verdict = 'slower' $$, 'the statement beside it is not slower, duel ' || n)
FROM generate_series(1, 4) AS n;
SELECT bench.create_workload('slower', $$
SELECT count(*) FROM generate_series(1, :n);
SELECT pg_sleep(:wait * 0.001);
$$) \g /dev/null
CREATE TEMP TABLE slower AS SELECT * FROM bench.verify('slower', '{"variables": {"n": 200, "wait": 1}}',
    '{"variables": {"n": 20000, "wait": 4}}', secs => 2, settings => '{"plan_cache_mode": "force_custom_plan"}');
SELECT set_eq('SELECT command, verdict, plan_changed FROM slower',
    $$ VALUES (1, 'slower', false), (2, 'slower', false) $$, 'by processor time, or by waiting');
SELECT ok(candidate_cpu_us > 2 * baseline_cpu_us AND cpu_ratio BETWEEN cpu_ratio_low AND cpu_ratio_high
    AND abs(cpu_ratio / candidate_cpu_us * baseline_cpu_us - 1) < 1e-3, 'with processor times and their ratio')
FROM slower WHERE command = 1;
SELECT ok(candidate_cpu_us < 1e3, 'waits are in none') FROM slower WHERE command = 2;

-- What fails
CREATE TEMP TABLE fails AS SELECT * FROM bench.verify('halves', '{}', '{"work_mem": "1MB"}', secs => 1);
SELECT results_eq('SELECT verdict, baseline_failed, candidate_failed > 10, candidate_count FROM fails',
    $$ VALUES ('fails', 0::bigint, true, 0::bigint) $$, 'a statement that fails on one side');

--
-- What cannot take turns: pairs of runs
--
-- So much slower that five pairs of runs decide it on any machine.
CREATE TEMP TABLE paired AS SELECT * FROM bench.verify('verified', '{"load": {"rows": 50000}}',
    '{"load": {"rows": 40000}, "enable_indexscan": "off", "enable_bitmapscan": "off"}', rounds => 5,
    transactions => 200);
SELECT results_eq('SELECT command, verdict, plan_changed, baseline_count FROM paired LIMIT 1',
    $$ VALUES (2, 'slower', true, 1000::bigint) $$, 'of five runs a side');
SELECT ok(p95_ratio_low < p95_ratio AND p95_ratio < p95_ratio_high, 'with intervals of p95') FROM paired LIMIT 1;
SELECT set_eq('SELECT DISTINCT paired FROM (SELECT count(*) AS paired FROM bench.sweep_runs) AS r', '{10}'::bigint[],
    'they are kept as a sweep');
SELECT min(run_id) AS first_id, max(run_id) AS last_id FROM bench.sweep_runs \gset
SELECT is(bench.verify_report(:first_id), bench.verify_report(:last_id), 'any of them leads to the report of all');
SELECT alike(bench.verify_report(:first_id), 'baseline: 5 runs%Of 2 statements % slower%in pairs%Statements%differs%',
    'which has the statements');
SELECT alike(bench.verify_report(:first_id, 'json'), '%"statements":[{"workload":"verified","command":2%', 'as JSON');
SELECT alike(bench.verify_report(:first_id, 'html'), '%compared-statements%', 'as a page');
SELECT alike(bench.verify_report(:first_id, 'junit'), '%<testsuites tests="2" failures="%type="slower"%',
    'and as tests');

--
-- pgTAP
--
SELECT * FROM check_test(bench.verify_ok('verified', '{}', '{}', 0.5, secs => 2), true, 'verify_ok, same arms');
SELECT * FROM check_test(bench.verify_ok('verified', '{}', '{"enable_indexscan": "off", "enable_bitmapscan": "off"}',
    secs => 2), false, 'verify_ok, a slower statement');
SELECT * FROM check_test(bench.verify_ok('halves', '{}', '{"work_mem": "1MB"}', secs => 1), false,
    'verify_ok, a statement that fails', 'halves: no statement of b is slower');
-- As if the workload were a capture that has not kept all.
INSERT INTO bench_internal.capture_list (name, role, source, status, started_at, finished_at, owner_oid)
VALUES ('verified', current_user, 'statements', 'completed', '2020-01-01', '2020-01-01', current_user::regrole);
INSERT INTO bench.capture_statements (capture, number, calls, share, query, reason)
VALUES ('verified', 1, 1, 0.06, 'SELECT lost', 'it is lost');
SELECT * FROM check_test(bench.verify_ok('verified', '{}', '{}', 0.5, secs => 1), false,
    'verify_ok, where more is not replayed than may be');
SELECT * FROM check_test(bench.verify_ok('verified', '{}', '{}', 0.5, secs => 1, max_missing => 0.1), true,
    'verify_ok, where it may be missing');
SELECT throws_ok('SELECT bench.verify_ok(''verified'', ''{}'', ''{}'', max_missing => NULL)', '22004');
SELECT max(run_id) AS missing_id FROM bench.duels \gset
SELECT alike(bench.verify_report(:missing_id, 'junit'),
    '%failures="1"%skipped="%type="not replayed"%not replayed, 6.0 \% of the captured time: it is lost%',
    'junit says so');
SELECT unalike(bench.verify_report(:missing_id, 'junit', max_missing => 0.06), '%type="not replayed"%',
    'unless it may');
SELECT alike(bench.report(:missing_id), '%not replayed: 1 statement with 6.0 \% of the captured time%',
    'and so does the report');
SELECT throws_ok(format('SELECT bench.verify_report(%s, max_missing => 2)', :missing_id), '22023');
DELETE FROM bench_internal.capture_list WHERE name = 'verified';
DELETE FROM bench.capture_statements WHERE capture = 'verified';

--
-- What cannot be
--
SELECT bench.run('verified', transactions => 1) AS plain_id \gset
SELECT throws_ok(format('SELECT bench.verify_report(%s)', :plain_id), '55000', NULL,
    'a run alone has no report of two');
SELECT throws_ok(format('SELECT bench.verify_report(%s, ''xml'')', :run_id), '22023',
    'unrecognized value for format: "xml"', 'an unknown format');
SELECT throws_ok('SELECT bench.verify_report(NULL)', '22004');
SELECT throws_ok($$ SELECT * FROM bench.verify('verified', '{}', NULL) $$, '22004');
SELECT throws_ok($$ SELECT * FROM bench.verify('verified', '{}', '{}', margin => 1) $$, '22023');
SELECT throws_ok($$ SELECT * FROM bench.verify('verified', '{}', '{"system": {"shared_buffers": "1GB"}}') $$, '55P02',
    NULL, 'what pairs of runs cannot differ in');
CREATE ROLE verify_stranger;
SET ROLE verify_stranger;
SELECT throws_ok(format('SELECT bench.verify_report(%s)', :run_id), '42501', NULL, 'strangers learn nothing');
SELECT throws_ok(format('SELECT bench.verify_report(%s)', :first_id), '42501', NULL, 'of pairs of runs either');
SELECT throws_ok($$ SELECT * FROM bench.verify('verified', '{}', '{}') $$, '42501', NULL, 'and make none');
RESET ROLE;
SELECT * FROM finish();
