-- What the clients of a run waited for: shares, locks, the warm-up apart.
\ir ../lib/observation.sql

\o /dev/null
SELECT bench.create_workload('obs_sleep', 'SELECT pg_sleep(0.005);');
SELECT bench.create_workload('obs_mixed', $$SELECT pg_sleep(0.02);
\sleep 20 ms
SELECT sum(i) FROM (SELECT generate_series(1, 100000) AS i) AS s;$$);
SELECT bench.create_workload('obs_server', $$SELECT pg_sleep(0.05), 1;
\sleep 5 ms
SELECT max(i) FROM (SELECT generate_series(1, 20000) AS i) AS s;$$);
SELECT bench.create_workload('obs_client', $$SELECT pg_sleep(0.005), 1, 2;
\sleep 60 ms
SELECT min(i) FROM (SELECT generate_series(1, 50000) AS i) AS s;$$);
SELECT bench.create_workload('obs_busy', $$SELECT sum(i) FROM (SELECT generate_series(1, 200000) AS i) AS s;
SELECT pg_sleep(0.002);$$);
\o

--
-- Shares of waits add up to 1, whatever the run
--
\o /dev/null
SELECT format('SELECT bench.run(%L, %s, %s, sample_interval => 0.25, tags => %L)', workload, clients, options,
    '{"test": "waits"}')
FROM (VALUES
    ('pk_select', 1, 'secs => 0.6'),
    ('pk_select', 8, 'secs => 0.6'),
    ('pk_update', 1, 'secs => 0.6'),
    ('pk_update', 8, 'secs => 0.6, warmup => 0.3'),
    ('obs_sleep', 1, 'secs => 0.6'),
    ('obs_sleep', 8, 'secs => 0.6'),
    ('pk_select@3,pk_update@2,obs_sleep@1', 8, 'secs => 0.6'),
    ('pk_select', 2, 'secs => 0.6, rate => 100'),
    ('pk_update', 4, 'transactions => 10000'),
    ('obs_sleep', 2, 'transactions => 20'),
    ('pk_select', 2, 'secs => 0.6, query_mode => ''simple'''),
    ('pk_update', 2, 'secs => 0.6, query_mode => ''extended''')
) AS v (workload, clients, options) \gexec
\o
SELECT is(count(*), 12::bigint, 'the runs are complete')
FROM bench.runs
WHERE tags = '{"test": "waits"}' AND status = 'completed';
SELECT
    ok(abs(sum(w.share) - 1) < 1e-9,
        format('%s, %s clients, %s, rate %s: shares add up to 1', r.workload, r.clients, r.query_mode, r.rate)),
    ok(min(w.share) > 0 AND max(w.share) <= 1 + 1e-9, 'each is one')
FROM bench.runs r LEFT JOIN bench.waits w USING (run_id)
WHERE r.tags = '{"test": "waits"}'
GROUP BY r.run_id, r.workload, r.clients, r.query_mode, r.rate
ORDER BY r.run_id;
SELECT is_empty($$
    SELECT run_id, elapsed, waits
    FROM (SELECT * FROM bench.samples UNION ALL SELECT * FROM bench.warmup_samples) AS s
    JOIN bench.runs r USING (run_id)
    WHERE r.tags = '{"test": "waits"}' AND (waits IS NULL OR abs(pg_temp.sum_of(waits) - 1) > 1e-9)
$$, 'so do those of each interval');
SELECT is_empty($$
    SELECT wait_event_type, wait_event
    FROM bench.waits JOIN bench.runs r USING (run_id)
    WHERE r.tags = '{"test": "waits"}'
        AND NOT (wait_event_type IN ('Activity', 'Buffer', 'BufferPin', 'Client', 'Extension', 'IO', 'IPC', 'Lock',
            'LWLock', 'Timeout')
            AND wait_event ~ '^[A-Za-z]+$'
            OR wait_event_type IN ('CPU', 'Runnable') AND wait_event = wait_event_type)
$$, 'types and events have the names of pg_stat_activity');
WITH of_intervals AS (
    SELECT
        s.run_id,
        key,
        sum(s.secs * value::float8) / (SELECT sum(x.secs) FROM bench.samples x WHERE x.run_id = s.run_id) AS mean
    FROM bench.samples s JOIN bench.runs r USING (run_id), jsonb_each_text(s.waits) AS e (key, value)
    WHERE r.tags = '{"test": "waits"}' AND r.secs IS NOT NULL
    GROUP BY s.run_id, key
),
of_run AS (
    SELECT
        run_id,
        CASE WHEN wait_event_type = wait_event THEN wait_event ELSE wait_event_type || ':' || wait_event END AS key,
        share
    FROM bench.waits JOIN bench.runs r USING (run_id)
    WHERE r.tags = '{"test": "waits"}' AND r.secs IS NOT NULL
)
SELECT
    is(count(*) FILTER (WHERE abs(coalesce(mean, 0) - coalesce(share, 0)) > 0.05), 0::bigint,
        'the run''s shares are the means of its intervals'''),
    cmp_ok(count(*), '>=', 20::bigint, 'all of them')
FROM of_intervals FULL JOIN of_run USING (run_id, key);
SELECT ok(pg_temp.share(run_id, 'Timeout:PgSleep') > 0.7, 'clients that sleep on the server are seen to')
FROM bench.runs
WHERE tags = '{"test": "waits"}' AND workload = 'obs_sleep' AND clients = 1;
SELECT ok(pg_temp.share(run_id, 'CPU') + pg_temp.share(run_id, 'Runnable') > 0.8,
    'clients that read from memory run, or wait for a processor')
FROM bench.runs
WHERE tags = '{"test": "waits"}' AND workload = 'pk_select' AND rate IS NULL;
SELECT ok(pg_temp.share(run_id, 'CPU') <= 1.02 * (environment ->> 'processors')::int / clients,
    format('%s clients: no more processors are used than there are', clients))
FROM bench.runs
WHERE tags = '{"test": "waits"}' AND clients = 8;

-- A run can be over before anybody has looked
SELECT
    bench.run('pk_update', 1, transactions => 1) AS run_id,
    bench.run('pk_update', 1, transactions => 1) AS again,
    bench.run('pk_update', 1, transactions => 1) AS once_more \gset
SELECT ok(coalesce(abs(sum(share) - 1) < 1e-9, true), 'a run of a millisecond: shares add up to 1, or there are none')
FROM bench.waits
WHERE run_id = :run_id;
-- Of a client that a busy machine wakes late it is.
SELECT ok(min(coalesce(w.share, 0)) < 0.5, 'and the start is not among them')
FROM unnest(ARRAY[:run_id, :again, :once_more]) AS r (run_id)
LEFT JOIN bench.waits w ON w.run_id = r.run_id AND w.wait_event_type = 'Extension';

-- Under a rate a client that waits for its turn waits as pgbench's session would
SELECT bench.run('pk_select', 2, secs => 1, rate => 40) AS run_id \gset
SELECT
    ok(pg_temp.share(:run_id, 'Client:ClientRead') > 0.8, 'under a rate idle time is Client:ClientRead'),
    ok(abs(pg_temp.sum_of(waits) - 1) < 1e-9, 'in the interval, too')
FROM bench.samples
WHERE run_id = :run_id;

--
-- Planted proportions: the shares are those of the statements' own times
--
\o /dev/null
-- Their statements differ, so that the audit can tell them apart; with few clients for longer: of one client a sample
-- in ten milliseconds tells its share within a point or so
SELECT
    bench.start('obs_mixed', 1, secs => 30, tags => '{"test": "shares"}') AS a,
    bench.start('obs_server', 1, secs => 30, tags => '{"test": "shares"}') AS b,
    bench.start('obs_client', 3, secs => 30, tags => '{"test": "shares"}') AS c \gset
SELECT bench.wait(:a), bench.wait(:b), bench.wait(:c);
SELECT bench.run('obs_mixed', 6, secs => 8, tags => '{"test": "shares"}');
SELECT bench.run('obs_busy', 4, secs => 8, tags => '{"test": "shares"}');
\o
WITH parts AS (
    SELECT
        r.run_id,
        r.workload,
        r.clients,
        sum(s.count * s.latency_avg_ms) AS total,
        coalesce(sum(s.count * s.latency_avg_ms) FILTER (WHERE s.statement LIKE '%pg_sleep%'), 0) AS server,
        coalesce(sum(s.count * s.latency_avg_ms) FILTER (WHERE s.statement LIKE '\\sleep%'), 0) AS client,
        coalesce(sum(s.count * s.latency_avg_ms) FILTER (WHERE s.statement LIKE '%generate_series%'), 0) AS busy
    FROM bench.runs r JOIN bench.statements s USING (run_id)
    WHERE r.tags = '{"test": "shares"}'
    GROUP BY r.run_id, r.workload, r.clients
)
SELECT
    ok(abs(server / total - pg_temp.share(run_id, 'Timeout:PgSleep')) < 0.02,
        format('%s, %s clients: pg_sleep has %s of the time, sampled %s', workload, clients,
            round((server / total)::numeric, 4), round(pg_temp.share(run_id, 'Timeout:PgSleep')::numeric, 4))),
    ok(abs(client / total - pg_temp.share(run_id, 'Client:ClientRead')) < 0.02,
        format('%s, %s clients: \sleep has %s, sampled %s', workload, clients, round((client / total)::numeric, 4),
            round(pg_temp.share(run_id, 'Client:ClientRead')::numeric, 4))),
    ok(abs(busy / total - pg_temp.share(run_id, 'CPU') - pg_temp.share(run_id, 'Runnable')) < 0.02,
        format('%s, %s clients: computing has %s, sampled %s', workload, clients, round((busy / total)::numeric, 4),
            round((pg_temp.share(run_id, 'CPU') + pg_temp.share(run_id, 'Runnable'))::numeric, 4)))
FROM parts
ORDER BY run_id;
SELECT ok(pg_temp.share(run_id, 'CPU') * 4 <= 1.02 * (environment ->> 'processors')::int
    AND ((environment ->> 'processors')::int >= 4 OR pg_temp.share(run_id, 'Runnable') > 0.05),
    'four busy clients wait for a processor where there are fewer')
FROM bench.runs
WHERE tags = '{"test": "shares"}' AND workload = 'obs_busy';

--
-- A lock that another session holds shows in the intervals that it covers, and in no other
--
SELECT bench.start('pk_update', 3, secs => 5, sample_interval => 0.25) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 4 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
BEGIN;
LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE;
SELECT clock_timestamp() AS locked, pg_sleep(2)::text AS slept \gset
SELECT count(*) FILTER (WHERE wait_event_type = 'Lock' AND wait_event = 'relation') AS in_activity
FROM pg_stat_activity
WHERE backend_type = 'pgbench_ext client' \gset
SELECT clock_timestamp() AS released \gset
COMMIT;
SELECT is(bench.wait(:run_id), 'completed', 'a lock: the run goes on after it');
SELECT is(:in_activity, 3, 'pg_stat_activity shows Lock:relation for each client');
SELECT
    cmp_ok(count(*), '>=', 5::bigint, 'some intervals lie within the lock'),
    ok(min((waits ->> 'Lock:relation')::float8) > 0.9, 'in these clients waited for Lock:relation'),
    is(sum(transactions), 0::numeric, 'and did nothing else')
FROM bench.samples
WHERE run_id = :run_id
    AND at - make_interval(secs => secs) >= :'locked'::timestamptz + interval '50 ms'
    AND at <= :'released';
SELECT
    cmp_ok(count(*), '>=', 4::bigint, 'some lie outside'),
    ok(coalesce(max((waits ->> 'Lock:relation')::float8), 0) < 0.1, 'and have none of it')
FROM bench.samples
WHERE run_id = :run_id
    AND (at <= :'locked'::timestamptz - interval '50 ms'
        OR at - make_interval(secs => secs) >= :'released'::timestamptz + interval '50 ms');
SELECT ok(pg_temp.share(:run_id, 'Lock:relation') BETWEEN 0.36 AND 0.6,
    'two of five seconds are the run''s share of it');

--
-- What happened in the warm-up is not the run's
--
SELECT bench.start('pk_update', 2, secs => 1, warmup => 4, sample_interval => 0.5) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 1 FROM bench.warmup_samples WHERE run_id = %s', :run_id)) \g /dev/null
BEGIN;
LOCK TABLE bench_data.pk IN ACCESS EXCLUSIVE MODE;
SELECT pg_sleep(1.2) \g /dev/null
COMMIT;
SELECT is(bench.wait(:run_id), 'completed', 'a lock in the warm-up');
SELECT
    ok(max((waits ->> 'Lock:relation')::float8) > 0.9, 'shows in the samples of the warm-up'),
    ok(bool_and(abs(pg_temp.sum_of(waits) - 1) < 1e-9), 'whose shares add up to 1'),
    ok(count(*) = 8
        AND count(wal_bytes) = 8
        AND count(checkpoints) = 8
        AND count(cpu_idle) = 8
        AND count(memory_available_bytes) = 8,
        'and which are observed in full'),
    ok(sum(wal_bytes) > 0, 'WAL included')
FROM bench.warmup_samples
WHERE run_id = :run_id;
SELECT
    ok(pg_temp.share(:run_id, 'Lock:relation') < 0.05, 'not in the run''s waits'),
    ok(abs((SELECT sum(share) FROM bench.waits WHERE run_id = :run_id) - 1) < 1e-9, 'which add up to 1');

\ir ../lib/observation_end.sql
