-- The back office works off orders and keeps the catalogue. In mode simple.
\set day random(1, 28)
\set product random(1, :products)
\set number random(1, :products / 10)
\set size random(0, 49)
SELECT o.order_id, o.placed_at, o.status, c.name, c.country
FROM orders o JOIN customers c USING (customer_id)
WHERE o.status IN ('new', 'paid') ORDER BY o.placed_at LIMIT 50;
SELECT order_id, customer_id, total FROM orders
WHERE placed_at BETWEEN ':month-:day' AND ':month-:day 23:59:59' AND total > 1000 ORDER BY total DESC LIMIT 20;
SELECT product_id, sku, name, active FROM products WHERE sku LIKE 'SKU-:number%' ORDER BY sku LIMIT 25;
SELECT product_id, name, attributes FROM products WHERE attributes @> '{"size": :size}' ORDER BY price DESC LIMIT 20;
SELECT s.warehouse_id, s.product_id, p.sku, s.quantity - s.reserved AS free
FROM stock s JOIN products p USING (product_id)
WHERE s.warehouse_id = 2 AND s.quantity - s.reserved < 3 ORDER BY free, s.product_id LIMIT 30;
UPDATE products SET price = greatest(round(price * 0.98, 2), 5), attributes = attributes || '{"checked": true}'
WHERE product_id = :product;
