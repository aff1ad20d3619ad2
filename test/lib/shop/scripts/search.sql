-- A visitor searches by words, by a name's beginning and by tags.
\set product random_zipfian(1, :products, 1.1)
\set low random(5, 60)
\set high :low * 3
SELECT name, split_part(name, ' ', 1) || '%' AS beginning, tags[1] AS tag, split_part(name, ' ', 2) AS word
FROM products WHERE product_id = :product \gset
SELECT product_id, name, price, ts_rank(search, query) AS rank
FROM products, plainto_tsquery('english', :word) query
WHERE search @@ query AND active ORDER BY rank DESC, product_id LIMIT 20;
SELECT product_id, name FROM products WHERE name LIKE :beginning ORDER BY name LIMIT 10;
SELECT product_id, name, price FROM products
WHERE tags @> ARRAY[:tag] AND price BETWEEN :low AND :high AND active ORDER BY price LIMIT 20;
SELECT product_id, sku FROM products WHERE name = :name;
