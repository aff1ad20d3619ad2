-- Runs that come and go.

CREATE FUNCTION bench.export(run_ids bigint[])
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_wrapper';
COMMENT ON FUNCTION bench.export IS
'Everything that is kept of runs that are over, samples and histograms included, as one document for bench.import; format_version says in which form. For those who may see the runs: psql -XAtc "SELECT bench.export(''{1,2}'')" > runs.json';

CREATE FUNCTION bench.import(document jsonb)
    RETURNS bigint[] VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'import_wrapper';
COMMENT ON FUNCTION bench.import IS
'Takes over the runs of a document that bench.export has made, here or on another server, and returns their ids here in the document''s order. They belong to the calling role, and their column origin in bench.runs says where they come from. All of the document or nothing; a run that the role has imported already is refused.';

CREATE FUNCTION bench.prune(older_than interval)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prune_wrapper';
COMMENT ON FUNCTION bench.prune IS
'Deletes runs with all that was measured of them, and returns how many: those that ended longer ago than older_than, and imported ones that came longer ago; of the roles that the calling role has the privileges of. Never one that is under way.';

REVOKE ALL ON FUNCTION bench.import, bench.prune FROM PUBLIC;
