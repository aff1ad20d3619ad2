\echo Use "ALTER EXTENSION pgbench_ext UPDATE TO '0.2.0'" to load this file. \quit

-- From 0.1.0 to 0.2.0. test/faults/upgrade.sh holds the outcome against a fresh installation.
-- Tables that pg_dump carries keep schema, kind and columns; what is added to them is nullable or has a default.

-- Puts `created` (its CREATE FUNCTION, COMMENT and REVOKE) in the place of a function whose arguments or result change,
-- and gives the roles that users had granted the old one the new one. Such grants are not the extension's own: pg_dump has
-- to see them as the users', so pg_init_privs keeps what it had without them.
CREATE FUNCTION bench.replace_function(replaced regprocedure, created text, signature text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted record;
    grants text[] := '{}';
    initial aclitem[];
BEGIN
    FOR granted IN
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS role, a.is_grantable
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.oid = replaced AND a.grantee <> p.proowner
          AND NOT EXISTS (SELECT FROM pg_init_privs i CROSS JOIN LATERAL aclexplode(i.initprivs) AS b
                          WHERE i.objoid = p.oid AND i.classoid = 'pg_proc'::regclass AND b.grantee = a.grantee)
    LOOP
        grants := grants || (granted.role || CASE WHEN granted.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    EXECUTE format('ALTER EXTENSION pgbench_ext DROP FUNCTION %s', replaced);
    EXECUTE format('DROP FUNCTION %s', replaced);
    EXECUTE created;
    initial := (SELECT i.initprivs FROM pg_init_privs i
                WHERE i.objoid = signature::regprocedure AND i.classoid = 'pg_proc'::regclass);
    FOR place IN 1 .. cardinality(grants) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', signature::regprocedure, grants[place]);
    END LOOP;
    IF initial IS NULL THEN
        DELETE FROM pg_init_privs WHERE objoid = signature::regprocedure AND classoid = 'pg_proc'::regclass;
    ELSE
        UPDATE pg_init_privs SET initprivs = initial WHERE objoid = signature::regprocedure AND classoid = 'pg_proc'::regclass;
    END IF;
END $$;

-- (changes go here, in the order of src/schema)

-- Percentiles, and comparing.
COMMENT ON FUNCTION bench.percentile IS
'A percentile of a run''s latencies in milliseconds, within 1 %; p is a fraction, as in percentile_cont: 0.99 for the 99th. The rank p * (n - 1) from 0 is interpolated between its neighbours, the latencies of a bucket lying evenly in it; HdrHistogram tells the upper end of the bucket that has rank ceil(p * n) from 1, which is higher by up to a bucket. NULL when the run has no histogram.';
COMMENT ON FUNCTION bench.compare IS
'Compares completed runs with completed runs: candidate / baseline with its interval, of the runs'' TPS (95 %) and latencies (98.75 % each, and so 95 % for the four together). verdict: same (the whole interval within the margin), faster, slower, or inconclusive, and then advice says with how many runs a side to start anew. differences: settings, versions and machines that are not the same on both sides, beside the verdict on tps.';
SELECT bench.replace_function('bench.change_points(text, text, jsonb)', $create$
CREATE FUNCTION bench.change_points(workload text, metric text DEFAULT 'tps', tags jsonb DEFAULT '{}', margin double precision DEFAULT 0.02)
    RETURNS TABLE (run_id bigint, at timestamptz, before double precision, after double precision, change double precision,
                   p double precision, change_low double precision, change_high double precision)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'level_changes_wrapper';
COMMENT ON FUNCTION bench.change_points IS
'Where runs of a workload changed their level: E-divisive change points of each series of bench.history whose tags include these, of its last 1000 runs. margin is the least change worth telling, as a fraction; a level has at least three runs that show it. run_id is the first run of the new level; before and after are the mean levels, change is the ratio of their geometric means less 1, with its 95 % interval (NULL where a run had none), p the significance. metric: tps, latency_avg_ms, latency_p50_ms, latency_p95_ms or latency_p99_ms.';
$create$, 'bench.change_points(text, text, jsonb, double precision)');

DROP FUNCTION bench.replace_function;
