--
-- bench.preflight: what would spoil a run, and the errors that it would end with
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
-- Other work on the machine, and the cluster's fsync = off, are no matter of this test.
CREATE FUNCTION pg_temp.found(arguments text)
    RETURNS TABLE (topic text, severity text, finding text)
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT topic, severity, finding FROM bench.preflight(%s)
        WHERE topic NOT IN (''load'', ''swap'', ''governor'', ''safety'') ORDER BY topic', arguments);
END $$;

-- Nothing is loaded
SELECT * FROM pg_temp.found($$'pk_update'$$);
SELECT * FROM pg_temp.found($$'pk_update@1,insert_single@1'$$);
SELECT * FROM pg_temp.found($$'insert_single_multi', clients => 2$$);
SELECT count(*) AS fixtures FROM bench.fixtures;

-- At rest
SELECT bench.load('pk', 1000);
SELECT * FROM pg_temp.found($$'pk_update'$$);
SELECT * FROM pg_temp.found($$'pk_select', before => 'vacuum,checkpoint'$$);
SELECT * FROM pg_temp.found($$script => 'SELECT 1;', transactions => 1, driver => 'wire'$$);
SELECT topic, severity, finding, advice FROM bench.preflight('pk_update') WHERE topic = 'safety';
SELECT topic FROM bench.preflight('pk_select') WHERE topic = 'safety';
SELECT count(*) AS runs FROM bench.runs;

-- A fixture of one's own
SELECT bench.create_fixture('own', 'CREATE TABLE own (id int)', 'SELECT $1 + $2', rows => 5);
SELECT bench.create_workload('own', 'SELECT id FROM own;', fixture => 'own');
SELECT * FROM pg_temp.found($$'own'$$);

-- Errors as of the run
SELECT * FROM bench.preflight();
SELECT * FROM bench.preflight('nobody');
SELECT * FROM bench.preflight('pk_update', clients => 0);
SELECT * FROM bench.preflight('pk_update', clients => 1000);
SELECT * FROM bench.preflight('pk_update', secs => 1, transactions => 1);
SELECT * FROM bench.preflight('pk_update', before => 'sleep');
SELECT * FROM bench.preflight('pk_update', settings => '{"work_mem": "much"}');
SELECT * FROM bench.preflight('pk_update', target => 'elsewhere');
SELECT * FROM bench.preflight('pk_update', driver => 'wire', target => 'elsewhere');
SELECT bench.load('pk', 0);
SELECT * FROM bench.preflight('pk_update');
SELECT bench.load('pk', 1000);
BEGIN;
LOCK TABLE bench_data.pk;
SELECT * FROM bench.preflight('pk_update');
ROLLBACK;

-- A role sees its own, and needs EXECUTE
CREATE ROLE regress_pilot LOGIN;
GRANT USAGE ON SCHEMA bench_data TO regress_pilot;
GRANT SELECT, UPDATE ON bench_data.pk TO regress_pilot;
SET ROLE regress_pilot;
SELECT * FROM bench.preflight('pk_update');
RESET ROLE;
GRANT EXECUTE ON FUNCTION bench.preflight TO regress_pilot;
SET ROLE regress_pilot;
SELECT * FROM pg_temp.found($$'pk_update'$$);
RESET ROLE;
-- and less where an administrator has taken it away
REVOKE SELECT ON pg_locks, pg_replication_slots FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION pg_control_checkpoint(), pg_table_size(regclass) FROM PUBLIC;
SET ROLE regress_pilot;
SELECT * FROM pg_temp.found($$'pk_update'$$);
RESET ROLE;
GRANT SELECT ON pg_locks, pg_replication_slots TO PUBLIC;
GRANT EXECUTE ON FUNCTION pg_control_checkpoint(), pg_table_size(regclass) TO PUBLIC;
ALTER ROLE regress_pilot NOLOGIN;
SET ROLE regress_pilot;
SELECT * FROM bench.preflight('pk_update');
RESET ROLE;

DROP OWNED BY regress_pilot;
DROP ROLE regress_pilot;
SELECT bench.drop_workload('own'), bench.drop_fixture('own');
SELECT bench.unload('pk');
