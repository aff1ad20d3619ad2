--
-- Bad arguments: each is refused with a clear message before anything is started or left behind
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
CREATE ROLE regress_bench_user LOGIN;
CREATE ROLE regress_bench_nologin;
GRANT EXECUTE ON FUNCTION bench.run, bench.start, bench.load, bench.unload TO regress_bench_user, regress_bench_nologin;
SELECT bench.create_workload('nothing', 'SELECT 1;');

-- NULLs
SELECT bench.run(NULL);
SELECT bench.run('nothing', clients => NULL);
SELECT bench.run('nothing', max_tries => NULL);
SELECT bench.run('nothing', variables => NULL);
SELECT bench.run('nothing', settings => NULL);
SELECT bench.run('nothing', driver => NULL);
SELECT bench.run('nothing', query_mode => NULL);
SELECT bench.run('nothing', results => NULL);
SELECT bench.run('nothing', nodes => NULL);
SELECT bench.run('nothing', tags => NULL);
SELECT bench.start(NULL);
SELECT bench.load(NULL);
SELECT bench.load('pk', options => NULL);
SELECT bench.unload(NULL);
SELECT bench.wait(NULL);
SELECT bench.stop(NULL);
SELECT bench.percentile(NULL, 0.5);
SELECT bench.percentile(1, NULL);
SELECT * FROM bench.audit(NULL);

-- Unknown names: the hint lists the known
SELECT bench.run('nonesuch');
SELECT bench.run('');
SELECT bench.run('PK_SELECT');
SELECT bench.start('nonesuch');
SELECT bench.run('pk_slect');
SELECT bench.load('tpbc');
SELECT bench.load('nonesuch');
SELECT bench.unload('nonesuch');
SELECT bench.drop_workload('nonesuch');
SELECT bench.wait(-1);
SELECT bench.wait(9223372036854775807);
SELECT bench.stop(-1);
SELECT bench.percentile(-1, 0.5);
SELECT * FROM bench.audit(-1);
-- a fixture that is known and not loaded
SELECT bench.unload('wide');


-- clients
SELECT bench.run('nothing', clients => 0);
SELECT bench.run('nothing', clients => -5);
SELECT bench.run('nothing', '-2147483648');
-- more than there are slots for: needed, configured, in use, and what to set. What is in use may differ by those
-- that are just ending, so these numbers are held against each other instead.
CREATE FUNCTION pg_temp.slots(call text, OUT code text, OUT message text, OUT detail text, OUT hint text,
    OUT sums boolean)
    LANGUAGE plpgsql AS $$
DECLARE
    n bigint[];
BEGIN
    EXECUTE call;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    SELECT array_agg(m[1]::bigint) INTO n FROM regexp_matches(detail || hint, '\d+', 'g') AS m;
    sums := n[2] = current_setting('max_worker_processes')::bigint AND n[3] BETWEEN 0 AND 10 AND n[4] = n[1] + n[3];
    detail := regexp_replace(detail, 'configured: \d+; in use: \d+', 'configured: N; in use: N');
    hint := regexp_replace(hint, '\d+', 'N');
END $$;
\x on
SELECT * FROM pg_temp.slots($$SELECT bench.run('nothing', 2147483647)$$);
SELECT * FROM pg_temp.slots($$SELECT bench.start('nothing', clients => 100000, transactions => 1)$$);
SELECT detail LIKE format('Needed: %s (one per client and one to lead them);%%',
                          current_setting('max_worker_processes')::int + 1) AS needed, code, sums
FROM pg_temp.slots($$SELECT bench.run('nothing', current_setting('max_worker_processes')::int, transactions => 1)$$);
\x off
SELECT bench.load('pk', 1000, jobs => 0);
SELECT bench.load('pk', 1000, jobs => -1);
SELECT bench.load('pk', 1000, jobs => 257);

-- secs, transactions, warmup, sample_interval
SELECT bench.run('nothing', warmup => NULL, nodes => 'all');
SELECT bench.run('nothing', secs => 1, transactions => 1);
SELECT bench.run('nothing', secs => 0);
SELECT bench.run('nothing', secs => -1);
SELECT bench.run('nothing', secs => 'NaN');
SELECT bench.run('nothing', secs => 'Infinity');
SELECT bench.run('nothing', secs => '-Infinity');
SELECT bench.run('nothing', secs => 1e9);
SELECT bench.run('nothing', transactions => 0);
SELECT bench.run('nothing', transactions => -1);
SELECT bench.run('nothing', warmup => -1);
SELECT bench.run('nothing', warmup => 'NaN');
SELECT bench.run('nothing', warmup => 'Infinity');
SELECT bench.run('nothing', sample_interval => 0);
SELECT bench.run('nothing', sample_interval => -1);
SELECT bench.run('nothing', sample_interval => 0.09);
SELECT bench.run('nothing', sample_interval => 3601);
SELECT bench.run('nothing', sample_interval => 'NaN');
SELECT bench.run('nothing', sample_interval => 'Infinity');
SELECT bench.run('nothing', max_tries => -1);
SELECT bench.run('nothing', max_tries => 0, transactions => 1);
SELECT bench.wait(1, timeout => -1);
SELECT bench.wait(1, timeout => 'NaN');
SELECT bench.wait(1, timeout => 'Infinity');

-- Over connections
SELECT bench.run('nothing', driver => 'wire', results => 'discard');
SELECT bench.run('nothing', driver => 'wire', nodes => 'workers');
SELECT bench.run('nothing', driver => 'wire', jobs => 0);
SELECT bench.run('nothing', jobs => 2);
SELECT bench.run('nothing', target => 'replica');
SELECT bench.run('nothing', reconnect => true);
SELECT bench.run('nothing', on_disconnect => 'reconnect');
SELECT bench.run('nothing', reconnect => NULL);
SELECT bench.run('nothing', on_disconnect => NULL);
SELECT bench.run('nothing', on_disconnect => 'wait');
SELECT bench.run('nothing', driver => 'wire', target => '');
SELECT bench.run('nothing', driver => 'wire', target => 'replica');
-- Without Citus
SELECT bench.run('nothing', nodes => 'workers');
SELECT bench.run('nothing', nodes => 'all');
-- What nodes ask each other
SELECT bench_internal.node_state(NULL);
SELECT bench_internal.node_state('{NULL}');
SELECT bench_internal.node_state('{}');
SELECT bench_internal.start_part(NULL);
SELECT bench_internal.start_part('{}');
SELECT bench_internal.part_state(NULL, false);
SELECT bench_internal.part_state(0, false);
SELECT bench_internal.part_samples(NULL, 0);
SELECT bench_internal.part_samples(0, 0);
SELECT bench_internal.begin_part(0, 0);
SELECT bench_internal.drop_part(NULL);
SELECT bench_internal.drop_part(0);
-- words that will never be known
SELECT bench.run('nothing', driver => 'libpq');
SELECT bench.run('nothing', query_mode => 'Prepared');
SELECT bench.run('nothing', results => 'drop');
SELECT bench.run('nothing', results => '');
SELECT bench.run('nothing', nodes => 'none');

-- Shapes of JSON
SELECT bench.run('nothing', variables => '[1]');
SELECT bench.run('nothing', variables => '"x"');
SELECT bench.run('nothing', variables => 'null');
SELECT bench.run('nothing', variables => '{"x": [1]}');
SELECT bench.run('nothing', variables => '{"x": {"y": 1}}');
SELECT bench.run('nothing', variables => '{"1x": 1}');
SELECT bench.run('nothing', variables => '{"": 1}');
SELECT bench.run('nothing', variables => '{"a-b": 1}');
SELECT bench.run('nothing', settings => '[]');
SELECT bench.run('nothing', settings => '{"work_mem": null}');
SELECT bench.run('nothing', settings => '{"work_mem": ["4MB"]}');
SELECT bench.run('nothing', tags => '1');
SELECT bench.run('nothing', tags => '["nightly"]');
SELECT bench.load('pk', 1000, options => '[]');
SELECT bench.load('pk', 1000, options => 'true');
-- what the server takes and a run cannot
SELECT bench.run('nothing', transactions => 1, tags => '{"x": 1e400}');
SELECT bench.run('nothing', transactions => 1, tags => (repeat('[', 101) || repeat(']', 101))::jsonb);

-- settings: those that do not exist or do not take the value, by the server's own words
SELECT bench.run('nothing', settings => '{"no_such_setting": 1}');
SELECT bench.run('nothing', settings => '{"": "x"}');
SELECT bench.run('nothing', settings => '{"syncronous_commit": "off"}');
SELECT bench.run('nothing', settings => '{"work_mem": "much"}');
SELECT bench.run('nothing', settings => '{"geqo_threshold": 1}');
SELECT bench.run('nothing', settings => '{"work_mem": "1 parsec"}');
SELECT bench.run('nothing', settings => '{"plan_cache_mode": "sometimes"}');
SELECT bench.run('nothing', settings => '{"enable_seqscan": "perhaps"}');
SELECT bench.run('nothing', settings => '{"work_mem": "4MB", "TimeZone": "Mars/Olympus"}');
-- which cannot be changed in a session
SELECT bench.run('nothing', settings => '{"shared_buffers": "1GB"}');
SELECT bench.run('nothing', settings => '{"fsync": "off"}');
SELECT bench.run('nothing', settings => '{"full_page_writes": "off"}');
SELECT bench.run('nothing', settings => '{"server_version": "99"}');
SELECT bench.run('nothing', settings => '{"ignore_system_indexes": "on"}');
-- which the engine's sessions have no use for
SELECT bench.run('nothing', settings => '{"log_statement": "all"}');
SELECT bench.run('nothing', settings => '{"LOG_MIN_DURATION_STATEMENT": 0}');
SELECT bench.run('nothing', settings => '{"log_duration": true}');
SELECT bench.run('nothing', settings => '{"client_connection_check_interval": "1s"}');
SELECT bench.run('nothing', settings => '{"idle_session_timeout": "1s"}');
SELECT bench.run('nothing', settings => '{"idle_in_transaction_session_timeout": "1s"}');
SELECT bench.run('nothing', settings => '{"transaction_isolation": "serializable"}');
SELECT bench.run('nothing', settings => '{"role": "postgres"}');
SELECT bench.run('nothing', settings => '{"session_authorization": "postgres"}');
-- What lives in postgres.c and is neither honoured nor refused would measure nothing: none of these may pass
\set VERBOSITY sqlstate
SELECT bench.run('nothing', transactions => 1, settings => '{"log_statement": "all"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_duration": "on"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_min_duration_statement": "0"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_min_duration_sample": "0"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_statement_sample_rate": "0.5"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_transaction_sample_rate": "1"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_executor_stats": "on"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_parameter_max_length_on_error": "100"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_statement_stats": "on"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_disconnections": "on"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"log_connections": "on"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"client_connection_check_interval": "1s"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"idle_session_timeout": "1s"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"idle_in_transaction_session_timeout": "1s"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"local_preload_libraries": "auto_explain"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"post_auth_delay": "1s"}');
\set VERBOSITY default
-- which this role may not set
SET ROLE regress_bench_user;
SELECT bench.run('nothing', transactions => 1, settings => '{"session_replication_role": "replica"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"commit_delay": "10"}');
SELECT bench.run('nothing', transactions => 1, settings => '{"zero_damaged_pages": "on"}');
SELECT bench.start('nothing', transactions => 1, settings => '{"log_min_messages": "debug5"}');
RESET ROLE;

-- options of bench.load
SELECT bench.load('pk', 1000, options => '{"colour": "red"}');
SELECT bench.load('pk', 1000, options => '{"Schema": "x"}');
SELECT bench.load('pk', 1000, options => '{"schema": 1}');
SELECT bench.load('pk', 1000, options => '{"schema": ""}');
SELECT bench.load('pk', 1000, options => '{"schema": null}');
SELECT bench.load('pk', 1000, options => '{"schema": "pg_catalog"}');
SELECT bench.load('pk', 1000, options => '{"schema": "pg_mine"}');
SELECT bench.load('pk', 1000, options => '{"unlogged": "yes"}');
SELECT bench.load('pk', 1000, options => '{"fillfactor": 9}');
SELECT bench.load('pk', 1000, options => '{"fillfactor": 101}');
SELECT bench.load('pk', 1000, options => '{"fillfactor": 50.5}');
SELECT bench.load('pk', 1000, options => '{"fillfactor": "50"}');
SELECT bench.load('pk', 1000, options => '{"tablespace": "nonesuch"}');
SELECT bench.load('pk', 1000, options => '{"tablespace": 1}');
SELECT bench.load('pk', -1);
SELECT bench.load('pk', 2147483648);
SELECT bench.load('log', 2147483648);
SELECT bench.load('pk', 1000, options => '{"index_tablespace": 1}');
-- for another fixture, or for later versions
SELECT bench.load('pk', 1000, options => '{"partitions": 4}');
SELECT bench.load('pk', 1000, options => '{"shard_count": 4}');
\set VERBOSITY sqlstate
SELECT bench.load('pk', 1000, options => '{"partition_method": "hash"}');
SELECT bench.load('pk', 1000, options => '{"foreign_keys": true}');
SELECT bench.load('pk', 1000, options => '{"tables": 4}');
SELECT bench.load('pk', 1000, options => '{"scale": 4}');
SELECT bench.load('pk', 1000, options => '{"distribute": true}');
\set VERBOSITY default

-- percentiles are fractions
SELECT count(*) AS runs FROM bench_internal.run_log;
SELECT bench.run('nothing', transactions => 10) AS run_id \gset
SELECT bench.percentile(:run_id, 99);
SELECT bench.percentile(:run_id, 99.9);
SELECT bench.percentile(:run_id, 100);
SELECT bench.percentile(:run_id, 101);
SELECT bench.percentile(:run_id, -0.1);
SELECT bench.percentile(:run_id, 'NaN');
SELECT bench.percentile(:run_id, 'Infinity');
SELECT bench.percentile(:run_id, 0) > 0 AS "0", bench.percentile(:run_id, 1) > 0 AS "1";

-- The transaction's and the role's own limits
BEGIN READ ONLY;
SELECT bench.run('nothing', transactions => 1);
ROLLBACK;
SET default_transaction_read_only = on;
SELECT bench.start('nothing', transactions => 1);
SELECT bench.load('pk', 1000);
RESET default_transaction_read_only;
SET ROLE regress_bench_nologin;
SELECT bench.run('nothing', transactions => 1);
SELECT bench.load('pk', 1000);
RESET ROLE;
ALTER ROLE regress_bench_user CONNECTION LIMIT 2;
SET ROLE regress_bench_user;
SELECT bench.run('nothing', clients => 3, transactions => 1);
RESET ROLE;

-- The same in SQLSTATEs: those that have another one
SELECT expected, code, call FROM (VALUES
    ('0A000', ARRAY[
        $$SELECT bench.run('nothing', settings => '{"role": "postgres"}')$$,
        $$SELECT bench.load('pk', 1000, options => '{"partitions": 4}')$$
    ]),
    ('22004', ARRAY[
        $$SELECT bench.run(NULL)$$, $$SELECT bench.run('nothing', clients => NULL)$$, $$SELECT bench.wait(NULL)$$,
        $$SELECT bench.sweep('nothing', NULL)$$, $$SELECT * FROM bench.ab('nothing', NULL, '{}')$$
    ]),
    ('22023', ARRAY[
        $$SELECT bench.run('nothing', clients => 0)$$,
        $$SELECT bench.run('nothing', secs => 1, transactions => 1)$$,
        $$SELECT bench.run('nothing', secs => 'NaN')$$, $$SELECT bench.run('nothing', secs => 'Infinity')$$,
        $$SELECT bench.run('nothing', driver => 'wire', jobs => -1)$$,
        $$SELECT bench.run('nothing', driver => 'libpq')$$, $$SELECT bench.run('nothing', results => 'drop')$$,
        $$SELECT bench.run('nothing', variables => '[1]')$$,
        $$SELECT bench.run('nothing', settings => '{"work_mem": "much"}')$$, $$SELECT bench.load('pk', -1)$$,
        $$SELECT bench.load('pk', options => '{"colour": "red"}')$$, $$SELECT bench.load('pk', 1000, jobs => 0)$$,
        $$SELECT bench.wait(1, timeout => -1)$$, $$SELECT bench.percentile(-1, 99)$$,
        $$SELECT bench.sweep('nothing', '{0}')$$, $$SELECT bench.sweep('nothing', '{1,1}')$$,
        $$SELECT bench.sweep('nothing', '{1}', before => 'wash')$$,
        $$SELECT bench.sweep('nothing', '{1}', variants => '{"a": 1}')$$, $$SELECT bench.wait_sweep(-1, -1)$$,
        $$SELECT * FROM bench.compare('{}', '{1}')$$, $$SELECT * FROM bench.change_points('nothing', 'beauty')$$
    ]),
    ('42704', ARRAY[
        $$SELECT bench.run('nonesuch')$$, $$SELECT bench.run('nothing', settings => '{"no_such_setting": 1}')$$,
        $$SELECT bench.load('nonesuch')$$,
        $$SELECT bench.load('pk', 1000, options => '{"tablespace": "nonesuch"}')$$,
        $$SELECT bench.unload('nonesuch')$$, $$SELECT bench.unload('wide')$$, $$SELECT bench.wait(-1)$$,
        $$SELECT bench.stop(-1)$$, $$SELECT bench.percentile(-1, 0.5)$$, $$SELECT bench.sweep('nonesuch', '{1}')$$,
        $$SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"nosuchsetting": 1}}}')$$,
        $$SELECT bench.wait_sweep(-1)$$, $$SELECT bench.stop_sweep(-1)$$, $$SELECT bench.resume_sweep(-1)$$,
        $$SELECT bench.sweep_report(-1)$$, $$SELECT * FROM bench.scalability(-1)$$,
        $$SELECT * FROM bench.compare('{-1}', '{-2}')$$
    ]),
    ('42939', ARRAY[$$SELECT bench.load('pk', 1000, options => '{"schema": "pg_catalog"}')$$]),
    ('53400', ARRAY[
        $$SELECT bench.run('nothing', clients => 100000, transactions => 1)$$,
        $$SELECT bench.start_sweep('nothing', '{100000}')$$
    ]),
    ('54000', ARRAY[$$SELECT bench.sweep('nothing', '{1}', rounds => 10001)$$]),
    ('55000', ARRAY[$$SELECT bench.run('nothing', nodes => 'all')$$]),
    ('55P02', ARRAY[
        $$SELECT bench.run('nothing', settings => '{"shared_buffers": "1GB"}')$$,
        $$SELECT bench.sweep('nothing', '{1}', variants => '{"a": {"system": {"shared_buffers": "1GB"}}}')$$
    ])
) AS v (expected, calls), unnest(calls) AS call, pg_temp.slots(call) WHERE code IS DISTINCT FROM expected;
\set VERBOSITY sqlstate
BEGIN READ ONLY;
SELECT bench.run('nothing', transactions => 1);
ROLLBACK;
BEGIN READ ONLY;
SELECT bench.sweep('nothing', '{1}');
ROLLBACK;
SET ROLE regress_bench_user;
SELECT bench.run('nothing', transactions => 1, settings => '{"session_replication_role": "replica"}');
SELECT bench.run('nothing', clients => 3, transactions => 1);
SELECT bench.stop(NULL);
SELECT bench.sweep('nothing', '{1}');
SELECT bench.resume_sweep(-1);
SELECT * FROM bench.ab('nothing', '{}', '{}');
SET ROLE regress_bench_nologin;
SELECT bench.run('nothing', transactions => 1);
RESET ROLE;
\set VERBOSITY default

-- Handles of no run
SELECT h, bench_internal.status_of('running', h, 1) AS status,
       (SELECT count(*) FROM bench_internal.run_progress(h, 1)) AS progress
FROM unnest('{0, 1, -1, 4294967296, NULL}'::bigint[]) AS h;
SELECT bench_internal.status_of(NULL, NULL, NULL), bench_internal.status_of('completed', NULL, NULL);

-- Larger than any honest argument
CREATE TEMP TABLE large AS SELECT jsonb_build_object('a', repeat('x', 20000000)) AS compressed;
SELECT bench.run('nothing', tags => compressed) FROM large;
SELECT bench.start('nothing', variables => jsonb_build_object('a', repeat('x', 1048576)));
SELECT bench.run('nothing', settings => jsonb_build_object('application_name', repeat('x', 1048576)));
SELECT bench.run('nothing', settings => (SELECT jsonb_object_agg('a.b' || n, n) FROM generate_series(1, 1001) AS n));
SELECT bench.load('pk', options => compressed) FROM large;
SELECT * FROM bench.preview('SELECT 1;', variables => (SELECT compressed FROM large));
SELECT bench.sweep('nothing', '{1}', variants => compressed) FROM large;
SELECT bench.sweep('nothing', '{1}',
    variants => jsonb_build_object('a', (SELECT jsonb_object_agg('a.b' || n, n) FROM generate_series(1, 1001) AS n)));
SELECT bench.start_sweep('nothing', array_agg(n)) FROM generate_series(1, 10001) AS n;
SELECT bench.start_sweep('nothing', array_fill(1, ARRAY[5000000]));
SELECT * FROM bench.ab('nothing', '{}', (SELECT compressed FROM large));
SELECT * FROM bench.change_points('nothing', tags => (SELECT compressed FROM large));
SELECT * FROM bench.compare(ARRAY(SELECT n::bigint FROM generate_series(1, 10001) AS n), '{1}');
SELECT bench.export(array_fill(1::bigint, ARRAY[5000000]));
SELECT bench_internal.start_part(jsonb_build_object('a', repeat('x', 20971520)));
SELECT bench.run(repeat(',', 1048577));
SELECT bench.run('nothing', driver => repeat('x', 1048577));
SELECT bench.sweep('nothing', '{1}', before => repeat(',', 1048577));
SELECT bench.create_workload('large', 'SELECT 1;', description => repeat('x', 1048577));
-- as large as may be
SELECT bench.run('nothing', transactions => 1, tags => jsonb_build_object('a', repeat('x', 1048560))) > 0 AS runs;

-- Nothing came of any of these but the two good runs
SELECT status, count(*) FROM bench_internal.run_log GROUP BY status ORDER BY status;
SELECT count(*) AS fixtures FROM bench.fixtures;
SELECT to_regclass('bench_data.pk') AS pk, to_regnamespace('pg_mine') AS schema,
       (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\_loading%') AS loading;
-- a worker that has been told to go may take a moment
DO $$
BEGIN
    FOR i IN 1 .. 100 LOOP
        PERFORM pg_stat_clear_snapshot();
        EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
                              WHERE backend_type LIKE 'pgbench_ext%' AND datname = current_database());
        PERFORM pg_sleep(0.05);
    END LOOP;
END $$;
SELECT count(*) AS workers
FROM pg_stat_activity
WHERE backend_type LIKE 'pgbench_ext%' AND datname = current_database();

SELECT bench.drop_workload('nothing');
DROP OWNED BY regress_bench_user, regress_bench_nologin;
DROP ROLE regress_bench_user, regress_bench_nologin;
