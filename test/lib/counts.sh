# shellcheck shell=bash
# What test/run counts, a line for each file: suite, file, passed, failed, skipped, milliseconds, and those of a
# processor. The suite of a further server stands behind its version. Source this file; COUNTS names the file of the
# lines.
#
#   now, since THEN     microseconds of the clock; milliseconds since then
#   processor_ms        sets cpu_ms: milliseconds of a processor, of this shell and its children that have ended
#   counted FIELD…      adds a line
#   told TITLE          keeps the lines of its input, what failed and why, to be told at the end again: the table and
#                       what is below it is what one sees of a long log
#   table MILLISECONDS  the suites, the files that took longest, and those that exceed test/budget by half
#   processors          the ticks that all processors worked, idled, and were taken by other virtual machines
#   processors_since T  their shares since `processors` said T: beside a slow run, whether the machine was slow
#   closing             what was told, and "N passed, N failed"; false if any failed

now() { echo "${EPOCHREALTIME/[.,]/}"; }
since() { echo $((($(now) - $1) / 1000)); }

processor_ms() {
    local stat=()
    # User and system time, of itself and of children; a name of more words than one would move them.
    { read -ra stat </proc/$BASHPID/stat; } 2>/dev/null || true
    # shellcheck disable=SC2034 # cpu_ms is for those who call
    cpu_ms=$(((${stat[13]:-0} + ${stat[14]:-0} + ${stat[15]:-0} + ${stat[16]:-0}) * 1000 / $(getconf CLK_TCK)))
}

processors() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $5 + $6, $9 }' /proc/stat 2>/dev/null || true; }
processors_since() { # TICKS
    processors | awk -v then="$1" '{
        split(then, t)
        for (i = 1; i <= 3; i++) all += $i -= t[i]
        if (all) printf "The processors worked %d %% of the time, idled %d %%, and other machines took %d %%.\n",
            100 * $1 / all, 100 * $2 / all, 100 * $3 / all
    }'
}

counted() { # SUITE FILE PASSED FAILED SKIPPED MILLISECONDS [PROCESSOR-MILLISECONDS]
    echo "$*" >>"$COUNTS"
}

told() { # TITLE, and lines
    { echo "$1" && cut -c 1-200 | tail -n 40 | sed 's/^/    /'; } >>"$COUNTS.told"
}

# The suites in the order in which they came, with the seconds of all their files; and the files that took longest.
table() {
    awk -v all="$1" '
        function line(name, files, passed, failed, skipped, seconds, cpu) {
            printf "%-16s%7s%9s%9s%9s%9s%11s\n", name, files, passed, failed, skipped, seconds, cpu
        }
        BEGIN { line("suite", "files", "passed", "failed", "skipped", "seconds", "processor") }
        !($1 in files) { order[++suites] = $1 }
        { files[$1]++; passed[$1] += $3; failed[$1] += $4; skipped[$1] += $5; ms[$1] += $6; cpu[$1] += $7 }
        END {
            for (i = 1; i <= suites; i++) {
                s = order[i]
                line(s, files[s], passed[s], failed[s], skipped[s], sprintf("%.1f", ms[s] / 1000),
                    sprintf("%.1f", cpu[s] / 1000))
                cpus += cpu[s]
            }
            line("by the clock", "", "", "", "", sprintf("%.1f", all / 1000), sprintf("%.1f", cpus / 1000))
        }' "$COUNTS"
    echo
    echo 'The files that took most, in seconds of a processor and of the clock:'
    # Not by head, whose early end would be a failure of sort's.
    sort -k 7,7 -rn "$COUNTS" | awk 'NR <= 15 {
        version = index($1, "/") ? substr($1, 1, index($1, "/") - 1) " " : ""
        printf "%8.1f %8.1f  %s%s\n", $7 / 1000, $6 / 1000, version, $2
    }'
    awk '/^(#|$)/ { next }
        FNR == NR { budget[$2] = $1; next }
        $2 in budget && $7 / 1000 > 1.5 * budget[$2] + 2 {
            if (!n++) print "\nMore than half above their budget, in seconds of a processor:"
            printf "%8.1f  %s, for which test/budget has %d\n", $7 / 1000, $2, budget[$2]
        }' test/budget "$COUNTS"
}

closing() {
    if [ -s "$COUNTS.told" ]; then cat "$COUNTS.told" && echo; fi
    awk '{ passed += $3; failed += $4; skipped += $5 }
        END {
            printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
            exit failed > 0
        }' "$COUNTS"
}
