# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # RUN is for the scripts, work is common.sh's
# What the tests of runs on several nodes of a Citus cluster have in common: source this file after common.sh.
#
#   nodes_start [LINE…]        three nodes: pk with 10,000 rows in 8 shards, and own.ids, which workload
#                              insert_id writes to
#   on_nodes STATEMENT…        what every node answers to each statement, node by node, in one line
#   sum_of QUERY [NODE…]       the sum of a number that each of the nodes answers
#   clients_end MS DESC [NODE…]  a test that no client is left on these nodes so long after `clock`
#   nothing_on_any DESC [NODE…]  a test that these nodes have neither workers, nor parts, nor prepared transactions,
#                              nor questions
#   on_all_nodes ARGUMENTS     starts a run on all nodes; RUN is its id, once every node has clients at work
#   refused DESC ARGUMENTS REGEX  tests that bench.run with these arguments is refused before anything runs
#   freeze NODE; thaw          stops all of a node's processes where they are; lets them go on
#   freeze_more NODE           freezes one more
#   add_up RUN DESC            tests that the total is the sum of the nodes, in samples, histogram and summary

# shellcheck source=test/lib/citus.sh
. test/lib/citus.sh

FROZEN=()
at_exit thaw

nodes_start() {
    citus_start 'fsync = off' 'autovacuum = off' 'deadlock_timeout = 200ms' "$@" || exit
    sql "SELECT bench.load('pk', 10000, options => '{\"distribute\": true, \"shard_count\": 8}')" \
        'CREATE SCHEMA own' 'CREATE TABLE own.ids (id bigint, client int, at_port int)' \
        "SELECT create_distributed_table('own.ids', 'id', shard_count => 8)" \
        "SELECT bench.create_workload('insert_id',
            E'\\\\set id random(1, 1000000000000)\nINSERT INTO own.ids
                VALUES (:id, :client_id, current_setting(''port'')::int);')" \
        "SELECT bench.create_workload('nothing', 'SELECT 1;')" >/dev/null || exit
}

on_nodes() {
    local node
    for node in 0 1 2; do on "$node" && sql "$@"; done | tr '\n' ' ' | sed 's/ $//'
    on 0
}

sum_of() { # QUERY [NODE…]
    local query=$1 node total=0
    shift
    [ $# -gt 0 ] || set -- 0 1 2
    for node; do total=$((total + $(on "$node" && sql "$query" 2>/dev/null || echo 1000))); done
    echo "$total"
}

# Waits until the sum over the nodes is 0.
none_of() { # SECS QUERY [NODE…]
    local deadline=$((SECONDS + $1)) query=$2
    shift 2
    until [ "$(sum_of "$query" "$@")" = 0 ]; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.03
    done
}

CLIENTS="SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'"

clients_end() { # MS DESC [NODE…]
    local ms=$1 description=$2
    shift 2
    none_of $((ms / 1000 + 20)) "$CLIENTS" "$@"
    within "$ms" "$description"
}

LEFT="SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'
    OR application_name LIKE 'citus_run_command%')
           + (SELECT count(*) FROM bench.runs WHERE part_of IS NOT NULL) + (SELECT count(*) FROM pg_prepared_xacts)"

nothing_on_any() { # DESC [NODE…]
    local description="$1: nothing is left on any node"
    shift
    # What a lost transaction has prepared is Citus' business.
    sql 'SELECT recover_prepared_transactions()' >/dev/null
    if none_of "${LEFT_SECS:-4}" "$LEFT" "$@"; then
        tap_pass "$description"
    else
        tap_fail "$description" "$(on_nodes "SELECT pid, backend_type, application_name, query FROM pg_stat_activity
            WHERE backend_type LIKE 'pgbench_ext%' OR application_name LIKE 'citus_run_command%'" \
            'SELECT run_id, status, error FROM bench.runs WHERE part_of IS NOT NULL' \
            'SELECT gid FROM pg_prepared_xacts')"
    fi
}

refused() { # DESC ARGUMENTS REGEX
    local runs
    runs=$(sql 'SELECT count(*) FROM bench.runs')
    try "SELECT bench.run($2)"
    like "$OUT" "$3" "$1: refused"
    is "$(sql 'SELECT count(*) FROM bench.runs')" "$runs" "$1: before anything runs"
}

# The local node's part is a run of this catalogue as well, while it is under way.
newest() { sql 'SELECT max(run_id) FROM bench.runs WHERE part_of IS NULL'; }

# Waits until a run after that one has transactions of clients on every node.
at_work() { # RUN-BEFORE
    eventually 20 "SELECT count(*) > 0 FROM bench.progress p JOIN bench.runs r USING (run_id)
                   WHERE r.part_of IS NULL AND run_id > $1 AND p.transactions > 0" ||
        tap_fail "a run after $1 is at work"
    RUN=$(newest)
}

on_all_nodes() { # ARGUMENTS
    local before
    before=$(newest)
    sql "SELECT bench.start($1, sample_interval => 0.2, nodes => 'all')" >/dev/null
    at_work "${before:-0}"
}

freeze() {
    FROZEN=()
    freeze_more "$1"
}

freeze_more() {
    local postmaster
    postmaster=$(head -n 1 "${NODE_DIRS[$1]}/data/postmaster.pid")
    # shellcheck disable=SC2207 # process ids
    FROZEN+=("$postmaster" $(pgrep -P "$postmaster"))
    kill -STOP "${FROZEN[@]}"
}

thaw() {
    [ ${#FROZEN[@]} -eq 0 ] || kill -CONT "${FROZEN[@]}" 2>/dev/null
    FROZEN=()
}

add_up() { # RUN DESC
    is "$(sql "SELECT sum(n.transactions) = s.transactions AND s.transactions > 0,
                      s.transactions - (SELECT sum(transactions) FROM bench.samples x WHERE x.run_id = s.run_id),
                      s.transactions + $(drained "$1") - (SELECT sum(count) FROM bench.latencies x
                                                            WHERE x.run_id = s.run_id),
                      abs(sum(n.tps) - s.tps) <= 0.001 * s.tps,
                      abs(sum(n.transactions * n.server_cpu_us) / s.transactions / s.server_cpu_us - 1) < 1e-6
               FROM bench.summary s JOIN bench.nodes n USING (run_id) WHERE run_id = $1
               GROUP BY s.run_id, s.transactions, s.tps, s.server_cpu_us")" \
        't|0|0|t|t' "$2: total, nodes, samples and histogram add up"
}

# The nodes of a run with their statuses.
nodes_of() { # RUN
    sql "SELECT string_agg(concat_ws(' ', node, coalesce(status, '-')), ', ' ORDER BY node) FROM bench.nodes
        WHERE run_id = $1"
}

name_of() { echo "127.0.0.1:${NODE_PORTS[$1]}"; }

# The nodes' logs have no word of a bug below SQL, beside the crashes that the test has made.
logs_are_clean() {
    local node
    for node in 0 1 2; do PGHOST=${NODE_DIRS[$node]} log_is_clean; done
}
