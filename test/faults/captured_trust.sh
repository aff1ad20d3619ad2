#!/usr/bin/env bash
# What was captured runs in sessions of the role that executed it, with that role's rights and settings and no
# others; and no session with special rights executes anything of others'. Eve tries to have her code run by the role
# of whoever captures, runs a capture or reads a log: each time that it runs, it says as whom in the server's log.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

client=bench_client
faults_start "shared_preload_libraries = 'pg_stat_statements'" 'pg_stat_statements.save = off' \
    "pgbench_ext.client_role = '$client'"
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
        'BEGIN RAISE LOG ''sprung as % of %'', current_user, session_user; RETURN \$1; END'" \
    "CREATE FUNCTION eve.pure(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        'BEGIN RAISE LOG ''sprung as % of %'', current_user, session_user; RETURN \$1; END'" \
    "CREATE FUNCTION eve.fire() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE LOG ''sprung as % of %'', current_user, session_user; RETURN NEW; END'" \
    "CREATE VIEW eve.trap AS SELECT id, eve.spring(v) AS v FROM eve.t" 'GRANT SELECT ON eve.trap TO PUBLIC'
reset() { sql 'SELECT pg_stat_statements_reset()' >/dev/null; }
# Puts the view in the table's place, and back.
swap() { as eve 'BEGIN' 'ALTER TABLE eve.t RENAME TO t0' 'ALTER VIEW eve.trap RENAME TO t' 'COMMIT' >/dev/null; }
swap_back() { as eve 'BEGIN' 'ALTER VIEW eve.t RENAME TO trap' 'ALTER TABLE eve.t0 RENAME TO t' 'COMMIT' >/dev/null; }
# How often her code has run with the rights of a role that has special ones, and how often as another one.
special() { grep -cE 'sprung as (postgres|reader)|sprung as .* of (postgres|reader)' "$PGHOST/log"; }
sprung_as() { grep -c "sprung as $1 of $1\$" "$PGHOST/log"; }
# A superuser's own statements, which are to be captured, run what she has put there: that is not counted.
typed() { sql "$@" >/dev/null; SPECIAL=$(special); }
SPECIAL=0
none_special() { is "$(special)" "$SPECIAL" "$1: nothing of hers runs with special rights"; }
reason_of() { sql "SELECT reason FROM bench.capture_statements WHERE capture = '$1' AND query LIKE '$2'"; }
kept_of() { sql "SELECT kept FROM bench.capture_statements WHERE capture = '$1' AND query LIKE '$2'"; }
owners_of() { sql "SELECT string_agg(DISTINCT owner, ',' ORDER BY owner) FROM bench.workloads WHERE name LIKE '$1/%'"; }
capture() { # ROLE NAME [OPTIONS]
    as "$1" "SELECT count(*) FROM bench.capture('$2', secs => 0, options => '${3:-{\}}')" 2>&1
}
run_of() { # NAME [ARGUMENTS]
    local run
    run=$(sql "SELECT bench.run('$1', transactions => 10${2:+, $2})" 2>"$work/notices")
    sql "SELECT status, run_as FROM bench.runs WHERE run_id = $run"
}

#
# What a superuser has executed
#
reset
for _ in 1 2 3; do typed 'SELECT v FROM eve.t WHERE id = 7' 'SELECT v FROM own WHERE id = 9'; done
as reader 'SELECT v FROM eve.t WHERE id = 7' 'SELECT v FROM public.own WHERE id = 9' >/dev/null
capture postgres lacking '{"roles": "own"}' >/dev/null
is "$(reason_of lacking '%FROM own%')" "role \"postgres\" executed it, which has special rights; its statements are \
tried as \"$client\": permission denied: GRANT SELECT ON public.own TO $client, or options => '{\"run_as\": \"…\"}'" \
    'superuser: what the client role may not read is not kept, with the GRANT that it takes'
sql "GRANT SELECT ON own TO $client"
swap
capture postgres superusers '{"roles": "own"}' >/dev/null
is "$(kept_of superusers '%FROM own%')" t 'superuser: with it, it is kept'
is "$(kept_of superusers '%eve.t%')|$(reason_of superusers '%eve.t%')" \
    't|not tried: it uses function eve.spring(text)' 'superuser: so is one on a table that has become a view'
is "$(owners_of superusers)" "$client" 'superuser: as the client role'"'"'s'
is "$(run_of superusers)" "completed|$client" 'superuser: whose sessions run it'
none_special 'superuser'
like "$(sprung_as "$client")" '^[1-9]' 'superuser: her function runs as the client role'
capture reader readers '{"roles": "own"}' >/dev/null
is "$(reason_of readers '%eve.t%')" 'role "reader" executed it: sessions of role "reader" would have special rights' \
    'pg_read_server_files: what it has executed is not kept'
like "$(as reader "SELECT bench.capture('r', 0, options => '{\"run_as\": \"app\"}')" 2>&1)" \
    'permission denied to have sessions of role "app"' 'run_as is a role that the caller could become'
capture reader others >/dev/null
like "$(sql "SELECT string_agg(reason, ' ') FROM bench.capture_statements
    WHERE capture = 'others' AND role = 'postgres'")" \
    'role "postgres" executed it, and role "reader" cannot SET ROLE to it' \
    'of roles that it cannot become nothing is kept'
none_special 'pg_read_server_files'
swap_back

# Where she does not own what is named, but what it leads to.
for what in 'CREATE VIEW middle AS SELECT v FROM eve.trap; CREATE VIEW outer_one AS SELECT 3 AS id, v FROM middle' \
    'CREATE INDEX by_eve ON own (eve.pure(v))' \
    "ALTER TABLE own ADD CONSTRAINT by_eve CHECK (eve.pure(v) <> '')" \
    "CREATE POLICY by_eve ON own USING (eve.pure(v) <> ''); ALTER TABLE own ENABLE ROW LEVEL SECURITY" \
    "ALTER TABLE own ALTER v SET DEFAULT eve.pure('x')" \
    'CREATE TRIGGER by_eve BEFORE UPDATE ON own FOR EACH ROW EXECUTE FUNCTION eve.fire()' \
    "CREATE RULE by_eve AS ON UPDATE TO own DO ALSO SELECT eve.pure('x')" \
    'CREATE TABLE eve.child () INHERITS (public.own); ALTER TABLE eve.child OWNER TO eve'; do
    psql -Xqc "BEGIN; $what; COMMIT" 2>/dev/null
    relation=own
    [[ $what != *outer_one* ]] || relation=outer_one
    sql "GRANT SELECT ON $relation TO $client"
    reset
    typed "SELECT v FROM $relation WHERE id = 3"
    capture postgres parts '{"writes": true}' >/dev/null
    if [[ $what = *'ROW LEVEL'* ]]; then
        # A policy would leave it some of the rows, and nobody would be told.
        run_of parts >/dev/null
        like "$(sql 'SELECT error FROM bench.runs ORDER BY run_id DESC LIMIT 1')" 'row-level security policy' \
            'a table with row level security is refused'
    else
        is "$(kept_of parts "%FROM $relation%")" t "at any depth: ${what:0:40}… is kept"
        is "$(run_of parts)" "completed|$client" 'and runs'
    fi
    none_special 'at any depth'
    sql 'DROP VIEW IF EXISTS outer_one, middle' 'DROP INDEX IF EXISTS by_eve' \
        'ALTER TABLE own DROP CONSTRAINT IF EXISTS by_eve' 'DROP POLICY IF EXISTS by_eve ON own' \
        'ALTER TABLE own DISABLE ROW LEVEL SECURITY' \
        'ALTER TABLE own ALTER v DROP DEFAULT' 'DROP TRIGGER IF EXISTS by_eve ON own' \
        'DROP RULE IF EXISTS by_eve ON own' 'DROP TABLE IF EXISTS eve.child' >/dev/null 2>&1
    SPECIAL=$(special)
done

# A domain within a composite type, which gets a CHECK later.
as eve 'CREATE DOMAIN eve.part AS text' 'CREATE TYPE eve.whole AS (part eve.part)' \
    'CREATE FUNCTION eve.of(text) RETURNS eve.whole LANGUAGE sql IMMUTABLE RETURN ROW($1)::eve.whole' >/dev/null
reset
typed "SELECT v FROM own WHERE v = (('(v7)'::eve.whole).part)" "SELECT v FROM own WHERE v = (eve.of('v7')).part"
as eve "ALTER DOMAIN eve.part ADD CHECK (eve.spring(value) <> '')"
capture postgres domains >/dev/null
is "$(run_of domains)" "completed|$client" 'a domain in a composite type: runs'
none_special 'a domain in a composite type'

#
# Another text under the same identifier
#
reset
typed "SELECT v FROM own WHERE id = 11"
for schema in postgres "$client"; do
    as eve "CREATE SCHEMA $schema" "GRANT USAGE ON SCHEMA $schema TO PUBLIC" \
        "CREATE VIEW $schema.own AS SELECT id, eve.spring(v) AS v FROM eve.t" \
        "GRANT SELECT ON $schema.own TO PUBLIC" >/dev/null
done
capture postgres shadowed >/dev/null
is "$(kept_of shadowed '%FROM own%')" t 'schemas with the names of the roles'
is "$(run_of shadowed)" "completed|$client" 'run as the client role'
is "$(run_of superusers)" "completed|$client" 'an older capture as well'
none_special 'a schema with the name of a role'
as eve "DROP SCHEMA postgres, $client CASCADE" >/dev/null 2>&1

#
# What changes hands while a run is under way
#
sql "CREATE FUNCTION public.ours(text) RETURNS text LANGUAGE plpgsql STABLE AS 'BEGIN RETURN \$1; END'" >/dev/null
reset
typed "SELECT ours(v) FROM own WHERE id = 3"
capture postgres hands >/dev/null
before=$(last_run)
session runs "SELECT bench.run('hands', clients => 2, secs => 30)"
sampling "$before" 1
ran=$(sprung_as "$client")
sql 'GRANT CREATE ON SCHEMA public TO eve' 'ALTER FUNCTION public.ours OWNER TO eve' >/dev/null
as eve "CREATE OR REPLACE FUNCTION public.ours(text) RETURNS text LANGUAGE plpgsql STABLE AS
        'BEGIN RAISE LOG ''sprung as % of %'', current_user, session_user; PERFORM pg_sleep(0.05); RETURN \$1; END'" \
    >/dev/null
for _ in {1..100}; do
    [ "$(sprung_as "$client")" -eq "$ran" ] || break
    sleep 0.1
done
sql "SELECT bench.stop($RUN)" >/dev/null
ended runs
like "$(($(sprung_as "$client") - ran))" '^[1-9]' 'a function that has become hers runs as the client role'
none_special 'a function that has become hers'
sql 'DROP FUNCTION public.ours' 'REVOKE CREATE ON SCHEMA public FROM eve' >/dev/null

#
# Logs in tables and views
#
as eve "CREATE VIEW eve.log AS SELECT eve.spring('{}') AS line" 'GRANT SELECT ON eve.log TO PUBLIC' >/dev/null
try "SELECT bench.capture_log('logged', log => 'eve.log')"
like "$OUT" '55000: there is no transaction in the log' 'a view of hers is read'
like "$(sprung_as eve)" '^[1-9]' 'in a session of hers'
try "SELECT bench.capture_log('logged', log => 'pg_class')"
like "$OUT" '42809' 'a superuser'"'"'s table is read as the client role'
line() { # USER
    echo "{\"timestamp\": \"2026-11-24 12:00:00.000 UTC\", \"user\": \"$1\", \"dbname\": \"$PGDATABASE\",
        \"session_id\": \"s\", \"line_num\": 1, \"vxid\": \"3/0\", \"error_severity\": \"LOG\",
        \"message\": \"duration: 1.000 ms  statement: SELECT v FROM eve.t WHERE id = 7\"}"
}
sql 'CREATE TABLE lines (line jsonb)' "INSERT INTO lines VALUES ('$(line app)')"
try "SELECT bench.capture_log('logged', log => 'lines')"
like "$OUT" "42501: permission denied for table public.lines.*HINT:  GRANT SELECT ON public.lines TO $client" \
    'or not at all, with the GRANT that it takes'
sql "GRANT SELECT ON lines TO $client, eve"
sql "SELECT bench.capture_log('logged', log => 'lines')" >/dev/null 2>&1
is "$(sql "SELECT role, kept FROM bench.capture_statements WHERE capture = 'logged'")|$(owners_of logged)" \
    "app|t|$client" 'a log in a table is what the caller has written, whoever it says has executed it'
sql "UPDATE lines SET line = '$(line postgres)'" >/dev/null
as eve "SELECT bench.capture_log('hers', log => 'lines')" >/dev/null 2>&1
is "$(sql "SELECT role, kept FROM bench.capture_statements WHERE capture = 'hers'")|$(owners_of hers)" \
    'postgres|t|eve' 'of a role without special rights as well'
sql "SELECT bench.import_capture(bench.export_capture('hers', with_values => true))" >/dev/null
is "$(owners_of hers)" "$client" 'an import is what the caller has written'
none_special 'logs'

#
# Feeders
#
as eve "SELECT bench.create_workload('fed', 'SELECT :id;')" \
    "SELECT bench.add_feeder('fed', 'SELECT eve.spring(v) AS id FROM eve.t')" >/dev/null
ran=$(sprung_as eve)
is "$(sql "SELECT count(*) FROM bench.preview(NULL, transactions => 2, workload => 'fed')")" 2 \
    'a superuser previews her workload'
like "$(($(sprung_as eve) - ran))" '^[1-9]' 'whose feeder is read in a session of hers'
sql "SELECT bench.create_workload('ours', 'SELECT :id;')" \
    "SELECT bench.add_feeder('ours', 'SELECT v AS id FROM eve.trap')" >/dev/null
ran=$(sprung_as "$client")
is "$(sql "SELECT count(*) FROM bench.preview(NULL, transactions => 2, workload => 'ours')")" 2 \
    'a superuser'"'"'s feeder over a view of hers'
like "$(($(sprung_as "$client") - ran))" '^[1-9]' 'is read in a session of the client role'
sql 'CREATE TABLE secret (id int)'
like "$(sql "SELECT bench.add_feeder('ours', 'SELECT id FROM secret')" \
    "SELECT bench.preview(NULL, workload => 'ours')" 2>&1)" \
    "permission denied for table secret.*HINT:  Feeders are read in a session of role $client: GRANT" \
    'which says what it may not read'
none_special 'feeders'

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
like "$(as reader "SELECT bench.preview(NULL, workload => 'shop/1')" 2>&1)" 'permission denied|cannot SET ROLE' \
    'nor preview them'
is "$(as dba "SELECT count(*) > 0 FROM bench.preview(NULL, workload => 'shop/1', transactions => 3)")" t \
    'who may become the role previews them'
like "$(as dba "SELECT bench.run('shop', run_as => 'dba')" 2>&1)" '(runs only|cannot run) in sessions of role' \
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
    WHERE capture = 'several' AND kept AND query LIKE '%FROM own%'")|$(owners_of several)" "app,postgres|app,$client" \
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
# run_as of a capture
#
reset
as app "SELECT v FROM own WHERE id = 5" >/dev/null
sql "SELECT id FROM shop.own WHERE id = 5" 'SELECT v FROM public.own WHERE id = 5' >/dev/null
as stranger 'SELECT 1 + 1' >/dev/null
capture postgres named '{"run_as": "app"}' >/dev/null
is "$(sql "SELECT string_agg(DISTINCT role, ',' ORDER BY role) FROM bench.capture_statements
    WHERE capture = 'named' AND kept")|$(owners_of named)" 'app,postgres|app' 'run_as: all is kept as that role'"'"'s'
is "$(reason_of named 'SELECT $1 + $2')" 'role "stranger" executed it, and cannot SET ROLE to "app"' \
    'run_as: but for what roles have executed that could not become it'
capture postgres special '{"run_as": "postgres"}' >/dev/null
is "$(reason_of special '%FROM own%')" \
    'role "app" executed it, and role "postgres", which run_as names, has special rights' \
    'run_as: in special sessions only what the caller has executed'
is "$(kept_of special '%public.own%')|$(owners_of special)" 't|postgres' 'run_as: which stays the caller'"'"'s'
is "$(run_of named)" 'completed|app' 'run_as: and runs as it'
like "$(sql "SELECT bench.run('special')" 2>&1)" 'permission denied for schema shop' \
    'run_as: a run without it has sessions of the client role'

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
none_special 'at the end'
is "$(workers)" 0 'at the end: no worker is left'
no_restart 'at the end: the server has not restarted'
done_testing
