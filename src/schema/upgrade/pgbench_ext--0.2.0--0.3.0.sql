-- From 0.2.0 to 0.3.0: tables that were there. What is new the install SQL makes.

-- Whose rows are whose goes by OIDs: they are the roles' that have the names now.
ALTER TABLE bench.workloads ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.fixtures ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.custom_fixtures ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.run_log ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.sweep_log ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.capture_list ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.load_log ADD COLUMN owner_oid oid NOT NULL DEFAULT 0;
ALTER TABLE bench.load_log ALTER COLUMN owner_oid DROP DEFAULT;
UPDATE bench.workloads SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = owner;
UPDATE bench.fixtures SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = owner;
UPDATE bench.custom_fixtures SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = owner;
UPDATE bench.run_log SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
UPDATE bench.sweep_log SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
UPDATE bench.capture_list SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
UPDATE bench.load_log SET owner_oid = r.oid FROM pg_roles r WHERE r.rolname = role;
DROP INDEX bench.run_log_origin_key;

-- Captured statements run in sessions of the role that executed them, and theirs are the workloads. Of several roles, or of one
-- that nobody knows any more, they are nobody's: such a capture is to be made anew.
ALTER TABLE bench.run_log ADD COLUMN run_as text;
ALTER TABLE bench.capture_statements ADD COLUMN role text;
UPDATE bench.capture_statements SET role = roles[1] WHERE cardinality(roles) = 1;
UPDATE bench.workloads w SET private = true, owner = coalesce(s.role, w.owner),
    owner_oid = coalesce((SELECT r.oid FROM pg_roles r WHERE r.rolname = s.role), 0)
FROM bench.capture_statements s WHERE s.workload = w.name AND s.kept;
ALTER TABLE bench.capture_statements DROP COLUMN roles;

-- No name that has to be quoted.
ALTER TABLE bench.feeders RENAME COLUMN "order" TO pick;

-- What has another name keeps its users' grants.
UPDATE bench_internal.kept_grants SET object = 'bench.stop_capture' WHERE object = 'bench.cancel_capture';
