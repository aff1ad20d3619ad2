-- A customer signs in and looks at the orders.
\set customer random_exponential(1, :customers, 4)
SELECT lower(email) AS email FROM customers WHERE customer_id = :customer \gset
SELECT customer_id, name, tier, preferences FROM customers WHERE lower(email) = :email AND deleted_at IS NULL;
INSERT INTO sessions (customer_id, expires_at, data)
VALUES (:customer, now() + interval '14 days', '{"agent": "browser 3"}') RETURNING token \gset
SELECT s.customer_id, c.name, c.tier FROM sessions s JOIN customers c USING (customer_id)
WHERE s.token = :token AND s.expires_at > now();
UPDATE customers SET last_seen_at = now() WHERE customer_id = :customer;
SELECT order_id, status, total, placed_at FROM orders WHERE customer_id = :customer ORDER BY placed_at DESC LIMIT 10;
SELECT o.order_id, o.placed_at, p.name, i.quantity, i.unit_price, pay.method
FROM orders o JOIN order_items i USING (order_id) JOIN products p USING (product_id)
LEFT JOIN payments pay USING (order_id)
WHERE o.customer_id = :customer AND o.placed_at > now() - interval '90 days' ORDER BY o.placed_at DESC, i.line;
SELECT address_id, street, postcode, city FROM addresses WHERE customer_id = :customer ORDER BY is_default DESC;
