--
-- Where a waiting call holds back the xmin horizon: it says so, and the run's row does
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
SELECT bench.create_workload('nothing', 'SELECT 1;');
CREATE VIEW held AS SELECT horizon_held FROM bench.runs ORDER BY run_id DESC LIMIT 1;
CREATE TABLE results (run_id bigint);

-- Not in a statement of its own, whatever is done with the id
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
TABLE held;
SELECT bench.run('nothing', transactions => 1) AS run_id \gset
TABLE held;
SELECT bench.percentile(bench.run('nothing', transactions => 1), 0.5) > 0 AS percentile;
TABLE held;
WITH run AS (SELECT bench.run('nothing', transactions => 1) AS id) SELECT id IS NOT NULL AS ran FROM run;
TABLE held;
SELECT id IS NOT NULL AS ran FROM bench.run('nothing', transactions => 1) AS id;
TABLE held;
SELECT bench.run('nothing', transactions => n) IS NOT NULL AS ran FROM generate_series(1, 2) AS n;
TABLE held;
BEGIN;
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
TABLE held;
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran_again;
SAVEPOINT s;
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran_after_savepoint;
COMMIT;
TABLE held;
-- nor by bench.start
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bench.start('nothing', transactions => 1) AS run_id \gset
COMMIT;
SELECT bench.wait(:run_id);
TABLE held;

-- A snapshot of the transaction's
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
COMMIT;
TABLE held;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
COMMIT;
TABLE held;
SET default_transaction_isolation = 'serializable';
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
RESET default_transaction_isolation;
-- A call that returns rows is a statement of its own, wherever it stands
SELECT bench.ab('nothing', a => '{}', b => '{}', rounds => 2, clients => 1, transactions => 10) \g /dev/null
TABLE held;
-- A transaction that has written
BEGIN;
INSERT INTO results VALUES (1);
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
COMMIT;
TABLE held;
-- An open cursor
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 3);
FETCH c;
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
FETCH c;
COMMIT;
TABLE held;
-- A function around it
DO $$ BEGIN PERFORM bench.run('nothing', transactions => 1); END $$;
TABLE held;
CREATE FUNCTION around() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN bench.run('nothing', transactions => 1);
END $$;
SELECT around() IS NOT NULL AS ran;
TABLE held;
CREATE FUNCTION around_in_sql() RETURNS bigint VOLATILE LANGUAGE sql SET search_path = pg_catalog AS $$
    SELECT bench.run('nothing', transactions => 1)
$$;
SELECT around_in_sql() IS NOT NULL AS ran;
TABLE held;
-- A statement that reads a table, or writes one
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran FROM results;
TABLE held;
SELECT (SELECT count(*) FROM results) AS results, bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
TABLE held;
INSERT INTO results SELECT bench.run('nothing', transactions => 1);
TABLE held;
CREATE TABLE made AS SELECT bench.run('nothing', transactions => 1) AS run_id;
TABLE held;
-- Snapshots that others may use, or that a large object was opened with
SET client_min_messages = error;
BEGIN;
SELECT pg_export_snapshot() IS NOT NULL AS exported;
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
COMMIT;
TABLE held;
SELECT lo_from_bytea(0, 'large') AS large \gset
BEGIN;
SELECT lo_open(:large, 262144) AS fd \gset
SELECT bench.run('nothing', transactions => 1) IS NOT NULL AS ran;
SELECT convert_from(loread(:fd, 5), 'UTF8') AS large;
COMMIT;
TABLE held;
SELECT lo_unlink(:large);
SET client_min_messages = warning;

-- Waiting is no different
SELECT bench.start('nothing', secs => 0.3) AS run_id \gset
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bench.wait(:run_id);
COMMIT;
SELECT horizon_held FROM bench.runs WHERE run_id = :run_id;
SELECT bench.start('nothing', secs => 0.3) AS run_id \gset
SELECT bench.wait(:run_id);
SELECT horizon_held FROM bench.runs WHERE run_id = :run_id;
-- A run that ended after the snapshot was taken has not crashed
SELECT bench.start('nothing', secs => 2) AS run_id \gset
SELECT bench.wait(:run_id, 0.1);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT status FROM bench.runs WHERE run_id = :run_id;
SELECT pg_sleep(3);
SELECT status <> 'crashed' AS alive FROM bench.runs WHERE run_id = :run_id;
SELECT status <> 'crashed' AS alive FROM bench.summary WHERE run_id = :run_id;
SELECT bench.stop(:run_id);
COMMIT;
SELECT status FROM bench.runs WHERE run_id = :run_id;
-- and loading neither
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT bench.load('pk', 10);
COMMIT;
SELECT bench.load('pk', 10);
SELECT bench.unload('pk');

SELECT bench.drop_workload('nothing');
DROP FUNCTION around, around_in_sql;
DROP TABLE results, made;
DROP VIEW held;
DROP SCHEMA bench_data;
