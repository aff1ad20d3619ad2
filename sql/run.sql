--
-- Runs: what is counted, recorded and kept. Numbers that vary are compared with each other, never shown.
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
SELECT bench.load('pk', 1000);
CREATE VIEW last_run AS SELECT * FROM bench.runs ORDER BY run_id DESC LIMIT 1;

-- So many transactions of so many clients
SELECT bench.run('pk_update', clients => 2, transactions => 100) AS run_id \gset
SELECT workload, clients, driver, results, status, transactions, failed, retried,
       secs > 0 AS secs, tps BETWEEN 0.999 * transactions / secs AND 1.001 * transactions / secs AS tps,
       tps_min <= tps_avg AND tps_avg <= tps_max AS tps_range, started_at <= clock_timestamp() AS started
FROM bench.summary WHERE run_id = :run_id;
SELECT count(*) > 0 AS samples, sum(transactions) AS transactions, sum(failed) AS failed, sum(retried) AS retried,
       sum(skipped) AS skipped, sum(late) AS late, bool_and(node = 0) AS node, bool_and(clients = 2) AS clients,
       bool_and(tps BETWEEN 0.999 * transactions / secs AND 1.001 * transactions / secs) AS tps,
       abs(max(elapsed) - sum(secs)) < 0.000001 AS elapsed
FROM bench.samples WHERE run_id = :run_id;
SELECT count(*) AS warmup_samples FROM bench.warmup_samples WHERE run_id = :run_id;
SELECT sum(count) AS transactions, bool_and(low_ms < high_ms) AS bounds, bool_and(count > 0) AS counts,
       bool_and(high_ms <= low_ms * 1.0101 OR high_ms - low_ms <= 0.000002) AS "within 1 %",
       min(node) = 0 AND max(node) = 0 AS node, min(script) = 0 AND max(script) = 0 AS script
FROM bench.latencies WHERE run_id = :run_id;
SELECT
    latency_p50_ms <= latency_p95_ms
        AND latency_p95_ms <= latency_p99_ms
        AND latency_p99_ms <= latency_p999_ms AS monotone,
    latency_p999_ms <= latency_max_ms * 1.01 AS below_max,
    latency_avg_ms BETWEEN 0 AND latency_max_ms AS average,
    latency_stddev_ms >= 0 AS stddev,
    abs(bench.percentile(run_id, 0.5) / latency_p50_ms - 1) < 1e-9 AS p50,
    abs(bench.percentile(run_id, 0.99) / latency_p99_ms - 1) < 1e-9 AS p99
FROM bench.summary
WHERE run_id = :run_id;
SELECT bool_and(a <= b) AS monotone
FROM (SELECT bench.percentile(:run_id, p) AS a, bench.percentile(:run_id, p + 0.01) AS b
      FROM (SELECT i / 100.0 AS p FROM generate_series(0, 99) AS i) AS s) AS t;
SELECT
    counter,
    CASE WHEN counter <> 'xact_commit' THEN harness END AS harness,
    ok,
    difference = harness - server AS difference,
    reason
FROM bench.audit(:run_id)
WHERE counter IN ('idx_scan', 'n_tup_del', 'n_tup_ins', 'n_tup_upd', 'xact_commit')
ORDER BY counter;
SELECT counter AS judged_and_wrong_or_without_reason FROM bench.audit(:run_id)
WHERE ok = false OR coalesce(reason, '') = '' OR difference IS DISTINCT FROM harness - server;
SELECT
    workload,
    r.fixture,
    r.script = w.script AS script,
    clients,
    secs,
    transactions,
    warmup,
    max_tries,
    seed IS NOT NULL AS seed,
    driver,
    query_mode,
    results,
    nodes,
    variables,
    settings,
    sample_interval,
    tags,
    status,
    started_at < finished_at AS times,
    role = current_user AS role,
    error,
    horizon_held,
    server_version = current_setting('server_version') AS server_version,
    extension_version = (SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext') AS extension_version,
    environment -> 'unsupported_settings' AS unsupported_settings,
    environment ?&
        '{version,server_settings,clock_read_ns,fsync_us,data_checksums,processors,xids_used,xid_age}' AS environment
FROM bench.runs r JOIN bench.workloads w ON w.name = r.workload
WHERE run_id = :run_id \gx
SELECT * FROM bench.errors WHERE run_id = :run_id;
SELECT count(*) AS under_way FROM bench.progress;
SELECT count(*) FILTER (WHERE crt_time > loaded_at AT TIME ZONE 'UTC' - interval '1 day') AS rows
FROM bench_data.pk, bench.fixtures;

-- Every built-in workload does what it says
SELECT bench.load('log'), bench.load('wide');
SELECT bench.run('pk_select', 2, transactions => 10) IS NOT NULL AS pk_select,
       bench.run('pk_insert', 2, transactions => 10) IS NOT NULL AS pk_insert,
       bench.run('insert_single', 2, transactions => 10) IS NOT NULL AS insert_single,
       bench.run('insert_batch', 2, transactions => 10) IS NOT NULL AS insert_batch;
SELECT workload, transactions, status FROM bench.summary WHERE run_id > :run_id ORDER BY run_id;
SELECT a.counter, u.workload, a.harness, a.ok
FROM bench.summary u, bench.audit(u.run_id) a
WHERE u.run_id > :run_id AND a.counter IN ('idx_scan', 'n_tup_del', 'n_tup_ins', 'n_tup_upd')
ORDER BY u.run_id, a.counter;
SELECT (SELECT count(*) FROM bench_data.log) AS log, (SELECT count(DISTINCT id) FROM bench_data.log) AS ids,
       (SELECT count(*) FROM bench_data.wide) AS wide, (SELECT count(DISTINCT id) FROM bench_data.wide) AS wide_ids;

-- The same seed, the same sequence for each client
CREATE TABLE ids (n bigserial, run text, client int, seed bigint, id bigint);
SELECT bench.create_workload('ids', $$\set id random(1, 1000000000)
INSERT INTO public.ids (run, client, seed, id) VALUES (:run, :client_id, :random_seed, :id);$$);
SELECT
    bench.run('ids', 2, transactions => 50, seed => 42, variables => '{"run": "a"}') IS NOT NULL AS a,
    bench.run('ids', 2, transactions => 50, seed => 42, variables => '{"run": "b"}') IS NOT NULL AS b,
    bench.run('ids', 3, transactions => 20, seed => 42, variables => '{"run": "c"}',
        results => 'discard') IS NOT NULL AS c,
    bench.run('ids', 2, transactions => 50, seed => 43, variables => '{"run": "d"}') IS NOT NULL AS d,
    bench.run('ids', 2, transactions => 50, seed => -9223372036854775808, variables => '{"run": "e"}') IS NOT NULL AS e,
    bench.run('ids', 2, transactions => 50, variables => '{"run": "f"}') IS NOT NULL AS f,
    bench.run('ids', 2, transactions => 50, variables => '{"run": "g"}') IS NOT NULL AS g;
SELECT run, count(*), count(DISTINCT client) AS clients, min(seed) = max(seed) AS one_seed,
       CASE WHEN run < 'f' THEN min(seed) END AS seed FROM ids GROUP BY run ORDER BY run;
CREATE VIEW sequences AS
SELECT run, client, (array_agg(id ORDER BY n))[1:20] AS first, array_agg(id ORDER BY n) AS ids
FROM ids
GROUP BY run, client;
SELECT a.client, a.ids = b.ids AS same_seed, a.first = c.first AS more_clients, a.ids = d.ids AS other_seed,
       a.ids = e.ids AS least_seed, f.ids = g.ids AS random_seeds
FROM sequences a JOIN sequences b USING (client) JOIN sequences c USING (client) JOIN sequences d USING (client)
JOIN sequences e USING (client) JOIN sequences f USING (client) JOIN sequences g USING (client)
WHERE a.run = 'a' AND b.run = 'b' AND c.run = 'c' AND d.run = 'd' AND e.run = 'e' AND f.run = 'f' AND g.run = 'g'
ORDER BY client;
SELECT run, count(DISTINCT ids) AS sequences FROM sequences GROUP BY run ORDER BY run;
SELECT r.seed = i.seed AS recorded
FROM bench.runs r JOIN (SELECT DISTINCT run, seed FROM ids) i ON i.run = r.variables ->> 'run'
ORDER BY r.run_id;

-- Ids over the fixture's whole range, each about as often
SELECT bench.load('pk', 10);
SELECT bench.create_workload('range', $$\set id random(1, :rows)
INSERT INTO public.ids (run, id) VALUES ('range', :id);$$, 'pk');
SELECT bench.run('range', 2, transactions => 1000, seed => 1) IS NOT NULL AS ran;
SELECT id, count(*) BETWEEN 140 AND 260 AS about_200 FROM ids WHERE run = 'range' GROUP BY id ORDER BY id;

-- So many seconds: intervals, and a short rest joined to the one before
SELECT bench.run('pk_select', secs => 0.5, sample_interval => 0.1) AS whole \gset
SELECT bench.run('pk_select', secs => 0.54, sample_interval => 0.1) AS short \gset
SELECT bench.run('pk_select', secs => 0.36, sample_interval => 0.1, warmup => 0.24) AS warm \gset
SELECT
    array_position(ARRAY[:whole, :short, :warm], run_id) AS run,
    round(elapsed::numeric, 6) AS elapsed,
    round(secs::numeric, 6) AS secs,
    transactions > 0 AS transactions,
    latency_p50_ms <= latency_p95_ms AND latency_p95_ms <= latency_p99_ms AS monotone
FROM bench.samples
WHERE run_id IN (:whole, :short, :warm)
ORDER BY run_id, samples.elapsed;
SELECT
    array_position(ARRAY[:whole, :short, :warm], run_id) AS run,
    round(elapsed::numeric, 6) AS elapsed,
    round(secs::numeric, 6) AS secs,
    transactions > 0 AS transactions
FROM bench.warmup_samples
WHERE run_id IN (:whole, :short, :warm)
ORDER BY run_id, warmup_samples.elapsed;
SELECT array_position(ARRAY[:whole, :short, :warm], run_id) AS run, round(u.secs::numeric, 6) AS secs, status,
       transactions = (SELECT sum(transactions) FROM bench.samples s WHERE s.run_id = u.run_id) AS samples,
       transactions + (SELECT harness FROM bench.audits a WHERE a.run_id = u.run_id AND counter = 'committed: drain')
           = (SELECT sum(count) FROM bench.latencies l WHERE l.run_id = u.run_id) AS histogram,
       (SELECT bool_and(ok IS NOT FALSE) FROM bench.audit(run_id)) AS audit
FROM bench.summary u WHERE run_id IN (:whole, :short, :warm) ORDER BY run_id;

-- A warm-up's transactions are beyond those asked for
SELECT bench.run('pk_update', 2, transactions => 50, warmup => 0.2, sample_interval => 0.1) AS run_id \gset
SELECT transactions FROM bench.summary WHERE run_id = :run_id;
SELECT sum(transactions) AS measured FROM bench.samples WHERE run_id = :run_id;
SELECT
    sum(transactions) > 0 AS warm,
    sum(transactions) + 100 <= (SELECT harness FROM bench.audit(:run_id) WHERE counter = 'n_tup_upd') AS audited,
    round(sum(secs)::numeric, 6) AS secs
FROM bench.warmup_samples
WHERE run_id = :run_id;
SELECT ok, difference FROM bench.audit(:run_id) WHERE counter = 'n_tup_upd';

-- What was asked for is kept with the run
CREATE TABLE seen (client int, work_mem text, enable_sort text, timezone text, application_name text, x text, y int,
    z float8, b bool, n text);
SELECT bench.create_workload('seen', $$INSERT INTO public.seen
SELECT :client_id, current_setting('work_mem'), current_setting('enable_sort'),
 current_setting('TimeZone'), current_setting('application_name'), :x, :y, :z, :b, :n;$$);
SELECT bench.run('seen', 2, transactions => 1,
    settings => '{"work_mem": "7MB", "enable_sort": false, "timezone": "Asia/Tokyo"}',
    variables => '{"x": "text with '':colon''", "y": -5, "z": 0.25, "b": true, "n": null}',
    tags => '{"host": "a", "nightly": [1, {"two": null}]}', results => 'discard', max_tries => 3,
    sample_interval => 0.25) AS run_id \gset
SELECT * FROM seen ORDER BY client;
SELECT settings, variables, tags, results, max_tries, sample_interval, clients, transactions
FROM bench.runs
WHERE run_id = :run_id;
TRUNCATE seen;
SELECT bench.run('seen', transactions => 1, settings => '{"work_mem": 64, "application_name": "mine"}',
                 variables => '{"x": 1, "y": 2, "z": 3, "b": false, "n": 4}') AS run_id \gset
SELECT * FROM seen;
-- the script as run is kept when the workload is not
SELECT bench.drop_workload('seen');
SELECT script LIKE 'INSERT INTO public.seen%' AS script FROM bench.runs WHERE run_id = :run_id;

-- A client is a new session: what the caller has SET is named, and does not apply
SET client_min_messages = notice;
SELECT bench.create_workload('setting', $$
    INSERT INTO public.seen (work_mem, enable_sort) SELECT current_setting('work_mem'), current_setting('enable_sort');
$$);
TRUNCATE seen;
SELECT bench.start('setting', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id);
SET work_mem = '9MB';
SET enable_sort = off;
SELECT bench.start('setting', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id);
SELECT bench.start('setting', transactions => 1, settings => '{"WORK_MEM": "9MB"}') AS run_id \gset
SELECT bench.wait(:run_id);
SELECT bench.start('setting', transactions => 1,
    settings => '{"enable_sort": "off", "work_mem": "9MB"}') AS run_id \gset
SELECT bench.wait(:run_id);
RESET enable_sort;
SET work_mem = '4MB';
SELECT bench.start('setting', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id);
RESET work_mem;
BEGIN;
SET LOCAL search_path = pg_catalog;
SELECT bench.start('setting', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id);
COMMIT;
SELECT work_mem, enable_sort, count(*) FROM seen GROUP BY 1, 2 ORDER BY 1, 2;

-- A fixture that is missing is loaded first
SELECT bench.unload('log');
SELECT bench.start('pk_insert', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id);
SELECT name, rows FROM bench.fixtures WHERE name = 'log';
SELECT bench.start('pk_insert', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id);
SELECT count(*) FROM bench_data.log;
-- also when its table was dropped by hand
DROP TABLE bench_data.log;
SELECT bench.start('pk_insert', transactions => 1) AS run_id \gset
SELECT bench.wait(:run_id);
SELECT count(*) FROM bench_data.log;
SET client_min_messages = warning;

-- A script of several statements is one transaction
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO account VALUES (1, 0), (2, 0);
SELECT bench.create_workload('transfer', $$\set amount random(1, 5)
BEGIN;
UPDATE public.account SET balance = balance - :amount WHERE id = 1;
UPDATE public.account SET balance = balance + :amount WHERE id = 2;
END;$$);
SELECT bench.run('transfer', 2, transactions => 50) AS run_id \gset
SELECT transactions, failed, status FROM bench.summary WHERE run_id = :run_id;
SELECT sum(balance) AS balance, bool_and(balance <> 0) AS moved FROM account;
SELECT bench.create_workload('transfer', E'BEGIN;\nUPDATE public.account SET balance = 1000;\nROLLBACK;');
SELECT bench.run('transfer', 2, transactions => 50) AS run_id \gset
SELECT transactions, failed, status FROM bench.summary WHERE run_id = :run_id;
SELECT sum(balance) AS balance, bool_and(balance <> 1000) AS rolled_back FROM account;
-- without a block each statement commits by itself
SELECT bench.create_workload('transfer', E'UPDATE public.account SET balance = 7 WHERE id = 1;\nSELECT 1 / 0;');
SET client_min_messages = error;
SELECT bench.run('transfer', transactions => 50) AS run_id \gset
SELECT balance FROM account WHERE id = 1;

-- A statement that fails ends its client, rolls its transaction back and is counted
SELECT bench.create_workload('divide', $$BEGIN;
UPDATE public.account SET balance = 13 WHERE id = 1;
SELECT 1 / :client_id;
ROLLBACK;$$);
SELECT bench.run('divide', clients => 3, transactions => 20) AS run_id \gset
SELECT status, transactions, failed, aborted, retried FROM bench.summary WHERE run_id = :run_id;
SELECT sqlstate, message, count, node, first_at BETWEEN r.started_at AND r.finished_at AS first_at
FROM bench.errors e JOIN bench.runs r USING (run_id) WHERE run_id = :run_id;
SELECT error FROM last_run;
SELECT balance FROM account WHERE id = 1;
SELECT counter, ok, reason
FROM bench.audit(:run_id)
WHERE counter IN ('idx_scan', 'n_tup_del', 'n_tup_ins', 'n_tup_upd')
ORDER BY counter;
-- all of them
SELECT bench.create_workload('divide', E'BEGIN;\nSELECT 1 / 0;\nEND;');
SELECT bench.run('divide', clients => 3, transactions => 20) AS run_id \gset
SELECT status, transactions, failed, aborted, latency_p50_ms FROM bench.summary WHERE run_id = :run_id;
SELECT sqlstate, message, count FROM bench.errors WHERE run_id = :run_id;
SELECT error FROM last_run;
SELECT bench.percentile(:run_id, 0.5);
-- an expression that fails, too
SELECT bench.create_workload('divide', E'\\set x 1 / (:client_id - 1)\nSELECT :x::int;');
SELECT bench.run('divide', clients => 2, transactions => 20) AS run_id \gset
SELECT status, transactions, failed, aborted FROM bench.summary WHERE run_id = :run_id;
SELECT sqlstate, message, count FROM bench.errors WHERE run_id = :run_id;
-- what keeps it from starting leaves a run that failed
SELECT bench.create_workload('broken', 'SELECT * FROM public.not_there;');
SELECT bench.run('broken', transactions => 20);
SELECT status, started_at, finished_at IS NOT NULL AS finished, error FROM last_run;
SELECT transactions, failed, status FROM bench.summary ORDER BY run_id DESC LIMIT 1;
-- a table that only the caller's transaction sees
BEGIN;
CREATE TABLE not_there ();
SELECT bench.run('broken', transactions => 1);
ROLLBACK;

-- Serialization failures: counted, and tried again if asked for. A snapshot is taken, then time passes, so that
-- two clients must get into each other's way.
UPDATE account SET balance = 0;
SELECT bench.create_workload('contended', $$BEGIN;
SELECT pg_sleep(0.001);
UPDATE public.account SET balance = balance + 1 WHERE id = 1;
END;$$);
SELECT bench.run('contended', 2, transactions => 30,
    settings => '{"default_transaction_isolation": "repeatable read"}') AS once \gset
SELECT status, transactions + failed AS attempts, failed > 0 AS failed, retried,
       transactions = (SELECT balance FROM account WHERE id = 1) AS committed,
       failed = (SELECT count FROM bench.errors e WHERE e.run_id = :once AND sqlstate = '40001') AS counted,
       transactions = (SELECT sum(count) FROM bench.latencies l WHERE l.run_id = :once) AS histogram
FROM bench.summary WHERE run_id = :once;
SELECT sqlstate, message FROM bench.errors WHERE run_id = :once;
UPDATE account SET balance = 0;
SELECT bench.run('contended', 2, transactions => 30, max_tries => 1000,
    settings => '{"default_transaction_isolation": "repeatable read"}') AS again \gset
SELECT
    status,
    transactions,
    failed,
    retried BETWEEN 1 AND 60 AS retried,
    (SELECT balance FROM account WHERE id = 1) AS committed,
    retried <= (SELECT count FROM bench.errors e WHERE e.run_id = :again AND sqlstate = '40001') AS counted
FROM bench.summary
WHERE run_id = :again;
SELECT error FROM last_run;
-- a try again has the same variables
TRUNCATE ids;
SELECT bench.create_workload('contended', $$\set id random(1, 1000000000)
BEGIN;
SELECT pg_sleep(0.001);
UPDATE public.account SET balance = balance + 1 WHERE id = 1;
INSERT INTO public.ids (client, id) VALUES (:client_id, :id);
END;$$);
SELECT bench.run('contended', 2, transactions => 20, max_tries => 1000, seed => 7,
    settings => '{"default_transaction_isolation": "repeatable read"}') IS NOT NULL AS ran;
UPDATE ids SET run = 'contended';
SELECT bench.create_workload('alone', $$\set id random(1, 1000000000)
INSERT INTO public.ids (client, id) VALUES (:client_id, :id);$$);
SELECT bench.run('alone', 2, transactions => 20, seed => 7) IS NOT NULL AS ran;
SELECT a.client, a.ids = b.ids AS same FROM sequences a JOIN sequences b USING (client)
WHERE a.run = 'contended' AND b.run IS NULL ORDER BY client;
SET client_min_messages = warning;

-- In the caller's transaction: what the run has written stays, whatever the caller does
BEGIN;
SELECT bench.run('alone', transactions => 5) AS run_id \gset
SELECT transactions, status FROM bench.summary WHERE run_id = :run_id;
ROLLBACK;
SELECT transactions, status FROM bench.summary WHERE run_id = :run_id;

-- In one statement with its results
SELECT bench.percentile(bench.run('alone', transactions => 5), 0.5) > 0 AS percentile;

-- start, wait, stop
SELECT bench.create_workload('slow', 'SELECT pg_sleep(0.005);');
SELECT bench.start('slow', clients => 2, secs => 60, sample_interval => 0.1) AS run_id \gset
SELECT bench.wait(:run_id, timeout => 0) IN ('starting', 'running') AS under_way;
SELECT bench.wait(:run_id, timeout => 0.5) AS status;
SELECT status, finished_at IS NULL AS unfinished FROM bench.runs WHERE run_id = :run_id;
SELECT status, transactions > 0 AS transactions, latency_p99_ms FROM bench.summary WHERE run_id = :run_id;
-- However long it takes to begin: two samples within ten seconds
DO $$ BEGIN
    FOR i IN 1 .. 200 LOOP
        EXIT WHEN (SELECT count(*) >= 2 FROM bench.samples WHERE run_id = (SELECT max(run_id) FROM bench.runs));
        PERFORM pg_sleep(0.05);
    END LOOP;
END $$;
SELECT count(*) >= 2 AND count(*) <= max(elapsed) / 0.1 + 1 AS samples FROM bench.samples WHERE run_id = :run_id;
SELECT phase, elapsed BETWEEN 0.2 AND 10 AS elapsed, remaining BETWEEN 49 AND 60 AS remaining, tps > 0 AS tps,
       latency_avg_ms >= 5 AS latency, transactions > 0 AS transactions, clients
FROM bench.progress WHERE run_id = :run_id;
SELECT bench.stop(:run_id);
SELECT bench.stop(:run_id);
SELECT bench.wait(:run_id), bench.wait(:run_id, 0);
SELECT status, error FROM bench.runs WHERE run_id = :run_id;
SELECT
    transactions > 0
        AND transactions = (SELECT sum(transactions) FROM bench.samples WHERE run_id = :run_id)
        AND transactions + (SELECT harness FROM bench.audits WHERE run_id = :run_id AND counter = 'committed: drain')
            = (SELECT sum(count) FROM bench.latencies WHERE run_id = :run_id) AS kept,
    latency_p50_ms >= 5 AS latency
FROM bench.summary
WHERE run_id = :run_id;
SELECT count(*) AS under_way FROM bench.progress;
SELECT bench.wait(bench.start('alone', transactions => 10)) AS status;

-- Canceling the caller stops the run
SET client_min_messages = error;
SET statement_timeout = '2s';
SELECT bench.run('slow', clients => 2, secs => 60, sample_interval => 0.1);
RESET statement_timeout;
SELECT bench.wait(max(run_id)) AS status FROM bench.runs;
SELECT error FROM last_run;
SELECT transactions > 0 AS kept FROM bench.summary ORDER BY run_id DESC LIMIT 1;
SELECT bench.run('alone', transactions => 1) IS NOT NULL AS goes_on;
-- canceling a wait does not
SELECT bench.start('slow', secs => 60) AS run_id \gset
SET statement_timeout = '100ms';
SELECT bench.wait(:run_id);
RESET statement_timeout;
SELECT status FROM bench.runs WHERE run_id = :run_id;
SELECT bench.stop(:run_id);
SET client_min_messages = warning;

-- Two at once
SELECT bench.start('alone', transactions => 20) AS one, bench.start('pk_select', transactions => 20) AS two \gset
SELECT bench.wait(:one), bench.wait(:two);
SELECT transactions FROM bench.summary WHERE run_id IN (:one, :two);

SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE NOT builtin ORDER BY name) AS w;
DROP TABLE account, seen, ids CASCADE;
DROP VIEW last_run;
DROP SCHEMA bench_data;
