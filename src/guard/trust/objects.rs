//! What objects of a database run when they are used, and whom they belong to.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::server::guc::with_search_path;
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

/// The current role, where it has rights that others must not come to by what it executes: a superuser, a role with attributes
/// that let it past checks, and a member of the server's predefined roles.
pub fn guarded() -> Result<Option<pg_sys::Oid>, UserError> {
    let role = roles::current_role_oid();
    if roles::superuser() {
        return Ok(Some(role));
    }
    let sql = "SELECT /* pgbench_ext */ r.rolcreaterole OR r.rolreplication OR r.rolbypassrls OR EXISTS ( \
                   SELECT FROM pg_catalog.pg_roles p WHERE pg_catalog.starts_with(p.rolname::pg_catalog.text, 'pg_') \
                       AND p.rolname OPERATOR(pg_catalog.<>) 'pg_database_owner'::pg_catalog.name \
                       AND pg_catalog.pg_has_role(r.oid, p.oid, 'MEMBER')) \
               FROM pg_catalog.pg_roles r WHERE r.oid OPERATOR(pg_catalog.=) $1";
    // A role that has gone has no rights to lose, and whatever is done as it fails.
    Ok(fetch::<bool>(sql, &[role.into()])?.unwrap_or(true).then_some(role))
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
    let sql = format!(
        "SELECT true FROM pg_catalog.pg_roles r WHERE r.oid OPERATOR(pg_catalog.=) $1 AND {}",
        trusted("$2")
    );
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
    format!(
        "(r.rolsuper OR r.oid OPERATOR(pg_catalog.=) {role} OR pg_catalog.pg_has_role(r.oid, {role}, 'MEMBER'))"
    )
}

/// All that the seeds in `$1` and `$2` lead to: what views and rules, defaults, constraints, policies,
/// indexes, triggers, foreign keys, children, types, domains, operators, aggregates and functions with a body that the server
/// has parsed use, at any depth. Of other functions the owner answers for what they do. What came with the server depends on
/// nothing.
const TOUCHED: &str = "\
    WITH RECURSIVE touched (class, id) AS ( \
        SELECT s.class, s.id FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS s (class, id) \
      UNION \
        SELECT n.class, n.id FROM touched t CROSS JOIN LATERAL ( \
            SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d \
            WHERE d.classid OPERATOR(pg_catalog.=) t.class AND d.objid OPERATOR(pg_catalog.=) t.id \
              AND d.refclassid OPERATOR(pg_catalog.<>) ALL (ARRAY['pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid, \
                  'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid]) \
          UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid, g.tgfoid FROM pg_catalog.pg_trigger g \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND g.tgrelid OPERATOR(pg_catalog.=) t.id \
          UNION ALL SELECT t.class, g.tgconstrrelid FROM pg_catalog.pg_trigger g \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND g.tgrelid OPERATOR(pg_catalog.=) t.id \
              AND g.tgisinternal AND g.tgconstrrelid OPERATOR(pg_catalog.<>) 0 \
          UNION ALL SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid, w.oid FROM pg_catalog.pg_rewrite w \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND w.ev_class OPERATOR(pg_catalog.=) t.id \
          UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass::pg_catalog.oid, p.oid FROM pg_catalog.pg_policy p \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND p.polrelid OPERATOR(pg_catalog.=) t.id \
          UNION ALL SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid, a.oid FROM pg_catalog.pg_attrdef a \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND a.adrelid OPERATOR(pg_catalog.=) t.id \
          UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid, k.oid FROM pg_catalog.pg_constraint k \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND k.conrelid OPERATOR(pg_catalog.=) t.id \
          UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid, k.oid FROM pg_catalog.pg_constraint k \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass AND k.contypid OPERATOR(pg_catalog.=) t.id \
          UNION ALL SELECT t.class, i.indexrelid FROM pg_catalog.pg_index i \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND i.indrelid OPERATOR(pg_catalog.=) t.id \
          UNION ALL SELECT t.class, i.inhrelid FROM pg_catalog.pg_inherits i \
            WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND i.inhparent OPERATOR(pg_catalog.=) t.id \
        ) AS n (class, id) \
    )";

/// Objects among what was touched, as `o`, of roles for which a condition on `r` does not hold.
const OF_OTHERS: &str = " \
    SELECT pg_catalog.pg_describe_object(o.class, o.id, 0), \
           coalesce((SELECT g.rolname::pg_catalog.text FROM pg_catalog.pg_roles g WHERE g.oid OPERATOR(pg_catalog.=) o.owner), \
               o.owner::pg_catalog.text) \
    FROM ( \
        SELECT t.class, t.id, c.relowner FROM touched t JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.id \
        WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass \
          AND c.relkind OPERATOR(pg_catalog.<>) ALL ('{i,I,t,S}'::pg_catalog.\"char\"[]) UNION ALL \
        SELECT t.class, t.id, p.proowner FROM touched t JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) t.id \
        WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass UNION ALL \
        SELECT t.class, t.id, y.typowner FROM touched t JOIN pg_catalog.pg_type y ON y.oid OPERATOR(pg_catalog.=) t.id \
        WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass UNION ALL \
        SELECT t.class, t.id, p.oprowner FROM touched t JOIN pg_catalog.pg_operator p ON p.oid OPERATOR(pg_catalog.=) t.id \
        WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_operator'::pg_catalog.regclass UNION ALL \
        SELECT t.class, t.id, f.srvowner FROM touched t JOIN pg_catalog.pg_foreign_server f ON f.oid OPERATOR(pg_catalog.=) t.id \
        WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_foreign_server'::pg_catalog.regclass UNION ALL \
        SELECT t.class, t.id, w.fdwowner FROM touched t JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid OPERATOR(pg_catalog.=) t.id \
        WHERE t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_foreign_data_wrapper'::pg_catalog.regclass \
    ) AS o (class, id, owner) \
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid OPERATOR(pg_catalog.=) o.owner AND ";

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
    // Objects are described with their schemas.
    let strangers = with_search_path("pg_catalog", || {
        fetch_all(&sql, &[classes.into(), ids.into(), role.into()], |row| {
            Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default()))
        })
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
        "{TOUCHED} SELECT pg_catalog.min(pg_catalog.pg_describe_object(t.class, t.id, 0)) FROM touched t \
         WHERE (t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_foreign_server'::pg_catalog.regclass \
             OR t.class OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND NOT EXISTS ( \
                 SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) p.proowner \
                 WHERE p.oid OPERATOR(pg_catalog.=) t.id AND r.rolsuper))"
    );
    let (classes, ids) = columns(seeds);
    with_search_path("pg_catalog", || fetch::<String>(&sql, &[classes.into(), ids.into()]))
}

/// The error for what another role could have run with more rights than it has.
pub fn refusal(message: String) -> UserError {
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .detail("That role could have its own code run with the privileges of the role that executes the statement.")
        .hint("Call as a role without special rights, or pass such a role as run_as.")
}
