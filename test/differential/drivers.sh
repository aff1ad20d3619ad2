#!/usr/bin/env bash
# Generated scripts, a hundred or all thousand, by the engine and over connections, with the same seed: the rows that
# they leave, the variables that they keep, the counts of transactions and statements and the errors that end their
# clients must be the same, in each query mode. SEED chooses other scripts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/cluster.sh
. test/lib/cluster.sh
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

# As many mixes of so many scripts: a mix may have 128.
MIXES=10
WITHOUT_ERRORS=7
SCRIPTS=100
if [ -z "${FULL:-}" ]; then MIXES=2 WITHOUT_ERRORS=1 SCRIPTS=50; fi
SEED=${SEED:-20261123}

work=$(mktemp -d)
at_exit 'rm -rf "$work"'
cluster_start 'fsync = off' 'autovacuum = off' || exit 1
sql 'CREATE EXTENSION pgbench_ext' \
    'CREATE TABLE seen (id bigserial, client text, script text, a text, b text, c text, d text)' \
    'CREATE TABLE numbers (i int PRIMARY KEY, n bigint NOT NULL, word text)' >/dev/null || exit 1

# Prints the statements that create the scripts of a mix: values, conditions, kept results, blocks, several statements
# in one, changes of rows that other transactions have changed before.
generate() { # MIX MODE
    python3 - "$SEED" "$1" "$SCRIPTS" "$WITHOUT_ERRORS" "$2" <<'PY'
import random, sys
seed, mix, scripts, without_errors = map(int, sys.argv[1:5])
mode = sys.argv[5]
rng = random.Random(seed * 1000 + mix)

def operand():
    return rng.choice(["0", "1", "-1", "7", "42", "1000", "3.5", "-0.25", "2147483648", ":a", ":b"])

def expression():
    left, right = operand(), operand()
    return rng.choice([
        f"random(1, {rng.randint(1, 1000)})",
        f"random_gaussian(1, {rng.randint(10, 1000)}, {rng.uniform(2, 5):.2f})",
        f"random_exponential(1, {rng.randint(10, 1000)}, {rng.uniform(0.5, 5):.2f})",
        f"random_zipfian(1, {rng.randint(10, 1000)}, {rng.uniform(1.1, 2):.2f})",
        f"hash(:{rng.choice('ab')}, {rng.randint(0, 9)})",
        f"permute(:{rng.choice('ab')}, {rng.randint(2, 999)}, {rng.randint(0, 9)})",
        f"abs(:{rng.choice('ab')}) % {rng.randint(1, 99)}",
        f"least({left}, {right})",
        f"greatest({left}, {right})",
        f"case when {left} < {right} then {rng.randint(0, 9)} else {rng.randint(10, 19)} end",
        f"{rng.randint(-99, 99)} * {rng.randint(-99, 99)} - {rng.randint(0, 9)} / {rng.randint(1, 9)}",
        f"sqrt({rng.randint(0, 100)})",
        f"int({rng.uniform(-9, 9):.3f})",
        f"{left} is null",
        f"({left} < {right}) and ({right} <> {left} or {left} >= {right})",
        "null",
    ])

def statement(script):
    kind = rng.randrange(9)
    # Several statements in one have no parameters.
    if kind == 2 and mode != "simple":
        kind = 3
    if kind == 0:
        return [f"UPDATE numbers SET n = n + {rng.randint(1, 9)} WHERE i = abs(:a::numeric % 20)::int;"]
    if kind == 1:
        name, other = rng.sample("cd", 2)
        # A text is put into a simple statement as it is.
        word = "length(word)" if mode == "simple" else "word"
        return [f"SELECT n AS {name}, {word} AS {other} FROM numbers WHERE i = abs(:b::numeric % 15)::int \\gset"]
    if kind == 2:
        return [f"SELECT {rng.randint(0, 9)} AS c \\; SELECT '{rng.choice(['1', '2.5', '-3', '004'])}' AS d \\aset"]
    if kind == 3:
        return [f"SELECT count(*) AS c FROM numbers WHERE n > {rng.randint(-50, 50)} \\gset"]
    if kind == 4:
        return ["BEGIN;", f"DELETE FROM numbers WHERE i = {rng.randint(15, 19)};",
                rng.choice(["ROLLBACK;", "END;", "COMMIT;"])]
    if kind == 5:
        key = rng.randint(15, 19)
        return [f"INSERT INTO numbers VALUES ({key}, :a::numeric % 1000, 'again') ON CONFLICT (i) DO UPDATE SET n = 1;"]
    if kind == 6:
        return [f"SELECT generate_series(1, {rng.randint(1, 30)});"]
    if kind == 7:
        return ["SELECT i, n, word FROM numbers ORDER BY i;"]
    return [f"SELECT pg_catalog.length((:c)::text), {rng.randint(0, 9)} / {rng.randint(1, 9)}.0;"]

for script in range(scripts):
    lines = ["\\set a random(1, 100)", "\\set b random(1, 1000)", "\\set c 0", "\\set d 7"]
    for _ in range(rng.randint(1, 6)):
        choice = rng.random()
        if choice < 0.35:
            lines.append(f"\\set {rng.choice('cd')} {expression()}")
        elif choice < 0.5:
            lines += [f"\\if :a > {rng.randint(0, 100)}", f"\\set c {rng.randint(0, 9)}",
                      f"\\elif :b < {rng.randint(0, 1000)}", *statement(script), "\\else", *statement(script),
                      "\\endif"]
        else:
            lines += statement(script)
    lines.append(f"INSERT INTO seen (client, script, a, b, c, d) "
                 f"VALUES (:client_id::text, 's{script}', (:a)::text, (:b)::text, (:c)::text, (:d)::text);")
    # Some of the last mixes end their client by an error, and so their run.
    if mix > without_errors and rng.random() < 0.01:
        lines.insert(4, rng.choice(["SELECT 1 /\n0;", "SELECT :a::text + nothing;", "SELECT 'x'::int;"]))
    text = "\n".join(lines).replace("'", "''")
    print(f"SELECT bench.create_workload('s{script}', '{text}');")
PY
}

mix=$(seq -f 's%.0f@1' -s, 0 $((SCRIPTS - 1)))

# A run leaves rows, counts, errors. Of a hundred scripts, 300 draws leave out one in twenty: each mode has another
# seed, so that hardly one is never run.
leaves() { # SEED MODE DRIVER
    sql 'TRUNCATE seen RESTART IDENTITY' 'TRUNCATE numbers' \
        "INSERT INTO numbers SELECT g, g * 10, 'word ' || g FROM generate_series(0, 19) g" >/dev/null
    run=$(sql "SELECT bench.run('$mix', transactions => 300, seed => $1, query_mode => '$2', driver => '$3')" \
        2>"$work/notices" | tail -n 1)
    sql "SELECT script, a, b, c, d FROM seen ORDER BY id" 'SELECT * FROM numbers ORDER BY i' \
        "SELECT status, (SELECT (transactions, failed) FROM bench.summary s WHERE s.run_id = r.run_id) FROM bench.runs r
            WHERE run_id = ${run:-0}" \
        "SELECT script, line, count, failed, rows FROM bench.statements WHERE run_id = ${run:-0} ORDER BY 1, command" \
        "SELECT sqlstate, message, detail, count, failed FROM bench.errors WHERE run_id = ${run:-0} ORDER BY 1"
    [ -n "$run" ] || cat "$work/notices"
}

export PGOPTIONS='-c client_min_messages=warning'
seed=0
for ((at = 1; at <= MIXES; at++)); do
    for mode in simple extended prepared; do
        name="mix $at, $mode"
        generate "$at" "$mode" >"$work/create" || { tap_fail "$name: scripts are generated"; continue; }
        ok "$name: scripts are created" psql -XAtq -v ON_ERROR_STOP=1 -f "$work/create"
        seed=$((seed + 1))
        leaves "$seed" "$mode" engine >"$work/engine"
        leaves "$seed" "$mode" wire >"$work/wire"
        ok "$name: both drivers leave the same" diff "$work/engine" "$work/wire"
        [ "$at" -gt "$WITHOUT_ERRORS" ] || sed -n "s/^\(s[0-9]*\)|.*/$at \1/p" "$work/wire" >>"$work/ran"
    done
done
# An error ends its run, and with it a mix in one mode.
ok 'all transactions of mixes without errors were run' test "$(wc -l <"$work/ran")" -eq $((WITHOUT_ERRORS * 3 * 300))
ok 'hardly a script never ran' test "$(sort -u "$work/ran" | wc -l)" -ge $((WITHOUT_ERRORS * (SCRIPTS - 1)))
done_testing
