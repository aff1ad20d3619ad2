//! Pages of tables in shared buffers: prewarming, locks on pages, and new pages that were never filled.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::signals::termination_requested;

#[cfg(since_19)]
pub use pgrx::pg_sys::BufferLockMode::{BUFFER_LOCK_EXCLUSIVE as EXCLUSIVE, BUFFER_LOCK_SHARE as SHARE};
#[cfg(not(since_19))]
pub use pgrx::pg_sys::LockBuffer as lock_page;
#[cfg(since_19)]
pub use pgrx::pg_sys::LockBufferInternal as lock_page;

// Reading tables into shared buffers, before a run.
//
// Like pg_prewarm's mode 'buffer' (contrib/pg_prewarm), which is not called itself: the owner of its schema could replace the
// function, which a sweep's superuser would then call. Nothing in here is looked up by name.

/// Reads a table, its TOAST table and the indexes of both, and returns the number of blocks: 0 for relations without blocks of
/// their own, such as partitioned tables and views, and for a dropped table. Needs no snapshot; the transaction releases the
/// locks.
///
/// # Errors
/// 42501 if the current role may not read the table, 57014 if the worker must end.
pub fn prewarm(table: pg_sys::Oid) -> Result<i64, UserError> {
    check_may_read(table)?;
    let mut blocks = 0;
    // SAFETY: the relations are open until `read_with_indexes` closes them.
    unsafe {
        let relation = open(table);
        if relation.is_null() {
            return Ok(0);
        }
        let toast = (*(*relation).rd_rel).reltoastrelid;
        blocks += read_with_indexes(relation)?;
        if toast != pg_sys::InvalidOid {
            let toast = open(toast);
            if !toast.is_null() {
                blocks += read_with_indexes(toast)?;
            }
        }
    }
    Ok(blocks)
}

/// Checks the privilege that pg_prewarm requires.
///
/// # Errors
/// 42501 if the current role does not have SELECT on the table.
pub fn check_may_read(table: pg_sys::Oid) -> Result<(), UserError> {
    // SAFETY: catalog look-ups inside a transaction; a palloc'd string, or NULL for a table that is gone.
    unsafe {
        let name = pg_sys::get_rel_name(table);
        // An AclMode is wider from PostgreSQL 16 on.
        let select = pg_sys::ACL_SELECT as pg_sys::AclMode;
        if name.is_null()
            || pg_sys::pg_class_aclcheck(table, pg_sys::GetUserId(), select) == pg_sys::AclResult::ACLCHECK_OK
        {
            return Ok(());
        }
        let name = std::ffi::CStr::from_ptr(name).to_string_lossy();
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, format!("permission denied for table {name}"))
            .hint("Reading a table into shared buffers requires SELECT on it."))
    }
}

/// Opens a relation; NULL if it was dropped.
fn open(relation: pg_sys::Oid) -> pg_sys::Relation {
    // SAFETY: inside a transaction, which gives the lock back.
    unsafe { pg_sys::try_relation_open(relation, pg_sys::AccessShareLock as i32) }
}

/// # Safety
/// An open relation, which is closed.
unsafe fn read_with_indexes(relation: pg_sys::Relation) -> Result<i64, UserError> {
    // SAFETY: by the caller; a palloc'd list of OIDs, or NULL for an empty one.
    unsafe {
        let indexes = match pg_sys::RelationGetIndexList(relation) {
            list if list.is_null() => Vec::new(),
            list => {
                (0..(*list).length as usize).map(|place| (*(*list).elements.add(place)).oid_value).collect()
            }
        };
        let mut blocks = read(relation)?;
        for index in indexes {
            let index = open(index);
            if !index.is_null() {
                blocks += read(index)?;
            }
        }
        Ok(blocks)
    }
}

/// # Safety
/// An open relation, which is closed, its lock kept.
unsafe fn read(relation: pg_sys::Relation) -> Result<i64, UserError> {
    // SAFETY: by the caller; each buffer is given back before the next is read. After an error the transaction's end closes
    // what is open.
    unsafe {
        let has_blocks = matches!(
            (*(*relation).rd_rel).relkind as u8,
            pg_sys::RELKIND_RELATION
                | pg_sys::RELKIND_INDEX
                | pg_sys::RELKIND_TOASTVALUE
                | pg_sys::RELKIND_MATVIEW
        );
        let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
        let blocks = if has_blocks { pg_sys::RelationGetNumberOfBlocksInFork(relation, fork) } else { 0 };
        for block in 0..blocks {
            pgrx::check_for_interrupts!();
            if termination_requested() {
                return Err(UserError::new(
                    sqlstate::QUERY_CANCELED,
                    "terminated while reading tables into shared buffers",
                ));
            }
            let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
            pg_sys::ReleaseBuffer(pg_sys::ReadBufferExtended(
                relation,
                fork,
                block,
                mode,
                std::ptr::null_mut(),
            ));
        }
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        Ok(i64::from(blocks))
    }
}

// Locks on the contents of a page: inline in bufmgr.h from PostgreSQL 19 on, a function before.

#[cfg(not(since_19))]
pub const SHARE: i32 = pgrx::pg_sys::BUFFER_LOCK_SHARE as i32;
#[cfg(not(since_19))]
pub const EXCLUSIVE: i32 = pgrx::pg_sys::BUFFER_LOCK_EXCLUSIVE as i32;

// New pages of a table, all zeros, that were never filled. VACUUM marks initialized empty pages all-visible, but skips new ones.

/// Initializes the new pages of a heap, so that the next VACUUM marks them all-visible, and returns their number; 0 for other
/// relations. Takes the same lock as VACUUM, in the current transaction.
///
/// # Errors
/// Raises the server's error for a table that does not exist.
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
        let mut initialized = 0;
        for block in 0..blocks {
            if pg_sys::visibilitymap_get_status(relation, block, &raw mut map) != 0 {
                continue;
            }
            let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
            let buffer = pg_sys::ReadBufferExtended(relation, MAIN, block, mode, std::ptr::null_mut());
            lock_page(buffer, EXCLUSIVE);
            let page = pg_sys::BufferGetPage(buffer);
            // PageIsNew of storage/bufpage.h.
            if (*page.cast::<pg_sys::PageHeaderData>()).pd_upper == 0 {
                pg_sys::PageInit(page, pg_sys::BLCKSZ as usize, 0);
                pg_sys::MarkBufferDirty(buffer);
                initialized += 1;
            }
            pg_sys::UnlockReleaseBuffer(buffer);
        }
        if map != pg_sys::InvalidBuffer as pg_sys::Buffer {
            pg_sys::ReleaseBuffer(map);
        }
        pg_sys::relation_close(relation, LOCK);
        initialized
    }
}
