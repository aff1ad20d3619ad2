-- bench.tps_ok, latency_ok, audit_ok and no_regression_ok, on runs whose figures are planted.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
DROP ROLE IF EXISTS asr_other;
CREATE ROLE asr_other;
SELECT bench.load('pk', 1000);
SELECT bench.run('pk_update', 2, transactions => 50, tags => '{"asr": true}') AS model \gset
-- A run like the model, of ten seconds, with this TPS and latencies of 1 to 100 ms.
CREATE FUNCTION pg_temp.plant(tps float8, status text DEFAULT 'completed') RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    model bigint := (SELECT min(run_id) FROM bench.runs WHERE tags = '{"asr": true}');
    planted bigint := nextval('bench_internal.run_id_seq');
    relation regclass;
    columns text;
BEGIN
    FOREACH relation IN ARRAY
        '{bench_internal.run_log,bench_internal.script_log,bench_internal.audit_log}'::regclass[] LOOP
        SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
        WHERE attrelid = relation AND attnum > 0 AND attname <> 'run_id';
        EXECUTE format('INSERT INTO %1$s (run_id, %2$s) SELECT %3$s, %2$s FROM %1$s WHERE run_id = %4$s',
            relation, columns, planted, model);
    END LOOP;
    UPDATE bench_internal.run_log r SET status = plant.status, secs = 10, transactions = NULL,
        -- after all others: no two work on the fixture at the same time
        started_at = '2000-01-01'::timestamptz + planted * interval '1 hour',
            finished_at = '2000-01-01'::timestamptz + planted * interval '1 hour' + interval '10 s'
    WHERE run_id = planted;
    INSERT INTO bench.samples (run_id, elapsed, secs, at, clients, transactions, tps, failed, retried, latency_avg_ms,
        latency_stddev_ms, latency_max_ms)
    SELECT planted, s, 1, '2000-01-01', 2, tps, tps, 0, 0, 1, 0, 1 FROM generate_series(1, 10) AS s;
    INSERT INTO bench.latencies (run_id, script, low_ms, high_ms, count)
    SELECT planted, 0, ms * 0.995, ms * 1.004, tps / 10 FROM generate_series(1, 100) AS ms;
    RETURN planted;
END $$;
SELECT
    pg_temp.plant(1000) AS good,
    pg_temp.plant(1000, 'canceled') AS canceled,
    pg_temp.plant(1000, 'incomplete') AS incomplete,
    pg_temp.plant(1000, 'running') AS crashed,
    pg_temp.plant(1000) AS wrong,
    pg_temp.plant(1000) AS unaudited,
    pg_temp.plant(1000) AS unmeasured \gset
UPDATE bench_internal.audit_log
SET harness = 100, server = 99, judged = true, reason = 'rows updated'
WHERE run_id = :wrong AND counter = 'n_tup_upd';
DELETE FROM bench_internal.audit_log WHERE run_id = :unaudited;
DELETE FROM bench.samples WHERE run_id = :unmeasured;
DELETE FROM bench.latencies WHERE run_id = :unmeasured;
\o

--
-- tps_ok: each operator below, at and above the figure
--
SELECT check_test(bench.tps_ok(:good, op, value), passes, format('tps 1000 %s %s', op, value),
    format('run %s: tps %s %s', :good, op, value))
FROM (VALUES
    ('>', '{t,f,f}'::boolean[]),
    ('>=', '{t,t,f}'),
    ('<', '{f,f,t}'),
    ('<=', '{f,t,t}'),
    ('=', '{f,t,f}'),
    ('<>', '{t,f,t}')
) AS o (op, expected),
    unnest('{999,1000,1001.5}'::float8[], expected) AS v (value, passes);
SELECT check_test(bench.tps_ok(:good, '>=', 1000, 'fast enough'), true, 'a description', 'fast enough', '');
SELECT check_test(bench.tps_ok(:good, '>', 2000), false, 'a failure', format('run %s: tps > 2000', :good), format(
'        have: 1000
        want: > 2000
         run: %s, pk_update with 2 clients, is completed
     samples: tps min 1000, max 1000 over 10 s', :good));
SELECT check_test(bench.tps_ok(run_id, '>', 1), false, format('a run that is %s', status), NULL,
    format('is %s', status), true)
FROM (VALUES (:canceled, 'canceled'), (:incomplete, 'incomplete'), (:crashed, 'crashed')) AS r (run_id, status);
SELECT check_test(bench.tps_ok(:unmeasured, '<', 1), false, 'a run without samples', NULL, 'have: nothing measured',
    true);
SELECT
    throws_ok(format('SELECT bench.tps_ok(%s, ''<'', ''NaN'')', :good), '22023', 'value must be a number, not NaN',
        'NaN is above all, and so every figure below it'),
    throws_ok(format('SELECT bench.latency_ok(%s, 0.5, ''<'', ''NaN'')', :good), '22023', NULL, 'of latencies as well');

--
-- latency_ok
--
SELECT
    check_test(bench.latency_ok(:good, p, '<', above), true, format('p%s < %s', p, above)),
    check_test(bench.latency_ok(:good, p, '<', below), false, format('p%s < %s', p, below))
FROM (VALUES (0.5, 52, 48), (0.99, 101, 97), (1, 102, 98)) AS v (p, above, below);
SELECT check_test(bench.latency_ok(:good, p, '>', 0.5), true, 'its description',
    format('run %s: p%s latency > 0.5 ms', :good, shown))
FROM (VALUES (0.5, '50'), (0.99, '99'), (0.999, '99.9')) AS v (p, shown);
SELECT check_test(bench.latency_ok(:good, 0.5, '>', 60, 'slow'), false, 'a failure', 'slow',
    'have: (49|50)[.0-9]*\n +want: > 60', true);
SELECT check_test(bench.latency_ok(:canceled, 0.5, '<', 60), false, 'a run that was canceled', NULL, 'is canceled',
    true);
SELECT check_test(bench.latency_ok(:unmeasured, 0.5, '<', 60), false, 'a run without latencies', NULL,
    'have: nothing measured', true);

--
-- audit_ok
--
SELECT check_test(bench.audit_ok(:model), true, 'the audit of a real run', format('run %s: audit', :model), '');
SELECT check_test(bench.audit_ok(:good, 'counts'), true, 'a good audit', 'counts', '');
SELECT check_test(bench.audit_ok(:wrong), false, 'a wrong audit', NULL,
    'n_tup_upd: harness 100, server 99, difference 1 (rows updated)');
SELECT check_test(bench.audit_ok(:unaudited), false, 'a run without an audit', NULL,
    format('run %s has no counters to compare with the server''s', :unaudited));
SELECT check_test(bench.audit_ok(:canceled), false, 'a run that was canceled', NULL,
    format('run %s is canceled', :canceled));

--
-- no_regression_ok: eight runs a side, of 1 % variation
--
CREATE FUNCTION pg_temp.side(tps float8, runs int DEFAULT 8) RETURNS bigint[] LANGUAGE sql AS
'SELECT array_agg(pg_temp.plant(round(tps * (1 + 0.01 * sin(7 * i))))) FROM generate_series(1, runs) AS i';
SELECT
    pg_temp.side(10000) AS before,
    pg_temp.side(10010) AS same,
    pg_temp.side(9000) AS slower,
    pg_temp.side(11000) AS faster,
    pg_temp.side(10000, 1) AS one,
    pg_temp.side(5000, 1) AS one_slower \gset
SELECT check_test(bench.no_regression_ok(:'before', :'same'), true, 'the same', NULL, '');
SELECT check_test(bench.no_regression_ok(:'before', :'faster'), true, 'faster', NULL, '');
SELECT check_test(bench.no_regression_ok(:'before', :'slower', description => 'new release'), false, 'slower by 10 %',
    'new release',
    'tps: [89][0-9]{3}\.[0-9], baseline [0-9]{4,5}\.[0-9]\n +ratio: 0\.[89][0-9]+, 95 % interval 0\.[89][0-9]+ to '
        '0\.9[0-9]+; a regression is below 0\.95\n +verdict: slower',
    true);
SELECT check_test(bench.no_regression_ok(:'before', :'slower', 0.2), true, 'within the margin');
SELECT check_test(bench.no_regression_ok(:'one', :'one_slower'), true, 'one run a side tells nothing', NULL,
    'ratio: 0\.5[0-9]*, no interval.*verdict: inconclusive\n +advice: .+', true);
-- a calibration of such runs says what they cannot tell
INSERT INTO bench_internal.sweep_log (options, status, role, extension_version, segment)
VALUES ('{"calibrates": true}', 'completed', current_user, '', 0) RETURNING sweep_id AS calibration \gset
INSERT INTO bench_internal.sweep_run_log (sweep_id, place, round, variant, clients, run_id)
SELECT :calibration, place, place, '', 2, pg_temp.plant(10000 + 300 * (place % 3))
FROM generate_series(1, 5) AS place;
SELECT check_test(bench.no_regression_ok(ARRAY[pg_temp.plant(10000), pg_temp.plant(11000)],
    ARRAY[pg_temp.plant(10900), pg_temp.plant(10100)]), true, 'a calibration is told', NULL,
    format('verdict: inconclusive\n +advice: .*cannot show a difference of 5 %% with 2 runs per side: '
        'equal runs vary by [0-9.]+ %% \(calibration of sweep %s\)', :calibration), true);
DELETE FROM bench_internal.sweep_log WHERE sweep_id = :calibration;
SELECT check_test(bench.no_regression_ok(:'before', :'same'::bigint[] || ARRAY[:canceled, :crashed]), false,
    'runs that have not completed', NULL, format(E'run %s is canceled\nrun %s is crashed', :canceled, :crashed));
SELECT throws_ok(format('SELECT bench.no_regression_ok(%L, %L, %s)', :'before', :'same', margin), '22023', NULL,
    format('margin %s', margin))
FROM unnest('{-0.1,1,5}'::float8[]) AS margin;
SELECT throws_ok(format('SELECT bench.no_regression_ok(%L, %L, NULL)', :'before', :'same'), '22004', NULL,
    'margin NULL');
SELECT throws_ok(format('SELECT bench.no_regression_ok(%L, ARRAY[-1::bigint])', :'before'), '42704',
    'run -1 does not exist', 'an unknown run');
SELECT throws_ok(format('SELECT bench.no_regression_ok(%L, ARRAY[NULL::bigint])', :'before'), '22004', NULL,
    'a run that is NULL');
SELECT throws_ok(format('SELECT bench.no_regression_ok(%L, %L)', :'before', sides), NULL, NULL,
    format('%s for a side', coalesce(sides, 'NULL')))
FROM unnest(ARRAY['{}', NULL]) AS sides;

--
-- Runs of another role, which may not see these
--
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO PUBLIC;
SET ROLE asr_other;
SELECT throws_ok(format('SELECT bench.%s', call), '42501', format('permission denied for run %s', :good), call)
FROM unnest(ARRAY[format('tps_ok(%s, ''>'', 1)', :good), format('latency_ok(%s, 0.5, ''>'', 1)', :good),
    format('audit_ok(%s)', :good),
    format('no_regression_ok(ARRAY[%1$s::bigint], ARRAY[%1$s::bigint])', :good)]) AS call;
RESET ROLE;

-- They are gone as if they had not been.
DO $$
DECLARE
    relation regclass;
BEGIN
    FOREACH relation IN ARRAY
        ('{bench.samples,bench_internal.script_log,bench_internal.audit_log,bench.latencies,'
            'bench_internal.run_log}')::regclass[] LOOP
        EXECUTE format(
            'DELETE FROM %s WHERE run_id IN (SELECT run_id FROM bench.runs WHERE tags = ''{"asr": true}'')',
            relation);
    END LOOP;
END $$;
\o /dev/null
DROP ROLE asr_other;
SELECT bench.unload('pk');
\o
SELECT * FROM finish();
