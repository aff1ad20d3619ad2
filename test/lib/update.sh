# shellcheck shell=bash
# shellcheck disable=SC2154 # work is of test/lib/common.sh, which is sourced before
# A made-up next version of the extension: source this file.
#
#   next_version         copies what makes the extension's SQL to $NEXT_TREE, for version $NEXT instead of $VERSION
#   next_version_install makes that SQL and the update to it, and installs both until the test's end; what make says

VERSION=$(sed -n "s/^default_version = '\(.*\)'/\1/p" pgbench_ext.control)
NEXT=${VERSION%.*}.$((${VERSION##*.} + 1))
NEXT_TREE=$work/next
EXTENSIONS=$("$PG_CONFIG" --sharedir)/extension

next_version() {
    mkdir -p "$NEXT_TREE/src"
    cp Makefile pgbench_ext.control "$NEXT_TREE"
    cp -R src/schema "$NEXT_TREE/src"
    sed -i "s/^\(default_version = '\).*'/\1$NEXT'/" "$NEXT_TREE/pgbench_ext.control"
    : >"$NEXT_TREE/src/schema/upgrade/pgbench_ext--$VERSION--$NEXT.sql"
}

next_version_install() {
    local script
    make -s -C "$NEXT_TREE" build-sql 2>&1
    for script in "pgbench_ext--$NEXT.sql" "pgbench_ext--$VERSION--$NEXT.sql"; do
        at_exit "rm -f '$EXTENSIONS/$script'"
        install -m 644 "$NEXT_TREE/build/$script" "$EXTENSIONS"
    done
}
