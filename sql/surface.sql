--
-- What CREATE EXTENSION puts into a database: the contract's functions, and what holds of all objects
--
CREATE TEMP VIEW functions AS
SELECT p.*, p.pronamespace::regnamespace AS schema
FROM pg_proc p WHERE p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace);
CREATE TEMP VIEW relations AS
SELECT c.*, has_table_privilege('public', c.oid, 'SELECT') AS readable
FROM pg_class c
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND c.relkind NOT IN ('i', 't');

-- Functions of users with their arguments, in the contract's order and with its defaults; "and n of bench.run" are n of
-- its arguments, with their types and defaults
\pset format unaligned
\pset tuples_only on
CREATE TEMP VIEW arguments AS
SELECT p.oid, a.place, a.name, format_type(a.type, NULL) AS type,
       pg_get_function_arg_default(p.oid, a.place::int) AS "default"
FROM functions p,
     LATERAL unnest(p.proargtypes::oid[], p.proargnames[1:p.pronargs]) WITH ORDINALITY AS a (type, name, place);
CREATE TEMP VIEW arguments_of_runs AS
SELECT a.*, r.place AS place_in_run
FROM arguments a
LEFT JOIN arguments r ON r.oid = 'bench.run'::regproc AND a.oid <> r.oid
    AND (a.name, a.type, a."default") IS NOT DISTINCT FROM (r.name, r.type, r."default");
WITH stretches AS (
    SELECT *, place - row_number() OVER (PARTITION BY oid, place_in_run IS NULL ORDER BY place) AS stretch
    FROM arguments_of_runs
), written AS (
    SELECT oid, min(place) AS place,
           CASE WHEN place_in_run IS NULL OR count(*) < 5
               THEN string_agg(concat(name, ' ', type, ' DEFAULT ' || "default"), ', ' ORDER BY place)
               ELSE format('and %s of bench.run', count(*)) END AS arguments
    FROM stretches GROUP BY oid, place_in_run IS NULL, stretch
)
SELECT format('%s(%s)', p.proname, string_agg(w.arguments, ', ' ORDER BY w.place))
FROM functions p LEFT JOIN written w ON w.oid = p.oid
WHERE p.schema = 'bench'::regnamespace
GROUP BY p.oid, p.proname ORDER BY p.proname COLLATE "C";
\pset tuples_only off
\pset footer off
-- Functions in which bench.run's arguments stand in another order: none
SELECT DISTINCT oid::regproc AS function FROM (
    SELECT oid, place_in_run < lag(place_in_run) OVER (PARTITION BY oid ORDER BY place) AS is_before
    FROM arguments_of_runs
    WHERE oid IN (SELECT oid FROM arguments_of_runs GROUP BY oid HAVING count(place_in_run) > 5)
) AS a WHERE is_before;

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

-- With the owner's rights and without a search_path of their own: none
SELECT oid::regprocedure AS function FROM functions
WHERE prosecdef AND NOT EXISTS (SELECT FROM unnest(proconfig) AS setting WHERE setting LIKE 'search\_path=%');

-- Tables that are not permanent, or have no primary key: none. Views whose readers' functions may see rows that they
-- leave out: those that read views with a barrier, or leave out nothing. Tables whose rows are for all
SELECT 'not permanent' AS what, relname AS relation FROM relations WHERE relpersistence <> 'p'
UNION ALL
SELECT 'no primary key', relname FROM relations c
WHERE relkind = 'r' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
UNION ALL
SELECT 'no security barrier', relname FROM relations
WHERE relkind = 'v' AND readable AND NOT coalesce('security_barrier=true' = ANY (reloptions), false)
UNION ALL
SELECT 'rows for all', relname FROM relations WHERE relkind = 'r' AND readable AND NOT relrowsecurity
ORDER BY what, relation;

-- Figures that may have any value, identifiers apart: those that only the extension writes
SELECT c.oid::regclass AS "table", string_agg(a.attname, ', ' ORDER BY a.attnum) AS columns
FROM relations c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = 'r' AND a.attname !~ '(^|_)id$'
  AND a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'float8'::regtype)
  AND NOT EXISTS (
      SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c' AND a.attnum = ANY (k.conkey))
GROUP BY c.oid ORDER BY c.oid::regclass::text COLLATE "C";

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
SELECT schema, CASE WHEN has_function_privilege('public', oid, 'EXECUTE') THEN 'yes' ELSE 'no' END AS public_may,
       string_agg(proname, ', ' ORDER BY proname COLLATE "C") AS functions
FROM functions GROUP BY 1, 2 ORDER BY schema::text COLLATE "C", public_may;
SELECT public_may, string_agg(relname, ', ' ORDER BY relname COLLATE "C") AS relations FROM (
    SELECT c.relname, string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type) AS public_may
    FROM relations c LEFT JOIN LATERAL (SELECT * FROM aclexplode(c.relacl) WHERE grantee = 0) a ON true
    GROUP BY c.oid, c.relname
) AS r GROUP BY public_may ORDER BY public_may;
SELECT n.nspname AS schema, a.privilege_type AS public_may
FROM pg_namespace n, aclexplode(n.nspacl) a
WHERE n.nspname IN ('bench', 'bench_internal') AND a.grantee = 0
ORDER BY n.nspname COLLATE "C";
SELECT attrelid::regclass AS relation, attname AS "column", attacl
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace) AND attacl IS NOT NULL;

-- pg_dump has results, own workloads and fixtures: the conditions,
SELECT c.oid::regclass AS relation, u.condition
FROM pg_extension e, unnest(e.extconfig, e.extcondition) AS u (relation, condition)
JOIN pg_class c ON c.oid = u.relation
WHERE e.extname = 'pgbench_ext' AND u.condition <> ''
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

-- The workloads that come with it, those without a description or with a fixture that does not: none
SELECT string_agg(name, ', ' ORDER BY name COLLATE "C") AS workloads FROM bench.workloads WHERE builtin;
SELECT name, fixture FROM bench.workloads w
WHERE NOT builtin OR description IS NULL
   OR fixture IS NOT NULL
      AND NOT EXISTS (SELECT FROM bench.fixture_definitions f WHERE f.name = w.fixture AND f.builtin);
-- keyed: as orders, but for terminals' own warehouses and districts
SELECT k.name, k.keying_secs, k.think_secs, k.mix, length(k.script) - length(o.script) AS longer, k.description
FROM bench.workloads k LEFT JOIN bench.workloads o ON o.name = replace(k.name, '_keyed', '') AND o.name LIKE '%/%'
WHERE k.name LIKE 'orders_keyed%' OR k.name = 'orders_deck' ORDER BY k.name COLLATE "C";

-- The library that is loaded
SELECT bench.version() ~ format('^pgbench_ext %s, built for PostgreSQL %s[^,]*, from sources [0-9a-f]{16}$',
    replace(extversion, '.', '\.'), current_setting('server_version_num')::int / 10000) AS version
FROM pg_extension WHERE extname = 'pgbench_ext';
