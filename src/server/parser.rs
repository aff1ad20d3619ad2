//! The server's own parser.

use std::ffi::{CString, c_char};

use bench_core::error::UserError;
use pgrx::pg_sys;

use crate::error::internal;

unsafe extern "C-unwind" {
    fn pg_parse_query(text: *const c_char) -> *mut pg_sys::List;
}

/// Whether a text is one SELECT, without INTO.
///
/// # Errors
/// The parser's own errors are raised.
pub fn is_one_select(query: &str) -> Result<bool, UserError> {
    let text = CString::new(query).map_err(|e| internal(e.to_string()))?;
    // SAFETY: a NUL-terminated text; the parser's list has one element at least where its length says so.
    Ok(unsafe {
        let statements = pg_sys::ffi::pg_guard_ffi_boundary(|| pg_parse_query(text.as_ptr()));
        !statements.is_null() && (*statements).length == 1 && {
            let statement: *mut pg_sys::RawStmt = (*(*statements).elements).ptr_value.cast();
            let node = (*statement).stmt;
            (*node).type_ == pg_sys::NodeTag::T_SelectStmt
                && (*node.cast::<pg_sys::SelectStmt>()).intoClause.is_null()
        }
    })
}
