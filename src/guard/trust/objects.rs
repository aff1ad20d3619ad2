//! What objects of a database run when they are used, and whom they belong to.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::server::roles;
use crate::server::spi::{fetch, fetch_all};

/// An object, as pg_depend knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// The catalog that it is in.
    pub class: pg_sys::Oid,
    pub id: pg_sys::Oid,
}

impl Object {
    /// A table, a view, an index or another relation.
    pub fn relation(id: pg_sys::Oid) -> Self {
        Self { class: pg_sys::RelationRelationId, id }
    }

    /// A function.
    pub fn function(id: pg_sys::Oid) -> Self {
        Self { class: pg_sys::ProcedureRelationId, id }
    }

    /// A type.
    pub fn of_type(id: pg_sys::Oid) -> Self {
        Self { class: pg_sys::TypeRelationId, id }
    }

    /// An operator.
    pub fn operator(id: pg_sys::Oid) -> Self {
        Self { class: pg_sys::OperatorRelationId, id }
    }
}

/// Predefined roles without special rights, by OID (pg_authid.dat). Those that a later version brings are special until they are
/// listed here.
const HARMLESS: [u32; 9] = [
    3373, // pg_monitor
    3374, // pg_read_all_settings
    3375, // pg_read_all_stats
    3377, // pg_stat_scan_tables
    4200, // pg_signal_backend
    4544, // pg_checkpoint
    4550, // pg_use_reserved_connections, from 16 on
    6171, // pg_database_owner
    6392, // pg_signal_autovacuum_worker, from 18 on
];

/// Returns the current role if it has special rights, or a chain of memberships to a role that has them, which SET ROLE in a
/// script would use: superuser, an attribute that lets it past checks, a predefined role that is not harmless, or the privilege
/// to set a superusers' parameter. A membership with the ADMIN option alone counts, for it can grant itself the others.
pub fn guarded() -> Result<Option<pg_sys::Oid>, UserError> {
    let role = roles::current_role_oid();
    if roles::superuser() {
        return Ok(Some(role));
    }
    let sql = "SELECT /* pgbench_ext */ (WITH RECURSIVE reached (oid) AS ( \
                   SELECT $1 UNION SELECT m.roleid FROM reached r JOIN pg_auth_members m ON m.member = r.oid) \
               SELECT bool_or(r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls \
                       OR r.oid < '16384'::oid AND r.oid <> ALL ($2)) \
                   OR EXISTS (SELECT FROM pg_parameter_acl p CROSS JOIN LATERAL aclexplode(p.paracl) AS a \
                              WHERE a.grantee = 0 OR a.grantee IN (SELECT oid FROM reached)) \
               FROM reached JOIN pg_roles r USING (oid))";
    let harmless: Vec<pg_sys::Oid> = HARMLESS.into_iter().map(pg_sys::Oid::from).collect();
    // A role that has gone has no rights to lose, and whatever is done as it fails.
    Ok(fetch::<bool>(sql, &[role.into(), harmless.into()])?.unwrap_or(true).then_some(role))
}

/// The rights that somebody else's code would have, in words.
fn rights() -> String {
    if roles::superuser() {
        return "superuser privileges".to_owned();
    }
    format!("the privileges of role \"{}\"", roles::current_role())
}

/// Sees that the current role may have done what another one has defined, or what that one's triggers do: a role with special
/// rights only what is defined by those whom it trusts. `belongs` says what belongs to it, and what of it would run.
///
/// # Errors
/// 42501.
pub fn check_author(
    author: pg_sys::Oid,
    belongs: impl FnOnce() -> (String, &'static str),
) -> Result<(), UserError> {
    let Some(role) = guarded()? else { return Ok(()) };
    let sql = format!("SELECT true FROM pg_roles r WHERE r.oid = $1 AND {}", trusted("$2"));
    if fetch::<bool>(&sql, &[author.into(), role.into()])? == Some(true) {
        return Ok(());
    }
    let (what, runs) = belongs();
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, format!("{what}{runs} would run with {}", rights())))
}

/// Sees that what the current role does with tables runs nobody else's code, if it has special rights.
///
/// # Errors
/// 42501 with the object, and the role that it belongs to.
pub fn check_tables(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let tables: Vec<Object> = tables.iter().map(|&table| Object::relation(table)).collect();
    guarded()?.map_or(Ok(()), |role| check_objects(role, &tables))
}

/// Roles that a role has nothing to fear from: itself, superusers, and those that can become it. A condition on `r`, a row of
/// pg_roles, with this parameter for the role.
pub fn trusted(role: &str) -> String {
    format!("(r.rolsuper OR r.oid = {role} OR pg_has_role(r.oid, {role}, 'MEMBER'))")
}

/// All that the seeds in `$1` and `$2` lead to: what views and rules, defaults, constraints, policies,
/// indexes, triggers, foreign keys, children, types, domains, operators, aggregates and functions with a body that the server
/// has parsed use, at any depth. Of other functions the owner answers for what they do. What came with the server depends on
/// nothing.
const TOUCHED: &str = "\
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
    )";

/// Objects among what was touched, as `o`, of roles for which a condition on `r` does not hold.
const OF_OTHERS: &str = " \
    SELECT pg_describe_object(o.class, o.id, 0), \
           coalesce((SELECT g.rolname::text FROM pg_roles g WHERE g.oid = o.owner), \
               o.owner::text) \
    FROM ( \
        SELECT t.class, t.id, c.relowner FROM touched t JOIN pg_class c ON c.oid = t.id \
        WHERE t.class = 'pg_class'::regclass \
          AND c.relkind <> ALL ('{i,I,t,S}'::\"char\"[]) UNION ALL \
        SELECT t.class, t.id, p.proowner FROM touched t JOIN pg_proc p ON p.oid = t.id \
        WHERE t.class = 'pg_proc'::regclass UNION ALL \
        SELECT t.class, t.id, y.typowner FROM touched t JOIN pg_type y ON y.oid = t.id \
        WHERE t.class = 'pg_type'::regclass UNION ALL \
        SELECT t.class, t.id, p.oprowner FROM touched t JOIN pg_operator p ON p.oid = t.id \
        WHERE t.class = 'pg_operator'::regclass UNION ALL \
        SELECT t.class, t.id, f.srvowner FROM touched t JOIN pg_foreign_server f ON f.oid = t.id \
        WHERE t.class = 'pg_foreign_server'::regclass UNION ALL \
        SELECT t.class, t.id, w.fdwowner FROM touched t JOIN pg_foreign_data_wrapper w ON w.oid = t.id \
        WHERE t.class = 'pg_foreign_data_wrapper'::regclass \
    ) AS o (class, id, owner) \
    WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = o.owner AND ";

/// Sees that all that the use of these objects runs belongs to those whom a role trusts.
///
/// # Errors
/// 42501 with an object of another role's, and that role.
pub fn check_objects(role: pg_sys::Oid, seeds: &[Object]) -> Result<(), UserError> {
    if seeds.is_empty() {
        return Ok(());
    }
    let (classes, ids) = columns(seeds);
    let sql = format!("{TOUCHED}{OF_OTHERS}{}) ORDER BY 1 LIMIT 1", trusted("$3"));
    let strangers = fetch_all(&sql, &[classes.into(), ids.into(), role.into()], |row| {
        Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default()))
    })?;
    match strangers.into_iter().next() {
        None => Ok(()),
        Some((object, owner)) => Err(refusal(format!("{object} belongs to role \"{owner}\""))),
    }
}

fn columns(seeds: &[Object]) -> (Vec<pg_sys::Oid>, Vec<pg_sys::Oid>) {
    seeds.iter().map(|object| (object.class, object.id)).unzip()
}

/// What forbids to try a statement that touches these objects, whoever owns it: a function whose author is no superuser may do
/// what no rollback takes back, and a foreign table connects to its server. `None`: nothing.
pub fn untriable(seeds: &[Object]) -> Result<Option<String>, UserError> {
    let sql = format!(
        "{TOUCHED} SELECT min(pg_describe_object(t.class, t.id, 0)) FROM touched t \
         WHERE (t.class = 'pg_foreign_server'::regclass \
             OR t.class = 'pg_proc'::regclass AND NOT EXISTS ( \
                 SELECT FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner \
                 WHERE p.oid = t.id AND r.rolsuper))"
    );
    let (classes, ids) = columns(seeds);
    fetch::<String>(&sql, &[classes.into(), ids.into()])
}

/// The error for what another role could have run with more rights than it has.
pub fn refusal(message: String) -> UserError {
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .detail("That role could have its own code run with the privileges of the role that executes the statement.")
        .hint("Call as a role without special rights, or pass such a role as run_as.")
}
