-- A customer buys a product.
\set customer random_exponential(1, :customers, 4)
\set product random_exponential(1, :products, 8)
\set warehouse random(1, 3)
\set quantity random_exponential(1, 3, 2)
BEGIN;
SELECT price FROM products WHERE product_id = :product FOR SHARE \gset
INSERT INTO orders (customer_id, total) VALUES (:customer, :quantity * :price::numeric) RETURNING order_id \gset
INSERT INTO order_items (order_id, line, product_id, quantity, unit_price)
VALUES (:order_id, 1, :product, :quantity, :price);
UPDATE stock SET reserved = reserved + :quantity WHERE warehouse_id = :warehouse AND product_id = :product;
INSERT INTO payments (order_id, method, amount, answer)
VALUES (:order_id, 'card', :quantity * :price::numeric, '{"code": 0}') RETURNING payment_id;
UPDATE orders SET status = 'paid' WHERE order_id = :order_id AND status = 'new';
COMMIT;
