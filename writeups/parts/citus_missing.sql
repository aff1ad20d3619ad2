-- What write-up C says where it cannot run. Takes problem.

\echo 'Nothing is run:' :problem
\echo
\echo 'To get there, with Citus 11.1 or newer:'
\echo ' 1. On every node: install Citus from its own packages (https://docs.citusdata.com), and this'
\echo '    extension; put citus first in shared_preload_libraries, restart, CREATE EXTENSION citus;'
\echo ' 2. on the coordinator: SELECT citus_set_coordinator_host(''its name'', 5432);'
\echo '    SELECT citus_add_node(''name of a worker'', 5432); for each, and CREATE EXTENSION pgbench_ext;'
\echo
\echo 'What it shows where it runs'
\echo ' - tpcb_select and tpcb over 8 and over 128 shards, against local tables, with the idle'
\echo '   processors of the coordinator and of the workers, and the latencies of each statement'
\echo ' - one INSERT of nine rows that land on nine shards, on two, on one; and of a single row'
\echo ' - every node coordinating: the load on all of them at once, TPS by node and their sum'
\echo ' - count_all and group_count over all shards'
\echo
\echo 'What was published'
SELECT workload, rtrim(regexp_replace(clients, '(.{1,16})( |$)', E'\\1\n', 'g'), E'\n') AS clients, tps,
       rtrim(regexp_replace(conditions, '(.{1,40})( |$)', E'\\1\n', 'g'), E'\n') AS conditions
FROM pg_temp.published WHERE source = 'C';
