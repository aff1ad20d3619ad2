#!/usr/bin/env bash
# Scripts with maintenance and DDL, procedures and functions that fail, and large results, variables and statements.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh

#
# Maintenance and DDL
#
as_pgbench 'VACUUM, ANALYZE, TRUNCATE' "VACUUM acct;
VACUUM (FULL, ANALYZE) acct;
ANALYZE acct;
$ADD
TRUNCATE trail;
INSERT INTO trail VALUES ('one');"
as_pgbench 'VACUUM in a block' "BEGIN;
$ADD
VACUUM acct;
END;"
as_pgbench 'REINDEX and CLUSTER' "REINDEX TABLE acct;
CLUSTER acct USING acct_pkey;
CLUSTER acct;
REINDEX INDEX acct_pkey;
$ADD"
as_pgbench 'REINDEX CONCURRENTLY' "REINDEX TABLE CONCURRENTLY acct;
$ADD"
as_pgbench 'CREATE INDEX CONCURRENTLY' "CREATE INDEX CONCURRENTLY acct_n ON acct (n);
$ADD
DROP INDEX CONCURRENTLY acct_n;"
as_pgbench 'a table for each transaction' "CREATE TABLE made (x int PRIMARY KEY);
DROP TABLE made;
$ADD"
# As by pgbench since 16; before that it prepared all statements at once.
ends 'a table altered between two statements' completed '' "SELECT * FROM acct WHERE id = 1;
ALTER TABLE acct ADD COLUMN extra int;
SELECT * FROM acct WHERE id = 1;
ALTER TABLE acct DROP COLUMN extra;
$ADD"
state_is "3 0 0 0 0 0 0 0 0 0 / $RELATIONS" 'a table altered between two statements: three times'
as_pgbench 'CREATE TABLE AS and SELECT INTO' "CREATE TABLE made AS SELECT 1 AS x;
SELECT 2 AS x INTO other;
CREATE MATERIALIZED VIEW seen AS SELECT count(*) FROM acct;
DROP MATERIALIZED VIEW seen;
DROP TABLE made, other;
$ADD"
as_pgbench 'LOCK TABLE' "BEGIN;
LOCK TABLE acct IN ACCESS EXCLUSIVE MODE;
$ADD
END;"
as_pgbench 'LOCK TABLE without a block' 'LOCK TABLE acct;'
as_pgbench 'EXPLAIN ANALYZE' "EXPLAIN (ANALYZE, BUFFERS) $ADD
SHOW ALL;"
ROLES=postgres
as_pgbench CHECKPOINT "$ADD
CHECKPOINT;"
as_pgbench 'CREATE DATABASE and DROP DATABASE' "CREATE DATABASE made;
DROP DATABASE made;
$ADD"
as_pgbench 'DROP DATABASE of its own' "$ADD
DROP DATABASE postgres;"
as_pgbench 'a reload of the configuration' "SELECT pg_reload_conf();
$ADD"
as_pgbench 'CREATE TABLESPACE in a block' "BEGIN;
$ADD
CREATE TABLESPACE nowhere LOCATION '/nowhere';
END;"
ROLES=eve

# Plans that other statements of the script make stale.
as_pgbench 'an index made and dropped under a prepared statement' "CREATE INDEX acct_n ON acct (n);
SELECT count(*) FROM acct WHERE n = 0;
$ADD
DROP INDEX acct_n;
SELECT count(*) FROM acct WHERE n = 0;"
as_pgbench 'ALTER TABLE that changes what a statement returns' "SELECT * FROM acct WHERE id = 1;
$ADD
ALTER TABLE acct ADD COLUMN extra int;
SELECT * FROM acct WHERE id = 1;"
as_pgbench 'ALTER TABLE that changes a type' "ALTER TABLE acct ALTER COLUMN n TYPE bigint;
UPDATE acct SET n = n + 1 WHERE id = 1;
SELECT count(n) FROM acct;
ALTER TABLE acct ALTER COLUMN n TYPE int;"
as_pgbench 'a column dropped that another statement uses' "SELECT gone FROM acct WHERE id = 1;
$ADD
ALTER TABLE acct DROP COLUMN gone;
$ADD_TOO
SELECT gone FROM acct WHERE id = 1;"
as_pgbench 'ALTER TABLE of a table with a rule in between' \
    "CREATE RULE r AS ON UPDATE TO acct DO ALSO INSERT INTO trail VALUES ('rule');
$ADD
DROP RULE r ON acct;
$ADD"
as_pgbench 'a trigger made and dropped' \
    "CREATE TRIGGER t BEFORE UPDATE ON acct FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
UPDATE acct SET n = n WHERE id = 2;
$ADD
DROP TRIGGER t ON acct;"

as_pgbench 'a statement that drops its own plans' "DO \$\$ BEGIN EXECUTE 'DISCARD PLANS'; END \$\$;
$ADD"
sql 'SET ROLE eve' "CREATE FUNCTION rebuild() RETURNS int LANGUAGE plpgsql AS \$\$ BEGIN
    EXECUTE 'ALTER TABLE trail ADD COLUMN extra int';
    EXECUTE 'ALTER TABLE trail DROP COLUMN extra';
    RETURN 1;
END \$\$"
as_pgbench 'a function that alters another table of its query' "$ADD
SELECT rebuild(), what FROM trail;"
as_pgbench 'a function that alters tables while others have plans on them' "INSERT INTO trail VALUES ('one');
SELECT rebuild();
INSERT INTO trail VALUES ('two');"
as_pgbench 'a function replaced between two calls' \
    "CREATE OR REPLACE FUNCTION changing() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE FUNCTION changing() RETURNS int LANGUAGE sql AS 'SELECT 2';
$ADD"
as_pgbench 'a custom plan that becomes a generic one' "\\set id 1
UPDATE acct SET n = n + 1 WHERE id = :id;
UPDATE acct SET n = n + 1 WHERE id = :id + 1;
UPDATE acct SET n = n + 1 WHERE id = :id;" '{"plan_cache_mode": "force_generic_plan"}' \
    '-c plan_cache_mode=force_generic_plan'
as_pgbench 'parameters of other types' "\\set id 1
SELECT (:id)::regclass, (:id)::numeric, (:id)::text, ARRAY[:id, 2], (:id)::oid, ROW(:id), (:id)::float4, (:id)::bool;
$ADD"
as_pgbench 'a value that its type does not take' "BEGIN;
$ADD
\\set id 5000000000
UPDATE acct SET n = n + 1 WHERE id = (:id)::int;
END;"
as_pgbench 'parallel query' "SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET force_parallel_mode = on;
SELECT count(*) AS x FROM pg_class a, pg_class b WHERE a.oid < b.oid \\gset
SELECT 1 / (SELECT count(*) - count(*) FROM pg_attribute);
$ADD"

#
# Procedures, functions and their errors
#
as_pgbench 'CALL of a procedure that commits and rolls back' "CALL commits();
CALL commits_in_a_loop();"
as_pgbench 'CALL of it in a block' "BEGIN;
CALL commits();
END;"
as_pgbench 'DO that commits and rolls back' "DO \$\$ BEGIN FOR i IN 1 .. 4 LOOP UPDATE acct SET n = n + i WHERE id = 4;
    IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END \$\$;"
as_pgbench 'CALL with a result and \gset' "CALL out_of(5) \\gset
INSERT INTO trail VALUES ((:x)::int::text);"
as_pgbench 'a variable in a CALL' "\\set v 7
CALL out_of(:v);
$ADD"
for state in P0001 22012 23505 40002 42501 53200 55P03 57014 57P01 58030 XX000 XX001 0A000 08006; do
    MODES=prepared
    as_pgbench "a function that raises $state" "BEGIN;
$ADD
SELECT fail('$state');
END;"
done
MODES='simple extended prepared'
# Given up, and the client goes on.
ends 'a function that raises 40001' completed 40001 "BEGIN;
$ADD
SELECT fail('40001');
END;"
as_pgbench 'an exception that is caught' "DO \$\$ BEGIN UPDATE acct SET n = n + 1; PERFORM fail('22012');
    EXCEPTION WHEN OTHERS THEN UPDATE acct SET n = n + 2 WHERE id = 5; END \$\$;"
as_pgbench 'recursion without an end' "BEGIN;
$ADD
SELECT recurse(1);
END;"
as_pgbench 'JSON nested too deeply' "$ADD
SELECT repeat('[', 1000000)::json;"
as_pgbench 'an expression nested too deeply' "$ADD
SELECT $(printf '1+%.0s' {1..30000})1;"
as_pgbench 'cancel of itself' "BEGIN;
$ADD
SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5);
END;"
ends 'termination of itself' incomplete 57P01 "BEGIN;
$ADD
SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(5);
END;"
state_is "$FRESH / $RELATIONS" 'termination of itself: its work is rolled back'
MODES='simple prepared'
as_pgbench 'statement_timeout by settings' "$ADD
SELECT spin();" '{"statement_timeout": "100ms"}' '-c statement_timeout=100ms'
as_pgbench 'statement_timeout by SET LOCAL' "BEGIN;
SET LOCAL statement_timeout = '100ms';
$ADD
SELECT pg_sleep(20);
END;"
as_pgbench 'statement_timeout does not count a \sleep' "BEGIN;
$ADD
\\sleep 150 ms
END;" '{"statement_timeout": "100ms"}' '-c statement_timeout=100ms'
session holder BEGIN 'LOCK TABLE trail' 'SELECT pg_sleep(60)'
holds holder
# The holder is one of the sessions that are left.
for mode in simple extended prepared; do
    psql -XAtq -v ON_ERROR_STOP=1 -c "SELECT bench.create_workload('w_locked', '\\set x 1
$ADD
TRUNCATE trail;')" >/dev/null
    try "SELECT bench.run('w_locked', transactions => 3, query_mode => '$mode',
        settings => '{\"lock_timeout\": \"100ms\"}')"
    RUN=$(last_run)
    status_is "$RUN" incomplete "lock_timeout by settings ($mode)"
    is "$(error_of "$RUN")" 55P03 "lock_timeout by settings ($mode): the server's own error"
done
leave holder
# There is no client whose idleness could be watched.
ends 'idle_in_transaction_session_timeout by SET' completed '' "SET idle_in_transaction_session_timeout = 10;
BEGIN;
$ADD
\\sleep 50 ms
END;"
MODES='simple extended prepared'

#
# Size
#
ends 'a result of 100 MB' completed '' "SELECT repeat('x', 1000000) FROM generate_series(1, 100);
$ADD" 'transactions => 1'
MODES='extended prepared'
ends 'a variable of 50 MB by \gset' completed '' "SELECT repeat('x', 50000000) AS big \\gset
UPDATE acct SET n = length(:big) WHERE id = 1;" 'transactions => 2'
state_is "50000000 0 0 0 0 0 0 0 0 0 / $RELATIONS" 'a variable of 50 MB by \gset: arrives'
ends 'a variable of 900 kB given to the run' completed '' "UPDATE acct SET n = length(:big) WHERE id = 1;" \
    "transactions => 2, variables => jsonb_build_object('big', repeat('x', 900000))"
state_is "900000 0 0 0 0 0 0 0 0 0 / $RELATIONS" 'a variable of 900 kB given to the run: arrives'
MODES=simple
ends 'a statement of 900 kB' completed '' "UPDATE acct SET n = length(':big') WHERE id = 1;" \
    "transactions => 2, variables => jsonb_build_object('big', repeat('x', 900000))"
state_is "900000 0 0 0 0 0 0 0 0 0 / $RELATIONS" 'a statement of 900 kB: arrives'
MODES='simple extended prepared'
as_pgbench 'a sort that spills' "SET work_mem = '64kB';
SELECT g, repeat('x', 100) FROM generate_series(1, 20000) g ORDER BY md5(g::text);
$ADD"
as_pgbench 'a sort that spills and fails' "SET work_mem = '64kB';
$ADD
SELECT 1 / (19999 - g), repeat('x', 100) FROM generate_series(1, 20000) g ORDER BY md5(g::text);"

script_done
