#!/usr/bin/env bash
# The write-ups run at a tiny scale, show what they are to show beside the published figures, and clean up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. test/lib/common.sh
# shellcheck source=test/lib/writeups.sh
. test/lib/writeups.sh

# Room for the first two rungs of the published ladder.
cluster_start 'fsync = off' 'max_worker_processes = 40'
sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 100)" >/dev/null
remember_server

is "$(published 'SELECT source, count(*), trim_scale(sum(tps)) FROM pg_temp.published GROUP BY 1 ORDER BY 1')" \
    'A|108|26542991
B|3|458952.1808693239
C|13|2109987.59
D|9|5357246.33
E|4|77649' 'the published figures are as they were published'

workloads='pk_select pk_update insert_single insert_batch insert_single_multi insert_batch_multi'
writeup scale_up.sql
like "$OUT" 'max_worker_processes = 40 has room for 3[0-9] clients; the ladder is cut to 16,32' \
    'scale_up.sql says that its ladder is cut'
for workload in $workloads; do
    complete "$workload" 1-8 "scale_up.sql, $workload"
    is "$(columns "$workload" 1,4,6 | xargs)" \
        "$(published "SELECT string_agg(concat_ws(',', a.clients, a.tps, b.tps), ' ' ORDER BY a.clients)
        FROM pg_temp.published a JOIN pg_temp.published b USING (source, workload, clients)
        WHERE source = 'A' AND workload = '$workload' AND clients IN ('16', '32') AND a.server LIKE '% 9.5'
        AND b.server LIKE '% 9.6'")" \
        "scale_up.sql, $workload: the rungs, with the published figures"
done
is "$(columns 'Where each curve peaks' 1 | xargs)" "$workloads" 'scale_up.sql: a peak of each workload'
complete 'Where each curve peaks' 1-8 'scale_up.sql, peaks'
is "$(columns 'Where each curve peaks' 1,5,6,7,8 | head -1)" pk_select,64,7.6,72,8.9 \
    'scale_up.sql: peak and drop of a published curve'
like "$OUT" 'law is left out: it takes four rungs, and there are 2' 'scale_up.sql: two rungs are too few for the law'
is "$(runs scale_up)" \
    'insert_batch 2 completed, insert_batch_multi 2 completed, insert_single 2 completed, '\
'insert_single_multi 2 completed, pk_select 2 completed, pk_update 2 completed' \
    'scale_up.sql: all runs have completed'
is "$(sql "SELECT DISTINCT workload, before FROM bench.sweeps WHERE before <> '{}' ORDER BY 1")" \
    'insert_batch_multi|{truncate,checkpoint}
insert_single_multi|{truncate,checkpoint}' \
    'scale_up.sql: the multi-table ladders begin with empty tables and a checkpoint'
is "$(sql "SELECT max(bytes_before) FROM bench.relations JOIN bench.runs USING (run_id) WHERE workload LIKE '%multi'
    AND kind = 'table'")" 0 \
    'scale_up.sql: the tables were empty indeed'
like "$(table "The write-up's conditions" | grep '^processors')" "^processors,32cores,64threads,[0-9]+,[*]?" \
    'scale_up.sql: the conditions'
nothing_but_runs scale_up.sql

writeup soak.sql 'clients={1,2}' rounds=2
complete 'TPS over the samples' 1-8 soak.sql
is "$(columns 'TPS over the samples' 1,2,3 | grep here | xargs)" 'pk_update,here,1 pk_select,here,2 pk_insert,here,2' \
    'soak.sql: the workloads, with their clients'
is "$(columns 'TPS over the samples' 1-7 | grep published)" 'pk_update,published,26,60217.7,27666.0,65708.7,3057
pk_select,published,38,328895.4,327336.0,330360.6,3027
pk_insert,published,20,69839.1,65283.7,72175.5,1385' 'soak.sql: the published figures'
for title in 'Sizes, before and after' 'What was done to them'; do
    is "$(columns "$title" 1,2 | xargs)" \
        'pk_update,pk pk_update,pk_pkey pk_select,pk pk_select,pk_pkey pk_insert,log pk_insert,log_pkey' \
        "soak.sql, $title: tables and keys"
done
complete 'Sizes, before and after' 1-4 'soak.sql, sizes'
is "$(columns 'What was done to them' 1,2,4 | head -1)" \
    "pk_update,pk,$(sql "SELECT updated FROM bench.relations JOIN bench.runs USING (run_id)
    WHERE workload = 'pk_update' AND tags ->> 'writeup' = 'soak' AND sweep_id IS NULL AND kind = 'table'")" \
    'soak.sql: the updates'
is "$(columns 'Autovacuum' 1,2 | xargs)" 'pk_update,pk pk_select,pk pk_insert,log' 'soak.sql: vacuums of each table'
is "$(columns 'Dips, what' 1,2 | grep safety | head -1)" pk_update,safety 'soak.sql: findings'
is "$(columns 'full_page_writes off against on' 1 | xargs)" 'off on' 'soak.sql: full_page_writes off and on'
complete 'full_page_writes off against on' 1-8 'soak.sql, full_page_writes'
is "$(columns 'full_page_writes off against on' 5 | awk '{ print ($1 > 0) }' | xargs)" '0 1' \
    'soak.sql: page images with it on only'
is "$(sql 'SHOW full_page_writes')" on 'soak.sql: the setting is put back'
is "$(runs soak)" 'pk_insert 1 completed, pk_select 1 completed, pk_update 5 completed' \
    'soak.sql: all runs have completed'
nothing_but_runs soak.sql

writeup table_growth.sql 'clients={1,2}' jobs=3
is "$(columns 'Load rate and TPS' 1-3 | grep here | xargs)" \
    'here,1000,1 here,1000,2 here,10000,1 here,10000,2 here,100000,1 here,100000,2' \
    'table_growth.sql: the sizes, each with the rungs'
is "$(table 'Load rate and TPS' | grep published)" 'published,10000000,48,580000,669810.8,230828.6,-,-
published,100000000,48,532000,633977.7,244892.0,-,-
published,1000000000,48,1626000,606203.5,-,233533.8,-' 'table_growth.sql: the published figures'
OUT=$(grep -v '^ published' "$work/out")
complete 'Load rate and TPS' 1-6,8 'table_growth.sql, speed'
complete 'The same in %' 1-6 'table_growth.sql, in %'
is "$(columns 'Load rate and TPS' 2,7 | sed 's/[0-9.]*$/x/; s/-x/-/' | sort -u | xargs)" '1000,- 10000,- 100000,x' \
    'table_growth.sql: hot updates of the largest table'
# Loaders side by side leave pages half full, so the largest may have one more.
like "$(columns 'Load rate and TPS' 8 | xargs)" '^2 2 2 2 [23] [23]$' 'table_growth.sql: the levels of the key'
is "$(table "The write-up's conditions" | grep -E '^(table|primarykey)')" 'table,unlogged,unlogged,
primarykey,beforetherows,beforetherows,' 'table_growth.sql: unlogged, with the key before the rows'
is "$(runs table_growth)" 'pk_select 6 completed, pk_update 6 completed, pk_update_hot 2 completed' \
    'table_growth.sql: all runs have completed'
nothing_but_runs table_growth.sql

like "$OUT" 'Too short to tell growth from noise: with 1 x 0\.3 s' 'table_growth.sql warns of noise'
like "$OUT" 'Samples within a run vary by [0-9.]+ %' 'and says how large it is'

writeup synchronous_commit.sql clients=1,2 rounds=2
complete TPS 1-8 synchronous_commit.sql
is "$(columns TPS 1,2,6,7,8 | xargs)" \
    'name_select,1,31287,31798,1.6 name_select,2,31287,31798,1.6 '\
'name_update,1,8916,5648,-36.7 name_update,2,8916,5648,-36.7' \
    'synchronous_commit.sql: the published figures'
is "$(grep -cE '^ name_(select|update) \|.*\| (faster|slower|same|inconclusive) ' "$work/out")" 4 \
    'synchronous_commit.sql: verdicts'
is "$(columns 'Do they differ' 1-3 | grep name_ | xargs)" \
    'name_select,1,2 name_select,2,2 name_update,1,2 name_update,2,2' 'synchronous_commit.sql: rounds are pairs'
# TPS, change and ratio are of the same means, as printed.
is "$(columns TPS 3-5 | awk -F, '{ d = 100 * ($2 / $1 - 1) - $3; if (d < -0.11 || d > 0.11) print }')" '' \
    'synchronous_commit.sql: the change is that of the TPS beside it'
is "$(paste -d, <(columns TPS 5) <(columns 'Do they differ' 4 | grep .) |
    awk -F, '{ d = $1 / 100 + 1 - $2; if (d < -0.0011 || d > 0.0011) print }')" '' \
    'synchronous_commit.sql: one kind of mean'
is "$(sql "SELECT string_agg(DISTINCT settings ->> 'synchronous_commit', ' ') FROM bench.runs
    WHERE tags ->> 'writeup' = 'synchronous_commit'")" 'off on' \
    'synchronous_commit.sql: off and on'
is "$(runs synchronous_commit)" 'name_select 8 completed, name_update 8 completed' \
    'synchronous_commit.sql: all runs have completed'
nothing_but_runs synchronous_commit.sql

for file in scale_up soak table_growth synchronous_commit; do
    status=0
    psql -X -v scale=0.0001 -v secs=0.3 -v clients=1,99 -f "writeups/$file.sql" >/dev/null 2>"$work/err" \
        </dev/null || status=$?
    is "$status" 3 "$file.sql refuses more clients than there is room for"
    like "$(cat "$work/err")" \
        'max_worker_processes = 40 has room for 3[0-9] clients, not for 99. Set it to at least 10[0-9],' \
        "$file.sql says why"
    nothing_but_runs "$file.sql, refused"
done

writeup citus.sql
like "$OUT" 'Nothing is run: this write-up needs the extension Citus' 'citus.sql says that it needs Citus'
like "$OUT" 'citus first in shared_preload_libraries' 'and how to get there'
is "$(table 'What was published' | wc -l | awk '{ print ($1 >= 13) }')" 1 'and shows what was published'
is "$(sql "SELECT count(*) FROM bench.runs WHERE workload LIKE 'tpcb%'")" 0 'it runs nothing'

writeup synchronous_commit.sql clients=1 rounds=1 keep=on
is "$(sql "SELECT count(*) FROM bench_writeups.name")" 1000 'keep keeps the tables'
writeup synchronous_commit.sql clients=1 rounds=1
is "$(sql "SELECT count(*) FROM bench.fixtures WHERE schema = 'bench_writeups'")" 0 'which go the next time'

# An ordinary role, with the README's grants.
sql 'DROP SCHEMA bench_writeups' 'CREATE ROLE tester LOGIN' 'ALTER ROLE tester SET search_path = nowhere'
psql -Xq -v ON_ERROR_STOP=1 <<<"$(awk '/^```sql$/ { on = 1; next } /^```$/ { on = 0 } on' writeups/README.md)"
export PGUSER=tester
writeup scale_up.sql clients=1,2,3,4 schema=tester_data
is "$(columns 'The universal scalability law' 1 | xargs)" "$workloads" 'scale_up.sql: four rungs have the law'
unlike "$(columns 'The universal scalability law' 5)" 'notenoughrungs' 'and a verdict'
like "$OUT" 'No checkpoints between the rungs' 'a role that may not checkpoint is told so'
writeup soak.sql clients=1 schema=tester_data
like "$OUT" 'full_page_writes off against on is left out' 'and that it may not change the server'
writeup table_growth.sql clients=1 jobs=2 schema=tester_data
writeup synchronous_commit.sql clients=1 schema=tester_data
export PGUSER=postgres
is "$(sql "SELECT count(*), count(*) FILTER (WHERE status = 'completed') FROM bench.runs WHERE role = 'tester'")" \
    '46|46' "all of the role's runs have completed"
is "$(sql "SELECT count(*) FROM pg_class WHERE relnamespace = 'tester_data'::regnamespace")" 0 \
    'nothing is left in its schema'
nothing_but_runs 'an ordinary role'

nothing_left 'the write-ups'
no_restart 'the server has not restarted'
log_is_clean
done_testing
