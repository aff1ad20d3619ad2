#!/usr/bin/env bash
# What happens in scripts that go well and in scripts that do not: by pgbench and by the wire driver, on the same
# server, in each query mode. Both leave the same rows, count the same transactions, end the client or do not, and give
# the same error.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

cluster_start 'fsync = off' 'autovacuum = off' || exit 1
sql 'CREATE EXTENSION pgbench_ext' 'CREATE TABLE seen (id bigserial, word text)' 'CREATE SEQUENCE tries' \
    'CREATE TABLE pair (id int PRIMARY KEY, n int)' 'INSERT INTO pair VALUES (1, 0), (2, 0)' \
    "CREATE FUNCTION fail_once() RETURNS int LANGUAGE plpgsql AS 'BEGIN
        IF nextval(''tries'') = 1 THEN RAISE serialization_failure; END IF; RETURN 1; END'" >/dev/null || exit 1
MAJOR=$(pgbench --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')

clear() { sql 'TRUNCATE seen RESTART IDENTITY' 'ALTER SEQUENCE tries RESTART' 'UPDATE pair SET n = 0'; }
rows() { sql "SELECT string_agg(word, ',' ORDER BY id) FROM seen" 'SELECT sum(n) FROM pair'; }

# Processed, failed, retried and whether the client ended early; then the rows; OUT is what was said.
theirs() { # MODE
    clear
    OUT=$(pgbench -n -c "$CLIENTS" -j "$CLIENTS" -t 2 --max-tries="$TRIES" -M "$1" -f "$work/script.sql" 2>&1)
    awk -v FS='[:/(]' '/^number of transactions actually/ { done = $2 } /^number of failed/ { failed = $2 }
        /^number of transactions retried/ { retried = $2 } /Run was aborted/ { aborted = 1 }
        END { print done + 0, failed + 0, retried + 0, aborted + 0 }' <<<"$OUT"
    rows
}
ours() { # MODE
    local runs
    clear
    runs=$(sql 'SELECT count(*) FROM bench.runs')
    OUT=$(psql -XAtq -v script="$(cat "$work/script.sql")" 2>&1 <<SQL
SELECT bench.run(script => :'script', clients => $CLIENTS, transactions => 2, max_tries => $TRIES, query_mode => '$1',
    driver => 'wire', jobs => $CLIENTS);
SELECT 'error: ' || message FROM bench.errors WHERE run_id = (SELECT max(run_id) FROM bench.runs);
SQL
    )
    sql "SELECT format('%s %s %s %s', transactions, failed, retried, aborted) FROM bench.summary
        ORDER BY run_id OFFSET $runs"
    rows
}

# With IS_REFUSED=yes, bench.run finds the error before it has begun to measure.
both() { # DESCRIPTION ERROR SCRIPT [MODE…]
    local name=$1 error=$2 mode expected
    printf '%s\n' "$3" >"$work/script.sql"
    shift 3
    for mode in "${@:-extended}"; do
        theirs "$mode" >"$work/theirs"
        expected=$OUT
        ours "$mode" >"$work/ours"
        if [ "$IS_REFUSED" = yes ]; then
            is "$(head -n 1 "$work/theirs" | cut -d ' ' -f 1,4)" '0 1' "$mode, $name: pgbench's client ends"
            is "$(tr -d ' ' <"$work/ours")" "$(echo && rows)" "$mode, $name: the wire driver does not begin"
        else
            is "$(cat "$work/ours")" "$(cat "$work/theirs")" "$mode, $name: the same is counted and left"
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
CLIENTS=1 TRIES=1 IS_REFUSED=no

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

done_testing
