//! Statements that must not be tried, whoever owns what they use.

use bench_base::error::UserError;
use pgrx::pg_sys;

use crate::driver::parameters::Object;
use crate::server::spi::fetch;

/// All that the seeds in `$1` and `$2` lead to: what views and rules, defaults, constraints, policies, indexes, triggers, foreign
/// keys, children, types, domains, operators, aggregates and functions with a body that the server has parsed use, at any depth.
/// Of other functions the owner answers for what they do. What came with the server depends on nothing.
const FIRST_UNTRIABLE: &str = "\
    WITH RECURSIVE touched (class, id) AS ( \
        SELECT s.class, s.id FROM ROWS FROM (unnest($1), unnest($2)) AS s (class, id) \
      UNION \
        SELECT n.class, n.id FROM touched t CROSS JOIN LATERAL ( \
            SELECT d.refclassid, d.refobjid FROM pg_depend d \
            WHERE d.classid = t.class AND d.objid = t.id \
              AND d.refclassid <> ALL (ARRAY['pg_extension'::regclass::oid, \
                  'pg_namespace'::regclass::oid]) \
          UNION ALL SELECT 'pg_proc'::regclass::oid, g.tgfoid FROM pg_trigger g \
            WHERE t.class = 'pg_class'::regclass AND g.tgrelid = t.id \
          UNION ALL SELECT t.class, g.tgconstrrelid FROM pg_trigger g \
            WHERE t.class = 'pg_class'::regclass AND g.tgrelid = t.id \
              AND g.tgisinternal AND g.tgconstrrelid <> 0 \
          UNION ALL SELECT 'pg_rewrite'::regclass::oid, w.oid FROM pg_rewrite w \
            WHERE t.class = 'pg_class'::regclass AND w.ev_class = t.id \
          UNION ALL SELECT 'pg_policy'::regclass::oid, p.oid FROM pg_policy p \
            WHERE t.class = 'pg_class'::regclass AND p.polrelid = t.id \
          UNION ALL SELECT 'pg_attrdef'::regclass::oid, a.oid FROM pg_attrdef a \
            WHERE t.class = 'pg_class'::regclass AND a.adrelid = t.id \
          UNION ALL SELECT 'pg_constraint'::regclass::oid, k.oid FROM pg_constraint k \
            WHERE t.class = 'pg_class'::regclass AND k.conrelid = t.id \
          UNION ALL SELECT 'pg_constraint'::regclass::oid, k.oid FROM pg_constraint k \
            WHERE t.class = 'pg_type'::regclass AND k.contypid = t.id \
          UNION ALL SELECT t.class, i.indexrelid FROM pg_index i \
            WHERE t.class = 'pg_class'::regclass AND i.indrelid = t.id \
          UNION ALL SELECT t.class, i.inhrelid FROM pg_inherits i \
            WHERE t.class = 'pg_class'::regclass AND i.inhparent = t.id \
        ) AS n (class, id) \
    ) \
    SELECT min(pg_describe_object(t.class, t.id, 0)) FROM touched t \
    WHERE (t.class = 'pg_foreign_server'::regclass \
        OR t.class = 'pg_proc'::regclass AND NOT EXISTS ( \
            SELECT FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner WHERE p.oid = t.id AND r.rolsuper))";

/// Returns what forbids to try a statement that uses these objects: a function whose author is no superuser may do what no
/// rollback takes back, and a foreign table connects to its server. `None`: nothing.
pub fn untriable(objects: &[Object]) -> Result<Option<String>, UserError> {
    let (classes, ids): (Vec<pg_sys::Oid>, Vec<pg_sys::Oid>) =
        objects.iter().map(|object| (object.class, object.id)).unzip();
    fetch::<String>(FIRST_UNTRIABLE, &[classes.into(), ids.into()])
}
