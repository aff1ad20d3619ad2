use super::*;

fn meaning(text: &str) -> Result<Scalar, String> {
    scalar_of("x", &Value::Text(text.into()))
        .map_err(|error| format!("{}: {}", error.sqlstate, error.message))
}

#[test]
fn symbols_number_names_in_order() {
    let mut symbols = Symbols::new();
    let (aid, bid) = (symbols.intern("aid"), symbols.intern("bid"));
    assert_eq!((aid.index(), bid.index(), symbols.intern("aid")), (0, 1, aid));
    assert_eq!((symbols.len(), symbols.name(bid)), (2, "bid"));
    assert_eq!((symbols.lookup("bid"), symbols.lookup("tid")), (Some(bid), None));
}

#[test]
fn variables_are_unset_until_they_are_set() {
    let mut symbols = Symbols::new();
    let first = symbols.intern("a");
    let mut variables = Variables::new(symbols.len());
    assert_eq!(variables.get(first), None);
    variables.set(first, Value::Null);
    assert_eq!(variables.get(first), Some(&Value::Null));
    let later = symbols.intern("b");
    assert_eq!(variables.get(later), None);
    variables.set(later, Value::Integer(2));
    assert_eq!(variables.get(later), Some(&Value::Integer(2)));
}

#[test]
fn names_are_pgbenchs() {
    for name in ["a", "_", "A1_", "é", "größe2"] {
        assert!(is_variable_name(name), "{name}");
    }
    for name in ["", "1a", "a-b", "a b", "a$"] {
        assert!(!is_variable_name(name), "{name}");
    }
}

#[test]
fn texts_mean_what_they_mean_to_pgbench() {
    for text in ["null", "NULL"] {
        assert_eq!(meaning(text), Ok(Scalar::Null));
    }
    for text in ["t", "TRUE", "y", "Yes", "on"] {
        assert_eq!(meaning(text), Ok(Scalar::Boolean(true)), "{text}");
    }
    for text in ["f", "fals", "n", "no", "of", "OFF"] {
        assert_eq!(meaning(text), Ok(Scalar::Boolean(false)), "{text}");
    }
    assert_eq!(meaning("1"), Ok(Scalar::Integer(1)));
    assert_eq!(meaning(" -9223372036854775808"), Ok(Scalar::Integer(i64::MIN)));
    assert_eq!(meaning("+7"), Ok(Scalar::Integer(7)));
    assert_eq!(meaning("1.5"), Ok(Scalar::Double(1.5)));
    assert_eq!(meaning("-1e3"), Ok(Scalar::Double(-1000.0)));
    assert_eq!(meaning("inf"), Ok(Scalar::Double(f64::INFINITY)));
    assert_eq!(meaning("0e-999"), Ok(Scalar::Double(0.0)));
    assert_eq!(meaning("0x10"), Ok(Scalar::Double(16.0)));
}

#[test]
fn other_texts_are_malformed() {
    for text in ["", "o", "truest", "abc", "5 ", "1e999", "1e-999", "0x", "--1", " true", "ü"] {
        assert_eq!(meaning(text), Err(format!("22023: malformed variable \"x\" value: \"{text}\"")));
    }
    assert_eq!(
        meaning("9223372036854775808"),
        Err("22003: value \"9223372036854775808\" is out of range for type bigint".into())
    );
    for text in ["-", "+", " "] {
        assert_eq!(meaning(text), Err(format!("22023: invalid input syntax for type bigint: \"{text}\"")));
    }
}

#[test]
fn values_as_texts() {
    let text = |value: Value| value.to_text().into_owned();
    assert_eq!(text(Value::Null), "NULL");
    assert_eq!((text(Value::Boolean(true)), text(Value::Boolean(false))), ("true".into(), "false".into()));
    assert_eq!(text(Value::Integer(i64::MIN)), "-9223372036854775808");
    assert_eq!(text(Value::Double(1.0 / 3.0)), "0.333333333333333");
    assert_eq!(text(Value::Text(" as it is ".into())), " as it is ");
}
