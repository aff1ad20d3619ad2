# shellcheck shell=bash
# shellcheck disable=SC2154 # work is common.sh's
# What the tests of the write-ups have in common: source this file after common.sh.
#
#   writeup FILE VARIABLE=VALUE…   runs a write-up at a tiny scale; OUT is what it printed
#   table TITLE, columns TITLE N…  the table under a title; some of its columns
#   complete TITLE N… DESCRIPTION  a test that no cell of these is empty
#   runs TAG, published QUERY, nothing_but_runs DESCRIPTION

writeup() { # FILE VARIABLE=VALUE…
    local file=$1 args=() variable status=0
    shift
    for variable in "$@"; do args+=(-v "$variable"); done
    psql -X -v scale=0.0001 -v secs=0.3 "${args[@]}" -f "writeups/$file" >"$work/out" 2>"$work/err" \
        </dev/null || status=$?
    OUT=$(cat "$work/out")
    is "$status" 0 "$file ends well"
    is "$(grep -E 'WARNING|ERROR|FATAL' "$work/err")" '' "$file: no warning"
    is "$(awk 'length > 100' "$work/out")" '' "$file: 100 columns"
}

# The rows of the table under a title: cells without blanks, separated by commas.
table() {
    awk -v title="$1" 'index($0, title) == 1 { on = 1; next } on && /^$/ { exit } on' <<<"$OUT" |
        sed -e 1,2d -e 's/ //g' -e 's/|/,/g'
}

columns() { table "$1" | cut -d, -f"$2"; }

complete() { # TITLE COLUMNS DESCRIPTION
    local cells
    cells=$(columns "$1" "$2")
    unlike ",${cells//$'\n'/,}," ',-?,' "$3: nothing is missing"
}

# What the runs of a write-up were, and how they ended.
runs() {
    sql "SELECT string_agg(concat_ws(' ', workload, n, status), ', ' ORDER BY workload) FROM (
        SELECT workload, status, count(*) AS n FROM bench.runs WHERE tags ->> 'writeup' = '$1' GROUP BY 1, 2) AS r"
}

nothing_but_runs() {
    is "$(sql 'SELECT schema, name, rows FROM bench.fixtures')" 'bench_data|pk|100' \
        "$1: its fixtures are gone, others are not"
    is "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname = 'bench_writeups'")" 0 "$1: its schema is gone"
}

published() { psql -XAtq -v ON_ERROR_STOP=1 -f writeups/published.sql -c "$1"; }
