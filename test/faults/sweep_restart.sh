#!/usr/bin/env bash
# Variants that need a restart of the server: what a sweep waits for, what is in the file meanwhile, scripts/restarting
# through a killed server and a variant that does not start.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/sweep.sh
. test/lib/sweep.sh

faults_start
sql "ALTER SYSTEM SET max_connections = 90" >/dev/null
cluster_restart >/dev/null
server_file() { as_pg grep -v '^#' "$PGHOST/data/postgresql.auto.conf"; }
FILE=$(server_file)
of_sweep() { sql "SELECT $1 FROM bench.sweeps WHERE sweep_id = $SWEEP"; }
as_before() { # DESC
    is "$(server_file)" "$FILE" "$1: postgresql.auto.conf is as before"
    is "$(sql 'SELECT count(*) FROM bench_internal.sweep_log WHERE system_settings IS NOT NULL')" 0 \
        "$1: nothing is left to be put back"
}

#
# By hand
#
name='a sweep that needs restarts'
# The first variant is not the server's own.
ARGUMENTS="'pk_select', '{1}', secs => 0.2, seed => 1, variants => '{
    \"more\": {\"restart\": {\"max_connections\": 95, \"shared_buffers\": \"32MB\"}}, \"own\": {}}'"
for seed in {1..20}; do
    said=$(sql "SELECT bench.sweep(${ARGUMENTS/seed => 1/seed => $seed})" 2>&1)
    SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
    [ "$(of_sweep status)" = 'waiting for restart' ] && [ "$(of_sweep completed)" = 0 ] && break
    [ "$(of_sweep status)" != 'waiting for restart' ] || sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
done
like "$said" "NOTICE: .*sweep $SWEEP waits for a restart of the server, for variant \"more\"" "$name: a NOTICE says so"
like "$said" "pg_ctl restart -D '$PGHOST/data'; .*resume_sweep\\($SWEEP\\)" "$name: and what to do"
WAITS="concat_ws(E'\\n', waits_for -> 'set', waits_for -> 'own', waits_for ->> 'variant', waits_for -> 'pending')"
is "$(of_sweep "$WAITS")" \
    '{"shared_buffers": "32MB", "max_connections": "95"}
{"shared_buffers": null, "max_connections": "90"}
more
["max_connections", "shared_buffers"]' "$name: bench.sweeps says what is set, and what it was"
is "$(server_file)" "max_connections = '95'
shared_buffers = '32MB'" "$name: it is in the file"
is "$(sql "SELECT bench.wait_sweep($SWEEP)")" 'waiting for restart' "$name: bench.wait_sweep does not wait for it"
sql 'CREATE ROLE stats LOGIN IN ROLE pg_read_all_stats' >/dev/null
is "$(PGUSER=stats sql "SELECT status, waits_for IS NULL FROM bench.sweeps WHERE sweep_id = $SWEEP")" \
    'waiting for restart|t' "$name: who may not read all settings is not told them"
# Other sweeps leave it in place.
OTHER=$(sql 'SET client_min_messages = error' \
    "SELECT bench.sweep('pk_select', '{1}', secs => 0.1, variants => '{\"x\": {\"system\": {\"commit_delay\": 10}}}')")
is "$(sql "SELECT status FROM bench.sweeps WHERE sweep_id = $OTHER")" completed \
    "$name: another sweep sets server parameters meanwhile"
is "$(server_file)" "max_connections = '95'
shared_buffers = '32MB'" "$name: and leaves it in the file"
sql "SELECT bench.resume_sweep($SWEEP)" >/dev/null
sweep_is 'waiting for restart' "$name, resumed without a restart"
cluster_restart >/dev/null
sql "SELECT bench.resume_sweep($SWEEP)" >/dev/null
sweep_is 'waiting for restart' "$name, restarted: its next variant is the server's own"
is "$(server_file)" "$FILE" "$name, restarted: postgresql.auto.conf is as before"
is "$(in_sweep "string_agg(variant || ' ' || coalesce(status, 'missing'), ', ' ORDER BY place)")" \
    'more completed, own missing' "$name, restarted: the first run is made"
is "$(sql "SELECT system FROM bench.runs JOIN bench.sweep_runs s USING (run_id) WHERE s.sweep_id = $SWEEP")" \
    '{"shared_buffers": "32MB", "max_connections": 95}' "$name, restarted: the run says what the server had"
is "$(sql "SELECT string_agg(v ->> 'setting', ' ' ORDER BY v ->> 'name')
    FROM bench.runs JOIN bench.sweep_runs s USING (run_id), jsonb_array_elements(environment -> 'server_settings') AS v
    WHERE s.sweep_id = $SWEEP AND v ->> 'name' IN ('max_connections', 'shared_buffers')")" '95 32MB' \
    "$name, restarted: and had it"
cluster_restart >/dev/null
sql "SELECT bench.resume_sweep($SWEEP)" >/dev/null
sweep_is completed "$name, restarted twice"
as_before "$name, restarted twice"
is "$(sql 'SHOW max_connections')" 90 "$name, restarted twice: the server has its own"
like "$(sql "SELECT bench.resume_sweep($SWEEP, 'x')" 2>&1)" 'is completed' "$name: it is over"

name='a sweep that waits, stopped'
for seed in {1..20}; do
    SWEEP=$(sql "SELECT bench.start_sweep(${ARGUMENTS/seed => 1/seed => $seed})")
    sql "SELECT bench.wait_sweep($SWEEP)" >/dev/null
    [ "$(of_sweep completed)" != 0 ] || break
    sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
done
sweep_is 'waiting for restart' "$name"
like "$(PGUSER=stats sql "SELECT bench.stop_sweep($SWEEP)" 2>&1)" 'belongs to role' "$name: not by anybody"
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name: bench.stop_sweep"
is "$(of_sweep "concat_ws(' ', status, waits_for IS NULL)")" 'canceled t' "$name: its status"
as_before "$name"
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" f "$name: there is nothing to stop any more"
like "$(sql "SELECT bench.resume_sweep($SWEEP, 'x')" 2>&1)" 'does not wait for a restart' \
    "$name: it did not fail to start"

name='a command line that takes precedence'
sql "SELECT bench.resume_sweep($SWEEP)" >/dev/null
sweep_is 'waiting for restart' "$name"
cluster_stop && as_pg pg_ctl -D "$PGHOST/data" -l "$PGHOST/log" -o '-c shared_buffers=64MB' -s -w start </dev/null
sql "SELECT bench.resume_sweep($SWEEP)" >/dev/null
sql "SELECT bench.wait_sweep($SWEEP)" >/dev/null
like "$(in_sweep "error || ''")" 'restarted server does not have "shared_buffers" as the variant wants it' \
    "$name: the run says so"
[ "$(of_sweep status)" != 'waiting for restart' ] || sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
as_before "$name"
cluster_restart >/dev/null

name='a copy of a database with a sweep that waits'
sql "SELECT bench.resume_sweep($SWEEP)" >/dev/null
sweep_is 'waiting for restart' "$name"
WAITING=$(server_file)
sql 'CREATE DATABASE restored' >/dev/null
pg_dump | PGDATABASE=restored psql -XAtq -v ON_ERROR_STOP=1 -o /dev/null
PGDATABASE=template1 sql 'CREATE DATABASE copied TEMPLATE postgres' >/dev/null
for copy in restored copied; do
    is "$(PGDATABASE=$copy sql "SELECT bench.stop_sweep($SWEEP)")" t "$name, $copy: bench.stop_sweep"
    is "$(PGDATABASE=$copy of_sweep "concat_ws(' ', status, waits_for IS NULL)")" 'canceled t' \
        "$name, $copy: its status"
    is "$(server_file)" "$WAITING" "$name, $copy: postgresql.auto.conf has what the original waits for"
    ok "$name, $copy: DROP EXTENSION" env PGDATABASE=$copy psql -Xqc 'DROP EXTENSION pgbench_ext'
done
PGDATABASE=template1 sql 'DROP DATABASE restored' 'DROP DATABASE copied' >/dev/null
is "$(of_sweep status)" 'waiting for restart' "$name: the original still waits"

name='DROP EXTENSION while a sweep waits'
for statement in 'DROP EXTENSION pgbench_ext' \
    "DO \$\$BEGIN EXECUTE 'DROP EXT' || 'ENSION pgbench_' || 'ext CASCADE'; END\$\$"; do
    like "$(psql_verbose "$statement")" \
        "55006: sweep $SWEEP waits for a restart.*HINT: +Stop it first: SELECT bench.stop_sweep\\($SWEEP\\)" \
        "$name is refused: ${statement%% *}"
done
is "$(server_file)" "$WAITING" "$name: it still waits"
like "$(PGUSER=stats psql_verbose 'DROP EXTENSION pgbench_ext')" '42501: must be owner' "$name: not by anybody"
sql 'CREATE EXTENSION pg_stat_statements' >/dev/null
ok "$name: another extension can be dropped" psql -Xqc 'DROP EXTENSION pg_stat_statements'

name="an administrator's ALTER SYSTEM while a sweep waits"
sql 'ALTER SYSTEM SET max_connections = 99' >/dev/null
is "$(sql "SELECT bench.stop_sweep($SWEEP)")" t "$name: bench.stop_sweep"
is "$(server_file)" "max_connections = '99'" "$name: is kept, the rest is put back"
sql 'ALTER SYSTEM SET max_connections = 90' >/dev/null
as_before "$name"

#
# By the script
#
name='scripts/restarting'
SWEEP=$(sql "SELECT bench.start_sweep('pk_select', '{1}', secs => 3, variants => '{
    \"8MB\": {\"restart\": {\"shared_buffers\": \"8MB\"}}, \"16MB\": {\"restart\": {\"shared_buffers\": \"16MB\"}},
    \"32MB\": {\"restart\": {\"shared_buffers\": \"32MB\"}},
    \"none\": {\"restart\": {\"shared_preload_libraries\": \"nosuchlibrary\"}}}')")
as_pg bash -s "$SWEEP" <scripts/restarting >"$work/restarting" 2>&1 &
script=$!
# In the middle of a run, the whole server.
eventually 60 "SELECT count(*) FILTER (WHERE status = 'completed') = 1
        AND count(*) FILTER (WHERE status = 'running') = 1
    FROM bench.sweep_runs WHERE sweep_id = $SWEEP" 2>/dev/null
postmaster=$(as_pg head -n 1 "$PGHOST/data/postmaster.pid")
as_pg kill -9 "$postmaster"
wait "$script"
is $? 1 "$name: a variant has failed"
OUT=$(<"$work/restarting")
like "$OUT" 'restart with 8MB: shared_buffers = 8MB' "$name: says what it sets"
like "$OUT" 'did not start: .*could not access file "nosuchlibrary"' "$name: says why a variant does not start"
like "$OUT" "sweep $SWEEP is incomplete\$" "$name: says how it ended"
is "$(in_sweep "string_agg(variant || ' ' || coalesce(status, 'missing'), ', ' ORDER BY variant)")" \
    '16MB completed, 32MB completed, 8MB completed, none missing' "$name: all runs but those of that variant are made"
like "$(in_sweep "string_agg(error, '')")" 'does not start with variant "none": .*could not access file' \
    "$name: and those say why not"
is "$(sql "SELECT string_agg(s.variant || ' ' || (v ->> 'setting'), ', ' ORDER BY s.variant)
    FROM bench.runs JOIN bench.sweep_runs s USING (run_id), jsonb_array_elements(environment -> 'server_settings') AS v
    WHERE s.sweep_id = $SWEEP AND v ->> 'name' = 'shared_buffers'")" '16MB 16MB, 32MB 32MB, 8MB 8MB' \
    "$name: each had its own"
as_before "$name"
is "$(sql 'SHOW shared_buffers' "SELECT count(*) FROM pg_settings WHERE pending_restart")" $'256MB\n0' \
    "$name: the server has its own settings in the end"
if [ "$(id -u)" -eq 0 ]; then
    # The owner of a data directory links the file to one of root's, and to one that it may read itself.
    linked=$work/linked
    mkdir "$linked" && chown "$CLUSTER_USER" "$linked" && chmod 711 "$work"
    echo 'max_connections = 1' >"$work/private" && chmod 600 "$work/private"
    printf 'max_connections = 1\nwork_mem = 1MB\n' >"$work/public" && chmod 644 "$work/public"
    sed -n '/^put_back() {/,/^}/p' scripts/restarting >"$work/put_back"
    put_back_in() { # FILE
        ln -sf "$work/$1" "$linked/postgresql.auto.conf"
        (cd / && PGDATA=$linked auto_conf=$linked/postgresql.auto.conf bash -c \
            '. "$0"; put_back max_connections "max_connections = 2"' "$work/put_back") >/dev/null 2>&1
    }
    ok "$name: as root, refuses a link that the owner may not read" eval '! put_back_in private'
    ok "$name: as root, replaces a link that the owner may read" put_back_in public
    is "$(cat "$work/private" "$work/public")" $'max_connections = 1\nmax_connections = 1\nwork_mem = 1MB' \
        "$name: and writes nothing where it leads"
    is "$(cat "$linked"/postgresql.auto.conf*)" $'work_mem = 1MB\nmax_connections = 2' "$name: but a file in its place"
else
    skip 'this is not root' "$name: as root, writes nothing where a link leads"
fi
like "$(as_pg bash -s 1000 <scripts/restarting 2>&1)" 'restarting: sweep 1000 does not exist' "$name: of no sweep"

nothing_left 'the end'
done_testing
