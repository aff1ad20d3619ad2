//! The syntax tree of an expression.

use crate::variables::{Scalar, VariableId};

/// How many arguments a function takes at most, as in pgbench.
pub const MAX_ARGUMENTS: usize = 16;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub(crate) root: ExpressionNode,
}

/// A node of the syntax tree. How deep nodes lie inside each other is limited by the parser.
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
    /// Each step's function takes what came before it and the step's operand: `1 + 2 * 3 - 4` begins with 1
    /// and has two steps. So a sum of many terms is long, not deep.
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
    /// `CASE`: conditions and what follows each `THEN`, and what follows `ELSE`.
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

/// What takes one argument.
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

/// What takes two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The right operand is evaluated only if the left one leaves it open; so it is with [`Binary::Or`].
    And,
    Or,
    /// `IS`, with a constant null or boolean on its right.
    Is,
    IsNot,
    Overloaded(Overloaded),
    Integral(Integral),
    Power,
}

/// What computes with doubles if one of its two arguments is a double, otherwise with integers.
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

/// What computes with two integers.
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

/// What takes three arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ternary {
    Permute,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
}

/// What takes any number of arguments.
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
