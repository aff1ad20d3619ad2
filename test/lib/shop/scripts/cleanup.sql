-- What a job does now and then. In mode simple.
DELETE FROM sessions WHERE token IN (SELECT token FROM sessions WHERE expires_at < now() ORDER BY expires_at LIMIT 20);
DELETE FROM carts WHERE updated_at < now() - interval '1 day' AND cart_id IN (
    SELECT c.cart_id FROM carts c LEFT JOIN cart_items i USING (cart_id)
    WHERE c.updated_at < now() - interval '1 day' AND i.cart_id IS NULL LIMIT 3) RETURNING cart_id;
UPDATE orders SET status = 'shipped' WHERE order_id =
    (SELECT order_id FROM orders WHERE status = 'paid' ORDER BY placed_at LIMIT 1 FOR UPDATE SKIP LOCKED);
WITH RECURSIVE tree AS (
    SELECT category_id, name AS path FROM categories WHERE parent_id IS NULL
    UNION ALL
    SELECT c.category_id, tree.path || ' > ' || c.name FROM categories c JOIN tree ON c.parent_id = tree.category_id)
SELECT tree.path, count(p.product_id) AS products FROM tree LEFT JOIN products p USING (category_id)
GROUP BY tree.path ORDER BY tree.path;
