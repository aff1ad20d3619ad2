#!/usr/bin/env bash
# Connections to other servers: a server of another cluster, a standby of this one, a pooler; who may, and what is lost.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/common.sh
. test/lib/common.sh

# The server that the connections lead to, which listens by TCP as well.
for _ in 1 2 3; do
    FAR_PORT=$(free_port)
    CLUSTER_TEMPLATE='' cluster_start 'fsync = off' "listen_addresses = '127.0.0.1'" "port = $FAR_PORT" \
        'max_connections = 30' && break
done
FAR=$PGHOST
on_far() { PGHOST=$FAR PGPORT=$FAR_PORT "$@"; }
on_far sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 1000)" "CREATE ROLE bob LOGIN PASSWORD 'sesame'" \
    'GRANT USAGE ON SCHEMA bench_data TO bob' 'GRANT ALL ON ALL TABLES IN SCHEMA bench_data TO bob' >/dev/null
# Bob is asked for his password, trusty is not.
on_far sql 'CREATE ROLE trusty LOGIN'
as_pg sed -i '1i local all bob scram-sha-256\nhost all bob 127.0.0.1/32 scram-sha-256' "$FAR/data/pg_hba.conf"
on_far sql 'SELECT pg_reload_conf()' >/dev/null

faults_start 'max_wal_senders = 4' 'hot_standby = on'
NEAR=$PGHOST

# All that is printed is looked at for passwords at the end.
eval "$(declare -f try | sed '1s/try/try_only/')"
try() { try_only "$@" && echo "$OUT" >>"$work/printed"; }

far_clients() { on_far sql "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"; }

over() { # DESCRIPTION
    is "$(far_clients)" 0 "$1: no connection is left there"
    nothing_left "$1"
}

sql "CREATE SERVER far FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR', port '$FAR_PORT', dbname 'postgres')" \
    "CREATE SERVER far_tcp FOREIGN DATA WRAPPER bench_wire
        OPTIONS (host '127.0.0.1', port '$FAR_PORT', dbname 'postgres')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER far' \
    "CREATE USER MAPPING FOR CURRENT_USER SERVER far_tcp OPTIONS (user 'bob', password 'sesame')"

#
# What a run over there measures
#
for target in far far_tcp; do
    name="a run on target $target"
    before=$(on_far sql 'SELECT sum(n_tup_upd) FROM pg_stat_all_tables')
    try "SELECT bench.run('pk_update', clients => 4, transactions => 50, driver => 'wire', target => '$target',
        jobs => 2)"
    RUN=$(last_run)
    like "$OUT" 'actually processed: 200' "$name: its transactions are counted"
    status_is "$RUN" completed "$name"
    is "$(on_far sql 'SELECT sum(n_tup_upd) FROM pg_stat_all_tables')" $((before + 200)) "$name: they were done there"
    is "$(sql 'SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = '"'bench_data.pk'::regclass")" 0 \
        "$name: and none here"
    is "$(sql "SELECT target, driver, jobs FROM bench.runs WHERE run_id = $RUN")" "$target|wire|2" \
        "$name: the run's row"
    is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$name: the audit accuses nobody"
    is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE counter LIKE 'n_tup%' OR counter = 'xact_commit'")" 0 \
        "$name: this server's counters are not compared"
    like "$(sql "SELECT bench.report($RUN)")" "target: $target" "$name: the report names it"
    is "$(sql "SELECT environment ->> 'version' FROM bench.runs WHERE run_id = $RUN")" \
        "$(on_far sql 'SELECT version()')" "$name: the version is the one of the target"
    is "$(sql "SELECT count(*) FROM jsonb_array_elements(
            (SELECT environment -> 'server_settings' FROM bench.runs WHERE run_id = $RUN)) s
            WHERE s ->> 'name' = 'max_connections' AND s ->> 'setting' = '30'")" 1 \
        "$name: the configuration is the one of the target"
    over "$name"
done
for mode in simple extended prepared; do
    try "SELECT bench.run('pk_select', clients => 3, transactions => 20, driver => 'wire', target => 'far_tcp',
        query_mode => '$mode')"
    like "$OUT" 'actually processed: 60' "query_mode $mode"
done

name='a sweep'
try "SELECT bench.sweep('pk_select', '{1}', secs => 1, rounds => 1, before => 'none', tags => '{\"of\": \"targets\"}',
    variants => '{\"engine\": {}, \"far\": {\"driver\": \"wire\", \"target\": \"far\"}}')"
is "$(sql "SELECT count(*), count(target) FROM bench.runs WHERE tags ->> 'of' = 'targets' AND status = 'completed'")" \
    '2|1' "$name: target is an argument of a variant"
over "$name"

name='bench.capacity'
try "SELECT bench.create_workload('waits', E'\\\\sleep 5 ms\nSELECT 1;')" \
    "SELECT bench.capacity('waits', clients => 2, secs => 0.5, trials => 1, margin => 1, driver => 'wire',
        target => 'far')"
SWEEP=$(sql 'SELECT max(sweep_id) FROM bench.sweeps')
is "$(sql "SELECT s.status || ' ' || (c.rate > 0) FROM bench.sweeps s JOIN bench.capacities c USING (sweep_id)
    WHERE sweep_id = $SWEEP")" 'completed true' "$name: finds what connections to a target sustain"
is "$(sql "SELECT bool_and(target = 'far') FROM bench.runs WHERE sweep_id = $SWEEP")" t "$name: all runs lead there"
is "$(sql "SELECT (outcome ->> 'checkpoints')::int >= 1 FROM bench.sweep_runs
    WHERE sweep_id = $SWEEP AND purpose = 'operating'")" t "$name: a checkpoint is made there"
over "$name"

#
# What is found before the run
#
runs=$(sql 'SELECT count(*) FROM bench.runs')
name='an error in the script'
try "SELECT bench.run(script => 'SELECT foo', driver => 'wire', target => 'far')"
like "$OUT" 'ERROR:  42703: column "foo" does not exist' "$name: is the target's"
like "$OUT" 'Target "far" gave this error' "$name: says so"
name='a fixture that is not there'
try "SELECT bench.run('insert_single', driver => 'wire', target => 'far')"
like "$OUT" 'ERROR:  55000: fixture "wide" is not loaded on target "far"' "$name"
like "$OUT" "HINT:  Load it there: SELECT bench.load\('wide'\)" "$name: with a hint"
name='a server that does not answer'
sql "CREATE SERVER nobody FOREIGN DATA WRAPPER bench_wire OPTIONS (host '127.0.0.1', port '$(free_port)')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER nobody'
try "SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'nobody')"
like "$OUT" 'ERROR:  08006: connection to server at "127.0.0.1", port [0-9]+ failed: Connection refused' "$name"
name='a database that does not exist'
sql "CREATE SERVER nowhere FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR', port '$FAR_PORT', dbname 'nowhere')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER nowhere'
try "SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'nowhere')"
like "$OUT" 'ERROR:  3D000: .*database "nowhere" does not exist' "$name"
name='a server that says nothing'
python3 - "$work/mute" <<'PY' &
import socket, sys, time
with socket.socket() as s:
    s.bind(("127.0.0.1", 0)); s.listen()
    open(sys.argv[1], "w").write(str(s.getsockname()[1]))
    time.sleep(120)
PY
at_exit "kill $! 2>/dev/null"
until [ -s "$work/mute" ]; do sleep 0.05; done
sql "CREATE SERVER mute FOREIGN DATA WRAPPER bench_wire
        OPTIONS (host '127.0.0.1', port '$(cat "$work/mute")', connect_timeout '2', sslmode 'disable')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER mute'
clock
try "SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'mute')"
like "$OUT" 'ERROR:  08006: .*timeout expired' "$name: connect_timeout"
within 4000 "$name: is in time"
sql "CREATE SERVER patient FOREIGN DATA WRAPPER bench_wire
        OPTIONS (host '127.0.0.1', port '$(cat "$work/mute")', sslmode 'disable')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER patient'
session caller "SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'patient')"
eventually 10 "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'caller' AND state = 'active'"
sleep 0.3
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null
ended caller 5
like "$OUT" 'ERROR:  57014' "$name: the caller can cancel"
name='a server that speaks something else'
python3 - "$work/garbage" <<'PY' &
import socket, sys
with socket.socket() as s:
    s.bind(("127.0.0.1", 0)); s.listen()
    open(sys.argv[1], "w").write(str(s.getsockname()[1]))
    s.settimeout(120)
    while True:
        c, _ = s.accept()
        c.recv(1000); c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"); c.close()
PY
at_exit "kill $! 2>/dev/null"
until [ -s "$work/garbage" ]; do sleep 0.05; done
sql "CREATE SERVER garbage FOREIGN DATA WRAPPER bench_wire
        OPTIONS (host '127.0.0.1', port '$(cat "$work/garbage")', sslmode 'disable')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER garbage'
try "SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'garbage')"
like "$OUT" 'ERROR:  08P01' "$name"
is "$(sql 'SELECT count(*) FROM bench.runs')" "$runs" 'no run was begun'
nothing_left 'what is found before the run'

#
# Passwords
#
sql 'CREATE ROLE alice LOGIN' 'GRANT USAGE ON SCHEMA bench TO alice' 'GRANT EXECUTE ON FUNCTION bench.run TO alice' \
    'GRANT USAGE ON FOREIGN SERVER far, far_tcp TO alice'
as_alice() { try 'SET ROLE alice' "SELECT bench.run('pk_select', transactions => 10,
    driver => 'wire', target => '$1')"; }
name='a role that is no superuser'
as_alice far
like "$OUT" 'ERROR:  42704: user mapping not found for "alice" on server "far"' "$name: needs a mapping"
sql "CREATE USER MAPPING FOR alice SERVER far OPTIONS (user 'trusty')"
as_alice far
like "$OUT" 'ERROR:  2F003: password is required' "$name: needs a password"
sql "ALTER USER MAPPING FOR alice SERVER far OPTIONS (ADD password 'whatever')"
as_alice far
like "$OUT" 'ERROR:  2F003: password is required' "$name: which has to be asked for"
like "$OUT" 'does not request a password' "$name: says so"
sql "ALTER USER MAPPING FOR alice SERVER far OPTIONS (SET user 'bob')"
as_alice far
like "$OUT" 'ERROR:  28P01: connection to server on socket .* failed: .*password authentication failed for user "bob"' \
    "$name: a wrong one is refused, and said once"
sql "ALTER USER MAPPING FOR alice SERVER far OPTIONS (SET password 'sesame')"
as_alice far
like "$OUT" 'actually processed: 10' "$name: works with the right one"
as_alice far_tcp
like "$OUT" 'ERROR:  42704' "$name: does not use the mapping of others"
sql "CREATE USER MAPPING FOR PUBLIC SERVER far_tcp OPTIONS (user 'bob', password 'sesame')"
as_alice far_tcp
like "$OUT" 'actually processed: 10' "$name: PUBLIC's mapping is for all"
like "$(psql -XAtc 'SET ROLE alice' -c "SELECT umoptions FROM pg_user_mappings WHERE srvname = 'far_tcp'")" '^SET\s*$' \
    "$name: whose options it cannot see"
try "SELECT bench.sweep('pk_select', '{1}', secs => 0.2, rounds => 1, before => 'none', driver => 'wire',
    variants => '{\"a\": {\"target\": \"far_tcp\"}}')"
name='passwords'
is "$(sql "SELECT count(*) FROM bench_internal.run_log r WHERE r::text LIKE '%sesame%'")" 0 \
    "$name: none is in a run's row"
for format in text html json; do
    is "$(sql "SELECT count(*) > 5, count(*) FILTER (WHERE report LIKE '%sesame%')
        FROM bench.runs, bench.report(run_id, '$format') report")" 't|0' "$name: none is in a report, $format"
done
is "$(sql "SELECT count(*) > 0, count(*) FILTER (WHERE report LIKE '%sesame%') FROM
    (SELECT max(sweep_id) AS id FROM bench.sweeps) s,
    LATERAL (VALUES (bench.sweep_report(id)), (bench.sweep_report(id, 'html'))) r (report)")" 't|0' \
    "$name: none is in a sweep's report"
is "$(sql "SELECT count(*) FROM bench.errors e WHERE e::text LIKE '%sesame%'")" 0 "$name: none is in an error"
for table in $(sql "SELECT oid::regclass FROM pg_class WHERE relnamespace IN
    ('bench'::regnamespace, 'bench_internal'::regnamespace) AND relkind = 'r'"); do
    ! grep -q sesame < <(sql "SELECT t::text FROM $table t") || tap_fail "$name: one is in table $table"
done
is "$(sql "SELECT count(*) FROM (SELECT bench.export(array_agg(run_id))::text AS e FROM bench.runs) x
    WHERE e LIKE '%sesame%'")" 0 \
    "$name: none is in an export"
# The statements that have set them are not logged.
is "$(grep -c sesame "$NEAR/log")" 0 "$name: none is in the log"
is "$(grep -v 'CREATE ROLE bob' "$FAR/log" | grep -c sesame)" 0 "$name: none is in the target's log"

#
# Stops and losses
#
begin() { # SCRIPT
    RUN=$(sql "SELECT bench.start(script => '$1', secs => 60, clients => 6, jobs => 2,
        driver => 'wire', target => 'far')")
    eventually 20 "SELECT status = 'running' FROM bench.runs WHERE run_id = $RUN"
    on_far eventually 20 "SELECT count(*) > 6 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
}
for script in 'SELECT pg_sleep(60)' '\sleep 60 s' 'SELECT 1'; do
    name="bench.stop in $script"
    begin "$script"
    clock
    sql "SELECT bench.stop($RUN)" >/dev/null
    within 3000 "$name: within 3 s"
    status_is "$RUN" canceled "$name"
    on_far eventually 5 "SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%'
        AND pid <> pg_backend_pid()"
    over "$name"
done
name='a caller that is canceled'
session caller "SELECT bench.run(script => 'SELECT pg_sleep(60)', clients => 6, secs => 60,
    driver => 'wire', target => 'far_tcp')"
on_far eventually 20 "SELECT count(*) = 6 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'
    AND wait_event = 'PgSleep'"
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'caller'" >/dev/null
ended caller 10
like "$OUT" 'ERROR:  57014' "$name: gets its error"
on_far eventually 5 "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
over "$name: what ran there has ended"
name='DROP SERVER during a run'
begin 'SELECT 1'
sql 'DROP SERVER far CASCADE'
sql "SELECT bench.stop($RUN)" >/dev/null
is "$(sql "SELECT target, (SELECT sum(transactions) > 0 FROM bench.samples s WHERE s.run_id = r.run_id)
    FROM bench.runs r WHERE run_id = $RUN")" 'far|t' "$name: changes nothing"
sql "CREATE SERVER far FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR', port '$FAR_PORT', dbname 'postgres')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER far'
name='a server that is killed'
begin 'SELECT 1'
as_pg pg_ctl -D "$FAR/data" -m immediate -s stop
eventually 20 "SELECT status = 'incomplete' FROM bench.runs WHERE run_id = $RUN"
status_is "$RUN" incomplete "$name"
like "$(sql "SELECT string_agg(sqlstate, ',') FROM bench.errors WHERE run_id = $RUN")" '^(57P0[12]|08006)' \
    "$name: its errors"
on_far cluster_resume
over "$name"
name='a server that is restarted, and clients that go on'
RUN=$(sql "SELECT bench.start('pk_update', secs => 60, clients => 6, jobs => 2, driver => 'wire', target => 'far',
    on_disconnect => 'reconnect', sample_interval => 0.25)")
eventually 20 "SELECT sum(transactions) > 0 FROM bench.samples WHERE run_id = $RUN"
as_pg pg_ctl -D "$FAR/data" -l "$FAR/log" -m fast -s -w -t 60 restart </dev/null
on_far eventually 20 "SELECT coalesce(sum(n_tup_upd), 0) > 0 FROM pg_stat_user_tables, pg_stat_activity
    WHERE application_name = 'pgbench_ext' AND state_change > pg_postmaster_start_time()"
seen=$(sql "SELECT sum(transactions) FROM bench.samples WHERE run_id = $RUN")
eventually 20 "SELECT sum(transactions) > $seen FROM bench.samples WHERE run_id = $RUN"
tap_pass "$name: transactions are committed again"
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled "$name"
is "$(sql "SELECT aborted, failed + unknown BETWEEN 1 AND 6 FROM bench.summary WHERE run_id = $RUN")" '0|t' \
    "$name: what was under way is failed or in doubt, and no client ended"
is "$(sql "SELECT bool_and(sqlstate IN ('57P01', '57P03', '08006', '08007', '08001')) FROM bench.errors
    WHERE run_id = $RUN")" t "$name: the errors"
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$name: the audit accuses nobody"
over "$name"
name='more clients than its max_connections'
try "SELECT bench.run(script => 'SELECT 1', clients => 40, secs => 5, driver => 'wire', target => 'far')"
like "$OUT" 'ERROR:  53300: connection to server on socket .* failed: .*(too many clients|remaining connection slots)' \
    "$name: the error of the target, which is named"
limit=$(on_far sql 'SHOW max_connections')
like "$OUT" "The run has 40 connections; max_connections is $limit" "$name: with the numbers"
on_far eventually 5 "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
over "$name"

PIPELINE='\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline'

#
# TLS
#
if command -v openssl >/dev/null && on_far sql 'SELECT 1' >/dev/null; then
    certificates() { # made as PostgreSQL's documentation says
        cd "$FAR" || return
        openssl req -new -x509 -days 30 -nodes -text -subj /CN=root -out root.crt -keyout root.key
        openssl req -new -x509 -days 30 -nodes -text -subj /CN=other -out other.crt -keyout other.key
        openssl req -new -nodes -text -subj /CN=localhost -out server.csr -keyout server.key
        openssl x509 -req -in server.csr -days 30 -CA root.crt -CAkey root.key -CAcreateserial -out server.crt
        openssl req -new -nodes -text -subj /CN=carol -out carol.csr -keyout carol.key
        openssl x509 -req -in carol.csr -days 30 -CA root.crt -CAkey root.key -CAcreateserial -out carol.crt
        chmod 600 ./*.key
    }
    as_pg bash -c "$(declare -f certificates); FAR='$FAR'; certificates" >/dev/null 2>&1
    on_far sql 'CREATE ROLE carol LOGIN'
    rules='hostssl all carol 127.0.0.1/32 cert\nhostssl all bob 127.0.0.1/32 scram-sha-256'
    as_pg sed -i "1i $rules\nhost all bob 127.0.0.1/32 reject" \
        "$FAR/data/pg_hba.conf"
    as_pg tee -a "$FAR/data/postgresql.conf" >/dev/null <<CONF
ssl = on
ssl_cert_file = '$FAR/server.crt'
ssl_key_file = '$FAR/server.key'
ssl_ca_file = '$FAR/root.crt'
CONF
    on_far sql 'SELECT pg_reload_conf()' >/dev/null
    on_far eventually 10 "SELECT current_setting('ssl') = 'on'"
    sql "CREATE SERVER tls FOREIGN DATA WRAPPER bench_wire
            OPTIONS (host 'localhost', hostaddr '127.0.0.1', port '$FAR_PORT', dbname 'postgres')" \
        "CREATE USER MAPPING FOR CURRENT_USER SERVER tls OPTIONS (user 'bob', password 'sesame')"
    encrypted="script => 'SELECT 1 / (SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid())'"
    with_tls() { # OPTIONS DESCRIPTION ERROR: the real psql is the judge of what the options mean
        local options="" option value words=() verdict
        for option in $1; do
            value=${option#*=}
            options+=", ADD ${option%%=*} '$value'"
            words+=("$option")
        done
        sql 'ALTER SERVER tls OPTIONS (SET host '"'localhost'${options})"
        try "SELECT bench.run($encrypted, clients => 3, transactions => 4, jobs => 2,
            driver => 'wire', target => 'tls')"
        if PGPASSWORD=sesame psql -XAtq \
            "host=localhost hostaddr=127.0.0.1 port=$FAR_PORT dbname=postgres user=bob ${words[*]}" \
            -c '' 2>"$work/psql"; then
            verdict='actually processed: 12'
        else
            verdict="ERROR:  .*$3"
            like "$(cat "$work/psql")" "$3" "TLS, $2: psql says so"
        fi
        like "$OUT" "$verdict" "TLS, $2: as by psql"
        for option in $1; do sql "ALTER SERVER tls OPTIONS (DROP ${option%%=*})"; done
    }
    with_tls '' 'by default' nothing
    with_tls 'sslmode=disable' 'disable' 'pg_hba.conf rejects connection'
    with_tls 'sslmode=allow' 'allow' nothing
    with_tls 'sslmode=prefer' 'prefer' nothing
    with_tls 'sslmode=require' 'require' nothing
    with_tls "sslmode=require sslrootcert=$FAR/root.crt" 'require with a root certificate' nothing
    with_tls "sslmode=require sslrootcert=$FAR/other.crt" 'require with another root certificate' \
        'certificate verify failed'
    with_tls "sslmode=verify-ca sslrootcert=$FAR/root.crt" 'verify-ca' nothing
    with_tls "sslmode=verify-ca sslrootcert=$FAR/other.crt" 'verify-ca with another root certificate' \
        'certificate verify failed'
    with_tls "sslmode=verify-full sslrootcert=$FAR/root.crt" 'verify-full by the common name' nothing
    with_tls "sslmode=verify-ca sslrootcert=$FAR/server.crt" 'verify-ca with the certificate itself' \
        'certificate verify failed'
    with_tls 'channel_binding=require' 'channel binding' nothing
    with_tls 'channel_binding=require sslmode=disable' 'channel binding without TLS' \
        'channel binding|rejects connection'
    with_tls 'ssl_max_protocol_version=TLSv1.2' 'version 1.2' nothing
    with_tls 'ssl_min_protocol_version=TLSv1.3' 'version 1.3' nothing
    name='TLS, another name'
    sql "ALTER SERVER tls
        OPTIONS (SET host 'elsewhere.example', ADD sslmode 'verify-full', ADD sslrootcert '$FAR/root.crt')"
    try "SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'tls')"
    like "$OUT" 'ERROR:  08001: .*server certificate for "localhost" does not match host name "elsewhere.example"' \
        "$name"
    name='TLS, a client certificate'
    sql "ALTER SERVER tls OPTIONS (SET host 'localhost')" \
        "ALTER USER MAPPING FOR CURRENT_USER SERVER tls OPTIONS (SET user 'carol', DROP password)"
    try "SELECT bench.run($encrypted, transactions => 5, driver => 'wire', target => 'tls')"
    like "$OUT" 'ERROR:  28000: .*connection requires a valid client certificate' "$name: is needed"
    sql "ALTER USER MAPPING FOR CURRENT_USER SERVER tls
        OPTIONS (ADD sslcert '$FAR/carol.crt', ADD sslkey '$FAR/carol.key')"
    try "SELECT bench.run($encrypted, clients => 3, transactions => 5, driver => 'wire', target => 'tls')"
    like "$OUT" 'actually processed: 15' "$name: lets the client in"
    as_pg chmod 644 "$FAR/carol.key"
    try "SELECT bench.run($encrypted, transactions => 5, driver => 'wire', target => 'tls')"
    like "$OUT" 'ERROR:  08001: private key file .* has group or world access' \
        "$name: whose key others can read is refused"
    as_pg chmod 600 "$FAR/carol.key"
    name='TLS, a file that is none'
    as_pg mkfifo "$FAR/pipe"
    as_pg dd if=/dev/zero of="$FAR/large" bs=1M count=2 2>/dev/null
    clock
    for file in pipe large; do
        sql "ALTER SERVER tls OPTIONS (SET sslrootcert '$FAR/$file')"
        try "SELECT bench.run($encrypted, transactions => 5, driver => 'wire', target => 'tls')"
        echo "$OUT" >"$work/$file"
    done
    within 2000 "$name: is not waited for"
    like "$(cat "$work/pipe")" 'ERROR:  42809: could not read root certificate file' "$name: a pipe"
    like "$(cat "$work/large")" 'ERROR:  54000: could not read root certificate file' "$name: more than a megabyte"
    sql "ALTER SERVER tls OPTIONS (SET sslrootcert '$FAR/root.crt')"
    name='TLS, connections of each transaction'
    sql "ALTER USER MAPPING FOR CURRENT_USER SERVER tls OPTIONS (SET user 'bob', ADD password 'sesame')"
    for script in 'SELECT 1;' "$PIPELINE"; do
        try "SELECT bench.run(script => E'$script', clients => 3, transactions => 5, jobs => 2, reconnect => true,
            query_mode => 'extended', driver => 'wire', target => 'tls')"
        like "$OUT" 'actually processed: 15' "$name, with a password"
    done
    name='TLS, rows of a megabyte'
    try "SELECT bench.run(script => 'SELECT repeat(''x'', 1000000), :n', variables => '{\"n\": 1}', clients => 4,
        transactions => 20, jobs => 2, driver => 'wire', target => 'tls')"
    like "$OUT" 'actually processed: 80' "$name: come through"
    try "SELECT bench.run(script => 'SELECT length(''' || repeat('x', 500000) || ''')', clients => 4,
        transactions => 20, jobs => 2, query_mode => 'simple', driver => 'wire', target => 'tls')"
    like "$OUT" 'actually processed: 80' "$name: and statements of half of one go there"
    over 'TLS'
else
    skip 'there is no openssl' 'TLS'
fi

#
# Several hosts, and a standby
#
as_pg pg_basebackup -h "$NEAR" -U postgres -D "$FAR/standby" -R -c fast >/dev/null 2>&1
echo "unix_socket_directories = '$FAR'" | as_pg tee -a "$FAR/standby/postgresql.conf" >/dev/null
at_exit "as_pg pg_ctl -D '$FAR/standby' -m immediate -s stop 2>/dev/null"
as_pg pg_ctl -D "$FAR/standby" -l "$FAR/standby.log" -s -w -t 60 start
on_standby() { PGHOST=$FAR PGPORT=5432 "$@"; }
sql "CREATE SERVER replica FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER replica' \
    "CREATE SERVER pair FOREIGN DATA WRAPPER bench_wire
        OPTIONS (host '$FAR,$NEAR', target_session_attrs 'standby')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER pair'
name='a standby'
try "SELECT bench.run('pk_select', clients => 2, transactions => 50, driver => 'wire', target => 'replica')"
like "$OUT" 'actually processed: 100' "$name: is read from"
unlike "$OUT" 'WARNING' "$name: without a warning"
try "SELECT bench.run('pk_update', clients => 2, transactions => 50, driver => 'wire', target => 'replica')"
like "$OUT" 'WARNING:  01000: target "replica" is read-only' "$name: what cannot work is said before"
is "$(sql "SELECT sqlstate FROM bench.errors WHERE run_id = $(last_run)")" 25006 "$name: and counted"
name='a conflict with recovery'
on_standby sql "ALTER SYSTEM SET max_standby_streaming_delay = '50ms'" 'SELECT pg_reload_conf()' >/dev/null
RUN=$(sql "SELECT bench.start(script => E'BEGIN;\nSELECT count(*) FROM bench_data.pk;\n\\\\sleep 60 s\nEND;',
    secs => 60, clients => 3, driver => 'wire', target => 'replica')")
on_standby eventually 20 "SELECT count(*) = 3 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'
    AND state = 'idle in transaction'"
sql 'BEGIN; LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE; COMMIT'
eventually 20 "SELECT status = 'incomplete' FROM bench.runs WHERE run_id = $RUN"
status_is "$RUN" incomplete "$name: the sessions that are in its way end, and their clients"
is "$(sql "SELECT sqlstate, count, message FROM bench.errors WHERE run_id = $RUN")" \
    '08006|3|terminating connection due to conflict with recovery' "$name: their error"
name='target_session_attrs'
for attributes in standby primary read-write read-only prefer-standby any; do
    sql "ALTER SERVER pair OPTIONS (SET target_session_attrs '$attributes')"
    case $attributes in primary | read-write) in_recovery=f ;; *) in_recovery=t ;; esac
    try "SELECT bench.run(script => 'SELECT (1 / (pg_is_in_recovery() = ''$in_recovery'')::int)', transactions => 5,
        driver => 'wire', target => 'pair')"
    like "$OUT" 'actually processed: 5' "$name $attributes"
done
sql "ALTER SERVER pair OPTIONS (SET host '$NEAR', SET target_session_attrs 'standby')"
try "SELECT bench.run(script => 'SELECT 1', transactions => 5, driver => 'wire', target => 'pair')"
like "$OUT" 'ERROR:  08006: .*server is not in hot standby mode' "$name: no host is suitable"
on_standby over 'the standby'

#
# A pooler
#
PATH=$PATH:/usr/sbin
if command -v pgbouncer >/dev/null; then
    cat >"$FAR/pgbouncer.ini" <<INI
[databases]
postgres = host=$FAR port=$FAR_PORT user=postgres
[pgbouncer]
listen_addr =
listen_port = 6543
unix_socket_dir = $FAR
auth_type = any
pool_mode = transaction
default_pool_size = 3
logfile = $FAR/pgbouncer.log
pidfile = $FAR/pgbouncer.pid
INI
    as_pg pgbouncer -q -d "$FAR/pgbouncer.ini"
    at_exit "as_pg pkill -F '$FAR/pgbouncer.pid'"
    sql "CREATE SERVER pool FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR', port '6543')" \
        'CREATE USER MAPPING FOR CURRENT_USER SERVER pool'
    name='a pooler'
    PGHOST=$FAR PGPORT=6543 eventually 10 'SELECT true'
    try "SELECT bench.run('pk_select', clients => 6, transactions => 50,
        driver => 'wire', target => 'pool', query_mode => 'extended')"
    like "$OUT" 'ERROR:  0A000: target "pool" is a pooler, which does not set search_path' "$name: search_path"
    like "$OUT" 'HINT:  On its server: ALTER ROLE postgres SET search_path = bench_data' "$name: with a hint"
    on_far sql "ALTER ROLE postgres SET search_path = bench_data, public" \
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
            AND backend_type = 'client backend'" >/dev/null
    for mode in extended simple; do
        try "SELECT bench.run('pk_update', clients => 6, transactions => 50,
            driver => 'wire', target => 'pool', query_mode => '$mode')"
        like "$OUT" 'actually processed: 300' "$name: query_mode $mode"
    done
    for reconnect in true false; do
        try "SELECT bench.run(script => E'$PIPELINE', clients => 6, transactions => 5, reconnect => $reconnect,
            driver => 'wire', target => 'pool', query_mode => 'extended')"
        like "$OUT" 'actually processed: 30' "$name: pipelines, reconnect => $reconnect"
    done
    try "SELECT bench.run('pk_select', clients => 2, transactions => 5, query_mode => 'simple',
        settings => '{\"work_mem\": \"1MB\"}', driver => 'wire', target => 'pool')"
    like "$OUT" 'unsupported startup parameter: work_mem.*HINT:  The pooler does not set this parameter' \
        "$name: settings, with a hint"
    try "SELECT bench.run('pk_select', clients => 6, secs => 2, driver => 'wire', target => 'pool')"
    like "$OUT" 'actually processed: [1-9]|prepared statement' "$name: prepared statements"
    case $(pgbouncer --version | sed -n 's/^PgBouncer 1\.\([0-9]*\).*/\1/p') in
    1[0-9] | 20)
        like "$(sql "SELECT sqlstate FROM bench.errors WHERE run_id = $(last_run)")" '42P05|26000' "$name: they fail"
        like "$(sql "SELECT error ->> 'hint' FROM bench.runs WHERE run_id = $(last_run)")" "query_mode => 'extended'" \
            "$name: with a hint"
        like "$OUT" "query_mode => 'extended'" "$name: which the caller sees"
        ;;
    esac
    on_far sql 'ALTER ROLE postgres RESET search_path'
else
    skip 'pgbouncer is not installed' 'a pooler'
fi

#
# Failover
#
name='a failover'
as_pg pg_basebackup -h "$FAR" -p "$FAR_PORT" -U postgres -D "$FAR/second" -R -c fast >/dev/null 2>&1
printf '%s\n' "listen_addresses = ''" 'port = 5433' | as_pg tee -a "$FAR/second/postgresql.conf" >/dev/null
at_exit "as_pg pg_ctl -D '$FAR/second' -m immediate -s stop 2>/dev/null"
as_pg pg_ctl -D "$FAR/second" -l "$FAR/second.log" -s -w -t 60 start
on_second() { PGHOST=$FAR PGPORT=5433 "$@"; }
sql "CREATE SERVER pair_of_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host '$FAR,$FAR', port '$FAR_PORT,5433',
        dbname 'postgres', target_session_attrs 'primary', connect_timeout '2')" \
    'CREATE USER MAPPING FOR CURRENT_USER SERVER pair_of_far'
RUN=$(sql "SELECT bench.start('pk_update', clients => 4, secs => 120, driver => 'wire', target => 'pair_of_far',
    jobs => 2,
    on_disconnect => 'reconnect', sample_interval => 0.25)")
eventually 20 "SELECT count(*) >= 2 AND sum(transactions) > 0 FROM bench.samples WHERE run_id = $RUN"
updated() { on_second sql "SELECT coalesce(sum(n_tup_upd), 0) FROM pg_stat_user_tables"; }
is "$(updated)" 0 "$name: the primary does the work"
as_pg kill -KILL "$(on_far head -1 "$FAR/data/postmaster.pid")"
# Long enough for whole intervals of nothing.
sleep 1
as_pg pg_ctl -D "$FAR/second" -s -w -t 60 promote
on_second eventually 30 "SELECT coalesce(sum(n_tup_upd), 0) > 0 FROM pg_stat_user_tables"
tap_pass "$name: clients go on with the new primary"
sql "SELECT bench.stop($RUN)" >/dev/null
status_is "$RUN" canceled "$name"
is "$(sql "SELECT count(*) > 0 AND bool_and(sqlstate IN ('08006', '08007', '57P01', '57P02', '57P03', '08001'))
    FROM bench.errors
    WHERE run_id = $RUN")" t "$name: the errors are those of lost connections"
is "$(sql "SELECT count(*) > 0 FROM bench.samples WHERE run_id = $RUN AND transactions = 0")" t \
    "$name: the samples show that nothing was committed meanwhile"
is "$(sql "SELECT failed + unknown BETWEEN 1 AND 8 FROM bench.summary WHERE run_id = $RUN")" t \
    "$name: what was under way is failed or in doubt"
like "$(sql "SELECT finding FROM bench.findings($RUN) WHERE topic = 'outage'")" '^Nothing was committed' \
    "$name: a finding says how long"
is "$(sql "SELECT count(*) FROM bench.audit($RUN) WHERE NOT ok")" 0 "$name: the audit accuses nobody"
on_second eventually 10 "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench_ext'"
nothing_left "$name"

no_restart 'the server has not restarted'
log_is_clean
done_testing
