#!/usr/bin/env bash
# Statistics of other sessions that come late: a run is not accused of what they did before it, and what they do
# meanwhile is seen.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# Others insert rows here.
UNCHECKED=pk

faults_start

UPDATE="UPDATE bench_data.pk SET info = 'others' WHERE id BETWEEN 1 AND 7"

# A session that is fed line by line.
coproc OTHER { psql -XAtq 2>&1; }
say() { echo "$1" >&"${OTHER[1]}"; }
# Waits until everything said so far is done, without another statement.
said() {
    say "\\echo done"
    local line
    while read -r -t 20 line <&"${OTHER[0]}"; do [ "$line" != "done" ] || return 0; done
}
n_tup_upd() { sql "SELECT $2 FROM bench.audit($1) WHERE counter = 'n_tup_upd'"; }
measuring() { eventually 15 "SELECT status = 'running' FROM bench.runs WHERE run_id = $1"; }
# A second UPDATE within a second of the first is not handed in at once.
unsent() {
    say 'SELECT pg_stat_force_next_flush();'
    say 'SELECT 1;'
    say "$UPDATE;"
    said
}

# One that has worked before the run, and hands it in meanwhile.
unsent
RUN=$(sql "SELECT bench.start('pk_update', secs => 1)")
measuring "$RUN"
say 'SELECT pg_stat_force_next_flush();'
said
status_is "$RUN" completed 'counts of before the run'
is "$(n_tup_upd "$RUN" 'server - harness')" 7 'counts of before the run: they come while it measures'
is "$(n_tup_upd "$RUN" 'ok IS NULL')" t 'counts of before the run: the audit does not accuse'
like "$(n_tup_upd "$RUN" reason)" 'other sessions were at work' 'counts of before the run: the reason says why'
like "$(sql "SELECT severity, finding FROM bench.findings($RUN) WHERE topic = 'audit'")" \
    '^notice.The server counted more than the clients: .*n_tup_upd by 7' 'counts of before the run: a finding tells it'
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE ok AND counter IN ('n_tup_ins', 'n_tup_del')")" 2 \
    'counts of before the run: what agrees is judged'

# One that is in the middle of a transaction.
say 'BEGIN;'
say "INSERT INTO bench_data.pk VALUES (-1, 'open');"
said
RUN=$(sql "SELECT bench.start('pk_update', secs => 1)")
measuring "$RUN"
say 'COMMIT;'
say 'SELECT pg_stat_force_next_flush();'
said
status_is "$RUN" completed 'a transaction that is open'
is "$(sql "SELECT server - harness FROM bench.audit($RUN) WHERE counter = 'n_tup_ins'")" 1 \
    'a transaction that is open: its row comes while it measures'
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 \
    'a transaction that is open: the audit does not accuse'

# The session that starts the run itself.
say "SELECT pg_stat_force_next_flush(); SELECT 1;"
say "$UPDATE;"
say "SELECT bench.start('pk_update', secs => 1) AS run_id \\gset"
say 'SELECT pg_stat_force_next_flush();'
said
RUN=$(last_run)
status_is "$RUN" completed "the starter's own counts"
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 \
    "the starter's own counts: the audit does not accuse"

# Who was idle for long has nothing to hand in: what it does meanwhile is somebody's work on the run's tables.
say '\q'
eventually 10 "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'
    AND datname = current_database()"
RUN=$(sql "SELECT bench.start('pk_update', secs => 1)")
measuring "$RUN"
sql "$UPDATE" >/dev/null
status_is "$RUN" completed 'work meanwhile'
is "$(n_tup_upd "$RUN" 'ok, server - harness')" 'f|7' 'work meanwhile: the audit tells it'
log_is_clean

done_testing
