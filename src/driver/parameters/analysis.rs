//! The server's own analysis of a statement, and then the walk over the query tree.

use std::ffi::{CStr, CString, c_void};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::columns::{ColumnExpression, Scope, Walk, beneath};
use super::{
    Analysed, How, Meeting, NeededPrivileges, Parameter, ParameterPlace, SET_CONFIG, bare, element, how,
    is_a, is_administration, is_range, may_write, name_of, nth, objects_of, one_of_object, type_name,
};
use crate::error::internal;
use crate::server::query::{in_text, list_first, list_length, parse};

/// Analyses a statement with parameters whose types are to be found.
///
/// # Errors
/// The server's are raised; 42P18 for a parameter without a type.
pub fn analyse(text: &str) -> Result<Analysed, UserError> {
    let (analysed, texts) = analyse_with_texts(text)?;
    match texts.first() {
        // indeterminate_datatype
        Some(place) => {
            Err(UserError::new("42P18", format!("could not determine data type of parameter ${}", place + 1)))
        }
        None => Ok(analysed),
    }
}

/// Like [`analyse`]; parameters that the statement gives no type are of type text, as constants in quotes are there. Returns
/// their places, too.
///
/// # Errors
/// The server's are raised.
pub fn analyse_with_texts(text: &str) -> Result<(Analysed, Vec<usize>), UserError> {
    let text = CString::new(text).map_err(|e| internal(e.to_string()))?;
    let (query, mut types) = parse_analyse(&text, &[])?;
    let unknown = |types: &[pg_sys::Oid]| -> Vec<usize> {
        types.iter().enumerate().filter(|(_, oid)| **oid == pg_sys::UNKNOWNOID).map(|(at, _)| at).collect()
    };
    let texts = unknown(&types);
    let query = if texts.is_empty() {
        query
    } else {
        texts.iter().for_each(|&place| types[place] = pg_sys::TEXTOID);
        let (query, found) = parse_analyse(&text, &types)?;
        types = found;
        query
    };
    let mut walk = Walk::default();
    walk.found.parameters.extend(types.iter().map(|&oid| parameter(oid)));
    // SAFETY: a query that the server has just analysed, in the current memory context.
    unsafe {
        if (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            walk.found.is_utility = true;
        } else {
            walk.query(query, None);
            walk.found.writes |= may_write(query);
            walk.found.objects = objects_of(query, &walk.found.relations);
        }
    }
    Ok((walk.found, texts))
}

/// The query of a text of one statement, and the types of its parameters; those in `given` have these.
fn parse_analyse(
    text: &CStr,
    given: &[pg_sys::Oid],
) -> Result<(*mut pg_sys::Query, Vec<pg_sys::Oid>), UserError> {
    // SAFETY: a NUL-terminated text that lives as long as what is made of it here; the lists have as many elements as they
    // say, and a raw statement is what a list of the parser's holds. The types are an array of their number in memory of the
    // server's, which enlarges it.
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
    // The parser has not come across it.
    let is_unused = type_oid == pg_sys::InvalidOid;
    Parameter {
        sql_type: if is_unused { String::new() } else { type_name(type_oid) },
        type_oid: type_oid.to_u32(),
        meeting: None,
        place: ParameterPlace::Elsewhere,
        interval_fields: None,
    }
}

// The walk over a query tree.

/// `pg_catalog.interval(interval, integer)`, which cuts an interval to the fields that its type has.
const CUT_INTERVAL: u32 = 1200;

struct Visit {
    walk: *mut Walk,
    scope: usize,
}

/// Looks at a node and goes on to those below.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called by the walker with live nodes, and with the context that `query` gives it, in which the walk is borrowed
    // for one node at a time.
    unsafe {
        if node.is_null() {
            return false;
        }
        pgrx::check_for_interrupts!();
        let Visit { walk, scope } = *context.cast::<Visit>();
        match (*node).type_ {
            T_Query => {
                (*walk).query(node.cast(), Some(scope));
                return false;
            }
            T_OpExpr => (*walk).operator(scope, node.cast()),
            T_ScalarArrayOpExpr => (*walk).any(scope, node.cast()),
            T_RowCompareExpr => (*walk).rows(scope, node.cast()),
            T_FuncExpr => (*walk).function(node.cast()),
            T_Aggref => (*walk).found.aggregates = true,
            _ => {}
        }
        pg_sys::expression_tree_walker(node, Some(visit), context)
    }
}

/// What the server asks of a role for a relation of a query (ExecCheckPermissions in executor/execMain.c).
///
/// # Safety
/// A live query as the parser has analysed it, and an entry of it that is a relation.
unsafe fn needed_privileges(
    query: *const pg_sys::Query,
    entry: *const pg_sys::RangeTblEntry,
) -> NeededPrivileges {
    // SAFETY: by the caller; an entry has the place of its permissions in the query's list, from 1, or 0 for none.
    unsafe {
        #[cfg(not(since_16))]
        let mode = {
            let _ = query;
            (*entry).requiredPerms
        };
        #[cfg(since_16)]
        let mode = match (*entry).perminfoindex {
            0 => 0,
            place => {
                let info: *const pg_sys::RTEPermissionInfo =
                    nth((*query).rteperminfos, place as usize - 1).cast();
                (*info).requiredPerms
            }
        };
        NeededPrivileges { relation: (*entry).relid, mode }
    }
}

impl Walk {
    /// Walks over a query.
    ///
    /// # Safety
    /// A live query, as the parser has analysed it.
    pub unsafe fn query(&mut self, query: *mut pg_sys::Query, parent: Option<usize>) {
        // SAFETY: by the caller.
        unsafe {
            let scope = self.scopes.len();
            self.scopes.push(Scope { query, parent });
            let command = (*query).commandType;
            let reads = command == pg_sys::CmdType::CMD_SELECT;
            self.found.writes |= !reads || !(*query).rowMarks.is_null();
            self.found.takes_back |= !(*query).onConflict.is_null();
            self.found.aggregates |=
                (*query).hasAggs || !(*query).groupClause.is_null() || !(*query).distinctClause.is_null();
            // What is inside comes first: whoever asks for a column of it finds its scope.
            for at in 0..list_length((*query).cteList) as usize {
                let cte: *mut pg_sys::CommonTableExpr = nth((*query).cteList, at).cast();
                self.query((*cte).ctequery.cast(), Some(scope));
            }
            for at in 0..list_length((*query).rtable) as usize {
                let entry: *mut pg_sys::RangeTblEntry = nth((*query).rtable, at).cast();
                match (*entry).rtekind {
                    pg_sys::RTEKind::RTE_SUBQUERY => self.query((*entry).subquery, Some(scope)),
                    pg_sys::RTEKind::RTE_RELATION => {
                        self.found.relations.push((*entry).relid);
                        self.found.privileges.push(needed_privileges(query, entry));
                        self.found.calls_us |= self.is_own(pg_sys::RelationRelationId, (*entry).relid);
                    }
                    _ => {}
                }
            }
            if !reads && (*query).resultRelation > 0 {
                let target = nth((*query).rtable, (*query).resultRelation as usize - 1).cast();
                self.assignments(scope, target, (*query).targetList, command);
                let conflict = (*query).onConflict;
                if !conflict.is_null() {
                    self.assignments(scope, target, (*conflict).onConflictSet, pg_sys::CmdType::CMD_UPDATE);
                }
            }
            let limit = if parent.is_none() { ParameterPlace::Limit } else { ParameterPlace::InnerLimit };
            self.place((*query).limitCount, limit);
            self.place((*query).limitOffset, ParameterPlace::Offset);
            let mut context = Visit { walk: self, scope };
            let flags = pg_sys::QTW_IGNORE_RT_SUBQUERIES
                | pg_sys::QTW_IGNORE_CTE_SUBQUERIES
                | pg_sys::QTW_IGNORE_JOINALIASES;
            pg_sys::query_tree_walker(query, Some(visit), (&raw mut context).cast(), flags as i32);
        }
    }

    pub(super) fn meet(&mut self, parameter: usize, source: ColumnExpression, how: How, row: usize) {
        let ColumnExpression { entry, expression, column, wrap, .. } = source;
        let occurrence = self.occurrence(entry, false);
        self.meet_at(parameter, Meeting { occurrence, expression, wrap, column, how, row });
    }

    /// Values that go into a relation's columns.
    ///
    /// # Safety
    /// A live target list of the scope's query.
    unsafe fn assignments(
        &mut self,
        scope: usize,
        target: *mut pg_sys::RangeTblEntry,
        list: *mut pg_sys::List,
        command: pg_sys::CmdType::Type,
    ) {
        let how = if command == pg_sys::CmdType::CMD_INSERT { How::Insert } else { How::Set };
        // SAFETY: by the caller; a target list holds target entries.
        unsafe {
            for at in 0..list_length(list) as usize {
                let entry: *mut pg_sys::TargetEntry = nth(list, at).cast();
                if (*entry).resjunk {
                    continue;
                }
                let column = (*entry).resno;
                let mut values = vec![(*entry).expr.cast::<pg_sys::Node>()];
                let inner = bare(values[0]);
                if is_a(inner, pg_sys::NodeTag::T_Var) && (*inner.cast::<pg_sys::Var>()).varlevelsup == 0 {
                    let variable: *mut pg_sys::Var = inner.cast();
                    let place = (*variable).varno as usize;
                    let table = (*self.scopes[scope].query).rtable;
                    if place >= 1 && place <= list_length(table) as usize {
                        let from: *mut pg_sys::RangeTblEntry = nth(table, place - 1).cast();
                        values = self.rows_of(scope, from, (*variable).varattno);
                    }
                }
                for (row, value) in values.into_iter().enumerate() {
                    let Some(parameter) = self.parameter(value) else { continue };
                    let name = pg_sys::get_attname((*target).relid, column, true);
                    if name.is_null() {
                        continue;
                    }
                    let name = CStr::from_ptr(name).to_string_lossy();
                    let occurrence = self.occurrence(target, true);
                    let expression = crate::server::spi::quote_identifier(&name);
                    let column = Some(column);
                    self.meet_at(parameter, Meeting { occurrence, expression, wrap: None, column, how, row });
                }
            }
        }
    }

    /// What a column of VALUES or of a subquery is in each row.
    ///
    /// # Safety
    /// A live entry of the scope.
    unsafe fn rows_of(
        &self,
        scope: usize,
        entry: *mut pg_sys::RangeTblEntry,
        attribute: i16,
    ) -> Vec<*mut pg_sys::Node> {
        // SAFETY: by the caller; VALUES are lists of lists of the same length.
        unsafe {
            if (*entry).rtekind == pg_sys::RTEKind::RTE_VALUES {
                let lists = (*entry).values_lists;
                return (0..list_length(lists) as usize)
                    .map(|at| nth(nth(lists, at).cast(), attribute as usize - 1))
                    .collect();
            }
            beneath(self, scope, entry, attribute).map(|(_, node)| node).into_iter().collect()
        }
    }

    /// # Safety
    /// A live expression of the scope.
    unsafe fn operator(&mut self, scope: usize, operation: *mut pg_sys::OpExpr) {
        // SAFETY: by the caller.
        unsafe {
            if list_length((*operation).args) != 2 {
                return;
            }
            let (left, right) = (nth((*operation).args, 0), nth((*operation).args, 1));
            let name = name_of((*operation).opno);
            if (*operation).opresulttype != pg_sys::BOOLOID {
                if self.meets_field(scope, operation.cast()) {
                    return;
                }
                self.place(left, ParameterPlace::Arithmetic);
                self.place(right, ParameterPlace::Arithmetic);
                return;
            }
            self.compare(scope, left, right, &name, false);
            self.compare(scope, right, left, &name, true);
            self.place(left, ParameterPlace::Compared);
            self.place(right, ParameterPlace::Compared);
        }
    }

    /// Looks for a parameter in `right`, and for what it meets in `left`.
    ///
    /// # Safety
    /// Live expressions of the scope.
    unsafe fn compare(
        &mut self,
        scope: usize,
        left: *mut pg_sys::Node,
        right: *mut pg_sys::Node,
        name: &str,
        is_swapped: bool,
    ) {
        let how = how(name, is_swapped);
        // SAFETY: by the caller.
        unsafe {
            if name == "@@" && self.words(scope, left, right) {
                return;
            }
            if let Some(parameter) = self.parameter(right) {
                if let Some(mut source) = self.source(scope, left) {
                    if name == "@>"
                        && !is_swapped
                        && self.found.parameters[parameter].type_oid == pg_sys::JSONBOID.to_u32()
                    {
                        source.expression = one_of_object(&source.expression);
                        source.column = None;
                    }
                    // A range that contains a value, not a range.
                    if [("@>", false), ("<@", true)].contains(&(name, is_swapped))
                        && is_range(source.type_oid)
                        && !is_range(self.found.parameters[parameter].type_oid.into())
                    {
                        source.expression = format!("pg_catalog.lower({})", source.expression);
                        source.column = None;
                    }
                    self.meet(parameter, source, how, 0);
                } else if let Some(value) = self.value_of_field(scope, left) {
                    self.meet(parameter, value, how, 0);
                }
                return;
            }
            // x @> ARRAY[$1]
            let list = bare(right);
            if is_a(list, pg_sys::NodeTag::T_ArrayExpr) && how == How::Operator {
                let elements = (*list.cast::<pg_sys::ArrayExpr>()).elements;
                for at in 0..list_length(elements) as usize {
                    if let Some(parameter) = self.parameter(nth(elements, at))
                        && let Some(mut source) = self.source(scope, left)
                    {
                        source.expression = element(&source.expression, at);
                        source.column = None;
                        self.meet(parameter, source, how, 0);
                    }
                }
                return;
            }
            // lower(x) = lower($1), and x > now() - $1
            let right = bare(right);
            if is_a(right, pg_sys::NodeTag::T_FuncExpr) {
                let call: *mut pg_sys::FuncExpr = right.cast();
                if list_length((*call).args) == 1
                    && let Some(parameter) = self.parameter(nth((*call).args, 0))
                {
                    let left = bare(left);
                    let argument = match is_a(left, pg_sys::NodeTag::T_FuncExpr) {
                        true if list_length((*left.cast::<pg_sys::FuncExpr>()).args) == 1 => {
                            nth((*left.cast::<pg_sys::FuncExpr>()).args, 0)
                        }
                        _ => left,
                    };
                    if let Some(source) = self.source(scope, argument) {
                        self.meet(parameter, source, how, 0);
                    }
                }
            }
            if is_a(right, pg_sys::NodeTag::T_OpExpr) {
                self.shift(scope, left, right.cast(), how);
            }
        }
    }

    /// # Safety
    /// A live expression of the scope.
    unsafe fn any(&mut self, scope: usize, operation: *mut pg_sys::ScalarArrayOpExpr) {
        // SAFETY: by the caller.
        unsafe {
            let (left, right) = (nth((*operation).args, 0), nth((*operation).args, 1));
            let name = name_of((*operation).opno);
            if let Some(parameter) = self.parameter(right) {
                if let Some(source) = self.source(scope, left) {
                    let how = if name == "=" { How::Array } else { How::Operator };
                    self.meet(parameter, source, how, 0);
                }
                return;
            }
            let list = bare(right);
            if !is_a(list, pg_sys::NodeTag::T_ArrayExpr) {
                return;
            }
            let elements = (*list.cast::<pg_sys::ArrayExpr>()).elements;
            for at in 0..list_length(elements) as usize {
                pgrx::check_for_interrupts!();
                self.compare(scope, left, nth(elements, at), &name, false);
            }
        }
    }

    /// # Safety
    /// A live expression of the scope.
    unsafe fn rows(&mut self, scope: usize, comparison: *mut pg_sys::RowCompareExpr) {
        // SAFETY: by the caller; both sides and the operators have the same number.
        unsafe {
            let operators = (*comparison).opnos;
            for at in 0..list_length(operators) as usize {
                let name = name_of((*(*operators).elements.add(at)).oid_value);
                let (left, right) = (nth((*comparison).largs, at), nth((*comparison).rargs, at));
                self.compare(scope, left, right, &name, false);
                self.compare(scope, right, left, &name, true);
            }
        }
    }

    /// # Safety
    /// A live call.
    unsafe fn function(&mut self, call: *mut pg_sys::FuncExpr) {
        // SAFETY: by the caller; catalog look-ups inside a transaction.
        unsafe {
            self.found.calls_us |= self.is_own(pg_sys::ProcedureRelationId, (*call).funcid);
            let is_pure = std::ffi::c_char::from_ne_bytes([pg_sys::PROVOLATILE_IMMUTABLE]);
            self.found.calls_others |= (*call).funcid.to_u32() >= pg_sys::FirstNormalObjectId
                && pg_sys::func_volatile((*call).funcid) != is_pure;
            self.found.sets |= (*call).funcid.to_u32() == SET_CONFIG;
            self.interval(call);
            let name = pg_sys::get_func_name((*call).funcid);
            if name.is_null() || (*call).funcformat == pg_sys::CoercionForm::COERCE_IMPLICIT_CAST {
                return;
            }
            let name = CStr::from_ptr(name).to_string_lossy().into_owned();
            self.found.administers |= is_administration((*call).funcid, &name);
            for at in 0..list_length((*call).args) as usize {
                self.place(nth((*call).args, at), ParameterPlace::Argument(name.clone(), at));
            }
        }
    }

    /// Notes the fields that a parameter is cut to. As a constant, it is read by them: `INTERVAL '7' DAY` is seven days.
    ///
    /// # Safety
    /// A live call.
    unsafe fn interval(&mut self, call: *mut pg_sys::FuncExpr) {
        /// INTERVAL_FULL_RANGE in the server's utils/timestamp.h, and where it is in a modifier.
        const ALL_FIELDS: i32 = 0x7fff;
        const FIELDS_SHIFT: i32 = 16;
        // SAFETY: by the caller; a function of two arguments, the second of which the parser makes a constant.
        unsafe {
            if (*call).funcid.to_u32() != CUT_INTERVAL || list_length((*call).args) != 2 {
                return;
            }
            let (argument, modifier) = (nth((*call).args, 0), nth((*call).args, 1));
            if !is_a(argument, pg_sys::NodeTag::T_Param) || !is_a(modifier, pg_sys::NodeTag::T_Const) {
                return;
            }
            let modifier = (*modifier.cast::<pg_sys::Const>()).constvalue.value() as i32;
            if let Some(parameter) = self.parameter(argument)
                && (modifier >> FIELDS_SHIFT) & ALL_FIELDS != ALL_FIELDS
            {
                self.found.parameters[parameter].interval_fields = Some(modifier);
            }
        }
    }
}
