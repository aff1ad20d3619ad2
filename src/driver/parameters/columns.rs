//! From an expression to the one relation whose columns it is made of: what a walk has seen so far, and what is found beside
//! parameters in fields of JSON documents, sums and full text searches.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};

use pgrx::pg_sys;

use super::{
    Analysed, How, Meeting, Occurrence, ParameterPlace, Wrap, bare, is_a, is_without_variables, name_of, nth,
    type_name,
};
use crate::server::query::list_length;

/// The column of a relation that a variable stands for, through the aliases of joins, subqueries, CTEs and groups.
///
/// # Safety
/// A live variable of the scope.
unsafe fn chase(
    walk: &Walk,
    scope: usize,
    variable: *mut pg_sys::Var,
    depth: usize,
) -> Option<(*mut pg_sys::RangeTblEntry, i16)> {
    // SAFETY: by the caller; kinds of entries say which of their fields are set.
    unsafe {
        let (scope, entry) = entry_of(walk, scope, variable)?;
        let attribute = (*variable).varattno;
        if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
            return (attribute > 0).then_some((entry, attribute));
        }
        let (scope, node) = beneath(walk, scope, entry, attribute)?;
        let node = bare(node);
        if depth > 50 || !is_a(node, pg_sys::NodeTag::T_Var) {
            return None;
        }
        chase(walk, scope, node.cast(), depth + 1)
    }
}

/// # Safety
/// A live variable of the scope.
unsafe fn entry_of(
    walk: &Walk,
    mut scope: usize,
    variable: *mut pg_sys::Var,
) -> Option<(usize, *mut pg_sys::RangeTblEntry)> {
    // SAFETY: by the caller; a variable's number is a place in its query's range table.
    unsafe {
        for _ in 0..(*variable).varlevelsup {
            scope = walk.scopes[scope].parent?;
        }
        let table = (*walk.scopes[scope].query).rtable;
        let place = usize::try_from((*variable).varno - 1).ok()?;
        (place < list_length(table) as usize).then(|| (scope, nth(table, place).cast()))
    }
}

/// What a column of an entry that is no relation is computed by, and in which scope.
///
/// # Safety
/// A live entry of the scope.
pub(super) unsafe fn beneath(
    walk: &Walk,
    scope: usize,
    entry: *mut pg_sys::RangeTblEntry,
    attribute: i16,
) -> Option<(usize, *mut pg_sys::Node)> {
    let place = usize::try_from(attribute - 1).ok()?;
    // SAFETY: by the caller; kinds of entries say which of their fields are set.
    unsafe {
        let within = |list: *mut pg_sys::List| (place < list_length(list) as usize).then(|| nth(list, place));
        match (*entry).rtekind {
            pg_sys::RTEKind::RTE_JOIN => Some((scope, within((*entry).joinaliasvars)?)),
            #[cfg(since_18)]
            pg_sys::RTEKind::RTE_GROUP => Some((scope, within((*entry).groupexprs)?)),
            pg_sys::RTEKind::RTE_SUBQUERY => output(walk, (*entry).subquery, attribute),
            pg_sys::RTEKind::RTE_FUNCTION if list_length((*entry).functions) == 1 && attribute == 1 => {
                let function: *mut pg_sys::RangeTblFunction = nth((*entry).functions, 0).cast();
                ((*function).funccolcount == 1).then_some((scope, (*function).funcexpr))
            }
            pg_sys::RTEKind::RTE_CTE => {
                let mut scope = scope;
                for _ in 0..(*entry).ctelevelsup {
                    scope = walk.scopes[scope].parent?;
                }
                let list = (*walk.scopes[scope].query).cteList;
                let wanted = CStr::from_ptr((*entry).ctename);
                let all =
                    (0..list_length(list) as usize).map(|at| nth(list, at).cast::<pg_sys::CommonTableExpr>());
                let cte = all.into_iter().find(|&cte| CStr::from_ptr((*cte).ctename) == wanted)?;
                output(walk, (*cte).ctequery.cast(), attribute)
            }
            _ => None,
        }
    }
}

/// A column of a query's result, in that query's scope.
///
/// # Safety
/// A live query.
unsafe fn output(
    walk: &Walk,
    query: *mut pg_sys::Query,
    attribute: i16,
) -> Option<(usize, *mut pg_sys::Node)> {
    let scope = walk.scopes.iter().position(|scope| scope.query == query)?;
    // SAFETY: by the caller; a target list holds target entries.
    unsafe {
        let list = (*query).targetList;
        (0..list_length(list) as usize)
            .map(|at| nth(list, at).cast::<pg_sys::TargetEntry>())
            .find(|&target| (*target).resno == attribute && !(*target).resjunk)
            .map(|target| (scope, (*target).expr.cast()))
    }
}

/// What a variable stands for that is a column of no relation, through as many levels as there are; or the expression itself.
///
/// # Safety
/// A live expression of the scope.
unsafe fn resolved(
    walk: &Walk,
    mut scope: usize,
    mut node: *mut pg_sys::Node,
) -> Option<(usize, *mut pg_sys::Node)> {
    // SAFETY: by the caller.
    unsafe {
        for _ in 0..50 {
            let inner = bare(node);
            if !is_a(inner, pg_sys::NodeTag::T_Var) {
                break;
            }
            let (next, entry) = entry_of(walk, scope, inner.cast())?;
            if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                break;
            }
            (scope, node) = beneath(walk, next, entry, (*inner.cast::<pg_sys::Var>()).varattno)?;
        }
        Some((scope, node))
    }
}

struct Look<'a> {
    walk: &'a Walk,
    scope: usize,
    entry: *mut pg_sys::RangeTblEntry,
    is_simple: bool,
    variables: usize,
}

/// Makes each variable of a copy one of the first relation of a range table, as long as all are of one relation.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn rebase(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called by the walker with live nodes, and with the context that `source` gives it.
    unsafe {
        if node.is_null() {
            return false;
        }
        let look: *mut Look = context.cast();
        match (*node).type_ {
            T_Var => {
                let variable: *mut pg_sys::Var = node.cast();
                match chase((*look).walk, (*look).scope, variable, 0) {
                    Some((entry, attribute)) if (*look).entry.is_null() || (*look).entry == entry => {
                        (*look).entry = entry;
                        (*look).variables += 1;
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
                        (*look).is_simple = false;
                        true
                    }
                }
            }
            T_Param | T_Aggref | T_WindowFunc | T_SubLink | T_GroupingFunc | T_Query | T_CurrentOfExpr
            | T_SetToDefault => {
                (*look).is_simple = false;
                true
            }
            _ => pg_sys::expression_tree_walker(node, Some(rebase), context),
        }
    }
}

/// The relation whose columns alone an expression is made of, and the expression over them.
///
/// # Safety
/// A live expression of the scope.
pub(super) unsafe fn source(walk: &Walk, scope: usize, node: *mut pg_sys::Node) -> Option<ColumnExpression> {
    // SAFETY: a copy of a live tree; the walker goes on while it is told false. The context of deparsing is of one relation,
    // which all variables have been made to be of.
    unsafe {
        // A variable that stands for an expression: that one's.
        let (scope, node) = resolved(walk, scope, node)?;
        let copy: *mut pg_sys::Node = pg_sys::copyObjectImpl(node.cast()).cast();
        let mut look = Look { walk, scope, entry: std::ptr::null_mut(), is_simple: true, variables: 0 };
        rebase(copy, (&raw mut look).cast());
        if !look.is_simple || look.entry.is_null() || pg_sys::contain_volatile_functions(copy) {
            return None;
        }
        let inner = bare(copy);
        let is_column = look.variables == 1 && is_a(inner, pg_sys::NodeTag::T_Var);
        // A column by itself has its own type: a parameter's cast comes from the statement.
        let shown = if is_column { inner } else { copy };
        let column = is_column.then(|| (*inner.cast::<pg_sys::Var>()).varattno);
        let expression = deparse(shown, (*look.entry).relid);
        let type_oid = pg_sys::exprType(shown);
        Some(ColumnExpression { entry: look.entry, expression, column, type_oid, wrap: None })
    }
}

impl Walk {
    /// As [`source`].
    ///
    /// # Safety
    /// A live expression of the scope.
    pub(super) unsafe fn source(
        &mut self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<ColumnExpression> {
        if let Some((last_scope, last, found)) = &self.last_source
            && (*last_scope, *last) == (scope, node)
        {
            return found.clone();
        }
        // SAFETY: by the caller.
        let found = unsafe { source(self, scope, node) };
        self.last_source = Some((scope, node, found.clone()));
        found
    }
}

/// An expression over the columns of one relation, as the server writes it.
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
    pub expression: String,
    pub column: Option<i16>,
    /// The type of the expression.
    pub type_oid: pg_sys::Oid,
    pub wrap: Option<Wrap>,
}

/// A query, and the one around it.
pub(super) struct Scope {
    pub query: *mut pg_sys::Query,
    pub parent: Option<usize>,
}

/// What has been seen.
#[derive(Default)]
pub(super) struct Walk {
    pub found: Analysed,
    pub scopes: Vec<Scope>,
    entries: Vec<*mut pg_sys::RangeTblEntry>,
    /// How many parameters are to equal an expression of an occurrence.
    equal: HashMap<(usize, String), usize>,
    /// The last expression whose source was looked for, with its scope: a list of thousands of parameters meets the same.
    pub last_source: Option<(usize, *mut pg_sys::Node, Option<ColumnExpression>)>,
    /// The extensions whose objects are no application's, looked up once.
    own: Option<[pg_sys::Oid; 2]>,
}

impl Walk {
    /// The parameter that an expression is, but for casts: its place among the parameters.
    ///
    /// # Safety
    /// A live expression, or NULL.
    pub(super) unsafe fn parameter(&self, node: *mut pg_sys::Node) -> Option<usize> {
        // SAFETY: by the caller.
        unsafe {
            let node = bare(node);
            if !is_a(node, pg_sys::NodeTag::T_Param) {
                return None;
            }
            let parameter: *mut pg_sys::Param = node.cast();
            let is_external = (*parameter).paramkind == pg_sys::ParamKind::PARAM_EXTERN;
            let place = usize::try_from((*parameter).paramid - 1).ok()?;
            (is_external && place < self.found.parameters.len()).then_some(place)
        }
    }

    /// # Safety
    /// A live expression, or NULL.
    pub(super) unsafe fn place(&mut self, node: *mut pg_sys::Node, place: ParameterPlace) {
        // SAFETY: by the caller.
        if let Some(parameter) = unsafe { self.parameter(node) }
            && self.found.parameters[parameter].place == ParameterPlace::Elsewhere
        {
            self.found.parameters[parameter].place = place;
        }
    }

    /// A condition says more than a value that is written, and the first one as much as another.
    pub(super) fn meet_at(&mut self, parameter: usize, mut meeting: Meeting) {
        let is_value = |how: How| matches!(how, How::Insert | How::Set);
        if let Some(old) = &self.found.parameters[parameter].meeting
            && (!is_value(old.how) || is_value(meeting.how))
        {
            return;
        }
        if meeting.how == How::Equal {
            // The same column once more: in IN or behind OR another row's.
            let count = self.equal.entry((meeting.occurrence, meeting.expression.clone())).or_default();
            meeting.row = *count;
            *count += 1;
        }
        self.found.parameters[parameter].meeting = Some(meeting);
    }

    pub(super) fn occurrence(&mut self, entry: *mut pg_sys::RangeTblEntry, is_target: bool) -> usize {
        if let Some(place) = self.entries.iter().position(|&known| known == entry) {
            self.found.occurrences[place].is_target |= is_target;
            return place;
        }
        self.entries.push(entry);
        // SAFETY: a live entry of a relation.
        let relation = unsafe { (*entry).relid };
        self.found.occurrences.push(Occurrence { relation, is_target });
        self.entries.len() - 1
    }

    /// Whether an object is this extension's, or pg_stat_statements'.
    pub(super) fn is_own(&mut self, class: pg_sys::Oid, object: pg_sys::Oid) -> bool {
        let names = [c"pgbench_ext", c"pg_stat_statements"];
        // SAFETY: catalog look-ups inside a transaction.
        unsafe {
            let own = *self
                .own
                .get_or_insert_with(|| names.map(|name| pg_sys::get_extension_oid(name.as_ptr(), true)));
            let extension = pg_sys::getExtensionOfObject(class, object);
            extension != pg_sys::InvalidOid && own.contains(&extension)
        }
    }
}

/// A field that a row's object has, the same whenever it is asked for, so that its value goes with it.
fn field_of(object: &str) -> String {
    format!(
        "CASE WHEN pg_catalog.jsonb_typeof({object}) OPERATOR(pg_catalog.=) 'object' THEN (SELECT j.key FROM pg_catalog.jsonb_each({object}) AS j \
         ORDER BY pg_catalog.md5(pg_catalog.concat(j.key, ({object})::pg_catalog.text)) LIMIT 1) END"
    )
}

impl Walk {
    /// `document -> $1` and `document ->> $1`: the parameter, and the row's document as jsonb.
    ///
    /// # Safety
    /// A live expression of the scope.
    unsafe fn field(
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
            let name = name_of((*operation).opno);
            if !["->", "->>"].contains(&name.as_str()) || list_length((*operation).args) != 2 {
                return None;
            }
            let parameter = self.parameter(nth((*operation).args, 1))?;
            if self.found.parameters[parameter].type_oid != pg_sys::TEXTOID.to_u32() {
                return None;
            }
            let mut document = source(self, scope, nth((*operation).args, 0))?;
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

    /// The parameter that names a field is one that the row's document has. Whether it is that.
    ///
    /// # Safety
    /// As [`field`](Self::field).
    pub(super) unsafe fn meets_field(&mut self, scope: usize, node: *mut pg_sys::Node) -> bool {
        // SAFETY: by the caller.
        let Some((parameter, mut document, _)) = (unsafe { self.field(scope, node) }) else { return false };
        document.expression = field_of(&document.expression);
        self.meet(parameter, document, How::Operator, 0);
        true
    }

    /// What a field is whose name is a parameter: its value for the name that this has for the row.
    ///
    /// # Safety
    /// As [`field`](Self::field).
    pub(super) unsafe fn value_of_field(
        &self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<ColumnExpression> {
        // SAFETY: by the caller.
        let (_, mut document, name) = unsafe { self.field(scope, bare(node)) }?;
        let object = &document.expression;
        document.expression = format!("(({object}) OPERATOR(pg_catalog.{name}) {})", field_of(object));
        document.type_oid = if name == "->" { pg_sys::JSONBOID } else { pg_sys::TEXTOID };
        Some(document)
    }
}

impl Walk {
    /// A sum or a difference of a parameter and a value that is the same for all rows, which may be another parameter.
    ///
    /// # Safety
    /// Live expressions of the scope.
    pub(super) unsafe fn shift(
        &mut self,
        scope: usize,
        left: *mut pg_sys::Node,
        sum: *mut pg_sys::OpExpr,
        how: How,
    ) {
        // SAFETY: by the caller.
        unsafe {
            let sign = name_of((*sum).opno);
            if list_length((*sum).args) != 2 || (sign != "-" && sign != "+") {
                return;
            }
            let (base, shift) = (nth((*sum).args, 0), nth((*sum).args, 1));
            let (before, after, met) = match (self.parameter(base), self.parameter(shift)) {
                // x > $1 + y
                (Some(base), met) if met.is_some() || is_without_variables(shift) => {
                    let shift = match met {
                        Some(place) => format!("${}", place + 1),
                        None => deparse(shift, pg_sys::InvalidOid),
                    };
                    let sign = if sign == "-" { "+" } else { "-" };
                    ("((".to_owned(), format!(") {sign} ({shift}))"), base)
                }
                // x > y - $1
                (None, Some(met)) if is_without_variables(base) => {
                    let base = deparse(base, pg_sys::InvalidOid);
                    match sign.as_str() {
                        "-" => (format!("(({base}) - ("), "))".to_owned(), met),
                        _ => ("((".to_owned(), format!(") - ({base}))"), met),
                    }
                }
                _ => return,
            };
            if let Some(mut source) = source(self, scope, left) {
                source.wrap = Some(Wrap { before, after, sql_type: type_name(source.type_oid) });
                source.column = None;
                self.meet(met, source, how, 0);
            }
        }
    }
}

impl Walk {
    /// `vector @@ to_tsquery($1)` and its like, also where the query is a function in FROM: the parameter's value is made of the
    /// vector's words. Whether it is that.
    ///
    /// # Safety
    /// Live expressions of the scope.
    pub(super) unsafe fn words(
        &mut self,
        scope: usize,
        vector: *mut pg_sys::Node,
        query: *mut pg_sys::Node,
    ) -> bool {
        // SAFETY: by the caller.
        unsafe {
            let parameter = match self.parameter(query) {
                Some(parameter) => Some(parameter),
                None => resolved(self, scope, query).and_then(|(_, node)| self.searched(bare(node))),
            };
            let (Some(parameter), Some(mut source)) = (parameter, source(self, scope, vector)) else {
                return false;
            };
            source.column = None;
            // A text is made a vector by the operator.
            if source.type_oid != pg_sys::TSVECTOROID {
                source.expression =
                    format!("pg_catalog.to_tsvector(({})::pg_catalog.text)", source.expression);
            }
            if self.found.parameters[parameter].type_oid == pg_sys::TSQUERYOID.to_u32() {
                let sql_type = type_name(pg_sys::TEXTOID);
                source.wrap = Some(Wrap {
                    before: "(".to_owned(),
                    after: ")::pg_catalog.tsquery".to_owned(),
                    sql_type,
                });
            }
            self.meet(parameter, source, How::Words, 0);
            true
        }
    }

    /// The text that a function makes a tsquery of: its last argument.
    ///
    /// # Safety
    /// A live expression.
    unsafe fn searched(&self, node: *mut pg_sys::Node) -> Option<usize> {
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
            self.parameter(nth((*call).args, count as usize - 1))
        }
    }
}
