#!/usr/bin/env bash
# Settings of a database that change how text is read and printed: the extension installs, loads, runs, captures,
# exports, imports and reports under each of them as it does without.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start "shared_preload_libraries = 'pg_stat_statements'"

# Everything in a database of its own; what can be compared is printed.
work_in() { # DATABASE
    local PGDATABASE=$1 run id
    export PGDATABASE
    sql 'CREATE EXTENSION pgbench_ext' 'CREATE EXTENSION pg_stat_statements' 2>&1
    sql "SELECT md5(string_agg(name || script, '' ORDER BY name)) FROM bench.workloads" \
        "SELECT position('@s*d+' IN pg_get_viewdef('bench.audits'::regclass))"
    sql "SELECT bench.load('pk', 1000)" 2>/dev/null
    sql "CREATE TABLE item (at timestamptz, f float8, d interval, b bytea, r float4, words text, \"Select\" text)" \
        "INSERT INTO item SELECT '2026-03-04 05:06:07.891+00'::timestamptz + n * interval '1 day', n / 3.0::float8,
            interval '-1 mon +2 days -03:04:05' * n, decode(lpad(to_hex(n), 4, '0'), 'hex'), n / 3.0::float4,
            'word' || n || E' 100%_\\\\done', 'x' || n
            FROM generate_series(1, 50) n" ANALYZE
    run=$(sql "SELECT bench.run('pk_update', transactions => 50, seed => 1)" 2>/dev/null)
    sql "SELECT status, transactions FROM bench.summary WHERE run_id = $run" \
        "SELECT count(*) FROM bench.audit($run) WHERE NOT ok"
    # Each value that a feeder gives finds its row again.
    sql "SELECT bench.create_workload('fed', 'SELECT 1 / count(*) FROM item
            WHERE at = :at::timestamptz AND f = :f::float8 AND d = :d::interval AND b = :b::bytea
                AND r = :r::float4;')" \
        "SELECT bench.add_feeder('fed', 'SELECT at, f, d, b, r FROM item')" >/dev/null
    for driver in engine wire; do
        run=$(sql "SELECT bench.run('fed', transactions => 100, driver => '$driver')" 2>/dev/null)
        sql "SELECT '$driver', status, transactions FROM bench.summary WHERE run_id = $run"
    done
    # What is captured finds rows.
    sql 'SELECT pg_stat_statements_reset()' >/dev/null
    for _ in 1 2 3; do
        sql "SELECT f FROM item WHERE to_tsvector('simple', words) @@ to_tsquery('simple', 'word5')" \
            "SELECT f FROM item WHERE words LIKE E'word7 100\\\\%%'" "SELECT f FROM item WHERE \"Select\" = 'x9'" \
            "SELECT f FROM item WHERE at = '2026-03-09 05:06:07.891+00'" >/dev/null
    done
    sql "SELECT FROM bench.capture('c', secs => 0)" >/dev/null
    run=$(sql "SELECT bench.run('c', transactions => 40, seed => 1)" 2>/dev/null)
    # Names are numbered by share of the time, which a moment without a processor changes.
    sql "SELECT status, transactions FROM bench.summary WHERE run_id = $run" \
        "SELECT query, kept, rows_captured, rows_replayed FROM bench.capture_statements
            LEFT JOIN bench.fidelity($run) USING (workload) WHERE capture = 'c' AND query LIKE '%FROM item%' ORDER BY 1"
    sql "CREATE TABLE lines (line jsonb)" "INSERT INTO lines SELECT jsonb_build_object('timestamp',
            '2026-11-24 12:00:0' || n || '.000 UTC', 'user', 'postgres', 'dbname', current_database(),
            'session_id', 's', 'line_num', n, 'vxid', '3/0', 'error_severity', 'LOG', 'message',
            'duration: 1.000 ms  statement: SELECT f FROM item WHERE \"Select\" = ''x' || n || '''')
            FROM generate_series(1, 5) n"
    sql "SELECT count(*), bool_and(kept) FROM bench.capture_log('l', 'lines')" 2>/dev/null
    id=$(sql "SELECT max(i) FROM unnest(bench.import((SELECT d FROM bench.export(ARRAY[$run]::bigint[]) AS d))) AS i")
    sql "SELECT 'imported', status, origin IS NOT NULL FROM bench.runs WHERE run_id = $id" 2>&1
    for format in text markdown json html; do
        sql "SELECT '$format', length(bench.report($run, '$format')) > 1000" 2>&1
    done
    sql "SELECT count(*) FROM bench.audits WHERE NOT ok"
    # A hint with characters that clients may lack.
    sql 'CREATE SCHEMA own CREATE TABLE pk (i int)' "SELECT bench.load('pk', options => '{\"schema\": \"own\"}')" 2>&1 |
        sed 's/…/.../g; s/"own"."pk"/own.pk/'
}

number=0
createdb plain
expected=$(work_in plain)
diag "${expected//$'\n'/ }"
captured='"Select" = .1.t.1.1.[^|]* at = .1.t.1.1.[^|]*tsquery[^|]*.t.1.[^|]* LIKE .1.t.1.1'
like "$expected" "engine.completed.100.wire.completed.100.completed.40.*$captured.1.t.imported.completed.t." \
    'without any setting'
while IFS='|' read -r name value; do
    database=set_$((++number))
    createdb "$database"
    sql "ALTER DATABASE $database SET $name = $value"
    is "$(work_in "$database")" "$expected" "$name = $value"
done <<'SETTINGS'
standard_conforming_strings|off
quote_all_identifiers|on
datestyle|'SQL, DMY'
timezone|'Europe/Dublin'
extra_float_digits|0
intervalstyle|'sql_standard'
bytea_output|'escape'
xmloption|'document'
client_encoding|'LATIN1'
client_encoding|'WIN1252'
SETTINGS

no_restart 'the server has not restarted'
log_is_clean
done_testing
