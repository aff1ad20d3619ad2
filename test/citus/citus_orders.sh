#!/usr/bin/env bash
# Fixture orders on three nodes: distributed by warehouse, with items as a reference table; its workloads through the
# coordinator and on all nodes; and the conditions that hold afterwards.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
citus_start 'fsync = off' 'autovacuum = off' 'deadlock_timeout = 200ms' || exit

consistent() { # DESCRIPTION
    is "$(sql "SELECT concat_ws(': ', condition, detail) FROM bench.check('orders')
        WHERE ok IS NOT true AND condition NOT LIKE 'index%' AND condition NOT LIKE '11:%'")" '' \
        "$1: all conditions hold"
}

is "$(sql "SELECT bench.load('orders',
    options => '{\"warehouses\": 2, \"distribute\": true, \"shard_count\": 4}')" 2>/dev/null)" 200000 \
    'orders are loaded'
is "$(sql "SELECT citus_table_type, string_agg(coalesce(nullif(distribution_column, '<none>'), table_name::text), ' '
               ORDER BY distribution_column) FROM citus_tables GROUP BY 1 ORDER BY 1")" \
    'distributed|c_w_id d_w_id h_w_id no_w_id o_w_id ol_w_id s_w_id w_id
reference|bench_data.item' 'by warehouse, and items are a reference table'
is "$(sql "SELECT count(DISTINCT colocation_id) FROM citus_tables WHERE citus_table_type = 'distributed'")" 1 \
    'all of them are co-located'
is "$(on_nodes "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'bench_data' AND p.proname LIKE 'orders\\_%'")" '7 7 7' 'every node has the functions'
consistent 'after the load'

for workload in orders orders_functions; do
    made=$(sql 'SELECT count(*) FROM bench_data.orders')
    run=$(sql "SELECT bench.run('$workload', clients => 4, transactions => 40, max_tries => 100)" 2>/dev/null)
    is "$(sql "SELECT status, transactions, failed FROM bench.summary WHERE run_id = $run")" 'completed|160|0' \
        "$workload runs through the coordinator"
    is "$(sql "SELECT count(*) > $made FROM bench_data.orders")" t "$workload: there are new orders"
    consistent "$workload through the coordinator"
    run=$(sql "SELECT bench.run('$workload', clients => 3, transactions => 20, max_tries => 100, nodes => 'all')" \
        2>/dev/null)
    is "$(sql "SELECT status, transactions FROM bench.summary WHERE run_id = $run")" 'completed|180' \
        "$workload runs on all nodes"
    is "$(sql "SELECT count(DISTINCT node) FROM bench.nodes WHERE run_id = $run AND transactions > 0")" 3 \
        "$workload: by clients on each of them"
    consistent "$workload on all nodes"
    nothing_on_any "$workload"
done

sql "SELECT bench.unload('orders')"
is "$(sql 'SELECT count(*) FROM citus_tables')" 0 'it is unloaded'
is "$(on_nodes "SELECT count(*) FROM pg_proc WHERE proname LIKE 'orders\\_%'")" '0 0 0' 'with its functions'
logs_are_clean
done_testing
