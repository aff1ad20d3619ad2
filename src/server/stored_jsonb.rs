//! A jsonb that is only handed on: as a `serde_json::Value` a document of many megabytes would take several times as
//! much memory, and time.

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::nullable::Nullable;
use pgrx::{FromDatum, IntoDatum, pg_sys};

/// A jsonb as the server has it, in the memory context that was current when it was read.
#[derive(Clone, Copy)]
pub struct StoredJsonb(pg_sys::Datum);

impl StoredJsonb {
    /// Its bytes, without compression.
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
