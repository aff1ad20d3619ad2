#!/usr/bin/env bash
# Fixtures that Citus distributes: what is loaded where, what is left behind, and which shards a statement touches.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus.sh
. test/lib/citus.sh

citus_or_skip
citus_start 'fsync = off' 'autovacuum = off' || exit

load() { sql 'SET client_min_messages = warning' "SELECT bench.load($*)" 2>&1; }

# Table, column and shards of what is distributed, and which tables are co-located: each group by its first.
placement() {
    sql "SELECT t.table_name, t.distribution_column, t.shard_count,
                min(t.table_name::text COLLATE \"C\") OVER (PARTITION BY t.colocation_id)
         FROM citus_tables t ORDER BY t.table_name::text COLLATE \"C\""
}

# What any node has of a load that is over: schemas, and entries of it.
leftovers() {
    sql "SELECT result FROM run_command_on_all_nodes(\$\$SELECT pg_catalog.concat_ws(' ',
             (SELECT string_agg(nspname, ',') FROM pg_namespace WHERE nspname LIKE 'bench\\_loading%'),
             (SELECT string_agg(gid, ',') FROM pg_prepared_xacts))\$\$) WHERE result <> ''" \
        "SELECT load_id FROM bench_internal.load_log WHERE status = 'running'"
}

# Shards and tables that a schema has on the workers.
on_workers() { # SCHEMA
    sql "SELECT sum(result::int) FROM run_command_on_workers(\$\$SELECT count(*) FROM pg_class c
        JOIN pg_namespace n ON n.oid = relnamespace
             WHERE nspname = '$1'\$\$)"
}


# pk
is "$(load "'pk', 30000, options => '{\"distribute\": true, \"shard_count\": 5}'")" 30000 'pk is loaded'
is "$(placement)" 'bench_data.pk|id|5|bench_data.pk' 'pk is distributed by id'
is "$(sql "SELECT count(*), count(DISTINCT id), min(id), max(id), count(info), min(length(info)) FROM bench_data.pk")" \
    '30000|30000|1|30000|30000|32' 'it has each id once'
is "$(sql "SELECT pg_relation_size('bench_data.pk')")" 0 'none of it is kept twice'
is "$(sql "SELECT table_bytes > 1000000 AND table_bytes = citus_table_size('bench_data.pk')
               AND table_bytes + index_bytes = citus_total_relation_size('bench_data.pk') AND index_bytes > 500000
               AND index_levels IS NULL AND rows = 30000 FROM bench.fixtures")" t \
    'bench.fixtures has the bytes of all shards'
is "$(sql "SELECT count(*), bool_and(result::boolean)
    FROM run_command_on_shards('bench_data.pk', \$\$SELECT relallvisible = relpages AND
               relpages > 0 AND reltuples > 5000 AND EXISTS (SELECT FROM pg_index
               WHERE indrelid = c.oid AND indisprimary)
               FROM pg_class c WHERE oid = '%s'::regclass\$\$)")" '5|t' \
    'each shard is vacuumed, analyzed and has its key'
is "$(leftovers)" '' 'nothing is left of the load'

# tpcb
ACCOUNTS=$(cat <<'END'
SELECT count(*), count(DISTINCT aid), min(aid), max(aid), bool_and(bid = (aid - 1) / 100000 + 1)
    FROM bench_data.pgbench_accounts
END
)
check_tpcb() { # DESCRIPTION
    is "$(sql "$ACCOUNTS")" '200000|200000|1|200000|t' "$1: all accounts"
    is "$(sql "SELECT (SELECT concat_ws(' ', count(*), count(DISTINCT tid), bool_and(bid = (tid - 1) / 10 + 1))
        FROM bench_data.pgbench_tellers),
                      (SELECT concat_ws(' ', count(*), min(bid), max(bid)) FROM bench_data.pgbench_branches),
                      (SELECT count(*) FROM bench_data.pgbench_history)")" '20 20 t|2 1 2|0' \
        "$1: all tellers and branches"
    is "$(leftovers)" '' "$1: nothing is left of the load"
}

is "$(load "'tpcb', options => '{\"scale\": 2, \"distribute\": \"account\", \"shard_count\": 4}'")" 200000 \
    'tpcb is loaded by account'
is "$(placement)" 'bench_data.pgbench_accounts|aid|4|bench_data.pgbench_accounts
bench_data.pgbench_branches|bid|4|bench_data.pgbench_branches
bench_data.pgbench_history|aid|4|bench_data.pgbench_accounts
bench_data.pgbench_tellers|tid|4|bench_data.pgbench_tellers
bench_data.pk|id|5|bench_data.pk' 'by account, only history is co-located with anything'
check_tpcb 'by account'

balances() {
    sql "SELECT rows, delta = accounts, delta = tellers, delta = branches FROM (
             SELECT (SELECT count(*) FROM bench_data.pgbench_history) AS rows, (SELECT sum(delta)
             FROM bench_data.pgbench_history) AS delta,
                    (SELECT sum(abalance) FROM bench_data.pgbench_accounts) AS accounts,
                    (SELECT sum(tbalance) FROM bench_data.pgbench_tellers) AS tellers,
                    (SELECT sum(bbalance) FROM bench_data.pgbench_branches) AS branches) AS sums"
}
check_runs() { # DESCRIPTION
    local workload
    for workload in tpcb tpcb_branch tpcb_simple_update tpcb_select; do
        sql "SELECT bench.run('$workload', clients => 3, transactions => 10, max_tries => 20)" >/dev/null 2>&1
        is "$(sql "SELECT status, transactions, failed FROM bench.summary WHERE run_id = $(last_run)")" \
            'completed|30|0' "$1: $workload runs"
        [ "$workload" != tpcb_branch ] || is "$(balances)" '60|t|t|t' "$1: the balances are the sums of history"
    done
}
check_runs 'by account'

BRANCH="'tpcb', options => '{\"scale\": 2, \"distribute\": \"branch\", \"shard_count\": 4"
is "$(load "$BRANCH}'")" 200000 'tpcb is loaded by branch, in place of it'
is "$(placement)" 'bench_data.pgbench_accounts|bid|4|bench_data.pgbench_accounts
bench_data.pgbench_branches|bid|4|bench_data.pgbench_accounts
bench_data.pgbench_history|bid|4|bench_data.pgbench_accounts
bench_data.pgbench_tellers|bid|4|bench_data.pgbench_accounts
bench_data.pk|id|5|bench_data.pk' 'by branch, all four are co-located'
check_tpcb 'by branch'
check_runs 'by branch'
is "$(sql "SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'bench_data'::regnamespace
           AND conname LIKE 'pgbench%' ORDER BY conname COLLATE \"C\"")" \
    'bench_data.pgbench_accounts|PRIMARY KEY (bid, aid)
bench_data.pgbench_branches|PRIMARY KEY (bid)
bench_data.pgbench_tellers|PRIMARY KEY (bid, tid)' 'the primary keys contain the branch'

is "$(load "$BRANCH, \"foreign_keys\": true, \"index\": \"before\", \"unlogged\": true, \"fillfactor\": 80}'")" 200000 \
    'foreign keys, an early index, unlogged tables and a fillfactor go with it'
check_tpcb 'with options'
is "$(sql "SELECT count(*), string_agg(DISTINCT array_length(conkey, 1)::text, ' ') FROM pg_constraint
           WHERE connamespace = 'bench_data'::regnamespace AND contype = 'f'")" '5|1 2' \
    'the foreign keys contain the branch'
is "$(sql "SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_shards('bench_data.pgbench_accounts',
               \$\$SELECT relpersistence::text || reloptions::text FROM pg_class WHERE oid = '%s'::regclass\$\$)")" \
    'u{fillfactor=80}' \
    'the shards are unlogged and have the fillfactor'
try "SELECT bench.run('tpcb_branch', transactions => 1)"
like "$OUT" 'transactions actually processed: 1' \
    'an unlogged distributed table is not taken for one that a crash has emptied'

for method in range hash; do
    is "$(load "$BRANCH, \"partitions\": 2, \"partition_method\": \"$method\"}'")" 200000 \
        "partitions by $method go with it"
    check_tpcb "partitions by $method"
    is "$(sql "SELECT table_bytes > 20000000 AND index_bytes > 4000000 FROM bench.fixtures WHERE name = 'tpcb'")" t \
        "partitions by $method: their bytes count"
done

# Replaced by a local one, and unloaded
is "$(load "'tpcb'")" 100000 'a local fixture replaces a distributed one'
is "$(placement)" 'bench_data.pk|id|5|bench_data.pk' 'and has no shards'
ok 'pk is unloaded' sql "SELECT bench.unload('pk'), bench.unload('tpcb')"
is "$(placement)" '' 'nothing is distributed any more'
is "$(on_workers bench_data)" 0 'no worker has anything in the schema'

# Errors and kills
UNDONE="SELECT bench.load('pk', 20000, options => '{\"distribute\": true, \"shard_count\": 4}')"
sql "$UNDONE" >/dev/null 2>&1
before=$(sql 'SELECT name, rows, loaded_at, relations FROM bench.fixtures' 'SELECT count(*) FROM bench_data.pk' \
    'SELECT count(*) FROM pg_dist_shard')
after() { sql 'SELECT name, rows, loaded_at, relations FROM bench.fixtures' 'SELECT count(*) FROM bench_data.pk' \
    'SELECT count(*) FROM pg_dist_shard'; }
BIG="SELECT bench.load('pk', 3000000, options => '{\"distribute\": true, \"shard_count\": 4}')"
for victim in caller leader; do
    session caller "$BIG"
    eventually 30 "SELECT EXISTS (SELECT FROM bench.progress WHERE phase = 'distributing rows')" ||
        tap_fail "a load gets to distribute rows"
    if [ "$victim" = caller ]; then
        sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null
    else
        sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext load'" >/dev/null
    fi
    ended caller 30
    like "$OUT" "ERROR" "the $victim is stopped while rows are distributed: the call fails"
    eventually 20 "SELECT NOT EXISTS (SELECT FROM bench.progress)
        AND NOT EXISTS (SELECT FROM bench_internal.load_log WHERE status = 'running')"
    is "$(leftovers)" '' "the $victim is stopped: nothing is left on any node"
    is "$(after)" "$before" "the $victim is stopped: what was loaded is still there"
done
NODE=1
on $NODE && cluster_stop immediate && on 0
try "$UNDONE"
like "$OUT" 'ERROR' 'a load fails while a worker is down'
on $NODE && cluster_resume && on 0
is "$(load "'pk', 20000, options => '{\"distribute\": true, \"shard_count\": 4}'")" 20000 'the next one succeeds'
is "$(leftovers)" '' 'and removes what the other has left'
session caller "$BIG"
eventually 30 "SELECT EXISTS (SELECT FROM bench.progress WHERE phase = 'distributing rows')" ||
    tap_fail 'another load gets to distribute rows'
cluster_restart immediate
ended caller
is "$(sql 'SELECT count(*) FROM bench_data.pk')" 20000 'a crash while rows are distributed leaves what was there'
is "$(load "'pk', 10000, options => '{\"distribute\": true, \"shard_count\": 4}'")" 10000 'the next load succeeds'
is "$(leftovers)" '' 'and removes what the crash has left'
ok 'pk is unloaded again' sql "SELECT bench.unload('pk')"

# Another role
sql 'CREATE ROLE alice LOGIN' 'CREATE SCHEMA alices AUTHORIZATION alice' 'GRANT USAGE ON SCHEMA bench TO alice' \
    'GRANT EXECUTE ON FUNCTION bench.load, bench.unload, bench.run TO alice'
for kind in account branch; do
    is "$(PGUSER=alice load \
        "'tpcb', options => '{\"schema\": \"alices\", \"distribute\": \"$kind\", \"shard_count\": 4}'")" 100000 \
        "a role loads by $kind"
    is "$(leftovers)" '' "a role loads by $kind: nothing is left"
done
is "$(PGUSER=alice sql "SELECT tableowner FROM pg_tables WHERE schemaname = 'alices' GROUP BY 1")" alice \
    'the tables are its own'
is "$(PGUSER=alice sql "SELECT bench.run('tpcb_branch', clients => 2, transactions => 5) > 0" 2>&1 | tail -1)" t \
    'it runs on them'
ok 'it unloads them' env PGUSER=alice psql -XAtq -v ON_ERROR_STOP=1 -c "SELECT bench.unload('tpcb')"
is "$(on_workers alices)" 0 'no worker has any of them'

# Which shards a statement touches
ROWS_BY_SHARD="SELECT get_shard_id_for_distribution_column('bench_data.shards', id) AS shard, count(*) AS rows
    FROM bench_data.shards GROUP BY 1"
shape() { # WORKLOAD
    sql 'TRUNCATE bench_data.shards' 'SET client_min_messages = error' "SELECT bench.run('$1', transactions => 1) > 0" \
        >/dev/null 2>&1
    sql "SELECT count(*), string_agg(rows::text, ' ' ORDER BY rows) FROM ($ROWS_BY_SHARD) AS placed"
}
touched() { # WORKLOAD SHARDS
    is "$(sql "SELECT count(DISTINCT result::int)
        FROM run_command_on_shards('bench_data.shards', 'SELECT count(*) FROM %s') WHERE result <> '0'")" "$2" \
        "$1: so many shards have rows"
}
is "$(load "'shards', options => '{\"shard_count\": 12}'")" 0 'shards are loaded, distributed by default'
is "$(placement)" 'bench_data.shards|id|12|bench_data.shards' 'by id'
is "$(shape insert_9_shards)" '9|1 1 1 1 1 1 1 1 1' 'insert_9_shards puts a row into each of nine shards'
is "$(shape insert_2_shards)" '2|4 5' 'insert_2_shards puts nine rows into two'
is "$(shape insert_1_shard)" '1|9' 'insert_1_shard puts nine into one'
is "$(shape insert_1_row)" '1|1' 'insert_1_row puts one row into one'
# What Citus says of the statement as it was sent.
explained() { # WORKLOAD
    local statement
    statement=$(sql "SELECT output FROM bench.preview((SELECT script FROM bench.workloads WHERE name = '$1'),
                     variables => '$KEYS') WHERE output LIKE 'INSERT%'")
    sql 'SET search_path = bench_data' "EXPLAIN (COSTS OFF) $statement" | grep 'Task Count'
}
KEYS=$(sql "SELECT jsonb_object_agg('shard_key_' || n, key) FROM (
                SELECT row_number() OVER (ORDER BY shard) AS n, key FROM (
                    SELECT get_shard_id_for_distribution_column('bench_data.shards', key) AS shard, min(key) AS key
                    FROM generate_series(1, 1000) AS key GROUP BY 1) AS keys) AS numbered WHERE n <= 9")
is "$(explained insert_9_shards)" '  Task Count: 9' 'insert_9_shards is nine tasks'
is "$(explained insert_2_shards)" '  Task Count: 2' 'insert_2_shards is two'
is "$(explained insert_1_shard)" '  Task Count: 1' 'insert_1_shard is one'
is "$(explained insert_1_row)" '  Task Count: 1' 'insert_1_row is one'
for workload in insert_9_shards insert_2_shards; do
    sql 'TRUNCATE bench_data.shards' "SELECT bench.run('$workload', clients => 12, transactions => 3)" >/dev/null 2>&1
    is "$(sql "SELECT count(*), min(rows), max(rows) FROM ($ROWS_BY_SHARD) AS placed")" '12|27|27' \
        "$workload: twelve clients spread evenly over twelve shards"
done
is "$(load "'shards', options => '{\"shard_count\": 8}'")" 0 'shards are loaded with 8'
try "SELECT bench.run('insert_9_shards', clients => 2, transactions => 1)"
like "$OUT" '55000: workload "insert_9_shards" needs 9 shards, but fixture "shards" has 8.*HINT: .*"shard_count": 9' \
    'which is too few for insert_9_shards'
is "$(shape insert_2_shards)" '2|4 5' 'and enough for insert_2_shards'
is "$(load "'shards', options => '{\"shard_count\": 200}'")" 0 'more shards than a node allows connections'
is "$(shape insert_9_shards)" '9|1 1 1 1 1 1 1 1 1' 'are found as well'
is "$(load "'shards', 1000, options => '{\"distribute\": false}'")" 1000 'shards are loaded as a local table'
is "$(placement)" '' 'without Citus'
sql "SELECT bench.run('insert_9_shards', transactions => 1)" >/dev/null 2>&1
is "$(sql 'SELECT count(*) FROM bench_data.shards')" 1009 'insert_9_shards runs on it'

# Events
is "$(load "'events', 20000, options => '{\"distribute\": true, \"shard_count\": 4}'")" 20000 'events are loaded'
is "$(sql 'SELECT count(*), count(DISTINCT id), min(id), max(id), count(DISTINCT c1), min(c1), max(c1), min(c2),
    max(c2), min(c3), max(c3),
                  min(length(info)), count(crt_time) FROM bench_data.events')" \
    '20000|20000|1|20000|101|0|100|0|100|0|100|32|20000' \
    'with numbers of 0 to 100'
for workload in count_all group_count; do
    sql "SELECT bench.run('$workload', clients => 2, transactions => 3)" >/dev/null 2>&1
    is "$(sql "SELECT status, transactions, failed FROM bench.summary WHERE run_id = $(last_run)")" 'completed|6|0' \
        "$workload runs"
done
script_of() { sql "SELECT script FROM bench.workloads WHERE name = '$1'"; }
is "$(sql 'SET search_path = bench_data' "$(script_of count_all)")" 20000 'count_all counts them'
is "$(sql 'SET search_path = bench_data' "$(script_of group_count)" | cut -d'|' -f2)" \
    "$(sql 'SELECT count(*) FROM bench_data.events GROUP BY c1' | sort -rn | head -10)" \
    'group_count has the ten largest groups'

# A user's own, which its ddl distributes
sql "SELECT bench.create_fixture('own',
    'CREATE TABLE own (id bigint, info text); SELECT create_distributed_table(''own'', ''id'', shard_count => 4)',
         'SELECT id, md5(id::text) FROM (SELECT generate_series(\$1, \$2) AS id) AS ids',
         'ALTER TABLE own ADD PRIMARY KEY (id)')" >/dev/null
is "$(load "'own', 20000, jobs => 2")" 20000 'a fixture of a user'\''s own is loaded by two jobs'
is "$(sql "SELECT count(*), count(DISTINCT id), bool_and(info = md5(id::text)) FROM bench_data.own")" '20000|20000|t' \
    'into its shards'
is "$(sql "SELECT pg_relation_size('bench_data.own')")" 0 'and not into the table that stands for them'
is "$(leftovers)" '' 'nothing is left of the load'

# Before a sweep's runs
load "'shards', options => '{\"shard_count\": 4}'" >/dev/null
sql "SELECT bench.sweep('insert_1_row', '{2}', secs => 0.2, rounds => 2, before => 'truncate,vacuum,prewarm')" \
    >/dev/null 2>&1
is "$(sql "SELECT status, completed FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1")" 'completed|2' \
    'a sweep truncates, vacuums and prewarms shards'
is "$(sql 'SELECT count(*) FROM bench_data.shards')" \
    "$(sql "SELECT sum(harness) FROM bench.audit($(last_run)) WHERE counter LIKE 'committed:%'")" \
    'its last run began with none'

# A coordinator that has shards as well
sql "SELECT bench.unload(name) FROM bench.fixtures" \
    "SELECT citus_set_node_property('127.0.0.1', ${NODE_PORTS[0]}, 'shouldhaveshards', true)" >/dev/null
sql 'DROP SCHEMA bench_data'
is "$(load "'tpcb', options => '{\"scale\": 2, \"distribute\": \"branch\", \"shard_count\": 6, \"partitions\": 2}'")" \
    200000 'a load with shards on the coordinator'
check_tpcb 'with shards on the coordinator'
is "$(sql "SELECT relations FROM bench.fixtures")" \
    '{bench_data.pgbench_accounts,bench_data.pgbench_tellers,bench_data.pgbench_branches,bench_data.pgbench_history}' \
    'shards are not taken for tables'
is "$(sql "SELECT count(DISTINCT nodeport) FROM citus_shards")" 3 'which are on all three nodes'
is "$(load "'tpcb', options => '{\"scale\": 2, \"distribute\": \"account\", \"shard_count\": 6}'")" 200000 \
    'and is replaced'
check_tpcb 'replaced with shards on the coordinator'

for node in 0 1 2; do
    is "$(grep -E 'PANIC|FATAL:  .*(crash|recovery)|terminated by signal' "${NODE_DIRS[$node]}/log" |
        grep -v 'recovery mode' | head -3)" '' "node $node: the log tells of no crash"
done
done_testing
