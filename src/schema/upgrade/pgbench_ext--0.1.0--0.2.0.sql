\echo Use "ALTER EXTENSION pgbench_ext UPDATE TO '0.2.0'" to load this file. \quit

-- From 0.1.0 to 0.2.0. test/scenarios/upgrade.sh holds the outcome against a fresh installation.
-- Tables that pg_dump carries keep schema, kind and columns; what is added to them is nullable or has a default.

-- Functions that only views, other functions and other nodes call have a schema of their own. Grants go with them.

CREATE SCHEMA bench_internal;
GRANT USAGE ON SCHEMA bench_internal TO PUBLIC;
COMMENT ON SCHEMA bench_internal IS 'pgbench_ext: internal functions, called by its views, its other functions and other nodes; not for users';

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

ALTER TABLE bench.run_log ADD COLUMN counted_from timestamptz, ADD COLUMN before text NOT NULL DEFAULT 'none',
    ADD COLUMN log_rate double precision NOT NULL DEFAULT 0, ADD COLUMN logged bigint,
    ADD COLUMN log_lost bigint, ADD COLUMN server_cpu_us double precision,
    ADD COLUMN target text, ADD COLUMN jobs int, ADD COLUMN reconnect boolean NOT NULL DEFAULT false,
    ADD COLUMN on_disconnect text NOT NULL DEFAULT 'end',
    ADD COLUMN connect_avg_ms double precision,
    ADD COLUMN connect_p50_ms double precision,
    ADD COLUMN connect_p95_ms double precision,
    ADD COLUMN connect_p99_ms double precision,
    ADD COLUMN connect_max_ms double precision,
    ADD COLUMN unknown bigint,
    ADD COLUMN warmup_took double precision,
    ADD COLUMN feeders jsonb,
    ADD COLUMN clients_stuck int[],
    ALTER COLUMN warmup DROP NOT NULL;
-- For bench.audits: when a run's work can have reached the server's counters, from their first reading to the run's end.
-- The clock may have been set back meanwhile.
CREATE INDEX run_log_counted ON bench.run_log USING gist (
    tstzrange(least(counted_from, started_at), CASE WHEN finished_at IS NOT NULL THEN greatest(finished_at, least(counted_from, started_at)) END))
    WHERE started_at IS NOT NULL AND origin IS NULL;
ALTER TABLE bench.error_log ADD COLUMN context text;
ALTER TABLE bench.samples ADD COLUMN aborted bigint, ADD COLUMN latency_histogram jsonb,
    ADD COLUMN replay_lag_ms double precision, ADD COLUMN replay_lag_bytes bigint;
ALTER TABLE bench.warmup_samples ADD COLUMN aborted bigint, ADD COLUMN latency_histogram jsonb,
    ADD COLUMN replay_lag_ms double precision, ADD COLUMN replay_lag_bytes bigint;
ALTER TABLE bench.script_log ADD COLUMN aborted bigint;
ALTER TABLE bench.node_log ADD COLUMN aborted bigint, ADD COLUMN server_cpu_us double precision, ADD COLUMN machine int, ADD COLUMN clients_stuck int[];
ALTER TABLE bench.statement_log ADD COLUMN rows bigint, ADD COLUMN writes bigint, ADD COLUMN empty_writes bigint;

-- Tables that are new.

CREATE TABLE bench.standbys (
    run_id           bigint NOT NULL,
    node             int NOT NULL DEFAULT 0,
    elapsed          double precision NOT NULL,
    pid              int NOT NULL,
    name             text NOT NULL,
    state            text,
    sync_state       text,
    write_lag_ms     double precision,
    flush_lag_ms     double precision,
    replay_lag_ms    double precision,
    replay_lag_bytes bigint,
    PRIMARY KEY (run_id, node, elapsed, pid)
);
COMMENT ON TABLE bench.standbys IS 'Standbys of the server under test: one row per standby (or other receiver of WAL) and measured interval, as pg_stat_replication shows them at its end to the run''s role. Empty for roles without pg_read_all_stats.';
COMMENT ON COLUMN bench.standbys.run_id IS 'The run';
COMMENT ON COLUMN bench.standbys.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.standbys.elapsed IS 'End of the interval, in seconds since measuring began, as in bench.samples';
COMMENT ON COLUMN bench.standbys.pid IS 'Process id of the WAL sender';
COMMENT ON COLUMN bench.standbys.name IS 'application_name of the standby';
COMMENT ON COLUMN bench.standbys.state IS 'State of the WAL sender, as in pg_stat_replication: streaming, catchup, backup, …';
COMMENT ON COLUMN bench.standbys.sync_state IS 'As in pg_stat_replication: async, sync, quorum or potential';
COMMENT ON COLUMN bench.standbys.write_lag_ms IS 'Milliseconds from the flush of recent WAL here until the standby confirmed its write; NULL if all is confirmed and no more WAL came';
COMMENT ON COLUMN bench.standbys.flush_lag_ms IS 'Milliseconds until the standby confirmed the flush, as write_lag_ms';
COMMENT ON COLUMN bench.standbys.replay_lag_ms IS 'Milliseconds until the standby confirmed the replay, as write_lag_ms';
COMMENT ON COLUMN bench.standbys.replay_lag_bytes IS 'Bytes of WAL sent to the standby and not yet replayed there';

CREATE TABLE bench.transactions (
    run_id      bigint NOT NULL,
    node        int NOT NULL DEFAULT 0,
    client      int NOT NULL,
    transaction bigint NOT NULL,
    script      int NOT NULL,
    started     timestamptz NOT NULL,
    lag_ms      double precision,
    latency_ms  double precision,
    retries     int NOT NULL,
    outcome     text NOT NULL,
    PRIMARY KEY (run_id, node, client, transaction)
);
COMMENT ON TABLE bench.transactions IS 'Log of single transactions: one row per measured or skipped transaction, or for a share of them, of runs with a log_rate';
COMMENT ON COLUMN bench.transactions.run_id IS 'The run';
COMMENT ON COLUMN bench.transactions.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.transactions.client IS 'Index of the client on its node, starting at 0';
COMMENT ON COLUMN bench.transactions.transaction IS 'Number of the transaction among the client''s measured and skipped ones, logged or not, starting at 1';
COMMENT ON COLUMN bench.transactions.script IS 'Index of the script in a mix, starting at 0';
COMMENT ON COLUMN bench.transactions.started IS 'When the transaction started or was skipped';
COMMENT ON COLUMN bench.transactions.lag_ms IS 'With a rate: milliseconds from when the transaction was due until it started or was skipped';
COMMENT ON COLUMN bench.transactions.latency_ms IS 'Milliseconds from the start of the transaction, or with a rate from when it was due, until its end, including retries; NULL if it was skipped';
COMMENT ON COLUMN bench.transactions.retries IS 'Tries beyond the first, after serialization failures and deadlocks';
COMMENT ON COLUMN bench.transactions.outcome IS 'processed; left open: processed, but the script ended within a block, which ended the client; failed: given up at a serialization failure or deadlock; aborted: another error ended the client; skipped; unknown: its connection was lost when it may have been committed';
CREATE TABLE bench.feeders (
    workload text NOT NULL,
    prefix   text NOT NULL,
    query    text NOT NULL,
    "order"  text NOT NULL,
    once     boolean NOT NULL,
    max_rows int NOT NULL,
    PRIMARY KEY (workload, prefix)
);
COMMENT ON TABLE bench.feeders IS 'Feeders of workloads: queries whose rows become variables of the script, one row per transaction. Use bench.add_feeder and bench.drop_feeder to change them.';
COMMENT ON COLUMN bench.feeders.workload IS 'Name of the workload';
COMMENT ON COLUMN bench.feeders.prefix IS 'Put before each column''s name to form the variable''s';
COMMENT ON COLUMN bench.feeders.query IS 'SELECT that returns the rows; it runs as the role that runs the workload';
COMMENT ON COLUMN bench.feeders."order" IS 'Which row a transaction takes: random, sequence (one after the other, over all clients) or weighted (by column weight)';
COMMENT ON COLUMN bench.feeders.once IS 'With sequence: the run ends when each row has been taken';
COMMENT ON COLUMN bench.feeders.max_rows IS 'Rows kept at most: of more, a random choice of this size; with sequence, more are an error';

GRANT SELECT ON bench.transactions, bench.standbys, bench.feeders TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('bench.transactions', '');
SELECT pg_catalog.pg_extension_config_dump('bench.standbys', '');
SELECT pg_catalog.pg_extension_config_dump('bench.feeders', '');

-- Functions that are new.

CREATE FUNCTION bench.delete_run(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'delete_run_wrapper';
COMMENT ON FUNCTION bench.delete_run IS
'Deletes a run with all its results. Returns false if another session has just deleted it. Requires the privileges of the run''s role. Active runs, and runs of active sweeps, cannot be deleted: stop them first with bench.stop or bench.stop_sweep. Deleting the last run of a sweep deletes the sweep.';
REVOKE ALL ON FUNCTION bench.delete_run FROM PUBLIC;

CREATE FUNCTION bench.compare_report(baseline bigint[], candidate bigint[], format text DEFAULT 'text', margin double precision DEFAULT 0.02,
                                     paired boolean DEFAULT false)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'compare_report_wrapper';
COMMENT ON FUNCTION bench.compare_report IS
'Returns a report of two sets of completed runs in a format of bench.report: the verdict of bench.compare on TPS in one sentence, ratios with their intervals, waits, plans, settings and machines that differ, and plots of both sides'' TPS over time and latencies. paired: compares within pairs, as bench.ab does; the runs of a pair are at the same place in both arrays.';

CREATE FUNCTION bench.help(name text DEFAULT NULL)
    RETURNS SETOF text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'help_wrapper';
COMMENT ON FUNCTION bench.help IS
'Lists the functions of schema bench by group, one sentence each; with a name, shows one function with its arguments and an example.';

CREATE FUNCTION bench_internal.forget_runs()
    RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'forget_runs_wrapper';
COMMENT ON FUNCTION bench_internal.forget_runs IS
'Trigger function of bench.run_log: deletes a run''s results with its row, with the privileges of the extension''s owner. Active runs cannot be deleted.';
REVOKE ALL ON FUNCTION bench_internal.forget_runs FROM PUBLIC;

CREATE FUNCTION bench_internal.as_bigint(value numeric)
    RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN value > 9223372036854775807 THEN 9223372036854775807 WHEN value < -9223372036854775808 THEN -9223372036854775808
                ELSE value END::bigint;
COMMENT ON FUNCTION bench_internal.as_bigint IS 'Converts a sum to bigint, limited to its range.';

CREATE FUNCTION bench_internal.as_int(value numeric)
    RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN value > 2147483647 THEN 2147483647 WHEN value < -2147483648 THEN -2147483648 ELSE value END::int;
COMMENT ON FUNCTION bench_internal.as_int IS 'Converts a sum to int, limited to its range.';

CREATE FUNCTION bench_internal.figure(value double precision)
    RETURNS double precision IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN abs(value) < 1e-75 THEN 0 WHEN abs(value) <= 1e75 THEN value END;
COMMENT ON FUNCTION bench_internal.figure IS
'Limits a number to magnitudes that can be squared, multiplied by a count, divided and added without overflow or underflow; NULL for NaN, infinity and larger magnitudes.';

CREATE FUNCTION bench_internal.json_figure(value jsonb)
    RETURNS double precision IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN jsonb_typeof(value) = 'number' THEN
               CASE WHEN abs(value::numeric) < 1e-75 THEN 0 WHEN abs(value::numeric) <= 1e75 THEN value::double precision END END;
COMMENT ON FUNCTION bench_internal.json_figure IS 'Applies bench_internal.figure to a JSON value; NULL if it is not a number.';

CREATE FUNCTION bench_internal.prewarm(relation oid)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prewarm_table_wrapper';
COMMENT ON FUNCTION bench_internal.prewarm IS
'Reads a table, its TOAST table and the indexes of both into shared buffers and returns the number of blocks read; 0 for a partitioned table, which has no blocks. Requires SELECT on the table. For sweeps with before => ''prewarm''.';

CREATE FUNCTION bench_internal.check_extension(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_extension_wrapper';
COMMENT ON FUNCTION bench_internal.check_extension IS
'Raises 42501 if a role could replace functions of an extension: it owns the extension, its schema or an object in that schema, or may create objects there. Superusers are trusted, and so is the calling role unless SET ROLE has changed it.';

CREATE FUNCTION bench.add_feeder(workload text, query text, prefix text DEFAULT '', "order" text DEFAULT 'random', once boolean DEFAULT false, max_rows int DEFAULT 100000)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'add_feeder_wrapper';
COMMENT ON FUNCTION bench.add_feeder IS
'Gives a workload of your own a feeder, or replaces its feeder of this prefix: a SELECT whose columns become variables of the script, named prefix and column; each transaction takes one row. Before a run the rows are read once, as the role that runs the workload. order: random, sequence (each row once over all clients, then from the beginning) or weighted (as often as column weight says). once: with sequence, the run ends when each row has been taken. max_rows: rows to keep at most; of more, a random choice of this size is kept.';

CREATE FUNCTION bench.drop_feeder(workload text, prefix text DEFAULT '')
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_feeder_wrapper';
COMMENT ON FUNCTION bench.drop_feeder IS 'Removes the feeder of a prefix from a workload.';

REVOKE ALL ON FUNCTION bench.add_feeder, bench.drop_feeder FROM PUBLIC;

-- Functions with another body.

CREATE OR REPLACE FUNCTION bench_internal.is_visible(role text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'is_visible_wrapper';
COMMENT ON FUNCTION bench_internal.is_visible IS 'True if the current role may see runs, sweeps and loads of this role: it has the role''s privileges or those of pg_read_all_stats, or is a superuser. Only the latter two see runs of a dropped role.';

CREATE OR REPLACE FUNCTION bench_internal.tap(passed boolean, description text, remark text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pgtap');
    verdict text;
    remarks text;
BEGIN
    IF home IS NULL THEN
        RAISE object_not_in_prerequisite_state
            USING MESSAGE = 'extension "pgtap" is not installed', HINT = 'Run CREATE EXTENSION pgtap.';
    END IF;
    PERFORM bench_internal.check_extension('pgtap');
    -- pgTAP's functions call each other by their bare names, and keep their counts in temporary tables.
    PERFORM set_config('search_path', format('pg_catalog, %I, pg_temp', home), true);
    EXECUTE format('SELECT %I.ok($1, $2)', home) INTO verdict USING passed, description;
    EXECUTE format('SELECT %I.diag($1)', home) INTO remarks USING remark;
    RETURN concat_ws(E'\n', verdict, remarks);
END $$;
COMMENT ON FUNCTION bench_internal.tap IS
'Returns the TAP lines of pgTAP''s ok(), and of diag() for a remark, from the schema of extension pgtap; raises 42501 if a role that the caller cannot trust could have replaced them. For the assertions.';

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
        CASE WHEN judged = 0 THEN format('run %s has no counters to compare with the server''s', run_id) END,
        wrong), '');
    RETURN bench_internal.tap(wrong IS NULL, coalesce(description, format('run %s: audit', run_id)),
                     coalesce(wrong, CASE WHEN of_tables = 0 THEN format('no counter of a table was judged: %s', reasons) END));
END $$;
COMMENT ON FUNCTION bench.audit_ok IS
'pgTAP assertion: the run completed, and every counter that bench.audit judges equals the server''s. Fails if no counter was judged. If no counter of a table was judged, it passes with a diagnostic that says why.';

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
                  HINT = 'tolerance is a fraction: 0.05 allows 5 %.';
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
    -- A side without transactions has no interval, and needs none.
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
'Finds runs of a workload at which the results changed their level: E-divisive change points in the last 1000 runs of each series of bench.history whose tags include these. metric: tps, latency_avg_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms or server_cpu_us. margin: smallest change to report, as a fraction; a level needs at least three runs that show it. run_id: first run of the new level. before, after: mean levels. change: ratio of their geometric means minus 1, with its 95 % interval (NULL if a run has no value). p: significance.';
$create$, 'bench.change_points(text, text, jsonb, double precision)');

-- Views: columns are added at the end, so that grants and what depends on them stay.

CREATE OR REPLACE VIEW bench.runs WITH (security_barrier) AS
SELECT run_id, sweep_id, workload, fixture, fixture_rows, fixture_options, script, clients, secs, transactions, warmup, rate, latency_limit, max_tries, seed,
       driver, query_mode, results, nodes, variables, settings, system, sample_interval, tags,
       bench_internal.status_of(status, segment, run_id) AS status, started_at, finished_at, role, error, horizon_held,
       server_version, extension_version, environment, origin, part_of, before, log_rate, logged, log_lost, target, jobs, reconnect,
       on_disconnect, warmup_took, feeders
FROM bench.run_log
WHERE bench_internal.is_visible(role);
COMMENT ON COLUMN bench.runs.before IS 'Actions before the run, separated by commas, or none';
COMMENT ON COLUMN bench.runs.log_rate IS 'Share of the transactions to log in bench.transactions';
COMMENT ON COLUMN bench.runs.logged IS 'Transactions logged in bench.transactions; NULL without a log_rate';
COMMENT ON COLUMN bench.runs.log_lost IS 'Transactions that were to be logged but ended faster than they could be written';
COMMENT ON COLUMN bench.runs.target IS 'With the wire driver: foreign server that the connections went to; NULL: this server and database';
COMMENT ON COLUMN bench.runs.jobs IS 'With the wire driver: background workers that shared the connections';
COMMENT ON COLUMN bench.runs.reconnect IS 'With the wire driver: true if each transaction had a connection of its own';
COMMENT ON COLUMN bench.runs.on_disconnect IS 'With the wire driver: end: a client ended when its connection was lost; reconnect: it connected again';
COMMENT ON COLUMN bench.runs.warmup_took IS 'Seconds that the warm-up took; with warmup NULL, 300 if throughput was not steady by then. NULL if nothing was run, and for runs before 0.2.0';
COMMENT ON COLUMN bench.runs.feeders IS 'Feeders of its workloads: workload, prefix, query, order, once, max_rows, and rows, the number of rows kept (null if other nodes read them); NULL: none';

CREATE OR REPLACE VIEW bench.errors WITH (security_barrier) AS
SELECT e.run_id, e.node, e.sqlstate, e.message, e.detail, e.count, e.retried, e.failed, e.first_at, e.context
FROM bench.error_log e JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON COLUMN bench.errors.context IS 'CONTEXT of the first such error: the functions and statements in which it happened';

CREATE OR REPLACE VIEW bench.scripts WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.workload, s.weight, s.fixture, s.transactions,
       s.transactions / nullif((SELECT sum(bench_internal.figure(x.secs) ORDER BY x.elapsed) FROM bench.samples x WHERE x.run_id = s.run_id AND x.node = s.node), 0) AS tps,
       s.failed, s.retried, s.skipped, s.late, s.latency_avg_ms, s.latency_stddev_ms, s.latency_p50_ms, s.latency_p95_ms,
       s.latency_p99_ms, s.latency_max_ms, s.aborted
FROM bench.script_log s JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);

CREATE OR REPLACE VIEW bench.statements WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.command, s.line, s.statement, s.count, s.failed, s.retried, s.latency_avg_ms,
       s.latency_p95_ms, s.plan, s.generic_plans, s.custom_plans, s.plan_changes, s.workers_planned, s.workers_launched,
       s.rows, s.writes, s.empty_writes
FROM bench.statement_log s JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON COLUMN bench.statements.rows IS 'Rows returned, inserted, updated, deleted or merged, in all phases; NULL for meta commands and runs before 0.2.0';
COMMENT ON COLUMN bench.statements.writes IS 'Executions of INSERT, UPDATE, DELETE or MERGE, in all phases; NULL if there was none';
COMMENT ON COLUMN bench.statements.empty_writes IS 'Number of writes that affected no row';

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
       bench_internal.as_bigint(sum(x.disk_written_bytes)) AS disk_written_bytes, sum(bench_internal.figure(x.throttled_secs)) AS throttled_secs,
       bench_internal.as_bigint(sum(x.aborted)) AS aborted,
       max(bench_internal.figure(x.replay_lag_ms)) AS replay_lag_ms, max(x.replay_lag_bytes) AS replay_lag_bytes
FROM (SELECT s.*, row_number() OVER (PARTITION BY s.run_id, s.node ORDER BY s.elapsed) AS place
      FROM bench.%1$s s WHERE s.run_id IN (SELECT r.run_id FROM bench.runs r)) x
GROUP BY x.run_id, x.place
$view$, name);
        EXECUTE format('COMMENT ON VIEW bench.total_%1$s IS %2$L', name,
            'bench.' || name || ' of all nodes together: one row per run and interval. Counts are added up, shares of processors are means of the nodes, and percentiles are NULL where there are several: those of the parts do not tell those of the whole.');
        EXECUTE format('COMMENT ON COLUMN bench.total_%s.nodes IS %L', name, 'Number of nodes with a sample of this interval');
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
       s.skipped, s.late, r.rate, r.latency_limit, coalesce(r.lag_avg_ms, s.lag_avg_ms) AS lag_avg_ms, r.lag_max_ms, r.backlog, s.aborted,
       r.server_cpu_us, r.connect_avg_ms, r.connect_p50_ms, r.connect_p95_ms, r.connect_p99_ms, r.connect_max_ms, r.unknown,
       1e6 * bench_internal.json_figure(r.environment -> 'driver_cpu_secs') / nullif(s.transactions, 0) AS driver_cpu_us,
       (SELECT sum(l.transactions) FROM bench.script_log l
        WHERE l.run_id = r.run_id AND l.workload IN ('orders/new_order', 'orders_functions/new_order', 'orders_keyed/new_order'))::float8 * 60 / nullif(bench_internal.figure(s.secs), 0) AS nopm
FROM bench.run_log r
LEFT JOIN LATERAL (
    SELECT sum(x.secs) AS secs, bench_internal.as_bigint(sum(x.transactions)) AS transactions, bench_internal.as_bigint(sum(x.failed)) AS failed,
           bench_internal.as_bigint(sum(x.retried)) AS retried, bench_internal.as_bigint(sum(x.aborted)) AS aborted,
           -- the sum of the nodes'
           (SELECT sum(n.tps ORDER BY n.node) FROM (SELECT y.node, sum(y.transactions) / nullif(sum(bench_internal.figure(y.secs)), 0) AS tps
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

CREATE OR REPLACE VIEW bench.summary WITH (security_barrier) AS
SELECT run_id, workload, clients, driver, results, bench_internal.status_of(status, segment, run_id) AS status, started_at,
       secs, transactions, failed, retried, tps, tps_avg, tps_min, tps_max, tps_stddev,
       latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_p999_ms, latency_max_ms,
       skipped, late, lag_avg_ms, lag_max_ms, backlog, aborted, server_cpu_us,
       connect_avg_ms, connect_p50_ms, connect_p95_ms, connect_p99_ms, connect_max_ms, unknown, driver_cpu_us, nopm
FROM bench.summary_of_all
WHERE bench_internal.is_visible(role);

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
       n.prepared, n.connections_opened, n.connections_reused, n.prepared_left, n.settings, s.aborted,
       coalesce(n.server_cpu_us, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.server_cpu_us END) AS server_cpu_us,
       n.machine,
       coalesce(n.clients_stuck, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.clients_stuck END) AS clients_stuck
FROM bench.run_log r
CROSS JOIN LATERAL (
    SELECT l.node FROM bench.node_log l WHERE l.run_id = r.run_id
    UNION ALL
    SELECT 0 WHERE NOT EXISTS (SELECT FROM bench.node_log l WHERE l.run_id = r.run_id) AND r.nodes = 'local'
) k
LEFT JOIN bench.node_log n ON n.run_id = r.run_id AND n.node = k.node
LEFT JOIN LATERAL (
    SELECT sum(bench_internal.figure(x.secs)) AS secs, bench_internal.as_bigint(sum(x.transactions)) AS transactions, bench_internal.as_bigint(sum(x.failed)) AS failed, bench_internal.as_bigint(sum(x.retried)) AS retried, bench_internal.as_bigint(sum(x.aborted)) AS aborted,
           sum(bench_internal.figure(x.latency_avg_ms) * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms, max(bench_internal.figure(x.latency_max_ms)) AS latency_max_ms,
           sum(bench_internal.figure(x.cpu_user) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_user) IS NOT NULL), 0) AS cpu_user,
           sum(bench_internal.figure(x.cpu_system) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_system) IS NOT NULL), 0) AS cpu_system,
           sum(bench_internal.figure(x.cpu_iowait) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_iowait) IS NOT NULL), 0) AS cpu_iowait,
           sum(bench_internal.figure(x.cpu_steal) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_steal) IS NOT NULL), 0) AS cpu_steal,
           sum(bench_internal.figure(x.cpu_idle) * bench_internal.figure(x.secs)) / nullif(sum(bench_internal.figure(x.secs)) FILTER (WHERE bench_internal.figure(x.cpu_idle) IS NOT NULL), 0) AS cpu_idle
    FROM (SELECT * FROM bench.samples y WHERE y.run_id = r.run_id AND y.node = k.node ORDER BY y.elapsed) x
) s ON true
WHERE bench_internal.is_visible(r.role);

CREATE OR REPLACE VIEW bench.audits WITH (security_barrier) AS
SELECT a.run_id, a.node, a.counter, a.harness, a.server, bench_internal.as_bigint(a.harness::numeric - a.server) AS difference,
       CASE WHEN a.judged AND (o.run_id IS NULL OR a.counter = 'samples') THEN a.harness = a.server END AS ok,
       CASE WHEN a.judged AND o.run_id IS NOT NULL AND a.counter <> 'samples'
            THEN format('run %s worked on the same fixture, or ran the same workload, at the same time', o.beside) ELSE a.reason END AS reason
FROM bench.audit_log a
JOIN bench.run_log r USING (run_id)
-- Runs that another run disturbed, each once; the index run_log_counted finds them.
LEFT JOIN (
    SELECT b.run_id, min(x.run_id) AS beside
    FROM bench.run_log b JOIN bench.run_log x ON
        -- the export of another server's run says which of its runs were disturbed
        b.started_at IS NOT NULL AND b.origin IS NULL AND x.started_at IS NOT NULL AND x.origin IS NULL
        AND tstzrange(least(b.counted_from, b.started_at), CASE WHEN b.finished_at IS NOT NULL THEN greatest(b.finished_at, least(b.counted_from, b.started_at)) END)
         && tstzrange(least(x.counted_from, x.started_at), CASE WHEN x.finished_at IS NOT NULL THEN greatest(x.finished_at, least(x.counted_from, x.started_at)) END)
        AND x.run_id <> b.run_id
        -- a run on several nodes and its part on this node count as one run
        AND NOT (x.nodes <> 'local' AND b.nodes <> 'local' AND b.part_of ->> 'run_id' IS NOT DISTINCT FROM x.run_id::text)
        AND NOT (x.nodes <> 'local' AND b.nodes <> 'local' AND x.part_of ->> 'run_id' IS NOT DISTINCT FROM b.run_id::text)
        AND (string_to_array(x.fixture, ',') && string_to_array(b.fixture, ',')
             -- names of a mix, without their weights
             OR string_to_array(rtrim(regexp_replace(x.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ',')
                && string_to_array(rtrim(regexp_replace(b.workload || ',', '\s*(@\s*\d+\s*)?,\s*', ',', 'g'), ','), ','))
        -- The clients of a crashed run may have worked for a while after its last sign of life.
        AND (x.finished_at IS NOT NULL OR bench_internal.status_of(x.status, x.segment, x.run_id) <> 'crashed'
             OR extract(epoch FROM least(b.counted_from, b.started_at)) < 2 * coalesce(bench_internal.figure(x.sample_interval), 0)::numeric + 60
                + extract(epoch FROM greatest(x.started_at, (SELECT max(s.at) FROM bench.samples s WHERE s.run_id = x.run_id),
                                              (SELECT max(w.at) FROM bench.warmup_samples w WHERE w.run_id = x.run_id))))
    GROUP BY b.run_id
) o ON o.run_id = a.run_id
WHERE bench_internal.is_visible(r.role);

CREATE OR REPLACE VIEW bench.progress WITH (security_barrier) AS
SELECT r.run_id, p.phase, p.elapsed, p.remaining, p.tps, p.latency_avg_ms, p.transactions, p.clients,
       NULL::text AS fixture, NULL::bigint AS rows, NULL::double precision AS rows_per_sec, r.workload
FROM bench.run_log r, LATERAL bench_internal.run_progress(r.segment, r.run_id) p
WHERE r.status IN ('starting', 'running') AND bench_internal.is_visible(r.role)
UNION ALL
SELECT NULL, p.phase, p.elapsed, p.remaining, NULL, NULL, NULL, p.loaders, l.fixture, p.rows, p.rows_per_sec, NULL
FROM bench.load_log l, LATERAL bench_internal.load_progress(l.segment, l.load_id) p
WHERE bench_internal.is_visible(l.role);
ALTER TABLE bench.sweep_log ADD COLUMN answers jsonb;
COMMENT ON COLUMN bench.sweep_log.answers IS 'Results of a search for a capacity, one element per objective; NULL until the search has ended. Read bench.capacities instead.';
ALTER TABLE bench.sweep_run_log ADD COLUMN rate double precision;
ALTER TABLE bench.sweep_run_log ADD COLUMN purpose text CHECK (purpose IN ('estimate', 'trial', 'overload', 'return', 'operating'));
ALTER TABLE bench.sweep_run_log ADD COLUMN outcome jsonb;

CREATE OR REPLACE VIEW bench.sweeps WITH (security_barrier) AS
SELECT s.sweep_id, s.options ->> 'workload' AS workload,
       ARRAY(SELECT bench_internal.as_int(bench_internal.json_figure(c.value)::numeric) FROM jsonb_array_elements(CASE WHEN jsonb_typeof(s.options -> 'clients') = 'array' THEN s.options -> 'clients' END) WITH ORDINALITY AS c (value, place) ORDER BY c.place) AS clients,
       bench_internal.json_figure(s.options -> 'secs') AS secs, CASE WHEN jsonb_exists(s.options, 'until') THEN n.rounds ELSE bench_internal.as_int(bench_internal.json_figure(s.options -> 'rounds')::numeric) END AS rounds, s.options -> 'variants' AS variants,
       bench_internal.json_figure(s.options -> 'warmup_secs') AS warmup, bench_internal.json_figure(s.options -> 'rate') AS rate,
       s.options -> 'variables' AS variables, s.options -> 'settings' AS settings,
       ARRAY(SELECT b.value FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(s.options -> 'before') = 'array' THEN s.options -> 'before' END) WITH ORDINALITY AS b (value, place) ORDER BY b.place) AS before,
       CASE WHEN jsonb_typeof(s.options -> 'seed') = 'number' THEN bench_internal.as_bigint((s.options -> 'seed')::numeric) END AS seed, s.options ->> 'query_mode' AS query_mode, s.options ->> 'nodes' AS nodes, s.options -> 'tags' AS tags,
       bench_internal.sweep_status_of(s.status, s.segment, s.sweep_id) AS status, n.runs, n.completed, s.started_at, s.resumed_at, s.finished_at,
       -- The remaining runs take as long, each, as those since the sweep began or was resumed.
       CASE WHEN n.since > 0 AND isfinite(coalesce(s.resumed_at, s.started_at)) THEN extract(epoch FROM clock_timestamp() - coalesce(s.resumed_at, s.started_at)) / n.since * (p.total - p.done)
       END::double precision AS remaining,
       s.role, s.error, s.server_version, s.extension_version, coalesce(s.options -> 'run', '{}') AS run, s.options -> 'search' AS search
FROM bench.sweep_log s
CROSS JOIN LATERAL (
    SELECT count(*)::int AS runs, (count(*) FILTER (WHERE r.status = 'completed' AND l.error IS NULL))::int AS completed,
           count(*) FILTER (WHERE r.finished_at >= coalesce(s.resumed_at, s.started_at)) AS since, max(l.round) AS rounds
    FROM bench.sweep_run_log l LEFT JOIN bench.run_log r USING (run_id) WHERE l.sweep_id = s.sweep_id
) n
LEFT JOIN LATERAL bench_internal.sweep_progress(s.segment, s.sweep_id) p ON s.status = 'running'
WHERE bench_internal.is_visible(s.role);
COMMENT ON VIEW bench.sweeps IS 'One row per sweep: its arguments, status and progress. Visible to roles with the privileges of the sweep''s role or of pg_read_all_stats.';
COMMENT ON COLUMN bench.sweeps.run IS 'driver, target, jobs and reconnect of all runs, as in bench.runs, where they are not the defaults';
COMMENT ON COLUMN bench.sweeps.search IS 'For a search by bench.capacity: latency_limits_ms, percentile, trials, precision, max_failed and rounds; NULL for other sweeps';

CREATE OR REPLACE VIEW bench.sweep_runs WITH (security_barrier) AS
SELECT l.sweep_id, l.place, l.round, l.variant, l.clients, l.run_id,
       CASE WHEN r.run_id IS NOT NULL THEN bench_internal.status_of(r.status, r.segment, r.run_id) END AS status,
       coalesce(l.error, r.error ->> 'message') AS error,
       u.secs, u.transactions, u.failed, u.tps, u.tps_min, u.tps_max, u.latency_avg_ms, u.latency_p50_ms, u.latency_p95_ms,
       u.latency_p99_ms, (SELECT avg(bench_internal.figure(x.cpu_idle) ORDER BY x.node, x.elapsed)
        FROM bench.samples x WHERE x.run_id = l.run_id) AS cpu_idle,
       u.server_cpu_us, u.connect_avg_ms,
       CASE WHEN l.purpose IS NULL THEN bench_internal.json_figure(s.options -> 'rate') ELSE l.rate END AS rate, l.purpose, l.outcome, u.driver_cpu_us, u.nopm
FROM bench.sweep_run_log l
JOIN bench.sweep_log s USING (sweep_id)
LEFT JOIN bench.run_log r ON r.run_id = l.run_id
LEFT JOIN bench.summary u ON u.run_id = l.run_id
WHERE bench_internal.is_visible(s.role);
COMMENT ON COLUMN bench.sweep_runs.rate IS 'Target transactions per second; NULL: each client starts a transaction when its last one ends';
COMMENT ON COLUMN bench.sweep_runs.purpose IS 'In a search by bench.capacity: estimate (without a rate, for the first guess), trial, overload, return (does a rate that passed still pass after an overload) or operating (70 % of the answer, over a checkpoint if the role may issue one)';
COMMENT ON COLUMN bench.sweep_runs.outcome IS 'In a search by bench.capacity: tps; latency_ms at the percentile; due, done and failed transactions; lag_growth in seconds per second, null: none; service_ms, the mean time from start to end; busy, the share of the clients'' time within transactions; cpu_idle; checkpoints; ended_early, true if errors ended clients';
COMMENT ON COLUMN bench.sweep_runs.nopm IS 'New orders per minute, as in bench.summary';

-- In the order of the rounds: sums of floats depend on their order, and one that a plan chooses would let two readings
-- of the view differ in the last digit.
CREATE OR REPLACE VIEW bench.sweep_results AS
SELECT sweep_id, clients, variant, count(*)::int AS rounds,
       avg(tps ORDER BY round) AS tps_avg, min(tps) AS tps_min, max(tps) AS tps_max,
       stddev_samp(tps ORDER BY round) AS tps_stddev,
       avg(bench_internal.figure(latency_avg_ms) ORDER BY round) AS latency_avg_ms,
       avg(bench_internal.figure(latency_p50_ms) ORDER BY round) AS latency_p50_ms,
       avg(bench_internal.figure(latency_p95_ms) ORDER BY round) AS latency_p95_ms,
       avg(bench_internal.figure(latency_p99_ms) ORDER BY round) AS latency_p99_ms,
       bench_internal.as_bigint(sum(failed)) AS failed, avg(cpu_idle ORDER BY round) AS cpu_idle,
       array_agg(run_id ORDER BY round) AS run_ids,
       avg(bench_internal.figure(server_cpu_us) ORDER BY round) AS server_cpu_us,
       avg(bench_internal.figure(connect_avg_ms) ORDER BY round) AS connect_avg_ms, rate,
       avg(bench_internal.figure(driver_cpu_us) ORDER BY round) AS driver_cpu_us,
       avg(bench_internal.figure(nopm) ORDER BY round) AS nopm
FROM bench.sweep_runs
WHERE status = 'completed'
GROUP BY sweep_id, clients, variant, rate;
COMMENT ON COLUMN bench.sweep_results.rate IS 'Target transactions per second; NULL: each client starts a transaction when its last one ends';
COMMENT ON COLUMN bench.sweep_results.driver_cpu_us IS 'With driver => wire: mean of the runs'' processor times of their jobs per committed transaction in microseconds';
COMMENT ON COLUMN bench.sweep_results.nopm IS 'Mean of the runs'' new orders per minute, as in bench.summary';

CREATE VIEW bench.capacities WITH (security_barrier) AS
SELECT s.sweep_id, s.options ->> 'workload' AS workload, bench_internal.json_figure(a.answer -> 'latency_limit_ms') AS latency_limit,
       bench_internal.json_figure(a.answer -> 'percentile') AS percentile, bench_internal.json_figure(a.answer -> 'rate') AS rate,
       bench_internal.json_figure(a.answer -> 'rate_low') AS rate_low, bench_internal.json_figure(a.answer -> 'rate_high') AS rate_high,
       bench_internal.json_figure(a.answer -> 'operating_rate') AS operating_rate, a.answer ->> 'limited_by' AS limited_by,
       CASE WHEN jsonb_typeof(a.answer -> 'hysteresis') = 'boolean' THEN (a.answer -> 'hysteresis')::boolean END AS hysteresis,
       bench_internal.as_int(bench_internal.json_figure(a.answer -> 'trials')::numeric) AS trials,
       ARRAY(SELECT l.run_id FROM bench.sweep_run_log l WHERE l.sweep_id = s.sweep_id AND a.answer -> 'failing' @> to_jsonb(l.place) ORDER BY l.place) AS failing_runs
FROM bench.sweep_log s
CROSS JOIN LATERAL jsonb_array_elements(CASE WHEN jsonb_typeof(s.answers) = 'array' THEN s.answers END) WITH ORDINALITY AS a (answer, place)
WHERE bench_internal.is_visible(s.role);
COMMENT ON VIEW bench.capacities IS 'Results of the searches by bench.capacity that have ended: one row per objective';
COMMENT ON COLUMN bench.capacities.sweep_id IS 'The search, as a sweep';
COMMENT ON COLUMN bench.capacities.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.capacities.latency_limit IS 'The objective: milliseconds allowed at the percentile; NULL: throughput alone';
COMMENT ON COLUMN bench.capacities.percentile IS 'Percentile of the latency, between 0 and 1';
COMMENT ON COLUMN bench.capacities.rate IS 'Highest rate sustained, in transactions per second; with several rounds their geometric mean; NULL: no rate tried passed, in one of the rounds at least';
COMMENT ON COLUMN bench.capacities.rate_low IS 'With one round rate itself; with several the lower bound of the 95 % interval of rate';
COMMENT ON COLUMN bench.capacities.rate_high IS 'With one round the lowest rate that failed; with several the upper bound of the 95 % interval of rate';
COMMENT ON COLUMN bench.capacities.operating_rate IS '70 % of rate, if a longer run sustained it, over a checkpoint if the role may issue one; otherwise NULL';
COMMENT ON COLUMN bench.capacities.limited_by IS 'What failed first: latency, throughput (transactions not done, or ever later), errors, or clients (all clients were busy while the server was not: more clients could do more); NULL: no rate failed';
COMMENT ON COLUMN bench.capacities.hysteresis IS 'True if, after an overload, a rate of the last round no longer passed that had passed before; NULL: not tried';
COMMENT ON COLUMN bench.capacities.trials IS 'Number of trials of the search, all rounds';
COMMENT ON COLUMN bench.capacities.failing_runs IS 'Failed trials at the lowest rate that failed, of all rounds: their reports say what was saturated';
GRANT SELECT ON bench.capacities TO PUBLIC;

CREATE OR REPLACE VIEW bench.history AS
SELECT r.workload,
       jsonb_strip_nulls(jsonb_build_object('clients', r.clients, 'secs', r.secs, 'transactions', r.transactions, 'warmup', r.warmup,
           'rate', r.rate, 'latency_limit', r.latency_limit, 'max_tries', r.max_tries, 'driver', r.driver, 'query_mode', r.query_mode,
           'target', r.target, 'jobs', r.jobs, 'reconnect', r.reconnect, 'on_disconnect', r.on_disconnect, 'results', r.results, 'nodes', r.nodes,
           'number_of_nodes', CASE WHEN r.nodes <> 'local' THEN (SELECT count(*) FROM bench.nodes n WHERE n.run_id = r.run_id AND n.clients > 0) END, 'variables', r.variables, 'settings', r.settings, 'fixture', r.fixture,
           'fixture_rows', r.fixture_rows, 'fixture_options', r.fixture_options, 'system', nullif(r.system, '{}'), 'role', r.role,
           'origin', CASE WHEN r.origin IS NOT NULL THEN coalesce(r.origin ->> 'system_identifier', 'unknown') END, 'script',
           md5(r.script || coalesce(jsonb_path_query_array(r.feeders, '$[*].keyvalue() ? (@.key != "rows").value', '{}', true)::text, '')))) AS options,
       r.tags, r.run_id, r.started_at, s.tps, s.latency_avg_ms, s.latency_p50_ms, s.latency_p95_ms, s.latency_p99_ms,
       s.server_cpu_us
FROM bench.runs r JOIN bench.summary s USING (run_id)
WHERE r.status = 'completed' AND r.part_of IS NULL;
-- Who sees rows of results.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples,latencies,transactions,standbys}'::text[] LOOP
        EXECUTE format('ALTER TABLE bench.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY visible ON bench.%I FOR SELECT USING (run_id IN (SELECT r.run_id FROM bench.runs r))', name);
        EXECUTE format('COMMENT ON POLICY visible ON bench.%I IS %L', name, 'Shows the rows of runs that bench.runs shows');
    END LOOP;
END $$;

-- What is kept of a run goes with its row: in place of foreign keys, which would break filtered and parallel restores.

CREATE TRIGGER forget_runs AFTER DELETE ON bench.run_log REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_runs ON bench.run_log IS 'Deletes the results of deleted runs';
CREATE TRIGGER forget_all_runs BEFORE TRUNCATE ON bench.run_log
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_all_runs ON bench.run_log IS 'Deletes the results of all runs';

-- A sample's length follows from the run's by default, a script can stand in place of a workload, the state before the run can be
-- chosen, transactions can be logged, and the first error can end the run.

SELECT bench_internal.replace_function('bench.preview(text, integer, integer, bigint, jsonb)', $create$
CREATE FUNCTION bench.preview(script text, transactions int DEFAULT 1, client int DEFAULT 0, seed bigint DEFAULT 0, variables jsonb DEFAULT '{}', workload text DEFAULT NULL)
    RETURNS TABLE (transaction int, command int, line int, output text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'preview_wrapper';
COMMENT ON FUNCTION bench.preview IS
'Shows what a client would send, without sending it: each statement with its values, and the output of debug(). transaction and command count from 1. client and seed determine the random numbers, as in pgbench --random-seed with one thread per client. Variables that \gset and \aset would set are shown as written. workload: use the feeders of this workload, and its script if script is NULL.';
$create$, 'bench.preview(text, integer, integer, bigint, jsonb, text)');

SELECT bench_internal.replace_function('bench.run(text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb)', $create$
CREATE FUNCTION bench.run(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT NULL,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    script          text             DEFAULT NULL,
    before          text             DEFAULT 'none',
    log_rate        double precision DEFAULT 0,
    exit_on_abort   boolean          DEFAULT false,
    target          text             DEFAULT NULL,
    jobs            integer          DEFAULT NULL,
    reconnect       boolean          DEFAULT false,
    on_disconnect   text             DEFAULT 'end')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'run_workload_wrapper';
REVOKE ALL ON FUNCTION bench.run FROM PUBLIC;
$create$, 'bench.run(text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb, text, text, double precision, boolean, text, integer, boolean, text)');

SELECT bench_internal.replace_function('bench.start(text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb)', $create$
CREATE FUNCTION bench.start(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT NULL,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    script          text             DEFAULT NULL,
    before          text             DEFAULT 'none',
    log_rate        double precision DEFAULT 0,
    exit_on_abort   boolean          DEFAULT false,
    target          text             DEFAULT NULL,
    jobs            integer          DEFAULT NULL,
    reconnect       boolean          DEFAULT false,
    on_disconnect   text             DEFAULT 'end')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_workload_wrapper';
REVOKE ALL ON FUNCTION bench.start FROM PUBLIC;
$create$, 'bench.start(text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb, text, text, double precision, boolean, text, integer, boolean, text)');

SELECT bench_internal.replace_function('bench.schedule(text, text, text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb)', $create$
CREATE FUNCTION bench.schedule(
    name            text,
    schedule        text,
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT NULL,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    script          text             DEFAULT NULL,
    before          text             DEFAULT 'none',
    log_rate        double precision DEFAULT 0,
    exit_on_abort   boolean          DEFAULT false,
    target          text             DEFAULT NULL,
    jobs            integer          DEFAULT NULL,
    reconnect       boolean          DEFAULT false,
    on_disconnect   text             DEFAULT 'end')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'schedule_workload_wrapper';
REVOKE ALL ON FUNCTION bench.schedule FROM PUBLIC;
$create$, 'bench.schedule(text, text, text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb, text, text, double precision, boolean, text, integer, boolean, text)');

SELECT bench_internal.replace_function('bench.start_scheduled(text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb)', $create$
CREATE FUNCTION bench.start_scheduled(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT NULL,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    script          text             DEFAULT NULL,
    before          text             DEFAULT 'none',
    log_rate        double precision DEFAULT 0,
    exit_on_abort   boolean          DEFAULT false,
    target          text             DEFAULT NULL,
    jobs            integer          DEFAULT NULL,
    reconnect       boolean          DEFAULT false,
    on_disconnect   text             DEFAULT 'end')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_scheduled_workload_wrapper';
REVOKE ALL ON FUNCTION bench.start_scheduled FROM PUBLIC;
$create$, 'bench.start_scheduled(text, integer, double precision, bigint, double precision, double precision, double precision, integer, bigint, jsonb, jsonb, double precision, text, text, text, text, jsonb, text, text, double precision, boolean, text, integer, boolean, text)');

-- The runs of a sweep can be over connections, without a variant that says so.

SELECT bench_internal.replace_function('bench.sweep(text, integer[], double precision, integer, jsonb, double precision, double precision, jsonb, jsonb, text, bigint, text, text, jsonb)', $create$
CREATE FUNCTION bench.sweep(
    workload        text,
    clients         int[],
    secs            double precision DEFAULT 10,
    rounds          int              DEFAULT 1,
    variants        jsonb            DEFAULT '{}',
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    before          text             DEFAULT 'none',
    seed            bigint           DEFAULT NULL,
    query_mode      text             DEFAULT 'prepared',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    driver          text             DEFAULT 'engine',
    target          text             DEFAULT NULL,
    jobs            int              DEFAULT NULL,
    reconnect       boolean          DEFAULT false)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sweep_workload_wrapper';
REVOKE ALL ON FUNCTION bench.sweep FROM PUBLIC;
$create$, 'bench.sweep(text, integer[], double precision, integer, jsonb, double precision, double precision, jsonb, jsonb, text, bigint, text, text, jsonb, text, text, integer, boolean)');

SELECT bench_internal.replace_function('bench.start_sweep(text, integer[], double precision, integer, jsonb, double precision, double precision, jsonb, jsonb, text, bigint, text, text, jsonb)', $create$
CREATE FUNCTION bench.start_sweep(
    workload        text,
    clients         int[],
    secs            double precision DEFAULT 10,
    rounds          int              DEFAULT 1,
    variants        jsonb            DEFAULT '{}',
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    before          text             DEFAULT 'none',
    seed            bigint           DEFAULT NULL,
    query_mode      text             DEFAULT 'prepared',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    driver          text             DEFAULT 'engine',
    target          text             DEFAULT NULL,
    jobs            int              DEFAULT NULL,
    reconnect       boolean          DEFAULT false)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_sweep_of_workload_wrapper';
REVOKE ALL ON FUNCTION bench.start_sweep FROM PUBLIC;
$create$, 'bench.start_sweep(text, integer[], double precision, integer, jsonb, double precision, double precision, jsonb, jsonb, text, bigint, text, text, jsonb, text, text, integer, boolean)');

-- What would spoil a run.

CREATE FUNCTION bench.preflight(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT NULL,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    script          text             DEFAULT NULL,
    before          text             DEFAULT 'none',
    log_rate        double precision DEFAULT 0,
    exit_on_abort   boolean          DEFAULT false,
    target          text             DEFAULT NULL,
    jobs            int              DEFAULT NULL,
    reconnect       boolean          DEFAULT false,
    on_disconnect   text             DEFAULT 'end')
    RETURNS TABLE (topic text, severity text, finding text, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'preflight_wrapper';
COMMENT ON FUNCTION bench.preflight IS
'Returns what would spoil a run with these arguments if it started now, without starting it or loading anything: other load, checkpoints under way or due, vacuums, locks and dead rows of the fixture''s tables, bloat, old transactions and replication slots, settings without durability, swapping, frequency governors. No rows: nothing was found. Takes a quarter of a second. Fails with the error that the run would fail with before it starts. topic: one word. severity: warning or notice, as in bench.findings. advice: what to do. What the calling role may not see is left out. bench.run tells the certain ones as NOTICEs, and with 10 s or more also what others do.';

REVOKE ALL ON FUNCTION bench.preflight FROM PUBLIC;

-- Documents in parts, and what nodes could not hand over.

CREATE FUNCTION bench_internal.export_part_count(run_ids bigint[])
    RETURNS int VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_part_count_wrapper';
COMMENT ON FUNCTION bench_internal.export_part_count IS
'Returns how many documents bench.export_parts makes of these runs.';

CREATE FUNCTION bench_internal.export_part(run_ids bigint[], part int)
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_part_wrapper';
COMMENT ON FUNCTION bench_internal.export_part IS
'Returns one of the documents that bench.export_parts makes of these runs.';

CREATE FUNCTION bench.export_parts(run_ids bigint[])
    RETURNS SETOF jsonb VOLATILE PARALLEL UNSAFE LANGUAGE sql
    AS 'SELECT bench_internal.export_part($1, n) FROM pg_catalog.generate_series(1, bench_internal.export_part_count($1)) AS n ORDER BY n';
COMMENT ON FUNCTION bench.export_parts IS
'As bench.export, in several documents of about 16 MB each, for runs that are too large for one. bench.import takes them one by one, in any order; as long as some are missing, member parts of column origin of bench.runs shows which are there.';

CREATE FUNCTION bench_internal.part_samples(run_id bigint, after double precision) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'part_samples_wrapper';
COMMENT ON FUNCTION bench_internal.part_samples IS
'Returns the samples of a part with more than so many seconds elapsed, at most 1000, in their order; NULL if there are none. Called by the run''s node while the run goes on.';

CREATE FUNCTION bench_internal.unreached_nodes() RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'unreached_nodes_wrapper';
COMMENT ON FUNCTION bench_internal.unreached_nodes IS
'Tries to connect from this node to every other node of the Citus cluster, as the role that calls, and returns those it did not reach, with the reasons. A run on several nodes asks it of each node before it starts.';

CREATE FUNCTION bench.fetch(run_id bigint) RETURNS bigint
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'fetch_wrapper';
COMMENT ON FUNCTION bench.fetch IS
'Fetches what nodes of a Citus cluster measured of an ended run and still have, because they could not be reached at its end, and returns the number of nodes fetched; a WARNING names each node that still cannot be asked. A run that was incomplete for that reason only is completed then. Only for the run''s role, on the node that the run was started on.';
REVOKE ALL ON FUNCTION bench.fetch FROM PUBLIC;

SELECT bench_internal.replace_function('bench.ab(text, jsonb, jsonb, integer, integer, double precision)', $create$
CREATE FUNCTION bench.ab(workload text, a jsonb, b jsonb, rounds int DEFAULT 10, clients int DEFAULT 1, secs double precision DEFAULT 10,
                         nodes text DEFAULT 'local')
    RETURNS TABLE (metric text, baseline double precision, candidate double precision, ratio double precision, ratio_low double precision,
                   ratio_high double precision, verdict text, advice text, differences jsonb)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'ab_wrapper';
REVOKE ALL ON FUNCTION bench.ab FROM PUBLIC;
$create$, 'bench.ab(text, jsonb, jsonb, integer, integer, double precision, text)');

-- How much equal runs vary.

CREATE FUNCTION bench.calibrate(
    workload        text,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT 10,
    rounds          int              DEFAULT 10,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    before          text             DEFAULT 'none',
    seed            bigint           DEFAULT NULL,
    query_mode      text             DEFAULT 'prepared',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}',
    driver          text             DEFAULT 'engine',
    target          text             DEFAULT NULL,
    jobs            int              DEFAULT NULL,
    reconnect       boolean          DEFAULT false)
    RETURNS TABLE (metric text, mean double precision, cv double precision, cv_low double precision, cv_high double precision,
                   rounds int, detectable double precision, advice text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'calibrate_workload_wrapper';
COMMENT ON FUNCTION bench.calibrate IS
'Runs a workload rounds times in the same way, waits for all runs to end, and returns how much they vary, and so which differences comparisons can show: for each metric of bench.compare one row for 3, 5, 10 and 20 runs per side. mean: over the runs, milliseconds for latencies, microseconds for server_cpu_us. cv: standard deviation between runs / mean, with its 95 % interval. rounds: runs per side of a comparison. detectable: smallest difference, as a fraction, that such a comparison shows in nine of ten cases. advice, in the first row of a metric: runs per side that differences of 1, 2 and 5 % take, whether longer runs or a warm-up would help, and whether the runs drift or depend on each other. Other arguments are as in bench.sweep; the runs are kept as a sweep.';
REVOKE ALL ON FUNCTION bench.calibrate FROM PUBLIC;

-- How much load is sustained.

CREATE FUNCTION bench.capacity(
    workload        text,
    latency_limit   double precision DEFAULT NULL,
    latency_limits  double precision[] DEFAULT NULL,
    percentile      double precision DEFAULT 0.99,
    clients         int              DEFAULT NULL,
    secs            double precision DEFAULT 10,
    trials          int              DEFAULT 3,
    "precision"     double precision DEFAULT 0.05,
    rounds          int              DEFAULT 1,
    max_failed      double precision DEFAULT 0,
    warmup          double precision DEFAULT 0,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    before          text             DEFAULT 'none',
    driver          text             DEFAULT 'engine',
    target          text             DEFAULT NULL,
    nodes           text             DEFAULT 'local',
    query_mode      text             DEFAULT 'prepared',
    seed            bigint           DEFAULT NULL,
    tags            jsonb            DEFAULT '{}',
    jobs            int              DEFAULT NULL,
    reconnect       boolean          DEFAULT false)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'capacity_of_workload_wrapper';
COMMENT ON FUNCTION bench.capacity IS
'Searches for the highest rate of transactions that a server sustains, waits for the search to end, and returns its id as a sweep. Its runs are trials at a rate (an open loop, as rate of bench.run) of secs each. A trial passes if the percentile of the latency is within latency_limit (milliseconds, from when a transaction was due), 99 % of the transactions due were done, the lag behind the schedule did not grow, at most a share of max_failed failed and no error ended a client. A transaction has one try. A rate passes if at least half of its trials pass (at most trials of them). The answer is the highest rate that passes below the lowest one that fails, at most precision apart. latency_limits: several objectives in one search; NULL for both: throughput alone counts. rounds: repeated searches, for an interval. At the end the search makes an overload and looks whether what passed still does, and confirms 70 % of the rate in a longer run, over a checkpoint if the role may issue one. With warmup 0 the first run warms up until throughput is steady (for secs, if these are below 5 or there are several nodes). clients NULL: 8 per processor, within the free background workers (of each node), with driver wire within the free connections. Other arguments are as in bench.sweep. See bench.capacities and bench.sweep_report.';

CREATE FUNCTION bench.start_capacity(
    workload        text,
    latency_limit   double precision DEFAULT NULL,
    latency_limits  double precision[] DEFAULT NULL,
    percentile      double precision DEFAULT 0.99,
    clients         int              DEFAULT NULL,
    secs            double precision DEFAULT 10,
    trials          int              DEFAULT 3,
    "precision"     double precision DEFAULT 0.05,
    rounds          int              DEFAULT 1,
    max_failed      double precision DEFAULT 0,
    warmup          double precision DEFAULT 0,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    before          text             DEFAULT 'none',
    driver          text             DEFAULT 'engine',
    target          text             DEFAULT NULL,
    nodes           text             DEFAULT 'local',
    query_mode      text             DEFAULT 'prepared',
    seed            bigint           DEFAULT NULL,
    tags            jsonb            DEFAULT '{}',
    jobs            int              DEFAULT NULL,
    reconnect       boolean          DEFAULT false)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_capacity_of_workload_wrapper';
COMMENT ON FUNCTION bench.start_capacity IS
'Starts a search with the arguments of bench.capacity and returns its id as a sweep immediately; the search does not depend on the session. See bench.wait_sweep, bench.stop_sweep, bench.resume_sweep and bench.capacities.';

REVOKE ALL ON FUNCTION bench.capacity, bench.start_capacity FROM PUBLIC;

-- Comments.

COMMENT ON FUNCTION bench.load IS
'Loads a fixture with parallel background workers, replacing its previous tables, and returns the number of rows written. rows NULL: the fixture''s small default. jobs NULL: as many as processors and free worker slots allow. Options of all fixtures: schema (default bench_data), unlogged, fillfactor, tablespace, index_tablespace, reloptions (an object of storage parameters), index (after or before: build the primary key after or before the rows). pk: info (md5, short or now), crt_time (timestamp or timestamptz). wide_multi: tables (one per client). tpcb, with the tables of pgbench -i: scale (100000 accounts each), partitions and partition_method (range or hash) of pgbench_accounts, foreign_keys. orders, nine tables derived from TPC-C: warehouses (100000 stocks each), partitions and partition_method of all tables but item by warehouse, foreign_keys. With Citus: shard_count, shard_replication_factor, colocate_with and distribute (pk, events, shards: true, by id, the default of shards; orders: true, by warehouse, with item as a reference table; tpcb: account, accounts and history by account, tellers and branches by their own ids, or branch, all tables by branch and co-located). The workers commit on their own: rolling back the calling transaction does not undo the load. If a load fails, the previous tables stay. Rows are frozen, as by COPY FREEZE: transactions older than the load see them, too.';
COMMENT ON FUNCTION bench.create_fixture IS
'Defines a fixture, or replaces your own of this name. ddl creates its tables with unqualified names, one of them named like the fixture. rows_query is a SELECT that returns that table''s rows with the ids $1 to $2. after_ddl runs after the rows are loaded: create indexes there. rows is the default number of ids for bench.load. The statements run with the privileges of the role that loads the fixture, not of the role that defined it. Built-in fixtures cannot be replaced.';
COMMENT ON FUNCTION bench.drop_fixture IS
'Removes a fixture definition made by bench.create_fixture. Use bench.unload to drop the tables.';
COMMENT ON FUNCTION bench_internal.builtin_fixtures IS
'Definitions of the built-in fixtures, for bench.fixture_definitions.';
COMMENT ON FUNCTION bench.create_workload IS
'Stores a script under a name, or replaces your own of this name. Scripts use pgbench''s language: SQL statements, :variables and meta commands. Built-in workloads cannot be replaced.';
COMMENT ON FUNCTION bench.drop_workload IS
'Removes a workload. Built-in workloads cannot be removed.';
COMMENT ON FUNCTION bench.run IS
'Runs a workload in concurrent sessions of the calling role, waits for the run to end, and returns its id. clients: number of sessions. secs: measured seconds, after the warm-up (10 if neither secs nor transactions is given). warmup: seconds to run before measuring; NULL: until throughput is steady, at most 300 seconds. transactions: transactions per client, instead of secs. rate: target transactions per second over all clients; latencies then count from the scheduled start. latency_limit: milliseconds; slower transactions count as late, and with a rate, transactions that can no longer meet it are skipped. max_tries: tries per transaction after serialization failures and deadlocks; 0: no limit. seed NULL: a random one, which is recorded. variables: script variables, as pgbench -D. settings: configuration parameters of every client. sample_interval: seconds of each sample; NULL: 0.25 below 30 secs, 0.5 below 60, else 1. query_mode: simple, extended or prepared, as pgbench -M. results: serialize converts rows to text as for a client; discard ignores them. nodes: local, workers or all nodes of a Citus cluster. script: a script to run instead of a workload. before: what to do before the run, as in bench.sweep. log_rate: share of the transactions to log in bench.transactions. exit_on_abort: end the run as soon as an error ends a client. driver: engine executes transactions inside the server; wire sends them over connections to its Unix-domain socket, which jobs workers share (NULL: half of the processors). target: with wire, a foreign server to connect to; NULL: this server and database. reconnect: with wire, a connection for each transaction, as pgbench -C. on_disconnect: with wire, what a client does that loses its connection: end, or reconnect. Canceling the call stops the run; results up to then are kept.';
COMMENT ON FUNCTION bench.start IS
'Starts a run with the arguments of bench.run and returns its id immediately; the run does not depend on the session. See bench.wait, bench.stop and bench.progress.';
COMMENT ON FUNCTION bench.wait IS
'Waits until a run has ended, or for timeout seconds (NULL: no limit), and returns the run''s status. Canceling the wait does not stop the run.';
COMMENT ON FUNCTION bench.stop IS
'Stops a run within a second and keeps its results. Returns false if the run was not active. Requires the privileges of the run''s role or of pg_signal_backend.';
COMMENT ON FUNCTION bench_internal.status_of IS
'Status of a run: crashed if its coordinator is gone without having recorded the end.';
COMMENT ON FUNCTION bench_internal.run_progress IS
'Progress of an active run, for bench.progress.';
COMMENT ON FUNCTION bench_internal.load_progress IS
'Progress of an active load, for bench.progress.';
COMMENT ON FUNCTION bench.percentile IS
'Returns a percentile of a run''s latencies in milliseconds, within 1 %. p is a fraction, as in percentile_cont: 0.99 for the 99th percentile. The value at rank p * (n - 1), counted from 0, is interpolated between its neighbors, assuming that latencies are spread evenly within a bucket. HdrHistogram returns the upper end of the bucket at rank ceil(p * n), counted from 1, which is higher by at most one bucket. NULL if the run has no histogram.';
COMMENT ON FUNCTION bench.findings IS
'Returns findings about a run, the most severe first: dips in throughput and their causes, a warm-up that was too short, drift, processors and quotas, vacuums, plans. severity: critical (the figures are misleading), warning (something made them worse or less steady) or notice. advice: what to try. A clean run has no findings.';
COMMENT ON FUNCTION bench.report IS
'Returns a report of a run. format: text (100 columns), markdown, json (schema_version names its schema; fields are added, never changed) or html (one file with plots, without network access or scripts); for other programs: bmf (Bencher), github-bigger and github-smaller (github-action-benchmark), otava (Apache Otava), openmetrics (Prometheus): psql -XAtc "SELECT bench.report(1, ''html'')" > report.html';
COMMENT ON FUNCTION bench.export IS
'Returns all data of ended runs, including samples and histograms, as one document for bench.import; format_version is the version of its format. Requires permission to see the runs: psql -XAtc "SELECT bench.export(''{1,2}'')" > runs.json';
COMMENT ON FUNCTION bench.import IS
'Imports the runs of a document made by bench.export, here or on another server, and returns their new ids in the document''s order. The runs belong to the calling role; column origin of bench.runs shows where they come from. The whole document is imported, or nothing. A run that the role has already imported is an error. Documents of bench.export_parts are imported one by one.';
COMMENT ON FUNCTION bench.prune IS
'Deletes runs that ended, or were imported, longer ago than older_than, with all their results, and returns their number. Deletes only runs of roles whose privileges the caller has. Active runs are kept.';
COMMENT ON FUNCTION bench.audit IS
'Compares the harness''s counts with the server''s own counters. ok: true if they are equal, false if they differ but should not, NULL if they need not be equal, as reason explains.';
COMMENT ON FUNCTION bench.sweep IS
'Runs a workload with each number of clients, in each variant, rounds times, waits for all runs to end, and returns the sweep''s id. rounds NULL: five, and then as many as make the 95 % interval of each mean TPS at most 2 % wide to either side, at most 50; a WARNING says if these were not enough. Each round runs in random order, determined by seed; runs of a variant that loads stay together. secs, warmup, rate, variables, settings, query_mode, nodes, tags, driver, target, jobs and reconnect apply to each run, unless its variant has its own. A variant is an object of configuration parameters for the clients, of driver, query_mode, target, jobs, reconnect and on_disconnect as in bench.run, or of the groups settings (the same), variables (of the script), load (rows, jobs and options of bench.load) and system (server parameters; superusers only; restored at the end, after a stop and after a crash). before: what to do before each run: none, reload, truncate (tables loaded with 0 rows; of tpcb, pgbench_history), vacuum, prewarm, checkpoint, or several of them, separated by commas.';
COMMENT ON FUNCTION bench.start_sweep IS
'Starts a sweep with the arguments of bench.sweep and returns its id immediately; the sweep does not depend on the session. See bench.wait_sweep, bench.stop_sweep and bench.sweeps.';
COMMENT ON FUNCTION bench.wait_sweep IS
'Waits until a sweep has ended, or for timeout seconds (NULL: no limit), and returns the sweep''s status. Canceling the wait does not stop the sweep.';
COMMENT ON FUNCTION bench.stop_sweep IS
'Stops a sweep and its active run, and keeps the results; bench.resume_sweep can continue it. Returns false if the sweep was not active. Requires the privileges of the sweep''s role or of pg_signal_backend.';
COMMENT ON FUNCTION bench.resume_sweep IS
'Continues a sweep after a stop, a crash or a server restart: makes the runs that are missing or did not complete, in their order. Returns immediately, like bench.start_sweep. Only the sweep''s role can resume it.';
COMMENT ON FUNCTION bench_internal.sweep_status_of IS
'Status of a sweep: crashed if its leader is gone without having recorded the end.';
COMMENT ON FUNCTION bench_internal.sweep_progress IS
'Progress of an active sweep in runs, for bench.sweeps.';
COMMENT ON FUNCTION bench.sweep_report IS
'Returns a report of a sweep in a format of bench.report: TPS and latencies by clients and variant, scalability, and curves.';
COMMENT ON FUNCTION bench.scalability IS
'Fits Gunther''s universal scalability law to the completed runs of each variant of a sweep. lambda: TPS of one client; sigma: contention; kappa: crosstalk; peak_clients, peak_tps: where TPS peaks; each with a 95 % interval. Each number of clients counts once, with the mean of its rounds. verdict: fits, no peak (its interval extends beyond twice the largest number of clients, or TPS only falls), does not fit, or not enough rungs (fewer than four numbers of clients).';
COMMENT ON FUNCTION bench.compare IS
'Compares two sets of completed runs: the ratio candidate / baseline with its interval, for TPS and for processor time per transaction (95 % each), and for latencies (98.75 % each, so 95 % for all four). verdict: same (the whole interval is within margin), faster, slower or inconclusive; advice then estimates how many runs per side would decide it, and says what bench.calibrate has found of runs like those of the baseline: how much equal runs vary, and which differences so many of them show. differences: settings, versions and machines that differ between the sides, in the row of tps.';
COMMENT ON FUNCTION bench.ab IS
'Compares two variants of a workload: runs both in each round, in random order, waits for all runs to end, and compares the pairs. a is the baseline, b the candidate, each a variant as in bench.sweep; the runs are kept as a sweep. nodes: as in bench.run. rounds NULL: five pairs, and then as many as make the 95 % interval of the ratio at most 2 % wide to either side, at most 50; a WARNING says if these were not enough. Returns the columns of bench.compare, with a margin of 0.02; bench.compare_report has a report of the same runs.';
COMMENT ON FUNCTION bench_internal.node_state IS
'Returns the state of this node, which a run on a Citus cluster reads from each node before and after: processors (ticks of their time), counters of the tables'' shards on this node, two-phase commits, connections, limits and parameters.';
COMMENT ON FUNCTION bench_internal.start_part IS
'Starts this node''s part of another node''s run; its clients wait for bench_internal.begin_part. Returns the run''s id on this node, or the error. The other node calls it as a role that may also call bench.run or bench.start on this node.';
COMMENT ON FUNCTION bench_internal.part_state IS
'Returns the progress of a part, and stops it if stop is true. A part ends itself after 20 seconds without this call from the run''s node.';
COMMENT ON FUNCTION bench_internal.begin_part IS
'Sets the time at which the clients of a part start, in microseconds since 2000-01-01 00:00 UTC by this node''s clock. Returns false if it is too late for that. Called by the run''s node.';
COMMENT ON FUNCTION bench_internal.drop_part IS
'Deletes an ended part of a run, once the run''s node has fetched its results.';
COMMENT ON FUNCTION bench.schedule IS
'Creates a pg_cron job that starts a run as the calling role, and returns the job''s id. name: name of the job, at most 63 bytes; your job of the same name is replaced, as by cron.schedule. schedule: minute, hour, day of the month, month and day of the week, in GMT or the time zone of cron.timezone. The other arguments are those of bench.run and are checked immediately. The job does not wait for its run, and starts no other while one is active. The runs have the tag "job" with the job''s name. If pg_cron is in another database, the error''s hint shows the call to make there.';
COMMENT ON FUNCTION bench.unschedule IS
'Removes your job of this name, and stops its active run as bench.stop does. Returns false if there was neither.';
COMMENT ON FUNCTION bench.start_scheduled IS
'Called by jobs of bench.schedule: starts a run as bench.start does, unless a run of the calling role with the same tag "job" is active; it then raises a WARNING and returns the id of that run.';
COMMENT ON FUNCTION bench_internal.status_to_assert IS
'Returns the status of a run; raises 22004 for NULL, 42704 if the run does not exist, 42501 if the caller may not see it. For the assertions.';
COMMENT ON FUNCTION bench_internal.figure_ok IS
'Returns TAP for the comparison of a completed run''s figure with a value. For bench.tps_ok and bench.latency_ok.';
COMMENT ON FUNCTION bench.tps_ok IS
'pgTAP assertion: the run completed, and its tps is >, >=, <, <=, = or <> value, in transactions per second.';
COMMENT ON FUNCTION bench.latency_ok IS
'pgTAP assertion: the run completed, and percentile p of its latencies is >, >=, <, <=, = or <> value_ms, in milliseconds. p is a fraction, as in bench.percentile.';
COMMENT ON FUNCTION bench.no_regression_ok IS
'pgTAP assertion: fails only if the candidate runs are slower than the baseline runs by more than tolerance (a fraction: 0.05 is 5 %) with confidence: the whole 95 % interval of the TPS ratio from bench.compare is below 1 - tolerance. If it passes without the runs being the same or faster, a diagnostic says so.';
COMMENT ON SEQUENCE bench.load_id_seq IS 'Internal: ids of loads';
COMMENT ON SEQUENCE bench.run_id_seq IS 'Internal: ids of runs';
COMMENT ON SEQUENCE bench.sweep_id_seq IS 'Internal: ids of sweeps';
COMMENT ON TABLE bench.workloads IS 'Workloads: the scripts that clients run, one transaction at a time. Use bench.create_workload and bench.drop_workload to change them.';
COMMENT ON TABLE bench.fixtures IS 'Loaded fixtures: the tables that workloads use. Use bench.load and bench.unload to change them.';
COMMENT ON TABLE bench.custom_fixtures IS 'Internal: fixtures that users defined with bench.create_fixture. Read bench.fixture_definitions instead.';
COMMENT ON TABLE bench.load_log IS 'Internal: loads under way, each of which builds its tables in a schema named bench_loading_ and its id. Read bench.progress instead. The next load removes rows and schemas left behind by a crash.';
COMMENT ON TABLE bench.run_log IS 'Internal: one row per run. Read bench.runs and bench.summary instead.';
COMMENT ON TABLE bench.samples IS 'One row per run, node and measured interval, for the runs that bench.runs shows. A transaction counts in the interval in which it ended.';
COMMENT ON TABLE bench.warmup_samples IS 'Samples of the warm-up, with the columns of bench.samples; elapsed counts from the start of the warm-up. With warmup NULL they are 0.25 seconds long, or sample_interval if that is shorter';
COMMENT ON TABLE bench.latencies IS 'Latency histogram of each run''s measured transactions: one row per run, node, script and nonempty bucket. A bucket is at most 1 % wide.';
COMMENT ON TABLE bench.error_log IS 'Internal: errors of each run. Read bench.errors instead.';
COMMENT ON TABLE bench.script_log IS 'Internal: scripts of each run. Read bench.scripts instead.';
COMMENT ON TABLE bench.statement_log IS 'Internal: commands of each run''s scripts. Read bench.statements instead.';
COMMENT ON TABLE bench.wait_log IS 'Internal: wait events of each run. Read bench.waits instead.';
COMMENT ON TABLE bench.event_log IS 'Internal: checkpoints and vacuums during each run. Read bench.events instead.';
COMMENT ON TABLE bench.relation_log IS 'Internal: tables and indexes of each run. Read bench.relations instead.';
COMMENT ON TABLE bench.audit_log IS 'Internal: counters of each run''s audit. Read bench.audit(run_id) or bench.audits instead.';
COMMENT ON TABLE bench.node_log IS 'Internal: nodes of the Citus cluster that each run used. Read bench.nodes instead.';
COMMENT ON TABLE bench.sweep_log IS 'Internal: one row per sweep. Read bench.sweeps instead.';
COMMENT ON TABLE bench.sweep_run_log IS 'Internal: planned runs of each sweep, in order. Read bench.sweep_runs instead.';
COMMENT ON COLUMN bench.workloads.name IS 'Name, as given to bench.run';
COMMENT ON COLUMN bench.workloads.owner IS 'Role that owns it: this role, its members and superusers may replace and drop it';
COMMENT ON COLUMN bench.workloads.fixture IS 'Fixture whose tables the script uses; NULL: none of the extension''s';
COMMENT ON COLUMN bench.workloads.script IS 'Script, in pgbench''s language';
COMMENT ON COLUMN bench.workloads.builtin IS 'True if it comes with the extension: it then cannot be replaced or dropped';
COMMENT ON COLUMN bench.fixtures.owner IS 'Role that loaded it';
COMMENT ON COLUMN bench.fixtures.schema IS 'Schema of its tables, which is first in the clients'' search_path';
COMMENT ON COLUMN bench.fixtures.relations IS 'Its tables; a table dropped since shows as a number';
COMMENT ON COLUMN bench.fixtures.rows IS 'Rows loaded, with ids from 1 to this number; scripts read it as variable rows';
COMMENT ON COLUMN bench.fixtures.loaded_at IS 'When the load ended';
COMMENT ON COLUMN bench.fixtures.load_secs IS 'Seconds spent writing the rows, and distributing them to the shards of a Citus cluster; indexes and VACUUM are not included';
COMMENT ON COLUMN bench.fixtures.rows_per_sec IS 'Rows written per second of load_secs';
COMMENT ON COLUMN bench.fixtures.table_bytes IS 'Bytes of the tables after the load, including their maps and TOAST; for distributed tables, of all shards';
COMMENT ON COLUMN bench.fixtures.index_levels IS 'Levels of the largest table''s primary key, including root and leaves: one more than level in pageinspect''s bt_metap; NULL for a distributed table';
COMMENT ON COLUMN bench.fixtures.key_correlation IS 'Correlation, as in pg_stats, between that key''s values and the order of the rows in the table: below 1 where several jobs wrote in parallel';
COMMENT ON COLUMN bench.fixtures.index_secs IS 'Seconds spent building indexes';
COMMENT ON COLUMN bench.fixtures.rows_query IS 'SELECT that defines the rows with the ids $1 to $2';
COMMENT ON COLUMN bench.samples.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.samples.secs IS 'Actual length of the interval in seconds';
COMMENT ON COLUMN bench.samples.clients IS 'Active clients';
COMMENT ON COLUMN bench.samples.failed IS 'Failed transactions: those given up at a serialization failure or deadlock after max_tries';
COMMENT ON COLUMN bench.samples.aborted IS 'Clients that another error ended, each with its transaction; NULL for runs before 0.2.0, whose failed includes them';
COMMENT ON COLUMN bench.samples.skipped IS 'With a rate: transactions skipped because they could no longer meet latency_limit';
COMMENT ON COLUMN bench.samples.late IS 'Committed transactions that took longer than latency_limit';
COMMENT ON COLUMN bench.samples.latency_avg_ms IS 'Mean latency of committed transactions in milliseconds, including retries; with a rate, counted from the scheduled start';
COMMENT ON COLUMN bench.samples.latency_max_ms IS 'Maximum latency in milliseconds';
COMMENT ON COLUMN bench.samples.latency_histogram IS 'Latency histogram of the interval''s committed transactions, as bucket: count; bucket k holds 10^(k/10) to 10^((k+1)/10) microseconds. NULL for runs before 0.2.0';
COMMENT ON COLUMN bench.samples.lag_avg_ms IS 'With a rate: mean delay between scheduled and actual start in milliseconds, which is part of the latency';
COMMENT ON COLUMN bench.samples.wal_bytes IS 'Bytes of WAL that the whole server generated, from pg_stat_wal, to which sessions report at most once a second. This column and the following ones are NULL if the interval was not observed';
COMMENT ON COLUMN bench.samples.wal_records IS 'WAL records of the whole server';
COMMENT ON COLUMN bench.samples.wal_fpi IS 'Full-page images in the WAL of the whole server';
COMMENT ON COLUMN bench.samples.wal_buffers_full IS 'Times WAL was written to disk because the WAL buffers were full';
COMMENT ON COLUMN bench.samples.checkpoints IS 'Checkpoints that started in the interval';
COMMENT ON COLUMN bench.samples.buffers_backend IS 'Pages that sessions wrote or extended relations by, instead of leaving that to the checkpointer or the background writer. PostgreSQL 15 reports them at the checkpointers next look, later versions with the sessions statistics';
COMMENT ON COLUMN bench.samples.blks_hit IS 'Blocks of this database found in shared buffers';
COMMENT ON COLUMN bench.samples.blks_read IS 'Blocks of this database read from outside shared buffers';
COMMENT ON COLUMN bench.samples.temp_files IS 'Temporary files created in this database';
COMMENT ON COLUMN bench.samples.temp_bytes IS 'Bytes written to temporary files in this database';
COMMENT ON COLUMN bench.samples.cpu_user IS 'Share of all processors'' time in user mode; the cpu_, memory_ and disk_ columns are NULL if the platform does not provide them';
COMMENT ON COLUMN bench.samples.cpu_system IS 'Share of all processors'' time in the kernel, including interrupts';
COMMENT ON COLUMN bench.samples.cpu_iowait IS 'Share of all processors'' time idle while I/O was pending';
COMMENT ON COLUMN bench.samples.cpu_steal IS 'Share of all processors'' time that the hypervisor gave to other machines';
COMMENT ON COLUMN bench.samples.cpu_idle IS 'Share of all processors'' time idle';
COMMENT ON COLUMN bench.samples.memory_available_bytes IS 'Bytes of memory available without swapping, at the end of the interval';
COMMENT ON COLUMN bench.samples.memory_dirty_bytes IS 'Bytes written to files but not yet to disk, at the end of the interval';
COMMENT ON COLUMN bench.samples.disk_read_bytes IS 'Bytes the machine read from disks';
COMMENT ON COLUMN bench.samples.disk_written_bytes IS 'Bytes the machine wrote to disks';
COMMENT ON COLUMN bench.samples.throttled_secs IS 'Seconds during which the CPU quota of the server''s control group throttled it';
COMMENT ON COLUMN bench.samples.replay_lag_ms IS 'End of the interval: milliseconds for which replay on the standby is behind. Target a standby: age of the last commit it has replayed, 0 if it has replayed all WAL received; the clocks of both servers go into it. Otherwise: the greatest replay_lag of the server''s standbys in pg_stat_replication. NULL without a standby, or if the role may not see it';
COMMENT ON COLUMN bench.samples.replay_lag_bytes IS 'End of the interval: bytes of WAL that the standby has received (target a standby) or was sent (the standby furthest behind) and not yet replayed. NULL as replay_lag_ms';
COMMENT ON COLUMN bench.samples.waits IS 'Share of the clients'' time per wait event, as type:event. CPU: running on a processor; Runnable: waiting for a processor. The shares add up to 1';
COMMENT ON COLUMN bench.latencies.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.latencies.script IS 'Index of the script in a mix, starting at 0';
COMMENT ON COLUMN bench.sweep_log.system_settings IS 'Saved entries of postgresql.auto.conf for the server parameters that the sweep sets, JSON null where there was no entry; NULL once they are restored';
COMMENT ON TYPE bench_internal.relation_reading IS 'State of a table or index, read before and after a run';
COMMENT ON VIEW bench.runs IS 'One row per run: its arguments, status and environment. Visible to roles with the privileges of the run''s role or of pg_read_all_stats.';
COMMENT ON VIEW bench.errors IS 'Errors of a run''s clients by SQLSTATE, including retried ones';
COMMENT ON VIEW bench.scripts IS 'Results by script: one row per run, node and script of its mix';
COMMENT ON VIEW bench.statements IS 'Results by command: one row per run, node, script and command, including meta commands';
COMMENT ON VIEW bench.waits IS 'Wait events of a run''s clients during the measurement, sampled 100 times a second: up to 400 times with few clients, less often with more than 64. For each interval, see column waits of bench.samples';
COMMENT ON VIEW bench.events IS 'Checkpoints, and vacuums of the run''s tables, during each run';
COMMENT ON VIEW bench.relations IS 'Tables and indexes of each run before and after it, from the server''s statistics. Counts cover all phases of the run and include use by other sessions';
COMMENT ON VIEW bench.total_samples IS 'bench.samples of all nodes together: one row per run and interval. Counts are sums, and shares of processors are means over the nodes. Percentiles are NULL if there are several nodes: they cannot be computed from those of each node.';
COMMENT ON VIEW bench.total_warmup_samples IS 'bench.warmup_samples of all nodes together: one row per run and interval. Counts are sums, and shares of processors are means over the nodes. Percentiles are NULL if there are several nodes: they cannot be computed from those of each node.';
COMMENT ON VIEW bench.summary_of_all IS 'Internal: rows of bench.summary for the runs of all roles. Read bench.summary instead.';
COMMENT ON VIEW bench.summary IS 'Results: one row per run';
COMMENT ON VIEW bench.nodes IS 'Results by node: one row per run and node, including nodes of the Citus cluster without clients';
COMMENT ON VIEW bench.progress IS 'Active runs and loads';
COMMENT ON COLUMN bench.progress.workload IS 'Run: name of the workload, or the mix as given';
COMMENT ON VIEW bench.audits IS 'Audits: the rows of bench.audit(run_id) for all runs';
COMMENT ON VIEW bench.sweep_runs IS 'Runs of each sweep: one row per number of clients, variant and round';
COMMENT ON VIEW bench.sweep_results IS 'Results of each sweep: one row per number of clients, variant and rate, over the completed runs';
COMMENT ON VIEW bench.history IS 'Completed runs in comparable series: all runs of a series have the same workload, options and tags';
COMMENT ON COLUMN bench.runs.sweep_id IS 'Sweep that the run is part of';
COMMENT ON COLUMN bench.runs.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.runs.fixture IS 'Fixture used; several are separated by commas';
COMMENT ON COLUMN bench.runs.fixture_rows IS 'Rows loaded into each of these fixtures';
COMMENT ON COLUMN bench.runs.fixture_options IS 'Options given to bench.load for each of these fixtures; null for tables that bench.load did not create';
COMMENT ON COLUMN bench.runs.script IS 'Script as run; a mix shows each script under a comment with its name and weight';
COMMENT ON COLUMN bench.runs.secs IS 'Requested measured seconds';
COMMENT ON COLUMN bench.runs.transactions IS 'Requested transactions per client';
COMMENT ON COLUMN bench.runs.warmup IS 'Requested seconds of warm-up before the measurement; NULL: until throughput was steady';
COMMENT ON COLUMN bench.runs.rate IS 'Target transactions per second over all clients; NULL: each client starts a transaction when its last one ends';
COMMENT ON COLUMN bench.runs.latency_limit IS 'Milliseconds above which a transaction counts as late';
COMMENT ON COLUMN bench.runs.max_tries IS 'Tries per transaction after serialization failures and deadlocks; 0: no limit';
COMMENT ON COLUMN bench.runs.seed IS 'Seed of the random numbers, as given or chosen';
COMMENT ON COLUMN bench.runs.driver IS 'engine: transactions execute inside the server; wire: they are sent over connections';
COMMENT ON COLUMN bench.runs.query_mode IS 'simple: values are part of the statement''s text; extended: values are parameters; both parse and plan each execution. prepared: parses once and plans like a prepared statement';
COMMENT ON COLUMN bench.runs.results IS 'serialize: rows are converted to text and dropped; discard: rows are ignored';
COMMENT ON COLUMN bench.runs.nodes IS 'local: clients ran on this server only; workers, all: on the workers or all nodes of the Citus cluster, the same number on each. See bench.nodes';
COMMENT ON COLUMN bench.runs.variables IS 'Script variables, as given';
COMMENT ON COLUMN bench.runs.settings IS 'Configuration parameters set for every client';
COMMENT ON COLUMN bench.runs.system IS 'Server parameters that its sweep set for it';
COMMENT ON COLUMN bench.runs.sample_interval IS 'Length of a sampling interval in seconds';
COMMENT ON COLUMN bench.runs.tags IS 'Labels chosen by the user';
COMMENT ON COLUMN bench.runs.status IS 'starting, running, completed, incomplete (clients ended early or results could not be written: see error), canceled, failed (nothing was measured) or crashed (the coordinator is gone)';
COMMENT ON COLUMN bench.runs.started_at IS 'When the clients started';
COMMENT ON COLUMN bench.runs.finished_at IS 'When the results were recorded';
COMMENT ON COLUMN bench.runs.role IS 'Role that called, and that the clients ran as';
COMMENT ON COLUMN bench.runs.error IS 'Reason for not completing: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.runs.horizon_held IS 'True if the waiting caller held back the xmin horizon, so dead rows could not be removed';
COMMENT ON COLUMN bench.runs.server_version IS 'server_version at the time of the run';
COMMENT ON COLUMN bench.runs.extension_version IS 'Version of the extension at the time of the run';
COMMENT ON COLUMN bench.runs.environment IS 'Environment: server_settings (non-default settings of a client''s session), version, processors, memory, kernel, filesystem, cost of a clock read and of a flush to disk, unserved_defaults (parameters that were on but have no effect on engine sessions), transaction ids used';
COMMENT ON COLUMN bench.runs.origin IS 'Origin of an imported run: run_id, role, database, system_identifier (as in pg_control_system) and started_at on the original server, exported_at, imported_at; NULL for runs of this database';
COMMENT ON COLUMN bench.runs.part_of IS 'For this node''s part of another node''s run, until that node has fetched it: node, name and run_id there';
COMMENT ON COLUMN bench.errors.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.errors.message IS 'Message of the first such error';
COMMENT ON COLUMN bench.errors.detail IS 'Position of the first such error in the script, and its detail from the server';
COMMENT ON COLUMN bench.errors.count IS 'Number of such errors in all phases of the run';
COMMENT ON COLUMN bench.errors.retried IS 'Number of them that were followed by another try';
COMMENT ON COLUMN bench.errors.failed IS 'Number of them that ended a transaction: it failed or, at another error than a serialization failure or deadlock, ended with its client';
COMMENT ON COLUMN bench.errors.first_at IS 'Time of the first such error';
COMMENT ON COLUMN bench.scripts.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.scripts.script IS 'Index of the script in the mix, starting at 0';
COMMENT ON COLUMN bench.scripts.workload IS 'Name of the workload';
COMMENT ON COLUMN bench.scripts.weight IS 'Weight of the script in the mix, relative to the other weights';
COMMENT ON COLUMN bench.scripts.fixture IS 'Fixture used';
COMMENT ON COLUMN bench.scripts.transactions IS 'Transactions committed during the measurement';
COMMENT ON COLUMN bench.scripts.tps IS 'Transactions per measured second';
COMMENT ON COLUMN bench.scripts.failed IS 'Transactions given up at a serialization failure or deadlock during the measurement';
COMMENT ON COLUMN bench.scripts.aborted IS 'Clients that another error ended during the measurement; NULL for runs before 0.2.0, whose failed includes them';
COMMENT ON COLUMN bench.scripts.skipped IS 'With a rate: transactions skipped because they could no longer meet latency_limit';
COMMENT ON COLUMN bench.scripts.late IS 'Committed transactions that took longer than latency_limit';
COMMENT ON COLUMN bench.scripts.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_max_ms IS 'Maximum latency in milliseconds';
COMMENT ON COLUMN bench.statements.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.statements.script IS 'Index of the script in the mix, starting at 0';
COMMENT ON COLUMN bench.statements.command IS 'Position of the command in the script, starting at 1';
COMMENT ON COLUMN bench.statements.line IS 'Line of the script on which the command starts, starting at 1';
COMMENT ON COLUMN bench.statements.statement IS 'Command as written';
COMMENT ON COLUMN bench.statements.count IS 'Successful executions during the measurement, including those in tries that were repeated';
COMMENT ON COLUMN bench.statements.failed IS 'Transactions that failed at this command, or ended there with their client';
COMMENT ON COLUMN bench.statements.retried IS 'Tries that failed at this command and were followed by another try';
COMMENT ON COLUMN bench.statements.latency_avg_ms IS 'Mean execution time in milliseconds';
COMMENT ON COLUMN bench.statements.latency_p95_ms IS '95th percentile of the execution time in milliseconds, within 2 % above one microsecond';
COMMENT ON COLUMN bench.statements.plan IS 'Plan as executed, in the format of EXPLAIN, under a line that says whether it was generic or custom. If the plan changed, each version is shown with the time it was first seen. NULL for commands without a plan: meta commands, utility statements, statements that rules expand to several';
COMMENT ON COLUMN bench.statements.generic_plans IS 'Executions with a generic plan, in all phases';
COMMENT ON COLUMN bench.statements.custom_plans IS 'Executions with a custom plan, in all phases';
COMMENT ON COLUMN bench.statements.plan_changes IS 'Number of times a client''s plan changed its shape between executions, not counting the switch from custom to generic';
COMMENT ON COLUMN bench.statements.workers_planned IS 'Parallel workers planned, in all phases';
COMMENT ON COLUMN bench.statements.workers_launched IS 'Parallel workers launched, in all phases';
COMMENT ON COLUMN bench.waits.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.waits.wait_event_type IS 'As in pg_stat_activity. CPU: running on a processor. Runnable: waiting for a processor. Client: sleeping in the script or waiting for the scheduled start, when a pgbench session would wait for its client. Unobserved: clients that ended before they were sampled';
COMMENT ON COLUMN bench.waits.wait_event IS 'As in pg_stat_activity of the server that the run was on. PostgreSQL 17 changed some names: WALSync is WalSync since, BufFileRead is BuffileRead';
COMMENT ON COLUMN bench.waits.share IS 'Share of the clients'' time; the shares of a run and node add up to 1';
COMMENT ON COLUMN bench.events.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.events.event IS 'Number of the event, starting at 1';
COMMENT ON COLUMN bench.events.relation IS 'Vacuumed table';
COMMENT ON COLUMN bench.events.detail IS 'For a checkpoint: timed or requested, if known, or that it started before the run';
COMMENT ON COLUMN bench.events.started IS 'Start in seconds since the measurement started, negative before it. For a vacuum shorter than an interval: its end. For a checkpoint that started before the run: when it was first seen';
COMMENT ON COLUMN bench.events.ended IS 'End in seconds since the measurement started; NULL if it lasted longer than the run';
COMMENT ON COLUMN bench.relations.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.relations.relation IS 'Table or index';
COMMENT ON COLUMN bench.relations.bytes_before IS 'Bytes before the run, for a table including its maps and TOAST; NULL if a lock prevented reading it';
COMMENT ON COLUMN bench.relations.bytes_after IS 'Bytes after the run';
COMMENT ON COLUMN bench.relations.live_before IS 'Estimated live rows before the run';
COMMENT ON COLUMN bench.relations.live IS 'Estimated live rows after the run';
COMMENT ON COLUMN bench.relations.dead_before IS 'Estimated dead rows before the run';
COMMENT ON COLUMN bench.relations.dead IS 'Estimated dead rows after the run';
COMMENT ON COLUMN bench.relations.updated IS 'Rows updated, including HOT updates';
COMMENT ON COLUMN bench.relations.mod_since_analyze IS 'Rows changed since the last analyze, as of the end of the run';
COMMENT ON COLUMN bench.relations.seq_tup_read IS 'Live rows read by sequential scans';
COMMENT ON COLUMN bench.relations.idx_scan IS 'Index scans; for a table, of all its indexes';
COMMENT ON COLUMN bench.relations.vacuums IS 'Manual vacuums that ended during the run';
COMMENT ON COLUMN bench.relations.autovacuums IS 'Autovacuums that ended during the run';
COMMENT ON COLUMN bench.relations.analyzes IS 'Manual analyzes that ended during the run';
COMMENT ON COLUMN bench.relations.autoanalyzes IS 'Analyzes by autovacuum that ended during the run';
COMMENT ON COLUMN bench.relations.last_vacuum IS 'When the last manual vacuum ended';
COMMENT ON COLUMN bench.relations.last_analyze IS 'When the last manual analyze ended';
COMMENT ON COLUMN bench.summary.workload IS 'Name of the workload';
COMMENT ON COLUMN bench.summary.driver IS 'engine: transactions execute inside the server; wire: they are sent over connections';
COMMENT ON COLUMN bench.summary.results IS 'serialize: rows are converted to text and dropped; discard: rows are ignored';
COMMENT ON COLUMN bench.summary.started_at IS 'When the clients started';
COMMENT ON COLUMN bench.summary.secs IS 'Measured seconds';
COMMENT ON COLUMN bench.summary.transactions IS 'Transactions committed during the measurement';
COMMENT ON COLUMN bench.summary.failed IS 'Transactions given up at a serialization failure or deadlock during the measurement';
COMMENT ON COLUMN bench.summary.aborted IS 'Clients that another error ended during the measurement; NULL for runs before 0.2.0, whose failed includes them';
COMMENT ON COLUMN bench.summary.tps IS 'transactions / secs of the whole run';
COMMENT ON COLUMN bench.summary.tps_avg IS 'Mean tps of the samples';
COMMENT ON COLUMN bench.summary.tps_min IS 'Lowest tps of the samples';
COMMENT ON COLUMN bench.summary.tps_max IS 'Highest tps of the samples';
COMMENT ON COLUMN bench.summary.tps_stddev IS 'Standard deviation of the samples'' tps';
COMMENT ON COLUMN bench.summary.latency_p50_ms IS 'Median latency in milliseconds; percentiles are NULL until the run has ended';
COMMENT ON COLUMN bench.summary.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p999_ms IS '99.9th percentile of the latency in milliseconds; noise with fewer than 10,000 transactions';
COMMENT ON COLUMN bench.summary.latency_max_ms IS 'Maximum latency in milliseconds';
COMMENT ON COLUMN bench.summary.skipped IS 'With a rate: transactions skipped because they could no longer meet latency_limit';
COMMENT ON COLUMN bench.summary.late IS 'Committed transactions that took longer than latency_limit';
COMMENT ON COLUMN bench.summary.lag_avg_ms IS 'With a rate: mean delay between scheduled and actual start in milliseconds, which is part of the latency';
COMMENT ON COLUMN bench.summary.lag_max_ms IS 'With a rate: maximum delay between scheduled and actual start in milliseconds; NULL until the run has ended';
COMMENT ON COLUMN bench.summary.backlog IS 'With a rate: transactions due before the end that were neither started nor skipped';
COMMENT ON COLUMN bench.summary.server_cpu_us IS 'Processor time of the clients'' processes per committed transaction in microseconds. Parallel workers, autovacuum and other background processes, and sessions on other nodes are not included. NULL until the run has ended, for runs before 0.2.0, and if the platform does not provide it';
COMMENT ON COLUMN bench.summary.connect_avg_ms IS 'Mean time in milliseconds to open a connection, of those that a run with reconnect opened during the measurement; part of secs, not of the latency';
COMMENT ON COLUMN bench.summary.connect_p50_ms IS 'Median of these times in milliseconds';
COMMENT ON COLUMN bench.summary.connect_p95_ms IS '95th percentile of these times in milliseconds';
COMMENT ON COLUMN bench.summary.connect_p99_ms IS '99th percentile of these times in milliseconds';
COMMENT ON COLUMN bench.summary.connect_max_ms IS 'Maximum of these times in milliseconds';
COMMENT ON COLUMN bench.summary.unknown IS 'With on_disconnect => reconnect: transactions during the measurement whose connection was lost when they may have been committed; failed includes those lost before that';
COMMENT ON COLUMN bench.summary.driver_cpu_us IS 'With driver => wire: processor time of the run''s jobs per committed transaction in microseconds, the time to open connections included; NULL until the run has ended, and with the engine, whose clients are the server''s own processes';
COMMENT ON COLUMN bench.summary.nopm IS 'New orders per minute of workloads orders, orders_deck, orders_functions and orders_keyed, those rolled back by intention among them; derived from TPC-C; not comparable with published TPC results. NULL for other workloads and until the run has ended';
COMMENT ON COLUMN bench.nodes.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.nodes.name IS 'Host and port of the node in the Citus cluster; local without a cluster';
COMMENT ON COLUMN bench.nodes.is_coordinator IS 'True for the coordinator of the Citus cluster';
COMMENT ON COLUMN bench.nodes.clients IS 'Clients on this node; 0 if it only served other nodes'' statements';
COMMENT ON COLUMN bench.nodes.status IS 'Status of its part of the run, as in bench.runs; NULL without clients';
COMMENT ON COLUMN bench.nodes.error IS 'Reason for not completing: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.nodes.start_offset_ms IS 'Delay of its clients'' start against the agreed time in milliseconds, by the clock of the node that was called';
COMMENT ON COLUMN bench.nodes.clock_offset_ms IS 'Clock of this node minus clock of the node that was called, in milliseconds';
COMMENT ON COLUMN bench.nodes.clock_error_ms IS 'Maximum error of clock_offset_ms, in milliseconds';
COMMENT ON COLUMN bench.nodes.secs IS 'Measured seconds';
COMMENT ON COLUMN bench.nodes.transactions IS 'Transactions committed during the measurement';
COMMENT ON COLUMN bench.nodes.failed IS 'Transactions given up at a serialization failure or deadlock during the measurement';
COMMENT ON COLUMN bench.nodes.aborted IS 'Clients that another error ended during the measurement; NULL for runs before 0.2.0, whose failed includes them';
COMMENT ON COLUMN bench.nodes.tps IS 'transactions / secs; the nodes add up to tps in bench.summary';
COMMENT ON COLUMN bench.nodes.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_max_ms IS 'Maximum latency in milliseconds';
COMMENT ON COLUMN bench.nodes.processors IS 'Processors of the machine';
COMMENT ON COLUMN bench.nodes.cpu_user IS 'Share of all processors'' time in user mode; for a node without clients, from just before the start to just after the end';
COMMENT ON COLUMN bench.nodes.cpu_system IS 'Share of all processors'' time in the kernel, including interrupts';
COMMENT ON COLUMN bench.nodes.cpu_iowait IS 'Share of all processors'' time idle while I/O was pending';
COMMENT ON COLUMN bench.nodes.cpu_steal IS 'Share of all processors'' time that the hypervisor gave to other machines';
COMMENT ON COLUMN bench.nodes.cpu_idle IS 'Share of all processors'' time idle';
COMMENT ON COLUMN bench.nodes.prepared IS 'Transactions prepared on other nodes for two-phase commits, one per connection';
COMMENT ON COLUMN bench.nodes.connections_opened IS 'Connections that its sessions opened to other nodes; NULL unless Citus counts them (citus.enable_stat_counters, Citus 13.1 or later)';
COMMENT ON COLUMN bench.nodes.connections_reused IS 'Times its sessions reused an open connection';
COMMENT ON COLUMN bench.nodes.prepared_left IS 'Prepared transactions of Citus left on the node after the run';
COMMENT ON COLUMN bench.nodes.settings IS 'Parameters of Citus that affect the results';
COMMENT ON COLUMN bench.nodes.server_cpu_us IS 'Processor time of its clients'' processes per committed transaction in microseconds, as in bench.summary';
COMMENT ON COLUMN bench.nodes.machine IS 'Lowest-numbered node on the same machine: nodes with the same value share its processors. NULL without a cluster';
COMMENT ON COLUMN bench.nodes.clients_stuck IS 'Process ids of its clients that could not be ended, in pg_stat_activity of this node: each keeps its worker slot until what it waits for answers; NULL if all ended';
COMMENT ON COLUMN bench.progress.run_id IS 'Run; NULL for a load';
COMMENT ON COLUMN bench.progress.phase IS 'Run: starting, ramp, warm-up, measurement or drain. Load: starting, loading rows, building indexes or vacuuming';
COMMENT ON COLUMN bench.progress.elapsed IS 'Run: seconds since the phase started. Load: seconds since the load started';
COMMENT ON COLUMN bench.progress.remaining IS 'Estimated seconds until the measurement ends or the rows are loaded; NULL if unknown, as for a run of a fixed number of transactions and in a warm-up until throughput is steady';
COMMENT ON COLUMN bench.progress.clients IS 'Active clients or load workers';
COMMENT ON COLUMN bench.progress.fixture IS 'Load: fixture';
COMMENT ON COLUMN bench.progress.rows IS 'Load: rows loaded so far';
COMMENT ON COLUMN bench.progress.rows_per_sec IS 'Load: rows loaded per second so far';
COMMENT ON COLUMN bench.fixture_definitions.name IS 'Name, as given to bench.load';
COMMENT ON COLUMN bench.fixture_definitions.owner IS 'Role that owns it: this role, its members and superusers may replace and drop it';
COMMENT ON COLUMN bench.fixture_definitions.ddl IS 'Statements that create its tables; for a built-in fixture, without options';
COMMENT ON COLUMN bench.fixture_definitions.rows_query IS 'SELECT that defines the rows with the ids $1 to $2';
COMMENT ON COLUMN bench.fixture_definitions.after_ddl IS 'Statements that run after the rows are loaded, such as CREATE INDEX';
COMMENT ON COLUMN bench.fixture_definitions.rows IS 'Default number of ids for bench.load';
COMMENT ON COLUMN bench.fixture_definitions.builtin IS 'True if it comes with the extension: it then cannot be replaced or dropped';
COMMENT ON COLUMN bench.audits.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node, or for all nodes together';
COMMENT ON COLUMN bench.audits.harness IS 'Count of the clients, in all phases of the run';
COMMENT ON COLUMN bench.audits.server IS 'Increase of the server''s counter during the run';
COMMENT ON COLUMN bench.audits.difference IS 'harness - server';
COMMENT ON COLUMN bench.audits.ok IS 'True if both are equal; NULL if they need not be';
COMMENT ON COLUMN bench.audits.reason IS 'What is counted, or why ok is NULL';
COMMENT ON COLUMN bench.sweeps.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.sweeps.clients IS 'Numbers of concurrent sessions';
COMMENT ON COLUMN bench.sweeps.rounds IS 'Runs of each variant with each number of clients';
COMMENT ON COLUMN bench.sweeps.variants IS 'Variants: name, settings, variables, load, system, run; a single one without a name if none were given';
COMMENT ON COLUMN bench.sweeps.warmup IS 'Seconds of warm-up before the measurement of each run; NULL: until its throughput was steady';
COMMENT ON COLUMN bench.sweeps.rate IS 'Target transactions per second of each run; NULL: each client starts a transaction when its last one ends';
COMMENT ON COLUMN bench.sweeps.settings IS 'Configuration parameters set for every client of all runs';
COMMENT ON COLUMN bench.sweeps.before IS 'Actions before each run';
COMMENT ON COLUMN bench.sweeps.seed IS 'Seed of the order of the runs and of their random numbers, which are the same for all runs of a round';
COMMENT ON COLUMN bench.sweeps.nodes IS 'Nodes on which the clients run, as in bench.runs';
COMMENT ON COLUMN bench.sweeps.tags IS 'Labels chosen by the user, also set on each run';
COMMENT ON COLUMN bench.sweeps.status IS 'running, completed, incomplete (some runs are missing or did not complete), canceled, failed (no run completed) or crashed (the leader is gone)';
COMMENT ON COLUMN bench.sweeps.runs IS 'Number of planned runs';
COMMENT ON COLUMN bench.sweeps.completed IS 'Number of completed runs';
COMMENT ON COLUMN bench.sweeps.started_at IS 'When the sweep started';
COMMENT ON COLUMN bench.sweeps.resumed_at IS 'When the sweep was last resumed';
COMMENT ON COLUMN bench.sweeps.finished_at IS 'When the sweep ended';
COMMENT ON COLUMN bench.sweeps.remaining IS 'Estimated seconds until the end; NULL if the sweep is not active or no run has ended yet';
COMMENT ON COLUMN bench.sweeps.role IS 'Role that called, and that the clients run as';
COMMENT ON COLUMN bench.sweeps.error IS 'Reason for not completing: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.sweeps.server_version IS 'server_version at the start of the sweep';
COMMENT ON COLUMN bench.sweeps.extension_version IS 'Version of the extension at the start of the sweep';
COMMENT ON COLUMN bench.sweep_runs.place IS 'Position in the order of the runs, starting at 1';
COMMENT ON COLUMN bench.sweep_runs.round IS 'Round, starting at 1';
COMMENT ON COLUMN bench.sweep_runs.variant IS 'Name of the variant; empty if the sweep has no variants';
COMMENT ON COLUMN bench.sweep_runs.run_id IS 'Run, the latest one if it was repeated; NULL if it has not been made yet';
COMMENT ON COLUMN bench.sweep_runs.error IS 'Reason why the run could not start or did not complete';
COMMENT ON COLUMN bench.sweep_runs.secs IS 'Measured seconds';
COMMENT ON COLUMN bench.sweep_runs.transactions IS 'Transactions committed during the measurement';
COMMENT ON COLUMN bench.sweep_runs.failed IS 'Failed transactions';
COMMENT ON COLUMN bench.sweep_runs.tps_min IS 'Lowest TPS of its samples';
COMMENT ON COLUMN bench.sweep_runs.tps_max IS 'Highest TPS of its samples';
COMMENT ON COLUMN bench.sweep_runs.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.sweep_runs.cpu_idle IS 'Mean share of all processors'' time idle';
COMMENT ON COLUMN bench.sweep_runs.server_cpu_us IS 'Processor time of the clients'' processes per committed transaction in microseconds, as in bench.summary';
COMMENT ON COLUMN bench.sweep_runs.connect_avg_ms IS 'With reconnect: mean time to open a connection in milliseconds, as in bench.summary';
COMMENT ON COLUMN bench.sweep_runs.driver_cpu_us IS 'With driver => wire: processor time of the run''s jobs per committed transaction in microseconds, as in bench.summary';
COMMENT ON COLUMN bench.sweep_results.variant IS 'Name of the variant; empty if the sweep has no variants';
COMMENT ON COLUMN bench.sweep_results.rounds IS 'Number of completed runs';
COMMENT ON COLUMN bench.sweep_results.tps_stddev IS 'Standard deviation of the runs'' TPS; NULL for a single run';
COMMENT ON COLUMN bench.sweep_results.latency_avg_ms IS 'Mean of the runs'' mean latencies in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p50_ms IS 'Mean of the runs'' median latencies in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p95_ms IS 'Mean of the runs'' 95th percentiles in milliseconds';
COMMENT ON COLUMN bench.sweep_results.latency_p99_ms IS 'Mean of the runs'' 99th percentiles in milliseconds';
COMMENT ON COLUMN bench.sweep_results.failed IS 'Failed transactions of all runs';
COMMENT ON COLUMN bench.sweep_results.cpu_idle IS 'Mean of the runs'' shares of processors'' time idle';
COMMENT ON COLUMN bench.sweep_results.run_ids IS 'Runs, ordered by round, for bench.compare';
COMMENT ON COLUMN bench.sweep_results.server_cpu_us IS 'Mean of the runs'' processor times per committed transaction in microseconds';
COMMENT ON COLUMN bench.sweep_results.connect_avg_ms IS 'With reconnect: mean of the runs'' mean times to open a connection in milliseconds';
COMMENT ON COLUMN bench.history.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.history.options IS 'Other arguments of bench.run that affect the results; the fixture with its rows and options; script: a hash of the script as run and of its feeders; system: server parameters set by a sweep; role; origin: the server of an imported run';
COMMENT ON COLUMN bench.history.tags IS 'Labels chosen by the user';
COMMENT ON COLUMN bench.history.started_at IS 'When the clients started';
COMMENT ON COLUMN bench.history.tps IS 'Transactions per second of the whole run';
COMMENT ON COLUMN bench.history.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.history.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.history.server_cpu_us IS 'Processor time of the clients'' processes per committed transaction in microseconds, as in bench.summary';
-- What else has the columns of bench.samples has their comments.
DO $$
DECLARE
    comments text;
BEGIN
    SELECT string_agg(format('COMMENT ON COLUMN %s.%I IS %L', r.relation, s.attname, col_description(s.attrelid, s.attnum)), '; ') INTO comments
    FROM pg_catalog.pg_attribute s, unnest('{bench.warmup_samples,bench.total_samples,bench.total_warmup_samples}'::regclass[]) AS r (relation)
    WHERE s.attrelid = 'bench.samples'::regclass AND s.attnum > 0 AND NOT s.attisdropped
      AND EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = r.relation AND a.attname = s.attname AND NOT a.attisdropped);
    EXECUTE comments;
END $$;

-- What is new.

CREATE VIEW bench.metrics WITH (security_barrier) AS
SELECT s.at AS "time", m.metric, m.value, s.run_id, s.node, r.workload
FROM bench.samples s
JOIN bench.runs r USING (run_id)
CROSS JOIN LATERAL (
    VALUES ('tps', s.tps), ('failed', s.failed), ('aborted', s.aborted), ('retried', s.retried), ('skipped', s.skipped), ('late', s.late),
        ('latency_avg_ms', s.latency_avg_ms), ('latency_p50_ms', s.latency_p50_ms), ('latency_p95_ms', s.latency_p95_ms),
        ('latency_p99_ms', s.latency_p99_ms), ('latency_max_ms', s.latency_max_ms), ('lag_avg_ms', s.lag_avg_ms),
        ('wal_bytes', s.wal_bytes), ('wal_fpi', s.wal_fpi), ('checkpoints', s.checkpoints),
        ('blks_hit', s.blks_hit), ('blks_read', s.blks_read), ('temp_bytes', s.temp_bytes),
        ('cpu_user', s.cpu_user), ('cpu_system', s.cpu_system), ('cpu_iowait', s.cpu_iowait), ('cpu_steal', s.cpu_steal),
        ('cpu_idle', s.cpu_idle), ('disk_read_bytes', s.disk_read_bytes), ('disk_written_bytes', s.disk_written_bytes)
    UNION ALL
    SELECT 'wait ' || w.key, bench_internal.json_figure(w.value)
    FROM jsonb_each(CASE WHEN jsonb_typeof(s.waits) = 'object' THEN s.waits END) w
) AS m (metric, value)
WHERE m.value IS NOT NULL;
COMMENT ON VIEW bench.metrics IS 'Samples of the runs that bench.runs shows, one row per metric: time series as Grafana reads them';
COMMENT ON COLUMN bench.metrics."time" IS 'End of the interval';
COMMENT ON COLUMN bench.metrics.metric IS 'A column of bench.samples, or the word wait and a wait event, with its share of the clients'' time';
COMMENT ON COLUMN bench.metrics.value IS 'Value of the interval';
COMMENT ON COLUMN bench.metrics.run_id IS 'The run';
COMMENT ON COLUMN bench.metrics.node IS 'As in bench.samples';
COMMENT ON COLUMN bench.metrics.workload IS 'Name of the workload, or the mix as given';
GRANT SELECT ON bench.metrics TO PUBLIC;

CREATE FUNCTION bench.version()
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'version_wrapper';
COMMENT ON FUNCTION bench.version IS
'Returns the version of the library that this session has loaded, the PostgreSQL version that it was built for, and a hash of its sources: equal hashes are equal sources';

CREATE FUNCTION bench_internal.check_options(options text[], catalog oid) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_options_wrapper';
COMMENT ON FUNCTION bench_internal.check_options IS
'Validator of foreign-data wrapper bench_wire: raises an error for options of a foreign server or a user mapping that it does not accept.';

CREATE FOREIGN DATA WRAPPER bench_wire NO HANDLER VALIDATOR bench_internal.check_options;
COMMENT ON FOREIGN DATA WRAPPER bench_wire IS
'Servers for bench.run(driver => ''wire'', target => …): CREATE SERVER … FOREIGN DATA WRAPPER bench_wire OPTIONS (host …, port …, dbname …, sslmode …) and CREATE USER MAPPING … OPTIONS (user …, password …). It has no foreign tables.';

-- Captures.

CREATE TABLE bench.capture_list (
    name        text PRIMARY KEY,
    role        text NOT NULL,
    source      text NOT NULL,
    options     jsonb NOT NULL DEFAULT '{}',
    status      text NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz,
    secs        double precision,
    pid         int,
    calls       bigint,
    exec_ms     double precision,
    dealloc     bigint,
    notes       text[] NOT NULL DEFAULT '{}',
    error       jsonb
);
COMMENT ON TABLE bench.capture_list IS 'One row per capture, for bench.captures';
COMMENT ON COLUMN bench.capture_list.name IS 'Name of the capture';
COMMENT ON COLUMN bench.capture_list.role IS 'Role that captured';
COMMENT ON COLUMN bench.capture_list.source IS 'statements: pg_stat_statements; log: the server''s log';
COMMENT ON COLUMN bench.capture_list.options IS 'Options as given';
COMMENT ON COLUMN bench.capture_list.status IS 'As in bench.captures';
COMMENT ON COLUMN bench.capture_list.started_at IS 'When the capture began';
COMMENT ON COLUMN bench.capture_list.finished_at IS 'When the capture ended';
COMMENT ON COLUMN bench.capture_list.secs IS 'Seconds captured; 0: everything that the view had';
COMMENT ON COLUMN bench.capture_list.pid IS 'Process that captures';
COMMENT ON COLUMN bench.capture_list.calls IS 'As in bench.captures';
COMMENT ON COLUMN bench.capture_list.exec_ms IS 'As in bench.captures';
COMMENT ON COLUMN bench.capture_list.dealloc IS 'As in bench.captures';
COMMENT ON COLUMN bench.capture_list.notes IS 'As in bench.captures';
COMMENT ON COLUMN bench.capture_list.error IS 'As in bench.captures';

CREATE VIEW bench.captures WITH (security_barrier) AS
SELECT name, role, source, options,
       CASE WHEN status = 'capturing' AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = l.pid)
            THEN 'crashed' ELSE status END AS status,
       started_at, finished_at, secs, calls, exec_ms, dealloc, notes, error
FROM bench.capture_list l
WHERE bench_internal.is_visible(role);
COMMENT ON VIEW bench.captures IS 'One row per capture. Visible to roles with the privileges of the role that captured or of pg_read_all_stats. bench.capture_statements has its statements.';
COMMENT ON COLUMN bench.captures.name IS 'Name of the capture, as given to bench.run';
COMMENT ON COLUMN bench.captures.role IS 'Role that captured';
COMMENT ON COLUMN bench.captures.source IS 'statements: pg_stat_statements; log: the server''s log';
COMMENT ON COLUMN bench.captures.options IS 'Options as given';
COMMENT ON COLUMN bench.captures.status IS 'capturing, completed, canceled, failed or crashed';
COMMENT ON COLUMN bench.captures.started_at IS 'When the capture began';
COMMENT ON COLUMN bench.captures.finished_at IS 'When the capture ended';
COMMENT ON COLUMN bench.captures.secs IS 'Seconds between the two snapshots; 0: everything that pg_stat_statements had';
COMMENT ON COLUMN bench.captures.calls IS 'Calls of all top-level statements of the database in that time, kept or not';
COMMENT ON COLUMN bench.captures.exec_ms IS 'Their execution time in milliseconds';
COMMENT ON COLUMN bench.captures.dealloc IS 'How often pg_stat_statements dropped its least-executed entries in that time: their calls are missing';
COMMENT ON COLUMN bench.captures.notes IS 'What to know about the capture';
COMMENT ON COLUMN bench.captures.error IS 'Why it failed: sqlstate, message, detail, hint';

CREATE TABLE bench.capture_statements (
    capture          text NOT NULL,
    number           int NOT NULL,
    workload         text,
    weight           int,
    queryid          bigint,
    query            text,
    roles            text[],
    calls            bigint NOT NULL,
    rows             bigint,
    shared_blks_hit  bigint,
    shared_blks_read bigint,
    exec_ms          double precision,
    share            double precision NOT NULL,
    kept             boolean NOT NULL,
    reason           text,
    PRIMARY KEY (capture, number)
);
COMMENT ON TABLE bench.capture_statements IS 'One row per statement of a capture, or per kind of transaction of a capture from the log: counters as captured, and whether a workload was made of it. Visible like bench.captures.';
COMMENT ON COLUMN bench.capture_statements.capture IS 'Name of the capture';
COMMENT ON COLUMN bench.capture_statements.number IS 'Place in the capture, from 1: the largest share first';
COMMENT ON COLUMN bench.capture_statements.workload IS 'Workload that was made of it; NULL: none';
COMMENT ON COLUMN bench.capture_statements.weight IS 'Its weight in the mix';
COMMENT ON COLUMN bench.capture_statements.queryid IS 'As in pg_stat_statements';
COMMENT ON COLUMN bench.capture_statements.query IS 'Text as pg_stat_statements has it; NULL: not visible to the role that captured, or lost';
COMMENT ON COLUMN bench.capture_statements.roles IS 'Roles that executed it';
COMMENT ON COLUMN bench.capture_statements.calls IS 'Calls';
COMMENT ON COLUMN bench.capture_statements.rows IS 'Rows returned or changed by these calls';
COMMENT ON COLUMN bench.capture_statements.shared_blks_hit IS 'Blocks that they found in shared buffers';
COMMENT ON COLUMN bench.capture_statements.shared_blks_read IS 'Blocks that they read into shared buffers';
COMMENT ON COLUMN bench.capture_statements.exec_ms IS 'Their execution time in milliseconds';
COMMENT ON COLUMN bench.capture_statements.share IS 'Share of the execution time of all statements captured, kept or not';
COMMENT ON COLUMN bench.capture_statements.kept IS 'True if a workload was made of it';
COMMENT ON COLUMN bench.capture_statements.reason IS 'Why no workload was made of it; of a kept one, what its replay leaves out';

CREATE TABLE bench.captured_rows (
    workload   text NOT NULL,
    prefix     text NOT NULL,
    row_number int NOT NULL,
    weight     double precision,
    row        jsonb NOT NULL,
    PRIMARY KEY (workload, prefix, row_number)
);
COMMENT ON TABLE bench.captured_rows IS 'Values of parameters that a capture has kept, because no table''s rows serve. Visible to members of the role that captured.';
COMMENT ON COLUMN bench.captured_rows.workload IS 'Workload that was made by the capture';
COMMENT ON COLUMN bench.captured_rows.prefix IS 'Prefix of the feeder that selects these rows';
COMMENT ON COLUMN bench.captured_rows.row_number IS 'Number of the row, from 1';
COMMENT ON COLUMN bench.captured_rows.weight IS 'How often it is to be drawn, relative to the others';
COMMENT ON COLUMN bench.captured_rows.row IS 'Values by the names of variables';

ALTER TABLE bench.capture_statements ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON bench.capture_statements FOR SELECT USING (capture IN (SELECT c.name FROM bench.captures c));
COMMENT ON POLICY visible ON bench.capture_statements IS 'Shows the statements of captures that bench.captures shows';
ALTER TABLE bench.captured_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON bench.captured_rows FOR SELECT USING (workload IN (
    SELECT w.name FROM bench.workloads w JOIN pg_catalog.pg_roles r ON r.rolname OPERATOR(pg_catalog.=) w.owner::pg_catalog.name
    WHERE pg_catalog.pg_has_role(r.oid, 'USAGE')));
COMMENT ON POLICY visible ON bench.captured_rows IS 'Shows the values to members of the role that captured them';

-- What pg_stat_statements counted of a run's statements, for bench.fidelity.
CREATE TABLE bench.call_log (
    run_id           bigint NOT NULL,
    node             int NOT NULL DEFAULT 0,
    script           int NOT NULL,
    calls            bigint NOT NULL,
    rows             bigint NOT NULL,
    shared_blks_hit  bigint NOT NULL,
    shared_blks_read bigint NOT NULL,
    exec_ms          double precision NOT NULL,
    PRIMARY KEY (run_id, node, script)
);
COMMENT ON TABLE bench.call_log IS 'One row per run and script of a capture: what pg_stat_statements counted of its statements, for bench.fidelity';
COMMENT ON COLUMN bench.call_log.run_id IS 'The run';
COMMENT ON COLUMN bench.call_log.node IS 'As in bench.samples';
COMMENT ON COLUMN bench.call_log.script IS 'Number of the script in the run''s mix, from 0';
COMMENT ON COLUMN bench.call_log.calls IS 'Calls of the script''s statements';
COMMENT ON COLUMN bench.call_log.rows IS 'Rows that they returned or changed';
COMMENT ON COLUMN bench.call_log.shared_blks_hit IS 'Blocks that they found in shared buffers';
COMMENT ON COLUMN bench.call_log.shared_blks_read IS 'Blocks that they read into shared buffers';
COMMENT ON COLUMN bench.call_log.exec_ms IS 'Their execution time in milliseconds';

GRANT SELECT ON bench.captures, bench.capture_statements, bench.captured_rows TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('bench.capture_list', '');
SELECT pg_catalog.pg_extension_config_dump('bench.capture_statements', '');
SELECT pg_catalog.pg_extension_config_dump('bench.captured_rows', '');
SELECT pg_catalog.pg_extension_config_dump('bench.call_log', '');

CREATE FUNCTION bench.capture(name text, secs double precision DEFAULT 60, statements int DEFAULT 50, options jsonb DEFAULT '{}')
    RETURNS TABLE (workload text, weight int, calls bigint, share double precision, kept boolean, reason text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'capture_statements_wrapper';
COMMENT ON FUNCTION bench.capture IS
'Makes a benchmark of what pg_stat_statements counts in this database within secs seconds: a workload for each top-level statement, with feeders that draw its parameters from real rows, and the observed weights; bench.run(name) runs the mix. secs 0: takes what pg_stat_statements has already. statements: how many to keep at most. Options: by (time or calls: which statements are the most important), writes (true: also keeps statements that write), roles (own, all, or an array of names: whose statements; default all, for superusers those of superusers), list_length (elements of a squashed list of PostgreSQL 18), mask (true: values that the capture keeps are replaced by hashes of their length). Returns a row per statement; reason says why one was not kept. A capture of the same name is replaced.';

CREATE FUNCTION bench.start_capture(name text, secs double precision DEFAULT 60, statements int DEFAULT 50, options jsonb DEFAULT '{}')
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_capture_wrapper';
COMMENT ON FUNCTION bench.start_capture IS
'Starts a capture with the arguments of bench.capture in a background worker and returns immediately. See bench.captures for its status and bench.capture_statements for its statements.';

CREATE FUNCTION bench.cancel_capture(name text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'cancel_capture_wrapper';
COMMENT ON FUNCTION bench.cancel_capture IS
'Cancels a capture that bench.start_capture has started. Returns false if it was not under way. Requires the privileges of the role that captures or of pg_signal_backend.';

CREATE FUNCTION bench.drop_capture(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_capture_wrapper';
COMMENT ON FUNCTION bench.drop_capture IS
'Removes a capture with its workloads, feeders and kept values. Only the role that captured, its members and superusers may.';

CREATE FUNCTION bench.export_capture(name text, with_values boolean DEFAULT false)
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_capture_wrapper';
COMMENT ON FUNCTION bench.export_capture IS
'Returns a capture as one document for bench.import_capture, on a server with a copy of the data: statements, scripts and the queries of feeders. with_values: the values that the capture has kept as well, which may be personal data; a capture from the log is not exported without them. Only the role that captured, its members and superusers may: psql -XAtc "SELECT bench.export_capture(''shop'')" > shop.json';

CREATE FUNCTION bench.import_capture(document jsonb)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'import_capture_wrapper';
COMMENT ON FUNCTION bench.import_capture IS
'Stores the capture of a document made by bench.export_capture, as the calling role''s, and returns its name, which bench.run takes. Statements whose values were not exported have no workload. A capture of the same name is replaced.';

CREATE FUNCTION bench.fidelity(run_id bigint)
    RETURNS TABLE (workload text, calls bigint, rows_captured double precision, rows_replayed double precision,
                   blocks_captured double precision, blocks_replayed double precision, score double precision,
                   hit_captured double precision, hit_replayed double precision, read_captured double precision,
                   read_replayed double precision, ms_captured double precision, ms_replayed double precision, failed bigint)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'run_fidelity_wrapper';
COMMENT ON FUNCTION bench.fidelity IS
'Compares a run of a capture with the capture, per call of each statement: rows, blocks (hit and read together, and apart), and milliseconds. score: 1 if rows and blocks are equal, the product of both ratios (the smaller by the larger) otherwise, times the share of the transactions that did not fail. failed: transactions that errors ended. The last row, with workload NULL, is the whole: shares of the captured time that the statements of the run stand for, and their scores weighted by it.';

REVOKE ALL ON FUNCTION bench.capture, bench.start_capture, bench.cancel_capture, bench.drop_capture, bench.export_capture,
    bench.import_capture FROM PUBLIC;
-- Workload orders and its functions; whether a fixture's data are still right. Own workloads of these names stay.

ALTER TABLE bench.workloads ADD COLUMN mix text;
COMMENT ON COLUMN bench.workloads.mix IS 'Workloads that this name stands for, with their weights, as bench.run takes them; its own script is then empty. NULL: none';
ALTER TABLE bench.workloads ADD COLUMN private boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN bench.workloads.private IS 'True if its script has values of the server''s log: members of its owner see it, and nobody else';
ALTER TABLE bench.workloads ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON bench.workloads FOR SELECT USING (NOT private OR EXISTS (
    SELECT FROM pg_catalog.pg_roles r
    WHERE r.rolname OPERATOR(pg_catalog.=) owner::pg_catalog.name AND pg_catalog.pg_has_role(r.oid, 'USAGE')));
COMMENT ON POLICY visible ON bench.workloads IS 'Shows private workloads to members of their owner';
ALTER TABLE bench.workloads ADD COLUMN keying_secs double precision, ADD COLUMN think_secs double precision;
COMMENT ON COLUMN bench.workloads.keying_secs IS 'Time that a client waits before each transaction, in seconds, multiplied by variable keying of the run; no part of the latency. NULL: it does not wait';
COMMENT ON COLUMN bench.workloads.think_secs IS 'Mean of the exponentially distributed times that a client waits after each transaction, in seconds, multiplied by variable think of the run; no part of the latency. NULL: it does not wait';

-- The SELECTs that define the rows of built-in fixtures, of all their tables.

CREATE FUNCTION bench_internal.builtin_queries()
    RETURNS TABLE (fixture text, place int, relation text, ids bigint, rows_query text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'builtin_queries_wrapper';
COMMENT ON FUNCTION bench_internal.builtin_queries IS 'Queries of the built-in fixtures, for bench.fixture_queries.';

CREATE VIEW bench.fixture_queries AS
SELECT fixture, place, relation, ids, rows_query FROM bench_internal.builtin_queries();
COMMENT ON VIEW bench.fixture_queries IS 'The SELECTs that define the rows of built-in fixtures, one row per SELECT; bench.load produces the same rows natively';
COMMENT ON COLUMN bench.fixture_queries.fixture IS 'Name of the fixture';
COMMENT ON COLUMN bench.fixture_queries.place IS 'Position in the order of loading, starting at 1';
COMMENT ON COLUMN bench.fixture_queries.relation IS 'Table that the rows go to';
COMMENT ON COLUMN bench.fixture_queries.ids IS 'Number of ids in the fixture''s default size; an id can stand for several rows';
COMMENT ON COLUMN bench.fixture_queries.rows_query IS 'SELECT that defines the rows with the ids $1 to $2';
GRANT SELECT ON bench.fixture_queries TO PUBLIC;

-- Workload orders, derived from TPC-C revision 5.11 (https://www.tpc.org/tpcc/); not comparable with published TPC results.
-- Its five transactions are clauses 2.4 to 2.8; what is drawn is by clauses 2.1.6, 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT 'orders/' || name, current_user, 'orders', script, description, true
FROM (VALUES
    ('new_order',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
\set lines random(5, 15)
-- of each line: the item, by NURand(8191, 1, 100000), the warehouse that supplies it, in 1 % of cases another one, and how many
\set c_item hash(2) & 8191
\set others greatest(1, :scale - 1)
\set i1 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i2 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i3 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i4 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i5 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i6 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i7 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i8 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i9 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i10 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i11 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i12 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i13 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i14 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
-- the last line's item does not exist in 1 % of cases: then the transaction is rolled back
\set last_item CASE WHEN random(1, 100) = 1 THEN 100001 ELSE ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1 END
\set s1 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s2 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s3 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s4 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s5 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s6 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s7 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s8 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s9 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s10 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s11 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s12 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s13 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s14 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s15 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set q1 random(1, 10)
\set q2 random(1, 10)
\set q3 random(1, 10)
\set q4 random(1, 10)
\set q5 random(1, 10)
\set q6 random(1, 10)
\set q7 random(1, 10)
\set q8 random(1, 10)
\set q9 random(1, 10)
\set q10 random(1, 10)
\set q11 random(1, 10)
\set q12 random(1, 10)
\set q13 random(1, 10)
\set q14 random(1, 10)
\set q15 random(1, 10)
BEGIN;
SELECT w_tax, c_discount, c_last, c_credit FROM warehouse JOIN customer ON c_w_id = w_id
WHERE w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_next_o_id - 1 AS o_id, d_tax \gset
INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
VALUES (:w_id, :d_id, :o_id, :c_id, now(), :lines,
        (:w_id = ALL ((ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines]))::int);
INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (:w_id, :d_id, :o_id);
WITH line AS MATERIALIZED (
    SELECT l.number, l.i_id, l.supply_w_id, l.quantity, i_price * l.quantity AS amount
    FROM unnest((ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14]::int[])[1 : :lines - 1] || :last_item::int,
                (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines],
                (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[])[1 : :lines]) WITH ORDINALITY AS l (i_id, supply_w_id, quantity, number)
    JOIN item ON item.i_id = l.i_id
), taken AS (
    UPDATE stock
    SET s_quantity = s_quantity - need.quantity + CASE WHEN s_quantity - need.quantity >= 10 THEN 0 ELSE 91 END,
        s_ytd = s_ytd + need.quantity, s_order_cnt = s_order_cnt + need.lines,
        s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = :w_id THEN 0 ELSE need.lines END
    FROM (SELECT supply_w_id, i_id, sum(quantity)::int AS quantity, count(*)::int AS lines
          FROM line GROUP BY supply_w_id, i_id ORDER BY supply_w_id, i_id) AS need
    WHERE s_w_id = need.supply_w_id AND s_i_id = need.i_id
    RETURNING s_w_id, s_i_id, (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[:d_id] AS dist_info
), written AS (
    INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
    SELECT :w_id, :d_id, :o_id, number, i_id, supply_w_id, quantity, amount, dist_info
    FROM line JOIN taken ON s_w_id = supply_w_id AND s_i_id = i_id
    RETURNING ol_amount
)
SELECT count(*) AS written, sum(ol_amount) AS total FROM written \gset
\if :written < :lines
ROLLBACK;
\else
COMMIT;
\endif$$,
     'Enters an order of 5 to 15 lines; 1 % of the orders are rolled back, because an item does not exist'),
    ('payment',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
-- 60 % of the customers are found by their last name, whose number is NURand(255, 0, 999). Its constant lies between 65 and
-- 119, but for 96 and 112, above that of the load, which is 86
\set by_name random(1, 100) <= 60
\set delta 65 + (hash(3) & 65535) % 53
\set delta :delta + CASE WHEN :delta >= 96 THEN 1 ELSE 0 END
\set delta :delta + CASE WHEN :delta >= 112 THEN 1 ELSE 0 END
\set name ((random(0, 255) | random(0, 999)) + 86 + :delta) % 1000
-- 15 % of the customers are of another warehouse
\set others greatest(1, :scale - 1)
\set is_remote random(1, 100) <= 15
\set c_w_id CASE WHEN :is_remote THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set c_d_id CASE WHEN :is_remote THEN random(1, 10) ELSE :d_id END
\set cents random(100, 500000)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :cents::numeric / 100 WHERE w_id = :w_id
RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip;
UPDATE district SET d_ytd = d_ytd + :cents::numeric / 100 WHERE d_w_id = :w_id AND d_id = :d_id
RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip;
\if :by_name
SELECT c_id FROM (
    SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS found FROM customer
    WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id
      AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 100 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 10 % 10 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name % 10 + 1]
) AS same WHERE place = (found + 1) / 2 \gset
\endif
UPDATE customer
SET c_balance = c_balance - :cents::numeric / 100, c_ytd_payment = c_ytd_payment + :cents::numeric / 100,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE WHEN c_credit = 'BC'
             THEN left(c_id::text || ' ' || c_d_id::text || ' ' || c_w_id::text || ' ' || :d_id::int::text || ' ' || :w_id::int::text
                       || ' ' || (:cents::numeric / 100)::text || '|' || c_data, 500)
             ELSE c_data END
WHERE c_w_id = :c_w_id AND c_d_id = :c_d_id AND c_id = :c_id
RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
          c_credit_lim, c_discount, c_balance, CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END;
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
SELECT :c_id, :c_d_id, :c_w_id, d_id, w_id, now(), :cents::numeric / 100, w_name || '    ' || d_name
FROM warehouse JOIN district ON d_w_id = w_id WHERE w_id = :w_id AND d_id = :d_id;
COMMIT;$$,
     'Books a payment of a customer, in 15 % of cases of another warehouse'),
    ('order_status',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
-- 60 % of the customers are found by their last name, whose number is NURand(255, 0, 999). Its constant lies between 65 and
-- 119, but for 96 and 112, above that of the load, which is 86
\set by_name random(1, 100) <= 60
\set delta 65 + (hash(3) & 65535) % 53
\set delta :delta + CASE WHEN :delta >= 96 THEN 1 ELSE 0 END
\set delta :delta + CASE WHEN :delta >= 112 THEN 1 ELSE 0 END
\set name ((random(0, 255) | random(0, 999)) + 86 + :delta) % 1000
BEGIN;
\if :by_name
SELECT c_id FROM (
    SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS found FROM customer
    WHERE c_w_id = :w_id AND c_d_id = :d_id
      AND c_last = ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 100 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name / 10 % 10 + 1]
                || ('{BAR,OUGHT,ABLE,PRI,PRES,ESE,ANTI,CALLY,ATION,EING}'::text[])[:name % 10 + 1]
) AS same WHERE place = (found + 1) / 2 \gset
\endif
SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_c_id = :c_id
ORDER BY o_id DESC LIMIT 1 \gset
SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;
COMMIT;$$,
     'Reads a customer''s last order'),
    ('delivery',
$$\set w_id random(1, :scale)
\set carrier random(1, 10)
-- the oldest order of each district that is not delivered yet; a district that has none is passed over
BEGIN;
WITH oldest AS (
    SELECT n.no_d_id, n.no_o_id FROM generate_series(1, 10) AS d
    CROSS JOIN LATERAL (SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = :w_id AND no_d_id = d
                        ORDER BY no_o_id LIMIT 1 FOR UPDATE) AS n
), taken AS (
    DELETE FROM new_order USING oldest
    WHERE no_w_id = :w_id AND new_order.no_d_id = oldest.no_d_id AND new_order.no_o_id = oldest.no_o_id
    RETURNING new_order.no_d_id AS d_id, new_order.no_o_id AS o_id
), delivered AS (
    UPDATE orders SET o_carrier_id = :carrier FROM taken WHERE o_w_id = :w_id AND o_d_id = d_id AND orders.o_id = taken.o_id
    RETURNING o_d_id, o_c_id
), lines AS (
    UPDATE order_line SET ol_delivery_d = now() FROM taken WHERE ol_w_id = :w_id AND ol_d_id = d_id AND ol_o_id = o_id
    RETURNING ol_d_id, ol_amount
)
UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
FROM delivered JOIN (SELECT ol_d_id, sum(ol_amount) AS amount FROM lines GROUP BY ol_d_id) AS sums ON ol_d_id = o_d_id
WHERE c_w_id = :w_id AND c_d_id = o_d_id AND c_id = o_c_id;
COMMIT;$$,
     'Delivers the oldest order of each of the ten districts of a warehouse'),
    ('stock_level',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
\set threshold random(10, 20)
-- how many of the items of the district's last 20 orders are scarce
BEGIN;
SELECT d_next_o_id AS next FROM district WHERE d_w_id = :w_id AND d_id = :d_id \gset
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id >= :next - 20 AND ol_o_id < :next AND s_quantity < :threshold;
COMMIT;$$,
     'Counts the scarce items among those of a district''s last 20 orders')
) AS builtin (name, script, description)
ON CONFLICT (name) DO NOTHING;

-- With a client for each terminal, of which a warehouse has ten, and the times of clause 5.2.5.7. A terminal's warehouse stays the same,
-- and the district that its stock levels are of.
INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin, keying_secs, think_secs)
SELECT 'orders_keyed/' || t.name, w.owner, w.fixture,
       replace(CASE t.name WHEN 'stock_level' THEN replace(w.script, '\set d_id random(1, 10)', '\set d_id :client_id % 10 + 1') ELSE w.script END,
               '\set w_id random(1, :scale)', '\set w_id :client_id / 10 % :scale + 1'),
       w.description || '; at a terminal', true, t.keying_secs, t.think_secs
FROM (VALUES ('new_order', 18, 12), ('payment', 3, 12), ('order_status', 2, 10), ('delivery', 2, 5), ('stock_level', 2, 5))
     AS t (name, keying_secs, think_secs)
JOIN bench.workloads AS w ON w.name = 'orders/' || t.name AND w.builtin
ON CONFLICT (name) DO NOTHING;

INSERT INTO bench.workloads (name, owner, fixture, script, mix, description, builtin)
VALUES ('orders', current_user, 'orders', '',
        'orders/new_order@45,orders/payment@43,orders/order_status@4,orders/delivery@4,orders/stock_level@4',
        'Five transactions of wholesale suppliers, derived from TPC-C; not comparable with published TPC results', true),
       ('orders_deck', current_user, 'orders', '',
        'deck:orders/new_order@10,orders/payment@10,orders/order_status@1,orders/delivery@1,orders/stock_level@1',
        'As orders, dealt from shuffled decks of 23 cards; derived from TPC-C; not comparable with published TPC results', true),
       ('orders_keyed', current_user, 'orders', '',
        'orders_keyed/new_order@45,orders_keyed/payment@43,orders_keyed/order_status@4,orders_keyed/delivery@4,orders_keyed/stock_level@4',
        'As orders, with keying and think times, a client for each terminal; derived from TPC-C; not comparable with published TPC results', true)
ON CONFLICT (name) DO NOTHING;

-- Workload orders_functions: the transactions of workload orders by one call of a function each, which are part of the fixture.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT 'orders_functions/' || name, current_user, 'orders', script, description, true
FROM (VALUES
    ('new_order',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
\set lines random(5, 15)
-- of each line: the item, by NURand(8191, 1, 100000), the warehouse that supplies it, in 1 % of cases another one, and how many
\set c_item hash(2) & 8191
\set others greatest(1, :scale - 1)
\set i1 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i2 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i3 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i4 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i5 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i6 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i7 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i8 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i9 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i10 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i11 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i12 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i13 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
\set i14 ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1
-- the last line's item does not exist in 1 % of cases: then the transaction is rolled back
\set last_item CASE WHEN random(1, 100) = 1 THEN 100001 ELSE ((random(0, 8191) | random(1, 100000)) + :c_item) % 100000 + 1 END
\set s1 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s2 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s3 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s4 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s5 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s6 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s7 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s8 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s9 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s10 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s11 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s12 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s13 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s14 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set s15 CASE WHEN random(1, 100) = 1 THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set q1 random(1, 10)
\set q2 random(1, 10)
\set q3 random(1, 10)
\set q4 random(1, 10)
\set q5 random(1, 10)
\set q6 random(1, 10)
\set q7 random(1, 10)
\set q8 random(1, 10)
\set q9 random(1, 10)
\set q10 random(1, 10)
\set q11 random(1, 10)
\set q12 random(1, 10)
\set q13 random(1, 10)
\set q14 random(1, 10)
\set q15 random(1, 10)
SELECT order_id, total FROM orders_new_order(:w_id, :d_id, :c_id,
    (ARRAY[:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14]::int[])[1 : :lines - 1] || :last_item::int,
    (ARRAY[:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8, :s9, :s10, :s11, :s12, :s13, :s14, :s15]::int[])[1 : :lines],
    (ARRAY[:q1, :q2, :q3, :q4, :q5, :q6, :q7, :q8, :q9, :q10, :q11, :q12, :q13, :q14, :q15]::int[])[1 : :lines]);$$,
     'Enters an order by one call; 1 % of the orders are rolled back, because an item does not exist'),
    ('payment',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
-- 60 % of the customers are found by their last name, whose number is NURand(255, 0, 999). Its constant lies between 65 and
-- 119, but for 96 and 112, above that of the load, which is 86
\set by_name random(1, 100) <= 60
\set delta 65 + (hash(3) & 65535) % 53
\set delta :delta + CASE WHEN :delta >= 96 THEN 1 ELSE 0 END
\set delta :delta + CASE WHEN :delta >= 112 THEN 1 ELSE 0 END
\set name ((random(0, 255) | random(0, 999)) + 86 + :delta) % 1000
-- 15 % of the customers are of another warehouse
\set others greatest(1, :scale - 1)
\set is_remote random(1, 100) <= 15
\set c_w_id CASE WHEN :is_remote THEN (:w_id + random(1, :others) - 1) % :scale + 1 ELSE :w_id END
\set c_d_id CASE WHEN :is_remote THEN random(1, 10) ELSE :d_id END
\set cents random(100, 500000)
\if :by_name
SELECT paying_customer, balance FROM orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, NULL, :name, :cents);
\else
SELECT paying_customer, balance FROM orders_payment(:w_id, :d_id, :c_w_id, :c_d_id, :c_id, NULL, :cents);
\endif$$,
     'Books a payment by one call'),
    ('order_status',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
-- NURand(1023, 1, 3000); its constant is the same in all transactions of a run
\set c_id ((random(0, 1023) | random(1, 3000)) + (hash(1) & 1023)) % 3000 + 1
-- 60 % of the customers are found by their last name, whose number is NURand(255, 0, 999). Its constant lies between 65 and
-- 119, but for 96 and 112, above that of the load, which is 86
\set by_name random(1, 100) <= 60
\set delta 65 + (hash(3) & 65535) % 53
\set delta :delta + CASE WHEN :delta >= 96 THEN 1 ELSE 0 END
\set delta :delta + CASE WHEN :delta >= 112 THEN 1 ELSE 0 END
\set name ((random(0, 255) | random(0, 999)) + 86 + :delta) % 1000
\if :by_name
SELECT * FROM orders_status(:w_id, :d_id, NULL, :name);
\else
SELECT * FROM orders_status(:w_id, :d_id, :c_id, NULL);
\endif$$,
     'Reads a customer''s last order by one call'),
    ('delivery',
$$\set w_id random(1, :scale)
\set carrier random(1, 10)
SELECT orders_delivery(:w_id, :carrier);$$,
     'Delivers the oldest order of each of the ten districts of a warehouse by one call'),
    ('stock_level',
$$\set w_id random(1, :scale)
\set d_id random(1, 10)
\set threshold random(10, 20)
SELECT orders_stock_level(:w_id, :d_id, :threshold);$$,
     'Counts the scarce items among those of a district''s last 20 orders by one call')
) AS builtin (name, script, description)
ON CONFLICT (name) DO NOTHING;

INSERT INTO bench.workloads (name, owner, fixture, script, mix, description, builtin)
VALUES ('orders_functions', current_user, 'orders', '',
        'orders_functions/new_order@45,orders_functions/payment@43,orders_functions/order_status@4,orders_functions/delivery@4,orders_functions/stock_level@4',
        'As orders, with one call of a function for each transaction; derived from TPC-C; not comparable with published TPC results', true)
ON CONFLICT (name) DO NOTHING;

-- Whether a fixture's data are still right. All of it runs with the caller's rights, on the tables that a run of theirs would use.

CREATE FUNCTION bench_internal.usable_fixture(fixture text)
    RETURNS TABLE (schema text, rows bigint, scale bigint, relations oid[])
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'usable_fixture_wrapper';
COMMENT ON FUNCTION bench_internal.usable_fixture IS
'Returns the loaded fixture of a name that a run of the caller would use, with its tables and their partitions; raises 55000 if there is none. schema is NULL for tables of pgbench -i. For bench.check.';

CREATE FUNCTION bench_internal.conditions(fixture text)
    RETURNS TABLE (condition text, broken text, unjudged text)
    IMMUTABLE PARALLEL SAFE LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.condition, c.broken, c.unjudged FROM (VALUES
    -- TPC-C revision 5.11, clauses 1.2 and 3.3.2
    ('orders', 'rows of the tables whose size is fixed',
     'SELECT format(''%%s: %%s rows instead of %%s'', name, have, want) FROM (VALUES
          (''warehouse'', (SELECT count(*) FROM %1$I.warehouse), %2$s), (''district'', (SELECT count(*) FROM %1$I.district), %2$s * 10),
          (''customer'', (SELECT count(*) FROM %1$I.customer), %2$s * 30000), (''stock'', (SELECT count(*) FROM %1$I.stock), %2$s * 100000),
          (''item'', (SELECT count(*) FROM %1$I.item), least(%2$s, 1) * 100000)) AS t (name, have, want)
      WHERE have <> want', NULL),
    ('orders', '1: w_ytd is the sum of d_ytd of the warehouse',
     'SELECT format(''warehouse %%s: %%s, districts %%s'', w_id, w_ytd, ytd)
      FROM %1$I.warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM %1$I.district GROUP BY d_w_id) AS d ON d_w_id = w_id
      WHERE w_ytd IS DISTINCT FROM ytd', NULL),
    ('orders', '2: d_next_o_id - 1 is the last order and the last new order of the district',
     'SELECT format(''warehouse %%s, district %%s: next order %%s, last order %%s, last new order %%s'', d_w_id, d_id, d_next_o_id, o.last, n.last)
      FROM %1$I.district
      LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM %1$I.orders GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id
      LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last FROM %1$I.new_order GROUP BY no_w_id, no_d_id) AS n
          ON no_w_id = d_w_id AND no_d_id = d_id
      WHERE o.last IS DISTINCT FROM d_next_o_id - 1 OR n.last <> d_next_o_id - 1', NULL),
    ('orders', '3: new orders of a district are numbered without gaps',
     'SELECT format(''warehouse %%s, district %%s: %%s new orders from %%s to %%s'', no_w_id, no_d_id, count(*), min(no_o_id), max(no_o_id))
      FROM %1$I.new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)', NULL),
    ('orders', '4: a district has as many order lines as its orders count',
     'SELECT format(''warehouse %%s, district %%s: %%s lines, orders count %%s'', coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id), have, want)
      FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS want FROM %1$I.orders GROUP BY o_w_id, o_d_id) AS o
      FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS have FROM %1$I.order_line GROUP BY ol_w_id, ol_d_id) AS l
          ON ol_w_id = o_w_id AND ol_d_id = o_d_id
      WHERE have IS DISTINCT FROM want', NULL),
    ('orders', '5: an order has no carrier exactly if it is a new order',
     'SELECT format(''warehouse %%s, district %%s, order %%s'', coalesce(o_w_id, no_w_id), coalesce(o_d_id, no_d_id), coalesce(o_id, no_o_id))
      FROM %1$I.orders FULL JOIN %1$I.new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
      WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)', NULL),
    ('orders', '6: an order has as many lines as it counts',
     'SELECT format(''warehouse %%s, district %%s, order %%s: %%s lines, counts %%s'', coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id),
                    coalesce(o_id, ol_o_id), have, o_ol_cnt)
      FROM %1$I.orders
      FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS have FROM %1$I.order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
          ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE have IS DISTINCT FROM o_ol_cnt', NULL),
    ('orders', '7: a line has no delivery time exactly if its order has no carrier',
     'SELECT format(''warehouse %%s, district %%s, order %%s, line %%s'', ol_w_id, ol_d_id, ol_o_id, ol_number)
      FROM %1$I.order_line LEFT JOIN %1$I.orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
      WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)', NULL),
    ('orders', '8: w_ytd is the sum of the payments to the warehouse',
     'SELECT format(''warehouse %%s: %%s, history %%s'', w_id, w_ytd, paid)
      FROM %1$I.warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM %1$I.history GROUP BY h_w_id) AS h ON h_w_id = w_id
      WHERE w_ytd IS DISTINCT FROM paid', NULL),
    ('orders', '9: d_ytd is the sum of the payments to the district',
     'SELECT format(''warehouse %%s, district %%s: %%s, history %%s'', d_w_id, d_id, d_ytd, paid)
      FROM %1$I.district
      LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM %1$I.history GROUP BY h_w_id, h_d_id) AS h ON h_w_id = d_w_id AND h_d_id = d_id
      WHERE d_ytd IS DISTINCT FROM paid', NULL),
    ('orders', '10: c_balance is what was delivered to the customer, less the payments',
     'SELECT format(''warehouse %%s, district %%s, customer %%s: %%s, delivered %%s, paid %%s'', c_w_id, c_d_id, c_id, c_balance, delivered, paid)
      FROM %1$I.customer
      LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM %1$I.orders
                 JOIN %1$I.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
      LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM %1$I.history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
          ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
      WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)', NULL),
    ('orders', '11: a district has 2100 more orders than new orders',
     'SELECT format(''warehouse %%s, district %%s: %%s orders, %%s new orders'', o_w_id, o_d_id, all_orders, coalesce(new_orders, 0))
      FROM (SELECT o_w_id, o_d_id, count(*) AS all_orders FROM %1$I.orders GROUP BY o_w_id, o_d_id) AS o
      LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS new_orders FROM %1$I.new_order GROUP BY no_w_id, no_d_id) AS n
          ON no_w_id = o_w_id AND no_d_id = o_d_id
      WHERE all_orders - coalesce(new_orders, 0) <> 2100',
     'SELECT ''holds until the first delivery after the load'' FROM %1$I.orders WHERE o_id > 2100 AND o_carrier_id IS NOT NULL LIMIT 1'),
    ('orders', '12: c_balance and c_ytd_payment are together what was delivered to the customer',
     'SELECT format(''warehouse %%s, district %%s, customer %%s: %%s and %%s, delivered %%s'', c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered)
      FROM %1$I.customer
      LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM %1$I.orders
                 JOIN %1$I.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
      WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)', NULL),
    -- Balances begin with 0, and each transaction adds to all of them.
    ('tpcb', 'rows of the tables whose size is fixed',
     'SELECT format(''%%s: %%s rows instead of %%s'', name, have, want) FROM (VALUES
          (''pgbench_branches'', (SELECT count(*) FROM %1$I.pgbench_branches), %2$s),
          (''pgbench_tellers'', (SELECT count(*) FROM %1$I.pgbench_tellers), %2$s * 10),
          (''pgbench_accounts'', (SELECT count(*) FROM %1$I.pgbench_accounts), %2$s * 100000)) AS t (name, have, want)
      WHERE have <> want', NULL),
    ('tpcb', 'the tellers'' balances add up to the branches''',
     'SELECT format(''tellers %%s, branches %%s'', t, b)
      FROM (SELECT coalesce(sum(tbalance), 0) AS t FROM %1$I.pgbench_tellers) AS t, (SELECT coalesce(sum(bbalance), 0) AS b FROM %1$I.pgbench_branches) AS b
      WHERE t <> b', NULL),
    ('tpcb', 'the accounts'' balances add up to the branches''',
     'SELECT format(''accounts %%s, branches %%s'', a, b)
      FROM (SELECT coalesce(sum(abalance), 0) AS a FROM %1$I.pgbench_accounts) AS a, (SELECT coalesce(sum(bbalance), 0) AS b FROM %1$I.pgbench_branches) AS b
      WHERE a <> b',
     'SELECT ''a run of tpcb_simple_update has changed accounts alone'' FROM bench.runs
      WHERE workload ~ ''simple.update'' AND status <> ''failed'' LIMIT 1'),
    ('tpcb', 'the history''s deltas add up to the accounts'' balances',
     'SELECT format(''history %%s, accounts %%s'', h, a)
      FROM (SELECT coalesce(sum(delta), 0) AS h FROM %1$I.pgbench_history) AS h, (SELECT coalesce(sum(abalance), 0) AS a FROM %1$I.pgbench_accounts) AS a
      WHERE h <> a',
     'SELECT ''a run has truncated pgbench_history'' FROM bench.runs WHERE before ~ ''truncate'' LIMIT 1'),
    ('pk', 'ids 1 to rows, each once',
     'SELECT format(''%%s rows with %%s ids from %%s to %%s instead of %%s'', count(*), count(DISTINCT id), min(id), max(id), %3$s) FROM %1$I.pk
      HAVING (count(*), count(DISTINCT id), coalesce(min(id), 1), coalesce(max(id), 0)) <> (%3$s, %3$s, 1, %3$s)', NULL),
    ('name', 'ids 1 to rows, each once',
     'SELECT format(''%%s rows with %%s ids from %%s to %%s instead of %%s'', count(*), count(DISTINCT id), min(id), max(id), %3$s) FROM %1$I.name
      HAVING (count(*), count(DISTINCT id), coalesce(min(id), 1), coalesce(max(id), 0)) <> (%3$s, %3$s, 1, %3$s)', NULL),
    ('events', 'as many rows as were loaded',
     'SELECT format(''%%s rows instead of %%s'', count(*), %3$s) FROM %1$I.events HAVING count(*) <> %3$s', NULL)
    ) AS c (of_fixture, condition, broken, unjudged)
    WHERE c.of_fixture = fixture
$$;
COMMENT ON FUNCTION bench_internal.conditions IS
'Returns the conditions of a fixture: what should hold, a SELECT of the places where it does not, and a SELECT of why the condition cannot be judged. %1$I is the schema, %2$s the scale, %3$s the number of rows. For bench.check.';

CREATE FUNCTION bench_internal.check_index(relation regclass)
    RETURNS TABLE (ok boolean, detail text) VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck');
BEGIN
    IF home IS NULL THEN
        RETURN QUERY SELECT NULL::boolean, 'extension amcheck is not installed';
        RETURN;
    END IF;
    PERFORM bench_internal.check_extension('amcheck');
    BEGIN
        EXECUTE format('SELECT %I.bt_index_check($1, true)', home) USING relation;
        RETURN QUERY SELECT true, NULL::text;
    EXCEPTION
        WHEN insufficient_privilege THEN RETURN QUERY SELECT NULL::boolean, SQLERRM;
        WHEN index_corrupted OR data_corrupted THEN RETURN QUERY SELECT false, SQLERRM;
    END;
END $$;
COMMENT ON FUNCTION bench_internal.check_index IS
'Returns what bt_index_check of extension amcheck says of an index with all rows of its table: NULL without the extension or the privilege. For bench.check.';

CREATE FUNCTION bench.check(fixture text)
    RETURNS TABLE (condition text, ok boolean, detail text)
    VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    loaded record;
    rule record;
    index record;
    reason text;
    is_known boolean := false;
BEGIN
    SELECT * INTO STRICT loaded FROM bench_internal.usable_fixture(fixture);
    IF loaded.schema IS NULL THEN
        SELECT n.nspname INTO STRICT loaded.schema FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = loaded.relations[1];
    END IF;
    FOR rule IN SELECT * FROM bench_internal.conditions(fixture) LOOP
        is_known := true;
        condition := rule.condition;
        ok := NULL;
        detail := NULL;
        IF rule.unjudged IS NOT NULL THEN
            EXECUTE format(rule.unjudged, loaded.schema, loaded.scale, loaded.rows) INTO detail;
        END IF;
        IF detail IS NULL THEN
            EXECUTE 'SELECT count(*) = 0, nullif(concat_ws(E''; '', array_to_string((array_agg(place))[1:3], E''; ''),'
                || ' CASE WHEN count(*) > 3 THEN format(''and %s more'', count(*) - 3) END), '''')'
                || ' FROM (' || format(rule.broken, loaded.schema, loaded.scale, loaded.rows) || ') AS broken (place)'
                INTO ok, detail;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF NOT is_known THEN
        SELECT format('%I.%I', loaded.schema, c.relname) INTO reason FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = loaded.schema AND c.relname = fixture AND c.relkind IN ('r', 'p') AND c.oid = ANY (loaded.relations);
        IF reason IS NOT NULL THEN
            condition := 'as many rows as were loaded, or more';
            EXECUTE format('SELECT CASE WHEN count(*) >= $1 THEN true END, format(''%%s rows, %%s were loaded'', count(*), $1) FROM %s', reason)
                INTO ok, detail USING loaded.rows;
            RETURN NEXT;
        END IF;
    END IF;
    FOR index IN
        SELECT i.indexrelid::regclass AS name, c.relname AS table_name, x.relname FROM pg_index i
        JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
        WHERE i.indrelid = ANY (loaded.relations) AND x.relkind = 'i' AND m.amname = 'btree' AND i.indisvalid
        ORDER BY array_position(loaded.relations, c.oid), x.relname
    LOOP
        condition := format('index %s of %s agrees with its table', index.relname, index.table_name);
        SELECT c.ok, c.detail INTO ok, detail FROM bench_internal.check_index(index.name) AS c;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION bench.check IS
'Checks whether a fixture''s data are still right, in the tables that a run of yours would use: one row per condition. ok is NULL where a condition cannot be judged, and detail says why; if it is false, detail names the first three places. orders: the twelve conditions of TPC-C 3.3.2, of which the eleventh is judged until the first delivery after the load, and the second and third pass over districts without new orders. tpcb: balances and history add up. pk, name, events: rows and ids as loaded. Other fixtures: the number of rows. All fixtures: B-tree indexes by bt_index_check, if extension amcheck is installed. Reads all rows.';

CREATE FUNCTION bench.check_ok(fixture text, description text DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    judged bigint;
    wrong text;
    reasons text;
BEGIN
    SELECT count(c.ok), string_agg(c.condition || coalesce(': ' || c.detail, ''), E'\n') FILTER (WHERE NOT c.ok),
           string_agg(DISTINCT c.detail, '; ') FILTER (WHERE c.ok IS NULL)
    INTO judged, wrong, reasons FROM bench.check(fixture) AS c;
    RETURN bench_internal.tap(judged > 0 AND wrong IS NULL, coalesce(description, format('fixture %s: check', fixture)),
                              coalesce(wrong, CASE WHEN judged = 0 THEN concat_ws(': ', 'no condition was judged', reasons) END));
END $$;
COMMENT ON FUNCTION bench.check_ok IS
'pgTAP assertion: every condition that bench.check judges holds. Fails if none was judged.';

DROP FUNCTION bench_internal.replace_function;

CREATE FUNCTION bench.capture_log(
    name    text,
    log     regclass DEFAULT NULL,
    file    text DEFAULT NULL,
    format  text DEFAULT NULL,
    shapes  int DEFAULT 50,
    options jsonb DEFAULT '{}')
    RETURNS TABLE (workload text, weight int, calls bigint, share double precision, kept boolean, reason text,
                   exec_ms_avg double precision, value_rows bigint, query text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'capture_log_wrapper';
COMMENT ON FUNCTION bench.capture_log IS
'Makes a mix of workloads from the transactions in a log of the server: a script for each shape, which is the sequence of statements without their values, weighted by how often it occurred. bench.run(name) then replays them at any rate, each transaction with the values of one that was logged. It is not an exact replay, which pgreplay does: order and sessions are not kept. log is a table with the columns of csvlog, or with one column of lines of jsonlog; file is a file or directory of the server, for roles with the privileges of pg_read_server_files; format, csv or json, is found out unless given. shapes limits the number of workloads, at most 128. options: application and database (only theirs), roles (own, all, or an array of names; by default all, and for superusers those of superusers), mask (hash texts), max_rows (rows of values per shape), sample_rate (log_transaction_sample_rate as logged), think_times (each, mean or none), writes (keep transactions that change data). Returns a row per shape, and per reason why transactions cannot be replayed: calls are transactions, share is of the time in the server, or of the transactions where durations are not logged, exec_ms_avg is milliseconds per transaction.';

REVOKE ALL ON FUNCTION bench.capture_log FROM PUBLIC;
