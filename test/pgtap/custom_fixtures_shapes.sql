-- bench.create_fixture: whatever shape a table has, a load leaves in it what a plain INSERT of the same query would.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public;
CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public;
CREATE EXTENSION IF NOT EXISTS pg_visibility SCHEMA public;
-- What ddl may use and not make.
CREATE SCHEMA cfx_types;
CREATE DOMAIN cfx_types.positive AS int CHECK (VALUE > 0);
CREATE DOMAIN cfx_types.present AS text NOT NULL;
CREATE TYPE cfx_types.pair AS (a int, b text);
CREATE TYPE cfx_types.mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION cfx_types.shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.id % 10 = 0 THEN RETURN NULL; END IF;
    NEW.v := upper(NEW.v);
    RETURN NEW;
END $$;
CREATE TABLE cfx_types.counts (n bigint);
CREATE FUNCTION cfx_types.count_news() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO cfx_types.counts SELECT count(*) FROM news;
    RETURN NULL;
END $$;
CREATE TABLE cfx_types.target (id int PRIMARY KEY);
INSERT INTO cfx_types.target SELECT generate_series(1, 2500);
CREATE TABLE cfx_types.aside (id int, v text);

-- Each is loaded into a schema of its own, called cfx_ and its number.
CREATE TEMP TABLE shapes (n serial, name text, ddl text, rows_query text, after_ddl text, rows bigint, jobs int,
    options jsonb);
CREATE FUNCTION pg_temp.shape(name text, ddl text, rows_query text, after_ddl text DEFAULT NULL,
    rows bigint DEFAULT 2500, jobs int DEFAULT 2, options jsonb DEFAULT '{}')
    RETURNS void LANGUAGE sql AS $$
    INSERT INTO shapes (name, ddl, rows_query, after_ddl, rows, jobs, options) VALUES ($1, $2, $3, $4, $5, $6, $7)
$$;
-- What two queries do not have in common, each row as often as it is there.
CREATE FUNCTION pg_temp.difference(a text, b text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT left(x::text, 300) FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) AS x LIMIT 5',
        a, b);
END $$;
CREATE FUNCTION pg_temp.items(t regclass)
    RETURNS TABLE (natts int, flags int, t_hoff int, t_bits text, t_data bytea) LANGUAGE sql AS $$
    -- HEAP_HASNULL, HEAP_HASVARWIDTH, HEAP_HASEXTERNAL. The data itself unless it points to a TOAST table
    SELECT i.t_infomask2 & 2047, i.t_infomask & 7, i.t_hoff, i.t_bits, CASE WHEN i.t_infomask & 4 = 0 THEN i.t_data END
    FROM generate_series(0, pg_relation_size(t) / current_setting('block_size')::int - 1) AS page,
         heap_page_items(get_raw_page(t::text, page::int)) AS i WHERE lp_len > 0
$$;
-- All that there is in a schema beside rows.
CREATE FUNCTION pg_temp.made(s text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT replace(what, s || '.', '')
    FROM (
        SELECT concat_ws(' ', relname, relkind, relpersistence, relispartition, relrowsecurity, relforcerowsecurity,
            pg_get_expr(relpartbound, oid))
        FROM pg_class
        WHERE relnamespace = s::regnamespace
        UNION ALL
        SELECT indexdef
        FROM pg_indexes
        WHERE schemaname = s
        UNION ALL
        SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
        FROM pg_constraint
        WHERE connamespace = s::regnamespace
        UNION ALL
        SELECT concat_ws(' ', tgrelid::regclass, CASE WHEN NOT tgisinternal THEN tgname END, tgfoid::regproc)
        FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
        WHERE relnamespace = s::regnamespace
        UNION ALL
        SELECT concat_ws(' ', attrelid::regclass, attnum, CASE WHEN NOT attisdropped THEN attname END,
            format_type(atttypid, atttypmod), attidentity, attgenerated, attstorage, pg_get_expr(adbin, adrelid),
            pg_get_serial_sequence(attrelid::regclass::text,
                CASE WHEN NOT attisdropped AND c.relkind = 'r' THEN attname END))
        FROM pg_attribute
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = s::regnamespace AND attnum > 0 AND c.relkind IN ('r', 'p')
        UNION ALL
        SELECT concat_ws(' ', sequencename, last_value)
        FROM pg_sequences
        WHERE schemaname = s
    ) AS made (what)
$$;
-- What the statements make without bench.load, in schema cfx_twin.
CREATE FUNCTION pg_temp.make_twin(s shapes) RETURNS void LANGUAGE plpgsql
    SET search_path = cfx_twin, public, pg_temp AS $$
BEGIN
    DROP SCHEMA IF EXISTS cfx_twin CASCADE;
    CREATE SCHEMA cfx_twin;
    EXECUTE s.ddl;
    EXECUTE format(E'INSERT INTO cfx_twin.%I %s\n', s.name, s.rows_query) USING 1::bigint, s.rows;
    IF s.after_ddl IS NOT NULL THEN EXECUTE s.after_ddl; END IF;
END $$;
CREATE FUNCTION pg_temp.same(s shapes) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    main text := 'cfx_' || s.n;
    t record;
BEGIN
    PERFORM pg_temp.make_twin(s);
    RETURN NEXT is_empty(format('SELECT pg_temp.difference(%L, %L)', format('SELECT pg_temp.made(%L)', main),
        'SELECT pg_temp.made(''cfx_twin'')'),
        s.name || ': the same relations, constraints and sequences');
    FOR t IN
        SELECT relname, c.oid::regclass AS main, format('cfx_twin.%I', relname)::regclass AS twin
        FROM pg_class c
        WHERE relnamespace = main::regnamespace AND relkind = 'r'
        ORDER BY relname
    LOOP
        RETURN NEXT is_empty(format('SELECT pg_temp.difference(%L, %L)', format('SELECT t::text FROM %s AS t', t.main),
            format('SELECT t::text FROM %s AS t', t.twin)),
            format('%s: the same rows in %s', s.name, t.relname));
        RETURN NEXT is_empty(format('SELECT pg_temp.difference(%L, %L)',
            format('SELECT * FROM pg_temp.items(%L)', t.main), format('SELECT * FROM pg_temp.items(%L)', t.twin)),
            s.name || ': to the byte');
        -- each of two loaders has a last page that is not full
        RETURN NEXT cmp_ok(abs(pg_relation_size(t.main) - pg_relation_size(t.twin))::numeric, '<=',
            (2 * 8192 + 0.01 * pg_relation_size(t.twin))::numeric, s.name || ': of the same size');
        RETURN NEXT is_empty(
            format('SELECT blkno FROM pg_visibility(%L) WHERE NOT (all_visible AND all_frozen)', t.main),
            s.name || ': all-visible');
        RETURN NEXT is_empty(format('SELECT * FROM verify_heapam(%L, check_toast => true)', t.main),
            s.name || ': sound');
    END LOOP;
    FOR t IN
        SELECT c.oid::regclass AS index
        FROM pg_class c
        WHERE relnamespace = main::regnamespace AND relkind = 'i' AND relam = 403
    LOOP
        RETURN NEXT lives_ok(format('SELECT bt_index_check(%L, true)', t.index),
            format('%s: %s is complete', s.name, t.index));
    END LOOP;
    PERFORM bench.unload(s.name);
    RETURN NEXT is_empty(format('SELECT relname FROM pg_class WHERE relnamespace = %L::regnamespace', main),
        s.name || ': unload drops all of it');
END $$;

--
-- Shapes of tables
--
SELECT pg_temp.shape('defaults', $$
    CREATE TABLE defaults (id bigint, a int DEFAULT 7, b text DEFAULT 'b', c timestamptz DEFAULT '2001-01-01', d int,
        e numeric DEFAULT 1.5)
$$, 'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('nulls', 'CREATE TABLE nulls (a int, b text, c bigint, d text, e int, f int, g int, h int, i int)',
    'SELECT id, nullif(id % 3, 0)::text, CASE WHEN id % 5 = 0 THEN id END, NULL FROM generate_series($1, $2) AS id');
-- in order of the ids, for the sequences
SELECT pg_temp.shape('serials', $$
    CREATE TABLE serials (v text, id serial PRIMARY KEY, n bigint GENERATED ALWAYS AS IDENTITY (START 100 INCREMENT 5))
$$, 'SELECT md5(id::text) FROM generate_series($1, $2) AS id', jobs => 1);
SELECT pg_temp.shape('identity', 'CREATE TABLE identity (id int GENERATED BY DEFAULT AS IDENTITY, v text)',
    'SELECT id, ''v'' FROM generate_series($1, $2) AS id',
    'SELECT setval(pg_get_serial_sequence(''identity'', ''id''), 2500)');
SELECT pg_temp.shape('checked', $$
    CREATE TABLE checked (id int NOT NULL CHECK (id > 0), v text NOT NULL,
        CONSTRAINT both_of_them CHECK (length(v) > 0 OR id < 0))
$$, 'SELECT id, id::text FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('generated', $$
    CREATE TABLE generated (id int, v text, twice int GENERATED ALWAYS AS (id * 2) STORED,
        long text GENERATED ALWAYS AS (repeat(v, 3)) STORED)
$$, 'SELECT id, ''x'' || id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('triggered', $$
    CREATE TABLE triggered (id int, v text);
    CREATE TRIGGER shout BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION cfx_types.shout()
$$, 'SELECT id, ''v'' || id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('silenced', $$
    CREATE TABLE silenced (id int, v text);
    CREATE TRIGGER shout BEFORE INSERT ON silenced FOR EACH ROW EXECUTE FUNCTION cfx_types.shout();
    ALTER TABLE silenced DISABLE TRIGGER ALL
$$, 'SELECT id, ''v'' || id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('typed', $$
    CREATE TABLE typed (id cfx_types.positive, d cfx_types.present, a int[], t text[], j jsonb, n numeric(20, 5),
        p cfx_types.pair, m cfx_types.mood, c char(10), vc varchar(8), b bytea, u uuid, f real, i inet, bo boolean,
        "char" "char", na name, r int4range, bi bit(3), iv interval)
$$, $$
    SELECT
        id,
        id::text,
        ARRAY[id, id + 1],
        ARRAY['a', NULL, id::text],
        jsonb_build_object('id', id, 'list', jsonb_build_array(1, id)),
        id / 7.0,
        ROW(id, 'b' || id)::cfx_types.pair,
        (ARRAY['sad', 'ok', 'happy'])[id % 3 + 1]::cfx_types.mood,
        'c' || id,
        'v' || id,
        decode(md5(id::text), 'hex'),
        md5(id::text)::uuid,
        id / 3.0,
        '10.0.0.1'::inet + id,
        id % 2 = 0,
        'x',
        'name' || id,
        int4range(id::int, id::int + 5),
        B'101',
        id * interval '1 hour'
    FROM generate_series($1, $2) AS id
$$);
SELECT pg_temp.shape('casts', $$
    CREATE TABLE casts (id int, n int, s smallint, vc varchar(3), nu numeric(5, 1), d date, big bigint)
$$, $$
    SELECT id, id + 0.5, id % 100, 'abc     ', id / 7.0, timestamp '2001-02-03 04:05:06', id::int
    FROM generate_series($1, $2) AS id
$$);
-- 100 kB that do not compress, 50 kB that do, 3 kB that stay inline, and what is stored as it is
SELECT pg_temp.shape('toasted', $$
    CREATE TABLE toasted (id int, random text, same text, middling text, plain text);
    ALTER TABLE toasted ALTER plain SET STORAGE EXTERNAL
$$, $$
    SELECT
        id,
        string_agg(md5(id || '-' || n), ''),
        repeat('x', 50000),
        CASE WHEN id % 2 = 0 THEN left(string_agg(md5(n || '-' || id), ''), 3000) END,
        repeat('y', 5000)
    FROM generate_series($1, $2) AS id, generate_series(1, 3200) AS n
    GROUP BY id
$$, rows => 60);
-- compressed rows take few pages, however long they are before
SELECT pg_temp.shape('compressed', 'CREATE TABLE compressed (id int, v text)',
    'SELECT id, repeat(''ab'', 5000) || id FROM generate_series($1, $2) AS id', rows => 6000, jobs => 3);
SELECT pg_temp.shape('dropped', $$
    CREATE TABLE dropped (gone_first int, id int, gone text, v text DEFAULT 'v');
    ALTER TABLE dropped DROP COLUMN gone, DROP COLUMN gone_first;
    ALTER TABLE dropped ADD COLUMN late int DEFAULT 5
$$, 'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('nothing', 'CREATE TABLE nothing ()', 'SELECT FROM generate_series($1, $2)');
SELECT pg_temp.shape('Odd "%t" table''s $1', $$
    CREATE TABLE "Odd ""%t"" table's $1" ("Odd ""%q"" column" int PRIMARY KEY)
$$, 'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('heir', 'CREATE TABLE base (id int, v text); CREATE TABLE heir (w int DEFAULT 3) INHERITS (base)',
    'SELECT id, ''v'' FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('several', $$
    CREATE TABLE kinds AS SELECT n AS kind, 'kind ' || n AS v FROM generate_series(1, 3) AS n;
    ALTER TABLE kinds ADD PRIMARY KEY (kind);
    CREATE TABLE several (id int, kind int REFERENCES kinds, v text);
    CREATE TABLE empty (id serial)
$$, 'SELECT id, kind, v FROM generate_series($1, $2) AS id JOIN kinds ON kind = id % 3 + 1', $$
    ALTER TABLE several ADD PRIMARY KEY (id);
    CREATE INDEX ON kinds (v)
$$);
SELECT pg_temp.shape('by_range', $$
    CREATE TABLE by_range (id int, v text) PARTITION BY RANGE (id);
    CREATE TABLE by_range_low PARTITION OF by_range FOR VALUES FROM (MINVALUE) TO (1000);
    CREATE TABLE by_range_rest PARTITION OF by_range DEFAULT
$$, 'SELECT id, ''v'' FROM generate_series($1, $2) AS id', 'ALTER TABLE by_range ADD PRIMARY KEY (id)');
SELECT pg_temp.shape('by_hash', $$
    CREATE TABLE by_hash (id int, v text) PARTITION BY HASH (id);
    CREATE TABLE by_hash_0 PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE by_hash_1 (v text, gone int, id int);
    ALTER TABLE by_hash_1 DROP COLUMN gone;
    ALTER TABLE by_hash ATTACH PARTITION by_hash_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1)
$$, 'SELECT id, ''v'' FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('by_both', $$
    CREATE TABLE by_both (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
    CREATE TABLE by_both_low PARTITION OF by_both FOR VALUES FROM (1) TO (1000) PARTITION BY LIST (id);
    CREATE TABLE by_both_low_7 PARTITION OF by_both_low FOR VALUES IN (7);
    CREATE TABLE by_both_low_rest PARTITION OF by_both_low DEFAULT;
    CREATE TABLE by_both_high PARTITION OF by_both FOR VALUES FROM (1000) TO (MAXVALUE)
$$, 'SELECT id, ''v'' FROM generate_series($1, $2) AS id');
-- partitions that differ from one another, and from their table
SELECT pg_temp.shape('by_kind', $$
    CREATE TABLE by_kind (id int, v text DEFAULT 'of the whole', n int DEFAULT 1) PARTITION BY LIST ((id % 4));
    CREATE TABLE by_kind_0 PARTITION OF by_kind FOR VALUES IN (0);
    CREATE TABLE by_kind_1 PARTITION OF by_kind (v DEFAULT 'of the part' NOT NULL, CHECK (n = 1)) FOR VALUES IN (1);
    CREATE TABLE by_kind_2 PARTITION OF by_kind FOR VALUES IN (2);
    CREATE TRIGGER shout BEFORE INSERT ON by_kind_2 FOR EACH ROW EXECUTE FUNCTION cfx_types.shout();
    CREATE TABLE by_kind_3 PARTITION OF by_kind FOR VALUES IN (3, NULL);
    ALTER TABLE by_kind_3 ENABLE ROW LEVEL SECURITY;
    ALTER TABLE by_kind_3 FORCE ROW LEVEL SECURITY
$$, 'SELECT id FROM generate_series($1, $2) AS id UNION ALL SELECT NULL WHERE $1 = 1');
SELECT pg_temp.shape('by_many',
    format('CREATE TABLE by_many (id int, v text) PARTITION BY HASH (id); %s',
        string_agg(
            format('CREATE TABLE by_many_%s PARTITION OF by_many FOR VALUES WITH (MODULUS 12, REMAINDER %1$s)', n),
            '; ')),
    'SELECT id, repeat(md5(id::text), id::int % 100) FROM generate_series($1, $2) AS id',
    'ALTER TABLE by_many ADD PRIMARY KEY (id)')
FROM generate_series(0, 11) AS n;
-- rows of nearly a page, and of a batch's bytes
SELECT pg_temp.shape('long', 'CREATE TABLE long (id int, v text); ALTER TABLE long ALTER v SET STORAGE PLAIN',
    'SELECT id, repeat(''x'', 8000 + id::int % 100) FROM generate_series($1, $2) AS id', rows => 500);
SELECT pg_temp.shape('pg_class', $$
    CREATE TABLE pg_class (id int, v text DEFAULT 'called as one of the server''s own')
$$, 'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('counted', $$
    CREATE TABLE counted (id int, v text);
    CREATE TRIGGER counted AFTER INSERT ON counted
        REFERENCING NEW TABLE AS news
        FOR EACH STATEMENT
        EXECUTE FUNCTION cfx_types.count_news()
$$, 'SELECT id FROM generate_series($1, $2) AS id', rows => 900);
-- indexes that are there before the rows
SELECT pg_temp.shape('indexed', $$
    CREATE TABLE indexed (id int PRIMARY KEY, v text UNIQUE, n int);
    CREATE INDEX ON indexed (lower(v), (n + 1));
    CREATE INDEX ON indexed (n) WHERE n % 2 = 0;
    CREATE INDEX ON indexed USING hash (v);
    CREATE INDEX ON indexed USING gin ((ARRAY[n]));
    CREATE INDEX ON indexed USING brin (id)
$$, 'SELECT id, md5(id::text), id % 100 FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('excluding', 'CREATE TABLE excluding (id int, r int4range, EXCLUDE USING gist (r WITH &&))',
    'SELECT id, int4range(id::int * 2, id::int * 2 + 2) FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('deferred', 'CREATE TABLE deferred (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)',
    'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('referring', 'CREATE TABLE referring (id int REFERENCES cfx_types.target, v text)',
    'SELECT id, ''v'' FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('secured', $$
    CREATE TABLE secured (id int, v text);
    ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
    ALTER TABLE secured FORCE ROW LEVEL SECURITY;
    CREATE POLICY p ON secured USING (true) WITH CHECK (id > 0)
$$, 'SELECT id, ''v'' FROM generate_series($1, $2) AS id');
SELECT pg_temp.shape('ruled', $$
    CREATE TABLE ruled (id int, v text);
    CREATE RULE less AS ON INSERT TO ruled WHERE NEW.id % 2 = 0 DO INSTEAD NOTHING;
    CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO cfx_types.aside VALUES (NEW.id, NEW.v)
$$, 'SELECT id, ''v'' FROM generate_series($1, $2) AS id');
--
-- Shapes of queries
--
CREATE FUNCTION pg_temp.query(name text, rows_query text, rows bigint DEFAULT 2500) RETURNS void LANGUAGE sql AS $$
    SELECT pg_temp.shape(name, format('CREATE TABLE %I (id bigint, v text)', name), rows_query, rows => rows)
$$;
SELECT pg_temp.query('q_order', 'SELECT id, ''v'' FROM generate_series($1, $2) AS id ORDER BY md5(id::text)');
-- within one chunk
SELECT pg_temp.query('q_limit', 'SELECT id, ''v'' FROM generate_series($1, $2) AS id ORDER BY -id LIMIT 10 OFFSET 3',
    1000);
SELECT pg_temp.query('q_distinct', 'SELECT DISTINCT (id + 1) / 2, ''v'' FROM generate_series($1, $2) AS id', 1000);
SELECT pg_temp.query('q_distinct_on', $$
    SELECT DISTINCT ON (id % 7) id, md5(id::text) FROM generate_series($1, $2) AS id ORDER BY id % 7, md5(id::text)
$$, 1000);
SELECT pg_temp.query('q_union', $$
    SELECT id, 'a'
    FROM generate_series($1, $2) AS id
    UNION ALL
    SELECT id, 'b'
    FROM generate_series($1, $2) AS id
    WHERE id % 2 = 0
$$);
SELECT pg_temp.query('q_except', $$
    (SELECT id, 'a' FROM generate_series($1, $2) AS id)
    EXCEPT
    SELECT id, 'a'
    FROM generate_series($1, $2) AS id
    WHERE id % 3 = 0
$$);
SELECT pg_temp.query('q_with', $$
    WITH RECURSIVE s (id) AS (SELECT $1 UNION ALL SELECT id + 1 FROM s WHERE id < $2),
    m AS MATERIALIZED (SELECT id, md5(id::text) AS v FROM s)
    SELECT *
    FROM m
$$);
SELECT pg_temp.query('q_subquery', $$
    SELECT id, (SELECT string_agg(n::text, ',') FROM generate_series(1, ids.id % 5) AS n)
    FROM (SELECT generate_series($1, $2) AS id) AS ids
    WHERE id IN (SELECT id FROM cfx_types.target)
$$);
SELECT pg_temp.query('q_window', 'SELECT id, sum(id) OVER (ORDER BY id) FROM generate_series($1, $2) AS id', 1000);
SELECT pg_temp.query('q_group', $$
    SELECT id / 10, string_agg(id::text, ' ' ORDER BY id)
    FROM generate_series($1, $2) AS id
    GROUP BY id / 10
    HAVING count(*) > 5
$$, 1000);
SELECT pg_temp.query('q_set', 'SELECT generate_series($1, $2), unnest(ARRAY[''a''])', 1);
SELECT pg_temp.query('q_values', 'VALUES ($1, ''first''), ($2, ''last'')', 1000);
SELECT pg_temp.query('q_one', 'SELECT $1 + $2, ''one''', 1000);
SELECT pg_temp.query('q_comment', E'SELECT id, ''v'' FROM generate_series($1, $2) AS id -- the ids');
SELECT pg_temp.query('q_semicolon', E' ( SELECT id, ''v'' FROM generate_series($1, $2) AS id ) ; ');
SELECT pg_temp.query('q_lock', 'SELECT t.id, ''v'' FROM cfx_types.target AS t WHERE id BETWEEN $1 AND $2 FOR UPDATE');
SELECT pg_temp.query('q_lateral', $$
    SELECT id, x.v FROM generate_series($1, $2) AS id, LATERAL (SELECT md5(id::text) AS v) AS x
$$);
SELECT pg_temp.query('q_more', 'SELECT id, n::text FROM generate_series($1, $2) AS id, generate_series(1, 3) AS n');
SELECT pg_temp.query('q_fewer', 'SELECT id, ''v'' FROM generate_series($1, $2) AS id WHERE id % 100 = 0');
SELECT pg_temp.query('q_none', 'SELECT id, ''v'' FROM generate_series($1, $2) AS id WHERE false');
SELECT pg_temp.query('q_one_column', 'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.query('q_no_ids', 'SELECT id, ''v'' FROM generate_series($1, $2) AS id', 0);
-- rows of the statement itself are not there yet; long ones, of which a batch holds few
SELECT pg_temp.query('q_itself', $$
    SELECT id, repeat((SELECT count(*) FROM q_itself AS i WHERE i.id < ids.id)::text, 500)
    FROM generate_series($1, $2) AS ids (id)
$$, 1000);
-- one that fails is found out below
\set ON_ERROR_STOP off
SELECT
    format('SELECT bench.create_fixture(%L, %L, %L, %L, %s)', name, ddl, rows_query, after_ddl, rows),
    format('SELECT bench.load(%L, NULL, %s, %L)', name, jobs, options || jsonb_build_object('schema', 'cfx_' || n))
FROM shapes
ORDER BY n \gexec
\set ON_ERROR_STOP on
\o

SELECT format('SELECT pg_temp.same(shapes) FROM shapes WHERE n = %s', n) FROM shapes ORDER BY n \gexec
SELECT is_empty('SELECT id, v FROM cfx_types.aside GROUP BY id, v HAVING count(*) <> 2',
    'a rule''s other rows are the same');
SELECT is(array_agg(n), '{900,900}'::bigint[], 'a trigger for statements is fired with all rows') FROM cfx_types.counts;

-- Ids of all kinds of ends
SELECT
    format('SELECT is(bench.load(''defaults'', %s, %s), %1$s::bigint, ''%1$s ids, %2$s jobs'')', rows, jobs),
    format($$
        SELECT is((count(*), min(id), max(id), count(DISTINCT id))::text, '(%s,%s,%s,%1$s)', 'are there')
        FROM bench_data.defaults
    $$, rows, CASE WHEN rows > 0 THEN 1 END, nullif(rows, 0))
FROM unnest('{0,1,1000,1001,50001}'::int[]) AS rows, unnest('{1,3}'::int[]) AS jobs \gexec
-- What is returned is the number of rows
SELECT
    bench.load('triggered', 2000, 2) AS triggered,
    bench.load('ruled', 2000, 2) AS ruled,
    bench.load('q_fewer', 2000, 2) AS q_fewer,
    bench.load('by_range', 2000, 2) AS by_range,
    bench.load('q_more', 10, 2) AS q_more \gset
SELECT
    is(:triggered, 1800, 'of those that a trigger lets pass'),
    is(:ruled, 1000, 'or a rule'),
    is(:q_fewer, 20, 'of fewer rows than ids'),
    is(:q_more, 30, 'of more'),
    is(:by_range, 2000, 'of all partitions');
SELECT
    is(f.rows, 10::bigint, 'bench.fixtures: ids are 1 … rows, however many rows each has'),
    is(f.rows_query, s.rows_query, 'and the query that they come from'),
    is(f.relations::text, '{bench_data.q_more}', 'in the fixture''s table')
FROM bench.fixtures f JOIN shapes s USING (name)
WHERE f.name = 'q_more';
SELECT bench.load('several', 10) \g /dev/null
SELECT is(relations::text, '{bench_data.several,bench_data.kinds,bench_data.empty}',
    'the fixture''s table is the first of several')
FROM bench.fixtures
WHERE name = 'several';
-- sequences that several loaders draw from
SELECT bench.load('serials', 5000, 3) \g /dev/null
SELECT is((count(*), count(DISTINCT id), count(DISTINCT n), count(DISTINCT v))::text, '(5000,5000,5000,5000)',
    'each number of a sequence is drawn once')
FROM bench_data.serials;
INSERT INTO bench_data.serials VALUES ('next') RETURNING ok(id > 5000, 'and the next one is another');

\o /dev/null
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
SELECT bench.drop_fixture(name) FROM (SELECT name FROM bench.fixture_definitions WHERE NOT builtin) AS f;
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname LIKE 'cfx\_%' \gexec
DROP EXTENSION amcheck, pageinspect, pg_visibility;
\o
SELECT * FROM finish();
