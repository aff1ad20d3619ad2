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

-- A superuser's calls run nothing of others
CREATE FUNCTION bench.prewarm(relation oid)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prewarm_table_wrapper';
COMMENT ON FUNCTION bench.prewarm IS
'Reads a table, its TOAST table and the indexes of both into shared buffers, and returns the number of blocks; 0 for a partitioned table, which has none of its own. For roles with SELECT on the table. Sweeps with before => ''prewarm'' do this before each run.';

CREATE FUNCTION bench.check_extension(name text)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_extension_wrapper';
COMMENT ON FUNCTION bench.check_extension IS
'Fails with 42501 where a role could have an extension''s functions do something else: it owns the extension, its schema or something in that, or may create there. Superusers may, and the calling role, unless it has come from another by SET ROLE.';

CREATE OR REPLACE FUNCTION bench.tap(passed boolean, description text, remark text)
    RETURNS text VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home name := (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pgtap');
    verdict text;
    remarks text;
BEGIN
    IF home IS NULL THEN
        RAISE object_not_in_prerequisite_state
            USING MESSAGE = 'extension "pgtap" is not installed', HINT = 'CREATE EXTENSION pgtap.';
    END IF;
    PERFORM bench.check_extension('pgtap');
    -- pgTAP's functions call each other by their bare names, and keep their counts in temporary tables.
    PERFORM set_config('search_path', format('pg_catalog, %I, pg_temp', home), true);
    EXECUTE format('SELECT %I.ok($1, $2)', home) INTO verdict USING passed, description;
    EXECUTE format('SELECT %I.diag($1)', home) INTO remarks USING remark;
    RETURN concat_ws(E'\n', verdict, remarks);
END $$;
COMMENT ON FUNCTION bench.tap IS
'The TAP lines of pgTAP''s ok(), and of diag() for a remark that is not NULL, from whatever schema pgTAP is in; 42501 where a role that the caller cannot trust could have replaced them. For the assertions.';

DROP FUNCTION bench.replace_function;
