//! Results for `\gset` and `\aset`: the protocol messages of a command's results are kept, and the last row's values
//! become variables.

#[cfg(test)]
mod tests;

use bench_base::error::{SqlError, UserError, sqlstate};

use crate::sql::ResultCapture;
use crate::variables::{Symbols, Value, Variables, is_variable_name};

/// The most bytes kept of one command's results over a connection: columns, rows, and [`ENTRY_OVERHEAD`] for each query and
/// each row. Also the limit for the texts of a client's variables.
pub const MAX_CAPTURED: usize = 8 << 20;

/// As [`MAX_CAPTURED`], for results of a session inside this server, whose sizes no peer chooses.
const MAX_OWN: usize = 64 << 20;

/// The most columns of a result that is kept: the server's own limit (MaxTupleAttributeNumber).
pub const MAX_COLUMNS: usize = 1664;

/// Upper bound of the memory that a query or a row takes beside its bytes.
const ENTRY_OVERHEAD: usize = 128;

/// The buffers of at most this many queries are used again for the next command.
const REUSED_QUERIES: usize = 8;

/// Buffers are used again only after a command of which at most this many bytes were kept.
const REUSED_BYTES: usize = 1 << 16;

/// The results of one command's queries, as far as `\gset` and `\aset` use them.
#[derive(Debug)]
pub struct CapturedRows {
    queries: Vec<CapturedQuery>,
    /// The number of `queries` of this command; the others are buffers to use again.
    length: usize,
    /// All rows are kept, not only the last one.
    keeps_rows: bool,
    /// Bytes kept of this command, counted as for [`MAX_CAPTURED`].
    bytes: usize,
    max_bytes: usize,
    /// The limit that this command's results exceeded: none of them are kept then.
    excess: Option<Excess>,
}

/// A limit that results exceeded.
#[derive(Clone, Copy, Debug)]
enum Excess {
    Bytes,
    Columns(usize),
    /// An allocation failed.
    Memory,
}

/// The result of one query.
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
    /// Keeps results that come over a connection.
    pub const fn new() -> Self {
        Self::limited(MAX_CAPTURED)
    }

    /// Keeps results of a session inside this server.
    pub const fn own() -> Self {
        Self::limited(MAX_OWN)
    }

    const fn limited(max_bytes: usize) -> Self {
        Self { queries: Vec::new(), length: 0, keeps_rows: false, bytes: 0, max_bytes, excess: None }
    }

    /// Changes the limit in bytes per command, and whether all rows are kept or only the last one.
    pub fn keep_up_to(&mut self, max_bytes: usize, all_rows: bool) {
        (self.max_bytes, self.keeps_rows) = (max_bytes, all_rows);
    }

    /// Begins a command: forgets the results of the last one.
    pub fn clear(&mut self) {
        self.length = 0;
        self.excess = None;
        if self.bytes > REUSED_BYTES {
            self.queries = Vec::new();
        }
        self.queries.truncate(REUSED_QUERIES);
        self.bytes = 0;
    }

    /// Begins a query of the command.
    pub fn next_query(&mut self) {
        if !self.has_room(ENTRY_OVERHEAD) {
            return self.give_up(Excess::Bytes);
        }
        if self.length == self.queries.len() {
            if self.queries.try_reserve(1).is_err() {
                return self.give_up(Excess::Memory);
            }
            self.queries.push(CapturedQuery::default());
        }
        self.bytes += ENTRY_OVERHEAD;
        let query = &mut self.queries[self.length];
        query.description.clear();
        query.last_row.clear();
        query.all_rows.clear();
        query.rows = 0;
        self.length += 1;
    }

    /// Whether a message of this many bytes may be kept. A larger one need not be received:
    /// [`leave_out`](Self::leave_out) reports it.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.excess.is_none() && bytes <= self.max_bytes.saturating_sub(self.bytes)
    }

    /// Keeps the body of a RowDescription (kind `T`) or DataRow (`D`) message; ignores others.
    pub fn take(&mut self, kind: u8, body: &[u8]) {
        let Some(query) = self.queries[..self.length].last_mut() else { return };
        let replaced_bytes = match kind {
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
        let added_bytes = body.len() + if kind == b'D' && self.keeps_rows { ENTRY_OVERHEAD } else { 0 };
        if added_bytes > self.max_bytes.saturating_sub(self.bytes - replaced_bytes) {
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
        self.bytes = self.bytes - replaced_bytes + added_bytes;
    }

    /// Records a message that was not received because it is too large to be kept.
    pub fn leave_out(&mut self, kind: u8) {
        if let Some(query) = self.queries[..self.length].last_mut() {
            query.rows += u64::from(kind == b'D');
        }
        self.give_up(Excess::Bytes);
    }

    /// Drops the results of this command and keeps nothing more of it.
    #[cold]
    fn give_up(&mut self, excess: Excess) {
        self.excess.get_or_insert(excess);
        for query in &mut self.queries {
            (query.description, query.last_row, query.all_rows) = (Vec::new(), Vec::new(), Vec::new());
        }
        self.bytes = 0;
    }

    /// Checks that the results were kept.
    ///
    /// # Errors
    /// 54000 for results above a limit, 53200 if memory for them could not be allocated.
    fn check(&self) -> Result<(), UserError> {
        let limit = |message: &str, detail: String| {
            Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message).detail(detail))
        };
        match self.excess {
            None => Ok(()),
            Some(Excess::Bytes) => limit(
                "the result that is to be kept is too large",
                format!("The limit is {} bytes for all queries of a command.", self.max_bytes),
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

    /// Returns the columns and rows of the last query. Texts are in the client's encoding.
    ///
    /// # Errors
    /// 54000 for results above a limit, 53200 if memory for them could not be allocated.
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

    /// Returns the first column of the last query's last row, in the client's encoding; `None` if there is no row.
    ///
    /// # Errors
    /// As [`table`](Self::table).
    pub fn first_value(&self) -> Result<Option<&[u8]>, UserError> {
        self.check()?;
        let query = self.queries[..self.length].last().filter(|query| query.rows > 0);
        Ok(query.and_then(|query| query.columns().next()).map(|(_, value)| value))
    }

    /// Stores the results in variables (`readCommandResponse` in pgbench.c). `decode` converts a column's name or value from
    /// the client's encoding.
    ///
    /// # Errors
    /// 21000 if `\gset` got another number of rows than one; 42601 for a column whose name is no variable's; 54000 for results
    /// or variables above a limit; those of `decode`.
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
        let mut text_bytes = variables.text_bytes();
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
                let replaced_bytes = variables.get(id).map_or(0, Value::text_bytes);
                text_bytes = (text_bytes + value.len()).saturating_sub(replaced_bytes);
                if text_bytes > self.max_bytes {
                    let message = "the variables of a client hold too much";
                    return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                        .detail(format!("The limit for their texts is {} bytes.", self.max_bytes))
                        .into());
                }
                variables.set(id, Value::Text(decode(value)?.into()));
            }
        }
        Ok(())
    }
}

/// The columns and rows of a query.
pub struct QueryResult<'a> {
    /// Each column's name and its type's OID.
    pub columns: Vec<(&'a [u8], u32)>,
    rows: &'a [Vec<u8>],
}

impl<'a> QueryResult<'a> {
    /// Returns each row's values, one for each column; `None` for NULL.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Option<&'a [u8]>>> {
        self.rows.iter().map(|row| values(row).take(self.columns.len()).collect())
    }
}

/// Reads the number of columns at the front of a RowDescription or a DataRow.
fn columns_in(body: &[u8]) -> usize {
    body.first_chunk().map_or(0, |count| usize::from(u16::from_be_bytes(*count)))
}

/// Bytes behind a column's name in its description: a zero byte, and 18 bytes of table, type and format.
const AFTER_NAME: usize = 19;

/// Returns the values of a DataRow message; `None` for NULL.
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
    /// Returns each column's name and its value in the last row, in the client's encoding; as in libpq, NULL is an empty text.
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
