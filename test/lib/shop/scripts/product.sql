-- A visitor looks at a product.
\set product random_exponential(1, :products, 8)
\set customer random_exponential(1, :customers, 4)
SELECT p.*, b.name AS brand, c.name AS category, c.slug
FROM products p JOIN brands b USING (brand_id) JOIN categories c USING (category_id) WHERE p.product_id = :product;
SELECT coalesce(sum(quantity - reserved), 0) AS available FROM stock WHERE product_id = :product;
SELECT count(*) AS reviews, round(avg(rating), 1) AS rating FROM reviews WHERE product_id = :product;
SELECT r.rating, r.body, r.helpful, r.created_at, cu.name
FROM reviews r JOIN customers cu ON cu.customer_id = r.customer_id
WHERE r.product_id = :product ORDER BY r.created_at DESC LIMIT 10;
INSERT INTO page_views (customer_id, product_id, referrer) VALUES (:customer, :product, 'direct') RETURNING view_id;
