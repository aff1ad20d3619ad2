-- Views. What belongs to a run is for those whom bench_internal.is_visible lets see it.

-- Nobody's row may keep others from reading a view, so no sum, product or cast of one fails, whatever the tables hold.

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

CREATE FUNCTION bench_internal.is_visible(role text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'is_visible_wrapper';
COMMENT ON FUNCTION bench_internal.is_visible IS 'Whether the current role may see what belongs to a run, sweep or load of this role: it has the role''s privileges or those of pg_read_all_stats, or is a superuser. Runs of a dropped role are for the latter two.';

CREATE VIEW bench.runs WITH (security_barrier) AS
SELECT run_id, sweep_id, workload, fixture, fixture_rows, fixture_options, script, clients, secs, transactions, warmup, rate, latency_limit, max_tries, seed,
       driver, query_mode, results, nodes, variables, settings, system, sample_interval, tags,
       bench_internal.status_of(status, segment, run_id) AS status, started_at, finished_at, role, error, horizon_held,
       server_version, extension_version, environment, origin, part_of
FROM bench.run_log
WHERE bench_internal.is_visible(role);
COMMENT ON VIEW bench.runs IS 'Runs, as they were asked for and how they ended. Visible to roles with the privileges of the run''s role or of pg_read_all_stats.';
COMMENT ON COLUMN bench.runs.run_id IS 'The run';
COMMENT ON COLUMN bench.runs.sweep_id IS 'The sweep it is part of';
COMMENT ON COLUMN bench.runs.workload IS 'The workload''s name, or the mix as given';
COMMENT ON COLUMN bench.runs.fixture IS 'The fixture it worked on; several are separated by commas';
COMMENT ON COLUMN bench.runs.fixture_rows IS 'Rows that each of these was loaded with';
COMMENT ON COLUMN bench.runs.fixture_options IS 'Options of bench.load that each of these was loaded with; null for one that is not the extension''s own';
COMMENT ON COLUMN bench.runs.script IS 'The script as run; those of a mix each under a comment with its name and weight';
COMMENT ON COLUMN bench.runs.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.runs.secs IS 'Measured seconds asked for';
COMMENT ON COLUMN bench.runs.transactions IS 'Transactions per client asked for';
COMMENT ON COLUMN bench.runs.warmup IS 'Seconds run before the measuring';
COMMENT ON COLUMN bench.runs.rate IS 'Transactions per second that were to be started, over all clients; NULL: each after the other';
COMMENT ON COLUMN bench.runs.latency_limit IS 'Milliseconds above which a transaction was late';
COMMENT ON COLUMN bench.runs.max_tries IS 'Tries per transaction at a serialization failure or deadlock; 0: no limit';
COMMENT ON COLUMN bench.runs.seed IS 'Seed of the random numbers, given or drawn';
COMMENT ON COLUMN bench.runs.driver IS 'engine: inside the server';
COMMENT ON COLUMN bench.runs.query_mode IS 'simple: values as text, extended: as parameters, both parsed and planned each time; prepared: parsed once, planned as prepared statements are';
COMMENT ON COLUMN bench.runs.results IS 'serialize: rows turned into text and dropped; discard: not looked at';
COMMENT ON COLUMN bench.runs.nodes IS 'local: the clients ran on this server only; workers, all: on those nodes of the Citus cluster, as many on each; see bench.nodes';
COMMENT ON COLUMN bench.runs.variables IS 'Script variables given';
COMMENT ON COLUMN bench.runs.settings IS 'Configuration parameters set in every client''s session';
COMMENT ON COLUMN bench.runs.system IS 'Parameters of the whole server that its sweep had set for it';
COMMENT ON COLUMN bench.runs.sample_interval IS 'Seconds';
COMMENT ON COLUMN bench.runs.tags IS 'The user''s own labels';
COMMENT ON COLUMN bench.runs.status IS 'starting, running, completed, incomplete (clients were lost, or not everything could be written: see error), canceled, failed (nothing was measured), crashed (the coordinator is gone)';
COMMENT ON COLUMN bench.runs.started_at IS 'When the clients were let loose';
COMMENT ON COLUMN bench.runs.finished_at IS 'When the results were written';
COMMENT ON COLUMN bench.runs.role IS 'The role that called and that the clients ran as';
COMMENT ON COLUMN bench.runs.error IS 'Why it did not complete: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.runs.horizon_held IS 'Whether a waiting caller held back the xmin horizon: then dead rows could not be pruned';
COMMENT ON COLUMN bench.runs.server_version IS 'server_version at that time';
COMMENT ON COLUMN bench.runs.extension_version IS 'The extension''s version at that time';
COMMENT ON COLUMN bench.runs.environment IS 'What it ran on: server_settings (not at their defaults, in a client''s session), version, processors, memory, kernel, filesystem, costs of a clock read and of a flush to disk, unserved_defaults (parameters that were on and that the engine''s sessions do not honour), transaction ids used';
COMMENT ON COLUMN bench.runs.origin IS 'Of a run that bench.import has taken over: run_id, role, database, system_identifier (see pg_control_system) and started_at where it ran, exported_at, imported_at; NULL for those made here';
COMMENT ON COLUMN bench.runs.part_of IS 'Of what is this node''s part of another node''s run, while it is not fetched: node, name and run_id there';

CREATE VIEW bench.errors WITH (security_barrier) AS
SELECT e.run_id, e.node, e.sqlstate, e.message, e.detail, e.count, e.retried, e.failed, e.first_at
FROM bench.error_log e JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON VIEW bench.errors IS 'Errors of a run''s clients by SQLSTATE, those that were retried included';
COMMENT ON COLUMN bench.errors.run_id IS 'The run';
COMMENT ON COLUMN bench.errors.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.errors.sqlstate IS 'SQLSTATE';
COMMENT ON COLUMN bench.errors.message IS 'Message of the first one';
COMMENT ON COLUMN bench.errors.detail IS 'Where in the script the first one was, and what the server added to it';
COMMENT ON COLUMN bench.errors.count IS 'How many, in all phases of the run';
COMMENT ON COLUMN bench.errors.retried IS 'Of these: tries that were followed by another one';
COMMENT ON COLUMN bench.errors.failed IS 'Of these: transactions that were given up';
COMMENT ON COLUMN bench.errors.first_at IS 'When the first one came';

CREATE VIEW bench.scripts WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.workload, s.weight, s.fixture, s.transactions,
       s.transactions / nullif((SELECT sum(bench_internal.figure(x.secs) ORDER BY x.elapsed) FROM bench.samples x WHERE x.run_id = s.run_id AND x.node = s.node), 0) AS tps,
       s.failed, s.retried, s.skipped, s.late, s.latency_avg_ms, s.latency_stddev_ms, s.latency_p50_ms, s.latency_p95_ms,
       s.latency_p99_ms, s.latency_max_ms
FROM bench.script_log s JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON VIEW bench.scripts IS 'One row per run, node and script of its mix: what was measured of it';
COMMENT ON COLUMN bench.scripts.run_id IS 'The run';
COMMENT ON COLUMN bench.scripts.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.scripts.script IS 'Index of the script in the mix, from 0';
COMMENT ON COLUMN bench.scripts.workload IS 'The workload''s name';
COMMENT ON COLUMN bench.scripts.weight IS 'Its share of the transactions, relative to the other weights';
COMMENT ON COLUMN bench.scripts.fixture IS 'The fixture it worked on';
COMMENT ON COLUMN bench.scripts.transactions IS 'Transactions committed while measuring';
COMMENT ON COLUMN bench.scripts.tps IS 'transactions per measured second';
COMMENT ON COLUMN bench.scripts.failed IS 'Transactions given up while measuring';
COMMENT ON COLUMN bench.scripts.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.scripts.skipped IS 'Transactions not started, under a rate, because they would have been above the latency_limit';
COMMENT ON COLUMN bench.scripts.late IS 'Committed transactions above the latency_limit';
COMMENT ON COLUMN bench.scripts.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_stddev_ms IS 'Standard deviation of the latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p50_ms IS 'Median latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p99_ms IS '99th percentile in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_max_ms IS 'Greatest latency in milliseconds';

CREATE VIEW bench.statements WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.command, s.line, s.statement, s.count, s.failed, s.retried, s.latency_avg_ms,
       s.latency_p95_ms, s.plan, s.generic_plans, s.custom_plans, s.plan_changes, s.workers_planned, s.workers_launched,
       s.rows, s.writes, s.empty_writes
FROM bench.statement_log s JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON VIEW bench.statements IS 'One row per run, node, script and command, meta commands too: what was measured of it';
COMMENT ON COLUMN bench.statements.run_id IS 'The run';
COMMENT ON COLUMN bench.statements.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.statements.script IS 'Index of the script in the mix, from 0';
COMMENT ON COLUMN bench.statements.command IS 'Place of the command in the script, from 1';
COMMENT ON COLUMN bench.statements.line IS 'Line of the script that it begins at, from 1';
COMMENT ON COLUMN bench.statements.statement IS 'The command as written';
COMMENT ON COLUMN bench.statements.count IS 'Executions without an error while measuring, those of tries that were repeated included';
COMMENT ON COLUMN bench.statements.failed IS 'Transactions given up at this command';
COMMENT ON COLUMN bench.statements.retried IS 'Tries that ended at this command and were followed by another one';
COMMENT ON COLUMN bench.statements.latency_avg_ms IS 'Mean time of an execution in milliseconds';
COMMENT ON COLUMN bench.statements.latency_p95_ms IS '95th percentile of the time of an execution in milliseconds, within 2 % from a microsecond on';
COMMENT ON COLUMN bench.statements.plan IS 'The plan as executed, in EXPLAIN''s form under a line that says whether it was generic or custom; one that changed has each of its forms, with when it was first seen. NULL for what has none: meta commands, utilities, several statements at once, as rules make them';
COMMENT ON COLUMN bench.statements.generic_plans IS 'Executions by a generic plan, in all phases';
COMMENT ON COLUMN bench.statements.custom_plans IS 'Executions by a plan made for the values at hand, in all phases';
COMMENT ON COLUMN bench.statements.plan_changes IS 'How often a client had a plan of another form than the time before, the step from custom to generic apart';
COMMENT ON COLUMN bench.statements.workers_planned IS 'Parallel workers that its plans asked for, in all phases';
COMMENT ON COLUMN bench.statements.workers_launched IS 'Parallel workers that it got';
COMMENT ON COLUMN bench.statements.rows IS 'Rows returned, inserted, updated, deleted or merged, in all phases; NULL for meta commands and runs before 0.2.0';
COMMENT ON COLUMN bench.statements.writes IS 'Executions that were to insert, update, delete or merge rows, in all phases; NULL where there was none';
COMMENT ON COLUMN bench.statements.empty_writes IS 'Of these, executions that affected no row';

CREATE VIEW bench.waits WITH (security_barrier) AS
SELECT w.run_id, w.node, w.wait_event_type, w.wait_event, w.share
FROM bench.wait_log w JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON VIEW bench.waits IS 'What the clients of a run waited for while it was measured, sampled 100 times a second, of few clients up to 400 times, of more than 64 less often; of each interval, see the column waits of bench.samples';
COMMENT ON COLUMN bench.waits.run_id IS 'The run';
COMMENT ON COLUMN bench.waits.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.waits.wait_event_type IS 'As in pg_stat_activity; CPU: running on a processor; Runnable: waiting for one; Client: what pgbench''s sessions wait in while a script sleeps or waits for its turn; Unobserved: of clients that ended before they were looked at';
COMMENT ON COLUMN bench.waits.wait_event IS 'As in pg_stat_activity';
COMMENT ON COLUMN bench.waits.share IS 'Share of the clients'' time; the shares of a run add up to 1';

CREATE VIEW bench.events WITH (security_barrier) AS
SELECT e.run_id, e.node, e.event, e.kind, e.relation, e.detail, e.started, e.ended
FROM bench.event_log e JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON VIEW bench.events IS 'Checkpoints, and vacuums of the run''s tables, while a run went on';
COMMENT ON COLUMN bench.events.run_id IS 'The run';
COMMENT ON COLUMN bench.events.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.events.event IS 'Its number, from 1';
COMMENT ON COLUMN bench.events.kind IS 'checkpoint, vacuum or autovacuum';
COMMENT ON COLUMN bench.events.relation IS 'The table that was vacuumed';
COMMENT ON COLUMN bench.events.detail IS 'Of a checkpoint: timed or requested, where that is known, or begun before the run';
COMMENT ON COLUMN bench.events.started IS 'Seconds since measuring began; negative before. Of a vacuum shorter than an interval its end; of a checkpoint begun before the run when that was seen';
COMMENT ON COLUMN bench.events.ended IS 'The same; NULL when it went on longer than the run';

CREATE VIEW bench.relations WITH (security_barrier) AS
SELECT l.run_id, l.node, l.relation, l.kind, l.bytes_before, l.bytes_after, l.live_before, l.live, l.dead_before, l.dead,
       l.inserted, l.updated, l.hot_updated, l.deleted, l.mod_since_analyze, l.seq_scan, l.seq_tup_read, l.idx_scan,
       l.vacuums, l.autovacuums, l.analyzes, l.autoanalyzes,
       l.last_vacuum, l.last_autovacuum, l.last_analyze, l.last_autoanalyze
FROM bench.relation_log l JOIN bench.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.role);
COMMENT ON VIEW bench.relations IS 'The run''s tables and their indexes before and after it, by the server''s statistics; counts are of all phases of the run and of whoever else used them';
COMMENT ON COLUMN bench.relations.run_id IS 'The run';
COMMENT ON COLUMN bench.relations.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.relations.relation IS 'The table or index';
COMMENT ON COLUMN bench.relations.kind IS 'table or index';
COMMENT ON COLUMN bench.relations.bytes_before IS 'Bytes before the run, of a table with its maps and TOAST; NULL where somebody''s lock was in the way';
COMMENT ON COLUMN bench.relations.bytes_after IS 'Bytes after it';
COMMENT ON COLUMN bench.relations.live_before IS 'Live rows before, an estimate';
COMMENT ON COLUMN bench.relations.live IS 'Live rows after, an estimate';
COMMENT ON COLUMN bench.relations.dead_before IS 'Dead rows before, an estimate';
COMMENT ON COLUMN bench.relations.dead IS 'Dead rows after, an estimate';
COMMENT ON COLUMN bench.relations.inserted IS 'Rows inserted';
COMMENT ON COLUMN bench.relations.updated IS 'Rows updated, HOT updates included';
COMMENT ON COLUMN bench.relations.hot_updated IS 'Rows updated without new index entries';
COMMENT ON COLUMN bench.relations.deleted IS 'Rows deleted';
COMMENT ON COLUMN bench.relations.mod_since_analyze IS 'Rows changed since the last ANALYZE, after the run';
COMMENT ON COLUMN bench.relations.seq_scan IS 'Sequential scans';
COMMENT ON COLUMN bench.relations.seq_tup_read IS 'Live rows that they read';
COMMENT ON COLUMN bench.relations.idx_scan IS 'Index scans; of a table, those of all its indexes';
COMMENT ON COLUMN bench.relations.vacuums IS 'Vacuums by hand that ended meanwhile';
COMMENT ON COLUMN bench.relations.autovacuums IS 'Autovacuums that ended meanwhile';
COMMENT ON COLUMN bench.relations.analyzes IS 'Analyzes by hand';
COMMENT ON COLUMN bench.relations.autoanalyzes IS 'Analyzes by autovacuum';
COMMENT ON COLUMN bench.relations.last_vacuum IS 'When the last vacuum by hand ended';
COMMENT ON COLUMN bench.relations.last_autovacuum IS 'When the last autovacuum ended';
COMMENT ON COLUMN bench.relations.last_analyze IS 'When the last analyze by hand ended';
COMMENT ON COLUMN bench.relations.last_autoanalyze IS 'When the last analyze by autovacuum ended';

-- For the extension's own functions, which ask about the run of their caller.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples}'::text[] LOOP
        EXECUTE format($view$
CREATE VIEW bench.total_%1$s WITH (security_barrier) AS
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

CREATE VIEW bench.summary_of_all AS
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
COMMENT ON VIEW bench.summary_of_all IS 'What bench.summary shows, of everybody''s runs';

CREATE VIEW bench.summary WITH (security_barrier) AS
SELECT run_id, workload, clients, driver, results, bench_internal.status_of(status, segment, run_id) AS status, started_at,
       secs, transactions, failed, retried, tps, tps_avg, tps_min, tps_max, tps_stddev,
       latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_p999_ms, latency_max_ms,
       skipped, late, lag_avg_ms, lag_max_ms, backlog
FROM bench.summary_of_all
WHERE bench_internal.is_visible(role);
COMMENT ON VIEW bench.summary IS 'One row per run: what was measured';
COMMENT ON COLUMN bench.summary.run_id IS 'The run';
COMMENT ON COLUMN bench.summary.workload IS 'The workload''s name';
COMMENT ON COLUMN bench.summary.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.summary.driver IS 'engine: inside the server';
COMMENT ON COLUMN bench.summary.results IS 'serialize: rows turned into text and dropped; discard: not looked at';
COMMENT ON COLUMN bench.summary.status IS 'As in bench.runs';
COMMENT ON COLUMN bench.summary.started_at IS 'When the clients were let loose';
COMMENT ON COLUMN bench.summary.secs IS 'Seconds measured';
COMMENT ON COLUMN bench.summary.transactions IS 'Transactions committed while measuring';
COMMENT ON COLUMN bench.summary.failed IS 'Transactions given up while measuring';
COMMENT ON COLUMN bench.summary.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.summary.tps IS 'transactions / secs, of the whole';
COMMENT ON COLUMN bench.summary.tps_avg IS 'Mean of the samples';
COMMENT ON COLUMN bench.summary.tps_min IS 'Least of the samples';
COMMENT ON COLUMN bench.summary.tps_max IS 'Greatest of the samples';
COMMENT ON COLUMN bench.summary.tps_stddev IS 'Standard deviation of the samples';
COMMENT ON COLUMN bench.summary.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.summary.latency_stddev_ms IS 'Standard deviation of the latency in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p50_ms IS 'Median latency in milliseconds; NULL until the run has ended, like the other percentiles';
COMMENT ON COLUMN bench.summary.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p99_ms IS '99th percentile in milliseconds';
COMMENT ON COLUMN bench.summary.latency_p999_ms IS '99.9th percentile in milliseconds; below 10,000 transactions it is noise';
COMMENT ON COLUMN bench.summary.latency_max_ms IS 'Greatest latency in milliseconds';
COMMENT ON COLUMN bench.summary.skipped IS 'Transactions not started, under a rate, because they would have been above the latency_limit';
COMMENT ON COLUMN bench.summary.late IS 'Committed transactions above the latency_limit';
COMMENT ON COLUMN bench.summary.lag_avg_ms IS 'Mean delay of the start behind the schedule under a rate, in milliseconds; it is part of the latency';
COMMENT ON COLUMN bench.summary.lag_max_ms IS 'Greatest delay of a start in milliseconds; NULL until the run has ended';
COMMENT ON COLUMN bench.summary.backlog IS 'Transactions due before the end that were neither started nor skipped: how far the run fell behind its rate';

CREATE VIEW bench.nodes WITH (security_barrier) AS
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
COMMENT ON VIEW bench.nodes IS 'One row per run and node, nodes of the Citus cluster that only served others'' statements included';
COMMENT ON COLUMN bench.nodes.run_id IS 'The run';
COMMENT ON COLUMN bench.nodes.node IS 'Citus'' number for the node; 0: the only one that clients ran on';
COMMENT ON COLUMN bench.nodes.name IS 'Host and port, as other nodes reach it; local where there is no cluster';
COMMENT ON COLUMN bench.nodes.is_coordinator IS 'Whether it is Citus'' coordinator';
COMMENT ON COLUMN bench.nodes.clients IS 'Clients that ran on it; 0 where it only served others'' statements';
COMMENT ON COLUMN bench.nodes.status IS 'How its part ended, as in bench.runs; NULL without clients';
COMMENT ON COLUMN bench.nodes.error IS 'Why it did not complete: sqlstate, message, detail, hint';
COMMENT ON COLUMN bench.nodes.start_offset_ms IS 'How much later than agreed its clients'' time began, in milliseconds, by the clock of the node that was asked for the run';
COMMENT ON COLUMN bench.nodes.clock_offset_ms IS 'Its clock less that of the node that was asked, in milliseconds';
COMMENT ON COLUMN bench.nodes.clock_error_ms IS 'The most that clock_offset_ms may be wrong by';
COMMENT ON COLUMN bench.nodes.secs IS 'Seconds measured';
COMMENT ON COLUMN bench.nodes.transactions IS 'Transactions committed while measuring';
COMMENT ON COLUMN bench.nodes.failed IS 'Transactions given up while measuring';
COMMENT ON COLUMN bench.nodes.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.nodes.tps IS 'transactions / secs; those of all nodes add up to that of bench.summary';
COMMENT ON COLUMN bench.nodes.latency_avg_ms IS 'Mean latency in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_p95_ms IS '95th percentile in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_p99_ms IS '99th percentile in milliseconds';
COMMENT ON COLUMN bench.nodes.latency_max_ms IS 'Greatest latency in milliseconds';
COMMENT ON COLUMN bench.nodes.processors IS 'Processors of its machine';
COMMENT ON COLUMN bench.nodes.cpu_user IS 'Share of all its processors'' time in user mode; of a node without clients from just before the start to just after the end';
COMMENT ON COLUMN bench.nodes.cpu_system IS 'Share in the kernel, interrupts included';
COMMENT ON COLUMN bench.nodes.cpu_iowait IS 'Share idle while something waited for a disk';
COMMENT ON COLUMN bench.nodes.cpu_steal IS 'Share that the hypervisor gave to others';
COMMENT ON COLUMN bench.nodes.cpu_idle IS 'Share idle';
COMMENT ON COLUMN bench.nodes.prepared IS 'Transactions that it has had other nodes prepare for a two-phase commit, one for each connection';
COMMENT ON COLUMN bench.nodes.connections_opened IS 'Connections that its sessions opened to other nodes; NULL where Citus does not count them (citus.enable_stat_counters, 13.1 and newer)';
COMMENT ON COLUMN bench.nodes.connections_reused IS 'Times that they found one open';
COMMENT ON COLUMN bench.nodes.prepared_left IS 'Prepared transactions of Citus'' that were on it when the run had ended';
COMMENT ON COLUMN bench.nodes.settings IS 'Parameters of Citus'' that decide what is measured';

CREATE VIEW bench.progress WITH (security_barrier) AS
SELECT r.run_id, p.phase, p.elapsed, p.remaining, p.tps, p.latency_avg_ms, p.transactions, p.clients,
       NULL::text AS fixture, NULL::bigint AS rows, NULL::double precision AS rows_per_sec
FROM bench.run_log r, LATERAL bench_internal.run_progress(r.segment, r.run_id) p
WHERE r.status IN ('starting', 'running') AND bench_internal.is_visible(r.role)
UNION ALL
SELECT NULL, p.phase, p.elapsed, p.remaining, NULL, NULL, NULL, p.loaders, l.fixture, p.rows, p.rows_per_sec
FROM bench.load_log l, LATERAL bench_internal.load_progress(l.segment, l.load_id) p
WHERE bench_internal.is_visible(l.role);
COMMENT ON VIEW bench.progress IS 'Runs and loads under way';
COMMENT ON COLUMN bench.progress.run_id IS 'The run; NULL for a load';
COMMENT ON COLUMN bench.progress.phase IS 'Of a run: starting, ramp, warm-up, measurement, drain; of a load: starting, loading rows, building indexes, vacuuming';
COMMENT ON COLUMN bench.progress.elapsed IS 'Seconds since the phase of a run, or a load, began';
COMMENT ON COLUMN bench.progress.remaining IS 'Seconds until the measuring ends, or until the rows are loaded; NULL where that cannot be told, as for a run of so many transactions';
COMMENT ON COLUMN bench.progress.tps IS 'Transactions per second of the last sample';
COMMENT ON COLUMN bench.progress.latency_avg_ms IS 'Mean latency of the last sample in milliseconds';
COMMENT ON COLUMN bench.progress.transactions IS 'Measured transactions so far';
COMMENT ON COLUMN bench.progress.clients IS 'Clients, or loaders, at work';
COMMENT ON COLUMN bench.progress.fixture IS 'The fixture that is being loaded';
COMMENT ON COLUMN bench.progress.rows IS 'Rows loaded so far';
COMMENT ON COLUMN bench.progress.rows_per_sec IS 'Rows loaded per second so far';

CREATE VIEW bench.fixture_definitions AS
SELECT name, (SELECT r.rolname::text FROM pg_catalog.pg_roles r JOIN pg_catalog.pg_namespace n ON n.nspowner = r.oid WHERE n.nspname = 'bench') AS owner,
       ddl, rows_query, after_ddl, rows, true AS builtin
FROM bench_internal.builtin_fixtures()
UNION ALL
SELECT name, owner, ddl, rows_query, after_ddl, rows, false
FROM bench.custom_fixtures;
COMMENT ON VIEW bench.fixture_definitions IS 'Fixtures that bench.load can load';
COMMENT ON COLUMN bench.fixture_definitions.name IS 'What bench.load is given';
COMMENT ON COLUMN bench.fixture_definitions.owner IS 'Name of the role that may replace and drop it, with its members and superusers';
COMMENT ON COLUMN bench.fixture_definitions.ddl IS 'Makes its tables; of a built-in one without options';
COMMENT ON COLUMN bench.fixture_definitions.rows_query IS 'The SELECT that defines the rows with the ids $1 to $2';
COMMENT ON COLUMN bench.fixture_definitions.after_ddl IS 'What comes after the rows: indexes';
COMMENT ON COLUMN bench.fixture_definitions.rows IS 'How many ids, unless bench.load is told';
COMMENT ON COLUMN bench.fixture_definitions.builtin IS 'Whether it comes with the extension: then it cannot be replaced or dropped';

CREATE VIEW bench.audits WITH (security_barrier) AS
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
COMMENT ON VIEW bench.audits IS 'What bench.audit(run_id) shows, of all runs';
COMMENT ON COLUMN bench.audits.run_id IS 'The run';
COMMENT ON COLUMN bench.audits.node IS 'Citus'' number for the node; 0: the only one that clients ran on, or all of them together';
COMMENT ON COLUMN bench.audits.counter IS 'Name of the server''s counter';
COMMENT ON COLUMN bench.audits.harness IS 'What the clients counted, in all phases of the run';
COMMENT ON COLUMN bench.audits.server IS 'How far the server''s counter went meanwhile';
COMMENT ON COLUMN bench.audits.difference IS 'harness less server';
COMMENT ON COLUMN bench.audits.ok IS 'Whether the two are equal; NULL where they need not be';
COMMENT ON COLUMN bench.audits.reason IS 'What is counted, or why it is not judged';

CREATE FUNCTION bench.audit(run_id bigint)
    RETURNS TABLE (counter text, harness bigint, server bigint, difference bigint, ok boolean, reason text)
    VOLATILE PARALLEL UNSAFE LANGUAGE sql
BEGIN ATOMIC
    SELECT a.counter, a.harness, a.server, a.difference, a.ok, a.reason
    FROM bench.audits a WHERE a.run_id = audit.run_id AND a.node = 0 ORDER BY a.counter;
END;
COMMENT ON FUNCTION bench.audit IS
'Compares what the harness counted with the server''s own counters: ok is true where they are equal, false where they should be and are not, NULL where the reason says why they need not be.';

GRANT SELECT ON bench.total_samples, bench.total_warmup_samples, bench.nodes, bench.runs, bench.errors, bench.scripts, bench.statements, bench.summary, bench.progress, bench.audits, bench.waits, bench.events, bench.relations, bench.fixture_definitions TO PUBLIC;
