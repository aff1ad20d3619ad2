//! A script's statement: prepared once, or parsed at each execution like an unnamed one of the extended protocol.

use std::ffi::{CStr, CString};

use bench_base::error::{SqlError, sqlstate};
use bench_script::{Value, VariableId, Variables, format_double};
use pgrx::pg_sys;

use super::analysis::{AnalysedStatement, ExecutionPlan, analyse};
use super::raw::{self, Log, trap, trap_with};
use crate::server::signals::STATEMENT_TIMEOUT;

/// How a variable's value is converted to a parameter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversion {
    Int2,
    Int4,
    Int8,
    Float8,
    Boolean,
    /// By the type's input function, like a client's text parameters.
    Text {
        input: pg_sys::Oid,
        io_param: pg_sys::Oid,
    },
}

/// A statement's parameter: its variable, and the conversion to its inferred type.
#[derive(Clone, Copy, Debug)]
struct StatementParameter {
    variable: VariableId,
    conversion: Conversion,
}

/// A prepared statement of this session.
pub struct PreparedStatement {
    source: CString,
    pub(super) plan: ExecutionPlan,
    parameters: Vec<StatementParameter>,
    /// Texts of this execution's parameters, kept outside the trap, in which nothing may need dropping.
    texts: Vec<Option<CString>>,
    /// Properties for the audit.
    pub traits: Traits,
    /// It is DISCARD ALL or DEALLOCATE ALL.
    pub(super) forgets_prepared: bool,
    /// `Session::forgotten` at the first execution, which is when a client prepares it.
    pub(super) prepared_in: Option<u32>,
}

/// Properties of a statement that are known before it runs.
#[derive(Clone, Debug, Default)]
pub struct Traits {
    /// A `CmdType` of the server; 0 if rules replace it by several statements.
    pub command_type: u32,
    /// The server's query identifier; 0 if it computes none.
    pub query_id: u64,
    /// The identifier after its plan is rebuilt; differs if types of parameters were unknown before.
    pub later_query_id: u64,
    /// OIDs of its relations; `None` if they are too many, or not all known, or it changes rows in several ways.
    pub relations: Option<Vec<u32>>,
    /// A utility other than transaction control: it may create objects, or change which objects later statements name.
    pub changes_the_scene: bool,
    /// INSERT … ON CONFLICT: a row is removed again if another session has inserted its key meanwhile.
    pub takes_back: bool,
    /// Planning may read the ends of an index.
    pub looks_at_ends: bool,
}

impl PreparedStatement {
    /// Parses and analyses a statement like exec_parse_message (tcop/postgres.c). The server infers the parameters' types;
    /// `$1` is `parameters[0]`.
    pub fn prepare(sql: &str, parameters: &[VariableId], log: Log) -> Result<Self, SqlError> {
        let source = nul_terminated(sql)?;
        let declared = parameters.len();
        let mut prepared = AnalysedStatement::default();
        // SAFETY: the closure holds plain pointers only. CreateCachedPlan copies the query string; SaveCachedPlan moves the
        // plan from the transaction's context to CacheMemoryContext.
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
        let AnalysedStatement {
            plan, command_type, query_id, later_query_id, relations, relation_count, ..
        } = prepared;
        let AnalysedStatement { has_hidden_relations, changes_the_scene, takes_back, looks_at_ends, .. } =
            prepared;
        let forgets_prepared = prepared.forgets_prepared;
        // SAFETY: the plan source lasts; param_types has num_params entries, which `analyse` has checked.
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
            .map(|(&variable, &type_oid)| {
                Ok(StatementParameter { variable, conversion: pick_conversion(type_oid)? })
            })
            .collect::<Result<Vec<_>, SqlError>>()?;
        let relations = if has_hidden_relations { None } else { relations.get(..relation_count) };
        let relations = relations.map(<[u32]>::to_vec);
        let texts = vec![None; parameters.len()];
        Ok(Self {
            source,
            plan,
            parameters,
            texts,
            forgets_prepared,
            prepared_in: None,
            traits: Traits {
                command_type,
                query_id,
                later_query_id,
                relations,
                changes_the_scene,
                takes_back,
                looks_at_ends,
            },
        })
    }

    /// The statement as the server's views show it.
    pub fn source(&self) -> &CStr {
        &self.source
    }

    /// Returns the server's saved plan; NULL for an empty statement.
    pub fn plan_source(&self) -> *mut pg_sys::CachedPlanSource {
        self.plan.plan_source
    }

    /// Stores numbers and booleans in the parameter list, and keeps texts for the input functions.
    #[inline]
    pub(super) fn bind(&mut self, variables: &Variables) {
        for (index, parameter) in self.parameters.iter().enumerate() {
            let value = variables.get(parameter.variable).unwrap_or(&Value::Null);
            let datum = match (value, parameter.conversion) {
                (Value::Integer(n), Conversion::Int4) => i32::try_from(*n).ok().map(pg_sys::Datum::from),
                (Value::Integer(n), Conversion::Int8) => Some(pg_sys::Datum::from(*n)),
                (Value::Integer(n), Conversion::Int2) => i16::try_from(*n).ok().map(pg_sys::Datum::from),
                // As in pgbench, which sends doubles with 15 digits.
                (Value::Double(x), Conversion::Float8) => {
                    format_double(*x).parse().ok().map(|sent: f64| pg_sys::Datum::from(sent.to_bits()))
                }
                (Value::Boolean(b), Conversion::Boolean) => Some(pg_sys::Datum::from(*b)),
                _ => None,
            };
            let text = match datum {
                Some(_) => None,
                None => sent_text(value),
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

    /// Converts the texts that [`Self::bind`] has kept.
    ///
    /// # Safety
    /// Inside a trap and a transaction; the values live in the current memory context.
    #[inline]
    pub(super) unsafe fn convert_texts(&self) {
        for (index, text) in self.texts.iter().enumerate() {
            if let Some(text) = text {
                // SAFETY: by the caller, and as in `bind`; input functions do not write to their argument.
                unsafe {
                    let (input, io_param) = match self.parameters[index].conversion {
                        Conversion::Text { input, io_param } => (input, io_param),
                        by_value => input_function(by_value),
                    };
                    let param = (*self.plan.params).params.as_mut_ptr().add(index);
                    (*param).value = raw::OidInputFunctionCall(input, text.as_ptr().cast_mut(), io_param, -1);
                }
            }
        }
    }
}

/// A statement that is parsed, analysed and planned at each execution, like an unnamed one of the extended protocol.
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

    /// Converts the values to text, as a client sends them.
    pub(super) fn bind(&mut self, variables: &Variables) {
        for (text, &variable) in self.texts.iter_mut().zip(&self.parameters) {
            *text = variables.get(variable).and_then(sent_text);
        }
    }

    /// Analyses the statement in the current memory context.
    ///
    /// # Safety
    /// Inside a trap and a transaction. The plan is good until that context is reset.
    pub(super) unsafe fn analyse(&self) -> ExecutionPlan {
        let mut prepared = AnalysedStatement::default();
        // SAFETY: by the caller.
        unsafe { analyse(self.source.as_ptr(), self.texts.len(), false, &mut prepared) };
        prepared.plan
    }

    /// Converts the texts of [`Self::bind`] to parameters, like exec_bind_message.
    ///
    /// # Safety
    /// Inside a trap and a transaction, with the plan of the last [`Self::analyse`]; the values live in the current memory
    /// context.
    pub(super) unsafe fn convert_texts(&self, plan: ExecutionPlan) {
        // SAFETY: by the caller; `analyse` has checked that the list has as many parameters as there are texts.
        unsafe {
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
        }
    }
}

fn pick_conversion(type_oid: pg_sys::Oid) -> Result<Conversion, SqlError> {
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

/// Returns the input function of a type. Types that usually need none use it for values out of range or of another kind, to
/// raise the type's own error.
fn input_function(conversion: Conversion) -> (pg_sys::Oid, pg_sys::Oid) {
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

/// Returns a value as pgbench sends it; `None` for NULL.
fn sent_text(value: &Value) -> Option<CString> {
    match value {
        Value::Null => None,
        // Values never contain a zero byte, which PostgreSQL's texts cannot hold.
        value => CString::new(value.to_text().into_owned()).ok(),
    }
}

fn nul_terminated(sql: &str) -> Result<CString, SqlError> {
    CString::new(sql)
        .map_err(|_| SqlError::new(sqlstate::SYNTAX_ERROR, "a statement must not contain a zero byte"))
}

/// Arms statement_timeout.
///
/// # Safety
/// Inside a trap.
#[inline]
pub unsafe fn start_timeout() {
    // SAFETY: by the caller; enable_statement_timeout (tcop/postgres.c).
    unsafe {
        if pg_sys::StatementTimeout > 0 {
            raw::enable_timeout_after(STATEMENT_TIMEOUT, pg_sys::StatementTimeout);
        }
    }
}

/// Disarms statement_timeout.
///
/// # Safety
/// Inside a trap.
#[inline]
pub unsafe fn stop_timeout() {
    // SAFETY: by the caller; disable_statement_timeout (tcop/postgres.c).
    unsafe {
        if raw::get_timeout_active(STATEMENT_TIMEOUT) {
            raw::disable_timeout(STATEMENT_TIMEOUT, false);
        }
    }
}
