-- The analytic queries of write-up C. Takes rows and options; adds to run_ids.

SELECT :'options'::jsonb || '{"distribute": true}' AS events_options \gset
SELECT bench.load('events', :rows, options => :'events_options') AS loaded \gset
-- So many, as nobody knows how long one takes.
SELECT bench.run('count_all', transactions => 5, tags => :'tags') AS count_run \gset
SELECT bench.run('group_count', transactions => 5, tags => :'tags') AS group_run \gset
\set run_ids {:count_run,:group_run}

\echo 'Queries over all shards, one client (published: 2.56 billion rows, 58 GB/s)'
SELECT s.workload, f.rows, pg_size_pretty(f.table_bytes) AS size, s.transactions AS queries, round(s.latency_avg_ms::numeric, 1) AS ms,
       round((f.rows / s.latency_avg_ms / 1e3)::numeric, 2) AS "million rows/s",
       round((f.table_bytes / s.latency_avg_ms / 1e6)::numeric, 3) AS "GB/s",
       round(100 * n.coordinator::numeric) AS "idle c.", round(100 * n.workers::numeric) AS "idle w."
FROM bench.summary s
JOIN bench.fixtures f ON f.schema = :'schema' AND f.name = 'events'
CROSS JOIN LATERAL (
    SELECT avg(n.cpu_idle) FILTER (WHERE n.is_coordinator) AS coordinator, avg(n.cpu_idle) FILTER (WHERE NOT n.is_coordinator) AS workers
    FROM bench.nodes n WHERE n.run_id = s.run_id
) n
WHERE s.run_id = ANY (:'run_ids') ORDER BY s.run_id;
