//! Feeders whose rows are the target's.

use bench_core::error::UserError;
use bench_core::spec::FixtureSpec;

use super::Reached;
use crate::launch::feeders::{Take, check_select, not_text};
use crate::server::guc;
use crate::server::query::Column;

/// How many rows are fetched at a time.
const ROWS_AT_ONCE: u32 = 1000;

impl Reached {
    /// Reads the rows of a feeder there, in a read-only transaction that is rolled back.
    ///
    /// # Errors
    /// The server's, and those of `take`.
    pub fn read(
        &mut self,
        fixtures: &[FixtureSpec],
        settings: &[(String, String)],
        query: &str,
        take: &mut dyn Take,
    ) -> Result<(), UserError> {
        check_select(query)?;
        self.session.value("BEGIN READ ONLY")?;
        let schemas: Vec<&str> = fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
        if !schemas.is_empty() {
            let path = guc::search_path_with(&schemas, &self.description.search_path);
            self.set("search_path", &path)?;
        }
        for (name, value) in settings {
            self.set(name, value)?;
        }
        // A query may end with a comment.
        self.session.value(&format!("DECLARE bench_feeder NO SCROLL CURSOR FOR {query}\n"))?;
        let fetch = format!("FETCH {ROWS_AT_ONCE} FROM bench_feeder");
        let mut is_first = true;
        loop {
            pgrx::check_for_interrupts!();
            let count = self.session.rows(&fetch, |table| {
                if std::mem::take(&mut is_first) {
                    let column = |&(name, oid): &(&[u8], u32)| {
                        Ok(Column { name: text(name)?.to_owned(), type_oid: oid.into() })
                    };
                    let columns = table.columns.iter().map(column).collect::<Result<Vec<_>, UserError>>()?;
                    take.columns(&columns)?;
                }
                for row in &table.rows {
                    take.row(&|at| row.get(at).copied().flatten().map(text).transpose())?;
                }
                Ok(table.rows.len())
            })?;
            if count == 0 || take.has_enough() {
                break;
            }
        }
        self.session.value("ROLLBACK").map(drop)
    }
}

fn text(bytes: &[u8]) -> Result<&str, UserError> {
    std::str::from_utf8(bytes).map_err(|_| not_text())
}
