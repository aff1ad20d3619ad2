//! Numbers as text and texts as numbers, as pgbench's C does both.

/// A double precision number as pgbench shows it and sends it: C's `%.15g` (`DBL_DIG` digits), but infinities
/// are "Infinity" and "-Infinity" and what is no number is "NaN", as PostgreSQL's own snprintf.c has it
/// everywhere.
pub fn format_double(value: f64) -> String {
    /// What `%g` shows at most.
    const DIGITS: i32 = 15;
    if !value.is_finite() {
        return format_non_finite(value).to_owned();
    }
    // One digit before the point and 14 after it; the exponent is that of the rounded number.
    let scientific = format!("{value:.14e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent) as usize;
        return without_trailing_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

/// C's `%f`, with PostgreSQL's infinities as above: how pgbench's messages show numbers.
pub(crate) fn format_fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { format_non_finite(value).to_owned() }
}

fn format_non_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// The decimal number without the zeros at the end of its fraction, and without the point if nothing follows
/// it.
fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A double precision number; `None` for what is none, overflows or underflows (`strtodouble` in pgbench.c).
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let (sign, magnitude) = match text.strip_prefix(['+', '-']) {
        Some(magnitude) if text.starts_with('-') => (-1.0, magnitude),
        Some(magnitude) => (1.0, magnitude),
        None => (1.0, text),
    };
    // Only one sign.
    if magnitude.starts_with(['+', '-']) {
        return None;
    }
    if let Some(digits) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        return parse_hexadecimal(digits).map(|value| sign * value);
    }
    let value: f64 = magnitude.parse().ok()?;
    // Written with a digit other than 0 before the exponent, a number is neither infinite nor zero. C's
    // strtod reports the loss of precision of subnormal ones as well.
    let mantissa = magnitude.split(['e', 'E']).next().unwrap_or(magnitude);
    let out_of_range = !value.is_normal() && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (!out_of_range).then_some(sign * value)
}

/// What follows the 0x of a hexadecimal number: digits with a point among them, and behind a `p` a power of
/// two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    /// Beyond these all numbers are out of range, and what is added to them does not overflow.
    const EXPONENTS: std::ops::RangeInclusive<i64> = -1_000_000..=1_000_000;
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (text, "0"),
    };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let negative = exponent.starts_with('-');
    let magnitude = digits.parse().unwrap_or(i64::MAX).min(*EXPONENTS.end());
    let mut exponent = if negative { -magnitude } else { magnitude };

    let (mut value, mut any_digit, mut behind_point) = (0_u64, false, false);
    for character in mantissa.chars() {
        if character == '.' && !behind_point {
            behind_point = true;
            continue;
        }
        let digit = u64::from(character.to_digit(16)?);
        any_digit = true;
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent -= if behind_point { 4 } else { 0 };
        } else {
            // Far below what is rounded away; but a digit other than 0 decides a tie.
            value |= u64::from(digit != 0);
            exponent += if behind_point { 0 } else { 4 };
        }
    }
    if !any_digit {
        return None;
    }
    if value == 0 {
        return Some(0.0);
    }
    // In steps that are exact, unless the result is out of range.
    let mut scaled = value as f64;
    exponent = exponent.clamp(*EXPONENTS.start(), *EXPONENTS.end());
    while exponent != 0 && scaled.is_normal() {
        let step = exponent.clamp(-1000, 1000);
        scaled *= 2_f64.powi(step as i32);
        exponent -= step;
    }
    scaled.is_normal().then_some(scaled)
}

#[cfg(test)]
mod tests;
