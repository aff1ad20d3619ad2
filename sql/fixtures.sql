--
-- bench.load and bench.unload: what the tables are and what is in them
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
SET bytea_output = hex;

-- pk
SELECT bench.load('pk', 1000);
\d bench_data.pk
SELECT
    count(*),
    min(id),
    max(id),
    count(DISTINCT id) AS ids,
    count(info) AS infos,
    min(length(info)) AS shortest,
    max(length(info)) AS longest,
    count(DISTINCT info) AS different,
    bool_and(info ~ '^[0-9a-f]{32}$') AS hexadecimal,
    count(crt_time) AS times,
    bool_and(age(clock_timestamp() AT TIME ZONE 'UTC', crt_time) < '1 day') AS recent
FROM bench_data.pk;
SELECT
    name,
    owner = current_user AS mine,
    schema,
    relations,
    rows,
    options,
    loaded_at <= clock_timestamp() AS loaded,
    load_secs > 0 AS secs,
    rows_per_sec BETWEEN 0.99 * rows / load_secs AND 1.01 * rows / load_secs AS rate,
    table_bytes = pg_table_size('bench_data.pk') AS table_bytes,
    index_bytes = pg_indexes_size('bench_data.pk') AS index_bytes
FROM bench.fixtures;
-- vacuumed and analyzed
SELECT relname, reltuples, relallvisible = relpages AS all_visible FROM pg_class WHERE oid = 'bench_data.pk'::regclass;
-- nothing else in the schema, and nothing called after the loading
SELECT relname, relkind, relpersistence, reloptions FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace
ORDER BY relname;
-- (NOT NULL, which \d has shown, is a constraint from PostgreSQL 18 on)
SELECT conname, contype FROM pg_constraint WHERE connamespace = 'bench_data'::regnamespace AND contype <> 'n'
ORDER BY conname;

-- log
SELECT bench.load('log', 1000);
\d bench_data.log
SELECT
    count(*),
    min(id),
    max(id),
    count(DISTINCT id) AS ids,
    array_agg(DISTINCT info) AS infos,
    count(crt_time) AS times
FROM bench_data.log;
SELECT pg_get_serial_sequence('bench_data.log', 'id') AS sequence;
\d+ bench_data.log_id_seq
INSERT INTO bench_data.log (info) VALUES ('next') RETURNING id > 1000 AS beyond;

-- wide
SELECT bench.load('wide', 1000);
\d bench_data.wide
SELECT count(*), min(id), count(DISTINCT id) AS ids, sum(c1 + c20) AS sum, count(crt_time) AS times
FROM bench_data.wide;
SELECT pg_get_serial_sequence('bench_data.wide', 'id') AS sequence;
\d+ bench_data.wide_id_seq
SELECT amname, count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE indrelid = 'bench_data.wide'::regclass GROUP BY amname;
SELECT reloptions FROM pg_class WHERE oid = 'bench_data.wide'::regclass;

SELECT name, rows, relations FROM bench.fixtures ORDER BY name;
-- nothing left from the loading
SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench\_loading%';
SELECT load_id FROM bench_internal.load_log WHERE status = 'running';

-- Empty ones: the defaults of log and wide, and 0 rows of pk
SELECT bench.load('log'), bench.load('wide');
SELECT bench.load('pk', 0);
SELECT (SELECT count(*) FROM bench_data.pk) AS pk, (SELECT count(*) FROM bench_data.log) AS log,
       (SELECT count(*) FROM bench_data.wide) AS wide;
SELECT name, rows, rows_per_sec, load_secs >= 0 AS secs, table_bytes >= 0 AS table_bytes, index_bytes > 0 AS index_bytes
FROM bench.fixtures ORDER BY name;
INSERT INTO bench_data.log (info) VALUES ('first') RETURNING id, info, crt_time = now() AS now;
INSERT INTO bench_data.wide (crt_time) VALUES (now()) RETURNING id, c1, c20;
-- ids out of nothing: an error, not an endless loop
SET client_min_messages = error;
SELECT bench.run('pk_select', transactions => 1) IS NOT NULL AS ran;
SET client_min_messages = warning;

-- A second load replaces the first, table and all
SELECT bench.load('pk', 500) AS rows, 'bench_data.pk'::regclass::oid AS first_oid \gset
SELECT :rows AS rows;
SELECT bench.load('pk', 700, options => '{"fillfactor": 50}');
SELECT 'bench_data.pk'::regclass::oid <> :first_oid AS replaced, count(*), max(id) FROM bench_data.pk;
SELECT name, rows, options, relations FROM bench.fixtures WHERE name = 'pk';
SELECT count(*) FROM pg_class WHERE oid = :first_oid;
-- one that fails leaves what was there
SELECT bench.load('pk', 100, options => '{"tablespace": "nonesuch"}');
SELECT count(*) FROM bench_data.pk;
SELECT rows, options FROM bench.fixtures WHERE name = 'pk';

-- One right after the other
SET client_min_messages = error;
SELECT count(bench.load('log', 10)) FROM generate_series(1, 30);
SET client_min_messages = warning;
-- Several loaders share the rows: each id once
SELECT bench.load('pk', 1001, jobs => 4);
SELECT count(*), min(id), max(id), count(DISTINCT id) AS ids FROM bench_data.pk;
SELECT bench.load('pk', 2, jobs => 5);
SELECT count(*), min(id), max(id) FROM bench_data.pk;
SELECT bench.load('log', 1000, jobs => 3);
SELECT count(*), count(DISTINCT id) AS ids FROM bench_data.log;

-- Options
SELECT bench.load('pk', 100, options => '{"unlogged": true}');
SELECT relpersistence, reloptions FROM pg_class WHERE oid = 'bench_data.pk'::regclass;
SELECT bench.load('pk', 100, options => '{"unlogged": false, "fillfactor": 70, "tablespace": "pg_default"}');
SELECT relpersistence, reloptions, reltablespace FROM pg_class WHERE oid = 'bench_data.pk'::regclass;
SELECT bench.load('log', 10, options => '{"unlogged": true, "fillfactor": 90}');
SELECT relname, relpersistence, reloptions FROM pg_class
WHERE relnamespace = 'bench_data'::regnamespace AND relname LIKE 'log%' ORDER BY relname;
SELECT bench.load('wide', 10, options => '{"fillfactor": 80}');
SELECT reloptions FROM pg_class WHERE oid = 'bench_data.wide'::regclass;
-- another schema is another fixture
SELECT bench.load('pk', 10, options => '{"schema": "Other, \"Schema\"''s"}');
SELECT name, schema, relations, rows FROM bench.fixtures WHERE name = 'pk' ORDER BY rows;
SELECT count(*) FROM "Other, ""Schema""'s".pk;
SELECT bench.load('log', 10, options => '{"schema": "Other, \"Schema\"''s"}');
SELECT pg_get_serial_sequence('"Other, ""Schema""''s".log', 'id') AS sequence;
-- a run works on the one loaded last
CREATE TABLE which (schema text);
SELECT bench.create_workload('which', 'INSERT INTO public.which SELECT current_schema() FROM pk WHERE id = :rows;',
    'pk');
SELECT bench.run('which', transactions => 1) IS NOT NULL AS ran;
SELECT * FROM which;
SELECT bench.unload('pk');
SELECT name, schema, rows FROM bench.fixtures WHERE name = 'pk';
SELECT bench.run('which', transactions => 1) IS NOT NULL AS ran;
SELECT * FROM which;
SELECT bench.drop_workload('which');

-- unload
SELECT bench.unload('pk'), bench.unload('log');
SELECT bench.unload('log'), bench.unload('wide');
SELECT bench.unload('pk');
SELECT name FROM bench.fixtures;
SELECT relname FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace;
-- it is part of the transaction
SELECT bench.load('pk', 10);
BEGIN;
SELECT bench.unload('pk');
SELECT to_regclass('bench_data.pk'), (SELECT count(*) FROM bench.fixtures) AS fixtures;
ROLLBACK;
SELECT to_regclass('bench_data.pk'), (SELECT count(*) FROM bench.fixtures) AS fixtures;
-- a table dropped by hand
DROP TABLE bench_data.pk;
SELECT count(*) AS registered FROM bench.fixtures;
SELECT bench.unload('pk');
SELECT count(*) AS registered FROM bench.fixtures;
SELECT bench.load('pk', 10);
DROP TABLE bench_data.pk;
SELECT bench.load('pk', 20);
SELECT count(*) FROM bench_data.pk;
-- what depends on a fixture keeps it, and nothing is half done
CREATE VIEW of_pk AS SELECT count(*) FROM bench_data.pk;
SELECT bench.unload('pk');
SELECT bench.load('pk', 30);
SELECT * FROM of_pk;
SELECT rows FROM bench.fixtures WHERE name = 'pk';
SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench\_loading%';
DROP VIEW of_pk;
SELECT bench.unload('pk');

-- A relation in the way that is no fixture stays as it is
CREATE TABLE bench_data.pk (precious int);
INSERT INTO bench_data.pk VALUES (42);
SELECT bench.load('pk', 10);
SELECT * FROM bench_data.pk;
SELECT bench.unload('pk');
-- unless it is to be adopted
SELECT bench.load('pk', 10, options => '{"adopt": false}');
SELECT bench.load('pk', 10, options => '{"adopt": true}');
SELECT count(*), max(id) FROM bench_data.pk;
SELECT rows, options FROM bench.fixtures WHERE name = 'pk';
SELECT bench.unload('pk');
CREATE VIEW bench_data.pk AS SELECT 1 AS id;
SELECT bench.load('pk', 10);
SELECT bench.load('pk', 10, options => '{"adopt": true}');
SELECT * FROM bench_data.pk;
DROP VIEW bench_data.pk;
-- in the way of the index or the sequence: the load finds other names for its own or says so, and takes nothing
CREATE TABLE bench_data.pk_pkey (precious int);
SELECT bench.load('pk', 10);
SELECT count(*) AS rows, (SELECT relkind FROM pg_class WHERE oid = 'bench_data.pk_pkey'::regclass) AS kind
FROM bench.fixtures WHERE name = 'pk';
DROP TABLE bench_data.pk_pkey;
\set VERBOSITY sqlstate
SELECT bench.load('pk', 10);
-- put there after the fixture's own was dropped: it is no fixture either
SELECT bench.load('wide', 10);
DROP TABLE bench_data.wide;
CREATE TABLE bench_data.wide (precious int);
INSERT INTO bench_data.wide VALUES (42);
SELECT bench.load('wide', 10);
SELECT precious FROM bench_data.wide;
SELECT bench.unload('wide');
SELECT precious FROM bench_data.wide;
SELECT count(*) AS registered FROM bench.fixtures WHERE name = 'wide';
DROP TABLE IF EXISTS bench_data.wide;
\set VERBOSITY default
-- renamed by its owner: a fixture still, under its new name
SELECT bench.load('log', 10);
ALTER TABLE bench_data.log RENAME TO diary;
SELECT name, relations FROM bench.fixtures WHERE name = 'log';
SELECT bench.run('pk_insert', transactions => 1);
SELECT bench.load('log', 5);
SELECT relname FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r' ORDER BY relname;
DROP TABLE IF EXISTS bench_data.diary;

-- Inside a transaction: the load commits by itself, whatever the caller does
BEGIN;
SELECT bench.load('pk', 10);
SELECT count(*) FROM bench_data.pk;
ROLLBACK;
SELECT count(*) FROM bench_data.pk;
SELECT rows FROM bench.fixtures WHERE name = 'pk';
-- the caller's own locks: no endless wait
BEGIN;
\set VERBOSITY sqlstate
SELECT count(*) FROM bench_data.pk;
SELECT bench.load('pk', 20);
ROLLBACK;
\set VERBOSITY default
SELECT count(*) FROM bench_data.pk;

-- The session's own settings, its search_path and its operators, are of no consequence
CREATE SCHEMA trap;
CREATE FUNCTION trap.md5(text) RETURNS text LANGUAGE sql AS $$ SELECT 'trapped' $$;
CREATE FUNCTION trap.random() RETURNS float8 LANGUAGE sql AS $$ SELECT 0.5::float8 $$;
CREATE TABLE trap.pk (id int);
ALTER ROLE CURRENT_USER SET search_path = trap, pg_catalog;
SET search_path = trap, pg_catalog;
SELECT bench.load('pk', 100);
SELECT count(DISTINCT info) FROM bench_data.pk;
SELECT bench.unload('pk');
SELECT 'trap.pk'::regclass::text AS still_there, to_regclass('bench_data.pk') AS gone;
ALTER ROLE CURRENT_USER RESET search_path;
RESET search_path;
DROP TABLE which;
DROP SCHEMA trap CASCADE;
DROP SCHEMA "Other, ""Schema""'s" CASCADE;
SELECT bench.unload(name) FROM bench.fixtures;
SELECT count(*) AS registered FROM bench.fixtures;
DROP SCHEMA bench_data;
