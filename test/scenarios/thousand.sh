#!/usr/bin/env bash
# Many clients and a coordinator without a processor: each transaction counts in the interval in which it ended.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

audit() { sql "SELECT ok FROM bench.audit($RUN) WHERE counter = '$1'"; }

# The samples have what the clients counted, and no transaction is in another interval's.
samples_are_right() { # DESCRIPTION
    is "$(audit samples)" t "$1: the samples have every transaction"
    is "$(audit misplaced)" t "$1: each of them is in the sample of its own interval"
}

faults_start 'max_worker_processes = 1100' 'max_connections = 1100' 'synchronous_commit = off'

# The clients go on while their coordinator stands still, whatever keeps it from running.
name='a coordinator that stands still'
RUN=$(sql "SELECT bench.start('pk_update', clients => 8, secs => 60, sample_interval => 0.2)")
eventually 10 "SELECT count(*) >= 5 FROM bench.samples WHERE run_id = $RUN"
last=$(sql "SELECT max(elapsed) FROM bench.samples WHERE run_id = $RUN")
# What a client has to itself, kB; not pages of programs and of shared memory that nobody else happens to use.
client_kb=$(for pid in $(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'"); do
    awk '$2 ~ /^[r-][w-][x-][ps]$/ { own = $2 ~ /p$/ } own && /^Private_Dirty/ { kb += $2 } END { print kb }' \
        "/proc/$pid/smaps"
done | sort -n | tail -n 1)
is "$((client_kb > 0 && client_kb < 2048))" 1 "$name: a client takes less than 2 MB of its own"
diag "a client has $client_kb kB of its own"
pid=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'")
as_pg kill -STOP "$pid"
sleep 6
as_pg kill -CONT "$pid"
eventually 20 "SELECT max(elapsed) > $last + 7 FROM bench.samples WHERE run_id = $RUN"
sql "SELECT bench.stop($RUN)" >/dev/null
samples_are_right "$name"
is "$(sql "SELECT count(*) >= 7, min(transactions) > 0 FROM
        (SELECT sum(transactions) AS transactions FROM bench.samples
         WHERE run_id = $RUN AND elapsed < floor($last + 6) GROUP BY floor(elapsed)) each_second")" 't|t' \
    "$name: each second has its own transactions"
kept "$RUN" "$name"

# As many clients as a small machine has no processors for.
name='a thousand clients'
RUN=$(sql "SELECT bench.start('pk_select', clients => 1000, secs => 20, sample_interval => 1)")
is "$(sql "SELECT bench.wait($RUN, 120)")" completed "$name: the run completes"
samples_are_right "$name"
is "$(sql "SELECT count(*), min(clients), min(transactions) > 0 FROM bench.samples WHERE run_id = $RUN")" '20|1000|t' \
    "$name: all of them are at work in each interval"
kept "$RUN" "$name"

# Connections that wait most of the time, each for itself.
name='a thousand terminals'
sql "SELECT bench.load('orders')" >/dev/null
RUN=$(sql "SELECT bench.start('orders_keyed', clients => 1000, secs => 5, sample_interval => 1, max_tries => 100,
    driver => 'wire', variables => '{\"keying\": 0.2, \"think\": 0.2}')")
is "$(sql "SELECT bench.wait($RUN, 120)")" completed "$name: the run completes"
samples_are_right "$name"
is "$(sql "SELECT min(clients), sum(transactions) > 0 FROM bench.samples WHERE run_id = $RUN")" '1000|t' \
    "$name: all of them are connected"
is "$(sql "SELECT nopm > 0, failed FROM bench.summary WHERE run_id = $RUN")" 't|0' "$name: new orders are counted"
no_restart 'the server has not restarted'
nothing_left 'in the end' 10
log_is_clean
done_testing
