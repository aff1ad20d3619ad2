-- bench.rehearse: a change in the middle of a run; errors of its arguments. More changes: test/scenarios/rehearse.sh.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT plan(32);

CREATE ROLE reh_app LOGIN;
SELECT lives_ok($$SELECT bench.allow('reh_app')$$, 'a role may run');
GRANT CREATE ON DATABASE :"DBNAME" TO reh_app;
SET ROLE reh_app;
CREATE SCHEMA reh_app;
SET search_path = reh_app, public;
CREATE TABLE reh_items (id int PRIMARY KEY, n int);
INSERT INTO reh_items SELECT g, 0 FROM generate_series(1, 1000) AS g;
SELECT lives_ok($$SELECT bench.create_workload('reh_writes', '\set id random(1, 1000)
    UPDATE reh_app.reh_items SET n = n + 1 WHERE id = :id;')$$, 'a workload');
PREPARE rehearsed (text, text, text, float8) AS
SELECT * FROM bench.rehearse('reh_writes', jsonb_build_object('apply', $1, 'revert', $2), blocker => $3,
    blocker_secs => 1.5,
    lock_timeout => $4, tries => CASE WHEN $4 IS NULL THEN 1 ELSE 2 END, pause => 0.1, clients => 4, rate => 100,
    quiet_secs => 1, wait_limit => 0.4, sample_interval => 0.1);

CREATE TEMP TABLE safe AS EXECUTE rehearsed('ALTER TABLE reh_app.reh_items ADD c int',
    'ALTER TABLE reh_app.reh_items DROP c',
    NULL, NULL);
SELECT is(verdict, 'safe', 'a column that nobody feels') FROM safe;
SELECT is(concat_ws(' ', lock_mode, locked, tries, waited), 'AccessExclusiveLock reh_items 1 0', 'its lock')
FROM safe;
SELECT ok(tps_before > 20 AND tps_after > 20 AND back_secs > 0 AND wal_bytes > 0 AND least_disk_free_bytes > 0,
    'its figures') FROM safe;
SELECT is(error, NULL, 'no error') FROM safe;
SELECT hasnt_column('reh_app', 'reh_items', 'c', 'it is undone');

CREATE TEMP TABLE blocks AS EXECUTE rehearsed('ALTER TABLE reh_app.reh_items ADD c int',
    'ALTER TABLE reh_app.reh_items DROP c', 'SELECT count(*) FROM reh_app.reh_items', NULL);
SELECT alike(verdict, 'blocks clients for _% s', 'a column behind a reader') FROM blocks;
SELECT ok(lock_wait_secs BETWEEN 1 AND 3 AND held_secs < 0.5 AND waited > 20 AND most_queued = 4,
    'its wait') FROM blocks;
SELECT is(blocked_by #>> '{0,statement}', 'SELECT count(*) FROM reh_app.reh_items', 'behind whom') FROM blocks;
SELECT alike(answer, 'BLOCKS CLIENTS FOR % s (%Better: lock_timeout => 0.2, tries => 10%', 'the sentences') FROM blocks;
SELECT is(array_agg(step ORDER BY s.began, step), '{quiet,blocker,change,recovery}', 'its course')
FROM bench.rehearsal_steps s JOIN blocks USING (run_id);
SELECT is(array_agg(DISTINCT q.session ORDER BY q.session), '{change,client}', 'the queue')
FROM bench.rehearsal_queue q JOIN blocks USING (run_id);
SELECT sweep_id FROM bench.runs JOIN blocks USING (run_id) \gset
SELECT alike(bench.rehearse_report(:sweep_id), '%BLOCKS CLIENTS FOR%Queue for locks%', 'its report');
SELECT alike(bench.rehearse_report(:sweep_id, 'junit'), '%failures="1"%blocks clients for%', 'as JUnit');
SELECT alike(bench.rehearse_report(:sweep_id, 'html'), '%plot-rehearsal%<svg%', 'as HTML');
SELECT results_eq(format('SELECT verdict, run_id FROM bench.rehearse_results(%s)', :sweep_id),
    'SELECT verdict, run_id FROM blocks', 'its results');

CREATE TEMP TABLE fails AS EXECUTE rehearsed('ALTER TABLE reh_app.reh_items ADD c int',
    'ALTER TABLE reh_app.reh_items DROP c', 'SELECT count(*) FROM reh_app.reh_items', 0.05);
SELECT is(verdict, 'fails: 55P03 after 2 tries', 'a column that does not get its lock') FROM fails;
SELECT hasnt_column('reh_app', 'reh_items', 'c', 'is not there');

SELECT throws_ok($$SELECT bench.rehearse('reh_writes')$$, '22023',
    'change must be a JSON object with apply and revert');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1"}')$$, '22023',
    'change has no statements that revert it');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1", "revert": []}')$$, '22023',
    'change has no statements that revert it');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1", "revert": "SELECT 1"}', secs => 1)$$,
    '22023',
    'a rehearsal takes no secs');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1"}', undo => 'non')$$, '22023',
    'unrecognized undo "non"');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1"}', undo => 'none', tries => 3)$$, '22023',
    'tries without lock_timeout never begin: the first one waits for its lock');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1"}', undo => 'none', quiet_secs => 0)$$,
    '22023',
    'quiet_secs must be between 1 and 86400 seconds, not 0');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1"}', undo => 'none', alternative => true)$$,
    '22023', 'no alternative to the change is known whose statements follow from its own');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1"}', undo => 'none', target => 'x')$$,
    '0A000',
    'a change cannot be rehearsed on a target');
SELECT throws_ok($$SELECT * FROM bench.rehearse_results(-1)$$, '42704');
SELECT throws_ok($$SELECT bench.rehearse('reh_writes', '{"apply": "SELECT 1"}', undo => 'reload')$$, '22023',
    'the workload has no fixture to be loaded anew');
SELECT bench.load('pk', 1000, options => '{"schema": "reh_app"}') \g /dev/null
SELECT is(concat(verdict, error), 'safe', 'a change that is undone by a load') FROM bench.rehearse('pk_select',
    '{"apply": "DELETE FROM reh_app.pk"}', undo => 'reload', clients => 2, rate => 50, quiet_secs => 1);
SELECT is(count(*), 1000::bigint, 'the rows are back') FROM reh_app.pk;

RESET ROLE;
DROP OWNED BY reh_app CASCADE;
SELECT * FROM finish();
