//! bench.create_workload and bench.drop_workload.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{check_text, is_name};
use bench_script::{Symbols, parse};
use pgrx::prelude::*;

use super::required;
use crate::capture::spec::check_of_workload;
use crate::error::{OrRaise, notice};
use crate::launch::checks::check_length;
use crate::load::fixture;
use crate::server::roles;
use crate::store;

/// Stores a script under a name. See the COMMENT ON.
#[pg_extern(sql = false)]
fn create_workload(
    name: Option<String>,
    script: Option<String>,
    fixture: Option<String>,
    description: Option<String>,
) {
    create(name, script, fixture, description).or_raise();
}

fn create(
    name: Option<String>,
    script: Option<String>,
    fixture: Option<String>,
    description: Option<String>,
) -> Result<(), UserError> {
    crate::launch::checks::check_encoding()?;
    let name = required("name", name)?;
    let script = required("script", script)?;
    if !is_name(&name, 63) {
        return Err(UserError::invalid(format!("invalid workload name: \"{name}\""),
        )
        .hint("A name has 1 to 63 bytes, without @ and commas, and does not begin with deck: they are part of the syntax of mixes."));
    }
    check_length([script.as_str()])?;
    check_text("description", description.as_deref().unwrap_or_default())?;
    parse(&name, &script, &mut Symbols::new())?;
    if let Some(fixture) = &fixture {
        fixture::known(fixture)?;
    }
    check_of_workload(&name)?;
    if let Some(old) = store::workload(&name)? {
        check_owner(&old)?;
    }
    // Whoever wrote it last answers for it.
    let writer = roles::current_role_oid();
    let dropped = store::put_workload(&name, writer, fixture.as_deref(), &script, description.as_deref())?;
    if dropped > 0 {
        let message = format!("the feeders that another role had given workload \"{name}\" are dropped");
        notice(
            message,
            "Their queries would run with your privileges. Add your own: SELECT bench.add_feeder(…).",
        );
    }
    Ok(())
}

/// Removes a workload. See the COMMENT ON.
#[pg_extern(sql = false)]
fn drop_workload(name: Option<String>) {
    remove(name).or_raise();
}

fn remove(name: Option<String>) -> Result<(), UserError> {
    let name = required("name", name)?;
    let Some(old) = store::workload(&name)? else {
        return Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            format!("workload \"{name}\" does not exist"),
        ));
    };
    check_owner(&old)?;
    store::delete_workload(&name)
}

/// That the current role may replace a workload, change its feeders or drop it.
///
/// # Errors
/// 42501.
pub fn check_owner(workload: &store::Workload) -> Result<(), UserError> {
    let refuse = |why: String| UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, why);
    if workload.builtin {
        return Err(
            refuse(format!("workload \"{}\" is built in", workload.name)).hint("Choose another name.")
        );
    }
    if !roles::may_write_for(workload.owner_oid)? {
        return Err(refuse(format!("workload \"{}\" belongs to role \"{}\"", workload.name, workload.owner))
            .hint("Only roles that can SET ROLE to its owner may replace or drop it."));
    }
    Ok(())
}
