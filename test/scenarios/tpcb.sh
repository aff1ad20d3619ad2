#!/usr/bin/env bash
# The TPC-B invariant: whatever becomes of a run, the balances of accounts, tellers and branches and
# the deltas of the history add up to the same sum (TPC Benchmark B, clause 2.3).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# shellcheck disable=SC2119
faults_start
sql "SELECT bench.load('tpcb')" >/dev/null

for mode in prepared extended simple; do
    run=$(sql "SELECT bench.run('tpcb', clients => 4, transactions => 200, query_mode => '$mode')")
    is "$(sql "SELECT status || ' ' || transactions FROM bench.summary WHERE run_id = $run")" 'completed 800' \
        "$mode: every transaction is counted"
    is "$(sql "SELECT count(*) >= 800 FROM bench_data.pgbench_history")" t "$mode: and has its row of history"
    is "$(sql "SELECT count(*) FROM bench.audit($run) WHERE NOT ok")" 0 "$mode: the audit finds no difference"
    tpcb_is_consistent "$mode"
done

run=$(sql "SELECT bench.run('tpcb@3,tpcb_simple_update,tpcb_select@2', clients => 4, transactions => 200)")
is "$(sql "SELECT sum(transactions) FROM bench.scripts WHERE run_id = $run")" 800 'a mix: its scripts add up'
sql "UPDATE bench_data.pgbench_accounts SET abalance = 0" "UPDATE bench_data.pgbench_tellers SET tbalance = 0" \
    "UPDATE bench_data.pgbench_branches SET bbalance = 0" "TRUNCATE bench_data.pgbench_history"

# Failures and other tries: under REPEATABLE READ the single branch makes most transactions fail. Fifty of each client
# could follow one another, where processors are scarce.
run=$(sql "SELECT bench.run('tpcb', clients => 4, transactions => 500, max_tries => 10000,
                            settings => '{\"default_transaction_isolation\": \"repeatable read\"}')")
is "$(sql "SELECT status, transactions, failed, retried > 0 FROM bench.summary WHERE run_id = $run")" \
    'completed|2000|0|t' \
    'serialization failures: all were tried until they went through'
is "$(sql "SELECT count(*) FROM bench_data.pgbench_history")" 2000 \
    'serialization failures: each left one row of history'
is "$(sql "SELECT sqlstate, retried = count, failed FROM bench.errors WHERE run_id = $run")" '40001|t|0' \
    'serialization failures: bench.errors tells what became of them'
tpcb_is_consistent 'serialization failures'
run=$(sql "SELECT bench.run('tpcb', clients => 4, transactions => 50, max_tries => 1,
                            settings => '{\"default_transaction_isolation\": \"repeatable read\"}')")
is "$(sql "SELECT transactions + failed FROM bench.summary WHERE run_id = $run")" 200 \
    'failures without another try: every transaction is counted'
is "$(sql "SELECT s.transactions + 2000 - (SELECT count(*) FROM bench_data.pgbench_history)
           FROM bench.summary s WHERE run_id = $run")" 0 'failures without another try: only the others left a row'
tpcb_is_consistent 'failures without another try'

start() {
    local before
    before=$(last_run)
    sql "SELECT bench.start('tpcb', clients => 4, secs => 60, sample_interval => 0.2)" >/dev/null
    sampling "$before" 3
}

start
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled 'bench.stop'
tpcb_is_consistent 'bench.stop'

before=$(last_run)
session caller "SELECT bench.run('tpcb', clients => 4, secs => 60, sample_interval => 0.2)"
sampling "$before" 3
sql "SELECT pg_cancel_backend($(pid_of caller))" >/dev/null
ended caller
status_is "$RUN" canceled 'a canceled call'
tpcb_is_consistent 'a canceled call'

start
sql "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
sleep 0.3
sql "SELECT bench.stop($RUN)" >/dev/null
nothing_left 'a terminated client'
tpcb_is_consistent 'a terminated client'
no_restart 'so far the server has not restarted'

start
as_pg kill -9 "$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")"
sleep 0.5
eventually 20 "SELECT true"
eventually 20 "SELECT status = 'crashed' FROM bench.runs WHERE run_id = $RUN"
is $? 0 'a crash: the run is crashed'
tpcb_is_consistent 'a crash'

start
cluster_stop immediate
cluster_resume || exit
tpcb_is_consistent 'an immediate shutdown'

# Tables that pgbench has made serve where none are loaded.
sql "SELECT bench.unload('tpcb')" >/dev/null
for partitions in 0 2; do
    pgbench -i -q --partitions=$partitions >/dev/null 2>&1
    run=$(sql "SELECT bench.run('tpcb', clients => 2, transactions => 100)")
    is "$(sql "SELECT count(*) FROM public.pgbench_history")" 200 \
        "pgbench -i, $partitions partitions: its tables are worked on"
    is "$(sql "SELECT count(*) FROM bench.audit($run) WHERE NOT ok")" 0 \
        "pgbench -i, $partitions partitions: the audit finds no difference"
    tpcb_is_consistent "pgbench -i, $partitions partitions" public
done
is "$(sql "SELECT count(*) FROM bench.fixtures WHERE name = 'tpcb'")" 0 'pgbench -i: nothing was loaded beside them'

# A superuser is kept from what others could have put there.
sql "CREATE ROLE eve LOGIN" "GRANT CREATE ON SCHEMA public TO eve" 'DROP TABLE pgbench_branches' >/dev/null
sql 'SET ROLE eve' "CREATE FUNCTION trap() RETURNS int
    LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION \$\$trapped\$\$; END'" \
    'CREATE VIEW pgbench_branches AS SELECT trap() AS bid, 0 AS bbalance' >/dev/null
try "SELECT bench.run('tpcb_select', transactions => 1)"
unlike "$OUT" trapped 'a view in the place of a table is not looked into'
sql "SELECT bench.unload('tpcb')" 'DROP VIEW public.pgbench_branches' 'SET ROLE eve' \
    'CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88))' \
    'INSERT INTO pgbench_branches VALUES (1, 0)' >/dev/null
try "SET pgbench_ext.client_role = 'bench_client'" "SELECT bench.run('tpcb_select', transactions => 1)"
like "$OUT" '42501: permission denied for table pgbench_branches.*HINT:.*GRANT SELECT' \
    "another role's table is read without special rights, if at all"

still_works 'all that'
is "$(grep -cE 'PANIC|TRAP|leak|unexpected state|still referenced' "$PGHOST/log")" 0 \
    'nothing bad is in the log but the kill'
done_testing
