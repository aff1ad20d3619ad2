-- The log of single transactions: bench.transactions holds what bench.summary and bench.samples add up.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
SELECT bench.load('pk', 1000);
SELECT bench.create_workload('log_one', 'SELECT 1;');
SELECT bench.create_workload('log_two', 'SELECT 2;');
SELECT bench.create_workload('log_draws',
    E'\\set x random(1, 1000000000)\nINSERT INTO log_drawn VALUES (:client_id, :x);');
SELECT bench.create_workload('log_aborts', E'\\set n :client_id\nSELECT 1 / (1 - :n::int);');
SELECT bench.create_workload('log_opens', E'BEGIN;\nSELECT 1;');
SELECT bench.create_workload('log_slow', 'SELECT pg_sleep(0.02);');
DROP TABLE IF EXISTS public.log_drawn, public.log_once;
CREATE TABLE public.log_drawn (client int, x bigint);
CREATE TABLE public.log_once (id int PRIMARY KEY, n int);
INSERT INTO public.log_once VALUES (1, 0);
\o
-- What the log counts by outcome, and what the summary does.
CREATE FUNCTION pg_temp.logged(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s processed, %s failed, %s aborted, %s skipped',
        count(*) FILTER (WHERE outcome IN ('processed', 'left open')), count(*) FILTER (WHERE outcome = 'failed'),
        count(*) FILTER (WHERE outcome IN ('aborted', 'left open')), count(*) FILTER (WHERE outcome = 'skipped'))
    FROM bench.transactions WHERE run_id = run
$$;
CREATE FUNCTION pg_temp.counted(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s processed, %s failed, %s aborted, %s skipped', transactions, failed, aborted, skipped)
    FROM bench.summary WHERE run_id = run
$$;

--
-- All of them
--
SELECT bench.run('pk_update', 3, transactions => 200, log_rate => 1) AS run_id \gset
SELECT is(pg_temp.logged(:run_id), '600 processed, 0 failed, 0 aborted, 0 skipped', 'every transaction is logged');
SELECT is(r.log_rate, 1::double precision, 'the run says so'), is(r.logged, 600::bigint, 'and how many'),
    is(r.log_lost, 0::bigint, 'none is lost')
FROM bench.runs r WHERE run_id = :run_id;
SELECT
    is(count(*), 3::bigint, 'of three clients'),
    ok(bool_and(numbers = (SELECT array_agg(n) FROM generate_series(1, 200::bigint) AS n)), 'each numbers from 1')
FROM (
    SELECT client, array_agg(transaction ORDER BY started, transaction) AS numbers
    FROM bench.transactions WHERE run_id = :run_id GROUP BY client
) c;
SELECT
    ok(abs(sum(t.latency_ms) / s.latency_avg_ms / 600 - 1) < 1e-9, 'their latencies have the summary''s mean'),
    ok(abs(max(t.latency_ms) / s.latency_max_ms - 1) < 1e-9, 'and its maximum'),
    ok(bool_and(t.lag_ms IS NULL), 'there is no lag without a rate'),
    ok(bool_and(t.script = 0 AND t.node = 0 AND t.retries = 0), 'script, node and retries are there'),
    ok(min(t.started) >= s.started_at - interval '1 s'
        AND max(t.started + t.latency_ms * interval '1 ms') <= r.finished_at + interval '1 s',
        'they lie within the run')
FROM bench.transactions t JOIN bench.summary s USING (run_id) JOIN bench.runs r USING (run_id)
WHERE run_id = :run_id
GROUP BY s.latency_avg_ms, s.latency_max_ms, s.started_at, r.finished_at;
SELECT is_empty(format($$
    SELECT l.low_ms, l.count FROM bench.latencies l WHERE run_id = %1$s AND l.count <> (SELECT count(*)
        FROM bench.transactions t WHERE run_id = %1$s AND t.latency_ms >= l.low_ms AND t.latency_ms < l.high_ms)
$$, :run_id), 'each bucket of the histogram has as many');

-- Neither the warm-up nor what ends after the window
SELECT bench.run('pk_update', 2, secs => 0.4, warmup => 0.2, sample_interval => 0.1, log_rate => 1) AS run_id \gset
SELECT is(pg_temp.logged(:run_id), pg_temp.counted(:run_id), 'what is measured is logged, and the warm-up is not');
SELECT is(min(transaction), 1::bigint, 'numbers begin after it') FROM bench.transactions WHERE run_id = :run_id;

-- None
SELECT bench.run('log_one', transactions => 20) AS run_id \gset
SELECT is(count(*), 0::bigint, 'nothing is logged by default') FROM bench.transactions WHERE run_id = :run_id;
SELECT is(format('%s %s %s', log_rate, logged, log_lost), '0  ', 'and the run has no counts of it')
FROM bench.runs WHERE run_id = :run_id;

-- Scripts of a mix
SELECT bench.run('log_one@3,log_two@1', 2, transactions => 200, log_rate => 1) AS run_id \gset
SELECT results_eq(
    format('SELECT script, count(*) FROM bench.transactions WHERE run_id = %s GROUP BY 1 ORDER BY 1', :run_id),
    format('SELECT script, transactions FROM bench.scripts WHERE run_id = %s ORDER BY script', :run_id),
    'each script has its transactions');

--
-- A share of them
--
SELECT bench.run('log_draws', 2, transactions => 500, seed => 7, log_rate => 0.1) AS first \gset
CREATE TEMP TABLE log_first AS SELECT * FROM public.log_drawn;
TRUNCATE public.log_drawn;
SELECT bench.run('log_draws', 2, transactions => 500, seed => 7, log_rate => 0.1) AS again \gset
TRUNCATE public.log_drawn;
SELECT bench.run('log_draws', 2, transactions => 500, seed => 7) AS without \gset
SELECT set_eq('SELECT * FROM public.log_drawn', 'SELECT * FROM log_first',
    'a script draws the same numbers with a log');
-- 100 are expected; six standard deviations of a binomial distribution
SELECT ok(count(*) BETWEEN 43 AND 157, format('about one in ten is logged: %s of 1000', count(*)))
FROM bench.transactions WHERE run_id = :first;
SELECT is(max(logged), count(*), 'as the run says')
FROM bench.transactions JOIN bench.runs USING (run_id) WHERE run_id = :first;
SELECT set_eq(format('SELECT client, transaction FROM bench.transactions WHERE run_id = %s', :first),
    format('SELECT client, transaction FROM bench.transactions WHERE run_id = %s', :again), 'the seed decides which');

--
-- How they end
--
SELECT bench.run('log_aborts', 2, transactions => 5, log_rate => 1) AS run_id \gset
SELECT is(pg_temp.logged(:run_id), '5 processed, 0 failed, 1 aborted, 0 skipped',
    'an error that ends the client is aborted');
SELECT is(pg_temp.logged(:run_id), pg_temp.counted(:run_id), 'as in the summary');
SELECT is(format('%s %s', client, transaction), '1 1', 'with its client and its number')
FROM bench.transactions WHERE run_id = :run_id AND outcome = 'aborted';
SELECT bench.run('log_opens', transactions => 5, log_rate => 1) AS run_id \gset
SELECT is(pg_temp.logged(:run_id), '1 processed, 0 failed, 1 aborted, 0 skipped', 'a block left open is both');
SELECT is(pg_temp.logged(:run_id), pg_temp.counted(:run_id), 'as in the summary');

-- The second try finds what the first one has: a snapshot older than the row.
SELECT bench.create_workload('log_collides', E'BEGIN ISOLATION LEVEL REPEATABLE READ;\n'
    'SELECT n FROM public.log_once;\n\\sleep 2 ms\nUPDATE public.log_once SET n = n + 1;\nEND;') \g /dev/null
SELECT bench.run('log_collides', 4, transactions => 25, max_tries => 2, log_rate => 1) AS run_id \gset
SELECT is(pg_temp.logged(:run_id), pg_temp.counted(:run_id), 'serialization failures fail once tries have run out');
SELECT is(count(*) FILTER (WHERE t.retries > 0), max(s.retried), 'those that were retried say so'),
    is(sum(t.retries), coalesce(max(e.retried), 0), 'with their retries'),
    ok(bool_and(t.retries <= 1), 'of which there was one at most'),
    ok(bool_and(t.latency_ms > 0), 'and all have a latency')
FROM bench.transactions t JOIN bench.summary s USING (run_id)
    LEFT JOIN bench.errors e ON e.run_id = t.run_id AND e.sqlstate = '40001'
WHERE t.run_id = :run_id;

-- Under a rate
SELECT bench.run('log_slow', 2, transactions => 50, rate => 100000, latency_limit => 30, log_rate => 1) AS run_id \gset
SELECT is(pg_temp.logged(:run_id), pg_temp.counted(:run_id), 'skipped transactions are logged too');
SELECT
    is(count(*), 100::bigint, 'each has its line'),
    ok(bool_and((latency_ms IS NULL) = (outcome = 'skipped')), 'skipped ones have no latency'),
    ok(bool_and(lag_ms >= 0), 'all have a lag'),
    ok(bool_and(lag_ms > 30) FILTER (WHERE outcome = 'skipped'), 'that of skipped ones is beyond the limit'),
    ok(bool_and(latency_ms >= lag_ms + 19.9) FILTER (WHERE outcome = 'processed'), 'latency counts from when due')
FROM bench.transactions WHERE run_id = :run_id;
SELECT ok(abs(avg(t.lag_ms) - max(s.lag_avg_ms)) <= 1e-6 * max(s.lag_avg_ms), 'lags have the mean that the summary has')
FROM bench.transactions t JOIN bench.summary s USING (run_id)
WHERE run_id = :run_id AND outcome = 'processed';

--
-- It goes with its run
--
SELECT (bench.import(bench.export(ARRAY[:run_id])))[1] AS imported \gset
SELECT set_eq(
    format('SELECT to_jsonb(t) - ''run_id'' FROM bench.transactions t WHERE run_id = %s', :imported),
    format('SELECT to_jsonb(t) - ''run_id'' FROM bench.transactions t WHERE run_id = %s', :run_id),
    'export and import carry the log');
SELECT is(format('%s %s %s', i.log_rate, i.logged, i.log_lost), format('%s %s %s', r.log_rate, r.logged, r.log_lost),
    'and what the run says of it')
FROM bench.runs i, bench.runs r WHERE i.run_id = :imported AND r.run_id = :run_id;
SELECT bench.delete_run(:imported) \g /dev/null
SELECT is(count(*), 0::bigint, 'bench.delete_run deletes it') FROM bench.transactions WHERE run_id = :imported;

SELECT throws_ok(format('SELECT bench.run(''log_one'', transactions => 1, log_rate => %L)', rate), code, NULL,
    format('log_rate => %s is refused', coalesce(rate, 'NULL')))
FROM (VALUES ('-0.1', '22023'), ('1.5', '22023'), ('NaN', '22023'), (NULL, '22004')) AS v (rate, code);

\o /dev/null
SELECT bench.unload('pk');
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'log\_%') AS w;
\o
DROP TABLE public.log_drawn, public.log_once;
DROP SCHEMA IF EXISTS bench_data;
SELECT * FROM finish();
