-- What the pgTAP files of observation begin with: \ir ../lib/observation.sql

\pset fieldsep '\n'
SET client_min_messages = error;
\ir pgtap.sql
SELECT no_plan();
SELECT coalesce(max(run_id), 0) AS first FROM bench.runs \gset

\o /dev/null
SELECT bench.load('pk', 5000, options => '{"reloptions": {"autovacuum_enabled": false}}');
CREATE FUNCTION pg_temp.share(run bigint, name text) RETURNS double precision LANGUAGE sql AS $$
    SELECT coalesce(sum(share), 0)
    FROM bench.waits
    WHERE run_id = run AND name IN (wait_event_type, wait_event_type || ':' || wait_event)
$$;
-- Of the wait events of one interval, their sum.
CREATE FUNCTION pg_temp.sum_of(waits jsonb) RETURNS double precision LANGUAGE sql AS $$
    SELECT sum(value::double precision) FROM jsonb_each_text(waits)
$$;
-- When the measuring of a run began.
CREATE FUNCTION pg_temp.began(run bigint) RETURNS timestamptz LANGUAGE sql AS $$
    SELECT at - make_interval(secs => elapsed) FROM bench.samples WHERE run_id = run ORDER BY elapsed LIMIT 1
$$;
\o
