\echo Use "ALTER EXTENSION pgbench_ext UPDATE TO '0.2.0'" to load this file. \quit

-- From 0.1.0 to 0.2.0. test/faults/upgrade.sh holds the outcome against a fresh installation.
-- Tables that pg_dump carries keep schema, kind and columns; what is added to them is nullable or has a default.

-- Puts `created` (its CREATE FUNCTION, COMMENT and REVOKE) in the place of a function whose arguments or result change,
-- and gives the roles that users had granted the old one the new one. Such grants are not the extension's own: pg_dump has
-- to see them as the users', so pg_init_privs keeps what it had without them.
CREATE FUNCTION bench.replace_function(replaced regprocedure, created text, signature text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted record;
    grants text[] := '{}';
    initial aclitem[];
BEGIN
    FOR granted IN
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS role, a.is_grantable
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.oid = replaced AND a.grantee <> p.proowner
          AND NOT EXISTS (SELECT FROM pg_init_privs i CROSS JOIN LATERAL aclexplode(i.initprivs) AS b
                          WHERE i.objoid = p.oid AND i.classoid = 'pg_proc'::regclass AND b.grantee = a.grantee)
    LOOP
        grants := grants || (granted.role || CASE WHEN granted.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    EXECUTE format('ALTER EXTENSION pgbench_ext DROP FUNCTION %s', replaced);
    EXECUTE format('DROP FUNCTION %s', replaced);
    EXECUTE created;
    initial := (SELECT i.initprivs FROM pg_init_privs i
                WHERE i.objoid = signature::regprocedure AND i.classoid = 'pg_proc'::regclass);
    FOR place IN 1 .. cardinality(grants) LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', signature::regprocedure, grants[place]);
    END LOOP;
    IF initial IS NULL THEN
        DELETE FROM pg_init_privs WHERE objoid = signature::regprocedure AND classoid = 'pg_proc'::regclass;
    ELSE
        UPDATE pg_init_privs SET initprivs = initial WHERE objoid = signature::regprocedure AND classoid = 'pg_proc'::regclass;
    END IF;
END $$;

-- (changes go here, in the order of src/schema)

-- Documents and arguments: deleting runs; views that no value overflows.
CREATE FUNCTION bench.delete_run(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'delete_run_wrapper';
COMMENT ON FUNCTION bench.delete_run IS
'Deletes a run with all that was measured of it; false when somebody else has just done so. For roles with the privileges of the run''s role. A run under way, or of a sweep under way, is refused: see bench.stop and bench.stop_sweep. A sweep goes with the last of its runs.';

REVOKE ALL ON FUNCTION bench.delete_run FROM PUBLIC;

CREATE FUNCTION bench.forget_runs()
    RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'forget_runs_wrapper';
COMMENT ON FUNCTION bench.forget_runs IS
'Trigger of bench.run_log: what is kept of a run goes with its row, as the extension''s owner. Refuses runs under way.';
REVOKE ALL ON FUNCTION bench.forget_runs FROM PUBLIC;

-- In place of foreign keys, which would break filtered and parallel restores.
CREATE TRIGGER forget_runs AFTER DELETE ON bench.run_log REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION bench.forget_runs();
COMMENT ON TRIGGER forget_runs ON bench.run_log IS 'Deletes what is kept of the runs that are deleted';
CREATE TRIGGER forget_all_runs BEFORE TRUNCATE ON bench.run_log
    FOR EACH STATEMENT EXECUTE FUNCTION bench.forget_runs();
COMMENT ON TRIGGER forget_all_runs ON bench.run_log IS 'Deletes what is kept of all runs';

DROP FUNCTION bench.replace_function;
