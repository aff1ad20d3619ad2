#!/usr/bin/env bash
# `make demo` and `make test` leave the server that PG_CONFIG names as it is, byte for byte, and test their own build
# even where that server has another extension of this name.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# A server of this test's own, with an extension that cannot be created.
DIR=
cluster_directory
server=$DIR
named=$server$("$PG_CONFIG" --bindir)/pg_config
copy_server "$server" -L
libraries=$("$named" --pkglibdir) extensions=$("$named" --sharedir)/extension
rm -f "$libraries"/pgbench_ext* "$extensions"/pgbench_ext*
echo 'no library' >"$libraries/pgbench_ext.so"
echo "default_version = '99.0'" >"$extensions/pgbench_ext.control"
echo 'SELECT 1 / 0;' >"$extensions/pgbench_ext--99.0.sql"

# What is tested is built already. Under sudo, make is called by another user too.
chmod a+rx "$work"
cat >"$work/make" <<END
#!/bin/sh
if [ "\$2" = install ]; then
    folder=\${3#DESTDIR=}
    echo "\$folder" >>'$work/folders'
    find "\$folder" ! -type d -name 'pgbench_ext*' >>'$work/others'
    exec make --no-print-directory install-built "\$3" PROFILE=${TESTED_PROFILE:-release}
fi
exec make "\$@"
END
chmod +x "$work/make"

# Each file with its type, mode, owner, time and contents, or where it leads.
state() {
    (cd "$server" && find . -printf '%p %y %m %u %T@ %l\n' && find . -type f -exec sha256sum {} +) | LC_ALL=C sort
}
leaves_it() { # NAME COMMAND…
    env -u MAKEFLAGS MAKE="$work/make" PG_CONFIG="$named" "${@:2}" </dev/null >"$work/out" 2>&1
    is $? 0 "$1: succeeds"
    is "$(state | diff "$work/before" - | head -n 5)" '' "$1: leaves the server as it is"
    like "$(cat "$work/out")" "$REGEX" "$1: its own build has run"
}

state >"$work/before"
ok "the server's files are known" [ "$(wc -l <"$work/before")" -gt 1000 ]
REGEX='workload +\| pk_update.*status +\| completed'
leaves_it 'the demo' scripts/demo
REGEX='2 passed, 0 failed.*3 passed, 0 failed$'
leaves_it 'a test' env FULL= SERVERS=here SUITE= FILE=sql/help.sql JOBS=1 test/run
is "$(wc -l <"$work/folders")" 2 'both install into copies'
is "$(cat "$work/others")" '' 'without the files of the other extension'
is "$(xargs ls -d <"$work/folders" 2>/dev/null)" '' 'and remove them'
is "$(pgrep -f "^($(paste -sd'|' "$work/folders"))/")" '' 'none of their servers is left'
touch "$libraries/more"
unlike "$(state | diff "$work/before" -)" '^$' 'one file more would have been seen'
done_testing
