#!/usr/bin/env bash
# A role that owns the database, and so schema public, tries to have a superuser run its code: no code of a superuser's runs
# anything that belongs to others.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/faults/common.bash
. test/faults/common.bash

faults_start "shared_preload_libraries = 'pg_stat_statements'" 'pg_stat_statements.save = off'
sql 'CREATE ROLE mallory LOGIN' 'CREATE DATABASE hers OWNER mallory'
export PGDATABASE=hers
as_mallory() { PGUSER=mallory "$@"; }
in_her_name() { PGUSER=mallory session "$@"; }
sql 'CREATE EXTENSION pgbench_ext' 'CREATE EXTENSION pg_stat_statements' \
    'GRANT EXECUTE ON FUNCTION bench.run, bench.create_workload TO mallory' >/dev/null

# Whatever she gets run tries this.
as_mallory sql 'CREATE SCHEMA trap' "CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS \$\$ BEGIN
    EXECUTE 'ALTER ROLE mallory SUPERUSER';
    RETURN true;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN false;
END \$\$"
she_is_no_superuser() {
    is "$(sql "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")" f "$1: she has not become a superuser"
    sql 'ALTER ROLE mallory NOSUPERUSER' >/dev/null
}

# Swaps schema public for one of hers and back, as fast as the server lets her, while the file is there.
renaming() {
    touch "$work/renaming"
    while [ -e "$work/renaming" ]; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            echo 'BEGIN; ALTER SCHEMA public RENAME TO saved; ALTER SCHEMA fake RENAME TO public; COMMIT;
                  BEGIN; ALTER SCHEMA public RENAME TO fake; ALTER SCHEMA saved RENAME TO public; COMMIT;'
        done
        sleep 0.01
    done | PGUSER=mallory psql -Xq -o /dev/null 2>/dev/null
}
renames_begin() { renaming & RENAMER=$!; }
renames_end() { rm "$work/renaming"; wait "$RENAMER"; }

#
# pg_stat_statements, which the recorder reads
#
as_mallory sql 'CREATE SCHEMA fake' "CREATE FUNCTION fake.pg_stat_statements(boolean)
    RETURNS TABLE (userid oid, dbid oid, toplevel boolean, queryid bigint, calls bigint)
    LANGUAGE sql AS 'SELECT 10::oid, 10::oid, trap.spring(), 1::bigint, 1::bigint'"
as_mallory sql "SELECT bench.create_workload('hers', 'SELECT 1;')" >/dev/null
sql "SELECT bench.create_workload('ours', 'SELECT 1;')" >/dev/null
calls="SELECT harness > 0, harness = server, ok FROM bench.audit(max_id) WHERE counter = 'pg_stat_statements.calls'"
as_mallory sql "SELECT bench.run('hers', clients => 2, transactions => 50)" >/dev/null 2>&1
is "$(as_mallory sql "${calls/max_id/(SELECT max(run_id) FROM bench.runs)}")" 't|t|t' 'pg_stat_statements: an ordinary role'"'"'s calls are counted'
sql "SELECT bench.run('ours', clients => 2, transactions => 50)" >/dev/null 2>&1
is "$(sql "${calls/max_id/(SELECT max(run_id) FROM bench.runs)}")" 't|t|t' 'pg_stat_statements: and those of a superuser'
first=$(last_run)
renames_begin
for _ in $(seq 4); do
    as_mallory sql $(for _ in $(seq 12); do echo "SELECT/**/bench.run('hers',secs=>0.02)"; done) >/dev/null 2>&1
done
renames_end
she_is_no_superuser 'pg_stat_statements under renames'
is "$(sql "SELECT count(*), count(*) FILTER (WHERE status = 'completed') FROM bench.runs WHERE run_id > $first")" '48|48' \
    'pg_stat_statements under renames: the runs complete'
is "$(sql "SELECT count(*), bool_and(a.ok) FROM bench.runs r, bench.audit(r.run_id) a
           WHERE r.run_id > $first AND a.counter = 'pg_stat_statements.calls'")" '48|t' \
    'pg_stat_statements under renames: each run'"'"'s calls are counted, and right'

# Its SQL of before 1.9 has no column toplevel: there is nothing to compare, and nothing fails.
sql 'DROP EXTENSION pg_stat_statements' "CREATE EXTENSION pg_stat_statements VERSION '1.8'"
sql "SELECT bench.run('ours', transactions => 5)" >/dev/null 2>&1
is "$(sql "SELECT status FROM bench.runs ORDER BY run_id DESC LIMIT 1" "SELECT count(*) FROM bench.audit((SELECT max(run_id) FROM bench.runs)) WHERE counter ~ 'calls'")" \
    $'completed\n0' 'pg_stat_statements 1.8: nothing is compared'
# A function in another language is not taken for it, though it is in the extension.
sql 'ALTER EXTENSION pg_stat_statements DROP VIEW pg_stat_statements' 'DROP VIEW pg_stat_statements' \
    'ALTER EXTENSION pg_stat_statements DROP FUNCTION pg_stat_statements(boolean)' 'DROP FUNCTION pg_stat_statements(boolean)' \
    "CREATE FUNCTION public.pg_stat_statements(boolean, OUT userid oid, OUT dbid oid, OUT toplevel boolean, OUT queryid bigint, OUT calls bigint)
     RETURNS SETOF record LANGUAGE sql AS 'SELECT 10::oid, 10::oid, trap.spring(), 1::bigint, 1::bigint'" \
    'ALTER EXTENSION pg_stat_statements ADD FUNCTION public.pg_stat_statements(boolean)'
sql "SELECT bench.run('ours', transactions => 5)" >/dev/null 2>&1
is "$(sql "SELECT status FROM bench.runs ORDER BY run_id DESC LIMIT 1" "SELECT count(*) FROM bench.audit((SELECT max(run_id) FROM bench.runs)) WHERE counter ~ 'calls'")" \
    $'completed\n0' 'a function in the place of pg_stat_statements: it is not called'
she_is_no_superuser 'a function in the place of pg_stat_statements'
sql 'DROP EXTENSION pg_stat_statements' 'DROP SCHEMA fake CASCADE' 2>/dev/null

nothing_left 'in the end'
no_restart 'the server has not gone down'
log_is_clean
done_testing
