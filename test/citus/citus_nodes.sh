#!/usr/bin/env bash
# Runs on several nodes of a Citus cluster: what they measure adds up, whoever asks from where; what cannot work is
# refused before it begins; and what the nodes ask each other gives nobody more than bench.run does.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
nodes_start

run() { # ARGUMENTS
    try "SELECT bench.run($1)"
    RUN=$(newest)
}

# Nodes that ran clients, how many each, and how the run ended.
shape() { # RUN
    sql "SELECT status, (SELECT string_agg(node || ':' || clients, ' ' ORDER BY node) FROM bench.nodes n
        WHERE n.run_id = r.run_id AND n.status IS NOT NULL)
         FROM bench.runs r WHERE run_id = $1"
}

audit_of() { # RUN COUNTER
    sql "SELECT harness = server, ok, harness FROM bench.audit($1) WHERE counter = '$2'"
}

# All nodes and the workers.
for kind in all workers; do
    run \
        "'pk_update', clients => 2, secs => 1.5, warmup => 0.3, sample_interval => 0.5,
            nodes => '$kind', tags => '{\"kind\": \"$kind\"}'"
    expected='completed|1:2 2:2 3:2'
    [ $kind = all ] || expected='completed|2:2 3:2'
    is "$(shape "$RUN")" "$expected" "$kind: completed on the right nodes"
    add_up "$RUN" "$kind"
    like "$(audit_of "$RUN" n_tup_upd)" '^t\|t\|[1-9]' "$kind: the shards' counters confirm all phases"
    is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$kind: the audit does not accuse"
    is "$(sql "SELECT max(start_offset_ms) - min(start_offset_ms) < 10, min(abs(start_offset_ms)) IS NOT NULL,
        max(clock_error_ms) < 1000
               FROM bench.nodes WHERE run_id = $RUN AND status IS NOT NULL")" 't|t|t' "$kind: all began within 10 ms"
    is "$(sql "SELECT bool_and(n = 3) FROM (SELECT count(*) AS n FROM bench.samples WHERE run_id = $RUN
        GROUP BY node) s")" t "$kind: three samples of each node"
    is "$(sql "SELECT string_agg(DISTINCT tags ->> 'kind', ',') || max(nodes) FROM bench.runs WHERE run_id = $RUN")" \
        "$kind$kind" "$kind: its options are kept"
    nothing_on_any "$kind"
done

# Rows that all nodes insert: as many as counted, each id once.
run "'insert_id', clients => 2, secs => 1, warmup => 0.3, nodes => 'all', seed => 42"
is "$(sql "SELECT (SELECT count(*) FROM own.ids) - harness FROM bench.audit($RUN) WHERE counter = 'n_tup_ins'")" 0 \
    'inserts: the rows are those counted in all phases'
is "$(sql 'SELECT count(DISTINCT id) = count(*), count(DISTINCT at_port), count(DISTINCT client) FROM own.ids')" \
    't|3|2' 'inserts: nodes draw different numbers'
sql "SELECT bench.load('shards', options => '{\"shard_count\": 16}')" >/dev/null
run "'insert_9_shards', clients => 1, secs => 1, warmup => 0.2, nodes => 'all'"
like "$(audit_of "$RUN" n_tup_ins)" '^t\|t\|[1-9]' 'inserts into nine shards: the shards confirm'
is "$(sql "SELECT (SELECT count(*) FROM bench_data.shards) - harness FROM bench.audit($RUN)
    WHERE counter = 'n_tup_ins'")" 0 'inserts into nine shards: and so do the rows'
nothing_on_any 'inserts'

# Rows of a reference table are those of a shard on every node, and count once.
sql "SELECT bench.load('tpcb')" "SELECT create_reference_table('bench_data.pgbench_branches')" >/dev/null
run "'tpcb', clients => 1, transactions => 20"
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" completed 'a reference table among local ones'
is "$(sql "SELECT count(*) FILTER (WHERE NOT ok), min(harness) FILTER (WHERE counter = 'n_tup_upd' AND ok)
    FROM bench.audit($RUN)")" '0|60' 'its rows are judged with theirs'
sql "SELECT bench.unload('tpcb')" >/dev/null

# The same numbers again, by the same seed, of a fixed count.
ids() {
    sql 'TRUNCATE own.ids'
    run "'insert_id', clients => 2, transactions => 50, nodes => 'all', seed => 7"
    sql "SELECT md5(string_agg(id::text, ',' ORDER BY at_port, client, id)), count(*) FROM own.ids"
}
first=$(ids)
like "$first" '\|300$' 'transactions => 50: of each of two clients of each of three nodes'
is "$(ids)" "$first" 'the same seed draws the same numbers on each node'
is "$(sql "SELECT transactions FROM bench.summary WHERE run_id = $(newest)")" 300 'and the summary counts them'

# Everything that a run may be told.
run \
    "'pk_select@3,insert_id', clients => 2, secs => 2, warmup => 0.5, rate => 600,
      latency_limit => 500, max_tries => 3, variables => '{\"v\": \"it''s 5 % \\\\\"}',
     settings => '{\"work_mem\": \"1234kB\"}', sample_interval => 0.25, query_mode => 'simple', results => 'discard',
      nodes => 'all', tags => '{\"t\": \"a \\\\ %s\"}'"
FULL=$RUN
is "$(shape "$RUN")" 'completed|1:2 2:2 3:2' 'all options: completed'
add_up "$RUN" 'all options'
is "$(sql "SELECT transactions BETWEEN 900 AND 1500, skipped IS NOT NULL, lag_avg_ms IS NOT NULL FROM bench.summary
    WHERE run_id = $RUN")" 't|t|t' \
    'all options: the rate is that of all nodes together'
is "$(sql "SELECT count(DISTINCT script) FROM bench.latencies WHERE run_id = $RUN")" 2 \
    'all options: both scripts of the mix have latencies'
is "$(sql "SELECT abs(sum(count) FILTER (WHERE script = 0)::float8 / sum(count) - 0.75) < 0.1 FROM bench.latencies
    WHERE run_id = $RUN")" t 'all options: in their proportion'
is "$(sql "SELECT variables ->> 'v' || (settings ->> 'work_mem') || (tags ->> 't') FROM bench.runs
    WHERE run_id = $RUN")" "it's 5 % \\1234kBa \\ %s" 'all options: kept as given'
is "$(sql "SELECT count(*) FROM bench.warmup_samples WHERE run_id = $RUN")" 6 \
    'all options: warm-up samples of each node'
sql 'TRUNCATE own.ids' "SELECT bench.create_workload('setting',
    'INSERT INTO own.ids VALUES (pg_size_bytes(current_setting(''work_mem'')), :v, current_setting(''port'')::int);')" \
    >/dev/null
run "'setting', transactions => 3, settings => '{\"work_mem\": \"1234kB\"}', variables => '{\"v\": 5}', nodes => 'all'"
is "$(sql 'SELECT id, client, count(*), count(DISTINCT at_port) FROM own.ids GROUP BY 1, 2')" "$((1234 * 1024))|5|9|3" \
    'settings and variables are in force on each node'

# What is told of it, carried away and brought back.
for format in text markdown html; do
    like "$(sql "SELECT bench.report($FULL, '$format')")" "$(name_of 0).*$(name_of 1).*$(name_of 2)" \
        "the $format report names the nodes"
done
is "$(sql "SELECT jsonb_array_length(bench.report($FULL, 'json')::jsonb -> 'nodes')")" 3 'and so does that in JSON'
# All of it, line by line; sums over nodes may differ in the last digits, by the order that they are met in.
told() { # RUN
    sql "SELECT jsonb_pretty(bench.report($1, 'json')::jsonb #- '{run,run_id}' #- '{run,origin}')" \
        "SELECT jsonb_pretty(to_jsonb(s) - 'run_id') FROM bench.summary s WHERE run_id = $1" \
        "SELECT to_jsonb(a) FROM bench.audit($1) a" \
        "SELECT jsonb_pretty(to_jsonb(n) - 'run_id') FROM bench.nodes n WHERE run_id = $1" \
        "SELECT bench.percentile($1, 0.99)" |
        perl -pe 's/\d+\.\d+(e-?\d+)?/sprintf("%.9g", $&)/ge' | sort | md5sum
}
before=$(told "$FULL")
sql "SELECT bench.export(ARRAY[$FULL])" >"$work/run.json"
PGOPTIONS='-c client_min_messages=error' sql 'CREATE DATABASE plain' &&
    PGDATABASE=plain sql 'CREATE EXTENSION pgbench_ext'
IMPORTED=$(PGDATABASE=plain psql -XAtq -v ON_ERROR_STOP=1 <<<"\\set content \`cat $work/run.json\`
SELECT (bench.import(:'content'))[1];")
is "$(PGDATABASE=plain told "$IMPORTED")" "$before" 'imported into a database without Citus, it reads the same'
is "$(PGDATABASE=plain sql "SELECT bench.prune('0')" 'SELECT count(*) FROM bench.nodes')" $'1\n0' \
    'pruned, its nodes are gone'
pg_dump --extension=pgbench_ext >"$work/dump.sql"
PGOPTIONS='-c client_min_messages=error' sql 'CREATE DATABASE restored'
is "$(PGDATABASE=restored psql -XAtq -v ON_ERROR_STOP=1 -f "$work/dump.sql" 2>&1 >/dev/null)" '' \
    'a dump is restored without errors'
is "$(PGDATABASE=restored told "$FULL")" "$before" 'and reads the same'

# Meanwhile.
on_all_nodes "'pk_update', clients => 2, secs => 4"
is "$(sql "SELECT string_agg(clients::text, ',') FROM bench.progress p WHERE run_id = $RUN")" 6 \
    'bench.progress counts the clients of all nodes'
eventually 4 "SELECT count(DISTINCT node) = 3 FROM bench.samples WHERE run_id = $RUN"
is $? 0 'bench.samples has what the nodes have sampled so far'
is "$(sql "SELECT tps > 0, transactions > 0, latency_avg_ms > 0, remaining BETWEEN 0 AND 4 FROM bench.progress
    WHERE run_id = $RUN")" 't|t|t|t' 'bench.progress tells how far it is'
is "$(sql "SELECT bench.wait($RUN, 0.1)")" running 'bench.wait waits no longer than told'
is "$(sql "SELECT bench.wait($RUN, 20)")" completed 'bench.wait waits for the end'
is "$(sql "SELECT bench.stop($RUN)")" f 'bench.stop of what is over'
add_up "$RUN" 'started'
try "SELECT bench.sweep('pk_select', clients => ARRAY[1, 2], secs => 0.5, nodes => 'all')"
SWEEP=$(tail -n 1 <<<"$OUT")
is "$(sql "SELECT string_agg(clients || ' ' || (tps_avg > 0), ', ' ORDER BY clients) FROM bench.sweep_results
    WHERE sweep_id = $SWEEP")" '1 true, 2 true' 'a sweep on all nodes'
is "$(sql "SELECT count(*) FROM bench.nodes n JOIN bench.runs r USING (run_id)
    WHERE sweep_id = $SWEEP AND n.status = 'completed'")" 6 'of runs on three nodes each'
nothing_on_any 'a sweep'

# From a worker node, whose catalogue has its own workloads.
on 1
sql "SELECT bench.create_workload('insert_id',
    E'\\\\set id random(1, 1000000000000)\nINSERT INTO own.ids
        VALUES (:id, :client_id, current_setting(''port'')::int);')" >/dev/null
for kind in all workers local; do
    sql 'TRUNCATE own.ids'
    run "'insert_id', clients => 2, transactions => 20, nodes => '$kind'"
    case $kind in
        all) expected='completed|1:2 2:2 3:2|120|3' ;;
        workers) expected='completed|2:2 3:2|80|2' ;;
        local) expected='completed|0:2|40|1' ;;
    esac
    is "$(shape "$RUN")|$(sql 'SELECT count(*), count(DISTINCT at_port) FROM own.ids')" "$expected" \
        "asked of a worker: nodes => '$kind'"
done
on 0
nothing_on_any 'asked of a worker'

# By an ordinary role.
sql 'CREATE ROLE alice LOGIN' "CREATE ROLE \"b'o%b\" LOGIN" 'GRANT USAGE ON SCHEMA own, bench_data TO PUBLIC' \
    'GRANT ALL ON ALL TABLES IN SCHEMA own, bench_data TO PUBLIC' >/dev/null
grant_run() { # NODE: lets the two run there
    (on "$1" && PGUSER=postgres psql -XAtq \
        <<<"SELECT format('GRANT EXECUTE ON FUNCTION %s TO alice, %I', oid::regprocedure, 'b''o%b') FROM pg_proc
        WHERE pronamespace = 'bench'::regnamespace AND proname IN ('run', 'start') \\gexec")
}
export PGUSER=alice
try "SELECT bench.run('nothing', nodes => 'all', transactions => 1)"
like "$OUT" '42501: permission denied for function run' 'a role may not run what it was not granted'
grant_run 0
try "SELECT bench.run('nothing', nodes => 'all', transactions => 1)"
like "$OUT" \
    "42501: node ($(name_of 1)|$(name_of 2)): permission denied for function run" \
    'nor on another node, which is named'
grant_run 1
grant_run 2
run "'pk_update', clients => 2, transactions => 50, nodes => 'all'"
is "$(shape "$RUN")" 'completed|1:2 2:2 3:2' 'a role that was granted it on each node runs on all'
export PGUSER="b'o%b"
run "'pk_update', clients => 2, transactions => 50, nodes => 'all'"
is "$(shape "$RUN")" 'completed|1:2 2:2 3:2' 'a role with an odd name, too'
PGUSER=postgres nothing_on_any 'ordinary roles'
for tables in "ARRAY[NULL]::text[]" "ARRAY['\"', 'x.y.z.w', '%s', '']" "'{{a,b},{c,d}}'" \
    "ARRAY['bench_internal.run_log', 'nowhere.t']"; do
    try "SELECT bench_internal.node_state($tables)"
    like "$OUT" '"inserted": 0|22004|4260[12]' \
        "bench_internal.node_state($tables) is answered, or refused as what it is"
done

# A role that one node does not let in.
sed -i "1i host all \"b'o%b\" all reject" "${NODE_DIRS[2]}/data/pg_hba.conf"
(on 2 && PGUSER=postgres sql 'SELECT pg_reload_conf()' >/dev/null)
sleep 0.3
refused 'no way to a node' "'pk_update', nodes => 'all', secs => 1" "08006: node $(name_of 2): .*pg_hba"
refused 'no way to a node' "'nothing', nodes => 'workers', secs => 1" "08006: node $(name_of 2): .*pg_hba"
export PGUSER=postgres
nothing_on_any 'no way to a node'

# Too small a node.
with_setting() { # NODE SETTING: restarts the node
    on "$1"
    sql "ALTER SYSTEM SET $2"
    cluster_restart fast && on 0
}
with_setting 1 'max_connections = 12'
refused 'max_connections' "'pk_update', clients => 5, nodes => 'all', secs => 1" \
    "53300: node $(name_of 1) .*Needed: 13 .*max_connections is 12, of which 3 are reserved"
(on 1 && sql 'ALTER SYSTEM RESET max_connections')
with_setting 1 'citus.max_shared_pool_size = 6'
sql "SELECT bench.create_workload('two_ids',
    E'BEGIN;\nINSERT INTO own.ids VALUES (1, 1, 1);\nINSERT INTO own.ids VALUES (2, 2, 2);\nEND;')" >/dev/null
refused 'citus.max_shared_pool_size' "'two_ids', clients => 5, nodes => 'all', secs => 1" \
    "53300: the clients on node $(name_of 1) .*Needed to each other node: 10 .*citus.max_shared_pool_size is 6"
(on 1 && sql 'ALTER SYSTEM RESET citus.max_shared_pool_size')
with_setting 1 'max_worker_processes = 12'
refused 'max_worker_processes' "'pk_update', clients => 20, secs => 1, nodes => 'all'" \
    "53400: node $(name_of 1) does not have enough background worker slots.*Needed: 21; configured: 12"
(on 1 && sql 'ALTER SYSTEM RESET max_worker_processes')
nothing_on_any 'refused by another node'

# No cluster, or not one of the table's.
PGDATABASE=plain sql "SELECT bench.create_workload('nothing', 'SELECT 1;')" >/dev/null
PGDATABASE=plain refused 'no Citus' "'nothing', nodes => 'all'" \
    '55000: nodes => .all. needs extension "citus".*HINT.*CREATE EXTENSION citus'
sql "SELECT bench.load('wide', 100)" >/dev/null
refused 'a local fixture' "'insert_single', nodes => 'all', secs => 1" "42809: nodes => 'all' needs distributed tables"
refused 'a fixture that is not loaded' "'name_select', nodes => 'all', secs => 1" \
    '55000: fixture "name" is not loaded.*distribute'
is "$(sql "SELECT count(*) FROM bench.fixtures WHERE name = 'name'")" 0 'nor is it loaded for that'
PGOPTIONS='-c client_min_messages=error' sql 'CREATE DATABASE lone'
PGDATABASE=lone sql 'CREATE EXTENSION citus' 'CREATE EXTENSION pgbench_ext' \
    "SELECT bench.create_workload('nothing', 'SELECT 1;')" >/dev/null
PGDATABASE=lone refused 'a cluster without workers' "'nothing', nodes => 'workers'" \
    '55000: the Citus cluster has no workers.*citus_add_node'
nothing_on_any 'no cluster'
logs_are_clean
done_testing
