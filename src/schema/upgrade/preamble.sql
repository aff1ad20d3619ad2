-- Updates run the install SQL again, which makes functions, views, triggers and policies anew: here goes what is there. Stays
-- what something else depends on, a user's view for example: it is replaced, or ends the update with the server's error.

-- What users have granted, and what they have revoked of the extension's own grants. Nothing of it may be in force while the
-- install SQL grants, or pg_dump would take it for the extension's.
CREATE TABLE bench_internal.kept_grants (
    kind text, object text, "column" name, grantee oid, privilege text, is_grantable boolean, is_given boolean);
-- What stays, with the places of its rows in the catalog, which change when it is replaced.
CREATE TABLE bench_internal.kept_objects (classid oid, objid oid, place tid);

DO $$
DECLARE
    granted record;
    object record;
    initial int[];
    number int;
BEGIN
    CREATE VIEW bench_internal.members AS
    SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'pgbench_ext';

    FOR granted IN
        WITH objects (kind, object, "column", signature, classid, objid, objsubid, owner, acl, standard) AS (
            SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass::text, NULL::name, c.oid::regclass::text,
                   m.classid, c.oid, 0, c.relowner, c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)
            FROM bench_internal.members m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
            UNION ALL
            SELECT 'TABLE', c.oid::regclass::text, a.attname, c.oid::regclass::text,
                   m.classid, c.oid, a.attnum, c.relowner, a.attacl, acldefault('c', c.relowner)
            FROM bench_internal.members m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attacl IS NOT NULL
            UNION ALL
            SELECT 'FUNCTION', format('%I.%I', n.nspname, p.proname), NULL, p.oid::regprocedure::text,
                   m.classid, p.oid, 0, p.proowner, p.proacl, acldefault('f', p.proowner)
            FROM bench_internal.members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
            JOIN pg_namespace n ON n.oid = p.pronamespace
            UNION ALL
            SELECT 'SCHEMA', n.nspname, NULL, n.nspname, 'pg_namespace'::regclass, n.oid, 0, n.nspowner, n.nspacl, acldefault('n', n.nspowner)
            FROM pg_namespace n WHERE n.nspname IN ('bench', 'bench_internal')
        ), present AS (
            SELECT o.kind, o.object, o."column", o.signature, o.classid, o.objid, a.grantee, a.privilege_type, a.is_grantable
            FROM objects o, aclexplode(coalesce(o.acl, o.standard)) a WHERE a.grantee <> o.owner
        ), initial AS (
            SELECT o.kind, o.object, o."column", o.signature, o.classid, o.objid, a.grantee, a.privilege_type, a.is_grantable
            FROM objects o LEFT JOIN pg_init_privs i ON i.classoid = o.classid AND i.objoid = o.objid AND i.objsubid = o.objsubid,
                 aclexplode(coalesce(i.initprivs, o.standard)) a WHERE a.grantee <> o.owner
        )
        SELECT *, true AS is_given FROM (SELECT * FROM present EXCEPT SELECT * FROM initial) AS given
        UNION ALL
        SELECT *, false FROM (SELECT * FROM initial EXCEPT SELECT * FROM present) AS taken
    LOOP
        INSERT INTO bench_internal.kept_grants
        VALUES (granted.kind, granted.object, granted."column", granted.grantee, granted.privilege_type, granted.is_grantable, granted.is_given);
        IF granted.is_given THEN
            initial := ARRAY(SELECT objsubid FROM pg_init_privs WHERE classoid = granted.classid AND objoid = granted.objid);
            EXECUTE format('REVOKE %s %s ON %s %s FROM %s CASCADE', granted.privilege_type, '(' || quote_ident(granted."column") || ')', granted.kind,
                           granted.signature, CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(granted.grantee)) END);
            DELETE FROM pg_init_privs WHERE classoid = granted.classid AND objoid = granted.objid AND objsubid <> ALL (initial);
        END IF;
    END LOOP;

    FOR object IN
        SELECT format('DROP POLICY visible ON %s', p.polrelid::regclass) AS command FROM pg_policy p
        JOIN bench_internal.members m ON m.classid = 'pg_class'::regclass AND m.objid = p.polrelid WHERE p.polname = 'visible'
        UNION ALL
        SELECT format('DROP TRIGGER %I ON %s', t.tgname, t.tgrelid::regclass) FROM pg_trigger t
        JOIN bench_internal.members m ON m.classid = 'pg_proc'::regclass AND m.objid = t.tgfoid WHERE NOT t.tgisinternal
    LOOP
        EXECUTE object.command;
    END LOOP;

    -- Whatever nothing depends on any more goes, until nothing does.
    LOOP
        number := 0;
        FOR object IN
            WITH made (classid, objid, command) AS (
                SELECT m.classid, m.objid, 'DROP FUNCTION ' || m.objid::regprocedure FROM bench_internal.members m WHERE m.classid = 'pg_proc'::regclass
                UNION ALL
                SELECT m.classid, m.objid, 'DROP VIEW ' || c.oid::regclass FROM bench_internal.members m
                JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid AND c.relkind = 'v' AND c.oid <> 'bench_internal.members'::regclass
            ), uses (classid, objid, refclassid, refobjid) AS MATERIALIZED (
                SELECT CASE WHEN r.oid IS NOT NULL OR y.oid IS NOT NULL THEN 'pg_class'::regclass ELSE d.classid END, coalesce(r.ev_class, nullif(y.typrelid, 0), d.objid),
                       CASE WHEN t.typrelid <> 0 THEN 'pg_class'::regclass ELSE d.refclassid END, coalesce(nullif(t.typrelid, 0), d.refobjid)
                FROM pg_depend d
                LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
                LEFT JOIN pg_type y ON d.classid = 'pg_type'::regclass AND y.oid = d.objid AND y.typrelid <> 0
                LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
                WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass) AND d.deptype <> 'p' AND d.refobjid >= 16384
            )
            SELECT command FROM made WHERE NOT EXISTS (
                SELECT FROM uses u WHERE u.refclassid = made.classid AND u.refobjid = made.objid AND (u.classid, u.objid) <> (made.classid, made.objid)
                  AND NOT (u.classid = 'pg_type'::regclass AND EXISTS (
                      SELECT FROM pg_type a JOIN pg_type e ON e.oid = a.typelem WHERE a.oid = u.objid AND e.typrelid = made.objid)))
        LOOP
            EXECUTE object.command;
            number := number + 1;
        END LOOP;
        EXIT WHEN number = 0;
    END LOOP;
    -- Of that, what only the extension's views and functions use, which will use what is new, makes room for it.
    FOR object IN
        WITH stays (classid, objid, rowtype, command) AS (
            SELECT m.classid, m.objid, 0, format('ALTER FUNCTION %s RENAME TO former_%s', m.objid::regprocedure, m.objid)
            FROM bench_internal.members m WHERE m.classid = 'pg_proc'::regclass
            UNION ALL
            SELECT m.classid, m.objid, c.reltype, format('ALTER VIEW %s RENAME TO former_%s', c.oid::regclass, c.oid)
            FROM bench_internal.members m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
            WHERE c.relkind = 'v' AND c.oid <> 'bench_internal.members'::regclass
        )
        SELECT command FROM stays s WHERE NOT EXISTS (
            SELECT FROM pg_depend d LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
            WHERE (d.refclassid = s.classid AND d.refobjid = s.objid OR d.refclassid = 'pg_type'::regclass AND d.refobjid = s.rowtype AND d.deptype <> 'i')
              AND (d.classid <> 'pg_type'::regclass OR d.deptype <> 'i')
              AND NOT EXISTS (SELECT FROM stays u WHERE u.classid = CASE WHEN r.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END
                                                    AND u.objid = coalesce(r.ev_class, d.objid)))
    LOOP
        EXECUTE object.command;
    END LOOP;
    INSERT INTO bench_internal.kept_objects
    SELECT m.classid, m.objid, p.ctid FROM bench_internal.members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
    UNION ALL
    SELECT m.classid, m.objid, r.ctid FROM bench_internal.members m JOIN pg_rewrite r ON m.classid = 'pg_class'::regclass AND r.ev_class = m.objid
    WHERE m.objid <> 'bench_internal.members'::regclass;

    DELETE FROM bench.workloads WHERE builtin;
END $$;
