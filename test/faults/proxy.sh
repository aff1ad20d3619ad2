#!/usr/bin/env bash
# Connections over a network that refuses, is slow, is cut, stalls or answers garbage; and passwords as servers ask for
# them. What is left behind: nothing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'dynamic_shared_memory_type = mmap' "password_encryption = 'md5'"
sql "CREATE ROLE mdfive LOGIN PASSWORD 'sesame'" "CREATE ROLE clear LOGIN PASSWORD 'sesame'" \
    'GRANT USAGE ON SCHEMA bench_data TO mdfive, clear' \
    'GRANT ALL ON ALL TABLES IN SCHEMA bench_data TO mdfive, clear' \
    'CREATE ROLE alice LOGIN' 'GRANT USAGE ON SCHEMA bench TO alice' \
    'GRANT EXECUTE ON FUNCTION bench.run TO alice' 'CREATE EXTENSION pg_prewarm'
as_pg sed -i '1i local all mdfive md5\nlocal all clear password' "$PGHOST/data/pg_hba.conf"
sql 'SELECT pg_reload_conf()' >/dev/null

mode() { echo "$1" >"$work/mode"; sleep 0.1; }
mode pass
python3 test/lib/proxy.py "$work/port" "$work/mode" "$PGHOST/.s.PGSQL.$PGPORT" &
at_exit "kill $! 2>/dev/null"
until [ -s "$work/port" ]; do sleep 0.05; done
target() { # NAME OPTIONS [USER-OPTIONS]
    sql "CREATE SERVER $1 FOREIGN DATA WRAPPER bench_wire
            OPTIONS (host '127.0.0.1', port '$(cat "$work/port")', dbname 'postgres', sslmode 'disable'${2:+, $2})" \
        "CREATE USER MAPPING FOR CURRENT_USER SERVER $1 ${3:+OPTIONS ($3)}"
}
target net ''
target quick "connect_timeout '2'"

run_on() { # TARGET ARGUMENTS
    try "SELECT bench.run($2, driver => 'wire', target => '$1', jobs => 2)"
}
begin() { # ARGUMENTS
    RUN=$(sql "SELECT bench.start($1, secs => 60, clients => 6, jobs => 2, driver => 'wire', target => 'net')")
    eventually 20 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
}
SESSIONS="FROM pg_stat_activity WHERE application_name = 'pgbench_ext' AND backend_type = 'client backend'"
# Without the one that watches the target.
CLIENTS="$SESSIONS AND query NOT LIKE 'SET LOCAL search_path%'"
segments() { as_pg ls "$PGHOST/data/pg_dynshmem" | wc -l; }
run_on net "'pk_select', clients => 4, transactions => 20"
like "$OUT" 'actually processed: 80' 'through the proxy: a run'
eventually 10 "SELECT count(*) = 0 $SESSIONS"
nothing_left 'through the proxy'
SEGMENTS=$(segments)
secrets_in_segments() { as_pg grep -la sesame -r "$PGHOST/data/pg_dynshmem" | wc -l; }
over() { # DESCRIPTION
    eventually 10 "SELECT count(*) = 0 $SESSIONS" >"$work/over"
    is "$(sql "SELECT count(*) $SESSIONS")" 0 "$1: no session is left"
    nothing_left "$1"
    is "$(($(segments) <= SEGMENTS))" 1 "$1: its segment is gone"
}

#
# Passwords
#
for user in mdfive clear; do
    name="a password asked for by $user"
    target "of_$user" '' "user '$user', password 'sesame'"
    run_on "of_$user" "'pk_select', clients => 3, transactions => 5"
    like "$OUT" 'actually processed: 15' "$name: the right one"
    sql "ALTER USER MAPPING FOR CURRENT_USER SERVER of_$user OPTIONS (SET password 'wrong')"
    run_on "of_$user" "'pk_select', clients => 3, transactions => 5"
    like "$OUT" "ERROR:  28P01: .*password authentication failed for user \"$user\"" "$name: a wrong one"
    is "$(grep -c '28P01' <<<"$OUT")" 1 "$name: said once"
    sql "GRANT USAGE ON FOREIGN SERVER of_$user TO alice" \
        "CREATE USER MAPPING FOR alice SERVER of_$user OPTIONS (user '$user', password 'sesame')"
    as_alice="SELECT bench.run('pk_select', clients => 2, transactions => 5, driver => 'wire', target => 'of_$user')"
    try 'SET ROLE alice' "$as_alice"
    like "$OUT" 'actually processed: 10' "$name: by a role that is no superuser"
    sql "ALTER USER MAPPING FOR alice SERVER of_$user OPTIONS (SET password 'wrong')"
    try 'SET ROLE alice' "$as_alice"
    like "$OUT" 'ERROR:  28P01' "$name: a wrong one of it"
    over "$name"
    sql "ALTER USER MAPPING FOR CURRENT_USER SERVER of_$user OPTIONS (SET password 'sesame')"
    RUN=$(sql "SELECT bench.start('pk_select', secs => 60, clients => 3, driver => 'wire', target => 'of_$user')")
    eventually 20 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
    is "$(($(segments) > SEGMENTS)) $(secrets_in_segments)" '1 0' "$name: while a run measures, no segment has it"
    sql "SELECT bench.stop($RUN)" >/dev/null
    # The caller's session gets in, and the fifth client does not.
    sql "ALTER ROLE $user CONNECTION LIMIT 4"
    run_on "of_$user" "'pk_select', clients => 6, transactions => 5"
    like "$OUT" 'ERROR:  53300' "$name: a run that fails to start"
    is "$(secrets_in_segments)" 0 "$name: leaves it in no segment"
    sql "ALTER ROLE $user CONNECTION LIMIT -1"
    over "$name, of runs"
    mode 'delay 200'
    session caller "SELECT bench.run('pk_select', transactions => 1, driver => 'wire', target => 'of_$user')"
    seen=0
    while [ "$seen" = 0 ] && kill -0 "${PIDS[caller]}" 2>/dev/null; do
        seen=$(secrets_in_segments)
    done
    is "$seen" 1 "$name: until its clients are connected, the run's segment has it"
    mode pass
    ended caller
    like "$OUT" 'actually processed: 1' "$name: and the run goes on"
    over "$name, of a slow one"
done

#
# The state that a run begins with
#
name='before on a target'
sql "SELECT bench.load('log', 0)" >/dev/null
vacuums() {
    sql "SELECT vacuum_count, analyze_count FROM pg_stat_user_tables WHERE relid = 'bench_data.pk'::regclass"
}
before=$(vacuums)
run_on net "'pk_update', transactions => 5, before => 'vacuum,prewarm,checkpoint'"
like "$OUT" 'actually processed: 5' "$name: a run"
is "$(vacuums)" "$((${before%|*} + 1))|$((${before#*|} + 1))" "$name: vacuum"
is "$(sql "SELECT before FROM bench.runs WHERE run_id = $(last_run)")" 'vacuum,prewarm,checkpoint' "$name: told"
sql 'CREATE EXTENSION pg_buffercache'
sql "SELECT bench.load('pk', 20000)" >/dev/null
cluster_restart
remember_server
run_on net "'pk_select', transactions => 1, before => 'prewarm'"
is "$(sql "SELECT count(*) = pg_relation_size('bench_data.pk') / 8192 FROM pg_buffercache
    WHERE relfilenode = pg_relation_filenode('bench_data.pk') AND relforknumber = 0")" t \
    "$name: prewarm reads all of it"
run_on net "'pk_insert', transactions => 10"
is "$(sql 'SELECT count(*) > 0 FROM bench_data.log')" t "$name: a table that runs fill"
sql "SELECT bench.create_workload('of_log', 'SELECT count(*) FROM log', 'log')"
run_on net "'of_log', transactions => 1, before => 'truncate'"
like "$OUT" 'actually processed: 1' "$name: truncate"
is "$(sql 'SELECT count(*) FROM bench_data.log')" 0 "$name: empties what was loaded empty"
run_on net "'pk_select', transactions => 1, before => 'truncate'"
like "$OUT" 'ERROR:  55000: fixture "pk" was loaded with rows' "$name: nothing else"
like "$OUT" 'Target "net" was prepared by before => .truncate' "$name: the error names the target"
run_on net "'pk_select', transactions => 1, before => 'reload'"
like "$OUT" 'ERROR:  0A000: before => .reload. is not supported with target' "$name: no reload"
for step in vacuum prewarm checkpoint; do
    run_on of_mdfive "'pk_select', transactions => 1, before => '$step'"
    like "$OUT" "ERROR:  42501: role \"mdfive\" may not $step" "$name: $step needs the privileges there"
done
sql 'DROP EXTENSION pg_prewarm'
run_on net "'pk_select', transactions => 1, before => 'prewarm'"
like "$OUT" 'ERROR:  55000: extension pg_prewarm is not installed on target "net"' "$name: prewarm needs pg_prewarm"
before=$(vacuums)
try "SELECT bench.sweep('pk_select', '{1}', secs => 0.2, rounds => 2, before => 'vacuum',
    variants => '{\"net\": {\"driver\": \"wire\", \"target\": \"net\"}}')"
is "$(vacuums)" "$((${before%|*} + 2))|$((${before#*|} + 2))" "$name: in a sweep, before each run"
try "SELECT bench.sweep('pk_select', '{1}', secs => 0.2, before => 'reload',
    variants => '{\"net\": {\"driver\": \"wire\", \"target\": \"net\"}}')"
like "$OUT" 'ERROR:  0A000: before => .reload' "$name: no reload in a sweep"
session holder 'BEGIN' 'LOCK TABLE bench_data.pk IN SHARE UPDATE EXCLUSIVE MODE' 'SELECT pg_sleep(60)'
holds holder
session caller "SELECT bench.run('pk_select', transactions => 1, before => 'vacuum',
    driver => 'wire', target => 'net')"
eventually 20 "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'VACUUM%' AND wait_event_type = 'Lock'"
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null
ended caller 10
like "$OUT" 'ERROR:  57014' "$name: a caller can cancel it"
eventually 5 "SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'VACUUM%' AND state = 'active'" &&
    tap_pass "$name: and the statement over there is canceled"
leave holder
over "$name"

#
# Networks
#
name='a network that refuses'
sql "CREATE SERVER closed FOREIGN DATA WRAPPER bench_wire OPTIONS (host '127.0.0.1', port '$(free_port)')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER closed'
run_on closed "script => 'SELECT 1', secs => 5"
like "$OUT" 'ERROR:  08006: connection to server at "127.0.0.1", port [0-9]+ failed: Connection refused' "$name"

name='a network that says nothing'
mode stall
clock
run_on quick "script => 'SELECT 1', secs => 5"
like "$OUT" 'ERROR:  08006: connection to server at "127.0.0.1", port [0-9]+ failed: timeout expired' "$name"
within 4000 "$name: connect_timeout ends it"
mode pass
over "$name"

name='a network that delays'
mode 'delay 20'
run_on net "script => 'SELECT 1', clients => 4, transactions => 10, query_mode => 'simple'"
RUN=$(last_run)
is "$(sql "SELECT latency_avg_ms >= 20, transactions FROM bench.summary WHERE run_id = $RUN")" 't|40' \
    "$name: the latency has it"
mode pass
over "$name"

name='a distant target'
RUN=$(sql "SELECT bench.start(script => 'SELECT pg_sleep(60)', secs => 60, clients => 60, jobs => 1, driver => 'wire',
    target => 'net')")
ASLEEP="SELECT count(*) = 60 $SESSIONS AND wait_event = 'PgSleep'"
eventually 20 "$ASLEEP"
mode 'delay 50'
clock
sql "SELECT bench.stop($RUN)" >/dev/null
eventually 3 "${ASLEEP/= 60/= 0}"
within 3000 "$name: the statements of 60 clients are canceled there within 3 s"
status_is "$RUN" canceled "$name"
is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $RUN")" 0 "$name: which is no error"
mode pass
over "$name"

# Its queue has room for one, and it takes one at a time.
name='a socket whose queue is full'
python3 - "$PGHOST" "$PGPORT" <<'PY' &
import os, socket, sys, threading, time
directory, port = sys.argv[1:]
def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(f"{directory}/.s.PGSQL.6000")
    os.chmod(f"{directory}/.s.PGSQL.6000", 0o777)
    listener.listen(0)
    while True:
        time.sleep(0.02)
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{directory}/.s.PGSQL.{port}")
        for ends in ((client, server), (server, client)):
            threading.Thread(target=pump, args=ends, daemon=True).start()
PY
at_exit "kill $! 2>/dev/null"
until [ -S "$PGHOST/.s.PGSQL.6000" ]; do sleep 0.02; done
sql "CREATE SERVER queue FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$PGHOST', port '6000', dbname 'postgres')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER queue'
for reconnect in false true; do
    run_on queue "script => 'SELECT 1', clients => 12, transactions => 3, reconnect => $reconnect"
    like "$OUT" 'actually processed: 36' "$name: it is tried again, reconnect => $reconnect"
    is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $(last_run)")" 0 "$name: which is no error"
done
over "$name"

for answer in http half; do
    name="a network that answers garbage ($answer)"
    mode "$answer"
    run_on quick "script => 'SELECT 1', secs => 5"
    like "$OUT" 'ERROR:  08(P01|006)' "$name"
    mode pass
    over "$name"
done

name='connections that are cut'
begin "script => 'SELECT 1'"
mode 'cut 2'
eventually 10 "SELECT count(*) = 4 $CLIENTS"
seen=$(sql "SELECT coalesce(sum(transactions), 0) FROM bench.samples WHERE run_id = $RUN")
eventually 10 "SELECT sum(transactions) > $seen FROM bench.samples WHERE run_id = $RUN"
tap_pass "$name: the other clients go on"
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT bench.wait($RUN, 15)")" canceled "$name: the run's status"
is "$(sql "SELECT aborted FROM bench.summary WHERE run_id = $RUN")" 2 "$name: two clients ended"
is "$(sql "SELECT string_agg(DISTINCT sqlstate, ',') FROM bench.errors WHERE run_id = $RUN")" 08006 \
    "$name: their error"
mode pass
over "$name"

name='connections that are cut and made anew'
begin "'pk_update', on_disconnect => 'reconnect'"
mode 'cut 3'
eventually 10 "SELECT count(*) = 6 AND bool_and(backend_start > now() - interval '1 minute') $CLIENTS"
sleep 1
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT bench.wait($RUN, 15)")" canceled "$name: the run's status"
is "$(sql "SELECT failed + unknown, unknown > 0, aborted FROM bench.summary WHERE run_id = $RUN")" '3|t|0' \
    "$name: the transactions are failed or in doubt"
is "$(sql "SELECT bool_and(sqlstate IN ('08006', '08007')) FROM bench.errors WHERE run_id = $RUN")" t \
    "$name: their errors"
mode pass
over "$name"

name='a network that is gone'
begin "script => 'SELECT 1'"
mode stall
sleep 0.5
clock
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT bench.wait($RUN, 15)")" canceled "$name: the run's status"
within 10000 "$name: bench.stop ends the run"
nothing_left "$name: while it is gone"
mode pass
over "$name"
session caller "SELECT bench.run(script => 'SELECT 1', clients => 4, secs => 60, driver => 'wire', target => 'net')"
eventually 20 "SELECT count(*) = 4 $CLIENTS"
mode stall
sleep 0.5
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null
ended caller 15
like "$OUT" 'ERROR:  57014' "$name: the caller's cancel ends the run"
nothing_left "$name: while it is gone, after a cancel"
mode pass
over "$name, after a cancel"

no_restart 'the server has not restarted'
log_is_clean
done_testing
