//! DROP EXTENSION during a run or sweep.
//!
//! The session that drops the extension may not have loaded this library, so the library cannot refuse. Instead,
//! leaders hold a lock on the extension. Every DROP that cascades to the extension waits for it before it has touched a
//! table. When a DROP waits, the leaders of runs and sweeps end their work with an error, so that nobody receives results
//! that are about to be dropped; a load, whose tables stay, goes on. The server takes that lock before it checks the
//! ownership of the extension, so a DROP by a role that may not drop it does not count. A sweep that waits for a restart has
//! no leader: there an event trigger refuses (src/schema/code/57_drop_extension.sql).

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::server::guc::set_local;
use crate::server::signals;
use crate::server::spi::fetch;
use crate::server::transaction::transaction;

/// How often it is asked who waits, while somebody does.
const ASK_EVERY: Duration = Duration::from_millis(500);

thread_local! {
    /// The lock that this process holds until its end, unless the abort of a transaction takes it away.
    static LOCK: Cell<Option<Lock>> = const { Cell::new(None) };
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static ROLE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Holds the extension until this process ends; in a transaction.
///
/// # Errors
/// 55000 where it is being dropped.
pub fn hold() -> Result<(), UserError> {
    let is_held = LOCK.get().unwrap_or_else(first).take();
    if is_held { Ok(()) } else { dropper()?.map_or(Ok(()), |role| Err(error_by(Some(&role)))) }
}

/// Waits until a DROP EXTENSION that has the lock is over, for ten seconds at most; in a transaction, in a process that has
/// held it and has no other lock.
///
/// # Errors
/// Raises 55P03.
pub fn let_pass() -> Result<(), UserError> {
    set_local(c"lock_timeout", c"10s");
    if let Some(lock) = LOCK.get() {
        // SAFETY: a valid tag; the transaction gives the lock back.
        unsafe { pg_sys::LockAcquire(&raw const lock.0, MODE, false, false) };
    }
    Ok(())
}

fn first() -> Lock {
    // SAFETY: a catalog look-up in a transaction; the tag is that of LockDatabaseObject for the extension.
    let lock = Lock(unsafe {
        pg_sys::LOCKTAG {
            locktag_field1: pg_sys::MyDatabaseId.to_u32(),
            locktag_field2: pg_sys::ExtensionRelationId.to_u32(),
            locktag_field3: pg_sys::get_extension_oid(c"pgbench_ext".as_ptr(), true).to_u32(),
            locktag_field4: 0,
            locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        }
    });
    LOCK.set(Some(lock));
    signals::register(&GIVE_BACK);
    lock
}

/// The server gives such locks back when a transaction is aborted, not when a process ends.
static GIVE_BACK: signals::Callback = signals::Callback(|| {
    if let Some(lock) = LOCK.take()
        && lock.take()
    {
        lock.release();
    }
});

/// A lock of the session's.
#[derive(Clone, Copy)]
struct Lock(pg_sys::LOCKTAG);

const MODE: i32 = pg_sys::AccessShareLock as i32;

impl Lock {
    /// Takes it unless this process has it already; false where somebody else has, or waits for, one that conflicts.
    fn take(&self) -> bool {
        use pg_sys::LockAcquireResult::{LOCKACQUIRE_NOT_AVAIL, LOCKACQUIRE_OK};
        // SAFETY: a valid tag.
        let taken = unsafe { pg_sys::LockAcquire(&raw const self.0, MODE, true, true) };
        // It is counted how often it was taken.
        if taken != LOCKACQUIRE_OK && taken != LOCKACQUIRE_NOT_AVAIL {
            self.release();
        }
        taken != LOCKACQUIRE_NOT_AVAIL
    }

    fn release(&self) {
        // SAFETY: a lock that this session holds.
        unsafe { pg_sys::LockRelease(&raw const self.0, MODE, true) };
    }

    fn has_waiters(&self) -> bool {
        // SAFETY: a lock that this session holds.
        unsafe { pg_sys::LockHasWaiters(&raw const self.0, MODE, true) }
    }
}

/// Whether a role that may drop the extension waits to do so. Not looked at in a transaction.
pub fn is_coming() -> bool {
    let Some(lock) = LOCK.get() else { return false };
    // SAFETY: looks at a variable of the transaction's.
    if unsafe { pg_sys::IsTransactionState() } || (lock.take() && !lock.has_waiters()) {
        return false;
    }
    if ASKED.get().is_some_and(|asked| asked.elapsed() < ASK_EVERY) {
        return false;
    }
    ASKED.set(Some(Instant::now()));
    let role = transaction(dropper).unwrap_or_default();
    let is_coming = role.is_some();
    ROLE.set(role);
    is_coming
}

/// The error of what ends for it.
pub fn error() -> UserError {
    ROLE.with_borrow(|role| error_by(role.as_deref()))
}

fn error_by(role: Option<&str>) -> UserError {
    let by = role.map_or(String::new(), |role| format!(" by role \"{role}\""));
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("extension \"pgbench_ext\" is being dropped{by}"),
    )
    .detail("All results will be deleted.")
}

/// A role that has, or waits for, the lock under which the extension is dropped, and may drop it.
fn dropper() -> Result<Option<String>, UserError> {
    fetch::<String>(
        "SELECT a.usename::text FROM pg_locks l \
         JOIN pg_extension e ON e.oid = l.objid \
         JOIN pg_stat_activity a ON a.pid = l.pid \
         JOIN pg_roles r ON r.oid = a.usesysid \
         WHERE l.locktype = 'object' AND e.extname = 'pgbench_ext'::name \
           AND l.classid = 'pg_extension'::regclass::oid \
           AND l.database = (SELECT d.oid FROM pg_database d \
                                                  WHERE d.datname = current_database()) \
           AND l.mode = 'AccessExclusiveLock' \
           AND (r.rolsuper OR pg_has_role(r.oid, e.extowner, 'MEMBER')) \
         ORDER BY 1 LIMIT 1",
        &[],
    )
}
