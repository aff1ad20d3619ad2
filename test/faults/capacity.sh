#!/usr/bin/env bash
# Searches for a capacity: what they make, and what is left of those that are broken off. What they find is held against
# simulated queues, in the crate's own tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/sweep.sh
. test/lib/sweep.sh

# No checkpoint but those that are asked for.
faults_start 'checkpoint_timeout = 1h'

# Two clients that wait for 5 ms each: at most 400 a second, on whatever machine.
sql "SELECT bench.create_workload('waits', E'\\\\sleep 5 ms\nSELECT 1;')" \
    "SELECT bench.create_workload('fails', 'SELECT 1 / 0')" >/dev/null
ROUGH="clients => 2, secs => 0.5, trials => 1, margin => 0.5"
answer() { sql "SELECT $1 FROM bench.capacities WHERE sweep_id = $SWEEP"; }

# What the search says was the limit, unless the failing trials were such.
limit() { # LIMIT CONDITION
    sql "SELECT CASE WHEN bool_or($2) THEN '$1' ELSE min(c.limited_by) END FROM bench.capacities c
    JOIN bench.sweep_runs s ON s.run_id = ANY (c.failing_runs) WHERE c.sweep_id = $SWEEP"; }

# A search that has ended says what its trials say.
holds_together() { # DESC
    is "$(in_sweep "count(*) FILTER (WHERE purpose = 'estimate') || ' ' || count(*) FILTER (WHERE purpose = 'overload')
        || ' ' || count(*) FILTER (WHERE purpose = 'operating')")" '1 1 1' "$1: one run of each other kind"
    is "$(in_sweep 'max(place) = count(*) AND min(place) = 1')" t "$1: no place is missing"
    is "$(in_sweep 'bool_and(outcome IS NOT NULL AND error IS NULL)')" t "$1: each has shown something"
    is "$(sql "SELECT count(*) FROM bench.sweep_runs s JOIN bench.runs r USING (run_id)
        WHERE s.sweep_id = $SWEEP AND s.rate IS DISTINCT FROM r.rate")" 0 "$1: runs were made at their rates"
    is "$(answer trials)" "$(in_sweep "count(*) FILTER (WHERE purpose = 'trial')")" "$1: trials are counted"
    is "$(sql "SELECT bool_and((s.outcome ->> 'latency_ms')::float <= c.latency_limit)
        FROM bench.sweep_runs s JOIN bench.capacities c USING (sweep_id)
        WHERE s.sweep_id = $SWEEP AND s.purpose = 'trial' AND s.rate = c.rate")" t "$1: its rate passed"
    is "$(answer 'rate < rate_high AND rate_low = rate AND cardinality(failing_runs) > 0')" t \
        "$1: and a higher one failed"
}

name='bench.capacity'
SWEEP=$(sql "SELECT bench.capacity('waits', latency_limit => 60, $ROUGH)" 2>"$work/notices")
sweep_is completed "$name"
like "$(cat "$work/notices")" 'p99 within 60 ms: [0-9.,]+ transactions per second (and more )?are sustained' \
    "$name: says what it found"
holds_together "$name"
is "$(answer 'abs(operating_rate / (0.7 * rate) - 1) < 0.001 AND hysteresis IS NOT NULL')" t \
    "$name: an operating rate was confirmed, and hysteresis looked for"
is "$(in_sweep "max((outcome ->> 'checkpoints')::int) FILTER (WHERE purpose = 'operating') >= 1
    AND max((outcome ->> 'checkpoints')::int) FILTER (WHERE purpose <> 'operating') = 0")" t \
    "$name: a checkpoint fell into the run at the operating rate, and into no other"
unlike "$(cat "$work/notices")" 'without a checkpoint' "$name: there was one"
like "$(cat "$work/notices")" 'p99 rests on [0-9a-z]+ transactions? above it: use secs => [0-9]+ or more' \
    "$name: half a second has few transactions above the percentile"
# In half a second a queue grows to 60 ms at 448 a second, and arrivals by chance may be fewer than their rate says.
# What two clients cannot do shows in what they have done, below.
is "$(answer 'rate BETWEEN 20 AND 490')" t "$name: the rate is one that two clients can have ($(answer rate))"
is "$(in_sweep 'max(tps) < 440')" t "$name: no run does more than they can, the overload and the trials neither"
like "$(sql "SELECT bench.sweep_report($SWEEP)")" 'Capacity.*p99 within 60 ms.*Trials' "$name: has a report"
like "$(sql "SELECT bench.sweep_report($SWEEP, 'html')")" 'plot-capacity' "$name: with a curve"
is "$(sql "SELECT search ->> 'trials' FROM bench.sweeps WHERE sweep_id = $SWEEP")" 1 \
    "$name: bench.sweeps has the search"
is "$(sql "SELECT count(DISTINCT rate) = count(*) FILTER (WHERE rate IS NOT NULL) AND sum(rounds) = (SELECT count(*)
    FROM bench.sweep_runs s WHERE s.sweep_id = $SWEEP) FROM bench.sweep_results WHERE sweep_id = $SWEEP")" t \
    "$name: bench.sweep_results has a row for each rate"
nothing_left "$name"

name='several objectives'
SWEEP=$(sql "SELECT bench.capacity('waits', latency_limits => '{200,40}', $ROUGH, rounds => 2)" 2>/dev/null)
sweep_is completed "$name"
is "$(sql "SELECT string_agg(latency_limit::text, ' ') FROM bench.capacities WHERE sweep_id = $SWEEP")" '40 200' \
    "$name: a row for each"
is "$(in_sweep "count(*) FILTER (WHERE purpose = 'estimate')")" 2 "$name: each round is a search of its own"

name='throughput alone, over connections'
SWEEP=$(sql "SELECT bench.capacity('waits', $ROUGH, driver => 'wire', jobs => 1)" 2>/dev/null)
sweep_is completed "$name"
is "$(answer 'latency_limit IS NULL AND rate > 0')" t "$name: has a rate"
# Unless the machine was busy, or so late that what sleeps took much longer.
is "$(limit clients "(outcome ->> 'cpu_idle')::float < 0.3 OR (outcome ->> 'service_ms')::float > 6")" clients \
    "$name: the clients are the limit"

name='bench.stop_sweep of a search'
SWEEP=$(sql "SELECT bench.start_capacity('waits', latency_limit => 60, $ROUGH)")
in_the_middle 3
clock
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name says true"
within 3000 "$name: ends within a second or so"
sweep_is canceled "$name"
nothing_left "$name"
is "$(sql "SELECT count(*) FROM bench.capacities WHERE sweep_id = $SWEEP")" 0 "$name: there is no answer"
is "$(sql "SELECT bench.resume_sweep($SWEEP)")" "$SWEEP" "$name: it can be taken up"
sweep_is completed "$name, resumed"
holds_together "$name, resumed"
so_far_kept "$name, resumed"
try "SELECT bench.resume_sweep($SWEEP)"
like "$OUT" "ERROR:  55000: sweep $SWEEP is completed" "$name: once"

name='a trial that fails'
try "SELECT bench.capacity('fails', $ROUGH)"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
like "$OUT" 'ERROR:.*division by zero|ERROR:  55000: trial [0-9]+ is' "$name: is an error"
is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $SWEEP")" failed "$name: the search failed"
nothing_left "$name"

# A transaction of 30 ms has no rate at which it takes less than 20, however many clients there are.
name='latency as the limit'
sql "SELECT bench.create_workload('takes', 'SELECT pg_sleep(0.03)')" >/dev/null
SWEEP=$(sql "SELECT bench.capacity('takes', latency_limit => 20, $ROUGH)" 2>/dev/null)
sweep_is completed "$name"
# What a short run had no time to end is not done.
is "$(limit latency "(outcome ->> 'done')::int < (outcome ->> 'due')::int")" latency "$name: it is"
is "$(answer 'rate IS NULL AND operating_rate IS NULL')" t "$name: nothing is sustained"

# The run's own row says at which rate it is. Short, and in trials of two seconds: a transaction that is under way when
# a trial ends would lack among the few of half a second.
sql "SELECT bench.create_workload('fails_above', E'\\\\sleep 500 us\nSELECT 1 /
    (SELECT (rate IS NULL OR rate < 100)::int FROM bench.runs ORDER BY run_id DESC LIMIT 1);')" \
    "SELECT bench.create_workload('retries', 'DO \$\$BEGIN RAISE SQLSTATE ''40001''; END\$\$')" >/dev/null
name='errors that end clients above a rate'
SWEEP=$(sql "SELECT bench.capacity('fails_above', latency_limit => 200, ${ROUGH/secs => 0.5/secs => 2})" \
    2>"$work/notices")
sweep_is completed "$name"
is "$(answer "limited_by || ' ' || (rate < 100) || ' ' || (rate_high >= 100)")" 'errors true true' \
    "$name: are the limit"
is "$(in_sweep "bool_and((outcome ->> 'ended_early')::boolean = (status = 'incomplete'))
    AND bool_or(status = 'incomplete')")" t "$name: the trials that showed it are incomplete"
like "$(sql "SELECT bench.sweep_report($SWEEP)")" 'limited by errors.*Runs that did not complete.*division by zero' \
    "$name: the report tells the error"
like "$(cat "$work/notices")" 'limited by errors' "$name: the answer says so"

name='serialization failures alone'
SWEEP=$(sql "SELECT bench.capacity('retries', $ROUGH)" 2>"$work/notices")
sweep_is completed "$name"
is "$(answer "(rate IS NULL) || ' ' || limited_by")" 'true errors' "$name: nothing is sustained"
like "$(cat "$work/notices")" 'no tried rate is sustained: limited by errors' "$name: the answer says so"

name='a role without pg_checkpoint'
sql 'CREATE ROLE bob LOGIN' 'GRANT EXECUTE ON FUNCTION bench.capacity TO bob' >/dev/null
SWEEP=$(PGUSER=bob sql "SELECT bench.capacity('waits', latency_limit => 60, $ROUGH)" 2>/dev/null)
sweep_is completed "$name"
is "$(sql "SELECT r.role FROM bench.sweeps s JOIN bench.runs r USING (sweep_id) WHERE sweep_id = $SWEEP LIMIT 1")" bob \
    "$name: the trials are its own"
is "$(in_sweep "max((outcome ->> 'checkpoints')::int)")" 0 "$name: no checkpoint falls into any"
like "$(PGUSER=bob sql "SELECT bench.sweep_report($SWEEP)")" 'No checkpoint fell into that run' "$name: which is said"
sql 'CREATE ROLE eve LOGIN' >/dev/null
is "$(PGUSER=eve sql 'SELECT count(*) FROM bench.capacities')" 0 "$name: others do not see them"

name='a crash in the middle of a search'
no_restart 'no crash so far'
SWEEP=$(sql "SELECT bench.start_capacity('waits', latency_limit => 60, $ROUGH)")
in_the_middle 2
as_pg kill -9 "$(leader)"
eventually 30 "SELECT true"
remember_server
sweep_is crashed "$name"
is "$(sql "SELECT bench.resume_sweep($SWEEP)")" "$SWEEP" "$name: it can be taken up"
sweep_is completed "$name, resumed"
holds_together "$name, resumed"
so_far_kept "$name, resumed"
nothing_left "$name"
# kill -9 is ours; anything else would be a bug.
log_is_clean_but_for_kills
done_testing
