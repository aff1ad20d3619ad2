#!/usr/bin/env bash
# bench.rehearse: planted changes whose effect on an application is known, ROUNDS times each. The longest wait is
# compared with that of an independent open-loop client, pgbench.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

ROUNDS=${ROUNDS:-1}
cluster_start 'fsync = off' 'autovacuum = off' 'max_worker_processes = 40' 'max_wal_size = 4GB' 'shared_buffers = 256MB'
sql 'CREATE EXTENSION pgbench_ext' 'CREATE ROLE app LOGIN' "SELECT bench.allow('app')" \
    'CREATE SCHEMA app AUTHORIZATION app' 'GRANT CREATE ON DATABASE postgres TO app' >/dev/null
as_app() { PGUSER=app PGOPTIONS='-c search_path=app' sql "$@"; }
as_app "CREATE FUNCTION slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
        'BEGIN RETURN length(md5(md5(md5(md5(\$1::text))))); END'" \
    'CREATE TABLE items (id int PRIMARY KEY, kind int, n int, name varchar(10), note text)' \
    "INSERT INTO items SELECT g, g % 5000, 0, 'x', repeat('y', 100) FROM generate_series(1, 200000) AS g" \
    'CREATE INDEX items_kind ON items (kind)' 'CREATE TABLE one (a int)' 'CREATE TABLE two (a int)' \
    "SELECT bench.create_workload('writes', '\\set id random(2, 200000)
        UPDATE items SET n = n + 1 WHERE id = :id;')" \
    "SELECT bench.create_workload('reads', '\\set kind random(0, 4999)
        SELECT count(note) FROM items WHERE kind = :kind;')" \
    "SELECT bench.create_workload('stars', '\\set id random(2, 200000)
        SELECT * FROM items WHERE id = :id;')" >/dev/null
as_app 'VACUUM ANALYZE items'

# Rehearses a change; the columns of its answer become variables. RATE and LIMIT replace what is usual.
rehearse() { # WORKLOAD APPLY REVERT [ARGUMENTS]
    local answer
    answer=$(PGUSER=app PGOPTIONS='-c search_path=app -c client_min_messages=error' psql -XAtq -F ';' \
        -v ON_ERROR_STOP=1 -v workload="$1" -v apply="$2" -v revert="$3" 2>&1 <<END
SELECT bench.start_rehearse(:'workload', jsonb_build_object('apply', :'apply', 'revert', :'revert'), clients => 8,
    settings => '{"search_path": "app"}', rate => ${RATE:-200}, quiet_secs => 1.5,
    wait_limit => ${LIMIT:-0.4}${4:+, $4}) AS sweep \\gset
SELECT bench.wait_sweep(:sweep) \\g /dev/null
SELECT verdict, round(longest_wait_ms), tries, round(lock_wait_secs::numeric, 2),
    round(held_secs::numeric, 3), round(change_secs::numeric, 3), lock_mode, wal_bytes,
    jsonb_array_length(plans), jsonb_array_length(blocked_by), most_queued, run_id
FROM bench.rehearse_results(:sweep)
END
    ) || true
    IFS=';' read -r verdict longest tries lock_wait held took mode wal plans blockers queued run \
        <<<"${answer%%$'\n'*}"
    alternative=${answer##*$'\n'}
    echo "# $2: $answer" >&3
}
between() { # VALUE LOW HIGH NAME
    is "$(awk -v v="${1:-x}" -v low="$2" -v high="$3" 'BEGIN { print (v >= low && v <= high) ? "t" : v }')" t "$4"
}
has_column() { sql "SELECT count(*) FROM pg_attribute WHERE attrelid = 'app.items'::regclass AND attname = '$1'"; }

# The longest latency that an independent client saw, in ms, from when its transactions were due.
independent_client() { # SECS
    printf '\\set id random(2, 200000)\nUPDATE app.items SET n = n + 1 WHERE id = :id;\n' >"$work/independent.sql"
    (cd "$work" && rm -f independent.[0-9]* &&
        PGUSER=app pgbench -n -R 100 -c 20 -j 1 -T "$1" -l --log-prefix=independent \
        -f independent.sql >/dev/null 2>&1) &
    client=$!
}
independent_longest() {
    wait "$client"
    sort -k3n "$work"/independent.[0-9]* | awk '{ longest = $3 / 1000 } END { print longest }'
}

exec 3>&2
for ((round = 1; round <= ROUNDS; round++)); do
    add='ALTER TABLE items ADD COLUMN extra int' drop='ALTER TABLE items DROP COLUMN extra'
    rehearse writes "$add" "$drop"
    is "$verdict" safe 'a column'
    is "$mode" AccessExclusiveLock 'its lock'

    independent_client 8
    rehearse writes "$add" "$drop" "blocker => 'SELECT count(*) FROM items', blocker_secs => 2"
    like "$verdict" '^blocks clients for (1[.][5-9]|[2-6])' 'a column behind a reader'
    between "$held" 0 0.5 'it held its lock for a moment'
    between "$lock_wait" 1.8 6 'it waited for the reader'
    is "$blockers" 1 'the reader is named'
    is "$queued" 8 'the clients queued'
    seen=$(independent_longest)
    between "$longest" "$(awk -v v="$seen" 'BEGIN { print v - 50 - v * .02 }')" \
        "$(awk -v v="$seen" 'BEGIN { print v + 50 + v * .02 }')" 'as long as an independent client waited'
    is "$(has_column extra)" 0 'it was undone'

    rehearse writes "$add" "$drop" "blocker => 'SELECT count(*) FROM items', blocker_secs => 2, lock_timeout => 0.1,
        tries => 20, pause => 0.3"
    is "$verdict" safe 'a column with lock_timeout'
    between "$tries" 2 20 'it was tried again'
    rehearse writes "$add" "$drop" "blocker => 'SELECT count(*) FROM items', blocker_secs => 10, lock_timeout => 0.1,
        tries => 3, pause => 0.2"
    is "$verdict" 'fails: 55P03 after 3 tries' 'a column that never gets its lock'
    is "$(has_column extra)" 0 'nothing was changed'

    independent_client 7
    rehearse writes 'CREATE INDEX items_slow ON items (slow(id))' 'DROP INDEX items_slow'
    like "$verdict" '^blocks clients' 'an index and writers'
    between "$longest" "$(awk -v v="$took" 'BEGIN { print v * 900 - 100 }')" \
        "$(awk -v v="$took" 'BEGIN { print v * 1100 + 400 }')" 'they waited as long as it was built'
    rehearse reads 'CREATE INDEX items_slow ON items (slow(id))' 'DROP INDEX items_slow'
    is "$verdict" safe 'an index and readers'
    wait "$client"
    rehearse writes 'CREATE INDEX CONCURRENTLY items_slow ON items (slow(id))' 'DROP INDEX items_slow'
    is "$verdict" safe 'an index built concurrently'
    rehearse writes 'CREATE INDEX CONCURRENTLY items_n ON items (n)' 'DROP INDEX items_n' \
        "blocker => 'UPDATE items SET n = n WHERE id = 1', blocker_secs => 2"
    is "$verdict" safe 'an index built concurrently behind an idle transaction'
    between "$lock_wait" 1 6 'it waited for that'
    rehearse writes 'CREATE UNIQUE INDEX CONCURRENTLY items_once ON items (kind)' 'DROP INDEX items_once'
    is "$verdict" 'fails: 23505' 'a unique index on duplicates'
    is "$(sql "SELECT count(*) FROM pg_index WHERE NOT indisvalid")" 0 'no invalid index is left'

    LIMIT=0.1 rehearse writes 'VACUUM FULL items' 'SELECT 1'
    like "$verdict" '^blocks clients' 'VACUUM FULL'
    between "$held" "$(awk -v v="$took" 'BEGIN { print v * .9 }')" "$took" 'it held its lock all the time'
    rehearse writes 'SELECT pg_sleep(60)' 'SELECT 1' 'change_limit => 1'
    is "$verdict" 'not done within 1 s' 'a change without end'
    rehearse writes 'LOCK TABLE items; SELECT pg_sleep(60)' 'SELECT 1' 'give_up => 1'
    like "$verdict" '^blocks clients for 1([.][0-9]+)? s, and was canceled$' 'a change that clients do not wait for'
    rehearse writes 'ALTER TABLE items ADD COLUMN u uuid DEFAULT gen_random_uuid()' 'ALTER TABLE items DROP COLUMN u'
    like "$verdict" '^blocks clients' 'a volatile default'
    between "$wal" "$(sql "SELECT pg_relation_size('app.items')")" 1e12 'it writes the table anew'
    rehearse writes "ALTER TABLE items ADD COLUMN c int DEFAULT 7" 'ALTER TABLE items DROP COLUMN c'
    is "$verdict" safe 'a constant default'
    LIMIT=0.1 rehearse writes 'ALTER TABLE items ALTER COLUMN n TYPE bigint' 'ALTER TABLE items ALTER COLUMN n TYPE int'
    like "$verdict" '^blocks clients' 'a type of another size'
    is "$(as_app "SELECT count(*) FROM bench.audit($run) WHERE NOT ok")" 0 'the audit is silent'
    rehearse writes 'ALTER TABLE items ALTER COLUMN name TYPE varchar(20)' \
        'ALTER TABLE items ALTER COLUMN name TYPE varchar(10)'
    is "$verdict" safe 'a longer varchar'
    rehearse writes 'ALTER TABLE items ADD CONSTRAINT c CHECK (slow(id) > 0)' 'ALTER TABLE items DROP CONSTRAINT c' \
        'alternative => true'
    like "$verdict" '^blocks clients' 'a CHECK'
    like "$alternative" '^safe;' 'its alternative'
    rehearse writes 'ALTER TABLE items DROP COLUMN n' 'ALTER TABLE items ADD COLUMN n int DEFAULT 0'
    like "$verdict" '^breaks the application: 42703 in (9[0-9]|100)' 'a column in use'
    for driver in engine wire; do
        rehearse stars "$add" "$drop" "driver => '$driver'"
        like "$verdict" '^breaks the application: 0A000 in ' "SELECT * and a column, $driver"
    done
    RATE=1000 rehearse reads 'DROP INDEX items_kind' 'CREATE INDEX items_kind ON items (kind)'
    like "$verdict" '^slows afterwards: ' 'a dropped index'
    is "$plans" 1 'the plan is named'
    rehearse writes 'UPDATE items SET note = note' 'VACUUM items'
    like "$verdict" '^blocks clients' 'an UPDATE of all rows'
    whole=$longest
    rehearse writes \
        'DO $$ BEGIN FOR i IN 0..9 LOOP UPDATE items SET note = note WHERE id % 10 = i; COMMIT; END LOOP; END $$' \
        'VACUUM FULL items'
    between "$longest" 0 "$(awk -v v="$whole" 'BEGIN { print v * .7 }')" 'in batches they wait less'
    rehearse writes 'LOCK TABLE two; SELECT pg_sleep(1.8); LOCK TABLE one' 'SELECT 1' \
        "blocker => 'LOCK TABLE one; SELECT pg_sleep(0.3); LOCK TABLE two', blocker_secs => 10"
    is "$verdict" 'fails: 40P01' 'the victim of a deadlock'
done

sweep=$(as_app "SELECT bench.start_rehearse('writes',
    '{\"apply\": [\"$add\", \"SELECT pg_sleep(60)\"], \"revert\": \"$drop\"}',
    clients => 2, rate => 100, quiet_secs => 1, settings => '{\"search_path\": \"app\"}')" 2>/dev/null)
eventually 10 "SELECT count(*) = 1 FROM pg_attribute WHERE attrelid = 'app.items'::regclass AND attname = 'extra'"
error=$(as_app "SELECT bench.rehearse('writes', '{\"apply\": \"SELECT 1\"}', undo => 'none', rate => 1)" 2>&1 || true)
like "$error" 'another rehearsal is under way' 'one at a time'
kill -9 "$(sql "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")"
eventually 30 'SELECT NOT pg_is_in_recovery()'
is "$(has_column extra)" 1 'a crash leaves the change'
like "$(as_app "SELECT to_revert FROM bench.sweep_changes WHERE sweep_id = $sweep")" \
    'DROP COLUMN extra' 'it is recorded'
as_app "SELECT bench.resume_sweep($sweep)" >/dev/null 2>&1
eventually 20 "SELECT count(*) = 0 FROM pg_attribute WHERE attrelid = 'app.items'::regclass AND attname = 'extra'"
is "$(has_column extra)" 0 'the resumed rehearsal undoes it first'
as_app "SELECT bench.stop_sweep($sweep)" >/dev/null
done_testing
