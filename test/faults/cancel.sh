#!/usr/bin/env bash
# Ends of runs and of those who wait for them: cancel, termination, disconnect, timeout, bench.stop.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# A developer's environment: what Rust says of it belongs into no message.
export RUST_BACKTRACE=1
faults_start

RUN_LONG="SELECT bench.run('pk_update', clients => 4, secs => 60, sample_interval => 0.2)"
START_LONG=${RUN_LONG/run/start}

# A session in bench.run that is ended in some way.
caller_ends() { # NAME SQLSTATE COMMAND…
    local name=$1 state=$2 before
    shift 2
    before=$(last_run)
    session caller "$RUN_LONG"
    sampling "${before:-0}" 2
    clock
    "$@"
    ended caller 10
    [ -z "$state" ] || like "$OUT" "(ERROR|FATAL):  $state" "$name: the caller gets $state"
    status_is "$RUN" canceled "$name"
    nothing_left "$name"
    within 3000 "$name: all is over within a second or so"
    is "$(error_of "$RUN")" 57014 "$name: the run's error says so"
    kept "$RUN" "$name"
    is "$(sql "SELECT finished_at IS NOT NULL FROM bench.runs WHERE run_id = $RUN")" t "$name: finished_at is set"
}

backend_signal() { sql "SELECT $1(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null; }

psql_signal() { kill "$1" "${PIDS[caller]}"; }

caller_ends 'Ctrl-C in bench.run' 57014 psql_signal -INT
like "$OUT" 'canceling statement due to user request' 'Ctrl-C in bench.run: the server says the usual words'
like "$OUT" 'number of transactions actually processed: [1-9].*ERROR' \
    'Ctrl-C in bench.run: the figures come before the error'
is "$(grep -c 'actually processed' <<<"$OUT")" 1 'Ctrl-C in bench.run: once'
caller_ends 'pg_cancel_backend of bench.run' 57014 backend_signal pg_cancel_backend
caller_ends 'pg_terminate_backend of bench.run' 57P01 backend_signal pg_terminate_backend
caller_ends 'kill -9 of the psql in bench.run' '' psql_signal -KILL

# The caller's session is usable after a cancel.
clock
try "SET statement_timeout = '3s'" "$RUN_LONG" "SELECT 'usable ' || current_setting('statement_timeout')"
RUN=$(last_run)
like "$OUT" 'ERROR:  57014: canceling statement due to statement timeout' \
    'statement_timeout in bench.run: the caller gets 57014'
like "$OUT" 'actually processed: .*ERROR' 'statement_timeout in bench.run: the figures come before the error'
like "$OUT" 'HINT: .*bench.start.*SET statement_timeout = 0' \
    'statement_timeout in bench.run: the hint says what does not wait'
like "$OUT" "NOTICE: .*statement_timeout .3.0 s. ends a call that waits" \
    'statement_timeout in bench.run: a NOTICE has said so'
like "$OUT" 'usable 3s' 'statement_timeout in bench.run: the session is usable'
unlike "$OUT" 'backtrace|\.rs:[0-9]+:[0-9]+' 'statement_timeout in bench.run: no backtrace'
like "$(as_pg cat "/proc/$(head -n 1 "$PGHOST/data/postmaster.pid")/environ" | tr '\0' '\n')" RUST_BACKTRACE=1 \
    'the environment says RUST_BACKTRACE=1'
within 6000 'statement_timeout in bench.run: is punctual'
status_is "$RUN" canceled 'statement_timeout in bench.run'
nothing_left 'statement_timeout in bench.run'
kept "$RUN" 'statement_timeout in bench.run'

# A subtransaction that catches the cancel: the run ends even so.
try "SET statement_timeout = '3s'" \
    "DO \$\$ BEGIN
         BEGIN PERFORM bench.run('pk_update', secs => 60, sample_interval => 0.2);
         EXCEPTION WHEN query_canceled THEN RAISE NOTICE 'caught'; END;
         PERFORM pg_sleep(0.3);
     END \$\$"
RUN=$(last_run)
like "$OUT" 'caught' 'a caught cancel: the caller goes on'
status_is "$RUN" canceled 'a caught cancel'
nothing_left 'a caught cancel'

# Who waits for a run, or has started it, may go.
is "$(sql "$START_LONG" 'SELECT 1' >/dev/null && workers)" 5 \
    'the session that called bench.start is gone: the run is not'
RUN=$(last_run)
session waiter "SELECT bench.wait($RUN)"
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'waiter'
    AND wait_event = 'Extension')"
sql "SELECT pg_cancel_backend($(pid_of waiter))" >/dev/null
ended waiter 5
like "$OUT" 'ERROR:  57014' 'a cancel of bench.wait: the waiting session gets 57014'
try "SET statement_timeout = '300ms'" "SELECT bench.wait($RUN)" "SELECT 'usable'"
like "$OUT" 'ERROR:  57014.*usable' 'statement_timeout in bench.wait: 57014, and the session is usable'
session waiter "SELECT bench.wait($RUN)"
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'waiter'
    AND wait_event = 'Extension')"
kill -KILL "${PIDS[waiter]}"
ended waiter 5
eventually 3 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'waiter')"
is $? 0 'kill -9 of the psql in bench.wait: its backend notices'
is "$(sql "SELECT bench.wait($RUN, 0.3)")" running 'bench.wait with a timeout says that the run is under way'
is "$(workers)" 5 'all workers are there after the waits have ended'
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" running \
    'the run is under way after the waits have ended'

# bench.stop: during measurement (the run of above), during warm-up, of what is over.
stops() { # NAME
    clock
    is "$(sql "SELECT bench.stop($RUN)")" t "$1: bench.stop says true"
    nothing_left "$1"
    within 3000 "$1: ends within a second or so"
    status_is "$RUN" canceled "$1"
    is "$(sql "SELECT bench.stop($RUN)")" f "$1: a second bench.stop says false"
    no_restart "$1: the server goes on"
}
session waiter "SELECT bench.wait($RUN)"
eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'waiter'
    AND wait_event = 'Extension')"
stops 'bench.stop during measurement'
ended waiter 5
is "$OUT" canceled 'bench.stop during measurement: bench.wait returns the status'
kept "$RUN" 'bench.stop during measurement'

before=$(last_run)
sql "SELECT bench.start('pk_update', clients => 2, warmup => 60, secs => 1, sample_interval => 0.2)" >/dev/null
sampling "$before" 2 warmup_samples
stops 'bench.stop during warm-up'
is "$(sql "SELECT count(*) >= 2 FROM bench.warmup_samples WHERE run_id = $RUN")" t \
    'bench.stop during warm-up: the samples of the warm-up are kept'
is "$(sql "SELECT count(*) FROM bench.samples WHERE run_id = $RUN")" 0 \
    'bench.stop during warm-up: there is no measured sample'
is "$(sql "SELECT transactions IS NULL OR transactions = 0 FROM bench.summary WHERE run_id = $RUN")" t \
    'bench.stop during warm-up: bench.summary has its row'

# While bench.run waits: the caller is told.
before=$(last_run)
session caller "$RUN_LONG"
sampling "$before" 2
stops 'bench.stop of a bench.run'
ended caller 5
like "$OUT" "WARNING.*run $RUN is canceled.*$RUN\$" 'bench.stop of a bench.run: the caller is warned and gets the id'

# Clients that wait for a lock of a third session, met within the run.
session holder 'BEGIN' 'UPDATE bench_data.pk SET info = info' 'SELECT pg_sleep(60)'
holds holder
before=$(last_run)
sql "SELECT bench.start('pk_update', clients => 3, secs => 60, sample_interval => 0.2)" >/dev/null
RUN=$(last_run)
eventually 5 "SELECT count(*) = 3 FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext client'
    AND wait_event_type = 'Lock'"
stops 'bench.stop while clients wait for a lock'
is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $RUN")" 0 \
    'bench.stop while clients wait for a lock: the stop is no error of theirs'
leave holder

# A statement that takes long, and one that does not let itself be canceled.
sql "SELECT bench.create_workload('sleeper', 'SELECT pg_sleep(60);')" \
    "CREATE FUNCTION stubborn() RETURNS void LANGUAGE plpgsql AS \$\$
     BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END \$\$" \
    "SELECT bench.create_workload('stubborn', 'SELECT stubborn();')" >/dev/null
for workload in sleeper stubborn; do
    RUN=$(sql "SELECT bench.start('$workload', clients => 2, secs => 60)")
    eventually 5 "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'
        AND wait_event = 'PgSleep'"
    stops "bench.stop of workload $workload"
done

is "$(sql 'SELECT bench.stop(999999)' 2>&1 | grep -c ERROR)" 1 'bench.stop of an unknown run is an error'
RUN=$(sql "SELECT bench.run('pk_update', transactions => 5)" 2>/dev/null)
is "$(sql "SELECT bench.stop($RUN)")" f 'bench.stop of a finished run says false'
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" completed 'bench.stop of a finished run changes nothing'

# A load whose caller ends leaves the fixture as it was.
loading="SELECT bench.load('pk', 20000000)"
for way in pg_cancel_backend pg_terminate_backend; do
    session caller "$loading"
    eventually 5 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext loader'
        AND state = 'active')"
    clock
    backend_signal "$way"
    ended caller 10
    like "$OUT" '(ERROR:  57014|FATAL:  57P01)' "$way of bench.load: the caller is told"
    nothing_left "$way of bench.load"
    within 4000 "$way of bench.load: is prompt"
    is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pk) FROM bench.fixtures WHERE name = 'pk'")" '1000|1000' \
        "$way of bench.load: the fixture is as it was"
    is "$(sql "SELECT count(*) FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r'")" 1 \
        "$way of bench.load: no other table is left"
done

still_works 'at the end'
log_is_clean
no_restart 'the server has not restarted'
done_testing
