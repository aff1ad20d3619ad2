#!/usr/bin/env bash
# Write-up C on a cluster of three nodes at a tiny scale: every table has its rows with figures, beside the
# published ones; nothing is left on any node. The examples of docs/citus.md run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/citus.sh
. test/lib/citus.sh
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/writeups.sh
. test/lib/writeups.sh

citus_or_skip
citus_start 'fsync = off' 'autovacuum = off'
sql "SELECT bench.load('pk', 100)" >/dev/null
remember_server

# A figure above zero in each of these columns of each row.
figures() { # TITLE COLUMNS DESCRIPTION
    is "$(columns "$1" "$2" | tr , '\n' | awk '!($1 + 0 > 0)' | xargs)" '' "$3: figures"
}

pairs() { columns "$1" 1,2 | xargs; }

# What any node still has of tables, loads, parts of runs and transactions.
left_on_nodes() {
    on_each "SELECT nspname FROM pg_namespace WHERE nspname ~ '^bench_(writeups|loading)'" \
        'SELECT gid FROM pg_prepared_xacts' \
        'SELECT run_id FROM bench.runs WHERE part_of IS NOT NULL'
}

writeup citus.sql clients=3,2 rounds=2

title='From the coordinator, clients: 3'
is "$(pairs "$title")" \
    'tpcb_select,local tpcb_select,8shards tpcb_select,128shards tpcb,local tpcb,8shards tpcb,128shards' \
    'reads and writes, on three kinds of tables'
complete "$title" 1-6,8,9 summary
figures "$title" 3-5 summary
is "$(columns "$title" 7 | sed 's/[0-9].*/n/' | xargs)" '- n n - n n' \
    'the workers of local tables are not looked at, those of shards are'
is "$(columns "$title" 8,9 | xargs)" '489836.39,100 163197.27,33 163798.76,33 39108.35,100 12837.18,33 11115.4,28' \
    'beside the published figures'

title='tpcb by statements'
is "$(columns "$title" 1 | cut -c1-11 | xargs)" \
    'setaidrand setbidrand settidrand setdeltara BEGIN; UPDATEpgben '\
'SELECTabala UPDATEpgben UPDATEpgben INSERTINTOp END;' \
    'the statements of tpcb, the assignments of variables included'
complete "$title" 2-4 statements
is "$(table "$title" | awk -F, '/UPDATE/ && !($(NF - 2) > 0 && $(NF - 1) > 0 && $NF > 0)')" '' \
    'each with the time it took'

title='INSERTs of nine rows'
OUT=$(sed '/^INSERTs of nine rows/{n;d}' <<<"$OUT") # the title's second line
is "$(columns "$title" 1 | xargs)" 'insert_9_shards insert_2_shards insert_1_shard insert_1_row' 'the inserts'
complete "$title" 1-6,8 inserts
figures "$title" 2,3 inserts
# Nine shards and two are on both workers; what was committed after the end has been prepared as well.
is "$(columns "$title" 4 | awk '{ printf "%s ", ($1 >= 2 && $1 < 10) ? "two phases" : $1 }')" \
    'two phases two phases 0.00 0.00 ' 'several nodes take two phases, one shard does not'
is "$(columns "$title" 7,8 | xargs)" '11954.27,20407.51 -,65769.53 -,186717.14 -,245299.79' \
    'beside the published figures'

title='Every node coordinates, clients on each: 2'
names=$(printf '%s ' "coordinator,127.0.0.1:${NODE_PORTS[0]}" "worker,127.0.0.1:${NODE_PORTS[1]}" \
    "worker,127.0.0.1:${NODE_PORTS[2]}" 'total,3nodes(published:9)')
is "$(columns "$title" 2,3 | xargs)" "$names${names% }" 'every node coordinates'
figures "$title" 4,5 'every node'
is "$(columns "$title" 7 | xargs)" '127378 58473 55709 622367 18207 7467 7368 77579' 'beside the published figures'
is "$(table "$title" | awk -F, \
    '$2 == "total" { d = sum - $4; print (d < 0.3 && d > -0.3) ? "same" : sum " is not " $4; sum = 0; next }
        { sum += $4 }' | xargs)" \
    'same same' 'the nodes add up to the total'

title='Queries over all shards'
is "$(columns "$title" 1,2,4 | xargs)" 'count_all,256000,5 group_count,256000,5' 'the analytic queries'
complete "$title" 1-9 'analytic queries'
figures "$title" 5-7 'analytic queries'

title="The write-up's conditions"
is "$(table "$title" | awk -F, '/^(Citus|nodes|machines|clients|commit)/ && $NF == "*" { print $1 }' | xargs)" \
    'Citus nodes machines clients commitonseveralnodes' 'where the conditions differ'
like "$(table "$title" | grep '^nodes')" 'coordinatorand8workers,coordinatorand2workers' 'the nodes'
unlike "$(table "$title")" unknown 'all conditions here are known'
like "$(columns 'Parameters of Citus here' 1,2)" 'citus.max_shared_pool_size,0' 'the parameters of Citus'

is "$(runs citus)" \
    'count_all 1 completed, group_count 1 completed, insert_1_row 2 completed, '\
'insert_1_shard 2 completed, insert_2_shards 2 completed, insert_9_shards 2 completed, '\
'tpcb 10 completed, tpcb_select 8 completed' \
    'all runs have completed, those two that see whether there is room included'
nothing_but_runs citus.sql
is "$(left_on_nodes)" '' 'nothing is left on any node'

# More clients than some node can bear.
refused() { # CLIENTS WHY DESCRIPTION
    local status=0 before after
    before=$(last_run)
    psql -X -v scale=0.0001 -v secs=0.3 -v clients="$1" -f writeups/citus.sql >/dev/null 2>"$work/err" \
        </dev/null || status=$?
    after=$(last_run)
    is "$status" 3 "$3: refused"
    like "$(cat "$work/err")" "$2" "$3: with the numbers"
    is "$((after - before < 6))" 1 "$3: before anything is measured"
    nothing_but_runs "$3"
    is "$(left_on_nodes)" '' "$3: nothing is left on any node"
}
refused 120,1 'Needed to each other node: 125 .*max_connections counts, which is 100' 'too many clients here'
refused 1,60 'Needed: 123 .*max_connections is 100' 'too many clients on all nodes'
refused 299,1 'max_worker_processes = 300 has room for 29[0-9] clients, not for 299' 'too many workers'

# Tables that are kept are replaced and dropped the next time.
writeup citus.sql clients=1 keep=on
is "$(sql "SELECT name, rows FROM bench.fixtures WHERE schema = 'bench_writeups' ORDER BY name")" 'events|256000
shards|0
tpcb|100000' 'keep keeps the tables'
sql "SELECT bench.unload(name) FROM bench.fixtures WHERE schema = 'bench_writeups'" \
    'DROP SCHEMA bench_writeups' >/dev/null

# An ordinary role, with the README's grants.
sql 'CREATE ROLE tester LOGIN'
examples() { awk -v fence="^\`\`\`$1\$" '$0 ~ fence { on = 1; next } /^```$/ { on = 0 } on' "$2"; } # FENCE FILE
psql -Xq -v ON_ERROR_STOP=1 <<<"$(examples 'sql( citus)?' writeups/README.md)" >/dev/null
PGUSER=tester writeup citus.sql clients=1 schema=tester_data
is "$(sql "SELECT count(*) FROM bench.runs WHERE role = 'tester' AND status = 'completed'")" 16 \
    'another role may do it all'
nothing_but_runs 'another role'
is "$(on_each "SELECT relname FROM pg_class WHERE relnamespace = 'tester_data'::regnamespace")" '' \
    'nothing is left in its schema on any node'

# The examples of docs/citus.md, shorter, and after them those of other documents.
mapfile -t documents < <(grep -l '^```sql citus$' README.md docs/*.md | grep -v '^docs/citus.md$')
script=$(for document in docs/citus.md "${documents[@]}"; do examples 'sql citus' "$document"; done |
    sed -E \
    's/"scale": 10+/"scale": 1/; s/clients => 32/clients => 2, secs => 1/;
        s/clients => 8, secs => 10/clients => 2, secs => 2/')
before=$(last_run)
output=$(psql -X -v ON_ERROR_STOP=1 <<<"$script" 2>&1) && status=0 || status=$?
is "$status" 0 "the examples on Citus run: docs/citus.md ${documents[*]}"
is "${documents[*]}" docs/functions.md 'these documents have some'
like "$output" 'fetch *
-*
 *0' 'that of bench.fetch finds that all is there'
[ "$status" -eq 0 ] || diag "$output"
is "$(sql "SELECT nodes, count(*) FROM bench.runs WHERE run_id > $before AND status = 'completed' GROUP BY 1
    ORDER BY 1")" 'all|1
local|2' 'their runs have completed'
is "$(sql "SELECT count(*) FROM bench.runs r, LATERAL bench.audit(r.run_id) a WHERE NOT a.ok")" 0 \
    'and no audit found a difference'

# A database whose Citus has no other node.
sql 'CREATE DATABASE alone' >/dev/null 2>&1
export PGDATABASE=alone
sql 'CREATE EXTENSION citus' 'CREATE EXTENSION pgbench_ext' >/dev/null
writeup citus.sql
like "$OUT" 'Nothing is run: this write-up needs a Citus cluster with workers' \
    'without workers it says that it needs some'
is "$(sql 'SELECT count(*) FROM bench_internal.run_log')" 0 'and runs nothing'
export PGDATABASE=postgres

nothing_left 'write-up C'
no_restart 'the server has not restarted'
log_is_clean
done_testing
