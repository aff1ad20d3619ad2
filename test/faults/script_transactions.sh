#!/usr/bin/env bash
# Scripts with transactions of all kinds: blocks, savepoints, modes, two-phase commit, several statements at once.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh
# shellcheck disable=SC2034 # for as_pgbench
# On other versions only the server's part of a script can differ.
if [ -n "${ELSEWHERE:-}" ]; then DRIVERS=engine; else DRIVERS='engine wire'; fi

#
# Transactions
#
as_pgbench 'BEGIN left open' "$ADD_TOO
BEGIN;
$ADD"
as_pgbench 'COMMIT without BEGIN' "$ADD
COMMIT;
ROLLBACK;
END;"
as_pgbench savepoints "BEGIN;
SAVEPOINT a;
$ADD
ROLLBACK TO a;
SAVEPOINT b;
$ADD_TOO
RELEASE b;
COMMIT;"
as_pgbench 'a savepoint that is not there' "BEGIN;
$ADD
ROLLBACK TO nowhere;
END;"
as_pgbench 'an error below a savepoint ends the client all the same' "BEGIN;
$ADD
SAVEPOINT a;
SELECT 1 / 0;
ROLLBACK TO a;
END;"
for kind in 'ISOLATION LEVEL SERIALIZABLE' 'ISOLATION LEVEL REPEATABLE READ, READ WRITE' \
    'ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE' 'READ ONLY'; do
    as_pgbench "START TRANSACTION $kind" "START TRANSACTION $kind;
SELECT count(*) FROM acct;
$ADD
COMMIT;"
done
as_pgbench 'SET TRANSACTION as the first statement' "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
INSERT INTO trail VALUES (current_setting('transaction_isolation'));
BEGIN;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE;
INSERT INTO trail VALUES (current_setting('transaction_isolation'));
END;"
as_pgbench 'SET TRANSACTION too late' "BEGIN;
SELECT 1;
$ADD
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
END;"
as_pgbench 'SET SESSION CHARACTERISTICS' "INSERT INTO trail VALUES (current_setting('transaction_isolation'));
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
as_pgbench 'SET CONSTRAINTS' "BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
$ADD
END;"
as_pgbench 'COMMIT AND CHAIN' "BEGIN ISOLATION LEVEL REPEATABLE READ;
$ADD
COMMIT AND CHAIN;
INSERT INTO trail VALUES (current_setting('transaction_isolation'));
ROLLBACK AND NO CHAIN;
$ADD"
as_pgbench '\if around BEGIN and COMMIT' "SELECT count(*) AS i FROM trail \\gset
INSERT INTO trail VALUES ('so far ' || (:i)::text);
\\if :i % 2 = 0
BEGIN;
\\endif
$ADD
\\if :i % 2 = 0
\\if :i = 0
ROLLBACK;
\\else
COMMIT;
\\endif
\\endif"
as_pgbench '\if that leaves a block open' "\\if :client_id = 0
BEGIN;
\\else
SELECT 1;
\\endif
$ADD"
as_pgbench 'a branch that is never entered' "\\if false
SELECT 1 / 0;
\\elif :client_id > 5
\\set x 1 / 0
\\else
$ADD
\\endif"
as_pgbench 'empty statements' ";
;;
$ADD
/* nothing */;
;"

#
# Several statements at once: one transaction unless they say otherwise
#
for mode in extended prepared; do
    MODES=$mode
    as_pgbench 'several statements at once' "${ADD%;}\\; $ADD_TOO"
done
MODES=simple
as_pgbench 'all of it' "${ADD%;}\\; ${ADD_TOO%;}\\; SELECT 1;"
as_pgbench 'nothing of it' "${ADD%;}\\; SELECT 1 / 0\\; $ADD_TOO"
as_pgbench 'a syntax error in the last' "${ADD%;}\\; SELEC 1;"
as_pgbench 'an explicit block' "BEGIN\\; ${ADD%;}\\; COMMIT\\; ${ADD_TOO%;}\\; SELECT 1 / 0;"
as_pgbench 'a COMMIT in the middle' "${ADD%;}\\; COMMIT\\; ${ADD_TOO%;}\\; SELECT 1;"
as_pgbench 'a ROLLBACK in the middle' "${ADD%;}\\; ROLLBACK\\; ${ADD_TOO%;}\\; SELECT 1;"
as_pgbench 'a BEGIN in the middle' "${ADD%;}\\; BEGIN\\; $ADD_TOO
ROLLBACK;
$ADD"
as_pgbench 'a BEGIN at the end' "${ADD%;}\\; BEGIN;"
as_pgbench 'a SAVEPOINT' "${ADD%;}\\; SAVEPOINT a\\; $ADD_TOO"
as_pgbench 'COMMIT AND CHAIN in the middle' "BEGIN\\; ${ADD%;}\\; COMMIT AND CHAIN\\; ${ADD_TOO%;}\\; ROLLBACK;"
as_pgbench 'a VACUUM' "${ADD%;}\\; VACUUM acct;"
as_pgbench 'a VACUUM first' "VACUUM acct\\; $ADD"
as_pgbench 'a procedure that commits' "CALL commits()\\; $ADD_TOO"
as_pgbench 'a block and a procedure that commits' "BEGIN\\; ${ADD%;}\\; END\\; CALL commits();"
as_pgbench 'a table made, used and dropped' "CREATE TABLE made (x int)\\; INSERT INTO made VALUES (1)\\;
    UPDATE acct SET n = n + (SELECT sum(x) FROM made) WHERE id = 1\\; DROP TABLE made;"
as_pgbench 'SET LOCAL' "SET LOCAL work_mem = '1MB'\\; INSERT INTO trail VALUES (current_setting('work_mem'));
INSERT INTO trail VALUES (current_setting('work_mem'));"
as_pgbench 'a cursor' "DECLARE c CURSOR FOR SELECT 1\\; FETCH c\\; $ADD"
as_pgbench 'PREPARE TRANSACTION' "BEGIN\\; ${ADD%;}\\; PREPARE TRANSACTION 'it'\\; COMMIT PREPARED 'it';"
as_pgbench 'nothing but semicolons' "\\;\\; ;
$ADD"
as_pgbench 'statement_timeout counts for each' "SELECT pg_sleep(0.3)\\; SELECT pg_sleep(0.3)\\; ${ADD%;}\\;
    SELECT pg_sleep(0.3);" '{"statement_timeout": "600ms"}' '-c statement_timeout=600ms'
MODES='simple extended prepared'

#
# Two-phase commit
#
as_pgbench 'PREPARE TRANSACTION and COMMIT PREPARED' "BEGIN;
$ADD
PREPARE TRANSACTION 'it';
COMMIT PREPARED 'it';"
as_pgbench 'PREPARE TRANSACTION and ROLLBACK PREPARED' "BEGIN;
$ADD
PREPARE TRANSACTION 'it';
$ADD_TOO
ROLLBACK PREPARED 'it';"
as_pgbench 'PREPARE TRANSACTION that is left' "BEGIN;
INSERT INTO trail VALUES ('prepared');
PREPARE TRANSACTION 'left';"
as_pgbench 'COMMIT PREPARED in a block' "BEGIN;
$ADD
COMMIT PREPARED 'it';
END;"
as_pgbench 'PREPARE TRANSACTION without BEGIN' "$ADD
PREPARE TRANSACTION 'it';"
as_pgbench 'PREPARE TRANSACTION with a temporary table' "BEGIN;
CREATE TEMPORARY TABLE temp (x int);
PREPARE TRANSACTION 'it';"

# Without prepared transactions.
psql -XAtq -c 'ALTER SYSTEM SET max_prepared_transactions = 0' >/dev/null
psql -XAtq -f "$work/reset.sql" >/dev/null 2>&1
# shellcheck disable=SC2119 # in the default mode
cluster_restart
remember_server
as_pgbench 'PREPARE TRANSACTION where there can be none' "BEGIN;
$ADD
PREPARE TRANSACTION 'it';"

script_done
