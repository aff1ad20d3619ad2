use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Result<Expression, UserError> {
    let mut symbols = Symbols::new();
    Expression::parse(Source { name: "s", text }, 0..text.len(), &mut symbols)
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// The tree with all of its parentheses.
fn shape(text: &str) -> String {
    fn show(node: &Node) -> String {
        match node {
            Node::Constant(scalar) => format!("{scalar:?}"),
            Node::Variable { name, .. } => format!(":{name}"),
            Node::Call { function, arguments } => {
                format!("{function:?}({})", arguments.iter().map(show).collect::<Vec<_>>().join(", "))
            }
        }
    }
    show(&parse(text).unwrap().root)
}

#[test]
fn constants() {
    assert_eq!(shape("42"), "Integer(42)");
    assert_eq!(shape("9223372036854775807"), "Integer(9223372036854775807)");
    assert_eq!(shape("- 9223372036854775808"), "Integer(-9223372036854775808)");
    assert_eq!(shape("1.5"), "Double(1.5)");
    assert_eq!(shape("1."), "Double(1.0)");
    assert_eq!(shape(".5e+1"), "Double(5.0)");
    assert_eq!(shape("2E3"), "Double(2000.0)");
    assert_eq!(shape("NULL"), "Null");
    assert_eq!(shape("True"), "Boolean(true)");
    assert_eq!(shape("false"), "Boolean(false)");
}

#[test]
fn products_bind_stronger_than_sums_and_signs_strongest() {
    assert_eq!(shape("1 + 2 * :a - 3"), "Subtract(Add(Integer(1), Multiply(Integer(2), :a)), Integer(3))");
    assert_eq!(shape("-:a * 2"), "Multiply(Subtract(Integer(0), :a), Integer(2))");
    assert_eq!(shape("8 / 4 % 3"), "Modulo(Divide(Integer(8), Integer(4)), Integer(3))");
    assert_eq!(shape("(1 + 2)*+3"), "Multiply(Add(Integer(1), Integer(2)), Integer(3))");
    assert_eq!(shape("1 -\\\n- 1"), "Subtract(Integer(1), Subtract(Integer(0), Integer(1)))");
}

#[test]
fn calls() {
    assert_eq!(shape("RANDOM(1, 10 * :scale)"), "Random(Integer(1), Multiply(Integer(10), :scale))");
    assert_eq!(shape("least(1,2,3)"), "Least(Integer(1), Integer(2), Integer(3))");
    assert_eq!(shape("mod(7, 3)"), shape("7 % 3"));
}

#[test]
fn errors_are_pgbenchs() {
    assert_eq!(error("foo(1)"), "unexpected function name \"foo\" (42601)");
    assert_eq!(error("random(1)"), "unexpected number of arguments (random) (42601)");
    assert_eq!(error("least()"), "at least one argument expected (least) (42601)");
    let seventeen = vec!["1"; 17].join(",");
    assert_eq!(error(&format!("least({seventeen})")), "too many function arguments, maximum is 16 (42601)");
    assert_eq!(error("9223372036854775809"), "bigint constant overflow (9223372036854775809) (22003)");
    assert_eq!(error("1e400"), "double constant overflow (1e400) (22003)");
    assert_eq!(error("1 ? 2"), "unexpected character \"?\" (42601)");
    assert_eq!(error(": a"), "unexpected character \":\" (42601)");
    assert_eq!(error("1 \\ 2"), "unexpected character \"\\\" (42601)");
}

#[test]
fn syntax_errors_name_the_token() {
    assert_eq!(error(""), "syntax error at end of expression (42601)");
    assert_eq!(error("1 +"), "syntax error at end of expression (42601)");
    assert_eq!(error("(1"), "syntax error at end of expression (42601)");
    assert_eq!(error("1 2 + 3"), "syntax error at or near \"2\" (42601)");
    assert_eq!(error("12abs(1)"), "syntax error at or near \"abs\" (42601)");
    assert_eq!(error("random(1,)"), "syntax error at or near \")\" (42601)");
    assert_eq!(error("abs 1"), "syntax error at or near \"1\" (42601)");
    // A bigint only behind a minus.
    assert_eq!(error("9223372036854775808"), "syntax error at or near \"9223372036854775808\" (42601)");
}

#[test]
fn what_is_still_to_come_says_so() {
    assert_eq!(error("hash(1)"), "function \"hash\" is not supported yet (0A000)");
    assert_eq!(error("1 <= 2"), "operator \"<=\" is not supported yet (0A000)");
    assert_eq!(error("1 = 2"), "operator \"=\" is not supported yet (0A000)");
    assert_eq!(error("CASE WHEN true THEN 1 END"), "operator \"CASE\" is not supported yet (0A000)");
}

#[test]
fn depth_is_limited_however_it_comes_about() {
    let message = "expression nests deeper than 100 levels (54001)";
    assert_eq!(error(&format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000))), message);
    assert_eq!(error(&format!("{}1", "-".repeat(100_000))), message);
    assert_eq!(error(&format!("1{}", "+1".repeat(100_000))), message);
    assert_eq!(error(&"abs(".repeat(100_000)), message);
    assert!(parse(&format!("{}1{}", "(".repeat(99), ")".repeat(99))).is_ok());
    assert!(parse(&format!("1{}", "+1".repeat(99))).is_ok());
}

proptest! {
    #[test]
    fn nothing_panics(text in "([-+*/%(),.:0-9eE \\\\\n]|random|abs|:a|null|é){0,30}") {
        let _ = parse(&text);
    }
}
