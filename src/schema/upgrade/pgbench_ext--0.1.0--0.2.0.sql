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

-- Visibility: what belongs to a run is shown to roles with the privileges of its role, in tables and totals as well.
CREATE OR REPLACE FUNCTION bench.is_visible(role text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'is_visible_wrapper';
COMMENT ON FUNCTION bench.is_visible IS 'Whether the current role may see what belongs to a run, sweep or load of this role: it has the role''s privileges or those of pg_read_all_stats, or is a superuser. Runs of a dropped role are for the latter two.';

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples}'::text[] LOOP
        EXECUTE format($view$
CREATE OR REPLACE VIEW bench.total_%1$s WITH (security_barrier) AS
SELECT x.run_id, max(x.elapsed) AS elapsed, max(x.secs) AS secs, max(x.at) AS at, count(*)::int AS nodes,
       sum(x.clients)::int AS clients, sum(x.transactions)::bigint AS transactions, sum(x.tps) AS tps,
       sum(x.failed)::bigint AS failed, sum(x.retried)::bigint AS retried, sum(x.skipped)::bigint AS skipped, sum(x.late)::bigint AS late,
       sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_stddev_ms)
            WHEN sum(x.transactions) > 0 THEN
                sqrt(greatest(0, sum((x.latency_stddev_ms ^ 2 + x.latency_avg_ms ^ 2) * x.transactions) / sum(x.transactions)
                                 - (sum(x.latency_avg_ms * x.transactions) / sum(x.transactions)) ^ 2)) END AS latency_stddev_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_p50_ms) END AS latency_p50_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_p95_ms) END AS latency_p95_ms,
       CASE WHEN count(*) = 1 THEN max(x.latency_p99_ms) END AS latency_p99_ms,
       max(x.latency_max_ms) AS latency_max_ms,
       sum(x.lag_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS lag_avg_ms,
       sum(x.wal_bytes)::bigint AS wal_bytes, sum(x.wal_records)::bigint AS wal_records, sum(x.wal_fpi)::bigint AS wal_fpi,
       sum(x.wal_buffers_full)::bigint AS wal_buffers_full, sum(x.checkpoints)::int AS checkpoints,
       sum(x.buffers_checkpoint)::bigint AS buffers_checkpoint, sum(x.buffers_clean)::bigint AS buffers_clean,
       sum(x.buffers_backend)::bigint AS buffers_backend, sum(x.blks_hit)::bigint AS blks_hit, sum(x.blks_read)::bigint AS blks_read,
       sum(x.temp_files)::bigint AS temp_files, sum(x.temp_bytes)::bigint AS temp_bytes,
       avg(x.cpu_user) AS cpu_user, avg(x.cpu_system) AS cpu_system, avg(x.cpu_iowait) AS cpu_iowait, avg(x.cpu_steal) AS cpu_steal,
       avg(x.cpu_idle) AS cpu_idle, sum(x.memory_available_bytes)::bigint AS memory_available_bytes,
       sum(x.memory_dirty_bytes)::bigint AS memory_dirty_bytes, sum(x.disk_read_bytes)::bigint AS disk_read_bytes,
       sum(x.disk_written_bytes)::bigint AS disk_written_bytes, sum(x.throttled_secs) AS throttled_secs
FROM (SELECT s.*, row_number() OVER (PARTITION BY s.run_id, s.node ORDER BY s.elapsed) AS place
      FROM bench.%1$s s WHERE s.run_id IN (SELECT r.run_id FROM bench.runs r)) x
GROUP BY x.run_id, x.place
$view$, name);
    END LOOP;
END $$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples,latencies}'::text[] LOOP
        EXECUTE format('ALTER TABLE bench.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY visible ON bench.%I FOR SELECT USING (run_id IN (SELECT r.run_id FROM bench.runs r))', name);
        EXECUTE format('COMMENT ON POLICY visible ON bench.%I IS %L', name, 'Rows of the runs that bench.runs shows');
    END LOOP;
END $$;

COMMENT ON VIEW bench.runs IS 'Runs, as they were asked for and how they ended. Visible to roles with the privileges of the run''s role or of pg_read_all_stats.';
COMMENT ON TABLE bench.samples IS 'One row per run, node and measured interval, of the runs that bench.runs shows. A transaction belongs to the interval in which it ended, by its own client''s clock.';
COMMENT ON FUNCTION bench.stop IS
'Ends a run within a second; what was measured stays. False when it was not under way. For roles with the privileges of the run''s role or of pg_signal_backend.';
COMMENT ON VIEW bench.sweeps IS 'Sweeps, as they were asked for, how far they are and how they ended. Visible to roles with the privileges of the sweep''s role or of pg_read_all_stats.';
COMMENT ON FUNCTION bench.stop_sweep IS
'Ends a sweep, and the run under way; everything so far stays, and bench.resume_sweep can make the rest. False when it was not under way. For roles with the privileges of the sweep''s role or of pg_signal_backend.';

-- Documents and arguments: deleting runs; views that no value overflows.
CREATE FUNCTION bench.delete_run(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'delete_run_wrapper';
COMMENT ON FUNCTION bench.delete_run IS
'Deletes a run with all that was measured of it; false when somebody else has just done so. For roles with the privileges of the run''s role. A run under way, or of a sweep under way, is refused: see bench.stop and bench.stop_sweep. A sweep goes with the last of its runs.';

REVOKE ALL ON FUNCTION bench.delete_run FROM PUBLIC;

CREATE FUNCTION bench.forget_runs()
    RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'forget_runs_wrapper';
COMMENT ON FUNCTION bench.forget_runs IS
'Trigger of bench.run_log: what is kept of a run goes with its row, as the extension''s owner. Refuses runs under way.';
REVOKE ALL ON FUNCTION bench.forget_runs FROM PUBLIC;

-- In place of foreign keys, which would break filtered and parallel restores.
CREATE TRIGGER forget_runs AFTER DELETE ON bench.run_log REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION bench.forget_runs();
COMMENT ON TRIGGER forget_runs ON bench.run_log IS 'Deletes what is kept of the runs that are deleted';
CREATE TRIGGER forget_all_runs BEFORE TRUNCATE ON bench.run_log
    FOR EACH STATEMENT EXECUTE FUNCTION bench.forget_runs();
COMMENT ON TRIGGER forget_all_runs ON bench.run_log IS 'Deletes what is kept of all runs';
-- The end of a run.
COMMENT ON COLUMN bench.runs.status IS 'starting, running, completed, incomplete (clients were lost, or not everything could be written: see error), canceled, failed (nothing was measured), crashed (the coordinator is gone)';
-- Comparing.
COMMENT ON FUNCTION bench.compare IS
'Compares completed runs with completed runs: candidate / baseline with its interval, of the runs'' TPS (95 %) and latencies (98.75 % each, and so 95 % for the four together). verdict: same (the whole interval within the margin), faster, slower, or inconclusive, and then advice says with how many runs a side to start anew. differences: settings, versions and machines that are not the same on both sides, beside the verdict on tps.';

DROP FUNCTION bench.replace_function;
