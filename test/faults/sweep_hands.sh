#!/usr/bin/env bash
# Whose sessions execute what a superuser's sweep changes in the database: nothing that other roles have made runs there
# with special rights.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/sweep.sh
. test/lib/sweep.sh

faults_start
sql "ALTER SYSTEM SET pgbench_ext.client_role = 'bench_client'" 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT current_setting('pgbench_ext.client_role') = 'bench_client'"

# Whatever of hers is executed tries this, and writes down as whom.
sql 'CREATE ROLE mallory LOGIN' 'CREATE SCHEMA mallory AUTHORIZATION mallory'
PGUSER=mallory sql 'GRANT USAGE ON SCHEMA mallory TO PUBLIC' 'CREATE TABLE mallory.bait (i int)' \
    'CREATE TABLE mallory.seen (as_session name, as_current name, became boolean)' \
    'GRANT ALL ON ALL TABLES IN SCHEMA mallory TO PUBLIC' \
    "CREATE FUNCTION mallory.spring() RETURNS trigger LANGUAGE plpgsql AS \$\$
DECLARE
    became boolean := false;
BEGIN
    BEGIN
        EXECUTE 'ALTER ROLE mallory SUPERUSER';
        became := true;
    EXCEPTION WHEN insufficient_privilege THEN
    END;
    INSERT INTO mallory.seen VALUES (session_user, current_user, became);
    RETURN NULL;
END \$\$" \
    'CREATE TRIGGER spring AFTER INSERT OR DELETE ON mallory.bait EXECUTE FUNCTION mallory.spring()'
seen() { sql "SELECT DISTINCT as_session, as_current, became FROM mallory.seen ORDER BY 1, 2" 'TRUNCATE mallory.seen'; }
she_is_no_superuser() {
    is "$(sql "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")" f "$1: she has not become a superuser"
}
sql "SELECT bench.create_workload('idle', 'SELECT 1;')" >/dev/null
status() { sql "SELECT status FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1"; }

name="a table with another role's trigger"
TRAPPED='{"v": {"sql": {"apply": "INSERT INTO mallory.bait VALUES (1)", "revert": "DELETE FROM mallory.bait"}}}'
try "SELECT bench.sweep('idle', '{1}', secs => 0.2, variants => '$TRAPPED')"
is "$(status)" completed "$name: the sweep completes"
is "$(seen)" 'bench_owner|bench_owner|f' "$name: a session without special rights applies and reverts"
she_is_no_superuser "$name"

name='the same, reverted when the leader is terminated'
begin "'idle', '{1}', secs => 60, variants => '$TRAPPED'" 0
terminate sweep
sweep_is canceled "$name"
is "$(seen)" 'bench_owner|bench_owner|f' "$name: by the same role"

name='the same, reverted by a sweep that is resumed after a crash'
begin "'idle', '{1}', secs => 60, variants => '$TRAPPED'" 0
kill_client
eventually 30 "SELECT status = 'crashed' FROM bench.sweeps WHERE sweep_id = $SWEEP"
sql 'TRUNCATE mallory.seen' "SELECT bench.resume_sweep($SWEEP)" >/dev/null
eventually 20 'SELECT count(*) >= 2 FROM mallory.seen'
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
is "$(seen)" 'bench_owner|bench_owner|f' "$name: by the same role"
she_is_no_superuser "$name"
remember_server

name='a table of a role without special rights'
try "SELECT bench.sweep('idle', '{1}', secs => 0.2, run_as => 'mallory', variants => '$TRAPPED')"
is "$(status)" completed "$name: the sweep completes"
is "$(seen)" 'mallory|mallory|f' "$name: run_as names whose session it is"

name='a fixture that a superuser has loaded'
sql "SELECT bench.unload('pk')" "SELECT bench.load('pk', 1000)" 'ALTER SCHEMA bench_data OWNER TO bench_owner' \
    'ALTER TABLE bench_data.pk OWNER TO bench_owner' 'CREATE TABLE executed (role name)' \
    'GRANT INSERT ON executed TO PUBLIC' >/dev/null
try "SELECT bench.sweep('pk_select', '{1,2}', secs => 0.2, before => 'vacuum,checkpoint', variants => '{
    \"with\": {\"sql\": {
        \"apply\": [\"INSERT INTO executed SELECT session_user\", \"CREATE INDEX hands_i ON bench_data.pk (crt_time)\"],
        \"revert\": \"DROP INDEX bench_data.hands_i\"}},
    \"without\": {}}')"
is "$(status)" completed "$name: the sweep completes"
is "$(sql 'SELECT DISTINCT role FROM executed')" bench_owner "$name: its owner applies"
is "$(sql "SELECT string_agg(DISTINCT made::text, ' ') FROM bench.sweep_changes WHERE variant = 'with'")" \
    '{bench_data.hands_i}' "$name: what was made is said"
is "$(sql "SELECT count(*) FROM pg_class WHERE relname = 'hands_i'")" 0 "$name: and undone"
try "SELECT string_agg(index || ': ' || coalesce(error, 'measured'), ' ')
    FROM bench.index_worth('pk_update', secs => 0.2)"
like "$OUT" 'bench_data.pk_pkey: measured' "$name: bench.index_worth copies it"
is "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\\_copy%'")" 0 "$name: no copy is left"

name="a superuser's own table"
sql 'CREATE TABLE own AS SELECT i AS id, i AS a FROM generate_series(1, 100) AS i' 'CREATE INDEX own_a ON own (a)' \
    'GRANT SELECT ON own TO bench_client' \
    "SELECT bench.create_workload('owns', 'SELECT count(*) FROM own WHERE a = 1;')" >/dev/null
WORTH="SELECT index || ': ' || coalesce(error, 'measured') FROM bench.index_worth('owns', 'own_a', secs => 0.2)"
try "$WORTH"
like "$OUT" \
    'ERROR:  42501: permission denied to copy table public.own.*by role "bench_owner", for its owner "postgres"' \
    "$name: bench.index_worth refuses it"
like "$OUT" "HINT:  GRANT SELECT ON public.own TO bench_owner. Or pass run_as => 'postgres'" \
    "$name: and says what to do"
sql 'GRANT SELECT ON own TO bench_owner'
try "$WORTH"
like "$OUT" 'public.own_a: measured' "$name: which is enough"

name='a role with special rights'
sql 'CREATE ROLE creator LOGIN CREATEROLE' "SELECT bench.allow('creator')" >/dev/null
PGUSER=creator sql "SELECT bench.create_workload('creators', 'SELECT 1;')" >/dev/null
PGUSER=creator try "SELECT bench.sweep('creators', '{1}', secs => 0.2, variants => '$TRAPPED')"
like "$OUT" 'ERROR:  42501: sessions of role "creator" would have special rights.*HINT:  .*run_as' \
    "$name: has no statements executed as itself"
is "$(seen)" '' "$name: nothing was executed"

name='run_as with special rights'
try "SELECT bench.sweep('idle', '{1}', secs => 0.2, run_as => 'postgres', variants => '{\"v\": {\"sql\": {
    \"apply\": \"INSERT INTO executed SELECT session_user\", \"revert\": []}}}')"
is "$(sql "SELECT count(*) FROM executed WHERE role = 'postgres'")" 1 "$name: where the call names it"
SWEEP=$(sql "SELECT bench.start_sweep('idle', '{1}', secs => 60, run_as => 'postgres')")
sql "SELECT bench.stop_sweep($SWEEP)" >/dev/null
try "SELECT bench.resume_sweep($SWEEP)"
like "$OUT" 'ERROR:  42501: stored run_as names role "postgres".*HINT:  Start the sweep anew' \
    "$name: not from a stored sweep"
try "SELECT bench.schedule('stored', '* * * * *', 'idle', run_as => 'postgres')"
like "$OUT" 'ERROR:  42501: stored run_as names role "postgres".*HINT:  Name a role' "$name: nor from a job"

log_is_clean_but_for_kills
done_testing
