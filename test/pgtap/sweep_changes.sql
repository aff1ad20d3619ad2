-- Variants that change the database by SQL: when it is changed and undone, as whom, and what is kept of it.
\pset fieldsep '\n'
SET client_min_messages = error;
\ir ../lib/pgtap.sql
SELECT no_plan();

\o /dev/null
DROP ROLE IF EXISTS chg_alice, chg_bob;
CREATE ROLE chg_alice LOGIN;
CREATE ROLE chg_bob LOGIN;
GRANT chg_bob TO chg_alice;
ALTER ROLE chg_alice SET statement_timeout = '50ms';
CREATE SCHEMA chg AUTHORIZATION chg_alice;
SELECT bench.allow('chg_alice');
GRANT ALL ON ALL TABLES IN SCHEMA pg_temp TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA pg_temp TO PUBLIC;
SET ROLE chg_alice;
CREATE TABLE chg.rows AS SELECT i, i % 10 AS a FROM generate_series(1, 2000) AS i;
-- what a run finds
CREATE TABLE chg.seen (variant text, indexes text, role text);
SELECT bench.create_workload('chg_see', $$
    INSERT INTO chg.seen SELECT :variant, string_agg(indexrelid::regclass::text, ' '), current_user
    FROM pg_index WHERE indrelid = 'chg.rows'::regclass;
$$);
\o
CREATE FUNCTION pg_temp.indexes() RETURNS text LANGUAGE sql AS
    $$SELECT string_agg(indexrelid::regclass::text, ' ') FROM pg_index WHERE indrelid = 'chg.rows'::regclass$$;

--
-- In force for its runs, and for no others
--
SELECT bench.sweep('chg_see', '{1,2}', secs => 0.2, rounds => 2, rate => 50, variants => '{
    "with": {"variables": {"variant": "with"}, "sql": {
        "apply": ["SET ROLE chg_bob", "SELECT pg_sleep(0.1)", "RESET ROLE", "CREATE INDEX i ON chg.rows (a)"],
        "revert": "DROP INDEX chg.i"}},
    "without": {"variables": {"variant": "without"}}}') AS sweep \gset
SELECT
    is(status, 'completed', 'a variant with SQL: completed'),
    is(completed, 8, 'all runs')
FROM bench.sweeps
WHERE sweep_id = :sweep;
SELECT results_eq('SELECT DISTINCT variant, indexes, role FROM chg.seen ORDER BY 1',
    $$VALUES ('with', 'chg.i', 'chg_alice'), ('without', NULL, 'chg_alice')$$,
    'the index is there in its runs only, which are those of the calling role');
SELECT is(pg_temp.indexes(), NULL, 'and gone in the end');
SELECT
    is(count(*), 2::bigint, 'it was made once in each round'),
    ok(bool_and(apply_secs >= 0.1 AND revert_secs > 0), 'which took some time'),
    is(min(made), '{chg.i}', 'it is named'),
    ok(bool_and(made_bytes BETWEEN 8192 AND 1e6), 'with its size'),
    is(array_agg(DISTINCT variant), '{with}', 'and its variant'),
    is(array_agg(round ORDER BY round), '{1,2}', 'and rounds'),
    is(count(to_revert), 0::bigint, 'nothing is left to be undone'),
    is(count(error), 0::bigint, 'without errors')
FROM bench.sweep_changes
WHERE sweep_id = :sweep;
SELECT ok(bool_and(variant = before) FILTER (WHERE place IN (2, 4, 6, 8)), 'the runs of a stretch follow each other')
FROM (
    SELECT place, variant, lag(variant) OVER (ORDER BY place) AS before
    FROM bench.sweep_runs
    WHERE sweep_id = :sweep
) AS s;
SELECT results_eq('SELECT DISTINCT s.variant, cardinality(r.applied)
    FROM bench.sweep_runs s JOIN bench.runs r USING (run_id) WHERE s.sweep_id = ' || :sweep || ' ORDER BY 1',
    $$VALUES ('with', 4), ('without', 0)$$,
    'a run says what was applied');
SELECT matches(bench.sweep_report(:sweep), 'Changes by SQL.*round.*variant.*apply s.*chg\.i', 'the report, too');
SELECT is(bench.sweep_report(:sweep, 'json')::jsonb #>> '{changes,0,made,0}', 'chg.i', 'and its JSON');
SELECT is((
    SELECT array_agg(DISTINCT options -> 'applied' ->> 3 ORDER BY options -> 'applied' ->> 3)
    FROM bench.history
    WHERE workload = 'chg_see'
), '{CREATE INDEX i ON chg.rows (a),NULL}', 'runs of a changed database are a series of their own');

-- bench.ab and bench.verify, and a difference that is named
SELECT bench.create_workload('chg_find', 'SELECT count(*) FROM chg.rows WHERE a = 3;') \g /dev/null
CREATE TEMP TABLE compared AS
SELECT * FROM bench.ab('chg_find', '{}',
    '{"sql": {"apply": "CREATE INDEX i ON rows (a, i)", "revert": "DROP INDEX i"}}',
    rounds => 2, secs => 0.3, settings => '{"search_path": "chg", "statement_timeout": "10s"}', before => 'vacuum');
SELECT is(differences @> '[{"what": "applied", "candidate": "CREATE INDEX i ON rows (a, i)"}]', true,
    'bench.ab names the statements; names are found by the settings of the clients')
FROM compared
WHERE metric = 'tps';
SELECT is(plan_changed, true, 'bench.verify: pairs of runs')
FROM bench.verify('chg_find', '{}',
    '{"sql": {"apply": "CREATE INDEX i ON chg.rows (a, i)", "revert": "DROP INDEX chg.i"}}',
    rounds => 2, secs => 0.3);

-- Where each run has its fixture loaded anew, the statements come after it.
RESET ROLE;
SELECT bench.load('pk', 1000) \g /dev/null
SELECT bench.create_workload('chg_pk', 'SELECT 1 / (SELECT count(*) FROM pg_indexes WHERE indexname = ''chg_pk'');',
    'pk') \g /dev/null
SELECT bench.sweep('chg_pk', '{1,2}', secs => 0.1, before => 'reload',
    variants => '{"v": {"sql": {"apply": "CREATE INDEX chg_pk ON bench_data.pk (id)",
        "revert": "DROP INDEX bench_data.chg_pk"}}}') AS sweep \gset
SELECT is(status, 'completed', 'before => reload: completed') FROM bench.sweeps WHERE sweep_id = :sweep;
SELECT is(count(revert_secs), 2::bigint, 'before => reload: applied to each table') FROM bench.sweep_changes
WHERE sweep_id = :sweep;

--
-- What fails
--
SET ROLE chg_alice;
-- A text of several statements is one transaction, and each text one of its own.
SELECT bench.sweep('chg_see', '{1}', secs => 0.1, variables => '{"variant": "x"}', variants => '{
    "bad": {"sql": {"apply": ["CREATE INDEX i ON chg.rows (a)", "CREATE INDEX j ON chg.rows (i); SELECT 1 / 0"],
        "revert": ["DROP INDEX chg.j", "DROP INDEX chg.i"]}},
    "good": {}}') AS sweep \gset
SELECT is(status, 'incomplete', 'statements that fail: the other variants run') FROM bench.sweeps
WHERE sweep_id = :sweep;
SELECT is(error, 'division by zero', 'the run says why') FROM bench.sweep_runs
WHERE sweep_id = :sweep AND variant = 'bad';
SELECT
    is(error, 'division by zero', 'so does the change'),
    is(apply_secs, NULL, 'which was not completed'),
    isnt(revert_secs, NULL, 'and was undone as far as it went')
FROM bench.sweep_changes
WHERE sweep_id = :sweep;
SELECT is(pg_temp.indexes(), NULL, 'nothing stays');

-- What cannot be undone ends all runs, and is said.
SELECT bench.start_sweep('chg_see', '{1}', secs => 0.1, rounds => 2, variables => '{"variant": "x"}', variants => '{
    "v": {"sql": {"apply": "CREATE INDEX i ON chg.rows (a)",
        "revert": ["DROP INDEX chg.i", "DROP INDEX chg.nonesuch"]}},
    "w": {}}') AS sweep \gset
SELECT isnt(bench.wait_sweep(:sweep), 'completed', 'what cannot be undone: not completed');
SELECT
    is(error ->> 'message', 'could not revert variant "v": index "nonesuch" does not exist', 'the sweep says why'),
    is(error ->> 'sqlstate', '42704', 'with the server''s SQLSTATE'),
    matches(error ->> 'hint', 'bench.sweep_changes.*bench.resume_sweep', 'and what to do')
FROM bench.sweeps
WHERE sweep_id = :sweep;
SELECT is(to_revert, '{DROP INDEX chg.i,DROP INDEX chg.nonesuch}', 'it says what is left')
FROM bench.sweep_changes
WHERE sweep_id = :sweep;

-- A transaction is not left open, nor another role, nor settings.
SELECT bench.sweep('chg_see', '{1}', secs => 0.1, variants => '{
    "open": {"variables": {"variant": "open"}, "sql": {"apply": "BEGIN; CREATE INDEX i ON chg.rows (a)", "revert": []}},
    "role": {"variables": {"variant": "role"}, "sql": {
        "apply": "SET ROLE chg_bob; SET default_transaction_read_only = on", "revert": []}}}') AS sweep \gset
SELECT is(error, 'the statements leave a transaction open', 'BEGIN without an end') FROM bench.sweep_runs
WHERE sweep_id = :sweep AND variant = 'open';
SELECT is(pg_temp.indexes(), NULL, 'is rolled back');
SELECT is(role, 'chg_alice', 'SET ROLE is the statements'' alone') FROM chg.seen WHERE variant = 'role' LIMIT 1;

-- refused at once
CREATE FUNCTION pg_temp.refused(variant text, code text, message text, what text) RETURNS text LANGUAGE sql AS
    $$SELECT throws_ok(format('SELECT bench.sweep(''chg_find'', ''{1}'', variants => %L)',
        format('{"v": {"sql": %s}}', variant)), code, message, what)$$;
SELECT pg_temp.refused('{"apply": "CREATE INDEKS i", "revert": []}', '42601', 'syntax error at or near "INDEKS"',
    'a syntax error is found before the first run');
SELECT pg_temp.refused('{"apply": "SELECT 1"}', '22023',
    'sql of variant "v" must have revert, a text or an array of texts', 'without revert');
SELECT pg_temp.refused('{"apply": [], "revert": []}', '22023', 'sql of variant "v" applies nothing',
    'nothing to apply');
SELECT pg_temp.refused('{"apply": [1], "revert": []}', '22023',
    'sql of variant "v" must have apply, a text or an array of texts', 'no text');
SELECT pg_temp.refused('{"apply": "SELECT 1", "revert": [], "undo": 1}', '22023',
    'sql of variant "v" has an unrecognized key: "undo"', 'another key');
SELECT throws_ok($$SELECT * FROM bench.duel('chg_find', '{}', '{"sql": {"apply": "SELECT 1", "revert": []}}')$$,
    '0A000',
    'arms of a duel cannot differ in "sql"', 'a duel has no room for it');

\o /dev/null
RESET ROLE;
SELECT bench.unload('pk'), bench.drop_workload('chg_pk');
SET ROLE chg_alice;
SELECT bench.drop_workload('chg_see'), bench.drop_workload('chg_find');
RESET ROLE;
DROP SCHEMA chg CASCADE;
\o
SELECT * FROM finish();
