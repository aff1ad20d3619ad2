-- Jobs of pg_cron that start runs. pg_cron is looked for when they are called.

CREATE FUNCTION bench.schedule(
    name            text,
    schedule        text,
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_schedule_wrapper';
COMMENT ON FUNCTION bench.schedule IS
'Creates or replaces a pg_cron job that starts runs as the calling role, and returns the job''s id. The job does not wait for its run, and starts no other run while one is active. If pg_cron is in another database, the error''s hint shows the call to run there.';

CREATE FUNCTION bench.unschedule(name text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'unschedule_wrapper';
COMMENT ON FUNCTION bench.unschedule IS
'Removes your job of this name, and stops its active run as bench.stop does. Returns false if there was neither.';

CREATE FUNCTION bench_internal.start_scheduled(
    workload        text             DEFAULT NULL,
    clients         int              DEFAULT 1,
@run_arguments@
)
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'bench_start_scheduled_wrapper';
COMMENT ON FUNCTION bench_internal.start_scheduled IS
'Called by jobs of bench.schedule: starts a run as bench.start does, unless a run of the calling role with the same tag "job" is active; it then raises a WARNING and returns the id of that run.';

REVOKE ALL ON FUNCTION bench.schedule, bench.unschedule, bench_internal.start_scheduled FROM PUBLIC;
