#!/usr/bin/env bash
# A warm-up until throughput is steady, with both drivers: after a cold start, with a number of transactions, with a
# rate, and stopped within it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

# A cold start of six seconds from the moment in `cold` on: each transaction takes three times as long.
sql 'CREATE TABLE cold (at timestamptz NOT NULL)' 'INSERT INTO cold VALUES (now())' \
    "CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS \$\$
    BEGIN
        PERFORM pg_sleep(CASE WHEN clock_timestamp() < at + interval '6 s' THEN 0.03 ELSE 0.01 END) FROM cold;
    END \$\$"
begin_cold() { sql 'UPDATE cold SET at = clock_timestamp()'; }
be_warm() { sql "UPDATE cold SET at = '-infinity'"; }

# The id is the last line; what the call said is in OUT. On a busy machine it may take long until throughput is steady.
measure() { # ARGUMENTS
    TRY_S=360 try "SELECT bench.run(script => 'SELECT work();', clients => 4, $1)"
    RUN=$(last_run)
}
tps() { sql "SELECT tps FROM bench.summary WHERE run_id = $1"; }
holds_of() { # DESCRIPTION CONDITION-ON-RUN
    is "$(sql "SELECT $2 FROM bench.runs r JOIN bench.summary s USING (run_id) WHERE run_id = $RUN")" t "$1"
}
# That everything about a measured run after such a warm-up fits together.
fits() { # DESCRIPTION
    status_is "$RUN" completed "$1"
    holds_of "$1: warmup is NULL, and warmup_took is what the samples of the warm-up add up to" "r.warmup IS NULL
        AND warmup_took BETWEEN 4.9 AND 299.9
        AND abs(warmup_took - (SELECT sum(w.secs) FROM bench.warmup_samples w WHERE w.run_id = r.run_id)) < 1e-6
        AND abs(warmup_took - (SELECT max(w.elapsed) FROM bench.warmup_samples w WHERE w.run_id = r.run_id)) < 1e-6"
    holds_of "$1: the samples of the warm-up are 0.25 s long" "(SELECT bool_and(abs(w.secs - 0.25) < 1e-6)
        FROM bench.warmup_samples w WHERE w.run_id = r.run_id)"
    holds_of "$1: the measurement follows at once" "(SELECT min(at - secs * interval '1 s') FROM bench.samples
        WHERE run_id = r.run_id) - (SELECT max(at) FROM bench.warmup_samples WHERE run_id = r.run_id)
        BETWEEN interval '-1 ms' AND interval '1 ms'"
    is "$(sql "SELECT counter, harness, server FROM bench.audit($RUN) WHERE NOT ok")" '' "$1: the audit finds nothing"
    is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE ok AND counter IN ('samples', 'misplaced')")" 2 \
        "$1: clients and samples agree on what was measured"
    is "$(sql "SELECT (SELECT sum(transactions) FROM bench.warmup_samples WHERE run_id = $RUN) = harness
        FROM bench.audit($RUN) WHERE counter = 'committed: warm-up'")" t "$1: and on what was not"
}

for driver in engine wire; do
    be_warm
    measure "secs => 3, driver => '$driver'"
    steady=$(tps "$RUN")
    begin_cold
    measure "secs => 3, driver => '$driver'"
    holds_of "$driver: without a warm-up the cold start is measured" "s.tps < 0.6 * $steady AND warmup_took = 0"

    begin_cold
    measure "secs => 3, warmup => NULL, sample_interval => 1, driver => '$driver'"
    like "$OUT" 'NOTICE: .*warming up until throughput is steady, for at most 300 s' "$driver: the warm-up is told"
    like "$OUT" 'NOTICE: .*throughput was steady after [0-9.]+ s of warm-up' "$driver: and its end"
    fits "$driver"
    # Clients start some time after `cold` was set.
    holds_of "$driver: the warm-up lasts longer than the cold start" 'warmup_took > 5'
    holds_of "$driver: what is measured is the steady level" "s.tps BETWEEN 0.85 * $steady AND 1.18 * $steady"
    is "$(sql "SELECT array_agg(round(elapsed::numeric, 3) ORDER BY elapsed), sum(secs) = 3
        FROM bench.samples WHERE run_id = $RUN")" '{1.000,2.000,3.000}|t' "$driver: the measurement has its samples"
    like "$(sql "SELECT bench.report($RUN)")" 'warm-up: [0-9.]+ s, until throughput was steady' \
        "$driver: the report tells it"
    is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic IN ('warmup', 'unsteady')")" 0 \
        "$driver: there is nothing to find"
    is "$(sql "SELECT options ? 'warmup' FROM bench.history WHERE run_id = $RUN")" f \
        "$driver: its series has no given warm-up"

    nothing_left "$driver"
done

be_warm
measure "transactions => 40, warmup => NULL"
fits "transactions"
holds_of "transactions: the warm-up's are not counted" 's.transactions = 160'

# While arrivals of the cold start are made up for, throughput is as steady as can be.
begin_cold
measure "secs => 3, rate => $(sql "SELECT round($steady * 0.6)"), warmup => NULL, driver => 'wire'"
fits "rate"
holds_of "rate: the backlog of the cold start is not measured" 'r.warmup_took > 8 AND lag_avg_ms < 100'

# Stopped within the warm-up.
for driver in engine wire; do
    be_warm
    sql "UPDATE cold SET at = 'infinity'"
    RUN=$(sql "SELECT bench.start(script => 'SELECT work();', secs => 60, warmup => NULL, driver => '$driver')")
    eventually 10 "SELECT count(*) > 3 FROM bench.warmup_samples WHERE run_id = $RUN"
    is "$(sql "SELECT phase, remaining, elapsed > 0 FROM bench.progress WHERE run_id = $RUN")" 'warm-up||t' \
        "$driver: bench.progress shows the warm-up, and no end"
    clock
    is "$(sql "SELECT bench.stop($RUN)")" t "$driver: can be stopped in the warm-up"
    status_is "$RUN" canceled "$driver: stopped in the warm-up"
    within 3000 "$driver: the stop is prompt"
    holds_of "$driver: warmup_took is up to the stop" "warmup_took > 0.7 AND NOT EXISTS (SELECT FROM bench.samples x
        WHERE x.run_id = r.run_id) AND abs(warmup_took - (SELECT max(w.elapsed) FROM bench.warmup_samples w
        WHERE w.run_id = r.run_id)) < 1e-6"
    is "$(sql "SELECT counter FROM bench.audit($RUN) WHERE NOT ok")" '' "$driver: the audit finds nothing"
    nothing_left "$driver: stopped"
done

# Runs of a sweep.
be_warm
try "SELECT bench.sweep('pk_select', '{1}', secs => 0.5, warmup => NULL, rate => 200)"
is "$(sql "SELECT s.warmup IS NULL, r.warmup IS NULL, r.warmup_took >= 4.9, r.status
    FROM bench.sweeps s JOIN bench.runs r USING (sweep_id)")" 't|t|t|completed' 'a sweep hands it on'
like "$(sql 'SELECT bench.sweep_report(max(sweep_id)) FROM bench.sweeps')" 'warm-up: until throughput is steady' \
    'and its report tells it'

no_restart 'the server has not restarted'
log_is_clean
done_testing
