//! What a function makes of an argument of another type.

use bench_base::error::{UserError, sqlstate};

use crate::variables::{Scalar, format_fixed};

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
    let own = match scalar {
        Scalar::Null => "null",
        Scalar::Boolean(_) => "boolean",
        Scalar::Integer(_) => "int",
        Scalar::Double(_) => "double",
    };
    UserError::invalid(format!("cannot coerce {own} to {target}")).into()
}
