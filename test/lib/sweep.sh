# shellcheck shell=bash
# shellcheck disable=SC2034 # variables for the scripts
# What the tests of sweeps have in common: source this file after common.sh. SWEEP is the sweep that all of it is about,
# DONE what it had completed.

# Six runs: two rungs, three rounds.
RUNGS="'pk_update', '{1,2}', secs => 0.3, rounds => 3"
LONG="'pk_update', '{1,2}', secs => 60"
SYSTEM_VARIANTS='{"off": {"system": {"full_page_writes": "off", "checkpoint_timeout": "11min", "commit_delay": 10}},
    "on": {}}'
SYSTEM="'pk_update', '{1,2}', secs => 0.8, variants => '$SYSTEM_VARIANTS', before => 'checkpoint', seed => "

in_sweep() { sql "SELECT $1 FROM bench.sweep_runs WHERE sweep_id = $SWEEP"; }
completed() { in_sweep \
    "coalesce(string_agg(place || ':' || run_id, ' ' ORDER BY place) FILTER (WHERE status = 'completed'), '')"; }
leader() { sql "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pgbench_ext sweep'"; }

# Waits until a sweep has so many runs completed and is at another; DONE is what is completed.
in_the_middle() { # COMPLETED
    eventually 20 "SELECT count(*) FILTER (WHERE status = 'completed') >= $1
        AND count(*) FILTER (WHERE status = 'running') = 1
                   FROM bench.sweep_runs WHERE sweep_id = $SWEEP" || tap_fail "sweep $SWEEP gets to its middle"
    DONE=$(completed)
}

begin() { # [ARGUMENTS [COMPLETED]]
    SWEEP=$(sql "SELECT bench.start_sweep(${1:-$RUNGS})") || exit
    in_the_middle "${2:-2}"
}

# A session in bench.sweep, in the middle of it.
caller_sweeps() { # [ARGUMENTS [COMPLETED]]
    local before
    before=$(sql 'SELECT coalesce(max(sweep_id), 0) FROM bench.sweeps')
    session caller "SELECT bench.sweep(${1:-$RUNGS})" "SELECT 'usable'"
    eventually 10 "SELECT max(sweep_id) > $before FROM bench.sweeps"
    SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
    in_the_middle "${2:-2}"
}

sweep_is() { # STATUS DESC
    is "$(sql "SELECT bench.wait_sweep($SWEEP, 40)" 2>&1)" "$1" "$2: the sweep's status is $1"
}

# What was completed is there, and nothing is said to go on.
so_far_kept() { # DESC
    is "$(in_sweep \
        "string_agg(place || ':' || run_id, ' ' ORDER BY place)
            FILTER (WHERE place || ':' || run_id = ANY (string_to_array('$DONE', ' '))
            AND status = 'completed' AND transactions > 0)")" \
        "$DONE" "$1: what was completed is kept"
    is "$(in_sweep "count(*) FILTER (WHERE status IN ('starting', 'running'))")" 0 "$1: no run of it is said to go on"
}

ended_as() { # STATUS DESC
    sweep_is "$1" "$2"
    nothing_left "$2"
    so_far_kept "$2"
    DONE=$(completed)
    is "$(sql "SELECT bench.stop_sweep($SWEEP)")" f "$2: there is nothing to stop any more"
}

# What is missing is made, and nothing else.
resumes() { # DESC
    local last runs
    last=$(last_run)
    runs=$(in_sweep 'count(*)')
    is "$(sql 'SET client_min_messages = warning' "SELECT bench.resume_sweep($SWEEP)" 2>&1)" "$SWEEP" \
        "$1: bench.resume_sweep takes it up"
    sweep_is completed "$1, resumed"
    is "$(in_sweep "count(*) FILTER (WHERE status = 'completed')")" "$runs" "$1, resumed: all runs are completed"
    so_far_kept "$1, resumed"
    is "$(sql "SELECT count(*) FROM bench.runs WHERE run_id > $last AND sweep_id = $SWEEP")" \
        "$((runs - $(wc -w <<<"$DONE")))" \
        "$1, resumed: each missing run was made once"
    is "$(sql "SELECT completed = runs AND error IS NULL AND resumed_at < finished_at FROM bench.sweeps
        WHERE sweep_id = $SWEEP")" t \
        "$1, resumed: bench.sweeps says so"
    nothing_left "$1, resumed"
}

# For sweeps whose runs are long: a short one may have ended by itself.
current_run_is() { # STATUS DESC
    is "$(sql "SELECT status FROM bench.runs WHERE sweep_id = $SWEEP ORDER BY run_id DESC LIMIT 1")" "$1" \
        "$2: the run under way is $1"
}

message() { sql "SELECT error ->> 'message' FROM bench.sweeps WHERE sweep_id = $SWEEP"; }

terminate() { sql "SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext $1'" \
    >/dev/null; }
# kill -9 of a client until it hits one: between two runs there is none, and one that has just ended takes signals too.
kill_client() {
    local client kills
    kills=$(grep -c 'terminated by signal 9' "$PGHOST/log")
    for _ in {1..200}; do
        client=$(sql "SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgbench_ext client'" 2>/dev/null)
        [ -z "$client" ] || as_pg kill -KILL "$client" 2>/dev/null
        sleep 0.05
        [ "$(grep -c 'terminated by signal 9' "$PGHOST/log")" = "$kills" ] || return 0
    done
    tap_fail 'a client is killed'
}
backend_signal() { sql "SELECT $1(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null; }
