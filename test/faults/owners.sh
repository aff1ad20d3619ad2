#!/usr/bin/env bash
# What a role owns stays its own when it is renamed, also during a run, and nobody's but superusers' when it is dropped:
# runs, sweeps, loads, workloads, fixtures, captures with their values. Whoever gets its name gets nothing of that.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

by() { # ROLE STATEMENT…
    local role=$1
    shift
    PGUSER=$role try "$@"
}
# What a role sees of ann's, counted: runs, their samples, sweeps, captures, their statements, kept values, private
# workloads.
sees() { # ROLE [DATABASE]
    PGUSER=$1 PGDATABASE=${2:-postgres} sql "SELECT concat_ws(' ',
        (SELECT count(*) FROM bench.runs WHERE tags ? 'anns'),
        (SELECT sign(count(*)) FROM bench.samples WHERE run_id IN ($OWN, $LATE)),
        (SELECT count(*) FROM bench.sweeps), (SELECT count(*) FROM bench.captures),
        (SELECT count(*) FROM bench.capture_statements), (SELECT count(*) FROM bench.captured_rows),
        (SELECT count(*) FROM bench.workloads WHERE private))"
}
everything='5 1 1 1 1 2 1' nothing='0 0 0 0 0 0 0'
newcomer() { # NAME
    sql "CREATE ROLE $1 LOGIN" "GRANT CREATE ON DATABASE postgres TO $1" >/dev/null
}
# That a role can do nothing with what ann has left.
is_kept_out() { # ROLE DESC
    is "$(sees "$1")" "$nothing" "$2: sees no run, sweep, capture or value of hers"
    local call load
    load=$(sql 'SELECT coalesce(max(load_id), 0) FROM bench_internal.load_log')
    while read -r call; do
        by "$1" "SELECT $call"
        like "$OUT" '^ERROR:  (42501|42704): ' "$2: ${call:0:70}"
    done <<END
bench.delete_run($OWN)
bench.wait($OWN)
bench.stop($OWN)
bench.report($OWN)
bench.export('{$OWN}')
bench.resume_sweep($SWEEP)
bench.stop_sweep($SWEEP)
bench.sweep_report($SWEEP)
bench.wait_load($load)
bench.stop_load($load)
bench.create_workload('anns', 'SELECT 2;')
bench.add_feeder('anns', 'SELECT 1 AS a')
bench.drop_workload('anns')
$fixture
bench.drop_fixture('anns_rows')
bench.load('log', 5, options => '{"schema": "anns"}')
bench.unload('log')
bench.drop_capture('anns_capture')
bench.stop_capture('anns_capture')
bench.export_capture('anns_capture', true)
bench.import_capture('${CAPTURE/\"private\": true/\"private\": false}')
END
    by "$1" "SELECT bench.prune('0')"
    is "$OUT" 0 "$2: bench.prune deletes nothing of hers"
}

sql 'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO PUBLIC' >/dev/null
newcomer ann
CAPTURE='{"format_version": 1, "name": "anns_capture", "source": "log", "options": {}, "notes": [],
    "statements": [{"number": 1, "workload": "anns_capture/1", "weight": 1, "roles": ["ann"], "calls": 2, "share": 1}],
    "workloads": [{"name": "anns_capture/1", "script": "SELECT :secret;", "private": true, "feeders": [{"prefix": "",
        "query": "SELECT (row ->> @secret@)::text AS secret FROM bench.captured_rows WHERE workload = @anns_capture/1@",
        "pick": "random", "once": false, "max_rows": 10, "rows": null}],
        "rows": [{"workload": "anns_capture/1", "prefix": "",
            "rows": [[null, {"secret": "a"}], [null, {"secret": "b"}]]}]}]}'
CAPTURE=${CAPTURE//$'\n'/ } CAPTURE=${CAPTURE//@/\'\'}
fixture="bench.create_fixture('anns_rows', 'CREATE TABLE anns_rows (id bigint)', 'SELECT generate_series(\$1, \$2)')"
PGUSER=ann sql 'CREATE SCHEMA anns' "SELECT bench.create_workload('anns', 'SELECT 1;')" \
    "SELECT bench.load('log', 10, options => '{\"schema\": \"anns\"}')" \
    "SELECT $fixture" "SELECT ${fixture//anns_rows/anns_points}" \
    "SELECT bench.import_capture('$CAPTURE')" \
    "SELECT bench.run('anns', secs => 0.3, tags => '{\"anns\": \"1\"}')" \
    "SELECT bench.sweep('anns', '{1}', secs => 0.2, rounds => 2, tags => '{\"anns\": \"2\"}')" \
    >/dev/null 2>"$work/errors"
is "$(grep '^ERROR' "$work/errors")" '' 'ann has runs, a sweep, a workload, fixtures and a capture'
OWN=$(sql "SELECT min(run_id) FROM bench.runs WHERE role = 'ann'") SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
document=$(PGUSER=ann sql "SELECT jsonb_set(bench.export('{$OWN}'), '{run_log,0,started_at}', '\"2026-01-01\"')")
import="bench.import('${document//\'/\'\'}')"
PGUSER=ann sql "SELECT $import" >/dev/null

# A run under way is hers when it ends, whatever she is called by then.
LATE=$(PGUSER=ann sql "SELECT bench.start('anns', secs => 1.5, sample_interval => 0.2,
    tags => '{\"anns\": \"3\"}')" 2>/dev/null)
sampling "$((LATE - 1))" 1
is "$(sees ann)" "$everything" 'ann sees what is hers'
sql 'ALTER ROLE ann RENAME TO beth' >/dev/null
newcomer ann
by ann "SELECT bench.stop($LATE)"
like "$OUT" '42501: ' 'renamed during a run: the new ann cannot stop it'
status_is "$LATE" completed 'renamed during a run'
is "$(sql "SELECT role FROM bench.runs WHERE run_id = $LATE")" beth 'renamed during a run: it shows the new name'

is "$(sees beth)" "$everything" 'renamed: beth sees all that was hers'
is "$(sql "SELECT string_agg(DISTINCT role, ' ') FROM bench.runs WHERE tags ? 'anns'" \
    "SELECT string_agg(role, ' ') FROM bench.captures" 'SELECT role FROM bench.sweeps' \
    "SELECT owner FROM bench.fixture_definitions WHERE name = 'anns_rows'" | paste -sd' ')" 'beth beth beth beth' \
    'renamed: views show her present name'
is_kept_out ann 'renamed, the new ann'
by ann "SELECT $import IS NOT NULL" "SELECT bench.prune('0')"
is "$OUT" $'t\n1' 'renamed: the new ann imports the run that the other has imported'
by beth "SELECT $import"
like "$OUT" '23505: .*role "beth" has already imported' 'renamed: beth cannot import it again'
by beth "SELECT bench.create_workload('anns', 'SELECT 3;')" "SELECT bench.add_feeder('anns', 'SELECT 1 AS a')" \
    "SELECT bench.load('log', 20, options => '{\"schema\": \"anns\"}')" \
    "SELECT bench.export_capture('anns_capture', true) IS NULL" \
    "SELECT $fixture" \
    "SELECT bench.run('anns_capture', transactions => 2) > 0"
unlike "$OUT" 'ERROR' 'renamed: beth changes, loads, exports and replays what is hers'
by beth "SELECT bench.resume_sweep($SWEEP)"
like "$OUT" '55000: .*is completed' 'renamed: beth could resume her sweep'
by beth "SELECT bench.delete_run($LATE)"
is "$OUT" t 'renamed: beth deletes her run'
everything='4 1 1 1 1 2 1' LATE=$OWN

# Nobody's but superusers'.
sql 'REASSIGN OWNED BY beth TO postgres' 'DROP OWNED BY beth' 'DROP ROLE beth' >/dev/null 2>&1
newcomer beth
is_kept_out beth 'dropped, the new beth'
is_kept_out ann 'dropped, the new ann'
is "$(sees postgres)" "$everything" 'dropped: superusers see it all'
is "$(sql "SELECT string_agg(DISTINCT role, ' ') FROM bench.runs WHERE tags ? 'anns'")" ann \
    'dropped: the name that was kept is shown'
sql 'CREATE ROLE monitor LOGIN IN ROLE pg_read_all_stats' >/dev/null
is "$(sees monitor)" '4 1 1 1 1 0 0' 'dropped: pg_read_all_stats sees results, and no values'

# A dump of it, restored where other roles have the names.
sql 'CREATE DATABASE restored' >/dev/null
pg_dump >"$work/dump.sql"
PGDATABASE=restored psql -XAtq -f "$work/dump.sql" >/dev/null 2>"$work/errors"
is "$(grep ERROR "$work/errors")" '' 'dumped: it is restored'
is "$(sees ann restored)|$(sees beth restored)|$(sees postgres restored)" "$nothing|$nothing|$everything" \
    'dumped: it is nobody'"'"'s there but superusers'"'"''
is "$(PGDATABASE=restored sql "SELECT count(*) FROM bench_internal.run_log WHERE owner_oid <> 0 AND tags ? 'anns'")" 0 \
    'dumped: and will not be, whoever gets the OID'
is "$(PGDATABASE=restored sql "SELECT owner_oid::regrole FROM bench.fixtures WHERE name = 'pk'")" postgres \
    'dumped: what belongs to a role of both name and OID stays its own'
PGDATABASE=restored try "SELECT bench.add_feeder('anns', 'SELECT 1 AS b', 'x_')" "SELECT $fixture" \
    "SELECT bench.drop_fixture('anns_points')" "SELECT bench.create_workload('anns', 'SELECT 4;')" \
    "SELECT bench.delete_run($OWN)" "SELECT bench.prune('0') > 3" "SELECT bench.drop_capture('anns_capture')"
unlike "$OUT" 'ERROR|^f$' 'dumped: superusers change, take over and delete it'

# Until a superuser says whose it is to be.
newcomer carol
by carol "SELECT bench.reassign_owned('ann', 'carol')"
like "$OUT" '42501: ' 'bench.reassign_owned is for superusers'
try "SELECT bench.reassign_owned('ann', 'nobody')"
like "$OUT" '42704: role "nobody" does not exist' 'bench.reassign_owned: an unknown role'
try "SELECT bench.reassign_owned('beth', 'postgres')" "SELECT bench.run('anns')"
like "$OUT" 'ERROR:  42704: role "beth" does not exist.*HINT:.*take it over' \
    'bench.reassign_owned: superusers get no scripts that they have not read'
try "SELECT bench.reassign_owned('ann', 'carol')" "SELECT bench.reassign_owned('beth', 'carol')"
is "$OUT" $'8\n3' 'bench.reassign_owned says how much there was'
is "$(sees carol)" "$everything" 'reassigned: carol sees it all'
is "$(sees ann)|$(sees beth)" "$nothing|$nothing" 'reassigned: and the others nothing'
by carol "SELECT bench.drop_capture('anns_capture')" "SELECT bench.drop_workload('anns')" \
    "SELECT bench.drop_fixture('anns_rows')" "SELECT bench.prune('0') > 3"
unlike "$OUT" 'ERROR|^f$' 'reassigned: carol drops and deletes it'

# A sweep that can be resumed executes statements of its role.
newcomer dora
by dora "SELECT bench.create_workload('doras', 'SELECT 1;')" "SELECT bench.start_sweep('doras', '{1}', secs => 60,
    variants => '{\"x\": {\"sql\": {\"apply\": \"SELECT 1\", \"revert\": \"SELECT 2\"}}}')"
SWEEP=$(tail -n 1 <<<"$OUT")
by dora "SELECT bench.stop_sweep($SWEEP)"
is "$OUT" t 'a sweep of dora is stopped'
sql 'REASSIGN OWNED BY dora TO postgres' 'DROP OWNED BY dora' 'DROP ROLE dora' >/dev/null 2>&1
try "SELECT bench.reassign_owned('dora', 'postgres')" "SELECT bench.resume_sweep($SWEEP)"
like "$OUT" "42501: sweep $SWEEP belongs to role \"dora\"" \
    'bench.reassign_owned: superusers get no sweep whose statements they have not read'

# Values of a capture go with its workloads, so no later workload of that name gets them.
imported() { # DOCUMENT
    by carol "SELECT bench.import_capture('${1//\'/\'\'}')"
}
kept() { # DESC EXPECTED
    is "$(sql "SELECT concat_ws(' ', (SELECT count(*) FROM bench.captured_rows),
        (SELECT count(*) FROM bench.feeders WHERE workload LIKE 'anns_capture/%'),
        (SELECT count(*) FROM bench.workloads WHERE name LIKE 'anns_capture/%'))")" "$2" "$1"
}
with_more() { # EXPRESSION-OF-THE-DOCUMENT-d
    sql "SELECT $1 FROM (SELECT '${DOCUMENT//\'/\'\'}'::jsonb AS d) s"
}
DOCUMENT=${CAPTURE//\'\'/\'}
imported "$DOCUMENT"
kept 'imported: values, feeder and workload' '2 1 1'
by carol "SELECT bench.drop_workload('anns_capture/1')"
kept 'a dropped workload of a capture: its values are gone' '0 0 0'
by carol "SELECT bench.drop_capture('anns_capture')"
unnamed=$(with_more "jsonb_insert(d, '{workloads,1}', replace(d #>> '{workloads,0}', 'capture/1', 'capture/2')::jsonb)")
for round in 'an import' 'another import'; do
    imported "$unnamed"
    like "$OUT" '^anns_capture$' "$round with a workload that no statement names: works"
    kept "$round with a workload that no statement names: leaves that out" '2 1 1'
done
imported "$(with_more "jsonb_set(d, '{workloads,0,rows,0,rows}', '[]')")"
kept 'an import without values, over one with values: has none' '0 1 1'
imported "$(with_more "jsonb_insert(d, '{workloads,0,rows,1}', d #> '{workloads,0,rows,0}')")"
like "$OUT" '22023: not a document of bench.export_capture' 'an import with the same values twice: 22023'
kept 'an import that fails: leaves what was there' '0 1 1'
imported "$DOCUMENT"
by carol "SELECT bench.drop_capture('anns_capture')"
kept 'a dropped capture: nothing is left' '0 0 0'

sql 'DROP DATABASE restored' >/dev/null
nothing_left 'at the end'
no_restart 'the server has not gone down'
log_is_clean
done_testing
