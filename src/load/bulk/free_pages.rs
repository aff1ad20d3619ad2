//! Making room in a table that several loaders fill.
//!
//! An insertion that finds no page has the server make many more than it needs where others do so as well, and most of
//! those that are left over when a loader ends nobody fills: they stay new, and are never all-visible. So the pages of a
//! batch are made beforehand, as many as its rows take, and left to the free space map, where the insertion finds them.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::driver::session::raw;

/// The fork with a table's rows.
pub(super) const MAIN: i32 = pg_sys::ForkNumber::MAIN_FORKNUM;

/// SizeOfPageHeaderData and sizeof(ItemIdData) of storage/bufpage.h.
const PAGE_HEADER: usize = 24;
const LINE_POINTER: usize = 4;

/// TOAST_TUPLE_THRESHOLD of access/heaptoast.h: what is left of a longer tuple in the table cannot be told beforehand.
pub const TOAST_THRESHOLD: usize = 2032;

/// What a tuple takes of a page, in bytes: PageAddItem rounds it up and adds a line pointer.
pub fn bytes_on_page(tuple_length: usize) -> usize {
    tuple_length.next_multiple_of(8) + LINE_POINTER
}

/// Bytes for tuples on a page of a heap.
///
/// # Safety
/// An open heap, whose options, if it has any, are a heap's.
pub unsafe fn bytes_of_page(relation: pg_sys::Relation) -> usize {
    // SAFETY: by the caller.
    let fillfactor = unsafe {
        let options = (*relation).rd_options.cast::<pg_sys::StdRdOptions>();
        if options.is_null() { 100 } else { (*options).fillfactor as usize }
    };
    pg_sys::BLCKSZ as usize * fillfactor / 100 - PAGE_HEADER
}

/// Slots for [`pages_due`]; more tables than these share them, and then have a page too many or too few.
const DUE_SLOTS: usize = 4096;

thread_local! {
    static PAGES_DUE: [Cell<f64>; DUE_SLOTS] = const { [const { Cell::new(0.0) }; DUE_SLOTS] };
}

/// Pages that a table's rows take, less those that this process has made for them in former transactions: what one
/// transaction makes too much the next one fills.
pub fn pages_due(table: pg_sys::Oid) -> f64 {
    PAGES_DUE.with(|due| due[table.to_u32() as usize % DUE_SLOTS].get())
}

/// Keeps what is left for the next transaction.
pub fn keep_pages_due(table: pg_sys::Oid, pages: f64) {
    PAGES_DUE.with(|due| due[table.to_u32() as usize % DUE_SLOTS].set(pages));
}

/// Tells of pages that have been made: others learn of them by the free space map.
///
/// # Safety
/// Inside a trap; so many pages of the table that are empty, from the first one on.
pub(super) unsafe fn leave_to_others(relation: pg_sys::Relation, first: u32, pages: u32) {
    // SAFETY: by the caller.
    unsafe {
        for block in first..first + pages {
            raw::RecordPageWithFreeSpace(relation, block, pg_sys::BLCKSZ as usize - PAGE_HEADER);
        }
        raw::FreeSpaceMapVacuumRange(relation, first, first + pages);
    }
}

/// The buffers that pages are made in, 16 MB of them: by the time that they come round again, the pages are full.
///
/// # Safety
/// Inside a trap.
pub(super) unsafe fn ring() -> pg_sys::BufferAccessStrategy {
    thread_local! {
        static RING: Cell<pg_sys::BufferAccessStrategy> = const { Cell::new(std::ptr::null_mut()) };
    }
    // SAFETY: by the caller; it lasts as long as the process, and holds no pins.
    unsafe {
        if RING.get().is_null() {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
            RING.set(raw::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKWRITE));
            pg_sys::CurrentMemoryContext = context;
        }
        RING.get()
    }
}
