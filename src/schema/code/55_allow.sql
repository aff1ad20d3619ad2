-- Who may start work: grants by words instead of lists of functions.

CREATE FUNCTION bench_internal.rights(what text)
    RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names text[] := CASE what
        WHEN 'run' THEN '{load,unload,create_fixture,drop_fixture,create_workload,drop_workload,add_feeder,drop_feeder,run,start,preflight,sweep,start_sweep,resume_sweep,ab,calibrate,capacity,start_capacity,fetch,import,prune,delete_run}'::text[]
        WHEN 'capture' THEN '{capture,start_capture,stop_capture,drop_capture,export_capture,import_capture,capture_log}'
        WHEN 'schedule' THEN '{schedule,unschedule,start_scheduled}'
        WHEN 'targets' THEN '{}'
    END;
BEGIN
    IF names IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = format('unrecognized right: %s', coalesce(quote_ident(what), 'NULL')),
            HINT = 'Available rights: run, capture, schedule, targets.';
    END IF;
    RETURN QUERY SELECT format('EXECUTE ON FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
        WHERE p.pronamespace = 'bench'::regnamespace AND p.proname = ANY (names) ORDER BY 1;
    IF what = 'targets' THEN
        RETURN NEXT 'USAGE ON FOREIGN DATA WRAPPER bench_wire';
    END IF;
END $$;
COMMENT ON FUNCTION bench_internal.rights IS 'What bench.allow grants for a word, as GRANT has it.';

CREATE FUNCTION bench.allow(role name, VARIADIC what text[] DEFAULT '{run}')
    RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted text;
BEGIN
    FOR granted IN SELECT r FROM unnest(what) AS w (word), bench_internal.rights(w.word) AS r LOOP
        EXECUTE format('GRANT %s TO %I', granted, role);
    END LOOP;
END $$;
COMMENT ON FUNCTION bench.allow IS
'Grants a role what starts work. what: run (loads, workloads, runs, sweeps, searches, comparisons, import, deleting what is its own), capture (captures of its own statements), schedule (jobs of pg_cron), targets (servers to connect to). For the owner of the extension and superusers.';

CREATE FUNCTION bench.disallow(role name, VARIADIC what text[] DEFAULT '{run,capture,schedule,targets}')
    RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted text;
BEGIN
    FOR granted IN SELECT r FROM unnest(what) AS w (word), bench_internal.rights(w.word) AS r LOOP
        EXECUTE format('REVOKE %s FROM %I', granted, role);
    END LOOP;
END $$;
COMMENT ON FUNCTION bench.disallow IS 'Takes back what bench.allow granted: everything, or what these words name.';

REVOKE ALL ON FUNCTION bench.allow, bench.disallow FROM PUBLIC;
