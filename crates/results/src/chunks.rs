//! A large document in parts: which rows of which table each part has.

use std::collections::BTreeMap;

/// Rows of a table that follow each other and have about the same size as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    pub rows: i64,
    /// Of each row.
    pub bytes: i64,
}

/// A part: of each table in it the rows that come after so many others, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentChunk {
    /// From 1 on.
    pub number: i32,
    pub of: i32,
    pub windows: BTreeMap<&'static str, (i64, i64)>,
}

/// The parts of a document with these tables, none larger than `part_bytes` but those that have a single row; at least one.
pub fn chunks(tables: &[(&'static str, Vec<RowRange>)], part_bytes: i64) -> Vec<DocumentChunk> {
    let mut chunks = vec![DocumentChunk::default()];
    let mut free_bytes = part_bytes;
    for (table, stretches) in tables {
        let mut from = 0;
        for stretch in stretches {
            let bytes = stretch.bytes.max(1);
            let mut left = stretch.rows;
            while left > 0 {
                let is_empty = chunks.last().is_some_and(|chunk| chunk.windows.is_empty());
                let fits = (free_bytes / bytes).max(i64::from(is_empty)).min(left);
                if fits <= 0 {
                    chunks.push(DocumentChunk::default());
                    free_bytes = part_bytes;
                    continue;
                }
                if let Some(chunk) = chunks.last_mut() {
                    chunk.windows.entry(table).or_insert((from, 0)).1 += fits;
                }
                free_bytes -= fits * bytes;
                from += fits;
                left -= fits;
            }
        }
    }
    let of = i32::try_from(chunks.len()).unwrap_or(i32::MAX);
    for (number, chunk) in (1..).zip(&mut chunks) {
        (chunk.number, chunk.of) = (number, of);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DocumentChunk, RowRange, chunks};

    fn windows(chunks: &[DocumentChunk]) -> Vec<Vec<(&'static str, i64, i64)>> {
        let of = |chunk: &DocumentChunk| {
            chunk.windows.iter().map(|(table, (from, rows))| (*table, *from, *rows)).collect()
        };
        chunks.iter().map(of).collect()
    }

    #[test]
    fn nothing_is_one_part() {
        let found = chunks(&[("samples", Vec::new())], 100);
        assert_eq!(found, [DocumentChunk { number: 1, of: 1, ..DocumentChunk::default() }]);
    }

    #[test]
    fn rows_of_one_size_are_cut_where_a_part_is_full() {
        let found = chunks(&[("samples", vec![RowRange { rows: 25, bytes: 10 }])], 100);
        assert_eq!(windows(&found), [[("samples", 0, 10)], [("samples", 10, 10)], [("samples", 20, 5)]]);
    }

    #[test]
    fn a_row_that_is_too_large_has_a_part_to_itself() {
        let rows = [10, 1000, 10, 10].map(|bytes| RowRange { rows: 1, bytes });
        let found = chunks(&[("error_log", rows.to_vec())], 100);
        assert_eq!(windows(&found), [[("error_log", 0, 1)], [("error_log", 1, 1)], [("error_log", 2, 2)]]);
    }

    proptest! {
        #[test]
        fn each_row_is_in_one_part_and_parts_are_small(
            sizes in prop::collection::vec(prop::collection::vec((1..50i64, 1..300i64), 0..6), 3)
        ) {
            const NAMES: [&str; 3] = ["a", "b", "c"];
            const MOST: i64 = 200;
            let tables: Vec<(&str, Vec<RowRange>)> = NAMES.into_iter().zip(sizes.into_iter().map(|stretches| {
                stretches.into_iter().map(|(rows, bytes)| RowRange { rows, bytes }).collect()
            })).collect();
            let sizes_of = |name: &str| -> Vec<i64> {
                let (_, stretches) = tables.iter().find(|table| table.0 == name).expect("a table");
                stretches.iter().flat_map(|s| vec![s.bytes; s.rows as usize]).collect()
            };
            let found = chunks(&tables, MOST);
            let mut next: std::collections::BTreeMap<&str, i64> = NAMES.map(|name| (name, 0)).into();
            for (place, chunk) in found.iter().enumerate() {
                prop_assert_eq!((chunk.number, chunk.of), (place as i32 + 1, found.len() as i32));
                let (mut rows, mut bytes) = (0, 0);
                for (table, (from, count)) in &chunk.windows {
                    prop_assert_eq!(next.insert(table, from + count), Some(*from));
                    rows += count;
                    bytes += sizes_of(table)[*from as usize..(from + count) as usize].iter().sum::<i64>();
                }
                prop_assert!(bytes <= MOST || rows == 1, "{rows} rows, {bytes} bytes");
            }
            for name in NAMES {
                prop_assert_eq!(next[name], sizes_of(name).len() as i64);
            }
        }
    }
}
