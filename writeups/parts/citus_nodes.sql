-- Every node coordinating, of write-up C, on the tables that are there. Takes each_clients; adds to sweep_ids.

SELECT bench.sweep('tpcb_select', ARRAY[:each_clients], secs => :secs, rounds => :rounds, before => 'vacuum', nodes => 'all', tags => :'tags') AS select_sweep \gset
SELECT bench.sweep('tpcb', ARRAY[:each_clients], secs => :secs, rounds => :rounds, before => 'vacuum', nodes => 'all', tags => :'tags') AS tpcb_sweep \gset
\set sweep_ids :sweep_ids,:select_sweep,:tpcb_sweep

SELECT format('Every node coordinates, clients on each: %s (published: 96, of tpcb 48 on the workers)', :each_clients) AS title \gset
\echo :title
WITH figures AS (
    SELECT s.sweep_id, s.workload, n.node, n.name, n.is_coordinator, avg(n.tps)::numeric AS tps, avg(n.latency_avg_ms)::numeric AS ms,
           avg(n.cpu_idle)::numeric AS idle, row_number() OVER (PARTITION BY s.sweep_id, n.is_coordinator ORDER BY n.node) AS place
    FROM bench.sweeps s JOIN bench.sweep_runs r USING (sweep_id) JOIN bench.nodes n USING (run_id)
    WHERE s.sweep_id IN (:select_sweep, :tpcb_sweep) AND r.status = 'completed'
    GROUP BY s.sweep_id, s.workload, n.node, n.name, n.is_coordinator
), published AS (
    SELECT workload, tps, substring(conditions FROM 'coordinator (\d+)')::numeric AS coordinator,
           string_to_array(substring(conditions FROM 'workers ([\d ]+)'), ' ')::numeric[] AS workers
    FROM pg_temp.published WHERE source = 'C' AND conditions LIKE 'every node%'
)
SELECT workload, role, name, round(tps, 1) AS tps, round(ms, 2) AS ms, round(100 * idle) AS "idle %", published
FROM (
    SELECT f.sweep_id, f.node, f.workload, CASE WHEN f.is_coordinator THEN 'coordinator' ELSE 'worker' END AS role, f.name, f.tps, f.ms, f.idle,
           CASE WHEN f.is_coordinator THEN p.coordinator ELSE p.workers[f.place] END AS published
    FROM figures f LEFT JOIN published p USING (workload)
    UNION ALL
    SELECT m.sweep_id, NULL, m.workload, 'total', (SELECT count(*) FROM figures f WHERE f.sweep_id = m.sweep_id) || ' nodes (published: 9)',
           m.tps, m.ms, NULL, p.tps
    FROM pg_temp.measured m LEFT JOIN published p USING (workload) WHERE m.sweep_id IN (:select_sweep, :tpcb_sweep)
) AS lines
ORDER BY sweep_id, role = 'total', role, node;
