--
-- Fixture tpcb: the tables of pgbench -i
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;

SELECT bench.load('tpcb');
\d bench_data.pgbench_branches
\d bench_data.pgbench_tellers
\d bench_data.pgbench_accounts
\d bench_data.pgbench_history
SELECT relname, reloptions FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r'
ORDER BY relname COLLATE "C";
SELECT count(*), min(aid), max(aid), count(DISTINCT aid) AS aids, min(bid), max(bid), sum(abs(abalance)) AS balances,
       count(filler) AS fillers, min(octet_length(filler)) AS length, string_agg(DISTINCT filler::text, '|') AS trimmed
FROM bench_data.pgbench_accounts;
SELECT * FROM bench_data.pgbench_branches;
SELECT
    count(*),
    min(tid),
    max(tid),
    count(DISTINCT tid) AS tids,
    min(bid),
    max(bid),
    sum(abs(tbalance)) AS balances,
    count(filler) AS fillers
FROM bench_data.pgbench_tellers;
SELECT count(*) FROM bench_data.pgbench_history;
SELECT name, schema, relations, rows, options, rows_per_sec > 0 AS rate FROM bench.fixtures;

-- How many: rows are accounts, 100,000 for each step of the scale
SELECT bench.load('tpcb', options => '{"scale": 2}');
SELECT
    (SELECT count(*) FROM bench_data.pgbench_branches) AS branches,
    (SELECT count(*) FROM bench_data.pgbench_tellers) AS tellers,
    (SELECT count(*) FROM bench_data.pgbench_accounts) AS accounts,
    (SELECT max(bid) FROM bench_data.pgbench_tellers) AS of_tellers,
    (SELECT count(*) FROM bench_data.pgbench_accounts WHERE bid <> (aid - 1) / 100000 + 1) AS elsewhere;
SELECT bench.load('tpcb', 200000, jobs => 3);
SELECT bench.run('tpcb', transactions => 50, seed => 1) IS NOT NULL AS ran;
SELECT min(aid) <= 100000 AND max(aid) > 100000 AS aids, min(bid), max(bid), min(tid) <= 10 AND max(tid) > 10 AS tids
FROM bench_data.pgbench_history;
-- by branch: an account and a teller of the branch
SELECT bench.load('tpcb', 200000);
SELECT bench.run('tpcb_branch', transactions => 50, seed => 1) IS NOT NULL AS ran;
SELECT
    count(*),
    bool_and(bid = (aid - 1) / 100000 + 1) AS accounts,
    bool_and(bid = (tid - 1) / 10 + 1) AS tellers,
    count(DISTINCT bid) AS branches,
    sum(delta) = (SELECT sum(abalance) FROM bench_data.pgbench_accounts)
        AND sum(delta) = (SELECT sum(tbalance) FROM bench_data.pgbench_tellers)
        AND sum(delta) = (SELECT sum(bbalance) FROM bench_data.pgbench_branches) AS balanced
FROM bench_data.pgbench_history;
SELECT bench.load('tpcb', 100000, options => '{"scale": 1}');
SELECT rows, options FROM bench.fixtures;
SELECT bench.load('tpcb', 200000, options => '{"scale": 1}');
SELECT bench.load('tpcb', 0, options => '{"scale": 1}');
SELECT bench.load('tpcb', 1000);
SELECT bench.load('tpcb', 10);
SELECT bench.load('tpcb', 100001);
-- pgbench's names of its scripts
SELECT bench.run('tpcb-like,simple-update@2,select-only', transactions => 20, seed => 1) AS run_id \gset
SELECT script, workload, weight, fixture FROM bench.scripts WHERE run_id = :run_id ORDER BY script;
SELECT status, transactions FROM bench.summary WHERE run_id = :run_id;
SELECT bench.load('tpcb', -100000);
SELECT bench.load('tpcb', 21474836500000);
SELECT bench.load('tpcb', options => '{"scale": 0}');
SELECT bench.load('tpcb', options => '{"scale": -1}');
SELECT bench.load('tpcb', options => '{"scale": 1.5}');
SELECT bench.load('tpcb', options => '{"scale": "1"}');
SELECT bench.load('tpcb', options => '{"scale": null}');
SELECT bench.load('tpcb', options => '{"scale": 214748365}');
SELECT bench.load('tpcb', options => '{"scale": 9223372036854775807}');

-- Other options
SELECT bench.load('tpcb', options => '{"partitions": -1}');
SELECT bench.load('tpcb', options => '{"partitions": 10001}');
SELECT bench.load('tpcb', options => '{"partitions": "3"}');
SELECT bench.load('tpcb', options => '{"partitions": 3, "partition_method": "list"}');
SELECT bench.load('tpcb', options => '{"partitions": 3, "partition_method": 1}');
SELECT bench.load('tpcb', options => '{"partition_method": "hash"}');
SELECT bench.load('tpcb', options => '{"partitions": 0, "partition_method": "range"}');
SELECT bench.load('tpcb', options => '{"foreign_keys": "yes"}');
SELECT bench.load('tpcb', options => '{"fillfactor": 5}');
SELECT bench.load('tpcb', options => '{"index_tablespace": 1}');
SELECT bench.load('tpcb', options => '{"colour": "red"}');
SELECT bench.load('tpcb', options => '{"info": "short"}');
SELECT bench.load('pk', 10, options => '{"scale": 1}');
-- nothing of it has touched the fixture
SELECT rows, (SELECT count(*) FROM bench_data.pgbench_accounts) FROM bench.fixtures;

-- Each load replaces all of the one before: partitions, foreign keys, and what was added to them
SELECT bench.load('tpcb', options => '{"partitions": 3, "fillfactor": 80, "foreign_keys": true}');
\d bench_data.pgbench_history
\d bench_data.pgbench_accounts
\d bench_data.pgbench_accounts_3
SELECT relname, reloptions, pg_get_expr(relpartbound, oid) AS bounds FROM pg_class
WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r' ORDER BY relname COLLATE "C";
INSERT INTO bench_data.pgbench_history (tid, bid, aid) VALUES (1, 1, 100001);
CREATE INDEX ON bench_data.pgbench_accounts (bid);
SELECT bench.load('tpcb', options => '{"partitions": 2, "partition_method": "hash", "unlogged": true}');
-- from PostgreSQL 18 on, where partitioned tables cannot be unlogged, the partitions alone are, as with pgbench
SELECT
    relname,
    relkind,
    relpersistence = CASE WHEN relispartition OR current_setting('server_version_num')::integer < 180000 THEN 'u'
        ELSE 'p' END AS persistence,
    reloptions,
    pg_get_expr(relpartbound, oid) AS bounds
FROM pg_class
WHERE relnamespace = 'bench_data'::regnamespace ORDER BY relname COLLATE "C";
SELECT conrelid::regclass, conname, contype
FROM pg_constraint
WHERE connamespace = 'bench_data'::regnamespace AND contype <> 'n'
ORDER BY conrelid::regclass::text, conname;
SELECT relations FROM bench.fixtures;
SELECT bench.load('tpcb', 0, options => '{"partitions": 3}');
SELECT relname, pg_get_expr(relpartbound, oid) AS bounds FROM pg_class
WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r' ORDER BY relname COLLATE "C";
SELECT
    (SELECT count(*) FROM bench_data.pgbench_accounts) AS accounts,
    (SELECT count(*) FROM bench_data.pgbench_branches) AS branches,
    (SELECT count(*) FROM bench_data.pgbench_tellers) AS tellers;
SELECT rows, rows_per_sec FROM bench.fixtures;
SELECT bench.load('tpcb');
SELECT relname FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace ORDER BY relname COLLATE "C";
-- names left from the loading: none
SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench\_loading%';
SELECT obj_description(oid, 'pg_class')
FROM pg_class
WHERE relnamespace = 'bench_data'::regnamespace AND obj_description(oid, 'pg_class') <> '';
-- a run moves the same amounts everywhere
SET client_min_messages = error;
SELECT count(bench.run('tpcb', clients => 2, transactions => 20));
SELECT count(*), sum(delta) = (SELECT sum(abalance) FROM bench_data.pgbench_accounts) AS accounts,
       sum(delta) = (SELECT sum(tbalance) FROM bench_data.pgbench_tellers) AS tellers,
       sum(delta) = (SELECT sum(bbalance) FROM bench_data.pgbench_branches) AS branches
FROM bench_data.pgbench_history;
SELECT count(bench.run('tpcb_simple_update', transactions => 10)), count(bench.run('tpcb_select', transactions => 10));
SELECT count(*) FROM bench_data.pgbench_history;
SET client_min_messages = warning;

-- A load that fails in the end leaves what was there
SELECT bench.load('tpcb', 0, options => '{"index_tablespace": "nonesuch"}');
SELECT bench.load('tpcb', 0, options => '{"partitions": 2, "tablespace": "nonesuch"}');
SELECT count(*) FROM bench_data.pgbench_history;
SELECT rows, options FROM bench.fixtures;
SELECT relname FROM pg_class WHERE relname LIKE 'bench\_loading%';
-- what depends on it keeps it whole
CREATE VIEW of_tellers AS SELECT count(*) FROM bench_data.pgbench_tellers;
SELECT bench.unload('tpcb');
SELECT bench.load('tpcb', 0);
SELECT * FROM of_tellers;
SELECT count(*) FROM bench_data.pgbench_history;
DROP VIEW of_tellers;
-- tables dropped by hand
DROP TABLE bench_data.pgbench_history, bench_data.pgbench_accounts;
SELECT bench.load('tpcb', 0);
SELECT relations FROM bench.fixtures;
DROP TABLE bench_data.pgbench_tellers;
SELECT bench.unload('tpcb');
SELECT relname FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace;
SELECT count(*) AS registered FROM bench.fixtures;
-- foreign keys are no obstacle, and unload is part of the transaction
SELECT bench.load('tpcb', 0, options => '{"foreign_keys": true, "partitions": 2}');
BEGIN;
SELECT bench.unload('tpcb');
SELECT relname FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace;
ROLLBACK;
SELECT count(*) FROM bench_data.pgbench_history;
-- the caller's own locks: no endless wait, on a partition as little as on a table
\set VERBOSITY sqlstate
BEGIN;
SELECT count(*) FROM bench_data.pgbench_accounts_2;
SELECT bench.load('tpcb', 0);
ROLLBACK;
\set VERBOSITY default
SELECT bench.unload('tpcb');
SELECT relname FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace;

-- Relations in the way that are no fixture's stay as they are
CREATE TABLE bench_data.pgbench_history (precious int);
SELECT bench.load('tpcb', 0);
ALTER TABLE bench_data.pgbench_history RENAME TO pgbench_tellers;
SELECT bench.load('tpcb', 0);
ALTER TABLE bench_data.pgbench_tellers RENAME TO pgbench_accounts_2;
SELECT bench.load('tpcb', 0, options => '{"partitions": 2}');
SELECT bench.load('tpcb', 0);
SELECT bench.load('tpcb', 0, options => '{"partitions": 2}');
SELECT bench.unload('tpcb');
SELECT * FROM bench_data.pgbench_accounts_2;
ALTER TABLE bench_data.pgbench_accounts_2 RENAME TO pgbench_branches_pkey;
SELECT bench.load('tpcb', 0);
DROP TABLE bench_data.pgbench_branches_pkey;
SELECT relname FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace;

-- Whoever may create tables in the schema can load
CREATE ROLE tpcb_alice;
ALTER ROLE tpcb_alice LOGIN;
CREATE SCHEMA "a%t %w's";
GRANT USAGE, CREATE ON SCHEMA "a%t %w's" TO tpcb_alice;
GRANT EXECUTE ON FUNCTION bench.load, bench.unload, bench.run TO tpcb_alice;
SET ROLE tpcb_alice;
SELECT bench.load('tpcb', options => '{"schema": "a%t %w''s", "partitions": 2, "foreign_keys": true}');
SELECT bench.load('tpcb',
    options => '{"schema": "a%t %w''s", "partitions": 2, "partition_method": "hash", "foreign_keys": true}');
SELECT relname, relowner::regrole
FROM pg_class
WHERE relnamespace = '"a%t %w''s"'::regnamespace
ORDER BY relname COLLATE "C";
RESET ROLE;
SET ROLE tpcb_alice;
SELECT bench.unload('tpcb');
RESET ROLE;
SELECT relname FROM pg_class WHERE relnamespace = '"a%t %w''s"'::regnamespace;
DROP SCHEMA "a%t %w's";
DROP OWNED BY tpcb_alice;
DROP ROLE tpcb_alice;

-- The tablespace of indexes, of the other fixtures as well
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE tpcb_indexes LOCATION '';
SELECT bench.load(f, 0, options => '{"index_tablespace": "tpcb_indexes"}')
FROM unnest('{pk, log, wide, tpcb}'::text[]) AS f;
SELECT c.relname, t.spcname FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
WHERE relnamespace = 'bench_data'::regnamespace ORDER BY relname COLLATE "C";
SELECT bench.unload(name) FROM bench.fixtures;
DROP TABLESPACE tpcb_indexes;
SELECT count(*) AS registered FROM bench.fixtures;
DROP SCHEMA bench_data;
