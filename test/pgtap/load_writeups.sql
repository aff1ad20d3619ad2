-- The fixtures of the write-ups, loaded and worked on by their workloads.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

SELECT results_eq($$
    SELECT name, fixture FROM bench.workloads WHERE builtin AND name NOT LIKE 'tpcb%' AND name NOT LIKE 'orders%'
    ORDER BY name COLLATE "C"
$$, $$
    VALUES
        ('count_all', 'events'),
        ('group_count', 'events'),
        ('insert_1_row', 'shards'),
        ('insert_1_shard', 'shards'),
        ('insert_2_shards', 'shards'),
        ('insert_9_shards', 'shards'),
        ('insert_batch', 'wide'),
        ('insert_batch_multi', 'wide_multi'),
        ('insert_single', 'wide'),
        ('insert_single_multi', 'wide_multi'),
        ('name_select', 'name'),
        ('name_update', 'name'),
        ('pk_insert', 'log'),
        ('pk_select', 'pk'),
        ('pk_update', 'pk'),
        ('pk_update_hot', 'pk')
$$, 'the workloads of the write-ups have their fixtures');
-- Judged counters that are wrong.
CREATE FUNCTION pg_temp.wrong(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s: harness %s, server %s', counter, harness, server), '; ')
    FROM bench.audit(run)
    WHERE ok = false
$$;
CREATE FUNCTION pg_temp.judged(run bigint, counter text) RETURNS bigint LANGUAGE sql AS $$
    SELECT harness FROM bench.audit(run) a WHERE a.counter = $2 AND ok
$$;
-- Rows of each client's table, of whichever there are.
CREATE FUNCTION pg_temp.per_client(s text DEFAULT 'bench_data') RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(
        (xpath('//n/text()', query_to_xml(format('SELECT count(*) AS n FROM %s', t), false, false, '')))[1]::text,
        ',' ORDER BY n)
    FROM bench.fixtures, unnest(relations) WITH ORDINALITY AS r (t, n)
    WHERE name = 'wide_multi' AND schema = s
$$;
SELECT bench.unload(f.name) FROM bench.fixtures f WHERE name = 'wide_multi' \g /dev/null
SELECT bench.run('insert_single_multi', clients => 3, transactions => 10) AS run_id \gset
SELECT
    is(pg_temp.per_client(), '10,10,10',
        'wide_multi: a run makes a table for each client, and each has written into its own'),
    is(relations::text, '{bench_data.wide_multi_0,bench_data.wide_multi_1,bench_data.wide_multi_2}',
        'called by the clients'' numbers'),
    is(pg_temp.wrong(:run_id), NULL, 'the audit agrees'),
    is(pg_temp.judged(:run_id, 'n_tup_ins'), 30::bigint, 'with all rows')
FROM bench.fixtures
WHERE name = 'wide_multi';
SELECT bench.run('insert_single_multi', clients => 5, transactions => 7) AS run_id \gset
SELECT is(pg_temp.per_client(), '7,7,7,7,7', 'a run of more clients makes more, and all are empty when it begins');
SELECT bench.run('insert_batch_multi', clients => 2, transactions => 3) AS run_id \gset
SELECT
    is(pg_temp.per_client(), '1200,1200,0,0,0', 'a batch is 400 rows; one of fewer clients empties them as well'),
    is(pg_temp.wrong(:run_id), NULL, 'the audit agrees'),
    is(pg_temp.judged(:run_id, 'n_tup_ins'), 2400::bigint, 'with all rows'),
    is((SELECT min(id) FROM bench_data.wide_multi_0), 1::bigint, 'ids begin anew');
SELECT
    is(bench.load('wide_multi', 100, 3, '{"tables": 3, "fillfactor": 60}'), 300::bigint,
        'loaded with rows: so many for each table'),
    is(pg_temp.per_client(), '100,100,100', 'are there');
SELECT bench.run('insert_single_multi', clients => 2, transactions => 10) AS run_id \gset
SELECT
    is(pg_temp.per_client(), '110,110,100', 'and are kept by runs'),
    is(min(id), 1::bigint, 'with the ids of the load'),
    is(count(DISTINCT id), 110::bigint, 'and others for the new ones')
FROM bench_data.wide_multi_0;
SELECT bench.run('insert_single_multi', clients => 4, transactions => 10) AS run_id \gset
SELECT
    is(pg_temp.per_client(), '110,110,110,110', 'more tables are loaded with as many'),
    is(array_agg(DISTINCT reloptions)::text, '{{autovacuum_enabled=off,fillfactor=60}}', 'and with the same options')
FROM pg_class
WHERE relname ~ '^wide_multi_\d+$' AND relkind = 'r' AND relnamespace = 'bench_data'::regnamespace;
SELECT is(bench.load('wide_multi', 0, NULL, '{"tables": 12}'), 0::bigint, 'twelve tables without rows');
SELECT is(relations[11:12]::text, '{bench_data.wide_multi_10,bench_data.wide_multi_11}',
    'in the order of their numbers')
FROM bench.fixtures
WHERE name = 'wide_multi';
SELECT bench.run('insert_single_multi', clients => 12, transactions => 1) \g /dev/null
SELECT is(pg_temp.per_client(), '1,1,1,1,1,1,1,1,1,1,1,1', 'for twelve clients');

-- D: reads anywhere, writes to the first tenth
SELECT bench.load('pk', 2000), bench.load('name', 2000) \g /dev/null
CREATE TEMP TABLE before AS SELECT id, crt_time FROM bench_data.pk;
SELECT bench.run('pk_update_hot', 3, transactions => 200) AS run_id \gset
SELECT is(count(*), 0::bigint, 'pk_update_hot: no row beyond the first tenth has changed')
FROM bench_data.pk JOIN before USING (id)
WHERE pk.crt_time <> before.crt_time AND id > 200;
SELECT ok(count(*) > 100 AND max(id) > 180, 'most of the first tenth has')
FROM bench_data.pk JOIN before USING (id)
WHERE pk.crt_time <> before.crt_time;
SELECT is(pg_temp.wrong(:run_id), NULL, 'the audit agrees'), is(server, 600::bigint, 'one update for each transaction')
FROM bench.audit(:run_id) WHERE counter = 'n_tup_upd';
SELECT bench.load('pk', 3) \g /dev/null
SELECT bench.run('pk_update_hot', transactions => 20) AS run_id \gset
SELECT is(status, 'completed', 'fewer than ten rows have a first one') FROM bench.runs WHERE run_id = :run_id;
-- E
SELECT bench.run('name_select', 2, transactions => 100) AS run_id \gset
SELECT
    is(pg_temp.wrong(:run_id), NULL, 'name_select: the audit agrees'),
    is(pg_temp.judged(:run_id, 'idx_scan'), 200::bigint, 'one index scan each'),
    is((SELECT count(*) FROM bench_data.name WHERE name <> id || '_name'), 0::bigint, 'nothing has changed');
SELECT bench.run('name_update', 2, transactions => 100) AS run_id \gset
SELECT
    is(pg_temp.wrong(:run_id), NULL, 'name_update: the audit agrees'),
    is(pg_temp.judged(:run_id, 'n_tup_upd'), 200::bigint, 'one update each'),
    is(count(DISTINCT name), 1::bigint, 'the new text is a constant'),
    ok(count(*) BETWEEN 100 AND 200, 'of as many rows as were drawn')
FROM bench_data.name
WHERE name <> id || '_name';

\o /dev/null
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
\o
SELECT * FROM finish();
