use bench_script::Prng;
use proptest::prelude::*;

use super::derived::{hexadecimal, round_to_seconds, short_header};
use super::*;

fn row(columns: &[RowColumn], id: i64) -> Vec<u8> {
    let scene = Scene { now_us: 42, now_text: "now".to_owned(), local_offset_us: 3_600_000_000 };
    let writer = RowWriter::new(columns, scene).unwrap();
    let mut out = vec![0xAA; writer.max_length()];
    writer.prepare(&mut out);
    // A buffer serves many rows: what one leaves must not be seen in the next.
    writer.write(Key::of(i64::MAX), 7, &mut Prng::from_seed(2), &mut out);
    let length = writer.write(Key::of(id), 1_500_000, &mut Prng::from_seed(1), &mut out);
    out.truncate(length);
    out
}

#[test]
fn values_stand_at_their_alignment_and_gaps_are_zero() {
    let row = row(
        &[RowColumn::Id4, RowColumn::Text("abc".to_owned()), RowColumn::Constant4(-1), RowColumn::Clock],
        7,
    );
    let mut expected = 7i32.to_ne_bytes().to_vec();
    expected.push(short_header(3));
    expected.extend(b"abc");
    expected.extend((-1i32).to_ne_bytes());
    expected.extend([0; 4]);
    expected.extend(1_500_000i64.to_ne_bytes());
    // 4 + 4 + 4, then a gap of 4 that ends at 16
    assert_eq!(row, expected);
    assert_eq!(row.len(), 24);
}

#[test]
fn what_follows_a_text_of_any_length_stands_where_that_ends() {
    let columns =
        [RowColumn::Id8, RowColumn::IdText("_name".to_owned()), RowColumn::LocalClockSeconds, RowColumn::Id4];
    for (id, at) in [(1, 16), (12, 16), (123, 24), (1_234_567_890, 24)] {
        let row = row(&columns, id);
        let text = format!("{id}_name");
        assert_eq!(&row[9..9 + text.len()], text.as_bytes());
        assert!(row[9 + text.len()..at].iter().all(|byte| *byte == 0));
        assert_eq!(row[at..at + 8], 3_602_000_000i64.to_ne_bytes());
        assert_eq!(row[at + 8..], (id as i32).to_ne_bytes());
    }
}

#[test]
fn times_are_local_and_rounded_where_they_should_be() {
    let eight = |bytes: Vec<u8>| i64::from_ne_bytes(bytes.try_into().unwrap());
    assert_eq!(eight(row(&[RowColumn::Clock], 1)), 1_500_000);
    assert_eq!(eight(row(&[RowColumn::LocalClock], 1)), 3_601_500_000);
    assert_eq!(eight(row(&[RowColumn::LocalClockSeconds], 1)), 3_602_000_000);
    assert_eq!(eight(row(&[RowColumn::Now], 1)), 42);
    assert_eq!(round_to_seconds(-1_500_000), -2_000_000);
    assert_eq!(round_to_seconds(1_499_999), 1_000_000);
}

#[test]
fn a_text_that_a_short_header_cannot_tell_is_refused() {
    let new = |column| RowWriter::new(&[column], Scene::default());
    assert!(new(RowColumn::Text("x".repeat(MAX_TEXT))).is_ok());
    assert!(new(RowColumn::Text("x".repeat(MAX_TEXT + 1))).is_err());
    assert!(new(RowColumn::Blanks(MAX_TEXT)).is_ok());
    assert!(new(RowColumn::Blanks(MAX_TEXT + 1)).is_err());
    assert!(new(RowColumn::IdText("x".repeat(MAX_TEXT - 20))).is_ok());
    assert!(new(RowColumn::IdText("x".repeat(MAX_TEXT - 19))).is_err());
}

#[test]
fn random_digits_differ_and_are_hexadecimal() {
    let writer = RowWriter::new(&[RowColumn::RandomHex], Scene::default()).unwrap();
    let mut random = Prng::from_seed(5);
    let mut out = vec![0; writer.max_length()];
    writer.prepare(&mut out);
    let mut seen = std::collections::HashSet::new();
    for id in 1..=1000 {
        assert_eq!(writer.write(Key::of(id), 0, &mut random, &mut out), 33);
        assert!(out[1..33].iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)));
        assert!(seen.insert(out[1..33].to_vec()));
    }
}

#[test]
fn random_integers_are_of_the_whole_range_and_even() {
    let writer = RowWriter::new(&[RowColumn::Uniform4(0, 100)], Scene::default()).unwrap();
    let mut random = Prng::from_seed(6);
    let mut out = vec![0; writer.max_length()];
    writer.prepare(&mut out);
    let mut counts = [0u32; 101];
    for id in 1..=101_000 {
        assert_eq!(writer.write(Key::of(id), 0, &mut random, &mut out), 4);
        let value = i32::from_ne_bytes(out[..4].try_into().unwrap());
        counts[usize::try_from(value).unwrap()] += 1;
    }
    // About a thousand of each, with a standard deviation of 31.
    assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
}

proptest! {
    #[test]
    fn an_id_reads_as_it_is(id in 1i64..=i64::MAX) {
        let row = row(&[RowColumn::IdText("_x".to_owned())], id);
        prop_assert_eq!(std::str::from_utf8(&row[1..]).unwrap(), format!("{id}_x"));
        prop_assert_eq!(usize::from(row[0] >> 1), row.len());
    }

    #[test]
    fn digits_are_those_of_the_number(number: u64) {
        let digits = String::from_utf8(hexadecimal(number).to_vec()).unwrap();
        prop_assert_eq!(digits, format!("{number:016x}"));
    }

    #[test]
    fn chunks_hold_every_id_once(rows in prop::collection::vec(0i64..500, 0..5), size in 1i64..200) {
        let mut next = vec![1; rows.len()];
        let mut number = 0;
        while let Some(chunk) = chunk(rows.iter().copied(), size, number) {
            prop_assert_eq!(chunk.first_id, next[chunk.table]);
            prop_assert!(chunk.last_id - chunk.first_id < size);
            prop_assert!(chunk.last_id >= chunk.first_id);
            prop_assert!(next[..chunk.table].iter().zip(&rows).all(|(next, rows)| *next > *rows));
            next[chunk.table] = chunk.last_id + 1;
            number += 1;
        }
        prop_assert!(next.iter().zip(&rows).all(|(next, rows)| *next == rows + 1));
    }

    #[test]
    fn the_greatest_ids_do_not_overflow(size in 1i64..=i64::MAX, back in 0u64..3) {
        let chunks = (i64::MAX / size + i64::from(i64::MAX % size > 0)).unsigned_abs();
        if let Some(number) = chunks.checked_sub(back + 1) {
            let chunk = chunk([i64::MAX], size, number).unwrap();
            prop_assert!(chunk.first_id >= 1 && chunk.first_id <= chunk.last_id);
        }
        prop_assert_eq!(chunk([i64::MAX], size, chunks), None);
    }
}

/// A value that a key determines.
fn value(derived: Derived, key: Key) -> Vec<u8> {
    let writer = RowWriter::new(&[RowColumn::Derived(derived)], Scene::default()).unwrap();
    let mut out = vec![0xAA; writer.max_length()];
    writer.prepare(&mut out);
    let length = writer.write(key, 0, &mut Prng::from_seed(1), &mut out);
    out.truncate(length);
    out
}

#[test]
fn decimals_are_the_servers() {
    // What pageinspect shows of the values in a table of the server: a header of two bytes, then digits to the base of 10,000.
    let bytes = |units, places| {
        let row = row(&[RowColumn::ConstantDecimal(units, places)], 1);
        assert_eq!(row[0], short_header(row.len() - 1));
        row[1..].chunks(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect::<Vec<_>>()
    };
    // 0.00, 10.00, -10.00, 0.0123, 50000.00, 300000.05
    assert_eq!(bytes(0, 2), [0x8100]);
    assert_eq!(bytes(1000, 2), [0x8100, 10]);
    assert_eq!(bytes(-1000, 2), [0xA100, 10]);
    assert_eq!(bytes(123, 4), [0x827F, 123]);
    assert_eq!(bytes(5_000_000, 2), [0x8101, 5]);
    assert_eq!(bytes(30_000_005, 2), [0x8101, 30, 0, 500]);
}

#[test]
fn a_long_text_has_a_header_of_four_bytes_at_its_alignment() {
    let long = Derived::Hex { seed: 1, least: 200, most: 200 };
    let row = row(&[RowColumn::Text("a".to_owned()), RowColumn::Derived(long)], 1);
    assert_eq!(row[2..4], [0, 0]);
    let header = u32::from_ne_bytes(row[4..8].try_into().unwrap());
    assert_eq!(header, if cfg!(target_endian = "little") { 204 << 2 } else { 204 });
    assert_eq!(row.len(), 208);
    assert!(row[8..].iter().all(u8::is_ascii_hexdigit));
}

#[test]
fn columns_without_values_take_no_room() {
    assert_eq!(
        row(&[RowColumn::Constant4(1), RowColumn::Null4, RowColumn::NullTime, RowColumn::Constant4(2)], 1)
            .len(),
        8
    );
}

#[test]
fn last_names_are_of_three_syllables() {
    let name = |id| {
        let row = value(Derived::LastName { seed: 1, size: 3000, constant: 86 }, Key::of(id));
        String::from_utf8(row[1..].to_vec()).unwrap()
    };
    // TPC-C 4.3.2.3 has 371 for an example.
    assert_eq!(name(372), "PRICALLYOUGHT");
    assert_eq!(name(3001), "BARBARBAR");
    assert_eq!(name(1000), "EINGEINGEING");
}

#[test]
fn shuffled_numbers_are_each_there_once() {
    for group in 0..3i64 {
        let number = |x: i64| {
            let row = value(Derived::Shuffled4 { seed: 1, size: 3000 }, Key::of(group * 3000 + x));
            i32::from_ne_bytes(row[..4].try_into().unwrap())
        };
        let mut numbers: Vec<i32> = (1..=3000).map(number).collect();
        assert_ne!(numbers[..3], [1, 2, 3]);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=3000));
    }
}

#[test]
fn random_draws_have_no_expression() {
    assert_eq!(
        select(&[RowColumn::Id4, RowColumn::RandomHex], &KeySelection::default()),
        Err(RowColumn::RandomHex)
    );
    assert_eq!(
        select(&[RowColumn::Id4, RowColumn::Text("it's".to_owned())], &KeySelection::default()).unwrap(),
        "SELECT k, 'it''s' FROM (SELECT generate_series($1, $2) AS k) AS keys"
    );
}

proptest! {
    #[test]
    fn rows_are_those_of_every_part_of_the_ids(take in 1i64..5, more in 0i64..5, cut in 1i64..30) {
        let lines = Some(Lines { seed: 3, least: 0, most: 4 });
        let keys = KeySelection { take, of: take + more, first: 1 + more, lines };
        let whole: Vec<Key> = keys.rows(1, 30).collect();
        let parts: Vec<Key> = keys.rows(1, cut).chain(keys.rows(cut + 1, 30)).collect();
        prop_assert_eq!(&whole, &parts);
        // Within its group, each key is one of the last `take`.
        prop_assert!(whole.iter().all(|key| take + more == 1 || (key.id - 1) % (take + more) >= more));
        prop_assert!(whole.windows(2).all(|pair| (pair[0].id, pair[0].line) < (pair[1].id, pair[1].line)));
    }
}

#[test]
fn chunks_in_turn_are_all_chunks_once() {
    let (rows, sides) = ([7, 0, 25, 10], [false, false, true, false]);
    let all: Vec<Chunk> = (0..).map_while(|number| chunk_in_turn(&rows, &sides, 5, number)).collect();
    let expected: Vec<Chunk> = (0..).map_while(|number| chunk(rows, 5, number)).collect();
    assert_eq!(all.iter().map(|chunk| chunk.table).collect::<Vec<_>>(), [0, 2, 0, 2, 3, 2, 3, 2, 2]);
    assert!(expected.iter().all(|chunk| all.contains(chunk)) && all.len() == expected.len());
    let alone = |number| chunk_in_turn(&rows, &[true; 4], 5, number);
    assert_eq!((0..).map_while(alone).collect::<Vec<_>>(), expected);
}

#[test]
fn hashes_are_the_servers() {
    // SELECT hashint8extended(k, s), PostgreSQL 15
    for (key, seed, expected) in HASHES {
        assert_eq!(hash(key, seed), expected, "{key} {seed}");
    }
}

const HASHES: [(i64, i64, i64); 7] = [
    (1, 0, -3_670_598_878_359_251_130),
    (1, 1, -7_620_678_293_940_249_823),
    (42, 1021, -606_531_833_182_639_731),
    (i64::MAX, 77, -8_990_219_497_821_492_798),
    (-5, 3, 4_566_310_048_417_840_633),
    (4_294_967_296, 12_345_678_901, 4_167_789_763_743_768_095),
    (300_000_016, 2140, -3_371_413_304_165_546_564),
];

#[test]
fn numbers_are_evenly_of_the_whole_range() {
    let mut counts = [0u32; 11];
    for key in 1..=11_000 {
        counts[usize::try_from(uniform(key, 7, 5, 15) - 5).unwrap()] += 1;
    }
    // About a thousand of each, with a standard deviation of 30.
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
}
