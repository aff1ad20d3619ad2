//! Evaluating an expression, with pgbench's rules and messages (`evaluateExpr`, `evalLazyFunc` and
//! `evalStandardFunc` in pgbench.c).

#[cfg(test)]
mod tests;

use bench_base::error::{UserError, sqlstate};

use crate::expression::{
    Binary, Expression, ExpressionNode, Extremum, FoldStep, Integral, MAX_ARGUMENTS, Overloaded, Ternary,
    Unary,
};
use crate::random;
use crate::random::{IntegerRange, Prng};
use crate::variables::{Scalar, Value, Variables, format_double, format_fixed, scalar_of};

impl Expression {
    /// Evaluates the expression. `debug` receives the output of its calls of `debug()`: "int 42", "double 0.5",
    /// "boolean true" or "null".
    ///
    /// # Errors
    /// 42703 for a variable that was never set, 22003 for a result out of range, 22012 for a division by
    /// zero, 22023 for an invalid argument of a function.
    pub fn evaluate(
        &self,
        variables: &Variables,
        random: &mut Prng,
        debug: &mut dyn FnMut(&str),
    ) -> Result<Value, UserError> {
        Evaluation { variables, random, debug }.value(&self.root).map(Value::from).map_err(|error| *error)
    }

    /// Whether the expression is true as a condition of `\if` (`valueTruth` in pgbench.c): numbers other than 0 are,
    /// null is not. For `debug` see [`Expression::evaluate`].
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

/// The state of an evaluation. Errors are boxed in this module, to keep the stack frames of the recursion small.
struct Evaluation<'a> {
    variables: &'a Variables,
    random: &'a mut Prng,
    debug: &'a mut dyn FnMut(&str),
}

impl Evaluation<'_> {
    /// Evaluates a node. Inlined for leaves, which most operands are.
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

    /// Evaluates a fold step by step. Both operands are evaluated before their types are checked, so that random numbers are
    /// drawn as in pgbench; but if the left one decides `AND` or `OR`, the right one is not evaluated.
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
                Binary::Overloaded(function) => overloaded(function, value, right)?,
                Binary::Integral(function) => integral(function, value, right, self.random)?,
                Binary::Power => power(value, right)?,
            };
        }
        Ok(value)
    }

    /// Evaluates a node that is neither a leaf nor a fold.
    #[inline(never)]
    fn other(&mut self, node: &ExpressionNode) -> Result<Scalar, Box<UserError>> {
        match node {
            ExpressionNode::Unary { function, argument } => {
                let argument = self.value(argument)?;
                unary(*function, argument, self.debug)
            }
            ExpressionNode::Ternary { function, arguments } => {
                let [first, second, third] = &**arguments;
                let arguments = [self.value(first)?, self.value(second)?, self.value(third)?];
                ternary(*function, arguments, self.random)
            }
            ExpressionNode::Extremum { which, arguments } => self.extremum(*which, arguments),
            ExpressionNode::Case { arms, otherwise } => {
                let mut result = &**otherwise;
                for (condition, arm_result) in arms {
                    if truth(self.value(condition)?) {
                        result = arm_result;
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

    /// Evaluates `least` or `greatest`.
    fn extremum(&mut self, which: Extremum, arguments: &[ExpressionNode]) -> Result<Scalar, Box<UserError>> {
        if let [first, second] = arguments {
            return extremum(which, &[self.value(first)?, self.value(second)?]);
        }
        let mut values = [Scalar::Null; MAX_ARGUMENTS];
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.value(argument)?;
        }
        extremum(which, &values[..arguments.len().min(MAX_ARGUMENTS)])
    }
}

#[cold]
fn undefined(name: &str) -> Box<UserError> {
    UserError::new(sqlstate::UNDEFINED_COLUMN, format!("undefined variable \"{name}\"")).into()
}

/// `valueTruth`: whether a condition holds.
pub fn truth(scalar: Scalar) -> bool {
    match scalar {
        Scalar::Null => false,
        Scalar::Boolean(value) => value,
        Scalar::Integer(value) => value != 0,
        Scalar::Double(value) => value != 0.0,
    }
}

/// `coerceToBool`, which takes no numbers.
pub fn boolean(scalar: Scalar) -> Result<bool, Box<UserError>> {
    match scalar {
        Scalar::Boolean(value) => Ok(value),
        other => Err(cannot_coerce(other, "boolean")),
    }
}

/// `coerceToInt`: a double is rounded to the nearest integer, to the even one of two.
#[inline]
pub fn integer(scalar: Scalar) -> Result<i64, Box<UserError>> {
    match scalar {
        Scalar::Integer(value) => Ok(value),
        other => integer_of_other(other),
    }
}

fn integer_of_other(scalar: Scalar) -> Result<i64, Box<UserError>> {
    /// 2⁶³, the first double above all bigints.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match scalar {
        Scalar::Double(value) => {
            let rounded = value.round_ties_even();
            if (-LIMIT..LIMIT).contains(&rounded) {
                return Ok(rounded as i64);
            }
            let message = format!("double to int overflow for {}", format_fixed(rounded));
            Err(UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message).into())
        }
        other => Err(cannot_coerce(other, "int")),
    }
}

/// `coerceToDouble`.
#[inline]
pub fn double(scalar: Scalar) -> Result<f64, Box<UserError>> {
    match scalar {
        Scalar::Integer(value) => Ok(value as f64),
        Scalar::Double(value) => Ok(value),
        other => Err(cannot_coerce(other, "double")),
    }
}

#[cold]
fn cannot_coerce(scalar: Scalar, target: &str) -> Box<UserError> {
    let source = match scalar {
        Scalar::Null => "null",
        Scalar::Boolean(_) => "boolean",
        Scalar::Integer(_) => "int",
        Scalar::Double(_) => "double",
    };
    UserError::invalid(format!("cannot coerce {source} to {target}")).into()
}

// Operators and functions of values (`evalStandardFunc`). Most give null if an argument is null.

/// Calls a function of one argument.
pub fn unary(
    function: Unary,
    argument: Scalar,
    debug: &mut dyn FnMut(&str),
) -> Result<Scalar, Box<UserError>> {
    if function == Unary::Debug {
        debug(&debug_text(argument));
        return Ok(argument);
    }
    if argument == Scalar::Null {
        return Ok(Scalar::Null);
    }
    // The C library's log and exp, as in pgbench.
    match function {
        Unary::Not => boolean(argument).map(|value| Scalar::Boolean(!value)),
        Unary::Absolute => absolute(argument),
        Unary::Debug => Ok(argument),
        Unary::Double => double(argument).map(Scalar::Double),
        Unary::Exponential => double(argument).map(|value| Scalar::Double(value.exp())),
        Unary::Integer => integer(argument).map(Scalar::Integer),
        Unary::Logarithm => double(argument).map(|value| Scalar::Double(value.ln())),
        Unary::SquareRoot => double(argument).map(|value| Scalar::Double(value.sqrt())),
    }
}

/// Formats a value's type and the value for `debug`.
fn debug_text(scalar: Scalar) -> String {
    match scalar {
        Scalar::Null => "null".to_owned(),
        Scalar::Boolean(value) => format!("boolean {value}"),
        Scalar::Integer(value) => format!("int {value}"),
        Scalar::Double(value) => format!("double {}", format_double(value)),
    }
}

fn absolute(argument: Scalar) -> Result<Scalar, Box<UserError>> {
    match argument {
        // In pgbench this overflow is undefined behavior of C.
        Scalar::Integer(value) => value.checked_abs().map(Scalar::Integer).ok_or_else(|| overflow("abs")),
        // Not f64's abs: the sign of -0 stays, as in pgbench.
        other => double(other).map(|value| Scalar::Double(if value < 0.0 { -value } else { value })),
    }
}

/// Applies a function to doubles if one of its operands is a double, otherwise to integers.
#[inline]
pub fn overloaded(function: Overloaded, left: Scalar, right: Scalar) -> Result<Scalar, Box<UserError>> {
    match (left, right) {
        (Scalar::Integer(left), Scalar::Integer(right)) => apply_to_integers(function, left, right),
        (Scalar::Null, _) | (_, Scalar::Null) => Ok(Scalar::Null),
        (Scalar::Double(_), _) | (_, Scalar::Double(_)) => {
            Ok(apply_to_doubles(function, double(left)?, double(right)?))
        }
        _ => apply_to_integers(function, integer(left)?, integer(right)?),
    }
}

#[inline]
fn apply_to_integers(function: Overloaded, left: i64, right: i64) -> Result<Scalar, Box<UserError>> {
    let (result, name) = match function {
        Overloaded::Add => (left.checked_add(right), "add"),
        Overloaded::Subtract => (left.checked_sub(right), "sub"),
        Overloaded::Multiply => (left.checked_mul(right), "mul"),
        Overloaded::Divide if right == 0 => return Err(division_by_zero()),
        Overloaded::Divide => (left.checked_div(right), "div"),
        Overloaded::Equal => return Ok(Scalar::Boolean(left == right)),
        Overloaded::NotEqual => return Ok(Scalar::Boolean(left != right)),
        Overloaded::Less => return Ok(Scalar::Boolean(left < right)),
        Overloaded::LessOrEqual => return Ok(Scalar::Boolean(left <= right)),
    };
    result.map(Scalar::Integer).ok_or_else(|| overflow(name))
}

fn apply_to_doubles(function: Overloaded, left: f64, right: f64) -> Scalar {
    match function {
        Overloaded::Add => Scalar::Double(left + right),
        Overloaded::Subtract => Scalar::Double(left - right),
        Overloaded::Multiply => Scalar::Double(left * right),
        Overloaded::Divide => Scalar::Double(left / right),
        Overloaded::Equal => Scalar::Boolean(left == right),
        Overloaded::NotEqual => Scalar::Boolean(left != right),
        Overloaded::Less => Scalar::Boolean(left < right),
        Overloaded::LessOrEqual => Scalar::Boolean(left <= right),
    }
}

/// Applies a function to integers.
#[inline]
pub fn integral(
    function: Integral,
    left: Scalar,
    right: Scalar,
    random: &mut Prng,
) -> Result<Scalar, Box<UserError>> {
    if left == Scalar::Null || right == Scalar::Null {
        return Ok(Scalar::Null);
    }
    let (left, right) = (integer(left)?, integer(right)?);
    Ok(Scalar::Integer(match function {
        Integral::Random => random::uniform(random, IntegerRange::new(left, right)?),
        Integral::Modulo if right == 0 => return Err(division_by_zero()),
        // The remainder of a division by -1 is 0, even if the quotient is out of range.
        Integral::Modulo => left.wrapping_rem(right),
        Integral::BitAnd => left & right,
        Integral::BitOr => left | right,
        Integral::BitXor => left ^ right,
        // By the lowest six bits of the distance, as processors do; in pgbench's C other distances are undefined behavior.
        Integral::ShiftLeft => left.wrapping_shl(right as u32),
        Integral::ShiftRight => left.wrapping_shr(right as u32),
        Integral::HashFnv1a => random::fnv1a(left, right),
        Integral::HashMurmur2 => random::murmur2(left, right),
    }))
}

/// `pow`, by the C library's function as in pgbench.
pub fn power(base: Scalar, exponent: Scalar) -> Result<Scalar, Box<UserError>> {
    if base == Scalar::Null || exponent == Scalar::Null {
        return Ok(Scalar::Null);
    }
    Ok(Scalar::Double(double(base)?.powf(double(exponent)?)))
}

/// Calls a function of three arguments.
pub fn ternary(
    function: Ternary,
    arguments: [Scalar; 3],
    random: &mut Prng,
) -> Result<Scalar, Box<UserError>> {
    if arguments.contains(&Scalar::Null) {
        return Ok(Scalar::Null);
    }
    let [first, second, third] = arguments;
    let (first, second) = (integer(first)?, integer(second)?);
    let distribution = match function {
        Ternary::Permute => {
            let seed = integer(third)?;
            if second <= 0 {
                let message = "permute size parameter must be greater than zero";
                return Err(UserError::invalid(message).into());
            }
            return Ok(Scalar::Integer(random::permute(first, second, seed)));
        }
        Ternary::RandomExponential => random::exponential,
        Ternary::RandomGaussian => random::gaussian,
        Ternary::RandomZipfian => random::zipfian,
    };
    let range = IntegerRange::new(first, second)?;
    Ok(Scalar::Integer(distribution(random, range, double(third)?)?))
}

/// Returns the least or greatest argument, as a double if one of them is a double; null if one is null, or if there
/// is none.
fn extremum(which: Extremum, arguments: &[Scalar]) -> Result<Scalar, Box<UserError>> {
    if arguments.contains(&Scalar::Null) {
        return Ok(Scalar::Null);
    }
    let Some((&first, rest)) = arguments.split_first() else { return Ok(Scalar::Null) };
    let least = which == Extremum::Least;
    if arguments.iter().any(|argument| matches!(argument, Scalar::Double(_))) {
        let mut extreme = double(first)?;
        for &argument in rest {
            let value = double(argument)?;
            // Like C's Min and Max: if one of the two is NaN, the later one is taken.
            let keeps = if least { extreme < value } else { extreme > value };
            extreme = if keeps { extreme } else { value };
        }
        return Ok(Scalar::Double(extreme));
    }
    let mut extreme = integer(first)?;
    for &argument in rest {
        let value = integer(argument)?;
        extreme = if least { extreme.min(value) } else { extreme.max(value) };
    }
    Ok(Scalar::Integer(extreme))
}

#[cold]
fn overflow(operation: &str) -> Box<UserError> {
    UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, format!("bigint {operation} out of range")).into()
}

#[cold]
fn division_by_zero() -> Box<UserError> {
    UserError::new(sqlstate::DIVISION_BY_ZERO, "division by zero").into()
}
