#!/usr/bin/env bash
# The sensor (test/lib/sensor) sees what it shall see: calls of a user's function with special rights that are made here
# on purpose, and nothing else.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# One of its own, whatever SENSOR says.
cluster_directory || exit
export SENSOR_LIBRARIES=$DIR
chmod a+rx "$DIR"
if ! output=$(test/lib/sensor/build "$DIR"); then
    echo "1..0 # SKIP the sensor could not be built: ${output##*$'\n'}"
    exit
fi
is "$output" '' 'it is built without warnings'
# What is planted here is no finding.
unset TEST_RECORDS

faults_start "shared_preload_libraries = 'pg_stat_statements'" 'autovacuum = off'
is "$(sql 'SHOW shared_preload_libraries')" \
    "pg_stat_statements, \"$DIR/sensor-$(as_pg cat "$PGHOST/data/PG_VERSION").so\"" \
    'it is preloaded after what a test preloads'

# What the log got since the last look, and how many calls were counted since then.
seen=0 lines=0
look() {
    local counts
    read -ra counts < <(od -An -v -t u8 -N 32 -w32 "$PGHOST/data/sensor.counts")
    COUNTED=$((counts[2] - seen)) seen=${counts[2]}
    LOGGED=
    [ -e "$PGHOST/data/sensor.log" ] || return 0
    LOGGED=$(tail -n +$((lines + 1)) "$PGHOST/data/sensor.log" | tr '\t' ' ')
    lines=$(wc -l <"$PGHOST/data/sensor.log")
}

# The owner could become a superuser, and so a superuser's session may call it; it is a user all the same.
sql 'CREATE ROLE plain LOGIN IN ROLE postgres' 'CREATE ROLE poor LOGIN' 'CREATE SCHEMA plain' \
    'GRANT USAGE ON SCHEMA plain TO PUBLIC' \
    'GRANT CREATE ON SCHEMA plain TO plain' 'SET ROLE plain' \
    "CREATE FUNCTION plain.f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'" \
    "CREATE FUNCTION plain.inlined() RETURNS int LANGUAGE sql AS 'SELECT 1'" \
    "CREATE FUNCTION plain.fails() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1 / 0; END'" \
    "CREATE FUNCTION plain.in_parallel(leader int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN
        ASSERT pg_backend_pid() <> leader; RETURN 1; END'" \
    "CREATE FUNCTION plain.\"new
line\"() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'" 'RESET ROLE' \
    "CREATE FUNCTION through(text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE \$1; END'" \
    'ALTER EXTENSION pgbench_ext ADD FUNCTION through' \
    "SELECT bench.create_workload('calls', 'SELECT plain.f();')" \
    "SELECT bench.create_workload('inlined', 'SELECT plain.inlined();')" >/dev/null
look
is "$COUNTED:$LOGGED" 0: 'a load and a change of the catalog: no violation'

sql 'SELECT plain.f(), plain.inlined()' >/dev/null
look
is "$COUNTED:$LOGGED" 0: "a superuser's own SELECT: none"

#
# What pgbench_ext does
#
call="SELECT through('SELECT plain.f()')"
sql "SELECT bench.run('calls', clients => 2, transactions => 5, run_as => 'postgres')" >/dev/null 2>&1
look
is "$COUNTED:$(uniq -c <<<"$LOGGED" | sed 's/^ *//')" \
    '10:2 worker plain.f() plain* postgres* postgres* postgres*' \
    'a worker: each call is counted, and each process has one line'
sql "SELECT bench.run('inlined', transactions => 5, run_as => 'postgres')" >/dev/null 2>&1
look
is "$COUNTED:$LOGGED" '5:worker plain.inlined() plain* postgres* postgres* postgres*' \
    'a worker: an SQL function is seen as well, for it is not inlined'

PGAPPNAME='pgbench_ext link' sql "SET application_name = 'another'; SELECT plain.f(), plain.\"new
line\"()" >/dev/null
look
is "$COUNTED:$LOGGED" '2:wire plain.f() plain* postgres* postgres* postgres*
wire plain."new?line"() plain* postgres* postgres* postgres*' 'a connection of a worker, whatever its script sets'

sql "$call" 'SELECT plain.f()' >/dev/null
look
is "$COUNTED:$LOGGED" '1:call plain.f() plain* postgres* postgres* postgres*' \
    'a session: while a function of the extension is on its stack'
sql "DO \$\$ BEGIN PERFORM through('SELECT plain.fails()'); EXCEPTION WHEN division_by_zero THEN NULL; END \$\$" \
    'SELECT plain.f()' >/dev/null
look
is "$COUNTED:$LOGGED" '1:call plain.fails() plain* postgres* postgres* postgres*' \
    'a session: and not after an error has unwound it'

# Which parameter forces a parallel plan depends on the version.
forced="SELECT set_config(name, 'on', false) FROM pg_settings
    WHERE name IN ('force_parallel_mode', 'debug_parallel_query')"
is "$(sql "$forced; SELECT through(format('SELECT plain.in_parallel(%s)', pg_backend_pid()))" 2>&1)" on \
    'a function is called in a parallel worker'
look
is "$COUNTED:$LOGGED" '1:call plain.in_parallel(integer) plain* postgres* postgres* postgres*' \
    'a parallel worker is where its leader is'

#
# Whose rights
#
sql "SET SESSION AUTHORIZATION poor; $call" >/dev/null
look
is "$COUNTED:$LOGGED" '1:call plain.f() plain* postgres* poor poor' \
    'RESET SESSION AUTHORIZATION would bring the rights back'
PGUSER=poor sql "$call" >/dev/null
look
is "$COUNTED:$LOGGED" 0: 'an ordinary role: none'
for rights in 'GRANT pg_write_all_data TO poor|REVOKE pg_write_all_data FROM poor' \
    'GRANT SET ON PARAMETER work_mem TO poor|REVOKE SET ON PARAMETER work_mem FROM poor' \
    'ALTER ROLE poor CREATEROLE|ALTER ROLE poor NOCREATEROLE' \
    'CREATE ROLE rich BYPASSRLS; CREATE ROLE between NOINHERIT IN ROLE rich ROLE poor|DROP ROLE between, rich'; do
    sql "${rights%|*}"
    PGUSER=poor sql "$call" >/dev/null
    look
    is "$COUNTED:$LOGGED" '1:call plain.f() plain* poor* poor* poor*' "${rights%|*}: special rights"
    sql "${rights#*|}"
    PGUSER=poor sql "$call" >/dev/null
    look
    is "$COUNTED:$LOGGED" 0: "${rights#*|}: none"
done
PGUSER=poor sql "$call" '\! psql -XAtqU postgres -c "ALTER ROLE poor CREATEROLE"' "$call" >/dev/null
look
is "$COUNTED:$LOGGED" '1:call plain.f() plain* poor* poor* poor*' 'rights that come in the midst of a session'
sql 'ALTER ROLE poor NOCREATEROLE'
PGUSER=poor sql 'SET sensor.allowed = poor' >/dev/null 2>"$work/refused"
like "$(cat "$work/refused")" 'permission denied to set parameter' 'no ordinary role says what is allowed'

#
# What a test allows
#
sql "ALTER SYSTEM SET sensor.allowed = 'nobody', 'postgres'" 'SELECT pg_reload_conf()' >/dev/null
eventually 10 "SELECT current_setting('sensor.allowed') LIKE '%postgres%'"
look
sql "SELECT bench.run('calls', clients => 2, transactions => 5, run_as => 'postgres')" \
    "$call" >/dev/null 2>&1
look
is "$COUNTED:$LOGGED" 0: 'sensor.allowed: a role that is named in it may'
sql 'ALTER ROLE poor SUPERUSER'
PGUSER=poor sql "$call" >/dev/null
look
is "$COUNTED:$LOGGED" '1:call plain.f() plain* poor* poor* poor*' 'sensor.allowed: and no other'

sql 'ALTER EXTENSION pgbench_ext DROP FUNCTION through'
log_is_clean
no_restart 'the server has not restarted'
done_testing
