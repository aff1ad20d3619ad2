#!/usr/bin/env bash
# docs/upgrades.md: its examples from an older server, where there is one, to this one. A statement that lost its index
# is slower there, also where the capture has stored its values; one that got one is faster, one that lost its function
# fails, and the others are left alone. What is not replayed is counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

examples() { python3 test/lib/documents.py script "$1" "$work" docs/upgrades.md; }
adapted() { # KIND
    examples "$1" | sed -E "s/'5432'/'$PGPORT'/; s#host 'old'#host '$old'#; s#host 'new'#host '$new'#
        s/dbname 'app'/dbname 'postgres'/; s/ OPTIONS \(user .*\)//
        s/secs => 600/secs => 0/; s/clients => 8/clients => 4/; s/warmup => 30/warmup => 1/; s/secs => 300/secs => 8/"
}

preload="shared_preload_libraries = 'pg_stat_statements'"
older=${OLD_PG_CONFIG:-$PG_CONFIG}
[ -e "$("$older" --pkglibdir)/pgbench_ext.so" ] || older=$PG_CONFIG
by_older() { PATH=$("$older" --bindir):$PATH LD_LIBRARY_PATH=$("$older" --libdir) "$@"; }
# Function label is inlined, as it is where no sensor looks at calls.
export SENSOR_LIBRARIES=
CLUSTER_TEMPLATE='' by_older cluster_start 'fsync = off' "$preload"
old=$PGHOST
at_exit "PGHOST=$old cluster_remove"
sql 'CREATE EXTENSION pg_stat_statements' 'CREATE EXTENSION pgbench_ext' \
    'CREATE TABLE items (id int PRIMARY KEY, kind int, price int, note text)' \
    "INSERT INTO items SELECT g, g % 1000, g, repeat('x', 50) FROM generate_series(1, 60000) AS g" \
    'CREATE INDEX items_kind ON items (kind)' 'VACUUM ANALYZE items' \
    "CREATE FUNCTION label(int) RETURNS text LANGUAGE sql STABLE AS 'SELECT \$1::text'" >/dev/null
CLUSTER_TEMPLATE='' cluster_start 'fsync = off' "$preload"
new=$PGHOST
sql 'CREATE EXTENSION pg_stat_statements' 'CREATE EXTENSION pgbench_ext'
PGHOST=$old by_older pg_dump -N 'bench*' | sed '/EXTENSION/d' | psql -Xq -v ON_ERROR_STOP=1 -o /dev/null
sql 'DROP INDEX items_kind' 'CREATE INDEX items_price ON items (price)' 'ANALYZE items'

PGHOST=$old sql 'SELECT pg_stat_statements_reset()' >/dev/null
for id in 1 77 4999 13 812; do
    PGHOST=$old sql "SELECT note FROM items WHERE id = $id" \
        "SELECT count(*) FROM items WHERE kind IN ($((id % 1000)), $((id % 1000 + 1)))" \
        "SELECT note FROM items WHERE price = $id" "SELECT label(id) FROM items WHERE id = $id" >/dev/null
done
PGHOST=$old sql 'UPDATE items SET price = price WHERE id = 1'
adapted upgrades_old | PGHOST=$old psql -XAtq -v ON_ERROR_STOP=1 >/dev/null 2>&1
copied() { # FROM TO
    examples upgrades_copy | sed -E "s#-h old#-h '$1'#; s#-h new#-X -h '$2'#; s/ app( [<>])/ postgres\\1/" \
        >"$work/copy.sh"
    (cd "$work" && bash -eu "$work/copy.sh" 2>&1)
}
like "$(copied "$old" "$new")" \
    'NOTICE: +capture app: [0-9]+ of [0-9]+ statements, with [0-9.]+ % of the captured time,' \
    'the import says what cannot be replayed'
is "$(sql "SELECT count(*) FROM bench.capture_statements WHERE reason = 'its values were not exported'")" 0 \
    'not for lack of values'
sql 'CREATE OR REPLACE FUNCTION label(int) RETURNS text LANGUAGE plpgsql STABLE AS
    $$ BEGIN RETURN $1 / ($1 - $1); END $$'
adapted upgrades_new >"$work/script"
ok 'the examples run' psql -XAtq -v ON_ERROR_STOP=1 -f "$work/script" -o "$work/report"
run=$(sql 'SELECT max(run_id) FROM bench.duels')
status_is "$run" completed 'the duel of both servers'
sql "SELECT bench.verify_report($run, 'junit')" >"$work/junit.xml"
ok 'the report for continuous integration is XML' python3 -c \
    'import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])' "$work/junit.xml"
outcome() { # PATTERN
    python3 - "$work/junit.xml" "$1" <<'P'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter('testcase'):
    if sys.argv[2] in case.get('name'):
        failure = case.find('failure')
        skipped = case.find('skipped') is not None
        print('skipped' if skipped else 'passed' if failure is None else failure.get('type'))
P
}
is "$(sql "SELECT count(DISTINCT s.query) FROM bench.captured_rows JOIN bench.capture_statements s USING (workload)
    WHERE s.query LIKE '%kind IN%'")" 1 'of one statement the capture has stored values'
is "$(outcome 'kind IN')" slower 'which is slower without its index'
is "$(outcome 'not replayed: UPDATE')" skipped 'one that is not replayed is skipped'
is "$(outcome 'label(id)')" fails 'the one whose function is broken fails'
is "$(outcome 'note FROM items WHERE price =')" passed 'the one with a new index is none of them'
share="SELECT sum(share) FROM bench.capture_statements WHERE capture = 'app' AND NOT kept"
failing() { sql "SELECT bench.verify_report($run, 'junit', max_missing => $1)" | grep -c 'type="not replayed"'; }
is "$(failing "($share) * 0.9")" 1 'more of the captured time is missing than may be'
is "$(failing 1)" 0 'or less'
sql "SELECT bench.verify_report($run, 'markdown')" >"$work/markdown"
like "$(sed -n 3p "$work/markdown")" 'not replayed: [0-9,]+ statements? with [0-9.]+ % of the captured time' \
    'the first line has what is not replayed'
version() { "$1" --version | cut -d ' ' -f 2; }
like "$(cat "$work/markdown")" "old, PostgreSQL $(version "$older").*new, PostgreSQL $(version "$PG_CONFIG")" \
    'both versions are told'
is "$(sql "SELECT a_plan LIKE '%items_kind%', b_plan LIKE '%Seq Scan%' FROM bench.duel_statements($run)
    WHERE statement LIKE '%kind IN%'")" 't|t' 'with its plans on both'
is "$(sql "SELECT verdict FROM bench.duel_statements($run) WHERE statement LIKE '%price%'")" faster \
    'which is faster'
# What pg_stat_statements of a target counts is known here.
is "$(sql "SELECT s.workload, c.rows / c.calls, (c.shared_blks_hit + c.shared_blks_read) / c.calls > 2
    FROM bench.scripts s JOIN bench_internal.call_log c USING (run_id, script)
    JOIN bench.statements x USING (run_id, script)
    WHERE s.run_id = $run AND x.statement LIKE '%note%id =%' ORDER BY script" | sed 's/^[^|]*\[/[/')" '[a]|1|t
[b]|1|t' 'rows and blocks are known of both'
run=$(sql "SELECT bench.run('app', driver => 'wire', target => 'old', clients => 2, secs => 2)" 2>/dev/null)
is "$(sql "SELECT count(*) > 3, bool_and(score > 0.9 OR query LIKE '%kind IN%')
    FROM bench.fidelity($run) f JOIN bench.capture_statements s USING (workload) WHERE f.score IS NOT NULL")" \
    't|t' 'so is how a replay over a connection resembles what was captured'
log_is_clean
done_testing
