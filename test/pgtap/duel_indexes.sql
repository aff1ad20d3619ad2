-- Hidden indexes under attack: constraints, DDL meanwhile, other roles' indexes, parallel workers, plans made anew.
SET client_min_messages = error;
SELECT no_plan();

CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, note text);
CREATE TABLE child (id int PRIMARY KEY, parent_id int REFERENCES parent ON DELETE CASCADE, part text);
CREATE INDEX child_parent ON child (parent_id);
CREATE INDEX parent_note ON parent (note);
INSERT INTO parent SELECT i, i, 'n' || i FROM generate_series(1, 5000) AS i;
INSERT INTO child SELECT i, i, 'c' FROM generate_series(1, 5000) AS i;
ANALYZE parent, child;
CREATE FUNCTION last_run() RETURNS bigint LANGUAGE sql AS 'SELECT max(run_id) FROM bench.duels';

--
-- Constraints
--
SELECT bench.duel(NULL, '{}', '{"hide_indexes": ["parent_pkey", "parent_code_key", "child_pkey", "child_parent"]}',
    clients => 2, secs => 1, continue_on_error => true, script => $$
\set id random(1, 5000)
\set other random(1, 10000)
UPDATE child SET parent_id = :other WHERE id = :id;
$$) \g /dev/null
SELECT ok(sum(failed) > 10, 'foreign keys are enforced') FROM bench.scripts WHERE run_id = last_run();
SELECT is(array_agg(DISTINCT sqlstate), '{23503}', 'by both arms, without another error') FROM bench.errors
WHERE run_id = last_run();
SELECT ok(every(failed > 0), 'in each') FROM bench.scripts WHERE run_id = last_run();
SELECT is_empty('SELECT FROM child WHERE NOT EXISTS (SELECT FROM parent WHERE parent.id = parent_id)',
    'no row is an orphan');
SELECT bench.duel(NULL, '{}', '{"hide_indexes": ["parent_pkey", "parent_code_key"]}', clients => 2, secs => 1,
    continue_on_error => true, script => $$
\set id random(1, 10000)
INSERT INTO parent VALUES (:id, 0 - :id, '') ON CONFLICT (id) DO UPDATE SET note = 'seen';
INSERT INTO parent VALUES (0 - :id, :id, '');
$$) \g /dev/null
SELECT is(array_agg(DISTINCT sqlstate), '{23505}', 'unique keys too, and ON CONFLICT finds its index') FROM bench.errors
WHERE run_id = last_run();
SELECT is_empty('SELECT id FROM parent GROUP BY id HAVING count(*) > 1', 'no key is there twice');
SELECT bench.duel(NULL, '{}', '{"hide_indexes": ["child_parent", "child_pkey"]}', clients => 1, secs => 1, script => $$
\set id random(1, 5000)
DELETE FROM parent WHERE id = :id;
$$) \g /dev/null
SELECT is(sum(failed), 0::numeric, 'cascades work') FROM bench.scripts WHERE run_id = last_run();
SELECT is_empty('SELECT FROM child WHERE NOT EXISTS (SELECT FROM parent WHERE parent.id = parent_id)',
    'and leave no orphan');
-- What is maintained meanwhile is right.
SET enable_seqscan = off;
SELECT is((SELECT count(*) FROM parent WHERE id > -20000), (SELECT count(*) FROM parent WHERE code > -20000),
    'the hidden indexes have all rows');
RESET enable_seqscan;

--
-- Plans inside functions
--
CREATE TABLE asked (id int, other int);
INSERT INTO asked SELECT i, i % 500 FROM generate_series(1, 20000) AS i;
CREATE INDEX asked_other ON asked (other);
ANALYZE asked;
CREATE FUNCTION ask(int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    RETURN (SELECT count(*) FROM asked WHERE other = $1);
END $$;
SELECT bench.duel(NULL, '{}', '{"hide_indexes": "asked_other"}', clients => 2, secs => 2,
    script => 'SELECT ask(7)') \g /dev/null
SELECT ok(a < 60 AND b > 80, 'are each arm''s own: a uses the index, b reads ' || b || ' blocks and a ' || a)
FROM bench.duel_results(last_run()) WHERE metric = 'blocks';
SELECT ok(harness > 0, 'what makes them anew is run and not counted') FROM bench.audit(last_run())
WHERE counter = 'committed: warm-up';
SELECT is_empty(format('SELECT * FROM bench.audit(%s) WHERE NOT ok', last_run()), 'and the audit holds');

-- A transaction that is longer than a stretch is all that there is of it.
CREATE FUNCTION ask_slowly(int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_sleep(0.02);
    RETURN ask($1);
END $$;
SELECT bench.duel(NULL, '{}', '{"hide_indexes": "asked_other"}', clients => 1, secs => 1,
    script => 'SELECT ask_slowly(7)') \g /dev/null
SELECT ok(a_transactions > 5 AND b_transactions > 5, 'long transactions count') FROM bench.duels
WHERE run_id = last_run();

--
-- DDL meanwhile: the duel goes on, and nobody waits longer than for any other run
--
CREATE TABLE looked (id int, other int);
INSERT INTO looked SELECT i, i FROM generate_series(1, 3000) AS i;
CREATE INDEX looked_id ON looked (id);
CREATE INDEX looked_other ON looked (other);
ANALYZE looked;
SELECT bench.start_duel(NULL, '{}',
    '{"hide_indexes": ["looked_id", "looked_other"], "plan_cache_mode": "force_generic_plan"}', clients => 2,
    secs => 2.5, script => $$
\set id random(1, 3000)
SELECT other FROM looked WHERE id = :id;
$$) AS started \gset
SELECT pg_sleep(0.5) \g /dev/null
REINDEX INDEX looked_id;
ANALYZE looked;
SELECT pg_sleep(0.3) \g /dev/null
DROP INDEX looked_other;
CREATE INDEX looked_new ON looked (other);
SELECT is(bench.wait(:started), 'completed', 'REINDEX, ANALYZE, DROP and CREATE INDEX do not disturb a duel');
SELECT is_empty(format('SELECT * FROM bench.errors WHERE run_id = %s', :started), 'there is no error');
SELECT ok(a_plan LIKE '%looked_id%' AND b_plan NOT LIKE '%looked\_id%', 'plans made anew are without the index, too')
FROM bench.duel_statements(:started) WHERE statement LIKE 'SELECT%';

--
-- Of another role's table, with parallel workers
--
CREATE ROLE duel_reader LOGIN;
SELECT bench.allow('duel_reader');
GRANT SELECT ON looked TO duel_reader;
SET ROLE duel_reader;
SELECT set_eq($$ SELECT metric, verdict FROM bench.duel(NULL, '{}', '{"hide_indexes": "public.looked_id"}', secs => 1,
        settings => '{"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0,
            "max_parallel_workers_per_gather": 2}',
        script => 'SELECT count(*) FROM public.looked WHERE id = 7;') WHERE metric IN ('latency_avg_ms', 'rows') $$,
    $$ VALUES ('latency_avg_ms', 'slower'), ('rows', 'same') $$, 'who may read a table can do without its index');
SELECT ok(a_plan LIKE '%looked_id%' AND b_plan LIKE '%Parallel Seq Scan on looked%',
    'workers execute the plan without it')
FROM bench.duel_statements(last_run()) WHERE statement LIKE 'SELECT%';
SELECT throws_ok($$ SELECT * FROM bench.duel(NULL, '{}', '{"hide_indexes": "pg_class_oid_index"}',
    script => 'SELECT 1') $$, '0A000', NULL, 'a catalog''s index cannot be hidden');
RESET ROLE;

--
-- Advice instead of hidden indexes
--
SELECT throws_ok($$ SELECT * FROM bench.duel(NULL, '{}', '{"plan_advice": "SEQ_SCAN(looked)"}',
    script => 'SELECT 1') $$, '55000', 'pg_plan_advice is not loaded in the run''s sessions',
    'advice that would have no effect is refused');
SELECT current_setting('server_version_num')::int >= 190000 AS has_advice \gset
\if :has_advice
-- As a session has it that connects after the first.
ALTER ROLE postgres SET session_preload_libraries = 'pg_plan_advice';
SET session_preload_libraries = 'pg_plan_advice';
LOAD 'pg_plan_advice';
SELECT count(*) FROM bench.duel(NULL, '{}', '{"plan_advice": "SEQ_SCAN(looked)"}', secs => 1,
    script => 'SELECT other FROM looked WHERE id = 7;') \g /dev/null
SELECT ok(a_plan LIKE '%looked_id%' AND b_plan LIKE '%Seq Scan on looked%', 'an arm follows its advice')
FROM bench.duel_statements(last_run()) WHERE statement LIKE 'SELECT%';
\else
SELECT skip('pg_plan_advice is of PostgreSQL 19', 1);
\endif

SELECT ok(bool_and(indisvalid AND indisready), 'all indexes are as they were') FROM pg_index
WHERE indrelid IN ('parent'::regclass, 'child'::regclass, 'looked'::regclass);
SELECT * FROM finish();
