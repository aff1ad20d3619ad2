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

CREATE FUNCTION bench.delete_run(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'delete_run_wrapper';
COMMENT ON FUNCTION bench.delete_run IS
'Deletes a run with all that was measured of it; false when somebody else has just done so. For roles with the privileges of the run''s role. A run under way, or of a sweep under way, is refused: see bench.stop and bench.stop_sweep. A sweep goes with the last of its runs.';

REVOKE ALL ON FUNCTION bench.import, bench.prune, bench.delete_run FROM PUBLIC;

CREATE FUNCTION bench_internal.forget_runs()
    RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'forget_runs_wrapper';
COMMENT ON FUNCTION bench_internal.forget_runs IS
'Trigger of bench.run_log: what is kept of a run goes with its row, as the extension''s owner. Refuses runs under way.';
REVOKE ALL ON FUNCTION bench_internal.forget_runs FROM PUBLIC;

-- In place of foreign keys, which would break filtered and parallel restores.
CREATE TRIGGER forget_runs AFTER DELETE ON bench.run_log REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_runs ON bench.run_log IS 'Deletes what is kept of the runs that are deleted';
CREATE TRIGGER forget_all_runs BEFORE TRUNCATE ON bench.run_log
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_all_runs ON bench.run_log IS 'Deletes what is kept of all runs';
