-- bench.screen: which of several settings matter.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

SELECT bench.create_workload('scr_planted', $$
    SELECT pg_sleep(0.005 * CASE current_setting('geqo') WHEN 'off' THEN 2 ELSE 1 END
        * CASE current_setting('bgwriter_lru_maxpages') WHEN '99' THEN 2 ELSE 1 END
        / CASE current_setting('checkpoint_warning') WHEN '31s' THEN 0 ELSE 1 END);
$$) \g /dev/null

--
-- Settings of the session and of the server
--
CREATE TEMP TABLE found AS
SELECT * FROM bench.screen('scr_planted', '{"geqo": ["on", "off"], "geqo_seed": [0, 0.5],
    "bgwriter_lru_maxpages": [100, 99], "log_rotation_size": ["10MB", "11MB"]}', rounds => 2, secs => 0.5,
    margin => 0.3);
SELECT max(sweep_id) AS screen FROM bench.sweeps \gset
SELECT is(string_agg(factor || ' ' || a || ' ' || b, ', ' ORDER BY factor),
    'bgwriter_lru_maxpages 100 99, geqo on off, geqo_seed 0 0.5, log_rotation_size 10MB 11MB', 'each has a row')
FROM found;
SELECT is(string_agg(verdict, ' ' ORDER BY factor), 'slower slower same same',
    'the planted ones are found, and no other')
FROM found;
SELECT ok(abs(effect + 0.48) < 0.07 AND effect_low < effect AND effect < effect_high, factor || ': by what was planted')
FROM found
WHERE factor IN ('geqo', 'bgwriter_lru_maxpages');
SELECT is(string_agg(variant || ' ' || runs || ' ' || duels, ', ' ORDER BY variant COLLATE "C"),
    'combination 01 2 0, combination 02 2 0, combination 03 2 0, combination 04 2 0, combination 05 2 0, '
        'combination 06 2 0, combination 07 2 0, combination 08 2 0, geqo 2 2, geqo_seed 2 2',
    'those of the session by duels, those of the server in combinations')
FROM (
    SELECT s.variant, count(*) AS runs, count(d.run_id) AS duels
    FROM bench.sweep_runs s LEFT JOIN bench.duels d USING (run_id)
    WHERE s.sweep_id = :screen
    GROUP BY 1
) AS t;
SELECT is(string_agg(DISTINCT b.setting || ' ' || (r.system ->> 'bgwriter_lru_maxpages'), ', '), '99 99',
    'a combination is in force')
FROM bench.sweep_runs s
    JOIN bench.runs r USING (run_id),
    LATERAL jsonb_to_recordset(r.environment -> 'server_settings') AS b (name text, setting text)
WHERE s.sweep_id = :screen AND b.name = 'bgwriter_lru_maxpages';
SELECT is(current_setting('bgwriter_lru_maxpages'), '100', 'and is not afterwards');
SELECT results_eq(format('SELECT factor, effect, verdict FROM bench.screen_results(%s)', :screen),
    'SELECT factor, effect, verdict FROM found', 'results are there for later, too');
SELECT ok(bool_and(CASE WHEN factor LIKE 'geqo_%' OR factor LIKE 'log%' THEN abs(effect) < 0.3 ELSE effect > 0.7 END),
    'and of latencies') FROM bench.screen_results(:screen, 'latency_avg_ms');
SELECT is(count(effect), 4::bigint, 'and of processor time') FROM bench.screen_results(:screen, 'server_cpu_us');
SELECT is(count(*), 0::bigint, 'a wider margin takes in all')
FROM bench.screen_results(:screen, margin => 0.9)
WHERE verdict <> 'same';
SELECT matches(bench.sweep_report(:screen),
    E'Of 4 settings 2 matter for tps: [^;]*; [12]\\s+(makes?\\s+no\\s+difference|not\\s+decided)',
    'the report begins with the answer');
SELECT matches(bench.sweep_report(:screen, 'html'), 'plot-screen', 'and has a plot');
SELECT is(jsonb_array_length(bench.sweep_report(:screen, 'json')::jsonb -> 'screen'), 4, 'and JSON has it');

--
-- A level that does not work
--
CREATE TEMP TABLE failing AS
SELECT * FROM bench.screen('scr_planted', '{"checkpoint_warning": ["30s", "31s"], "bgwriter_lru_maxpages": [100, 99],
    "statement_timeout": ["0", "1ms"]}', secs => 0.2, margin => 0.3);
SELECT is(string_agg(factor || ' ' || verdict, ', ' ORDER BY factor),
    'bgwriter_lru_maxpages slower, checkpoint_warning fails, statement_timeout fails',
    'is told, and the others are judged') FROM failing;
SELECT matches(error, 'checkpoint_warning = 31s: division by zero', 'with the reason')
FROM failing
WHERE factor = 'checkpoint_warning';
SELECT is(current_setting('checkpoint_warning'), '30s', 'and settings are restored');
SELECT matches(string_agg(error, ''), 'p99 of .* ms is above latency_limit of 0.0001 ms', 'as is one that is too slow')
FROM bench.screen(NULL, '{"geqo": ["on", "off"]}', rounds => 1, secs => 0.3, latency_limit => 0.0001,
    script => 'SELECT 1');

--
-- What is refused
--
SELECT throws_ok(format('SELECT * FROM bench.screen(''scr_planted'', %L)', factors), code, NULL, factors)
FROM (
    VALUES (NULL, '22004'), ('{}', '22023'), ('[]', '22023'), ('{"jit": "on"}', '22023'), ('{"jit": ["on"]}', '22023'),
        ('{"jit": ["on", "on"]}', '22023'), ('{"jit": ["on", {}]}', '22023'), ('{"nosuchsetting": [1, 2]}', '42704'),
        ('{"block_size": [1, 2]}', '55P02'), ('{"log_connections": ["on", "off"]}', '55P02'),
        ('{"work_mem": ["1MB", "much"]}', '22023'), ('{"checkpoint_warning": ["1s", "much"]}', '22023')
) AS t (factors, code);
SELECT throws_ok($$SELECT * FROM bench.screen('scr_planted', '{"jit": ["on", "off"]}', rounds => NULL)$$, '22004');
SELECT throws_ok($$SELECT * FROM bench.screen('scr_planted', '{"jit": ["on", "off"]}', margin => 2)$$, '22023');
SELECT throws_ok($$SELECT * FROM bench.screen_results(-1)$$, '42704');
SELECT throws_ok(format('SELECT * FROM bench.screen_results(%s, ''speed'')', :screen), '22023');
SELECT bench.sweep('scr_planted', '{1}', secs => 0.1) AS sweep \gset
SELECT throws_ok(format('SELECT * FROM bench.screen_results(%s)', :sweep), '55000', NULL, 'another sweep is none');
CREATE ROLE scr_alice LOGIN;
SELECT bench.allow('scr_alice') \g /dev/null
SET ROLE scr_alice;
SELECT throws_ok(format('SELECT * FROM bench.screen_results(%s)', :screen), '42501', NULL, 'others'' are not shown');
SELECT throws_ok($$SELECT * FROM bench.screen('scr_planted', '{"checkpoint_warning": ["1s", "2s"]}')$$, '42501', NULL,
    'settings of the server are for superusers');
RESET ROLE;

SELECT bench.start_screen('scr_planted', '{"shared_buffers": ["16MB", "32MB"]}', secs => 0.1) AS waiting \gset
SELECT is(bench.wait_sweep(:waiting), 'waiting for restart', 'settings that need a restart wait for it');
SELECT ok(bench.stop_sweep(:waiting), 'and can be given up');
SELECT * FROM finish();
