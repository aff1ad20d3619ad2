#!/usr/bin/env bash
# What made a run slow is planted, and the run has to say it. How deep the dips are is measured: this runs alone.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/observation.sh
. test/lib/observation.sh

#
# Planted causes
#
# Compressed, images cost so much that a dip stands out from whatever else the machine does.
faults_start 'checkpoint_timeout = 1h' 'max_prepared_transactions = 5' 'wal_buffers = 16MB' 'wal_compression = on'
sql "SELECT bench.load('pk', 1000000)" 'CREATE TABLE other AS SELECT i FROM generate_series(1, 1000) AS i' >/dev/null

# A test of depths in the last run, or in those since FIRST; its description comes last. One that would fail is skipped
# where the hypervisor took processors away: then depths are not the plant's.
measured() { # TEST ARGUMENT…
    if [[ $("$@") == 'not ok'* ]] && stolen; then
        skip 'the hypervisor took processors away' "${!#}"
    else
        "$@"
    fi
}
stolen() { [ "$(sql "SELECT max(cpu_steal) > 0.15 FROM bench.samples
    WHERE run_id BETWEEN ${FIRST:-$RUN} AND $RUN")" = t ]; }

# How deep the dips are is the machine's matter: where something else slows it meanwhile, they are planted anew.
dips_of_images() { sql "SELECT sum((figures ->> 'count')::int) FROM bench.findings($RUN)
    WHERE topic = 'dip' AND figures #>> '{coincide,0,cause}' = 'full-page images'"; }
for _ in 1 2 3; do
    checkpoints
    [ "$(dips_of_images)" != 3 ] || break
    diag "checkpoint dips told: $(dips_of_images)"
    diag "$(sql "SELECT string_agg(round(tps)::text, ' ' ORDER BY elapsed) FROM bench.samples WHERE run_id = $RUN")"
done
measured said "$RUN" \
    "topic = 'dip' AND finding LIKE '%a checkpoint had begun, and full-page images rose%'
        AND figures #>> '{coincide,0,cause}' = 'full-page images'" \
    'CHECKPOINT with full_page_writes: named as the cause of its dips'
diag "$(finding "$RUN" dip)"
measured is "$(dips_of_images)" 3 \
    'CHECKPOINT with full_page_writes: of all three dips'
is "$(sql "SELECT sum(checkpoints) FROM bench.samples WHERE run_id = $RUN")" 3 \
    'CHECKPOINT with full_page_writes: the samples have all three'
is "$(sql "SELECT count(*), min(detail), max(detail) FROM bench.events WHERE run_id = $RUN AND kind = 'checkpoint'")" \
    '3|requested|requested' 'CHECKPOINT with full_page_writes: three events'
is "$(sql "SELECT bool_and(images > 1000) FROM (SELECT (SELECT sum(wal_fpi) FROM bench.samples s
    WHERE s.run_id = e.run_id AND s.elapsed > e.started AND s.elapsed < e.started + 3) AS images
           FROM bench.events e WHERE run_id = $RUN AND kind = 'checkpoint') AS x")" t \
    'CHECKPOINT with full_page_writes: images follow each of them'
sound "$RUN" 'CHECKPOINT with full_page_writes'

# An index that is dropped midway is the one cause of all that follows.
name='a dropped index'
sql "CREATE TABLE indexed AS SELECT i AS id, md5(i::text) AS info FROM generate_series(1, 20000) AS i" \
    'CREATE INDEX indexed_id ON indexed (id)' 'ANALYZE indexed' \
    "SELECT bench.create_workload('indexed', E'\\\\set id random(1, 20000)\n'
        'SELECT info FROM public.indexed WHERE id = :id;')" \
    >/dev/null
begin "'indexed', clients => 3, secs => 10" 20
sql 'DROP INDEX indexed_id'
finish
said "$RUN" "topic = 'plan' AND severity = 'warning' AND finding ~ 'to Seq Scan on indexed' AND
    (figures ->> 'depth')::float8 > 0.8 AND (figures ->> 'at')::float8 BETWEEN 4 AND 9" "$name: is told with its fall"
is "$(sql "WITH told AS (SELECT * FROM bench.findings($RUN))
    SELECT count(*) FROM told WHERE topic = 'scan' OR topic = 'dip' AND abs((figures #>> '{at,0}')::float8
        - (SELECT (figures ->> 'at')::float8 FROM told WHERE topic = 'plan')) < 0.5")" 0 \
    "$name: and neither its scans nor a dip beside it"
sound "$RUN" "$name"

# A lock of two seconds.
name='a lock held for 2 s'
begin "'pk_select', clients => 3, secs => 10, sample_interval => 0.25" 16
locked=$(sql 'BEGIN' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT clock_timestamp()' \
    'SELECT pg_sleep(2)' 'SELECT clock_timestamp()' 'COMMIT' | grep .)
finish
from=$(head -1 <<<"$locked") until=$(tail -1 <<<"$locked")
is "$(sql "SELECT count(*) >= 5 AND min((waits ->> 'Lock:relation')::float8) > 0.9 FROM bench.samples
    WHERE run_id = $RUN AND at - make_interval(secs => secs) > '$from'::timestamptz + interval '50 ms'
    AND at < '$until'")" t "$name: its intervals show Lock:relation"
is "$(sql "SELECT count(*) >= 10 AND coalesce(max((waits ->> 'Lock:relation')::float8), 0) < 0.1 FROM bench.samples
    WHERE run_id = $RUN AND (at < '$from'
    OR at - make_interval(secs => secs) > '$until'::timestamptz + interval '50 ms')")" t "$name: others do not"
measured said "$RUN" \
    "topic = 'dip' AND figures #>> '{coincide,0,cause}' = 'Lock:relation' AND (figures ->> 'depth')::float8 > 0.95
        AND (figures ->> 'secs')::float8 BETWEEN 1.7 AND 3.5" "$name: is the dip's cause"
measured is "$(sql "SELECT abs((figures #>> '{at,0}')::float8 - extract(epoch
    FROM '$from'::timestamptz - (SELECT min(at - make_interval(secs => secs)) FROM bench.samples
    WHERE run_id = $RUN))) < 0.6
           FROM bench.findings($RUN) WHERE topic = 'dip' AND figures #>> '{coincide,0,cause}' = 'Lock:relation'")" t \
    "$name: when it was"
measured said "$RUN" \
    "topic = 'stall' AND finding ~ 'percentiles hide it' AND (figures ->> 'stalled_secs')::float8 BETWEEN 1 AND 3.5
        AND advice ~ 'rate =>'" "$name: is the stall, with the closed loop's caveat"
sound "$RUN" "$name"
RUN=$(sql "SELECT bench.start('pk_select', clients => 3, secs => 8, rate => 200, sample_interval => 0.25)")
eventually 10 "SELECT count(*) >= 10 FROM bench.samples WHERE run_id = $RUN"
sql 'BEGIN' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(1)' 'COMMIT' >/dev/null
finish
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'stall'")" 0 \
    "$name: under a rate there is no such caveat"

# Processors that others take.
name='a processor hog'
processors=$(nproc)
hogs=()
hog() { # HOW-MANY [COMMAND…]
    hogs=()
    local count=$1
    shift
    for _ in $(seq "$count"); do
        "$@" sh -c 'while :; do :; done' &
        hogs+=($!)
    done
}
no_more_hogs() {
    kill "${hogs[@]}"
    wait "${hogs[@]}" 2>/dev/null
    hogs=()
}
# Ended early, it must not leave them.
at_exit 'kill "${hogs[@]}" 2>/dev/null'
hog "$processors"
sql "SELECT bench.run('pk_select', clients => $processors, secs => 6, sample_interval => 0.5)" >/dev/null 2>&1
no_more_hogs
RUN=$(last_run)
said "$RUN" \
    "topic = 'others' AND (figures ->> 'others')::float8 > 0.35 AND finding LIKE 'Processes other than the clients%'" \
    "$name: others are told"
said "$RUN" "topic = 'processors' AND (figures ->> 'idle')::float8 < 0.05" "$name: processors are saturated"
is "$(sql "SELECT sum(share) > 0.2 FROM bench.waits WHERE run_id = $RUN AND wait_event = 'Runnable'")" t \
    "$name: clients waited for a processor"
sound "$RUN" "$name"
name='a processor hog in the middle'
begin "'pk_select', clients => $processors, secs => 16, sample_interval => 0.25" 28
# Each in a session of its own, which the kernel's autogroups treat alike however many processes one has.
hog $((6 * processors)) setsid
sleep 2.5
no_more_hogs
finish
if [ "$(sql "SELECT avg((waits ->> 'Runnable')::float8) > 0.3 FROM bench.samples
    WHERE run_id = $RUN AND elapsed < 5")" = t ]; then
    skip 'others had the processors already' "$name: is the dip's cause"
else
    measured like "$(causes "$RUN")" 'other processes|Runnable' "$name: is the dip's cause"
fi
diag "$(finding "$RUN" dip)"

nothing_left 'planted causes'
log_is_clean
no_restart 'the server has not restarted'
cluster_remove

#
# A clean run has no findings: not one in several, but for what others on this machine do to it
#
cluster_start 'checkpoint_timeout = 1h' 'autovacuum = off' || exit
sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 10000)" CHECKPOINT >/dev/null
FIRST=1 quiet=0 alarms=
for workload in pk_select pk_select pk_update pk_select; do
    sql "SELECT bench.run('$workload', clients => 4, secs => 11, warmup => 1, rate => 1000, sample_interval => 0.25,
        settings => '{\"synchronous_commit\": \"off\"}')" >/dev/null 2>&1
    RUN=$(last_run)
    found=$(topics "$RUN")
    # What other processes take is no false alarm; nothing else may be told, but a dip that they have caused.
    [ -n "$(sql "SELECT 1 FROM bench.findings($RUN) WHERE topic NOT IN ('others', 'processors', 'steal') LIMIT 1")" ] ||
        quiet=$((quiet + 1))
    alarms+=" $(sql "SELECT string_agg(topic || ': ' || finding, ' ') FROM bench.findings($RUN)
        WHERE topic NOT IN ('others', 'processors', 'steal', 'dip', 'stall', 'tail', 'transactions', 'rate', 'lag')")"
    [ -z "$found" ] || diag "$workload: $(sql "SELECT topic, finding FROM bench.findings($RUN)")"
    status_is "$RUN" completed "a clean $workload"
done
is "${alarms// /}" '' 'clean runs under a rate: no false alarm'
measured is "$((quiet >= 3))" 1 \
    "clean runs under a rate: most have no finding but on who else used the machine ($quiet of 4)"
done_testing
