#!/usr/bin/env bash
# The examples of README.md and docs/ run as they stand: those of a document from the first to the last, in one session
# and a database of their own, all documents side by side. `sql citus` is run by the tests of Citus, `sql assertion`,
# whose runs hold the horizon, as test/pgtap/duel.sql has it. Links lead somewhere, and signatures are those of the
# functions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. test/lib/cluster.sh
. test/lib/tap.sh

has_cron=
[ ! -e "$("$PG_CONFIG" --sharedir)/extension/pg_cron.control" ] || has_cron=yes
# As users have it: superusers' clients are sessions of bench_client.
TEST_CLIENT_ROLE='' cluster_start 'fsync = off' "shared_preload_libraries = 'pg_stat_statements${has_cron:+, pg_cron}'"

documents=(README.md docs/*.md)
examples() { python3 test/lib/documents.py script "$@"; } # KIND FOLDER FILE…

# Shorter, for they are run here and not looked at. A run of a minute is stopped.
shorter() { sed -E \
    "s/secs => (1|2|4|10)\b/secs => 0.1/g; s/quiet_secs => 0.1/quiet_secs => 1/; /bench.run/s/secs => 60\b/secs => 3/
        s/warmup => 2/warmup => 0/; s/rounds => [35]/rounds => 2/; s/\('pk', 1000000?/('pk', 20000/"; }

# A document's database, or where its files go.
name_of() { local name=${1##*/}; name=${name%.md}; echo "${name,,}" | tr -c 'a-z0-9\n' _; } # FILE

run_examples() { # FILE
    local name folder
    name=$(name_of "$1") folder=$PGHOST/$(name_of "$1")
    mkdir "$folder"
    createdb "$name" &&
        PGDATABASE=$name sql 'CREATE EXTENSION IF NOT EXISTS pgbench_ext' 'CREATE EXTENSION pg_stat_statements' && {
        # The README's first example installs it.
        [ "$1" != README.md ] || PGDATABASE=$name sql 'DROP EXTENSION pgbench_ext'
        examples - "$folder" "$1" | shorter >"$folder/script"
        cd "$folder" && PGDATABASE=$name psql -X -v ON_ERROR_STOP=1 -f script && [ ! -e failed ]
    } >"$folder/output" 2>&1 || echo failed >"$folder/status"
}

# pg_cron works in one database.
run_cron_examples() {
    sql 'CREATE EXTENSION pgbench_ext' 'CREATE EXTENSION pg_cron' &&
        examples pg_cron "$PGHOST" "${documents[@]}" | psql -X -v ON_ERROR_STOP=1
}

# With limits that no machine of any load misses.
run_pg_prove() {
    createdb pg_prove && PGDATABASE=pg_prove sql 'CREATE EXTENSION pgbench_ext' || return
    examples pg_prove "$PGHOST" docs/pgtap.md | shorter |
        sed "s/'>=', 100/'>=', 1/; s/'<', 500/'<', 60000/; s/margin => 0.1/margin => 0.9/" \
        >"$PGHOST/performance.sql"
    pg_prove --dbname pg_prove --verbose "$PGHOST/performance.sql"
}

is "$(examples - "$(mktemp -d -p "$PGHOST")" README.md | grep -c 'bench\.' | awk '{ print ($1 > 5) }')" 1 \
    'the README has SQL examples'
for document in "${documents[@]}"; do run_examples "$document" & done
run_pg_prove >"$PGHOST/pg_prove.out" 2>&1 &
pg_prove=$!
[ -z "$has_cron" ] || run_cron_examples >"$PGHOST/cron.out" 2>&1 &
cron=$!
wait "$pg_prove" && pg_prove=0 || pg_prove=$?
wait "$cron" && cron=0 || cron=$?
wait

for document in "${documents[@]}"; do
    folder=$PGHOST/$(name_of "$document")
    is "$(cat "$folder/status" 2>/dev/null || true)" '' "$document: every example runs"
    [ ! -e "$folder/status" ] || diag "$(cat "$folder/output")"
    unlike "$(cat "$folder/output")" 'WARNING' "$document: no example is warned of"
    is "$(PGDATABASE=$(name_of "$document") sql \
        "SELECT run_id, status, error FROM bench.runs WHERE status NOT IN ('completed', 'canceled') OR horizon_held" \
        "SELECT sweep_id, status, error FROM bench.sweeps WHERE status <> 'completed'" \
        "SELECT run_id, a FROM bench.runs r, LATERAL bench.audit(r.run_id) a WHERE NOT a.ok")" '' \
        "$document: its runs and sweeps ended well, held no horizon, and no audit found a difference"
done
like "$(head -c 2000 "$PGHOST"/readme/report.html)" '<html' 'the README writes a report to a file'

# The query of otava.yaml has the columns that the file names, and finds the run of docs/reports.md.
otava=$(awk '/query: [|]/ { on = 1; next } on' docs/otava.yaml |
    sed "s/%{BRANCH}/'main'/; s/\"clients\": 2/\"clients\": 4/")
otava=$(PGDATABASE=reports psql -XA -P footer=off -v ON_ERROR_STOP=1 -c "$otava" 2>&1)
is "$(head -1 <<<"$otava")" \
    "started_at|run_id|commit|$(sed -nE 's/^ +([a-z0-9_]+): \{direction.*/\1/p' docs/otava.yaml |
    paste -sd'|')" 'otava.yaml reads the columns that it names'
is "$(wc -l <<<"$otava")" 2 'of the run that is asked for'

# The files that docs/ci.md has jq make for other services, in their units.
figures="SELECT workload || ', ' || clients || ' clients', tps::numeric(20,3), latency_p99_ms::numeric(20,3),
    floor(extract(epoch FROM started_at)) FROM bench.summary WHERE run_id = 1"
fixed() { awk -F'|' '{ printf "%s|%.3f|%.3f|%s\n", $1, $2, $3, $4 }'; }
IFS='|' read -r name tps p99 started < <(PGDATABASE=ci sql "$figures")
cd "$PGHOST/ci"
is "$(jq -r 'to_entries[] | "\(.key)|\(.value.throughput.value)|\(.value["latency-p99"].value / 1e6)|"' bmf.json |
    fixed)" \
    "$name|$tps|$p99|" 'Bencher: transactions per second, and nanoseconds'
is "$(jq -rs 'add | map({(.name): .}) | add | "\(keys[0] | split(": ")[0])|\(.[keys[-1]].value)|" +
    "\(to_entries[] | select(.key | endswith("p99_ms")).value.value)|\(length)"' bigger.json smaller.json | fixed)" \
    "$name|$tps|$p99|6" 'github-action-benchmark: six figures'
is "$(jq -r '.[0] | (.metrics | map({(.name): .value}) | add) as $of |
    "\(.attributes.workload), 4 clients|\($of.tps)|\($of.latency_p99_ms)|\(.timestamp)"' otava.json | fixed)" \
    "$name|$tps|$p99|$started" 'Apache Otava: with the time of the run'
cd "$OLDPWD"

if [ -n "$has_cron" ]; then
    is "$cron" 0 'the examples with pg_cron run'
    [ "$cron" -eq 0 ] || diag "$(cat "$PGHOST/cron.out")"
    is "$(sql 'SELECT jobname FROM cron.job')" '' 'and drop the jobs that they make'
else
    skip 'pg_cron is not installed' 'the examples with pg_cron run'
fi

is "$pg_prove" 0 'pg_prove runs the file for pgTAP'
[ "$pg_prove" -eq 0 ] || diag "$(cat "$PGHOST/pg_prove.out")"
is "$(grep -cE '^ok [0-9]' "$PGHOST/pg_prove.out")" 4 'all of its tests pass'
is "$(PGDATABASE=pg_prove sql 'SELECT count(*) FROM bench.runs WHERE horizon_held')" 0 'and no run had the horizon held'

is "$(python3 test/lib/documents.py links "${documents[@]}" writeups/README.md)" '' 'every link leads somewhere'
is "$(PGDATABASE=pg_prove sql "SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc
    WHERE pronamespace = 'bench'::regnamespace" |
    python3 test/lib/documents.py signatures "${documents[@]}")" '' 'signatures are as the functions have them'

done_testing
