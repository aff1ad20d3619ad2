//! Compares the rows that two arms return: answers to single executions of a statement, and summaries over all executions.

mod compare;
mod outline;
mod recall;
mod shape;
mod summary;
#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};

pub use compare::{Comparison, Difference, Kind, ShownRow, compare};
pub use outline::{Limit, Outline, StatementKind, other_collations, reads_clock};
pub use recall::{Recall, RecallSample, overlap, pick, recall};
pub use shape::{Column, Shape};
pub use summary::{Example, Execution, StatementAnswers, Verdict, sentence};

/// Rows of an answer are kept up to this many bytes, to compare them one by one and to show the first difference. Longer answers
/// are compared by hashes.
pub const MAX_KEPT: usize = 8 << 20;

/// Memory of a kept row beside its bytes.
const ROW_OVERHEAD: usize = 32;

/// The rows of one execution, from the protocol's RowDescription and DataRow messages.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub columns: Vec<Column>,
    /// Gives the shape when the columns are known.
    outline: Option<Outline>,
    shape: Shape,
    /// Rows returned, inserted, updated or deleted.
    pub processed: u64,
    /// OIDs of indexes that the plan used, if they are recorded.
    pub indexes: Vec<u32>,
    returned: u64,
    /// Hashes of the rows as a multiset (`sum`), and in their order if they have one (`chain`).
    sum: u128,
    chain: u128,
    group: Option<Group>,
    kept: Vec<Box<[u8]>>,
    kept_bytes: usize,
    is_whole: bool,
}

/// Consecutive rows with equal sort keys.
#[derive(Clone, Debug)]
struct Group {
    /// Hash of the keys.
    key: u128,
    rows: u64,
    sum: u128,
    is_first: bool,
}

impl Answer {
    /// Creates the answer of a statement that is about to run.
    pub fn new() -> Self {
        Self { is_whole: true, ..Self::default() }
    }

    /// Sets the shape of the rows that follow.
    pub fn expect(&mut self, shape: Shape) {
        self.shape = shape;
    }

    /// Creates the answer of a statement of which only the text is known.
    pub fn of_text(outline: Outline) -> Self {
        Self { outline: Some(outline), ..Self::new() }
    }

    /// Sets the LIMIT, after all rows.
    pub fn limited_to(&mut self, count: Option<u64>) {
        self.shape.is_cut[1] &= count.is_some_and(|count| self.returned >= count);
    }

    /// Returns whether the statement lets the server choose the rows.
    pub fn is_arbitrary(&self) -> bool {
        let Shape { keys, is_cut, takes_one_of_several, .. } = &self.shape;
        *takes_one_of_several || keys.is_none() && is_cut.contains(&true)
    }

    /// Records a message of the server.
    pub fn take(&mut self, kind: u8, body: &[u8]) {
        match kind {
            b'T' => self.describe(body),
            b'D' => self.add_row(body),
            _ => {}
        }
    }

    fn describe(&mut self, body: &[u8]) {
        self.columns.clear();
        let width = self.shape.width.unwrap_or(usize::MAX);
        let mut rest = body.get(2..).unwrap_or_default();
        while self.columns.len() < width
            && let Some(end) = rest.iter().position(|&byte| byte == 0)
        {
            // After the name: a zero byte, the table's OID and the column's number, the type's OID, and 8 more bytes.
            let oid = rest.get(end + 7..end + 11).and_then(|oid| oid.try_into().ok());
            let name = String::from_utf8_lossy(&rest[..end]).into_owned();
            let type_oid = oid.map_or(0, u32::from_be_bytes);
            self.columns.push(Column { name, type_oid, type_name: None });
            rest = rest.get(end + 19..).unwrap_or_default();
        }
        if let Some(outline) = &self.outline {
            self.shape = outline.shape(&self.columns);
        }
    }

    fn add_row(&mut self, row: &[u8]) {
        self.returned += 1;
        let width = self.shape.width.unwrap_or(usize::MAX);
        let mut visible = Sha256::new();
        fields(row).take(width).for_each(|field| visible.update(field));
        let hash = short(visible);
        self.sum = self.sum.wrapping_add(hash);
        if let Some(keys) = &self.shape.keys {
            let mut key = Sha256::new();
            keys.iter().for_each(|&place| key.update(fields(row).nth(place).unwrap_or_default()));
            let key = short(key);
            match &mut self.group {
                Some(group) if group.key == key => {
                    (group.rows, group.sum) = (group.rows + 1, group.sum.wrapping_add(hash));
                }
                _ => {
                    let is_first = self.group.is_none();
                    self.close_group(false);
                    self.group = Some(Group { key, rows: 1, sum: hash, is_first });
                }
            }
        }
        self.keep(row);
    }

    fn keep(&mut self, row: &[u8]) {
        let bytes = row.len() + ROW_OVERHEAD;
        let mut copy = Vec::new();
        if !self.is_whole
            || self.kept_bytes + bytes > MAX_KEPT
            || copy.try_reserve_exact(row.len()).is_err()
            || self.kept.try_reserve(1).is_err()
        {
            self.is_whole = false;
            return;
        }
        copy.extend_from_slice(row);
        self.kept.push(copy.into_boxed_slice());
        self.kept_bytes += bytes;
    }

    /// Adds a group of rows to the chain: its key, its number of rows and their sum, which LIMIT or OFFSET may have cut.
    fn close_group(&mut self, is_last: bool) {
        let Some(group) = self.group.take() else { return };
        let cut = self.shape.is_cut;
        let is_cut = cut[0] && group.is_first || cut[1] && is_last;
        let mut chained = Sha256::new();
        chained.update(self.chain.to_be_bytes());
        chained.update(group.key.to_be_bytes());
        chained.update(group.rows.to_be_bytes());
        if !is_cut {
            chained.update(group.sum.to_be_bytes());
        }
        self.chain = short(chained);
    }

    /// Ends the answer after all rows; `processed` is the command's own count.
    pub fn finish(&mut self, processed: u64) {
        self.processed = processed;
        self.close_group(true);
    }

    /// Returns a row's columns and values, cut to the size of an example.
    fn shown(&self, row: &[u8]) -> Vec<(String, Option<String>)> {
        let values = self.columns.iter().take(SHOWN_COLUMNS).zip(fields(row).map(value));
        values.map(|(column, value)| (column.name.clone(), value.map(shortened))).collect()
    }
}

/// Iterates over the fields of a DataRow message, each preceded by its length.
fn fields(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = row.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = i32::from_be_bytes(*rest.first_chunk::<4>()?);
        // -1 is NULL.
        let end = (4 + usize::try_from(length).unwrap_or(0)).min(rest.len());
        let (field, after) = rest.split_at(end);
        rest = after;
        Some(field)
    })
}

/// Returns a field's value; `None` for NULL.
fn value(field: &[u8]) -> Option<&[u8]> {
    let (length, value) = field.split_first_chunk::<4>()?;
    (i32::from_be_bytes(*length) >= 0).then_some(value)
}

/// The most columns of a row in an example, and characters of a value.
const SHOWN_COLUMNS: usize = 50;
const SHOWN: usize = 200;

fn shortened(value: &[u8]) -> String {
    // A character has at most four bytes.
    let text = String::from_utf8_lossy(&value[..value.len().min(4 * SHOWN)]);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Returns 128 bits of a hash: among 10^15 different rows, two collide with probability 10^-9.
fn short(hash: Sha256) -> u128 {
    let bytes = hash.finalize();
    bytes.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes))
}
