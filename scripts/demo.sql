-- The headline benchmark: load a table, update it by primary key with 64 clients,
-- and read the result. make demo runs it; it serves as well in a database of your own.
\set QUIET on
\set ECHO queries
\pset footer off

CREATE EXTENSION pgbench_ext;

SELECT bench.load('pk', 1000000) AS rows;

SELECT bench.run('pk_update', clients => 64, secs => 5) AS run_id \gset

\x on
SELECT workload, clients, status, secs, transactions, failed,
       round(tps::numeric) AS tps,
       round(latency_avg_ms::numeric, 3) AS latency_avg_ms,
       round(latency_p50_ms::numeric, 3) AS latency_p50_ms,
       round(latency_p95_ms::numeric, 3) AS latency_p95_ms,
       round(latency_p99_ms::numeric, 3) AS latency_p99_ms,
       round(latency_max_ms::numeric, 3) AS latency_max_ms
  FROM bench.summary
 WHERE run_id = :run_id;

\x off
SELECT run_id, avg(tps), min(tps), max(tps), count(*) FROM bench.samples GROUP BY run_id;
