-- A customer who bought a product writes of it, and finds another's words helpful.
\set customer random_exponential(1, :customers, 4)
\set product random_exponential(1, :products, 8)
\set rating random_exponential(1, 5, 1)
SELECT EXISTS (SELECT FROM orders o JOIN order_items i USING (order_id)
               WHERE o.customer_id = :customer AND i.product_id = :product) AS bought;
INSERT INTO reviews (product_id, customer_id, rating, body) VALUES (:product, :customer, 6 - :rating, 'as described')
ON CONFLICT (product_id, customer_id) DO UPDATE SET rating = excluded.rating, body = excluded.body;
UPDATE reviews SET helpful = helpful + 1 WHERE product_id = :product AND customer_id = :customer;
SELECT product_id, rating, helpful FROM reviews WHERE customer_id = :customer ORDER BY created_at DESC LIMIT 5;
