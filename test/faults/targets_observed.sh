#!/usr/bin/env bash
# What is observed of other servers: waits, WAL and checkpoints of a primary, the lag of its standby as either of them
# tells it, what a role may not see, and monitoring connections that are killed or stall.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# The primary that is measured, with a standby; results are recorded in another cluster.
CLUSTER_TEMPLATE='' cluster_start 'fsync = off' 'max_wal_senders = 4' 'hot_standby = on' || exit 1
FAR=$PGHOST
on_far() { PGHOST=$FAR "$@"; }
on_far sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" 'CREATE ROLE plain LOGIN' \
    'GRANT USAGE ON SCHEMA bench_data TO plain' 'GRANT ALL ON ALL TABLES IN SCHEMA bench_data TO plain' >/dev/null
as_pg pg_basebackup -h "$FAR" -U postgres -D "$FAR/standby" -R -c fast >/dev/null 2>&1
as_pg mkdir "$FAR/socket"
echo "unix_socket_directories = '$FAR/socket'" | as_pg tee -a "$FAR/standby/postgresql.conf" >/dev/null
at_exit "as_pg pg_ctl -D '$FAR/standby' -m immediate -s stop 2>/dev/null"
as_pg pg_ctl -D "$FAR/standby" -l "$FAR/standby.log" -s -w -t 60 start
on_standby() { PGHOST=$FAR/socket "$@"; }

faults_start
sql "CREATE SERVER far FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR', dbname 'postgres')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER far' \
    "CREATE SERVER far_plain FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR', dbname 'postgres')" \
    "CREATE USER MAPPING FOR CURRENT_USER SERVER far_plain OPTIONS (user 'plain')" \
    "CREATE SERVER standby FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR/socket', dbname 'postgres')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER standby'

over() { # DESCRIPTION
    if on_far eventually 3 "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"; then
        tap_pass "$1: no connection is left there"
    else
        tap_fail "$1: no connection is left there"
    fi
    nothing_left "$1"
}

of() { sql "SELECT $1 FROM bench.${2:-samples} WHERE run_id = $RUN"; }

# The connection that watches: it asks what the clients wait for.
MONITOR="pid <> pg_backend_pid() AND query LIKE 'SET LOCAL search_path%'"

#
# A primary
#
name='waits, WAL and checkpoints of a primary'
on_far sql "CREATE TABLE counter (n int)" 'INSERT INTO counter VALUES (0)' 'GRANT ALL ON counter TO plain'
script='BEGIN; UPDATE counter SET n = n + 1; SELECT pg_sleep(0.02); COMMIT'
session caller "SELECT bench.run(script => '$script', clients => 4, secs => 10, driver => 'wire', target => 'far',
    query_mode => 'simple')"
eventually 10 "SELECT count(*) >= 2 FROM bench.samples"
on_far sql CHECKPOINT
ended caller
RUN=$(last_run)
status_is "$RUN" completed "$name"
# A server that is slow to answer is asked less often, and the intervals between have none.
is "$(of 'sum(wal_bytes) > 10000 AND sum(wal_records) > 100 AND count(wal_fpi) = count(wal_bytes)
        AND count(wal_fpi) >= 3')" t "$name: WAL"
is "$(of 'sum(checkpoints)')" 1 "$name: the checkpoint is counted"
is "$(of 'count(cpu_user) + count(memory_available_bytes)')" 0 "$name: processors and memory there are NULL"
is "$(sql "SELECT share > 0.5 FROM bench.waits WHERE run_id = $RUN AND wait_event_type = 'Lock'
        ORDER BY share DESC LIMIT 1")" t "$name: clients waited for each other's row"
is "$(of 'abs(sum(share) - 1) < 0.001' waits)" t "$name: shares add up to 1"
is "$(sql "SELECT bool_and(abs(sum - 1) < 0.001), count(*) >= 3 FROM (SELECT sum(value::float8)
        FROM bench.samples, jsonb_each_text(waits) WHERE run_id = $RUN GROUP BY elapsed) s")" 't|t' \
    "$name: in each interval that was asked about, too"
is "$(sql "SELECT count(*) FROM bench.findings($RUN) WHERE topic = 'waits' AND finding LIKE '%locked%'")" 1 \
    "$name: a finding tells of them"
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$name: the audit accuses nobody"
over "$name"

name='the standby of a primary'
is "$(of "count(DISTINCT (name, state)) = 1 AND min(state) = 'streaming' AND min(name) = 'walreceiver'
        AND count(replay_lag_bytes) = count(*)" standbys)" t "$name: bench.standbys"
is "$(sql "SELECT count(*) FROM bench.standbys t WHERE run_id = $RUN AND NOT EXISTS (
        SELECT FROM bench.samples s WHERE s.run_id = t.run_id AND s.node = t.node AND s.elapsed = t.elapsed)")" 0 \
    "$name: each row is of a sample"
is "$(of 'count(replay_lag_bytes) >= 3 AND min(replay_lag_bytes) >= 0')" t "$name: the lag by interval"
like "$(sql "SELECT bench.report($RUN)")" 'replay lag: avg .*, max .* of WAL' "$name: the report has it"

name='replay that is paused'
on_standby sql 'SELECT pg_wal_replay_pause()' >/dev/null
try "SELECT bench.run('pk_update', clients => 2, secs => 4, sample_interval => 0.25, driver => 'wire',
    target => 'far')"
RUN=$(last_run)
is "$(sql "SELECT bool_and(grows) FROM (
        SELECT replay_lag_bytes >= lag(replay_lag_bytes) OVER (ORDER BY elapsed) AS grows
        FROM bench.standbys WHERE run_id = $RUN) g")" t "$name: the bytes grow"
is "$(of 'max(replay_lag_bytes) > 100000')" t "$name: in bench.samples as well"
on_standby sql 'SELECT pg_wal_replay_resume()' >/dev/null

name='a role without pg_monitor'
try "SELECT bench.run(script => '$script', clients => 2, secs => 1.5, driver => 'wire', target => 'far_plain',
    query_mode => 'simple')"
RUN=$(last_run)
like "$OUT" 'NOTICE:  .*role plain cannot observe the lag of its standbys on target "far_plain"' "$name: the notice"
like "$OUT" 'HINT:  .*GRANT pg_monitor TO plain' "$name: says what helps"
is "$(of 'count(replay_lag_ms), count(replay_lag_bytes)')" '0|0' "$name: the lag is NULL"
is "$(of 'count(*)' standbys)" 0 "$name: no standby is told of"
is "$(of 'sum(wal_bytes) > 0')" t "$name: WAL is for everybody"
is "$(of 'count(*) > 0' waits)" t "$name: waits of its own sessions too"
on_far sql 'REVOKE SELECT ON pg_stat_wal, pg_stat_replication FROM PUBLIC'
try "SELECT bench.run(script => '$script', clients => 2, secs => 1, driver => 'wire', target => 'far_plain',
    query_mode => 'simple')"
RUN=$(last_run)
like "$OUT" 'cannot observe what pg_stat_wal shows, what pg_stat_replication shows on' "$name: views that are not shown"
is "$(of 'count(wal_bytes), count(buffers_checkpoint) > 0')" '0|t' "$name: are NULL, and no other"
on_far sql 'GRANT SELECT ON pg_stat_wal, pg_stat_replication TO PUBLIC' 'GRANT pg_monitor TO plain'
try "SELECT bench.run(script => '$script', clients => 2, secs => 1, driver => 'wire', target => 'far_plain',
    query_mode => 'simple')"
RUN=$(last_run)
unlike "$OUT" 'NOTICE:  .*cannot observe' 'with pg_monitor: no notice'
is "$(of 'count(*) > 0' standbys)" t 'with pg_monitor: its standbys are told of'
over "$name"

#
# A standby
#
name='a standby that replays late'
on_standby sql "ALTER SYSTEM SET recovery_min_apply_delay = '2s'" 'SELECT pg_reload_conf()' >/dev/null
on_far session writer "DO \$\$ BEGIN FOR i IN 1..200 LOOP UPDATE counter SET n = n + 1; COMMIT;
    PERFORM pg_sleep(0.03); END LOOP; END \$\$"
sleep 1
try "SELECT bench.run('pk_select', clients => 2, secs => 3, driver => 'wire', target => 'standby')"
RUN=$(last_run)
status_is "$RUN" completed "$name"
is "$(of 'max(replay_lag_ms) BETWEEN 1000 AND 10000 AND max(replay_lag_bytes) > 0')" t "$name: its lag"
is "$(of 'count(*)' standbys)" 0 "$name: it has no standbys of its own"
is "$(of 'count(*) > 0' waits)" t "$name: its waits"
on_far leave writer
on_standby sql 'ALTER SYSTEM RESET recovery_min_apply_delay' 'SELECT pg_reload_conf()' >/dev/null
name='a standby that has replayed everything'
lsn=$(on_far sql 'SELECT pg_current_wal_lsn()')
on_standby eventually 20 "SELECT pg_last_wal_replay_lsn() >= '$lsn'"
try "SELECT bench.run('pk_select', clients => 2, secs => 1.5, driver => 'wire', target => 'standby')"
RUN=$(last_run)
is "$(of 'min(replay_lag_ms), min(replay_lag_bytes)')" '0|0' "$name: is not behind"

#
# Monitoring connections that are lost, and that stall
#
name='a monitoring connection that is killed'
runs=$(last_run)
session caller "SELECT bench.run(script => '$script', clients => 2, secs => 4, driver => 'wire', target => 'far',
    query_mode => 'simple')"
sampling "$runs" 1
is "$(on_far sql "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE $MONITOR")" 1 \
    "$name: there is one"
ended caller
status_is "$RUN" completed "$name"
is "$(of 'count(*)' errors)" 0 "$name: is no client's error"
is "$(sql "SELECT wal_bytes IS NOT NULL FROM bench.samples WHERE run_id = $RUN ORDER BY elapsed DESC LIMIT 1")" t \
    "$name: there is another"
over "$name"

name='a monitoring connection that stalls'
session caller "SELECT bench.run(script => '$script', clients => 2, secs => 60, sample_interval => 0.25,
    driver => 'wire', target => 'far', query_mode => 'simple')"
sampling "$RUN" 1
stopped=$(on_far sql "SELECT pid FROM pg_stat_activity WHERE $MONITOR")
as_pg kill -STOP "$stopped"
at_exit "as_pg kill -CONT $stopped 2>/dev/null"
sampling "$((RUN - 1))" 10
is "$(of 'max(secs) < 1')" t "$name: samples are not late"
clock
sql "SELECT bench.stop($RUN)" >/dev/null
ended caller
within 3000 "$name: bench.stop is in time"
status_is "$RUN" canceled "$name"
is "$(sql "SELECT wal_bytes IS NULL FROM bench.samples WHERE run_id = $RUN ORDER BY elapsed DESC LIMIT 1")" t \
    "$name: what was not told is NULL"
as_pg kill -CONT "$stopped"
over "$name"

#
# This server's own standby
#
name='this server'
PGHOST=$FAR
try "SELECT bench.run('pk_update', clients => 2, secs => 1.5)"
RUN=$(last_run)
is "$(of 'count(*) > 0 AND count(DISTINCT name) = 1' standbys)" t "$name: its standby"
is "$(of 'count(replay_lag_bytes) > 0')" t "$name: and its lag"
sql "SELECT bench.delete_run($RUN)" >/dev/null
is "$(of 'count(*)' standbys)" 0 "$name: goes with the run"
nothing_left "$name"

done_testing
