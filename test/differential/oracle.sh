#!/usr/bin/env bash
# Generated expressions and scripts, given to the installed pgbench and to the script language of this project:
# crates/protocol/tests/pgbench_oracle. ORACLE_CASES=100000 makes it longer.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/cluster.sh
. test/lib/cluster.sh
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

PGBENCH_ORACLE=$(command -v pgbench)
export PGBENCH_ORACLE
diag "$(pgbench --version)"
OUT=$("${MAKE:-make}" -s --no-print-directory oracle-test 2>&1)
while read -r _ name _ result; do
    name=${name//_/ }
    case $result in
    ok) tap_pass "$name" ;;
    *) tap_fail "$name" "$OUT" ;;
    esac
done < <(grep -E '^test [a-z_0-9:]+ \.\.\. ' <<<"$OUT")
unlike "$OUT" 'skipped: ' 'pgbench has been compared with'
like "$OUT" 'test result: ok\.' 'all comparisons have been made'
done_testing
