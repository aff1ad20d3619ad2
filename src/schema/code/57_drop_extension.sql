-- DROP EXTENSION while postgresql.auto.conf has entries of a sweep or a capture: with the tables, what to restore there would go.
-- In SQL alone, for the session that drops the extension may not have the library.

CREATE FUNCTION bench_internal.refuse_drop()
    RETURNS event_trigger VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    statement text := coalesce(current_query(), '');
    server text;
    waiting bigint;
BEGIN
    -- Which extension is dropped, only the statement says; that of a function or of DO may not. PL/pgSQL takes this one with it.
    -- Other roles than its owner's, which may not read its tables either, are refused by the server.
    IF statement ~* 'drop\s+extension' AND statement !~* 'pgbench_ext|plpgsql'
       OR NOT EXISTS (SELECT FROM pg_extension e WHERE e.extname = 'pgbench_ext' AND pg_has_role(e.extowner, 'USAGE')) THEN
        RETURN;
    END IF;
    SELECT format('%s/%s', s.system_identifier, d.oid) INTO server
    FROM pg_control_system() s, pg_database d WHERE d.datname = current_database();
    SELECT min(l.sweep_id) INTO waiting FROM bench_internal.sweep_log l
    WHERE l.status = 'waiting for restart' AND l.system_settings ->> 'server' = server;
    IF waiting IS NOT NULL THEN
        RAISE object_in_use USING MESSAGE = format('sweep %s waits for a restart of the server', waiting),
            DETAIL = 'postgresql.auto.conf has its settings, and the extension what to restore there.',
            HINT = format('Stop it first: SELECT bench.stop_sweep(%s).', waiting);
    END IF;
    -- Those under way end, and restore it.
    IF NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = current_database() AND a.backend_type IN ('pgbench_ext sweep', 'pgbench_ext capture'))
       AND EXISTS (SELECT FROM bench_internal.sweep_log l WHERE l.system_settings ->> 'server' = server
                   UNION ALL SELECT FROM bench_internal.capture_list l WHERE l.system_settings ->> 'server' = server) THEN
        RAISE object_in_use USING MESSAGE = 'a sweep or a capture has not restored what it changed in postgresql.auto.conf',
            HINT = 'The next bench.capture or bench.sweep of a superuser restores it.';
    END IF;
END $$;
COMMENT ON FUNCTION bench_internal.refuse_drop IS
'Raises 55006 at DROP EXTENSION while postgresql.auto.conf has entries of a sweep or a capture.';

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'pgbench_ext_refuse_drop') THEN
        CREATE EVENT TRIGGER pgbench_ext_refuse_drop ON ddl_command_start WHEN TAG IN ('DROP EXTENSION')
            EXECUTE FUNCTION bench_internal.refuse_drop();
    END IF;
END $$;
COMMENT ON EVENT TRIGGER pgbench_ext_refuse_drop IS 'Refuses DROP EXTENSION pgbench_ext while postgresql.auto.conf has entries of a sweep or a capture';
