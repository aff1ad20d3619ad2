#!/usr/bin/env bash
# Ends of sweeps and of the server under them: what was measured stays, the rest can be made, the server's own
# settings come back.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

# Six runs: two rungs, three rounds.
RUNGS="'pk_update', '{1,2}', 0.3, 3"
LONG="'pk_update', '{1,2}', 60"
SYSTEM_VARIANTS='{"off": {"system": {"full_page_writes": "off", "checkpoint_timeout": "11min", "commit_delay": 10}},
    "on": {}}'
SYSTEM="'pk_update', '{1,2}', 0.8, variants => '$SYSTEM_VARIANTS', before => 'checkpoint', seed => "

in_sweep() { sql "SELECT $1 FROM bench.sweep_runs WHERE sweep_id = $SWEEP"; }
completed() { in_sweep \
    "coalesce(string_agg(place || ':' || run_id, ' ' ORDER BY place) FILTER (WHERE status = 'completed'), '')"; }
leader() { sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext sweep'"; }

# Waits until a sweep has so many runs completed and is at another; DONE is what is completed.
in_the_middle() { # COMPLETED
    eventually 20 "SELECT count(*) FILTER (WHERE status = 'completed') >= $1
        AND count(*) FILTER (WHERE status = 'running') = 1
                   FROM bench.sweep_runs WHERE sweep_id = $SWEEP" || tap_fail "sweep $SWEEP gets to its middle"
    DONE=$(completed)
}

begin() { # [ARGUMENTS [COMPLETED]]
    SWEEP=$(sql "SELECT bench.start_sweep(${1:-$RUNGS})") || exit
    in_the_middle "${2:-2}"
}

# A session in bench.sweep, in the middle of it.
caller_sweeps() { # [ARGUMENTS [COMPLETED]]
    local before
    before=$(sql 'SELECT coalesce(max(sweep_id), 0) FROM bench.sweeps')
    session caller "SELECT bench.sweep(${1:-$RUNGS})" "SELECT 'usable'"
    eventually 10 "SELECT max(sweep_id) > $before FROM bench.sweeps"
    SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
    in_the_middle "${2:-2}"
}

sweep_is() { # STATUS DESC
    is "$(sql "SELECT bench.wait_sweep($SWEEP, 20)" 2>&1)" "$1" "$2: the sweep's status is $1"
}

# What was completed is there, and nothing is said to go on.
so_far_kept() { # DESC
    is "$(in_sweep \
        "string_agg(place || ':' || run_id, ' ' ORDER BY place)
            FILTER (WHERE place || ':' || run_id = ANY (string_to_array('$DONE', ' '))
            AND status = 'completed' AND transactions > 0)")" \
        "$DONE" "$1: what was completed is kept"
    is "$(in_sweep "count(*) FILTER (WHERE status IN ('starting', 'running'))")" 0 "$1: no run of it is said to go on"
}

ended_as() { # STATUS DESC
    sweep_is "$1" "$2"
    nothing_left "$2"
    so_far_kept "$2"
    DONE=$(completed)
    is "$(sql "SELECT bench.stop_sweep($SWEEP)")" f "$2: there is nothing to stop any more"
}

# What is missing is made, and nothing else.
resumes() { # DESC
    local last runs
    last=$(last_run)
    runs=$(in_sweep 'count(*)')
    is "$(sql "SELECT bench.resume_sweep($SWEEP)" 2>&1)" "$SWEEP" "$1: bench.resume_sweep takes it up"
    sweep_is completed "$1, resumed"
    is "$(in_sweep "count(*) FILTER (WHERE status = 'completed')")" "$runs" "$1, resumed: all runs are completed"
    so_far_kept "$1, resumed"
    is "$(sql "SELECT count(*) FROM bench.runs WHERE run_id > $last AND sweep_id = $SWEEP")" \
        "$((runs - $(wc -w <<<"$DONE")))" \
        "$1, resumed: each missing run was made once"
    is "$(sql "SELECT completed = runs AND error IS NULL AND resumed_at < finished_at FROM bench.sweeps
        WHERE sweep_id = $SWEEP")" t \
        "$1, resumed: bench.sweeps says so"
    nothing_left "$1, resumed"
}

# For sweeps whose runs are long: a short one may have ended by itself.
current_run_is() { # STATUS DESC
    is "$(sql "SELECT status FROM bench.runs WHERE sweep_id = $SWEEP ORDER BY run_id DESC LIMIT 1")" "$1" \
        "$2: the run under way is $1"
}

message() { sql "SELECT error ->> 'message' FROM bench.sweeps WHERE sweep_id = $SWEEP"; }

#
# bench.stop_sweep and bench.resume_sweep
#
name='bench.stop_sweep'
begin
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
for i in 1 2 3 4; do session "resume$i" "SELECT bench.resume_sweep($SWEEP)"; done
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

# Between two runs there is the leader's own work to stop.
name='bench.stop_sweep while a table is vacuumed'
session holder BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' 'SELECT pg_sleep(60)'
holds holder
SWEEP=$(sql "SELECT bench.start_sweep($RUNGS, before => 'vacuum')")
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext sweep'
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
SWEEP=$(sql "SELECT bench.start_sweep('pk_select', '{1}', 0.2,
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
backend_signal() { sql "SELECT $1(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null; }
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
terminate() { sql "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $1'" \
    >/dev/null; }
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
    begin "'pk_update', '{2}', 2, 3" 1
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
try BEGIN 'LOCK TABLE t' "SELECT bench.sweep('t_select', '{1,2}', 0.3, 2)" ROLLBACK "SELECT 'usable'"
within 8000 "$name: is found within seconds"
like "$OUT" 'ERROR:  40P01.*HINT:.*(Commit|start_sweep).*usable' "$name: 40P01, and what to do"
nothing_left "$name"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
sweep_is canceled "$name"
name="a lock of the caller's on what is vacuumed"
clock
try BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' "SELECT bench.sweep('pk_select', '{1}', 0.3, before => 'vacuum')" \
    ROLLBACK "SELECT 'usable'"
within 8000 "$name: is found within seconds"
like "$OUT" 'ERROR:  (40P01|55006).*HINT:.*usable' "$name: an error, and what to do"
nothing_left "$name"
name="a lock of the session's that is in bench.wait_sweep"
clock
# shellcheck disable=SC2016 # psql's
OUT=$(psql -XAt -v VERBOSITY=verbose 2>&1 \
    <<<"BEGIN; LOCK TABLE t; SELECT bench.start_sweep('t_select', '{1}', 0.3) AS sweep \\gset
SELECT bench.wait_sweep(:sweep, 12); ROLLBACK; SELECT 'usable';")
within 8000 "$name: is found within seconds"
like "$OUT" 'ERROR:  40P01.*HINT:.*Commit.*usable' "$name: 40P01, and what to do"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
sweep_is completed "$name, gone"
nothing_left "$name"

# In a transaction, in a function, in a loop: it works, with a word on the horizon.
try "DO \$\$ BEGIN FOR i IN 1..2 LOOP PERFORM bench.sweep('pk_update', '{1}', 0.2, tags => '{\"in\": \"a loop\"}'); END
    LOOP; END \$\$"
like "$OUT" 'WARNING:  01000: this call holds back the xmin horizon.*WARNING:  01000: this call holds' \
    'bench.sweep in a function: a warning of the horizon'
is "$(sql "SELECT count(*), bool_and(s.status = 'completed' AND r.horizon_held) FROM bench.sweeps s
    JOIN bench.runs r USING (sweep_id) WHERE s.tags ->> 'in' = 'a loop'")" '2|t' \
    'bench.sweep in a function: works, and its runs say that the horizon was held'
try BEGIN "CREATE TABLE written ()" "SELECT 'sweep ' || bench.sweep('pk_update', '{1}', 0.2)" ROLLBACK
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
like "$OUT" "WARNING:  01000: this call holds back.*sweep $SWEEP" 'bench.sweep in a transaction: works, with a warning'
sweep_is completed 'bench.sweep in a transaction that is rolled back'
try "SELECT bench.sweep('pk_update', '{1}', 0.2)"
unlike "$OUT" WARNING 'bench.sweep as a statement of its own: no warning'
log_is_clean
no_restart 'so far the server has not restarted'

#
# Parameters of the server
#
server_file() { as_pg cat "$PGHOST/data/postgresql.auto.conf"; }
own_settings() { sql "SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_settings
    WHERE name IN ('full_page_writes', 'checkpoint_timeout', 'commit_delay')"; }
# One of the user's own, one of the configuration file's, one at its default.
sql "ALTER SYSTEM SET checkpoint_timeout = '7min'" 'SELECT pg_reload_conf()' >/dev/null
eventually 5 "SELECT current_setting('checkpoint_timeout') = '7min'"
FILE=$(server_file)
SETTINGS=$(own_settings)

as_before() { # DESC
    local i got
    for i in {1..150}; do
        got=$(own_settings 2>/dev/null)
        [ "$got" != "$SETTINGS" ] || break
        sleep 0.1
    done
    is "$got" "$SETTINGS" "$1: the server's settings are as before"
    is "$(server_file)" "$FILE" "$1: postgresql.auto.conf is as before"
    is "$(sql 'SELECT count(*) FROM bench.sweep_log WHERE system_settings IS NOT NULL')" 0 \
        "$1: nothing is left to be put back"
}
# For what follows to begin well whatever came before. A reload that is not needed would reach the next sweep.
put_right() {
    if [ "$(server_file)" != "$FILE" ] || [ "$(own_settings)" != "$SETTINGS" ]; then
        sql 'ALTER SYSTEM RESET ALL' "ALTER SYSTEM SET checkpoint_timeout = '7min'" 'SELECT pg_reload_conf()' >/dev/null
        FILE=$(server_file)
        eventually 5 "SELECT current_setting('full_page_writes') = 'on' AND current_setting('commit_delay') = '0'"
    fi
    sql 'UPDATE bench.sweep_log SET system_settings = NULL WHERE system_settings IS NOT NULL'
}
# A seed whose first two runs are of a variant.
system_seed() { # VARIANT
    local seed
    for seed in {1..20}; do
        SWEEP=$(sql "SELECT bench.start_sweep($SYSTEM $seed)")
        sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
        if [ "$(sql "SELECT variant FROM bench.sweep_runs WHERE sweep_id = $SWEEP AND place = 1")" = "$1" ] &&
            [ "$(sql "SELECT variant FROM bench.sweep_runs WHERE sweep_id = $SWEEP AND place = 2")" = "$1" ]; then
            echo "$seed"
            return
        fi
    done
}
SEED=$(system_seed off)
SYSTEM+=$SEED
as_before 'sweeps that were stopped at once'
put_right

# In the middle of a sweep, with the parameters in force.
begin_system() {
    begin "$SYSTEM" 1
    local got
    got=$(own_settings)
    is "$got" 'checkpoint_timeout 660, commit_delay 10, full_page_writes off' "$1: they are in force"
    [[ $got == *off ]] || diag "$(sql \
        "SELECT place, variant, run_id, status, error FROM bench.sweep_runs WHERE sweep_id = $SWEEP ORDER BY place")"
    is "$(server_file)" "$FILE" "$1: postgresql.auto.conf has its own meanwhile"
}
ends_system() { # STATUS DESC
    as_before "$2"
    ended_as "$1" "$2"
    put_right
}

name='parameters of the server: completion'
begin_system "$name"
sweep_is completed "$name"
as_before "$name"
# A checkpoint is before each run.
is "$(sql "SELECT string_agg(DISTINCT variant || ' ' || (fpi > 0), ', ') FROM (
        SELECT r.variant, (SELECT sum(wal_fpi) FROM bench.samples s WHERE s.run_id = r.run_id) AS fpi
        FROM bench.sweep_runs r WHERE sweep_id = $SWEEP) AS s")" 'off false, on true' \
    "$name: runs without full-page writes wrote none, the others did"
is "$(sql "SELECT string_agg(DISTINCT s.variant || ' ' || coalesce((SELECT v ->> 'setting'
    FROM jsonb_array_elements(r.environment -> 'server_settings') AS v
                  WHERE v ->> 'name' = 'full_page_writes'), 'default'), ', ')
        FROM bench.sweep_runs s JOIN bench.runs r USING (run_id) WHERE s.sweep_id = $SWEEP")" 'off off, on default' \
    "$name: the runs' environments have them"
nothing_left "$name"

name='parameters of the server: bench.stop_sweep'
begin_system "$name"
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
ends_system canceled "$name"

name='parameters of the server: a cancel of the caller'
caller_sweeps "$SYSTEM" 1
backend_signal pg_cancel_backend
ended caller 10
ends_system canceled "$name"

name='parameters of the server: pg_terminate_backend of the leader'
begin_system "$name"
terminate sweep
ends_system canceled "$name"
resumes "$name"
as_before "$name, resumed"

# The values are in the file while the leader waits for a checkpoint, or were.
name='parameters of the server: pg_terminate_backend of the leader in its checkpoint'
checkpointer=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
at_checkpoint() {
    as_pg kill -STOP "$checkpointer"
    SWEEP=$(sql "SELECT bench.start_sweep($SYSTEM)")
    DONE=
    eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext sweep'
        AND query = 'CHECKPOINT' AND state = 'active')"
    is $? 0 "$name: the leader is at its checkpoint"
}
at_checkpoint
terminate sweep
as_pg kill -CONT "$checkpointer"
ends_system canceled "$name"
name='parameters of the server: bench.stop_sweep in its checkpoint'
at_checkpoint
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name: says true"
as_pg kill -CONT "$checkpointer"
ends_system canceled "$name"

name='parameters of the server: pg_reload_conf by somebody else'
begin_system "$name"
run=$(in_sweep "max(run_id) FILTER (WHERE status = 'running')")
sql 'SELECT pg_reload_conf()' >/dev/null
sweep_is incomplete "$name"
as_before "$name"
is "$(in_sweep \
    "string_agg(status || ' ' || (error ~ 'were reloaded during the run'), ', ')
        FILTER (WHERE run_id = $run)")" 'incomplete true' \
    "$name: that run does not count, and says why"
is "$(in_sweep "count(*) FILTER (WHERE status = 'completed')")" 3 "$name: the sweep has gone on"
is "$(sql "SELECT sum(wal_fpi) FROM bench.samples s JOIN bench.sweep_runs r USING (run_id)
    WHERE sweep_id = $SWEEP AND variant = 'off' AND status = 'completed'")" 0 \
    "$name: with its parameters in force again"
DONE=$(completed)
resumes "$name"
put_right

name="parameters of the server: somebody's own ALTER SYSTEM meanwhile"
begin_system "$name"
sql "ALTER SYSTEM SET work_mem = '5MB'" >/dev/null
sweep_is completed "$name"
is "$(sql "SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_file_settings
    WHERE sourcefile LIKE '%auto.conf'")" \
    'checkpoint_timeout 7min, work_mem 5MB' "$name: is kept"
sql 'ALTER SYSTEM RESET work_mem' >/dev/null
as_before "$name, reset"

name='parameters of the server: a list'
sql 'ALTER SYSTEM SET search_path = public, pg_catalog' >/dev/null
before=$(server_file)
sql "SELECT bench.sweep('pk_select', '{1}', 0.2,
    variants => '{\"x\": {\"system\": {\"search_path\": \"bench_data, public\"}}}')" >/dev/null 2>&1
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
is "$(sql "SELECT v ->> 'setting' FROM bench.sweep_runs s
    JOIN bench.runs r USING (run_id), jsonb_array_elements(r.environment -> 'server_settings') AS v
           WHERE s.sweep_id = $SWEEP AND v ->> 'name' = 'search_path'
           AND v ->> 'setting' LIKE '%\"bench_data, public\"%'")" '' "$name: is no single name"
is "$(server_file)" "$before" "$name: the user's own is put back as it was"
sql 'ALTER SYSTEM RESET search_path' >/dev/null
put_right

name='parameters of the server: two sweeps at once'
SWEEPS=$(for i in 1 2; do sql "SELECT bench.start_sweep($SYSTEM)" 2>/dev/null; done)
for SWEEP in $SWEEPS; do sql "SELECT bench.wait_sweep($SWEEP, 20)" >/dev/null; done
as_before "$name"
is "$(sql "SELECT count(*) FROM bench.sweep_runs r JOIN bench.samples s USING (run_id)
           WHERE r.sweep_id IN (${SWEEPS//$'\n'/,}) AND r.variant = 'on' AND r.status = 'completed' GROUP BY r.run_id
           HAVING sum(wal_fpi) = 0")" '' \
    "$name: no run that counts has the other's parameters"
put_right

name='parameters of the server: left by a loss of power'
sql "ALTER SYSTEM SET full_page_writes = off" "ALTER SYSTEM SET commit_delay = 10" 'SELECT pg_reload_conf()' \
    "UPDATE bench.sweep_log SET status = 'running',
        system_settings = '{\"full_page_writes\": null, \"commit_delay\": null}' WHERE sweep_id = (SELECT max(sweep_id)
        FROM bench.sweep_log)" >/dev/null
is "$(sql "SELECT status FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1")" crashed "$name: the sweep reads crashed"
sql "SELECT bench.sweep('pk_select', '{1}', 0.2)" >/dev/null 2>&1
as_before "$name: after the next sweep of a superuser"
put_right

name='DROP EXTENSION during a sweep that sets parameters of the server'
begin_system "$name"
clock
try 'DROP EXTENSION pgbench_ext'
within 10000 "$name: does not hang"
nothing_left "$name" 10
no_restart "$name: the server goes on"
eventually 15 "SELECT current_setting('full_page_writes') = 'on'"
is "$(own_settings)" "$SETTINGS" "$name: the server's settings are as before"
is "$(server_file)" "$FILE" "$name: postgresql.auto.conf is as before"
sql 'DROP SCHEMA IF EXISTS bench_data CASCADE' 'CREATE EXTENSION IF NOT EXISTS pgbench_ext' \
    "SELECT bench.load('pk', 1000)" >/dev/null 2>&1
still_works "$name"

#
# The server's end
#
back() { # waits for the server after a crash
    eventually 30 "SELECT NOT pg_is_in_recovery() AND count(*) = 1 FROM pg_stat_activity
        WHERE backend_type = 'checkpointer'"
    remember_server
}
name='kill -9 of a client'
begin "'pk_update', '{1}', 1.5, 3" 1
as_pg kill -9 "$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")"
eventually 20 "SELECT status <> 'running' FROM bench.sweeps WHERE sweep_id = $SWEEP"
back
ended_as crashed "$name"
is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $SWEEP")" crashed "$name: bench.sweeps says crashed"
resumes "$name"

name='parameters of the server: kill -9 of the leader'
begin_system "$name"
as_pg kill -9 "$(leader)"
eventually 20 "SELECT status <> 'running' FROM bench.sweeps WHERE sweep_id = $SWEEP"
back
ends_system crashed "$name"
resumes "$name"
as_before "$name, resumed"

name='parameters of the server: kill -9 of the leader in its checkpoint'
checkpointer=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
at_checkpoint
as_pg kill -9 "$(leader)"
as_pg kill -CONT "$checkpointer"
eventually 20 "SELECT status <> 'running' FROM bench.sweeps WHERE sweep_id = $SWEEP"
back
ends_system crashed "$name"

for mode in fast immediate; do
    name="parameters of the server: pg_ctl restart -m $mode"
    begin_system "$name"
    cluster_restart "$mode" || exit
    remember_server
    as_before "$name"
    SWEEP_STATUS=$(sql "SELECT bench.wait_sweep($SWEEP, 5)")
    like "$SWEEP_STATUS" '^(canceled|crashed)$' "$name: the sweep is canceled or crashed"
    ended_as "$SWEEP_STATUS" "$name"
    put_right
    resumes "$name"
    as_before "$name, resumed"
done

name="a parameter that the server's command line sets"
cluster_stop fast
as_pg pg_ctl -D "$PGHOST/data" -l "$PGHOST/log" -s -w -o '-c full_page_writes=on' start </dev/null
remember_server
SWEEP=$(sql "SELECT bench.start_sweep('pk_update', '{1}', 0.2, variants => '$SYSTEM_VARIANTS')")
sweep_is incomplete "$name"
is "$(in_sweep \
    "string_agg(coalesce(status, '-') || ' ' || (error ~ 'full_page_writes.*not set by the configuration files'), ', ')
        FILTER (WHERE variant = 'off')")" '- true' \
    "$name: is that run's error"
as_before "$name"
nothing_left "$name"

#
# pg_dump
#
SWEEP=$(sql "SELECT bench.start_sweep($RUNGS, tags => '{\"dumped\": true}')")
in_the_middle 2
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
DONE=$(completed)
live=$(sql "SELECT bench.start_sweep('pk_update', '{1}', 60)")
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
is "$(sql "SELECT bench.sweep('pk_select', '{1}', 0.2) > $live" 2>/dev/null)" t \
    'a restored database: the sequence continues'
export PGDATABASE=postgres

#
# Worker slots
#
name='worker slots that are not there any more'
echo 'max_worker_processes = 12' | as_pg tee -a "$PGHOST/data/postgresql.conf" >/dev/null
cluster_restart fast || exit
remember_server
# The rung of one client first.
for seed in {1..20}; do
    SWEEP=$(sql "SELECT bench.start_sweep('pk_update', '{1,6}', 0.8, 2, seed => $seed)")
    eventually 5 "SELECT status = 'running' FROM bench.sweep_runs WHERE sweep_id = $SWEEP AND place = 1"
    [ "$(in_sweep 'min(clients) FILTER (WHERE place = 1)')" != 1 ] || break
    sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
done
hog=$(sql "SELECT bench.start('pk_select', 3, secs => 60)")
sweep_is incomplete "$name"
is "$(in_sweep \
    "string_agg(DISTINCT clients || ' ' || coalesce(status, '-') || ' ' || (coalesce(error, '') ~ 'worker'), ', ')")" \
    '1 completed false, 6 - true' \
    "$name: those runs have the error, and the sweep has gone on"
sql "SELECT bench.stop($hog)" >/dev/null
DONE=$(completed)
resumes "$name"
try "SELECT bench.sweep('pk_update', '{1,10}', 0.2)"
like "$OUT" 'ERROR:  53400.*DETAIL:.*[Nn]eeded: 12.*HINT:.*max_worker_processes' \
    'more clients than there are worker slots: 53400 before the first run'

# kill -9 is ours; anything else would be a bug.
is "$(grep -E 'PANIC|TRAP|leak|unexpected state|non-empty SPI|still referenced|was not closed' "$PGHOST/log")" '' \
    "nothing bad is in the server's log"
is "$(grep 'terminated by signal' "$PGHOST/log" | grep -vc 'signal 9: Killed')" 0 \
    'no process ended by another signal than ours'
done_testing
