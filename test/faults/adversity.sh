#!/usr/bin/env bash
# Hostile or unlucky company: rules and tables changed under a run, a schema of somebody else's, a
# stalled recorder, bystanders with locks.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

start() { # WORKLOAD ARGUMENTS…
    sql "SELECT bench.start('$1', clients => 2, secs => 30${2:+, $2})"
}

# A rule that leaves nothing of the statement, or makes several of it, made while it runs.
for action in 'INSTEAD NOTHING' 'ALSO SELECT 1'; do
    name="a rule DO $action made during a run"
    RUN=$(start pk_update 'sample_interval => 0.2')
    eventually 10 "SELECT count(*) >= 2 FROM bench.samples WHERE run_id = $RUN"
    sql "CREATE RULE surprise AS ON UPDATE TO bench_data.pk DO $action"
    sleep 0.5
    sql "SELECT bench.stop($RUN)" >/dev/null
    status_is "$RUN" canceled "$name"
    is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$name: the audit accuses nobody"
    sql 'DROP RULE surprise ON bench_data.pk'
    no_restart "$name: the server has not restarted"
done
sql "SELECT bench.run('pk_update', transactions => 100)" >/dev/null 2>&1
is "$(sql "SELECT ok FROM bench.audit($(last_run)) WHERE counter = 'n_tup_upd'")" t \
    'with the rule gone the audit judges again'

# The owner of a schema can put any table in the place of another.
name='a schema of an ordinary role'
sql 'CREATE ROLE mallory LOGIN' 'CREATE SCHEMA hers AUTHORIZATION mallory'
try "SET pgbench_ext.client_role = 'bench_client'" "SELECT bench.load('log', options => '{\"schema\": \"hers\"}')" \
    "SELECT bench.run('pk_insert', transactions => 1)"
like "$OUT" 'sessions of role "bench_client"' "$name: a superuser loads and runs in it without special rights"
is "$(sql "SELECT relowner::regrole FROM pg_class WHERE oid = 'hers.log'::regclass" \
    'SELECT count(*) FROM hers.log')" $'bench_owner\n1' "$name: the tables are nobody's who could be harmed"

# The snapshot is kept where anything could still read with it.
sql 'CREATE FUNCTION cnt() RETURNS bigint STABLE LANGUAGE sql RETURN (SELECT count(*) FROM bench_data.pk)'
OUT=$(sql "SELECT cnt() FROM (SELECT bench.run('pk_update', clients => 2, secs => 1)) r" 2>&1)
is "$(tail -n 1 <<<"$OUT")" 1000 'a STABLE function of the same statement sees all rows'
OUT=$(sql "SELECT bench.run('pk_update', clients => 2, secs => 1), cnt()" 2>&1)
like "$OUT" 'holds back the xmin horizon' 'a STABLE function beside the call keeps the horizon'
like "$OUT" '\|1000' 'and sees all rows'
sql 'DROP FUNCTION cnt()'

# A recorder that is stalled loses nothing, and moves nothing from one sample to another.
name='a stalled coordinator'
RUN=$(start pk_update 'sample_interval => 0.1')
eventually 10 "SELECT count(*) >= 3 FROM bench.samples WHERE run_id = $RUN"
pid=$(sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext coordinator'")
as_pg kill -STOP "$pid"
sleep 4
as_pg kill -CONT "$pid"
sleep 0.5
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT ok FROM bench.audit($RUN) WHERE counter = 'samples'")" t "$name: no transaction is lost"
is "$(sql "SELECT ok FROM bench.audit($RUN) WHERE counter = 'misplaced'")" t \
    "$name: each is in the sample of its own interval"
kept "$RUN" "$name"

# All clients terminated: the time that they ran is the time measured.
name='all clients terminated'
RUN=$(start pk_update 'sample_interval => 10')
eventually 10 "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'
    AND query LIKE 'UPDATE%'"
sleep 1.5
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
status_is "$RUN" incomplete "$name"
is "$(sql "SELECT secs BETWEEN 1 AND 9 AND transactions > 0 FROM bench.summary WHERE run_id = $RUN")" t \
    "$name: the measured time is about that"
is "$(sql "SELECT ok FROM bench.audit($RUN) WHERE counter = 'samples'")" t "$name: every transaction is in a sample"

# A bystander who waits for a run cannot end it by a lock of its own.
name='a bystander with a lock'
sql 'CREATE ROLE eve LOGIN IN ROLE pg_read_all_stats' \
    "SELECT bench.create_workload('locker', 'SELECT pg_advisory_xact_lock(42);')" >/dev/null
RUN=$(start locker)
PGUSER=eve try "BEGIN" "SELECT pg_advisory_lock(42)" "SELECT bench.wait($RUN, 5)"
like "$OUT" '40P01' "$name: it gets the error itself"
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" running "$name: the run goes on"
sql "SELECT bench.stop($RUN)" >/dev/null

# Maintenance of the results' tables does not disturb a run that somebody waits for.
name='VACUUM FULL of bench_internal.run_log'
session caller "SELECT bench.run('pk_update', clients => 2, secs => 3)"
eventually 10 'SELECT EXISTS (SELECT FROM bench.progress)'
sleep 0.5
try 'VACUUM FULL bench_internal.run_log'
is "$OUT" VACUUM "$name: it does not wait for the run"
ended caller 15
status_is "$(last_run)" completed "$name"

# Nor does a sweep that somebody waits for hold them up, with its runs behind them.
name='VACUUM FULL of bench.samples during a sweep'
session caller "SELECT bench.sweep('pk_update', '{1}', secs => 1, rounds => 3)"
for _ in {1..200}; do
    ! grep -q 'progress: 1 of 3' "$work/caller" || break
    sleep 0.05
done
is "$(sql "SELECT string_agg(DISTINCT c.relname, ', ') FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    JOIN pg_class c ON c.oid = l.relation
           WHERE a.application_name = 'caller' AND c.relname ~ '^(samples|run_log|sweep_log|sweep_run_log)'")" '' \
    "$name: its caller has no lock on the results"
try 'VACUUM FULL bench.samples'
is "$OUT" VACUUM "$name: works"
is "$(sql "SELECT status FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1")" running \
    "$name: it does not wait for the sweep"
ended caller 15
is "$(sql "SELECT status || ' ' || completed FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1")" 'completed 3' \
    "$name: all runs complete"

# A crash long ago does not keep later runs from being judged.
name='a crashed run'
RUN=$(start pk_update)
eventually 10 "SELECT count(*) > 0 FROM bench.samples WHERE run_id = $RUN"
sql "SELECT count(*) FROM bench.progress" >/dev/null
no_restart 'until then the server has not restarted'
pid=$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")
as_pg kill -9 "$pid"
eventually 20 "SELECT status = 'crashed' FROM bench.runs WHERE run_id = $RUN"
sql "SELECT bench.load('pk', 1000)" "SELECT bench.run('pk_update', transactions => 10)" >/dev/null 2>&1
is "$(sql "SELECT count(*) > 3 FROM bench.audit($(last_run)) WHERE ok")" f "$name: one right after it is not judged"
sql "UPDATE bench_internal.run_log SET started_at = started_at - interval '5 minutes',
    counted_from = counted_from - interval '5 minutes' WHERE run_id = $RUN" \
    "UPDATE bench.samples SET at = at - interval '5 minutes' WHERE run_id = $RUN"
is "$(sql "SELECT count(*) > 3 FROM bench.audit($(last_run)) WHERE ok")" t "$name: later ones are judged"

# Names that look like a template's places.
sql 'CREATE SCHEMA "a%w %t"' >/dev/null
try "SELECT bench.load('wide', 10, options => '{\"schema\": \"a%w %t\"}')"
is "$(tail -n 1 <<<"$OUT")" 10 'a schema whose name has percent signs'

# Only encodings that scripts can travel in.
sql "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
PGDATABASE=latin try 'CREATE EXTENSION pgbench_ext' "SELECT bench.create_workload('w', 'SELECT 1')" \
    "SELECT bench.run('pk_select')"
like "$OUT" '0A000.*0A000' 'a database in LATIN1 is refused'

nothing_left 'at the end'
done_testing
