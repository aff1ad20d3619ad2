-- Statements of two sets of runs beside each other.
SET client_min_messages = error;
SELECT no_plan();

SELECT bench.load('pk', 5000) \g /dev/null
SELECT bench.create_workload('compared', $$
\set id random(1, :rows)
SELECT * FROM pk WHERE id = :id;
SELECT count(*) FROM generate_series(1, :n);
$$, fixture => 'pk') \g /dev/null
CREATE TABLE made (side text, run_id bigint);
CREATE PROCEDURE make(side text, n int, runs int, settings jsonb DEFAULT '{}') LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..runs LOOP
        INSERT INTO made VALUES (side, bench.run('compared', secs => 0.4, variables => jsonb_build_object('n', n),
            settings => settings));
    END LOOP;
END $$;
CALL make('few', 20, 4);
CALL make('many', 20000, 4);
CALL make('scan', 20, 4, '{"enable_indexscan": "off", "enable_bitmapscan": "off"}');
CREATE FUNCTION of(side text) RETURNS bigint[] LANGUAGE sql AS
'SELECT array_agg(run_id ORDER BY run_id) FROM made AS m WHERE m.side = of.side';
CREATE TEMP TABLE compared AS SELECT row_number() OVER () AS place, *
FROM bench.compare_statements(of('few'), of('many'));
SELECT set_eq('SELECT workload, command, statement FROM compared', $$ VALUES
    ('compared', 2, 'SELECT * FROM pk WHERE id = :id;'),
    ('compared', 3, 'SELECT count(*) FROM generate_series(1, :n);') $$,
    'there is a line for each statement, and none for \set');
SELECT results_eq('SELECT command, verdict FROM compared WHERE place = 1', $$ VALUES (3, 'slower'::text) $$,
    'the one that takes longer comes first');
SELECT ok(ratio > 5 AND ratio_low < ratio AND ratio < ratio_high AND p95_ratio > 5 AND p95_ratio_low < p95_ratio
    AND baseline_ms > 0 AND candidate_ms > 5 * baseline_ms AND effect > 1, 'with its ratios and its effect')
FROM compared WHERE command = 3;
SELECT ok(abs(effect) < (SELECT effect FROM compared WHERE command = 3), 'the other one changes less: ' || effect)
FROM compared WHERE command = 2;
SELECT ok(abs(sum(baseline_share) - 1) < 1e-4 AND abs(sum(candidate_share) - 1) < 1e-4, 'shares are of the whole')
FROM compared;
SELECT set_eq('SELECT command, baseline_rows, candidate_rows, baseline_failed, plan_changed FROM compared',
    $$ VALUES (2, 1.0::float8, 1.0::float8, 0::bigint, false), (3, 1.0, 1.0, 0, false) $$,
    'rows, errors and plans are told');
SELECT is(count(*) FILTER (WHERE baseline_count > 0 AND candidate_count > 0), 2::bigint, 'and executions')
FROM compared;
SELECT results_eq($$ SELECT command, verdict, plan_changed, baseline_plan LIKE '%Index Scan%',
        candidate_plan LIKE '%Seq Scan%'
    FROM bench.compare_statements(of('few'), of('scan')) LIMIT 1 $$,
    $$ VALUES (2, 'slower'::text, true, true, true) $$, 'a plan that changed is told with both');

-- Without a spread there is no verdict.
SELECT set_eq($$ SELECT verdict, advice FROM bench.compare_statements((of('few'))[:1], (of('many'))[:1]) $$,
    $$ VALUES ('inconclusive', 'at least 2 runs per side are needed') $$, 'one run a side decides nothing');
SELECT set_eq(format($$ SELECT verdict, advice, ratio FROM bench.compare_statements(%L, ARRAY[%s])
        WHERE statement LIKE '%%1;' $$, of('few'), (SELECT bench.run(script => 'SELECT 1;', transactions => 10))),
    $$ VALUES ('inconclusive', 'only one side executed it', NULL::float8) $$, 'nor a statement of one side');
SELECT throws_ok($$ SELECT * FROM bench.compare_statements('{}', '{1}') $$, '22023', NULL, 'a side needs runs');
SELECT throws_ok($$ SELECT * FROM bench.compare_statements(of('few'), of('few')) $$, '22023', NULL, 'of its own');
SELECT throws_ok($$ SELECT * FROM bench.compare_statements(of('few'), of('many'), 1) $$, '22023', NULL, 'and a margin');
SELECT throws_ok($$ SELECT * FROM bench.compare_statements(NULL, '{1}') $$, '22004');
CREATE ROLE compare_stranger;
SELECT of('few') AS few, of('many') AS many \gset
SET ROLE compare_stranger;
SELECT throws_ok(format('SELECT * FROM bench.compare_statements(%L, %L)', :'few', :'many'), '42501', NULL,
    'strangers learn nothing');
RESET ROLE;
SELECT * FROM finish();
