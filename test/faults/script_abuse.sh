#!/usr/bin/env bash
# What a script may try: to leave its role, to talk to a client that is not there, to hang, to crash or
# to litter. Each case runs in the query modes, mostly beside pgbench with the same script: the outcome,
# the message and the data have to be the same. After each one the server has not restarted, and no
# worker, lock, temporary file or temporary table is left.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'max_prepared_transactions = 10' 'max_stack_depth = 2MB' 'deadlock_timeout = 50ms'

sql 'CREATE ROLE eve LOGIN' 'CREATE ROLE friend' 'CREATE ROLE stranger' 'GRANT friend TO eve' \
    'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO eve' 'GRANT CREATE, USAGE ON SCHEMA public TO eve' \
    'GRANT USAGE ON SCHEMA bench_data TO eve' 'GRANT ALL ON ALL TABLES IN SCHEMA bench_data TO eve' >/dev/null
sql 'SET ROLE eve' \
    "CREATE FUNCTION fail(state text) RETURNS int LANGUAGE plpgsql AS \$\$ BEGIN RAISE EXCEPTION 'failed with %', state USING ERRCODE = state; END \$\$" \
    "CREATE FUNCTION recurse(n int) RETURNS int LANGUAGE plpgsql AS \$\$ BEGIN RETURN recurse(n + 1); END \$\$" \
    "CREATE FUNCTION spin() RETURNS int LANGUAGE plpgsql AS \$\$ BEGIN LOOP END LOOP; END \$\$" \
    "CREATE PROCEDURE commits() LANGUAGE plpgsql AS \$\$ BEGIN UPDATE acct SET n = n + 1 WHERE id = 1; COMMIT; UPDATE acct SET n = n + 10 WHERE id = 1; ROLLBACK; UPDATE acct SET n = n + 100 WHERE id = 1; END \$\$" \
    "CREATE PROCEDURE commits_in_a_loop() LANGUAGE plpgsql AS \$\$ DECLARE r record; BEGIN FOR r IN SELECT g FROM generate_series(1, 5) g LOOP UPDATE acct SET n = n + r.g WHERE id = 2; COMMIT; END LOOP; END \$\$" \
    "CREATE PROCEDURE out_of(INOUT x int) LANGUAGE plpgsql AS \$\$ BEGIN x := x + 1; COMMIT; x := x + 1; END \$\$" >/dev/null

# Run before each case. What a case has made is gone, too.
cat >"$work/reset.sql" <<'SQL'
SET client_min_messages = error;
SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts \gexec
DROP MATERIALIZED VIEW IF EXISTS seen;
DROP TABLE IF EXISTS acct, trail, made, other CASCADE;
SET ROLE eve;
CREATE TABLE acct (id int PRIMARY KEY, n int NOT NULL, gone int);
CREATE TABLE trail (what text);
GRANT ALL ON acct, trail TO PUBLIC;
INSERT INTO acct SELECT g, 0 FROM generate_series(1, 10) g;
RESET ROLE;
SQL
# Run after each case: what the data say.
cat >"$work/state.sql" <<'SQL'
SELECT concat_ws(' / ', (SELECT string_agg(n::text, ' ' ORDER BY id) FROM acct),
                 (SELECT string_agg(what, ' ' ORDER BY what) FROM trail),
                 (SELECT string_agg(relname::text, ' ' ORDER BY relname::text) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'm', 'S')),
                 (SELECT string_agg(gid, ' ' ORDER BY gid) FROM pg_prepared_xacts));
SQL
# And what is left when the workers have gone, the server's identity first. A prepared transaction holds
# its locks without a process.
cat >"$work/after.sql" <<'SQL'
SET client_min_messages = error;
DO $$ BEGIN
    FOR i IN 1 .. 250 LOOP
        PERFORM pg_stat_clear_snapshot();
        EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%' OR (backend_type = 'client backend' AND pid <> pg_backend_pid()));
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;
SELECT concat_ws(' ', (SELECT format('%s|%s', pg_postmaster_start_time(), pid) FROM pg_stat_activity WHERE backend_type = 'checkpointer'),
    (SELECT 'workers: ' || string_agg(backend_type || ' ' || query, ', ') FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'),
    (SELECT 'locks: ' || string_agg(concat_ws(' ', pid, locktype, mode), ', ') FROM pg_locks WHERE pid <> pg_backend_pid()),
    (SELECT 'temporary files: ' || string_agg(name, ', ') FROM pg_ls_tmpdir()),
    (SELECT 'temporary relations: ' || string_agg(relname, ', ') FROM pg_class WHERE relpersistence = 't'));
SQL

# Runs a script by bench.run: sets STATUS, ERRORS (SQLSTATEs), MESSAGE, STATE, and tests that nothing is left.
by_bench() { # NAME MODE ROLE SCRIPT [ARGUMENTS]
    local out
    out=$(timeout 100 psql -XAtq -v script="$4" -v role="$3" -v mode="$2" 2>"$work/stderr" <<SQL
\i $work/reset.sql
SET SESSION AUTHORIZATION :role;
SELECT bench.create_workload('w_' || :'role', :'script');
SELECT bench.run('w_' || :'role', query_mode => :'mode', ${5:-transactions => 3});
RESET SESSION AUTHORIZATION;
\echo -----
SELECT status, (SELECT string_agg(sqlstate, ' ' ORDER BY sqlstate) FROM bench.errors e WHERE e.run_id = r.run_id),
       coalesce((SELECT message FROM bench.errors e WHERE e.run_id = r.run_id ORDER BY first_at LIMIT 1), error ->> 'message')
FROM bench.runs r ORDER BY run_id DESC LIMIT 1;
\echo -----
\i $work/state.sql
\echo -----
\i $work/after.sql
SQL
)
    local after=${out##*-----$'\n'}
    out=${out#*-----$'\n'}
    IFS='|' read -r STATUS ERRORS MESSAGE <<<"${out%%$'\n'-----*}"
    STATE=${out#*-----$'\n'} STATE=${STATE%%$'\n'-----*}
    if [[ $after = "$SERVER" && $STATUS =~ ^(completed|incomplete|canceled|failed)$ ]]; then
        tap_pass "$1: the run has an end, the server is up, nothing is left"
    else
        tap_fail "$1: the run has an end, the server is up, nothing is left" "status: $STATUS
now: $after
was: $SERVER
$(<"$work/stderr")"
        # Each case is judged by itself.
        remember_server
    fi
}

# The same script by pgbench with one client: sets STATUS, MESSAGE, STATE.
by_pgbench() { # MODE ROLE SCRIPT [OPTIONS]
    printf '%s' "$3" >"$work/script.sql"
    psql -XAtq -f "$work/reset.sql" >/dev/null 2>&1
    if PGUSER=$2 PGOPTIONS=${4:-} timeout 100 pgbench -n -M "$1" -c 1 -t 3 -f "$work/script.sql" >/dev/null 2>"$work/stderr"; then
        STATUS=completed
    else
        STATUS=incomplete
    fi
    MESSAGE=$(sed -nE '/^pgbench: error: (client 0 aborted in |Run was |[ag]set: )/d
        s/^pgbench: error: (client 0 (script 0 (aborted in )?command [0-9]+ query [0-9]+|aborted): )?((ERROR|FATAL):  )?//p' "$work/stderr" | head -n 1)
    STATE=$(psql -XAtq -f "$work/state.sql" -f "$work/after.sql" | head -n 1)
}

MODES='simple extended prepared' ROLES='eve'
# pgbench is the judge.
as_pgbench() { # NAME SCRIPT [JSON-SETTINGS OPTIONS]
    local mode role name status message state
    for role in $ROLES; do
        for mode in $MODES; do
            name="$1 ($mode${ROLES:+, $role})"
            by_pgbench "$mode" "$role" "$2" "${4:-}"
            status=$STATUS message=$MESSAGE state=$STATE
            by_bench "$name" "$mode" "$role" "$2" "transactions => 3, settings => '${3:-{\}}'"
            # What pgbench finds in its first transaction may be found before it.
            is "${STATUS/failed/incomplete}: ${MESSAGE%: invalid variable name}" "$status: $message" "$name: ends as with pgbench"
            [ "$STATUS" = failed ] && state=$FRESH\ /\ $RELATIONS
            is "$STATE" "$state" "$name: the data are those of pgbench"
        done
    done
}

# What the sessions of the engine do in their own way.
ends() { # NAME STATUS SQLSTATES SCRIPT [ARGUMENTS]
    local mode role
    for role in $ROLES; do
        for mode in $MODES; do
            by_bench "$1 ($mode, $role)" "$mode" "$role" "$4" "${5:-}"
            like "$STATUS" "^($2)\$" "$1 ($mode, $role): $2"
            # Of a run that failed before its begin the log of errors may have nothing.
            [ "$STATUS" = failed ] && [ -z "$ERRORS" ] && ERRORS=$(error_of "$(last_run)")
            is "$ERRORS" "$3" "$1 ($mode, $role): ${3:-no error}"
        done
    done
}

state_is() { is "$STATE" "$1" "$2"; }
RELATIONS=$(psql -XAtq -f "$work/reset.sql" -f "$work/state.sql")
RELATIONS=${RELATIONS##* / }
FRESH='0 0 0 0 0 0 0 0 0 0'

ADD='UPDATE acct SET n = n + 1 WHERE id = 1;'
ADD_TOO='UPDATE acct SET n = n + 1 WHERE id = 2;'
SAY='INSERT INTO trail VALUES (current_user || $$=$$ || session_user);'

#
# Leaving the role
#
ROLES='eve postgres'
as_pgbench 'RESET SESSION AUTHORIZATION and RESET ROLE' "RESET SESSION AUTHORIZATION;
$SAY
RESET ROLE;
$SAY
SET SESSION AUTHORIZATION DEFAULT;
$SAY"
as_pgbench 'SET ROLE to a role that it is member of' "SET ROLE friend;
$SAY
RESET ROLE;
$SAY"
as_pgbench 'SET ROLE that is left set' "$SAY
SET ROLE friend;"
as_pgbench 'SET LOCAL ROLE in a block' "BEGIN;
SET LOCAL ROLE friend;
$SAY
END;
$SAY"
as_pgbench 'SET ROLE to a stranger' "$ADD
SET ROLE stranger;
$SAY"
as_pgbench 'SET ROLE to the superuser' "BEGIN;
$ADD
SET ROLE postgres;
$SAY
END;"
as_pgbench 'SET SESSION AUTHORIZATION' "SET SESSION AUTHORIZATION stranger;
$SAY
RESET SESSION AUTHORIZATION;
$SAY"
as_pgbench 'set_config of role' "SELECT set_config('role', 'postgres', false);
$SAY"
as_pgbench 'from below SET SESSION AUTHORIZATION back up by SET ROLE' "SET SESSION AUTHORIZATION eve;
$SAY
SET ROLE postgres;
$SAY"
# pgbench's prepared statements are SQL's, and gone then.
MODES='simple extended'
as_pgbench 'DISCARD ALL after SET ROLE' "SET ROLE friend;
DISCARD ALL;
$SAY"
MODES=prepared
ends 'DISCARD ALL after SET ROLE' completed '' "SET ROLE friend;
DISCARD ALL;
$SAY"
like "$STATE" ' / postgres=postgres postgres=postgres postgres=postgres / ' 'DISCARD ALL after SET ROLE: ends the SET ROLE'
MODES='simple extended prepared'
as_pgbench 'RESET ALL after SET ROLE' "SET ROLE friend;
RESET ALL;
$SAY"
ROLES=eve
MODES='simple prepared'
as_pgbench 'making itself a superuser' 'ALTER ROLE eve SUPERUSER;'
as_pgbench 'reading a file' "SELECT pg_read_file('postgresql.conf');"
as_pgbench 'a setting for superusers' "$ADD
SET session_replication_role = replica;"
as_pgbench 'ALTER SYSTEM' "ALTER SYSTEM SET work_mem = '1MB';"
as_pgbench 'writing into the results' "$ADD
DELETE FROM bench.run_log;"
ends 'ending its coordinator' incomplete 42501 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres';"
MODES='simple extended prepared'

#
# COPY
#
# It would be the server's own standard input and output.
for copy in 'COPY acct FROM STDIN' 'COPY acct TO STDOUT' 'COPY (SELECT 1) TO STDOUT' 'COPY acct (id, n) FROM STDIN BINARY'; do
    ends "$copy" 'failed|incomplete' 0A000 "BEGIN;
$ADD
$copy;
END;"
    state_is "$FRESH / $RELATIONS" "$copy: nothing is done"
done
MODES=simple
ends 'COPY in a compound statement' incomplete 0A000 "${ADD%;}\\; COPY acct TO STDOUT\\; $ADD"
state_is "$FRESH / $RELATIONS" 'COPY in a compound statement: what is before it is undone'
ends 'COPY FROM STDIN after a COMMIT in a compound statement' incomplete 0A000 "BEGIN\\; ${ADD%;}\\; COMMIT\\; COPY acct FROM STDIN;"
state_is "1 0 0 0 0 0 0 0 0 0 / $RELATIONS" 'COPY FROM STDIN after a COMMIT in a compound statement: what was committed stays'
MODES='simple extended prepared'
as_pgbench 'COPY TO STDOUT out of a DO block' "DO \$\$ BEGIN EXECUTE 'COPY acct TO STDOUT'; END \$\$;"
as_pgbench 'COPY FROM STDIN out of a DO block' "DO \$\$ BEGIN EXECUTE 'COPY acct FROM STDIN'; END \$\$;"
ROLES='eve postgres'
as_pg tee "$PGHOST/lines" <<<$'one\ntwo' >/dev/null
as_pgbench 'COPY from a file' "COPY trail FROM '$PGHOST/lines';"
as_pgbench 'COPY to a file' "COPY acct TO '$PGHOST/out';"
as_pgbench 'COPY from a program' "COPY trail FROM PROGRAM 'echo three';"
ROLES=eve

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

#
# Notifications
#
# There is no client to notify.
ends LISTEN incomplete 0A000 "$ADD
LISTEN x;"
as_pgbench UNLISTEN "UNLISTEN x;
UNLISTEN *;
$ADD"
as_pgbench NOTIFY "BEGIN;
NOTIFY x, 'payload';
$ADD
END;"
as_pgbench 'a NOTIFY that is too long' "$ADD
SELECT pg_notify('x', repeat('x', 10000));"
psql -XAtq -v ON_ERROR_STOP=1 -c 'SET ROLE eve' -c "SELECT bench.create_workload('notifies', 'SELECT pg_notify(\$\$heard\$\$, \$\$word\$\$);')" >/dev/null
OUT=$(sql 'LISTEN heard' 'SET ROLE eve' "SELECT bench.run('notifies', transactions => 2)" 'SELECT 1' 2>&1)
like "$OUT" 'Asynchronous notification "heard" with payload "word"' 'a NOTIFY is heard by others'

#
# Cursors
#
as_pgbench 'a cursor' "BEGIN;
DECLARE c CURSOR FOR SELECT id FROM acct ORDER BY id;
FETCH 2 FROM c;
MOVE 1 IN c;
UPDATE acct SET n = n + 1 WHERE CURRENT OF c;
CLOSE c;
END;"
as_pgbench 'a cursor left open at the COMMIT' "BEGIN;
DECLARE c CURSOR FOR SELECT id FROM acct ORDER BY id;
FETCH 2 FROM c;
$ADD
COMMIT;"
as_pgbench 'a cursor without a block' "$ADD
DECLARE c CURSOR FOR SELECT 1;"
as_pgbench 'a cursor WITH HOLD' "DECLARE c CURSOR WITH HOLD FOR SELECT id FROM acct ORDER BY id;
FETCH 2 FROM c;
$ADD
CLOSE c;"
as_pgbench 'a cursor WITH HOLD left open' "$ADD
DECLARE c CURSOR WITH HOLD FOR SELECT id FROM acct ORDER BY id;
FETCH ALL FROM c;"
as_pgbench 'a large cursor WITH HOLD left open' "$ADD
DECLARE c CURSOR WITH HOLD FOR SELECT repeat('x', 1000), g FROM generate_series(1, 20000) g;"
as_pgbench 'CLOSE ALL' "DECLARE c CURSOR WITH HOLD FOR SELECT 1;
CLOSE ALL;
$ADD"
as_pgbench 'a cursor without a name' "BEGIN;
$ADD
DECLARE \"\" CURSOR FOR SELECT 1;
END;"
as_pgbench 'FETCH from a cursor that is not there' "$ADD
FETCH 1 FROM nowhere;"
as_pgbench '\gset of a FETCH' "BEGIN;
DECLARE c CURSOR FOR SELECT 40 + id AS id FROM acct ORDER BY id;
FETCH 1 FROM c \\gset got_
END;
INSERT INTO trail VALUES (:got_id::int::text);"

#
# What belongs to a session
#
# Not prepared: statements on what an earlier one makes cannot be prepared before it.
MODES='simple extended'
as_pgbench 'temporary tables' "BEGIN;
CREATE TEMPORARY TABLE temp (x int) ON COMMIT DROP;
INSERT INTO temp VALUES (1);
UPDATE acct SET n = n + (SELECT sum(x) FROM temp) WHERE id = 1;
END;"
as_pgbench 'a temporary table that is left' "CREATE TEMPORARY TABLE IF NOT EXISTS temp (x int);
INSERT INTO temp VALUES (1);
UPDATE acct SET n = n + (SELECT count(*) FROM temp) WHERE id = 1;"
as_pgbench 'a temporary table in the place of a real one' "CREATE TEMPORARY TABLE acct (id int, n int);
INSERT INTO acct VALUES (1, 1);
UPDATE acct SET n = n + 1;
DROP TABLE acct;
$ADD"
as_pgbench 'a table made and dropped' "CREATE TABLE made (x int);
INSERT INTO made SELECT generate_series(1, 10);
UPDATE acct SET n = n + (SELECT count(*) FROM made) WHERE id = 1;
DROP TABLE made;"
MODES='simple extended prepared'
as_pgbench 'DISCARD TEMP' "CREATE TEMPORARY TABLE temp (x int);
DISCARD TEMP;
$ADD"
MODES='simple extended'
as_pgbench 'SET, RESET ALL and DISCARD ALL' "SET work_mem = '1MB';
INSERT INTO trail VALUES (current_setting('work_mem'));
RESET ALL;
INSERT INTO trail VALUES (current_setting('work_mem') || current_setting('search_path'));
SET work_mem = '2MB';
DISCARD ALL;
INSERT INTO trail VALUES (current_setting('work_mem') || current_setting('search_path'));
DISCARD PLANS;
DISCARD SEQUENCES;
$ADD" '{"work_mem": "7MB", "search_path": "public"}' '-c work_mem=7MB -c search_path=public'
like "$STATE" '1MB 1MB 1MB 7MBpublic 7MBpublic 7MBpublic 7MBpublic 7MBpublic 7MBpublic' 'they come back to the run'\''s settings'
MODES=prepared
ends 'RESET ALL and DISCARD ALL' completed '' "SET work_mem = '1MB';
RESET ALL;
INSERT INTO trail VALUES (current_setting('work_mem'));
SET work_mem = '2MB';
DISCARD ALL;
INSERT INTO trail VALUES (current_setting('work_mem'));" "transactions => 1, settings => '{\"work_mem\": \"7MB\"}'"
like "$STATE" ' / 7MB 7MB / ' 'RESET ALL and DISCARD ALL come back to the run'\''s settings'
MODES='simple extended prepared'
as_pgbench 'DISCARD ALL in a block' "BEGIN;
$ADD
DISCARD ALL;
END;"
as_pgbench 'SET outlasts its transaction, SET LOCAL does not' "INSERT INTO trail VALUES (current_setting('work_mem'));
BEGIN;
SET LOCAL work_mem = '2MB';
INSERT INTO trail VALUES (current_setting('work_mem'));
END;
BEGIN;
SET work_mem = '3MB';
ROLLBACK;
INSERT INTO trail VALUES (current_setting('work_mem'));
SET work_mem = '4MB';"
as_pgbench 'a session lock that is left' "SELECT pg_advisory_lock(1);
$ADD"
as_pgbench 'PREPARE and EXECUTE' "PREPARE p AS UPDATE acct SET n = n + 1 WHERE id = 3;
EXECUTE p;
DEALLOCATE p;"
as_pgbench 'PREPARE that is left' "$ADD
PREPARE p AS SELECT 1;"
# Its statements are not SQL's.
ends 'DEALLOCATE ALL' completed '' "DEALLOCATE ALL;
$ADD"
state_is "3 0 0 0 0 0 0 0 0 0 / $RELATIONS" 'DEALLOCATE ALL: the script goes on'
as_pgbench 'settings that change results' "SET bytea_output = escape;
SET DateStyle = German;
SELECT date '2020-01-31', bytea '\\x00ff';
SET search_path = '';
SELECT 1;
SET search_path = public;
$ADD"

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
as_pgbench 'ALTER TABLE of a table with a rule in between' "CREATE RULE r AS ON UPDATE TO acct DO ALSO INSERT INTO trail VALUES ('rule');
$ADD
DROP RULE r ON acct;
$ADD"
as_pgbench 'a trigger made and dropped' "CREATE TRIGGER t BEFORE UPDATE ON acct FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
UPDATE acct SET n = n WHERE id = 2;
$ADD
DROP TRIGGER t ON acct;"

as_pgbench 'a statement that drops its own plans' "DO \$\$ BEGIN EXECUTE 'DISCARD PLANS'; END \$\$;
$ADD"
sql 'SET ROLE eve' "CREATE FUNCTION rebuild() RETURNS int LANGUAGE plpgsql AS \$\$ BEGIN EXECUTE 'ALTER TABLE trail ADD COLUMN extra int'; EXECUTE 'ALTER TABLE trail DROP COLUMN extra'; RETURN 1; END \$\$"
as_pgbench 'a function that alters another table of its query' "$ADD
SELECT rebuild(), what FROM trail;"
as_pgbench 'a function that alters tables while others have plans on them' "INSERT INTO trail VALUES ('one');
SELECT rebuild();
INSERT INTO trail VALUES ('two');"
as_pgbench 'a function replaced between two calls' "CREATE OR REPLACE FUNCTION changing() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE FUNCTION changing() RETURNS int LANGUAGE sql AS 'SELECT 2';
$ADD"
as_pgbench 'a custom plan that becomes a generic one' "\\set id 1
UPDATE acct SET n = n + 1 WHERE id = :id;
UPDATE acct SET n = n + 1 WHERE id = :id + 1;
UPDATE acct SET n = n + 1 WHERE id = :id;" '{"plan_cache_mode": "force_generic_plan"}' '-c plan_cache_mode=force_generic_plan'
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
as_pgbench 'DO that commits and rolls back' "DO \$\$ BEGIN FOR i IN 1 .. 4 LOOP UPDATE acct SET n = n + i WHERE id = 4; IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END \$\$;"
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
as_pgbench 'an exception that is caught' "DO \$\$ BEGIN UPDATE acct SET n = n + 1; PERFORM fail('22012'); EXCEPTION WHEN OTHERS THEN UPDATE acct SET n = n + 2 WHERE id = 5; END \$\$;"
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
    try "SELECT bench.run('w_locked', transactions => 3, query_mode => '$mode', settings => '{\"lock_timeout\": \"100ms\"}')"
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

#
# \gset and \aset
#
NOTE='INSERT INTO trail VALUES ((:x)::int::text);'
as_pgbench '\gset of a row' "SELECT 1 + :client_id AS x \\gset
$NOTE
\\set x :x * 2
$NOTE"
as_pgbench '\gset of no row' "$ADD
SELECT 1 AS x WHERE false \\gset
\\set y 1"
as_pgbench '\gset of two rows' "BEGIN;
$ADD
SELECT generate_series(1, 2) AS x \\gset
END;"
as_pgbench '\gset of an UPDATE of two rows, outside a block' "UPDATE acct SET n = n + 1 WHERE id IN (1, 2) RETURNING n AS x \\gset
$NOTE"
as_pgbench '\gset of an UPDATE of one row' "UPDATE acct SET n = n + 1 WHERE id = 1 RETURNING n AS x \\gset
$NOTE"
as_pgbench '\gset of an UPDATE without RETURNING' "${ADD%;} \\gset
$ADD_TOO"
as_pgbench '\gset of a COMMIT' "BEGIN;
$ADD
COMMIT \\gset
$ADD_TOO"
as_pgbench '\gset of DDL' "$ADD
CREATE TABLE made () \\gset
$ADD_TOO"
as_pgbench '\gset of a column that is no name' "$ADD
SELECT 1 \\gset
$ADD_TOO"
as_pgbench '\gset of a bad name in a block' "BEGIN;
$ADD
SELECT 1 AS \"bad name!\" \\gset
END;"
as_pgbench '\gset of a name that a prefix makes good' "SELECT 3 AS \"1\" \\gset x
INSERT INTO trail VALUES ((:x1)::int::text);"
as_pgbench '\gset of NULL' "SELECT NULL::int AS x \\gset
INSERT INTO trail VALUES ('[' || (:x)::text || ']');"
as_pgbench '\gset of a row without columns' "SELECT \\gset
$ADD"
as_pgbench '\gset of the same name twice' "SELECT 1 AS x, 2 AS x \\gset
$NOTE"
as_pgbench '\gset of values that are computed with' "SELECT true AS b, 1.5::float8 AS d, -9223372036854775808 AS i, ' 12' AS s \\gset v_
\\set x case when :v_b then int(:v_d * 2) + :v_s else 0 end
$NOTE"
as_pgbench '\gset of a value that cannot be computed with' "BEGIN;
$ADD
SELECT 'words' AS x \\gset
\\set y :x + 1
END;"
as_pgbench '\gset of a name with capitals' "SELECT 8 AS \"X\", 9 AS x \\gset
INSERT INTO trail VALUES ((:X)::int::text), ((:x)::int::text);"
as_pgbench '\gset of a variable of its own' "SELECT 5 AS client_id, 6 AS random_seed \\gset
INSERT INTO trail VALUES ((:client_id)::int::text), ((:random_seed)::int::text);"
as_pgbench '\gset of SHOW and EXPLAIN' "SHOW work_mem \\gset
EXPLAIN SELECT 1 \\gset"
as_pgbench '\aset of no row, and of three' "\\set x 9
SELECT 1 AS x WHERE false \\aset
$NOTE
SELECT generate_series(1, 3) AS x \\aset
$NOTE"
as_pgbench '\aset of an UPDATE' "UPDATE acct SET n = n + 1 WHERE id <= 3 RETURNING id AS x \\aset
$NOTE
${ADD%;} \\aset"
as_pgbench '\aset of a bad name' "$ADD
SELECT 1 AS \"a b\" \\aset"
MODES=simple
as_pgbench '\gset of several statements' "SELECT 1 AS x\\; SELECT generate_series(1, 3) AS y\\; SELECT 3 AS z \\gset g_
INSERT INTO trail VALUES ((:g_z)::text);"
as_pgbench '\gset of several statements, the last without rows' "SELECT 1 AS x\\; ${ADD%;} \\gset"
as_pgbench '\aset of several statements' "SELECT 1 AS x\\; ${ADD%;}\\; SELECT 2 AS y WHERE false\\; SELECT generate_series(1, 3) AS z \\aset
INSERT INTO trail VALUES ((:x)::text || (:z)::text);"
MODES='simple extended prepared'
# A client's encoding is that of what goes to it and of what comes from it.
MODES='extended prepared'
as_pgbench '\gset of a text in another encoding' "SET client_encoding = 'LATIN1';
SELECT chr(233) AS x \\gset
UPDATE acct SET n = n + 1 WHERE :x = chr(233);"
MODES='simple extended prepared'

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
for kind in 'ISOLATION LEVEL SERIALIZABLE' 'ISOLATION LEVEL REPEATABLE READ, READ WRITE' 'ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE' 'READ ONLY'; do
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
as_pgbench 'a table made, used and dropped' "CREATE TABLE made (x int)\\; INSERT INTO made VALUES (1)\\; UPDATE acct SET n = n + (SELECT sum(x) FROM made) WHERE id = 1\\; DROP TABLE made;"
as_pgbench 'SET LOCAL' "SET LOCAL work_mem = '1MB'\\; INSERT INTO trail VALUES (current_setting('work_mem'));
INSERT INTO trail VALUES (current_setting('work_mem'));"
as_pgbench 'a cursor' "DECLARE c CURSOR FOR SELECT 1\\; FETCH c\\; $ADD"
as_pgbench 'PREPARE TRANSACTION' "BEGIN\\; ${ADD%;}\\; PREPARE TRANSACTION 'it'\\; COMMIT PREPARED 'it';"
as_pgbench 'nothing but semicolons' "\\;\\; ;
$ADD"
as_pgbench 'statement_timeout counts for each' "SELECT pg_sleep(0.3)\\; SELECT pg_sleep(0.3)\\; ${ADD%;}\\; SELECT pg_sleep(0.3);" '{"statement_timeout": "600ms"}' '-c statement_timeout=600ms'
MODES='simple extended prepared'

#
# Stopped and overtaken
#
in_role() { # SCRIPT, as workload w_eve
    psql -XAtq -v ON_ERROR_STOP=1 -v script="$1" >/dev/null 2>&1 <<<"SET ROLE eve; SELECT bench.create_workload('w_eve', :'script');"
}
stopped() { # NAME SCRIPT WAITING-QUERY
    local mode
    in_role "$2"
    for mode in $MODES; do
        RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, secs => 60, query_mode => '$mode')")
        eventually 10 "$3"
        clock
        is "$(sql "SELECT bench.stop($RUN)")" t "$1 ($mode): can be stopped"
        status_is "$RUN" canceled "$1 ($mode)"
        # A second by contract; the rest is for a busy machine.
        within 3000 "$1 ($mode): the stop is prompt"
        is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $RUN")" 0 "$1 ($mode): a stop is no error"
        nothing_left "$1 ($mode)"
    done
    no_restart "$1: the server has not restarted"
}
AT_WORK="SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'"
stopped 'a pg_sleep' 'SELECT pg_sleep(100);' "$AT_WORK AND wait_event = 'PgSleep'"
stopped 'a loop without an end' 'SELECT spin();' "$AT_WORK AND state = 'active' AND query LIKE '%spin%'"
stopped 'a \sleep' 'SELECT 1;
\sleep 100 s' "$AT_WORK AND query LIKE 'SELECT 1%' AND state_change < now() - interval '0.1 s'"
stopped 'a \sleep in a block' "BEGIN;
$ADD_TOO
ROLLBACK;
BEGIN;
SELECT 1;
\\sleep 100 s
END;" "$AT_WORK AND query LIKE 'SELECT 1%' AND state_change < now() - interval '0.1 s'"
MODES=prepared
stopped 'a \sleep without an end' "SELECT 1;
\\sleep 9223372036854775807 s" "$AT_WORK AND query LIKE 'SELECT 1%' AND state_change < now() - interval '0.1 s'"
stopped 'an endless loop that catches errors' "DO \$\$ BEGIN LOOP BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$;" "$AT_WORK AND state = 'active' AND query LIKE 'DO%'"
# It gives in to the termination that comes after the cancel.
stopped 'a loop that catches its cancel' "DO \$\$ BEGIN LOOP BEGIN PERFORM pg_sleep(10); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END \$\$;" "$AT_WORK AND wait_event = 'PgSleep'"
MODES='simple extended prepared'

# A wait for the time that a transaction is due at.
in_role 'SELECT 1;'
RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, secs => 60, rate => 0.001)")
eventually 10 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
clock
is "$(sql "SELECT bench.stop($RUN)")" t 'a wait for the rate: can be stopped'
status_is "$RUN" canceled 'a wait for the rate'
within 3000 'a wait for the rate: the stop is prompt'
RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, transactions => 5, rate => 0.001)")
eventually 10 "$AT_WORK AND state = 'idle' AND state_change < now() - interval '0.1 s'"
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
is "$(sql "SELECT pg_sleep(0.5), status FROM bench.runs WHERE run_id = $RUN")" '|running' \
    'a cancel while waiting for the rate: as in an idle session, there is nothing to cancel'
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
status_is "$RUN" incomplete 'a termination while waiting for the rate'
is "$(error_of "$RUN")" 57P01 'a termination while waiting for the rate: is the error'
nothing_left 'a wait for the rate'
clock
try 'SET ROLE eve' "SELECT bench.run('w_eve', clients => 2, secs => 0.5, rate => 0.001)"
within 4000 'a rate at which nothing is due: the run ends in time'
status_is "$(last_run)" completed 'a rate at which nothing is due'

# The transaction under way is finished.
in_role "BEGIN;
$ADD
\\sleep 1500 ms
END;"
sql 'UPDATE acct SET n = 0'
try 'SET ROLE eve' "SELECT bench.run('w_eve', secs => 0.3)"
RUN=$(last_run)
status_is "$RUN" completed 'a \sleep longer than the run'
is "$(sql 'SELECT n FROM acct WHERE id = 1')" 1 'a \sleep longer than the run: its transaction is finished'
nothing_left 'a \sleep longer than the run'

#
# The harness turned against itself
#
harmless() { # NAME ROLE SCRIPT [ARGUMENTS [CLIENTS]]
    psql -XAtq -v script="$3" -v role="$2" >"$work/made" 2>&1 <<<"SET ROLE :role; SELECT bench.create_workload('w_' || :'role', :'script');"
    try "SET ROLE $2" "SELECT bench.run('w_$2', clients => ${5:-2}, ${4:-transactions => 2})" 'RESET ROLE' "SELECT 'usable'"
    like "$OUT" usable "$1: the session is usable"
    ok "$1: every run has an end" eventually 90 "SELECT count(*) = 0 FROM bench.runs WHERE status NOT IN ('completed', 'incomplete', 'canceled', 'failed')"
    is "$(psql -XAtq -f "$work/after.sql")" "$SERVER" "$1: the server is up, nothing is left"
}
in_role 'SELECT 1;'
sql 'SET ROLE eve' "SELECT bench.create_workload('inner', 'SELECT 1;')" >/dev/null
for mode in simple extended prepared; do
    harmless "bench.run in a script ($mode)" eve "SELECT bench.run('inner', transactions => 3);" "transactions => 2, query_mode => '$mode'"
    is "$(sql "SELECT status FROM bench.runs ORDER BY run_id LIMIT 1 OFFSET (SELECT count(*) FROM bench.runs) - 5" | head -n 1)" completed "bench.run in a script ($mode): the outer run is complete"
done
harmless 'bench.run in a block of a script' eve "BEGIN;
$ADD
SELECT bench.run('inner', transactions => 3);
END;"
harmless 'bench.start in a script' eve "SELECT bench.wait(bench.start('inner', transactions => 3));"
harmless 'a script that runs itself' eve "SELECT bench.run('w_eve', transactions => 1);" "transactions => 1, settings => '{\"statement_timeout\": \"5s\"}'"
for mode in simple extended prepared; do
    clock
    harmless "bench.stop of its own run ($mode)" eve "$ADD
SELECT bench.stop(max(run_id)) FROM bench.runs;" "secs => 30, query_mode => '$mode'"
    within 15000 "bench.stop of its own run ($mode): the run ends"
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $(last_run)")" canceled "bench.stop of its own run ($mode): it is canceled"
done
harmless 'bench.wait of its own run' eve "SELECT bench.wait(max(run_id), 1) FROM bench.runs;" 'transactions => 1'
harmless 'its own workload replaced and dropped' eve "SELECT bench.create_workload('w_eve', 'SELECT 2;');
SELECT bench.drop_workload('w_eve');"
harmless 'bench.preview in a script' eve "SELECT * FROM bench.preview('SELECT :client_id;', 100);"
harmless 'its fixture unloaded' postgres "SELECT bench.unload('pk');"
sql "SELECT bench.load('pk', 1000)" >/dev/null 2>&1
harmless 'a fixture loaded in a script' postgres "SELECT bench.load('wide', 10, jobs => 1);" 'transactions => 1'
harmless 'its own coordinator terminated' postgres "SELECT pg_terminate_backend(pid), pg_sleep(5) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator';" 'secs => 20'
harmless 'the other clients terminated' postgres "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client' AND pid <> pg_backend_pid();" 'secs => 1'
harmless 'the tables of results locked' postgres "BEGIN;
LOCK bench.run_log, bench.samples, bench.latencies, bench.error_log IN ACCESS EXCLUSIVE MODE;
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
        is "$(sql "SELECT count(*), max(bytes) FILTER (WHERE n = 1200) - max(bytes) FILTER (WHERE n = 200) < 65536 FROM used")" '1200|t' "$1 ($mode): the client has not grown"
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
grows_not 'memory after errors' "BEGIN;
SELECT repeat('x', 100) AS t \\gset
SELECT fail('40001');
END;"

# Another session that changes a table under the clients' plans.
in_role "SELECT * FROM acct WHERE id = 1;
$ADD_TOO"
for mode in simple extended prepared; do
    RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, secs => 20, sample_interval => 0.1, query_mode => '$mode')")
    eventually 10 "SELECT count(*) >= 2 FROM bench.samples WHERE run_id = $RUN"
    sql 'ALTER TABLE acct ADD COLUMN extra int DEFAULT 1'
    sleep 0.3
    sql "SELECT bench.stop($RUN)" 'ALTER TABLE acct DROP COLUMN extra' >/dev/null
    if [ "$mode" = prepared ]; then
        status_is "$RUN" incomplete "a column added during a run ($mode)"
        is "$(sql "SELECT sqlstate, message FROM bench.errors WHERE run_id = $RUN")" '0A000|cached plan must not change result type' "a column added during a run ($mode): the server's own error"
    else
        status_is "$RUN" canceled "a column added during a run ($mode)"
        is "$(sql "SELECT sqlstate, message FROM bench.errors WHERE run_id = $RUN")" '' "a column added during a run ($mode): no error"
    fi
    nothing_left "a column added during a run ($mode)"
done

# Without prepared transactions.
psql -XAtq -c 'ALTER SYSTEM SET max_prepared_transactions = 0' >/dev/null
psql -XAtq -f "$work/reset.sql" >/dev/null 2>&1
cluster_restart
remember_server
as_pgbench 'PREPARE TRANSACTION where there can be none' "BEGIN;
$ADD
PREPARE TRANSACTION 'it';"

harmless 'the right to run taken away' postgres "REVOKE EXECUTE ON FUNCTION bench.run FROM eve;
ALTER ROLE eve NOLOGIN;"
sql 'ALTER ROLE eve LOGIN' 'GRANT EXECUTE ON FUNCTION bench.run TO eve'
harmless 'all that it owns dropped' eve 'DROP OWNED BY eve;'

# Last, for nothing of the extension is left after it.
name='the extension dropped by its own script'
sql "SELECT bench.create_workload('w_drops', 'DROP EXTENSION pgbench_ext CASCADE;')" >/dev/null
try "SELECT bench.run('w_drops', secs => 2, sample_interval => 0.1, settings => '{\"lock_timeout\": \"3s\"}')" "SELECT 'usable'"
like "$OUT" usable "$name: the session is usable"
eventually 20 "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'"
nothing_left "$name" 20
no_restart "$name: the server has not restarted"
try 'DROP EXTENSION IF EXISTS pgbench_ext CASCADE' 'DROP SCHEMA bench_data CASCADE' 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)"
still_works "$name, and created again"

log_is_clean
is "$(grep -E 'was terminated by (signal|exception)|server process .* exited|reinitializ' "$PGHOST/log")" '' 'no process of the server was terminated'
no_restart 'the server has not restarted'
done_testing
