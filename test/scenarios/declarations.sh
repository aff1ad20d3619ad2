#!/usr/bin/env bash
# What the library declares by hand of the server (functions, variables, structures, constants) is as the headers of the
# server of PG_CONFIG have it: a C compiler compares them. Needs no cluster.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PG_CONFIG=${PG_CONFIG:-pg_config}
major=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')

# The compiler's complaints about the declarations of a folder of sources.
complaints() { # FOLDER
    local flags said
    read -ra flags <<<"$("$PG_CONFIG" --cppflags)"
    said=$({
        python3 test/lib/declarations.py "$major" "$1" >"$work/declared.c" &&
            "${CC:-cc}" -w -fsyntax-only "${flags[@]}" -I"$("$PG_CONFIG" --includedir-server)" "$work/declared.c"
    } 2>&1) || grep error: <<<"$said" || echo "error: $said"
}

is "$(complaints src)" '' "the declarations are those of PostgreSQL $major"
diag "$(tail -n 1 "$work/declared.c")"

# That it can fail: each of these is one wrong declaration.
refused() { # FILE SED-COMMAND NAME DESCRIPTION
    rm -rf "$work/src"
    mkdir -p "$work/src"
    cp -R src/server src/driver src/load "$work/src/"
    sed -i -E "$2" "$work/src/$1"
    if cmp -s "src/$1" "$work/src/$1"; then
        tap_fail "$4" "nothing was changed in $1"
    else
        like "$(complaints "$work/src")" "$3" "$4"
    fi
}
raw=driver/session/raw.rs
refused $raw 's/(pub fn IsTransactionBlock\(\) -> )bool/\1c_int/' IsTransactionBlock 'another result is noticed'
refused $raw 's/(pub fn PortalDrop\(portal: Portal), is_top_commit: bool/\1/' PortalDrop \
    'a parameter less is noticed'
refused $raw 's/pub fn XLogFlush\(upto: u64\)/pub fn XLogFlush(upto: u32)/' XLogFlush \
    'a narrower parameter is noticed'
refused $raw 's/pub fn EmitErrorReport/pub fn EmitErrorReports/' EmitErrorReports 'an unknown name is noticed'
refused $raw 's/(pub static mut XactLastCommitEnd: )u64/\1u32/' XactLastCommitEnd \
    'a variable of another type is noticed'
refused $raw '/pub is_send_pending: /d' PQcommMethods 'a field less is noticed'
refused server/signals.rs 's/(const LOCK_TIMEOUT: u32 = )2/\13/' LOCK_TIMEOUT 'another number is noticed'

# The options of a target are those of libpq, each taken or refused with its reason, as the manual's table has them.
cat >"$work/keywords.c" <<'C'
#include <stdio.h>
#include <libpq-fe.h>
int main(void) {
    for (PQconninfoOption *option = PQconndefaults(); option && option->keyword; option++) puts(option->keyword);
    return 0;
}
C
libdir=$("$PG_CONFIG" --libdir)
if "${CC:-cc}" -I"$("$PG_CONFIG" --includedir)" -o "$work/keywords" "$work/keywords.c" \
    -L"$libdir" -lpq -Wl,-rpath,"$libdir" 2>"$work/errors"; then
    "$work/keywords" | sort >"$work/libpq"
    is "$(($(wc -l <"$work/libpq") > 30))" 1 'libpq has options'
    is "$(sed -n 's/^| `\(.*\)` | .*/\1/p' docs/targets.md | sed 's/`, `/\n/g' | sort | comm -13 - "$work/libpq")" '' \
        'the manual says of each what becomes of it'
else
    skip "there is no libpq to build with: $(tail -n 1 "$work/errors")" 'the options of libpq'
fi
done_testing
