-- Settings of runs whose sessions are another role's than the caller's: those that only the caller may set.
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
CREATE ROLE set_ann LOGIN;
GRANT EXECUTE ON FUNCTION bench.run, bench.duel, bench.create_workload TO set_ann;
CREATE TABLE public.set_seen (name text, value text, who text);
GRANT ALL ON public.set_seen TO set_ann;
CREATE FUNCTION public.set_see(name text) RETURNS void LANGUAGE sql AS
    $$ INSERT INTO public.set_seen VALUES (name, current_setting(name), current_user) $$;
SELECT bench.create_workload('set_see', 'SELECT public.set_see(''wal_compression'');');
SELECT bench.create_workload('set_reset', $$RESET ALL;
DISCARD ALL;
SELECT public.set_see('wal_compression');$$);
SELECT bench.create_workload('set_set', $$SET wal_compression = off;$$);
\o
CREATE FUNCTION pg_temp.seen() RETURNS text LANGUAGE sql AS $$
    WITH s AS (DELETE FROM public.set_seen RETURNING *)
    SELECT string_agg(DISTINCT concat_ws(' ', name, value, who), ', ' ORDER BY concat_ws(' ', name, value, who)) FROM s
$$;

-- A superuser's, in sessions of a role that may not set them
SELECT bench.run('set_see', transactions => 2, run_as => 'set_ann', settings => '{"WAL_compression": "on"}',
    query_mode => 'simple') \g /dev/null
SELECT is(pg_temp.seen(), 'wal_compression pglz set_ann', 'a superusers'' parameter in sessions of another role');
SELECT bench.run('set_reset', transactions => 2, run_as => 'set_ann', settings => '{"wal_compression": "on"}',
    query_mode => 'simple') \g /dev/null
SELECT is(pg_temp.seen(), 'wal_compression pglz set_ann', 'RESET ALL and DISCARD ALL go back to it');
SELECT bench.run(script => 'SELECT public.set_see(''session_replication_role'')', transactions => 1,
    run_as => 'set_ann', settings => '{"session_replication_role": "replica", "work_mem": "2MB"}') \g /dev/null
SELECT is(pg_temp.seen(), 'session_replication_role replica set_ann', 'beside one of the sessions'' own');
SELECT bench.run('set_set', transactions => 5, run_as => 'set_ann', settings => '{"wal_compression": "on"}')
    AS run_id \gset
SELECT is(max(sqlstate), '42501', 'the script itself may not set it') FROM bench.errors WHERE run_id = :run_id;
SELECT throws_ok($$ SELECT bench.run('set_see', transactions => 1, run_as => 'set_ann',
    settings => '{"wal_compression": "perhaps"}') $$, '22023', NULL, 'its value is checked');
-- of a library that is loaded when the session begins
ALTER ROLE set_ann SET session_preload_libraries = 'auto_explain';
SELECT bench.run(script => 'SELECT public.set_see(''auto_explain.log_min_duration'')', transactions => 1,
    run_as => 'set_ann', settings => '{"auto_explain.log_min_duration": "1min"}') \g /dev/null
SELECT is(pg_temp.seen(), 'auto_explain.log_min_duration 1min set_ann', 'of a library that the role''s sessions load');
ALTER ROLE set_ann RESET session_preload_libraries;

-- What gives a session other rights, or other code
SELECT throws_ok(format($$
        SELECT bench.run('set_see', transactions => 1, run_as => 'set_ann', settings => '{"%s": "%s"}')
    $$, name, value), '42501', format('permission denied to set parameter "%s" in sessions of role "set_ann"', name),
    name)
FROM (VALUES ('lo_compat_privileges', 'on'), ('Allow_system_table_mods', 'on'), ('dynamic_library_path', '/tmp'),
    ('session_preload_libraries', 'auto_explain'), ('local_preload_libraries', 'auto_explain'),
    ('shared_preload_libraries', 'auto_explain')) AS v (name, value);
SELECT throws_ok($$ SELECT bench.duel('set_see', '{}', '{"lo_compat_privileges": "on"}', secs => 1,
    run_as => 'set_ann') $$, '42501', NULL, 'nor in an arm');
SELECT throws_ok($$ SELECT bench.run('set_see', transactions => 1, run_as => 'set_ann', driver => 'wire',
    settings => '{"wal_compression": "on"}') $$, '42501', NULL, 'over connections, the sessions set it themselves');

-- The caller must be able to set it.
SET SESSION AUTHORIZATION set_ann;
SELECT throws_ok($$ SELECT bench.run('set_see', transactions => 1, settings => '{"wal_compression": "on"}') $$, '42501',
    'permission denied to set parameter "wal_compression"', 'a role without the right');
RESET SESSION AUTHORIZATION;

-- Arms of a duel
SELECT bench.duel('set_see', '{"wal_compression": "on"}', '{}', secs => 0.5, run_as => 'set_ann') \g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT is(status, 'completed', 'a duel of two values') FROM bench.runs WHERE run_id = :run_id;
SELECT is(pg_temp.seen(), 'wal_compression off set_ann, wal_compression pglz set_ann', 'each arm has its own');
SELECT bench.duel('set_reset', '{"wal_compression": "on"}', '{}', secs => 0.5, run_as => 'set_ann',
    query_mode => 'simple') \g /dev/null
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT is(status, 'completed', 'a duel of scripts that reset all') FROM bench.runs WHERE run_id = :run_id;
SELECT is(pg_temp.seen(), 'wal_compression off set_ann, wal_compression pglz set_ann', 'each arm still has its own');
SELECT bench.start_duel(NULL, '{"script": "SET work_mem = ''3MB'';"}', '{"script": "SELECT 1;", "work_mem": "2MB"}',
    secs => 5) AS run_id \gset
SELECT bench.wait(:run_id) \g /dev/null
SELECT is(array_agg(DISTINCT concat_ws(' ', sqlstate, message)),
    '{"55000 parameter \"work_mem\" has lost the value that arm a of the duel gives it"}',
    'an arm whose script sets its parameter measures nothing') FROM bench.errors WHERE run_id = :run_id;

-- Queries of this project's own are not compiled, whatever the server's defaults.
SET jit = on;
SET jit_above_cost = 20;
SELECT count(*) FROM bench.preflight('set_see') \g /dev/null
SELECT current_setting('jit') AS jit \gset
SET jit = off;
SELECT is(:'jit'::text, 'on', 'the session keeps its settings');
SELECT ok(pg_read_file('/proc/self/maps') !~ 'llvmjit', 'a preflight compiles none of its queries');
SELECT * FROM finish();
