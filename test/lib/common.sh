# shellcheck shell=bash
# What the fault tests have in common: source this file after `cd` to the project's root.
#
#   session NAME STATEMENT…   a psql in the background; its application_name is NAME
#   ended NAME [SECS]         waits for its end; OUT is what it printed
#   leave NAME                ends a session that only held something
#   try STATEMENT…            a psql; OUT is what it printed, errors with their SQLSTATEs
#   eventually SECS QUERY     waits until a query says true
#   pid_of NAME               process id of a session's backend
#   clock; within MS DESC     a test that no more time has passed since `clock`
#   tpcb_is_consistent DESC [SCHEMA]
#   last_tests                called by done_testing: bench.check of all loaded fixtures but those in UNCHECKED
#   status_is RUN STATUS DESC, kept RUN DESC, nothing_left DESC, no_restart DESC, log_is_clean

# shellcheck source=test/lib/cluster.sh
. test/lib/cluster.sh
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

# Seconds that are added to every wait and every limit: what others take of the machine. A limit says that an end comes
# by itself, not after the 30 or 60 s for which something would go on.
SLACK_S=5

work=$(mktemp -d)
declare -A PIDS=()
at_exit 'rm -rf "$work"'
at_exit 'kill "${PIDS[@]}" 2>/dev/null'

# A cluster with the extension and a small fixture; takes lines of configuration.
# shellcheck disable=SC2120 # or none
faults_start() {
    cluster_start 'fsync = off' 'autovacuum = off' "$@" &&
        sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" >/dev/null || exit 1
    remember_server
}

# The checkpointer is a new process after a crash, while the postmaster stays.
server_identity() {
    sql "SELECT pg_postmaster_start_time(), pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
}

# The checkpointer appears a moment after the server lets sessions in.
remember_server() {
    eventually 10 "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
    SERVER=$(server_identity)
}

no_restart() { is "$(server_identity)" "$SERVER" "$1"; }

psql_verbose() {
    local args=() statement
    for statement in "$@"; do args+=(-c "$statement"); done
    psql -XAt -v VERBOSITY=verbose "${args[@]}" 2>&1
}

session() {
    local name=$1
    shift
    local args=() statement
    for statement in "$@"; do args+=(-c "$statement"); done
    PGAPPNAME=$name psql -XAt -v VERBOSITY=verbose "${args[@]}" >"$work/$name" 2>&1 </dev/null &
    PIDS[$name]=$!
    disown # no word from bash when it is killed
}

ended() {
    local name=$1 deadline=$((SECONDS + ${2:-20} + SLACK_S)) pid=${PIDS[$1]}
    while kill -0 "$pid" 2>/dev/null; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            diag "session $name did not end"
            kill "$pid"
            break
        fi
        sleep 0.02
    done
    unset "PIDS[$name]"
    OUT=$(cat "$work/$name")
}

pid_of() { sql "SELECT pid FROM pg_stat_activity WHERE application_name = '$1'"; }

leave() {
    sql "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '$1'" >/dev/null
    ended "$1"
}

# Waits until the session NAME sleeps, with whatever it did before done.
holds() {
    eventually 10 "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '$1'
        AND wait_event = 'PgSleep')"
}

# shellcheck disable=SC2034 # OUT is for the scripts
try() { OUT=$(timeout "${TRY_S:-60}" bash -c "$(declare -f psql_verbose)"'; psql_verbose "$@"' try "$@") || true; }

eventually() {
    local deadline=$((SECONDS + $1 + SLACK_S))
    until [ "$(sql "$2" 2>/dev/null)" = t ] || watched "$2" $((deadline - SECONDS)); do
        if [ "$SECONDS" -ge "$deadline" ]; then
            diag "never came true: $2"
            return 1
        fi
        sleep 0.03
    done
}

# Asks again and again in one session: a psql for each question would take the processors from what is waited for.
# It fails as soon as its session ends, by an error or with the server.
watched() { # QUERY SECS
    grep -qx t < <(timeout "$(($2 > 0 ? $2 : 1))" psql -XAtq <<<"$1 \\watch 0.03" 2>/dev/null)
}

clock() { CLOCK=${EPOCHREALTIME/[.,]/}; }

within() { # MILLISECONDS DESCRIPTION
    local ms=$(((${EPOCHREALTIME/[.,]/} - CLOCK) / 1000)) most=$(($1 + SLACK_S * 1000))
    if [ "$ms" -le "$most" ]; then tap_pass "$2"; else tap_fail "$2" "$ms ms, not within $most ms"; fi
}

last_run() { sql 'SELECT max(run_id) FROM bench.runs'; }

# Waits until a new run has that many samples; RUN is its id.
# shellcheck disable=SC2034 # RUN is for the scripts
sampling() { # RUNS-BEFORE SAMPLES [TABLE]
    eventually 15 "SELECT count(*) >= $2 FROM bench.${3:-samples} WHERE run_id > $1" ||
        { tap_fail "a run after $1 has $2 samples"; }
    RUN=$(last_run)
}

# The run's status, when its coordinator has ended.
status_is() {
    is "$(sql "SELECT bench.wait($1, 15)" 2>&1)" "$2" "$3: the run's status is $2"
}

# How many transactions ended after the measured time: the histogram has them too. Of the nodes that have a histogram.
drained() { # RUN
    sql "SELECT coalesce(sum(harness), 0) FROM bench.audits WHERE run_id = $1 AND counter = 'committed: drain'
        AND node IN (SELECT node FROM bench.latencies WHERE run_id = $1)"
}

# What was measured is there, and samples and histogram tell the same.
kept() {
    is "$(sql "SELECT count(*) >= 2 AND sum(transactions) > 0 FROM bench.samples WHERE run_id = $1")" t \
        "$2: its samples are kept"
    # Of a node that was lost there are samples, but no histogram.
    is "$(sql "SELECT (SELECT sum(count) FROM bench.latencies WHERE run_id = $1) -
                      (SELECT sum(transactions) FROM bench.samples WHERE run_id = $1
                       AND node IN (SELECT node FROM bench.latencies WHERE run_id = $1))")" "$(drained "$1")" \
        "$2: the histogram has the transactions of the samples, and those that ended later"
}

error_of() { sql "SELECT error ->> 'sqlstate' FROM bench.runs WHERE run_id = $1"; }

workers() { sql "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'"; }

nothing_left() {
    if eventually "${2:-3}" "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'" \
        >"$work/left"; then
        tap_pass "$1: no worker is left"
    else
        tap_fail "$1: no worker is left" "$(sql "SELECT pid, backend_type, state, wait_event_type, wait_event, query
            FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'")"
    fi
}

# The balances and the deltas of TPC-B add up to the same sum (TPC Benchmark B, clause 2.3).
tpcb_is_consistent() { # DESCRIPTION [SCHEMA]
    local schema=${2:-bench_data}
    is "$(sql "SELECT a = t AND t = b AND b = h, h <> 0 FROM
            (SELECT sum(abalance) AS a FROM $schema.pgbench_accounts) a,
            (SELECT sum(tbalance) AS t FROM $schema.pgbench_tellers) t,
            (SELECT sum(bbalance) AS b FROM $schema.pgbench_branches) b,
            (SELECT sum(delta) AS h FROM $schema.pgbench_history) h")" 't|t' \
        "$1: the sums are equal"
}

# A run still works.
still_works() {
    try "SELECT bench.run('pk_update', clients => 2, transactions => 20)"
    like "$OUT" 'actually processed: 40' "$1: a run after it works"
}

# Whatever has happened: the built-in fixtures that are loaded at the end are right. Where the server is down, or the
# database has no extension, there are none. UNCHECKED are fixtures whose rows a test changes itself.
UNCHECKED=
last_tests() {
    local name wrong
    if [ -n "$TAP_PLAN" ] || [ -z "${PGHOST:-}" ]; then return; fi
    for name in $(sql 'SELECT DISTINCT name FROM bench.fixtures WHERE owner = current_user AND NOT EXISTS (
        SELECT FROM unnest(relations) AS r WHERE r::oid NOT IN (SELECT oid FROM pg_class)) ORDER BY 1' 2>/dev/null); do
        [[ " $UNCHECKED " != *" $name "* ]] || continue
        wrong=$(sql "SELECT condition, detail FROM bench.check('$name') WHERE NOT ok" 2>&1)
        is "$wrong" '' "at the end the data of fixture $name are right"
    done
}

# The server's log has none of the words that tell of a bug.
log_is_clean() {
    is "$(grep -E "terminated by signal|$BAD_WORDS" "$PGHOST/log")" '' "nothing bad is in the server's log"
}

# The same where the test itself kills processes by signal 9.
log_is_clean_but_for_kills() {
    is "$(grep -E "$BAD_WORDS" "$PGHOST/log")" '' "nothing bad is in the server's log"
    is "$(grep 'terminated by signal' "$PGHOST/log" | grep -vc 'signal 9: Killed')" 0 \
        'no process ended by another signal than ours'
}
