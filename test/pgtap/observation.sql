-- What a run observes beside its own counts: waits, WAL, checkpoints, vacuums, processors, plans, tables, environment.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();
SELECT coalesce(max(run_id), 0) AS first FROM bench.runs \gset

\o /dev/null
SELECT bench.load('pk', 5000, options => '{"reloptions": {"autovacuum_enabled": false}}');
CREATE TABLE obs_other AS SELECT i AS id, md5(i::text) AS info FROM generate_series(1, 1000) AS i;
CREATE FUNCTION pg_temp.share(run bigint, name text) RETURNS double precision LANGUAGE sql AS $$
    SELECT coalesce(sum(share), 0)
    FROM bench.waits
    WHERE run_id = run AND name IN (wait_event_type, wait_event_type || ':' || wait_event)
$$;
-- Of the wait events of one interval, their sum.
CREATE FUNCTION pg_temp.sum_of(waits jsonb) RETURNS double precision LANGUAGE sql AS $$
    SELECT sum(value::double precision) FROM jsonb_each_text(waits)
$$;
-- When the measuring of a run began.
CREATE FUNCTION pg_temp.began(run bigint) RETURNS timestamptz LANGUAGE sql AS $$
    SELECT at - make_interval(secs => elapsed) FROM bench.samples WHERE run_id = run ORDER BY elapsed LIMIT 1
$$;
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
        AND NOT (wait_event_type IN ('Activity', 'BufferPin', 'Client', 'Extension', 'IO', 'IPC', 'Lock', 'LWLock',
            'Timeout')
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

--
-- Checkpoints and vacuums
--
CHECKPOINT;
SELECT bench.start('pk_update', 2, secs => 6, warmup => 1.5, sample_interval => 0.5) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 4 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
SELECT clock_timestamp() AS before \gset
CHECKPOINT;
SELECT clock_timestamp() AS after \gset
SELECT is(bench.wait(:run_id), 'completed', 'a run with a CHECKPOINT');
SELECT
    is(sum(checkpoints), 1::bigint, 'the samples have one'),
    ok(bool_and(checkpoints = 0 OR at >= :'before'), 'no sooner than it was asked for'),
    cmp_ok(sum(buffers_checkpoint), '>=', 50::numeric, 'and the buffers that it wrote'),
    ok(min(buffers_checkpoint) >= 0
        AND min(buffers_clean) >= 0
        AND min(buffers_backend) >= 0
        AND min(wal_buffers_full) >= 0,
        'no counter goes back')
FROM bench.samples
WHERE run_id = :run_id;
SELECT
    is(count(*), 1::bigint, 'bench.events has one'),
    is(max(kind), 'checkpoint', 'a checkpoint'),
    is(max(relation), NULL, 'of no table'),
    is(max(detail), 'requested', 'requested'),
    ok(bool_and(started <= ended), 'it ended after it began'),
    ok(bool_and(pg_temp.began(:run_id) + make_interval(secs => started) >= :'before'::timestamptz - interval '10 ms'),
        'began when it was asked for'),
    ok(bool_and(pg_temp.began(:run_id) + make_interval(secs => started) <= :'after'::timestamptz + interval '1 s'),
        'and not long after')
FROM bench.events
WHERE run_id = :run_id;
SELECT
    cmp_ok(sum(wal_fpi) FILTER (WHERE at >= :'before'), '>', 3 * sum(wal_fpi) FILTER (WHERE at < :'before') + 50,
        'full-page images follow it'),
    ok(sum(wal_bytes) > 8000 * sum(wal_fpi) FILTER (WHERE at >= :'before') / 2, 'and WAL with them')
FROM bench.samples
WHERE run_id = :run_id;

SELECT bench.start('pk_update', 2, secs => 4, sample_interval => 0.5) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 2 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
VACUUM obs_other;
SELECT clock_timestamp() AS before \gset
VACUUM ANALYZE bench_data.pk;
SELECT clock_timestamp() AS after \gset
SELECT is(bench.wait(:run_id), 'completed', 'a run with VACUUMs');
SELECT
    is(count(*), 1::bigint, 'that of the fixture is an event, that of another table is not'),
    is(max(kind), 'vacuum', 'it is called vacuum'),
    is(max(relation), 'bench_data.pk', 'with the table''s name'),
    ok(bool_and(started <= ended), 'it ended after it began'),
    ok(bool_and(pg_temp.began(:run_id) + make_interval(secs => started) >= :'before'::timestamptz - interval '10 ms'),
        'began when it was asked for'),
    ok(bool_and(pg_temp.began(:run_id) + make_interval(secs => ended) <= :'after'::timestamptz + interval '10 ms'),
        'and ended when it had')
FROM bench.events
WHERE run_id = :run_id AND kind <> 'checkpoint';
SELECT
    is(vacuums, 1::bigint, 'bench.relations counts it'),
    is(autovacuums, 0::bigint, 'as one by hand'),
    is(analyzes, 1::bigint, 'and its ANALYZE'),
    ok(last_vacuum BETWEEN :'before' AND :'after', 'with its time'),
    is(last_autovacuum, NULL, 'and none of autovacuum')
FROM bench.relations
WHERE run_id = :run_id AND relation = 'bench_data.pk';

--
-- WAL, buffers, processors, memory, disks
--
SELECT bench.run('pk_update', 2, transactions => 600) AS run_id, bench.run('pk_select', 2, secs => 1) AS reading \gset
SELECT
    ok(sum(wal_records) BETWEEN 2 * 1200 * 0.95 AND 1200 * 6,
        format('%s WAL records of 1200 updates: two each and little more', sum(wal_records))),
    ok(sum(wal_bytes) > 1200 * 60, 'WAL in bytes, too'),
    ok(sum(blks_hit) >= 1200 * 3, 'buffers are counted')
FROM bench.samples
WHERE run_id = :run_id;
SELECT ok(sum(r.wal_bytes)::float8 / sum(r.transactions)
    < 0.2 * (SELECT sum(wal_bytes)::float8 / sum(transactions) FROM bench.samples WHERE run_id = :run_id),
    'SELECTs write hardly any')
FROM bench.samples r
WHERE run_id = :reading;
SELECT
    bench.run('obs_mixed', 2, secs => 1) AS run_id,
    bench.create_workload('obs_temp', $$
        SELECT count(*) FROM (SELECT i FROM generate_series(1, 60000) AS i ORDER BY -i) AS s;
    $$) AS made \gset
SELECT bench.run('obs_temp', 1, transactions => 3, settings => '{"work_mem": "64kB"}') AS spilled \gset
SELECT ok(sum(temp_files) >= 3 AND sum(temp_bytes) > 3 * 60000 * 4, 'temporary files of a sort that spilled')
FROM bench.samples
WHERE run_id = :spilled;
SELECT is(sum(temp_files), 0::numeric, 'and none without') FROM bench.samples WHERE run_id = :run_id;
SELECT is_empty($$
    SELECT run_id, elapsed, cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle
    FROM bench.samples
    WHERE abs(cpu_user + cpu_system + cpu_iowait + cpu_steal + cpu_idle - 1) > 1e-9
        OR least(cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle) < 0
        OR greatest(cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle) > 1
$$, 'shares of processors add up to 1');
SELECT is_empty($$
    SELECT run_id, elapsed
    FROM bench.samples
    WHERE waits IS NOT NULL
        AND secs >= 0.2
        AND num_nulls(cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle, memory_available_bytes, memory_dirty_bytes,
            disk_read_bytes, disk_written_bytes, wal_bytes, wal_records, wal_fpi, wal_buffers_full, checkpoints,
            buffers_checkpoint, buffers_clean, buffers_backend, blks_hit, blks_read, temp_files, temp_bytes) > 0
        AND EXISTS (
            SELECT FROM bench.runs r WHERE r.run_id = samples.run_id AND r.environment ->> 'kernel' LIKE 'Linux%'
        )
$$, 'on Linux nothing is unknown');
SELECT is_empty($$
    SELECT run_id, elapsed
    FROM bench.samples
    WHERE least(memory_available_bytes, memory_dirty_bytes, disk_read_bytes, disk_written_bytes, wal_bytes, wal_records,
        wal_fpi, blks_hit, blks_read, temp_files, temp_bytes, throttled_secs) < 0
$$, 'nothing is negative');
SELECT ok(bool_and(memory_available_bytes <= (r.environment ->> 'memory_bytes')::bigint),
    'no more memory is to be had than there is')
FROM bench.samples s JOIN bench.runs r USING (run_id)
WHERE run_id = :run_id;

--
-- Tables and indexes before and after
--
CREATE FUNCTION pg_temp.audited(run bigint, name text) RETURNS bigint LANGUAGE sql AS $$
    SELECT server FROM bench.audit(run) WHERE counter = name
$$;
\o /dev/null
SELECT bench.load('log');
SELECT bench.create_workload('obs_write', $$\set id random(1, :rows)
BEGIN;
UPDATE pk SET info = 'x' WHERE id = :id;
DELETE FROM pk WHERE id = :id AND :id % 50 = 0;
INSERT INTO log (info) VALUES ('x');
SELECT 1 FROM pk WHERE id = 7;
END;$$, 'pk');
\o
SELECT bench.run('obs_write,pk_insert', 3, transactions => 200) AS run_id \gset
SELECT
    ok(sum(updated) > 0 AND sum(deleted) > 0 AND sum(inserted) > 0, 'the run did something of each'),
    is(sum(updated)::bigint, pg_temp.audited(:run_id, 'n_tup_upd'), 'updated: as the audit counts'),
    is(sum(inserted)::bigint, pg_temp.audited(:run_id, 'n_tup_ins'), 'inserted'),
    is(sum(deleted)::bigint, pg_temp.audited(:run_id, 'n_tup_del'), 'deleted'),
    is(sum(idx_scan)::bigint, pg_temp.audited(:run_id, 'idx_scan'), 'idx_scan'),
    ok(bool_and(hot_updated BETWEEN 0 AND updated), 'HOT updates are among the updates'),
    is(sum(hot_updated) > 0, true, 'there were some'),
    is(array_agg(relation ORDER BY relation), '{bench_data.log,bench_data.pk}'::text[],
        'both tables of the mix are there')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'table';
SELECT
    is(sum(idx_scan)::bigint, pg_temp.audited(:run_id, 'idx_scan'), 'of the indexes, too'),
    is(array_agg(relation ORDER BY relation),
        (
            SELECT array_agg(indexrelid::regclass::text ORDER BY indexrelid::regclass::text)
            FROM pg_index
            WHERE indrelid IN ('bench_data.pk'::regclass, 'bench_data.log'::regclass)
        ), 'all indexes are there')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'index';
SELECT
    is(bytes_after,
        CASE kind WHEN 'table' THEN pg_table_size(relation::regclass) ELSE pg_relation_size(relation::regclass) END,
        relation || ': bytes after the run'),
    ok(bytes_before <= bytes_after AND bytes_before >= 0, 'and before it')
FROM bench.relations
WHERE run_id = :run_id
ORDER BY relation;
SELECT ok(bytes_before < bytes_after, 'a table that rows went into grew')
FROM bench.relations
WHERE run_id = :run_id AND relation = 'bench_data.log';
SELECT
    is(r.live, s.n_live_tup, 'live rows as in pg_stat_user_tables'),
    is(r.dead, s.n_dead_tup, 'dead ones'),
    is(r.mod_since_analyze, s.n_mod_since_analyze, 'rows changed since ANALYZE'),
    is(r.live - r.live_before, r.inserted - r.deleted, 'live ones went as rows came and went'),
    is(r.seq_scan, 0::bigint, 'no sequential scan')
FROM bench.relations r JOIN pg_stat_user_tables s ON s.relid = r.relation::regclass
WHERE run_id = :run_id AND kind = 'table';
SELECT bench.create_workload('obs_scan', 'SELECT count(*) FROM log;', 'log') \g /dev/null
SELECT
    bench.run('obs_scan', 1, transactions => 4, settings => '{"max_parallel_workers_per_gather": 0}') AS run_id,
    count(*) AS rows
FROM bench_data.log \gset
SELECT
    is(seq_scan, 4::bigint, 'sequential scans are counted'),
    is(seq_tup_read, 4 * :rows::bigint, 'with their rows')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'table';

-- partitions, and one table that is dropped meanwhile
\o /dev/null
SELECT bench.load('tpcb', options => '{"scale": 1, "partitions": 3}');
\o
SELECT bench.run('tpcb', 2, transactions => 20) AS run_id \gset
SELECT
    is(array_agg(relation ORDER BY relation) FILTER (WHERE relation LIKE '%accounts\__'),
        '{bench_data.pgbench_accounts_1,bench_data.pgbench_accounts_2,bench_data.pgbench_accounts_3}'::text[],
        'partitions are listed'),
    is(sum(updated) FILTER (WHERE relation LIKE '%accounts\__'), 40::numeric, 'with their updates'),
    ok(bool_and(bytes_after > 0) FILTER (WHERE relation LIKE '%accounts\__'), 'and sizes'),
    is(sum(updated)::bigint, pg_temp.audited(:run_id, 'n_tup_upd'), 'all as the audit counts')
FROM bench.relations
WHERE run_id = :run_id AND kind = 'table';
SELECT bench.start('tpcb_select', 2, secs => 1.5, sample_interval => 0.25) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 2 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
DROP TABLE bench_data.pgbench_history;
SELECT is(bench.wait(:run_id), 'completed', 'a table of the fixture is dropped that the script does not touch');
SELECT
    ok(bytes_before IS NOT NULL, 'it was there before'),
    is(bytes_after, NULL, 'and not after'),
    is(num_nulls(inserted, updated, live, dead, vacuums), 5, 'what is not known is NULL')
FROM bench.relations
WHERE run_id = :run_id AND relation LIKE '%history';
SELECT ok(count(*) >= 8 AND bool_and(bytes_after IS NOT NULL), 'the others are there')
FROM bench.relations
WHERE run_id = :run_id AND relation NOT LIKE '%history';

--
-- Plans
--
\o /dev/null
SELECT bench.load('pk', 5000, options => '{"reloptions": {"autovacuum_enabled": false}}');
\o
SELECT bench.run('pk_select', 2, secs => 0.5, warmup => 0.2) AS run_id \gset
SELECT
    matches(plan, E'^custom plan in 10 executions, then generic in \\d+:\n',
        'pk_select: generic after five custom plans of each client'),
    matches(plan, E'\n *Index Scan using pk_pkey on pk\n +Index Cond: \\(id = \\$1\\)$', 'by the index'),
    is(generic_plans + custom_plans, pg_temp.audited(:run_id, 'pg_stat_statements.calls'),
        'as many executions as the server counted, in all phases'),
    ok(custom_plans = 10 AND generic_plans >= count - 10, 'five of them custom'),
    is(plan_changes, 0::bigint, 'from custom to generic is no change of plan')
FROM bench.statements
WHERE run_id = :run_id AND statement LIKE 'SELECT%';
SELECT
    is(plan, NULL, 'a meta command has no plan'),
    is(generic_plans + custom_plans + plan_changes + workers_planned + workers_launched, 0::bigint, 'and no counts')
FROM bench.statements
WHERE run_id = :run_id AND statement LIKE E'\\\\%';
\o /dev/null
SELECT format('SELECT bench.run(''pk_select'', 2, transactions => 30, query_mode => %L, settings => %L, tags => %L)',
    mode, settings, jsonb_build_object('plans', mode || settings))
FROM (VALUES
    ('simple', '{}'),
    ('extended', '{}'),
    ('prepared', '{"plan_cache_mode": "force_custom_plan"}'),
    ('prepared', '{"plan_cache_mode": "force_generic_plan"}')
) AS v (mode, settings) \gexec
\o
SELECT
    is(format('%s %s', s.custom_plans, s.generic_plans),
        CASE WHEN r.settings::text LIKE '%generic%' THEN '0 60' ELSE '60 0' END,
        format('%s %s: which plans', r.query_mode, r.settings)),
    matches(s.plan,
        CASE
            WHEN r.settings::text LIKE '%generic%' THEN E'^generic plan:\n'
            ELSE E'^custom plan:\n'
        END || E'.*Index Scan using pk_pkey on pk\n',
        'and what they are called'),
    is(s.plan_changes, 0::bigint, 'without a change')
FROM bench.runs r JOIN bench.statements s USING (run_id)
WHERE r.tags ? 'plans' AND s.statement LIKE 'SELECT%'
ORDER BY r.run_id;
SELECT bench.create_workload('obs_utility', E'BEGIN;\nSET LOCAL work_mem = ''1MB'';\nVALUES (1);\nEND;') \g /dev/null
SELECT bench.run('obs_utility', 1, transactions => 10) AS run_id \gset
SELECT is(array_agg(statement ORDER BY command) FILTER (WHERE plan IS NOT NULL), '{VALUES (1);}'::text[],
    'utilities have no plan')
FROM bench.statements
WHERE run_id = :run_id;

-- a plan that changes during the run
\o /dev/null
CREATE TABLE obs_plan AS SELECT i AS id, md5(i::text) AS info FROM generate_series(1, 2000) AS i;
CREATE INDEX obs_plan_id ON obs_plan (id);
ANALYZE obs_plan;
SELECT bench.create_workload('obs_plan', $$\set id random(1, 2000)
SELECT info FROM public.obs_plan WHERE id = :id;
SELECT 1;$$);
\o
SELECT bench.start('obs_plan', 3, secs => 3, sample_interval => 0.25) AS run_id \gset
CALL pg_temp.until(format('SELECT count(*) >= 3 FROM bench.samples WHERE run_id = %s', :run_id)) \g /dev/null
SELECT clock_timestamp() AS before \gset
DROP INDEX obs_plan_id;
SELECT clock_timestamp() AS after \gset
SELECT is(bench.wait(:run_id), 'completed', 'an index is dropped');
SELECT
    ok(plan_changes BETWEEN 3 AND 6, format('each of three clients has met another plan (%s)', plan_changes)),
    matches(plan, $$
at first:
(Index Scan using obs_plan_id|Bitmap Heap Scan) on obs_plan.*
from \d+\.\d+ s on:
.*Seq Scan on obs_plan$$, 'both forms are shown'),
    ok(pg_temp.began(:run_id) + make_interval(
        secs => substring(plan FROM '\nfrom (\d+\.\d+) s on:\n *Seq Scan')::float8
    ) BETWEEN :'before'::timestamptz - interval '10 ms' AND :'after'::timestamptz + interval '1 s',
        'with the time of the change')
FROM bench.statements
WHERE run_id = :run_id AND statement LIKE 'SELECT info%';
SELECT ok(plan_changes = 0 AND plan NOT LIKE '%from %', 'another statement of the script has not changed')
FROM bench.statements
WHERE run_id = :run_id AND statement = 'SELECT 1;';

-- parallel workers, planned and launched
SELECT bench.create_workload('obs_parallel', 'SELECT count(*) FROM public.obs_plan;') \g /dev/null
SELECT
    bench.run('obs_parallel', 1, transactions => 5,
        settings => '{"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, '
            '"max_parallel_workers_per_gather": 2, "max_parallel_workers": 0}') AS none,
    bench.run('obs_parallel', 1, transactions => 5,
        settings => '{"parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, '
            '"max_parallel_workers_per_gather": 2, "max_parallel_workers": 8}') AS some \gset
SELECT
    ok(workers_planned >= 5, 'parallel plans ask for workers'),
    is(workers_launched, 0::bigint, 'without any free none is launched'),
    matches(plan, 'Gather.*Parallel Seq Scan on obs_plan', 'the plan shows it')
FROM bench.statements
WHERE run_id = :none;
SELECT ok(workers_planned >= 5 AND workers_launched BETWEEN 1 AND workers_planned, 'with some free they are')
FROM bench.statements
WHERE run_id = :some;

--
-- Environment
--
SELECT bench.run('pk_select', 1, transactions => 5,
    settings => '{"work_mem": "3MB", "random_page_cost": 1.5}') AS run_id \gset
SELECT is_empty(format($$
    SELECT key
    FROM unnest('{version,server_settings,data_checksums,processors,memory_bytes,swap_bytes,kernel,'
        'transparent_huge_pages,kernel_parameters,limits,filesystem,mount_options,clock_read_ns,fsync_us,'
        'unserved_defaults,unlogged_tables,coordinator_cpu_secs,xids_used,xid_age}'::text[]) AS key
    WHERE (SELECT environment -> key FROM bench.runs WHERE run_id = %s) IS NULL
$$, :run_id), 'every key of the environment is there');
SELECT
    is(environment ->> 'version', version(), 'version'),
    ok((environment ->> 'processors')::int >= 1, 'processors'),
    ok((environment ->> 'memory_bytes')::bigint > 100000000, 'memory'),
    is((environment ->> 'data_checksums')::boolean, current_setting('data_checksums')::boolean, 'checksums'),
    ok((environment ->> 'clock_read_ns')::float8 BETWEEN 1 AND 100000, 'the clock'),
    ok((environment ->> 'fsync_us')::float8 > 0, 'a flush to disk'),
    ok((environment ->> 'coordinator_cpu_secs')::float8 > 0, 'the coordinator''s own time'),
    ok((environment ->> 'xid_age')::bigint >= 0, 'age'),
    ok(environment -> 'kernel_parameters' ?&
        '{vm.swappiness,vm.dirty_background_bytes,vm.dirty_ratio,vm.overcommit_memory}',
        'vm.*'),
    is(environment -> 'kernel_parameters' ->> 'vm.swappiness', trim(pg_read_file('/proc/sys/vm/swappiness'), E'\n'),
        'as /proc has it'),
    ok(environment -> 'limits' ? 'open files', 'limits'),
    ok(environment ->> 'horizon_holder' IS NULL, 'nobody held back the horizon')
FROM bench.runs
WHERE run_id = :run_id;
CREATE FUNCTION pg_temp.setting(run bigint, setting text) RETURNS text LANGUAGE sql AS $$
    SELECT (s ->> 'setting') || ' ' || (s ->> 'source')
    FROM bench.runs, jsonb_array_elements(environment -> 'server_settings') AS s
    WHERE run_id = run AND s ->> 'name' = setting
$$;
SELECT
    is(pg_temp.setting(:run_id, 'work_mem'), '3MB client', 'settings of the run are listed, with source client'),
    is(pg_temp.setting(:run_id, 'random_page_cost'), '1.5 client', 'numbers, too'),
    is(pg_temp.setting(:run_id, 'fsync'), 'off configuration file', 'those of the configuration file with theirs'),
    is(pg_temp.setting(:run_id, 'max_locks_per_transaction'), NULL, 'defaults are not'),
    is(pg_temp.setting(:run_id, 'shared_buffers'), '256MB configuration file', 'with their units'),
    is(pg_temp.setting(:run_id, name), NULL, name || ' is for superusers, and in no run')
FROM unnest('{unix_socket_directories,shared_preload_libraries,config_file,hba_file,data_directory}'::text[]) AS name;
SELECT is_empty($$
    SELECT run_id, s ->> 'name'
    FROM bench.runs, jsonb_array_elements(environment -> 'server_settings') AS s
    JOIN pg_settings p ON p.name = s ->> 'name'
    WHERE 'GUC_SUPERUSER_ONLY' = ANY (pg_settings_get_flags(p.name))
$$, 'none of them is');
SELECT bench.run('pk_update', 2, transactions => 50) AS run_id \gset
SELECT ok((environment ->> 'xids_used')::bigint BETWEEN 100 AND 200,
    'transaction ids used: those of the updates and a few of the recorder''s')
FROM bench.runs
WHERE run_id = :run_id;

--
-- Who sees what
--
\o /dev/null
CREATE ROLE obs_stranger;
CREATE ROLE obs_reader IN ROLE pg_read_all_stats;
CREATE ROLE obs_runner LOGIN;
GRANT EXECUTE ON FUNCTION bench.run, bench.create_workload TO obs_runner;
CREATE FUNCTION public.obs_seen(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s %s %s', (SELECT sign(count(*)) FROM bench.waits WHERE run_id = run),
        (SELECT sign(count(*)) FROM bench.events WHERE run_id = run),
        (SELECT sign(count(*)) FROM bench.relations WHERE run_id = run),
        (SELECT sign(count(*)) FROM bench.statements WHERE run_id = run))
$$;
SELECT run_id FROM bench.events WHERE kind = 'vacuum' ORDER BY run_id LIMIT 1 \gset
\o
SELECT is(public.obs_seen(:run_id), '1 1 1 1', 'a superuser sees it all');
SET SESSION AUTHORIZATION obs_stranger;
SELECT
    is(public.obs_seen(:run_id), '0 0 0 0', 'a stranger sees no waits, events, relations, statements'),
    is(pg_temp.sqlstate_of(format('SELECT bench.report(%s, %L)', :run_id, format)), '42501',
        'and gets no report: ' || format)
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SELECT
    is(pg_temp.sqlstate_of(format('SELECT * FROM bench.findings(%s)', :run_id)), '42501', 'nor findings'),
    is(pg_temp.sqlstate_of('SELECT * FROM bench.wait_log'), '42501', 'nor the tables below'),
    is(pg_temp.sqlstate_of('SELECT * FROM bench.relation_log'), '42501', 'none of them');
SET SESSION AUTHORIZATION obs_reader;
SELECT
    is(public.obs_seen(:run_id), '1 1 1 1', 'pg_read_all_stats sees it'),
    is(pg_temp.sqlstate_of(format('SELECT bench.report(%s, %L)', :run_id, format)), 'none',
        'and gets a report: ' || format)
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SELECT is(pg_temp.sqlstate_of(format('SELECT * FROM bench.findings(%s)', :run_id)), 'none', 'and findings');
SET SESSION AUTHORIZATION obs_runner;
SELECT bench.create_workload('obs_own', 'SELECT 1;') \g /dev/null
SELECT bench.run('obs_own', 1, secs => 0.4, settings => '{"work_mem": "3MB"}') AS own \gset
SELECT
    is(left(public.obs_seen(:own), 1), '1', 'an ordinary role sees its own'),
    ok(bench.report(:own, 'json')::jsonb -> 'run' ->> 'role' = 'obs_runner', 'and its report'),
    is(pg_temp.setting(:own, 'unix_socket_directories'), NULL, 'its run does not show what is for superusers'),
    is(pg_temp.setting(:own, 'shared_preload_libraries'), NULL, 'as SHOW would not'),
    is(pg_temp.setting(:own, 'work_mem'), '3MB client', 'but what it set itself');
SELECT is_empty(format($$
    SELECT run_id
    FROM bench.runs
    WHERE run_id = %s AND strpos(environment::text || bench.report(run_id, 'json'), %L) > 0
$$, :own, '/pgbench_ext.'), 'the place of the socket is nowhere');
RESET SESSION AUTHORIZATION;
SELECT
    throws_ok('SELECT bench.report(2147483647)', '42704', NULL, 'a report of an unknown run'),
    throws_ok('SELECT * FROM bench.findings(2147483647)', '42704', NULL, 'findings of an unknown run'),
    throws_ok('SELECT bench.report(NULL)', '22004', NULL, 'run NULL'),
    throws_ok('SELECT * FROM bench.findings(NULL)', '22004', NULL, 'run NULL'),
    throws_ok(format('SELECT bench.report(%s, NULL)', :run_id), '22004', NULL, 'format NULL'),
    throws_ok(format('SELECT bench.report(%s, ''pdf'')', :run_id), '22023', NULL, 'an unknown format');

--
-- Switched off, and every other interval
--
SET pgbench_ext.observation = off;
SELECT bench.run('pk_update', 2, secs => 1, warmup => 0.5, sample_interval => 0.25) AS run_id \gset
SELECT
    ok(count(*) >= 6
        AND bool_and(num_nonnulls(waits, wal_bytes, wal_records, wal_fpi, wal_buffers_full, checkpoints,
            buffers_checkpoint, buffers_clean, buffers_backend, blks_hit, blks_read, temp_files, temp_bytes, cpu_user,
            cpu_system, cpu_iowait, cpu_steal, cpu_idle, memory_available_bytes, memory_dirty_bytes, disk_read_bytes,
            disk_written_bytes, throttled_secs) = 0),
        'off: nothing is observed'),
    ok(sum(transactions) > 0 AND bool_and(secs > 0), 'but measured')
FROM (SELECT * FROM bench.samples UNION ALL SELECT * FROM bench.warmup_samples) AS s
WHERE run_id = :run_id;
SELECT
    is_empty(format('SELECT * FROM bench.waits WHERE run_id = %s', :run_id), 'off: no waits'),
    is_empty(format('SELECT * FROM bench.events WHERE run_id = %s', :run_id), 'no events');
SELECT is(
    pg_temp.sqlstate_of(format('SELECT bench.report(%s, %L), * FROM bench.findings(%s)', :run_id, format, :run_id)),
    'none', 'off: a report can be made: ' || format)
FROM unnest('{text,markdown,json,html}'::text[]) AS format;
SET pgbench_ext.observation = alternate;
SELECT bench.run('pk_update', 2, secs => 2, sample_interval => 0.25) AS run_id \gset
SELECT
    is(count(*), 8::bigint, 'alternate'),
    is(count(DISTINCT (row_number % 2, seen)), 2::bigint, 'every other interval is observed'),
    is(count(*) FILTER (WHERE seen), 4::bigint, 'and every other is not'),
    ok(bool_and((wal_bytes IS NOT NULL) = seen
        AND (cpu_idle IS NOT NULL) = seen
        AND (checkpoints IS NOT NULL) = seen
        AND (disk_read_bytes IS NOT NULL) = seen
        AND (memory_available_bytes IS NOT NULL) = seen),
        'in all columns'),
    ok(bool_and(NOT seen OR abs(pg_temp.sum_of(waits) - 1) < 1e-9), 'shares add up to 1'),
    ok(bool_and(tps > 0), 'all are measured')
FROM (
    SELECT *, waits IS NOT NULL AS seen, row_number() OVER (ORDER BY elapsed) FROM bench.samples WHERE run_id = :run_id
) AS s;
SELECT ok(abs(sum(share) - 1) < 1e-9, 'so do the run''s') FROM bench.waits WHERE run_id = :run_id;
SELECT throws_ok('SET pgbench_ext.observation = sometimes', '22023', NULL, 'a wrong value is refused');
RESET pgbench_ext.observation;
SELECT is(current_setting('pgbench_ext.observation'), 'on', 'on is what it is otherwise');

--
-- What the findings say of an ordinary run, with samples as long as it asks for
--
\o /dev/null
CREATE FUNCTION pg_temp.finding(run bigint, of_topic text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(severity || ': ' || finding, ' ') FROM bench.findings(run) WHERE topic = of_topic
$$;
CREATE TABLE obs_sorted AS SELECT md5(i::text) AS info FROM generate_series(1, 20000) AS i;
SELECT bench.create_workload('obs_spill', 'SELECT count(*) FROM (SELECT info FROM public.obs_sorted ORDER BY info '
    'OFFSET 0) AS s;');
SELECT bench.create_workload('obs_contended', $$BEGIN;
UPDATE public.obs_other SET info = 'x' WHERE id = 1;
SELECT pg_sleep(0.02);
END;$$);
\o
SELECT bench.run('pk_select', 1, secs => 1) AS short, bench.run('pk_select', 1, secs => 2) AS enough \gset
SELECT is(format('%s %s', r.sample_interval, count(*)), '0.25 4', 'a run of 1 s has four samples')
FROM bench.runs r JOIN bench.samples USING (run_id)
WHERE run_id = :short
GROUP BY r.sample_interval;
SELECT
    is(pg_temp.finding(:short, 'samples'), 'notice: Dips were not looked for: the run has 4 samples, and 8 are needed.',
        'too few to look for dips'),
    ok(coalesce(pg_temp.finding(:enough, 'samples') NOT LIKE '%are needed%', true), 'of 2 s enough');
SELECT bench.run('obs_spill', 2, secs => 4, settings => '{"work_mem": "64kB"}') AS run_id \gset
SELECT matches(pg_temp.finding(:run_id, 'temp'), 'warning: .* MB of temporary files .*work_mem \(64kB\)',
    'sorts that spill are told, with their work_mem');
SELECT bench.run('obs_contended', 6, secs => 4) AS run_id \gset
SELECT
    matches(finding, 'Clients spent \d+ % of their time in Lock:.*: rows that other clients had locked are the limit\. .*at most',
        'clients that wait for one row are told what they wait for'),
    ok((figures ->> 'share')::float8 > 0.5 AND figures ->> 'limit' = 'row locks', 'most of their time')
FROM bench.findings(:run_id)
WHERE topic = 'waits';
SELECT bench.load('pk', 1000, options => '{"unlogged": true}') \g /dev/null
SELECT bench.run('pk_update', 1, transactions => 20) AS unlogged,
    bench.run('pk_select', 1, transactions => 20, variables => '{"rows": 5000}') AS beyond \gset
SELECT
    is(environment -> 'unlogged_tables', '["bench_data.pk"]', 'unlogged tables are in the environment'),
    matches(pg_temp.finding(:unlogged, 'unlogged'), '^notice: bench_data.pk is unlogged', 'and told'),
    is(pg_temp.finding(:unlogged, 'scale'), NULL, 'rows are as loaded'),
    matches(pg_temp.finding(:beyond, 'scale'), '^warning: .*rows to 5,000, but the fixture was loaded with rows 1,000',
        'rows beyond the tables are told')
FROM bench.runs
WHERE run_id = :unlogged;

-- nothing of all this made the audit wrong
SELECT is_empty(
    'SELECT run_id, counter, harness, server, reason FROM bench.audits WHERE ok = false AND run_id > ' || :first,
    'the audits find nothing');
\o /dev/null
SELECT bench.unload(name) FROM bench.fixtures;
\o
SELECT * FROM finish();
