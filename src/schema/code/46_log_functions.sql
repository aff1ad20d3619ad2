-- Transactions from the server's log.

CREATE FUNCTION bench.capture_log(
    name    text,
    log     regclass DEFAULT NULL,
    file    text DEFAULT NULL,
    format  text DEFAULT NULL,
    shapes  int DEFAULT 50,
    options jsonb DEFAULT '{}')
    RETURNS TABLE (workload text, weight int, calls bigint, share_percent double precision, kept boolean, reason text,
                   exec_ms_avg double precision, value_rows bigint, query text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'capture_log_wrapper';
COMMENT ON FUNCTION bench.capture_log IS
'Creates a mix of workloads from the transactions in a server log: a script for each shape (a sequence of statements without their values), weighted by its frequency; bench.run(name) replays them with logged values at any rate. Returns a row per shape, and per reason why transactions cannot be replayed: calls counts transactions, share_percent is their share of the time, exec_ms_avg is in milliseconds per transaction.';

REVOKE ALL ON FUNCTION bench.capture_log FROM PUBLIC;
