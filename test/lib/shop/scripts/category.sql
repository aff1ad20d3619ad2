-- A visitor pages through a category.
\set category random_exponential(1, :categories, 3)
\set offset random_exponential(0, 4, 4) * 20
SELECT category_id, parent_id, slug, name FROM categories WHERE category_id = :category;
SELECT c.category_id, c.name, count(p.product_id) AS products
FROM categories c LEFT JOIN products p ON p.category_id = c.category_id AND p.active
WHERE c.parent_id = :category GROUP BY c.category_id ORDER BY c.name;
SELECT p.product_id, p.sku, p.name, p.price, b.name AS brand
FROM products p JOIN brands b ON b.brand_id = p.brand_id
WHERE p.category_id = :category AND p.active ORDER BY p.created_at DESC LIMIT 20 OFFSET :offset;
SELECT b.brand_id, b.name, count(*) AS products, min(p.price) AS cheapest
FROM products p JOIN brands b USING (brand_id) WHERE p.category_id = :category AND p.active
GROUP BY b.brand_id ORDER BY products DESC, b.name LIMIT 10;
