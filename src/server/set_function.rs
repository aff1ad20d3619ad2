//! Calling another extension's set-returning function, which is found by what it is: its schema may belong to anybody
//! (public is the database's owner's), so that a name could be made to mean another one.

use std::ffi::CStr;

use bench_core::error::UserError;
use pgrx::pg_sys;

use super::spi::fetch;
use crate::error::internal;

/// A set-returning function in C of one boolean, named as its extension and that extension's library.
pub struct SetFunction(pg_sys::Oid);

/// Nobody but a superuser can make a function in C; the path is that of the library which the server was installed with.
const FIND: &str = "\
    SELECT p.oid FROM pg_catalog.pg_extension e \
    JOIN pg_catalog.pg_depend d ON d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass \
        AND d.refobjid OPERATOR(pg_catalog.=) e.oid AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass \
        AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog.\"char\" \
    JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) d.objid \
    JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang \
    JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) p.proowner \
    WHERE e.extname OPERATOR(pg_catalog.=) $1::pg_catalog.name \
      AND p.proname OPERATOR(pg_catalog.=) $1::pg_catalog.name \
      AND l.lanname OPERATOR(pg_catalog.=) 'c'::pg_catalog.name AND r.rolsuper AND p.proretset AND p.proconfig IS NULL \
      AND p.probin OPERATOR(pg_catalog.=) pg_catalog.concat('$libdir/', $1) \
      AND p.proargtypes[0] OPERATOR(pg_catalog.=) 'pg_catalog.bool'::pg_catalog.regtype::pg_catalog.oid \
      AND p.pronargs OPERATOR(pg_catalog.=) 1";

impl SetFunction {
    /// The function of the extension with that name; `None` where there is none.
    pub fn find(name: &str) -> Result<Option<Self>, UserError> {
        Ok(fetch::<pg_sys::Oid>(FIND, &[name.into()])?.map(Self))
    }

    /// Calls it with false and shows the named columns of each row, as datums; false when its rows do not have columns of
    /// all these names.
    ///
    /// # Errors
    /// What the function says.
    pub fn for_each_row<const N: usize>(
        &self,
        columns: [&CStr; N],
        visit: impl FnMut([Option<pg_sys::Datum>; N]),
    ) -> Result<bool, UserError> {
        // SAFETY: a function as `call` needs it, by the conditions of FIND.
        unsafe { call(self.0, columns, visit) }
    }
}

/// # Safety
/// The function must be a set-returning one in C, of one boolean argument.
unsafe fn call<const N: usize>(
    function: pg_sys::Oid,
    columns: [&CStr; N],
    visit: impl FnMut([Option<pg_sys::Datum>; N]),
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
            pg_sys::NullableDatum { value: pg_sys::Datum::from(false), isnull: false };
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
    mut visit: impl FnMut([Option<pg_sys::Datum>; N]),
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
                (!*(*slot).tts_isnull.add(place)).then(|| *(*slot).tts_values.add(place))
            }));
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        Ok(true)
    }
}
