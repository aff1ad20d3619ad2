-- Processor time per transaction: what the kernel says that the clients' processes used, however long they took.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
DROP TABLE IF EXISTS public.cpu_used;
CREATE TABLE public.cpu_used (client int, ticks bigint);
-- Hundredths of a second that this process has had of processors: utime and stime of proc(5), which are in the 12th and
-- 13th place after the command's name.
CREATE OR REPLACE FUNCTION public.cpu_ticks() RETURNS bigint LANGUAGE sql AS $$
    SELECT field[12]::bigint + field[13]::bigint
    FROM regexp_split_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '.*\) ', ''), ' ') AS field
$$;
-- Uses so many of them, and returns how many it used.
CREATE OR REPLACE FUNCTION public.cpu_burn(ticks bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint := public.cpu_ticks();
BEGIN
    WHILE public.cpu_ticks() < before + ticks LOOP
        PERFORM sum(i) FROM generate_series(1, 2000) AS i;
    END LOOP;
    RETURN public.cpu_ticks() - before;
END $$;
-- The same in a session's first transaction alone.
CREATE OR REPLACE FUNCTION public.cpu_burn_first(ticks bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('cpu.burnt', true) IS DISTINCT FROM 'yes' THEN
        PERFORM public.cpu_burn(ticks), set_config('cpu.burnt', 'yes', false);
    END IF;
END $$;
SELECT bench.create_workload('cpu_known', E'SELECT public.cpu_burn(20) AS used \\gset\n'
    'INSERT INTO public.cpu_used VALUES (:client_id, :used);');
SELECT bench.create_workload('cpu_of', 'SELECT public.cpu_burn(:ticks);');
SELECT bench.create_workload('cpu_first', 'SELECT public.cpu_burn_first(80);');
SELECT bench.create_workload('cpu_sleep', 'SELECT pg_sleep(0.3);');
SELECT bench.create_workload('cpu_fails', 'SELECT 1 / 0;');
\o

--
-- The figure
--
SELECT bench.run('cpu_known', clients => 3, transactions => 3) AS known \gset
SELECT
    is(s.transactions, 9::bigint, 'each client has used processor time three times'),
    ok(u.cpu_us BETWEEN 200000 AND 1000000, 'of which the kernel knows'),
    ok(s.server_cpu_us / u.cpu_us BETWEEN 0.9 AND 1.5,
        format('server_cpu_us is what it knows, of a transaction: %s, %s', s.server_cpu_us, u.cpu_us))
FROM bench.summary s, (SELECT 10000 * avg(ticks) AS cpu_us FROM public.cpu_used) u
WHERE run_id = :known;

SELECT bench.run('cpu_sleep', clients => 2, transactions => 2) AS run_id \gset
SELECT ok(latency_avg_ms >= 300 AND server_cpu_us BETWEEN 0 AND 100000,
    format('sleeping takes time and no processor time: %s ms, %s µs', latency_avg_ms, server_cpu_us))
FROM bench.summary WHERE run_id = :run_id;

SELECT ok((environment ->> 'server_context_switches')::float8 BETWEEN 1 AND 100,
    format('it takes a context switch at least: %s', environment ->> 'server_context_switches'))
FROM bench.runs WHERE run_id = :run_id;
SELECT is(environment ->> 'driver_context_switches', NULL, 'the engine has no driver beside the server')
FROM bench.runs WHERE run_id = :run_id;

-- It is under way when the measurement starts, and is the first that is counted.
SELECT bench.run('cpu_first', transactions => 4, warmup => 0.2) AS run_id \gset
SELECT
    is(transactions, 4::bigint, 'a transaction that started in the warm-up is counted'),
    ok(server_cpu_us BETWEEN 0 AND 100000, format('its processor time is not: %s µs', server_cpu_us))
FROM bench.summary WHERE run_id = :run_id;

SELECT bench.run('cpu_fails', transactions => 1) AS run_id \gset
SELECT is(server_cpu_us, NULL, 'nothing committed, no processor time per transaction')
FROM bench.summary WHERE run_id = :run_id;
SET pgbench_ext.observation = off;
SELECT bench.run('cpu_of', transactions => 2, variables => '{"ticks": 2}') AS run_id \gset
RESET pgbench_ext.observation;
SELECT ok(server_cpu_us > 0, 'clients count it without an observer, too') FROM bench.summary WHERE run_id = :run_id;
SELECT bench.start('cpu_of', secs => 60, variables => '{"ticks": 1}') AS stopped \gset
DO $$
BEGIN
    WHILE NOT EXISTS (SELECT FROM bench.progress WHERE phase = 'measurement' AND transactions > 2) LOOP
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;
SELECT is(server_cpu_us, NULL, 'a run under way has none yet')
FROM bench.summary WHERE run_id = :stopped;
SELECT bench.stop(:stopped), bench.wait(:stopped) \g /dev/null
SELECT ok(server_cpu_us > 0, 'one that was stopped has its own')
FROM bench.summary WHERE run_id = :stopped;

--
-- Where it is shown
--
SELECT server_cpu_us AS cpu_us FROM bench.summary WHERE run_id = :known \gset
SELECT is(server_cpu_us, :cpu_us::float8, 'it is in bench.nodes') FROM bench.nodes WHERE run_id = :known;
SELECT is(server_cpu_us, :cpu_us::float8, 'in bench.history') FROM bench.history WHERE run_id = :known;
SELECT
    is((bench.report(:known, 'json')::jsonb #>> '{summary,server_cpu_us}')::float8, :cpu_us::float8,
        'in the report as JSON'),
    is(substring(bench.report(:known, 'openmetrics') FROM 'server_cpu_seconds{[^}]*} (.*?)\n')::float8::numeric(20,12),
        (:cpu_us::float8 / 1e6)::numeric(20,12), 'in seconds for Prometheus'),
    matches(bench.report(:known), 'Processor time\n─+\n  server, per transaction: [0-9,]+ µs\n', 'in the text');
SELECT (bench.import(bench.export(ARRAY[:known])))[1] AS imported \gset
SELECT is(server_cpu_us, :cpu_us::float8, 'an imported run has it') FROM bench.summary WHERE run_id = :imported;
SELECT (bench.import(bench.export(ARRAY[:stopped]) #- '{run_log,0,server_cpu_us}'))[1] AS imported \gset
SELECT is(server_cpu_us, NULL, 'unless it comes from a version that did not count it')
FROM bench.summary WHERE run_id = :imported;
SELECT bench.sweep('cpu_of', '{1}', secs => 0.5, rounds => 2, variables => '{"ticks": 1}') AS sweep \gset
SELECT
    is(s.server_cpu_us::numeric(20,6), avg(u.server_cpu_us)::numeric(20,6), 'in bench.sweep_results'),
    is(s.server_cpu_us::numeric(20,6), avg(r.server_cpu_us)::numeric(20,6), 'in bench.sweep_runs'),
    is((bench.sweep_report(:sweep, 'json')::jsonb #>> '{results,0,server_cpu_us}')::numeric(20,6),
        s.server_cpu_us::numeric(20,6), 'in the report of a sweep')
FROM bench.sweep_results s JOIN bench.sweep_runs r USING (sweep_id) JOIN bench.summary u USING (run_id)
WHERE s.sweep_id = :sweep
GROUP BY s.server_cpu_us;

--
-- Comparisons: by twice the processor time
--
SELECT
    array_agg(run_id) FILTER (WHERE ticks = 6) AS a,
    array_agg(run_id) FILTER (WHERE ticks = 12) AS b
FROM (
    SELECT ticks, bench.run('cpu_of', transactions => 4, variables => jsonb_build_object('ticks', ticks)) AS run_id
    FROM unnest('{6,12,6,12,6,12}'::int[]) AS ticks
) AS made \gset
SELECT
    ok(ratio BETWEEN 1.4 AND 2.8, format('bench.compare has the ratio: %s', ratio)),
    is(verdict, 'slower', 'more processor time is slower')
FROM bench.compare(:'a', :'b') WHERE metric = 'server_cpu_us';
SELECT matches(bench.compare_report(:'a', :'b'), 'CPU per transaction, µs +[0-9]', 'so does the report');
SELECT * FROM finish();

\o /dev/null
DROP FUNCTION public.cpu_burn_first, public.cpu_burn, public.cpu_ticks;
DROP TABLE public.cpu_used;
