#!/usr/bin/env bash
# What may happen to a run's workers, tables, extension and database while it is under way.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start
CLIENT="backend_type = 'pgbench_ext client'"

start() { # ARGUMENTS
    local before
    before=$(last_run)
    sql "SELECT bench.start($1, sample_interval => 0.2)" >/dev/null
    sampling "${before:-0}" 2
}

# One client is lost; the others go on.
loses_a_client() { # FUNCTION SQLSTATE
    start "'pk_update', clients => 3, secs => 6"
    sql "SELECT $1(min(pid)) FROM pg_stat_activity WHERE $CLIENT" >/dev/null
    eventually 3 "SELECT count(*) = 2 FROM pg_stat_activity WHERE $CLIENT"
    is $? 0 "$1 of a client: the other two go on"
    is "$(sql "SELECT clients, workload FROM bench.progress WHERE run_id = $RUN")" '2|pk_update' \
        "$1 of a client: bench.progress says two, and of which workload"
    status_is "$RUN" incomplete "$1 of a client"
    is "$(error_of "$RUN")" "$2" "$1 of a client: the run's error is $2"
    is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" "$2|1" \
        "$1 of a client: bench.errors has it once"
    is "$(sql "SELECT max(clients), min(clients) FROM bench.samples WHERE run_id = $RUN")" '3|2' \
        "$1 of a client: the samples tell how many were at work"
    is "$(sql "SELECT sum(secs)::numeric(9,1) FROM bench.samples WHERE run_id = $RUN")" 6.0 \
        "$1 of a client: the run goes on for its time"
    is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$1 of a client: the audit does not accuse"
    kept "$RUN" "$1 of a client"
    nothing_left "$1 of a client"
    no_restart "$1 of a client: the server goes on"
}
loses_a_client pg_terminate_backend 57P01
loses_a_client pg_cancel_backend 57014

# All clients are lost: the run is over at once.
start "'pk_update', clients => 3, secs => 60"
clock
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE $CLIENT" >/dev/null
status_is "$RUN" incomplete 'all clients terminated'
within 3000 'all clients terminated: the run ends with the last'
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '57P01|3' \
    'all clients terminated: bench.errors counts them'
kept "$RUN" 'all clients terminated'
nothing_left 'all clients terminated'

# A client ends itself.
sql "SELECT bench.create_workload('suicide', 'SELECT pg_terminate_backend(pg_backend_pid());')" >/dev/null
try "SELECT bench.run('suicide', clients => 2, secs => 30)"
RUN=$(last_run)
status_is "$RUN" incomplete 'clients that end themselves'
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '57P01|2' \
    'clients that end themselves: bench.errors counts them'
nothing_left 'clients that end themselves'

# The coordinator.
for signal in pg_terminate_backend pg_cancel_backend; do
    start "'pk_update', clients => 3, secs => 60"
    clock
    sql "SELECT $signal(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'" >/dev/null
    nothing_left "$signal of the coordinator"
    within 3000 "$signal of the coordinator: all is over within a second or so"
    status_is "$RUN" canceled "$signal of the coordinator"
    like "$(error_of "$RUN")" '^57(P01|014)$' "$signal of the coordinator: the run's error says so"
    kept "$RUN" "$signal of the coordinator"
done
before=$(last_run)
session caller "SELECT bench.run('pk_update', clients => 2, secs => 60, sample_interval => 0.2)"
sampling "$before" 2
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'" >/dev/null
ended caller 5
like "$OUT" "(ERROR:  57P01|WARNING.*run $RUN is canceled.*terminated by an administrator)" \
    'the coordinator of a bench.run is terminated: the caller is told'
nothing_left 'the coordinator of a bench.run is terminated'

# Before the gate opens: clients are held up by a lock while they prepare.
session holder 'BEGIN' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(60)'
holds holder
while read -r signal kind state; do
    name="$signal of a $kind before the gate opens"
    RUN=$(sql "SELECT bench.start('pk_update', clients => 3, secs => 60)")
    eventually 5 "SELECT count(*) = 3 FROM pg_stat_activity WHERE $CLIENT AND wait_event_type = 'Lock'"
    clock
    sql "SELECT $signal(min(pid)) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $kind'" >/dev/null
    nothing_left "$name"
    within 3000 "$name: the run ends at once"
    status_is "$RUN" "$state" "$name"
    is "$(sql "SELECT error IS NOT NULL FROM bench.runs WHERE run_id = $RUN")" t "$name: the run's error says why"
done <<END
pg_terminate_backend client failed
pg_cancel_backend client failed
pg_terminate_backend coordinator canceled
END
leave holder

# A load's workers.
for kind in load loader; do
    session caller "SELECT bench.load('pk', 20000000)" "SELECT 'usable'"
    eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext loader'
        AND state = 'active')"
    sql "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $kind'" \
        >/dev/null
    ended caller 10
    like "$OUT" 'ERROR: .*usable' "a terminated worker \"$kind\": bench.load is an error"
    nothing_left "a terminated worker \"$kind\""
    is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pk) FROM bench.fixtures WHERE name = 'pk'")" '1000|1000' \
        "a terminated worker \"$kind\": the fixture is as it was"
    sql "SELECT bench.load('pk', 1000)" >/dev/null
    is "$(sql "SELECT count(*) FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r'")" 1 \
        "a terminated worker \"$kind\": the next load leaves nothing over"
done

# The fixture's table.
start "'pk_update', clients => 2, secs => 2"
sql 'TRUNCATE bench_data.pk'
status_is "$RUN" completed 'TRUNCATE of the fixture'
is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $RUN")" 0 'TRUNCATE of the fixture: no errors'
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 'TRUNCATE of the fixture: the audit does not accuse'
kept "$RUN" 'TRUNCATE of the fixture'
nothing_left 'TRUNCATE of the fixture'

start "'pk_update', clients => 2, secs => 60"
clock
sql 'DROP TABLE bench_data.pk'
status_is "$RUN" incomplete 'DROP TABLE of the fixture'
within 4000 'DROP TABLE of the fixture: the run is over when all clients are'
like "$(error_of "$RUN")" '^(42P01|XX000)$' 'DROP TABLE of the fixture: the run has the error'
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '42P01|2' \
    'DROP TABLE of the fixture: bench.errors has it'
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 \
    'DROP TABLE of the fixture: the audit does not accuse'
kept "$RUN" 'DROP TABLE of the fixture'
nothing_left 'DROP TABLE of the fixture'
try "SELECT bench.run('pk_update', clients => 2, transactions => 20)"
like "$OUT" 'NOTICE:.*fixture "pk" is not loaded: loading.*actually processed: 40' \
    'after DROP TABLE of the fixture: a run loads it again and says so'
no_restart 'after DROP TABLE of the fixture: the server goes on'

# Other changes of the table, of privileges and of the configuration. A SELECT * whose columns change
# is an error in a client's prepared statement as well.
meanwhile() { # NAME WORKLOAD STATUS SQLSTATE STATEMENT…
    local name=$1 workload=$2 status=$3 state=$4
    shift 4
    start "'$workload', clients => 2, secs => 2"
    sql "$@" >/dev/null 2>"$work/meanwhile" || tap_fail "$name: the statement works" "$(cat "$work/meanwhile")"
    status_is "$RUN" "$status" "$name"
    is "$(sql "SELECT string_agg(sqlstate, ' ') FROM bench.errors WHERE run_id = $RUN")" "$state" "$name: bench.errors"
    kept "$RUN" "$name"
    nothing_left "$name"
    no_restart "$name: the server goes on"
}
meanwhile 'ALTER TABLE … ADD COLUMN during updates' pk_update completed '' \
    'ALTER TABLE bench_data.pk ADD COLUMN more int'
meanwhile 'ALTER TABLE … DROP COLUMN during SELECT *' pk_select incomplete 0A000 \
    'ALTER TABLE bench_data.pk DROP COLUMN more'
meanwhile 'VACUUM FULL and REINDEX' pk_update completed '' 'VACUUM FULL bench_data.pk' 'REINDEX TABLE bench_data.pk'
meanwhile 'a rule that makes two statements of one' pk_update completed '' \
    'CREATE RULE twice AS ON UPDATE TO bench_data.pk DO ALSO SELECT 1'
# The rule is there from the start: the audit agrees, or says why it does not judge.
sql "SELECT bench.run('pk_update', clients => 2, transactions => 50)" >/dev/null 2>&1
is "$(sql "SELECT count(*) FROM bench.audit($(last_run)) WHERE NOT ok")" 0 \
    'a table with a rule: the audit does not accuse'
sql 'DROP RULE twice ON bench_data.pk'
meanwhile 'a reload of the configuration' pk_select completed '' "ALTER SYSTEM SET work_mem = '8MB'" \
    'SELECT pg_reload_conf()'
sql 'CREATE ROLE bob LOGIN' 'GRANT CREATE ON DATABASE postgres TO bob' \
    'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO bob' \
    'SET ROLE bob' "SELECT bench.load('pk', 1000, options => '{\"schema\": \"bobs\"}')" >/dev/null
start_as_bob() {
    local before
    before=$(last_run)
    sql 'SET ROLE bob' "SELECT bench.start('pk_update', clients => 2, secs => 60, sample_interval => 0.2)" >/dev/null
    sampling "$before" 2
}
start_as_bob
sql 'REVOKE ALL ON bobs.pk FROM bob'
status_is "$RUN" incomplete 'REVOKE during a run'
is "$(error_of "$RUN")" 42501 'REVOKE during a run: the error says so'
sql 'GRANT ALL ON bobs.pk TO bob'
start_as_bob
sql 'DROP OWNED BY bob CASCADE' 'DROP ROLE bob' 2>"$work/bob" || tap_fail 'DROP ROLE during a run: works' \
    "$(cat "$work/bob")"
status_is "$RUN" incomplete 'DROP ROLE during a run'
is "$(sql "SELECT role FROM bench.runs WHERE run_id = $RUN")" bob 'DROP ROLE during a run: the run keeps the name'
nothing_left 'DROP ROLE during a run'
meanwhile 'DROP SCHEMA … CASCADE' pk_select incomplete 42P01 'DROP SCHEMA bench_data CASCADE'
sql "SELECT bench.load('pk', 1000)" >/dev/null

# Another database is dropped: each backend has to answer its barrier.
sql "SELECT bench.create_workload('sleeper', 'SELECT pg_sleep(30);')" \
    "SELECT bench.create_workload('pacer', E'BEGIN;\nSELECT pg_sleep(0.2);\nEND;')" >/dev/null
drops_other() { # WORKLOAD HOW
    local before
    before=$(last_run)
    sql 'CREATE DATABASE other'
    session caller "SELECT bench.$2('$1', clients => 3, secs => 30)"
    eventually 5 "SELECT count(*) = 3 FROM pg_stat_activity WHERE $CLIENT AND query <> '' AND state <> 'idle'"
    RUN=$(last_run)
    if [ "$2" = start ]; then
        ended caller 5
        session caller "SELECT bench.wait($RUN)"
    fi
    clock
    sql 'DROP DATABASE other'
    within 4000 "DROP DATABASE of another while $1 runs by bench.$2: is prompt"
    is "$(workers)" 4 "DROP DATABASE of another while $1 runs by bench.$2: the run goes on"
    sql "SELECT bench.stop($RUN)" >/dev/null
    ended caller 5
    nothing_left "DROP DATABASE of another while $1 runs by bench.$2"
}
drops_other sleeper run
drops_other pacer start
drops_other pk_select run
# With clients at the gate: they wait there as long as one of them waits for a lock.
sql 'CREATE DATABASE other'
session holder 'BEGIN' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(60)'
holds holder
sql "SELECT bench.start('pk_update', clients => 2, secs => 30)" >/dev/null
RUN=$(last_run)
eventually 5 "SELECT count(*) > 0 FROM pg_stat_activity WHERE $CLIENT AND wait_event_type = 'Lock'"
clock
sql 'DROP DATABASE other'
within 4000 'DROP DATABASE of another before the gate opens: is prompt'
sql "SELECT bench.stop($RUN)" >/dev/null
nothing_left 'DROP DATABASE of another before the gate opens'
leave holder

# The run's own database. Without FORCE the server refuses, after 5 s; with it, all goes.
sql 'CREATE DATABASE own'
PGDATABASE=own sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" \
    "SELECT bench.start('pk_update', clients => 3, secs => 60)" >/dev/null
is "$(sql 'DROP DATABASE own' 2>&1 | grep -c 'is being accessed by other users')" 1 \
    'DROP DATABASE of its own: is refused'
is "$(workers)" 4 'DROP DATABASE of its own: the run goes on'
clock
sql 'DROP DATABASE own WITH (FORCE)'
is $? 0 'DROP DATABASE … WITH (FORCE) of its own: works'
within 5000 'DROP DATABASE … WITH (FORCE) of its own: is prompt'
nothing_left 'DROP DATABASE … WITH (FORCE) of its own'
no_restart 'DROP DATABASE … WITH (FORCE) of its own: the server goes on'
sql 'CREATE DATABASE own'
PGDATABASE=own sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" >/dev/null
PGDATABASE=own session caller "SELECT bench.run('pk_update', clients => 3, secs => 60)"
eventually 5 "SELECT count(*) = 3 FROM pg_stat_activity WHERE $CLIENT AND state = 'active'"
sql 'DROP DATABASE own WITH (FORCE)'
is $? 0 'DROP DATABASE … WITH (FORCE) under a bench.run: works'
ended caller 5
like "$OUT" 'FATAL:  57P01' 'DROP DATABASE … WITH (FORCE) under a bench.run: the caller is terminated'
nothing_left 'DROP DATABASE … WITH (FORCE) under a bench.run'
no_restart 'DROP DATABASE … WITH (FORCE) under a bench.run: the server goes on'

# The extension. A role that may not drop it does not disturb a run.
sql 'CREATE ROLE nobody_special LOGIN'
before=$(last_run)
session caller "SELECT bench.run('pk_update', clients => 2, secs => 3, sample_interval => 0.2)"
sampling "$before" 2
PGUSER=nobody_special try 'DROP EXTENSION pgbench_ext'
like "$OUT" '42501' 'DROP EXTENSION of a role that does not own it: is refused'
ended caller 15
status_is "$RUN" completed 'DROP EXTENSION of a role that does not own it'
sql 'DROP ROLE nobody_special'
# Who drops it ends the run, whose caller is told that there are no results.
for drop in 'DROP EXTENSION pgbench_ext CASCADE' 'DROP SCHEMA bench CASCADE'; do
    before=$(last_run)
    session caller "SELECT bench.run('pk_update', clients => 2, secs => 60, sample_interval => 0.2)" "SELECT 'usable'"
    sampling "${before:-0}" 2
    clock
    sql "$drop" 2>/dev/null || tap_fail "$drop during a bench.run: works"
    within 5000 "$drop during a bench.run: is prompt"
    ended caller 5
    like "$OUT" 'ERROR:  55000: extension "pgbench_ext" is being dropped by role "postgres"' \
        "$drop during a bench.run: its caller is told"
    like "$OUT" usable "$drop during a bench.run: the session goes on"
    nothing_left "$drop during a bench.run"
    sql 'CREATE EXTENSION pgbench_ext'
    try "SELECT bench.load('pk', 1000)"
    like "$OUT" '42809.*bench.load..pk., 1000, options => .."adopt":true' "$drop: the hint on the tables that are left"
    try "SELECT bench.load('pk', 1000, options => '{\"adopt\":true}')"
    is "$OUT" 1000 "$drop: the tables that are left are adopted"
done
session caller "SELECT bench.sweep('pk_update', '{1,2}', secs => 2, rounds => 3)" "SELECT 'usable'"
eventually 10 'SELECT count(*) > 0 FROM bench.samples'
clock
sql 'DROP EXTENSION pgbench_ext CASCADE' 2>/dev/null || tap_fail 'DROP EXTENSION during a bench.sweep: works'
within 5000 'DROP EXTENSION during a bench.sweep: is prompt'
ended caller 5
like "$OUT" 'ERROR:  55000: extension "pgbench_ext" is being dropped' \
    'DROP EXTENSION during a bench.sweep: its caller is told'
nothing_left 'DROP EXTENSION during a bench.sweep'
sql 'DROP SCHEMA bench_data CASCADE' 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" >/dev/null 2>&1
start "'pk_update', clients => 3, secs => 60"
session waiter "SELECT bench.wait($RUN)" "SELECT 'usable'"
clock
sql 'DROP EXTENSION pgbench_ext CASCADE' 2>/dev/null || tap_fail 'DROP EXTENSION during a run: works'
nothing_left 'DROP EXTENSION during a run'
within 5000 'DROP EXTENSION during a run: clients end soon'
ended waiter 5
like "$OUT" 'usable' 'DROP EXTENSION during a run: a session in bench.wait goes on'
no_restart 'DROP EXTENSION during a run: the server goes on'
try 'DROP SCHEMA bench_data CASCADE' 'CREATE EXTENSION pgbench_ext' \
    "SELECT bench.run('pk_update', clients => 2, transactions => 20)"
like "$OUT" 'actually processed: 40' 'after DROP EXTENSION and CREATE EXTENSION a run works'
# Dropped and made again at once: the old run must not write to the new tables.
start "'pk_update', clients => 3, secs => 60"
sql 'BEGIN; DROP EXTENSION pgbench_ext; CREATE EXTENSION pgbench_ext; COMMIT' 2>/dev/null ||
    tap_fail 'DROP and CREATE EXTENSION in one transaction: works'
nothing_left 'DROP and CREATE EXTENSION during a run' 5
is "$(sql 'SELECT (SELECT count(*) FROM bench.runs), (SELECT count(*) FROM bench.samples), (SELECT count(*)
    FROM bench.latencies)')" '0|0|0' \
    'DROP and CREATE EXTENSION during a run: the new tables are empty'
log_is_clean
no_restart 'the server has not restarted'
done_testing
