//! Nodes of a query tree, their types, and the operators beside parameters.

use std::ffi::{CStr, c_void};

use pgrx::pg_sys;

use super::How;
use crate::server::query::list_length;

/// # Safety
/// A live list of pointers that is longer than `place`.
pub(super) unsafe fn nth(list: *mut pg_sys::List, place: usize) -> *mut pg_sys::Node {
    // SAFETY: by the caller.
    unsafe { (*(*list).elements.add(place)).ptr_value.cast() }
}

/// # Safety
/// A live node, or NULL.
pub(super) unsafe fn is_a(node: *mut pg_sys::Node, tag: pg_sys::NodeTag) -> bool {
    // SAFETY: by the caller.
    unsafe { !node.is_null() && (*node).type_ == tag }
}

/// Without casts that the parser has put around it.
///
/// # Safety
/// A live expression.
pub(super) unsafe fn bare(mut node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    use pg_sys::NodeTag::*;
    // SAFETY: tags say what the nodes are.
    unsafe {
        while !node.is_null() {
            node = match (*node).type_ {
                T_RelabelType => (*node.cast::<pg_sys::RelabelType>()).arg.cast(),
                T_CoerceViaIO => (*node.cast::<pg_sys::CoerceViaIO>()).arg.cast(),
                T_ArrayCoerceExpr => (*node.cast::<pg_sys::ArrayCoerceExpr>()).arg.cast(),
                T_CoerceToDomain => (*node.cast::<pg_sys::CoerceToDomain>()).arg.cast(),
                T_CollateExpr => (*node.cast::<pg_sys::CollateExpr>()).arg.cast(),
                T_ConvertRowtypeExpr => (*node.cast::<pg_sys::ConvertRowtypeExpr>()).arg.cast(),
                T_FuncExpr => {
                    let call: *mut pg_sys::FuncExpr = node.cast();
                    if (*call).funcformat == pg_sys::CoercionForm::COERCE_EXPLICIT_CALL
                        || list_length((*call).args) == 0
                    {
                        return node;
                    }
                    nth((*call).args, 0)
                }
                _ => return node,
            };
        }
        node
    }
}

/// Whether an expression has the same value for all rows of a statement.
///
/// # Safety
/// A live expression.
pub(super) unsafe fn is_without_variables(node: *mut pg_sys::Node) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn has(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
        use pg_sys::NodeTag::*;
        // SAFETY: called by the walker with live nodes.
        unsafe {
            !node.is_null()
                && (matches!((*node).type_, T_Var | T_Param | T_SubLink | T_Aggref | T_Query | T_WindowFunc)
                    || pg_sys::expression_tree_walker(node, Some(has), context))
        }
    }
    // SAFETY: by the caller.
    unsafe { !has(node, std::ptr::null_mut()) && !pg_sys::contain_volatile_functions(node) }
}

/// An operator's name; empty where it has gone.
pub(super) fn name_of(operator: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up inside a transaction; a palloc'd string, or NULL.
    unsafe {
        match pg_sys::get_opname(operator) {
            name if name.is_null() => String::new(),
            name => CStr::from_ptr(name).to_string_lossy().into_owned(),
        }
    }
}

/// How a parameter meets what is on the other side of an operator: to its left, or swapped to its right.
pub(super) fn how(operator: &str, is_swapped: bool) -> How {
    match (operator, is_swapped) {
        ("=", _) => How::Equal,
        ("<>", _) => How::Unequal,
        (">" | ">=", false) | ("<" | "<=", true) => How::Above,
        ("<" | "<=", false) | (">" | ">=", true) => How::Below,
        ("~~" | "~~*", false) => How::Like,
        _ => How::Operator,
    }
}

/// A row's object of one of the fields that its object has: who asks what contains something asks for a part.
pub(super) fn one_of_object(expression: &str) -> String {
    format!(
        "CASE WHEN pg_catalog.jsonb_typeof({expression}) = 'object' THEN (SELECT pg_catalog.jsonb_build_object(j.key, j.value) \
         FROM pg_catalog.jsonb_each({expression}) AS j ORDER BY pg_catalog.random() LIMIT 1) END"
    )
}

/// An element of a row's array, from 0: of one that is shorter, one that it has.
pub(super) fn element(array: &str, at: usize) -> String {
    match at {
        0 => format!("({array})[1]"),
        _ => format!(
            "({array})[1 OPERATOR(pg_catalog.+) pg_catalog.mod({at}, greatest(pg_catalog.cardinality({array}), 1))]"
        ),
    }
}

/// What a type, or that below a domain, is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeShape {
    Array,
    Range,
    Multirange,
    Other(pg_sys::Oid),
}

/// That of a type.
///
/// # Errors
/// The server's are raised for an OID that is no type's.
pub fn shape_of(type_oid: pg_sys::Oid) -> TypeShape {
    // SAFETY: catalog look-ups inside a transaction.
    unsafe {
        let base = pg_sys::getBaseType(type_oid);
        if pg_sys::type_is_range(base) {
            TypeShape::Range
        } else if pg_sys::type_is_multirange(base) {
            TypeShape::Multirange
        } else if pg_sys::get_element_type(base) != pg_sys::InvalidOid {
            TypeShape::Array
        } else {
            TypeShape::Other(base)
        }
    }
}

/// How values of a type are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TextMask {
    /// Not at all: numbers, times, truth values, labels of enums, addresses and identifiers.
    Keep,
    /// As a text, or an array of texts.
    Text,
    /// The texts in it.
    Json,
}

/// How values of a type are masked; `None`: they may hold texts, and nothing is known that hides these.
///
/// # Errors
/// The server's are raised for an OID that is no type's.
pub fn text_mask(type_oid: pg_sys::Oid) -> Option<TextMask> {
    // SAFETY: catalog look-ups inside a transaction.
    let (base, is_array, category) = unsafe {
        let base = pg_sys::getBaseType(type_oid);
        let element = pg_sys::get_element_type(base);
        let is_array = element != pg_sys::InvalidOid;
        let base = if is_array { pg_sys::getBaseType(element) } else { base };
        let (mut category, mut is_preferred): (std::ffi::c_char, bool) = (0, false);
        pg_sys::get_type_category_preferred(base, &raw mut category, &raw mut is_preferred);
        (base, is_array, u8::from_ne_bytes(category.to_ne_bytes()))
    };
    // Categories as in the manual's pg_type.
    match (category, base) {
        (b'S' | b'Z', _) => Some(TextMask::Text),
        (_, pg_sys::JSONOID | pg_sys::JSONBOID) => (!is_array).then_some(TextMask::Json),
        (b'B' | b'D' | b'E' | b'G' | b'I' | b'N' | b'R' | b'T' | b'V', _) => Some(TextMask::Keep),
        (
            _,
            pg_sys::UUIDOID | pg_sys::PG_LSNOID | pg_sys::MACADDROID | pg_sys::MACADDR8OID | pg_sys::TIDOID,
        ) => Some(TextMask::Keep),
        _ => None,
    }
}

/// A type as the server writes it.
pub(super) fn type_name(type_oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up inside a transaction; a palloc'd string.
    unsafe { CStr::from_ptr(pg_sys::format_type_be_qualified(type_oid)).to_string_lossy().into_owned() }
}

/// Whether a type is one of ranges or multiranges.
pub(super) fn is_range(type_oid: pg_sys::Oid) -> bool {
    matches!(shape_of(type_oid), TypeShape::Range | TypeShape::Multirange)
}

/// `pg_catalog.set_config(text, text, boolean)`.
pub(super) const SET_CONFIG: u32 = 2078;

/// Whether a query calls a volatile function, which may write, other than `set_config`.
///
/// # Safety
/// A live query.
pub(super) unsafe fn may_write(query: *mut pg_sys::Query) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn is_writer(function: pg_sys::Oid, _context: *mut c_void) -> bool {
        let is_volatile = std::ffi::c_char::from_ne_bytes([pg_sys::PROVOLATILE_VOLATILE]);
        // SAFETY: a catalog look-up inside a transaction.
        function.to_u32() != SET_CONFIG && unsafe { pg_sys::func_volatile(function) == is_volatile }
    }
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn has(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
        use pg_sys::NodeTag::*;
        // SAFETY: called by the walker with live nodes, whose tags say what they are. As contain_volatile_functions_walker in
        // the server's clauses.c does it.
        unsafe {
            if node.is_null() {
                return false;
            }
            match (*node).type_ {
                T_NextValueExpr => true,
                T_Query => pg_sys::query_tree_walker(node.cast(), Some(has), context, 0),
                _ => {
                    pg_sys::check_functions_in_node(node, Some(is_writer), context)
                        || pg_sys::expression_tree_walker(node, Some(has), context)
                }
            }
        }
    }
    // SAFETY: by the caller.
    unsafe { has(query.cast(), std::ptr::null_mut()) }
}

/// Whether a function is one by which an administrator acts on the server: what monitoring has done once is not to be done a
/// thousand times a second.
pub(super) fn is_administration(function: pg_sys::Oid, name: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "pg_backup_",
        "pg_cancel_backend",
        "pg_create_",
        "pg_drop_replication_slot",
        "pg_log_backend_memory_contexts",
        "pg_logical_",
        "pg_promote",
        "pg_reload_conf",
        "pg_replication_",
        "pg_rotate_logfile",
        "pg_stat_reset",
        "pg_switch_wal",
        "pg_terminate_backend",
        "pg_wal_replay_",
    ];
    let is_builtin = function.to_u32() < pg_sys::FirstNormalObjectId;
    is_builtin && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}
