//! bench.help.

use bench_base::error::UserError;
use bench_report::help::Help;
use pgrx::prelude::*;

use crate::error::{OrRaise, for_client, internal};
use crate::server::functions::declaration;

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
