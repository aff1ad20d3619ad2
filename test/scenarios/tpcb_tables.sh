#!/usr/bin/env bash
# Fixture tpcb is what `pgbench -i` of the same version makes: definitions, names and contents, with each option.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

TABLES='{bench_data.pgbench_accounts,bench_data.pgbench_tellers,bench_data.pgbench_branches,bench_data.pgbench_history}'

faults_start
sql 'CREATE SCHEMA theirs' 'SET allow_in_place_tablespaces = on' "CREATE TABLESPACE tables LOCATION ''" \
    "CREATE TABLESPACE indexes LOCATION ''"

theirs() { PGOPTIONS='-c search_path=theirs' pgbench -i -q "$@" >"$work/pgbench" 2>&1 ||
    { diag "$(cat "$work/pgbench")"; return 1; }; }

# What pg_dump says of a schema, but for the schema's name.
definition() { # SCHEMA
    pg_dump --schema-only -n "$1" | sed -E "s/\b$1\b/SCHEMA/g; /^\\\\(un)?restrict /d"
}

# All relations, with what pg_dump leaves out.
relations() { # SCHEMA
    sql "SET search_path = $1" \
        "SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, c.relispartition, t.spcname, c.reltuples,
            c.relhastriggers,
                pg_get_expr(c.relpartbound, c.oid), obj_description(c.oid, 'pg_class')
         FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
         WHERE c.relnamespace = '$1'::regnamespace ORDER BY c.relname COLLATE \"C\"" \
        "SELECT conrelid::regclass, conname, contype, convalidated, confrelid::regclass, conindid::regclass, conislocal,
            coninhcount,
                pg_get_constraintdef(oid)
         FROM pg_constraint WHERE connamespace = '$1'::regnamespace ORDER BY conrelid::regclass::text COLLATE \"C\",
         conname COLLATE \"C\""
}

# Every row, in order.
content() { # SCHEMA
    local table
    for table in branches tellers accounts history; do
        sql "SET search_path = $1" "SELECT '$table', count(*), md5(string_agg(t::text, E'\n'
            ORDER BY t::text COLLATE \"C\")) FROM pgbench_$table AS t"
    done
}

same() { # DESCRIPTION
    is "$(definition bench_data)" "$(definition theirs)" "$1: pg_dump tells no difference"
    is "$(relations bench_data)" "$(relations theirs)" "$1: relations and constraints are the same"
    is "$(content bench_data)" "$(content theirs)" "$1: so are all rows"
}

# `pgbench -i` with arguments and a load with options make the same.
compare() { # DESCRIPTION OPTIONS ARGUMENT…
    local description=$1 options=$2 rows
    shift 2
    ok "$description: pgbench -i" theirs "$@"
    rows=$(sql 'SET client_min_messages = warning' "SELECT bench.load('tpcb', jobs => 3, options => '$options')" 2>&1)
    is "$rows" "$(sql 'SELECT count(*) FROM theirs.pgbench_accounts')" \
        "$description: the load returns the number of accounts"
    same "$description"
    is "$(sql "SELECT rows, options = '$options', relations FROM bench.fixtures WHERE name = 'tpcb'")" \
        "$rows|t|$TABLES" \
        "$description: it is registered"
    is "$(sql "SELECT table_bytes = sum(pg_table_size(oid)) AND index_bytes = sum(pg_indexes_size(oid))
        FROM bench.fixtures,
               pg_class WHERE name = 'tpcb' AND relnamespace = 'bench_data'::regnamespace AND relkind = 'r'
               AND relname <> 'pk'
               GROUP BY table_bytes, index_bytes")" t "$description: with all its bytes"
}

sql "SELECT bench.unload('pk')" >/dev/null # only tpcb is compared
compare 'plain' '{}'
is "$(sql "SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'bench_data'::regnamespace
    AND relkind = 'r'
           AND relallvisible <> relpages")" '' 'and vacuumed'
compare 'scale 2, fillfactor 80, unlogged' '{"scale": 2, "fillfactor": 80, "unlogged": true}' -s 2 -F 80 \
    --unlogged-tables
compare 'tablespaces' '{"tablespace": "tables", "index_tablespace": "indexes"}' --tablespace=tables \
    --index-tablespace=indexes
compare 'foreign keys' '{"foreign_keys": true, "unlogged": false}' --foreign-keys
compare 'three partitions by range' '{"partitions": 3, "fillfactor": 70}' --partitions=3 -F 70
compare 'four partitions by hash, foreign keys' '{"partitions": 4, "partition_method": "hash", "foreign_keys": true}' \
    --partitions=4 --partition-method=hash --foreign-keys
compare 'partitions, unlogged, tablespaces, foreign keys' \
    '{"partitions": 2, "partition_method": "range", "unlogged": true, "tablespace": "tables",
        "index_tablespace": "indexes",
    "foreign_keys": true}' \
    --partitions=2 --unlogged-tables --tablespace=tables --index-tablespace=indexes --foreign-keys
compare 'no partitions' '{"partitions": 0}' --partitions=0

# Without rows: what the steps before and after the generation make.
for arguments in '' '--partitions=3' '--partitions=3 --partition-method=hash'; do
    options='{}'
    case $arguments in
    *hash) options='{"partitions": 3, "partition_method": "hash"}' ;;
    *=3) options='{"partitions": 3}' ;;
    esac
    # shellcheck disable=SC2086 # a list of words
    theirs -I dtvp $arguments
    is "$(sql 'SET client_min_messages = warning' "SELECT bench.load('tpcb', 0, options => '$options')" 2>&1)" 0 \
        "empty tables $arguments: no row is loaded"
    same "empty tables $arguments"
done

# Scripts are pgbench's, word for word.
for pair in tpcb:tpcb-like tpcb_simple_update:simple-update tpcb_select:select-only; do
    is "$(sql "SELECT script FROM bench.workloads WHERE name = '${pair%%:*}'")" \
        "$(pgbench --show-script="${pair#*:}" 2>&1 | grep -v '^-- ')" "workload ${pair%%:*} is pgbench's ${pair#*:}"
done

# Partitions are counted with their table.
sql "SELECT bench.load('tpcb', options => '{\"partitions\": 3}')" "SELECT bench.run('tpcb', 2, transactions => 50)" \
    >/dev/null 2>&1
is "$(sql "SELECT counter, harness, ok FROM bench.audit($(last_run)) WHERE counter LIKE 'n_tup%'
    ORDER BY counter COLLATE \"C\"")" \
    $'n_tup_del|0|t\nn_tup_ins|100|t\nn_tup_upd|300|t' 'a run on partitions is audited'

# Account ids are bigint from scale 20000 on, as the tables show that such a load fills. Then it is canceled.
types() { # SCHEMA
    sql "SELECT c.relname, attname, format_type(atttypid, atttypmod) FROM pg_attribute
        JOIN pg_class c ON c.oid = attrelid
         WHERE relnamespace = '$1'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
         ORDER BY c.relname COLLATE \"C\", attnum"
}
bounds() { # SCHEMA
    sql "SELECT relname, pg_get_expr(relpartbound, oid) FROM pg_class
         WHERE relnamespace = '$1'::regnamespace AND relispartition AND relkind = 'r' ORDER BY relname COLLATE \"C\""
}
for scale in 19999 20000; do
    type=integer
    [ $scale -lt 20000 ] || type=bigint
    theirs -I dt -s $scale --partitions=3
    session big "SELECT bench.load('tpcb', options => '{\"scale\": $scale, \"partitions\": 3}')"
    eventually 20 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext loader%')"
    loading=$(sql "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, 'bench_loading_')")
    is "$(types "$loading")" "$(types theirs)" "scale $scale: columns have the same types"
    like "$(types "$loading")" "pgbench_history\|aid\|$type" "scale $scale: account ids are $type"
    is "$(bounds "$loading")" "$(bounds theirs)" "scale $scale: partitions have the same bounds"
    sql "SELECT pg_cancel_backend($(pid_of big))" >/dev/null
    ended big
    like "$OUT" 'ERROR:  57014' "scale $scale: the load is canceled"
    nothing_left "scale $scale" 10
    is "$(sql "SELECT count(*) FROM pg_namespace WHERE starts_with(nspname, 'bench_loading')")" 0 \
        "scale $scale: it leaves nothing"
    is "$(sql "SELECT rows, (SELECT count(*) FROM bench_data.pgbench_accounts) FROM bench.fixtures
        WHERE name = 'tpcb'")" \
        '100000|100000' "scale $scale: the fixture is as it was"
done

sql "SELECT bench.unload('tpcb')" >/dev/null
is "$(relations bench_data)" '' 'bench.unload leaves nothing'
nothing_left 'at the end'
log_is_clean
done_testing
