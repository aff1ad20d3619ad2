-- The support finds customers and orders. In mode simple: a variable stands inside a literal.
\set order random_exponential(1, :orders, 3)
\set digits 100000000000 + :orders + 1 - :order
\set first random(1, :orders - 3000)
\set second :first + random(1, 1000)
\set third :second + random(1, 1000)
\set number random_exponential(1, 99, 2)
SELECT o.*, c.name, c.email FROM orders o JOIN customers c USING (customer_id)
WHERE o.public_id = '0de40000-0000-4000-8000-:digits';
SELECT p.payment_id, p.method, p.amount, p.answer ->> 'provider' AS provider
FROM payments p JOIN orders o USING (order_id)
WHERE o.public_id = '0de40000-0000-4000-8000-:digits';
SELECT customer_id, email, name FROM customers WHERE email LIKE 'mia.klein:number%' ORDER BY email LIMIT 10;
SELECT order_id, status, total FROM orders WHERE order_id IN (:first, :second, :third);
SELECT order_id, status, total FROM orders WHERE order_id IN (:first, :second, :third, 17, 170) ORDER BY total DESC;
SELECT code, percent, uses FROM coupons
WHERE code = 'SAVE:number' AND current_date BETWEEN valid_from AND valid_until;
UPDATE coupons SET uses = uses + 1 WHERE code = 'SAVE:number';
