//! Pages that a table has received and nobody has filled. VACUUM leaves new pages, which are all zeros, as they are; it
//! marks initialized empty pages all-visible.

use pgrx::pg_sys;

use super::buffers::{EXCLUSIVE, lock};

/// Sets up the new pages of a heap, to be marked all-visible by the next VACUUM; how many there were. Other relations have
/// none. In a transaction; takes the lock that VACUUM takes.
///
/// # Errors
/// Raises the server's own, for a table that does not exist.
pub fn set_up_new_pages(table: pg_sys::Oid) -> u32 {
    const LOCK: pg_sys::LOCKMODE = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: an open relation, whose blocks up to its length can be read. What is done to a page is done under its
    // exclusive lock, as RelationAddExtraBlocks and RelationAddBlocks (access/heap/hio.c) do it to one nobody has filled;
    // like there it is not logged, since a crash brings back either a new page or an empty one, and VACUUM logs the page
    // where it marks it.
    unsafe {
        let relation = pg_sys::relation_open(table, LOCK);
        let class = (*relation).rd_rel;
        let is_heap = (*class).relkind == pg_sys::RELKIND_RELATION as std::ffi::c_char
            && (*class).relam == pg_sys::HEAP_TABLE_AM_OID;
        let blocks = if is_heap { pg_sys::RelationGetNumberOfBlocksInFork(relation, MAIN) } else { 0 };
        let mut map = pg_sys::InvalidBuffer as pg_sys::Buffer;
        let mut found = 0;
        for block in 0..blocks {
            if pg_sys::visibilitymap_get_status(relation, block, &raw mut map) != 0 {
                continue;
            }
            let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
            let buffer = pg_sys::ReadBufferExtended(relation, MAIN, block, mode, std::ptr::null_mut());
            lock(buffer, EXCLUSIVE);
            let page = pg_sys::BufferGetPage(buffer);
            // PageIsNew of storage/bufpage.h.
            if (*page.cast::<pg_sys::PageHeaderData>()).pd_upper == 0 {
                pg_sys::PageInit(page, pg_sys::BLCKSZ as usize, 0);
                pg_sys::MarkBufferDirty(buffer);
                found += 1;
            }
            pg_sys::UnlockReleaseBuffer(buffer);
        }
        if map != pg_sys::InvalidBuffer as pg_sys::Buffer {
            pg_sys::ReleaseBuffer(map);
        }
        pg_sys::relation_close(relation, LOCK);
        found
    }
}
