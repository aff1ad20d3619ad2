--
-- What CREATE EXTENSION puts into a database: the contract's functions, tables and views
--

-- Functions with their arguments, in the contract's order and with its defaults: those of users, and internal ones
SELECT p.pronamespace::regnamespace AS schema, p.proname AS function,
       CASE p.prokind WHEN 'f' THEN '' ELSE p.prokind::text END AS kind,
       pg_get_function_result(p.oid) AS result
FROM pg_proc p WHERE p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
ORDER BY p.pronamespace::regnamespace::text COLLATE "C", p.proname COLLATE "C";

SELECT p.pronamespace::regnamespace AS schema, p.proname AS function, a.place AS "#", a.name AS argument,
       format_type(a.type, NULL) AS type, pg_get_function_arg_default(p.oid, a.place::int) AS "default"
FROM pg_proc p,
     LATERAL unnest(p.proargtypes::oid[], p.proargnames[1:p.pronargs]) WITH ORDINALITY AS a (type, name, place)
WHERE p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
ORDER BY p.pronamespace::regnamespace::text COLLATE "C", p.proname COLLATE "C", a.place;

-- bench.start, bench.preflight and what jobs call take exactly what bench.run takes; bench.schedule after two texts of
-- its own
SELECT
    name,
    pg_get_function_arguments(name::regproc) = own
        || pg_get_function_arguments('bench.run'::regproc) AS the_same
FROM (
    VALUES ('bench.start', ''), ('bench.preflight', ''), ('bench_internal.start_scheduled', ''),
        ('bench.schedule', 'name text, schedule text, ')
) AS f (name, own);

-- Volatile and parallel unsafe, never strict (a NULL gets an answer), with the caller's rights; exceptions:
SELECT p.oid::regprocedure AS function, p.provolatile, p.proparallel, p.proisstrict, p.prosecdef, p.proconfig
FROM pg_proc p
WHERE p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
  AND (p.provolatile <> 'v' OR p.proparallel <> 'u' OR p.proisstrict OR p.prosecdef OR p.proconfig IS NOT NULL)
ORDER BY 1;

-- Relations and their columns
SELECT c.relname AS relation, c.relkind AS kind, c.relpersistence AS persistence, c.reloptions AS options
FROM pg_class c
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind NOT IN ('i', 't')
ORDER BY c.relname COLLATE "C";

SELECT c.relname AS relation, a.attname AS "column", format_type(a.atttypid, a.atttypmod) AS type,
       CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS "null", pg_get_expr(d.adbin, d.adrelid) AS "default"
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind IN ('r', 'v')
ORDER BY c.relname COLLATE "C", a.attnum;

SELECT conrelid::regclass AS "table", conname AS "constraint", pg_get_constraintdef(oid) AS definition
FROM pg_constraint
WHERE connamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND contype <> 'n'
ORDER BY conrelid::regclass::text COLLATE "C", contype DESC, conname COLLATE "C";

-- Columns that the contract promises and that are not there (those of later issues named)
WITH promised (relation, columns) AS (VALUES
    ('workloads', 'name, owner, fixture, script, description, builtin'),
    ('fixtures',
        'name, owner, schema, relations, rows, options, loaded_at, load_secs, rows_per_sec, table_bytes, index_bytes, '
            'index_levels'),
    ('runs',
        'run_id, sweep_id, workload, script, clients, secs, seed, driver, query_mode, results, nodes, variables, '
            'settings, tags, status, started_at, finished_at, role, error, server_version, extension_version, '
            'environment'),
    ('samples',
        'run_id, node, elapsed, secs, at, clients, transactions, tps, failed, retried, skipped, late, latency_avg_ms, '
            'latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms, lag_avg_ms, wal_bytes, '
            'wal_fpi, checkpoints, cpu_user, cpu_system, cpu_iowait, cpu_idle'),
    ('warmup_samples',
        'run_id, node, elapsed, secs, at, clients, transactions, tps, failed, retried, skipped, late, latency_avg_ms, '
            'latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms, lag_avg_ms, wal_bytes, '
            'wal_fpi, checkpoints, cpu_user, cpu_system, cpu_iowait, cpu_idle'),
    ('latencies', 'run_id, node, script, low_ms, high_ms, count'),
    ('standbys',
        'run_id, node, elapsed, pid, name, state, sync_state, write_lag_ms, flush_lag_ms, replay_lag_ms, '
            'replay_lag_bytes'),
    ('transactions', 'run_id, node, client, script, started, lag_ms, latency_ms, retries, outcome'),
    ('statements',
        'run_id, script, line, statement, count, failed, retried, latency_avg_ms, latency_p95_ms, plan, node'),
    ('waits', 'run_id, node, wait_event_type, wait_event, share'),
    ('relations',
        'run_id, relation, bytes_before, bytes_after, live, dead, inserted, updated, hot_updated, deleted, '
            'mod_since_analyze, seq_scan, idx_scan, vacuums, autovacuums, analyzes, autoanalyzes, last_vacuum, '
            'last_autovacuum, last_analyze, last_autoanalyze'),
    ('errors', 'run_id, sqlstate, message, count, first_at, node'),
    ('summary',
        'run_id, workload, clients, driver, results, status, started_at, secs, transactions, failed, retried, tps, '
            'tps_avg, tps_min, tps_max, tps_stddev, latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, '
            'latency_p99_ms, latency_p999_ms, latency_max_ms'),
    ('progress', 'run_id, phase, elapsed, remaining, tps, latency_avg_ms, transactions, clients'),
    ('sweeps',
        'sweep_id, workload, clients, secs, rounds, variants, before, seed, tags, status, runs, completed, started_at, '
            'finished_at, remaining, role, error'),
    ('sweep_changes', 'sweep_id, round, variant, apply_secs, revert_secs, made, made_bytes, error, to_revert'),
    ('sweep_runs', 'sweep_id, place, round, variant, clients, run_id, status, error, tps, latency_p99_ms'),
    ('sweep_results', 'sweep_id, clients, variant, rounds, tps_avg, tps_min, tps_max, run_ids'),
    ('capacities',
        'sweep_id, workload, latency_limit, percentile, rate, rate_low, rate_high, operating_rate, limited_by, '
            'hysteresis, trials'),
    ('history', 'workload, options, tags, run_id, started_at, tps, latency_p99_ms')
)
SELECT relation, string_agg(name, ', ' ORDER BY place) AS missing
FROM promised, unnest(string_to_array(columns, ', ')) WITH ORDINALITY AS u (name, place)
WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('bench.' || relation) AND attname = name)
GROUP BY relation
ORDER BY relation COLLATE "C";

-- Objects of the extension without a comment: none
SELECT pg_describe_object(d.classid, d.objid, 0) AS object
FROM pg_depend d
JOIN pg_extension e ON d.refobjid = e.oid AND e.extname = 'pgbench_ext'
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.classid <> 'pg_type'::regclass
  AND obj_description(d.objid, d.classid::regclass::text) IS NULL
ORDER BY 1;
SELECT obj_description(oid, 'pg_extension') IS NOT NULL AS extension_has_a_comment
FROM pg_extension WHERE extname = 'pgbench_ext';

-- Columns of what users read without a comment: none
SELECT c.relname AS relation, a.attname AS "column"
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind IN ('r', 'v')
  AND has_table_privilege('public', c.oid, 'SELECT')
  AND col_description(c.oid, a.attnum) IS NULL
ORDER BY 1, 2;

-- Columns named after a unit say it in their comment, too
SELECT c.relname AS relation, a.attname AS "column", col_description(c.oid, a.attnum) AS comment
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind IN ('r', 'v')
  AND has_table_privilege('public', c.oid, 'SELECT')
  AND (a.attname LIKE '%\_ms' AND col_description(c.oid, a.attnum) NOT ILIKE '%millisecond%'
       OR a.attname LIKE '%\_us' AND col_description(c.oid, a.attnum) NOT ILIKE '%microsecond%'
       OR a.attname LIKE '%secs' AND col_description(c.oid, a.attnum) NOT ILIKE '%second%'
       OR a.attname LIKE '%bytes%' AND col_description(c.oid, a.attnum) NOT ILIKE '%bytes%')
ORDER BY 1, 2;

-- What PUBLIC may do: call what only looks, read, and nothing else
SELECT p.pronamespace::regnamespace AS schema, p.proname AS function,
    has_function_privilege('public', p.oid, 'EXECUTE') AS public_may
FROM pg_proc p WHERE p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
ORDER BY p.pronamespace::regnamespace::text COLLATE "C", public_may, p.proname COLLATE "C";
SELECT c.relname AS relation, string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type) AS public_may
FROM pg_class c LEFT JOIN LATERAL (SELECT * FROM aclexplode(c.relacl) WHERE grantee = 0) a ON true
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind NOT IN ('i', 't')
GROUP BY c.relname ORDER BY c.relname COLLATE "C";
SELECT n.nspname AS schema, a.privilege_type AS public_may
FROM pg_namespace n, aclexplode(n.nspacl) a
WHERE n.nspname IN ('bench', 'bench_internal') AND a.grantee = 0
ORDER BY n.nspname COLLATE "C";
SELECT attrelid::regclass AS relation, attname AS "column", attacl
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND attacl IS NOT NULL;

-- Dumped by pg_dump: results, own workloads and fixtures, the sequence
SELECT c.oid::regclass AS relation, u.condition
FROM pg_extension e, unnest(e.extconfig, e.extcondition) AS u (relation, condition)
JOIN pg_class c ON c.oid = u.relation
WHERE e.extname = 'pgbench_ext'
ORDER BY c.relname COLLATE "C";
-- every table and sequence is among them, but for loads under way
SELECT c.oid::regclass AS not_dumped
FROM pg_class c, pg_extension e
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind IN ('r', 'S')
  AND e.extname = 'pgbench_ext' AND c.oid <> ALL (e.extconfig)
ORDER BY c.relname COLLATE "C";

-- The extension: schema, version, fixed place
SELECT extname, extnamespace::regnamespace AS schema, extrelocatable, extversion
FROM pg_extension WHERE extname = 'pgbench_ext';
SELECT superuser, trusted, relocatable, schema, requires
FROM pg_available_extension_versions WHERE name = 'pgbench_ext' AND installed;

-- The workloads that come with it
\pset format unaligned
SELECT name, fixture, builtin, script, description FROM bench.workloads WHERE name NOT LIKE 'orders_keyed/%'
ORDER BY name COLLATE "C";
-- keyed: as orders, but for terminals' own warehouses and districts
\pset format aligned
SELECT k.name, k.keying_secs, k.think_secs, k.mix, length(k.script) - length(o.script) AS longer, k.description
FROM bench.workloads k LEFT JOIN bench.workloads o ON o.name = replace(k.name, '_keyed', '') AND o.name LIKE '%/%'
WHERE k.name LIKE 'orders_keyed%' OR k.name = 'orders_deck' ORDER BY k.name COLLATE "C";

-- The library that is loaded
SELECT bench.version() ~ format('^pgbench_ext %s, built for PostgreSQL %s[^,]*, from sources [0-9a-f]{16}$',
    replace(extversion, '.', '\.'), current_setting('server_version_num')::int / 10000) AS version
FROM pg_extension WHERE extname = 'pgbench_ext';
