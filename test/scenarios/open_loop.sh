#!/usr/bin/env bash
# Under a rate a stall of the server shows in every transaction that was due in it. No upper bounds
# on times here: how long the rest takes is the machine's affair.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# shellcheck disable=SC2119
faults_start

of() { sql "SELECT $2 FROM bench.summary WHERE run_id = $1"; }

# Runs something for six seconds, with its table locked for two of them.
stalled_run() { # ARGUMENTS
    local run
    run=$(sql "SELECT bench.start('pk_update', clients => 4, secs => 6, $1)")
    eventually 10 "SELECT count(*) >= 2 FROM bench.samples WHERE run_id = $run"
    sql 'BEGIN; LOCK TABLE bench_data.pk; SELECT pg_sleep(2); COMMIT' >/dev/null
    sql "SELECT bench.wait($run)" >/dev/null
    RUN=$run
}

name='an open loop'
stalled_run 'rate => 200, seed => 1'
is "$(of "$RUN" 'status, backlog < 100')" 'completed|t' "$name: it catches up before the end"
is "$(of "$RUN" 'transactions > 900')" t "$name: the stall thins nothing out"
# A third of all were due in the stall, evenly spread over two seconds.
is "$(of "$RUN" 'latency_p95_ms > 1500 AND latency_p99_ms > 1800')" t "$name: the percentiles show it"
is "$(of "$RUN" 'latency_avg_ms > 200')" t "$name: so does the mean"
is "$(of "$RUN" 'lag_avg_ms > 0.8 * latency_avg_ms AND lag_avg_ms < latency_avg_ms')" t \
    "$name: most of it is lag, which is part of the latency"
is "$(of "$RUN" 'lag_max_ms > 1800 AND lag_max_ms <= latency_max_ms')" t "$name: the greatest lag is about the stall"
is "$(sql "SELECT max(lag_avg_ms) > 500 AND min(lag_avg_ms) < 100 FROM bench.samples WHERE run_id = $RUN")" t \
    "$name: the samples tell when"

name='the closed loop'
stalled_run 'seed => 1'
is "$(of "$RUN" 'latency_p99_ms < 1000 AND latency_max_ms > 1800')" t "$name: a percentile hides it"
is "$(of "$RUN" 'lag_avg_ms IS NULL AND lag_max_ms IS NULL AND backlog IS NULL')" t \
    "$name: there is no schedule to lag behind"

name='a stall that outlasts the run'
RUN=$(sql "SELECT bench.start('pk_update', clients => 4, secs => 3, seed => 1)")
eventually 10 "SELECT count(*) >= 4 FROM bench.samples WHERE run_id = $RUN"
sql 'BEGIN; LOCK TABLE bench_data.pk; SELECT pg_sleep(4); COMMIT' >/dev/null
is "$(sql "SELECT bench.wait($RUN)")" completed "$name: the run completes"
is "$(of "$RUN" 'latency_max_ms > 1800')" t "$name: the maximum is that of the clients that waited"
is "$(sql "SELECT max(latency_max_ms) < 1800 FROM bench.samples WHERE run_id = $RUN")" t \
    "$name: they are in no sample, as none ended in the run"
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'stall'")" 1 "$name: the finding says so"

name='an open loop with a limit'
stalled_run 'rate => 200, seed => 1, latency_limit => 500'
is "$(of "$RUN" 'skipped > 200')" t "$name: what cannot make it is skipped"
is "$(of "$RUN" 'late >= 1 AND late <= transactions')" t "$name: what was in the stall is late"
is "$(of "$RUN" 'latency_p99_ms < 2500 AND lag_max_ms < 1000')" t "$name: nothing starts that is late already"
is "$(sql "SELECT s.skipped = (SELECT sum(skipped) FROM bench.samples WHERE run_id = $RUN)
                  AND s.late = (SELECT sum(late) FROM bench.samples WHERE run_id = $RUN)
           FROM bench.summary s WHERE run_id = $RUN")" t "$name: samples and summary agree"

name='too high a rate'
run=$(sql "SELECT bench.run('pk_update', clients => 2, secs => 2, rate => 1000000)")
is "$(of "$run" 'status, backlog > 0 AND abs(transactions + backlog - 2000000) < 200000')" 'completed|t' \
    "$name: what was not started is the backlog"
is "$(of "$run" 'lag_max_ms > 500')" t "$name: the lag grows"
try "SELECT bench.run('pk_update', clients => 2, secs => 1, rate => 1000000)"
like "$OUT" 'fell behind: [0-9]+ transactions were due but not started at the end' "$name: the closing report says so"
run=$(sql "SELECT bench.run('pk_update', clients => 2, secs => 2, rate => 1000000, latency_limit => 10)")
is "$(of "$run" 'skipped > 0')" t "$name: under a limit the late ones are skipped instead"

# Steps, and ramps: the counts of each second against the integral, within 4.5 standard deviations of a Poisson count.
name='a rate that changes'
for rates in '{"0": 200, "1": 1500, "2": 0, "3": 400}' '{"0": 0, "2": 2000, "4": 200, "shape": "ramps"}'; do
    run=$(sql "SELECT bench.run('pk_select', clients => 2, secs => 4, warmup => 0.5, sample_interval => 0.5, \
        rates => '$rates', max_tries => 5)")
    is "$(sql "SELECT rates = '$rates' FROM bench.runs WHERE run_id = $run")" t "$name: $rates: kept as given"
    case $rates in
    *ramps*) rate='CASE WHEN t < 2 THEN 1000 * t ELSE 2000 - 900 * (t - 2) END' ;;
    *) rate="('{200,1500,0,400}'::float8[])[ceil(t)]" ;;
    esac
    # The middle of an interval has its mean rate. Each transaction counts in the interval that it ends in.
    is "$(sql "SELECT bool_and(abs(transactions - due) <= 4.5 * sqrt(greatest(due, 1)) + 3) FROM (
        SELECT s.transactions, ($rate) * s.secs AS due
        FROM (SELECT *, round(elapsed::numeric, 1)::float8 - 0.25 AS t FROM bench.samples WHERE run_id = $run) AS s
        ) AS x")" t "$name: $rates: as many as are due"
    is "$(sql "SELECT abs(r.rate - s.tps) < 4.5 * sqrt(r.rate / s.secs) + 1 FROM bench.runs r
        JOIN bench.summary s USING (run_id) WHERE run_id = $run")" t "$name: $rates: the mean"
    is "$(sql "SELECT count(*) FROM bench.findings($run) WHERE topic IN ('dip', 'warm-up', 'drift')")" 0 \
        "$name: $rates: steps are no dips"
done
sql "SELECT bench.start('pk_select', secs => 60, rates => '{\"0\": 100, \"0.5\": 0}')" >/dev/null
run=$(last_run)
eventually 10 "SELECT status = 'running' FROM bench.runs WHERE run_id = $run"
clock
sql "SELECT bench.stop($run)" >/dev/null
within 3000 "$name: clients that wait for nothing are woken"
status_is "$run" canceled "$name"

name='stopping'
run=$(sql "SELECT bench.start('pk_update', clients => 4, secs => 60, rate => 0.01)")
eventually 10 "SELECT status = 'running' FROM bench.runs WHERE run_id = $run"
clock
sql "SELECT bench.stop($run)" >/dev/null
within 3000 "$name: clients that wait for their time are woken"
status_is "$run" canceled "$name"
nothing_left "$name"

log_is_clean
done_testing
