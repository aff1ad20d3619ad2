#!/usr/bin/env bash
# Ends of sweeps and of what they need: what was measured stays, and the rest can be made.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/sweep.sh
. test/lib/sweep.sh

faults_start

#
# bench.stop_sweep and bench.resume_sweep
#
name='bench.stop_sweep'
# Long enough for a session to come and to be seen waiting, on a busy machine too.
begin "'pk_update', '{1,2}', secs => 1, rounds => 3"
session waiter "SELECT bench.wait_sweep($SWEEP)"
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'waiter'
    AND wait_event = 'Extension')"
clock
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name says true"
within 3000 "$name: ends within a second or so"
ended waiter 5
is "$OUT" canceled "$name: who waits is told"
ended_as canceled "$name"
like "$(message)" 'bench.stop_sweep' "$name: the sweep's error says so"
try "SELECT bench.resume_sweep($SWEEP)" "SELECT bench.resume_sweep($SWEEP)"
like "$OUT" "ERROR:  55006: sweep $SWEEP is under way.*HINT:.*wait_sweep" \
    'bench.resume_sweep of a sweep under way: 55006'
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
DONE=$(completed)
# Of several at once one takes it up.
for i in 1 2 3 4; do
    PGOPTIONS='-c client_min_messages=warning' session "resume$i" "SELECT bench.resume_sweep($SWEEP)"
done
outcomes=
for i in 1 2 3 4; do
    ended "resume$i"
    case $OUT in "$SWEEP") outcomes+='up ' ;; *'ERROR:  55006'*) outcomes+='refused ' ;; *) outcomes+=$OUT ;; esac
done
is "$(tr ' ' '\n' <<<"$outcomes" | sort | tr '\n' ' ')" ' refused refused refused up ' \
    'four sessions in bench.resume_sweep: one takes it up'
is "$(leader | wc -l)" 1 'four sessions in bench.resume_sweep: one leader'
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
DONE=$(completed)
resumes "$name"
try "SELECT bench.resume_sweep($SWEEP)"
like "$OUT" "ERROR:  55000: sweep $SWEEP is completed" 'bench.resume_sweep of a completed sweep: 55000'

name='bench.stop_sweep of long runs'
begin "$LONG" 0
clock
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name says true"
within 3000 "$name: ends within a second or so"
ended_as canceled "$name"
current_run_is canceled "$name"
is "$(in_sweep "string_agg(coalesce(status, '-'), ', ' ORDER BY place)")" 'canceled, -' \
    "$name: the next one is not begun"

# Before the clients of a run there is the work of others to stop.
name='bench.stop_sweep while a table is vacuumed'
session holder BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' 'SELECT pg_sleep(60)'
holds holder
SWEEP=$(sql "SELECT bench.start_sweep($RUNGS, before => 'vacuum')")
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext preparer'
    AND wait_event_type = 'Lock' AND query LIKE 'VACUUM%')"
is $? 0 "$name: the sweep waits"
clock
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name says true"
within 3000 "$name: ends within a second or so"
leave holder
DONE=
ended_as canceled "$name"
resumes "$name"

name='bench.stop_sweep while a fixture is loaded'
SWEEP=$(sql "SELECT bench.start_sweep('pk_select', '{1}', secs => 0.2,
    variants => '{\"large\": {\"load\": {\"rows\": 30000000}}}')")
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext loader'
    AND state = 'active')"
clock
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name says true"
within 4000 "$name: ends within a second or so"
ended_as canceled "$name"
is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pk) FROM bench.fixtures WHERE name = 'pk'")" '1000|1000' \
    "$name: the fixture is as it was"

#
# Ends of the session in bench.sweep
#
psql_signal() { kill "$1" "${PIDS[caller]}"; }
caller_ends() { # NAME SQLSTATE COMMAND…
    local name=$1 state=$2
    shift 2
    caller_sweeps "$LONG" 0
    clock
    "$@"
    ended caller 10
    [ -z "$state" ] || like "$OUT" "(ERROR|FATAL):  $state" "$name: the caller gets $state"
    ended_as canceled "$name"
    within 4000 "$name: all is over within seconds"
    current_run_is canceled "$name"
}
caller_ends 'pg_cancel_backend of bench.sweep' 57014 backend_signal pg_cancel_backend
like "$OUT" usable 'pg_cancel_backend of bench.sweep: the session is usable'
caller_ends 'pg_terminate_backend of bench.sweep' 57P01 backend_signal pg_terminate_backend
caller_ends 'kill -9 of the psql in bench.sweep' '' psql_signal -KILL

#
# Ends of workers
#
name='pg_terminate_backend of the leader, with long runs'
begin "$LONG" 0
clock
terminate sweep
ended_as canceled "$name"
within 4000 "$name: all is over within seconds"
current_run_is canceled "$name"
name='pg_terminate_backend of the leader'
begin
terminate sweep
ended_as canceled "$name"
like "$(message)" 'terminated by an administrator' "$name: the sweep's error says so"
resumes "$name"

for kind in coordinator client; do
    name="pg_terminate_backend of a $kind"
    # Long enough for two statements on a machine that is busy with something else.
    begin "'pk_update', '{2}', secs => 4, rounds => 3" 1
    run=$(in_sweep "max(run_id) FILTER (WHERE status = 'running')")
    terminate "$kind"
    sweep_is incomplete "$name"
    is "$(in_sweep "count(*) FILTER (WHERE status = 'completed')")" 2 "$name: the sweep has gone on"
    is "$(in_sweep "bool_and(status <> 'completed' AND error <> '') FILTER (WHERE run_id = $run)")" t \
        "$name: that run has not completed, and says why"
    so_far_kept "$name"
    nothing_left "$name"
    DONE=$(completed)
    resumes "$name"
done

#
# The caller's locks
#
sql 'CREATE TABLE t (id int PRIMARY KEY, n int)' \
    "SELECT bench.create_workload('t_select', 'SELECT * FROM t WHERE id = 1;')" >/dev/null
name="a lock of the caller's on the fixture"
sweeps=$(sql 'SELECT count(*) FROM bench.sweeps')
clock
try BEGIN 'LOCK TABLE bench_data.pk' "SELECT bench.sweep($RUNGS)" ROLLBACK "SELECT 'usable'"
within 4000 "$name: is found at once"
like "$OUT" 'ERROR:  55006.*DETAIL:.*Lock.*HINT:.*usable' "$name: 55006, and what to do"
is "$(sql 'SELECT count(*) FROM bench.sweeps')" "$sweeps" "$name: no sweep was begun"
name="a lock of the caller's on a script's table"
clock
try BEGIN 'LOCK TABLE t' "SELECT bench.sweep('t_select', '{1,2}', secs => 0.3, rounds => 2)" ROLLBACK "SELECT 'usable'"
within 8000 "$name: is found within seconds"
like "$OUT" 'ERROR:  40P01.*HINT:.*(Commit|start_sweep).*usable' "$name: 40P01, and what to do"
nothing_left "$name"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
sweep_is canceled "$name"
name="a lock of the caller's on what is vacuumed"
clock
try BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' \
    "SELECT bench.sweep('pk_select', '{1}', secs => 0.3, before => 'vacuum')" \
    ROLLBACK "SELECT 'usable'"
within 8000 "$name: is found within seconds"
like "$OUT" 'ERROR:  (40P01|55006).*HINT:.*usable' "$name: an error, and what to do"
nothing_left "$name"
name="a lock of the session's that is in bench.wait_sweep"
clock
# shellcheck disable=SC2016 # psql's
OUT=$(psql -XAt -v VERBOSITY=verbose 2>&1 \
    <<<"BEGIN; LOCK TABLE t; SELECT bench.start_sweep('t_select', '{1}', secs => 0.3) AS sweep \\gset
SELECT bench.wait_sweep(:sweep, 12); ROLLBACK; SELECT 'usable';")
within 8000 "$name: is found within seconds"
like "$OUT" 'ERROR:  40P01.*HINT:.*Commit.*usable' "$name: 40P01, and what to do"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
sweep_is completed "$name, gone"
nothing_left "$name"

# In a transaction, in a function, in a loop: it works, with a word on the horizon.
try "DO \$\$ BEGIN FOR i IN 1..2 LOOP
    PERFORM bench.sweep('pk_update', '{1}', secs => 0.2, tags => '{\"in\": \"a loop\"}'); END
    LOOP; END \$\$"
like "$OUT" 'WARNING:  01000: this call holds back the xmin horizon.*WARNING:  01000: this call holds' \
    'bench.sweep in a function: a warning of the horizon'
is "$(sql "SELECT count(*), bool_and(s.status = 'completed' AND r.horizon_held) FROM bench.sweeps s
    JOIN bench.runs r USING (sweep_id) WHERE s.tags ->> 'in' = 'a loop'")" '2|t' \
    'bench.sweep in a function: works, and its runs say that the horizon was held'
try BEGIN "CREATE TABLE written ()" "SELECT 'sweep ' || bench.sweep('pk_update', '{1}', secs => 0.2)" ROLLBACK
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
like "$OUT" "WARNING:  01000: this call holds back.*sweep $SWEEP" 'bench.sweep in a transaction: works, with a warning'
sweep_is completed 'bench.sweep in a transaction that is rolled back'
try "SELECT bench.sweep('pk_update', '{1}', secs => 0.2)"
unlike "$OUT" WARNING 'bench.sweep as a statement of its own: no warning'
log_is_clean
no_restart 'so far the server has not restarted'

#
# pg_dump
#
SWEEP=$(sql "SELECT bench.start_sweep($RUNGS, tags => '{\"dumped\": true}')")
in_the_middle 2
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
DONE=$(completed)
live=$(sql "SELECT bench.start_sweep('pk_update', '{1}', secs => 60)")
sql 'CREATE DATABASE restored'
pg_dump | PGDATABASE=restored psql -XAtq -v ON_ERROR_STOP=1 >/dev/null 2>"$work/restored"
is "$(cat "$work/restored")" '' 'pg_dump | psql: no errors'
content() { sql "SELECT count(*) || ' ' || md5(string_agg(s::text, '|' ORDER BY s::text)) FROM bench.$1 AS s
    WHERE sweep_id <= $SWEEP"; }
for view in sweeps sweep_runs sweep_results; do
    is "$(PGDATABASE=restored content $view)" "$(content $view)" "a restored database: bench.$view is the same"
done
is "$(PGDATABASE=restored sql "SELECT status FROM bench.sweeps WHERE sweep_id = $live")" crashed \
    'a restored database: a sweep dumped while under way reads crashed'
is "$(PGDATABASE=restored sql "SELECT bench.stop_sweep($live)")" f \
    'a restored database: and cannot be stopped from there'
is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $live")" running 'where it belongs it goes on'
sql "SELECT bench.stop_sweep($live)" >/dev/null
export PGDATABASE=restored
resumes 'a restored database: a sweep that was stopped before'
is "$(sql "SELECT bench.sweep('pk_select', '{1}', secs => 0.2) > $live" 2>/dev/null)" t \
    'a restored database: the sequence continues'
export PGDATABASE=postgres

#
# Worker slots
#
name='worker slots that are not there any more'
echo 'max_worker_processes = 12' | as_pg tee -a "$PGHOST/data/postgresql.conf" >/dev/null
cluster_restart fast || exit
remember_server
# The rung of one client first, long enough for another run to begin beside it.
for seed in {1..20}; do
    SWEEP=$(sql "SELECT bench.start_sweep('pk_update', '{1,6}', secs => 3, rounds => 2, seed => $seed)")
    eventually 5 "SELECT status = 'running' FROM bench.sweep_runs WHERE sweep_id = $SWEEP AND place = 1"
    [ "$(in_sweep 'min(clients) FILTER (WHERE place = 1)')" != 1 ] || break
    sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
done
hog=$(sql "SELECT bench.start('pk_select', 3, secs => 60)")
sweep_is incomplete "$name"
is "$(in_sweep \
    "string_agg(DISTINCT clients || ' ' || coalesce(nullif(status, 'failed'), '-') || ' ' ||
        (coalesce(error, '') ~ 'worker'), ', ')")" '1 completed false, 6 - true' \
    "$name: those runs have the error, and the sweep has gone on"
sql "SELECT bench.stop($hog)" >/dev/null
DONE=$(completed)
resumes "$name"
try "SELECT bench.sweep('pk_update', '{1,10}', secs => 0.2)"
like "$OUT" 'ERROR:  53400.*DETAIL:.*[Nn]eeded: 12.*HINT:.*max_worker_processes' \
    'more clients than there are worker slots: 53400 before the first run'

#
# Feeders
#
# Their rows are read when a run starts; before a sweep, the first one.
sql "CREATE FUNCTION told(n int) RETURNS int LANGUAGE plpgsql \
    AS 'BEGIN RAISE LOG ''row % of a feeder'', n; RETURN n; END'" \
    "SELECT bench.create_workload('fed', 'SELECT :n;')" \
    "SELECT bench.add_feeder('fed', 'SELECT told(g) AS n FROM generate_series(1, 5000) AS g')" >/dev/null
sql "SELECT bench.sweep('fed', ARRAY[1], secs => 0.2)" >/dev/null 2>&1
is "$(grep -c 'row 1 of a feeder' "$PGHOST/log") $(grep -c 'row 2 of a feeder' "$PGHOST/log")" '2 1' \
    'a sweep looks at the first row of a feeder only'
is "$(sql "SELECT feeders -> 0 -> 'rows', status FROM bench.runs ORDER BY run_id DESC LIMIT 1")" '5000|completed' \
    'its run has all of them'

# kill -9 is ours; anything else would be a bug.
log_is_clean_but_for_kills
done_testing
