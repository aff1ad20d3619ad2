-- Captures: functions. Those that capture are for whoever is granted them.

CREATE FUNCTION bench.capture(name text, secs double precision DEFAULT 60, statements int DEFAULT 50, options jsonb DEFAULT '{}')
    RETURNS TABLE (workload text, weight int, calls bigint, share double precision, kept boolean, reason text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'capture_statements_wrapper';
COMMENT ON FUNCTION bench.capture IS
'Makes a benchmark of what pg_stat_statements counts in this database within secs seconds: a workload for each top-level statement, with feeders that draw its parameters from real rows, and the observed weights; bench.run(name) runs the mix, each statement in sessions of the role that executed it. secs 0: takes what pg_stat_statements has already. statements: how many to keep at most. Options: by (time or calls: which statements are the most important), writes (true: also keeps statements that write), roles (own, or an array of names: whose statements; default: all that you can SET ROLE to), list_length (elements of a squashed list of PostgreSQL 18), mask (true: values that the capture keeps are replaced by hashes of their length). Returns a row per statement; reason says why one was not kept. A capture of the same name is replaced.';

CREATE FUNCTION bench.start_capture(name text, secs double precision DEFAULT 60, statements int DEFAULT 50, options jsonb DEFAULT '{}')
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_capture_wrapper';
COMMENT ON FUNCTION bench.start_capture IS
'Starts a capture with the arguments of bench.capture in a background worker and returns immediately. See bench.captures for its status and bench.capture_statements for its statements.';

CREATE FUNCTION bench.wait_capture(name text, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_capture_wrapper';
COMMENT ON FUNCTION bench.wait_capture IS
'Waits until a capture that bench.start_capture has started ends and returns its status; after timeout seconds returns its status anyway.';

CREATE FUNCTION bench.stop_capture(name text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'cancel_capture_wrapper';
COMMENT ON FUNCTION bench.stop_capture IS
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

REVOKE ALL ON FUNCTION bench.capture, bench.start_capture, bench.stop_capture, bench.drop_capture, bench.export_capture,
    bench.import_capture FROM PUBLIC;
