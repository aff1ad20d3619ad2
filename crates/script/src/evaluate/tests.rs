use proptest::prelude::*;

use super::*;
use crate::position::ScriptText;
use crate::variables::Symbols;

mod pgbench;

/// Evaluates with `:i` 7, `:d` 2.5, `:n` null, `:b` true, `:t` the text "12", `:bad` the text "x1" and
/// `:default_seed` 5432.
fn evaluate(text: &str) -> Result<Value, String> {
    evaluate_with_debug(text, &mut |_| {})
}

fn evaluate_with_debug(text: &str, debug: &mut dyn FnMut(&str)) -> Result<Value, String> {
    let mut symbols = Symbols::new();
    let mut variables = Variables::default();
    for (name, value) in [
        ("i", Value::Integer(7)),
        ("d", Value::Double(2.5)),
        ("n", Value::Null),
        ("b", Value::Boolean(true)),
        ("t", Value::Text("12".into())),
        ("bad", Value::Text("x1".into())),
        ("default_seed", Value::Integer(5432)),
    ] {
        variables.set(symbols.intern(name), value);
    }
    Expression::parse(ScriptText { name: "s", text }, 0..text.len(), &mut symbols)
        .and_then(|expression| expression.evaluate(&variables, &mut Prng::from_seed(42), debug))
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

fn boolean_of(text: &str) -> bool {
    match evaluate(text) {
        Ok(Value::Boolean(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
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
    assert!(double_of("abs(0.0 * -1)").is_sign_negative());
}

#[test]
fn bits_are_integers() {
    assert_eq!(integer_of("12 & 10 | 1"), 9);
    assert_eq!(integer_of("12 # 10"), 6);
    assert_eq!(integer_of("~ 0"), -1);
    assert_eq!(integer_of("5.4 & 7"), 5);
    assert_eq!(integer_of("1 << 62"), 1 << 62);
    assert_eq!(integer_of("-8 >> 1"), -4);
    // What pgbench shows for distances outside of 0 to 63.
    assert_eq!(integer_of("1 << 64"), 1);
    assert_eq!(integer_of("1 << -1"), i64::MIN);
    assert_eq!(integer_of("-1 >> 70"), -1);
    assert_eq!(error("1 & true"), "cannot coerce boolean to int (22023)");
}

#[test]
fn comparisons() {
    assert!(boolean_of("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 <> 2 and 1 != 2 and 1 = 1.0"));
    assert!(!boolean_of("2 < 1 or 3 <= 2 or 2 > 3 or 2 >= 3 or 1 <> 1 or 1 = 1.5"));
    // As integers, without a loss of digits.
    assert!(boolean_of("9223372036854775807 > 9223372036854775806"));
    let not_a_number = "ln(-1)";
    assert!(boolean_of(&format!("{not_a_number} <> {not_a_number}")));
    assert!(!boolean_of(&format!("{not_a_number} >= 1")));
    // Not even booleans with each other.
    assert_eq!(error("true = true"), "cannot coerce boolean to int (22023)");
    assert_eq!(error("true < 1.5"), "cannot coerce boolean to double (22023)");
}

#[test]
fn functions_of_doubles() {
    assert_eq!(double_of("sqrt(2.25)"), 1.5);
    assert_eq!(double_of("exp(0)"), 1.0);
    assert_eq!(double_of("ln(1)"), 0.0);
    assert_eq!(double_of("ln(0)"), f64::NEG_INFINITY);
    assert!(double_of("sqrt(-1)").is_nan());
    assert_eq!(double_of("power(2, 0.5)"), std::f64::consts::SQRT_2);
    assert_eq!(double_of("least(ln(-1), 1)"), 1.0);
    assert!(double_of("greatest(1, ln(-1))").is_nan());
    assert_eq!(double_of("greatest(3, 1, 2.5, 2)"), 3.0);
}

#[test]
fn what_is_decided_is_not_evaluated() {
    let fails = "1 / 0 = 1";
    assert!(!boolean_of(&format!("false AND {fails}")));
    assert!(!boolean_of(&format!("true AND false AND {fails} AND {fails}")));
    assert!(boolean_of(&format!("true OR {fails}")));
    assert!(boolean_of(&format!("false AND {fails} OR true OR {fails}")));
    assert_eq!(evaluate(&format!("null AND {fails}")), Ok(Value::Null));
    assert_eq!(evaluate(&format!("null OR {fails}")), Ok(Value::Null));
    assert_eq!(
        integer_of(&format!("CASE WHEN false THEN 1 / 0 WHEN 2 THEN 3 WHEN {fails} THEN 1 / 0 END")),
        3
    );
    // Unlike SQL's, the operators look at the left operand first and are content if that is null.
    assert_eq!(evaluate("null OR true"), Ok(Value::Null));
    assert_eq!(evaluate("true AND null"), Ok(Value::Null));
    assert_eq!(error("true AND 1"), "cannot coerce int to boolean (22023)");
    assert_eq!(error("0 OR true"), "cannot coerce int to boolean (22023)");
}

#[test]
fn conditions_take_numbers() {
    let is_true = |text: &str| {
        let mut symbols = Symbols::new();
        let expression =
            Expression::parse(ScriptText { name: "s", text }, 0..text.len(), &mut symbols).unwrap();
        expression
            .is_true(&Variables::default(), &mut Prng::from_seed(42), &mut |_| {})
            .map_err(|e| e.to_string())
    };
    for text in ["true", "1", "-1", "0.1", "ln(-1)", "null is null"] {
        assert_eq!(is_true(text), Ok(true), "{text}");
        assert_eq!(integer_of(&format!("CASE WHEN {text} THEN 1 ELSE 2 END")), 1);
    }
    for text in ["false", "0", "0.0", "null"] {
        assert_eq!(is_true(text), Ok(false), "{text}");
        assert_eq!(integer_of(&format!("CASE WHEN {text} THEN 1 ELSE 2 END")), 2);
    }
    assert_eq!(evaluate("CASE WHEN 0 THEN 1 END"), Ok(Value::Null));
    assert_eq!(is_true("1 / 0"), Err("division by zero (22012)".to_owned()));
}

#[test]
fn is_knows_only_null_and_booleans() {
    assert!(boolean_of("null is null and 1 is not null and :n isnull and :i notnull"));
    assert!(boolean_of("true is true and false is false and true is not false"));
    assert!(boolean_of("null is not true and 1 is not true and 0 is not false and 0.0 is not null"));
    assert!(!boolean_of("1 is null is null"));
}

#[test]
fn debug_shows_its_argument_and_gives_it() {
    let mut shown = Vec::new();
    let text = "debug(debug(1 + 2) / 2.0) + CASE WHEN debug(null) THEN 1 WHEN debug(true) THEN debug(4) END";
    let value = evaluate_with_debug(text, &mut |text| shown.push(text.to_owned()));
    assert_eq!(value, Ok(Value::Double(5.5)));
    assert_eq!(shown, ["int 3", "double 1.5", "null", "boolean true", "int 4"]);
}

#[test]
fn operands_are_evaluated_in_pgbenchs_order() {
    for (text, order) in [
        ("debug(1) - debug(2) - debug(3)", ["int 1", "int 2", "int 3"]),
        ("debug(1) - debug(2) * debug(3)", ["int 1", "int 2", "int 3"]),
        ("permute(debug(1), debug(2), debug(3))", ["int 1", "int 2", "int 3"]),
        // `a > b` is `b < a`.
        ("debug(1) + debug(2) > debug(3)", ["int 3", "int 1", "int 2"]),
        ("debug(1) >= debug(2) + debug(3)", ["int 2", "int 3", "int 1"]),
    ] {
        let mut shown = Vec::new();
        evaluate_with_debug(text, &mut |text| shown.push(text.to_owned())).unwrap();
        assert_eq!(shown, order, "{text}");
    }
}

#[test]
fn null_gives_null() {
    for text in [
        ":n",
        ":n + 1",
        "random(1, :n)",
        "least(1, null)",
        "greatest(1, 2, null)",
        "1 / :n",
        "1 = :n",
        "1 & :n",
        "pow(:n, 1)",
        "abs(null)",
        "not :n",
        "permute(1, 2, :n)",
        "hash(null)",
        // Even where the other argument is of the wrong type.
        "null + true",
    ] {
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
    assert_eq!(error("NOT 0.0"), "cannot coerce double to boolean (22023)");
    assert_eq!(error("ln(TRUE)"), "cannot coerce boolean to double (22023)");
    assert_eq!(error("permute(0, 0)"), "permute size parameter must be greater than zero (22023)");
    assert_eq!(error("int(1.0 / 0)"), "double to int overflow for Infinity (22003)");
    assert_eq!(error("int(ln(-1))"), "double to int overflow for NaN (22003)");
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
    // As in random/tests.rs.
    assert_eq!(integer_of("random_exponential(1, 100000, 2.5)"), 19105);
    assert_eq!(integer_of("random_gaussian(-50000, 50000, 5)"), -10278);
    assert_eq!(integer_of("random_zipfian(1, 100000, 1.07)"), 336);
    assert_eq!(error("random_zipfian(2, 1, 1.07)"), "empty range given to random (22023)");
    assert_eq!(error("random_gaussian(1, 2, true)"), "cannot coerce boolean to double (22023)");
}

#[test]
fn hashes_and_permutations_take_the_default_seed() {
    assert_eq!(integer_of("hash(10)"), -5817877081768721676);
    assert_eq!(integer_of("hash_fnv1a(10)"), -7793829335365542153);
    assert_eq!(integer_of("permute(999, 1000)"), 93);
    assert!(boolean_of("hash(10, 1) <> hash(10)"));
}

#[test]
fn the_deepest_expression_fits_the_stack() {
    // Test threads have a stack of 2 MB.
    assert_eq!(integer_of(&format!("{}1{}", "abs(".repeat(99), ")".repeat(99))), 1);
    assert_eq!(integer_of(&format!("{}1{}", "least(3, 2, ".repeat(99), ")".repeat(99))), 1);
    assert_eq!(integer_of(&format!("{}1{}", "CASE WHEN 1 THEN ".repeat(99), " END".repeat(99))), 1);
    assert_eq!(integer_of(&format!("{}1{}", "permute(0, 1, ".repeat(99), ")".repeat(99))), 0);
    // All strengths of binding between one level and the next.
    let nested = "false OR true AND 3 = 0 | 0 + 1 * CASE WHEN ";
    let error = error(&format!("{}0 / 0{}", nested.repeat(99), " THEN 1 END".repeat(99)));
    assert_eq!(error, "division by zero (22012)");
}

#[test]
fn the_longest_expression_is_evaluated() {
    assert_eq!(integer_of(&format!("0{}", " + 1".repeat(50_000))), 50_000);
    assert!(boolean_of(&format!("1{}", " IS NOT NULL".repeat(50_000))));
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
