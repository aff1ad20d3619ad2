//! Locks on the contents of a page: what bufmgr.h has inline from PostgreSQL 19 on, and as a function before.

#[cfg(not(since_19))]
pub use pgrx::pg_sys::LockBuffer as lock;
#[cfg(since_19)]
pub use pgrx::pg_sys::LockBufferInternal as lock;

#[cfg(since_19)]
pub use pgrx::pg_sys::BufferLockMode::{BUFFER_LOCK_EXCLUSIVE as EXCLUSIVE, BUFFER_LOCK_SHARE as SHARE};

#[cfg(not(since_19))]
pub const SHARE: i32 = pgrx::pg_sys::BUFFER_LOCK_SHARE as i32;
#[cfg(not(since_19))]
pub const EXCLUSIVE: i32 = pgrx::pg_sys::BUFFER_LOCK_EXCLUSIVE as i32;
