//! The server's own analysis of a statement, and then the walk over the query tree.

use std::ffi::CString;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::objects::objects_of;
use super::operators::type_name;
use super::parameter::{Analysed, Parameter, ParameterPlace};
use super::walk::Walk;
use crate::error::internal;
use crate::server::lists::{list_first, list_length};
use crate::server::parser::{in_text, parse};

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
        let mut walk = Walk::default();
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
