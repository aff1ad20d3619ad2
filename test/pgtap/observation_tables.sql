-- What a run did to its tables and indexes, and its statements' plans.
\ir ../lib/observation.sql

--
-- Tables and indexes before and after
--
CREATE FUNCTION pg_temp.audited(run bigint, name text) RETURNS bigint LANGUAGE sql AS $$
    SELECT server FROM bench.audit(run) WHERE counter = name
$$;
\o /dev/null
SELECT bench.load('log');
SELECT bench.create_workload('obs_write', $$\set id random(1, :rows)
BEGIN;
UPDATE pk SET info = 'x' WHERE id = :id;
DELETE FROM pk WHERE id = :id AND :id % 5 = 0;
INSERT INTO log (info) VALUES ('x');
SELECT 1 FROM pk WHERE id = 7;
END;$$, 'pk');
\o
SELECT bench.run('obs_write,pk_insert', 3, transactions => 200) AS run_id \gset
SELECT
    ok(sum(updated) > 0 AND sum(deleted) > 0 AND sum(inserted) > 0, 'the run did something of each'),
    is(sum(updated)::bigint, pg_temp.audited(:run_id, 'n_tup_upd'), 'updated: as the audit counts'),
    is(sum(inserted)::bigint, pg_temp.audited(:run_id, 'n_tup_ins'), 'inserted'),
    is(sum(deleted)::bigint, pg_temp.audited(:run_id, 'n_tup_del'), 'deleted'),
    is(sum(idx_scan)::bigint, pg_temp.audited(:run_id, 'idx_scan'), 'idx_scan'),
    ok(bool_and(hot_updated BETWEEN 0 AND updated), 'HOT updates are among the updates'),
    is(sum(hot_updated) > 0, true, 'there were some'),
    is(array_agg(relation ORDER BY relation), '{bench_data.log,bench_data.pk}'::text[],
        'both tables of the mix are there')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'table';
SELECT
    is(sum(idx_scan)::bigint, pg_temp.audited(:run_id, 'idx_scan'), 'of the indexes, too'),
    is(array_agg(relation ORDER BY relation),
        (
            SELECT array_agg(indexrelid::regclass::text ORDER BY indexrelid::regclass::text)
            FROM pg_index
            WHERE indrelid IN ('bench_data.pk'::regclass, 'bench_data.log'::regclass)
        ), 'all indexes are there')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'index';
SELECT
    is(bytes_after,
        CASE kind WHEN 'table' THEN pg_table_size(relation::regclass) ELSE pg_relation_size(relation::regclass) END,
        relation || ': bytes after the run'),
    ok(bytes_before <= bytes_after AND bytes_before >= 0, 'and before it')
FROM bench.relations
WHERE run_id = :run_id
ORDER BY relation;
SELECT ok(bytes_before < bytes_after, 'a table that rows went into grew')
FROM bench.relations
WHERE run_id = :run_id AND relation = 'bench_data.log';
SELECT
    is(r.live, s.n_live_tup, 'live rows as in pg_stat_user_tables'),
    is(r.dead, s.n_dead_tup, 'dead ones'),
    is(r.mod_since_analyze, s.n_mod_since_analyze, 'rows changed since ANALYZE'),
    is(r.live - r.live_before, r.inserted - r.deleted, 'live ones went as rows came and went'),
    is(r.seq_scan, 0::bigint, 'no sequential scan')
FROM bench.relations r JOIN pg_stat_user_tables s ON s.relid = r.relation::regclass
WHERE run_id = :run_id AND kind = 'table';
SELECT bench.create_workload('obs_scan', 'SELECT count(*) FROM log;', 'log') \g /dev/null
SELECT
    bench.run('obs_scan', 1, transactions => 4, settings => '{"max_parallel_workers_per_gather": 0}') AS run_id,
    count(*) AS rows
FROM bench_data.log \gset
SELECT
    is(seq_scan, 4::bigint, 'sequential scans are counted'),
    is(seq_tup_read, 4 * :rows::bigint, 'with their rows')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'table';

-- partitions, and one table that is dropped meanwhile
\o /dev/null
SELECT bench.load('tpcb', options => '{"scale": 1, "partitions": 3}');
\o
SELECT bench.run('tpcb', 2, transactions => 20) AS run_id \gset
SELECT
    is(array_agg(relation ORDER BY relation) FILTER (WHERE relation LIKE '%accounts\__'),
        '{bench_data.pgbench_accounts_1,bench_data.pgbench_accounts_2,bench_data.pgbench_accounts_3}'::text[],
        'partitions are listed'),
    is(sum(updated) FILTER (WHERE relation LIKE '%accounts\__'), 40::numeric, 'with their updates'),
    ok(bool_and(bytes_after > 0) FILTER (WHERE relation LIKE '%accounts\__'), 'and sizes'),
    is(sum(updated)::bigint, pg_temp.audited(:run_id, 'n_tup_upd'), 'all as the audit counts')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'table';
SELECT bench.start('tpcb_select', 2, secs => 1.5, sample_interval => 0.25) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 2 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
DROP TABLE bench_data.pgbench_history;
SELECT is(bench.wait(:run_id), 'completed', 'a table of the fixture is dropped that the script does not touch');
SELECT
    ok(bytes_before IS NOT NULL, 'it was there before'),
    is(bytes_after, NULL, 'and not after'),
    is(num_nulls(inserted, updated, live, dead, vacuums), 5, 'what is not known is NULL')
FROM bench.relations
WHERE run_id = :run_id AND relation LIKE '%history';
SELECT ok(count(*) >= 8 AND bool_and(bytes_after IS NOT NULL), 'the others are there')
FROM bench.relations
WHERE run_id = :run_id AND relation NOT LIKE '%history';

--
-- Plans
--
\o /dev/null
SELECT bench.load('pk', 5000, options => '{"reloptions": {"autovacuum_enabled": false}}');
\o
SELECT bench.run('pk_select', 2, secs => 0.5, warmup => 0.2) AS run_id \gset
SELECT
    matches(plan, E'^custom plan in 10 executions, then generic in \\d+:\n',
        'pk_select: generic after five custom plans of each client'),
    matches(plan, E'\n *Index Scan using pk_pkey on pk\n +Index Cond: \\(id = \\$1\\)$', 'by the index'),
    is(generic_plans + custom_plans, pg_temp.audited(:run_id, 'pg_stat_statements.calls'),
        'as many executions as the server counted, in all phases'),
    ok(custom_plans = 10 AND generic_plans >= count - 10, 'five of them custom'),
    is(plan_changes, 0::bigint, 'from custom to generic is no change of plan')
FROM bench.statements
WHERE run_id = :run_id AND statement LIKE 'SELECT%';
SELECT
    is(plan, NULL, 'a meta command has no plan'),
    is(generic_plans + custom_plans + plan_changes + workers_planned + workers_launched, 0::bigint, 'and no counts')
FROM bench.statements
WHERE run_id = :run_id AND statement LIKE E'\\\\%';
\o /dev/null
SELECT format('SELECT bench.run(''pk_select'', 2, transactions => 30, query_mode => %L, settings => %L, tags => %L)',
    mode, settings, jsonb_build_object('plans', mode || settings))
FROM (VALUES
    ('simple', '{}'),
    ('extended', '{}'),
    ('prepared', '{"plan_cache_mode": "force_custom_plan"}'),
    ('prepared', '{"plan_cache_mode": "force_generic_plan"}')
) AS v (mode, settings) \gexec
\o
SELECT
    is(format('%s %s', s.custom_plans, s.generic_plans),
        CASE WHEN r.settings::text LIKE '%generic%' THEN '0 60' ELSE '60 0' END,
        format('%s %s: which plans', r.query_mode, r.settings)),
    matches(s.plan,
        CASE
            WHEN r.settings::text LIKE '%generic%' THEN E'^generic plan:\n'
            ELSE E'^custom plan:\n'
        END || E'.*Index Scan using pk_pkey on pk\n',
        'and what they are called'),
    is(s.plan_changes, 0::bigint, 'without a change')
FROM bench.runs r JOIN bench.statements s USING (run_id)
WHERE r.tags ? 'plans' AND s.statement LIKE 'SELECT%'
ORDER BY r.run_id;
SELECT bench.create_workload('obs_utility', E'BEGIN;\nSET LOCAL work_mem = ''1MB'';\nVALUES (1);\nEND;') \g /dev/null
SELECT bench.run('obs_utility', 1, transactions => 10) AS run_id \gset
SELECT is(array_agg(statement ORDER BY command) FILTER (WHERE plan IS NOT NULL), '{VALUES (1);}'::text[],
    'utilities have no plan')
FROM bench.statements
WHERE run_id = :run_id;

-- a plan that changes during the run
\o /dev/null
CREATE TABLE obs_plan AS SELECT i AS id, md5(i::text) AS info FROM generate_series(1, 2000) AS i;
CREATE INDEX obs_plan_id ON obs_plan (id);
ANALYZE obs_plan;
SELECT bench.create_workload('obs_plan', $$\set id random(1, 2000)
SELECT info FROM public.obs_plan WHERE id = :id;
SELECT 1;$$);
\o
SELECT bench.start('obs_plan', 3, secs => 3, sample_interval => 0.25) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 3 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
SELECT clock_timestamp() AS before \gset
DROP INDEX obs_plan_id;
SELECT clock_timestamp() AS after \gset
SELECT is(bench.wait(:run_id), 'completed', 'an index is dropped');
SELECT
    ok(plan_changes BETWEEN 3 AND 6, format('each of three clients has met another plan (%s)', plan_changes)),
    matches(plan, $$
at first:
(Index Scan using obs_plan_id|Bitmap Heap Scan) on obs_plan.*
from \d+\.\d+ s on:
.*Seq Scan on obs_plan$$, 'both forms are shown'),
    ok(pg_temp.began(:run_id) + make_interval(
        secs => substring(plan FROM '\nfrom (\d+\.\d+) s on:\n *Seq Scan')::float8
    ) BETWEEN :'before'::timestamptz - interval '10 ms' AND :'after'::timestamptz + interval '1 s',
        'with the time of the change')
FROM bench.statements
WHERE run_id = :run_id AND statement LIKE 'SELECT info%';
SELECT ok(plan_changes = 0 AND plan NOT LIKE '%from %', 'another statement of the script has not changed')
FROM bench.statements
WHERE run_id = :run_id AND statement = 'SELECT 1;';

-- parallel workers, planned and launched
SELECT bench.create_workload('obs_parallel', 'SELECT count(*) FROM public.obs_plan;') \g /dev/null
SELECT
    bench.run('obs_parallel', 1, transactions => 5,
        settings => '{"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, '
            '"max_parallel_workers_per_gather": 2, "max_parallel_workers": 0}') AS none,
    bench.run('obs_parallel', 1, transactions => 5,
        settings => '{"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, '
            '"max_parallel_workers_per_gather": 2, "max_parallel_workers": 8}') AS some \gset
SELECT
    ok(workers_planned >= 5, 'parallel plans ask for workers'),
    is(workers_launched, 0::bigint, 'without any free none is launched'),
    matches(plan, 'Gather.*Parallel Seq Scan on obs_plan', 'the plan shows it')
FROM bench.statements
WHERE run_id = :none;
SELECT ok(workers_planned >= 5 AND workers_launched BETWEEN 1 AND workers_planned, 'with some free they are')
FROM bench.statements
WHERE run_id = :some;

\ir ../lib/observation_end.sql
