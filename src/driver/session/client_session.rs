//! A client's session: executes statements like postgres.c does for a client that sends Bind, Execute and Sync, with or
//! without Parse, or Query.

mod commands;

use std::ffi::{CStr, c_char};

use bench_base::error::{SqlError, sqlstate};
use bench_model::spec::Results;
use bench_script::{CapturedRows, Variables};
use pgrx::pg_sys;

use super::plans::StatementStats;
use super::raw::{self, trap};
use super::results::{self, ReceiverFactory};
use super::statement::{PreparedStatement, Unprepared};
use crate::server::guc::own_settings;
use crate::server::roles::current_role_oid;
use crate::shm::CommandCounters;

pub use commands::drive;

/// The session of a background worker that is connected to its database.
pub struct Session {
    receivers: ReceiverFactory,
    /// Reset before each command, like MessageContext of a client's backend.
    pub(super) message_context: pg_sys::MemoryContext,
    /// Number of DISCARD ALL and DEALLOCATE ALL so far, which drop a client's prepared statements.
    forgotten: u32,
}

impl Session {
    /// Creates a session; the process's protocol output is dropped from now on.
    pub fn new(results: Results) -> Self {
        // SAFETY: the context is a child of one that lasts; the name is static.
        let message_context = unsafe {
            pg_sys::AllocSetContextCreateInternal(
                pg_sys::TopMemoryContext,
                c"pgbench_ext message".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        };
        Self { receivers: ReceiverFactory::new(results), message_context, forgotten: 0 }
    }

    /// Applies the settings of leaders and loaders ([`own_settings`]).
    pub fn set_own(&self, application_name: &CStr) -> Result<(), SqlError> {
        own_settings().try_for_each(|(name, value)| self.set(name, value))?;
        self.set(c"application_name", application_name)
    }

    /// Sets a configuration parameter like a client's connection options: RESET restores this value.
    pub fn set(&self, name: &CStr, value: &CStr) -> Result<(), SqlError> {
        self.set_with_rights_of(current_role_oid(), name, value)
    }

    /// Like [`set`](Self::set), with the privileges of the role `setter`.
    pub fn set_with_rights_of(&self, setter: pg_sys::Oid, name: &CStr, value: &CStr) -> Result<(), SqlError> {
        // SAFETY: plain pointers into the caller's strings, which outlive the trap.
        unsafe {
            let (name, value) = (name.as_ptr(), value.as_ptr());
            trap(|| {
                raw::StartTransactionCommand();
                let context = if raw::superuser_arg(setter) {
                    pg_sys::GucContext::PGC_SUSET
                } else {
                    pg_sys::GucContext::PGC_USERSET
                };
                raw::set_config_option_ext(
                    name,
                    value,
                    context,
                    pg_sys::GucSource::PGC_S_CLIENT,
                    setter,
                    pg_sys::GucAction::GUC_ACTION_SET,
                    true,
                    0,
                    false,
                );
                raw::CommitTransactionCommand();
            })
        }
    }

    /// Sets whether rows of later statements are serialised or discarded.
    pub fn set_results(&self, results: Results) {
        self.receivers.set(results);
    }

    /// Loads session_preload_libraries and local_preload_libraries, like InitPostgres (utils/init/postinit.c) in a transaction: the
    /// server looks up privileges for a library's parameters that are set already.
    pub fn preload_libraries(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe {
            trap(|| {
                raw::StartTransactionCommand();
                raw::process_session_preload_libraries();
                raw::CommitTransactionCommand();
            })
        }
    }

    /// Serves pending cancels, terminations, barriers and configuration reloads. Called outside a transaction.
    #[inline]
    pub fn serve_interrupts(&self) -> Result<(), SqlError> {
        // SAFETY: two flags of the server's, set by signal handlers, hence volatile.
        unsafe {
            if (&raw const pg_sys::InterruptPending).read_volatile() != 0 {
                trap(|| raw::ProcessInterrupts())?;
            }
            if (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0 {
                (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
                trap(|| raw::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP))?;
            }
        }
        Ok(())
    }

    /// Serves interrupts of an idle session, which ignores cancels.
    pub fn serve_interrupts_of_idle(&self) -> Result<(), SqlError> {
        // SAFETY: a flag of the server's, set by a signal handler, hence volatile.
        unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
        self.serve_interrupts()
    }

    /// Returns whether the session is in a transaction block.
    pub fn in_block(&self) -> bool {
        // SAFETY: reads the transaction state.
        unsafe { raw::IsTransactionBlock() }
    }

    /// Aborts any open transaction, as after an error.
    pub fn abort(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe { trap(|| raw::abort()) }
    }

    /// Opens a subtransaction, within the transaction of a session that stays in it
    /// ([`stay_in_transaction`](raw::stay_in_transaction)).
    pub fn begin_subtransaction(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe {
            trap(|| {
                raw::StartTransactionCommand();
                raw::BeginInternalSubTransaction(std::ptr::null());
            })
        }
    }

    /// Commits (`keep`) or rolls back a subtransaction. One that an error has aborted must be rolled back.
    pub fn end_subtransaction(&self, keep: bool) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe {
            trap(|| {
                if keep {
                    raw::ReleaseCurrentSubTransaction();
                } else {
                    raw::RollbackAndReleaseCurrentSubTransaction();
                }
            })
        }
    }

    /// Flushes this session's statistics to the shared ones.
    pub fn flush_statistics(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe {
            trap(|| {
                raw::pgstat_report_stat(true);
            })
        }
    }

    /// Flushes the WAL of the last commit, which may have been asynchronous.
    pub fn flush_wal(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop; the position is this backend's own.
        unsafe { trap(|| raw::XLogFlush(raw::XactLastCommitEnd)) }
    }

    /// Reports the session as idle, or idle in transaction, to pg_stat_activity.
    pub fn report_idle(&self) {
        let state = if self.in_block() {
            pg_sys::BackendState::STATE_IDLEINTRANSACTION
        } else {
            pg_sys::BackendState::STATE_IDLE
        };
        // SAFETY: writes this backend's own status entry.
        unsafe { pg_sys::pgstat_report_activity(state, std::ptr::null()) }
    }

    /// Executes a prepared statement, outside a transaction block in its own transaction. After an error all transactions
    /// are rolled back and the session is usable.
    #[inline]
    pub fn execute(
        &mut self,
        statement: &mut PreparedStatement,
        variables: &Variables,
        statistics: StatementStats,
    ) -> Result<(), SqlError> {
        if *statement.prepared_in.get_or_insert(self.forgotten) != self.forgotten {
            return self.refuse_forgotten(statistics.counters);
        }
        statement.bind(variables);
        let (statement, source) = (&*statement, statement.source().as_ptr());
        // SAFETY: only plain data lives in the trap; what it borrows outlives it.
        unsafe {
            self.command(source, statistics.counters, || {
                self.run_plan(statement.plan, source, statistics, || statement.convert_texts());
            })
        }?;
        self.forgotten += u32::from(statement.forgets_prepared);
        Ok(())
    }

    /// Returns the server's error for a prepared statement that the script has dropped.
    #[cold]
    fn refuse_forgotten(&self, counters: &CommandCounters) -> Result<(), SqlError> {
        counters.errors.add(1);
        self.abort()?;
        let message = "prepared statement does not exist: DISCARD ALL or DEALLOCATE ALL has dropped it";
        Err(SqlError::new(sqlstate::INVALID_STATEMENT_NAME, message))
    }

    /// Executes a statement that is parsed and planned at each execution.
    pub fn execute_unprepared(
        &mut self,
        statement: &mut Unprepared,
        variables: &Variables,
        statistics: StatementStats,
    ) -> Result<(), SqlError> {
        statement.bind(variables);
        let (statement, source) = (&*statement, statement.source().as_ptr());
        // SAFETY: as in `execute`.
        unsafe {
            self.command(source, statistics.counters, || {
                let plan = statement.analyse();
                self.run_plan(plan, source, statistics, || statement.convert_texts(plan));
            })
        }
    }

    /// Executes a text of one or more statements like the simple protocol's Query message.
    pub fn execute_simple(&mut self, text: &CStr, statistics: StatementStats) -> Result<(), SqlError> {
        let text = text.as_ptr();
        // SAFETY: as in `execute`.
        unsafe { self.command(text, statistics.counters, || self.run_query(text, statistics)) }
    }

    /// Runs the work of a command inside a trap, between the steps that start and end a command.
    ///
    /// # Safety
    /// As for [`trap`]; `source` stays valid throughout.
    #[inline]
    pub unsafe fn command(
        &self,
        source: *const c_char,
        counters: &CommandCounters,
        work: impl FnOnce(),
    ) -> Result<(), SqlError> {
        // SAFETY: by the caller.
        let result = unsafe {
            trap(|| {
                self.begin(source);
                work();
                self.end(counters);
            })
        };
        if result.is_err() {
            counters.errors.add(1);
        }
        result
    }

    /// Starts or stops keeping the rows that queries return.
    pub fn capture(&self, on: bool) {
        results::capture(on);
    }

    /// Passes the rows of the last command's queries to `read`.
    pub fn with_captured<T>(&self, read: impl FnOnce(&CapturedRows) -> T) -> T {
        results::with_captured(read)
    }

    /// Converts a text of a result from the client's encoding to the server's.
    pub fn to_server_encoding(&self, text: &[u8]) -> Result<String, SqlError> {
        let mut converted: *const c_char = std::ptr::null();
        // SAFETY: plain pointers with the text's length; the converted text lives in the message context until the next
        // command.
        let bytes = unsafe {
            let out = &raw mut converted;
            let (start, length) = (text.as_ptr().cast::<c_char>(), text.len());
            trap(|| {
                pg_sys::CurrentMemoryContext = self.message_context;
                *out = raw::pg_client_to_server(start, length as std::ffi::c_int);
            })?;
            // Without a conversion, the result is the argument, which has no zero byte at its end.
            if std::ptr::eq(converted, start) { text } else { CStr::from_ptr(converted).to_bytes() }
        };
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            // Possible only in SQL_ASCII databases.
            SqlError::new(
                sqlstate::CHARACTER_NOT_IN_REPERTOIRE,
                "a script's variable cannot hold text that is not valid UTF-8",
            )
        })
    }
}
