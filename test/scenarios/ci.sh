#!/usr/bin/env bash
# ci/compare on the commits of a small extension: one that is slower, one that is not, one that crashes, one whose
# function fails, one that does not build. Its exit status, messages and files; that the templates name variables that
# it knows; and that ci/install builds once.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PG_CONFIG=${PG_CONFIG:-pg_config}
# The clusters crash as they should; and this is make's, not that of the extension.
unset CLUSTER_LOGS MAKEFLAGS MFLAGS MAKELEVEL GITHUB_BASE_REF CI_MERGE_REQUEST_TARGET_BRANCH_NAME
export GIT_AUTHOR_NAME=tests GIT_AUTHOR_EMAIL=tests@localhost
export GIT_COMMITTER_NAME=tests GIT_COMMITTER_EMAIL=tests@localhost

# The templates.
is "$(sed -nE 's/^#   ((BENCH_|PG_CONFIG)[A-Z_]*) .*/\1/p' ci/compare | sort)" \
    "$(grep -oE '\$\{(BENCH_[A-Z]+|PG_CONFIG):-' ci/compare | tr -d '${:-' | sort -u)" \
    'ci/compare explains the variables that it reads'
if python3 -c 'import yaml' 2>/dev/null; then
    is "$(python3 test/lib/ci_templates.py 2>&1)" '' 'both templates pass on all variables of ci/compare'
else
    skip 'Python has no yaml' 'both templates pass on all variables of ci/compare'
fi

# What was built is not built again.
copy=$work/copy
mkdir "$copy" "$copy/scripts" &&
    cp -R ci crates docs src Cargo.* build.rs Makefile pgbench_ext.control rust-toolchain.toml "$copy"
echo '#!/bin/sh' >"$copy/scripts/setup"
cat >"$work/make" <<'END'
#!/bin/sh
echo "$2 $CARGO_TARGET_DIR" >>../made
if [ "$2" = install ]; then
    mkdir -p build target/release && echo 1 >build/1.sql && echo 1 >target/release/libpgbench_ext.so
fi
[ -e build/1.sql ] && [ -e "$CARGO_TARGET_DIR/release/libpgbench_ext.so" ]
END
chmod +x "$copy/scripts/setup" "$work/make"
installs() { MAKE=$work/make "$copy/ci/install" "$work/cache" && rm -rf "$copy"/{build,target}; }
key=$("$copy/ci/install" --key)
installs && installs && echo '// more' >>"$copy/src/lib.rs" && installs
is "$?, $(sed "s#$work/##" "$work/made" | paste -sd,)" "0, install target,install-built cache/$key,install target" \
    'ci/install builds anew only when something has changed'

if [ ! -e "$("$PG_CONFIG" --pgxs)" ] || ! command -v gcc >/dev/null; then
    skip 'there is no PGXS or no gcc' 'commits are compared'
    done_testing
    exit
fi

# The repository: a branch for each commit, and main.
upstream=$work/upstream
mkdir "$upstream" && cp test/lib/ci_extension/* "$upstream" && mkdir "$upstream/bench"
echo 'CREATE EXTENSION ci_sample;' >"$upstream/bench/setup.sql"
echo 'SELECT ci_plain(100000);' >"$upstream/bench/plain.sql"
echo 'SELECT ci_changed(100000);' >"$upstream/bench/changed.sql"
on() { git -C "$upstream" "$@"; }
commit() { # BRANCH SUBJECT SED
    on checkout -q -b "$1" main && sed -i "$3" "$upstream/ci_sample.c" && on commit -q -a -m "$2"
}
on init -q -b main && on add -A && on commit -q -m 'Take processor time'
# Far more than any noise: what is tested is the verdict's way into the exit status, not how fine it is.
commit slower 'Take half more' 's/busy(turns)/busy(turns + turns \/ 2)/'
commit same 'Say it otherwise' 's/needs the one before it/needs its predecessor/'
commit crash 'Abort' 's/PG_RETURN_INT64(busy(turns));/abort();/'
commit error 'Fail' 's/PG_RETURN_INT64(busy(turns));/elog(ERROR, "no more turns");/'
commit broken 'Break `the` <b>build</b>' '$a int x = ;'
on checkout -q main

# A clone with a branch checked out, and what ci/compare says and writes there; STATUS is in the file status.
compare() { # NAME BRANCH [VARIABLE=VALUE…]
    local name=$1 branch=$2
    shift 2
    git clone -q "$upstream" "$work/$name" && git -C "$work/$name" checkout -q "$branch" && cd "$work/$name" || return
    [ "$name" != same ] || git remote set-head origin --delete
    env BENCH_SCRIPTS='bench/*.sql' BENCH_SETUP=bench/setup.sql BENCH_DUELS=6 BENCH_SECS=0.3 BENCH_MARGIN=0.25 "$@" \
        "$root/ci/compare" >"$work/$name.out" 2>"$work/$name.err"
    echo $? >"$work/$name.status"
}
compare slower slower &
# With its own command to build, and a library that is preloaded. CI's checkouts do not know the default branch.
compare same same BENCH_SCRIPTS=bench/plain.sql BENCH_PRELOAD=ci_sample BENCH_OUTPUT=results/here \
    BENCH_METRIC=latency_avg_ms BENCH_MARGIN=0.9 \
    BENCH_BUILD='make PG_CONFIG="$PG_CONFIG" install && echo made by hand' &
wait
compare crash crash &
compare error error &
compare strict same BENCH_SCRIPTS=bench/plain.sql BENCH_STRICT=1 BENCH_DUELS=2 BENCH_MARGIN=0.001 &
wait
compare broken broken &
compare broken_base main BENCH_BASE=origin/broken &
wait
# Too small for anything to start.
compare lost slower GITHUB_BASE_REF=gone
compare unknown slower BENCH_METRIC=tpm
compare none slower BENCH_SCRIPTS=
compare shallow slower BENCH_BASE=0123456789

status() { cat "$work/$1.status"; }
report() { cat "$work/$1/bench-results/report.md" 2>&1; }
# Of JUnit's XML: the names of tests with what became of them.
tests() { # FILE
    python3 - "$1" <<'END'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).getroot().iter("testcase"):
    print(case.get("name"), *(child.tag for child in case))
END
}

is "$(status slower)" 1 'a slower head: the status is 1'
diag "$(cat "$work/slower.err" "$work/slower.out")"
like "$(report slower)" '## Benchmark: head is slower' 'the report begins with the verdict'
like "$(report slower)" 'head: `[0-9a-f]+ Take half more`'$'\n''base: `[0-9a-f]+ Take processor time`' \
    'names both commits, of which base is where the branch left main'
like "$(grep '^| `changed`' <<<"$(report slower)")" '\*\*slower\*\* \|$' 'names the script that is slower'
unlike "$(grep '^| `plain`' <<<"$(report slower)")" 'slower' 'and no other'
like "$(report slower)" 'Base against a second server of base, by `changed`: [0-9.]+ to [0-9.]+' \
    'says what equal servers differ by'
like "$(report slower)" '<summary>changed</summary>.*latency_p50_ms' 'and has all metrics'
like "$(tests "$work/slower/bench-results/junit.xml" | sort)" '^changed failure'$'\n''plain' \
    'JUnit: a test for each script, of which one fails'
# Of so short duels, the last percentile may not be known.
measures='latency latency-p50 latency-p95 server-cpu throughput True'
is "$(python3 -c 'import json, sys
for name, measures in sorted(json.load(open(sys.argv[1])).items()):
    print(name, *sorted(set(measures) - {"latency-p99"}), all(of["value"] > 0 for of in measures.values()))' \
    "$work/slower/bench-results/bmf.json")" "changed, 1 client $measures"$'\n'"plain, 1 client $measures" \
    'bencher: the figures of both scripts'
like "$(cat "$work/slower.out")" 'changed.*slower' 'the table is printed'
unlike "$(cat "$work/slower.out")" '<details>' 'without the details'

is "$(status same)" 0 'a head that is not slower: the status is 0'
diag "$(cat "$work/same.err")"
like "$(cat "$work/same/results/here/report.md")" '## Benchmark: (head is not slower|not decided)' 'the report says so'
like "$(cat "$work/same/results/here/report.md")" 'Judged by latency_avg_ms, within 90.0 %' \
    'by the metric that was asked for'
like "$(tail -n 1 "$work"/same/results/here/{base,head}-build.log)" 'made by hand.*made by hand' \
    'built as it was asked to'
is "$(ls "$work/same/results/here")" 'base-build.log
base-server.log
base-setup.log
bmf.json
head-build.log
head-server.log
head-setup.log
junit.xml
report.md' 'the folder has reports and logs'

# Two duels decide hardly ever.
like "$(status strict) $(report strict)" \
    '^(0 ## Benchmark: head is not slower|1 ## Benchmark: (not decided|head is slower))' \
    'strict: the status is 0 only where it is shown that head is not slower'
like "$(report strict)" '(head is not slower|head is slower|WARNING.*Not decided: `plain`)' 'and the report warns'

is "$(status crash)" 2 'a head that crashes: the status is 2'
like "$(cat "$work/crash.err")" 'could not be measured: head `[0-9a-f]+ Abort` crashes the server in script changed' \
    'the commit and the script are named'
like "$(cat "$work/crash.err")" 'terminated by signal 6' "with the server's last words"
like "$(report crash)" 'could not be measured.*Abort.*terminated by signal 6' 'in the report as well'
is "$(tests "$work/crash/bench-results/junit.xml")" 'measured error' 'JUnit has an error'

is "$(status error)" 2 'a head whose function fails: the status is 2'
like "$(cat "$work/error.err")" 'head `[0-9a-f]+ Fail` fails in script changed.*no more turns' 'the error is told'

is "$(status broken)" 2 'a head that does not build: the status is 2'
like "$(cat "$work/broken.err")" 'head `[0-9a-f]+ Break the <b>build</b>` does not build.*error: expected expression' \
    'the commit is named, with what the compiler said'
is "$(tests "$work/broken/bench-results/junit.xml")" 'measured error' 'JUnit has an error, whatever the subject'
is "$(status broken_base)" 2 'a base that does not build: the status is 2'
like "$(cat "$work/broken_base.err")" 'base `[0-9a-f]+ Break the <b>build</b>` does not build' 'and base is named'

is "$(status unknown) $(cat "$work/unknown.err")" '2 ci/compare: BENCH_METRIC is no metric of bench.duel: "tpm"' \
    'an unknown metric is told'
is "$(status none) $(cat "$work/none.err")" '2 ci/compare: name the scripts to run in BENCH_SCRIPTS' 'no script is told'
is "$(status lost) $(cat "$work/lost.err")" \
    '2 ci/compare: there is no merge base with origin/gone: fetch the history, or set BENCH_BASE' \
    'a missing history is told'
is "$(status shallow) $(cat "$work/shallow.err")" '2 ci/compare: there is no commit 0123456789' \
    'a missing commit is told'

is "$(for of in slower same crash broken; do git -C "$work/$of" worktree list | wc -l; done | xargs)" '1 1 1 1' \
    'the checkouts are gone'
is "$(ls "$("$PG_CONFIG" --sharedir)"/extension/ci_sample* "$("$PG_CONFIG" --pkglibdir)"/ci_sample* 2>/dev/null)" '' \
    "nothing is left in the system's server"

done_testing
