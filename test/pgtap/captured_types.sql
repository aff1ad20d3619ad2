-- Parameters of captured statements have the types that their constants had: what is kept runs, whatever the types are.
SET client_min_messages = error;
SELECT no_plan();

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN code AS text CHECK (value ~ '^c[0-9]+$');
CREATE TABLE t (
    id int PRIMARY KEY, tags int[], big bigint[], num numeric[], ms mood[], c code, mo money, mr int4multirange,
    tr tstzrange, dr daterange, o oid, jb jsonb, js json
);
INSERT INTO t
SELECT i, ARRAY[i % 10, i % 7], ARRAY[3000000000 + i % 10], ARRAY[i % 10 + 0.5], ARRAY['sad']::mood[], 'c' || i,
    i::money, int4multirange(int4range(i, i + 5), int4range(i + 9, i + 12)),
    tstzrange(now(), now() + i * interval '1 h'),
    daterange(current_date, current_date + i), 1259, jsonb_build_object('size', i % 10, 'a''b', i),
    '{"tone": "low"}'
FROM generate_series(1, 1000) AS i;
ANALYZE t;
SELECT pg_stat_statements_reset() \g /dev/null
\o /dev/null
SELECT count(*) FROM t WHERE tags @> ARRAY[3];
SELECT count(*) FROM t WHERE tags && ARRAY[3, 4, 5];
SELECT count(*) FROM t WHERE big @> ARRAY[3000000000];
SELECT count(*) FROM t WHERE num @> ARRAY[3.5];
SELECT count(*) FROM t WHERE id = ANY (ARRAY[3, 5]);
SELECT count(*) FROM t WHERE ms @> ARRAY['sad'::mood];
SELECT count(*) FROM t WHERE mr @> 5;
SELECT count(*) FROM t WHERE c = 'c5';
SELECT count(*) FROM t WHERE mo = 5::money;
SELECT count(*) FROM t WHERE tr @> '2030-01-01'::timestamptz;
SELECT count(*) FROM t WHERE dr @> '2030-01-01'::date;
SELECT count(*) FROM t WHERE '2030-01-01'::date <@ dr;
SELECT count(*) FROM t WHERE (id, c) IN ((3, 'c3'), (4, 'c4'));
SELECT count(*) FROM t WHERE o = 'pg_class'::regclass;
SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass;
SELECT * FROM generate_series(1, 5);
SELECT jb ->> 'size' FROM t WHERE id = 5;
SELECT count(*) FROM t WHERE jb ->> 'size' = '7';
SELECT count(*) FROM t WHERE js -> 'tone' IS NOT NULL;
SELECT count(*) FROM t WHERE (jb -> 'size')::int > 3;
\o
SELECT * FROM bench.capture('types', secs => 0, statements => 100) \g /dev/null

SELECT is_empty($$
    SELECT query, reason FROM bench.capture_statements
    WHERE capture = 'types' AND workload IS NULL AND query NOT LIKE '%pg_stat_statements_reset%'
$$, 'every statement is kept');
SELECT ok(count(*) >= 15, 'all of them')
FROM bench.capture_statements
WHERE capture = 'types' AND workload IS NOT NULL;
SELECT set_eq($$
    SELECT w.script
    FROM bench.workloads w JOIN bench.capture_statements s ON s.workload = w.name
    WHERE s.capture = 'types' AND s.query ~ '(tags|big|num) @> ARRAY'
$$, $$ VALUES
    ('SELECT count(*) FROM t WHERE tags @> ARRAY[:p1]::integer[];'),
    ('SELECT count(*) FROM t WHERE big @> ARRAY[:p1]::bigint[];'),
    ('SELECT count(*) FROM t WHERE num @> ARRAY[:p1]::numeric[];')
$$, 'elements of an array have its type');
SELECT set_eq($$
    -- By the feeder's query, or by the values that were kept because they come nearer.
    SELECT s.query, r.query LIKE '%jsonb_each%' OR (
        SELECT bool_and(c.row ->> 'p1' IN ('size', 'a''b', 'tone')) FROM bench.captured_rows c
        WHERE c.workload = s.workload)
    FROM bench.feeders r JOIN bench.capture_statements s USING (workload)
    WHERE s.capture = 'types' AND s.query ~ ' ->'
$$, $$ VALUES
    ('SELECT jb ->> $1 FROM t WHERE id = $2', true),
    ('SELECT count(*) FROM t WHERE jb ->> $1 = $2', true),
    ('SELECT count(*) FROM t WHERE js -> $1 IS NOT NULL', true),
    ('SELECT count(*) FROM t WHERE (jb -> $1)::int > $2', true)
$$, 'fields are those of rows');
SELECT bench.run('types', clients => 2, transactions => 200) AS run_id \gset
SELECT is_empty(format('SELECT * FROM bench.errors WHERE run_id = %s', :run_id), 'all run without an error');
SELECT is_empty(
    format('SELECT * FROM bench.scripts WHERE run_id = %s AND (failed > 0 OR transactions = 0)', :run_id),
    'each of them'
);
SELECT * FROM finish();
