use std::sync::atomic::AtomicU64;

use super::*;
use crate::feeder::{Collector, Feeder, FeederValue, MAX_BYTES, RowSource, Stride, unpack};

/// Rows of one column `n`: the numbers below `count`, in sequence.
fn packed(once: bool, count: i64) -> Vec<u8> {
    let feeder = Feeder::new(String::new(), "q".into(), "sequence", once, 100).expect("a feeder");
    let mut collector = Collector::new(&feeder, &["n"], 1, MAX_BYTES).expect("columns");
    for n in 0..count {
        let place = collector.place().expect("room").expect("kept");
        collector.put_cells(place, vec![FeederValue::Integer(n)]).expect("room");
    }
    let mut bytes = Vec::new();
    collector.pack(0, &mut bytes).expect("rows");
    bytes
}

fn fed<'a>(script: &str, max_tries: u64, bytes: &'a [u8], taken: &'a AtomicU64) -> ClientWorkload<'a> {
    let ClientWorkload { mut programs, is_deck, symbols, max_tries } = workload(&[script], max_tries);
    let rows = unpack(bytes).expect("rows").remove(0);
    programs[0].feeds.push(RowSource::new(rows, taken, Stride::WHOLE, |name| symbols.lookup(name)));
    ClientWorkload { programs, is_deck, symbols, max_tries }
}

/// The value of `n` at each execution, while these answers last.
fn values(
    workload: &ClientWorkload,
    client: &mut Client,
    recorder: &mut TestRecorder,
    answers: &[Answer],
) -> Vec<Value> {
    let n = workload.symbols.lookup("n").expect("n is read");
    let mut answers = answers.iter();
    let mut values = Vec::new();
    let mut step = client.start(recorder);
    loop {
        step = match step {
            Step::Between => client.next(workload, recorder),
            Step::Execute { .. } => {
                let Some(answer) = answers.next() else { return values };
                values.extend(client.variables.get(n).cloned());
                let error = |sqlstate: &str| SqlError::new(sqlstate, "refused");
                client.executed(workload, recorder, answer.map_err(error))
            }
            Step::Retry => client.retry(workload, recorder),
            Step::End(_) => return values,
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn each_transaction_takes_the_next_row() {
    let (bytes, taken) = (packed(false, 2), AtomicU64::new(0));
    let workload = fed("SELECT :n;", 1, &bytes, &taken);
    let mut client = Client::new(&workload, beginning(&workload, 5), None, 0);
    let numbers = values(&workload, &mut client, &mut recorder(), &[Ok(false); 9]);
    assert_eq!(numbers, [0, 1, 0, 1, 0].map(Value::Integer));
}

#[test]
fn another_try_has_the_same_row_whatever_the_script_has_made_of_it() {
    let (bytes, taken) = (packed(false, 9), AtomicU64::new(0));
    let workload = fed("SELECT :n;\n\\set n :n + 100\nSELECT :n;", 3, &bytes, &taken);
    let mut client = Client::new(&workload, beginning(&workload, 2), None, 0);
    let answers =
        [Ok(false), Err("40001"), Ok(false), Err("40P01"), Ok(false), Ok(false), Ok(false), Ok(false)];
    let numbers = values(&workload, &mut client, &mut recorder(), &answers);
    assert_eq!(numbers, [0, 100, 0, 100, 0, 100, 1, 101].map(Value::Integer));
}

#[test]
fn a_client_ends_where_each_row_has_been_taken() {
    let (bytes, taken) = (packed(true, 3), AtomicU64::new(0));
    let workload = fed("SELECT :n;", 1, &bytes, &taken);
    let new = || Client::new(&workload, beginning(&workload, u64::MAX), None, 0);
    let (mut one, mut other) = (new(), new());
    let mut recorder = recorder();
    assert_eq!(values(&workload, &mut one, &mut recorder, &[Ok(false); 9]).len(), 3);
    assert_eq!(values(&workload, &mut other, &mut recorder, &[Ok(false); 9]).len(), 0, "over all clients");
    assert_eq!(recorder.transactions.len(), 3);
    assert!(recorder.errors.is_empty());
}
