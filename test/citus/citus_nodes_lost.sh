#!/usr/bin/env bash
# Runs on several nodes of a Citus cluster that do not end as they were to: stops, cancels, kills, nodes that die or
# freeze. Clients end on every node, the run says truly how it ended, what was measured is kept, and nothing is left
# behind.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
nodes_start

message_of() { sql "SELECT coalesce(error ->> 'sqlstate' || ' ' || (error ->> 'message'), '-') FROM bench.runs
    WHERE run_id = $1"; }

# A run on all nodes was ended by something since `clock`: what holds then, whatever it was.
ended_well() { # DESC STATUS REGEX-OF-ERROR [NODES]
    clients_end "${ENDS_MS:-2000}" "$1: within ${ENDS_MS:-2000} ms no client is left on any node"
    status_is "$RUN" "$2" "$1"
    like "$(message_of "$RUN")" "$3" "$1: its error says why"
    [ $# -lt 4 ] || is "$(nodes_of "$RUN")" "$4" "$1: the statuses of its nodes"
    kept "$RUN" "$1"
    add_up_transactions "$RUN" "$1"
    nothing_on_any "$1"
}

# As add_up, where nodes have measured for different times.
add_up_transactions() { # RUN DESC
    is "$(sql "SELECT sum(n.transactions) - s.transactions FROM bench.nodes n JOIN bench.summary s USING (run_id)
        WHERE run_id = $1 GROUP BY s.transactions")" 0 \
        "$2: the total is the sum of the nodes"
}

called() { # starts bench.run in a session of the name 'caller'
    local before
    before=$(newest)
    session caller "SELECT bench.run('pk_update', clients => 2, secs => 60, sample_interval => 0.2, nodes => 'all')"
    at_work "${before:-0}"
    sleep 0.5
}

started() { # ARGUMENTS
    on_all_nodes "$1"
    sleep 0.5
}

# Stops and cancels.
started "'pk_update', clients => 2, secs => 60"
clock
is "$(sql "SELECT bench.stop($RUN)")" t 'bench.stop'
ended_well 'bench.stop' canceled '57014 stopped by bench.stop' '1 canceled, 2 canceled, 3 canceled'

# A part that is stopped where it runs: the others have nothing to go on for.
started "'nothing', clients => 1, rate => 300, secs => 60"
is "$(on 1 && sql 'SELECT bench.stop(run_id) FROM bench.runs WHERE part_of IS NOT NULL')" t 'bench.stop of a part'
clock
ENDS_MS=5000 ended_well 'bench.stop of a part' incomplete "^57014 node $(name_of 1): stopped" \
    '1 canceled, 2 canceled, 3 canceled'

called
clock
sql "SELECT pg_cancel_backend($(pid_of caller))" >/dev/null
ended_well 'pg_cancel_backend of the caller' canceled '57014'
ended caller
like "$OUT" '57014: canceling statement due to user request' 'pg_cancel_backend of the caller: the caller is told'

called
clock
sql "SELECT pg_terminate_backend($(pid_of caller))" >/dev/null
ended_well 'pg_terminate_backend of the caller' canceled '57'
ended caller

called
clock
kill -9 "${PIDS[caller]}"
ended_well 'kill -9 of psql' canceled '57'
ended caller

# Its own processes.
terminate() { echo "SELECT ${2:-pg_terminate_backend}(min(pid)) FROM pg_stat_activity
    WHERE backend_type = 'pgbench_ext $1'"; }
started "'pk_update', clients => 2, secs => 60"
clock
# The part's coordinator is there as well, under a later process id or not: the run's own has the links.
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'" >/dev/null
ended_well 'the coordinators of the node that was asked are terminated' canceled '57'

for signal in pg_terminate_backend pg_cancel_backend; do
    started "'pk_update', clients => 2, secs => 60"
    clock
    sql "$(terminate link $signal)" >/dev/null
    # The others hear of it when the link has fetched what its node has.
    ENDS_MS=5000 ended_well "$signal of a link" incomplete '^57P01 the link to node 127.0.0.1:[0-9]+ was '
done

started "'pk_update', clients => 2, secs => 5"
(on 2 && sql "$(terminate client)" >/dev/null)
eventually 5 "SELECT clients = 5 FROM bench.progress WHERE run_id = $RUN"
is $? 0 'a client of another node is terminated: bench.progress says five'
clock
status_is "$RUN" incomplete 'a client of another node is terminated'
like "$(message_of "$RUN")" "^57P01 node $(name_of 2): " \
    'a client of another node is terminated: the error names its node'
is "$(nodes_of "$RUN")" '1 completed, 2 completed, 3 incomplete' \
    'a client of another node is terminated: the others complete'
is "$(sql "SELECT node, sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '3|57P01|1' \
    'a client of another node is terminated: bench.errors has it once'
kept "$RUN" 'a client of another node is terminated'
nothing_on_any 'a client of another node is terminated'

started "'pk_update', clients => 2, secs => 8"
(on 2 && sql "$(terminate coordinator)" >/dev/null)
status_is "$RUN" incomplete 'the coordinator of a part is terminated'
like "$(message_of "$RUN")" "node $(name_of 2)" 'the coordinator of a part is terminated: the error names its node'
kept "$RUN" 'the coordinator of a part is terminated'
nothing_on_any 'the coordinator of a part is terminated'

# A node whose server crashes, and comes back at once.
started "'pk_update', clients => 2, secs => 60"
clock
(on 2 && kill -9 "$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")")
clients_end 20000 'a node crashes: the others end within the lease' 0 1
status_is "$RUN" incomplete 'a node crashes'
like "$(message_of "$RUN")" "node $(name_of 2)" 'a node crashes: the error names it'
like "$(nodes_of "$RUN")" '3 crashed' 'a node crashes: bench.nodes says so'
is "$(sql "SELECT count(*) >= 2 AND sum(transactions) > 0 FROM bench.samples WHERE run_id = $RUN")" t \
    'a node crashes: samples are kept'
is "$(sql "SELECT count(*) FROM bench.nodes n WHERE run_id = $RUN AND node < 3 AND transactions > 0")" 2 \
    'a node crashes: those of the others, too'
(on 2 && eventually 20 'SELECT NOT pg_is_in_recovery()')
nothing_on_any 'a node crashes'

# A node that goes, and stays away. What it has sampled is here by then.
started "'pk_update', clients => 2, secs => 60"
eventually 10 "SELECT count(DISTINCT node) = 3 FROM bench.samples WHERE run_id = $RUN"
is $? 0 'a run goes on: the samples of all nodes are here'
sampled=$(sql "SELECT array_agg(at) FROM bench.samples WHERE run_id = $RUN AND node = 3")
on 2 && cluster_stop immediate && on 0
clock
clients_end 20000 'a node dies: the others end within the lease' 0 1
status_is "$RUN" incomplete 'a node dies'
like "$(message_of "$RUN")" "^08006 node $(name_of 2)" 'a node dies: the error names it'
is "$(sql "SELECT count(*) FROM bench.nodes n WHERE run_id = $RUN AND node < 3 AND transactions > 0")" 2 \
    'a node dies: what the others have measured is kept'
is "$(sql "SELECT array_agg(at) @> '$sampled' FROM bench.samples WHERE run_id = $RUN AND node = 3")" t \
    'a node dies: and what came of its samples before'
kept "$RUN" 'a node dies'
refused=$(sql 'SELECT count(*) FROM bench.runs')
try "SELECT bench.run('nothing', nodes => 'all', secs => 1)"
like "$OUT" "08006: node $(name_of 2): .*Connection refused" 'a node is down: refused, and named'
is "$(sql 'SELECT count(*) FROM bench.runs')" "$refused" 'a node is down: before anything runs'
on 2 && cluster_resume && on 0
is "$(on 2 && sql 'SELECT status FROM bench.runs WHERE part_of IS NOT NULL')" crashed \
    'a node died: its part is there, crashed'
(on 2 && sql "SELECT bench.prune('0')" >/dev/null)
nothing_on_any 'a node died and was pruned'

# A node that freezes: for a while, for longer than it may, and at a stop.
started "'nothing', clients => 1, rate => 300, secs => 9"
freeze 2
sleep 6
thaw
status_is "$RUN" completed 'a node was frozen for 6 s'
add_up "$RUN" 'a node was frozen for 6 s'
nothing_on_any 'a node was frozen for 6 s'

started "'nothing', clients => 1, rate => 300, secs => 60"
freeze 2
clock
clients_end 20000 'a node freezes: the others end within the lease' 0 1
like "$(sql "SELECT bench.wait($RUN, 30)")" incomplete 'a node freezes: the run is over while it is frozen'
like "$(message_of "$RUN")" "^08006 node $(name_of 2) has not answered" 'a node freezes: the error names it'
kept "$RUN" 'a node freezes'
thaw
clock
clients_end 20000 'a node freezes: awake, its clients end' 2
(on 2 && eventually 5 "SELECT count(*) = 0 FROM bench.progress" && sql "SELECT bench.prune('0')" >/dev/null)
LEFT_SECS=15 nothing_on_any 'a node was frozen'

# Clients of the others that are in transactions on the frozen node, where no signal reaches them, end all the same.
started "'pk_update', clients => 4, secs => 60"
freeze 2
clock
clients_end 20000 'a node freezes under transactions: the others end within the lease' 0 1
like "$(sql "SELECT bench.wait($RUN, 30)")" incomplete 'a node freezes under transactions: the run is over'
like "$(message_of "$RUN")" "^08006 node $(name_of 2) has not answered" \
    'a node freezes under transactions: the error names it'
is "$(sql "SELECT count(*) FROM bench.nodes WHERE run_id = $RUN AND node < 3 AND clients_stuck IS NULL
    AND transactions > 0")" 2 'a node freezes under transactions: no client of the others is stuck'
like "$(sql "SELECT finding FROM bench.findings($RUN) WHERE topic = 'node'")" "$(name_of 2)" \
    'a node freezes under transactions: and so does a finding'
thaw
none_of 25 "$CLIENTS"
(on 2 && eventually 25 "SELECT count(*) = 0 FROM bench.progress" && sql "SELECT bench.prune('0')" >/dev/null)
LEFT_SECS=15 nothing_on_any 'a node was frozen under transactions'

started "'nothing', clients => 1, rate => 300, secs => 60"
freeze 2
clock
session stop "SELECT bench.stop($RUN)"
clients_end 2000 'a node is frozen: bench.stop ends the others within 2 s' 0 1
ended stop
is "$OUT" t 'a node is frozen: bench.stop returns'
is "$(sql "SELECT bench.wait($RUN, 30)")" canceled 'a node is frozen: the run is canceled'
thaw
none_of 25 "$CLIENTS"
(on 2 && eventually 5 "SELECT count(*) = 0 FROM bench.progress" && sql "SELECT bench.prune('0')" >/dev/null)
# Its link ends with the question that it was in.
LEFT_SECS=15 nothing_on_any 'a node was frozen at a stop'

# The node that asked freezes for longer than the lease.
started "'nothing', clients => 1, rate => 300, secs => 60"
freeze 0
clock
clients_end 21000 'the node that asked freezes: the others end within the lease' 1 2
sleep 3
thaw
status_is "$RUN" incomplete 'the node that asked was frozen'
is "$(sql "SELECT count(*) FROM bench.nodes WHERE run_id = $RUN AND node > 1 AND transactions > 0")" 2 \
    'the node that asked was frozen: what the others have measured is kept'
kept "$RUN" 'the node that asked was frozen'
nothing_on_any 'the node that asked was frozen'

# The node that asked goes.
started "'nothing', clients => 1, rate => 300, secs => 60"
cluster_stop immediate
clock
clients_end 21000 'the node that asked dies: the others end within the lease' 1 2
cluster_resume
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" crashed 'the node that asked died: the run has crashed'
for node in 1 2; do
    is "$(on $node && sql "SELECT status, error ->> 'sqlstate', part_of ->> 'run_id' FROM bench.runs
        WHERE part_of IS NOT NULL")" "incomplete|08006|$RUN" \
        "the node that asked died: node $node keeps its part, and says whose"
    is "$(on $node && sql "SELECT sum(transactions) > 0 FROM bench.samples")" t "the node that asked died: with samples"
done
on_nodes "SELECT bench.prune('0')" >/dev/null
nothing_on_any 'the node that asked died'
still_works 'after all that'
done_testing
