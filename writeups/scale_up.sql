-- Write-up A: how one server's throughput grows and falls with the number of clients, of 9.5 against 9.6.
--
--   psql -X -v scale=0.001 -v secs=10 -f writeups/scale_up.sql
--
-- Variables: see README.md. Here clients is the ladder.

\echo
\echo 'Write-up A: scale-up of one server (published: PostgreSQL 9.5 and 9.6, 32 cores, 64 threads)'
\ir parts/begin.sql
\set tags '{"writeup": "scale_up"}'
\set fixtures '{pk,wide,wide_multi}'

\if :{?clients}
    SELECT format('{%s}', btrim(:'clients', '{} ')) AS clients \gset
\else
    -- Where not even its first rung finds room, the powers of two that do.
    SELECT coalesce(nullif(ARRAY(SELECT n FROM unnest(ladder) AS n WHERE n <= :most_clients), '{}'),
                    ARRAY(SELECT n FROM unnest('{1,2,4,8}'::int[]) AS n WHERE n <= :most_clients)) AS clients,
           :most_clients < 256 AS is_cut
    FROM (VALUES ('{16,32,64,72,86,96,128,192,256}'::int[])) AS published (ladder) \gset
    \if :is_cut
        SELECT format('max_worker_processes = %s has room for %s clients; the ladder is cut to %s.',
                      current_setting('max_worker_processes'), :'most_clients', btrim(:'clients', '{}')) AS note \gset
        \echo :note
    \endif
\endif
\ir parts/room.sql
SELECT greatest(1, round(100e6 * :scale))::bigint AS rows, jsonb_build_object('schema', :'schema') AS options,
       jsonb_build_object('schema', :'schema', 'tables', (SELECT max(n) FROM unnest(:'clients'::int[]) AS n)) AS multi_options,
       CASE WHEN :'may_checkpoint' THEN 'truncate,checkpoint' ELSE 'truncate' END AS between_rungs \gset
\if :may_checkpoint
\else
    \echo 'No checkpoints between the rungs of the multi-table ladders: they take a superuser or a'
    \echo 'member of pg_checkpoint.'
\endif

SELECT bench.load('pk', :rows, options => :'options') AS loaded \gset
\echo
\set before none
\set workload pk_select
\ir parts/scale_up_ladder.sql
\set workload pk_update
\ir parts/scale_up_ladder.sql

SELECT bench.load('wide', 0, options => :'options') AS loaded \gset
\set workload insert_single
\ir parts/scale_up_ladder.sql
SELECT bench.load('wide', 0, options => :'options') AS loaded \gset
\set workload insert_batch
\ir parts/scale_up_ladder.sql

SELECT bench.load('wide_multi', 0, options => :'multi_options') AS loaded \gset
\set before :between_rungs
\set workload insert_single_multi
\ir parts/scale_up_ladder.sql
\set workload insert_batch_multi
\ir parts/scale_up_ladder.sql

\echo 'Where each curve peaks, and how much is lost from there to the last rung'
WITH points AS (
    SELECT 'here' AS server, s.workload, r.clients, r.tps_avg::numeric AS tps
    FROM bench.sweep_results r JOIN bench.sweeps s USING (sweep_id)
    WHERE r.sweep_id = ANY (string_to_array(:'sweep_ids', ',')::bigint[])
    UNION ALL
    SELECT server, workload, clients::int, tps FROM pg_temp.published WHERE source = 'A'
), peaks AS (
    SELECT server, workload, (array_agg(clients ORDER BY tps DESC))[1] AS peak, max(tps) AS tps,
           round(100 * (1 - (array_agg(tps ORDER BY clients DESC))[1] / nullif(max(tps), 0)), 1) AS drop
    FROM points GROUP BY server, workload
)
SELECT here.workload, here.peak, round(here.tps, 1) AS tps, here.drop AS "drop %",
       p95.peak AS "9.5 peak", p95.drop AS "9.5 drop %", p96.peak AS "9.6 peak", p96.drop AS "9.6 drop %"
FROM unnest('{pk_select,pk_update,insert_single,insert_batch,insert_single_multi,insert_batch_multi}'::text[])
     WITH ORDINALITY AS w (workload, place)
JOIN peaks here ON here.server = 'here' AND here.workload = w.workload
JOIN peaks p95 ON p95.server = 'PostgreSQL 9.5' AND p95.workload = w.workload
JOIN peaks p96 ON p96.server = 'PostgreSQL 9.6' AND p96.workload = w.workload
ORDER BY w.place;

SELECT count(DISTINCT n) AS rungs, count(DISTINCT n) >= 4 AS has_law FROM unnest(:'clients'::int[]) AS n \gset
\if :has_law
\echo 'The universal scalability law fitted to the rungs here (95 % intervals in brackets)'
SELECT s.workload, round(u.peak_clients::numeric, 1) AS "peak clients",
       '[' || round(u.peak_clients_low::numeric, 1) || ', ' || round(u.peak_clients_high::numeric, 1) || ']' AS interval,
       round(u.peak_tps::numeric, 1) AS "peak tps", u.verdict,
       CASE u.verdict WHEN 'fits' THEN round(u.sigma::numeric, 5) END AS sigma,
       CASE u.verdict WHEN 'fits' THEN round(u.kappa::numeric, 6) END AS kappa
FROM unnest(string_to_array(:'sweep_ids', ',')::bigint[]) WITH ORDINALITY AS i (sweep_id, place)
JOIN bench.sweeps s USING (sweep_id), LATERAL bench.scalability(i.sweep_id) u
ORDER BY i.place;
\else
    \echo 'The universal scalability law is left out: it takes four rungs, and there are' :rungs
    \echo 'Set clients to four numbers or more, such as -v clients=1,2,4,8.'
    \echo
\endif

-- The write-up compares two servers. On the one:
--   SELECT bench.export(array_agg(run_id)) FROM bench.runs WHERE tags @> '{"writeup": "scale_up"}' \g (format=unaligned tuples_only) runs.json
-- On the other, after this file has run there as well:
--   \set document `cat runs.json`
--   SELECT bench.import(:'document');
-- And then, for a workload and a rung (several runs a side, by rounds, for a verdict):
--   SELECT * FROM bench.compare('{1,2,3}', '{4,5,6}');

\set writeup A
\ir parts/settings.sql
\ir parts/end.sql
