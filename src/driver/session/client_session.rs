//! One client's session: the transaction loop's way of executing a statement, as postgres.c
//! executes one for a client that sends Bind, Execute and Sync, or Parse before them, or Query.

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
    /// What MessageContext is to a client's backend: emptied before each command.
    pub(super) message_context: pg_sys::MemoryContext,
    /// How often DISCARD ALL or DEALLOCATE ALL has dropped what a client of this session had prepared.
    forgotten: u32,
}

impl Session {
    /// Takes over the process: its protocol output is dropped from now on.
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

    /// Gives the session of a leader or a loader settings of its own ([`own_settings`]).
    pub fn set_own(&self, application_name: &CStr) -> Result<(), SqlError> {
        own_settings().try_for_each(|(name, value)| self.set(name, value))?;
        self.set(c"application_name", application_name)
    }

    /// Sets a configuration parameter as a client's connection options do: RESET comes back to it.
    pub fn set(&self, name: &CStr, value: &CStr) -> Result<(), SqlError> {
        self.set_with_rights_of(current_role_oid(), name, value)
    }

    /// As [`set`](Self::set), with the rights of another role.
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

    /// What becomes of the rows of statements from here on.
    pub fn set_results(&self, results: Results) {
        self.receivers.set(results);
    }

    /// Loads session_preload_libraries and local_preload_libraries, as a client's backend does: in a transaction, for where a library
    /// defines a parameter that has been set already, the server looks up who may set it (InitPostgres in utils/init/postinit.c).
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

    /// Serves what has come in since: a cancel, a termination, another backend's barrier, a
    /// reload of the configuration. Called outside a transaction.
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

    /// Serves interrupts in a session that waits for its next command: as a client's, it has nothing to cancel.
    pub fn serve_interrupts_of_idle(&self) -> Result<(), SqlError> {
        // SAFETY: a flag of the server's, set by a signal handler, hence volatile.
        unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
        self.serve_interrupts()
    }

    /// Whether a BEGIN is open.
    pub fn in_block(&self) -> bool {
        // SAFETY: reads the transaction state.
        unsafe { raw::IsTransactionBlock() }
    }

    /// Leaves whatever transaction is open, as an error does.
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

    /// Leaves a subtransaction, which an error may have aborted: with what was done in it, or without.
    pub fn end_subtransaction(&self, keep: bool) -> Result<(), SqlError> {
        // SAFETY: nothing to drop; one that has been aborted is not kept.
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

    /// Writes out the WAL of the last commit, which may have been an asynchronous one.
    pub fn flush_wal(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop; the position is this backend's own.
        unsafe { trap(|| raw::XLogFlush(raw::XactLastCommitEnd)) }
    }

    /// Shows in pg_stat_activity that the session waits for its next command.
    pub fn report_idle(&self) {
        let state = if self.in_block() {
            pg_sys::BackendState::STATE_IDLEINTRANSACTION
        } else {
            pg_sys::BackendState::STATE_IDLE
        };
        // SAFETY: writes this backend's own status entry.
        unsafe { pg_sys::pgstat_report_activity(state, std::ptr::null()) }
    }

    /// Executes a prepared statement: outside a block a transaction of its own, inside one a part
    /// of it. After an error every transaction is rolled back and the session is usable again.
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

    /// The server's error for a client that executes a prepared statement which it has itself dropped.
    #[cold]
    fn refuse_forgotten(&self, counters: &CommandCounters) -> Result<(), SqlError> {
        counters.errors.add(1);
        self.abort()?;
        let message = "prepared statement does not exist: DISCARD ALL or DEALLOCATE ALL has dropped it";
        Err(SqlError::new(sqlstate::INVALID_STATEMENT_NAME, message))
    }

    /// Executes a statement that is parsed and planned each time.
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

    /// Executes a text of one or more statements as the simple protocol's Query message does:
    /// several are one transaction unless they say otherwise.
    pub fn execute_simple(&mut self, text: &CStr, statistics: StatementStats) -> Result<(), SqlError> {
        let text = text.as_ptr();
        // SAFETY: as in `execute`.
        unsafe { self.command(text, statistics.counters, || self.run_query(text, statistics)) }
    }

    /// Does the work of a command inside a trap, with what comes before and after it.
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

    /// What the next command's queries return is to be kept, or no longer.
    pub fn capture(&self, on: bool) {
        results::capture(on);
    }

    /// What the last command's queries returned.
    pub fn with_captured<T>(&self, look: impl FnOnce(&CapturedRows) -> T) -> T {
        results::with_captured(look)
    }

    /// A text in the client's encoding, as results are, in the server's.
    pub fn to_server_encoding(&self, text: &[u8]) -> Result<String, SqlError> {
        let mut converted: *const c_char = std::ptr::null();
        // SAFETY: plain pointers; the text has the length that is given, and what is converted lives in
        // the message context until the next command.
        let bytes = unsafe {
            let out = &raw mut converted;
            let (start, length) = (text.as_ptr().cast::<c_char>(), text.len());
            trap(|| {
                pg_sys::CurrentMemoryContext = self.message_context;
                *out = raw::pg_client_to_server(start, length as std::ffi::c_int);
            })?;
            // Unconverted it is the argument itself, without a zero byte at its end.
            if std::ptr::eq(converted, start) { text } else { CStr::from_ptr(converted).to_bytes() }
        };
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            // Only a database in SQL_ASCII lets such a text in.
            SqlError::new(
                sqlstate::CHARACTER_NOT_IN_REPERTOIRE,
                "a script's variable cannot hold text that is not valid UTF-8",
            )
        })
    }
}
