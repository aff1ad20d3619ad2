-- A customer puts a product into the cart, and changes the cart.
\set customer random_exponential(1, :customers, 4)
\set product random_exponential(1, :products, 8)
\set other random_exponential(1, :products, 8)
INSERT INTO carts (customer_id) VALUES (:customer)
ON CONFLICT (customer_id) WHERE is_open DO UPDATE SET updated_at = now() RETURNING cart_id \gset
INSERT INTO cart_items (cart_id, product_id, quantity) VALUES (:cart_id, :product, 1)
ON CONFLICT (cart_id, product_id) DO UPDATE SET quantity = cart_items.quantity + excluded.quantity;
DELETE FROM cart_items WHERE cart_id = :cart_id AND product_id = :other;
SELECT i.product_id, p.name, p.price, i.quantity, i.quantity * p.price AS amount
FROM carts c JOIN cart_items i USING (cart_id) JOIN products p USING (product_id)
WHERE c.customer_id = :customer AND c.is_open ORDER BY i.added_at;
