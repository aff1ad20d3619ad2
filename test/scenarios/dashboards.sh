#!/usr/bin/env bash
# Every query of the Grafana dashboard, and of docs/queries.yaml for Prometheus, runs as a role with no more than the
# documented privileges, and returns rows with the columns that its panel names. Prometheus' own programs read what is
# written for them, where they are installed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# What the panels show: a history that changes, a run with an event, one under way.
faults_start
sql 'CREATE FUNCTION public.work() RETURNS int LANGUAGE sql AS $$SELECT 1$$' \
    "SELECT bench.create_workload('steps', 'SELECT public.work(); UPDATE pk SET crt_time = now() WHERE id = 1;',
        fixture => 'pk')" \
    'CREATE ROLE reader LOGIN IN ROLE pg_read_all_stats' >/dev/null
runs() { # NUMBER
    sql "SELECT bench.run('steps', clients => 2, secs => 0.3, warmup => 0, sample_interval => 0.1,
        tags => '{\"job\": \"nightly\"}') FROM generate_series(1, $1)" >/dev/null 2>&1
}
runs 5
sql 'CREATE OR REPLACE FUNCTION public.work() RETURNS int LANGUAGE sql
    AS $$SELECT 1 FROM pg_sleep(0.02), generate_series(1, 20000) LIMIT 1$$'
runs 5
sql "SELECT bench.start('steps', clients => 2, secs => 3, tags => '{\"job\": \"nightly\"}')" >/dev/null
sampling 10 1
sql 'VACUUM bench_data.pk'
status_is "$RUN" completed 'the run with an event'
run=$RUN
is "$(sql "SELECT DISTINCT kind FROM bench.events WHERE run_id = $run AND kind = 'vacuum'")" vacuum 'has the event'
under_way=$(sql "SELECT bench.start('steps', secs => 600)" 2>/dev/null)
sampling "$run" 1

# Whose figures are of both arms together, and no row of the exporter's.
sql "SELECT * FROM bench.duel('steps', '{}', '{}', clients => 2, secs => 0.3)" >/dev/null 2>&1
is "$(sql "SELECT count(*) FROM bench.duels WHERE workload = 'steps'")" 1 'there is a duel of the workload'

export PGUSER=reader
number=0
while IFS='|' read -r kind title format columns query; do
    number=$((number + 1))
    OUT=$(psql -XAt -v ON_ERROR_STOP=1 2>&1 <<<"$query \\gdesc"$'\n\\echo --\n'"$query;")
    is "$?" 0 "$kind $title: runs" || diag "$OUT"
    types=${OUT%%$'\n--'*} missing=
    for column in ${columns//,/ }; do [[ $'\n'$types == *$'\n'"$column|"* ]] || missing+=" $column"; done
    is "$missing" '' "$kind $title: has the columns that are named"
    if [ "$format" = time_series ]; then
        is "${types%%$'\n'*}" 'time|timestamp with time zone' "$kind $title: begins with the time"
        is "$(sed -E '/^(time|metric)\|/d; /\|(double precision|bigint|integer)$/d' <<<"$types")" '' \
            "$kind $title: has numbers besides"
    fi
    like "${OUT#*$'\n--'}" '[^|[:space:]]' "$kind $title: returns rows"
done < <(python3 test/lib/dashboard.py dashboards/pgbench_ext.json steps "$run")
is "$((number > 15))" 1 'the dashboard has queries'
# Before anything is chosen, all give an answer.
is "$(python3 test/lib/dashboard.py dashboards/pgbench_ext.json "it's" '' | cut -d'|' -f5- | sed 's/$/;/' |
    psql -XAtq -v ON_ERROR_STOP=1 2>&1 >"$work/rows"; echo "$? ${PIPESTATUS[*]}")" '0 0 0 0 0' \
    'every query runs where nothing is chosen'

# postgres_exporter's queries
if python3 -c 'import yaml' 2>/dev/null; then
    while IFS='|' read -r name columns query; do
        OUT=$(psql -XA -P footer=off -v ON_ERROR_STOP=1 -c "$query" 2>&1)
        is "$(head -n 1 <<<"$OUT")" "${columns//,/|}" "$name: has the columns of its metrics"
        is "$(wc -l <<<"$OUT")" 2 "$name: a row"
        unlike "$OUT" '\|\||\|$' "$name: no figure is unknown"
    done < <(python3 - docs/queries.yaml <<'PYTHON'
import sys, yaml
for name, query in yaml.safe_load(open(sys.argv[1])).items():
    columns = [column for metric in query["metrics"] for column in metric]
    print(name, ",".join(columns), " ".join(query["query"].split()), sep="|")
PYTHON
    )
else
    skip 'this Python has no yaml' 'the queries for postgres_exporter run'
fi
if command -v prometheus-postgres-exporter >/dev/null; then
    port=$(free_port)
    DATA_SOURCE_NAME="host=$PGHOST port=5432 user=reader dbname=postgres sslmode=disable" \
        prometheus-postgres-exporter --extend.query-path=docs/queries.yaml --disable-default-metrics \
        --disable-settings-metrics --web.listen-address="127.0.0.1:$port" >"$work/exporter" 2>&1 &
    at_exit "kill $! 2>/dev/null"
    for _ in {1..50}; do
        python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' \
            "http://127.0.0.1:$port/metrics" >"$work/metrics" 2>"$work/error" && break
        sleep 0.2
    done
    like "$(cat "$work/metrics")" 'pgbench_ext_run_tps\{clients="2",job_name="nightly",[^}]*workload="steps"\} [0-9]' \
        'postgres_exporter shows the last run' || diag "$(cat "$work/error" "$work/exporter")"
    like "$(cat "$work/metrics")" 'pgbench_ext_active_clients\{phase="measurement",[^}]*workload="steps"\} 1' \
        'postgres_exporter shows the run under way'
else
    skip 'there is no prometheus-postgres-exporter' 'postgres_exporter shows runs'
fi

# node_exporter's text file, by the line of the documentation
mkdir "$work/textfile"
python3 test/lib/documents.py script - "$work/textfile" docs/monitoring.md >/dev/null
OUT=$(cd "$work/textfile" && bash -eu -o pipefail ./*.sh 2>&1)
is "$OUT" '' 'the line for the text file works'
like "$(cat "$work/textfile/pgbench_ext.prom" 2>/dev/null)" 'pgbench_ext_tps\{run_id="[0-9]+",workload="steps"' \
    'the text file has the last run'
if command -v promtool >/dev/null; then
    OUT=$(promtool check metrics <"$work/textfile/pgbench_ext.prom" 2>&1)
    is "$? $OUT" '0 ' 'promtool finds nothing wrong with it'
else
    skip 'there is no promtool' 'promtool finds nothing wrong with it'
fi

export PGUSER=postgres
sql "SELECT bench.stop($under_way)" >/dev/null
nothing_left 'at the end' 20
done_testing
