#!/usr/bin/env bash
# What an application's statements return before and after an upgrade: a web shop is captured, and bench.answers
# compares two servers with its data. Two that are equal differ in nothing, and each difference from an older one, which
# OLD_PG_CONFIG names and test/run brings, has a cause.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/shop.sh
. test/lib/shop.sh

faults_start "shared_preload_libraries = 'pg_stat_statements'"
sql 'CREATE EXTENSION pg_stat_statements'
shop_load 0.02 || exit
session capture "SELECT * FROM bench.capture('shop', secs => 5, statements => 50,
    options => '{\"transactions\": false, \"mask\": true}')"
eventually 10 "SELECT status = 'capturing' FROM bench.captures WHERE name = 'shop'"
shop_drive 3 2 && OUT=driven
is "$OUT" driven 'the application sent its statements without an error'
ended capture 120
is "$(sql "SELECT status, error FROM bench.captures WHERE name = 'shop'")" 'completed|' 'the capture is complete'
# Data that stands still.
this=$PGHOST
pg_dump --extension=pg_stat_statements -n public >"$work/shop.sql"

# A server with the same data, as target NAME of the first one.
target() { # NAME HOST
    PGHOST=$this sql "CREATE SERVER $1 FOREIGN DATA WRAPPER bench_wire
            OPTIONS (host '$2', port '$(PGHOST=$2 sql 'SHOW port')', dbname '$PGDATABASE')" \
        "CREATE USER MAPPING FOR CURRENT_USER SERVER $1"
}
copy() { # NAME
    CLUSTER_TEMPLATE='' cluster_start 'fsync = off' || return
    psql -Xq -f "$work/shop.sql" >"$work/copied" 2>&1
    target "$1" "$PGHOST"
}
compare() { # NAME [EXECUTIONS]
    PGHOST=$this sql 'DROP TABLE IF EXISTS compared' "CREATE TABLE compared AS SELECT * FROM bench.answers('shop',
        '{\"target\": \"this\"}', '{\"target\": \"$1\"}', executions => ${2:-10}, seed => 3, limit_secs => 60)"
}
of_this() { PGHOST=$this sql "$@"; }

target this "$this"
copy equal || exit
compare equal
is "$(of_this "SELECT count(*) >= 30, bool_or(executions > 0) FROM compared")" 't|t' 'its statements are compared'
is "$(of_this "SELECT verdict, cause, statement, example FROM compared
    WHERE (verdict IN ('differs', 'fails') OR kind IS NOT NULL)")" \
    '' 'between equal servers none differs'
diag "$(of_this "SELECT string_agg(format('%s: %s', verdict, count), ', ') FROM (
    SELECT verdict, count(*) FROM compared GROUP BY verdict ORDER BY 2 DESC) AS s")"
# A planted difference, shown without the values of a capture that is masked, also where it has been imported.
sql 'UPDATE products SET name = upper(name)'
is_masked() { # DESC
    compare equal 3
    is "$(of_this "SELECT count(*) > 0, bool_and(kind IN ('values', 'rows', 'order', 'null')),
                      bool_and(NOT jsonb_path_exists(example, 'lax \$[*].*.* ? (@ != null && @ != \"(masked)\")'))
                  FROM compared WHERE verdict = 'differs'")" 't|t|t' "$1"
}
is_masked 'another name differs, and examples are masked'
of_this "SELECT bench.export_capture('shop')" >"$work/shop.json"
of_this "SELECT bench.drop_capture('shop')"
is "$(PGHOST=$this psql -XAt -v document="$(cat "$work/shop.json")" <<<"SELECT bench.import_capture(:'document')" 2>&1 |
    tail -n 1)" shop 'the capture is exported and imported'
is_masked 'and examples are masked still'

if [ -n "${OLD_PG_CONFIG:-}" ]; then
    # Its own programs, with their own libpq, and without the sensor of the other version.
    export SENSOR_LIBRARIES=
    PATH=$("$OLD_PG_CONFIG" --bindir):$PATH LD_LIBRARY_PATH=$("$OLD_PG_CONFIG" --libdir) copy older || exit
    compare older
    is "$(of_this "SELECT statement, verdict, kind FROM compared
        WHERE verdict IN ('differs', 'fails') AND cause IS NULL")" \
        '' 'each difference from an older server has a cause'
    diag "$(of_this "SELECT string_agg(DISTINCT concat_ws(' ', verdict, cause), E'\n') FROM compared
        WHERE verdict <> 'same'")"
else
    skip 'OLD_PG_CONFIG names no older server' 'an older server'
fi
done_testing
