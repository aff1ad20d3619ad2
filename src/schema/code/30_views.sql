-- Views. What belongs to a run is for those whom bench_internal.is_visible lets see it.

CREATE FUNCTION bench_internal.is_visible(role oid)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'is_owner_visible_wrapper';
COMMENT ON FUNCTION bench_internal.is_visible IS 'True if the current role may see runs, sweeps and loads of this role: it has the privileges of the role or of pg_read_all_stats, or is a superuser. Runs of a dropped role are visible only to members of pg_read_all_stats and superusers.';

CREATE FUNCTION bench_internal.role_name(role oid, kept text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'role_name_wrapper';
COMMENT ON FUNCTION bench_internal.role_name IS 'Name of a role; if the role no longer exists, the stored name.';

CREATE VIEW bench.runs WITH (security_barrier) AS
SELECT run_id, sweep_id, workload, fixture, fixture_rows, fixture_options, script, clients, secs, transactions, warmup, rate, latency_limit, max_tries, seed,
       driver, query_mode, results, nodes, variables, settings, system, sample_interval, tags,
       bench_internal.status_of(status, segment, run_id) AS status, started_at, finished_at, bench_internal.role_name(owner_oid, role) AS role, error, horizon_held,
       server_version, extension_version, environment, origin, part_of, before, log_rate, logged, log_lost, target, jobs, reconnect,
       on_disconnect, warmup_took, feeders, run_as, applied, rates
FROM bench_internal.run_log
WHERE bench_internal.is_visible(owner_oid);
COMMENT ON VIEW bench.runs IS 'One row per run: its arguments, status and environment. Visible to roles with the privileges of the run''s role or of pg_read_all_stats.';
COMMENT ON COLUMN bench.runs.run_id IS 'The run';
COMMENT ON COLUMN bench.runs.sweep_id IS 'Sweep that the run is part of';
COMMENT ON COLUMN bench.runs.workload IS 'Name of the workload, or the mix as given';
COMMENT ON COLUMN bench.runs.fixture IS 'Fixture used; several are separated by commas';
COMMENT ON COLUMN bench.runs.fixture_rows IS 'Rows loaded into each of these fixtures';
COMMENT ON COLUMN bench.runs.fixture_options IS 'Options given to bench.load for each of these fixtures; null for tables that bench.load did not create';
COMMENT ON COLUMN bench.runs.script IS 'Script as run; a mix shows each script under a comment with its name and weight';
COMMENT ON COLUMN bench.runs.clients IS 'Concurrent sessions';
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
COMMENT ON COLUMN bench.runs.role IS 'Role that called, and whose sessions the clients were unless run_as says otherwise';
COMMENT ON COLUMN bench.runs.error IS 'Reason for not completing: sqlstate, message, detail, hint, and context where it is known';
COMMENT ON COLUMN bench.runs.horizon_held IS 'True if the waiting caller held back the xmin horizon, so dead rows could not be removed';
COMMENT ON COLUMN bench.runs.server_version IS 'server_version at the time of the run';
COMMENT ON COLUMN bench.runs.extension_version IS 'Version of the extension at the time of the run';
COMMENT ON COLUMN bench.runs.environment IS 'Environment: server_settings (non-default settings of a client''s session), version, processors, memory, kernel, filesystem, cost of a clock read and of a flush to disk, unsupported_settings (parameters that were on but have no effect on engine sessions), transaction ids used';
COMMENT ON COLUMN bench.runs.origin IS 'Origin of an imported run: run_id, role, database, system_identifier (as in pg_control_system) and started_at on the original server, exported_at, imported_at; NULL for runs of this database';
COMMENT ON COLUMN bench.runs.part_of IS 'If this is this node''s part of another node''s run, until that node has fetched it: node, name and run_id there';
COMMENT ON COLUMN bench.runs.before IS 'Actions before the run, separated by commas, or none';
COMMENT ON COLUMN bench.runs.log_rate IS 'Share of the transactions to log in bench.transactions';
COMMENT ON COLUMN bench.runs.logged IS 'Transactions logged in bench.transactions; NULL without a log_rate';
COMMENT ON COLUMN bench.runs.log_lost IS 'Transactions that were to be logged but ended faster than they could be written';
COMMENT ON COLUMN bench.runs.target IS 'With the wire driver: foreign server that the connections went to; NULL: this server and database';
COMMENT ON COLUMN bench.runs.jobs IS 'With the wire driver: background workers that shared the connections';
COMMENT ON COLUMN bench.runs.reconnect IS 'With the wire driver: true if each transaction had a connection of its own';
COMMENT ON COLUMN bench.runs.on_disconnect IS 'With the wire driver: end: a client ended when its connection was lost; reconnect: it connected again';
COMMENT ON COLUMN bench.runs.warmup_took IS 'Seconds that the warm-up took; with warmup NULL, 300 if throughput was not steady by then. NULL if nothing was run';
COMMENT ON COLUMN bench.runs.feeders IS 'Feeders of its workloads: workload, prefix, query, order, once, max_rows, and rows, the number of rows kept (null if other nodes read them); NULL: none';
COMMENT ON COLUMN bench.runs.rates IS 'Target transactions per second by the second of the measurement from which on they were due, where rate is only their mean';
COMMENT ON COLUMN bench.runs.applied IS 'Statements by which its sweep had changed the database for it';
COMMENT ON COLUMN bench.runs.run_as IS 'Roles whose sessions its clients were, separated by commas, where these are others than role; NULL: role';

CREATE VIEW bench.errors WITH (security_barrier) AS
SELECT e.run_id, e.node, e.sqlstate, e.message, e.detail, e.count, e.retried, e.failed, e.first_at, e.context
FROM bench_internal.error_log e JOIN bench_internal.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.errors IS 'Errors of a run''s clients by SQLSTATE, including retried ones';
COMMENT ON COLUMN bench.errors.run_id IS 'The run';
COMMENT ON COLUMN bench.errors.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.errors.sqlstate IS 'SQLSTATE';
COMMENT ON COLUMN bench.errors.message IS 'Message of the first such error';
COMMENT ON COLUMN bench.errors.detail IS 'Position of the first such error in the script, and its detail from the server';
COMMENT ON COLUMN bench.errors.count IS 'Number of such errors in all phases of the run';
COMMENT ON COLUMN bench.errors.retried IS 'Number of them that were followed by another try';
COMMENT ON COLUMN bench.errors.failed IS 'Number of them that ended a transaction: it failed or, at another error than a serialization failure or deadlock, ended with its client';
COMMENT ON COLUMN bench.errors.first_at IS 'Time of the first such error';
COMMENT ON COLUMN bench.errors.context IS 'CONTEXT of the first such error: the functions and statements in which it happened';

CREATE VIEW bench.scripts WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.workload, s.weight, s.fixture, s.transactions,
       s.transactions / nullif((SELECT sum(x.secs ORDER BY x.elapsed) FROM bench.samples x WHERE x.run_id = s.run_id AND x.node = s.node), 0) AS tps,
       s.failed, s.retried, s.skipped, s.late, s.latency_avg_ms, s.latency_stddev_ms, s.latency_p50_ms, s.latency_p95_ms,
       s.latency_p99_ms, s.latency_max_ms, s.aborted
FROM bench_internal.script_log s JOIN bench_internal.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.scripts IS 'Results by script: one row per run, node and script of its mix';
COMMENT ON COLUMN bench.scripts.run_id IS 'The run';
COMMENT ON COLUMN bench.scripts.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.scripts.script IS 'Index of the script in the mix, starting at 0';
COMMENT ON COLUMN bench.scripts.workload IS 'Name of the workload';
COMMENT ON COLUMN bench.scripts.weight IS 'Weight of the script in the mix, relative to the other weights';
COMMENT ON COLUMN bench.scripts.fixture IS 'Fixture used';
COMMENT ON COLUMN bench.scripts.transactions IS 'Transactions committed during the measurement';
COMMENT ON COLUMN bench.scripts.tps IS 'Transactions per measured second';
COMMENT ON COLUMN bench.scripts.failed IS 'Transactions that failed with a serialization failure or deadlock during the measurement';
COMMENT ON COLUMN bench.scripts.aborted IS 'Clients that another error ended, before the measurement or during it';
COMMENT ON COLUMN bench.scripts.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.scripts.skipped IS 'With a rate: transactions skipped because they could no longer meet latency_limit';
COMMENT ON COLUMN bench.scripts.late IS 'Committed transactions that took longer than latency_limit';
COMMENT ON COLUMN bench.scripts.latency_avg_ms IS 'Mean latency in milliseconds; latencies as in bench.summary';
COMMENT ON COLUMN bench.scripts.latency_stddev_ms IS 'Standard deviation of the latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p50_ms IS 'Median latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p95_ms IS '95th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_p99_ms IS '99th percentile of the latency in milliseconds';
COMMENT ON COLUMN bench.scripts.latency_max_ms IS 'Maximum latency in milliseconds';

CREATE VIEW bench.statements WITH (security_barrier) AS
SELECT s.run_id, s.node, s.script, s.command, s.line, s.statement, s.count, s.failed, s.retried, s.latency_avg_ms,
       s.latency_p95_ms, s.plan, s.generic_plans, s.custom_plans, s.plan_changes, s.workers_planned, s.workers_launched,
       s.rows, s.writes, s.empty_writes
FROM bench_internal.statement_log s JOIN bench_internal.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.statements IS 'Results by command: one row per run, node, script and command, including meta commands';
COMMENT ON COLUMN bench.statements.run_id IS 'The run';
COMMENT ON COLUMN bench.statements.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.statements.script IS 'Index of the script in the mix, starting at 0';
COMMENT ON COLUMN bench.statements.command IS 'Position of the command in the script, starting at 1';
COMMENT ON COLUMN bench.statements.line IS 'Line of the script on which the command starts, starting at 1';
COMMENT ON COLUMN bench.statements.statement IS 'Command as written';
COMMENT ON COLUMN bench.statements.count IS 'Successful executions during the measurement, including executions in repeated tries';
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
COMMENT ON COLUMN bench.statements.rows IS 'Rows returned, inserted, updated, deleted or merged, in all phases; NULL for meta commands';
COMMENT ON COLUMN bench.statements.writes IS 'Executions of INSERT, UPDATE, DELETE or MERGE, in all phases; NULL if there was none';
COMMENT ON COLUMN bench.statements.empty_writes IS 'Number of writes that affected no row';

CREATE VIEW bench.waits WITH (security_barrier) AS
SELECT w.run_id, w.node, w.wait_event_type, w.wait_event, w.share
FROM bench_internal.wait_log w JOIN bench_internal.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.waits IS 'Wait events of a run''s clients during the measurement, sampled 100 times a second: up to 400 times with few clients, less often with more than 64. For each interval, see column waits of bench.samples';
COMMENT ON COLUMN bench.waits.run_id IS 'The run';
COMMENT ON COLUMN bench.waits.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.waits.wait_event_type IS 'As in pg_stat_activity. CPU: running on a processor. Runnable: waiting for a processor. Client: sleeping in the script or waiting for the scheduled start, when a pgbench session would wait for its client. Unobserved: clients that ended before they were sampled';
COMMENT ON COLUMN bench.waits.wait_event IS 'As in pg_stat_activity of the server that the run was on. PostgreSQL 17 changed some names: WALSync is WalSync since, BufFileRead is BuffileRead';
COMMENT ON COLUMN bench.waits.share IS 'Share of the clients'' time; the shares of a run and node add up to 1';

CREATE VIEW bench.events WITH (security_barrier) AS
SELECT e.run_id, e.node, e.event, e.kind, e.relation, e.detail, e.started, e.ended
FROM bench_internal.event_log e JOIN bench_internal.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.events IS 'Checkpoints, vacuums, analyzes, index builds and rewrites of the run''s tables, base backups, connections of standbys and reloads of the configuration during each run';
COMMENT ON COLUMN bench.events.run_id IS 'The run';
COMMENT ON COLUMN bench.events.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.events.event IS 'Number of the event, starting at 1';
COMMENT ON COLUMN bench.events.kind IS 'checkpoint, vacuum, autovacuum, analyze, autoanalyze, create index, reindex, cluster, repack, vacuum full, backup, standby, reload, or in a rehearsal blocker and change';
COMMENT ON COLUMN bench.events.relation IS 'The table, of what is done to a table';
COMMENT ON COLUMN bench.events.detail IS 'For a checkpoint: timed or requested, if known, or that it started before the run';
COMMENT ON COLUMN bench.events.started IS 'Start in seconds since the measurement started, negative before it. For a vacuum or analyze shorter than an interval: its end. For a checkpoint that started before the run: when it was first seen';
COMMENT ON COLUMN bench.events.ended IS 'End in seconds since the measurement started; NULL if it lasted longer than the run';

CREATE VIEW bench.relations WITH (security_barrier) AS
SELECT l.run_id, l.node, l.relation, l.kind, l.bytes_before, l.bytes_after, l.live_before, l.live, l.dead_before, l.dead,
       l.inserted, l.updated, l.hot_updated, l.deleted, l.mod_since_analyze, l.seq_scan, l.seq_tup_read, l.idx_scan,
       l.vacuums, l.autovacuums, l.analyzes, l.autoanalyzes,
       l.last_vacuum, l.last_autovacuum, l.last_analyze, l.last_autoanalyze
FROM bench_internal.relation_log l JOIN bench_internal.run_log r USING (run_id)
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.relations IS 'Tables and indexes of each run before and after it, from the server''s statistics. Counts cover all phases of the run and include use by other sessions';
COMMENT ON COLUMN bench.relations.run_id IS 'The run';
COMMENT ON COLUMN bench.relations.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node';
COMMENT ON COLUMN bench.relations.relation IS 'Table or index';
COMMENT ON COLUMN bench.relations.kind IS 'table or index';
COMMENT ON COLUMN bench.relations.bytes_before IS 'Bytes before the run, for a table including its maps and TOAST; NULL if a lock prevented reading it';
COMMENT ON COLUMN bench.relations.bytes_after IS 'Bytes after the run';
COMMENT ON COLUMN bench.relations.live_before IS 'Estimated live rows before the run';
COMMENT ON COLUMN bench.relations.live IS 'Estimated live rows after the run';
COMMENT ON COLUMN bench.relations.dead_before IS 'Estimated dead rows before the run';
COMMENT ON COLUMN bench.relations.dead IS 'Estimated dead rows after the run';
COMMENT ON COLUMN bench.relations.inserted IS 'Rows inserted';
COMMENT ON COLUMN bench.relations.updated IS 'Rows updated, including HOT updates';
COMMENT ON COLUMN bench.relations.hot_updated IS 'Rows updated without new index entries';
COMMENT ON COLUMN bench.relations.deleted IS 'Rows deleted';
COMMENT ON COLUMN bench.relations.mod_since_analyze IS 'Rows changed since the last analyze, as of the end of the run';
COMMENT ON COLUMN bench.relations.seq_scan IS 'Sequential scans';
COMMENT ON COLUMN bench.relations.seq_tup_read IS 'Live rows read by sequential scans';
COMMENT ON COLUMN bench.relations.idx_scan IS 'Index scans; for a table, of all its indexes';
COMMENT ON COLUMN bench.relations.vacuums IS 'Manual vacuums that ended during the run';
COMMENT ON COLUMN bench.relations.autovacuums IS 'Autovacuums that ended during the run';
COMMENT ON COLUMN bench.relations.analyzes IS 'Manual analyzes that ended during the run';
COMMENT ON COLUMN bench.relations.autoanalyzes IS 'Analyzes by autovacuum that ended during the run';
COMMENT ON COLUMN bench.relations.last_vacuum IS 'When the last manual vacuum ended';
COMMENT ON COLUMN bench.relations.last_autovacuum IS 'When the last autovacuum ended';
COMMENT ON COLUMN bench.relations.last_analyze IS 'When the last manual analyze ended';
COMMENT ON COLUMN bench.relations.last_autoanalyze IS 'When the last analyze by autovacuum ended';

-- For the extension's own functions, which ask about the run of their caller.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{samples,warmup_samples}'::text[] LOOP
        EXECUTE format($view$
CREATE VIEW bench.total_%1$s WITH (security_barrier) AS
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
       sum(x.lag_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS lag_avg_ms %2$s
FROM (SELECT s.*, row_number() OVER (PARTITION BY s.run_id, s.node ORDER BY s.elapsed) AS place
      FROM bench.%1$s s WHERE s.run_id IN (SELECT r.run_id FROM bench.runs r)) x
GROUP BY x.run_id, x.place
$view$, name,
            -- What was observed: counts are added up.
            (SELECT string_agg(format(CASE WHEN a.attname LIKE 'cpu%' THEN ', avg(x.%1$I) AS %1$I' WHEN a.attname LIKE 'replay%' THEN ', max(x.%1$I) AS %1$I'
                                      ELSE ', sum(x.%1$I)::%2$s AS %1$I' END, a.attname, format_type(a.atttypid, NULL)), '' ORDER BY a.attnum)
             FROM pg_attribute a JOIN pg_attribute l ON l.attrelid = a.attrelid AND l.attname = 'lag_avg_ms'
             WHERE a.attrelid = ('bench.' || name)::regclass AND a.attnum > l.attnum AND NOT a.attisdropped AND a.attname NOT IN ('waits', 'latency_histogram')));
        EXECUTE format('COMMENT ON VIEW bench.total_%1$s IS %2$L', name,
            'bench.' || name || ' of all nodes together: one row per run and interval. Counts are sums, and shares of processors are means over the nodes. Percentiles are NULL if there are several nodes: they cannot be computed from those of each node.');
        EXECUTE format('COMMENT ON COLUMN bench.total_%s.nodes IS %L', name, 'Number of nodes with a sample of this interval');
        EXECUTE (SELECT string_agg(format('COMMENT ON COLUMN bench.total_%1$s.%2$I IS %3$L', name, a.attname, col_description(a.attrelid, a.attnum)), '; ')
                 FROM pg_attribute a
                 WHERE a.attrelid = ('bench.' || name)::regclass AND a.attnum > 0
                   AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = ('bench.total_' || name)::regclass AND t.attname = a.attname));
    END LOOP;
END $$;

CREATE VIEW bench_internal.summary_of_all AS
SELECT r.run_id, r.workload, r.clients, r.driver, r.results, r.status, r.segment, r.owner_oid, r.started_at,
       s.secs, s.transactions, s.failed, s.retried, s.tps, s.tps_avg, s.tps_min, s.tps_max, s.tps_stddev,
       coalesce(r.latency_avg_ms, s.latency_avg_ms) AS latency_avg_ms, coalesce(r.latency_stddev_ms, s.latency_stddev_ms) AS latency_stddev_ms,
       r.latency_p50_ms, r.latency_p95_ms, r.latency_p99_ms, r.latency_p999_ms, coalesce(r.latency_max_ms, s.latency_max_ms) AS latency_max_ms,
       s.skipped, s.late, r.rate, r.latency_limit, coalesce(r.lag_avg_ms, s.lag_avg_ms) AS lag_avg_ms, r.lag_max_ms, r.backlog,
       (SELECT sum(a.aborted)::bigint FROM (SELECT aborted FROM bench.samples x WHERE x.run_id = r.run_id
            UNION ALL SELECT aborted FROM bench.warmup_samples x WHERE x.run_id = r.run_id) a) AS aborted,
       r.server_cpu_us, r.connect_avg_ms, r.connect_p50_ms, r.connect_p95_ms, r.connect_p99_ms, r.connect_max_ms, r.unknown,
       1e6 * (r.environment ->> 'driver_cpu_secs')::float8 / nullif(s.transactions, 0) AS driver_cpu_us,
       (SELECT sum(l.transactions) FROM bench_internal.script_log l
        WHERE l.run_id = r.run_id AND l.workload IN ('orders/new_order', 'orders_functions/new_order', 'orders_keyed/new_order'))::float8 * 60 / nullif(s.secs, 0) AS nopm
FROM bench_internal.run_log r
LEFT JOIN LATERAL (
    SELECT sum(x.secs) AS secs, sum(x.transactions)::bigint AS transactions, sum(x.failed)::bigint AS failed,
           sum(x.retried)::bigint AS retried,
           -- the sum of the nodes'
           (SELECT sum(n.tps ORDER BY n.node) FROM (SELECT y.node, sum(y.transactions) / nullif(sum(y.secs), 0) AS tps
                                    FROM (SELECT * FROM bench.samples z WHERE z.run_id = r.run_id ORDER BY z.node, z.elapsed) y
                                    GROUP BY y.node) n) AS tps,
           avg(x.tps) AS tps_avg, min(x.tps) AS tps_min, max(x.tps) AS tps_max, stddev_samp(x.tps) AS tps_stddev,
           sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms,
           -- of the whole: the mean of the squares less the square of the mean
           CASE WHEN sum(x.transactions) > 0 THEN sqrt(greatest(0, sum((x.latency_stddev_ms ^ 2 + x.latency_avg_ms ^ 2) * x.transactions) / nullif(sum(x.transactions), 0)
                            - (sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0)) ^ 2)) END AS latency_stddev_ms,
           max(x.latency_max_ms) AS latency_max_ms, sum(x.skipped)::bigint AS skipped, sum(x.late)::bigint AS late,
           sum(x.lag_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS lag_avg_ms
    -- in order, for sums of floating-point numbers depend on it
    FROM (SELECT * FROM bench.total_samples y WHERE y.run_id = r.run_id ORDER BY y.elapsed) x
) s ON true;
COMMENT ON VIEW bench_internal.summary_of_all IS 'Internal: rows of bench.summary for the runs of all roles. Read bench.summary instead.';

CREATE VIEW bench.summary WITH (security_barrier) AS
SELECT run_id, workload, clients, driver, results, bench_internal.status_of(status, segment, run_id) AS status, started_at,
       secs, transactions, failed, retried, tps, tps_avg, tps_min, tps_max, tps_stddev,
       latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_p999_ms, latency_max_ms,
       skipped, late, lag_avg_ms, lag_max_ms, backlog, aborted, server_cpu_us,
       connect_avg_ms, connect_p50_ms, connect_p95_ms, connect_p99_ms, connect_max_ms, unknown, driver_cpu_us, nopm
FROM bench_internal.summary_of_all
WHERE bench_internal.is_visible(owner_oid);
COMMENT ON VIEW bench.summary IS 'Results: one row per run';
COMMENT ON COLUMN bench.summary.run_id IS 'The run';
COMMENT ON COLUMN bench.summary.workload IS 'Name of the workload';
COMMENT ON COLUMN bench.summary.clients IS 'Concurrent sessions';
COMMENT ON COLUMN bench.summary.driver IS 'engine: transactions execute inside the server; wire: they are sent over connections';
COMMENT ON COLUMN bench.summary.results IS 'serialize: rows are converted to text and dropped; discard: rows are ignored';
COMMENT ON COLUMN bench.summary.status IS 'As in bench.runs';
COMMENT ON COLUMN bench.summary.started_at IS 'When the clients started';
COMMENT ON COLUMN bench.summary.secs IS 'Measured seconds';
COMMENT ON COLUMN bench.summary.transactions IS 'Transactions committed during the measurement';
COMMENT ON COLUMN bench.summary.failed IS 'Transactions that failed with a serialization failure or deadlock during the measurement';
COMMENT ON COLUMN bench.summary.aborted IS 'Clients that another error ended, before the measurement or during it';
COMMENT ON COLUMN bench.summary.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.summary.tps IS 'transactions / secs of the whole run';
COMMENT ON COLUMN bench.summary.tps_avg IS 'Mean tps of the samples';
COMMENT ON COLUMN bench.summary.tps_min IS 'Lowest tps of the samples';
COMMENT ON COLUMN bench.summary.tps_max IS 'Highest tps of the samples';
COMMENT ON COLUMN bench.summary.tps_stddev IS 'Standard deviation of the samples'' tps';
COMMENT ON COLUMN bench.summary.latency_avg_ms IS 'Mean latency in milliseconds. Once the run has ended, latencies include those of transactions that were under way at the end of the measurement, which transactions and tps do not count';
COMMENT ON COLUMN bench.summary.latency_stddev_ms IS 'Standard deviation of the latency in milliseconds';
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
COMMENT ON COLUMN bench.summary.server_cpu_us IS 'Processor time of the clients'' processes per committed transaction in microseconds. Parallel workers, autovacuum and other background processes, and sessions on other nodes are not included. NULL until the run has ended and if the platform does not provide it';
COMMENT ON COLUMN bench.summary.connect_avg_ms IS 'Mean time in milliseconds to open a connection during the measurement of a run with reconnect; part of secs, not of the latency';
COMMENT ON COLUMN bench.summary.connect_p50_ms IS 'Median of these times in milliseconds';
COMMENT ON COLUMN bench.summary.connect_p95_ms IS '95th percentile of these times in milliseconds';
COMMENT ON COLUMN bench.summary.connect_p99_ms IS '99th percentile of these times in milliseconds';
COMMENT ON COLUMN bench.summary.connect_max_ms IS 'Maximum of these times in milliseconds';
COMMENT ON COLUMN bench.summary.unknown IS 'With on_disconnect => reconnect: transactions in doubt, whose connection was lost during the measurement when they may have been committed; failed includes other lost transactions';
COMMENT ON COLUMN bench.summary.driver_cpu_us IS 'With driver => wire: processor time of the run''s jobs per committed transaction in microseconds, the time to open connections included; NULL until the run has ended, and with the engine, whose clients are the server''s own processes';
COMMENT ON COLUMN bench.summary.nopm IS 'New orders per minute of workloads orders, orders_deck, orders_functions and orders_keyed, including those rolled back intentionally; derived from TPC-C; not comparable with published TPC results. NULL for other workloads and until the run has ended';

CREATE VIEW bench.nodes WITH (security_barrier) AS
SELECT r.run_id, k.node, coalesce(n.name, 'local') AS name, coalesce(n.is_coordinator, false) AS is_coordinator,
       coalesce(n.clients, r.clients) AS clients,
       CASE WHEN coalesce(n.clients, 1) > 0 THEN coalesce(n.status, bench_internal.status_of(r.status, r.segment, r.run_id)) END AS status,
       coalesce(n.error, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.error END) AS error,
       n.start_offset_ms, n.clock_offset_ms, n.clock_error_ms,
       s.secs, s.transactions, s.failed, s.retried, s.transactions / nullif(s.secs, 0) AS tps,
       coalesce(n.latency_avg_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_avg_ms END, s.latency_avg_ms) AS latency_avg_ms,
       coalesce(n.latency_p95_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_p95_ms END) AS latency_p95_ms,
       coalesce(n.latency_p99_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_p99_ms END) AS latency_p99_ms,
       coalesce(n.latency_max_ms, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.latency_max_ms END, s.latency_max_ms) AS latency_max_ms,
       coalesce(n.processors, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN (r.environment -> 'processors')::float8::numeric::int END) AS processors,
       coalesce(s.cpu_user, n.cpu_user) AS cpu_user, coalesce(s.cpu_system, n.cpu_system) AS cpu_system,
       coalesce(s.cpu_iowait, n.cpu_iowait) AS cpu_iowait, coalesce(s.cpu_steal, n.cpu_steal) AS cpu_steal,
       coalesce(s.cpu_idle, n.cpu_idle) AS cpu_idle,
       n.prepared, n.connections_opened, n.connections_reused, n.prepared_left, n.settings,
       (SELECT sum(a.aborted)::bigint FROM (SELECT aborted FROM bench.samples x WHERE x.run_id = r.run_id AND x.node = k.node
            UNION ALL SELECT aborted FROM bench.warmup_samples x WHERE x.run_id = r.run_id AND x.node = k.node) a) AS aborted,
       coalesce(n.server_cpu_us, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.server_cpu_us END) AS server_cpu_us,
       n.machine,
       coalesce(n.clients_stuck, CASE WHEN k.node = 0 AND r.nodes = 'local' THEN r.clients_stuck END) AS clients_stuck
FROM bench_internal.run_log r
CROSS JOIN LATERAL (
    SELECT l.node FROM bench_internal.node_log l WHERE l.run_id = r.run_id
    UNION ALL
    SELECT 0 WHERE NOT EXISTS (SELECT FROM bench_internal.node_log l WHERE l.run_id = r.run_id) AND r.nodes = 'local'
) k
LEFT JOIN bench_internal.node_log n ON n.run_id = r.run_id AND n.node = k.node
LEFT JOIN LATERAL (
    SELECT sum(x.secs) AS secs, sum(x.transactions)::bigint AS transactions, sum(x.failed)::bigint AS failed, sum(x.retried)::bigint AS retried,
           sum(x.latency_avg_ms * x.transactions) / nullif(sum(x.transactions), 0) AS latency_avg_ms, max(x.latency_max_ms) AS latency_max_ms,
           sum(x.cpu_user * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_user IS NOT NULL), 0) AS cpu_user,
           sum(x.cpu_system * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_system IS NOT NULL), 0) AS cpu_system,
           sum(x.cpu_iowait * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_iowait IS NOT NULL), 0) AS cpu_iowait,
           sum(x.cpu_steal * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_steal IS NOT NULL), 0) AS cpu_steal,
           sum(x.cpu_idle * x.secs) / nullif(sum(x.secs) FILTER (WHERE x.cpu_idle IS NOT NULL), 0) AS cpu_idle
    FROM (SELECT * FROM bench.samples y WHERE y.run_id = r.run_id AND y.node = k.node ORDER BY y.elapsed) x
) s ON true
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.nodes IS 'Results by node: one row per run and node, including nodes of the Citus cluster without clients';
COMMENT ON COLUMN bench.nodes.run_id IS 'The run';
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
COMMENT ON COLUMN bench.nodes.failed IS 'Transactions that failed with a serialization failure or deadlock during the measurement';
COMMENT ON COLUMN bench.nodes.aborted IS 'Clients that another error ended, before the measurement or during it';
COMMENT ON COLUMN bench.nodes.retried IS 'Transactions that took more than one try';
COMMENT ON COLUMN bench.nodes.tps IS 'transactions / secs; the nodes add up to tps in bench.summary';
COMMENT ON COLUMN bench.nodes.latency_avg_ms IS 'Mean latency in milliseconds; latencies as in bench.summary';
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
COMMENT ON COLUMN bench.nodes.clients_stuck IS 'Process ids of its clients that could not be ended, as in pg_stat_activity of this node: each keeps its worker slot until the disk or node that it waits for answers; NULL if all ended';

CREATE VIEW bench.progress WITH (security_barrier) AS
SELECT r.run_id, p.phase, p.elapsed, p.remaining, p.tps, p.latency_avg_ms, p.transactions, p.clients,
       NULL::text AS fixture, NULL::bigint AS rows, NULL::double precision AS rows_per_sec, r.workload
FROM bench_internal.run_log r, LATERAL bench_internal.run_progress(r.segment, r.run_id) p
WHERE r.status IN ('starting', 'running') AND bench_internal.is_visible(r.owner_oid)
UNION ALL
SELECT NULL, p.phase, p.elapsed, p.remaining, NULL, NULL, NULL, p.loaders, l.fixture, p.rows, p.rows_per_sec, NULL
FROM bench_internal.load_log l, LATERAL bench_internal.load_progress(l.segment, l.load_id) p
WHERE bench_internal.is_visible(l.owner_oid);
COMMENT ON VIEW bench.progress IS 'Active runs and loads';
COMMENT ON COLUMN bench.progress.run_id IS 'Run; NULL for a load';
COMMENT ON COLUMN bench.progress.phase IS 'Run: starting, ramp, warm-up, measurement or drain. Load: starting, loading rows, building indexes or vacuuming';
COMMENT ON COLUMN bench.progress.elapsed IS 'Run: seconds since the phase started. Load: seconds since the load started';
COMMENT ON COLUMN bench.progress.remaining IS 'Estimated seconds until the measurement ends or the rows are loaded; NULL if unknown, as for a run of a fixed number of transactions and in a warm-up until throughput is steady';
COMMENT ON COLUMN bench.progress.tps IS 'Transactions per second of the last sample';
COMMENT ON COLUMN bench.progress.latency_avg_ms IS 'Mean latency of the last sample in milliseconds';
COMMENT ON COLUMN bench.progress.transactions IS 'Measured transactions so far';
COMMENT ON COLUMN bench.progress.clients IS 'Active clients or load workers';
COMMENT ON COLUMN bench.progress.fixture IS 'Load: fixture';
COMMENT ON COLUMN bench.progress.rows IS 'Load: rows loaded so far';
COMMENT ON COLUMN bench.progress.rows_per_sec IS 'Load: rows loaded per second so far';
COMMENT ON COLUMN bench.progress.workload IS 'Run: name of the workload, or the mix as given';

CREATE VIEW bench.loads WITH (security_barrier) AS
SELECT load_id, fixture, schema, bench_internal.load_status_of(status, segment, load_id) AS status, started_at, finished_at,
       bench_internal.role_name(owner_oid, role) AS role, error
FROM bench_internal.load_log
WHERE bench_internal.is_visible(owner_oid);
COMMENT ON VIEW bench.loads IS 'The last load of each fixture in each schema. Visible to roles with the privileges of the load''s role or of pg_read_all_stats. bench.fixtures has what is loaded.';
COMMENT ON COLUMN bench.loads.load_id IS 'The load';
COMMENT ON COLUMN bench.loads.fixture IS 'Fixture that it loads';
COMMENT ON COLUMN bench.loads.schema IS 'Schema of the fixture''s tables';
COMMENT ON COLUMN bench.loads.status IS 'running, completed, canceled, failed or crashed (the leader is gone)';
COMMENT ON COLUMN bench.loads.started_at IS 'When the load started';
COMMENT ON COLUMN bench.loads.finished_at IS 'When the load ended; of one that crashed, when the next load removed what was left';
COMMENT ON COLUMN bench.loads.role IS 'Role that loads';
COMMENT ON COLUMN bench.loads.error IS 'Why it did not complete: sqlstate, message, detail, hint';

CREATE VIEW bench.fixture_definitions AS
SELECT name, (SELECT r.rolname::text FROM pg_roles r JOIN pg_namespace n ON n.nspowner = r.oid WHERE n.nspname = 'bench') AS owner,
       ddl, rows_query, after_ddl, rows, true AS builtin
FROM bench_internal.builtin_fixtures()
UNION ALL
SELECT name, bench_internal.role_name(owner_oid, owner), ddl, rows_query, after_ddl, rows, false
FROM bench_internal.custom_fixtures;
COMMENT ON VIEW bench.fixture_definitions IS 'Fixtures that bench.load can load';
COMMENT ON COLUMN bench.fixture_definitions.name IS 'Name, as given to bench.load';
COMMENT ON COLUMN bench.fixture_definitions.owner IS 'Role that owns it: this role, its members and superusers may replace and drop it';
COMMENT ON COLUMN bench.fixture_definitions.ddl IS 'Statements that create its tables; for a built-in fixture, without options';
COMMENT ON COLUMN bench.fixture_definitions.rows_query IS 'SELECT that defines the rows with the ids $1 to $2';
COMMENT ON COLUMN bench.fixture_definitions.after_ddl IS 'Statements that run after the rows are loaded, such as CREATE INDEX';
COMMENT ON COLUMN bench.fixture_definitions.rows IS 'Default number of ids for bench.load';
COMMENT ON COLUMN bench.fixture_definitions.builtin IS 'True if it comes with the extension: it then cannot be replaced or dropped';

CREATE VIEW bench.audits WITH (security_barrier) AS
SELECT a.run_id, a.node, a.counter, a.harness, a.server, (a.harness::numeric - a.server)::bigint AS difference,
       CASE WHEN a.judged AND (o.run_id IS NULL OR a.counter = 'samples') THEN a.harness = a.server END AS ok,
       CASE WHEN a.judged AND o.run_id IS NOT NULL AND a.counter <> 'samples'
            THEN format('run %s worked on the same fixture, or ran the same workload, at the same time', o.beside) ELSE a.reason END AS reason
FROM bench_internal.audit_log a
JOIN bench_internal.run_log r USING (run_id)
-- Runs that another run disturbed, each once; the index run_log_counted finds them.
LEFT JOIN (
    SELECT b.run_id, min(x.run_id) AS beside
    FROM bench_internal.run_log b JOIN bench_internal.run_log x ON
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
             OR string_to_array(rtrim(regexp_replace(x.workload || ',', E'\\s*(@\\s*\\d+\\s*)?,\\s*', ',', 'g'), ','), ',')
                && string_to_array(rtrim(regexp_replace(b.workload || ',', E'\\s*(@\\s*\\d+\\s*)?,\\s*', ',', 'g'), ','), ','))
        -- The clients of a crashed run may have worked for a while after its last sign of life.
        AND (x.finished_at IS NOT NULL OR bench_internal.status_of(x.status, x.segment, x.run_id) <> 'crashed'
             OR extract(epoch FROM least(b.counted_from, b.started_at)) < 2 * coalesce(x.sample_interval, 0)::numeric + 60
                + extract(epoch FROM greatest(x.started_at, (SELECT max(s.at) FROM bench.samples s WHERE s.run_id = x.run_id),
                                              (SELECT max(w.at) FROM bench.warmup_samples w WHERE w.run_id = x.run_id))))
    GROUP BY b.run_id
) o ON o.run_id = a.run_id
WHERE bench_internal.is_visible(r.owner_oid);
COMMENT ON VIEW bench.audits IS 'Audits: the rows of bench.audit(run_id) for all runs';
COMMENT ON COLUMN bench.audits.run_id IS 'The run';
COMMENT ON COLUMN bench.audits.node IS 'Node id in Citus (pg_dist_node); 0 for a run on one node, or for all nodes together';
COMMENT ON COLUMN bench.audits.counter IS 'Name of the server''s counter';
COMMENT ON COLUMN bench.audits.harness IS 'Count of the clients, in all phases of the run';
COMMENT ON COLUMN bench.audits.server IS 'Increase of the server''s counter during the run';
COMMENT ON COLUMN bench.audits.difference IS 'harness - server';
COMMENT ON COLUMN bench.audits.ok IS 'True if both are equal; NULL if they need not be';
COMMENT ON COLUMN bench.audits.reason IS 'What is counted, or why ok is NULL';

CREATE FUNCTION bench.audit(run_id bigint)
    RETURNS TABLE (counter text, harness bigint, server bigint, difference bigint, ok boolean, reason text)
    VOLATILE PARALLEL UNSAFE LANGUAGE sql
BEGIN ATOMIC
    SELECT a.counter, a.harness, a.server, a.difference, a.ok, a.reason
    FROM bench.audits a WHERE a.run_id = audit.run_id AND a.node = 0 ORDER BY a.counter;
END;
COMMENT ON FUNCTION bench.audit IS
'Compares the harness''s counts with the server''s own counters. ok: true if they are equal, false if they differ but should not, NULL if they need not be equal, as reason explains.';

GRANT SELECT ON bench.total_samples, bench.total_warmup_samples, bench.nodes, bench.runs, bench.errors, bench.scripts, bench.statements, bench.summary, bench.progress, bench.loads, bench.audits, bench.waits, bench.events, bench.relations, bench.fixture_definitions TO PUBLIC;
