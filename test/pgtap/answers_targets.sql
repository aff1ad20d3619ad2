-- bench.answers over connections: the arms are two databases, or one with different settings.
SET client_min_messages = error;
SELECT CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collprovider = 'i' AND collname = 'en-x-icu')
    THEN $$LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'$$ ELSE $$LOCALE 'C.UTF-8'$$ END AS locale,
    CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collprovider = 'i' AND collname = 'en-x-icu')
    THEN 'icu' ELSE 'libc' END AS provider \gset
CREATE DATABASE answers_a TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
CREATE DATABASE answers_b TEMPLATE template0 ENCODING 'UTF8' :locale;
SELECT setting AS directory FROM pg_settings WHERE name = 'unix_socket_directories' \gset
SELECT format('CREATE SERVER %s FOREIGN DATA WRAPPER bench_wire OPTIONS (host %L, port %L, dbname %L)',
    name, :'directory', current_setting('port'), datname),
    format('CREATE USER MAPPING FOR CURRENT_USER SERVER %s', name)
FROM (VALUES ('target_a', 'answers_a'), ('target_b', 'answers_b'), ('alias_a', 'answers_a')) AS t (name, datname)
\gexec
\c answers_b
CREATE TABLE truths AS
SELECT i AS id, chr(ascii('a') + i % 26 - i % 2 * 32) || i AS name, i % 10 AS grp, 1 / i::float8 AS x,
    '2026-01-01 00:00+00'::timestamptz + i * interval '1 hour' AS at FROM generate_series(1, 1000) AS i;
ALTER TABLE truths ADD PRIMARY KEY (id);
-- Types of the same names have other OIDs.
CREATE TYPE unused AS ENUM ('a', 'b');
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE FUNCTION part_of(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 % 100; END';
CREATE INDEX truths_part ON truths (part_of(id));
ANALYZE truths;
CREATE OR REPLACE FUNCTION part_of(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 % 100 + 1; END';
\c answers_a
CREATE TABLE truths AS
SELECT i AS id, chr(ascii('a') + i % 26 - i % 2 * 32) || i AS name, i % 10 AS grp, 1 / i::float8 AS x,
    '2026-01-01 00:00+00'::timestamptz + i * interval '1 hour' AS at FROM generate_series(1, 1000) AS i ORDER BY -i;
ALTER TABLE truths ADD PRIMARY KEY (id);
CREATE FUNCTION part_of(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 % 100 + 1; END';
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE TYPE unused AS ENUM ('b', 'a');
\c postgres
SET client_min_messages = error;
SELECT no_plan();

CREATE FUNCTION pg_temp.said(script text, a jsonb DEFAULT '{}', b jsonb DEFAULT '{}', tolerance float8 DEFAULT 1e-9)
    RETURNS TABLE (verdict text, kind text, cause text, a jsonb, b jsonb) LANGUAGE sql AS $$
    SELECT verdict, kind, cause, example -> 0 -> 'a', example -> 0 -> 'b'
    FROM bench.answers(script => script, a => '{"target": "target_a"}' || a, b => '{"target": "target_b"}' || b,
        tolerance => tolerance, executions => 3, seed => 7) ORDER BY command
$$;

-- Rows in another place, ties, and LIMIT
SELECT results_eq(format('SELECT verdict, cause FROM pg_temp.said(%L)', script),
    format('VALUES (%L, %L)', verdict, cause), script)
FROM (VALUES ('SELECT * FROM truths', 'same', NULL),
    ('SELECT id, grp FROM truths ORDER BY grp', 'same', NULL),
    ('SELECT id, grp FROM truths ORDER BY grp LIMIT 15', 'same',
        'LIMIT or OFFSET takes other rows with equal sort keys'),
    ('SELECT id FROM truths ORDER BY grp', 'same', NULL),
    ('SELECT id FROM truths LIMIT 5', 'differs', 'LIMIT or DISTINCT ON without an ORDER BY that decides'),
    ('SELECT random()', 'unstable', 'arm a answers differently each time'),
    ('SELECT 1 / (id - 1) FROM truths WHERE id = 1', 'fails',
        'arm a: 22012 division by zero; arm b: 22012 division by zero')) AS s (script, verdict, cause);
SELECT results_eq($$ SELECT verdict, kind, cause FROM pg_temp.said(NULL, '{"script": "SELECT 1 / 1"}',
    '{"script": "SELECT 1 / (id - 1) FROM truths WHERE id = 1"}') $$,
    $$ VALUES ('fails', 'error', 'arm b: 22012 division by zero') $$, 'an error in one arm');
SELECT results_eq($$ SELECT verdict, a ->> 'end', b ->> 'end' FROM pg_temp.said(NULL,
    '{"script": "SELECT max(id) AS end FROM truths"}', '{"script": "SELECT min(id) AS end FROM truths"}') $$,
    $$ VALUES ('differs', '1000', '1') $$, 'two ways to write a query');

SELECT results_eq($$ SELECT verdict FROM pg_temp.said('SELECT ''a''::mood, ARRAY[''b'']::mood[]') $$,
    $$ VALUES ('same') $$, 'types are compared by their names');
SELECT results_eq($$ SELECT verdict, kind, a, b FROM pg_temp.said(NULL, '{"script": "SELECT ''a''::mood AS x"}',
    '{"script": "SELECT ''a''::unused AS x"}') $$, $$ VALUES ('differs', 'type', '{"x": "public.mood"}'::jsonb,
    '{"x": "public.unused"}'::jsonb) $$, 'which are shown');

-- Causes
SELECT results_eq($$ SELECT verdict, kind, cause, a ->> 'at', b ->> 'at' FROM pg_temp.said(
    'SELECT at FROM truths WHERE id = 1', '{"TimeZone": "UTC", "work_mem": "1MB"}', '{"TimeZone": "Asia/Tokyo"}') $$,
    $$ VALUES ('differs', 'rendering', 'parameter TimeZone', '2026-01-01 01:00:00+00', '2026-01-01 10:00:00+09') $$,
    'a time zone, which is named');
SELECT results_eq($$ SELECT verdict, kind, cause FROM pg_temp.said('SELECT x FROM truths WHERE id = 7', '{}',
    '{"extra_float_digits": -3}', tolerance => 0) $$,
    $$ VALUES ('differs', 'rendering', 'parameter extra_float_digits') $$, 'digits of floating-point numbers');
SELECT results_eq($$ SELECT verdict, kind, cause
    FROM pg_temp.said('SELECT count(*) FROM truths WHERE part_of(id) = 1', '{"enable_seqscan": "off"}',
        '{"enable_seqscan": "off"}') $$,
    $$ VALUES ('same', NULL, NULL) $$, 'an index that misses no row that is looked for');
SELECT results_eq($$ SELECT verdict, cause FROM pg_temp.said('SELECT count(*) FROM truths WHERE part_of(id) = 100',
    '{"enable_seqscan": "off"}', '{"enable_seqscan": "off"}') $$,
    $$ VALUES ('differs', 'without index scans, arm b answers differently') $$, 'an index that is wrong');
SELECT matches(cause, '^collation libc C in arm a, ' || :'provider' || ' \S+( \S+)? in arm b$', 'collations')
FROM pg_temp.said('SELECT current_database() > '''' AS x, current_database() AS name') WHERE verdict = 'differs';
SELECT CASE WHEN :'provider' = 'icu' THEN (SELECT matches(format('%s %s %s', verdict, kind, cause),
        '^differs order collation libc C in arm a, icu en \S+ in arm b$', 'another order')
    FROM pg_temp.said('SELECT id, name FROM truths ORDER BY name'))
    ELSE skip('the server has no ICU', 1) END;
SELECT CASE WHEN :'provider' = 'icu' THEN (SELECT matches(format('%s %s %s %s', verdict, kind, cause, a),
        '^differs values collation libc C in arm a, icu en \S+ in arm b {"count": "\d+"}$', 'another comparison')
    FROM pg_temp.said('SELECT count(*) FROM truths WHERE name < ''m'''))
    ELSE skip('the server has no ICU', 1) END;

-- Scripts: each arm sees its own writes, and nothing is left of them.
CREATE TEMP TABLE written AS SELECT * FROM bench.answers(a => '{"target": "target_a"}', b => '{"target": "target_b"}',
    executions => 20, script => $$
\set id random(1, 1000)
BEGIN;
CREATE TEMP TABLE mine AS SELECT :id::int AS id;
UPDATE truths SET x = x + 1 WHERE id = :id RETURNING id, x;
SELECT t.x AS changed FROM truths AS t JOIN mine USING (id) \gset
WITH gone AS (DELETE FROM truths WHERE id = :id RETURNING x) SELECT x, :changed FROM gone;
INSERT INTO truths (id, x) VALUES (:id, :changed) RETURNING *;
SELECT count(*), sum(x) FROM truths;
\startpipeline
SELECT 1;
SELECT 2 \; SELECT 3;
\endpipeline
END;
$$);
SELECT results_eq('SELECT command, verdict, executions FROM written ORDER BY command',
    $$ VALUES (3, 'not compared', 0::bigint), (4, 'same', 20), (5, 'same', 20), (6, 'same', 20),
        (7, 'same', 20), (8, 'same within 1e-9', 20), (10, 'same', 20), (11, 'not compared', 0) $$,
    'statements that write are compared');
SELECT results_eq($$ SELECT DISTINCT verdict FROM pg_temp.said('SELECT sum(x), count(*), max(id) FROM truths') $$,
    $$ VALUES ('same within 1e-9') $$, 'and leave nothing behind');
SELECT bench.create_workload('fed', 'SELECT name FROM truths WHERE id = :id;') \g /dev/null
SELECT bench.add_feeder('fed', 'SELECT id FROM truths WHERE id <= 50 ORDER BY id', pick => 'sequence') \g /dev/null
SELECT results_eq(format($$ SELECT executions, verdict FROM bench.answers('fed', '{"target": "target_a"}',
    '{"target": "target_b"}', executions => 10, query_mode => %L) $$, mode), $$ VALUES (10::bigint, 'same') $$,
    'rows of a feeder, ' || mode)
FROM unnest('{simple,extended,prepared}'::text[]) AS mode;
-- One target with two settings is one session.
SELECT results_eq($$ SELECT verdict, kind, cause, a ->> 'at', b ->> 'at' FROM bench.answers(executions => 2,
        a => '{"target": "target_a", "TimeZone": "UTC"}', b => '{"target": "target_a", "TimeZone": "Asia/Tokyo"}',
        script => 'UPDATE truths SET x = 0; SELECT at FROM truths WHERE id = 1'),
        LATERAL (SELECT example -> 0 -> 'a' AS a, example -> 0 -> 'b' AS b) AS e WHERE verdict <> 'same' $$,
    $$ VALUES ('differs', 'rendering', 'parameter TimeZone', '2026-01-01 01:00:00+00', '2026-01-01 10:00:00+09') $$,
    'two settings on one target');
-- A result that is longer than what is kept
SELECT results_eq($$ SELECT verdict FROM pg_temp.said('SELECT id, repeat(name, 20000) FROM truths') $$,
    $$ VALUES ('same') $$, 'long results are compared by their hashes');

-- What cannot be
SELECT ok(verdict = 'not compared' AND cause = 'limit_secs was over', 'a limit to the time')
FROM bench.answers(a => '{"target": "target_a"}', b => '{"target": "target_b"}', script => 'SELECT pg_sleep(30)',
    limit_secs => 0.3);
CREATE FUNCTION pg_temp.is_asleep() RETURNS boolean VOLATILE LANGUAGE sql AS $$
    SELECT pg_stat_clear_snapshot(); SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'
    AND datname LIKE 'answers%' $$;
DO $$ BEGIN FOR i IN 1..100 LOOP EXIT WHEN NOT pg_temp.is_asleep(); PERFORM pg_sleep(0.05); END LOOP; END $$;
SELECT is(pg_temp.is_asleep(), false, 'after which the statement is cancelled');
SELECT throws_ok($$ SELECT bench.answers(script => 'SELECT 1', a => '{"target": "target_a"}', b => '{}') $$, '22023',
    'arm b has no target');
SELECT throws_ok($$ SELECT bench.answers(script => 'SELECT 1', a => '{"target": "target_a"}',
    b => '{"target": "alias_a"}') $$, '0A000', 'the targets of both arms are the same database');
SELECT throws_ok($$ SELECT bench.answers(script => 'SELECT 1 AS x WHERE false \gset', a => '{"target": "target_a"}',
    b => '{"target": "target_b"}') $$, '21000', 'expected one row, got 0');

-- Beside times
SELECT results_eq($$ SELECT statement, answers FROM bench.verify(a => '{"target": "target_a"}',
        b => '{"target": "target_b"}', answers => 2, driver => 'wire', clients => 2, secs => 1,
        script => 'SELECT id FROM truths WHERE id = 1;
    SELECT current_database() AS name, pg_sleep(0.001);') $$,
    $$ VALUES ('SELECT current_database() AS name, pg_sleep(0.001);', 'differs'),
        ('SELECT id FROM truths WHERE id = 1;', 'same') $$,
    'verify names first what differs');
SELECT max(run_id) AS run_id FROM bench.duels \gset
SELECT matches(bench.verify_report(:run_id), '\nCommand 2 of script (is faster and )?answers\s+differently\. ',
    'as its report does, before all else');
SELECT matches(bench.verify_report(:run_id, 'junit'), 'failure message="answers differently', 'and it fails a test');
SELECT (bench.import(bench.export(ARRAY[:run_id])))[1] AS imported_id \gset
SELECT alike(bench.verify_report(:imported_id), '%answers%differently%', 'also elsewhere');

SELECT * FROM finish();
