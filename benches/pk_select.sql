\set id random(1, :rows)
SELECT * FROM pk WHERE id = :id;
