#!/usr/bin/env bash
# Runs one of sql/*.sql by pg_regress in a cluster of its own. PG_CONFIG says which server.
set -euo pipefail
# shellcheck source=test/lib/cluster.sh
. "${BASH_SOURCE%/*}/cluster.sh"
# shellcheck source=test/lib/tap.sh
. "${BASH_SOURCE%/*}/tap.sh"

name=${1##*/}
name=${name%.sql}
work=$(mktemp -d)
at_exit 'rm -rf "$work"'

cluster_start 'fsync = off'
pg_regress=$(dirname "$("$PG_CONFIG" --pgxs)")/../../src/test/regress/pg_regress
if "$pg_regress" --inputdir=. --outputdir="$work" --bindir="$("$PG_CONFIG" --bindir)" --dbname=regress \
    --load-extension=pgbench_ext "$name" >"$work/out" 2>&1; then
    tap_pass "$name"
else
    tap_fail "$name" "$(cat "$work/regression.diffs" 2>/dev/null || cat "$work/out")"
fi
is "$(grep -E "terminated by signal|$BAD_WORDS" "$PGHOST/log")" '' "nothing bad is in the server's log"
done_testing
