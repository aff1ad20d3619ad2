-- While bench.run waits, its session holds nothing that keeps dead rows from being pruned.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
CREATE EXTENSION IF NOT EXISTS dblink;
SELECT bench.load('pk', 1000);
ALTER TABLE bench_data.pk SET (autovacuum_enabled = off);
SELECT bench.create_workload('hor_slow', 'SELECT pg_sleep(0.01);');
-- Another session, and how it stands while it waits.
SELECT dblink_connect('caller',
    format('host=%s port=%s dbname=%s user=%s application_name=hor_caller options=-cclient_min_messages=error',
        split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database(),
        current_user));
CREATE PROCEDURE pg_temp.watch(statements text[], call text, INOUT looks int DEFAULT 0, INOUT with_xmin int DEFAULT 0,
    INOUT with_xid int DEFAULT 0)
    LANGUAGE plpgsql AS $$
DECLARE
    s text;
    latest bigint;
    xmin xid;
    xid xid;
BEGIN
    SELECT coalesce(max(run_id), 0) INTO latest FROM bench.runs;
    COMMIT;
    FOREACH s IN ARRAY statements LOOP PERFORM * FROM dblink('caller', s) AS t (a text); END LOOP;
    PERFORM dblink_send_query('caller', call);
    FOR i IN 1 .. 200 LOOP
        EXIT WHEN EXISTS (SELECT FROM bench.runs WHERE run_id > latest AND status = 'running');
        COMMIT;
        PERFORM pg_sleep(0.02);
    END LOOP;
    COMMIT;
    FOR i IN 1 .. 20 LOOP
        PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
        SELECT backend_xmin, backend_xid INTO xmin, xid
        FROM pg_stat_activity
        WHERE application_name = 'hor_caller' AND state = 'active';
        looks := looks + 1;
        with_xmin := with_xmin + (xmin IS NOT NULL)::int;
        with_xid := with_xid + (xid IS NOT NULL)::int;
        COMMIT;
    END LOOP;
    PERFORM bench.stop(run_id) FROM (SELECT run_id FROM bench.runs WHERE run_id > latest AND status = 'running') AS r;
    COMMIT;
    PERFORM * FROM dblink_get_result('caller', false) AS t (a text);
    PERFORM * FROM dblink_get_result('caller', false) AS t (a text);
    PERFORM dblink_exec('caller', 'ROLLBACK', false);
END $$;
\o

CALL pg_temp.watch('{}', $$SELECT bench.run('hor_slow', secs => 30)$$) \gset a_
SELECT
    ok(:a_looks = 20 AND :a_with_xmin <= 1, 'a plain SELECT: no xmin while it waits'),
    is(:a_with_xid, 0, 'and no transaction id');
SELECT is(horizon_held, false, 'as the run says') FROM bench.runs ORDER BY run_id DESC LIMIT 1;
CALL pg_temp.watch('{BEGIN}', $$SELECT bench.run('hor_slow', secs => 30)$$) \gset a_
SELECT ok(:a_looks = 20 AND :a_with_xmin <= 1, 'inside BEGIN, too');
CALL pg_temp.watch('{}', $$SELECT bench.percentile(bench.run('hor_slow', secs => 30), 0.5)$$) \gset a_
SELECT ok(:a_looks = 20 AND :a_with_xmin <= 1, 'and as an argument');
CALL pg_temp.watch('{}', $$SELECT bench.wait(bench.start('hor_slow', secs => 30))$$) \gset a_
SELECT ok(:a_looks = 20 AND :a_with_xmin <= 1, 'bench.wait');
SELECT is(horizon_held, false, 'as the run says') FROM bench.runs ORDER BY run_id DESC LIMIT 1;
CALL pg_temp.watch('{}', $$SELECT run FROM bench.run('hor_slow', secs => 30) AS run WHERE run > 0$$) \gset a_
SELECT ok(:a_looks = 20 AND :a_with_xmin <= 1, 'and with a WHERE that computes');
CALL pg_temp.watch('{}', $$SELECT run FROM bench.run('hor_slow', secs => 30) AS run
    WHERE run IN (SELECT oid FROM pg_class)$$) \gset a_
SELECT is(:a_with_xmin, 20, 'a WHERE that reads: the snapshot is kept');
CALL pg_temp.watch('{BEGIN ISOLATION LEVEL REPEATABLE READ}', $$SELECT bench.run('hor_slow', secs => 30)$$) \gset a_
SELECT is(:a_with_xmin, 20, 'REPEATABLE READ: the snapshot is kept');
SELECT is(horizon_held, true, 'as the run says') FROM bench.runs ORDER BY run_id DESC LIMIT 1;
CALL pg_temp.watch('{BEGIN,DECLARE c CURSOR FOR SELECT 1}', $$SELECT bench.run('hor_slow', secs => 30)$$) \gset a_
SELECT is(:a_with_xmin, 20, 'an open cursor: the snapshot is kept');
CALL pg_temp.watch('{BEGIN,SELECT pg_current_xact_id()::text}', $$SELECT bench.run('hor_slow', secs => 30)$$) \gset a_
SELECT is(:a_with_xid, 20, 'a transaction that has written: its id is there');
SELECT is(horizon_held, true, 'as the run says') FROM bench.runs ORDER BY run_id DESC LIMIT 1;
CALL pg_temp.watch('{BEGIN,SELECT pg_export_snapshot()}', $$SELECT bench.run('hor_slow', secs => 30)$$) \gset a_
SELECT is(:a_with_xmin, 20, 'an exported snapshot is kept for those who import it');
CALL pg_temp.watch('{}', 'DO $x$ BEGIN PERFORM bench.run(''hor_slow'', secs => 30); END $x$') \gset a_
SELECT is(:a_with_xmin, 20, 'inside a PL/pgSQL block: the snapshot is kept');
SELECT is(horizon_held, true, 'as the run says') FROM bench.runs ORDER BY run_id DESC LIMIT 1;

-- None of the workers holds it either, between their transactions
SELECT bench.start('hor_slow', 2, secs => 30) AS run_id \gset
SELECT bench.wait(:run_id, 0.3) \g /dev/null
SELECT is(count(*), 0::bigint, 'the coordinator holds no xmin')
FROM pg_stat_activity
WHERE backend_type = 'pgbench_ext coordinator' AND backend_xmin IS NOT NULL;
SELECT bench.stop(:run_id) \g /dev/null
SELECT dblink_disconnect('caller') \g /dev/null

--
-- What it is for: the table grows as under pgbench. The same table, the same number of updates; and once more with
-- the horizon held, so that it is seen that this test can tell.
--
CREATE PROCEDURE pg_temp.afresh(rows bigint) LANGUAGE plpgsql AS $$ BEGIN
    -- one job: several leave free pages behind, now more and now fewer
    PERFORM bench.load('pk', rows, jobs => 1);
    COMMIT;
    ALTER TABLE bench_data.pk SET (autovacuum_enabled = off);
END $$;
SELECT
    current_database() AS db,
    current_setting('port') AS port,
    split_part(current_setting('unix_socket_directories'), ',', 1) AS host,
    current_user AS me \gset
\setenv PGDATABASE :db
\setenv PGHOST :host
\setenv PGPORT :port
\setenv PGUSER :me
\setenv PGOPTIONS '-c synchronous_commit=off'
\set script '\\\\set id random(1, %d)\\nUPDATE bench_data.pk SET crt_time = now() WHERE id = :id;\\n'
\set count 's/.*actually processed: \\([0-9]*\\).*/\\1/p'

-- One client: exactly the same work
CALL pg_temp.afresh(10000);
SELECT pg_relation_size('bench_data.pk') AS fresh \gset
\set processed `printf :'script' 10000 | pgbench -n -M prepared -t 20000 -f - 2>&1 | sed -n :'count'`
SELECT pg_relation_size('bench_data.pk') AS pgbench \gset
SELECT is(:processed, 20000, 'pgbench: 20,000 updates by one client');
CALL pg_temp.afresh(10000);
SELECT is(pg_relation_size('bench_data.pk'), :fresh::bigint, 'the same table again');
SELECT bench.run('pk_update', transactions => 20000, settings => '{"synchronous_commit": "off"}') AS run_id \gset
SELECT pg_relation_size('bench_data.pk') AS bench \gset
SELECT is(transactions, 20000::bigint, 'bench.run: as many') FROM bench.summary WHERE run_id = :run_id;
SELECT ok(abs(:bench::float8 - :pgbench) <= 0.1 * (:pgbench - :fresh) + 2 * 8192,
    format('the table has grown as under pgbench, within 10 %% of the growth: %s and %s kB, %s before', :bench / 1024,
        :pgbench / 1024, :fresh / 1024));

-- Four at a time: those that lose the processor in the middle of a transaction hold the horizon a moment each
CALL pg_temp.afresh(100000);
\set processed `printf :'script' 100000 | pgbench -n -M prepared -c 4 -j 2 -t 25000 -f - 2>&1 | sed -n :'count'`
SELECT pg_relation_size('bench_data.pk') AS pgbench \gset
SELECT is(:processed, 100000, 'pgbench: 100,000 updates by four clients');
CALL pg_temp.afresh(100000);
SELECT bench.run('pk_update', 4, transactions => 25000, settings => '{"synchronous_commit": "off"}') AS run_id \gset
SELECT pg_relation_size('bench_data.pk') AS bench \gset
SELECT is(transactions, 100000::bigint, 'bench.run: as many') FROM bench.summary WHERE run_id = :run_id;
SELECT ok(abs(:bench::float8 / :pgbench - 1) <= 0.1,
    format('the table is as large as after pgbench, within 10 %%: %s and %s kB', :bench / 1024, :pgbench / 1024));

-- With the horizon held the same test tells the difference
CALL pg_temp.afresh(100000);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bench.run('pk_update', 4, transactions => 25000, settings => '{"synchronous_commit": "off"}') AS run_id \gset
COMMIT;
SELECT pg_relation_size('bench_data.pk') AS held \gset
SELECT is(horizon_held, true, 'once more with the horizon held') FROM bench.runs WHERE run_id = :run_id;
SELECT ok(:held > 1.3 * :pgbench, format('it is larger then: %s kB', :held / 1024));

\o /dev/null
SELECT bench.unload('pk');
SELECT bench.drop_workload('hor_slow');
\o
DROP SCHEMA IF EXISTS bench_data;
DROP EXTENSION dblink;
SELECT * FROM finish();
