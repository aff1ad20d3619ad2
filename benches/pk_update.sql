\set id random(1, :rows)
UPDATE pk SET crt_time = now() WHERE id = :id;
