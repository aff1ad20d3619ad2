//! Rows of a SELECT, as the plan of an INSERT would write them.

use std::ffi::c_char;

use bench_base::error::SqlError;
use pgrx::pg_sys;

use super::sink::{BulkRows, Sink};
use crate::driver::session::analysis::refuse_what_needs_a_client;
use crate::driver::session::client_session::{Session, drive};
use crate::driver::session::raw;
use crate::server::query::{list_first, list_length};
use crate::shm::CommandCounters;

impl Session {
    /// Puts the rows of the source's SELECT into the table, in a transaction of its own. False, with nothing done, when only the INSERT itself can do it.
    pub fn insert_selected(&mut self, rows: &BulkRows, counters: &CommandCounters) -> Result<bool, SqlError> {
        let mut fits = false;
        // SAFETY: only plain data lives in the trap; what it borrows outlives it.
        unsafe {
            let (source, fits) = (rows.source.as_ptr(), &raw mut fits);
            self.command(source, counters, || *fits = select_into(rows))?;
        }
        Ok(fits)
    }
}

/// Receives what a plan returns.
#[repr(C)]
struct BulkReceiver {
    base: pg_sys::DestReceiver,
    sink: *mut Sink,
}

unsafe extern "C-unwind" fn receive(
    row: *mut pg_sys::TupleTableSlot,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: called by the executor, inside the trap of `insert_selected`, with the receiver it was given.
    unsafe { (*(*receiver.cast::<BulkReceiver>()).sink).take(row) };
    true
}

unsafe extern "C-unwind" fn start_up(_: *mut pg_sys::DestReceiver, _: i32, _: pg_sys::TupleDesc) {}
unsafe extern "C-unwind" fn do_nothing(_: *mut pg_sys::DestReceiver) {}

/// Runs what stands below the INSERT in its plan: rows in the table's own columns, with the conversions and the
/// defaults that the INSERT has put there.
///
/// # Safety
/// Inside a trap and a transaction.
unsafe fn select_into(rows: &BulkRows) -> bool {
    // SAFETY: by the caller. The table is locked before the statement is looked at. The plan is this function's
    // own, so it can be changed; as the server's executor sees it, it is a SELECT, whose range table
    // still asks for the right to insert.
    unsafe {
        let Some(mut sink) = Sink::open(rows) else { return false };
        raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
        let source = rows.source.as_ptr();
        let params = raw::makeParamList(2);
        for (index, id) in [rows.first_id, rows.last_id].into_iter().enumerate() {
            let param = (*params).params.as_mut_ptr().add(index);
            (*param).ptype = pg_sys::INT8OID;
            (*param).value = pg_sys::Datum::from(id);
            (*param).isnull = false;
            (*param).pflags = pg_sys::PARAM_FLAG_CONST as u16;
        }
        let planned = plan_below(source, params, &sink);
        if !planned.is_null() {
            run_into(planned, source, params, &mut sink);
        }
        sink.close();
        raw::PopActiveSnapshot();
        !planned.is_null()
    }
}

/// # Safety
/// Inside a trap, with an active snapshot; the plan returns rows of the sink's columns.
unsafe fn run_into(
    planned: *mut pg_sys::PlannedStmt,
    source: *const c_char,
    params: pg_sys::ParamListInfo,
    sink: &mut Sink,
) {
    // SAFETY: by the caller; as SPI drives the executor (_SPI_pquery in executor/spi.c).
    unsafe {
        let mut receiver = BulkReceiver {
            base: pg_sys::DestReceiver {
                receiveSlot: Some(receive),
                rStartup: Some(start_up),
                rShutdown: Some(do_nothing),
                rDestroy: Some(do_nothing),
                mydest: pg_sys::CommandDest::DestNone,
            },
            sink,
        };
        let desc = raw::CreateQueryDesc(
            planned,
            source,
            raw::GetActiveSnapshot(),
            std::ptr::null_mut(),
            &raw mut receiver.base,
            params,
            std::ptr::null_mut(),
            0,
        );
        drive(desc);
        raw::ExecutorEnd(desc);
        raw::FreeQueryDesc(desc);
    }
}

/// Plans an INSERT and takes the INSERT away from above its source; NULL where it is not that simple: where it does
/// not lead to the sink's table and there alone, row for row.
///
/// # Safety
/// Inside a trap, with an active snapshot; `source` stays valid.
unsafe fn plan_below(
    source: *const c_char,
    params: pg_sys::ParamListInfo,
    sink: &Sink,
) -> *mut pg_sys::PlannedStmt {
    const NONE: *mut pg_sys::PlannedStmt = std::ptr::null_mut();
    // SAFETY: by the caller.
    unsafe {
        let statements = raw::pg_parse_query(source);
        if list_length(statements) != 1 {
            return NONE;
        }
        let statement: *mut pg_sys::RawStmt = list_first(statements).cast();
        refuse_what_needs_a_client((*statement).stmt);
        let types = [pg_sys::INT8OID; 2];
        let none = std::ptr::null_mut();
        let queries = raw::pg_analyze_and_rewrite_fixedparams(statement, source, types.as_ptr(), 2, none);
        // Rules have made several statements of it, or none.
        if list_length(queries) != 1 {
            return NONE;
        }
        let planned: *mut pg_sys::PlannedStmt =
            list_first(raw::pg_plan_queries(queries, source, 0, params)).cast();
        let top = (*planned).planTree;
        if (*planned).commandType != pg_sys::CmdType::CMD_INSERT
            || (*planned).hasModifyingCTE
            || (*planned).hasReturning
            || (*top).type_ != pg_sys::NodeTag::T_ModifyTable
            || (*top.cast::<pg_sys::ModifyTable>()).onConflictAction
                != pg_sys::OnConflictAction::ONCONFLICT_NONE
            || (*top).lefttree.is_null()
            || !leads_to(planned, sink)
            || !sink.takes_columns((*(*top).lefttree).targetlist)
        {
            return NONE;
        }
        (*planned).commandType = pg_sys::CmdType::CMD_SELECT;
        (*planned).planTree = (*top).lefttree;
        *changed_relations(planned) = std::ptr::null_mut();
        planned
    }
}

/// Whether a plan changes the sink's table only, and does not read it: it would see rows that an INSERT's does not.
///
/// # Safety
/// A plan that changes tables.
unsafe fn leads_to(planned: *mut pg_sys::PlannedStmt, sink: &Sink) -> bool {
    // SAFETY: by the caller; what it changes are places in the range table, counted from 1.
    unsafe {
        let (range_table, results) = ((*planned).rtable, *changed_relations(planned));
        let relation = |index: usize| {
            let entry: *mut pg_sys::RangeTblEntry = (*(*range_table).elements.add(index)).ptr_value.cast();
            (*entry).relid
        };
        #[cfg(not(since_19))]
        let only = (list_length(results) == 1).then(|| (*(*results).elements).int_value);
        #[cfg(since_19)]
        let only = (pg_sys::bms_num_members(results) == 1).then(|| pg_sys::bms_singleton_member(results));
        only.is_some_and(|only| relation(only as usize - 1) == sink.oid())
            && (0..list_length(range_table) as usize).filter(|&index| relation(index) == sink.oid()).count()
                == 1
    }
}

/// The places in the range table of the relations that a plan changes.
///
/// # Safety
/// A live plan, while what is returned is used.
#[cfg(not(since_19))]
unsafe fn changed_relations(planned: *mut pg_sys::PlannedStmt) -> *mut *mut pg_sys::List {
    // SAFETY: by the caller.
    unsafe { &raw mut (*planned).resultRelations }
}
#[cfg(since_19)]
unsafe fn changed_relations(planned: *mut pg_sys::PlannedStmt) -> *mut *mut pg_sys::Bitmapset {
    // SAFETY: by the caller.
    unsafe { &raw mut (*planned).resultRelationRelids }
}
