#!/usr/bin/env bash
# The README's SQL runs as it stands, from its first example to its last, in one session.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. test/lib/cluster.sh
. test/lib/tap.sh

cluster_start

script=$(awk '/^```sql$/ { on = 1; next } /^```$/ { on = 0 } on' README.md)
is "$(grep -c 'bench\.' <<<"$script" | awk '{ print ($1 > 10) }')" 1 'the README has SQL examples'

# Shorter, for they are run here and not looked at.
script=$(sed -E 's/secs => (10|60)/secs => 2/; s/1000000/20000/; s/clients => 64/clients => 8/' <<<"$script")
if output=$(psql -X -v ON_ERROR_STOP=1 <<<"$script" 2>&1); then
    ok 'every example runs' true
else
    ok 'every example runs' false
    diag "$output"
fi
unlike "$output" 'WARNING' 'no example is warned of'
is "$(sql "SELECT count(*) FROM bench.summary WHERE status NOT IN ('completed', 'canceled')")" 0 'every run of the examples ended well'
is "$(sql "SELECT count(*) FROM bench.runs r, LATERAL bench.audit(r.run_id) a WHERE NOT a.ok")" 0 'no audit of the examples found a difference'

done_testing
