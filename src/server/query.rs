//! Users' own queries, whose columns nobody knows beforehand.

use std::ffi::{CStr, CString};

use bench_core::error::UserError;
use pgrx::{Spi, pg_sys};

use crate::error::internal;

/// A column of a query's result.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub type_oid: pg_sys::Oid,
}

/// What the server's analysis says of a query.
pub struct Described {
    pub columns: Vec<Column>,
    /// It inserts, updates, deletes or locks rows.
    pub writes: bool,
}

/// Analyses one SELECT without executing it.
///
/// # Errors
/// Those of the server are raised.
pub fn describe(query: &str) -> Result<Described, UserError> {
    let query = CString::new(query).map_err(|e| internal(e.to_string()))?;
    Spi::connect(|_| {
        // SAFETY: inside an SPI connection, which frees the plan; SPI_prepare returns NULL or a plan, whose list of sources has
        // as many elements as it says, each with the analysed statements and the result's description.
        unsafe {
            let plan = pg_sys::SPI_prepare(query.as_ptr(), 0, std::ptr::null_mut());
            if plan.is_null() {
                let code = pg_sys::SPI_result;
                return Err(internal(format!("unexpected SPI result: {code}")));
            }
            let sources = pg_sys::SPI_plan_get_plan_sources(plan);
            if sources.is_null() || (*sources).length != 1 {
                return Err(internal("a query of several statements"));
            }
            let source: *mut pg_sys::CachedPlanSource = (*(*sources).elements).ptr_value.cast();
            let queries = (*source).query_list;
            let length = if queries.is_null() { 0 } else { (*queries).length as usize };
            let mut writes = length != 1;
            for at in 0..length {
                let analysed: *mut pg_sys::Query = (*(*queries).elements.add(at)).ptr_value.cast();
                writes |= (*analysed).commandType != pg_sys::CmdType::CMD_SELECT
                    || (*analysed).hasModifyingCTE
                    || !(*analysed).rowMarks.is_null();
            }
            Ok(Described { columns: columns((*source).resultDesc), writes })
        }
    })
}

/// How many rows are fetched at a time.
const ROWS_AT_ONCE: i64 = 1000;

/// A row that has been fetched.
pub struct FetchedRow {
    tuple: pg_sys::HeapTuple,
    description: pg_sys::TupleDesc,
}

impl FetchedRow {
    /// A column's value as its type's output function writes it, in the server's encoding; `None` for NULL.
    pub fn text(&self, column: usize) -> Option<&CStr> {
        // SAFETY: tuple and description are of the fetch that `read` is at, whose memory is kept until its rows have been
        // seen; SPI_getvalue returns NULL or a palloc'd text, there too.
        unsafe {
            let text = pg_sys::SPI_getvalue(self.tuple, self.description, column as i32 + 1);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }
    }
}

/// Reads a query's rows through a cursor, as a read-only function does; with the latest snapshot, so that what workers have
/// committed meanwhile is there. `begin` is told the columns.
///
/// # Errors
/// Those of the closures; the server's are raised.
pub fn read(
    query: &str,
    begin: impl FnOnce(Vec<Column>) -> Result<(), UserError>,
    mut row: impl FnMut(&FetchedRow) -> Result<bool, UserError>,
) -> Result<(), UserError> {
    let query = CString::new(query).map_err(|e| internal(e.to_string()))?;
    // SAFETY: inside a transaction; popped below, or by the abort after an error.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
    let result = Spi::connect(|_| {
        // SAFETY: inside an SPI connection, which frees plan and portal where an error leaves them; a portal has a description
        // when its query returns rows, and SPI_tuptable has as many tuples as SPI_processed says.
        unsafe {
            let plan = pg_sys::SPI_prepare(query.as_ptr(), 0, std::ptr::null_mut());
            if plan.is_null() || !pg_sys::SPI_is_cursor_plan(plan) {
                return Err(internal("a query that returns no rows"));
            }
            let none = std::ptr::null_mut();
            let portal = pg_sys::SPI_cursor_open(std::ptr::null(), plan, none, std::ptr::null(), true);
            begin(columns((*portal).tupDesc))?;
            let mut goes_on = true;
            while goes_on {
                pg_sys::SPI_cursor_fetch(portal, true, ROWS_AT_ONCE as _);
                let table = pg_sys::SPI_tuptable;
                let count = pg_sys::SPI_processed as usize;
                if table.is_null() || count == 0 {
                    break;
                }
                // What the output functions leave goes with the table.
                let before = pg_sys::MemoryContextSwitchTo((*table).tuptabcxt);
                for at in 0..count {
                    let tuple = *(*table).vals.add(at);
                    goes_on = row(&FetchedRow { tuple, description: (*table).tupdesc })?;
                    if !goes_on {
                        break;
                    }
                }
                pg_sys::MemoryContextSwitchTo(before);
                pg_sys::SPI_freetuptable(table);
            }
            pg_sys::SPI_cursor_close(portal);
            Ok(())
        }
    });
    // SAFETY: the one that was pushed above; an error that the closures return has left it, and the portal, as they were.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

/// # Safety
/// NULL or a valid description.
pub(super) unsafe fn columns(description: pg_sys::TupleDesc) -> Vec<Column> {
    // SAFETY: the caller vouches for it; a description has as many attributes as it says.
    unsafe {
        if description.is_null() {
            return Vec::new();
        }
        (1..=(*description).natts)
            .map(|number| {
                let name = pg_sys::SPI_fname(description, number);
                Column {
                    name: CStr::from_ptr(name).to_string_lossy().into_owned(),
                    type_oid: pg_sys::SPI_gettypeid(description, number),
                }
            })
            .collect()
    }
}
