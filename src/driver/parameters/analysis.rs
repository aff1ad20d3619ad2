//! Runs the server's parse analysis of a statement and walks over the resulting query tree.

use std::ffi::{CStr, CString, c_void};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::columns::{ColumnExpression, Scope, Walk, column_definition};
use super::{
    Analysed, How, Meeting, NeededPrivileges, Parameter, ParameterPlace, SET_CONFIG, array_element_sql,
    comparison_kind, is_a, is_administration, is_range, may_write, nodes, nth, objects_of, operator_name,
    sample_field_sql, strip_casts, type_name,
};
use crate::error::internal;
use crate::server::query::{in_text, list_first, list_length, parse};

/// Analyses a statement and infers the types of its parameters.
///
/// # Errors
/// Raises the server's; 42P18 for a parameter whose type cannot be inferred.
pub fn analyse(text: &str) -> Result<Analysed, UserError> {
    let (analysed, texts) = analyse_with_texts(text)?;
    match texts.first() {
        // indeterminate_datatype
        Some(index) => {
            Err(UserError::new("42P18", format!("could not determine data type of parameter ${}", index + 1)))
        }
        None => Ok(analysed),
    }
}

/// Like [`analyse`], but gives type text, as the server does for quoted constants, to parameters whose type cannot be inferred.
/// Returns their positions too, from 0.
///
/// # Errors
/// Raises the server's.
pub fn analyse_with_texts(text: &str) -> Result<(Analysed, Vec<usize>), UserError> {
    let text = CString::new(text).map_err(|e| internal(e.to_string()))?;
    let (mut query, mut types) = parse_analyse(&text, &[])?;
    let texts: Vec<usize> = (0..types.len()).filter(|&index| types[index] == pg_sys::UNKNOWNOID).collect();
    if !texts.is_empty() {
        texts.iter().for_each(|&index| types[index] = pg_sys::TEXTOID);
        (query, types) = parse_analyse(&text, &types)?;
    }
    let mut walk = Walk::default();
    walk.analysed.parameters.extend(types.iter().map(|&oid| parameter(oid)));
    // SAFETY: a query that the server has just analysed, in the current memory context.
    unsafe {
        if (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            walk.analysed.is_utility = true;
        } else {
            walk.visit_query(query, None);
            walk.analysed.writes |= may_write(query);
            walk.analysed.objects = objects_of(query, &walk.analysed.relations);
        }
    }
    Ok((walk.analysed, texts))
}

/// Analyses a text of one statement; its first parameters have the `given` types. Returns its query and all parameters' types.
fn parse_analyse(
    text: &CStr,
    given: &[pg_sys::Oid],
) -> Result<(*mut pg_sys::Query, Vec<pg_sys::Oid>), UserError> {
    // SAFETY: the text outlives the trees that point into it; the parser's list holds raw statements. The server may enlarge
    // the palloc'd array of types and leaves its length in `count`.
    unsafe {
        let statements = parse(text);
        if list_length(statements) != 1 {
            return Err(UserError::new(sqlstate::SYNTAX_ERROR, "not one statement"));
        }
        let raw: *mut pg_sys::RawStmt = list_first(statements).cast();
        let mut types: *mut pg_sys::Oid = std::ptr::null_mut();
        if !given.is_empty() {
            types = pg_sys::palloc(size_of_val(given)).cast();
            std::ptr::copy_nonoverlapping(given.as_ptr(), types, given.len());
        }
        let mut count = given.len() as i32;
        let none = std::ptr::null_mut();
        let query = in_text(text, || {
            pg_sys::parse_analyze_varparams(raw, text.as_ptr(), &raw mut types, &raw mut count, none)
        });
        let types = match count {
            0 => Vec::new(),
            count => std::slice::from_raw_parts(types, count as usize).to_vec(),
        };
        Ok((query, types))
    }
}

fn parameter(type_oid: pg_sys::Oid) -> Parameter {
    // The parser leaves the type of a parameter invalid that the statement does not mention.
    let is_unused = type_oid == pg_sys::InvalidOid;
    Parameter {
        sql_type: if is_unused { String::new() } else { type_name(type_oid) },
        type_oid: type_oid.to_u32(),
        meeting: None,
        place: ParameterPlace::Elsewhere,
        interval_fields: None,
    }
}

/// `pg_catalog.interval(interval, integer)`, which reduces an interval to the fields that its type has.
const REDUCE_INTERVAL: u32 = 1200;

struct Visit {
    walk: *mut Walk,
    scope: usize,
}

/// Handles a node and those below it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called by the walker with live nodes and the context of `visit_query`; one node at a time borrows the walk.
    unsafe {
        if node.is_null() {
            return false;
        }
        pgrx::check_for_interrupts!();
        let Visit { walk, scope } = *context.cast::<Visit>();
        match (*node).type_ {
            T_Query => {
                (*walk).visit_query(node.cast(), Some(scope));
                return false;
            }
            T_OpExpr => (*walk).visit_operator(scope, node.cast()),
            T_ScalarArrayOpExpr => (*walk).visit_array_comparison(scope, node.cast()),
            T_RowCompareExpr => (*walk).visit_row_comparison(scope, node.cast()),
            T_FuncExpr => (*walk).visit_function(node.cast()),
            T_Aggref => (*walk).analysed.aggregates = true,
            _ => {}
        }
        pg_sys::expression_tree_walker(node, Some(visit), context)
    }
}

/// Returns the privileges that the server checks for a relation of a query (ExecCheckPermissions in executor/execMain.c).
///
/// # Safety
/// A live, analysed query, and an entry of it that is a relation.
unsafe fn needed_privileges(
    query: *const pg_sys::Query,
    entry: *const pg_sys::RangeTblEntry,
) -> NeededPrivileges {
    // SAFETY: by the caller; perminfoindex is a position in the query's rteperminfos, from 1, or 0 for none.
    unsafe {
        #[cfg(not(since_16))]
        let mode = {
            let _ = query;
            (*entry).requiredPerms
        };
        #[cfg(since_16)]
        let mode = match (*entry).perminfoindex {
            0 => 0,
            position => {
                let info: *const pg_sys::RTEPermissionInfo =
                    nth((*query).rteperminfos, position as usize - 1).cast();
                (*info).requiredPerms
            }
        };
        NeededPrivileges { relation: (*entry).relid, mode }
    }
}

/// Returns the argument of a call with one argument.
///
/// # Safety
/// A live expression, or NULL.
unsafe fn only_argument(node: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    // SAFETY: by the caller; a tag says what a node is.
    unsafe {
        if !is_a(node, pg_sys::NodeTag::T_FuncExpr) {
            return None;
        }
        let arguments = (*node.cast::<pg_sys::FuncExpr>()).args;
        (list_length(arguments) == 1).then(|| nth(arguments, 0))
    }
}

impl Walk {
    /// Walks over a query and its subqueries.
    ///
    /// # Safety
    /// A live, analysed query.
    pub unsafe fn visit_query(&mut self, query: *mut pg_sys::Query, parent: Option<usize>) {
        // SAFETY: by the caller.
        unsafe {
            let scope = self.scopes.len();
            self.scopes.push(Scope { query, parent });
            let command = (*query).commandType;
            let reads = command == pg_sys::CmdType::CMD_SELECT;
            self.analysed.writes |= !reads || !(*query).rowMarks.is_null();
            self.analysed.takes_back |= !(*query).onConflict.is_null();
            self.analysed.aggregates |=
                (*query).hasAggs || !(*query).groupClause.is_null() || !(*query).distinctClause.is_null();
            // CTEs and subqueries first: references to their columns are resolved in their scopes.
            for cte in nodes::<pg_sys::CommonTableExpr>((*query).cteList) {
                self.visit_query((*cte).ctequery.cast(), Some(scope));
            }
            for entry in nodes::<pg_sys::RangeTblEntry>((*query).rtable) {
                match (*entry).rtekind {
                    pg_sys::RTEKind::RTE_SUBQUERY => self.visit_query((*entry).subquery, Some(scope)),
                    pg_sys::RTEKind::RTE_RELATION => {
                        self.analysed.relations.push((*entry).relid);
                        self.analysed.privileges.push(needed_privileges(query, entry));
                        self.analysed.calls_us |=
                            self.is_tool_object(pg_sys::RelationRelationId, (*entry).relid);
                    }
                    _ => {}
                }
            }
            if !reads && (*query).resultRelation > 0 {
                let target = nth((*query).rtable, (*query).resultRelation as usize - 1).cast();
                self.record_assignments(scope, target, (*query).targetList, command);
                let conflict = (*query).onConflict;
                if !conflict.is_null() {
                    self.record_assignments(
                        scope,
                        target,
                        (*conflict).onConflictSet,
                        pg_sys::CmdType::CMD_UPDATE,
                    );
                }
            }
            let limit = if parent.is_none() { ParameterPlace::Limit } else { ParameterPlace::InnerLimit };
            self.record_place((*query).limitCount, limit);
            self.record_place((*query).limitOffset, ParameterPlace::Offset);
            let mut context = Visit { walk: self, scope };
            let flags = pg_sys::QTW_IGNORE_RT_SUBQUERIES
                | pg_sys::QTW_IGNORE_CTE_SUBQUERIES
                | pg_sys::QTW_IGNORE_JOINALIASES;
            pg_sys::query_tree_walker(query, Some(visit), (&raw mut context).cast(), flags as i32);
        }
    }

    /// Records that a parameter meets a column expression.
    pub(super) fn record_meeting(
        &mut self,
        parameter: usize,
        source: ColumnExpression,
        how: How,
        row: usize,
    ) {
        let ColumnExpression { entry, expression, column, wrap, .. } = source;
        let occurrence = self.occurrence_index(entry, false);
        self.keep_meeting(parameter, Meeting { occurrence, expression, wrap, column, how, row });
    }

    /// Records parameters that are written to columns of the relation `target`.
    ///
    /// # Safety
    /// A live target list of the scope's query.
    unsafe fn record_assignments(
        &mut self,
        scope: usize,
        target: *mut pg_sys::RangeTblEntry,
        list: *mut pg_sys::List,
        command: pg_sys::CmdType::Type,
    ) {
        let how = if command == pg_sys::CmdType::CMD_INSERT { How::Insert } else { How::Set };
        // SAFETY: by the caller; a target list holds target entries.
        unsafe {
            for entry in nodes::<pg_sys::TargetEntry>(list) {
                if (*entry).resjunk {
                    continue;
                }
                let column = (*entry).resno;
                let mut values = vec![(*entry).expr.cast::<pg_sys::Node>()];
                let inner = strip_casts(values[0]);
                if is_a(inner, pg_sys::NodeTag::T_Var) && (*inner.cast::<pg_sys::Var>()).varlevelsup == 0 {
                    let variable: *mut pg_sys::Var = inner.cast();
                    let position = (*variable).varno as usize;
                    let table = (*self.scopes[scope].query).rtable;
                    if position >= 1 && position <= list_length(table) as usize {
                        let entry: *mut pg_sys::RangeTblEntry = nth(table, position - 1).cast();
                        values = self.values_by_row(scope, entry, (*variable).varattno);
                    }
                }
                for (row, value) in values.into_iter().enumerate() {
                    let Some(parameter) = self.parameter_index(value) else { continue };
                    let name = pg_sys::get_attname((*target).relid, column, true);
                    if name.is_null() {
                        continue;
                    }
                    let name = CStr::from_ptr(name).to_string_lossy();
                    let occurrence = self.occurrence_index(target, true);
                    let expression = crate::server::spi::quote_identifier(&name);
                    let column = Some(column);
                    self.keep_meeting(
                        parameter,
                        Meeting { occurrence, expression, wrap: None, column, how, row },
                    );
                }
            }
        }
    }

    /// Returns the expressions of a column of VALUES, one for each row, or that of a subquery's column.
    ///
    /// # Safety
    /// A live entry of the scope.
    unsafe fn values_by_row(
        &self,
        scope: usize,
        entry: *mut pg_sys::RangeTblEntry,
        attribute: i16,
    ) -> Vec<*mut pg_sys::Node> {
        // SAFETY: by the caller; VALUES are lists of lists of the same length.
        unsafe {
            if (*entry).rtekind == pg_sys::RTEKind::RTE_VALUES {
                let column = attribute as usize - 1;
                return nodes::<pg_sys::List>((*entry).values_lists).map(|row| nth(row, column)).collect();
            }
            column_definition(self, scope, entry, attribute).map(|(_, node)| node).into_iter().collect()
        }
    }

    /// Records the parameters among the operands of a binary operator.
    ///
    /// # Safety
    /// A live expression of the scope.
    unsafe fn visit_operator(&mut self, scope: usize, operation: *mut pg_sys::OpExpr) {
        // SAFETY: by the caller.
        unsafe {
            if list_length((*operation).args) != 2 {
                return;
            }
            let (left, right) = (nth((*operation).args, 0), nth((*operation).args, 1));
            let name = operator_name((*operation).opno);
            if (*operation).opresulttype != pg_sys::BOOLOID {
                if self.record_json_key(scope, operation.cast()) {
                    return;
                }
                self.record_place(left, ParameterPlace::Arithmetic);
                self.record_place(right, ParameterPlace::Arithmetic);
                return;
            }
            self.record_comparison(scope, left, right, &name, false);
            self.record_comparison(scope, right, left, &name, true);
            self.record_place(left, ParameterPlace::Compared);
            self.record_place(right, ParameterPlace::Compared);
        }
    }

    /// Records a parameter in `right` that the operator `name` compares with a column expression in `left`. `is_swapped`: `right`
    /// is the operator's left operand.
    ///
    /// # Safety
    /// Live expressions of the scope.
    unsafe fn record_comparison(
        &mut self,
        scope: usize,
        left: *mut pg_sys::Node,
        right: *mut pg_sys::Node,
        name: &str,
        is_swapped: bool,
    ) {
        let how = comparison_kind(name, is_swapped);
        // SAFETY: by the caller.
        unsafe {
            if name == "@@" && self.record_search(scope, left, right) {
                return;
            }
            if let Some(parameter) = self.parameter_index(right) {
                if let Some(mut source) = self.cached_column_expression(scope, left) {
                    if name == "@>"
                        && !is_swapped
                        && self.analysed.parameters[parameter].type_oid == pg_sys::JSONBOID.to_u32()
                    {
                        source.expression = sample_field_sql(&source.expression);
                        source.column = None;
                    }
                    // The range contains a single value.
                    if [("@>", false), ("<@", true)].contains(&(name, is_swapped))
                        && is_range(source.type_oid)
                        && !is_range(self.analysed.parameters[parameter].type_oid.into())
                    {
                        source.expression = format!("pg_catalog.lower({})", source.expression);
                        source.column = None;
                    }
                    self.record_meeting(parameter, source, how, 0);
                } else if let Some(value) = self.json_field_value(scope, left) {
                    self.record_meeting(parameter, value, how, 0);
                }
                return;
            }
            // x @> ARRAY[$1]
            let list = strip_casts(right);
            if is_a(list, pg_sys::NodeTag::T_ArrayExpr) && how == How::Operator {
                let elements = (*list.cast::<pg_sys::ArrayExpr>()).elements;
                for (index, value) in nodes(elements).enumerate() {
                    if let Some(parameter) = self.parameter_index(value)
                        && let Some(mut source) = self.cached_column_expression(scope, left)
                    {
                        source.expression = array_element_sql(&source.expression, index);
                        source.column = None;
                        self.record_meeting(parameter, source, how, 0);
                    }
                }
                return;
            }
            // lower(x) = lower($1)
            let right = strip_casts(right);
            if let Some(argument) = only_argument(right)
                && let Some(parameter) = self.parameter_index(argument)
            {
                let left = strip_casts(left);
                let compared = only_argument(left).unwrap_or(left);
                if let Some(source) = self.cached_column_expression(scope, compared) {
                    self.record_meeting(parameter, source, how, 0);
                }
            }
            // x > now() - $1
            if is_a(right, pg_sys::NodeTag::T_OpExpr) {
                self.record_shifted(scope, left, right.cast(), how);
            }
        }
    }

    /// Records the parameters of `x = ANY ($1)` and `x IN ($1, $2)`.
    ///
    /// # Safety
    /// A live expression of the scope.
    unsafe fn visit_array_comparison(&mut self, scope: usize, operation: *mut pg_sys::ScalarArrayOpExpr) {
        // SAFETY: by the caller.
        unsafe {
            let (left, right) = (nth((*operation).args, 0), nth((*operation).args, 1));
            let name = operator_name((*operation).opno);
            if let Some(parameter) = self.parameter_index(right) {
                if let Some(source) = self.cached_column_expression(scope, left) {
                    let how = if name == "=" { How::Array } else { How::Operator };
                    self.record_meeting(parameter, source, how, 0);
                }
                return;
            }
            let list = strip_casts(right);
            if !is_a(list, pg_sys::NodeTag::T_ArrayExpr) {
                return;
            }
            let elements = (*list.cast::<pg_sys::ArrayExpr>()).elements;
            for value in nodes(elements) {
                pgrx::check_for_interrupts!();
                self.record_comparison(scope, left, value, &name, false);
            }
        }
    }

    /// Records the parameters of `(a, b) > ($1, $2)`, column by column.
    ///
    /// # Safety
    /// A live expression of the scope.
    unsafe fn visit_row_comparison(&mut self, scope: usize, comparison: *mut pg_sys::RowCompareExpr) {
        // SAFETY: by the caller; both sides and the operators have the same number.
        unsafe {
            let operators = (*comparison).opnos;
            for index in 0..list_length(operators) as usize {
                let name = operator_name((*(*operators).elements.add(index)).oid_value);
                let (left, right) = (nth((*comparison).largs, index), nth((*comparison).rargs, index));
                self.record_comparison(scope, left, right, &name, false);
                self.record_comparison(scope, right, left, &name, true);
            }
        }
    }

    /// Records a function's traits and the parameters that are its arguments.
    ///
    /// # Safety
    /// A live call.
    unsafe fn visit_function(&mut self, call: *mut pg_sys::FuncExpr) {
        // SAFETY: by the caller; catalog look-ups inside a transaction.
        unsafe {
            self.analysed.calls_us |= self.is_tool_object(pg_sys::ProcedureRelationId, (*call).funcid);
            let immutable = std::ffi::c_char::from_ne_bytes([pg_sys::PROVOLATILE_IMMUTABLE]);
            self.analysed.calls_others |= (*call).funcid.to_u32() >= pg_sys::FirstNormalObjectId
                && pg_sys::func_volatile((*call).funcid) != immutable;
            self.analysed.sets |= (*call).funcid.to_u32() == SET_CONFIG;
            self.record_interval_fields(call);
            let name = pg_sys::get_func_name((*call).funcid);
            if name.is_null() || (*call).funcformat == pg_sys::CoercionForm::COERCE_IMPLICIT_CAST {
                return;
            }
            let name = CStr::from_ptr(name).to_string_lossy().into_owned();
            self.analysed.administers |= is_administration((*call).funcid, &name);
            for (index, argument) in nodes((*call).args).enumerate() {
                self.record_place(argument, ParameterPlace::Argument(name.clone(), index));
            }
        }
    }

    /// Records the fields that an interval parameter is reduced to: they give a constant its unit, as in `INTERVAL '7' DAY`.
    ///
    /// # Safety
    /// A live call.
    unsafe fn record_interval_fields(&mut self, call: *mut pg_sys::FuncExpr) {
        /// INTERVAL_FULL_RANGE of utils/timestamp.h, in the upper half of a type modifier.
        const ALL_FIELDS: i32 = 0x7fff;
        const FIELDS_SHIFT: i32 = 16;
        // SAFETY: by the caller; the parser makes the second of two arguments a constant.
        unsafe {
            if (*call).funcid.to_u32() != REDUCE_INTERVAL || list_length((*call).args) != 2 {
                return;
            }
            let (argument, modifier) = (nth((*call).args, 0), nth((*call).args, 1));
            if !is_a(argument, pg_sys::NodeTag::T_Param) || !is_a(modifier, pg_sys::NodeTag::T_Const) {
                return;
            }
            let modifier = (*modifier.cast::<pg_sys::Const>()).constvalue.value() as i32;
            if let Some(parameter) = self.parameter_index(argument)
                && (modifier >> FIELDS_SHIFT) & ALL_FIELDS != ALL_FIELDS
            {
                self.analysed.parameters[parameter].interval_fields = Some(modifier);
            }
        }
    }
}
