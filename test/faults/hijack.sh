#!/usr/bin/env bash
# A role that owns the database, and so schema public, tries to have a superuser run its code: no code of a superuser's
# runs anything that belongs to others.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start "shared_preload_libraries = 'pg_stat_statements'" 'pg_stat_statements.save = off' \
    "pgbench_ext.client_role = 'bench_client'"
sql 'CREATE ROLE mallory LOGIN' 'CREATE DATABASE hers OWNER mallory'
export PGDATABASE=hers
as_mallory() { PGUSER=mallory "$@"; }
in_her_name() { PGUSER=mallory session "$@"; }
sql 'CREATE EXTENSION pgbench_ext' 'CREATE SCHEMA stats' 'CREATE EXTENSION pg_stat_statements SCHEMA stats' \
    'GRANT EXECUTE ON FUNCTION bench.run, bench.create_workload TO mallory' >/dev/null

# Whatever she gets run tries this.
as_mallory sql 'CREATE SCHEMA trap' "CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS \$\$ BEGIN
    EXECUTE 'ALTER ROLE mallory SUPERUSER';
    RETURN true;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN false;
END \$\$"
she_is_no_superuser() {
    is "$(sql "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")" f "$1: she has not become a superuser"
    sql 'ALTER ROLE mallory NOSUPERUSER' >/dev/null
}

# Swaps schema public for one of hers and back, as fast as the server lets her, while the file is there.
renaming() {
    touch "$work/renaming"
    while [ -e "$work/renaming" ]; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            echo 'BEGIN; ALTER SCHEMA public RENAME TO saved; ALTER SCHEMA fake RENAME TO public; COMMIT;
                  BEGIN; ALTER SCHEMA public RENAME TO fake; ALTER SCHEMA saved RENAME TO public; COMMIT;'
        done
        sleep 0.01
    done | PGUSER=mallory psql -Xq -o /dev/null 2>/dev/null
}
renames_begin() { renaming & RENAMER=$!; }
renames_end() { rm "$work/renaming"; wait "$RENAMER"; }

#
# pg_stat_statements, which the recorder reads
#
as_mallory sql 'CREATE SCHEMA fake' "CREATE FUNCTION fake.pg_stat_statements(boolean)
    RETURNS TABLE (userid oid, dbid oid, toplevel boolean, queryid bigint, calls bigint)
    LANGUAGE sql AS 'SELECT 10::oid, 10::oid, trap.spring(), 1::bigint, 1::bigint'"
as_mallory sql "SELECT bench.create_workload('hers', 'SELECT 1;')" >/dev/null
sql "SELECT bench.create_workload('ours', 'SELECT 1;')" >/dev/null
calls="SELECT harness > 0, harness = server, ok FROM bench.audit(max_id) WHERE counter = 'pg_stat_statements.calls'"
as_mallory sql "SELECT bench.run('hers', clients => 2, transactions => 50)" >/dev/null 2>&1
is "$(as_mallory sql "${calls/max_id/(SELECT max(run_id) FROM bench.runs)}")" 't|t|t' \
    'pg_stat_statements: an ordinary role'"'"'s calls are counted'
sql "SELECT bench.run('ours', clients => 2, transactions => 50)" >/dev/null 2>&1
is "$(sql "${calls/max_id/(SELECT max(run_id) FROM bench.runs)}")" 't|t|t' \
    'pg_stat_statements: and those of a superuser'
# In a schema of hers it is not called.
sql 'ALTER EXTENSION pg_stat_statements SET SCHEMA public' "SELECT bench.run('ours', transactions => 50)" \
    >/dev/null 2>&1
is "$(sql "${calls/max_id/(SELECT max(run_id) FROM bench.runs)}")" '' \
    "pg_stat_statements in the database owner's schema: nothing is compared"
try "SELECT bench.start_capture('taken', secs => 1)"
like "$OUT" '42501: schema "public" of extension "pg_stat_statements" belongs to role "mallory".*HINT:.*SET SCHEMA' \
    "pg_stat_statements in the database owner's schema: a capture says so"
first=$(last_run)
renames_begin
for _ in $(seq 4); do
    # shellcheck disable=SC2046 # a list of words
    as_mallory sql $(for _ in $(seq 12); do echo "SELECT/**/bench.run('hers',secs=>0.02)"; done) >/dev/null 2>&1
done
renames_end
she_is_no_superuser 'pg_stat_statements under renames'
is "$(sql "SELECT count(*), count(*) FILTER (WHERE status = 'completed') FROM bench.runs WHERE run_id > $first")" \
    '48|48' \
    'pg_stat_statements under renames: the runs complete'
is "$(sql "SELECT count(*), bool_and(a.ok) FROM bench.runs r, bench.audit(r.run_id) a
           WHERE r.run_id > $first AND a.counter = 'pg_stat_statements.calls'")" '0|' \
    'pg_stat_statements under renames: nothing is compared'

# Its SQL of before 1.9 has no column toplevel: there is nothing to compare, and nothing fails.
sql 'DROP EXTENSION pg_stat_statements' "CREATE EXTENSION pg_stat_statements VERSION '1.8' SCHEMA stats"
sql "SELECT bench.run('ours', transactions => 5)" >/dev/null 2>&1
is "$(sql "SELECT status FROM bench.runs ORDER BY run_id DESC LIMIT 1" \
    "SELECT count(*) FROM bench.audit((SELECT max(run_id) FROM bench.runs)) WHERE counter ~ 'calls'")" \
    $'completed\n0' 'pg_stat_statements 1.8: nothing is compared'
# A function in another language is not taken for it, though it is in the extension.
sql 'ALTER EXTENSION pg_stat_statements DROP VIEW stats.pg_stat_statements' 'DROP VIEW stats.pg_stat_statements' \
    'ALTER EXTENSION pg_stat_statements DROP FUNCTION stats.pg_stat_statements(boolean)' \
    'DROP FUNCTION stats.pg_stat_statements(boolean)' \
    "CREATE FUNCTION stats.pg_stat_statements(boolean, OUT userid oid, OUT dbid oid, OUT toplevel boolean,
        OUT queryid bigint, OUT calls bigint)
     RETURNS SETOF record LANGUAGE sql AS 'SELECT 10::oid, 10::oid, trap.spring(), 1::bigint, 1::bigint'" \
    'ALTER EXTENSION pg_stat_statements ADD FUNCTION stats.pg_stat_statements(boolean)'
sql "SELECT bench.run('ours', transactions => 5)" >/dev/null 2>&1
is "$(sql "SELECT status FROM bench.runs ORDER BY run_id DESC LIMIT 1" \
    "SELECT count(*) FROM bench.audit((SELECT max(run_id) FROM bench.runs)) WHERE counter ~ 'calls'")" \
    $'completed\n0' 'a function in the place of pg_stat_statements: it is not called'
she_is_no_superuser 'a function in the place of pg_stat_statements'
sql 'DROP EXTENSION pg_stat_statements' 'DROP SCHEMA fake CASCADE' 2>/dev/null

#
# before => 'prewarm', of a superuser's sweep: the extension of that name is not asked
#
as_mallory sql 'CREATE SCHEMA fake' "CREATE FUNCTION fake.pg_prewarm(regclass) RETURNS bigint
    LANGUAGE sql AS 'SELECT 1::bigint FROM trap.spring()'"
sql 'CREATE SCHEMA warm' "SELECT bench.load('pk', 20000, options => '{\"schema\": \"warm\"}')" \
    'CREATE EXTENSION pg_prewarm' >/dev/null 2>&1
renames_begin
try "SELECT bench.sweep('pk_select', '{1}', secs => 0.02, rounds => 12, before => 'prewarm')"
renames_end
she_is_no_superuser 'prewarm under renames'
is "$(sql "SELECT status, completed FROM bench.sweeps ORDER BY sweep_id DESC LIMIT 1")" 'completed|12' \
    'prewarm under renames: the sweep completes'
sql 'DROP EXTENSION pg_prewarm' 'CREATE EXTENSION pg_buffercache' "CREATE TABLE warm.big (id int PRIMARY KEY, t text)" \
    'ALTER TABLE warm.big ALTER t SET STORAGE EXTERNAL' \
    "INSERT INTO warm.big SELECT i, repeat('x', 5000) FROM generate_series(1, 500) i" \
    'CREATE TABLE warm.parts (id int PRIMARY KEY) PARTITION BY RANGE (id)' 'CHECKPOINT'
cluster_restart
remember_server
all_blocks="SELECT (pg_relation_size('warm.big') + pg_relation_size('warm.big_pkey') + pg_relation_size(reltoastrelid)
    + pg_indexes_size(reltoastrelid)) / 8192 FROM pg_class WHERE oid = 'warm.big'::regclass"
is "$(sql "SELECT bench_internal.prewarm('warm.big'::regclass)")" "$(sql "$all_blocks")" \
    'bench_internal.prewarm reads table, TOAST table and their indexes'
is "$(sql "SELECT count(*) FROM pg_buffercache b JOIN pg_class c ON c.relfilenode = b.relfilenode
    AND b.relforknumber = 0
           WHERE c.oid IN ('warm.big'::regclass, 'warm.big_pkey'::regclass, (SELECT reltoastrelid FROM pg_class
           WHERE oid = 'warm.big'::regclass))")" \
    "$(sql \
    "SELECT (pg_relation_size('warm.big') + pg_relation_size('warm.big_pkey') + pg_relation_size(reltoastrelid)) / 8192
            FROM pg_class WHERE oid = 'warm.big'::regclass")" 'into shared buffers'
is "$(sql "SELECT bench_internal.prewarm('warm.parts'::regclass), bench_internal.prewarm(1)")" '0|0' \
    'a partitioned table, and one that is gone, have no blocks'
as_mallory try "SELECT bench_internal.prewarm(oid) FROM pg_class WHERE relname = 'big'"
like "$OUT" 'ERROR:  42501: permission denied for table big.*HINT:.*SELECT' 'it takes SELECT on the table'
sql 'DROP SCHEMA warm CASCADE' "DELETE FROM bench.fixtures WHERE schema = 'warm'" 'DROP SCHEMA fake CASCADE' \
    >/dev/null 2>&1

#
# pgTAP, which anybody who may create in the database can create
#
if [ -e "$("$PG_CONFIG" --sharedir)/extension/pgtap.control" ]; then
    run=$(sql "SELECT bench.run('ours', transactions => 5)" 2>/dev/null)
    call="SELECT bench.tps_ok($run, '>', 0)"
    refused() { # DESCRIPTION PATTERN
        try "$call"
        like "$OUT" "ERROR:  42501: $2" "$1: 42501"
        she_is_no_superuser "$1"
    }
    # Her extension, with her ok()
    as_mallory sql 'CREATE SCHEMA tap' 'CREATE EXTENSION pgtap SCHEMA tap' \
        "CREATE OR REPLACE FUNCTION tap.ok(boolean, text) RETURNS text
        LANGUAGE sql AS 'SELECT ''ok'' FROM trap.spring()'"
    refused 'pgTAP of hers' 'extension "pgtap" belongs to role "mallory".*HINT:  A superuser must create it'
    as_mallory sql 'DROP EXTENSION pgtap'
    # A superuser's, where she can put things beside it, or in the place of the whole
    sql 'CREATE EXTENSION pgtap SCHEMA tap'
    refused 'pgTAP in a schema of hers' 'schema "tap" of extension "pgtap" belongs to role "mallory"'
    sql 'ALTER EXTENSION pgtap SET SCHEMA public'
    refused "pgTAP in the database owner's schema" 'schema "public" of extension "pgtap" belongs to role "mallory"'
    sql 'CREATE SCHEMA ours' 'ALTER EXTENSION pgtap SET SCHEMA ours' 'GRANT CREATE, USAGE ON SCHEMA ours TO mallory'
    refused 'pgTAP where she may create' \
        'role "mallory" may create objects in schema "ours".*HINT:  REVOKE CREATE ON SCHEMA ours FROM mallory\.'
    as_mallory sql 'CREATE VIEW ours.__tcache__ AS SELECT trap.spring()'
    sql 'REVOKE CREATE ON SCHEMA ours FROM mallory'
    refused 'pgTAP where she has left something' 'an object in schema "ours".*belongs to role "mallory"'
    sql 'DROP VIEW ours.__tcache__' 'GRANT CREATE ON SCHEMA ours TO PUBLIC'
    refused 'pgTAP where anybody may create' 'role "public" may create objects in schema "ours"'
    sql 'REVOKE CREATE ON SCHEMA ours FROM PUBLIC' 'GRANT CREATE ON SCHEMA ours TO mallory' \
        'ALTER FUNCTION ours.ok(boolean, text) OWNER TO mallory' \
        'REVOKE CREATE ON SCHEMA ours FROM mallory'
    refused 'pgTAP with a function of hers' \
        '(an object in schema "ours".*|a function of extension "pgtap") belongs to role "mallory"'
    # She trusts herself, but not as a role that a superuser has put on.
    sql 'ALTER FUNCTION ours.ok(boolean, text) OWNER TO CURRENT_USER' 'DROP EXTENSION pgtap' \
        'GRANT SELECT ON bench.summary TO mallory'
    as_mallory sql 'CREATE EXTENSION pgtap SCHEMA tap'
    hers=$(as_mallory sql "SELECT bench.run('hers', transactions => 5)" 2>/dev/null)
    as_mallory try 'SET search_path = tap' 'SELECT plan(1)' "SELECT bench.tps_ok($hers, '>', 0)"
    like "$OUT" '1\.\.1'$'\n''ok 1 ' 'her own pgTAP serves herself'
    call="SET ROLE mallory; SELECT bench.tps_ok($hers, '>', 0)"
    refused 'pgTAP of a role that a superuser has put on' 'extension "pgtap" belongs to role "mallory"'
    as_mallory sql 'DROP EXTENSION pgtap'
    sql 'CREATE EXTENSION pgtap SCHEMA ours' 'GRANT USAGE ON SCHEMA ours TO PUBLIC'
    try 'SET search_path = ours' 'SELECT plan(1)' "SELECT bench.tps_ok($run, '>', 0)"
    like "$OUT" '1\.\.1'$'\n''ok 1 ' "a superuser's, in a schema of superusers, serves superusers"
    as_mallory try 'SET search_path = ours' 'SELECT plan(1)' "SELECT bench.tps_ok($hers, '>', 0)"
    like "$OUT" '1\.\.1'$'\n''ok 1 ' 'and others'
    sql 'DROP EXTENSION pgtap'
else
    skip 'pgTAP is not installed' 'who may have created pgTAP'
fi

#
# Tables and schema of the extension that have come to belong to her, as after ALTER … OWNER, or when who installed it
# is no longer a superuser
#
as_mallory sql 'CREATE FUNCTION trap.fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring();
    RETURN NEW; END $$' \
    'CREATE FUNCTION trap.holds(bigint) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring();
        RETURN true; END $$'
ways=("CREATE TRIGGER t BEFORE INSERT OR UPDATE ON %t FOR EACH ROW EXECUTE FUNCTION trap.fire()"
    "CREATE CONSTRAINT TRIGGER t AFTER INSERT
        OR UPDATE ON %t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trap.fire()"
    "ALTER TABLE %t ADD CONSTRAINT c CHECK (trap.holds(1)) NOT VALID"
    "CREATE RULE r AS ON INSERT TO %t DO ALSO SELECT trap.spring()")
undo=('DROP TRIGGER t ON %t' 'DROP TRIGGER t ON %t' 'ALTER TABLE %t DROP CONSTRAINT c' 'DROP RULE r ON %t')
for place in 0 1 2 3; do
    for table in bench.samples bench_internal.run_log bench.workloads; do
        name="$table is hers: ${ways[place]%% ON *}"
        sql "ALTER TABLE $table OWNER TO mallory" 'GRANT CREATE ON SCHEMA bench TO mallory' &&
            as_mallory sql "${ways[place]//%t/$table}"
        sql 'REVOKE CREATE ON SCHEMA bench FROM mallory'
        try "SELECT bench.create_workload('ours', 'SELECT 2;')" \
            "SELECT bench.run('ours', secs => 0.2, sample_interval => 0.1)"
        like "$OUT" \
            "ERROR:  42501: table $table belongs to role \"mallory\",.*HINT:.*ALTER TABLE $table OWNER TO" \
            "$name: 42501, and what to do"
        she_is_no_superuser "$name"
        sql "${undo[place]//%t/$table}" "ALTER TABLE $table OWNER TO CURRENT_USER"
    done
done

# What she makes with TRIGGER and REFERENCES does not fire, and everything works.
sql 'GRANT TRIGGER ON bench.samples, bench.workloads, bench_internal.run_log TO mallory' \
    'GRANT REFERENCES (run_id) ON bench_internal.run_log TO mallory'
for table in bench.samples bench.workloads bench_internal.run_log; do
    as_mallory sql "CREATE TRIGGER a BEFORE INSERT OR UPDATE ON $table FOR EACH ROW WHEN (trap.spring())
            EXECUTE FUNCTION trap.fire()" \
        "CREATE TRIGGER b AFTER INSERT OR UPDATE OR DELETE ON $table FOR EACH STATEMENT EXECUTE FUNCTION trap.fire()" \
        "${ways[1]//%t/$table}"
done
as_mallory sql 'CREATE TABLE trap.notes (run_id bigint REFERENCES bench_internal.run_log ON DELETE CASCADE)' \
    'CREATE TRIGGER t AFTER DELETE ON trap.notes FOR EACH ROW EXECUTE FUNCTION trap.fire()'
run=$(sql "SELECT bench.run('ours', secs => 0.2, sample_interval => 0.1)" 2>/dev/null)
is "$(sql "SELECT status, (SELECT count(*) FROM bench.samples s WHERE s.run_id = r.run_id) FROM bench.runs r
    WHERE run_id = $run")" 'completed|2' "her triggers on the extension's tables: a run is recorded"
is "$(sql "SELECT bench.create_workload('brief', 'SELECT 1;')" "SELECT bench.drop_workload('brief')" \
    "SELECT bench.delete_run($run)" "SELECT count(*) FROM bench.samples WHERE run_id = $run" | paste -sd' ')" \
    "$(printf '%s ' '' '' t)0" "her triggers on the extension's tables: workloads are written, a run is deleted"
she_is_no_superuser "her triggers on the extension's tables"
is "$(sql "INSERT INTO trap.notes SELECT max(run_id) FROM bench_internal.run_log" \
    "SELECT bench.delete_run(max(run_id)) FROM bench.runs" 'SELECT count(*) FROM trap.notes' | paste -sd' ')" 't 1' \
    'a foreign key of hers: does not cascade'
she_is_no_superuser 'a foreign key of hers'
# Nor where a superuser enables them always.
always() { # TABLE
    sql "DO \$\$ DECLARE name name; BEGIN
        FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = '$1'::regclass LOOP
            EXECUTE format('ALTER TABLE $1 ENABLE ALWAYS TRIGGER %I', name);
        END LOOP; END \$\$"
}
always bench.samples
try "SELECT bench.run('ours', secs => 0.2, sample_interval => 0.1)"
like "$OUT" '42501: trigger "a" of table bench.samples.*HINT:  ALTER TABLE bench.samples ENABLE TRIGGER a' \
    'a trigger of hers that is enabled always: 42501, and what to do'
she_is_no_superuser 'a trigger of hers that is enabled always'
sql 'ALTER TABLE bench.samples ENABLE TRIGGER ALL'
always bench_internal.run_log
try "SELECT bench.delete_run(max(run_id)) FROM bench.runs"
like "$OUT" '42501: trigger ".*" of table bench_internal.run_log' 'and of the table of runs'
for table in bench.samples bench.workloads bench_internal.run_log; do
    sql "DROP TRIGGER a ON $table" "DROP TRIGGER b ON $table" "DROP TRIGGER t ON $table"
done
try "SELECT bench.delete_run(max(run_id)) FROM bench.runs"
like "$OUT" '42501: trigger "RI_Constraint.*HINT:  ALTER TABLE bench_internal.run_log ENABLE TRIGGER "RI_' \
    'and a foreign key of hers'
she_is_no_superuser 'a foreign key of hers that is enabled always'
sql 'DROP TABLE trap.notes' 'REVOKE REFERENCES (run_id) ON bench_internal.run_log FROM mallory'
# In place of the extension's own
broken() { # DESCRIPTION PATTERN
    try "SELECT bench.create_workload('ours', 'SELECT 2;')"
    like "$OUT" "42501: trigger $2.*HINT:.*bench_internal.create_triggers" "$1: 42501, and what to do"
    she_is_no_superuser "$1"
    sql 'SELECT bench_internal.create_triggers()' "SELECT bench.create_workload('ours', 'SELECT 2;')" \
        >"$work/mended" 2>&1
    unlike "$(cat "$work/mended")" ERROR "$1: which helps"
}
as_mallory sql 'CREATE OR REPLACE TRIGGER disown BEFORE INSERT ON bench.workloads
    FOR EACH ROW EXECUTE FUNCTION trap.fire()'
broken 'a trigger of hers in the place of one of the extension' \
    '"disown" of table bench.workloads is not the extension.s.*trap\.fire'
as_mallory sql 'CREATE OR REPLACE TRIGGER forget_runs AFTER DELETE ON bench_internal.run_log
    FOR EACH STATEMENT EXECUTE FUNCTION trap.fire()'
broken 'a trigger of hers in the place of the one that deletes' \
    '"forget_runs" of table bench_internal.run_log is not the extension.s'
sql 'REVOKE TRIGGER ON bench.samples, bench.workloads, bench_internal.run_log FROM mallory' \
    'ALTER TABLE bench_internal.run_log DISABLE TRIGGER ALL' 'ALTER TABLE bench_internal.run_log ENABLE TRIGGER ALL'
broken "the extension's triggers after pg_restore --disable-triggers" \
    '"disown" of table bench_internal.run_log is not enabled always'
sql 'DROP TRIGGER disown ON bench.fixtures'
broken 'a trigger of the extension that is gone' '"disown" of table bench.fixtures is missing'

# A session has its own setting back, however a call ends, and its plans go on working.
is "$(sql "CREATE TABLE kept (id int, role text)" "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.role := current_setting(''session_replication_role''); RETURN NEW; END'" \
    'CREATE TRIGGER keep BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION keep()' \
    "DO \$\$ BEGIN
        FOR i IN 1..8 LOOP
            INSERT INTO kept VALUES (i);
            PERFORM bench.create_workload('again', format('SELECT %s;', i));
            BEGIN
                PERFORM bench.create_workload('pk_select', 'SELECT 1;');
            EXCEPTION WHEN OTHERS THEN
                INSERT INTO kept VALUES (-i);
            END;
        END LOOP;
    END \$\$" "SELECT bench.drop_workload('again')" 'SELECT count(*), min(role), max(role) FROM kept' \
    'SHOW session_replication_role' 'DROP TABLE kept' | paste -sd' ')" ' 16|origin|origin origin' \
    'a session that calls has its own session_replication_role, and its plans'

for schema in bench bench_internal; do
    sql "ALTER SCHEMA $schema OWNER TO mallory"
    try "SELECT bench.run('ours', secs => 0.2)"
    like "$OUT" "42501: schema $schema belongs to role \"mallory\".*HINT:  ALTER SCHEMA $schema OWNER TO" \
        "schema $schema is hers: 42501, and what to do"
    sql "ALTER SCHEMA $schema OWNER TO CURRENT_USER"
done
# Another schema in the place of one that is hers
sql 'ALTER SCHEMA bench_internal OWNER TO mallory'
as_mallory sql 'ALTER SCHEMA bench_internal RENAME TO gone' 'CREATE SCHEMA bench_internal' \
    'CREATE FUNCTION bench_internal.is_visible(oid) RETURNS boolean LANGUAGE sql AS $$ SELECT true
        FROM trap.spring() $$' \
    'CREATE FUNCTION bench_internal.status_of(text, bigint, bigint) RETURNS text LANGUAGE sql AS $$ SELECT $1
        FROM trap.spring() $$' \
    'CREATE FUNCTION bench_internal.rights(text[]) RETURNS SETOF text LANGUAGE sql AS $$ SELECT $1[1]
        FROM trap.spring() $$' \
    'CREATE FUNCTION bench_internal.export_part_count(bigint[]) RETURNS int LANGUAGE sql AS $$ SELECT 1
        FROM trap.spring() $$'
try "SELECT bench.run('ours', secs => 0.2)" "SELECT bench.export('{1}')" "SELECT bench.percentile(1, 0.5)" \
    "SELECT bench.allow('nobody')"
like "$OUT" '(42501: schema bench_internal belongs to role "mallory".*){3}' \
    'another schema in the place of bench_internal: 42501'
she_is_no_superuser 'another schema in the place of bench_internal'
as_mallory sql 'DROP SCHEMA bench_internal CASCADE' 'ALTER SCHEMA gone RENAME TO bench_internal' >/dev/null 2>&1
sql 'ALTER SCHEMA bench_internal OWNER TO CURRENT_USER'
for kind in 'TYPE bench_internal.relation_reading' 'VIEW bench.runs'; do
    sql "ALTER $kind OWNER TO mallory"
    try "SELECT bench.run('ours', secs => 0.2)"
    like "$OUT" "ERROR:  42501: [a-z]* ${kind#* } belongs to role \"mallory\".*HINT:.*ALTER $kind OWNER TO" \
        "$kind is hers: 42501, and what to do"
    sql "ALTER $kind OWNER TO CURRENT_USER"
done
sql 'ALTER FUNCTION bench_internal.role_name(oid, text) OWNER TO mallory'
try "SELECT bench.run('ours', secs => 0.2)"
like "$OUT" '42501: function bench_internal.role_name.oid,text. belongs to role "mallory".*HINT:.*ALTER FUNCTION ' \
    'a function is hers: 42501, and what to do'
sql 'ALTER FUNCTION bench_internal.role_name(oid, text) OWNER TO CURRENT_USER'
# While a run is under way
sql "SELECT bench.start('ours', secs => 60, sample_interval => 0.1)" >/dev/null
RUN=$(last_run)
eventually 10 "SELECT count(*) > 1 FROM bench.samples WHERE run_id = $RUN"
sql 'BEGIN; ALTER TABLE bench.samples OWNER TO mallory; GRANT CREATE ON SCHEMA bench TO mallory;
    SET LOCAL ROLE mallory;'"${ways[1]//%t/bench.samples};
    ALTER TABLE bench.samples ENABLE ALWAYS TRIGGER t; RESET ROLE;
    REVOKE CREATE ON SCHEMA bench FROM mallory; COMMIT"
eventually 20 "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'"
she_is_no_superuser 'bench.samples becomes hers during a run'
sql 'DROP TRIGGER t ON bench.samples' 'ALTER TABLE bench.samples OWNER TO CURRENT_USER'
status_is "$RUN" crashed 'bench.samples becomes hers during a run'
like "$(cat "$PGHOST/log")" "could not record in bench.runs that run $RUN is incomplete: table bench.samples belongs" \
    'bench.samples becomes hers during a run: the log says so'
# What a superuser has put there fires as any other, and in the recorder if it is enabled always.
sql 'CREATE TABLE public.log_of_samples (run_id bigint)' 'CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql
     AS $$ BEGIN INSERT INTO public.log_of_samples VALUES (NEW.run_id); RETURN NEW; END $$' \
    'CREATE TRIGGER note AFTER INSERT ON bench.samples FOR EACH ROW WHEN (NEW.run_id > 0)
        EXECUTE FUNCTION public.note()'
run=$(sql "SELECT bench.run('ours', secs => 0.2, sample_interval => 0.1)" 2>/dev/null)
is "$(sql "SELECT count(*) FROM public.log_of_samples WHERE run_id = $run")" 0 "a superuser's own trigger does not fire"
sql 'ALTER TABLE bench.samples ENABLE ALWAYS TRIGGER note'
run=$(sql "SELECT bench.run('ours', secs => 0.2, sample_interval => 0.1)" 2>/dev/null)
is "$(sql "SELECT count(*) FROM public.log_of_samples WHERE run_id = $run")" 2 'but if it is enabled always'

# Who installed the extension is no superuser any more.
sql 'CREATE ROLE installer SUPERUSER LOGIN' 'CREATE DATABASE theirs'
PGDATABASE=theirs PGUSER=installer sql 'CREATE EXTENSION pgbench_ext'
sql 'ALTER ROLE installer NOSUPERUSER'
PGDATABASE=theirs try "SELECT bench.create_workload('ours', 'SELECT 1;')"
like "$OUT" '42501: (schema|extension) .*belongs to role "installer", which is not a superuser.*HINT' \
    'an installer that has lost SUPERUSER: 42501, and what to do'
PGDATABASE=theirs sql "DO \$\$ DECLARE object text; BEGIN
    FOR object IN SELECT format('SCHEMA %I', nspname) FROM pg_namespace WHERE nspname ~ '^bench'
    UNION ALL SELECT format('%s %s', CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
        oid::regclass) FROM pg_class WHERE relnamespace::regnamespace::text ~ '^bench' AND relkind IN ('r', 'v', 'c')
    UNION ALL SELECT format('ROUTINE %s', oid::regprocedure) FROM pg_proc
        WHERE pronamespace::regnamespace::text ~ '^bench' LOOP
        EXECUTE format('ALTER %s OWNER TO postgres', object);
    END LOOP; END \$\$"
PGDATABASE=theirs try "SELECT bench.create_workload('ours', 'SELECT 1;')"
like "$OUT" '42501: extension pgbench_ext belongs to role "installer", which is not a superuser.*HINT:.*installer' \
    'an extension alone that is not a superuser.s: 42501, and what to do'
sql 'ALTER ROLE installer SUPERUSER'
is "$(PGDATABASE=theirs sql "SELECT bench.create_workload('ours', 'SELECT 1;')" 'SELECT count(*) FROM bench.workloads
    WHERE NOT builtin' | paste -sd' ')" ' 1' 'a superuser once more: it works'
sql 'DROP DATABASE theirs' 'DROP ROLE installer'

# The owner of the database has all of its sessions be another role's, but not those of our workers.
sql 'CREATE ROLE puppet' 'GRANT puppet TO mallory'
as_mallory sql 'ALTER DATABASE hers SET role = puppet'
export PGOPTIONS='-c role=none'
try "SELECT bench.run('ours', secs => 0.2, sample_interval => 0.1)"
unlike "$OUT" ERROR 'ALTER DATABASE … SET role: a run works'
as_mallory sql 'ALTER DATABASE hers RESET role'
unset PGOPTIONS
sql 'DROP ROLE puppet'

# Tables of a superuser's fixture on which she may make triggers
sql 'CREATE SCHEMA our_data' "SELECT bench.load('pk', 1000, options => '{\"schema\": \"our_data\"}')" \
    "SELECT bench.load('log', 0, options => '{\"schema\": \"our_data\"}')" \
    'GRANT USAGE ON SCHEMA our_data TO mallory' 'GRANT ALL ON our_data.pk, our_data.log TO mallory' >/dev/null 2>&1
as_mallory sql "CREATE FUNCTION trap.on_change() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM trap.spring();
    RETURN NEW; END \$\$" 'GRANT USAGE ON SCHEMA trap TO PUBLIC'
try "SELECT bench.run('pk_update', secs => 0.2)"
unlike "$OUT" 'ERROR' 'a grant of TRIGGER alone is in nobody'"'s way"
session early "SELECT bench.run('pk_update', secs => 5, sample_interval => 0.1)"
eventually 10 "SELECT count(*) > 0 FROM bench.samples s JOIN bench.runs r USING (run_id) WHERE r.status = 'running'"
as_mallory sql 'CREATE TRIGGER spring AFTER UPDATE ON our_data.pk FOR EACH ROW EXECUTE FUNCTION trap.on_change()'
ended early
she_is_no_superuser 'a trigger on a fixture that comes during a run'
last_run_is() { is "$(sql 'SELECT status FROM bench.runs ORDER BY run_id DESC LIMIT 1')" completed "$1: it fires"; }
last_run_is 'a trigger on a fixture that comes during a run'
try "SELECT bench.run('pk_update', secs => 0.2)"
she_is_no_superuser 'a trigger on a fixture'
last_run_is 'a trigger on a fixture'
try "SELECT bench.run('pk_update', secs => 0.2, query_mode => 'simple')"
she_is_no_superuser 'a trigger on a fixture, mode simple'
as_mallory sql \
    'CREATE CONSTRAINT TRIGGER spring AFTER INSERT ON our_data.log DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION trap.on_change()'
try "SELECT bench.run('pk_insert', secs => 0.2)"
she_is_no_superuser 'a deferred trigger on a fixture'
sql 'DROP TRIGGER spring ON our_data.log'
as_mallory sql \
    'CREATE TRIGGER spring BEFORE TRUNCATE ON our_data.log FOR EACH STATEMENT EXECUTE FUNCTION trap.on_change()'
try "SELECT bench.sweep('pk_insert', '{1}', secs => 0.1, before => 'truncate')"
she_is_no_superuser 'a trigger of TRUNCATE on a fixture'
last_run_is 'a trigger of TRUNCATE on a fixture'
as_mallory sql 'SET ROLE mallory' "SELECT bench.run('pk_update', secs => 0.2)" >/dev/null 2>&1
sql 'DROP SCHEMA our_data CASCADE' "DELETE FROM bench.fixtures WHERE schema = 'our_data'" >/dev/null 2>&1

# A session's own statements are its own, also after a call that has failed or was canceled on the way.
as_mallory sql 'CREATE TABLE trap.hers (id int)'
session holder BEGIN 'LOCK TABLE bench.workloads IN ACCESS EXCLUSIVE MODE' 'SELECT pg_sleep(60)'
holds holder
try 'SELECT bench.percentile(-1, 0.5)' "SET statement_timeout = '300ms'" \
    "SELECT bench.create_workload('ours', 'SELECT 3;')" \
    'RESET statement_timeout' 'SELECT count(*) FROM trap.hers'
like "$OUT" 'ERROR:  42704.*ERROR:  57014.*'$'\n''0$' \
    "a superuser's own statements read tables of others, whatever call has failed before"
leave holder

nothing_left 'in the end'
no_restart 'the server has not gone down'
log_is_clean
done_testing
