//! Records the plans of a client's statements: how often each kind is executed, and their EXPLAIN output.
//!
//! A generic plan is examined once. Custom plans are new at each execution and compared by their form, a hash of their
//! nodes. Only the first client that executes a form describes it.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::Relaxed;

use pgrx::{pg_guard, pg_sys};

use super::raw::{self, in_subtransaction};
use crate::server::process::now_ns;
use crate::server::query::{list_first, list_length};
use crate::shm::{CommandCounters, CommandPlans, PlanForm};

/// The statistics of a command.
#[derive(Clone, Copy)]
pub struct StatementStats<'a> {
    pub counters: &'a CommandCounters,
    /// Shared by all clients; `None` if plans are not recorded.
    pub plans: Option<&'a CommandPlans>,
}

/// An execution of a plan.
#[derive(Clone, Copy)]
pub(super) struct PlanExecution {
    /// NULL for a statement that is planned each time.
    pub plan_source: *mut pg_sys::CachedPlanSource,
    pub plan: *mut pg_sys::CachedPlan,
    pub planned: *mut pg_sys::PlannedStmt,
    pub params: pg_sys::ParamListInfo,
    pub source: *const c_char,
}

/// Counts an execution, and describes its plan if no client has done so.
///
/// # Safety
/// Inside a trap and a transaction, with an active snapshot; the pointers are live.
#[inline]
pub(super) unsafe fn record_execution(statistics: StatementStats, execution: PlanExecution) {
    let StatementStats { counters, plans } = statistics;
    // SAFETY: by the caller.
    unsafe {
        let PlanExecution { plan_source, plan, planned, .. } = execution;
        let is_generic = !plan_source.is_null() && std::ptr::eq(plan, (*plan_source).gplan);
        if is_generic {
            counters.generic_plans.add(1);
            // An address may be reused, but not with the same generation.
            let seen = plan.addr() as u64 ^ (((*plan).generation as u64) << 48);
            if counters.seen_plan.load(Relaxed) == seen {
                return;
            }
            counters.seen_plan.store(seen, Relaxed);
        } else {
            counters.custom_plans.add(1);
            counters.seen_plan.store(0, Relaxed);
        }
        // The lowest bit is the kind: EXPLAIN shows generic and custom plans of one form differently.
        let form = plan_form(planned) & !1 | u64::from(is_generic);
        let last = counters.plan_form.load(Relaxed);
        if form == last {
            return;
        }
        counters.plan_form.store(form, Relaxed);
        // The switch from custom to generic plans is no change of the plan by itself.
        let switches_to_generic = last & 1 == 0 && is_generic;
        counters.plan_changes.add(u64::from(last != 0 && last & !1 != form & !1 && !switches_to_generic));
        if let Some(place) = plans.and_then(|plans| plans.claim(form)) {
            describe(place, execution);
        }
    }
}

/// Counts the planned and launched parallel workers of an execution.
///
/// # Safety
/// The state of a plan that has run and has not been ended.
#[cold]
pub(super) unsafe fn count_workers(counters: &CommandCounters, state: *mut pg_sys::PlanState) {
    // SAFETY: by the caller; the walker calls back with states of the same plan.
    unsafe {
        let context: *const CommandCounters = counters;
        count_workers_below(state, context.cast_mut().cast());
    }
}

unsafe extern "C-unwind" fn count_workers_below(
    state: *mut pg_sys::PlanState,
    context: *mut std::ffi::c_void,
) -> bool {
    if state.is_null() {
        return false;
    }
    // SAFETY: by `count_workers`; the plan's tag says what the state's node is.
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
        raw::walk_plan_states(state, count_workers_below, context)
    }
}

/// Stores a plan's EXPLAIN output. As in EXPLAIN, this calls functions in conditions that prune partitions; their errors do not
/// fail the statement, which has been executed already.
///
/// # Safety
/// As for [`record_execution`].
#[cold]
unsafe fn describe(place: &PlanForm, execution: PlanExecution) {
    place.first_ns.store(now_ns(), Relaxed);
    // SAFETY: by the caller. The Rust text is dropped before any call that can fail.
    unsafe {
        in_subtransaction(
            || explain(place, execution),
            |message| place.text.set(&format!("(no plan to show: {})", message.to_string_lossy())),
        );
    }
}

/// # Safety
/// As for [`record_execution`], in a subtransaction.
unsafe fn explain(place: &PlanForm, execution: PlanExecution) {
    // SAFETY: by the caller; as in ExplainOnePlan (commands/explain.c), but without the executor's hooks, which would take it
    // for another execution.
    unsafe {
        let desc = raw::CreateQueryDesc(
            execution.planned,
            execution.source,
            raw::GetActiveSnapshot(),
            std::ptr::null_mut(),
            raw::CreateDestReceiver(pg_sys::CommandDest::DestNone),
            execution.params,
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
        // The server's encoding may not be UTF-8. A Rust buffer is allocated only now that no ERROR can leak it.
        place.text.set(&CStr::from_ptr((*(*explain).str_).data).to_string_lossy());
    }
}

/// Returns a hash of a plan's nodes, its tables in their order, and its indexes. Tables with children are left out: a
/// query by key uses another partition each time.
///
/// # Safety
/// A live plan.
unsafe fn plan_form(planned: *mut pg_sys::PlannedStmt) -> u64 {
    // SAFETY: by the caller.
    unsafe {
        let mut form =
            Form { hash: 0xCBF2_9CE4_8422_2325, has_children: !(*planned).appendRelations.is_null() };
        form.add(u64::from((*planned).commandType));
        form.add_plan((*planned).planTree);
        form.add_list((*planned).subplans);
        // 0 means no form, and the lowest bit is used for the kind.
        form.hash.max(2)
    }
}

/// The state of a hash: 64-bit FNV-1a over words (http://www.isthe.com/chongo/tech/comp/fnv/).
struct Form {
    hash: u64,
    /// The plan has partitions or other child tables.
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
        // SAFETY: by the caller; a tag says what a node is.
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
            // SAFETY: by the caller; every scan node starts with struct Scan.
            self.add(u64::from(unsafe { (*scan.cast::<pg_sys::Scan>()).scanrelid }));
            self.add(u64::from(index.to_u32()));
        }
    }
}

/// Returns the only statement of a plan; `None` if there are several or it is a utility.
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

// Plans of statements in functions, triggers and foreign keys. The server keeps them for the whole session, whatever settings
// they were made under, so the arms of a duel would share them.

thread_local! {
    /// A statement has executed another one since the plans were dropped.
    static WAS_NESTED: Cell<bool> = const { Cell::new(false) };
    static IS_WATCHING: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS_START: Cell<pg_sys::ExecutorStart_hook_type> = const { Cell::new(None) };
}

/// Starts to watch for statements that other statements execute.
pub fn watch_nested() {
    if IS_WATCHING.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    unsafe {
        PREVIOUS_START.set(pg_sys::ExecutorStart_hook);
        pg_sys::ExecutorStart_hook = Some(notice_nested);
    }
}

/// Executor hook. A server's ERROR jumps over its frame, so it holds nothing that must be dropped.
unsafe extern "C-unwind" fn notice_nested(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: by the server, with a live description. The session's top-level command has the text in debug_query_string.
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

/// Drops the session's plans, except those of the given statements, which each arm has separately. Does so only if statements
/// have executed others since the last call; returns whether they have.
pub fn drop_shared(own: impl Iterator<Item = *mut pg_sys::CachedPlanSource>) -> bool {
    if !WAS_NESTED.replace(false) {
        return false;
    }
    // SAFETY: plans last as long as their statements. Validity is restored right after ResetPlanCache, which raises no error.
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

// Indexes that are hidden from this process's planner. They are still maintained, and their constraints enforced. Hiding takes
// no lock and does not affect other sessions.

thread_local! {
    static HIDDEN: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    static IS_HIDING: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS_HOOK: Cell<Hook> = const { Cell::new(None) };
}

/// The planner's hook for collected relation data; 19 has replaced it.
#[cfg(not(since_19))]
type Hook = pg_sys::get_relation_info_hook_type;
#[cfg(since_19)]
type Hook = pg_sys::build_simple_rel_hook_type;

/// Hides these indexes, and no others, from the planner. Existing plans stay as they are.
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
        pg_sys::get_relation_info_hook = Some(hide_from_planner);
    }
    // SAFETY: as above.
    #[cfg(since_19)]
    unsafe {
        PREVIOUS_HOOK.set(pg_sys::build_simple_rel_hook);
        pg_sys::build_simple_rel_hook = Some(hide_from_planner);
    }
}

/// Planner hook, called for each relation once its data is collected.
#[cfg(not(since_19))]
#[pg_guard]
unsafe extern "C-unwind" fn hide_from_planner(
    root: *mut pg_sys::PlannerInfo,
    relation_oid: pg_sys::Oid,
    is_parent: bool,
    relation: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: by the planner, with live nodes.
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK.get() {
            previous(root, relation_oid, is_parent, relation);
        }
        remove_hidden(relation);
    }
}

/// Like the hook before 19.
#[cfg(since_19)]
#[pg_guard]
unsafe extern "C-unwind" fn hide_from_planner(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: by the planner, with live nodes.
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK.get() {
            previous(root, relation, entry);
        }
        remove_hidden(relation);
    }
}

/// Removes hidden indexes from a relation's list.
///
/// # Safety
/// A live node whose list holds the planner's IndexOptInfo nodes.
unsafe fn remove_hidden(relation: *mut pg_sys::RelOptInfo) {
    // SAFETY: by the caller. Elements move within the list, which only gets shorter; an empty list is NULL.
    unsafe {
        let list = (*relation).indexlist;
        if list.is_null() {
            return;
        }
        let kept = HIDDEN.with_borrow(|hidden| {
            let mut kept = 0;
            for position in 0..(*list).length {
                let cell = *(*list).elements.add(position as usize);
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
            (*relation).indexlist = std::ptr::null_mut();
        }
    }
}
