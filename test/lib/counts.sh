# shellcheck shell=bash
# What test/run and test/versions count, a line for each file: suite, file, passed, failed, skipped, milliseconds.
# Source this file; COUNTS names the file of the lines.
#
#   now, since THEN     microseconds of the clock; milliseconds since then
#   counted FIELD…      adds a line; to the file that TEST_COUNTS names as well, its suite behind TEST_PREFIX
#   told TITLE          keeps the lines of its input, what failed and why, to be told at the end again: the table and
#                       what is below it is what one sees of a long log
#   table MILLISECONDS  the suites, and the files that took longest
#   closing             what was told, and "N passed, N failed"; false if any failed

now() { echo "${EPOCHREALTIME/[.,]/}"; }
since() { echo $((($(now) - $1) / 1000)); }

counted() { # SUITE FILE PASSED FAILED SKIPPED MILLISECONDS
    echo "$*" >>"$COUNTS"
    [ -z "${TEST_COUNTS:-}" ] || echo "${TEST_PREFIX:-}$*" >>"$TEST_COUNTS"
}

told() { # TITLE, and lines
    { echo "${TEST_PREFIX:-}$1" && cut -c 1-200 | tail -n 40 | sed 's/^/    /'; } |
        tee -a "$COUNTS.told" >>"${TEST_TOLD:-/dev/null}"
}

# The suites in the order in which they came, with the seconds of all their files; and the files that took longest.
table() {
    awk -v all="$1" '
        function line(name, files, passed, failed, skipped, seconds) {
            printf "%-16s%7s%9s%9s%9s%9s\n", name, files, passed, failed, skipped, seconds
        }
        BEGIN { line("suite", "files", "passed", "failed", "skipped", "seconds") }
        !($1 in files) { order[++suites] = $1 }
        { files[$1]++; passed[$1] += $3; failed[$1] += $4; skipped[$1] += $5; ms[$1] += $6 }
        END {
            for (i = 1; i <= suites; i++) {
                s = order[i]
                line(s, files[s], passed[s], failed[s], skipped[s], sprintf("%.1f", ms[s] / 1000))
            }
            line("by the clock", "", "", "", "", sprintf("%.1f", all / 1000))
        }' "$COUNTS"
    echo
    echo 'The files that took longest, in seconds:'
    # Not by head, whose early end would be a failure of sort's.
    sort -k 6,6 -rn "$COUNTS" | awk 'NR <= 15 {
        version = index($1, "/") ? substr($1, 1, index($1, "/") - 1) " " : ""
        printf "%8.1f  %s%s\n", $6 / 1000, version, $2
    }'
}

closing() {
    if [ -s "$COUNTS.told" ]; then cat "$COUNTS.told" && echo; fi
    awk '{ passed += $3; failed += $4; skipped += $5 }
        END {
            printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
            exit failed > 0
        }' "$COUNTS"
}
