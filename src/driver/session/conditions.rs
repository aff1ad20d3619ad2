//! Whether planning a statement counts as index scans.
//!
//! For a comparison such as `id > 5` the planner wants to know the least and the greatest value of the column. Where an
//! index knows them it looks them up there (get_actual_variable_range, utils/adt/selfuncs.c), and each look is an
//! index scan in the server's statistics. How often that is depends on the values, the statistics of ANALYZE and the
//! number of plans made. Conditions of equality need no such look.

use std::ffi::c_void;

use pgrx::pg_sys;

use super::raw;
use crate::server::query::list_length;

/// Whether the planner may look up the ends of an index for one of the query's conditions.
///
/// # Safety
/// Inside a trap and a transaction, with a live query after rewriting: views and policies are part of it.
pub(super) unsafe fn look_at_index_ends(query: *mut pg_sys::Query) -> bool {
    // SAFETY: by the caller.
    unsafe { of_query(query, false) }
}

/// What a query puts out may become a condition of the one around it: `is_inner` says that there is one.
///
/// # Safety
/// As for [`look_at_index_ends`].
unsafe fn of_query(query: *mut pg_sys::Query, is_inner: bool) -> bool {
    // SAFETY: by the caller; the kinds say what the entries hold, and the walker takes NULL.
    unsafe {
        let none = std::ptr::null_mut();
        if of_node((*query).jointree.cast(), none)
            || of_node((*query).havingQual, none)
            || is_inner && of_node((*query).targetList.cast(), none)
        {
            return true;
        }
        for index in 0..list_length((*query).rtable) as usize {
            let entry: *mut pg_sys::RangeTblEntry =
                (*(*(*query).rtable).elements.add(index)).ptr_value.cast();
            let is_subquery = (*entry).rtekind == pg_sys::RTEKind::RTE_SUBQUERY;
            if of_node((*entry).securityQuals.cast(), none)
                || is_subquery && of_query((*entry).subquery, true)
            {
                return true;
            }
        }
        of_node((*query).cteList.cast(), none)
    }
}

/// The server's walker calls this for each node.
unsafe extern "C-unwind" fn of_node(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: nodes of a live query; the tag says what each is.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => of_query(node.cast(), true),
            // The three are one struct.
            pg_sys::NodeTag::T_OpExpr | pg_sys::NodeTag::T_DistinctExpr | pg_sys::NodeTag::T_NullIfExpr
                if is_range((*node.cast::<pg_sys::OpExpr>()).opno) =>
            {
                true
            }
            pg_sys::NodeTag::T_ScalarArrayOpExpr
                if is_range((*node.cast::<pg_sys::ScalarArrayOpExpr>()).opno) =>
            {
                true
            }
            pg_sys::NodeTag::T_RowCompareExpr => true,
            // As starts_with, which is planned like the comparison that it stands for.
            pg_sys::NodeTag::T_FuncExpr
                if (*node.cast::<pg_sys::FuncExpr>()).funcresulttype == pg_sys::BOOLOID =>
            {
                true
            }
            _ => raw::walk_expression(node, of_node, context),
        }
    }
}

/// Whether a condition with this operator is estimated by more than the values that are equal. An operator without an
/// estimate, as `+`, is no condition by itself.
///
/// # Safety
/// Inside a trap and a transaction.
unsafe fn is_range(operator: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the server's cache.
    let estimate = unsafe { raw::get_oprrest(operator) }.to_u32();
    ![0, pg_sys::F_EQSEL, pg_sys::F_NEQSEL].contains(&estimate)
}
