//! Why something that was captured is not kept.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::driver::parameters::NeededPrivileges;
use crate::server::spi::fetch;

/// Why a statement or a transaction is not kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: String,
    /// The role of the session lacks a privilege.
    pub is_denied: bool,
    /// What gives it to that role, where that is known.
    pub grants: Option<String>,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, is_denied: false, grants: None }
    }
}

impl From<&str> for Refusal {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

impl From<UserError> for Refusal {
    fn from(error: UserError) -> Self {
        let is_denied = error.sqlstate == sqlstate::INSUFFICIENT_PRIVILEGE;
        Self { reason: error.message, is_denied, grants: None }
    }
}

impl Refusal {
    /// Of a statement that was given values, with words before its reason; what the server says of a value may show it.
    pub fn of_values(words: &str, error: UserError, mask: bool) -> Self {
        let message = if mask { format!("SQLSTATE {}", error.sqlstate) } else { error.message.clone() };
        Self::from(UserError { message, ..error }).after(words)
    }

    /// The same with words before its reason.
    pub fn after(self, words: &str) -> Self {
        Self { reason: format!("{words}: {}", self.reason), ..self }
    }
}

/// The GRANTs that the current role lacks: privileges on tables, or on one column at least.
const LACKING: &str = "\
    SELECT string_agg(format('GRANT %s ON %s TO %I', l.names, l.relation::regclass, current_user), '; ' ORDER BY l.relation) \
    FROM (SELECT n.relation, string_agg(DISTINCT p.name, ', ' ORDER BY p.name) AS names \
          FROM ROWS FROM (unnest($1), unnest($2)) AS n (relation, mode) \
          JOIN (VALUES (1, 'INSERT'), (2, 'SELECT'), (4, 'UPDATE'), (8, 'DELETE')) AS p (bit, name) ON n.mode & p.bit <> 0 \
          WHERE NOT CASE p.name WHEN 'DELETE' THEN has_table_privilege(n.relation, p.name) \
                                ELSE has_any_column_privilege(n.relation, p.name) END \
          GROUP BY n.relation) l";

/// # Errors
/// The GRANTs, where the current role lacks what a statement takes.
pub fn check_privileges(needed: &[NeededPrivileges]) -> Result<(), Refusal> {
    let (relations, modes): (Vec<pg_sys::Oid>, Vec<i64>) =
        needed.iter().map(|needed| (needed.relation, needed.mode as i64)).unzip();
    match fetch::<String>(LACKING, &[relations.into(), modes.into()])? {
        None => Ok(()),
        grants => Err(Refusal { reason: "permission denied".to_owned(), is_denied: true, grants }),
    }
}
