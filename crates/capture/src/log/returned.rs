//! Values that an application has from one statement of a transaction and gives to a later one. The log has no results; but
//! what an INSERT returns of a sequence is told by its use: an integer that no statement before has, another one in each
//! transaction, and rising from one to the next.

use bench_base::interrupts;

use super::shapes::{ShapeRow, TransactionShape};

/// Transactions that it takes to tell.
const FEWEST: usize = 10;

/// Transactions and slots that are looked at, at most.
const MOST_ROWS: usize = 500;
const MOST_SLOTS: usize = 300;

/// The share of the transactions in which the value is above that of the transaction before: sessions overtake each other.
const RISING: f64 = 0.8;

/// A slot of a shape whose value an earlier statement of the same transaction returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnedValue {
    pub slot: usize,
    /// Which statement.
    pub statement: usize,
}

/// The slots of a shape that have such values.
pub fn returned_values(shape: &TransactionShape) -> Vec<ReturnedValue> {
    let statements = &shape.outline.statements;
    let Some(first) = statements.iter().position(|template| template.returns.is_some()) else {
        return Vec::new();
    };
    let mut rows: Vec<&ShapeRow> = shape.rows.iter().take(MOST_ROWS).collect();
    rows.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
    if rows.len() < FEWEST {
        return Vec::new();
    }
    let of_statement: Vec<usize> =
        statements.iter().enumerate().flat_map(|(place, one)| vec![place; one.slots.len()]).collect();
    let slots = 0..of_statement.len().min(MOST_SLOTS);
    let same = |a: usize, b: usize| rows.iter().all(|row| row.values[a] == row.values[b]);
    let mut found: Vec<ReturnedValue> = Vec::new();
    for slot in slots.filter(|&slot| of_statement[slot] > first) {
        // Each slot is compared with all before it, over all rows.
        interrupts::check();
        // Where it was used before, it comes from the same statement, or it was no result then either.
        if let Some(earlier) = (0..slot).find(|&earlier| same(earlier, slot)) {
            let of_earlier = found.iter().find(|value| value.slot == earlier).copied();
            found.extend(of_earlier.map(|value| ReturnedValue { slot, ..value }));
            continue;
        }
        // Of several that it may be from, none is sure; nor is one that another value is from.
        let is_free = |place: &usize| !found.iter().any(|value| value.statement == *place);
        let mut sources =
            (0..of_statement[slot]).filter(|&place| statements[place].returns.is_some()).filter(is_free);
        let source = sources.next().filter(|_| sources.next().is_none());
        if let Some(statement) = source.filter(|_| is_serial(&rows, slot)) {
            found.push(ReturnedValue { slot, statement });
        }
    }
    found
}

/// Whether the values of a slot are those of a sequence.
fn is_serial(rows: &[&ShapeRow], slot: usize) -> bool {
    let values: Option<Vec<i64>> = rows.iter().map(|row| row.values[slot].as_deref()?.parse().ok()).collect();
    let Some(mut values) = values else { return false };
    let rising = values.windows(2).filter(|pair| pair[0] < pair[1]).count();
    values.sort_unstable();
    values.windows(2).all(|pair| pair[0] != pair[1]) && rising as f64 >= RISING * (values.len() - 1) as f64
}
