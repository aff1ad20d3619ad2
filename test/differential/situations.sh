#!/usr/bin/env bash
# What happens in scripts that go well and in scripts that do not: by pgbench and by the wire driver, on the same
# server, in each query mode. Both leave the same rows, count the same transactions, end the client or do not, give the
# same error and, over a proxy that records what comes by, send the same messages.
#
# Among them are the scripts of PostgreSQL 18's src/bin/pgbench/t/001_pgbench_with_server.pl. They do not fix what the
# server makes of them, which differs between its versions, but that both drivers get the same.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

cluster_start 'fsync = off' 'autovacuum = off' 'deadlock_timeout = 20ms' || exit 1
sql 'CREATE EXTENSION pgbench_ext' 'CREATE TABLE seen (id bigserial, word text)' 'CREATE SEQUENCE tries' \
    'CREATE TABLE pair (id int PRIMARY KEY, n int)' 'INSERT INTO pair VALUES (1, 0), (2, 0)' \
    "CREATE FUNCTION fail_once() RETURNS int LANGUAGE plpgsql AS 'BEGIN
        IF nextval(''tries'') = 1 THEN RAISE serialization_failure; END IF; RETURN 1; END'" \
    "CREATE FUNCTION meet() RETURNS int LANGUAGE plpgsql AS 'BEGIN
        PERFORM nextval(''tries''); WHILE (SELECT last_value < 2 FROM tries) LOOP PERFORM pg_sleep(0.001); END LOOP;
        RETURN 1; END'" >/dev/null || exit 1
MAJOR=$(pgbench --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')

echo "record $work/recorded" >"$work/mode"
mkdir "$work/recorded"
python3 test/lib/proxy.py "$work/port" "$work/mode" "$PGHOST/.s.PGSQL.$PGPORT" &
at_exit "kill $! 2>/dev/null"
until [ -s "$work/port" ]; do sleep 0.02; done
PROXY_PORT=$(cat "$work/port")
sql "CREATE SERVER net FOREIGN DATA WRAPPER bench_wire
        OPTIONS (host '127.0.0.1', port '$PROXY_PORT', dbname 'postgres', sslmode 'disable')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER net'

# The messages that came by, connection by connection, of clients only: pgbench's first connection is none of a client,
# and those of a run that are none ask by qualified names.
messages() { # NAME
    local file files=() recorded
    while compgen -G "$work/recorded/*.open" >/dev/null; do sleep 0.01; done
    mapfile -t recorded < <(compgen -G "$work/recorded/*" | sort)
    [ "$1" = ours ] || recorded=("${recorded[@]:1}")
    for file in "${recorded[@]}"; do
        grep -q 'pg_catalog[.]' "$file" || files+=("$file")
    done
    cat /dev/null "${files[@]}" >"$work/$1.messages"
    rm -f "$work"/recorded/*
}

clear() { sql 'TRUNCATE seen RESTART IDENTITY' 'ALTER SEQUENCE tries RESTART' 'UPDATE pair SET n = 0'; }
rows() { sql "SELECT string_agg(word, ',' ORDER BY id) FROM seen" 'SELECT sum(n) FROM pair'; }

# Processed, failed, retried and whether the client ended early; then the rows; OUT is what was said.
theirs() { # MODE
    clear
    OUT=$(PGHOST=127.0.0.1 PGPORT=$PROXY_PORT PGSSLMODE=disable pgbench -n -c "$CLIENTS" -j "$CLIENTS" \
        -t "$TRANSACTIONS" --max-tries="$TRIES" -M "$1" --random-seed=7 ${GO_ON:+--continue-on-error} \
        "${FILES[@]}" 2>&1)
    awk -v FS='[:/(]' '/^number of transactions actually/ { done = $2 } /^number of failed/ { failed = $2 }
        /^number of transactions retried/ { retried = $2 } /Run was aborted/ { aborted = 1 }
        END { print done + 0, failed + 0, retried + 0, aborted + 0 }' <<<"$OUT"
    messages theirs
    rows
}
ours() { # MODE
    local runs
    clear
    runs=$(sql 'SELECT count(*) FROM bench.runs')
    OUT=$(psql -XAtq -v script="$(cat "$work/script.sql")" 2>&1 <<SQL
SELECT bench.run($WORKLOAD, clients => $CLIENTS, transactions => $TRANSACTIONS, max_tries => $TRIES, query_mode => '$1',
    driver => 'wire', jobs => $CLIENTS, seed => 7 $OPTIONS);
SELECT 'error: ' || message FROM bench.errors WHERE run_id = (SELECT max(run_id) FROM bench.runs);
SQL
    )
    sql "SELECT format('%s %s %s %s', transactions, failed, retried, aborted) FROM bench.summary
        ORDER BY run_id OFFSET $runs"
    messages ours
    rows
}

# With IS_REFUSED=yes, bench.run on this server finds the error before it has begun to measure.
both() { # DESCRIPTION ERROR SCRIPT [MODE…]
    local name=$1 error=$2 mode expected
    printf '%s\n' "$3" >"$work/script.sql"
    shift 3
    [ "$IS_REFUSED" = yes ] || local OPTIONS="$OPTIONS, target => 'net'"
    for mode in "${@:-extended}"; do
        theirs "$mode" >"$work/theirs"
        expected=$OUT
        ours "$mode" >"$work/ours"
        if [ "$IS_REFUSED" = yes ]; then
            is "$(head -n 1 "$work/theirs" | cut -d ' ' -f 1,4)" '0 1' "$mode, $name: pgbench's client ends"
            is "$(tr -d ' ' <"$work/ours")" "$(echo && rows)" "$mode, $name: the wire driver does not begin"
        else
            # The victim of a deadlock may come in the other's way again.
            [ "$name" != 'a deadlock' ] || sed -i '1s/ [12] 0$/ some 0/' "$work/theirs" "$work/ours"
            is "$(cat "$work/ours")" "$(cat "$work/theirs")" "$mode, $name: the same is counted and left"
            # Before PostgreSQL 16, pgbench prepares whole scripts. Of several clients nobody knows the order.
            [ "$CLIENTS" -gt 1 ] || [ "$mode$MAJOR" = prepared15 ] ||
                is "$(cat "$work/ours.messages")" "$(cat "$work/theirs.messages")" "$mode, $name: the same is sent"
        fi
        [ -z "$error" ] || {
            like "$expected" "$error" "$mode, $name: pgbench's error"
            like "$OUT" "$error" "$mode, $name: the wire driver's"
        }
    done
}
put() { echo "INSERT INTO seen (word) VALUES ('$1');"; }
ALL=(simple extended prepared)
PIPED=(extended prepared)
CLIENTS=1 TRIES=1 TRANSACTIONS=2 IS_REFUSED=no
by_default() { FILES=(-f "$work/script.sql") WORKLOAD="script => :'script'" OPTIONS=''; }
by_default

both 'statements, comments and empty lines' '' "-- a comment
$(put a) -- another

/* one /* within */ another */ $(put b)" "${ALL[@]}"
both 'a very long statement' '' "SELECT length('$(printf 'x%.0s' {1..50000})') AS n \\gset
INSERT INTO seen (word) VALUES (:n);" "${ALL[@]}"
both 'a compound' '' "INSERT INTO seen (word) VALUES ('a')
    \\; INSERT INTO seen (word) VALUES ('b') \\; SELECT 7 AS s \\gset
INSERT INTO seen (word) VALUES (:s);" simple
both 'a compound that ends in an error' 'division by zero' \
    "INSERT INTO seen (word) VALUES ('a') \\; SELECT 1 / 0;" simple
IS_REFUSED=yes both 'a compound in the extended protocol' 'cannot insert multiple commands' \
    'SELECT 1 \; SELECT 2;' "${PIPED[@]}"
both '\gset of no row' 'expected one row, got 0' "$(put a)
SELECT 1 AS x WHERE false \\gset" "${ALL[@]}"
both '\gset of two rows' 'expected one row, got 2' 'SELECT generate_series(1, 2) AS x \gset' "${ALL[@]}"
both '\aset of two rows' '' "SELECT generate_series(1, 2) AS x \\; SELECT 3 AS y \\aset
INSERT INTO seen (word) VALUES (:x + :y);" simple
both 'chains of \if' '' "\\set n 2
\\if :n = 1
$(put one)
\\elif :n = 2
\\if false
$(put never)
\\else
$(put two)
\\endif
\\else
$(put other)
\\endif" "${ALL[@]}"
both 'COPY' 'COPY' "$(put a)
COPY pair TO STDOUT;
$(put b)" simple
IS_REFUSED=yes both 'COPY' 'COPY' "$(put a)
COPY pair TO STDOUT;" "${PIPED[@]}"
both 'an error in a block' 'division by zero' "BEGIN;
$(put a)
SELECT 1 / 0;
END;" "${ALL[@]}"
both 'a script that ends in a block' '' "BEGIN;
$(put a)" "${ALL[@]}"
both 'a rollback' '' "BEGIN;
$(put a)
ROLLBACK;
$(put b)" "${ALL[@]}"

both 'a pipeline' '' "\\startpipeline
$(put a)
$(put b)
\\endpipeline
$(put c)" "${PIPED[@]}"
both 'an error in a pipeline' 'division by zero' "\\startpipeline
$(put a)
SELECT 1 / (random() * 0)::int;
$(put b)
\\endpipeline" "${PIPED[@]}"
both 'a block in a pipeline' '' "\\startpipeline
BEGIN;
$(put a)
ROLLBACK;
$(put b)
\\endpipeline" "${PIPED[@]}"
both 'a pipeline in a pipeline' 'already in pipeline mode' '\startpipeline
\startpipeline' "${PIPED[@]}"
both 'the end of no pipeline' 'not in pipeline mode' '\endpipeline' "${PIPED[@]}"
both 'a pipeline that is not ended' 'pipeline' "\\startpipeline
$(put a)" "${PIPED[@]}"
both 'a pipeline of simple statements' 'pipeline mode' "\\startpipeline
$(put a)
\\endpipeline" simple
both '\gset in a pipeline' 'gset.*pipeline mode' '\startpipeline
SELECT 1 AS x \gset
\endpipeline' "${PIPED[@]}"
both '\aset in a pipeline' 'aset.*pipeline mode' '\startpipeline
SELECT 1 AS x \aset
\endpipeline' "${PIPED[@]}"
if [ "$MAJOR" -ge 17 ]; then
    both 'synchronized pipelines' '' "\\startpipeline
$(put a)
\\syncpipeline
$(put b)
\\syncpipeline
\\endpipeline" "${PIPED[@]}"
    both 'an error in a synchronized pipeline' 'division by zero' "\\startpipeline
$(put a)
\\syncpipeline
SELECT 1 / (random() * 0)::int;
$(put b)
\\endpipeline" "${PIPED[@]}"
    both 'a synchronization of no pipeline' 'not in pipeline mode' '\syncpipeline' "${PIPED[@]}"
else
    skip "pgbench $MAJOR has no \\syncpipeline" 'synchronized pipelines'
fi

both 'a serialization failure that is given up' '' "$(put a)
SELECT fail_once();" "${ALL[@]}"
TRIES=3 both 'a serialization failure that is tried again' '' "SELECT fail_once();
$(put a)" "${ALL[@]}"
TRIES=3 both 'a serialization failure in a block' '' "BEGIN;
$(put a)
SELECT fail_once();
END;" "${ALL[@]}"
TRIES=3 both 'a serialization failure in a pipeline' '' "\\startpipeline
BEGIN;
$(put a)
SELECT fail_once();
END;
\\endpipeline" "${PIPED[@]}"

#
# Errors that do not end the client
#
GO_ON=
if [ "$MAJOR" -ge 19 ]; then
    GO_ON=yes OPTIONS=', continue_on_error => true'
    both 'an error, and on' '' "$(put a)
SELECT 1 / (random() * 0)::int;
$(put b)" "${ALL[@]}"
    both 'an error in a block, and on' '' "BEGIN;
$(put a)
SELECT 1 / (random() * 0)::int;
END;" "${ALL[@]}"
    both 'an error in a pipeline, and on' '' "\\startpipeline
$(put a)
SELECT 1 / (random() * 0)::int;
$(put b)
\\endpipeline" "${PIPED[@]}"
    both 'an error in every other transaction, and on' '' "INSERT INTO seen (word) VALUES ('a') RETURNING id \\gset
SELECT 1 / (:id::int % 2);
$(put b)" "${ALL[@]}"
    TRIES=3 both 'a serialization failure that is tried again, and then an error' '' "SELECT fail_once();
$(put a)
SELECT 1 / (random() * 0)::int;" "${ALL[@]}"
    both 'a serialization failure that is given up, and on' '' "$(put a)
SELECT fail_once();" "${ALL[@]}"
    both '\gset of no row, which ends the client all the same' 'expected one row, got 0' "$(put a)
SELECT 1 AS x WHERE false \\gset" "${ALL[@]}"
    GO_ON=
    by_default
else
    skip "pgbench $MAJOR has no --continue-on-error" 'errors that do not end the client'
fi

#
# What the server makes of statements in pipelines
#
both 'SET LOCAL in a pipeline' '' "\\startpipeline
SET LOCAL statement_timeout = '1h';
\\endpipeline
\\startpipeline
$(put a)
SET LOCAL statement_timeout = '1h';
\\endpipeline" "${PIPED[@]}"
for statement in 'REINDEX TABLE CONCURRENTLY pair' 'VACUUM pair' 'LOCK TABLE pair'; do
    both "$statement, the first in a pipeline" '' "\\startpipeline
$statement;
$(put a)
\\endpipeline" "${PIPED[@]}"
    both "$statement, not the first in a pipeline" '' "\\startpipeline
$(put a)
$statement;
\\endpipeline" "${PIPED[@]}"
done
both 'savepoints in a pipeline' 'SAVEPOINT can only be used in transaction blocks' "\\startpipeline
SAVEPOINT a;
$(put a)
ROLLBACK TO SAVEPOINT a;
$(put b)
\\endpipeline" "${PIPED[@]}"
if [ "$MAJOR" -ge 17 ]; then
    both 'SET LOCAL behind a synchronization' '' "\\startpipeline
$(put a)
\\syncpipeline
SET LOCAL statement_timeout = '1h';
\\endpipeline" "${PIPED[@]}"
    both 'a synchronized pipeline that is not ended' 'pipeline' "\\startpipeline
$(put a)
\\syncpipeline" "${PIPED[@]}"
    TRIES=3 both 'a serialization failure before a synchronization' '' "\\startpipeline
SELECT fail_once();
\\syncpipeline
$(put a)
\\endpipeline" "${PIPED[@]}"
fi
CLIENTS=4 TRANSACTIONS=5 both 'serializable pipelines of several clients' '' "\\startpipeline
BEGIN ISOLATION LEVEL SERIALIZABLE;
$(for _ in {1..10}; do echo 'SELECT 1;'; done)
END;
\\endpipeline" "${PIPED[@]}"

#
# Two clients in each other's way
#
for mode in "${ALL[@]}"; do
    CLIENTS=2 TRIES=3 TRANSACTIONS=1 both 'a concurrent update' '' "\\set delta random(1, 1000000000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT meet(), :delta::int;
UPDATE pair SET n = n + 1 WHERE id = 1;
END;" "$mode"
    like "$(head -n 1 "$work/ours")" '^2 0 1 0$' "$mode, a concurrent update: one of two is tried again"
    for of in theirs ours; do
        is "$(grep -E '^[BQ] ' "$work/$of.messages" | grep -oE '[0-9]{6,}' | sort | uniq -c | awk '{ print $1 }' |
            sort | xargs)" '1 2' "$mode, a concurrent update: $of draws no other number for the next try"
    done
    CLIENTS=2 TRIES=9 TRANSACTIONS=1 both 'a deadlock' '' "BEGIN;
UPDATE pair SET n = n + 1 WHERE id = :client_id::int + 1;
SELECT meet();
UPDATE pair SET n = n + 1 WHERE id = 2 - :client_id::int;
END;" "$mode"
    like "$(head -n 1 "$work/ours")" '^2 0 some 0$' "$mode, a deadlock: it is tried again"
done

#
# Statements and values of all kinds
#
both 'COPY from the client' 'COPY' "$(put a)
COPY pair FROM STDIN;" simple
both 'an undefined variable behind an \aset of nothing' '' "SELECT 1 AS x WHERE false \\aset
\\set y :x + 1
INSERT INTO seen (word) VALUES (:y::text);" simple
both '\if in a branch that is not taken' '' "\\if false
\\if true
$(put never)
\\elif true
$(put never)
\\else
$(put never)
\\endif
\\elif true
\\if false
$(put never)
\\else
$(put a)
\\endif
\\elif true
\\if true
$(put never)
\\endif
\\else
\\if 1 / 0
$(put never)
\\endif
\\endif" "${ALL[@]}"
for expression in '1 / 0' 'int(9223372036854775807.0 * 2)' '9223372036854775807 + 1' 'random(2, 1)' '1 = 2 or 3' \
    'case when null then 1 end + true'; do
    both "\\set x $expression" '' "$(put a)
\\set x $expression
$(put b)" simple
done
both 'parameters in an error' 'invalid input syntax for type json' "SELECT '{ invalid ' AS value \\gset
SELECT \$\$'Valame n''est pas ?\$\$ AS long \\gset
SELECT column1::jsonb FROM (VALUES (:value), (:long)) AS q;" "${PIPED[@]}"
CLIENTS=4 TRANSACTIONS=5 both 'a type of each session' '' \
    "CREATE TYPE pg_temp.e AS ENUM ($(printf "'label %d', " {1..50})'last');
DROP TYPE pg_temp.e;" prepared

#
# Other arguments
#
mix() { # DESCRIPTION SCRIPT@WEIGHT SCRIPT@WEIGHT MODE…
    local at name=$1 scripts=("$2" "$3")
    shift 3
    FILES=(-s 3) WORKLOAD='' OPTIONS=", variables => '{\"scale\": 3}'"
    for at in 0 1; do
        echo "${scripts[at]%@*}" >"$work/mix$at.sql"
        FILES+=(-f "$work/mix$at.sql@${scripts[at]##*@}")
        psql -XAtq -v script="${scripts[at]%@*}" <<<"SELECT bench.create_workload('mix$at', :'script')" >/dev/null
        WORKLOAD+="${WORKLOAD:+,}mix$at@${scripts[at]##*@}"
    done
    WORKLOAD="'$WORKLOAD'"
    both "$name" '' '' "$@"
    sql "SELECT bench.drop_workload('mix0')" "SELECT bench.drop_workload('mix1')" >/dev/null
    by_default
}
TRANSACTIONS=20 mix 'two scripts' "\\set n random(1, 10)
INSERT INTO seen (word) VALUES (:n::text || ' ' || :scale::text);@1" \
    "INSERT INTO seen (word) VALUES (:client_id::text);@2" "${ALL[@]}"
CLIENTS=4 TRANSACTIONS=5 mix 'GRANT beside VACUUM' "DO \$\$ BEGIN
    PERFORM pg_advisory_xact_lock(42);
    FOR i IN 1 .. 10 LOOP
        GRANT SELECT ON pair TO PUBLIC;
        REVOKE SELECT ON pair FROM PUBLIC;
    END LOOP;
END \$\$;@9" 'VACUUM pair;@1' prepared

export PGOPTIONS='-c search_path=bench_data,public'
sql "SELECT bench.load('tpcb')" >/dev/null
FILES=(-b tpcb-like -C) WORKLOAD="'tpcb'" OPTIONS=', reconnect => true'
both 'tpcb-like with connections of each transaction' '' '' simple
FILES=(-b simple-update -C) WORKLOAD="'tpcb_simple_update'"
both 'simple-update with connections of each transaction' '' '' extended
FILES=(-f "$work/script.sql" -C)
WORKLOAD="script => :'script'"
TRIES=3 both 'a serialization failure with connections of each transaction' '' "$(put a)
SELECT fail_once();" "${ALL[@]}"
both 'an error with connections of each transaction' 'division by zero' "$(put a)
SELECT 1 / (:client_id::int);" "${ALL[@]}"
FILES=(-b select-only --rate=100000 --latency-limit=1000000)
WORKLOAD="'tpcb_select'" OPTIONS=', rate => 100000, latency_limit => 1000000'
CLIENTS=2 TRANSACTIONS=50 both 'a rate' '' '' prepared
like "$(head -n 1 "$work/ours")" '^100 0 0 0$' 'a rate: all transactions are processed'
FILES=(-b select-only -l --log-prefix="$work/log" --sampling-rate=0.5) OPTIONS=', log_rate => 0.5'
TRANSACTIONS=50 both 'a log of a part' '' '' simple
like "$(cat "$work"/log.* | wc -l)" '^([89]|[1-3].|4[0-2])$' "a log of a part: pgbench's"
like "$(sql 'SELECT count(*) FROM bench.transactions WHERE run_id = (SELECT max(run_id) FROM bench.runs)')" \
    '^([89]|[1-3].|4[0-2])$' "a log of a part: the wire driver's"
unset PGOPTIONS
by_default

FILES+=(--rate=100000 --latency-limit=1) OPTIONS=', rate => 100000, latency_limit => 1'
echo 'SELECT pg_sleep(0.01);' >"$work/script.sql"
TRANSACTIONS=10
for driver in theirs ours; do
    $driver extended >"$work/counted"
    like "$(head -n 1 "$work/counted")" '^[01] 0 0 0$' "a rate that cannot be kept, $driver: most is not begun"
    like "$OUT" 'skipped: (9|10) ' "a rate that cannot be kept, $driver: that is skipped"
done
TRANSACTIONS=2
by_default

if [ "$MAJOR" -ge 17 ]; then
    FILES+=(--exit-on-abort) OPTIONS=', exit_on_abort => true'
    cat >"$work/script.sql" <<'PGBENCH'
INSERT INTO seen (word) VALUES ('a') RETURNING id AS i \gset
\if :i = 5
\set y 1 / 0
\endif
PGBENCH
    CLIENTS=2 TRANSACTIONS=100000
    for driver in theirs ours; do
        $driver extended >"$work/counted"
    like "$(head -n 1 "$work/counted")" '^[0-9]{1,4} 0 0 1$' "exit_on_abort, $driver: ends the other client"
        like "$OUT" 'division by zero' "exit_on_abort, $driver: the error"
    done
    CLIENTS=1 TRANSACTIONS=2
    by_default
fi

done_testing
