-- A ladder of write-up A. Takes workload and before; adds to sweep_ids.

SELECT bench.sweep(:'workload', :'clients', secs => :secs, rounds => :rounds, before => :'before', tags => :'tags') AS sweep_id \gset
SELECT concat_ws(',', nullif(:'sweep_ids', ''), :'sweep_id') AS sweep_ids \gset
\echo :workload
WITH published AS (
    SELECT clients::int AS n, max(tps) FILTER (WHERE server = 'PostgreSQL 9.5') AS tps95,
           max(tps) FILTER (WHERE server = 'PostgreSQL 9.6') AS tps96
    FROM pg_temp.published WHERE source = 'A' AND workload = :'workload' GROUP BY clients
)
SELECT n AS clients, round(r.tps_avg::numeric, 1) AS "tps here", round((100 * r.tps_avg / max(r.tps_avg) OVER ())::numeric) AS "% here",
       p.tps95 AS "published 9.5", round(100 * p.tps95 / (SELECT max(tps95) FROM published)) AS "% of 9.5",
       p.tps96 AS "published 9.6", round(100 * p.tps96 / (SELECT max(tps96) FROM published)) AS "% of 9.6",
       round(p.tps96 / p.tps95, 2) AS "9.6 / 9.5"
FROM unnest(:'clients'::int[]) AS n
LEFT JOIN bench.sweep_results r ON r.sweep_id = :sweep_id AND r.clients = n
LEFT JOIN published p USING (n)
ORDER BY n;
