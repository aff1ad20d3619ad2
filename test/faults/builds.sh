#!/usr/bin/env bash
# Another build of the library is installed under a running server: its workers refuse the sessions that have the old
# one, and each side leaves the other's work alone.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

library=$("$PG_CONFIG" --pkglibdir)/pgbench_ext.so
faults_start
# The same library under another name of its own. By rename, for a running server has the file mapped.
cp -p "$library" "$work/own.so"
# The cluster is stopped before the server's library is back in its place: no process of it may see both.
at_exit 'cluster_remove_all; put "$work/own.so"'
put() { cp -p "$1" "$library.new" && mv -f "$library.new" "$library"; }
sed -E 's/(pgbench_ext build )[0-9a-f]{16}/\10123456789abcdef/' "$work/own.so" >"$work/other.so"
chmod 755 "$work/other.so"
is "$(cmp -l "$work/own.so" "$work/other.so" | wc -l | tr -d ' ' | grep -cE '^([1-9]|1[0-6])$')" 1 \
    'the other build differs in its name alone'
own=$(grep -aoE 'pgbench_ext build [0-9a-f]{16}' "$work/own.so" | head -1 | cut -d' ' -f3)

# One session loads the library that it keeps.
mkfifo "$work/old.in"
psql -XAt -v VERBOSITY=verbose <"$work/old.in" >"$work/old" 2>&1 &
PIDS[old]=$!
exec 7>"$work/old.in"
old() { # SECS STATEMENT: what the session says to it
    local from deadline=$((SECONDS + $1))
    from=$(wc -l <"$work/old")
    printf '%s\n\\echo done\n' "$2" >&7
    until grep -q '^done$' < <(tail -n +$((from + 1)) "$work/old"); do
        [ "$SECONDS" -lt "$deadline" ] || break
        sleep 0.05
    done
    OUT=$(tail -n +$((from + 1)) "$work/old")
}
old 10 "SELECT bench.run('pk_select', transactions => 10);"
like "$OUT" 'done' 'a session loads the library'
run=$(sql "SELECT bench.start('pk_update', clients => 2, secs => 300, sample_interval => 0.2)")
eventually 10 "SELECT count(*) > 1 FROM bench.samples WHERE run_id = $run"
slow="SELECT bench.create_fixture('slow', 'CREATE TABLE slow (id bigint PRIMARY KEY)',
    'SELECT id + 0 * length(pg_sleep(0.01)::text) FROM generate_series(\$1, \$2) AS id')"
sql "$slow" >/dev/null
session load "SELECT bench.load('slow', 100000, 1)"
eventually 10 "SELECT phase = 'loading rows' FROM bench.progress WHERE fixture = 'slow'"
put "$work/other.so"

# The old session's workers are of the new build.
for call in "bench.run('pk_select', transactions => 10)" "bench.start('pk_select', transactions => 10)" \
    "bench.load('log', 10)" \
    "bench.start_sweep('pk_select', '{1}', secs => 0.2, rounds => 1)"; do
    old 20 "SELECT $call;"
    error='ERROR:  55000: another build of pgbench_ext was installed after this session had loaded its own'
    detail="DETAIL:  The session has build $own, its background worker build 0123456789abcdef\."
    like "$OUT" "$error.*$detail.*HINT:  Reconnect" \
        "a session with the old build: ${call%%(*} says what to do"
done
like "$(cat "$PGHOST/log")" 'ERROR:  another build of pgbench_ext was installed' 'the log has the refusal'

# A new session sees that the old build's run goes on, and keeps its hands off.
is "$(sql "SELECT status FROM bench.runs WHERE run_id = $run")" running \
    'a new session: the run of the old build is not taken for crashed'
for call in "bench.wait($run)" "bench.stop($run)"; do
    try "SELECT $call"
    like "$OUT" "ERROR:  55000: .*run $run was started with another build of pgbench_ext.*HINT:" \
        "a new session: ${call%%(*} says why it cannot"
done
try "SELECT bench.load('pk', 10)"
like "$OUT" "ERROR:  55006: .*used by run $run" 'a new session: a load finds the fixture in use'
is "$(sql "SELECT bench.load('log', 10)" 2>/dev/null)" 10 'a new session: a load of another fixture works'
is "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench\\_loading%'")" 1 \
    'a new session: it leaves the tables of the load under way alone'
is "$(sql "SELECT bench.wait(bench.start('pk_select', transactions => 10))")" completed \
    'a new session: a run of its own works'

# The old build's session is none the worse, and reaches its own run.
old 10 "SELECT bench.stop($run);"
like "$OUT" '^t$|^t[[:space:]]' 'the session with the old build stops its run'
is "$(sql "SELECT bench.wait($run)")" canceled 'the run of the old build has ended properly'
old 10 "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'load'; SELECT 1;"
ended load 10
exec 7>&-
nothing_left 'at the end'
log_is_clean
no_restart 'the server has not restarted'
done_testing
