//! jsonb arguments. pgrx's own type ends in an internal error where the server's JSON is more than
//! serde_json takes: numbers beyond double precision, deep nesting. Nor does it know a limit.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::limits::MAX_ARGUMENT;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::nullable::Nullable;
use pgrx::{FromDatum, pg_sys};
use serde_json::Value;

use crate::error::raise;

/// A run's specification nests its arguments a little deeper, and serde_json reads 128 levels.
const MAX_DEPTH: usize = 100;

/// The value of a jsonb argument of at most so many bytes, as jsonb has them without compression.
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

/// How deep a value nests, itself included. No deeper than serde_json has read.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(values) => values.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}
