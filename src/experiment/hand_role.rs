//! Whose session changes the database for the runs of a sweep's variant, and undoes that.

use bench_base::error::UserError;
use bench_model::spec::Role;
use bench_questions::sweep::{Question, SweepOptions, Variant};
use pgrx::pg_sys;

use super::state::fixtures_of;
use crate::guard::client_role::{client_role, keeper_of};
use crate::guard::session_role::session_of;
use crate::load::fixture;
use crate::server::roles::{self, superuser};
use crate::server::spi::fetch;

/// The role of a hand.
#[derive(Clone, Debug)]
pub(super) struct HandRole {
    pub role: Role,
    /// It was named by its caller, or by a superuser's parameter.
    pub may_be_special: bool,
}

/// The role of a variant's hand in a call of the current role, who wrote the statements: the role that `run_as` names, or else the
/// current role. A superuser's statements are executed by the owner of the tables that the sweep is about.
///
/// # Errors
/// 42704 and 42501.
pub(super) fn hand_role(
    options: &SweepOptions,
    variant: &Variant,
    is_resumed: bool,
) -> Result<HandRole, UserError> {
    let arguments = options.run_of(variant);
    let run_as = arguments.run_as.clone();
    let hand = role_for(run_as.as_deref(), || match table_of(options, variant) {
        Some(table) => owner_of_table(table),
        None => fixtures_of(arguments)?.first().map_or(Ok(None), |name| fixture::owner_of(name)),
    })?;
    // Who resumes a sweep has named nobody.
    Ok(HandRole { may_be_special: hand.may_be_special && !(is_resumed && run_as.is_some()), ..hand })
}

/// As [`hand_role`], where `owner` says who owns the tables that a superuser's call is about.
///
/// # Errors
/// As [`hand_role`], and those of `owner`.
pub(super) fn role_for(
    run_as: Option<&str>,
    owner: impl FnOnce() -> Result<Option<Role>, UserError>,
) -> Result<HandRole, UserError> {
    if let Some(name) = run_as {
        let role = roles::named(name)?;
        roles::check_may_become(&role)?;
        return Ok(HandRole { role, may_be_special: true });
    }
    let caller = roles::current();
    if !superuser() {
        return Ok(HandRole { role: session_of(&caller, &caller, None)?, may_be_special: false });
    }
    let role = keeper_of(&session_of(&caller, &caller, owner()?)?)?;
    let may_be_special = role.oid == client_role()?.oid;
    Ok(HandRole { role, may_be_special })
}

/// The table whose copies a variant works on.
fn table_of<'a>(options: &'a SweepOptions, variant: &Variant) -> Option<&'a str> {
    let Some(Question::IndexWorth(asked)) = &options.question else { return None };
    let index = asked.indexes.iter().find(|index| [&index.reads, &index.writes].contains(&&variant.name));
    index.map(|index| index.table.as_str())
}

/// Who owns a table; `None` where it has gone.
///
/// # Errors
/// The server's.
pub(super) fn owner_of_table(table: &str) -> Result<Option<Role>, UserError> {
    let sql = "SELECT relowner FROM pg_class WHERE oid = to_regclass($1)";
    let owner = fetch::<pg_sys::Oid>(sql, &[table.into()])?;
    owner.map(|owner| roles::existing(owner, &format!("with OID {}", owner.to_u32()))).transpose()
}
