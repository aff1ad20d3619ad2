//! Compares two answers.
//!
//! Equal hashes decide at once. Otherwise kept rows are compared: as multisets, by sorting them, and in their order by the sort
//! keys alone. Equal multisets whose keys agree in order differ only in ties.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{Answer, fields, value};

/// How answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Rows are missing, or there are more of them.
    Rows,
    Values,
    /// The same rows in another order than ORDER BY allows.
    Order,
    /// Columns of other types, or another number of them.
    Type,
    /// A NULL on one side only.
    Null,
    /// An error on one side, or different ones.
    Error,
    /// The same values, written in another way.
    Rendering,
}

/// The columns and values of a row in an example.
pub type ShownRow = Vec<(String, Option<String>)>;

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub kind: Kind,
    /// The row of each side; `None` if that side has none.
    pub rows: [Option<ShownRow>; 2],
}

/// The result of comparing two answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    Same,
    /// The same except rows with equal sort keys, of which LIMIT or OFFSET takes others.
    Tied,
    /// The same except floating-point numbers within the tolerance.
    Close,
    Differs(Difference),
}

/// Compares two answers. Floating-point numbers whose relative difference is at most `tolerance` are the same. A row of the
/// first difference is shown beside the one that has the same value in column `key`, where there is one.
pub fn compare(a: &Answer, b: &Answer, tolerance: f64, key: Option<&str>) -> Comparison {
    let types = |answer: &Answer| answer.columns.iter().map(super::Column::shown_type).collect::<Vec<_>>();
    if types(a) != types(b) {
        let differs = |(a, b): (&super::Column, &super::Column)| a.shown_type() != b.shown_type();
        let place = a.columns.iter().zip(&b.columns).position(differs);
        let place = place.unwrap_or(a.columns.len().min(b.columns.len()));
        let shown = |answer: &Answer| {
            let column = answer.columns.get(place)?;
            Some(vec![(column.name.clone(), Some(column.shown_type()))])
        };
        return Comparison::Differs(Difference { kind: Kind::Type, rows: [shown(a), shown(b)] });
    }
    let counts = |answer: &Answer| (answer.processed, answer.returned);
    let is_same_count = counts(a) == counts(b);
    if is_same_count && a.shape == b.shape && a.shape.keys.is_some() && a.chain == b.chain {
        return if a.sum == b.sum { Comparison::Same } else { Comparison::Tied };
    }
    if is_same_count && a.sum == b.sum && (a.shape.keys.is_none() || b.shape.keys.is_none()) {
        return Comparison::Same;
    }
    let pair = Pair { a, b, tolerance };
    let is_whole = a.is_whole && b.is_whole;
    if is_same_count && is_whole && pair.is_close() {
        return if a.sum == b.sum { Comparison::Same } else { Comparison::Close };
    }
    Comparison::Differs(pair.first_difference(is_same_count, is_whole, key))
}

/// A row of each side, where there is one.
type RowPair<'r> = (Option<&'r [u8]>, Option<&'r [u8]>);

struct Pair<'a> {
    a: &'a Answer,
    b: &'a Answer,
    tolerance: f64,
}

impl Pair<'_> {
    /// Returns whether the rows are the same within the tolerance, in an order that both statements allow.
    fn is_close(&self) -> bool {
        // Statements with different ORDER BY are compared without order.
        let keys_of = |answer: &Answer| answer.shape.keys.as_ref().map(Vec::len);
        if keys_of(self.a).is_none() || keys_of(self.a) != keys_of(self.b) {
            return self.are_multisets_close(
                [&self.a.kept, &self.b.kept].map(|rows| rows.iter().map(AsRef::as_ref).collect()),
            );
        }
        let mut pairs = self.a.kept.iter().zip(&self.b.kept);
        if !pairs.all(|(a, b)| self.are_keys_close(a, b)) {
            return false;
        }
        self.are_multisets_close([self.a, self.b].map(|answer| {
            let ends = [answer.kept.first(), answer.kept.last()];
            let is_at = |row: &[u8], end: usize| {
                (self.a.shape.is_cut[end] || self.b.shape.is_cut[end])
                    && ends[end].is_some_and(|at| keys(answer, at).eq(keys(answer, row)))
            };
            answer.kept.iter().map(AsRef::as_ref).filter(|row| !is_at(row, 0) && !is_at(row, 1)).collect()
        }))
    }

    fn are_keys_close(&self, a: &[u8], b: &[u8]) -> bool {
        keys(self.a, a).zip(keys(self.b, b)).all(|((is_float, a), (_, b))| self.is_same(is_float, a, b))
    }

    fn are_multisets_close(&self, sides: [Vec<&[u8]>; 2]) -> bool {
        let [mut a, mut b] = sides;
        a.sort_unstable_by(|one, other| self.compare_rows(one, other));
        b.sort_unstable_by(|one, other| self.compare_rows(one, other));
        a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| self.is_same_row(a, b))
    }

    /// Orders rows by columns that must be equal, then by floating-point numbers.
    fn compare_rows(&self, a: &[u8], b: &[u8]) -> Ordering {
        bench_base::interrupts::check_now_and_then();
        let floats = || self.a.columns.iter().map(super::Column::is_float);
        let exact = |row| fields(row).zip(floats()).filter(|(_, is_float)| !is_float).map(|(field, _)| field);
        let close =
            |row| fields(row).zip(floats()).filter(|(_, is_float)| *is_float).map(|(field, _)| number(field));
        exact(a).cmp(exact(b)).then_with(|| {
            let mut pairs = close(a).zip(close(b)).map(|(a, b)| match (a, b) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            });
            pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    fn is_same_row(&self, a: &[u8], b: &[u8]) -> bool {
        let mut pairs = fields(a).zip(fields(b)).zip(&self.a.columns);
        pairs.all(|((a, b), column)| self.is_same(column.is_float(), a, b))
    }

    fn is_same(&self, is_float: bool, a: &[u8], b: &[u8]) -> bool {
        if a == b {
            return true;
        }
        let (true, Some(a), Some(b)) = (is_float, number(a), number(b)) else { return false };
        let (difference, largest) = ((a - b).abs(), a.abs().max(b.abs()));
        // Infinite numbers are within no tolerance of others.
        a == b || largest.is_finite() && difference <= self.tolerance * largest
    }

    /// The kind of the difference, and its first row.
    fn first_difference(&self, is_same_count: bool, is_whole: bool, key: Option<&str>) -> Difference {
        let (a, b) = (self.a, self.b);
        let is_ordered = a.shape.keys.is_some() && b.shape.keys.is_some();
        let place = key.and_then(|key| a.columns.iter().position(|column| column.name == key));
        let mut sides = [a, b].map(|answer| answer.kept.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>());
        let are_same_rows = || {
            let sides = [&a.kept, &b.kept].map(|rows| rows.iter().map(AsRef::as_ref).collect());
            a.sum == b.sum || is_whole && self.are_multisets_close(sides)
        };
        if is_same_count && is_ordered && are_same_rows() {
            let mut pairs = a.kept.iter().zip(&b.kept);
            let pair = pairs.find(|(a, b)| !self.are_keys_close(a, b));
            return self.shown(Kind::Order, pair.map(|(a, b)| (Some(&**a), Some(&**b))));
        }
        if !is_whole && !is_ordered {
            // Rows that have not been kept may match.
            let kind = if is_same_count { Kind::Values } else { Kind::Rows };
            return Difference { kind, rows: [None, None] };
        }
        if let Some(place) = place {
            let of_key = |row: &&[u8]| fields(row).nth(place).map(<[u8]>::to_vec);
            sides.iter_mut().for_each(|rows| rows.sort_by_cached_key(of_key));
        } else if !is_ordered {
            sides.iter_mut().for_each(|rows| rows.sort_by(|one, other| self.compare_rows(one, other)));
        }
        let by = |one: &[u8], other: &[u8]| match place {
            Some(place) => fields(one).nth(place).cmp(&fields(other).nth(place)),
            // The same number of rows is compared row by row.
            None if is_ordered || is_same_count => Ordering::Equal,
            None => self.compare_rows(one, other),
        };
        let pair = self.first_pair(&sides, by);
        let kind = match pair {
            _ if !is_same_count => Kind::Rows,
            Some((Some(a), Some(b))) if self.has_null(a, b) => Kind::Null,
            Some((None, _) | (_, None)) => Kind::Rows,
            _ => Kind::Values,
        };
        self.shown(kind, pair)
    }

    /// The first rows of two sequences that do not match, or the first row that one of them lacks.
    fn first_pair<'r>(
        &self,
        sides: &[Vec<&'r [u8]>; 2],
        by: impl Fn(&[u8], &[u8]) -> Ordering,
    ) -> Option<RowPair<'r>> {
        let [mut a, mut b] = sides.each_ref().map(|rows| rows.iter().copied().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (None, None) => return None,
                (Some(_), None) => return Some((a.next(), None)),
                (None, Some(_)) => return Some((None, b.next())),
                (Some(a), Some(b)) if self.is_same_row(a, b) => None,
                (Some(a), Some(b)) => Some(by(a, b)),
            };
            match order {
                None => drop((a.next(), b.next())),
                Some(Ordering::Less) => return Some((a.next(), None)),
                Some(Ordering::Greater) => return Some((None, b.next())),
                Some(Ordering::Equal) => return Some((a.next(), b.next())),
            }
        }
    }

    fn has_null(&self, a: &[u8], b: &[u8]) -> bool {
        let mut pairs = fields(a).zip(fields(b)).take(self.a.columns.len());
        pairs.any(|(a, b)| value(a).is_none() != value(b).is_none())
    }

    fn shown(&self, kind: Kind, pair: Option<RowPair>) -> Difference {
        let (a, b) = pair.unwrap_or_default();
        Difference { kind, rows: [a.map(|row| self.a.shown(row)), b.map(|row| self.b.shown(row))] }
    }
}

/// A row's sort keys, each with whether it is a floating-point number; a key that is no column is compared as it is written.
fn keys<'r>(answer: &Answer, row: &'r [u8]) -> impl Iterator<Item = (bool, &'r [u8])> {
    let keys = answer.shape.keys.iter().flatten();
    keys.map(|&place| {
        let is_float = answer.columns.get(place).is_some_and(super::Column::is_float);
        (is_float, fields(row).nth(place).unwrap_or_default())
    })
}

/// A field as a floating-point number, as the server writes it.
fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(value(field)?).ok()?.parse().ok()
}
