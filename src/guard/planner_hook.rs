//! Keeps superuser rights away from objects of other roles.
//!
//! The recorder is the bootstrap superuser, and the caller may be a superuser as well. The owner of a table decides
//! what runs when a row of it is written: triggers (before PostgreSQL 18, deferred ones run as the committing role),
//! constraints, defaults, rules. The owner of a view decides what runs when it is read, and the planner evaluates parts
//! of either. So each statement on the extension's tables is checked before it is planned, while its relations are
//! locked: ALTER … OWNER and CREATE TRIGGER then wait for its transaction.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};

use bench_base::error::{UserError, sqlstate};
use pgrx::{pg_guard, pg_sys};

use super::trust::{objects, statement};
use crate::error::{OrRaise, internal};
use crate::server::relations::owner_of;
use crate::server::roles::{is_superuser, name_of as name_of_role};
use crate::server::spi::{fetch_all, quote_identifier};
use crate::server::transaction::transaction;

thread_local! {
    /// Whether this process's statements are looked at.
    static ON: Cell<bool> = const { Cell::new(false) };
    /// Tables that are looked at all the same, for this role.
    static FIXTURES: RefCell<Option<(pg_sys::Oid, Vec<pg_sys::Oid>)>> = const { RefCell::new(None) };
    static INSTALLED: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS: Cell<pg_sys::planner_hook_type> = const { Cell::new(None) };
}

/// While it lives, statements are looked at.
pub struct Guard {
    before: bool,
}

impl Guard {
    /// Begins to look at statements.
    pub fn new() -> Self {
        install();
        Self { before: ON.replace(true) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        ON.set(self.before);
    }
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

/// From here on, every statement of this process is looked at.
pub fn for_good() {
    install();
    ON.set(true);
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
        if ON.get() {
            check(query, &|oid| check_relation(oid)).or_raise();
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
/// A rewritten query whose relations are locked.
unsafe fn check(
    query: *mut pg_sys::Query,
    check_one: &dyn Fn(pg_sys::Oid) -> Result<(), UserError>,
) -> Result<(), UserError> {
    // SAFETY: by the caller.
    unsafe { statement::relations_of(query) }.into_iter().try_for_each(check_one)
}

/// # Safety
/// A relation that is locked.
unsafe fn check_relation(oid: pg_sys::Oid) -> Result<(), UserError> {
    // SAFETY: by the caller.
    unsafe {
        look_at(oid, |relation| {
            check_owner(relation).and_then(|()| check_triggers(relation, &is_superuser, RECORDER))
        })
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

unsafe fn check_owner(relation: pg_sys::Relation) -> Result<(), UserError> {
    // SAFETY: by the caller, an open relation.
    let (owner, kind) = unsafe { ((*(*relation).rd_rel).relowner, (*(*relation).rd_rel).relkind) };
    if is_superuser(owner) {
        return Ok(());
    }
    // SAFETY: as above.
    Err(not_a_superusers(kind as u8, &unsafe { name_of(relation) }, &role_name(owner)))
}

fn not_a_superusers(kind: u8, name: &str, owner: &str) -> UserError {
    let (noun, alter) = match kind {
        pg_sys::RELKIND_VIEW => ("view", "VIEW"),
        pg_sys::RELKIND_COMPOSITE_TYPE => ("type", "TYPE"),
        _ => ("table", "TABLE"),
    };
    refusal(format!("{noun} {name} belongs to role \"{owner}\", which is not a superuser"))
        .detail(format!("The recorder is a superuser, and the owner of a {noun} could make it run any code."))
        .hint(format!(
            "Drop the triggers, rules, constraints and defaults that this role has added, then ALTER {alter} {name} OWNER TO a superuser."
        ))
}

/// Before a run begins, so that it does not end when the first sample is written.
///
/// # Errors
/// 42501 where one of the extension's tables, views and row types belongs to a role that is no superuser.
pub fn check_all() -> Result<(), UserError> {
    let others = fetch_all(
        "SELECT c.relkind::text, format('%I.%I', n.nspname, c.relname), r.rolname::text \
         FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_roles r ON r.oid = c.relowner \
         WHERE n.nspname = ANY ('{bench,bench_internal}'::name[]) \
           AND c.relkind = ANY ('{r,v,c}'::\"char\"[]) AND NOT r.rolsuper \
         ORDER BY c.relname LIMIT 1",
        &[],
        |row| {
            let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
            let kind = text(1)?.bytes().next().unwrap_or_default();
            Ok(not_a_superusers(kind, &text(2)?, &text(3)?))
        },
    )?;
    others.into_iter().next().map_or(Ok(()), Err)
}

/// Whom a trigger would run as.
const RECORDER: &str = "It would run with the privileges of the recorder, which is a superuser.";

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

/// The owner of a schema can have its name mean another one.
///
/// # Errors
/// 42501 where a schema of the extension belongs to a role that is no superuser.
pub fn check_schema(schema: pg_sys::Oid) -> Result<(), UserError> {
    // SAFETY: a syscache look-up; the tuple is released after its last use.
    let (name, owner) = unsafe {
        let id = pg_sys::SysCacheIdentifier::NAMESPACEOID as _;
        let tuple = pg_sys::SearchSysCache1(id, pg_sys::Datum::from(schema));
        if tuple.is_null() {
            return Err(internal("cache lookup failed for a schema of the extension"));
        }
        let row: *const pg_sys::FormData_pg_namespace = pg_sys::GETSTRUCT(tuple).cast();
        let name = CStr::from_ptr((*row).nspname.data.as_ptr()).to_string_lossy().into_owned();
        let owner = (*row).nspowner;
        pg_sys::ReleaseSysCache(tuple);
        (name, owner)
    };
    if is_superuser(owner) {
        return Ok(());
    }
    Err(refusal(format!("schema {name} belongs to role \"{}\", which is not a superuser", role_name(owner)))
        .detail("The recorder is a superuser, and the schema's owner could put another one in its place.")
        .hint(format!("ALTER SCHEMA {name} OWNER TO a superuser.")))
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
