-- What the pgTAP files of observation have in common: \ir ../lib/observation.sql, after pgtap.sql

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
