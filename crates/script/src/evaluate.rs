//! Evaluating an expression, with pgbench's rules and messages (`evaluateExpr`, `evalLazyFunc` and
//! `evalStandardFunc` in pgbench.c).

use bench_base::error::{UserError, sqlstate};

use super::expression::{Binary, Expression, ExpressionNode, Extremum, FoldStep, MAX_ARGUMENTS};
use super::prng::Prng;
use super::variables::{Scalar, Value, Variables, scalar_of};
use coerce::{boolean, truth};

mod coerce;
mod functions;

impl Expression {
    /// The expression's value. `debug` is given what its calls of `debug` show: "int 42", "double 0.5",
    /// "boolean true" or "null".
    ///
    /// # Errors
    /// 42703 for a variable that was never set, 22003 for a result out of range, 22012 for a division by
    /// zero, 22023 for an argument that a function cannot take.
    pub fn evaluate(
        &self,
        variables: &Variables,
        random: &mut Prng,
        debug: &mut dyn FnMut(&str),
    ) -> Result<Value, UserError> {
        Evaluation { variables, random, debug }.value(&self.root).map(Value::from).map_err(|error| *error)
    }

    /// Whether the expression's value is true as a condition of `\if` (`valueTruth` in pgbench.c): a number
    /// is unless it is 0, and null is not. For `debug` see [`Expression::evaluate`].
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub fn is_true(
        &self,
        variables: &Variables,
        random: &mut Prng,
        debug: &mut dyn FnMut(&str),
    ) -> Result<bool, UserError> {
        Evaluation { variables, random, debug }.value(&self.root).map(truth).map_err(|error| *error)
    }
}

/// What an evaluation reads and moves on. Errors are boxed in here: results of values stay small, and so do
/// the frames of the recursion.
struct Evaluation<'a> {
    variables: &'a Variables,
    random: &'a mut Prng,
    debug: &'a mut dyn FnMut(&str),
}

impl Evaluation<'_> {
    /// The value of a node. Most operands are leaves, and these need no call.
    #[inline]
    fn value(&mut self, node: &ExpressionNode) -> Result<Scalar, Box<UserError>> {
        match node {
            ExpressionNode::Constant(scalar) => Ok(*scalar),
            ExpressionNode::Variable { id, name } => match self.variables.get(*id) {
                Some(value) => scalar_of(name, value),
                None => Err(undefined(name)),
            },
            ExpressionNode::Fold { first, steps } => self.fold(first, steps),
            _ => self.other(node),
        }
    }

    /// Takes one step after the other. Both operands are evaluated before either is looked at, for their
    /// draws of random numbers – but where the left one decides `AND` or `OR`, the right one is not evaluated
    /// at all.
    fn fold(&mut self, first: &ExpressionNode, steps: &[FoldStep]) -> Result<Scalar, Box<UserError>> {
        let mut value = self.value(first)?;
        for FoldStep { function, operand } in steps {
            let is_decided = match function {
                Binary::And => value == Scalar::Null || !boolean(value)?,
                Binary::Or => value == Scalar::Null || boolean(value)?,
                _ => false,
            };
            if is_decided {
                continue;
            }
            let right = self.value(operand)?;
            value = match *function {
                Binary::And | Binary::Or if right == Scalar::Null => Scalar::Null,
                Binary::And | Binary::Or => Scalar::Boolean(boolean(right)?),
                Binary::Is => Scalar::Boolean(value == right),
                Binary::IsNot => Scalar::Boolean(value != right),
                Binary::Overloaded(function) => functions::overloaded(function, value, right)?,
                Binary::Integral(function) => functions::integral(function, value, right, self.random)?,
                Binary::Power => functions::power(value, right)?,
            };
        }
        Ok(value)
    }

    /// The value of a node that is neither a leaf nor a fold.
    #[inline(never)]
    fn other(&mut self, node: &ExpressionNode) -> Result<Scalar, Box<UserError>> {
        match node {
            ExpressionNode::Unary { function, argument } => {
                let argument = self.value(argument)?;
                functions::unary(*function, argument, self.debug)
            }
            ExpressionNode::Ternary { function, arguments } => {
                let [first, second, third] = &**arguments;
                let arguments = [self.value(first)?, self.value(second)?, self.value(third)?];
                functions::ternary(*function, arguments, self.random)
            }
            ExpressionNode::Extremum { which, arguments } => self.extremum(*which, arguments),
            ExpressionNode::Case { arms, otherwise } => {
                let mut result = &**otherwise;
                for (condition, own_result) in arms {
                    if truth(self.value(condition)?) {
                        result = own_result;
                        break;
                    }
                }
                self.value(result)
            }
            ExpressionNode::Constant(_) | ExpressionNode::Variable { .. } | ExpressionNode::Fold { .. } => {
                self.value(node)
            }
        }
    }

    /// `least` or `greatest`.
    fn extremum(&mut self, which: Extremum, arguments: &[ExpressionNode]) -> Result<Scalar, Box<UserError>> {
        if let [first, second] = arguments {
            return functions::extremum(which, &[self.value(first)?, self.value(second)?]);
        }
        let mut values = [Scalar::Null; MAX_ARGUMENTS];
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.value(argument)?;
        }
        functions::extremum(which, &values[..arguments.len().min(MAX_ARGUMENTS)])
    }
}

#[cold]
fn undefined(name: &str) -> Box<UserError> {
    UserError::new(sqlstate::UNDEFINED_COLUMN, format!("undefined variable \"{name}\"")).into()
}

#[cfg(test)]
mod tests;
