//! jsonb as arguments and results of functions, and in columns.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::MAX_ARGUMENT;
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::nullable::Nullable;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use serde_json::{Map, Value};

use crate::error::raise;

/// The deepest nesting of an argument: a run's specification adds a few levels, and serde_json reads 128.
const MAX_DEPTH: usize = 100;

/// The value of a jsonb argument of at most MAX bytes, uncompressed.
///
/// pgrx's own type has no limit, and raises an internal error for JSON that serde_json does not read: numbers beyond double precision
/// and deep nesting.
pub struct Jsonb<const MAX: usize = MAX_ARGUMENT>(pub Value);

impl<const MAX: usize> FromDatum for Jsonb<MAX> {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: by the caller a jsonb, whose header tells its size before it is fetched and decompressed.
        let size = unsafe { pg_sys::toast_raw_datum_size(datum) } - pg_sys::VARHDRSZ;
        if size > MAX {
            let message = format!("a jsonb argument must not be larger than {MAX} bytes, not {size}");
            raise(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
        }
        // SAFETY: by the caller a jsonb; jsonb_out detoasts it and returns a text with a zero byte at
        // its end, in a context that lasts as long as this call.
        let text: &CStr = unsafe { pgrx::direct_function_call(pg_sys::jsonb_out, &[Some(datum)]) }?;
        let parsed = serde_json::from_slice::<Value>(text.to_bytes());
        let unsuitable = |detail: String| UserError::invalid("unsuitable JSON").detail(detail);
        match parsed {
            Ok(value) if depth(&value) <= MAX_DEPTH => Some(Self(value)),
            Ok(_) => raise(unsuitable(format!("It nests deeper than {MAX_DEPTH} levels."))),
            Err(error) => raise(unsuitable(format!("It cannot be read: {error}."))),
        }
    }
}

// SAFETY: an argument of SQL's type jsonb is what `FromDatum` above takes.
unsafe impl<'fcx, const MAX: usize> ArgAbi<'fcx> for Jsonb<MAX> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: by the caller, who has made sure that it is not NULL.
        unsafe { arg.unbox_arg_using_from_datum() }.unwrap_or(Self(Value::Null))
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: by the caller.
        unsafe { arg.unbox_arg_using_from_datum() }.into()
    }
}

pgrx::impl_sql_translatable!(Jsonb, "jsonb");

/// Returns the nesting depth of a value, including itself; at most what serde_json reads.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(values) => values.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

/// A jsonb that is passed on unparsed, in the memory context that was current when it was read. As a `serde_json::Value` a large
/// document would take several times as much memory and time.
#[derive(Clone, Copy)]
pub struct StoredJsonb(pg_sys::Datum);

impl StoredJsonb {
    /// Returns its size in bytes, uncompressed.
    pub fn size(self) -> usize {
        // SAFETY: a jsonb, which has been detoasted.
        unsafe { pg_sys::toast_raw_datum_size(self.0) }.saturating_sub(pg_sys::VARHDRSZ)
    }
}

impl FromDatum for StoredJsonb {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: by the caller a jsonb. A copy: the original may be in a context that SPI is about to reset.
        (!is_null).then(|| Self(unsafe { pg_sys::pg_detoast_datum_copy(datum.cast_mut_ptr()) }.into()))
    }
}

impl IntoDatum for StoredJsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(self.0)
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: an argument of SQL's type jsonb is what `FromDatum` above takes.
unsafe impl<'fcx> ArgAbi<'fcx> for StoredJsonb {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        let index = arg.index();
        // SAFETY: by the caller, who has made sure that it is not NULL.
        unsafe { arg.unbox_arg_using_from_datum() }
            .unwrap_or_else(|| panic!("argument {index} must not be null"))
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: by the caller.
        unsafe { arg.unbox_arg_using_from_datum() }.into()
    }
}

// SAFETY: a datum of the type that `impl_sql_translatable` names.
unsafe impl BoxRet for StoredJsonb {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: by the caller.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

pgrx::impl_sql_translatable!(StoredJsonb, "jsonb");

/// Returns a value as JSON for a column of type jsonb.
pub fn json_of<T: serde::Serialize + ?Sized>(value: &T) -> Value {
    // The serialized types consist of texts, numbers and lists, which cannot fail.
    serde_json::to_value(value).unwrap_or_default()
}

/// Merges the fields of several objects; for equal names the last one wins.
pub fn merged(objects: impl IntoIterator<Item = Value>) -> Map<String, Value> {
    let fields = |object| match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    objects.into_iter().flat_map(fields).collect()
}
