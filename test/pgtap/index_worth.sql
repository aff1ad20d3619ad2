-- bench.index_worth: what indexes save, and what they cost.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

SELECT bench.load('pk', 100000) \g /dev/null
-- An index that no statement uses, and that each update pays for; copies are made at once. Next to what it costs, and
-- to a table that is read as a whole, the work of others is small.
CREATE FUNCTION iwo_slow(crt_time timestamp) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM generate_series(1, CASE WHEN crt_time < '2020-01-01' THEN 0 ELSE 10000 END));
END $$;
UPDATE bench_data.pk SET crt_time = '2000-01-01';
VACUUM bench_data.pk;
CREATE INDEX iwo_costs ON bench_data.pk (iwo_slow(crt_time));
CREATE INDEX iwo_idle ON bench_data.pk (id) WHERE id < 0;

--
-- All indexes of a workload's fixtures
--
SELECT bench.start_index_worth('pk_update', secs => 1.5, settings => '{"synchronous_commit": "off"}') AS sweep \gset
SELECT bench.wait_sweep(:sweep) \g /dev/null
CREATE TEMP TABLE found AS SELECT * FROM bench.index_worth_results(:sweep);
SELECT is(string_agg(index || ': ' || verdict, ', ' ORDER BY index),
    'bench_data.iwo_costs: costs, bench_data.pk_pkey: earns', 'each has its verdict, in processor time')
FROM bench.index_worth_results(:sweep, 'server_cpu_us') WHERE index <> 'bench_data.iwo_idle';
-- By latency other work on the machine may leave one undecided.
SELECT ok(verdict IN (right_one, 'inconclusive'), index || ': by latency, no verdict is wrong')
FROM found JOIN (VALUES ('bench_data.iwo_costs', 'costs'), ('bench_data.pk_pkey', 'earns')) AS v (index, right_one)
    USING (index);
-- Within the intervals, which hold in 95 of 100 times, or next to what the others are worth.
SELECT ok(saved_low < cost_high AND cost_low < saved_high OR abs(saved_us - cost_us) < (
        SELECT min(greatest(saved_us, cost_us)) / 4 FROM found AS f WHERE index <> 'bench_data.iwo_idle'),
    'one that nothing uses is worth nothing')
FROM found WHERE index = 'bench_data.iwo_idle';
SELECT ok(cost_us > 100 AND cost_low < cost_us AND cost_us < cost_high, 'with what it costs')
FROM found
WHERE index = 'bench_data.iwo_costs';
SELECT ok(saved_us > 100 AND saved_low < saved_us AND saved_us < saved_high, 'and what it saves')
FROM found
WHERE index = 'bench_data.pk_pkey';
SELECT results_eq('SELECT index, bytes > 0, definition FROM found ORDER BY index',
    $$SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) > 0, pg_get_indexdef(indexrelid) FROM pg_index
      WHERE indrelid = 'bench_data.pk'::regclass ORDER BY 1$$, 'their sizes and definitions');
SELECT is(error, NULL, 'nothing went wrong') FROM found;
SELECT is(count(*), 6::bigint, 'each is two duels') FROM found, bench.duels
WHERE run_id IN (reads_run_id, writes_run_id);
SELECT is(count(*), 3::bigint, 'pending lists of GIN indexes are emptied within the time of one')
FROM found JOIN bench.duels ON run_id = writes_run_id
WHERE '{"gin_pending_list_limit": "1MB"}' <@ a AND '{"gin_pending_list_limit": "1MB"}' <@ b;
SELECT results_eq(format('SELECT index, cost_us, verdict FROM bench.index_worth_results(%s)', :sweep),
    'SELECT index, cost_us, verdict FROM found', 'results are there for later, too');
SELECT matches(bench.sweep_report(:sweep), 'of 3 indexes ' || count(*) FILTER (WHERE verdict = 'earns') || ' earn more',
    'the report has the answer')
FROM found;
SELECT is(count(*), 0::bigint, 'no copy is left') FROM pg_namespace WHERE nspname LIKE 'bench\_copy%';
SELECT is(count(*), 3::bigint, 'and every index is there') FROM pg_index WHERE indrelid = 'bench_data.pk'::regclass;
SELECT is(sum(updated) FILTER (WHERE run_id IN (SELECT writes_run_id FROM found)), 0::numeric,
    'the writes went to the copies')
FROM bench.relations
WHERE relation = 'bench_data.pk' AND kind = 'table';

--
-- One, and one that is not there yet
--
SELECT ok(count(*) = 1 AND min(index) = 'bench_data.iwo_idle' AND min(verdict) IN ('same', 'inconclusive'),
    'the one named')
FROM bench.index_worth('pk_update', 'iwo_idle', secs => 0.5);
CREATE TABLE public.iwo_table (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int,
    b int GENERATED ALWAYS AS (a * 2) STORED,
    UNIQUE (a));
INSERT INTO public.iwo_table (a) SELECT i FROM generate_series(1, 20000) AS i;
SELECT bench.create_workload('iwo_reads', '\set a random(1, 20000)
SELECT count(*) FROM iwo_table WHERE b = :a;') \g /dev/null
SELECT bench.start_index_worth('iwo_reads', 'CREATE INDEX iwo_b ON iwo_table (b)', secs => 0.5) AS candidate \gset
SELECT bench.wait_sweep(:candidate) \g /dev/null
SELECT is(index || ': ' || verdict, 'iwo_b: earns', 'a candidate')
FROM bench.index_worth_results(:candidate, 'server_cpu_us');
SELECT is(count(*), 2::bigint, 'is not made') FROM pg_index WHERE indrelid = 'public.iwo_table'::regclass;
SELECT bench.create_workload('iwo_writes', '\set a random(20001, 1000000000)
INSERT INTO iwo_table (a) VALUES (:a) ON CONFLICT (a) DO NOTHING;') \g /dev/null
SELECT is(error, NULL, 'a copy has identity, generated columns and unique indexes')
FROM bench.index_worth('iwo_writes', 'CREATE INDEX iwo_b ON iwo_table (b)', secs => 0.3);
SELECT is(count(*), 20000::bigint, 'and the table stays as it is') FROM public.iwo_table;
SELECT bench.create_workload('iwo_qualified', 'UPDATE bench_data.pk SET info = info WHERE id = 1;', fixture => 'pk')
    \g /dev/null
SELECT is(concat_ws(', ', error, saved_us IS NOT NULL, coalesce(cost_us::text, 'nothing'), verdict),
    'the workload names bench_data.pk with its schema, and would not find a copy, t, nothing, not measured',
    'a workload that names the schema does not reach a copy')
FROM bench.index_worth('iwo_qualified', 'iwo_costs', secs => 0.3);
SELECT bench.create_workload('iwo_fails', 'SELECT 1 / (id - id) FROM pk WHERE id = 1;', fixture => 'pk') \g /dev/null
SELECT bench.start_index_worth('iwo_fails', 'iwo_idle', secs => 0.3) AS failed \gset
SELECT bench.wait_sweep(:failed) \g /dev/null
SELECT is(concat_ws(', ', verdict, saved_us, cost_us, error), 'not measured, division by zero',
    'without a completed run: no figures and no verdict')
FROM bench.index_worth_results(:failed);
SELECT matches(bench.sweep_report(:failed), E'of 1 index 0 earn[^(]*, 1 not measured\\s+\\(bench_data.iwo_idle\\)',
    'without a run: the report counts no result');

--
-- What is refused
--
SELECT throws_ok(format('SELECT * FROM bench.index_worth(''pk_update'', %L)', index), code, NULL, index)
FROM (
    VALUES ('nosuchindex', '42704'), ('bench_data.pk', '42704'), ('CREATE INDEX ON pk (id)', '22023'),
        ('CREATE INDEX x ON bench_data.pk (id)', '22023'), ('CREATE TABLE x (a int)', '22023'),
        ('CREATE INDEX CONCURRENTLY x ON pk (id)', '22023'), ('CREATE INDEX x ON nosuchtable (id)', '42P01'),
        ('CREATE INDEX x ON pk (id); SELECT 1', '22023'), ('CREATE INDEX x ON', '42601')
) AS t (index, code);
SELECT bench.create_workload('iwo_nothing', 'SELECT 1;') \g /dev/null
SELECT throws_ok($$SELECT * FROM bench.index_worth('iwo_nothing')$$, '55000', NULL, 'a workload without a table');
CREATE VIEW public.iwo_behind AS SELECT b FROM public.iwo_table;
SELECT bench.create_workload('iwo_views', 'SELECT count(*) FROM iwo_behind WHERE b = 4;') \g /dev/null
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'public.iwo_table_a_key'::regclass;
SELECT is(string_agg(index, ', '), 'public.iwo_table_pkey', 'the valid indexes of a table behind a view')
FROM bench.index_worth('iwo_views', secs => 0.2);
SELECT throws_ok($$SELECT * FROM bench.index_worth('iwo_views', 'iwo_table_a_key')$$, '55000',
    'index "iwo_table_a_key" is invalid', 'an invalid one is named so');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'public.iwo_table_a_key'::regclass;
DROP VIEW public.iwo_behind;
SELECT throws_ok($$SELECT * FROM bench.index_worth('pk_update', rounds => NULL)$$, '22004');
SELECT throws_ok($$SELECT * FROM bench.index_worth('pk_update', margin => -1)$$, '22023');
SELECT throws_ok($$SELECT * FROM bench.index_worth_results(-1)$$, '42704');
SELECT throws_ok(format('SELECT * FROM bench.index_worth_results(%s, ''tps'')', :sweep), '22023');
SELECT bench.sweep('pk_select', '{1}', secs => 0.1) AS other \gset
SELECT throws_ok(format('SELECT * FROM bench.index_worth_results(%s)', :other), '55000', NULL, 'another sweep is none');

--
-- Roles: what belongs to others is not executed with more rights than theirs, nor read without privilege
--
DROP ROLE IF EXISTS iwo_alice;
CREATE ROLE iwo_alice LOGIN;
SELECT bench.allow('iwo_alice') \g /dev/null
SELECT format('REVOKE CREATE ON DATABASE %I FROM PUBLIC', current_database()) \gexec
CREATE SCHEMA iwo_alice AUTHORIZATION iwo_alice;
SET SESSION AUTHORIZATION iwo_alice;
CREATE TABLE iwo_alice.mine (id int PRIMARY KEY, a int);
-- A function of a constraint, which is executed where rows are copied, tells as whom.
CREATE TABLE iwo_alice.told (role name);
CREATE FUNCTION iwo_alice.tell() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO iwo_alice.told VALUES (session_user), (current_user);
    RETURN true;
END $$;
INSERT INTO iwo_alice.mine SELECT i, i FROM generate_series(1, 100) AS i;
ALTER TABLE iwo_alice.mine ADD CHECK (iwo_alice.tell());
TRUNCATE iwo_alice.told;
SELECT bench.load('pk', 1000, options => '{"schema": "iwo_alice"}') \g /dev/null
SELECT matches(concat_ws(' ', saved_us > 0, verdict, error), 't not measured .*permission denied for database',
    'who may make no schema learns why')
FROM bench.index_worth('pk_update', secs => 0.3, settings => '{"search_path": "iwo_alice"}');
RESET SESSION AUTHORIZATION;
SELECT bench.create_workload('iwo_alices', 'SELECT 1;') \g /dev/null
SELECT is(error, NULL, 'a superuser copies another role''s table')
FROM bench.index_worth('iwo_alices', 'CREATE INDEX iwo_a ON mine (a)', secs => 0.2,
    settings => '{"search_path": "iwo_alice"}');
SELECT is(array_agg(DISTINCT role), '{iwo_alice}', 'by a session of that role') FROM iwo_alice.told;
CREATE VIEW public.iwo_view AS SELECT * FROM public.iwo_table;
SELECT throws_ok($$SELECT * FROM bench.index_worth('iwo_reads', 'CREATE INDEX x ON iwo_view (a)')$$, '42809', NULL,
    'a view is not copied');
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE iwo_space LOCATION '';
CREATE TABLE public.iwo_stored (id int PRIMARY KEY USING INDEX TABLESPACE iwo_space, a text)
    WITH (fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = off) TABLESPACE iwo_space;
CREATE INDEX iwo_stored_a ON public.iwo_stored (a) WITH (fillfactor = 60);
-- What a sweep has executed is executed once more.
SELECT bench.start_index_worth('iwo_alices', 'iwo_stored_a', secs => 0.1) AS stored \gset
SELECT bench.wait_sweep(:stored) \g /dev/null
CREATE TEMP TABLE stored_variant AS SELECT v.value -> 'schemas' ->> 0 AS schema, v.value #>> '{sql,apply,0}' AS copy
FROM bench.sweeps, jsonb_array_elements(variants) AS v WHERE sweep_id = :stored AND v.value -> 'sql' <> 'null';
SELECT format('CREATE SCHEMA %I', schema) FROM stored_variant \gexec
\o /dev/null
SELECT copy FROM stored_variant \gexec
\o
SELECT format('ALTER SCHEMA %I RENAME TO iwo_copy', schema) FROM stored_variant \gexec
CREATE VIEW pg_temp.stored AS SELECT c.relnamespace::regnamespace::text AS schema, c.relname, c.reloptions,
    t.reloptions AS toast, c.reltablespace, c.relam
FROM pg_class AS c LEFT JOIN pg_class AS t ON t.oid = c.reltoastrelid WHERE c.relname LIKE 'iwo\_stored%';
SELECT bag_eq('SELECT relname, reloptions, toast, reltablespace, relam FROM pg_temp.stored WHERE schema = ''iwo_copy''',
    'SELECT relname, reloptions, toast, reltablespace, relam FROM pg_temp.stored WHERE schema = ''public''',
    'a copy is stored as the table is');
SELECT is(count(*) FILTER (WHERE reltablespace <> 0) || ', ' || count(reloptions) || ', ' || count(toast), '2, 2, 1',
    'with its tablespaces and storage parameters')
FROM pg_temp.stored WHERE schema = 'iwo_copy';
DROP SCHEMA iwo_copy CASCADE;
DROP TABLE public.iwo_stored CASCADE;
DROP TABLESPACE iwo_space;
DROP OWNED BY iwo_alice;
SELECT * FROM finish();
