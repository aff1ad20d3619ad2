-- What every write-up begins with: how psql prints, the variables' defaults, and what this role and server allow.
-- A write-up that has other defaults sets them before.

\set AUTOCOMMIT on
\set ON_ERROR_STOP on
\set QUIET on
\set VERBOSITY default
\pset footer off
\pset format aligned
\pset linestyle ascii
\pset null -
\pset pager off
\pset tuples_only off

\if :{?scale} \else \set scale 1 \endif
\if :{?secs} \else \set secs 120 \endif
\if :{?rounds} \else \set rounds 1 \endif
\if :{?schema} \else \set schema bench_writeups \endif
\if :{?keep} \else \set keep off \endif
\set sweep_ids ''
\set run_ids '{}'
\set most_jobs ''

-- A run takes a worker for each client and one besides, a sweep one more. Roles without pg_read_all_stats do not see others'
-- workers, so at least one is taken for granted: the launcher of logical replication.
SELECT current_setting('max_worker_processes')::int - 2 - greatest(1, count(*) FILTER (WHERE backend_type NOT IN
           ('archiver', 'autovacuum launcher', 'autovacuum worker', 'background writer', 'checkpointer', 'client backend', 'logger',
            'startup', 'walreceiver', 'walsender', 'walwriter'))) AS most_clients
FROM pg_stat_activity \gset

SELECT rolsuper AS is_superuser,
       rolsuper OR pg_has_role('pg_checkpoint', 'USAGE') AS may_checkpoint,
       NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = :'schema') AS schema_is_new
FROM pg_roles WHERE rolname = current_user \gset

\ir ../published.sql
