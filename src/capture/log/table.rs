//! A log in a table or a view, which is read in a session of a role without special rights: its columns' types, its policies and a
//! view's functions may be anybody's.

use bench_base::error::{UserError, sqlstate};
use bench_capture::log::{CapturedLog, LogCapture};
use bench_capture::options::LogOptions;
use bench_model::spec::Role;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use super::messages::Read;
use super::table_rows::read_rows;
use super::zones::offset_of;
use crate::guard::session_role::session_of;
use crate::launch::role_session::{answer, ask, kind, read_only};
use crate::server::background_worker::WorkerKind;
use crate::server::relations::owner_of;
use crate::server::roles;
use crate::server::spi::fetch;
use crate::server::transaction::rolled_back;

/// The kind of worker that reads tables.
const KIND: WorkerKind = kind(c"pgbench_ext_log_table_main", c"pgbench_ext capture");

#[derive(Serialize, Deserialize)]
struct TableRequest {
    table: u32,
    /// Qualified, and quoted where it has to be.
    name: String,
    options: LogOptions,
}

/// Collects the transactions of a table's messages: in a session of the caller; of one with special rights, in a session of the
/// table's owner or, if that has some as well, of the client role.
///
/// # Errors
/// 42501 where the role of the session may not read the table; 42809 for a table of another form; those of a capture and of a
/// question to another session.
pub(super) fn read(table: pg_sys::Oid, options: &LogOptions) -> Result<(CapturedLog, Read), UserError> {
    let sql = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.oid = $1";
    let Some(name) = fetch::<String>(sql, &[table.into()])? else {
        let message = format!("relation with OID {} does not exist", table.to_u32());
        return Err(UserError::new(sqlstate::UNDEFINED_TABLE, message));
    };
    let caller = roles::current();
    let owner = owner_of(table)?;
    let owner = roles::name_of(owner).map(|name| Role { name, oid: owner.to_u32() });
    let role = session_of(&caller, &caller, owner)?;
    check_readable(table, &name, &role)?;
    let question = TableRequest { table: table.to_u32(), name, options: options.clone() };
    ask(KIND, &role, None, &question).map(|(answer, _)| answer)
}

/// # Errors
/// 42501 with the GRANT that a role lacks for reading a table.
fn check_readable(table: pg_sys::Oid, name: &str, role: &Role) -> Result<(), UserError> {
    let sql = "SELECT CASE WHEN NOT has_schema_privilege($2, c.relnamespace, 'USAGE') \
                   THEN format('GRANT USAGE ON SCHEMA %s TO %s', c.relnamespace::regnamespace, $2::regrole) \
               WHEN NOT has_any_column_privilege($2, c.oid, 'SELECT') THEN format('GRANT SELECT ON %s TO %s', $3, $2::regrole) END \
               FROM pg_class c WHERE c.oid = $1";
    let role_oid = pg_sys::Oid::from(role.oid);
    match fetch::<String>(sql, &[table.into(), role_oid.into(), name.into()])? {
        None => Ok(()),
        Some(grant) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for table {name}"),
        )
        .detail(format!("It is read in a session of role \"{}\".", role.name))
        .hint(format!("{grant}."))),
    }
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_log_table_main(segment: pg_sys::Datum) {
    answer(segment, |TableRequest { table, name, options }: TableRequest| {
        read_only()?;
        let mut capture = LogCapture::new(options).with_zones(offset_of);
        let mut read = Read::default();
        rolled_back(|| read_rows(table.into(), &name, &mut capture, &mut read))?;
        Ok(((capture.finish()?, read), Vec::new()))
    });
}
