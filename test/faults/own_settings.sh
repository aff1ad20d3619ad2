#!/usr/bin/env bash
# Settings of a role, a database or the server that end sessions or change their transactions: leaders and loaders do
# not have them, clients do and say what has ended them.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start
VERSION=$(($(sql 'SHOW server_version_num') / 10000))
sql "CREATE FUNCTION nap(id bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS \$\$ BEGIN
         IF id % 100 = 0 THEN PERFORM pg_sleep(0.1); END IF;
         RETURN id;
     END \$\$" \
    "CREATE FUNCTION last_words(id bigint) RETURNS bigint LANGUAGE plpgsql AS \$\$ BEGIN
         PERFORM set_config('exit_on_error', 'on', false);
         RAISE EXCEPTION 'no row %', id USING ERRCODE = '22023', DETAIL = 'It is the last one.';
     END \$\$" \
    "SELECT bench.create_fixture('slow_index', 'CREATE TABLE slow_index (id bigint)',
        'SELECT id FROM generate_series(\$1, \$2) AS id', 'CREATE INDEX ON slow_index (nap(id))')" \
    "SELECT bench.create_fixture('isolation', 'CREATE TABLE isolation (id bigint, level text)',
        'SELECT id, current_setting(''transaction_isolation'') FROM generate_series(\$1, \$2) AS id')" \
    "SELECT bench.create_fixture('dying', 'CREATE TABLE dying (id bigint)',
        'SELECT last_words(id) FROM generate_series(\$1, \$2) AS id')" \
    "SELECT bench.create_workload('sleep', 'SELECT pg_sleep(300)')" \
    "SELECT bench.create_workload('divide', 'SELECT 1 / 0')" >/dev/null

OWN='SET default_transaction_read_only = off; SET statement_timeout = 0; SET lock_timeout = 0;
    SET exit_on_error = off; SET default_transaction_isolation = DEFAULT'

# with DATABASE-SETTING VALUE COMMAND…: the command while the database has it
with() {
    local name=$1 value=$2
    shift 2
    sql "ALTER DATABASE postgres SET $name = '$value'"
    "$@"
    sql "$OWN" "ALTER DATABASE postgres RESET $name"
}

loads() { # NAME CALL
    try "$OWN" "SELECT $2"
    like "$OUT" '(^|'$'\n'')[0-9]+$' "$1: $2 works"
    unlike "$OUT" 'ERROR|FATAL' "$1: $2 meets no error"
}
with default_transaction_read_only on loads 'a read-only database' "bench.load('pk', 2000, 2)"
with default_transaction_isolation serializable loads 'a database with another isolation level' \
    "bench.load('isolation', 2000, 2)"
is "$(sql 'SELECT level, count(*) FROM bench_data.isolation GROUP BY level')" 'read committed|2000' \
    'a database with another isolation level: rows are made in read committed'
with exit_on_error on loads 'a database with exit_on_error' "bench.load('pk', 2000, 2)"
with statement_timeout 1s loads 'a database with a statement_timeout' "bench.load('slow_index', 6000)"

name='a database with a lock_timeout'
sql "ALTER DATABASE postgres SET lock_timeout = '100ms'"
session holder 'SET lock_timeout = 0' BEGIN 'SELECT count(*) FROM bench_data.pk' 'SELECT pg_sleep(300)'
holds holder
session loading 'SET lock_timeout = 0' "SELECT bench.load('pk', 3000, 2)"
eventually 20 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext load'
    AND wait_event_type = 'Lock' AND clock_timestamp() > query_start + interval '300 ms')" ||
    tap_fail "$name: the leader waits for a lock"
leave holder
ended loading
like "$OUT" '(^|'$'\n'')3000$' "$name: the leader waits longer for a lock"
sql 'ALTER DATABASE postgres RESET lock_timeout'

# What a system variant sets for its clients, the sweep's leader does not need to have.
sweeps() { # PARAMETER VALUE
    local sweep
    sweep=$(sql "SELECT bench.start_sweep('pk_select', '{1}', secs => 0.3, rounds => 1, before => 'checkpoint',
        variants => '{\"a\": {\"system\": {\"$1\": \"$2\"}}}')")
    is "$(sql "SELECT bench.wait_sweep($sweep)")" completed "a system variant with $1: the sweep is completed"
    is "$(sql "SELECT error FROM bench.sweeps WHERE sweep_id = $sweep")" '' "a system variant with $1: without an error"
    is "$(sql "SELECT status FROM bench.runs WHERE sweep_id = $sweep")" completed \
        "a system variant with $1: so is its run"
}
sweeps default_transaction_isolation 'repeatable read'
sweeps default_transaction_read_only on
sweeps default_transaction_deferrable on
sweeps lock_timeout 50ms

# What ends a client is what its run says.
ends() { # NAME WORKLOAD SQLSTATE MESSAGE [SETTINGS]
    local run
    run=$(sql "$OWN" "SELECT bench.start('$2', clients => 2, secs => 60, settings => '${5:-{\}}')")
    status_is "$run" incomplete "$1"
    is "$(sql "SELECT error ->> 'sqlstate', error ->> 'message', error ->> 'detail' FROM bench.runs
        WHERE run_id = $run")" \
        "$3|$4|2 of 2 clients ended early." "$1: the run says why"
    is "$(sql "SELECT sqlstate, message, count FROM bench.errors WHERE run_id = $run")" "$3|$4|2" \
        "$1: bench.errors has it once for each client"
}
ends 'a client with exit_on_error' divide 22012 'division by zero' '{"exit_on_error": "on"}'
try "SELECT bench.load('dying', 10, 1)"
like "$OUT" 'ERROR:  22023: no row 1' "a loader's last error: is the load's"
like "$OUT" 'DETAIL:  It is the last one\.' "a loader's last error: with its detail"
nothing_left "a loader's last error"

if [ "$VERSION" -ge 17 ]; then
    OWN="$OWN; SET transaction_timeout = 0"
    with transaction_timeout 1s loads 'a database with a transaction_timeout' "bench.load('slow_index', 6000)"
    TIMEOUT='terminating connection due to transaction timeout'
    PGOPTIONS='-c transaction_timeout=0' \
        with transaction_timeout 1s ends 'a database with a transaction_timeout' sleep 25P04 "$TIMEOUT"
    ends 'a run with a transaction_timeout' sleep 25P04 "$TIMEOUT" '{"transaction_timeout": "1s"}'
    sweeps transaction_timeout 2s
else
    skip 'the server has none before 17' 'transaction_timeout'
fi
nothing_left 'at the end'
no_restart 'the server has not restarted'
log_is_clean
done_testing
