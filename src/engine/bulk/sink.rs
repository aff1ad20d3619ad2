//! A table that takes rows by the batch, as COPY FROM fills one (commands/copyfrom.c).

use std::cell::Cell;
use std::ffi::c_char;

use pgrx::pg_sys;

use super::super::raw;
#[cfg(feature = "pg15")]
use super::extension::{bytes_of_page, bytes_on_page, extend};
use crate::shm::Counter;

/// Rows of a batch at most, and bytes after which one is full: MAX_BUFFERED_TUPLES and
/// MAX_BUFFERED_BYTES of copyfrom.c.
pub const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 65_535;

/// An open table and the rows that it has not taken yet. Plain data, to be held inside a trap: the
/// transaction's end releases what it holds, if [`Sink::close`] has not.
pub struct Sink {
    pub relation: pg_sys::Relation,
    slots: *mut *mut pg_sys::TupleTableSlot,
    count: usize,
    bytes: usize,
    state: pg_sys::BulkInsertState,
    result: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    has_indexes: bool,
    /// Whether rows have to be looked at before the table may take them.
    has_constraints: bool,
    is_heap: bool,
    /// Bytes of the table's pages that the rows to come will take.
    #[cfg(feature = "pg15")]
    needed: usize,
    /// What a batch allocates.
    scratch: pg_sys::MemoryContext,
    /// Rows that the table has taken.
    done: *const Counter,
}

impl Sink {
    /// Opens a table by its name on the search_path. `None` for one that takes rows only by INSERT:
    /// partitioned, with triggers, generated columns or row security, or of an access method
    /// that knows no batches.
    ///
    /// # Safety
    /// Inside a trap and a transaction, in a memory context that lasts until [`Sink::close`]; `table`
    /// is NUL-terminated, `done` outlives the sink.
    pub unsafe fn open(table: *const c_char, done: *const Counter) -> Option<Self> {
        // SAFETY: by the caller; a relation that is open has all that its entry in the relation
        // cache points to.
        unsafe {
            let name = raw::makeRangeVar(std::ptr::null_mut(), table.cast_mut(), -1);
            let relation = raw::table_openrv(name, pg_sys::RowExclusiveLock as i32);
            if !takes_batches(relation) {
                raw::table_close(relation, pg_sys::NoLock as i32);
                return None;
            }
            let desc = (*relation).rd_att;
            let slots: *mut *mut pg_sys::TupleTableSlot =
                raw::palloc(BATCH_ROWS * size_of::<*mut pg_sys::TupleTableSlot>()).cast();
            // A copy is not counted by the resource owner, for each of the slots.
            let copy = raw::CreateTupleDescCopyConstr(desc);
            let ops = raw::table_slot_callbacks(relation);
            for index in 0..BATCH_ROWS {
                *slots.add(index) = raw::MakeSingleTupleTableSlot(copy, ops);
            }
            let result: *mut pg_sys::ResultRelInfo = raw::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast();
            // Outside of any range table, as apply workers have it.
            raw::InitResultRelInfo(result, relation, 0, std::ptr::null_mut(), 0);
            raw::ExecOpenIndices(result, false);
            let constraints = (*desc).constr;
            Some(Self {
                relation,
                slots,
                count: 0,
                bytes: 0,
                state: ring(),
                result,
                estate: raw::CreateExecutorState(),
                has_indexes: (*result).ri_NumIndices > 0,
                has_constraints: !constraints.is_null()
                    && ((*constraints).has_not_null || (*constraints).num_check > 0),
                #[cfg(feature = "pg15")]
                needed: 0,
                is_heap: (*(*relation).rd_rel).relam == pg_sys::HEAP_TABLE_AM_OID,
                scratch: raw::AllocSetContextCreateInternal(
                    pg_sys::CurrentMemoryContext,
                    c"pgbench_ext batch".as_ptr(),
                    pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                ),
                done,
            })
        }
    }

    /// Whether the table is a heap whose columns have these types, and has no say in what they hold
    /// but that they are not NULL.
    ///
    /// # Safety
    /// Inside a trap, with the table still open.
    pub unsafe fn is_heap_of(&self, types: &[pg_sys::Oid]) -> bool {
        // SAFETY: by the caller.
        unsafe {
            let desc = (*self.relation).rd_att;
            let constraints = (*desc).constr;
            let attribute = |index: usize| raw::get_atttype((*self.relation).rd_id, index as i16 + 1);
            self.is_heap
                && (constraints.is_null() || (*constraints).num_check == 0)
                && (*desc).natts as usize == types.len()
                && types.iter().enumerate().all(|(index, of_type)| attribute(index) == *of_type)
        }
    }

    /// The slot for the batch's row with that number.
    ///
    /// # Safety
    /// `index` is below [`BATCH_ROWS`].
    pub unsafe fn slot(&self, index: usize) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: by the caller.
        unsafe { *self.slots.add(index) }
    }

    /// Columns of the table, dropped ones among them.
    pub fn columns(&self) -> i32 {
        // SAFETY: the table is open.
        unsafe { (*(*self.relation).rd_att).natts }
    }

    /// Takes a row of the table's columns, in their order and of their types.
    ///
    /// # Safety
    /// Inside a trap; `row` is a slot of such a row.
    pub unsafe fn take(&mut self, row: *mut pg_sys::TupleTableSlot) {
        // SAFETY: by the caller.
        unsafe {
            if self.has_constraints {
                self.forget_expressions();
                raw::ExecConstraints(self.result, row, self.estate);
            }
            let slot = self.slot(self.count);
            if let Some(copy) = (*(*slot).tts_ops).copyslot {
                copy(slot, row);
            }
            self.count += 1;
            if self.is_heap {
                self.bytes += self.tuple_length(self.count - 1);
            }
            if self.count == BATCH_ROWS || self.bytes >= BATCH_BYTES {
                self.flush(self.count);
            }
        }
    }

    /// Puts the rows of the first `count` slots into the table and its indexes.
    ///
    /// They are frozen from the start and their pages all-visible, as after COPY with FREEZE. What that
    /// takes for granted there, that nobody else can see the table before the rows are committed, is
    /// so here by agreement: a table being loaded is nobody's to read, and one whose load failed is dropped.
    ///
    /// # Safety
    /// Inside a trap; those slots hold rows.
    pub unsafe fn flush(&mut self, count: usize) {
        // SAFETY: by the caller. The batch may leak memory, hence a context for it.
        unsafe {
            if count > 0 {
                #[cfg(feature = "pg15")]
                if self.is_heap {
                    self.make_room(count);
                }
                let context = pg_sys::CurrentMemoryContext;
                pg_sys::CurrentMemoryContext = self.scratch;
                if let Some(insert) = (*(*self.relation).rd_tableam).multi_insert {
                    let command = raw::GetCurrentCommandId(true);
                    let frozen = pg_sys::TABLE_INSERT_FROZEN as i32;
                    insert(self.relation, self.slots, count as i32, command, frozen, self.state);
                }
                if self.has_indexes {
                    self.insert_into_indexes(count);
                }
                pg_sys::CurrentMemoryContext = context;
                raw::MemoryContextReset(self.scratch);
                (*self.done).add(count as u64);
            }
            self.count = 0;
            self.bytes = 0;
        }
    }

    /// Makes the pages that the batch will fill.
    ///
    /// # Safety
    /// As `flush`, of a heap.
    #[cfg(feature = "pg15")]
    unsafe fn make_room(&mut self, count: usize) {
        // SAFETY: by the caller.
        unsafe {
            for index in 0..count {
                self.needed += bytes_on_page(self.tuple_length(index));
            }
            // Rounded down: an extra page would stay empty, one too few is made by the insertion.
            let page = bytes_of_page(self.relation);
            extend(self.relation, self.needed / page);
            self.needed %= page;
        }
    }

    /// # Safety
    /// Inside a trap; the slot of a heap holds a row.
    unsafe fn tuple_length(&self, index: usize) -> usize {
        let mut should_free = false;
        // SAFETY: by the caller; such a slot has its tuple at hand.
        unsafe {
            (*raw::ExecFetchSlotHeapTuple(self.slot(index), false, &raw mut should_free)).t_len as usize
        }
    }

    /// # Safety
    /// As `flush`, whose rows are in the table.
    unsafe fn insert_into_indexes(&mut self, count: usize) {
        // SAFETY: by the caller.
        unsafe {
            for index in 0..count {
                self.forget_expressions();
                let slot = self.slot(index);
                // A slot whose tuple was written in place must not know values of the one before.
                (*slot).tts_nvalid = 0;
                (*slot).tts_tableOid = (*self.relation).rd_id;
                raw::ExecInsertIndexTuples(
                    self.result,
                    slot,
                    self.estate,
                    false,
                    false,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    #[cfg(not(feature = "pg15"))]
                    false,
                );
            }
        }
    }

    /// ResetPerTupleExprContext of executor.h.
    ///
    /// # Safety
    /// Inside a trap.
    unsafe fn forget_expressions(&self) {
        // SAFETY: by the caller.
        unsafe {
            let expressions = (*self.estate).es_per_tuple_exprcontext;
            if !expressions.is_null() {
                raw::MemoryContextReset((*expressions).ecxt_per_tuple_memory);
            }
        }
    }

    /// Puts what is left into the table and closes it; its lock stays until the transaction ends.
    ///
    /// # Safety
    /// Inside a trap, before the transaction ends.
    pub unsafe fn close(&mut self) {
        // SAFETY: by the caller; the order is that of the end of CopyFrom.
        unsafe {
            self.flush(self.count);
            raw::ReleaseBulkInsertStatePin(self.state);
            if let Some(finish) = (*(*self.relation).rd_tableam).finish_bulk_insert {
                finish(self.relation, pg_sys::TABLE_INSERT_FROZEN as i32);
            }
            raw::ExecCloseIndices(self.result);
            raw::FreeExecutorState(self.estate);
            raw::table_close(self.relation, pg_sys::NoLock as i32);
        }
    }
}

/// The ring of buffers that the process fills tables through. One for all transactions: a new one
/// would take its buffers out of those that others use, 16 MB of them.
///
/// # Safety
/// Inside a trap.
unsafe fn ring() -> pg_sys::BulkInsertState {
    thread_local! {
        static RING: Cell<pg_sys::BulkInsertState> = const { Cell::new(std::ptr::null_mut()) };
    }
    // SAFETY: by the caller. What is allocated lasts as long as the process; between transactions
    // it holds no buffer (ReleaseBulkInsertStatePin in access/heap/heapam.c), and after an error
    // the process fills no more tables.
    unsafe {
        if RING.get().is_null() {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
            RING.set(raw::GetBulkInsertState());
            pg_sys::CurrentMemoryContext = context;
        }
        RING.get()
    }
}

/// # Safety
/// An open relation.
unsafe fn takes_batches(relation: pg_sys::Relation) -> bool {
    // SAFETY: by the caller.
    unsafe {
        let class = (*relation).rd_rel;
        let triggers = (*relation).trigdesc;
        let constraints = (*(*relation).rd_att).constr;
        let fires = !triggers.is_null()
            && ((*triggers).trig_insert_before_row
                || (*triggers).trig_insert_after_row
                || (*triggers).trig_insert_before_statement
                || (*triggers).trig_insert_after_statement);
        (*class).relkind == pg_sys::RELKIND_RELATION as c_char
            && !fires
            && !(*class).relforcerowsecurity
            && (constraints.is_null() || !(*constraints).has_generated_stored)
            && (*(*relation).rd_tableam).multi_insert.is_some()
    }
}
