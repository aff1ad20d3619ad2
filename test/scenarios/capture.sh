#!/usr/bin/env bash
# bench.capture makes workloads of what pg_stat_statements counts, and says of each statement why it does not; runs of
# the capture do what the captured statements did.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

cluster_start 'fsync = off' "shared_preload_libraries = 'pg_stat_statements'" || exit 1
remember_server
sql 'CREATE EXTENSION pg_stat_statements' 'CREATE EXTENSION pgbench_ext' \
    'CREATE ROLE cap_owner LOGIN' 'CREATE ROLE cap_reader LOGIN IN ROLE pg_read_all_stats' \
    'CREATE ROLE cap_stranger LOGIN' \
    'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO cap_owner, cap_reader' \
    'CREATE TABLE items (id int PRIMARY KEY, kind text, price numeric(8,2), added timestamptz)' \
    "INSERT INTO items SELECT g, 'k' || g % 5, g % 90, '2026-01-01'::timestamptz + g * '1 min'::interval
        FROM generate_series(1, 5000) g" \
    'CREATE INDEX ON items (kind)' 'CREATE INDEX ON items (added)' 'CREATE TABLE hollow (id int PRIMARY KEY)' \
    'ANALYZE' 'GRANT ALL ON items, hollow TO cap_owner, cap_reader'

work_of_owner() {
    PGUSER=cap_owner sql 'SELECT pg_stat_statements_reset()' >/dev/null 2>&1
    for id in 1 17 4999; do PGUSER=cap_owner sql "SELECT * FROM items WHERE id = $id"; done
    PGUSER=cap_owner sql "SELECT id FROM items WHERE kind = 'k1' ORDER BY id LIMIT 7" \
        "SELECT count(*) FROM items WHERE added BETWEEN '2026-01-02' AND '2026-01-03'" \
        "SELECT id, price FROM items WHERE id IN (1, 2, 3)" \
        "SELECT extract(month FROM added) AS m, count(*) FROM items GROUP BY extract(month FROM added)" \
        "SELECT count(*) FROM items WHERE added > '2026-01-04'::timestamptz - interval '1 day'" \
        "UPDATE items SET price = 1 WHERE id = 3" "SELECT * FROM hollow WHERE id = 1" \
        "CREATE TEMP TABLE own (a int)" 'VACUUM items'
}
sql 'SELECT pg_stat_statements_reset()' >/dev/null
work_of_owner >/dev/null

# What the harness itself executes is no application's.
sql 'SELECT pg_stat_statements_reset()' "SELECT bench.load('pk', 1000)" \
    "SELECT bench.run('pk_update', clients => 2, transactions => 20)" >/dev/null 2>&1
sql 'CREATE ROLE cap_limited LOGIN IN ROLE pg_monitor' "SELECT bench.allow('cap_limited')" \
    'GRANT ALL ON ALL TABLES IN SCHEMA bench_data TO cap_limited' \
    'GRANT USAGE ON SCHEMA bench_data TO cap_limited' >/dev/null
PGUSER=cap_limited sql "SELECT bench.run('pk_update', clients => 2, transactions => 20)" >/dev/null 2>&1
is "$(sql "SELECT regexp_replace(query, ' SET.*', ''), sum(calls) FROM pg_stat_statements WHERE toplevel
    AND query !~ 'bench\.|pg_stat_statements_reset|^SELECT /\* pgbench_ext \*/|^(CREATE|GRANT) ' GROUP BY 1")" \
    'UPDATE pk|80' 'of a load and of runs, the statements of clients are counted and no others'
sql "SELECT FROM bench.capture('harness', secs => 0,
    options => '{\"writes\": true, \"roles\": [\"postgres\", \"cap_limited\"]}')" >/dev/null 2>&1
is "$(sql "SELECT regexp_replace(query, ' SET.*', ''), sum(calls) FROM bench.capture_statements
    WHERE capture = 'harness' AND query !~ 'bench\.|pg_stat_statements|^(CREATE|GRANT) ' GROUP BY 1")" 'UPDATE pk|80' \
    'and a capture has no others'
work_of_owner >/dev/null

# A role's own.
is "$(PGUSER=cap_owner sql "SELECT count(*) > 5 FROM bench.capture('own', secs => 0)" 2>/dev/null)" t \
    'a role captures its own statements'
is "$(sql "SELECT reason FROM bench.capture_statements WHERE capture = 'own' AND query LIKE 'UPDATE%'")" \
    'it writes: use option writes' 'writes are not kept'
is "$(sql "SELECT reason FROM bench.capture_statements WHERE capture = 'own' AND query LIKE 'VACUUM%'")" \
    'utility command' 'nor are utility commands'
like "$(sql "SELECT reason FROM bench.capture_statements WHERE capture = 'own' AND query LIKE '%hollow%'")" \
    'has no rows' 'nor what has no rows'
is "$(sql "SELECT count(*) FROM bench.capture_statements WHERE capture = 'own'
    AND NOT kept AND reason IS NULL")" 0 \
    'each that is not kept has a reason'
is "$(sql "SELECT count(*) FROM bench.capture_statements WHERE capture = 'own' AND kept
    AND query ~ '^SELECT .* FROM items'")" 6 \
    'what reads rows is kept'
is "$(sql "SELECT round(sum(share)::numeric, 6) FROM bench.capture_statements WHERE capture = 'own'")" 1.000000 \
    'the shares add up'
run=$(PGUSER=cap_owner sql "SELECT bench.run('own', transactions => 200)" 2>/dev/null)
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $run")" completed 'its capture runs'
is "$(sql "SELECT rows_captured, rows_replayed FROM bench.fidelity($run) JOIN bench.capture_statements s
           USING (workload) WHERE s.query LIKE 'SELECT * FROM items WHERE id = %'")" '1|1' 'with as many rows per call'
is "$(sql "SELECT bool_and(score BETWEEN 0 AND 1) FROM bench.fidelity($run) WHERE score IS NOT NULL")" t \
    'scores are fractions'
is "$(sql "SELECT f.score = p.least, p.calls > 0.5 FROM bench.fidelity($run) f,
    (SELECT min(score) AS least, max(score) FILTER (WHERE part = 'each call') AS calls
        FROM bench.fidelity_parts($run)) p
    WHERE f.workload IS NULL")" 't|t' 'the whole has the score of its worst part'
is "$(sql "SELECT score IS NULL, reason FROM bench.fidelity_parts($run) WHERE part = 'statements'")" \
    't|how often the application commits is only known of captures with secs above 0' \
    'of what was counted before, commits are not known'

queryid=$(sql "SELECT queryid FROM bench.capture_statements WHERE capture = 'own' AND query LIKE '%extract%'")
PGUSER=cap_owner sql "SELECT FROM bench.capture('less', secs => 0,
    options => '{\"exclude\": [\"SELECT * FROM items%\", $queryid]}')" >/dev/null 2>&1
is "$(sql "SELECT reason, count(*) > 1, bool_or(queryid = $queryid) FROM bench.capture_statements WHERE capture = 'less'
    AND (query LIKE 'SELECT * FROM items%' OR queryid = $queryid) GROUP BY 1")" 'excluded by option exclude|t|t' \
    'statements are excluded by pattern and by queryid'
is "$(sql "SELECT bench.drop_capture('less')")" '' 'and its capture is dropped'

# Others'.
is "$(PGUSER=cap_stranger sql 'SELECT count(*) FROM bench.captures, bench.capture_statements')" 0 \
    'strangers see no captures'
like "$(PGUSER=cap_stranger sql "SELECT bench.capture('x', 0)" 2>&1)" 'permission denied' 'nor may they capture'
is "$(PGUSER=cap_reader sql "SELECT count(*) > 0 FROM bench.capture_statements WHERE capture = 'own'")" t \
    'pg_read_all_stats sees them'
like "$(PGUSER=cap_reader sql "SELECT bench.drop_capture('own')" 2>&1)" 'belongs to role "cap_owner"' 'but drops none'
is "$(sql "SELECT count(*) > 3 FROM bench.capture('all', secs => 0) WHERE kept" 2>/dev/null)" t \
    'a superuser keeps what others have executed'
is "$(sql "SELECT count(*) > 3 FROM bench.capture_statements JOIN bench.workloads ON name = workload
    WHERE capture = 'all' AND role = 'cap_owner' AND owner = role AND private")" t 'as theirs'
like "$(sql "SELECT 1 FROM bench.capture('all', secs => 0, options => '{\"roles\": \"all\"}')" 2>&1)" \
    'invalid value "all"' 'all is not an option: it is the default'

# Errors of the data fail transactions, and no client: half of the rows that a captured DELETE draws are referred to.
sql 'CREATE TABLE parents AS SELECT generate_series(1, 200) AS id' 'ALTER TABLE parents ADD PRIMARY KEY (id)' \
    'CREATE TABLE children (parent int REFERENCES parents)' 'INSERT INTO children SELECT generate_series(1, 100)' \
    ANALYZE 'GRANT SELECT, DELETE ON parents, children TO cap_owner' 'SELECT pg_stat_statements_reset()' >/dev/null
PGUSER=cap_owner sql 'DELETE FROM parents WHERE id = 200'
sql 'SELECT pg_reload_conf()' \
    "SELECT bench.capture('writes', secs => 0, options => '{\"writes\": true}')" >/dev/null 2>&1
is "$(sql "SELECT string_agg(query, ';') FROM bench.capture_statements WHERE capture = 'writes' AND kept")" \
    'DELETE FROM parents WHERE id = $1' 'a statement that writes is kept where that is asked for'
is "$(sql "SELECT reason FROM bench.capture_statements WHERE capture = 'writes' AND query LIKE '%reload%'")" \
    'it administers the server' 'one that administers the server is not'
for driver in engine wire; do
    run=$(sql "SELECT bench.run('writes', clients => 2, transactions => 50, driver => '$driver')" 2>"$work/notices")
    is "$(sql "SELECT status, transactions + failed, failed BETWEEN 20 AND 90 FROM bench.summary
        WHERE run_id = $run")" 'completed|100|t' "$driver: no client ends with a violated foreign key"
    is "$(sql "SELECT e.sqlstate, e.failed = s.failed FROM bench.errors e JOIN bench.summary s USING (run_id)
        WHERE run_id = $run")" '23503|t' "$driver: it is counted"
    like "$(cat "$work/notices")" '[0-9]+ transactions of run [0-9]+ failed with data errors.*23503' "$driver: and told"
    like "$(sql "SELECT finding || advice FROM bench.findings($run) WHERE topic = 'failed'")" '23503.*fresh copy' \
        "$driver: the findings say what to do"
done
run=$(sql "SELECT bench.run('writes', transactions => 50)" 2>/dev/null)
is "$(sql "SELECT count(*), bool_and(f.failed = s.failed), max(f.score) < 0.9
    FROM bench.fidelity($run) f, bench.summary s WHERE s.run_id = $run")" '2|t|t' 'failed transactions lower the score'
sql "SELECT bench.create_workload('by_hand', 'DELETE FROM parents WHERE id = 1;')" >/dev/null
run=$(sql "SELECT bench.run('writes,by_hand', clients => 2, transactions => 100, max_tries => 3)" 2>/dev/null)
is "$(sql "SELECT status, error ->> 'sqlstate' FROM bench.runs WHERE run_id = $run")" 'incomplete|23503' \
    'another script ends its client as ever'

# Keys that are not there, as often as they were not.
sql 'SELECT pg_stat_statements_reset()' >/dev/null
for id in 1 2 3 9001 9002 9003 9004 9005 9006 9007; do
    PGUSER=cap_owner sql "UPDATE items SET price = 2 WHERE id = $id"
done
sql "SELECT bench.capture('misses', secs => 0, options => '{\"writes\": true, \"roles\": [\"cap_owner\"]}')" \
    >/dev/null 2>&1
run=$(sql "SELECT bench.run('misses', transactions => 600, seed => 3)" 2>/dev/null)
is "$(sql "SELECT rows_captured, rows_replayed BETWEEN 0.2 AND 0.4 FROM bench.fidelity($run)
    WHERE workload IS NOT NULL")" '0.3|t' 'keyed writes find a row as often as they did'

# What indexes are worth to it, in one call of a superuser: copies are made by the tables' owner, and used by the role
# that executed the statements, under its search_path.
sql 'CREATE SCHEMA cap AUTHORIZATION cap_owner' 'ALTER ROLE cap_owner SET search_path = cap' >/dev/null
PGUSER=cap_owner sql 'CREATE TABLE kept (id int PRIMARY KEY, note int)' 'CREATE INDEX kept_note ON kept (note)' \
    'INSERT INTO kept SELECT g, g FROM generate_series(1, 1000) g' 'ANALYZE kept' >/dev/null
sql 'SELECT pg_stat_statements_reset()' >/dev/null
for id in 1 2 3; do
    PGUSER=cap_owner sql "UPDATE kept SET note = $((id + 1)) WHERE id = $id" "SELECT id FROM kept WHERE note = $id"
done >/dev/null
sql "SELECT bench.capture('worth', secs => 0, options => '{\"writes\": true, \"roles\": [\"cap_owner\"],
    \"transactions\": false}')" >/dev/null 2>&1
is "$(sql "SELECT index, saved_us IS NOT NULL, cost_us IS NOT NULL, error FROM bench.index_worth('worth', secs => 0.5)
    ORDER BY index" 2>"$work/notices")" $'cap.kept_note|t|t|\ncap.kept_pkey|t|t|' 'its indexes have both sides'
like "$(cat "$work/notices")" 'by (latency|processor time), of 2 indexes' 'and a sentence'
sql 'ALTER ROLE cap_owner RESET search_path' >/dev/null

# Another server: the same one after a drop. What only others have executed is not kept.
document=$(sql "SELECT bench.export_capture('writes')")
like "$(PGUSER=cap_owner sql "SELECT bench.export_capture('writes')" 2>&1)" \
    'belongs to role' 'of the role that captured'
sql "SELECT bench.drop_capture('writes')"
is "$(psql -XAt -v document="$document" <<<"SELECT bench.import_capture(:'document')")" writes 'a capture is imported'
is "$(sql "SELECT bench.export_capture('writes') =
    \$\$$document\$\$::jsonb")" t 'as it was'
is "$(sql "SELECT string_agg(DISTINCT owner, ',') FROM bench.workloads WHERE name LIKE 'writes/%'")" \
    "$(sql "SELECT coalesce(current_setting('pgbench_ext.client_role', true), 'bench_client')")" \
    'and runs in the sessions of whoever imports it'
run=$(sql "SELECT bench.run('writes', transactions => 50)" 2>/dev/null)
is "$(sql "SELECT status, transactions + failed FROM bench.summary WHERE run_id = $run")" 'completed|50' 'and runs'
like "$(sql "SELECT bench.import_capture('{\"format_version\": 1}')" 2>&1)" 'not a document of bench.export_capture' \
    'other documents are refused'

# Background.
sql "SELECT bench.start_capture('late', 60)" >/dev/null 2>&1
is "$(sql "SELECT status FROM bench.captures WHERE name = 'late'")" capturing 'a capture in the background'
like "$(sql "SELECT bench.start_capture('late', 60)" 2>&1)" 'is under way' 'a second one of its name has to wait'
is "$(sql "SELECT bench.wait_capture('late', 0.1)")" capturing 'is waited for as long as is asked for'
session waiter "SELECT bench.wait_capture('late')"
eventually 10 "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'waiter' AND state = 'active'"
is "$(sql "SELECT bench.stop_capture('late')")" t 'is canceled'
ended waiter
is "$OUT" canceled 'and whoever waits learns it'
is "$(sql "SELECT status FROM bench.captures WHERE name = 'late'")" canceled 'and says so'
is "$(sql "SELECT bench.stop_capture('late')")" f 'only once'
like "$(sql "SELECT bench.run('late')" 2>&1)" 'has kept no statement' 'and cannot be run'

# A caller that cancels or goes while statements are tried.
sql 'CREATE TABLE tried AS SELECT n, n % 1000 AS v FROM generate_series(1, 200000) n' \
    'GRANT SELECT ON tried TO cap_owner' 'SELECT pg_stat_statements_reset()' >/dev/null
PGUSER=cap_owner sql 'SELECT count(n) FROM tried WHERE v > 10' 'SELECT sum(n) FROM tried WHERE v < 10' \
    'SELECT min(n) FROM tried WHERE v > 10' 'SELECT max(n) FROM tried WHERE v < 10' >/dev/null
of_captures() { echo "SELECT count(*) = $1 FROM pg_stat_activity WHERE backend_type = 'pgbench_ext capture'"; }
for way in -INT -KILL; do
    PGUSER=cap_owner session caller "SELECT bench.capture('tried', secs => 0)"
    eventually 20 "$(of_captures 2)"
    eventually 3 "SELECT a.backend_xmin IS NULL FROM pg_stat_activity a JOIN bench_internal.capture_list l USING (pid)
        WHERE l.name = 'tried'"
    is $? 0 'the capture does not hold back the horizon while statements are tried'
    clock
    kill "$way" "${PIDS[caller]}"
    eventually 10 "$(of_captures 0)"
    within 3000 "kill $way of a caller ends the capture and its trials"
    ended caller
    is "$(sql "SELECT status, error ->> 'sqlstate' FROM bench.captures WHERE name = 'tried'")" 'canceled|57014' \
        'and it says so'
done
sql "SELECT bench.drop_capture('own')" >/dev/null
is "$(sql "SELECT count(*) FROM bench.workloads WHERE name LIKE 'own/%'" \
    "SELECT count(*) FROM bench.feeders WHERE workload LIKE 'own/%'" |
    paste -sd' ')" '0 0' 'a capture goes with its workloads and feeders'
no_restart 'the server has not crashed'
done_testing
