-- Who may do what, and as whom it is done.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

DROP SCHEMA IF EXISTS bench_data;
DROP ROLE IF EXISTS prv_alice, prv_bob, prv_boss, prv_stats, prv_signal, prv_nologin, prv_carol, prv_mallory;
CREATE ROLE prv_alice LOGIN;
CREATE ROLE prv_bob LOGIN;
CREATE ROLE prv_boss LOGIN IN ROLE prv_alice;
CREATE ROLE prv_stats LOGIN IN ROLE pg_read_all_stats;
CREATE ROLE prv_signal LOGIN IN ROLE pg_signal_backend;
CREATE ROLE prv_nologin;
CREATE ROLE prv_carol LOGIN;
CREATE ROLE prv_mallory LOGIN;
SELECT oid AS me, rolname AS myname FROM pg_roles WHERE rolname = current_user \gset
-- An assertion's tables are the session's own: other roles must reach them.
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO PUBLIC;

--
-- Without a grant nothing can be started or changed
--
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok(call, '42501', format('permission denied for function %s', name),
    format('bench.%s is not for everybody', name))
FROM (VALUES
    ('run', $$SELECT bench.run('pk_select')$$),
    ('start', $$SELECT bench.start('pk_select')$$),
    ('load', $$SELECT bench.load('pk')$$),
    ('start_load', $$SELECT bench.start_load('pk')$$),
    ('unload', $$SELECT bench.unload('pk')$$),
    ('create_workload', $$SELECT bench.create_workload('w', 'SELECT 1;')$$),
    ('drop_workload', $$SELECT bench.drop_workload('pk_select')$$),
    ('add_feeder', $$SELECT bench.add_feeder('w', 'SELECT 1 AS id')$$),
    ('drop_feeder', $$SELECT bench.drop_feeder('w')$$),
    ('capture', $$SELECT bench.capture('c', secs => 0)$$),
    ('start_capture', $$SELECT bench.start_capture('c')$$),
    ('stop_capture', $$SELECT bench.stop_capture('c')$$),
    ('drop_capture', $$SELECT bench.drop_capture('c')$$),
    ('export_capture', $$SELECT bench.export_capture('c')$$),
    ('import_capture', $$SELECT bench.import_capture('{}')$$),
    ('capture_log', $$SELECT bench.capture_log('l', 'pg_class')$$),
    ('fetch', $$SELECT bench.fetch(1)$$),
    ('schedule', $$SELECT bench.schedule('j', '* * * * *', 'pk_select')$$),
    ('unschedule', $$SELECT bench.unschedule('j')$$),
    ('start_scheduled', $$SELECT bench_internal.start_scheduled('pk_select')$$)
) AS v (name, call);
SELECT lives_ok('SELECT * FROM bench.' || name, format('bench.%s may be read', name))
FROM unnest(
    ('{workloads,feeders,fixtures,loads,runs,samples,warmup_samples,latencies,transactions,errors,summary,progress,'
    || 'audits}')::text[]
) AS name;
SELECT throws_ok('SELECT * FROM bench_internal.' || name, '42501', NULL, format('bench_internal.%s may not', name))
FROM unnest('{run_log,error_log,audit_log,summary_of_all}'::text[]) AS name;
-- 55000: a view that cannot be written to, whoever asks
SELECT ok(pg_temp.sqlstate_of(sql) = '42501' OR relkind = 'v' AND pg_temp.sqlstate_of(sql) = '55000',
    sql || ' is refused')
FROM (
    SELECT relkind, format(sql, c.oid::regclass, a.attname) AS sql
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1,
        unnest(
            '{INSERT INTO %1$s DEFAULT VALUES,DELETE FROM %1$s,UPDATE %1$s SET %2$I = NULL}'::text[])
            AS sql
    WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
        AND c.relkind IN ('r', 'v')
) AS s
ORDER BY sql;
SELECT
    throws_ok(format('TRUNCATE %s CASCADE', c.oid::regclass), '42501', NULL,
        format('TRUNCATE %s is refused', c.oid::regclass)),
    throws_ok(format('LOCK TABLE %s IN EXCLUSIVE MODE', c.oid::regclass), '42501', NULL,
        format('LOCK TABLE %s is refused', c.oid::regclass)),
    throws_ok(format($$
        CREATE TRIGGER t BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()
    $$, c.oid::regclass), '42501', NULL, format('CREATE TRIGGER on %s is refused', c.oid::regclass))
FROM pg_class c
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind = 'r'
ORDER BY c.relname;
SELECT
    throws_ok($$SELECT nextval('bench_internal.run_id_seq')$$, '42501', NULL, 'nextval is refused'),
    throws_ok($$SELECT setval('bench_internal.run_id_seq', 1)$$, '42501', NULL, 'setval is refused'),
    throws_ok('CREATE TABLE bench.mine ()', '42501', NULL, 'nothing can be put into schema bench'),
    throws_ok('CREATE FUNCTION bench.now() RETURNS int LANGUAGE sql AS ''SELECT 1''', '42501', NULL, 'no function'),
    throws_ok('CREATE OR REPLACE FUNCTION bench_internal.is_visible(role oid) RETURNS boolean
            LANGUAGE sql AS ''SELECT true''',
        '42501', NULL, 'no replacement'),
    throws_ok('ALTER EXTENSION pgbench_ext DROP VIEW bench.runs', '42501', NULL, 'nor can the extension be altered');
RESET SESSION AUTHORIZATION;

--
-- bench.allow grants what a word stands for, and nothing else; bench.disallow takes it back
--
CREATE ROLE "prv ""odd" LOGIN;
CREATE FUNCTION pg_temp.allowed(role name) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(',', string_agg(DISTINCT p.proname, ',' ORDER BY p.proname),
        CASE WHEN has_foreign_data_wrapper_privilege(role, 'bench_wire', 'USAGE') THEN 'bench_wire' END)
    FROM pg_proc p
    WHERE p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
        AND has_function_privilege(role, p.oid, 'EXECUTE')
        AND NOT has_function_privilege('prv_carol', p.oid, 'EXECUTE')
$$;
SELECT lives_ok($$SELECT bench.allow('prv "odd')$$, 'a role is allowed to run');
SELECT is(pg_temp.allowed('prv "odd'), 'ab,add_feeder,answers,calibrate,capacity,create_fixture,create_workload,'
    || 'delete_run,'
    || 'drop_feeder,drop_fixture,drop_workload,duel,fetch,import,index_worth,load,preflight,prune,recall,'
    || 'rehearse,resume_sweep,run,'
    || 'screen,start,start_capacity,start_duel,start_index_worth,start_load,start_rehearse,start_screen,'
    || 'start_sweep,sweep,unload,'
    || 'verify',
    'which is this');
SELECT lives_ok($$SELECT bench.disallow('prv "odd', 'run')$$, 'and it is taken back');
SELECT lives_ok($$SELECT bench.allow('prv "odd', 'capture', 'schedule', 'targets')$$, 'other words');
SELECT is(pg_temp.allowed('prv "odd'), 'capture,capture_log,drop_capture,export_capture,import_capture,'
    || 'schedule,start_capture,start_scheduled,stop_capture,unschedule,bench_wire', 'grant other things');
SELECT lives_ok($$SELECT bench.disallow('prv "odd')$$, 'all is taken back');
SELECT is(pg_temp.allowed('prv "odd'), '', 'and nothing is left');
SELECT is((SELECT string_agg(p.proname, ',') FROM pg_proc p WHERE p.pronamespace = 'bench'::regnamespace
        AND NOT has_function_privilege('prv_carol', p.oid, 'EXECUTE')
        AND p.proname NOT IN ('reassign_owned', 'allow', 'disallow')
        AND format('EXECUTE ON FUNCTION %s', p.oid::regprocedure) NOT IN (
            SELECT bench_internal.rights('{run,capture,schedule,targets}'))), NULL,
    'every function that is not for everybody has a word');
SELECT throws_ok($$SELECT bench.allow('prv "odd', 'everything')$$, '22023', 'unrecognized right: everything',
    'an unknown word');
SELECT throws_ok($$SELECT bench.allow('prv_nobody')$$, '42704', NULL, 'an unknown role');
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok($$SELECT bench.allow('prv_bob')$$, '42501', NULL, 'nobody allows himself');
SELECT throws_ok($$SELECT bench.disallow('prv_alice')$$, '42501', NULL, 'nor takes away');
RESET SESSION AUTHORIZATION;
DROP ROLE "prv ""odd";

--
-- With these grants an ordinary role can do it all
--
GRANT EXECUTE ON FUNCTION bench.run, bench.start, bench.load, bench.unload, bench.create_workload, bench.drop_workload
    TO prv_alice, prv_bob, prv_nologin, prv_carol, prv_mallory;
CREATE SCHEMA prv_alice AUTHORIZATION prv_alice;
SET SESSION AUTHORIZATION prv_alice;
SELECT lives_ok($$SELECT bench.load('pk', 1000, options => '{"schema": "prv_alice"}')$$,
    'load into a schema of one''s own');
SELECT bench.run('pk_update', 2, transactions => 20) AS alices \gset
SELECT
    is(transactions, 40::bigint, 'run'),
    is(status, 'completed', 'to its end')
FROM bench.summary
WHERE run_id = :alices;
SELECT is(role, 'prv_alice', 'as oneself') FROM bench.runs WHERE run_id = :alices;
SELECT ok(bool_and(ok IS NOT FALSE) AND bool_and(ok) FILTER (WHERE counter LIKE 'n_tup%'), 'audited')
FROM bench.audit(:alices);
SELECT is(owner, 'prv_alice', 'the fixture is one''s own') FROM bench.fixtures WHERE schema = 'prv_alice';
SELECT is(tableowner::text, 'prv_alice', 'and so is its table')
FROM pg_tables
WHERE schemaname = 'prv_alice' AND tablename = 'pk';
SELECT throws_ok('CREATE TABLE prv_alice.reference (a bigint REFERENCES bench_internal.run_log)', '42501', NULL,
    'no reference to the results can be made');
SELECT throws_ok($$SELECT bench.load('log')$$, '42501', 'permission denied for database postgres',
    'bench_data needs CREATE on the database');
RESET SESSION AUTHORIZATION;
GRANT CREATE ON DATABASE postgres TO prv_alice;
SET SESSION AUTHORIZATION prv_alice;
SELECT lives_ok($$SELECT bench.load('log')$$, 'with which it is made');
SELECT is(nspowner::regrole::text, 'prv_alice', 'and belongs to who loaded')
FROM pg_namespace
WHERE nspname = 'bench_data';
RESET SESSION AUTHORIZATION;
REVOKE CREATE ON DATABASE postgres FROM prv_alice;
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok($$SELECT bench.load('wide')$$, '42501', NULL, 'another role needs CREATE on schema bench_data');
RESET SESSION AUTHORIZATION;
GRANT CREATE, USAGE ON SCHEMA bench_data TO prv_bob;
SET SESSION AUTHORIZATION prv_bob;
SELECT lives_ok($$SELECT bench.load('wide')$$, 'with which it can load there, too');
SELECT lives_ok($$SELECT bench.run('insert_single', transactions => 5)$$, 'and run');
RESET SESSION AUTHORIZATION;
GRANT SET ON PARAMETER session_replication_role TO prv_alice;
SET SESSION AUTHORIZATION prv_alice;
SELECT lives_ok($$
    SELECT bench.run('pk_select', transactions => 5, run_as => 'prv_alice',
        settings => '{"session_replication_role": "replica"}')
$$, 'a parameter granted by GRANT SET may be set');
SELECT throws_ok($$
    SELECT bench.run('pk_select', transactions => 5, run_as => 'prv_alice',
        settings => '{"log_min_messages": "debug5"}')
$$, '42501', NULL, 'another may not');
SELECT throws_ok($$SELECT bench.run('pk_select', transactions => 5)$$, '42501',
    'sessions of role "prv_alice" would have special rights',
    'a role that may set one has special rights, and has to be named');
RESET SESSION AUTHORIZATION;
REVOKE SET ON PARAMETER session_replication_role FROM prv_alice;

--
-- What others see of it
--
CREATE FUNCTION pg_temp.seen(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s %s %s %s', (SELECT count(*) FROM bench.runs WHERE run_id = run),
        (SELECT count(*) FROM bench.summary WHERE run_id = run), (SELECT count(*) FROM bench.errors WHERE run_id = run),
        (SELECT sign(count(*)) FROM bench.audit(run)), (SELECT sign(count(*)) FROM bench.audits WHERE run_id = run))
$$;
SET SESSION AUTHORIZATION prv_alice;
SELECT bench.create_workload('prv_fails', 'SELECT 1 / 0;') \g /dev/null
SELECT bench.run('prv_fails', transactions => 1) AS alices \gset
SELECT is(pg_temp.seen(:alices), '1 1 1 1 1', 'the role itself sees its run');
SET SESSION AUTHORIZATION prv_bob;
SELECT is(pg_temp.seen(:alices), '0 0 0 0 0', 'a stranger sees nothing of it');
SET SESSION AUTHORIZATION prv_boss;
SELECT is(pg_temp.seen(:alices), '1 1 1 1 1', 'a member of the role sees it');
SET SESSION AUTHORIZATION prv_stats;
SELECT is(pg_temp.seen(:alices), '1 1 1 1 1', 'and so does pg_read_all_stats');
SET SESSION AUTHORIZATION prv_signal;
SELECT is(pg_temp.seen(:alices), '0 0 0 0 0', 'pg_signal_backend does not');
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.seen(:alices), '1 1 1 1 1', 'a superuser does');
-- From PostgreSQL 16 on the role's attribute tells of later grants only.
ALTER ROLE prv_boss NOINHERIT;
REVOKE prv_alice FROM prv_boss;
GRANT prv_alice TO prv_boss;
SET SESSION AUTHORIZATION prv_boss;
SELECT is(pg_temp.seen(:alices), '0 0 0 0 0', 'its privileges are what counts, as in pg_stat_activity');
RESET SESSION AUTHORIZATION;
ALTER ROLE prv_boss INHERIT;
REVOKE prv_alice FROM prv_boss;
GRANT prv_alice TO prv_boss;
-- no leak through functions that cost nothing
SET SESSION AUTHORIZATION prv_bob;
CREATE TEMP TABLE leaked (what text);
CREATE FUNCTION pg_temp.leak(anyelement) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO leaked VALUES ($1::text);
    RETURN true;
END $$;
SELECT count(*) FROM bench.runs WHERE pg_temp.leak(script) \g /dev/null
SELECT count(*) FROM bench.errors WHERE pg_temp.leak(message) \g /dev/null
SELECT count(*) FROM bench.summary WHERE pg_temp.leak(workload) \g /dev/null
SELECT count(*) FROM bench.audits WHERE pg_temp.leak(counter) \g /dev/null
SELECT is(count(*) FILTER (WHERE what LIKE '%1 / 0%'
    OR what LIKE '%division%'
    OR what = 'prv_fails'
    OR what = 'idx_scan' AND NOT EXISTS (SELECT FROM bench.audits)),
    0::bigint, 'no view leaks rows to a function in WHERE')
FROM leaked;
RESET SESSION AUTHORIZATION;
-- a run under way
SELECT bench.create_workload('prv_slow', 'SELECT pg_sleep(0.01);') \g /dev/null
SET SESSION AUTHORIZATION prv_alice;
SELECT bench.start('prv_slow', secs => 60) AS alices \gset
SELECT is(count(*), 1::bigint, 'the role sees its progress') FROM bench.progress;
SET SESSION AUTHORIZATION prv_bob;
SELECT is(count(*), 0::bigint, 'a stranger does not') FROM bench.progress;
SELECT throws_ok(format('SELECT bench.stop(%s)', :alices), '42501',
    format('run %s belongs to role "prv_alice"', :alices), 'nor may it stop it');
SET SESSION AUTHORIZATION prv_stats;
SELECT throws_ok(format('SELECT bench.stop(%s)', :alices), '42501', NULL, 'nor may pg_read_all_stats');
SET SESSION AUTHORIZATION prv_boss;
SELECT ok(bench.stop(:alices), 'a member of the role may');
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok(format('SELECT bench.stop(%s)', :alices), '42501', NULL, 'the stranger is not told that it has ended');
SET SESSION AUTHORIZATION prv_alice;
SELECT is(status, 'canceled', 'stopped') FROM bench.runs WHERE run_id = :alices;
SELECT bench.start('prv_slow', secs => 60) AS alices \gset
SET SESSION AUTHORIZATION prv_signal;
SELECT ok(bench.stop(:alices), 'pg_signal_backend may stop it');
SET SESSION AUTHORIZATION prv_alice;
SELECT bench.start('prv_slow', secs => 60) AS alices \gset
RESET SESSION AUTHORIZATION;
SELECT ok(bench.stop(:alices), 'a superuser may');
SELECT bench.start('prv_slow', secs => 60) AS supers \gset
SET SESSION AUTHORIZATION prv_signal;
SELECT throws_ok(format('SELECT bench.stop(%s)', :supers), '42501', NULL,
    'pg_signal_backend does not reach a superuser''s');
RESET SESSION AUTHORIZATION;
SELECT ok(bench.stop(:supers), 'which goes on until its own');

--
-- Whose fixture, whose workload
--
SET pgbench_ext.client_role = 'bench_client';
SELECT bench.run('pk_select', transactions => 1) AS supers \gset
SELECT is(run_as, 'prv_alice', 'on the fixture of an ordinary role a superuser''s clients are sessions of that role')
FROM bench.runs WHERE run_id = :supers;
SET SESSION AUTHORIZATION prv_alice;
SELECT bench.create_workload('prv_alices', 'SELECT current_user;') \g /dev/null
RESET SESSION AUTHORIZATION;
SELECT bench.run('prv_alices', transactions => 1) AS supers \gset
SELECT is(run_as, 'prv_alice', 'and so they are for its workload') FROM bench.runs WHERE run_id = :supers;
SET SESSION AUTHORIZATION prv_bob;
SELECT
    throws_ok($$SELECT bench.unload('pk')$$, '42501', 'fixture "pk" belongs to role "prv_alice"',
        'somebody else''s fixture cannot be unloaded'),
    throws_ok($$SELECT bench.load('log', 10)$$, '42501', 'fixture "log" belongs to role "prv_alice"', 'nor replaced'),
    throws_ok($$SELECT bench.load('pk', 10, options => '{"schema": "prv_alice"}')$$, '42501',
        'fixture "pk" belongs to role "prv_alice"', 'wherever it is'),
    throws_ok($$SELECT bench.create_workload('prv_alices', 'SELECT 1;')$$, '42501', NULL, 'nor a workload replaced'),
    throws_ok($$SELECT bench.drop_workload('prv_alices')$$, '42501', NULL, 'nor dropped');
RESET SESSION AUTHORIZATION;
SELECT is(count(*), 1000::bigint, 'the fixture is as it was') FROM prv_alice.pk;
-- no privilege on the table: an error that names it, and nothing left
GRANT USAGE ON SCHEMA prv_alice TO prv_bob;
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok($$SELECT bench.run('pk_update', 2, transactions => 1)$$, '42501', 'permission denied for table pk',
    'no privilege on the table');
RESET SESSION AUTHORIZATION;
GRANT SELECT ON prv_alice.pk TO prv_bob;
SET SESSION AUTHORIZATION prv_bob;
SELECT lives_ok($$SELECT bench.run('pk_select', transactions => 1)$$, 'with SELECT one can read');
SELECT throws_ok($$SELECT bench.run('pk_update', transactions => 1)$$, '42501', 'permission denied for table pk',
    'and not update');
SELECT is(array_agg(DISTINCT status), '{failed}'::text[], 'such a run has failed')
FROM bench.runs
WHERE workload = 'pk_update';
RESET SESSION AUTHORIZATION;
REVOKE USAGE ON SCHEMA prv_alice FROM prv_bob;
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok($$SELECT bench.run('pk_select', transactions => 1)$$, '42501',
    'permission denied for schema prv_alice', 'no privilege on the schema: that is what the error says');
SELECT is(count(*), 0::bigint, 'nothing is left at work')
FROM pg_stat_activity
WHERE backend_type = 'pgbench_ext client';
RESET SESSION AUTHORIZATION;

--
-- Roles that cannot have sessions
--
SET ROLE prv_nologin;
SELECT
    throws_ok($$SELECT bench.run('prv_slow', transactions => 1)$$, '28000',
        'role "prv_nologin" is not permitted to log in', 'NOLOGIN'),
    throws_ok($$SELECT bench.start('prv_slow', transactions => 1)$$, '28000', NULL, 'also for start'),
    throws_ok($$SELECT bench.load('pk', 10)$$, '28000', NULL, 'and load');
RESET ROLE;
ALTER ROLE prv_bob CONNECTION LIMIT 1;
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok($$SELECT bench.run('prv_slow', 2, transactions => 1)$$, '53300', 'too many clients for role "prv_bob"',
    'CONNECTION LIMIT');
SELECT lives_ok($$SELECT bench.run('prv_slow', 1, transactions => 1)$$, 'is not reached by as many');
RESET SESSION AUTHORIZATION;
ALTER ROLE prv_bob CONNECTION LIMIT 3;
SELECT format('ALTER DATABASE %I CONNECTION LIMIT 2', current_database()) \gexec
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok($$SELECT bench.run('prv_slow', 3, transactions => 1)$$, '53300',
    format('too many clients for database "%s"', current_database()), 'CONNECTION LIMIT of the database');
RESET SESSION AUTHORIZATION;
SELECT lives_ok($$SELECT bench.run('prv_slow', 3, transactions => 1)$$, 'which does not bind superusers');
SELECT format('ALTER DATABASE %I CONNECTION LIMIT -1', current_database()) \gexec
ALTER ROLE prv_bob CONNECTION LIMIT -1;
REVOKE CONNECT ON DATABASE postgres FROM PUBLIC;
SET SESSION AUTHORIZATION prv_bob;
SELECT throws_ok($$SELECT bench.run('prv_slow', transactions => 1)$$, '42501',
    'permission denied for database "postgres"', 'no CONNECT on the database');
RESET SESSION AUTHORIZATION;
GRANT CONNECT ON DATABASE postgres TO PUBLIC;
ALTER ROLE prv_bob VALID UNTIL '2000-01-01';
SET SESSION AUTHORIZATION prv_bob;
SELECT lives_ok($$SELECT bench.run('prv_slow', transactions => 1)$$, 'VALID UNTIL is about passwords only');
RESET SESSION AUTHORIZATION;

--
-- SECURITY DEFINER: the run is its owner's
--
SET SESSION AUTHORIZATION prv_carol;
RESET SESSION AUTHORIZATION;
CREATE FUNCTION public.prv_definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
    SELECT bench.run('prv_who', transactions => 1)
$$;
ALTER FUNCTION public.prv_definer() OWNER TO prv_carol;
CREATE TABLE public.prv_seen (what text, "user" text, session text);
GRANT INSERT ON public.prv_seen TO PUBLIC;
SELECT bench.create_workload('prv_who', $$
    INSERT INTO public.prv_seen SELECT 'who', current_user, session_user;
$$) \g /dev/null
SET SESSION AUTHORIZATION prv_signal;
SELECT public.prv_definer() AS carols \gset
SELECT is(count(*), 0::bigint, 'the caller does not see it') FROM bench.runs WHERE run_id = :carols;
RESET SESSION AUTHORIZATION;
SELECT is(array_agg("user" || '/' || session), '{prv_carol/prv_carol}'::text[],
    'a SECURITY DEFINER function''s run is its owner''s')
FROM public.prv_seen;
SELECT is(role, 'prv_carol', 'as the run says') FROM bench.runs WHERE run_id = :carols;
TRUNCATE public.prv_seen;
SET ROLE prv_carol;
SELECT bench.run('prv_who', transactions => 1) \g /dev/null
RESET ROLE;
SELECT is(array_agg("user" || '/' || session), '{prv_carol/prv_carol}'::text[],
    'and under SET ROLE there is no way back')
FROM public.prv_seen;

--
-- Scripts cannot become somebody else
--
SET SESSION AUTHORIZATION prv_mallory;
CREATE FUNCTION pg_temp.escape(script text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    run bigint;
    said text;
BEGIN
    PERFORM bench.create_workload('prv_escape', script);
    run := bench.run('prv_escape', transactions => 1);
    SELECT sqlstate INTO said FROM bench.errors WHERE run_id = run;
    RETURN coalesce(said, 'ran');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT
    is(pg_temp.escape(format('SET ROLE %I;', :'myname')), '42501', 'SET ROLE to a superuser'),
    is(pg_temp.escape(format('SET SESSION AUTHORIZATION %I;', :'myname')), '42501', 'SET SESSION AUTHORIZATION'),
    is(pg_temp.escape('COPY (SELECT 1) TO PROGRAM ''true'';'), '42501', 'COPY TO PROGRAM'),
    is(pg_temp.escape('COPY (SELECT 1) TO ''/tmp/prv_escape'';'), '42501', 'COPY TO a file'),
    is(pg_temp.escape('LOAD ''auto_explain'';'), '42501', 'LOAD'),
    is(pg_temp.escape('SELECT pg_read_file(''/etc/passwd'');'), '42501', 'pg_read_file'),
    is(pg_temp.escape('DELETE FROM bench_internal.run_log;'), '42501', 'DELETE FROM bench_internal.run_log'),
    is(pg_temp.escape('UPDATE bench.samples SET tps = tps * 2;'), '42501', 'UPDATE bench.samples'),
    is(pg_temp.escape('ALTER ROLE CURRENT_USER SUPERUSER;'), '42501', 'ALTER ROLE'),
    is(pg_temp.escape(E'RESET SESSION AUTHORIZATION;\nRESET ROLE;\nDELETE FROM bench_internal.run_log;'), '42501',
        'RESET, and then DELETE'),
    is(pg_temp.escape('SELECT bench.run(''prv_slow'', transactions => 1);'), 'ran', 'a run may start a run');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION prv_mallory;
SELECT
    throws_ok($$SELECT bench.run('prv_slow', transactions => 1, settings => '{"session_authorization": "postgres"}')$$,
        '0A000', NULL, 'nor by settings'),
    throws_ok($$SELECT bench.run('prv_slow', transactions => 1, settings => '{"role": "postgres"}')$$, '0A000', NULL,
        'role'),
    throws_ok($$SELECT bench.run('prv_slow', transactions => 1, settings => '{"is_superuser": "on"}')$$, '0A000', NULL,
        'is_superuser'),
    throws_ok($$
        SELECT bench.run('prv_slow', transactions => 1, settings => '{"session_preload_libraries": "auto_explain"}')
    $$, '42501', NULL, 'session_preload_libraries'),
    throws_ok($$SELECT bench.run('prv_slow', transactions => 1, settings => '{"dynamic_library_path": "/tmp"}')$$,
        '42501', NULL, 'dynamic_library_path');
RESET SESSION AUTHORIZATION;

--
-- Names that lie in wait: functions, operators and tables that shadow the server's own, first in search_path
--
CREATE TABLE public.prv_traps (what text, "user" text DEFAULT current_user);
GRANT INSERT, SELECT ON public.prv_traps TO PUBLIC;
CREATE SCHEMA prv_trap AUTHORIZATION prv_mallory;
SET SESSION AUTHORIZATION prv_mallory;
CREATE FUNCTION prv_trap.caught(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO public.prv_traps VALUES (what);
    RETURN true;
EXCEPTION WHEN OTHERS THEN
    RETURN true;
END $$;
DO $$
DECLARE
    f record;
BEGIN
    -- every function and operator of the server's that is in reach of the harness's SQL
    FOR f IN
        SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments,
            pg_get_function_result(p.oid) AS result, p.proretset
        FROM pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace
            AND p.prokind = 'f'
            AND p.proname IN ('random', 'md5', 'now', 'clock_timestamp', 'unnest', 'generate_series', 'pg_backend_pid',
                'current_setting', 'set_config', 'quote_ident', 'quote_literal', 'format', 'pg_has_role', 'to_regclass',
                'length', 'substr', 'starts_with', 'hashtextextended', 'pg_try_advisory_lock', 'string_to_array',
                'pg_table_size', 'pg_indexes_size', 'concat', 'pg_stat_get_tuples_inserted',
                'pg_stat_get_tuples_updated', 'pg_stat_get_numscans', 'pg_stat_get_db_xact_commit', 'nextval',
                'timezone', 'version', 'sqrt', 'power', 'text', 'name', 'int8', 'lower', 'has_schema_privilege',
                'has_table_privilege')
            AND p.proargmodes IS NULL
            AND p.prorettype NOT IN ('trigger'::regtype, 'internal'::regtype)
    LOOP
        BEGIN
            EXECUTE format($f$
                CREATE FUNCTION prv_trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS $body$ BEGIN
                    PERFORM prv_trap.caught(%L);
                    RETURN%s;
                END $body$
            $f$, f.proname, f.arguments, f.result, f.proname,
                CASE WHEN f.proretset OR f.result = 'void' THEN '' ELSE ' NULL' END);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
    FOR f IN
        SELECT o.oid, o.oprname, oprleft::regtype AS l, oprright::regtype AS r, oprresult::regtype AS result
        FROM pg_operator o
        WHERE oprnamespace = 'pg_catalog'::regnamespace
            AND oprkind = 'b'
            AND oprname IN ('=', '<>', '<', '>', '<=', '>=', '||', '->>', '->', '+', '-', '*', '/', '^', '~', '@>',
                '<@', '&&', '~~')
    LOOP
        BEGIN
            EXECUTE format($f$
                CREATE FUNCTION prv_trap.op_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS $body$ BEGIN
                    PERFORM prv_trap.caught(%L);
                    RETURN NULL;
                END $body$
            $f$, f.oid, f.l, f.r, f.result, format('%s %s %s', f.l, f.oprname, f.r));
            EXECUTE format('CREATE OPERATOR prv_trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = prv_trap.op_%s)',
                f.oprname, f.l, f.r, f.oid);
        EXCEPTION WHEN OTHERS THEN NULL;
        END;
    END LOOP;
    FOR f IN
        SELECT relname FROM pg_class WHERE relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
            AND relkind IN ('r', 'v')
        UNION ALL
        SELECT unnest('{pg_class,pg_roles,pg_settings,pg_locks,pg_index,pg_namespace,pg_database,pg_extension,'
            'pg_depend,pg_attribute,pg_stat_statements}'::name[])
    LOOP
        EXECUTE format('CREATE VIEW prv_trap.%I AS SELECT prv_trap.caught(%L) AS name', f.relname, f.relname);
    END LOOP;
END $$;
CREATE SEQUENCE prv_trap.run_id_seq;
SELECT ok(count(*) > 300, 'traps are set') FROM pg_operator WHERE oprnamespace = 'prv_trap'::regnamespace;
ALTER ROLE prv_mallory SET search_path = prv_trap, pg_catalog;
SET search_path = prv_trap, pg_catalog;
SELECT bench.create_workload('prv_trap', $$\set id random(1, 10)
SELECT random(), now(), 1 = 1, md5('x');$$) \g /dev/null
SELECT bench.load('pk', 100, options => '{"schema": "prv_trap"}') \g /dev/null
SELECT bench.run('pk_update', 2, transactions => 5) \g /dev/null
SELECT bench.run('prv_trap', 2, transactions => 5, settings => '{"work_mem": "4MB"}', tags => '{"trap": 1}',
    warmup => 0.1) AS run_id \gset
SELECT bench.percentile(:run_id, 0.5) \g /dev/null
SELECT * FROM bench.audit(:run_id) \g /dev/null
SELECT * FROM bench.runs \g /dev/null
SELECT * FROM bench.summary \g /dev/null
SELECT * FROM bench.errors \g /dev/null
SELECT * FROM bench.audits \g /dev/null
SELECT bench.start('pk_select', 2, secs => 5) AS run_id \gset
SELECT * FROM bench.progress \g /dev/null
SELECT bench.wait(:run_id, 0.2) \g /dev/null
SELECT bench.stop(:run_id) \g /dev/null
SET work_mem = '8MB';
SELECT bench.start('prv_trap', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id) \g /dev/null
RESET work_mem;
SELECT bench.drop_workload('prv_trap') \g /dev/null
SELECT bench.unload('pk') \g /dev/null
RESET search_path;
RESET SESSION AUTHORIZATION;
SELECT is(array_agg(DISTINCT what || ' as ' || "user"), NULL, 'none of them is executed as anybody but who set them')
FROM public.prv_traps
WHERE "user" <> 'prv_mallory';
SELECT ok(count(*) > 0, 'though they do catch what the role''s own script calls')
FROM public.prv_traps
WHERE "user" = 'prv_mallory' AND what IN ('random', 'now');
-- the same with a superuser who has them in its path: what the harness itself asks is not the path's matter
TRUNCATE public.prv_traps;
SELECT bench.load('log', 10, options => '{"schema": "prv_super"}') \g /dev/null
SET search_path = prv_trap, pg_catalog;
SELECT bench.create_workload('prv_trap', E'\\set id random(1, 10)\nINSERT INTO log (info) VALUES (''x'');',
    'log') \g /dev/null
SELECT bench.load('pk', 100, options => '{"schema": "prv_super"}') \g /dev/null
SELECT bench.run('prv_trap', 2, transactions => 5, settings => '{"work_mem": "4MB"}') AS run_id \gset
SELECT bench.percentile(:run_id, 0.5) \g /dev/null
SELECT * FROM bench.audit(:run_id) \g /dev/null
SELECT * FROM bench.runs \g /dev/null
SELECT * FROM bench.summary \g /dev/null
SELECT bench.start('pk_select', 2, secs => 5) AS run_id \gset
SELECT * FROM bench.progress \g /dev/null
SELECT bench.wait(:run_id, 0.2) \g /dev/null
SELECT bench.stop(:run_id) \g /dev/null
SELECT bench.drop_workload('prv_trap') \g /dev/null
SELECT bench.unload('pk') \g /dev/null
RESET search_path;
SELECT is(array_agg(DISTINCT what || ' as ' || "user"), NULL, 'nor as a superuser who has them in its search_path')
FROM public.prv_traps;
-- and tables of the session
TRUNCATE public.prv_traps;
SET SESSION AUTHORIZATION prv_mallory;
CREATE TEMP VIEW run_log AS SELECT prv_trap.caught('temp run_log') AS name;
CREATE TEMP VIEW pg_roles AS SELECT prv_trap.caught('temp pg_roles') AS name;
CREATE TEMP VIEW pg_extension AS SELECT prv_trap.caught('temp pg_extension') AS name;
CREATE TEMP TABLE workloads (name text, owner text, fixture text, script text, builtin boolean);
INSERT INTO pg_temp.workloads
VALUES ('pk_select', 'prv_mallory', NULL, 'SELECT 1;', false), ('prv_ghost', 'prv_mallory', NULL, 'SELECT 1;', false);
SELECT throws_ok($$SELECT bench.run('prv_ghost', transactions => 1)$$, '42704', NULL,
    'a temporary table of workloads is none');
SELECT throws_ok($$SELECT bench.drop_workload('pk_select')$$, '42501', NULL,
    'and does not change whose the true ones are');
SELECT is(count(*), 0::bigint, 'temporary views are not looked at') FROM public.prv_traps;
DROP VIEW pg_temp.run_log, pg_temp.pg_roles, pg_temp.pg_extension;
DROP TABLE pg_temp.workloads;
RESET SESSION AUTHORIZATION;

--
-- A fixture with a trap of its own
--
TRUNCATE public.prv_traps;
SET SESSION AUTHORIZATION prv_mallory;
SELECT bench.load('pk', 100, options => '{"schema": "prv_trap"}') \g /dev/null
CREATE FUNCTION prv_trap.sprung() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    PERFORM prv_trap.caught('trigger');
    RETURN NEW;
END $$;
CREATE TRIGGER sprung BEFORE UPDATE OR DELETE ON prv_trap.pk FOR EACH ROW EXECUTE FUNCTION prv_trap.sprung();
CREATE FUNCTION prv_trap.nap(float8) RETURNS boolean LANGUAGE sql AS $$ SELECT prv_trap.caught('nap') $$;
GRANT USAGE ON SCHEMA prv_trap TO PUBLIC;
GRANT ALL ON prv_trap.pk TO PUBLIC;
RESET SESSION AUTHORIZATION;
SELECT lives_ok($$SELECT bench.run('pk_update', transactions => 1)$$, 'a superuser may run on it');
SELECT is(array_agg(DISTINCT "user"), '{prv_mallory}', 'what is sprung has no other rights than its owner''s')
FROM public.prv_traps;
TRUNCATE public.prv_traps;
-- a superuser may replace and unload it; nothing of it is executed with that
SELECT lives_ok($$SELECT bench.load('pk', 50, options => '{"schema": "prv_trap"}')$$, 'a superuser may replace it');
SELECT lives_ok($$SELECT bench.unload('pk')$$, 'and unload it');
SELECT is(count(*), 0::bigint, 'nothing was sprung') FROM public.prv_traps;

\o /dev/null
RESET ROLE;
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'prv\_%') AS w;
\o
DROP SCHEMA IF EXISTS prv_super, prv_alice, prv_trap, bench_data CASCADE;
DROP FUNCTION public.prv_definer;
DROP TABLE public.prv_seen, public.prv_traps;
DROP OWNED BY prv_alice, prv_bob, prv_boss, prv_stats, prv_signal, prv_nologin, prv_carol, prv_mallory CASCADE;
DROP ROLE prv_alice, prv_bob, prv_boss, prv_stats, prv_signal, prv_nologin, prv_carol, prv_mallory;
SELECT * FROM finish();
