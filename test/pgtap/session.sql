-- What a client's session is: a new session of the calling role, as if it had connected.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
SELECT bench.load('pk', 1000);
CREATE TABLE public.ses_seen (n bigserial, client int, what text, value text);
GRANT ALL ON public.ses_seen, public.ses_seen_n_seq TO PUBLIC;
-- What a workload wrote about itself.
CREATE FUNCTION pg_temp.seen(what text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(DISTINCT coalesce(value, 'NULL'), ',' ORDER BY coalesce(value, 'NULL'))
    FROM public.ses_seen s
    WHERE s.what = $1
$$;
CREATE FUNCTION pg_temp.error_of(run bigint) RETURNS text LANGUAGE sql AS
    'SELECT coalesce(string_agg(sqlstate, '','' ORDER BY sqlstate), ''none'') FROM bench.errors WHERE run_id = $1';
\o

--
-- As others see it
--
SELECT pg_temp.workload('ses_sleep', 'SELECT pg_sleep(10) AS ses_sleep;') \g /dev/null
SELECT bench.start('ses_sleep', 3, transactions => 1) AS run_id \gset
CALL pg_temp.until($$
    SELECT count(*) = 3 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(10) AS ses_sleep' AND state = 'active'
$$) \g /dev/null
SELECT
    is(count(*), 3::bigint, 'each client is in pg_stat_activity'),
    is(array_agg(DISTINCT query), '{SELECT pg_sleep(10) AS ses_sleep}'::text[], 'with the statement that it executes'),
    is(array_agg(DISTINCT state), '{active}'::text[], 'as active'),
    is(array_agg(DISTINCT application_name), '{pgbench_ext}'::text[], 'called pgbench_ext'),
    is(array_agg(DISTINCT usename)::text, format('{%s}', current_user), 'of the calling role'),
    is(array_agg(DISTINCT datname)::text, format('{%s}', current_database()), 'in the calling database'),
    is(array_agg(DISTINCT wait_event_type || '/' || wait_event), '{Timeout/PgSleep}'::text[], 'with its wait event'),
    ok(bool_and(query_start <= clock_timestamp()
        AND xact_start <= query_start
        AND state_change >= query_start
        AND backend_start < query_start),
        'with times in their order'),
    ok(bool_and(query_id IS NOT NULL), 'with a query identifier'),
    ok(bool_and(backend_xmin IS NOT NULL), 'and a snapshot'),
    ok(bool_and(client_addr IS NULL AND leader_pid IS NULL), 'a session of its own, without a client')
FROM pg_stat_activity
WHERE backend_type = 'pgbench_ext client';
SELECT
    is(count(*), 1::bigint, 'one coordinator'),
    is(max(usename)::text, (SELECT rolname FROM pg_roles WHERE oid = 10)::text, 'of the bootstrap superuser'),
    ok(bool_and(backend_xid IS NULL), 'that holds no transaction while it waits'),
    ok(bool_and(backend_xmin IS NULL), 'and no snapshot')
FROM pg_stat_activity
WHERE backend_type = 'pgbench_ext coordinator';
-- what other sessions may do with it is what they may do with a session
SELECT ok(pg_cancel_backend(pid), 'pg_cancel_backend of a client')
FROM pg_stat_activity
WHERE backend_type = 'pgbench_ext client'
ORDER BY pid
LIMIT 1;
CALL pg_temp.until($$SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'$$) \g /dev/null
SELECT is(count(*), 2::bigint, 'ends that one') FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client';
SELECT ok(bench.stop(:run_id), 'bench.stop');
SELECT is(count(*), 0::bigint, 'leaves no client') FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client';
SELECT is(pg_temp.error_of(:run_id), '57014', 'the canceled statement is among the errors');

-- Activity of short statements is seen while they go on
SELECT bench.start('pk_update', 2, secs => 0.8) AS run_id \gset
CALL pg_temp.until($$
    SELECT count(*) > 0
    FROM pg_stat_activity
    WHERE query LIKE 'UPDATE pk SET crt_time%' AND backend_type = 'pgbench_ext client'
$$) \g /dev/null
SELECT ok(count(*) > 0, 'pk_update is seen at work')
FROM pg_stat_activity
WHERE query LIKE 'UPDATE pk SET crt_time%' AND backend_type = 'pgbench_ext client';
SELECT is(bench.wait(:run_id), 'completed', 'and completes');

--
-- Who it is
--
\o /dev/null
SELECT pg_temp.workload('ses_who', $$
    INSERT INTO public.ses_seen (client, what, value)
    SELECT :client_id, k, v
    FROM (VALUES
        ('current_user', current_user::text),
        ('session_user', session_user::text),
        ('database', current_database()::text),
        ('application_name', current_setting('application_name')),
        ('search_path', current_setting('search_path')),
        ('in_recovery', pg_is_in_recovery()::text),
        ('addr', inet_client_addr()::text),
        ('role', current_setting('role')),
        ('is_superuser', current_setting('is_superuser')),
        ('client_encoding', pg_client_encoding()),
        ('work_mem', current_setting('work_mem')),
        ('synchronous_commit', current_setting('synchronous_commit')),
        ('isolation', current_setting('transaction_isolation')),
        ('autocommit', pg_current_xact_id_if_assigned()::text),
        ('pid',
            (pg_backend_pid() = (
                SELECT pid FROM pg_stat_activity WHERE pid = pg_backend_pid() AND backend_type = 'pgbench_ext client'
            ))::text),
        ('timezone', current_setting('TimeZone')),
        ('source', (SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE source = 'client')),
        ('current_query', current_query()),
        ('jit', current_setting('jit'))
    ) AS s (k, v);
$$);
DROP ROLE IF EXISTS ses_alice, ses_group;
CREATE ROLE ses_alice LOGIN;
CREATE ROLE ses_group LOGIN;
GRANT EXECUTE ON FUNCTION bench.run, bench.start TO ses_alice, ses_group;
GRANT ses_group TO ses_alice;
ALTER ROLE ses_alice SET work_mem = '5MB';
ALTER ROLE ses_alice SET search_path = ses_mine, public;
ALTER ROLE ses_alice IN DATABASE postgres SET jit = on;
ALTER DATABASE postgres SET synchronous_commit = remote_write;
ALTER DATABASE postgres SET work_mem = '6MB';
\o
SET work_mem = '99MB';
SET TimeZone = 'Asia/Kolkata';
SELECT bench.run('ses_who', 2, transactions => 1) AS run_id \gset
RESET work_mem;
RESET TimeZone;
SELECT
    is(pg_temp.seen('current_user'), current_user::text, 'current_user is the caller'),
    is(pg_temp.seen('session_user'), current_user::text, 'session_user, too'),
    is(pg_temp.seen('database'), current_database()::text, 'in the caller''s database'),
    is(pg_temp.seen('application_name'), 'pgbench_ext', 'application_name'),
    is(pg_temp.seen('addr'), 'NULL', 'no client address'),
    is(pg_temp.seen('role'), 'none', 'no SET ROLE'),
    is(pg_temp.seen('is_superuser'), 'on', 'with the superuser''s flag'),
    is(pg_temp.seen('client_encoding'), getdatabaseencoding()::text, 'client_encoding is the database''s'),
    is(pg_temp.seen('work_mem'), '6MB', 'ALTER DATABASE SET applies, the caller''s SET does not'),
    is(pg_temp.seen('synchronous_commit'), 'remote_write', 'also for synchronous_commit'),
    is(pg_temp.seen('timezone'), (SELECT setting FROM pg_file_settings WHERE lower(name) = 'timezone' AND applied),
        'the server''s TimeZone'),
    is(pg_temp.seen('source'), 'application_name', 'nothing else is set by the harness'),
    is(pg_temp.seen('pid'), 'true', 'each is its own backend'),
    alike(pg_temp.seen('current_query'), 'INSERT INTO public.ses_seen%', 'current_query() is the statement');
TRUNCATE public.ses_seen;
SET SESSION AUTHORIZATION ses_alice;
SELECT bench.run('ses_who', transactions => 1) \g /dev/null
RESET SESSION AUTHORIZATION;
SELECT
    is(pg_temp.seen('current_user'), 'ses_alice', 'a role''s run is its own: current_user'),
    is(pg_temp.seen('session_user'), 'ses_alice', 'and session_user'),
    is(pg_temp.seen('is_superuser'), 'off', 'without the workload owner''s powers'),
    is(pg_temp.seen('work_mem'), '5MB', 'ALTER ROLE SET goes before ALTER DATABASE SET'),
    is(pg_temp.seen('jit'), 'on', 'ALTER ROLE IN DATABASE SET applies'),
    is(pg_temp.seen('search_path'), 'ses_mine, public', 'its search_path is the role''s, there being no fixture');
TRUNCATE public.ses_seen;
SET SESSION AUTHORIZATION ses_alice;
SET ROLE ses_group;
SELECT bench.run('ses_who', transactions => 1) \g /dev/null
RESET SESSION AUTHORIZATION;
SELECT
    is(pg_temp.seen('current_user'), 'ses_group', 'under SET ROLE it is that role: current_user'),
    is(pg_temp.seen('session_user'), 'ses_group', 'and session_user, so nothing is to be RESET'),
    is(pg_temp.seen('work_mem'), '6MB', 'with that role''s settings');
TRUNCATE public.ses_seen;
SELECT bench.run('ses_who', transactions => 1,
    settings => '{"work_mem": "7MB", "application_name": "ses_named", "synchronous_commit": "off", '
        '"search_path": "pg_catalog, public", "TimeZone": "Asia/Tokyo", "client_encoding": "LATIN1"}') \g /dev/null
SELECT
    is(pg_temp.seen('work_mem'), '7MB', 'settings go before the database''s'),
    is(pg_temp.seen('application_name'), 'ses_named', 'also for application_name'),
    is(pg_temp.seen('synchronous_commit'), 'off', 'synchronous_commit'),
    is(pg_temp.seen('search_path'), 'pg_catalog, public', 'search_path'),
    is(pg_temp.seen('timezone'), 'Asia/Tokyo', 'TimeZone'),
    is(pg_temp.seen('client_encoding'), 'LATIN1', 'client_encoding'),
    is(pg_temp.seen('source'), 'TimeZone application_name client_encoding search_path synchronous_commit work_mem',
        'as connection options would, so that RESET comes back to them');
ALTER DATABASE postgres RESET work_mem;
ALTER DATABASE postgres RESET synchronous_commit;

--
-- search_path with a fixture: its schema, then the role's own
--
SELECT pg_temp.workload('ses_path', $$
    INSERT INTO public.ses_seen (what, value) SELECT 'path', current_setting('search_path');
$$, 'pk') \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_path', transactions => 1) \g /dev/null
SELECT is(pg_temp.seen('path'), 'bench_data, "$user", public', 'the fixture''s schema comes first');
TRUNCATE public.ses_seen;
GRANT USAGE ON SCHEMA bench_data TO ses_alice;
SET SESSION AUTHORIZATION ses_alice;
SELECT bench.run('ses_path', transactions => 1) \g /dev/null
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.seen('path'), 'bench_data, ses_mine, public', 'then the role''s own');
TRUNCATE public.ses_seen;
SELECT bench.run('ses_path', transactions => 1, settings => '{"search_path": "public"}') \g /dev/null
SELECT is(pg_temp.seen('path'), 'public', 'unless settings say otherwise');
TRUNCATE public.ses_seen;
SELECT bench.run('ses_path', transactions => 1, settings => '{"search_path": ""}') \g /dev/null
SELECT is(pg_temp.seen('path'), '', 'nothing included');
SET search_path = pg_catalog;
TRUNCATE public.ses_seen;
SELECT bench.run('ses_path', transactions => 1) \g /dev/null
RESET search_path;
SELECT is(pg_temp.seen('path'), 'bench_data, "$user", public',
    'the caller''s SET search_path does not reach the clients');

--
-- Time
--
SELECT pg_temp.workload('ses_now', $$
    INSERT INTO public.ses_seen (client, what, value)
    SELECT :client_id, 'now', now()::text
    WHERE clock_timestamp() - now() < '1 s' AND now() = statement_timestamp();
$$) \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_now', 2, transactions => 50) \g /dev/null
SELECT is(count(*), 100::bigint, 'now() is the transaction''s begin') FROM public.ses_seen;
SELECT
    ok(count(DISTINCT value) > 10, 'and advances from one to the next'),
    ok(bool_and(value::timestamptz >= before), 'never backwards')
FROM (
    SELECT value, coalesce(lag(value) OVER (PARTITION BY client ORDER BY n), value)::timestamptz AS before
    FROM public.ses_seen
) AS s;
SELECT pg_temp.workload('ses_now', $$BEGIN;
INSERT INTO public.ses_seen (client, what, value) SELECT 1, now()::text, statement_timestamp()::text;
SELECT pg_sleep(0.001);
INSERT INTO public.ses_seen (client, what, value) SELECT 2, now()::text, statement_timestamp()::text;
END;$$) \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_now', transactions => 5) \g /dev/null
SELECT
    is(count(*), 5::bigint, 'in a block now() stays'),
    ok(bool_and(a.value::timestamptz + '1 ms' <= b.value::timestamptz), 'and statement_timestamp() goes on')
FROM public.ses_seen a JOIN public.ses_seen b USING (what)
WHERE a.client = 1 AND b.client = 2;

--
-- Limits of time
--
SELECT bench.run('ses_sleep', transactions => 1, settings => '{"statement_timeout": "50ms"}') AS run_id \gset
SELECT
    is(message, 'canceling statement due to statement timeout', 'statement_timeout ends a statement'),
    is(sqlstate, '57014', 'with its SQLSTATE')
FROM bench.errors
WHERE run_id = :run_id;
SELECT is(status, 'incomplete', 'and its client') FROM bench.runs WHERE run_id = :run_id;
SELECT pg_temp.workload('ses_nap', $$SELECT pg_sleep(0.02);
BEGIN;
SELECT pg_sleep(0.02);
SELECT pg_sleep(0.02);
SELECT pg_sleep(0.02);
END;$$) \g /dev/null
SELECT bench.run('ses_nap', 2, transactions => 3, settings => '{"statement_timeout": "70ms"}') AS run_id \gset
SELECT
    is(status, 'completed', 'it is the statement''s time that counts, not the transaction''s'),
    is(transactions, 6::bigint, 'nor the session''s')
FROM bench.summary
WHERE run_id = :run_id;
SELECT pg_temp.workload('ses_nap', E'BEGIN;\nSELECT pg_sleep(0.01);\nSELECT pg_sleep(10);\nEND;') \g /dev/null
ALTER ROLE ses_alice SET statement_timeout = '60ms';
SET SESSION AUTHORIZATION ses_alice;
SELECT bench.run('ses_nap', transactions => 1) AS run_id \gset
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.error_of(:run_id), '57014', 'inside a block and as the role''s own setting, too');
ALTER ROLE ses_alice RESET statement_timeout;
SELECT pg_temp.workload('ses_lock', $$BEGIN;
SELECT pg_advisory_xact_lock(4711);
SELECT pg_sleep(0.4);
END;$$) \g /dev/null
SELECT bench.run('ses_lock', 2, transactions => 1, settings => '{"lock_timeout": "50ms"}') AS run_id \gset
SELECT
    is(pg_temp.error_of(:run_id), '55P03', 'lock_timeout is honoured'),
    is(transactions, 1::bigint, 'by the one that waits'),
    is(aborted, 1::bigint, 'which ends'),
    is(failed, 0::bigint, 'and is no failed transaction')
FROM bench.summary
WHERE run_id = :run_id;
CREATE TABLE public.ses_rows (id int PRIMARY KEY, n int DEFAULT 0, UNIQUE (n) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO public.ses_rows VALUES (1, 1), (2, 2);
SELECT pg_temp.workload('ses_deadlock', $$BEGIN;
SELECT n FROM public.ses_rows WHERE id = 1 + :client_id::int FOR UPDATE;
SELECT pg_sleep(0.15);
SELECT n FROM public.ses_rows WHERE id = 2 - :client_id::int FOR UPDATE;
END;$$) \g /dev/null
SELECT bench.run('ses_deadlock', 2, transactions => 1, max_tries => 20,
    settings => '{"deadlock_timeout": "20ms"}') AS run_id \gset
SELECT
    is(pg_temp.error_of(:run_id), '40P01', 'a deadlock is found'),
    is(transactions, 2::bigint, 'and tried again'),
    ok(retried >= 1, 'as the summary says'),
    is(status, 'completed', 'to a good end')
FROM bench.summary
WHERE run_id = :run_id;

--
-- Transactions
--
SELECT pg_temp.workload('ses_isolation', $$
    INSERT INTO public.ses_seen (what, value) SELECT 'isolation', current_setting('transaction_isolation');
$$) \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_isolation', transactions => 3,
    settings => '{"default_transaction_isolation": "serializable"}') \g /dev/null
SELECT is(pg_temp.seen('isolation'), 'serializable', 'default_transaction_isolation applies');
SELECT pg_temp.workload('ses_isolation', $$BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO public.ses_seen (what, value) SELECT 'isolation', current_setting('transaction_isolation');
END;$$) \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_isolation', transactions => 3) \g /dev/null
SELECT is(pg_temp.seen('isolation'), 'repeatable read', 'BEGIN with a level, too');
SELECT bench.run('ses_isolation', transactions => 3,
    settings => '{"default_transaction_read_only": "on"}') AS run_id \gset
SELECT is(pg_temp.error_of(:run_id), '25006', 'and default_transaction_read_only');
SELECT pg_temp.workload('ses_two', $$SELECT 1;
INSERT INTO public.ses_seen (what, value) SELECT 'xid', pg_current_xact_id()::text;
INSERT INTO public.ses_seen (what, value) SELECT 'xid', pg_current_xact_id()::text;$$) \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_two', transactions => 4) \g /dev/null
SELECT is(count(DISTINCT value), 8::bigint, 'without a block each statement is a transaction of the server''s')
FROM public.ses_seen;
-- an error that comes with the commit
SELECT pg_temp.workload('ses_deferred', 'UPDATE public.ses_rows SET n = 7;') \g /dev/null
SELECT bench.run('ses_deferred', 2, transactions => 5) AS run_id \gset
SELECT
    is(pg_temp.error_of(:run_id), '23505', 'a deferred constraint fails at the commit'),
    is(aborted, 2::bigint, 'of each client'),
    is(transactions, 0::bigint, 'none goes through')
FROM bench.summary
WHERE run_id = :run_id;
SELECT pg_temp.workload('ses_deferred', E'BEGIN;\nUPDATE public.ses_rows SET n = 7;\nEND;') \g /dev/null
SELECT bench.run('ses_deferred', 2, transactions => 5) AS run_id \gset
SELECT
    is(pg_temp.error_of(:run_id), '23505', 'also at the END of a block'),
    is(aborted, 2::bigint, 'of each client')
FROM bench.summary
WHERE run_id = :run_id;
SELECT is(array_agg(n ORDER BY id), '{1,2}'::int[], 'and changes nothing') FROM public.ses_rows;

--
-- One session from the first transaction to the last
--
SELECT pg_temp.workload('ses_state', $$SELECT set_config('ses.count',
    (coalesce(nullif(current_setting('ses.count', true), ''), '0')::int + 1)::text, false);
INSERT INTO public.ses_seen (client, what, value)
VALUES (:client_id, pg_backend_pid()::text, current_setting('ses.count'));$$) \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_state', 2, transactions => 10) \g /dev/null
SELECT
    is(count(DISTINCT what), 2::bigint, 'two clients, two backends'),
    is(max(value::int), 10, 'whose settings last'),
    is(count(*), 20::bigint, 'for all of their transactions')
FROM public.ses_seen;
SELECT pg_temp.workload('ses_temp', $$BEGIN;
CREATE TEMP TABLE ses_tmp ON COMMIT DROP AS SELECT 1 AS a;
END;
CREATE TEMP TABLE IF NOT EXISTS ses_kept (a int);
DISCARD PLANS;$$) \g /dev/null
SELECT bench.run('ses_temp', 2, transactions => 5) AS run_id \gset
SELECT
    is(status, 'completed', 'temporary tables come and go'),
    is(transactions, 10::bigint, 'in every transaction')
FROM bench.summary
WHERE run_id = :run_id;
CALL pg_temp.until($$SELECT count(*) = 0 FROM pg_class WHERE relname = 'ses_kept'$$) \g /dev/null
SELECT is(count(*), 0::bigint, 'and are gone with the session') FROM pg_class WHERE relname IN ('ses_tmp', 'ses_kept');

--
-- Variables
--
SELECT pg_temp.workload('ses_variables', $$
    INSERT INTO public.ses_seen (what, value)
    VALUES
        ('client_id', :client_id::text),
        ('random_seed', :random_seed::text),
        ('rows', :rows::text),
        ('scale', :scale::text),
        ('own', :own::text);
$$, 'pk') \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_variables', 3, transactions => 1, seed => 99, variables => '{"own": "it''s"}') \g /dev/null
SELECT
    is(pg_temp.seen('client_id'), '0,1,2', 'client_id'),
    is(pg_temp.seen('random_seed'), '99', 'random_seed'),
    is(pg_temp.seen('rows'), '1000', 'rows'),
    is(pg_temp.seen('scale'), '1', 'scale'),
    is(pg_temp.seen('own'), 'it''s', 'one of one''s own');
TRUNCATE public.ses_seen;
SELECT bench.run('ses_variables', transactions => 1, variables => '{"own": null, "scale": 7, "rows": 5}') \g /dev/null
SELECT
    is(pg_temp.seen('rows'), '5', 'variables go before the automatic ones: rows'),
    is(pg_temp.seen('scale'), '7', 'scale'),
    is(pg_temp.seen('own'), 'NULL', 'null is NULL');
SELECT pg_temp.workload('ses_types', $$\set i 5
\set j :i
\set k :i
\set d 0.5
\set e :d
\set t :i
INSERT INTO public.ses_seen (what, value)
SELECT 'types', concat_ws(' ', :i::int2, :j::int4, :k::int8, :d::float8, :e::numeric, :u::date, :b::bool, :t::text);$$)
    \g /dev/null
TRUNCATE public.ses_seen;
SELECT bench.run('ses_types', transactions => 1, variables => '{"u": "2020-02-29", "b": true}') \g /dev/null
SELECT is(pg_temp.seen('types'), '5 5 5 0.5 0.5 2020-02-29 t 5', 'values become what the statement wants');
-- each mention of a variable is a parameter of its own, as pgbench has it
SELECT pg_temp.workload('ses_types', $$
    INSERT INTO public.ses_seen (client, what, value) VALUES (:client_id, 'twice', :client_id::text);
$$) \g /dev/null
SELECT lives_ok($$SELECT bench.run('ses_types', transactions => 1)$$,
    'a variable may be mentioned twice, with different types');
SELECT pg_temp.workload('ses_types', E'SELECT :t::date;') \g /dev/null
SELECT bench.run('ses_types', transactions => 1, variables => '{"t": "no date"}') AS run_id \gset
SELECT is(pg_temp.error_of(:run_id), '22007', 'or are refused as the server does');
SELECT pg_temp.workload('ses_types', E'\\set big 3000000000\nSELECT :big::int4;') \g /dev/null
SELECT bench.run('ses_types', transactions => 1) AS run_id \gset
SELECT is(pg_temp.error_of(:run_id), '22003', 'out of range');

--
-- Results: turned into text, or not looked at
--
CREATE TABLE public.ses_toast (id int PRIMARY KEY, t text);
ALTER TABLE public.ses_toast ALTER t SET STORAGE EXTERNAL;
INSERT INTO public.ses_toast SELECT g, repeat(md5(g::text), 600) FROM generate_series(1, 20) AS g;
-- Ten pieces of 2 kB each, on three pages or more.
SELECT pg_temp.workload('ses_toast', $$\set id random(1, 20)
SELECT id, t FROM public.ses_toast WHERE id = :id;$$) \g /dev/null
CREATE FUNCTION pg_temp.toast_blocks() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_stat_clear_snapshot();
    RETURN (
        SELECT toast_blks_hit + toast_blks_read FROM pg_statio_user_tables WHERE relid = 'public.ses_toast'::regclass
    );
END $$;
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT pg_temp.toast_blocks() AS before, pg_stat_statements_reset() \gset
SELECT bench.run('ses_toast', 2, transactions => 20, seed => 1, results => 'serialize') AS run_id \gset
CALL pg_temp.until(format('SELECT pg_temp.toast_blocks() - %s >= 120', :before)) \g /dev/null
SELECT pg_temp.toast_blocks() AS between \gset
SELECT is(transactions, 40::bigint, 'a column of 19 kB is read') FROM bench.summary WHERE run_id = :run_id;
SELECT is(sum(rows), 40::numeric, 'with its rows counted')
FROM pg_stat_statements
WHERE query LIKE 'SELECT id, t FROM public.ses_toast%';
SELECT bench.run('ses_toast', 2, transactions => 20, seed => 1, results => 'discard') AS run_id \gset
SELECT pg_temp.toast_blocks() AS after \gset
SELECT is(transactions, 40::bigint, 'in both modes') FROM bench.summary WHERE run_id = :run_id;
SELECT is(sum(rows), 80::numeric, 'the same rows')
FROM pg_stat_statements
WHERE query LIKE 'SELECT id, t FROM public.ses_toast%';
SELECT
    cmp_ok(:between::bigint - :before, '>=', 40 * 3::bigint, 'serialize fetches the column from its TOAST table'),
    is(:after::bigint - :between, 0::bigint, 'discard does not');
SELECT is(array_agg(results ORDER BY run_id), '{serialize,discard}'::text[], 'the run says which')
FROM (SELECT * FROM bench.runs WHERE workload = 'ses_toast' ORDER BY run_id DESC LIMIT 2) AS r;
-- output functions run, and their errors are the statement's
CREATE FUNCTION public.ses_out(int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'x' || 1 / $1; END $$;
SELECT pg_temp.workload('ses_output', $$
    SELECT
        d,
        '{1,2}'::int[],
        '{"a": 1}'::jsonb,
        now(),
        1.5::numeric,
        NULL::text,
        '(1,2)'::point,
        row(1, 'x'),
        'a'::"char",
        decode('00ff', 'hex')
    FROM (SELECT current_date AS d) AS s;
$$) \g /dev/null
SELECT bench.run('ses_output', 2, transactions => 20) AS run_id \gset
SELECT is(transactions, 40::bigint, 'values of all kinds are turned into text')
FROM bench.summary
WHERE run_id = :run_id;
SELECT pg_temp.workload('ses_output', $$SHOW work_mem;
EXPLAIN SELECT 1;
VALUES (1), (2);
TABLE public.ses_rows;
SELECT generate_series(1, 1000);
SELECT;
SELECT FROM public.ses_rows;
UPDATE public.ses_rows SET n = n RETURNING *;
FETCH ALL FROM x;$$) \g /dev/null
SELECT pg_temp.workload('ses_output', $$SHOW work_mem;
EXPLAIN SELECT 1;
VALUES (1), (2);
TABLE public.ses_rows;
SELECT generate_series(1, 1000);
SELECT;
SELECT FROM public.ses_rows;
DELETE FROM public.ses_rows WHERE id < 0 RETURNING *;
BEGIN;
DECLARE x CURSOR FOR SELECT generate_series(1, 10);
FETCH 5 FROM x;
CLOSE x;
END;$$) \g /dev/null
SELECT bench.run('ses_output', 2, transactions => 5) AS run_id \gset
SELECT is(transactions, 10::bigint, 'and so are rows of all kinds of statements')
FROM bench.summary
WHERE run_id = :run_id;
SELECT is(pg_temp.error_of(:run_id), 'none', 'without an error');
SELECT bench.run('ses_output', 2, transactions => 5, results => 'discard') AS run_id \gset
SELECT is(transactions, 10::bigint, 'discarded, too') FROM bench.summary WHERE run_id = :run_id;

--
-- Libraries of a session, and what they log
--
LOAD 'auto_explain';
SELECT bench.run('pk_select', transactions => 1, settings => '{"auto_explain.log_min_duration": 0}') AS run_id \gset
SELECT is(status, 'completed', 'a parameter of a library that the caller has loaded is accepted')
FROM bench.runs
WHERE run_id = :run_id;
SELECT is(settings, '{"auto_explain.log_min_duration": "0"}', 'and recorded') FROM bench.runs WHERE run_id = :run_id;
SELECT throws_ok($$
    SELECT bench.run('pk_select', transactions => 1, settings => '{"auto_explain.log_min_duration": "never"}')
$$, '22023', NULL, 'its values are checked');
-- What the server's log says from here on.
SELECT
    set_config('ses.log', current_setting('data_directory') || '/../log', false),
    set_config('ses.log_start', (pg_stat_file(current_setting('data_directory') || '/../log')).size::text,
        false) \g /dev/null
CREATE FUNCTION pg_temp.logged(pattern text) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*)
    FROM regexp_matches(pg_read_file(current_setting('ses.log'), current_setting('ses.log_start')::bigint, 100000000),
        pattern, 'g')
$$;
-- Index scans of a statement that begins with a text, as auto_explain logs them: from PostgreSQL 16 on with parameters.
CREATE FUNCTION pg_temp.explained(statement text, condition text) RETURNS bigint LANGUAGE sql AS $$
    SELECT pg_temp.logged(format('Query Text: %s[^\n]*\n(\s+Query Parameters:[^\n]*\n)?\s+Index Scan[^\n]*\n'
        '\s+Index Cond: \(id = %s\)', statement, condition))
$$;
SELECT pg_temp.workload('ses_explain', E'\\set id random(1, :rows)\nSELECT ''ses_auto'', info FROM pk WHERE id = :id;',
    'pk') \g /dev/null
SELECT bench.run('ses_explain', transactions => 10,
    settings => '{"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": 0}') \g /dev/null
SELECT
    is(pg_temp.logged('Query Text: SELECT ''ses_auto'''), 10::bigint,
        'session_preload_libraries are loaded, and see each statement'),
    is(pg_temp.explained('SELECT ''ses_auto''', '\d+'),
        5::bigint, 'five custom plans'),
    is(pg_temp.explained('SELECT ''ses_auto''', '\$1'),
        5::bigint, 'then the generic one');
ALTER DATABASE postgres SET session_preload_libraries = 'auto_explain';
ALTER DATABASE postgres SET auto_explain.log_min_duration = 0;
SELECT pg_temp.workload('ses_explain', $$\set id random(1, :rows)
SELECT 'ses_generic', info FROM pk WHERE id = :id;$$, 'pk') \g /dev/null
SELECT bench.run('ses_explain', transactions => 10,
    settings => '{"plan_cache_mode": "force_generic_plan"}') \g /dev/null
SELECT is(pg_temp.explained('SELECT ''ses_generic''', '\$1'),
    10::bigint, 'plan_cache_mode: all generic, and the database''s libraries');
SELECT pg_temp.workload('ses_explain', $$\set id random(1, :rows)
SELECT 'ses_custom', info FROM pk WHERE id = :id;$$, 'pk') \g /dev/null
SELECT bench.run('ses_explain', transactions => 10, settings => '{"plan_cache_mode": "force_custom_plan"}') \g /dev/null
SELECT is(pg_temp.explained('SELECT ''ses_custom''', '\d+'),
    10::bigint, 'all custom');
SELECT pg_temp.workload('ses_explain', E'SELECT ''ses_parallel'', count(info) FROM pk;', 'pk') \g /dev/null
SELECT bench.run('ses_explain', transactions => 2,
    settings => '{"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, '
        '"max_parallel_workers_per_gather": 2, "auto_explain.log_analyze": true}') \g /dev/null
SELECT is(pg_temp.logged('Query Text: SELECT ''ses_parallel''[^\n]*\n(\s[^\n]*\n)*?\s+Workers Launched: [12]'),
    2::bigint, 'parallel plans are used');
ALTER DATABASE postgres RESET session_preload_libraries;
ALTER DATABASE postgres RESET auto_explain.log_min_duration;

--
-- A change of a table while it is read: plans are made anew
--
SELECT pg_temp.workload('ses_changed', 'SELECT * FROM public.ses_rows;') \g /dev/null
SELECT bench.start('ses_changed', 2, secs => 0.6) AS run_id \gset
CALL pg_temp.until(format('SELECT EXISTS (SELECT FROM bench.runs WHERE run_id = %s AND status = ''running'')',
    :run_id)) \g /dev/null
ALTER TABLE public.ses_rows ADD COLUMN added int;
SELECT bench.wait(:run_id) \g /dev/null
SELECT is(pg_temp.error_of(:run_id), '0A000',
    'a result that changes its shape is what a prepared statement cannot have') ;
SELECT bench.start('pk_update', 2, secs => 0.6) AS run_id \gset
CALL pg_temp.until(format('SELECT EXISTS (SELECT FROM bench.runs WHERE run_id = %s AND status = ''running'')',
    :run_id)) \g /dev/null
CREATE INDEX ses_index ON bench_data.pk (crt_time);
SELECT bench.wait(:run_id) \g /dev/null
SELECT is(status, 'completed', 'a new index is no disturbance') FROM bench.runs WHERE run_id = :run_id;

\o /dev/null
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'ses\_%') AS w;
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
\o
DROP TABLE public.ses_seen, public.ses_rows, public.ses_toast;
DROP FUNCTION public.ses_out;
DROP OWNED BY ses_alice, ses_group;
DROP ROLE ses_alice, ses_group;
DROP SCHEMA IF EXISTS bench_data;
SELECT * FROM finish();
