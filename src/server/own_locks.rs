//! The locks on tables and indexes that this session's transactions have when they commit.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, c_void};
use std::sync::Once;

use pgrx::pg_sys;

use super::process::my_pid;
use super::{database, relations};

/// A lock on a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLock {
    relation: pg_sys::Oid,
    mode: pg_sys::LOCKMODE,
}

impl OwnLock {
    /// Returns the name of its mode, as pg_locks shows it.
    pub fn mode_name(&self) -> String {
        // SAFETY: a valid mode of the default lock method; returns a static text.
        let name =
            unsafe { CStr::from_ptr(pg_sys::GetLockmodeName(pg_sys::DEFAULT_LOCKMETHOD as _, self.mode)) };
        name.to_string_lossy().into_owned()
    }

    /// Returns the relation's name, or its OID if it was dropped.
    pub fn shown_name(&self) -> String {
        relations::shown_name(self.relation)
    }
}

thread_local! {
    /// The locks of the transactions that committed while they were watched: each relation's strongest mode.
    static HELD: RefCell<BTreeMap<u32, pg_sys::LOCKMODE>> = const { RefCell::new(BTreeMap::new()) };
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Watches the locks of this session's transactions until it is dropped.
pub struct OwnLocks(());

impl OwnLocks {
    /// Starts to watch.
    pub fn watch() -> Self {
        static REGISTERED: Once = Once::new();
        // SAFETY: the function is of this library, which stays loaded.
        REGISTERED.call_once(|| unsafe {
            pg_sys::RegisterXactCallback(Some(before_commit), std::ptr::null_mut());
        });
        HELD.take();
        IS_WATCHED.set(true);
        Self(())
    }

    /// Returns the strongest lock on one of `relations` of the transactions that have committed. Of several, it is that on the
    /// oldest relation, which is rather a table than its index.
    pub fn strongest(&self, relations: &HashSet<pg_sys::Oid>) -> Option<OwnLock> {
        HELD.with_borrow(|held| {
            let locks =
                held.iter().map(|(oid, mode)| OwnLock { relation: pg_sys::Oid::from(*oid), mode: *mode });
            let known = locks.filter(|lock| relations.contains(&lock.relation));
            known.reduce(|strongest, next| if next.mode > strongest.mode { next } else { strongest })
        })
    }
}

impl Drop for OwnLocks {
    fn drop(&mut self) {
        IS_WATCHED.set(false);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_commit(event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    if event != pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT || !IS_WATCHED.get() {
        return;
    }
    let locks = held_locks();
    HELD.with_borrow_mut(|held| {
        for lock in locks {
            let mode = held.entry(lock.relation.to_u32()).or_insert(lock.mode);
            *mode = lock.mode.max(*mode);
        }
    });
}

/// Returns the locks of this session on relations of users, each in its strongest mode.
fn held_locks() -> Vec<OwnLock> {
    let (pid, database) = (my_pid(), database::oid().to_u32());
    // SAFETY: the server returns an array of `nelements` entries in memory of the current context, which outlives this call.
    unsafe {
        let status = pg_sys::GetLockStatusData();
        let entries = std::slice::from_raw_parts((*status).locks, (*status).nelements.max(0) as usize);
        let held = entries.iter().filter(|lock| {
            u32::from(lock.locktag.locktag_type) == pg_sys::LockTagType::LOCKTAG_RELATION
                && lock.pid == pid
                && lock.holdMask > 0
                && lock.locktag.locktag_field1 == database
                && lock.locktag.locktag_field2 >= pg_sys::FirstNormalObjectId
        });
        held.map(|lock| OwnLock {
            relation: pg_sys::Oid::from(lock.locktag.locktag_field2),
            // Bit n is the mode n.
            mode: lock.holdMask.ilog2().cast_signed(),
        })
        .collect()
    }
}
