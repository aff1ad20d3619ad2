-- Captures: functions. Those that capture are for whoever is granted them.

CREATE FUNCTION bench.capture(name text, secs double precision DEFAULT 60, statements int DEFAULT 50, options jsonb DEFAULT '{}')
    RETURNS TABLE (workload text, weight int, calls bigint, share_percent double precision, kept boolean, reason text, query text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'capture_statements_wrapper';
COMMENT ON FUNCTION bench.capture IS
'Creates a workload for each top-level statement that pg_stat_statements counts in this database within secs seconds, with feeders that draw its parameters from real rows; bench.run(name) runs the mix with the observed weights. Returns a row per statement or transaction shape: share_percent is its share of the time, reason says why it was not kept, and query has its first 60 characters.';

CREATE FUNCTION bench.start_capture(name text, secs double precision DEFAULT 60, statements int DEFAULT 50, options jsonb DEFAULT '{}')
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_capture_wrapper';
COMMENT ON FUNCTION bench.start_capture IS
'Starts a capture with the arguments of bench.capture in a background worker and returns immediately. See bench.captures for its status and bench.capture_statements for its statements.';

CREATE FUNCTION bench.wait_capture(name text, timeout double precision DEFAULT NULL)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'wait_capture_wrapper';
COMMENT ON FUNCTION bench.wait_capture IS
'Waits until a capture started by bench.start_capture ends, or for timeout seconds, and returns its status.';

CREATE FUNCTION bench.stop_capture(name text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'stop_capture_wrapper';
COMMENT ON FUNCTION bench.stop_capture IS
'Cancels a capture started by bench.start_capture. Returns false if it was not active. Requires the privileges of the role that captures or of pg_signal_backend.';

CREATE FUNCTION bench.drop_capture(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_capture_wrapper';
COMMENT ON FUNCTION bench.drop_capture IS
'Removes a capture with its workloads, feeders and stored values. Requires the privileges of the role that captured.';

CREATE FUNCTION bench.export_capture(name text, with_values boolean DEFAULT true)
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_capture_wrapper';
COMMENT ON FUNCTION bench.export_capture IS
'Returns a capture as one document for bench.import_capture on a server with a copy of the data, with stored values, which may be personal data: with_values => false leaves them out, and the statements that need them are not replayed then. Requires the privileges of the role that captured. To write a file: psql -XAtc "SELECT bench.export_capture(''shop'')" > shop.json';

CREATE FUNCTION bench.import_capture(document jsonb)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'import_capture_wrapper';
COMMENT ON FUNCTION bench.import_capture IS
'Stores the capture of a document made by bench.export_capture, as the calling role''s, whatever it says of roles, and returns its name, which bench.run takes. A NOTICE says which share of the captured time cannot be replayed; bench.capture_statements.reason says why. A capture of the same name is replaced.';

CREATE FUNCTION bench.fidelity(run_id bigint)
    RETURNS TABLE (workload text, calls bigint, rows_captured double precision, rows_replayed double precision,
                   blocks_captured double precision, blocks_replayed double precision, score double precision,
                   hit_captured double precision, hit_replayed double precision, read_captured double precision,
                   read_replayed double precision, ms_captured double precision, ms_replayed double precision, failed bigint,
                   reason text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'fidelity_of_run_wrapper';
COMMENT ON FUNCTION bench.fidelity IS
'Compares a run of a capture with the capture, per call of each statement or transaction: rows, blocks and milliseconds, commits not included. score is the product of the ratios of rows and blocks and of the share of transactions that did not fail, at most 1. The last row, with workload NULL, is the total: its score is the lowest of bench.fidelity_parts, and reason names what is wrong.';

CREATE FUNCTION bench.fidelity_parts(run_id bigint)
    RETURNS TABLE (part text, captured double precision, replayed double precision, score double precision, reason text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'fidelity_parts_wrapper';
COMMENT ON FUNCTION bench.fidelity_parts IS
'Compares a run of a whole capture with the capture, one row per aspect: share of the time that is replayed, transactions without an error, statements per transaction, rows, blocks, WAL bytes and WAL flushes per transaction of the application, time, wait events, and the calls themselves. score is 1 if both sides are equal; NULL: not judged, see reason.';

REVOKE ALL ON FUNCTION bench.capture, bench.start_capture, bench.stop_capture, bench.drop_capture, bench.export_capture,
    bench.import_capture FROM PUBLIC;
