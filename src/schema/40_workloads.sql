-- The workloads that come with the extension: ordinary scripts.

INSERT INTO bench.workloads (name, owner, fixture, script, description, builtin)
SELECT name, current_user, fixture, script, description, true
FROM (VALUES
    ('pk_select', 'pk', E'\\set id random(1, :rows)\nSELECT * FROM pk WHERE id = :id;',
     'Reads the whole row of a uniformly random id'),
    ('pk_update', 'pk', E'\\set id random(1, :rows)\nUPDATE pk SET crt_time = now() WHERE id = :id;',
     'Sets the timestamp of a uniformly random id to now()'),
    ('pk_insert', 'log', E'INSERT INTO log (info) VALUES (''hello world'');',
     'Inserts one row with a serial primary key'),
    ('insert_single', 'wide', E'INSERT INTO wide (crt_time) VALUES (now());',
     'Inserts one row of 22 columns'),
    ('insert_batch', 'wide', E'INSERT INTO wide (crt_time) SELECT now() FROM generate_series(1, 400);',
     'Inserts 400 rows of 22 columns in one statement')
) AS builtin (name, fixture, script, description);
