#!/usr/bin/env bash
# Applications that know nothing of the extension are captured by one call while they work, and what is replayed does
# per transaction what they did: sysbench, where it is installed, pgbench with foreign keys, and the shop.
#
#   APPLICATIONS="sysbench_oltp_read_write pgbench shop"   which of them
#   SECS=20 TABLES=1 CLIENTS=4                             for how long, and with what
#   OPTIONS='"max_rows": 500'                              of the captures
#
# It prints what each did and what its replay did: the parts of bench.fidelity.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh
# shellcheck source=test/lib/shop.sh
. test/lib/shop.sh

SECS=${SECS:-6} TABLES=${TABLES:-3} CLIENTS=${CLIENTS:-4}

cluster_start "shared_preload_libraries = 'pg_stat_statements,pgbench_ext'" 'logging_collector = on' \
    "log_directory = 'log'" "lc_messages = 'C'" 'log_min_messages = log' || exit 1
remember_server
sql 'CREATE EXTENSION pg_stat_statements' 'CREATE EXTENSION pgbench_ext' 'CREATE ROLE app LOGIN' \
    'GRANT CREATE ON SCHEMA public TO app' "SELECT bench.allow('app')" >/dev/null

sysbench_of_app() { # WORKLOAD COMMAND OPTION…
    sysbench "$1" --db-driver=pgsql --pgsql-host="$PGHOST" --pgsql-port="$PGPORT" --pgsql-user=app \
        --pgsql-db=postgres --tables="$TABLES" --table-size=10000 --threads="$CLIENTS" "${@:3}" "$2" 2>&1
}

load() { # APPLICATION
    case $1 in
    sysbench_*) sysbench_of_app "${1#sysbench_}" prepare >/dev/null ;;
    pgbench) PGUSER=app pgbench -i -q -s 2 --foreign-keys >/dev/null 2>&1 ;;
    shop) PGUSER=app PGOPTIONS='-c client_min_messages=error' shop_load 0.02 >/dev/null ;;
    esac
}

drive() { # APPLICATION SECS
    case $1 in
    sysbench_*) sysbench_of_app "${1#sysbench_}" run --time="$2" ;;
    pgbench) PGUSER=app pgbench -n -c "$CLIENTS" -M prepared -T "$2" 2>&1 ;;
    shop) PGUSER=app shop_drive "$2" "$CLIENTS" && echo "$OUT" ;;
    esac
}

# In transactions per second, as it says itself.
own_rate() { # OUTPUT
    sed -nE -e 's/^ *transactions: .*\(([0-9.]+) per sec\.\)/\1/p' -e 's/^tps = ([0-9.]+).*/\1/p' <<<"$1" |
        awk '{ sum += $1 } END { print sum }'
}

unchanged() {
    is "$(sql "SELECT count(*) FROM pg_file_settings WHERE sourcefile ~ 'auto.conf'" \
        "SELECT setting FROM pg_settings WHERE name ~ '^log_(destination|transaction_sample_rate)$' ORDER BY name" \
        "SELECT count(*) FROM bench_internal.capture_list WHERE system_settings IS NOT NULL" | paste -sd' ')" \
        '0 stderr 0 0' "$1: the server's settings are its own"
}

score() { # PART
    sql "SELECT score >= $2 FROM bench.fidelity_parts($RUN) WHERE part = '$1'"
}

replayed() { # APPLICATION
    local name=$1 output hint
    drive "$name" $((SECS + 4)) >"$work/driven" &
    PIDS[driven]=$!
    sleep 1
    # Few of the shop's transactions have several statements: it may be that none is seen in time.
    [ "$name" != shop ] || local OPTIONS='"transactions": true'
    sql "SELECT FROM bench.capture('$name', secs => $SECS, options => '{\"writes\": true${OPTIONS:+, $OPTIONS}}')" \
        2>"$work/notices"
    wait "${PIDS[driven]}"
    unset "PIDS[driven]"
    output=$(<"$work/driven")
    is "$(sql "SELECT source, status FROM bench.captures WHERE name = '$name'")" 'log|completed' \
        "$name: transactions are captured"
    unchanged "$name"
    hint=$(sed -nE 's/.*(bench\.run\(.*, rate => [0-9.]+)\).*/\1/p' "$work/notices")
    RUN=$(sql "SELECT ${hint:-bench.run('$name'}, secs => $SECS, warmup => 1)" 2>"$work/run.notices")
    is "$(sql "SELECT status FROM bench.runs WHERE run_id = $RUN")" completed "$name: and run"
    diag "$name: application $(own_rate "$output")/s; $hint):" \
        "$(sql "SELECT round(tps::numeric, 1) || '/s' FROM bench.summary WHERE run_id = $RUN")"
    diag "$(sql "SELECT concat_ws(' ', rpad(part, 14), lpad(round(captured::numeric, 3)::text, 12),
            lpad(round(replayed::numeric, 3)::text, 12), lpad(round(score::numeric, 3)::text, 6), reason)
        FROM bench.fidelity_parts($RUN)")"
    diag "$(sql "SELECT concat_ws(' ', workload, calls, round(share::numeric, 3), statements, reason, left(query, 60))
        FROM bench.capture_statements WHERE capture = '$name' AND (NOT kept OR number < 4) ORDER BY number")"
    diag "$(sql "SELECT sqlstate, failed, message FROM bench.errors WHERE run_id = $RUN")"
    diag "$(sed -n '/ NOTICE\|^NOTICE\|^DETAIL/p' "$work/notices" "$work/run.notices")"
    is "$(score kept 0.95)" t "$name: nearly all of them are kept"
    is "$(score statements 0.9)" t "$name: as many statements per transaction"
    # What the shop's writes add is found by its reads.
    is "$(score rows "$([ "$name" = shop ] && echo 0.75 || echo 0.9)")" t "$name: as many rows"
    is "$(score 'without error' 0.95)" t "$name: without errors"
}

for application in ${APPLICATIONS:-sysbench_oltp_read_write pgbench shop}; do
    if [[ $application = sysbench_* ]] && ! command -v sysbench >/dev/null; then
        skip 'sysbench is not installed' "$application: transactions are captured and replayed"
        continue
    fi
    if load "$application"; then replayed "$application"; else tap_fail "$application: it is loaded"; fi
    sql 'DROP OWNED BY app CASCADE' 'GRANT CREATE ON SCHEMA public TO app' "SELECT bench.allow('app')" \
        >/dev/null 2>&1
done
no_restart 'the server went on all the time'
done_testing
