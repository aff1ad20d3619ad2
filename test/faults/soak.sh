#!/usr/bin/env bash
# Eight hours in a minute: memory and samples of many transactions, transaction ids moved to where a soak would have
# brought them, and as many samples as it would have left.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

#
# Memory and samples: a run that goes on beside the tests of transaction ids, in a cluster of its own
#
secs=45 clients=2 samples=450
# More transactions than the checks of memory need, and little enough work for other tests to go on beside it.
rate=6000
faults_start
memory=$PGHOST memory_server=$SERVER
long=$(sql "SELECT bench.start('pk_select,pk_update', clients => $clients, secs => $secs, rate => $rate,
    sample_interval => 0.1)")
eventually 15 "SELECT count(*) > 0 FROM bench.samples WHERE run_id = $long"
worker() { sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $1'"; }
coordinator=$(worker coordinator)
client=$(worker client)
# Bytes in use in a worker's memory contexts, exactly, by its own account.
context_bytes() { # PID
    local before
    before=$(grep -c "\[$1\].*Grand total" "$memory/log")
    PGHOST=$memory sql "SELECT pg_log_backend_memory_contexts($1)" >/dev/null
    for _ in {1..100}; do
        if [ "$(grep -c "\[$1\].*Grand total" "$memory/log")" -gt "$before" ]; then break; fi
        sleep 0.05
    done
    grep "\[$1\].*Grand total" "$memory/log" | tail -n +$((before + 1)) | sed 's/.* \([0-9]*\) used.*/\1/'
}
# The least of three readings: one may come amid a statement.
least_context_bytes() { for _ in 1 2 3; do context_bytes "$1"; done | sort -n | head -n 1; }
own_kb() { awk '/^RssAnon/ { print $2 }' "/proc/$1/status" 2>/dev/null; }
progress() { PGHOST=$memory sql "SELECT count(*), sum(transactions) FROM bench.samples WHERE run_id = $long"; }
# Every half second: samples and transactions so far, kB that the coordinator and a client have to themselves, whatever
# allocated them; and at a third and at three quarters the contexts, which takes seconds beside others' work.
watch() {
    local line at=$((samples / 3))
    while line="$(progress)|$(own_kb "$coordinator")|$(own_kb "$client")" && [[ $line =~ ^[0-9]+([|][0-9]+){3}$ ]]; do
        echo "$line"
        if [ "${line%%|*}" -ge "$at" ]; then
            echo "$(progress)|$(least_context_bytes "$coordinator")|$(context_bytes "$client")" >>"$work/contexts"
            at=$((at < samples * 3 / 4 ? samples * 3 / 4 : samples * 2))
        fi
        sleep 0.5
    done
}
if [ -n "$(own_kb self)" ]; then watch >"$work/memory" 2>/dev/null & fi

#
# Transaction ids
#
# A slot holds the oldest id back as a forgotten one does; the server's own vacuums against wraparound cannot help.
faults_start 'wal_level = logical'
sql "SELECT bench.load('name', 1000)" >/dev/null
hold_ids() { sql "SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')" >/dev/null; }
free_ids() {
    sql "SELECT pg_drop_replication_slot('forgotten')" >/dev/null
    as_pg vacuumdb -h "$PGHOST" -U postgres --all --freeze --quiet 2>"$work/vacuumdb"
}
# The next id without using up those before it: pg_resetwal wants the file of their states to be there.
move_ids() { # NEXT
    cluster_stop
    as_pg dd if=/dev/zero of="$PGHOST/data/pg_xact/$(printf '%04X' $(($1 / 1048576)))" bs=8192 count=32 status=none
    as_pg pg_resetwal -x "$1" -D "$PGHOST/data" >/dev/null
    cluster_resume && remember_server
}
age() { sql 'SELECT max(age(datfrozenxid)) FROM pg_database'; }
burn() { sql "DO \$\$ BEGIN FOR i IN 1..$1 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END \$\$"; }
warnings() { grep -c \
    'WARNING:  01000: transaction ids are running out: the oldest database is 1[0-9]\{9\} transactions old' <<<"$OUT"; }
finding() { sql "SELECT finding FROM bench.findings($1) WHERE topic = 'xids'"; }
limit=1800000000

name='a young database'
try "SELECT bench.run('pk_update', clients => 2, secs => 1.5)"
is "$(warnings)" 0 "$name: no warning"
is "$(finding "$(last_run)")" '' "$name: no finding"
is "$(sql "SELECT (environment ->> 'xid_age')::int BETWEEN 1 AND 100000000
    AND (environment ->> 'xids_used')::int >= s.transactions
           FROM bench.runs r JOIN bench.summary s USING (run_id) WHERE run_id = $(last_run)")" t \
    "$name: its age and the ids used are in the environment"

name='1.1 billion ids'
hold_ids
move_ids 1101000000
try "SELECT bench.run('pk_update', clients => 2, secs => 2)"
RUN=$(last_run)
is "$(warnings)" 1 "$name: one warning"
like "$OUT" 'HINT:  VACUUM FREEZE its oldest tables. Runs end at 1.8 billion' "$name: with a hint"
status_is "$RUN" completed "$name"
age='1,10[0-9],[0-9]{3},[0-9]{3} transactions old'
like "$(finding "$RUN")" \
    "^Transaction ids are running out:.* oldest database is $age, and 1,0[0-9,]* are left, enough for [0-9,.]+ hours" \
    "$name: the finding predicts the end"
is "$(sql "SELECT (environment ->> 'xid_age')::bigint BETWEEN 1100000000 AND 1110000000 FROM bench.runs
    WHERE run_id = $RUN")" t "$name: the age is in the environment"
like "$(sql "SELECT bench.report($RUN)")" 'transaction id age: 1,10' "$name: and in the report"
RUN=$(sql "SELECT bench.start('pk_update', secs => 1)")
status_is "$RUN" completed "$name, bench.start"
like "$(finding "$RUN")" 'are running out' "$name, bench.start: has the finding"

# Two runs at once, so that one of them uses no ids and has nobody waiting for it.
name='1.8 billion ids'
move_ids $((limit - 8000))
reads=$(sql "SELECT bench.start('name_select', secs => 60, sample_interval => 0.1)")
sampling $((reads - 1)) 2
clock
try "SELECT bench.run('pk_update', clients => 2, secs => 60, sample_interval => 0.1)" "SELECT 'usable'"
within 20000 "$name: the run ends"
updates=$(last_run)
like "$OUT" "WARNING:  01000: run $updates is incomplete: transaction ids are running out .*usable" \
    "$name: the caller is told"
is "$(warnings)" 1 "$name: one warning of the age"
for RUN in $updates $reads; do
    who="$name, $(sql "SELECT workload FROM bench.runs WHERE run_id = $RUN")"
    status_is "$RUN" incomplete "$who"
    is "$(error_of "$RUN")" 54000 "$who: the run's error is 54000"
    like "$(sql "SELECT error ->> 'detail', error ->> 'hint' FROM bench.runs WHERE run_id = $RUN")" \
        "^The oldest database is 18[0-9]{8} transactions old; runs end at ${limit}[.].*VACUUM FREEZE.*slots" \
        "$who: what is the matter, and what to do"
    kept "$RUN" "$who"
    is "$(sql "SELECT count(*), bool_and(ok) FROM bench.audit($RUN) WHERE ok IS NOT NULL" |
        sed 's/^[1-9][0-9]*|/some|/')" 'some|t' "$who: the audit is there and agrees"
    is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'clients'")" 0 \
        "$who: no client is said to be lost"
    like "$(finding "$RUN")" 'are running out' "$who: has the finding"
done
nothing_left "$name"
is "$(age | sed "s/^18000[0-9]*$/near/")" near "$name: the run did not go on for long"

name='beyond 1.8 billion ids'
ok "$name: the server writes" sql 'CREATE TABLE still AS SELECT 1' 'DROP TABLE still'
for function in run start; do
    for workload in pk_update pk_select; do
        clock
        try "SELECT bench.$function('$workload', clients => 2, secs => 30)" "SELECT 'usable'"
        within 10000 "$name, bench.$function of $workload: refused at once"
        # bench.start may have returned before its coordinator has looked.
        if [ "$function" = run ] || [[ $OUT =~ ERROR ]]; then
            like "$OUT" \
                "ERROR:  54000: transaction ids are running out.DETAIL:.*runs end at $limit.*HINT:  VACUUM.*usable" \
                "$name, bench.$function of $workload: the caller is told"
        fi
        status_is "$(last_run)" failed "$name, bench.$function of $workload"
        is "$(error_of "$(last_run)")" 54000 "$name, bench.$function of $workload: the run's error is 54000"
        is "$(sql "SELECT count(*) FROM bench.samples WHERE run_id = $(last_run)")" 0 \
            "$name, bench.$function of $workload: nothing was measured"
    done
done
clock
try "SELECT bench.sweep('pk_update', clients => '{1,2}', secs => 0.3, rounds => 2)" "SELECT 'usable'"
within 20000 "$name, bench.sweep: ends soon"
like "$OUT" 'WARNING:  01000: sweep 1 is failed.*usable' "$name, bench.sweep: the caller is told"
is "$(sql 'SELECT status, runs, completed FROM bench.sweeps' \
    'SELECT count(*), min(status), max(status), min(error) FROM bench.sweep_runs' | paste -sd' ')" \
    'failed|4|0 4|failed|failed|transaction ids are running out' "$name, bench.sweep: each of its runs failed"
nothing_left "$name"
free_ids
is "$(age | sed 's/^[0-9]\{1,6\}$/young/')" young "$name: VACUUM FREEZE makes them young"
still_works "$name, after VACUUM FREEZE"
is "$(warnings)" 0 "$name, after VACUUM FREEZE: no warning"
sql 'SELECT bench.resume_sweep(1)' >/dev/null
is "$(sql 'SELECT bench.wait_sweep(1, 30)')" completed "$name, after VACUUM FREEZE: the sweep is taken up and completes"

# The ages of the databases are read once a minute: they may be younger by now than the ids used since would make them.
name='vacuumed while a run goes on'
hold_ids
move_ids $((2 * limit - 20000))
RUN=$(sql "SELECT bench.start('pk_update', secs => 60, rate => 100, sample_interval => 0.1)")
sampling $((RUN - 1)) 2
free_ids
burn 40000
sleep 1.2
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" running "$name: it goes on"
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled "$name"
kept "$RUN" "$name"
log_is_clean
no_restart "$name: the server has not restarted"
cluster_remove

#
# What the run beside them has to show
#
export PGHOST=$memory
SERVER=$memory_server
name='many transactions'
is "$(sql "SELECT bench.wait($long, 60)")" completed "$name: the run completes"
is "$(sql "SELECT count(*), min(elapsed), max(elapsed), max(abs(secs - 0.1)) < 1e-9,
    max(abs(elapsed - place * 0.1)) < 1e-9
           FROM (SELECT *, row_number() OVER (ORDER BY elapsed) AS place FROM bench.samples WHERE run_id = $long) s")" \
    "$samples|0.1|$secs|t|t" "$name: each interval has its sample"
is "$(sql "SELECT count(*) FROM bench.samples WHERE run_id = $long AND clients <> $clients")" 0 "$name: of all clients"
is "$(sql "SELECT count(DISTINCT n), min(n) > 100000 FROM (VALUES
               ((SELECT sum(transactions) FROM bench.samples WHERE run_id = $long)),
               ((SELECT sum(count) - $(drained "$long") FROM bench.latencies WHERE run_id = $long)),
               ((SELECT sum(transactions) FROM bench.scripts WHERE run_id = $long)),
               ((SELECT transactions FROM bench.summary WHERE run_id = $long)),
               ((SELECT harness FROM bench.audit($long) WHERE counter = 'samples')),
               ((SELECT server FROM bench.audit($long) WHERE counter = 'samples')),
               ((SELECT harness FROM bench.audit($long) WHERE counter = 'committed: measured'))) AS v (n)")" '1|t' \
    "$name: samples, histogram, scripts, summary and audit count the same"
is "$(sql "SELECT count(*) FROM bench.audit($long) WHERE NOT ok")" 0 "$name: the audit agrees"

# The server's memory contexts are counted to the byte. Of the coordinator 10 bytes a sample are allowed, less than any
# allocation that somebody forgets; of a client, which is in the middle of some statement, 64 kB: after 50,000
# transactions at least that is 1.3 bytes for each. The rest is seen in pages only, and pages are touched for the first
# time now and then, while a leak grows all the time: of all stretches of 150 samples after the first third the one that
# grew least tells. 48 kB are allowed, twelve pages, of which five have been seen: 328 bytes a sample, less than one
# takes. In such a stretch the coordinator looks 6,000 times at what two clients wait for: 8 bytes a look. Of a client
# 1 byte a transaction is allowed.
# AWK-PROGRAM has the readings after the first third, 1 to n: s[] samples, t[] transactions, coordinator[] and client[].
memory() { # AWK-PROGRAM
    awk -F'|' -v third=$((samples / 3)) -v clients=$clients \
        '$1 >= third { n++; s[n] = $1; t[n] = $2; coordinator[n] = $3; client[n] = $4 } END { '"$1"' }' \
        "$work/${2:-memory}"
}
if [ -s "$work/memory" ]; then
    diag "memory in kB: $(memory \
        'printf "coordinator %d to %d, client %d to %d, in %d samples and %d transactions of a client",
        coordinator[1], coordinator[n], client[1], client[n], s[n] - s[1], (t[n] - t[1]) / clients')"
    diag "contexts in bytes: $(memory \
        'printf "coordinator %d to %d, client %d to %d", coordinator[1], coordinator[n], client[1], client[n]' \
        contexts)"
    is "$(memory 'print (s[n] - s[1] >= 200 && (t[n] - t[1]) / clients >= 60000)')" 1 \
        "$name: memory was read for long enough"
    is "$(memory 'print n, (coordinator[n] - coordinator[1] <= 10 * (s[n] - s[1]))' contexts)" '2 1' \
        "$name: the coordinator's contexts do not grow"
    is "$(memory 'print n, (client[n] - client[1] <= 65536)' contexts)" '2 1' "$name: nor those of a client"
    least=$(memory 'least = 1e9
        for (i = 1; i <= n; i++) for (j = i; j <= n; j++) if (s[j] - s[i] >= 150) {
            if (coordinator[j] - coordinator[i] < least) least = coordinator[j] - coordinator[i]
            break
        }
        print least')
    ok "$name: the coordinator does not grow with the samples ($least kB)" test "$least" -le 48
    ok "$name: nor by more than a megabyte on the whole" test \
        "$(memory 'print coordinator[n] - coordinator[1]')" -le 1024
    is "$(memory 'print ((client[n] - client[1]) * 1024 <= (t[n] - t[1]) / clients)')" 1 \
        "$name: a client does not grow with the transactions"
else
    skip 'there is no /proc/PID/status' "$name: memory"
fi

#
# As many samples as eight hours leave, 0.1 s each, at 10 thousand million transactions per second
#
name='288,000 samples'
sql "INSERT INTO bench_internal.run_log
    SELECT (jsonb_populate_record(r,
    '{\"run_id\": 1000000, \"secs\": 28800, \"seed\": 1, \"latency_avg_ms\": null, \"latency_stddev_ms\": null}')).*
    FROM bench_internal.run_log r WHERE run_id = $long" \
    "INSERT INTO bench_internal.script_log
        SELECT (jsonb_populate_record(s, '{\"run_id\": 1000000, \"transactions\": 144000000000000}')).*
        FROM bench_internal.script_log s WHERE run_id = $long" \
    "INSERT INTO bench.latencies VALUES (1000000, 0, 0, 0.01, 0.0101, 143999999999999), (1000000, 0, 0, 0.1, 0.101, 1),
        (1000000, 0, 1, 1, 1.01, 144000000000000)" \
    "INSERT INTO bench.samples (run_id, elapsed, secs, at, clients, transactions, tps, failed, retried, skipped, late,
         latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms, wal_bytes,
         wal_records, blks_hit, checkpoints, waits)
     SELECT 1000000, i / 10.0, 0.1, now() + make_interval(secs => i / 10.0), $clients, 1000000000, 1e10, 1000000000,
     1000000000, 1000000000, 1000000000,
         1, 0.5, 1, 2, 3, 4, 1000000000000, 1000000000, 1000000000000, 0, '{\"CPU\": 1}'
     FROM generate_series(1, 288000) AS i" >/dev/null
count=288000000000000 tps=10000000000
is "$(sql "SELECT transactions, failed, retried, skipped, late, round(secs::numeric, 6), round(tps::numeric, -2),
    tps_min, tps_max, latency_avg_ms, round(latency_stddev_ms::numeric, 9)
           FROM bench.summary WHERE run_id = 1000000")" \
    "$count|$count|$count|$count|$count|28800.000000|$tps|$tps|$tps|1|0.500000000" \
    "$name: bench.summary adds them up"
is "$(sql "SELECT bench.percentile(1000000, 0.25) BETWEEN 0.01 AND 0.0101, bench.percentile(1000000, 0.999) BETWEEN 1
    AND 1.01")" 't|t' "$name: bench.percentile"
try "SELECT bench.report(1000000)"
like "$OUT" '288,?000,?000,?000,?000' "$name: bench.report has them"
unlike "$OUT" 'ERROR|-[0-9]{9}' "$name: and nothing that has wrapped"
log_is_clean
no_restart 'the server of the long run has not restarted'
done_testing
