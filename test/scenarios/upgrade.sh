#!/usr/bin/env bash
# ALTER EXTENSION … UPDATE leaves what a fresh installation makes, and what users had: results, workloads, fixtures,
# grants, views. The version to update to is made up, of the same files with a changed table, view and functions; its
# library is the present one.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# shellcheck source=test/lib/update.sh
. test/lib/update.sh

# Changes each file of SQL by a sed script, and checks that it did.
made_up() { # SCRIPT FILE…
    cp "${@: -1}" "$work/before"
    sed -E -i "$1" "${@:2}"
    ! cmp -s "${@: -1}" "$work/before" || tap_fail "${*: -1} has what is to change in version $NEXT"
}

next_version
made_up "s/^    wal_syncs +bigint,/&\n    made_up bigint,/
    s/^( +EXECUTE.*)wal_syncs IS.*/&\n\1made_up IS %L', relation, 'Made up');/" \
    "$NEXT_TREE/src/schema/tables/10_tables.sql"
made_up 's/c\.made_bytes/& AS made_size/; s/(sweep_changes\.)made_bytes/\1made_size/' \
    "$NEXT_TREE/src/schema/code/45_experiments.sql"
made_up 's/prune\(older_than interval/&, made_up int DEFAULT NULL/' "$NEXT_TREE/src/schema/code/25_transfer.sql"
made_up 's/bench\.wait_capture/bench.await_capture/g' "$NEXT_TREE/src/schema/code/46_capture_functions.sql"
cat >"$NEXT_TREE/src/schema/upgrade/pgbench_ext--$VERSION--$NEXT.sql" <<'EOF'
ALTER TABLE bench.samples ADD COLUMN made_up bigint;
ALTER TABLE bench.warmup_samples ADD COLUMN made_up bigint;
UPDATE bench_internal.kept_grants SET object = 'bench.await_capture' WHERE object = 'bench.wait_capture';
EOF
next_version_install >"$work/errors"
is "$(cat "$work/errors")" '' 'the SQL of the next version is made'

cluster_start 'fsync = off' || exit 1
remember_server

in_db() { PGDATABASE=$1 sql "${@:2}"; }
try_in() { OUT=$(PGDATABASE=$1 psql_verbose "${@:2}") || true; }
compared() { in_db "$1" "SELECT o FROM ($(cat test/lib/objects.sql)) AS objects (o) ORDER BY o"; }
# Without privileges.
bare() { compared "$1" | sed -E 's/ \| \{?(,?[a-z_]*=[a-zA-Z*]*\/postgres)+\}?//g'; }

# The library refuses the SQL of another version than its own, so that it is told of its own.
is_this_version() { # DATABASE
    in_db "$1" "UPDATE pg_extension SET extversion = '$VERSION' WHERE extname = 'pgbench_ext'"
}

# What the older version's database holds works: its loaded fixture, its workload, its results.
goes_on() { # DATABASE DESC
    local run
    is_this_version "$1"
    run=$(in_db "$1" "SELECT bench.run('upgrade_own', transactions => 10)" 2>/dev/null)
    is "$run" 8 "$2: the sequence of runs continues"
    is "$(in_db "$1" "SELECT status, transactions, failed FROM bench.summary WHERE run_id = $run")" 'completed|10|0' \
        "$2: a workload runs on the fixture as it was loaded"
    in_db "$1" 'SELECT bench.report(7), bench.sweep_report(7)' >/dev/null 2>"$work/errors"
    is "$(cat "$work/errors")" '' "$2: results are reported"
    is "$(in_db "$1" "SELECT bench.load('upgrade_rows', 20)" 'SELECT sum(id) FROM bench_data.upgrade_rows' 2>/dev/null |
        paste -sd' ')" '20 210' "$2: the fixture is loaded again"
}

sql 'CREATE DATABASE fresh' 'CREATE DATABASE upgraded' 'CREATE DATABASE granted' 'CREATE DATABASE restored' \
    'CREATE DATABASE again' 'CREATE ROLE upgrade_ann' 'CREATE ROLE upgrade_bob' 'CREATE ROLE upgrade_eve'
in_db fresh "CREATE EXTENSION pgbench_ext VERSION '$NEXT'"
compared fresh >"$work/fresh"
is "$(($(wc -l <"$work/fresh") > 500))" 1 'the comparison sees the objects'

# Functions and relations that are there with grants, as NAME:MAY, of those whose names are given.
functions="SELECT string_agg(DISTINCT p.proname || ':' || has_function_privilege('upgrade_ann', p.oid,
    'EXECUTE WITH GRANT OPTION') || ':' || has_function_privilege('upgrade_bob', p.oid, 'EXECUTE') || ':' ||
    has_function_privilege('upgrade_eve', p.oid, 'EXECUTE'), ' ')
    FROM pg_proc p WHERE p.pronamespace::regnamespace::text IN ('bench', 'bench_internal')
    AND p.proname IN (SELECT unnest(string_to_array('%s', ' ')))"
relations="SELECT string_agg(c.relname || ':' || has_table_privilege('upgrade_ann', c.oid, 'SELECT') || ':' ||
    has_any_column_privilege('upgrade_bob', c.oid, 'SELECT'), ' ' ORDER BY c.relname COLLATE \"C\")
    FROM pg_class c WHERE c.relnamespace::regnamespace::text IN ('bench', 'bench_internal') AND c.relkind IN ('r', 'v')
    AND c.relname IN (SELECT unnest(string_to_array('%s', ' ')))"
# The columns of the former version.
dumped="SELECT string_agg(format('SELECT %L, %s::text FROM %s', c.oid::regclass,
    (SELECT 'concat_ws(''|'', ' || string_agg(quote_ident(attname), ', ' ORDER BY attnum) || ')'
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
        c.oid::regclass || CASE c.relname WHEN 'workloads' THEN ' WHERE NOT builtin' ELSE '' END), ' UNION ALL '
        ORDER BY c.relname)
    FROM pg_extension e, unnest(e.extconfig) AS u (relation) JOIN pg_class c ON c.oid = u.relation
    AND c.relkind = 'r' WHERE e.extname = 'pgbench_ext'"

in_db upgraded 'CREATE EXTENSION pgbench_ext' "ALTER EXTENSION pgbench_ext UPDATE TO '$NEXT'" 2>"$work/errors"
is "$(cat "$work/errors")" '' 'no errors'
compared upgraded >"$work/upgraded"
is "$(diff "$work/fresh" "$work/upgraded" | head -n 40)" '' 'the same as a fresh installation'
is "$(in_db upgraded "SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext'")" "$NEXT" \
    "the version is $NEXT"
is_this_version upgraded
in_db upgraded "SELECT bench.load('pk', 100)" >/dev/null 2>&1
run=$(in_db upgraded "SELECT bench.run('pk_select', transactions => 10)" 2>/dev/null)
is "$(in_db upgraded "SELECT bench.wait($run)")" completed 'a run works'

# A database that is still at the old version. Whoever was granted something has it afterwards, and pg_dump knows
# that the users did it; a column's grants as well, and what was taken from PUBLIC.
in_db granted 'CREATE EXTENSION pgbench_ext' \
    "DO \$\$ DECLARE f regprocedure; BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'bench'::regnamespace LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO upgrade_ann WITH GRANT OPTION', f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO upgrade_bob', f);
    END LOOP; END \$\$" \
    "DO \$\$ DECLARE c regclass; BEGIN
    FOR c IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'bench'::regnamespace
    AND c.relkind IN ('r', 'v') LOOP
        EXECUTE format('GRANT SELECT ON TABLE %s TO upgrade_ann', c);
    END LOOP; END \$\$" \
    'GRANT SELECT (role) ON bench_internal.run_log TO upgrade_bob' \
    'GRANT SELECT (sqlstate) ON bench.errors TO upgrade_bob' \
    'REVOKE EXECUTE ON FUNCTION bench.report FROM PUBLIC' 'REVOKE SELECT ON bench.errors FROM PUBLIC'
# A row of each table that pg_dump carries, a value in each column.
in_db granted "DO \$\$ DECLARE t regclass; BEGIN
    FOR t IN SELECT c.oid FROM pg_extension e, unnest(e.extconfig) AS u (relation)
    JOIN pg_class c ON c.oid = u.relation AND c.relkind = 'r' WHERE e.extname = 'pgbench_ext' LOOP
        EXECUTE format('INSERT INTO %1\$s (%2\$s) SELECT %2\$s FROM jsonb_populate_record(NULL::%1\$s, (
            SELECT jsonb_object_agg(attname, CASE
                WHEN attname = ''purpose'' THEN ''\"trial\"''
                WHEN attname IN (''feeders'', ''answers'', ''latencies'') THEN ''[]''
                WHEN attname = ''outcome'' AND atttypid = ''text''::regtype THEN ''\"processed\"''
                WHEN attname = ''owner_oid'' THEN to_jsonb(''upgrade_ann''::regrole::oid)
                WHEN attname = ''part_of'' THEN ''{\"run_id\": 7}''
                WHEN attname ~ ''^(cpu_|share|log_rate)'' THEN ''1''
                WHEN attname = ''status'' THEN ''\"completed\"''
                WHEN attname IN (''system_settings'', ''duel'', ''rates'', ''changes'', ''waits_for'') THEN ''null''
                WHEN atttypid = ''boolean''::regtype THEN ''false'' WHEN atttypid = ''jsonb''::regtype THEN ''{}''
                WHEN atttypid = ''timestamptz''::regtype THEN ''\"2026-01-01 00:00:00+00\"''
                WHEN atttypid::regtype::text LIKE ''%%[]'' THEN ''[]''
                WHEN atttypid = ''text''::regtype THEN ''\"upgrade_ann\"'' ELSE ''7'' END::jsonb)
            FROM pg_attribute WHERE attrelid = %1\$L::regclass AND attnum > 0 AND NOT attisdropped))', t,
            (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
             WHERE attrelid = t AND attnum > 0 AND NOT attisdropped AND attgenerated = ''));
    END LOOP; END \$\$"
# And a fixture, loaded, with a workload on it, a server for targets, and views of a user.
in_db granted 'CREATE SCHEMA bench_data' \
    'CREATE TABLE bench_data.upgrade_rows AS SELECT id FROM generate_series(1, 10) AS id' \
    "INSERT INTO bench_internal.custom_fixtures (name, owner, owner_oid, ddl, rows_query, rows)
        VALUES ('upgrade_rows', 'postgres', 10, 'CREATE TABLE upgrade_rows (id bigint)',
        'SELECT generate_series(\$1, \$2)', 10)" \
    "INSERT INTO bench.fixtures (name, owner, owner_oid, schema, relations, rows, options, loaded_at, load_secs) VALUES
        ('upgrade_rows', 'postgres', 10, 'bench_data', '{bench_data.upgrade_rows}', 10, '{}', '2026-01-01', 1)" \
    "INSERT INTO bench.workloads (name, owner, owner_oid, fixture, script) VALUES ('upgrade_own', 'postgres', 10,
        'upgrade_rows', E'\\\\set id random(1, :rows)\\nSELECT 1 / count(*) FROM upgrade_rows WHERE id = :id;')" \
    "SELECT setval('bench_internal.run_id_seq', 7)" "CREATE SERVER upgrade_server FOREIGN DATA WRAPPER bench_wire" \
    'CREATE VIEW upgrade_view AS SELECT run_id, role, tps FROM bench.runs JOIN bench.summary USING (run_id)' \
    >/dev/null
contents=$(in_db granted "$dumped")
rows=$(in_db granted "$(in_db granted "$dumped")" | sort)
# A dump of that version is for that version, which is then updated.
PGDATABASE=granted pg_dump -Fc >"$work/dump"
in_db restored 'CREATE EXTENSION pgbench_ext'
pg_restore -d restored "$work/dump" >/dev/null 2>"$work/errors"
in_db restored "ALTER EXTENSION pgbench_ext UPDATE TO '$NEXT'" 2>>"$work/errors"
is "$(grep 'ERROR: ' "$work/errors")" \
    'pg_restore: error: could not execute query: ERROR:  schema "bench" already exists' \
    'a dump is restored and updated'
is "$(($(wc -l <<<"$rows") >= 17))" 1 'with rows in each table'
is "$(in_db restored "$contents" | sort)" "$rows" \
    'and they are the same here'
is "$(in_db restored "SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext'")" "$NEXT" \
    "in a database of version $NEXT"
in_db restored "SELECT count(*) FROM bench.summary, bench.runs, bench.history" >/dev/null 2>"$work/errors"
is "$(cat "$work/errors")" '' 'and views read them'
goes_on restored restored

of_bench="SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'bench'::regnamespace ORDER BY 1"
names=$(comm -12 <(in_db granted "$of_bench" | sort) <(in_db fresh "$of_bench" | sort) | paste -sd' ')
tables=$(in_db granted "SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'bench'::regnamespace
    AND relkind IN ('r', 'v')")
for call in "bench.run('pk_select')" "bench.load('pk')" "bench.prune('1 day')" 'bench.report(1)' \
    "bench.export('{1}')" "count(*) FROM bench.start_sweep('pk_select', '{1}')" "bench.percentile(1, 0.5)"; do
    try_in fresh "SELECT $call"
    like "$OUT" "ERROR:  55000: .*version.*DETAIL: .* $VERSION, .* $NEXT.*HINT: .*ALTER EXTENSION pgbench_ext UPDATE" \
        "with a library of another version: $call is refused"
done

# A user's view on a view that has changed, and on a function that is gone.
while IFS='|' read -r query error; do
    in_db granted "CREATE VIEW upgrade_broken AS SELECT $query"
    before=$(compared granted)
    try_in granted "ALTER EXTENSION pgbench_ext UPDATE TO '$NEXT'"
    like "$OUT" "ERROR:  $error" "a user's view ends the update: $error"
    is "$(compared granted)" "$before" 'and nothing has changed'
    in_db granted 'DROP VIEW upgrade_broken'
done <<'EOF'
made_bytes FROM bench.sweep_changes|42P16: cannot change name of view column "made_bytes" to "made_size"
bench.wait_capture('a')|2BP01: cannot drop function wait_capture.*view public.upgrade_broken depends
EOF

wanted=$(in_db granted "${functions/\%s/$names}") wanted_tables=$(in_db granted "${relations/\%s/$tables}")
in_db granted 'BEGIN' 'SAVEPOINT s' "ALTER EXTENSION pgbench_ext UPDATE TO '$NEXT'" 'COMMIT' 2>"$work/errors"
is "$(cat "$work/errors")" '' "the update succeeds below another one of the user's"
is "$(in_db granted "${functions/\%s/$names}")" "$wanted" \
    'whoever was granted a function has its successor'
is "$(in_db granted "SELECT has_function_privilege('upgrade_bob', 'bench.await_capture(text, float8)', 'EXECUTE')")" t \
    'also where it has another name'
is "$(in_db granted "${relations/\%s/$tables}")" "$wanted_tables" 'and tables and views'
is "$(in_db granted "$contents" | sort)" "$rows" \
    'the rows are still there'
is "$(in_db granted "SELECT DISTINCT owner_oid::regrole FROM bench_internal.run_log" \
    "SELECT role || tps FROM upgrade_view" "SELECT srvname FROM pg_foreign_server" | paste -sd' ')" \
    'upgrade_ann upgrade_ann1 upgrade_server' "they belong to their roles; a user's view and server work"
in_db again "CREATE EXTENSION pgbench_ext VERSION '$NEXT'"
PGDATABASE=granted pg_dump | PGDATABASE=again psql -XAtq >/dev/null 2>"$work/errors"
is "$(grep 'ERROR: ' "$work/errors")" 'ERROR:  schema "bench" already exists' 'pg_dump and restore after the update'
is "$(in_db again "${functions/\%s/$names}")" "$wanted" "pg_dump carries the users' grants"
is "$(in_db again "${relations/\%s/$tables}")" "$wanted_tables" 'of tables, views and columns, too'
goes_on granted updated
in_db granted 'DROP VIEW upgrade_view' 'DROP SERVER upgrade_server' 'DROP OWNED BY upgrade_ann, upgrade_bob'
is "$(diff <(bare fresh) <(bare granted) | head -n 40)" '' \
    'with grants and views the same as a fresh installation, but for these'
for db in upgraded restored again; do sql "DROP DATABASE $db"; done
is "$(sql 'DROP ROLE upgrade_ann, upgrade_bob, upgrade_eve' 2>&1)" '' 'no grant is left behind'

no_restart 'the server has not gone down'
log_is_clean
done_testing
