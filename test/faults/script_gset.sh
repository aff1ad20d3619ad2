#!/usr/bin/env bash
# Scripts that take results into variables by \gset and \aset.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/script.sh
. test/lib/script.sh
# shellcheck disable=SC2034 # for as_pgbench
# On other versions only the server's part of a script can differ.
if [ -n "${ELSEWHERE:-}" ]; then DRIVERS=engine; else DRIVERS='engine wire'; fi

#
# \gset and \aset
#
NOTE='INSERT INTO trail VALUES ((:x)::int::text);'
as_pgbench '\gset of a row' "SELECT 1 + :client_id AS x \\gset
$NOTE
\\set x :x * 2
$NOTE"
as_pgbench '\gset of no row' "$ADD
SELECT 1 AS x WHERE false \\gset
\\set y 1"
as_pgbench '\gset of two rows' "BEGIN;
$ADD
SELECT generate_series(1, 2) AS x \\gset
END;"
as_pgbench '\gset of an UPDATE of two rows, outside a block' \
    "UPDATE acct SET n = n + 1 WHERE id IN (1, 2) RETURNING n AS x \\gset
$NOTE"
as_pgbench '\gset of an UPDATE of one row' "UPDATE acct SET n = n + 1 WHERE id = 1 RETURNING n AS x \\gset
$NOTE"
as_pgbench '\gset of an UPDATE without RETURNING' "${ADD%;} \\gset
$ADD_TOO"
as_pgbench '\gset of a COMMIT' "BEGIN;
$ADD
COMMIT \\gset
$ADD_TOO"
as_pgbench '\gset of DDL' "$ADD
CREATE TABLE made () \\gset
$ADD_TOO"
as_pgbench '\gset of a column that is no name' "$ADD
SELECT 1 \\gset
$ADD_TOO"
as_pgbench '\gset of a bad name in a block' "BEGIN;
$ADD
SELECT 1 AS \"bad name!\" \\gset
END;"
as_pgbench '\gset of a name that a prefix makes good' "SELECT 3 AS \"1\" \\gset x
INSERT INTO trail VALUES ((:x1)::int::text);"
as_pgbench '\gset of NULL' "SELECT NULL::int AS x \\gset
INSERT INTO trail VALUES ('[' || (:x)::text || ']');"
as_pgbench '\gset of a row without columns' "SELECT \\gset
$ADD"
as_pgbench '\gset of the same name twice' "SELECT 1 AS x, 2 AS x \\gset
$NOTE"
as_pgbench '\gset of values that are computed with' \
    "SELECT true AS b, 1.5::float8 AS d, -9223372036854775808 AS i, ' 12' AS s \\gset v_
\\set x case when :v_b then int(:v_d * 2) + :v_s else 0 end
$NOTE"
as_pgbench '\gset of a value that cannot be computed with' "BEGIN;
$ADD
SELECT 'words' AS x \\gset
\\set y :x + 1
END;"
as_pgbench '\gset of a name with capitals' "SELECT 8 AS \"X\", 9 AS x \\gset
INSERT INTO trail VALUES ((:X)::int::text), ((:x)::int::text);"
as_pgbench '\gset of a variable of its own' "SELECT 5 AS client_id, 6 AS random_seed \\gset
INSERT INTO trail VALUES ((:client_id)::int::text), ((:random_seed)::int::text);"
as_pgbench '\gset of SHOW and EXPLAIN' "SHOW work_mem \\gset
EXPLAIN SELECT 1 \\gset"
as_pgbench '\aset of no row, and of three' "\\set x 9
SELECT 1 AS x WHERE false \\aset
$NOTE
SELECT generate_series(1, 3) AS x \\aset
$NOTE"
as_pgbench '\aset of an UPDATE' "UPDATE acct SET n = n + 1 WHERE id <= 3 RETURNING id AS x \\aset
$NOTE
${ADD%;} \\aset"
as_pgbench '\aset of a bad name' "$ADD
SELECT 1 AS \"a b\" \\aset"
MODES=simple
as_pgbench '\gset of several statements' "SELECT 1 AS x\\; SELECT generate_series(1, 3) AS y\\; SELECT 3 AS z \\gset g_
INSERT INTO trail VALUES ((:g_z)::text);"
as_pgbench '\gset of several statements, the last without rows' "SELECT 1 AS x\\; ${ADD%;} \\gset"
as_pgbench '\aset of several statements' \
    "SELECT 1 AS x\\; ${ADD%;}\\; SELECT 2 AS y WHERE false\\; SELECT generate_series(1, 3) AS z \\aset
INSERT INTO trail VALUES ((:x)::text || (:z)::text);"
MODES='simple extended prepared'
# A client's encoding is that of what goes to it and of what comes from it.
MODES='extended prepared' DRIVERS=engine
OTHER_ENCODING="SET client_encoding = 'LATIN1';
SELECT chr(233) AS x \\gset
UPDATE acct SET n = n + 1 WHERE :x = chr(233);"
as_pgbench '\gset of a text in another encoding' "$OTHER_ENCODING"
ends '\gset of a text in another encoding, by the wire driver' incomplete 22021 "$OTHER_ENCODING" \
    "transactions => 3, driver => 'wire'"
MODES='simple extended prepared'

script_done
