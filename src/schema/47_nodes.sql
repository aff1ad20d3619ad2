-- What nodes of a Citus cluster ask each other, each in the name of the role that called bench.run.

CREATE FUNCTION bench_internal.node_state(tables text[]) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'node_state_wrapper';
COMMENT ON FUNCTION bench_internal.node_state IS
'The state of this node, as a run on a Citus cluster reads it of each before and after: its clock (microseconds), processors (ticks of their time), the counters of these tables'' shards here, two-phase commits, connections, limits and parameters.';

CREATE FUNCTION bench_internal.start_part(request jsonb) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_part_wrapper';
COMMENT ON FUNCTION bench_internal.start_part IS
'Starts this node''s part of a run that another node was asked for; its clients wait for bench_internal.begin_part. Returns the run''s id here, or the error. Called by the other node, in the name of a role that may call bench.run or bench.start on this one too.';

CREATE FUNCTION bench_internal.part_state(run_id bigint, stop boolean) RETURNS jsonb
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'part_state_wrapper';
COMMENT ON FUNCTION bench_internal.part_state IS
'How far a part is; stop ends it. A part that nobody asks after for 20 seconds ends itself. Called by the node that the run belongs to.';

CREATE FUNCTION bench_internal.begin_part(run_id bigint, begins_us bigint) RETURNS boolean
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'begin_part_wrapper';
COMMENT ON FUNCTION bench_internal.begin_part IS
'Says when the clients of a part are to begin, by this node''s clock, in microseconds since 2000-01-01 00:00 UTC; false when it is too late for that. Called by the node that the run belongs to.';

CREATE FUNCTION bench_internal.drop_part(run_id bigint) RETURNS boolean
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'drop_part_wrapper';
COMMENT ON FUNCTION bench_internal.drop_part IS
'Forgets a part of a run that has ended, when the node that the run belongs to has taken over what it measured.';
