-- The nightly soak of compose.yaml, and the role by which Grafana reads its results.
\getenv password GRAFANA_PASSWORD
CREATE ROLE grafana LOGIN PASSWORD :'password' IN ROLE pg_read_all_stats;
SELECT bench.load('pk', 1000000);
SELECT bench.schedule('nightly', '0 2 * * *', 'pk_update', clients => 4, secs => 14400, sample_interval => 10);
SELECT cron.schedule('bench retention', '30 12 * * *', $$SELECT bench.prune('90 days')$$);
