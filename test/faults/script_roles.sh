#!/usr/bin/env bash
# Scripts that try to leave the role that they run as, to read and write files, or to reach the results: by SET
# ROLE and its kin, and by COPY.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh

#
# Leaving the role
#
ROLES='eve postgres'
as_pgbench 'RESET SESSION AUTHORIZATION and RESET ROLE' "RESET SESSION AUTHORIZATION;
$SAY
RESET ROLE;
$SAY
SET SESSION AUTHORIZATION DEFAULT;
$SAY"
as_pgbench 'SET ROLE to a role that it is member of' "SET ROLE friend;
$SAY
RESET ROLE;
$SAY"
as_pgbench 'SET ROLE that is left set' "$SAY
SET ROLE friend;"
as_pgbench 'SET LOCAL ROLE in a block' "BEGIN;
SET LOCAL ROLE friend;
$SAY
END;
$SAY"
as_pgbench 'SET ROLE to a stranger' "$ADD
SET ROLE stranger;
$SAY"
as_pgbench 'SET ROLE to the superuser' "BEGIN;
$ADD
SET ROLE postgres;
$SAY
END;"
as_pgbench 'SET SESSION AUTHORIZATION' "SET SESSION AUTHORIZATION stranger;
$SAY
RESET SESSION AUTHORIZATION;
$SAY"
as_pgbench 'set_config of role' "SELECT set_config('role', 'postgres', false);
$SAY"
as_pgbench 'from below SET SESSION AUTHORIZATION back up by SET ROLE' "SET SESSION AUTHORIZATION eve;
$SAY
SET ROLE postgres;
$SAY"
# Prepared statements are gone then: the second transaction has none.
MODES='simple extended'
as_pgbench 'DISCARD ALL after SET ROLE' "SET ROLE friend;
DISCARD ALL;
$SAY"
MODES=prepared
ends 'DISCARD ALL after SET ROLE' incomplete 26000 "SET ROLE friend;
DISCARD ALL;
$SAY"
like "$STATE" ' / postgres=postgres / ' \
    'DISCARD ALL after SET ROLE: ends the SET ROLE'
MODES='simple extended prepared'
as_pgbench 'RESET ALL after SET ROLE' "SET ROLE friend;
RESET ALL;
$SAY"
ROLES=eve
MODES='simple prepared'
as_pgbench 'making itself a superuser' 'ALTER ROLE eve SUPERUSER;'
as_pgbench 'reading a file' "SELECT pg_read_file('postgresql.conf');"
as_pgbench 'a setting for superusers' "$ADD
SET session_replication_role = replica;"
as_pgbench 'ALTER SYSTEM' "ALTER SYSTEM SET work_mem = '1MB';"
as_pgbench 'writing into the results' "$ADD
DELETE FROM bench_internal.run_log;"
ends 'ending its coordinator' incomplete 42501 \
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres';"
MODES='simple extended prepared'

#
# COPY
#
# It would be the server's own standard input and output.
for copy in 'COPY acct FROM STDIN' 'COPY acct TO STDOUT' 'COPY (SELECT 1) TO STDOUT' \
    'COPY acct (id, n) FROM STDIN BINARY'; do
    ends "$copy" 'failed|incomplete' 0A000 "BEGIN;
$ADD
$copy;
END;"
    state_is "$FRESH / $RELATIONS" "$copy: nothing is done"
done
MODES=simple
ends 'COPY in a compound statement' incomplete 0A000 "${ADD%;}\\; COPY acct TO STDOUT\\; $ADD"
state_is "$FRESH / $RELATIONS" 'COPY in a compound statement: what is before it is undone'
ends 'COPY FROM STDIN after a COMMIT in a compound statement' incomplete 0A000 \
    "BEGIN\\; ${ADD%;}\\; COMMIT\\; COPY acct FROM STDIN;"
state_is "1 0 0 0 0 0 0 0 0 0 / $RELATIONS" \
    'COPY FROM STDIN after a COMMIT in a compound statement: what was committed stays'
MODES='simple extended prepared'
as_pgbench 'COPY TO STDOUT out of a DO block' "DO \$\$ BEGIN EXECUTE 'COPY acct TO STDOUT'; END \$\$;"
as_pgbench 'COPY FROM STDIN out of a DO block' "DO \$\$ BEGIN EXECUTE 'COPY acct FROM STDIN'; END \$\$;"
ROLES='eve postgres'
as_pg tee "$PGHOST/lines" <<<$'one\ntwo' >/dev/null
as_pgbench 'COPY from a file' "COPY trail FROM '$PGHOST/lines';"
as_pgbench 'COPY to a file' "COPY acct TO '$PGHOST/out';"
as_pgbench 'COPY from a program' "COPY trail FROM PROGRAM 'echo three';"
ROLES=eve

script_done
