#!/usr/bin/env bash
# A storm of faults, SECS seconds of it: calls from several sessions, faults among them, and after each round the
# invariants. 120 s, or without FULL 20 s of a schedule that is always the same. SEED repeats a schedule, though not the
# interleaving; ROUND makes only that round, again and again.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/cluster.sh
. test/lib/cluster.sh

storm=
disk=
finish() {
    if [ -n "$storm" ]; then
        kill "$storm" 2>/dev/null
        wait "$storm"
    fi
    # Nothing is held by a server that has gone.
    [ -z "${PGHOST:-}" ] || [ ! -e "$PGHOST/data/postmaster.pid" ] || cluster_stop immediate >/dev/null 2>&1
    [ -z "$disk" ] || umount "$disk" || umount -l "$disk"
}
at_exit finish

# Dynamic shared memory as files, which can be counted. Sessions that wait for a client that does not read shall notice
# that it has gone.
cluster_start 'fsync = off' 'dynamic_shared_memory_type = mmap' "log_line_prefix = '%m [%p] %b %e '" \
    'max_worker_processes = 40' "shared_preload_libraries = 'pg_stat_statements'" 'autovacuum_naptime = 2s' \
    'client_connection_check_interval = 500ms' 'deadlock_timeout = 200ms' || exit

if [ "$(id -u)" -eq 0 ]; then
    mkdir "$PGHOST/disk"
    if mount -t tmpfs -o size=8m tmpfs "$PGHOST/disk" 2>/dev/null; then
        disk=$PGHOST/disk
        chown "$CLUSTER_USER" "$disk"
    fi
    STORM_AS="runuser -u $CLUSTER_USER -- env HOME=/nonexistent"
fi
export STORM_DISK=$disk STORM_AS=${STORM_AS:-} PYTHONDONTWRITEBYTECODE=1
if [ -z "${FULL:-}${SEED:-}${SECS:-}" ]; then SECS=20 SEED=1; fi
python3 test/storm/storm.py "${SECS:-120}" "${SEED:-}" "${ROUND:-}" </dev/null &
storm=$!
wait "$storm"
status=$?
storm=
exit "$status"
