#!/usr/bin/env bash
# Scripts that use what belongs to a session: notifications, cursors, temporary tables, settings, session locks,
# prepared statements. There is no client, and the next transaction finds what a session would find.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh

#
# Notifications
#
# There is no client to notify.
ends LISTEN incomplete 0A000 "$ADD
LISTEN x;"
as_pgbench UNLISTEN "UNLISTEN x;
UNLISTEN *;
$ADD"
as_pgbench NOTIFY "BEGIN;
NOTIFY x, 'payload';
$ADD
END;"
as_pgbench 'a NOTIFY that is too long' "$ADD
SELECT pg_notify('x', repeat('x', 10000));"
psql -XAtq -v ON_ERROR_STOP=1 -c 'SET ROLE eve' -c \
    "SELECT bench.create_workload('notifies', 'SELECT pg_notify(\$\$heard\$\$, \$\$word\$\$);')" >/dev/null
OUT=$(sql 'LISTEN heard' 'SET ROLE eve' "SELECT bench.run('notifies', transactions => 2)" 'SELECT 1' 2>&1)
like "$OUT" 'Asynchronous notification "heard" with payload "word"' 'a NOTIFY is heard by others'

#
# Cursors
#
as_pgbench 'a cursor' "BEGIN;
DECLARE c CURSOR FOR SELECT id FROM acct ORDER BY id;
FETCH 2 FROM c;
MOVE 1 IN c;
UPDATE acct SET n = n + 1 WHERE CURRENT OF c;
CLOSE c;
END;"
as_pgbench 'a cursor left open at the COMMIT' "BEGIN;
DECLARE c CURSOR FOR SELECT id FROM acct ORDER BY id;
FETCH 2 FROM c;
$ADD
COMMIT;"
as_pgbench 'a cursor without a block' "$ADD
DECLARE c CURSOR FOR SELECT 1;"
as_pgbench 'a cursor WITH HOLD' "DECLARE c CURSOR WITH HOLD FOR SELECT id FROM acct ORDER BY id;
FETCH 2 FROM c;
$ADD
CLOSE c;"
as_pgbench 'a cursor WITH HOLD left open' "$ADD
DECLARE c CURSOR WITH HOLD FOR SELECT id FROM acct ORDER BY id;
FETCH ALL FROM c;"
as_pgbench 'a large cursor WITH HOLD left open' "$ADD
DECLARE c CURSOR WITH HOLD FOR SELECT repeat('x', 1000), g FROM generate_series(1, 20000) g;"
as_pgbench 'CLOSE ALL' "DECLARE c CURSOR WITH HOLD FOR SELECT 1;
CLOSE ALL;
$ADD"
as_pgbench 'a cursor without a name' "BEGIN;
$ADD
DECLARE \"\" CURSOR FOR SELECT 1;
END;"
as_pgbench 'FETCH from a cursor that is not there' "$ADD
FETCH 1 FROM nowhere;"
as_pgbench '\gset of a FETCH' "BEGIN;
DECLARE c CURSOR FOR SELECT 40 + id AS id FROM acct ORDER BY id;
FETCH 1 FROM c \\gset got_
END;
INSERT INTO trail VALUES (:got_id::int::text);"

#
# What belongs to a session
#
# Not prepared: statements on what an earlier one makes cannot be prepared before it.
MODES='simple extended'
as_pgbench 'temporary tables' "BEGIN;
CREATE TEMPORARY TABLE temp (x int) ON COMMIT DROP;
INSERT INTO temp VALUES (1);
UPDATE acct SET n = n + (SELECT sum(x) FROM temp) WHERE id = 1;
END;"
as_pgbench 'a temporary table that is left' "CREATE TEMPORARY TABLE IF NOT EXISTS temp (x int);
INSERT INTO temp VALUES (1);
UPDATE acct SET n = n + (SELECT count(*) FROM temp) WHERE id = 1;"
as_pgbench 'a temporary table in the place of a real one' "CREATE TEMPORARY TABLE acct (id int, n int);
INSERT INTO acct VALUES (1, 1);
UPDATE acct SET n = n + 1;
DROP TABLE acct;
$ADD"
as_pgbench 'a table made and dropped' "CREATE TABLE made (x int);
INSERT INTO made SELECT generate_series(1, 10);
UPDATE acct SET n = n + (SELECT count(*) FROM made) WHERE id = 1;
DROP TABLE made;"
MODES='simple extended prepared'
as_pgbench 'DISCARD TEMP' "CREATE TEMPORARY TABLE temp (x int);
DISCARD TEMP;
$ADD"
MODES='simple extended'
as_pgbench 'SET, RESET ALL and DISCARD ALL' "SET work_mem = '1MB';
INSERT INTO trail VALUES (current_setting('work_mem'));
RESET ALL;
INSERT INTO trail VALUES (current_setting('work_mem') || current_setting('search_path'));
SET work_mem = '2MB';
DISCARD ALL;
INSERT INTO trail VALUES (current_setting('work_mem') || current_setting('search_path'));
DISCARD PLANS;
DISCARD SEQUENCES;
$ADD" '{"work_mem": "7MB", "search_path": "public"}' '-c work_mem=7MB -c search_path=public'
like "$STATE" '1MB 1MB 1MB 7MBpublic 7MBpublic 7MBpublic 7MBpublic 7MBpublic 7MBpublic' \
    'they come back to the run'\''s settings'
MODES=prepared
ends 'RESET ALL and DISCARD ALL' completed '' "SET work_mem = '1MB';
RESET ALL;
INSERT INTO trail VALUES (current_setting('work_mem'));
SET work_mem = '2MB';
DISCARD ALL;
INSERT INTO trail VALUES (current_setting('work_mem'));" "transactions => 1, settings => '{\"work_mem\": \"7MB\"}'"
like "$STATE" ' / 7MB 7MB / ' 'RESET ALL and DISCARD ALL come back to the run'\''s settings'
MODES='simple extended prepared'
as_pgbench 'DISCARD ALL in a block' "BEGIN;
$ADD
DISCARD ALL;
END;"
as_pgbench 'SET outlasts its transaction, SET LOCAL does not' "INSERT INTO trail VALUES (current_setting('work_mem'));
BEGIN;
SET LOCAL work_mem = '2MB';
INSERT INTO trail VALUES (current_setting('work_mem'));
END;
BEGIN;
SET work_mem = '3MB';
ROLLBACK;
INSERT INTO trail VALUES (current_setting('work_mem'));
SET work_mem = '4MB';"
as_pgbench 'a session lock that is left' "SELECT pg_advisory_lock(1);
$ADD"
as_pgbench 'PREPARE and EXECUTE' "PREPARE p AS UPDATE acct SET n = n + 1 WHERE id = 3;
EXECUTE p;
DEALLOCATE p;"
as_pgbench 'PREPARE that is left' "$ADD
PREPARE p AS SELECT 1;"
# Prepared statements are gone then: the second transaction has none.
MODES='simple extended'
as_pgbench 'DEALLOCATE ALL' "DEALLOCATE ALL;
$ADD"
MODES=prepared
ends 'DEALLOCATE ALL' incomplete 26000 "DEALLOCATE ALL;
$ADD"
state_is "1 0 0 0 0 0 0 0 0 0 / $RELATIONS" 'DEALLOCATE ALL: the script goes on until then'
MODES='simple extended prepared'
as_pgbench 'settings that change results' "SET bytea_output = escape;
SET DateStyle = German;
SELECT date '2020-01-31', bytea '\\x00ff';
SET search_path = '';
SELECT 1;
SET search_path = public;
$ADD"

#
# Messages
#
# There is no client that they are sent to: the server's log has them.
sql "SELECT bench.create_workload('says',
    'DO \$\$BEGIN RAISE NOTICE ''a notice''; RAISE WARNING ''a warning''; END\$\$;')" \
    >/dev/null
said() { grep -cE "(NOTICE|WARNING):  a (notice|warning)\$" "$PGHOST/log"; }
before=$(said)
sql "SELECT bench.run('says', transactions => 3)" >/dev/null 2>&1
is "$(($(said) - before))" 3 'WARNINGs of scripts are in the server log'
sql "SELECT bench.run('says', transactions => 3, settings => '{\"log_min_messages\": \"notice\"}')" >/dev/null 2>&1
is "$(($(said) - before))" 9 'with log_min_messages, NOTICEs too'

script_done
