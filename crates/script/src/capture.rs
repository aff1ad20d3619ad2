//! What `\gset` and `\aset` keep: the messages of the protocol in which a query's result comes are taken down, and the
//! last row's values become variables.

#[cfg(test)]
mod tests;

use bench_base::error::{SqlError, UserError, sqlstate};

use crate::sql::ResultCapture;
use crate::variables::{Symbols, Value, Variables, is_variable_name};

/// The most that is kept of what one command returns over a connection, in bytes: columns and rows, and [`EACH`] more for each
/// query and each row. It is also the most that the variables of a client hold for `\gset` and `\aset`.
pub const MAX_CAPTURED: usize = 8 << 20;

/// As [`MAX_CAPTURED`], of what a session of this very server returns to itself: no peer sizes it.
const MAX_OWN: usize = 64 << 20;

/// The most columns of a result that is kept: as many as the server's own may have (MaxTupleAttributeNumber).
pub const MAX_COLUMNS: usize = 1664;

/// What a query or a row takes beside its bytes, at most.
const EACH: usize = 128;

/// Buffers of so many queries are used again, each of so many bytes.
const KEPT_QUERIES: usize = 8;
const KEPT: usize = 1 << 16;

/// What the queries of one command returned, up to what `\gset` and `\aset` can see of it.
#[derive(Debug)]
pub struct CapturedRows {
    queries: Vec<CapturedQuery>,
    /// How many of `queries` are of this command; the rest are buffers to use again.
    length: usize,
    /// All rows are kept, not the last one alone.
    keeps_rows: bool,
    /// What is kept of this command, as [`MAX_CAPTURED`] counts it, and the most of it.
    bytes: usize,
    most: usize,
    /// Why nothing is kept of this command any more.
    excess: Option<Excess>,
}

/// What is too much.
#[derive(Clone, Copy, Debug)]
enum Excess {
    Bytes,
    Columns(usize),
    /// More than there is.
    Memory,
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
}

impl Default for CapturedRows {
    fn default() -> Self {
        Self::new()
    }
}

impl CapturedRows {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self::limited(MAX_CAPTURED)
    }

    /// Nothing yet, of a session's own results.
    pub const fn own() -> Self {
        Self::limited(MAX_OWN)
    }

    const fn limited(most: usize) -> Self {
        Self { queries: Vec::new(), length: 0, keeps_rows: false, bytes: 0, most, excess: None }
    }

    /// From now on, has all rows kept or the last one alone, and at most so many bytes of a command.
    pub fn keep_up_to(&mut self, most: usize, all_rows: bool) {
        (self.most, self.keeps_rows) = (most, all_rows);
    }

    /// A command begins.
    pub fn clear(&mut self) {
        self.length = 0;
        self.excess = None;
        if self.bytes > KEPT {
            self.queries = Vec::new();
        }
        self.queries.truncate(KEPT_QUERIES);
        self.bytes = 0;
    }

    /// A query of the command begins.
    pub fn next_query(&mut self) {
        if !self.has_room(EACH) {
            return self.give_up(Excess::Bytes);
        }
        if self.length == self.queries.len() {
            if self.queries.try_reserve(1).is_err() {
                return self.give_up(Excess::Memory);
            }
            self.queries.push(CapturedQuery::default());
        }
        self.bytes += EACH;
        let query = &mut self.queries[self.length];
        query.description.clear();
        query.last_row.clear();
        query.all_rows.clear();
        query.rows = 0;
        self.length += 1;
    }

    /// Whether a message of so many bytes may be kept: one that is larger need not be taken up at all, and is told of by
    /// [`leave_out`](Self::leave_out).
    pub fn has_room(&self, bytes: usize) -> bool {
        self.excess.is_none() && bytes <= self.most.saturating_sub(self.bytes)
    }

    /// Takes a message of the server's: protocol 3, RowDescription and DataRow.
    pub fn take(&mut self, kind: u8, body: &[u8]) {
        let Some(query) = self.queries[..self.length].last_mut() else { return };
        // What it takes the place of.
        let before = match kind {
            b'T' => query.description.len(),
            b'D' if self.keeps_rows => 0,
            b'D' => query.last_row.len(),
            _ => return,
        };
        query.rows += u64::from(kind == b'D');
        let columns = columns_in(body);
        if self.excess.is_some() {
            return;
        }
        if kind == b'T' && columns > MAX_COLUMNS {
            return self.give_up(Excess::Columns(columns));
        }
        let takes = body.len() + if kind == b'D' && self.keeps_rows { EACH } else { 0 };
        if takes > self.most.saturating_sub(self.bytes - before) {
            return self.give_up(Excess::Bytes);
        }
        let mut row = Vec::new();
        let kept = match kind {
            b'T' => &mut query.description,
            _ if self.keeps_rows => &mut row,
            _ => &mut query.last_row,
        };
        kept.clear();
        if kept.try_reserve_exact(body.len()).is_err() || query.all_rows.try_reserve(1).is_err() {
            return self.give_up(Excess::Memory);
        }
        kept.extend_from_slice(body);
        if kind == b'D' && self.keeps_rows {
            query.all_rows.push(row);
        }
        self.bytes = self.bytes - before + takes;
    }

    /// Takes notice of a message that is larger than there is room for, and so is not here.
    pub fn leave_out(&mut self, kind: u8) {
        if let Some(query) = self.queries[..self.length].last_mut() {
            query.rows += u64::from(kind == b'D');
        }
        self.give_up(Excess::Bytes);
    }

    /// Nothing of this command is kept any more.
    #[cold]
    fn give_up(&mut self, excess: Excess) {
        self.excess.get_or_insert(excess);
        for query in &mut self.queries {
            (query.description, query.last_row, query.all_rows) = (Vec::new(), Vec::new(), Vec::new());
        }
        self.bytes = 0;
    }

    /// What was too much of this command.
    ///
    /// # Errors
    /// 54000; 53200 where there was no memory.
    fn check(&self) -> Result<(), UserError> {
        let limit = |message: &str, detail: String| {
            Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message).detail(detail))
        };
        match self.excess {
            None => Ok(()),
            Some(Excess::Bytes) => limit(
                "the result that is to be kept is too large",
                format!("The limit is {} bytes for all queries of a command.", self.most),
            ),
            Some(Excess::Columns(columns)) => limit(
                "the result that is to be kept has too many columns",
                format!("It has {columns} columns, and the limit is {MAX_COLUMNS}."),
            ),
            Some(Excess::Memory) => {
                Err(UserError::new(sqlstate::OUT_OF_MEMORY, "out of memory for the result of a query"))
            }
        }
    }

    /// The columns of the last query, each with its name and its type's OID, and all its rows. Texts are in the client's
    /// encoding.
    ///
    /// # Errors
    /// 54000 where they were too much, 53200 where there was no memory.
    pub fn table(&self) -> Result<QueryResult<'_>, UserError> {
        self.check()?;
        let Some(query) = self.queries[..self.length].last() else {
            return Ok(QueryResult { columns: Vec::new(), rows: &[] });
        };
        let mut columns = Vec::new();
        let mut rest = query.description.get(2..).unwrap_or_default();
        // A name, a zero byte, the table's OID and the column's number, the type's OID, and 8 bytes more.
        while columns.len() < MAX_COLUMNS
            && let Some(end) = rest.iter().position(|&byte| byte == 0)
        {
            let oid = rest.get(end + 7..end + 11).and_then(|oid| oid.try_into().ok()).map(u32::from_be_bytes);
            columns.push((&rest[..end], oid.unwrap_or_default()));
            rest = rest.get(end + AFTER_NAME..).unwrap_or_default();
        }
        Ok(QueryResult { columns, rows: &query.all_rows })
    }

    /// The first column of the last query's last row, in the client's encoding; `None` where there is no row.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn first_value(&self) -> Result<Option<&[u8]>, UserError> {
        self.check()?;
        let query = self.queries[..self.length].last().filter(|query| query.rows > 0);
        Ok(query.and_then(|query| query.columns().next()).map(|(_, value)| value))
    }

    /// Puts the results into variables (`readCommandResponse` in pgbench.c). `decode` turns a column's name or value, which
    /// is in the client's encoding, into text.
    ///
    /// # Errors
    /// 21000 unless there is one row, where `\gset` asks for it; 42601 for a column that no variable can be named after;
    /// 54000 for more than is kept, and for more variables; those of `decode`.
    pub fn keep(
        &self,
        capture: &ResultCapture,
        mut decode: impl FnMut(&[u8]) -> Result<String, SqlError>,
        symbols: &mut Symbols,
        variables: &mut Variables,
    ) -> Result<(), SqlError> {
        self.check()?;
        let queries = &self.queries[..self.length];
        let last_of_many = queries.len().saturating_sub(1);
        let kept = if capture.every_query { queries } else { &queries[last_of_many..] };
        if !capture.every_query
            && let Some(query) = kept.first()
            && query.rows != 1
        {
            let message = format!("expected one row, got {}", query.rows);
            return Err(UserError::new(sqlstate::CARDINALITY_VIOLATION, message).into());
        }
        let mut held = variables.text_bytes();
        for query in kept.iter().filter(|query| query.rows > 0) {
            for (column, value) in query.columns() {
                let name = format!("{}{}", capture.prefix, decode(column)?);
                if !is_variable_name(&name) {
                    let message = format!("error storing into variable {name}");
                    return Err(UserError::new(sqlstate::SYNTAX_ERROR, message)
                        .detail("A variable's name consists of letters, digits and underscores, and does not start with a digit.")
                        .into());
                }
                let id = symbols.intern_bounded(&name)?;
                held = (held + value.len()).saturating_sub(variables.get(id).map_or(0, Value::text_bytes));
                if held > self.most {
                    let message = "the variables of a client hold too much";
                    return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                        .detail(format!("The limit for their texts is {} bytes.", self.most))
                        .into());
                }
                variables.set(id, Value::Text(decode(value)?.into()));
            }
        }
        Ok(())
    }
}

/// All that a query returned.
pub struct QueryResult<'a> {
    /// Each column's name and its type's OID.
    pub columns: Vec<(&'a [u8], u32)>,
    rows: &'a [Vec<u8>],
}

impl<'a> QueryResult<'a> {
    /// Each row's values, of as many columns as there are; `None` for NULL.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Option<&'a [u8]>>> {
        self.rows.iter().map(|row| values(row).take(self.columns.len()).collect())
    }
}

/// The number of columns that a RowDescription or a DataRow begins with.
fn columns_in(body: &[u8]) -> usize {
    body.first_chunk().map_or(0, |count| usize::from(u16::from_be_bytes(*count)))
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
