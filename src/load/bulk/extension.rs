//! Extending a table, from PostgreSQL 16 on.

use pgrx::pg_sys;

use super::free_pages::{MAIN, leave_to_others, ring};
use crate::driver::session::raw;

/// MAX_BUFFERS_TO_EXTEND_BY of access/heap/hio.c: all of them are pinned at once.
const MOST: usize = 64;

/// Makes pages at the table's end, so many at most and one at least; how many.
///
/// # Safety
/// Inside a trap, with the table open for insertion, and locked against VACUUM by whoever leads the load.
pub unsafe fn extend(relation: pg_sys::Relation, most: u32) -> u32 {
    // SAFETY: by the caller. The server takes the lock for the extension itself and gives back as many pinned buffers as it
    // has made pages of zeros, which an insertion takes for new ones.
    unsafe {
        let mut buffers: [pg_sys::Buffer; MOST] = [0; MOST];
        let mut pages = 0;
        let table =
            pg_sys::BufferManagerRelation { rel: relation, smgr: std::ptr::null_mut(), relpersistence: 0 };
        let most = most.clamp(1, MOST as u32);
        let buffer = buffers.as_mut_ptr();
        let first = raw::ExtendBufferedRelBy(table, MAIN, ring(), 0, most, buffer, &raw mut pages);
        for &buffer in &buffers[..pages as usize] {
            raw::ReleaseBuffer(buffer);
        }
        leave_to_others(relation, first, pages);
        pages
    }
}
