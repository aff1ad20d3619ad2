#!/usr/bin/env bash
# A plan is described beside the transaction that has executed it: an error on the way harms nobody.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start "shared_preload_libraries = 'pg_stat_statements'"
sql 'CREATE EXTENSION pg_stat_statements'
# Partitions that are left out at the start of an execution, by a function that fails at its nth call in all: the server
# calls it for the plan, for the execution, and for what EXPLAIN would show.
sql 'CREATE TABLE parted (id int, v int) PARTITION BY RANGE (id)' \
    'CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10)' \
    'CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20)' \
    'INSERT INTO parted VALUES (3, 0)' 'CREATE SEQUENCE calls' 'CREATE TABLE fails (at bigint)' \
    'INSERT INTO fails VALUES (0)' \
    "CREATE FUNCTION place() RETURNS int STABLE LANGUAGE plpgsql AS \$\$
     BEGIN
         IF nextval('calls') = (SELECT at FROM fails) THEN RAISE 'call in vain'; END IF;
         RETURN 3;
     END \$\$" \
    "SELECT bench.create_workload('w_parted', 'UPDATE parted SET v = v + 1 WHERE id = place();')" \
    "SELECT bench.create_workload('w_block',
        'BEGIN; UPDATE parted SET v = v + 1 WHERE id = 3; UPDATE parted SET v = v + 1 WHERE id = place(); END;')" \
    >/dev/null
for workload in w_parted w_block; do
    for mode in prepared simple; do
        name="$workload, $mode"
        found=0 failed=0
        for at in {1..8}; do
            sql 'ALTER SEQUENCE calls RESTART' "UPDATE fails SET at = $at" 'UPDATE parted SET v = 0 WHERE id = 3'
            RUN=$(sql "SELECT bench.run('$workload', transactions => 1, query_mode => '$mode')" 2>/dev/null)
            [ -n "$RUN" ] || RUN=$(last_run)
            done_by_it=$(sql 'SELECT v FROM parted WHERE id = 3')
            if [ "$(sql "SELECT count(*) FROM bench.statements
                WHERE run_id = $RUN AND plan LIKE '%(no plan to show: call in vain)%'")" -gt 0 ]; then
                found=$((found + 1))
                is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" completed \
                    "$name: the run is completed where call $at fails"
                like "$done_by_it" '^[12]$' "$name: and its update is there"
            elif [ "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" != completed ]; then
                failed=$((failed + 1))
                is "$done_by_it" 0 "$name: where call $at fails the transaction, nothing is there of it"
            fi
        done
        is "$((found > 0))" 1 "$name: one of the calls was for the description"
        is "$((failed > 0))" 1 "$name: and another for the execution"
    done
done
# What a cancel means is the statement.
sql 'DROP FUNCTION place' "CREATE FUNCTION place() RETURNS int STABLE LANGUAGE plpgsql AS \$\$
     BEGIN
         IF nextval('calls') % 3 = 0 THEN PERFORM pg_sleep(20); END IF;
         RETURN 3;
     END \$\$" 'ALTER SEQUENCE calls RESTART'
RUN=$(sql "SELECT bench.start('w_parted', clients => 2, secs => 60, settings => '{\"statement_timeout\": \"300ms\"}')")
eventually 20 "SELECT status NOT IN ('starting', 'running') FROM bench.runs WHERE run_id = $RUN"
is "$(sql "SELECT DISTINCT sqlstate FROM bench.errors WHERE run_id = $RUN")" 57014 \
    'a timeout while a plan is described ends the statement'
# A statement whose plan has become invalid is analysed again, with the types of its parameters known: it is another one
# for pg_stat_statements from then on.
name='a statement that is analysed again'
sql 'CREATE TABLE again (id int)' \
    "SELECT bench.create_workload('w_again', E'\\\\set x random(1, 9)\nINSERT INTO again (id) SELECT :x;')" >/dev/null
RUN=$(sql "SELECT bench.start('w_again', secs => 2)")
eventually 15 "SELECT count(*) > 0 FROM again"
sql 'ANALYZE again'
status_is "$RUN" completed "$name"
is "$(sql "SELECT count(*) FROM pg_stat_statements WHERE query LIKE 'INSERT INTO again%'")" 2 "$name: it was"
is "$(sql "SELECT ok, harness = server FROM bench.audit($RUN) WHERE counter = 'pg_stat_statements.calls'")" 't|t' \
    "$name: all of its calls are found"
# DDL changes the identifiers of statements amid a run.
name='a column whose type changes during a run'
sql 'CREATE TABLE retyped (id int, v int)' 'INSERT INTO retyped VALUES (1, 0)' \
    "SELECT bench.create_workload('w_retyped', 'UPDATE retyped SET v = v + 1 WHERE id = 1;')" >/dev/null
for driver in engine wire; do
    if [ "$driver" = engine ]; then type=bigint; else type=int; fi
    RUN=$(sql "SELECT bench.start('w_retyped', secs => 2, driver => '$driver')")
    eventually 15 'SELECT v > 0 FROM retyped'
    sql "ALTER TABLE retyped ALTER v TYPE $type" "SELECT bench.wait($RUN)" >/dev/null 2>&1
    is "$(sql "SELECT count(*) >= 2 FROM pg_stat_statements WHERE query LIKE 'UPDATE retyped%' AND calls > 0")" t \
        "$name, $driver: is counted under two identifiers"
    is "$(sql "SELECT ok IS NULL, harness > server, reason FROM bench.audit($RUN)
        WHERE counter = 'pg_stat_statements.calls'")" \
        't|t|the identifiers of statements changed during the run, for example with the type of a column' \
        "$name, $driver: its calls are not judged"
    is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'audit'")" 0 "$name, $driver: no finding"
    sql 'UPDATE retyped SET v = 0'
done
nothing_left 'at the end'
log_is_clean
no_restart 'the server has not restarted'
done_testing
