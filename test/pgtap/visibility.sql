-- Who sees what belongs to a run: roles with the privileges of its role, pg_read_all_stats, superusers. Every relation
-- that everybody may read and every function is asked: a new one has to be put into its place here.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

DROP SCHEMA IF EXISTS vis_own CASCADE;
DROP ROLE IF EXISTS vis_owner, vis_member, vis_noinherit, vis_stats, vis_shy_stats, vis_signal, vis_stranger, vis_gone;
CREATE ROLE vis_owner LOGIN;
CREATE ROLE vis_member LOGIN IN ROLE vis_owner;
CREATE ROLE vis_noinherit LOGIN NOINHERIT IN ROLE vis_owner;
CREATE ROLE vis_stats LOGIN IN ROLE pg_read_all_stats;
CREATE ROLE vis_shy_stats LOGIN NOINHERIT IN ROLE pg_read_all_stats;
CREATE ROLE vis_signal LOGIN IN ROLE pg_signal_backend;
CREATE ROLE vis_stranger LOGIN;
CREATE ROLE vis_gone LOGIN;
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO PUBLIC;
CREATE TEMP TABLE reader (role text, sees boolean);
INSERT INTO reader VALUES ('vis_owner', true), ('vis_member', true), ('vis_stats', true), (current_user, true),
    ('vis_noinherit', false), ('vis_shy_stats', false), ('vis_signal', false), ('vis_stranger', false);

-- What a query counts, or a function answers, to a role; its SQLSTATE where it is refused.
CREATE FUNCTION pg_temp.told(role text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    EXECUTE query INTO answer;
    RESET ROLE;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;

--
-- A run of everything
--
GRANT EXECUTE ON FUNCTION bench.run, bench.start, bench.load, bench.start_sweep, bench.resume_sweep, bench.sweep,
    bench.import TO vis_owner;
GRANT EXECUTE ON FUNCTION bench.run, bench.import, bench.prune TO vis_gone;
GRANT EXECUTE ON FUNCTION bench.resume_sweep, bench.fetch, bench.prune, bench.delete_run TO PUBLIC;
CREATE SCHEMA vis_own AUTHORIZATION vis_owner;
SELECT
    bench.create_workload('vis_fails', 'SELECT 1 / 0;'),
    bench.create_workload('vis_slow', 'SELECT pg_sleep(0.01);') \g /dev/null
SET SESSION AUTHORIZATION vis_owner;
SELECT bench.load('pk', 1000, options => '{"schema": "vis_own"}') \g /dev/null
SELECT bench.run('pk_update', warmup => 0.2, secs => 0.4, sample_interval => 0.1, log_rate => 1) AS run \gset
SELECT bench.run('vis_fails', transactions => 1) AS failed \gset
SELECT bench.sweep('pk_select', '{1}', secs => 0.1) AS sweep \gset
SELECT (bench.import(bench.export(ARRAY[:run])))[1] AS imported \gset
SELECT bench.start('vis_slow', secs => 600) AS going \gset
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION vis_gone;
SELECT bench.run('vis_slow', secs => 0.1) AS left_behind \gset
RESET SESSION AUTHORIZATION;
DROP OWNED BY vis_gone;
DROP ROLE vis_gone;
-- What a search leaves, and what variants by SQL do.
UPDATE bench_internal.sweep_log
SET answers = '[{"rate": 1, "percentile": 0.99}]',
    changes = format('[{"round": 1, "variant": "x",
        "rehearsal": {"run_id": %s, "change_begin": 1, "queue": [{"pid": 1}]}}]', :run)::jsonb
WHERE sweep_id = :sweep;
-- None of these is sure to come to such a short run.
INSERT INTO bench_internal.event_log (run_id, event, kind, started) VALUES (:run, 1000, 'checkpoint', 0.1);
INSERT INTO bench.standbys (run_id, elapsed, pid, name) VALUES (:run, 0.1, 1, 'walreceiver');
UPDATE bench_internal.run_log SET duel = '{"a": {}, "b": {}}' WHERE run_id = :run;
INSERT INTO bench_internal.duel_log
SELECT :run, 0, arm, '{1}', '{1}', '{0}', '{0}', '{1}', '{1}', '{1}', '{1}', '{1}', '{1}', '{0}', NULL, '[{}]'
FROM (VALUES ('a'), ('b')) AS t (arm);
INSERT INTO bench_internal.duel_wait_log VALUES (:run, 0, 'a', 'CPU', 'CPU', 1);
SELECT segment AS going_segment FROM bench_internal.run_log WHERE run_id = :going \gset
SELECT segment AS run_segment FROM bench_internal.run_log WHERE run_id = :run \gset
SELECT load_id AS loaded FROM bench_internal.load_log WHERE role = 'vis_owner' \gset

--
-- Relations
--
CREATE TEMP TABLE shown AS
SELECT
    c.oid::regclass::text AS relation,
    (
        SELECT string_agg(a.attname, ' ' ORDER BY a.attname)
        FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attname IN ('run_id', 'sweep_id', 'load_id') AND NOT a.attisdropped
    ) AS keys FROM pg_class c
WHERE c.relnamespace = 'bench'::regnamespace
    AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
    AND has_table_privilege('vis_stranger', c.oid, 'SELECT');
SELECT is(array_agg(relation ORDER BY relation),
    '{bench.capture_statements,bench.captured_rows,bench.captures,bench.feeders,bench.fixture_definitions,'
        'bench.fixture_queries,bench.fixtures,bench.workloads}',
    'relations that everybody may read and that are not about runs')
FROM shown
WHERE keys IS NULL;
SELECT is((pg_temp.told(role,
    format('SELECT count(*) > 0 FROM %s WHERE %s', relation,
        CASE
            WHEN keys ~ 'run_id' THEN format(
                'run_id IN (%s, %s, %s, (SELECT max(run_id) FROM bench.sweep_runs WHERE sweep_id = %s))',
                :run, :failed, :going, :sweep)
            WHEN keys = 'load_id' THEN format('load_id = %s', :loaded)
            ELSE format('sweep_id = %s', :sweep)
        END))),
    sees::text, format('%s: %s %s', relation, role, CASE WHEN sees THEN 'sees it' ELSE 'sees nothing' END))
FROM shown, reader
WHERE keys IS NOT NULL
ORDER BY relation, sees, role;
-- Whatever the role asks, and by whatever function.
CREATE FUNCTION pg_temp.leak(seen text) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'leaked: %', seen;
END $$;
SELECT is(pg_temp.told('vis_stranger', format('SELECT count(*) FROM %s AS x WHERE pg_temp.leak(x::text)', relation)),
    '0', relation || ' leaks nothing')
FROM shown
WHERE keys IS NOT NULL
ORDER BY relation;
SELECT is(pg_temp.told('vis_stranger', format('SELECT count(*) FROM %s', relation)), '0',
    relation || ': a stranger sees no row of anybody''s')
FROM shown
WHERE keys IS NOT NULL
ORDER BY relation;
-- Imported runs are the importing role's, and those of a role that is gone nobody's but for those who may see all.
SELECT
    is(pg_temp.told(role,
        format($$
            SELECT (SELECT count(*) > 0 FROM bench.samples WHERE run_id = %1$s)
                AND (SELECT count(*) = 1 FROM bench.summary WHERE run_id = %1$s)
        $$, :imported)), sees::text, format('an imported run: %s', role)),
    is(pg_temp.told(role,
        format($$
            SELECT (SELECT count(*) > 0 FROM bench.samples WHERE run_id = %1$s)
                AND (SELECT count(*) = 1 FROM bench.summary WHERE run_id = %1$s)
        $$, :left_behind)), (role IN ('vis_stats', current_user))::text, format('a run of a dropped role: %s', role))
FROM reader;
SELECT is(pg_temp.told(role, format('SELECT bench.percentile(%s, 0.5) > 0', :left_behind)),
    CASE WHEN role IN ('vis_stats', current_user) THEN 'true' ELSE '42501' END, format('its percentile: %s', role))
FROM reader;
-- Who does not inherit takes the role.
SET SESSION AUTHORIZATION vis_noinherit;
SET ROLE vis_owner;
SELECT ok(count(*) > 0, 'SET ROLE gives what NOINHERIT withholds') FROM bench.samples WHERE run_id = :run;
RESET SESSION AUTHORIZATION;
-- The tables' owner dumps and restores them whole.
SELECT is(array_agg(relname::text ORDER BY relname),
    '{capture_statements,captured_rows,feeders,latencies,samples,standbys,transactions,warmup_samples,workloads}',
    'row-level security is where rows must be hidden')
FROM pg_class
WHERE relnamespace = 'bench'::regnamespace AND relrowsecurity AND NOT relforcerowsecurity;
-- The views do not need what a careful administrator may take from PUBLIC.
BEGIN;
REVOKE SELECT ON bench.samples, bench.warmup_samples, bench.latencies, bench.runs FROM PUBLIC;
SELECT is(pg_temp.told('vis_owner', format('SELECT count(*) FROM bench.%s WHERE run_id = %s', name, :run)), '1',
    format('bench.%s without the tables', name))
FROM unnest('{summary,nodes,scripts}'::text[]) AS name;
SELECT is(pg_temp.told('vis_owner', format('SELECT count(*) > 0 FROM bench.total_samples WHERE run_id = %s', :run)),
    'true', 'bench.total_samples without the tables');
ROLLBACK;

--
-- Functions. who: 'readers' as above; 'masters' may end it, 'role' must be the very role; others are refused with
-- 42501, or with 'no rows' get none. NULL: not about runs of others.
--
CREATE TEMP TABLE asked (function text, who text, call text);
INSERT INTO asked SELECT function, who, call FROM (VALUES
    ('wait', 'readers', format('SELECT bench.wait(%s)', :run)),
    ('wait', 'readers', format('SELECT bench.wait(%s, 0)', :going)),
    ('status_of', 'readers', format('SELECT bench_internal.status_of(''running'', 0, %s)', :run)),
    ('status_of', 'readers', format('SELECT bench_internal.status_of(''starting'', 1, %s)', :going)),
    ('percentile', 'readers', format('SELECT bench.percentile(%s, 0.5)', :run)),
    ('duel_results', 'readers', format('SELECT count(*) FROM bench.duel_results(%s)', :run)),
    ('compare_duels', 'readers', format('SELECT count(*) FROM bench.compare_duels(ARRAY[%s, %s])', :run, :run)),
    ('duel_waits', 'readers', format('SELECT count(*) FROM bench.duel_waits(%s)', :run)),
    ('duel_statements', 'readers', format('SELECT count(*) FROM bench.duel_statements(%s)', :run)),
    ('verify_report', 'readers', format('SELECT length(bench.verify_report(%s))', :run)),
    ('fidelity', 'readers', format('SELECT count(*) FROM bench.fidelity(%s)', :run)),
    ('fidelity_parts', 'readers', format('SELECT count(*) FROM bench.fidelity_parts(%s)', :run)),
    ('findings', 'readers', format('SELECT count(*) FROM bench.findings(%s)', :run)),
    ('report', 'readers', format('SELECT length(bench.report(%s))', :run)),
    ('export', 'readers', format('SELECT length(bench.export(''{%s}'')::text)', :run)),
    ('export_document', 'readers', format('SELECT length(bench_internal.export_document(''{%s}'')::text)', :run)),
    ('export_part', 'readers', format('SELECT length(bench_internal.export_part(''{%s}'', 1)::text)', :run)),
    ('export_part_count', 'readers', format('SELECT bench_internal.export_part_count(''{%s}'')', :run)),
    ('fetch', 'role', format('SELECT bench.fetch(%s)', :run)),
    ('compare', 'readers', format('SELECT count(*) FROM bench.compare(''{%1$s}'', ''{%1$s}'')', :run)),
    ('compare', 'readers', format('SELECT count(*) FROM bench.compare(''{}'', ''{%1$s}'')', :run)),
    ('compare_statements', 'readers',
        format('SELECT count(*) FROM bench.compare_statements(''{%1$s}'', ''{%1$s}'')', :run)),
    ('compare_report', 'readers', format('SELECT length(bench.compare_report(''{%1$s}'', ''{%1$s}''))', :run)),
    ('audit', 'no rows', format('SELECT count(*) FROM bench.audit(%s)', :run)),
    ('run_progress', 'no rows',
        format('SELECT count(*) FROM bench_internal.run_progress(%s, %s)', :going_segment, :going)),
    ('change_points', NULL, NULL),
    ('wait_sweep', 'readers', format('SELECT bench.wait_sweep(%s)', :sweep)),
    ('sweep_status_of', 'readers', format('SELECT bench_internal.sweep_status_of(''running'', 0, %s)', :sweep)),
    ('sweep_report', 'readers', format('SELECT length(bench.sweep_report(%s))', :sweep)),
    ('scalability', 'readers', format('SELECT count(*) FROM bench.scalability(%s)', :sweep)),
    ('sweep_progress', NULL, NULL), ('load_progress', NULL, NULL), -- below
    ('wait_load', 'readers', format('SELECT bench.wait_load(%s)', :loaded)),
    ('load_status_of', 'readers', format('SELECT bench_internal.load_status_of(''running'', 0, %s)', :loaded)),
    ('stop_load', 'masters', format('SELECT bench.stop_load(%s)', :loaded)),
    ('stop', 'masters', format('SELECT bench.stop(%s)', :run)),
    ('stop_sweep', 'masters', format('SELECT bench.stop_sweep(%s)', :sweep)),
    ('resume_sweep', 'role', format('SELECT bench.resume_sweep(%s)', :sweep)),
    ('part_state', 'role', format('SELECT bench_internal.part_state(%s, false)', :run)),
    ('part_state', 'role', format('SELECT bench_internal.part_state(%s, true)', :going)),
    ('part_samples', 'role', format('SELECT bench_internal.part_samples(%s, 0)', :run)),
    ('begin_part', 'role', format('SELECT bench_internal.begin_part(%s, 1)', :run)),
    ('drop_part', 'role', format('SELECT bench_internal.drop_part(%s)', :run)),
    ('tps_ok', 'readers', format('SELECT bench.tps_ok(%s, ''>'', 0)', :run)),
    ('latency_ok', 'readers', format('SELECT bench.latency_ok(%s, 0.5, ''<'', 1e9)', :run)),
    ('audit_ok', 'readers', format('SELECT bench.audit_ok(%s)', :run)),
    ('no_regression_ok', 'readers', format('SELECT bench.no_regression_ok(''{%1$s}'', ''{%1$s}'')', :run)),
    ('figure_ok', 'readers', format('SELECT bench_internal.figure_ok(%s, ''tps'', 1, ''>'', 0, '''', NULL)', :run)),
    ('status_to_assert', 'readers', format('SELECT bench_internal.status_to_assert(%s)', :run)),
    -- These are asked of nobody's runs but the caller's, or of none.
    ('is_visible', NULL, NULL),
    ('tap', NULL, NULL),
    ('preview', NULL, NULL),
    ('builtin_fixtures', NULL, NULL),
    ('builtin_queries', NULL, NULL),
    ('check_options', NULL, NULL),
    ('node_state', NULL, NULL),
    ('unreached_nodes', NULL, NULL),
    ('start_part', NULL, NULL),
    ('run', NULL, NULL),
    ('start', NULL, NULL),
    ('start_scheduled', NULL, NULL),
    ('schedule', NULL, NULL),
    ('unschedule', NULL, NULL),
    ('load', NULL, NULL),
    ('start_load', NULL, NULL),
    ('unload', NULL, NULL),
    ('create_fixture', NULL, NULL),
    ('drop_fixture', NULL, NULL),
    ('create_workload', NULL, NULL),
    ('drop_workload', NULL, NULL),
    ('add_feeder', NULL, NULL),
    ('drop_feeder', NULL, NULL),
    ('capture', NULL, NULL),
    ('capture_log', NULL, NULL),
    ('start_capture', NULL, NULL),
    ('stop_capture', NULL, NULL),
    ('wait_capture', NULL, NULL),
    ('drop_capture', NULL, NULL),
    ('export_capture', NULL, NULL),
    ('import_capture', NULL, NULL),
    ('sweep', NULL, NULL),
    ('start_sweep', NULL, NULL),
    ('ab', NULL, NULL),
    ('answers', NULL, NULL),
    ('recall', NULL, NULL),
    ('duel', NULL, NULL),
    ('screen', NULL, NULL),
    ('start_screen', NULL, NULL),
    -- Their sweep is looked at first, as bench.sweep_report does it; test/pgtap/screen.sql asks for one.
    ('screen_results', NULL, NULL),
    ('index_worth', NULL, NULL),
    ('start_index_worth', NULL, NULL),
    ('index_worth_results', NULL, NULL),
    ('rehearse', NULL, NULL),
    ('start_rehearse', NULL, NULL),
    -- Their sweep is looked at first; test/pgtap/rehearse.sql asks for one.
    ('rehearse_results', NULL, NULL),
    ('rehearse_report', NULL, NULL),
    ('start_duel', NULL, NULL),
    ('verify', NULL, NULL),
    -- They make one: test/pgtap/duel.sql and verify.sql.
    ('verify_ok', NULL, NULL),
    ('rehearse_ok', NULL, NULL),
    ('duel_ok', NULL, NULL),
    ('no_slower_ok', NULL, NULL),
    ('duel_tap', NULL, NULL),
    ('calibrate', NULL, NULL),
    ('capacity', NULL, NULL),
    ('start_capacity', NULL, NULL),
    ('preflight', NULL, NULL),
    ('import', NULL, NULL),
    ('prune', NULL, NULL),
    ('reassign_owned', NULL, NULL),
    ('allow', NULL, NULL),
    ('disallow', NULL, NULL),
    ('rights', NULL, NULL),
    ('change_rights', NULL, NULL),
    ('create_triggers', NULL, NULL),
    ('role_name', NULL, NULL),
    ('delete_run', NULL, NULL),
    ('prewarm', NULL, NULL),
    ('check_extension', NULL, NULL),
    ('make_own_roles', NULL, NULL),
    ('check', NULL, NULL),
    ('check_ok', NULL, NULL),
    ('conditions', NULL, NULL),
    ('as_bigint', NULL, NULL),
    ('as_int', NULL, NULL),
    ('figure', NULL, NULL),
    ('json_figure', NULL, NULL),
    ('help', NULL, NULL),
    ('version', NULL, NULL)
) AS v (function, who, call);
SELECT is(array_agg(DISTINCT p.proname ORDER BY p.proname), NULL, 'no function that is not in the list of this test')
FROM pg_proc p
WHERE p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
    AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
    AND p.proname NOT IN (SELECT function FROM asked);
-- Where somebody may, there is an answer or an error about the matter itself. What assertions answer counts as a test
-- of this file's, so they are asked by those only whom they refuse.
SELECT CASE
    WHEN may THEN isnt(answer, '42501', format('%s: %s may', call, role))
    ELSE is(answer, CASE who WHEN 'no rows' THEN '0' ELSE '42501' END, format('%s: %s gets nothing', call, role))
END
FROM (
    SELECT
        who,
        call,
        role,
        pg_temp.told(role, call) AS answer,
        CASE who
            WHEN 'role' THEN role = 'vis_owner'
            WHEN 'masters' THEN role = 'vis_signal' OR sees AND role <> 'vis_stats'
            ELSE sees
        END AS may
    FROM asked, reader
    WHERE who IS NOT NULL AND NOT (sees AND function LIKE '%\_ok') OFFSET 0
) AS t
ORDER BY call, may, role;
SELECT isnt(pg_temp.told(role, call), '0', format('%s: %s gets rows', call, role))
FROM asked, reader
WHERE who = 'no rows' AND sees;
-- What does not exist is said to be so, to everybody.
SELECT is(pg_temp.told('vis_stranger', call), '42704', call)
FROM unnest('{SELECT bench.wait(-1),SELECT bench.wait_sweep(-1),"SELECT bench.percentile(-1, 0.5)",'
    'SELECT bench.wait_load(-1),SELECT bench.stop(-1),SELECT bench_internal.drop_part(-1)}'::text[]) AS call;
-- A stranger who knows the status and the segment that a row has learns no more.
SELECT is(
    pg_temp.told('vis_stranger', format('SELECT bench_internal.status_of(''completed'', %s, %s)', :run_segment, :run)),
    'completed', 'bench_internal.status_of repeats what it was told');
-- A history is of the runs that one sees: the same calls, no point of change.
SELECT is(pg_temp.told('vis_stranger', 'SELECT count(*) FROM bench.change_points(''pk_update'')'), '0',
    'bench.change_points of strangers'' runs');
-- bench.prune and bench.delete_run delete nobody else's.
SELECT is(pg_temp.told(role, format('SELECT bench.delete_run(%s)', :failed)), '42501',
    format('bench.delete_run as %s', role))
FROM reader
WHERE NOT sees OR role = 'vis_stats';
SELECT is(pg_temp.told(role, 'SELECT bench.prune(''0'')'), '0', format('bench.prune as %s', role))
FROM reader
WHERE role NOT IN ('vis_owner', 'vis_member', current_user);
SELECT is(count(*), 5::bigint, 'and all are there')
FROM bench.runs
WHERE run_id IN (:run, :failed, :imported, :going, :left_behind);
SELECT is(bench_internal.status_of('running', :going_segment, :going), 'running', 'the one under way still is');
SELECT bench.stop(:going) \g /dev/null

--
-- A sweep and its load under way
--
SET SESSION AUTHORIZATION vis_owner;
SELECT bench.start_sweep('pk_select', '{1}', secs => 0.1,
    variants => '{"large": {"load": {"rows": 30000000, "schema": "vis_own", "unlogged": true}}}') AS loading \gset
RESET SESSION AUTHORIZATION;
DO $$ BEGIN
    FOR i IN 1 .. 600 LOOP
        EXIT WHEN EXISTS (SELECT
            FROM bench_internal.load_log l, LATERAL bench_internal.load_progress(l.segment, l.load_id));
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;
SELECT load_id, segment AS load_segment FROM bench_internal.load_log WHERE status = 'running' \gset
SELECT segment AS sweep_segment FROM bench_internal.sweep_log WHERE sweep_id = :loading \gset
SELECT
    is(pg_temp.told(role, 'SELECT count(*) FROM bench.progress WHERE fixture = ''pk'''), sees::int::text,
        format('the load in bench.progress: %s', role)),
    is(pg_temp.told(role, format('SELECT count(*) FROM bench_internal.load_progress(%s, %s)', :load_segment, :load_id)),
        sees::int::text, format('bench_internal.load_progress: %s', role)),
    is(pg_temp.told(role, format('SELECT status FROM bench.loads WHERE load_id = %s', :load_id)),
        CASE WHEN sees THEN 'running' END, format('the load in bench.loads: %s', role)),
    is(pg_temp.told(role, format('SELECT bench.wait_load(%s, 0)', :load_id)),
        CASE WHEN sees THEN 'running' ELSE '42501' END, format('bench.wait_load: %s', role)),
    is(pg_temp.told(role,
            format('SELECT count(*) FROM bench_internal.sweep_progress(%s, %s)', :sweep_segment, :loading)),
        sees::int::text, format('bench_internal.sweep_progress: %s', role)),
    is(pg_temp.told(role, format('SELECT bench.wait_sweep(%s, 0)', :loading)),
        CASE WHEN sees THEN 'running' ELSE '42501' END, format('bench.wait_sweep: %s', role))
FROM reader;
SELECT bench.stop_sweep(:loading) \g /dev/null

--
-- A part of another node's run is what bench.run was granted for, and no more
--
SELECT $json$
{
    "spec": {
        "options": {
            "workload": "w", "mix": [{"workload": "w", "weight": 1}], "clients": 1, "secs": 0.1,
            "rate": null, "latency_limit": null, "query_mode": "prepared", "warmup": 0.0, "max_tries": 1,
            "seed": null, "variables": {}, "settings": {}, "sample_interval": 1.0, "results": "serialize",
            "nodes": "all", "tags": {}
        },
        "seed": 1,
        "scripts": [{"name": "w", "source": "SELECT 1;", "weight": 1, "fixture": null}],
        "fixtures": [], "role": "postgres", "role_oid": 10, "database_oid": 1, "horizon_held": false, "sweep_id": 1,
        "system": {"work_mem": "1GB"}, "observation": "On", "cluster": null,
        "part_of": {"node": 1, "name": "there:5432", "run_id": 7}
    },
    "tables": []
}
$json$ AS request \gset
CREATE TEMP TABLE starting AS
SELECT format('SELECT coalesce(bench_internal.start_part(%L) #>> ''{error,sqlstate}'', ''started'')', :'request')
    AS part;
CREATE TEMP TABLE before AS SELECT count(*) AS runs FROM bench_internal.run_log;
SELECT is(pg_temp.told(role, part), '42501', format('bench_internal.start_part as %s, who may not run', role))
FROM reader, starting
WHERE NOT sees OR role = 'vis_stats';
SELECT is(count(*), (SELECT runs FROM before), 'and nothing is started') FROM bench_internal.run_log;
GRANT EXECUTE ON FUNCTION bench.run TO vis_owner WITH GRANT OPTION;
SELECT is(pg_temp.told('vis_noinherit', part), '42501', 'what a role does not inherit it may not use') FROM starting;
GRANT EXECUTE ON FUNCTION bench.run TO vis_stranger;
REVOKE EXECUTE ON FUNCTION bench.run FROM vis_stranger;
SELECT is(pg_temp.told('vis_stranger', part), '42501', 'a grant that was revoked is none') FROM starting;
GRANT EXECUTE ON FUNCTION bench.run TO vis_stranger;
SELECT is(pg_temp.told('vis_stranger', part), 'started', 'who may run starts a part') FROM starting;
SELECT max(run_id) AS part FROM bench_internal.run_log \gset
SELECT
    is(role, 'vis_stranger', 'as itself'),
    is(sweep_id, NULL, 'of nobody''s sweep'),
    ok(part_of IS NOT NULL, 'and as a part')
FROM bench_internal.run_log
WHERE run_id = :part;
SELECT
    is(pg_temp.told(role, format('SELECT bench_internal.part_state(%s, true)', :part)), '42501',
        format('%s neither asks after it nor stops it', role)),
    is(pg_temp.told(role, format('SELECT bench_internal.part_samples(%s, 0)', :part)), '42501',
        format('nor has its samples: %s', role)),
    is(pg_temp.told(role, format('SELECT bench_internal.begin_part(%s, 0)', :part)), '42501',
        format('nor begins it: %s', role)),
    is(pg_temp.told(role, format('SELECT bench_internal.drop_part(%s)', :part)), '42501',
        format('nor drops it: %s', role))
FROM reader
WHERE role <> 'vis_stranger';
SELECT bench.stop(:part) \g /dev/null
SELECT is(bench.wait(:part), 'canceled', 'it is stopped as any run');
SELECT is(pg_temp.told('vis_stranger', format('SELECT bench_internal.drop_part(%s)', :part)), 'true',
    'its role drops it');

\o /dev/null
SELECT bench.unload('pk');
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'vis\_%') AS w;
REVOKE EXECUTE ON FUNCTION bench.resume_sweep, bench.prune, bench.delete_run FROM PUBLIC;
\o
DROP SCHEMA vis_own CASCADE;
DROP OWNED BY vis_owner, vis_member, vis_noinherit, vis_stats, vis_shy_stats, vis_signal, vis_stranger CASCADE;
DROP ROLE vis_owner, vis_member, vis_noinherit, vis_stats, vis_shy_stats, vis_signal, vis_stranger;
SELECT * FROM finish();
