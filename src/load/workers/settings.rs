//! Settings of the sessions of a load.

use std::ffi::CString;

use bench_base::error::SqlError;

use crate::driver::session::Session;
use crate::server::process::memory_bytes;
use crate::server::{background_worker, guc};

/// Settings of a session that builds indexes, or of so many that do so side by side.
pub fn set_up(session: &Session, sessions: u32) -> Result<(), SqlError> {
    let set = |name, value: &str| session.set(name, &CString::new(value).unwrap_or_default());
    // What bench.load returns is there after a crash.
    if guc::current("synchronous_commit").as_deref() == Some("off") {
        set(c"synchronous_commit", "local")?;
    }
    // Indexes are built with what is to be had: the sessions themselves and a worker for each other processor.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let others = (processors as u64).saturating_sub(sessions.into()).min(background_worker::free_slots());
    let workers = (others / u64::from(sessions)).min(MAX_INDEX_WORKERS);
    set(c"max_parallel_maintenance_workers", &workers.to_string())?;
    let sensible_kb = sensible_index_memory_kb() / i64::from(sessions);
    set(c"maintenance_work_mem", &guc::maintenance_work_mem_kb().max(sensible_kb).to_string())
}

/// More than this many do not make a B-tree's build any faster.
const MAX_INDEX_WORKERS: u64 = 7;

/// An eighth of the machine's memory, and no more than a sort of hundreds of millions of keys can use.
fn sensible_index_memory_kb() -> i64 {
    const MOST_KB: i64 = 1 << 20;
    (memory_bytes() / 8 / 1024).clamp(0, MOST_KB)
}

/// Where what is made next goes to: without a name, where the database is.
pub fn set_default_tablespace(session: &Session, tablespace: &Option<String>) -> Result<(), SqlError> {
    let name = CString::new(tablespace.as_deref().unwrap_or_default()).unwrap_or_default();
    session.set(c"default_tablespace", &name)
}
