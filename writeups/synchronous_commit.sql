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
SELECT bench.sweep('name_select', :'clients', secs => :secs, rounds => :rounds, variants => :'variants', before => 'reload', tags => :'tags')
    AS select_sweep \gset
SELECT bench.sweep('name_update', :'clients', secs => :secs, rounds => :rounds, variants => :'variants', before => 'reload', tags => :'tags')
    AS update_sweep \gset
\set sweep_ids :select_sweep,:update_sweep

-- The sides of a round ran one after the other, so they are compared as a pair. Ratios are of geometric means, and so is TPS.
CREATE TEMPORARY TABLE compared AS
WITH pairs AS (
    SELECT f.sweep_id, f.clients, array_agg(f.run_id ORDER BY f.round) AS off, array_agg(o.run_id ORDER BY o.round) AS "on",
           exp(avg(ln(nullif(f.tps, 0))))::numeric AS off_tps, exp(avg(ln(nullif(o.tps, 0))))::numeric AS on_tps
    FROM bench.sweep_runs f JOIN bench.sweep_runs o USING (sweep_id, clients, round)
    WHERE sweep_id = ANY (ARRAY[:sweep_ids]) AND f.variant = 'off' AND o.variant = 'on'
      AND f.status = 'completed' AND o.status = 'completed'
    GROUP BY f.sweep_id, f.clients
)
SELECT sweep_id, clients, cardinality(off) AS pairs, off_tps, on_tps, m.*, report #> '{comparison,differences}' AS differences
FROM pairs, LATERAL (SELECT bench.compare_report(off, "on", 'json', paired => true)::jsonb) AS c (report),
     jsonb_to_recordset(report #> '{comparison,metrics}')
         AS m (metric text, ratio numeric, ratio_low numeric, ratio_high numeric, verdict text, advice text)
WHERE m.metric = 'tps';

\echo
\echo 'TPS, geometric means of the rounds'
WITH published AS (
    SELECT workload, max(tps) FILTER (WHERE conditions = 'synchronous_commit=off') AS off,
           max(tps) FILTER (WHERE conditions = 'synchronous_commit=on') AS "on"
    FROM pg_temp.published WHERE source = 'E' GROUP BY workload
)
SELECT s.workload, n AS clients, round(c.off_tps) AS off, round(c.on_tps) AS "on", round(100 * (c.ratio - 1), 1) AS "change %",
       p.off AS "published off", p."on" AS "published on", round(100 * (p."on" / p.off - 1), 1) AS "published %"
FROM bench.sweeps s
JOIN published p USING (workload)
CROSS JOIN unnest(:'clients'::int[]) AS n
LEFT JOIN pg_temp.compared c ON c.sweep_id = s.sweep_id AND c.clients = n
WHERE s.sweep_id = ANY (ARRAY[:sweep_ids])
ORDER BY s.sweep_id, n;

\echo 'Do they differ? (on / off within the pairs, with 95 % intervals)'
SELECT s.workload, c.clients, c.pairs, round(c.ratio, 3) AS ratio,
       '[' || round(c.ratio_low, digits) || ', ' || round(c.ratio_high, digits) || ']' AS interval, c.verdict,
       rtrim(regexp_replace(c.advice, '(.{1,22})( |$)', E'\\1\n', 'g'), E'\n') AS advice
FROM pg_temp.compared c JOIN bench.sweeps s USING (sweep_id),
     -- two pairs may have an interval over several powers of ten
     LATERAL (SELECT CASE WHEN c.ratio_high < 10 THEN 3 ELSE 1 END) AS d (digits)
ORDER BY c.sweep_id, c.clients;

\echo 'What else differs between the two sides'
SELECT s.workload, c.clients, d.what, d.baseline AS off, d.candidate AS "on"
FROM pg_temp.compared c JOIN bench.sweeps s USING (sweep_id),
     jsonb_to_recordset(c.differences) AS d (what text, baseline text, candidate text)
WHERE d.what <> 'setting synchronous_commit'
ORDER BY c.sweep_id, c.clients, d.what;

\set writeup E
\ir parts/settings.sql
\ir parts/end.sql
