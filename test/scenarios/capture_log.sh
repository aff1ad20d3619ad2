#!/usr/bin/env bash
# Transactions that pgbench made are taken from the server's log, in both formats and from files and tables, and
# replayed: as often as they were, with the values that they had.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

cluster_start 'fsync = off' 'logging_collector = on' "log_destination = 'csvlog,jsonlog'" "log_directory = 'log'" \
    "log_filename = 'it.log'" "lc_messages = 'C'" || exit 1
sql 'CREATE EXTENSION pgbench_ext'
remember_server

sql 'CREATE DATABASE elsewhere' \
    'CREATE TABLE account (id int PRIMARY KEY, owner text, balance bigint NOT NULL)' \
    "INSERT INTO account SELECT i, 'owner ' || i, 0 FROM generate_series(1, 1000) AS i" \
    'CREATE TABLE payment (account int, note text, at timestamptz DEFAULT now())'

cat >"$work/look.sql" <<'SQL'
\set id random_zipfian(1, 1000, 1.3)
SELECT owner, balance FROM account WHERE id = :id;
SQL
cat >"$work/list.sql" <<'SQL'
\set id random_zipfian(1, 900, 1.3)
BEGIN;
SELECT count(*) FROM account WHERE id BETWEEN :id AND :id + 10;
\sleep 5 ms
SELECT owner FROM account WHERE id >= :id AND owner <> 'it''s: me' ORDER BY 1 LIMIT 3;
COMMIT;
SQL
cat >"$work/pay.sql" <<'SQL'
\set id random_zipfian(1, 1000, 1.3)
\set cents random(1, 100)
BEGIN;
UPDATE account SET balance = balance + :cents WHERE id = :id;
INSERT INTO payment (account, note) VALUES (:id, md5(:id::text));
COMMIT;
SQL

opt() { echo "options => '{\"application\": \"app_$1\"${2:+, $2}}'"; } # NAME OPTION
writes='"writes": true'

# The three scripts' transactions, as pgbench counted them.
drive() { # MODE SEED
    PGAPPNAME=app_$1 PGOPTIONS='-c log_min_duration_statement=0' pgbench -n -M "$1" -c 3 -t 200 --random-seed "$2" \
        -f "$work/look.sql@6" -f "$work/list.sql@3" -f "$work/pay.sql@1" 2>/dev/null |
        sed -n 's/^ - \([0-9]*\) transactions .*/\1/p' | paste -sd' '
}
simple=$(drive simple 1)
prepared=$(drive prepared 2)
PGAPPNAME=app_simple PGOPTIONS='-c log_min_duration_statement=0' psql -XAtq -c 'COPY (SELECT 1) TO STDOUT' \
    -c 'SELECT 1 / 0' >/dev/null 2>&1
PGAPPNAME=app_simple PGOPTIONS='-c log_min_duration_statement=0' psql -XAtq -d elsewhere -c 'SELECT 1' >/dev/null
read -r look list pay <<<"$prepared"

lines() { # NAME ARGUMENTS
    sql "SELECT workload, weight, calls, kept, reason FROM bench.capture_log('$1', $2)" 2>"$work/notices"
}

# From files.
read -r s_look s_list s_pay <<<"$simple"
is "$(lines simple "file => 'log', format => 'csv', $(opt simple "$writes")")" \
    "simple/1|$s_look|$s_look|t|
simple/2|$s_list|$s_list|t|
simple/3|$s_pay|$s_pay|t|
||1|f|COPY
||1|f|aborted by error 22012" \
    'simple protocol, from csvlog: three shapes as often as pgbench counted, and what cannot be replayed'
like "$(cat "$work/notices")" "bench.run\('simple', clients => [34], rate => [0-9.]+\)" \
    'with a rate and a number of clients'
like "$(cat "$work/notices")" 'not an exact replay' 'and that it is not exact'
json=$(sql "SELECT pg_current_logfile('jsonlog')")
expected="prepared/1|$look|$look|t|
prepared/2|$list|$list|t|
prepared/3|$pay|$pay|t|"
is "$(lines prepared "file => '$json', $(opt prepared "$writes")")" "$expected" \
    'extended protocol, from jsonlog'

# From tables: csvlog's, as the manual has it, and one of lines.
csv=$(sql "SELECT pg_current_logfile('csvlog')")
sql 'CREATE TABLE postgres_log (
        log_time timestamp(3) with time zone, user_name text, database_name text, process_id integer,
        connection_from text, session_id text, session_line_num bigint, command_tag text,
        session_start_time timestamp with time zone, virtual_transaction_id text, transaction_id bigint,
        error_severity text, sql_state_code text, message text, detail text, hint text, internal_query text,
        internal_query_pos integer, context text, query text, query_pos integer, location text,
        application_name text, backend_type text, leader_pid integer, query_id bigint,
        PRIMARY KEY (session_id, session_line_num))' \
    "COPY postgres_log FROM '$PGHOST/data/$csv' WITH csv" \
    'CREATE TABLE lines (line jsonb)' \
    "INSERT INTO lines SELECT l::jsonb FROM regexp_split_to_table(pg_read_file('$json'), E'\\n') AS l WHERE l <> ''"
for table in postgres_log lines; do
    is "$(lines prepared "'$table', $(opt prepared "$writes")")" "$expected" \
        "from table $table"
    scripts+=("$(sql "SELECT md5(string_agg(w.name || w.script || r::text, '' ORDER BY w.name, row_number))
        FROM bench.workloads w LEFT JOIN bench.captured_rows r ON r.workload = w.name WHERE w.name LIKE 'prepared/%'")")
done
is "${scripts[0]}" "${scripts[1]}" 'both tables give the same scripts and values'

like "$(sql "SELECT script FROM bench.workloads WHERE name = 'prepared/2'")" \
    'BEGIN;.*SELECT count.*BETWEEN :p1 AND :p2 \+ 10;.*sleep :p_sleep2 us.*LIMIT 3;.*COMMIT;' \
    'a script: constants stay, the pause is there'
is "$(sql "SELECT count(*), min((row ->> 'p_sleep2')::int) >= 4000,
        avg((row ->> 'p_sleep2')::int) BETWEEN 4500 AND 500000
    FROM bench.captured_rows WHERE workload = 'prepared/2'")" "$list|t|t" 'the pauses are those of pgbench'

# Replays.
before=$(sql 'SELECT count(*) FROM payment')
for name in simple prepared; do
    run=$(sql "SELECT bench.run('$name', clients => 2, transactions => 500, seed => 7)" 2>"$work/run.$name")
    status_is "$run" completed "$name: a replay"
    # Chi-square with two degrees of freedom: 13.8 at 0.1 %.
    is "$(sql "WITH s AS (SELECT s.transactions::float8 AS seen, 1000 * s.weight / sum(s.weight) OVER () AS expected
            FROM bench.scripts s WHERE s.run_id = $run)
        SELECT sum(seen), count(*), sum((seen - expected) ^ 2 / expected) < 13.8 FROM s")" '1000|3|t' \
        "$name: the shapes come as often as they did"
    is "$(sql "SELECT count(*), min(score), max(score) FROM bench.fidelity($run)")" '4|1|1' "$name: without an error"
done
is "$(sql "SELECT count(*) > $before, count(DISTINCT account) > 5,
        bool_and(account IN (SELECT account FROM (SELECT account FROM payment ORDER BY at LIMIT $before) AS logged))
    FROM (SELECT account FROM payment ORDER BY at OFFSET $before) AS replayed")" 't|t|t' \
    'with accounts that were in the log'
is "$(sql "WITH p AS (SELECT account, row_number() OVER (ORDER BY at) <= $before AS logged FROM payment),
        s AS (SELECT avg((account = 1)::int) FILTER (WHERE logged) AS logged,
            avg((account = 1)::int) FILTER (WHERE NOT logged) AS replayed FROM p)
    SELECT abs(logged - replayed) < 0.15 FROM s")" t 'as skewed as there'
run=$(sql "SELECT bench.run('prepared', clients => 2, secs => 1, rate => 100, seed => 1)" 2>/dev/null)
status_is "$run" completed 'at another rate'
is "$(sql "SELECT rate FROM bench.runs WHERE run_id = $run")" 100 'which is the one that was asked for'
run=$(sql "SELECT bench.run('simple', clients => 2, transactions => 100, query_mode => 'simple')" 2>/dev/null)
status_is "$run" completed 'in simple mode'

# Comparisons leave out the pauses, which would hide that half of the work is new.
cat >"$work/checkout.sql" <<'SQL'
\set id random(1, 1000)
BEGIN;
SELECT pg_sleep(0.002 * coalesce(nullif(current_setting('app.load', true), ''), '1')::float8);
\sleep 60 ms
SELECT owner FROM account WHERE id = :id;
COMMIT;
SQL
PGAPPNAME=app_checkout PGOPTIONS='-c log_min_duration_statement=0' pgbench -n -M prepared -c 2 -t 10 \
    -f "$work/checkout.sql" >/dev/null 2>&1
is "$(lines checkout "file => '$json', $(opt checkout "$writes")")" 'checkout/1|20|20|t|' 'a transaction with a pause'
compared() { # FUNCTION ARGUMENTS COLUMNS
    sql "SELECT $3 FROM bench.$1('checkout', a => '{\"app.load\": \"1\"}', b => '{\"app.load\": \"2\"}', $2)
        WHERE metric = 'latency_avg_ms'" 2>"$work/notices"
}
is "$(compared ab 'rounds => 2, secs => 0.5' 'ratio > 1.3')" t 'a comparison of pairs finds it'
like "$(cat "$work/notices")" \
    'the captured pauses, [0-9]{2,3}\.[0-9] ms per transaction, are left out.*variables => .[{]"think": 1' \
    'and says why'
is "$(sql "SELECT count(*), max(latency_avg_ms) < 55, bool_and(variables = '{\"think\": 0}')
    FROM bench.runs r JOIN bench.summary USING (run_id) WHERE r.workload = 'checkout'")" '4|t|t' 'so its runs have none'
is "$(compared duel 'secs => 2' 'ratio > 1.3, a < 55')" 't|t' 'a duel finds it'
is "$(compared duel $'secs => 2, variables => \'{"think": 1}\'' 'ratio < 1.3, a > 60')" 't|t' \
    'and has them where asked for'
is "$(grep -c 'are left out' "$work/notices")" 0 'without a NOTICE'
run=$(sql "SELECT bench.run('checkout', transactions => 5, variables => '{\"think\": 3}')" 2>/dev/null)
is "$(sql "SELECT latency_avg_ms > 180 FROM bench.summary WHERE run_id = $run")" t 'a run multiplies them'

# Keys that were logged are there: their transactions fail, and the clients go on.
sql 'CREATE TABLE keys (id int PRIMARY KEY)'
for id in {1..20}; do echo "INSERT INTO keys VALUES ($id);"; done |
    PGAPPNAME=app_keys PGOPTIONS='-c log_min_duration_statement=0' psql -XAtq
is "$(lines keys "file => '$json', $(opt keys "$writes")")" 'keys/1|20|20|t|' 'inserts of keys'
run=$(sql "SELECT bench.run('keys', clients => 2, transactions => 20)" 2>"$work/notices")
is "$(sql "SELECT s.status, s.failed, e.sqlstate FROM bench.summary s JOIN bench.errors e USING (run_id)
    WHERE run_id = $run")" 'completed|40|23505' 'all of them fail, and no client ends'
is "$(sql "SELECT score, failed FROM bench.fidelity($run) WHERE workload = 'keys/1'")" '0|40' 'which is their score'

# What stays in a script is for members of the role that captured.
sql 'CREATE ROLE stranger'
is "$(sql 'SET ROLE stranger' "SELECT count(*) FROM bench.workloads WHERE name LIKE 'keys/%'" \
    'SELECT count(*) FROM bench.captured_rows')" '0
0' 'strangers see neither scripts nor values'
# An export has values unless they are left out.
like "$(sql "SELECT bench.export_capture('keys', with_values => false)" 2>&1)" '55000|have values of the' \
    'an export says that values are needed'
is "$(sql "SELECT bench.import_capture(bench.export_capture('keys'))" \
    "SELECT count(*), count(DISTINCT row) FROM bench.captured_rows WHERE workload = 'keys/1'" \
    "SELECT private FROM bench.workloads WHERE name = 'keys/1'" | paste -sd' ')" 'keys 20|20 t' 'and has them with it'
sql 'DROP TABLE payment CASCADE'
like "$(psql_verbose "SELECT bench.run('simple', transactions => 10)")" '42P01' 'a table that has gone'

# What changes data is kept where it is asked for.
is "$(lines reads "file => '$json', options => '{\"application\": \"app_prepared\"}'")" "reads/1|$look|$look|t|
reads/2|$list|$list|t|
||$pay|f|changes data (option writes)" 'without writes'
is "$(lines writes "file => '$json', options => '{\"application\": \"app_prepared\", \"writes\": true}'" | tail -n 1)" \
    "||$pay|f|relation \"payment\" does not exist" 'what the server does not take says why'
is "$(lines one "file => '$json', shapes => 1, options => '{\"application\": \"app_prepared\"}'" |
    sed -nE "/^one.1\|/p; s/\|($look|$list)\|/|/p" | grep -c 'takes less time than the 1 shapes kept')" 1 \
    'no more shapes than asked for'

# Masks.
sql "CREATE TABLE person (name text)"
PGAPPNAME=app_mask PGOPTIONS='-c log_min_duration_statement=0' psql -XAtq \
    -c "SELECT * FROM person WHERE name = 'Ann Secret1'" \
    -c "SELECT * FROM person WHERE name = 'Bob Secret22'" >/dev/null
lines mask "file => '$json', options => '{\"mask\": true, \"application\": \"app_mask\"}'" >/dev/null
is "$(sql "SELECT count(*), bool_and(row ->> 'p1' !~ 'Secret' AND length(row ->> 'p1') IN (11, 12))
    FROM bench.captured_rows WHERE workload = 'mask/1'")" '2|t' 'masked texts keep their length'
is "$(sql "SELECT count(*) FROM bench.workloads w, bench.capture_statements s
    WHERE w.script || s.query LIKE '%Secret%' AND w.name = 'mask/1' AND s.capture = 'mask'")" 0 'and are nowhere'

# Roles.
sql 'CREATE ROLE reader LOGIN' 'CREATE ROLE other LOGIN' \
    'GRANT EXECUTE ON FUNCTION bench.capture_log TO reader, other' \
    'GRANT SELECT ON postgres_log, account TO reader'
as() { PGUSER=$1 psql_verbose "${@:2}"; }
like "$(as reader "SELECT FROM bench.capture_log('mine', file => 'log/it.csv')")" \
    '42501: permission denied to read the log.s files' 'files are for pg_read_server_files'
like "$(as other "SELECT FROM bench.capture_log('mine', 'postgres_log')")" \
    '42501: permission denied for table public.postgres_log.*HINT:  GRANT SELECT ON public.postgres_log TO other' \
    'a table for those who may read it'
as reader "SELECT FROM bench.capture_log('mine', 'postgres_log', $(opt prepared))" >/dev/null
is "$(sql "SELECT string_agg(DISTINCT s.role || ' ' || w.owner, ',') FROM bench.capture_statements s
    JOIN bench.workloads w ON w.name = s.workload WHERE capture = 'mine'")" 'postgres reader' \
    'what a table says of roles is shown, and run as the role that has given it'
sql "SELECT FROM bench.capture_log('ours', 'postgres_log', $(opt prepared))" >/dev/null 2>&1
is "$(sql "SELECT count(*) FROM bench.captured_rows WHERE workload = 'ours/1'")" "$look" \
    'values are there for the role that executed them'
is "$(PGUSER=other sql 'SELECT count(*) FROM bench.captured_rows' 'SELECT count(*) FROM bench.capture_statements' \
    'SELECT count(*) FROM bench.captures' | paste -sd' ')" '0 0 0' 'and for no one else'
like "$(as other "SELECT FROM bench.capture_log('mine', 'postgres_log')")" 'capture "mine" belongs to role "reader"' \
    'nobody else replaces it'
sql 'GRANT pg_read_server_files TO other'
like "$(as other "SELECT FROM bench.capture_log('his', file => 'nowhere.csv')")" \
    '58P01: could not read "nowhere.csv"' 'no file'
like "$(as other "SELECT FROM bench.capture_log('his', file => 'log')")" \
    '22023: directory "log" has logs in both formats' 'both formats'
like "$(as other "SELECT FROM bench.capture_log('his', file => 'global')")" \
    '58P01: there is no log in directory "global"' 'no log'
like "$(as other "SELECT FROM bench.capture_log('his', file => 'log/it.log')")" '(22P04|55000): ' 'not a log'
as_pg mkfifo "$PGHOST/data/pipe.csv"
like "$(as other "SELECT FROM bench.capture_log('his', file => 'pipe.csv')")" \
    '42809: "pipe.csv" is not a regular file' 'a pipe does not make it wait'
as_pg tee "$PGHOST/data/other.csv" >/dev/null < <(for i in {1..200}; do echo "$i,2,3"; done)
like "$(as other "SELECT FROM bench.capture_log('his', file => 'other.csv')")" \
    '22P04: "other.csv" is neither csvlog nor jsonlog' 'another file'
as other "SELECT FROM bench.capture_log('his', file => '$csv', $(opt prepared))" >/dev/null
is "$(sql "SELECT role, source, status, calls FROM bench.captures WHERE name = 'his'")" \
    "other|log|completed|$((look + list + pay))" 'with the privilege, files are read'

no_restart 'the server went on all the time'
done_testing
