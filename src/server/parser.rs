//! The server's own parser.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use bench_base::error::UserError;
use pgrx::pg_sys;

use crate::error::internal;

unsafe extern "C-unwind" {
    fn pg_parse_query(text: *const c_char) -> *mut pg_sys::List;
    fn geterrposition() -> c_int;
    fn errposition(position: c_int) -> c_int;
    fn internalerrposition(position: c_int) -> c_int;
    fn internalerrquery(text: *const c_char) -> c_int;
}

/// Does what may raise errors with places in a text: they are shown with this text, and not as places in the statement that the
/// session executes.
pub fn in_text<T>(text: &CStr, work: impl FnOnce() -> T) -> T {
    /// Takes the entry of this call out again, also where an error comes through.
    struct Back(*mut pg_sys::ErrorContextCallback);
    impl Drop for Back {
        fn drop(&mut self) {
            // SAFETY: the server's own global, back to what it was before this call, whose frames are alive.
            unsafe { pg_sys::error_context_stack = self.0 };
        }
    }
    /// As _SPI_error_callback (executor/spi.c) does it.
    unsafe extern "C-unwind" fn place(text: *mut c_void) {
        // SAFETY: an error is being reported within `in_text`, whose text this is.
        unsafe {
            let position = geterrposition();
            if position > 0 {
                errposition(0);
                internalerrposition(position);
                internalerrquery(text.cast());
            }
        }
    }
    // SAFETY: reads the server's own global.
    let previous = unsafe { pg_sys::error_context_stack };
    let arg = text.as_ptr().cast_mut().cast();
    let mut entry = pg_sys::ErrorContextCallback { previous, callback: Some(place), arg };
    let _back = Back(previous);
    // SAFETY: the entry is in this frame, and taken out before that ends.
    unsafe { pg_sys::error_context_stack = &raw mut entry };
    work()
}

/// The statements of a text, raw, in the current memory context.
///
/// # Errors
/// The parser's own are raised, with their places in this text.
pub fn parse(text: &CStr) -> *mut pg_sys::List {
    // SAFETY: a NUL-terminated text.
    in_text(text, || unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| pg_parse_query(text.as_ptr())) })
}

/// Whether a text is one SELECT, without INTO.
///
/// # Errors
/// The parser's own errors are raised.
pub fn is_one_select(query: &str) -> Result<bool, UserError> {
    let text = CString::new(query).map_err(|e| internal(e.to_string()))?;
    // SAFETY: a NUL-terminated text; the parser's list has one element at least where its length says so.
    Ok(unsafe {
        let statements = parse(&text);
        !statements.is_null() && (*statements).length == 1 && {
            let statement: *mut pg_sys::RawStmt = (*(*statements).elements).ptr_value.cast();
            let node = (*statement).stmt;
            (*node).type_ == pg_sys::NodeTag::T_SelectStmt
                && (*node.cast::<pg_sys::SelectStmt>()).intoClause.is_null()
        }
    })
}

/// An index as its CREATE INDEX names it.
pub struct NamedIndex {
    pub name: String,
    /// Without a schema.
    pub table: String,
}

/// The index that a text makes; `None` where it is anything but one CREATE INDEX with a name, on a table without a schema.
///
/// # Errors
/// The parser's own errors are raised.
pub fn named_index(text: &str) -> Result<Option<NamedIndex>, UserError> {
    let text = CString::new(text).map_err(|e| internal(e.to_string()))?;
    let name = |name: *const c_char| {
        // SAFETY: NUL-terminated by the parser, in the current memory context, or NULL.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    };
    // SAFETY: a NUL-terminated text; the parser's list has one element at least where its length says so, and a node is of the
    // type that its tag says; an IndexStmt of the grammar has a relation.
    Ok(unsafe {
        let statements = parse(&text);
        if statements.is_null() || (*statements).length != 1 {
            return Ok(None);
        }
        let statement: *mut pg_sys::RawStmt = (*(*statements).elements).ptr_value.cast();
        let node = (*statement).stmt;
        if (*node).type_ != pg_sys::NodeTag::T_IndexStmt {
            return Ok(None);
        }
        let index: *mut pg_sys::IndexStmt = node.cast();
        let relation = (*index).relation;
        if !(*relation).schemaname.is_null() || (*index).concurrent {
            return Ok(None);
        }
        name((*index).idxname).zip(name((*relation).relname)).map(|(name, table)| NamedIndex { name, table })
    })
}
