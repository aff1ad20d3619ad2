#!/usr/bin/env bash
# Scripts that wait or loop, stopped from outside; and the wait for the time that a transaction is due at.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh

#
# Stopped and overtaken
#
stopped() { # NAME SCRIPT WAITING-QUERY
    local mode
    in_role "$2"
    for mode in $MODES; do
        RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, secs => 60, query_mode => '$mode')")
        eventually 10 "$3"
        clock
        is "$(sql "SELECT bench.stop($RUN)")" t "$1 ($mode): can be stopped"
        status_is "$RUN" canceled "$1 ($mode)"
        # A second by contract; the rest is for a busy machine.
        within 3000 "$1 ($mode): the stop is prompt"
        is "$(sql "SELECT count(*) FROM bench.errors WHERE run_id = $RUN")" 0 "$1 ($mode): a stop is no error"
        nothing_left "$1 ($mode)"
    done
    no_restart "$1: the server has not restarted"
}
AT_WORK="SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'"
stopped 'a pg_sleep' 'SELECT pg_sleep(100);' "$AT_WORK AND wait_event = 'PgSleep'"
stopped 'a loop without an end' 'SELECT spin();' "$AT_WORK AND state = 'active' AND query LIKE '%spin%'"
stopped 'a \sleep' 'SELECT 1;
\sleep 100 s' "$AT_WORK AND query LIKE 'SELECT 1%' AND state_change < now() - interval '0.1 s'"
stopped 'a \sleep in a block' "BEGIN;
$ADD_TOO
ROLLBACK;
BEGIN;
SELECT 1;
\\sleep 100 s
END;" "$AT_WORK AND query LIKE 'SELECT 1%' AND state_change < now() - interval '0.1 s'"
MODES=prepared
stopped 'a \sleep without an end' "SELECT 1;
\\sleep 9223372036854775807 s" "$AT_WORK AND query LIKE 'SELECT 1%' AND state_change < now() - interval '0.1 s'"
stopped 'an endless loop that catches errors' "DO \$\$ BEGIN LOOP BEGIN PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$;" \
    "$AT_WORK AND state = 'active' AND query LIKE 'DO%'"
# It gives in to the termination that comes after the cancel.
stopped 'a loop that catches its cancel' "DO \$\$ BEGIN LOOP BEGIN PERFORM pg_sleep(10);
    EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END \$\$;" "$AT_WORK AND wait_event = 'PgSleep'"
MODES='simple extended prepared'

# A wait for the time that a transaction is due at.
in_role 'SELECT 1;'
RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, secs => 60, rate => 0.001)")
eventually 10 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
clock
is "$(sql "SELECT bench.stop($RUN)")" t 'a wait for the rate: can be stopped'
status_is "$RUN" canceled 'a wait for the rate'
within 3000 'a wait for the rate: the stop is prompt'
RUN=$(sql 'SET ROLE eve' "SELECT bench.start('w_eve', clients => 2, transactions => 5, rate => 0.001)")
eventually 10 "$AT_WORK AND state = 'idle' AND state_change < now() - interval '0.1 s'"
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
is "$(sql "SELECT pg_sleep(0.5), status FROM bench.runs WHERE run_id = $RUN")" '|running' \
    'a cancel while waiting for the rate: as in an idle session, there is nothing to cancel'
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" >/dev/null
status_is "$RUN" incomplete 'a termination while waiting for the rate'
is "$(error_of "$RUN")" 57P01 'a termination while waiting for the rate: is the error'
nothing_left 'a wait for the rate'
clock
try 'SET ROLE eve' "SELECT bench.run('w_eve', clients => 2, secs => 0.5, rate => 0.001)"
within 4000 'a rate at which nothing is due: the run ends in time'
status_is "$(last_run)" completed 'a rate at which nothing is due'

# The transaction under way is finished.
in_role "BEGIN;
$ADD
\\sleep 1500 ms
END;"
sql 'UPDATE acct SET n = 0'
try 'SET ROLE eve' "SELECT bench.run('w_eve', secs => 0.3)"
RUN=$(last_run)
status_is "$RUN" completed 'a \sleep longer than the run'
is "$(sql 'SELECT n FROM acct WHERE id = 1')" 1 'a \sleep longer than the run: its transaction is finished'
nothing_left 'a \sleep longer than the run'

script_done
