#!/usr/bin/env bash
# The archive for PGXN is made, and the extension builds from it, without .git: with the same install SQL, and, with
# BUILDS=yes, the same library, which takes ten minutes. Cargo takes what is built from another folder for another
# version of what is here, so that this comes last.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make() { env "${MAKE:-make}" --no-print-directory "$@"; }
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" pgbench_ext.control)
name='the archive'
if git rev-parse --git-dir >/dev/null 2>&1; then
    make dist >"$work/dist" 2>&1
    is $? 0 "$name: is made"
    python3 -m zipfile -e "build/pgbench_ext-$version.zip" "$work"
    archive=$work/pgbench_ext-$version
    is "$(find "$archive" -maxdepth 1 -name .git -o -maxdepth 1 -name META.json | sed 's/.*\///')" META.json \
        "$name: has META.json, and no .git"
    # Uncommitted changes are not in it: then the two builds differ rightly.
    if [ -z "${FULL:-}" ]; then
        skip 'takes two minutes: make test-full does it' "$name: builds"
    elif [ -n "$(git status --porcelain -- crates src Cargo.toml Cargo.lock build.rs)" ]; then
        skip 'the sources have changes that are not committed' "$name: builds"
    else
        # In the same folder of targets, where what it depends on is built already.
        target=${CARGO_TARGET_DIR:-$PWD/target}
        chmod -R u+x "$archive/scripts" "$archive/test"
        library=$target/release/libpgbench_ext.so profile=dev
        if [ -n "${BUILDS:-}" ]; then
            profile=release
            make build PROFILE=release >"$work/build" 2>&1 && cp -p "$library" "$work/first.so"
        fi
        CARGO_TARGET_DIR=$target make -C "$archive" build PROFILE=$profile >>"$work/build" 2>&1
        is $? 0 "$name: builds"
        if [ -n "${BUILDS:-}" ]; then
            is "$(cmp "$library" "$work/first.so" 2>&1)" '' "$name: the library is the same"
        elif [ -e "$library" ]; then
            is "$(grep -cF -e "$PWD/" -e "$target/" -e "${CARGO_HOME:-$HOME/.cargo}/" "$library")" 0 \
                "$name: the library that is released names no folder of this machine"
        else
            skip 'the tests were not built as a release' "$name: the library that is released names no folder"
        fi
        is "$(cmp "$archive/build/pgbench_ext--$version.sql" "build/pgbench_ext--$version.sql" 2>&1)" '' \
            "$name: the install SQL is the same"
        touch "$archive"/crates/stats/src/scalability/tests.rs "$archive"/src/schema/upgrade/*.sql
        unlike "$(CARGO_TARGET_DIR=$target make -C "$archive" build PROFILE=$profile 2>&1)" Compiling \
            "$name: a changed test or update has nothing compiled"
    fi
else
    skip 'this is not a git repository' "$name: is made"
fi
done_testing
