//! Heavyweight locks: of relations, advisory ones that SQL cannot take, and who waits for whom.

use pgrx::pg_sys;

use super::process::my_pid;

/// Locks a relation until the transaction ends, or until [`unlock`].
pub fn lock(relation: pg_sys::Oid, mode: u32) {
    // SAFETY: a lock that the transaction gives back.
    unsafe { pg_sys::LockRelationOid(relation, mode as i32) };
}

/// Locks a relation until the transaction ends, unless somebody holds a lock that conflicts: then false.
pub fn try_lock(relation: pg_sys::Oid, mode: u32) -> bool {
    // SAFETY: a lock that the transaction gives back.
    unsafe { pg_sys::ConditionalLockRelationOid(relation, mode as i32) }
}

/// Gives back a lock that [`lock`] has taken, before the transaction ends.
pub fn unlock(relation: pg_sys::Oid, mode: u32) {
    // SAFETY: a lock that is not held is a WARNING.
    unsafe { pg_sys::UnlockRelationOid(relation, mode as i32) };
}

/// Whether two modes of storage/lockdefs.h conflict.
pub fn do_conflict(mode: i32, other: i32) -> bool {
    // SAFETY: a table look-up of the lock manager's, by numbers of lock modes.
    mode != 0 && unsafe { pg_sys::DoLockModesConflict(mode, other) }
}

/// pg_locks.mode as a number of storage/lockdefs.h; 0 for what is not there.
pub fn mode_of_name(name: &str) -> i32 {
    const MODES: [&str; 8] = [
        "AccessShareLock",
        "RowShareLock",
        "RowExclusiveLock",
        "ShareUpdateExclusiveLock",
        "ShareLock",
        "ShareRowExclusiveLock",
        "ExclusiveLock",
        "AccessExclusiveLock",
    ];
    MODES.iter().position(|mode| *mode == name).map_or(0, |place| place as i32 + 1)
}

/// A lock of this extension's own, by three numbers. It is one of a user's locks with a fourth field that advisory locks
/// do not have (1 and 2 are theirs): nobody takes it from SQL.
pub struct OwnLock(pg_sys::LOCKTAG);

impl OwnLock {
    /// The first field of advisory locks is the database; 0 is none, for what concerns the whole server.
    pub fn new(database: u32, second: u32, third: u32) -> Self {
        Self(pg_sys::LOCKTAG {
            locktag_field1: database,
            locktag_field2: second,
            locktag_field3: third,
            locktag_field4: 3,
            locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
            locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
        })
    }

    /// Waits for it. It is held until [`Self::release`] or the end of the (sub)transaction.
    pub fn acquire(&self) {
        // SAFETY: a valid tag; the transaction gives the lock back.
        unsafe { pg_sys::LockAcquire(&raw const self.0, pg_sys::ExclusiveLock as i32, false, false) };
    }

    /// Takes it until this process ends, unless another one has it: then false.
    pub fn try_acquire_for_session(&self) -> bool {
        // SAFETY: a valid tag; the server gives a session's lock back when the process ends.
        let taken =
            unsafe { pg_sys::LockAcquire(&raw const self.0, pg_sys::ExclusiveLock as i32, true, true) };
        taken != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }

    /// Gives it back before the transaction ends.
    pub fn release(self) {
        // SAFETY: a valid tag; a lock that is not held is a WARNING.
        unsafe { pg_sys::LockRelease(&raw const self.0, pg_sys::ExclusiveLock as i32, false) };
    }
}

/// Whether the other session waits for a lock that this one holds, or for a session that does.
pub fn is_blocked_by_me(pid: i32) -> bool {
    // Asked again and again within one transaction, whose memory must not grow.
    let mut context = pgrx::PgMemoryContexts::new("pgbench_ext blockers");
    // SAFETY: nothing of what is allocated is used afterwards.
    unsafe { context.switch_to(|_| find_me_in_the_way_of(pid)) }
}

fn find_me_in_the_way_of(pid: i32) -> bool {
    let mine = my_pid();
    let mut seen = vec![pid];
    let mut next = 0;
    while let Some(&waiting) = seen.get(next) {
        next += 1;
        // SAFETY: pg_blocking_pids reads shared lock tables only and returns an int4 array without
        // NULLs, or raises an error, which leaves by the usual way.
        let blockers: Option<Vec<i32>> = unsafe {
            pgrx::direct_function_call(pg_sys::pg_blocking_pids, &[Some(pg_sys::Datum::from(waiting))])
        };
        for blocker in blockers.unwrap_or_default() {
            if blocker == mine {
                return true;
            }
            // 0 stands for a prepared transaction.
            if blocker != 0 && !seen.contains(&blocker) {
                seen.push(blocker);
            }
        }
    }
    false
}
