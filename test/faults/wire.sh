#!/usr/bin/env bash
# The driver over connections: stops, cancels, lost connections, servers that do not let it in.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'max_connections = 30'

clients() { sql "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"; }

# Starts a run over connections and waits until they are at work.
begin() { # ARGUMENTS
    RUN=$(sql "SELECT bench.start($1, secs => 60, driver => 'wire')")
    eventually 20 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
    eventually 20 "SELECT count(*) = 6 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
}

over() { # DESCRIPTION
    is "$(clients)" 0 "$1: no connection is left"
    nothing_left "$1"
}

stops_at_once() { # DESCRIPTION
    clock
    is "$(sql "SELECT bench.stop($RUN)")" t "$1: stops it"
    within 3000 "$1: within 3 s"
    status_is "$RUN" canceled "$1"
    is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $RUN")" 0 "$1: which is no error"
    over "$1"
}

#
# Stops
#
for script in 'SELECT pg_sleep(60)' '\sleep 60 s' 'SELECT 1'; do
    name="bench.stop in $script"
    begin "script => '$script', clients => 6, jobs => 2"
    stops_at_once "$name"
done
name='bench.stop before transactions are due'
begin "script => 'SELECT 1', clients => 6, rate => 0.01"
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled "$name"
over "$name"

name='a caller that is canceled'
session caller "SELECT bench.run(script => 'SELECT pg_sleep(60)', clients => 6, secs => 60, driver => 'wire')"
eventually 20 "SELECT count(*) = 6 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
clock
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null
ended caller 10
within 3000 "$name: all is over within 3 s"
like "$OUT" 'ERROR:  57014' "$name: the caller gets its error"
over "$name"

name='a job that is terminated'
begin "'pk_select', clients => 6"
pid=$(pgrep -u "$CLUSTER_USER" -f "pgbench_ext job" -P "$(head -1 "$PGHOST/data/postmaster.pid")")
as_pg kill -TERM "$pid"
eventually 20 "SELECT status NOT IN ('starting', 'running') FROM bench.runs WHERE run_id = $RUN"
like "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" 'incomplete|completed' "$name: the run ends"
over "$name"

#
# Connections that are lost
#
name='terminated sessions'
begin "'pk_update', clients => 6"
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgbench_ext'" >/dev/null
eventually 20 "SELECT status = 'incomplete' FROM bench.runs WHERE run_id = $RUN"
status_is "$RUN" incomplete "$name"
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '57P01|6' "$name: are told with their error"
over "$name"

name='one terminated session of six'
begin "'pk_update', clients => 6"
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgbench_ext' LIMIT 1" >/dev/null
eventually 20 "SELECT count(*) = 5 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '57P01|1' "$name: the others go on"
over "$name"

name='exit_on_abort'
RUN=$(sql "SELECT bench.run(script => 'SELECT 1 / (:client_id::int - 1)', clients => 3, secs => 60,
    exit_on_abort => true, driver => 'wire')" 2>/dev/null)
is "$(sql "SELECT status, error ->> 'message' FROM bench.runs WHERE run_id = $RUN")" 'incomplete|division by zero' \
    "$name: the first error ends the run"
over "$name"

#
# A connection for each transaction
#
for script in 'SELECT pg_sleep(60)' 'SELECT 1'; do
    name="reconnect: bench.stop in $script"
    RUN=$(sql "SELECT bench.start(script => '$script', clients => 6, jobs => 2, secs => 60, driver => 'wire',
        reconnect => true)")
    eventually 20 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
    stops_at_once "$name"
done

# Sessions that are ending take the places of those that begin: 20 and 20 are more than there are.
name='reconnect with few connections'
RUN=$(sql "SELECT bench.run(script => 'SELECT 1', clients => 20, transactions => 20, driver => 'wire',
    reconnect => true)")
status_is "$RUN" completed "$name"
is "$(sql "SELECT transactions FROM bench.summary WHERE run_id = $RUN")" 400 "$name: every transaction"
over "$name"

name='reconnect without the right to connect'
sql 'CREATE ROLE leaver LOGIN' 'GRANT USAGE ON SCHEMA bench TO leaver' 'GRANT EXECUTE ON FUNCTION bench.start TO leaver'
RUN=$(sql 'SET ROLE leaver' "SELECT bench.start(script => 'SELECT pg_sleep(0.01)', clients => 3, secs => 60,
    driver => 'wire', reconnect => true)")
eventually 20 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
sql 'ALTER ROLE leaver NOLOGIN' >/dev/null
eventually 20 "SELECT status = 'incomplete' FROM bench.runs WHERE run_id = $RUN"
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '28000|3' "$name: ends each client"
over "$name"

#
# Connections that are lost, and clients that go on
#
terminate() {
    sql "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'pgbench_ext'" >/dev/null
}
back() { eventually 20 "SELECT count(*) = 6 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"; }
begin_to_survive() { # ARGUMENTS
    begin "$1, clients => 6, on_disconnect => 'reconnect'"
    eventually 20 "SELECT count(*) > 0 FROM bench.samples WHERE run_id = $RUN"
}
# Failed transactions by SQLSTATE, of those that an error of this one, or of any other, has ended.
told() {
    sql "SELECT coalesce(sum(failed) FILTER (WHERE sqlstate = '08007'), 0),
        coalesce(sum(failed) FILTER (WHERE sqlstate <> '08007'), 0) FROM bench.errors WHERE run_id = $RUN"
}

name='on_disconnect: statements by themselves'
begin_to_survive "'pk_update', jobs => 2"
for _ in 1 2 3; do
    terminate
    back
done
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled "$name"
is "$(sql "SELECT unknown > 0 FROM bench.summary WHERE run_id = $RUN")" t "$name: what was under way is in doubt"
is "$(sql "SELECT unknown, failed FROM bench.summary WHERE run_id = $RUN")" "$(told)" "$name: and counted once"
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$name: the audit accuses nobody"
over "$name"

name='on_disconnect: a statement in a block'
begin_to_survive "script => E'BEGIN;\nSELECT pg_sleep(60);\nEND;'"
asleep="SELECT count(*) = 6 FROM pg_stat_activity WHERE application_name = 'pgbench_ext' AND wait_event = 'PgSleep'"
eventually 20 "$asleep"
terminate
eventually 20 "$asleep"
clock
sql "SELECT bench.stop($RUN)" >/dev/null
within 3000 "$name: is stopped within 3 s"
is "$(sql "SELECT transactions, failed, unknown FROM bench.summary WHERE run_id = $RUN")" '0|6|0' \
    "$name: has failed, and is not in doubt"
is "$(sql "SELECT sqlstate, count, failed FROM bench.errors WHERE run_id = $RUN")" '57P01|6|6' \
    "$name: with the server's error"
over "$name"

name='on_disconnect: between two transactions'
begin_to_survive "script => 'SELECT 1', rate => 0.000001"
terminate
eventually 20 "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT transactions, failed, unknown FROM bench.summary WHERE run_id = $RUN")" '0|0|0' \
    "$name: no transaction is lost"
is "$(sql "SELECT sqlstate, count, failed FROM bench.errors WHERE run_id = $RUN")" '57P01|6|0' \
    "$name: only connections are"
over "$name"

# The end of a sleep that the lost connection was in must not be taken for that of the next one.
name='on_disconnect: within a sleep'
begin_to_survive "script => E'\\\\set n :n + 1\n\\\\sleep :n s\nSELECT 1;', variables => '{\"n\": 2}', log_rate => 1"
terminate
back
eventually 30 "SELECT transactions >= 6 FROM bench.progress WHERE run_id = $RUN"
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT count(*) FILTER (WHERE latency_ms < 1000 * (transaction + 2)), count(*) >= 6
    FROM bench.transactions WHERE run_id = $RUN AND outcome = 'processed'")" '0|t' \
    "$name: the next one is as long as it is to be"
over "$name"

name='on_disconnect: a database that lets nobody in'
begin_to_survive "'pk_update'"
PGDATABASE=template1 sql 'ALTER DATABASE postgres ALLOW_CONNECTIONS false' >/dev/null
PGDATABASE=template1 terminate
for _ in {1..200}; do
    ! grep -q 'is not currently accepting connections' "$PGHOST/log" || break
    sleep 0.1
done
PGDATABASE=template1 sql 'ALTER DATABASE postgres ALLOW_CONNECTIONS true' >/dev/null
back
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled "$name"
is "$(sql "SELECT count > 0, failed FROM bench.errors WHERE run_id = $RUN AND sqlstate = '55000'")" 't|0' \
    "$name: attempts are among the errors, and no transactions"
over "$name"

# What only sessions over connections do can be set and measured.
name='settings => log_statement'
before=$(grep -c 'SELECT 4711' "$PGHOST/log")
try "SELECT bench.run(script => 'SELECT 4711', clients => 2, transactions => 3, driver => 'wire',
    settings => '{\"log_min_duration_statement\": 0, \"idle_in_transaction_session_timeout\": \"1min\"}')"
status_is "$(last_run)" completed "$name"
is "$(($(grep -c 'duration: .* execute P_0: SELECT 4711' "$PGHOST/log") - before))" 6 "$name: each execution is logged"
try "SELECT bench.run(script => 'SELECT 1', transactions => 1, driver => 'wire',
    settings => '{\"role\": \"postgres\"}')"
like "$OUT" 'ERROR:  0A000: configuration parameter "role" has no effect on a run' "$name: who it is cannot be set"

#
# Servers that do not let it in
#
name='more clients than max_connections'
try "SELECT bench.run('pk_select', clients => 40, secs => 5, driver => 'wire')"
like "$OUT" 'ERROR:  53300: (sorry, too many clients already|remaining connection slots)' "$name: the server's error"
like "$OUT" 'The run has 40 connections; max_connections is 30' "$name: with the numbers"
like "$OUT" 'HINT:  .*max_connections' "$name: with a hint"
eventually 10 "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
over "$name"

sql "CREATE ROLE asked LOGIN PASSWORD 'secret'" 'GRANT USAGE ON SCHEMA bench TO asked' \
    "GRANT EXECUTE ON FUNCTION bench.run TO asked"
as_pg sed -i '1i local all asked scram-sha-256' "$PGHOST/data/pg_hba.conf"
sql 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT count(*) = 1 FROM pg_hba_file_rules WHERE user_name = '{asked}'"
name='a password'
try 'SET ROLE asked' "SELECT bench.run(script => 'SELECT 1', secs => 5, driver => 'wire')"
like "$OUT" 'ERROR:  28[0P]' "$name: is asked for, and there is none"
over "$name"
like "$OUT" 'HINT:  .*bench_local' "$name: with a hint"
sql 'CREATE SERVER bench_local FOREIGN DATA WRAPPER bench_wire' \
    "CREATE USER MAPPING FOR asked SERVER bench_local OPTIONS (password 'secret')"
try 'SET ROLE asked' "SELECT bench.run(script => 'SELECT 1', secs => 5, driver => 'wire')"
like "$OUT" 'ERROR:  28[0P]' "$name: of a mapping on a server that the role may not use is not used"
sql 'GRANT USAGE ON FOREIGN SERVER bench_local TO asked'
try 'SET ROLE asked' "SELECT bench.run(script => 'SELECT 1', clients => 3, transactions => 10, jobs => 2,
    driver => 'wire')"
like "$OUT" 'actually processed: 30' "$name: of the mapping on bench_local lets it in"
sql "ALTER USER MAPPING FOR asked SERVER bench_local OPTIONS (SET password 'wrong')"
try 'SET ROLE asked' "SELECT bench.run(script => 'SELECT 1', clients => 3, secs => 5, driver => 'wire')"
like "$OUT" 'ERROR:  28P01: password authentication failed for user "asked"' "$name: that is wrong is refused"
over "$name"
is "$(grep -c secret "$PGHOST/log")" 0 "$name: none is in the log"

name='a pipeline over connections of each transaction'
try "SELECT bench.run(script => E'\\\\startpipeline\nSELECT 1;\nSELECT 2;\n\\\\endpipeline', clients => 3,
    transactions => 5, query_mode => 'extended', reconnect => true, driver => 'wire')"
like "$OUT" 'actually processed: 15' "$name"

name='a role that may not log in'
sql 'CREATE ROLE nologin' 'GRANT USAGE ON SCHEMA bench TO nologin' 'GRANT EXECUTE ON FUNCTION bench.run TO nologin'
try 'SET ROLE nologin' "SELECT bench.run(script => 'SELECT 1', secs => 5, driver => 'wire')"
like "$OUT" 'ERROR:  28000: role "nologin" is not permitted to log in' "$name: is refused before"

no_restart 'the server has not restarted'

#
# A server whose processes may have few files
#
name='few files'
cluster_stop
(ulimit -n 128 && cluster_resume)
remember_server
try "SELECT bench.run(script => 'SELECT 1', clients => 100, transactions => 1, jobs => 1, driver => 'wire')"
like "$OUT" 'ERROR:  53000: a job cannot have 100 connections' "$name: is found before connections are made"
like "$OUT" 'DETAIL:  .*128 files open \(RLIMIT_NOFILE\)' "$name: with the number"
like "$OUT" 'HINT:  Use more jobs' "$name: with a hint"
over "$name"
try "SELECT bench.run(script => 'SELECT 1', clients => 20, transactions => 1, jobs => 1, driver => 'wire')"
like "$OUT" 'actually processed: 20' "$name: enough for others"
no_restart "$name: the server has not restarted"
log_is_clean
done_testing
