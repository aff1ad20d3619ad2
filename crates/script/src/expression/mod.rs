//! The expressions of `\set`, `\if` and `\elif`: their syntax tree.
//!
//! The grammar is pgbench's (exprparse.y). As there, operators are functions, `-x` is `0 - x`, `~x` is `-1 #
//! x`, and `a > b` is `b < a`, whose operands are evaluated in that order.

mod functions;
mod parser;
mod tokens;
mod tree;

pub use tree::{
    Binary, Expression, ExpressionNode, Extremum, FoldStep, Integral, MAX_ARGUMENTS, Overloaded, Ternary,
    Unary,
};

#[cfg(test)]
mod tests;
