//! The server's List, as far as it is read here.

use pgrx::pg_sys;

/// # Safety
/// NULL or a live list.
pub unsafe fn list_length(list: *mut pg_sys::List) -> i32 {
    // SAFETY: by the caller.
    if list.is_null() { 0 } else { unsafe { (*list).length } }
}

/// # Safety
/// A live list of pointers with at least one element.
pub unsafe fn list_first(list: *mut pg_sys::List) -> *mut std::ffi::c_void {
    // SAFETY: by the caller.
    unsafe { (*(*list).elements).ptr_value }
}
