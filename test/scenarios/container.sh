#!/usr/bin/env bash
# What the container does, without a container engine: the entrypoint makes and starts a cluster, with what compose.yaml
# puts into it. Dockerfile and compose.yaml name only files that there are.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# Sources of COPY from the project's folder, which .dockerignore lets through, and what RUN calls.
allowed() { # FILE
    grep -qxF -e "!${1%%/*}" -e "!$1" .dockerignore
}
missing=
while read -r file; do
    if [ "$file" != . ] && { [ ! -e "$file" ] || ! allowed "$file"; }; then missing+=" $file"; fi
done < <(awk '/^COPY/ && !/--from/ { for (i = 2; i < NF; i++) print $i }' Dockerfile)
while read -r file; do
    [ -x "$file" ] || [ -x "container/$file" ] || missing+=" $file"
done < <(sed -nE 's/^RUN ([^ ]+).*/\1/p' Dockerfile)
is "$missing" '' 'Dockerfile names only files that are there and reach the build'
absent() { while read -r file; do [ -e "$file" ] || echo "$file"; done; }
is "$(sed -n 's/^!//p' .dockerignore | absent)" '' \
    'so does .dockerignore'
is "$(sed -nE 's/^ +- (\.\/[^:]+):.*/\1/p' compose.yaml | absent)" '' 'so does compose.yaml'
# From what it lets through, the library can be built: the workspace is whole, and so is what its sources include.
mkdir "$work/context"
sed -n 's/^!//p' .dockerignore | xargs cp -r --parents -t "$work/context"
ok 'cargo finds all crates in the build' \
    cargo metadata --offline --no-deps --format-version 1 --manifest-path "$work/context/Cargo.toml"
is "$(python3 - "$work/context" <<'P'
import re, sys
from pathlib import Path
for source in Path(sys.argv[1]).rglob('*.rs'):
    if not {'tests', 'tests.rs', 'conventions', 'fuzz'} & set(source.parts):
        for name in re.findall(r'\binclude(?:_str|_bytes)?!\(\s*"([^"]+)"', source.read_text()):
            if not (source.parent / name).exists():
                print(source.name, name)
P
)" '' 'and the sources find what they include'
ok 'its install SQL is joined' make -C "$work/context" build-sql

if python3 -c 'import yaml' 2>/dev/null; then
    for file in docs/container.md docs/monitoring.md; do
        awk '/^```yaml/ { on = 1; next } /^```/ { on = 0 } on' "$file" >"$work/${file##*/}.yaml"
    done
    for file in compose.yaml container/*.yaml docs/*.yaml "$work"/*.yaml; do
        ok "${file##*/} is YAML" \
            python3 -c 'import sys, yaml; assert all(yaml.safe_load_all(open(sys.argv[1])))' "$file"
    done
else
    skip 'this Python has no yaml' 'the files are YAML'
fi

if [ ! -e "$("$PG_CONFIG" --sharedir)/extension/pg_cron.control" ]; then
    skip 'pg_cron is not installed' 'the entrypoint makes a cluster'
    done_testing
    exit
fi

cluster_directory || exit
as_pg mkdir "$DIR/init"
sed "s/'pk', 1000000/'pk', 1000/" container/nightly.sql | as_pg tee "$DIR/init/nightly.sql" >/dev/null
cp container/entrypoint "$DIR/entrypoint"
port=$(free_port)
export PGHOST=$DIR PGPORT=$port PGUSER=postgres PGDATABASE=postgres GRAFANA_PASSWORD="a'b"
# As root where there is a user postgres, as whom it goes on then.
entrypoint() { # ARGUMENT…
    local run=(as_pg)
    if [ "$(id -u)" -eq 0 ] && id postgres >/dev/null 2>&1; then run=(); fi
    "${run[@]}" env -u PGHOST -u PGPORT PGDATA="$DIR/data" INIT_FOLDER="$DIR/init" "$DIR/entrypoint" "$@"
}
start() { # NAME VALUE
    (
        export "$1=$2"
        entrypoint -c unix_socket_directories="$DIR" -c port="$port" -c listen_addresses=127.0.0.1 -c fsync=off \
            -c log_line_prefix='%b ' >"$DIR/log" 2>&1 </dev/null
    ) &
}
# The server lets sessions over TCP in when it is ready.
running() { eventually 60 'SELECT true' && PGHOST=127.0.0.1 eventually 60 'SELECT true'; }
stopped() { kill -INT "$(head -n 1 "$DIR/data/postmaster.pid")" && wait; }

OUT=$(entrypoint 2>&1)
is $? 1 'without a password no cluster is made'
like "$OUT" 'POSTGRES_PASSWORD' 'which is told'
is "$(ls -A "$DIR/data" 2>/dev/null)" '' 'and nothing is left of it'
is "$(entrypoint echo a command)" 'a command' 'a command is executed'

# An SQL file that fails makes no cluster, and the next start makes it.
as_pg tee "$DIR/init/wrong.sql" >/dev/null <<<'SELECT nonesuch;'
start POSTGRES_PASSWORD secret
wait $! && status=0 || status=$?
is "$((status != 0))" 1 'an SQL file that fails ends the start'
like "$(cat "$DIR/log")" 'column "nonesuch" does not exist' 'with its error'
as_pg rm "$DIR/init/wrong.sql"

# So does what has been killed while initdb was at work.
start POSTGRES_PASSWORD secret
begun() {
    pgrep -u "$CLUSTER_USER" -f "initdb -D $DIR/data" >/dev/null && [ -e "$DIR/data/unfinished/PG_VERSION" ]
}
for ((turn = 0; turn < 600; turn++)); do
    ! begun || break
    sleep 0.02
done
ok 'a cluster is being made' begun
pkill -KILL -u "$CLUSTER_USER" -f "$DIR/(entrypoint|data)" || diag 'nothing was there to kill'
wait
export PGPASSWORD=it\'s\ secret
as_pg tee "$DIR/password" >/dev/null <<<"$PGPASSWORD"
start POSTGRES_PASSWORD_FILE "$DIR/password"
running || diag "$(tail -n 20 "$DIR/log")"
is "$(sql "SELECT string_agg(extname, ' ' ORDER BY extname) FROM pg_extension")" 'pg_cron pgbench_ext pgtap plpgsql' \
    'the next start makes the cluster with its extensions'
is "$(sql "SELECT string_agg(jobname, ', ' ORDER BY jobname) FROM cron.job")" 'bench retention, nightly' \
    'the jobs of compose.yaml are there'
is "$(PGHOST=127.0.0.1 sql 'SELECT 1')" 1 'the password of the file is that of the superuser'
like "$(PGHOST=127.0.0.1 PGPASSWORD=wrong sql 'SELECT 1' 2>&1)" 'password authentication failed' 'and no other is'
is "$(sql "SELECT bench.run('pk_update', clients => 2, transactions => 10)" 'SELECT transactions FROM bench.summary' \
    2>/dev/null | tail -n 1)" 20 'a run works'
is "$(PGHOST=127.0.0.1 PGUSER=grafana PGPASSWORD="a'b" sql 'SELECT count(*) FROM bench.runs')" 1 \
    'role grafana sees it, with its password'
is "$(stat -c %a "$DIR/data")" 700 'nobody else reads the data directory'
stopped
is "$(entrypoint -c unix_socket_directories="$DIR" -C shared_preload_libraries 2>&1)" pg_cron \
    'a second start needs no password'
start POSTGRES_PASSWORD ''
running
is "$(sql 'SELECT count(*) FROM bench.runs')" 1 'and has what the first had'
log_is_clean
stopped

done_testing
