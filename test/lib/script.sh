# shellcheck shell=bash
# shellcheck disable=SC2034 # variables for the scripts
# What the tests of scripts have in common: source this file after `cd` to the project's root. It starts a server with
# a role eve, who may run workloads and little else, and removes what a case has made before the next one.
#
#   as_pgbench NAME SCRIPT [JSON-SETTINGS OPTIONS]      the script by bench.run and by pgbench, which is the judge: the
#                                                       outcome, the message, the counts and the data are the same
#   ends NAME STATUS SQLSTATES SCRIPT [ARGUMENTS]       what the sessions of the engine do in their own way
#   state_is STATE DESC                                 what the last run left in the tables
#   in_role SCRIPT                                      a workload w_eve of role eve
#   script_done                                         the tests of the server after all of them
#
# With ERROR, a pattern of what both say, their messages may differ otherwise. after_run is called with theirs or ours
# after each of the two.
#
# MODES and ROLES say in which query modes, and as whom, a case runs; DRIVERS, by which drivers `as_pgbench` has it run,
# with CLIENTS and TRANSACTIONS, VARIABLES (pairs of a name and a text), further scripts in MIX, as SCRIPT@WEIGHT,
# beside the first with WEIGHT, or pgbench's BUILTIN and the WORKLOAD that is like it, and further arguments in
# OF_PGBENCH and OF_RUN. reset.sql and state.sql in $work say what is removed, and what the data are; NOTHING is the
# state of no transaction.
# After each one the server has not restarted, and no worker, lock, temporary file or temporary table is left.

# shellcheck source=test/lib/common.sh
. test/lib/common.sh

faults_start 'max_prepared_transactions = 10' 'max_stack_depth = 2MB' 'deadlock_timeout = 50ms'

sql 'CREATE ROLE eve LOGIN' 'CREATE ROLE friend' 'CREATE ROLE stranger' 'GRANT friend TO eve' \
    'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO eve' 'GRANT CREATE, USAGE ON SCHEMA public TO eve' \
    'GRANT USAGE ON SCHEMA bench_data TO eve' 'GRANT ALL ON ALL TABLES IN SCHEMA bench_data TO eve' >/dev/null
psql -XAtq -v ON_ERROR_STOP=1 >/dev/null <<'SQL'
SET ROLE eve;
CREATE FUNCTION fail(state text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'failed with %', state USING ERRCODE = state;
END $$;
CREATE FUNCTION recurse(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    RETURN recurse(n + 1);
END $$;
CREATE FUNCTION spin() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    LOOP END LOOP;
END $$;
CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN
    UPDATE acct SET n = n + 1 WHERE id = 1;
    COMMIT;
    UPDATE acct SET n = n + 10 WHERE id = 1;
    ROLLBACK;
    UPDATE acct SET n = n + 100 WHERE id = 1;
END $$;
CREATE PROCEDURE commits_in_a_loop() LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT g FROM generate_series(1, 5) g LOOP
        UPDATE acct SET n = n + r.g WHERE id = 2;
        COMMIT;
    END LOOP;
END $$;
CREATE PROCEDURE out_of(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN
    x := x + 1;
    COMMIT;
    x := x + 1;
END $$;
SQL

# Run before each case. What a case has made is gone, too.
cat >"$work/reset.sql" <<'SQL'
SET client_min_messages = error;
SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts \gexec
DROP MATERIALIZED VIEW IF EXISTS seen;
DROP TABLE IF EXISTS acct, trail, made, other CASCADE;
SET ROLE eve;
CREATE TABLE acct (id int PRIMARY KEY, n int NOT NULL, gone int);
CREATE TABLE trail (what text);
GRANT ALL ON acct, trail TO PUBLIC;
INSERT INTO acct SELECT g, 0 FROM generate_series(1, 10) g;
RESET ROLE;
SQL
# Run after each case: what the data say.
cat >"$work/state.sql" <<'SQL'
SELECT concat_ws(' / ',
    (SELECT string_agg(n::text, ' ' ORDER BY id) FROM acct),
    (SELECT string_agg(what, ' ' ORDER BY what) FROM trail),
    (SELECT string_agg(relname::text, ' ' ORDER BY relname::text) FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'm', 'S')),
    (SELECT string_agg(gid, ' ' ORDER BY gid) FROM pg_prepared_xacts));
SQL
# And what is left when the workers have gone, the server's identity first. A prepared transaction holds
# its locks without a process.
cat >"$work/after.sql" <<'SQL'
SET client_min_messages = error;
DO $$ BEGIN
    FOR i IN 1 .. 250 LOOP
        PERFORM pg_stat_clear_snapshot();
        EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'pgbench_ext%'
            OR (backend_type = 'client backend' AND pid <> pg_backend_pid()));
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;
SELECT concat_ws(' ',
    (SELECT format('%s|%s', pg_postmaster_start_time(), pid) FROM pg_stat_activity
        WHERE backend_type = 'checkpointer'),
    (SELECT 'workers: ' || string_agg(backend_type || ' ' || query, ', ') FROM pg_stat_activity
        WHERE backend_type LIKE 'pgbench_ext%'),
    (SELECT 'locks: ' || string_agg(concat_ws(' ', pid, locktype, mode), ', ') FROM pg_locks
        WHERE pid <> pg_backend_pid()),
    (SELECT 'temporary files: ' || string_agg(name, ', ') FROM pg_ls_tmpdir()),
    (SELECT 'temporary relations: ' || string_agg(relname, ', ') FROM pg_class WHERE relpersistence = 't'));
SQL

# Runs a script by bench.run: sets STATUS, ERRORS (SQLSTATEs), COUNTS (processed, failed, retried transactions),
# MESSAGE, STATE, and tests that nothing is left.
by_bench() { # NAME MODE ROLE SCRIPT [ARGUMENTS]
    local out at mix=${WORKLOAD:-w_$3} args=()
    [ ${#MIX[@]} -eq 0 ] || mix+=@$WEIGHT
    for at in "${!MIX[@]}"; do
        args+=(-v "script$at=${MIX[at]%@*}")
        mix+=",w_$3_$at@${MIX[at]##*@}"
    done
    out=$(timeout 100 psql -XAtq -v script="$4" -v role="$3" -v mode="$2" "${args[@]}" 2>"$work/stderr" <<SQL
\i $work/reset.sql
SET SESSION AUTHORIZATION :role;
SELECT bench.create_workload('w_' || :'role', :'script');
$(for at in "${!MIX[@]}"; do echo "SELECT bench.create_workload('w_$3_$at', :'script$at');"; done)
SELECT bench.run('$mix', query_mode => :'mode', ${5:-transactions => 3});
RESET SESSION AUTHORIZATION;
\echo -----
SELECT status,
       (SELECT string_agg(DISTINCT sqlstate, ' ' ORDER BY sqlstate) FROM bench.errors e WHERE e.run_id = r.run_id),
       coalesce((SELECT concat_ws(' ', transactions, failed, retried) FROM bench.summary s WHERE s.run_id = r.run_id),
           '0 0 0'),
       coalesce((SELECT message FROM bench.errors e WHERE e.run_id = r.run_id ORDER BY first_at
           LIMIT 1), error ->> 'message')
FROM bench.runs r ORDER BY run_id DESC LIMIT 1;
\echo -----
\i $work/state.sql
\echo -----
\i $work/after.sql
SQL
)
    local after=${out##*-----$'\n'}
    out=${out#*-----$'\n'}
    IFS='|' read -r STATUS ERRORS COUNTS MESSAGE <<<"${out%%$'\n'-----*}"
    STATE=${out#*-----$'\n'} STATE=${STATE%%$'\n'-----*}
    if [[ $after = "$SERVER" && $STATUS =~ ^(completed|incomplete|canceled|failed)$ ]]; then
        tap_pass "$1: the run has an end, the server is up, nothing is left"
    else
        tap_fail "$1: the run has an end, the server is up, nothing is left" "status: $STATUS
now: $after
was: $SERVER
$(<"$work/stderr")"
        # Each case is judged by itself.
        remember_server
    fi
}

# The same script by pgbench: sets STATUS, COUNTS, MESSAGE, STATE.
by_pgbench() { # MODE ROLE SCRIPT [OPTIONS]
    local at args=(-f "$work/script.sql@$WEIGHT")
    [ -z "${BUILTIN:-}" ] || args=(-b "$BUILTIN")
    printf '%s' "$3" >"$work/script.sql"
    for at in "${!MIX[@]}"; do
        printf '%s' "${MIX[at]%@*}" >"$work/mix$at.sql"
        args+=(-f "$work/mix$at.sql@${MIX[at]##*@}")
    done
    for ((at = 0; at < ${#VARIABLES[@]}; at += 2)); do args+=(-D "${VARIABLES[at]}=${VARIABLES[at + 1]}"); done
    psql -XAtq -f "$work/reset.sql" >/dev/null 2>&1
    if PGUSER=$2 PGOPTIONS=${4:-${PGOPTIONS:-}} PGHOST=${PGBENCH_HOST:-$PGHOST} PGPORT=${PGBENCH_PORT:-$PGPORT} \
        timeout 100 pgbench -n -M "$1" -c "$CLIENTS" -j "$CLIENTS" -t "$TRANSACTIONS" --random-seed="$SEED" \
        "${args[@]}" "${OF_PGBENCH[@]}" >"$work/stdout" 2>"$work/stderr"; then
        STATUS=completed
    else
        STATUS=incomplete
    fi
    MESSAGE=$(sed -nE '/^pgbench: error: (client [0-9]+ aborted in |Run was |[ag]set: )/d
        s/^pgbench: error: //
        T
        s/^client [0-9]+ (script [0-9]+ (aborted in )?command [0-9]+ query [0-9]+|aborted): //
        s/^(ERROR|FATAL):  //
        p' "$work/stderr" | head -n 1)
    # Since 18 it says nothing of failed transactions where none was processed.
    COUNTS=$(awk -v FS='[:/(]' '/^number of transactions actually/ { done = $2 } /^number of failed/ { failed = $2 }
        /^number of transactions retried/ { retried = $2 }
        END { print done + 0, failed + 0, retried + 0 }' "$work/stdout")
    STATE=$(psql -XAtq -f "$work/state.sql" -f "$work/after.sql" | sed -n 1p)
}

# What bench.run is given beside the query mode: the same as pgbench.
arguments() { # DRIVER JSON-SETTINGS
    local pairs='' text
    for text in "${VARIABLES[@]}"; do pairs+="${pairs:+, }\$v\$$text\$v\$"; done
    echo "clients => $CLIENTS, transactions => $TRANSACTIONS, seed => $SEED, driver => '$1', settings => '${2:-{\}}'," \
        "variables => jsonb_object(ARRAY[$pairs]::text[])$OF_RUN"
}

after_run() { :; }

MODES='simple extended prepared' ROLES='eve' DRIVERS='engine'
CLIENTS=1 TRANSACTIONS=3 SEED=4711 WEIGHT=1 MIX=() VARIABLES=() OF_PGBENCH=() OF_RUN=''
# pgbench is the judge.
as_pgbench() { # NAME SCRIPT [JSON-SETTINGS OPTIONS]
    local mode role driver name status message state counts
    for role in $ROLES; do
        for mode in $MODES; do
            by_pgbench "$mode" "$role" "$2" "${4:-}"
            [ -z "${ERROR:-}" ] || like "$(<"$work/stderr")" "$ERROR" "$1 ($mode, $role, pgbench): the error"
            after_run theirs
            status=$STATUS message=$MESSAGE state=$STATE counts=$COUNTS
            for driver in $DRIVERS; do
                name="$1 ($mode${ROLES:+, $role}, $driver)"
                by_bench "$name" "$mode" "$role" "$2" "$(arguments "$driver" "${3:-}")"
                [ -z "${ERROR:-}" ] || like "$MESSAGE" "$ERROR" "$name: the error"
                # What is tried again, or given up, pgbench only counts.
                [[ -z ${ERROR:-} && $STATUS != completed ]] || message=$MESSAGE
                # What pgbench finds in its first transaction may be found before it.
                is "${STATUS/failed/incomplete}: ${MESSAGE%: invalid variable name}" "$status: $message" \
                    "$name: ends as with pgbench"
                after_run ours
                if [ "$STATUS" = failed ]; then
                    is "$STATE" "$NOTHING" "$name: nothing was done"
                else
                    is "$COUNTS: $STATE" "$counts: $state" "$name: counts and data are those of pgbench"
                fi
            done
        done
    done
}

# What the sessions of the engine do in their own way.
ends() { # NAME STATUS SQLSTATES SCRIPT [ARGUMENTS]
    local mode role
    for role in $ROLES; do
        for mode in $MODES; do
            by_bench "$1 ($mode, $role)" "$mode" "$role" "$4" "${5:-}"
            like "$STATUS" "^($2)\$" "$1 ($mode, $role): $2"
            # Of a run that failed before its begin the log of errors may have nothing.
            [ "$STATUS" = failed ] && [ -z "$ERRORS" ] && ERRORS=$(error_of "$(last_run)")
            is "$ERRORS" "$3" "$1 ($mode, $role): ${3:-no error}"
        done
    done
}

state_is() { is "$STATE" "$1" "$2"; }
RELATIONS=$(psql -XAtq -f "$work/reset.sql" -f "$work/state.sql")
RELATIONS=${RELATIONS##* / }
FRESH='0 0 0 0 0 0 0 0 0 0'
NOTHING="$FRESH / $RELATIONS"

ADD='UPDATE acct SET n = n + 1 WHERE id = 1;'
ADD_TOO='UPDATE acct SET n = n + 1 WHERE id = 2;'
SAY='INSERT INTO trail VALUES (current_user || $$=$$ || session_user);'

in_role() { # SCRIPT, as workload w_eve
    psql -XAtq -v ON_ERROR_STOP=1 -v script="$1" >/dev/null 2>&1 \
        <<<"SET ROLE eve; SELECT bench.create_workload('w_eve', :'script');"
}

# The server's log, and its processes.
script_done() {
    log_is_clean
    is "$(grep -E 'was terminated by (signal|exception)|server process .* exited|reinitializ' "$PGHOST/log")" '' \
        'no process of the server was terminated'
    no_restart 'the server has not restarted'
    done_testing
}
