#!/usr/bin/env bash
# What others size is bounded in memory and in time: rows of feeders, logs, and the clients of a role.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'max_worker_processes = 32'

# The most memory that a session had, in kB: its own, without what is shared.
PEAK="SELECT 'peak ' || sum(split_part(line, ':', 2)::text::int)
    FROM (SELECT regexp_replace(line, '[^0-9A-Za-z:]|kB', '', 'g') AS line
          FROM regexp_split_to_table(pg_read_file('/proc/self/status'), E'\n') AS line) AS lines
    WHERE line LIKE 'VmHWM:%'"
peak_below() { # MB DESCRIPTION
    local peak
    peak=$(sed -n 's/^peak //p' <<<"$OUT")
    if [ "${peak:-999999999}" -lt $(($1 * 1024)) ]; then tap_pass "$2"; else tap_fail "$2" "$peak kB: $OUT"; fi
}

# Rows of a megabyte of which one is kept: none of the others waits in memory.
feed() { # QUERY [MAX_ROWS]
    sql "SELECT bench.add_feeder('fed', '$1', max_rows => ${2:-100000})" >/dev/null
}
ENDLESS='FROM (SELECT generate_series(1, 1000000000) AS g) s'
sql "SELECT bench.create_workload('fed', 'SELECT :t;')" >/dev/null
feed "SELECT repeat(''x'', 1000000) AS t FROM generate_series(1, 1500)" 1
try "SELECT bench.run('fed', transactions => 1)" "$PEAK"
like "$OUT" 'actually processed: 1' 'a feeder of 1.5 GB, of which one row is kept: runs'
peak_below 300 'a feeder of 1.5 GB, of which one row is kept: below 300 MB'
feed "SELECT repeat(''x'', 1000000) AS t $ENDLESS"
try "SET statement_timeout = '60s'" "SELECT bench.run('fed', transactions => 1)" "$PEAK"
like "$OUT" "ERROR:  54000: the rows of a run's feeders must not take more than 256 MB" 'a feeder without end: 54000'
peak_below 600 'a feeder without end: below 600 MB'
feed "SELECT repeat(''x'', 300000000) AS t"
try "SELECT bench.run('fed', transactions => 1)"
like "$OUT" 'ERROR:  54000' 'a text of 300 MB: 54000'
# Canceled at once, wherever it is.
feed "SELECT g::text AS t $ENDLESS" 1
clock
try "SET statement_timeout = '1s'" "SELECT bench.run('fed', transactions => 1)"
like "$OUT" 'ERROR:  57014' 'a feeder without end of which one row is kept: ends with the timeout'
within 3000 'a feeder without end of which one row is kept: ends at once'

# Log lines of megabytes, and a session that never commits.
sql "CREATE TABLE log_lines (line text)" \
    "CREATE FUNCTION message(session text, line int, vxid text, statement text) RETURNS text LANGUAGE sql AS \$\$
        SELECT jsonb_build_object('timestamp', '2026-11-24 21:52:47.123 UTC', 'user', 'postgres',
            'dbname', current_database(), 'session_id', session, 'line_num', line, 'vxid', vxid,
            'error_severity', 'LOG', 'message', 'duration: 1.000 ms  statement: ' || statement)::text \$\$"
logged() { # SESSION VXID LINES STATEMENT-OF-g
    sql "INSERT INTO log_lines SELECT message('$1', g, '$2', $4) FROM generate_series(1, $3) g"
}
logged long 3/0 3 "'SELECT 1 IN (1' || repeat(',1', 2000000) || ')'"
logged wide 3/0 2 "'SELECT 1 IN (' || repeat('1,', 250000 + g) || '1)'"
logged ordered 3/0 1 "'SELECT ' || repeat('(SELECT 1 ORDER BY 1', 20000) || repeat(')', 20000)"
logged open 5/9 20000 "'SELECT ' || g"
logged one 3/0 5 "'SELECT count(*) FROM pg_class WHERE oid = ' || g"
clock
CAPTURE="SELECT calls, coalesce(reason, query) FROM bench.capture_log('bounds', 'log_lines')"
try "SET statement_timeout = '30s'" "$CAPTURE" "$PEAK"
within 15000 'a log with lines of 4 MB: is read within seconds'
like "$OUT" '3\|a message with more than 1 MB of statements' 'a log with lines of 4 MB: says so'
like "$OUT" '1\|more than 10,000 statements, or 16 MB of them' 'a transaction of 20,000 statements: is listed'
like "$OUT" '5\|SELECT count.\*. FROM pg_class WHERE oid = ' 'a log with lines of 4 MB: the others are kept'
peak_below 400 'a log with lines of 4 MB: below 400 MB'
sql 'TRUNCATE log_lines' >/dev/null
logged wide 3/0 60 "'SELECT 1 IN (' || repeat('1,', 400000) || '1)'"
clock
try "SET statement_timeout = '1s'" "SELECT count(*) FROM bench.capture_log('bounds', 'log_lines')"
like "$OUT" 'ERROR:  57014' 'a log of 48 MB: ends with the timeout'
within 3000 'a log of 48 MB: ends at once'
# A transaction of a day at each of 2,000 days: a second is no entry of its own.
sql 'TRUNCATE log_lines' >/dev/null
logged day 3/0 2000 "'SELECT 1'"
sql "UPDATE log_lines SET line = line::jsonb || jsonb_build_object(
        'timestamp', to_char('2026-11-24'::timestamp + (line::jsonb ->> 'line_num')::int * interval '2 days',
            'YYYY-MM-DD HH24:MI:SS.MS') || ' UTC',
        'message', 'duration: 86000000.000 ms  statement: SELECT 1')" >/dev/null
try "$CAPTURE" "$PEAK"
like "$OUT" '2000\|SELECT .1' 'transactions of a day: are kept'
peak_below 150 'transactions of a day: below 150 MB'

# A script of 12 MB under a timeout.
clock
try "SET statement_timeout = '500ms'" \
    "SELECT bench.create_workload('large', repeat('SELECT 1; ', 1200000))"
within 5000 'a script of 12 MB: ends with the timeout, or is done'

# A load in a transaction that is rolled back
try 'BEGIN' "SELECT bench.load('pk', 1000)" 'ROLLBACK' "SELECT count(*) FROM bench_data.pk"
like "$OUT" 'NOTICE:.*replaces the 1000 rows of fixture "pk" even if this transaction is rolled back.*ROLLBACK' \
    'a load in a transaction: says before the first row that it stays'
try 'BEGIN' 'SAVEPOINT s' "SELECT bench.load('log')" 'ROLLBACK' "SELECT bench.load('pk', 1000)"
unlike "$OUT" 'even if this transaction' 'a load of a fixture that is not loaded, and one by itself: say nothing'

# Clients of a role
sql 'CREATE ROLE fred LOGIN' 'GRANT CREATE ON DATABASE postgres TO fred' \
    'ALTER ROLE fred SET pgbench_ext.max_clients_per_role = 4' 'GRANT USAGE ON SCHEMA bench, bench_data TO fred' \
    'GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA bench_data TO fred'
psql -XAtq >/dev/null <<'SQL'
SELECT format('GRANT EXECUTE ON FUNCTION %s TO fred', oid::regprocedure) FROM pg_proc
WHERE pronamespace = 'bench'::regnamespace AND proname IN ('run', 'start', 'load', 'sweep', 'stop') \gexec
SQL
as_fred() { PGUSER=fred "$@"; }
refused() { # NEEDED IN-USE NAME
    like "$OUT" 'ERROR:  53300: too many clients for role "fred"' "$3: 53300"
    like "$OUT" "DETAIL:  Needed: $1; .* under way: $2; pgbench_ext.max_clients_per_role: 4" "$3: the numbers"
    like "$OUT" 'HINT:.*bench.stop' "$3: what to do"
}
as_fred try "SELECT bench.run('pk_select', clients => 5, secs => 1)"
refused 5 0 'a run with five clients where four are allowed'
RUN=$(as_fred sql "SELECT bench.start('pk_select', clients => 3, secs => 30)")
as_fred try "SELECT bench.run('pk_select', clients => 2, secs => 0.2)"
refused 2 3 'a second run'
as_fred try "SELECT bench.run('pk_select', clients => 1, secs => 0.2)"
like "$OUT" 'actually processed' 'a second run with the fourth client: works'
as_fred try "SELECT bench.run('pk_select', clients => 2, secs => 0.2, driver => 'wire')"
refused 2 3 'connections count as clients'
as_fred try "SELECT bench.sweep('pk_select', '{1}', secs => 0.2)"
refused 2 3 "a sweep's leader counts"
as_fred try "SELECT bench.load('pk', 10, jobs => 1, options => '{\"schema\": \"freds\"}')"
refused 2 3 'a load counts with its leader'
as_fred try 'SET pgbench_ext.max_clients_per_role = 0' "SELECT bench.run('pk_select', clients => 2, secs => 0.2)"
like "$OUT" 'permission denied to set parameter' 'the role cannot raise its own limit'
refused 2 3 'the role cannot raise its own limit'
for value in 100 0 four; do
    for call in "run('pk_select', clients => 2, secs => 0.2)" "start('pk_select', clients => 2, secs => 0.2)" \
        "sweep('pk_select', '{1}', secs => 0.2)" \
        "load('pk', 10, jobs => 1, options => '{\"schema\": \"freds\"}')"; do
        PGOPTIONS="-c pgbench_ext.max_clients_per_role=$value" as_fred try "SELECT bench.$call"
        like "$OUT" 'ERROR:  42501: permission denied to set parameter "pgbench_ext.max_clients_per_role"' \
            "bench.${call%%(*} of a connection with options that set the limit to $value: 42501"
    done
done
as_fred sql "SELECT bench.stop($RUN)" >/dev/null
sql 'ALTER ROLE fred RESET pgbench_ext.max_clients_per_role' \
    'ALTER SYSTEM SET pgbench_ext.max_clients_per_role = 4' 'SELECT pg_reload_conf()' >/dev/null
PGOPTIONS='-c pgbench_ext.max_clients_per_role=100' as_fred try "SELECT bench.run('pk_select', clients => 5)"
like "$OUT" 'ERROR:  42501: permission denied to set parameter' "such options where the server has the limit: 42501"
as_fred try 'SET pgbench_ext.max_clients_per_role = 100' "SELECT bench.run('pk_select', clients => 5)"
refused 5 0 "a SET before the library is loaded, where the server has the limit"
PGOPTIONS='-c pgbench_ext.max_clients_per_role=1' try "SELECT bench.run('pk_select', clients => 5, transactions => 1)"
like "$OUT" 'actually processed: 5' "a superuser's connection with such options: works"
as_fred try "SELECT bench.sweep('pk_select', '{1,3}', secs => 0.2)"
like "$OUT" 'progress: 2 of 2 runs' 'a sweep within the limit: works'
as_fred try "SELECT bench.load('pk', 200000, options => '{\"schema\": \"freds\"}')"
like "$OUT" '200000' 'a load within the limit: works'
# At the same moment.
for name in one two three; do
    PGUSER=fred session "$name" "SELECT bench.run('pk_select', clients => 3, secs => 1)"
done
worked=0
for name in one two three; do
    ended "$name"
    case $OUT in *'actually processed'*) worked=$((worked + 1)) ;; esac
done
is "$worked" 1 'three runs at the same moment, of which one is allowed: one runs'
try 'SET pgbench_ext.max_clients_per_role = 1' "SELECT bench.run('pk_select', clients => 5, transactions => 10)"
like "$OUT" 'actually processed: 50' 'superusers have no limit'

log_is_clean
no_restart 'the server has not restarted'
done_testing
