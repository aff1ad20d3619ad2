-- Loading of the built-in fixtures: the rows are those of the SELECT that defines them, the tables those
-- that plain INSERTs would have made.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public;
CREATE EXTENSION IF NOT EXISTS pg_visibility SCHEMA public;
CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public;
DROP SCHEMA IF EXISTS load_twin CASCADE;
CREATE SCHEMA load_twin;
-- The table of a loaded fixture that its rows_query is about.
CREATE FUNCTION pg_temp.main(fixture text) RETURNS regclass LANGUAGE sql AS
    'SELECT relations[1] FROM bench.fixtures WHERE name = fixture';
-- An equal table, empty.
CREATE FUNCTION pg_temp.twin(fixture text, name text) RETURNS regclass LANGUAGE plpgsql AS $$
DECLARE
    with_options text := (
        SELECT 'WITH (' || array_to_string(reloptions, ', ') || ')' FROM pg_class WHERE oid = pg_temp.main(fixture)
    );
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS load_twin.%I', name);
    EXECUTE format('CREATE TABLE load_twin.%I (LIKE %s INCLUDING ALL) %s', name, pg_temp.main(fixture), with_options);
    RETURN format('load_twin.%I', name)::regclass;
END $$;
-- An equal table, filled by a plain INSERT of the query that bench.fixtures shows.
CREATE FUNCTION pg_temp.selected(fixture text) RETURNS regclass LANGUAGE plpgsql AS $$
DECLARE
    twin regclass := pg_temp.twin(fixture, fixture || '_selected');
    f bench.fixtures;
BEGIN
    SELECT * INTO f FROM bench.fixtures WHERE name = fixture;
    EXECUTE format('INSERT INTO %s %s', twin, f.rows_query) USING 1::bigint, f.rows;
    RETURN twin;
END $$;
-- An equal table with the very values that were loaded. They go through text, lest tuples be copied whole.
CREATE FUNCTION pg_temp.copied(fixture text) RETURNS regclass LANGUAGE plpgsql AS $$
DECLARE
    twin regclass := pg_temp.twin(fixture, fixture || '_copied');
BEGIN
    EXECUTE format('INSERT INTO %s SELECT %s FROM %s', twin,
        string_agg(format('%I::text::%s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum),
        pg_temp.main(fixture))
    FROM pg_attribute WHERE attrelid = pg_temp.main(fixture) AND attnum > 0;
    RETURN twin;
END $$;
-- What is on a table's pages: of each row what the server reads of its header, and its data.
CREATE FUNCTION pg_temp.items(t regclass)
    RETURNS TABLE (natts int, flags int, t_hoff int, lp_len int, t_bits text, t_data bytea) LANGUAGE sql AS $$
    -- HEAP_HASNULL, HEAP_HASVARWIDTH, HEAP_HASEXTERNAL
    SELECT i.t_infomask2 & 2047, i.t_infomask & 7, i.t_hoff, i.lp_len, i.t_bits, i.t_data
    FROM generate_series(0, pg_relation_size(t) / current_setting('block_size')::int - 1) AS page,
         heap_page_items(get_raw_page(t::text, page::int)) AS i WHERE lp_len > 0
$$;
-- What two queries do not have in common, each row as often as it is there.
CREATE FUNCTION pg_temp.difference(a text, b text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT x::text FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) AS x LIMIT 5',
        a, b);
END $$;
-- How often each combination of column sizes and row size is there.
CREATE FUNCTION pg_temp.sizes(t regclass) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT ARRAY[%s, pg_column_size(t)], count(*) FROM %s AS t GROUP BY 1',
        string_agg(format('pg_column_size(t.%I)', attname), ', ' ORDER BY attnum), t)
    FROM pg_attribute
    WHERE attrelid = t AND attnum > 0
$$;
CREATE FUNCTION pg_temp.nulls(t regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM %s AS t WHERE NOT t IS NOT NULL', t) INTO found;
    RETURN found;
END $$;
-- All that can be said of any fixture. determined: columns whose values the query determines; same_sizes: whether
-- it determines the others' length.
CREATE FUNCTION pg_temp.same_kind(fixture text, determined text, same_sizes boolean, title text)
    RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    main regclass := pg_temp.main(fixture);
    selected regclass := pg_temp.selected(fixture);
    copied regclass := pg_temp.copied(fixture);
    query text := 'SELECT %s FROM %s';
BEGIN
    RETURN NEXT is(pg_temp.nulls(main), 0::bigint, title || ': no column is NULL');
    RETURN NEXT is_empty(
        format('SELECT pg_temp.difference(%L, %L)', format(query, determined, main),
            format(query, determined, selected)),
        title || ': ' || determined || ' have the values of the query');
    IF same_sizes THEN
        RETURN NEXT is_empty(
            format('SELECT pg_temp.difference(%L, %L)', pg_temp.sizes(main), pg_temp.sizes(selected)),
            title || ': columns and rows have the sizes of the query''s');
        RETURN NEXT is_empty(
            format('SELECT pg_temp.difference(%L, %L)',
                format('SELECT natts, flags, t_hoff, lp_len, t_bits FROM pg_temp.items(%L)', main),
                format('SELECT natts, flags, t_hoff, lp_len, t_bits FROM pg_temp.items(%L)', selected)),
            title || ': headers and lengths on the pages, too');
    END IF;
    RETURN NEXT is_empty(
        format('SELECT pg_temp.difference(%L, %L)', format('SELECT * FROM pg_temp.items(%L)', main),
            format('SELECT * FROM pg_temp.items(%L)', copied)),
        title || ': every byte is as if the values had been inserted');
    RETURN NEXT is_empty(format('SELECT * FROM verify_heapam(%L)', main), title || ': verify_heapam finds nothing');
    EXECUTE format('DROP TABLE %s, %s', selected, copied);
END $$;
\o

--
-- Rows that are produced natively are those of the SELECT
--
SELECT bench.load('pk', 3000, 2) \g /dev/null
SELECT pg_temp.same_kind('pk', 'id', true, 'pk with md5');
SELECT
    is(count(*), 3000::bigint, 'pageinspect''s tuple_data_split takes rows apart'),
    ok(bool_and(octet_length(s[1]) = 4 AND octet_length(s[2]) = 33 AND octet_length(s[3]) = 8 AND cardinality(s) = 3),
        'as they were put together')
FROM (
    SELECT tuple_data_split('bench_data.pk'::regclass, t_data, t_infomask, t_infomask2, t_bits) AS s
    FROM generate_series(0, pg_relation_size('bench_data.pk') / current_setting('block_size')::int - 1) AS page,
        heap_page_items(get_raw_page('bench_data.pk', page::int))
) AS items;
SELECT bench.load('pk', 3000, 2, '{"info": "short", "crt_time": "timestamptz"}') \g /dev/null
SELECT pg_temp.same_kind('pk', 'id, info', true, 'pk with a short text and timestamptz');
-- now() as text ends in as many digits as it takes
SELECT bench.load('pk', 3000, 2, '{"info": "now", "crt_time": "timestamptz"}') \g /dev/null
SELECT pg_temp.same_kind('pk', 'id', false, 'pk with now()');
SELECT bench.load('log', 3000, 2) \g /dev/null
SELECT pg_temp.same_kind('log', 'id, info', true, 'log');
SELECT bench.load('wide', 3000, 2) \g /dev/null
SELECT pg_temp.same_kind('wide', format('id, %s', string_agg('c' || n, ', ')), true, 'wide')
FROM generate_series(1, 20) AS n;
-- ids of one to five digits, so that what follows the text stands elsewhere
SELECT bench.load('name', 12000, 2) \g /dev/null
SELECT pg_temp.same_kind('name', 'id, name', true, 'name');
SELECT bench.load('tpcb', 100000, 2) \g /dev/null
SELECT pg_temp.same_kind('tpcb', 'aid, bid, abalance, filler', true, 'tpcb');
SELECT bench.load('shards', 3000, 2, '{"distribute": false}') \g /dev/null
SELECT pg_temp.same_kind('shards', 'id', true, 'shards');
SELECT bench.load('events', 3000, 2) \g /dev/null
SELECT pg_temp.same_kind('events', 'id', true, 'events');
SELECT bench.unload('shards'), bench.unload('events') \g /dev/null

-- Random digits: an md5 has each as often as any other, at each place
SELECT bench.load('pk', 60000, 3) \g /dev/null
CREATE TEMP TABLE md5s AS SELECT info FROM bench_data.pk;
SELECT
    is(count(*), 60000::bigint, 'pk has all rows'),
    is(count(DISTINCT info), 60000::bigint, 'no two texts are the same'),
    ok(bool_and(info ~ '^[0-9a-f]{32}$'), 'each is 32 hexadecimal digits')
FROM md5s;
SELECT is(count(*), 512::bigint, 'each digit occurs at each place'),
       -- 3750 each, with a standard deviation of 59
       ok(min(n) > 3300 AND max(n) < 4200, format('about equally often: %s to %s times', min(n), max(n)))
FROM (SELECT count(*) AS n FROM md5s, generate_series(1, 32) AS place GROUP BY place, substr(info, place, 1)) AS digits;
SELECT bench.load('pk', 60000, 3) \g /dev/null
SELECT is_empty('SELECT info FROM bench_data.pk INTERSECT SELECT info FROM md5s', 'another load has other digits');

-- Times are the load's, by the role's clock
ALTER ROLE CURRENT_USER SET TimeZone = 'Asia/Kathmandu';
CREATE FUNCTION pg_temp.here(t timestamptz) RETURNS timestamp LANGUAGE sql AS $$
    SELECT t AT TIME ZONE 'Asia/Kathmandu'
$$;
SELECT clock_timestamp() AS began \gset
SELECT bench.load('pk', 5000, 2) \g /dev/null
SELECT
    ok(min(crt_time) >= pg_temp.here(:'began') AND max(crt_time) <= pg_temp.here(clock_timestamp()),
        'timestamp: between the load''s begin and end, in local time'),
    cmp_ok(count(DISTINCT crt_time), '>', 100::bigint, 'it is the clock''s, not the transaction''s')
FROM bench_data.pk;
SELECT bench.load('pk', 5000, 2, '{"crt_time": "timestamptz", "info": "now"}') \g /dev/null
SELECT
    ok(min(crt_time) >= :'began' AND max(crt_time) <= clock_timestamp(), 'timestamptz: between begin and end'),
    cmp_ok(count(DISTINCT crt_time), '>', 100::bigint, 'it is the clock''s, too'),
    ok(bool_and(info::timestamptz BETWEEN :'began' AND crt_time), 'now() is a time between begin and clock'),
    ok(bool_and(info LIKE '%+05:45'), 'written as in the role''s session'),
    cmp_ok(count(DISTINCT info), '<=', 5::bigint, 'and one for each transaction')
FROM bench_data.pk;
ALTER ROLE CURRENT_USER SET DateStyle = 'SQL, DMY';
SELECT bench.load('pk', 10, 1, '{"info": "now"}') \g /dev/null
ALTER ROLE CURRENT_USER RESET DateStyle;
SELECT ok(bool_and(info LIKE to_char(crt_time, 'DD/MM/YYYY') || ' %'), 'in the role''s DateStyle') FROM bench_data.pk;
SELECT clock_timestamp() AS began \gset
SELECT bench.load('log', 5000, 2) \g /dev/null
SELECT
    ok(min(crt_time) >= :'began' AND max(crt_time) <= clock_timestamp(), 'log: between begin and end'),
    cmp_ok(count(DISTINCT crt_time), '<=', 5::bigint, 'a default of now() is one for each transaction')
FROM bench_data.log;
SELECT clock_timestamp() AS began \gset
SELECT bench.load('wide', 5000, 2) \g /dev/null
SELECT
    ok(min(crt_time) >= :'began' AND max(crt_time) <= clock_timestamp(), 'wide: between begin and end'),
    cmp_ok(count(DISTINCT crt_time), '>', 100::bigint, 'by the clock')
FROM bench_data.wide;
-- late in a second: what is rounded is not before what is not
SELECT pg_sleep(CASE WHEN extract(microseconds FROM clock_timestamp())::int % 1000000 / 1e6 BETWEEN 0.55 AND 0.8 THEN 0
                ELSE (1.6 - extract(microseconds FROM clock_timestamp())::int % 1000000 / 1e6)::float8 END) \g /dev/null
SELECT clock_timestamp() AS began \gset
SELECT bench.load('name', 5000, 2) \g /dev/null
SELECT
    ok(min(crt_time) >= pg_temp.here(:'began') AND max(crt_time) <= pg_temp.here(clock_timestamp()) + interval '0.5 s',
        'name: between begin and end, rounded'),
    ok(bool_and(crt_time = date_trunc('second', crt_time)), 'to seconds')
FROM bench_data.name;
ALTER ROLE CURRENT_USER RESET TimeZone;

--
-- Sizes are those of plain INSERTs
--
CREATE FUNCTION pg_temp.same_size(fixture text, title text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    main regclass := pg_temp.main(fixture);
    selected regclass := pg_temp.selected(fixture);
BEGIN
    RETURN NEXT ok(abs(pg_relation_size(main) - pg_relation_size(selected)) <= 0.01 * pg_relation_size(selected),
        format('%s: %s bytes of table, of INSERT %s', title, pg_relation_size(main), pg_relation_size(selected)));
    RETURN NEXT ok(abs(pg_indexes_size(main) - pg_indexes_size(selected)) <= 0.01 * pg_indexes_size(selected),
        format('%s: %s bytes of indexes, of INSERT %s', title, pg_indexes_size(main), pg_indexes_size(selected)));
    EXECUTE format('DROP TABLE %s', selected);
END $$;
SELECT bench.load('pk', 60000, 3) \g /dev/null
SELECT pg_temp.same_size('pk', 'pk');
SELECT bench.load('pk', 60000, 3, '{"fillfactor": 50}') \g /dev/null
SELECT pg_temp.same_size('pk', 'pk with fillfactor 50');
SELECT bench.load('pk', 60000, 1, '{"index": "before", "reloptions": {"fillfactor": 70}, "info": "short"}') \g /dev/null
SELECT pg_temp.same_size('pk', 'pk with fillfactor 70, index before');
SELECT bench.load('log', 60000, 3, '{"fillfactor": 10}') \g /dev/null
SELECT pg_temp.same_size('log', 'log with fillfactor 10');
SELECT bench.load('wide', 60000, 3) \g /dev/null
SELECT pg_temp.same_size('wide', 'wide');
SELECT bench.load('name', 60000, 3) \g /dev/null
SELECT pg_temp.same_size('name', 'name');

--
-- As a benchmark begins with it: all-visible, frozen, counted
--
CREATE FUNCTION pg_temp.ready(t regclass, n bigint, title text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT is_empty(
        format('SELECT blkno FROM pg_visibility(%L) WHERE NOT (all_visible AND all_frozen AND pd_all_visible)', t),
        title || ': all pages are all-visible and all-frozen');
    RETURN NEXT is_empty(format('SELECT pg_check_visible(%1$L) UNION ALL SELECT pg_check_frozen(%1$L)', t),
        title || ': so are the rows on them');
    RETURN NEXT is((relpages, relallvisible, reltuples)::text, (blocks, blocks, n)::text,
        title || ': pg_class says so, and how many')
    FROM pg_class, LATERAL (SELECT pg_relation_size(t) / current_setting('block_size')::int) AS size (blocks)
    WHERE oid = t;
END $$;
SELECT pg_temp.ready(format('bench_data.%s', name), 60000, name) FROM unnest('{wide,log,name}'::text[]) AS name;
SELECT pg_temp.ready(t,
    CASE t::text
        WHEN 'bench_data.pgbench_accounts' THEN 100000
        WHEN 'bench_data.pgbench_tellers' THEN 10
        WHEN 'bench_data.pgbench_branches' THEN 1
        ELSE 0
    END,
    t::text)
FROM bench.fixtures, unnest(relations) AS t
WHERE name = 'tpcb';

-- Rows for which nobody knows beforehand how many pages they take: what is left over is all-visible as well
SELECT bench.create_fixture('long_rows', 'CREATE TABLE long_rows (id bigint, long text);
    ALTER TABLE long_rows ALTER long SET STORAGE PLAIN', 'SELECT id, repeat(md5(id::text), 80 + (id % 40)::int)
    FROM generate_series($1, $2) AS id') \g /dev/null
SELECT bench.load('long_rows', 8000, 7) \g /dev/null
SELECT pg_temp.ready('bench_data.long_rows', 8000, 'long rows');

-- Ids are 1 … rows, however they are shared out, whichever comes first
CREATE FUNCTION pg_temp.complete(n bigint, title text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT is((count(*), min(id), max(id), count(DISTINCT id))::text,
        (n, CASE WHEN n > 0 THEN 1 END, nullif(n, 0), n)::text, title || ': ids are complete')
    FROM bench_data.pk;
    RETURN QUERY SELECT pg_temp.ready('bench_data.pk', n, title);
    RETURN NEXT lives_ok('SELECT bt_index_check(''bench_data.pk_pkey'', true)',
        title || ': the index is sound and complete');
    RETURN NEXT is((f.rows, f.index_levels, f.key_correlation)::text,
        (n, CASE WHEN m.root = 0 THEN 0 ELSE m.level + 1 END, (
            SELECT correlation
            FROM pg_stats
            WHERE schemaname = 'bench_data' AND tablename = 'pk' AND attname = 'id'
        ))::text,
        title || ': bench.fixtures tells the rows, levels and correlation')
    FROM bench.fixtures f, bt_metap('bench_data.pk_pkey') m
    WHERE f.name = 'pk';
END $$;
SELECT
    format($$
        SELECT is(bench.load('pk', %s, %s, '{"index": "%s"}'), %1$s::bigint,
            '%1$s rows, %2$s jobs, index %3$s: returned')
    $$, rows, jobs, index),
    format('SELECT pg_temp.complete(%s, ''%1$s rows, %s jobs, index %s'')', rows, jobs, index)
FROM unnest('{0,1,999,1000,1001,50000,50001,123457}'::int[]) WITH ORDINALITY AS r (rows, n),
    unnest('{1,2,3,7}'::int[]) WITH ORDINALITY AS j (jobs, m),
    LATERAL (SELECT CASE WHEN (n + m) % 2 = 0 THEN 'after' ELSE 'before' END AS index) AS i \gexec
SELECT is(index_levels, 3, 'three levels for more pages of keys than one page has room for')
FROM bench.fixtures
WHERE name = 'pk';
SELECT bench.load('pk', 20000, 1) \g /dev/null
SELECT is(key_correlation, 1::real, 'one job writes ids in their order') FROM bench.fixtures WHERE name = 'pk';

-- Indexes before and after the rows are the same
CREATE FUNCTION pg_temp.indexes(s text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', indexdef, contype, convalidated), E'\n' ORDER BY indexname)
    FROM pg_indexes LEFT JOIN pg_constraint ON conindid = format('%I.%I', schemaname, indexname)::regclass
    WHERE schemaname = s
$$;
-- What an index scan finds of every hundredth id.
CREATE FUNCTION pg_temp.found_by_index(t regclass) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    found bigint;
BEGIN
    EXECUTE format('SELECT sum(n) FROM generate_series(1, 20000, 100) AS wanted, LATERAL (SELECT count(*) AS n FROM %s '
        'WHERE id = wanted) AS x',
        t) INTO found;
    RETURN found;
END $$;
\o /dev/null
SELECT bench.load(name, CASE name WHEN 'tpcb' THEN 100000 ELSE 20000 END, 2, '{"index": "after"}')
FROM unnest('{pk,log,wide,name,tpcb}'::text[]) AS name;
SELECT pg_temp.indexes('bench_data') AS indexes, sum(pg_temp.found_by_index(t)) AS found
FROM unnest('{bench_data.pk,bench_data.log,bench_data.wide,bench_data.name}'::regclass[]) AS t \gset after_
SELECT bench.load(name, CASE name WHEN 'tpcb' THEN 100000 ELSE 20000 END, 2, '{"index": "before"}')
FROM unnest('{pk,log,wide,name,tpcb}'::text[]) AS name;
\o
SELECT
    is(pg_temp.indexes('bench_data'), :'after_indexes', 'index before: the same definitions'),
    is(:after_found, 800, 'index after: rows are found by the indexes'),
    is(sum(pg_temp.found_by_index(t)), 800::numeric, 'index before: too')
FROM unnest('{bench_data.pk,bench_data.log,bench_data.wide,bench_data.name}'::regclass[]) AS t;
SELECT lives_ok(format('SELECT bt_index_check(%L, true)', indexrelid::regclass),
    indexrelid::regclass || ': sound and complete')
FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE c.relnamespace = 'bench_data'::regnamespace AND relam = 403;

-- Sequences go on after the last id
INSERT INTO bench_data.log (info) VALUES ('next') RETURNING is(id, 20001, 'log: the next id');
INSERT INTO bench_data.wide (crt_time) VALUES (now()) RETURNING is(id, 20001::bigint, 'wide: the next id');
SELECT bench.load('log', 0), bench.load('wide', 0) \g /dev/null
INSERT INTO bench_data.log (info) VALUES ('first') RETURNING is(id, 1, 'log without rows: the first id');
INSERT INTO bench_data.wide (crt_time) VALUES (now()) RETURNING is(id, 1::bigint, 'wide without rows: the first id');

--
-- Options
--
\o /dev/null
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE load_tables LOCATION '';
CREATE TABLESPACE load_indexes LOCATION '';
RESET allow_in_place_tablespaces;
\o
SELECT bench.load('pk', 1000, 2,
    '{"schema": "Load, \"odd\" ''one''", "tablespace": "load_tables", "index_tablespace": "load_indexes", '
        '"unlogged": true}') \g /dev/null
SELECT
    is(pg_temp.places('"Load, ""odd"" ''one''"'),
        'pk u load_tables autovacuum_freeze_min_age=50000000,autovacuum_freeze_table_age=150000000; pk_pkey u '
            'load_indexes',
        'a schema of any name; tablespaces; unlogged'),
    is((SELECT count(*) FROM "Load, ""odd"" 'one'".pk), 1000::bigint, 'with all rows');
SELECT pg_temp.ready('"Load, ""odd"" ''one''".pk', 1000, 'unlogged');
SELECT is(spcname, 'load_tables', 'the TOAST table goes with its table')
FROM pg_class c JOIN pg_class toast ON toast.oid = c.reltoastrelid JOIN pg_tablespace t ON t.oid = toast.reltablespace
WHERE c.oid = '"Load, ""odd"" ''one''".pk'::regclass;
ALTER ROLE CURRENT_USER SET default_tablespace = load_indexes;
SELECT bench.load('pk', 1000, 1, '{"schema": "Load, \"odd\" ''one''", "tablespace": "load_tables"}') \g /dev/null
SELECT is(pg_temp.places('"Load, ""odd"" ''one''"'),
    'pk p load_tables autovacuum_freeze_min_age=50000000,autovacuum_freeze_table_age=150000000; pk_pkey p default',
    'without a name it is the database''s, whatever the role''s default');
ALTER ROLE CURRENT_USER RESET default_tablespace;
SELECT bench.load('wide', 1000, 1,
    '{"schema": "Load, \"odd\" ''one''", "reloptions": {"toast.autovacuum_enabled": true, "fillfactor": 44, '
        '"parallel_workers": "3", "autovacuum_vacuum_cost_delay": 1.5}}') \g /dev/null
SELECT is(c.reloptions,
    '{autovacuum_enabled=off,autovacuum_vacuum_cost_delay=1.5,fillfactor=44,parallel_workers=3}'::text[],
    'reloptions are added to the fixture''s own')
FROM pg_class c
WHERE c.oid = '"Load, ""odd"" ''one''".wide'::regclass;
SELECT bench.load('name', 1000, 1,
    '{"schema": "Load, \"odd\" ''one''", "reloptions": {"toast.autovacuum_enabled": false, '
        '"toast_tuple_target": "256"}}') \g /dev/null
SELECT is(concat(c.reloptions, toast.reloptions), '{toast_tuple_target=256}{autovacuum_enabled=false}',
    'those of the TOAST table go there')
FROM pg_class c JOIN pg_class toast ON toast.oid = c.reltoastrelid
WHERE c.oid = '"Load, ""odd"" ''one''".name'::regclass;
SELECT bench.unload(f.name) FROM bench.fixtures f WHERE schema = 'Load, "odd" ''one''' \g /dev/null
-- What cannot be leaves what there was, and nothing else.
CREATE FUNCTION pg_temp.remains() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', (SELECT rows FROM bench.fixtures WHERE name = 'pk'), (SELECT count(*) FROM bench_data.pk),
        (SELECT string_agg(nspname, ',') FROM pg_namespace WHERE nspname LIKE 'bench\_loading%'),
        (SELECT count(*) FROM bench_internal.load_log WHERE status = 'running'),
        (SELECT string_agg(relname, ',') FROM pg_class WHERE relname LIKE '%loading\_%'),
        (
            SELECT count(*)
            FROM pg_locks
            WHERE locktype = 'relation' AND relation = 'bench_data.pk'::regclass AND mode <> 'AccessShareLock'
        ))
$$;
CREATE FUNCTION pg_temp.refused(rows bigint, jobs int, options text, state text, title text)
    RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT throws_ok(format('SELECT bench.load(''pk'', %L, %L, %L)', rows, jobs, options), state, NULL,
        title || ' is refused');
    RETURN NEXT is(pg_temp.remains(), '20000 20000 0 0', title || ' leaves nothing');
END $$;
-- each a statement of its own: the last one's look at the table is a lock
SELECT format('SELECT pg_temp.refused(%L, %L, %L, %L, %L)', rows, jobs, options, state, title)
FROM (VALUES
    (10, 1, '{"reloptions": {"fillfactor": "it''s"}}', '22023', 'a value with a quote'),
    (10, 1, '{"reloptions": {"fillfactor = 50) ; DROP TABLE bench_data.pk; --": 1}}', '22023',
        'a name with a statement'),
    (10, 1, '{"reloptions": {"\"quoted\"": 1}}', '22023', 'a name with a quote'),
    (10, 1, '{"reloptions": {"odd.fillfactor": 50}}', '22023', 'an unknown namespace of parameters'),
    (10, 1, '{"reloptions": {"toast.fillfactor": 50}}', '22023', 'a parameter that TOAST tables lack'),
    (10, 1, '{"reloptions": {"fillfactor": 9}}', '22023', 'a value out of range'),
    (10, 1, '{"reloptions": {"": 50}}', NULL, 'an empty name'),
    (10, 1, '{"reloptions": {"fillfactor": [1]}}', '22023', 'an array'),
    (10, 1, '{"reloptions": {"fillfactor": null}}', '22023', 'null'),
    (10, 1, '{"reloptions": "fillfactor=50"}', '22023', 'a text of parameters'),
    (10, 1, '{"reloptions": {"fillfactor": 50}, "fillfactor": 60}', '22023', 'a parameter given twice'),
    (10, 1, '{"tablespace": "load_nonesuch"}', '42704', 'an unknown tablespace'),
    (10, 1, '{"index_tablespace": "load_nonesuch"}', '42704', 'an unknown tablespace for indexes'),
    (10, 1, '{"index_tablespace": "pg_global"}', NULL, 'pg_global'),
    (10, 1, '{"schema": "pg_load"}', '42939', 'a schema of the server''s'),
    (10, 1, '{"schema": ""}', '22023', 'a schema without a name'),
    (10, 1, '{"index": "during"}', '22023', 'index during'),
    (10, 1, '{"tables": 3}', '0A000', 'another fixture''s option'),
    (10, 1, '{"nonesuch": 3}', '22023', 'an unknown option'),
    (-1, 1, '{}', '22023', 'rows -1'),
    (2147483648, 1, '{}', '22023', 'more rows than integers'),
    (10, 0, '{}', '22023', 'jobs 0'),
    (10, 257, '{}', '22023', 'jobs 257')
) AS v (rows, jobs, options, state, title) \gexec
SELECT is(bench.load('log', 10, options => '{"reloptions": {}}'), 10::bigint, 'no reloptions are none');

-- NOTICEs can only be seen from outside
\set reloptions '{"parallel_workers": 99, "autovacuum_freeze_max_age": 1000000000, "autovacuum_freeze_min_age": 1000}'
\set call 'SELECT bench.load(''wide'', 10, options => ''{"reloptions": ' :reloptions '}'')'
\set said `psql -XAtq -c :'call' 2>&1 | grep 'no effect' | sort`
SELECT
    matches(:'said'::text,
        '"autovacuum_freeze_max_age" = 1000000000 has no effect .* autovacuum_freeze_max_age = 200000000 limits it',
        'a NOTICE says which reloption has no effect, and why'),
    matches(:'said'::text, '"parallel_workers" = 99 has no effect', 'for each'),
    doesnt_match(:'said'::text, 'min_age', 'but for those that have one');

--
-- Transactions of its own
--
BEGIN;
SELECT bench.load('log', 70) \g /dev/null
ROLLBACK;
SELECT
    is(count(*), 70::bigint, 'ROLLBACK leaves a load'),
    is((SELECT rows FROM bench.fixtures WHERE name = 'log'), 70::bigint, 'and its row in bench.fixtures')
FROM bench_data.log;
BEGIN;
CREATE TABLE load_twin.own (n int);
SAVEPOINT one;
SELECT bench.load('log', 71) \g /dev/null
ROLLBACK TO one;
SELECT is(rows, 71::bigint, 'ROLLBACK TO a savepoint leaves it as well') FROM bench.fixtures WHERE name = 'log';
SELECT
    throws_ok('SELECT bench.load(''log'', 5, options => ''{"reloptions": {"odd": 1}}'')', '22023', NULL,
        'one that fails in a subtransaction'),
    lives_ok('SELECT bench.load(''log'', 72)', 'does not keep the next one from working');
SELECT is(count(*), 72::bigint, 'which the transaction sees') FROM bench_data.log;
COMMIT;
SELECT
    is(count(*), 72::bigint, 'and which stays'),
    has_table('load_twin', 'own', 'as does the transaction''s own')
FROM bench_data.log;
BEGIN;
SELECT count(*) FROM bench_data.log \g /dev/null
SELECT throws_ok('SELECT bench.load(''log'', 73)', '55006', NULL, 'not over tables that the transaction has locked');
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM bench_data.pk \g /dev/null
SELECT is(bench.load('log', 74), 74::bigint, 'in a repeatable read transaction');
COMMIT;
SELECT is(count(*), 74::bigint, 'whose later snapshots see it') FROM bench_data.log;
BEGIN READ ONLY;
SELECT throws_ok('SELECT bench.load(''log'', 75)', '25006', NULL, 'not in a read-only one');
COMMIT;
ALTER ROLE CURRENT_USER SET default_transaction_isolation = serializable;
SELECT is(bench.load('pk', 3000, 3), 3000::bigint, 'by a role whose transactions are serializable');
ALTER ROLE CURRENT_USER RESET default_transaction_isolation;
SELECT pg_temp.complete(3000, 'serializable');

\o /dev/null
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
\o
SELECT is(count(*), 0::bigint, 'no schema of a load is left') FROM pg_namespace WHERE nspname LIKE 'bench\_loading%';
SELECT is(count(*), 0::bigint, 'and no worker') FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext load%';
DROP SCHEMA load_twin, "Load, ""odd"" 'one'" CASCADE;
DROP TABLESPACE load_tables;
DROP TABLESPACE load_indexes;
DROP EXTENSION amcheck, pg_visibility, pageinspect;
SELECT * FROM finish();
