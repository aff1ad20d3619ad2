#!/usr/bin/env bash
# What made a run slow is planted, and the run has to say it; and what may come in the way of observing it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/faults/common.bash
. test/faults/common.bash

# Findings of a run: all that a topic says, or what it is said to coincide with.
finding() { sql "SELECT finding FROM bench.findings($1) WHERE topic = '$2'"; }
topics() { sql "SELECT string_agg(DISTINCT topic, ' ' ORDER BY topic) FROM bench.findings($1)"; }
causes() {
    sql "SELECT string_agg(DISTINCT c ->> 'cause', ', ') FROM bench.findings($1), jsonb_array_elements(figures -> 'coincide') AS c WHERE topic = 'dip'"
}
told() { # RUN TOPIC REGEX DESCRIPTION
    like "$(finding "$1" "$2")" "$3" "$4"
}
said() { # RUN SQL-CONDITION-ON-bench.findings DESCRIPTION
    is "$(sql "SELECT count(*) > 0 FROM bench.findings($1) WHERE $2")" t "$3"
    [ "$(sql "SELECT count(*) > 0 FROM bench.findings($1) WHERE $2")" = t ] ||
        diag "$(sql "SELECT topic, finding, figures FROM bench.findings($1)")"
}

# What holds of every run that was observed, however it ended.
sound() { # RUN DESCRIPTION
    is "$(sql "SELECT count(*) FROM (SELECT * FROM bench.samples UNION ALL SELECT * FROM bench.warmup_samples) s WHERE run_id = $1 AND
                   (abs((SELECT sum(value::float8) FROM jsonb_each_text(waits)) - 1) > 1e-9
                    OR least(wal_bytes, wal_records, wal_fpi, wal_buffers_full, checkpoints, buffers_checkpoint, buffers_clean, buffers_backend, blks_hit, blks_read,
                             temp_files, temp_bytes, cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle, memory_available_bytes, disk_read_bytes, disk_written_bytes, throttled_secs) < 0)")" 0 \
        "$2: shares add up to 1 and nothing is negative"
    is "$(sql "SELECT count(*) FROM bench.relations WHERE run_id = $1 AND
                   least(bytes_before, bytes_after, live, dead, inserted, updated, hot_updated, deleted, mod_since_analyze, seq_scan, seq_tup_read, idx_scan, vacuums, autovacuums, analyzes, autoanalyzes) < 0")" 0 \
        "$2: no table has negative counts"
    is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $1 AND (started > ended OR event < 1)")" 0 "$2: events end after they begin"
    is "$(sql "SELECT bool_and(length(bench.report($1, format)) > 300) FROM unnest('{text,markdown,json,html}'::text[]) AS format" \
        "SELECT count(*) >= 0 FROM bench.findings($1)" | paste -sd' ')" 't t' "$2: reports and findings can be made"
}
all_waits() { is "$(sql "SELECT abs(sum(share) - 1) < 1e-9 FROM bench.waits WHERE run_id = $1")" t "$2: the run's waits add up to 1"; }
no_leftovers() { is "$(find "$PGHOST/data/pg_wal" -name 'xlogtemp.*')" '' "$1: no file is left in pg_wal"; }

begin() { RUN=$(sql "SELECT bench.start($1)") && eventually 20 "SELECT count(*) >= ${2:-4} FROM bench.samples WHERE run_id = $RUN"; }
finish() { sql "SELECT bench.wait($RUN, 120)" >/dev/null; }

#
# Planted causes
#
# Compressed, images cost so much that a dip stands out from whatever else the machine does.
faults_start 'checkpoint_timeout = 1h' 'max_prepared_transactions = 5' 'wal_buffers = 16MB' 'wal_compression = on'
sql "SELECT bench.load('pk', 1000000)" 'CREATE TABLE other AS SELECT i FROM generate_series(1, 1000) AS i' >/dev/null

# Checkpoints: full-page images follow each. The pages have to be there already.
checkpoints() {
    local at
    sql CHECKPOINT
    begin "'pk_update', clients => 4, secs => 24, warmup => 6, sample_interval => 0.25" 20
    for at in 1 2 3; do
        sql CHECKPOINT
        sleep 5.5
    done
    finish
}
checkpoints
said "$RUN" "topic = 'dip' AND finding LIKE '%a checkpoint had begun, and full-page images rose%' AND figures #>> '{coincide,0,cause}' = 'full-page images'" \
    'CHECKPOINT with full_page_writes: named as the cause of its dips'
diag "$(finding "$RUN" dip)"
is "$(sql "SELECT sum((figures ->> 'count')::int) FROM bench.findings($RUN) WHERE topic = 'dip' AND figures #>> '{coincide,0,cause}' = 'full-page images'")" 3 \
    'CHECKPOINT with full_page_writes: of all three dips'
is "$(sql "SELECT sum(checkpoints) FROM bench.samples WHERE run_id = $RUN")" 3 'CHECKPOINT with full_page_writes: the samples have all three'
is "$(sql "SELECT count(*), min(detail), max(detail) FROM bench.events WHERE run_id = $RUN AND kind = 'checkpoint'")" '3|requested|requested' 'CHECKPOINT with full_page_writes: three events'
is "$(sql "SELECT bool_and(images > 1000) FROM (SELECT (SELECT sum(wal_fpi) FROM bench.samples s WHERE s.run_id = e.run_id AND s.elapsed > e.started AND s.elapsed < e.started + 3) AS images
           FROM bench.events e WHERE run_id = $RUN AND kind = 'checkpoint') AS x")" t 'CHECKPOINT with full_page_writes: images follow each of them'
sound "$RUN" 'CHECKPOINT with full_page_writes'
sql 'ALTER SYSTEM SET full_page_writes = off' 'SELECT pg_reload_conf()' >/dev/null
eventually 5 "SELECT current_setting('full_page_writes') = 'off'"
sql CHECKPOINT
checkpoints
unlike "$(causes "$RUN")" 'full-page' 'CHECKPOINT without full_page_writes: images are not named'
unlike "$(sql "SELECT bench.report($RUN)" | tr '\n' ' ')" 'full-page images +rose' 'CHECKPOINT without full_page_writes: nor in the report'
is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $RUN AND kind = 'checkpoint'")" 3 'CHECKPOINT without full_page_writes: they are events all the same'
told "$RUN" safety 'full_page_writes = off' 'full_page_writes = off is told'
sound "$RUN" 'CHECKPOINT without full_page_writes'
sql 'ALTER SYSTEM RESET full_page_writes' 'SELECT pg_reload_conf()' >/dev/null

# A lock of two seconds.
name='a lock held for 2 s'
begin "'pk_select', clients => 3, secs => 10, sample_interval => 0.25" 16
locked=$(sql 'BEGIN' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT clock_timestamp()' 'SELECT pg_sleep(2)' 'SELECT clock_timestamp()' 'COMMIT' | grep .)
finish
from=$(head -1 <<<"$locked") until=$(tail -1 <<<"$locked")
is "$(sql "SELECT count(*) >= 5 AND min((waits ->> 'Lock:relation')::float8) > 0.9 FROM bench.samples WHERE run_id = $RUN AND at - make_interval(secs => secs) > '$from'::timestamptz + interval '50 ms' AND at < '$until'")" t "$name: its intervals show Lock:relation"
is "$(sql "SELECT count(*) >= 10 AND coalesce(max((waits ->> 'Lock:relation')::float8), 0) < 0.1 FROM bench.samples WHERE run_id = $RUN AND (at < '$from' OR at - make_interval(secs => secs) > '$until'::timestamptz + interval '50 ms')")" t "$name: others do not"
said "$RUN" "topic = 'dip' AND figures #>> '{coincide,0,cause}' = 'Lock:relation' AND (figures ->> 'depth')::float8 > 0.95 AND (figures ->> 'secs')::float8 BETWEEN 1.7 AND 3.5" "$name: is the dip's cause"
is "$(sql "SELECT abs((figures #>> '{at,0}')::float8 - extract(epoch FROM '$from'::timestamptz - (SELECT min(at - make_interval(secs => secs)) FROM bench.samples WHERE run_id = $RUN))) < 0.6
           FROM bench.findings($RUN) WHERE topic = 'dip' AND figures #>> '{coincide,0,cause}' = 'Lock:relation'")" t "$name: when it was"
said "$RUN" "topic = 'stall' AND finding ~ 'percentiles hide it' AND (figures ->> 'stalled_secs')::float8 BETWEEN 1 AND 3.5 AND advice ~ 'rate =>'" "$name: is the stall, with the closed loop's caveat"
sound "$RUN" "$name"
RUN=$(sql "SELECT bench.start('pk_select', clients => 3, secs => 8, rate => 200, sample_interval => 0.25)")
eventually 10 "SELECT count(*) >= 10 FROM bench.samples WHERE run_id = $RUN"
sql 'BEGIN' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(1)' 'COMMIT' >/dev/null
finish
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'stall'")" 0 "$name: under a rate there is no such caveat"

# Vacuums: by hand, one that is canceled, by autovacuum.
name='VACUUM'
begin "'pk_update', clients => 2, secs => 9, sample_interval => 0.5"
sql 'VACUUM other' 'SET vacuum_cost_delay = 20' 'SET vacuum_cost_limit = 10' 'SET statement_timeout = 2000' 'VACUUM (DISABLE_PAGE_SKIPPING) bench_data.pk' >"$work/vacuum" 2>&1
sleep 1.2 # of two within an interval only one would be seen
sql 'VACUUM (INDEX_CLEANUP off) bench_data.pk'
finish
is "$(sql "SELECT count(*), min(kind), max(kind), min(relation), max(relation) FROM bench.events WHERE run_id = $RUN AND kind <> 'checkpoint'")" '2|vacuum|vacuum|bench_data.pk|bench_data.pk' "$name: of the fixture and of no other table, a canceled one too"
like "$(cat "$work/vacuum")" 'statement timeout' "$name: one was canceled"
is "$(sql "SELECT ended - started BETWEEN 1.4 AND 3.5 FROM bench.events WHERE run_id = $RUN AND kind = 'vacuum' ORDER BY started LIMIT 1")" t "$name: the canceled one lasted until then"
told "$RUN" vacuum 'vacuum of bench_data.pk at ' "$name: is told"
is "$(sql "SELECT vacuums FROM bench.relations WHERE run_id = $RUN AND relation = 'bench_data.pk'")" 1 "$name: bench.relations counts the one that ended"
sound "$RUN" "$name"
name='autovacuum'
sql 'ALTER TABLE bench_data.pk SET (autovacuum_enabled = on, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0)' \
    'ALTER SYSTEM SET autovacuum = on' 'ALTER SYSTEM SET autovacuum_naptime = 1'
begin "'pk_update', clients => 2, secs => 10, sample_interval => 0.5" 2
sql 'SELECT pg_reload_conf()' >/dev/null
finish
sql 'ALTER SYSTEM RESET autovacuum' 'ALTER SYSTEM RESET autovacuum_naptime' 'SELECT pg_reload_conf()' >/dev/null
is "$(sql "SELECT count(*) > 0 AND bool_and(relation = 'bench_data.pk') FROM bench.events WHERE run_id = $RUN AND kind = 'autovacuum'")" t "$name: is an event"
is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $RUN AND kind = 'vacuum'")" 0 "$name: and not a vacuum by hand"
told "$RUN" vacuum 'autovacuum of bench_data.pk' "$name: is told"
sound "$RUN" "$name"
eventually 30 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%')"

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
trap '[ ${#hogs[@]} -eq 0 ] || kill "${hogs[@]}" 2>/dev/null; kill "${PIDS[@]}" 2>/dev/null; cluster_remove_all; rm -rf "$work"' EXIT
hog "$processors"
sql "SELECT bench.run('pk_select', clients => $processors, secs => 6, sample_interval => 0.5)" >/dev/null 2>&1
no_more_hogs
RUN=$(last_run)
said "$RUN" "topic = 'others' AND (figures ->> 'others')::float8 > 0.35 AND finding LIKE 'Processes other than the clients%'" "$name: others are told"
said "$RUN" "topic = 'processors' AND (figures ->> 'idle')::float8 < 0.05" "$name: processors are saturated"
is "$(sql "SELECT sum(share) > 0.2 FROM bench.waits WHERE run_id = $RUN AND wait_event = 'Runnable'")" t "$name: clients waited for a processor"
sound "$RUN" "$name"
name='a processor hog in the middle'
begin "'pk_select', clients => $processors, secs => 16, sample_interval => 0.25" 28
# Each in a session of its own, which the kernel's autogroups treat alike however many processes one has.
hog $((6 * processors)) setsid
sleep 2.5
no_more_hogs
finish
like "$(causes "$RUN")" 'other processes|Runnable' "$name: is the dip's cause"
diag "$(finding "$RUN" dip)"

# A warm-up that is not over: transactions take longer until a moment.
name='a cold start'
sql "SELECT bench.create_workload('cold', 'SELECT pg_sleep(CASE WHEN clock_timestamp() < :until::timestamptz THEN 0.06 ELSE 0.02 END);')" >/dev/null
RUN=$(sql "SELECT bench.start('cold', clients => 8, secs => 20, sample_interval => 0.5, variables => jsonb_build_object('until', clock_timestamp() + interval '4 s'))")
finish
said "$RUN" "topic = 'warmup' AND finding LIKE 'The measurement began before the warm-up was over%' AND (figures ->> 'steady_after_secs')::float8 BETWEEN 3 AND 5.5 AND (figures ->> 'change')::float8 < -0.4 AND advice ~ 'warmup => [3456]'" "$name: is told as a warm-up, with its length"
RUN=$(sql "SELECT bench.start('cold', clients => 8, secs => 20, warmup => 5, sample_interval => 0.5, variables => jsonb_build_object('until', clock_timestamp() + interval '4 s'))")
finish
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'warmup'")" 0 "$name: with a warmup that is long enough it is not"

# Too few for a percentile.
name='too few transactions'
sql "SELECT bench.run('pk_select', clients => 2, transactions => 400)" >/dev/null 2>&1
RUN=$(last_run)
told "$RUN" transactions '99th and the 99.9th percentile are noise' "$name: is told"
is "$(sql "SELECT bench.report($RUN, 'json')::jsonb #>> '{summary,latency_p999_ms}'")" '' "$name: the percentile is not shown"
unlike "$(sql "SELECT bench.report($RUN)" "SELECT bench.report($RUN, 'markdown')" | grep -vi noise)" '99\.9.*[0-9] ms' "$name: nor in the text"
sql "SELECT bench.run('pk_select', clients => 2, transactions => 6000)" >/dev/null 2>&1
RUN=$(last_run)
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'transactions'")" 0 "$name: with 12,000 it is not"
is "$(sql "SELECT (bench.report($RUN, 'json')::jsonb #>> '{summary,latency_p999_ms}')::float8 > 0")" t "$name: and the percentile is there"

# Who holds back the horizon.
name='an old transaction'
session holder 'BEGIN ISOLATION LEVEL REPEATABLE READ' 'SELECT count(*) FROM other' 'SELECT pg_sleep(60)'
holds holder
sql "SELECT bench.run('pk_update', clients => 2, secs => 2)" >/dev/null 2>&1
RUN=$(last_run)
like "$(finding "$RUN" horizon)" "the session with pid $(pid_of holder) held back the xmin horizon" "$name: is told, with its pid"
is "$(sql "SELECT environment ->> 'horizon_holder' FROM bench.runs WHERE run_id = $RUN")" "the session with pid $(pid_of holder)" "$name: is in the environment"
sql "SELECT bench.run('pk_select', clients => 2, secs => 1)" >/dev/null 2>&1
is "$(finding "$(last_run)" horizon)" '' "$name: nothing is said where no row died"
leave holder
name='a prepared transaction'
sql 'BEGIN' 'INSERT INTO other VALUES (0)' "PREPARE TRANSACTION 'obs''held'"
sql "SELECT bench.run('pk_update', clients => 2, secs => 2)" >/dev/null 2>&1
RUN=$(last_run)
like "$(finding "$RUN" horizon)" "prepared transaction 'obs''held' held back" "$name: is told by its name"
sql "ROLLBACK PREPARED 'obs''held'"
sql "SELECT bench.run('pk_update', clients => 2, secs => 2)" >/dev/null 2>&1
is "$(finding "$(last_run)" horizon)" '' "$name: gone, nothing is said"
sql 'SET client_min_messages = error' 'BEGIN ISOLATION LEVEL REPEATABLE READ' "SELECT bench.run('pk_update', clients => 2, secs => 1)" COMMIT >/dev/null 2>&1
told "$(last_run)" horizon 'the session that waited for the run' 'a caller with a snapshot is told'

#
# What comes in the way of observing
#
name='a reset of the statistics'
begin "'pk_update', clients => 2, secs => 5, sample_interval => 0.25"
sql 'SELECT pg_stat_reset()' "SELECT pg_stat_reset_shared('wal')" "SELECT pg_stat_reset_shared('bgwriter')" >/dev/null
sleep 1
sql VACUUM\ bench_data.pk CHECKPOINT 'SELECT pg_stat_reset()' "SELECT pg_stat_reset_shared('wal')" "SELECT pg_stat_reset_shared('bgwriter')" >/dev/null
finish
status_is "$RUN" completed "$name"
sound "$RUN" "$name"
all_waits "$RUN" "$name"
unlike "$(sql "SELECT string_agg(bench.report($RUN, format), ' ') FROM unnest('{text,markdown}'::text[]) AS format" | tr '\n' ' ')" 'updated[^|]{0,20}-[0-9]' "$name: no report tells of negative rows"

name='CHECKPOINTs in a row'
begin "'pk_update', clients => 2, secs => 8, sample_interval => 0.5" 2
for _ in 1 2 3 4 5; do
    sql CHECKPOINT
    sleep 0.5
done
finish
is "$(sql "SELECT sum(checkpoints), (SELECT count(*) FROM bench.events WHERE run_id = $RUN AND kind = 'checkpoint') FROM bench.samples WHERE run_id = $RUN")" '5|5' "$name: each is counted, and each is an event"
is "$(sql "SELECT count(*) FROM bench.events a JOIN bench.events b USING (run_id) WHERE run_id = $RUN AND a.event < b.event AND a.ended > b.started")" 0 "$name: none begins before the last one has ended"
is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $RUN AND (ended IS NULL OR detail IS DISTINCT FROM 'requested')")" 0 "$name: all have ended and were requested"
sound "$RUN" "$name"
begin "'pk_update', clients => 2, secs => 3, sample_interval => 0.5" 2
for _ in {1..10}; do sql CHECKPOINT CHECKPOINT CHECKPOINT; done
finish
status_is "$RUN" completed "$name, without a pause"
sound "$RUN" "$name, without a pause"

name='a run that is stopped'
begin "'pk_update', clients => 3, secs => 60, sample_interval => 0.25"
sql CHECKPOINT "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled "$name"
sound "$RUN" "$name"
all_waits "$RUN" "$name"
is "$(sql "SELECT count(*) > 0 FROM bench.relations WHERE run_id = $RUN AND updated > 0")" t "$name: its tables are there"
is "$(sql "SELECT count(*) FROM bench.statements WHERE run_id = $RUN AND plan LIKE '%Index Scan%'")" 1 "$name: its plans are there"
session caller "SELECT bench.run('pk_update', clients => 3, secs => 60, sample_interval => 0.25)"
sampling "$RUN" 3
sql "SELECT pg_cancel_backend($(pid_of caller))" >/dev/null
ended caller
status_is "$RUN" canceled "$name, by a cancel"
sound "$RUN" "$name, by a cancel"

name='DROP TABLE of the fixture'
sql "SELECT bench.load('name', 1000)" >/dev/null
begin "'name_update', clients => 3, secs => 10, sample_interval => 0.25"
sql 'DROP TABLE bench_data.name'
sql "SELECT bench.wait($RUN, 20)" >/dev/null
unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" '^(running|starting|completed|crashed)$' "$name: the run has ended"
sound "$RUN" "$name"
is "$(sql "SELECT count(*) > 0 AND bool_and(bytes_before IS NOT NULL AND bytes_after IS NULL) FROM bench.relations WHERE run_id = $RUN")" t "$name: its sizes are those of before"
said "$RUN" "topic = 'clients' AND severity = 'critical'" "$name: lost clients are told"
still_works "$name"

name='ALTER SYSTEM and reload'
begin "'pk_update', clients => 2, secs => 4, sample_interval => 0.25"
sql "ALTER SYSTEM SET random_page_cost = 1.1" "ALTER SYSTEM SET track_wal_io_timing = on" "ALTER SYSTEM SET log_min_messages = 'warning'" 'SELECT pg_reload_conf()' >/dev/null
sleep 0.5
sql 'ALTER SYSTEM RESET ALL' 'SELECT pg_reload_conf()' >/dev/null
finish
status_is "$RUN" completed "$name"
sound "$RUN" "$name"
all_waits "$RUN" "$name"
is "$(sql "SELECT count(*) FROM bench.runs, jsonb_array_elements(environment -> 'server_settings') AS s WHERE run_id = $RUN AND s ->> 'name' = 'random_page_cost'")" 0 "$name: settings are those of the begin"

name='64 clients'
for workload in pk_select pk_update; do
    sql "SELECT bench.run('$workload', clients => 64, secs => 4, sample_interval => 0.5)" >/dev/null 2>&1
    RUN=$(last_run)
    status_is "$RUN" completed "$name, $workload"
    sound "$RUN" "$name, $workload"
    all_waits "$RUN" "$name, $workload"
    is "$(sql "SELECT (SELECT sum(share) FROM bench.waits w WHERE w.run_id = r.run_id AND wait_event = 'CPU') * 64 BETWEEN 0.05 AND 1.05 * (environment ->> 'processors')::int FROM bench.runs r WHERE run_id = $RUN")" t "$name, $workload: no more processors are used than there are"
done
told "$RUN" processors '64 clients, ' "$name: processors are told"

name='a lock on what the recorder reads'
begin "'pk_update', clients => 2, secs => 4, sample_interval => 0.25"
session holder BEGIN 'LOCK TABLE bench_data.pk IN SHARE MODE' 'SELECT pg_sleep(60)'
holds holder
sleep 1
leave holder
finish
status_is "$RUN" completed "$name"
sound "$RUN" "$name"

name='no temporary file and no session is left'
no_leftovers "$name"
nothing_left "$name"
log_is_clean
no_restart 'the server has not restarted'

#
# Crashes
#
for kind in client coordinator; do
    name="kill -9 of a $kind"
    begin "'pk_update', clients => 3, secs => 60, warmup => 1, sample_interval => 0.25"
    sql CHECKPOINT
    victim=$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $kind'")
    as_pg kill -9 "$victim"
    eventually 30 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim)"
    remember_server
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" crashed "$name: the run crashed"
    sound "$RUN" "$name"
    is "$(sql "SELECT count(*) >= 4 AND count(waits) = count(*) AND count(wal_bytes) = count(*) FROM bench.samples WHERE run_id = $RUN")" t "$name: what was observed is there"
    said "$RUN" "topic = 'clients' AND severity = 'critical'" "$name: the findings begin with it"
    no_leftovers "$name"
    still_works "$name"
    sound "$(last_run)" "$name: the run after it"
done
# While it tries a flush to disk, at a run's begin: what it leaves the server itself removes after a crash.
name='kill -9 at the begin'
for _ in 1 2 3; do
    sql "SELECT bench.start('pk_update', clients => 3, secs => 30)" >/dev/null
    for _ in {1..200}; do
        found=$(find "$PGHOST/data/pg_wal" -name 'xlogtemp.*' -print -quit 2>/dev/null)
        [ -z "$found" ] || break
    done
    victim=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'")
    if [ -z "$victim" ]; then continue; fi
    as_pg kill -9 "$victim"
    eventually 30 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim)"
    remember_server
    no_leftovers "$name"
done
still_works "$name"
cluster_remove

#
# A clean run has no findings: not one in several, but for what others on this machine do to it
#
cluster_start 'checkpoint_timeout = 1h' 'autovacuum = off' || exit
sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 10000)" CHECKPOINT >/dev/null
quiet=0 alarms=
for workload in pk_select pk_select pk_update pk_select; do
    sql "SELECT bench.run('$workload', clients => 4, secs => 11, warmup => 1, rate => 1000, sample_interval => 0.25, settings => '{\"synchronous_commit\": \"off\"}')" >/dev/null 2>&1
    RUN=$(last_run)
    found=$(topics "$RUN")
    # What other processes take is no false alarm; nothing else may be told, but a dip that they have caused.
    [ -n "$(sql "SELECT 1 FROM bench.findings($RUN) WHERE topic NOT IN ('others', 'processors', 'steal') LIMIT 1")" ] || quiet=$((quiet + 1))
    alarms+=" $(sql "SELECT string_agg(topic || ': ' || finding, ' ') FROM bench.findings($RUN) WHERE topic NOT IN ('others', 'processors', 'steal', 'dip', 'stall', 'tail', 'transactions', 'rate')")"
    [ -z "$found" ] || diag "$workload: $(sql "SELECT topic, finding FROM bench.findings($RUN)")"
    status_is "$RUN" completed "a clean $workload"
done
is "${alarms// /}" '' 'clean runs under a rate: no false alarm'
ok "clean runs under a rate: most have no finding but on who else used the machine ($quiet of 4)" test "$quiet" -ge 3
done_testing
