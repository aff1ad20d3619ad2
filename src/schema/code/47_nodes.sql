-- What nodes of a Citus cluster ask each other, each in the name of the role that called bench.run.

CREATE FUNCTION bench_internal.node_state(tables text[]) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'node_state_wrapper';
COMMENT ON FUNCTION bench_internal.node_state IS
'Returns the state of this node, which a run on a Citus cluster reads from each node before and after: processors (ticks of their time), counters of the tables'' shards on this node, two-phase commits, connections, limits and parameters.';

CREATE FUNCTION bench_internal.unreached_nodes() RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'unreached_nodes_wrapper';
COMMENT ON FUNCTION bench_internal.unreached_nodes IS
'Tries to connect from this node to every other node of the Citus cluster, as the calling role, and returns unreachable nodes with the reasons. A run on several nodes calls it on each node before it starts.';

CREATE FUNCTION bench_internal.start_part(request jsonb) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_part_wrapper';
COMMENT ON FUNCTION bench_internal.start_part IS
'Starts this node''s part of another node''s run; its clients wait for bench_internal.begin_part. Returns the run''s id on this node, or the error. The other node calls it as a role that may also call bench.run or bench.start on this node.';

CREATE FUNCTION bench_internal.part_state(run_id bigint, stop boolean) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'part_state_wrapper';
COMMENT ON FUNCTION bench_internal.part_state IS
'Returns the progress of a part, and stops it if stop is true. A part ends itself after 20 seconds without this call from the run''s node.';

CREATE FUNCTION bench_internal.part_samples(run_id bigint, after double precision) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'part_samples_wrapper';
COMMENT ON FUNCTION bench_internal.part_samples IS
'Returns the samples of a part with more than so many seconds elapsed, at most 1000, in their order; NULL if there are none. Called by the run''s node while the run goes on.';

CREATE FUNCTION bench_internal.begin_part(run_id bigint, begins_us bigint) RETURNS boolean
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'begin_part_wrapper';
COMMENT ON FUNCTION bench_internal.begin_part IS
'Sets the time at which the clients of a part start, in microseconds since 2000-01-01 00:00 UTC by this node''s clock. Returns false if it is too late for that. Called by the run''s node.';

CREATE FUNCTION bench_internal.drop_part(run_id bigint) RETURNS boolean
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_part_wrapper';
COMMENT ON FUNCTION bench_internal.drop_part IS
'Deletes an ended part of a run, once the run''s node has fetched its results.';

CREATE FUNCTION bench.fetch(run_id bigint) RETURNS bigint
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'fetch_wrapper';
COMMENT ON FUNCTION bench.fetch IS
'Fetches results that nodes of a Citus cluster could not deliver at the end of a run, and returns the number of nodes fetched; a WARNING names each node that still does not answer. A run that was incomplete only for that reason becomes completed. Only for the run''s role, on the node on which the run was started.';
REVOKE ALL ON FUNCTION bench.fetch FROM PUBLIC;
