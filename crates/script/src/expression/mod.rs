//! The expressions of `\set`, `\if` and `\elif`: their syntax tree, and the functions that have a name.
//!
//! The grammar is pgbench's (exprparse.y). As there, operators are functions, `-x` is `0 - x`, `~x` is `-1 #
//! x`, and `a > b` is `b < a`, whose operands are evaluated in that order.

mod parser;
#[cfg(test)]
mod tests;

use crate::variables::{Scalar, Symbols, VariableId};

/// The most arguments of a function, as in pgbench.
pub const MAX_ARGUMENTS: usize = 16;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub(crate) root: ExpressionNode,
}

/// A node of the syntax tree, whose depth the parser limits.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionNode {
    Constant(Scalar),
    /// The name is for messages.
    Variable {
        id: VariableId,
        name: Box<str>,
    },
    /// `function(argument)`
    Unary {
        function: Unary,
        argument: Box<ExpressionNode>,
    },
    /// A chain of binary operators, each applied to the result so far and the step's operand: `1 + 2 * 3 - 4` begins with 1
    /// and has two steps. So a sum of many terms is not deep.
    Fold {
        first: Box<ExpressionNode>,
        steps: Vec<FoldStep>,
    },
    /// `function(a, b, c)`
    Ternary {
        function: Ternary,
        arguments: Box<[ExpressionNode; 3]>,
    },
    /// `least(…)` or `greatest(…)`, of 1 to [`MAX_ARGUMENTS`].
    Extremum {
        which: Extremum,
        arguments: Box<[ExpressionNode]>,
    },
    /// `CASE`: pairs of condition and result, and the result of `ELSE`.
    Case {
        arms: Box<[(ExpressionNode, ExpressionNode)]>,
        otherwise: Box<ExpressionNode>,
    },
}

/// One step of a [`ExpressionNode::Fold`].
#[derive(Clone, Debug, PartialEq)]
pub struct FoldStep {
    pub function: Binary,
    pub operand: ExpressionNode,
}

/// A function of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    Absolute,
    Debug,
    Double,
    Exponential,
    Integer,
    Logarithm,
    SquareRoot,
}

/// A function of two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// As for [`Binary::Or`], the right operand is evaluated only if the left one does not decide the result.
    And,
    Or,
    /// `IS`, with a constant null or boolean on its right.
    Is,
    IsNot,
    Overloaded(Overloaded),
    Integral(Integral),
    Power,
}

/// A function of two doubles if one of its arguments is a double, otherwise of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overloaded {
    Add,
    Subtract,
    Multiply,
    Divide,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
}

/// A function of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integral {
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    HashFnv1a,
    HashMurmur2,
    Random,
}

/// A function of three arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ternary {
    Permute,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
}

/// A function of one or more arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    Least,
    Greatest,
}

impl Expression {
    /// Calls `visit` with each variable that the expression reads, in the order of evaluation.
    pub(crate) fn for_each_variable(&self, visit: &mut dyn FnMut(VariableId)) {
        self.root.for_each_variable(visit);
    }
}

impl ExpressionNode {
    fn for_each_variable(&self, visit: &mut dyn FnMut(VariableId)) {
        match self {
            ExpressionNode::Constant(_) => {}
            ExpressionNode::Variable { id, .. } => visit(*id),
            ExpressionNode::Unary { argument, .. } => argument.for_each_variable(visit),
            ExpressionNode::Fold { first, steps } => {
                first.for_each_variable(visit);
                steps.iter().for_each(|step| step.operand.for_each_variable(visit));
            }
            ExpressionNode::Ternary { arguments, .. } => {
                arguments.iter().for_each(|node| node.for_each_variable(visit));
            }
            ExpressionNode::Extremum { arguments, .. } => {
                arguments.iter().for_each(|node| node.for_each_variable(visit));
            }
            ExpressionNode::Case { arms, otherwise } => {
                for (condition, result) in arms {
                    condition.for_each_variable(visit);
                    result.for_each_variable(visit);
                }
                otherwise.for_each_variable(visit);
            }
        }
    }

    /// `function(argument)`
    pub fn unary(function: Unary, argument: ExpressionNode) -> ExpressionNode {
        ExpressionNode::Unary { function, argument: Box::new(argument) }
    }

    /// `function(left, right)`
    pub fn binary(function: Binary, left: ExpressionNode, right: ExpressionNode) -> ExpressionNode {
        let step = FoldStep { function, operand: right };
        match left {
            ExpressionNode::Fold { first, mut steps } => {
                steps.push(step);
                ExpressionNode::Fold { first, steps }
            }
            first => ExpressionNode::Fold { first: Box::new(first), steps: vec![step] },
        }
    }
}

/// The function of a name, by the number of its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callable {
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

/// The variable used as seed by hash functions and `permute` if none is given.
const DEFAULT_SEED: &str = "default_seed";

/// `PGBENCH_FUNCTIONS` in exprparse.y.
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

/// Finds a function by its name, ignoring case; returns it with its name in lower case.
pub(crate) fn find(name: &str) -> Option<(&'static str, Callable)> {
    FUNCTIONS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).copied()
}

impl Callable {
    /// Returns the call of the function `name` with these arguments. The error is a message about their number.
    pub(crate) fn call(
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
