//! What pg_stat_statements has counted of a run's statements.
//!
//! Its function is in a schema that may belong to anybody (public is the database's owner's), so it is not called by a name
//! but by what it is: the extension's own function, in C, of that library. It runs as the run's role, which sees the
//! identifiers of its own statements.

use std::ffi::CStr;

use bench_core::error::UserError;
use bench_core::spec::RunSpec;
use pgrx::pg_sys;

use crate::catalog::{as_run_role, fetch};
use crate::error::internal;

/// The extension's function, where its library is loaded. Nobody but a superuser can make a function in C; the path is that
/// of the library which the server was installed with.
const FUNCTION: &str = "\
    SELECT p.oid FROM pg_catalog.pg_extension e \
    JOIN pg_catalog.pg_depend d ON d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass \
        AND d.refobjid OPERATOR(pg_catalog.=) e.oid AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass \
        AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog.\"char\" \
    JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) d.objid \
    JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang \
    JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) p.proowner \
    WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'::pg_catalog.name \
      AND p.proname OPERATOR(pg_catalog.=) 'pg_stat_statements'::pg_catalog.name \
      AND l.lanname OPERATOR(pg_catalog.=) 'c'::pg_catalog.name AND r.rolsuper AND p.proretset AND p.proconfig IS NULL \
      AND p.probin OPERATOR(pg_catalog.=) '$libdir/pg_stat_statements' \
      AND p.proargtypes[0] OPERATOR(pg_catalog.=) 'pg_catalog.bool'::pg_catalog.regtype::pg_catalog.oid \
      AND p.pronargs OPERATOR(pg_catalog.=) 1 \
      AND pg_catalog.current_setting('pg_stat_statements.max', true) IS NOT NULL";

/// Calls of the run's statements by its role, in all of its sessions and before the run as well; `None` where nobody counts.
///
/// # Errors
/// What pg_stat_statements says, as when its library is not loaded.
pub fn of_run(spec: &RunSpec, query_ids: &[i64]) -> Result<Option<i64>, UserError> {
    if query_ids.is_empty() {
        return Ok(None);
    }
    let Some(function) = fetch::<pg_sys::Oid>(FUNCTION, &[])? else { return Ok(None) };
    let role = pg_sys::Oid::from(spec.role_oid);
    // SAFETY: a function as `call` needs it, by the conditions of FUNCTION.
    as_run_role(role, || unsafe { call(function, role, pg_sys::Oid::from(spec.database_oid), query_ids) })
}

/// Columns that are read, by their names: their places differ by version. Before 1.9 there is no toplevel.
const COLUMNS: [&CStr; 5] = [c"userid", c"dbid", c"toplevel", c"queryid", c"calls"];

/// Calls `pg_stat_statements(showtext => false)` and adds up what it returns.
///
/// # Safety
/// A set-returning function in C of one boolean, that returns a tuplestore.
unsafe fn call(
    function: pg_sys::Oid,
    role: pg_sys::Oid,
    database: pg_sys::Oid,
    query_ids: &[i64],
) -> Result<Option<i64>, UserError> {
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
        let result = sum(&set, role, database, query_ids);
        pg_sys::FreeExprContext(set.econtext, true);
        result
    }
}

/// # Safety
/// What a function has returned in the form of a tuplestore.
unsafe fn sum(
    set: &pg_sys::ReturnSetInfo,
    role: pg_sys::Oid,
    database: pg_sys::Oid,
    query_ids: &[i64],
) -> Result<Option<i64>, UserError> {
    if set.returnMode != pg_sys::SetFunctionReturnMode::SFRM_Materialize
        || set.setResult.is_null()
        || set.setDesc.is_null()
    {
        return Err(internal("pg_stat_statements returned no tuplestore"));
    }
    // SAFETY: by the caller. The slot is read up to its number of columns, each of the type that its name stands for.
    unsafe {
        let columns = COLUMNS.map(|name| pg_sys::SPI_fnumber(set.setDesc, name.as_ptr()));
        if columns.iter().any(|&number| number <= 0) {
            return Ok(None);
        }
        let slot = pg_sys::MakeSingleTupleTableSlot(set.setDesc, &raw const pg_sys::TTSOpsMinimalTuple);
        let mut sum = 0;
        while pg_sys::tuplestore_gettupleslot(set.setResult, true, false, slot) {
            pg_sys::slot_getsomeattrs_int(slot, (*set.setDesc).natts);
            let value = |column: usize| {
                let place = columns[column] as usize - 1;
                (!*(*slot).tts_isnull.add(place)).then(|| *(*slot).tts_values.add(place))
            };
            let (Some(user), Some(of), Some(toplevel), Some(id), Some(calls)) =
                (value(0), value(1), value(2), value(3), value(4))
            else {
                continue; // another role's
            };
            let is_ours = user.value() as u32 == role.to_u32()
                && of.value() as u32 == database.to_u32()
                && toplevel.value() != 0;
            if is_ours && query_ids.binary_search(&(id.value() as i64)).is_ok() {
                sum += calls.value() as i64;
            }
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        Ok(Some(sum))
    }
}
