# shellcheck shell=bash
# shellcheck disable=SC2034 # variables for the scripts
# What the tests of special rights have in common: source this file after common.sh.
#
#   rights_start LINE…      a cluster with the database hers of role mallory, other roles, and her functions
#   plant NAME PLANT UPROOT [NEEDS [PLANTER]]
#                           what she does and what she takes back; NEEDS is a pattern of the entries without which
#                           nothing calls it; PLANTER is who does it, if that is not her
#   unplanted NAME REASON   what she cannot plant, or what cannot be called
#   planted NAME            plants it; a failed test where that cannot be done
#   uproot NAME             takes it back
#   mark; calls [WAY]; special_calls; nothing_special DESC
#                           how often her functions were called since the mark, and that it was with no special rights
#
# Each function of hers says in the server's log who calls it, with whose rights, and which way it was reached. Before
# that it takes back every change of the session's role that there may have been, and then it tries to make her a
# superuser. In the log are also calls in transactions that were read-only or were rolled back.

MAJOR=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
EXTENSIONS=$("$PG_CONFIG" --sharedir)/extension
has_extension() { [ -e "$EXTENSIONS/$1.control" ]; }

as() { # ROLE STATEMENT…
    local role=$1
    shift
    PGUSER=$role sql "$@"
}

# Whether the session that executes this could come by special rights. Where its functions end, so do the changes of the
# role that they made; a parallel worker can make none.
IS_SPECIAL="SELECT bool_or(r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls OR r.oid < 16384::oid
        AND r.oid NOT IN (3373, 3374, 3375, 3377, 4200, 4544, 4550, 6171, 6392)) FROM pg_catalog.pg_roles r
    WHERE r.rolname IN (session_user, current_user) OR pg_has_role(session_user, r.oid, 'MEMBER')
        OR pg_has_role(current_user, r.oid, 'MEMBER')"

rights_start() {
    local preload=pg_stat_statements
    ! has_extension pg_cron || preload+=,pg_cron
    faults_start "shared_preload_libraries = '$preload'" "pgbench_ext.client_role = 'bench_client'" \
        "cron.database_name = 'hers'" 'log_error_verbosity = terse' "$@"
    export PGOPTIONS='-c client_min_messages=error'
    sql 'CREATE ROLE mallory LOGIN' 'CREATE ROLE plain LOGIN' 'CREATE ROLE boss SUPERUSER LOGIN' \
        "CREATE ROLE looper LOGIN PASSWORD 'loop'" 'CREATE DATABASE hers OWNER mallory'
    # Whoever has no special rights needs a password for connections of other extensions.
    as_pg sed -i '1i local all looper scram-sha-256' "$PGHOST/data/pg_hba.conf"
    sql 'SELECT pg_reload_conf()' >/dev/null
    export PGDATABASE=hers
    sql 'CREATE EXTENSION pgbench_ext' 'CREATE SCHEMA ours' 'GRANT USAGE ON SCHEMA ours TO PUBLIC' \
        'CREATE EXTENSION pg_stat_statements SCHEMA ours' 'CREATE EXTENSION refint' \
        'CREATE EXTENSION postgres_fdw' 'CREATE EXTENSION dblink' \
        'GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO mallory' \
        "SELECT bench.allow(r, 'run', 'capture', 'schedule', 'targets') FROM unnest('{mallory,plain}'::name[]) AS r" \
        "SELECT bench.load('pk', 1000)" "SELECT bench.load('log', 0)" >/dev/null || return
    ! has_extension pg_cron || sql 'CREATE EXTENSION pg_cron SCHEMA ours' 'GRANT USAGE ON SCHEMA cron TO mallory, plain'
    ! has_extension pgtap || sql 'CREATE SCHEMA tap' 'CREATE EXTENSION pgtap SCHEMA tap' \
        'GRANT USAGE ON SCHEMA tap TO PUBLIC'
    her_functions && her_objects
}

her_functions() {
    as mallory 'CREATE SCHEMA trap' 'GRANT USAGE, CREATE ON SCHEMA trap TO PUBLIC' \
        "CREATE FUNCTION trap.spring(way text DEFAULT 'plant') RETURNS boolean LANGUAGE plpgsql AS \$\$
DECLARE
    called_as text := pg_catalog.format('%s, %s', session_user, current_user);
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
    special := ($IS_SPECIAL);
    BEGIN
        EXECUTE 'ALTER ROLE mallory SUPERUSER';
    EXCEPTION WHEN OTHERS THEN
    END;
    RAISE LOG 'trap %: % special: %', way, called_as, special;
    RETURN true;
END \$\$" \
        'CREATE FUNCTION trap.on_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM trap.spring(); RETURN coalesce(NEW, OLD); END $$' \
        'CREATE FUNCTION trap.of_int(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
            PERFORM trap.spring(); RETURN $1; END $$' \
        "CREATE FUNCTION trap.known(int) RETURNS int LANGUAGE plpgsql AS \$\$ BEGIN
            PERFORM trap.spring('text'); RETURN \$1; END \$\$" \
        "CREATE FUNCTION trap.quiet(int) RETURNS int STABLE PARALLEL SAFE LANGUAGE plpgsql COST 10000 AS \$\$ BEGIN
            RAISE LOG 'trap plant: %, % special: %', session_user, current_user, ($IS_SPECIAL); RETURN \$1; END \$\$"
}

# Hers, and open to everybody: what superusers' statements meet when they use tables of others.
her_objects() {
    as mallory 'CREATE DOMAIN trap.checked AS int' 'CREATE DOMAIN trap.listed AS int[]' \
        'CREATE TYPE trap.pair AS (a trap.checked, b int)' \
        'CREATE TABLE trap.mine (id int PRIMARY KEY, v int, p trap.pair, l trap.listed)' \
        'GRANT ALL ON trap.mine TO PUBLIC' \
        "INSERT INTO trap.mine SELECT g, g, ROW (g::trap.checked, g)::trap.pair, ARRAY[g]
            FROM generate_series(1, 300) g" \
        'CREATE VIEW trap.sight AS SELECT id, trap.known(id) AS v FROM trap.mine' \
        'GRANT SELECT ON trap.sight TO PUBLIC' \
        'CREATE TABLE trap.parts (id int, v int) PARTITION BY RANGE (id)' \
        'CREATE TABLE trap.part PARTITION OF trap.parts FOR VALUES FROM (0) TO (1000)' \
        'INSERT INTO trap.parts SELECT g, g FROM generate_series(1, 50) g' 'GRANT ALL ON trap.parts TO PUBLIC'
    # A log that says that a superuser has executed what it names.
    as mallory 'CREATE TABLE trap.forged (line jsonb)' 'GRANT SELECT ON trap.forged TO PUBLIC' \
        "INSERT INTO trap.forged SELECT jsonb_build_object('timestamp', '2026-11-24 12:00:' || lpad(n::text, 2, '0')
            || '.000 UTC', 'user', 'postgres', 'dbname', 'hers', 'session_id', 's', 'line_num', n, 'vxid', '3/0',
            'error_severity', 'LOG', 'message', 'duration: 1.000 ms  statement: ' || s)
         FROM unnest(ARRAY['SELECT trap.known(id) FROM trap.mine WHERE id = 3', 'SET ROLE postgres',
            'SELECT trap.known(id) FROM trap.mine WHERE id = 4', 'UPDATE trap.mine SET v = v + 1 WHERE id = 5'])
            WITH ORDINALITY AS t (s, n)" \
        "CREATE VIEW trap.forging AS SELECT line FROM trap.forged WHERE trap.known(1) = 1" \
        'GRANT SELECT ON trap.forging TO PUBLIC'
    sql 'GRANT TRIGGER ON bench.workloads, bench.samples, bench_internal.run_log TO mallory' \
        'GRANT USAGE ON SCHEMA bench_data, bench_internal TO mallory, plain' \
        "SELECT bench.create_workload('fed', 'SELECT :id::int + :v::int;')" \
        "SELECT bench.add_feeder('fed', 'SELECT id, v FROM trap.sight')" \
        "SELECT bench.create_workload('others', 'UPDATE trap.mine SET v = v + 1 WHERE id = 7;')" \
        "SELECT bench.create_workload('reads', 'SELECT count(id), sum(v), max(p::text) FROM trap.mine;
SELECT to_json(p), format(''%s'', v::text), to_tsvector(v::text) FROM trap.mine WHERE id < 3;')" \
        "SELECT bench.create_workload('parted', 'UPDATE trap.parts SET v = v + 1 WHERE id = 7;
INSERT INTO trap.parts SELECT max(id) + 1, 1 FROM trap.parts;')" \
        "SELECT bench.create_workload('keys', 'UPDATE bench_data.pk SET id = 100005 WHERE id = 5;
UPDATE bench_data.pk SET id = 5 WHERE id = 100005;')" \
        "SELECT bench.create_workload('scans', 'SELECT count(*) FROM trap.mine WHERE v > 0;')" >/dev/null
    # Scripts of hers that try to leave their role.
    as mallory "SELECT bench.create_workload('hers/reset', 'RESET ROLE;
SELECT trap.known(1);
RESET SESSION AUTHORIZATION;
SELECT trap.known(2);')" "SELECT bench.create_workload('hers/discard', 'DISCARD ALL;
SELECT trap.known(1);')" "SELECT bench.create_workload('hers/reset_all', 'SELECT trap.known(1);
RESET ALL;
SELECT set_config(''role'', ''none'', false), trap.known(2);')" \
        "SELECT bench.create_workload('hers/block', 'DO \$d\$ BEGIN
    PERFORM trap.known(1); COMMIT; PERFORM trap.known(2); END \$d\$;')" \
        "SELECT bench.create_workload(\$n\$hers/\\'; SELECT trap.known(3); --\$n\$, 'SELECT trap.known(1);')" >/dev/null
    # A target that leads back here, with a mapping of hers to a superuser
    sql 'GRANT USAGE ON FOREIGN DATA WRAPPER bench_wire TO mallory'
    as mallory "CREATE SERVER round FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$PGHOST', dbname 'hers')" \
        "CREATE USER MAPPING FOR PUBLIC SERVER round OPTIONS (user 'postgres')" \
        'GRANT USAGE ON FOREIGN SERVER round TO PUBLIC'
}

declare -A PLANTS=() UPROOTS=() NEEDS=() PLANTERS=() UNPLANTED=()
NAMES=() # in the order of their declaration
plant() {
    PLANTS[$1]=$2 UPROOTS[$1]=$3 NEEDS[$1]=${4:-} PLANTERS[$1]=${5:-mallory}
    NAMES+=("$1")
}
unplanted() { UNPLANTED[$1]=$2; }

# Whatever she has set for the sessions of the database
administer() { PGOPTIONS="$PGOPTIONS -c role=none -c search_path=pg_catalog" sql "$@"; }

mark() { MARK=$(wc -c <"$PGHOST/log"); }
since() { tail -c "+$((MARK + 1))" "$PGHOST/log"; }
calls() { since | grep -c "trap ${1:-[a-z]*}: "; }
special_calls() { since | grep 'trap .* special: t' | sed 's/.*LOG: *//' | sort | uniq -c; }

# A load makes new tables, on which she needs her grants again.
planted() { # NAME
    local said
    administer 'GRANT TRIGGER, REFERENCES ON bench_data.pk, bench_data.log TO mallory' \
        'GRANT ALL ON bench_data.pk TO plain' >/dev/null 2>&1
    # Not a wrong way that went on, and planted less.
    said=$(PGUSER=${PLANTERS[$1]} psql -Xq -v ON_ERROR_STOP=1 -c "${PLANTS[$1]//@socket@/$PGHOST}" 2>&1) ||
        { tap_fail "$1: planted" "$said" && return 1; }
}

uproot() { # NAME
    [ -z "${UPROOTS[$1]}" ] || said=$(PGUSER=${PLANTERS[$1]} psql -Xq -v ON_ERROR_STOP=1 -c "${UPROOTS[$1]}" 2>&1) ||
        tap_fail "$1: taken back" "$said"
    # On tables of others as well
    administer "DO \$\$ DECLARE t record; BEGIN
        FOR t IN SELECT tgrelid::regclass AS r FROM pg_trigger WHERE tgname = 't' AND tgparentid = 0 LOOP
            EXECUTE format('DROP TRIGGER t ON %s', t.r);
        END LOOP; END \$\$" >/dev/null
}

nothing_special() { # DESC
    is "$(special_calls)$(sql "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")" f "$1"
    administer 'ALTER ROLE mallory NOSUPERUSER'
}

#
# What she plants
#
plant 'nothing but her scripts' '' '' hers/
plant 'operator in public' \
    'CREATE FUNCTION public.times(numeric, integer) RETURNS numeric LANGUAGE sql AS $$ SELECT $1 FROM trap.spring() $$;
     CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.times);
     CREATE FUNCTION public.plus(integer, bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT $2 FROM trap.spring() $$;
     CREATE OPERATOR public.+ (LEFTARG = integer, RIGHTARG = bigint, FUNCTION = public.plus)' \
    'DROP OPERATOR public.* (numeric, integer); DROP OPERATOR public.+ (integer, bigint);
     DROP FUNCTION public.times, public.plus' 'orders'
plant 'functions and aggregates in public' \
    'CREATE FUNCTION public.next(bigint, int) RETURNS bigint LANGUAGE sql AS $$ SELECT $1 FROM trap.spring() $$;
     CREATE AGGREGATE public.count(int) (SFUNC = public.next, STYPE = bigint, INITCOND = 0);
     CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE sql AS $$ SELECT $2 FROM trap.spring() $$;
     CREATE FUNCTION public.jsonb_build_object(text, text) RETURNS jsonb LANGUAGE sql AS
        $$ SELECT NULL::jsonb FROM trap.spring() $$;
     CREATE FUNCTION public.array_agg_next(bigint[], bigint) RETURNS bigint[] LANGUAGE sql AS
        $$ SELECT $1 || $2 FROM trap.spring() $$;
     CREATE AGGREGATE public.array_agg(bigint) (SFUNC = public.array_agg_next, STYPE = bigint[])' \
    'DROP AGGREGATE public.count(int); DROP AGGREGATE public.array_agg(bigint);
     DROP FUNCTION public.next, public.format, public.jsonb_build_object, public.array_agg_next'
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
    "CREATE TABLE trap.keys (id int); INSERT INTO trap.keys SELECT generate_series(1, 1000);
     CREATE VIEW trap.keyed AS SELECT trap.of_int(id) AS id FROM trap.keys;
     GRANT SELECT ON trap.keyed TO PUBLIC;
     CREATE TRIGGER t AFTER INSERT OR UPDATE ON bench_data.pk FOR EACH ROW
         EXECUTE FUNCTION check_primary_key('id', 'trap.keyed', 'id')" 'DROP TABLE trap.keys CASCADE'
plant 'deferred trigger' \
    'CREATE CONSTRAINT TRIGGER t AFTER INSERT OR UPDATE ON bench_data.pk DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION trap.on_event()' ''
plant 'foreign key from a table with triggers' \
    'CREATE TABLE trap.child (id int REFERENCES bench_data.pk (id) ON UPDATE CASCADE ON DELETE CASCADE);
     INSERT INTO trap.child VALUES (5); CREATE TRIGGER t BEFORE UPDATE OR DELETE ON trap.child FOR EACH ROW
         EXECUTE FUNCTION trap.on_event()' 'DROP TABLE trap.child' keys
plant 'triggers on tables of the extension' \
    "CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON bench.workloads FOR EACH ROW $fires;
     CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON bench.samples $fires;
     CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON bench_internal.run_log FOR EACH ROW
         WHEN (trap.of_int(1) = 1) EXECUTE FUNCTION suppress_redundant_updates_trigger()" ''
plant 'domain checked in a composite type and in an array' \
    'ALTER DOMAIN trap.checked ADD CONSTRAINT c CHECK (trap.of_int(VALUE) > 0) NOT VALID;
     ALTER DOMAIN trap.listed ADD CONSTRAINT c CHECK (trap.of_int(VALUE[1]) > 0) NOT VALID' \
    'ALTER DOMAIN trap.checked DROP CONSTRAINT c; ALTER DOMAIN trap.listed DROP CONSTRAINT c'
plant 'range type, its subtype_diff, and a domain on it' \
    'CREATE FUNCTION trap.apart(int, int) RETURNS float8 IMMUTABLE LANGUAGE sql AS
        $$ SELECT $1 - $2::float8 FROM trap.of_int(1) $$;
     CREATE TYPE trap.span AS RANGE (SUBTYPE = int, SUBTYPE_DIFF = trap.apart);
     CREATE DOMAIN trap.spans AS trap.span CHECK (trap.of_int(lower(VALUE)) > 0);
     ALTER TABLE trap.mine ADD s trap.span DEFAULT trap.span(1, 4), ADD d trap.spans DEFAULT trap.span(1, 4);
     CREATE INDEX i ON trap.mine USING gist (s)' \
    'ALTER TABLE trap.mine DROP s, DROP d; DROP DOMAIN trap.spans; DROP TYPE trap.span CASCADE;
     DROP FUNCTION IF EXISTS trap.apart'
plant 'index expression and predicate' \
    'CREATE INDEX i ON trap.mine (trap.of_int(id)) WHERE trap.of_int(v) > 0' 'DROP INDEX trap.i'
plant 'operator class with a function of hers, made by a superuser' \
    'CREATE FUNCTION trap.cmp(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS
        $$ SELECT $1 - $2 FROM trap.of_int(1) $$; ALTER FUNCTION trap.cmp OWNER TO mallory;
     CREATE OPERATOR CLASS trap.ops FOR TYPE int USING btree AS
        OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 trap.cmp(int, int);
     CREATE INDEX i ON trap.mine (v trap.ops)' \
    'DROP OPERATOR CLASS trap.ops USING btree CASCADE; DROP OPERATOR FAMILY trap.ops USING btree;
     DROP FUNCTION trap.cmp' '' postgres
plant 'extended statistics' 'CREATE STATISTICS trap.s ON (trap.of_int(id)), v FROM trap.mine' 'DROP STATISTICS trap.s' \
    'index_worth'
plant 'default and generated column' \
    'ALTER TABLE trap.mine ADD g int GENERATED ALWAYS AS (trap.of_int(v)) STORED, ADD d int DEFAULT trap.of_int(1)' \
    'ALTER TABLE trap.mine DROP g, DROP d'
plant 'constraint' \
    'ALTER TABLE trap.mine ADD CONSTRAINT c CHECK (trap.of_int(v) > 0)' 'ALTER TABLE trap.mine DROP CONSTRAINT c'
plant 'row level security' \
    'ALTER TABLE trap.mine ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON trap.mine USING (trap.of_int(id) > 0)' \
    'ALTER TABLE trap.mine DISABLE ROW LEVEL SECURITY; DROP POLICY p ON trap.mine' \
    "others', driver => 'wire'"
plant 'rule' \
    'CREATE RULE r AS ON UPDATE TO trap.mine DO ALSO SELECT trap.spring()' 'DROP RULE r ON trap.mine'
plant 'view with an INSTEAD OF trigger in the place of a table' \
    'ALTER TABLE trap.mine RENAME TO real;
     CREATE VIEW trap.mine AS SELECT id, v, p, l FROM trap.real WHERE trap.of_int(id) > 0;
     GRANT ALL ON trap.mine TO PUBLIC;
     CREATE TRIGGER t INSTEAD OF INSERT OR UPDATE ON trap.mine FOR EACH ROW EXECUTE FUNCTION trap.on_event()' \
    'DROP VIEW trap.mine; ALTER TABLE trap.real RENAME TO mine'
plant 'partitions with triggers, and a key of hers' \
    'CREATE TABLE trap.more PARTITION OF trap.parts FOR VALUES FROM (1000) TO (2000)
         PARTITION BY RANGE (trap.of_int(id));
     CREATE TABLE trap.most PARTITION OF trap.more FOR VALUES FROM (1000) TO (2000);
     INSERT INTO trap.parts VALUES (1000, 1);
     CREATE TRIGGER t BEFORE UPDATE OR INSERT ON trap.part FOR EACH ROW EXECUTE FUNCTION trap.on_event()' \
    'DROP TABLE trap.more' parted
for user in looper postgres; do
    secret=
    [ "$user" = postgres ] || secret=", password 'loop'"
    plant "foreign table in a table's place, as $user" \
        "CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '@socket@', dbname 'hers');
         CREATE USER MAPPING FOR PUBLIC SERVER loop OPTIONS (user '$user'$secret);
         ALTER TABLE trap.mine RENAME TO real;
         CREATE TRIGGER t BEFORE UPDATE ON trap.real FOR EACH ROW EXECUTE FUNCTION trap.on_event();
         CREATE VIEW trap.far AS SELECT id, v, p, l FROM trap.real WHERE trap.of_int(id) > 0;
         GRANT ALL ON trap.far TO PUBLIC;
         CREATE FOREIGN TABLE trap.mine (id int, v int, p trap.pair, l trap.listed) SERVER loop
             OPTIONS (schema_name 'trap', table_name 'far'); GRANT ALL ON trap.mine TO PUBLIC" \
        'DROP SERVER loop CASCADE; DROP VIEW trap.far; ALTER TABLE trap.real RENAME TO mine'
done
plant 'dblink back as a superuser' \
    "CREATE FUNCTION trap.back() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
         PERFORM trap.spring();
         BEGIN
             PERFORM public.dblink_exec('host=@socket@ dbname=hers user=postgres', 'SELECT trap.spring()');
         EXCEPTION WHEN OTHERS THEN
         END;
         RETURN NEW; END \$\$;
     CREATE TRIGGER t BEFORE UPDATE ON bench_data.pk FOR EACH ROW EXECUTE FUNCTION trap.back();
     CREATE TRIGGER t BEFORE UPDATE ON trap.mine FOR EACH ROW EXECUTE FUNCTION trap.back()" \
    'DROP FUNCTION trap.back CASCADE'
plant 'cast to json and to text' \
    'CREATE FUNCTION trap.as_json(trap.pair) RETURNS json LANGUAGE sql AS $$ SELECT to_json(trap.spring()) $$;
     CREATE CAST (trap.pair AS json) WITH FUNCTION trap.as_json(trap.pair);
     CREATE FUNCTION trap.as_text(trap.pair) RETURNS text LANGUAGE sql AS $$ SELECT trap.spring()::text $$;
     CREATE CAST (trap.pair AS text) WITH FUNCTION trap.as_text(trap.pair) AS IMPLICIT' \
    'DROP CAST (trap.pair AS json); DROP CAST (trap.pair AS text); DROP FUNCTION trap.as_json, trap.as_text'
plant 'function in parallel workers' \
    'ALTER TABLE trap.mine RENAME TO real; GRANT ALL ON trap.real TO PUBLIC;
     CREATE VIEW trap.mine AS SELECT id, v, p, l FROM trap.real WHERE trap.quiet(id) > 0;
     GRANT ALL ON trap.mine TO PUBLIC' \
    'DROP VIEW trap.mine; ALTER TABLE trap.real RENAME TO mine' scans
plant 'search_path of the database' \
    'CREATE FUNCTION trap.random(int, int) RETURNS int LANGUAGE sql AS $$ SELECT 1 FROM trap.spring() $$;
     CREATE FUNCTION trap.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT $1 FROM trap.spring() $$;
     CREATE FUNCTION trap.next(bigint, int) RETURNS bigint LANGUAGE sql AS $$ SELECT $1 FROM trap.spring() $$;
     CREATE AGGREGATE trap.sum(int) (SFUNC = trap.next, STYPE = bigint, INITCOND = 0);
     ALTER DATABASE hers SET search_path = trap, pg_catalog, public' \
    'ALTER DATABASE hers RESET search_path; DROP AGGREGATE trap.sum(int);
     DROP FUNCTION trap.random, trap.format, trap.next'
# What is set for its session has a superuser be her: nothing that it then calls may go back.
plant 'role of the database' \
    "ALTER DATABASE hers SET role = mallory; CREATE TRIGGER t BEFORE UPDATE ON bench_data.pk FOR EACH ROW $fires;
     CREATE TRIGGER t BEFORE UPDATE ON trap.mine FOR EACH ROW $fires" 'ALTER DATABASE hers RESET role'
plant 'defaults of the sessions of the database' \
    "ALTER DATABASE hers SET standard_conforming_strings = off; ALTER DATABASE hers SET backslash_quote = on;
     ALTER DATABASE hers SET escape_string_warning = off; ALTER DATABASE hers SET transform_null_equals = on;
     ALTER DATABASE hers SET quote_all_identifiers = on; ALTER DATABASE hers SET row_security = off;
     ALTER DATABASE hers SET array_nulls = off; ALTER DATABASE hers SET bytea_output = escape;
     ALTER DATABASE hers SET check_function_bodies = off; ALTER DATABASE hers SET plan_cache_mode = force_generic_plan;
     ALTER DATABASE hers SET default_transaction_isolation = serializable; ALTER ROLE mallory SET role = mallory;
     CREATE TRIGGER t BEFORE UPDATE ON bench_data.pk FOR EACH ROW $fires" \
    'ALTER DATABASE hers RESET ALL; ALTER ROLE mallory RESET ALL'
plant 'text search configuration' \
    "CREATE TEXT SEARCH DICTIONARY trap.words (TEMPLATE = simple);
     CREATE TEXT SEARCH CONFIGURATION trap.english (COPY = simple);
     ALTER TEXT SEARCH CONFIGURATION trap.english ALTER MAPPING FOR asciiword WITH trap.words;
     ALTER TABLE trap.mine ADD w tsvector GENERATED ALWAYS AS (to_tsvector('trap.english', v::text)) STORED;
     ALTER DATABASE hers SET default_text_search_config = 'trap.english'" \
    'ALTER DATABASE hers RESET default_text_search_config;
     ALTER TABLE trap.mine DROP w; DROP TEXT SEARCH CONFIGURATION trap.english; DROP TEXT SEARCH DICTIONARY trap.words'
plant 'a raised 42501 with words of hers' \
    "CREATE FUNCTION trap.refuse() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
         PERFORM trap.spring();
         RAISE insufficient_privilege USING MESSAGE = 'permission denied for table mine', SCHEMA = 'trap',
            TABLE = 'mine', HINT = 'GRANT postgres TO mallory.'; END \$\$;
     CREATE TRIGGER t BEFORE UPDATE ON trap.mine FOR EACH ROW EXECUTE FUNCTION trap.refuse();
     CREATE TRIGGER t BEFORE UPDATE ON bench_data.pk FOR EACH ROW EXECUTE FUNCTION trap.refuse()" \
    'DROP FUNCTION trap.refuse CASCADE'

unplanted 'operator class, by herself' 'only a superuser makes one'
unplanted 'type with input and output of hers' 'only a superuser makes one'
unplanted 'text search parser and template' 'only a superuser makes them; a dictionary calls its template'
unplanted 'event trigger' "only a superuser makes one, and it fires at each of that superuser's own statements"
unplanted 'session_preload_libraries' 'only a superuser sets it; local_preload_libraries are those of $libdir/plugins'
