//! Calls of other extensions' functions, which are looked up by extension, language and library: by name alone, the owner of
//! the schema (for public, the database's owner) could substitute another function.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::spi::{fetch_all, quote_identifier};
use crate::error::internal;

/// A set-returning C function with one boolean argument, named like its extension and its library.
pub struct SetFunction(pg_sys::Oid);

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultValue {
    Null,
    /// Integers, OIDs and booleans.
    Integer(i64),
    Float(f64),
    Text(String),
}

impl ResultValue {
    /// Returns an integer; 0 for other values.
    pub fn integer(&self) -> i64 {
        if let Self::Integer(number) = self { *number } else { 0 }
    }

    /// Returns a number; 0 for other values.
    pub fn float(&self) -> f64 {
        match self {
            Self::Float(number) => *number,
            Self::Integer(number) => *number as f64,
            _ => 0.0,
        }
    }
}

/// Finds a function of an extension, and if the owner of the extension or of its schema is no superuser, which of both it is
/// (`extension "…"` or `schema "…"`) and that owner. pg_database_owner, the default owner of schema public, stands for the
/// database's owner.
///
/// Only superusers can create C functions, and the library is one in the server's own directory.
const FIND: &str = "\
    SELECT p.oid, s.what, s.role FROM pg_extension e \
    JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass \
        AND d.refobjid = e.oid AND d.classid = 'pg_proc'::regclass \
        AND d.deptype = 'e'::\"char\" \
    JOIN pg_proc p ON p.oid = d.objid \
    JOIN pg_language l ON l.oid = p.prolang \
    JOIN pg_roles r ON r.oid = p.proowner \
    JOIN pg_namespace n ON n.oid = p.pronamespace \
    LEFT JOIN LATERAL ( \
        SELECT o.what, r.rolname::text AS role FROM (VALUES \
            ('extension', e.extowner), \
            (format('schema \"%s\" of extension', n.nspname), \
             CASE WHEN n.nspowner = 'pg_database_owner'::regrole \
                 THEN (SELECT b.datdba FROM pg_database b WHERE b.datname = current_database()) \
             ELSE n.nspowner END)) AS o (what, owner) \
        JOIN pg_roles r ON r.oid = o.owner WHERE NOT r.rolsuper LIMIT 1) AS s ON true \
    WHERE e.extname = $1::name \
      AND p.proname = $2::name \
      AND l.lanname = 'c'::name AND r.rolsuper AND p.proconfig IS NULL \
      AND p.probin = concat('$libdir/', $1) AND ";

/// The conditions for a set-returning function with one boolean argument.
const SET_OF_BOOLEAN: &str = "\
    p.proretset AND p.pronargs = 1 \
    AND p.proargtypes[0] = 'bool'::regtype::oid";

/// The conditions for a function without arguments that returns one row.
const ROW_WITHOUT_ARGUMENTS: &str = "\
    NOT p.proretset AND p.pronargs = 0 \
    AND p.prorettype = 'record'::regtype::oid";

/// Finds a function of an extension under [`FIND`]'s and these conditions.
///
/// # Errors
/// 42501 if the extension or its schema is not a superuser's.
fn find(extension: &str, function: &str, conditions: &str) -> Result<Option<pg_sys::Oid>, UserError> {
    let sql = format!("{FIND}{conditions}");
    let rows = fetch_all(&sql, &[extension.into(), function.into()], |row| {
        Ok((row.get(1)?, row.get::<String>(2)?, row.get::<String>(3)?))
    })?;
    match rows.into_iter().next() {
        Some((_, Some(what), Some(role))) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("{what} \"{extension}\" belongs to role \"{role}\", which is not a superuser"),
        )
        .hint(format!(
            "A superuser must create the extension in a superuser's schema: ALTER EXTENSION {} SET SCHEMA.",
            quote_identifier(extension)
        ))),
        row => Ok(row.and_then(|(function, _, _)| function)),
    }
}

impl SetFunction {
    /// Finds the function of the extension with this name; `None` if there is none.
    ///
    /// # Errors
    /// 42501 if the extension or its schema is not a superuser's.
    pub fn find(name: &str) -> Result<Option<Self>, UserError> {
        Ok(find(name, name, SET_OF_BOOLEAN)?.map(Self))
    }

    /// Calls the function, and `visit` with the named columns of each row. Returns false if a column is missing.
    ///
    /// # Errors
    /// Those of the function.
    pub fn for_each_row<const N: usize>(
        &self,
        columns: [&CStr; N],
        argument: bool,
        visit: impl FnMut([ResultValue; N]),
    ) -> Result<bool, UserError> {
        // SAFETY: a function as `call` needs it, by FIND and SET_OF_BOOLEAN.
        unsafe { call(self.0, argument, columns, visit) }
    }
}

/// # Safety
/// The function must be a set-returning one in C, of one boolean argument.
unsafe fn call<const N: usize>(
    function: pg_sys::Oid,
    argument: bool,
    columns: [&CStr; N],
    visit: impl FnMut([ResultValue; N]),
) -> Result<bool, UserError> {
    // SAFETY: by the caller; as ExecMakeTableFunctionResult (executor/execSRF.c) calls one. The call's frame is allocated with
    // room for its one argument. All of it lives in the transaction's memory.
    unsafe {
        let mut info: pg_sys::FmgrInfo = std::mem::zeroed();
        pg_sys::fmgr_info(function, &raw mut info);
        let mut set: pg_sys::ReturnSetInfo = std::mem::zeroed();
        set.type_ = pg_sys::NodeTag::T_ReturnSetInfo;
        set.econtext = pg_sys::CreateStandaloneExprContext();
        set.allowedModes = pg_sys::SetFunctionReturnMode::SFRM_Materialize as i32;
        set.returnMode = pg_sys::SetFunctionReturnMode::SFRM_ValuePerCall;
        let bytes = size_of::<pg_sys::FunctionCallInfoBaseData>() + size_of::<pg_sys::NullableDatum>();
        let frame: pg_sys::FunctionCallInfo = pg_sys::palloc0(bytes).cast();
        (*frame).flinfo = &raw mut info;
        (*frame).resultinfo = (&raw mut set).cast();
        (*frame).nargs = 1;
        *(*frame).args.as_mut_ptr() =
            pg_sys::NullableDatum { value: pg_sys::Datum::from(argument), isnull: false };
        let Some(address) = info.fn_addr else { return Err(internal("a function without an address")) };
        pg_sys::ffi::pg_guard_ffi_boundary(|| address(frame));
        let result = visit_rows(&set, columns, visit);
        pg_sys::FreeExprContext(set.econtext, true);
        result
    }
}

/// # Safety
/// What a function has returned in the form of a tuplestore.
unsafe fn visit_rows<const N: usize>(
    set: &pg_sys::ReturnSetInfo,
    columns: [&CStr; N],
    mut visit: impl FnMut([ResultValue; N]),
) -> Result<bool, UserError> {
    if set.returnMode != pg_sys::SetFunctionReturnMode::SFRM_Materialize
        || set.setResult.is_null()
        || set.setDesc.is_null()
    {
        return Err(internal("the function returned no tuplestore"));
    }
    // SAFETY: by the caller. The slot is read up to its number of columns.
    unsafe {
        let places = columns.map(|name| pg_sys::SPI_fnumber(set.setDesc, name.as_ptr()));
        if places.iter().any(|&number| number <= 0) {
            return Ok(false);
        }
        let slot = pg_sys::MakeSingleTupleTableSlot(set.setDesc, &raw const pg_sys::TTSOpsMinimalTuple);
        while pg_sys::tuplestore_gettupleslot(set.setResult, true, false, slot) {
            pg_sys::slot_getsomeattrs_int(slot, (*set.setDesc).natts);
            visit(places.map(|number| {
                let place = number as usize - 1;
                let value = (!*(*slot).tts_isnull.add(place)).then(|| *(*slot).tts_values.add(place));
                cell(value, pg_sys::SPI_gettypeid(set.setDesc, number))
            }));
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        Ok(true)
    }
}

/// # Safety
/// A datum of that type, or none.
unsafe fn cell(value: Option<pg_sys::Datum>, type_oid: pg_sys::Oid) -> ResultValue {
    let Some(value) = value else { return ResultValue::Null };
    match type_oid {
        pg_sys::TEXTOID => {
            // SAFETY: by the caller.
            let text = unsafe { <String as pgrx::FromDatum>::from_datum(value, false) };
            text.map_or(ResultValue::Null, ResultValue::Text)
        }
        pg_sys::NUMERICOID => {
            // SAFETY: by the caller.
            let number = unsafe { <pgrx::AnyNumeric as pgrx::FromDatum>::from_datum(value, false) };
            let number = number.and_then(|number| f64::try_from(number).ok());
            number.map_or(ResultValue::Null, ResultValue::Float)
        }
        pg_sys::FLOAT8OID => ResultValue::Float(f64::from_bits(value.value() as u64)),
        pg_sys::OIDOID => ResultValue::Integer(i64::from(value.value() as u32)),
        pg_sys::INT4OID => ResultValue::Integer(i64::from(value.value() as i32)),
        pg_sys::BOOLOID => ResultValue::Integer(i64::from(value.value() as u8 != 0)),
        _ => ResultValue::Integer(value.value() as i64),
    }
}

/// Calls an extension's function that returns one row, and returns a bigint column of it; `None` if there is no such function.
///
/// # Errors
/// As [`SetFunction::find`], and those of the function.
pub fn bigint_of_row(extension: &str, function: &str, column: &CStr) -> Result<Option<i64>, UserError> {
    let Some(function) = find(extension, function, ROW_WITHOUT_ARGUMENTS)? else {
        return Ok(None);
    };
    // SAFETY: a function without arguments that returns a row, by FIND and ROW_WITHOUT_ARGUMENTS; such a row is a tuple's header.
    unsafe {
        let row = pg_sys::OidFunctionCall0Coll(function, pg_sys::InvalidOid);
        let mut is_null = false;
        let header: pg_sys::HeapTupleHeader = pg_sys::pg_detoast_datum(row.cast_mut_ptr()).cast();
        let value = pg_sys::GetAttributeByName(header, column.as_ptr(), &raw mut is_null);
        Ok((!is_null).then(|| value.value() as i64))
    }
}
