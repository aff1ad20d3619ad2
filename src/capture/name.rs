//! Names of captures. bench.run accepts names of captures and of workloads, so no name may be both.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::is_name;

use crate::server::roles;
use crate::store;

/// That a role may capture under this name: anew, or over a capture of its own.
///
/// # Errors
/// 22023 for what cannot be a name; 42710 where it, or what the capture's workloads would be called, is taken; 42501 for
/// another role's capture; 55006 for one under way.
pub fn check(name: &str) -> Result<(), UserError> {
    // The workloads' names have a number behind it.
    if !is_name(name, 59) {
        let message = format!("invalid capture name: \"{name}\"");
        return Err(UserError::invalid(message)
            .hint("A name has 1 to 59 bytes, without @ and commas, and does not begin with deck: they are part of the syntax of mixes."));
    }
    if store::workload(name)?.is_some() {
        let message = format!("workload \"{name}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
            .hint("bench.run accepts names of workloads and of captures: choose another name."));
    }
    check_part(name)?;
    check_owner(name)?;
    if let Some(part) = store::alien_part(name)? {
        let message = format!("workload \"{part}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message).hint(
            "The workloads of a capture have its name and a number. Drop this workload, or choose another name.",
        ));
    }
    let under_way = store::capture(name)?.is_some_and(|old| old.status == "capturing");
    if under_way {
        return Err(UserError::new(sqlstate::OBJECT_IN_USE, format!("capture \"{name}\" is under way"))
            .hint("Wait for its end, or stop it with bench.stop_capture."));
    }
    Ok(())
}

/// Whether there is a capture of this name that this role may replace and drop.
///
/// # Errors
/// 42501 for another role's.
pub fn check_owner(name: &str) -> Result<bool, UserError> {
    let Some(old) = store::capture(name)? else { return Ok(false) };
    if roles::acts_for(old.owner_oid) {
        return Ok(true);
    }
    let message = format!("capture \"{name}\" belongs to role \"{}\"", old.role);
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .hint("Only its role, members of it and superusers may replace or drop it."))
}

/// That a workload may be stored under this name.
///
/// # Errors
/// 42710 for a capture's, and for a part of one.
pub fn check_of_workload(name: &str) -> Result<(), UserError> {
    if store::capture(name)?.is_some() {
        let message = format!("capture \"{name}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
            .hint("bench.run accepts names of workloads and of captures: choose another name."));
    }
    check_part(name)
}

/// # Errors
/// 42710 for a name with a number behind a slash, where a capture or a mix has what is before it.
fn check_part(name: &str) -> Result<(), UserError> {
    let Some((whole, number)) = name.rsplit_once('/') else { return Ok(()) };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let kind = match is_number {
        false => return Ok(()),
        true if store::capture(whole)?.is_some() => "capture",
        true if store::workload(whole)?.is_some_and(|workload| workload.mix.is_some()) => "mix",
        true => return Ok(()),
    };
    let message = format!("name \"{name}\" belongs to {kind} \"{whole}\"");
    Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
        .hint(format!("The workloads of a {kind} have its name and a number: choose another name.")))
}
