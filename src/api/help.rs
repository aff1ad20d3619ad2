//! bench.help.

use bench_base::error::UserError;
use bench_report::help::{Declared, Help};
use pgrx::prelude::*;

use crate::error::{OrRaise, for_client, internal};
use crate::server::rows::select;
use crate::server::spi::fetch;

/// What the functions do. See the COMMENT ON.
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
