#!/usr/bin/env bash
# What may come in the way of observing a run, and findings that no duration decides.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/observation.sh
. test/lib/observation.sh

faults_start 'checkpoint_timeout = 1h' 'max_prepared_transactions = 5' 'wal_buffers = 16MB'
sql "SELECT bench.load('pk', 1000000)" 'CREATE TABLE other AS SELECT i FROM generate_series(1, 1000) AS i' >/dev/null

# A warm-up that is not over: transactions take longer until a moment.
name='a cold start'
sql 'SELECT bench.create_workload('"'cold', \$\$
\\if :until = 0
SELECT extract(epoch FROM clock_timestamp()) + 4 AS until \\gset
\\endif
SELECT pg_sleep(CASE WHEN extract(epoch FROM clock_timestamp()) < :until THEN 0.06 ELSE 0.02 END);
\$\$)" >/dev/null
RUN=$(sql "SELECT bench.start('cold', clients => 8, secs => 20, sample_interval => 0.5,
    variables => '{\"until\": 0}')")
finish
said "$RUN" \
    "topic = 'warmup' AND finding LIKE 'The measurement began before the warm-up was over%'
        AND (figures ->> 'steady_after_secs')::float8 BETWEEN 3 AND 5.5 AND (figures ->> 'change')::float8 < -0.4
        AND advice ~ 'warmup => [3456]'" "$name: is told as a warm-up, with its length"
RUN=$(sql "SELECT bench.start('cold', clients => 8, secs => 20, warmup => 5, sample_interval => 0.5,
    variables => '{\"until\": 0}')")
finish
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'warmup'")" 0 \
    "$name: with a warmup that is long enough it is not"

# Too few for a percentile.
name='too few transactions'
sql "SELECT bench.run('pk_select', clients => 2, transactions => 400)" >/dev/null 2>&1
RUN=$(last_run)
told "$RUN" transactions '99th and 99.9th percentiles are noise' "$name: is told"
is "$(sql "SELECT bench.report($RUN, 'json')::jsonb #>> '{summary,latency_p999_ms}'")" '' \
    "$name: the percentile is not shown"
unlike "$(sql "SELECT bench.report($RUN)" "SELECT bench.report($RUN, 'markdown')" | grep -vi noise)" '99\.9.*[0-9] ms' \
    "$name: nor in the text"
sql "SELECT bench.run('pk_select', clients => 2, transactions => 6000)" >/dev/null 2>&1
RUN=$(last_run)
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'transactions'")" 0 "$name: with 12,000 it is not"
is "$(sql "SELECT (bench.report($RUN, 'json')::jsonb #>> '{summary,latency_p999_ms}')::float8 > 0")" t \
    "$name: and the percentile is there"

# Who holds back the horizon.
name='an old transaction'
session holder 'BEGIN ISOLATION LEVEL REPEATABLE READ' 'SELECT count(*) FROM other' 'SELECT pg_sleep(60)'
holds holder
sql "SELECT bench.run('pk_update', clients => 2, secs => 2)" >/dev/null 2>&1
RUN=$(last_run)
like "$(finding "$RUN" horizon)" "the session with pid $(pid_of holder) held back the xmin horizon" \
    "$name: is told, with its pid"
is "$(sql "SELECT environment ->> 'horizon_holder' FROM bench.runs WHERE run_id = $RUN")" \
    "the session with pid $(pid_of holder)" "$name: is in the environment"
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
sql 'SET client_min_messages = error' 'BEGIN ISOLATION LEVEL REPEATABLE READ' \
    "SELECT bench.run('pk_update', clients => 2, secs => 1)" COMMIT >/dev/null 2>&1
told "$(last_run)" horizon 'the session that waited for the run' 'a caller with a snapshot is told'

#
# What comes in the way of observing
#
name='a reset of the statistics'
begin "'pk_update', clients => 2, secs => 5, rate => 500, sample_interval => 0.25"
sql 'SELECT pg_stat_reset()' "SELECT pg_stat_reset_shared('wal')" "SELECT pg_stat_reset_shared('bgwriter')" >/dev/null
sleep 1
sql VACUUM\ bench_data.pk CHECKPOINT 'SELECT pg_stat_reset()' "SELECT pg_stat_reset_shared('wal')" \
    "SELECT pg_stat_reset_shared('bgwriter')" >/dev/null
finish
status_is "$RUN" completed "$name"
sound "$RUN" "$name"
all_waits "$RUN" "$name"
unlike "$(sql "SELECT string_agg(bench.report($RUN, format), ' ') FROM unnest('{text,markdown}'::text[]) AS format" |
    tr '\n' ' ')" 'updated[^|]{0,20}-[0-9]' "$name: no report tells of negative rows"

name='CHECKPOINTs in a row'
begin "'pk_update', clients => 2, secs => 8, rate => 500, sample_interval => 0.5" 2
for _ in 1 2 3 4 5; do
    sql CHECKPOINT
    sleep 0.5
done
finish
is "$(sql "SELECT sum(checkpoints), (SELECT count(*) FROM bench.events WHERE run_id = $RUN AND kind = 'checkpoint')
    FROM bench.samples WHERE run_id = $RUN")" '5|5' "$name: each is counted, and each is an event"
is "$(sql "SELECT count(*) FROM bench.events a JOIN bench.events b USING (run_id)
    WHERE run_id = $RUN AND a.event < b.event AND a.ended > b.started")" 0 \
    "$name: none begins before the last one has ended"
is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $RUN AND (ended IS NULL OR detail IS DISTINCT
    FROM 'requested')")" 0 "$name: all have ended and were requested"
sound "$RUN" "$name"
begin "'pk_update', clients => 2, secs => 3, rate => 500, sample_interval => 0.5" 2
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
is "$(sql "SELECT count(*) > 0 FROM bench.relations WHERE run_id = $RUN AND updated > 0")" t \
    "$name: its tables are there"
is "$(sql "SELECT count(*) FROM bench.statements WHERE run_id = $RUN AND plan LIKE '%Index Scan%'")" 1 \
    "$name: its plans are there"
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
unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" '^(running|starting|completed|crashed)$' \
    "$name: the run has ended"
sound "$RUN" "$name"
is "$(sql "SELECT count(*) > 0 AND bool_and(bytes_before IS NOT NULL AND bytes_after IS NULL) FROM bench.relations
    WHERE run_id = $RUN")" t "$name: its sizes are those of before"
said "$RUN" "topic = 'clients' AND severity = 'critical'" "$name: lost clients are told"
still_works "$name"

name='ALTER SYSTEM and reload'
begin "'pk_update', clients => 2, secs => 4, rate => 500, sample_interval => 0.25"
sql "ALTER SYSTEM SET random_page_cost = 1.1" "ALTER SYSTEM SET track_wal_io_timing = on" \
    "ALTER SYSTEM SET log_min_messages = 'warning'" 'SELECT pg_reload_conf()' >/dev/null
sleep 0.5
sql 'ALTER SYSTEM RESET ALL' 'SELECT pg_reload_conf()' >/dev/null
finish
status_is "$RUN" completed "$name"
sound "$RUN" "$name"
all_waits "$RUN" "$name"
is "$(sql "SELECT count(*) FROM bench.runs, jsonb_array_elements(environment -> 'server_settings') AS s
    WHERE run_id = $RUN AND s ->> 'name' = 'random_page_cost'")" 0 "$name: settings are those of the begin"

name='64 clients'
# The one that wants a processor all the time is the last: updates wait for locks where those who have them wait.
for workload in pk_update pk_select; do
    sql "SELECT bench.run('$workload', clients => 64, secs => 4, sample_interval => 0.5)" >/dev/null 2>&1
    RUN=$(last_run)
    status_is "$RUN" completed "$name, $workload"
    sound "$RUN" "$name, $workload"
    all_waits "$RUN" "$name, $workload"
    is "$(sql "SELECT (SELECT sum(share) FROM bench.waits w WHERE w.run_id = r.run_id
        AND wait_event = 'CPU') * 64 BETWEEN 0.05 AND 1.05 * (environment ->> 'processors')::int FROM bench.runs r
        WHERE run_id = $RUN")" t "$name, $workload: no more processors are used than there are"
done
told "$RUN" processors '64 clients, ' "$name: processors are told"

name='a lock on what the recorder reads'
begin "'pk_update', clients => 2, secs => 4, rate => 500, sample_interval => 0.25"
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
    is "$(sql "SELECT count(*) >= 4 AND count(waits) = count(*) AND count(wal_bytes) = count(*) FROM bench.samples
        WHERE run_id = $RUN")" t "$name: what was observed is there"
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
done_testing
