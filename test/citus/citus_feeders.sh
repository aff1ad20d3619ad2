#!/usr/bin/env bash
# Feeders and captures on several nodes of a Citus cluster: each node draws rows of its own, a sequence is shared
# without a row twice, and values that a capture has kept reach the other nodes only for as long as they are read.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
nodes_start "shared_preload_libraries = 'citus,pg_stat_statements'"
sql 'CREATE EXTENSION pg_stat_statements'

run() { # ARGUMENTS
    try "SELECT bench.run($1)"
    RUN=$(newest)
}
completed() { # DESC
    is "$(sql "SELECT status || ' ' || failed FROM bench.summary WHERE run_id = $RUN")" 'completed 0' "$1: completed"
}
script() { # NAME SCRIPT QUERY MORE
    sql "SELECT bench.create_workload('$1', \$\$$2\$\$)" "SELECT bench.add_feeder('$1', \$\$$3\$\$${4:-})" \
        'TRUNCATE own.ids' >/dev/null
}
insert="INSERT INTO own.ids VALUES (:n, :client_id, current_setting('port')::int);"

script fed "$insert" 'SELECT id AS n FROM bench_data.pk'
run "'fed', clients => 2, transactions => 50, nodes => 'all', seed => 3"
completed 'random rows of a distributed table'
is "$(sql 'SELECT count(*), count(DISTINCT at_port), count(DISTINCT id) > 200, min(id) >= 1, max(id) <= 10000
    FROM own.ids')" '300|3|t|t|t' 'of three nodes, each with its own'

script once "$insert" 'SELECT g AS n FROM generate_series(1, 301) AS g' ", pick => 'sequence', once => true"
for kind in all workers; do
    sql 'TRUNCATE own.ids'
    run "'once', clients => 2, secs => 20, nodes => '$kind'"
    completed "a sequence, once, on $kind"
    is "$(sql 'SELECT count(*), count(DISTINCT id), min(id), max(id) FROM own.ids')" '301|301|1|301' \
        "$kind: each row once"
done

script heavy "$insert" 'SELECT * FROM (VALUES (1, 9.0), (2, 1.0)) AS v (n, weight)' ", pick => 'weighted'"
run "'heavy', clients => 2, transactions => 100, nodes => 'all', seed => 5"
completed 'weighted rows'
is "$(sql 'SELECT count(*), count(*) FILTER (WHERE id = 1) BETWEEN 500 AND 580 FROM own.ids')" '600|t' \
    'nine of ten are the heavy one'
like "$(sql "SELECT feeders ->> 0 FROM bench.runs WHERE run_id = $RUN")" '"pick": "weighted"' \
    'the run keeps its feeder'

script none "$insert" 'SELECT id AS n FROM bench_data.pk WHERE id < 0'
try "SELECT bench.run('none', nodes => 'all')"
like "$OUT" 'node 127.0.0.1:[0-9]+: a feeder.s query returned no rows' 'a feeder without rows: the node says so'
nothing_on_any 'a feeder without rows'

# A capture of distributed statements.
sql 'SELECT pg_stat_statements_reset()' >/dev/null
for id in 7 77 777; do
    sql "SELECT info FROM bench_data.pk WHERE id = $id" 'SELECT count(*) FROM bench_data.pk' >/dev/null
done
sql "SELECT bench.capture('app', secs => 0)" >/dev/null 2>&1
is "$(sql "SELECT count(*) FROM bench.capture_statements
    WHERE kept AND calls = 3 AND query ~ '^SELECT .*FROM bench_data.pk'")" 2 'distributed statements are captured'
run "'app', clients => 1, transactions => 20, nodes => 'all'"
completed 'a capture on all nodes'
is "$(sql "SELECT calls, failed, score > 0 FROM bench.fidelity($RUN) WHERE workload IS NULL")" '60|0|t' \
    'scored over all of them'
run "'app', clients => 1, transactions => 20"
completed 'a capture on the coordinator'
is "$(sql "SELECT min(rows_replayed) FROM bench.fidelity($RUN) WHERE rows_captured = 1")" 1 'finds a row a call'

# Values that a capture keeps.
sql 'CREATE TABLE app_log (line jsonb)' "INSERT INTO app_log SELECT jsonb_build_object('timestamp',
        to_char('2026-11-24 12:00'::timestamp + n * '1 s'::interval, 'YYYY-MM-DD HH24:MI:SS.MS') || ' UTC',
        'user', current_user, 'dbname', current_database(), 'session_id', 's', 'line_num', n, 'vxid', '3/' || n,
        'error_severity', 'LOG',
        'message', format('duration: 1.0 ms  statement: SELECT info FROM bench_data.pk WHERE id = %s', n))
     FROM generate_series(1, 50) AS n" "SELECT bench.capture_log('logged', 'app_log')" >/dev/null 2>&1
run "'logged', clients => 1, transactions => 20, nodes => 'all'"
completed 'a capture with kept values on all nodes'
is "$(sum_of 'SELECT count(*) FROM bench.captured_rows' 1 2) $(sum_of "SELECT count(*) FROM bench.workloads
    WHERE name LIKE 'logged%'" 1 2)" '0 0' 'which do not stay on the other nodes'
is "$(sql "SELECT count(*) FROM bench.fidelity($RUN) WHERE score = 1 AND calls = 60")" 2 'and its shape is scored'
nothing_on_any 'captures'
logs_are_clean
done_testing
