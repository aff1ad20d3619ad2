//! Definitions of feeders.

use bench_base::error::UserError;

use super::*;

fn feeder(prefix: &str, order: &str, once: bool, max_rows: i32) -> Result<Feeder, UserError> {
    Feeder::new(prefix.to_owned(), "SELECT 1 AS id".to_owned(), order, once, max_rows)
}

fn message(result: Result<impl std::fmt::Debug, UserError>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn arguments_are_checked() {
    assert!(feeder("", "random", false, 1).is_ok());
    assert!(feeder("ü_1", "sequence", true, i32::MAX).is_ok());
    assert_eq!(message(feeder("1", "random", false, 1)), "invalid prefix: \"1\" (22023)");
    assert_eq!(message(feeder("a b", "random", false, 1)), "invalid prefix: \"a b\" (22023)");
    assert_eq!(
        message(feeder(&"x".repeat(64), "random", false, 1)),
        "prefix must not be longer than 63 bytes (22023)"
    );
    assert_eq!(message(feeder("", "Random", false, 1)), "unrecognized pick: \"Random\" (22023)");
    assert_eq!(
        message(feeder("", "weighted", true, 1)),
        "once cannot be combined with pick \"weighted\" (22023)"
    );
    assert_eq!(message(feeder("", "random", false, 0)), "max_rows must be at least 1, not 0 (22023)");
    assert_eq!(message(feeder("", "random", false, -5)), "max_rows must be at least 1, not -5 (22023)");
}

#[test]
fn columns_become_variables() {
    let variables = |prefix: &str, order: &str, columns: &[&str]| {
        feeder(prefix, order, false, 1).expect("a feeder").variables(columns)
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(variables("c_", "random", &["id", "2"]), Ok(vec![some("c_id"), some("c_2")]));
    assert_eq!(variables("", "random", &["weight"]), Ok(vec![some("weight")]));
    assert_eq!(variables("c", "weighted", &["id", "weight"]), Ok(vec![some("cid"), None]));
    assert_eq!(
        message(variables("", "random", &["?column?"])),
        "column \"?column?\" of the feeder's query cannot be a variable (22023)"
    );
    assert_eq!(
        message(variables("", "random", &["2"])),
        "column \"2\" of the feeder's query cannot be a variable (22023)"
    );
    assert_eq!(
        message(variables("", "random", &["id", "id"])),
        "column \"id\" of the feeder's query appears twice (22023)"
    );
    assert_eq!(
        message(variables("", "weighted", &["id"])),
        "the query of a weighted feeder has no column \"weight\" (22023)"
    );
    assert_eq!(
        message(variables("", "weighted", &["weight"])),
        "the feeder's query has no column that could be a variable (22023)"
    );
    assert_eq!(
        message(variables("", "random", &[])),
        "the feeder's query has no column that could be a variable (22023)"
    );
}

#[test]
fn columns_are_counted_before_they_are_compared() {
    let names: Vec<String> = (0..60_000).map(|n| format!("column_{n}")).collect();
    let columns: Vec<&str> = names.iter().map(String::as_str).collect();
    let feeder = feeder("", "random", false, 1).expect("a feeder");
    assert_eq!(
        message(feeder.variables(&columns)),
        "a feeder's query must not have more than 1664 columns (54000)"
    );
    assert_eq!(feeder.variables(&columns[..MAX_COLUMNS]).map(|variables| variables.len()), Ok(1664));
    let long = "?".repeat(1_000_000);
    assert!(message(feeder.variables(&[&long])).len() < 200);
}

mod rows {
    use std::sync::atomic::AtomicU64;

    use bench_base::error::UserError;
    use bench_script::{Prng, Symbols, Value, Variables};
    use proptest::prelude::*;

    use super::super::*;

    fn cell() -> impl Strategy<Value = FeederValue> {
        prop_oneof![
            Just(FeederValue::Null),
            any::<bool>().prop_map(FeederValue::Boolean),
            any::<i64>().prop_map(FeederValue::Integer),
            // As many digits as their text has.
            any::<i32>().prop_map(|eighths| FeederValue::Double(f64::from(eighths) / 8.0)),
            any::<String>().prop_map(|text| FeederValue::Text(text.into())),
        ]
    }

    fn value(cell: &FeederValue) -> Value {
        match cell {
            FeederValue::Null => Value::Null,
            FeederValue::Boolean(value) => Value::Boolean(*value),
            FeederValue::Integer(value) => Value::Integer(*value),
            FeederValue::Double(value) => Value::Double(*value),
            FeederValue::Text(text) => Value::Text((&**text).into()),
        }
    }

    fn feeder(pick: Pick, once: bool, max_rows: i32) -> Feeder {
        Feeder::new(String::new(), "q".into(), pick.as_str(), once, max_rows).expect("a feeder")
    }

    /// One column `n`, with the numbers from 0 on, packed as script 0.
    fn numbers(feeder: &Feeder, rows: i64) -> Result<Vec<u8>, UserError> {
        let mut collector = Collector::new(feeder, &["n"], 7, MAX_BYTES)?;
        for n in 0..rows {
            if let Some(place) = collector.place()? {
                collector.put_cells(place, vec![FeederValue::Integer(n)])?;
            }
        }
        let mut bytes = Vec::new();
        collector.pack(0, &mut bytes)?;
        Ok(bytes)
    }

    fn kept(bytes: &[u8]) -> Vec<i64> {
        let rows = &unpack(bytes).expect("rows")[0];
        let number = |row| if let Value::Integer(n) = rows.value(row, 0) { n } else { panic!("no number") };
        (0..rows.count()).map(number).collect()
    }

    fn drawn(bytes: &[u8], taken: &AtomicU64, stride: Stride, count: usize) -> Vec<Option<u32>> {
        let rows = unpack(bytes).expect("rows").remove(0);
        let source = RowSource::new(rows, taken, stride, |_| None);
        let mut random = Prng::from_seed(3);
        (0..count).map(|_| source.draw(&mut random)).collect()
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read(
            rows in prop::collection::vec(prop::collection::vec(cell(), 3), 1..20),
            script in 0..5_u32,
        ) {
            let feeder = feeder(Pick::Random, false, 100);
            let mut bytes = Vec::new();
            for _ in 0..2 {
                let mut collector = Collector::new(&feeder, &["a", "bü", "c"], 1, MAX_BYTES).expect("columns");
                for row in &rows {
                    let place = collector.place().expect("room").expect("kept");
                    collector.put_cells(place, row.clone()).expect("room");
                }
                collector.pack(script, &mut bytes).expect("rows");
            }
            let all = unpack(&bytes).expect("feeders");
            prop_assert_eq!(all.len(), 2);
            for packed in &all {
                prop_assert_eq!(packed.script, script as usize);
                prop_assert_eq!(&packed.variables, &["a", "bü", "c"]);
                prop_assert_eq!(packed.count() as usize, rows.len());
                for (at, row) in rows.iter().enumerate() {
                    for (column, cell) in row.iter().enumerate() {
                        prop_assert_eq!(packed.value(at as u32, column), value(cell));
                    }
                }
            }
        }

        #[test]
        fn any_bytes_are_read_without_harm(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            weighted in any::<bool>(),
            flips in prop::collection::vec((0..1000_usize, any::<u8>()), 0..8),
        ) {
            let look = |bytes: &[u8]| {
                for rows in unpack(bytes).unwrap_or_default() {
                    for row in [0, rows.count() - 1] {
                        (0..rows.variables.len()).for_each(|column| drop(rows.value(row, column)));
                    }
                    let count = rows.count();
                    let taken = AtomicU64::new(0);
                    let row = RowSource::new(rows, &taken, Stride::WHOLE, |_| None).draw(&mut Prng::from_seed(1));
                    assert!(row.is_none_or(|row| row < count));
                }
            };
            look(&bytes);
            // And what was packed, damaged.
            let pick = if weighted { Pick::Weighted } else { Pick::Random };
            let feeder = feeder(pick, false, 100);
            let mut collector = Collector::new(&feeder, &["t", "weight"], 1, MAX_BYTES).expect("columns");
            for n in 1..5 {
                let place = collector.place().expect("room").expect("kept");
                collector.put_cells(place, vec![FeederValue::Text("ü".into()), FeederValue::Integer(n)]).expect("room");
            }
            bytes.clear();
            collector.pack(0, &mut bytes).expect("rows");
            let length = bytes.len();
            flips.iter().for_each(|(at, byte)| bytes[at % length] = *byte);
            look(&bytes);
        }

        #[test]
        fn a_literal_is_one_token_under_either_setting(text in any::<String>()) {
            let literal = Value::Text(text.as_str().into()).to_literal();
            let inside = literal.strip_prefix(" E'").or_else(|| literal.strip_prefix(" '"));
            let inside = inside.and_then(|rest| rest.strip_suffix("' ")).expect("quotes").to_owned();
            prop_assert_eq!(literal.starts_with(" E'"), text.contains('\\'));
            // As the server reads it: with escapes, or without a backslash.
            let mut read = String::new();
            let mut characters = inside.chars();
            while let Some(character) = characters.next() {
                if matches!(character, '\'' | '\\') {
                    prop_assert_eq!(characters.next(), Some(character));
                }
                read.push(character);
            }
            prop_assert_eq!(read, text);
        }
    }

    #[test]
    fn a_sequence_takes_each_row_once_over_all_parts() {
        let bytes = numbers(&feeder(Pick::Sequence, true, 100), 7).expect("rows");
        let mut rows = Vec::new();
        for first in 0..3 {
            let taken = AtomicU64::new(0);
            rows.extend(drawn(&bytes, &taken, Stride { first, of: 3 }, 9).into_iter().flatten());
        }
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6]);
        let again = numbers(&feeder(Pick::Sequence, false, 100), 3).expect("rows");
        let taken = AtomicU64::new(0);
        let some: Vec<Option<u32>> = [0, 1, 2, 0, 1].into_iter().map(Some).collect();
        assert_eq!(drawn(&again, &taken, Stride::WHOLE, 5), some);
        assert_eq!(drawn(&again, &taken, Stride::WHOLE, 1), [Some(2)], "where the others have come to");
    }

    /// Pearson's statistic.
    fn chi_square(observed: &[f64], expected: &[f64]) -> f64 {
        observed.iter().zip(expected).map(|(o, e)| (o - e).powi(2) / e).sum()
    }

    #[test]
    fn a_weighted_feeder_draws_by_the_weights() {
        let feeder = feeder(Pick::Weighted, false, 100);
        let weights = [1.0, 2.0, 3.5, 0.5, 10.0, 3.0];
        let mut collector = Collector::new(&feeder, &["n", "weight"], 7, MAX_BYTES).expect("columns");
        for (n, weight) in weights.iter().enumerate() {
            let place = collector.place().expect("room").expect("kept");
            collector
                .put_cells(place, vec![FeederValue::Integer(n as i64), FeederValue::Double(*weight)])
                .expect("weights");
        }
        let mut bytes = Vec::new();
        collector.pack(0, &mut bytes).expect("rows");
        let count = 100_000;
        let mut observed = [0.0; 6];
        for row in drawn(&bytes, &AtomicU64::new(0), Stride::WHOLE, count).into_iter().flatten() {
            observed[row as usize] += 1.0;
        }
        let expected = weights.map(|weight| weight / 20.0 * count as f64);
        // The 99.9th percentile with 5 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.4).
        assert!(chi_square(&observed, &expected) < 20.515, "{observed:?}");
    }

    #[test]
    fn a_reservoir_keeps_each_row_as_likely() {
        let feeder = feeder(Pick::Random, false, 20);
        let mut observed = [0.0; 10];
        for seed in 0..2000 {
            let mut collector = Collector::new(&feeder, &["n"], seed, MAX_BYTES).expect("columns");
            for n in 0..100 {
                if let Some(place) = collector.place().expect("no sequence") {
                    collector.put_cells(place, vec![FeederValue::Integer(n)]).expect("room");
                }
            }
            let mut bytes = Vec::new();
            assert_eq!(collector.pack(0, &mut bytes).expect("rows"), 20);
            let mut rows = kept(&bytes);
            rows.iter().for_each(|n| observed[*n as usize / 10] += 1.0);
            rows.sort_unstable();
            rows.dedup();
            assert_eq!(rows.len(), 20, "no row twice");
        }
        // The 99.9th percentile with 9 degrees of freedom.
        assert!(chi_square(&observed, &[4000.0; 10]) < 27.877, "{observed:?}");
    }

    #[test]
    fn limits_are_told() {
        let message = |result: Result<Vec<u8>, UserError>| result.expect_err("an error").to_string();
        assert_eq!(
            message(numbers(&feeder(Pick::Sequence, false, 5), 6)),
            "a feeder in sequence has more than 5 rows (54000)"
        );
        assert_eq!(kept(&numbers(&feeder(Pick::Sequence, false, 5), 5).expect("rows")), [0, 1, 2, 3, 4]);
        assert_eq!(
            message(numbers(&feeder(Pick::Random, false, 5), 0)),
            "a feeder's query returned no rows (55000)"
        );
        let small = feeder(Pick::Random, false, 5);
        let mut collector = Collector::new(&small, &["t"], 7, 60).expect("columns");
        collector.put_cells(0, vec![FeederValue::Text("0123456789".into())]).expect("50 bytes");
        let error =
            collector.put_cells(1, vec![FeederValue::Text("0123456789".into())]).expect_err("no room");
        assert_eq!(error.to_string(), "the rows of a run's feeders must not take more than 256 MB (54000)");
        // Before it is copied.
        let text = "x".repeat(61);
        let mut collector = Collector::new(&small, &["t"], 7, 60).expect("columns");
        let error =
            collector.put(0, std::iter::once(Ok((ValueKind::Text, Some(&*text))))).expect_err("no room");
        assert_eq!(error.sqlstate, "54000");
        assert_eq!(collector.place(), Ok(Some(0)), "nothing is kept");
        let weighted = feeder(Pick::Weighted, false, 5);
        for (cell, shown) in [
            (FeederValue::Null, "null"),
            (FeederValue::Integer(0), "0"),
            (FeederValue::Double(-1.5), "-1.5"),
            (FeederValue::Text("NaN".into()), "\"NaN\""),
            (FeederValue::Boolean(true), "a boolean"),
        ] {
            let mut collector = Collector::new(&weighted, &["n", "weight"], 7, MAX_BYTES).expect("columns");
            let error = collector.put_cells(0, vec![FeederValue::Null, cell]).expect_err("no weight");
            assert!(error.message.ends_with(&format!("above 0, not {shown}")), "{}", error.message);
        }
    }

    #[test]
    fn types_are_those_of_sql() {
        assert_eq!(ValueKind::of(16).cell(Some("t")), Ok(FeederValue::Boolean(true)));
        assert_eq!(ValueKind::of(16).cell(Some("f")), Ok(FeederValue::Boolean(false)));
        assert_eq!(ValueKind::of(20).cell(Some("-9223372036854775808")), Ok(FeederValue::Integer(i64::MIN)));
        assert_eq!(ValueKind::of(701).cell(Some("0.1")), Ok(FeederValue::Double(0.1)));
        assert_eq!(ValueKind::of(701).cell(Some("1e+300")), Ok(FeederValue::Double(1e300)));
        assert_eq!(ValueKind::of(701).cell(Some("-Infinity")), Ok(FeederValue::Double(f64::NEG_INFINITY)));
        assert_eq!(ValueKind::of(1700).cell(Some("1.50")), Ok(FeederValue::Text("1.50".into())));
        assert_eq!(ValueKind::of(25).cell(Some("")), Ok(FeederValue::Text("".into())));
        assert_eq!(ValueKind::of(1007).cell(Some("{1,NULL}")), Ok(FeederValue::Text("{1,NULL}".into())));
        assert_eq!(ValueKind::of(23).cell(None), Ok(FeederValue::Null));
    }

    #[test]
    fn only_what_is_read_is_set() {
        let bytes = numbers(&feeder(Pick::Random, false, 5), 1).expect("rows");
        let mut symbols = Symbols::new();
        let n = symbols.intern("n");
        let taken = AtomicU64::new(0);
        let source = |symbols: &Symbols| {
            RowSource::new(unpack(&bytes).expect("rows").remove(0), &taken, Stride::WHOLE, |name| {
                symbols.lookup(name)
            })
        };
        let mut variables = Variables::new(1);
        source(&Symbols::new()).set(0, &mut variables);
        assert_eq!(variables.get(n), None);
        source(&symbols).set(0, &mut variables);
        assert_eq!(variables.get(n), Some(&Value::Integer(0)));
    }
}
