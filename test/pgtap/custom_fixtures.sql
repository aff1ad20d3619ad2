-- bench.create_fixture: options, loads that fail, definitions that are refused, and other roles. What a load leaves in
-- tables of all shapes is in custom_fixtures_shapes.sql.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
-- What ddl may use and not make.
CREATE SCHEMA cfx_types;
CREATE DOMAIN cfx_types.positive AS int CHECK (VALUE > 0);
CREATE DOMAIN cfx_types.present AS text NOT NULL;
CREATE TYPE cfx_types.pair AS (a int, b text);
CREATE TABLE cfx_types.target (id int PRIMARY KEY);
INSERT INTO cfx_types.target SELECT generate_series(1, 2500);
\o

--
-- Options
--
\o /dev/null
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE cfx_tables LOCATION '';
CREATE TABLESPACE cfx_indexes LOCATION '';
RESET allow_in_place_tablespaces;
SELECT bench.create_fixture('cfx_options', $$
    CREATE TABLE cfx_options (id int, v text) WITH (autovacuum_enabled = off, parallel_workers = 2)
$$, 'SELECT id, md5(id::text) FROM generate_series($1, $2) AS id', 'ALTER TABLE cfx_options ADD PRIMARY KEY (id)');
SELECT bench.load('cfx_options', 20000, 2,
    '{"schema": "cfx_data", "unlogged": true, "fillfactor": 50, "reloptions": {"parallel_workers": 1, '
        '"toast.autovacuum_enabled": false}, "tablespace": "cfx_tables", "index_tablespace": "cfx_indexes"}');
\o
SELECT is(pg_temp.places('cfx_data'),
    'cfx_options u cfx_tables autovacuum_enabled=off,fillfactor=50,parallel_workers=1; cfx_options_pkey u cfx_indexes',
    'unlogged, fillfactor, reloptions and tablespaces');
CREATE TABLE cfx_types.half (LIKE cfx_data.cfx_options) WITH (fillfactor = 50);
INSERT INTO cfx_types.half SELECT * FROM cfx_data.cfx_options;
SELECT cmp_ok(abs(pg_relation_size('cfx_data.cfx_options') - pg_relation_size('cfx_types.half')), '<=',
    pg_relation_size('cfx_types.half') / 100, 'the fillfactor is there before the rows');
SELECT
    throws_ok($$SELECT bench.load('cfx_options', 10, options => '{"index": "before"}')$$, '0A000', NULL,
        'index is the business of ddl and after_ddl'),
    throws_ok($$SELECT bench.load('cfx_options', 10, options => '{"partitions": 3}')$$, '0A000', NULL,
        'so are partitions'),
    throws_ok($$SELECT bench.load('cfx_options', 10, options => '{"reloptions": {"odd": 3}}')$$, '22023', NULL,
        'an unknown parameter');
SELECT is(count(*), 20000::bigint, 'a load that is refused leaves what was there') FROM cfx_data.cfx_options;
SELECT bench.create_fixture('by_both', $$
    CREATE TABLE by_both (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
    CREATE TABLE by_both_low PARTITION OF by_both FOR VALUES FROM (1) TO (1000) PARTITION BY LIST (id);
    CREATE TABLE by_both_low_7 PARTITION OF by_both_low FOR VALUES IN (7);
    CREATE TABLE by_both_low_rest PARTITION OF by_both_low DEFAULT;
    CREATE TABLE by_both_high PARTITION OF by_both FOR VALUES FROM (1000) TO (MAXVALUE)
$$, 'SELECT id, ''v'' FROM generate_series($1, $2) AS id') \g /dev/null
SELECT bench.load('by_both', 10, options => '{"schema": "cfx_data", "fillfactor": 50, "unlogged": true}') \g /dev/null
SELECT is(
    string_agg(concat_ws(' ', relname, relpersistence::text, array_to_string(reloptions, ',')), '; ' ORDER BY relname),
    'by_both_high u fillfactor=50; by_both_low_7 u fillfactor=50; by_both_low_rest u fillfactor=50',
    'partitions have the options')
FROM pg_class
WHERE relnamespace = 'cfx_data'::regnamespace AND relkind = 'r' AND relname LIKE 'by\_both%';
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f \g /dev/null
DROP TABLESPACE cfx_tables;
DROP TABLESPACE cfx_indexes;

--
-- Loads that fail
--
\o /dev/null
-- What is left of a failed load or definition.
CREATE FUNCTION pg_temp.remains(name text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', (SELECT string_agg(nspname, ',') FROM pg_namespace WHERE nspname LIKE 'bench\_loading%'),
        (SELECT string_agg(relname, ',') FROM pg_class WHERE relname LIKE name || '%'),
        (SELECT string_agg(fixture, ',') FROM bench_internal.load_log WHERE status = 'running'),
        (SELECT string_agg(f.name, ',') FROM bench.fixtures f WHERE f.name = $1))
$$;
CREATE FUNCTION pg_temp.fails(state text, title text, ddl text, rows_query text, after_ddl text DEFAULT NULL,
    rows bigint DEFAULT 3000, role text DEFAULT current_user)
    RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT lives_ok(format('SELECT bench.create_fixture(''cfx_fails'', %L, %L, %L)', ddl, rows_query, after_ddl),
        title || ': cannot be told without rows');
    RETURN NEXT throws_ok(format('SELECT bench.load(''cfx_fails'', %s, 2)', rows), state, NULL,
        title || ': the load fails');
    RETURN NEXT is(pg_temp.remains('cfx_fails'), '', title || ': nothing is left');
END $$;
\o
SELECT pg_temp.fails('23502', 'NOT NULL', 'CREATE TABLE cfx_fails (id int, v text NOT NULL)',
    'SELECT id, nullif(id, 2999)::text FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23514', 'CHECK', 'CREATE TABLE cfx_fails (id int CHECK (id < 3000))',
    'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23514', 'a domain''s CHECK', 'CREATE TABLE cfx_fails (id cfx_types.positive)',
    'SELECT id - 1 FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23502', 'a domain''s NOT NULL', 'CREATE TABLE cfx_fails (id int, v cfx_types.present)',
    'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23505', 'a unique index that was there before', 'CREATE TABLE cfx_fails (id int UNIQUE)',
    'SELECT id / 3000 * 7 + id % 3000 FROM generate_series($1, $2) AS id', NULL, 3007);
SELECT pg_temp.fails('23505', 'twice in one batch', 'CREATE TABLE cfx_fails (id int UNIQUE)',
    'SELECT id / 2 FROM generate_series($1, $2) AS id', NULL, 10);
SELECT pg_temp.fails('23505', 'a unique index that comes after', 'CREATE TABLE cfx_fails (id int)',
    'SELECT id / 2 FROM generate_series($1, $2) AS id', 'CREATE UNIQUE INDEX ON cfx_fails (id)');
SELECT pg_temp.fails('23505', 'a deferred unique constraint', $$
    CREATE TABLE cfx_fails (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)
$$, 'SELECT id / 2 FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23P01', 'an exclusion constraint', $$
    CREATE TABLE cfx_fails (r int4range, EXCLUDE USING gist (r WITH &&))
$$, 'SELECT int4range(id::int, id::int + 2) FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23503', 'a foreign key', 'CREATE TABLE cfx_fails (id int REFERENCES cfx_types.target)',
    'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23503', 'a foreign key that comes after', 'CREATE TABLE cfx_fails (id int)',
    'SELECT id FROM generate_series($1, $2) AS id', $$
    ALTER TABLE cfx_fails ADD FOREIGN KEY (id) REFERENCES cfx_types.target
$$);
SELECT pg_temp.fails('23514', 'no partition', $$
    CREATE TABLE cfx_fails (id int) PARTITION BY RANGE (id);
    CREATE TABLE cfx_fails_1 PARTITION OF cfx_fails FOR VALUES FROM (1) TO (3000)
$$, 'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23514', 'a CHECK of one partition', $$
    CREATE TABLE cfx_fails (id int) PARTITION BY RANGE (id);
    CREATE TABLE cfx_fails_1 PARTITION OF cfx_fails FOR VALUES FROM (1) TO (2000);
    CREATE TABLE cfx_fails_2 PARTITION OF cfx_fails (CHECK (id < 2999)) DEFAULT
$$, 'SELECT id FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('23505', 'a unique index of partitions', $$
    CREATE TABLE cfx_fails (id int PRIMARY KEY) PARTITION BY HASH (id);
    CREATE TABLE cfx_fails_1 PARTITION OF cfx_fails FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE cfx_fails_2 PARTITION OF cfx_fails FOR VALUES WITH (MODULUS 2, REMAINDER 1)
$$, 'SELECT id % 2999 FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('22001', 'a text that is too long', 'CREATE TABLE cfx_fails (v varchar(3))',
    'SELECT id::text FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('22003', 'ids beyond the type', 'CREATE TABLE cfx_fails (id smallint)',
    'SELECT id FROM generate_series($1, $2) AS id', NULL, 40000);
SELECT pg_temp.fails('22012', 'an error in the query', 'CREATE TABLE cfx_fails (id int)',
    'SELECT 1 / (id - 2999) FROM generate_series($1, $2) AS id');
SELECT pg_temp.fails('54000', 'a row longer than a page',
    (
        SELECT format('CREATE TABLE cfx_fails (%s)', string_agg('c' || n || ' bigint DEFAULT 1', ', '))
        FROM generate_series(1, 1100) AS n
    ), 'SELECT id FROM generate_series($1, $2) AS id', NULL, 10);
-- over one that is loaded: that one stays
SELECT bench.create_fixture('cfx_stays', 'CREATE TABLE cfx_stays (id int CHECK (id < 1500))',
    'SELECT id FROM generate_series($1, $2) AS id', rows => 100) \g /dev/null
SELECT is(bench.load('cfx_stays'), 100::bigint, 'without rows it is the definition''s number');
SELECT throws_ok($$SELECT bench.load('cfx_stays', 2000, 2)$$, '23514', NULL, 'a load that fails');
SELECT
    is((SELECT count(*) FROM bench_data.cfx_stays), 100::bigint, 'leaves the fixture as it was'),
    is((SELECT rows FROM bench.fixtures WHERE name = 'cfx_stays'), 100::bigint, 'registered as it was'),
    is(pg_temp.remains('no table'), '', 'and nothing else');

--
-- Definitions that are refused
--
CREATE FUNCTION pg_temp.refuses(state text, title text, ddl text,
    rows_query text DEFAULT 'SELECT id FROM generate_series($1, $2) AS id', after_ddl text DEFAULT NULL,
    rows bigint DEFAULT 10, name text DEFAULT 'cfx_refused')
    RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT throws_ok(
        format('SELECT bench.create_fixture(%L, %L, %L, %L, %L)', name, ddl, rows_query, after_ddl, rows),
        state, NULL, title);
    RETURN NEXT is(concat(pg_temp.remains('cfx_refused'),
        (SELECT string_agg(d.name, ',') FROM bench.fixture_definitions d WHERE d.name = $7 AND NOT builtin)),
        '', title || ': nothing is left');
    PERFORM bench.drop_fixture(d.name) FROM bench.fixture_definitions d WHERE d.name = 'cfx_refused';
END $$;
\set table '\'CREATE TABLE cfx_refused (id int)\''
SELECT pg_temp.refuses('22004', 'no name', :table, name => NULL);
SELECT pg_temp.refuses('22004', 'no ddl', NULL);
SELECT pg_temp.refuses('22004', 'no query', :table, NULL);
SELECT pg_temp.refuses('22004', 'no rows', :table, rows => NULL);
SELECT pg_temp.refuses('22023', 'an empty name', :table, name => '');
SELECT pg_temp.refuses('22023', 'a name of 64 bytes', :table, name => 'cfx_refused' || repeat('x', 53));
SELECT pg_temp.refuses('22023', 'rows -1', :table, rows => -1);
SELECT pg_temp.refuses('42501', 'a built-in name', 'CREATE TABLE pk (id int)', name => 'pk');
SELECT pg_temp.refuses('42P01', 'no statement', '');
SELECT pg_temp.refuses('42P01', 'another table', 'CREATE TABLE cfx_refused_not (id int)');
SELECT pg_temp.refuses('42P01', 'a table elsewhere', 'CREATE TABLE public.cfx_refused (id int)');
SELECT pg_temp.refuses('42P01', 'a temporary table', 'CREATE TEMP TABLE cfx_refused (id int)');
SELECT pg_temp.refuses(NULL, 'a partition of another table', $$
    CREATE TABLE cfx_refused_whole (id int) PARTITION BY LIST (id);
    CREATE TABLE cfx_refused PARTITION OF cfx_refused_whole DEFAULT
$$);
SELECT pg_temp.refuses('0A000', 'also a view', $$
    CREATE TABLE cfx_refused (id int);
    CREATE VIEW cfx_refused_view AS SELECT 1
$$);
SELECT pg_temp.refuses(NULL, 'a view of that name', 'CREATE VIEW cfx_refused AS SELECT 1 AS id');
SELECT pg_temp.refuses(NULL, 'a materialized view', 'CREATE MATERIALIZED VIEW cfx_refused AS SELECT 1 AS id');
SELECT pg_temp.refuses('0A000', 'also a function', $$
    CREATE TABLE cfx_refused (id int);
    CREATE FUNCTION cfx_refused_function() RETURNS int LANGUAGE sql AS 'SELECT 1'
$$);
SELECT pg_temp.refuses('0A000', 'also a type', $$
    CREATE TYPE cfx_refused_type AS (a int);
    CREATE TABLE cfx_refused (id int)
$$);
SELECT pg_temp.refuses('0A000', 'also a domain', $$
    CREATE DOMAIN cfx_refused_domain AS int;
    CREATE TABLE cfx_refused (id int)
$$);
SELECT pg_temp.refuses('0A000', 'also a sequence', $$
    CREATE SEQUENCE cfx_refused_seq;
    CREATE TABLE cfx_refused (id int)
$$);
SELECT pg_temp.refuses('0A000', 'also statistics', $$
    CREATE TABLE cfx_refused (id int, b int);
    CREATE STATISTICS cfx_refused_stat ON id, b FROM cfx_refused
$$);
SELECT pg_temp.refuses('0A000', 'a view that comes after', :table,
    after_ddl => 'CREATE VIEW cfx_refused_view AS SELECT 1');
SELECT pg_temp.refuses('42601', 'a syntax error in ddl', 'CREATE TABEL cfx_refused (id int)');
SELECT pg_temp.refuses('42P07', 'a table twice', $$
    CREATE TABLE cfx_refused (id int);
    CREATE TABLE cfx_refused (id int)
$$);
SELECT pg_temp.refuses(NULL, 'a transaction of its own', 'COMMIT; CREATE TABLE cfx_refused (id int)');
SELECT pg_temp.refuses('42601', 'rows of an INSERT', :table, $$
    INSERT INTO cfx_refused SELECT generate_series($1, $2) RETURNING id
$$);
SELECT pg_temp.refuses('42601', 'two statements', :table, 'SELECT id FROM generate_series($1, $2) AS id; SELECT 1');
SELECT pg_temp.refuses('42601', 'an INSERT behind the SELECT', :table,
    'SELECT id FROM generate_series($1, $2) AS id; DROP TABLE cfx_refused');
SELECT pg_temp.refuses('42601', 'SELECT INTO', :table, $$
    SELECT id INTO cfx_refused_into FROM generate_series($1, $2) AS id
$$);
SELECT pg_temp.refuses('42601', 'an empty query', :table, '');
SELECT pg_temp.refuses('42601', 'only a comment', :table, '-- $1 $2');
SELECT pg_temp.refuses('42601', 'no $1', :table, 'SELECT id FROM generate_series(1, $2) AS id');
SELECT pg_temp.refuses('42601', 'no $2', :table, 'SELECT id FROM generate_series($1, 10) AS id');
SELECT pg_temp.refuses('42601', 'a syntax error in the query', :table, 'SELECT id FORM generate_series($1, $2) AS id');
SELECT pg_temp.refuses('42601', 'ON CONFLICT', :table, $$
    SELECT id FROM generate_series($1, $2) AS id ON CONFLICT DO NOTHING
$$);
SELECT pg_temp.refuses('42601', 'RETURNING', :table, 'SELECT id FROM generate_series($1, $2) AS id RETURNING id');
SELECT pg_temp.refuses('42P02', 'a third parameter', :table, 'SELECT id + $3 FROM generate_series($1, $2) AS id');
SELECT pg_temp.refuses('42804', 'types that do not fit', :table, 'SELECT now() FROM generate_series($1, $2) AS id');
SELECT pg_temp.refuses('42601', 'more columns than the table', :table,
    'SELECT id, id FROM generate_series($1, $2) AS id');
SELECT pg_temp.refuses('42P01', 'a query of a table that is not there', :table,
    'SELECT id FROM cfx_refused_source WHERE id BETWEEN $1 AND $2');
SELECT pg_temp.refuses('42601', 'values for a generated column', $$
    CREATE TABLE cfx_refused (twice int GENERATED ALWAYS AS (id * 2) STORED, id int)
$$, 'SELECT id * 2, id FROM generate_series($1, $2) AS id');
SELECT pg_temp.refuses('42703', 'after_ddl that fails', :table, after_ddl => 'CREATE INDEX ON cfx_refused (nonesuch)');
SELECT pg_temp.refuses(NULL, 'after_ddl that drops the table', :table, after_ddl => 'DROP TABLE cfx_refused');
SELECT pg_temp.refuses(NULL, 'after_ddl that takes it elsewhere', :table,
    after_ddl => 'ALTER TABLE cfx_refused SET SCHEMA public');
SELECT pg_temp.refuses(NULL, 'after_ddl that renames it', :table,
    after_ddl => 'ALTER TABLE cfx_refused RENAME TO cfx_refused_other');
SELECT pg_temp.refuses('25001', 'CREATE INDEX CONCURRENTLY', :table,
    after_ddl => 'CREATE INDEX CONCURRENTLY ON cfx_refused (id)');
-- sequences stand past the loaded ids, and generated columns stand anywhere
SELECT lives_ok($$
    SELECT bench.create_fixture('cfx_ids', 'CREATE TABLE cfx_ids (twice int GENERATED ALWAYS AS (id * 2) STORED,
            id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, down int GENERATED BY DEFAULT AS IDENTITY (INCREMENT -2),
            s serial, "More" int DEFAULT 7)',
        'SELECT id, -id, id + 5 FROM generate_series($1, $2) AS id', rows => 100)
$$, 'columns of identity and generated ones');
SELECT lives_ok($$ SELECT bench.load('cfx_ids', jobs => 2) $$, 'are loaded');
INSERT INTO bench_data.cfx_ids DEFAULT VALUES;
SELECT results_eq('SELECT twice, id, down, s, "More" FROM bench_data.cfx_ids WHERE id >= 100 ORDER BY id',
    $$ VALUES (200, 100, -100, 105, 7), (202, 101, -102, 106, 7) $$, 'and the next row has the next values');
SELECT bench.unload('cfx_ids');
SELECT bench.drop_fixture('cfx_ids');
-- in a block that goes on, and in one that does not
BEGIN;
CREATE TABLE cfx_types.before (n int);
SELECT throws_ok($$
    SELECT bench.create_fixture('cfx_refused', 'CREATE TABLE cfx_refused (id int)',
        'SELECT now() FROM generate_series($1, $2)')
$$, '42804', NULL, 'in a transaction');
SELECT lives_ok($$
    SELECT bench.create_fixture('cfx_refused', 'CREATE TABLE cfx_refused (id int)',
        'SELECT id FROM generate_series($1, $2) AS id')
$$, 'the next one is tried all the same');
SELECT is(count(*), 0::bigint, 'what was done before is still there') FROM cfx_types.before;
ROLLBACK;
SELECT is(count(*), 0::bigint, 'a definition is the transaction''s')
FROM bench.fixture_definitions
WHERE name = 'cfx_refused';
SET search_path = cfx_types;
SELECT bench.create_fixture('cfx_path', 'CREATE TABLE cfx_path (id int)',
    'SELECT id FROM generate_series($1, $2) AS id') \g /dev/null
SELECT current_setting('search_path') AS path, bench.load('cfx_path', 5) AS loaded \gset
RESET search_path;
SELECT bench.create_fixture('cfx_set', 'SET work_mem = ''77MB''; CREATE TABLE cfx_set (id int)',
    'SELECT id FROM generate_series($1, $2) AS id', 'SET search_path = pg_catalog') \g /dev/null
SELECT
    isnt(current_setting('work_mem'), '77MB', 'a SET in the statements is not the session''s'),
    is(current_setting('search_path'), '"$user", public', 'whichever');
SELECT
    is(:loaded, 5, 'the session''s search_path does not matter'),
    is(:'path'::text, 'cfx_types', 'and stays as it was');

--
-- Replacing and dropping
--
SELECT bench.create_fixture('cfx_path', 'CREATE TABLE cfx_path (id int, v text)',
    'SELECT id, ''new'' FROM generate_series($1, $2) AS id', NULL, 7) \g /dev/null
SELECT is(ddl || '|' || rows_query || '|' || rows,
    'CREATE TABLE cfx_path (id int, v text)|SELECT id, ''new'' FROM generate_series($1, $2) AS id|7',
    'one''s own is replaced')
FROM bench.fixture_definitions
WHERE name = 'cfx_path';
SELECT is(rows, 5::bigint, 'what was loaded stays') FROM bench.fixtures WHERE name = 'cfx_path';
SELECT throws_ok($$SELECT bench.drop_fixture('cfx_path')$$, '2BP01', NULL, 'a loaded one is not dropped');
SELECT is(bench.load('cfx_path'), 7::bigint, 'the next load is the new one''s');
SELECT is(array_agg(DISTINCT v), '{new}'::text[], 'with its rows') FROM bench_data.cfx_path;
SELECT bench.unload('cfx_path') \g /dev/null
SELECT lives_ok($$SELECT bench.drop_fixture('cfx_path')$$, 'after unload it is dropped');
SELECT
    throws_ok($$SELECT bench.load('cfx_path')$$, '42704', NULL, 'and unknown'),
    throws_ok($$SELECT bench.drop_fixture('cfx_path')$$, '42704', NULL, 'for drop_fixture, too'),
    throws_ok($$SELECT bench.drop_fixture('pk')$$, '42501', NULL, 'a built-in one is not dropped'),
    throws_ok($$SELECT bench.drop_fixture(NULL)$$, '22004', NULL, 'nor NULL');

--
-- Workloads on them
--
\o /dev/null
SELECT bench.create_fixture('cfx_run', 'CREATE TABLE cfx_run (id int, n int DEFAULT 0)',
    'SELECT id FROM generate_series($1, $2) AS id', 'ALTER TABLE cfx_run ADD PRIMARY KEY (id)', 300);
SELECT bench.create_workload('cfx_run', E'\\set id random(1, :rows)\nUPDATE cfx_run SET n = n + 1 WHERE id = :id;',
    'cfx_run');
SELECT bench.create_workload('cfx_last', 'UPDATE cfx_run SET n = -1 WHERE id = :rows;', 'cfx_run');
\o
SELECT bench.run('cfx_run', 2, transactions => 100) AS run_id \gset
SELECT is(rows, 300::bigint, 'a run loads its fixture with its own number of rows')
FROM bench.fixtures
WHERE name = 'cfx_run';
SELECT is(sum(n), 200::bigint, 'and works on it') FROM bench_data.cfx_run;
SELECT
    is(harness, 200::bigint, 'as the audit says'),
    ok(ok, 'and the server')
FROM bench.audit(:run_id)
WHERE counter = 'n_tup_upd';
SELECT bench.load('cfx_run', 40) \g /dev/null
SELECT bench.run('cfx_last', transactions => 1) \g /dev/null
SELECT is(array_agg(id), '{40}'::int[], ':rows is what was loaded') FROM bench_data.cfx_run WHERE n = -1;

--
-- Other roles
--
\o /dev/null
DROP ROLE IF EXISTS cfx_alice, cfx_bob, cfx_none;
CREATE ROLE cfx_alice LOGIN;
CREATE ROLE cfx_bob LOGIN;
CREATE ROLE cfx_none LOGIN;
GRANT EXECUTE ON FUNCTION bench.load, bench.unload, bench.create_fixture, bench.drop_fixture, bench.create_workload,
    bench.drop_workload, bench.run TO cfx_alice, cfx_bob;
CREATE SCHEMA cfx_home;
GRANT CREATE, USAGE ON SCHEMA cfx_home TO cfx_alice;
GRANT USAGE ON SCHEMA cfx_types TO cfx_alice, cfx_bob;
CREATE SCHEMA cfx_own AUTHORIZATION cfx_alice;
\o
SET SESSION AUTHORIZATION cfx_none;
SELECT
    throws_ok($$SELECT bench.create_fixture('cfx_x', 'CREATE TABLE cfx_x (id int)', 'SELECT generate_series($1, $2)')$$,
        '42501', 'permission denied for function create_fixture', 'without EXECUTE there is no create_fixture'),
    throws_ok($$SELECT bench.drop_fixture('cfx_run')$$, '42501', 'permission denied for function drop_fixture',
        'no drop_fixture'),
    throws_ok($$SELECT bench.load('cfx_run')$$, '42501', 'permission denied for function load', 'and no load');
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION cfx_alice;
SELECT lives_ok($$
    SELECT bench.create_fixture('cfx_alices',
        'CREATE TABLE cfx_alices (id serial PRIMARY KEY, who text, p cfx_types.pair)',
        'SELECT id, current_user, ROW(id, ''b'')::cfx_types.pair FROM generate_series($1, $2) AS id',
        'CREATE INDEX ON cfx_alices (who)', 50)
$$, 'a role that may create in one schema only may define a fixture');
SELECT is(owner, 'cfx_alice', 'it is its own') FROM bench.fixture_definitions WHERE name = 'cfx_alices';
SELECT
    throws_ok($$SELECT bench.load('cfx_alices', options => '{"schema": "cfx_new"}')$$, '42501',
        'permission denied for database postgres', 'no schema is made for it'),
    throws_ok($$SELECT bench.load('cfx_alices')$$, '42501', 'permission denied for schema bench_data',
        'nor may it use any');
SELECT is(bench.load('cfx_alices', 3000, 2, '{"schema": "cfx_home"}'), 3000::bigint, 'it may load it there');
SELECT is(array_agg(DISTINCT who), '{cfx_alice}'::text[], 'as itself') FROM cfx_home.cfx_alices;
SELECT is(array_agg(relname || ' ' || relowner::regrole ORDER BY relname),
    '{"cfx_alices cfx_alice","cfx_alices_id_seq cfx_alice","cfx_alices_pkey cfx_alice","cfx_alices_who_idx cfx_alice"}',
    'all is its own')
FROM pg_class
WHERE relnamespace = 'cfx_home'::regnamespace;
SELECT is(count(*), 0::bigint, 'and no schema of a load is left')
FROM pg_namespace
WHERE nspname LIKE 'bench\_loading%';
SELECT
    throws_ok($$
        SELECT bench.create_fixture('cfx_run', 'CREATE TABLE cfx_run (id int)', 'SELECT generate_series($1, $2)')
    $$, '42501', NULL, 'another role''s is not replaced'),
    throws_ok($$SELECT bench.drop_fixture('cfx_run')$$, '42501', NULL, 'nor dropped');
SELECT
    throws_ok($$
        SELECT bench.create_fixture('cfx_x', 'CREATE TABLE cfx_x (id int); CREATE TABLE bench.cfx_x (id int)',
            'SELECT generate_series($1, $2)')
    $$, '42501', NULL, 'what ddl does is done with the role''s own rights'),
    throws_ok($$
        SELECT bench.create_fixture('cfx_x', 'CREATE TABLE cfx_x (id int); DELETE FROM bench_internal.run_log',
            'SELECT generate_series($1, $2)')
    $$, '42501', NULL, 'on the harness''s tables as well'),
    throws_ok($$
        SELECT bench.create_fixture('cfx_x', 'CREATE TABLE cfx_x (id int)',
            'SELECT id FROM cfx_types.target WHERE id BETWEEN $1 AND $2')
    $$, '42501', NULL, 'and so is the query');
-- row security binds the owner only when it is forced; it does not bind superusers
SELECT bench.create_fixture('cfx_secured', $$
    CREATE TABLE cfx_secured (id int);
    ALTER TABLE cfx_secured ENABLE ROW LEVEL SECURITY;
    CREATE POLICY p ON cfx_secured USING (true) WITH CHECK (id < 1500)
$$, 'SELECT id FROM generate_series($1, $2) AS id') \g /dev/null
SELECT is(bench.load('cfx_secured', 2000, 2, '{"schema": "cfx_own"}'), 2000::bigint,
    'row security that does not bind the owner');
SELECT bench.create_fixture('cfx_secured', $$
    CREATE TABLE cfx_secured (id int);
    ALTER TABLE cfx_secured ENABLE ROW LEVEL SECURITY;
    ALTER TABLE cfx_secured FORCE ROW LEVEL SECURITY;
    CREATE POLICY p ON cfx_secured USING (true) WITH CHECK (id < 1500)
$$, 'SELECT id FROM generate_series($1, $2) AS id') \g /dev/null
SELECT is(bench.load('cfx_secured', 1499, 2, '{"schema": "cfx_own"}'), 1499::bigint,
    'and that does: rows that it lets pass');
SELECT throws_ok($$SELECT bench.load('cfx_secured', 2000, 2, '{"schema": "cfx_own"}')$$, '42501', NULL,
    'rows that it does not');
SELECT is(count(*), 1499::bigint, 'the fixture is as it was') FROM cfx_own.cfx_secured;
RESET SESSION AUTHORIZATION;
SELECT throws_ok($$SELECT bench.load('cfx_alices', 10)$$, '42501', NULL,
    'a superuser does not run another role''s statements');
SELECT is(pg_temp.remains('no table'), '', 'nothing is left');
SELECT is(rows, 3000::bigint, 'and the fixture is as it was') FROM bench.fixtures WHERE name = 'cfx_alices';
SET SESSION AUTHORIZATION cfx_bob;
SELECT
    throws_ok($$SELECT bench.unload('cfx_alices')$$, '42501', NULL, 'another role does not unload it'),
    throws_ok($$
        SELECT bench.create_fixture('cfx_alices', 'CREATE TABLE cfx_alices (id int)', 'SELECT generate_series($1, $2)')
    $$, '42501', NULL, 'nor redefine it'),
    throws_ok($$SELECT bench.load('cfx_alices', 10, 1, '{"schema": "cfx_home"}')$$, '42501', NULL, 'nor replace it');
RESET SESSION AUTHORIZATION;
-- a member may
GRANT cfx_alice TO cfx_bob;
SET SESSION AUTHORIZATION cfx_bob;
SELECT lives_ok($$
    SELECT bench.create_fixture('cfx_alices', 'CREATE TABLE cfx_alices (id int)',
        'SELECT id FROM generate_series($1, $2) AS id', NULL, 20)
$$, 'a member redefines it');
SELECT is(owner, 'cfx_bob', 'and answers for it') FROM bench.fixture_definitions WHERE name = 'cfx_alices';
RESET SESSION AUTHORIZATION;
SET ROLE cfx_alice;
SELECT is(bench.load('cfx_alices', options => '{"schema": "cfx_home"}'), 20::bigint, 'the other role loads it anew');
RESET ROLE;
-- a superuser takes it over, and may then load it
SELECT lives_ok($$
    SELECT bench.create_fixture('cfx_alices', 'CREATE TABLE cfx_alices (id int)',
        'SELECT id FROM generate_series($1, $2) AS id', NULL, 30)
$$, 'a superuser takes a definition over');
SELECT is(owner, current_user::text, 'which is then its own') FROM bench.fixture_definitions WHERE name = 'cfx_alices';
SELECT is(bench.load('cfx_alices', options => '{"schema": "cfx_data"}'), 30::bigint, 'to load');
SELECT is(count(*), 20::bigint, 'beside the other') FROM cfx_home.cfx_alices;
-- names are looked up on the role's own path, behind the fixture's
CREATE FUNCTION cfx_own.mine(id bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'mine ' || id $$;
CREATE FUNCTION cfx_types.mine(id bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'not mine' $$;
ALTER ROLE cfx_alice SET search_path = cfx_own;
SET SESSION AUTHORIZATION cfx_alice;
SET search_path = cfx_types, public;
SELECT lives_ok($$
    SELECT bench.create_fixture('cfx_mine', 'CREATE TABLE cfx_mine (id int, v text)',
        'SELECT id, mine(id) FROM generate_series($1, $2) AS id')
$$, 'a query that needs the role''s search_path');
SELECT lives_ok($$SELECT bench.load('cfx_mine', 5, 1, '{"schema": "cfx_own"}')$$, 'is loaded with it');
SELECT is((SELECT string_agg(v, ',') FROM cfx_own.cfx_mine), 'mine 1,mine 2,mine 3,mine 4,mine 5',
    'whatever the caller has SET');
RESET search_path;
RESET SESSION AUTHORIZATION;

--
-- Errors of users' functions: SQLSTATEs that PostgreSQL does not define, and the context of another process
--
CREATE FUNCTION cfx_types.raises(state text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'raised here' USING ERRCODE = state, DETAIL = 'a detail'; END $$;
CREATE FUNCTION cfx_types.raises_when_planned(state text) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'raised here' USING ERRCODE = state; END $$;
CREATE FUNCTION cfx_types.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; context text;
BEGIN
    EXECUTE statement;
    RETURN 'none';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT;
    RETURN format('%s: %s, %s', state, message, substring(context from 'function cfx_types[.]raises[a-z_]*'));
END $$;
\o /dev/null
SELECT bench.create_fixture('cfx_raises', 'CREATE TABLE cfx_raises (id bigint)',
    $$SELECT cfx_types.raises('TS101') FROM generate_series($1, $2)$$, rows => 10);
SELECT bench.create_workload('cfx_fed', 'SELECT :id;');
SELECT bench.add_feeder('cfx_fed', $$SELECT cfx_types.raises('P0042') AS id$$);
\o
SELECT is(cfx_types.error_of($$SELECT bench.load('cfx_raises')$$),
    'TS101: raised here, function cfx_types.raises', 'of a loader');
SELECT is(cfx_types.error_of($$SELECT bench.create_fixture('cfx_x', 'CREATE TABLE cfx_x (id bigint);
    SELECT cfx_types.raises(''TS101'')', 'SELECT $1 + $2')$$),
    'TS101: raised here, function cfx_types.raises', 'of ddl');
SELECT is(cfx_types.error_of($$SELECT bench.create_fixture('cfx_x', 'CREATE TABLE cfx_x (id bigint)',
    'SELECT cfx_types.raises_when_planned(''TS102'') + $1 + $2')$$),
    'TS102: raised here, function cfx_types.raises_when_planned', 'as it is planned');
SELECT is(cfx_types.error_of($$SELECT bench.run('cfx_fed', transactions => 1)$$),
    'P0042: raised here, function cfx_types.raises', 'of a feeder');
SELECT is(cfx_types.error_of($$SELECT bench.preview(NULL, workload => 'cfx_fed')$$),
    'P0042: raised here, function cfx_types.raises', 'of a feeder that is previewed');
SELECT is(cfx_types.error_of($$SELECT cfx_types.raises('XX000')$$), 'XX000: raised here, function cfx_types.raises',
    'and nothing is left of them for the next one');
SELECT is(cfx_types.error_of($$SELECT bench.load('cfx_nonesuch')$$), '42704: fixture "cfx_nonesuch" does not exist, ',
    'ours');

\o /dev/null
DROP OWNED BY cfx_alice, cfx_bob, cfx_none CASCADE;
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'cfx\_%') AS w;
SELECT bench.drop_fixture(name) FROM (SELECT name FROM bench.fixture_definitions WHERE NOT builtin) AS f;
DROP ROLE cfx_alice, cfx_bob, cfx_none;
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname LIKE 'cfx\_%' \gexec
\o
SELECT is(count(*), 0::bigint, 'no schema of a load is left') FROM pg_namespace WHERE nspname LIKE 'bench\_loading%';
SELECT * FROM finish();
