#!/usr/bin/env bash
# Jobs of pg_cron: bench.schedule and bench.unschedule. Takes two minutes, for that is how pg_cron counts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

if [ ! -e "$("$PG_CONFIG" --sharedir)/extension/pg_cron.control" ]; then
    skip 'pg_cron is not installed' 'jobs of pg_cron'
    done_testing
    exit
fi

# pg_cron has two ways to run a job: over a connection, by default, and by a background worker. A cluster for each.
faults_start "shared_preload_libraries = 'pg_cron'"
as_pg tee -a "$PGHOST/data/postgresql.conf" <<<"cron.host = '$PGHOST'" >/dev/null
cluster_restart
sql 'CREATE EXTENSION pg_cron' "SELECT bench.schedule('connected', '* * * * *', 'pk_update', 2, secs => 2)" >/dev/null
connected=$PGHOST

faults_start "shared_preload_libraries = 'pg_cron'" 'cron.use_background_workers = on'
sql 'CREATE DATABASE elsewhere'
in_elsewhere() { PGDATABASE=elsewhere "$@"; }
in_elsewhere sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" >/dev/null

# What is missing, step by step
schedule="SELECT bench.schedule('soak', '* * * * *', 'pk_update', clients => 2, secs => 300, rate => 100,
    settings => '{\"synchronous_commit\": \"off\"}', tags => '{\"note\": \"it''s a \\\\ \"}')"
try "$schedule"
like "$OUT" 'ERROR:  55000: extension "pg_cron" is not installed.*CREATE EXTENSION pg_cron' \
    'without the extension: 55000, and what to do'
sql 'CREATE EXTENSION pg_cron' 'CREATE ROLE tester LOGIN' \
    'GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA bench_data TO tester' 'GRANT USAGE ON SCHEMA bench_data TO tester'
as_tester() { PGUSER=tester "$@"; }
as_tester try "$schedule"
like "$OUT" 'ERROR:  42501: permission denied for function schedule' 'an ordinary role may not without a grant'
sql 'GRANT EXECUTE ON FUNCTION bench.schedule, bench.unschedule, bench_internal.start_scheduled TO tester'
as_tester try "$schedule"
like "$OUT" \
    'ERROR:  42501: permission denied for schema cron.*HINT:  Run as a superuser: GRANT USAGE ON SCHEMA cron TO' \
    'without USAGE on schema cron: 42501, and the GRANT'
sql 'GRANT USAGE ON SCHEMA cron TO tester'

# Arguments are looked at now, not at two in the morning
for call in "'nonesuch')|42704" "'pk_update', clients => 0)|22023" "'pk_update', clients => 100000)|53400" \
    "'pk_update', secs => 1, transactions => 1)|22023" "'pk_update', settings => '{\"no_such\": 1}')|42704" \
    "'pk_update', tags => '{\"job\": \"other\"}')|22023" 'NULL)|22004'; do
    try "SELECT bench.schedule('soak', '* * * * *', ${call%|*}"
    like "$OUT" "ERROR:  ${call#*|}" "bench.schedule(…, ${call%|*} is an error"
done
try "SELECT bench.schedule('soak', 'at noon', 'pk_update')"
like "$OUT" 'ERROR:.*invalid schedule: at noon' 'pg_cron says what a schedule must not be'
try "SELECT bench.schedule(repeat('x', 64), '* * * * *', 'pk_update')"
like "$OUT" 'ERROR:  22023' 'a name that pg_cron would cut off is an error'
is "$(sql 'SELECT count(*) FROM cron.job')" 0 'no job has come of any of these'

# In another database the error says what to call here, which does it
in_elsewhere try "SELECT bench.schedule('it''s elsewhere', '* * * * *', 'pk_update', secs => 0.5,
    seed => -9223372036854775808, variables => '{\"x\": \"''\"}')"
like "$OUT" 'ERROR:  55000: pg_cron is in database "postgres", not in this one' 'in another database: 55000'
call=$(sed -n 's/^HINT:  Run there, as a superuser: //p' <<<"$OUT")
job=$(sql "$call")
is "$(sql "SELECT jobname, database, username FROM cron.job WHERE jobid = $job")" "it's elsewhere|elsewhere|postgres" \
    'the call of its hint makes the job, as it stands'
in_elsewhere try "SELECT bench.unschedule('it''s elsewhere')"
like "$OUT" 'ERROR:  55000' 'bench.unschedule in another database: 55000'
drop=$(sed -n "s/^HINT:  Run there, as a superuser: \(.*;\) Here.*/\1/p" <<<"$OUT")

# A job, and before it another one, so that both start in the same minute
sql 'CREATE TABLE ticks (at timestamptz)' \
    "SELECT cron.schedule('tick', '* * * * *', 'INSERT INTO ticks VALUES (now())')" >/dev/null
as_tester try "$schedule" "$schedule"
job=$(sql "SELECT jobid FROM cron.job WHERE jobname = 'soak'")
is "$OUT" "$job"$'\n'"$job" 'bench.schedule returns the id of the job; the same name again is the same job'
is "$(sql "SELECT username, database FROM cron.job WHERE jobname = 'soak'")" 'tester|postgres' \
    'it is the calling role'"'"'s'
is "$(sql "SELECT bench.unschedule('soak')")" f 'bench.unschedule by another role does not find it'

eventually 75 "SELECT EXISTS (SELECT FROM bench.runs WHERE tags ->> 'job' = 'soak' AND status = 'running')"
is $? 0 'the job starts a run within the minute'
RUN=$(sql "SELECT min(run_id) FROM bench.runs WHERE tags ->> 'job' = 'soak'")
is "$(sql "SELECT workload, clients, secs, rate, settings, tags, role FROM bench.runs WHERE run_id = $RUN")" \
    'pk_update|2|300|100|{"synchronous_commit": "off"}|{"job": "soak", "note": "it'"'"'s a \\ "}|tester' \
    'as it was asked for'
eventually 10 "SELECT status = 'succeeded' FROM cron.job_run_details WHERE jobid = $job"
is $? 0 'the job itself has ended'
eventually 10 "SELECT count(*) = 1 FROM ticks, bench.runs
    WHERE run_id = $RUN AND date_trunc('minute', at) = date_trunc('minute', started_at)"
is $? 0 'another job of the same minute is not held up'
is "$(sql "SELECT count(*) FROM pg_stat_activity WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
           AND backend_type !~ 'pgbench_ext' AND pid <> pg_backend_pid()")" 0 'no transaction stays open'
in_elsewhere eventually 10 "SELECT status = 'completed' FROM bench.runs WHERE tags ->> 'job' = 'it''s elsewhere'"
is $? 0 'so does the job for the other database, in that one'
is "$(in_elsewhere sql 'SELECT seed, variables, secs FROM bench.runs')" "-9223372036854775808|{\"x\": \"'\"}|0.5" \
    'as it was asked for, too'
is "$(sql "$drop" "SELECT count(*) FROM cron.job WHERE database = 'elsewhere'")" t$'\n'0 \
    'the call that bench.unschedule has named there drops it'

# Meanwhile: one run of a job, whoever starts it, and whatever an older snapshot sees
start="SELECT bench_internal.start_scheduled('pk_update', secs => 60, rate => 100, tags => '{\"job\": \"by hand\"}')"
session snapshot 'BEGIN ISOLATION LEVEL REPEATABLE READ' 'SELECT FROM bench.runs' 'SELECT pg_sleep(4)' "$start" \
    'SELECT pg_sleep(60)'
holds snapshot
for i in 1 2 3 4; do session "hand$i" "$start" 'SELECT pg_sleep(3)'; done
for i in 1 2 3 4; do ended "hand$i"; done
hand=$(sql "SELECT max(run_id) FROM bench.runs WHERE tags ->> 'job' = 'by hand'")
eventually 10 "SELECT wait_event = 'PgSleep' AND query ~ '60' FROM pg_stat_activity WHERE application_name = 'snapshot'"
is "$(sql "SELECT count(*) FROM bench.runs WHERE tags ->> 'job' = 'by hand'")" 1 \
    'five sessions that start a job at once start one run'
like "$(cat "$work/hand1" "$work/hand2")" \
    "WARNING:  01000: job \"by hand\" starts no run because its run $hand is still active" 'the others are told'
try "SET lock_timeout = '5s'" "$start"
like "$OUT" "WARNING.*$hand\$" 'nor does a transaction that stays open keep others waiting'
leave snapshot
is "$(sql "SELECT bench.unschedule('by hand')")" t 'bench.unschedule ends a run without a job'
status_is "$hand" canceled 'bench.unschedule'
is "$(sql "SELECT bench.unschedule('by hand')")" f 'and says false when there is neither'

# The next minute
eventually 75 "SELECT count(*) >= 2 FROM cron.job_run_details WHERE jobid = $job AND status = 'succeeded'"
is $? 0 'the job comes again'
is "$(sql "SELECT run_id, status FROM bench.runs WHERE tags ->> 'job' = 'soak'")" "$RUN|running" \
    'and starts no second run'
clock
is "$(as_tester sql "SELECT bench.unschedule('soak')")" t 'bench.unschedule says true'
within 5000 'it does so within seconds'
status_is "$RUN" canceled 'bench.unschedule'
kept "$RUN" 'bench.unschedule'
is "$(sql "SELECT count(*) FROM cron.job WHERE jobname = 'soak'")" 0 'the job is gone'
nothing_left 'bench.unschedule'
log_is_clean
no_restart 'the server has not restarted'

PGHOST=$connected
is "$(sql "SELECT count(*) >= 1 FROM bench.runs WHERE tags ->> 'job' = 'connected' AND status = 'completed'")" t \
    'a job over a connection runs as well'
is "$(sql 'SELECT DISTINCT status FROM cron.job_run_details WHERE end_time IS NOT NULL')" succeeded 'and succeeds'
log_is_clean
done_testing
