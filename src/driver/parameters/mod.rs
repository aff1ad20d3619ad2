//! Finds the columns that a statement's parameters are compared with or written to: the server infers the parameters' types,
//! and a walk over the query tree looks for the column beside each parameter.
//!
//! Unlike a client's loop, this code calls the server through guards, so that an ERROR unwinds like a panic.

mod analysis;
mod columns;

use std::ffi::{CStr, c_void};

use pgrx::{pg_guard, pg_sys};

use crate::server::query::list_length;

pub use analysis::{analyse, analyse_with_texts};

/// # Safety
/// A live list of pointers that is longer than `index`.
pub(super) unsafe fn nth(list: *mut pg_sys::List, index: usize) -> *mut pg_sys::Node {
    // SAFETY: by the caller.
    unsafe { (*(*list).elements.add(index)).ptr_value.cast() }
}

/// Iterates over a list whose elements point to values of type `T`.
///
/// # Safety
/// NULL or a list of such pointers that lives, and is not changed, as long as the iterator.
pub(super) unsafe fn nodes<T>(list: *mut pg_sys::List) -> impl Iterator<Item = *mut T> {
    // SAFETY: by the caller; only elements of the list are read.
    unsafe {
        let length = list_length(list) as usize;
        (0..length).map(move |index| nth(list, index).cast())
    }
}

/// # Safety
/// A live node, or NULL.
pub(super) unsafe fn is_a(node: *mut pg_sys::Node, tag: pg_sys::NodeTag) -> bool {
    // SAFETY: by the caller.
    unsafe { !node.is_null() && (*node).type_ == tag }
}

/// Returns an expression without the casts and collations around it.
///
/// # Safety
/// A live expression, or NULL.
pub(super) unsafe fn strip_casts(mut node: *mut pg_sys::Node) -> *mut pg_sys::Node {
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

/// Returns whether an expression contains no columns, parameters, subqueries, aggregates or volatile functions.
///
/// # Safety
/// A live expression.
pub(super) unsafe fn is_pseudoconstant(node: *mut pg_sys::Node) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn depends_on_row(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
        use pg_sys::NodeTag::*;
        // SAFETY: called by the walker with live nodes.
        unsafe {
            !node.is_null()
                && (matches!((*node).type_, T_Var | T_Param | T_SubLink | T_Aggref | T_Query | T_WindowFunc)
                    || pg_sys::expression_tree_walker(node, Some(depends_on_row), context))
        }
    }
    // SAFETY: by the caller.
    unsafe { !depends_on_row(node, std::ptr::null_mut()) && !pg_sys::contain_volatile_functions(node) }
}

/// Returns an operator's name; empty if it has been dropped.
pub(super) fn operator_name(operator: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up inside a transaction; a palloc'd string, or NULL.
    unsafe {
        match pg_sys::get_opname(operator) {
            name if name.is_null() => String::new(),
            name => CStr::from_ptr(name).to_string_lossy().into_owned(),
        }
    }
}

/// Returns how an operator compares its left operand with a parameter on its right; `is_swapped`: its right one, on its left.
pub(super) fn comparison_kind(operator: &str, is_swapped: bool) -> How {
    match (operator, is_swapped) {
        ("=", _) => How::Equal,
        ("<>", _) => How::Unequal,
        (">" | ">=", false) | ("<" | "<=", true) => How::Above,
        ("<" | "<=", false) | (">" | ">=", true) => How::Below,
        ("~~" | "~~*", false) => How::Like,
        _ => How::Operator,
    }
}

/// Returns SQL for an object with one random field of a JSON object: `@>` searches for a part.
pub(super) fn sample_field_sql(expression: &str) -> String {
    format!(
        "CASE WHEN pg_catalog.jsonb_typeof({expression}) = 'object' THEN (SELECT pg_catalog.jsonb_build_object(j.key, j.value) \
         FROM pg_catalog.jsonb_each({expression}) AS j ORDER BY pg_catalog.random() LIMIT 1) END"
    )
}

/// Returns SQL for an array's element, from 0; in shorter arrays the index wraps around.
pub(super) fn array_element_sql(array: &str, index: usize) -> String {
    match index {
        0 => format!("({array})[1]"),
        _ => format!(
            "({array})[1 OPERATOR(pg_catalog.+) pg_catalog.mod({index}, greatest(pg_catalog.cardinality({array}), 1))]"
        ),
    }
}

/// The structure of a type, or of a domain's base type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeShape {
    Array,
    Range,
    Multirange,
    Other(pg_sys::Oid),
}

/// Returns the structure of a type.
///
/// # Errors
/// Raises the server's for an OID that is no type's.
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
    /// Not masked: numbers, times, booleans, enum labels, addresses and identifiers.
    Keep,
    /// A text or an array of texts, masked as a whole.
    Text,
    /// JSON, of which texts are masked.
    Json,
}

/// Returns how values of a type are masked; `None` for types that may contain texts in an unknown form.
///
/// # Errors
/// Raises the server's for an OID that is no type's.
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
    // Categories of the manual's table "typcategory Codes" (pg_type).
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

/// Returns a type's qualified name.
pub(super) fn type_name(type_oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up inside a transaction; a palloc'd string.
    unsafe { CStr::from_ptr(pg_sys::format_type_be_qualified(type_oid)).to_string_lossy().into_owned() }
}

/// Returns whether values of a type are ranges or multiranges.
pub(super) fn is_range(type_oid: pg_sys::Oid) -> bool {
    matches!(shape_of(type_oid), TypeShape::Range | TypeShape::Multirange)
}

/// `pg_catalog.set_config(text, text, boolean)`.
pub(super) const SET_CONFIG: u32 = 2078;

/// Returns whether a query calls a volatile function, which may write, other than `set_config`.
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
    unsafe extern "C-unwind" fn calls_writer(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
        use pg_sys::NodeTag::*;
        // SAFETY: called by the walker with live nodes. Follows contain_volatile_functions_walker in the server's clauses.c.
        unsafe {
            if node.is_null() {
                return false;
            }
            match (*node).type_ {
                T_NextValueExpr => true,
                T_Query => pg_sys::query_tree_walker(node.cast(), Some(calls_writer), context, 0),
                _ => {
                    pg_sys::check_functions_in_node(node, Some(is_writer), context)
                        || pg_sys::expression_tree_walker(node, Some(calls_writer), context)
                }
            }
        }
    }
    // SAFETY: by the caller.
    unsafe { calls_writer(query.cast(), std::ptr::null_mut()) }
}

/// Returns whether a function administers the server. Calls of monitoring must not be repeated a thousand times a second.
pub(super) fn is_administration(function: pg_sys::Oid, name: &str) -> bool {
    const PREFIXES: [&str; 14] = [
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
    is_builtin && PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// How a statement uses a parameter beside a column expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `=`, or an element of IN.
    Equal,
    /// `= ANY ($1)`.
    Array,
    /// `<>`.
    Unequal,
    /// `>` or `>=`, with the column on the left.
    Above,
    /// `<` or `<=`, with the column on the left.
    Below,
    /// LIKE and ILIKE.
    Like,
    /// A value of INSERT.
    Insert,
    /// A value of SET.
    Set,
    /// The query of a full text search; the expression is a tsvector.
    Words,
    /// Another operator that returns a boolean.
    Operator,
}

/// SQL that turns a row's value into the parameter's, such as `now() - column` for `column > now() - $1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    pub before: String,
    /// May contain other parameters.
    pub after: String,
    /// The type of the row's value.
    pub sql_type: String,
}

impl Wrap {
    /// Wraps a value of type `sql_type`.
    pub fn around(&self, value: &str) -> String {
        format!("{}{value}{}", self.before, self.after)
    }
}

/// The column expression that a parameter is compared with or written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Index among the statement's [`Occurrence`]s.
    pub occurrence: usize,
    /// SQL over the relation's columns. Inside `wrap`, if there is one, it gives the parameter's value for a row.
    pub expression: String,
    pub wrap: Option<Wrap>,
    /// The column, if the expression is a bare one.
    pub column: Option<i16>,
    pub how: How,
    /// Which row to take the value from, from 0, where several parameters need values of different rows.
    pub row: usize,
}

/// Where a parameter without a [`Meeting`] stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ParameterPlace {
    #[default]
    Elsewhere,
    /// LIMIT of the whole statement.
    Limit,
    /// LIMIT of a subquery.
    InnerLimit,
    Offset,
    /// A function's name, and the argument's index from 0.
    Argument(String, usize),
    /// An operand of an operator that does not return a boolean.
    Arithmetic,
    /// An operand of a comparison, for example with an aggregate.
    Compared,
}

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The qualified name of its type; empty if the statement does not mention the parameter.
    pub sql_type: String,
    pub type_oid: u32,
    pub meeting: Option<Meeting>,
    pub place: ParameterPlace,
    /// The type modifier of an interval that the statement reduces to some of its fields.
    pub interval_fields: Option<i32>,
}

/// A reference to a relation in a statement; a table named twice has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub relation: pg_sys::Oid,
    /// The statement writes to it.
    pub is_target: bool,
}

/// The privileges that a role needs on one of a statement's relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededPrivileges {
    pub relation: pg_sys::Oid,
    /// SELECT, INSERT, UPDATE and DELETE.
    pub mode: pg_sys::AclMode,
}

/// What a replay needs to know about a statement.
#[derive(Clone, Debug, Default)]
pub struct Analysed {
    /// `$1` is the first.
    pub parameters: Vec<Parameter>,
    pub occurrences: Vec<Occurrence>,
    /// A utility command.
    pub is_utility: bool,
    /// It inserts, updates, deletes or locks rows, or calls a volatile function other than `set_config`.
    pub writes: bool,
    /// It calls `set_config`.
    pub sets: bool,
    /// It inserts with ON CONFLICT.
    pub takes_back: bool,
    /// It uses functions or tables of this extension or of pg_stat_statements.
    pub calls_us: bool,
    /// It calls functions that are neither built in nor immutable, and so may have any effect.
    pub calls_others: bool,
    /// It calls functions that administer the server.
    pub administers: bool,
    /// It aggregates, groups or removes duplicates: the number of rows returned does not show how many are read.
    pub aggregates: bool,
    /// All relations that it names, also in subqueries.
    pub relations: Vec<pg_sys::Oid>,
    /// One for each of `relations`.
    pub privileges: Vec<NeededPrivileges>,
    /// All objects that it uses directly, `relations` among them.
    pub objects: Vec<Object>,
}

/// An object, identified as in pg_depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// The OID of its catalog.
    pub class: pg_sys::Oid,
    pub id: pg_sys::Oid,
}

/// Returns the objects that a query uses directly: the given relations, and its functions, operators and types.
///
/// # Safety
/// A live query.
pub(super) unsafe fn objects_of(query: *mut pg_sys::Query, relations: &[pg_sys::Oid]) -> Vec<Object> {
    let relation = |&id: &pg_sys::Oid| Object { class: pg_sys::RelationRelationId, id };
    let mut objects: Vec<Object> = relations.iter().map(relation).collect();
    // SAFETY: by the caller; the walk only reads, and the objects outlive it.
    unsafe { collect_objects(query.cast(), (&raw mut objects).cast()) };
    objects.sort_unstable_by_key(|object| (object.class.to_u32(), object.id.to_u32()));
    objects.dedup();
    objects
}

/// Collects the functions, operators and types of a tree, at any depth.
#[pg_guard]
unsafe extern "C-unwind" fn collect_objects(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called with live nodes and the list of `objects_of`, borrowed for one node at a time; exprType handles each of
    // the tags below.
    unsafe {
        if node.is_null() {
            return false;
        }
        let objects = context.cast::<Vec<Object>>();
        let sql_type = |id| Object { class: pg_sys::TypeRelationId, id };
        let operator = |id| Object { class: pg_sys::OperatorRelationId, id };
        pg_sys::check_functions_in_node(node, Some(add_function), context);
        match (*node).type_ {
            T_Query => return pg_sys::query_tree_walker(node.cast(), Some(collect_objects), context, 0),
            T_Var | T_Const | T_Param | T_CoerceToDomain | T_CoerceViaIO | T_RelabelType | T_RowExpr
            | T_ArrayCoerceExpr | T_ConvertRowtypeExpr | T_MinMaxExpr | T_FuncExpr | T_ArrayExpr => {
                (*objects).push(sql_type(pg_sys::exprType(node)));
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
        pg_sys::expression_tree_walker(node, Some(collect_objects), context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn add_function(id: pg_sys::Oid, context: *mut c_void) -> bool {
    let function = Object { class: pg_sys::ProcedureRelationId, id };
    // SAFETY: the list of `objects_of`, not borrowed meanwhile.
    unsafe { (*context.cast::<Vec<Object>>()).push(function) };
    false
}
