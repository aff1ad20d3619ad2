--
-- Loading: options, and fixtures of one's own
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;

-- Text and timestamp of pk, the index before the rows
SELECT bench.load('pk', 3, options => '{"info": "short", "crt_time": "timestamptz", "index": "before"}');
\d bench_data.pk
SELECT id, info, age(now(), crt_time) < '1 hour' AS recent FROM bench_data.pk ORDER BY id;
SELECT bench.load('pk', 3, options => '{"info": "now", "crt_time": "timestamp", "index": "after"}');
\d bench_data.pk
SELECT id, age(now(), info::timestamptz) < '1 hour' AS recent FROM bench_data.pk ORDER BY id;
SELECT
    name,
    rows,
    options,
    index_levels,
    key_correlation,
    index_secs >= 0 AS index_secs,
    vacuum_secs >= 0 AS vacuum_secs,
    rows_query
FROM bench.fixtures;
SELECT bench.load('pk', 3, options => '{"info": "long"}');
SELECT bench.load('pk', 3, options => '{"info": null}');
SELECT bench.load('pk', 3, options => '{"crt_time": "date"}');
SELECT bench.load('pk', 3, options => '{"index": true}');
SELECT bench.load('log', 3, options => '{"info": "short"}');
SELECT bench.load('log', 3, options => '{"distribute": "id"}');

-- Distribution: options that are wrong or go with no cluster, and then what is missing here
SELECT bench.load('pk', 3, options => '{"distribute": "id"}');
SELECT bench.load('pk', 3, options => '{"distribute": 1}');
SELECT bench.load('tpcb', options => '{"distribute": true}');
SELECT bench.load('tpcb', options => '{"distribute": "teller"}');
SELECT bench.load('pk', 3, options => '{"shard_count": 4}');
SELECT bench.load('pk', 3, options => '{"distribute": null, "shard_count": 4}');
SELECT bench.load('pk', 3, options => '{"distribute": true, "shard_count": 0}');
SELECT bench.load('pk', 3, options => '{"distribute": true, "shard_count": 64001}');
SELECT bench.load('pk', 3, options => '{"colocate_with": "default"}');
SELECT bench.load('pk', 3, options => '{"distribute": true, "shard_replication_factor": 101}');
SELECT bench.load('pk', 3, options => '{"distribute": true, "colocate_with": "pg_class", "shard_count": 2}');
SELECT bench.load('tpcb', options => '{"distribute": "branch", "shard_replication_factor": 2, "foreign_keys": true}');
SELECT bench.load('pk', 3, options => '{"distribute": true, "tablespace": "pg_default"}');
SELECT bench.load('pk', 3, options => '{"distribute": true, "index_tablespace": "pg_default"}');
SELECT bench.load('pk', 3, options => '{"distribute": true, "reloptions": {"toast.autovacuum_enabled": false}}');
SELECT bench.load('tpcb', options => '{"distribute": "account", "foreign_keys": true}');
SELECT bench.load('tpcb', options => '{"distribute": "branch", "foreign_keys": true}');
SELECT bench.load('pk', 3, options => '{"distribute": true}');
SELECT bench.load('shards');
SELECT bench.load('pk', 4, options => '{"distribute": false}');
SELECT bench.load('pk', 3, options => '{"distribute": null}');
SET client_min_messages = error;
SELECT bench.run('insert_9_shards', transactions => 1);
SET client_min_messages = warning;

-- shards, as a local table, whose keys are 1 to 9, and events
SELECT bench.load('shards', 2, options => '{"distribute": false}');
SELECT string_agg(id::text, ' ' ORDER BY id) AS ids FROM bench_data.shards;
\d bench_data.shards
SET client_min_messages = error;
SELECT bench.run(workload, clients => 2, transactions => 1) IS NOT NULL AS ran
FROM unnest('{insert_9_shards,insert_2_shards,insert_1_shard,insert_1_row}'::text[]) AS workload;
SET client_min_messages = warning;
SELECT least(id, 10) AS id, count(*) FROM bench_data.shards GROUP BY 1 ORDER BY 1;
SELECT bench.load('events', 20000);
\d bench_data.events
SELECT
    count(*),
    count(DISTINCT id) AS ids,
    min(c1),
    max(c1),
    count(DISTINCT c1) AS c1,
    min(c2),
    max(c2),
    min(c3),
    max(c3),
    corr(c1, c2) BETWEEN -0.1 AND 0.1 AS independent,
    bool_and(info ~ '^[0-9a-f]{32}$') AS hexadecimal,
    count(crt_time) AS times
FROM bench_data.events;
SET client_min_messages = error;
SELECT bench.run('count_all@1,group_count@1', clients => 2, transactions => 3) IS NOT NULL AS ran;
SET client_min_messages = warning;
SELECT bench.unload('shards'), bench.unload('events');
-- keys of shards are for that fixture's workloads
SELECT bench.create_workload('keyless', 'SELECT :shard_key_1, :shard_key_10;', 'pk');
SELECT bench.run('keyless', transactions => 1);
SELECT bench.drop_workload('keyless');
SELECT output FROM bench.preview('SELECT :shard_key_1, :shard_key_9;');

-- Storage parameters
SELECT bench.load('pk', 3,
    options => '{"fillfactor": 60, "reloptions": {"autovacuum_enabled": false, "toast.autovacuum_enabled": "off",
        "autovacuum_freeze_min_age": 7}}');
SELECT c.reloptions, t.reloptions AS toast FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
WHERE c.oid = 'bench_data.pk'::regclass;
SELECT bench.load('pk', 4, options => '{"reloptions": {"fillfactor": null}}');
SELECT bench.load('pk', 4, options => '{"reloptions": {"fillfactor": [1]}}');
SELECT bench.load('pk', 4, options => '{"reloptions": "fillfactor = 50"}');
SELECT bench.load('pk', 4, options => '{"reloptions": {"fillfactor": 50}, "fillfactor": 60}');
SELECT rows FROM bench.fixtures;
-- without effect on this server
SET client_min_messages = notice;
SELECT bench.load('pk', 4,
    options => '{"reloptions": {"autovacuum_freeze_max_age": 1500000000, "autovacuum_freeze_table_age": 190000001,
        "toast.autovacuum_freeze_min_age": 100000001, "parallel_workers": 3, "colour": "red"}}');
SET client_min_messages = warning;

-- name
SELECT bench.load('name', 11);
\d bench_data.name
SELECT id, name, crt_time = date_trunc('second', crt_time) AS whole
FROM bench_data.name
WHERE id IN (1, 11)
ORDER BY id;

-- wide_multi
SELECT bench.load('wide_multi');
SELECT bench.load('wide_multi', 5, options => '{"tables": 3}');
SELECT relations, rows FROM bench.fixtures WHERE name = 'wide_multi';
SELECT (SELECT count(*) FROM bench_data.wide_multi_0) AS "0", (SELECT max(id) FROM bench_data.wide_multi_2) AS "2";
INSERT INTO bench_data.wide_multi_1 DEFAULT VALUES RETURNING id > 5 AS beyond;
SELECT bench.load('wide_multi', options => '{"tables": 0}');
SELECT bench.load('wide_multi', options => '{"tables": 10001}');
SELECT bench.load('wide', options => '{"tables": 2}');
SELECT bench.load('wide_multi', 9223372036854775807);
SELECT bench.load('name', -1);

-- What the built-in ones are made of
SELECT name, builtin, rows, rows_query FROM bench.fixture_definitions WHERE name <> 'orders' ORDER BY name COLLATE "C";
SELECT place, relation, ids, left(rows_query, 40) AS begins FROM bench.fixture_queries
WHERE fixture IN ('tpcb', 'orders') ORDER BY fixture, place;

-- A fixture of one's own
SELECT bench.create_fixture('mine',
    'CREATE TABLE mine (id bigint, text text DEFAULT ''none'', n serial); CREATE TABLE other (id int)',
    'SELECT id FROM generate_series($1, $2) AS id',
    'ALTER TABLE mine ADD PRIMARY KEY (id); CREATE INDEX mine_text ON mine (text)', 7);
SELECT * FROM bench.fixture_definitions WHERE name = 'mine' \gx
SELECT bench.load('mine');
\d bench_data.mine
SELECT count(*), max(id), max(n), min(text) FROM bench_data.mine;
SELECT name, relations, rows, index_levels FROM bench.fixtures WHERE name = 'mine';
SELECT bench.load('mine', 3,
    options => '{"unlogged": true, "fillfactor": 50, "reloptions": {"autovacuum_enabled": false}}');
SELECT relname, relpersistence, reloptions FROM pg_class
WHERE relnamespace = 'bench_data'::regnamespace AND relname ~ 'mine|other' ORDER BY relname COLLATE "C";
SELECT bench.load('mine', -1);
SELECT bench.load('mine', 1, options => '{"index": "before"}');
SELECT bench.load('mine', 1, options => '{"colour": "red"}');
SELECT bench.create_workload('of_mine', 'SELECT id FROM mine WHERE id = :rows;', 'mine');
SELECT bench.unload('mine');
SET client_min_messages = error;
SELECT bench.run('of_mine', transactions => 1) IS NOT NULL AS ran;
SET client_min_messages = warning;
SELECT name, rows FROM bench.fixtures WHERE name = 'mine';
SELECT bench.drop_fixture('mine');
SELECT bench.unload('mine');
SELECT bench.drop_fixture('mine');
SELECT bench.drop_fixture('mine');
SELECT bench.load('mine');
SELECT bench.drop_workload('of_mine');

-- In the background: as bench.load, but that an end that is not good is told later
SELECT bench.start_load(NULL);
SELECT bench.start_load('nonesuch');
SELECT bench.start_load('pk', -1);
SELECT bench.start_load('pk', jobs => 0);
SELECT bench.start_load('pk', options => '[]');
SELECT bench.start_load('pk', options => '{"info": "long"}');
SELECT bench.start_load('pk', 5) AS load_id \gset
SELECT bench.wait_load(:load_id);
SELECT bench.wait_load(:load_id, 0), bench.stop_load(:load_id);
SELECT fixture, schema, status, finished_at > started_at AS took, role = current_user AS mine, error
FROM bench.loads WHERE load_id = :load_id;
SELECT count(*) FROM bench_data.pk;
BEGIN;
SELECT bench.start_load('pk', 6) AS load_id \gset
ROLLBACK;
SELECT bench.wait_load(:load_id);
SELECT count(*) FROM bench.loads WHERE fixture = 'pk' AND schema = 'bench_data';
SELECT rows FROM bench.fixtures WHERE name = 'pk';
SELECT bench.create_fixture('mine', 'CREATE TABLE mine (id int)',
    'SELECT 1 / (3 - id) FROM generate_series($1, $2) AS id');
SELECT bench.start_load('mine', 5) AS load_id \gset
SELECT bench.wait_load(:load_id);
SELECT to_regclass('bench_data.mine');
SELECT status, finished_at > started_at AS took, error ->> 'sqlstate' AS sqlstate, error ->> 'message' AS message
FROM bench.loads WHERE load_id = :load_id;
SELECT bench.drop_fixture('mine');
SELECT bench.wait_load(NULL);
SELECT bench.wait_load(-1);
SELECT bench.wait_load(:load_id, -1);
SELECT bench.stop_load(NULL);
SELECT bench.stop_load(-1);
SELECT
    bench_internal.load_status_of(NULL, NULL, NULL),
    bench_internal.load_status_of('completed', NULL, NULL),
    bench_internal.load_status_of('running', 0, -1);

-- What cannot be one
SELECT bench.create_fixture(NULL, '', '');
SELECT bench.create_fixture('mine', NULL, '');
SELECT bench.create_fixture('mine', '', NULL);
SELECT bench.create_fixture('mine', '', '', rows => NULL);
SELECT bench.create_fixture('mine', '', '', rows => -1);
SELECT bench.create_fixture('', '', '');
SELECT bench.create_fixture('pk', 'CREATE TABLE pk (id int)', 'SELECT id FROM generate_series($1, $2) AS id');
SELECT bench.create_fixture('mine', 'CREATE TABLE mine (id int)', 'SELECT id FROM generate_series(1, 2) AS id');
SELECT bench.create_fixture('mine', 'CREATE TABLE theirs (id int)', 'SELECT $1 + $2');
SELECT bench.create_fixture('mine', 'CREATE TABLE mine (id int); CREATE VIEW theirs AS SELECT 1', 'SELECT $1 + $2');
SELECT bench.create_fixture('mine', 'CREATE TABLE mine (id int); COMMIT', 'SELECT $1 + $2');
SELECT bench.drop_fixture('pk');
SELECT bench.drop_fixture('nonesuch');
SELECT name FROM bench.fixture_definitions WHERE NOT builtin;
SELECT
    to_regclass('public.mine') AS left_behind,
    (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\_loading%') AS schemas;

SELECT bench.unload(name) FROM bench.fixtures;
DROP SCHEMA bench_data;
