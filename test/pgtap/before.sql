-- The state that a run begins with: bench.run(…, before => …).
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

DROP SCHEMA IF EXISTS bef_own CASCADE;
DROP ROLE IF EXISTS bef_alice;
\o /dev/null
SELECT bench.load('pk', 1000), bench.load('log', 0), bench.load('tpcb', options => '{"scale": 1}');
\o
CREATE ROLE bef_alice LOGIN;
CREATE FUNCTION pg_temp.count_of(relation regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counted bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM %s', relation) INTO counted;
    RETURN counted;
END $$;

-- vacuum
SELECT vacuum_count AS vacuums, analyze_count AS analyzes
FROM pg_stat_user_tables WHERE relid = 'bench_data.pk'::regclass \gset
SELECT bench.run('pk_update', 2, transactions => 5, before => 'vacuum') AS run_id \gset
SELECT is(vacuum_count, :vacuums + 1::bigint, 'vacuum: the table is vacuumed'),
    is(analyze_count, :analyzes + 1::bigint, 'with ANALYZE')
FROM pg_stat_user_tables WHERE relid = 'bench_data.pk'::regclass;
SELECT is(status, 'completed', 'the run completes'), is(before, 'vacuum', 'and says what was done before')
FROM bench.runs WHERE run_id = :run_id;
SELECT is(vacuums, 0::bigint, 'the VACUUM is no part of the run')
FROM bench.relations WHERE run_id = :run_id AND relation = 'bench_data.pk';
SELECT bench.run('pk_update', transactions => 5) AS run_id \gset
SELECT is(vacuum_count, :vacuums + 1::bigint, 'nothing is done by default')
FROM pg_stat_user_tables WHERE relid = 'bench_data.pk'::regclass;
SELECT is(before, 'none', 'as the run says') FROM bench.runs WHERE run_id = :run_id;
-- The run's settings are the clients'.
SELECT bench.run('pk_select', transactions => 5, before => 'vacuum',
    settings => '{"default_transaction_read_only": "on", "statement_timeout": "1h"}') AS run_id \gset
SELECT is(vacuum_count, :vacuums + 2::bigint, 'settings of the clients do not apply to it')
FROM pg_stat_user_tables WHERE relid = 'bench_data.pk'::regclass;

-- truncate
SELECT bench.run('pk_insert', transactions => 7, before => 'truncate') AS run_id \gset
SELECT is(pg_temp.count_of('bench_data.log'), s.transactions, 'truncate: the run begins with an empty table')
FROM bench.summary s WHERE run_id = :run_id;
SELECT bench.run('pk_insert', transactions => 7, before => 'truncate') AS run_id \gset
SELECT is(pg_temp.count_of('bench_data.log'), s.transactions, 'and the next one too')
FROM bench.summary s WHERE run_id = :run_id;
SELECT throws_ok('SELECT bench.run(''pk_update'', transactions => 1, before => ''truncate'')', '55000',
    'fixture "pk" was loaded with rows, which TRUNCATE would remove', 'a fixture with rows is not emptied');
SELECT is(pg_temp.count_of('bench_data.pk'), 1000::bigint, 'its rows are there');
-- As pgbench does unless it is given -n.
SELECT bench.run('tpcb', transactions => 10) AS run_id \gset
SELECT bench.run('tpcb', transactions => 3, before => 'vacuum,truncate') AS run_id \gset
SELECT is(pg_temp.count_of('bench_data.pgbench_history'), 3::bigint, 'of pgbench''s tables the history is emptied'),
    is(pg_temp.count_of('bench_data.pgbench_accounts'), 100000::bigint, 'and no other');
SELECT is(before, 'truncate,vacuum', 'in the order of the steps') FROM bench.runs WHERE run_id = :run_id;
SELECT ok(bool_and(vacuum_count > 0), 'all are vacuumed')
FROM pg_stat_user_tables WHERE schemaname = 'bench_data' AND relname LIKE 'pgbench\_%';

-- reload, prewarm, checkpoint
DELETE FROM bench_data.pk WHERE id <= 500;
SELECT bench.run('pk_select', transactions => 5, before => 'reload,prewarm,checkpoint') AS run_id \gset
SELECT is(pg_temp.count_of('bench_data.pk'), 1000::bigint, 'reload: the rows are there again');
SELECT is(format('%s %s', status, before), 'completed reload,prewarm,checkpoint', 'with other steps')
FROM bench.runs WHERE run_id = :run_id;

-- bench.start, and a run of several fixtures
SELECT bench.start('pk_update,pk_insert', 2, transactions => 5, before => 'vacuum') AS run_id \gset
SELECT is(bench.wait(:run_id), 'completed', 'bench.start does it as well');

-- Refused before anything is begun
SELECT max(run_id) AS last_run FROM bench.runs \gset
SELECT throws_ok(format('SELECT bench.run(''pk_select'', transactions => 1, before => %L)', before), code, NULL,
    format('before => %s is refused', coalesce(before, 'NULL')))
FROM (VALUES ('vacuum,', '22023'), ('reboot', '22023'), ('', '22023'), (NULL, '22004')) AS v (before, code);
SELECT throws_ok('SELECT bench.run(''pk_select'', transactions => 1, before => ''vacuum'', nodes => ''all'')', '0A000',
    NULL, 'on several nodes it is refused');
GRANT EXECUTE ON FUNCTION bench.run TO bef_alice;
GRANT USAGE ON SCHEMA bench_data TO bef_alice;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA bench_data TO bef_alice;
SET SESSION AUTHORIZATION bef_alice;
SELECT
    throws_ok('SELECT bench.run(''pk_select'', transactions => 1, before => ''vacuum'')', '42501', NULL,
        'what the role may not vacuum'),
    throws_ok('SELECT bench.run(''pk_insert'', transactions => 1, before => ''truncate'')', '42501', NULL,
        'what it may not truncate'),
    throws_ok('SELECT bench.run(''pk_select'', transactions => 1, before => ''checkpoint'')', '42501', NULL,
        'and a checkpoint');
RESET SESSION AUTHORIZATION;
SELECT is(max(run_id), :last_run::bigint, 'no run was begun') FROM bench.runs;
-- By the role itself
GRANT TRUNCATE ON bench_data.log TO bef_alice;
SET SESSION AUTHORIZATION bef_alice;
SELECT bench.run('pk_insert', transactions => 4, before => 'truncate') AS run_id \gset
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.count_of('bench_data.log'), s.transactions, 'a role may truncate what it has the privilege for')
FROM bench.summary s WHERE run_id = :run_id;

\o /dev/null
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
\o
DROP OWNED BY bef_alice;
DROP ROLE bef_alice;
DROP SCHEMA IF EXISTS bench_data;
SELECT * FROM finish();
