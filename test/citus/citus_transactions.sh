#!/usr/bin/env bash
# Transactions over several nodes of Citus: all of one or nothing, whatever becomes of the run, and what was
# counted is what is there. Deadlocks and serialization failures across nodes are tried again.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/citus.sh
. test/lib/citus.sh
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

citus_or_skip

# Two-phase commits are recovered when the test says so, and distributed deadlocks looked for often.
citus_start 'fsync = off' 'citus.recover_2pc_interval = -1' 'deadlock_timeout = 50ms' || exit
remember_server

sql "CREATE TABLE pairs (id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0 CHECK (n < 1000000000))" \
    'CREATE TABLE notes (id int, client int)' 'CREATE TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)' \
    "SELECT create_distributed_table('pairs', 'id', shard_count => 8)" \
    "SELECT create_distributed_table(name, 'id', colocate_with => 'pairs')
        FROM unnest('{notes, once}'::regclass[]) AS name" \
    'INSERT INTO pairs SELECT generate_series(1, 1000)' \
    "CREATE FUNCTION fail(n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS \$\$
     BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = 'serialization_failure'; END \$\$" >/dev/null

figures() {
    sql "SELECT status, transactions, failed + coalesce(aborted, 0) FROM bench.summary WHERE run_id = ${1:-0}"
}
workload() { sql "SELECT bench.create_workload('$1', '${2//\'/\'\'}')" >/dev/null; }

nothing_written() { # DESCRIPTION
    is "$(sql 'SELECT (SELECT sum(n) FROM pairs), (SELECT count(*) FROM notes), (SELECT count(*) FROM once)')" '0|0|0' \
        "$1: no node has anything of them"
    is "$(prepared_left)" 0 "$1: and no transaction is left prepared"
}

# --- All or nothing ---
BEGINNING='\set a random(1, 1000)
\set b random(1, 1000)
\set c random(1, 1000)
BEGIN;
INSERT INTO notes VALUES (:a, :client_id);
UPDATE pairs SET n = n + 1 WHERE id = :b;'

fails() { # NAME TRANSACTIONS-PER-CLIENT REST [SQLSTATES]
    local run mode
    workload fails "$BEGINNING
$3
END;"
    for mode in prepared extended simple; do
        run=$(sql "SELECT bench.run('fails', clients => 4, transactions => $2, query_mode => '$mode')" 2>/dev/null)
        is "$(figures "$run")" "completed|0|$((4 * $2))" "$1, $mode: every transaction has failed"
        is "$(sql "SELECT sum(count) FROM bench.errors WHERE run_id = $run AND sqlstate IN (${4:-'40001'})")" \
            $((4 * $2)) "$1, $mode: with ${4:-40001}"
        nothing_written "$1, $mode"
    done
}
fails 'an error on the coordinator' 250 'SELECT fail(:a);'
fails 'an error in a shard' 250 'UPDATE pairs SET n = fail(n) WHERE id = :c;'
fails 'an error in all shards' 60 'UPDATE pairs SET n = n + 1 WHERE id <> :b;
UPDATE pairs SET n = fail(n) WHERE id <> :b;' "'40001', '40P01'" # the shards are locked in no order

# Errors that end their client. One found at the commit on one node has Citus' own code: XX000 of a
# transaction on that node alone, else the node's.
ends() { # NAME SQLSTATES REST
    local run
    workload ends "$BEGINNING
$3
END;"
    run=$(sql "SELECT bench.run('ends', clients => 8, transactions => 5)" 2>/dev/null)
    is "$(figures "$run")" 'incomplete|0|8' "$1: every client has ended"
    is "$(sql "SELECT sum(count) FROM bench.errors WHERE run_id = $run AND sqlstate IN ($2)")" 8 "$1: with $2"
    nothing_written "$1"
}
ends 'a check in a shard' "'23514'" 'UPDATE pairs SET n = 1000000000 WHERE id = :c;'
ends 'a deferred constraint at END' "'23505', 'XX000'" 'INSERT INTO once VALUES (:a), (:a);'

# Every second one fails: what is there is what was counted.
workload half "$BEGINNING
\\if :a % 2 = 0
SELECT fail(:a);
\\endif
END;"
run=$(sql "SELECT bench.run('half', clients => 4, transactions => 500)" 2>/dev/null)
is "$(sql "SELECT status, transactions + failed, failed > 800 AND failed < 1200 FROM bench.summary
    WHERE run_id = $run")" 'completed|2000|t' \
    'half of them fail: each is counted'
is "$(sql 'SELECT (SELECT sum(n) FROM pairs), (SELECT count(*) FROM notes)')" \
    "$(sql "SELECT transactions, transactions FROM bench.summary WHERE run_id = $run")" \
    'half of them fail: the others are there, and no more'
sql 'TRUNCATE notes' 'UPDATE pairs SET n = 0'

# --- Deadlocks across nodes ---
read -r ours theirs <<<"$(sql \
    "SELECT min(id), max(id) FROM (SELECT id, nodeport, row_number() OVER (PARTITION BY nodeport ORDER BY id) AS k
    FROM pairs, citus_shards WHERE shardid = get_shard_id_for_distribution_column('pairs', id)) AS p WHERE k = 1" |
    tr '|' ' ')"
workload cross "\\set first case when :client_id % 2 = 0 then $ours else $theirs end
\\set second $ours + $theirs - :first
BEGIN;
UPDATE pairs SET n = n + 1 WHERE id = :first;
UPDATE pairs SET n = n + 1 WHERE id = :second;
END;"
is "$(sql "SELECT count(DISTINCT nodeport) FROM citus_shards WHERE shardid IN
    (get_shard_id_for_distribution_column('pairs', $ours), get_shard_id_for_distribution_column('pairs', $theirs))")" \
    2 \
    'the two rows are on different nodes'
crossed() { # NAME RUN
    is "$(sql "SELECT min(n) = max(n), max(n) FROM pairs WHERE id IN ($ours, $theirs)")" \
        "t|$(sql "SELECT transactions FROM bench.summary WHERE run_id = $2")" \
        "$1: both rows have every transaction that was counted, and no other"
    is "$(sql "SELECT string_agg(DISTINCT sqlstate, ',') FROM bench.errors WHERE run_id = $2")" 40P01 \
        "$1: nothing but 40P01 is in bench.errors"
    sql 'UPDATE pairs SET n = 0'
}
run=$(sql "SELECT bench.run('cross', clients => 2, transactions => 20, max_tries => 1000)" 2>/dev/null)
is "$(sql "SELECT status, transactions, failed, retried > 0 FROM bench.summary WHERE run_id = $run")" \
    'completed|40|0|t' \
    'deadlocks: all were tried until they went through'
crossed deadlocks "$run"
run=$(sql "SELECT bench.run('cross', clients => 2, transactions => 20)" 2>/dev/null)
is "$(sql "SELECT status, transactions + failed, failed > 0 FROM bench.summary WHERE run_id = $run")" 'completed|40|t' \
    'deadlocks without another try: counted as failed'
crossed 'deadlocks without another try' "$run"

# --- Serialization failures of the nodes ---
workload same "\\set id case when random(1, 2) = 1 then $ours else $theirs end
BEGIN;
UPDATE pairs SET n = n + 1 WHERE id = :id;
INSERT INTO notes VALUES (:id, :client_id);
END;"
REPEATABLE="settings => '{\"default_transaction_isolation\": \"repeatable read\"}'"
for tries in 1000 1; do
    run=$(sql "SELECT bench.run('same', clients => 4, transactions => 50, max_tries => $tries, $REPEATABLE)" \
        2>/dev/null)
    is "$(sql "SELECT status, transactions + failed, failed > 0, retried > 0 FROM bench.summary WHERE run_id = $run")" \
        "completed|200|$([ $tries = 1 ] && echo 't|f' || echo 'f|t')" \
        "serialization failures, max_tries $tries: every transaction is counted"
    is "$(sql "SELECT string_agg(DISTINCT sqlstate, ',') FROM bench.errors WHERE run_id = $run")" 40001 \
        "serialization failures, max_tries $tries: as 40001"
    is "$(sql 'SELECT (SELECT sum(n) FROM pairs), (SELECT count(*) FROM notes)')" \
        "$(sql "SELECT transactions, transactions FROM bench.summary WHERE run_id = $run")" \
        "serialization failures, max_tries $tries: what was counted is there"
    sql 'UPDATE pairs SET n = 0' 'TRUNCATE notes'
done

# --- Statements without variables ---
workload constant 'BEGIN;
UPDATE pairs SET n = n + 1;
SELECT sum(n) FROM pairs;
END;'
for mode in prepared extended simple; do
    run=$(sql "SELECT bench.run('constant', transactions => 5, query_mode => '$mode')" 2>/dev/null)
    is "$(figures "$run")" 'completed|5|0' "statements without variables, $mode: every transaction is done"
    is "$(sql 'SELECT min(n), max(n) FROM pairs')" '5|5' "statements without variables, $mode: in all shards"
    sql 'UPDATE pairs SET n = 0'
done

# --- Plans that cannot be described ---
# Citus asks the node of a shard for EXPLAIN, in the transaction's own session there, where this function fails.
sql "CREATE FUNCTION unless_explained() RETURNS bigint STABLE LANGUAGE plpgsql AS \$\$
     BEGIN
         IF current_query() ~* '^ *EXPLAIN' THEN RAISE 'not to be explained'; END IF;
         RETURN 0;
     END \$\$" >/dev/null
undescribed() { # NAME TRANSACTIONS SUM
    local run mode
    for mode in prepared extended simple; do
        run=$(sql "SELECT bench.run('undescribed', transactions => $2, query_mode => '$mode')" 2>/dev/null)
        is "$(figures "$run")" "completed|$2|0" "$1 that cannot be described, $mode: every transaction is done"
        is "$(sql "SELECT count(*) FROM bench.statements
            WHERE run_id = $run AND plan LIKE '%Could not get remote plan%'")" 1 \
            "$1 that cannot be described, $mode: bench.statements says why"
        is "$(sql 'SELECT sum(n) FROM pairs')" "$3" \
            "$1 that cannot be described, $mode: what was done before and after is there, on both nodes"
        is "$(prepared_left)" 0 "$1 that cannot be described, $mode: no transaction is left prepared"
        sql 'UPDATE pairs SET n = 0'
    done
}
workload undescribed "BEGIN;
UPDATE pairs SET n = n + 1 WHERE id = $ours;
UPDATE pairs SET n = n + 1 WHERE id = $theirs;
SELECT n FROM pairs WHERE id = $ours AND n > unless_explained();
UPDATE pairs SET n = n + 1 WHERE id = $theirs;
END;"
undescribed 'a statement of a block' 10 30
workload undescribed "SELECT count(*) FROM pairs WHERE n > unless_explained();"
undescribed 'a query over all shards' 10 0

#
# Settings that Citus no longer has
#
try "SELECT bench.run('constant', transactions => 1, settings => '{\"citus.multi_shard_commit_protocol\": \"1pc\"}')"
like "$OUT" 'ERROR:  42704: .*was removed in Citus 11.0.*DETAIL:.*two phases.*HINT:' \
    'the one-phase commit protocol: since when it is gone, and what happens instead'

is "$(prepared_left)" 0 'no transaction is left prepared'
nothing_left 'all that'
no_restart 'the coordinator has not restarted'
for node in 2 1 0; do on $node && log_is_clean; done
done_testing
