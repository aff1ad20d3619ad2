#!/usr/bin/env bash
# Crashes and shutdowns of the server during a run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

start() { # [DRIVER]
    local before
    before=$(last_run)
    sql "SELECT bench.start('pk_update', clients => 3, secs => 60, sample_interval => 0.2,
        driver => '${1:-engine}')" >/dev/null
    sampling "${before:-0}" 3
    SAMPLES=$(sql "SELECT count(*) FROM bench.samples WHERE run_id = $RUN")
}

samples_survive() {
    is "$(sql "SELECT count(*) >= $SAMPLES AND sum(transactions) > 0 FROM bench.samples WHERE run_id = $RUN")" t \
        "$1: the samples that were there before are there"
    is "$(sql "SELECT transactions > 0 AND tps > 0 FROM bench.summary WHERE run_id = $RUN")" t \
        "$1: bench.summary tells of them"
}

# After a crash nobody has written down anything.
reads_crashed() {
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" crashed "$1: bench.runs says crashed"
    is "$(sql "SELECT status FROM bench.summary WHERE run_id = $RUN")" crashed "$1: bench.summary says crashed"
    is "$(sql "SELECT bench.wait($RUN)")" crashed "$1: bench.wait says crashed, at once"
    is "$(sql "SELECT bench.stop($RUN)")" f "$1: bench.stop says false"
    is "$(sql 'SELECT count(*) FROM bench.progress')" 0 "$1: bench.progress is empty"
    samples_survive "$1"
    nothing_left "$1"
    still_works "$1"
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" crashed "$1: it stays crashed while others run"
}

for kind in client coordinator; do
    name="kill -9 of a $kind"
    start
    session waiter "SELECT bench.wait($RUN)"
    victim=$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $kind'")
    clock
    as_pg kill -9 "$victim"
    # The old server answers until the postmaster has noticed.
    eventually 20 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim)"
    is $? 0 "$name: the server is back by itself"
    ended waiter 5
    eventually 10 "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
    if [ "$(server_identity)" != "$SERVER" ]; then tap_pass "$name: the server has restarted"; else tap_fail \
        "$name: the server has restarted"; fi
    reads_crashed "$name"
    remember_server
done

name='fast shutdown'
start
clock
cluster_stop fast
within 5000 "$name: is prompt"
cluster_resume || exit
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" canceled "$name: the run's status was written down"
is "$(error_of "$RUN")" 57P01 "$name: and why it ended"
samples_survive "$name"
kept "$RUN" "$name"
still_works "$name"
unlike "$(grep -E 'FATAL|PANIC' "$PGHOST/log")" 'PANIC' "$name: no PANIC in the log"

name='fast shutdown with a caller in bench.run'
before=$(last_run)
session caller "SELECT bench.run('pk_update', clients => 3, secs => 60, sample_interval => 0.2)"
sampling "$before" 2
clock
cluster_stop fast
within 5000 "$name: is prompt"
ended caller 5
like "$OUT" '57P01' "$name: the caller is told"
cluster_resume || exit
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" canceled "$name: the run's status was written down"

name='fast shutdown while clients sleep'
sql "SELECT bench.create_workload('sleeper', 'SELECT pg_sleep(60);')" \
    "SELECT bench.start('sleeper', clients => 2, secs => 60)" >/dev/null
RUN=$(last_run)
eventually 5 "SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
clock
cluster_stop fast
within 5000 "$name: is prompt"
cluster_resume || exit
unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" running "$name: the run is not said to run"

name='smart shutdown'
start
clock
cluster_stop smart
within 5000 "$name: does not wait for a run that nobody waits for"
cluster_resume || exit
unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" running "$name: the run is not said to run"
samples_survive "$name"

name='immediate shutdown'
start
cluster_stop immediate
cluster_resume || exit
reads_crashed "$name"

for driver in engine wire; do
    name="kill -9 of the postmaster, driver $driver"
    start "$driver"
    session caller "SELECT bench.wait($RUN)"
    postmaster=$(head -1 "$PGHOST/data/postmaster.pid")
    workers=$(sql "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'
        OR application_name = 'pgbench_ext'")
    workers+=" $(pgrep -d ' ' -P "$postmaster" -f 'pgbench_ext job')"
    eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'caller'
        AND wait_event = 'Extension')"
    waiter=$(pid_of caller)
    as_pg kill -9 "$postmaster"
    ended caller 5
    left=
    for _ in {1..160}; do
        left=
        for pid in $workers $waiter; do [ -z "$(tr -d '\0' 2>/dev/null <"/proc/$pid/cmdline")" ] || left+="$pid "; done
        [ -n "$left" ] || break
        sleep 0.05
    done
    is "$left" '' "$name: every worker and the waiting session end within seconds"
    # shellcheck disable=SC2086 # a list
    [ -z "$left" ] || { as_pg kill -9 $left; sleep 0.5; }
    for _ in {1..40}; do
        cluster_resume 2>/dev/null && break
        sleep 0.25
    done
    remember_server
    reads_crashed "$name"
done
done_testing
