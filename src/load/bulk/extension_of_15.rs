//! Extending a table on PostgreSQL 15, which does so by a page at a time, under a lock that loaders side by side spend
//! most of their time waiting for; it takes a third to have it extend by more (RelationAddExtraBlocks in
//! access/heap/hio.c). So the pages of a batch are made all under one lock.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::free_pages::{MAIN, leave_to_others, ring};
use crate::driver::session::analysis::error_with_hint;
use crate::driver::session::raw;

/// Makes pages at the table's end, so many at most and one at least; how many.
///
/// The space is reserved in one go, and only the last page is written, as PostgreSQL 16 does it (mdzeroextend in
/// storage/smgr/md.c). Writing zeros page by page is what makes the extension slow, and all other
/// loaders wait for it.
///
/// # Safety
/// Inside a trap, with the table open for insertion, and locked against VACUUM by whoever leads the load.
pub unsafe fn extend(relation: pg_sys::Relation, most: u32) -> u32 {
    const EXCLUSIVE: i32 = pg_sys::ExclusiveLock as i32;
    // SAFETY: by the caller. A buffer with zeros may stand for a page as long as nobody has put anything into it:
    // others learn of pages by the free space map, to which these are told afterwards (by VACUUM as well, hence
    // the lock), and by the table's length, which leads them to the last one, whose buffer is
    // made and pinned before the file grows. An error in between leaves new pages.
    unsafe {
        raw::LockRelationForExtension(relation, EXCLUSIVE);
        let first = raw::RelationGetNumberOfBlocksInFork(relation, MAIN);
        // Files have so many pages each; the first one of a file makes it.
        let in_file = first % pg_sys::RELSEG_SIZE;
        let pages = if in_file == 0 {
            1
        } else {
            most.clamp(1, (pg_sys::RELSEG_SIZE - in_file).min(pg_sys::InvalidBlockNumber - first))
        };
        let last = first + pages - 1;
        let last_buffer = zeroed(relation, last);
        if pages > 1 {
            reserve(relation, first, pages);
        }
        // The look at its length has opened the file.
        raw::smgrextend((*relation).rd_smgr, MAIN, last, ZEROS.0.as_ptr().cast_mut().cast(), false);
        raw::UnlockRelationForExtension(relation, EXCLUSIVE);
        for block in first..=last {
            raw::ReleaseBuffer(if block == last { last_buffer } else { zeroed(relation, block) });
        }
        leave_to_others(relation, first, pages);
        pages
    }
}

#[repr(C, align(4096))]
struct Page([u8; pg_sys::BLCKSZ as usize]);
static ZEROS: Page = Page([0; pg_sys::BLCKSZ as usize]);

/// Takes space of the file system's for pages of one file, so that a disk that is full shows here, and not when a
/// checkpoint wants to write them.
///
/// # Safety
/// Inside a trap, with the relation locked for extension.
unsafe fn reserve(relation: pg_sys::Relation, first: u32, pages: u32) {
    const PAGE: i64 = pg_sys::BLCKSZ as i64;
    // SAFETY: by the caller. The path is the server's own; an ERROR closes the file.
    unsafe {
        let node = (*relation).rd_node;
        let own = pg_sys::InvalidBackendId;
        let path = raw::GetRelationPath(node.dbNode, node.spcNode, node.relNode, own, MAIN);
        let file = first / pg_sys::RELSEG_SIZE;
        let path = if file == 0 { path } else { raw::psprintf(c"%s.%u".as_ptr(), path, file) };
        let fd = raw::OpenTransientFile(path, libc::O_RDWR);
        let offset = i64::from(first % pg_sys::RELSEG_SIZE) * PAGE;
        let code = if fd < 0 {
            *libc::__errno_location()
        } else {
            loop {
                let code = libc::posix_fallocate(fd, offset, i64::from(pages) * PAGE);
                if code != libc::EINTR {
                    break code;
                }
            }
        };
        if fd >= 0 {
            raw::CloseTransientFile(fd);
        }
        match code {
            0 => {}
            // A file system that cannot do it: as PostgreSQL always has it.
            libc::EINVAL | libc::EOPNOTSUPP => {
                for block in first..first + pages - 1 {
                    raw::smgrextend(
                        (*relation).rd_smgr,
                        MAIN,
                        block,
                        ZEROS.0.as_ptr().cast_mut().cast(),
                        false,
                    );
                }
            }
            _ => {
                let is_full = [libc::ENOSPC, libc::EDQUOT, libc::EFBIG].contains(&code);
                let sqlstate = if is_full {
                    pgrx::PgSqlErrorCode::ERRCODE_DISK_FULL
                } else {
                    pgrx::PgSqlErrorCode::ERRCODE_IO_ERROR
                };
                let format = c"could not extend file \"%s\": %s".as_ptr();
                let message = raw::psprintf(format, path, libc::strerror(code));
                error_with_hint(sqlstate, CStr::from_ptr(message), c"Check free disk space.");
            }
        }
    }
}

/// A pinned buffer of zeros for a page that has nothing else.
///
/// # Safety
/// As `extend`.
unsafe fn zeroed(relation: pg_sys::Relation, block: u32) -> pg_sys::Buffer {
    const UNLOCK: i32 = 0;
    // SAFETY: by the caller.
    unsafe {
        let mode = pg_sys::ReadBufferMode::RBM_ZERO_AND_LOCK;
        let buffer = raw::ReadBufferExtended(relation, MAIN, block, mode, ring());
        raw::LockBuffer(buffer, UNLOCK);
        buffer
    }
}
