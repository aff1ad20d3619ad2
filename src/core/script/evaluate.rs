//! Evaluating an expression, with pgbench's arithmetic and messages (`evalStandardFunc` in pgbench.c).

use super::expression::{Expression, Node};
use super::prng::Prng;
use super::variables::{Scalar, Value, Variables, scalar_of};
use crate::error::{UserError, sqlstate};

/// How many arguments a function takes at most, as in pgbench.
pub(super) const MAX_ARGUMENTS: usize = 16;

/// What an expression can call. Operators are functions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Absolute,
    Integer,
    Double,
    Least,
    Greatest,
    Random,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arity {
    Exactly(usize),
    AtLeastOne,
}

/// The functions that have a name.
pub(super) const FUNCTIONS: [(&str, Arity, Function); 7] = [
    ("abs", Arity::Exactly(1), Function::Absolute),
    ("double", Arity::Exactly(1), Function::Double),
    ("greatest", Arity::AtLeastOne, Function::Greatest),
    ("int", Arity::Exactly(1), Function::Integer),
    ("least", Arity::AtLeastOne, Function::Least),
    ("mod", Arity::Exactly(2), Function::Modulo),
    ("random", Arity::Exactly(2), Function::Random),
];

/// The functions of pgbench that are still to come.
pub(super) const NOT_YET_SUPPORTED: [&str; 14] = [
    "debug",
    "exp",
    "hash",
    "hash_fnv1a",
    "hash_murmur2",
    "ln",
    "permute",
    "pi",
    "pow",
    "power",
    "random_exponential",
    "random_gaussian",
    "random_zipfian",
    "sqrt",
];

impl Expression {
    /// The expression's value.
    ///
    /// # Errors
    /// 42703 for a variable that was never set, 22003 for a result out of range, 22012 for a division by zero,
    /// 22023 for an argument that a function cannot take.
    pub fn evaluate(&self, variables: &Variables, random: &mut Prng) -> Result<Value, UserError> {
        evaluate(&self.root, variables, random).map(Value::from)
    }
}

fn evaluate(node: &Node, variables: &Variables, random: &mut Prng) -> Result<Scalar, UserError> {
    match node {
        Node::Constant(scalar) => Ok(*scalar),
        Node::Variable { id, name } => match variables.get(*id) {
            Some(value) => scalar_of(name, value),
            None => Err(undefined(name)),
        },
        Node::Call { function, arguments } => {
            // All are evaluated before any is looked at, for their draws of random numbers.
            let mut values = [Scalar::Null; MAX_ARGUMENTS];
            for (value, argument) in values.iter_mut().zip(arguments) {
                *value = evaluate(argument, variables, random)?;
            }
            let values = &values[..arguments.len().min(MAX_ARGUMENTS)];
            if values.contains(&Scalar::Null) { Ok(Scalar::Null) } else { call(*function, values, random) }
        }
    }
}

/// Calls a function with arguments that are not null. The parser has seen to their number.
fn call(function: Function, arguments: &[Scalar], random: &mut Prng) -> Result<Scalar, UserError> {
    match function {
        Function::Add | Function::Subtract | Function::Multiply | Function::Divide => {
            arithmetic(function, arguments[0], arguments[1])
        }
        Function::Modulo => integer_arithmetic(function, integer(arguments[0])?, integer(arguments[1])?),
        Function::Absolute => match arguments[0] {
            // pgbench leaves the overflow to C, where it has no meaning.
            Scalar::Integer(value) => value.checked_abs().map(Scalar::Integer).ok_or_else(|| overflow("abs")),
            value => Ok(Scalar::Double(double(value)?.abs())),
        },
        Function::Integer => integer(arguments[0]).map(Scalar::Integer),
        Function::Double => double(arguments[0]).map(Scalar::Double),
        Function::Least | Function::Greatest => extremum(function, arguments),
        Function::Random => uniform(integer(arguments[0])?, integer(arguments[1])?, random),
    }
}

/// Two operands are computed with as doubles if one of them is a double, otherwise as integers.
fn arithmetic(function: Function, left: Scalar, right: Scalar) -> Result<Scalar, UserError> {
    if !is_double(&left) && !is_double(&right) {
        return integer_arithmetic(function, integer(left)?, integer(right)?);
    }
    let (left, right) = (double(left)?, double(right)?);
    Ok(Scalar::Double(match function {
        Function::Add => left + right,
        Function::Subtract => left - right,
        Function::Multiply => left * right,
        _ => left / right,
    }))
}

fn integer_arithmetic(function: Function, left: i64, right: i64) -> Result<Scalar, UserError> {
    let (result, name) = match function {
        Function::Add => (left.checked_add(right), "add"),
        Function::Subtract => (left.checked_sub(right), "sub"),
        Function::Multiply => (left.checked_mul(right), "mul"),
        _ if right == 0 => return Err(UserError::new(sqlstate::DIVISION_BY_ZERO, "division by zero")),
        Function::Divide => (left.checked_div(right), "div"),
        // The rest of a division by -1 is 0, even where the quotient is out of range.
        _ => (Some(left.wrapping_rem(right)), "mod"),
    };
    result.map(Scalar::Integer).ok_or_else(|| overflow(name))
}

/// The least or greatest argument, as a double if one of them is a double.
fn extremum(function: Function, arguments: &[Scalar]) -> Result<Scalar, UserError> {
    let least = function == Function::Least;
    if arguments.iter().any(is_double) {
        let mut found = double(arguments[0])?;
        for &argument in &arguments[1..] {
            let value = double(argument)?;
            // C's Min and Max: where one of the two is not a number, the later one stays.
            let keeps = if least { found < value } else { found > value };
            found = if keeps { found } else { value };
        }
        return Ok(Scalar::Double(found));
    }
    let mut found = integer(arguments[0])?;
    for &argument in &arguments[1..] {
        let value = integer(argument)?;
        found = if least { found.min(value) } else { found.max(value) };
    }
    Ok(Scalar::Integer(found))
}

/// A random integer of `[min, max]`.
fn uniform(min: i64, max: i64, random: &mut Prng) -> Result<Scalar, UserError> {
    let invalid = |message| Err(UserError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
    if min > max {
        return invalid("empty range given to random");
    }
    // The number of values has to be a bigint as well.
    if max.checked_sub(min).and_then(|delta| delta.checked_add(1)).is_none() {
        return invalid("random range is too large");
    }
    Ok(Scalar::Integer(random.int64_range(min, max)))
}

fn is_double(scalar: &Scalar) -> bool {
    matches!(scalar, Scalar::Double(_))
}

/// `coerceToInt`: a double is rounded to the nearest integer, to the even one of two.
fn integer(scalar: Scalar) -> Result<i64, UserError> {
    /// 2⁶³, the first double above all bigints.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match scalar {
        Scalar::Integer(value) => Ok(value),
        Scalar::Double(value) => {
            let rounded = value.round_ties_even();
            if (-LIMIT..LIMIT).contains(&rounded) {
                return Ok(rounded as i64);
            }
            let message = format!("double to int overflow for {rounded:.6}");
            Err(UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
        other => Err(cannot_coerce(other, "int")),
    }
}

/// `coerceToDouble`.
fn double(scalar: Scalar) -> Result<f64, UserError> {
    match scalar {
        Scalar::Integer(value) => Ok(value as f64),
        Scalar::Double(value) => Ok(value),
        other => Err(cannot_coerce(other, "double")),
    }
}

#[cold]
fn cannot_coerce(scalar: Scalar, target: &str) -> UserError {
    let own = match scalar {
        Scalar::Null => "null",
        Scalar::Boolean(_) => "boolean",
        Scalar::Integer(_) => "int",
        Scalar::Double(_) => "double",
    };
    UserError::new(sqlstate::INVALID_PARAMETER_VALUE, format!("cannot coerce {own} to {target}"))
}

#[cold]
fn overflow(operation: &str) -> UserError {
    UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, format!("bigint {operation} out of range"))
}

#[cold]
fn undefined(name: &str) -> UserError {
    UserError::new(sqlstate::UNDEFINED_COLUMN, format!("undefined variable \"{name}\""))
}

#[cfg(test)]
mod tests;
