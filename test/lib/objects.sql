-- Everything that belongs to the extension, an object a line: definition, comment, privileges. Places of columns may
-- differ, and names of NOT NULL constraints, which PostgreSQL 18 makes up in more than one way.
WITH members AS (
    SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'pgbench_ext'),
relations AS (SELECT c.* FROM members m JOIN pg_class c ON c.oid = m.objid AND m.classid = 'pg_class'::regclass),
initial AS (SELECT objoid, classoid, objsubid, initprivs FROM pg_init_privs)
SELECT concat_ws(' | ', 'function', p.oid::regprocedure, pg_get_functiondef(p.oid), obj_description(p.oid, 'pg_proc'),
                 (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(p.proacl) a),
                 (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM initial i, unnest(i.initprivs) a
                 WHERE i.objoid = p.oid AND i.classoid = 'pg_proc'::regclass))
FROM members m JOIN pg_proc p ON p.oid = m.objid AND m.classid = 'pg_proc'::regclass
UNION ALL
SELECT concat_ws(' | ', 'relation', c.relkind, c.oid::regclass, c.relrowsecurity, c.relforcerowsecurity, c.reloptions,
    obj_description(c.oid, 'pg_class'),
                 CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
                 (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(c.relacl) a),
                 (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM initial i, unnest(i.initprivs) a
                 WHERE i.objoid = c.oid AND i.classoid = 'pg_class'::regclass AND i.objsubid = 0))
FROM relations c
UNION ALL
SELECT concat_ws(' | ', 'column', c.oid::regclass, a.attname, format_type(a.atttypid, a.atttypmod),
    a.attnotnull, a.attacl,
                 pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum))
FROM relations c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
UNION ALL
SELECT concat_ws(' | ', 'constraint', c.oid::regclass, k.conname, pg_get_constraintdef(k.oid)) FROM relations c
    JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype <> 'n'
UNION ALL
SELECT concat_ws(' | ', 'index', pg_get_indexdef(i.indexrelid)) FROM relations c JOIN pg_index i ON i.indrelid = c.oid
UNION ALL
SELECT concat_ws(' | ', 'trigger', c.oid::regclass, pg_get_triggerdef(t.oid), obj_description(t.oid, 'pg_trigger'),
    t.tgenabled) FROM relations c JOIN pg_trigger t ON t.tgrelid = c.oid
UNION ALL
SELECT concat_ws(' | ', 'policy', c.oid::regclass, p.polname, p.polcmd, p.polpermissive, p.polroles::regrole[],
    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid), obj_description(p.oid, 'pg_policy'))
FROM relations c JOIN pg_policy p ON p.polrelid = c.oid
UNION ALL
SELECT concat_ws(' | ', 'type', t.oid::regtype, t.typtype, obj_description(t.oid, 'pg_type')) FROM members m
    JOIN pg_type t ON t.oid = m.objid AND m.classid = 'pg_type'::regclass
UNION ALL
SELECT concat_ws(' | ', 'dumped', u.relation::regclass, u.condition)
    FROM pg_extension e, unnest(e.extconfig, e.extcondition) AS u (relation, condition) WHERE e.extname = 'pgbench_ext'
UNION ALL
SELECT concat_ws(' | ', 'workload', w::text) FROM bench.workloads w WHERE builtin
UNION ALL
SELECT concat_ws(' | ', 'schema', n.nspname, n.nspacl, obj_description(n.oid, 'pg_namespace')) FROM pg_namespace n
    WHERE nspname IN ('bench', 'bench_internal')
