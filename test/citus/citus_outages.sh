#!/usr/bin/env bash
# TPC-B distributed by account over the nodes of Citus, while runs are stopped, canceled and killed and nodes
# crash, stop and freeze: the sums stay equal, with the prepared transactions that were left recovered.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/citus.sh
. test/lib/citus.sh
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

citus_or_skip

# Two-phase commits are recovered when the test says so.
citus_start 'citus.recover_2pc_interval = -1' || exit
remember_server
sql "SELECT bench.load('tpcb', options => '{\"scale\": 4}')" 'SET client_min_messages = error' \
    "SELECT create_distributed_table('bench_data.pgbench_accounts', 'aid', shard_count => 8)" \
    "SELECT create_distributed_table('bench_data.pgbench_history', 'aid',
        colocate_with => 'bench_data.pgbench_accounts')" \
    "SELECT create_distributed_table('bench_data.pgbench_tellers', 'tid', shard_count => 8, colocate_with => 'none')" \
    "SELECT create_distributed_table('bench_data.pgbench_branches', 'bid', shard_count => 8, colocate_with => 'none')" \
    "SELECT truncate_local_data_after_distributing_table(logicalrelid) FROM pg_dist_partition" >/dev/null 2>&1

history() { sql 'SELECT count(*) FROM bench_data.pgbench_history'; }

# What the run counted as committed, while it was measured or not.
committed() { sql "SELECT sum(harness) FROM bench.audit($RUN) WHERE counter LIKE 'committed: %'"; }

start() {
    local before
    before=$(last_run) BEFORE=$(history)
    sql "SELECT bench.start('tpcb', clients => 4, secs => 60, sample_interval => 0.2)" >/dev/null
    sampling "${before:-0}" 3
}

all_counted() { # DESCRIPTION
    is "$(($(history) - BEFORE))" "$(committed)" "$1: history has the transactions that were counted, and no other"
    is "$(prepared_left)" 0 "$1: no transaction is left prepared"
    tpcb_is_consistent "$1"
}

# Of a client that was killed at its commit the run cannot know whether it has committed. Some clients' pieces
# may be prepared, and more or less of them committed, until they are recovered.
recovers() { # DESCRIPTION CLIENTS
    local more
    ok "$1: prepared transactions can be recovered" sql 'SELECT recover_prepared_transactions()'
    is "$(prepared_left)" 0 "$1: none is left then"
    tpcb_is_consistent "$1"
    more=$(($(history) - BEFORE - $(committed)))
    ok "$1: history has the transactions that were counted, and at most one more of each client killed ($more)" \
        [ "$more" -ge 0 -a "$more" -le "$2" ]
}

a_client() { sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'"; }

for mode in prepared extended simple; do
    BEFORE=$(history)
    RUN=$(sql "SELECT bench.run('tpcb', clients => 4, transactions => 100, query_mode => '$mode')" 2>/dev/null)
    is "$(sql "SELECT status, transactions FROM bench.summary WHERE run_id = $RUN")" 'completed|400' \
        "$mode: every transaction is done"
    all_counted "$mode"
done

start
clock
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled bench.stop
within 2000 'bench.stop: within two seconds'
all_counted bench.stop

before=$(last_run) BEFORE=$(history)
session caller "SELECT bench.run('tpcb', clients => 4, secs => 60, sample_interval => 0.2)"
sampling "$before" 3
sql "SELECT pg_cancel_backend($(pid_of caller))" >/dev/null
ended caller
status_is "$RUN" canceled 'a canceled caller'
all_counted 'a canceled caller'

# A cancel of one client, and of the coordinator, means the whole run.
for victim in client coordinator; do
    for way in pg_cancel_backend pg_terminate_backend; do
        start
        sql "SELECT $way(min(pid)) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $victim'" >/dev/null
        sleep 0.3
        sql "SELECT bench.stop($RUN)" >/dev/null 2>&1
        nothing_left "$way of a $victim"
        unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" 'running|completed' \
            "$way of a $victim: the run does not say completed"
        recovers "$way of a $victim" 4
    done
done
no_restart 'so far the coordinator has not restarted'


# The coordinator node crashes: what was between the two phases of its commit stays prepared on the others.
# Most of a transaction's time is not there, so it is tried until something is left.
for _ in {1..10}; do
    start
    as_pg kill -9 "$(a_client)"
    eventually 30 "SELECT status = 'crashed' FROM bench.runs WHERE run_id = $RUN"
    left=$(prepared_left)
    [ "$left" -eq 0 ] || break
    tpcb_is_consistent 'a crash of the coordinator node that left nothing prepared'
done
ok 'a crash of the coordinator node leaves prepared transactions' [ "$left" -gt 0 ]
is "$(sql 'SELECT recover_prepared_transactions()')" "$left" \
    'a crash of the coordinator node: all of them are recovered'
is "$(prepared_left)" 0 'a crash of the coordinator node: none is left then'
tpcb_is_consistent 'a crash of the coordinator node'
remember_server

# Another node crashes or stops while the run goes on.
for way in crash fast immediate; do
    start
    on 1
    if [ $way = crash ]; then
        as_pg kill -9 "$(sql "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'citus_internal%' LIMIT 1")"
    else
        cluster_stop $way
    fi
    on 0
    status_is "$RUN" incomplete "$way of a node"
    is "$(sql "SELECT error ->> 'detail' FROM bench.runs WHERE run_id = $RUN")" '4 of 4 clients ended early.' \
        "$way of a node: the run says why"
    is "$(sql "SELECT sum(count), bool_and(sqlstate ~ '^(08|57P|XX000)') FROM bench.errors WHERE run_id = $RUN")" \
        '4|t' \
        "$way of a node: bench.errors has the lost connection of each client"
    on 1
    [ $way = crash ] || cluster_resume || exit
    eventually 30 'SELECT true'
    on 0
    recovers "$way of a node" 4
done

# A node freezes: nothing comes back from it, and no connection to it ends. A client that waits in its commit
# for the second phase cannot be ended before the node goes on; run and callers don't wait for it.
for frozen in sessions server; do
    start
    postmaster=$(head -n 1 "${NODE_DIRS[1]}/data/postmaster.pid")
    [ $frozen = server ] && pids=$postmaster || pids=
    pids+=" $(pgrep -P "$postmaster" | tr '\n' ' ')"
    # shellcheck disable=SC2086 # a list
    as_pg kill -STOP $pids
    eventually 5 "SELECT count(*) = 4 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'
        AND wait_event_type IN ('Client', 'Extension')"
    clock
    session stopper "SELECT bench.stop($RUN)"
    ended stopper 20
    within 2000 "a node's $frozen freeze: bench.stop returns within two seconds"
    status_is "$RUN" canceled "a node's $frozen freeze"
    within 2000 "a node's $frozen freeze: the run is over within two seconds"
    # shellcheck disable=SC2086 # a list
    as_pg kill -CONT $pids
    nothing_left "a node's $frozen freeze, and go on" 10
    status_is "$RUN" canceled "a node's $frozen freeze, and go on"
    recovers "a node's $frozen freeze, and go on" 4
done

BEFORE=$(history)
RUN=$(sql "SELECT bench.run('tpcb', clients => 4, transactions => 50)" 2>/dev/null)
is "$(sql "SELECT status, transactions FROM bench.summary WHERE run_id = $RUN")" 'completed|200' \
    'a run after all that is completed'
all_counted 'a run after all that'
no_restart 'the coordinator has not restarted but at its crash'
for node in 2 1 0; do
    on $node
    is "$(grep -cE 'PANIC|TRAP|leak|unexpected state|still referenced' "$PGHOST/log")" 0 \
        "nothing bad is in the log of node $node but the kills"
done
done_testing
