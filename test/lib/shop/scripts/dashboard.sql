-- Figures of the day. In mode simple.
\set day random(1, 27)
SELECT date_trunc('day', placed_at) AS day, count(*) AS orders, sum(total) AS sales,
       count(*) FILTER (WHERE status = 'cancelled') AS cancelled
FROM orders WHERE placed_at >= now() - interval '7 days' GROUP BY 1 ORDER BY 1;
SELECT c.name, sum(i.quantity * i.unit_price) AS sales
FROM orders o JOIN order_items i USING (order_id) JOIN products p USING (product_id)
JOIN categories c USING (category_id)
WHERE o.placed_at >= ':month-:day' AND o.placed_at < timestamptz ':month-:day' + interval '1 day'
GROUP BY c.name ORDER BY sales DESC LIMIT 10;
WITH spent AS (SELECT customer_id, sum(total) AS total, count(*) AS orders FROM orders
               WHERE placed_at >= ':month-:day' AND status <> 'cancelled' GROUP BY customer_id)
SELECT c.customer_id, c.name, c.tier, s.total, s.orders, rank() OVER (ORDER BY s.total DESC) AS place
FROM spent s JOIN customers c USING (customer_id) WHERE s.orders >= 2 ORDER BY place LIMIT 10;
SELECT extract(hour FROM viewed_at) AS hour, count(*) AS views, count(DISTINCT customer_id) AS customers
FROM page_views WHERE viewed_at >= now() - interval '1 day' GROUP BY extract(hour FROM viewed_at) ORDER BY hour;
SELECT status, count(*) FROM orders WHERE placed_at > now() - interval '30 days' GROUP BY status ORDER BY status;
SELECT country, count(*) AS newcomers FROM customers
WHERE created_at BETWEEN ':month-01' AND ':month-28' AND deleted_at IS NULL GROUP BY country HAVING count(*) > 5;
SELECT p.product_id, p.name FROM products p WHERE p.active AND p.brand_id = :day
AND NOT EXISTS (SELECT FROM reviews r WHERE r.product_id = p.product_id AND r.rating >= 4) ORDER BY p.name LIMIT 20;
