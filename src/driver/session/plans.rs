//! The plans of a client's statements: how often each kind was executed, and what they look like.
//!
//! A generic plan is looked at once. One that was made for the values at hand is another one each time, so its
//! form is compared: a hash of its nodes. Only the first client that meets a form describes it.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::Relaxed;

use pgrx::{pg_guard, pg_sys};

use super::raw::{self, in_subtransaction};
use crate::server::process::now_ns;
use crate::server::query::{list_first, list_length};
use crate::shm::{CommandCounters, CommandPlans, PlanForm};

/// Where it is written what becomes of a command.
#[derive(Clone, Copy)]
pub struct StatementStats<'a> {
    pub counters: &'a CommandCounters,
    /// Shared by all clients; `None` where nobody asks for plans.
    pub plans: Option<&'a CommandPlans>,
}

/// A plan at its execution.
#[derive(Clone, Copy)]
pub(super) struct PlanExecution {
    /// NULL for a statement that is planned each time.
    pub plan_source: *mut pg_sys::CachedPlanSource,
    pub plan: *mut pg_sys::CachedPlan,
    pub planned: *mut pg_sys::PlannedStmt,
    pub params: pg_sys::ParamListInfo,
    pub source: *const c_char,
}

/// Counts an execution, and describes its plan if nobody has met it before.
///
/// # Safety
/// Inside a trap and a transaction, with an active snapshot; the pointers are live.
#[inline]
pub(super) unsafe fn note(statistics: StatementStats, of: PlanExecution) {
    let StatementStats { counters, plans } = statistics;
    // SAFETY: by the caller.
    unsafe {
        let is_generic = !of.plan_source.is_null() && std::ptr::eq(of.plan, (*of.plan_source).gplan);
        if is_generic {
            counters.generic_plans.add(1);
            // An address may be used again, but not with the same generation.
            let seen = of.plan.addr() as u64 ^ (((*of.plan).generation as u64) << 48);
            if counters.seen_plan.load(Relaxed) == seen {
                return;
            }
            counters.seen_plan.store(seen, Relaxed);
        } else {
            counters.custom_plans.add(1);
            counters.seen_plan.store(0, Relaxed);
        }
        // The lowest bit is the kind, which makes another text of the same form.
        let form = form_of(of.planned) & !1 | u64::from(is_generic);
        let last = counters.plan_form.load(Relaxed);
        if form == last {
            return;
        }
        counters.plan_form.store(form, Relaxed);
        // The step from custom to generic is none by itself, what comes after it is.
        let is_that_step = last & 1 == 0 && is_generic;
        counters.plan_changes.add(u64::from(last != 0 && last & !1 != form & !1 && !is_that_step));
        if let Some(place) = plans.and_then(|plans| plans.claim(form)) {
            describe(place, of);
        }
    }
}

/// Counts parallel workers that a plan that has run asked for, and those that there were.
///
/// # Safety
/// The state of a plan that has run and has not been ended.
#[cold]
pub(super) unsafe fn note_workers(counters: &CommandCounters, state: *mut pg_sys::PlanState) {
    // SAFETY: by the caller; the walker calls back with states of the same plan.
    unsafe {
        let context: *const CommandCounters = counters;
        count_workers(state, context.cast_mut().cast());
    }
}

unsafe extern "C-unwind" fn count_workers(
    state: *mut pg_sys::PlanState,
    context: *mut std::ffi::c_void,
) -> bool {
    if state.is_null() {
        return false;
    }
    // SAFETY: by `note_workers`; the plan's tag says what the state's node is.
    unsafe {
        let counters: &CommandCounters = &*context.cast();
        let plan = (*state).plan;
        let workers = match (*plan).type_ {
            pg_sys::NodeTag::T_Gather => Some((
                (*plan.cast::<pg_sys::Gather>()).num_workers,
                (*state.cast::<pg_sys::GatherState>()).nworkers_launched,
            )),
            pg_sys::NodeTag::T_GatherMerge => Some((
                (*plan.cast::<pg_sys::GatherMerge>()).num_workers,
                (*state.cast::<pg_sys::GatherMergeState>()).nworkers_launched,
            )),
            _ => None,
        };
        if let Some((planned, launched)) = workers {
            counters.workers_planned.add(planned.max(0).unsigned_abs().into());
            counters.workers_launched.add(launched.max(0).unsigned_abs().into());
        }
        raw::walk_plan_states(state, count_workers, context)
    }
}

/// Writes down how EXPLAIN shows a plan. As there, functions in the conditions of partitions that are left out before
/// execution are called for it. An error of theirs is no error of the statement, which has been executed by now.
///
/// # Safety
/// As for [`note`].
#[cold]
unsafe fn describe(place: &PlanForm, of: PlanExecution) {
    place.first_ns.store(now_ns(), Relaxed);
    // SAFETY: by the caller. What is allocated by the text that is told is dropped before anything can fail.
    unsafe {
        in_subtransaction(
            || explain(place, of),
            |message| place.text.set(&format!("(no plan to show: {})", message.to_string_lossy())),
        );
    }
}

/// # Safety
/// As for [`note`], in a subtransaction.
unsafe fn explain(place: &PlanForm, of: PlanExecution) {
    // SAFETY: by the caller; what ExplainOnePlan does (commands/explain.c). The executor's hooks are passed by:
    // to them it would be another execution.
    unsafe {
        let desc = raw::CreateQueryDesc(
            of.planned,
            of.source,
            raw::GetActiveSnapshot(),
            std::ptr::null_mut(),
            raw::CreateDestReceiver(pg_sys::CommandDest::DestNone),
            of.params,
            std::ptr::null_mut(),
            0,
        );
        raw::standard_ExecutorStart(desc, pg_sys::EXEC_FLAG_EXPLAIN_ONLY as i32);
        let explain = raw::NewExplainState();
        (*explain).costs = false;
        raw::ExplainBeginOutput(explain);
        raw::ExplainPrintPlan(explain, desc);
        raw::ExplainEndOutput(explain);
        raw::standard_ExecutorEnd(desc);
        raw::FreeQueryDesc(desc);
        // The server's encoding may be another than UTF-8. A buffer of Rust's is made only here: an ERROR would leave it
        // behind, but from here on there is none.
        place.text.set(&CStr::from_ptr((*(*explain).str_).data).to_string_lossy());
    }
}

/// What tells a plan from others: its nodes and how they hang together, the order of its tables and the indexes.
/// Partitions and other children stand for each other: a query of one key meets each of them.
///
/// # Safety
/// A live plan.
unsafe fn form_of(planned: *mut pg_sys::PlannedStmt) -> u64 {
    // SAFETY: by the caller.
    unsafe {
        let mut form =
            Form { hash: 0xCBF2_9CE4_8422_2325, has_children: !(*planned).appendRelations.is_null() };
        form.add(u64::from((*planned).commandType));
        form.add_plan((*planned).planTree);
        form.add_list((*planned).subplans);
        // 0 stands for none, and the lowest bit is taken.
        form.hash.max(2)
    }
}

/// A hash under way: 64-bit FNV-1a over words (http://www.isthe.com/chongo/tech/comp/fnv/).
struct Form {
    hash: u64,
    has_children: bool,
}

impl Form {
    fn add(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01B3);
    }

    /// # Safety
    /// A live list of plans, or NULL.
    unsafe fn add_list(&mut self, plans: *mut pg_sys::List) {
        // SAFETY: by the caller.
        unsafe {
            for index in 0..list_length(plans) as usize {
                self.add_plan((*(*plans).elements.add(index)).ptr_value.cast());
            }
        }
    }

    /// # Safety
    /// A live plan, or NULL.
    unsafe fn add_plan(&mut self, plan: *mut pg_sys::Plan) {
        if plan.is_null() {
            return self.add(0);
        }
        // SAFETY: by the caller; a node is what its tag says.
        unsafe {
            self.add((*plan).type_ as u64);
            match (*plan).type_ {
                pg_sys::NodeTag::T_IndexScan => {
                    self.add_scan(plan, (*plan.cast::<pg_sys::IndexScan>()).indexid);
                }
                pg_sys::NodeTag::T_IndexOnlyScan => {
                    self.add_scan(plan, (*plan.cast::<pg_sys::IndexOnlyScan>()).indexid);
                }
                pg_sys::NodeTag::T_BitmapIndexScan => {
                    self.add_scan(plan, (*plan.cast::<pg_sys::BitmapIndexScan>()).indexid);
                }
                pg_sys::NodeTag::T_SeqScan | pg_sys::NodeTag::T_BitmapHeapScan => {
                    self.add_scan(plan, pg_sys::InvalidOid);
                }
                pg_sys::NodeTag::T_Append => self.add_list((*plan.cast::<pg_sys::Append>()).appendplans),
                pg_sys::NodeTag::T_MergeAppend => {
                    self.add_list((*plan.cast::<pg_sys::MergeAppend>()).mergeplans);
                }
                pg_sys::NodeTag::T_BitmapAnd => {
                    self.add_list((*plan.cast::<pg_sys::BitmapAnd>()).bitmapplans);
                }
                pg_sys::NodeTag::T_BitmapOr => self.add_list((*plan.cast::<pg_sys::BitmapOr>()).bitmapplans),
                pg_sys::NodeTag::T_SubqueryScan => {
                    self.add_plan((*plan.cast::<pg_sys::SubqueryScan>()).subplan);
                }
                _ => {}
            }
            self.add_plan((*plan).lefttree);
            self.add_plan((*plan).righttree);
        }
    }

    /// # Safety
    /// A live scan.
    unsafe fn add_scan(&mut self, scan: *mut pg_sys::Plan, index: pg_sys::Oid) {
        if !self.has_children {
            // SAFETY: by the caller; every scan begins with a Scan.
            self.add(u64::from(unsafe { (*scan.cast::<pg_sys::Scan>()).scanrelid }));
            self.add(u64::from(index.to_u32()));
        }
    }
}

/// The only statement of a plan; `None` where there are several or it is a utility.
///
/// # Safety
/// A live list of planned statements.
pub unsafe fn only_plannable(statements: *mut pg_sys::List) -> Option<*mut pg_sys::PlannedStmt> {
    // SAFETY: by the caller.
    unsafe {
        if list_length(statements) != 1 {
            return None;
        }
        let planned: *mut pg_sys::PlannedStmt = list_first(statements).cast();
        raw::is_plannable((*planned).commandType).then_some(planned)
    }
}

// Plans of the statements in functions, triggers and foreign keys. The server keeps them for the session, whatever the parameters
// were when they were made: the arms of a duel would share them.

thread_local! {
    /// Whether a statement has executed another one since the plans were dropped.
    static WAS_NESTED: Cell<bool> = const { Cell::new(false) };
    static IS_WATCHING: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS_START: Cell<pg_sys::ExecutorStart_hook_type> = const { Cell::new(None) };
}

/// From here on, statements that others execute are noticed.
pub fn watch_nested() {
    if IS_WATCHING.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    unsafe {
        PREVIOUS_START.set(pg_sys::ExecutorStart_hook);
        pg_sys::ExecutorStart_hook = Some(notice);
    }
}

/// Called by the executor for each statement; an ERROR of the server's leaves through it, and nothing in it has to be dropped.
unsafe extern "C-unwind" fn notice(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: by the server, with a live description. A session's own command has the text that it shows.
    unsafe {
        if !std::ptr::eq((*query).sourceText, pg_sys::debug_query_string) {
            WAS_NESTED.set(true);
        }
        match PREVIOUS_START.get() {
            Some(previous) => previous(query, flags),
            None => raw::standard_ExecutorStart(query, flags),
        }
    }
}

/// Drops all plans of the session but those of these statements, which each arm has for itself, if statements have executed
/// others since the last time; whether they have.
pub fn drop_shared(own: impl Iterator<Item = *mut pg_sys::CachedPlanSource>) -> bool {
    if !WAS_NESTED.replace(false) {
        return false;
    }
    // SAFETY: the statements' own plans last as long as these do. Nothing but ResetPlanCache, which raises no error, comes
    // between reading whether they are valid and saying so again.
    unsafe {
        let valid: Vec<_> = own.filter(|source| !source.is_null() && (**source).is_valid).collect();
        let is_valid_plan = |plan: &*mut pg_sys::CachedPlan| !plan.is_null() && (**plan).is_valid;
        let plans: Vec<_> = valid.iter().map(|source| (**source).gplan).filter(is_valid_plan).collect();
        pg_sys::ResetPlanCache();
        valid.into_iter().for_each(|source| (*source).is_valid = true);
        plans.into_iter().for_each(|plan| (*plan).is_valid = true);
    }
    true
}

// Indexes that this process's planner does not see. They are there all the same: maintained, and their constraints enforced;
// no lock is taken, and no other session notices.

thread_local! {
    static HIDDEN: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    static IS_HIDING: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS_HOOK: Cell<Hook> = const { Cell::new(None) };
}

/// The planner's hook for what it has found out of a relation; 19 has another one in its place.
#[cfg(not(since_19))]
type Hook = pg_sys::get_relation_info_hook_type;
#[cfg(since_19)]
type Hook = pg_sys::build_simple_rel_hook_type;

/// From here on, the planner sees all indexes but these. Plans that are there already stay as they are.
pub fn hide_indexes(indexes: &[pg_sys::Oid]) {
    HIDDEN.with_borrow_mut(|hidden| {
        hidden.clear();
        hidden.extend_from_slice(indexes);
    });
    if indexes.is_empty() || IS_HIDING.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    #[cfg(not(since_19))]
    unsafe {
        PREVIOUS_HOOK.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(leave_out);
    }
    // SAFETY: as above.
    #[cfg(since_19)]
    unsafe {
        PREVIOUS_HOOK.set(pg_sys::build_simple_rel_hook);
        pg_sys::build_simple_rel_hook = Some(leave_out);
    }
}

/// Called by the planner for each relation, when it has collected what it knows of it.
#[cfg(not(since_19))]
#[pg_guard]
unsafe extern "C-unwind" fn leave_out(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    is_parent: bool,
    found: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: by the planner, with live nodes.
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK.get() {
            previous(root, relation, is_parent, found);
        }
        filter(found);
    }
}

/// As before 19.
#[cfg(since_19)]
#[pg_guard]
unsafe extern "C-unwind" fn leave_out(
    root: *mut pg_sys::PlannerInfo,
    found: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: by the planner, with live nodes.
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK.get() {
            previous(root, found, entry);
        }
        filter(found);
    }
}

/// Takes hidden indexes off the list of a relation's.
///
/// # Safety
/// A live node whose list of indexes is the planner's own, made of nodes IndexOptInfo in its memory.
unsafe fn filter(found: *mut pg_sys::RelOptInfo) {
    // SAFETY: by the caller. Elements are moved within the list, and it only becomes shorter; an empty list is NULL.
    unsafe {
        let list = (*found).indexlist;
        if list.is_null() {
            return;
        }
        let kept = HIDDEN.with_borrow(|hidden| {
            let mut kept = 0;
            for place in 0..(*list).length {
                let cell = *(*list).elements.add(place as usize);
                let index: *const pg_sys::IndexOptInfo = cell.ptr_value.cast();
                if !hidden.contains(&(*index).indexoid) {
                    *(*list).elements.add(kept as usize) = cell;
                    kept += 1;
                }
            }
            kept
        });
        (*list).length = kept;
        if kept == 0 {
            (*found).indexlist = std::ptr::null_mut();
        }
    }
}
