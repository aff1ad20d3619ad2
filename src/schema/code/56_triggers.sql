-- The triggers on the extension's tables. What src/guard/own_tables.rs knows of them must be the same.

-- The recorder writes with session_replication_role = replica, so that triggers of roles with the privilege TRIGGER do not fire
-- with its rights. The extension's own do, as they are enabled always.
CREATE FUNCTION bench_internal.create_triggers()
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned record;
BEGIN
    -- In place of foreign keys, which would break filtered and parallel restores.
    CREATE OR REPLACE TRIGGER forget_runs AFTER DELETE ON bench_internal.run_log REFERENCING OLD TABLE AS deleted
        FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
    ALTER TABLE bench_internal.run_log ENABLE ALWAYS TRIGGER forget_runs;
    COMMENT ON TRIGGER forget_runs ON bench_internal.run_log IS 'Deletes the results of deleted runs';
    CREATE OR REPLACE TRIGGER forget_all_runs BEFORE TRUNCATE ON bench_internal.run_log
        FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
    ALTER TABLE bench_internal.run_log ENABLE ALWAYS TRIGGER forget_all_runs;
    COMMENT ON TRIGGER forget_all_runs ON bench_internal.run_log IS 'Deletes the results of all runs';

    FOR owned IN VALUES ('bench_internal.run_log'::regclass, 'role'), ('bench_internal.sweep_log', 'role'), ('bench_internal.capture_list', 'role'), ('bench.workloads', 'owner'),
        ('bench.fixtures', 'owner'), ('bench_internal.custom_fixtures', 'owner') LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER disown BEFORE INSERT ON %s FOR EACH ROW WHEN (pg_get_userbyid(NEW.owner_oid)::text IS DISTINCT FROM NEW.%I) EXECUTE FUNCTION bench_internal.disown()', owned.column1, owned.column2);
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER disown', owned.column1);
        EXECUTE format('COMMENT ON TRIGGER disown ON %s IS %L', owned.column1, 'If OID and name of a row''s role do not match, makes the row accessible only to superusers');
    END LOOP;
END $$;
COMMENT ON FUNCTION bench_internal.create_triggers IS
'Creates the triggers of the extension''s tables, or restores them after CREATE OR REPLACE TRIGGER, DISABLE TRIGGER, ENABLE TRIGGER, or pg_restore --disable-triggers. Requires ownership of the tables.';
REVOKE ALL ON FUNCTION bench_internal.create_triggers FROM PUBLIC;

DO $$ BEGIN PERFORM bench_internal.create_triggers(); END $$;
