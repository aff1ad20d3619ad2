#!/usr/bin/env bash
# Tables of every kind that Citus has, and shards on several nodes or on the move: what is loaded, and that the audit
# judges where it can, says so where it cannot, and accuses nobody.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
nodes_start 'wal_level = logical'

# The audit of a counter of the newest run: both sides are equal, it is judged, there is something to judge.
audit() { # COUNTER
    sql "SELECT harness = server, ok, harness > 0 FROM bench.audit($(newest)) WHERE counter = '$1'"
}
critical() {
    sql "SELECT (SELECT count(*) FROM bench.audit($(newest)) WHERE NOT ok),
        (SELECT count(*) FROM bench.findings($(newest)) WHERE topic = 'audit')"
}
run() { # ARGUMENTS
    try "SELECT bench.run($1, max_tries => 20)"
    RUN=$(newest)
}
confirmed() { # DESC COUNTER
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" completed "$1: completed"
    is "$(audit "$2")" 't|t|t' "$1: the shards confirm $2"
    is "$(critical)" '0|0' "$1: the audit does not accuse"
}

# Each shard on two nodes
TWO='"distribute": true, "shard_count": 8, "shard_replication_factor": 2'
sql "SELECT bench.load('pk', 10000, options => '{$TWO}')" >/dev/null
is "$(sql "SELECT count(*), count(DISTINCT shardid) FROM citus_shards WHERE table_name = 'bench_data.pk'::regclass")" \
    '16|8' 'load option shard_replication_factor: two copies of each shard'
is "$(sql 'SELECT count(*) FROM bench_data.pk')" 10000 'and each row once'
for nodes in local all; do
    run "'pk_update', clients => 2, secs => 1, nodes => '$nodes'"
    confirmed "two copies, $nodes" n_tup_upd
done

# A shard that moves meanwhile, or is split
sql "SELECT bench.load('pk', 10000, options => '{\"distribute\": true, \"shard_count\": 8}')" >/dev/null
moved() { # NODES [split]
    local before shard there
    before=$(newest)
    sql "SELECT bench.start('pk_update', clients => 2, secs => 6, sample_interval => 0.2, nodes => '$1',
        max_tries => 50)" >/dev/null
    at_work "$before"
    shard=$(sql "SELECT min(shardid) FROM citus_shards
        WHERE table_name = 'bench_data.pk'::regclass AND nodeport = ${NODE_PORTS[1]}")
    there=${NODE_PORTS[2]}
    if [ $# -gt 1 ]; then
        ok "$1: a shard is split" sql "SELECT citus_split_shard_by_split_points($shard,
            ARRAY[((shardminvalue::int + shardmaxvalue::int) / 2)::text], ARRAY[n.nodeid, n.nodeid],
            'block_writes') FROM pg_dist_shard, pg_dist_node n WHERE shardid = $shard AND nodeport = ${NODE_PORTS[1]}"
    else
        ok "$1: a shard moves" sql "SELECT citus_move_shard_placement($shard, '127.0.0.1', ${NODE_PORTS[1]},
            '127.0.0.1', $there, shard_transfer_mode => 'block_writes')"
    fi
    sql "SELECT bench.wait($RUN, 60)" >/dev/null
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" completed "$*, shards changed: completed"
    is "$(critical)" '0|0' "$*, shards changed: the audit does not accuse"
    is "$(sql "SELECT ok IS NULL, reason FROM bench.audit($RUN) WHERE counter = 'n_tup_upd'")" \
        't|shards were moved, copied or split during the run' "$*, shards changed: it says so"
}
moved local
moved all
moved all split
run "'pk_update', clients => 2, secs => 0.5"
confirmed 'after the move' n_tup_upd

# All three nodes are on this machine
is "$(sql "SELECT count(DISTINCT machine), count(machine) FROM bench.nodes WHERE run_id = $RUN")" '1|3' \
    'nodes of one machine have one number'
processors=$(nproc --all)
run "'pk_select', clients => 4, secs => 6, nodes => 'all'"
is "$(sql "SELECT count(DISTINCT machine), count(machine) FROM bench.nodes WHERE run_id = $RUN")" '1|3' \
    'also those with clients'
is "$(sql "SELECT coalesce(max((figures ->> 'processors')::int), $processors) FROM bench.findings($RUN)
    WHERE topic = 'processors'")" "$processors" 'its processors are counted once'

# Reference tables
own() { # NAME DISTRIBUTION: a fixture of 100 rows, which the function distributes, and workloads on it
    sql "SELECT bench.create_fixture('$1', 'CREATE TABLE $1 (id int PRIMARY KEY, n int); SELECT $2',
            'SELECT id, 0 FROM generate_series(\$1, \$2) AS id')" "SELECT bench.load('$1', 100)" \
        "SELECT bench.create_workload('upd_$1', E'\\\\set id random(1, 100)\nUPDATE $1 SET n = n + 1 WHERE id = :id;',
            fixture => '$1')" >/dev/null
}
own ref "create_reference_table(''ref'')"
for nodes in local workers all; do
    before=$(sql 'SELECT sum(n) FROM bench_data.ref')
    run "'upd_ref', clients => 2, transactions => 20, nodes => '$nodes'"
    confirmed "a reference table, $nodes" n_tup_upd
    is "$(sql "SELECT sum(n) - $before = (SELECT harness FROM bench.audit($RUN)
        WHERE counter = 'n_tup_upd') FROM bench_data.ref")" t "a reference table, $nodes: and so do the rows"
done

# Local tables in the metadata of Citus
own loc "citus_add_local_table_to_metadata(''loc'')"
for nodes in local all; do
    run "'upd_loc', clients => 2, transactions => 20, nodes => '$nodes'"
    confirmed "a local table of Citus, $nodes" n_tup_upd
done
is "$(sql "SELECT count(*) FROM bench.nodes n JOIN bench.runs r USING (run_id) WHERE workload = 'upd_loc'
    AND r.nodes = 'local'")" 1 'on this node only, no other has to do with it'

# What a fixture's statements may create
try "SELECT bench.create_fixture('stray', 'CREATE TABLE stray (id int); CREATE TYPE odd AS (a int)',
    'SELECT generate_series(\$1, \$2)::int')" "SELECT bench.load('stray', 1)"
like "$OUT" '0A000: the statements of fixture "stray" create something other than tables: .*type odd' \
    'shards may stand beside the tables of a load, and nothing else'

# Tables of no cluster
own plain 1
try "SELECT bench.run('upd_plain', nodes => 'all', transactions => 1)"
like "$OUT" "42809: nodes => 'all' needs distributed tables.*Table bench_data.plain is on this node only" \
    'a table that Citus does not know is refused, and named'

# Schemas that are distributed
sql 'CREATE SCHEMA tenant' "SELECT citus_schema_distribute('tenant')" >/dev/null 2>&1
try "SELECT bench.load('pk', 1000, options => '{\"schema\": \"tenant\"}')"
like "$OUT" '0A000: cannot load tables into distributed schema "tenant".*HINT.*citus_schema_distribute' \
    'nothing is loaded into a distributed schema'
is "$(sql "SELECT count(*) FROM pg_tables WHERE schemaname = 'tenant'")" 0 'no local table is made there'
sql "SELECT bench.unload('pk')" "SELECT bench.load('pk', 1000, options => '{\"schema\": \"later\"}')" \
    "SELECT citus_schema_distribute('later')" >/dev/null 2>&1
is "$(sql "SELECT citus_table_type FROM citus_tables WHERE table_name = 'later.pk'::regclass")" schema \
    'one that is distributed after the load'
for nodes in local all; do
    run "'pk_update', clients => 2, transactions => 50, nodes => '$nodes'"
    confirmed "a distributed schema, $nodes" n_tup_upd
done
try "SELECT bench.load('pk', 1000, options => '{\"schema\": \"later\"}')"
like "$OUT" '0A000: cannot load tables into distributed schema "later"' 'is not loaded into again'
is "$(sql 'SELECT count(*) FROM later.pk')" 1000 'and keeps what it has'
sql "SELECT bench.unload('pk')" "ALTER ROLE postgres SET citus.enable_schema_based_sharding = on" >/dev/null
sql "SELECT bench.load('pk', 1000, options => '{\"schema\": \"fresh\"}')" >/dev/null
is "$(sql "SELECT (SELECT count(*) FROM fresh.pk),
    (SELECT count(*) FROM citus_tables WHERE table_name = 'fresh.pk'::regclass),
    (SELECT count(*) FROM pg_dist_schema WHERE schemaid = 'fresh'::regnamespace)")" '1000|0|0' \
    'a schema that a load makes is a plain one, whatever citus.enable_schema_based_sharding says'
sql "ALTER ROLE postgres RESET citus.enable_schema_based_sharding" >/dev/null

# Load options
sql 'CREATE TABLE own.base (id int)' "SELECT create_distributed_table('own.base', 'id', shard_count => 6)" >/dev/null
refused_load() { # OPTIONS REGEX
    try "SELECT bench.load('pk', 1000, options => '$1')"
    like "$OUT" "$2" "load options $1 are refused"
}
is "$(sql "SELECT bench.load('pk', 1000, options => '{\"distribute\": true, \"colocate_with\": \"own.base\"}')")" \
    1000 'load option colocate_with'
is "$(sql "SELECT count(DISTINCT colocation_id), min(shard_count) FROM citus_tables
    WHERE table_name IN ('bench_data.pk'::regclass, 'own.base'::regclass)")" '1|6' \
    'beside the shards of the other table'
refused_load '{"colocate_with": "own.base"}' '22023: load option "colocate_with" needs "distribute"'
refused_load '{"distribute": true, "colocate_with": "own.base", "shard_count": 4}' \
    '22023: load option "shard_count" cannot be combined with "colocate_with"'
refused_load '{"distribute": true, "colocate_with": "own.nothing"}' '42P01: table own.nothing .*does not exist'
refused_load '{"distribute": true, "colocate_with": "bench_data.plain"}' '42809: .* is not distributed by a column'
refused_load '{"distribute": true, "shard_replication_factor": 3}' \
    '55000: .*is 3, but the cluster has 2 nodes for shards'
refused_load '{"distribute": true, "shard_replication_factor": 0}' '22023: invalid value for load option'

# Settings of the session
try "SET citus.shard_replication_factor = 2; SELECT bench.load('pk', 1000, options => '{\"distribute\": true}')"
IGNORED="new sessions, to which this session's SET of citus.shard_replication_factor does not apply"
like "$OUT" "NOTICE: .*$IGNORED.*option \"shard_replication_factor\"" \
    'a load says which settings of the session it ignores'
try "SET citus.shard_replication_factor = 2;
    SELECT bench.load('pk', 1000, options => '{\"distribute\": true, \"shard_replication_factor\": 1}')"
is "$(grep -c 'does not apply' <<<"$OUT")" 0 'and not where an option says what it is to be'

nothing_on_any 'tables'
logs_are_clean
done_testing
