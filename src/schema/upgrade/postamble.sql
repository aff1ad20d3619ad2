
-- What is left of the former version that something else depends on: it goes or, if that is a user's, ends the update.
DO $$
DECLARE
    object record;
    granted record;
    grantee text;
    privilege text;
BEGIN
    FOR object IN
        SELECT CASE k.classid WHEN 'pg_proc'::regclass THEN 'DROP FUNCTION ' || k.objid::regprocedure ELSE 'DROP VIEW ' || k.objid::regclass END AS command
        FROM bench_internal.kept_objects k
        WHERE k.place = coalesce((SELECT p.ctid FROM pg_proc p WHERE k.classid = 'pg_proc'::regclass AND p.oid = k.objid),
                                      (SELECT r.ctid FROM pg_rewrite r WHERE k.classid = 'pg_class'::regclass AND r.ev_class = k.objid))
        ORDER BY k.classid = 'pg_proc'::regclass, k.objid DESC
    LOOP
        EXECUTE object.command;
    END LOOP;

    -- The users' grants, by the names of functions, whose arguments may have changed.
    CREATE TABLE bench_internal.grants_again AS
    SELECT k.*, o.classid, o.objid, o.signature FROM bench_internal.kept_grants k JOIN LATERAL (
        SELECT m.classid, m.objid, p.oid::regprocedure::text AS signature FROM bench_internal.members m
        JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE k.kind = 'FUNCTION' AND format('%I.%I', n.nspname, p.proname) = k.object
        UNION ALL
        SELECT m.classid, m.objid, m.objid::regclass::text FROM bench_internal.members m
        WHERE k.kind IN ('TABLE', 'SEQUENCE') AND m.classid = 'pg_class'::regclass AND m.objid = to_regclass(k.object)
          AND (k."column" IS NULL OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = m.objid AND a.attname = k."column" AND NOT a.attisdropped))
        UNION ALL
        SELECT 'pg_namespace'::regclass, n.oid, n.nspname FROM pg_namespace n WHERE k.kind = 'SCHEMA' AND n.nspname = k.object) AS o ON true;
    CREATE TABLE bench_internal.initial AS
    SELECT * FROM pg_init_privs i WHERE EXISTS (SELECT FROM bench_internal.grants_again g WHERE g.classid = i.classoid AND g.objid = i.objoid);
    FOR granted IN SELECT * FROM bench_internal.grants_again LOOP
        grantee := CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(granted.grantee)) END;
        privilege := format('%s %s ON %s %s', granted.privilege, '(' || quote_ident(granted."column") || ')', granted.kind, granted.signature);
        IF granted.is_given THEN
            EXECUTE format('GRANT %s TO %s %s', privilege, grantee, CASE WHEN granted.is_grantable THEN 'WITH GRANT OPTION' END);
        ELSE
            EXECUTE format('REVOKE %s FROM %s', privilege, grantee);
        END IF;
    END LOOP;
    -- They are none of the extension's own.
    DELETE FROM pg_init_privs i WHERE EXISTS (SELECT FROM bench_internal.grants_again g WHERE g.classid = i.classoid AND g.objid = i.objoid);
    INSERT INTO pg_init_privs SELECT * FROM bench_internal.initial;
    -- As of PostgreSQL 17 their roles are noted here as well.
    DELETE FROM pg_shdepend d USING bench_internal.grants_again g
    WHERE d.deptype = 'i' AND d.dbid = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database())
      AND d.classid = g.classid AND d.objid = g.objid AND d.refclassid = 'pg_authid'::regclass AND d.refobjid = g.grantee;
    DROP TABLE bench_internal.grants_again, bench_internal.initial;
    DROP VIEW bench_internal.members;
    DROP TABLE bench_internal.kept_grants, bench_internal.kept_objects;
END $$;
