#!/usr/bin/env bash
# pg_upgrade carries everything from an older server to the one of PG_CONFIG: results, reports, workloads, fixtures,
# sweeps, grants. Runs go on there.
#
# OLD_PG_CONFIG names the older server, where the extension is installed as well; test/run brings one. Its minor
# version must not be of a later quarter than the other server's: 18.6 refuses the columns of 15.20.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

major_of() { "$1" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/'; }
# Whether the older server has the installation of these sources; REASON says what else.
has_extension() { # PG_CONFIG
    local script
    script=extension/pgbench_ext--$(sed -n "s/^default_version = '\(.*\)'/\1/p" pgbench_ext.control).sql
    REASON='OLD_PG_CONFIG names no server to upgrade from'
    [ -n "$1" ] || return
    REASON="PostgreSQL $(major_of "$1") is no older server than PostgreSQL $(major_of "$PG_CONFIG")"
    [ "$(major_of "$1")" -lt "$(major_of "$PG_CONFIG")" ] || return
    REASON="PostgreSQL $(major_of "$1") has another version of the extension, or none"
    [ -e "$("$1" --pkglibdir)/pgbench_ext.so" ] &&
        cmp -s "$("$1" --sharedir)/$script" "$("$PG_CONFIG" --sharedir)/$script"
}
if ! has_extension "${OLD_PG_CONFIG:-}"; then
    skip "$REASON" 'pg_upgrade'
    done_testing
    exit
fi

old_bin=$("$OLD_PG_CONFIG" --bindir) new_bin=$("$PG_CONFIG" --bindir)
# Its own programs, with their own libpq.
by_old() { PATH=$old_bin:$PATH LD_LIBRARY_PATH=$("$OLD_PG_CONFIG" --libdir) "$@"; }
in_db() { PGDATABASE=$1 sql "${@:2}"; }

# The old server may be of an earlier minor version than the one whose headers the sensor was built with.
export SENSOR_LIBRARIES=
CLUSTER_TEMPLATE='' by_old cluster_start 'fsync = off' 'autovacuum = off' || exit 1
old=$PGHOST
sql 'CREATE ROLE upgrade_ann LOGIN' 'CREATE EXTENSION pgbench_ext' \
    'GRANT EXECUTE ON FUNCTION bench.run, bench.load TO upgrade_ann' 'GRANT SELECT ON bench.summary TO upgrade_ann' \
    'CREATE SCHEMA upgrade_data AUTHORIZATION upgrade_ann' "SELECT bench.load('pk', 1000)" \
    "SELECT bench.create_fixture('upgrade_pairs', 'CREATE TABLE upgrade_pairs (id bigint PRIMARY KEY, twice bigint)',
        'SELECT i, 2 * i FROM generate_series(\$1, \$2) AS i')" "SELECT bench.load('upgrade_pairs', 100)" \
    "SELECT bench.create_workload('upgrade_own',
        E'\\\\set id random(1, :rows)\\nSELECT twice FROM upgrade_pairs WHERE id = :id;', 'upgrade_pairs')" \
    "SELECT bench.run('upgrade_own', 2, secs => 0.4, warmup => 0.2, sample_interval => 0.1,
        tags => '{\"a\": \"b\"}')" \
    "SELECT bench.run('pk_update', transactions => 20)" \
    "SELECT bench.create_workload('upgrade_fails', 'SELECT 1 / 0;')" \
    "SELECT bench.run('upgrade_fails', transactions => 1)" \
    'SET ROLE upgrade_ann' "SELECT bench.load('log', 10, options => '{\"schema\": \"upgrade_data\"}')" \
    "SELECT bench.run('pk_insert', transactions => 5)" 'RESET ROLE' \
    "SELECT bench.sweep('pk_update', '{1,2}', secs => 0.2,
        variants => '{\"on\": {}, \"off\": {\"synchronous_commit\": \"off\"}}')" \
    >/dev/null 2>"$work/errors"
is "$(grep '^ERROR' "$work/errors")" '' 'the older server: runs and a sweep'
# A sweep that was stopped, and a run whose server crashed.
stopped=$(sql "SELECT bench.start_sweep('pk_update', '{1,2}', secs => 60)")
eventually 20 "SELECT count(*) = 1 FROM bench.sweep_runs WHERE sweep_id = $stopped AND status = 'running'"
sql "SELECT bench.stop_sweep($stopped)" "SELECT bench.wait_sweep($stopped, 20)" >/dev/null
crashed=$(sql "SELECT bench.start('pk_update', secs => 60)")
eventually 20 "SELECT status = 'running' FROM bench.runs WHERE run_id = $crashed"
by_old cluster_restart immediate
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $crashed")" crashed 'the older server: a run has crashed'

# What users read, a value a line: the tables that pg_upgrade copies, the views over them, documents.
kept_by() { # FILE
    local name
    for name in $(sql "SELECT c.oid::regclass FROM pg_extension e, unnest(e.extconfig) AS u (relation)
            JOIN pg_class c ON c.oid = u.relation AND c.relkind = 'r' WHERE e.extname = 'pgbench_ext' ORDER BY 1") \
        bench.runs bench.summary bench.history bench.sweeps bench.sweep_runs bench.fixtures; do
        echo "== $name"
        sql "SELECT t::text FROM $name AS t ORDER BY t::text COLLATE \"C\""
    done >"$1"
    for name in 1 2 3; do sql "SELECT bench.report($name, 'json')" "SELECT bench.report($name)"; done >>"$1"
    sql 'SELECT bench.sweep_report(1)' "SELECT relation::oid::regclass FROM bench.fixtures, unnest(relations) relation
        ORDER BY 1" >>"$1"
}
kept_by "$work/before"
is "$(($(wc -l <"$work/before") > 100))" 1 'the older server: there is much to keep'
last=$(last_run)
by_old cluster_stop

cluster_directory || exit 1
new=$DIR checksums=
# The default of initdb since 18; both servers must agree.
if [ "$(major_of "$PG_CONFIG")" -ge 18 ] &&
    grep -q '^Data page checksum version: *0$' < <(as_pg "$old_bin/pg_controldata" "$old/data"); then
    checksums=--no-data-checksums
fi
as_pg initdb -D "$new/data" -U postgres -A trust -E UTF8 --no-locale --no-sync $checksums >"$work/initdb" 2>&1 ||
    cat "$work/initdb"
as_pg env --chdir="$new" pg_upgrade -b "$old_bin" -B "$new_bin" -d "$old/data" -D "$new/data" -U postgres -s "$new" \
    >"$work/pg_upgrade" 2>&1
is "$?" 0 'pg_upgrade succeeds'
if ! grep -q '^Upgrade Complete' "$work/pg_upgrade"; then
    diag "$(tail -n 10 "$work/pg_upgrade")"
    diag "$(find "$new/data/pg_upgrade_output.d" -name '*.log' -exec grep -h 'ERROR\|FATAL\|fatal' {} +)"
    done_testing
    exit
fi
grep -E "^(listen_addresses = ''|max_|shared_buffers = 256|log_line|fsync = off|autovacuum = off)" \
    "$old/data/postgresql.conf" | as_pg tee -a "$new/data/postgresql.conf" >/dev/null
as_pg tee -a "$new/data/postgresql.conf" >/dev/null <<END
unix_socket_directories = '$new'
pgbench_ext.client_role = '${TEST_CLIENT_ROLE:-bench_client}'
END
export PGHOST=$new
cluster_resume || exit 1
remember_server

kept_by "$work/after"
is "$(diff "$work/before" "$work/after" | head -n 40)" '' \
    'results, reports, workloads, fixtures and sweeps are the same'
is "$(sql "SELECT has_function_privilege('upgrade_ann', 'bench.run'::regproc, 'EXECUTE'),
    has_function_privilege('upgrade_ann', 'bench.start'::regproc, 'EXECUTE')")" 't|f' 'grants are there, and no others'

# The objects are those of a fresh installation.
sql 'CREATE DATABASE fresh'
in_db fresh 'CREATE EXTENSION pgbench_ext'
sql 'REVOKE EXECUTE ON FUNCTION bench.run, bench.load FROM upgrade_ann' \
    'REVOKE SELECT ON bench.summary FROM upgrade_ann'
for db in fresh postgres; do
    in_db $db "SELECT o FROM ($(cat test/lib/objects.sql)) AS objects (o) ORDER BY o" >"$work/$db"
done
is "$(($(wc -l <"$work/fresh") > 500))" 1 'the comparison sees the objects'
is "$(diff "$work/fresh" "$work/postgres" | head -n 40)" '' 'the same objects as in a fresh installation'

# Runs go on.
sql 'GRANT EXECUTE ON FUNCTION bench.run, bench.load TO upgrade_ann'
run=$(sql "SELECT bench.run('upgrade_own', 2, transactions => 20)" 2>/dev/null)
is "$((run > last))" 1 'the sequence of runs continues'
is "$(sql "SELECT status, transactions FROM bench.summary WHERE run_id = $run")" 'completed|40' 'an own workload runs'
is "$(sql "SELECT bool_and(ok IS NOT FALSE) FROM bench.audit($run)")" t 'and is audited'
run=$(sql 'SET ROLE upgrade_ann' "SELECT bench.run('pk_insert', transactions => 5)" 2>/dev/null)
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $run")|$(sql 'SELECT count(*) FROM upgrade_data.log')" \
    'completed|20' 'a role runs on its own fixture'
is "$(sql "SELECT bench.load('upgrade_pairs', 50)" 'SELECT sum(twice) FROM bench_data.upgrade_pairs' 2>/dev/null |
    paste -sd' ')" '50 2550' 'an own fixture is loaded again'
# Its runs of a minute each are not waited for.
sql "SELECT bench.resume_sweep($stopped)" >/dev/null
eventually 20 "SELECT count(*) = 1 FROM bench.sweep_runs WHERE sweep_id = $stopped AND status = 'running'
    AND run_id > $run"
is $? 0 'a stopped sweep is resumed'
is "$(sql "SELECT bench.stop_sweep($stopped)" "SELECT bench.wait_sweep($stopped, 20)" | paste -sd' ')" 't canceled' \
    'and stopped again'
run=$(sql "SELECT bench.run('pk_update', transactions => 20)" 2>/dev/null)
like "$(sql "SELECT differences FROM bench.compare('{2}', '{$run}') WHERE metric = 'tps'")" \
    "$(major_of "$OLD_PG_CONFIG").*$(major_of "$PG_CONFIG")" 'bench.compare names both versions of the server'

nothing_left 'at the end'
no_restart 'the server has not gone down'
log_is_clean
done_testing
