-- Write-up C: Citus, one coordinator and eight workers, against plain tables on one node.
--
--   psql -X -v scale=0.01 -v secs=10 -f writeups/citus.sql
--
-- On the coordinator. Variables: see README.md.

\echo
\echo 'Write-up C: Citus (published: PostgreSQL 10, Citus 7.5, coordinator and 8 workers, 32 cores each)'
\ir parts/begin.sql
\set tags '{"writeup": "citus"}'
\set fixtures '{tpcb,shards,events}'
\set pairs '[]'

SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS is_ready,
       'this write-up needs the extension Citus, which is not installed in this database.' AS problem \gset
\if :is_ready
    SELECT count(*) AS nodes, coalesce(bool_or(groupid <> 0), false) AS is_ready, 'this write-up needs a Citus cluster with workers.' AS problem
    FROM pg_dist_node WHERE isactive AND noderole = 'primary' \gset
\endif
\if :is_ready
\else
    \ir parts/citus_missing.sql
    \quit
\endif

\if :{?clients} \else \set clients 128,96 \endif
-- A run also has a link to each node, and a run on all nodes a coordinator for its part on this one.
SELECT format('{%s}', btrim(:'clients', '{} ')) AS clients, :most_clients - :nodes - 1 AS most_clients,
       greatest(1, round(1000 * :scale))::int AS tpcb_scale, greatest(1, round(2.56e9 * :scale))::bigint AS rows,
       jsonb_build_object('schema', :'schema', 'shard_count', 128) AS options \gset
SELECT (:'clients'::int[])[1] AS one_clients, (:'clients'::int[])[least(2, cardinality(:'clients'::int[]))] AS each_clients \gset
\ir parts/room.sql
\ir parts/citus_room.sql

-- The means of the runs of each rung. On a cluster whose clients are all on this node, the node's number is 0.
BEGIN;
SET LOCAL client_min_messages = error; -- as in published.sql
CREATE OR REPLACE TEMPORARY VIEW measured AS
SELECT s.sweep_id, s.workload, avg(f.tps)::numeric AS tps, avg(f.ms)::numeric AS ms, avg(f.prepared)::numeric AS prepared,
       avg(f.coordinator)::numeric AS coordinator, avg(f.workers)::numeric AS workers
FROM bench.sweeps s
JOIN bench.sweep_runs r USING (sweep_id)
CROSS JOIN LATERAL (
    SELECT sum(n.tps) AS tps, sum(n.latency_avg_ms * n.transactions) / nullif(sum(n.transactions), 0) AS ms,
           sum(n.prepared) / nullif(sum(n.transactions), 0) AS prepared,
           avg(n.cpu_idle) FILTER (WHERE n.is_coordinator OR n.node = 0) AS coordinator,
           avg(n.cpu_idle) FILTER (WHERE NOT n.is_coordinator AND n.node <> 0) AS workers
    FROM bench.nodes n WHERE n.run_id = r.run_id
) f
WHERE r.status = 'completed'
GROUP BY s.sweep_id, s.workload;
COMMIT;

\set tables local
\set distribution '{"distribute": false}'
\ir parts/citus_tables.sql
\set tables '8 shards'
\set distribution '{"distribute": "account", "shard_count": 8}'
\ir parts/citus_tables.sql
\set tables '128 shards'
\set distribution '{"distribute": "account", "shard_count": 128}'
\ir parts/citus_tables.sql

\echo
SELECT format('From the coordinator, clients: %s (idle: %% of the processors'' time there, c., and on the workers, w.)', :one_clients) AS title \gset
\echo :title
WITH published AS (
    SELECT workload, conditions, tps FROM pg_temp.published WHERE source = 'C'
)
SELECT w AS workload, t.tables, round(m.tps, 1) AS tps, round(m.ms, 2) AS ms,
       round(100 * m.tps / first_value(m.tps) OVER pair) AS "% local",
       round(100 * m.coordinator) AS "idle c.", round(100 * m.workers) AS "idle w.",
       p.tps AS published, round(100 * p.tps / first_value(p.tps) OVER pair) AS "% local"
FROM jsonb_to_recordset(:'pairs') AS t (place int, tables text, tpcb_select bigint, tpcb bigint)
CROSS JOIN unnest('{tpcb_select,tpcb}'::text[]) AS w
LEFT JOIN pg_temp.measured m ON m.sweep_id = CASE w WHEN 'tpcb' THEN t.tpcb ELSE t.tpcb_select END
LEFT JOIN published p ON p.workload = w AND p.conditions ~ ('\m' || t.tables)
WINDOW pair AS (PARTITION BY w ORDER BY t.place)
ORDER BY w DESC, t.place;

\echo 'tpcb by statements, means in ms'
WITH times AS (
    SELECT t.tables, l.command, l.statement, sum(l.latency_avg_ms * l.count) / nullif(sum(l.count), 0) AS ms
    FROM jsonb_to_recordset(:'pairs') AS t (tables text, tpcb bigint)
    JOIN bench.sweep_runs r ON r.sweep_id = t.tpcb
    JOIN bench.statements l USING (run_id)
    GROUP BY 1, 2, 3
)
SELECT CASE WHEN length(statement) > 55 THEN left(statement, 52) || '...' ELSE statement END AS statement,
       round((max(ms) FILTER (WHERE tables = 'local'))::numeric, 4) AS local,
       round((max(ms) FILTER (WHERE tables = '8 shards'))::numeric, 4) AS "8 shards",
       round((max(ms) FILTER (WHERE tables = '128 shards'))::numeric, 4) AS "128 shards"
FROM times GROUP BY command, times.statement ORDER BY command;

\ir parts/citus_inserts.sql
\ir parts/citus_nodes.sql
\ir parts/citus_analytic.sql

-- Saturated processors show in the columns of idle ones above.
\echo 'What was found on the cluster (no rows: nothing)'
SELECT run_id, workload, nodes, topic, rtrim(regexp_replace(finding, '(.{1,45})( |$)', E'\\1\n', 'g'), E'\n') AS finding
FROM bench.runs r, LATERAL bench.findings(r.run_id) WITH ORDINALITY AS f (severity, topic, finding, figures, advice, place)
WHERE (run_id = ANY (:'run_ids') OR sweep_id = ANY (string_to_array(:'sweep_ids', ',')::bigint[]))
  AND topic IN ('node', 'start', 'coordinator', 'balance', 'connections', 'sslmode', 'prepared')
ORDER BY run_id, f.place;

\set writeup C
\ir parts/settings.sql
\ir parts/citus_settings.sql
\ir parts/end.sql
