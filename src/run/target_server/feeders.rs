//! Feeders whose rows are the target's.

use bench_base::error::UserError;
use bench_model::spec::FixtureSpec;

use super::reached::Reached;
use crate::run::feeders::{Take, check_select, not_text};
use crate::server::guc;
use crate::server::query::ResultColumn;

/// How many rows are fetched at a time: few at first, and then as many as together have about so many bytes, so that they
/// stay far below what is kept of one answer.
const FIRST_ROWS: usize = 100;
const MOST_ROWS: usize = 1000;
const BYTES_AT_ONCE: usize = 1 << 20;

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
        let mut is_first = true;
        let mut at_once = FIRST_ROWS;
        loop {
            pgrx::check_for_interrupts!();
            let (mut count, mut bytes) = (0, 0);
            self.session.rows(&format!("FETCH {at_once} FROM bench_feeder"), |table| {
                if std::mem::take(&mut is_first) {
                    let column = |&(name, oid): &(&[u8], u32)| {
                        Ok(ResultColumn { name: text(name)?.to_owned(), type_oid: oid.into() })
                    };
                    let columns = table.columns.iter().map(column).collect::<Result<Vec<_>, UserError>>()?;
                    take.columns(&columns)?;
                }
                for row in table.rows() {
                    (count, bytes) =
                        (count + 1, bytes + row.iter().flatten().map(|value| value.len()).sum::<usize>());
                    take.row(&|at| row.get(at).copied().flatten().map(text).transpose())?;
                }
                Ok(())
            })?;
            if count == 0 || take.has_enough() {
                break;
            }
            at_once = (BYTES_AT_ONCE / (bytes / count).max(1)).clamp(1, MOST_ROWS);
        }
        self.session.value("ROLLBACK").map(drop)
    }
}

fn text(bytes: &[u8]) -> Result<&str, UserError> {
    // No text of a server's has a zero byte.
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(not_text)
}
