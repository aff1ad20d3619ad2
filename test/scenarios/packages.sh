#!/usr/bin/env bash
# The Debian package is made, and an extension from it works without anything else of this project. Everything that is
# packaged is of one version.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

make() { env "${MAKE:-make}" --no-print-directory "$@"; }
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" pgbench_ext.control)
# One version everywhere.
is "$(sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)" "$version" "META.json is of version $version"
is "$(python3 -c 'import json; print(json.load(open("META.json"))["provides"]["pgbench_ext"]["version"])')" "$version" \
    'META.json provides that version'
is "$(sed -n '1s/^pgbench-ext (\(.*\)-[0-9]*) .*/\1/p' debian/changelog)" "$version" 'debian/changelog is of it'
is "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" "$version" 'Cargo.toml is of it'

# The extension of a server that has nothing of this project but what a package put there.
works() { # DESC
    is "$(sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" \
        "SELECT bench.run('pk_update', clients => 2, transactions => 100)" \
        'SELECT sum(transactions) FROM bench.summary' 2>/dev/null | tail -n 1)" 200 "$1: a run"
}

# The Debian package, unpacked beside a copy of the server: PostgreSQL finds its files from where its program is.
name='the Debian package'
major=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
if ! command -v dh >/dev/null; then
    skip 'there is no debhelper' "$name: is made"
elif [ "$("$PG_CONFIG" --bindir)" != "/usr/lib/postgresql/$major/bin" ]; then
    skip "the server is no Debian package: $("$PG_CONFIG" --bindir)" "$name: is made"
else
    package=postgresql-$major-pgbench-ext
    make deb >"$work/deb" 2>&1
    is $? 0 "$name: is made"
    file=$(tail -n 1 "$work/deb")
    like "$file" "^build/${package}_$version-[0-9]+_[a-z0-9]+\.deb$" "$name: says where it is"
    is "$(git status --porcelain --ignored debian 2>/dev/null)" '' "$name: nothing is left in debian/"
    is "$(dpkg-deb -f "$file" Package Depends | sed 's/([^)]*)//g; s/libssl3t64/libssl3/' | tr -d ' ' | paste -sd' ')" \
        "Package:$package Depends:postgresql-$major,libc6,libgcc-s1,libssl3" "$name: its dependencies"
    is "$(dpkg-deb -c "$file" | awk '{ print $6 }' | grep -cE "/doc/$package/(copyright|changelog.gz)$")" 2 \
        "$name: licence and changelog are there"
    DIR=
    cluster_directory
    root=$DIR
    for folder in "usr/lib/postgresql/$major/bin" "usr/lib/postgresql/$major/lib" "usr/share/postgresql/$major"; do
        mkdir -p "$root/$folder"
        (cd "/$folder" && tar -c --exclude=bitcode --exclude='pgbench_ext*' .) | tar -x -C "$root/$folder"
    done
    dpkg-deb -x "$file" "$root"
    chmod -R go+rX "$root"
    PATH=$root/usr/lib/postgresql/$major/bin:$PATH
    CLUSTER_TEMPLATE='' cluster_start 'fsync = off'
    is "$(sql "SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'")" "$root/usr/lib/postgresql/$major/lib" \
        "$name: the server is the copy"
    works "$name"
    like "$(sql 'SELECT bench.version()')" "^pgbench_ext $version, built for PostgreSQL ${major}[^,]*, from sources" \
        "$name: its version"
    python3 test/lib/documents.py script uninstall "$work" docs/runs.md >"$work/uninstall.sql"
    is "$(psql -XAtq -v ON_ERROR_STOP=1 -f "$work/uninstall.sql" 2>&1)" '' "$name: can be uninstalled"
    is "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench%'" \
        "SELECT count(*) FROM pg_proc WHERE probin LIKE '%pgbench_ext%'" \
        "SELECT count(*) FROM pg_class WHERE relnamespace >= 16384 AND relnamespace <> 'public'::regnamespace
            AND relnamespace::regnamespace::text !~ '^pg_'" | paste -sd' ')" '0 0 0' \
        "$name: uninstalled, nothing is left"
fi

done_testing
