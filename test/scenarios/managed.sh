#!/usr/bin/env bash
# docs/managed.md: its examples on a server beside one that has neither the extension nor a superuser for the role, asks
# for a password, and takes TLS connections only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

port=$(free_port)
CLUSTER_TEMPLATE='' cluster_start 'fsync = off' "listen_addresses = '127.0.0.1'" "port = $port"
far=$PGHOST
on_far() { PGHOST=$far PGPORT=$port "$@"; }
certificate=$far/data/server.crt
as_pg openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=db -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$far/data/server.key" -out "$certificate" 2>/dev/null
as_pg chmod 600 "$far/data/server.key"
on_far sql "CREATE ROLE app LOGIN PASSWORD 'secret'" 'CREATE DATABASE app OWNER app' 'ALTER SYSTEM SET ssl = on'
echo 'local all all trust
hostssl all app 127.0.0.1/32 scram-sha-256' | as_pg tee "$far/data/pg_hba.conf" >/dev/null
on_far sql 'SELECT pg_reload_conf()' >/dev/null
ok 'the tables are made by the role itself' env PGPASSWORD=secret PGSSLMODE=require \
    pgbench -i -q -s 10 -h 127.0.0.1 -p "$port" -U app app

faults_start
sql 'DROP EXTENSION pgbench_ext'
python3 test/lib/documents.py script managed "$work" docs/managed.md |
    sed -E "s/db\.example\.com/127.0.0.1/; s/5432/$port/; s#sslrootcert 'system'#sslrootcert '$certificate'#
        s/secs => [0-9]+/secs => 1/; s/warmup => 10/warmup => 0/; s/rounds => 5/rounds => 2/" >"$work/script"
ok 'the examples run' psql -XAtq -v ON_ERROR_STOP=1 -f "$work/script" -o "$work/output"
is "$(sql "SELECT count(*), count(DISTINCT r.target), bool_and(r.status = 'completed'),
        bool_and(s.transactions > 0), sum(s.failed)
    FROM bench.summary s JOIN bench.runs r USING (run_id)")" '7|1|t|t|0' \
    'their runs are completed, all of them there'
is "$(sql "SELECT count(*) FROM bench.runs r, LATERAL bench.audit(r.run_id) a WHERE NOT a.ok")" 0 \
    'and no audit found a difference'
is "$(sql "SELECT count(*) > 0 FROM bench.waits JOIN bench.runs USING (run_id) WHERE workload = 'tpcb'")" t \
    'waits are seen there'
is "$(PGDATABASE=app on_far sql "SELECT count(*) FROM pg_extension WHERE extname = 'pgbench_ext'")" 0 \
    'the extension was not needed there'
log_is_clean
done_testing
