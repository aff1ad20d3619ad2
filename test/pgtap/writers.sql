-- Who answers for a workload, a feeder or a fixture: the role that wrote it last.
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
CREATE ROLE wrt_ann LOGIN;
CREATE ROLE wrt_ben LOGIN;
CREATE ROLE wrt_rich LOGIN CREATEROLE;
GRANT EXECUTE ON FUNCTION bench.run, bench.create_workload, bench.drop_workload, bench.add_feeder, bench.drop_feeder,
    bench.create_fixture, bench.drop_fixture, bench.load TO wrt_ann, wrt_ben, wrt_rich;
CREATE SCHEMA wrt_ann AUTHORIZATION wrt_ann;
CREATE TABLE public.wrt_seen (who text);
GRANT INSERT ON public.wrt_seen TO PUBLIC;
SET SESSION AUTHORIZATION wrt_ann;
SELECT bench.create_workload('wrt_w', 'INSERT INTO public.wrt_seen SELECT current_user;');
SELECT bench.create_fixture('wrt_f', 'CREATE TABLE wrt_f (id int)', 'SELECT id FROM generate_series($1, $2) AS id');
RESET SESSION AUTHORIZATION;
\o

-- Others change nothing.
SET SESSION AUTHORIZATION wrt_ben;
SELECT throws_ok($$ SELECT bench.create_workload('wrt_w', 'SELECT 1;') $$, '42501', NULL, 'another role''s workload');
SELECT throws_ok($$ SELECT bench.add_feeder('wrt_w', 'SELECT 1 AS id') $$, '42501', NULL, 'its feeders');
SELECT throws_ok($$ SELECT bench.create_fixture('wrt_f', 'CREATE TABLE wrt_f (id int)',
    'SELECT id FROM generate_series($1, $2) AS id') $$, '42501', NULL, 'another role''s fixture');
RESET SESSION AUTHORIZATION;

-- Privileges are not enough: a text runs with those of its writer, who must be able to become its former one.
SELECT current_setting('server_version_num')::int >= 160000 AS has_set_option \gset
\if :has_set_option
GRANT wrt_ann TO wrt_ben WITH INHERIT TRUE, SET FALSE;
SET SESSION AUTHORIZATION wrt_ben;
SELECT throws_ok($$ SELECT bench.create_workload('wrt_w', 'SELECT 1;') $$, '42501', NULL, 'without SET, a workload');
SELECT throws_ok($$ SELECT bench.drop_workload('wrt_w') $$, '42501', NULL, 'which is not dropped either');
SELECT throws_ok($$ SELECT bench.add_feeder('wrt_w', 'SELECT 1 AS id') $$, '42501', NULL, 'a feeder');
SELECT throws_ok($$ SELECT bench.drop_fixture('wrt_f') $$, '42501', NULL, 'a fixture');
RESET SESSION AUTHORIZATION;
REVOKE wrt_ann FROM wrt_ben;
\endif

-- Whoever writes is the writer.
GRANT wrt_ann TO wrt_ben;
SET SESSION AUTHORIZATION wrt_ben;
SELECT lives_ok($$ SELECT bench.add_feeder('wrt_w', 'SELECT 1 AS id') $$, 'who can SET ROLE adds a feeder');
SELECT is(owner, 'wrt_ben', 'and the workload is its own') FROM bench.workloads WHERE name = 'wrt_w';
SELECT is(count(*), 1::bigint, 'with the feeder') FROM bench.feeders WHERE workload = 'wrt_w';
RESET SESSION AUTHORIZATION;
REVOKE wrt_ann FROM wrt_ben;
SET SESSION AUTHORIZATION wrt_ann;
SELECT throws_ok($$ SELECT bench.drop_feeder('wrt_w') $$, '42501', NULL, 'the former writer has no say in it');
SELECT throws_ok($$ SELECT bench.run('wrt_w', transactions => 1) $$, '42501', NULL,
    'nor runs it: neither could become the other');
RESET SESSION AUTHORIZATION;

-- A superuser's feeder
SELECT bench.add_feeder('wrt_w', 'SELECT 2 AS id', 'b') \g /dev/null
SELECT is(owner, current_user::text, 'a superuser takes a workload over by adding a feeder') FROM bench.workloads
WHERE name = 'wrt_w';
SELECT lives_ok($$ SELECT bench.drop_feeder('wrt_w', 'b') $$, 'and removes it');

-- A fixture's statements are tried out as they will be loaded.
\o /dev/null
CREATE FUNCTION public.wrt_who() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'is_superuser: %', current_setting('is_superuser') USING ERRCODE = 'XX999';
END $$;
\o
SELECT throws_ok($$ SELECT bench.create_fixture('wrt_who', 'CREATE TABLE wrt_who (who text DEFAULT public.wrt_who());
    INSERT INTO wrt_who DEFAULT VALUES', 'SELECT $1::text || $2') $$, 'XX999',
    'is_superuser: ' || CASE current_setting('pgbench_ext.client_role') WHEN 'postgres' THEN 'on' ELSE 'off' END,
    'a superuser''s statements are tried out by who would load them');
SET SESSION AUTHORIZATION wrt_rich;
SELECT throws_ok($$ SELECT bench.create_fixture('wrt_rich', 'CREATE TABLE wrt_rich (id int)',
    'SELECT id FROM generate_series($1, $2) AS id') $$, '42501',
    'sessions of role "wrt_rich" would have special rights',
    'a role with special rights tries nothing out');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION wrt_ann;
SELECT throws_ok($$ SELECT bench.create_fixture('wrt_calls', 'CREATE TABLE wrt_calls (id int);
    DO $d$ BEGIN PERFORM bench.load(''pk'', 1, options => ''{"schema": "wrt_ann"}''); END $d$',
    'SELECT id FROM generate_series($1, $2) AS id') $$, '25006', NULL, 'they start nothing');
SELECT is(count(*), 0::bigint, 'nothing is left of what was tried') FROM pg_class WHERE relname LIKE 'wrt\_%'
    AND relname <> 'wrt_seen';
SELECT is(count(*), 0::bigint, 'nor its schema') FROM pg_namespace WHERE nspname LIKE 'bench\_loading%';
RESET SESSION AUTHORIZATION;

-- Superusers take over what any role has written.
SELECT lives_ok($$ SELECT bench.create_fixture('wrt_f', 'CREATE TABLE wrt_f (id int)',
    'SELECT id FROM generate_series($1, $2) AS id') $$, 'a superuser takes a fixture over');
SELECT is(owner, current_user::text, 'and answers for it') FROM bench.fixture_definitions WHERE name = 'wrt_f';
SELECT bench.drop_fixture('wrt_f'), bench.drop_workload('wrt_w') \g /dev/null
SELECT * FROM finish();
