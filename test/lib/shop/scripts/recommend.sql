-- Others also bought, and the visitor's last products.
\set product random_exponential(1, :products, 8)
\set customer random_exponential(1, :customers, 4)
SELECT o.product_id, count(*) AS together
FROM order_items i JOIN order_items o ON o.order_id = i.order_id AND o.product_id <> i.product_id
WHERE i.product_id = :product GROUP BY o.product_id ORDER BY together DESC, o.product_id LIMIT 6;
SELECT coalesce(array_agg(product_id), '{}') AS seen
FROM (SELECT product_id FROM page_views WHERE customer_id = :customer ORDER BY viewed_at DESC LIMIT 8) v \gset
SELECT product_id, name, price, attributes ->> 'colour' AS colour FROM products WHERE product_id = ANY (:seen);
