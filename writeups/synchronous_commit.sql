-- Write-up E: what synchronous_commit costs reads and updates.
--
--   psql -X -v scale=0.01 -v secs=10 -f writeups/synchronous_commit.sql
--
-- Variables: see README.md.

\echo
\echo 'Write-up E: synchronous_commit off and on (published: PostgreSQL 9.5alpha2)'
\if :{?rounds} \else \set rounds 3 \endif
\ir parts/begin.sql
\set tags '{"writeup": "synchronous_commit"}'
\set fixtures '{name}'
\set variants '{"off": {"synchronous_commit": "off"}, "on": {"synchronous_commit": "on"}}'
\if :{?clients} \else \set clients 128 \endif
SELECT format('{%s}', btrim(:'clients', '{} ')) AS clients, greatest(1, round(10e6 * :scale))::bigint AS rows,
       jsonb_build_object('schema', :'schema') AS options \gset
\ir parts/room.sql

SELECT bench.load('name', :rows, options => :'options') AS loaded \gset
SELECT bench.sweep('name_select', :'clients', :secs, :rounds, variants => :'variants', before => 'reload', tags => :'tags')
    AS select_sweep \gset
SELECT bench.sweep('name_update', :'clients', :secs, :rounds, variants => :'variants', before => 'reload', tags => :'tags')
    AS update_sweep \gset
\set sweep_ids :select_sweep,:update_sweep

\echo
\echo 'TPS'
WITH published AS (
    SELECT workload, max(tps) FILTER (WHERE conditions = 'synchronous_commit=off') AS off,
           max(tps) FILTER (WHERE conditions = 'synchronous_commit=on') AS "on"
    FROM pg_temp.published WHERE source = 'E' GROUP BY workload
)
SELECT s.workload, n AS clients, round(r.tps_avg::numeric, 1) AS off, round(o.tps_avg::numeric, 1) AS "on",
       round((100 * (o.tps_avg / r.tps_avg - 1))::numeric, 1) AS "change %", p.off AS "published off", p."on" AS "published on",
       round(100 * (p."on" / p.off - 1), 1) AS "change %"
FROM bench.sweeps s
JOIN published p USING (workload)
CROSS JOIN unnest(:'clients'::int[]) AS n
LEFT JOIN bench.sweep_results r ON r.sweep_id = s.sweep_id AND r.clients = n AND r.variant = 'off'
LEFT JOIN bench.sweep_results o ON o.sweep_id = s.sweep_id AND o.clients = n AND o.variant = 'on'
WHERE s.sweep_id = ANY (ARRAY[:sweep_ids])
ORDER BY s.sweep_id, n;

\echo 'Do they differ? (on / off, with 95 % intervals)'
SELECT s.workload, f.clients, round(c.ratio::numeric, 3) AS ratio,
       '[' || round(c.ratio_low::numeric, 3) || ', ' || round(c.ratio_high::numeric, 3) || ']' AS interval, c.verdict,
       rtrim(regexp_replace(c.advice, '(.{1,30})( |$)', E'\\1\n', 'g'), E'\n') AS advice
FROM bench.sweep_results f
JOIN bench.sweep_results o ON o.sweep_id = f.sweep_id AND o.clients = f.clients AND o.variant = 'on'
JOIN bench.sweeps s ON s.sweep_id = f.sweep_id, LATERAL bench.compare(f.run_ids, o.run_ids) c
WHERE f.variant = 'off' AND f.sweep_id = ANY (ARRAY[:sweep_ids]) AND c.metric = 'tps'
ORDER BY s.sweep_id, f.clients;

\echo 'What else differs between the two sides'
SELECT s.workload, f.clients, d.what, d.baseline AS off, d.candidate AS "on"
FROM bench.sweep_results f
JOIN bench.sweep_results o ON o.sweep_id = f.sweep_id AND o.clients = f.clients AND o.variant = 'on'
JOIN bench.sweeps s ON s.sweep_id = f.sweep_id, LATERAL bench.compare(f.run_ids, o.run_ids) c,
     jsonb_to_recordset(c.differences) AS d (what text, baseline text, candidate text)
WHERE f.variant = 'off' AND f.sweep_id = ANY (ARRAY[:sweep_ids]) AND c.metric = 'tps' AND d.what <> 'setting synchronous_commit'
ORDER BY s.sweep_id, f.clients, d.what;

\set writeup E
\ir parts/settings.sql
\ir parts/end.sql
