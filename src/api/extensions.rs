//! bench.help, what the extension says of itself, whose is what, and what its own SQL asks of others' tables and extensions.

use bench_base::error::{UserError, sqlstate};
use bench_report::help::{Declared, Help};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::required;
use crate::error::{OrRaise, for_client, internal};
use crate::guard::extension::{LIBRARY_VERSION, check_extension_trusted};
use crate::guard::session_role;
use crate::server::rows::select;
use crate::server::spi::fetch;
use crate::server::{pages, roles};
use crate::store;

/// Which library this is.
#[pg_extern(sql = false)]
fn version() -> String {
    format!(
        "pgbench_ext {LIBRARY_VERSION}, built for PostgreSQL {}, from sources {}",
        pg_sys::PG_VERSION.to_string_lossy(),
        env!("PGBENCH_EXT_SOURCES")
    )
}

/// Reads a table into shared buffers.
#[pg_extern(sql = false)]
fn prewarm_table(relation: Option<pg_sys::Oid>) -> i64 {
    required("relation", relation).and_then(pages::prewarm).or_raise()
}

/// Whom the caller would have to trust.
#[pg_extern(sql = false)]
fn check_extension(name: Option<String>) {
    required("name", name).and_then(|name| check_extension_trusted(&name)).or_raise();
}

/// Makes the roles of superusers' calls.
#[pg_extern(sql = false)]
fn make_own_roles() {
    session_role::make_own_roles().or_raise();
}

/// What the functions do.
#[pg_extern(sql = false)]
fn help(name: Option<String>) -> SetOfIterator<'static, String> {
    SetOfIterator::new(lines(name.as_deref()).or_raise().into_iter().map(for_client))
}

fn lines(name: Option<&str>) -> Result<Vec<String>, UserError> {
    let help = Help::default();
    let Some(name) = name else { return Ok(help.list()) };
    let name = help.find(name)?;
    let (arguments, result) = declaration(name)?
        .ok_or_else(|| internal(format!("function bench.{name} is not in this database")))?;
    Ok(help.function(name, &arguments, &result))
}

/// The arguments, as the server's catalog has them, of a function of schema `bench`, in their order, and its result; `None`
/// where there is no such function.
fn declaration(name: &str) -> Result<Option<(Vec<Declared>, String)>, UserError> {
    const RESULT: &str = "SELECT pg_get_function_result(p.oid) FROM pg_proc p \
         WHERE p.pronamespace = 'bench'::regnamespace::oid \
           AND p.proname = $1::name";
    // A default without its cast, which is to the argument's type.
    const ARGUMENTS: &str = "SELECT a.name, format_type(a.type, NULL), \
           regexp_replace(pg_get_function_arg_default(p.oid, a.place::int4), \
               '::[a-z ]+(\\[\\])?$', '') \
         FROM pg_proc p, \
           ROWS FROM (unnest(p.proargtypes::oid[]), \
                      unnest(p.proargnames[1:p.pronargs])) WITH ORDINALITY AS a (type, name, place) \
         WHERE p.pronamespace = 'bench'::regnamespace::oid \
           AND p.proname = $1::name ORDER BY a.place";
    let Some(result) = fetch::<String>(RESULT, &[name.into()])? else { return Ok(None) };
    let arguments = select::<(String, String, Option<String>)>(ARGUMENTS, &[name.into()])?;
    let declared = |(name, sql_type, default)| Declared { name, sql_type, default };
    let arguments = arguments.into_iter().map(declared).collect();
    Ok(Some((arguments, result)))
}

// Whose is what: bench_internal.is_visible, by which views and policies go, the names of roles that they show, and
// bench.reassign_owned.

/// Whether the current role may see what belongs to a run of another.
#[pg_extern(sql = false)]
fn is_owner_visible(role: Option<pg_sys::Oid>) -> bool {
    store::may_see(role.unwrap_or(pg_sys::InvalidOid))
}

/// A role's present name.
#[pg_extern(sql = false)]
fn role_name(role: Option<pg_sys::Oid>, kept: Option<String>) -> Option<String> {
    role.and_then(roles::name_of).or(kept)
}

/// Gives a role what another has left.
#[pg_extern(sql = false)]
fn reassign_owned(old_role: Option<String>, new_role: Option<String>) -> i64 {
    (|| {
        let (old, new) = (required("old_role", old_role)?, required("new_role", new_role)?);
        if !roles::superuser() {
            let message = "bench.reassign_owned is for superusers";
            return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
        }
        let missing = || UserError::new(sqlstate::UNDEFINED_OBJECT, format!("role \"{new}\" does not exist"));
        store::reassign_owned(&old, roles::oid_of(&new)?.ok_or_else(missing)?)
    })()
    .or_raise()
}
