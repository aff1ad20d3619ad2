--
-- bench.findings and bench.report: their surface. What they say is in test/pgtap/observation.sql and
-- test/faults/observation.sh
-- and the plain tests of crates/findings and crates/report.
--
\pset format unaligned
\pset footer off
SET client_min_messages = error;
SELECT bench.load('pk', 1000);
SELECT bench.create_workload('report_errors', E'\\set n :client_id\nBEGIN;\nSELECT 1 / (:n::int % 2);\nEND;');
SELECT bench.run('pk_update,report_errors@1', clients => 4, transactions => 50, sample_interval => 0.1,
    seed => 1) AS mixed \gset
SELECT bench.run('pk_update', clients => 2, secs => 0.5, warmup => 0.2, sample_interval => 0.1,
    rate => 100) AS paced \gset
-- with an event
SELECT bench.start('pk_update', secs => 60, sample_interval => 0.2) AS vacuumed \gset
DO $$
BEGIN
    FOR i IN 1 .. 500 LOOP
        EXIT WHEN EXISTS (SELECT FROM bench.samples s JOIN bench.runs r USING (run_id) WHERE r.status = 'running');
        COMMIT;
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;
VACUUM bench_data.pk;
SELECT pg_sleep(0.5) IS NOT NULL AS seen, bench.stop(:vacuumed) AS stopped, bench.wait(:vacuumed) AS status;

SET client_min_messages = warning;

-- What cannot be reported
SELECT bench.report(NULL);
SELECT bench.report(:mixed, NULL);
SELECT bench.report(NULL, NULL);
SELECT bench.report(:mixed, 'pdf');
SELECT bench.report(:mixed, 'JSON');
SELECT bench.report(:mixed, '');
SELECT bench.report(0);
SELECT bench.report(-1, 'json');
SELECT bench.report(9223372036854775807, 'html');
SELECT * FROM bench.findings(NULL);
SELECT * FROM bench.findings(0);
CREATE ROLE report_stranger;
SET report.run = :mixed;
SET ROLE report_stranger;
DO $$
DECLARE
    run bigint := current_setting('report.run');
    statement text;
BEGIN
    FOREACH statement IN ARRAY
        '{SELECT bench.report(%s),SELECT bench.report(%s\, ''json''),SELECT * FROM bench.findings(%s)}'::text[]
    LOOP
        BEGIN
            EXECUTE format(statement, run);
            RAISE WARNING 'no error: %', statement;
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING '%', replace(SQLERRM, run::text, '<run>');
        END;
    END LOOP;
END $$;
RESET ROLE;
RESET report.run;
DROP ROLE report_stranger;

-- The formats; text is what there is when none is named
SELECT
    format,
    length(report) > 500 AS long,
    strpos(report, 'pk_update') > 0 AS names_the_workload,
    report !~ '(NaN|inf\M|Infinity|None|Some\()' AS no_debris
FROM unnest('{text,markdown,json,html}'::text[]) AS format, bench.report(:mixed, format) AS report;
SELECT
    bench.report(:mixed) = bench.report(:mixed, 'text') AS text_by_default,
    bench.report(:mixed, 'json') = bench.report(:mixed, 'json') AS the_same_each_time;

SELECT bool_or(line ~ '[▁▂▃▄▅▆▇█]') AS sparkline FROM regexp_split_to_table(bench.report(:paced), '\n') AS line;

-- what users write is text there, in markdown, too
SELECT bench.create_workload('report_<script>&',
    E'SELECT ''<script>alert(1)</script>'' AS "|a|", ''\u2028'', ''</style>&amp;'';', NULL, NULL);
SELECT bench.run('report_<script>&', transactions => 5, tags => '{"<script>": "<b>"}') AS odd \gset
SELECT
    bench.report(:odd, 'json')::jsonb -> 'statements' -> 0 ->> 'statement'
        = (SELECT script FROM bench.workloads WHERE name = 'report_<script>&') AS statement,
    bench.report(:odd, 'json')::jsonb -> 'run' -> 'tags' AS tags;


-- json: version 1 of the schema. Keys may be added, none goes
SELECT (bench.report(:mixed, 'json')::jsonb ->> 'schema_version')::int AS schema_version;
-- its keys are those of the schema, at the top and below
SELECT part, key FROM (
    VALUES ('', '{}'::text[], 'Document'), ('run', '{run}', 'Run'), ('summary', '{summary}', 'Summary'),
        ('samples', '{samples}', 'Samples'), ('script', '{scripts,0}', 'ScriptSummary'),
        ('command', '{statements,0}', 'CommandSummary'), ('environment', '{environment}', 'Environment')
) AS p (part, path, name),
    CAST(bench.report(:mixed, 'json') AS jsonb) AS d, CAST(bench.report(NULL, 'schema') AS jsonb) AS s,
    LATERAL (SELECT CASE part WHEN '' THEN s ELSE s #> ARRAY['$defs', name] END -> 'properties' AS keys) AS k,
    LATERAL (
        (SELECT jsonb_object_keys(d #> path) EXCEPT SELECT jsonb_object_keys(keys))
        UNION ALL (SELECT jsonb_object_keys(keys) EXCEPT SELECT jsonb_object_keys(d #> path))) AS other (key);
-- and sweeps and comparisons have theirs
SELECT
    bench.sweep_report(NULL, 'schema')::jsonb -> 'properties' ? 'scalability' AS sweep,
    bench.compare_report(NULL, NULL, 'schema')::jsonb -> 'properties' ? 'comparison' AS comparison;

-- For other programs
SELECT line
FROM regexp_split_to_table(bench.report(:mixed, 'openmetrics'), E'\n') AS line
WHERE line ~ '^#';
SELECT
    bool_and(m.value = s.tps AND m.workload = 'pk_update') AS tps,
    count(*) = (SELECT count(*) FROM bench.samples WHERE run_id = :paced) AS intervals
FROM bench.metrics AS m
JOIN bench.samples AS s ON s.run_id = m.run_id AND s.at = m.time
WHERE m.run_id = :paced AND m.metric = 'tps';
SELECT count(*) = 0 AS no_null FROM bench.metrics WHERE run_id = :paced AND value IS NULL;
CREATE TEMP VIEW documents AS
SELECT r.run_id, bench.report(r.run_id, 'json')::jsonb AS d
FROM bench.runs r
WHERE workload LIKE 'pk_update%' AND run_id >= :mixed;
-- the keys of what it lists are in the schema, too
SELECT DISTINCT part, key
FROM (
    VALUES ('latencies', 'Bucket'), ('waits', 'Wait'), ('events', 'Event'), ('relations', 'Relation'),
        ('errors', 'ErrorLine'), ('audit', 'AuditLine'), ('findings', 'Finding'), ('server_settings', 'ServerSetting')
) AS p (part, name), documents, CAST(bench.report(NULL, 'schema') AS jsonb) AS s,
    jsonb_array_elements(coalesce(d -> part, d -> 'environment' -> part)) AS e, jsonb_object_keys(e) AS key
WHERE NOT s #> ARRAY['$defs', name, 'properties'] ? key;
-- of all intervals each column has a value, and all are as long
SELECT part, count(DISTINCT CASE jsonb_typeof(value) WHEN 'array' THEN jsonb_array_length(value) END) AS lengths
FROM documents, unnest('{samples,warmup_samples}'::text[]) AS part, jsonb_each(d -> part) AS e (key, value)
GROUP BY part, run_id
ORDER BY part, run_id;
-- it says what the views say
SELECT
    (d -> 'run' ->> 'run_id')::bigint = u.run_id AS run_id,
    (d -> 'summary' ->> 'transactions')::bigint = u.transactions AS transactions,
    (d -> 'summary' ->> 'tps')::float8 = u.tps AS tps,
    (d -> 'summary' ->> 'failed')::bigint = u.failed AS failed,
    (d -> 'summary' -> 'latency_p999_ms' = 'null') = (u.transactions < 10000) AS p999_of_few,
    jsonb_array_length(d -> 'samples' -> 'tps')
        = (SELECT count(*) FROM bench.samples s WHERE s.run_id = u.run_id) AS samples,
    (d -> 'samples' -> 'transactions' ->> 0)::float8 = (
        SELECT transactions FROM bench.samples s WHERE s.run_id = u.run_id ORDER BY elapsed LIMIT 1
    ) AS first_sample,
    jsonb_array_length(d -> 'warmup_samples' -> 'tps')
        = (SELECT count(*) FROM bench.warmup_samples s WHERE s.run_id = u.run_id) AS warmup_samples,
    (SELECT sum((b ->> 'count')::bigint) FROM jsonb_array_elements(d -> 'latencies') AS b)
        = (SELECT sum(count) FROM bench.latencies s WHERE s.run_id = u.run_id) AS latencies,
    jsonb_array_length(d -> 'scripts') AS scripts,
    jsonb_array_length(d -> 'statements')
        = (SELECT count(*) FROM bench.statements s WHERE s.run_id = u.run_id) AS statements,
    jsonb_array_length(d -> 'waits') = (SELECT count(*) FROM bench.waits s WHERE s.run_id = u.run_id) AS waits,
    jsonb_array_length(d -> 'relations')
        = (SELECT count(*) FROM bench.relations s WHERE s.run_id = u.run_id) AS relations,
    jsonb_array_length(d -> 'errors') AS errors,
    jsonb_array_length(d -> 'audit') = (SELECT count(*) FROM bench.audit(u.run_id)) AS audit,
    jsonb_array_length(d -> 'findings') = (SELECT count(*) FROM bench.findings(u.run_id)) AS findings
FROM documents JOIN bench.summary u USING (run_id)
ORDER BY u.run_id;

-- findings: words, sentences, figures, advice; the gravest first
SELECT
    severity,
    topic,
    finding ~ '^.{20,}[.]$' AS sentence,
    jsonb_typeof(figures) AS figures,
    figures <> '{}' AS has_figures,
    length(advice) > 20 AS advice
FROM bench.findings(:mixed)
WHERE topic IN ('failed', 'clients', 'transactions');
SELECT array_agg(severity)
    = array_agg(severity ORDER BY array_position('{critical,warning,notice}', severity)) AS gravest_first
FROM bench.findings(:mixed);
SELECT bool_and(bench.report(:mixed, format) ~ 'An error ended') AS reports_tell_them
FROM unnest('{text,markdown,json,html}'::text[]) AS format;

-- A run that has not ended, one that could not begin, one that was not observed
SELECT bench.start('pk_select', secs => 60) AS unended \gset
SELECT format, length(bench.report(:unended, format)) > 100 AS of_one_under_way
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SELECT count(*) >= 0 AS findings FROM bench.findings(:unended);
SELECT bench.stop(:unended) AS stopped, bench.wait(:unended) AS status;
SELECT bench.create_workload('report_broken', 'SELECT * FROM nosuchtable;');
SET client_min_messages = error;
DO $$ BEGIN PERFORM bench.run('report_broken', secs => 1); EXCEPTION WHEN undefined_table THEN NULL; END $$;
SELECT max(run_id) AS broken FROM bench.runs \gset
SELECT format, strpos(bench.report(:broken, format), 'nosuchtable') > 0 AS says_why
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SET pgbench_ext.observation = off;
SELECT bench.run('pk_update', secs => 0.3, sample_interval => 0.1) AS unseen \gset
SELECT format, length(bench.report(:unseen, format)) > 500 AS unobserved
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SELECT bench.drop_workload(name) FROM bench.workloads WHERE name LIKE 'report\_%';
