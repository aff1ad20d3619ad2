#!/usr/bin/env bash
# Scripts that turn the harness against itself: runs within runs, their own run stopped, workloads, fixtures and the
# extension dropped under them, memory that should not grow.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh

#
# The harness turned against itself
#
harmless() { # NAME ROLE SCRIPT [ARGUMENTS [CLIENTS]]
    psql -XAtq -v script="$3" -v role="$2" >"$work/made" 2>&1 \
        <<<"SET ROLE :role; SELECT bench.create_workload('w_' || :'role', :'script');"
    try "SET ROLE $2" "SELECT bench.run('w_$2', clients => ${5:-2}, ${4:-transactions => 2})" 'RESET ROLE' \
        "SELECT 'usable'"
    like "$OUT" usable "$1: the session is usable"
    ok "$1: every run has an end" eventually 90 \
        "SELECT count(*) = 0 FROM bench.runs WHERE status NOT IN ('completed', 'incomplete', 'canceled', 'failed')"
    is "$(psql -XAtq -f "$work/after.sql")" "$SERVER" "$1: the server is up, nothing is left"
}
in_role 'SELECT 1;'
sql 'SET ROLE eve' "SELECT bench.create_workload('inner', 'SELECT 1;')" >/dev/null
for mode in simple extended prepared; do
    harmless "bench.run in a script ($mode)" eve "SELECT bench.run('inner', transactions => 3);" \
        "transactions => 2, query_mode => '$mode'"
    is "$(sql "SELECT status FROM bench.runs ORDER BY run_id LIMIT 1 OFFSET (SELECT count(*) FROM bench.runs) - 5" |
        head -n 1)" completed "bench.run in a script ($mode): the outer run is complete"
done
harmless 'bench.run in a block of a script' eve "BEGIN;
$ADD
SELECT bench.run('inner', transactions => 3);
END;"
harmless 'bench.start in a script' eve "SELECT bench.wait(bench.start('inner', transactions => 3));"
for mode in simple extended prepared; do
    clock
    harmless "bench.stop of its own run ($mode)" eve "$ADD
SELECT bench.stop(max(run_id)) FROM bench.runs;" "secs => 30, query_mode => '$mode'"
    within 15000 "bench.stop of its own run ($mode): the run ends"
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $(last_run)")" canceled \
        "bench.stop of its own run ($mode): it is canceled"
done
harmless 'bench.wait of its own run' eve "SELECT bench.wait(max(run_id), 1) FROM bench.runs;" 'transactions => 1'
harmless 'its own workload replaced and dropped' eve "SELECT bench.create_workload('w_eve', 'SELECT 2;');
SELECT bench.drop_workload('w_eve');"
harmless 'bench.preview in a script' eve "SELECT * FROM bench.preview('SELECT :client_id;', 100);"
harmless 'its fixture unloaded' postgres "SELECT bench.unload('pk');"
sql "SELECT bench.load('pk', 1000)" >/dev/null 2>&1
harmless 'a fixture loaded in a script' postgres "SELECT bench.load('wide', 10, jobs => 1);" 'transactions => 1'
harmless 'its own coordinator terminated' postgres "SELECT pg_terminate_backend(pid), pg_sleep(5) FROM pg_stat_activity
    WHERE backend_type = 'pgbench_ext coordinator';" 'secs => 20'
harmless 'the other clients terminated' postgres "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE backend_type = 'pgbench_ext client' AND pid <> pg_backend_pid();" 'secs => 1'
harmless 'the tables of results locked' postgres "BEGIN;
LOCK bench_internal.run_log, bench.samples, bench.latencies, bench_internal.error_log IN ACCESS EXCLUSIVE MODE;
SELECT pg_sleep(0.5);
END;" 'secs => 2, sample_interval => 0.1'
harmless 'databases made and dropped by several' postgres "SELECT 1;
\\if :client_id = 0
CREATE DATABASE made;
DROP DATABASE made;
\\endif"
harmless 'indexes made concurrently by several' eve "\\if :client_id = 0
CREATE INDEX CONCURRENTLY IF NOT EXISTS acct_n ON acct (n);
DROP INDEX CONCURRENTLY IF EXISTS acct_n;
\\else
$ADD
\\endif" 'transactions => 5'
harmless 'tables rewritten by several' eve "VACUUM FULL acct;
CLUSTER acct USING acct_pkey;
$ADD
ALTER TABLE acct ALTER n TYPE bigint;
SELECT * FROM acct;
ALTER TABLE acct ALTER n TYPE int;" 'transactions => 5, max_tries => 10'

# A client's memory does not grow, whatever it does and however often it fails.
sql 'CREATE TABLE used (n serial, bytes bigint)'
grows_not() { # NAME SCRIPT
    local mode
    for mode in $MODES; do
        sql 'TRUNCATE used RESTART IDENTITY'
        harmless "$1 ($mode)" postgres "INSERT INTO used (bytes) SELECT sum(used_bytes) FROM pg_backend_memory_contexts;
$2" "transactions => 1200, query_mode => '$mode', settings => '{\"log_min_messages\": \"log\"}'" 1
        is "$(sql "SELECT count(*), max(bytes) FILTER (WHERE n = 1200) - max(bytes) FILTER (WHERE n = 200) < 65536
            FROM used")" '1200|t' "$1 ($mode): the client has not grown"
    done
}
grows_not 'memory after all kinds of statements' "SELECT n AS m, repeat('x', 100) AS t FROM acct WHERE id = 1 \\gset
UPDATE acct SET n = n + 1 WHERE id = :client_id + 1 RETURNING id AS k \\aset p_
DO 'BEGIN PERFORM 1; END';
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM acct;
FETCH 3 FROM c;
SAVEPOINT s;
ROLLBACK TO s;
END;"
# These clients are sessions of a superuser, which call no function of eve's.
sql 'ALTER FUNCTION fail OWNER TO postgres'
grows_not 'memory after errors' "BEGIN;
SELECT repeat('x', 100) AS t \\gset
SELECT fail('40001');
END;"

# Another session that changes a table under the clients' plans.
in_role "SELECT * FROM acct WHERE id = 1;
$ADD_TOO"
for mode in simple extended prepared; do
    RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, secs => 20, sample_interval => 0.1,
        query_mode => '$mode')")
    eventually 10 "SELECT count(*) >= 2 FROM bench.samples WHERE run_id = $RUN"
    sql 'ALTER TABLE acct ADD COLUMN extra int DEFAULT 1'
    sleep 0.3
    sql "SELECT bench.stop($RUN)" 'ALTER TABLE acct DROP COLUMN extra' >/dev/null
    if [ "$mode" = prepared ]; then
        status_is "$RUN" incomplete "a column added during a run ($mode)"
        is "$(sql "SELECT sqlstate, message FROM bench.errors WHERE run_id = $RUN")" \
            '0A000|cached plan must not change result type' \
            "a column added during a run ($mode): the server's own error"
    else
        status_is "$RUN" canceled "a column added during a run ($mode)"
        is "$(sql "SELECT sqlstate, message FROM bench.errors WHERE run_id = $RUN")" '' \
            "a column added during a run ($mode): no error"
    fi
    nothing_left "a column added during a run ($mode)"
done

harmless 'the right to run taken away' postgres "REVOKE EXECUTE ON FUNCTION bench.run FROM eve;
ALTER ROLE eve NOLOGIN;"
sql 'ALTER ROLE eve LOGIN' 'GRANT EXECUTE ON FUNCTION bench.run TO eve'
harmless 'all that it owns dropped' eve 'DROP OWNED BY eve;'

# Last, for nothing of the extension is left after it.
name='the extension dropped by its own script'
sql "SELECT bench.create_workload('w_drops', 'DROP EXTENSION pgbench_ext CASCADE;')" >/dev/null
try "SELECT bench.run('w_drops', secs => 2, sample_interval => 0.1, settings => '{\"lock_timeout\": \"3s\"}')" \
    "SELECT 'usable'"
like "$OUT" usable "$name: the session is usable"
eventually 20 "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'"
nothing_left "$name" 20
no_restart "$name: the server has not restarted"
try 'DROP EXTENSION IF EXISTS pgbench_ext CASCADE' 'DROP SCHEMA bench_data CASCADE' 'CREATE EXTENSION pgbench_ext' \
    "SELECT bench.load('pk', 1000)"
still_works "$name, and created again"

script_done
