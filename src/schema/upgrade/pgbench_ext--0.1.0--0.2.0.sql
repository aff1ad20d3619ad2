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

DROP FUNCTION bench.replace_function;
