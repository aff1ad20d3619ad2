-- Jobs of pg_cron that start runs. pg_cron is looked for when they are called.

CREATE FUNCTION bench.schedule(
    name            text,
    schedule        text,
    workload        text,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT 1,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'schedule_wrapper';
COMMENT ON FUNCTION bench.schedule IS
'Makes a job of pg_cron that starts a run, as the calling role, and returns the job''s id. name: of the job, at most 63 bytes; a job of this role that is called so is replaced, as by cron.schedule. schedule: minute, hour, day of the month, month and day of the week, in GMT, or the time zone of cron.timezone. The rest is as for bench.run, and is checked now. The job does not wait for its run; while that is under way it starts no other. The runs have the job''s name as their tag "job". Where pg_cron is in another database, the hint of the error is the call to be made there.';

CREATE FUNCTION bench.unschedule(name text)
    RETURNS boolean VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'unschedule_wrapper';
COMMENT ON FUNCTION bench.unschedule IS
'Drops the calling role''s job of this name, and ends its run if one is under way, as bench.stop does. False when there was neither.';

CREATE FUNCTION bench.start_scheduled(
    workload        text,
    clients         int              DEFAULT 1,
    secs            double precision DEFAULT NULL,
    transactions    bigint           DEFAULT NULL,
    warmup          double precision DEFAULT 0,
    rate            double precision DEFAULT NULL,
    latency_limit   double precision DEFAULT NULL,
    max_tries       int              DEFAULT 1,
    seed            bigint           DEFAULT NULL,
    variables       jsonb            DEFAULT '{}',
    settings        jsonb            DEFAULT '{}',
    sample_interval double precision DEFAULT 1,
    driver          text             DEFAULT 'engine',
    query_mode      text             DEFAULT 'prepared',
    results         text             DEFAULT 'serialize',
    nodes           text             DEFAULT 'local',
    tags            jsonb            DEFAULT '{}')
    RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'start_scheduled_wrapper';
COMMENT ON FUNCTION bench.start_scheduled IS
'What a job of bench.schedule calls: bench.start, unless a run of the calling role with the same tag "job" is under way; then a WARNING says so and its id is returned.';

REVOKE ALL ON FUNCTION bench.schedule, bench.unschedule, bench.start_scheduled FROM PUBLIC;
