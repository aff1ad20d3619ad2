#!/usr/bin/env bash
# What was captured runs in sessions of the role that executed it, with that role's rights and settings and no
# others; and
# what a role with special rights executes, by a capture, touches nothing of others'. Eve tries to have her code run
# by the
# role of whoever captures, runs a capture or reads a log: each time that it runs, it says as whom in the server's
# log.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start "shared_preload_libraries = 'pg_stat_statements'" 'pg_stat_statements.save = off'
as() { local role=$1; shift; PGUSER=$role sql "$@"; }
sql 'CREATE EXTENSION pg_stat_statements' 'CREATE ROLE eve LOGIN' 'CREATE ROLE app LOGIN' 'CREATE ROLE dba LOGIN' \
    'CREATE ROLE reader LOGIN IN ROLE pg_read_all_stats, pg_read_server_files' 'CREATE ROLE stranger LOGIN' \
    'GRANT app TO dba' \
    "GRANT CREATE ON DATABASE $PGDATABASE TO eve, app" 'GRANT pg_read_all_stats TO dba' \
    'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO dba, reader, app, eve' \
    "ALTER ROLE app SET search_path = shop, public" 'CREATE TABLE public.own (id int PRIMARY KEY, v text)' \
    "INSERT INTO public.own SELECT g, 'v' || g FROM generate_series(1, 1000) g" 'ANALYZE public.own' \
    'GRANT SELECT ON public.own TO app, reader' >/dev/null
as eve 'CREATE SCHEMA eve' 'GRANT USAGE ON SCHEMA eve TO PUBLIC' 'CREATE TABLE eve.t (id int PRIMARY KEY, v text)' \
    "INSERT INTO eve.t SELECT g, 'v' || g FROM generate_series(1, 100) g" 'GRANT SELECT ON eve.t TO PUBLIC' \
    "CREATE FUNCTION eve.spring(text) RETURNS text LANGUAGE plpgsql STABLE AS
        'BEGIN RAISE LOG ''sprung as %'', current_user; RETURN \$1; END'" \
    "CREATE VIEW eve.trap AS SELECT id, eve.spring(v) AS v FROM eve.t" 'GRANT SELECT ON eve.trap TO PUBLIC'
reset() { sql 'SELECT pg_stat_statements_reset()' >/dev/null; }
# Puts the view in the table's place, and back.
swap() { as eve 'BEGIN' 'ALTER TABLE eve.t RENAME TO t0' 'ALTER VIEW eve.trap RENAME TO t' 'COMMIT' >/dev/null; }
swap_back() { as eve 'BEGIN' 'ALTER VIEW eve.t RENAME TO trap' 'ALTER TABLE eve.t0 RENAME TO t' 'COMMIT' >/dev/null; }
not_sprung() { # ROLE DESCRIPTION
    is "$(grep -c "sprung as $1" "$PGHOST/log")" 0 "$2"
}
reason_of() { sql "SELECT reason FROM bench.capture_statements WHERE capture = '$1' AND query LIKE '$2'"; }
kept_of() { sql "SELECT kept FROM bench.capture_statements WHERE capture = '$1' AND query LIKE '$2'"; }
capture() { # ROLE NAME [OPTIONS]
    as "$1" "SELECT count(*) FROM bench.capture('$2', secs => 0, options => '${3:-{\}}')" 2>&1
}

#
# A table that became a view with a function
#
reset
for _ in 1 2 3; do sql 'SELECT v FROM eve.t WHERE id = 7' "SELECT v FROM own WHERE id = 9" >/dev/null; done
as reader 'SELECT v FROM eve.t WHERE id = 7' 'SELECT v FROM public.own WHERE id = 9' >/dev/null
swap
capture postgres superusers '{"roles": "own"}' >/dev/null
like "$(reason_of superusers '%eve.t%')" 'schema "eve" belongs to role "eve"' \
    'superuser: a statement on a table of hers is refused'
is "$(kept_of superusers '%FROM own%')" t 'superuser: one on a superuser'"'"'s table is kept'
run=$(sql "SELECT bench.run('superusers', clients => 2, transactions => 20)" 2>/dev/null)
is "$(sql "SELECT status, run_as IS NULL FROM bench.runs WHERE run_id = $run")" 'completed|t' 'superuser: and runs'
not_sprung postgres 'superuser: nothing of hers has run'
capture reader readers '{"roles": "own"}' >/dev/null
like "$(reason_of readers '%eve.t%')" 'schema "eve" belongs to role "eve"' 'pg_read_server_files: it is refused, too'
is "$(kept_of readers '%FROM public.own%')" t 'pg_read_server_files: a superuser'"'"'s table is in order'
not_sprung reader 'pg_read_server_files: nothing of hers has run'
capture reader others >/dev/null
like "$(sql "SELECT string_agg(reason, ' ') FROM bench.capture_statements
    WHERE capture = 'others' AND role = 'postgres'")" \
    'role "postgres" executed it, and role "reader" cannot SET ROLE to it' \
    'of roles that it cannot become nothing is kept'
swap_back

# Where she does not own what is named, but what it leads to.
sql 'CREATE VIEW public.middle AS SELECT v FROM eve.t' \
    'CREATE VIEW public.outer_one AS SELECT v FROM public.middle' >/dev/null
reset
sql "SELECT count(*) FROM outer_one WHERE v = 'v1'" "SELECT count(*) FROM own WHERE v = 'v1'" >/dev/null
capture postgres deep >/dev/null
like "$(reason_of deep '%outer_one%')" 'table eve.t belongs to role "eve"' 'at any depth: a view of a view'
sql 'DROP VIEW public.outer_one, public.middle' >/dev/null
for what in 'CREATE INDEX by_eve ON own (eve.pure(v))' \
    "ALTER TABLE own ADD CONSTRAINT by_eve CHECK (eve.pure(v) <> '')" \
    "CREATE POLICY by_eve ON own USING (eve.pure(v) <> '')" "ALTER TABLE own ALTER v SET DEFAULT eve.pure('x')" \
    'CREATE TRIGGER by_eve BEFORE UPDATE ON own FOR EACH ROW EXECUTE FUNCTION eve.fire()' \
    "CREATE RULE by_eve AS ON UPDATE TO own DO ALSO SELECT eve.pure('x')" \
    'CREATE TABLE eve.child () INHERITS (public.own); ALTER TABLE eve.child OWNER TO eve'; do
    [ -n "$(sql "SELECT to_regproc('eve.pure')")" ] || as eve \
        "CREATE FUNCTION eve.pure(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
            'BEGIN RAISE LOG ''sprung as %'', current_user; RETURN \$1; END'" \
        "CREATE FUNCTION eve.fire() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE LOG ''sprung as %'', current_user; RETURN NEW; END'"
    before=$(grep -c 'sprung as postgres' "$PGHOST/log")
    psql -Xqc "BEGIN; $what; COMMIT" 2>/dev/null
    own_made=$(grep -c 'sprung as postgres' "$PGHOST/log")
    reset
    sql "SELECT v FROM own WHERE id = 3" >/dev/null
    ran=$(grep -c 'sprung as postgres' "$PGHOST/log")
    capture postgres parts '{"writes": true}' >/dev/null
    like "$(reason_of parts '%FROM own%')" 'belongs to role "eve"' "at any depth: ${what:0:40}…"
    is "$(grep -c 'sprung as postgres' "$PGHOST/log")" "$ran" "and it has not run (${before}, ${own_made})"
    sql 'DROP INDEX IF EXISTS by_eve' 'ALTER TABLE own DROP CONSTRAINT IF EXISTS by_eve' \
    'DROP POLICY IF EXISTS by_eve ON own' \
        'ALTER TABLE own ALTER v DROP DEFAULT' 'DROP TRIGGER IF EXISTS by_eve ON own' \
        'DROP RULE IF EXISTS by_eve ON own' \
        'DROP TABLE IF EXISTS eve.child' >/dev/null 2>&1
done
sprung=$(grep -c 'sprung as postgres' "$PGHOST/log")

#
# Another text under the same identifier
#
reset
sql "SELECT v FROM own WHERE id = 11" >/dev/null
as eve 'SET search_path = public' 'SELECT v FROM own WHERE id = 11' >/dev/null 2>&1
as eve 'CREATE SCHEMA postgres' 'GRANT USAGE ON SCHEMA postgres TO PUBLIC' \
    'CREATE VIEW postgres.own AS SELECT id, eve.spring(v) AS v FROM eve.t' \
    'GRANT SELECT ON postgres.own TO PUBLIC' >/dev/null
capture postgres shadowed >/dev/null
like "$(reason_of shadowed '%FROM own%')" 'schema "postgres" belongs to role "eve"' \
    'a schema of the superuser'"'"'s name is refused'
like "$(try "SELECT bench.run('superusers', transactions => 5)"; echo "$OUT")" \
    '42501.*schema "postgres" belongs to role "eve"' \
    'and so is an older capture'
is "$(grep -c 'sprung as postgres' "$PGHOST/log")" "$sprung" 'nothing of hers has run'
as eve 'DROP SCHEMA postgres CASCADE' >/dev/null 2>&1

#
# What changes hands while a run is under way
#
for when in 'is executing' 'waits for an index'; do
    sql "CREATE FUNCTION public.ours(text) RETURNS text LANGUAGE plpgsql STABLE AS 'BEGIN RETURN \$1; END'" >/dev/null
    reset
    sql "SELECT ours(v) FROM own WHERE id = 3" >/dev/null
    capture postgres hands >/dev/null
    is "$(kept_of hands '%ours(v)%')" t 'a superuser'"'"'s function is in order'
    before=$(last_run)
    session runs "SELECT bench.run('hands', clients => 2, secs => 30)"
    sampling "$before" 1
    if [ "$when" != 'is executing' ]; then
        session holder 'BEGIN' 'REINDEX INDEX own_pkey' 'SELECT pg_sleep(60)'
        holds holder
        eventually 10 "SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    fi
    sql 'GRANT CREATE ON SCHEMA public TO eve' 'ALTER FUNCTION public.ours OWNER TO eve' >/dev/null
    as eve "CREATE OR REPLACE FUNCTION public.ours(text) RETURNS text LANGUAGE plpgsql STABLE AS
            'BEGIN RAISE LOG ''sprung as %'', current_user; RETURN \$1; END'" >/dev/null
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holder'" >/dev/null
    ended runs
    is "$(error_of "$RUN")" 42501 "a client $when: once a function is hers, the run ends"
    is "$(grep -c 'sprung as postgres' "$PGHOST/log")" "$sprung" "a client $when: and the function has not run"
    sql 'DROP FUNCTION public.ours' 'REVOKE CREATE ON SCHEMA public FROM eve' >/dev/null
done

#
# A log that is a view
#
as eve "CREATE VIEW eve.log AS SELECT eve.spring('{}') AS line" 'GRANT SELECT ON eve.log TO PUBLIC' >/dev/null
try "SELECT bench.capture_log('logged', log => 'eve.log')"
like "$OUT" '42501: function eve.spring.text. belongs to role "eve"|42501: .*belongs to role "eve"' \
    'a view of hers is no log'
like "$OUT" 'run_as' 'with a hint'
is "$(grep -c 'sprung as postgres' "$PGHOST/log")" "$sprung" 'and is not read'

#
# An application's statements run as the application
#
as app 'CREATE SCHEMA shop' 'CREATE TABLE shop.own (id int PRIMARY KEY, v text, who name)' \
    "INSERT INTO shop.own SELECT g, 'v' || g, CASE WHEN g <= 10 THEN 'app' ELSE 'nobody' END
        FROM generate_series(1, 500) g" \
    'ALTER TABLE shop.own ENABLE ROW LEVEL SECURITY' 'ALTER TABLE shop.own FORCE ROW LEVEL SECURITY' \
    'CREATE POLICY mine ON shop.own USING (who = current_user)' 'ANALYZE shop.own' >/dev/null
reset
for _ in 1 2 3 4; do
    as app 'SELECT id, v FROM own WHERE who IS NOT NULL' 'SELECT v FROM own WHERE id = 5' >/dev/null
done
capture dba shop >/dev/null
is "$(sql "SELECT string_agg(DISTINCT role, ',') FROM bench.capture_statements WHERE capture = 'shop' AND kept")" app \
    'a capture keeps what roles have executed that the caller can become'
is "$(sql "SELECT string_agg(DISTINCT owner, ','), bool_and(private) FROM bench.workloads WHERE name LIKE 'shop/%'")" \
    'app|t' 'its workloads are theirs, and private'
run=$(as dba "SELECT bench.run('shop', clients => 2, transactions => 50)" 2>"$work/notices")
is "$(sql "SELECT status, role, run_as FROM bench.runs WHERE run_id = $run")" 'completed|dba|app' \
    'its clients are sessions of the application'"'"'s role'
is "$(sql "SELECT rows_replayed FROM bench.fidelity($run) f JOIN bench.capture_statements s USING (workload)
    WHERE query LIKE '%IS NOT NULL%'")" 10 'with its search_path and its row level security'
is "$(as dba "SELECT count(*) > 0 FROM bench.samples WHERE run_id = $run")" t 'the run is the caller'"'"'s'
run=$(as dba "SELECT bench.run('shop', clients => 2, transactions => 50, driver => 'wire')" 2>/dev/null)
is "$(sql "SELECT status, run_as FROM bench.runs WHERE run_id = $run")" 'completed|app' 'over connections, too'
for who in stranger reader; do
    is "$(as $who "SELECT count(*) FROM bench.workloads WHERE name LIKE 'shop/%'" \
        "SELECT count(*) FROM bench.feeders WHERE workload LIKE 'shop/%'")" $'0\n0' \
        "$who sees neither texts nor feeders"
done
like "$(as reader "SELECT bench.run('shop/1')" 2>&1)" 'permission denied to have sessions of role "app"' \
    'nor may it run them'
like "$(as reader "SELECT bench.preview(NULL, workload => 'shop/1')" 2>&1)" 'permission denied' 'nor preview them'
is "$(as dba "SELECT count(*) > 0 FROM bench.preview(NULL, workload => 'shop/1', transactions => 3)")" t \
    'who may become the role previews them'
like "$(as dba "SELECT bench.run('shop', run_as => 'dba')" 2>&1)" 'runs only in sessions of role "app"' \
    'nobody else runs them'

# A trial reads only, and starts nothing.
as app "CREATE FUNCTION shop.starts() RETURNS bigint LANGUAGE plpgsql STABLE AS
        'BEGIN RETURN bench.start(''pk_select'', secs => 1); EXCEPTION WHEN OTHERS THEN RETURN 0; END'" \
    'CREATE VIEW shop.started AS SELECT shop.starts() AS id' >/dev/null
reset
as app 'SELECT id FROM shop.started' >/dev/null 2>&1
before=$(last_run)
capture dba starts >/dev/null
is "$(last_run)" "$before" 'a capture starts no run'
like "$(reason_of starts '%started%')" 'not tried: it uses function shop.starts' 'what calls functions is not tried'

#
# Several roles in one capture
#
reset
for _ in 1 2 3; do
    as app "SELECT v FROM own WHERE id = 5" >/dev/null
    sql "SELECT v FROM own WHERE id = 5" >/dev/null
done
capture postgres several >/dev/null
is "$(sql "SELECT string_agg(role, ',' ORDER BY role) FROM bench.capture_statements
    WHERE capture = 'several' AND kept AND query LIKE '%FROM own%'")" 'app,postgres' \
    'the same text of two roles is two statements'
run=$(sql "SELECT bench.run('several', clients => 4, transactions => 25)" 2>"$work/notices")
is "$(sql "SELECT status, transactions FROM bench.summary WHERE run_id = $run")" 'completed|100' 'and both run'
like "$(sql "SELECT run_as FROM bench.runs WHERE run_id = $run")" 'app' 'each in sessions of its role'
is "$(sql "SELECT bool_and(calls > 0) FROM bench.fidelity($run) WHERE workload IS NOT NULL")" t \
    'each statement is executed'
like "$(sql "SELECT bench.run('several')" 2>&1)" 'clients must be at least [2-9]' 'with a client for each role'
like "$(sql "SELECT bench.run('several', clients => 4, rate => 10)" 2>&1)" \
    'rate is not supported with sessions of several roles' \
    'a rate is refused'

#
# run_as
#
run=$(as dba "SELECT bench.run(script => 'SELECT count(*) FROM own WHERE who = current_user;', transactions => 5,
    run_as => 'app')" 2>/dev/null)
is "$(sql "SELECT status, role, run_as FROM bench.runs WHERE run_id = $run")" 'completed|dba|app' \
    'run_as: sessions of that role'
is "$(sql "SELECT count(*) FROM bench.preflight(script => 'SELECT 1;', run_as => 'app') WHERE severity = 'x'")" 0 \
    'preflight takes it'
like "$(as app "SELECT bench.run(script => 'SELECT 1;', run_as => 'postgres')" 2>&1)" \
    'permission denied to have sessions of role "postgres"' 'run_as: only who could become it'
like "$(sql "SELECT bench.run(script => 'SELECT 1;', run_as => 'nobody')" 2>&1)" 'role "nobody" does not exist' \
    'run_as: which there is'
like "$(sql "SELECT bench.run(script => 'SELECT * FROM shop.own;', transactions => 1, run_as => 'stranger')" 2>&1)" \
    'permission denied for schema shop' 'run_as: with its rights'
is "$(grep -c 'sprung as postgres' "$PGHOST/log")" "$sprung" 'at the end: nothing of hers has run'
is "$(workers)" 0 'at the end: no worker is left'
no_restart 'at the end: the server has not restarted'
done_testing
