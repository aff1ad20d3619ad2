-- The roles of superusers' calls: whose sessions their clients are, and who owns what they load. A role is not of one database, and
-- none of an extension's objects: these stay when the extension goes, for other databases have it as well.

CREATE FUNCTION bench_internal.make_own_roles()
    RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'make_own_roles_wrapper';
REVOKE EXECUTE ON FUNCTION bench_internal.make_own_roles() FROM PUBLIC;
COMMENT ON FUNCTION bench_internal.make_own_roles IS 'Makes roles bench_client and bench_owner where they do not exist, and sees that nobody has given them rights, members, settings or a password.';

DO $$
BEGIN
    PERFORM bench_internal.make_own_roles();
EXCEPTION WHEN unique_violation THEN
    -- Another database has made them meanwhile.
    PERFORM bench_internal.make_own_roles();
END $$;
