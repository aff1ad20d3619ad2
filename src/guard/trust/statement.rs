//! Statements that a role with more rights than others executes because of what happened, and not because it typed them:
//! captured ones, and the queries made of them. They are judged twice: by their names before they are analysed, and as they
//! are planned, while their relations are locked.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::hash::Hash;

use bench_base::error::UserError;
use pgrx::{pg_guard, pg_sys};

use super::names::check_names;
use super::objects::{Object, check_objects};
use crate::error::OrRaise;

thread_local! {
    /// The role whose statements are judged as they are planned; none without rights that matter.
    pub(in crate::guard) static JUDGED: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
    /// Sets of objects that were found to be in order since the catalogs changed.
    static IN_ORDER: RefCell<HashSet<Vec<Object>>> = RefCell::new(HashSet::new());
    /// Texts whose names were.
    static TEXTS: RefCell<HashSet<String>> = RefCell::new(HashSet::new());
    /// Catalogs have changed.
    static CHANGED: Cell<bool> = const { Cell::new(false) };
    static LISTENS: Cell<bool> = const { Cell::new(false) };
}

/// Judges a text by its names, where statements of this role are judged.
///
/// # Errors
/// 42501 with an object and the role that it belongs to.
pub fn check_text(text: &str) -> Result<(), UserError> {
    let Some(role) = JUDGED.get() else { return Ok(()) };
    forget_what_changed();
    if !TEXTS.with_borrow(|known| known.contains(text)) {
        unjudged(|| check_names(role, text))?;
        TEXTS.with_borrow_mut(|known| keep(known, text.to_owned()));
    }
    Ok(())
}

/// As [`check_text`], of a text that is about to be analysed, within a trap.
///
/// # Safety
/// In a transaction; a text with a zero byte at its end.
pub unsafe fn judge_text(text: *const c_char) {
    if JUDGED.get().is_some() {
        // SAFETY: by the caller.
        unsafe { raise_for_text(text) };
    }
}

/// Guarded: an error is raised when nothing of Rust's is left to be dropped.
#[cold]
#[pg_guard]
unsafe extern "C-unwind" fn raise_for_text(text: *const c_char) {
    // SAFETY: by the caller.
    check_text(&unsafe { CStr::from_ptr(text) }.to_string_lossy()).or_raise();
}

/// Judges once more what is about to be executed, if catalogs have changed since it was planned: to open an index is to wait for
/// its lock, and a function that has changed hands meanwhile runs as its new owner wrote it.
///
/// # Safety
/// In a transaction; a list of rewritten queries whose relations are locked, or NULL.
#[inline]
pub unsafe fn judge_again(queries: *mut pg_sys::List) {
    if JUDGED.get().is_some() && CHANGED.get() {
        // SAFETY: by the caller.
        unsafe { raise_for_queries(queries) };
    }
}

/// As [`raise_for_text`].
#[cold]
#[pg_guard]
unsafe extern "C-unwind" fn raise_for_queries(queries: *mut pg_sys::List) {
    let Some(role) = JUDGED.get() else { return };
    // SAFETY: by the caller; a list of queries.
    unsafe {
        let number = queries.as_ref().map_or(0, |list| list.length as usize);
        for place in 0..number {
            let query = (*(*queries).elements.add(place)).ptr_value.cast();
            check_query(role, query, &relations_of(query)).or_raise();
        }
    }
}

/// As many as the statements of the largest mix, of which a session executes the same ones again and again.
const KNOWN: usize = 4096;

fn keep<T: Hash + Eq>(known: &mut HashSet<T>, new: T) {
    if known.len() >= KNOWN {
        known.clear();
    }
    known.insert(new);
}

/// Nothing that was found before a catalog changed counts.
fn forget_what_changed() {
    if CHANGED.replace(false) {
        IN_ORDER.with_borrow_mut(HashSet::clear);
        TEXTS.with_borrow_mut(HashSet::clear);
    }
}

/// The role whose statements this process judges as they are planned.
pub fn judged() -> Option<pg_sys::Oid> {
    JUDGED.get()
}

/// What judges is not judged.
fn unjudged<T>(work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    struct Back(Option<pg_sys::Oid>);
    impl Drop for Back {
        fn drop(&mut self) {
            JUDGED.set(self.0);
        }
    }
    let _back = Back(JUDGED.replace(None));
    work()
}

/// Judges a query that is about to be planned.
///
/// # Errors
/// 42501 with an object and the role that it belongs to.
///
/// # Safety
/// A rewritten query whose relations are locked.
pub unsafe fn check_query(
    role: pg_sys::Oid,
    query: *mut pg_sys::Query,
    relations: &[pg_sys::Oid],
) -> Result<(), UserError> {
    // SAFETY: by the caller.
    check_seeds(role, unsafe { objects_of(query, relations) })
}

/// Each set of objects once, until a catalog changes.
fn check_seeds(role: pg_sys::Oid, seeds: Vec<Object>) -> Result<(), UserError> {
    forget_what_changed();
    if IN_ORDER.with_borrow(|known| known.contains(&seeds)) {
        return Ok(());
    }
    unjudged(|| check_objects(role, &seeds))?;
    // What was looked at by a catalog that has changed meanwhile is forgotten at the next look.
    IN_ORDER.with_borrow_mut(|known| keep(known, seeds));
    Ok(())
}

/// The relations that a query names, and those that its views lead to.
///
/// # Safety
/// A rewritten query whose relations are locked.
pub unsafe fn relations_of(query: *mut pg_sys::Query) -> Vec<pg_sys::Oid> {
    let mut relations = std::ptr::null_mut();
    let mut others = std::ptr::null_mut();
    let mut row_security = false;
    // SAFETY: as the plan cache asks of a query what it depends on; a list of OIDs comes back, or NULL for an empty one.
    unsafe {
        pg_sys::extract_query_dependencies(
            query.cast(),
            &raw mut relations,
            &raw mut others,
            &raw mut row_security,
        );
        let number = if relations.is_null() { 0 } else { (*relations).length as usize };
        (0..number).map(|place| (*(*relations).elements.add(place)).oid_value).collect()
    }
}

/// What a query itself uses: its relations, which are given, and its functions, operators and types.
///
/// # Safety
/// A live query.
pub unsafe fn objects_of(query: *mut pg_sys::Query, relations: &[pg_sys::Oid]) -> Vec<Object> {
    let mut objects: Vec<Object> = relations.iter().map(|&relation| Object::relation(relation)).collect();
    // SAFETY: by the caller; the walk only reads, and the objects outlive it.
    unsafe { visit(query.cast(), (&raw mut objects).cast()) };
    objects.sort_unstable_by_key(|object| (object.class.to_u32(), object.id.to_u32()));
    objects.dedup();
    objects
}

/// Collects the functions, operators and types of a tree, at any depth.
#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called with live nodes and with the list that `check_query` has given, borrowed for one node at a time. A node's
    // tag says what it is; exprType takes each of those that it is called with.
    unsafe {
        if node.is_null() {
            return false;
        }
        let seeds = context.cast::<Vec<Object>>();
        pg_sys::check_functions_in_node(node, Some(add_function), context);
        match (*node).type_ {
            T_Query => return pg_sys::query_tree_walker(node.cast(), Some(visit), context, 0),
            T_Var | T_Const | T_Param | T_CoerceToDomain | T_CoerceViaIO | T_RelabelType | T_RowExpr
            | T_ArrayCoerceExpr | T_ConvertRowtypeExpr | T_MinMaxExpr | T_FuncExpr | T_ArrayExpr => {
                (*seeds).push(Object::of_type(pg_sys::exprType(node)));
            }
            T_OpExpr | T_DistinctExpr | T_NullIfExpr => {
                (*seeds).push(Object::operator((*node.cast::<pg_sys::OpExpr>()).opno));
            }
            T_ScalarArrayOpExpr => {
                (*seeds).push(Object::operator((*node.cast::<pg_sys::ScalarArrayOpExpr>()).opno));
            }
            T_SortGroupClause => {
                let clause: *const pg_sys::SortGroupClause = node.cast();
                (*seeds).push(Object::operator((*clause).eqop));
                (*seeds).push(Object::operator((*clause).sortop));
            }
            _ => {}
        }
        pg_sys::expression_tree_walker(node, Some(visit), context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn add_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    // SAFETY: the list that `visit` passes on, which nobody else borrows now.
    unsafe { (*context.cast::<Vec<Object>>()).push(Object::function(function)) };
    false
}

/// Has the server say when catalogs change by which something else would be found.
pub(in crate::guard) fn listen() {
    use pg_sys::SysCacheIdentifier::*;
    if LISTENS.replace(true) {
        return;
    }
    let nothing = pg_sys::Datum::from(0);
    // SAFETY: the callbacks are functions of this library, which stays loaded; registered once in the process.
    unsafe {
        for cache in [PROCOID, TYPEOID, OPEROID, NAMESPACEOID, AUTHOID, AUTHMEMROLEMEM, CONSTROID] {
            pg_sys::CacheRegisterSyscacheCallback(cache as c_int, Some(catalog_changed), nothing);
        }
        pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), nothing);
    }
}

unsafe extern "C-unwind" fn catalog_changed(_: pg_sys::Datum, _: c_int, _: u32) {
    CHANGED.set(true);
}

unsafe extern "C-unwind" fn relation_changed(_: pg_sys::Datum, _: pg_sys::Oid) {
    CHANGED.set(true);
}
