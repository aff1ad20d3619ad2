#!/usr/bin/env bash
# The conditions of fixture orders hold after whatever ends a run of its workload: stops, cancels, kills, crashes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# What is committed must be in the WAL: the machine does not crash here, but the server does.
faults_start
sql 'CREATE EXTENSION IF NOT EXISTS amcheck' >/dev/null
sql "SELECT bench.load('orders', options => '{\"foreign_keys\": true}')" >/dev/null 2>&1

# shellcheck disable=SC2016 # a dollar of psql's
consistent() { # DESCRIPTION
    is "$(sql "SELECT concat_ws(': ', condition, detail) FROM bench.check('orders')
        WHERE ok IS NOT true AND condition NOT LIKE '11:%'")" '' "$1: all conditions hold"
}
start() { # WORKLOAD
    local before orders
    before=$(last_run)
    orders=$(sql 'SELECT count(*) FROM bench_data.orders')
    sql "SELECT bench.start('$1', clients => 4, secs => 60, sample_interval => 0.2, max_tries => 10)" >/dev/null
    sampling "${before:-0}" 2
    eventually 10 "SELECT count(*) > $orders FROM bench_data.orders"
}

consistent 'after a load with foreign keys'
for workload in orders orders_functions; do
    name="$workload, bench.stop"
    start "$workload"
    sql "SELECT bench.stop($RUN), bench.wait($RUN)" >/dev/null
    status_is "$RUN" canceled "$name"
    consistent "$name"

    name="$workload, cancels of clients"
    start "$workload"
    for _ in 1 2 3 4 5; do
        sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
        sleep 0.1
    done
    sql "SELECT bench.stop($RUN), bench.wait($RUN)" >/dev/null
    consistent "$name"

    name="$workload, pg_terminate_backend of a client"
    start "$workload"
    sql "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity
        WHERE backend_type = 'pgbench_ext client'" >/dev/null
    sql "SELECT bench.stop($RUN), bench.wait($RUN)" >/dev/null
    consistent "$name"

    name="$workload, kill -9 of a client"
    start "$workload"
    victim=$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")
    as_pg kill -9 "$victim"
    eventually 30 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim)"
    is $? 0 "$name: the server is back by itself"
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" crashed "$name: the run is known to have crashed"
    consistent "$name"
    remember_server

    name="$workload, immediate shutdown"
    start "$workload"
    cluster_restart immediate || exit
    consistent "$name"
    remember_server
done

# Errors that are retried are counted by their kind, and leave nothing.
for name in 'repeatable read' serializable; do
    run=$(sql "SELECT bench.run('orders', clients => 6, transactions => 50, max_tries => 1000,
        settings => '{\"default_transaction_isolation\": \"$name\"}')" 2>/dev/null)
    is "$(sql "SELECT status, transactions FROM bench.summary WHERE run_id = $run")" 'completed|300' \
        "$name: retries end"
    is "$(sql "SELECT min(sqlstate) FROM bench.errors WHERE run_id = $run AND retried > 0")" 40001 \
        "$name: failures are counted by SQLSTATE"
    consistent "$name"
done

# Two customers in random order: deadlocks, beside the mix.
name='deadlocks'
sql "SELECT bench.create_workload('crossing', \$script\$
\\set a random(1, 4)
\\set b random(1, 4)
BEGIN;
UPDATE customer SET c_data = 'a' WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = :a;
UPDATE customer SET c_data = 'b' WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = :b;
COMMIT;\$script\$, 'orders')" >/dev/null
run=$(sql "SELECT bench.run('orders@1,crossing@300', clients => 6, transactions => 60, max_tries => 1000,
    settings => '{\"deadlock_timeout\": \"20ms\"}')" 2>/dev/null)
is "$(sql "SELECT status, transactions, failed FROM bench.summary WHERE run_id = $run")" 'completed|360|0' \
    "$name: retries end"
is "$(sql "SELECT sqlstate, retried > 0, failed FROM bench.errors WHERE run_id = $run")" '40P01|t|0' \
    "$name: they are counted by SQLSTATE"
consistent "$name"
done_testing
