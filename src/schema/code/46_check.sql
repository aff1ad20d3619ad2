-- Whether a fixture's data are still right: judged in a session of the role that a run of the caller on these tables would have.

CREATE FUNCTION bench_internal.conditions(fixture text)
    RETURNS TABLE (condition text, broken text, unjudged text, unjudged_after text)
    IMMUTABLE PARALLEL SAFE LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.condition, c.broken, c.unjudged, c.unjudged_after FROM (VALUES
    -- TPC-C revision 5.11, clauses 1.2 and 3.3.2
    ('orders', 'rows of the tables whose size is fixed',
     'SELECT format(''%%s: %%s rows instead of %%s'', name, have, want) FROM (VALUES
          (''warehouse'', (SELECT count(*) FROM %1$I.warehouse), %2$s), (''district'', (SELECT count(*) FROM %1$I.district), %2$s * 10),
          (''customer'', (SELECT count(*) FROM %1$I.customer), %2$s * 30000), (''stock'', (SELECT count(*) FROM %1$I.stock), %2$s * 100000),
          (''item'', (SELECT count(*) FROM %1$I.item), least(%2$s, 1) * 100000)) AS t (name, have, want)
      WHERE have <> want', NULL, NULL),
    ('orders', '1: w_ytd is the sum of d_ytd of the warehouse',
     'SELECT format(''warehouse %%s: %%s, districts %%s'', w_id, w_ytd, ytd)
      FROM %1$I.warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM %1$I.district GROUP BY d_w_id) AS d ON d_w_id = w_id
      WHERE w_ytd IS DISTINCT FROM ytd', NULL, NULL),
    ('orders', '2: d_next_o_id - 1 is the last order and the last new order of the district',
     'SELECT format(''warehouse %%s, district %%s: next order %%s, last order %%s, last new order %%s'', d_w_id, d_id, d_next_o_id, o.last, n.last)
      FROM %1$I.district
      LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM %1$I.orders GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id
      LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last FROM %1$I.new_order GROUP BY no_w_id, no_d_id) AS n
          ON no_w_id = d_w_id AND no_d_id = d_id
      WHERE o.last IS DISTINCT FROM d_next_o_id - 1 OR n.last <> d_next_o_id - 1', NULL, NULL),
    ('orders', '3: new orders of a district are numbered without gaps',
     'SELECT format(''warehouse %%s, district %%s: %%s new orders from %%s to %%s'', no_w_id, no_d_id, count(*), min(no_o_id), max(no_o_id))
      FROM %1$I.new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)', NULL, NULL),
    ('orders', '4: a district has as many order lines as its orders count',
     'SELECT format(''warehouse %%s, district %%s: %%s lines, orders count %%s'', coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id), have, want)
      FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS want FROM %1$I.orders GROUP BY o_w_id, o_d_id) AS o
      FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS have FROM %1$I.order_line GROUP BY ol_w_id, ol_d_id) AS l
          ON ol_w_id = o_w_id AND ol_d_id = o_d_id
      WHERE have IS DISTINCT FROM want', NULL, NULL),
    ('orders', '5: an order has no carrier exactly if it is a new order',
     'SELECT format(''warehouse %%s, district %%s, order %%s'', coalesce(o_w_id, no_w_id), coalesce(o_d_id, no_d_id), coalesce(o_id, no_o_id))
      FROM %1$I.orders FULL JOIN %1$I.new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
      WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)', NULL, NULL),
    ('orders', '6: an order has as many lines as it counts',
     'SELECT format(''warehouse %%s, district %%s, order %%s: %%s lines, counts %%s'', coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id),
                    coalesce(o_id, ol_o_id), have, o_ol_cnt)
      FROM %1$I.orders
      FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS have FROM %1$I.order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
          ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE have IS DISTINCT FROM o_ol_cnt', NULL, NULL),
    ('orders', '7: a line has no delivery time exactly if its order has no carrier',
     'SELECT format(''warehouse %%s, district %%s, order %%s, line %%s'', ol_w_id, ol_d_id, ol_o_id, ol_number)
      FROM %1$I.order_line LEFT JOIN %1$I.orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
      WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)', NULL, NULL),
    ('orders', '8: w_ytd is the sum of the payments to the warehouse',
     'SELECT format(''warehouse %%s: %%s, history %%s'', w_id, w_ytd, paid)
      FROM %1$I.warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM %1$I.history GROUP BY h_w_id) AS h ON h_w_id = w_id
      WHERE w_ytd IS DISTINCT FROM paid', NULL, NULL),
    ('orders', '9: d_ytd is the sum of the payments to the district',
     'SELECT format(''warehouse %%s, district %%s: %%s, history %%s'', d_w_id, d_id, d_ytd, paid)
      FROM %1$I.district
      LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM %1$I.history GROUP BY h_w_id, h_d_id) AS h ON h_w_id = d_w_id AND h_d_id = d_id
      WHERE d_ytd IS DISTINCT FROM paid', NULL, NULL),
    ('orders', '10: c_balance is what was delivered to the customer, less the payments',
     'SELECT format(''warehouse %%s, district %%s, customer %%s: %%s, delivered %%s, paid %%s'', c_w_id, c_d_id, c_id, c_balance, delivered, paid)
      FROM %1$I.customer
      LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM %1$I.orders
                 JOIN %1$I.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
      LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM %1$I.history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
          ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
      WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0)', NULL, NULL),
    ('orders', '11: a district has 2100 more orders than new orders',
     'SELECT format(''warehouse %%s, district %%s: %%s orders, %%s new orders'', o_w_id, o_d_id, all_orders, coalesce(new_orders, 0))
      FROM (SELECT o_w_id, o_d_id, count(*) AS all_orders FROM %1$I.orders GROUP BY o_w_id, o_d_id) AS o
      LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS new_orders FROM %1$I.new_order GROUP BY no_w_id, no_d_id) AS n
          ON no_w_id = o_w_id AND no_d_id = o_d_id
      WHERE all_orders - coalesce(new_orders, 0) <> 2100',
     'SELECT ''holds until the first delivery after the load'' FROM %1$I.orders WHERE o_id > 2100 AND o_carrier_id IS NOT NULL LIMIT 1', NULL),
    ('orders', '12: c_balance and c_ytd_payment are together what was delivered to the customer',
     'SELECT format(''warehouse %%s, district %%s, customer %%s: %%s and %%s, delivered %%s'', c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered)
      FROM %1$I.customer
      LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM %1$I.orders
                 JOIN %1$I.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                 WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
      WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0)', NULL, NULL),
    -- Balances begin with 0, and each transaction adds to all of them.
    ('tpcb', 'rows of the tables whose size is fixed',
     'SELECT format(''%%s: %%s rows instead of %%s'', name, have, want) FROM (VALUES
          (''pgbench_branches'', (SELECT count(*) FROM %1$I.pgbench_branches), %2$s),
          (''pgbench_tellers'', (SELECT count(*) FROM %1$I.pgbench_tellers), %2$s * 10),
          (''pgbench_accounts'', (SELECT count(*) FROM %1$I.pgbench_accounts), %2$s * 100000)) AS t (name, have, want)
      WHERE have <> want', NULL, NULL),
    ('tpcb', 'the tellers'' balances add up to the branches''',
     'SELECT format(''tellers %%s, branches %%s'', t, b)
      FROM (SELECT coalesce(sum(tbalance), 0) AS t FROM %1$I.pgbench_tellers) AS t, (SELECT coalesce(sum(bbalance), 0) AS b FROM %1$I.pgbench_branches) AS b
      WHERE t <> b', NULL, NULL),
    ('tpcb', 'the accounts'' balances add up to the branches''',
     'SELECT format(''accounts %%s, branches %%s'', a, b)
      FROM (SELECT coalesce(sum(abalance), 0) AS a FROM %1$I.pgbench_accounts) AS a, (SELECT coalesce(sum(bbalance), 0) AS b FROM %1$I.pgbench_branches) AS b
      WHERE a <> b', NULL,
     'SELECT ''a run of tpcb_simple_update has changed accounts alone'' FROM bench.runs
      WHERE workload ~ ''simple.update'' AND status <> ''failed'' LIMIT 1'),
    ('tpcb', 'the history''s deltas add up to the accounts'' balances',
     'SELECT format(''history %%s, accounts %%s'', h, a)
      FROM (SELECT coalesce(sum(delta), 0) AS h FROM %1$I.pgbench_history) AS h, (SELECT coalesce(sum(abalance), 0) AS a FROM %1$I.pgbench_accounts) AS a
      WHERE h <> a', NULL,
     'SELECT ''a run has truncated pgbench_history'' FROM bench.runs WHERE before ~ ''truncate'' LIMIT 1'),
    ('pk', 'ids 1 to rows, each once',
     'SELECT format(''%%s rows with %%s ids from %%s to %%s instead of %%s'', count(*), count(DISTINCT id), min(id), max(id), %3$s) FROM %1$I.pk
      HAVING (count(*), count(DISTINCT id), coalesce(min(id), 1), coalesce(max(id), 0)) <> (%3$s, %3$s, 1, %3$s)', NULL, NULL),
    ('name', 'ids 1 to rows, each once',
     'SELECT format(''%%s rows with %%s ids from %%s to %%s instead of %%s'', count(*), count(DISTINCT id), min(id), max(id), %3$s) FROM %1$I.name
      HAVING (count(*), count(DISTINCT id), coalesce(min(id), 1), coalesce(max(id), 0)) <> (%3$s, %3$s, 1, %3$s)', NULL, NULL),
    ('events', 'as many rows as were loaded',
     'SELECT format(''%%s rows instead of %%s'', count(*), %3$s) FROM %1$I.events HAVING count(*) <> %3$s', NULL, NULL)
    ) AS c (of_fixture, condition, broken, unjudged, unjudged_after)
    WHERE c.of_fixture = fixture
$$;
COMMENT ON FUNCTION bench_internal.conditions IS
'Returns the conditions of a fixture: a description, a SELECT of violations, and SELECTs of the reason why the condition cannot be judged, one of the tables and one of the runs. %1$I is the schema, %2$s the scale, %3$s the number of rows. For bench.check.';

CREATE FUNCTION bench.check(fixture text)
    RETURNS TABLE (condition text, ok boolean, detail text)
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_wrapper';
COMMENT ON FUNCTION bench.check IS
'Checks whether a fixture''s data are still consistent, in the tables that your runs would use, and returns one row per condition. ok is NULL if a condition cannot be judged; detail gives the reason, or the first three places of a violation. Reads all committed rows, in a session of the role that your runs would have.';
