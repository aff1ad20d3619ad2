#!/usr/bin/env bash
# Whatever a role without special rights plants, and whatever is then called, by whomever: its functions are never
# called in a session that could come by special rights. A matrix of plants, entries and callers (SECURITY.md).
#
# Each planted function notes who calls it, takes back every change of the session's role that there may have been, and
# tries to make its owner a superuser.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start "shared_preload_libraries = 'pg_stat_statements'" "pgbench_ext.client_role = 'bench_client'" \
    'max_prepared_transactions = 0'
export PGOPTIONS='-c client_min_messages=error'
sql 'CREATE ROLE mallory LOGIN' 'CREATE ROLE plain LOGIN' 'CREATE ROLE boss SUPERUSER LOGIN' \
    'CREATE ROLE maker CREATEROLE LOGIN' \
    'CREATE ROLE admins SUPERUSER' 'CREATE ROLE member LOGIN NOINHERIT' 'GRANT admins TO member' \
    'CREATE DATABASE hers OWNER mallory'
export PGDATABASE=hers
sql 'CREATE EXTENSION pgbench_ext' 'CREATE EXTENSION pg_stat_statements' 'CREATE EXTENSION refint' \
    "SELECT bench.allow(r, 'run', 'capture') FROM unnest('{mallory,plain,maker,member}'::name[]) AS r" \
    "SELECT bench.load('pk', 1000)" "SELECT bench.load('log', 0)" >/dev/null

sql 'SET ROLE mallory' 'CREATE SCHEMA trap' 'GRANT USAGE, CREATE ON SCHEMA trap TO PUBLIC' \
    'CREATE TABLE trap.seen (called_as text, is_special boolean)' 'GRANT ALL ON trap.seen TO PUBLIC' \
    "CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS \$\$
DECLARE
    called_as text := format('%s, %s', session_user, current_user);
    special boolean;
BEGIN
    BEGIN
        RESET ROLE;
    EXCEPTION WHEN OTHERS THEN
    END;
    BEGIN
        RESET SESSION AUTHORIZATION;
    EXCEPTION WHEN OTHERS THEN
    END;
    SELECT bool_or(r.rolsuper OR r.rolcreaterole) INTO special FROM pg_roles r
    WHERE r.rolname IN (session_user, current_user) OR pg_has_role(current_user, r.oid, 'MEMBER');
    BEGIN
        EXECUTE 'ALTER ROLE mallory SUPERUSER';
    EXCEPTION WHEN OTHERS THEN
    END;
    BEGIN
        INSERT INTO trap.seen VALUES (called_as, special);
    EXCEPTION WHEN OTHERS THEN -- in a read-only transaction, the log has it
    END;
    RAISE LOG 'trap: % special: %', called_as, special;
    RETURN true;
END \$\$" \
    'CREATE FUNCTION trap.on_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM trap.spring(); RETURN coalesce(NEW, OLD); END $$' \
    'CREATE FUNCTION trap.of_int(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
        PERFORM trap.spring(); RETURN $1; END $$'

# Hers, and open to everybody: what superusers' statements meet when they use tables of others.
sql 'SET ROLE mallory' 'CREATE DOMAIN trap.checked AS int' \
    'CREATE TYPE trap.pair AS (a trap.checked, b int)' \
    'CREATE TABLE trap.mine (id int PRIMARY KEY, v int, p trap.pair)' 'GRANT ALL ON trap.mine TO PUBLIC' \
    'INSERT INTO trap.mine SELECT g, g, ROW (g::trap.checked, g)::trap.pair FROM generate_series(1, 500) g' \
    'CREATE VIEW trap.sight AS SELECT id, trap.of_int(id) AS v FROM trap.mine' 'GRANT SELECT ON trap.sight TO PUBLIC'
sql 'GRANT TRIGGER ON bench.workloads, bench.samples, bench_internal.run_log TO mallory' \
    'GRANT USAGE ON SCHEMA bench_data, bench_internal TO mallory' \
    "SELECT bench.create_workload('fed', 'SELECT :id + :v;')" \
    "SELECT bench.add_feeder('fed', 'SELECT id, v FROM trap.sight')" \
    "SELECT bench.create_workload('others', 'UPDATE trap.mine SET v = v + 1 WHERE id = 7;')" >/dev/null

# plant NAME: what she does, and what she takes back.
declare -A PLANTS=() UPROOTS=()
plant() { PLANTS[$1]=$2 UPROOTS[$1]=$3; }
plant 'operator in public' \
    'CREATE FUNCTION public.times(numeric, integer) RETURNS numeric LANGUAGE sql AS $$ SELECT $1 FROM trap.spring() $$;
     CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.times);
     CREATE FUNCTION public.plus(integer, bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT $2 FROM trap.spring() $$;
     CREATE OPERATOR public.+ (LEFTARG = integer, RIGHTARG = bigint, FUNCTION = public.plus)' \
    'DROP OPERATOR public.* (numeric, integer); DROP OPERATOR public.+ (integer, bigint);
     DROP FUNCTION public.times, public.plus'
fires='EXECUTE FUNCTION trap.on_event()'
for when in BEFORE AFTER; do
    plant "row trigger, $when" \
        "CREATE TRIGGER t $when INSERT OR UPDATE OR DELETE ON bench_data.pk FOR EACH ROW $fires;
         CREATE TRIGGER t $when INSERT OR UPDATE OR DELETE ON bench_data.log FOR EACH ROW $fires;
         CREATE TRIGGER t $when INSERT OR UPDATE OR DELETE ON trap.mine FOR EACH ROW $fires" \
        ''
    plant "statement trigger, $when" \
        "CREATE TRIGGER t $when INSERT OR UPDATE OR DELETE OR TRUNCATE ON bench_data.pk $fires;
         CREATE TRIGGER t $when INSERT OR UPDATE OR DELETE OR TRUNCATE ON bench_data.log $fires" \
        ''
done
plant 'WHEN of a trigger of the server' \
    'CREATE TRIGGER t BEFORE UPDATE ON bench_data.pk FOR EACH ROW WHEN (trap.of_int(1) = 1)
         EXECUTE FUNCTION suppress_redundant_updates_trigger()' ''
plant 'arguments of a trigger function of a superuser' \
    "CREATE TRIGGER t BEFORE INSERT OR UPDATE ON bench_data.pk FOR EACH ROW
         EXECUTE FUNCTION check_primary_key('id', 'trap.sight', 'id')" ''
plant 'deferred trigger' \
    'CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON bench_data.pk DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION trap.on_event()' ''
plant 'foreign key from a table with triggers' \
    'CREATE TABLE trap.child (id int REFERENCES bench_data.pk (id) ON UPDATE CASCADE);
     CREATE TRIGGER t BEFORE UPDATE ON trap.child EXECUTE FUNCTION trap.on_event()' 'DROP TABLE trap.child'
plant 'triggers on tables of the extension' \
    "CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON bench.workloads FOR EACH ROW $fires;
     CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON bench.samples $fires;
     CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON bench_internal.run_log FOR EACH ROW
         WHEN (trap.of_int(1) = 1) EXECUTE FUNCTION suppress_redundant_updates_trigger()" ''
plant 'domain checked in a composite type' \
    'ALTER DOMAIN trap.checked ADD CONSTRAINT c CHECK (trap.of_int(VALUE) > 0) NOT VALID' \
    'ALTER DOMAIN trap.checked DROP CONSTRAINT c'
plant 'index expression and predicate' \
    'CREATE INDEX i ON trap.mine (trap.of_int(id)) WHERE trap.of_int(v) > 0' 'DROP INDEX trap.i'
plant 'extended statistics' 'CREATE STATISTICS trap.s ON (trap.of_int(id)), v FROM trap.mine' 'DROP STATISTICS trap.s'
plant 'default and generated column' \
    'ALTER TABLE trap.mine ADD g int GENERATED ALWAYS AS (trap.of_int(v)) STORED, ADD d int DEFAULT trap.of_int(1)' \
    'ALTER TABLE trap.mine DROP g, DROP d'
plant 'constraint' \
    'ALTER TABLE trap.mine ADD CONSTRAINT c CHECK (trap.of_int(v) > 0)' 'ALTER TABLE trap.mine DROP CONSTRAINT c'
plant 'row level security' \
    'ALTER TABLE trap.mine ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON trap.mine USING (trap.of_int(id) > 0)' \
    'ALTER TABLE trap.mine DISABLE ROW LEVEL SECURITY; DROP POLICY p ON trap.mine'
plant 'rule' \
    'CREATE RULE r AS ON UPDATE TO trap.mine DO ALSO SELECT trap.spring()' 'DROP RULE r ON trap.mine'
plant 'cast to json' \
    'CREATE FUNCTION trap.as_json(trap.pair) RETURNS json LANGUAGE sql AS $$ SELECT to_json(trap.spring()) $$;
     CREATE CAST (trap.pair AS json) WITH FUNCTION trap.as_json(trap.pair)' \
    'DROP CAST (trap.pair AS json); DROP FUNCTION trap.as_json'
plant 'search_path of the database' \
    'CREATE FUNCTION trap.random(int, int) RETURNS int LANGUAGE sql AS $$ SELECT 1 FROM trap.spring() $$;
     CREATE FUNCTION trap.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT $1 FROM trap.spring() $$;
     ALTER DATABASE hers SET search_path = trap, pg_catalog, public' \
    'ALTER DATABASE hers RESET search_path; DROP FUNCTION trap.random, trap.format'

# What is called. Each is one statement; errors are no concern of this test.
ENTRIES=(
    "SELECT bench.run('pk_update', transactions => 3)"
    "SELECT bench.run('pk_update', transactions => 3, query_mode => 'simple')"
    "SELECT bench.run('pk_insert', transactions => 3, before => 'truncate,vacuum')"
    "SELECT bench.run('others', transactions => 3)"
    "SELECT bench.run(script => 'INSERT INTO trap.mine (id, v, p)
        SELECT max(id) + 1, 1, p FROM trap.mine WHERE id < 3 GROUP BY p LIMIT 1', transactions => 2)"
    "SELECT bench.run('fed', transactions => 2)"
    "SELECT count(*) FROM bench.preview(NULL, workload => 'fed')"
    "SELECT bench.wait(bench.start('orders_functions@1, orders@1', transactions => 20))"
    "SELECT bench.run('pk_update', driver => 'wire', transactions => 3)"
    "SELECT bench.duel('pk_update', '{}', '{\"settings\": {\"work_mem\": \"8MB\"}}', secs => 0.5)"
    "SELECT bench.sweep('pk_update', '{1}', secs => 0.1, before => 'vacuum,prewarm', variants =>
        '{\"a\": {\"sql\": {\"apply\": \"UPDATE trap.mine SET v = 1\", \"revert\": \"UPDATE trap.mine SET v = 2\"}}}')"
    "SELECT count(*) FROM bench.index_worth('others', secs => 0.3)"
    "SELECT count(*) FROM bench.check('pk')"
    "SELECT bench.create_fixture('copies', 'CREATE TABLE copies (LIKE trap.mine INCLUDING ALL)',
        'SELECT i, i, NULL::trap.pair FROM generate_series(\$1, \$2) AS i')"
    "SELECT bench.load('copies', 10)"
    "SELECT bench.load('pk', 1000)"
    "SELECT count(*) FROM bench.capture('seen', secs => 0.5)"
    "SELECT bench.drop_capture('seen')"
    "SELECT count(*) FROM bench.summary"
    "SELECT length(bench.report(max(run_id), 'html')) FROM bench.runs"
    "SELECT jsonb_array_length(jsonb_build_array(bench.export(array_agg(run_id)))) FROM bench.runs"
    "SELECT bench.delete_run(max(run_id)) FROM bench.runs"
)

# What the application did that is captured: a parameter of a composite type with a domain.
application() {
    PGUSER=mallory psql -Xq >/dev/null 2>&1 <<<"SELECT 'SELECT (ROW (1, 2)::trap.pair).a FROM trap.mine WHERE id = 3'
        FROM generate_series(1, 20) \gexec" || true
}

called=0
calls=0
matrix() { # CALLER PLANT
    local arguments=() entry
    for entry in "${ENTRIES[@]}"; do arguments+=(-c "$entry"); done
    called=$((called + ${#ENTRIES[@]}))
    PGUSER=$1 timeout 120 psql -XAtq "${arguments[@]}" >>"$work/out" 2>&1 </dev/null
}

for name in "${!PLANTS[@]}"; do
    # A load makes new tables.
    sql 'TRUNCATE trap.seen' 'GRANT TRIGGER, REFERENCES ON bench_data.pk, bench_data.log TO mallory' >/dev/null
    if ! as=$(PGUSER=mallory psql -Xq -v ON_ERROR_STOP=1 -c "${PLANTS[$name]}" 2>&1); then
        tap_fail "$name: planted" "$as"
        continue
    fi
    application &
    # Bootstrap superuser and another one by turns; all others for the plants that each of them meets.
    matrix "$([ $((called % 2)) -eq 0 ] && echo postgres || echo boss)" "$name"
    wait $!
    seen=$(sql 'SELECT count(*) FROM trap.seen')
    is "$(sql "SELECT string_agg(DISTINCT called_as, '; ') FROM trap.seen WHERE is_special" \
        "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")" $'\nf' \
        "$name: nothing of hers was called with special rights ($seen calls)"
    calls=$((calls + seen))
    sql 'ALTER ROLE mallory NOSUPERUSER' >/dev/null
    PGUSER=mallory psql -Xq -c "DO \$\$ DECLARE t record; BEGIN
        FOR t IN SELECT tgname, tgrelid::regclass AS r FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid
            WHERE tgname = 't' LOOP
            BEGIN EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.r); EXCEPTION WHEN OTHERS THEN END;
        END LOOP; END \$\$" >/dev/null 2>&1
    sql "DO \$\$ DECLARE t record; BEGIN
        FOR t IN SELECT tgrelid::regclass AS r FROM pg_trigger WHERE tgname = 't' LOOP
            EXECUTE format('DROP TRIGGER t ON %s', t.r);
        END LOOP; END \$\$" >/dev/null
    [ -z "${UPROOTS[$name]}" ] || PGUSER=mallory psql -Xq -c "${UPROOTS[$name]}" >/dev/null 2>&1
done
ok 'her functions were called' [ "$calls" -gt 1000 ]
is "$(grep -c 'trap: .* special: t' "$PGHOST/log")" 0 'nor in read-only transactions'

# The callers who have special rights without being superusers have to name a role.
for caller in maker member; do
    for entry in "SELECT bench.run('pk_update', transactions => 1)" \
        "SELECT bench.load('pk', 10, options => '{\"schema\": \"x\"}')"; do
        OUT=$(PGUSER=$caller psql -XAtq -v VERBOSITY=verbose -c "$entry" 2>&1)
        like "$OUT" '42501' "$caller: refused"
    done
done
diag "$((${#PLANTS[@]} * ${#ENTRIES[@]})) cells of ${#PLANTS[@]} plants and ${#ENTRIES[@]} entries"

# The extension's own role, changed by what it executes
sql 'SET ROLE mallory' "CREATE OR REPLACE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS \$\$ BEGIN
    EXECUTE format('ALTER ROLE %I SET search_path = trap', current_user);
    RETURN true;
END \$\$" 'CREATE TRIGGER t BEFORE UPDATE ON trap.mine FOR EACH ROW EXECUTE FUNCTION trap.on_event()'
try "SELECT bench.run('others', transactions => 1)"
try "SELECT bench.run('pk_select', transactions => 1)"
like "$OUT" '55000.*changed.*Role bench_client has settings' 'bench_client that has changed itself is refused'
sql 'ALTER ROLE bench_client RESET ALL' >/dev/null
OUT=$(PGOPTIONS='' psql -XAtq -c "SELECT bench.run('pk_select', transactions => 1)" 2>&1)
like "$OUT" 'sessions of role "bench_client"' 'and taken again when that is taken back'
for spoil in 'CREATEDB' 'PASSWORD '"'x'"; do
    sql "ALTER ROLE bench_client $spoil" >/dev/null
    try "SELECT bench.run('pk_select', transactions => 1)"
    like "$OUT" '55000' "bench_client with $spoil is refused"
    sql 'ALTER ROLE bench_client NOCREATEDB PASSWORD NULL' >/dev/null
done
sql 'GRANT bench_client TO plain' >/dev/null
try "SELECT bench.run('pk_select', transactions => 1)"
like "$OUT" '55000.*has members' 'bench_client with members is refused'
sql 'REVOKE bench_client FROM plain' >/dev/null
OUT=$(PGOPTIONS='' sql "SELECT bench.run(script => 'SELECT count(*) FROM bench.check(''pk'')', transactions => 1)" 2>&1)
like "$OUT" 'permission denied to call functions of pgbench_ext as role "bench_client"' \
    'bench_client calls no function of the extension'
done_testing
