-- Constants of captured statements, in every form that the grammar has: replayed, they have the values that they had,
-- in each query mode; and what the server needs as constants stays one.
SET client_min_messages = error;
SELECT no_plan();

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE form (id int PRIMARY KEY, expression text, one text, other text);
INSERT INTO form VALUES
(1, $$INTERVAL '{}' DAY$$, '7', '9'),
(2, $$'{}'::interval day$$, '7', '-9'),
(3, $$CAST('{}' AS interval hour)$$, '7', '9'),
(4, $$INTERVAL '{}' HOUR TO MINUTE$$, '1:30', '-2:45'),
(5, $$INTERVAL '{}' MINUTE TO SECOND(1)$$, '1:30.25', '2:45'),
(6, $$INTERVAL '{}' YEAR TO MONTH$$, '1-2', '-3-4'),
(7, $$INTERVAL '{}' SECOND$$, '7', '9.5'),
(8, $$INTERVAL(2) '{}'$$, '1.236', '3 days'),
(9, $$INTERVAL '{}'$$, '7', '9 days'),
(10, $$bit '{}'$$, '101', '0111'),
(11, $$bit(4) '{}'$$, '101', '0111'),
(12, $$'{}'::bit$$, '101', '0111'),
(13, $$bit varying(2) '{}'$$, '101', '0111'),
(14, $$B'{}'$$, '101', '0111'),
(15, $$X'{}'$$, '1F', 'a0'),
(16, $$char '{}'$$, 'abc ', 'defg'),
(17, $$char(2) '{}'$$, 'abc', 'defg'),
(18, $$'{}'::char$$, 'abc', 'defg'),
(19, $$national character varying(2) '{}'$$, 'abc', 'defg'),
(20, $$N'{}'$$, 'abc ', 'defg'),
(21, $$name '{}'$$, 'abc', 'defg'),
(22, $$"char" '{}'$$, 'abc', 'defg'),
(23, $$numeric(4, 1) '{}'$$, '12.345', '-1.25'),
(24, $$'{}'::numeric(4, 1)$$, '12.345', '-1.25'),
(25, $$dec '{}'$$, '12.345', '-1.25'),
(26, $$float(24) '{}'$$, '0.1', '1e10'),
(27, $$double precision '{}'$$, '0.1', '1e10'),
(28, $$timestamp(1) '{}'$$, '2026-01-01 01:02:03.456', '2027-01-01'),
(29, $$'{}'::timestamp(1) with time zone$$, '2026-01-01 01:02:03.456+5', '2027-01-01'),
(30, $$time(0) with time zone '{}'$$, '01:02:03.456+05', '10:00-03'),
(31, $$date '{}'$$, '2026-01-01', '2027-01-01'),
(32, $$mood '{}'$$, 'sad', 'happy'),
(33, $$int4range '{}'$$, '[1,5)', 'empty'),
(34, $$tstzmultirange '{}'$$, '{[2026-01-01,2026-01-02)}', '{}'),
(35, $$tsquery '{}'$$, 'fat & rat', 'cat:A'),
(36, $$jsonpath '{}'$$, '$.a', '$[*] ? (@ > 1)'),
(37, $$pg_lsn '{}'$$, '0/1F', '16/B374D848'),
(38, $$jsonb '{}'$$, '{"a": 1}', '[2]'),
(39, $$E'{}\x41\303\251'$$, 'a', 'b'),
(40, $$U&'{}\00e9'$$, 'a', 'b'),
(41, $$U&'{}!00e9' UESCAPE '!'$$, 'a', 'b'),
(42, '$q${}$q$', 'it''s', ':p1'),
(43, $$concat('{}', '-', {})$$, '1', '20'),
(44, $$format('%s', '{}')$$, 'a', 'b'),
(45, $$json_build_object('{}', 1)$$, 'a', 'b'),
(46, $$ROW('{}')$$, 'a', 'b'),
(47, $$'{}' IS NULL$$, 'a', 'b'),
(49, $$-{} - {}$$, '5', '7'),
(50, $$1e{}$$, '2', '3'),
(51, $$trim(both '{}' from 'xay')$$, 'x', 'y'),
(52, $$'a%c' LIKE 'a{}%c' ESCAPE '{}'$$, '!', '#'),
(53, $$extract('{}' FROM date '2026-11-24')$$, 'year', 'dow'),
(54, $$(ARRAY[1, 2, 3])[{}]$$, '1', '2'),
(55, $$(SELECT count(*) FROM (SELECT FROM generate_series(1, 9) n FETCH FIRST {} ROWS ONLY) s)$$, '1', '2');
CREATE TABLE seen (id int, value text);
CREATE TABLE expected (id int, value text);
CREATE TABLE log (line jsonb);
CREATE FUNCTION log_line(n int, vxid text, message text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO log SELECT jsonb_build_object('timestamp', '2026-11-24 12:00:00.000 UTC', 'user', current_user,
        'dbname', current_database(), 'session_id', 's' || n, 'vxid', vxid, 'error_severity', 'LOG',
        'message', 'duration: 1.000 ms  statement: ' || message, 'detail', '') $$;
DO $$
DECLARE f form; value text; insert text;
BEGIN
    FOR f IN SELECT * FROM form LOOP
        FOREACH value IN ARRAY ARRAY[f.one, f.other] LOOP
            insert := format(' SELECT %s, (%s)::text', f.id, replace(f.expression, '{}', value));
            EXECUTE 'INSERT INTO expected' || insert;
            PERFORM log_line(1, '3/0', 'INSERT INTO seen' || insert);
        END LOOP;
    END LOOP;
END $$;
SELECT * FROM bench.capture_log('forms', 'log', shapes => 100, options => '{"writes": true}') \g /dev/null
SELECT is_empty($$ SELECT query, reason FROM bench.capture_statements WHERE capture = 'forms' AND reason IS NOT NULL $$,
    'every form is kept');
SELECT bench.run('forms', transactions => 2500, query_mode => 'simple', seed => 1) \g /dev/null
SELECT set_eq('SELECT * FROM seen', 'SELECT * FROM expected', 'simple: the values are those of the constants');
DELETE FROM seen;
SELECT bench.run('forms', transactions => 2500, query_mode => 'extended', seed => 1) \g /dev/null
SELECT set_eq('SELECT * FROM seen', 'SELECT * FROM expected', 'extended: likewise');
DELETE FROM seen;
SELECT bench.run('forms', transactions => 2500, query_mode => 'prepared', seed => 1) \g /dev/null
SELECT set_eq('SELECT * FROM seen', 'SELECT * FROM expected', 'prepared: likewise');

-- A column whose type has fields cuts a constant as a cast does; a parameter of the log had been read before.
TRUNCATE log;
CREATE TABLE span (d interval day, h interval hour);
SELECT count(log_line(1, '3/0', format('INSERT INTO span (d, h) VALUES (''%s'', ''%s'')', n, n)))
FROM generate_series(2, 4) AS n \g /dev/null
INSERT INTO log SELECT line || jsonb_build_object('session_id', 'e' || n, 'message',
    'duration: 1.000 ms  execute S_1: INSERT INTO span SELECT $1::interval day',
    'detail', format('Parameters: $1 = ''%s days 5:00''', n))
FROM (SELECT line FROM log LIMIT 1) l, generate_series(2, 4) AS n;
SELECT * FROM bench.capture_log('spans', 'log', options => '{"writes": true}') \g /dev/null
SELECT bench.run('spans', transactions => 100, query_mode => 'simple') \g /dev/null
SELECT bench.run('spans', transactions => 100, query_mode => 'prepared') \g /dev/null
SELECT set_eq('SELECT d::text, h::text FROM span', $$
    VALUES ('2 days', '02:00:00'), ('3 days', '03:00:00'), ('4 days', '04:00:00'),
        ('2 days', NULL), ('3 days', NULL), ('4 days', NULL)
$$, 'columns of intervals with fields');

-- What the server infers an arbiter from.
TRUNCATE log;
CREATE TABLE job (k text, state text, n int DEFAULT 0);
CREATE UNIQUE INDEX ON job (k) WHERE state = 'active';
SELECT count(log_line(1, '3/0', format($$
    INSERT INTO job VALUES ('%s', 'active') ON CONFLICT (k) WHERE state = 'active' DO UPDATE SET n = job.n + %s
$$, n, n)))
FROM generate_series(1, 9) AS n \g /dev/null
SELECT * FROM bench.capture_log('jobs', 'log', options => '{"writes": true}') \g /dev/null
SELECT bench.run('jobs', transactions => 50) AS run_id \gset
SELECT is((SELECT (status, failed)::text FROM bench.summary WHERE run_id = :run_id), '(completed,0)',
    'log: the condition of ON CONFLICT keeps its constants');
SELECT pg_stat_statements_reset() \g /dev/null
INSERT INTO job VALUES ('k', 'active') ON CONFLICT (k) WHERE state = 'active' DO UPDATE SET n = job.n + 1;
SELECT * FROM bench.capture('jobs', secs => 0, options => '{"writes": true, "exclude": ["%reset%"]}') \g /dev/null
SELECT ok(reason ~~ 'ON CONFLICT has the condition of an index: (state = ''active''::text)%',
    'statements: it is the index''s')
FROM bench.capture_statements
WHERE capture = 'jobs' AND workload IS NOT NULL;
SELECT bench.run('jobs', transactions => 50) AS run_id \gset
SELECT is((SELECT (status, failed)::text FROM bench.summary WHERE run_id = :run_id), '(completed,0)', 'which runs');

-- The tenant of each transaction is a value.
TRUNCATE log;
SELECT log_line(n, '3/' || n, s)
FROM generate_series(1, 5) AS n, unnest(ARRAY['BEGIN', 'SET LOCAL app.tenant = ''' || n || '''', 'SAVEPOINT a' || n,
    'SELECT current_setting(''app.tenant'')', 'RELEASE a' || n, 'COMMIT']) AS s \g /dev/null
SELECT results_eq($$ SELECT kept, calls FROM bench.capture_log('tenants', 'log') $$, $$ VALUES (true, 5::bigint) $$,
    'one shape, which changes no data');
SELECT bench.run('tenants', transactions => 50) AS run_id \gset
SELECT is((SELECT (status, failed)::text FROM bench.summary WHERE run_id = :run_id), '(completed,0)', 'which runs');

-- With mask, constants are nowhere, nor in what the server says of them.
TRUNCATE log;
CREATE TABLE person (name text, data jsonb, note xml);
SELECT log_line(1, '3/0', s) FROM unnest(ARRAY[
    $$SELECT * FROM person WHERE name = 'secret1' AND 47114711 = 47114711 LIMIT 47114711$$,
    $$SELECT * FROM person WHERE data @> '{"secret": ["secret", 5]}'$$,
    $$SELECT * FROM person WHERE name = name 'secret'$$,
    $$SELECT * FROM person WHERE name = ANY ('{secret,"se cret"}'::text[])$$,
    $$SELECT * FROM person WHERE note::text = xml '<secret/>'::text$$,
    $$SELECT * FROM nowhere WHERE name = 'secret'$$,
    $$SELECT * FROM person WHERE name = extract('secret' FROM now())::text$$]) AS s \g /dev/null
SELECT * FROM bench.capture_log('masked', 'log', options => '{"mask": true}') \g /dev/null
SELECT is((SELECT count(*) FROM bench.capture_statements WHERE capture = 'masked' AND workload IS NOT NULL), 4::bigint,
    'mask, log: what can be masked is kept');
SELECT bench.run('masked', transactions => 50) AS run_id \gset
SELECT is((SELECT (status, failed)::text FROM bench.summary WHERE run_id = :run_id), '(completed,0)', 'and runs');
SELECT pg_stat_statements_reset() \g /dev/null
SELECT date_trunc('month', now()), 'secret' LIMIT 47114711 \g /dev/null
SELECT * FROM person WHERE name = U&'secret!0041' UESCAPE '!' \g /dev/null
COMMENT ON TABLE person IS 'secret';
SET application_name = 'secret';
RESET application_name;
SELECT * FROM bench.capture('masked2', secs => 0, options => '{"mask": true}') \g /dev/null
SELECT is(substring(d::text FROM '.{0,40}(?:secret|month).{0,20}'), NULL, c || ' has no constant')
FROM unnest(ARRAY['masked', 'masked2']) AS c, bench.export_capture(c, with_values => true) AS d;

SELECT is_empty($$ SELECT script FROM bench.workloads WHERE name LIKE 'masked%' AND script ~ '47114711' UNION ALL
    SELECT query FROM bench.capture_statements WHERE capture LIKE 'masked%' AND query ~ '47114711' $$,
    'numbers are values and nothing else');

-- Lists so long that a time like the square of their length would be minutes; PostgreSQL 18 has squashed them.
SELECT pg_stat_statements_reset() \g /dev/null
\o /dev/null
SELECT 'SELECT count(*) FROM form WHERE id IN (' || string_agg(n::text, ', ') || ')' FROM generate_series(1, 65000) AS n
\gexec
SELECT 'SELECT count(*) FROM form WHERE id IN (' || string_agg(n::text, ', ') || ')' FROM generate_series(1, 66000) AS n
\gexec
\o
SELECT clock_timestamp() AS began \gset
SELECT results_eq($$ SELECT reason FROM bench.capture('long', secs => 0) WHERE reason ~ 'parameters' ORDER BY 1 $$, $$
    SELECT * FROM (VALUES ('it has more than 65535 parameters'),
        ('more than 1664 parameters get values of one relation')) AS refusals (reason)
    WHERE current_setting('server_version_num')::int < 180000 $$, 'statements with too many parameters');
SELECT ok(clock_timestamp() - :'began' < '40 s', 'take no longer than that');

-- Names that nothing gives a type are texts, and types that no column has have values.
SELECT pg_stat_statements_reset() \g /dev/null
\o /dev/null
SELECT concat('a', 'b'), format('%s', 'c'), 'd' IS NULL, ROW('e');
SELECT json_build_object('a', 'b');
SELECT tsquery 'a & b', jsonpath '$.a', pg_lsn '0/1', mood 'ok', int4range '[1,2)', tstzmultirange '{}';
SELECT bit varying '101', bit '1', char 'abc', U&'d!0061t' UESCAPE '!', time(0) with time zone '10:00';
SELECT macaddr8 '08:00:2b:01:02:03:04:05', point '(1,2)', xid '5', tid '(0,1)', xml '<a/>', tsvector 'a b', oid '5';
\o
SELECT * FROM bench.capture('texts', secs => 0, options => '{"exclude": ["%reset%"]}') \g /dev/null
SELECT is_empty($$ SELECT query, reason FROM bench.capture_statements 
    WHERE capture = 'texts' AND workload IS NULL AND query NOT LIKE '%reset%' $$,
    'every statement is kept');
SELECT bench.run('texts', transactions => 100) AS run_id \gset
SELECT is_empty(format('SELECT * FROM bench.errors WHERE run_id = %s', :run_id), 'all run without an error');
SELECT * FROM finish();
