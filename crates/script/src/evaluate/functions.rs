//! Operators and functions of values (`evalStandardFunc` in pgbench.c). Most give null if an argument is
//! null.

use bench_base::error::{UserError, sqlstate};

use super::coerce::{boolean, double, integer};
use crate::expression::{Extremum, Integral, Overloaded, Ternary, Unary};
use crate::prng::Prng;
use crate::random;
use crate::random::IntegerRange;
use crate::variables::{Scalar, format_double};
use crate::{hash, permute};

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

/// What `debug` shows of a value: its type and the value.
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
        // pgbench leaves the overflow to C, where it has no meaning.
        Scalar::Integer(value) => value.checked_abs().map(Scalar::Integer).ok_or_else(|| overflow("abs")),
        // Not f64's abs: the sign of -0 stays, as in pgbench.
        other => double(other).map(|value| Scalar::Double(if value < 0.0 { -value } else { value })),
    }
}

/// Calls what computes with doubles if one of its operands is a double, otherwise with integers.
#[inline]
pub fn overloaded(function: Overloaded, left: Scalar, right: Scalar) -> Result<Scalar, Box<UserError>> {
    match (left, right) {
        (Scalar::Integer(left), Scalar::Integer(right)) => of_integers(function, left, right),
        (Scalar::Null, _) | (_, Scalar::Null) => Ok(Scalar::Null),
        (Scalar::Double(_), _) | (_, Scalar::Double(_)) => {
            Ok(of_doubles(function, double(left)?, double(right)?))
        }
        _ => of_integers(function, integer(left)?, integer(right)?),
    }
}

#[inline]
fn of_integers(function: Overloaded, left: i64, right: i64) -> Result<Scalar, Box<UserError>> {
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

fn of_doubles(function: Overloaded, left: f64, right: f64) -> Scalar {
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

/// Calls what computes with integers only.
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
        // The rest of a division by -1 is 0, even where the quotient is out of range.
        Integral::Modulo => left.wrapping_rem(right),
        Integral::BitAnd => left & right,
        Integral::BitOr => left | right,
        Integral::BitXor => left ^ right,
        // By the lowest six bits of the distance: what processors do, and so pgbench, whose C does not say.
        Integral::ShiftLeft => left.wrapping_shl(right as u32),
        Integral::ShiftRight => left.wrapping_shr(right as u32),
        Integral::HashFnv1a => hash::fnv1a(left, right),
        Integral::HashMurmur2 => hash::murmur2(left, right),
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
            return Ok(Scalar::Integer(permute::permute(first, second, seed)));
        }
        Ternary::RandomExponential => random::exponential,
        Ternary::RandomGaussian => random::gaussian,
        Ternary::RandomZipfian => random::zipfian,
    };
    let range = IntegerRange::new(first, second)?;
    Ok(Scalar::Integer(distribution(random, range, double(third)?)?))
}

/// The least or greatest argument, as a double if one of them is a double; null if one is null, or if there
/// is none.
pub fn extremum(which: Extremum, arguments: &[Scalar]) -> Result<Scalar, Box<UserError>> {
    if arguments.contains(&Scalar::Null) {
        return Ok(Scalar::Null);
    }
    let Some((&first, rest)) = arguments.split_first() else { return Ok(Scalar::Null) };
    let least = which == Extremum::Least;
    if arguments.iter().any(|argument| matches!(argument, Scalar::Double(_))) {
        let mut found = double(first)?;
        for &argument in rest {
            let value = double(argument)?;
            // C's Min and Max: where one of the two is not a number, the later one stays.
            let keeps = if least { found < value } else { found > value };
            found = if keeps { found } else { value };
        }
        return Ok(Scalar::Double(found));
    }
    let mut found = integer(first)?;
    for &argument in rest {
        let value = integer(argument)?;
        found = if least { found.min(value) } else { found.max(value) };
    }
    Ok(Scalar::Integer(found))
}

#[cold]
fn overflow(operation: &str) -> Box<UserError> {
    UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, format!("bigint {operation} out of range")).into()
}

#[cold]
fn division_by_zero() -> Box<UserError> {
    UserError::new(sqlstate::DIVISION_BY_ZERO, "division by zero").into()
}
