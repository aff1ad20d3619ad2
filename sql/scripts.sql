--
-- What scripts may contain, and what is said of those that are wrong: when they are stored, before their
-- run, in it
--
SET client_min_messages = error;
\pset format unaligned
\pset tuples_only on

-- What bench.create_workload says of a script.
CREATE FUNCTION said(script text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    d text; h text;
BEGIN
    PERFORM bench.create_workload('w', script);
    RETURN 'stored';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', SQLSTATE || ': ' || SQLERRM, nullif(d, ''), nullif('HINT: ' || h, 'HINT: '));
END $$;

-- What a run of it says: an error before it begins, otherwise its status and its errors.
CREATE FUNCTION ran(script text, mode text DEFAULT 'prepared', variables jsonb DEFAULT '{}')
    RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    d text; h text; run bigint;
BEGIN
    PERFORM bench.create_workload('w', script);
    run := bench.run('w', transactions => 1, seed => 5432, query_mode => mode, variables => ran.variables);
    RETURN (
        SELECT concat_ws(E'\n', status, (
            SELECT string_agg(concat_ws(E'\n', sqlstate || ': ' || message, detail), E'\n' ORDER BY sqlstate)
            FROM bench.errors e
            WHERE e.run_id = r.run_id
        ))
        FROM bench.runs r
        WHERE run_id = run
    );
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', 'not run', SQLSTATE || ': ' || SQLERRM, nullif(d, ''), nullif('HINT: ' || h, 'HINT: '));
END $$;
-- The variables that pgbench's own tests give their scripts.
CREATE FUNCTION ran_as_pgbench(script text) RETURNS text LANGUAGE sql AS $$
    SELECT ran(script,
        variables => '{"foo": "bla", "null": "null", "true": "true", "one": "1", "zero": "0.0", "badtrue": "trueXXX",
            "maxint": "9223372036854775807", "minint": "-9223372036854775808"}')
$$;

--
-- Errors of form
--
SELECT said(E'SELECT 1;\n\\if 1\n\\if 2\nSELECT 2;\n\\endif\nSELECT 3;');
SELECT said('\set i 100000000000000000000');
SELECT said(E'\\set i 1 + \\\n  2 + \\\n  * 3');
SELECT said(E'\\set größe 1 §');
SELECT said('');
SELECT said(E'SELECT 1;\n\tSELECT ''é'', ''open');
SELECT said(E'SELECT 1;\n  \\shell echo :client_id');
-- which need a connection to the server
SELECT said(E'\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline');
SELECT ran(E'SELECT 0;\n\\startpipeline\nSELECT 1;\n\\endpipeline', mode) FROM unnest('{simple,prepared}'::text[]) mode;
SELECT ran('\syncpipeline'), ran('\endpipeline');
-- nothing of all this is stored that is not to be
SELECT script FROM bench.workloads WHERE name = 'w';

--
-- Errors of values come in the run, at the place where they are
--
SELECT ran_as_pgbench('\set i 1/0');
SELECT ran_as_pgbench(E'SELECT 1;\n\\set i random(5,3)');
SELECT ran_as_pgbench(E'BEGIN;\n\\if :foo\nSELECT 1;\n\\endif\nEND;');
SELECT ran_as_pgbench(E'\\if false\n\\elif 1/0\n\\endif');
SELECT ran_as_pgbench('\sleep :foo us');
SELECT ran_as_pgbench('\set i :nosuchvariable');
SELECT ran_as_pgbench(E'SELECT 1;\n\\if :nosuchvariable\n\\endif');
-- in simple mode nobody looks for variables before the run
SELECT ran('\set i :nosuchvariable', 'simple');
SELECT ran('\sleep :nosuchvariable', 'simple');
SELECT ran('SELECT :nosuchvariable;', 'simple');
-- what is given as JSON
SELECT ran($$\set a :i + 1
\set b :d * 2.0
\set c NOT :b1
\set e :n IS NULL
SELECT (:a)::int, (:b)::float8, (:c)::bool, (:e)::bool, 1 / (:a - 8);$$,
    variables => '{"i": 7, "d": 2.5, "b1": true, "n": null}');
-- \gset
SELECT ran('SELECT WHERE FALSE \gset');
SELECT ran(E'SELECT 1;\n\nSELECT 1 AS "bad name!" \\gset');
SELECT ran(E'SELECT 1 AS x, 2 AS "1" \\gset p\nSELECT 10 / (:px - 1 + :p1 - 2);');
SELECT ran(E'SELECT 1 AS x \\gset p\nSELECT :px, :py;');
SELECT ran(E'SELECT 1 AS x\\; SELECT 2 AS x, 3 AS z WHERE false \\gset', 'simple');
SELECT ran($$SELECT 1 AS x\; SELECT 2 AS y WHERE false\; SELECT generate_series(1, 9) AS z \aset
SELECT 1 / (:x - 1), :z;$$, 'simple');
-- of the server
SELECT ran('SELECT 1 + ;');
SELECT ran('SELECT 1 + ;', 'simple');
SELECT ran(E'SELECT 1\\; SELECT 2;', 'extended');
SELECT ran(E'SELECT 1\\; SELECT 2;');
SELECT ran(E'SELECT 1\\;\nSELECT 2\\; SELECT\n  1 / 0;', 'simple');
SELECT ran(E'\n\n  SELECT 1,\n\tno_such_column;', 'simple');
SELECT ran(E'\n\n  SELECT 1,\n\tno_such_column;');
SELECT ran('BEGIN;');
SELECT ran('COPY (SELECT 1) TO STDOUT;', 'simple');
SELECT ran('SELECT $1;', 'simple');
SELECT ran('SELECT $1;', 'extended');

--
-- Variables in statements
--
CREATE TABLE wide_0 (x int);
CREATE TABLE wide_1 (x int);
CREATE TABLE "wide-2" (x int);
-- a table for each client
SELECT bench.create_workload('w', $$INSERT INTO wide_:client_id VALUES (:client_id);
INSERT INTO "wide_:client_id" VALUES (10 + :client_id);$$);
SELECT mode, bench.wait(bench.run('w', clients => 2, transactions => 2, query_mode => mode))
FROM unnest('{simple,extended,prepared}'::text[]) AS mode;
SELECT tableoid::regclass, x, count(*)
FROM (SELECT tableoid, * FROM wide_0 UNION ALL SELECT tableoid, * FROM wide_1) AS u
GROUP BY 1, 2
ORDER BY 1, 2;
-- of a client that has none
SELECT bench.create_workload('w', 'SELECT * FROM wide_:client_id;');
SELECT bench.run('w', clients => 3, transactions => 2, query_mode => 'simple') AS run_id \gset
SELECT status, error ->> 'message', error ->> 'detail' FROM bench.runs WHERE run_id = :run_id;
\pset tuples_only off
SELECT bench.run('w', clients => 3, transactions => 2);
\pset tuples_only on
-- a constant of the run
SELECT ran('SELECT 1 / count(*) FROM wide_:part;', variables => '{"part": 0}');
TRUNCATE wide_0;
SELECT ran('SELECT 1 / count(*) FROM wide_:part;', variables => '{"part": "0"}');
SELECT ran('SELECT 1 FROM "wide-:part";', variables => '{"part": 2}');
-- what does not fit, or does not stay
SELECT ran('SELECT 1 FROM wide_:part;', variables => '{"part": "0; DROP TABLE wide_0"}');
SELECT ran('SELECT 1 FROM "wide_:part";', variables => '{"part": "0\" "}');
SELECT ran('SELECT 1 FROM wide_:part;', variables => '{"part": ""}');
SELECT ran('SELECT 1 FROM wide_:part;', variables => '{"part": -1}');
SELECT ran('SELECT 1 FROM wide_:part;', variables => '{"part": 1.5}');
SELECT ran('SELECT 1 FROM wide_:part;', variables => '{"part": null}');
SELECT ran('SELECT 1 FROM wide_:part;');
SELECT ran(E'\\set part 0\nSELECT 1 FROM wide_:part;');
SELECT ran(E'SELECT 0 AS part \\gset\nSELECT 1 FROM wide_:part;');
SELECT ran(E'SELECT 0 AS rt \\gset pa\nSELECT 1 FROM wide_:part;', 'extended');
-- simple mode does not mind
SELECT ran(E'\\set part 0\nSELECT 1 FROM wide_:part;', 'simple');
SELECT ran(E'\\set part 1 - 1\nSELECT 1 FROM "wide_:part" /* :part */;', 'simple');
-- inside a string constant
SELECT ran(E'SELECT 1,\n  ''client :client_id'';');
SELECT ran('SELECT $$client :client_id$$;', 'extended');
SELECT ran(E'\\set x 1\nSELECT E''\\n:x'';');
SELECT ran(E'\\set x 7\nSELECT 1 / (length(''a:x'') - 2), '':client_id'';', 'simple');
SELECT ran(E'SELECT '':unknown'', ''12:30:00''::time, '':'', ''::x'', ''{1:2}'';');
-- how many
SELECT left(ran(E'\\set i 0\nSELECT LEAST(' || repeat(':i, ', 65535) || ':i);'), 500);
SELECT ran(E'\\set i 0\nSELECT LEAST(' || repeat(':i, ', 65534) || ':i);');
SELECT ran(E'\\set i 0\nSELECT LEAST(' || repeat(':i, ', 65535) || ':i);', 'simple');
-- where none can be
SELECT ran(E'\\set x 4\nSET work_mem = :x;');
SELECT ran(E'\\set x 4096\nSET work_mem = :x;', 'simple');
SELECT ran('SELECT * FROM :client_id;');
SELECT ran('SELECT :client_id IS NULL;');
SELECT ran(E'SELECT 1\\:\\:int, :client_id::int, ARRAY[1,2,3][1:2];');
-- of a value that is not what the statement takes
SELECT ran(E'SELECT (:x)::int;', variables => '{"x": "words"}');
SELECT ran(E'SELECT (:x)::int;', 'extended', variables => '{"x": 5000000000}');
SELECT ran(E'SELECT (:x)::int;', 'simple', variables => '{"x": 5000000000}');
DROP TABLE wide_0, wide_1, "wide-2";

--
-- Mixes
--
\pset tuples_only off
\pset footer off
SELECT bench.create_workload('a', 'SELECT 1;'), bench.create_workload('b', 'SELECT 2;');
SELECT bench.run('a,nowhere', transactions => 1);
SELECT bench.run('a@1,b@2,nowhere@0', transactions => 1);
SELECT bench.run('a,', transactions => 1);
SELECT bench.run('', transactions => 1);
SELECT bench.run('@1', transactions => 1);
SELECT bench.run('a@', transactions => 1);
SELECT bench.run('a@one', transactions => 1);
SELECT bench.run('a@-1', transactions => 1);
SELECT bench.run('a@+1', transactions => 1);
SELECT bench.run('a@1.5', transactions => 1);
SELECT bench.run('a@1@2', transactions => 1);
SELECT bench.run('a@2147483648', transactions => 1);
SELECT bench.run('a@0', transactions => 1);
SELECT bench.run('a@0,b@0', transactions => 1);
SELECT bench.run(repeat('a,', 128) || 'b', transactions => 1);
SELECT bench.run(NULL, transactions => 1);
SELECT bench.create_workload('b', 'SELECT :undefined;');
SELECT bench.run('a,b', transactions => 1);
-- a variable that another script of the mix sets
SELECT bench.create_workload('a', E'\\set undefined 5\nSELECT :undefined;');
SELECT bench.run(' a @ 3 ,b@0', transactions => 2) AS run_id \gset
SELECT workload, script FROM bench.runs WHERE run_id = :run_id;
SELECT script, workload, weight, fixture, transactions, failed, retried, skipped, late
FROM bench.scripts
WHERE run_id = :run_id
ORDER BY script;
SELECT script, command, line, statement, count, failed, retried
FROM bench.statements
WHERE run_id = :run_id
ORDER BY script, command;
-- the same one several times
SELECT bench.run('a@1,a@2,a', transactions => 2) AS run_id \gset
SELECT script, workload, weight FROM bench.scripts WHERE run_id = :run_id ORDER BY script;
SELECT bench.run(repeat('a,', 127) || 'a', transactions => 5) AS run_id \gset
SELECT count(*), sum(transactions) FROM bench.scripts WHERE run_id = :run_id;

--
-- rate, latency_limit, query_mode
--
SELECT bench.run('a', rate => 0);
SELECT bench.run('a', rate => -1);
SELECT bench.run('a', rate => 'NaN');
SELECT bench.run('a', rate => 'Infinity');
SELECT bench.run('a', rate => 1000001);
SELECT bench.run('a', rates => '[1]');
SELECT bench.run('a', rates => '{"1": 5}');
SELECT bench.run('a', rates => '{"0": 5, "noon": 7}');
SELECT bench.run('a', rates => '{"0": 1e7}');
SELECT bench.run('a', rates => '{"0": 0}');
SELECT bench.run('a', rates => '{"0": 5, "shape": "waves"}');
SELECT bench.run('a', rates => '{"0": 5}', rate => 5);
SELECT bench.run('a', rates => '{"0": 5}', transactions => 5);
SELECT bench.run('a', rates => '{"0": 5}', warmup => NULL);
SELECT bench.run('a', latency_limit => 0);
SELECT bench.run('a', latency_limit => -0.5);
SELECT bench.run('a', latency_limit => 'NaN');
SELECT bench.run('a', latency_limit => 'Infinity');
SELECT bench.start('a', rate => 10, latency_limit => 0);

--
-- bench.preview
--
SELECT * FROM bench.preview($$
\set aid random_zipfian(1, 100000 * :scale, 1.2)
\set delta debug(random(-5000, 5000))
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
$$, transactions => 2, seed => 42);
-- of pgbench's manual
SELECT * FROM bench.preview($$
\set ntellers 10 * :scale
\set aid (1021 * random(1, 100000 * :scale)) % (100000 * :scale) + 1
\set divx CASE WHEN :x <> 0 THEN :ntellers/:x ELSE NULL END
SELECT :ntellers, :aid, :divx;
\set r random_zipfian(0, 100000000, 1.07)
\set k abs(hash(:r)) % 1000000
SELECT :k;
\set size 1000000
\set r random_zipfian(1, :size, 1.07)
\set k 1 + permute(:r, :size)
SELECT :k;
\set k1 1 + permute(:r, :size, :default_seed + 123)
\set k2 1 + permute(:r, :size, :default_seed + 321)
SELECT :k1 <> :k2;
$$, seed => 1, variables => '{"x": 3}');
-- which branch is taken, what a \gset would set, what does not sleep, several at once
SELECT c AS client, p.* FROM generate_series(4, 5) AS c, bench.preview($$
SELECT 1 AS one, 2 AS two \;
SELECT 2 AS three \gset p_
\set n :client_id % 2
\if :n = 0
  \sleep 1000 s
  SELECT 'even: :client_id', :p_three; -- :n
\elif :n = 1
  SELECT 'odd: :client_id', "t_:n", 1::int, :unset;
\else
  SELECT 'neither';
\endif
$$, client => c) AS p ORDER BY c, command;
-- clients and seeds differ, and come again
SELECT client, seed, string_agg(output, ' ')
FROM (VALUES (0, 1), (1, 1), (0, 2)) AS v (client, seed),
    bench.preview(E'\\set x random(1, 1000000)\nSELECT :x;', 3, client, seed)
GROUP BY client, seed
ORDER BY client, seed;
-- what pgbench sends of each kind of value
SELECT output
FROM bench.preview($$\set a NULL
\set b TRUE
\set c -5432
\set d -54.21E-2
\set e 1.0
\set f 1.0 / 3
\set g 1e100
SELECT :a, :b, :c, :d, :e, :f, :g, :h, :i;$$, variables => '{"h": "te''xt", "i": null}');
-- what is said beforehand, and what at the value
SELECT * FROM bench.preview(NULL);
SELECT * FROM bench.preview('SELECT 1;', 0);
SELECT * FROM bench.preview('SELECT 1;', 100001);
SELECT * FROM bench.preview('SELECT 1;', NULL);
SELECT * FROM bench.preview('SELECT 1;', client => -1);
SELECT * FROM bench.preview('SELECT 1;', client => 100001);
SELECT * FROM bench.preview('SELECT 1;', client => NULL);
SELECT * FROM bench.preview('SELECT 1;', seed => NULL);
SELECT * FROM bench.preview('SELECT 1;', variables => NULL);
SELECT * FROM bench.preview('SELECT 1;', variables => '[1]');
SELECT * FROM bench.preview('SELECT 1;', variables => '{"1": 1}');
SELECT * FROM bench.preview('SELECT 1;', variables => '{"x": {}}');
SELECT * FROM bench.preview('');
SELECT * FROM bench.preview(E'SELECT 1;\n\\set x 1 +');
SELECT * FROM bench.preview(E'SELECT 1;\n\\set x debug(1) / 0');
SELECT * FROM bench.preview(E'SELECT 1;\n\\set x :undefined');
SELECT * FROM bench.preview('\shell date');

SELECT bench.drop_workload('a'), bench.drop_workload('b'), bench.drop_workload('w');
DROP FUNCTION said, ran, ran_as_pgbench;
