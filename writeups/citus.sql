-- Write-up C: Citus, one coordinator and eight workers, against plain tables on one node.
--
--   psql -X -f writeups/citus.sql

\echo
\echo 'Write-up C: Citus (published: PostgreSQL 10, Citus 7.5, coordinator and 8 workers, 32 cores each)'
\ir parts/begin.sql
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS has_citus \gset
\if :has_citus
    \echo 'Nothing is run: bench.run and bench.load do not drive Citus clusters yet.'
\else
    \echo 'Nothing is run: this write-up needs the extension Citus, which is not installed in this database.'
\endif
\echo
\echo 'What it shows where it runs, with 128 clients and 120 s a figure:'
\echo ' - tpcb_select and tpcb over 8 and over 128 shards, against local tables'
\echo ' - one INSERT of nine rows that land on nine shards, on two, on one; and of a single row'
\echo ' - every node coordinating: the load on all of them at once, TPS by node and their sum'
\echo ' - count_all and group_count over all shards'
\echo ' - latencies of each statement, and the idle processors of the coordinator and of the workers'
\echo
\echo 'What was published'
SELECT workload, rtrim(regexp_replace(clients, '(.{1,16})( |$)', E'\\1\n', 'g'), E'\n') AS clients, tps,
       rtrim(regexp_replace(conditions, '(.{1,40})( |$)', E'\\1\n', 'g'), E'\n') AS conditions
FROM pg_temp.published WHERE source = 'C';
