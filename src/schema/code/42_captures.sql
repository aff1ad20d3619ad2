-- What is shown of captures, and to whom.

CREATE VIEW bench.captures WITH (security_barrier) AS
SELECT name, bench_internal.role_name(owner_oid, role) AS role, source, options,
       CASE WHEN status = 'capturing' AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = l.pid)
            THEN 'crashed' ELSE status END AS status,
       started_at, finished_at, secs, calls, exec_ms, dealloc, notes, error, activity
FROM bench_internal.capture_list l
WHERE bench_internal.is_visible(owner_oid);
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
COMMENT ON COLUMN bench.captures.activity IS 'What the database did in that time: transactions, statements, rows, blocks, WAL, sessions, how often these were seen idle in a transaction and at work, by wait event, and the share of WAL and rows of statements that are not replayed; for bench.fidelity. NULL if secs is 0 or the capture is from a log';
COMMENT ON COLUMN bench.captures.notes IS 'What to know about the capture';
COMMENT ON COLUMN bench.captures.error IS 'Why it failed: sqlstate, message, detail, hint';

ALTER TABLE bench.capture_statements ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON bench.capture_statements FOR SELECT USING (capture IN (SELECT c.name FROM bench.captures c));
COMMENT ON POLICY visible ON bench.capture_statements IS 'Shows the statements of captures that bench.captures shows';
ALTER TABLE bench.captured_rows ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON bench.captured_rows FOR SELECT USING (workload IN (
    SELECT w.name FROM bench.workloads w WHERE pg_has_role(w.owner_oid, 'USAGE')));
COMMENT ON POLICY visible ON bench.captured_rows IS 'Shows the values to members of the role whose sessions run the workload';
ALTER TABLE bench.workloads ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON bench.workloads FOR SELECT USING (NOT private OR pg_has_role(owner_oid, 'USAGE'));
ALTER TABLE bench.feeders ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON bench.feeders FOR SELECT USING (workload IN (SELECT w.name FROM bench.workloads w));
COMMENT ON POLICY visible ON bench.feeders IS 'Shows the feeders of workloads that bench.workloads shows';
COMMENT ON POLICY visible ON bench.workloads IS 'Shows private workloads to members of their owner';

GRANT SELECT ON bench.captures, bench.capture_statements, bench.captured_rows TO PUBLIC;
