//! Lookups of relations and schemas, and heavyweight locks: on relations, and advisory ones that SQL cannot take.

use std::ffi::CStr;

use bench_base::error::UserError;
use pgrx::datum::IntoDatum;
use pgrx::pg_sys;

use super::pages::{SHARE, lock_page};
use super::process::my_pid;
use super::spi::{fetch, in_session, with_own_syntax};
use crate::error::internal;

/// Returns the owner of a table.
///
/// # Errors
/// XX000 for a dropped table.
pub fn owner_of(table: pg_sys::Oid) -> Result<pg_sys::Oid, UserError> {
    // SAFETY: a syscache look-up; the tuple is released before returning.
    unsafe {
        let tuple =
            pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as _, pg_sys::Datum::from(table));
        if tuple.is_null() {
            return Err(internal(format!("cache lookup failed for relation {}", table.to_u32())));
        }
        let class: *mut pg_sys::FormData_pg_class = pg_sys::GETSTRUCT(tuple).cast();
        let owner = (*class).relowner;
        pg_sys::ReleaseSysCache(tuple);
        Ok(owner)
    }
}

/// Looks up a relation by name under the current search_path, like to_regclass.
pub fn named(name: &str) -> Option<pg_sys::Oid> {
    // SAFETY: to_regclass(text), with one argument that is not NULL.
    unsafe { pgrx::direct_function_call(pg_sys::to_regclass, &[name.into_datum()]) }
}

/// Returns a relation's name, qualified unless it is visible under the session's search_path.
pub fn shown_name(relation: pg_sys::Oid) -> String {
    // SAFETY: regclassout(regclass), with one argument that is not NULL.
    let name: Option<&CStr> = with_own_syntax(|| unsafe {
        pgrx::direct_function_call(pg_sys::regclassout, &[relation.into_datum()])
    });
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the CREATE INDEX of an index, with names qualified as by [`shown_name`].
pub fn index_definition(index: pg_sys::Oid) -> String {
    // SAFETY: pg_get_indexdef(oid), with one argument that is not NULL.
    let text: Option<String> = with_own_syntax(|| unsafe {
        pgrx::direct_function_call(pg_sys::pg_get_indexdef, &[index.into_datum()])
    });
    text.unwrap_or_default()
}

/// Returns the description of a catalog's object, such as `table pk`, with its name qualified as by [`shown_name`].
pub fn described(class: pg_sys::Oid, object: pg_sys::Oid) -> String {
    let arguments = [class.into_datum(), object.into_datum(), 0i32.into_datum()];
    // SAFETY: pg_describe_object(oid, oid, int4), with arguments that are not NULL.
    let text: Option<String> =
        with_own_syntax(|| unsafe { pgrx::direct_function_call(pg_sys::pg_describe_object, &arguments) });
    text.unwrap_or_default()
}

/// Whether a relation is found by its unqualified name under the current search_path.
pub fn is_visible(relation: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in syscaches; the caller has found the relation in the catalog. An error is raised where it has gone since.
    unsafe { pg_sys::RelationIsVisible(relation) }
}

/// Whether there is a schema of this name.
pub fn schema_exists(name: &str) -> Result<bool, UserError> {
    let sql = "SELECT true FROM pg_namespace WHERE nspname = $1::text";
    Ok(fetch::<bool>(sql, &[name.into()])?.is_some())
}

/// Drops tables as the current role, in one statement, because they may refer to each other.
pub fn drop_tables(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let names = fetch::<String>(
        "SELECT string_agg(t::regclass::text, ', ') FROM unnest($1) AS t",
        &[tables.to_vec().into()],
    )?;
    names.map_or(Ok(()), |names| in_session::run(&format!("DROP TABLE {names}"), &[]).map(drop))
}

/// Returns the tables, and then all of their partitions. Locks none.
pub fn with_partitions(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    let partitions = fetch::<Vec<pg_sys::Oid>>(
        "WITH RECURSIVE tree (relation) AS ( \
             SELECT t FROM unnest($1) AS t \
             UNION \
             SELECT c.oid FROM tree JOIN pg_inherits i ON i.inhparent = tree.relation \
             JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition) \
         SELECT array_agg(relation ORDER BY relation) FROM tree \
         WHERE relation <> ALL ($1)",
        &[tables.to_vec().into()],
    )?;
    Ok([tables, &partitions.unwrap_or_default()].concat())
}

/// Returns the number of levels of a B-tree from its meta page (BTMetaPageData in access/nbtree.h); 0 for an empty one, `None`
/// for another index. pageinspect's bt_metap shows one less.
pub fn btree_levels(index: pg_sys::Oid) -> Option<i32> {
    #[repr(C)]
    struct MetaPage {
        magic: u32,
        version: u32,
        root: u32,
        level: u32,
    }
    const MAGIC: u32 = 0x053162;
    const PAGE_HEADER: usize = 24;
    // SAFETY: the index is locked, the page pinned and locked while it is read; a page's contents begin after a
    // header of 24 bytes (SizeOfPageHeaderData, a multiple of eight), and are longer than this.
    unsafe {
        let relation = pg_sys::index_open(index, pg_sys::AccessShareLock as i32);
        let buffer = pg_sys::ReadBuffer(relation, 0);
        lock_page(buffer, SHARE);
        let contents = pg_sys::BufferGetBlock(buffer).cast::<u8>().add(PAGE_HEADER);
        let meta = &*contents.cast::<MetaPage>();
        let levels = (meta.magic == MAGIC).then_some(if meta.root == 0 { 0 } else { meta.level as i32 + 1 });
        let _ = meta.version;
        pg_sys::UnlockReleaseBuffer(buffer);
        pg_sys::index_close(relation, pg_sys::AccessShareLock as i32);
        levels
    }
}

/// Checks a B-tree index against its table with amcheck's bt_index_check(regclass, boolean), given by its OID.
///
/// # Errors
/// Those of the function are raised, including its findings.
pub fn check_btree(function: pg_sys::Oid, index: pg_sys::Oid) -> Result<(), UserError> {
    // SAFETY: the caller has found the function of these arguments in the catalog; where it has gone, the server raises an error. It
    // returns void.
    unsafe {
        pg_sys::OidFunctionCall2Coll(
            function,
            pg_sys::InvalidOid,
            pg_sys::Datum::from(index),
            pg_sys::Datum::from(true),
        );
    }
    Ok(())
}

/// Locks a relation until the transaction ends, or until [`unlock`].
pub fn lock(relation: pg_sys::Oid, mode: u32) {
    // SAFETY: a lock that the transaction gives back.
    unsafe { pg_sys::LockRelationOid(relation, mode as i32) };
}

/// Locks a relation until the transaction ends, or returns false if another session holds a conflicting lock.
pub fn try_lock(relation: pg_sys::Oid, mode: u32) -> bool {
    // SAFETY: a lock that the transaction gives back.
    unsafe { pg_sys::ConditionalLockRelationOid(relation, mode as i32) }
}

/// Releases a lock of [`lock`] before the transaction ends.
pub fn unlock(relation: pg_sys::Oid, mode: u32) {
    // SAFETY: a lock that is not held is a WARNING.
    unsafe { pg_sys::UnlockRelationOid(relation, mode as i32) };
}

/// Whether two modes of storage/lockdefs.h conflict.
pub fn do_conflict(mode: i32, other: i32) -> bool {
    // SAFETY: a table look-up of the lock manager's, by numbers of lock modes.
    mode != 0 && unsafe { pg_sys::DoLockModesConflict(mode, other) }
}

/// Converts pg_locks.mode to a number of storage/lockdefs.h; 0 for other texts.
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

/// An advisory lock of the extension's own, by three numbers. Its fourth field is 3, where SQL's advisory locks have 1 or 2, so
/// that SQL cannot take it.
pub struct OwnLock(pg_sys::LOCKTAG);

impl OwnLock {
    /// Creates the lock's tag. `database` is 0 for locks of the whole server.
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

    /// Takes the lock until [`Self::release`] or the end of the (sub)transaction, waiting for it if necessary.
    pub fn acquire(&self) {
        // SAFETY: a valid tag; the transaction gives the lock back.
        unsafe { pg_sys::LockAcquire(&raw const self.0, pg_sys::ExclusiveLock as i32, false, false) };
    }

    /// Takes the lock until this process ends, or returns false if another process holds it.
    pub fn try_acquire_for_session(&self) -> bool {
        // SAFETY: a valid tag; the server gives a session's lock back when the process ends.
        let taken =
            unsafe { pg_sys::LockAcquire(&raw const self.0, pg_sys::ExclusiveLock as i32, true, true) };
        taken != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }

    /// Releases the lock before the transaction ends.
    pub fn release(self) {
        // SAFETY: a valid tag; a lock that is not held is a WARNING.
        unsafe { pg_sys::LockRelease(&raw const self.0, pg_sys::ExclusiveLock as i32, false) };
    }
}

/// Whether another session waits for a lock of this one, directly or through other sessions.
pub fn is_blocked_by_me(pid: i32) -> bool {
    // A memory context of its own, because this is called repeatedly in one transaction.
    let mut context = pgrx::PgMemoryContexts::new("pgbench_ext blockers");
    // SAFETY: nothing allocated in the context is used afterwards.
    unsafe { context.switch_to(|_| is_in_wait_chain_of(pid)) }
}

fn is_in_wait_chain_of(pid: i32) -> bool {
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
