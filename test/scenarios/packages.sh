#!/usr/bin/env bash
# The packages are made, and an extension from them works without anything else of this project. They are for the
# folders of PGDG's servers, whatever server they are built with, and the same whenever they are made. All is of one
# version.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

profile=${TESTED_PROFILE:-release}
make() { env "${MAKE:-make}" --no-print-directory PROFILE="$profile" "$@"; }
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

# The server that they are built with has its folders elsewhere. Its headers are those that the tested library was built
# with, or cargo would build everything anew.
major=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
built=$("$PG_CONFIG" --version | cut -d' ' -f2)
cat >"$work/pg_config" <<END
#!/bin/sh
case \$1 in
--pkglibdir) echo /elsewhere/lib ;;
--sharedir) echo /elsewhere/share ;;
*) exec "$(command -v "${COPIED_PG_CONFIG:-$PG_CONFIG}")" "\$@" ;;
esac
END
chmod +x "$work/pg_config"

# As someone else would make it, with another umask and from older files: $made is the package.
package() { # deb|rpm PATTERN
    touch -d 2001-01-01 README.md
    (umask 027 && TZ=America/Lima make "$1" PG_CONFIG="$work/pg_config") >"$work/$1" 2>&1
    is $? 0 "$name: is made"
    touch README.md
    made=$(tail -n 1 "$work/$1")
    like "$made" "^build/$2$" "$name: says where it is"
    SUMS+=$(cd build && sha256sum "${made#build/}")$'\n'
}

# What a server needs of a package.
files() { # LIBRARIES EXTENSIONS
    local file
    for file in "$1/pgbench_ext.so" pgbench_ext.control build/*--"$version".sql; do
        [[ $file == /* ]] || file=$2/${file##*/}
        echo "$file"
    done | sort
}

SUMS=
name='the Debian package'
deb=
package=postgresql-$major-pgbench-ext
if ! command -v dh >/dev/null; then
    skip 'there is no debhelper' "$name: is made"
else
    package deb "${package}_$version-[0-9]+_[a-z0-9]+\.deb"
    deb=$work/deb.root
    dpkg-deb -x "$made" "$deb"
    is "$(git status --porcelain --ignored debian 2>/dev/null)" '' "$name: nothing is left in debian/"
    is "$(dpkg-deb -f "$made" Package Depends | sed 's/([^)]*)//g; s/libssl3t64/libssl3/' | tr -d ' ' | paste -sd' ')" \
        "Package:$package Depends:postgresql-$major,libc6,libgcc-s1,libssl3" "$name: its dependencies"
    like "$(dpkg-deb -f "$made" Description)" "headers of $built" "$name: says what it was built with"
    is "$(dpkg-deb -c "$made" | awk '{ print substr($6, 2) }' | grep -E '/postgresql/.*[^/]$' | sort)" \
        "$(files "/usr/lib/postgresql/$major/lib" "/usr/share/postgresql/$major/extension")" \
        "$name: its files are where that server looks"
    is "$(dpkg-deb -c "$made" | awk '{ print $6 }' | grep -cE "/doc/$package/(copyright|changelog.gz)$")" 2 \
        "$name: licence and changelog are there"
fi

name='the RPM'
rpm=
if ! command -v rpmbuild >/dev/null; then
    skip 'there is no rpmbuild' "$name: is made"
else
    package rpm "pgbench_ext_$major-$version-[0-9][^-]*\.rpm"
    rpm=$work/rpm.root
    mkdir "$rpm"
    rpm2archive - <"$made" | tar -xz -C "$rpm"
    like "$(rpm -qp --requires "$made" | paste -sd' ')" "libssl\.so.* postgresql$major-server " \
        "$name: its dependencies"
    is "$(rpm -qlp "$made" | grep '^/usr/pgsql-' | sort)" \
        "$(files "/usr/pgsql-$major/lib" "/usr/pgsql-$major/share/extension")" \
        "$name: its files are where that server looks"
    is "$(rpm -qp --qf '[%{FILEMODES:perms} %{FILEUSERNAME}\n]' "$made" | sort -u | paste -sd' ')" \
        '-rw-r--r-- root -rwxr-xr-x root drwxr-xr-x root' "$name: everybody may read them"
    is "$(rpm -qlp "$made" | grep -cE "/(LICENSE|README.md|docs/functions.md)$")" 3 \
        "$name: licence and documents are there"
fi

# A package's files in a copy of the server.
put() { # LIBRARIES EXTENSIONS
    rm -f "$libraries/pgbench_ext.so" "$extensions"/pgbench_ext*
    install -m 755 "$1/pgbench_ext.so" "$libraries/"
    install -m 644 "$2"/pgbench_ext* "$extensions/"
}

if [ -n "$deb$rpm" ]; then
    DIR=
    cluster_directory
    libraries=$DIR$("$PG_CONFIG" --pkglibdir) extensions=$DIR$("$PG_CONFIG" --sharedir)/extension
    copy_server "$DIR"
    use_server "$DIR$("$PG_CONFIG" --bindir)/pg_config"
    CLUSTER_TEMPLATE='' cluster_start 'fsync = off'
    is "$(sql "SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'")" "$libraries" 'the server is the copy'
    python3 test/lib/documents.py script uninstall "$work" docs/runs.md >"$work/uninstall.sql"
    for kind in deb rpm; do
        [ -n "${!kind}" ] || continue
        if [ $kind = deb ]; then
            name='the Debian package'
            put "$deb/usr/lib/postgresql/$major/lib" "$deb/usr/share/postgresql/$major/extension"
        else
            name='the RPM'
            put "$rpm/usr/pgsql-$major/lib" "$rpm/usr/pgsql-$major/share/extension"
        fi
        works "$name"
        like "$(sql 'SELECT bench.version()')" \
            "^pgbench_ext $version, built for PostgreSQL ${major}[^,]*, from sources" "$name: its version"
        is "$(psql -XAtq -v ON_ERROR_STOP=1 -f "$work/uninstall.sql" 2>&1)" '' "$name: can be uninstalled"
        is "$(sql "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bench%'" \
            "SELECT count(*) FROM pg_proc WHERE probin LIKE '%pgbench_ext%'" \
            "SELECT count(*) FROM pg_class WHERE relnamespace >= 16384 AND relnamespace <> 'public'::regnamespace
                AND relnamespace::regnamespace::text !~ '^pg_'" | paste -sd' ')" '0 0 0' \
            "$name: uninstalled, nothing is left"
    done
fi

# A package that is made again is the same, and the library names no folder of this machine.
name='a release'
if [ -n "$(git status --porcelain 2>&1)" ]; then
    skip 'there are changes that are not committed, or no repository' "$name: is made"
else
    make release PG_CONFIG="$work/pg_config" >"$work/release" 2>&1
    is $? 0 "$name: is made"
    is "$(grep -v '\.zip$' build/SHA256SUMS)" "$(sort -k 2 <<<"${SUMS%$'\n'}")" \
        "$name: its packages are the same again"
    is "$(cd build && sha256sum --check --quiet SHA256SUMS 2>&1; awk '{ print $2 }' SHA256SUMS | grep -c '\.zip$')" 1 \
        "$name: its sums are right, the archive among them"
fi
for root in "$deb" "$rpm"; do
    [ -n "$root" ] || continue
    if [ "$profile" != release ]; then
        skip 'the tests were not built as a release' "${root##*/}: the library names no folder of this machine"
        continue
    fi
    is "$(LC_ALL=C find "$root" -name pgbench_ext.so -exec grep -aoE "($HOME|$PWD)/[^:]{1,60}" {} + | tail -n 3)" \
        '' "${root##*/}: the library names no folder of this machine"
done

done_testing
