//! Values as the bytes of a heap tuple.

/// The longest text in bytes: a header of one byte tells no more.
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
pub(super) fn put_long_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    let size = text.len() as u32 + 4;
    let header = if cfg!(target_endian = "little") { size << 2 } else { size };
    let from = put4(out, at, header.cast_signed());
    out[from..from + text.len()].copy_from_slice(text);
    from + text.len()
}

/// A numeric of so many units of the last of its decimal places, of which there are four at most: NumericShort of
/// utils/adt/numeric.c, whose digits are to the base of 10,000, without zeros at either end.
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
