#!/usr/bin/env bash
# What would spoil a run, brought about one by one on a real server: bench.preflight finds it, runs tell what is certain
# before they start, and a server at rest has nothing to tell.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# 64 MB of WAL, and two thirds of it up to a checkpoint, which takes as long as it may.
faults_start 'max_wal_size = 64MB' 'min_wal_size = 32MB' 'wal_level = replica' 'max_prepared_transactions = 2' \
    'checkpoint_timeout = 1h' 'checkpoint_completion_target = 0.9' 'autovacuum_naptime = 1h'
sql 'CHECKPOINT' "CREATE ROLE pilot LOGIN" "GRANT EXECUTE ON FUNCTION bench.preflight, bench.run TO pilot" \
    'GRANT USAGE ON SCHEMA bench_data TO pilot' 'GRANT SELECT, UPDATE ON bench_data.pk TO pilot' >/dev/null

# Its rows but for what other work on the machine does, and fsync = off, which all have.
found() { # ARGUMENTS [ROLE]
    sql "SET SESSION AUTHORIZATION ${2:-postgres}" "SELECT topic || ' ' || severity || ': ' || finding
        FROM bench.preflight($1) WHERE topic NOT IN ('load', 'swap', 'governor', 'safety')"
}
topics() { found "$@" | sed 's/ .*//' | paste -sd ' '; }
# What a run tells before it starts.
told() { # [ARGUMENTS]
    try "SELECT bench.run(${1:-'pk_update'}, transactions => 1)"
    sed -n '/starts$/q; /clients are sessions of/d; s/.*NOTICE: *00000: *//p' <<<"$OUT"
}

# The same before a run of 10 s, which is stopped at once and leaves no thousand dead rows however late that is, but for
# the machine.
told_long() {
    try "SELECT bench.stop(bench.start('pk_update', secs => 10, rate => 10))"
    sed -n 's/.*NOTICE: *00000: *//p' <<<"$OUT" |
        grep -Ev 'starts$|^clients are sessions|^other work|^the (hypervisor|machine|frequency)|in swap'
}

is "$(found "'pk_update'")" '' 'a server at rest: nothing is found'
is "$(told_long)" '' 'a server at rest: a run of 10 s tells nothing'
is "$(told)" '' 'a server at rest: a run tells nothing'
is "$(found "'pk_update'" pilot)" '' 'a server at rest: nor to a role without privileges'

# An old snapshot
session old 'BEGIN ISOLATION LEVEL REPEATABLE READ' 'SELECT FROM pg_class LIMIT 1' 'SELECT pg_sleep(60)'
holds old
pid=$(pid_of old)
eventually 10 "SELECT clock_timestamp() - xact_start > '1.1 s' FROM pg_stat_activity WHERE pid = $pid"
like "$(found "'pk_update'")" \
    "^horizon warning: The session with pid $pid \(active, since [0-9.]+ s.*holds back the xmin" \
    'an old snapshot: it is found'
like "$(told)" "^the session with pid $pid .* cannot be removed$" 'an old snapshot: a run tells it'
is "$(topics "'pk_select'")" '' 'an old snapshot: a run that reads is not spoiled by it'
is "$(topics "'pk_update'" pilot)" '' 'an old snapshot: a role that may not see its age is told nothing'
try 'SET client_min_messages = warning' "SELECT bench.run('pk_update', transactions => 1)"
unlike "$OUT" 'NOTICE' 'an old snapshot: client_min_messages governs the NOTICE'
try "SELECT bench.sweep('pk_update', '{1,2}', secs => 0.1, rounds => 2)"
is "$(grep -c 'xmin horizon' <<<"$OUT")" 1 'an old snapshot: a sweep tells it once'
try "SELECT bench.start('pk_update', transactions => 1)"
like "$OUT" 'xmin horizon' 'an old snapshot: bench.start tells it'
leave old
sql 'VACUUM bench_data.pk'
is "$(topics "'pk_update'")" '' 'an old snapshot: it is gone with its session'

# A prepared transaction
sql 'BEGIN; CREATE TABLE prepared (); PREPARE TRANSACTION $$left$$'
eventually 10 "SELECT clock_timestamp() - prepared > '1.1 s' FROM pg_prepared_xacts"
like "$(found "'pk_update'" pilot)" '^horizon warning: Prepared transaction "left" \(since' \
    'a prepared transaction: it is found by all'
sql "ROLLBACK PREPARED 'left'"

# Dead rows, with the statistics of a session that has ended
sql 'UPDATE bench_data.pk SET id = id' 'UPDATE bench_data.pk SET id = id'
eventually 10 "SELECT n_dead_tup >= 1000 FROM pg_stat_user_tables WHERE relname = 'pk'"
like "$(found "'pk_update'")" '^dead warning: .*bench_data.pk has [0-9,]+ dead rows' 'dead rows: they are found'
is "$(told)" '' 'dead rows: some thousand are not told'
is "$(topics "'pk_update', before => 'vacuum'")" '' 'dead rows: not before a run that vacuums'
is "$(topics "'pk_update', before => 'reload'")" '' 'dead rows: nor before one that loads anew'
sql 'VACUUM bench_data.pk'
is "$(topics "'pk_update'")" '' 'dead rows: they are gone after VACUUM'
sql "ALTER SYSTEM SET autovacuum = on" 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT setting = 'on' FROM pg_settings WHERE name = 'autovacuum'"
sql 'ALTER TABLE bench_data.pk SET (autovacuum_analyze_threshold = 20, autovacuum_analyze_scale_factor = 0)' \
    'ANALYZE bench_data.pk' 'UPDATE bench_data.pk SET id = id WHERE id <= 100'
eventually 10 "SELECT n_mod_since_analyze = 100 FROM pg_stat_user_tables WHERE relname = 'pk'"
like "$(found "'pk_update'")" \
    '^autovacuum warning: .*bench_data.pk \(100 rows changed since ANALYZE, threshold 20\)\.$' \
    'rows changed since ANALYZE: autovacuum is due by the threshold of the table'
is "$(told)" '' 'rows changed since ANALYZE: a short run does not tell it'
like "$(told_long)" '^autovacuum is due' 'rows changed since ANALYZE: a run of 10 s tells it'
sql "ALTER SYSTEM SET autovacuum = off" 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT setting = 'off' FROM pg_settings WHERE name = 'autovacuum'"
is "$(topics "'pk_update'")" '' 'rows changed since ANALYZE: not with autovacuum off'

# Tables as large as dead rows have made them
sql "SELECT bench.load('pk', 200000)" 'UPDATE bench_data.pk SET id = id' 'VACUUM ANALYZE bench_data.pk' CHECKPOINT \
    >/dev/null
like "$(found "'pk_update'")" '^bloat warning: .*"pk" have grown from [0-9.]+ MB to [0-9.]+ MB' 'bloat: it is found'
sql "SELECT bench.load('pk', 200000)" CHECKPOINT >/dev/null
is "$(topics "'pk_update'")" '' 'bloat: it is gone with a new load'

# A vacuum that takes its time, of a table full of dead rows
sql 'UPDATE bench_data.pk SET id = id' CHECKPOINT
eventually 10 "SELECT n_dead_tup >= 200000 FROM pg_stat_user_tables WHERE relname = 'pk'"
like "$(told)" '^tables have many dead rows: bench_data.pk has 200,[0-9]{3} dead rows \(50 %\)$' \
    'half of the rows dead: a run tells it'
session slow 'SET vacuum_cost_delay = 100' 'SET vacuum_cost_limit = 1' 'VACUUM bench_data.pk'
eventually 10 "SELECT EXISTS (SELECT FROM pg_stat_progress_vacuum)"
pid=$(pid_of slow)
like "$(found "'pk_select'")" "^vacuum warning: .*VACUUM of bench_data.pk \(pid $pid" 'a vacuum: it is found'
eventually 10 "SELECT clock_timestamp() - xact_start > '1.1 s' FROM pg_stat_activity WHERE pid = $pid"
like "$(told)" '^maintenance is running on tables of the run: VACUUM of bench_data.pk' \
    'a vacuum: a run tells it after a second'
like "$(found "'pk_select'" pilot)" "^vacuum warning: .*of bench_data.pk \(pid $pid\)\." \
    'a vacuum: to a role without privileges as well'
leave slow

# A lock that clients would wait for
session locker 'BEGIN' 'LOCK TABLE bench_data.pk IN SHARE MODE' 'SELECT pg_sleep(60)'
holds locker
pid=$(pid_of locker)
like "$(found "'pk_update'")" "lock warning: .*the session with pid $pid holds ShareLock on bench_data.pk" \
    'a lock: a run that writes would wait for it'
unlike "$(found "'pk_select'")" 'lock warning' 'a lock: one that reads would not'
leave locker
sql "SELECT bench.load('pk', 1000)" CHECKPOINT >/dev/null

# Other sessions at work
session busy 'SELECT pg_sleep(60)'
holds busy
like "$(sql "SELECT finding FROM bench.preflight('pk_select') WHERE topic = 'load'")" '1 other session executes' \
    'another session: its statement is found'
unlike "$(told)" 'other session' 'another session: a run of one transaction does not tell it'
try "SELECT bench.run('pk_select', secs => 1)"
like "$OUT" '1 other session executes a statement' 'another session: a run of 1 s tells it'
like "$(told_long)" '1 other session executes a statement' 'another session: a run of 10 s tells it'
try "SELECT bench.stop_sweep(bench.start_sweep('pk_select', '{1}', secs => 10))"
like "$OUT" '1 other session executes a statement' 'another session: and so does a sweep of such runs'
leave busy

# Another run
first=$(sql "SELECT bench.start('pk_select', secs => 60, rate => 10)" 2>/dev/null)
eventually 10 "SELECT status = 'running' FROM bench.runs WHERE run_id = $first"
like "$(told "'pk_select'")" '^1 other run is under way$' 'another run: a run tells it, however short it is'
second=$(last_run)
sql "SELECT bench.stop($first), bench.wait($first, 15)" >/dev/null
for pair in "$first $second" "$second $first"; do
    read -r run other <<<"$pair"
    is "$(sql "SELECT figures FROM bench.findings($run) WHERE topic = 'others' AND figures ? 'other_runs'")" \
        "{\"other_runs\": [$other]}" 'another run: both have a finding'
done
is "$(sql "SELECT count(*) FROM bench.runs r, LATERAL bench.findings(r.run_id) WHERE figures ? 'other_runs'
    AND r.run_id < $first")" 0 'another run: those before have none'
# The process of one whose end is written is still there for a moment.
sql 'CREATE TABLE seen (finding text)' "CREATE PROCEDURE one_after_another() LANGUAGE plpgsql AS \$\$
DECLARE run bigint;
BEGIN
    FOR i IN 1..8 LOOP
        run := bench.start('pk_select', transactions => 1);
        LOOP
            COMMIT;
            EXIT WHEN (SELECT status FROM bench.runs WHERE run_id = run) = 'completed';
        END LOOP;
        INSERT INTO seen SELECT finding FROM bench.preflight('pk_select') WHERE finding LIKE '%other run%';
    END LOOP;
END \$\$" 'CALL one_after_another()' >/dev/null 2>&1
is "$(sql "SELECT count(*) FROM bench.runs WHERE run_id > $second AND status = 'completed'")" 8 \
    'eight runs one after another'
is "$(sql 'SELECT * FROM seen')" '' 'runs one after another: none is told of the one before it'

# WAL, and the checkpoint that comes of it, which begins with a segment of 16 MB: a part of several of them
sql "ALTER SYSTEM SET max_wal_size = '400MB'" 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT setting = '400' FROM pg_settings WHERE name = 'max_wal_size'"
sql CHECKPOINT 'CREATE TABLE filler (x text)' "DO \$\$ BEGIN
    WHILE pg_current_wal_insert_lsn() - redo_lsn < 160 * 1024 * 1024 FROM pg_control_checkpoint() LOOP
        INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 1000);
    END LOOP;
END \$\$"
like "$(found "'pk_update', secs => 10")" '^checkpoint notice: The next checkpoint begins at about 210.5 MB of WAL' \
    'WAL: the next checkpoint is near'
is "$(topics "'pk_select', secs => 10")" '' 'WAL: a run that reads brings no checkpoint'
is "$(topics "'pk_update', secs => 10, before => 'checkpoint'")" '' 'WAL: nor one that begins after one'
is "$(told)" '' 'WAL: a short run does not tell it'
like "$(told_long)" '^the next checkpoint begins at about' 'WAL: a run of 10 s tells it'
sql "ALTER SYSTEM RESET max_wal_size" 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT setting = '64' FROM pg_settings WHERE name = 'max_wal_size'"
sql "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 27000)"
eventually 10 "SELECT EXISTS (SELECT FROM pg_stat_activity
    WHERE backend_type = 'checkpointer' AND wait_event = 'CheckpointWriteDelay')"
like "$(found "'pk_update'")" '^checkpoint warning: A checkpoint is under way' 'a checkpoint under way: it is found'
like "$(told)" '^a checkpoint is under way' 'a checkpoint under way: a run tells it'
is "$(told "'pk_select'")" '' 'a checkpoint under way: not one that reads'
sql CHECKPOINT "ALTER SYSTEM SET checkpoint_timeout = '30s'" 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT setting = '30' FROM pg_settings WHERE name = 'checkpoint_timeout'"
# A tenth of a second after it began, by a clock of whole seconds.
eventually 10 "SELECT clock_timestamp() - checkpoint_time > '1.2 s' FROM pg_control_checkpoint()"
like "$(found "'pk_update', secs => 20, warmup => 9.9")" '^checkpoint notice: (A checkpoint is due in|The last)' \
    'checkpoint_timeout: one is due within a run that is shorter'
is "$(topics "'pk_update', secs => 30")" '' 'checkpoint_timeout: a run as long as it has one in any case'
sql "ALTER SYSTEM SET checkpoint_timeout = '1h'" 'SELECT pg_reload_conf()' >/dev/null

# A slot that nobody follows
sql "SELECT pg_create_physical_replication_slot('left_behind', true)" >/dev/null
for _ in 1 2 3; do
    sql "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 27000)" CHECKPOINT
done
like "$(found "'pk_select'")" \
    '^slot warning: .*max_wal_size \(64.0 MB\): "left_behind" \(inactive\) [0-9.]+ MB' 'a slot: it is found'
like "$(told "'pk_select'")" '^replication slots retain more WAL' 'a slot: a run tells it'
sql "SELECT pg_drop_replication_slot('left_behind')"
is "$(topics "'pk_select'")" '' 'a slot: it is gone when it is dropped'

# It waits for no lock and can be canceled.
session locker 'BEGIN' 'LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(60)'
holds locker
clock
like "$(found "'pk_update'")" 'lock warning: .*AccessExclusiveLock' 'an exclusive lock: it is found'
within 3000 'an exclusive lock: nothing waits for it'
leave locker
try "SET statement_timeout = '50ms'" "SELECT * FROM bench.preflight('pk_update')"
like "$OUT" '57014' 'bench.preflight can be canceled'

no_restart 'the server has not restarted'
log_is_clean
done_testing
