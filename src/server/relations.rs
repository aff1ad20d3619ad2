//! Tables and schemas, by their OIDs and names.

use std::ffi::CStr;

use bench_base::error::UserError;
use pgrx::datum::IntoDatum;
use pgrx::pg_sys;

use super::buffers::{SHARE, lock};
use super::local_settings::with_own_syntax;
use super::spi::{fetch, in_session};
use crate::error::internal;

/// The owner of a table.
///
/// # Errors
/// XX000 for a table that is gone.
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

/// The relation that a name means under the search_path in effect, as to_regclass has it.
pub fn named(name: &str) -> Option<pg_sys::Oid> {
    // SAFETY: to_regclass(text), with one argument that is not NULL.
    unsafe { pgrx::direct_function_call(pg_sys::to_regclass, &[name.into_datum()]) }
}

/// A relation's name as the session writes it: with its schema where that is not on the search_path in effect.
pub fn shown_name(relation: pg_sys::Oid) -> String {
    // SAFETY: regclassout(regclass), with one argument that is not NULL.
    let name: Option<&CStr> = with_own_syntax(|| unsafe {
        pgrx::direct_function_call(pg_sys::regclassout, &[relation.into_datum()])
    });
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// The statement that makes an index, with names as the session writes them.
pub fn index_definition(index: pg_sys::Oid) -> String {
    // SAFETY: pg_get_indexdef(oid), with one argument that is not NULL.
    let text: Option<String> = with_own_syntax(|| unsafe {
        pgrx::direct_function_call(pg_sys::pg_get_indexdef, &[index.into_datum()])
    });
    text.unwrap_or_default()
}

/// What an object of the catalog is, and its name as the session writes it.
pub fn described(class: pg_sys::Oid, object: pg_sys::Oid) -> String {
    let arguments = [class.into_datum(), object.into_datum(), 0i32.into_datum()];
    // SAFETY: pg_describe_object(oid, oid, int4), with arguments that are not NULL.
    let text: Option<String> =
        with_own_syntax(|| unsafe { pgrx::direct_function_call(pg_sys::pg_describe_object, &arguments) });
    text.unwrap_or_default()
}

/// Whether a relation's bare name means it under the search_path in effect.
pub fn is_visible(relation: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in syscaches; the caller has found the relation in the catalog. An error is raised where it has gone since.
    unsafe { pg_sys::RelationIsVisible(relation) }
}

/// Whether there is a schema of this name.
pub fn schema_exists(name: &str) -> Result<bool, UserError> {
    let sql = "SELECT true FROM pg_namespace WHERE nspname = $1::text";
    Ok(fetch::<bool>(sql, &[name.into()])?.is_some())
}

/// Drops tables, as the current role: all at once, for they may refer to each other.
pub fn drop_tables(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let names = fetch::<String>(
        "SELECT string_agg(t::regclass::text, ', ') FROM unnest($1) AS t",
        &[tables.to_vec().into()],
    )?;
    names.map_or(Ok(()), |names| in_session::run(&format!("DROP TABLE {names}"), &[]).map(drop))
}

/// Tables, and then the partitions that they have, without a lock on any.
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

/// Levels of a B-tree, from the root to the leaves: 0 for an empty one.
///
/// It is the meta page that tells (BTMetaPageData in access/nbtree.h); pageinspect's bt_metap shows
/// one less, as it counts the leaves' level as 0.
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
        lock(buffer, SHARE);
        let contents = pg_sys::BufferGetBlock(buffer).cast::<u8>().add(PAGE_HEADER);
        let meta = &*contents.cast::<MetaPage>();
        let levels = (meta.magic == MAGIC).then_some(if meta.root == 0 { 0 } else { meta.level as i32 + 1 });
        let _ = meta.version;
        pg_sys::UnlockReleaseBuffer(buffer);
        pg_sys::index_close(relation, pg_sys::AccessShareLock as i32);
        levels
    }
}

/// Compares a B-tree index with its table, by amcheck's bt_index_check(regclass, boolean), given by its OID.
///
/// # Errors
/// Those of the function are raised, of an index that does not agree with its table as well.
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
