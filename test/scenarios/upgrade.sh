#!/usr/bin/env bash
# ALTER EXTENSION … UPDATE leaves what a fresh installation makes, and what users had: results, workloads, fixtures,
# grants, views. Functions of the former version are not called: their library is not there.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

extensions=$("$PG_CONFIG" --sharedir)/extension
if [ ! -w "$extensions" ]; then
    skip "needs to write to $extensions" 'updates from former versions'
    done_testing
    exit
fi

cron=()
[ ! -e "$extensions/pg_cron.control" ] || cron=("shared_preload_libraries = 'pg_cron'")
cluster_start 'fsync = off' "${cron[@]}" || exit 1
remember_server
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" pgbench_ext.control)

in_db() { PGDATABASE=$1 sql "${@:2}"; }
try_in() { OUT=$(PGDATABASE=$1 psql_verbose "${@:2}") || true; }
compared() { in_db "$1" "SELECT o FROM ($(cat test/lib/objects.sql)) AS objects (o) ORDER BY o"; }
# Without privileges.
bare() { compared "$1" | sed -E 's/ \| \{?(,?[a-z_]*=[a-zA-Z*]*\/postgres)+\}?//g'; }

# What the older version's database holds works: its loaded fixture, its workload, its results.
goes_on() { # DATABASE DESC
    local run
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
in_db fresh 'CREATE EXTENSION pgbench_ext'
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
# The same columns of both versions, so that those that are new do not count.
dumped="SELECT string_agg(format('SELECT %L, %s::text FROM %s', c.oid::regclass,
    (SELECT 'concat_ws(''|'', ' || string_agg(quote_ident(attname), ', ' ORDER BY attnum) || ')'
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
        AND (c.relname, attname) NOT IN (('capture_statements', 'roles'), ('feeders', 'order'))),
        c.oid::regclass || CASE c.relname WHEN 'workloads' THEN ' WHERE NOT builtin' ELSE '' END), ' UNION ALL '
        ORDER BY c.relname)
    FROM pg_extension e, unnest(e.extconfig) AS u (relation) JOIN pg_class c ON c.oid = u.relation
    AND c.relkind = 'r' WHERE e.extname = 'pgbench_ext'"

# The same tables where the new version has them.
moved() { sed -E 's/FROM bench\.([a-z_]+_log|capture_list|custom_fixtures)/FROM bench_internal.\1/g' <<<"$1"; } # QUERY

for frozen in test/lib/pgbench_ext--*.sql.gz; do
    old=${frozen##*pgbench_ext--} old=${old%.sql.gz}
    script=$extensions/pgbench_ext--$old.sql
    at_exit "rm -f '$script'"
    gunzip -c "$frozen" >"$script" && chmod 644 "$script"

    in_db upgraded "CREATE EXTENSION pgbench_ext VERSION '$old'" 'ALTER EXTENSION pgbench_ext UPDATE' 2>"$work/errors"
    is "$(cat "$work/errors")" '' "from $old: no errors"
    compared upgraded >"$work/upgraded"
    is "$(diff "$work/fresh" "$work/upgraded" | head -n 40)" '' "from $old: the same as a fresh installation"
    is "$(in_db upgraded "SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext'")" "$version" \
        "from $old: the version is $version"
    in_db upgraded "SELECT bench.load('pk', 100)" >/dev/null 2>&1
    run=$(in_db upgraded "SELECT bench.run('pk_select', transactions => 10)" 2>/dev/null)
    is "$(in_db upgraded "SELECT bench.wait($run)")" completed "from $old: a run works"

    # A database that is still at the old version. Whoever was granted something has it afterwards, and pg_dump knows
    # that the users did it; a column's grants as well, and what was taken from PUBLIC.
    in_db granted "CREATE EXTENSION pgbench_ext VERSION '$old'" \
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
        'GRANT SELECT (role) ON bench.run_log TO upgrade_bob' 'GRANT SELECT (sqlstate) ON bench.errors TO upgrade_bob' \
        'REVOKE EXECUTE ON FUNCTION bench.report FROM PUBLIC' 'REVOKE SELECT ON bench.errors FROM PUBLIC'
    # A function that is called with arguments of other types than it takes would read one type as another.
    taken="SELECT prosrc, proargtypes::regtype[], coalesce(proallargtypes::regtype[]::text, prorettype::regtype::text)
        FROM pg_proc WHERE probin = '\$libdir/pgbench_ext' ORDER BY 1"
    is "$(comm -3 <(in_db granted "$taken" | sort) <(in_db fresh "$taken" | sort) | tr -d '\t' | cut -d'|' -f1 |
        uniq -d)" '' "from $old: no symbol takes or returns other types than it did"
    # A row of each table that pg_dump carries, a value in each column.
    in_db granted "DO \$\$ DECLARE t regclass; BEGIN
        FOR t IN SELECT c.oid FROM pg_extension e, unnest(e.extconfig) AS u (relation)
        JOIN pg_class c ON c.oid = u.relation AND c.relkind = 'r' WHERE e.extname = 'pgbench_ext' LOOP
            EXECUTE format('INSERT INTO %1\$s SELECT * FROM jsonb_populate_record(NULL::%1\$s, (
                SELECT jsonb_object_agg(attname, CASE
                    WHEN attname = ''purpose'' THEN ''\"trial\"''
                    WHEN attname IN (''feeders'', ''answers'') THEN ''[]''
                    WHEN attname = ''environment'' THEN ''{\"unserved_defaults\": [\"jit\"]}''
                    WHEN attname = ''outcome'' AND atttypid = ''text''::regtype THEN ''\"processed\"''
                    WHEN attname = ''part_of'' THEN ''{\"run_id\": 7}''
                    WHEN attname ~ ''^(cpu_|share|log_rate)'' THEN ''1''
                    WHEN attname = ''status'' THEN ''\"completed\"'' WHEN attname = ''system_settings'' THEN ''null''
                    WHEN atttypid = ''boolean''::regtype THEN ''false'' WHEN atttypid = ''jsonb''::regtype THEN ''{}''
                    WHEN atttypid = ''timestamptz''::regtype THEN ''\"2026-01-01 00:00:00+00\"''
                    WHEN atttypid::regtype::text LIKE ''%%[]'' THEN ''[]''
                    WHEN atttypid = ''text''::regtype THEN ''\"upgrade_ann\"'' ELSE ''7'' END::jsonb)
                FROM pg_attribute WHERE attrelid = %1\$L::regclass AND attnum > 0 AND NOT attisdropped))', t);
        END LOOP; END \$\$"
    # And a fixture, loaded, with a workload on it, a server for targets, and views of a user.
    in_db granted 'CREATE SCHEMA bench_data' \
        'CREATE TABLE bench_data.upgrade_rows AS SELECT id FROM generate_series(1, 10) AS id' \
        "INSERT INTO bench.custom_fixtures (name, owner, ddl, rows_query, rows) VALUES ('upgrade_rows', 'postgres',
            'CREATE TABLE upgrade_rows (id bigint)', 'SELECT generate_series(\$1, \$2)', 10)" \
        "INSERT INTO bench.fixtures (name, owner, schema, relations, rows, options, loaded_at, load_secs) VALUES
            ('upgrade_rows', 'postgres', 'bench_data', '{bench_data.upgrade_rows}', 10, '{}', '2026-01-01', 1)" \
        "INSERT INTO bench.workloads (name, owner, fixture, script) VALUES ('upgrade_own', 'postgres', 'upgrade_rows',
            E'\\\\set id random(1, :rows)\\nSELECT 1 / count(*) FROM upgrade_rows WHERE id = :id;')" \
        "INSERT INTO bench.workloads (name, owner, script)
            SELECT 'cap/' || i, 'upgrade_ann', 'SELECT 1;' FROM generate_series(1, 3) AS i" \
        "INSERT INTO bench.capture_statements (capture, number, workload, roles, calls, share, kept) VALUES
            ('cap', 1, 'cap/1', '{upgrade_bob}', 1, 0.4, true),
            ('cap', 2, 'cap/2', '{upgrade_ann,upgrade_bob}', 1, 0.3, true),
            ('cap', 3, 'cap/3', '{upgrade_gone}', 1, 0.3, true)" \
        "SELECT setval('bench.run_id_seq', 7)" "CREATE SERVER upgrade_server FOREIGN DATA WRAPPER bench_wire" \
        'CREATE VIEW upgrade_view AS SELECT run_id, role, tps FROM bench.runs JOIN bench.summary USING (run_id)' \
        >/dev/null
    contents=$(in_db granted "$dumped")
    rows=$(in_db granted "$(in_db granted "$dumped")" | sed 's/unserved_defaults/unsupported_settings/' | sort)
    # A dump of that version is for that version, which is then updated.
    PGDATABASE=granted pg_dump -Fc >"$work/dump"
    in_db restored "CREATE EXTENSION pgbench_ext VERSION '$old'"
    pg_restore -d restored "$work/dump" >/dev/null 2>"$work/errors"
    in_db restored 'ALTER EXTENSION pgbench_ext UPDATE' 2>>"$work/errors"
    is "$(grep 'ERROR: ' "$work/errors")" \
        'pg_restore: error: could not execute query: ERROR:  schema "bench" already exists' \
        "from $old: a dump is restored and updated"
    is "$(($(wc -l <<<"$rows") >= 17))" 1 "from $old: with rows in each table"
    is "$(in_db restored "$(moved "$contents")" | sort | grep -v '|cap/')" "$(grep -v '|cap/' <<<"$rows")" \
        "from $old: and they are the same here"
    is "$(in_db restored "SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext'")" "$version" \
        "from $old: in a database of version $version"
    in_db restored "SELECT count(*) FROM bench.summary, bench.runs, bench.history" >/dev/null 2>"$work/errors"
    is "$(cat "$work/errors")" '' "from $old: and views read them"
    goes_on restored "from $old, restored"

    of_bench="SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'bench'::regnamespace ORDER BY 1"
    names=$(comm -12 <(in_db granted "$of_bench" | sort) <(in_db fresh "$of_bench" | sort) | paste -sd' ')
    tables=$(in_db granted "SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'bench'::regnamespace
        AND relkind IN ('r', 'v')")
    for call in "bench.run('pk_select')" "bench.load('pk')" "bench.prune('1 day')" 'bench.report(1)' \
        "bench.export('{1}')" "count(*) FROM bench.start_sweep('pk_select', '{1}')" "bench.percentile(1, 0.5)"; do
        try_in granted "SELECT $call"
        # 55000, or its symbol is gone or takes other arguments.
        like "$OUT" \
            'ERROR:  (55000: .*version.*HINT: .*ALTER EXTENSION pgbench_ext UPDATE|42883: could not|XX000: unbox)' \
            "at $old: $call is refused"
    done

    # A user's view on a view that has changed.
    in_db granted 'CREATE VIEW upgrade_broken AS SELECT role FROM bench.summary_of_all'
    before=$(compared granted)
    try_in granted 'ALTER EXTENSION pgbench_ext UPDATE'
    like "$OUT" 'ERROR:  2BP01: cannot drop view summary_of_all because .*view public.upgrade_broken depends' \
        "from $old: a user's view on a changed view ends the update"
    is "$(compared granted)" "$before" "from $old: and nothing has changed"
    in_db granted 'DROP VIEW upgrade_broken'

    wanted=$(in_db granted "${functions/\%s/$names}") wanted_tables=$(in_db granted "${relations/\%s/$tables}")
    in_db granted 'BEGIN' 'SAVEPOINT s' 'ALTER EXTENSION pgbench_ext UPDATE' 'COMMIT' 2>"$work/errors"
    is "$(cat "$work/errors")" '' "from $old: the update succeeds below another one of the user's"
    is "$(in_db granted "${functions/\%s/$names}")" "$wanted" \
        "from $old: whoever was granted a function has its successor"
    is "$(in_db granted "SELECT has_function_privilege('upgrade_bob', 'bench.stop_capture(text)', 'EXECUTE')")" t \
        "from $old: also where it has another name"
    is "$(in_db granted "${relations/\%s/$tables}")" "$wanted_tables" "from $old: and tables and views"
    is "$(in_db granted "$(moved "$contents")" | sort | grep -v '|cap/')" "$(grep -v '|cap/' <<<"$rows")" \
        "from $old: the rows are still there"
    is "$(in_db granted "SELECT DISTINCT owner_oid::regrole FROM bench_internal.run_log" \
        "SELECT role || tps FROM upgrade_view" "SELECT srvname FROM pg_foreign_server" | paste -sd' ')" \
        'upgrade_ann upgrade_ann1 upgrade_server' "from $old: they belong to their roles; a user's view and server work"
    is "$(in_db granted "SELECT string_agg(concat_ws(' ', w.owner_oid::regrole, s.role), ', ' ORDER BY w.name)
        FROM bench.workloads w JOIN bench.capture_statements s ON s.workload = w.name WHERE kept AND private")" \
        'upgrade_bob upgrade_bob, -, - upgrade_gone' "from $old: captured statements are the role's that executed them"
    PGDATABASE=granted pg_dump | PGDATABASE=again psql -XAtq -v ON_ERROR_STOP=1 >/dev/null 2>"$work/errors"
    is "$(cat "$work/errors")" '' "from $old: pg_dump and restore after the update"
    is "$(in_db again "${functions/\%s/$names}")" "$wanted" "from $old: pg_dump carries the users' grants"
    is "$(in_db again "${relations/\%s/$tables}")" "$wanted_tables" "from $old: of tables, views and columns, too"
    goes_on granted "from $old, updated"
    in_db granted 'DROP VIEW upgrade_view' 'DROP SERVER upgrade_server' 'DROP OWNED BY upgrade_ann, upgrade_bob'
    is "$(diff <(bare fresh) <(bare granted) | head -n 40)" '' \
        "from $old: with grants and views the same as a fresh installation, but for these"
    for db in upgraded granted restored again; do in_db postgres "DROP DATABASE $db" "CREATE DATABASE $db"; done

    # Jobs of pg_cron call what has moved; those of other databases, and other calls, are not ours to change.
    if [ "${#cron[@]}" = 0 ]; then
        skip 'pg_cron is not installed' "from $old: jobs of pg_cron"
        continue
    fi
    sql 'CREATE EXTENSION pg_cron' "CREATE EXTENSION pgbench_ext VERSION '$old'" \
        "SELECT cron.schedule('ours', '0 3 * * *', \$\$SELECT bench.start_scheduled('pk_update', secs => 5)\$\$),
            cron.schedule_in_database('theirs', '0 3 * * *', 'SELECT bench.start_scheduled(1)', 'fresh'),
            cron.schedule('other', '0 3 * * *', 'SELECT 1 -- SELECT bench.start_scheduled(')" \
        'ALTER EXTENSION pgbench_ext UPDATE' >/dev/null 2>"$work/errors"
    is "$(cat "$work/errors")" '' "from $old: a database with pg_cron is updated"
    is "$(sql "SELECT string_agg(jobname || ': ' || command, ', ' ORDER BY jobid) FROM cron.job")" \
        "ours: SELECT bench_internal.start_scheduled('pk_update', secs => 5), theirs: SELECT bench.start_scheduled(1), \
other: SELECT 1 -- SELECT bench.start_scheduled(" "from $old: a job calls what it called, where that is now"
    is "$(sql 'DROP EXTENSION pgbench_ext, pg_cron' 2>&1)" '' "from $old: both are dropped"
done
is "$(sql 'DROP ROLE upgrade_ann, upgrade_bob, upgrade_eve' 2>&1)" '' 'no grant is left behind'

no_restart 'the server has not gone down'
log_is_clean
done_testing
