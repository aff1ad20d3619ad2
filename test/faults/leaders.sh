#!/usr/bin/env bash
# Leaders of loads and sweeps that are ended, or whose last words cannot be written: they wait for nobody without a
# limit.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'wal_writer_delay = 10s' 'wal_writer_flush_after = 1GB' 'wal_buffers = 64MB' 'checkpoint_timeout = 1h' \
    'autovacuum = off'
sql "CREATE FUNCTION nap(id bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS \$\$ BEGIN
         IF id % 100 = 0 THEN PERFORM pg_sleep(0.1); END IF;
         RETURN id;
     END \$\$" \
    "SELECT bench.create_fixture('slow', 'CREATE TABLE slow (id bigint PRIMARY KEY, nap bigint)',
        'SELECT id, nap(id) FROM generate_series(\$1, \$2) AS id')" \
    "SELECT bench.create_fixture('slow_index', 'CREATE TABLE slow_index (id bigint)',
        'SELECT id FROM generate_series(\$1, \$2) AS id', 'CREATE INDEX ON slow_index (nap(id))')" >/dev/null
leftovers() { sql "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\\_loading%'), (SELECT count(*)
    FROM bench_internal.load_log WHERE status = 'running')"; }
staging() { sql "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench\\_loading%'"; }
pid_of_leader() { sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $1'"; }
terminate() { sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $1'" \
    >/dev/null; }
load() { # NAME: one that is loading rows
    session loading "SELECT bench.load('slow', 100000, 1)"
    eventually 10 "SELECT phase = 'loading rows' FROM bench.progress"
}
cleaned() { # NAME
    is "$(sql "SELECT bench.load('log', 10)" 2>/dev/null)" 10 "$1: the next load works"
    is "$(leftovers)" '0|0' "$1: and has removed what was left"
}

# What depends on the tables of a load, and is locked.
name='a locked view of the tables of a load'
load
sql "CREATE VIEW elsewhere AS SELECT * FROM $(staging).slow"
session holder BEGIN "COMMENT ON VIEW elsewhere IS 'locked'" 'SELECT pg_sleep(300)'
holds holder
terminate load
nothing_left "$name, while it is locked" 60
ended loading
is "$(leftovers)" '1|1' "$name: the tables stay"
like "$(cat "$PGHOST/log")" 'LOG:  could not remove the tables of load [0-9]+' "$name: the log says so"
leave holder
cleaned "$name"

name='a locked bench_internal.load_log'
load
session holder BEGIN 'LOCK TABLE bench_internal.load_log IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(300)'
holds holder
terminate load
nothing_left "$name, while it is locked" 60
leave holder
ended loading
cleaned "$name"

# An event trigger that forbids it.
name='an event trigger on sql_drop'
sql "CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS \$\$ BEGIN RAISE
    EXCEPTION 'nothing is dropped here'; END \$\$" \
    'CREATE EVENT TRIGGER forbid ON sql_drop EXECUTE FUNCTION forbid()'
lines=$(wc -l <"$PGHOST/log")
try "SELECT bench.load('log', 10)"
like "$OUT" 'ERROR:  P0001: nothing is dropped here' "$name: the caller gets its error"
nothing_left "$name"
left='They are in schema "bench_loading_[0-9]+"'
like "$(tail -n +"$lines" "$PGHOST/log")" \
    "LOG:  could not remove the tables of load [0-9]+: nothing is dropped.*DETAIL:  $left.*HINT:  The next bench" \
    "$name: the log says what is left"
is "$(leftovers)" '1|1' "$name: the tables stay"
sql 'DROP EVENT TRIGGER forbid'
cleaned "$name"

# Limits that are meant for users' sessions.
name="a statement_timeout of the role's"
sql "ALTER ROLE postgres SET statement_timeout = '1s'"
try 'SET statement_timeout = 0' "SELECT bench.load('slow_index', 3000)"
like "$OUT" '3000$' "$name: a load that takes longer works"
sql 'ALTER ROLE postgres RESET statement_timeout'
name='a system variant with a statement_timeout'
sweep=$(sql "SELECT bench.start_sweep('pk_select', '{1}', secs => 0.2, rounds => 1,
    variants => '{\"a\": {\"system\": {\"statement_timeout\": \"50ms\",
        \"idle_in_transaction_session_timeout\": \"50ms\"}}}', before => 'checkpoint')")
is "$(sql 'SET statement_timeout = 0' "SELECT bench.wait_sweep($sweep)")" completed "$name: ends no sweep"
is "$(sql "SELECT error FROM bench.sweeps WHERE sweep_id = $sweep")" '' "$name: without an error"

# The end of a sweep.
sweep() { sql "SELECT bench.start_sweep('pk_update', '{2}', secs => $1, rounds => 2)"; }
name='a locked bench_internal.sweep_log'
SWEEP=$(sweep 60)
eventually 10 "SELECT count(*) = 1 FROM bench.progress"
session holder BEGIN "SELECT 1 FROM bench_internal.sweep_log WHERE sweep_id = $SWEEP FOR UPDATE" 'SELECT pg_sleep(300)'
holds holder
terminate sweep
nothing_left "$name, while it is locked" 60
is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $SWEEP")" crashed "$name: the sweep reads crashed"
leave holder
name='an end of a sweep that can be written at the third try'
sql 'CREATE SEQUENCE tries' \
    "CREATE FUNCTION full_for_a_while() RETURNS trigger LANGUAGE plpgsql AS \$\$
     BEGIN
         IF nextval('public.tries') < 3 THEN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END IF;
         RETURN NEW;
     END \$\$" \
    "CREATE TRIGGER full_for_a_while BEFORE UPDATE ON bench_internal.sweep_log FOR EACH ROW
        WHEN (NEW.finished_at IS NOT NULL) EXECUTE FUNCTION full_for_a_while()" \
    'ALTER TABLE bench_internal.sweep_log ENABLE ALWAYS TRIGGER full_for_a_while'
SWEEP=$(sweep 0.2)
is "$(sql "SELECT bench.wait_sweep($SWEEP)")" completed "$name: the sweep is completed"
sql "ALTER SEQUENCE tries RESTART" 'CREATE OR REPLACE FUNCTION full_for_a_while() RETURNS trigger
    LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION $e$could not extend file$e$ USING ERRCODE = $e$53100$e$; END $$'
name='an end of a sweep that cannot be written'
SWEEP=$(sweep 0.2)
is "$(sql "SELECT bench.wait_sweep($SWEEP)")" crashed "$name: the sweep reads crashed"
like "$(cat "$PGHOST/log")" \
    "LOG:  could not record the end of sweep $SWEEP in bench.sweeps: could not extend file.*HINT:  .*resume_sweep" \
    "$name: the log says so"
sql 'DROP TRIGGER full_for_a_while ON bench_internal.sweep_log'

# A process id that was a leader's is another session's now. Only root may choose process ids.
name="a stranger with the leader's process id"
last=/proc/sys/kernel/ns_last_pid
stranger() { # PID: a session whose backend has it
    for _ in {1..200}; do
        session stranger 'SELECT pg_sleep(300)' # its socket is there before its backend
        kill -0 "${PIDS[stranger]}" 2>/dev/null &&
            eventually 5 "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'stranger'"
        [ "$(pid_of stranger)" = "$1" ] && return 0
        leave stranger
        echo $(($1 - 2 - RANDOM % 3)) >"$last" 2>/dev/null || return 1
    done
    return 1
}
if [ "$(id -u)" -eq 0 ] && cat "$last" >"$work/last" 2>/dev/null && cat "$work/last" 2>/dev/null >"$last"; then
    SWEEP=$(sweep 60)
    eventually 10 "SELECT count(*) = 1 FROM bench.progress"
    session waiter "SELECT bench.wait_sweep($SWEEP)"
    eventually 10 "SELECT wait_event = 'Extension' FROM pg_stat_activity WHERE application_name = 'waiter'"
    leader=$(pid_of_leader sweep)
    # It holds the segment, and does not look.
    waiter=$(pid_of waiter)
    as_pg kill -STOP "$waiter"
    terminate sweep
    eventually 10 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $leader)"
    if stranger "$leader"; then
        sql "UPDATE bench_internal.sweep_log SET status = 'running', finished_at = NULL WHERE sweep_id = $SWEEP"
        is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $SWEEP")" crashed "$name: is not taken for it"
        is "$(sql "SELECT bench.stop_sweep($SWEEP)")" f "$name: is not stopped"
        as_pg kill -CONT "$waiter"
        ended waiter 40
        is "$OUT" crashed "$name: bench.wait_sweep returns"
        is "$(sql "SELECT state FROM pg_stat_activity WHERE pid = $leader")" active "$name: goes on"
        leave stranger
    else
        as_pg kill -CONT "$waiter"
        ended waiter 40
        skip 'that process id could not be had' "$name"
    fi
    nothing_left "$name"
else
    skip "needs root and $last" "$name"
fi

# What a sweep writes down of the server's parameters is flushed, although its parameters say that nothing is.
name='a power loss while synchronous_commit is off'
log_is_clean
SWEEP=$(sql "SELECT bench.start_sweep('pk_select', '{1}', secs => 5, rounds => 2, variants =>
    '{\"a\": {\"system\": {\"synchronous_commit\": \"off\", \"work_mem\": \"5MB\"}},
      \"b\": {\"system\": {\"synchronous_commit\": \"off\", \"work_mem\": \"6MB\"}}}')")
eventually 20 "SELECT count(*) = 1 FROM bench.sweep_runs WHERE sweep_id = $SWEEP AND status = 'running'"
# The sweep goes from one variant to the next, and waits for the postmaster to have the file read.
checkpointer=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
as_pg kill -STOP "$checkpointer" "$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")"
eventually 20 "SELECT query = 'CHECKPOINT' AND wait_event LIKE 'Checkpoint%' FROM pg_stat_activity
    WHERE backend_type = 'pgbench_ext sweep'"
first=$(grep -c work_mem "$PGHOST/data/postgresql.auto.conf")
postmaster=$(head -1 "$PGHOST/data/postmaster.pid")
as_pg kill -STOP "$postmaster"
as_pg kill -CONT "$checkpointer"
for _ in {1..500}; do
    grep -qE "work_mem = '[56]MB'" "$PGHOST/data/postgresql.auto.conf" && break
    sleep 0.02
done
ok "$name: comes when the file has the variant's value" grep -qE "work_mem = '[56]MB'" \
    "$PGHOST/data/postgresql.auto.conf"
read -r children <"/proc/$postmaster/task/$postmaster/children"
# shellcheck disable=SC2086 # a list
as_pg kill -9 $children "$postmaster"
for pid in $postmaster $children; do
    for _ in {1..500}; do [ -e "/proc/$pid" ] || break; sleep 0.02; done
done
is "$first" 0 "$name: and not before"
cluster_resume || exit 1
is "$(sql "SELECT system_settings -> 'own' -> 'work_mem' = 'null' FROM bench_internal.sweep_log
    WHERE sweep_id = $SWEEP")" t \
    "$name: what the file had is written down"
sql "SELECT bench.wait_sweep(bench.start_sweep('pk_select', '{1}', secs => 0.2, rounds => 1))" >/dev/null
is "$(grep -c work_mem "$PGHOST/data/postgresql.auto.conf")" 0 "$name: the next sweep puts it back"
nothing_left 'at the end'
log_is_clean
done_testing
