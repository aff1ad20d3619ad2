-- Whether two arms return the same rows: planted truths, each with its verdict, kind and cause.
SET client_min_messages = error;
SELECT no_plan();

CREATE FUNCTION part_of(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 % 100; END';
-- In no order of their own.
CREATE TABLE truths AS
SELECT i AS id, i % 10 AS grp, nullif(i % 100, 0) AS part, 1 / i::float8 AS x, 'it''s ' || i AS label
FROM generate_series(1, 20000) AS i ORDER BY i * 7919 % 20011;
CREATE UNIQUE INDEX truths_id ON truths (id);
CREATE INDEX truths_grp ON truths (grp, id DESC);
CREATE INDEX truths_part ON truths (part_of(id));
VACUUM ANALYZE truths;

CREATE FUNCTION pg_temp.said(a jsonb, b jsonb, script text DEFAULT NULL, tolerance float8 DEFAULT 1e-9)
    RETURNS TABLE (verdict text, kind text, cause text, a jsonb, b jsonb) LANGUAGE sql AS $$
    SELECT verdict, kind, cause, example -> 0 -> 'a', example -> 0 -> 'b'
    FROM bench.answers(script => script, a => a, b => b, tolerance => tolerance, executions => 3, seed => 7)
$$;
CREATE FUNCTION pg_temp.written_as(a text, b text, tolerance float8 DEFAULT 1e-9)
    RETURNS TABLE (verdict text, kind text, cause text, a jsonb, b jsonb) LANGUAGE sql AS $$
    SELECT s.* FROM pg_temp.said(jsonb_build_object('script', a), jsonb_build_object('script', b),
        tolerance => tolerance) AS s
$$;

--
-- Two ways to write a query
--
SELECT results_eq($$ SELECT verdict, kind, a ->> 'end', b ->> 'end'
    FROM pg_temp.written_as('SELECT max(id) AS end FROM truths', 'SELECT min(id) AS end FROM truths') $$,
    $$ VALUES ('differs', 'values', '20000', '1') $$, 'max and min differ');
SELECT results_eq($$ SELECT verdict, kind, a ->> 'count', b ->> 'count' FROM pg_temp.written_as(
    'SELECT count(*) FROM truths WHERE id NOT IN (SELECT part FROM truths)',
    'SELECT count(*) FROM truths AS t WHERE NOT EXISTS (SELECT FROM truths AS o WHERE o.part = t.id)') $$,
    $$ VALUES ('differs', 'values', '0', '19901') $$, 'NOT IN of a NULL');
SELECT results_eq($$ SELECT verdict, kind, a, b ->> 'id' FROM pg_temp.written_as(
    'SELECT id FROM truths WHERE id BETWEEN 5 AND 8', 'SELECT id FROM truths WHERE id BETWEEN 4 AND 8') $$,
    $$ VALUES ('differs', 'rows', 'null'::jsonb, '4') $$, 'a row more');
SELECT results_eq($$ SELECT verdict, kind, a ->> 'part', b ->> 'part' FROM pg_temp.written_as(
    'SELECT id, part FROM truths WHERE id = 100', 'SELECT id, coalesce(part, 0) AS part FROM truths WHERE id = 100')
    $$, $$ VALUES ('differs', 'null', NULL, '0') $$, 'a NULL');
SELECT results_eq($$ SELECT verdict, kind, a ->> 'id', b ->> 'id' FROM pg_temp.written_as(
    'SELECT id FROM truths WHERE id = 1', 'SELECT id::bigint FROM truths WHERE id = 1') $$,
    $$ VALUES ('differs', 'type', 'integer', 'bigint') $$, 'another type');
SELECT results_eq($$ SELECT verdict, kind FROM pg_temp.written_as('SELECT id FROM truths ORDER BY grp, id',
    'SELECT id FROM truths ORDER BY grp, id DESC') $$,
    $$ VALUES ('differs', 'order') $$, 'another order');
SELECT results_eq($$ SELECT verdict, kind FROM pg_temp.written_as('SELECT id FROM truths ORDER BY id',
    'SELECT id FROM truths WHERE id > 0') $$, $$ VALUES ('same', NULL) $$,
    'an order that one of them does not ask for');
SELECT results_eq($$ SELECT verdict FROM pg_temp.written_as('SELECT sum(x ORDER BY id) FROM truths',
    'SELECT sum(x ORDER BY id DESC) FROM truths') $$, $$ VALUES ('same within 1e-9') $$, 'rounding');
SELECT results_eq($$ SELECT verdict, kind FROM pg_temp.written_as('SELECT sum(x ORDER BY id) FROM truths',
    'SELECT sum(x ORDER BY id DESC) FROM truths', tolerance => 0) $$,
    $$ VALUES ('differs', 'values') $$, 'without tolerance');
SELECT results_eq($$ SELECT verdict, kind FROM pg_temp.written_as('SELECT random() AS r', 'SELECT random() AS r') $$,
    $$ VALUES ('unstable', NULL) $$, 'random() is not stable, which is no difference');
SELECT matches(cause, '^arm b: 22012 division by zero$', 'an error in one arm')
FROM pg_temp.written_as('SELECT 1 / 1 AS one', 'SELECT 1 / (id - 1) AS one FROM truths WHERE id = 1')
WHERE (verdict, kind) = ('fails', 'error');
SELECT results_eq($$ SELECT verdict, kind, cause FROM pg_temp.written_as('SELECT 1 / (id - 1) FROM truths WHERE id = 1',
    'SELECT 2 / (id - 1) FROM truths WHERE id = 1') $$, $$ VALUES ('fails', NULL,
    'arm a: 22012 division by zero; arm b: 22012 division by zero') $$, 'the same error in both');

SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu') THEN (SELECT results_eq(
    format('SELECT verdict, kind, cause FROM pg_temp.written_as(%L, %L)', format(query, 'COLLATE "C"'),
        format(query, 'COLLATE pg_catalog."en-x-icu"')),
    format('VALUES (%L, %L, %L)', 'differs', kind, 'collation "C" in arm a, pg_catalog."en-x-icu" in arm b'), query))
    ELSE skip('the server has no ICU', 1) END
FROM (VALUES ('SELECT v FROM (VALUES (''a''), (''B'')) AS t (v) ORDER BY v %s', 'order'),
    ('SELECT count(*) FROM (VALUES (''a''), (''B'')) AS t (v) WHERE v < ''b'' %s', 'values')) AS s (query, kind);

--
-- Two plans
--
SELECT results_eq($$ SELECT verdict FROM pg_temp.said('{}', '{"enable_indexscan": "off", "enable_bitmapscan": "off"}',
    'SELECT * FROM truths WHERE id < 500') $$, $$ VALUES ('same') $$, 'rows in any order');
SELECT results_eq(format($$ SELECT verdict, cause FROM pg_temp.said('{"enable_seqscan": "off"}',
    '{"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"}', %L) $$, script),
    format($$ VALUES ('same', %L) $$, cause), script)
FROM (VALUES ('SELECT id, grp FROM truths ORDER BY grp', NULL),
    ('SELECT id FROM truths ORDER BY grp', NULL),
    ('SELECT id, grp FROM truths ORDER BY grp LIMIT 15', 'LIMIT or OFFSET takes other rows with equal sort keys'),
    ('SELECT id FROM truths ORDER BY grp OFFSET 15', 'LIMIT or OFFSET takes other rows with equal sort keys'),
    ('SELECT id FROM truths ORDER BY grp FETCH FIRST 15 ROWS WITH TIES', NULL),
    ('SELECT id FROM truths WHERE grp = 1 ORDER BY grp FOR UPDATE', NULL)) AS s (script, cause);
SELECT results_eq($$ SELECT verdict, cause FROM pg_temp.said('{}', '{"enable_seqscan": "off"}',
    'SELECT id FROM truths WHERE id > 0 LIMIT 5') $$,
    $$ VALUES ('differs', 'LIMIT or DISTINCT ON without an ORDER BY that decides') $$, 'LIMIT without an order');
SELECT alike(verdict, 'same%', 'a parallel sum of floating-point numbers')
FROM pg_temp.said('{"max_parallel_workers_per_gather": 2, "min_parallel_table_scan_size": 0,
    "parallel_setup_cost": 0, "parallel_tuple_cost": 0}', '{"max_parallel_workers_per_gather": 0}',
    'SELECT sum(x), avg(x) FROM truths');
SELECT results_eq(format($$ SELECT verdict, kind, cause, a ->> 'at', b ->> 'at'
    FROM pg_temp.said('{"TimeZone": "UTC"}', '{"TimeZone": "Asia/Tokyo", "work_mem": "1MB"}', %L) $$,
    'SELECT ''2026-01-01 00:00+00''::timestamptz AS at'),
    $$ VALUES ('differs', 'rendering', 'parameter TimeZone', '2026-01-01 00:00:00+00', '2026-01-01 09:00:00+09') $$,
    'a time zone, which is named');
SELECT matches(cause, 'parameter extra_float_digits', 'digits of floating-point numbers')
FROM pg_temp.said('{}', '{"extra_float_digits": -3}', 'SELECT x FROM truths WHERE id = 5', tolerance => 0)
WHERE (verdict, kind) = ('differs', 'rendering');

-- An index that is wrong: its function has become another one.
CREATE OR REPLACE FUNCTION part_of(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN -1; END';
SELECT results_eq(format($$ SELECT verdict, kind, cause, a ->> 'count', b ->> 'count'
    FROM pg_temp.said('{}', '{"hide_indexes": "truths_part"}', %L) $$,
    'SELECT count(*) FROM truths WHERE part_of(id) = 1'),
    $$ VALUES ('differs', 'values', 'index public.truths_part: without it, arm a answers differently', '200', '0') $$,
    'an index that is wrong is named');
SELECT alike(advice, '%amcheck%REINDEX INDEX public.truths_part%', 'with what to do')
FROM bench.answers(script => 'SELECT id FROM truths WHERE part_of(id) = 1', a => '{}',
    b => '{"enable_indexscan": "off", "enable_bitmapscan": "off"}', executions => 1);

--
-- Scripts
--
CREATE TEMP TABLE before AS SELECT id, x, xmin::text AS version FROM truths;
CREATE TEMP TABLE written AS SELECT * FROM bench.answers(a => '{}', b => '{"work_mem": "1MB"}', executions => 20,
    script => $$
\set id random(1, 20000)
BEGIN;
SET LOCAL enable_hashjoin = off;
UPDATE truths SET x = x + 1 WHERE id = :id RETURNING id, x;
SELECT x AS changed FROM truths WHERE id = :id \gset
UPDATE truths SET x = :changed::float8 + 1 WHERE id = :id;
DELETE FROM truths WHERE id = :id;
INSERT INTO truths (id, x) VALUES (:id, :changed) RETURNING *;
SELECT count(*) FROM truths WHERE id = :id;
END;
$$);
SELECT results_eq('SELECT command, verdict, executions, same FROM written ORDER BY command',
    $$ VALUES (3, 'not compared', 0::bigint, 0::bigint), (4, 'same', 20, 20), (5, 'same', 20, 20), (6, 'same', 20, 20),
        (7, 'same', 20, 20), (8, 'same', 20, 20), (9, 'same', 20, 20) $$, 'statements that write are compared');
SELECT is_empty('(SELECT id, x, xmin::text FROM truths) EXCEPT TABLE before', 'and leave nothing behind');
-- What fails ends the script.
SELECT results_eq($s$ SELECT command, verdict, executions, failed_a, cause FROM bench.answers(a => '{}', b => '{}',
    executions => 2, script => $$
SELECT id FROM truths WHERE id = 1;
SELECT id / 0 FROM truths WHERE id = 1;
SELECT id FROM truths WHERE id = 2;
$$) ORDER BY command $s$, $$ VALUES (1, 'same', 2::bigint, 0::bigint, NULL),
    (2, 'fails', 2, 2, 'arm a: 22012 division by zero; arm b: 22012 division by zero'),
    (3, 'not compared', 0, 0, 'no execution came to it') $$, 'an error ends the script');
SELECT throws_ok($$ SELECT bench.answers(a => '{}', b => '{}', script => 'SELECT 1 AS x WHERE false \gset') $$, '21000',
    'expected one row, got 0', 'and one of the client ends the comparison');
SELECT results_eq($s$ SELECT command, verdict FROM bench.answers(a => '{}', b => '{}', executions => 1,
    script => E'SELECT 1;\nDEALLOCATE ALL;\nSELECT 2;\nVACUUM;\nSELECT 1 \\; SELECT 2;') ORDER BY command $s$,
    $$ VALUES (1, 'same'), (2, 'not compared'), (3, 'same'), (4, 'not compared'), (5, 'not compared') $$,
    'what is not compared');
-- The values that led to a difference
SELECT results_eq($s$ SELECT jsonb_array_length(example), example -> 0 -> 'values' ->> 'id',
        example -> 0 -> 'a' ->> 'label', example -> 0 -> 'b' ->> 'label'
    FROM bench.answers(a => '{"script": "\\set id 5\nSELECT label FROM truths WHERE id = :id"}',
        b => '{"script": "\\set id 5\nSELECT upper(label) AS label FROM truths WHERE id = :id"}', examples => 2) $s$,
    $$ VALUES (2, '5', 'it''s 5', 'IT''S 5') $$, 'examples show values and rows');
SELECT results_eq($s$ SELECT example -> 0 -> 'a' ->> 'id', example -> 0 -> 'b' ->> 'id'
    FROM bench.answers(a => '{"script": "SELECT id, x FROM truths WHERE id < 9"}', key => 'id',
        b => '{"script": "SELECT id, x + (id = 7)::int AS x FROM truths WHERE id < 9"}', executions => 1) $s$,
    $$ VALUES ('7', '7') $$, 'a key says which rows are the same');
-- Feeders give both arms the same rows, and each script of a mix has its executions.
SELECT bench.create_workload('fed', 'SELECT label FROM truths WHERE id = :id;') \g /dev/null
SELECT bench.add_feeder('fed', 'SELECT id FROM truths WHERE id <= 50 ORDER BY id', pick => 'sequence') \g /dev/null
SELECT bench.create_workload('rare', 'SELECT count(*) FROM truths;') \g /dev/null
SELECT results_eq($$ SELECT workload, statement, executions, verdict FROM bench.answers('fed@1000,rare', '{}',
    '{"hide_indexes": "truths_id"}', executions => 10) ORDER BY workload $$,
    $$ VALUES ('fed', 'SELECT label FROM truths WHERE id = :id;', 10::bigint, 'same'),
        ('rare', 'SELECT count(*) FROM truths;', 10, 'same') $$, 'scripts of a mix with feeders');
SELECT results_eq(format($$ SELECT DISTINCT verdict FROM bench.answers('fed', '{}', '{}', executions => 2,
    query_mode => %L) $$, mode), $$ VALUES ('same') $$, mode)
FROM unnest('{simple,extended}'::text[]) AS mode;
-- Of a capture with option mask, no value is shown.
SELECT bench.create_workload('hidden', E'\\set id 7\nSELECT x FROM truths WHERE id = :id;') \g /dev/null
INSERT INTO bench_internal.capture_list (name, role, source, options, status, started_at)
VALUES ('hiding', current_user, 'log', '{"mask": true}', 'completed', now());
INSERT INTO bench.capture_statements (capture, number, workload, calls, share) VALUES ('hiding', 1, 'hidden', 1, 1);
SELECT results_eq($$ SELECT verdict, cause, example FROM bench.answers('hidden', '{}', '{"extra_float_digits": -3}',
    tolerance => 0, executions => 1) $$, $$ VALUES ('differs', 'parameter extra_float_digits',
    '[{"a": {"x": "(masked)"}, "b": {"x": "(masked)"}, "values": {"id": "(masked)"}}]'::jsonb) $$, 'masked');
-- Time
SELECT ok(verdict = 'not compared' AND cause = 'limit_secs was over', 'a limit to the time')
FROM bench.answers(a => '{}', b => '{}', script => 'SELECT pg_sleep(10)', limit_secs => 0.2);

--
-- Recall: an index that lacks every tenth row of the first tenant, and none of the second
--
CREATE FUNCTION tenant_of(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    'BEGIN RETURN CASE WHEN $1 % 20 = 10 AND $1 % 200 = 10 THEN -1 ELSE $1 % 20 END; END';
CREATE INDEX truths_tenant ON truths (tenant_of(id));
ANALYZE truths;
CREATE OR REPLACE FUNCTION tenant_of(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 % 20; END';
CREATE TABLE tenants AS VALUES (10), (11);

SELECT bench.create_workload('near', 'SELECT id, x FROM truths WHERE tenant_of(id) = :tenant ORDER BY id;') \g /dev/null
SELECT bench.add_feeder('near', 'SELECT column1 AS tenant FROM tenants ORDER BY 1', pick => 'sequence') \g /dev/null
CREATE TEMP TABLE found AS SELECT * FROM bench.recall('near', 'truths_tenant', executions => 10,
    vary => '{"enable_hashjoin": ["on", "off"], "work_mem": ["1MB"]}', settings => '{"enable_seqscan": "off"}');
SELECT results_eq('SELECT settings, executions, recall, recall_min, recall_p5, short, picks FROM found',
    $$ VALUES ('{"work_mem": "1MB", "enable_hashjoin": "on"}'::jsonb, 10::bigint, 0.95::float8, 0.9::float8,
        0.9::float8, 5::bigint, true),
        ('{"work_mem": "1MB", "enable_hashjoin": "off"}', 10, 0.95, 0.9, 0.9, 5, false) $$,
    'recall is exact');
SELECT results_eq($$ SELECT settings ->> 'enable_sort', executions, picks FROM bench.recall('near', 'truths_tenant',
    executions => 2, vary => '{"enable_sort": ["on", "off"]}', settings => '{"enable_seqscan": "off"}') $$,
    $$ VALUES ('on', 2::bigint, true), ('off', NULL, false) $$, 'a plan without the index says nothing of it');
SELECT ok(bool_and(index_ms > 0 AND exact_ms > index_ms), 'with the times') FROM found;
SELECT results_eq($$ SELECT recall, picks FROM bench.recall(script => 'SELECT id FROM truths WHERE tenant_of(id) = 10',
    index => 'truths_tenant', settings => '{"enable_seqscan": "off"}', key => 'id', executions => 2) $$,
    $$ VALUES (0.9::float8, false) $$, 'by a key');
SELECT throws_ok($$ SELECT bench.recall(script => 'SELECT id FROM truths WHERE tenant_of(id) = 10',
    index => 'truths_tenant', settings => '{"enable_seqscan": "off"}', key => 'nokey') $$, '42703');
SELECT throws_ok($$ SELECT bench.recall(script => 'SELECT count(*) FROM truths', index => 'truths_tenant') $$, '55000',
    'no execution of the workload''s statements has used index "public.truths_tenant" and returned rows');
SELECT throws_ok($$ SELECT bench.recall('near', 'truths') $$, '42809');
SELECT throws_ok($$ SELECT bench.recall('near', NULL) $$, '22004');
SELECT throws_ok($$ SELECT bench.recall('near', 'truths_tenant', vary => '{"a.b": 1}') $$, '22023',
    'vary must be an object of parameters with arrays of values');
SELECT throws_ok($$ SELECT bench.recall('near', 'truths_tenant', at_least => 2) $$, '22023');

--
-- Errors and rights
--
SELECT throws_ok($$ SELECT bench.answers('fed', '{}', NULL) $$, '22004');
SELECT throws_ok($$ SELECT bench.answers('fed', '{}', '{}', executions => 0) $$, '22023',
    'executions must be between 1 and 1000000, not 0');
SELECT throws_ok($$ SELECT bench.answers('fed', '{}', '{}', tolerance => 1) $$, '22023',
    'tolerance must be at least 0 and less than 1, not 1');
SELECT throws_ok($$ SELECT bench.answers('fed', '{}', '{}', examples => -1) $$, '22023',
    'examples must be between 0 and 100, not -1');
SELECT throws_ok($$ SELECT bench.answers('fed', '{}', '{}', limit_secs => 0) $$, '22023',
    'limit_secs must be between 0.001 and 604800 seconds, not 0');
SELECT throws_ok($$ SELECT bench.answers('fed', '{"variables": {"id": 1}}', '{"variables": {"id": 2}}') $$, '0A000',
    'arms of bench.answers cannot differ in variables');
CREATE ROLE reader LOGIN;
CREATE TABLE secret AS SELECT 42 AS answer;
SET ROLE reader;
SELECT throws_ok($$ SELECT bench.answers(script => 'SELECT 1', a => '{}', b => '{}') $$, '42501',
    'permission denied for function answers', 'a right of its own');
RESET ROLE;
SELECT bench.allow('reader', 'run') \g /dev/null
GRANT CREATE ON SCHEMA public TO reader;
SET ROLE reader;
SELECT throws_ok($$ SELECT bench.answers(script => 'SELECT answer FROM secret', a => '{}', b => '{}') $$, '42501',
    'permission denied for table secret', 'nobody reads what the role may not');
CREATE FUNCTION public.whose() RETURNS text LANGUAGE plpgsql AS
    'BEGIN RETURN session_user || '' '' || current_user; END';
SELECT results_eq($$ SELECT example -> 0 -> 'a' ->> 'whose' FROM bench.answers(executions => 1,
    a => '{"script": "SELECT whose()"}', b => '{"script": "SELECT ''nobody''::text AS whose"}') $$,
    $$ VALUES ('reader reader') $$, 'statements run in a session of the role');
RESET ROLE;
DROP OWNED BY reader;
DROP ROLE reader;
--
-- Beside times
--
SELECT results_eq($$ SELECT verdict, answers, answer_example -> 0 -> 'a' ->> 'end', answer_example -> 0 -> 'b' ->> 'end'
    FROM bench.verify(a => '{"script": "SELECT max(id) AS end FROM truths"}', answers => 2, secs => 1,
        b => '{"script": "SELECT min(id) AS end FROM truths WHERE grp + 0 >= 0"}') WHERE candidate_count = 0 $$,
    $$ VALUES ('inconclusive', 'differs', '20000', '1') $$, 'verify says what differs');
SELECT throws_ok($$ SELECT * FROM bench.verify('tpcb', '{}', '{}', answers => 0) $$, '22023', NULL, 'or refuses to');

SELECT * FROM finish();
