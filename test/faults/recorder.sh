#!/usr/bin/env bash
# The recorder cannot write: locks on its tables, an error on the way, a full disk.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'max_prepared_transactions = 5'

start() {
    local before
    before=$(last_run)
    sql "SELECT bench.start('pk_update', clients => 2, secs => 60, sample_interval => 0.2)" >/dev/null
    sampling "${before:-0}" 2
}

# The recorder bears with a lock for ten seconds.
for table in samples latencies; do
    name="a lock on bench.$table"
    start
    session holder BEGIN "LOCK TABLE bench.$table IN ACCESS EXCLUSIVE MODE" 'SELECT pg_sleep(60)'
    holds holder
    clock
    if [ "$table" = latencies ]; then
        sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'" \
            >/dev/null
    fi
    nothing_left "$name" 15
    within 15000 "$name: the run ends"
    status=$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")
    error=$(error_of "$RUN")
    leave holder
    if [ "$table" = samples ]; then
        is "$status" incomplete "$name: the run's status is incomplete"
        is "$error" 55P03 "$name: the error is that of the lock"
        is "$(sql "SELECT count(*) >= 2 AND sum(transactions) > 0 FROM bench.samples WHERE run_id = $RUN")" t \
            "$name: the samples of before are kept"
    else
        like "$status" '^(incomplete|canceled|failed|crashed)$' "$name: the run is not said to run, or to be complete"
        is "$(sql "SELECT count(*) >= 2 FROM bench.samples WHERE run_id = $RUN")" t "$name: the samples are kept"
    fi
    still_works "$name"
done

# Short locks only delay; what was measured meanwhile is not lost.
before=$(last_run)
sql "SELECT bench.start('pk_update', clients => 2, secs => 4, sample_interval => 0.5)" >/dev/null
sampling "$before" 1
sql BEGIN 'LOCK TABLE bench.samples IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(1)' COMMIT >/dev/null
status_is "$RUN" completed 'a short lock on bench.samples'
is "$(sql "SELECT sum(secs)::numeric(9,1), count(*) FROM bench.samples WHERE run_id = $RUN")" '4.0|8' \
    'a short lock on bench.samples: no sample is lost'
is "$(sql "SELECT min(transactions) > 0 FROM bench.samples WHERE run_id = $RUN")" t \
    'a short lock on bench.samples: no sample is empty'
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 'a short lock on bench.samples: the audit agrees'
kept "$RUN" 'a short lock on bench.samples'

# Nor may a longer one, within the recorder's timeout, distort the samples: 17 of the 25 would be empty. A full machine
# keeps clients from the processors for the 0.2 s of one or two.
before=$(last_run)
sql "SELECT bench.start('pk_update', clients => 2, secs => 5, sample_interval => 0.2)" >/dev/null
sampling "$before" 2
sql BEGIN 'LOCK TABLE bench.samples IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(3.5)' COMMIT >/dev/null
status_is "$RUN" completed 'a lock of 3.5 s on bench.samples'
is "$(sql "SELECT count(*) <= 2 FROM bench.samples WHERE run_id = $RUN AND transactions < 100")" t \
    'a lock of 3.5 s on bench.samples: its samples are not empty'
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 'a lock of 3.5 s on bench.samples: the audit agrees'
kept "$RUN" 'a lock of 3.5 s on bench.samples'

# A lock of more than that, given back later: the error is the lock, and nobody was terminated.
name='a lock on bench.samples that is given back'
start
session holder BEGIN 'LOCK TABLE bench.samples IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(13)' COMMIT
status_is "$RUN" incomplete "$name"
is "$(error_of "$RUN")" 55P03 "$name: the error is that of the lock"
ended holder 10
nothing_left "$name"

# A coordinator that waits for a lock can be terminated, and does not hold up a shutdown: this lock
# belongs to no session, so it outlives the others.
name='a lock of a prepared transaction on bench.samples'
start
sql "BEGIN; LOCK TABLE bench.samples IN ACCESS EXCLUSIVE MODE; PREPARE TRANSACTION 'it'"
eventually 3 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'
    AND wait_event_type = 'Lock')"
clock
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'" >/dev/null
nothing_left "$name, pg_terminate_backend of the coordinator" 9
unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" '^(running|completed)$' \
    "$name: the run is not said to run"
sql "ROLLBACK PREPARED 'it'"
nothing_left "$name, rolled back"
start
sql "BEGIN; LOCK TABLE bench.samples IN ACCESS EXCLUSIVE MODE; PREPARE TRANSACTION 'it'"
eventually 3 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'
    AND wait_event_type = 'Lock')"
ok "$name: a fast shutdown comes to its end" as_pg pg_ctl -D "$PGHOST/data" -m fast -s -w -t 12 stop
[ ! -e "$PGHOST/data/postmaster.pid" ] || cluster_stop immediate
cluster_resume || exit
remember_server
sql "ROLLBACK PREPARED 'it'"
unlike "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" '^(running|completed)$' \
    "$name, fast shutdown: the run is not said to run"

# With the run's row locked the end cannot be written: it reads crashed, and nobody stays behind.
name='a lock on the row of the run'
start
session holder BEGIN "SELECT 1 FROM bench_internal.run_log WHERE run_id = $RUN FOR UPDATE" 'SELECT pg_sleep(60)'
holds holder
clock
is "$(sql "SELECT bench.stop($RUN)")" t "$name: bench.stop returns"
within 10500 "$name: in time"
nothing_left "$name" 15
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" crashed "$name: the run reads crashed"
leave holder
still_works "$name"
name='the row of the run is deleted'
start
session caller "SELECT bench.wait($RUN)" "SELECT 'usable'"
try "DELETE FROM bench_internal.run_log WHERE run_id = $RUN"
like "$OUT" "ERROR:  55006: run $RUN is under way" "$name: refused while it is under way"
# Past the trigger, which refuses it.
sql "BEGIN; ALTER TABLE bench_internal.run_log DISABLE TRIGGER forget_runs;
    DELETE FROM bench_internal.run_log WHERE run_id = $RUN; SELECT bench_internal.create_triggers(); COMMIT"
nothing_left "$name" 8
ended caller 5
like "$OUT" 'usable' "$name: a session in bench.wait goes on"
still_works "$name"

# An error of the third sample, seen by a caller in bench.run.
name='an error while recording'
sql "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \$\$
     BEGIN
         IF (SELECT count(*) FROM bench.samples WHERE run_id = NEW.run_id) >= 2 THEN
             RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100';
         END IF;
         RETURN NEW;
     END \$\$" \
    'CREATE TRIGGER full_disk BEFORE INSERT ON bench.samples FOR EACH ROW EXECUTE FUNCTION full_disk()' \
    'ALTER TABLE bench.samples ENABLE ALWAYS TRIGGER full_disk'
clock
try "SELECT bench.run('pk_update', clients => 2, secs => 60, sample_interval => 0.2)" "SELECT 'usable'"
within 5000 "$name: the run ends soon"
RUN=$(last_run)
like "$OUT" 'ERROR:  53100' "$name: the caller gets it"
like "$OUT" 'usable' "$name: the session is usable"
status_is "$RUN" incomplete "$name"
is "$(error_of "$RUN")" 53100 "$name: the run's error is 53100"
is "$(sql "SELECT count(*) FROM bench.samples WHERE run_id = $RUN")" 2 "$name: the samples of before are kept"
nothing_left "$name"
sql 'DROP TRIGGER full_disk ON bench.samples'
still_works "$name"

# The same where the run's row cannot be written at all.
name='an error at the first write'
sql 'CREATE TRIGGER full_disk BEFORE INSERT ON bench_internal.run_log FOR EACH ROW EXECUTE FUNCTION full_disk()' \
    'ALTER TABLE bench_internal.run_log ENABLE ALWAYS TRIGGER full_disk' \
    "CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \$\$
     BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END \$\$"
for function in run start; do
    try "SELECT bench.$function('pk_update', secs => 60)" "SELECT 'usable'"
    like "$OUT" 'ERROR:  53100.*usable' "$name, bench.$function: the caller gets it"
    nothing_left "$name, bench.$function"
done
sql 'DROP TRIGGER full_disk ON bench_internal.run_log'
still_works "$name"

# And where only the closing fails.
name='an error at the last write'
sql "CREATE TRIGGER full_disk BEFORE UPDATE ON bench_internal.run_log FOR EACH ROW
    WHEN (OLD.status = 'running') EXECUTE FUNCTION full_disk()" \
    'ALTER TABLE bench_internal.run_log ENABLE ALWAYS TRIGGER full_disk'
try "SELECT bench.run('pk_update', secs => 0.5)" "SELECT 'usable'"
like "$OUT" 'ERROR:  53100.*usable' "$name: the caller gets it"
nothing_left "$name"
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $(last_run)")" crashed "$name: the run reads crashed"
sql 'DROP TRIGGER full_disk ON bench_internal.run_log'

# A disk that is really full, as a small tablespace on a filesystem of its own.
name='a full disk'
disk=$PGHOST/disk
mkdir "$disk" 2>/dev/null
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=1m tmpfs "$disk" 2>"$work/mount"; then
    at_exit 'umount -l "$disk"'
    chown "$CLUSTER_USER" "$disk"
    sql "CREATE TABLESPACE small LOCATION '$disk'" 'ALTER TABLE bench.samples SET TABLESPACE small' \
        'ALTER TABLE bench.samples SET (fillfactor = 10)'
    before=$(last_run)
    session caller "SELECT bench.run('pk_update', clients => 2, secs => 20, sample_interval => 0.1)" "SELECT 'usable'"
    sampling "$before" 3
    # All that is left of the disk: soon the samples need a new page.
    as_pg dd if=/dev/zero of="$disk/filler" bs=8k 2>/dev/null
    ended caller 25
    like "$OUT" 'ERROR:  53100' "$name: the caller gets 53100"
    like "$OUT" 'usable' "$name: the session is usable"
    status_is "$RUN" incomplete "$name"
    is "$(error_of "$RUN")" 53100 "$name: the run's error is 53100"
    is "$(sql "SELECT count(*) > 0 FROM bench.samples WHERE run_id = $RUN")" t "$name: the samples of before are kept"
    nothing_left "$name"
    rm "$disk/filler"
    still_works "$name, with room again"
else
    skip "needs root and mount: $(head -c 100 "$work/mount" 2>/dev/null | tr '#\n' '  ')" "$name"
fi
log_is_clean
no_restart 'the server has not restarted'
done_testing
