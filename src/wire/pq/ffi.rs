//! libpq's functions, as libpq-fe.h declares them.

use std::ffi::{c_char, c_int, c_void};

/// A connection.
#[repr(C)]
pub struct PGconn {
    _private: [u8; 0],
}

/// A result.
#[repr(C)]
pub struct PGresult {
    _private: [u8; 0],
}

/// A notification; what follows is libpq's own.
#[repr(C)]
pub struct PGnotify {
    _private: [u8; 0],
}

pub type NoticeReceiver = unsafe extern "C" fn(*mut c_void, *const PGresult);

pub const CONNECTION_OK: c_int = 0;
pub const CONNECTION_BAD: c_int = 1;

pub const PGRES_POLLING_FAILED: c_int = 0;
pub const PGRES_POLLING_READING: c_int = 1;
pub const PGRES_POLLING_WRITING: c_int = 2;
pub const PGRES_POLLING_OK: c_int = 3;

pub const PGRES_EMPTY_QUERY: c_int = 0;
pub const PGRES_COMMAND_OK: c_int = 1;
pub const PGRES_TUPLES_OK: c_int = 2;
pub const PGRES_COPY_OUT: c_int = 3;
pub const PGRES_COPY_IN: c_int = 4;
pub const PGRES_BAD_RESPONSE: c_int = 5;
pub const PGRES_NONFATAL_ERROR: c_int = 6;
pub const PGRES_FATAL_ERROR: c_int = 7;
pub const PGRES_COPY_BOTH: c_int = 8;
pub const PGRES_SINGLE_TUPLE: c_int = 9;
pub const PGRES_PIPELINE_SYNC: c_int = 10;
pub const PGRES_PIPELINE_ABORTED: c_int = 11;

pub const PQTRANS_IDLE: c_int = 0;
pub const PQTRANS_ACTIVE: c_int = 1;
pub const PQTRANS_INTRANS: c_int = 2;
pub const PQTRANS_INERROR: c_int = 3;

pub const PQERRORS_VERBOSE: c_int = 2;

#[link(name = "pq")]
unsafe extern "C" {
    pub fn PQconnectStartParams(
        keywords: *const *const c_char,
        values: *const *const c_char,
        expand_dbname: c_int,
    ) -> *mut PGconn;
    pub fn PQconnectPoll(conn: *mut PGconn) -> c_int;
    pub fn PQfinish(conn: *mut PGconn);
    pub fn PQstatus(conn: *const PGconn) -> c_int;
    pub fn PQtransactionStatus(conn: *const PGconn) -> c_int;
    pub fn PQparameterStatus(conn: *const PGconn, name: *const c_char) -> *const c_char;
    pub fn PQerrorMessage(conn: *const PGconn) -> *mut c_char;
    pub fn PQsetErrorVerbosity(conn: *mut PGconn, verbosity: c_int) -> c_int;
    pub fn PQsocket(conn: *const PGconn) -> c_int;
    pub fn PQbackendPID(conn: *const PGconn) -> c_int;
    pub fn PQconnectionUsedPassword(conn: *const PGconn) -> c_int;
    pub fn PQsetnonblocking(conn: *mut PGconn, arg: c_int) -> c_int;
    pub fn PQsetNoticeReceiver(
        conn: *mut PGconn,
        receiver: Option<NoticeReceiver>,
        arg: *mut c_void,
    ) -> Option<NoticeReceiver>;
    pub fn PQsendQuery(conn: *mut PGconn, query: *const c_char) -> c_int;
    pub fn PQsendQueryParams(
        conn: *mut PGconn,
        command: *const c_char,
        count: c_int,
        types: *const u32,
        values: *const *const c_char,
        lengths: *const c_int,
        formats: *const c_int,
        result_format: c_int,
    ) -> c_int;
    pub fn PQsendPrepare(
        conn: *mut PGconn,
        name: *const c_char,
        query: *const c_char,
        count: c_int,
        types: *const u32,
    ) -> c_int;
    pub fn PQsendQueryPrepared(
        conn: *mut PGconn,
        name: *const c_char,
        count: c_int,
        values: *const *const c_char,
        lengths: *const c_int,
        formats: *const c_int,
        result_format: c_int,
    ) -> c_int;
    pub fn PQgetResult(conn: *mut PGconn) -> *mut PGresult;
    pub fn PQisBusy(conn: *mut PGconn) -> c_int;
    pub fn PQconsumeInput(conn: *mut PGconn) -> c_int;
    pub fn PQflush(conn: *mut PGconn) -> c_int;
    pub fn PQenterPipelineMode(conn: *mut PGconn) -> c_int;
    pub fn PQexitPipelineMode(conn: *mut PGconn) -> c_int;
    pub fn PQpipelineSync(conn: *mut PGconn) -> c_int;
    pub fn PQnotifies(conn: *mut PGconn) -> *mut PGnotify;
    pub fn PQfreemem(pointer: *mut c_void);
    pub fn PQresultStatus(res: *const PGresult) -> c_int;
    pub fn PQresultErrorMessage(res: *const PGresult) -> *mut c_char;
    pub fn PQresultErrorField(res: *const PGresult, field: c_int) -> *mut c_char;
    pub fn PQntuples(res: *const PGresult) -> c_int;
    pub fn PQnfields(res: *const PGresult) -> c_int;
    pub fn PQfname(res: *const PGresult, field: c_int) -> *mut c_char;
    pub fn PQftype(res: *const PGresult, field: c_int) -> u32;
    pub fn PQgetvalue(res: *const PGresult, row: c_int, field: c_int) -> *mut c_char;
    pub fn PQgetlength(res: *const PGresult, row: c_int, field: c_int) -> c_int;
    pub fn PQgetisnull(res: *const PGresult, row: c_int, field: c_int) -> c_int;
    pub fn PQcmdTuples(res: *mut PGresult) -> *mut c_char;
    pub fn PQclear(res: *mut PGresult);
}
