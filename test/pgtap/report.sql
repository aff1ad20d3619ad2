-- The report of a soak of eight hours, whose rows are planted: all of it is there, and the page stays small.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
SELECT bench.load('pk', 1000);
SELECT bench.run('pk_update', 2, secs => 0.5, sample_interval => 0.1) AS model \gset
SELECT nextval('bench_internal.run_id_seq') AS soak, set_config('report.model', :'model', false) AS model \gset
\o
-- The run itself and all that does not depend on its length are those of a short one.
DO $$
DECLARE
    relation regclass;
    columns text;
BEGIN
    FOREACH relation IN ARRAY
        ('{bench_internal.run_log,bench_internal.script_log,bench_internal.statement_log,bench_internal.wait_log,'
            'bench_internal.relation_log,bench_internal.audit_log,bench.latencies}')::regclass[]
    LOOP
        SELECT string_agg(quote_ident(attname), ', ') INTO columns
        FROM pg_attribute
        WHERE attrelid = relation AND attnum > 0 AND attname <> 'run_id';
        EXECUTE format($f$
            INSERT INTO %1$s (run_id, %2$s)
            SELECT (SELECT max(last_value) FROM bench_internal.run_id_seq), %2$s FROM %1$s WHERE run_id = %3$s
        $f$, relation, columns, current_setting('report.model'));
    END LOOP;
END $$;
UPDATE bench_internal.run_log SET secs = 28800, sample_interval = 1 WHERE run_id = :soak;
-- A checkpoint every five minutes, each with a dip; one interval that stands out.
INSERT INTO bench.samples (run_id, elapsed, secs, at, clients, transactions, tps, failed, retried, latency_avg_ms,
    latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms, wal_bytes, wal_records, wal_fpi,
    wal_buffers_full, checkpoints, buffers_checkpoint, buffers_clean, buffers_backend, blks_hit, blks_read, temp_files,
    temp_bytes, cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle, memory_available_bytes, memory_dirty_bytes,
    disk_read_bytes, disk_written_bytes, throttled_secs, waits, latency_histogram)
SELECT
    :soak,
    s,
    1,
    '2026-01-01'::timestamptz + s * interval '1 second',
    2,
    tps,
    tps,
    0,
    0,
    2000 / tps,
    1,
    1900 / tps,
    3000 / tps,
    5000 / tps,
    CASE WHEN s = 12345 THEN 4321 ELSE 20000 / tps END,
    tps * 300,
    tps * 2,
    fpi * tps,
    0,
    (s % 300 = 1)::int,
    100,
    0,
    0,
    tps * 4,
    0,
    0,
    0,
    0.3,
    0.1,
    0.05,
    0,
    0.55,
    8e9,
    1e8,
    0,
    5e6,
    0,
    jsonb_build_object('CPU', 0.2, 'Runnable', 0.05, 'IO:WALSync', 0.5, 'LWLock:WALWrite', 0.25),
    (
        SELECT jsonb_object_agg(b, 1 + (tps * exp(-abs(b - 33) * (1 + 0.2 * sin(s))))::int)
        FROM generate_series(20, 50) AS b
    )
FROM (
    SELECT
        s,
        (CASE WHEN s % 300 BETWEEN 1 AND 20 THEN 500 ELSE 1000 END * (1 + 0.03 * sin(s) * cos(s * 0.7)))::int AS tps,
        CASE WHEN s % 300 BETWEEN 1 AND 20 THEN 0.5 ELSE 0.01 END AS fpi
    FROM generate_series(1, 28800) AS s
) AS t;
INSERT INTO bench_internal.event_log (run_id, event, kind, detail, started, ended)
SELECT :soak, s / 300 + 1, 'checkpoint', 'timed', s, s + 150 FROM generate_series(0, 28500, 300) AS s;

CREATE TEMP TABLE page AS
SELECT
    bench.report(:soak, 'html') AS html,
    bench.report(:soak) AS text,
    bench.report(:soak, 'json')::jsonb AS json,
    bench.report(:soak, 'markdown') AS markdown;
SELECT cmp_ok(octet_length(html), '<', 3000000, 'the page is below 3 MB') FROM page;
SELECT ok(html LIKE format('%%id="%s"%%', id), format('it has %s', id))
FROM page,
    unnest('{plot-tps,plot-latency,plot-heat,plot-distribution,plot-waits,plot-wal,plot-processors}'::text[]) AS id;
SELECT ok(html LIKE '%each column%' OR html LIKE '%intervals%', 'it says that intervals are joined') FROM page;
SELECT is(jsonb_array_length(json -> 'samples' -> 'tps'), 28800, 'the JSON has every interval') FROM page;
SELECT is((json -> 'samples' -> 'latency_max_ms' ->> 12344)::float8, 4321::float8, 'and the one that stands out')
FROM page;
SELECT is((SELECT max(length(line)) FROM regexp_split_to_table(text, '\n') AS line) <= 100, true,
    'the text has 100 columns')
FROM page;
SELECT
    is(count(*), 1::bigint, 'the dips are one finding'),
    is(bool_and(finding LIKE '%95 times%'), true, 'of each checkpoint but the first, with which the run began'),
    is(bool_and(finding ~ 'full-page images'), true, 'that names their cause')
FROM bench.findings(:soak)
WHERE topic = 'dip';

-- It is gone as if it had not been.
DO $$
DECLARE
    relation regclass;
BEGIN
    FOREACH relation IN ARRAY
        ('{bench.samples,bench_internal.event_log,bench_internal.script_log,bench_internal.statement_log,'
            'bench_internal.wait_log,bench_internal.relation_log,bench_internal.audit_log,'
            'bench.latencies,bench_internal.run_log}')
            ::regclass[] LOOP
        EXECUTE format('DELETE FROM %s WHERE run_id = (SELECT max(last_value) FROM bench_internal.run_id_seq)',
            relation);
    END LOOP;
END $$;
\o /dev/null
SELECT bench.unload('pk');
\o
SELECT * FROM finish();
