--
-- bench.add_feeder and bench.drop_feeder, and what runs say of feeders
--
SET client_min_messages = warning;
\pset format unaligned
\pset footer off
CREATE TABLE feeders_rows (id int, note text);
INSERT INTO feeders_rows VALUES (1, 'one'), (2, 'it''s'), (3, E'a\\b'), (4, NULL), (5, E'two\nlines');
SELECT bench.create_workload('feeders_w', 'SELECT :id, :note;');

-- Arguments
SELECT bench.add_feeder(NULL, 'SELECT 1 AS id');
SELECT bench.add_feeder('feeders_w', NULL);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', NULL);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', pick => NULL);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', once => NULL);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', max_rows => NULL);
SELECT bench.add_feeder('nonesuch', 'SELECT 1 AS id');
SELECT bench.add_feeder('pk_select', 'SELECT 1 AS id');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', prefix => '1');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', prefix => repeat('x', 64));
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', pick => 'shuffled');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', once => true);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id', max_rows => 0);

-- Queries
SELECT bench.add_feeder('feeders_w', 'SELEC 1');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id; SELECT 2 AS id');
SELECT bench.add_feeder('feeders_w', 'SHOW work_mem');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id INTO feeders_copy');
SELECT bench.add_feeder('feeders_w', 'DELETE FROM feeders_rows RETURNING id');
SELECT bench.add_feeder('feeders_w', 'WITH d AS (DELETE FROM feeders_rows RETURNING id) SELECT id FROM d');
SELECT bench.add_feeder('feeders_w', 'SELECT id FROM feeders_rows FOR UPDATE');
SELECT bench.add_feeder('feeders_w', 'SELECT nonesuch FROM feeders_rows');
SELECT bench.add_feeder('feeders_w', 'SELECT id FROM feeders_rows WHERE id = $1');
SELECT bench.add_feeder('feeders_w', 'SELECT count(*), count(id) FROM feeders_rows');
SELECT bench.add_feeder('feeders_w', 'SELECT 1');
SELECT bench.add_feeder('feeders_w', 'SELECT FROM feeders_rows');
SELECT bench.add_feeder('feeders_w', 'SELECT id FROM feeders_rows', pick => 'weighted');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS weight', pick => 'weighted');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id FROM feeders_nonesuch');
SELECT * FROM bench.feeders;
SELECT bench.drop_feeder('feeders_w');
SELECT bench.drop_feeder('feeders_w');

-- One that is kept, replaced, joined by another, and removed
SELECT bench.add_feeder('feeders_w', 'SELECT id FROM feeders_rows');
SELECT bench.add_feeder('feeders_w', 'SELECT id, note FROM feeders_rows ORDER BY id', pick => 'sequence',
    once => true);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS te', prefix => 'no', max_rows => 5);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS more', prefix => 'no', max_rows => 5);
SELECT * FROM bench.feeders ORDER BY prefix;
SELECT bench.drop_feeder('feeders_w', 'yes');
SELECT bench.drop_feeder('feeders_w', 'no');
SELECT bench.drop_feeder('feeders_w', NULL);
SELECT bench.drop_feeder(NULL);
SELECT bench.drop_feeder('nonesuch');
SELECT bench.create_workload('feeders_w', 'SELECT :id, :note, 2;');
SELECT count(*) FROM bench.feeders;

-- What a client sends
SELECT transaction, output FROM bench.preview(NULL, 7, workload => 'feeders_w');
SELECT transaction, output FROM bench.preview('SELECT :note;', 2, variables => '{"id": 7}', workload => 'feeders_w');
SELECT * FROM bench.preview(NULL);
SELECT * FROM bench.preview('SELECT 1;', workload => 'feeders_nonesuch');

-- A run ends when each row has been taken
SELECT bench.run('feeders_w', clients => 2, secs => 60) AS run \gset
SELECT s.status, s.transactions, r.feeders
FROM bench.runs r JOIN bench.summary s USING (run_id) WHERE run_id = :run;

-- What is wrong when a run is to start
SELECT bench.add_feeder('feeders_w', 'SELECT id, note FROM feeders_rows WHERE id > 9');
SELECT bench.run('feeders_w', secs => 1);
SELECT bench.add_feeder('feeders_w', 'SELECT id, note FROM feeders_rows', pick => 'sequence', max_rows => 4);
SELECT bench.run('feeders_w', secs => 1);
SELECT bench.add_feeder('feeders_w', 'SELECT id, note, id - 3 AS weight FROM feeders_rows', pick => 'weighted');
SELECT bench.run('feeders_w', secs => 1);
SELECT bench.add_feeder('feeders_w', 'SELECT 1 / (id - 3) AS id, note FROM feeders_rows');
SELECT bench.run('feeders_w', secs => 1);
CREATE SEQUENCE feeders_seq;
SELECT bench.add_feeder('feeders_w', 'SELECT nextval(''feeders_seq'') AS id, note FROM feeders_rows');
SELECT bench.run('feeders_w', secs => 1);
SELECT bench.add_feeder('feeders_w', 'SELECT id FROM feeders_rows');
SELECT bench.run('feeders_w', secs => 1);
SELECT bench.add_feeder('feeders_w', 'SELECT note FROM feeders_rows');
SELECT bench.add_feeder('feeders_w', 'SELECT id FROM feeders_rows', prefix => 'x');
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS x, 2 AS y');
SELECT bench.add_feeder('feeders_w', 'SELECT id AS xid FROM feeders_rows');

-- Identifiers and string constants are no places for a feeder's values
SELECT bench.add_feeder('feeders_w', 'SELECT id, note FROM feeders_rows');
DO $$
DECLARE
    script text;
    mode text;
    message text;
    hint text;
BEGIN
    FOREACH script IN ARRAY ARRAY['SELECT * FROM t_:id;', 'SELECT "a:note";', 'SELECT '':note'';',
        'SELECT $x$:note$x$;',
        E'SELECT \'\\\' || :note || \'\\\';', 'SELECT :nonesuch;'] LOOP
        FOREACH mode IN ARRAY '{simple,extended,prepared}'::text[] LOOP
            PERFORM bench.create_workload('feeders_w', script);
            BEGIN
                PERFORM bench.preflight('feeders_w', transactions => 1, query_mode => mode);
                RAISE WARNING '% % passes', mode, script;
            EXCEPTION WHEN syntax_error OR undefined_column THEN
                GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
                RAISE WARNING '% %: %', mode, script, message USING HINT = hint;
            END;
        END LOOP;
    END LOOP;
END $$;

-- Another role's
CREATE ROLE regress_bench_fed;
GRANT EXECUTE ON FUNCTION bench.create_workload, bench.add_feeder, bench.drop_feeder TO regress_bench_fed;
SET ROLE regress_bench_fed;
SELECT bench.add_feeder('feeders_w', 'SELECT 1 AS id');
SELECT bench.drop_feeder('feeders_w');
SELECT bench.create_workload('feeders_alices', 'SELECT :id;');
SELECT bench.add_feeder('feeders_alices', 'SELECT 1 AS id');
RESET ROLE;
SET client_min_messages = notice;
SELECT bench.create_workload('feeders_alices', 'SELECT :id;');
SELECT workload FROM bench.feeders;
SELECT bench.drop_workload('feeders_alices'), bench.drop_workload('feeders_w');
SELECT count(*) FROM bench.feeders;
REVOKE EXECUTE ON FUNCTION bench.create_workload, bench.add_feeder, bench.drop_feeder FROM regress_bench_fed;
DROP ROLE regress_bench_fed;
DROP TABLE feeders_rows;
DROP SEQUENCE feeders_seq;
