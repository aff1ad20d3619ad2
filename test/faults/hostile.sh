#!/usr/bin/env bash
# Targets that misbehave in every way and at every place: the run ends or goes on until it is stopped, a stop and a
# termination work in any state, no process takes much memory, and the server lives. MODES=all tries all modes of
# test/lib/hostile_modes.py, by hand; MODES='execute/gset:* tls:*' those of these patterns.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'log_min_messages = warning'
sql "SELECT bench.create_workload('hostile', 'SELECT :f')" \
    "SELECT bench.add_feeder('hostile', 'SELECT 1 AS f')" >/dev/null
patterns=()
[ "${MODES:-}" = all ] || read -ra patterns <<<"${MODES:-}"
while IFS= read -r line; do
    case $line in
    'ok - '*) tap_pass "${line#ok - }" ;;
    'not ok - '*) tap_fail "${line#not ok - }" ;;
    *) echo "$line" ;;
    esac
done < <(python3 test/lib/hostile_modes.py "$work" "$PGHOST/data" "${patterns[@]}" 2>&1)
nothing_left 'hostile targets' 8
no_restart 'the server has not restarted'
log_is_clean
done_testing
