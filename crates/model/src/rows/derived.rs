//! Values that a row's key determines, by arithmetic and by the server's hash, and their bytes in a tuple: each is what its SQL
//! expression gives.

use serde::{Deserialize, Serialize};

use super::{Key, hash, uniform};

/// A value that the key determines. In the expressions, `k` is the key, `l` its line, `h` is `k` or, where keys have
/// lines, `k * 16 + l`, and `U(h, seed, least, most)` is [`uniform`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Derived {
    /// An integer: `(k - 1) / divisor % modulus + 1`.
    Part4(i64, i64),
    /// The line's number as an integer.
    Line4,
    /// An integer: `U(h, seed, least, most)`.
    Uniform4 { seed: i64, least: i64, most: i64 },
    /// The number of lines that a key has, as an integer: `U(k, seed, least, most)`.
    Lines4 { seed: i64, least: i64, most: i64 },
    /// An integer: each of 1 to `size` once for `size` keys in sequence, in an order of its own, which is
    /// `((x * 1667 + x * x * 30) + U(g, seed, 0, size - 1)) % size + 1` with `x = (k - 1) % size` and
    /// `g = (k - 1) / size`. A size with no other prime factors than 2, 3 and 5 makes that a permutation (Rivest,
    /// Permutation polynomials modulo 2^w, and its like for other primes).
    Shuffled4 { seed: i64, size: i64 },
    /// A numeric with `places` decimal places: `U(h, seed, least, most)` units of the last one.
    Decimal { seed: i64, least: i64, most: i64, places: u8 },
    /// A text of hexadecimal digits, `U(h, seed, least, most)` of them: the hashes with the seeds after this one.
    Hex { seed: i64, least: i64, most: i64 },
    /// As [`Self::Hex`], which is of 26 digits at least; one in ten has `ORIGINAL` in it.
    Original { seed: i64, least: i64, most: i64 },
    /// A text of `count` decimal digits, 18 at most, and the suffix.
    Digits { seed: i64, count: usize, suffix: String },
    /// A text of two capital letters.
    Capitals { seed: i64 },
    /// A text: `rare` in one row of `one_in`, else `usual`.
    Rare { seed: i64, one_in: i64, rare: String, usual: String },
    /// A last name of TPC-C 4.3.2.3: three syllables for the digits of a number below 1000. That is
    /// `(k - 1) % size` where it is below 1000, and else by NURand(255, 0, 999) with this constant (2.1.6).
    LastName { seed: i64, size: i64, constant: i64 },
}

/// Hexadecimal digits of a hash.
const DIGITS_OF_HASH: usize = 16;

/// Hexadecimal digits that a text has at most.
const MAX_HEX: usize = 512;

/// What stands in one of ten texts of [`Derived::Original`].
const ORIGINAL: &[u8] = b"ORIGINAL";

/// The syllables of last names: TPC-C 4.3.2.3.
pub const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

impl Derived {
    /// Whether all values take as many bytes.
    pub(super) fn is_fixed(&self) -> bool {
        match self {
            Self::Hex { least, most, .. } => least == most,
            Self::Rare { rare, usual, .. } => rare.len() == usual.len(),
            Self::Decimal { .. } | Self::Original { .. } | Self::LastName { .. } => false,
            _ => true,
        }
    }

    /// Whether it is of a type of variable width.
    pub(super) fn has_variable_width(&self) -> bool {
        !self.is_integer()
    }

    /// Whether it is an integer; [`Self::is_decimal`] are numeric, others texts.
    pub fn is_integer(&self) -> bool {
        matches!(
            self,
            Self::Part4(..)
                | Self::Line4
                | Self::Uniform4 { .. }
                | Self::Lines4 { .. }
                | Self::Shuffled4 { .. }
        )
    }

    /// Whether it is a numeric.
    pub fn is_decimal(&self) -> bool {
        matches!(self, Self::Decimal { .. })
    }

    /// The most bytes that a value takes, with the gap before it.
    pub(super) fn longest(&self) -> usize {
        match self {
            // A header of four bytes at its alignment.
            Self::Hex { most, .. } | Self::Original { most, .. } => 7 + *most as usize,
            Self::Digits { count, suffix, .. } => 1 + count + suffix.len(),
            Self::Rare { rare, usual, .. } => 1 + rare.len().max(usual.len()),
            Self::LastName { .. } => 1 + 15,
            Self::Decimal { .. } => 16,
            _ => 8,
        }
    }

    /// Writes a row's value behind `at`; where it ends.
    #[inline]
    pub(super) fn put(&self, key: Key, out: &mut [u8], at: usize) -> usize {
        let id = key.id;
        let hashed = key.hashed();
        match *self {
            Self::Part4(divisor, modulus) => put4(out, at, ((id - 1) / divisor % modulus + 1) as i32),
            Self::Line4 => put4(out, at, key.line as i32),
            Self::Uniform4 { seed, least, most } => put4(out, at, uniform(hashed, seed, least, most) as i32),
            Self::Lines4 { seed, least, most } => put4(out, at, uniform(id, seed, least, most) as i32),
            Self::Shuffled4 { seed, size } => {
                let x = (id - 1) % size;
                let shift = uniform((id - 1) / size, seed, 0, size - 1);
                put4(out, at, ((x * 1667 + x * x * 30 + shift) % size + 1) as i32)
            }
            Self::Decimal { seed, least, most, places } => {
                put_decimal(out, at, uniform(hashed, seed, least, most), places)
            }
            Self::Hex { seed, least, most } => {
                let mut text = [0; MAX_HEX];
                put_any_text(out, at, hex(hashed, seed, least, most, &mut text))
            }
            Self::Original { seed, least, most } => {
                let mut text = [0; MAX_HEX];
                let length = hex(hashed, seed, least, most, &mut text).len();
                if uniform(hashed, seed + 31, 1, 10) == 1 {
                    let from = uniform(hashed, seed + 32, 0, 18) as usize;
                    text[from..from + ORIGINAL.len()].copy_from_slice(ORIGINAL);
                }
                put_any_text(out, at, &text[..length])
            }
            Self::Digits { seed, count, ref suffix } => {
                let mut text = [b'0'; 18];
                let mut rest = uniform(hashed, seed, 0, 10i64.pow(count as u32) - 1);
                for digit in text[..count].iter_mut().rev() {
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                let end = put_text(out, at, &[&text[..count], suffix.as_bytes()].concat());
                debug_assert_eq!(end, at + 1 + count + suffix.len());
                end
            }
            Self::Capitals { seed } => {
                let number = uniform(hashed, seed, 0, 26 * 26 - 1);
                put_text(out, at, &[b'A' + (number / 26) as u8, b'A' + (number % 26) as u8])
            }
            Self::Rare { seed, one_in, ref rare, ref usual } => {
                let is_rare = uniform(hashed, seed, 1, one_in) == 1;
                put_text(out, at, if is_rare { rare } else { usual }.as_bytes())
            }
            Self::LastName { seed, size, constant } => {
                let place = (id - 1) % size;
                let number = if place < 1000 {
                    place
                } else {
                    ((uniform(hashed, seed, 0, 255) | uniform(hashed, seed + 1, 0, 999)) + constant) % 1000
                };
                let mut name = [0; 15];
                let mut length = 0;
                for digit in [number / 100, number / 10 % 10, number % 10] {
                    let syllable = SYLLABLES[digit as usize].as_bytes();
                    name[length..length + syllable.len()].copy_from_slice(syllable);
                    length += syllable.len();
                }
                put_text(out, at, &name[..length])
            }
        }
    }
}

/// The digits of a text of that many at most.
#[inline]
fn hex(hashed: i64, seed: i64, least: i64, most: i64, text: &mut [u8; MAX_HEX]) -> &[u8] {
    let length = if least == most { most } else { uniform(hashed, seed, least, most) } as usize;
    for (number, digits) in (1..).zip(text[..length.next_multiple_of(DIGITS_OF_HASH)].chunks_exact_mut(16)) {
        let word = hash(hashed, seed + number).cast_unsigned();
        digits.copy_from_slice(&hexadecimal(word));
    }
    &text[..length]
}

#[inline]
fn put_any_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    if text.len() <= MAX_TEXT { put_text(out, at, text) } else { put_long_text(out, at, text) }
}

/// The longest text in bytes with a header of one byte.
pub const MAX_TEXT: usize = 126;

#[inline]
pub(super) fn put4(out: &mut [u8], at: usize, value: i32) -> usize {
    let from = at.next_multiple_of(4);
    out[at..from].fill(0);
    out[from..from + 4].copy_from_slice(&value.to_ne_bytes());
    from + 4
}

#[inline]
pub(super) fn put8(out: &mut [u8], at: usize, value: i64) -> usize {
    let from = at.next_multiple_of(8);
    out[at..from].fill(0);
    out[from..from + 8].copy_from_slice(&value.to_ne_bytes());
    from + 8
}

#[inline]
pub(super) fn put_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    out[at] = short_header(text.len());
    out[at + 1..at + 1 + text.len()].copy_from_slice(text);
    at + 1 + text.len()
}

/// SET_VARSIZE_SHORT of varatt.h (postgres.h before 16): the length with the header, and the bit that says so.
#[inline]
pub(super) fn short_header(length: usize) -> u8 {
    let with_header = length as u8 + 1;
    if cfg!(target_endian = "little") { with_header << 1 | 1 } else { with_header | 0x80 }
}

/// Writes a number that is not negative; how many digits it has.
#[inline]
pub(super) fn put_digits(out: &mut [u8], at: usize, number: i64) -> usize {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let count = digits.len() - first;
    out[at..at + count].copy_from_slice(&digits[first..]);
    count
}

/// The sixteen digits of a number.
#[inline]
pub(super) fn hexadecimal(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}

/// AdjustTimestampForTypmod for timestamp(0) (utils/adt/timestamp.c): a half goes away from 2000.
#[inline]
pub(super) fn round_to_seconds(us: i64) -> i64 {
    const SECOND: i64 = 1_000_000;
    let away = if us >= 0 { SECOND / 2 } else { -SECOND / 2 };
    (us + away) / SECOND * SECOND
}

/// A text too long for a header of one byte: SET_VARSIZE_4B of varatt.h, at the alignment of an integer.
#[inline]
fn put_long_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    let size = text.len() as u32 + 4;
    let header = if cfg!(target_endian = "little") { size << 2 } else { size };
    let from = put4(out, at, header.cast_signed());
    out[from..from + text.len()].copy_from_slice(text);
    from + text.len()
}

/// Writes a numeric of `units` of the last of its decimal places, at most four: NumericShort of utils/adt/numeric.c, whose digits are to the base of 10,000, without zeros at either end.
#[inline]
pub(super) fn put_decimal(out: &mut [u8], at: usize, units: i64, places: u8) -> usize {
    const SHORT: u16 = 0x8000;
    const NEGATIVE: u16 = 0x2000;
    const BASE: u64 = 10_000;
    let mut rest = units.unsigned_abs() * 10u64.pow(4 - u32::from(places));
    // From the last one; that is the only one behind the decimal point, the others weigh 0, 1 and so on.
    let mut digits = [0u16; 6];
    let mut count = 0;
    while rest > 0 {
        digits[count] = (rest % BASE) as u16;
        rest /= BASE;
        count += 1;
    }
    let last = digits[..count].iter().position(|digit| *digit > 0).unwrap_or(count);
    let weight = if count > 0 { count as i32 - 2 } else { 0 };
    let sign = if units < 0 { NEGATIVE } else { 0 };
    // The weight is of seven bits, in two's complement.
    let header = SHORT | sign | u16::from(places) << 7 | (weight as u16 & 0x7F);
    let mut end = at + 1;
    for word in std::iter::once(header).chain(digits[last..count].iter().rev().copied()) {
        out[end..end + 2].copy_from_slice(&word.to_ne_bytes());
        end += 2;
    }
    out[at] = short_header(end - at - 1);
    end
}
