\echo Use "ALTER EXTENSION pgbench_ext UPDATE TO '0.2.0'" to load this file. \quit

-- From 0.1.0 to 0.2.0. test/faults/upgrade.sh holds the outcome against a fresh installation.
-- Tables that pg_dump carries keep schema, kind and columns; what is added to them is nullable or has a default.

-- Functions that only views, other functions and other nodes call have a schema of their own. Grants go with them.

CREATE SCHEMA bench_internal;
GRANT USAGE ON SCHEMA bench_internal TO PUBLIC;
COMMENT ON SCHEMA bench_internal IS 'pgbench_ext: functions that its views, other functions and other nodes call; not for users';

ALTER TYPE bench.relation_reading SET SCHEMA bench_internal;
ALTER FUNCTION bench.builtin_fixtures SET SCHEMA bench_internal;
ALTER FUNCTION bench.status_of SET SCHEMA bench_internal;
ALTER FUNCTION bench.run_progress SET SCHEMA bench_internal;
ALTER FUNCTION bench.load_progress SET SCHEMA bench_internal;
ALTER FUNCTION bench.is_visible SET SCHEMA bench_internal;
ALTER FUNCTION bench.sweep_status_of SET SCHEMA bench_internal;
ALTER FUNCTION bench.sweep_progress SET SCHEMA bench_internal;
ALTER FUNCTION bench.node_state SET SCHEMA bench_internal;
ALTER FUNCTION bench.start_part SET SCHEMA bench_internal;
ALTER FUNCTION bench.part_state SET SCHEMA bench_internal;
ALTER FUNCTION bench.begin_part SET SCHEMA bench_internal;
ALTER FUNCTION bench.drop_part SET SCHEMA bench_internal;
ALTER FUNCTION bench.tap SET SCHEMA bench_internal;
ALTER FUNCTION bench.status_to_assert SET SCHEMA bench_internal;
ALTER FUNCTION bench.figure_ok SET SCHEMA bench_internal;

-- Puts `created` (its CREATE FUNCTION, COMMENT and REVOKE) in the place of a function whose arguments or result change,
-- and gives the roles that users had granted the old one the new one. Such grants are not the extension's own: pg_dump has
-- to see them as the users', so pg_init_privs keeps what it had without them.
CREATE FUNCTION bench_internal.replace_function(replaced regprocedure, created text, signature text) RETURNS void
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

-- Tables.

ALTER TABLE bench.run_log ADD COLUMN counted_from timestamptz;
-- When a run's work can have reached the server's counters, for bench.audits: from the first reading of them until its end.
-- A clock may be set back.
CREATE INDEX run_log_counted ON bench.run_log USING gist (
    tstzrange(least(counted_from, started_at), CASE WHEN finished_at IS NOT NULL THEN greatest(finished_at, least(counted_from, started_at)) END))
    WHERE started_at IS NOT NULL AND origin IS NULL;
ALTER TABLE bench.statement_log ADD COLUMN rows bigint, ADD COLUMN writes bigint, ADD COLUMN empty_writes bigint;

-- Functions that are new.

CREATE FUNCTION bench.delete_run(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'delete_run_wrapper';
COMMENT ON FUNCTION bench.delete_run IS
'Deletes a run with all that was measured of it; false when somebody else has just done so. For roles with the privileges of the run''s role. A run under way, or of a sweep under way, is refused: see bench.stop and bench.stop_sweep. A sweep goes with the last of its runs.';
REVOKE ALL ON FUNCTION bench.delete_run FROM PUBLIC;

CREATE FUNCTION bench_internal.forget_runs()
    RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'forget_runs_wrapper';
COMMENT ON FUNCTION bench_internal.forget_runs IS
'Trigger of bench.run_log: what is kept of a run goes with its row, as the extension''s owner. Refuses runs under way.';
REVOKE ALL ON FUNCTION bench_internal.forget_runs FROM PUBLIC;

CREATE FUNCTION bench_internal.as_bigint(value numeric)
    RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN value > 9223372036854775807 THEN 9223372036854775807 WHEN value < -9223372036854775808 THEN -9223372036854775808
                ELSE value END::bigint;
COMMENT ON FUNCTION bench_internal.as_bigint IS 'A sum as a bigint; beyond it the nearest one.';

CREATE FUNCTION bench_internal.as_int(value numeric)
    RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN value > 2147483647 THEN 2147483647 WHEN value < -2147483648 THEN -2147483648 ELSE value END::int;
COMMENT ON FUNCTION bench_internal.as_int IS 'A sum as an int; beyond it the nearest one.';

CREATE FUNCTION bench_internal.figure(value double precision)
    RETURNS double precision IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN abs(value) < 1e-75 THEN 0 WHEN abs(value) <= 1e75 THEN value END;
COMMENT ON FUNCTION bench_internal.figure IS
'A number that can be squared, multiplied by a count, divided and added up without overflow or underflow; NULL for NaN, infinity and what is beyond all measure.';

CREATE FUNCTION bench_internal.json_figure(value jsonb)
    RETURNS double precision IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN
               CASE WHEN abs(value::numeric) < 1e-75 THEN 0 WHEN abs(value::numeric) <= 1e75 THEN value::double precision END END;
COMMENT ON FUNCTION bench_internal.json_figure IS 'The same as bench_internal.figure of a member of a document; NULL for what is no number.';

CREATE FUNCTION bench_internal.prewarm(relation oid)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prewarm_table_wrapper';
COMMENT ON FUNCTION bench_internal.prewarm IS
'Reads a table, its TOAST table and the indexes of both into shared buffers, and returns the number of blocks; 0 for a partitioned table, which has none of its own. For roles with SELECT on the table. Sweeps with before => ''prewarm'' do this before each run.';

CREATE FUNCTION bench_internal.check_extension(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_extension_wrapper';
COMMENT ON FUNCTION bench_internal.check_extension IS
'Fails with 42501 where a role could have an extension''s functions do something else: it owns the extension, its schema or something in that, or may create there. Superusers may, and the calling role, unless it has come from another by SET ROLE.';

-- Functions with another body.

CREATE OR REPLACE FUNCTION bench_internal.is_visible(role text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'is_visible_wrapper';
COMMENT ON FUNCTION bench_internal.is_visible IS 'Whether the current role may see what belongs to a run, sweep or load of this role: it has the role''s privileges or those of pg_read_all_stats, or is a superuser. Runs of a dropped role are for the latter two.';

CREATE OR REPLACE FUNCTION bench_internal.tap(passed boolean, description text, remark text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pgtap');
    verdict text;
    remarks text;
BEGIN
    IF home IS NULL THEN
        RAISE object_not_in_prerequisite_state
            USING MESSAGE = 'extension "pgtap" is not installed', HINT = 'CREATE EXTENSION pgtap.';
    END IF;
    PERFORM bench_internal.check_extension('pgtap');
    -- pgTAP's functions call each other by their bare names, and keep their counts in temporary tables.
    PERFORM set_config('search_path', format('pg_catalog, %I, pg_temp', home), true);
    EXECUTE format('SELECT %I.ok($1, $2)', home) INTO verdict USING passed, description;
    EXECUTE format('SELECT %I.diag($1)', home) INTO remarks USING remark;
    RETURN concat_ws(E'\n', verdict, remarks);
END $$;
COMMENT ON FUNCTION bench_internal.tap IS
'The TAP lines of pgTAP''s ok(), and of diag() for a remark that is not NULL, from whatever schema pgTAP is in; 42501 where a role that the caller cannot trust could have replaced them. For the assertions.';

CREATE OR REPLACE FUNCTION bench.audit_ok(run_id bigint, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text := bench_internal.status_to_assert(run_id);
    judged bigint;
    of_tables bigint;
    reasons text;
    wrong text;
BEGIN
    SELECT count(a.ok), count(a.ok) FILTER (WHERE a.counter IN ('n_tup_ins', 'n_tup_upd', 'n_tup_del', 'idx_scan')),
           string_agg(DISTINCT a.reason, '; ') FILTER (WHERE a.counter IN ('n_tup_ins', 'n_tup_upd', 'n_tup_del', 'idx_scan')),
           string_agg(format('%s: harness %s, server %s, difference %s', a.counter, a.harness, a.server, a.difference)
                      || coalesce(' (' || a.reason || ')', ''), E'\n' ORDER BY a.counter) FILTER (WHERE NOT a.ok)
    INTO judged, of_tables, reasons, wrong FROM bench.audit(run_id) a;
    wrong := nullif(concat_ws(E'\n',
        CASE WHEN status <> 'completed' THEN format('run %s is %s', run_id, status) END,
        CASE WHEN judged = 0 THEN format('run %s has no counters that could be held against the server''s', run_id) END,
        wrong), '');
    RETURN bench_internal.tap(wrong IS NULL, coalesce(description, format('run %s: audit', run_id)),
                     coalesce(wrong, CASE WHEN of_tables = 0 THEN format('no counter of a table was judged: %s', reasons) END));
END $$;
COMMENT ON FUNCTION bench.audit_ok IS
'pgTAP assertion: the run has completed, and every counter that bench.audit judges is equal to the server''s. A run without any fails; one in which no counter of a table could be judged passes with a diagnostic that says why.';

CREATE OR REPLACE FUNCTION bench_internal.figure_ok(run_id bigint, figure text, have double precision, op text, want double precision, unit text, description text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    status text := bench_internal.status_to_assert(run_id);
    run record;
    holds boolean;
    remark text;
BEGIN
    IF want = 'NaN' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'value must be a number, not NaN';
    END IF;
    IF op IS NULL OR want IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = format('%s must not be null', CASE WHEN op IS NULL THEN 'op' ELSE 'value' END);
    END IF;
    CASE op
        WHEN '>' THEN holds := have > want;
        WHEN '>=' THEN holds := have >= want;
        WHEN '<' THEN holds := have < want;
        WHEN '<=' THEN holds := have <= want;
        WHEN '=' THEN holds := have = want;
        WHEN '<>' THEN holds := have <> want;
        ELSE
            RAISE invalid_parameter_value
                USING MESSAGE = format('unrecognized value for op: "%s"', op),
                      HINT = 'Available values: ''>'', ''>='', ''<'', ''<='', ''='', ''<>''.';
    END CASE;
    holds := status = 'completed' AND coalesce(holds, false);
    IF NOT holds THEN
        SELECT * INTO run FROM bench.summary s WHERE s.run_id = figure_ok.run_id;
        remark := concat_ws(E'\n',
            format('        have: %s', coalesce(have::text, 'nothing measured')),
            format('        want: %s %s', op, want),
            format('         run: %s, %s with %s clients, is %s', run_id, run.workload, run.clients, status),
            CASE WHEN run.secs > 0 THEN format('     samples: tps min %s, max %s over %s s', run.tps_min, run.tps_max, run.secs) END);
    END IF;
    RETURN bench_internal.tap(holds, coalesce(description, format('run %s: %s %s %s', run_id, figure, op, want) || unit), remark);
END $$;

CREATE OR REPLACE FUNCTION bench.tps_ok(run_id bigint, op text, value double precision, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tps double precision := (SELECT s.tps FROM bench.summary s WHERE s.run_id = tps_ok.run_id);
BEGIN
    RETURN bench_internal.figure_ok(run_id, 'tps', tps, op, value, '', description);
END $$;

CREATE OR REPLACE FUNCTION bench.latency_ok(run_id bigint, p double precision, op text, value_ms double precision, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latency_ms double precision := bench.percentile(run_id, p);
BEGIN
    RETURN bench_internal.figure_ok(run_id, format('p%s latency', trim_scale(p::numeric * 100)), latency_ms, op, value_ms, ' ms', description);
END $$;

CREATE OR REPLACE FUNCTION bench.no_regression_ok(baseline bigint[], candidate bigint[], tolerance double precision DEFAULT 0.05, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tps record;
    remark text;
    passed boolean;
BEGIN
    IF tolerance IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'tolerance must not be null';
    ELSIF NOT (tolerance >= 0 AND tolerance < 1) THEN
        RAISE invalid_parameter_value
            USING MESSAGE = format('tolerance must be at least 0 and below 1, not %s', tolerance),
                  HINT = 'It is a share: 0.05 lets 5 % pass.';
    END IF;
    description := coalesce(description, format('runs %s: no regression beyond %s %% from runs %s', array_to_string(candidate, ', ', 'null'),
                                                trim_scale(tolerance::numeric * 100), array_to_string(baseline, ', ', 'null')));
    SELECT string_agg(format('run %s is %s', r.run_id, r.status), E'\n' ORDER BY r.run_id) INTO remark
    FROM (SELECT u.run_id, bench_internal.status_to_assert(u.run_id) AS status FROM unnest(baseline || candidate) AS u (run_id)) AS r
    WHERE r.status <> 'completed';
    IF remark IS NOT NULL THEN
        RETURN bench_internal.tap(false, description, remark);
    END IF;
    SELECT c.* INTO STRICT tps FROM bench.compare(baseline, candidate, tolerance) AS c WHERE c.metric = 'tps';
    -- A side at which nothing was done has no interval, and needs none.
    passed := coalesce(coalesce(tps.ratio_high, CASE WHEN tps.verdict = 'slower' THEN tps.ratio END) >= 1 - tolerance, true);
    IF NOT passed OR tps.verdict NOT IN ('same', 'faster') THEN
        remark := concat_ws(E'\n',
            format('     tps: %s, baseline %s', round(tps.candidate::numeric, 1), round(tps.baseline::numeric, 1)),
            format('   ratio: %s', round(tps.ratio::numeric, 4))
                || CASE WHEN num_nulls(tps.ratio_low, tps.ratio_high) = 0
                        THEN format(', 95 %% interval %s to %s', round(tps.ratio_low::numeric, 4), round(tps.ratio_high::numeric, 4))
                        ELSE ', no interval' END
                || format('; a regression is below %s', 1 - tolerance),
            format(' verdict: %s', tps.verdict),
            '  advice: ' || tps.advice,
            'differences: ' || tps.differences::text);
    END IF;
    RETURN bench_internal.tap(passed, description, remark);
END $$;

-- Functions with other arguments.

SELECT bench_internal.replace_function('bench.change_points(text, text, jsonb)', $create$
CREATE FUNCTION bench.change_points(workload text, metric text DEFAULT 'tps', tags jsonb DEFAULT '{}', margin double precision DEFAULT 0.02)
    RETURNS TABLE (run_id bigint, at timestamptz, before double precision, after double precision, change double precision,
                   p double precision, change_low double precision, change_high double precision)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'level_changes_wrapper';
COMMENT ON FUNCTION bench.change_points IS
'Where runs of a workload changed their level: E-divisive change points of each series of bench.history whose tags include these, of its last 1000 runs. margin is the least change worth telling, as a fraction; a level has at least three runs that show it. run_id is the first run of the new level; before and after are the mean levels, change is the ratio of their geometric means less 1, with its 95 % interval (NULL where a run had none), p the significance. metric: tps, latency_avg_ms, latency_p50_ms, latency_p95_ms or latency_p99_ms.';
$create$, 'bench.change_points(text, text, jsonb, double precision)');

-- Views: columns are added at the end, so that grants and what depends on them stay.

CREATE OR REPLACE VIEW bench.scripts WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.workload, s.weight, s.fixture, s.transactions,
       s.transactions / nullif((SELECT sum(bench_internal.figure(x.secs) ORDER BY x.elapsed) FROM bench.samples x WHERE x.run_id = s.run_id AND x.node = s.node), 0) AS tps,
       s.failed, s.retried, s.skipped, s.late, s.latency_avg_ms, s.latency_stddev_ms, s.latency_p50_ms, s.latency_p95_ms,
       s.latency_p99_ms, s.latency_max_ms
FROM bench.script_log s JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);

CREATE OR REPLACE VIEW bench.statements WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.command, s.line, s.statement, s.count, s.failed, s.retried, s.latency_avg_ms,
       s.latency_p95_ms, s.plan, s.generic_plans, s.custom_plans, s.plan_changes, s.workers_planned, s.workers_launched,
       s.rows, s.writes, s.empty_writes
FROM bench.statement_log s JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON COLUMN bench.statements.rows IS 'Rows returned, inserted, updated, deleted or merged, in all phases; NULL for meta commands and runs before 0.2.0';
COMMENT ON COLUMN bench.statements.writes IS 'Executions that were to insert, update, delete or merge rows, in all phases; NULL where there was none';
COMMENT ON COLUMN bench.statements.empty_writes IS 'Of these, executions that affected no row';

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples}'::text[] LOOP
        EXECUTE format($view$
CREATE OR REPLACE VIEW bench.total_%1$s WITH (security_barrier) AS
SELECT x.run_id, max(x.elapsed) AS elapsed, max(bench_internal.figure(x.secs)) AS secs, max(x.at) AS at, count(*)::int AS nodes,
       bench_internal.as_int(sum(x.clients)) AS clients, bench_internal.as_bigint(sum(x.transactions)) AS transactions, sum(bench_internal.figure(x.tps)) AS tps,
       bench_internal.as_bigint(sum(x.failed)) AS failed, bench_internal.as_bigint(sum(x.retried)) AS retried, bench_internal.as_bigint(sum(x.skipped)) AS skipped, bench_internal.as_bigint(sum(x.late)) AS late,
       sum(bench_internal.figure(x.latency_avg_ms) * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms,
       CASE WHEN count(*) = 1 THEN max(bench_internal.figure(x.latency_stddev_ms))
            WHEN sum(x.transactions) > 0 THEN
                sqrt(greatest(0, sum((bench_internal.figure(x.latency_stddev_ms) ^ 2 + bench_internal.figure(x.latency_avg_ms) ^ 2) * x.transactions) / sum(x.transactions)
                                 - (sum(bench_internal.figure(x.latency_avg_ms) * x.transactions) / sum(x.transactions)) ^ 2)) END AS latency_stddev_ms,
       CASE WHEN count(*) = 1 THEN max(bench_internal.figure(x.latency_p50_ms)) END AS latency_p50_ms,
       CASE WHEN count(*) = 1 THEN max(bench_internal.figure(x.latency_p95_ms)) END AS latency_p95_ms,
       CASE WHEN count(*) = 1 THEN max(bench_internal.figure(x.latency_p99_ms)) END AS latency_p99_ms,
       max(bench_internal.figure(x.latency_max_ms)) AS latency_max_ms,
       sum(bench_internal.figure(x.lag_avg_ms) * x.transactions) / nullif(sum(x.transactions), 0) AS lag_avg_ms,
       bench_internal.as_bigint(sum(x.wal_bytes)) AS wal_bytes, bench_internal.as_bigint(sum(x.wal_records)) AS wal_records, bench_internal.as_bigint(sum(x.wal_fpi)) AS wal_fpi,
       bench_internal.as_bigint(sum(x.wal_buffers_full)) AS wal_buffers_full, bench_internal.as_int(sum(x.checkpoints)) AS checkpoints,
       bench_internal.as_bigint(sum(x.buffers_checkpoint)) AS buffers_checkpoint, bench_internal.as_bigint(sum(x.buffers_clean)) AS buffers_clean,
       bench_internal.as_bigint(sum(x.buffers_backend)) AS buffers_backend, bench_internal.as_bigint(sum(x.blks_hit)) AS blks_hit, bench_internal.as_bigint(sum(x.blks_read)) AS blks_read,
       bench_internal.as_bigint(sum(x.temp_files)) AS temp_files, bench_internal.as_bigint(sum(x.temp_bytes)) AS temp_bytes,
       avg(bench_internal.figure(x.cpu_user)) AS cpu_user, avg(bench_internal.figure(x.cpu_system)) AS cpu_system, avg(bench_internal.figure(x.cpu_iowait)) AS cpu_iowait, avg(bench_internal.figure(x.cpu_steal)) AS cpu_steal,
       avg(bench_internal.figure(x.cpu_idle)) AS cpu_idle, bench_internal.as_bigint(sum(x.memory_available_bytes)) AS memory_available_bytes,
       bench_internal.as_bigint(sum(x.memory_dirty_bytes)) AS memory_dirty_bytes, bench_internal.as_bigint(sum(x.disk_read_bytes)) AS disk_read_bytes,
       bench_internal.as_bigint(sum(x.disk_written_bytes)) AS disk_written_bytes, sum(bench_internal.figure(x.throttled_secs)) AS throttled_secs
FROM (SELECT s.*, row_number() OVER (PARTITION BY s.run_id, s.node ORDER BY s.elapsed) AS place
      FROM bench.%1$s s WHERE s.run_id IN (SELECT r.run_id FROM bench.runs r)) x
GROUP BY x.run_id, x.place
$view$, name);
        EXECUTE format('COMMENT ON VIEW bench.total_%1$s IS %2$L', name,
            'bench.' || name || ' of all nodes together: one row per run and interval. Counts are added up, shares of processors are means of the nodes, and percentiles are NULL where there are several: those of the parts do not tell those of the whole.');
        EXECUTE format('COMMENT ON COLUMN bench.total_%s.nodes IS %L', name, 'Nodes with this interval');
        EXECUTE (SELECT string_agg(format('COMMENT ON COLUMN bench.total_%1$s.%2$I IS %3$L', name, a.attname, col_description(a.attrelid, a.attnum)), '; ')
                 FROM pg_attribute a
                 WHERE a.attrelid = ('bench.' || name)::regclass AND a.attnum > 0
                   AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = ('bench.total_' || name)::regclass AND t.attname = a.attname));
    END LOOP;
END $$;

CREATE OR REPLACE VIEW bench.summary_of_all AS
SELECT r.run_id, r.workload, r.clients, r.driver, r.results, r.status, r.segment, r.role, r.started_at,
       s.secs, s.transactions, s.failed, s.retried, s.tps, s.tps_avg, s.tps_min, s.tps_max, s.tps_stddev,
       s.latency_avg_ms, coalesce(r.latency_stddev_ms, s.latency_stddev_ms) AS latency_stddev_ms,
       r.latency_p50_ms, r.latency_p95_ms, r.latency_p99_ms, r.latency_p999_ms, s.latency_max_ms,
       s.skipped, s.late, r.rate, r.latency_limit, coalesce(r.lag_avg_ms, s.lag_avg_ms) AS lag_avg_ms, r.lag_max_ms, r.backlog
FROM bench.run_log r
LEFT JOIN LATERAL (
    SELECT sum(x.secs) AS secs, bench_internal.as_bigint(sum(x.transactions)) AS transactions, bench_internal.as_bigint(sum(x.failed)) AS failed,
           bench_internal.as_bigint(sum(x.retried)) AS retried,
           -- the sum of the nodes'
           (SELECT sum(n.tps) FROM (SELECT sum(y.transactions) / nullif(sum(bench_internal.figure(y.secs)), 0) AS tps
                                    FROM (SELECT * FROM bench.samples z WHERE z.run_id = r.run_id ORDER BY z.node, z.elapsed) y
                                    GROUP BY y.node) n) AS tps,
           avg(x.tps) AS tps_avg, min(x.tps) AS tps_min, max(x.tps) AS tps_max, stddev_samp(x.tps) AS tps_stddev,
           sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms,
           -- of the whole: the mean of the squares less the square of the mean
           CASE WHEN sum(x.transactions) > 0 THEN sqrt(greatest(0, sum((x.latency_stddev_ms ^ 2 + x.latency_avg_ms ^ 2) * x.transactions) / nullif(sum(x.transactions), 0)
                            - (sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0)) ^ 2)) END AS latency_stddev_ms,
           max(x.latency_max_ms) AS latency_max_ms, bench_internal.as_bigint(sum(x.skipped)) AS skipped, bench_internal.as_bigint(sum(x.late)) AS late,
           sum(x.lag_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS lag_avg_ms
    -- in order, for sums of floating-point numbers depend on it
    FROM (SELECT * FROM bench.total_samples y WHERE y.run_id = r.run_id ORDER BY y.elapsed) x
) s ON true;

CREATE OR REPLACE VIEW bench.nodes WITH (security_barrier) AS
SELECT r.run_id, k.node, coalesce(n.name, 'local') AS name, coalesce(n.is_coordinator, false) AS is_coordinator,
       coalesce(n.clients, r.clients) AS clients,
       CASE WHEN coalesce(n.clients, 1) > 0 THEN coalesce(n.status, bench_internal.status_of(r.status, r.segment, r.run_id)) END AS status,
       coalesce(n.error, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.error END) AS error,
       n.start_offset_ms, n.clock_offset_ms, n.clock_error_ms,
       s.secs, s.transactions, s.failed, s.retried, s.transactions / nullif(s.secs, 0) AS tps,
       s.latency_avg_ms, coalesce(n.latency_p95_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_p95_ms END) AS latency_p95_ms,
       coalesce(n.latency_p99_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_p99_ms END) AS latency_p99_ms, s.latency_max_ms,
       coalesce(n.processors, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN bench_internal.as_int(bench_internal.json_figure(r.environment -> 'processors')::numeric) END) AS processors,
       coalesce(s.cpu_user, n.cpu_user) AS cpu_user, coalesce(s.cpu_system, n.cpu_system) AS cpu_system,
       coalesce(s.cpu_iowait, n.cpu_iowait) AS cpu_iowait, coalesce(s.cpu_steal, n.cpu_steal) AS cpu_steal,
       coalesce(s.cpu_idle, n.cpu_idle) AS cpu_idle,
       n.prepared, n.connections_opened, n.connections_reused, n.prepared_left, n.settings
FROM bench.run_log r
CROSS JOIN LATERAL (
    SELECT l.node FROM bench.node_log l WHERE l.run_id = r.run_id
    UNION ALL
    SELECT 0 WHERE NOT EXISTS (SELECT FROM bench.node_log l WHERE l.run_id = r.run_id) AND r.nodes = 'local'
) k
LEFT JOIN bench.node_log n ON n.run_id = r.run_id AND n.node = k.node
LEFT JOIN LATERAL (
    SELECT sum(bench_internal.figure(x.secs)) AS secs, bench_internal.as_bigint(sum(x.transactions)) AS transactions, bench_internal.as_bigint(sum(x.failed)) AS failed, bench_internal.as_bigint(sum(x.retried)) AS retried,
           sum(bench_internal.figure(x.latency_avg_ms) * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms, max(bench_internal.figure(x.latency_max_ms)) AS latency_max_ms,
           sum(bench_internal.figure(x.cpu_user) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_user) IS NOT NULL), 0) AS cpu_user,
           sum(bench_internal.figure(x.cpu_system) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_system) IS NOT NULL), 0) AS cpu_system,
           sum(bench_internal.figure(x.cpu_iowait) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_iowait) IS NOT NULL), 0) AS cpu_iowait,
           sum(bench_internal.figure(x.cpu_steal) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_steal) IS NOT NULL), 0) AS cpu_steal,
           sum(bench_internal.figure(x.cpu_idle) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_idle) IS NOT NULL), 0) AS cpu_idle
    FROM bench.samples x WHERE x.run_id = r.run_id AND x.node = k.node
) s ON true
WHERE bench_internal.is_visible(r.role);

CREATE OR REPLACE VIEW bench.audits WITH (security_barrier) AS
SELECT a.run_id, a.node, a.counter, a.harness, a.server, bench_internal.as_bigint(a.harness::numeric - a.server) AS difference,
       CASE WHEN a.judged AND (o.run_id IS NULL OR a.counter = 'samples') THEN a.harness = a.server END AS ok,
       CASE WHEN a.judged AND o.run_id IS NOT NULL AND a.counter <> 'samples'
            THEN format('run %s worked on the same fixture, or ran the same workload, at the same time', o.beside) ELSE a.reason END AS reason
FROM bench.audit_log a
JOIN bench.run_log r USING (run_id)
-- Runs that another was in the way of: each once, and found by the index run_log_counted.
LEFT JOIN (
    SELECT b.run_id, min(x.run_id) AS beside
    FROM bench.run_log b JOIN bench.run_log x ON
        -- of other servers' runs that was said when they were exported
        b.started_at IS NOT NULL AND b.origin IS NULL AND x.started_at IS NOT NULL AND x.origin IS NULL
        AND tstzrange(least(b.counted_from, b.started_at), CASE WHEN b.finished_at IS NOT NULL THEN greatest(b.finished_at, least(b.counted_from, b.started_at)) END)
         && tstzrange(least(x.counted_from, x.started_at), CASE WHEN x.finished_at IS NOT NULL THEN greatest(x.finished_at, least(x.counted_from, x.started_at)) END)
        AND x.run_id <> b.run_id
        -- a run on several nodes and its part on this one are one
        AND NOT (x.nodes <> 'local' AND b.nodes <> 'local' AND b.part_of ->> 'run_id' IS NOT DISTINCT FROM x.run_id::text)
        AND NOT (x.nodes <> 'local' AND b.nodes <> 'local' AND x.part_of ->> 'run_id' IS NOT DISTINCT FROM b.run_id::text)
        AND (string_to_array(x.fixture, ',') && string_to_array(b.fixture, ',')
             -- names of a mix, without their weights
             OR string_to_array(rtrim(regexp_replace(x.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ',')
                && string_to_array(rtrim(regexp_replace(b.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ','))
        -- The clients of one that crashed were at work until a while after its last sign of life.
        AND (x.finished_at IS NOT NULL OR bench_internal.status_of(x.status, x.segment, x.run_id) <> 'crashed'
             OR extract(epoch FROM least(b.counted_from, b.started_at)) < 2 * coalesce(bench_internal.figure(x.sample_interval), 0)::numeric + 60
                + extract(epoch FROM greatest(x.started_at, (SELECT max(s.at) FROM bench.samples s WHERE s.run_id = x.run_id),
                                              (SELECT max(w.at) FROM bench.warmup_samples w WHERE w.run_id = x.run_id))))
    GROUP BY b.run_id
) o ON o.run_id = a.run_id
WHERE bench_internal.is_visible(r.role);

CREATE OR REPLACE VIEW bench.sweeps WITH (security_barrier) AS
SELECT s.sweep_id, s.options ->> 'workload' AS workload,
       ARRAY(SELECT bench_internal.as_int(bench_internal.json_figure(c.value)::numeric) FROM jsonb_array_elements(CASE WHEN jsonb_typeof(s.options -> 'clients') = 'array' THEN s.options -> 'clients' END) WITH ORDINALITY AS c (value, place) ORDER BY c.place) AS clients,
       bench_internal.json_figure(s.options -> 'secs') AS secs, bench_internal.as_int(bench_internal.json_figure(s.options -> 'rounds')::numeric) AS rounds, s.options -> 'variants' AS variants,
       bench_internal.json_figure(s.options -> 'warmup_secs') AS warmup, bench_internal.json_figure(s.options -> 'rate') AS rate,
       s.options -> 'variables' AS variables, s.options -> 'settings' AS settings,
       ARRAY(SELECT b.value FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(s.options -> 'before') = 'array' THEN s.options -> 'before' END) WITH ORDINALITY AS b (value, place) ORDER BY b.place) AS before,
       CASE WHEN jsonb_typeof(s.options -> 'seed') = 'number' THEN bench_internal.as_bigint((s.options -> 'seed')::numeric) END AS seed, s.options ->> 'query_mode' AS query_mode, s.options ->> 'nodes' AS nodes, s.options -> 'tags' AS tags,
       bench_internal.sweep_status_of(s.status, s.segment, s.sweep_id) AS status, n.runs, n.completed, s.started_at, s.resumed_at, s.finished_at,
       -- What is left takes as long a run as what is done since it began, or was taken up.
       CASE WHEN n.since > 0 AND isfinite(coalesce(s.resumed_at, s.started_at)) THEN extract(epoch FROM clock_timestamp() - coalesce(s.resumed_at, s.started_at)) / n.since * (p.total - p.done)
       END::double precision AS remaining,
       s.role, s.error, s.server_version, s.extension_version
FROM bench.sweep_log s
CROSS JOIN LATERAL (
    SELECT count(*)::int AS runs, (count(*) FILTER (WHERE r.status = 'completed' AND l.error IS NULL))::int AS completed,
           count(*) FILTER (WHERE r.finished_at >= coalesce(s.resumed_at, s.started_at)) AS since
    FROM bench.sweep_run_log l LEFT JOIN bench.run_log r USING (run_id) WHERE l.sweep_id = s.sweep_id
) n
LEFT JOIN LATERAL bench_internal.sweep_progress(s.segment, s.sweep_id) p ON s.status = 'running'
WHERE bench_internal.is_visible(s.role);
COMMENT ON VIEW bench.sweeps IS 'Sweeps, as they were asked for, how far they are and how they ended. Visible to roles with the privileges of the sweep''s role or of pg_read_all_stats.';

CREATE OR REPLACE VIEW bench.sweep_runs WITH (security_barrier) AS
SELECT l.sweep_id, l.place, l.round, l.variant, l.clients, l.run_id,
       CASE WHEN r.run_id IS NOT NULL THEN bench_internal.status_of(r.status, r.segment, r.run_id) END AS status,
       coalesce(l.error, r.error ->> 'message') AS error,
       u.secs, u.transactions, u.failed, u.tps, u.tps_min, u.tps_max, u.latency_avg_ms, u.latency_p50_ms, u.latency_p95_ms,
       u.latency_p99_ms, (SELECT avg(bench_internal.figure(x.cpu_idle)) FROM bench.samples x WHERE x.run_id = l.run_id) AS cpu_idle
FROM bench.sweep_run_log l
JOIN bench.sweep_log s USING (sweep_id)
LEFT JOIN bench.run_log r ON r.run_id = l.run_id
LEFT JOIN bench.summary u ON u.run_id = l.run_id
WHERE bench_internal.is_visible(s.role);

CREATE OR REPLACE VIEW bench.sweep_results AS
SELECT sweep_id, clients, variant, count(*)::int AS rounds, avg(tps) AS tps_avg, min(tps) AS tps_min, max(tps) AS tps_max,
       stddev_samp(tps) AS tps_stddev, avg(bench_internal.figure(latency_avg_ms)) AS latency_avg_ms, avg(bench_internal.figure(latency_p50_ms)) AS latency_p50_ms,
       avg(bench_internal.figure(latency_p95_ms)) AS latency_p95_ms, avg(bench_internal.figure(latency_p99_ms)) AS latency_p99_ms, bench_internal.as_bigint(sum(failed)) AS failed, avg(cpu_idle) AS cpu_idle,
       array_agg(run_id ORDER BY round) AS run_ids
FROM bench.sweep_runs
WHERE status = 'completed'
GROUP BY sweep_id, clients, variant;

-- Who sees rows of results.

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

-- What is kept of a run goes with its row: in place of foreign keys, which would break filtered and parallel restores.

CREATE TRIGGER forget_runs AFTER DELETE ON bench.run_log REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_runs ON bench.run_log IS 'Deletes what is kept of the runs that are deleted';
CREATE TRIGGER forget_all_runs BEFORE TRUNCATE ON bench.run_log
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_all_runs ON bench.run_log IS 'Deletes what is kept of all runs';

-- Comments.

COMMENT ON VIEW bench.runs IS 'Runs, as they were asked for and how they ended. Visible to roles with the privileges of the run''s role or of pg_read_all_stats.';
COMMENT ON TABLE bench.samples IS 'One row per run, node and measured interval, of the runs that bench.runs shows. A transaction belongs to the interval in which it ended, by its own client''s clock.';
COMMENT ON FUNCTION bench.stop IS
'Ends a run within a second; what was measured stays. False when it was not under way. For roles with the privileges of the run''s role or of pg_signal_backend.';
COMMENT ON FUNCTION bench.stop_sweep IS
'Ends a sweep, and the run under way; everything so far stays, and bench.resume_sweep can make the rest. False when it was not under way. For roles with the privileges of the sweep''s role or of pg_signal_backend.';
COMMENT ON FUNCTION bench_internal.start_part IS
'Starts this node''s part of a run that another node was asked for; its clients wait for bench_internal.begin_part. Returns the run''s id here, or the error. Called by the other node, in the name of a role that may call bench.run or bench.start on this one too.';
COMMENT ON COLUMN bench.runs.status IS 'starting, running, completed, incomplete (clients were lost, or not everything could be written: see error), canceled, failed (nothing was measured), crashed (the coordinator is gone)';
COMMENT ON VIEW bench.waits IS 'What the clients of a run waited for while it was measured, sampled 100 times a second, of few clients up to 400 times, of more than 64 less often; of each interval, see the column waits of bench.samples';
COMMENT ON FUNCTION bench.percentile IS
'A percentile of a run''s latencies in milliseconds, within 1 %; p is a fraction, as in percentile_cont: 0.99 for the 99th. The rank p * (n - 1) from 0 is interpolated between its neighbours, the latencies of a bucket lying evenly in it; HdrHistogram tells the upper end of the bucket that has rank ceil(p * n) from 1, which is higher by up to a bucket. NULL when the run has no histogram.';
COMMENT ON FUNCTION bench.compare IS
'Compares completed runs with completed runs: candidate / baseline with its interval, of the runs'' TPS (95 %) and latencies (98.75 % each, and so 95 % for the four together). verdict: same (the whole interval within the margin), faster, slower, or inconclusive, and then advice says with how many runs a side to start anew. differences: settings, versions and machines that are not the same on both sides, beside the verdict on tps.';

-- The fit of the universal scalability law.

COMMENT ON FUNCTION bench.scalability IS
'Gunther''s universal scalability law, fitted to the completed runs of each variant of a sweep: lambda is the TPS of one client, sigma contention, kappa crosstalk; peak_clients and peak_tps are where TPS peaks; each with a 95 % interval. A rung counts once, with its rounds'' mean. verdict: fits, no peak (its interval reaches beyond twice the last rung, or TPS only falls), does not fit, not enough rungs (fewer than four).';

DROP FUNCTION bench_internal.replace_function;
