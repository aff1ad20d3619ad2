-- The workloads that come with the extension: ordinary scripts.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT name, current_user, fixture, script, description, true
FROM (VALUES
    ('pk_select', 'pk', E'\\set id random(1, :rows)\nSELECT * FROM pk WHERE id = :id;',
     'Reads the whole row of a uniformly random id'),
    ('pk_update', 'pk', E'\\set id random(1, :rows)\nUPDATE pk SET crt_time = now() WHERE id = :id;',
     'Sets the timestamp of a uniformly random id to now()'),
    ('pk_update_hot', 'pk',
     E'\\set id random(1, :rows)\n\\set hot_id random(1, greatest(1, :rows / 10))\nWITH hot AS (UPDATE pk SET crt_time = now() WHERE id = :hot_id) SELECT * FROM pk WHERE id = :id;',
     'Reads a uniformly random row and sets the timestamp of a random one of the first tenth, in one statement'),
    ('name_select', 'name', E'\\set id random(1, :rows)\nSELECT name FROM name WHERE id = :id;',
     'Reads a text of a uniformly random id'),
    ('name_update', 'name', E'\\set id random(1, :rows)\nUPDATE name SET name = ''updated'' WHERE id = :id;',
     'Sets the text of a uniformly random id to a constant'),
    ('pk_insert', 'log', E'INSERT INTO log (info) VALUES (''hello world'');',
     'Inserts one row with a serial primary key'),
    ('insert_single', 'wide', E'INSERT INTO wide (crt_time) VALUES (now());',
     'Inserts one row of 22 columns'),
    ('insert_batch', 'wide', E'INSERT INTO wide (crt_time) SELECT now() FROM generate_series(1, 400);',
     'Inserts 400 rows of 22 columns in one statement'),
    ('insert_single_multi', 'wide_multi', E'INSERT INTO wide_multi_:client_id (crt_time) VALUES (now());',
     'Inserts one row of 22 columns, each client into a table of its own'),
    ('insert_batch_multi', 'wide_multi', E'INSERT INTO wide_multi_:client_id (crt_time) SELECT now() FROM generate_series(1, 400);',
     'Inserts 400 rows of 22 columns in one statement, each client into a table of its own'),
    -- pgbench's own, word for word.
    ('tpcb', 'tpcb',
$$\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;$$,
     'As pgbench''s tpcb-like: adds to the balances of an account, a teller and a branch, and to the history'),
    ('tpcb_simple_update', 'tpcb',
$$\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;$$,
     'As pgbench''s simple-update: without the updates of a teller and a branch'),
    ('tpcb_select', 'tpcb',
$$\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;$$,
     'As pgbench''s select-only: reads the balance of a uniformly random account'),
    -- Every statement says its branch, by which the tables can be distributed.
    ('tpcb_branch', 'tpcb',
$$\set bid random(1, 1 * :scale)
\set aid random(100000 * (:bid - 1) + 1, 100000 * :bid)
\set tid random(10 * (:bid - 1) + 1, 10 * :bid)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE bid = :bid AND aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE bid = :bid AND aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE bid = :bid AND tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;$$,
     'As tpcb, with an account and a teller of the branch, and the branch in every statement: for "distribute": "branch"'),
    ('insert_9_shards', 'shards',
     'INSERT INTO shards (id) VALUES (:shard_key_1), (:shard_key_2), (:shard_key_3), (:shard_key_4), (:shard_key_5), (:shard_key_6), (:shard_key_7), (:shard_key_8), (:shard_key_9);',
     'Inserts nine rows of one column in one statement, each into another shard'),
    ('insert_2_shards', 'shards',
     'INSERT INTO shards (id) VALUES (:shard_key_1), (:shard_key_1), (:shard_key_1), (:shard_key_1), (:shard_key_1), (:shard_key_2), (:shard_key_2), (:shard_key_2), (:shard_key_2);',
     'Inserts nine rows of one column in one statement, into two shards'),
    ('insert_1_shard', 'shards',
     E'\\set id random(1, 1000000000)\nINSERT INTO shards (id) VALUES (:id), (:id), (:id), (:id), (:id), (:id), (:id), (:id), (:id);',
     'Inserts nine rows of one column in one statement, into one shard, a random one each time'),
    ('insert_1_row', 'shards', E'\\set id random(1, 1000000000)\nINSERT INTO shards (id) VALUES (:id);',
     'Inserts one row of one column into a random shard'),
    ('count_all', 'events', 'SELECT count(*) FROM events;',
     'Counts all rows'),
    ('group_count', 'events', 'SELECT c1, count(*) FROM events GROUP BY c1 ORDER BY count(*) DESC LIMIT 10;',
     'Finds the ten values of a column of 101 that the most rows have')
) AS builtin (name, fixture, script, description);
