//! Parses and analyses a statement as the server does for a client's Parse message, and derives its properties before
//! it runs.

use std::ffi::{CStr, c_char, c_void};

use pgrx::pg_sys;

use super::raw;
use crate::server::query::{list_first, list_length};

/// A statement ready to execute: plain data, so that it can be held inside a trap.
#[derive(Clone, Copy)]
pub(super) struct ExecutionPlan {
    /// NULL for an empty statement.
    pub plan_source: *mut pg_sys::CachedPlanSource,
    pub params: pg_sys::ParamListInfo,
    pub needs_snapshot: bool,
    /// The executor can run it without a portal, unless rules rewrite it.
    pub is_plannable: bool,
    /// Transaction control or SET.
    pub touches_no_table: bool,
}

/// More relations of a statement are counted, but not kept.
const MAX_RELATIONS: usize = 16;

/// The result of [`analyse`]: plain data, so that it can be written inside a trap.
pub(super) struct AnalysedStatement {
    pub plan: ExecutionPlan,
    pub command_type: u32,
    pub query_id: u64,
    /// The identifier that it gets when it is analysed again with known parameter types.
    pub later_query_id: u64,
    pub relations: [u32; MAX_RELATIONS],
    /// May exceed the array's length.
    pub relation_count: usize,
    /// It may use relations that analysis does not see.
    pub has_hidden_relations: bool,
    pub changes_the_scene: bool,
    pub forgets_prepared: bool,
    pub takes_back: bool,
    pub looks_at_ends: bool,
}

impl Default for AnalysedStatement {
    fn default() -> Self {
        Self {
            plan: ExecutionPlan {
                plan_source: std::ptr::null_mut(),
                params: std::ptr::null_mut(),
                needs_snapshot: false,
                is_plannable: false,
                touches_no_table: false,
            },
            command_type: 0,
            query_id: 0,
            later_query_id: 0,
            relations: [0; MAX_RELATIONS],
            relation_count: 0,
            has_hidden_relations: false,
            changes_the_scene: false,
            forgets_prepared: false,
            takes_back: false,
            looks_at_ends: false,
        }
    }
}

/// Parses, analyses and rewrites a statement like exec_parse_message. `save` keeps the plan beyond the current memory
/// context, and checks the role's privileges beforehand.
///
/// # Safety
/// Inside a trap and a transaction; `text` stays valid throughout.
pub(super) unsafe fn analyse(text: *const c_char, declared: usize, save: bool, out: &mut AnalysedStatement) {
    // SAFETY: by the caller; the sequence is exec_parse_message's.
    unsafe {
        let statements = raw::pg_parse_query(text);
        if list_length(statements) > 1 {
            error(
                pgrx::PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
                c"cannot insert multiple commands into a prepared statement",
            );
        }
        if list_length(statements) == 0 {
            return;
        }
        let raw_statement: *mut pg_sys::RawStmt = list_first(statements).cast();
        refuse_client_copy((*raw_statement).stmt);
        let tag = raw::CreateCommandTag((*raw_statement).stmt);
        let plan_source = raw::CreateCachedPlan(raw_statement, text, tag);
        let needs_snapshot = raw::analyze_requires_snapshot(raw_statement);
        if needs_snapshot {
            raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
        }
        let mut types: *mut pg_sys::Oid = std::ptr::null_mut();
        let mut count = 0;
        let queries = raw::pg_analyze_and_rewrite_varparams(
            raw_statement,
            text,
            &raw mut types,
            &raw mut count,
            std::ptr::null_mut(),
        );
        check_parameters(types, count as usize, declared);
        let query: *mut pg_sys::Query =
            if list_length(queries) == 1 { list_first(queries).cast() } else { std::ptr::null_mut() };
        if query.is_null() {
            // Rules have replaced it by several statements, or by none.
            out.has_hidden_relations = true;
        } else {
            describe(query, out);
            if save && count > 0 && out.query_id != 0 {
                out.later_query_id = query_id_with_types(plan_source, text, types, count);
            }
            if save && out.plan.is_plannable {
                check_permissions(query);
            }
        }
        if needs_snapshot {
            raw::PopActiveSnapshot();
        }
        raw::CompleteCachedPlan(
            plan_source,
            queries,
            std::ptr::null_mut(),
            types,
            count,
            None,
            std::ptr::null_mut(),
            pg_sys::CURSOR_OPT_PARALLEL_OK as i32,
            true,
        );
        let context = pg_sys::CurrentMemoryContext;
        if save {
            raw::SaveCachedPlan(plan_source);
            pg_sys::CurrentMemoryContext = pg_sys::CacheMemoryContext;
        }
        // invalItems are user-defined functions and types, whose effects analysis does not see.
        if list_length((*plan_source).invalItems) > 0 {
            out.has_hidden_relations = true;
        }
        let params = parameter_list(plan_source, count);
        pg_sys::CurrentMemoryContext = context;
        out.plan.plan_source = plan_source;
        out.plan.params = params;
        out.plan.needs_snapshot = needs_snapshot;
    }
}

/// Allocates a list for the values of a plan's `count` parameters in the current memory context.
///
/// # Safety
/// Inside a trap, with a live plan.
unsafe fn parameter_list(plan_source: *mut pg_sys::CachedPlanSource, count: i32) -> pg_sys::ParamListInfo {
    // SAFETY: by the caller; list and types have room for `count`.
    unsafe {
        // As in exec_bind_message, NULL instead of an empty list: extensions assume that a list has elements.
        let params = if count > 0 { raw::makeParamList(count) } else { std::ptr::null_mut() };
        for index in 0..count as usize {
            let param = (*params).params.as_mut_ptr().add(index);
            (*param).ptype = *(*plan_source).param_types.add(index);
            // As in exec_bind_message: a custom plan may fold the value.
            (*param).pflags = pg_sys::PARAM_FLAG_CONST as u16;
        }
        params
    }
}

/// Raises an error unless the statement's parameters are the `declared` variables of the script and have types.
///
/// # Safety
/// Inside a trap, with the `count` types that the server has inferred.
unsafe fn check_parameters(types: *const pg_sys::Oid, count: usize, declared: usize) {
    // SAFETY: by the caller.
    unsafe {
        for index in 0..count {
            let type_oid = *types.add(index);
            if type_oid == pg_sys::InvalidOid || type_oid == pg_sys::UNKNOWNOID {
                error(
                    pgrx::PgSqlErrorCode::ERRCODE_INDETERMINATE_DATATYPE,
                    c"could not determine the data type of a variable; give it a cast",
                );
            }
        }
        if count < declared {
            error(
                pgrx::PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
                c"cannot use a variable here: this statement takes values only in expressions",
            );
        }
        if count > declared {
            error(
                pgrx::PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
                c"a script's statement must not contain parameters ($1)",
            );
        }
    }
}

/// Records the properties of a statement's only query for audit and execution.
///
/// # Safety
/// A live query.
unsafe fn describe(query: *mut pg_sys::Query, out: &mut AnalysedStatement) {
    // SAFETY: by the caller.
    unsafe {
        out.command_type = (*query).commandType;
        out.plan.is_plannable = raw::is_plannable((*query).commandType);
        // pg_stat_statements counts only the first execution of a prepared utility.
        if out.plan.is_plannable {
            out.query_id = query_id(query);
        }
        out.changes_the_scene = (*query).commandType == pg_sys::CmdType::CMD_UTILITY
            && (*(*query).utilityStmt).type_ != pg_sys::NodeTag::T_TransactionStmt;
        out.forgets_prepared = out.changes_the_scene && drops_prepared((*query).utilityStmt);
        out.takes_back = !(*query).onConflict.is_null();
        out.looks_at_ends = may_read_index_ends(query);
        let is_unclear = changes_rows_in_several_ways(query);
        out.plan.touches_no_table = (*query).commandType == pg_sys::CmdType::CMD_UTILITY && !is_unclear;
        if is_unclear {
            out.has_hidden_relations = true;
        } else {
            add_relations(query, 0, out);
        }
    }
}

/// Returns whether a utility is DISCARD ALL or DEALLOCATE ALL.
///
/// # Safety
/// A live node.
unsafe fn drops_prepared(utility: *mut pg_sys::Node) -> bool {
    // SAFETY: by the caller; the tag says what it is.
    unsafe {
        match (*utility).type_ {
            pg_sys::NodeTag::T_DiscardStmt => {
                (*utility.cast::<pg_sys::DiscardStmt>()).target == pg_sys::DiscardMode::DISCARD_ALL
            }
            pg_sys::NodeTag::T_DeallocateStmt => (*utility.cast::<pg_sys::DeallocateStmt>()).name.is_null(),
            _ => false,
        }
    }
}

/// Returns a query's identifier; 0 if the server computes none.
///
/// # Safety
/// A live query.
unsafe fn query_id(query: *mut pg_sys::Query) -> u64 {
    // SAFETY: by the caller.
    unsafe {
        #[cfg(since_18)]
        let id = (*query).queryId.cast_unsigned();
        #[cfg(not(since_18))]
        let id = (*query).queryId;
        id
    }
}

/// Returns the identifier that a statement gets when RevalidateCachedQuery (utils/cache/plancache.c) analyses it again: with
/// known parameter types, INSERT … SELECT $1 has another tree.
///
/// # Safety
/// As [`analyse`]; `types` are the `count` types that the server has inferred.
unsafe fn query_id_with_types(
    plan_source: *mut pg_sys::CachedPlanSource,
    text: *const c_char,
    types: *const pg_sys::Oid,
    count: i32,
) -> u64 {
    // SAFETY: by the caller. Analysis changes the tree, hence the copy.
    unsafe {
        let statement = pg_sys::copyObjectImpl((*plan_source).raw_parse_tree.cast()).cast();
        query_id(pg_sys::parse_analyze_fixedparams(statement, text, types, count, std::ptr::null_mut()))
    }
}

/// Adds the relations that a query names, including its subqueries, views and CTEs.
///
/// # Safety
/// A live query.
unsafe fn add_relations(query: *mut pg_sys::Query, depth: u32, out: &mut AnalysedStatement) {
    /// Stops recursion long before the stack ends.
    const MAX_DEPTH: u32 = 100;
    if depth > MAX_DEPTH {
        out.has_hidden_relations = true;
        return;
    }
    // SAFETY: by the caller; the kinds say what the entries hold.
    unsafe {
        for index in 0..list_length((*query).rtable) as usize {
            let entry: *mut pg_sys::RangeTblEntry =
                (*(*(*query).rtable).elements.add(index)).ptr_value.cast();
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION => {
                    if out.relation_count < out.relations.len() {
                        out.relations[out.relation_count] = (*entry).relid.to_u32();
                    }
                    out.relation_count += 1;
                }
                pg_sys::RTEKind::RTE_SUBQUERY => add_relations((*entry).subquery, depth + 1, out),
                _ => {}
            }
        }
        for index in 0..list_length((*query).cteList) as usize {
            let cte: *mut pg_sys::CommonTableExpr =
                (*(*(*query).cteList).elements.add(index)).ptr_value.cast();
            add_relations((*cte).ctequery.cast(), depth + 1, out);
        }
    }
}

/// Returns whether the number of processed rows does not show how many a statement inserts, updates and deletes. True for
/// all utility commands except transaction control and SET.
///
/// # Safety
/// A live query.
unsafe fn changes_rows_in_several_ways(query: *mut pg_sys::Query) -> bool {
    // SAFETY: by the caller; tags say what the nodes are.
    unsafe {
        let upsert = !(*query).onConflict.is_null()
            && (*(*query).onConflict).action == pg_sys::OnConflictAction::ONCONFLICT_UPDATE;
        let utility = (*query).commandType == pg_sys::CmdType::CMD_UTILITY
            && !controls_own_transaction((*query).utilityStmt)
            && (*(*query).utilityStmt).type_ != pg_sys::NodeTag::T_VariableSetStmt;
        (*query).hasModifyingCTE || (*query).commandType == pg_sys::CmdType::CMD_MERGE || upsert || utility
    }
}

/// Returns whether a utility is transaction control, other than of prepared transactions: their changes are counted where
/// and when they are committed.
///
/// # Safety
/// A live utility statement.
unsafe fn controls_own_transaction(statement: *mut pg_sys::Node) -> bool {
    use pg_sys::TransactionStmtKind::{
        TRANS_STMT_COMMIT_PREPARED, TRANS_STMT_PREPARE, TRANS_STMT_ROLLBACK_PREPARED,
    };
    // SAFETY: by the caller; a tag says what a node is.
    unsafe {
        (*statement).type_ == pg_sys::NodeTag::T_TransactionStmt
            && ![TRANS_STMT_PREPARE, TRANS_STMT_COMMIT_PREPARED, TRANS_STMT_ROLLBACK_PREPARED]
                .contains(&(*statement.cast::<pg_sys::TransactionStmt>()).kind)
    }
}

/// Raises the executor's error for a table that the role may not use, so that the run fails before it begins.
///
/// # Safety
/// Inside a trap, with a query whose relations are locked.
unsafe fn check_permissions(query: *mut pg_sys::Query) {
    unsafe extern "C-unwind" {
        #[cfg(not(since_16))]
        fn ExecCheckRTPerms(range_table: *mut pg_sys::List, ereport_on_violation: bool) -> bool;
        #[cfg(since_16)]
        fn ExecCheckPermissions(
            range_table: *mut pg_sys::List,
            rteperminfos: *mut pg_sys::List,
            ereport_on_violation: bool,
        ) -> bool;
    }
    // SAFETY: by the caller; as in InitPlan (executor/execMain.c).
    unsafe {
        #[cfg(not(since_16))]
        ExecCheckRTPerms((*query).rtable, true);
        #[cfg(since_16)]
        ExecCheckPermissions((*query).rtable, (*query).rteperminfos, true);
    }
}

/// Refuses COPY from or to the client, which would use the server's standard input and output.
///
/// # Safety
/// Inside a trap, with a parse tree.
pub unsafe fn refuse_client_copy(statement: *mut pg_sys::Node) {
    // SAFETY: by the caller; a tag says what a node is.
    unsafe {
        if (*statement).type_ == pg_sys::NodeTag::T_CopyStmt
            && (*statement.cast::<pg_sys::CopyStmt>()).filename.is_null()
        {
            error(
                pgrx::PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                c"COPY from or to the client is not possible: clients of a run neither send nor keep rows",
            );
        }
    }
}

/// Raises an ERROR by ereport.
///
/// # Safety
/// Inside a trap.
pub unsafe fn error(sqlstate: pgrx::PgSqlErrorCode, message: &'static CStr) -> ! {
    // SAFETY: by the caller.
    unsafe { error_with_hint(sqlstate, message, c"") }
}

/// Raises an ERROR by ereport, with a hint unless that is empty.
///
/// # Safety
/// Inside a trap.
pub unsafe fn error_with_hint(sqlstate: pgrx::PgSqlErrorCode, message: &CStr, hint: &'static CStr) -> ! {
    unsafe extern "C-unwind" {
        fn errstart(elevel: i32, domain: *const std::ffi::c_char) -> bool;
        fn errcode(sqlerrcode: i32) -> i32;
        fn errmsg_internal(format: *const std::ffi::c_char, ...) -> i32;
        fn errhint(format: *const std::ffi::c_char, ...) -> i32;
        fn errfinish(filename: *const std::ffi::c_char, lineno: i32, funcname: *const std::ffi::c_char);
    }
    // SAFETY: what the macro ereport(ERROR, …) expands to.
    unsafe {
        errstart(pgrx::PgLogLevel::ERROR as i32, std::ptr::null());
        errcode(sqlstate as i32);
        errmsg_internal(c"%s".as_ptr(), message.as_ptr());
        if !hint.is_empty() {
            errhint(c"%s".as_ptr(), hint.as_ptr());
        }
        errfinish(c"pgbench_ext".as_ptr(), 0, c"engine".as_ptr());
    }
    std::process::abort()
}

// Whether planning a statement counts as index scans.
//
// For a comparison such as `id > 5` the planner reads the column's least and greatest values from an index, if there is one
// (get_actual_variable_range, utils/adt/selfuncs.c). The server's statistics count each read as an index scan. Their number
// depends on the values, the column's statistics and the number of plans. Equality conditions need none.

/// Returns whether the planner may read the ends of an index for one of the query's conditions.
///
/// # Safety
/// Inside a trap and a transaction, with a live query after rewriting: views and policies are part of it.
unsafe fn may_read_index_ends(query: *mut pg_sys::Query) -> bool {
    // SAFETY: by the caller.
    unsafe { has_range_condition(query, false) }
}

/// Searches a query; the output columns of a subquery (`is_inner`) too, as they may be part of an outer condition.
///
/// # Safety
/// As for [`may_read_index_ends`].
unsafe fn has_range_condition(query: *mut pg_sys::Query, is_inner: bool) -> bool {
    // SAFETY: by the caller; the kinds say what the entries hold, and the walker takes NULL.
    unsafe {
        let none = std::ptr::null_mut();
        if is_range_condition((*query).jointree.cast(), none)
            || is_range_condition((*query).havingQual, none)
            || is_inner && is_range_condition((*query).targetList.cast(), none)
        {
            return true;
        }
        for index in 0..list_length((*query).rtable) as usize {
            let entry: *mut pg_sys::RangeTblEntry =
                (*(*(*query).rtable).elements.add(index)).ptr_value.cast();
            let is_subquery = (*entry).rtekind == pg_sys::RTEKind::RTE_SUBQUERY;
            if is_range_condition((*entry).securityQuals.cast(), none)
                || is_subquery && has_range_condition((*entry).subquery, true)
            {
                return true;
            }
        }
        is_range_condition((*query).cteList.cast(), none)
    }
}

/// Searches a node and those below it.
unsafe extern "C-unwind" fn is_range_condition(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: nodes of a live query; the tag says what each is.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => has_range_condition(node.cast(), true),
            // All three are struct OpExpr.
            pg_sys::NodeTag::T_OpExpr | pg_sys::NodeTag::T_DistinctExpr | pg_sys::NodeTag::T_NullIfExpr
                if has_range_estimate((*node.cast::<pg_sys::OpExpr>()).opno) =>
            {
                true
            }
            pg_sys::NodeTag::T_ScalarArrayOpExpr
                if has_range_estimate((*node.cast::<pg_sys::ScalarArrayOpExpr>()).opno) =>
            {
                true
            }
            pg_sys::NodeTag::T_RowCompareExpr => true,
            // Such as starts_with, which the planner treats like a comparison.
            pg_sys::NodeTag::T_FuncExpr
                if (*node.cast::<pg_sys::FuncExpr>()).funcresulttype == pg_sys::BOOLOID =>
            {
                true
            }
            _ => raw::walk_expression(node, is_range_condition, context),
        }
    }
}

/// Returns whether the planner estimates an operator by other means than equality. Operators without an estimator, such as
/// `+`, are no conditions.
///
/// # Safety
/// Inside a trap and a transaction.
unsafe fn has_range_estimate(operator: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the server's cache.
    let estimate = unsafe { raw::get_oprrest(operator) }.to_u32();
    ![0, pg_sys::F_EQSEL, pg_sys::F_NEQSEL].contains(&estimate)
}
