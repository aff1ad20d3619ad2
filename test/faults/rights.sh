#!/usr/bin/env bash
# Whatever a role without special rights plants, and whatever a superuser then calls: its functions are never called in
# a session that could come by special rights. A matrix of plants and entries (SECURITY.md); rights_callers.sh has that
# of callers and drivers.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/rights.sh
. test/lib/rights.sh

rights_start 'max_prepared_transactions = 0' || exit

# What is called. Each is one statement; errors are no concern of this test. Those of a group with a number are called
# for one plant in so many, by turns, and for those that need them: they take long.
ENTRIES=() EVERY=() GROUPS_OF=()
groups=0
entry() { # [EVERY] STATEMENT…
    local every=1 statement
    groups=$((groups + 1))
    [[ ! $1 =~ ^[0-9]+$ ]] || { every=$1 && shift; }
    # What the caller's own statement names is not to be hers.
    for statement in "$@"; do
        ENTRIES+=("${statement//SELECT count(/SELECT pg_catalog.count(}") EVERY+=("$every") GROUPS_OF+=("$groups")
    done
}
RUN='(SELECT pg_catalog.max(run_id) FROM bench.runs)'
SWEEP='(SELECT pg_catalog.max(sweep_id) FROM bench.sweeps)'
DUEL='(SELECT pg_catalog.max(run_id) FROM bench.duels)'
SIDES="'{}', '{\"settings\": {\"work_mem\": \"8MB\"}}'"
BEFORE="(SELECT pg_catalog.max(run_id) FROM bench.runs WHERE run_id < $RUN)"
TAP="SET LOCAL search_path = tap, pg_catalog;
    SELECT CASE WHEN to_regclass('pg_temp.__tcache__') IS NULL THEN tap.plan(1) END;"

entry "SELECT bench.run('pk_update', transactions => 3)" "SELECT bench.run('others', transactions => 3)" \
    "SELECT bench.run('reads', transactions => 2)" \
    "SELECT bench.run(script => 'INSERT INTO trap.mine (id, v, p)
        SELECT max(id) + 1, 1, p FROM trap.mine WHERE id < 3 GROUP BY p LIMIT 1', transactions => 2)"
entry 5 "SELECT bench.run('pk_update', transactions => 3, query_mode => 'simple')" \
    "SELECT bench.run('pk_insert', transactions => 3, before => 'truncate,vacuum')" \
    "SELECT bench.run('fed', transactions => 2)" "SELECT bench.run('parted', transactions => 2)"
entry 5 "SELECT bench.run('keys', transactions => 2)"
entry 12 "SELECT bench.wait(bench.start('orders_functions@1, orders@1', transactions => 10))"
entry 5 "SELECT bench.run('pk_update', driver => 'wire', run_as => 'plain', transactions => 3)" \
    "SELECT bench.run('others', driver => 'wire', run_as => 'plain', transactions => 3)"
# With parallel workers, and on a target that leads back here
FORCED=$([ "$MAJOR" -lt 16 ] && echo force_parallel_mode || echo debug_parallel_query)
entry 5 "SELECT bench.run('scans', transactions => 1, settings => '{\"parallel_setup_cost\": 0,
        \"parallel_tuple_cost\": 0, \"min_parallel_table_scan_size\": 0, \"$FORCED\": \"on\"}')" \
    "SELECT bench.run(script => 'UPDATE trap.mine SET v = v + 1 WHERE id = 7', driver => 'wire', target => 'round',
        transactions => 2)"
# Her scripts, which leave their role
for name in reset discard reset_all block "\\'; SELECT trap.known(3); --"; do
    entry 8 "SELECT bench.run(\$n\$hers/$name\$n\$, transactions => 2, query_mode => 'simple')"
done
entry 12 "SELECT bench.run('hers/block', driver => 'wire', run_as => 'mallory', transactions => 2)"
entry 2 "SELECT count(*) FROM bench.preview(NULL, workload => 'fed')" \
    "SELECT count(*) FROM bench.preflight('others')" "SELECT count(*) FROM bench.check('pk')"
entry 5 "SELECT bench.duel('pk_update', $SIDES, secs => 0.4)" \
    "SELECT bench.wait(bench.start_duel('others', $SIDES, secs => 0.3))" \
    "SELECT count(*) FROM bench.duel_results($DUEL)" "SELECT count(*) FROM bench.compare_duels(ARRAY[$DUEL, $DUEL])" \
    "SELECT count(*) FROM bench.duel_statements($DUEL)" \
    "SELECT count(*) FROM bench.duel_waits($DUEL)" "SELECT bench.verify_report($DUEL)"
VARIANTS='{"a": {"sql": {"apply": "UPDATE trap.mine SET v = 1", "revert": "UPDATE trap.mine SET v = 2"}}}'
entry 5 "SELECT bench.sweep('pk_update', '{1}', secs => 0.1, before => 'vacuum,prewarm', variants => '$VARIANTS')"
entry 12 "SELECT bench.wait_sweep(bench.start_sweep('others', '{1,2}', secs => 0.1, variants => '$VARIANTS'))" \
    "SELECT bench.stop_sweep(bench.start_sweep('others', '{1,2}', secs => 10, variants => '$VARIANTS'))" \
    "SELECT bench.wait_sweep($SWEEP)" "SELECT bench.resume_sweep($SWEEP)" "SELECT bench.stop_sweep($SWEEP)" \
    "SELECT bench.wait_sweep($SWEEP)"
entry 36 "SELECT count(*) FROM bench.ab('others', $SIDES, rounds => 3, secs => 0.1)"
entry 36 "SELECT count(*) FROM bench.calibrate('others', rounds => 3, secs => 0.1)"
entry 36 "SELECT bench.capacity('others', latency_limits => '{100}', clients => 1, trials => 1, secs => 0.1,
    margin => 0.5)"
entry 18 "SELECT count(*) FROM bench.screen('others', '{\"work_mem\": [\"4MB\", \"8MB\"]}', secs => 0.2)" \
    "SELECT bench.wait_sweep(bench.start_screen('others', '{\"work_mem\": [\"4MB\", \"8MB\"]}', secs => 0.2))" \
    "SELECT count(*) FROM bench.screen_results($SWEEP)"
entry 5 "SELECT count(*) FROM bench.answers('others', $SIDES, executions => 3)" \
    "SELECT count(*) FROM bench.recall('others', 'trap.mine_pkey', executions => 2)"
entry 18 "SELECT count(*) FROM bench.verify('others', $SIDES, rounds => 3, secs => 0.2)" \
    "SELECT bench.stop_sweep(bench.start_capacity('others', latency_limits => '{100}', clients => 1, secs => 5))" \
    "SELECT bench.stop(bench.start('others', secs => 5))"
# Copies are made only of tables that a script names without their schema.
BARE="script => 'UPDATE mine SET v = v + 1 WHERE id = 7', settings => '{\"search_path\": \"trap\"}'"
entry 5 "SELECT count(*) FROM bench.index_worth('others', 'trap.mine_pkey', secs => 0.3)" \
    "SELECT count(*) FROM bench.index_worth($BARE, index => 'trap.mine_pkey', secs => 0.3)"
entry 12 "SELECT bench.wait_sweep(bench.start_index_worth($BARE, index => 'trap.mine_pkey', secs => 0.2))" \
    "SELECT count(*) FROM bench.index_worth_results($SWEEP)"
CHANGE='{"apply": "ALTER TABLE trap.mine ALTER v SET DEFAULT 1",
    "revert": "ALTER TABLE trap.mine ALTER v DROP DEFAULT"}'
entry 12 "SELECT count(*) FROM bench.rehearse($BARE, change => '$CHANGE', rate => 20, quiet_secs => 1)" \
    "SELECT bench.wait_sweep(bench.start_rehearse($BARE, change => '$CHANGE', blocker => 'SELECT trap.known(1)',
        blocker_secs => 0.2, rate => 20, quiet_secs => 1))" \
    "SELECT count(*) FROM bench.rehearse_results($SWEEP)" "SELECT bench.rehearse_report($SWEEP)"
entry 4 "SELECT bench.create_workload('twice', 'SELECT trap.known(1);')" \
    "SELECT bench.add_feeder('twice', 'SELECT v AS a FROM trap.sight')" "SELECT bench.drop_feeder('twice')" \
    "SELECT bench.drop_workload('twice')"
entry 5 "SELECT bench.create_fixture('copies', 'CREATE TABLE copies (LIKE trap.mine INCLUDING ALL)',
        'SELECT i, i, NULL::trap.pair FROM generate_series(\$1, \$2) AS i')" "SELECT bench.load('copies', 10)" \
    "SELECT bench.unload('copies')" "SELECT bench.drop_fixture('copies')" \
    "SELECT bench.wait_load(bench.start_load('pk', 1000))" \
    "SELECT bench.stop_load((SELECT pg_catalog.max(load_id) FROM bench_internal.load_log))" \
    "SELECT bench.load('log', 0)"
entry 5 "SELECT count(*) FROM bench.capture('seen', secs => 0.4)" "SELECT bench.run('seen', transactions => 2)" \
    "SELECT count(*) FROM bench.fidelity($RUN)" "SELECT count(*) FROM bench.fidelity_parts($RUN)" \
    "SELECT bench.import_capture(bench.export_capture('seen', true))" "SELECT bench.drop_capture('seen')"
entry 5 "SELECT bench.start_capture('later', secs => 0.2)" "SELECT bench.stop_capture('later')" \
    "SELECT bench.wait_capture('later')" "SELECT bench.drop_capture('later')"
for log in forged forging; do
    entry 5 "SELECT count(*) FROM bench.capture_log('$log', 'trap.$log', options => '{\"writes\": true}')" \
        "SELECT bench.run('$log', transactions => 2)"
done
entry 4 "SELECT bench.report($RUN)" "SELECT bench.report($RUN, 'html')" "SELECT bench.report($RUN, 'markdown')" \
    "SELECT bench.report($RUN, 'json')" "SELECT count(*) FROM bench.findings($RUN)" \
    "SELECT bench.percentile($RUN, 0.9)" "SELECT count(*) FROM bench.audit($RUN)" "SELECT bench.sweep_report($SWEEP)" \
    "SELECT count(*) FROM bench.scalability($SWEEP)" \
    "SELECT count(*) FROM bench.compare(ARRAY[$BEFORE], ARRAY[$RUN])" \
    "SELECT count(*) FROM bench.compare_statements(ARRAY[$BEFORE], ARRAY[$RUN])" \
    "SELECT bench.compare_report(ARRAY[$BEFORE], ARRAY[$RUN])" "SELECT count(*) FROM bench.change_points('others')" \
    "SELECT bench.fetch($RUN)" "SELECT bench.version()" 'SELECT count(*) FROM bench.help()' \
    "SELECT bench.import((SELECT pg_catalog.jsonb_agg(e) -> 0 FROM bench.export(ARRAY[$RUN]) AS e))" \
    "SELECT bench.delete_run($RUN)" "SELECT bench.allow('plain', 'run')" \
    "SELECT bench.disallow('looper')" "SELECT bench.reassign_owned('looper', 'plain')" \
    "DO \$\$ DECLARE v regclass; BEGIN
        FOR v IN SELECT oid FROM pg_class WHERE relkind = 'v' AND relnamespace = 'bench'::regnamespace LOOP
            EXECUTE 'SELECT pg_catalog.count(v::text) FROM ' || v || ' AS v';
        END LOOP; END \$\$"
entry 5 "$TAP SELECT bench.tps_ok($RUN, '>', 0)" "$TAP SELECT bench.latency_ok($RUN, 0.9, '<', 1000)" \
    "$TAP SELECT bench.audit_ok($RUN)" "$TAP SELECT bench.check_ok('pk')" \
    "$TAP SELECT bench.no_regression_ok(ARRAY[$BEFORE], ARRAY[$RUN])"
entry 12 "$TAP SELECT bench.duel_ok('others', $SIDES, secs => 0.2)" \
    "$TAP SELECT bench.no_slower_ok('others', $SIDES, secs => 0.2)" \
    "$TAP SELECT bench.verify_ok('others', $SIDES, secs => 0.2)" \
    "$TAP SELECT bench.rehearse_ok('others', '$CHANGE', rate => 20)"
# What pg_cron would execute as whom scheduled it, here as the same role
entry 5 "SELECT bench.schedule('nightly', '0 0 1 1 *', 'others', transactions => 2)" \
    "DO \$\$ BEGIN EXECUTE (SELECT command FROM cron.job WHERE jobname ~ 'nightly' LIMIT 1); END \$\$" \
    "SELECT bench.wait($RUN)" "SELECT bench.unschedule('nightly')"
# Results that grow would make the last plants slow.
entry "SELECT bench.prune('0 s')"

#
# Every function that bench.help() lists is called by an entry.
#
missing=
for name in $(sql 'SELECT h FROM bench.help() AS h' | sed -nE 's/^  ([a-z_]+)  .*/\1/p'); do
    grep -qE "bench\.$name\(" <<<"${ENTRIES[*]}" || missing+=" $name"
done
is "$missing" '' 'each function of bench.help() is called by an entry'
ok 'which are many' [ "$(sql 'SELECT h FROM bench.help() AS h' | grep -cE '^  [a-z_]+  ')" -gt 70 ]

# What the application did that is captured: a parameter of a composite type with a domain.
application() {
    PGUSER=mallory psql -Xq >/dev/null 2>&1 <<<"SELECT 'SELECT (ROW (1, 2)::trap.pair).a FROM trap.mine WHERE id = 3'
        FROM generate_series(1, 20) \gexec" || true
}

cells=0
calls=0
# The entries of a plant, in one session. Errors are counted: a matrix of errors alone would show nothing.
matrix() { # CALLER PLANT
    local arguments=() place entry needs=${NEEDS[$2]}
    for place in "${!ENTRIES[@]}"; do
        entry=${ENTRIES[place]}
        if (((number + GROUPS_OF[place]) % EVERY[place] == 0)) || [[ -n $needs && $entry =~ $needs ]]; then
            arguments+=(-c "$entry")
        fi
    done
    cells=$((cells + ${#arguments[@]} / 2))
    PGUSER=$1 timeout 120 psql -XAtq "${arguments[@]}" >>"$work/out" 2>"$work/errors" </dev/null
    cat "$work/errors" >>"$work/all_errors"
}

# What nothing calls, and why.
declare -A UNREACHED=(
    ['nothing but her scripts']='they are not counted'
    ['triggers on tables of the extension']='it writes them with session_replication_role = replica'
    ['text search configuration']='a dictionary calls the functions of its template, which a superuser has made'
    ["foreign table in a table's place, as postgres"]='without a password only superusers may use the mapping'
)

number=0
for name in "${NAMES[@]}"; do
    # PLANT is a pattern of those that are to be tried, for whoever looks into one.
    [[ $name =~ ${PLANT:-} ]] || continue
    planted "$name" || continue
    mark
    application &
    # Bootstrap superuser and another one by turns
    began=${EPOCHREALTIME/[.,]/}
    matrix "$([ $((number % 2)) -eq 0 ] && echo postgres || echo boss)" "$name"
    number=$((number + 1))
    seen=$(calls plant)
    nothing_special "$name: nothing of hers was called with special rights ($seen calls)"
    diag "$name: $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) ms, $(grep -c ERROR "$work/errors") errors"
    if [ -n "${UNREACHED[$name]:-}" ]; then
        is "$seen" 0 "$name: nothing is called, for ${UNREACHED[$name]}"
    else
        ok "$name: it was called" [ "$seen" -gt 0 ]
    fi
    [[ $name != *parallel* ]] || ok "$name: by one" grep -qE 'parallel worker .*trap plant' <(since)
    calls=$((calls + seen))
    wait
    uproot "$name"
done
[ -n "${PLANT:-}" ] || ok 'her functions were called' [ "$calls" -gt 1000 ]
for name in "${!UNPLANTED[@]}"; do diag "not planted: $name: ${UNPLANTED[$name]}"; done
diag "$cells cells of ${#NAMES[@]} plants and ${#ENTRIES[@]} entries, $calls calls"
done_testing
