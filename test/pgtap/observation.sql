-- What a run observes beside its own counts: checkpoints, vacuums, WAL, processors, environment; and who sees it.
\ir ../lib/observation.sql

\o /dev/null
CREATE TABLE obs_other AS SELECT i AS id, md5(i::text) AS info FROM generate_series(1, 1000) AS i;
SELECT bench.create_workload('obs_mixed', $$SELECT pg_sleep(0.02);
\sleep 20 ms
SELECT sum(i) FROM (SELECT generate_series(1, 100000) AS i) AS s;$$);
\o

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
        AND min(wal_buffers_full) >= 0
        AND min(wal_syncs) >= 0,
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
    is(string_agg(kind, ' ' ORDER BY kind), 'analyze vacuum',
        'those of the fixture are events, that of another table is not'),
    is(array_agg(DISTINCT relation), '{bench_data.pk}', 'with the table''s name'),
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
            buffers_checkpoint, buffers_clean, buffers_backend, blks_hit, blks_read, temp_files, temp_bytes,
            wal_syncs) > 0
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
-- Environment
--
SELECT bench.run('pk_select', 1, transactions => 5,
    settings => '{"work_mem": "3MB", "random_page_cost": 1.5}') AS run_id \gset
SELECT is_empty(format($$
    SELECT key
    FROM unnest('{version,server_settings,data_checksums,processors,memory_bytes,swap_bytes,kernel,'
        'transparent_huge_pages,kernel_parameters,limits,filesystem,mount_options,clock_read_ns,fsync_us,'
        'unsupported_settings,unlogged_tables,coordinator_cpu_secs,xids_used,xid_age}'::text[]) AS key
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
    is(pg_temp.sqlstate_of('SELECT * FROM bench_internal.wait_log'), '42501', 'nor the tables below'),
    is(pg_temp.sqlstate_of('SELECT * FROM bench_internal.relation_log'), '42501', 'none of them');
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
            disk_written_bytes, throttled_secs, wal_syncs) = 0),
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
    is(pg_temp.finding(:short, 'samples'),
        'notice: Dips could not be detected: the run has 4 samples, and 8 are needed.',
        'too few to look for dips'),
    ok(coalesce(pg_temp.finding(:enough, 'samples') NOT LIKE '%are needed%', true), 'of 2 s enough');
SELECT bench.run('obs_spill', 2, secs => 4, settings => '{"work_mem": "64kB"}') AS run_id \gset
SELECT matches(pg_temp.finding(:run_id, 'temp'), 'warning: .* MB of temporary files .*work_mem \(64kB\)',
    'sorts that spill are told, with their work_mem');
SELECT bench.run('obs_contended', 6, secs => 4) AS run_id \gset
SELECT
    matches(finding, 'Clients spent \d+ % of their time in Lock:.*: rows that other clients '
        'had locked are the limit\. .*at most',
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

\ir ../lib/observation_end.sql
