//! What `\gset` and `\aset` keep: the messages of the protocol in which a query's result comes are taken down, and the
//! last row's values become variables.

use super::sql::Capture;
use super::variables::{Symbols, Value, Variables, is_variable_name};
use crate::error::{SqlError, UserError, sqlstate};

/// The largest message that is kept, in bytes.
pub const MAX_CAPTURED: usize = 64 << 20;

/// What the queries of one command returned, up to what `\gset` and `\aset` can see of it.
#[derive(Debug, Default)]
pub struct Captured {
    queries: Vec<CapturedQuery>,
    /// How many of `queries` are of this command; the rest are buffers to use again.
    length: usize,
    /// All rows are kept, not the last one alone.
    keeps_rows: bool,
}

/// What one query returned.
#[derive(Debug, Default)]
struct CapturedQuery {
    /// The body of its RowDescription message; empty for a query without result columns.
    description: Vec<u8>,
    /// The body of its last DataRow message.
    last_row: Vec<u8>,
    /// The bodies of all DataRow messages, where they are kept.
    all_rows: Vec<Vec<u8>>,
    rows: u64,
    /// One of the messages was more than a variable may hold, and was not kept.
    is_too_large: bool,
}

impl Captured {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { queries: Vec::new(), length: 0, keeps_rows: false }
    }

    /// Has all rows kept from now on, or the last one alone.
    pub fn keep_rows(&mut self, all: bool) {
        self.keeps_rows = all;
    }

    /// A command begins.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// A query of the command begins.
    pub fn next_query(&mut self) {
        if self.length == self.queries.len() {
            self.queries.push(CapturedQuery::default());
        }
        let query = &mut self.queries[self.length];
        query.description.clear();
        query.last_row.clear();
        query.all_rows.clear();
        query.rows = 0;
        query.is_too_large = false;
        self.length += 1;
    }

    /// Takes a message of the server's: protocol 3, RowDescription and DataRow.
    pub fn take(&mut self, kind: u8, body: &[u8]) {
        let Some(query) = self.queries[..self.length].last_mut() else { return };
        let kept = match kind {
            b'T' => &mut query.description,
            b'D' => {
                query.rows += 1;
                if self.keeps_rows {
                    query.all_rows.push(Vec::new());
                }
                query.all_rows.last_mut().unwrap_or(&mut query.last_row)
            }
            _ => return,
        };
        kept.clear();
        if body.len() <= MAX_CAPTURED && kept.try_reserve(body.len()).is_ok() {
            kept.extend_from_slice(body);
        } else {
            query.is_too_large = true;
        }
    }

    /// Takes notice of a message that is larger than [`MAX_CAPTURED`], and so is not here.
    pub fn leave_out(&mut self, kind: u8) {
        if let Some(query) = self.queries[..self.length].last_mut() {
            query.rows += u64::from(kind == b'D');
            query.is_too_large = true;
        }
    }

    /// The columns of the last query, each with its name and its type's OID, and all its rows; `None` where a message was too
    /// large. Texts are in the client's encoding.
    pub fn table(&self) -> Option<Table<'_>> {
        let query = self.queries[..self.length].last().filter(|query| !query.is_too_large)?;
        let mut columns = Vec::new();
        let mut rest = query.description.get(2..).unwrap_or_default();
        // A name, a zero byte, the table's OID and the column's number, the type's OID, and 8 bytes more.
        while let Some(end) = rest.iter().position(|&byte| byte == 0) {
            let oid = rest.get(end + 7..end + 11).and_then(|oid| oid.try_into().ok()).map(u32::from_be_bytes);
            columns.push((&rest[..end], oid.unwrap_or_default()));
            rest = rest.get(end + AFTER_NAME..).unwrap_or_default();
        }
        let rows = query.all_rows.iter().map(|row| values(row).collect()).collect();
        Some(Table { columns, rows })
    }

    /// The first column of the last query's last row, in the client's encoding; `None` where there is no row.
    pub fn first_value(&self) -> Option<&[u8]> {
        let query = self.queries[..self.length].last().filter(|query| query.rows > 0)?;
        query.columns().next().map(|(_, value)| value)
    }

    /// Puts the results into variables (`readCommandResponse` in pgbench.c). `decode` turns a column's name or value, which
    /// is in the client's encoding, into text.
    ///
    /// # Errors
    /// 21000 unless there is one row, where `\gset` asks for it; 42601 for a column that no variable can be named after;
    /// 54000 for a row that is too large; those of `decode`.
    pub fn keep(
        &self,
        capture: &Capture,
        mut decode: impl FnMut(&[u8]) -> Result<String, SqlError>,
        symbols: &mut Symbols,
        variables: &mut Variables,
    ) -> Result<(), SqlError> {
        let queries = &self.queries[..self.length];
        if queries.iter().any(|query| query.is_too_large) {
            let message = "a row for \\gset or \\aset is too large";
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                .detail(format!("The limit is {MAX_CAPTURED} bytes."))
                .into());
        }
        let last_of_many = queries.len().saturating_sub(1);
        let kept = if capture.every_query { queries } else { &queries[last_of_many..] };
        if !capture.every_query
            && let Some(query) = kept.first()
            && query.rows != 1
        {
            let message = format!("expected one row, got {}", query.rows);
            return Err(UserError::new(sqlstate::CARDINALITY_VIOLATION, message).into());
        }
        for query in kept.iter().filter(|query| query.rows > 0) {
            for (column, value) in query.columns() {
                let name = format!("{}{}", capture.prefix, decode(column)?);
                if !is_variable_name(&name) {
                    let message = format!("error storing into variable {name}");
                    return Err(UserError::new(sqlstate::SYNTAX_ERROR, message)
                        .detail("A variable's name consists of letters, digits and underscores, and does not start with a digit.")
                        .into());
                }
                variables.set(symbols.intern(&name), Value::Text(decode(value)?.into()));
            }
        }
        Ok(())
    }
}

/// All that a query returned.
pub struct Table<'a> {
    /// Each column's name and its type's OID.
    pub columns: Vec<(&'a [u8], u32)>,
    /// Each row's values; `None` for NULL.
    pub rows: Vec<Vec<Option<&'a [u8]>>>,
}

/// Behind a column's name in its description: a zero byte, 18 bytes of table, type and format.
const AFTER_NAME: usize = 19;

/// The values of a DataRow message; `None` for NULL.
fn values(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut values = row.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, rest) = values.split_first_chunk::<4>()?;
        // -1 is NULL.
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (value, rest) = rest.split_at(length.unwrap_or(0).min(rest.len()));
        values = rest;
        Some(length.map(|_| value))
    })
}

impl CapturedQuery {
    /// Each column's name and its value in the last row, in the client's encoding; as for libpq, a NULL is an empty text.
    fn columns(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut names = self.description.get(2..).unwrap_or_default();
        let mut values = values(&self.last_row);
        std::iter::from_fn(move || {
            let end = names.iter().position(|&byte| byte == 0)?;
            let column = (&names[..end], values.next()?.unwrap_or_default());
            names = names.get(end + AFTER_NAME..).unwrap_or_default();
            Some(column)
        })
    }
}

#[cfg(test)]
mod tests;
