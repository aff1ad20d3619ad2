#!/usr/bin/env bash
# What may happen while bench.load is under way: it ends well, or everything is as it was before.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# Indexes are built with parallel workers, however small the table.
faults_start 'min_parallel_table_scan_size = 0' 'max_prepared_transactions = 2'

# A fixture that takes a second for each thousand of its rows in the phase that `slow` chooses.
sql 'CREATE EXTENSION pg_visibility' \
    "CREATE FUNCTION nap(phase text, id bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS \$\$ BEGIN
         IF id % 100 = 0 AND phase = current_setting('faults.slow', true) THEN PERFORM pg_sleep(0.1); END IF;
         RETURN id;
     END \$\$" \
    "SELECT bench.create_fixture('slow',
         'CREATE TABLE slow (id bigint PRIMARY KEY, nap bigint);
          SELECT sum(nap(''starting'', id)) FROM generate_series(1, 100000) AS id',
         'SELECT id, nap(''loading rows'', id) FROM generate_series(\$1, \$2) AS id',
         'CREATE INDEX ON slow (nap(''building indexes'', id))')" \
    "SELECT bench.load('slow', 1000)" \
    "SELECT bench.create_workload('reads_slow', 'SELECT * FROM slow WHERE id = 1000;', 'slow')" >/dev/null 2>&1 || exit
LOAD="SELECT bench.load('slow', 100000, 2)"

# Workers are new sessions: they take their settings from the database.
slow() { # PHASE
    sql 'ALTER DATABASE postgres RESET ALL' "ALTER DATABASE postgres SET faults.slow = '$1'"
    [ "$1" != vacuuming ] ||
        sql 'ALTER DATABASE postgres SET vacuum_cost_limit = 1' \
        "ALTER DATABASE postgres SET vacuum_cost_delay = '100ms'"
}

# Waits until the load is in that phase, with all of its loaders if these have to do with it.
in_phase() {
    local loaders=
    [ "$1" != 'loading rows' ] ||
        loaders="AND (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext loader'
            AND xact_start IS NOT NULL) = clients AND clients > 0"
    eventually 10 "SELECT phase = '$1' AND rows IS NOT NULL $loaders FROM bench.progress WHERE run_id IS NULL" ||
        tap_fail "a load gets to $1"
}

# All that a load could change, by its success or by what it leaves. Each line is a query's.
state() {
    sql 'SELECT name, schema, rows, loaded_at, relations FROM bench.fixtures ORDER BY name, schema' \
        'SELECT count(*), sum(id), sum(nap) FROM bench_data.slow' \
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench%' ORDER BY nspname" \
        "SELECT * FROM bench_internal.load_log WHERE status = 'running'" \
        'SELECT count(*) FROM pg_class' \
        "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND pid <> pg_backend_pid()" 2>&1
    server_identity
}

undone() {
    nothing_left "$1" 5
    # A session that was terminated, or an autovacuum worker, may still hold some for a moment.
    eventually 5 "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation' AND pid <> pg_backend_pid())"
    is "$(state)" "$STATE" "$1: everything is as it was"
}

signal() { # FUNCTION CONDITION
    sql "SELECT $1(min(pid)) FROM pg_stat_activity WHERE $2" >/dev/null
}

STATE=$(state)
like "$STATE" 'slow.bench_data.1000.*1000.500500.500500.*bench_data' 'there is a fixture to begin with'

# The caller ends.
for phase in starting 'loading rows' 'building indexes' vacuuming; do
    slow "$phase"
    while read -r way code; do
        name="$way of bench.load while $phase"
        session caller "$LOAD" "SELECT 'usable'"
        in_phase "$phase"
        clock
        if [ "$way" = 'kill_-9' ]; then kill -KILL "${PIDS[caller]}"; else signal "$way" \
            "application_name = 'caller'"; fi
        ended caller
        [ -z "$code" ] || like "$OUT" "$code" "$name: the caller is told, and usable after a cancel"
        undone "$name"
        within 5000 "$name: is prompt"
    done <<END
pg_cancel_backend ERROR:  57014: canceling statement due to user request.*usable
pg_terminate_backend FATAL:  57P01
kill_-9
END
    try "SET statement_timeout = '1s'" "$LOAD" "SELECT 'usable ' || current_setting('statement_timeout')"
    like "$OUT" 'ERROR:  57014: canceling statement due to statement timeout.*usable 1s' \
        "statement_timeout while $phase: 57014, and the session is usable"
    undone "statement_timeout while $phase"
done

# In the background: whoever asked for it may go, and whoever may stop it ends it as a cancel of its caller.
for phase in starting 'loading rows' 'building indexes' vacuuming; do
    name="bench.stop_load while $phase"
    slow "$phase"
    LOAD_ID=$(sql "SELECT bench.start_load('slow', 100000, 2)")
    in_phase "$phase"
    is "$(sql "SELECT bench.wait_load($LOAD_ID, 0.1)")" running "$name: a wait with a timeout says that it runs"
    try "SELECT bench.start_load('slow', 1000)"
    like "$OUT" 'ERROR:  55006: fixture "slow" is being loaded by another session' "$name: no second one"
    try 'SET ROLE pg_monitor' "SELECT bench.stop_load($LOAD_ID)"
    like "$OUT" "ERROR:  42501: load $LOAD_ID belongs to role \"postgres\"" "$name: not for another role"
    session waiter "SELECT bench.wait_load($LOAD_ID)"
    eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'waiter' AND state = 'active')"
    clock
    is "$(sql "SELECT bench.stop_load($LOAD_ID)" "SELECT bench.stop_load($LOAD_ID)" | tr '\n' ' ')" 't f ' \
        "$name: says that it ran, and then that it does not"
    within 5000 "$name: is prompt"
    ended waiter
    is "$OUT" canceled "$name: who waits for it is told"
    is "$(sql "SELECT status, error ->> 'sqlstate', error ->> 'message' FROM bench.loads WHERE load_id = $LOAD_ID")" \
        'canceled|57014|the load was canceled' "$name: bench.loads says so"
    undone "$name"
done

# A subtransaction that catches the cancel: the load ends even so, and the session may load again.
slow 'loading rows'
try "SET statement_timeout = '1s'" \
    "DO \$\$ BEGIN
         BEGIN PERFORM bench.load('slow', 100000, 2);
         EXCEPTION WHEN query_canceled THEN RAISE NOTICE 'caught'; END;
     END \$\$" "SELECT 'usable'"
like "$OUT" 'caught.*usable' 'a caught cancel: the session goes on'
undone 'a caught cancel'

# A worker ends, in the phases in which there is one of its kind. The leader cleans up even when it is terminated.
worker_ends() { # FUNCTION BACKEND-TYPE CODE
    local name="$1 of a $2 while $phase"
    session caller "$LOAD" "SELECT 'usable'"
    in_phase "$phase"
    eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = '$2')"
    signal "$1" "backend_type = '$2'"
    ended caller
    like "$OUT" "ERROR:  $3.*usable" "$name: the caller gets $3, and is usable"
    undone "$name"
}
for phase in starting 'loading rows' 'building indexes' vacuuming; do
    slow "$phase"
    worker_ends pg_cancel_backend 'pgbench_ext load' 57014
    worker_ends pg_terminate_backend 'pgbench_ext load' 55000
    case $phase in
    'loading rows')
        worker_ends pg_cancel_backend 'pgbench_ext loader' 57014
        worker_ends pg_terminate_backend 'pgbench_ext loader' 57P01
        ;;
    'building indexes') worker_ends pg_terminate_backend 'parallel worker' 57P01 ;;
    esac
done

# The other ways into a table: rows that are made natively, and plain INSERTs.
slow 'loading rows'
sql "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'" \
    "SELECT bench.create_fixture('triggered',
         'CREATE TABLE triggered (id bigint, nap bigint);
          CREATE TRIGGER keep BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION keep()',
         'SELECT id, nap(''loading rows'', id) FROM generate_series(\$1, \$2) AS id')" >/dev/null
STATE=$(state)
for fixture in pk triggered; do
    for kind in load loader; do
        for way in pg_cancel_backend pg_terminate_backend; do
            name="$way of a $kind while it fills $fixture"
            session caller "SELECT bench.load('$fixture', 40000000, 2)"
            in_phase 'loading rows'
            signal "$way" "backend_type = 'pgbench_ext $kind'"
            ended caller
            like "$OUT" 'ERROR:  (57014|57P01|55000)' "$name: the caller is told"
            undone "$name"
        done
    done
done

# bench.progress shows a load, to its owner.
session caller "$LOAD"
eventually 10 "SELECT rows > 0 FROM bench.progress"
is "$(sql "SELECT run_id IS NULL, fixture, phase, clients, rows BETWEEN 1 AND 100000, rows_per_sec > 0, elapsed > 0,
    remaining > 0, tps IS NULL
           FROM bench.progress")" 't|slow|loading rows|2|t|t|t|t|t' 'bench.progress shows a load'
sql 'CREATE ROLE bob LOGIN' 'GRANT USAGE ON SCHEMA bench TO bob' \
    'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO bob' 'GRANT CREATE ON DATABASE postgres TO bob'
is "$(sql 'SET ROLE bob' 'SELECT count(*) FROM bench.progress')" 0 'bench.progress: others do not see it'

# Two loads at once.
try "SELECT bench.load('slow', 10)"
like "$OUT" 'ERROR:  55006:.*"slow" is being loaded by another session' 'a second load of the same fixture: is refused'
is "$(sql "SELECT bench.load('pk', 2000)" 2>/dev/null)" 2000 'a load of another fixture at the same time: works'
# Fewer rows than one that naps.
is "$(sql "SELECT bench.load('slow', 50, options => '{\"schema\": \"elsewhere\"}')" 2>/dev/null)" 50 \
    'a load into another schema at the same time: works'
is "$(sql 'SELECT count(*) FROM bench.progress')" 1 'the first load goes on'
signal pg_cancel_backend "application_name = 'caller'"
ended caller
sql "DROP SCHEMA elsewhere CASCADE" "DELETE FROM bench.fixtures WHERE schema = 'elsewhere'" 2>/dev/null
nothing_left 'two loads at once'
slow nothing
for number in 1 2 3 4; do session "load$number" "SELECT bench.load('slow', 20000, 1)"; done
loads=
for number in 1 2 3 4; do ended "load$number" && loads+=$OUT; done
unlike "$loads" 'ERROR:  (5500[^6]|[^5])' 'loads of the same fixture all at once: whoever comes too late gets 55006'
is "$(sql 'SELECT count(*) FROM bench_data.slow')" 20000 'loads of the same fixture all at once: it is loaded'
sql "SELECT bench.load('slow', 1000)" >/dev/null 2>&1
STATE=$(state)

# A run uses the fixture.
RUN=$(sql "SELECT bench.start('reads_slow', clients => 2, secs => 60)")
for call in "bench.load('slow', 10)" "bench.unload('slow')"; do
    try "SELECT $call"
    like "$OUT" "ERROR:  55006:.*\"slow\" is being used by run $RUN.*bench.stop\($RUN\)" \
        "$call while a run uses the fixture: is refused"
done
sql "SELECT bench.stop($RUN)" "SELECT bench.wait($RUN)" >/dev/null
undone 'a load while a run uses the fixture'
slow 'loading rows'
session caller "SELECT bench.load('slow', 3000, 1)"
in_phase 'loading rows'
RUN=$(sql "SELECT bench.start('reads_slow', clients => 2, secs => 60, sample_interval => 0.2)")
ended caller
like "$OUT" "ERROR:  55006:.*\"slow\" is being used by run $RUN" \
    'a run that began during the load: the load fails at its end'
sampling $((RUN - 1)) 2
sql "SELECT bench.stop($RUN)" "SELECT bench.wait($RUN)" >/dev/null
is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $RUN")" 0 \
    'a run that began during the load: goes on with the old tables'
undone 'a run that began during the load'

# Somebody reads the old table: the load waits for the end of that, at its own end.
slow nothing
for way in pg_cancel_backend leave; do
    session reader 'BEGIN' 'SELECT count(*) FROM bench_data.slow' 'SELECT pg_sleep(60)'
    holds reader
    session caller "SELECT bench.load('slow', 2000)"
    eventually 10 "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE backend_type = 'pgbench_ext load'"
    if [ "$way" = leave ]; then
        leave reader
        ended caller
        is "${OUT##*$'\n'}" 2000 'a reader of the old table: the load waits for it'
    else
        signal "$way" "application_name = 'caller'"
        ended caller
        like "$OUT" 'ERROR:  57014' 'a load that waits for a reader: can be canceled'
        leave reader
        undone 'a load that waits for a reader'
    fi
done

# Somebody's old snapshot. Rows that are written by the batch are frozen at once.
slow nothing
all_visible() { sql "SELECT all_visible > 0 AND all_visible * 8192 = pg_relation_size('$1')
    FROM pg_visibility_map_summary('$1')"; }
session old 'BEGIN ISOLATION LEVEL REPEATABLE READ' 'SELECT 1' 'SELECT pg_sleep(60)'
holds old
while read -r fixture rows options table; do
    try "SELECT bench.load('$fixture', $rows, options => '$options')"
    unlike "$OUT" WARNING "an old snapshot during a load of $fixture: is no matter"
    is "$(all_visible "bench_data.$table")" t "an old snapshot during a load of $fixture: all pages are all-visible"
done <<END
pk 30000 {} pk
slow 30000 {} slow
tpcb 100000 {"partitions":2} pgbench_accounts_2
END
warns() { # HOLDER
    try "SELECT bench.load('triggered', 30000)"
    like "$OUT" "WARNING:.*\"triggered\" are not all-visible: $1 holds back the xmin horizon.*"$'\n'"30000\$" \
        "rows by INSERT: the load works, and a WARNING names $1"
}
warns "the session with pid $(pid_of old)"
leave old
sql "BEGIN; CREATE TABLE public.prepared (); PREPARE TRANSACTION 'old'"
warns "prepared transaction 'old'"
sql "ROLLBACK PREPARED 'old'"
try "SELECT bench.load('triggered', 100000)"
unlike "$OUT" WARNING 'rows by INSERT, without such: no WARNING'
is "$(all_visible bench_data.triggered)" t 'rows by INSERT, without such: all pages are all-visible'
for fixture in triggered tpcb; do sql "SELECT bench.unload('$fixture')" >/dev/null; done
sql "SELECT bench.load('slow', 1000)" >/dev/null 2>&1
STATE=$(state)

# Others' DDL meanwhile.
meanwhile() { # NAME ROLE OPTIONS STATEMENT…: OUT is what the load said. Who waits for a lock must not wait for ever.
    local role=$2 options=$3
    slow 'loading rows'
    session caller "SET ROLE $role" "SELECT bench.load('slow', 3000, 1, options => '$options')"
    in_phase 'loading rows'
    session other "${@:4}"
    ended other
    unlike "$OUT" '^$|ERROR|FATAL' "$1: works"
    ended caller
    slow nothing
    nothing_left "$1"
    is "$(sql "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench_loading%'" \
        "SELECT * FROM bench_internal.load_log WHERE status = 'running'")" '' "$1: nothing is left"
    no_restart "$1: the server goes on"
}
meanwhile 'DROP TABLE of the old table' postgres '{}' 'DROP TABLE bench_data.slow'
is "${OUT##*$'\n'}|$(sql "SELECT count(*) FROM bench_data.slow")" '3000|3000' \
    'DROP TABLE of the old table: the load works'
meanwhile 'another table in its place' postgres '{}' 'DROP TABLE bench_data.slow' \
    'CREATE TABLE bench_data.slow AS SELECT 77 AS id'
like "$OUT" 'ERROR:  42809' 'another table in its place: the load fails'
is "$(sql 'SELECT * FROM bench_data.slow')" 77 'another table in its place: it stays'
sql 'DROP TABLE bench_data.slow' "SELECT bench.load('slow', 1000)" >/dev/null 2>&1
meanwhile 'DROP FUNCTION of the index' postgres '{}' "ALTER FUNCTION nap RENAME TO gone"
like "$OUT" 'ERROR:  42883' 'a function that is gone: the load fails'
sql 'ALTER FUNCTION gone RENAME TO nap'
is "$(sql 'SELECT count(*) FROM bench_data.slow')" 1000 'a function that is gone: the fixture is as it was'

bobs='{"schema": "bobs"}'
sql 'SET ROLE bob' "SELECT bench.load('slow', 500, options => '$bobs')" >/dev/null 2>&1
bobs_stay() { is "$(sql 'SELECT count(*) FROM bobs.slow' "SELECT rows FROM bench.fixtures WHERE schema = 'bobs'" |
    tr '\n' ' ')" '500 500 ' "$1: the fixture is as it was"; }
sql 'ALTER SCHEMA bobs OWNER TO postgres' 'GRANT USAGE, CREATE ON SCHEMA bobs TO bob'
meanwhile 'REVOKE CREATE on the schema' bob "$bobs" 'REVOKE CREATE ON SCHEMA bobs FROM bob'
like "$OUT" 'ERROR:  42501' 'REVOKE CREATE on the schema: the load fails'
bobs_stay 'REVOKE CREATE on the schema'
sql 'GRANT CREATE ON SCHEMA bobs TO bob'
meanwhile 'ALTER ROLE … NOLOGIN' bob "$bobs" 'ALTER ROLE bob NOLOGIN'
is "${OUT##*$'\n'}" 3000 'ALTER ROLE … NOLOGIN: workers that are there go on'
sql 'ALTER ROLE bob LOGIN'
meanwhile 'DROP OWNED' bob "$bobs" 'DROP OWNED BY bob CASCADE'
like "$OUT" 'ERROR:  4' 'DROP OWNED: the load fails'

# Databases. Each backend has to answer the barrier of a DROP DATABASE.
for phase in 'loading rows' 'building indexes'; do
    slow "$phase"
    sql 'CREATE DATABASE other'
    session caller "$LOAD"
    in_phase "$phase"
    clock
    sql 'DROP DATABASE other'
    within 4000 "DROP DATABASE of another while $phase: is prompt"
    is "$(sql 'SELECT count(*) FROM bench.progress')" 1 "DROP DATABASE of another while $phase: the load goes on"
    signal pg_cancel_backend "application_name = 'caller'"
    ended caller
    nothing_left "DROP DATABASE of another while $phase"
done
slow nothing
sql 'CREATE DATABASE own'
PGDATABASE=own sql 'CREATE EXTENSION pgbench_ext'
PGDATABASE=own session caller "SELECT bench.load('pk', 40000000, 2)"
eventually 5 "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext loader' AND state = 'active'"
is "$(sql 'DROP DATABASE own' 2>&1 | grep -c 'is being accessed by other users')" 1 \
    'DROP DATABASE of its own: is refused'
sql 'DROP DATABASE own WITH (FORCE)'
is $? 0 'DROP DATABASE … WITH (FORCE) of its own: works'
ended caller
like "$OUT" 'FATAL:  57P01' 'DROP DATABASE … WITH (FORCE) of its own: the caller is terminated'
nothing_left 'DROP DATABASE … WITH (FORCE) of its own'

# The extension waits for its loads.
slow 'loading rows'
session caller "$LOAD"
in_phase 'loading rows'
try "SET lock_timeout = '500ms'" 'DROP EXTENSION pgbench_ext CASCADE'
like "$OUT" 55P03 'DROP EXTENSION during a load: waits for it'
signal pg_cancel_backend "application_name = 'caller'"
ended caller
STATE=$(state)
session caller "$LOAD"
in_phase 'loading rows'
session dropper 'DROP EXTENSION pgbench_ext CASCADE'
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'dropper'
    AND wait_event_type = 'Lock')"
signal pg_cancel_backend "application_name = 'caller'"
ended caller
ended dropper
unlike "$OUT" ERROR 'DROP EXTENSION during a load: works when that has been canceled'
nothing_left 'DROP EXTENSION during a load'
sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.create_fixture('pause', 'CREATE TABLE pause (id bigint)',
    'SELECT nap(''loading rows'', id) FROM generate_series(\$1, \$2) AS id')" >/dev/null
LOAD_ID=$(sql "SELECT bench.start_load('pause', 100000, 2)")
in_phase 'loading rows'
session waiter "SELECT bench.wait_load($LOAD_ID)"
session dropper 'DROP EXTENSION pgbench_ext CASCADE'
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'dropper'
    AND wait_event_type = 'Lock')"
clock
is "$(sql "SELECT bench.stop_load($LOAD_ID)")" t 'DROP EXTENSION during a load that nobody called: it can be stopped'
ended dropper
unlike "$OUT" ERROR 'DROP EXTENSION during a load that nobody called: waits for it'
within 5000 'DROP EXTENSION during a load that nobody called: no longer'
ended waiter
nothing_left 'DROP EXTENSION during a load that nobody called'
is "$(sql "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench_loading%'")" '' \
    'DROP EXTENSION during a load: nothing but the fixtures is left'

# No file without a table: what was dropped goes with the next checkpoint.
sql CHECKPOINT
is "$(sql "SELECT string_agg(file, ' ') FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database
    WHERE datname = current_database())) AS file
           WHERE file ~ '^[0-9]' AND substring(file, '^[0-9]+')::oid NOT IN (SELECT pg_relation_filenode(oid)
           FROM pg_class WHERE pg_relation_filenode(oid) IS NOT NULL)")" \
    '' 'no file is left over'
log_is_clean
no_restart 'the server has not restarted'
done_testing
