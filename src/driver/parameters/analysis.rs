//! The server's own analysis of a statement, and then the walk over the query tree.

use std::ffi::{CStr, CString};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::objects::objects_of;
use super::operators::{may_write, type_name};
use super::walk::Walk;
use super::{Analysed, Parameter, ParameterPlace};
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
