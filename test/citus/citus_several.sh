#!/usr/bin/env bash
# What is made of runs on several nodes of a Citus cluster: bench.ab and bench.capacity on all of them, the curves of
# each node in the HTML report, documents in parts, and results that a node could not hand over at the end.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
nodes_start

# bench.ab.
is "$(sql "SELECT count(*), bool_and(ratio > 0) FROM bench.ab('pk_update', '{}', '{\"synchronous_commit\": \"off\"}',
    rounds => 2, clients => 1, secs => 0.5, nodes => 'all')" 2>/dev/null)" '6|t' 'bench.ab on all nodes compares'
is "$(sql "SELECT count(*), string_agg(DISTINCT nodes || status, ' ') FROM bench.runs WHERE part_of IS NULL")" \
    '4|allcompleted' 'its runs are runs on all nodes'
is "$(sql "SELECT count(*) FROM bench.nodes WHERE clients = 1 AND transactions > 0")" 12 \
    'on each of which clients worked'
try "SELECT * FROM bench.ab('insert_single', '{}', '{}', nodes => 'all')"
like "$OUT" "42809|55000" 'local tables are refused before anything runs'

# bench.capacity: the rate is that of all nodes, and each has an equal share of it.
runs=$(newest)
search=$(sql "SELECT bench.capacity('nothing', latency_limit => 100, clients => 2, secs => 0.5, margin => 0.5,
    trials => 1, nodes => 'all')" 2>"$work/capacity")
like "$(cat "$work/capacity")" 'NOTICE: .*tps|NOTICE: .*per second|NOTICE: .*rate' 'bench.capacity on all nodes answers'
is "$(sql "SELECT count(*) > 0 AND bool_and(rate > 0) FROM bench.capacities WHERE sweep_id = $search")" t \
    'the answer is a rate'
is "$(sql "SELECT count(*) > 3, bool_and(nodes = 'all'), string_agg(DISTINCT status, ' ') FROM bench.runs
    WHERE run_id > $runs AND part_of IS NULL")" 't|t|completed' 'its trials are runs on all nodes'
is "$(sql "SELECT count(*) > 0
        AND bool_and(n.transactions BETWEEN 0.8 * r.rate * n.secs / 3 AND 1.2 * r.rate * n.secs / 3)
    FROM bench.runs r JOIN bench.nodes n USING (run_id) WHERE run_id > $runs AND part_of IS NULL
    AND r.rate <= (SELECT min(rate) FROM bench.capacities WHERE sweep_id = $search)")" t \
    'each node has had an equal share of a rate that is sustained'
like "$(sql "SELECT bench.sweep_report($search)")" 'nothing' 'its report is made'

# The report has the curves of each node.
run=$(sql "SELECT bench.run('pk_update', clients => 1, secs => 1, sample_interval => 0.1, nodes => 'all')" 2>/dev/null)
html=$(sql "SELECT bench.report($run, 'html')")
for node in 0 1 2; do
    like "$html" "$(name_of $node) tps: [0-9]" "the HTML report has the throughput of node $node over time"
done
is "$(sql "SELECT jsonb_array_length(d -> 'node_samples'), (SELECT min(jsonb_array_length(n -> 'tps')) >= 8
        FROM jsonb_array_elements(d -> 'node_samples') n)
    FROM bench.report($run, 'json') AS r, LATERAL (SELECT r::jsonb) AS j (d)")" \
    '3|t' 'and the JSON report, too'

# Documents in parts: together they are the document.
is "$(sql "SELECT count(*) FROM bench.export(ARRAY[$run])")" 1 'a small run is one part'
sql "INSERT INTO bench.transactions (run_id, node, client, transaction, script, started, latency_ms, retries,
         outcome) SELECT $run, 1 + g % 3, 0, g, 0, now(), 1, 0, 'processed'
     FROM generate_series(1, 400000) g" >/dev/null
parts=$(sql "SELECT count(*) FROM bench.export(ARRAY[$run])")
is "$((parts > 4))" 1 'a large one is several'
sql 'CREATE ROLE reader LOGIN SUPERUSER'
is "$(PGUSER=reader sql "SELECT count(DISTINCT i) FROM (SELECT bench.import(p) AS i
    FROM bench.export(ARRAY[$run]) WITH ORDINALITY AS x (p, n) ORDER BY n DESC) AS i")" 1 \
    'its parts are imported in any order, as one run'
copy=$(sql "SELECT run_id FROM bench.runs WHERE role = 'reader'")
is "$(sql "SELECT origin ? 'parts' FROM bench.runs WHERE run_id = $copy")" f 'of which nothing is missing then'
same() { # TABLE
    is "$(sql "SELECT count(*) FROM ((SELECT to_jsonb(x) - 'run_id' - 'environment' FROM $1 x WHERE run_id = $run
        EXCEPT SELECT to_jsonb(x) - 'run_id' - 'environment' FROM $1 x WHERE run_id = $copy)
        UNION ALL (SELECT to_jsonb(x) - 'run_id' - 'environment' FROM $1 x WHERE run_id = $copy
        EXCEPT SELECT to_jsonb(x) - 'run_id' - 'environment' FROM $1 x WHERE run_id = $run)) AS d")" 0 \
        "$1 is the same"
}
for table in bench.{samples,latencies,transactions} bench_internal.{node_log,statement_log,wait_log}; do
    same "$table"
done
PGUSER=reader try "SELECT bench.import(p) FROM bench.export(ARRAY[$run]) AS p LIMIT 1"
like "$OUT" '23505: role "reader" has already imported run' 'a part of a run that is there is refused'
sql "SELECT bench.delete_run($copy)" >/dev/null
PGUSER=reader sql "SELECT bench.import(bench_internal.export_part(ARRAY[$run], 2))" >/dev/null
is "$(sql "SELECT origin -> 'parts' FROM bench.runs WHERE role = 'reader'")" \
    "{\"of\": $parts, \"have\": [2]}" \
    'one part alone says which it is'
PGUSER=reader try "SELECT bench.import(bench_internal.export_part(ARRAY[$run], 2))"
like "$OUT" '23505: part 2 of run .* has already been imported' 'and is not taken twice'
try "SELECT bench_internal.export_part(ARRAY[$run], 99)"
like "$OUT" "22023: part must be between 1 and $parts" 'a part that there is not'

# A node that freezes while it measures: what it has is fetched when it is there again.
on_all_nodes "'nothing', clients => 1, rate => 300, secs => 4"
freeze 2
status_is "$RUN" incomplete 'a node is frozen past the end'
is "$(nodes_of "$RUN")" '1 completed, 2 completed, 3 incomplete' 'a node is frozen past the end: its part is not there'
try "SELECT bench.fetch($RUN)"
like "$OUT" "WARNING: .*node $(name_of 2): no answer within 5 s" 'it still cannot be asked, and is named'
like "$OUT" '^0$|[^0-9]0$' 'nothing is fetched'
thaw
(on 2 && eventually 20 'SELECT count(*) = 0 FROM bench.progress')
is "$(sql "SELECT bench.fetch($RUN)")" 1 'awake, its part is fetched'
is "$(nodes_of "$RUN")" '1 completed, 2 completed, 3 completed' 'then all parts are there'
is "$(sql "SELECT status, error IS NULL FROM bench.runs WHERE run_id = $RUN")" 'completed|t' 'and the run is complete'
add_up "$RUN" 'fetched later'
is "$(sql "SELECT bench.fetch($RUN)")" 0 'nothing is fetched twice'
(on 2 && sql "SELECT bench.prune('0')" >/dev/null)
try "SELECT bench.fetch($(sql "SELECT bench.run('nothing', secs => 0.2)" 2>/dev/null))"
like "$OUT" '42809: run .* had its clients on this node only' 'a run on one node has nothing to be fetched'
try 'SELECT bench.fetch(99999)'
like "$OUT" 42704 'neither has a run that there is not'
sql 'CREATE ROLE other LOGIN' 'GRANT pg_read_all_stats TO other' 'GRANT EXECUTE ON FUNCTION bench.fetch TO other'
PGUSER=other try "SELECT bench.fetch($RUN)"
like "$OUT" "42501: run $RUN belongs to role" "another role's run is not fetched"

# Clients that wait in Citus for a frozen node are ended; those that cannot be are listed.
on_all_nodes "'pk_update', clients => 4, secs => 60"
sleep 0.5
freeze 2
clock
session stop "SELECT bench.stop($RUN)"
clients_end 2500 'a node is frozen: clients in its transactions end as well' 0 1
ended stop
is "$(sql "SELECT count(*) FROM bench.nodes WHERE run_id = $RUN AND clients_stuck IS NOT NULL")" 0 \
    'none of them is stuck'
thaw
none_of 25 "$CLIENTS"
(on 2 && eventually 25 'SELECT count(*) = 0 FROM bench.progress' && sql "SELECT bench.prune('0')" >/dev/null)

on_all_nodes "'nothing', clients => 2, secs => 60"
victim=$(on 1 && sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")
kill -STOP "$victim"
sql "SELECT bench.stop($RUN)" >/dev/null
sql "SELECT bench.wait($RUN, 15)" >/dev/null
is "$(sql "SELECT node, clients_stuck FROM bench.nodes WHERE run_id = $RUN AND clients_stuck IS NOT NULL")" \
    "2|{$victim}" 'a client that cannot be ended: bench.nodes has its process'
like "$(sql "SELECT finding FROM bench.findings($RUN) WHERE topic = 'stuck'")" \
    "1 client could not be ended: on $(name_of 1) .processes $victim" 'and bench.findings says so'
kill -CONT "$victim"
none_of 10 "$CLIENTS"
# The link to the node that was frozen ends 10 s after it was heard last, as its part was pruned meanwhile.
LEFT_SECS=15 nothing_on_any 'all that'
logs_are_clean
done_testing
