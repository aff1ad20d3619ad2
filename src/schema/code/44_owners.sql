-- Whose rows are whose goes by the OIDs of roles: names change and come back as others'.

-- A dump carries OIDs, which are other roles' on another server: there a row is its role's only if that has the name as well.
-- pg_upgrade, which keeps the OIDs, does not insert.
CREATE FUNCTION bench_internal.disown()
    RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.owner_oid := 0;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION bench_internal.disown IS
'Trigger function of the tables whose rows belong to roles: if the role''s OID and name do not match, as in a dump of another server, it makes the new row accessible only to superusers. bench.reassign_owned gives the row to a role.';
REVOKE ALL ON FUNCTION bench_internal.disown FROM PUBLIC;

CREATE FUNCTION bench.reassign_owned(old_role text, new_role text)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'reassign_owned_wrapper';
COMMENT ON FUNCTION bench.reassign_owned IS
'Gives a role the runs, sweeps, loads, workloads, fixtures and captures of a role that no longer exists, and returns their number. Only superusers may call it. A superuser of another name gets only runs, sweeps, loads and captures.';

REVOKE ALL ON FUNCTION bench.reassign_owned FROM PUBLIC;
