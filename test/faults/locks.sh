#!/usr/bin/env bash
# Locks that stand in a run's way: the caller's own, which no deadlock detection sees, and others'.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start
sql 'CREATE TABLE t (id int PRIMARY KEY, n int)' 'INSERT INTO t SELECT g, 0 FROM generate_series(1, 100) g' \
    "SELECT bench.create_workload('t_update', 'UPDATE t SET n = n + 1 WHERE id = 1;')" \
    "SELECT bench.create_workload('t_select', 'SELECT * FROM t WHERE id = 1;')" \
    "SELECT bench.create_workload('pk_one', 'UPDATE pk SET crt_time = now() WHERE id = :target;', fixture => 'pk')" \
    "SELECT bench.create_workload('advisory', 'SELECT pg_advisory_xact_lock(42);')" >/dev/null

# Found before the start: no run is begun.
before_start() { # NAME STATEMENT-IN-BLOCK CALL
    local runs
    runs=$(sql 'SELECT count(*) FROM bench.runs')
    clock
    try BEGIN "$2" "$3" ROLLBACK "SELECT 'usable'"
    within 4000 "$1: is found at once"
    like "$OUT" 'ERROR:  55006' "$1: 55006"
    like "$OUT" 'DETAIL:.*Lock.*HINT:' "$1: the detail names the lock, a hint says what to do"
    like "$OUT" 'usable' "$1: the session is usable"
    is "$(sql 'SELECT count(*) FROM bench.runs')" "$runs" "$1: no run was begun"
    nothing_left "$1"
}
before_start 'LOCK TABLE of the fixture and bench.run' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' \
    "SELECT bench.run('pk_select', transactions => 10)"
before_start 'LOCK TABLE of the fixture and bench.start' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' \
    "SELECT bench.start('pk_select', transactions => 10)"
before_start 'SHARE lock and a workload that writes' 'LOCK TABLE bench_data.pk IN SHARE MODE' \
    "SELECT bench.run('pk_update', transactions => 10)"
before_start 'LOCK TABLE of the fixture and bench.load' 'LOCK TABLE bench_data.pk IN ACCESS SHARE MODE' \
    "SELECT bench.load('pk', 1000)"
try BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' "SELECT bench.run('pk_select', transactions => 10)" COMMIT
like "$OUT" 'actually processed: 10' 'SHARE lock and a workload that reads: works'
before_start 'SHARE lock and a VACUUM before the run' 'LOCK TABLE bench_data.pk IN SHARE MODE' \
    "SELECT bench.run('pk_select', transactions => 10, before => 'vacuum')"
sql "SELECT bench.load('log', 0)" >/dev/null
before_start 'a table that was read and TRUNCATE before the run' 'SELECT count(*) FROM bench_data.log' \
    "SELECT bench.run('pk_insert', transactions => 10, before => 'truncate')"
sql "SELECT bench.unload('log')" >/dev/null
before_start 'TRUNCATE in the open transaction and bench.run' 'TRUNCATE bench_data.pk' \
    "SELECT bench.run('pk_select', transactions => 10)"

# Found during the run.
during_run() { # NAME STATEMENT-IN-BLOCK ARGUMENTS STATUS
    clock
    try BEGIN "$2" "SELECT bench.run($3)" ROLLBACK "SELECT 'usable'"
    within 6000 "$1: is found within seconds"
    RUN=$(last_run)
    like "$OUT" 'ERROR:  40P01' "$1: 40P01"
    like "$OUT" 'waits for a lock' "$1: the message says why"
    like "$OUT" 'HINT:.*(Commit|bench.start)' "$1: a hint says what to do"
    like "$OUT" 'usable' "$1: the session is usable"
    status_is "$RUN" "$4" "$1"
    is "$(error_of "$RUN")" 40P01 "$1: the run's error is 40P01"
    nothing_left "$1"
}
during_run 'LOCK TABLE of another table' 'LOCK TABLE t IN ACCESS EXCLUSIVE MODE' \
    "'t_select', clients => 2, transactions => 1000" failed
during_run 'SHARE lock of another table' 'LOCK TABLE t IN SHARE MODE' "'t_update', clients => 2, secs => 60" failed
during_run 'an updated row of the fixture' 'UPDATE bench_data.pk SET info = info WHERE id = 7' \
    "'pk_one', clients => 2, transactions => 1000, variables => '{\"target\": 7}'" incomplete
during_run 'an updated row of another table' 'UPDATE t SET n = n + 1 WHERE id = 1' \
    "'t_update', clients => 3, secs => 60" incomplete
during_run 'an advisory lock' 'SELECT pg_advisory_lock(42)' "'advisory', clients => 2, transactions => 1000" incomplete
is "$(sql 'SELECT sum(n) FROM t')" 0 'what waited for the caller has not been done'

# Found in the middle: what was measured before stays.
before=$(last_run)
session caller BEGIN "SELECT bench.run('pk_one', clients => 2, secs => 60, sample_interval => 0.2,
    variables => '{\"target\": 9}')"
sampling "$before" 2
session holder BEGIN 'UPDATE bench_data.pk SET info = info WHERE id = 9' 'SELECT pg_sleep(60)'
holds holder
eventually 5 "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'
    AND wait_event_type = 'Lock'"
sleep 1.2
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" running "a third session's row lock: the run waits"
leave holder
eventually 5 "SELECT sum(transactions) > 0 FROM bench.samples
    WHERE run_id = $RUN AND elapsed > (SELECT max(elapsed) - 0.3 FROM bench.samples WHERE run_id = $RUN)"
is $? 0 "a third session's row lock: the run goes on when it is released"
clock
sql "SELECT bench.stop($RUN)" >/dev/null
ended caller 5
status_is "$RUN" canceled "a third session's row lock"
kept "$RUN" "a third session's row lock"
nothing_left "a third session's row lock"

# A third session's lock on the table: clients wait before the gate.
session holder BEGIN 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(60)'
holds holder
RUN=$(sql "SELECT bench.start('pk_update', clients => 3, secs => 1, sample_interval => 0.2)")
eventually 5 "SELECT count(*) = 3 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'
    AND wait_event_type = 'Lock'"
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" starting \
    "a third session's table lock: the run is starting"
is "$(sql "SELECT phase FROM bench.progress WHERE run_id = $RUN")" starting \
    "a third session's table lock: bench.progress says starting"
clock
is "$(sql "SELECT bench.stop($RUN)")" t "a third session's table lock: bench.stop says true"
nothing_left "a third session's table lock, bench.stop"
within 3000 "a third session's table lock: bench.stop is prompt"
status_is "$RUN" canceled "a third session's table lock, bench.stop"
session caller "SELECT bench.run('pk_update', clients => 3, secs => 1, sample_interval => 0.2)"
eventually 5 "SELECT count(*) = 3 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'
    AND wait_event_type = 'Lock'"
clock
sql "SELECT pg_cancel_backend($(pid_of caller))" >/dev/null
ended caller 5
like "$OUT" 'ERROR:  57014' "a third session's table lock: bench.run can be canceled"
nothing_left "a third session's table lock, cancel"
within 3000 "a third session's table lock: the cancel is prompt"
status_is "$(last_run)" canceled "a third session's table lock, cancel"
RUN=$(sql "SELECT bench.start('pk_update', clients => 3, secs => 1, sample_interval => 0.2)")
eventually 5 "SELECT count(*) = 3 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'
    AND wait_event_type = 'Lock'"
leave holder
status_is "$RUN" completed "a third session's table lock, released"
is "$(sql "SELECT sum(secs)::numeric(9,1) FROM bench.samples WHERE run_id = $RUN")" 1.0 \
    "a third session's table lock: the wait before the gate is not measured"
kept "$RUN" "a third session's table lock, released"

# bench.load: a lock of the caller's that its leader meets, and a third session's.
load_blocked() { # NAME STATEMENT-IN-BLOCK CALL
    clock
    try BEGIN "$2" "$3" ROLLBACK "SELECT 'usable'"
    within 6000 "$1: is found within seconds"
    like "$OUT" 'ERROR:  40P01' "$1: 40P01"
    like "$OUT" 'HINT:.*Commit' "$1: a hint says what to do"
    like "$OUT" 'usable' "$1: the session is usable"
    nothing_left "$1"
    is "$(sql "SELECT count(*) FROM bench_data.pk")" 1000 "$1: the fixture is as it was"
}
load_blocked 'bench.load into a schema that the caller has just created' 'CREATE SCHEMA fresh' \
    "SELECT bench.load('pk', 1000, options => '{\"schema\": \"fresh\"}')"
load_blocked 'bench.load and a lock on bench.fixtures' 'LOCK TABLE bench.fixtures IN SHARE MODE' \
    "SELECT bench.load('pk', 2000)"
session holder BEGIN 'SELECT count(*) FROM bench_data.pk' 'SELECT pg_sleep(60)'
holds holder
session caller "SELECT bench.load('pk', 2000)"
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext load'
    AND wait_event_type = 'Lock')"
is $? 0 'bench.load waits for a reader of the fixture'
clock
sql "SELECT pg_cancel_backend($(pid_of caller))" >/dev/null
ended caller 5
nothing_left 'bench.load that waits for a reader, canceled'
within 4000 'bench.load that waits for a reader: the cancel is prompt'
leave holder
is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pk) FROM bench.fixtures WHERE name = 'pk'")" '1000|1000' \
    'bench.load that waits for a reader, canceled: the fixture is as it was'
is "$(sql "SELECT count(*) FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r'")" 1 \
    'bench.load that waits for a reader, canceled: no other table is left'

# What is not in the way: a lock that does not conflict.
try BEGIN 'UPDATE t SET n = 1 WHERE id = 2' "SELECT bench.run('t_update', clients => 2, secs => 1.5)" COMMIT
like "$OUT" 'actually processed' 'another row than the updated one: the run works'
status_is "$(last_run)" completed 'another row than the updated one'
still_works 'at the end'
log_is_clean
# ---- what is done before a run waits for a lock of another session, and the run is stopped

session holder BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' 'SELECT pg_sleep(600)'
eventually 20 "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareLock' AND granted
    AND relation = 'bench_data.pk'::regclass)"
run=$(sql "SELECT bench.start('pk_select', transactions => 10, before => 'vacuum')")
eventually 20 "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'bench_data.pk'::regclass)"
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $run")" starting \
    'VACUUM before a run waits: the run is starting'
is "$(sql "SELECT bench.stop($run)")" t 'VACUUM before a run waits: bench.stop stops it'
status_is "$run" canceled 'VACUUM before a run waits: the run is canceled'
leave holder
nothing_left 'VACUUM before a run waits'

# The worker that does it may be ended by others.
session holder BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' 'SELECT pg_sleep(600)'
eventually 20 "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareLock' AND granted
    AND relation = 'bench_data.pk'::regclass)"
session caller "SELECT bench.run('pk_select', transactions => 10, before => 'vacuum')"
eventually 20 "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'bench_data.pk'::regclass)"
sql "SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE NOT granted AND relation = 'bench_data.pk'::regclass" >/dev/null
ended caller
like "$OUT" 'ERROR:  55000: .*prepares the run' 'VACUUM before a run is terminated: the caller has the error'
is "$(sql 'SELECT status FROM bench.runs ORDER BY run_id DESC LIMIT 1')" failed \
    'VACUUM before a run is terminated: the run has failed'
leave holder
nothing_left 'VACUUM before a run is terminated'

no_restart 'the server has not restarted'
done_testing
