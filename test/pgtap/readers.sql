-- Whose sessions read users' tables before runs, and in checks.
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
CREATE ROLE rdr_ann LOGIN;
GRANT EXECUTE ON FUNCTION bench.run, bench.load, bench.check TO rdr_ann;
CREATE SCHEMA rdr_ann AUTHORIZATION rdr_ann;
CREATE FUNCTION rdr_ann.spy() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'is_superuser: %', current_setting('is_superuser') USING ERRCODE = 'XX999';
END $$;
SET SESSION AUTHORIZATION rdr_ann;
SELECT bench.load('pk', 100, options => '{"schema": "rdr_ann"}');
RESET SESSION AUTHORIZATION;
\o
SELECT is(array_agg(condition || ' ' || coalesce(ok::text, detail) ORDER BY condition),
    '{"ids 1 to rows, each once true","index pk_pkey of pk agrees with its table extension amcheck is not installed"}',
    'a superuser''s check of another role''s fixture')
FROM bench.check('pk');
-- What takes the table's place is executed by its owner's session.
SET SESSION AUTHORIZATION rdr_ann;
ALTER TABLE rdr_ann.pk RENAME TO moved;
CREATE VIEW rdr_ann.pk AS SELECT id + rdr_ann.spy() AS id FROM rdr_ann.moved;
RESET SESSION AUTHORIZATION;
SELECT throws_ok('SELECT * FROM bench.check(''pk'')', 'XX999', 'is_superuser: off', 'a view in its place');
SET SESSION AUTHORIZATION rdr_ann;
SELECT throws_ok('SELECT * FROM bench.check(''pk'')', 'XX999', 'is_superuser: off',
    'in the owner''s own check as well');
DROP VIEW rdr_ann.pk;
ALTER TABLE rdr_ann.moved RENAME TO pk;
SELECT is(ok, true, 'the owner''s own check') FROM bench.check('pk') WHERE condition LIKE 'ids%';
RESET SESSION AUTHORIZATION;
-- amcheck, for whose function the caller has the right
CREATE EXTENSION amcheck SCHEMA public;
SELECT is(ok, true, 'an index, by amcheck') FROM bench.check('pk') WHERE condition LIKE 'index%';
SET SESSION AUTHORIZATION rdr_ann;
SELECT is(detail, 'permission denied for function bt_index_check', 'or not, without the right') FROM bench.check('pk')
WHERE condition LIKE 'index%';
RESET SESSION AUTHORIZATION;
DROP EXTENSION amcheck;
-- A check can be canceled, and waits for no lock of its caller.
SET SESSION AUTHORIZATION rdr_ann;
ALTER TABLE rdr_ann.pk RENAME TO moved;
CREATE VIEW rdr_ann.pk AS SELECT id + length(pg_sleep(60)::text) AS id FROM rdr_ann.moved;
RESET SESSION AUTHORIZATION;
SET statement_timeout = '500ms';
SELECT pg_temp.canceled('SELECT * FROM bench.check(''pk'')') AS canceled \gset
RESET statement_timeout;
SELECT ok(:'canceled', 'a check is canceled');
CALL pg_temp.until('SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = ''pgbench_ext check''') \gset
SELECT ok(:'came', 'with its session');
SET SESSION AUTHORIZATION rdr_ann;
DROP VIEW rdr_ann.pk;
ALTER TABLE rdr_ann.moved RENAME TO pk;
RESET SESSION AUTHORIZATION;
BEGIN;
LOCK TABLE rdr_ann.pk;
SELECT throws_ok('SELECT * FROM bench.check(''pk'')', '40P01', NULL, 'nor does it wait for its caller''s lock');
ROLLBACK;

--
-- pgbench's tables
--
\o /dev/null
SET SESSION AUTHORIZATION rdr_ann;
SET search_path = rdr_ann;
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO pgbench_branches SELECT 1, 0;
INSERT INTO pgbench_tellers SELECT t, 1, 0 FROM generate_series(1, 10) AS t;
INSERT INTO pgbench_accounts SELECT a, 1, 0 FROM generate_series(1, 100000) AS a;
CREATE FUNCTION who() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('is_superuser') = 'on' THEN
        RAISE 'a superuser';
    END IF;
    NEW.filler := session_user;
    RETURN NEW;
END $$;
CREATE TRIGGER who BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION who();
RESET search_path;
RESET SESSION AUTHORIZATION;
ALTER ROLE rdr_ann SET search_path = rdr_ann;
SELECT format('ALTER ROLE %I SET search_path = rdr_ann, public', current_user) AS path,
    format('ALTER ROLE %I RESET search_path', current_user) AS no_path \gset
:path;
SELECT bench.run('tpcb', transactions => 5) AS run_id \gset
\o
SELECT is(concat_ws(' ', status, transactions, failed), 'completed 5 0',
    'a superuser''s run on a plain role''s pgbench -i') FROM bench.summary WHERE run_id = :run_id;
SELECT is(array_agg(DISTINCT rtrim(filler)), '{rdr_ann}', 'has that role''s sessions') FROM rdr_ann.pgbench_history;
SELECT is(count(*) FILTER (WHERE ok), 4::bigint, 'whose conditions hold') FROM bench.check('tpcb')
WHERE condition NOT LIKE 'index%';
:no_path;
SELECT * FROM finish();
