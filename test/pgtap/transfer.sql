-- Runs as documents, and their end: bench.export, bench.import, bench.prune.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

DROP ROLE IF EXISTS trf_alice, trf_bob, trf_boss, trf_stats;
CREATE ROLE trf_alice LOGIN;
CREATE ROLE trf_bob LOGIN;
CREATE ROLE trf_boss LOGIN IN ROLE trf_alice;
CREATE ROLE trf_stats LOGIN IN ROLE pg_read_all_stats;
GRANT EXECUTE ON FUNCTION bench.run, bench.start TO trf_alice;
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO PUBLIC;
SELECT current_user AS me \gset

\o /dev/null
SELECT bench.load('pk', 1000), bench.load('log', 0);
SELECT bench.create_workload('trf_errors', E'\\set n :client_id\nBEGIN;\nSELECT 1 / (:n::int % 2);\nEND;');
SELECT bench.create_workload('trf_slow', 'SELECT pg_sleep(0.01);');
SELECT bench.create_workload('trf_nothing', 'SELECT 1;');
SELECT bench.run('pk_update@3,trf_errors@1', clients => 2, secs => 0.6, warmup => 0.2, sample_interval => 0.1,
    rate => 500, latency_limit => 1000, variables => '{"x": null, "y": 1.5}', settings => '{"work_mem": "5MB"}',
    tags => '{"a": null, "b": {"c": [1, null]}}', seed => 9223372036854775807, log_rate => 1) AS mixed \gset
SELECT bench.run('pk_insert', clients => 2, transactions => 50, sample_interval => 0.1, log_rate => 1) AS plain \gset
\o

-- What a run is to those who read it, without what has to differ.
CREATE FUNCTION pg_temp.told(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(E'\n', bench.report(run, 'json')::jsonb #- '{run,run_id}' #- '{run,role}' #- '{run,origin}',
        (SELECT to_jsonb(s) - 'run_id' FROM bench.summary s WHERE run_id = run),
        (SELECT to_jsonb(r) - '{run_id,role,origin}'::text[] FROM bench.runs r WHERE run_id = run),
        (SELECT jsonb_agg(f) FROM bench.findings(run) AS f), (SELECT jsonb_agg(a) FROM bench.audit(run) AS a),
        (SELECT jsonb_agg(bench.percentile(run, p)) FROM unnest('{0,0.5,0.99,0.999,1}'::float8[]) AS p))
$$;
-- Rows of a run in each table that has any, whichever these are.
CREATE FUNCTION pg_temp.kept(run bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    found jsonb = '{}';
    relation record;
    rows text;
BEGIN
    FOR relation IN
        SELECT c.relname, c.oid::regclass AS name
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'run_id'
        WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind = 'r'
        ORDER BY 1
    LOOP
        EXECUTE format($q$
            SELECT count(*) || ' ' || md5(string_agg(
                (to_jsonb(t) - '{run_id,role,segment,coordinator_pid,origin}'::text[])::text, ',' ORDER BY t))
            FROM %s t
            WHERE run_id = $1
        $q$, relation.name) INTO rows USING run;
        IF rows IS NOT NULL THEN found = found || jsonb_build_object(relation.relname, rows); END IF;
    END LOOP;
    RETURN found;
END $$;

--
-- The document has everything
--
CREATE TEMP TABLE documents AS SELECT bench.export(ARRAY[:plain, :mixed]) AS d;
GRANT SELECT ON documents TO PUBLIC;
SELECT bag_eq($$
    SELECT key FROM documents, jsonb_each(d) WHERE jsonb_typeof(value) IN ('array', 'object') AND key <> 'server'
$$, $$
    SELECT c.relname::text
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'run_id'
    WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
        AND c.relkind = 'r'
        AND c.relname <> 'sweep_run_log'
$$, 'every table with rows of runs is in the document; a sweep is not');
SELECT is(jsonb_path_query_array(d, '$.run_log[*].run_id'), jsonb_build_array(:plain, :mixed),
    'runs are in the order of the call')
FROM documents;
SELECT
    is(d -> 'format_version', '1'::jsonb, 'it has a version'),
    is(d -> 'server' ->> 'system_identifier', (SELECT system_identifier::text FROM pg_control_system()),
        'says of which server it is'),
    is(d -> 'server' ->> 'server_version', current_setting('server_version'), 'of which version'),
    is(d -> 'server' ->> 'extension_version', (SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext'),
        'and by which'),
    ok(abs(extract(epoch FROM now() - (d ->> 'exported_at')::timestamptz)) < 600, 'and when'),
    ok(NOT (d -> 'run_log' -> 0) ?| '{segment,coordinator_pid}', 'nothing of the server''s own')
FROM documents;
SELECT is(jsonb_array_length(d #> '{samples,tps}'),
    (SELECT count(*)::int FROM bench.samples WHERE run_id IN (:plain, :mixed)), 'all samples')
FROM documents;
SELECT is(bench.export(ARRAY[:plain, :mixed]) - 'exported_at', d - 'exported_at',
    'the same runs make the same document')
FROM documents;

--
-- And comes back as it was
--
SELECT bench.import(d) AS copies FROM documents \gset
SELECT
    is(cardinality(:'copies'::bigint[]), 2, 'as many ids as runs'),
    is(array_agg(workload ORDER BY run_id), '{pk_insert,"pk_update@3,trf_errors@1"}', 'in their order')
FROM bench.runs
WHERE run_id = ANY (:'copies');
SELECT
    is(pg_temp.kept((:'copies'::bigint[])[2]), pg_temp.kept(:mixed), 'every row of the mix'),
    is(pg_temp.kept((:'copies'::bigint[])[1]), pg_temp.kept(:plain), 'and of the other');
SELECT
    is(pg_temp.told((:'copies'::bigint[])[2]), pg_temp.told(:mixed),
        'reports, findings, audit, summary and percentiles of the mix are the same'),
    is(pg_temp.told((:'copies'::bigint[])[1]), pg_temp.told(:plain), 'and of the other');
SELECT
    is(origin - '{exported_at,imported_at}'::text[],
        jsonb_build_object('run_id', :mixed, 'role', :'me', 'database', current_database(), 'system_identifier',
            (SELECT system_identifier::text FROM pg_control_system()), 'started_at',
            (SELECT to_jsonb(started_at) FROM bench.runs WHERE run_id = :mixed)),
        'the copy says where it is from'),
    is(origin -> 'exported_at', (SELECT d -> 'exported_at' FROM documents), 'since when'),
    ok((origin ->> 'imported_at')::timestamptz <= now(), 'and when it came')
FROM bench.runs
WHERE run_id = (:'copies'::bigint[])[2];
SELECT is(origin, NULL, 'a run made here has no origin') FROM bench.runs WHERE run_id = :mixed;
SELECT
    matches(bench.report((:'copies'::bigint[])[2]), 'imported: run ' || :mixed || ' of role ', 'the report says it'),
    doesnt_match(bench.report(:mixed), 'imported', 'of those only');
SELECT
    is(bench.stop(id), false, 'there is nothing to stop'),
    is(bench.wait(id, 1), status, 'nor to wait for')
FROM unnest(:'copies'::bigint[], ARRAY['completed', 'incomplete']) AS c (id, status);
SELECT is(count(*), 0::bigint, 'and no progress') FROM bench.progress;
SELECT throws_ok('SELECT bench.import(d) FROM documents', '23505',
    format('role "%s" has already imported run %s of the document', :'me', :plain), 'a second time is refused');
-- by way of a third server, too
SELECT throws_ok(format('SELECT bench.import(bench.export(%L))', :'copies'), '23505', NULL,
    'also as a copy of the copy');
SELECT is(d #> '{run_log,0,origin}', (SELECT origin FROM bench.runs WHERE run_id = (:'copies'::bigint[])[1]),
    'which keeps its first origin')
FROM bench.export(:'copies') AS d;
SELECT is(count(*), 2::bigint, 'nothing was left by what was refused')
FROM bench_internal.run_log WHERE origin IS NOT NULL;

-- What was said of the runs that were in the way of an audit goes with it
INSERT INTO bench_internal.run_log
SELECT (r).*
FROM (
    SELECT jsonb_populate_record(x, jsonb_build_object('run_id', nextval('bench_internal.run_id_seq'), 'seed', -1)) AS r
    FROM bench_internal.run_log x
    WHERE run_id = :plain
) AS s;
SELECT run_id AS beside FROM bench_internal.run_log WHERE seed = -1 \gset
SELECT
    is(count(*) FILTER (WHERE ok IS NULL
        AND reason = format('run %s worked on the same fixture, or ran the same workload, at the same time', :beside)),
        count(*) FILTER (WHERE counter <> 'samples' AND ok IS NULL AND reason ~ 'worked on'),
        'a run beside another keeps its audit from being judged'),
    ok(bool_or(reason ~ 'worked on'), 'there is one')
FROM bench.audit(:plain);
SELECT bench.import(bench.export(ARRAY[:plain]) #- '{server,system_identifier}') AS copy \gset
SELECT results_eq(format('SELECT * FROM bench.audit(%s)', (:'copy'::bigint[])[1]),
    format('SELECT * FROM bench.audit(%s)', :plain), 'where that run is not, the audit is the same');
SELECT is(count(*), 0::bigint, 'an imported run is in nobody''s way')
FROM bench.audits
WHERE reason ~ format('run (%s) worked on', array_to_string(:'copy'::bigint[] || :'copies'::bigint[], '|'));
DELETE FROM bench_internal.run_log WHERE run_id = :beside;

--
-- Documents that are none
--
SELECT throws_ok(format('SELECT bench.import(%L)', d), '22023', 'document was not made by bench.export',
    format('no document: %s', d))
FROM unnest('{"{}","[]","1","null","{\"format_version\": 1}","{\"format_version\": 1, \"run_log\": {}}",'
    '"{\"format_version\": \"1\", \"run_log\": []}","{\"format_version\": null, \"run_log\": []}"}'::text[]) AS d;
SELECT
    throws_ok($$SELECT bench.import('{"format_version": 2, "run_log": []}')$$, '0A000',
        'the document has format version 2, but this extension reads versions up to 1', 'a later version'),
    throws_ok($$SELECT bench.import('{"format_version": 1.5, "run_log": []}')$$, '0A000',
        'the document has format version 1.5, but this extension reads versions up to 1', 'half a version later'),
    throws_ok($$SELECT bench.import('{"format_version": 1e400, "run_log": []}')$$, '0A000', NULL, 'much later'),
    throws_ok($$SELECT bench.import('{"format_version": 0, "run_log": []}')$$, '22023',
        'the document has unknown format version 0', 'an earlier one');
SELECT throws_ok(format('SELECT bench.import(%L)', '{"format_version": 1, ' || d || '}'), '22023', message, message)
FROM (
    VALUES
        ('"run_log": [1]',
            'invalid "run_log" in the document: argument of jsonb_populate_recordset must be an array of objects'),
        ('"run_log": [{}]', 'a run of the document has no run_id'),
        ('"run_log": [{"run_id": 1}]', 'run 1 of the document has status ""'),
        ('"run_log": [{"run_id": 1, "status": "running"}]', 'run 1 of the document has status "running"'),
        ('"run_log": [{"run_id": 1, "status": "failed"}, {"run_id": 1, "status": "failed"}]',
            'run 1 is in the document more than once'),
        ('"run_log": [{"run_id": 1, "status": "failed", "origin": 1}]',
            'run 1 of the document has an origin that is not an object'),
        ('"run_log": [], "samples": 1', 'invalid "samples" in the document: cannot call jsonb_each on a non-object'),
        ('"run_log": [], "samples": {"run_id": [1]}', '"samples" of the document has rows of runs that are not in it'),
        ('"run_log": [], "samples": {"run_id": [1], "tps": []}',
            '"samples" of the document has columns of different lengths')
) AS v (d, message);
CREATE FUNCTION pg_temp.hint_of(d jsonb, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN PERFORM bench.import(d); EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT; END$$;
SELECT
    is(pg_temp.hint_of('{}'), 'Pass the complete result of bench.export.', 'the hints: of no document'),
    is(pg_temp.hint_of('{"format_version": 2, "run_log": []}'), 'Update pgbench_ext on this server.', 'of a version'),
    is(pg_temp.hint_of('{"format_version": 1, "run_log": [{"run_id": 1}]}'),
        'The status of an ended run is completed, incomplete, canceled, failed, crashed.', 'of a status');
SELECT is(bench.import('{"format_version": 1, "run_log": []}'), '{}', 'a document without runs');
SELECT
    throws_ok('SELECT bench.import(NULL)', '22004', 'document must not be null', 'NULL'),
    throws_ok('SELECT bench.export(NULL)', '22004', 'run_ids must not be null', 'no runs: NULL'),
    throws_ok('SELECT bench.export(''{1,NULL}'')', '22004', 'an element of run_ids must not be null',
        'one of them NULL'),
    throws_ok('SELECT bench.export(''{}'')', '22023', 'run_ids must not be empty', 'none'),
    throws_ok(format('SELECT bench.export(''{%1$s,%1$s}'')', :plain), '22023',
        format('run %s is in run_ids more than once', :plain), 'twice the same'),
    throws_ok('SELECT bench.export(''{-1}'')', '42704', 'run -1 does not exist', 'one that does not exist');

-- Hostile ones: an error, whatever is in them, and nothing is left
CREATE TEMP TABLE base AS SELECT bench.export(ARRAY[:plain]) - 'server' AS d; -- of another server
-- so short a run may be without waits, and without an interval that a processor's clock has ticked in
UPDATE base
SET d = jsonb_set(d, '{wait_log}',
    (
        SELECT jsonb_object_agg(c, jsonb_build_array(v))
        FROM jsonb_each(jsonb_build_object('run_id', d #> '{run_log,0,run_id}', 'node', 0, 'wait_event_type', 'CPU',
            'wait_event', 'CPU', 'share', 1)) AS w (c, v)
    ));
UPDATE base
SET d = jsonb_set(d, '{samples}',
    (
        SELECT jsonb_object_agg(column_name,
            (
                SELECT jsonb_agg(coalesce(d #> ARRAY['samples', column_name, i::text], 'null'))
                FROM generate_series(0, jsonb_array_length(d #> '{samples,run_id}') - 1) AS i
            ))
        FROM information_schema.columns
        WHERE table_schema = 'bench' AND table_name = 'samples'
    ));
SELECT string_agg(format('%s %s', k, v), ',' ORDER BY k) AS before
FROM jsonb_each_text(jsonb_build_object('runs', (SELECT count(*) FROM bench_internal.run_log), 'samples',
    (SELECT count(*) FROM bench.samples))) AS e (k, v) \gset
CREATE TEMP TABLE hostile (what text, code text, d jsonb);
INSERT INTO hostile
SELECT what, code, jsonb_set(d, path::text[], value::jsonb)
FROM base,
    (VALUES
        ('status running', '22023', '{run_log,0,status}', '"running"'),
        ('starting', '22023', '{run_log,0,status}', '"starting"'),
        ('unheard of', '22023', '{run_log,0,status}', '"done"'),
        ('no status', '22023', '{run_log,0,status}', 'null'),
        ('no run_id', '22023', '{run_log,0,run_id}', 'null'),
        ('a text for a run_id', '22P02', '{run_log,0,run_id}', '"x"'),
        ('an origin that is none', '22023', '{run_log,0,origin}', '[]'),
        ('no workload', '23502', '{run_log,0,workload}', 'null'),
        ('a number for a time', '22007', '{run_log,0,started_at}', '"soon"'),
        ('no server_version', '23502', '{run_log,0,server_version}', 'null'),
        ('a time without end', '22003', '{run_log,0,finished_at}', '"infinity"'),
        ('no number asked for', '22003', '{run_log,0,rate}', '"NaN"'),
        ('tags that are none', '22023', '{run_log,0,tags}', '1'),
        ('an environment that is none', '22003', '{run_log,0,environment}', '5'),
        ('clients below zero', '22003', '{run_log,0,clients}', '-1'),
        ('runs that are none', '22023', '{run_log,0}', '5'),
        ('a list that is none', '22023', '{samples}', '"x"'),
        ('rows for columns', '22023', '{samples}', '[1]'),
        ('a column that is none', '22023', '{samples,tps}', '1'),
        ('one that is longer', '22023', '{samples,tps}', '[1, 2, 3, 4, 5, 6, 7, 8, 9]'),
        ('nulls for numbers', '23502', '{samples,tps,0}', 'null'),
        ('samples of another run', '22023', '{samples,run_id,0}', '0'),
        ('of none', '22023', '{samples,run_id,0}', 'null'),
        ('latencies of another', '22023', '{latencies,run_id,0}', '9223372036854775807'),
        ('words for a number', '22P02', '{samples,tps,0}', '"many"'),
        ('a list for one', '22P02', '{samples,tps,0}', '[]'),
        ('not a number', '22003', '{samples,elapsed,0}', '"NaN"'),
        ('infinity', '22003', '{samples,tps,0}', '"Infinity"'),
        ('beyond double precision', '22003', '{samples,tps,0}', '1e400'),
        ('nearly so', '22003', '{samples,tps,0}', '1e308'),
        ('beyond bigint', '22003', '{samples,transactions,0}', '1e19'),
        ('half a transaction', '22P02', '{samples,transactions,0}', '0.5'),
        ('as many as there can be', '22003', '{samples,transactions,0}', '9223372036854775807'),
        ('below zero', '22003', '{latencies,count,0}', '-1'),
        ('an interval of no length', '22003', '{samples,secs,0}', '0'),
        ('of less', '22003', '{samples,secs,0}', '-1'),
        ('waits that are none', '22003', '{samples,waits,0}', '5'),
        ('waits of words', '22003', '{samples,waits,0}', '{"CPU": "much"}'),
        ('buckets that are none', '22003', '{samples,latency_histogram,0}', '[1]'),
        ('of no number', '22003', '{samples,latency_histogram,0}', '{"x": 1}'),
        ('beyond the last', '22003', '{samples,latency_histogram,0}', '{"100": 1}'),
        ('with words', '22003', '{samples,latency_histogram,0}', '{"30": "many"}'),
        ('with less than none', '22003', '{samples,latency_histogram,0}', '{"30": -1}'),
        ('the least of all', '22003', '{audit_log,harness,0}', '-9223372036854775808'),
        ('no clients', '22003', '{run_log,0,clients}', '0'),
        ('more than any server has', '22003', '{run_log,0,clients}', '2147483647'),
        ('more at work', '22003', '{samples,clients,0}', '2147483647'),
        ('fewer than none', '22003', '{samples,clients,0}', '-1'),
        ('processors of more than a machine', '22003', '{run_log,0,environment}', '{"processors": 4294967295}'),
        ('none', '22003', '{run_log,0,environment}', '{"processors": 0}'),
        ('less', '22003', '{run_log,0,environment}', '{"processors": -1}'),
        ('a share above 1', '22003', '{samples,cpu_idle,0}', '1.5'),
        ('below 0', '22003', '{samples,cpu_user,0}', '-0.1'),
        ('of waits', '22003', '{wait_log,share,0}', '2'),
        ('of an interval''s waits', '22003', '{samples,waits,0}', '{"CPU": 1e300}'),
        ('an end before the begin', '22003', '{samples,elapsed,0}', '-1'),
        ('a latency below 0', '22003', '{samples,latency_avg_ms,0}', '-1'),
        ('counts below 0', '22003', '{samples,transactions,0}', '-1'),
        ('WAL below 0', '22003', '{samples,wal_bytes,0}', '-1'),
        ('seconds asked for', '22003', '{run_log,0,secs}', '-1'),
        ('years of them', '22003', '{run_log,0,secs}', '1e9'),
        ('a warm-up before it begins', '22003', '{run_log,0,warmup}', '-1'),
        ('no transactions asked for', '22003', '{run_log,0,transactions}', '0'),
        ('a rate of none', '22003', '{run_log,0,rate}', '0'),
        ('no interval', '22003', '{run_log,0,sample_interval}', '0'),
        ('tries below 0', '22003', '{run_log,0,max_tries}', '-1'),
        ('rows below 0', '22003', '{run_log,0,fixture_rows}', '[-1]'),
        ('a backlog below 0', '22003', '{run_log,0,backlog}', '-1'),
        ('a part of nothing', '22003', '{run_log,0,part_of}', '{"run_id": "x"}'),
        ('of no run', '22003', '{run_log,0,part_of}', '{}'),
        ('a weight below 0', '22003', '{script_log,weight,0}', '-1'),
        ('a line before the first', '22003', '{statement_log,line,0}', '-1'),
        ('a node below 0', '22003', '{samples,node,0}', '-1'),
        ('a log of more than all', '22003', '{run_log,0,log_rate}', '1.5'),
        ('an outcome that is none', '22003', '{transactions,outcome,0}', '"gone"'),
        ('a latency of it below 0', '22003', '{transactions,latency_ms,0}', '-1')
    ) AS v (what, code, path, value);
INSERT INTO hostile
SELECT 'a run twice', '22023', jsonb_set(d, '{run_log}', (d -> 'run_log') || (d -> 'run_log'))
FROM base;
INSERT INTO hostile
SELECT
    format('%s: a row twice', relation),
    '23505',
    jsonb_set(d, ARRAY[relation],
        (SELECT jsonb_object_agg(key, value || jsonb_build_array(value -> 0)) FROM jsonb_each(d -> relation)))
FROM base, unnest('{samples,latencies,transactions,script_log,statement_log,audit_log}'::text[]) AS relation;
INSERT INTO hostile SELECT 'a column that must be there', '23502', d #- '{samples,tps}' FROM base;
-- nodes of a cluster
INSERT INTO hostile
SELECT
    what,
    '22003',
    jsonb_set(d, '{node_log}',
        '{"run_id": [1], "node": [1], "name": ["a:1"], "is_coordinator": [true], "clients": [1], '
            '"status": ["completed"]}' || jsonb_build_object('run_id', jsonb_build_array(d #> '{run_log,0,run_id}'))
            || value::jsonb)
FROM base,
    (VALUES
        ('a node with clients above all', '{"clients": [2147483647]}'),
        ('processors of a node', '{"processors": [2147483647]}'),
        ('none of them', '{"processors": [0]}'),
        ('a status of a node', '{"status": ["running"]}'),
        ('a node''s share', '{"cpu_idle": [2]}'),
        ('a node''s clock', '{"clock_offset_ms": [1e300]}')
    ) AS v (what, value);
SELECT is(pg_temp.sqlstate_of(format('SELECT bench.import(%L)', d)), code, 'refused: ' || what) FROM hostile;
SELECT is(format('runs %s,samples %s', (SELECT count(*) FROM bench_internal.run_log),
        (SELECT count(*) FROM bench.samples)), :'before', 'nothing of them is left');
SELECT throws_ok(format('SELECT bench.import(%L)', d), '22P02',
    'invalid "samples" in the document: invalid input syntax for type double precision: "many"', 'the error says where')
FROM hostile
WHERE what = 'words for a number';
CREATE FUNCTION pg_temp.told_of(sql text, OUT message text, OUT detail text) LANGUAGE plpgsql AS $$
BEGIN EXECUTE sql; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS message = MESSAGE_TEXT,
    detail = PG_EXCEPTION_DETAIL; END$$;
SELECT results_eq(format('SELECT * FROM pg_temp.told_of(%L)', format('SELECT bench.import(%L)', d)),
    format('SELECT %L, %L', format('invalid "samples" in the document: clients of run %s is out of range', :plain),
        'It is 2147483647, but must satisfy ((clients >= 0) AND (clients <= 262143)).'),
    'which run, which field, and its range')
FROM hostile
WHERE what = 'more at work';
SELECT is((SELECT t.message || ' ' || left(t.detail, 33) FROM pg_temp.told_of(format('SELECT bench.import(%L)', d)) t),
    format('invalid "run_log" in the document: environment of run %s is out of range ', :plain)
        || 'It is {"processors": 4294967295},', 'of a member too')
FROM hostile
WHERE what = 'processors of more than a machine';
-- and what is merely ignored
SELECT bench.import((d || '{"later": [1], "samples": {"later": []}}'
    || jsonb_build_object('run_log',
        jsonb_build_array((d #> '{run_log,0}'
            ||
                '{"segment": 1, "coordinator_pid": 1, "role": "trf_alice", "later": {}, "run_id": 77}') -
            '{driver,query_mode,nodes}'::text[]))) -
    '{warmup_samples,latencies,error_log,script_log,statement_log,wait_log,event_log,relation_log,audit_log}'::text[]
    - 'call_log' -
    'transactions')
    AS ignored
FROM base \gset
-- a document without what is optional
SELECT bench.import((d || jsonb_build_object('run_log', jsonb_build_array((d #> '{run_log,0}') || '{"run_id": 78}'),
    'samples', (d -> 'samples') - 'latency_histogram'
        || jsonb_build_object('run_id', (SELECT jsonb_agg(78) FROM jsonb_array_elements(d #> '{samples,run_id}')))))
    - '{warmup_samples,latencies,error_log,script_log,statement_log,wait_log,event_log,relation_log,audit_log}'::text[]
    - 'call_log'
    - 'transactions')
    AS older
FROM base \gset
SELECT
    ok(bool_and(latency_histogram IS NULL) AND count(*) > 0, 'such a run has no histograms of its intervals'),
    ok(bench.report((:'older'::bigint[])[1], 'html') NOT LIKE '%id="plot-heat"%', 'and its report no heat map'),
    ok(bench.report(:plain, 'html') LIKE '%id="plot-heat"%', 'which others have'),
    is(bench.report((:'older'::bigint[])[1], 'json')::jsonb #> '{samples,latency_histogram}', '{}', 'nor its JSON')
FROM bench.samples
WHERE run_id = (:'older'::bigint[])[1];
SELECT
    is(array[segment, coordinator_pid], '{0,0}', 'segment and process are not taken over'),
    is(role, :'me', 'the role is the caller''s'),
    is(origin ->> 'role', 'trf_alice', 'whatever the document says'),
    is(format('%s %s %s', driver, query_mode, nodes), 'engine prepared local', 'what is missing has its default')
FROM bench_internal.run_log
WHERE run_id = (:'ignored'::bigint[])[1];

--
-- Runs that are not over, or did not end well
--
\o /dev/null
SELECT bench.start('trf_slow', secs => 60) AS live \gset
\o
SELECT throws_ok(format('SELECT bench.export(''{%s,%s}'')', :plain, :live), '55000',
    format('run %s is under way', :live), 'a run under way cannot be exported');
INSERT INTO bench_internal.run_log
SELECT (r).*
FROM (
    SELECT jsonb_populate_record(x,
        jsonb_build_object('run_id', nextval('bench_internal.run_id_seq'), 'status', 'running', 'segment', 4294967295,
            'seed', -2, 'finished_at', null)) AS r
    FROM bench_internal.run_log x
    WHERE run_id = :plain
) AS s;
SELECT run_id AS crashed FROM bench.runs WHERE seed = -2 \gset
UPDATE bench_internal.run_log SET finished_at = NULL WHERE run_id = :crashed;
SELECT is(status, 'crashed', 'one that crashed') FROM bench.runs WHERE run_id = :crashed;
SELECT bench.import(bench.export(ARRAY[:crashed])) AS copy \gset
SELECT
    is(status, 'crashed', 'is crashed where it is imported'),
    ok(bench.report(run_id) ~ 'crashed', 'and in its report'),
    is(bench.stop(run_id), false, 'nothing to stop'),
    is(bench.wait(run_id), 'crashed', 'nor to wait for')
FROM bench.runs
WHERE run_id = (:'copy'::bigint[])[1];

--
-- Who may
--
SET SESSION AUTHORIZATION trf_alice;
SELECT bench.run('trf_nothing', transactions => 1) AS alices \gset
SELECT is(string_agg(key, ' ' ORDER BY key COLLATE "C"), 'backlog clients_stuck connect_avg_ms connect_max_ms '
    'connect_p50_ms connect_p95_ms connect_p99_ms duel error feeders fixture fixture_options fixture_rows jobs '
    'lag_avg_ms lag_max_ms log_lost logged origin part_of rate rates run_as secs sweep_id target unknown',
    'what is unknown of a plain run')
FROM bench.export(ARRAY[:alices]) AS d, jsonb_each(d #> '{run_log,0}')
WHERE value = 'null' AND key NOT LIKE 'latency%';
SELECT
    lives_ok(format('SELECT bench.export(''{%s}'')', :alices), 'everybody may export the own'),
    throws_ok(format('SELECT bench.export(''{%s}'')', :plain), '42501', format('permission denied for run %s', :plain),
        'and no other''s'),
    throws_ok(format('SELECT bench.export(''{%s,%s}'')', :alices, :plain), '42501', NULL, 'not beside the own'),
    throws_ok('SELECT bench.import(d) FROM documents', '42501', 'permission denied for function import',
        'import is for those who are granted it'),
    throws_ok('SELECT bench.prune(''1 day'')', '42501', 'permission denied for function prune', 'and so is prune');
SET SESSION AUTHORIZATION trf_stats;
SELECT lives_ok(format('SELECT bench.export(''{%s,%s}'')', :alices, :plain), 'pg_read_all_stats may export all');
RESET SESSION AUTHORIZATION;
GRANT EXECUTE ON FUNCTION bench.import, bench.prune TO trf_alice, trf_bob, trf_boss;
SET SESSION AUTHORIZATION trf_bob;
SELECT bench.import(d) AS bobs FROM documents \gset
SELECT is(array_agg(DISTINCT role), '{trf_bob}', 'imported runs are the importer''s')
FROM bench.runs
WHERE run_id = ANY (:'bobs');
SELECT throws_ok('SELECT bench.import(d) FROM documents', '23505', NULL, 'who has them once');
SELECT
    is(current_user::text, 'trf_bob', 'the role is the caller''s again'),
    is(current_setting('search_path'), '"$user", public', 'and so is the search_path');
SET SESSION AUTHORIZATION trf_alice;
SELECT is(count(*), 0::bigint, 'others do not see them') FROM bench.runs WHERE run_id = ANY (:'bobs');
RESET SESSION AUTHORIZATION;

--
-- The end of old runs
--
SELECT
    throws_ok('SELECT bench.prune(NULL)', '22004', 'older_than must not be null', 'older than nothing'),
    throws_ok('SELECT bench.prune(''-1 second'')', '22023', 'older_than must not be negative', 'than what is to come'),
    throws_ok('SELECT bench.prune(''-1 month'')', '22023', NULL, 'in months'),
    throws_ok('SELECT bench.prune(''1 month -31 days'')', '22023', 'older_than must not be negative', 'or in both');
SET SESSION AUTHORIZATION trf_bob;
SELECT is(bench.prune('1 hour'), 0::bigint, 'imported runs count from when they came');
SELECT is(bench.prune('1 month'), 0::bigint, 'months'), is(bench.prune('100 years'), 0::bigint, 'years');
RESET SESSION AUTHORIZATION;
-- what other files have made up
SELECT bench.prune('2 days') AS of_others \gset
UPDATE bench_internal.run_log
SET started_at = started_at - interval '3 days', finished_at = finished_at - interval '3 days'
WHERE run_id IN (:mixed, :alices, :live);
UPDATE bench_internal.run_log
SET origin = origin || jsonb_build_object('imported_at', now() - interval '3 days')
WHERE run_id = (:'bobs'::bigint[])[1];
SET SESSION AUTHORIZATION trf_bob;
SELECT is(bench.prune('2 days'), 1::bigint, 'a role prunes its own');
SELECT is(array_agg(run_id), ARRAY[(:'bobs'::bigint[])[2]], 'those that are old enough')
FROM bench.runs
WHERE run_id = ANY (:'bobs');
RESET SESSION AUTHORIZATION;
SELECT
    is(pg_temp.kept((:'bobs'::bigint[])[1]), '{}', 'nothing of them is left'),
    isnt(pg_temp.kept(:alices), '{}', 'another''s stay, however old');
SET SESSION AUTHORIZATION trf_boss;
SELECT is(bench.prune('2 days'), 1::bigint, 'a member of the role prunes the role''s');
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.kept(:alices), '{}', 'all of them'), isnt(pg_temp.kept(:mixed), '{}', 'and those of others not');
-- one that crashed before it began is as old as the next
INSERT INTO bench_internal.run_log
SELECT (r).*
FROM (
    SELECT jsonb_populate_record(x,
        jsonb_build_object('run_id', :mixed - 1000000, 'status', 'starting', 'segment', 4294967295)) AS r
    FROM bench_internal.run_log x
    WHERE run_id = :plain
) AS s;
UPDATE bench_internal.run_log SET started_at = NULL, finished_at = NULL WHERE run_id = :mixed - 1000000;
SELECT
    is(bench.prune('2 days'), 2::bigint, 'a superuser prunes everybody''s: the old one, and the crashed one before it'),
    is(pg_temp.kept(:mixed), '{}', 'which is gone'),
    is(pg_temp.kept(:mixed - 1000000), '{}', 'as is the other');
SELECT is(status, 'running', 'the run under way goes on, however long') FROM bench.runs WHERE run_id = :live;
SELECT ok(bench.prune('0') > 0, 'everything that is over');
SELECT results_eq('SELECT run_id FROM bench_internal.run_log', ARRAY[:live::bigint], 'but what is under way');
SELECT
    ok(bench.stop(:live), 'it can be stopped'),
    is(bench.wait(:live), 'canceled', 'and ends as always'),
    isnt(pg_temp.kept(:live), '{}', 'with its results');
-- what was pruned can be imported again
SELECT is(cardinality(bench.import(d)), 2, 'what was pruned can come back') FROM documents;

-- An audit stays as it was said when the run that was in its way goes
INSERT INTO bench_internal.run_log
SELECT (r).*
FROM (
    SELECT jsonb_populate_record(x, v) AS r
    FROM bench_internal.run_log x,
        (VALUES
            (jsonb_build_object('run_id', nextval('bench_internal.run_id_seq'), 'workload', 'trf_old', 'started_at',
                now() - interval '9 days', 'finished_at', now() - interval '5 days')),
            (jsonb_build_object('run_id', nextval('bench_internal.run_id_seq'), 'workload', 'trf_old', 'started_at',
                now() - interval '6 days', 'finished_at', now() - interval '1 day'))
        ) AS v (v)
    WHERE x.run_id = :live
) AS s;
SELECT max(run_id) AS young, min(run_id) AS old FROM bench_internal.run_log WHERE workload = 'trf_old' \gset
INSERT INTO bench_internal.audit_log (run_id, counter, harness, server, judged, reason)
VALUES (:young, 'idx_scan', 1, 2, true, 'scans'), (:young, 'samples', 3, 3, true, 'samples');
CREATE TEMP TABLE audit AS SELECT * FROM bench.audit(:young);
SELECT
    is(bench.prune('3 days'), 1::bigint, 'a run goes that was in the way of an audit'),
    is(pg_temp.kept(:old), '{}', 'the older one');
SELECT results_eq(format('SELECT * FROM bench.audit(%s)', :young), 'SELECT * FROM audit',
    'the audit still is not judged');

\o /dev/null
SELECT bench.prune('0');
SELECT bench.drop_workload(name) FROM bench.workloads WHERE name LIKE 'trf\_%';
SELECT bench.unload('pk'), bench.unload('log');
REVOKE ALL ON FUNCTION bench.run, bench.start, bench.import, bench.prune FROM trf_alice, trf_bob, trf_boss;
\o
SELECT * FROM finish();
