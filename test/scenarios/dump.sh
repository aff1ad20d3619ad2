#!/usr/bin/env bash
# Results, own workloads and fixtures come through pg_dump, into a database where runs go on.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

in_db() { PGDATABASE=$1 sql "${@:2}"; }
# Everything that scripts read of the results, in one line.
content() { # DATABASE TABLE CONDITION
    in_db "$1" "SELECT count(*) || ' ' || md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), ''))
        FROM $2 AS t WHERE $3"
}

sql "CREATE ROLE dump_alice LOGIN" "CREATE SCHEMA dump_data AUTHORIZATION dump_alice" \
    "GRANT EXECUTE ON FUNCTION bench.run, bench.load TO dump_alice" \
    "SELECT bench.create_workload('dump_own', E'\\\\set id random(1, :rows)\\nSELECT info FROM pk WHERE id = :id;',
        'pk', 'it''s my own')" \
    "SELECT bench.add_feeder('dump_own', 'SELECT g AS other FROM generate_series(1, 3) AS g', 'it_')" \
    "SELECT bench.create_workload('dump_fails', 'SELECT 1 / 0;')" \
    "SET ROLE dump_alice" "SELECT bench.load('log', 10, options => '{\"schema\": \"dump_data\"}')" "RESET ROLE" \
    "SELECT bench.load('wide', 10)" "DROP TABLE bench_data.wide" \
    "SELECT bench.run('dump_own', 2, secs => 0.4, warmup => 0.2, sample_interval => 0.1, tags => '{\"a\": \"b\"}',
        settings => '{\"work_mem\": \"5MB\"}', log_rate => 1)" \
    "SELECT bench.run('pk_update', transactions => 20)" "SELECT bench.run('dump_fails', transactions => 1)" \
    >/dev/null 2>&1
last=$(last_run)
sql "SELECT bench.create_workload('dump_slow', 'SELECT pg_sleep(0.01);')" >/dev/null
live=$(sql "SELECT bench.start('dump_slow', secs => 60)")
eventually 10 "SELECT status = 'running' FROM bench.runs WHERE run_id = $live"

sql 'CREATE DATABASE restored' 'CREATE DATABASE restored_in_parallel'
pg_dump >"$work/dump.sql"
is "$(PGDATABASE=restored psql -XAtq -v ON_ERROR_STOP=1 -f "$work/dump.sql" 2>&1 | grep -v '^[0-9tf]*$')" '' \
    'pg_dump | psql: no errors'
pg_dump -Fc >"$work/dump"
ok 'pg_restore with two jobs: no errors' pg_restore -j 2 -d restored_in_parallel "$work/dump"

# Row-level security is the dumping role's, too.
sql 'CREATE ROLE dump_reader LOGIN IN ROLE pg_read_all_data' \
    'CREATE ROLE dump_bypasses LOGIN BYPASSRLS IN ROLE pg_read_all_data'
ok 'pg_dump by a role with pg_read_all_data and BYPASSRLS' pg_dump -U dump_bypasses -f /dev/null
like "$(pg_dump -U dump_reader -f /dev/null 2>&1)" 'would be affected by row-level security policy' \
    'without BYPASSRLS it says so, and leaves no rows out'

for db in restored restored_in_parallel; do
    for table in bench.{samples,warmup_samples,latencies,transactions} bench_internal.{error_log,audit_log}; do
        is "$(content "$db" "$table" "run_id <= $last")" "$(content postgres "$table" "run_id <= $last")" \
            "$db: $table is the same"
    done
    for table in bench.{workloads,feeders}; do
        is "$(content "$db" "$table" true)" "$(content postgres "$table" true)" "$db: $table is the same"
    done
    is "$(in_db $db "SELECT string_agg(r::text, '|' ORDER BY run_id) FROM bench.runs r WHERE run_id <= $last")" \
        "$(sql "SELECT string_agg(r::text, '|' ORDER BY run_id) FROM bench.runs r WHERE run_id <= $last")" \
        "$db: runs are the same"
    is "$(in_db $db "SELECT string_agg(s::text, '|' ORDER BY run_id) FROM bench.summary s WHERE run_id <= $last")" \
        "$(sql "SELECT string_agg(s::text, '|' ORDER BY run_id) FROM bench.summary s WHERE run_id <= $last")" \
        "$db: summaries are the same"
    is "$(in_db $db "SELECT string_agg(format('%s %s %s %s', name, owner, schema, rows), ', ' ORDER BY name)
        FROM bench.fixtures")" \
        'log dump_alice dump_data 10, pk postgres bench_data 1000, wide postgres bench_data 10' \
        "$db: fixtures are there"
    is "$(in_db $db "SELECT relations[1] = 'bench_data.pk'::regclass FROM bench.fixtures WHERE name = 'pk'")" t \
        "$db: with their tables"
    is "$(in_db $db 'SELECT count(*) FROM bench_data.pk')" 1000 "$db: and their rows"
    is "$(in_db $db "SELECT has_function_privilege('dump_alice', 'bench.run'::regproc, 'EXECUTE')
        AND NOT has_function_privilege('dump_alice', 'bench.start'::regproc, 'EXECUTE')")" t \
        "$db: grants are there, and no others"

    is "$(PGUSER=dump_alice in_db $db \
        "SELECT count(*) FROM bench.samples")|$(in_db $db "SELECT count(*) > 0 FROM bench.samples")" '0|t' \
        "$db: samples are still for those who may see the runs"

    # The run that was under way when it was dumped is another database's.
    is "$(in_db $db "SELECT status FROM bench.runs WHERE run_id = $live")" crashed \
        "$db: a run dumped while under way reads crashed here"
    is "$(in_db $db "SELECT count(*) FROM bench.progress")" 0 "$db: and has no progress"
    is "$(in_db $db "SELECT bench.wait($live, 1)")" crashed "$db: there is nothing to wait for"
    is "$(in_db $db "SELECT bench.stop($live)")" f "$db: nor to stop"
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $live")" running "$db: where it belongs it goes on"

    # And runs go on.
    new=$(in_db $db "SELECT bench.run('dump_own', 2, transactions => 20)" 2>/dev/null)
    is "$((new > live))" 1 "$db: the sequence continues"
    is "$(in_db $db "SELECT status || ' ' || transactions FROM bench.summary WHERE run_id = $new")" 'completed 40' \
        "$db: an own workload runs"
    is "$(in_db $db "SELECT bool_and(ok IS NOT FALSE) FROM bench.audit($new)")" t "$db: and is audited"
    in_db $db "SELECT bench.load('pk', 500)" >/dev/null 2>&1
    is "$(in_db $db 'SELECT count(*) FROM bench_data.pk')" 500 "$db: a fixture can be replaced"
    in_db $db 'SET ROLE dump_alice' "SELECT bench.run('pk_insert', transactions => 5)" >/dev/null 2>&1
    is "$(in_db $db 'SELECT count(*) FROM dump_data.log')" 15 "$db: its owner runs on its own"
    is "$(in_db $db "SELECT builtin FROM bench.workloads WHERE name = 'pk_select'")" t \
        "$db: built-in workloads are there once"
done
if [ "$(sql "SELECT bench.stop($live)")" = t ]; then tap_pass 'the run under way is stopped'; else tap_fail \
    'the run under way is stopped'; fi

# Without the results' data: a new database with nothing in it but the extension.
sql 'CREATE DATABASE bare'
pg_dump --schema-only | PGDATABASE=bare psql -XAtq -v ON_ERROR_STOP=1 >/dev/null 2>"$work/bare"
is "$(cat "$work/bare")" '' 'pg_dump --schema-only: no errors'
is "$(in_db bare 'SELECT (SELECT count(*) FROM bench.runs), (SELECT count(*) FROM bench.fixtures), (SELECT count(*)
    FROM bench.workloads WHERE NOT builtin)')" \
    '0|0|0' 'and nothing of the results'
in_db bare "SELECT bench.run('dump_slow', transactions => 1)" >/dev/null 2>"$work/unknown"
like "$(cat "$work/unknown")" 'does not exist' 'nor of the workloads'

nothing_left 'at the end'
log_is_clean
done_testing
