use super::*;
use crate::script::position::Source;
use crate::script::variables::Symbols;
use proptest::prelude::*;

/// Evaluates with `:i` 7, `:d` 2.5, `:n` null, `:b` true, `:t` the text "12", `:bad` the text "x1".
fn evaluate(text: &str) -> Result<Value, String> {
    let mut symbols = Symbols::new();
    let mut variables = Variables::default();
    for (name, value) in [
        ("i", Value::Integer(7)),
        ("d", Value::Double(2.5)),
        ("n", Value::Null),
        ("b", Value::Boolean(true)),
        ("t", Value::Text("12".into())),
        ("bad", Value::Text("x1".into())),
    ] {
        variables.set(symbols.intern(name), value);
    }
    Expression::parse(Source { name: "s", text }, 0..text.len(), &mut symbols)
        .and_then(|expression| expression.evaluate(&variables, &mut Prng::from_seed(42)))
        .map_err(|error| error.to_string())
}

fn integer_of(text: &str) -> i64 {
    match evaluate(text) {
        Ok(Value::Integer(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

fn double_of(text: &str) -> f64 {
    match evaluate(text) {
        Ok(Value::Double(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> String {
    evaluate(text).unwrap_err()
}

#[test]
fn integers_stay_integers() {
    assert_eq!(integer_of("7 / 2"), 3);
    assert_eq!(integer_of("-7 / 2"), -3);
    assert_eq!(integer_of("-7 % 3"), -1);
    assert_eq!(integer_of("7 % -1"), 0);
    assert_eq!(integer_of("-9223372036854775808 % -1"), 0);
    assert_eq!(integer_of("abs(-3) + :i * :t"), 87);
    assert_eq!(integer_of("int(2.5) + int(3.5)"), 6);
    assert_eq!(integer_of("least(3, 1, 2) + greatest(10, 30, 20)"), 31);
}

#[test]
fn one_double_makes_a_double() {
    assert_eq!(double_of("7 / 2.0"), 3.5);
    assert_eq!(double_of(":d * 2"), 5.0);
    assert_eq!(double_of("1.0 / 0"), f64::INFINITY);
    assert_eq!(double_of("abs(-0.5)"), 0.5);
    assert_eq!(double_of("double(3)"), 3.0);
    assert_eq!(double_of("least(1, 0.5)"), 0.5);
    // But a rest is an integer's always.
    assert_eq!(integer_of("7.4 % 4"), 3);
}

#[test]
fn null_gives_null() {
    for text in [":n", ":n + 1", "random(1, :n)", "least(1, null)", "1 / :n", "abs(null)"] {
        assert_eq!(evaluate(text), Ok(Value::Null), "{text}");
    }
    assert_eq!(evaluate(":b"), Ok(Value::Boolean(true)));
}

#[test]
fn errors_are_pgbenchs() {
    assert_eq!(error("9223372036854775807 + 1"), "bigint add out of range (22003)");
    assert_eq!(error("-9223372036854775808 - 1"), "bigint sub out of range (22003)");
    assert_eq!(error("9223372036854775807 * 2"), "bigint mul out of range (22003)");
    assert_eq!(error("-9223372036854775808 / -1"), "bigint div out of range (22003)");
    assert_eq!(error("abs(-9223372036854775808)"), "bigint abs out of range (22003)");
    assert_eq!(error("1 / 0"), "division by zero (22012)");
    assert_eq!(error("1 % 0"), "division by zero (22012)");
    assert_eq!(error(":b + 1"), "cannot coerce boolean to int (22023)");
    assert_eq!(error(":b + 1.0"), "cannot coerce boolean to double (22023)");
    assert_eq!(error("int(1e19)"), "double to int overflow for 10000000000000000000.000000 (22003)");
    assert_eq!(
        error("int(9223372036854775807.0)"),
        "double to int overflow for 9223372036854775808.000000 (22003)"
    );
    assert_eq!(error(":nowhere + 1"), "undefined variable \"nowhere\" (42703)");
    assert_eq!(error(":bad + 1"), "malformed variable \"bad\" value: \"x1\" (22023)");
}

#[test]
fn random_is_pgbenchs() {
    // As in prng.rs: what PostgreSQL 15's pg_prng.c gives for seed 42 and the range 1 to 100000.
    assert_eq!(integer_of("random(1, 100000)"), 54225);
    assert_eq!(integer_of("random(5, 5)"), 5);
    assert_eq!(error("random(2, 1)"), "empty range given to random (22023)");
    assert_eq!(error("random(0, 9223372036854775807)"), "random range is too large (22023)");
    assert!(evaluate("random(1, 9223372036854775807)").is_ok());
}

#[test]
fn the_deepest_expression_fits_the_stack() {
    assert_eq!(integer_of(&format!("1{}", " + 1".repeat(99))), 100);
    assert_eq!(integer_of(&format!("{}1{}", "abs(".repeat(99), ")".repeat(99))), 1);
}

/// A sum, difference or product of constants.
#[derive(Clone, Debug)]
enum Exact {
    Constant(i64),
    Operation(Box<Exact>, char, Box<Exact>),
}

impl Exact {
    /// With no more parentheses than needed.
    fn text(&self) -> String {
        let inside = |exact: &Exact, parenthesised: &[char]| match exact {
            Exact::Operation(_, operator, _) if parenthesised.contains(operator) => {
                format!("({})", exact.text())
            }
            _ => exact.text(),
        };
        match self {
            Exact::Constant(value) => value.to_string(),
            Exact::Operation(left, '*', right) => {
                format!("{}*{}", inside(left, &['+', '-']), inside(right, &['+', '-', '*']))
            }
            Exact::Operation(left, operator, right) => {
                format!("{}{operator}{}", left.text(), inside(right, &['+', '-']))
            }
        }
    }

    /// In 128 bits; the error names the first operation, from left to right, that leaves 64.
    fn value(&self) -> Result<i64, String> {
        let (left, operator, right) = match self {
            Exact::Constant(value) => return Ok(*value),
            Exact::Operation(left, operator, right) => (left.value()?, operator, right.value()?),
        };
        let (left, right) = (i128::from(left), i128::from(right));
        let (result, name) = match operator {
            '+' => (left + right, "add"),
            '-' => (left - right, "sub"),
            _ => (left * right, "mul"),
        };
        i64::try_from(result).map_err(|_| format!("bigint {name} out of range (22003)"))
    }
}

fn exact() -> impl Strategy<Value = Exact> {
    let constant = prop_oneof![-100..100i64, any::<i64>(), Just(i64::MIN), Just(i64::MAX)];
    constant.prop_map(Exact::Constant).prop_recursive(5, 32, 2, |inner| {
        (inner.clone(), prop::sample::select(vec!['+', '-', '*']), inner)
            .prop_map(|(left, operator, right)| Exact::Operation(left.into(), operator, right.into()))
    })
}

proptest! {
    #[test]
    fn constants_compute_as_in_128_bits(exact in exact()) {
        prop_assert_eq!(evaluate(&exact.text()), exact.value().map(Value::Integer), "{}", exact.text());
    }

    #[test]
    fn random_numbers_lie_in_their_range(min in -1000..1000i64, length in 0..1000i64) {
        let drawn = integer_of(&format!("random({min}, {})", min + length));
        prop_assert!((min..=min + length).contains(&drawn));
    }

    #[test]
    fn division_and_rest_belong_together(dividend: i64, divisor: i32) {
        prop_assume!(divisor != 0 && divisor != -1);
        let quotient = integer_of(&format!("{dividend} / {divisor}"));
        let rest = integer_of(&format!("{dividend} % {divisor}"));
        prop_assert_eq!(quotient * i64::from(divisor) + rest, dividend);
    }
}
