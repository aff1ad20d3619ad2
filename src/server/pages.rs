//! Pages of tables in shared buffers: locks on them, pages that nobody has filled, and prewarming.

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
// As pg_prewarm does with its mode 'buffer' (contrib/pg_prewarm), and without it: its function is in a schema whose owner
// could put another one in its place, for a sweep's superuser to call. Nothing here is looked up by a name.

/// Reads a table, its TOAST table and the indexes of both; the number of blocks. Needs no snapshot, and gives its locks back
/// with the transaction. None for what has no blocks of its own, as partitioned tables and views, and for a table that is gone.
///
/// # Errors
/// 42501 where the current role may not read the table, 57014 when the worker is to end.
pub fn prewarm(table: pg_sys::Oid) -> Result<i64, UserError> {
    check_may_read(table)?;
    let mut blocks = 0;
    // SAFETY: a relation that is open until `read` closes it.
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

/// As pg_prewarm asks for it.
///
/// # Errors
/// 42501 where the current role does not have SELECT on the table.
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

/// NULL for one that is gone.
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

// Locks on the contents of a page: what bufmgr.h has inline from PostgreSQL 19 on, and as a function before.

#[cfg(not(since_19))]
pub const SHARE: i32 = pgrx::pg_sys::BUFFER_LOCK_SHARE as i32;
#[cfg(not(since_19))]
pub const EXCLUSIVE: i32 = pgrx::pg_sys::BUFFER_LOCK_EXCLUSIVE as i32;

// Pages that a table has received and nobody has filled. VACUUM leaves new pages, which are all zeros, as they are; it
// marks initialized empty pages all-visible.

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
            lock_page(buffer, EXCLUSIVE);
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
