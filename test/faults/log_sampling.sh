#!/usr/bin/env bash
# While bench.capture has the server log transactions: who may, what happens where it cannot be done, and that the
# server gets its own settings back whatever ends it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# The log has a format of the administrator's, and a rate by ALTER SYSTEM.
cluster_start 'fsync = off' "shared_preload_libraries = 'pg_stat_statements'" 'logging_collector = on' \
    "log_directory = 'log'" "log_destination = 'csvlog'" "lc_messages = 'C'" || exit 1
remember_server
sql 'CREATE EXTENSION pg_stat_statements' 'CREATE EXTENSION pgbench_ext' 'CREATE ROLE app LOGIN' \
    'GRANT CREATE ON SCHEMA public TO app' "ALTER SYSTEM SET log_transaction_sample_rate = 0.0001" \
    'SELECT pg_reload_conf()' >/dev/null
PGUSER=app pgbench -i -q -s 1 >/dev/null 2>&1
server_file() { as_pg cat "$PGHOST/data/postgresql.auto.conf"; }
settings() {
    sql "SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_settings
        WHERE name IN ('log_destination', 'log_transaction_sample_rate', 'log_parameter_max_length')"
}
eventually 5 "SELECT current_setting('log_transaction_sample_rate') = '0.0001'"
FILE=$(server_file)
SETTINGS=$(settings)

as_before() { # DESC
    local got
    for _ in {1..150}; do
        got=$(settings 2>/dev/null)
        [ "$got" != "$SETTINGS" ] || break
        sleep 0.1
    done
    is "$got" "$SETTINGS" "$1: the server's settings are as before"
    is "$(server_file)" "$FILE" "$1: postgresql.auto.conf is as before"
    is "$(sql 'SELECT count(*) FROM bench_internal.capture_list WHERE system_settings IS NOT NULL')" 0 \
        "$1: nothing is left to be put back"
}

# An application; it comes back after a crash of the server.
while :; do PGUSER=app pgbench -n -c 2 -R 100 -T 3600 >/dev/null 2>&1 || sleep 0.2; done &
PIDS[application]=$!
disown
at_exit 'pkill -f "^pgbench -n -c 2 -R 100"'
eventually 10 "SELECT count(*) > 1 FROM pg_stat_activity WHERE usename = 'app'"

sampling() { # waits until transactions are logged
    eventually 15 "SELECT setting::float8 > 0.5 FROM pg_settings WHERE name = 'log_transaction_sample_rate'"
}
status() { sql "SELECT status FROM bench.captures WHERE name = '$1'"; }
first_note() { sql "SELECT notes[1] FROM bench.captures WHERE name = '$1'"; }

#
# Ends of all kinds
#
sql "SELECT bench.start_capture('stopped', 60)"
sampling
sql "SELECT bench.stop_capture('stopped')" >/dev/null
as_before 'stopped'
is "$(status stopped)" canceled 'and so it says'

session caller "SELECT bench.capture('left', 60)"
sampling
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null
ended caller
as_before 'its caller was terminated'

sql "SELECT bench.start_capture('terminated', 60)"
sampling
sql "SELECT pg_terminate_backend(pid) FROM bench_internal.capture_list WHERE name = 'terminated'" >/dev/null
as_before 'terminated'
like "$(status terminated)" '^(failed|crashed)$' 'and so it says'

sql "SELECT bench.start_capture('crashed', 60)"
sampling
as_pg kill -9 "$(sql "SELECT pid FROM bench_internal.capture_list WHERE name = 'crashed'")"
sleep 0.5
eventually 20 'SELECT NOT pg_is_in_recovery()'
as_before 'killed'
is "$(status crashed)" crashed 'and so it says'
remember_server
eventually 10 "SELECT count(*) > 1 FROM pg_stat_activity WHERE usename = 'app'"

sql "SELECT bench.start_capture('restarted', 60)"
sampling
cluster_restart
remember_server
as_before 'the server was shut down'
eventually 10 "SELECT count(*) > 1 FROM pg_stat_activity WHERE usename = 'app'"

# As a loss of power leaves it.
sql "SELECT bench.start_capture('lost', 60)"
sampling
cluster_restart immediate
remember_server
like "$(psql_verbose "SELECT bench.drop_capture('lost')")" \
    '55000: capture "lost" has not restored.*HINT: +The next bench.capture' 'what has to be put back is not dropped'
like "$(psql_verbose 'DROP EXTENSION pgbench_ext')" \
    '55006: a sweep or a capture has not restored.*HINT: +The next bench.capture' 'nor is the extension'
sql "SELECT bench.capture('next', secs => 0)" >/dev/null 2>&1
as_before 'the next capture puts it back'
is "$(sql "SELECT bench.drop_capture('lost')")" '' 'then it can be dropped'
eventually 10 "SELECT count(*) > 1 FROM pg_stat_activity WHERE usename = 'app'"

# A dump of that moment, restored elsewhere: what has to be put back is the original's.
sql "SELECT bench.start_capture('dumped', 60)"
sampling
sql 'CREATE DATABASE restored'
pg_dump | PGDATABASE=restored psql -XAtq -v ON_ERROR_STOP=1 -o /dev/null
written() { sql "SELECT setting FROM pg_file_settings WHERE name = 'log_transaction_sample_rate'
    AND sourcefile LIKE '%auto.conf'"; }
rate=$(written)
sql "SELECT bench.stop_capture('dumped')" >/dev/null
as_before 'dumped meanwhile'
sql "ALTER SYSTEM SET log_transaction_sample_rate = '$rate'" >/dev/null
PGDATABASE=restored sql "SELECT bench.capture('next', secs => 0)" >/dev/null 2>&1
is "$(written)" "$rate" 'a capture in the restored database puts nothing back'
is "$(PGDATABASE=restored sql "SELECT bench.drop_capture('dumped')")" '' 'and the restored capture can be dropped'
sql 'ALTER SYSTEM SET log_transaction_sample_rate = 0.0001' >/dev/null
PGDATABASE=postgres sql 'DROP DATABASE restored' >/dev/null

# A session that was idle at the time is logged as others are.
coproc psql -XAtq -U app 2>&1
echo "SELECT 'idle';" >&"${COPROC[1]}"
read -r _ <&"${COPROC[0]}"
sql "SELECT bench.start_capture('idle', 5)"
sampling
echo "BEGIN; SELECT 'was idle' || 7; COMMIT;" >&"${COPROC[1]}"
read -r _ <&"${COPROC[0]}"
is "$(sql "SELECT bench.wait_capture('idle')")" completed 'a capture with a session that is idle at first'
is "$(sql "SELECT kept, statements FROM bench.capture_statements
    WHERE capture = 'idle' AND query = 'SELECT \$1 || \$2'")" 't|1' 'has its transactions'

#
# Who may, and where it cannot be done
#
sql 'CREATE ROLE cap LOGIN IN ROLE app' 'GRANT EXECUTE ON FUNCTION bench.capture TO cap'
needs() { # OBSTACLE GRANT: without the grant, and then with it
    local out
    out=$(PGUSER=cap psql_verbose "SELECT bench.capture('mine', 1, options => '{\"transactions\": true}')")
    like "$out" "55000: cannot have transactions logged: $1.*HINT: +Without option" "without: $2"
    sql "$2"
}
for name in log_destination log_transaction_sample_rate log_parameter_max_length; do
    needs "the role may not ALTER SYSTEM SET $name" "GRANT ALTER SYSTEM ON PARAMETER $name TO cap"
done
needs 'the role may not execute pg_catalog.pg_reload_conf' 'GRANT EXECUTE ON FUNCTION pg_reload_conf TO cap'
needs 'the role may not execute pg_catalog.pg_show_all_file_settings' \
    'GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO cap'
needs 'the role may not execute pg_catalog.pg_current_logfile' \
    'GRANT EXECUTE ON FUNCTION pg_current_logfile(text) TO cap'
sql 'GRANT pg_monitor TO cap'
PGUSER=cap sql "SELECT bench.capture('single', 3)" >/dev/null 2>&1
is "$(sql "SELECT source FROM bench.captures WHERE name = 'single'")" statements \
    'where it is not asked for, statements are captured'
like "$(first_note single)" \
    'each statement of the capture is a transaction, but .* [45]\.[0-9] statements: .*lacks .* pg_read_server_files' \
    'its first note says so, and why'
needs 'the role lacks the privileges of pg_read_server_files' 'GRANT pg_read_server_files TO cap'
PGUSER=cap sql "SELECT bench.capture('mine', 4, options => '{\"transactions\": true, \"writes\": true}')" \
    >/dev/null 2>&1
is "$(sql "SELECT source, status, role, error FROM bench.captures WHERE name = 'mine'")" 'log|completed|cap|' \
    'with the documented rights an ordinary role captures transactions'
is "$(sql "SELECT statements, role FROM bench.capture_statements WHERE workload = 'mine/1'")" '5|app' \
    'all statements of each'
is "$(sql "SELECT sum(share) > 0.9 FROM bench.capture_statements WHERE capture = 'mine' AND kept")" t 'nearly all'
as_before 'a role that is no superuser'
# What writes most of the WAL and cannot be replayed is named.
PGUSER=app sql 'CREATE TABLE events (id int, body text)'
copy_events() { seq 2000 | sed "s/$/\t$(printf 'x%.0s' {1..200})/" | psql -XAtq -U app -c 'COPY events FROM STDIN'; }
while copy_events; do sleep 0.1; done &
PIDS[copies]=$!
disown
PGUSER=cap sql "SELECT bench.capture('copied', 4, options => '{\"transactions\": true, \"writes\": true}')" \
    >/dev/null 2>&1
kill "${PIDS[copies]}"
wrote='statements that are not replayed wrote [6-9][0-9]\.[0-9] % of the WAL'
wrote+=' and have [0-9.]+ % of the rows, foremost COPY events'
like "$(sql "SELECT notes FROM bench.captures WHERE name = 'copied'")" "$wrote" 'a note names what is not replayed'
run=$(sql "SELECT bench.run('copied', clients => 2, secs => 3)" 2>/dev/null)
like "$(sql "SELECT reason FROM bench.fidelity($run) WHERE workload IS NULL")" "WAL bytes .* → .*: $wrote" \
    'and so does the fidelity'
# Rights that its role loses meanwhile are not needed to put them back.
sql 'GRANT EXECUTE ON FUNCTION bench.start_capture TO cap'
PGUSER=cap sql "SELECT bench.start_capture('revoked', 60, options => '{\"transactions\": true}')"
sampling
is $? 0 'transactions are logged for a role that is no superuser'
sql 'REVOKE ALTER SYSTEM ON PARAMETER log_destination, log_transaction_sample_rate FROM cap' \
    'REVOKE EXECUTE ON FUNCTION pg_show_all_file_settings() FROM cap' 'REVOKE pg_monitor FROM cap' >/dev/null
sql "SELECT bench.stop_capture('revoked')" >/dev/null
as_before 'a role that has lost its rights'
sql 'CREATE ROLE boss LOGIN SUPERUSER'
PGUSER=boss sql "SELECT bench.start_capture('demoted', 60)"
sampling
sql 'ALTER ROLE boss NOSUPERUSER' \
    "SELECT pg_terminate_backend(pid) FROM bench_internal.capture_list WHERE name = 'demoted'" >/dev/null
as_before 'a role that is no superuser any more, terminated'
for option in '"by": "calls"' '"exclude": ["x"]' '"list_length": 3'; do
    like "$(psql_verbose "SELECT bench.capture('x', 1, options => '{\"transactions\": true, $option}')")" \
        '22023: option .* and option "transactions" cannot be combined' "not with $option"
done
like "$(psql_verbose "SELECT bench.capture('x', 0, options => '{\"transactions\": true}')")" \
    '22023: secs => 0 and option "transactions"' 'nor of what has been counted before'
sql "SELECT bench.capture('without', 2, options => '{\"transactions\": false, \"writes\": true}')" >/dev/null 2>&1
is "$(sql "SELECT source FROM bench.captures WHERE name = 'without'")" statements 'nor where it is declined'

# A run of single statements is another benchmark, and says so before all else.
run=$(sql "SELECT bench.run('without', clients => 2, secs => 2)" 2>/dev/null)
like "$(sql "SELECT score < 0.3, reason FROM bench.fidelity($run) WHERE workload IS NULL")" \
    "^t.*the application's transactions have [45]\.[0-9] statements, those of the replay 1" \
    'the fidelity of single statements is low'
is "$(sql "SELECT severity, topic, advice LIKE '%Capture transactions%' FROM bench.findings($run) LIMIT 1")" \
    'critical|fidelity|t' 'the first finding says why'
like "$(sql "SELECT bench.report($run)")" 'Findings.*critical: The run is not what was captured' 'so does a report'
like "$(sql "SELECT bench.report($run)")" 'Fidelity.*WAL flushes.*each call' 'which has all parts'

# Only one at a time sets parameters.
sql "SELECT bench.start_capture('first', 60)"
sampling
like "$(psql_verbose "SELECT bench.capture('second', 3, options => '{\"transactions\": true}')")" \
    '55006: another sweep or capture is setting server parameters' 'not two at a time'
sql "SELECT bench.capture('second', 3)" >/dev/null 2>&1
like "$(first_note second)" 'another sweep or capture is setting server parameters' 'a second one takes statements'
sql "SELECT bench.stop_capture('first')" >/dev/null
as_before 'one of two'

#
# Without a collector, as packages of PostgreSQL have it: the server's stderr, where that is a file.
#
as_pg bash -c "printf '%s\n' 'logging_collector = off' 'log_destination = stderr' >>'$PGHOST/data/postgresql.conf'"
cluster_restart
remember_server
FILE=$(server_file)
prefix() { sql "SELECT setting FROM pg_settings WHERE name = 'log_line_prefix'"; }
PREFIX=$(prefix)
SETTINGS=$(settings)
eventually 10 "SELECT count(*) > 1 FROM pg_stat_activity WHERE usename = 'app'"
sql 'GRANT pg_monitor TO cap' \
    'GRANT ALTER SYSTEM ON PARAMETER log_destination, log_transaction_sample_rate TO cap' \
    'GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO cap' \
    'REVOKE EXECUTE ON FUNCTION pg_current_logfile(text) FROM cap' >/dev/null
needs 'the role may not ALTER SYSTEM SET log_line_prefix' 'GRANT ALTER SYSTEM ON PARAMETER log_line_prefix TO cap'
PGUSER=cap sql "SELECT bench.capture('stderr', 4, options => '{\"transactions\": true, \"writes\": true}')" \
    >/dev/null 2>&1
is "$(sql "SELECT source, status, error FROM bench.captures WHERE name = 'stderr'")" 'log|completed|' \
    'without a collector, transactions are captured from the server'"'"'s stderr'
is "$(sql "SELECT statements, role FROM bench.capture_statements WHERE workload = 'stderr/1'")" '5|app' \
    'all statements of each'
is "$(sql "SELECT sum(share) > 0.9 FROM bench.capture_statements WHERE capture = 'stderr' AND kept")" t 'nearly all'
is "$(sql "SELECT count(*) > 50 FROM bench.captured_rows WHERE workload = 'stderr/1'")" t 'with their values'
as_before 'a capture from stderr'
is "$(prefix)" "$PREFIX" 'and so is log_line_prefix'
sql "SELECT bench.start_capture('crashed', 60)"
sampling
unlike "$(prefix)" '^%m' 'meanwhile it is another one'
as_pg kill -9 "$(sql "SELECT pid FROM bench_internal.capture_list WHERE name = 'crashed'")"
sleep 0.5
eventually 20 'SELECT NOT pg_is_in_recovery()'
as_before 'killed without a collector'
is "$(prefix)" "$PREFIX" 'and so is log_line_prefix'
remember_server

# A pipe, as in containers.
as_pg pg_ctl -D "$PGHOST/data" -m fast -s -w -t 120 stop
as_pg bash -c "'$(pg_config --bindir)/postgres' -D '$PGHOST/data' 2>&1 </dev/null | cat >/dev/null &"
eventually 30 'SELECT true'
remember_server
like "$(PGUSER=cap psql_verbose "SELECT bench.capture('x', 1, options => '{\"transactions\": true}')")" \
    'logging_collector is off, and .* no regular file: set logging_collector = on and restart the server' \
    'where stderr is a pipe, the error says what to set'

no_restart 'the server went on'
done_testing
