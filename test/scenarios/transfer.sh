#!/usr/bin/env bash
# Runs of one server are exported into a file and imported on another, where they read as before; a soak does, too.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start
there=$PGHOST
sql "SELECT bench.run('pk_update', 2, secs => 1, warmup => 0.3, sample_interval => 0.1,
    tags => '{\"side\": \"there\"}')" \
    "SELECT bench.run('pk_select,pk_update@2', 3, transactions => 200, sample_interval => 0.1)" >/dev/null 2>&1
sql "SELECT bench.create_workload('transfer_fails', 'SELECT 1 / 0;')" \
    "SELECT bench.run('transfer_fails', transactions => 1)" >/dev/null 2>&1
# One that the server crashed under.
sql "SELECT bench.create_workload('transfer_slow', 'SELECT pg_sleep(0.01);')" >/dev/null
crashed=$(sql "SELECT bench.start('transfer_slow', secs => 60, sample_interval => 0.1)")
eventually 10 "SELECT count(*) >= 2 FROM bench.samples WHERE run_id = $crashed"
cluster_restart immediate
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $crashed")" crashed 'a run that the server crashed under'
# A soak: the first run's last sample, again and again.
sql "INSERT INTO bench.samples SELECT (r).* FROM generate_series(1, 6000) AS n, LATERAL (
        SELECT jsonb_populate_record(s, jsonb_build_object('elapsed', 100 + n)) AS r FROM bench.samples s
        WHERE run_id = 1 AND elapsed < 100 ORDER BY elapsed DESC LIMIT 1) AS l"

is "$(sql 'SELECT count(*) > 6000 FROM bench.samples WHERE run_id = 1')" t 'a soak'

# What is read of a run, without what has to differ.
told() { # RUN
    sql "SELECT bench.report($1, 'json')::jsonb #- '{run,run_id}' #- '{run,origin}'" \
        "SELECT to_jsonb(s) - 'run_id' FROM bench.summary s WHERE run_id = $1" \
        "SELECT to_jsonb(a) FROM bench.audit($1) AS a" \
        "SELECT p, bench.percentile($1, p) FROM unnest('{0,0.5,0.9,0.99,0.999,1}'::float8[]) AS p" \
        "SELECT to_jsonb(f) FROM bench.findings($1) AS f" | md5sum
}
runs=$(sql 'SELECT array_agg(run_id ORDER BY run_id) FROM bench.runs')
is "$runs" '{1,2,3,4}' 'runs to carry'
psql -XAtqc "SELECT bench.export('$runs')" >"$work/runs.json"
before=$(for run in 1 2 3 4; do told $run; done)
server=$(sql 'SELECT system_identifier FROM pg_control_system()')
samples=$(sql "SELECT md5(string_agg(r::text, ',' ORDER BY r)) FROM bench.samples r")

CLUSTER_TEMPLATE='' cluster_start 'fsync = off'
sql 'CREATE EXTENSION pgbench_ext' "SELECT nextval('bench_internal.run_id_seq') FROM generate_series(1, 41)" >/dev/null
import() { psql -XAtq -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -v document="$work/runs.json" 2>&1 \
    <<<"\\set content \`cat $work/runs.json\`
SELECT bench.import(:'content');"; }
is "$(import)" '{42,43,44,45}' 'the other server takes them over, in their order'
is "$(for run in 42 43 44 45; do told $run; done)" "$before" \
    'reports, summaries, audits, percentiles and findings are the same'
is "$(sql 'SELECT status FROM bench.runs WHERE run_id = 45')" crashed 'the crashed one is crashed'
is "$(sql "SELECT DISTINCT origin ->> 'system_identifier' FROM bench.runs")" "$server" \
    'they say of which server they are'
is "$(sql "SELECT md5(string_agg(r::text, ',' ORDER BY r))
    FROM (SELECT (jsonb_populate_record(s, jsonb_build_object('run_id', run_id - 41))).* FROM bench.samples s) AS r")" \
    "$samples" 'every sample is the same, to the last digit'
like "$(import)" '23505: role "postgres" has already imported run 1 of the document' 'nobody imports them twice'
is "$(sql 'SELECT count(*) FROM bench.runs')" 4 'and nothing is left of the attempt'

# Into what a standby or a read-only transaction allows.
like "$(PGOPTIONS='-c default_transaction_read_only=on' import)" '25006' 'a read-only transaction imports nothing'
is "$(PGOPTIONS='-c default_transaction_read_only=on' psql -XAtqc \
    "SELECT jsonb_array_length(bench.export('{42}') -> 'run_log')")" 1 'but exports'
is "$(sql "SELECT bench.prune('1 hour')")" 0 'they are not old here'
is "$(sql "SELECT bench.prune('0')")" 4 'but can be pruned'
is "$(sql "SELECT count(*) FROM bench.samples")" 0 'with their samples'
is "$(import | tr -dc ,)" ,,, 'and imported again'

# More than jsonb takes, 256 MB: several parts. They are small, however long the texts of a row are.
long=$(sql 'SELECT min(run_id) FROM bench.runs')
sql "INSERT INTO bench_internal.error_log (run_id, sqlstate, message, count, retried, failed)
     SELECT $long, to_char(n, 'FM00000'), repeat('x', CASE n WHEN 1 THEN 40000000 ELSE 1000000 END), 1, 0, 0
     FROM generate_series(1, 250) AS n"
is "$(sql "SELECT count(*) > 15, count(*) FILTER (WHERE bytes > 20e6), sum(bytes) > 280e6
    FROM bench.export('{$long}') AS part, LATERAL length(part::text) AS bytes")" 't|1|t' \
    'parts are small but the one with a row that is not'
# Nothing makes the rows of bench.runs less, which are in each part.
sql "UPDATE bench_internal.run_log SET script = repeat('x', 100000000) WHERE run_id >= $long" >/dev/null
# It may take more than the minute that others have.
like "$(psql_verbose "SELECT bench.export((SELECT array_agg(run_id) FROM bench.runs))")" \
    '54000: part 1 of the runs is too large for a document.*HINT: .*Export fewer runs at once' \
    'parts that are too large'
log_is_clean
PGHOST=$there log_is_clean
done_testing
