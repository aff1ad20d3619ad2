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
