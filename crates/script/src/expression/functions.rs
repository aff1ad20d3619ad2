//! The functions that have a name (`PGBENCH_FUNCTIONS` in exprparse.y).

use super::tree::{Binary, ExpressionNode, Extremum, Integral, MAX_ARGUMENTS, Ternary, Unary};
use crate::variables::{Scalar, Symbols};

/// What a name stands for, and how many arguments it takes with it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Callable {
    Pi,
    Unary(Unary),
    Binary(Binary),
    Ternary(Ternary),
    /// A function of two arguments; the second may be left out, and is then the variable [`DEFAULT_SEED`].
    Hash(Integral),
    /// A function of three arguments; the third, the seed, may be left out and is then [`DEFAULT_SEED`].
    Permute,
    AtLeastOne(Extremum),
}

/// The variable that hash functions and `permute` take for a seed where none is given.
const DEFAULT_SEED: &str = "default_seed";

const FUNCTIONS: [(&str, Callable); 21] = [
    ("abs", Callable::Unary(Unary::Absolute)),
    ("debug", Callable::Unary(Unary::Debug)),
    ("double", Callable::Unary(Unary::Double)),
    ("exp", Callable::Unary(Unary::Exponential)),
    ("greatest", Callable::AtLeastOne(Extremum::Greatest)),
    ("hash", Callable::Hash(Integral::HashMurmur2)),
    ("hash_fnv1a", Callable::Hash(Integral::HashFnv1a)),
    ("hash_murmur2", Callable::Hash(Integral::HashMurmur2)),
    ("int", Callable::Unary(Unary::Integer)),
    ("least", Callable::AtLeastOne(Extremum::Least)),
    ("ln", Callable::Unary(Unary::Logarithm)),
    ("mod", Callable::Binary(Binary::Integral(Integral::Modulo))),
    ("permute", Callable::Permute),
    ("pi", Callable::Pi),
    ("pow", Callable::Binary(Binary::Power)),
    ("power", Callable::Binary(Binary::Power)),
    ("random", Callable::Binary(Binary::Integral(Integral::Random))),
    ("random_exponential", Callable::Ternary(Ternary::RandomExponential)),
    ("random_gaussian", Callable::Ternary(Ternary::RandomGaussian)),
    ("random_zipfian", Callable::Ternary(Ternary::RandomZipfian)),
    ("sqrt", Callable::Unary(Unary::SquareRoot)),
];

/// The function of a name in any case, and its name in lower case.
pub(super) fn find(name: &str) -> Option<(&'static str, Callable)> {
    FUNCTIONS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).copied()
}

impl Callable {
    /// The call of the function `name` with these arguments; the error is a message about their number.
    pub(super) fn call(
        self,
        name: &str,
        mut arguments: Vec<ExpressionNode>,
        symbols: &mut Symbols,
    ) -> Result<ExpressionNode, String> {
        let takes_default_seed = match self {
            Callable::Hash(_) => arguments.len() == 1,
            Callable::Permute => arguments.len() == 2,
            _ => false,
        };
        if takes_default_seed {
            arguments.push(ExpressionNode::Variable {
                id: symbols.intern(DEFAULT_SEED),
                name: DEFAULT_SEED.into(),
            });
        }
        let unexpected = || format!("unexpected number of arguments ({name})");
        match self {
            Callable::Pi if arguments.is_empty() => {
                Ok(ExpressionNode::Constant(Scalar::Double(std::f64::consts::PI)))
            }
            Callable::Pi => Err(unexpected()),
            Callable::Unary(function) => match <[ExpressionNode; 1]>::try_from(arguments) {
                Ok([argument]) => Ok(ExpressionNode::unary(function, argument)),
                Err(_) => Err(unexpected()),
            },
            Callable::Binary(function) => binary(function, arguments).ok_or_else(unexpected),
            Callable::Hash(function) => binary(Binary::Integral(function), arguments).ok_or_else(unexpected),
            Callable::Ternary(function) => ternary(function, arguments).ok_or_else(unexpected),
            Callable::Permute => ternary(Ternary::Permute, arguments).ok_or_else(unexpected),
            Callable::AtLeastOne(_) if arguments.is_empty() => {
                Err(format!("at least one argument expected ({name})"))
            }
            Callable::AtLeastOne(_) if arguments.len() > MAX_ARGUMENTS => {
                Err(format!("too many function arguments, maximum is {MAX_ARGUMENTS}"))
            }
            Callable::AtLeastOne(which) => {
                Ok(ExpressionNode::Extremum { which, arguments: arguments.into() })
            }
        }
    }
}

/// `None` unless these are two arguments.
fn binary(function: Binary, arguments: Vec<ExpressionNode>) -> Option<ExpressionNode> {
    let [left, right] = <[ExpressionNode; 2]>::try_from(arguments).ok()?;
    Some(ExpressionNode::binary(function, left, right))
}

/// `None` unless these are three arguments.
fn ternary(function: Ternary, arguments: Vec<ExpressionNode>) -> Option<ExpressionNode> {
    let arguments = <[ExpressionNode; 3]>::try_from(arguments).ok()?;
    Some(ExpressionNode::Ternary { function, arguments: Box::new(arguments) })
}
