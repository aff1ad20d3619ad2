//! Rows for one table, in slots of its own.

use pgrx::pg_sys;

use super::extension::extend;
use super::free_pages::{TOAST_THRESHOLD, bytes_of_page, bytes_on_page, keep_pages_due, pages_due};
use crate::driver::session::raw;

/// Rows that are held back at most: MAX_BUFFERED_TUPLES of copyfrom.c.
pub const BATCH_ROWS: usize = 1000;

/// Rows that a table has not taken yet.
pub struct Batch {
    pub relation: pg_sys::Relation,
    pub result: *mut pg_sys::ResultRelInfo,
    /// A copy of the relation's, which the resource owner does not count for each of the slots.
    desc: pg_sys::TupleDesc,
    slots: *mut *mut pg_sys::TupleTableSlot,
    /// Slots that have been made.
    made: usize,
    /// Slots that hold rows.
    pub count: usize,
    has_indexes: bool,
    /// Whether rows have to be looked at before the table may take them.
    pub has_constraints: bool,
    is_heap: bool,
    /// Pages that the rows take, less those that have been made for them.
    pages_due: f64,
    pub next: *mut Batch,
    /// Where it and its slots live.
    context: pg_sys::MemoryContext,
}

impl Batch {
    /// A batch for an open table, before the others.
    ///
    /// # Safety
    /// Inside a trap, in a memory context that lasts as long as the batch.
    pub unsafe fn new(result: *mut pg_sys::ResultRelInfo, next: *mut Batch) -> *mut Self {
        // SAFETY: by the caller.
        unsafe {
            let relation = (*result).ri_RelationDesc;
            let desc = (*relation).rd_att;
            let constraints = (*desc).constr;
            let batch: *mut Self = raw::palloc0(size_of::<Self>()).cast();
            batch.write(Self {
                relation,
                result,
                desc: raw::CreateTupleDescCopyConstr(desc),
                slots: raw::palloc0(BATCH_ROWS * size_of::<*mut pg_sys::TupleTableSlot>()).cast(),
                made: 0,
                count: 0,
                has_indexes: (*result).ri_NumIndices > 0,
                has_constraints: !constraints.is_null()
                    && ((*constraints).has_not_null || (*constraints).num_check > 0),
                is_heap: (*(*relation).rd_rel).relam == pg_sys::HEAP_TABLE_AM_OID,
                pages_due: pages_due((*relation).rd_id),
                next,
                context: pg_sys::CurrentMemoryContext,
            });
            batch
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

    /// The slot for the row with that number.
    ///
    /// # Safety
    /// Inside a trap, in the batch's memory context; `index` is at most the number of slots made before, and below
    /// [`BATCH_ROWS`].
    pub unsafe fn slot(&mut self, index: usize) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: by the caller.
        unsafe {
            if index == self.made {
                let ops = raw::table_slot_callbacks(self.relation);
                *self.slots.add(index) = raw::MakeSingleTupleTableSlot(self.desc, ops);
                self.made += 1;
            }
            *self.slots.add(index)
        }
    }

    /// Adds a copy of a row; its length in bytes, as far as it is known.
    ///
    /// # Safety
    /// Inside a trap, with room for it; `row` is a slot with a row of the table's columns.
    pub unsafe fn push(&mut self, row: *mut pg_sys::TupleTableSlot) -> usize {
        // SAFETY: by the caller. Slots live as long as the batch, wherever the row came from.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = self.context;
            let slot = self.slot(self.count);
            pg_sys::CurrentMemoryContext = context;
            if let Some(copy) = (*(*slot).tts_ops).copyslot {
                copy(slot, row);
            }
            self.count += 1;
            if self.is_heap { self.tuple_length(self.count - 1) } else { 0 }
        }
    }

    /// # Safety
    /// Inside a trap; the slot of a heap holds a row.
    unsafe fn tuple_length(&mut self, index: usize) -> usize {
        let mut should_free = false;
        // SAFETY: by the caller; such a slot has its tuple at hand.
        unsafe {
            (*raw::ExecFetchSlotHeapTuple(self.slot(index), false, &raw mut should_free)).t_len as usize
        }
    }

    /// Puts the rows of the first `count` slots into the table and its indexes.
    ///
    /// They are frozen from the start and their pages all-visible, as after COPY with FREEZE. What that
    /// takes for granted there, that nobody else can see the table before the rows are committed, is
    /// so here by agreement: a table being loaded is nobody's to read, and one whose load failed is dropped.
    ///
    /// # Safety
    /// Inside a trap; those slots hold rows, and the ring no page of another table.
    pub unsafe fn insert(
        &mut self,
        count: usize,
        ring: pg_sys::BulkInsertState,
        estate: *mut pg_sys::EState,
    ) {
        // SAFETY: by the caller.
        unsafe {
            if self.is_heap {
                self.make_room(count);
            }
            if let Some(insert) = (*(*self.relation).rd_tableam).multi_insert {
                let command = raw::GetCurrentCommandId(true);
                let frozen = pg_sys::TABLE_INSERT_FROZEN as _;
                insert(self.relation, self.slots, count as i32, command, frozen, ring);
            }
            if self.has_indexes {
                self.insert_into_indexes(count, estate);
            }
            self.count = 0;
        }
    }

    /// Makes the pages that the rows will fill, so that nobody else has to: an insertion that finds no page makes many
    /// more than it needs where others do so as well.
    ///
    /// # Safety
    /// As `insert`, of a heap.
    unsafe fn make_room(&mut self, count: usize) {
        // SAFETY: by the caller.
        unsafe {
            let mut bytes = 0;
            let mut tuples = 0;
            for index in 0..count {
                let length = self.tuple_length(index);
                if length <= TOAST_THRESHOLD {
                    bytes += bytes_on_page(length);
                    tuples += 1;
                }
            }
            if tuples > 0 {
                let of_page = (bytes_of_page(self.relation) * tuples / bytes).max(1);
                self.pages_due += tuples as f64 / of_page as f64;
            }
            while self.pages_due > 0.0 {
                self.pages_due -= extend(self.relation, self.pages_due.ceil() as u32) as f64;
            }
        }
    }

    /// # Safety
    /// As `insert`, whose rows are in the table.
    unsafe fn insert_into_indexes(&mut self, count: usize, estate: *mut pg_sys::EState) {
        // SAFETY: by the caller.
        unsafe {
            for index in 0..count {
                forget_expressions(estate);
                let slot = self.slot(index);
                // A slot whose tuple was written in place must not know values of the one before.
                (*slot).tts_nvalid = 0;
                (*slot).tts_tableOid = (*self.relation).rd_id;
                let none = std::ptr::null_mut();
                #[cfg(not(since_19))]
                raw::ExecInsertIndexTuples(
                    self.result,
                    slot,
                    estate,
                    false,
                    false,
                    none,
                    std::ptr::null_mut(),
                    #[cfg(since_16)]
                    false,
                );
                #[cfg(since_19)]
                raw::ExecInsertIndexTuples(self.result, estate, 0, slot, none, std::ptr::null_mut());
            }
        }
    }

    /// Forgets rows that the table has: long ones would add up, each in a slot of its own.
    ///
    /// # Safety
    /// Inside a trap; so many slots have been made.
    pub unsafe fn clear(&mut self, count: usize) {
        // SAFETY: by the caller.
        unsafe {
            for index in 0..count {
                let slot = self.slot(index);
                if let Some(clear) = (*(*slot).tts_ops).clear {
                    clear(slot);
                }
            }
        }
    }

    /// What is to be done when all rows of a transaction are in.
    ///
    /// # Safety
    /// Inside a trap, with the table still open.
    pub unsafe fn finish(&self) {
        // SAFETY: by the caller.
        unsafe {
            keep_pages_due((*self.relation).rd_id, self.pages_due);
            if let Some(finish) = (*(*self.relation).rd_tableam).finish_bulk_insert {
                finish(self.relation, pg_sys::TABLE_INSERT_FROZEN as _);
            }
        }
    }
}

/// ResetPerTupleExprContext of executor.h.
///
/// # Safety
/// Inside a trap.
pub(super) unsafe fn forget_expressions(estate: *mut pg_sys::EState) {
    // SAFETY: by the caller.
    unsafe {
        let expressions = (*estate).es_per_tuple_exprcontext;
        if !expressions.is_null() {
            raw::MemoryContextReset((*expressions).ecxt_per_tuple_memory);
        }
    }
}
