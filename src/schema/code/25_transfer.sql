-- Export, import and deletion of runs.

CREATE FUNCTION bench_internal.export_document(run_ids bigint[])
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_wrapper';
COMMENT ON FUNCTION bench_internal.export_document IS
'Returns all data of ended runs as one document, for bench.export.';

CREATE FUNCTION bench_internal.export_part_count(run_ids bigint[])
    RETURNS int VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_part_count_wrapper';
COMMENT ON FUNCTION bench_internal.export_part_count IS
'Returns how many parts of about 16 MB these runs have, for bench.export.';

CREATE FUNCTION bench_internal.export_part(run_ids bigint[], part int)
    RETURNS jsonb VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'export_part_wrapper';
COMMENT ON FUNCTION bench_internal.export_part IS
'Returns one of the documents that bench.export makes of these runs.';

-- Bound to these very functions, whatever stands under their names later.
CREATE FUNCTION bench.export(run_ids bigint[])
    RETURNS SETOF jsonb VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT CASE WHEN c.count <= 4 THEN bench_internal.export_document(run_ids) ELSE bench_internal.export_part(run_ids, n) END
    FROM bench_internal.export_part_count(run_ids) AS c (count),
         generate_series(1, CASE WHEN c.count <= 4 THEN 1 ELSE c.count END) AS n ORDER BY n;
END;
COMMENT ON FUNCTION bench.export IS
'Returns all data of ended runs as one document for bench.import (above about 64 MB, as several of about 16 MB each). Requires permission to see the runs. To write a file: psql -XAtc "SELECT bench.export(''{1,2}'')" > runs.jsonl';

CREATE FUNCTION bench.import(document jsonb)
    RETURNS bigint[] VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'import_wrapper';
COMMENT ON FUNCTION bench.import IS
'Imports the runs of a document made by bench.export, and returns their new ids in the document''s order. The runs belong to the calling role; a document is imported as a whole or not at all.';

CREATE FUNCTION bench.prune(older_than interval)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'prune_wrapper';
COMMENT ON FUNCTION bench.prune IS
'Deletes runs that ended, or were imported, longer ago than older_than, with all their results, and returns their number. Deletes only runs of roles whose privileges the caller has. Active runs are kept.';

CREATE FUNCTION bench.delete_run(run_id bigint)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'delete_run_wrapper';
COMMENT ON FUNCTION bench.delete_run IS
'Deletes a run with all its results; deleting the last run of a sweep deletes the sweep. Returns false if another session has just deleted it; active runs, and runs of active sweeps, cannot be deleted. Requires the privileges of the run''s role.';

REVOKE ALL ON FUNCTION bench.import, bench.prune, bench.delete_run FROM PUBLIC;

CREATE FUNCTION bench_internal.forget_runs()
    RETURNS trigger VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'forget_runs_wrapper';
COMMENT ON FUNCTION bench_internal.forget_runs IS
'Trigger function of bench_internal.run_log: deletes a run''s results with its row, with the privileges of the extension''s owner. Active runs cannot be deleted.';
REVOKE ALL ON FUNCTION bench_internal.forget_runs FROM PUBLIC;
