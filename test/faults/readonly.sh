#!/usr/bin/env bash
# Where nothing can be written: read-only databases and transactions, a standby.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'max_wal_senders = 4' 'hot_standby = on'

refused() { # NAME CALL [STATEMENTS-BEFORE…]
    local name=$1 call=$2
    shift 2
    try "$@" "$call" ROLLBACK "SELECT 'usable'"
    like "$OUT" 'ERROR:  25006' "$name: 25006"
    like "$OUT" 'HINT:' "$name: there is a hint"
    like "$OUT" 'usable' "$name: the session is usable"
    is "$(workers)" 0 "$name: no worker is left"
}

calls() { # WHERE STATEMENTS-BEFORE…
    local where=$1 call
    shift
    for call in "bench.run('pk_update', transactions => 10)" "bench.start('pk_select', transactions => 10)" \
        "bench.load('pk', 1000)"; do
        refused "${call%%(*} $where" "SELECT $call" "$@"
    done
}

sql "SELECT bench.run('pk_select', transactions => 10)" >/dev/null 2>&1
runs=$(sql 'SELECT count(*) FROM bench.runs')
calls 'in a read-only transaction' 'BEGIN READ ONLY'
sql 'ALTER DATABASE postgres SET default_transaction_read_only = on'
calls 'in a read-only database' 'SELECT 1'
is "$(sql 'SELECT count(*) FROM bench.runs')" "$runs" 'refused calls leave no run behind'
is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pk) FROM bench.fixtures WHERE name = 'pk'")" '1000|1000' \
    'the fixture is as it was'

# What the caller has switched off for itself is on in the clients, unless the run's settings say otherwise.
OFF='SET default_transaction_read_only = off'
try "$OFF" "SELECT bench.run('pk_select', clients => 2, transactions => 10)"
like "$OUT" 'actually processed: 20' 'read-only database, a workload that reads: works, and its results are written'
status_is "$(last_run)" completed 'read-only database, a workload that reads'
try "$OFF" "SELECT bench.run('pk_update', clients => 2, transactions => 10)" "SELECT 'usable'"
RUN=$(last_run)
like "$OUT" 'usable' 'read-only database, a workload that writes: the session is usable'
like "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" '^(incomplete|failed)$' \
    'read-only database, a workload that writes: the run is not complete'
is "$(error_of "$RUN")" 25006 'read-only database, a workload that writes: the error is 25006'
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '25006|2' \
    'read-only database, a workload that writes: bench.errors has it'
nothing_left 'read-only database, a workload that writes'
try "$OFF" "SELECT bench.run('pk_update', clients => 2, transactions => 10,
    settings => '{\"default_transaction_read_only\": \"off\"}')"
like "$OUT" 'actually processed: 20' 'read-only database, settings that switch it off: works'
try "$OFF" "SELECT bench.load('pk', 1000)"
unlike "$OUT" 'PANIC|crash' 'read-only database, bench.load of a caller that may write: does no harm'
is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pk) FROM bench.fixtures WHERE name = 'pk'")" '1000|1000' \
    'read-only database, bench.load of a caller that may write: the fixture is there'
try "SELECT status FROM bench.runs WHERE run_id = $RUN" "SELECT status FROM bench.summary WHERE run_id = $RUN" \
    "SELECT bench.wait($RUN)" \
    "SELECT bench.stop($RUN)" "SELECT count(*) > 0 FROM bench.audit($RUN)"
unlike "$OUT" ERROR 'read-only database: results can be read'
sql "$OFF" 'ALTER DATABASE postgres RESET default_transaction_read_only'
still_works 'read-only no more'
no_restart 'the primary has not restarted'

# A hot standby.
RUN=$(last_run)
primary=$PGHOST
standby=$(as_pg mktemp -d /tmp/pgbench_ext.XXXXXX)
CLUSTER_DIRS+=("$standby")
if as_pg pg_basebackup -D "$standby/data" -R -c fast --no-sync 2>"$work/basebackup"; then
    printf '%s\n' "unix_socket_directories = '$standby'" | as_pg tee -a "$standby/data/postgresql.conf" >/dev/null
    PGHOST=$standby
    cluster_resume || exit
    calls 'on a standby' 'SELECT 1'
    try "SELECT bench.run('pk_select', transactions => 10)"
    like "$OUT" 'HINT:.*primary, with the standby as its target' 'on a standby: the hint names the primary and targets'
    for call in "bench.create_workload('w', 'SELECT 1')" "bench.delete_run($RUN)" "bench.allow('nobody_there')"; do
        refused "${call%%(*} on a standby" "SELECT $call"
    done
    eventually 10 "SELECT count(*) > 0 FROM bench.runs WHERE run_id = $RUN AND finished_at IS NOT NULL"
    try "SELECT 'status ' || status FROM bench.runs WHERE run_id = $RUN" "SELECT count(*) FROM bench.progress" \
        "SELECT bench.wait($RUN)" "SELECT bench.stop($RUN)" "SELECT bench.percentile($RUN, 0.5) > 0" \
        "SELECT count(*) > 0 FROM bench.audit($RUN)"
    is "$OUT" $'status completed\n0\ncompleted\nf\nt\nt' 'on a standby: results of the primary can be read'
    # Whether the coordinator of the primary is alive cannot be seen from here.
    under_way=$(PGHOST=$primary sql "SELECT bench.start('pk_select', secs => 30, sample_interval => 0.2)")
    eventually 10 "SELECT count(*) > 0 FROM bench.samples WHERE run_id = $under_way"
    unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $under_way")" crashed \
        'on a standby: a run under way on the primary is not said to have crashed'
    PGHOST=$primary sql "SELECT bench.stop($under_way)" >/dev/null
    no_standby_restart=$(grep -c 'terminated by signal' "$PGHOST/log")
    is "$no_standby_restart" 0 'on a standby: no process has crashed'
    # Promoted, it works.
    as_pg pg_ctl -D "$PGHOST/data" -s -w promote
    still_works 'promoted'
    cluster_remove
    PGHOST=$primary
else
    skip "pg_basebackup failed: $(cat "$work/basebackup")" 'a hot standby'
fi
done_testing
