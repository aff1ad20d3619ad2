#!/usr/bin/env bash
# Checkpoints and vacuums are planted in a run, and the run has to say when they were. None of it depends on what else
# the machine does.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/observation.sh
. test/lib/observation.sh

faults_start 'checkpoint_timeout = 1h' 'wal_buffers = 16MB' 'wal_compression = on' 'full_page_writes = off'
sql "SELECT bench.load('pk', 1000000)" 'CREATE TABLE other AS SELECT i FROM generate_series(1, 1000) AS i' >/dev/null

checkpoints
unlike "$(causes "$RUN")" 'full-page' 'CHECKPOINT without full_page_writes: images are not named'
unlike "$(sql "SELECT bench.report($RUN)" | tr '\n' ' ')" 'full-page images +rose' \
    'CHECKPOINT without full_page_writes: nor in the report'
is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $RUN AND kind = 'checkpoint'")" 3 \
    'CHECKPOINT without full_page_writes: they are events all the same'
told "$RUN" safety 'full_page_writes = off' 'full_page_writes = off is told'
sound "$RUN" 'CHECKPOINT without full_page_writes'

# Vacuums: by hand, one that is canceled, by autovacuum. What else is announced, beside them.
name='VACUUM'
begin "'pk_update', clients => 2, secs => 9, rate => 500, sample_interval => 0.5"
sql 'VACUUM other' 'SET vacuum_cost_delay = 20' 'SET vacuum_cost_limit = 10' 'SET statement_timeout = 2000' \
    'VACUUM (DISABLE_PAGE_SKIPPING) bench_data.pk' >"$work/vacuum" 2>&1
sleep 1.2 # of two within an interval only one would be seen
sql 'VACUUM (INDEX_CLEANUP off) bench_data.pk'
mkdir "$work/wal" && chmod 777 "$work" "$work/wal"
as_pg timeout 3 pg_receivewal -h "$PGHOST" -p "$PGPORT" -U postgres -D "$work/wal" >/dev/null 2>&1 &
sql 'CREATE INDEX CONCURRENTLY pk_info ON bench_data.pk (info, id)' 'CREATE INDEX ON other (i)'
finish
sql 'DROP INDEX bench_data.pk_info'
is "$(sql "SELECT count(*), min(kind), max(kind), min(relation), max(relation) FROM bench.events
    WHERE run_id = $RUN AND kind LIKE '%vacuum%'")" '2|vacuum|vacuum|bench_data.pk|bench_data.pk' \
    "$name: of the fixture and of no other table, a canceled one too"
like "$(cat "$work/vacuum")" 'statement timeout' "$name: one was canceled"
is "$(sql "SELECT ended - started BETWEEN 1.4 AND 3.5 FROM bench.events WHERE run_id = $RUN AND kind = 'vacuum'
    ORDER BY started LIMIT 1")" t "$name: the canceled one lasted until then"
is "$(sql "SELECT kind, relation, coalesce(ended > started, true) FROM bench.events
    WHERE run_id = $RUN AND kind NOT IN ('vacuum', 'checkpoint') ORDER BY kind" | paste -sd' ')" \
    'create index|bench_data.pk|t standby||t' "$name: an index build and a standby beside it are events too"
told "$RUN" vacuum 'vacuum of bench_data.pk at ' "$name: is told"
is "$(sql "SELECT vacuums FROM bench.relations WHERE run_id = $RUN AND relation = 'bench_data.pk'")" 1 \
    "$name: bench.relations counts the one that ended"
sound "$RUN" "$name"
name='autovacuum'
sql 'ALTER TABLE bench_data.pk SET (autovacuum_enabled = on, autovacuum_vacuum_threshold = 100,
    autovacuum_vacuum_scale_factor = 0)' \
    'ALTER SYSTEM SET autovacuum = on' 'ALTER SYSTEM SET autovacuum_naptime = 1'
begin "'pk_update', clients => 2, secs => 14, rate => 500, sample_interval => 0.5" 2
sql 'SELECT pg_reload_conf()' 'ANALYZE bench_data.pk' >/dev/null
as_pg pg_basebackup -h "$PGHOST" -p "$PGPORT" -U postgres -D "$PGHOST/backup" -c fast --max-rate 40M >/dev/null 2>&1
finish
sql 'ALTER SYSTEM RESET autovacuum' 'ALTER SYSTEM RESET autovacuum_naptime' 'SELECT pg_reload_conf()' >/dev/null
is "$(sql "SELECT count(*) > 0 AND bool_and(relation = 'bench_data.pk') FROM bench.events
    WHERE run_id = $RUN AND kind = 'autovacuum'")" t "$name: is an event"
is "$(sql "SELECT count(*) FROM bench.events WHERE run_id = $RUN AND kind = 'vacuum'")" 0 \
    "$name: and not a vacuum by hand"
told "$RUN" vacuum 'autovacuum of bench_data.pk' "$name: is told"
is "$(sql "SELECT DISTINCT kind, relation FROM bench.events WHERE run_id = $RUN AND ended IS NOT NULL
    AND kind IN ('analyze', 'backup', 'reload') ORDER BY 1" | paste -sd' ')" 'analyze|bench_data.pk backup| reload|' \
    "$name: an analyze, a base backup and a reload beside it are events too"
sound "$RUN" "$name"
eventually 30 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%')"

nothing_left 'planted events'
log_is_clean
no_restart 'the server has not restarted'
done_testing
