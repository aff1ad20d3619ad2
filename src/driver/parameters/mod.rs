//! What the parameters of a statement meet: the server's own analysis, with types for the parameters found by it, and a walk
//! over the query tree that looks for the column beside each parameter.
//!
//! Unlike in a client's loop nothing here is in a hurry: all of the server's functions are called through guards, so that an
//! ERROR unwinds as a panic does.

mod analysis;
mod columns;

use std::ffi::{CStr, c_void};

use pgrx::{pg_guard, pg_sys};

use crate::server::query::list_length;

pub use analysis::{analyse, analyse_with_texts};

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

/// How a parameter meets what is beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `=`, or an element of IN.
    Equal,
    /// An array: `= ANY ($1)`.
    Array,
    /// `<>`.
    Unequal,
    /// `>` or `>=`: the column is above the parameter.
    Above,
    /// `<` or `<=`.
    Below,
    /// LIKE and ILIKE.
    Like,
    /// A value of INSERT.
    Insert,
    /// A value of SET.
    Set,
    /// Words that a full text search looks for: the expression is a tsvector.
    Words,
    /// Another operator that returns a boolean.
    Operator,
}

/// SQL around a value of a relation's row that makes it the parameter's: `now() - column` for `column > now() - $1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    pub before: String,
    /// May mention other parameters.
    pub after: String,
    /// The type of the relation's value.
    pub sql_type: String,
}

impl Wrap {
    /// Around a value of its type.
    pub fn around(&self, value: &str) -> String {
        format!("{}{value}{}", self.before, self.after)
    }
}

/// What a parameter meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Which of the statement's [`Occurrence`]s.
    pub occurrence: usize,
    /// The value that the parameter would have for a row of that relation, as SQL over its columns.
    pub expression: String,
    /// What makes the parameter's value of it, where it is not that itself.
    pub wrap: Option<Wrap>,
    /// The column, where the expression is one.
    pub column: Option<i16>,
    pub how: How,
    /// Of a list of rows that are to be different: which.
    pub row: usize,
}

/// Where a parameter stands that meets nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ParameterPlace {
    #[default]
    Elsewhere,
    /// LIMIT of the whole statement.
    Limit,
    /// LIMIT of a part of it.
    InnerLimit,
    Offset,
    /// The argument of a function, counted from 0.
    Argument(String, usize),
    /// Beside an operator of arithmetic.
    Arithmetic,
    /// Beside a comparison, such as with an aggregate.
    Compared,
}

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// As the server writes it; empty where the statement does not mention the parameter.
    pub sql_type: String,
    pub type_oid: u32,
    pub meeting: Option<Meeting>,
    pub place: ParameterPlace,
    /// The modifier of the interval that the statement cuts it to, if that does not have all fields.
    pub interval_fields: Option<i32>,
}

/// A relation's place in a statement: a table named twice has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub relation: pg_sys::Oid,
    /// The relation of a write.
    pub is_target: bool,
}

/// What the server asks of a role that executes a statement, for one of its relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededPrivileges {
    pub relation: pg_sys::Oid,
    /// SELECT, INSERT, UPDATE and DELETE.
    pub mode: pg_sys::AclMode,
}

/// A statement, as far as its replay is concerned.
#[derive(Clone, Debug, Default)]
pub struct Analysed {
    /// `$1` is the first.
    pub parameters: Vec<Parameter>,
    pub occurrences: Vec<Occurrence>,
    /// A utility command.
    pub is_utility: bool,
    /// It inserts, updates, deletes or locks rows, or calls a volatile function other than `set_config`, which may do so.
    pub writes: bool,
    /// It calls `set_config`.
    pub sets: bool,
    /// It inserts with ON CONFLICT.
    pub takes_back: bool,
    /// It uses functions or tables of this extension or of pg_stat_statements.
    pub calls_us: bool,
    /// It calls functions that did not come with the server and are not immutable: they may do anything.
    pub calls_others: bool,
    /// It calls functions by which the server is administered.
    pub administers: bool,
    /// Rows are counted or grouped: how many a call returns says nothing of how many it reads.
    pub aggregates: bool,
    /// All relations that it names.
    pub relations: Vec<pg_sys::Oid>,
    /// What their use takes.
    pub privileges: Vec<NeededPrivileges>,
    /// All objects that it uses itself, these relations among them.
    pub objects: Vec<Object>,
}

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
