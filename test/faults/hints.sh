#!/usr/bin/env bash
# Statements that pgbench takes by default and that cannot be prepared as they are written: the error says what to do,
# with both drivers, and as the hint says they run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

# What the run says of its error, as SQLSTATE: message, and HINT.
said() { # SCRIPT DRIVER ARGUMENTS
    try "SELECT bench.run(script => \$script\$$1\$script\$, transactions => 2, driver => '$2' ${3:-})"
    RUN=$(last_run)
}
VARIABLE="A variable stands where the server takes no parameter. Use query_mode => 'simple'"
for driver in engine wire; do
    while IFS='|' read -r name statement; do
        script="\\set v 5
\\set f 50
${statement//\\n/$'\n'}"
        said "$script" "$driver"
        like "$OUT" "HINT: *$VARIABLE" "$driver: $name: the hint names query_mode"
        said "$script" "$driver" ", query_mode => 'simple'"
        status_is "$RUN" completed "$driver: $name: which takes it"
    done <<'CASES'
a setting|BEGIN;\nSET LOCAL lock_timeout = :f;\nEND;
a storage parameter|BEGIN;\nALTER TABLE bench_data.pk SET (fillfactor = :f);\nROLLBACK;
a number of rows to fetch|BEGIN;\nDECLARE c CURSOR FOR SELECT 1;\nFETCH :v FROM c;\nEND;
an argument of EXECUTE|PREPARE p AS SELECT $1::int;\nEXECUTE p(:v);\nDEALLOCATE p;
CASES
    said 'SELECT 1 \; SELECT 2;' "$driver"
    like "$OUT" "HINT: *..; sends several statements at once. Use query_mode => 'simple'" "$driver: several statements"
    said 'SELECT 1 \; SELECT 2;' "$driver" ", query_mode => 'simple'"
    status_is "$RUN" completed "$driver: several statements: which takes them"
    said 'COPY bench_data.pk TO STDOUT;' "$driver"
    like "$OUT" '0A000: COPY from or to the client is not possible: clients of a run neither send nor keep rows' \
        "$driver: COPY"
done

# As in pgbench: what was prepared is gone, and a statement that comes later is prepared then.
cat >"$work/discard" <<'SCRIPT'
DISCARD ALL;
SELECT 1;
SCRIPT
pgbench -n -M prepared -t 2 -f "$work/discard" >"$work/pgbench" 2>&1
like "$(cat "$work/pgbench")" 'transactions actually processed: 1/2' 'pgbench: DISCARD ALL ends the second transaction'
for driver in engine wire; do
    said "$(cat "$work/discard")" "$driver"
    is "$(sql "SELECT status, transactions FROM bench.summary WHERE run_id = $RUN")" \
        'incomplete|1' "$driver: and so it does"
    is "$(sql "SELECT sqlstate FROM bench.errors WHERE run_id = $RUN")" 26000 "$driver: with the server's SQLSTATE"
    for mode in extended simple; do
        said "$(cat "$work/discard")" "$driver" ", query_mode => '$mode'"
        status_is "$RUN" completed "$driver, $mode: there is nothing to forget"
    done
done

# A load's statements fire the caller's event triggers.
sql 'CREATE TABLE ddl_log (tag text)' "CREATE FUNCTION log_ddl() RETURNS event_trigger LANGUAGE plpgsql AS
    \$\$ BEGIN INSERT INTO ddl_log VALUES (tg_tag); END \$\$" \
    'CREATE EVENT TRIGGER log_ddl ON ddl_command_end EXECUTE FUNCTION log_ddl()' >/dev/null
try "SELECT bench.load('log')"
like "$OUT" 'relation "ddl_log" does not exist.*HINT:  A function that the load has called, of an event trigger' \
    'an event trigger that names a table without its schema'
sql 'ALTER FUNCTION log_ddl SET search_path = public' >/dev/null
is "$(sql "SELECT bench.load('log')" 2>/dev/null)" 0 'and what the hint says helps'
sql 'DROP EVENT TRIGGER log_ddl'

no_restart 'the server has not restarted'
done_testing
