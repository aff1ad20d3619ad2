-- The tables take no value beyond their ranges. With what they take, up to both ends, every view and run can be read.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

CREATE TEMP TABLE value (kind text, float text, int8 text, int4 text, at text);
INSERT INTO value
VALUES
    ('greatest', '1.7976931348623157e308', '9223372036854775807', '2147483647', '294276-12-31'),
    ('least', '-1.7976931348623157e308', '-9223372036854775808', '-2147483648', '4713-01-01 BC'),
    ('smallest', '5e-324', '1', '1', 'infinity'),
    ('nothing', '0', '0', '0', '-infinity'),
    ('not a number', 'NaN', '-1', '-1', 'now'),
    ('infinite', 'Infinity', '9223372036854775807', '2147483647', 'infinity'),
    ('below', '-Infinity', '-9223372036854775808', '-2147483648', '-infinity'),
    ('large', '1e160', '9007199254740992', '4194304', 'now'),
    ('small', '1e-160', '2', '2', 'now');

-- What a column has instead of a value out of its range, the first that is within.
CREATE TEMP TABLE instead (type regtype, place int, value jsonb);
INSERT INTO instead
SELECT 'float8'::regtype, i, to_jsonb(v)
FROM unnest('{9007199254740991,-9007199254740991,31622400,1e-75,1,0}'::float8[])
    WITH ORDINALITY AS u (v, i)
UNION ALL
SELECT 'int8'::regtype, i, to_jsonb(v)
FROM unnest('{9007199254740991,-9007199254740991,1,0}'::int8[]) WITH ORDINALITY AS u (v, i)
UNION ALL
SELECT 'int4'::regtype, i, to_jsonb(v) FROM unnest('{262143,65536,1,0}'::int4[]) WITH ORDINALITY AS u (v, i)
UNION ALL
VALUES ('int8[]'::regtype, 1, '[0]'::jsonb), ('float8[]', 1, '[0]'), ('timestamptz', 1, '"294276-12-31"'),
    ('jsonb', 1, '{}'), ('jsonb', 2, '[]'),
    ('text', 1, '"processed"'), ('text', 2, '"completed"');
CREATE TEMP TABLE refused (relation regclass, name text, value jsonb);

-- A row of a table with every value of a kind that its columns take, and keys of its own.
CREATE FUNCTION pg_temp.put(relation regclass, v value, place int, own jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    given jsonb;
    range text;
    name text;
    tries jsonb = '{}';
BEGIN
    SELECT jsonb_object_agg(a.attname, CASE
        WHEN a.attname = 'run_id' OR k.conkey IS NOT NULL AND a.attnum = ANY (k.conkey) THEN
            CASE
                WHEN a.atttypid IN ('text'::regtype, 'name'::regtype) THEN to_jsonb('k' || place)
                ELSE to_jsonb(place)
            END
        WHEN a.atttypid = 'float8'::regtype
            OR a.atttypid = 'float4'::regtype AND v.float IN ('NaN', 'Infinity', '-Infinity', '0') THEN
            to_jsonb(v.float)
        WHEN a.atttypid = 'float4'::regtype THEN '1'
        WHEN a.atttypid = 'int8'::regtype THEN to_jsonb(v.int8)
        WHEN a.atttypid = 'int4'::regtype THEN to_jsonb(v.int4)
        WHEN a.atttypid = 'int8[]'::regtype THEN to_jsonb(array[v.int8])
        WHEN a.atttypid = 'int4[]'::regtype THEN to_jsonb(array[v.int4])
        WHEN a.atttypid = 'float8[]'::regtype THEN to_jsonb(array[v.float])
        WHEN a.atttypid = 'timestamptz'::regtype THEN to_jsonb(v.at)
        WHEN a.atttypid = 'bool'::regtype THEN 'true'
        WHEN a.atttypid = 'text'::regtype THEN '"x"'
        WHEN a.atttypid = 'oid'::regtype THEN '0'
        WHEN a.atttypid IN ('regclass[]'::regtype, 'text[]'::regtype) THEN '[]'
        ELSE '{}'
    END)
        INTO given
    FROM pg_attribute a LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
    WHERE a.attrelid = relation
        AND a.attnum > 0
        AND NOT a.attisdropped
        AND a.attname NOT IN ('sweep_id', 'origin', 'part_of', 'waits', 'system_settings', 'rates');
    given = given || own;
    LOOP
        BEGIN
            EXECUTE format('INSERT INTO %s SELECT (jsonb_populate_record(NULL::%1$s, $1)).*', relation) USING given;
            RETURN;
        EXCEPTION WHEN check_violation THEN
            GET STACKED DIAGNOSTICS range = CONSTRAINT_NAME;
            name = regexp_replace(range, '_range$', '');
            INSERT INTO refused VALUES (relation, name, given -> name);
            tries = tries || jsonb_build_object(name, coalesce((tries ->> name)::int, 0) + 1);
            given = given || jsonb_build_object(name, (
                SELECT i.value
                FROM pg_attribute a JOIN instead i ON i.type = a.atttypid
                WHERE a.attrelid = relation AND a.attname = name AND i.place = (tries ->> name)::int));
        END;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.tables_of_runs() RETURNS SETOF regclass LANGUAGE sql AS $$
    SELECT c.oid::regclass
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'run_id' AND NOT a.attisdropped
    WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
        AND c.relkind = 'r'
        AND c.relname NOT IN ('run_log', 'sweep_run_log')
$$;

-- A run of each kind, with two rows of it in each table; and one with rows of all kinds.
CREATE TEMP TABLE made (run_id bigint, kind text);
INSERT INTO made SELECT nextval('bench_internal.run_id_seq'), kind FROM value;
INSERT INTO made SELECT nextval('bench_internal.run_id_seq'), 'all';
DO $$
DECLARE
    m record;
    v value;
    relation regclass;
    sweep bigint = nextval('bench_internal.sweep_id_seq');
    place int;
BEGIN
    FOR m IN SELECT * FROM made LOOP
        SELECT * INTO v FROM value WHERE kind = CASE m.kind WHEN 'all' THEN 'greatest' ELSE m.kind END;
        PERFORM pg_temp.put('bench_internal.run_log', v, 1, jsonb_build_object('run_id', m.run_id, 'role', current_user,
            'status', 'completed', 'segment', 0, 'sweep_id', sweep,
            'nodes', CASE WHEN m.run_id % 2 = 0 THEN 'local' ELSE 'all' END, 'workload', 'extreme', 'fixture', NULL,
            'environment', jsonb_build_object('processors', to_jsonb(v.int8::numeric))));
        FOR relation IN SELECT * FROM pg_temp.tables_of_runs() LOOP
            place = 0;
            FOR v IN SELECT * FROM value WHERE m.kind IN ('all', kind) LOOP
                FOR i IN 1 .. CASE m.kind WHEN 'all' THEN 1 ELSE 2 END LOOP
                    place = place + 1;
                    PERFORM pg_temp.put(relation, v, place,
                        jsonb_build_object('run_id', m.run_id, 'node',
                            CASE WHEN relation::text LIKE '%samples' THEN place % 3 ELSE place END));
                END LOOP;
            END LOOP;
        END LOOP;
        UPDATE bench_internal.audit_log
        SET harness = 9007199254740991, server = -9007199254740991
        WHERE run_id = m.run_id AND m.kind = 'all';
        -- intervals of several nodes at one time, and of one node one after the other
        UPDATE bench.samples SET elapsed = 1 WHERE run_id = m.run_id AND node IN (1, 2) AND m.kind <> 'all';
        INSERT INTO bench_internal.sweep_run_log (sweep_id, place, round, variant, clients, run_id)
        SELECT sweep, count(*) + 1, count(*) + 1, '', 1, m.run_id
        FROM bench_internal.sweep_run_log
        WHERE sweep_id = sweep;
    END LOOP;
    INSERT INTO bench_internal.sweep_log (sweep_id, options, status, started_at, finished_at, role, extension_version,
        segment)
    SELECT
        sweep,
        '{"workload": "extreme", "clients": [1, 262143], "secs": 1e75, "rounds": 2147483647, "warmup": 1e300, '
            '"rate": -1e300, "before": [], "seed": 9223372036854775807, "variants": [{"name": "", "settings": {}, '
            '"variables": {}, "load": {}, "system": {}}], "variables": {}, "settings": {}, "query_mode": "simple", '
            '"nodes": "local", "tags": {}}',
        'running', '-infinity', 'infinity', current_user, '0', 9223372036854775807;
    INSERT INTO bench.fixtures
    SELECT (jsonb_populate_record(NULL::bench.fixtures, jsonb_build_object('name', 'extreme', 'owner', current_user,
        'schema', 'extreme', 'relations', '{}', 'rows', int8, 'options', '{}', 'loaded_at', 'infinity',
        'load_secs', float, 'rows_per_sec', float, 'table_bytes', int8))).*
    FROM value
    WHERE kind = 'greatest';
END $$;
-- one that crashed, with whatever for a segment, and some without an environment
INSERT INTO made SELECT nextval('bench_internal.run_id_seq'), 'crashed' FROM generate_series(1, 2);
INSERT INTO bench_internal.run_log
SELECT (jsonb_populate_record(r,
    jsonb_build_object('run_id', m.run_id, 'status', 'running', 'segment',
        CASE WHEN m.run_id % 2 = 0 THEN 9223372036854775807 ELSE -1 END, 'finished_at', null))).*
FROM bench_internal.run_log r, made m
WHERE r.run_id = (SELECT run_id FROM made WHERE kind = 'nothing') AND m.kind = 'crashed';
SELECT throws_ok(format('UPDATE bench_internal.run_log SET %s = %L WHERE run_id = %s', name, value,
        (SELECT run_id FROM made WHERE kind = 'small')), '23514', NULL, format('%s = %s is refused', name, value))
FROM (VALUES
    ('part_of', '{"run_id": "x"}'),
    ('part_of', '5'),
    ('environment', '{"processors": 1e400}'),
    ('environment', '{"processors": "many"}'),
    ('environment', '{"driver_cpu_secs": "NaN"}'),
    ('environment', '{"limits": [{"open files": 1e300}]}')
) AS v (name, value);
SELECT ok(count(*) > 200, 'columns of all tables refuse what is out of their ranges')
FROM (SELECT DISTINCT relation, name FROM refused) AS r;
SELECT is(string_agg(DISTINCT format('%s.%s', c.conrelid::regclass, c.conname), ' '), NULL,
    'each range refused something')
FROM pg_constraint c
WHERE c.conname LIKE '%\_range'
    AND c.conname <> ALL ('{part_of_range,environment_range,waits_range,latency_histogram_range}')
    AND NOT EXISTS (SELECT FROM pg_constraint k
        WHERE k.conrelid = c.conrelid AND k.contype = 'p' AND k.conkey @> c.conkey)
    AND NOT EXISTS (SELECT FROM refused r WHERE r.relation = c.conrelid AND r.name || '_range' = c.conname);

SELECT lives_ok(format('SELECT count(v::text), max(v::text) FROM %s v', c.oid::regclass),
    format('%s can be read', c.oid::regclass))
FROM pg_class c
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind IN ('v', 'r', 'm')
ORDER BY c.relname COLLATE "C";
SELECT is(clients::bigint, 2 * 262143::bigint, 'clients of two nodes')
FROM bench.total_samples
WHERE run_id = (SELECT run_id FROM made WHERE kind = 'greatest') AND nodes = 2;
SELECT is(transactions, 2 * 9007199254740991, 'and their transactions')
FROM bench.summary
WHERE run_id = (SELECT run_id FROM made WHERE kind = 'greatest');
SELECT is(difference, 2 * 9007199254740991, 'and differences')
FROM bench.audits
WHERE run_id = (SELECT run_id FROM made WHERE kind = 'all')
LIMIT 1;
-- what each function makes of each run
SELECT lives_ok(format('SELECT count(f::text) FROM bench.%s AS f', replace(call, 'RUN', m.run_id::text)),
    format('%s of a run with %s', replace(call, '(RUN', '('), m.kind))
FROM made m,
    unnest('{report(RUN),"report(RUN, ''markdown'')","report(RUN, ''json'')","report(RUN, ''html'')",findings(RUN),'
        'audit(RUN),"percentile(RUN, 0.5)",export(ARRAY[RUN])}'::text[]) AS call
WHERE kind <> 'odd'
ORDER BY m.run_id;
SELECT lives_ok(format('SELECT bench.compare_report(ARRAY[%s], ARRAY[%s], %L)', m.run_id, o.run_id, format),
    format('compare_report(, , %L) of runs with %s and %s', format, m.kind, o.kind))
FROM made m, made o, unnest('{text,markdown,json,html}'::text[]) AS format
WHERE (m.kind = 'all' OR o.kind = 'all') AND m.kind <> o.kind AND m.kind || o.kind !~ 'odd|crashed'
ORDER BY m.run_id, o.run_id;
SELECT lives_ok(format('SELECT count(f::text) FROM bench.%s AS f',
    replace(call, 'SWEEP',
        (SELECT min(sweep_id) FROM bench_internal.sweep_log WHERE options ->> 'workload' = 'extreme')::text)),
    replace(call, 'SWEEP', 'of the sweep'))
FROM unnest(
    '{scalability(SWEEP),sweep_report(SWEEP),"sweep_report(SWEEP, ''html'')","sweep_report(SWEEP, ''json'')"}'::text[])
    AS call;

\o /dev/null
DELETE FROM bench.fixtures WHERE name = 'extreme';
DELETE FROM bench_internal.run_log WHERE run_id IN (SELECT run_id FROM made);
DELETE FROM bench_internal.sweep_log WHERE role = current_user AND extension_version = '0';
\o
SELECT is((SELECT count(*) FROM bench.samples s JOIN made USING (run_id)), 0::bigint,
    'such runs can be deleted as well');
SELECT * FROM finish();
