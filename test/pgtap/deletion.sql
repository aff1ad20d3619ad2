-- Deleting runs, whichever way: by bench.delete_run, bench.prune, DELETE on the table and on the view, TRUNCATE.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

DROP ROLE IF EXISTS del_alice, del_bob, del_boss, del_clerk;
CREATE ROLE del_alice LOGIN;
CREATE ROLE del_bob LOGIN;
CREATE ROLE del_boss LOGIN IN ROLE del_alice;
CREATE ROLE del_clerk LOGIN;
GRANT EXECUTE ON FUNCTION bench.run, bench.start TO del_alice;
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO PUBLIC;

-- Tables with a row of a run, whichever there are.
CREATE FUNCTION pg_temp.holding(run bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    relation record;
    held boolean;
    found text[] = '{}';
BEGIN
    FOR relation IN
    SELECT c.relname, c.oid::regclass AS name
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'run_id' AND NOT a.attisdropped
                    WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
                        AND c.relkind IN ('r', 'p')
                    ORDER BY c.relname COLLATE "C" LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE run_id = $1)', relation.name) INTO held USING run;
        IF held THEN found = found || relation.relname::text; END IF;
    END LOOP;
    RETURN found;
END $$;
-- A run with a row in each table that has a column run_id: values do not matter.
CREATE FUNCTION pg_temp.made_up(sweep bigint DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    run bigint = nextval('bench_internal.run_id_seq');
    relation regclass;
BEGIN
    FOR relation IN
    SELECT c.oid
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'run_id' AND NOT a.attisdropped
                    WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
                        AND c.relkind IN ('r', 'p')
                        AND c.relname <> 'sweep_run_log' LOOP
        EXECUTE format('INSERT INTO %s SELECT (jsonb_populate_record(NULL::%1$s, $1)).*', relation) USING (
            SELECT jsonb_object_agg(a.attname, CASE
                       WHEN a.attname = 'run_id' THEN to_jsonb(run) WHEN a.attname
                           = 'sweep_id' THEN coalesce(to_jsonb(sweep), 'null')
                       WHEN a.attname = 'status' THEN '"completed"' WHEN a.attname = 'role' THEN to_jsonb(current_user)
                       WHEN a.attname = 'outcome' THEN '"processed"' WHEN a.attname = 'latencies'
                           OR a.atttypid = 'text[]'::regtype THEN '[]'
                       WHEN a.atttypid IN ('int8[]'::regtype, 'float8[]'::regtype) THEN '[1]'
                       WHEN a.atttypid = 'jsonb'::regtype THEN '{}' WHEN a.atttypid = 'text'::regtype THEN '"x"'
                       WHEN a.atttypid = 'boolean'::regtype THEN 'false' WHEN a.atttypid
                           = 'timestamptz'::regtype THEN to_jsonb(now())
                       ELSE '1' END)
            FROM pg_attribute a WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
              AND (a.attnotnull OR a.attname IN ('sweep_id', 'started_at', 'finished_at')));
    END LOOP;
    IF sweep IS NOT NULL THEN
        INSERT INTO bench_internal.sweep_run_log (sweep_id, place, round, variant, clients, run_id)
        SELECT sweep, count(*) + 1, 1, '', 1, run FROM bench_internal.sweep_run_log WHERE sweep_id = sweep;
    END IF;
    RETURN run;
END $$;
CREATE FUNCTION pg_temp.made_up_sweep() RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO bench_internal.sweep_log (options, status, role, extension_version, segment)
    VALUES ('{"workload": "x", "clients": [1]}', 'completed', current_user, '0', 0) RETURNING sweep_id
$$;

--
-- Everything goes, whichever way
--
SELECT pg_temp.made_up() AS plain \gset
SELECT bag_eq(format('SELECT unnest(pg_temp.holding(%s))', :plain), $$
    SELECT c.relname::text
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'run_id'
    WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
        AND c.relkind IN ('r', 'p')
        AND c.relname <> 'sweep_run_log'
$$, 'a run has a row in every table with a column run_id');
SELECT is(bench.delete_run(:plain), true, 'bench.delete_run'), is(pg_temp.holding(:plain), '{}', 'deletes all of it');
SELECT
    pg_temp.made_up() AS stays,
    pg_temp.made_up() AS by_table,
    pg_temp.made_up() AS by_view,
    pg_temp.made_up() AS by_prune \gset
DELETE FROM bench_internal.run_log WHERE run_id = :by_table;
SELECT is(pg_temp.holding(:by_table), '{}', 'DELETE on the table deletes all of it');
DELETE FROM bench.runs WHERE run_id = :by_view;
SELECT is(pg_temp.holding(:by_view), '{}', 'DELETE on the view does');
UPDATE bench_internal.run_log
SET started_at = started_at - interval '9 days', finished_at = finished_at - interval '9 days'
WHERE run_id = :by_prune;
SELECT ok(bench.prune('8 days') >= 1, 'bench.prune'), is(pg_temp.holding(:by_prune), '{}', 'does');
SELECT ok(cardinality(pg_temp.holding(:stays)) > 10, 'another run stays');
SELECT pg_temp.made_up() AS one, pg_temp.made_up() AS two \gset
DELETE FROM bench_internal.run_log WHERE run_id IN (:one, :two);
SELECT is(pg_temp.holding(:one) || pg_temp.holding(:two), '{}', 'several at once');
DELETE FROM bench_internal.run_log WHERE false;
BEGIN;
SELECT bench.delete_run(:stays) AS deleted \gset
ROLLBACK;
SELECT is(:'deleted'::text, 't', 'deleted'), ok(cardinality(pg_temp.holding(:stays)) > 10, 'until a ROLLBACK');
BEGIN;
TRUNCATE bench_internal.run_log;
SELECT is(pg_temp.holding(:stays), '{}', 'TRUNCATE deletes all of all runs');
SELECT is(count(*), 0::bigint, 'of all') FROM bench.samples;
ROLLBACK;
SELECT ok(cardinality(pg_temp.holding(:stays)) > 10, 'until a ROLLBACK, too');

--
-- Sweeps: as bench.prune
--
SELECT pg_temp.made_up_sweep() AS sweep \gset
SELECT pg_temp.made_up(:sweep) AS first, pg_temp.made_up(:sweep) AS second \gset
SELECT is(bench.delete_run(:first), true, 'a run of a sweep that is over');
SELECT is(array_agg(run_id), ARRAY[:second::bigint], 'the sweep stays with the other')
FROM bench_internal.sweep_run_log
WHERE sweep_id = :sweep;
SELECT is(count(*), 1::bigint, 'it stays') FROM bench_internal.sweep_log WHERE sweep_id = :sweep;
DELETE FROM bench_internal.run_log WHERE run_id = :second;
SELECT is(count(*), 0::bigint, 'the sweep goes with the last') FROM bench_internal.sweep_log WHERE sweep_id = :sweep;
SELECT is(count(*), 0::bigint, 'and its plan') FROM bench_internal.sweep_run_log WHERE sweep_id = :sweep;

--
-- What is under way
--
\o /dev/null
SELECT bench.create_workload('del_slow', 'SELECT pg_sleep(0.01);');
SELECT bench.start('del_slow', secs => 60, sample_interval => 0.1) AS live \gset
\o
SELECT throws_ok(format(call, :live), '55006', format('run %s is under way', :live),
    format(call, 'X') || ' of a run under way is refused')
FROM unnest('{SELECT bench.delete_run(%s),DELETE FROM bench_internal.run_log WHERE run_id = %s,'
    'DELETE FROM bench.runs WHERE run_id >= %s,DELETE FROM bench_internal.run_log,'
    'TRUNCATE bench_internal.run_log}'::text[]) AS call;
SELECT ok(cardinality(pg_temp.holding(:stays)) > 10, 'and with it the rest of the statement');
SELECT lives_ok($$SELECT bench.prune('100 years')$$, 'prune passes over it');
SELECT bench.stop(:live) AS stopped \gset
SELECT
    is(bench.wait(:live), 'canceled', 'it has ended'),
    is(bench.delete_run(:live), true, 'and can be deleted'),
    is(pg_temp.holding(:live), '{}', 'with all of it');
SELECT pg_temp.made_up() AS crashed \gset
UPDATE bench_internal.run_log SET status = 'running', finished_at = NULL, segment = 4294967295 WHERE run_id = :crashed;
SELECT is(status, 'crashed', 'a run that crashed') FROM bench.runs WHERE run_id = :crashed;
SELECT is(bench.delete_run(:crashed), true, 'can be deleted'), is(pg_temp.holding(:crashed), '{}', 'with all of it');
\o /dev/null
SELECT bench.start_sweep('del_slow', '{1}', secs => 60, rounds => 2) AS going \gset
\o
CALL pg_temp.until(format($$
    SELECT EXISTS (
        SELECT FROM bench_internal.sweep_run_log JOIN bench.runs r USING (run_id)
        WHERE sweep_run_log.sweep_id = %s AND r.status = 'running'
    )
$$, :going)) \g /dev/null
SELECT run_id AS of_sweep FROM bench_internal.sweep_run_log WHERE sweep_id = :going AND run_id IS NOT NULL \gset
SELECT throws_ok(format('SELECT bench.delete_run(%s)', :of_sweep), '55006', NULL, 'the run that a sweep has under way');
SELECT bench.stop(:of_sweep) AS stopped \gset
SELECT bench.wait(:of_sweep) AS waited \gset
SELECT throws_ok(format('DELETE FROM bench_internal.run_log WHERE run_id = %s', :of_sweep), '55006',
    format('run %s belongs to sweep %s, which is under way', :of_sweep, :going), 'one that the sweep has behind it');
\o /dev/null
SELECT bench.stop_sweep(:going), bench.wait_sweep(:going);
\o
SELECT is(bench.delete_run(:of_sweep), true, 'when the sweep is over');

--
-- Who may
--
\o /dev/null
SET SESSION AUTHORIZATION del_alice;
SELECT bench.run('del_slow', transactions => 1) AS alices, bench.run('del_slow', transactions => 1) AS other \gset
\o
SELECT
    throws_ok(format('SELECT bench.delete_run(%s)', :alices), '42501', 'permission denied for function delete_run',
        'for those who are granted it'),
    throws_ok(format('DELETE FROM bench.runs WHERE run_id = %s', :alices), '42501', NULL, 'nor by the view');
CREATE TEMP TABLE del_own AS SELECT :stays::bigint AS run_id;
SELECT throws_ok($$
    CREATE TRIGGER t AFTER DELETE ON del_own
        REFERENCING OLD TABLE AS deleted
        FOR EACH STATEMENT
        EXECUTE FUNCTION bench_internal.forget_runs()
$$, '42501', NULL, 'nobody puts the trigger on a table of their own');
RESET SESSION AUTHORIZATION;
GRANT EXECUTE ON FUNCTION bench.delete_run TO del_alice, del_bob, del_boss;
SET SESSION AUTHORIZATION del_bob;
SELECT throws_ok(format('SELECT bench.delete_run(%s)', :alices), '42501',
    format('run %s belongs to role "del_alice"', :alices), 'another role''s');
SET SESSION AUTHORIZATION del_alice;
SELECT
    is(bench.delete_run(:alices), true, 'one''s own'),
    is(current_user::text, 'del_alice', 'the role is the caller''s again');
SET SESSION AUTHORIZATION del_boss;
SELECT is(bench.delete_run(:other), true, 'a member of the role deletes the role''s');
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.holding(:alices) || pg_temp.holding(:other), '{}', 'all of them');
-- whoever was let delete rows deletes all of the run
SELECT pg_temp.made_up() AS granted \gset
GRANT SELECT, DELETE ON bench_internal.run_log TO del_clerk;
SET SESSION AUTHORIZATION del_clerk;
SELECT lives_ok(format('DELETE FROM bench_internal.run_log WHERE run_id = %s', :granted), 'whoever was granted DELETE');
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.holding(:granted), '{}', 'deletes all of it');
REVOKE SELECT, DELETE ON bench_internal.run_log FROM del_clerk;
CREATE TEMP TABLE elsewhere AS
SELECT :stays::bigint AS run_id, 'completed'::text AS status, 0::bigint AS segment, NULL::bigint AS sweep_id;
CREATE TRIGGER t AFTER DELETE ON elsewhere
    REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT
    EXECUTE FUNCTION bench_internal.forget_runs();
SELECT
    throws_ok('SELECT bench.delete_run(NULL)', '22004', 'run_id must not be null', 'no run'),
    throws_ok('SELECT bench.delete_run(-1)', '42704', 'run -1 does not exist', 'one that does not exist'),
    throws_ok('DELETE FROM elsewhere', '39P01', 'this trigger function serves bench_internal.run_log only',
        'on another table the trigger does nothing'),
    ok(cardinality(pg_temp.holding(:stays)) > 10, 'no run goes');

--
-- An audit stays as it was said when the run that was in its way is deleted
--
SELECT pg_temp.made_up() AS beside, pg_temp.made_up() AS audited \gset
UPDATE bench_internal.run_log
SET workload = 'del_beside', fixture = NULL, started_at = now() - interval '2 h', finished_at = now() - interval '1 h'
WHERE run_id IN (:beside, :audited);
DELETE FROM bench_internal.audit_log WHERE run_id = :audited;
INSERT INTO bench_internal.audit_log (run_id, counter, harness, server, judged, reason)
VALUES (:audited, 'idx_scan', 1, 2, true, 'scans'), (:audited, 'samples', 3, 3, true, 'samples');
CREATE TEMP TABLE audit AS SELECT * FROM bench.audit(:audited);
SELECT is(ok, NULL, 'a run beside it keeps an audit from being judged') FROM audit WHERE counter = 'idx_scan';
DELETE FROM bench.runs WHERE run_id = :beside;
SELECT is(pg_temp.holding(:beside), '{}', 'that run is deleted');
SELECT results_eq(format('SELECT * FROM bench.audit(%s)', :audited), 'SELECT * FROM audit',
    'the audit still is not judged');

-- It is enabled always, for the extension's own statements run as a replica's.
SELECT pg_temp.made_up() AS replica \gset
SET session_replication_role = replica;
DELETE FROM bench_internal.run_log WHERE run_id = :replica;
RESET session_replication_role;
SELECT is(pg_temp.holding(:replica), '{}', 'as a replica as well');

\o /dev/null
SELECT bench.prune('0');
DO $$ DECLARE relation regclass; BEGIN
    FOR relation IN SELECT c.oid FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'run_id'
                    WHERE c.relnamespace IN ('bench'::regnamespace, 'bench_internal'::regnamespace)
                        AND c.relkind = 'r' LOOP
        EXECUTE format('DELETE FROM %s WHERE run_id NOT IN (SELECT run_id FROM bench_internal.run_log)', relation);
    END LOOP; END $$;
SELECT bench.drop_workload('del_slow');
REVOKE ALL ON FUNCTION bench.run, bench.start, bench.delete_run FROM del_alice, del_bob, del_boss;
\o
SELECT * FROM finish();
