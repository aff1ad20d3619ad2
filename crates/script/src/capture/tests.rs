use crate::capture::*;

/// The body of a RowDescription of text columns.
fn description(names: &[&str]) -> Vec<u8> {
    let mut body = (names.len() as u16).to_be_bytes().to_vec();
    for name in names {
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&[0; 19]);
    }
    body
}

/// The body of a DataRow.
fn row(values: &[Option<&str>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
    body
}

/// A query's columns and rows.
type Query<'a> = (&'a [&'a str], &'a [&'a [Option<&'a str>]]);

/// Variables by name after a command whose queries each had these columns and rows.
fn kept(every_query: bool, queries: &[Query]) -> Result<Vec<(String, String)>, SqlError> {
    let mut captured = CapturedRows::new();
    // What another command left.
    captured.next_query();
    captured.take(b'T', &description(&["old"]));
    captured.take(b'D', &row(&[Some("1")]));
    captured.clear();
    for (columns, rows) in queries {
        captured.next_query();
        captured.take(b'T', &description(columns));
        rows.iter().for_each(|values| captured.take(b'D', &row(values)));
    }
    let mut symbols = Symbols::new();
    let mut variables = Variables::new(0);
    let decode = |text: &[u8]| Ok(String::from_utf8_lossy(text).into_owned());
    let capture = ResultCapture { prefix: "p_".into(), every_query };
    captured.keep(&capture, decode, &mut symbols, &mut variables)?;
    let ids = ["p_a", "p_b", "p_old"].map(|name| (name.to_owned(), symbols.lookup(name)));
    let value = |id| variables.get(id).map(|value| value.to_text().into_owned());
    Ok(ids.into_iter().filter_map(|(name, id)| Some((name, value(id?)?))).collect())
}

fn of(values: &[(&str, &str)]) -> Vec<(String, String)> {
    values.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn gset_takes_the_last_querys_row() {
    let queries: [Query; 2] = [(&["a"], &[&[Some("1")]]), (&["a", "b"], &[&[Some("2"), None]])];
    assert_eq!(kept(false, &queries), Ok(of(&[("p_a", "2"), ("p_b", "")])));
}

#[test]
fn gset_wants_one_row() {
    for rows in [&[] as &[&[Option<&str>]], &[&[Some("1")], &[Some("2")]]] {
        let error = kept(false, &[(&["a"], rows)]).unwrap_err();
        assert!(error.is(sqlstate::CARDINALITY_VIOLATION), "{error:?}");
    }
}

#[test]
fn aset_takes_the_last_row_of_each_query_that_has_one() {
    let queries: [Query; 3] =
        [(&["a"], &[&[Some("1")], &[Some("2")]]), (&["a"], &[]), (&["b"], &[&[Some("é")]])];
    assert_eq!(kept(true, &queries), Ok(of(&[("p_a", "2"), ("p_b", "é")])));
}

#[test]
fn columns_without_a_variables_name_are_an_error() {
    let error = kept(false, &[(&["?column?"], &[&[Some("1")]])]).unwrap_err();
    assert_eq!(error.message, "error storing into variable p_?column?");
}

#[test]
fn cut_messages_have_fewer_columns() {
    let mut captured = CapturedRows::new();
    captured.next_query();
    captured.take(b'T', &description(&["a", "b"]));
    let whole = row(&[Some("1"), Some("2")]);
    for length in 0..whole.len() {
        captured.take(b'D', &whole[..length]);
        assert!(captured.queries[0].columns().count() <= 2);
    }
}

#[test]
fn what_variables_hold_has_a_limit() {
    let captured = |name: &str, length: usize| {
        let mut captured = CapturedRows::new();
        captured.next_query();
        captured.take(b'T', &description(&[name]));
        captured.take(b'D', &row(&[Some(&"x".repeat(length))]));
        captured
    };
    let capture = ResultCapture { prefix: String::new(), every_query: false };
    let decode = |text: &[u8]| Ok(String::from_utf8_lossy(text).into_owned());
    let (mut symbols, mut variables) = (Symbols::new(), Variables::new(0));
    let mut keep =
        |name: &str, length| captured(name, length).keep(&capture, decode, &mut symbols, &mut variables);
    // What is replaced does not count.
    for _ in 0..5 {
        assert_eq!(keep("a", 6 << 20), Ok(()));
    }
    assert_eq!(keep("b", 3 << 20).unwrap_err().message, "the variables of a client hold too much");
    assert_eq!(keep("a", 1), Ok(()));
    for number in 0..crate::variables::MAX_NAMES - 2 {
        assert_eq!(keep(&format!("v{number}"), 1), Ok(()), "{number}");
    }
    let error = keep("w", 1).unwrap_err();
    assert_eq!(error.message, "the scripts have too many variables");
    assert!(error.is(sqlstate::PROGRAM_LIMIT_EXCEEDED));
    assert_eq!(keep("b", 1), Ok(()));
}
