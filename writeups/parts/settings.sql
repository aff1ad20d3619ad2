-- The conditions that a write-up states, beside those here. Takes writeup (its letter), and sweep_ids or run_ids, whose tables
-- are still there.

\echo 'The write-up''s conditions beside those here (* differs)'
WITH made AS (
    SELECT * FROM bench.runs
    WHERE run_id = ANY (:'run_ids') OR sweep_id = ANY (string_to_array(:'sweep_ids', ',')::bigint[])
), facts AS (
    SELECT current_setting('server_version') AS version,
           (SELECT (environment ->> 'processors')::int FROM made ORDER BY run_id DESC LIMIT 1) AS processors,
           (SELECT (environment ->> 'memory_bytes')::bigint FROM made ORDER BY run_id DESC LIMIT 1) AS memory,
           (SELECT max(bytes) FROM (SELECT sum(bytes_after) AS bytes FROM bench.relations JOIN made USING (run_id) GROUP BY run_id) AS sizes) AS data,
           (SELECT string_agg(DISTINCT query_mode, ', ') FROM made) AS query_mode,
           (SELECT min(secs) FROM made) AS secs,
           (SELECT string_agg(clients::text, ', ' ORDER BY place)
            FROM (SELECT clients, CASE :'writeup' WHEN 'B' THEN run_id ELSE clients END AS place
                  FROM made WHERE sweep_id IS NULL OR :'writeup' <> 'B' GROUP BY 1, 2) AS rungs) AS clients,
           (SELECT max(sample_interval) FROM made) AS sample_interval,
           (SELECT string_agg(format('%s %s', name, rows), ', ' ORDER BY name DESC) FROM bench.fixtures
            WHERE schema = :'schema' AND name <> 'shards') AS fixture_rows
), cluster AS (
    SELECT count(DISTINCT n.name) FILTER (WHERE NOT n.is_coordinator) AS workers,
           count(DISTINCT regexp_replace(n.name, ':\d+$', '')) AS machines,
           string_agg(DISTINCT n.processors::text, ', ') AS node_processors,
           max(m.clients) FILTER (WHERE m.nodes = 'local') AS local_clients, max(m.clients) FILTER (WHERE m.nodes = 'all') AS node_clients
    FROM made m JOIN bench.nodes n USING (run_id) WHERE n.name <> 'local'
), tables AS (
    SELECT f.name, c.reloptions, c.relpersistence, f.options,
           (SELECT t.spcname FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid JOIN pg_tablespace t ON t.oid = k.reltablespace
            WHERE i.indrelid = c.oid AND i.indisprimary) AS key_tablespace
    FROM bench.fixtures f JOIN pg_class c ON c.oid = f.relations[1]
    WHERE f.schema = :'schema'
)
SELECT condition, rtrim(regexp_replace(there, '(.{1,30})( |$)', E'\\1\n', 'g'), E'\n') AS "in the write-up",
       rtrim(regexp_replace(coalesce(here, 'unknown'), '(.{1,36})( |$)', E'\\1\n', 'g'), E'\n') AS here, CASE WHEN same THEN '' ELSE '*' END AS "*"
FROM facts CROSS JOIN cluster CROSS JOIN LATERAL (VALUES
    ('A', 'server version', '9.5, 9.6', version, version ~ '^9\.[56]'),
    ('B', 'server version', '9.4.1', version, version ~ '^9\.4'),
    ('C', 'server version', '10', version, version ~ '^10\y'),
    ('C', 'Citus', '7.5', (SELECT extversion FROM pg_extension WHERE extname = 'citus'),
     (SELECT extversion ~ '^7\.5' FROM pg_extension WHERE extname = 'citus')),
    ('D', 'server version', '10', version, version ~ '^10\y'),
    ('E', 'server version', '9.5alpha2', version, version ~ '^9\.5'),
    ('A', 'processors', '32 cores, 64 threads', processors::text, processors = 64),
    ('B', 'processors', '24 cores', processors::text, processors = 24),
    ('C', 'nodes', 'coordinator and 8 workers', format('coordinator and %s workers', workers), workers = 8),
    ('C', 'machines', '9', machines::text, machines = 9),
    ('C', 'processors of a node', '32 cores', node_processors, node_processors = '32'),
    ('D', 'processors', '56 cores', processors::text, processors = 56),
    ('A', 'memory', '512 GB', pg_size_pretty(memory), memory / 1e9 BETWEEN 490 AND 570),
    ('A', 'data fits in memory', 'yes', format('%s of %s', pg_size_pretty(data), pg_size_pretty(memory)), data < memory),
    ('A', 'rows', '100 million', format('%s of it', :scale), :scale = 1),
    ('B', 'rows', '50 million', format('%s of it', :scale), :scale = 1),
    ('C', 'rows', 'tpcb 100 million, events 2.56 billion', fixture_rows, fixture_rows = 'tpcb 100000000, events 2560000000'),
    ('D', 'rows', '10 million, 100 million, 1 billion', format('%s of it', :scale), :scale = 1),
    ('E', 'rows', '10 million', format('%s of it', :scale), :scale = 1),
    ('A', 'clients', '16, 32, 64, 72, 86, 96, 128, 192, 256', clients, clients = '16, 32, 64, 72, 86, 96, 128, 192, 256'),
    ('B', 'clients', '26, 38, 20', clients, clients = '26, 38, 20'),
    ('C', 'clients', '128; every node: 96, of tpcb 48 on workers', format('%s; every node: %s', local_clients, node_clients), false),
    ('D', 'clients', '48', clients, clients = '48'),
    ('E', 'clients', '2 x 64', clients, clients = '128'),
    ('A', 'seconds of a run', '120', secs::text, secs >= 120),
    ('B', 'seconds of a run', 'over 8 h', :secs::text, :secs >= 28800),
    ('C', 'seconds of a run', '120', secs::text, secs >= 120),
    ('D', 'seconds of a run', '120', secs::text, secs >= 120),
    ('E', 'seconds of a run', '120', secs::text, secs >= 120),
    ('A', 'statements', 'prepared', query_mode, query_mode = 'prepared'),
    ('A', 'load generator', 'on the server''s machine', 'none: sessions in the server', false),
    ('E', 'load generator', 'two, 64 clients each', 'none: sessions in the server', false),
    ('A', 'vacuum before a run', 'none', 'the load freezes and vacuums', false),
    ('A', 'freezing of pk', 'none, ages raised', (SELECT array_to_string(reloptions, ', ') FROM tables WHERE name = 'pk'),
     (SELECT array_to_string(reloptions, ',') ~ 'autovacuum_freeze_table_age' FROM tables WHERE name = 'pk')),
    ('A', 'autovacuum of wide', 'off', (SELECT array_to_string(reloptions, ', ') FROM tables WHERE name = 'wide'),
     (SELECT array_to_string(reloptions, ',') ~ 'autovacuum_enabled=(off|false)' FROM tables WHERE name = 'wide')),
    ('A', 'between rungs of _multi', 'truncated, checkpoint', (SELECT array_to_string(s.before, ', ') FROM bench.sweeps s JOIN made m USING (sweep_id)
      WHERE s.workload = 'insert_batch_multi' LIMIT 1),
     (SELECT s.before = '{truncate,checkpoint}' FROM bench.sweeps s JOIN made m USING (sweep_id) WHERE s.workload = 'insert_batch_multi' LIMIT 1)),
    ('B', 'sample interval', '10 s', format('%s s', sample_interval), sample_interval = 10),
    ('B', 'tablespace of the key', 'of its own', (SELECT coalesce(key_tablespace, 'the table''s') FROM tables WHERE name = 'pk'),
     (SELECT key_tablespace IS NOT NULL FROM tables WHERE name = 'pk')),
    ('B', 'autovacuum', 'on', current_setting('autovacuum'), current_setting('autovacuum') = 'on'),
    ('B', 'full_page_writes', 'on', current_setting('full_page_writes'), current_setting('full_page_writes') = 'on'),
    ('C', 'commit on several nodes', 'one-phase, and two-phase', 'two-phase', false),
    ('C', 'before runs of tpcb', 'vacuum', (SELECT string_agg(DISTINCT array_to_string(s.before, ', '), '; ') FROM bench.sweeps s JOIN made m USING (sweep_id)
      WHERE s.workload LIKE 'tpcb%'),
     (SELECT bool_and(s.before = '{vacuum}') FROM bench.sweeps s JOIN made m USING (sweep_id) WHERE s.workload LIKE 'tpcb%')),
    ('D', 'table', 'unlogged', (SELECT CASE relpersistence WHEN 'u' THEN 'unlogged' ELSE 'logged' END FROM tables WHERE name = 'pk'),
     (SELECT relpersistence = 'u' FROM tables WHERE name = 'pk')),
    ('D', 'primary key', 'before the rows', (SELECT format('%s the rows', coalesce(options ->> 'index', 'after')) FROM tables WHERE name = 'pk'),
     (SELECT options ->> 'index' = 'before' FROM tables WHERE name = 'pk')),
    ('D', 'sessions of the last load', '100', :'most_jobs', :'most_jobs' = '100'),
    ('E', 'table between runs', 'rebuilt', (SELECT string_agg(DISTINCT array_to_string(s.before, ', '), '; ') FROM bench.sweeps s JOIN made USING (sweep_id)),
     (SELECT bool_and(s.before = '{reload}') FROM bench.sweeps s JOIN made USING (sweep_id)))
) AS stated (writeup, condition, there, here, same)
WHERE writeup = :'writeup';

\echo 'Settings here that are not at their defaults; the write-up does not state its own'
SELECT s.value ->> 'name' AS setting, s.value ->> 'setting' AS value, s.value ->> 'source' AS source
FROM bench.runs, jsonb_array_elements(environment -> 'server_settings') AS s
WHERE run_id = (SELECT max(run_id) FROM bench.runs
                WHERE run_id = ANY (:'run_ids') OR sweep_id = ANY (string_to_array(:'sweep_ids', ',')::bigint[]))
  AND s.value ->> 'source' <> 'client'
  AND s.value ->> 'name' !~* '^(lc_|log_|datestyle|timezone|default_text_search_config|listen_addresses|port|unix_socket|cluster_name|application_name|client_encoding)'
ORDER BY 1;
