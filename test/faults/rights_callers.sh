#!/usr/bin/env bash
# Who calls, with which driver, and when a role without special rights plants: its functions are never called in a
# session that could come by special rights. rights.sh has the matrix of plants and entries.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/rights.sh
. test/lib/rights.sh
# shellcheck source=test/lib/update.sh
. test/lib/update.sh

# Two roles have special rights on purpose: one that its call names, and one that gets them amid its run.
rights_start 'max_prepared_transactions = 0' "sensor.allowed = 'witness, riser'" || exit
number_of_cells=0

# As many plants as can be there at a time
TOGETHER=('operator in public' 'functions and aggregates in public' 'row trigger, BEFORE'
    'domain checked in a composite type and in an array' 'index expression and predicate' 'extended statistics'
    'default and generated column' 'rule' 'cast to json and to text')
together() { local name; for name in "${TOGETHER[@]}"; do "$1" "$name"; done; }

#
# The sensor of this test sees: a session with special rights that its caller has named.
#
sql "CREATE ROLE witness SUPERUSER LOGIN"
planted 'row trigger, BEFORE'
mark
as witness "SELECT bench.run(script => 'UPDATE trap.mine SET v = 1 WHERE id = 7', transactions => 1,
    run_as => 'witness')" >/dev/null 2>&1
like "$(special_calls)" 'witness, witness special: t' 'a session of a superuser whom its call names is seen'
is "$(sql "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'" 'ALTER ROLE mallory NOSUPERUSER')" t \
    'and lets her become one'
uproot 'row trigger, BEFORE'

#
# Callers and drivers
#
sql 'CREATE ROLE admins SUPERUSER' 'CREATE ROLE maker LOGIN CREATEROLE' 'CREATE ROLE streamer LOGIN REPLICATION' \
    'CREATE ROLE bypasser LOGIN BYPASSRLS' 'CREATE ROLE filer LOGIN IN ROLE pg_write_server_files' \
    'CREATE ROLE reader LOGIN IN ROLE pg_read_all_data' 'CREATE ROLE setter LOGIN' \
    'GRANT SET ON PARAMETER session_replication_role TO setter' \
    'CREATE ROLE member LOGIN NOINHERIT' 'GRANT admins TO member' 'CREATE ROLE between NOLOGIN' \
    'GRANT admins TO between' 'CREATE ROLE chained LOGIN' 'GRANT between TO chained' 'CREATE ROLE keeper LOGIN'
SPECIAL=(maker streamer bypasser filer reader setter member chained keeper)
if [ "$MAJOR" -ge 16 ]; then
    sql 'GRANT admins TO keeper WITH ADMIN TRUE, INHERIT FALSE, SET FALSE' 'CREATE ROLE heir LOGIN' \
        'GRANT admins TO heir WITH INHERIT TRUE, SET FALSE'
    SPECIAL+=(heir)
else
    sql 'GRANT admins TO keeper WITH ADMIN OPTION'
    skip 'from 16 on' 'a member with SET FALSE; ADMIN alone is not to be had'
fi
sql "SELECT bench.allow(r, 'run', 'capture', 'schedule', 'targets')
    FROM unnest(string_to_array('${SPECIAL[*]}', ' ')) AS r" 'GRANT CREATE ON DATABASE hers TO PUBLIC' >/dev/null
for role in "${SPECIAL[@]}"; do sql "GRANT plain TO $role"; done

UPDATE="script => 'UPDATE trap.mine SET v = v + 1 WHERE id = 7; SELECT count(id), max(p::text) FROM trap.mine;'"
# Copies are made only of tables that a script names without their schema.
BARE="script => 'UPDATE mine SET v = v + 1 WHERE id = 7', settings => '{\"search_path\": \"trap\"}'"
VARIANTS='{"a": {"sql": {"apply": "UPDATE trap.mine SET v = 1", "revert": "UPDATE trap.mine SET v = 2"}}}'
# Each executes a text; what is empty in front of ) takes the arguments of the cell.
CALLS=("bench.run('others', transactions => 2, )" "bench.run($UPDATE, transactions => 2, )"
    "bench.run('orders', transactions => 1, )"
    "bench.duel($UPDATE, a => '{}', b => '{\"settings\": {\"work_mem\": \"8MB\"}}', secs => 0.2, )"
    "bench.sweep($UPDATE, clients => '{1}', secs => 0.1, variants => '$VARIANTS', )"
    "bench.index_worth($BARE, index => 'trap.mine_pkey', secs => 0.2, )"
    "bench.ab($UPDATE, a => '{}', b => '{}', rounds => 3, secs => 0.1, )"
    "bench.capacity($UPDATE, latency_limits => '{100}', clients => 1, trials => 1, secs => 0.2, )")
DRIVERS=("driver => 'engine'" "query_mode => 'simple'" "driver => 'wire'")
NO_DRIVER=("bench.preview(NULL, workload => 'fed')" "bench.capture_log('log_of_caller', 'trap.forging')"
    "bench.create_fixture('own_CALLER', 'CREATE TABLE own_CALLER (LIKE trap.mine INCLUDING ALL)',
        'SELECT trap.known(i::int), i, NULL::trap.pair FROM generate_series(\$1, \$2) AS i')"
    "bench.load('own_CALLER', 5, options => '{\"schema\": \"of_CALLER\"}')")

# One cell: OUT is what the caller gets.
cell() { # CALLER CALL
    number_of_cells=$((number_of_cells + 1))
    OUT=$(PGUSER=$1 timeout 60 psql -XAtq -v VERBOSITY=verbose -c "SELECT pg_catalog.count(*)
        FROM ${2//CALLER/$1}" 2>&1 </dev/null)
}
# Takes the arguments into a call.
with() { echo "${1/, )/, $2)}"; } # CALL ARGUMENTS

together planted
turn=0
for caller in "${SPECIAL[@]}"; do
    mark
    refused=
    # All calls with one driver, all drivers with one call
    for place in "${!CALLS[@]}"; do
        turn=$((turn + 1))
        driver=${DRIVERS[turn % 3]}
        cell "$caller" "$(with "${CALLS[place]}" "$driver")"
        [[ $OUT == *'42501: '* ]] || refused+="$driver, ${CALLS[place]}: $OUT"$'\n'
    done
    cell "$caller" "${NO_DRIVER[0]}"
    [[ $OUT == *42501:* ]] || refused+="${NO_DRIVER[0]}: $OUT"$'\n'
    cell "$caller" "${NO_DRIVER[1]}"
    cell "$caller" "${NO_DRIVER[2]}"
    [[ $OUT == *42501:* ]] || refused+="${NO_DRIVER[2]}: $OUT"$'\n'
    # There is none, then.
    cell "$caller" "${NO_DRIVER[3]}"
    [[ $OUT == *42704:* ]] || refused+="${NO_DRIVER[3]}: $OUT"$'\n'
    is "$refused" '' "$caller: is refused"
    is "$(calls)" 0 "$caller: and nothing of hers was called"
    nothing_special "$caller: nor has she become a superuser"
    mark
    for driver in "${DRIVERS[@]}"; do
        turn=$((turn + 1))
        cell "$caller" "$(with "${CALLS[turn % ${#CALLS[@]}]}" "$driver, run_as => 'plain'")"
        cell "$caller" "$(with "${CALLS[1]}" "$driver, run_as => 'plain'")"
    done
    ok "$caller: sessions of a role without special rights, which run_as names, call hers" [ "$(calls)" -gt 0 ]
    nothing_special "$caller: with none ($(calls) calls)"
done
for caller in plain mallory postgres boss; do
    mark
    for place in "${!CALLS[@]}"; do
        for driver in "${DRIVERS[@]}"; do
            turn=$((turn + 1))
            # Of the slow ones each with one of the drivers
            [ "$place" -lt 2 ] || [ $((turn % 3)) -eq 0 ] || continue
            cell "$caller" "$(with "${CALLS[place]}" "$driver")"
        done
    done
    for call in "${NO_DRIVER[@]}"; do cell "$caller" "$call"; done
    ok "$caller: hers is called" [ "$(calls)" -gt 0 ]
    nothing_special "$caller: with no special rights ($(calls) calls)"
done
together uproot
is "$(sql 'SELECT count(*) FROM bench.runs WHERE run_as NOT IN (SELECT rolname FROM pg_roles WHERE NOT rolsuper)
    AND run_as <> $$witness$$')" 0 'no run had sessions of a superuser'
diag "$number_of_cells cells of callers and drivers"

#
# Planted while a run is under way
#
AMID="clients => 2, secs => 60, sample_interval => 0.1"
# Starts what is given, and waits until it is under way; RUN is the run.
under_way() { # CALLER CALL
    local before
    before=$(last_run)
    started=$(PGUSER=$1 psql -XAtq -c "SELECT $2" 2>&1 </dev/null)
    sampling "${before:-0}" 1
}
# Waits until hers has been called that often since the mark.
called_in_log() { # COUNT
    local deadline=$((SECONDS + 10 + SLACK_S))
    until [ "$(calls)" -ge "$1" ]; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}
stop_run() { sql "SELECT bench.stop($RUN)" "SELECT bench.wait($RUN, 20)" >/dev/null; }
for arguments in "'pk_update', driver => 'engine'" "'pk_update', query_mode => 'simple'" \
    "'pk_update', driver => 'wire', run_as => 'plain'" \
    "'others', driver => 'wire', reconnect => true, run_as => 'plain'"; do
    sql 'GRANT ALL ON bench_data.pk TO plain' >/dev/null
    for name in 'row trigger, BEFORE' 'dblink back as a superuser'; do
        [[ $arguments != *others* || $name = row* ]] || continue
        caller=$([ $((turn++ % 2)) -eq 0 ] && echo postgres || echo boss)
        under_way "$caller" "bench.start($arguments, $AMID)"
        mark
        planted "$name"
        called_in_log 5
        is $? 0 "$arguments: $name, planted while it was under way, is reached"
        stop_run
        nothing_special "$arguments: with no special rights ($(calls) calls)"
        uproot "$name"
        number_of_cells=$((number_of_cells + 1))
    done
done
# What a sweep applies and reverts meets what was not there when it began.
started=$(as postgres "SELECT bench.start_sweep('pk_select', '{1}', secs => 30, variants => '$VARIANTS')")
eventually 10 "SELECT EXISTS (SELECT FROM bench.runs WHERE sweep_id = $started AND status = 'running')"
mark
together planted
sql "SELECT bench.stop_sweep($started)" "SELECT bench.wait_sweep($started, 20)" >/dev/null
ok 'planted before a sweep reverts: it is reached' [ "$(calls)" -gt 0 ]
nothing_special 'with no special rights'
together uproot

#
# A role that gets special rights while its run is under way, and one that was dropped and made again
#
sql 'CREATE ROLE riser LOGIN' "SELECT bench.allow('riser', 'run')" >/dev/null
# The sessions that it has get the rights at once, from the server, like all others of the role; it gets no new ones.
planted 'row trigger, BEFORE'
for arguments in "driver => 'engine'" "driver => 'wire'"; do
    under_way riser "bench.start('others', $arguments, $AMID)"
    sql 'ALTER ROLE riser CREATEROLE'
    stop_run
    mark
    cell riser "bench.run('others', transactions => 1, $arguments, run_as => 'riser')"
    like "$OUT" '42501' "$arguments: a text of others runs in no session of a role that has got special rights"
    is "$(calls)" 0 'nor is hers called'
    nothing_special 'with them'
    sql 'ALTER ROLE riser NOCREATEROLE'
done
uproot 'row trigger, BEFORE'
under_way riser "bench.start('others', driver => 'wire', reconnect => true, $AMID)"
sql 'ALTER ROLE riser SUPERUSER'
sql "SELECT bench.wait($RUN, 20)" >/dev/null
is "$(sql "SELECT error ->> 'sqlstate', error ->> 'message' FROM bench.runs WHERE run_id = $RUN")" \
    '42501|role "riser" has special rights now' \
    'nor does a run get new connections of a role that has become a superuser'
sql 'ALTER ROLE riser NOSUPERUSER'

sql 'CREATE ROLE ghost LOGIN' "SELECT bench.allow('ghost', 'run', 'capture')" >/dev/null
haunted() { # whatever has a text of the role that was dropped
    for call in "bench.run('ghosts', transactions => 1)" "bench.run('ghosts', transactions => 1, run_as => 'plain')" \
        "bench.preview(NULL, workload => 'ghosts')" "bench.run('haunted', transactions => 1)" \
        "bench.preflight('ghosts')" "bench.sweep('ghosts', '{1}', secs => 0.1)" \
        "bench.duel('ghosts', '{}', '{\"settings\": {\"work_mem\": \"8MB\"}}', secs => 0.2)" \
        "bench.load('ghosts_rows', 5)" "bench.check('ghosts_rows')" "bench.resume_sweep($GHOSTS)"; do
        cell "$1" "$call"
    done
}
as ghost "SELECT bench.create_workload('ghosts', 'SELECT trap.known(1);')" \
    "SELECT bench.create_workload('haunted', 'SELECT :a;')" \
    "SELECT bench.add_feeder('haunted', 'SELECT trap.known(1) AS a')" \
    "SELECT bench.create_fixture('ghosts_rows', 'CREATE TABLE ghosts_rows (id int)',
        'SELECT trap.known(i::int) FROM generate_series(\$1, \$2) AS i')" >/dev/null
GHOSTS=$(as ghost "SELECT bench.start_sweep('ghosts', '{1}', secs => 30, variants =>
    '{\"a\": {\"sql\": {\"apply\": \"SELECT trap.known(1)\", \"revert\": \"SELECT trap.known(2)\"}}}')")
eventually 10 "SELECT EXISTS (SELECT FROM bench.runs WHERE sweep_id = $GHOSTS AND status = 'running')"
mark
haunted ghost
ok 'a role reaches hers by its own texts' [ "$(calls)" -gt 0 ]
sql "SELECT bench.stop_sweep($GHOSTS)" "SELECT bench.wait_sweep($GHOSTS, 20)" 'DROP OWNED BY ghost' 'DROP ROLE ghost' \
    >/dev/null
for made in no yes; do
    mark
    if [ "$made" = yes ]; then
        sql 'CREATE ROLE ghost LOGIN' "SELECT bench.allow('ghost', 'run', 'capture')" >/dev/null
        haunted ghost
    fi
    for caller in postgres boss plain; do haunted "$caller"; done
    is "$(calls)" 0 "what a dropped role has written runs nowhere, made again: $made"
done
mark
sql "SELECT bench.reassign_owned(owner, 'boss') FROM (SELECT owner FROM bench.workloads WHERE name = 'ghosts') AS w" \
    >/dev/null 2>&1
for caller in postgres boss; do haunted "$caller"; done
nothing_special "nor with special rights when bench.reassign_owned has given it to a superuser ($(calls) calls)"

#
# A crash: what a sweep has applied is reverted by who resumes it.
#
together planted
started=$(as boss "SELECT bench.start_sweep('pk_select', '{1}', secs => 60, variants => '$VARIANTS')")
eventually 10 "SELECT EXISTS (SELECT FROM bench.runs WHERE sweep_id = $started AND status = 'running')"
mark
victim=$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'")
as_pg kill -9 "$victim"
eventually 20 "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $victim)"
eventually 20 "SELECT status = 'crashed' FROM bench.sweeps WHERE sweep_id = $started"
as boss "SELECT bench.resume_sweep($started)" >/dev/null
called_in_log 2
is $? 0 'a sweep that is resumed after a crash: hers is reached'
sql "SELECT bench.stop_sweep($started)" "SELECT bench.wait_sweep($started, 20)" >/dev/null
nothing_special "with no special rights ($(calls) calls)"
remember_server

#
# A dump of her database in another one. What pg_restore itself executes of hers is the server's matter, and runs with
# the rights of who restores; what is called afterwards is ours.
#
pg_dump -Fc >"$work/dump"
sql 'CREATE DATABASE restored OWNER mallory' >/dev/null
pg_restore -d restored "$work/dump" >"$work/restore" 2>&1
sql 'ALTER ROLE mallory NOSUPERUSER'
mark
for call in "${CALLS[@]}"; do PGDATABASE=restored cell postgres "$(with "$call" "seed => 1")"; done
for call in "${NO_DRIVER[@]}" "bench.run('pk_update', transactions => 2)" "bench.load('log', 10)" \
    "bench.run('fed', transactions => 2)" \
    "bench.resume_sweep($started)" "bench.wait_sweep($started, 1)" "bench.stop_sweep($started)" \
    "bench.wait_sweep($started, 20)" "bench.report(1)" 'bench.summary'; do
    PGDATABASE=restored cell boss "$call"
done
ok 'in a restored database hers is called' [ "$(calls)" -gt 0 ]
nothing_special "with no special rights ($(calls) calls)"
sql 'DROP DATABASE restored'
together uproot

#
# CREATE, ALTER and DROP EXTENSION in a database of hers, with what she has in public and what its sessions have set
#
sql 'CREATE DATABASE young OWNER mallory'
statements=('DROP EXTENSION pgbench_ext CASCADE' 'CREATE EXTENSION pgbench_ext'
    "SELECT bench_internal.create_triggers()" "SELECT bench_internal.make_own_roles()")
next_version
next_version_install >"$work/errors"
is "$(cat "$work/errors")" '' 'the SQL of the next version is made'
statements+=("ALTER EXTENSION pgbench_ext UPDATE TO '$NEXT'")
PGDATABASE=young her_functions
PGDATABASE=young as boss 'CREATE EXTENSION pgbench_ext'
names=('operator in public' 'functions and aggregates in public' 'search_path of the database')
for name in "${names[@]}"; do
    PLANTS[$name]=${PLANTS[$name]//DATABASE hers/DATABASE young}
    PGDATABASE=young planted "$name"
done
mark
for statement in "${statements[@]}"; do
    said=$(PGDATABASE=young PGUSER=boss psql -XAtq -c "$statement" 2>&1)
    is "$said" '' "$statement: works"
done
is "$(calls)" 0 'CREATE, ALTER and DROP EXTENSION call nothing of hers'
sql 'DROP DATABASE young'

#
# Who has installed the extension, and is a superuser no more: what is its own may be anything.
#
sql 'CREATE ROLE installer SUPERUSER LOGIN' 'CREATE DATABASE theirs'
export PGDATABASE=theirs
as installer 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 100)" \
    "SELECT bench.create_workload('ours', 'SELECT 1;')" "SELECT bench.run('ours', transactions => 1)" >/dev/null
sql 'GRANT CREATE ON DATABASE theirs TO mallory' "SELECT bench.allow('plain', 'run', 'capture')" >/dev/null
her_functions
sql 'ALTER ROLE installer NOSUPERUSER' 'GRANT USAGE ON SCHEMA trap TO PUBLIC'
mark
for table in bench.samples bench.workloads bench.fixtures bench_internal.run_log; do
    as installer "CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON $table FOR EACH ROW $fires" \
        "ALTER TABLE $table ENABLE ALWAYS TRIGGER t"
done
as installer 'CREATE RULE r AS ON INSERT TO bench_internal.sweep_log DO ALSO SELECT trap.spring()' \
    'ALTER TABLE bench_internal.load_log ADD CONSTRAINT c CHECK (trap.of_int(1) = 1) NOT VALID' \
    "CREATE OR REPLACE FUNCTION bench_internal.is_visible(oid) RETURNS boolean LANGUAGE sql AS
        \$\$ SELECT trap.spring() \$\$" >/dev/null 2>&1
as installer "INSERT INTO bench.samples (run_id) VALUES (1)" >/dev/null 2>&1
ok 'what a demoted owner plants fires' [ "$(calls)" -gt 0 ]
# But functions in SQL, such as bench.export, are its own: whoever calls them calls its text.
for caller in postgres boss installer plain; do
    mark
    for call in "bench.run('ours', transactions => 1)" "bench.create_workload('more', 'SELECT 1;')" \
        "bench.load('pk', 10)" "bench.delete_run(1)" "bench.run('pk_update', transactions => 1)" \
        "bench.sweep('ours', '{1}', secs => 0.1)" "bench.report(1)" "bench.findings(1)" \
        "bench.capture('seen', secs => 0.1)" "bench.prune('1 s')" \
        "bench.run('ours', driver => 'wire', run_as => 'plain')"; do
        cell "$caller" "$call"
    done
    nothing_special "$caller, in a database of a demoted owner ($(calls) calls)"
done
export PGDATABASE=hers
sql 'DROP DATABASE theirs'

#
# What is raised by others, and what it says
#
planted 'a raised 42501 with words of hers'
OUT=$(sql "SELECT bench.run('others', transactions => 1)" "SELECT bench.run('pk_update', transactions => 1)" 2>&1)
unlike "$OUT" 'GRANT [^.]* TO (bench_client|mallory)|run_as =>' 'a 42501 that a trigger raises brings no advice of ours'
uproot 'a raised 42501 with words of hers'

try "SELECT bench.run('others', driver => 'wire', target => 'round', transactions => 1)"
like "$OUT" '2F003: password is required.*belongs to role "mallory".*ALTER SERVER round OWNER TO' \
    "a superuser needs a password on another role's server"

# The callers who have special rights without being superusers have to name a role.
for caller in maker member; do
    for entry in "SELECT bench.run('pk_update', transactions => 1)" \
        "SELECT bench.load('pk', 10, options => '{\"schema\": \"x\"}')"; do
        OUT=$(PGUSER=$caller psql -XAtq -v VERBOSITY=verbose -c "$entry" 2>&1)
        like "$OUT" '42501' "$caller: refused"
    done
done
# The extension's own role, changed by what it executes
sql 'SET ROLE mallory' "CREATE OR REPLACE FUNCTION trap.spring(way text DEFAULT 'plant') RETURNS boolean
    LANGUAGE plpgsql AS \$\$ BEGIN
    EXECUTE format('ALTER ROLE %I SET search_path = trap', current_user);
    RETURN true;
END \$\$" 'CREATE TRIGGER t BEFORE UPDATE ON trap.mine FOR EACH ROW EXECUTE FUNCTION trap.on_event()'
try "SELECT bench.run('others', transactions => 1)"
try "SELECT bench.run('pk_select', transactions => 1)"
like "$OUT" '55000.*changed.*Role bench_client has settings' 'bench_client that has changed itself is refused'
sql 'ALTER ROLE bench_client RESET ALL' >/dev/null
OUT=$(PGOPTIONS='' psql -XAtq -c "SELECT bench.run('pk_select', transactions => 1)" 2>&1)
like "$OUT" 'sessions of role "bench_client"' 'and taken again when that is taken back'
for spoil in 'CREATEDB' 'PASSWORD '"'x'"; do
    sql "ALTER ROLE bench_client $spoil" >/dev/null
    try "SELECT bench.run('pk_select', transactions => 1)"
    like "$OUT" '55000' "bench_client with $spoil is refused"
    sql 'ALTER ROLE bench_client NOCREATEDB PASSWORD NULL' >/dev/null
done
sql 'GRANT bench_client TO plain' >/dev/null
try "SELECT bench.run('pk_select', transactions => 1)"
like "$OUT" '55000.*has members' 'bench_client with members is refused'
sql 'REVOKE bench_client FROM plain' >/dev/null
OUT=$(PGOPTIONS='' sql "SELECT bench.run(script => 'SELECT count(*) FROM bench.check(''pk'')', transactions => 1)" 2>&1)
like "$OUT" 'permission denied to call functions of pgbench_ext as role "bench_client"' \
    'bench_client calls no function of the extension'

nothing_left 'in the end'
diag "$number_of_cells cells in all"
done_testing
