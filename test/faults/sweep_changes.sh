#!/usr/bin/env bash
# Ends of sweeps whose variants change the database by SQL: it is as it was before, or said what is left.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/sweep.sh
. test/lib/sweep.sh

faults_start
sql 'CREATE TABLE changed AS SELECT i FROM generate_series(1, 100000) AS i' \
    "SELECT bench.create_workload('changed', 'SELECT count(*) FROM changed WHERE i = 3;')" >/dev/null
INDEX='{"v": {"sql": {"apply": ["CREATE INDEX changed_i ON changed (i)", "CREATE INDEX changed_j ON changed (i)"],
    "revert": ["DROP INDEX changed_j", "DROP INDEX changed_i"]}}}'
ARGUMENTS="'changed', '{1,2}', secs => 0.6, rounds => 2, variants => '$INDEX'"

indexes() { sql "SELECT count(*) FROM pg_indexes WHERE tablename = 'changed'"; }
left() { sql "SELECT count(*) FROM bench.sweep_changes WHERE sweep_id = $SWEEP AND revert_secs IS NULL"; }
is_undone() { # DESC
    is "$(indexes)" 0 "$1: the database is as it was"
    is "$(left)" 0 "$1: nothing is left to be undone"
}
begin_changed() { # DESC
    begin "$ARGUMENTS" 1
    # Between two rounds there are none.
    eventually 10 "SELECT count(*) = 2 FROM pg_indexes WHERE tablename = 'changed'"
    is $? 0 "$1: the indexes are there meanwhile"
    is "$(left)" 1 "$1: and written down"
}

name='completion'
begin_changed "$name"
sweep_is completed "$name"
is_undone "$name"
nothing_left "$name"

name='bench.stop_sweep'
begin_changed "$name"
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
ended_as canceled "$name"
is_undone "$name"
resumes "$name"
is_undone "$name, resumed"

name='a cancel of the caller'
caller_sweeps "$ARGUMENTS" 1
backend_signal pg_cancel_backend
ended caller 10
ended_as canceled "$name"
is_undone "$name"

name='pg_terminate_backend of the hand'
begin_changed "$name"
terminate hand
sweep_is incomplete "$name"
is_undone "$name"
is "$(in_sweep "count(*) FILTER (WHERE error LIKE 'the changes of variant%were reverted during the run')")" 1 \
    "$name: the run without them does not count"
DONE=$(completed)
resumes "$name"
is_undone "$name, resumed"

name='a fast shutdown'
begin_changed "$name"
cluster_restart
# A run may have ended until the server went down.
DONE=$(completed)
is_undone "$name"
resumes "$name"
is_undone "$name, resumed"
remember_server

name='pg_terminate_backend of the leader'
begin_changed "$name"
terminate sweep
ended_as canceled "$name"
is_undone "$name"
resumes "$name"
is_undone "$name, resumed"

# While the statements run.
SLOW='{"v": {"sql": {"apply": ["CREATE INDEX changed_i ON changed (i)", "SELECT pg_sleep(30)",
    "CREATE INDEX changed_j ON changed (i)"], "revert": ["DROP INDEX changed_j", "DROP INDEX changed_i"]}}}'
in_apply() {
    SWEEP=$(sql "SELECT bench.start_sweep('changed', '{1}', secs => 0.2, variants => '$SLOW')")
    DONE=
    eventually 10 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext hand'
        AND query LIKE '%pg_sleep%' AND state = 'active')"
    is $? 0 "$name: the statements run"
}
for end in "pg_cancel_backend(pid)" "pg_terminate_backend(pid)"; do
    name="$end in the statements"
    in_apply
    clock
    sql "SELECT $end FROM pg_stat_activity WHERE backend_type = 'pgbench_ext sweep'" >/dev/null
    ended_as canceled "$name"
    within 5000 "$name: all is over within seconds"
    is_undone "$name"
done

# The hand waits for a lock of the session that waits for the sweep.
name='a lock of the caller'
try BEGIN 'LOCK TABLE changed IN ROW EXCLUSIVE MODE' \
    "SELECT bench.sweep('changed', '{1}', secs => 0.2, variants => '$INDEX')"
like "$OUT" 'ERROR:  40P01: the sweep waits for a lock of the session that waits for the sweep' \
    "$name: the sweep says so"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
is_undone "$name"

# Another session's lock keeps the statements from being undone, for as long as a sweep waits for it.
name='a lock on what is to be undone'
begin_changed "$name"
session holder BEGIN 'SELECT count(*) FROM changed' 'SELECT pg_sleep(60)'
holds holder
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
is "$(sql "SELECT bench.wait_sweep($SWEEP, 40)" 2>&1)" 'revert failed' "$name: the sweep ends, and its status says so"
is "$(indexes) $(left)" '2 1' "$name: nothing is undone"
is "$(sql "SELECT to_revert, error FROM bench.sweep_changes WHERE sweep_id = $SWEEP AND revert_secs IS NULL")" \
    '{"DROP INDEX changed_j","DROP INDEX changed_i"}|canceling statement due to lock timeout' "$name: which is said"
leave holder
sql 'DROP INDEX changed_i' >/dev/null
DONE=$(completed)
resumes "$name"
is_undone "$name, by hand in part, and resumed"

name='statements that cannot be undone after the last run'
sql 'CREATE TABLE revertible ()' >/dev/null
SWEEP=$(sql "SELECT bench.start_sweep('changed', '{1}', secs => 0.2, variants => '{\"v\": {\"sql\": {
    \"apply\": \"CREATE INDEX changed_i ON changed (i)\",
    \"revert\": [\"SELECT 1\", \"SELECT 1 / count(*) FROM revertible\", \"DROP INDEX changed_i\"]}}}')")
sweep_is 'revert failed' "$name"
is "$(indexes) $(left)" '1 1' "$name: the index is still there"
is "$(sql "SELECT error ->> 'message', error ->> 'detail' FROM bench.sweeps WHERE sweep_id = $SWEEP")" \
    'could not revert variant "v": division by zero|Not reverted: SELECT 1 / count(*) FROM revertible;'\
' DROP INDEX changed_i' \
    "$name: the error says what is left"
sql "SELECT bench.resume_sweep($SWEEP)" >/dev/null
sweep_is 'revert failed' "$name, resumed"
sql 'INSERT INTO revertible DEFAULT VALUES' >/dev/null
DONE=$(completed)
resumes "$name, and can be"
is_undone "$name, resumed"

name='kill -9 of a client, which restarts the server'
begin_changed "$name"
kill_client
eventually 30 'SELECT true'
eventually 30 "SELECT status = 'crashed' FROM bench.sweeps WHERE sweep_id = $SWEEP"
is $? 0 "$name: the sweep is crashed"
is "$(indexes) $(left)" '2 1' "$name: what is left is said"
DONE=$(completed)
resumes "$name"
is_undone "$name, resumed"

log_is_clean_but_for_kills
done_testing
