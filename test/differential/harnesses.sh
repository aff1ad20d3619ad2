#!/usr/bin/env bash
# The same scripts in the same server, once by pgbench and once by bench.run, with the same seed: what they leave in
# a table, client by client, must be the same, in each query mode; and so must the errors that end their clients.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/cluster.sh
. test/lib/cluster.sh
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

MODES=(simple extended prepared)
CLIENTS=3
SEED=4711

work=$(mktemp -d)
at_exit 'rm -rf "$work"'
cluster_start 'fsync = off' 'autovacuum = off' || exit 1
# A column of each type that a variable's may be inferred from.
sql 'CREATE EXTENSION pgbench_ext' \
    "CREATE TABLE seen (id bigserial, client int, a text, b text, c text, d text, e text, i2 int2, i4 int4, i8 int8,
        n numeric, f4 float4, f8 float8, t text, v varchar, flag bool, day date, at timestamp, u uuid, ai int[],
        at_ text[])" \
    'CREATE TABLE numbers (i int PRIMARY KEY, word text)' \
    "INSERT INTO numbers SELECT g, 'word ' || g FROM generate_series(1, 20) g" >/dev/null || exit 1

# What is in the table, in the order of each client's doing, unless ORDER says otherwise.
seen() { sql "SELECT jsonb_strip_nulls(to_jsonb(seen) - 'id') FROM seen ORDER BY ${ORDER:-client, id}"; }

clear() { sql 'TRUNCATE seen RESTART IDENTITY'; }

# SCRIPTS, WEIGHTS and VARIABLES (pairs of a name and a text) are what both run.
SCRIPTS=() WEIGHTS=() VARIABLES=()

# By pgbench. OUT is what it says.
theirs() { # MODE TRANSACTIONS
    local args=() at
    for at in "${!SCRIPTS[@]}"; do
        printf '%s\n' "${SCRIPTS[at]}" >"$work/$at.sql"
        args+=(-f "$work/$at.sql@${WEIGHTS[at]:-1}")
    done
    for ((at = 0; at < ${#VARIABLES[@]}; at += 2)); do args+=(-D "${VARIABLES[at]}=${VARIABLES[at + 1]}"); done
    OUT=$(pgbench -n -c $CLIENTS -j $CLIENTS -t "$2" --random-seed=$SEED -M "$1" "${args[@]}" 2>&1)
}

# By bench.run. OUT is what it says, RUN its run, if there is one.
ours() { # MODE TRANSACTIONS
    local args=() at workload='' pairs=''
    for at in "${!SCRIPTS[@]}"; do
        args+=(-v "script$at=${SCRIPTS[at]}")
        workload+="${workload:+,}w$at@${WEIGHTS[at]:-1}"
        echo "SELECT bench.create_workload('w$at', :'script$at');"
    done >"$work/create"
    for ((at = 0; at < ${#VARIABLES[@]}; at++)); do
        args+=(-v "pair$at=${VARIABLES[at]}")
        pairs+="${pairs:+, }:'pair$at'"
    done
    [ ${#SCRIPTS[@]} -gt 1 ] || workload=w0
    OUT=$({
        cat "$work/create"
        echo "SELECT bench.run('$workload', clients => $CLIENTS, transactions => $2, seed => $SEED,
            query_mode => '$1', variables => jsonb_object(ARRAY[$pairs]::text[]));"
    } | psql -XAtq -v ON_ERROR_STOP=1 -v VERBOSITY=verbose "${args[@]}" 2>&1)
    RUN=$(sql 'SELECT max(run_id) FROM bench.runs')
}

status() { sql "SELECT status FROM bench.runs WHERE run_id = $RUN"; }

# Both, in each of the modes, without an error; their tables must be the same, and not empty.
same() { # NAME TRANSACTIONS [MODE…]
    local name=$1 transactions=$2 mode expected got
    shift 2
    [ $# -gt 0 ] || set -- "${MODES[@]}"
    for mode in "$@"; do
        clear
        if ! theirs "$mode" "$transactions"; then
            tap_fail "$name, $mode: pgbench runs it" "$OUT"
            continue
        fi
        expected=$(seen)
        clear
        ours "$mode" "$transactions"
        got=$(seen)
        if [ -n "$got" ] && [ "$got" = "$expected" ] && [ "$(status)" = completed ]; then
            tap_pass "$name, $mode: $(wc -l <<<"$got") rows are the same"
        else
            tap_fail "$name, $mode: the rows are the same" \
                "$(differences "$expected" "$got" | head -n 20)"$'\n'"$OUT"
        fi
    done
    VARIABLES=() WEIGHTS=()
}

# What pgbench counted, out of OUT. Since 18 it says nothing of failed transactions where none was processed.
processed_and_failed() {
    local failed
    failed=$(sed -nE 's/^number of failed transactions: ([0-9]+).*/\1/p' <<<"$OUT")
    echo "$(sed -nE 's/^number of transactions actually processed: ([0-9]+).*/\1/p' <<<"$OUT") ${failed:-0}"
}

# A script that ends clients: pgbench says the message, bench.errors has it and its SQLSTATE. What was written before
# must be the same.
both_fail() { # NAME SQLSTATE MESSAGE SCRIPT [MODE…]
    local name=$1 sqlstate=$2 message=$3 mode expected counts
    SCRIPTS=("$4")
    shift 4
    [ $# -gt 0 ] || set -- "${MODES[@]}"
    for mode in "$@"; do
        clear
        theirs "$mode" 5
        like "$OUT" "$message" "$name, $mode: pgbench's message"
        expected=$(seen)
        counts=$(processed_and_failed)
        clear
        ours "$mode" 5
        is "$(sql "SELECT concat_ws(' ', coalesce(transactions, 0), coalesce(failed, 0)) FROM bench.summary
            WHERE run_id = $RUN")" "$counts" "$name, $mode: as many transactions are processed, and as many have failed"
        is "$(sql "SELECT string_agg(DISTINCT sqlstate, ' ') FROM bench.errors WHERE run_id = $RUN")" "$sqlstate" \
            "$name, $mode: bench.errors has $sqlstate"
        like "$(sql "SELECT message FROM bench.errors WHERE run_id = $RUN")" "$message" "$name, $mode: and the message"
        like "$(status)" 'incomplete|failed' \
            "$name, $mode: the run is not completed"
        is "$(seen)" "$expected" "$name, $mode: what came before is the same"
    done
    VARIABLES=()
}

# ---- values

SCRIPTS=('\set x :client_id * 10
\set y :x + 0.5
INSERT INTO seen (client, i4, i8, f8, i2, n, f4) VALUES (:client_id, :x, :random_seed, :y, :scale, :y, :y);')
same 'integers, doubles, and the automatic variables' 4

SCRIPTS=('\set a random(1, 1000000)
\set b random(-9223372036854775807, -1)
\set c random_exponential(1, 1000000, 2.5)
\set d random_gaussian(1, 1000000, 3.0)
\set e random_zipfian(1, 1000000, 1.2)
\set f random_zipfian(1, 1000000, 0.5 + 2)
INSERT INTO seen (client, i8, n, f8) VALUES (:client_id, :a, :b, :c);
INSERT INTO seen (client, i8, n, f8) VALUES (:client_id, :d, :e, :f);')
same 'every random function' 100

SCRIPTS=('\set a hash(:client_id)
\set b hash_fnv1a(random(1, 1000))
\set c hash_murmur2(:a, 5)
\set d permute(random(0, 99), 100)
\set e permute(7, 1000000007, :random_seed)
INSERT INTO seen (client, i8, n, a, i4, e)
    VALUES (:client_id, :a, :b, cast(:c AS bigint)::text, :d, cast(:e AS bigint)::text);
INSERT INTO seen (client, i8) VALUES (:client_id, :default_seed);')
same 'hash functions and permute, with and without seed' 20

VARIABLES=(default_seed 42 client_id 7 scale 100 random_seed 1)
SCRIPTS=('\set a hash(5)
\set b random(1, 1000000)
INSERT INTO seen (client, i8, i4, i2, n, f8) VALUES (:client_id, :a, :b, :scale, :random_seed, :default_seed);')
ORDER=i4 same 'automatic variables that are given' 5

SCRIPTS=('\set third 1.0 / 3
\set small 1e-7 / 3
\set large 1e20 / 3
\set round 1e15
\set edge 123456789012345678.0
\set half 2.5
INSERT INTO seen (client, f8, n, f4) VALUES (:client_id, :third, :third, :third);
INSERT INTO seen (client, f8, n, f4) VALUES (:client_id, :small, :small, :small);
INSERT INTO seen (client, f8, n, f4) VALUES (:client_id, :large, :large, :large);
INSERT INTO seen (client, f8, n) VALUES (:client_id, :round, :round);
INSERT INTO seen (client, f8, n) VALUES (:client_id, :edge, :edge);
INSERT INTO seen (client, f8, a) VALUES (:client_id, :half, :half::numeric::text);')
same 'doubles have 15 digits' 2

SCRIPTS=('\set yes :client_id >= 0
\set no not :yes
INSERT INTO seen (client, flag) VALUES (:client_id, :yes);
INSERT INTO seen (client, flag) SELECT :client_id, :no WHERE :yes;
INSERT INTO seen (client, a) VALUES (:client_id, CASE WHEN :no THEN 1 ELSE 2 END);')
same 'booleans' 2

# Extended and prepared pgbench send the text NULL, here it is a null.
SCRIPTS=('\set nothing null
INSERT INTO seen (client, i4, a) VALUES (:client_id, :nothing, :nothing);')
same 'null' 2 simple
for mode in extended prepared; do
    clear
    ours $mode 1
    is "$(sql 'SELECT count(*) FROM seen WHERE i4 IS NULL AND a IS NULL')" $CLIENTS "null, $mode: is a null"
done

VARIABLES=(int 5 dbl 1e3 txt "it's ü" blank ' 12' day 2024-02-29 uuid a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
    arr '{1,2,3}' words '{a,"b c"}' yes yes numeric 12345678901234567890.123 neg -7)
SCRIPTS=('\set i :int + :neg
\set d :dbl * 2
\set b :blank + 0
\set y :yes
INSERT INTO seen (client, i2, i4, i8, n, f4, f8) VALUES (:client_id, :int, :neg, :i, :numeric, :dbl, :d);
INSERT INTO seen (client, a, t, v, flag, day, at) VALUES (:client_id, :txt, :txt, :uuid, :y, :day, :day);
INSERT INTO seen (client, u, ai, at_, i4, flag) VALUES (:client_id, :uuid, :arr, :words, :b, :yes);
INSERT INTO seen (client, ai, at_, u, n)
    VALUES (:client_id, :arr::int[], :words::text[], :uuid::uuid, :numeric::numeric);
INSERT INTO seen (client, a) SELECT :client_id, word FROM numbers WHERE i = :int AND i = ANY (:arr::int[] || :int::int);
INSERT INTO seen (client, a) VALUES (:client_id, upper(:txt) || length(:txt) || :blank);')
same 'given variables of all kinds' 2 extended prepared

VARIABLES=(int 5 dbl 1e3 txt "it''s ü" blank ' 12' day 2024-02-29 uuid a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
    arr '{1,2,3}' suffix bers)
SCRIPTS=("\\set d :dbl * 2
INSERT INTO seen (client, i2, i4, f8, a, day, u, ai) VALUES
    (:client_id, :int, :blank, :d, 'say ':txt'', ':day', ':uuid', ':arr');
INSERT INTO seen (client, a, t, v) VALUES (:client_id, ':txt', \$\$:txt\$\$, E':blank');
INSERT INTO seen (client, a) SELECT :client_id, word /* :nowhere :int */ FROM num:suffix WHERE i = :int; -- :int
INSERT INTO seen (client, a) VALUES (:client_id, ':nowhere');")
SCRIPTS[0]=${SCRIPTS[0]/"'say ':txt''"/"'say :txt'"}
same 'variables in quotes, names and comments' 2 simple

# Where the types come from: columns, operators, functions, casts.
SCRIPTS=('\set i random(1, 20)
\set d :i / 4.0
INSERT INTO seen (client, a, b) SELECT :client_id, word, pg_typeof(:i::int2)::text FROM numbers WHERE i = :i;
INSERT INTO seen (client, n) SELECT :client_id, sum(i) FROM numbers WHERE i BETWEEN :i AND :i + 3;
INSERT INTO seen (client, f8, n) VALUES (:client_id, sqrt(:d), :d::numeric(10, 3));
INSERT INTO seen (client, f8) SELECT :client_id, i * :d::float8 FROM numbers WHERE i % 5 = 0 ORDER BY i LIMIT :i;
UPDATE seen SET b = :i::text WHERE client = :client_id AND a IS NOT NULL AND b IS NULL;')
same 'types are inferred' 10

# ---- control

SCRIPTS=('\set r random(1, 4)
\if :r = 1
INSERT INTO seen (client, a) VALUES (:client_id, $$one$$);
\elif :r = 2
INSERT INTO seen (client, a) VALUES (:client_id, $$two$$);
\if :client_id = 1
\set r :r * 100
INSERT INTO seen (client, a, i4) VALUES (:client_id, $$nested$$, :r);
\else
\sleep 1 us
\endif
\elif :r
\set last :r
INSERT INTO seen (client, a, i4) VALUES (:client_id, $$else$$, :last);
\endif')
same 'conditions' 20

SCRIPTS=('\set x random(1, 1000)
BEGIN;
INSERT INTO seen (client, i4) VALUES (:client_id, :x);
SAVEPOINT s;
INSERT INTO seen (client, i4, a) VALUES (:client_id, :x, $$gone$$);
ROLLBACK TO s;
UPDATE seen SET n = :x * 2 WHERE client = :client_id AND i4 = :x;
END;
;
INSERT INTO seen (client, a) SELECT :client_id, $$alone ; $$ || count(*) FROM seen WHERE client = :client_id;')
same 'several statements, some in a block' 10

SCRIPTS=('SELECT i, word AS "w", NULL AS nothing, $$$$ AS empty, 2.50 AS num, true AS flag FROM numbers
    WHERE i = 1 + :client_id \gset
\set j :i * 2
INSERT INTO seen (client, i4, a, i8, t, n, c) VALUES (:client_id, :i, :w::text, :j, :empty, :num, :flag);
SELECT i + 10 AS i, word FROM numbers WHERE i = :i \gset p_
\if :p_i > 11
INSERT INTO seen (client, i4, b) VALUES (:client_id, :p_i, :p_word);
\else
INSERT INTO seen (client, i4, c) VALUES (:client_id, :p_i, :p_word);
\endif
\if :flag
INSERT INTO seen (client, d) VALUES (:client_id, $$flag$$);
\endif
SELECT word FROM numbers WHERE i = 0 \aset q_
SELECT word FROM numbers WHERE i IN (3, 4) ORDER BY i \aset q_
INSERT INTO seen (client, e) VALUES (:client_id, :q_word);')
same '\gset and \aset' 3 extended prepared

SCRIPTS=('SELECT i, word AS w, $$$$ AS empty, 2.50 AS num, true AS flag FROM numbers WHERE i = 1 + :client_id \gset
\set j :i * 2
INSERT INTO seen (client, i4, a, i8, t, n, flag) VALUES (:client_id, :i, $$:w$$, :j, $$:empty$$, :num, $$:flag$$);
SELECT 1 AS a \; SELECT 2 AS a, 3 AS b \; SELECT 4 AS c \gset
INSERT INTO seen (client, i4, a, b) VALUES (:client_id, :c, $$:a$$, $$:b$$);
SELECT 1 AS one \; SELECT 2 AS two, 3 AS one \; SELECT 4 AS four WHERE false \; SELECT i AS four FROM numbers
    WHERE i < 3 ORDER BY i \aset q_
INSERT INTO seen (client, i4, i8, i2) VALUES (:client_id, :q_one, :q_two, :q_four);
INSERT INTO seen (client, a) VALUES (:client_id, $$first$$) \; INSERT INTO seen (client, a)
    VALUES (:client_id, $$second$$) RETURNING a \gset r_
INSERT INTO seen (client, a) VALUES (:client_id, $$:r_a$$) \; \; SELECT 1;')
same '\gset and \aset, several statements in one' 3 simple

# What pgbench takes the texts of a table for.
SCRIPTS=('SELECT $$ 12$$ AS blank, $$0x1F$$ AS hex, $$1e3$$ AS exponent, $$yes$$ AS yes, $$null$$ AS nothing,
    $$t$$ AS t \gset
\set a :blank + 1
\set b :hex + 1
\set c :exponent / 7
\set d :yes and :t
\set e :nothing is null
\if :d and :e
INSERT INTO seen (client, i4, f8, n) VALUES (:client_id, :a, :b, :c);
\endif')
same 'texts of \gset in expressions' 2

SCRIPTS=('\set r random(1, 1000)
INSERT INTO seen (client, a, i4) VALUES (:client_id, $$first$$, :r);'
    '\set r random(1, 1000) + 5000
INSERT INTO seen (client, a, i4) VALUES (:client_id, $$second$$, :r);'
    '\if :r > 5000
INSERT INTO seen (client, a, i4) VALUES (:client_id, $$third$$, :r);
\else
INSERT INTO seen (client, a, i4) VALUES (:client_id, $$none$$, :r);
\endif')
WEIGHTS=(3 1 2)
VARIABLES=(r 0)
same 'a weighted mix whose scripts share variables' 60
SCRIPTS=('INSERT INTO seen (client, a) VALUES (:client_id, $$often$$);' \
    'INSERT INTO seen (client, a) VALUES (:client_id, $$seldom$$);')
WEIGHTS=(9 1)
same 'a weighted mix' 100

# ---- errors

WRITE='INSERT INTO seen (client, i4) VALUES (:client_id, 1);'

both_fail 'a division by zero in a statement' 22012 'division by zero' "$WRITE
SELECT 1 / (1 - :scale);"
both_fail 'a division by zero in an expression' 22012 'division by zero' "$WRITE
\\set x 1 / (1 - :scale)"
both_fail 'an expression out of range' 22003 'bigint mul out of range' "$WRITE
\\set x 9223372036854775807 * (1 + :scale)"
both_fail 'a double that is no integer' 22003 'double to int overflow for 1' "$WRITE
\\set x int(1e19)"
both_fail 'a boolean that is no number' 22023 'cannot coerce boolean to int' "$WRITE
\\set x true + 1"
both_fail 'an empty range' 22023 'empty range given to random' "$WRITE
\\set x random(:scale, 0)"
both_fail 'a parameter out of its limits' 22023 'gaussian parameter must be at least 2.000000' "$WRITE
\\set x random_gaussian(1, 10, :scale)"
both_fail '\gset without a row' 21000 'expected one row, got 0' "$WRITE
SELECT i FROM numbers WHERE i = 0 \\gset"
both_fail '\gset with rows' 21000 'expected one row, got 20' "$WRITE
SELECT i FROM numbers \\gset"
both_fail '\gset with a column that is no name' 42601 'error storing into variable' "$WRITE
SELECT 2 AS \"a b\" \\gset"
both_fail 'a unique violation' 23505 'duplicate key value violates unique constraint' "BEGIN;
$WRITE
INSERT INTO numbers VALUES (1 + :client_id, 'again');
END;"
both_fail 'a text that is no number, in a statement' 22P02 'invalid input syntax for type integer: "abc"' "$WRITE
SELECT 'abc' AS word \\gset
INSERT INTO seen (client, i4) VALUES (:client_id, :word);" extended prepared
VARIABLES=(word abc)
both_fail 'a text that is no number, in an expression' 22023 'malformed variable "word" value: "abc"' "$WRITE
\\set x :word + 1"
both_fail 'a value out of range for the column' 22003 'out of range for type smallint|smallint out of range' "$WRITE
\\set x random(100000, 200000)
INSERT INTO seen (client, i2) VALUES (:client_id, :x);"
both_fail 'a script that ends in the middle of a transaction' 25001 \
    'end of script reached without completing the last transaction' "BEGIN;
$WRITE"
both_fail 'a variable that nobody sets, in simple mode' 42601 'syntax error at or near ":"' "$WRITE
SELECT :nowhere;" simple

# ---- the log of single transactions

printf '%s\n' "$WRITE" >"$work/0.sql"
for share in 1 0.2; do
    rm -f "$work"/log.*
    OUT=$(pgbench -n -c $CLIENTS -j $CLIENTS -t 200 --random-seed=$SEED -f "$work/0.sql" \
        --log --log-prefix="$work/log" --sampling-rate=$share 2>&1)
    # client_id transaction_no time script_no time_epoch time_us
    expected=$(cat "$work"/log.* | awk '{ print $1 "|" $2 "|" $4 }' | sort -t'|' -k1,1n -k2,2n)
    run=$(sql "SELECT bench.create_workload('w0', \$script\$$WRITE\$script\$)" \
        "SELECT bench.run('w0', clients => $CLIENTS, transactions => 200, seed => $SEED, log_rate => $share)" \
        2>/dev/null | tail -n 1)
    got=$(sql "SELECT client, transaction, script FROM bench.transactions WHERE run_id = $run
        ORDER BY client, transaction")
    if [ -n "$expected" ] && [ "$got" = "$expected" ]; then
        tap_pass "pgbench --log --sampling-rate=$share logs the same $(wc -l <<<"$expected") transactions"
    else
        tap_fail "pgbench --log --sampling-rate=$share logs the same transactions" \
            "$(differences "$expected" "$got" | head -n 20)"$'\n'"$OUT"
    fi
done

# ---- where they differ on purpose

# Refused before anything has run, where pgbench finds it out later, or does it.
refused() { # NAME SQLSTATE MESSAGE SCRIPT [MODE…]
    local name=$1 sqlstate=$2 message=$3 mode
    SCRIPTS=("$4")
    shift 4
    [ $# -gt 0 ] || set -- "${MODES[@]}"
    for mode in "$@"; do
        clear
        ours "$mode" 5
        like "$OUT" "ERROR:  $sqlstate: .*$message" "$name, $mode: is refused with $sqlstate"
        is "$(seen)" '' "$name, $mode: nothing has run"
    done
    VARIABLES=()
}

refused 'a variable that nobody sets' 42703 nowhere "$WRITE
SELECT :nowhere;" extended prepared
VARIABLES=(word abc)
refused 'a variable in a string constant' 42601 'string constant' "$WRITE
SELECT ':word';" extended prepared
refused 'a variable that changes, in a name' 42601 'attached' "$WRITE
\\set x 1
SELECT 1 AS tbl_:x;" extended prepared
refused 'a quote that does not end' 42601 'unterminated' "$WRITE
SELECT 'abc;" simple
refused '\shell' 0A000 'not supported' "$WRITE
\\shell true" simple
refused '\setshell' 0A000 'not supported' "$WRITE
\\setshell x echo 1" simple
refused 'a pipeline' 0A000 'not supported' "\\startpipeline
$WRITE
\\endpipeline" prepared

is "$(sql 'SELECT count(*) FROM bench.progress')" 0 'nothing is left'
done_testing
