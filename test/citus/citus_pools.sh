#!/usr/bin/env bash
# Connections between the nodes of a Citus cluster: a run whose clients would wait for each other's for ever is refused
# with the numbers, whatever its scripts are; one that has enough of them is not.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
nodes_start 'max_worker_processes = 60'

sql "SELECT bench.load('shards', options => '{\"shard_count\": 32}')" >/dev/null
pool() { # SIZE
    sql "ALTER SYSTEM SET citus.max_shared_pool_size = $1" 'SELECT pg_reload_conf()' >/dev/null
    eventually 5 "SELECT current_setting('citus.max_shared_pool_size') = '$1'"
}
runs() { # DESC ARGUMENTS
    local before
    before=$(newest)
    try "SELECT bench.run($2, max_tries => 20)"
    is "$(sql "SELECT status, failed, transactions > 0 FROM bench.summary WHERE run_id = $(newest)
        AND run_id > ${before:-0}")" 'completed|0|t' "$1: runs"
}

# Each session keeps a connection to each node, so that the eleventh client has none, and those who have one wait for
# another: with one shard in a statement and with nine, with a fixture and without.
pool 10
NEEDED='53300: the clients on node .* would wait forever for connections to other nodes.*'
NEEDED+='Needed to each other node: 35 '
NEEDED+='\(one for each of 30 clients and 5 more\); citus.max_shared_pool_size is 10.*'
NEEDED+='to at least 35 on that node, or use at most 5 clients'
for workload in insert_9_shards insert_1_row; do
    refused "$workload, 30 clients" "'$workload', clients => 30, secs => 1" "$NEEDED"
    runs "$workload, 5 clients" "'$workload', clients => 5, secs => 0.5"
done
SCRIPT="script => 'INSERT INTO bench_data.shards VALUES (1), (2), (3);'"
refused 'a script without a fixture' "clients => 30, secs => 1, $SCRIPT" "$NEEDED"
runs 'a script without a fixture, 5 clients' "clients => 5, secs => 0.5, $SCRIPT"
runs 'a script that stays here' "clients => 30, secs => 0.3, script => 'SELECT 1;'"

# Where nothing is kept, clients take turns, unless a statement of several steps, or a block, holds one.
NONE="settings => '{\"citus.max_cached_conns_per_worker\": 0}'"
runs 'nothing kept, one shard' "'insert_1_row', clients => 30, secs => 0.5, $NONE"
runs 'nothing kept, all shards at once' \
    "clients => 30, secs => 0.5, $NONE, script => 'SELECT count(*) FROM bench_data.shards;'"
refused 'nothing kept, one row after the other' "'insert_9_shards', clients => 30, secs => 1, $NONE" "$NEEDED"
BLOCK="script => E'BEGIN;\\nINSERT INTO bench_data.shards VALUES (1);\\nINSERT INTO bench_data.shards VALUES (2);"
BLOCK+="\\nEND;'"
refused 'nothing kept, a block' "clients => 30, secs => 1, $NONE, $BLOCK" "$NEEDED"

# What functions do is not in the plan of the statement that calls them: taken for the most, or told where no table is
# known.
sql "CREATE FUNCTION own.two() RETURNS void LANGUAGE plpgsql AS \$\$ BEGIN
         INSERT INTO bench_data.shards VALUES (1); INSERT INTO bench_data.shards VALUES (2); END \$\$" \
    "CREATE PROCEDURE own.twice() LANGUAGE sql AS
         'INSERT INTO bench_data.shards VALUES (1); INSERT INTO bench_data.shards VALUES (2)'" \
    "SELECT bench.create_workload('by_function', 'SELECT own.two();', fixture => 'shards')" \
    "SELECT bench.create_workload('by_procedure', 'CALL own.twice();', fixture => 'shards')" >/dev/null
for by in function procedure; do
    refused "nothing kept, a $by" "'by_$by', clients => 30, secs => 1, $NONE" "$NEEDED"
    runs "nothing kept, a $by, 5 clients" "'by_$by', clients => 5, secs => 0.5, $NONE"
done
for call in 'SELECT own.two()' 'CALL own.twice()'; do
    runs "$call without a fixture, 5 clients" "clients => 5, secs => 0.5, script => '$call;'"
    is "$(grep -c WARNING <<<"$OUT")" 0 "$call without a fixture, 5 clients: nothing to be told"
    try "SELECT bench.start(clients => 30, secs => 60, script => '$call;')"
    like "$OUT" \
        "WARNING: .* wait forever .*, if functions in the scripts use distributed tables.*Needed.*: 35 .*at most 5" \
        "$call without a fixture, 30 clients: told"
    sql "SELECT bench.stop(max(run_id)) FROM bench.runs" >/dev/null
done

# With a larger cache the plan decides: sixteen shards on each node, of which a session keeps four, and one row after
# the other takes one connection.
pool 30
FOUR="settings => '{\"citus.max_cached_conns_per_worker\": 4}'"
PLANNED='Needed to each other node: 85 \(4 for each of 20 clients and 5 more\); citus.max_shared_pool_size is 30\. '
PLANNED+='A statement of script "script" has 16 tasks on one node.*'
PLANNED+='at most 6 clients, or a lower citus.max_cached_conns_per_worker'
refused 'four kept, all shards' \
    "clients => 20, secs => 1, $FOUR, script => 'SELECT count(*) FROM bench_data.shards;'" "$PLANNED"
runs 'four kept, one row after the other' "'insert_9_shards', clients => 20, secs => 0.5, $FOUR"
runs 'four kept, one shard' "'insert_1_row', clients => 20, secs => 0.5, $FOUR"
runs 'four kept, few clients' \
    "clients => 6, secs => 0.5, $FOUR, script => 'SELECT count(*) FROM bench_data.shards;'"

# What each node has for itself takes no connection.
pool 10
sql 'CREATE SCHEMA refs' 'CREATE TABLE refs.ref (id int PRIMARY KEY)' >/dev/null
sql "SELECT bench.create_fixture('ref', 'CREATE TABLE ref (id int PRIMARY KEY); SELECT create_reference_table(''ref'')',
        'SELECT generate_series(\$1, \$2)::int')" "SELECT bench.load('ref', 100)" \
    "SELECT bench.create_workload('read_ref', 'SELECT * FROM ref WHERE id = 7;', fixture => 'ref')" \
    "SELECT bench.create_workload('write_ref', 'UPDATE ref SET id = id WHERE id = 7;', fixture => 'ref')" >/dev/null
runs 'a reference table, read' "'read_ref', clients => 30, secs => 0.3"
refused 'a reference table, written' "'write_ref', clients => 30, secs => 0.3" "$NEEDED"

nothing_on_any 'pools'
logs_are_clean
done_testing
