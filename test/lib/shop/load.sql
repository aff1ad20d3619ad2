-- The shop's rows: psql -v scale=1 loads 330 MB with its indexes, scale=0.02 some 7 MB. The same scale gives the same
-- rows, but for times, which count back from now.
SELECT setseed(0.2) \g /dev/null
SELECT greatest(500, 100000 * :scale)::int AS customers, greatest(400, 20000 * :scale)::int AS products,
       greatest(5000, 250000 * :scale)::int AS orders, greatest(10000, 500000 * :scale)::int AS views \gset

-- From 1 to n, the low ones more often: pgbench's random_exponential(1, n, parameter).
CREATE FUNCTION pg_temp.skewed(n int, parameter float8) RETURNS int LANGUAGE sql VOLATILE
RETURN 1 + floor(-ln(1 - random() * (1 - exp(-parameter))) / parameter * n)::int;
CREATE FUNCTION pg_temp.one_of(words text) RETURNS text LANGUAGE sql VOLATILE
RETURN (string_to_array(words, ' '))[1 + floor(random() * (1 + length(words) - length(replace(words, ' ', ''))))];

INSERT INTO customers (email, name, country, tier, preferences, created_at, last_seen_at, deleted_at)
SELECT lower(first || '.' || last) || n || '@example.' || pg_temp.one_of('com org net'), first || ' ' || last,
       pg_temp.one_of('DE DE DE FR FR GB US US ES IT'), (ARRAY['basic', 'basic', 'basic', 'plus', 'business'])
           [1 + n % 5]::customer_tier,
       jsonb_build_object('language', pg_temp.one_of('de en fr'), 'newsletter', random() < 0.3), at,
       at + (now() - at) * random(), CASE WHEN random() < 0.02 THEN at + (now() - at) * random() END
FROM (SELECT n, now() - interval '3 years' * (1 - n::float8 / :customers) AS at,
             pg_temp.one_of('Ada Ben Carla David Emma Felix Greta Hugo Ines Jonas Karla Leo Mia Noah Olga') AS first,
             pg_temp.one_of('Adler Baum Conti Durand Evans Fischer Garcia Huber Jansen Klein Lopez Moore') AS last
      FROM generate_series(1, :customers) n) c;
INSERT INTO addresses (customer_id, street, postcode, city, is_default)
SELECT n, pg_temp.one_of('Main High Park Mill Church Station') || ' Street ' || 1 + floor(random() * 120),
       lpad(floor(random() * 100000)::text, 5, '0'), pg_temp.one_of('Berlin Paris London Madrid Rome Vienna'), copy = 1
FROM generate_series(1, :customers) n, generate_series(1, 1 + n % 2) copy;
INSERT INTO sessions (customer_id, expires_at, data)
SELECT pg_temp.skewed(:customers, 4), now() + interval '14 days' * (random() - 0.3),
       jsonb_build_object('agent', 'browser ' || n % 17, 'steps', n % 9)
FROM generate_series(1, :customers / 2) n;

INSERT INTO categories (parent_id, slug, name)
SELECT CASE WHEN n > 12 THEN 1 + n % 12 END, 'category-' || n, 'Category ' || n FROM generate_series(1, 120) n;
INSERT INTO brands (name) SELECT 'Brand ' || n FROM generate_series(1, 200) n;
INSERT INTO products (sku, name, description, category_id, brand_id, price, tags, attributes, active, created_at)
SELECT 'SKU-' || n, initcap(colour || ' ' || thing) || ' ' || n,
       format('A %s %s of %s for the %s, made to last. It comes with a %s.', colour, thing,
              pg_temp.one_of('steel wood glass cotton leather linen'), pg_temp.one_of('kitchen garden office bath'),
              pg_temp.one_of('cover lamp cable box manual')),
       pg_temp.skewed(120, 3), pg_temp.skewed(200, 2), round((3 + exp(random() * 6))::numeric, 2),
       ARRAY[pg_temp.one_of('new sale gift eco sale gift'), 'season' || n % 8],
       jsonb_build_object('colour', colour, 'size', n % 50, 'weight', floor(random() * 5000)),
       random() < 0.9, now() - interval '2 years' * random()
FROM (SELECT n, pg_temp.one_of('red blue green black white grey brown yellow') AS colour,
             pg_temp.one_of('chair table lamp shelf mirror sofa desk clock vase rug stool bench') AS thing
      FROM generate_series(1, :products) n) p;
INSERT INTO warehouses SELECT n, (ARRAY['Hamburg', 'Lyon', 'Leeds'])[n] FROM generate_series(1, 3) n;
INSERT INTO stock (warehouse_id, product_id, quantity)
SELECT w, n, floor(random() * 200) FROM generate_series(1, 3) w, generate_series(1, :products) n;
INSERT INTO coupons SELECT 'SAVE' || n, 5 + n % 20, current_date - n, current_date + 60 - n % 90
FROM generate_series(1, 200) n;

INSERT INTO carts (customer_id, updated_at)
SELECT n, now() - interval '60 days' * random()
FROM generate_series(1, :customers) n WHERE random() < 0.3;
INSERT INTO cart_items (cart_id, product_id, quantity)
SELECT cart_id, pg_temp.skewed(:products, 8), 1 + floor(random() * 3)
FROM carts, generate_series(1, 3) WHERE random() < 0.7
ON CONFLICT DO NOTHING;

INSERT INTO order_items (order_id, line, product_id, quantity, unit_price)
SELECT i.order_id, i.line, i.product_id, 1 + floor(random() * 3), p.price
FROM (SELECT n AS order_id, line, pg_temp.skewed(:products, 8) AS product_id
      FROM generate_series(1, :orders) n, generate_series(1, 1 + n % 4) line) i
JOIN products p USING (product_id) ORDER BY 1, 2;
-- A script can compute the digits of public_id.
INSERT INTO orders (public_id, customer_id, status, coupon, total, placed_at)
SELECT ('0de40000-0000-4000-8000-' || 100000000000 + order_id)::uuid, pg_temp.skewed(:customers, 4),
       CASE WHEN order_id > :orders * 0.995 THEN pg_temp.one_of('new paid')
            ELSE pg_temp.one_of('delivered delivered delivered shipped returned cancelled') END::order_status,
       CASE WHEN random() < 0.1 THEN 'SAVE' || pg_temp.skewed(200, 5) END, total,
       now() - interval '1 year' * (1 - order_id::float8 / :orders)
FROM (SELECT order_id, sum(quantity * unit_price) AS total FROM order_items GROUP BY order_id ORDER BY order_id) i;
INSERT INTO payments (order_id, method, amount, paid_at, answer)
SELECT order_id, pg_temp.one_of('card card card transfer wallet'), total, placed_at + interval '1 hour' * random(),
       jsonb_build_object('code', 0, 'provider', pg_temp.one_of('north south'))
FROM orders WHERE status NOT IN ('new', 'cancelled') ORDER BY order_id;

INSERT INTO reviews (product_id, customer_id, rating, body, helpful, created_at)
SELECT pg_temp.skewed(:products, 8), pg_temp.skewed(:customers, 4), 1 + floor(5 * sqrt(random())),
       repeat(pg_temp.one_of('good fair poor solid lovely') || ' ', 3 + n % 20), floor(random() * 20),
       now() - interval '1 year' * random()
FROM generate_series(1, :orders / 2) n ON CONFLICT DO NOTHING;
INSERT INTO page_views (customer_id, product_id, referrer, viewed_at)
SELECT CASE WHEN n % 3 > 0 THEN pg_temp.skewed(:customers, 4) END, pg_temp.skewed(:products, 8),
       pg_temp.one_of('search mail direct partner'), now() - interval '90 days' * (1 - n::float8 / :views)
FROM generate_series(1, :views) n;
