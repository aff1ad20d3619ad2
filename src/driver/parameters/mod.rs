//! What the parameters of a statement meet: the server's own analysis, with types for the parameters found by it, and a walk
//! over the query tree that looks for the column beside each parameter.
//!
//! Unlike in a client's loop nothing here is in a hurry: all of the server's functions are called through guards, so that an
//! ERROR unwinds as a panic does.

mod columns;
mod fields;
mod operators;
mod sums;
mod text_search;
mod walk;

use std::ffi::{CStr, CString};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

pub use operators::{TypeShape, shape_of};

use crate::error::internal;
use crate::guard::trust::objects::Object;
use crate::guard::trust::statement::objects_of;
use crate::server::lists::{list_first, list_length};
use crate::server::parser::{in_text, parse};

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
}

/// A relation's place in a statement: a table named twice has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub relation: pg_sys::Oid,
    /// The relation of a write.
    pub is_target: bool,
}

/// A statement, as far as its replay is concerned.
#[derive(Clone, Debug, Default)]
pub struct Analysed {
    /// `$1` is the first.
    pub parameters: Vec<Parameter>,
    pub occurrences: Vec<Occurrence>,
    /// A utility command.
    pub is_utility: bool,
    /// It inserts, updates, deletes or locks rows, or calls a volatile function, which may do so.
    pub writes: bool,
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
    /// All objects that it uses itself, these relations among them.
    pub objects: Vec<Object>,
}

/// Analyses a statement with parameters whose types are to be found.
///
/// # Errors
/// The server's are raised; 42P18 for a parameter without a type.
pub fn analyse(text: &str) -> Result<Analysed, UserError> {
    let text = CString::new(text).map_err(|e| internal(e.to_string()))?;
    // SAFETY: a NUL-terminated text that lives as long as what is made of it here; the lists have as many elements as they
    // say, and a raw statement is what a list of the parser's holds. The types are an array of their number.
    unsafe {
        let statements = parse(&text);
        if list_length(statements) != 1 {
            return Err(UserError::new(sqlstate::SYNTAX_ERROR, "not one statement"));
        }
        let raw: *mut pg_sys::RawStmt = list_first(statements).cast();
        let mut types: *mut pg_sys::Oid = std::ptr::null_mut();
        let mut count = 0;
        let none = std::ptr::null_mut();
        let query = in_text(&text, || {
            pg_sys::parse_analyze_varparams(raw, text.as_ptr(), &raw mut types, &raw mut count, none)
        });
        let mut walk = walk::Walk::default();
        for index in 0..count as usize {
            walk.found.parameters.push(parameter(*types.add(index), index + 1)?);
        }
        if (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            walk.found.is_utility = true;
        } else {
            walk.query(query, None);
            walk.found.writes |= pg_sys::contain_volatile_functions(query.cast());
            walk.found.objects = objects_of(query, &walk.found.relations);
        }
        Ok(walk.found)
    }
}

fn parameter(type_oid: pg_sys::Oid, number: usize) -> Result<Parameter, UserError> {
    // The parser has not come across it.
    if type_oid == pg_sys::InvalidOid {
        return Ok(Parameter {
            sql_type: String::new(),
            type_oid: 0,
            meeting: None,
            place: ParameterPlace::Elsewhere,
        });
    }
    if type_oid == pg_sys::UNKNOWNOID {
        // indeterminate_datatype
        return Err(UserError::new("42P18", format!("could not determine data type of parameter ${number}")));
    }
    Ok(Parameter {
        sql_type: type_name(type_oid),
        type_oid: type_oid.to_u32(),
        meeting: None,
        place: ParameterPlace::Elsewhere,
    })
}

/// A type as the server writes it.
fn type_name(type_oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up inside a transaction; a palloc'd string.
    unsafe { CStr::from_ptr(pg_sys::format_type_be_qualified(type_oid)).to_string_lossy().into_owned() }
}
