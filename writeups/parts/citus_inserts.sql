-- The inserts of write-up C. Takes one_clients and options; adds to sweep_ids.

SELECT bench.load('shards', 0, options => :'options') AS loaded \gset
SELECT bench.sweep('insert_9_shards', ARRAY[:one_clients], secs => :secs, rounds => :rounds, tags => :'tags') AS nine \gset
SELECT bench.sweep('insert_2_shards', ARRAY[:one_clients], secs => :secs, rounds => :rounds, tags => :'tags') AS two \gset
SELECT bench.sweep('insert_1_shard', ARRAY[:one_clients], secs => :secs, rounds => :rounds, tags => :'tags') AS one \gset
SELECT bench.sweep('insert_1_row', ARRAY[:one_clients], secs => :secs, rounds => :rounds, tags => :'tags') AS single \gset
\set insert_sweeps :nine,:two,:one,:single
\set sweep_ids :sweep_ids,:insert_sweeps

\echo 'INSERTs of nine rows, and of one (prepared: on other nodes, for each transaction; 1PC: one-phase'
\echo 'commit, gone since Citus 11.0: what was written over several connections is prepared on each first)'
WITH published AS (
    SELECT workload, max(tps) FILTER (WHERE conditions LIKE '%2pc') AS two_phase, max(tps) FILTER (WHERE conditions NOT LIKE '%2pc') AS one_phase
    FROM pg_temp.published WHERE source = 'C' GROUP BY workload
)
SELECT m.workload, round(m.tps, 1) AS tps, round(m.ms, 2) AS ms, round(m.prepared, 2) AS prepared,
       round(100 * m.coordinator) AS "idle c.", round(100 * m.workers) AS "idle w.",
       p.two_phase AS "published 2PC", p.one_phase AS "published 1PC"
FROM pg_temp.measured m LEFT JOIN published p USING (workload)
WHERE m.sweep_id = ANY (ARRAY[:insert_sweeps]) ORDER BY m.sweep_id;
