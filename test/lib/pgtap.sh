#!/usr/bin/env bash
# Runs one file of pgTAP tests in a cluster of its own, which has what those files need. PG_CONFIG says which server.
set -euo pipefail
# shellcheck source=test/lib/cluster.sh
. "${BASH_SOURCE%/*}/cluster.sh"

cluster_start 'fsync = off' "shared_preload_libraries = 'pg_stat_statements'"
sql 'CREATE EXTENSION pg_stat_statements' 'CREATE EXTENSION pgtap' 'CREATE EXTENSION pgbench_ext'
psql -XAtq -P pager=off -v ON_ERROR_STOP=1 -f "$1"
# The plan is over: the exit status tells.
if grep -E "terminated by signal|$BAD_WORDS" "$PGHOST/log" | sed "s/^/# the server's log: /" | grep .; then exit 1; fi
