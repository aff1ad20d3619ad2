#!/usr/bin/env bash
# Too few worker slots.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# One of the eight is the logical replication launcher's.
faults_start 'max_worker_processes = 8'

refused() { # NAME NEEDED IN-USE
    like "$OUT" 'ERROR:  53400' "$1: 53400"
    like "$OUT" "DETAIL:.*[Nn]eeded: $2.*configured: 8.*in use: $3" "$1: the detail has needed, configured and in use"
    like "$OUT" "HINT:.*max_worker_processes.*$(($2 + $3))" "$1: the hint names max_worker_processes and the value"
    like "$OUT" 'usable' "$1: the session is usable"
}

try "SELECT bench.run('pk_update', clients => 20, secs => 1)" "SELECT 'usable'"
refused 'bench.run with 20 clients' 21 1
nothing_left 'bench.run with 20 clients'
is "$(sql 'SELECT count(*) FROM bench.runs')" 0 'bench.run with 20 clients: no run is recorded'
try "SELECT bench.start('pk_update', clients => 7, secs => 1)" "SELECT 'usable'"
refused 'bench.start with 7 clients' 8 1
try "SELECT bench.load('pk', 1000, jobs => 7)" "SELECT 'usable'"
refused 'bench.load with 7 jobs' 8 1
is "$(sql 'SELECT count(*) FROM bench_data.pk')" 1000 'bench.load with 7 jobs: the fixture is as it was'
try "SELECT bench.run('pk_update', clients => 6, transactions => 10)"
like "$OUT" 'actually processed: 60' '6 clients and their coordinator fill the slots: works'
like "$OUT" "NOTICE:.*run $(last_run) of pk_update starts.*run $(last_run): pk_update with 6 clients" \
    'the id of a run is told at its start and at its end'
try "SELECT bench.run('pk_update', clients => 5, transactions => 10)" \
    "SELECT bench.run('pk_update', clients => 6, transactions => 10)"
like "$OUT" 'processed: 50.*processed: 60' 'one run right after another: the slots are free again'
try "SELECT bench.load('pk', 200000)"
unlike "$OUT" ERROR 'bench.load chooses its own number of jobs by the slots'

# Two runs that exceed the slots together: the second is refused, the first goes on.
before=$(last_run)
sql "SELECT bench.start('pk_update', clients => 5, secs => 8, sample_interval => 0.2)" >/dev/null
sampling "$before" 2
try "SELECT bench.run('pk_update', clients => 2, secs => 1)" "SELECT 'usable'"
refused 'a second run' 3 7
is "$(workers)" 6 'a second run: the first goes on'
try "SELECT bench.load('log', 200000)"
like "$OUT" 'ERROR:  53400' 'a load with no slots left: 53400'
status_is "$RUN" completed 'the first run'
nothing_left 'the first run'

# Two at the same moment: both find the slots free, and then not all are there.
for attempt in 1 2 3; do
    for name in one two; do
        session "$name" "SELECT bench.run('pk_update', clients => 4, secs => 0.3)" "SELECT 'usable'"
    done
    outcomes=
    for name in one two; do
        ended "$name" 15
        case $OUT in
        *'ERROR:  53400'*usable) outcomes+='refused ' ;;
        *'actually processed'*usable) outcomes+='done ' ;;
        *) outcomes+="$OUT" ;;
        esac
    done
    like "$outcomes" '^((refused|done) ){2}$' "two runs at the same moment ($attempt): each is done or refused"
    unlike "$outcomes" 'done done' "two runs at the same moment ($attempt): not both are done"
    nothing_left "two runs at the same moment ($attempt)"
    is "$(sql "SELECT count(*) FROM bench.runs WHERE status NOT IN ('completed', 'failed')")" 0 \
        "two runs at the same moment ($attempt): every run is completed or failed"
done
# A script that runs itself ends where no slots are left: with few of them, or the tree of its runs grows for minutes.
sql "SELECT bench.create_workload('itself', 'SELECT bench.run(''itself'', clients => 2, transactions => 1)')" >/dev/null
try "SELECT bench.run('itself', clients => 2, transactions => 1)" "SELECT 'usable'"
like "$OUT" usable 'a script that runs itself: the session is usable'
ok 'a script that runs itself: every run has an end' eventually 60 \
    "SELECT count(*) = 0 FROM bench.runs WHERE status NOT IN ('completed', 'incomplete', 'canceled', 'failed')"
is "$(sql "SELECT count(*) > 0 FROM bench.errors WHERE sqlstate = '53400'")" t \
    'a script that runs itself: the innermost has found no slots'
nothing_left 'a script that runs itself'

# Over connections a run takes a slot for each job, and a search has as many clients as there is room for.
try "SELECT bench.sweep('pk_select', '{20}', secs => 0.2, driver => 'wire', jobs => 2)"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
is "$(sql "SELECT s.status || ' ' || r.clients FROM bench.sweeps s JOIN bench.runs r USING (sweep_id)
    WHERE sweep_id = $SWEEP")" 'completed 20' 'a sweep of 20 connections: works'
try "SELECT bench.sweep('pk_select', '{20}', secs => 0.2, driver => 'wire', jobs => 7)" "SELECT 'usable'"
refused 'a sweep of 20 connections with 7 jobs' 9 1
try "SELECT bench.sweep('pk_select', '{6}', secs => 0.2)" "SELECT 'usable'"
refused 'a sweep of 6 clients' 8 1
for driver in engine wire; do
    try "SELECT bench.capacity('pk_select', secs => 0.1, trials => 1, margin => 1, driver => '$driver')"
    unlike "$OUT" ERROR "bench.capacity chooses its own number of clients ($driver)"
    SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
    is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $SWEEP")" completed \
        "bench.capacity chooses its own number of clients ($driver): the search has ended"
done
sql 'CREATE ROLE few LOGIN CONNECTION LIMIT 2' \
    'GRANT EXECUTE ON FUNCTION bench.start_capacity, bench.stop_sweep TO few' \
    'GRANT USAGE ON SCHEMA bench_data TO few' 'GRANT SELECT ON bench_data.pk TO few' >/dev/null
SWEEP=$(PGUSER=few sql "SELECT bench.start_capacity('pk_select', secs => 0.1, driver => 'wire')")
is "$(sql "SELECT clients FROM bench.sweeps WHERE sweep_id = $SWEEP")" '{2}' \
    'bench.capacity of a role with a CONNECTION LIMIT has no more clients'
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
nothing_left 'searches'

still_works 'at the end'
log_is_clean
no_restart 'the server has not restarted'
done_testing
