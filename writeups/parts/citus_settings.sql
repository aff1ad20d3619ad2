-- Parameters of Citus' that decide what write-up C measures, which it does not state. Takes run_ids.

\echo 'Parameters of Citus here; the write-up does not state its own'
SELECT s.key AS setting, string_agg(DISTINCT s.value, ', ') AS "value on the nodes"
FROM bench.nodes n, jsonb_each_text(n.settings) AS s
WHERE n.run_id = ANY (:'run_ids') GROUP BY s.key ORDER BY s.key COLLATE "C";
