//! Resolves expressions to the columns of one relation, also beside parameters in JSON fields, sums and full text searches.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};

use pgrx::pg_sys;

use super::{
    Analysed, How, Meeting, Occurrence, ParameterPlace, Wrap, is_a, is_pseudoconstant, nodes, nth,
    operator_name, strip_casts, type_name,
};
use crate::server::query::list_length;

/// Variables that refer to each other are followed at most this often; deeper statements are not resolved.
const MAX_INDIRECTIONS: usize = 50;

/// Returns the relation's column that a variable refers to through joins, subqueries, CTEs and groups.
///
/// # Safety
/// A live variable of the scope.
unsafe fn resolve_column(
    walk: &Walk,
    scope: usize,
    variable: *mut pg_sys::Var,
    depth: usize,
) -> Option<(*mut pg_sys::RangeTblEntry, i16)> {
    // SAFETY: by the caller; kinds of entries say which of their fields are set.
    unsafe {
        let (scope, entry) = range_table_entry(walk, scope, variable)?;
        let attribute = (*variable).varattno;
        if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
            return (attribute > 0).then_some((entry, attribute));
        }
        let (scope, node) = column_definition(walk, scope, entry, attribute)?;
        let node = strip_casts(node);
        if depth > MAX_INDIRECTIONS || !is_a(node, pg_sys::NodeTag::T_Var) {
            return None;
        }
        resolve_column(walk, scope, node.cast(), depth + 1)
    }
}

/// Returns the range table entry of a variable and the scope that it is in.
///
/// # Safety
/// A live variable of the scope.
unsafe fn range_table_entry(
    walk: &Walk,
    mut scope: usize,
    variable: *mut pg_sys::Var,
) -> Option<(usize, *mut pg_sys::RangeTblEntry)> {
    // SAFETY: by the caller; varno is a position in the query's range table, from 1.
    unsafe {
        for _ in 0..(*variable).varlevelsup {
            scope = walk.scopes[scope].parent?;
        }
        let table = (*walk.scopes[scope].query).rtable;
        let index = usize::try_from((*variable).varno - 1).ok()?;
        (index < list_length(table) as usize).then(|| (scope, nth(table, index).cast()))
    }
}

/// Returns the expression of a column of an entry that is no relation, and that expression's scope.
///
/// # Safety
/// A live entry of the scope.
pub(super) unsafe fn column_definition(
    walk: &Walk,
    scope: usize,
    entry: *mut pg_sys::RangeTblEntry,
    attribute: i16,
) -> Option<(usize, *mut pg_sys::Node)> {
    let index = usize::try_from(attribute - 1).ok()?;
    // SAFETY: by the caller; kinds of entries say which of their fields are set.
    unsafe {
        let column = |list: *mut pg_sys::List| (index < list_length(list) as usize).then(|| nth(list, index));
        match (*entry).rtekind {
            pg_sys::RTEKind::RTE_JOIN => Some((scope, column((*entry).joinaliasvars)?)),
            #[cfg(since_18)]
            pg_sys::RTEKind::RTE_GROUP => Some((scope, column((*entry).groupexprs)?)),
            pg_sys::RTEKind::RTE_SUBQUERY => output_column(walk, (*entry).subquery, attribute),
            pg_sys::RTEKind::RTE_FUNCTION if list_length((*entry).functions) == 1 && attribute == 1 => {
                let function: *mut pg_sys::RangeTblFunction = nth((*entry).functions, 0).cast();
                ((*function).funccolcount == 1).then_some((scope, (*function).funcexpr))
            }
            pg_sys::RTEKind::RTE_CTE => {
                let mut scope = scope;
                for _ in 0..(*entry).ctelevelsup {
                    scope = walk.scopes[scope].parent?;
                }
                let name = CStr::from_ptr((*entry).ctename);
                let cte = nodes::<pg_sys::CommonTableExpr>((*walk.scopes[scope].query).cteList)
                    .find(|&cte| CStr::from_ptr((*cte).ctename) == name)?;
                output_column(walk, (*cte).ctequery.cast(), attribute)
            }
            _ => None,
        }
    }
}

/// Returns the expression of a column of a query's result, and the query's scope.
///
/// # Safety
/// A live query.
unsafe fn output_column(
    walk: &Walk,
    query: *mut pg_sys::Query,
    attribute: i16,
) -> Option<(usize, *mut pg_sys::Node)> {
    let scope = walk.scopes.iter().position(|scope| scope.query == query)?;
    // SAFETY: by the caller; a target list holds target entries.
    unsafe {
        nodes::<pg_sys::TargetEntry>((*query).targetList)
            .find(|&target| (*target).resno == attribute && !(*target).resjunk)
            .map(|target| (scope, (*target).expr.cast()))
    }
}

/// Follows a variable through subqueries to a relation's column or another expression. Returns that and its scope.
///
/// # Safety
/// A live expression of the scope.
unsafe fn resolve_variable(
    walk: &Walk,
    mut scope: usize,
    mut node: *mut pg_sys::Node,
) -> Option<(usize, *mut pg_sys::Node)> {
    // SAFETY: by the caller.
    unsafe {
        for _ in 0..MAX_INDIRECTIONS {
            let inner = strip_casts(node);
            if !is_a(inner, pg_sys::NodeTag::T_Var) {
                break;
            }
            let (next, entry) = range_table_entry(walk, scope, inner.cast())?;
            if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                break;
            }
            (scope, node) = column_definition(walk, next, entry, (*inner.cast::<pg_sys::Var>()).varattno)?;
        }
        Some((scope, node))
    }
}

/// The context of [`rebase`].
struct Rebase<'a> {
    walk: &'a Walk,
    scope: usize,
    entry: *mut pg_sys::RangeTblEntry,
    /// All variables seen are of `entry`, and all nodes can be evaluated for one of its rows.
    is_simple: bool,
    variables: usize,
}

/// Makes all variables of a copied expression refer to range table entry 1; stops where they are of several relations.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn rebase(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called by the walker with live nodes and the context of `column_expression`.
    unsafe {
        if node.is_null() {
            return false;
        }
        let state: *mut Rebase = context.cast();
        match (*node).type_ {
            T_Var => {
                let variable: *mut pg_sys::Var = node.cast();
                match resolve_column((*state).walk, (*state).scope, variable, 0) {
                    Some((entry, attribute)) if (*state).entry.is_null() || (*state).entry == entry => {
                        (*state).entry = entry;
                        (*state).variables += 1;
                        (*variable).varno = 1;
                        (*variable).varattno = attribute;
                        (*variable).varlevelsup = 0;
                        (*variable).varnosyn = 1;
                        (*variable).varattnosyn = attribute;
                        #[cfg(since_16)]
                        {
                            (*variable).varnullingrels = std::ptr::null_mut();
                        }
                        false
                    }
                    _ => {
                        (*state).is_simple = false;
                        true
                    }
                }
            }
            T_Param | T_Aggref | T_WindowFunc | T_SubLink | T_GroupingFunc | T_Query | T_CurrentOfExpr
            | T_SetToDefault => {
                (*state).is_simple = false;
                true
            }
            _ => pg_sys::expression_tree_walker(node, Some(rebase), context),
        }
    }
}

/// Returns an expression over the columns of one relation; `None` for any other.
///
/// # Safety
/// A live expression of the scope.
pub(super) unsafe fn column_expression(
    walk: &Walk,
    scope: usize,
    node: *mut pg_sys::Node,
) -> Option<ColumnExpression> {
    // SAFETY: only a copy of the live tree is changed; afterwards all its variables are of the one relation that it is deparsed
    // for.
    unsafe {
        let (scope, node) = resolve_variable(walk, scope, node)?;
        let copy: *mut pg_sys::Node = pg_sys::copyObjectImpl(node.cast()).cast();
        let mut state = Rebase { walk, scope, entry: std::ptr::null_mut(), is_simple: true, variables: 0 };
        rebase(copy, (&raw mut state).cast());
        if !state.is_simple || state.entry.is_null() || pg_sys::contain_volatile_functions(copy) {
            return None;
        }
        let inner = strip_casts(copy);
        let is_column = state.variables == 1 && is_a(inner, pg_sys::NodeTag::T_Var);
        // A bare column keeps its type: casts around it fit the statement, not the parameter.
        let shown = if is_column { inner } else { copy };
        let column = is_column.then(|| (*inner.cast::<pg_sys::Var>()).varattno);
        let expression = deparse(shown, (*state.entry).relid);
        let type_oid = pg_sys::exprType(shown);
        Some(ColumnExpression { entry: state.entry, expression, column, type_oid, wrap: None })
    }
}

impl Walk {
    /// Like [`column_expression`], but keeps the last result.
    ///
    /// # Safety
    /// A live expression of the scope.
    pub(super) unsafe fn cached_column_expression(
        &mut self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<ColumnExpression> {
        if let Some((last_scope, last_node, expression)) = &self.last_expression
            && (*last_scope, *last_node) == (scope, node)
        {
            return expression.clone();
        }
        // SAFETY: by the caller.
        let expression = unsafe { column_expression(self, scope, node) };
        self.last_expression = Some((scope, node, expression.clone()));
        expression
    }
}

/// Returns the SQL of an expression over the columns of one relation.
///
/// # Safety
/// A live expression all of whose variables are of the first relation.
unsafe fn deparse(node: *mut pg_sys::Node, relation: pg_sys::Oid) -> String {
    // SAFETY: by the caller; a palloc'd string.
    unsafe {
        let context = match relation {
            pg_sys::InvalidOid => std::ptr::null_mut(),
            relation => pg_sys::deparse_context_for(c"r".as_ptr(), relation),
        };
        CStr::from_ptr(pg_sys::deparse_expression(node, context, false, false)).to_string_lossy().into_owned()
    }
}

/// An expression over one relation's columns.
#[derive(Clone)]
pub(super) struct ColumnExpression {
    pub entry: *mut pg_sys::RangeTblEntry,
    /// SQL.
    pub expression: String,
    /// The column, if the expression is a bare one.
    pub column: Option<i16>,
    pub type_oid: pg_sys::Oid,
    pub wrap: Option<Wrap>,
}

/// A query and the scope of the query around it.
pub(super) struct Scope {
    pub query: *mut pg_sys::Query,
    pub parent: Option<usize>,
}

/// The state of a walk over a statement's query tree.
#[derive(Default)]
pub(super) struct Walk {
    pub analysed: Analysed,
    pub scopes: Vec<Scope>,
    entries: Vec<*mut pg_sys::RangeTblEntry>,
    /// Numbers of parameters that are compared by `=`, by occurrence and expression.
    equal_counts: HashMap<(usize, String), usize>,
    /// The last scope, node and result of [`column_expression`]: a list may compare thousands of parameters with one column.
    last_expression: Option<(usize, *mut pg_sys::Node, Option<ColumnExpression>)>,
    /// The OIDs of this extension and of pg_stat_statements, once looked up.
    tool_extensions: Option<[pg_sys::Oid; 2]>,
}

impl Walk {
    /// Returns the index of the parameter that an expression is, casts aside.
    ///
    /// # Safety
    /// A live expression, or NULL.
    pub(super) unsafe fn parameter_index(&self, node: *mut pg_sys::Node) -> Option<usize> {
        // SAFETY: by the caller.
        unsafe {
            let node = strip_casts(node);
            if !is_a(node, pg_sys::NodeTag::T_Param) {
                return None;
            }
            let parameter: *mut pg_sys::Param = node.cast();
            let is_external = (*parameter).paramkind == pg_sys::ParamKind::PARAM_EXTERN;
            let index = usize::try_from((*parameter).paramid - 1).ok()?;
            (is_external && index < self.analysed.parameters.len()).then_some(index)
        }
    }

    /// Records where a parameter stands; the first place counts.
    ///
    /// # Safety
    /// A live expression, or NULL.
    pub(super) unsafe fn record_place(&mut self, node: *mut pg_sys::Node, place: ParameterPlace) {
        // SAFETY: by the caller.
        if let Some(parameter) = unsafe { self.parameter_index(node) }
            && self.analysed.parameters[parameter].place == ParameterPlace::Elsewhere
        {
            self.analysed.parameters[parameter].place = place;
        }
    }

    /// Keeps the first condition on a parameter or, if there is none, the first column it is written to.
    pub(super) fn keep_meeting(&mut self, parameter: usize, mut meeting: Meeting) {
        let is_value = |how: How| matches!(how, How::Insert | How::Set);
        if let Some(old) = &self.analysed.parameters[parameter].meeting
            && (!is_value(old.how) || is_value(meeting.how))
        {
            return;
        }
        if meeting.how == How::Equal {
            // Other parameters for the same column, in IN or behind OR, take values of other rows.
            let count =
                self.equal_counts.entry((meeting.occurrence, meeting.expression.clone())).or_default();
            meeting.row = *count;
            *count += 1;
        }
        self.analysed.parameters[parameter].meeting = Some(meeting);
    }

    /// Returns the index of a relation's occurrence and adds it if it is new.
    pub(super) fn occurrence_index(&mut self, entry: *mut pg_sys::RangeTblEntry, is_target: bool) -> usize {
        if let Some(index) = self.entries.iter().position(|&known| known == entry) {
            self.analysed.occurrences[index].is_target |= is_target;
            return index;
        }
        self.entries.push(entry);
        // SAFETY: a live entry of a relation.
        let relation = unsafe { (*entry).relid };
        self.analysed.occurrences.push(Occurrence { relation, is_target });
        self.entries.len() - 1
    }

    /// Returns whether an object belongs to this extension or to pg_stat_statements.
    pub(super) fn is_tool_object(&mut self, class: pg_sys::Oid, object: pg_sys::Oid) -> bool {
        let names = [c"pgbench_ext", c"pg_stat_statements"];
        // SAFETY: catalog look-ups inside a transaction.
        unsafe {
            let tools = *self
                .tool_extensions
                .get_or_insert_with(|| names.map(|name| pg_sys::get_extension_oid(name.as_ptr(), true)));
            let extension = pg_sys::getExtensionOfObject(class, object);
            extension != pg_sys::InvalidOid && tools.contains(&extension)
        }
    }
}

/// Returns SQL for the name of a field of a JSON object. It chooses by a hash, so that name and value of a row belong together.
fn field_name_sql(object: &str) -> String {
    format!(
        "CASE WHEN pg_catalog.jsonb_typeof({object}) OPERATOR(pg_catalog.=) 'object' THEN (SELECT j.key FROM pg_catalog.jsonb_each({object}) AS j \
         ORDER BY pg_catalog.md5(pg_catalog.concat(j.key, ({object})::pg_catalog.text)) LIMIT 1) END"
    )
}

impl Walk {
    /// Returns, for `document -> $1` and `document ->> $1`, the parameter's index, the document as jsonb, and the operator.
    ///
    /// # Safety
    /// A live expression of the scope.
    unsafe fn json_field_access(
        &self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<(usize, ColumnExpression, String)> {
        // SAFETY: by the caller; a tag says what a node is.
        unsafe {
            if !is_a(node, pg_sys::NodeTag::T_OpExpr) {
                return None;
            }
            let operation: *mut pg_sys::OpExpr = node.cast();
            let name = operator_name((*operation).opno);
            if !["->", "->>"].contains(&name.as_str()) || list_length((*operation).args) != 2 {
                return None;
            }
            let parameter = self.parameter_index(nth((*operation).args, 1))?;
            if self.analysed.parameters[parameter].type_oid != pg_sys::TEXTOID.to_u32() {
                return None;
            }
            let mut document = column_expression(self, scope, nth((*operation).args, 0))?;
            match document.type_oid {
                pg_sys::JSONBOID => {}
                pg_sys::JSONOID => {
                    document.expression = format!("({})::pg_catalog.jsonb", document.expression)
                }
                _ => return None,
            }
            document.column = None;
            Some((parameter, document, name))
        }
    }

    /// Records a parameter that names a field of a JSON document; false if `node` is no such access.
    ///
    /// # Safety
    /// As for [`json_field_access`](Self::json_field_access).
    pub(super) unsafe fn record_json_key(&mut self, scope: usize, node: *mut pg_sys::Node) -> bool {
        // SAFETY: by the caller.
        let Some((parameter, mut document, _)) = (unsafe { self.json_field_access(scope, node) }) else {
            return false;
        };
        document.expression = field_name_sql(&document.expression);
        self.record_meeting(parameter, document, How::Operator, 0);
        true
    }

    /// Returns the value of the field that [`record_json_key`](Self::record_json_key) chooses for the parameter.
    ///
    /// # Safety
    /// As for [`json_field_access`](Self::json_field_access).
    pub(super) unsafe fn json_field_value(
        &self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<ColumnExpression> {
        // SAFETY: by the caller.
        let (_, mut document, name) = unsafe { self.json_field_access(scope, strip_casts(node)) }?;
        let object = &document.expression;
        document.expression = format!("(({object}) OPERATOR(pg_catalog.{name}) {})", field_name_sql(object));
        document.type_oid = if name == "->" { pg_sys::JSONBOID } else { pg_sys::TEXTOID };
        Some(document)
    }
}

impl Walk {
    /// Records a parameter in a sum or difference whose other operand is constant or another parameter.
    ///
    /// # Safety
    /// Live expressions of the scope.
    pub(super) unsafe fn record_shifted(
        &mut self,
        scope: usize,
        left: *mut pg_sys::Node,
        sum: *mut pg_sys::OpExpr,
        how: How,
    ) {
        // SAFETY: by the caller.
        unsafe {
            let sign = operator_name((*sum).opno);
            if list_length((*sum).args) != 2 || (sign != "-" && sign != "+") {
                return;
            }
            let (base, shift) = (nth((*sum).args, 0), nth((*sum).args, 1));
            let (before, after, parameter) = match (self.parameter_index(base), self.parameter_index(shift)) {
                // x > $1 + y
                (Some(base), other) if other.is_some() || is_pseudoconstant(shift) => {
                    let shift = match other {
                        Some(index) => format!("${}", index + 1),
                        None => deparse(shift, pg_sys::InvalidOid),
                    };
                    let sign = if sign == "-" { "+" } else { "-" };
                    ("((".to_owned(), format!(") {sign} ({shift}))"), base)
                }
                // x > y - $1
                (None, Some(parameter)) if is_pseudoconstant(base) => {
                    let base = deparse(base, pg_sys::InvalidOid);
                    match sign.as_str() {
                        "-" => (format!("(({base}) - ("), "))".to_owned(), parameter),
                        _ => ("((".to_owned(), format!(") - ({base}))"), parameter),
                    }
                }
                _ => return,
            };
            if let Some(mut source) = column_expression(self, scope, left) {
                source.wrap = Some(Wrap { before, after, sql_type: type_name(source.type_oid) });
                source.column = None;
                self.record_meeting(parameter, source, how, 0);
            }
        }
    }
}

impl Walk {
    /// Records the parameter of `vector @@ to_tsquery($1)` and the like, also with the function in FROM; false if there is none.
    ///
    /// # Safety
    /// Live expressions of the scope.
    pub(super) unsafe fn record_search(
        &mut self,
        scope: usize,
        vector: *mut pg_sys::Node,
        query: *mut pg_sys::Node,
    ) -> bool {
        // SAFETY: by the caller.
        unsafe {
            let parameter = match self.parameter_index(query) {
                Some(parameter) => Some(parameter),
                None => resolve_variable(self, scope, query)
                    .and_then(|(_, node)| self.searched_text(strip_casts(node))),
            };
            let (Some(parameter), Some(mut source)) = (parameter, column_expression(self, scope, vector))
            else {
                return false;
            };
            source.column = None;
            // `text @@ tsquery` converts its left operand.
            if source.type_oid != pg_sys::TSVECTOROID {
                source.expression =
                    format!("pg_catalog.to_tsvector(({})::pg_catalog.text)", source.expression);
            }
            if self.analysed.parameters[parameter].type_oid == pg_sys::TSQUERYOID.to_u32() {
                let sql_type = type_name(pg_sys::TEXTOID);
                source.wrap = Some(Wrap {
                    before: "(".to_owned(),
                    after: ")::pg_catalog.tsquery".to_owned(),
                    sql_type,
                });
            }
            self.record_meeting(parameter, source, How::Words, 0);
            true
        }
    }

    /// Returns the parameter that a function converts to a tsquery: its last argument.
    ///
    /// # Safety
    /// A live expression.
    unsafe fn searched_text(&self, node: *mut pg_sys::Node) -> Option<usize> {
        // SAFETY: by the caller; a tag says what a node is.
        unsafe {
            if !is_a(node, pg_sys::NodeTag::T_FuncExpr) {
                return None;
            }
            let call: *mut pg_sys::FuncExpr = node.cast();
            let count = list_length((*call).args);
            if (*call).funcresulttype != pg_sys::TSQUERYOID || !(1..=2).contains(&count) {
                return None;
            }
            self.parameter_index(nth((*call).args, count as usize - 1))
        }
    }
}
