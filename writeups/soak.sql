-- Write-up B: a soak of over eight hours, its samples in SQL, what became of the tables, and why the curve dips.
--
--   psql -X -v scale=0.01 -v secs=600 -f writeups/soak.sql
--
-- Variables: see README.md. Here clients are those of pk_update, pk_select and pk_insert, in this order; the last one counts
-- for those that are missing.

\echo
\echo 'Write-up B: a soak of over eight hours (published: PostgreSQL 9.4, 24 cores)'
-- 3057 samples of 10 s.
\if :{?secs} \else \set secs 30570 \endif
\ir parts/begin.sql
\set tags '{"writeup": "soak"}'
\set fixtures '{pk,log}'
\if :{?clients} \else \set clients '{26,38,20}' \endif
\if :{?index_tablespace} \else \set index_tablespace '' \endif
\if :{?change_system} \else \set change_system on \endif

-- Whole samples of 10 s of the full length; shorter soaks have as many, as far as 0.1 s allows. The write-up's inserts went on
-- for 1385 samples.
SELECT greatest(1, round(50e6 * :scale))::bigint AS rows,
       jsonb_strip_nulls(jsonb_build_object('schema', :'schema', 'info', 'now', 'crt_time', 'timestamptz',
           'index_tablespace', nullif(:'index_tablespace', ''))) AS options, jsonb_build_object('schema', :'schema') AS log_options,
       c[1] AS update_clients, c[least(2, cardinality(c))] AS select_clients, c[least(3, cardinality(c))] AS insert_clients,
       least(10, greatest(0.1, round(:secs / 3057.0, 1))) AS sample_interval,
       greatest(0.1, round((:secs * 1385 / 3057.0)::numeric, 1)) AS insert_secs, least(:secs, 3600) AS side_secs
FROM (SELECT format('{%s}', btrim(:'clients', '{} '))::int[]) AS given (c) \gset

SELECT format('{%s}', btrim(:'clients', '{} ')) AS clients \gset
\ir parts/room.sql
SELECT bench.load('pk', :rows, options => :'options') AS loaded \gset
SELECT bench.run('pk_update', clients => :update_clients, secs => :secs, sample_interval => :sample_interval, tags => :'tags')
    AS update_run \gset
SELECT bench.run('pk_select', clients => :select_clients, secs => :secs, sample_interval => :sample_interval, tags => :'tags')
    AS select_run \gset
SELECT bench.load('log', 0, options => :'log_options') AS loaded \gset
SELECT bench.run('pk_insert', clients => :insert_clients, secs => :insert_secs, sample_interval => :sample_interval, tags => :'tags')
    AS insert_run \gset
SELECT format('{%s,%s,%s}', :'update_run', :'select_run', :'insert_run') AS run_ids \gset

\echo
\echo 'TPS over the samples'
SELECT workload, server, clients, avg, min, max, count AS samples, round(100 * min / nullif(avg, 0), 1) AS "min, % of avg"
FROM (
    SELECT r.workload, 'here' AS server, r.clients::text AS clients, round(avg(s.tps)::numeric, 1) AS avg,
           round(min(s.tps)::numeric, 1) AS min, round(max(s.tps)::numeric, 1) AS max, count(*) AS count
    FROM bench.samples s JOIN bench.runs r USING (run_id) WHERE run_id = ANY (:'run_ids') GROUP BY r.run_id, r.workload, r.clients
    UNION ALL
    SELECT workload, 'published', clients, round(tps, 1), m[1]::numeric, m[2]::numeric, m[3]::bigint
    FROM pg_temp.published, regexp_matches(conditions, 'min ([0-9.]+) max ([0-9.]+) samples ([0-9]+)') AS m WHERE source = 'B'
) AS both_of
ORDER BY array_position('{pk_update,pk_select,pk_insert}', workload), server;

\echo 'Sizes, before and after'
SELECT r.workload, split_part(l.relation, '.', -1) AS relation, pg_size_pretty(l.bytes_before) AS before, pg_size_pretty(l.bytes_after) AS after,
       l.live_before AS "live before", l.live AS "live after", l.dead_before AS "dead before", l.dead AS "dead after"
FROM bench.relations l JOIN bench.runs r USING (run_id) WHERE run_id = ANY (:'run_ids')
ORDER BY run_id, l.kind DESC, l.relation;

\echo 'What was done to them'
SELECT r.workload, split_part(l.relation, '.', -1) AS relation, l.inserted, l.updated, l.hot_updated AS hot, round(100.0 * l.hot_updated / nullif(l.updated, 0), 1) AS "hot %",
       l.idx_scan AS "index scans", l.seq_scan AS "seq scans"
FROM bench.relations l JOIN bench.runs r USING (run_id) WHERE run_id = ANY (:'run_ids')
ORDER BY run_id, l.kind DESC, l.relation;

\echo 'Autovacuum'
SELECT r.workload, split_part(l.relation, '.', -1) AS relation, l.mod_since_analyze AS "changed since analyze", l.autovacuums AS vacuums,
       date_trunc('second', l.last_autovacuum) AS "last vacuum", l.autoanalyzes AS analyzes, date_trunc('second', l.last_autoanalyze) AS "last analyze"
FROM bench.relations l JOIN bench.runs r USING (run_id) WHERE run_id = ANY (:'run_ids') AND l.kind = 'table'
ORDER BY run_id, l.relation;

\echo 'Dips, what coincides with them, and what else was found'
SELECT r.workload, f.topic, rtrim(regexp_replace(f.finding, '(.{1,70})( |$)', E'\\1\n', 'g'), E'\n') AS finding
FROM bench.runs r, LATERAL bench.findings(r.run_id) WITH ORDINALITY AS f (severity, topic, finding, figures, advice, place)
WHERE r.run_id = ANY (:'run_ids')
ORDER BY f.topic <> 'dip', r.run_id, f.place;

SELECT :'is_superuser' AND :'change_system' AS tries_without \gset
\if :tries_without
    \echo 'full_page_writes off against on (a setting of the whole server, which is put back afterwards)'
    SELECT bench.load('pk', :rows, options => :'options') AS loaded \gset
    SELECT bench.sweep('pk_update', ARRAY[:update_clients], secs => :side_secs, rounds => :rounds, before => 'checkpoint', tags => :'tags', variants =>
        '{"off": {"system": {"full_page_writes": "off"}}, "on": {"system": {"full_page_writes": "on"}}}') AS sweep_id \gset
    \set sweep_ids :sweep_id
    SELECT r.variant AS setting, round(avg(s.tps)::numeric, 1) AS avg, round(min(s.tps)::numeric, 1) AS min,
           round(max(s.tps)::numeric, 1) AS max, sum(s.wal_fpi) AS "page images", pg_size_pretty(sum(s.wal_bytes)) AS wal,
           sum(s.checkpoints) AS checkpoints,
           (SELECT count(*) FROM bench.sweep_runs d, LATERAL bench.findings(d.run_id) f
            WHERE d.sweep_id = :sweep_id AND d.variant = r.variant AND f.topic = 'dip') AS "runs with dips"
    FROM bench.sweep_runs r JOIN bench.samples s USING (run_id)
    WHERE r.sweep_id = :sweep_id AND r.status = 'completed'
    GROUP BY r.variant ORDER BY r.variant;
\else
    \echo 'full_page_writes off against on is left out: it takes a superuser, and change_system on.'
    \echo
\endif

SELECT format('TPS over time, as a page with plots: psql -XAtc "SELECT bench.report(%s, ''html'')" -o soak.html', :'update_run') AS hint \gset
\echo :hint
\echo

\set writeup B
\ir parts/settings.sql
\ir parts/end.sql
