#!/usr/bin/env bash
# What the nodes of a cluster ask each other for a run, asked by somebody who means no good: it is refused with a clear
# error, and gives nobody more than bench.run does. None of it needs Citus.
# shellcheck disable=SC2119 # no settings of its own
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start

REQUEST=$(tr -d '\n' <<'END'
'{"spec": {"options": {"workload": "w", "mix": [{"workload": "w", "weight": 1}],
"clients": 1, "secs": 0.5, "rate": null,
"latency_limit": null, "query_mode": "prepared", "warmup": 0.0, "max_tries": 1,
"seed": null, "variables": {}, "settings": {},
"sample_interval": 1.0, "results": "serialize", "nodes": "all", "tags": {}}, "seed": 1,
"scripts": [{"name": "w", "source": "SELECT pg_sleep(0.01);", "weight": 1, "fixture": null}],
"fixtures": [], "role": "postgres", "role_oid": 10,
"database_oid": 1, "horizon_held": false, "sweep_id": null, "system": {}, "observation": "On", "cluster": null,
"part_of": {"node": 1, "name": "there:5432", "run_id": 7}}, "tables": []}'::jsonb
END
)

sql 'CREATE ROLE alice LOGIN' 'CREATE ROLE bob LOGIN' 'CREATE ROLE mallory LOGIN' 'CREATE TABLE secret (id int)' \
    'CREATE TABLE seen (who text, session text)' 'GRANT INSERT ON seen TO PUBLIC' 'CREATE SCHEMA hidden' \
    'CREATE TABLE hidden.t (id int)'
psql -XAtq <<<"SELECT format('GRANT EXECUTE ON FUNCTION %s TO alice, bob', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = 'bench'::regnamespace AND proname IN ('run', 'start') \\gexec"

with() { echo "jsonb_set($REQUEST, '{$1}', \$json\$$2\$json\$)"; } # PATH VALUE
part() { try "SELECT bench_internal.start_part($1)"; } # REQUEST
answers() { # ROLE STATEMENT REGEX DESC
    PGUSER=$1 try "$2"
    like "$OUT" "$3" "$4"
}

# Who may not run, may not run a part either.
export PGUSER=mallory
part "$REQUEST"
like "$OUT" '42501.*permission denied for function|permission denied for function.*42501' \
    'a role that may not run starts no part'
part "'{}'"
like "$OUT" 'permission denied|22023' 'nor learns more by asking wrongly'

# A part of a role that may: its own, whatever the request says of the role.
export PGUSER=alice
part "$(with spec,scripts,0,source '"INSERT INTO seen SELECT current_user, session_user;"')"
PART=$(grep -oE '[0-9]+' <<<"$OUT")
like "$OUT" '^\{"run_id": [0-9]+\}$' 'a part is started'
is "$(PGUSER=postgres sql "SELECT role, part_of ->> 'name', status FROM bench.runs WHERE run_id = $PART")" \
    'alice|there:5432|running' 'in the name of the role that asked'
for call in "bench_internal.part_state($PART, false)" "bench_internal.part_state($PART, true)" \
    "bench_internal.part_samples($PART, 0)" "bench_internal.begin_part($PART, 1)" "bench_internal.drop_part($PART)" \
    "bench.stop($PART)"; do
    answers bob "SELECT $call" "42501: run $PART belongs to role \"alice\"" "another role's ${call%%(*}"
done
answers mallory "SELECT bench_internal.part_state($PART, true)" '42501' 'that of a role that may not run'
answers alice "SELECT bench_internal.drop_part($PART)" "55006: run $PART is under way" 'one under way is not dropped'
answers alice "SELECT bench_internal.begin_part($PART, -9223372036854775808)" '^f$' 'an instant long past'
for instant in 9223372036854775807 9000000000000000000; do
    answers alice "SELECT bench_internal.begin_part($PART, $instant)" '^f$|22023|22008' 'an instant that never comes'
done
answers alice "SELECT bench_internal.part_state($PART, false)" '"is_ready": true.*"in_warmup": false' \
    'it still waits for the word'
is "$(PGUSER=postgres sql 'SELECT count(*) FROM seen')" 0 'and has not begun'
answers alice "SELECT bench_internal.begin_part($PART,
    (extract(epoch FROM clock_timestamp() + '0.2 s') * 1e6)::bigint - 946684800000000)" '^t$' 'an instant soon'
PGUSER=postgres status_is "$PART" completed 'a part'
is "$(PGUSER=postgres sql "SELECT string_agg(DISTINCT who || ' ' || session, ','), count(*) > 0 FROM seen")" \
    'alice alice|t' 'its script has run as the role that asked'
answers bob "SELECT bench_internal.drop_part($PART)" '42501' "another role's, when it is over"
answers alice "SELECT bench_internal.part_state($PART, false)" '"status": "completed"' 'its status'
answers alice "SELECT bench_internal.part_samples($PART, 0)" "^\[.*\"run_id\": $PART" 'its samples'
answers alice "SELECT bench_internal.part_samples($PART, 1e9)" '^$' 'of a time that is not over'
answers alice "SELECT bench_internal.part_samples($PART, NULL)" 'after must not be null' 'of no time'
answers alice "SELECT bench_internal.drop_part($PART)" '^t$' 'it is dropped by its own'
answers alice "SELECT bench_internal.drop_part($PART)" "42704: run $PART does not exist" 'once'

# Runs that are no parts, and none at all.
RUN=$(PGUSER=postgres sql "SELECT bench.start('pk_select', transactions => 1)")
PGUSER=postgres status_is "$RUN" completed 'a run'
for call in "part_state($RUN, true)" "part_samples($RUN, 0)" "begin_part($RUN, 1)" "drop_part($RUN)"; do
    answers postgres "SELECT bench_internal.$call" "42809: run $RUN is not a part" \
        "bench_internal.${call%%(*} of a run that is no part"
    answers alice "SELECT bench_internal.$call" "42501: run $RUN belongs to role \"postgres\"" \
        "bench_internal.${call%%(*} of another role's"
done
is "$(PGUSER=postgres sql "SELECT count(*) FROM bench.runs WHERE run_id = $RUN")" 1 'which is still there'
for call in 'part_state(-1, false)' 'part_samples(-1, 0)' 'begin_part(9223372036854775807, 1)' 'drop_part(0)'; do
    answers alice "SELECT bench_internal.$call" '42704: run -?[0-9]+ does not exist' "bench_internal.$call"
done
for call in 'part_state(NULL, false)' 'begin_part(NULL, 1)' 'drop_part(NULL)' 'node_state(NULL)' 'start_part(NULL)'; do
    answers alice "SELECT bench_internal.$call" '22004.*must not be null|must not be null.*22004' "bench_internal.$call"
done

# Requests that make no sense. No worker is left of them, and no run.
nonsense() { # REQUEST REGEX DESC
    part "$1"
    like "$OUT" "$2" "$3"
}
# One that only its clients find out: the part is told of by its state, and dropped as its node would.
fails() { # REQUEST REGEX DESC
    local run
    part "$1"
    run=$(grep -oE '^\{"run_id": [0-9]+\}$' <<<"$OUT" | tr -dc 0-9)
    eventually 5 "SELECT bench_internal.part_state($run, false) ->> 'status' IS NOT NULL"
    try "SELECT bench_internal.part_state($run, false)" "SELECT bench_internal.drop_part($run)"
    like "$OUT" "$2" "$3"
}
INVALID='"message": "invalid request for a part of a run: .*"sqlstate": "22023"'
for json in '[]' '0' '"x"' '{}' '{"spec": {}}' '{"spec": null, "tables": null}' '{"spec": [], "tables": [[[]]]}'; do
    nonsense "'$json'" "$INVALID" "$json"
done
nonsense "$(with spec,part_of null)" "$INVALID" 'a part of nothing'
nonsense "$(with spec,seed 99999999999999999999)" "$INVALID" 'a seed too great'
nonsense "$(with spec,options,nodes '"x"')" "$INVALID" 'nodes that are none'
nonsense "$(with spec,options,clients 2000000000)" 'Needed: 2000000001.*configured: 300.*"sqlstate": "53400"' \
    'two thousand million clients'
nonsense "$(with spec,options,clients 4294967295)" 'expected i32.*22023' 'clients beyond int'
nonsense "$(with spec,options,clients 0)" 'clients must be at least 1.*22023' 'no clients'
nonsense "$(with spec,options,sample_interval 1e-9)" 'sample_interval must be.*22023' 'a sample each nanosecond'
nonsense "$(with spec,options,secs 1e300)" 'secs must be.*22023' 'for ever'
nonsense "$(with spec,options,transactions 18446744073709551615) #- '{spec,options,secs}'" 'expected i64.*22023' \
    'more transactions than a bigint'
nonsense "$(with spec,options,warmup -1)" 'warmup must be.*22023' 'a negative warm-up'
nonsense "$(with spec,options,rate 1e-300)" 'rate must be.*22023' 'next to no rate'
nonsense "$(with spec,options,workload '"a@0"')" 'weight.*22023' 'no weight'
nonsense "$(with spec,options,variables '{"a b": 1}')" 'invalid variable name.*22023' 'a variable of two words'
nonsense "$(with spec,options,settings '{"role": "postgres"}')" 'role.*0A000' 'the role as a setting'
nonsense "$(with spec,options,settings '{"session_authorization": "postgres"}')" 'session_authorization.*0A000' \
    'the session user as a setting'
nonsense "$(with spec,options,settings '{"shared_buffers": "1"}')" 'shared_buffers.*55P02' 'a setting of the server'
nonsense "$(with spec,options,settings '{"log_min_messages": "panic"}')" 'permission denied.*42501' \
    'a setting of a superuser'
fails "$(with spec,scripts,0,source '"SELEC 1"')" 'syntax error at or near .*SELEC.*42601.*"status": "failed"' \
    'a syntax error'
nonsense "$(with spec,scripts,0,source '"\\set x 1 +"')" '42601' 'half an expression'
nonsense "$(with spec,scripts,0,source '""')" 'empty command list.*42601' 'an empty script'
fails "$(with spec,scripts,0,source '"SELECT * FROM nowhere;"')" \
    'relation .*nowhere.* does not exist.*42P01.*"status": "failed"' 'a table that is not there'
fails "$(with spec,scripts,0,source '"DELETE FROM secret;"')" 'permission denied for table secret.*42501' \
    "another's table"
nonsense "$(with spec,scripts,0 '{"name": "a'"'"'b%s\"", "source": "SELECT :nix;", "weight": 1, "fixture": null}')" \
    'undefined variable.*a.b%s.*42703' 'an odd name'
nonsense "$(with spec,scripts,0,fixture 5)" 'do not belong.*22023' 'a fixture that is not sent'
nonsense "$(with spec,scripts '[]')" 'do not belong.*22023' 'no script'
nonsense "$(with tables '[[["bench_internal", "run_log"]]]')" 'do not belong.*22023' 'tables of no fixture'
nonsense "jsonb_set($REQUEST, '{spec,scripts,0,source}', to_jsonb(repeat('SELECT 1; ', 2000000)))" \
    'bytes in total.*54000' 'a script of two million statements'
nonsense "jsonb_set($REQUEST, '{spec,scripts,0,source}', to_jsonb(repeat('SELECT 1; ', 1500000)))" \
    'shared memory.*53400' 'a script of one and a half million statements'
# Of a fixture, whose tables are looked up in the role's name.
FIXTURE="jsonb_set($REQUEST, '{spec,fixtures}', \$json\$[{\"name\": \"x'y%\", \"schema\": \"a\\\", pg_temp; DROP\",
    \"rows\": 5, \"scale\": 1, \"tables\": [1259], \"options\": {}}]\$json\$)"
for table in '["nowhere", "t"]' '["", ""]' '["public", "secret; DROP TABLE public.secret"]' '["a.b.c.d.e", "%s"]'; do
    nonsense "jsonb_set($FIXTURE, '{tables}', \$json\$[[$table]]\$json\$)" \
        '"message": "table .* does not exist on this node", "sqlstate": "42P01"' "table $table"
done
nonsense "jsonb_set($FIXTURE, '{tables}', '[[null]]')" "$INVALID" 'table null'
for table in t 't\"'; do
    nonsense "jsonb_set($FIXTURE, '{tables}', \$json\$[[[\"hidden\", \"$table\"]]]\$json\$)" \
        'permission denied for schema hidden.*42501' "table $table in a schema that is not for this role"
done
fails \
    "jsonb_set(jsonb_set($FIXTURE, '{tables}', '[[[\"public\", \"secret\"]]]'), '{spec,scripts,0}',
        '{\"name\": \"w\", \"source\": \"SELECT * FROM secret;\", \"weight\": 1, \"fixture\": 0}')" \
    'permission denied for table secret.*42501' "another's table as a fixture's"
export PGUSER=postgres
# A superuser's sessions have special rights on this node, too, unless its own superusers have named that role.
PGOPTIONS='-c pgbench_ext.client_role=bench_client' nonsense "$REQUEST" \
    'sessions of role .*postgres.* would have special rights.*42501' "a superuser's part"
is "$(sql "SELECT count(*) FROM secret" "SELECT to_regclass('public.secret') IS NOT NULL")" $'0\nt' \
    "others' tables are as they were"
nothing_left 'after all that'
is "$(sql 'SELECT run_id, role, status, error FROM bench.runs WHERE part_of IS NOT NULL')" '' \
    'no part is left of what was refused'

# One that nobody asks after ends by itself, begun or not.
PGUSER=alice part "$REQUEST"
idle=$(grep -oE '[0-9]+' <<<"$OUT")
PGUSER=alice part "$(with spec,options,secs 60)"
busy=$(grep -oE '[0-9]+' <<<"$OUT")
PGUSER=alice sql "SELECT bench_internal.begin_part($busy,
    (extract(epoch FROM clock_timestamp() + '0.2 s') * 1e6)::bigint - 946684800000000)" >/dev/null
clock
is "$(sql "SELECT bench.wait($busy, 30)")" incomplete 'a part that nobody asks after ends, incomplete'
is "$(sql "SELECT bench.wait($idle, 30)")" failed 'one that never began has failed'
within 22000 'within its lease'
is "$(sql "SELECT error ->> 'sqlstate',
    error ->> 'message' LIKE 'node there:5432 has not asked for this part of its run 7 for%' FROM bench.runs
    WHERE run_id = $busy")" \
    '08006|t' 'and says whom it has not heard of'
nothing_left 'parts that nobody asked after'
no_restart 'the server has not crashed'
log_is_clean
still_works 'after all that'
done_testing
