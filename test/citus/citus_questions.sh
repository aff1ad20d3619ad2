#!/usr/bin/env bash
# The questions to the nodes of a Citus cluster before a run, and the connections of one: all nodes are asked at once
# with one time limit, every pair of nodes is tried, bench.preflight shows what fails, and a node takes one connection
# for all questions, with a password and with one that only a password file has.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/citus_nodes.sh
. test/lib/citus_nodes.sh

citus_or_skip
nodes_start 'log_connections = on'

# Connections that a node has taken since `mark`, by the role of that name.
mark() { local node; for node in 0 1 2; do LINES_BEFORE[node]=$(wc -l <"${NODE_DIRS[$node]}/log"); done; }
connections() { # NODE ROLE
    tail -n +$((LINES_BEFORE[$1] + 1)) "${NODE_DIRS[$1]}/log" |
        grep -c "connection authorized: user=$2 .*application_name=${3:-pgbench_ext link}"
}
LINES_BEFORE=()

# One connection before a run and one in it, however long it takes; and one of each other node that tries it.
mark
sql "SELECT bench.run('nothing', clients => 1, rate => 50, secs => 6, nodes => 'all')" >/dev/null 2>&1
is "$(connections 1 postgres) $(connections 2 postgres)" '3 3' 'a run takes one connection, after the questions'
is "$(connections 0 postgres)" 2 'each other node has tried the one that asked'
is "$(connections 1 postgres citus_run_command)" 0 'and none is made for a single question'
is "$(sql 'SELECT nodes, status FROM bench.runs ORDER BY run_id DESC LIMIT 1')" 'all|completed' 'the run is complete'

# In a sweep, however many runs it has: before it starts, before its first run, and after one that did not complete.
mark
sql "SELECT bench.sweep('nothing', '{1, 2}', secs => 0.3, rounds => 2, nodes => 'all')" >/dev/null 2>&1
is "$(sql 'SELECT status, completed FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1')" 'completed|4' \
    'a sweep of four runs'
is "$(connections 0 postgres)" 4 'in it, the other nodes have tried the first one twice'
mark
before=$(newest)
sql "SELECT bench.start_sweep('nothing', '{1}', secs => 3, rounds => 3, nodes => 'all')" \
    >/dev/null 2>&1
at_work "$before"
(on 2 && sql "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity
    WHERE backend_type = 'pgbench_ext client'" >/dev/null)
eventually 30 "SELECT status <> 'running' FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1"
is "$(sql "SELECT string_agg(status, ' ' ORDER BY run_id) FROM bench.runs
    WHERE run_id > $before AND part_of IS NULL")" \
    'incomplete completed completed' 'a sweep in which a run fails on a node'
is "$(connections 0 postgres)" 6 'after that, they have tried it once more'
nothing_on_any 'sweeps'

preflight() { # ARGUMENTS
    sql "SELECT severity || ' ' || finding FROM bench.preflight($1) WHERE topic = 'nodes'
         ORDER BY severity, finding" 2>&1
}
mark
like "$(preflight "'nothing', nodes => 'all', secs => 1")" \
    '^notice 3 nodes answered within [0-9.]+ m?s, and 3 with clients reach all others' \
    'bench.preflight says that all answer'
is "$(connections 0 postgres)" 2 'and has each other node try the first one once'

# Two workers that do not reach each other: found before anything runs.
sql 'CREATE ROLE walled LOGIN' 'GRANT USAGE ON SCHEMA bench TO walled' 'GRANT ALL ON own.ids TO walled' \
    'GRANT USAGE ON SCHEMA own TO walled' \
    "SELECT run_command_on_all_nodes('GRANT EXECUTE ON FUNCTION bench.run, bench.preflight TO walled')" >/dev/null
PGUSER=walled sql 'SELECT 1' >/dev/null
# Worker 1 has no password of the role's for worker 2; the coordinator has one for both.
on_each "ALTER SYSTEM SET password_encryption = 'scram-sha-256'" 'SELECT pg_reload_conf()' >/dev/null
sleep 0.3
sql "ALTER ROLE walled PASSWORD 'it''s one'" >/dev/null
sed -i '1i host all walled all scram-sha-256' "${NODE_DIRS[2]}/data/pg_hba.conf"
(on 2 && sql 'SELECT pg_reload_conf()' >/dev/null)
sleep 0.3
# shellcheck disable=SC1003 # a backslash
sql "INSERT INTO pg_dist_authinfo VALUES (0, 'walled', 'password=''it\\''s one''')" >/dev/null 2>&1 ||
    sql "INSERT INTO pg_dist_authinfo VALUES (0, 'walled', \$\$password='it\\'s one'\$\$)" >/dev/null
runs=$(sql 'SELECT count(*) FROM bench.runs')
PGUSER=walled try "SELECT bench.run('nothing', nodes => 'all', secs => 1)"
like "$OUT" "08006: node $(name_of 1): node $(name_of 2): .*password" \
    'a password that one worker lacks for another: refused, both named'
is "$(sql 'SELECT count(*) FROM bench.runs')" "$runs" 'before anything runs'
like "$(PGUSER=walled preflight "'nothing', nodes => 'all', secs => 1")" \
    "^critical The run would not start: node $(name_of 1): node $(name_of 2): " 'bench.preflight shows the pair'
(on 1 && sql "INSERT INTO pg_dist_authinfo VALUES (0, 'walled', \$\$password='it\\'s one'\$\$)" >/dev/null)
mark
PGUSER=walled sql "SELECT bench.run('nothing', nodes => 'all', secs => 1)" >/dev/null 2>&1
is "$(sql "SELECT status FROM bench.runs WHERE role = 'walled' ORDER BY run_id DESC LIMIT 1")" completed \
    'with the password everywhere it runs'
is "$(connections 2 walled)" 3 'over one connection, with the password of pg_dist_authinfo'

# A password that only the operating-system user of the servers has: then Citus carries the questions.
on_each "DELETE FROM pg_dist_authinfo" >/dev/null
for node in 0 1; do
    printf '*:*:*:walled:it'"'"'s one\n' >"${NODE_DIRS[$node]}/passfile"
    chown --reference "${NODE_DIRS[$node]}/data" "${NODE_DIRS[$node]}/passfile" 2>/dev/null
    chmod 600 "${NODE_DIRS[$node]}/passfile"
    on "$node"
    cluster_stop fast
    PGPASSFILE=${NODE_DIRS[$node]}/passfile cluster_resume
done
on 0
mark
PGUSER=walled sql "SELECT bench.run('nothing', nodes => 'all', secs => 1)" >/dev/null 2>&1
is "$(sql "SELECT status FROM bench.runs WHERE role = 'walled' ORDER BY run_id DESC LIMIT 1")" completed \
    'with a password file it runs as well'
is "$(($(connections 2 walled citus_) > 0))" 1 'over connections of Citus'
PGUSER=postgres nothing_on_any 'roles with passwords'

# A frozen node costs one time limit, not one for each question, and neither do two.
for frozen in '2' '1 2'; do
    for node in $frozen; do freeze_more "$node"; done
    clock
    try "SELECT bench.run('nothing', nodes => 'all', secs => 1)"
    within 7000 "frozen nodes ($frozen): refused within one time limit"
    like "$OUT" "08006: node $(name_of "${frozen%% *}"): no answer within 5 s" "frozen nodes ($frozen): named"
    clock
    found=$(preflight "'nothing', nodes => 'all', secs => 1")
    within 7000 "frozen nodes ($frozen): bench.preflight within one time limit"
    is "$(grep -c '^critical The run would not start: node .*: no answer within 5 s' <<<"$found")" \
        "$(wc -w <<<"$frozen")" "frozen nodes ($frozen): bench.preflight shows each"
    thaw
done
LEFT_SECS=15 nothing_on_any 'nodes were frozen'

# Tenants: few connections, and an override.
on 1
sql 'ALTER SYSTEM SET max_connections = 14'
cluster_restart fast
on 0
try "SELECT bench.run('nothing', clients => 8, secs => 1, nodes => 'all')"
like "$OUT" "53300: node $(name_of 1) does not have enough connections" 'too few connections: refused'
try "SET pgbench_ext.check_connections = off; SELECT bench.run('nothing', clients => 8, secs => 1, nodes => 'all') > 0"
like "$OUT" "WARNING: .*node $(name_of 1) does not have enough connections.*check_connections is off.*Needed: 19" \
    'with the override: told'
like "$OUT" 'transactions actually processed' 'and run'

# Samples of many nodes are thinned; here by their number in the whole run.
try "SELECT bench.start('nothing', secs => 86400, sample_interval => 0.1, nodes => 'all')"
like "$OUT" 'NOTICE: .*samples are 0.3 s long instead of 0.1 s' 'samples that are too many are longer, and it is said'
sql 'SELECT bench.stop(max(run_id)) FROM bench.runs WHERE part_of IS NULL' >/dev/null
nothing_on_any 'all that'
logs_are_clean
done_testing
