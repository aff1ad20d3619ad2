-- What the harness counts is what the server counts, and it is counted once.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
-- What autovacuum commits would be counted too.
ALTER SYSTEM SET autovacuum = off;
SELECT pg_reload_conf();
SELECT bench.load('pk', 1000), bench.load('log'), bench.load('wide');
SELECT coalesce(max(run_id), 0) AS first FROM bench.runs \gset
\o

-- Judged counters that are wrong, and any without a reason.
CREATE FUNCTION pg_temp.wrong(run bigint) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s: harness %s, server %s (%s)', counter, harness, server, reason)
    FROM bench.audit(run)
    WHERE ok = false OR coalesce(reason, '') = '' OR difference IS DISTINCT FROM harness - server
$$;
-- Names of the counters that were judged, and right.
CREATE FUNCTION pg_temp.judged(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(counter, ' ' ORDER BY counter), 'none')
    FROM bench.audit(run)
    WHERE ok AND counter IN ('idx_scan', 'n_tup_del', 'n_tup_ins', 'n_tup_upd', 'pg_stat_statements.calls')
$$;
CREATE FUNCTION pg_temp.harness(run bigint, name text) RETURNS bigint LANGUAGE sql AS $$
    SELECT harness FROM bench.audit(run) WHERE counter = name
$$;
CREATE FUNCTION pg_temp.last_run() RETURNS bigint LANGUAGE sql AS 'SELECT max(run_id) FROM bench.runs';
-- The server's own numbers, read without the extension.
CREATE FUNCTION pg_temp.calls(pattern text) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query LIKE pattern
$$;

--
-- The built-in workloads with one client and with several
--
\o /dev/null
SELECT format($$
    SELECT bench.run(%L, %s, secs => 0.2, warmup => 0.15, sample_interval => 0.1, results => %L, tags => %L)
$$, workload, clients, results, '{"test": "matrix"}')
FROM unnest('{pk_select,pk_update,pk_insert,insert_single,insert_batch}'::text[]) AS workload,
    (VALUES (1, 'serialize'), (6, 'discard')) AS v (clients, results) \gexec
\o
SELECT is(count(*), 10::bigint, 'ten runs')
FROM bench.runs
WHERE tags = '{"test": "matrix"}' AND run_id > :first AND status = 'completed';
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', run_id),
        format('%s, %s clients: the audit finds nothing', workload, clients)),
    is(pg_temp.judged(run_id), 'idx_scan n_tup_del n_tup_ins n_tup_upd pg_stat_statements.calls',
        format('%s, %s clients: every counter that can be judged is', workload, clients))
FROM bench.runs
WHERE tags = '{"test": "matrix"}' AND run_id > :first
ORDER BY run_id;
SELECT
    ok(u.transactions > 0
        AND u.transactions = (SELECT sum(s.transactions) FROM bench.samples s WHERE s.run_id = u.run_id)
        AND u.transactions + pg_temp.harness(u.run_id, 'committed: drain')
            = (SELECT sum(l.count) FROM bench.latencies l WHERE l.run_id = u.run_id),
        format('%s, %s clients: samples and summary have as many transactions, the histogram those drained too',
            u.workload, u.clients)),
    is(round((SELECT sum(s.secs) FROM bench.samples s WHERE s.run_id = u.run_id)::numeric, 6), 0.200000,
        'the samples last as long as the run'),
    is(round((SELECT sum(s.secs) FROM bench.warmup_samples s WHERE s.run_id = u.run_id)::numeric, 6), 0.150000,
        'those of the warm-up as long as the warm-up'),
    cmp_ok(pg_temp.harness(u.run_id, 'pg_stat_statements.calls'), '>=',
        (u.transactions + (SELECT sum(w.transactions) FROM bench.warmup_samples w WHERE w.run_id = u.run_id))::bigint,
        'and all phases have no fewer executions than the samples'),
    ok(u.failed = 0 AND u.retried = 0, 'no failures, no retries')
FROM bench.summary u JOIN bench.runs r USING (run_id)
WHERE r.tags = '{"test": "matrix"}' AND r.run_id > :first
ORDER BY run_id;
-- Bucket k of an interval's histogram holds 10^(k/10) to 10^((k+1)/10) µs; one at a bound may be in the neighbour,
-- 0.8 % away.
SELECT
    ok(bool_and(s.transactions = coalesce(h.counted, 0)), 'the histogram of each interval has its transactions'),
    ok(bool_and(s.latency_max_ms BETWEEN low_ms / 1.01 AND high_ms * 1.01),
        'and its greatest latency in the last bucket'),
    cmp_ok(count(*) FILTER (WHERE buckets > 1), '>', 0::bigint, 'and several buckets')
FROM (TABLE bench.samples UNION ALL TABLE bench.warmup_samples) AS s
JOIN bench.runs r USING (run_id),
    LATERAL (
        SELECT sum(value::bigint) AS counted, count(*) AS buckets, 10 ^ (max(key::float8) / 10) / 1000 AS low_ms,
            10 ^ ((max(key::float8) + 1) / 10) / 1000 AS high_ms
        FROM jsonb_each_text(s.latency_histogram)
    ) AS h
WHERE r.tags = '{"test": "matrix"}' AND r.run_id > :first;
SELECT is((
    SELECT sum(pg_temp.harness(run_id, 'n_tup_ins'))
    FROM bench.runs
    WHERE workload = 'pk_insert' AND tags = '{"test": "matrix"}' AND run_id > :first
), count(*)::numeric, 'rows of log are as many as the audits say')
FROM bench_data.log;
SELECT is((
    SELECT sum(pg_temp.harness(run_id, 'n_tup_ins'))
    FROM bench.runs
    WHERE workload LIKE 'insert%' AND tags = '{"test": "matrix"}' AND run_id > :first
), count(*)::numeric, 'and of wide, a batch being 400')
FROM bench_data.wide;

--
-- Against the server's own views, read here
--
-- This session reports its own transactions at most once a second: those above would be counted in between.
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT pg_temp.calls('UPDATE pk SET crt_time%') AS calls, s.n_tup_upd, s.idx_scan, d.xact_commit, d.xact_rollback
FROM pg_stat_user_tables s, pg_stat_database d
WHERE s.relid = 'bench_data.pk'::regclass AND d.datname = current_database() \gset before_
SELECT bench.run('pk_update', 3, transactions => 100) AS run_id \gset
SELECT pg_stat_clear_snapshot() \g /dev/null
SELECT
    is(pg_temp.calls('UPDATE pk SET crt_time%') - :before_calls, 300::bigint, 'pg_stat_statements has each UPDATE'),
    is(s.n_tup_upd - :before_n_tup_upd, 300::bigint, 'pg_stat_user_tables has each row'),
    is(s.idx_scan - :before_idx_scan, 300::bigint, 'and each index scan'),
    cmp_ok(d.xact_commit - :before_xact_commit, '>=', 300::bigint, 'pg_stat_database has the commits'),
    cmp_ok(d.xact_commit - :before_xact_commit, '<=', 360::bigint, 'and a few of the set-up'),
    ok(d.xact_rollback - :before_xact_rollback < 10, 'and no rollbacks to speak of')
FROM pg_stat_user_tables s, pg_stat_database d
WHERE s.relid = 'bench_data.pk'::regclass AND d.datname = current_database();
SELECT
    is(pg_temp.harness(:run_id, 'xact_commit'), 300::bigint, 'the harness has 300 commits'),
    ok((SELECT ok IS NULL AND server >= 300 FROM bench.audit(:run_id) WHERE counter = 'xact_commit'),
        'xact_commit is reported and not judged');
SELECT is(transactions, 300::bigint, 'no transaction is counted twice') FROM bench.summary WHERE run_id = :run_id;

-- A script of several statements: each is counted, the transaction once
SELECT bench.create_workload('acc_several', $$\set id random(1, :rows)
BEGIN;
UPDATE pk SET info = 'several' WHERE id = :id;
SELECT info FROM pk WHERE id = :id;
DELETE FROM pk WHERE id = -1;
END;$$, 'pk') \g /dev/null
SELECT pg_temp.calls('UPDATE pk SET info = $%several%') AS calls \gset before_
SELECT bench.run('acc_several', 2, transactions => 50) AS run_id \gset
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'several statements: the audit finds nothing'),
    is(pg_temp.judged(:run_id), 'idx_scan n_tup_del n_tup_ins n_tup_upd pg_stat_statements.calls', 'and judges all'),
    is(pg_temp.harness(:run_id, 'n_tup_upd'), 100::bigint, '100 updates'),
    is(pg_temp.harness(:run_id, 'n_tup_del'), 0::bigint, 'a DELETE of nothing deletes nothing'),
    is(pg_temp.harness(:run_id, 'idx_scan'), 300::bigint, '300 index scans'),
    is(pg_temp.harness(:run_id, 'xact_commit'), 100::bigint, '100 commits'),
    is((SELECT transactions FROM bench.summary WHERE run_id = :run_id), 100::bigint, '100 transactions');

--
-- Transactions that end after the window are drained: not sampled, and among the latencies
--
SELECT bench.create_workload('acc_slow', 'SELECT pg_sleep(0.4), ''acc_slow'';') \g /dev/null
SELECT bench.run('acc_slow', 2, secs => 0.6, sample_interval => 0.3) AS run_id \gset
SELECT is(transactions, 2::bigint, 'one transaction of each client ended in the window')
FROM bench.summary
WHERE run_id = :run_id;
SELECT
    is((SELECT sum(transactions) FROM bench.samples WHERE run_id = :run_id), 2::numeric, 'the samples have these'),
    is((SELECT sum(count) FROM bench.latencies WHERE run_id = :run_id), 4::numeric, 'the histogram has all four'),
    is((SELECT transactions FROM bench.scripts WHERE run_id = :run_id), 2::bigint, 'the script has two'),
    is(round((SELECT max(elapsed) FROM bench.samples WHERE run_id = :run_id)::numeric, 6), 0.600000,
        'no sample is later than the window'),
    is((SELECT array_agg(transactions ORDER BY elapsed) FROM bench.samples WHERE run_id = :run_id), '{0,2}'::bigint[],
        'each is where it ended'),
    is(pg_temp.harness(:run_id, 'xact_commit'), 4::bigint, 'the audit has all four'),
    is(pg_temp.harness(:run_id, 'committed: measured'), 2::bigint, 'two in the measured time'),
    is(pg_temp.harness(:run_id, 'committed: drain'), 2::bigint, 'and two after it'),
    is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'as pg_stat_statements has'),
    is((SELECT status FROM bench.runs WHERE run_id = :run_id), 'completed', 'and the run is complete');

-- Clients that are locked out until the end: their latencies are all that shows it
SELECT bench.create_workload('acc_locked_out', 'SELECT pg_sleep(CASE WHEN :client_id = 0 THEN 0.01 ELSE 1.5 END);')
    \g /dev/null
SELECT bench.run('acc_locked_out@9,acc_slow@1', 3, secs => 0.5, seed => 7) AS run_id \gset
SELECT
    ok(s.latency_max_ms >= 1500, 'the maximum is that of a transaction that outlasted the run'),
    ok(s.latency_p50_ms BETWEEN 10 AND 1500, 'the median is one of those that ended in it'),
    ok(s.latency_avg_ms BETWEEN s.latency_p50_ms AND s.latency_max_ms, 'the mean is of both'),
    is(bench.percentile(:run_id, 1) >= 1480, true, 'the histogram has it'),
    is(n.latency_max_ms, s.latency_max_ms, 'its node has the same maximum'),
    is((SELECT max(latency_max_ms) FROM bench.scripts WHERE run_id = :run_id), s.latency_max_ms, 'and its script'),
    ok((SELECT max(latency_max_ms) FROM bench.samples WHERE run_id = :run_id) < 1500, 'no sample has'),
    is(s.transactions, (SELECT sum(transactions) FROM bench.samples WHERE run_id = :run_id)::bigint,
        'throughput is what ended in the run'),
    is((SELECT sum(count) FROM bench.latencies WHERE run_id = :run_id),
        (s.transactions + pg_temp.harness(:run_id, 'committed: drain'))::numeric, 'the audit counts the others')
FROM bench.summary s JOIN bench.nodes n USING (run_id) WHERE s.run_id = :run_id;
SELECT bench.run('acc_slow', 2, secs => 0.2) AS run_id \gset
SELECT
    is(transactions, 0::bigint, 'a run that is shorter than a transaction has no throughput'),
    ok(latency_p50_ms >= 396 AND latency_max_ms >= 400 AND latency_avg_ms >= 400, 'and has latencies')
FROM bench.summary WHERE run_id = :run_id;

--
-- Failures and retries
--
SELECT bench.create_workload('acc_fail', $$\set id random(1, :rows)
BEGIN;
UPDATE pk SET info = 'fail' WHERE id = :id;
SELECT 1 / (:client_id::int % 2);
END;$$, 'pk') \g /dev/null
SELECT bench.run('acc_fail', 4, transactions => 25) AS run_id \gset
SELECT
    is(status, 'incomplete', 'clients that failed make a run incomplete'),
    is(transactions, 50::bigint, 'the others went on to their end'),
    is(aborted, 2::bigint, 'each client that an error ended is counted once'),
    is((SELECT sum(aborted) FROM bench.samples WHERE run_id = :run_id), 2::numeric, 'and is in a sample'),
    is(failed, 0::bigint, 'which is no failed transaction, as in pgbench'),
    is((SELECT sum(failed) FROM bench.samples WHERE run_id = :run_id), 0::numeric, 'nor is it one in a sample'),
    is((SELECT aborted FROM bench.nodes WHERE run_id = :run_id), 2::bigint, 'its node has the same count')
FROM bench.summary
WHERE run_id = :run_id;
SELECT
    is((SELECT sum(count) FROM bench.errors WHERE run_id = :run_id), 2::numeric, 'and in bench.errors'),
    is((SELECT count(*) FROM bench_data.pk WHERE info = 'fail') > 0, true, 'the others'' updates stay'),
    is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'rolled back work is not judged'),
    is(pg_temp.judged(:run_id), 'none', 'none of it'),
    ok((SELECT reason LIKE '%rolled back%' FROM bench.audit(:run_id) WHERE counter = 'n_tup_upd'),
        'and the reason says so');

-- Clients that end before the measurement: in the ramp and in the warm-up.
SELECT bench.create_workload('acc_early', $$\if :client_id > 0
SELECT 1 / 0;
\endif
SELECT 1;$$) \g /dev/null
CREATE FUNCTION pg_temp.ended(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s of summary, %s of samples, %s of scripts, %s of nodes, %s errors', s.aborted,
        (SELECT sum(x.aborted) FROM (SELECT aborted FROM bench.samples WHERE run_id = run
            UNION ALL SELECT aborted FROM bench.warmup_samples WHERE run_id = run) AS x),
        (SELECT sum(aborted) FROM bench.scripts WHERE run_id = run),
        (SELECT sum(aborted) FROM bench.nodes WHERE run_id = run),
        (SELECT sum(count) FROM bench.errors WHERE run_id = run))
    FROM bench.summary s WHERE s.run_id = run
$$;
SELECT is(pg_temp.ended(bench.run(workload, 8, secs => 0.5, warmup => warmup, driver => driver)),
    '7 of summary, 7 of samples, 7 of scripts, 7 of nodes, 7 errors',
    format('clients that end early count: %s, %s s of warm-up, %s', workload, warmup, driver))
FROM unnest('{acc_early,"acc_early,acc_early@1"}'::text[]) AS workload, unnest('{0,0.5}'::float8[]) AS warmup,
    unnest('{engine,wire}'::text[]) AS driver;
SELECT is(pg_temp.ended(bench.run('acc_fail', 4, transactions => 1)),
    '2 of summary, 2 of samples, 2 of scripts, 2 of nodes, 2 errors', 'and where all do something else');


CREATE TABLE acc_counter (n int);
INSERT INTO acc_counter VALUES (0);
SELECT bench.create_workload('acc_retry', $$BEGIN;
SELECT pg_sleep(0.002);
UPDATE public.acc_counter SET n = n + 1;
END;$$) \g /dev/null
SELECT bench.run('acc_retry', 3, transactions => 20, max_tries => 10000,
    settings => '{"default_transaction_isolation": "repeatable read"}') AS run_id \gset
SELECT
    is((SELECT n FROM acc_counter), 60, 'every transaction was committed once'),
    is(transactions, 60::bigint, 'and counted once'),
    is(failed, 0::bigint, 'none failed'),
    ok(retried BETWEEN 1 AND 60, 'some were tried again'),
    cmp_ok(retried, '<=', (SELECT count FROM bench.errors WHERE run_id = :run_id AND sqlstate = '40001'),
        'each for at least one error'),
    is(status, 'completed', 'and that is no failure of the run')
FROM bench.summary
WHERE run_id = :run_id;
UPDATE acc_counter SET n = 0;
SELECT bench.run('acc_retry', 3, transactions => 20,
    settings => '{"default_transaction_isolation": "serializable"}') AS run_id \gset
SELECT
    is((SELECT n FROM acc_counter)::bigint, transactions, 'without retries: committed are those counted'),
    is(transactions + failed, 60::bigint, 'the others failed'),
    is(aborted, 0::bigint, 'and ended no client'),
    is(failed, (SELECT count FROM bench.errors WHERE run_id = :run_id AND sqlstate = '40001'), 'each by its SQLSTATE'),
    is(retried, 0::bigint, 'and none was tried again')
FROM bench.summary
WHERE run_id = :run_id;

--
-- Two at once
--
SELECT bench.start('pk_update', 2, secs => 0.5) AS a, bench.start('pk_insert', 2, secs => 0.5) AS b \gset
SELECT is(bench.wait(:a), 'completed', 'a run beside another'), is(bench.wait(:b), 'completed', 'and that other');
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', r), 'on fixtures of their own each is right'),
    is(pg_temp.judged(r), 'idx_scan n_tup_del n_tup_ins n_tup_upd pg_stat_statements.calls', 'and judged')
FROM unnest(ARRAY[:a, :b]) AS r;
SELECT bench.start('pk_update', 2, secs => 0.5) AS a, bench.start('pk_update', 2, secs => 0.5) AS b \gset
SELECT is(bench.wait(:a), 'completed', 'two on the same fixture'), is(bench.wait(:b), 'completed', 'both');
SELECT
    is(pg_temp.judged(:a), 'none', 'then neither is judged'),
    is(pg_temp.judged(:b), 'none', 'neither'),
    is_empty(format('SELECT pg_temp.wrong(%s)', :a), 'none is wrong'),
    is_empty(format('SELECT pg_temp.wrong(%s)', :b), 'none'),
    is((SELECT reason FROM bench.audit(:a) WHERE counter = 'n_tup_upd'),
        format('run %s worked on the same fixture, or ran the same workload, at the same time', :b),
        'the reason names the other'),
    is((SELECT reason FROM bench.audit(:b) WHERE counter = 'n_tup_upd'),
        format('run %s worked on the same fixture, or ran the same workload, at the same time', :a), 'in both');
SELECT is((SELECT sum(harness) FROM bench.audit(:a) WHERE counter = 'n_tup_upd')
    >= (SELECT transactions FROM bench.summary WHERE run_id = :a),
    true, 'the numbers are there all the same');
SELECT bench.run('pk_update', transactions => 10) AS run_id \gset
SELECT is(pg_temp.judged(:run_id), 'idx_scan n_tup_del n_tup_ins n_tup_upd pg_stat_statements.calls',
    'one that comes after is judged again');
-- without a fixture, but with the same statement
SELECT bench.start('acc_slow', 2, transactions => 2) AS a, bench.start('acc_slow', 2, transactions => 2) AS b \gset
SELECT bench.wait(:a), bench.wait(:b) \g /dev/null
SELECT is_empty(format('SELECT pg_temp.wrong(%s)', r),
    'two runs of one workload without a fixture: none is called wrong')
FROM unnest(ARRAY[:a, :b]) AS r;

--
-- Workloads whose counts the harness cannot know: reported with the reason and not judged, and never called wrong
--
CREATE FUNCTION pg_temp.try(name text, script text, settings text DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
    SELECT bench.create_workload(name, script, 'pk')::text;
    SELECT format('SELECT bench.run(%L, 2, transactions => 20, settings => %L, tags => %L)', name, settings,
        '{"test": "unknowable"}');
$$;
CREATE FUNCTION acc_hidden(int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE bench_data.pk SET info = 'hidden' WHERE id = $1;
END $$;
SELECT bench.load('pk', 1000) \g /dev/null
\o /dev/null
SELECT pg_temp.try('acc_upsert', $$\set id random(1, :rows)
INSERT INTO pk (id, info) VALUES (:id, 'new') ON CONFLICT (id) DO UPDATE SET info = 'old';$$) \gexec
SELECT pg_temp.try('acc_merge',
    E'\\set id random(1, :rows)\nMERGE INTO pk USING (SELECT :id::int AS i) AS s ON id = i WHEN MATCHED THEN UPDATE '
        'SET info = ''merged'' WHEN NOT MATCHED THEN DO NOTHING;') \gexec
SELECT pg_temp.try('acc_cte', $$\set id random(1, :rows)
WITH u AS (UPDATE pk SET info = 'cte' WHERE id = :id RETURNING id) SELECT * FROM u;$$) \gexec
SELECT pg_temp.try('acc_function', E'\\set id random(1, :rows)\nSELECT public.acc_hidden(:id);') \gexec
SELECT pg_temp.try('acc_do', E'DO $$ BEGIN UPDATE bench_data.pk SET info = ''do'' WHERE id = 1; END $$;') \gexec
SELECT pg_temp.try('acc_gate', E'\\set id random(1, :rows)\nSELECT * FROM pk WHERE id = :id AND :client_id::int < 0;',
    '{"plan_cache_mode": "force_generic_plan"}') \gexec
SELECT pg_temp.try('acc_array', E'SELECT * FROM pk WHERE id = ANY (''{1,2,3}'');') \gexec
SELECT pg_temp.try('acc_join', $$\set id random(1, :rows)
SELECT * FROM pk a JOIN pk b ON a.id = b.id WHERE a.id < 10 + :id * 0;$$) \gexec
SELECT pg_temp.try('acc_subselect', $$\set id random(1, :rows)
SELECT (SELECT info FROM pk b WHERE b.id = a.id) FROM pk a WHERE id = :id;$$) \gexec
SELECT pg_temp.try('acc_target', $$\set id random(1, :rows)
UPDATE pk SET info = (SELECT info FROM pk b WHERE b.id = 1) WHERE id = :id;$$) \gexec
SELECT pg_temp.try('acc_limit', E'SELECT * FROM pk ORDER BY id LIMIT 0;') \gexec
SELECT pg_temp.try('acc_outside', $$\set id random(1, :rows)
UPDATE pk SET info = 'out' FROM public.acc_counter WHERE id = :id;$$) \gexec
SELECT pg_temp.try('acc_truncate', E'TRUNCATE public.acc_counter;\nINSERT INTO public.acc_counter SELECT 0;') \gexec
SELECT pg_temp.try('acc_rollback', E'BEGIN;\nUPDATE pk SET info = ''rolled back'' WHERE id = 1;\nROLLBACK;') \gexec
SELECT pg_temp.try('acc_savepoint', $$BEGIN;
SAVEPOINT s;
UPDATE pk SET info = 'saved' WHERE id = 1;
ROLLBACK TO s;
END;$$) \gexec
SELECT pg_temp.try('acc_for_update', E'\\set id random(1, :rows)\nSELECT * FROM pk WHERE id = :id FOR UPDATE;') \gexec
SELECT pg_temp.try('acc_untracked', E'\\set id random(1, :rows)\nSELECT info FROM pk WHERE id = :id + 0;',
    '{"pg_stat_statements.track": "none"}') \gexec
SELECT pg_temp.try('acc_no_query_id', E'\\set id random(1, :rows)\nSELECT info FROM pk WHERE id = :id + 1;',
    '{"compute_query_id": "off"}') \gexec
SELECT pg_temp.try('acc_uncounted', E'\\set id random(1, :rows)\nSELECT info FROM pk WHERE id = :id + 2;',
    '{"track_counts": "off"}') \gexec
\o
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', run_id), format('%s: not called wrong', workload)),
    is(status, 'completed', format('%s: completed', workload))
FROM bench.runs
WHERE tags = '{"test": "unknowable"}' AND run_id > :first
ORDER BY run_id;
-- triggers and foreign keys do more than the statement says
CREATE FUNCTION acc_twice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE bench_data.pk SET info = 'by trigger' WHERE id = -NEW.id;
    RETURN NEW;
END $$;
CREATE TRIGGER acc_twice AFTER UPDATE ON bench_data.pk FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION acc_twice();
INSERT INTO bench_data.pk SELECT -g, 'negative' FROM generate_series(1, 1000) AS g;
SELECT bench.run('pk_update', 2, transactions => 20) AS run_id \gset
SELECT is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'a table with triggers: not called wrong');

-- What the audit is for: somebody else's work on the same table is seen
SELECT bench.load('pk', 1000) \g /dev/null
SELECT bench.start('pk_update', secs => 0.5) AS run_id \gset
SELECT pg_sleep(0.2) \g /dev/null
UPDATE bench_data.pk SET info = 'foreign' WHERE id <= 7;
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT bench.wait(:run_id) \g /dev/null
SELECT is(difference, -7::bigint, 'seven updates more on the server'), is(ok, false, 'are called wrong')
FROM bench.audit(:run_id) WHERE counter = 'n_tup_upd';

\o /dev/null
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'acc\_%') AS w;
\o
DROP TABLE acc_counter;
DROP FUNCTION acc_twice, acc_hidden;
DROP SCHEMA IF EXISTS bench_data;
SELECT * FROM finish();
