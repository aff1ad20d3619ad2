-- Export, import and deletion of runs.

CREATE FUNCTION bench.export(run_ids bigint[])
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_wrapper';
COMMENT ON FUNCTION bench.export IS
'Returns all data of ended runs, including samples and histograms, as one document for bench.import; format_version is the version of its format. Requires permission to see the runs: psql -XAtc "SELECT bench.export(''{1,2}'')" > runs.json';

CREATE FUNCTION bench.import(document jsonb)
    RETURNS bigint[] VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'import_wrapper';
COMMENT ON FUNCTION bench.import IS
'Imports the runs of a document made by bench.export, here or on another server, and returns their new ids in the document''s order. The runs belong to the calling role; column origin of bench.runs shows where they come from. The whole document is imported, or nothing. A run that the role has already imported is an error.';

CREATE FUNCTION bench.prune(older_than interval)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prune_wrapper';
COMMENT ON FUNCTION bench.prune IS
'Deletes runs that ended, or were imported, longer ago than older_than, with all their results, and returns their number. Deletes only runs of roles whose privileges the caller has. Active runs are kept.';

CREATE FUNCTION bench.delete_run(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'delete_run_wrapper';
COMMENT ON FUNCTION bench.delete_run IS
'Deletes a run with all its results. Returns false if another session has just deleted it. Requires the privileges of the run''s role. Active runs, and runs of active sweeps, cannot be deleted: stop them first with bench.stop or bench.stop_sweep. Deleting the last run of a sweep deletes the sweep.';

REVOKE ALL ON FUNCTION bench.import, bench.prune, bench.delete_run FROM PUBLIC;

CREATE FUNCTION bench_internal.forget_runs()
    RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'forget_runs_wrapper';
COMMENT ON FUNCTION bench_internal.forget_runs IS
'Trigger function of bench.run_log: deletes a run''s results with its row, with the privileges of the extension''s owner. Active runs cannot be deleted.';
REVOKE ALL ON FUNCTION bench_internal.forget_runs FROM PUBLIC;

-- In place of foreign keys, which would break filtered and parallel restores.
CREATE TRIGGER forget_runs AFTER DELETE ON bench.run_log REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_runs ON bench.run_log IS 'Deletes the results of deleted runs';
CREATE TRIGGER forget_all_runs BEFORE TRUNCATE ON bench.run_log
    FOR EACH STATEMENT EXECUTE FUNCTION bench_internal.forget_runs();
COMMENT ON TRIGGER forget_all_runs ON bench.run_log IS 'Deletes the results of all runs';
