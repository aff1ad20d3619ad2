-- Who may start work: grants by words instead of lists of functions. All is bound to these very functions, whatever stands
-- under their names later.

CREATE FUNCTION bench_internal.rights(what text[])
    RETURNS SETOF text STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT format('EXECUTE ON FUNCTION %s', p.oid::regprocedure) AS privilege
    FROM (VALUES
        ('run', '{load,start_load,unload,create_fixture,drop_fixture,create_workload,drop_workload,add_feeder,drop_feeder,run,start,preflight,sweep,start_sweep,resume_sweep,ab,answers,duel,start_duel,verify,calibrate,capacity,start_capacity,screen,start_screen,index_worth,start_index_worth,rehearse,start_rehearse,fetch,import,prune,delete_run,recall}'::text[]),
        ('capture', '{capture,start_capture,stop_capture,drop_capture,export_capture,import_capture,capture_log}'),
        ('schedule', '{schedule,unschedule,start_scheduled}')) AS w (word, names)
    JOIN pg_proc p ON p.proname = ANY (w.names) AND p.pronamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
    WHERE w.word = ANY (what)
    UNION ALL
    SELECT 'USAGE ON FOREIGN DATA WRAPPER bench_wire' AS privilege WHERE 'targets' = ANY (what);
END;
COMMENT ON FUNCTION bench_internal.rights IS 'Privileges of these groups of bench.allow, as GRANT takes them.';

CREATE FUNCTION bench_internal.change_rights(command text, role name, what text[], rights text[])
    RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed text;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE read_only_sql_transaction USING MESSAGE = 'cannot change privileges on a standby',
            HINT = 'Do it on the primary, from which the standby receives it.';
    END IF;
    FOREACH changed IN ARRAY what LOOP
        IF (changed IN ('run', 'capture', 'schedule', 'targets')) IS NOT TRUE THEN
            RAISE invalid_parameter_value USING MESSAGE = format('unrecognized right: %s', coalesce(quote_ident(changed), 'NULL')),
                HINT = 'Available rights: run, capture, schedule, targets.';
        END IF;
    END LOOP;
    FOREACH changed IN ARRAY rights LOOP
        EXECUTE format(command, changed, role);
    END LOOP;
END $$;
COMMENT ON FUNCTION bench_internal.change_rights IS 'Grants or revokes, for bench.allow and bench.disallow.';

CREATE FUNCTION bench.allow(role name, VARIADIC what text[] DEFAULT '{run}')
    RETURNS void
BEGIN ATOMIC
    SELECT bench_internal.change_rights('GRANT %s TO %I', role, what, ARRAY(SELECT bench_internal.rights(what)));
END;
COMMENT ON FUNCTION bench.allow IS
'Grants a role EXECUTE on functions that start work or change something, in groups: run, capture, schedule, targets. For superusers and the owner of the extension.';

CREATE FUNCTION bench.disallow(role name, VARIADIC what text[] DEFAULT '{run,capture,schedule,targets}')
    RETURNS void
BEGIN ATOMIC
    SELECT bench_internal.change_rights('REVOKE %s FROM %I', role, what, ARRAY(SELECT bench_internal.rights(what)));
END;
COMMENT ON FUNCTION bench.disallow IS 'Revokes privileges that bench.allow has granted, by default all groups.';

REVOKE ALL ON FUNCTION bench.allow, bench.disallow, bench_internal.change_rights FROM PUBLIC;
