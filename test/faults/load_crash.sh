#!/usr/bin/env bash
# Crashes during and right after bench.load, a full disk, and too few worker slots.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# Fixture `slow` takes a second for each thousand of its rows in the phase that the database's setting faults.slow
# names.
make_slow() {
    sql "CREATE FUNCTION nap(phase text, id bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE
        LANGUAGE plpgsql AS \$\$ BEGIN
             IF id % 100 = 0 AND phase = current_setting('faults.slow', true) THEN PERFORM pg_sleep(0.1); END IF;
             RETURN id;
         END \$\$" \
        "SELECT bench.create_fixture('slow',
             'CREATE TABLE slow (id bigint PRIMARY KEY, nap bigint);
              SELECT sum(nap(''starting'', id)) FROM generate_series(1, 1000) AS id',
             'SELECT id, nap(''loading rows'', id) FROM generate_series(\$1, \$2) AS id',
             'CREATE INDEX ON slow (nap(''building indexes'', id))')" >/dev/null
}
slow() { sql "ALTER DATABASE postgres SET faults.slow = '$1'"; }
leftovers() { sql "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\\_loading%'), (SELECT count(*)
    FROM bench_internal.load_log WHERE status = 'running')"; }
fixture_stays() {
    is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pk), (SELECT sum(id) FROM bench_data.pk)
        FROM bench.fixtures WHERE name = 'pk'")" \
        '1000|1000|500500' "$1: the fixture is as it was"
}

# A worker is killed, and the server starts anew.
faults_start
make_slow
while read -r fixture kind phase; do
    name="kill -9 of a $kind that loads $fixture while ${phase//_/ }"
    slow "${phase//_/ }"
    classes=$(sql 'SELECT count(*) FROM pg_class')
    session caller "SELECT bench.load('$fixture', 40000000, 2)"
    eventually 10 "SELECT phase = '${phase//_/ }' AND (clients = 2 OR '$kind' = 'load') FROM bench.progress"
    victim=$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $kind'")
    as_pg kill -9 "$victim"
    eventually 30 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim)"
    is $? 0 "$name: the server is back by itself"
    ended caller
    nothing_left "$name"
    fixture_stays "$name"
    is "$(leftovers)" '1|1' "$name: its schema is left over, and known to be"
    is "$(sql 'SELECT count(*) FROM bench.progress')" 0 "$name: bench.progress does not show it"
    is "$(sql "SELECT status FROM bench.loads WHERE fixture = '$fixture'")" crashed "$name: bench.loads says so"
    still_works "$name"
    is "$(sql "SELECT bench.load('log', 10)" "SELECT bench.unload('log')" 2>/dev/null)" 10 "$name: another load works"
    is "$(leftovers)" '0|0' "$name: and has removed what was left"
    is "$(sql 'SELECT count(*) FROM pg_class')" "$classes" "$name: with all that was in it"
done <<END
pk loader loading_rows
pk load loading_rows
slow loader loading_rows
END
# Fewer rows, for it is the index that takes its time.
slow 'building indexes'
session caller "SELECT bench.load('slow', 20000)"
eventually 10 "SELECT phase = 'building indexes' FROM bench.progress"
cluster_stop immediate
ended caller
cluster_resume || exit
slow nothing
is "$(leftovers)" '1|1' 'a crash while building indexes: the schema is left over'
is "$(sql "SELECT bench.load('slow', 1000)" 'SELECT count(*) FROM bench_data.slow' 2>/dev/null | tr '\n' ' ')" \
    '1000 1000 ' \
    'a crash while building indexes: the same load works again'
is "$(leftovers)" '0|0' 'a crash while building indexes: and has removed what was left'
unlike "$(cat "$PGHOST/log")" PANIC 'no PANIC in the log'
cluster_remove

# What bench.load has returned is there, even where a commit does not wait: what nobody flushes stays in memory, for
# the WAL writer sleeps.
faults_start 'fsync = on' 'full_page_writes = on' 'synchronous_commit = off' 'wal_writer_delay = 10s' \
    'wal_writer_flush_after = 1GB' \
    'wal_buffers = 64MB' 'checkpoint_timeout = 1h' 'min_parallel_table_scan_size = 0'
sql 'CREATE EXTENSION amcheck' 'CREATE EXTENSION pg_visibility' \
    "SELECT bench.create_fixture('own', 'CREATE TABLE own (id bigint PRIMARY KEY, t text)',
         'SELECT id, md5(id::text) FROM generate_series(\$1, \$2) AS id', 'CREATE INDEX ON own (t)')" >/dev/null

# Both ends leave everything as it is in the files at that moment. Of processes that are killed the new postmaster waits
# for the burial, hence the other one.
killed() {
    local postmaster children pid
    postmaster=$(head -1 "$PGHOST/data/postmaster.pid")
    read -r children <"/proc/$postmaster/task/$postmaster/children"
    # shellcheck disable=SC2086 # a list
    as_pg kill -9 "$postmaster" $children
    for pid in $postmaster $children; do
        for _ in {1..500}; do [ -e "/proc/$pid" ] || break; sleep 0.02; done
    done
}
stopped() { cluster_stop immediate; }

IN_PLACE="FROM pg_class c WHERE relnamespace = 'bench_data'::regnamespace AND relkind"
survives() { # HOW NAME CALL QUERY RESULT
    local how=$1
    shift
    sql "SELECT bench.load($2)" >/dev/null 2>"$work/load" || tap_fail "$1: the load works" "$(cat "$work/load")"
    "$how"
    cluster_resume 2>"$work/resume" || { tap_fail "$1: the server starts again" "$(cat "$work/resume")"; exit 1; }
    is "$(sql "$3" 2>&1)" "$4" "$1: all rows are there"
    is "$(sql "SELECT count(*) > 0, string_agg(bt_index_check(oid, heapallindexed => true)::text, '') $IN_PLACE = 'i'" \
        2>&1)" 't|' "$1: amcheck finds no fault with the indexes"
    is "$(sql "SELECT c.oid::regclass, f.* FROM pg_class c, verify_heapam(c.oid) f
        WHERE relnamespace = 'bench_data'::regnamespace AND relkind = 'r'" 2>&1)" \
        '' "$1: amcheck finds no fault with the tables"
    is "$(sql "SELECT oid::regclass, pg_check_visible(oid), pg_check_frozen(oid) $IN_PLACE = 'r'" 2>&1)" '' \
        "$1: all-visible and all-frozen pages are rightly so"
    is "$(sql "SELECT oid::regclass $IN_PLACE = 'r' AND (SELECT all_visible
        FROM pg_visibility_map_summary(c.oid)) * 8192 <> pg_relation_size(c.oid)" 2>&1)" \
        '' "$1: all pages are all-visible"
    is "$(leftovers)" '0|0' "$1: nothing is left over"
}
counts() { echo "SELECT count(*), count(DISTINCT $2), min($2), max($2) FROM bench_data.$1"; }
survives killed 'a crash after pk' "'pk', 500000" "$(counts pk id)" '500000|500000|1|500000'
survives stopped 'a crash after pk with its index before' "'pk', 200000, options => '{\"index\": \"before\"}'" \
    "$(counts pk id)" '200000|200000|1|200000'
survives stopped 'a crash after a small pk' "'pk', 1000" "$(counts pk id)" '1000|1000|1|1000'
survives stopped 'a crash after a fixture by SELECT' "'own', 300000" "$(counts own id)" '300000|300000|1|300000'
survives stopped 'a crash after tpcb' "'tpcb', options => '{\"scale\": 1}'" \
    "$(counts pgbench_accounts aid) UNION ALL $(counts pgbench_tellers tid) UNION ALL $(counts pgbench_branches bid)" \
    $'100000|100000|1|100000\n10|10|1|10\n1|1|1|1'
survives stopped 'a crash after tpcb with partitions' "'tpcb', options => '{\"scale\": 1, \"partitions\": 3}'" \
    "$(counts pgbench_accounts aid)" '100000|100000|1|100000'
# Pages whose first part was written down by a checkpoint, and whose rest is in the WAL alone.
session checkpoints "DO \$\$ BEGIN LOOP EXECUTE 'CHECKPOINT'; PERFORM pg_sleep(0.02); END LOOP; END \$\$"
holds checkpoints
survives stopped 'a crash after pk among checkpoints' "'pk', 500000" "$(counts pk id)" '500000|500000|1|500000'
ended checkpoints

# An unlogged fixture: a crash empties it, a shutdown does not.
sql "SELECT bench.load('pk', 20000, options => '{\"unlogged\": true}')" >/dev/null 2>&1
cluster_restart || exit
still_works 'an unlogged fixture after a shutdown'
stopped
cluster_resume || exit
try "SELECT bench.run('pk_select', transactions => 10)"
like "$OUT" 'ERROR:  55000:.*"pk" has lost its rows.*HINT:.*Load it again' \
    'an unlogged fixture after a crash: a run is refused'
is "$(sql "SELECT bench.load('pk', 20000, options => '{\"unlogged\": true}')" 2>/dev/null)" 20000 \
    'an unlogged fixture after a crash: is loaded again'
still_works 'an unlogged fixture that was loaded again'
unlike "$(cat "$PGHOST/log")" PANIC 'no PANIC in the log of these'
cluster_remove

# A disk that is full, of which a limit on the size of files is a fair likeness: the postmaster ignores SIGXFSZ. WAL
# files have 16 MB. Table pk has 73 bytes for each row.
faults_start 'max_worker_processes = 6'
make_slow
sql "SELECT bench.create_fixture('own', 'CREATE TABLE own (id bigint, t text)',
    'SELECT id, md5(id::text) FROM generate_series(\$1, \$2) AS id')" \
    "SELECT bench.create_fixture('indexed', 'CREATE TABLE indexed (id bigint)',
        'SELECT id FROM generate_series(\$1, \$2) AS id',
         'CREATE INDEX ON indexed ((md5(id::text) || md5((-id)::text) || md5((id + 0.5)::text)
              || md5((id + 0.7)::text) || md5((id + 0.9)::text)))')" >/dev/null
cluster_stop
# shellcheck disable=SC2016 # for the other shell
as_pg bash -c 'ulimit -f 40960 && exec pg_ctl -D "$1/data" -l "$1/log" -s -w start' bash "$PGHOST" </dev/null || exit
remember_server
classes=$(sql 'SELECT count(*) FROM pg_class')
while read -r fixture rows options; do
    name="a full disk while loading $fixture $options"
    try "SELECT bench.load('$fixture', $rows, 2, '$options')"
    like "$OUT" 'ERROR:  [0-9A-Z]{5}: could not (extend|write)' "$name: the caller is told"
    nothing_left "$name"
    is "$(leftovers) $(sql 'SELECT count(*) FROM pg_class')" "0|0 $classes" "$name: nothing is left"
    fixture_stays "$name"
    ok "$name: a checkpoint works" sql CHECKPOINT
done <<END
pk 3000000 {}
pk 3000000 {"index":"before"}
own 3000000 {}
indexed 300000 {}
tpcb 1000000 {"partitions":2}
END
is "$(sql "SELECT bench.load('pk', 100000)" "SELECT bench.load('pk', 1000)" 2>/dev/null | tr '\n' ' ')" '100000 1000 ' \
    'a full disk: a load for which there is room works'
is "$(sql "SELECT count(*) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database
    WHERE datname = current_database())) AS file
           WHERE pg_size_bytes('30MB') < (pg_stat_file('base/' || (SELECT oid FROM pg_database
           WHERE datname = current_database()) || '/' || file)).size")" \
    0 'a full disk: no big file is left'

# Worker slots: six, of which the server itself has one.
try "SELECT bench.load('pk', 100000, 8)"
like "$OUT" 'ERROR:  53400:.*Needed: 9 .*configured: 6; in use: 1\..*HINT:.*max_worker_processes to at least 10' \
    'more jobs than slots: 53400, with the numbers'
fixture_stays 'more jobs than slots'
slow 'loading rows'
RUN=$(sql "SELECT bench.start('pk_select', clients => 2, secs => 60)")
session caller "SELECT bench.load('slow', 200000)"
eventually 10 "SELECT clients = 1 FROM bench.progress WHERE fixture = 'slow' AND phase = 'loading rows'"
is $? 0 'two slots, and no number of jobs: a load by one'
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" "SELECT bench.stop($RUN)" \
    "SELECT bench.wait($RUN)" >/dev/null
ended caller
like "$OUT" 'loading with 1 jobs instead of [0-9]+' 'two slots, and no number of jobs: it says so'
nothing_left 'two slots, and no number of jobs'
# Slots that a run takes after the load has begun.
slow starting
session caller "SELECT bench.load('slow', 200000, 3)"
eventually 10 "SELECT phase = 'starting' FROM bench.progress WHERE fixture = 'slow'"
RUN=$(sql "SELECT bench.start('pk_select', clients => 2, secs => 60)")
ended caller
like "$OUT" 'ERROR:  53400' 'slots that are taken meanwhile: the load fails'
is "$(leftovers)" '0|0' 'slots that are taken meanwhile: nothing is left over'
sql "SELECT bench.stop($RUN)" "SELECT bench.wait($RUN)" >/dev/null
nothing_left 'slots that are taken meanwhile'
log_is_clean
no_restart 'the server has not restarted'
done_testing
