//! This session's database, and the server's state as a whole.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::spi::fetch;

/// Returns the OID of this session's database.
pub fn oid() -> pg_sys::Oid {
    // SAFETY: this backend's own state.
    unsafe { pg_sys::MyDatabaseId }
}

/// Returns the name of this session's database.
pub fn name() -> Result<String, UserError> {
    Ok(fetch::<String>("SELECT current_database()::text", &[])?.unwrap_or_default())
}

/// Returns a name of this database that is unique among all servers: a copy has another one, unless it copies the server's files.
pub fn identity() -> String {
    // SAFETY: reads the control file's copy in shared memory.
    let system_identifier = unsafe { pg_sys::GetSystemIdentifier() };
    format!("{system_identifier}/{}", oid().to_u32())
}

/// Whether texts of this database can be passed between processes as UTF-8: its encoding is UTF8 or SQL_ASCII.
pub fn is_utf8() -> bool {
    const SQL_ASCII: i32 = 0;
    const UTF8: i32 = 6;
    // SAFETY: reads this backend's own state.
    matches!(unsafe { pg_sys::GetDatabaseEncoding() }, SQL_ASCII | UTF8)
}

/// Whether this transaction may not write.
pub fn is_read_only() -> bool {
    // SAFETY: reads the transaction's state.
    unsafe { pg_sys::XactReadOnly }
}

/// Whether this server is a standby, whose recorded runs are those of the primary.
pub fn is_standby() -> bool {
    // SAFETY: reads the server's state.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Whether data pages have checksums.
pub fn has_data_checksums() -> bool {
    // SAFETY: reads the control file's copy in shared memory.
    unsafe { pg_sys::DataChecksumsEnabled() }
}

/// Returns the redo pointer of the last checkpoint that has begun (CreateCheckPoint in xlog.c sets it at its begin).
pub fn redo_pointer() -> u64 {
    // SAFETY: reads a shared value under its spinlock.
    unsafe { pg_sys::GetRedoRecPtr() }
}

/// Returns the next transaction id, with its epoch.
pub fn next_xid() -> u64 {
    // SAFETY: reads shared memory under its own lock.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}

/// Returns the port that the server listens on.
pub fn port() -> i32 {
    // SAFETY: a configuration variable of the server's, fixed at its start.
    unsafe { pg_sys::PostPortNumber }
}
