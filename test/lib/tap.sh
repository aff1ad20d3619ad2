# shellcheck shell=bash
# The Test Anything Protocol for shell scripts: source this file, test, call done_testing.
#
#   plan N                     how many tests follow; optional
#   ok DESCRIPTION COMMAND…    passes when the command succeeds
#   is GOT WANT DESCRIPTION    passes when both are the same text
#   like GOT REGEX DESCRIPTION passes when the extended regular expression matches
#   unlike GOT REGEX DESCRIPTION
#   skip REASON DESCRIPTION    a test that cannot be made here
#   differences WANT GOT       prints the lines in which two texts differ
#   diag TEXT                  a remark
#   done_testing               prints the plan if there was none; fails if any test did; calls `last_tests` before, if
#                              that is a function

TAP_COUNT=0
TAP_FAILED=0
TAP_PLAN=

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

plan() { TAP_PLAN=$1 && echo "1..$1"; }

tap_pass() {
    TAP_COUNT=$((TAP_COUNT + 1))
    echo "ok $TAP_COUNT - $1"
}

# Failed tests show what they saw, and never end the script, `set -e` or not.
tap_fail() {
    TAP_COUNT=$((TAP_COUNT + 1)) TAP_FAILED=$((TAP_FAILED + 1))
    echo "not ok $TAP_COUNT - $1"
    [ $# -lt 2 ] || diag "$2"
}

ok() {
    local description=$1 output
    shift
    if output=$("$@" 2>&1); then tap_pass "$description"; else tap_fail "$description" "$* failed: $output"; fi
}

# The lines in which two texts differ.
differences() { # WANT GOT
    diff <(printf '%s\n' "$1") <(printf '%s\n' "$2")
}

# Of texts with several lines only those that differ: a reader of many failures sees the beginnings of each.
is() {
    if [ "$1" = "$2" ]; then
        tap_pass "$3"
    elif [[ $1$2 = *$'\n'* ]]; then
        tap_fail "$3" "expected (<) and got (>):"$'\n'"$(differences "$2" "$1")"
    else
        tap_fail "$3" "     got: $1"$'\n'"expected: $2"
    fi
}

like() {
    if [[ $1 =~ $2 ]]; then tap_pass "$3"; else tap_fail "$3" "          got: $1"$'\n'"doesn't match: $2"; fi
}

unlike() {
    if [[ $1 =~ $2 ]]; then tap_fail "$3" "    got: $1"$'\n'"matches: $2"; else tap_pass "$3"; fi
}

skip() { tap_pass "$2 # SKIP $1"; }

done_testing() {
    # What a family of tests has in common at its end.
    ! declare -F last_tests >/dev/null || last_tests
    [ -n "$TAP_PLAN" ] || echo "1..$TAP_COUNT"
    [ "$TAP_FAILED" -eq 0 ] && [ "${TAP_PLAN:-$TAP_COUNT}" -eq "$TAP_COUNT" ]
}
