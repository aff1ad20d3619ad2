//! Keeps superuser rights away from objects of other roles, where this project's own tables are read and written.
//!
//! The recorder is the bootstrap superuser, and the caller may be a superuser as well. Who owns a table decides what runs when a
//! row of it is written: triggers (before PostgreSQL 18, deferred ones run as the committing role), constraints, defaults, rules.
//! Who owns a view or a function decides what runs when it is used. So all of these must belong to superusers.
//!
//! Other roles may have been granted TRIGGER and REFERENCES. What they make with these fires in ordinary sessions only
//! (pg_trigger.tgenabled is O), and this project's statements run under session_replication_role = replica: their triggers, and
//! those of their foreign keys, are harmless. Ours fire, as they are enabled always. CREATE OR REPLACE TRIGGER takes that from them.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::server::spi::{Inspection, fetch, fetch_all, inspect, quote_identifier};

thread_local! {
    /// Whether all was in order at the last look.
    static IN_ORDER: Cell<bool> = const { Cell::new(false) };
    /// Whether the catalogs have changed since then.
    static CHANGED: Cell<bool> = const { Cell::new(false) };
    /// The extension's relations, of which alone changes count; empty while they are not known.
    static RELATIONS: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    static LISTENS: Cell<bool> = const { Cell::new(false) };
}

/// Runs this project's own SQL on its own tables.
///
/// # Errors
/// As [`check`], and those of `body`.
pub fn on_own_tables<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    check()?;
    let _before = Before(inspect(Some(check)));
    body()
}

/// What inspects statements again when this is dropped.
struct Before(Option<Inspection>);

impl Drop for Before {
    fn drop(&mut self) {
        inspect(self.0);
    }
}

/// As [`on_own_tables`], up to the end of this process.
///
/// # Errors
/// As [`check`].
pub fn on_own_tables_for_good() -> Result<(), UserError> {
    inspect(Some(check));
    check()
}

/// Sees whose the extension and its objects are. A change that comes while a statement waits for a lock on its tables is seen
/// before it is executed.
///
/// # Errors
/// 42501 where one of them belongs to a role that is no superuser, or where triggers are not as the extension has made them.
fn check() -> Result<(), UserError> {
    if IN_ORDER.get() && !CHANGED.get() {
        return Ok(());
    }
    listen();
    IN_ORDER.set(false);
    CHANGED.set(false);
    RELATIONS.take();
    let _before = Before(inspect(None));
    RELATIONS.set(look()?);
    IN_ORDER.set(true);
    Ok(())
}

/// The relations; an error for the first thing that is not in order.
fn look() -> Result<Vec<pg_sys::Oid>, UserError> {
    let problems = fetch_all(PROBLEMS, &[], |row| {
        let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
        Ok(refusal(&text(1)?, &text(2)?, &text(3)?, &text(4)?))
    })?;
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let relations = "SELECT array_agg(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                     WHERE n.nspname = ANY ('{bench,bench_internal}'::name[])";
    Ok(fetch::<Vec<pg_sys::Oid>>(relations, &[])?.unwrap_or_default())
}

/// What is not in order, the first of it: what it is, its name, the table of a trigger, and whose it is or what it calls.
///
/// A trigger is ours by its table, its name and its function, as bench_internal.create_triggers makes them. Only a table's owner
/// can have another one fire here, which then may execute functions of superusers only, also in its WHEN.
const PROBLEMS: &str = "\
    WITH home AS ( \
        SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY ('{bench,bench_internal}'::name[]) \
    ), relation AS ( \
        SELECT c.oid, c.relkind, c.relowner, format('%I.%I', h.nspname, c.relname) AS name \
        FROM pg_class c JOIN home h ON h.oid = c.relnamespace WHERE c.relkind = ANY ('{r,v,c}'::\"char\"[]) \
    ), other AS ( \
        SELECT oid, rolname::text AS name FROM pg_roles WHERE NOT rolsuper \
    ), own (\"table\", name, function) AS ( VALUES \
        ('bench_internal.run_log', 'forget_runs', 'forget_runs'), \
        ('bench_internal.run_log', 'forget_all_runs', 'forget_runs'), \
        ('bench_internal.run_log', 'disown', 'disown'), \
        ('bench_internal.sweep_log', 'disown', 'disown'), \
        ('bench_internal.capture_list', 'disown', 'disown'), \
        ('bench_internal.custom_fixtures', 'disown', 'disown'), \
        ('bench.workloads', 'disown', 'disown'), \
        ('bench.fixtures', 'disown', 'disown') \
    ), problem (place, kind, name, \"table\", other) AS ( \
        SELECT 1, 'extension', e.extname::text, NULL, o.name \
        FROM pg_extension e JOIN other o ON o.oid = e.extowner WHERE e.extname = 'pgbench_ext'::name \
        UNION ALL \
        SELECT 2, r.relkind::text, r.name, NULL, o.name FROM relation r JOIN other o ON o.oid = r.relowner \
        UNION ALL \
        SELECT 3, 'function', p.oid::regprocedure::text, NULL, o.name \
        FROM pg_proc p JOIN home h ON h.oid = p.pronamespace JOIN other o ON o.oid = p.proowner \
        UNION ALL \
        SELECT 4, CASE WHEN t.oid IS NULL THEN 'missing' \
                       WHEN p.proname = o.function AND h.oid IS NOT NULL THEN 'disabled' ELSE 'replaced' END, \
               o.name, r.name, t.tgfoid::regprocedure::text \
        FROM own o JOIN relation r ON r.name = o.\"table\" \
        LEFT JOIN pg_trigger t ON t.tgrelid = r.oid AND t.tgname = o.name \
        LEFT JOIN pg_proc p ON p.oid = t.tgfoid \
        LEFT JOIN home h ON h.oid = p.pronamespace AND h.nspname = 'bench_internal'::name \
        WHERE (t.tgenabled = 'A'::\"char\" AND p.proname = o.function AND h.oid IS NOT NULL) IS NOT TRUE \
        UNION ALL \
        SELECT 5, 'foreign', t.tgname, r.name, NULL \
        FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid \
        WHERE t.tgenabled = ANY ('{A,R}'::\"char\"[]) \
          AND NOT EXISTS (SELECT FROM own o WHERE o.\"table\" = r.name AND o.name = t.tgname) \
          AND (t.tgisinternal OR EXISTS ( \
              SELECT FROM pg_depend d \
              LEFT JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid \
              WHERE d.classid = 'pg_trigger'::regclass AND d.objid = t.oid AND d.refclassid <> 'pg_class'::regclass \
                AND (p.oid IS NULL OR p.proowner IN (SELECT oid FROM other))))) \
    SELECT kind, name, \"table\", other FROM problem ORDER BY place, \"table\", name LIMIT 1";

/// Whom a trigger runs as.
const AS_SUPERUSER: &str = "It would run with the privileges of the recorder, which is a superuser.";

fn refusal(kind: &str, name: &str, table: &str, other: &str) -> UserError {
    let trigger = |problem| format!("trigger \"{name}\" of table {table} {problem}");
    let restore = format!(
        "As a superuser, SELECT bench_internal.create_triggers(), and REVOKE TRIGGER ON {table} FROM other roles."
    );
    let (message, detail, hint) = match kind {
        "missing" | "disabled" => {
            let detail = "The recorder writes with session_replication_role = replica, under which only triggers fire that are \
                          enabled always.";
            (
                trigger(if kind == "missing" { "is missing" } else { "is not enabled always" }),
                detail.into(),
                restore,
            )
        }
        "replaced" => (trigger("is not the extension's"), format!("It executes function {other}."), restore),
        "foreign" => {
            let name = quote_identifier(name);
            let hint = format!(
                "ALTER TABLE {table} ENABLE TRIGGER {name} has it fire in ordinary sessions only. Or drop it."
            );
            (trigger("is enabled always, and executes other roles' objects"), AS_SUPERUSER.into(), hint)
        }
        _ => return not_a_superusers(kind, name, other),
    };
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message).detail(detail).hint(hint)
}

/// `kind` is `extension`, `function` or a pg_class.relkind.
fn not_a_superusers(kind: &str, name: &str, owner: &str) -> UserError {
    let noun = match kind {
        "v" => "view",
        "c" => "type",
        "r" => "table",
        other => other,
    };
    let alter = format!("ALTER {} {name} OWNER TO a superuser.", noun.to_uppercase());
    let hint = match noun {
        "extension" => format!(
            "ALTER ROLE {0} SUPERUSER, or REASSIGN OWNED BY {0} TO a superuser.",
            quote_identifier(owner)
        ),
        "function" => format!("Drop it, or, if it is the extension's and as it was, {alter}"),
        _ => format!(
            "Drop the triggers, rules, constraints and defaults that this role has added, then {alter}"
        ),
    };
    UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("{noun} {name} belongs to role \"{owner}\", which is not a superuser"),
    )
    .detail(format!(
        "The recorder is a superuser, and the owner of {} {noun} could make it run any code.",
        if noun == "extension" { "an" } else { "a" }
    ))
    .hint(hint)
}

/// Has the server say when catalogs change.
fn listen() {
    use pg_sys::SysCacheIdentifier::{AUTHOID, NAMESPACEOID, PROCOID};
    if LISTENS.replace(true) {
        return;
    }
    let nothing = pg_sys::Datum::from(0);
    // SAFETY: the callbacks are functions of this library, which stays loaded; registered once in the process.
    unsafe {
        for cache in [PROCOID, NAMESPACEOID, AUTHOID] {
            pg_sys::CacheRegisterSyscacheCallback(cache as c_int, Some(catalog_changed), nothing);
        }
        pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), nothing);
    }
}

unsafe extern "C-unwind" fn catalog_changed(_: pg_sys::Datum, _: c_int, _: u32) {
    CHANGED.set(true);
}

/// Called for any relation, and with no OID for all of them.
unsafe extern "C-unwind" fn relation_changed(_: pg_sys::Datum, relation: pg_sys::Oid) {
    let counts =
        |own: &Vec<pg_sys::Oid>| own.is_empty() || relation == pg_sys::InvalidOid || own.contains(&relation);
    if RELATIONS.with_borrow(counts) {
        CHANGED.set(true);
    }
}
