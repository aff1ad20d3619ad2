--
-- bench.export, bench.import, bench.prune, bench.delete_run: their arguments and their errors. What they do is in
-- test/pgtap/transfer.sql and deletion.sql.
--
SET client_min_messages = warning;
SELECT bench.create_workload('transfer_nothing', 'SELECT 1;');
SET client_min_messages = error;
SELECT bench.run('transfer_nothing', clients => 2, transactions => 10, tags => '{"a": [1, null]}') AS run_id \gset
SET client_min_messages = warning;

-- What cannot be exported
SELECT bench.export(NULL);
SELECT bench.export('{}');
SELECT bench.export('{1,NULL}');
SELECT bench.export('{-1}');
SELECT bench.export('{9223372036854775807}');

-- A document, there and back: only ids, role and origin differ
SELECT bench.export(ARRAY[:run_id]) AS document \gset
SELECT key, jsonb_typeof(value) AS type FROM jsonb_each(:'document') ORDER BY key COLLATE "C";
SELECT key AS server FROM jsonb_each(:'document'::jsonb -> 'server') ORDER BY key COLLATE "C";
SELECT key
FROM jsonb_each(:'document'::jsonb #> '{run_log,0}')
WHERE value = 'null' AND key NOT LIKE 'latency%'
ORDER BY key COLLATE "C";
SELECT (bench.import(:'document'))[1] AS copy \gset
CREATE TEMP TABLE lists AS SELECT bench.export(ARRAY[:run_id]) AS before, bench.export(ARRAY[:copy]) AS after;
SELECT (before #> '{run_log,0}') - '{run_id,role,origin}'::text[]
    = (after #> '{run_log,0}') - '{run_id,role,origin}'::text[] AS run_is_the_same
FROM lists;
SELECT key, value - 'run_id' = (after -> key) - 'run_id' AS the_same, value <> '{}' AS has_rows
FROM lists, jsonb_each(before)
WHERE key LIKE '%\_log' AND key NOT IN ('run_log') OR key IN ('samples', 'warmup_samples', 'latencies')
ORDER BY key COLLATE "C";
SELECT key AS origin FROM bench.runs, jsonb_each(origin) WHERE run_id = :copy ORDER BY key COLLATE "C";

-- What cannot be imported
SELECT bench.import(NULL);
SELECT bench.import('{}');
SELECT bench.import('[]');
SELECT bench.import('{"format_version": 2, "run_log": []}');
SELECT bench.import('{"format_version": 1.5, "run_log": []}');
SELECT bench.import('{"format_version": 0, "run_log": []}');
SELECT bench.import('{"format_version": 1, "run_log": [1]}');
SELECT bench.import('{"format_version": 1, "run_log": [{}]}');
SELECT bench.import('{"format_version": 1, "run_log": [{"run_id": 1}]}');
SELECT bench.import('{"format_version": 1, "run_log": [{"run_id": 1, "status": "running"}]}');
SELECT bench.import(
    '{"format_version": 1, "run_log": [{"run_id": 1, "status": "failed"}, {"run_id": 1, "status": "failed"}]}');
SELECT bench.import('{"format_version": 1, "run_log": [{"run_id": 1, "status": "failed", "origin": 1}]}');
SELECT bench.import('{"format_version": 1, "run_log": [], "samples": 1}');
SELECT bench.import('{"format_version": 1, "run_log": [], "samples": {"run_id": [1]}}');
SELECT bench.import('{"format_version": 1, "run_log": [], "samples": {"run_id": [1], "tps": []}}');
SELECT bench.import('{"format_version": 1, "run_log": []}') AS of_none;

-- What cannot be pruned
SELECT bench.prune(NULL);
SELECT bench.prune('-1 second');
SELECT bench.prune('1 month -31 days');
SELECT bench.prune('100 years');

-- What cannot be deleted
SELECT bench.delete_run(NULL);
SELECT bench.delete_run(-1);
SELECT bench.start('transfer_nothing', secs => 60) AS live \gset
\set VERBOSITY sqlstate
SELECT bench.delete_run(:live);
DELETE FROM bench.runs WHERE run_id = :live;
TRUNCATE bench_internal.run_log;
\set VERBOSITY default
SELECT bench.stop(:live), bench.wait(:live);
SELECT bench.delete_run(:live), bench.delete_run(:copy);
CREATE TEMP TABLE other (run_id bigint);
CREATE TRIGGER other AFTER DELETE ON other
    REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT
    EXECUTE FUNCTION bench_internal.forget_runs();
DELETE FROM other;

SELECT bench.drop_workload('transfer_nothing');
