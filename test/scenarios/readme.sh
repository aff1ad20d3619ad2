#!/usr/bin/env bash
# The README's SQL runs as it stands, from its first example to its last, in one session. What needs
# pg_cron, and the file for pg_prove, say so in their fences and are run after that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. test/lib/cluster.sh
. test/lib/tap.sh

has_cron=
[ ! -e "$("$PG_CONFIG" --sharedir)/extension/pg_cron.control" ] || has_cron=yes
cluster_start ${has_cron:+"shared_preload_libraries = 'pg_cron'"}

examples() { awk -v fence="^\`\`\`$1\$" '$0 ~ fence { on = 1; next } /^```$/ { on = 0 } on' README.md; } # FENCE
script=$(examples sql)
is "$(grep -c 'bench\.' <<<"$script" | awk '{ print ($1 > 10) }')" 1 'the README has SQL examples'

# Shorter, for they are run here and not looked at.
shorter() { sed -E \
    's/secs => (10|60)/secs => 2/; s/warmup => 2/warmup => 0/; s/\('pk', 1000000?/('pk', 20000/;
    s/clients => 64/clients => 8/'; }
script=$(shorter <<<"$script")
if output=$(psql -X -v ON_ERROR_STOP=1 <<<"$script" 2>&1); then
    ok 'every example runs' true
else
    ok 'every example runs' false
    diag "$output"
fi
unlike "$output" 'WARNING' 'no example is warned of'
is "$(sql "SELECT count(*) FROM bench.summary WHERE status NOT IN ('completed', 'canceled')")" 0 \
    'every run of the examples ended well'
is "$(sql "SELECT count(*), bool_and(status = 'completed') FROM bench.sweeps")" '3|t' \
    'and every sweep, the stopped and resumed one too'
is "$(sql "SELECT count(*) FROM bench.runs r, LATERAL bench.audit(r.run_id) a WHERE NOT a.ok")" 0 \
    'no audit of the examples found a difference'

if [ -n "$has_cron" ]; then
    output=$(examples 'sql pg_cron' | psql -X -v ON_ERROR_STOP=1 2>&1) && status=0 || status=$?
    is "$status" 0 'the examples with pg_cron run'
    [ "$status" -eq 0 ] || diag "$output"
    is "$(sql 'SELECT jobname FROM cron.job')" 'bench retention' 'and leave the job that they do not drop'
else
    skip 'pg_cron is not installed' 'the examples with pg_cron run'
fi

file=$PGHOST/performance.sql
# With limits that no machine of any load misses.
examples 'sql pg_prove' | shorter |
    sed "s/'>=', 100/'>=', 1/; s/'<', 500/'<', 60000/; s/tolerance => 0.1/tolerance => 0.9/" >"$file"
output=$(pg_prove --verbose "$file" 2>&1) && status=0 || status=$?
is "$status" 0 'pg_prove runs the file for pgTAP'
[ "$status" -eq 0 ] || diag "$output"
is "$(grep -cE '^ok [0-9]' <<<"$output")" 4 'all of its tests pass'
is "$(sql "SELECT count(*) FROM bench.runs WHERE horizon_held")" 0 'and no run had the horizon held'

done_testing
