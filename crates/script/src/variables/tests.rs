use std::ffi::{CStr, CString, c_char, c_int};

use proptest::prelude::*;

use crate::variables::*;

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

unsafe extern "C" {
    fn snprintf(buffer: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
    fn strtod(text: *const c_char, end: *mut *mut c_char) -> f64;
}

/// What C's printf shows of a number.
fn printf(format: &CStr, value: f64) -> String {
    let mut buffer = [0_u8; 512];
    // SAFETY: the buffer is as long as it is said to be, and the formats below take one double.
    let length = unsafe { snprintf(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), value) };
    String::from_utf8_lossy(&buffer[..length as usize]).into_owned()
}

/// What C's strtod makes of all of a text.
fn from_c(text: &str) -> Option<f64> {
    let text = CString::new(text).unwrap();
    let mut end = std::ptr::null_mut();
    // SAFETY: the text ends with a zero byte, and `end` is set to a place in it.
    let (value, rest) = unsafe {
        let value = strtod(text.as_ptr(), &mut end);
        (value, CStr::from_ptr(end))
    };
    rest.is_empty().then_some(value)
}

#[test]
fn doubles_are_shown_as_pgbench_shows_them() {
    for (value, shown) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (1.0 / 3.0, "0.333333333333333"),
        (1e15, "1e+15"),
        (999999999999999.9, "1e+15"),
        (99999999999999.9, "99999999999999.9"),
        (100000000000000.5, "100000000000000"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-1.5e-7, "-1.5e-07"),
        (123456789012345678.0, "1.23456789012346e+17"),
        (f64::MAX, "1.79769313486232e+308"),
        (5e-324, "4.94065645841247e-324"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
        (f64::NAN, "NaN"),
        (-f64::NAN, "NaN"),
    ] {
        assert_eq!(format_double(value), shown);
    }
    assert_eq!(format_fixed(1e19), "10000000000000000000.000000");
    assert_eq!(format_fixed(-0.5), "-0.500000");
    assert_eq!(format_fixed(f64::NEG_INFINITY), "-Infinity");
}

#[test]
fn texts_of_doubles() {
    for (text, value) in [
        ("1.5", 1.5),
        ("-1.", -1.0),
        ("+.5e1", 5.0),
        ("-Infinity", f64::NEG_INFINITY),
        ("INF", f64::INFINITY),
        ("2.2250738585072014e-308", f64::MIN_POSITIVE),
        ("0x10", 16.0),
        ("-0X.8p1", -1.0),
        ("0xA.8p-2", 2.625),
        ("0x1p1023", 8.98846567431158e307),
        ("0x0p99999999999999999999", 0.0),
    ] {
        assert_eq!(parse_double(text), Some(value), "{text}");
    }
    // Ties and what lies just above them, beyond the digits that fit.
    for text in
        ["0x1.00000000000008", "0x1.00000000000018", "0x1.00000000000008000000001", "0x1.00000000000008p-9"]
    {
        assert_eq!(parse_double(text), from_c(text), "{text}");
    }
    assert!(parse_double("nan").is_some_and(f64::is_nan));
    for text in [
        "",
        ".",
        "-",
        "+-1",
        "--1",
        "1e",
        "1 ",
        "1_0",
        "1e309",
        "1e-310",
        "0x",
        "0x.",
        "0x.p1",
        "0x1p",
        "0x1p+",
        "0x1g",
        "0x1p1024",
        "0x1p-1070",
        "0x1p99999999999999999999",
        "0x1p-99999999999999999999",
        "0x1.2.3",
        "0x+1",
        "0x1p+-1",
    ] {
        assert_eq!(parse_double(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn shown_as_by_c(bits: u64, digits in 0..1u64 << 54, places in -3..3i32, exponent in -20..20i32) {
        let decimal = digits as f64 * 10_f64.powi(exponent);
        let half = (digits >> 3) as f64 * 0.5_f64.powi(places);
        for value in [f64::from_bits(bits), decimal, half].into_iter().filter(|value| value.is_finite()) {
            prop_assert_eq!(format_double(value), printf(c"%.15g", value));
            prop_assert_eq!(format_fixed(value), printf(c"%f", value));
        }
    }

    #[test]
    fn read_as_by_c(
        decimal in "[-+]?[0-9]{0,20}(\\.[0-9]{0,20})?(e[-+]?[0-9]{1,2})?",
        hexadecimal in "[-+]?0[xX][0-9a-f]{0,20}(\\.[0-9a-f]{0,20})?(p[-+]?[0-9]{1,2})?",
    ) {
        for text in [decimal, hexadecimal].iter().filter(|text| !text.is_empty()) {
            prop_assert_eq!(parse_double(text), from_c(text), "{}", text);
        }
    }
}
