//! What this session has used of the server.

use pgrx::pg_sys;

/// Counters that the server keeps in each process anyway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Blocks of shared buffers looked up, found there or read.
    pub blocks: u64,
    /// Bytes of WAL inserted.
    pub wal_bytes: u64,
}

impl Usage {
    /// Up to now.
    #[inline]
    pub fn of_session() -> Self {
        // SAFETY: both are of this process, which has one thread, and are plain numbers, read and let go of at once.
        unsafe {
            let buffers = &raw const pg_sys::pgBufferUsage;
            let wal = &raw const pg_sys::pgWalUsage;
            let blocks = (*buffers).shared_blks_hit + (*buffers).shared_blks_read;
            Self { blocks: blocks.cast_unsigned(), wal_bytes: (*wal).wal_bytes }
        }
    }
}
