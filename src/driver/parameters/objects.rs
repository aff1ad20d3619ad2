//! The objects that a statement uses itself.

use std::ffi::c_void;

use pgrx::{pg_guard, pg_sys};

/// An object, as pg_depend knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// The catalog that it is in.
    pub class: pg_sys::Oid,
    pub id: pg_sys::Oid,
}

/// Returns what a query itself uses: its relations, which are given, and its functions, operators and types.
///
/// # Safety
/// A live query.
pub(super) unsafe fn objects_of(query: *mut pg_sys::Query, relations: &[pg_sys::Oid]) -> Vec<Object> {
    let relation = |&id: &pg_sys::Oid| Object { class: pg_sys::RelationRelationId, id };
    let mut objects: Vec<Object> = relations.iter().map(relation).collect();
    // SAFETY: by the caller; the walk only reads, and the objects outlive it.
    unsafe { visit(query.cast(), (&raw mut objects).cast()) };
    objects.sort_unstable_by_key(|object| (object.class.to_u32(), object.id.to_u32()));
    objects.dedup();
    objects
}

/// Collects the functions, operators and types of a tree, at any depth.
#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called with live nodes and with the list that `objects_of` has given, borrowed for one node at a time. A node's
    // tag says what it is; exprType takes each of those that it is called with.
    unsafe {
        if node.is_null() {
            return false;
        }
        let objects = context.cast::<Vec<Object>>();
        let of_type = |id| Object { class: pg_sys::TypeRelationId, id };
        let operator = |id| Object { class: pg_sys::OperatorRelationId, id };
        pg_sys::check_functions_in_node(node, Some(add_function), context);
        match (*node).type_ {
            T_Query => return pg_sys::query_tree_walker(node.cast(), Some(visit), context, 0),
            T_Var | T_Const | T_Param | T_CoerceToDomain | T_CoerceViaIO | T_RelabelType | T_RowExpr
            | T_ArrayCoerceExpr | T_ConvertRowtypeExpr | T_MinMaxExpr | T_FuncExpr | T_ArrayExpr => {
                (*objects).push(of_type(pg_sys::exprType(node)));
            }
            T_OpExpr | T_DistinctExpr | T_NullIfExpr => {
                (*objects).push(operator((*node.cast::<pg_sys::OpExpr>()).opno));
            }
            T_ScalarArrayOpExpr => {
                (*objects).push(operator((*node.cast::<pg_sys::ScalarArrayOpExpr>()).opno));
            }
            T_SortGroupClause => {
                let clause: *const pg_sys::SortGroupClause = node.cast();
                (*objects).push(operator((*clause).eqop));
                (*objects).push(operator((*clause).sortop));
            }
            _ => {}
        }
        pg_sys::expression_tree_walker(node, Some(visit), context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn add_function(id: pg_sys::Oid, context: *mut c_void) -> bool {
    let function = Object { class: pg_sys::ProcedureRelationId, id };
    // SAFETY: the list that `visit` passes on, which nobody else borrows now.
    unsafe { (*context.cast::<Vec<Object>>()).push(function) };
    false
}
