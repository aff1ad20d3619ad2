#!/usr/bin/env bash
# What happens in scripts that go well and in scripts that do not, by pgbench and by bench.run, on the same server with
# the same seed, in each query mode: first by the engine, then by the wire driver, which over a proxy that records what
# comes by sends the same messages as pgbench.
#
# Among them are the scripts of PostgreSQL 18's src/bin/pgbench/t/001_pgbench_with_server.pl. They do not fix what the
# server makes of them, which differs between its versions, but that all get the same.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh
# shellcheck disable=SC2034 # for as_pgbench
ROLES=postgres NOTHING=' / 0'

# A column of each type that a variable's may be inferred from.
sql "CREATE TABLE seen (id bigserial, client int, word text, a text, b text, c text, d text, e text, i2 int2,
        i4 int4, i8 int8, n numeric, f4 float4, f8 float8, t text, v varchar, flag bool, day date, at timestamp,
        u uuid, ai int[], at_ text[])" \
    'CREATE TABLE numbers (i int PRIMARY KEY, word text)' \
    "INSERT INTO numbers SELECT g, 'word ' || g FROM generate_series(1, 20) g" 'CREATE SEQUENCE tries' \
    'CREATE TABLE pair (id int PRIMARY KEY, n int)' 'INSERT INTO pair VALUES (1, 0), (2, 0)' \
    "CREATE FUNCTION fail_once() RETURNS int LANGUAGE plpgsql AS 'BEGIN
        IF nextval(''tries'') = 1 THEN RAISE serialization_failure; END IF; RETURN 1; END'" \
    "CREATE FUNCTION meet() RETURNS int LANGUAGE plpgsql AS 'BEGIN
        PERFORM nextval(''tries''); WHILE (SELECT last_value < 2 FROM tries) LOOP PERFORM pg_sleep(0.001); END LOOP;
        RETURN 1; END'" >/dev/null || exit 1
cat >"$work/reset.sql" <<'SQL'
TRUNCATE seen RESTART IDENTITY;
ALTER SEQUENCE tries RESTART;
UPDATE pair SET n = 0 WHERE n <> 0;
SQL
# In the order of each client's doing.
cat >"$work/state.sql" <<'SQL'
SELECT concat((SELECT string_agg((jsonb_strip_nulls(to_jsonb(seen) - 'id'))::text, ' ' ORDER BY client, id) FROM seen),
    ' / ', (SELECT sum(n) FROM pair));
SQL
MAJOR=$(pgbench --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')
ALL=(simple extended prepared)

#
# By the engine
#

# A first script and others, with WEIGHTS, without an error; what they leave is not nothing.
same() { # NAME TRANSACTIONS [MODE…]
    local name=$1 TRANSACTIONS=$2 WEIGHT=${WEIGHTS[0]:-1} MIX=() MODES at
    shift 2
    MODES=${*:-${ALL[*]}}
    for ((at = 1; at < ${#SCRIPTS[@]}; at++)); do MIX+=("${SCRIPTS[at]}@${WEIGHTS[at]:-1}"); done
    as_pgbench "$name" "${SCRIPTS[0]}"
    like "$STATUS $STATE" '^completed [{]' "$name: leaves rows"
    VARIABLES=() WEIGHTS=()
}

# A script that ends clients; bench.errors has the SQLSTATE.
both_fail() { # NAME SQLSTATE MESSAGE SCRIPT [MODE…]
    local name=$1 sqlstate=$2 ERROR=$3 script=$4 TRANSACTIONS=5 MODES
    shift 4
    MODES=${*:-${ALL[*]}}
    as_pgbench "$name" "$script"
    is "$STATUS $ERRORS" "incomplete $sqlstate" "$name: bench.errors has $sqlstate"
    VARIABLES=()
}

CLIENTS=3 SCRIPTS=() WEIGHTS=()

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
# Of one client: the others have its number, too.
CLIENTS=1 same 'automatic variables that are given' 5

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
    by_bench "null, $mode" "$mode" postgres "${SCRIPTS[0]}"
    is "$(sql 'SELECT count(*) FROM seen WHERE i4 IS NULL AND a IS NULL')" 3 "null, $mode: is a null"
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
both_fail 'a unique violation' 23505 'duplicate key value violates unique constraint' "BEGIN;
$WRITE
INSERT INTO numbers VALUES (1 + :client_id, 'again');
END;"
both_fail 'a text that is no number, in a statement' 22P02 'invalid input syntax for type integer: "abc"' "$WRITE
SELECT 'abc' AS word \\gset
INSERT INTO seen (client, i4) VALUES (:client_id, :word);" extended prepared
both_fail 'a value out of range for the column' 22003 'out of range for type smallint|smallint out of range' "$WRITE
\\set x random(100000, 200000)
INSERT INTO seen (client, i2) VALUES (:client_id, :x);"
both_fail 'a script that ends in the middle of a transaction' 25001 \
    'end of script reached without completing the last transaction' "BEGIN;
$WRITE"
both_fail 'a variable that nobody sets, in simple mode' 42601 'syntax error at or near ":"' "$WRITE
SELECT :nowhere;" simple

# ---- the log of single transactions

for share in 1 0.2; do
    OF_PGBENCH=(--log --log-prefix="$work/log" --sampling-rate="$share") OF_RUN=", log_rate => $share"
    CLIENTS=3 TRANSACTIONS=200 MODES=simple as_pgbench "a log of $share of the transactions" "$WRITE"
    # client_id transaction_no time script_no time_epoch time_us
    is "$(sql "SELECT client, transaction, script FROM bench.transactions WHERE run_id = $(last_run)
        ORDER BY client, transaction")" \
        "$(cat "$work"/log.* | awk '{ print $1 "|" $2 "|" $4 }' | sort -t'|' -k1,1n -k2,2n)" \
        "pgbench --log --sampling-rate=$share logs the same transactions"
    rm -f "$work"/log.*
done
OF_PGBENCH=() OF_RUN=''

# ---- where they differ on purpose

# Refused before anything has run, where pgbench finds it out later, or does it.
refused() { # NAME SQLSTATE MESSAGE SCRIPT [MODE…]
    local name=$1 sqlstate=$2 message=$3 script=$4 mode
    shift 4
    for mode in "${@:-${ALL[@]}}"; do
        sql 'TRUNCATE seen'
        OUT=$(psql -XAtq -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -v script="$script" 2>&1 <<SQL
SELECT bench.create_workload('refused', :'script');
SELECT bench.run('refused', query_mode => '$mode', $(arguments engine));
SQL
        )
        like "$OUT" "ERROR:  $sqlstate: .*$message" "$name, $mode: is refused with $sqlstate"
        is "$(sql 'SELECT count(*) FROM seen')" 0 "$name, $mode: nothing has run"
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

#
# By the wire driver
#
echo "record $work/recorded" >"$work/mode"
mkdir "$work/recorded"
python3 test/lib/proxy.py "$work/port" "$work/mode" "$PGHOST/.s.PGSQL.$PGPORT" &
at_exit "kill $! 2>/dev/null"
until [ -s "$work/port" ]; do sleep 0.02; done
PGBENCH_HOST=127.0.0.1 PGBENCH_PORT=$(cat "$work/port")
export PGSSLMODE=disable
sql "CREATE SERVER net FOREIGN DATA WRAPPER bench_wire
        OPTIONS (host '127.0.0.1', port '$PGBENCH_PORT', dbname 'postgres', sslmode 'disable')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER net'

# The messages that came by, connection by connection, of clients only: pgbench's first connection is none of a client,
# and those of a run that are none set search_path.
after_run() { # theirs or ours
    local file files=() recorded
    while compgen -G "$work/recorded/*.open" >/dev/null; do sleep 0.01; done
    mapfile -t recorded < <(compgen -G "$work/recorded/*" | sort)
    [ "$1" = ours ] || recorded=("${recorded[@]:1}")
    for file in "${recorded[@]}"; do
        grep -q 'search_path = pg_catalog' "$file" || files+=("$file")
    done
    cat /dev/null "${files[@]}" >"$work/$1.messages"
    [ -s "$work/$1.messages" ] || [ "$STATUS" = failed ] || tap_fail "$name: messages of $1 are recorded"
    rm -f "$work"/recorded/*
    [ -z "${RETRIED:-}" ] || COUNTS=${COUNTS/% [12]/ $RETRIED}
    # Before PostgreSQL 16, pgbench prepares whole scripts. Of several clients nobody knows the order.
    [ "$1" = theirs ] || [ "$STATUS" = failed ] || [ "$CLIENTS" -gt 1 ] || [ "$mode$MAJOR" = prepared15 ] ||
        is "$(cat "$work/ours.messages")" "$(cat "$work/theirs.messages")" "$name: the same is sent"
}

# With IS_REFUSED=yes, bench.run on this server finds the error before it has begun to measure.
both() { # DESCRIPTION ERROR SCRIPT [MODE…]
    local name=$1 ERROR=$2 script=$3 MODES OF_RUN OF_PGBENCH=("${OF_PGBENCH[@]}" --max-tries="$TRIES")
    shift 3
    MODES=${*:-extended}
    OF_RUN="$OPTIONS, max_tries => $TRIES, jobs => $CLIENTS"
    [ "$IS_REFUSED" = yes ] || OF_RUN+=", target => 'net'"
    as_pgbench "$name" "$script"
    [ "$IS_REFUSED" = no ] || is "$STATUS" failed "$name: the wire driver does not begin"
}
put() { echo "INSERT INTO seen (word) VALUES ('$1');"; }
PIPED=(extended prepared)
DRIVERS=wire CLIENTS=1 TRIES=1 TRANSACTIONS=2 IS_REFUSED=no OPTIONS=''

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
if [ "$MAJOR" -ge 19 ]; then
    OF_PGBENCH=(--continue-on-error) OPTIONS=', continue_on_error => true'
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
    OF_PGBENCH=() OPTIONS=''
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
    is "$COUNTS" '2 0 1' "$mode, a concurrent update: one of two is tried again"
    for of in theirs ours; do
        is "$(grep -E '^[BQ] ' "$work/$of.messages" | grep -oE '[0-9]{6,}' | sort | uniq -c | awk '{ print $1 }' |
            sort | xargs)" '1 2' "$mode, a concurrent update: $of draws no other number for the next try"
    done
    # The victim may come in the other's way again.
    RETRIED=some CLIENTS=2 TRIES=9 TRANSACTIONS=1 both 'a deadlock' '' "BEGIN;
UPDATE pair SET n = n + 1 WHERE id = :client_id::int + 1;
SELECT meet();
UPDATE pair SET n = n + 1 WHERE id = 2 - :client_id::int;
END;" "$mode"
    is "$COUNTS" '2 0 some' "$mode, a deadlock: it is tried again"
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
    local name=$1 script=${2%@*} WEIGHT=${2##*@} MIX=("$3") VARIABLES=(scale 3)
    shift 3
    both "$name" '' "$script" "$@"
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
OF_PGBENCH=(-C) OPTIONS=', reconnect => true'
BUILTIN=tpcb-like WORKLOAD=tpcb both 'tpcb-like with connections of each transaction' '' '' simple
BUILTIN=simple-update WORKLOAD=tpcb_simple_update both 'simple-update with connections of each transaction' '' '' \
    extended
TRIES=3 both 'a serialization failure with connections of each transaction' '' "$(put a)
SELECT fail_once();" "${ALL[@]}"
both 'an error with connections of each transaction' 'division by zero' "$(put a)
SELECT 1 / (:client_id::int);" "${ALL[@]}"
BUILTIN=select-only WORKLOAD=tpcb_select
OF_PGBENCH=(--rate=100000 --latency-limit=1000000) OPTIONS=', rate => 100000, latency_limit => 1000000'
CLIENTS=2 TRANSACTIONS=50 both 'a rate' '' '' prepared
is "$COUNTS" '100 0 0' 'a rate: all transactions are processed'
OF_PGBENCH=(-l --log-prefix="$work/log" --sampling-rate=0.5) OPTIONS=', log_rate => 0.5'
TRANSACTIONS=50 both 'a log of a part' '' '' simple
like "$(cat "$work"/log.* | wc -l)" '^([89]|[1-3].|4[0-2])$' "a log of a part: pgbench's"
like "$(sql 'SELECT count(*) FROM bench.transactions WHERE run_id = (SELECT max(run_id) FROM bench.runs)')" \
    '^([89]|[1-3].|4[0-2])$' "a log of a part: the wire driver's"
unset PGOPTIONS
BUILTIN='' WORKLOAD=''

# Each by itself: how many transactions are skipped, or run before the end, is not said in advance.
for_itself() { # NAME COUNTS SAYS SCRIPT
    by_pgbench extended postgres "$4"
    like "$COUNTS $(<"$work/stdout")$(<"$work/stderr")" "^$2.*$3" "$1, pgbench"
    by_bench "$1" extended postgres "$4" "$(arguments wire), target => 'net', jobs => $CLIENTS"
    like "$COUNTS $MESSAGE$(<"$work/stderr")" "^$2.*$3" "$1, the wire driver"
}
OF_PGBENCH=(--rate=100000 --latency-limit=1) OF_RUN=', rate => 100000, latency_limit => 1'
TRANSACTIONS=10 for_itself 'a rate that cannot be kept: most is not begun' '[01] 0 0 ' 'skipped: (9|10) ' \
    'SELECT pg_sleep(0.01);'
if [ "$MAJOR" -ge 17 ]; then
    OF_PGBENCH=(--exit-on-abort) OF_RUN=', exit_on_abort => true'
    CLIENTS=2 TRANSACTIONS=100000 for_itself 'exit_on_abort ends the other client' '[0-9]{1,4} 0 0 ' \
        'division by zero' "INSERT INTO seen (word) VALUES ('a') RETURNING id AS i \\gset
\\if :i = 5
\\set y 1 / 0
\\endif"
fi

is "$(sql 'SELECT count(*) FROM bench.progress')" 0 'nothing is left'
script_done
