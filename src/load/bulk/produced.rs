//! Rows of a load: produced here, or by a query.

use std::ffi::{CStr, c_char};

use bench_base::error::{SqlError, sqlstate};
use bench_model::rows::{Key, KeySelection, RowColumn, RowWriter, Scene};
use bench_script::Prng;
use pgrx::pg_sys;

use super::batch::BATCH_ROWS;
use super::{BulkRows, Sink};
use crate::driver::session::analysis::refuse_client_copy;
use crate::driver::session::client_session::{Session, drive};
use crate::driver::session::raw::{self, trap};
use crate::server::query::{list_first, list_length};
use crate::shm::CommandCounters;

// Rows that are produced here, without the executor, and written into heap tuples in place.

/// A transaction's own values, as the server has them.
struct RawScene {
    now_us: i64,
    now_text: *const c_char,
    local_now_us: i64,
}

impl Session {
    /// Produces rows here and puts them into the table, in a transaction of its own. False, with nothing done,
    /// when the table is not a plain one of these columns.
    pub fn insert_produced(
        &mut self,
        rows: &BulkRows,
        keys: &KeySelection,
        columns: &[RowColumn],
        random: &mut Prng,
        counters: &CommandCounters,
    ) -> Result<bool, SqlError> {
        let types: Vec<pg_sys::Oid> = columns.iter().map(type_of).collect();
        let mut sink: Option<Sink> = None;
        let mut scene = RawScene { now_us: 0, now_text: c"".as_ptr(), local_now_us: 0 };
        // SAFETY: the closure holds plain pointers; what it makes lasts until the next command begins,
        // or the trap has rolled everything back.
        unsafe {
            let source = rows.source.as_ptr();
            let (sink, scene, types) = (&raw mut sink, &mut scene, &types[..]);
            trap(|| {
                self.begin(source);
                raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
                if let Some(mut open) = Sink::open(rows) {
                    if !open.table.is_null() && (*open.table).is_heap_of(types) {
                        *sink = Some(open);
                    } else {
                        open.close();
                    }
                }
                let now = pg_sys::Datum::from(raw::GetCurrentTransactionStartTimestamp());
                let none = pg_sys::InvalidOid;
                scene.now_us = now.value() as i64;
                scene.now_text = raw::DirectFunctionCall1Coll(raw::timestamptz_out, none, now).cast_mut_ptr();
                scene.local_now_us =
                    raw::DirectFunctionCall1Coll(raw::timestamptz_timestamp, none, now).value() as i64;
                if (*sink).is_none() {
                    raw::PopActiveSnapshot();
                    self.end(counters);
                }
            })?;
        }
        let Some(mut sink) = sink else { return Ok(false) };
        // SAFETY: a NUL-terminated text that lives until the next command begins.
        let now_text = unsafe { CStr::from_ptr(scene.now_text) }.to_string_lossy().into_owned();
        let local_offset_us = scene.local_now_us - scene.now_us;
        let writer = RowWriter::new(columns, Scene { now_us: scene.now_us, now_text, local_offset_us });
        let writer = match writer {
            Ok(writer) => writer,
            Err(text) => {
                self.abort()?;
                let message = format!("a text of a fixture is too long: {text}");
                return Err(SqlError::new(sqlstate::INTERNAL_ERROR, message));
            }
        };
        let mut tuples = BatchTuples::new(&sink, &writer, columns)?;
        let mut keys = keys.rows(rows.first_id, rows.last_id);
        loop {
            let mut count = 0;
            for key in keys.by_ref().take(BATCH_ROWS) {
                tuples.write(count, &writer, key, random);
                count += 1;
            }
            if count == 0 {
                break;
            }
            // SAFETY: the first `count` slots hold rows; nothing to drop in the trap.
            unsafe {
                let sink = &mut sink;
                trap(|| sink.flush_batch(sink.table, count))?;
            }
        }
        // SAFETY: as above; the transaction ends after the table is closed.
        unsafe {
            let sink = &mut sink;
            trap(|| {
                sink.close();
                raw::PopActiveSnapshot();
                self.end(counters);
            })?;
        }
        Ok(true)
    }
}

/// The rows of a batch as heap tuples that are written in place, one in each of a sink's slots.
struct BatchTuples {
    tuples: Vec<pg_sys::HeapTuple>,
    /// Where a tuple has its values.
    header: usize,
    max_length: usize,
    needs_clock: bool,
}

/// SizeofHeapTupleHeader: where a tuple with NULLs has the bits that say which they are.
const BITS: usize = 23;

/// Where a tuple has its values: MAXALIGN of what is before them.
fn header_of(columns: &[RowColumn]) -> usize {
    let bits = if columns.iter().any(RowColumn::is_null) { columns.len().div_ceil(8) } else { 0 };
    (BITS + bits).next_multiple_of(8)
}

impl BatchTuples {
    fn new(sink: &Sink, writer: &RowWriter, columns: &[RowColumn]) -> Result<Self, SqlError> {
        let max_length = writer.max_length();
        let header = header_of(columns);
        let mut tuples: Vec<pg_sys::HeapTuple> = vec![std::ptr::null_mut(); BATCH_ROWS];
        // SAFETY: a tuple with a header that says how many columns there are and how long it is. Each slot
        // keeps a copy of its own, in one piece (heap_copytuple), which nobody frees or moves while
        // the slot is not cleared.
        unsafe {
            let (tuples, has_variable_width) = (tuples.as_mut_ptr(), writer.has_variable_width());
            trap(|| {
                let size = size_of::<pg_sys::HeapTupleData>() + header + max_length;
                let template: pg_sys::HeapTuple = raw::palloc0(size).cast();
                (*template).t_len = (header + max_length) as u32;
                (*template).t_data = template.add(1).cast();
                (*(*template).t_data).t_hoff = header as u8;
                (*(*template).t_data).t_infomask2 = columns.len() as u16;
                if has_variable_width {
                    (*(*template).t_data).t_infomask = pg_sys::HEAP_HASVARWIDTH as u16;
                }
                if columns.iter().any(RowColumn::is_null) {
                    (*(*template).t_data).t_infomask |= pg_sys::HEAP_HASNULL as u16;
                    let bits = (*template).t_data.cast::<u8>().add(BITS);
                    for (index, _) in columns.iter().enumerate().filter(|(_, column)| !column.is_null()) {
                        *bits.add(index / 8) |= 1 << (index % 8);
                    }
                }
                for index in 0..BATCH_ROWS {
                    let mut should_free = false;
                    let slot = (*sink.table).slot(index);
                    raw::ExecForceStoreHeapTuple(template, slot, false);
                    *tuples.add(index) = raw::ExecFetchSlotHeapTuple(slot, false, &raw mut should_free);
                }
            })?;
        }
        let needs_clock = writer.needs_clock();
        let mut tuples = Self { tuples, header, max_length, needs_clock };
        (0..BATCH_ROWS).for_each(|index| writer.prepare(tuples.values(index)));
        Ok(tuples)
    }

    /// Where a tuple's values are.
    fn values(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: the tuple has this much room after its header, which ends at an alignment of eight; the slice is
        // gone before another one of the same tuple is made.
        unsafe {
            let start = (*self.tuples[index]).t_data.cast::<u8>().add(self.header);
            std::slice::from_raw_parts_mut(start, self.max_length)
        }
    }

    fn write(&mut self, index: usize, writer: &RowWriter, key: Key, random: &mut Prng) {
        let clock_us = if self.needs_clock { clock_us() } else { 0 };
        let length = writer.write(key, clock_us, random, self.values(index));
        // SAFETY: a live tuple.
        unsafe { (*self.tuples[index]).t_len = (self.header + length) as u32 };
    }
}

/// The wall clock in microseconds since 2000, as GetCurrentTimestamp has it.
fn clock_us() -> i64 {
    const EPOCH_SECS: i64 = 946_684_800;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer; CLOCK_REALTIME is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    (time.tv_sec - EPOCH_SECS) * 1_000_000 + time.tv_nsec / 1000
}

fn type_of(column: &RowColumn) -> pg_sys::Oid {
    match column {
        RowColumn::Id4
        | RowColumn::Group4(_)
        | RowColumn::Constant4(_)
        | RowColumn::Uniform4(..)
        | RowColumn::Null4 => pg_sys::INT4OID,
        RowColumn::Id8 | RowColumn::Constant8(_) => pg_sys::INT8OID,
        RowColumn::Text(_) | RowColumn::IdText(_) | RowColumn::RandomHex | RowColumn::NowText => {
            pg_sys::TEXTOID
        }
        RowColumn::Blanks(_) => pg_sys::BPCHAROID,
        RowColumn::Clock | RowColumn::Now | RowColumn::NullTime => pg_sys::TIMESTAMPTZOID,
        RowColumn::LocalClock | RowColumn::LocalClockSeconds => pg_sys::TIMESTAMPOID,
        RowColumn::ConstantDecimal(..) => pg_sys::NUMERICOID,
        RowColumn::Derived(derived) if derived.is_integer() => pg_sys::INT4OID,
        RowColumn::Derived(derived) if derived.is_decimal() => pg_sys::NUMERICOID,
        RowColumn::Derived(_) => pg_sys::TEXTOID,
    }
}

// Rows of a SELECT, as the plan of an INSERT would write them.

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
        refuse_client_copy((*statement).stmt);
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
