#!/usr/bin/env bash
# Statements that fail, inside BEGIN … END above all: each aborts its transaction, is counted, ends its
# client or is retried, and does nothing to the server.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start
sql 'CREATE TABLE acct (id int PRIMARY KEY, n int NOT NULL CHECK (n < 1000000))' \
    'INSERT INTO acct SELECT g, 0 FROM generate_series(1, 20) g' \
    'CREATE TABLE parent (id int PRIMARY KEY)' \
    'CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)' \
    "CREATE FUNCTION fail(state text, message text) RETURNS void LANGUAGE plpgsql AS \$\$ BEGIN RAISE
        EXCEPTION '%', message USING ERRCODE = state; END \$\$" \
    "CREATE PROCEDURE commits_and_fails() LANGUAGE plpgsql AS \$\$ BEGIN UPDATE acct SET n = n + 1 WHERE id = 3; COMMIT;
        UPDATE acct SET n = n + 1 WHERE id = 3; PERFORM 1 / 0; END \$\$" >/dev/null

workload() { # SCRIPT [FIXTURE]
    psql -XAtq -v ON_ERROR_STOP=1 -v script="$1" -v fixture="${2:-}" >/dev/null \
        <<<"SELECT bench.create_workload('w', :'script', nullif(:'fixture', ''));"
}

total() { sql 'SELECT sum(n) FROM acct'; }
reset() { sql 'UPDATE acct SET n = 0' 'TRUNCATE child'; }
figures() {
    sql "SELECT coalesce(transactions, 0), coalesce(failed, 0), coalesce(aborted, 0)
        FROM bench.summary WHERE run_id = $RUN"
}

# A script whose transaction fails at the first attempt: each client ends with it.
fails() { # NAME SQLSTATE SCRIPT [FIXTURE [ARGUMENTS [TRANSACTIONS that count as processed]]]
    reset
    workload "$3" "${4:-}" || { tap_fail "$1: the workload can be created"; return; }
    try "SELECT bench.run('w', clients => 2, transactions => 5${5:+, $5})" "SELECT 'usable'"
    RUN=$(last_run)
    like "$OUT" "WARNING.*run $RUN is incomplete.*2 of 2 clients ended early.*usable" "$1: the caller is warned"
    status_is "$RUN" incomplete "$1"
    is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" "$2|2" \
        "$1: bench.errors has $2 of both clients"
    is "$(error_of "$RUN")" "$2" "$1: the run's error is $2"
    is "$(figures)" "${6:-0}|0|2" "$1: the clients are counted as aborted, not their transactions as failed"
    is "$(total)" 0 "$1: what the block did is rolled back"
    nothing_left "$1"
    no_restart "$1: the server has not restarted"
}

# A script that needs no error: what it did adds up.
works() { # NAME SCRIPT TOTAL [ARGUMENTS]
    reset
    workload "$2"
    try "SELECT bench.run('w', clients => 2, transactions => 5${4:+, $4})"
    RUN=$(last_run)
    status_is "$RUN" completed "$1"
    is "$(figures)" '10|0|0' "$1: all are done, none has failed"
    is "$(total)" "$3" "$1: the data add up"
    nothing_left "$1"
    no_restart "$1: the server has not restarted"
}

ADD='UPDATE acct SET n = n + 1 WHERE id = 1 + :client_id;'

fails 'division by zero in a block' 22012 "BEGIN;
$ADD
SELECT 1 / n FROM acct WHERE id = 20;
END;"
fails 'unique violation in a block' 23505 "BEGIN;
$ADD
INSERT INTO acct VALUES (1, 0);
END;"
fails 'check violation in a block' 23514 "BEGIN;
$ADD
UPDATE acct SET n = 1000000 WHERE id = 5;
END;"
fails 'a deferred constraint at COMMIT' 23503 "BEGIN;
$ADD
INSERT INTO child VALUES (99);
COMMIT;"
fails 'ROLLBACK TO an unknown savepoint' 3B001 "BEGIN;
$ADD
ROLLBACK TO SAVEPOINT nowhere;
END;"
fails 'RELEASE of an unknown savepoint' 3B001 "BEGIN;
$ADD
SAVEPOINT here;
RELEASE SAVEPOINT nowhere;
END;"
fails 'SAVEPOINT outside a block' 25P01 "SAVEPOINT nowhere;
SELECT 1;"
fails 'an error below a savepoint' 22012 "BEGIN;
SAVEPOINT one;
$ADD
SAVEPOINT two;
SELECT 1 / 0;
ROLLBACK TO SAVEPOINT one;
END;"
fails 'SET TRANSACTION ISOLATION LEVEL after a query' 25001 "BEGIN;
$ADD
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
END;"
fails 'an error with an open cursor' 22012 "BEGIN;
$ADD
DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 10000) g;
FETCH 5 FROM c;
SELECT 1 / 0;
END;"
fails 'an error while a cursor is fetched' 22012 "BEGIN;
$ADD
DECLARE c CURSOR FOR SELECT 1 / (3 - g) FROM generate_series(1, 10) g;
FETCH 5 FROM c;
END;"
fails 'statement_timeout in a block' 57014 "BEGIN;
$ADD
SELECT pg_sleep(10);
END;" '' "settings => '{\"statement_timeout\": \"100ms\"}'"
# With prepared clients the lock is met within the run: LOCK TABLE is not looked at before.
session holder BEGIN 'LOCK TABLE parent IN ACCESS SHARE MODE' 'SELECT pg_sleep(60)'
holds holder
fails 'lock_timeout in a block' 55P03 "BEGIN;
$ADD
LOCK TABLE parent;
END;" '' "settings => '{\"lock_timeout\": \"100ms\"}'"
leave holder
fails 'a read-only block' 25006 "BEGIN READ ONLY;
SELECT count(*) FROM acct;
$ADD
END;"
fails 'PREPARE TRANSACTION where there can be none' 55000 "BEGIN;
$ADD
PREPARE TRANSACTION 'it';"
fails 'VACUUM in a block' 25001 "BEGIN;
$ADD
VACUUM acct;
END;"
fails 'CALL in a block of a procedure that commits' 2D000 "BEGIN;
CALL commits_and_fails();
END;"
fails 'an error in a \set in a block' 22012 "BEGIN;
$ADD
\\set x 1 / (:client_id - :client_id)
END;"
fails 'a failing DO in a block' P0001 "BEGIN;
$ADD
DO \$\$ BEGIN RAISE EXCEPTION 'no'; END \$\$;
END;"
fails 'DDL and an error in a block' 42P07 "BEGIN;
$ADD
CREATE TABLE IF NOT EXISTS child (id int);
CREATE TABLE acct (id int);
END;"
fails 'a table dropped in the block' 42P01 "BEGIN;
$ADD
DROP TABLE child;
SELECT count(*) FROM child;
END;"
is "$(sql "SELECT to_regclass('child') IS NOT NULL")" t 'a table dropped in the block: is back'
fails 'a long message in several bytes a character' P0001 "BEGIN;
$ADD
SELECT fail('P0001', repeat('äöü€', 5000));
END;"
like "$(sql "SELECT message FROM bench.errors WHERE run_id = $RUN")" '^(äöü€)+' \
    'a long message in several bytes a character: its beginning is kept'
fails 'BEGIN without END' 25001 "BEGIN;
$ADD" '' '' 2
like "$OUT" 'end of script reached without completing the last transaction' 'BEGIN without END: says so as pgbench does'
fails 'COMMIT AND CHAIN' 25001 "BEGIN;
SELECT 1;
COMMIT AND CHAIN;" '' '' 2
is "$(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")" 0 'no session lock is left'

# An error of the audit's: rolled-back work counts on the server as well.
workload 'BEGIN;
\set id random(1, :rows)
UPDATE pk SET crt_time = now() WHERE id = :id;
SELECT 1 / (random() * 0)::int;
END;' pk
try "SELECT bench.run('w', clients => 2, transactions => 5)"
RUN=$(last_run)
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE counter IN ('n_tup_upd', 'idx_scan') AND ok IS NULL
    AND reason LIKE '%rolled back%'")" 2 \
    'rolled-back work on the fixture: the audit says why it does not judge'
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 \
    'rolled-back work on the fixture: the audit does not accuse'

# Half a script: what was committed before the error stays.
reset
workload "$ADD
SELECT 1 / 0;"
try "SELECT bench.run('w', clients => 2, transactions => 5)"
RUN=$(last_run)
status_is "$RUN" incomplete 'an error after a committed statement'
is "$(total)" 2 'an error after a committed statement: that one stays'
is "$(figures)" '0|0|2' 'an error after a committed statement: the client is aborted'
reset
workload 'CALL commits_and_fails();'
try "SELECT bench.run('w', clients => 2, transactions => 5)"
RUN=$(last_run)
status_is "$RUN" incomplete 'a procedure that commits and then fails'
is "$(total)" 2 'a procedure that commits and then fails: what it committed stays'
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '22012|2' \
    'a procedure that commits and then fails: bench.errors has it'
no_restart 'a procedure that commits and then fails: the server has not restarted'

# Only warnings, as in every session.
works 'ROLLBACK without BEGIN' "$ADD
ROLLBACK;" 10
works 'END without BEGIN' "$ADD
END;" 10
works 'BEGIN in a block' "BEGIN;
BEGIN;
$ADD
END;" 10
works 'ROLLBACK of a block' "BEGIN;
$ADD
ROLLBACK;" 0
works 'savepoints that are rolled back and released' "BEGIN;
$ADD
SAVEPOINT one;
$ADD
ROLLBACK TO SAVEPOINT one;
SAVEPOINT two;
$ADD
RELEASE SAVEPOINT two;
END;" 20
works 'COMMIT AND CHAIN that is ended' "BEGIN;
$ADD
COMMIT AND CHAIN;
$ADD
ROLLBACK;" 10
works 'a DO that catches an error' "BEGIN;
$ADD
DO \$\$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END \$\$;
END;" 10
works 'VACUUM, DISCARD PLANS and a cursor' "VACUUM acct;
DISCARD PLANS;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM acct;
FETCH 3 FROM c;
$ADD
CLOSE c;
END;" 10
works 'temporary tables' "BEGIN;
CREATE TEMPORARY TABLE temp_acct ON COMMIT DROP AS SELECT * FROM acct;
$ADD
END;" 10
works 'PREPARE, EXECUTE and DEALLOCATE' "PREPARE add AS UPDATE acct SET n = n + 1 WHERE id = 7;
BEGIN;
EXECUTE add;
END;
DEALLOCATE add;" 10

# Whatever it does, it does no harm to the server.
harmless() { # NAME SCRIPT
    workload "$2"
    try "SELECT bench.run('w', clients => 2, transactions => 3)" "SELECT 'usable'"
    like "$OUT" usable "$1: the session is usable"
    like "$(sql "SELECT status FROM bench.runs WHERE run_id = $(last_run)")" '^(completed|incomplete|failed)$' \
        "$1: the run has an end"
    nothing_left "$1"
    no_restart "$1: the server has not restarted"
}
harmless 'LISTEN and NOTIFY in a block' 'BEGIN; LISTEN x; NOTIFY x; END;'
harmless 'NOTIFY' 'NOTIFY x;'
harmless 'termination of itself in a block' "BEGIN; $ADD SELECT pg_terminate_backend(pg_backend_pid()); END;"
harmless 'cancel of itself in a block' \
    "BEGIN; $ADD SELECT pg_cancel_backend(pg_backend_pid()); SELECT pg_sleep(1); END;"
harmless 'an error of a session lock' "SELECT pg_advisory_lock(:client_id); SELECT 1 / 0;"

# Found when the statements are prepared: nothing was measured.
fails_before() { # NAME SQLSTATE SCRIPT
    workload "$3"
    try "SELECT bench.run('w', clients => 2, transactions => 5)" "SELECT 'usable'"
    RUN=$(last_run)
    like "$OUT" "ERROR:  $2.*usable" "$1: the caller gets $2"
    status_is "$RUN" failed "$1"
    is "$(error_of "$RUN")" "$2" "$1: the run's error is $2"
    nothing_left "$1"
    no_restart "$1: the server has not restarted"
}
fails_before 'an unknown table' 42P01 'BEGIN; SELECT * FROM nowhere; END;'
fails_before 'COPY … FROM STDIN' 0A000 "BEGIN; COPY child FROM STDIN; END;"
fails_before 'COPY … TO STDOUT' 0A000 'COPY acct TO STDOUT;'

# Serialization failures: four clients want the same row.
CONFLICT='SELECT n FROM acct WHERE id = 1;
SELECT pg_sleep(0.001);
UPDATE acct SET n = n + 1 WHERE id = 1;
END;'
SKEW='SELECT sum(n) FROM acct;
SELECT pg_sleep(0.001);
UPDATE acct SET n = n + 1 WHERE id = 1 + :client_id;
END;'
conflicts() { # NAME SCRIPT MAX-TRIES [SETTINGS]
    reset
    workload "$2"
    # No limit of tries needs a limit of time.
    local extent='transactions => 25'
    [ "$3" -ne 0 ] || extent='secs => 0.5'
    try "SELECT bench.run('w', clients => 4, $extent, max_tries => $3, settings => '${4:-{\}}')" "SELECT 'usable'"
    RUN=$(last_run)
    like "$OUT" usable "$1: the session is usable"
    status_is "$RUN" completed "$1"
    local finished failed retried errors
    IFS='|' read -r finished failed retried \
        <<<"$(sql "SELECT transactions, failed, retried FROM bench.summary WHERE run_id = $RUN")"
    errors=$(sql "SELECT string_agg(sqlstate, ' '), sum(count) FROM bench.errors WHERE run_id = $RUN")
    if [ "$3" -ne 0 ]; then
        is "$((finished + failed))" 100 "$1: each transaction is done or has failed"
        is "$(total)" "$finished" "$1: the data say what is done"
    else
        # Each client's last may have ended after the measuring, and the first before it.
        ok "$1: the data say what is done" test "$(total)" -ge "$finished" -a "$(total)" -le $((finished + 12))
    fi
    like "$errors" '^40001\|' "$1: bench.errors has 40001 and nothing else"
    errors=${errors#*|}
    case $3 in
    1)
        is "$errors" "$failed" "$1: each error is a failed transaction"
        is "$retried" 0 "$1: nothing is retried"
        ;;
    0)
        is "$failed" 0 "$1: nothing has failed"
        ok "$1: some are retried, each after an error" test "$retried" -gt 0 -a "$retried" -le "$errors"
        ;;
    *)
        ok "$1: errors are $3 for each failed one, and those of the retried" \
            test "$errors" -ge $(($3 * failed)) -a "$errors" -le $(($3 * failed + ($3 - 1) * finished))
        ok "$1: some are retried" test "$retried" -gt 0
        ;;
    esac
    is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE ok IS NOT NULL AND counter LIKE 'n_tup%'")" 0 \
        "$1: the audit does not judge the tables"
    nothing_left "$1"
    no_restart "$1: the server has not restarted"
}
for tries in 1 3 0; do
    conflicts "REPEATABLE READ in BEGIN, max_tries $tries" "BEGIN ISOLATION LEVEL REPEATABLE READ;
$CONFLICT" $tries
    conflicts "SERIALIZABLE by SET TRANSACTION, max_tries $tries" "BEGIN;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
$SKEW" $tries
done
conflicts 'SERIALIZABLE by settings, max_tries 3' "BEGIN;
$SKEW" 3 '{"default_transaction_isolation": "serializable"}'
conflicts 'REPEATABLE READ, an error below a savepoint, max_tries 0' "BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT n FROM acct WHERE id = 1;
SAVEPOINT one;
$CONFLICT" 0

# Deadlocks: two rows in either order.
reset
workload '\set a random(1, 2)
BEGIN;
UPDATE acct SET n = n + 1 WHERE id = :a;
SELECT pg_sleep(0.001);
UPDATE acct SET n = n + 1 WHERE id = 3 - :a;
END;'
try "SELECT bench.run('w', clients => 4, transactions => 20, max_tries => 1000,
    settings => '{\"deadlock_timeout\": \"5ms\"}')"
RUN=$(last_run)
status_is "$RUN" completed 'deadlocks'
is "$(figures)" '80|0|0' 'deadlocks: all are done in the end'
is "$(sql 'SELECT string_agg(n::text, $$ $$) FROM acct WHERE id <= 2')" '80 80' 'deadlocks: the data add up'
is "$(sql "SELECT sqlstate, count > 0 FROM bench.errors WHERE run_id = $RUN")" '40P01|t' \
    'deadlocks: bench.errors has them'
is "$(sql "SELECT retried > 0 FROM bench.summary WHERE run_id = $RUN")" t 'deadlocks: some are retried'
nothing_left 'deadlocks'

# With no limit, a run by time ends in time: a transaction that always fails is given up.
workload "BEGIN;
SELECT fail('40001', 'never');
END;"
clock
try "SELECT bench.run('w', clients => 2, secs => 0.5, max_tries => 0)"
within 4000 'max_tries 0 and nothing but failures: the run ends in time'
status_is "$(last_run)" completed 'max_tries 0 and nothing but failures'
RUN=$(sql "SELECT bench.start('w', clients => 2, secs => 60, max_tries => 0)")
clock
is "$(sql "SELECT bench.stop($RUN)")" t 'max_tries 0 and nothing but failures: can be stopped'
nothing_left 'max_tries 0 and nothing but failures'
within 3000 'max_tries 0 and nothing but failures: the stop is prompt'

log_is_clean
still_works 'at the end'
no_restart 'the server has not restarted'
done_testing
