-- Write-up D: does speed fall as the table grows?
--
--   psql -X -v scale=0.001 -v secs=10 -f writeups/table_growth.sql
--
-- Variables: see README.md. jobs are the sessions that load the largest table.

\echo
\echo 'Write-up D: does speed fall as the table grows? (published: PostgreSQL 10, 56 cores)'
\ir parts/begin.sql
\set tags '{"writeup": "table_growth"}'
\set fixtures '{pk}'
\if :{?jobs} \else \set jobs 100 \endif
\if :{?clients} \else \set clients 48 \endif
SELECT format('{%s}', btrim(:'clients', '{} ')) AS clients, least(:jobs, greatest(1, :most_clients)) AS most_jobs,
       jsonb_build_object('schema', :'schema', 'unlogged', true, 'info', 'short', 'index', 'before') AS options, '[]' AS sizes \gset
\ir parts/room.sql

-- Each size is loaded once for all its workloads: a billion rows take long, and the load's rate is a result of its own.
\set published_rows 10000000
\set load_jobs 1
\ir parts/table_growth_size.sql
\set published_rows 100000000
\ir parts/table_growth_size.sql
\set published_rows 1000000000
\set load_jobs :most_jobs
\ir parts/table_growth_size.sql
SELECT bench.sweep('pk_update_hot', :'clients', secs => :secs, rounds => :rounds, tags => :'tags') AS hot_sweep \gset
SELECT concat_ws(',', :'sweep_ids', :'hot_sweep') AS sweep_ids \gset

CREATE OR REPLACE TEMPORARY VIEW growth AS
SELECT z.published_rows, 'here' AS server, z.rows, n AS clients, z.rows_per_sec AS load, z.levels,
       max(r.tps_avg) FILTER (WHERE s.workload = 'pk_select')::numeric AS selects,
       max(r.tps_avg) FILTER (WHERE s.workload = 'pk_update')::numeric AS updates,
       max(r.tps_avg) FILTER (WHERE s.workload = 'pk_update_hot')::numeric AS hot
FROM jsonb_to_recordset(:'sizes') AS z (published_rows bigint, rows bigint, rows_per_sec numeric, levels int, sweeps bigint[])
CROSS JOIN unnest(:'clients'::int[]) AS n
LEFT JOIN bench.sweep_results r
    ON r.clients = n AND (r.sweep_id = ANY (z.sweeps) OR z.published_rows = 1000000000 AND r.sweep_id = :hot_sweep)
LEFT JOIN bench.sweeps s USING (sweep_id)
GROUP BY z.published_rows, z.rows, n, z.rows_per_sec, z.levels
UNION ALL
SELECT rows, 'published', rows, (max(clients) FILTER (WHERE workload <> 'load'))::int, max(tps) FILTER (WHERE workload = 'load'), NULL,
       max(tps) FILTER (WHERE workload = 'pk_select'), max(tps) FILTER (WHERE workload = 'pk_update'),
       max(tps) FILTER (WHERE workload = 'pk_update_hot')
FROM pg_temp.published,
     LATERAL (SELECT CASE WHEN conditions LIKE '10 million%' THEN 10000000 WHEN conditions LIKE '100 million%' THEN 100000000
                     WHEN conditions LIKE '1 billion%' THEN 1000000000 END AS rows) AS size
WHERE source = 'D' GROUP BY rows;

\echo
\echo 'Load rate and TPS by table size, and the levels of the primary key''s B-tree (not published)'
SELECT server, rows, clients, round(load) AS "load rows/s", round(selects, 1) AS pk_select, round(updates, 1) AS pk_update,
       round(hot, 1) AS pk_update_hot, levels
FROM pg_temp.growth ORDER BY published_rows, server, clients;

\echo 'The same in % of the smallest table''s'
SELECT server, rows, clients, round(100 * load / first_value(load) OVER w) AS "load rows/s",
       round(100 * selects / first_value(selects) OVER w) AS pk_select, round(100 * updates / first_value(updates) OVER w) AS pk_update
FROM pg_temp.growth
WINDOW w AS (PARTITION BY server, clients ORDER BY published_rows)
ORDER BY published_rows, server, clients;

-- How far apart the samples of a run are says how far apart two runs may be that differ by nothing.
SELECT round((100 * percentile_cont(0.5) WITHIN GROUP (ORDER BY u.tps_stddev / nullif(u.tps_avg, 0)))::numeric, 1) AS noise,
       :secs < 30 AND :rounds < 3 AS is_short
FROM bench.sweep_runs r JOIN bench.summary u USING (run_id)
WHERE r.sweep_id = ANY (string_to_array(:'sweep_ids', ',')::bigint[]) AND r.status = 'completed' \gset
\echo 'Samples within a run vary by' :noise '% (standard deviation, median of the runs).'
\if :is_short
    \echo 'Too short to tell growth from noise: with' :rounds 'x' :secs 's, differences between sizes may be chance.'
    \echo 'Set secs to 30 or more, or rounds to 3 or more.'
\endif
\echo

\set writeup D
\ir parts/settings.sql
\ir parts/end.sql
