#!/usr/bin/env bash
# The end of a run is written in parts: what cannot be written is named, the rest is there, and the status is true.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

error_column() { sql "SELECT error ->> '$2' FROM bench.runs WHERE run_id = $1"; }
table_of() { if [[ $1 == *_log ]]; then echo "bench_internal.$1"; else echo "bench.$1"; fi; }
lines_of() { sql "SELECT count(*) FROM $(table_of "$2") WHERE run_id = $1"; }
relations() { # RUN PATTERN
    sql "SELECT relation, kind, bytes_before > 0, bytes_after > 0, idx_scan FROM bench.relations
         WHERE run_id = $1 AND relation LIKE '$2' ORDER BY relation"
}

# Relations that are made anew during a run under the name of one that it has begun with.
start() {
    local before
    before=$(last_run)
    sql "SELECT bench.start('${1:-pk_update}', clients => 2, secs => 60, sample_interval => 0.2)" >/dev/null
    sampling "${before:-0}" 2
}
anew() { # NAME STATEMENT…
    local name=$1
    shift
    sql 'SET client_min_messages = warning' 'DROP INDEX IF EXISTS bench_data.pk_extra' \
        'DROP INDEX IF EXISTS bench_data.pk_other' 'CREATE INDEX pk_extra ON bench_data.pk (id, (id + 1))' \
        'CREATE INDEX pk_other ON bench_data.pk (id, (id + 2))'
    start
    sql "$@"
    sql "SELECT bench.stop($RUN)" >/dev/null
    status_is "$RUN" canceled "$name"
    is "$(error_column "$RUN" message)" 'stopped by bench.stop' "$name: the error is the stop's"
    is "$(error_column "$RUN" detail)" '' "$name: nothing is missing"
    kept "$RUN" "$name"
}
anew 'an index that is dropped and created' 'DROP INDEX bench_data.pk_extra' \
    'CREATE INDEX pk_extra ON bench_data.pk (id, (id + 1))'
is "$(relations "$RUN" '%pk\_extra')" 'bench_data.pk_extra|index|t|t|' \
    'an index that is dropped and created: one line, without a count'
is "$(sql "SELECT bytes_before > 0, updated > 0, idx_scan IS NULL FROM bench.relations
    WHERE run_id = $RUN AND relation = 'bench_data.pk'")" 't|t|t' \
    'an index that is dropped and created: the table has its counts, but for scans of indexes'
for round in 1 2; do
    anew "REINDEX CONCURRENTLY $round" 'REINDEX INDEX CONCURRENTLY bench_data.pk_extra'
done
is "$(relations "$RUN" '%pk\_extra')" 'bench_data.pk_extra|index|t|t|' 'REINDEX CONCURRENTLY: one line, without a count'
anew 'ALTER COLUMN TYPE' 'BEGIN' 'ALTER TABLE bench_data.pk ALTER id TYPE numeric' \
    'ALTER TABLE bench_data.pk ALTER id TYPE bigint' 'COMMIT'
anew 'an index renamed over a dropped one' 'DROP INDEX bench_data.pk_extra' \
    'ALTER INDEX bench_data.pk_other RENAME TO pk_extra'
is "$(relations "$RUN" '%pk\_extra' | cut -d'|' -f 1-4)" 'bench_data.pk_extra|index|t|t' \
    'an index renamed over a dropped one: one line'
anew 'two indexes that exchange their names' 'ALTER INDEX bench_data.pk_extra RENAME TO pk_third' \
    'ALTER INDEX bench_data.pk_other RENAME TO pk_extra' \
    'ALTER INDEX bench_data.pk_third RENAME TO pk_other'
is "$(relations "$RUN" '%pk\_%r%' | cut -d'|' -f 1-4)" $'bench_data.pk_extra|index|t|t\nbench_data.pk_other|index|t|t' \
    'two indexes that exchange their names: two lines'
sql 'DROP INDEX bench_data.pk_extra' 'DROP INDEX bench_data.pk_other'
still_works 'relations made anew'

# An error with the code of a termination, and a client that is terminated.
name='57P01 in a script and by a termination'
sql 'CREATE SEQUENCE once'
sql "SELECT bench.create_workload('raises', 'DO \$\$ BEGIN
         IF nextval(''once'') = 1 THEN RAISE ''as if'' USING ERRCODE = ''57P01''; END IF;
     END \$\$;
     SELECT pg_sleep(0.05)')" >/dev/null
start raises
eventually 10 "SELECT count(*) < 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'"
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
status_is "$RUN" incomplete "$name"
is "$(sql "SELECT sqlstate, count FROM bench.errors WHERE run_id = $RUN")" '57P01|2' "$name: one line has both"
kept "$RUN" "$name"

# The first client that is lost, or that an error ends, ends a run with exit_on_abort: ten minutes before its time.
for name in 'a terminated client' 'an error of one client'; do
    before=$(last_run)
    sql 'CREATE TABLE fails (now boolean)' "SELECT bench.start(clients => 3, secs => 600, sample_interval => 0.2,
        exit_on_abort => true, script => 'SELECT pg_sleep(0.01), 1 / (:client_id + 1 - count(*)) FROM fails')" \
        >/dev/null
    sampling "$before" 2
    case $name in
        'a terminated client') sql "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity
            WHERE backend_type = 'pgbench_ext client'" >/dev/null ;;
        *) sql 'INSERT INTO fails VALUES (true)' ;;
    esac
    status_is "$RUN" incomplete "$name, with exit_on_abort"
    is "$(error_column "$RUN" detail)" 'The run ended with its first aborted client, because of exit_on_abort.' \
        "$name, with exit_on_abort: the error says so"
    kept "$RUN" "$name, with exit_on_abort"
    nothing_left "$name, with exit_on_abort"
    sql 'DROP TABLE fails'
done
is "$(sql "SELECT e.sqlstate, e.count, s.aborted FROM bench.errors e JOIN bench.summary s USING (run_id)
    WHERE run_id = $RUN AND e.sqlstate = '22012'")" '22012|1|1' "$name, with exit_on_abort: it is counted"

# Each part cannot be written, one after the other; and then all of them.
sql "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \$\$
     BEGIN RAISE EXCEPTION 'could not extend file of %', TG_TABLE_NAME USING ERRCODE = '53100',
     HINT = 'Check free disk space.'; END \$\$"
declare -A VIEWS=([latencies]=latencies [script_log]=scripts [statement_log]=statements [wait_log]=waits \
    [relation_log]=relations
    [audit_log]=audit)
break_tables() { for table in "$@"; do sql \
    "CREATE TRIGGER full_disk BEFORE INSERT ON $(table_of "$table") FOR EACH ROW EXECUTE FUNCTION full_disk()" \
    "ALTER TABLE $(table_of "$table") ENABLE ALWAYS TRIGGER full_disk"; done; }
mend_tables() { for table in "$@"; do sql "DROP TRIGGER full_disk ON $(table_of "$table")"; done; }
for broken in latencies script_log statement_log wait_log relation_log audit_log; do
    name="$broken cannot be written"
    break_tables "$broken"
    try "SELECT bench.run('pk_update', clients => 2, secs => 0.5, sample_interval => 0.1)" "SELECT 'usable'"
    RUN=$(last_run)
    mend_tables "$broken"
    error="ERROR:  53100: could not extend file of $broken"
    detail="DETAIL:  Not written: bench.${VIEWS[$broken]}\."
    like "$OUT" "$error.*$detail.*HINT:  Check free disk space.*usable" "$name: the caller gets it"
    status_is "$RUN" incomplete "$name"
    is "$(error_of "$RUN") $(error_column "$RUN" message) $(error_column "$RUN" detail)" \
        "53100 could not extend file of $broken Not written: bench.${VIEWS[$broken]}." "$name: the error says so"
    for table in samples latencies script_log statement_log relation_log audit_log; do
        if [ "$table" = "$broken" ]; then
            is "$(lines_of "$RUN" "$table")" 0 "$name: it is empty"
        else
            is "$(sql "SELECT count(*) > 0 FROM $(table_of "$table") WHERE run_id = $RUN")" t "$name: $table is there"
        fi
    done
    is "$(sql "SELECT tps > 0 AND latency_p95_ms > 0 FROM bench.summary WHERE run_id = $RUN")" t \
        "$name: so are the figures"
done
name='no part can be written'
break_tables latencies script_log statement_log wait_log relation_log audit_log
RUN=$(sql "SELECT bench.start('pk_update', clients => 2, secs => 0.5, sample_interval => 0.1)")
status_is "$RUN" incomplete "$name"
mend_tables latencies script_log statement_log wait_log relation_log audit_log
like "$(error_column "$RUN" detail)" \
    '^Not written: bench\.latencies, bench\.scripts \(could not extend file of script_log\), '\
'bench\.statements .*, bench\.audit .*, bench\.relations .*\.$' \
    "$name: all are named, with their reasons"
is "$(sql "SELECT latency_p95_ms > 0 FROM bench.summary WHERE run_id = $RUN")" t "$name: the run has its figures"

# Samples that cannot be written end the run; what it has measured is there.
name='bench.samples cannot be written'
break_tables samples
try "SELECT bench.run('pk_update', clients => 2, secs => 60, sample_interval => 0.2)"
mend_tables samples
RUN=$(last_run)
status_is "$RUN" incomplete "$name"
is "$(error_column "$RUN" detail)" 'Not written: bench.samples.' "$name: the error says so"
is "$(sql "SELECT sum(count) - (SELECT sum(transactions) FROM bench.scripts WHERE run_id = $RUN) FROM bench.latencies
    WHERE run_id = $RUN")" "$(drained "$RUN")" \
    "$name: the histogram has all transactions"
is "$(sql "SELECT count(*) > 0 AND bool_and(ok IS NOT FALSE) FROM bench.audit($RUN)")" t "$name: the audit agrees"

# A status that cannot be written at once.
name='a status that can be written at the third try'
sql 'CREATE SEQUENCE tries' \
    "CREATE FUNCTION full_for_a_while() RETURNS trigger LANGUAGE plpgsql AS \$\$
     BEGIN
         IF nextval('public.tries') < 3 THEN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END IF;
         RETURN NEW;
     END \$\$" \
    "CREATE TRIGGER full_for_a_while BEFORE UPDATE ON bench_internal.run_log FOR EACH ROW
        WHEN (OLD.status = 'running') EXECUTE FUNCTION full_for_a_while()" \
    'ALTER TABLE bench_internal.run_log ENABLE ALWAYS TRIGGER full_for_a_while'
try "SELECT bench.run('pk_update', secs => 0.5, sample_interval => 0.1)"
sql 'DROP TRIGGER full_for_a_while ON bench_internal.run_log'
RUN=$(last_run)
status_is "$RUN" completed "$name"
kept "$RUN" "$name"
is "$(sql "SELECT nextval('tries')")" 4 "$name: which was tried three times"

name='figures that cannot be written'
sql "CREATE TRIGGER full_disk BEFORE UPDATE ON bench_internal.run_log FOR EACH ROW WHEN (OLD.status = 'running'
    AND NEW.latency_p50_ms IS NOT NULL) EXECUTE FUNCTION full_disk()" \
    'ALTER TABLE bench_internal.run_log ENABLE ALWAYS TRIGGER full_disk'
RUN=$(sql "SELECT bench.start('pk_update', clients => 2, secs => 0.5, sample_interval => 0.1)")
status_is "$RUN" incomplete "$name"
is "$(error_column "$RUN" detail)" 'Not written: the figures in bench.summary.' "$name: the error says so"
sql 'DROP TRIGGER full_disk ON bench_internal.run_log'

# A status that cannot be written at all is in the log, and a coordinator that tries can be terminated.
name='a status that cannot be written'
sql "CREATE TRIGGER full_disk BEFORE UPDATE ON bench_internal.run_log FOR EACH ROW
    WHEN (OLD.status = 'running') EXECUTE FUNCTION full_disk()" \
    'ALTER TABLE bench_internal.run_log ENABLE ALWAYS TRIGGER full_disk'
start
sql "SELECT bench.stop($RUN)" >/dev/null
nothing_left "$name" 60
is "$(sql "SELECT bench.wait($RUN)")" crashed "$name: the run reads crashed"
is "$(sql "SELECT count(*) > 0 FROM bench.latencies WHERE run_id = $RUN")" t "$name: the rest is there"
like "$(grep -A 2 \
    "LOG:  could not record in bench.runs that run $RUN is canceled: could not extend file of run_log" \
    "$PGHOST/log")" \
    'DETAIL:  It committed [0-9]+ measured transactions.*stopped by bench.stop.*HINT:' \
    "$name: the log has what is known"
start
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'" >/dev/null
nothing_left "$name, of a coordinator that is terminated" 30
sql 'DROP TRIGGER full_disk ON bench_internal.run_log'
still_works "$name"

# A run that is deleted under way leaves nothing.
name='a run that is deleted under way'
start
sql "DELETE FROM bench_internal.run_log WHERE run_id = $RUN" >/dev/null 2>&1
if [ "$(sql "SELECT count(*) FROM bench_internal.run_log WHERE run_id = $RUN")" = 0 ]; then
    nothing_left "$name" 30
    is "$(sql "SELECT (SELECT count(*) FROM bench.latencies WHERE run_id = $RUN) + (SELECT count(*)
        FROM bench_internal.relation_log WHERE run_id = $RUN)")" 0 \
        "$name: nothing is written of it any more"
else
    sql "SELECT bench.stop($RUN)" >/dev/null
    tap_pass "$name: cannot be deleted"
fi

# A tablespace that is full, of the histogram alone.
name='a full tablespace of bench.latencies'
disk=$PGHOST/disk
mkdir "$disk" 2>/dev/null
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=1m tmpfs "$disk" 2>"$work/mount"; then
    at_exit 'umount -l "$disk"'
    chown "$CLUSTER_USER" "$disk"
    sql "CREATE TABLESPACE small LOCATION '$disk'" 'TRUNCATE bench.latencies' \
        'ALTER TABLE bench.latencies SET TABLESPACE small'
    as_pg dd if=/dev/zero of="$disk/filler" bs=8k 2>/dev/null
    RUN=$(sql "SELECT bench.start('pk_update', clients => 2, secs => 1, sample_interval => 0.2)")
    status_is "$RUN" incomplete "$name"
    is "$(error_of "$RUN") $(error_column "$RUN" detail)" '53100 Not written: bench.latencies.' \
        "$name: the error says so"
    is "$(sql "SELECT sum(transactions) > 0 FROM bench.samples WHERE run_id = $RUN")" t "$name: the samples are there"
    rm "$disk/filler"
    still_works "$name, with room again"
else
    skip "needs root and mount: $(head -c 100 "$work/mount" 2>/dev/null | tr '#\n' '  ')" "$name"
fi

# A load without rows says that it removes those that there are.
try "SELECT bench.load('pk', 0)"
like "$OUT" 'the load empties fixture "pk", which has [1-9][0-9]* rows.*HINT:  Leave rows out' \
    'bench.load without rows says that it empties'
try "SELECT bench.load('pk', 0)"
unlike "$OUT" 'empties' 'bench.load without rows: not twice'

nothing_left 'at the end'
log_is_clean
no_restart 'the server has not restarted'
done_testing
