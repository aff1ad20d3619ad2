//! What a target is asked about itself before the run.

use bench_base::error::{UserError, sqlstate};
use bench_base::untrusted;
use bench_model::spec::TargetSpec;
use bench_model::views::{SETTINGS_QUERY, SettingsAnswer, Views};
use bench_results::ServerSetting;
use serde::Deserialize;

use crate::driver::connection::BlockingSession;
use crate::error::notice;
use crate::server::spi::quote_identifier;

/// What is asked of a target.
#[derive(Deserialize)]
pub struct Description {
    pub pid: i32,
    pub version: String,
    version_num: i32,
    pub is_standby: bool,
    pub is_read_only: bool,
    pub has_fixtures: bool,
    #[serde(skip)]
    pub search_path: String,
    /// The view pg_stat_statements with its schema, quoted, where the role may read it.
    pub statements: Option<String>,
    #[serde(skip)]
    pub settings: Option<Vec<ServerSetting>>,
    /// Views that it has and the role may not read.
    unreadable: Option<Vec<String>>,
    /// WAL senders of which the role may see nothing but that they are there.
    hides_standbys: bool,
}

const DESCRIPTION: &str = "SELECT json_build_object( \
     'pid', pg_backend_pid(), \
     'version', version(), \
     'version_num', current_setting('server_version_num')::int4, \
     'unreadable', (SELECT json_agg(v.name) FROM unnest(ARRAY['pg_stat_wal', 'pg_stat_bgwriter', \
             'pg_stat_checkpointer', 'pg_stat_io', 'pg_stat_activity', 'pg_stat_replication']) AS v (name) \
         WHERE NOT has_table_privilege( \
             to_regclass(concat('pg_catalog.', v.name))::oid, 'SELECT')), \
     'hides_standbys', CASE WHEN has_table_privilege('pg_stat_replication', 'SELECT') \
         THEN EXISTS (SELECT FROM pg_stat_get_wal_senders() s WHERE s.state IS NULL) ELSE false END, \
     'is_standby', pg_is_in_recovery(), \
     'is_read_only', current_setting('transaction_read_only') = 'on', \
     'has_fixtures', coalesce(has_schema_privilege(to_regnamespace('bench')::oid, 'USAGE') \
         AND has_table_privilege(to_regclass('bench.fixtures')::oid, 'SELECT'), false), \
     'statements', (SELECT concat(quote_ident(n.nspname), '.pg_stat_statements') \
         FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
         JOIN pg_attribute a ON a.attname = 'toplevel' AND a.attrelid = to_regclass( \
             concat(quote_ident(n.nspname), '.pg_stat_statements'))::oid \
         WHERE e.extname = 'pg_stat_statements' \
           AND current_setting('pg_stat_statements.max', true) IS NOT NULL))";

impl Description {
    /// Asks for it.
    ///
    /// # Errors
    /// The server's; 54000 for an answer beyond all measure; 08P01 for another answer.
    pub fn ask(session: &mut BlockingSession) -> Result<Self, UserError> {
        let description = session.own_value(DESCRIPTION)?.unwrap_or_default();
        let settings = session.value(SETTINGS_QUERY)?.unwrap_or_default();
        let read = || -> serde_json::Result<Self> {
            let asked: SettingsAnswer = serde_json::from_str(&settings)?;
            let description: Self = serde_json::from_str(&description)?;
            Ok(Self { search_path: asked.search_path, settings: asked.settings, ..description })
        };
        read().map_err(|error| unexpected(&error))
    }

    /// What of its statistics the role can read.
    pub fn views(&self) -> Views {
        Views { version: self.version_num, unreadable: self.unreadable.clone().unwrap_or_default() }
    }

    /// Says which figures of the target the run will not have.
    pub fn tell_what_is_missing(&self, spec: &TargetSpec) {
        let user = quote_identifier(&spec.options.user);
        let unreadable = self.unreadable.iter().flatten();
        let mut missing: Vec<String> = unreadable.map(|view| format!("what {view} shows")).collect();
        if self.hides_standbys {
            missing.push("the lag of its standbys".to_owned());
        }
        if !missing.is_empty() {
            notice(
                format!("role {user} cannot observe {} on target \"{}\"", missing.join(", "), spec.name),
                format!("These figures will be NULL. On the target: GRANT pg_monitor TO {user}."),
            );
        }
    }
}

/// The error for an answer that is not what was asked for.
pub fn unexpected(error: &serde_json::Error) -> UserError {
    UserError::new(sqlstate::PROTOCOL_VIOLATION, "the target's answer is not what was asked for")
        .detail(format!("{}.", untrusted::text(error.to_string().as_bytes(), 0)))
}
