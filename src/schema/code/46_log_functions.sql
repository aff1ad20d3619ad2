-- Transactions from the server's log.

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
'Makes a mix of workloads from the transactions in a log of the server: a script for each shape, which is the sequence of statements without their values, weighted by how often it occurred. bench.run(name) then replays them at any rate, each transaction with the values of one that was logged. It is not an exact replay, which pgreplay does: order and sessions are not kept. log is a table with the columns of csvlog, or with one column of lines of jsonlog; file is a file or directory of the server, for roles with the privileges of pg_read_server_files; format, csv or json, is found out unless given. shapes limits the number of workloads, at most 128. options: application and database (only theirs), roles (own, or an array of names; default: all that you can SET ROLE to), mask (hash texts), max_rows (rows of values per shape), sample_rate (log_transaction_sample_rate as logged), think_times (each, mean or none), writes (keep transactions that change data). Returns a row per shape, and per reason why transactions cannot be replayed: calls are transactions, share is of the time in the server, or of the transactions where durations are not logged, exec_ms_avg is milliseconds per transaction.';

REVOKE ALL ON FUNCTION bench.capture_log FROM PUBLIC;
