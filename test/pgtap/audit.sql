-- The audit accuses nobody who is right, and says when it could not look.
\pset fieldsep '\n'
SET client_min_messages = error;
SELECT no_plan();

\o /dev/null
SELECT bench.load('pk', 1000);
SELECT coalesce(max(run_id), 0) AS first FROM bench.runs \gset
\o

CREATE FUNCTION pg_temp.wrong(run bigint) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s: harness %s, server %s (%s)', counter, harness, server, reason) FROM bench.audit(run) WHERE NOT ok
$$;
-- The table counters that were judged, and right.
CREATE FUNCTION pg_temp.judged(run bigint) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(counter, ' ' ORDER BY counter), 'none')
    FROM bench.audit(run)
    WHERE ok AND counter IN ('idx_scan', 'n_tup_del', 'n_tup_ins', 'n_tup_upd')
$$;
CREATE FUNCTION pg_temp.reason(run bigint, name text) RETURNS text LANGUAGE sql AS $$
    SELECT reason FROM bench.audit(run) WHERE counter = name AND ok IS NULL
$$;
CREATE FUNCTION pg_temp.server(run bigint, name text) RETURNS bigint LANGUAGE sql AS $$
    SELECT server FROM bench.audit(run) WHERE counter = name
$$;
CREATE FUNCTION pg_temp.run(script text, fixture text DEFAULT 'pk', clients int DEFAULT 2,
    transactions bigint DEFAULT 20, query_mode text DEFAULT 'prepared', variables jsonb DEFAULT '{}')
    RETURNS bigint LANGUAGE sql AS $$
    SELECT bench.create_workload('aud', script, fixture)::text;
    SELECT bench.run('aud', clients, transactions => transactions, query_mode => query_mode, variables => variables,
        tags => '{"test": "audit"}');
$$;

--
-- Conditions other than equality: the planner looks up the ends of an index, and each look is a scan
--
SELECT pg_temp.run(E'\\set id :rows - random(1, 3)\nSELECT info FROM pk WHERE id > :id;') AS run_id \gset
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'a range: the audit accuses nobody'),
    is(pg_temp.judged(:run_id), 'n_tup_del n_tup_ins n_tup_upd', 'and judges the rows'),
    matches(pg_temp.reason(:run_id, 'idx_scan'), 'ends of an index', 'and says why it does not judge the scans'),
    ok((SELECT harness <> server FROM bench.audit(:run_id) WHERE counter = 'idx_scan'), 'whose number differs');
SELECT
    pg_temp.run(E'\\set id :rows - random(1, 3)\nUPDATE pk SET info = ''range'' WHERE id BETWEEN :id AND :id + 1;',
        query_mode => mode) AS run_id,
    mode AS mode INTO TEMP ranges
FROM unnest('{prepared,extended,simple}'::text[]) AS mode;
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', run_id), format('BETWEEN, %s: the audit accuses nobody', mode)),
    is(pg_temp.judged(run_id), 'n_tup_del n_tup_ins n_tup_upd', 'and judges the rows')
FROM ranges;
-- in whatever form
SELECT pg_temp.run(E'\\set id :rows - random(1, 3)\n' || script) AS run_id, script INTO TEMP forms FROM unnest(ARRAY[
    'SELECT info FROM pk WHERE (id > :id) = true;',
    'SELECT info FROM (SELECT id >= :id AS last, info FROM pk OFFSET 0) AS s WHERE last;',
    'SELECT info FROM (SELECT id >= :id AS last, info FROM pk) AS s WHERE last;',
    'SELECT info FROM pk WHERE id > ANY (ARRAY[:id, :id + 1]::int[]);',
    'SELECT info FROM pk WHERE (id, info) >= (:id, '''');',
    'SELECT info FROM pk WHERE NOT id < :id;',
    'WITH s AS (SELECT * FROM pk WHERE id > :id) SELECT info FROM s;']) AS script;
SELECT is_empty(format('SELECT pg_temp.wrong(%s)', run_id), script || ': the audit accuses nobody') FROM forms;
-- equality, and what is computed of it, stays judged; so does what only stands in the result
SELECT pg_temp.run(E'\\set id random(1, :rows)\n' || script) AS run_id, script INTO TEMP equals FROM unnest(ARRAY[
    'SELECT info FROM pk WHERE id = :id + 0;',
    'SELECT info, id > 5 AS later FROM pk WHERE id = :id;',
    'UPDATE pk SET info = CASE WHEN id > 5 THEN ''a'' ELSE ''b'' END WHERE id = :id;',
    'SELECT info FROM pk WHERE id = :id AND info <> ''none'' AND info IS NOT NULL;']) AS script;
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', run_id), script || ': right'),
    is(pg_temp.judged(run_id), 'idx_scan n_tup_del n_tup_ins n_tup_upd', 'and judged')
FROM equals;
-- conditions that are not in the statement: those of a policy, and of an index
CREATE ROLE aud_role LOGIN;
GRANT USAGE ON SCHEMA bench_data TO aud_role;
GRANT SELECT ON bench_data.pk TO aud_role;
ALTER TABLE bench_data.pk ENABLE ROW LEVEL SECURITY;
CREATE POLICY aud ON bench_data.pk USING (id > 995);
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA bench TO aud_role;
SELECT bench.create_workload('aud', E'\\set id random(996, :rows)\nSELECT info FROM pk WHERE id = :id;',
    'pk') \g /dev/null
SET ROLE aud_role;
SELECT bench.run('aud', transactions => 20) AS run_id \gset
RESET ROLE;
SELECT is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'a row-level policy: the audit accuses nobody');
ALTER TABLE bench_data.pk DISABLE ROW LEVEL SECURITY;
DROP POLICY aud ON bench_data.pk;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA bench FROM aud_role;
DROP OWNED BY aud_role;
DROP ROLE aud_role;
CREATE INDEX aud_partial ON bench_data.pk (info) WHERE id > 998;
ANALYZE bench_data.pk;
SELECT pg_temp.run('SELECT info FROM pk WHERE id = 999 AND info = ''x'';') AS run_id \gset
SELECT is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'a partial index: the audit accuses nobody');
DROP INDEX bench_data.aud_partial;

--
-- INSERT … ON CONFLICT takes back what another was faster to insert: here each waits between the row and its key
--
CREATE FUNCTION aud_wait(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(0.01);
    RETURN $1;
END $$;
TRUNCATE bench_data.pk;
ALTER TABLE bench_data.pk DROP CONSTRAINT pk_pkey;
CREATE INDEX aud_wait ON bench_data.pk (aud_wait(id));
ALTER TABLE bench_data.pk ADD PRIMARY KEY (id);
SELECT pg_temp.run(E'\\set id :id + 1\nINSERT INTO pk (id, info) VALUES (:id, ''new'') ON CONFLICT DO NOTHING;',
    clients => 4, variables => '{"id": 0}') AS run_id \gset
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'ON CONFLICT DO NOTHING: the audit accuses nobody'),
    is(pg_temp.judged(:run_id), 'n_tup_upd', 'and judges what it can'),
    matches(pg_temp.reason(:run_id, 'n_tup_ins'), 'ON CONFLICT', 'and says why not the rest'),
    cmp_ok(pg_temp.server(:run_id, 'n_tup_del'), '>', 0::bigint, 'rows were taken back');
DROP INDEX bench_data.aud_wait;
DROP FUNCTION aud_wait;
SELECT bench.load('pk', 1000) \g /dev/null

--
-- An UPDATE that moves a row to another partition is a DELETE and an INSERT
--
\o /dev/null
SELECT bench.create_fixture('aud_parts', $$
    CREATE TABLE aud_parts (id int, part int, n int) PARTITION BY LIST (part);
    CREATE INDEX ON aud_parts (id);
    CREATE TABLE aud_parts_0 PARTITION OF aud_parts FOR VALUES IN (0) PARTITION BY RANGE (n);
    CREATE TABLE aud_parts_0_0 PARTITION OF aud_parts_0 DEFAULT;
    CREATE TABLE aud_parts_1 PARTITION OF aud_parts FOR VALUES IN (1)
$$, 'SELECT g, 0, 0 FROM generate_series($1, $2) AS g', rows => 100);
SELECT bench.load('aud_parts');
\o
SELECT
    pg_temp.run($$\set id random(1, :rows)
UPDATE aud_parts SET part = 1 - part WHERE id = :id AND part = 0;
UPDATE aud_parts SET part = 1 - part WHERE id = :id AND part = 1;$$, 'aud_parts', query_mode => mode) AS run_id,
    mode INTO TEMP moves
FROM unnest('{prepared,extended,simple}'::text[]) AS mode;
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', run_id),
        mode || ', from partition to partition: the audit accuses nobody'),
    is(pg_temp.judged(run_id) ~ 'n_tup', false, 'and does not judge the rows'),
    matches(pg_temp.reason(run_id, 'n_tup_upd'), 'partition', 'and says why')
FROM moves;
SELECT pg_temp.run(E'\\set id random(1, :rows)\nUPDATE aud_parts SET part = part WHERE id = :id AND part = 0;',
    'aud_parts') AS run_id \gset
SELECT is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'one that could move it: the audit accuses nobody');
-- rows of children that are not the fixture's are counted elsewhere
CREATE TABLE aud_child () INHERITS (bench_data.pk);
INSERT INTO aud_child SELECT g, 'child' FROM generate_series(2001, 2010) AS g;
SELECT pg_temp.run(E'\\set id random(2001, 2010)\nUPDATE pk SET info = ''of a child'' WHERE id = :id;') AS run_id \gset
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'a child of the table: the audit accuses nobody'),
    matches(pg_temp.reason(:run_id, 'n_tup_upd'), 'inherit', 'and says why it does not judge');
DROP TABLE aud_child;
-- exclusion constraints are looked up in their index
ALTER TABLE bench_data.pk ADD CONSTRAINT aud_exclude EXCLUDE USING btree (id WITH =);
SELECT pg_temp.run($$\set id random(1, 500000000)
INSERT INTO pk (id, info) VALUES (:id + 1000 * (:client_id + 1), 'excluded');$$) AS run_id \gset
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', :run_id), 'an exclusion constraint: the audit accuses nobody'),
    is(pg_temp.judged(:run_id), 'n_tup_del n_tup_ins n_tup_upd', 'and judges the rows');
ALTER TABLE bench_data.pk DROP CONSTRAINT aud_exclude;

--
-- Statistics that are reset meanwhile
--
\o /dev/null
SELECT bench.load('pk', 1000);
CREATE FUNCTION pg_temp.reset(how text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    run bigint := bench.start('pk_update', secs => 0.6);
BEGIN
    PERFORM pg_sleep(0.3);
    EXECUTE how;
    PERFORM bench.wait(run);
    RETURN run;
END $$;
\o
SELECT pg_temp.reset(how) AS run_id, how INTO TEMP resets
FROM unnest(ARRAY['SELECT pg_stat_reset()', $$
    SELECT pg_stat_reset_single_table_counters('bench_data.pk'::regclass)
$$]) AS how;
SELECT
    is_empty(format('SELECT pg_temp.wrong(%s)', run_id), how || ': the audit accuses nobody'),
    is(pg_temp.judged(run_id), 'none', 'and judges no table'),
    matches(pg_temp.reason(run_id, 'n_tup_upd'), 'reset', 'and says why')
FROM resets;
SELECT bench.run('pk_update', transactions => 20) AS run_id \gset
SELECT is(pg_temp.judged(:run_id), 'idx_scan n_tup_del n_tup_ins n_tup_upd', 'the next run is judged again');

--
-- Others' runs count from the reading of the counters, which is before the clients begin
--
SELECT ok(counted_from < started_at, 'the counters are read before the start')
FROM bench_internal.run_log
WHERE run_id = :run_id;
\o /dev/null
INSERT INTO bench_internal.run_log
SELECT (r).*
FROM (
    SELECT jsonb_populate_record(x, v || jsonb_build_object('run_id', nextval('bench_internal.run_id_seq'))) AS r
    FROM bench_internal.run_log x, (VALUES
        ('{"counted_from": "2001-01-01 10:00", "started_at": "2001-01-01 10:00", "finished_at": "2001-01-01 11:00:01"}'
            ::jsonb),
        ('{"counted_from": "2001-01-01 11:00", "started_at": "2001-01-01 11:00:02",
            "finished_at": "2001-01-01 11:01"}'),
        ('{"counted_from": "2001-01-01 11:01:01", "started_at": "2001-01-01 11:01:02",
            "finished_at": "2001-01-01 11:01:03"}'),
        -- one whose coordinator was lost, and one beside it
        ('{"counted_from": "2002-01-01 10:00", "started_at": "2002-01-01 10:00", "finished_at": null,
            "status": "running", "segment": 4294967295}'),
        ('{"counted_from": "2002-01-01 10:00:01", "started_at": "2002-01-01 10:00:01",
            "finished_at": "2002-01-01 10:00:05"}'),
        ('{"counted_from": "2002-01-02 10:00:01", "started_at": "2002-01-02 10:00:01",
            "finished_at": "2002-01-02 10:00:05"}'),
        -- a clock that was set back
        ('{"counted_from": "2003-01-01 10:00", "started_at": "2003-01-01 10:00", "finished_at": "2003-01-01 09:00"}')
    ) AS v (v)
    WHERE x.run_id = :run_id
) AS s;
SELECT max(run_id) - 6 AS planted FROM bench_internal.run_log \gset
INSERT INTO bench_internal.audit_log (run_id, counter, harness, server, judged, reason)
SELECT run_id, 'n_tup_upd', 1, 2, true, 'rows' FROM bench_internal.run_log WHERE run_id >= :planted;
\o
SELECT results_eq(format('SELECT run_id - %1$s, ok FROM bench.audits WHERE run_id >= %1$s ORDER BY run_id', :planted),
    'VALUES (0::bigint, NULL::bool), (1, NULL), (2, false), (3, NULL), (4, NULL), (5, false), (6, false)',
    'runs whose counts can have met are not judged, others are');
SELECT is(reason,
    format('run %s worked on the same fixture, or ran the same workload, at the same time', :planted + 1 - d),
    format('%s names the other', d))
FROM unnest('{0,1}'::int[]) AS d, LATERAL bench.audit(:planted + d);
SELECT results_eq(
    format('SELECT a.* FROM generate_series(%s, %s) AS r, LATERAL bench.audit(r) AS a', :planted, :planted + 6),
    format($$
        SELECT counter, harness, server, difference, ok, reason FROM bench.audits WHERE run_id >= %s ORDER BY run_id
    $$, :planted), 'one by one as all together');
DELETE FROM bench_internal.audit_log WHERE run_id >= :planted;
DELETE FROM bench_internal.run_log WHERE run_id >= :planted;

--
-- Writes that affect no rows
--
CREATE FUNCTION pg_temp.writes(run bigint) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s %s', severity, finding) FROM bench.findings(run) WHERE topic = 'writes'
$$;
SELECT
    pg_temp.run(E'\\set id -random(1, :rows)\nUPDATE pk SET info = ''none'' WHERE id = :id;',
        query_mode => mode) AS run_id,
    mode INTO TEMP nothing
FROM unnest('{prepared,extended,simple}'::text[]) AS mode;
SELECT matches(string_agg(w, E'\n'),
    '^warning Writes affected no rows: .*UPDATE pk SET info = .* in all 40 executions',
    mode || ': updates of nothing are told')
FROM nothing, pg_temp.writes(run_id) AS w
GROUP BY mode;
SELECT
    is(rows, 0::bigint, mode || ': no rows'),
    is(writes, 40::bigint, '40 executions'),
    is(empty_writes, 40::bigint, 'all without a row')
FROM nothing JOIN bench.statements USING (run_id)
WHERE statement ~ 'UPDATE';
SELECT
    is(writes, NULL, 'a meta command writes nothing'),
    is(rows, NULL, 'and has no rows')
FROM nothing JOIN bench.statements USING (run_id)
WHERE statement ~ 'set id' AND mode = 'prepared';
SELECT bench.run('pk_update', 2, transactions => 20) AS run_id \gset
SELECT
    is_empty(format('SELECT pg_temp.writes(%s)', :run_id), 'updates that hit are not told'),
    is(max(rows), 40::bigint, 'their rows'),
    is(max(writes), 40::bigint, 'their executions'),
    is(max(empty_writes), 0::bigint, 'and none of nothing')
FROM bench.statements
WHERE run_id = :run_id;
SELECT bench.run('pk_select', 2, transactions => 20) AS run_id \gset
SELECT
    is_empty(format('SELECT pg_temp.writes(%s)', :run_id), 'reads are not told'),
    is(max(rows), 40::bigint, 'their rows'),
    is(max(writes), NULL, 'they are no writes')
FROM bench.statements
WHERE run_id = :run_id;
-- The usual way to get there
SELECT bench.load('tpcb', options => '{"scale": 1}') \g /dev/null
SELECT throws_like($$SELECT bench.run('tpcb', 2, transactions => 100, variables => '{"scale": 50}')$$,
    'scale 50 is not that of fixture "tpcb", which is 1',
    'pgbench''s own script refuses a scale that the tables do not have');
SELECT bench.create_workload('aud_scale', script, fixture) FROM bench.workloads WHERE name = 'tpcb' \g /dev/null
SELECT bench.run('aud_scale', 2, transactions => 100, variables => '{"scale": 50}') AS run_id \gset
SELECT matches(string_agg(w, E'\n'),
    '^warning Writes affected no rows: .*pgbench_accounts .* in 9[0-9] % of 200 executions',
    'a scale that the tables do not have is told')
FROM pg_temp.writes(:run_id) AS w;
SELECT matches(advice, 'scale', 'and the advice names it') FROM bench.findings(:run_id) WHERE topic = 'writes';
SELECT bench.run('tpcb', 2, transactions => 100) AS run_id \gset
SELECT is_empty(format('SELECT pg_temp.writes(%s)', :run_id), 'the tables'' own scale is not');
-- A trigger that drops every row
SELECT bench.load('pk', 1000) \g /dev/null
CREATE FUNCTION aud_drop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER aud_drop BEFORE UPDATE ON bench_data.pk FOR EACH ROW EXECUTE FUNCTION aud_drop();
SELECT bench.run('pk_update', 2, transactions => 20) AS run_id \gset
SELECT matches(string_agg(w, E'\n'), '^warning Writes affected no rows: .* in all 40 executions',
    'a trigger that drops every row is told')
FROM pg_temp.writes(:run_id) AS w;
-- and the assertion says that it judged no table
SELECT check_test(bench.audit_ok(:run_id, 'audit'), true, 'no table is judged', 'audit', 'triggers or rules', true);
SELECT bench.create_workload('aud', 'SELECT 1;') \g /dev/null
SELECT bench.run('aud', transactions => 20) AS run_id \gset
SELECT check_test(bench.audit_ok(:run_id, 'audit'), true, 'no fixture', 'audit',
    'no counter of a table was judged: the workload has no fixture with tables to observe', true);
DROP TRIGGER aud_drop ON bench_data.pk;
SELECT bench.run('pk_update', transactions => 20) AS run_id \gset
SELECT check_test(bench.audit_ok(:run_id, 'audit'), true, 'tables are judged', 'audit', '');

\o /dev/null
SELECT bench.unload(name) FROM (SELECT name FROM bench.fixtures) AS f;
SELECT bench.drop_workload(name) FROM (SELECT name FROM bench.workloads WHERE name LIKE 'aud%') AS w;
SELECT bench.drop_fixture('aud_parts');
\o
DROP FUNCTION aud_drop;
DROP SCHEMA IF EXISTS bench_data;
SELECT * FROM finish();
