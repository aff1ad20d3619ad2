--
-- bench.capture_log: its arguments, and what it makes of a log in a table
--

\pset format unaligned
\pset footer off
SELECT bench.capture_log(NULL, 'pg_class');
SELECT bench.capture_log('l');
SELECT bench.capture_log('l', 'pg_class', file => 'log');
SELECT bench.capture_log('a@b', 'pg_class');
SELECT bench.capture_log('', 'pg_class');
SELECT bench.capture_log(repeat('x', 60), 'pg_class');
SELECT bench.capture_log('l', 'pg_class', shapes => 0);
SELECT bench.capture_log('l', 'pg_class', shapes => 129);
SELECT bench.capture_log('l', file => 'log', format => 'stderr');
SELECT bench.capture_log('l', 'pg_class', options => '{"write": true}');
SELECT bench.capture_log('l', 'pg_class', options => '{"sample_rate": 0}');
SELECT bench.capture_log('l', 'pg_class', options => '{"think_times": "all"}');
SELECT bench.capture_log('l', 'pg_class', options => '{"max_rows": 1e9}');
SELECT bench.capture_log('l', 'pg_class', options => '[]');
SELECT bench.capture_log('l', 'pg_class', options => NULL);
SELECT bench.capture_log('l', 'pg_class');

-- A log of another database, and none at all
CREATE TABLE capture_log_lines (line jsonb);
SELECT bench.capture_log('l', 'capture_log_lines');
CREATE FUNCTION log_line(n int, vxid text, message text, detail text DEFAULT '', severity text DEFAULT 'LOG')
RETURNS void LANGUAGE sql AS $$ INSERT INTO capture_log_lines SELECT jsonb_build_object(
    'timestamp', '2026-11-24 12:00:' || lpad((n / 10)::text, 2, '0') || '.' || n % 10 || '00 UTC', 'user', current_user,
    'dbname', current_database(), 'session_id', 's', 'line_num', n, 'vxid', vxid, 'error_severity', severity,
    'message', message, 'detail', detail) $$;
SELECT count(log_line(n, '3/0', 'connection received')) FROM generate_series(1, 2) AS n;
SELECT bench.capture_log('l', 'capture_log_lines');

-- Shapes, one of which the server does not take
CREATE TABLE capture_log_item (id int PRIMARY KEY, name text);
SELECT count(log_line(n, '3/0',
    format('duration: 1.000 ms  statement: SELECT name FROM capture_log_item WHERE id = %s', n)))
FROM generate_series(10, 19) AS n;
SELECT count(log_line(n, '3/' || n,
    'duration: 2.000 ms  execute S_1: SELECT * FROM capture_log_item WHERE name = $1 OR $1 IS NULL',
    CASE WHEN n % 2 = 0 THEN 'parameters: $1 = NULL' ELSE 'Parameters: $1 = ''it''''s''' END))
FROM generate_series(20, 25) AS n;
SELECT count(log_line(n, '3/0', 'duration: 3.000 ms  statement: SELECT * FROM capture_log_gone WHERE a = 1'))
FROM generate_series(30, 31) AS n;
SELECT count(log_line((40 + n)::int, CASE n WHEN 4 THEN '3/0' ELSE '3/40' END, 'duration: 0.500 ms  statement: ' || s))
FROM unnest(ARRAY['BEGIN', 'SELECT 1 LIMIT 5', 'SELECT count(*) FROM capture_log_item', 'COMMIT'])
    WITH ORDINALITY AS t (s, n);
SELECT log_line(50, '3/0', 'duration: 7.000 ms  statement: VACUUM');
SELECT log_line(51, '3/0', 'duration: 1.000 ms  statement: INSERT INTO capture_log_item VALUES (1, ''x'')');
SELECT bench.capture_log('pk_select', 'capture_log_lines');
SELECT workload, weight, calls, share_percent, kept, reason, exec_ms_avg, value_rows, query
FROM bench.capture_log('capture_log', 'capture_log_lines');
SELECT name, script FROM bench.workloads WHERE name LIKE 'capture_log/%' ORDER BY name;
SELECT workload, prefix, query, pick FROM bench.feeders WHERE workload LIKE 'capture_log/%' ORDER BY 1;
SELECT workload, row FROM bench.captured_rows WHERE row_number < 3
    AND workload LIKE 'capture_log/%' ORDER BY workload, row_number;
SELECT source, status, secs, calls, exec_ms, notes FROM bench.captures WHERE name = 'capture_log';
SET client_min_messages TO warning;
SELECT bench.run('capture_log', transactions => 20, seed => 1) IS NOT NULL AS ran;
SELECT status, transactions, failed FROM bench.summary ORDER BY run_id DESC LIMIT 1;
SELECT workload, score FROM bench.fidelity((SELECT max(run_id) FROM bench.runs)) ORDER BY workload;

SELECT bench.preview(NULL, workload => 'capture_log');

-- No name is a workload's and a capture's, nor a part of one
SELECT bench.create_workload('capture_log', 'SELECT 1;');
SELECT bench.create_workload('capture_log/1', 'SELECT 1;');
SELECT bench.create_workload('orders/6', 'SELECT 1;');
SELECT bench.capture_log('capture_log/4', 'capture_log_lines');
SELECT bench.create_workload('capture_log_2/1', 'SELECT 1;');
SELECT bench.capture_log('capture_log_2', 'capture_log_lines');
SELECT bench.drop_workload('capture_log_2/1');

-- Again, it takes the place of the one before, of which nothing stays
SELECT workload, calls FROM bench.capture_log('capture_log', 'capture_log_lines',
    shapes => 1, options => '{"roles": "own", "max_rows": 3}')
WHERE kept;
SELECT count(*) FROM bench.workloads WHERE name LIKE 'capture_log/%';
SELECT count(*) FROM bench.captured_rows WHERE workload LIKE 'capture_log/%';
SELECT bench.drop_capture('capture_log');
SELECT count(*) FROM bench.workloads WHERE name LIKE 'capture_log/%';
DROP FUNCTION log_line;
DROP TABLE capture_log_lines, capture_log_item;
