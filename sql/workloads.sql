--
-- bench.create_workload and bench.drop_workload
--
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
CREATE ROLE regress_bench_alice LOGIN;
CREATE ROLE regress_bench_bob LOGIN;
CREATE ROLE regress_bench_group;
GRANT EXECUTE ON FUNCTION bench.create_workload, bench.drop_workload, bench.run
    TO regress_bench_alice, regress_bench_bob;
CREATE VIEW own AS
    SELECT name, owner, fixture, script, description, builtin FROM bench.workloads WHERE NOT builtin;

-- Create, replace, drop
SELECT bench.create_workload('one', 'SELECT 1;');
SELECT bench.create_workload(name => 'two', script => E'\\set id random(1, :rows)\nSELECT :id;', fixture => 'pk',
                             description => 'Two commands');
SELECT name, owner = current_user AS mine, fixture, script, description, builtin FROM own ORDER BY name;
SELECT bench.create_workload('one', 'SELECT 2;', description => 'replaced');
SELECT bench.create_workload('two', 'SELECT 2');
SELECT name, owner = current_user AS mine, fixture, script, description, builtin FROM own ORDER BY name;
SELECT bench.drop_workload('one');
SELECT bench.drop_workload('one');
SELECT name FROM own ORDER BY name;
-- it is part of the transaction
BEGIN;
SELECT bench.create_workload('three', 'SELECT 3;');
SELECT bench.drop_workload('two');
SELECT name FROM own ORDER BY name;
ROLLBACK;
SELECT name FROM own ORDER BY name;
SELECT bench.drop_workload('two');

-- Names: 63 bytes, and nothing that a mix would take for its own
SELECT bench.create_workload(repeat('x', 63), 'SELECT 1;');
SELECT bench.create_workload(repeat('x', 64), 'SELECT 1;');
SELECT bench.create_workload(repeat('ä', 32), 'SELECT 1;');
SELECT bench.create_workload('a@2', 'SELECT 1;');
SELECT bench.create_workload('a,b', 'SELECT 1;');
SELECT bench.create_workload('', 'SELECT 1;');
SELECT bench.create_workload('Größe "quoted" ''twice''', 'SELECT 1;');
SELECT length(name) FROM own WHERE name LIKE 'x%';
SELECT name FROM own WHERE name LIKE 'G%';
SELECT bench.run('Größe "quoted" ''twice''', transactions => 1) IS NOT NULL AS ran;
SELECT bench.drop_workload('Größe "quoted" ''twice'''), bench.drop_workload(repeat('x', 63));

-- NULLs and an unknown fixture
SELECT bench.create_workload(NULL, 'SELECT 1;');
SELECT bench.create_workload('n', NULL);
SELECT bench.create_workload('n', 'SELECT 1;', 'nowhere');
SELECT bench.create_workload('n', 'SELECT 1;', NULL, NULL);
SELECT name, fixture, description FROM own;
SELECT bench.drop_workload('n');
SELECT bench.drop_workload(NULL);
SELECT bench.drop_workload('nowhere');

-- Built-in ones stay as they are
SELECT bench.create_workload('pk_select', 'SELECT 1;');
SELECT bench.drop_workload('pk_update');
SELECT count(*) AS builtin FROM bench.workloads WHERE builtin;

\set VERBOSITY sqlstate
SELECT bench.create_workload('pk_select', 'SELECT 1;');
SELECT bench.drop_workload('nowhere');
SELECT bench.create_workload('a@2', 'SELECT 1;');
SELECT bench.create_workload('w', 'SELECT 1;', 'nowhere');
\set VERBOSITY default
SELECT count(*) AS nothing_stored FROM own;

-- What is SQL is for the server to judge, before the start
SELECT bench.create_workload('w', E'SELECT 1;\nSELEC 2;');
SELECT bench.run('w', transactions => 1);
SELECT bench.create_workload('w', E'SELECT * FROM no_such_table WHERE id = :client_id;');
SELECT bench.run('w', transactions => 1);
SELECT bench.create_workload('w', 'SELECT $1;');
SELECT bench.run('w', transactions => 1);
SELECT bench.create_workload('w', 'COPY (SELECT 1) TO STDOUT;');
SELECT bench.run('w', transactions => 1);
SELECT bench.create_workload('w', E'BEGIN;\nSELECT 1;');
SET client_min_messages = error;
SELECT bench.run('w', transactions => 1) IS NOT NULL AS ran;
SET client_min_messages = warning;
SELECT status, transactions, error ->> 'sqlstate' AS sqlstate, error ->> 'message' AS message
FROM bench.runs ORDER BY run_id DESC LIMIT 1;
\set VERBOSITY sqlstate
SELECT bench.create_workload('w', 'SELEC 2;');
SELECT bench.run('w', transactions => 1);
SELECT bench.create_workload('w', 'COPY (SELECT 1) TO STDOUT;');
SELECT bench.run('w', transactions => 1);
\set VERBOSITY default

-- Undefined variables: before the start, with the line
SELECT bench.create_workload('w', E'\\set a 1\nSELECT :a;\nSELECT :b, :c;');
SELECT bench.run('w', transactions => 1);
SELECT bench.run('w', transactions => 1, variables => '{"b": 1}');
SELECT bench.run('w', transactions => 1, variables => '{"b": 1, "c": "x"}') IS NOT NULL AS given;
\set VERBOSITY sqlstate
SELECT bench.run('w', transactions => 1);
\set VERBOSITY default
SELECT bench.create_workload('w', 'SELECT :client_id::int, :random_seed::int8, :scale::int, :rows::int8;');
SELECT bench.run('w', transactions => 1) IS NOT NULL AS automatic;
SELECT bench.create_workload('w', E'SELECT '':no'', ":no" FROM (SELECT 1 AS ":no") s /* :no */ -- :no\n;');
SELECT bench.run('w', transactions => 1) IS NOT NULL AS quoted;
SELECT bench.create_workload('w', E'SELECT 1::int, ''{1,2}''::int[];');
SELECT bench.run('w', transactions => 1) IS NOT NULL AS casts;
SELECT bench.drop_workload('w');

-- Ownership: the owner, and who can SET ROLE to it
SET ROLE regress_bench_alice;
SELECT bench.create_workload('alices', 'SELECT current_user;');
SELECT name, owner FROM bench.workloads WHERE NOT builtin;
SET ROLE regress_bench_bob;
SELECT bench.create_workload('alices', 'SELECT 2;');
SELECT bench.drop_workload('alices');
-- others may read it, but run it only if one of the two can become the other
SELECT script FROM bench.workloads WHERE name = 'alices';
SELECT bench.run('alices', transactions => 1) IS NOT NULL AS ran;
RESET ROLE;
GRANT regress_bench_alice TO regress_bench_bob;
SET ROLE regress_bench_bob;
SELECT bench.create_workload('alices', 'SELECT 3;', description => 'by a member');
-- who wrote it last answers for it
SELECT name, owner, script FROM bench.workloads WHERE NOT builtin;
RESET ROLE;
REVOKE regress_bench_alice FROM regress_bench_bob;
SET ROLE regress_bench_alice;
SELECT bench.drop_workload('alices');
RESET ROLE;
-- a superuser's clients are sessions of that role
SELECT bench.run('alices', transactions => 1) IS NOT NULL AS ran;
-- unless they could SET ROLE to a superuser
CREATE ROLE regress_bench_admins SUPERUSER;
GRANT regress_bench_admins TO regress_bench_bob;
SET ROLE regress_bench_bob;
SELECT bench.run('alices', transactions => 1);
RESET ROLE;
DROP ROLE regress_bench_admins;
SELECT bench.create_workload('alices', script) FROM bench.workloads WHERE name = 'alices';
SELECT name, owner = current_user AS mine FROM bench.workloads WHERE NOT builtin;
SELECT bench.run('alices', transactions => 1) IS NOT NULL AS ran;
SELECT bench.drop_workload('alices');

-- A role that was renamed
SET ROLE regress_bench_alice;
SELECT bench.create_workload('alices', 'SELECT 1;');
RESET ROLE;
ALTER ROLE regress_bench_alice RENAME TO regress_bench_alicia;
SET ROLE regress_bench_alicia;
SELECT bench.create_workload('alices', 'SELECT 2;');
SELECT owner, script FROM bench.workloads WHERE name = 'alices';
RESET ROLE;
ALTER ROLE regress_bench_alicia RENAME TO regress_bench_alice;
SELECT bench.drop_workload('alices');

\set VERBOSITY sqlstate
SET ROLE regress_bench_alice;
SELECT bench.create_workload('alices', 'SELECT 1;');
SET ROLE regress_bench_group;
SELECT bench.create_workload('w', 'SELECT 1;');
SELECT bench.drop_workload('alices');
RESET ROLE;
\set VERBOSITY default
SELECT bench.drop_workload('alices');
DROP VIEW own;
DROP OWNED BY regress_bench_alice, regress_bench_bob, regress_bench_group;
DROP ROLE regress_bench_alice, regress_bench_bob, regress_bench_group;
