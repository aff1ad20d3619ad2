#!/usr/bin/env bash
# A sweep has the server's configuration read again only to put back what it has set itself: a caller that gives up
# before the leader is there, however often, is no crash of the server.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'log_min_messages = debug1'
sql 'CREATE ROLE mallory LOGIN' 'GRANT EXECUTE ON FUNCTION bench.start_sweep, bench.sweep TO mallory' \
    "SELECT bench.create_workload('nothing', 'SELECT 1;')" >/dev/null
postmaster=$(as_pg head -n 1 "$PGHOST/data/postmaster.pid")
loaded() { sql 'SELECT pg_conf_load_time()'; }
parameter() { sql "SHOW $1"; }

leaders_that() { grep -cE "$1" "$PGHOST/log"; }
STARTED='starting background worker process "pgbench_ext sweep"'
ENDED='background worker "pgbench_ext sweep" \(PID [0-9]+\) exited with exit code 0'

# Waits until every leader of a sweep that the postmaster has started has ended, at least so many of them.
leaders_ended() { # COUNT
    local deadline=$((SECONDS + 60))
    until [ "$(leaders_that "$ENDED")" -ge "$1" ] && [ "$(leaders_that "$ENDED")" -eq "$(leaders_that "$STARTED")" ]; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

# A call of a session that is canceled while the postmaster cannot start the leader. The session waits for a lock until
# the postmaster is stopped.
gives_up() { # ROLE STATEMENT
    local ended holder
    ended=$(leaders_that "$ENDED")
    session holder 'SELECT pg_advisory_lock(1)' 'SELECT pg_sleep(600)'
    holds holder
    holder=$(pid_of holder)
    PGUSER=$1 session caller 'SELECT pg_advisory_lock(1)' "SET statement_timeout = '1s'" "$2"
    eventually 60 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'caller'
        AND wait_event_type = 'Lock')"
    as_pg kill -STOP "$postmaster"
    as_pg kill -TERM "$holder"
    ended holder 60
    ended caller 60
    as_pg kill -CONT "$postmaster"
    leaders_ended $((ended + 1))
}

# Before runs of 10 s and more the machine is looked at for 250 ms: shorter ones reach their leader within the second.
SYSTEM='{"off": {"system": {"full_page_writes": "off", "work_mem": "64kB"}}}'

# A line that nobody has had read yet must not come into effect, nor a setting be lost.
echo "commit_siblings = 77" | as_pg tee -a "$PGHOST/data/postgresql.conf" >/dev/null
before=$(loaded)
for call in "start_sweep('nothing', '{1}', secs => 9)" "sweep('nothing', '{1}', secs => 9)"; do
    gives_up mallory "SELECT bench.$call"
    is $? 0 "bench.$call of a role with nothing but EXECUTE: its leader comes and goes"
    like "$OUT" '57014: canceling statement due to statement timeout' "bench.$call: the caller has given up"
done
for ms in {1..16} 40 80 160 320; do
    printf 'SET statement_timeout = %s;\nSELECT bench.start_sweep($$nothing$$, $${1}$$, secs => 9);\n' "$ms"
done |
    PGUSER=mallory psql -XAtq >/dev/null 2>&1
sql 'SELECT bench.stop_sweep(sweep_id) FROM bench.sweeps' >/dev/null
leaders_ended 3
is $? 0 'twenty more of them have ended'
is "$(loaded)" "$before" 'none has had the configuration read'
is "$(parameter commit_siblings)" 5 'what is in the file and was not meant to be read yet is not in effect'

gives_up postgres "SELECT bench.start_sweep('nothing', '{1}', secs => 9, variants => '$SYSTEM')"
is $? 0 "a superuser's sweep with parameters of the server, given up before it began: its leader comes and goes"
is "$(loaded)" "$before" 'it has set nothing, and has nothing read'
nothing_left 'so far'

# What an earlier sweep could not put back is not the matter of such a leader either.
sql "INSERT INTO bench_internal.sweep_log (options, status, role, segment, extension_version, system_settings)
     VALUES ('{}', 'running', 'postgres', 0, '0', '{\"work_mem\": \"5MB\"}')"
gives_up postgres "SELECT bench.start_sweep('nothing', '{1}', secs => 9, variants => '$SYSTEM')"
is "$(sql 'SELECT count(*) FROM bench_internal.sweep_log WHERE system_settings IS NOT NULL')" 1 \
    'what another has left stays written down'
is "$(loaded)|$(parameter work_mem)" "$before|4MB" 'and nothing is read'
sql 'DELETE FROM bench_internal.sweep_log WHERE system_settings IS NOT NULL'

#
# A crash of the server, with a superuser's sweep under way and ordinary ones that are not concerned
#
name='kill -9 in a sweep with parameters of the server'
SWEEP=$(sql "SELECT bench.start_sweep('nothing', '{1}', secs => 60, variants => '$SYSTEM')")
eventually 20 "SELECT EXISTS (SELECT FROM bench.sweep_runs WHERE sweep_id = $SWEEP AND status = 'running')"
is "$(parameter full_page_writes)" off "$name: the variant is in force"
as_pg kill -9 "$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")"
eventually 30 "SELECT current_setting('full_page_writes') = 'on'"
is $? 0 "$name: the server has its own settings again"
remember_server
nothing_left "$name" 20
is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $SWEEP")" crashed "$name: the sweep has crashed"

# After a crash that hit ordinary sweeps alone nothing is to be put back.
sql 'ALTER SYSTEM SET commit_siblings = 78'
SWEEP=$(sql "SELECT bench.start_sweep('nothing', '{1}', secs => 60)")
eventually 20 "SELECT EXISTS (SELECT FROM bench.sweep_runs WHERE sweep_id = $SWEEP AND status = 'running')"
as_pg kill -9 "$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")"
eventually 30 "SELECT status = 'crashed' FROM bench.sweeps WHERE sweep_id = $SWEEP"
remember_server
nothing_left 'kill -9 in an ordinary sweep' 20
is "$(parameter commit_siblings)" 77 'kill -9 in an ordinary sweep: nothing is read'

done_testing
