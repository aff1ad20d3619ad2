#!/usr/bin/env bash
# Parameters of the server that a sweep sets, and ends of the server: its settings come back, what was measured stays.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/sweep.sh
. test/lib/sweep.sh

faults_start

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
    local got
    for _ in {1..150}; do
        got=$(own_settings 2>/dev/null)
        [ "$got" != "$SETTINGS" ] || break
        sleep 0.1
    done
    is "$got" "$SETTINGS" "$1: the server's settings are as before"
    is "$(server_file)" "$FILE" "$1: postgresql.auto.conf is as before"
    is "$(sql 'SELECT count(*) FROM bench_internal.sweep_log WHERE system_settings IS NOT NULL')" 0 \
        "$1: nothing is left to be put back"
}
# For what follows to begin well whatever came before. A reload that is not needed would reach the next sweep.
put_right() {
    if [ "$(server_file)" != "$FILE" ] || [ "$(own_settings)" != "$SETTINGS" ]; then
        sql 'ALTER SYSTEM RESET ALL' "ALTER SYSTEM SET checkpoint_timeout = '7min'" 'SELECT pg_reload_conf()' >/dev/null
        FILE=$(server_file)
        eventually 5 "SELECT current_setting('full_page_writes') = 'on' AND current_setting('commit_delay') = '0'"
    fi
    sql 'UPDATE bench_internal.sweep_log SET system_settings = NULL WHERE system_settings IS NOT NULL'
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
sql "SELECT bench.sweep('pk_select', '{1}', secs => 0.2,
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
SWEEPS=$(for _ in 1 2; do sql "SELECT bench.start_sweep($SYSTEM)" 2>/dev/null; done)
for SWEEP in $SWEEPS; do sql "SELECT bench.wait_sweep($SWEEP, 20)" >/dev/null; done
as_before "$name"
is "$(sql "SELECT count(*) FROM bench.sweep_runs r JOIN bench.samples s USING (run_id)
           WHERE r.sweep_id IN (${SWEEPS//$'\n'/,}) AND r.variant = 'on' AND r.status = 'completed' GROUP BY r.run_id
           HAVING sum(wal_fpi) = 0")" '' \
    "$name: no run that counts has the other's parameters"
put_right

name='parameters of the server: left by a loss of power'
left_behind() { # SERVER
    sql "ALTER SYSTEM SET full_page_writes = off" "ALTER SYSTEM SET commit_delay = 10" 'SELECT pg_reload_conf()' \
        "UPDATE bench_internal.sweep_log SET status = 'running', system_settings = jsonb_build_object('server', $1,
            'own', jsonb '{\"full_page_writes\": null, \"commit_delay\": null, \"work_mem\": \"3MB\"}',
            'set', jsonb '{\"full_page_writes\": \"off\", \"commit_delay\": \"10\", \"work_mem\": \"2MB\"}')
         WHERE sweep_id = (SELECT max(sweep_id) FROM bench_internal.sweep_log)" >/dev/null
}
THIS_SERVER="(SELECT s.system_identifier || '/' || d.oid FROM pg_control_system() s, pg_database d
    WHERE datname = current_database())"
left_behind "$THIS_SERVER"
is "$(sql "SELECT status FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1")" crashed "$name: the sweep reads crashed"
sql "SELECT bench.sweep('pk_select', '{1}', secs => 0.2)" >/dev/null 2>&1
as_before "$name: after the next sweep of a superuser"
put_right
left_behind "$THIS_SERVER"
sql "ALTER SYSTEM SET commit_delay = 20" "ALTER SYSTEM SET work_mem = '5MB'" >/dev/null
sql "SELECT bench.sweep('pk_select', '{1}', secs => 0.2)" >/dev/null 2>&1
is "$(sql "SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_file_settings
    WHERE sourcefile LIKE '%auto.conf'")" 'checkpoint_timeout 7min, commit_delay 20, work_mem 5MB' \
    "$name: what an administrator has set since is kept"
sql 'ALTER SYSTEM RESET commit_delay' 'ALTER SYSTEM RESET work_mem' 'SELECT pg_reload_conf()' >/dev/null
as_before "$name: and nothing else"
put_right
left_behind "'7000000000000000000/5'"
sql "SELECT bench.sweep('pk_select', '{1}', secs => 0.2)" >/dev/null 2>&1
is "$(sql "SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_file_settings
    WHERE sourcefile LIKE '%auto.conf'")" 'checkpoint_timeout 7min, commit_delay 10, full_page_writes off' \
    "$name of another server: nothing is put back"
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
begin "'pk_update', '{1}', secs => 1.5, rounds => 3" 1
kill_client
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
SWEEP=$(sql "SELECT bench.start_sweep('pk_update', '{1}', secs => 0.2, variants => '$SYSTEM_VARIANTS')")
sweep_is incomplete "$name"
is "$(in_sweep \
    "string_agg(coalesce(status, '-') || ' ' || (error ~ 'full_page_writes.*not set by the configuration files'), ', ')
        FILTER (WHERE variant = 'off')")" '- true' \
    "$name: is that run's error"
as_before "$name"
nothing_left "$name"

# kill -9 is ours; anything else would be a bug.
log_is_clean_but_for_kills
done_testing
