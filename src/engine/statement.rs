//! One statement of a script, in the three ways that a client can send it: prepared once, parsed
//! each time by the extended protocol, or as text by the simple one.

use std::ffi::{CStr, CString, c_char};

use bench_core::script::{Value, VariableId, Variables, format_double};
use pgrx::pg_sys;

use super::raw;
use super::session::{start_timeout, stop_timeout};
use super::trap::{Log, SqlError, trap, trap_with};

/// How a variable's value becomes a parameter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversion {
    Int2,
    Int4,
    Int8,
    Float8,
    Boolean,
    /// Through the type's input function, as a client's text parameters are.
    Text {
        input: pg_sys::Oid,
        io_param: pg_sys::Oid,
    },
}

/// A statement's parameter: where its value comes from and what the server inferred it to be.
#[derive(Clone, Copy, Debug)]
struct Parameter {
    variable: VariableId,
    conversion: Conversion,
}

/// What a session executes: plain data, to be held inside a trap.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// NULL for an empty statement.
    pub plan_source: *mut pg_sys::CachedPlanSource,
    pub params: pg_sys::ParamListInfo,
    pub needs_snapshot: bool,
    /// Whether the executor can run it by itself, unless rules come in between.
    pub is_plannable: bool,
    /// BEGIN and its like, and SET.
    pub touches_no_table: bool,
}

/// A prepared statement of this session.
pub struct Statement {
    source: CString,
    pub(super) plan: Plan,
    parameters: Vec<Parameter>,
    /// Texts of this execution's parameters; here so that nothing has to be dropped in a trap.
    texts: Vec<Option<CString>>,
    /// What the audit knows it by.
    pub traits: Traits,
}

/// What can be told of a statement before it runs.
#[derive(Clone, Debug, Default)]
pub struct Traits {
    /// A `CmdType` of the server's; 0 where rules make several statements of it.
    pub command_type: u32,
    /// The server's query identifier; 0 where it computes none.
    pub query_id: u64,
    /// Relations it names; `None` where they are too many to keep, or where it changes rows in
    /// more ways than one.
    pub relations: Option<Vec<u32>>,
    /// A utility other than transaction control: it may create what later statements name, or lead
    /// them elsewhere.
    pub changes_the_scene: bool,
}

impl Statement {
    /// Parses and analyses a statement as exec_parse_message does (tcop/postgres.c), with the
    /// parameters' types inferred by the server: `$1` is `parameters[0]`.
    pub fn prepare(sql: &str, parameters: &[VariableId], log: Log) -> Result<Self, SqlError> {
        let source = nul_terminated(sql)?;
        let declared = parameters.len();
        let mut prepared = Prepared::default();
        // SAFETY: the closure holds plain pointers only. The query string is copied by
        // CreateCachedPlan; everything else is allocated in the transaction's context, and what
        // must last is moved under CacheMemoryContext by SaveCachedPlan.
        unsafe {
            let text = source.as_ptr();
            let prepared = &raw mut prepared;
            trap_with(log, || {
                raw::SetCurrentStatementStartTimestamp();
                pg_sys::debug_query_string = text;
                raw::StartTransactionCommand();
                start_timeout();
                analyse(text, declared, true, &mut *prepared);
                stop_timeout();
                raw::CommitTransactionCommand();
                pg_sys::debug_query_string = std::ptr::null();
            })?;
        }
        let Prepared { plan, command_type, query_id, relations, relation_count, changes_the_scene } =
            prepared;
        // SAFETY: the plan source lasts; its param_types has num_params entries, which `analyse`
        // has made sure are the declared ones.
        let types = unsafe {
            match plan.plan_source.as_ref() {
                Some(plan_source) if plan_source.num_params > 0 => {
                    std::slice::from_raw_parts(plan_source.param_types, plan_source.num_params as usize)
                }
                _ => &[][..],
            }
        };
        let parameters = parameters
            .iter()
            .zip(types)
            .map(|(&variable, &type_oid)| Ok(Parameter { variable, conversion: conversion(type_oid)? }))
            .collect::<Result<Vec<_>, SqlError>>()?;
        let relations = relations.get(..relation_count).map(<[u32]>::to_vec);
        let texts = vec![None; parameters.len()];
        Ok(Self {
            source,
            plan,
            parameters,
            texts,
            traits: Traits { command_type, query_id, relations, changes_the_scene },
        })
    }

    /// The statement as the server's views show it.
    pub fn source(&self) -> &CStr {
        &self.source
    }

    /// Puts numbers and truth values into the parameter list, and sets aside the text of what
    /// has to go through an input function.
    #[inline]
    pub(super) fn bind(&mut self, variables: &Variables) {
        for (index, parameter) in self.parameters.iter().enumerate() {
            let value = variables.get(parameter.variable).unwrap_or(&Value::Null);
            let datum = match (value, parameter.conversion) {
                (Value::Integer(n), Conversion::Int4) => i32::try_from(*n).ok().map(pg_sys::Datum::from),
                (Value::Integer(n), Conversion::Int8) => Some(pg_sys::Datum::from(*n)),
                (Value::Integer(n), Conversion::Int2) => i16::try_from(*n).ok().map(pg_sys::Datum::from),
                // pgbench sends a double with 15 digits: so much of it, and no more, arrives.
                (Value::Double(x), Conversion::Float8) => {
                    format_double(*x).parse().ok().map(|sent: f64| pg_sys::Datum::from(sent.to_bits()))
                }
                (Value::Boolean(b), Conversion::Boolean) => Some(pg_sys::Datum::from(*b)),
                _ => None,
            };
            let text = match datum {
                Some(_) => None,
                None => text_of(value),
            };
            // SAFETY: the list was made for this many parameters and lasts with the statement.
            unsafe {
                let param = (*self.plan.params).params.as_mut_ptr().add(index);
                (*param).isnull = matches!(value, Value::Null);
                (*param).value = datum.unwrap_or(pg_sys::Datum::from(0));
            }
            if text.is_some() || self.texts[index].is_some() {
                self.texts[index] = text;
            }
        }
    }

    /// Converts what [`Self::bind`] has set aside.
    ///
    /// # Safety
    /// Inside a trap and a transaction; the values live in the current memory context.
    #[inline]
    pub(super) unsafe fn convert_texts(&self) {
        for (index, text) in self.texts.iter().enumerate() {
            if let Some(text) = text {
                // SAFETY: by the caller, and as in `bind`; input functions do not write to their
                // argument.
                unsafe {
                    let (input, io_param) = match self.parameters[index].conversion {
                        Conversion::Text { input, io_param } => (input, io_param),
                        by_value => input_of(by_value),
                    };
                    let param = (*self.plan.params).params.as_mut_ptr().add(index);
                    (*param).value = raw::OidInputFunctionCall(input, text.as_ptr().cast_mut(), io_param, -1);
                }
            }
        }
    }
}

/// A statement that is parsed, analysed and planned anew at each execution, as the extended
/// protocol does with an unnamed one.
pub struct Unprepared {
    source: CString,
    parameters: Vec<VariableId>,
    /// Texts of this execution's parameters; `None` is NULL.
    texts: Vec<Option<CString>>,
}

impl Unprepared {
    /// `$1` is `parameters[0]`.
    pub fn new(sql: &str, parameters: Vec<VariableId>) -> Result<Self, SqlError> {
        Ok(Self { source: nul_terminated(sql)?, texts: vec![None; parameters.len()], parameters })
    }

    /// The statement as the server's views show it.
    pub fn source(&self) -> &CStr {
        &self.source
    }

    /// Turns the values into text, as a client sends them.
    pub(super) fn bind(&mut self, variables: &Variables) {
        for (text, &variable) in self.texts.iter_mut().zip(&self.parameters) {
            *text = variables.get(variable).and_then(text_of);
        }
    }

    /// Analyses the statement and converts its parameters, all of it in the current memory context.
    ///
    /// # Safety
    /// Inside a trap and a transaction, after [`Self::bind`]. The plan is good until that context
    /// is reset.
    pub(super) unsafe fn analyse(&self) -> Plan {
        let mut prepared = Prepared::default();
        // SAFETY: by the caller; the list has as many parameters as there are texts, which
        // `analyse` makes sure of. The conversions are exec_bind_message's.
        unsafe {
            analyse(self.source.as_ptr(), self.texts.len(), false, &mut prepared);
            let plan = prepared.plan;
            if plan.needs_snapshot && !self.texts.is_empty() {
                raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
            }
            for (index, text) in self.texts.iter().enumerate() {
                let param = (*plan.params).params.as_mut_ptr().add(index);
                (*param).isnull = text.is_none();
                if let Some(text) = text {
                    let mut input = pg_sys::InvalidOid;
                    let mut io_param = pg_sys::InvalidOid;
                    raw::getTypeInputInfo((*param).ptype, &raw mut input, &raw mut io_param);
                    (*param).value = raw::OidInputFunctionCall(input, text.as_ptr().cast_mut(), io_param, -1);
                }
            }
            if plan.needs_snapshot && !self.texts.is_empty() {
                raw::PopActiveSnapshot();
            }
            plan
        }
    }
}

/// What `analyse` finds; plain data, so that it can be written inside a trap.
struct Prepared {
    plan: Plan,
    command_type: u32,
    query_id: u64,
    relations: [u32; 16],
    /// Above the array's length: too many.
    relation_count: usize,
    changes_the_scene: bool,
}

impl Default for Prepared {
    fn default() -> Self {
        Self {
            plan: Plan {
                plan_source: std::ptr::null_mut(),
                params: std::ptr::null_mut(),
                needs_snapshot: false,
                is_plannable: false,
                touches_no_table: false,
            },
            command_type: 0,
            query_id: 0,
            relations: [0; 16],
            relation_count: 0,
            changes_the_scene: false,
        }
    }
}

/// The part of exec_parse_message that talks to the server. To `save` it is to keep it beyond the
/// current memory context, and to see beforehand whether the role may do what it says.
///
/// # Safety
/// Inside a trap and a transaction; `text` stays valid throughout.
unsafe fn analyse(text: *const c_char, declared: usize, save: bool, out: &mut Prepared) {
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
        refuse_what_needs_a_client((*raw_statement).stmt);
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
        if needs_snapshot {
            raw::PopActiveSnapshot();
        }
        let query: *mut pg_sys::Query =
            if list_length(queries) == 1 { list_first(queries).cast() } else { std::ptr::null_mut() };
        if query.is_null() {
            // Rules have made several statements of it, or none.
            out.relation_count = usize::MAX / 2;
        } else {
            describe(query, out);
            if save && out.plan.is_plannable {
                check_permissions(query);
            }
        }
        raw::CompleteCachedPlan(
            plan_source,
            queries,
            std::ptr::null_mut(),
            types,
            count,
            std::ptr::null(),
            std::ptr::null_mut(),
            pg_sys::CURSOR_OPT_PARALLEL_OK as i32,
            true,
        );
        let context = pg_sys::CurrentMemoryContext;
        if save {
            raw::SaveCachedPlan(plan_source);
            pg_sys::CurrentMemoryContext = pg_sys::CacheMemoryContext;
        }
        // Functions and types of users' making: what they read and write cannot be seen from here.
        if list_length((*plan_source).invalItems) > 0 {
            out.relation_count = usize::MAX / 2;
        }
        let params = raw::makeParamList(count);
        pg_sys::CurrentMemoryContext = context;
        for index in 0..count as usize {
            let param = (*params).params.as_mut_ptr().add(index);
            (*param).ptype = *(*plan_source).param_types.add(index);
            // As exec_bind_message: lets a custom plan fold the value.
            (*param).pflags = pg_sys::PARAM_FLAG_CONST as u16;
        }
        out.plan.plan_source = plan_source;
        out.plan.params = params;
        out.plan.needs_snapshot = needs_snapshot;
    }
}

/// Whether the statement's parameters are the script's variables, and have types.
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
                c"a variable cannot stand in this statement: it takes values only where an expression may be",
            );
        }
        if count > declared {
            error(
                pgrx::PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
                c"a script's statement must not contain parameters ($1) of its own",
            );
        }
    }
}

/// What the audit and the execution have to know of a statement's one query.
///
/// # Safety
/// A live query.
unsafe fn describe(query: *mut pg_sys::Query, out: &mut Prepared) {
    // SAFETY: by the caller.
    unsafe {
        out.command_type = (*query).commandType;
        out.plan.is_plannable = raw::is_plannable((*query).commandType);
        // pg_stat_statements counts a prepared utility once, and then no more.
        if out.plan.is_plannable {
            #[cfg(feature = "pg18")]
            let query_id = (*query).queryId.cast_unsigned();
            #[cfg(not(feature = "pg18"))]
            let query_id = (*query).queryId;
            out.query_id = query_id;
        }
        out.changes_the_scene = (*query).commandType == pg_sys::CmdType::CMD_UTILITY
            && (*(*query).utilityStmt).type_ != pg_sys::NodeTag::T_TransactionStmt;
        let is_unclear = changes_rows_in_several_ways(query);
        out.plan.touches_no_table = (*query).commandType == pg_sys::CmdType::CMD_UTILITY && !is_unclear;
        if is_unclear {
            out.relation_count = usize::MAX / 2;
        } else {
            add_relations(query, 0, out);
        }
    }
}

/// Adds the relations that a query names, those of its subqueries, views and CTEs included.
///
/// # Safety
/// A live query.
unsafe fn add_relations(query: *mut pg_sys::Query, depth: u32, out: &mut Prepared) {
    if depth > 100 {
        out.relation_count = usize::MAX / 2;
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

/// Whether the number of processed rows does not tell which rows a statement inserts, updates and
/// deletes. A utility command may do anything, but for those that touch no table.
///
/// # Safety
/// A live query.
unsafe fn changes_rows_in_several_ways(query: *mut pg_sys::Query) -> bool {
    // SAFETY: by the caller; tags say what the nodes are.
    unsafe {
        let upsert = !(*query).onConflict.is_null()
            && (*(*query).onConflict).action == pg_sys::OnConflictAction::ONCONFLICT_UPDATE;
        let utility = (*query).commandType == pg_sys::CmdType::CMD_UTILITY
            && (*(*query).utilityStmt).type_ != pg_sys::NodeTag::T_TransactionStmt
            && (*(*query).utilityStmt).type_ != pg_sys::NodeTag::T_VariableSetStmt;
        (*query).hasModifyingCTE || (*query).commandType == pg_sys::CmdType::CMD_MERGE || upsert || utility
    }
}

/// Raises the server's own error for a table that the role may not use, as the executor would at
/// the first execution: a run that cannot work is to fail before it begins.
///
/// # Safety
/// Inside a trap, with a query whose relations are locked.
unsafe fn check_permissions(query: *mut pg_sys::Query) {
    unsafe extern "C-unwind" {
        #[cfg(feature = "pg15")]
        fn ExecCheckRTPerms(range_table: *mut pg_sys::List, ereport_on_violation: bool) -> bool;
        #[cfg(not(feature = "pg15"))]
        fn ExecCheckPermissions(
            range_table: *mut pg_sys::List,
            rteperminfos: *mut pg_sys::List,
            ereport_on_violation: bool,
        ) -> bool;
    }
    // SAFETY: by the caller; what InitPlan does (executor/execMain.c).
    unsafe {
        #[cfg(feature = "pg15")]
        ExecCheckRTPerms((*query).rtable, true);
        #[cfg(not(feature = "pg15"))]
        ExecCheckPermissions((*query).rtable, (*query).rteperminfos, true);
    }
}

/// COPY to or from the client would read and write the server's own standard files here.
///
/// # Safety
/// Inside a trap, with a parse tree.
pub(super) unsafe fn refuse_what_needs_a_client(statement: *mut pg_sys::Node) {
    // SAFETY: the tag says what the node is.
    unsafe {
        if (*statement).type_ == pg_sys::NodeTag::T_CopyStmt
            && (*statement.cast::<pg_sys::CopyStmt>()).filename.is_null()
        {
            error(
                pgrx::PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                c"COPY from or to the client is not possible: the engine's sessions have no client",
            );
        }
    }
}

/// Raises an ERROR the server's way.
///
/// # Safety
/// Inside a trap.
unsafe fn error(sqlstate: pgrx::PgSqlErrorCode, message: &'static CStr) -> ! {
    unsafe extern "C-unwind" {
        fn errstart(elevel: i32, domain: *const std::ffi::c_char) -> bool;
        fn errcode(sqlerrcode: i32) -> i32;
        fn errmsg_internal(format: *const std::ffi::c_char, ...) -> i32;
        fn errfinish(filename: *const std::ffi::c_char, lineno: i32, funcname: *const std::ffi::c_char);
    }
    // SAFETY: what the macro ereport(ERROR, …) expands to.
    unsafe {
        errstart(pgrx::PgLogLevel::ERROR as i32, std::ptr::null());
        errcode(sqlstate as i32);
        errmsg_internal(c"%s".as_ptr(), message.as_ptr());
        errfinish(c"statement.rs".as_ptr(), 0, c"prepare".as_ptr());
    }
    std::process::abort()
}

fn conversion(type_oid: pg_sys::Oid) -> Result<Conversion, SqlError> {
    Ok(match type_oid {
        pg_sys::INT2OID => Conversion::Int2,
        pg_sys::INT4OID => Conversion::Int4,
        pg_sys::INT8OID => Conversion::Int8,
        pg_sys::FLOAT8OID => Conversion::Float8,
        pg_sys::BOOLOID => Conversion::Boolean,
        _ => {
            let mut input = pg_sys::InvalidOid;
            let mut io_param = pg_sys::InvalidOid;
            let (input_out, io_param_out) = (&raw mut input, &raw mut io_param);
            // SAFETY: plain data only; a catalog look-up needs a transaction around it.
            unsafe {
                trap(|| {
                    raw::StartTransactionCommand();
                    raw::getTypeInputInfo(type_oid, input_out, io_param_out);
                    raw::CommitTransactionCommand();
                })?;
            }
            Conversion::Text { input, io_param }
        }
    })
}

/// Input functions of the types that usually need none: a value out of range or of another kind
/// gets the type's own error.
fn input_of(conversion: Conversion) -> (pg_sys::Oid, pg_sys::Oid) {
    let function = match conversion {
        Conversion::Int2 => pg_sys::F_INT2IN,
        Conversion::Int4 => pg_sys::F_INT4IN,
        Conversion::Int8 => pg_sys::F_INT8IN,
        Conversion::Float8 => pg_sys::F_FLOAT8IN,
        Conversion::Boolean => pg_sys::F_BOOLIN,
        Conversion::Text { input, io_param } => return (input, io_param),
    };
    (pg_sys::Oid::from(function), pg_sys::InvalidOid)
}

/// A value as pgbench sends it; `None` for NULL.
fn text_of(value: &Value) -> Option<CString> {
    match value {
        Value::Null => None,
        // A zero byte cannot be part of any PostgreSQL text; nothing that makes values lets one in.
        value => CString::new(value.to_text().into_owned()).ok(),
    }
}

fn nul_terminated(sql: &str) -> Result<CString, SqlError> {
    CString::new(sql).map_err(|_| {
        SqlError::new(pgrx::PgSqlErrorCode::ERRCODE_SYNTAX_ERROR, "a statement must not contain a zero byte")
    })
}

/// # Safety
/// NULL or a live list.
pub(super) unsafe fn list_length(list: *mut pg_sys::List) -> i32 {
    // SAFETY: by the caller.
    if list.is_null() { 0 } else { unsafe { (*list).length } }
}

/// # Safety
/// A live list of pointers with at least one element.
pub(super) unsafe fn list_first(list: *mut pg_sys::List) -> *mut std::ffi::c_void {
    // SAFETY: by the caller.
    unsafe { (*(*list).elements).ptr_value }
}
