//! Keeps the rights of special roles away from objects of other roles, in sessions that run users' statements: each is checked
//! before it is planned, while its relations are locked.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};

use bench_base::error::{UserError, sqlstate};
use pgrx::{pg_guard, pg_sys};

use super::trust::{objects, statement};
use crate::error::{OrRaise, internal};
use crate::server::relations::owner_of;
use crate::server::roles::{is_superuser, name_of as name_of_role};
use crate::server::spi::quote_identifier;
use crate::server::transaction::transaction;

thread_local! {
    /// Tables that are looked at all the same, for this role.
    static FIXTURES: RefCell<Option<(pg_sys::Oid, Vec<pg_sys::Oid>)>> = const { RefCell::new(None) };
    static INSTALLED: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS: Cell<pg_sys::planner_hook_type> = const { Cell::new(None) };
}

/// While it lives, statements of the current role are judged as they are planned, if it has rights that matter.
pub struct Judged {
    before: Option<pg_sys::Oid>,
}

impl Judged {
    /// Begins to judge.
    ///
    /// # Errors
    /// The server's.
    pub fn new() -> Result<Self, UserError> {
        let judged = objects::guarded()?;
        if judged.is_some() {
            install();
            statement::listen();
        }
        Ok(Self { before: statement::JUDGED.replace(judged) })
    }

    /// Goes on to the end of the process.
    pub fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for Judged {
    fn drop(&mut self) {
        statement::JUDGED.set(self.before);
    }
}

/// From here on, what a role with special rights does with these tables must run nobody else's code: a fixture's owner is
/// trusted then, and so is its schema's, but others may have been granted TRIGGER. A trigger that is made later has the
/// statements planned anew. Nothing for other roles, and nothing of tables that are no fixture's. In a worker without a
/// transaction.
///
/// # Errors
/// None but the server's own.
pub fn watch_fixtures(tables: impl Iterator<Item = pg_sys::Oid>) -> Result<(), UserError> {
    if let Some(role) = transaction(objects::guarded)? {
        install();
        FIXTURES.replace(Some((role, tables.collect())));
    }
    Ok(())
}

/// Has the server's planner look at statements; which ones, the others here and [`Judged`] say.
pub fn install() {
    if INSTALLED.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    unsafe {
        PREVIOUS.set(pg_sys::planner_hook);
        pg_sys::planner_hook = Some(plan);
    }
}

unsafe extern "C-unwind" {
    /// The server's. By pgrx's own declaration an ERROR would go through Rust, which loses much of it.
    fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        parameters: pg_sys::ParamListInfo,
        #[cfg(since_19)] explained: *mut pg_sys::ExplainState,
    ) -> *mut pg_sys::PlannedStmt;
}

/// Nothing of Rust's is left to be dropped where the planner raises an error.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
    #[cfg(since_19)] explained: *mut pg_sys::ExplainState,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: a rewritten query whose relations are locked; after it, what the server does where there is no hook.
    unsafe {
        look_at_query(query);
        let planner = PREVIOUS.get().unwrap_or(standard_planner);
        #[cfg(not(since_19))]
        let planned = planner(query, text, options, parameters);
        #[cfg(since_19)]
        let planned = planner(query, text, options, parameters, explained);
        planned
    }
}

/// # Safety
/// A rewritten query whose relations are locked.
#[pg_guard]
unsafe extern "C-unwind" fn look_at_query(query: *mut pg_sys::Query) {
    // SAFETY: by the caller.
    unsafe {
        if let Some(role) = statement::judged() {
            statement::check_query(role, query, &statement::relations_of(query)).or_raise();
        }
        FIXTURES
            .with_borrow(|watched| {
                let Some((role, tables)) = watched else { return Ok(()) };
                let mut relations = statement::relations_of(query);
                relations.retain(|relation| tables.contains(relation));
                relations.into_iter().try_for_each(|table| look_at_triggers(*role, table))
            })
            .or_raise();
    }
}

/// # Safety
/// A relation that is locked.
unsafe fn look_at(
    oid: pg_sys::Oid,
    look: impl FnOnce(pg_sys::Relation) -> Result<(), UserError>,
) -> Result<(), UserError> {
    // SAFETY: the relcache entry is held from its opening to its closing, and is not written to. What it points to is not
    // held: see check_triggers.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(oid);
        if relation.is_null() {
            return Err(internal("a relation that is locked is gone"));
        }
        let result = look(relation);
        pg_sys::RelationClose(relation);
        result
    }
}

/// Sees that a fixture's table has no triggers of others than a role trusts. By the relation cache: each client looks.
///
/// # Safety
/// A relation that is locked.
unsafe fn look_at_triggers(role: pg_sys::Oid, table: pg_sys::Oid) -> Result<(), UserError> {
    // SAFETY: catalog look-ups inside a transaction, of a role that may have gone.
    let is_trusted = |owner| unsafe { is_superuser(owner) || pg_sys::is_member_of_role(owner, role) };
    let detail = "It would run with the privileges of the role whose sessions run the workload.";
    // SAFETY: by the caller.
    unsafe { look_at(table, |relation| check_triggers(relation, &is_trusted, detail)) }
}

/// # Safety
/// An open relation.
unsafe fn check_triggers(
    relation: pg_sys::Relation,
    is_trusted: &dyn Fn(pg_sys::Oid) -> bool,
    detail: &str,
) -> Result<(), UserError> {
    // SAFETY: by the caller, an open relation; its triggers are an array of that length, and a trigger has a name. They are
    // copied before the first look-up, which may read invalidations and build what the entry points to anew.
    let triggers: Vec<(pg_sys::Oid, Option<pg_sys::Oid>, String)> = unsafe {
        let all = match (*relation).trigdesc {
            triggers if triggers.is_null() => &[],
            triggers => std::slice::from_raw_parts((*triggers).triggers, (*triggers).numtriggers as usize),
        };
        let name = |trigger: &pg_sys::Trigger| CStr::from_ptr(trigger.tgname).to_string_lossy().into_owned();
        all.iter()
            .map(|trigger| {
                let other = trigger.tgconstrrelid;
                let references = (trigger.tgisinternal && other != pg_sys::InvalidOid).then_some(other);
                (trigger.tgfoid, references, name(trigger))
            })
            .collect()
    };
    for (function, references, trigger) in triggers {
        // What a foreign key does is done as the owner of the other table, whose triggers run then.
        let owner = match references {
            Some(other) => owner_of(other)?,
            None => owner_of_function(function)?,
        };
        if !is_trusted(owner) {
            // SAFETY: by the caller.
            let name = unsafe { name_of(relation) };
            return Err(refusal(format!(
                "trigger \"{trigger}\" of table {name} belongs to role \"{}\"",
                role_name(owner)
            ))
            .detail(detail)
            .hint(format!("Drop the trigger, or its foreign key, and REVOKE TRIGGER, REFERENCES ON {name} from other roles.")));
        }
    }
    Ok(())
}

fn owner_of_function(function: pg_sys::Oid) -> Result<pg_sys::Oid, UserError> {
    // SAFETY: a syscache look-up; the tuple is released after its last use.
    unsafe {
        let id = pg_sys::SysCacheIdentifier::PROCOID as _;
        let tuple = pg_sys::SearchSysCache1(id, pg_sys::Datum::from(function));
        if tuple.is_null() {
            return Err(internal("cache lookup failed for a trigger's function"));
        }
        let row: *const pg_sys::FormData_pg_proc = pg_sys::GETSTRUCT(tuple).cast();
        let owner = (*row).proowner;
        pg_sys::ReleaseSysCache(tuple);
        Ok(owner)
    }
}

fn refusal(message: String) -> UserError {
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
}

/// By its number where it is gone.
fn role_name(role: pg_sys::Oid) -> String {
    name_of_role(role).unwrap_or_else(|| role.to_u32().to_string())
}

/// Qualified, and quoted where it has to be.
///
/// # Safety
/// An open relation.
unsafe fn name_of(relation: pg_sys::Relation) -> String {
    // SAFETY: by the caller; a palloc'd string, or NULL for a schema that is gone; a name is NUL-terminated.
    unsafe {
        let class = (*relation).rd_rel;
        let schema = match pg_sys::get_namespace_name((*class).relnamespace) {
            name if name.is_null() => "?".into(),
            name => CStr::from_ptr(name).to_string_lossy(),
        };
        let name = CStr::from_ptr((*class).relname.data.as_ptr()).to_string_lossy();
        format!("{}.{}", quote_identifier(&schema), quote_identifier(&name))
    }
}
