//! Numbers as people read them: digits grouped by thousands, units, and no more digits than mean something.
//!
//! What is missing or not finite is a dash: a report never shows `NaN` or `inf`.

/// What stands for a value that there is not.
pub const MISSING: &str = "-";

/// The value, if there is one that can be shown.
pub fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// The sum of the values that can be shown; `None` where there is none.
pub fn sum(values: &[Option<f64>]) -> Option<f64> {
    values.iter().filter_map(|value| finite(*value)).reduce(|sum, value| sum + value)
}

/// Their mean.
pub fn mean(values: &[Option<f64>]) -> Option<f64> {
    let count = values.iter().filter(|value| finite(**value).is_some()).count();
    sum(values).map(|sum| sum / count as f64)
}

/// Groups the digits before the point by thousands.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, unsigned) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = unsigned.split_at(unsigned.find('.').unwrap_or(unsigned.len()));
    let mut text = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// A count.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A count that may be missing, or negative.
pub fn signed(value: Option<i64>) -> String {
    value.map_or(MISSING.to_owned(), |value| grouped(&value.to_string()))
}

/// A number with `decimals` digits after the point.
pub fn fixed(value: Option<f64>, decimals: usize) -> String {
    finite(value).map_or(MISSING.to_owned(), |value| {
        // Digits of larger numbers are unreadable.
        if value.abs() >= 1e18 {
            return format!("{value:.2e}");
        }
        let text = grouped(&format!("{value:.decimals$}"));
        // Not "-0.0".
        if text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.')) { text.replace('-', "") } else { text }
    })
}

/// A number with four digits that mean something, or more before the point.
pub fn significant(value: f64) -> String {
    let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    fixed(Some(value), (3.0 - magnitude).clamp(0.0, 12.0) as usize)
}

/// Rounds to five digits that mean something, or to all before the point.
pub fn rounded(value: f64) -> f64 {
    const DIGITS: usize = 5;
    let text = if value.abs() < 1e4 { format!("{value:.*e}", DIGITS - 1) } else { format!("{value:.0}") };
    text.parse().unwrap_or(value)
}

/// Transactions per second: a digit after the point only where it may matter.
pub fn tps(value: Option<f64>) -> String {
    fixed(value, if value.is_some_and(|value| value.abs() >= 1_000.0) { 0 } else { 1 })
}

/// Milliseconds, to the microsecond.
pub fn ms(value: Option<f64>) -> String {
    fixed(value, 3)
}

/// Microseconds: digits after the point only where they may matter.
pub fn us(value: Option<f64>) -> String {
    let decimals = match value.map_or(0.0, f64::abs) {
        size if size >= 1_000.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    fixed(value, decimals)
}

/// A value in milliseconds for a headline: three digits, with the unit that fits.
pub fn short_ms(value: Option<f64>) -> (String, &'static str) {
    let Some(value) = finite(value) else { return (MISSING.to_owned(), "ms") };
    let (value, unit) = match value.abs() {
        size if size >= 10_000.0 => (value / 1_000.0, "s"),
        size if size > 0.0 && size < 0.1 => (value * 1_000.0, "µs"),
        _ => (value, "ms"),
    };
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    (fixed(Some(value), decimals), unit)
}

/// Values in milliseconds that stand in one row: three digits, all with the unit that fits the greatest.
pub fn in_one_unit(values: &[Option<f64>]) -> (Vec<String>, &'static str) {
    let sizes = || values.iter().filter_map(|value| finite(*value)).map(f64::abs).filter(|size| *size > 0.0);
    let (least, greatest) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let (per_ms, unit) = match (least, greatest) {
        (least, greatest) if greatest >= 10_000.0 && least >= 10.0 => (1e-3, "s"),
        (_, greatest) if greatest > 0.0 && greatest < 1.0 => (1e3, "µs"),
        _ => (1.0, "ms"),
    };
    let shown = |value: &Option<f64>| {
        let value = finite(*value)? * per_ms;
        let decimals = match value.abs() {
            size if size >= 100.0 => 0,
            size if size >= 10.0 => 1,
            size if size >= 0.1 || size == 0.0 => 2,
            _ => 3,
        };
        Some(fixed(Some(value), decimals))
    };
    (values.iter().map(|value| shown(value).unwrap_or_else(|| MISSING.to_owned())).collect(), unit)
}

/// A timestamp as PostgreSQL writes it, to the second; any other text as it is.
pub fn to_the_second(timestamp: &str) -> String {
    let whole = timestamp.split_once('.').map_or(timestamp, |(whole, _)| whole);
    let is_timestamp = whole.len() >= 19
        && whole.bytes().enumerate().take(19).all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            10 => byte == b'T' || byte == b' ',
            13 | 16 => byte == b':',
            _ => byte.is_ascii_digit(),
        });
    match (is_timestamp, timestamp.split_at_checked(19)) {
        (true, Some((seconds, rest))) => {
            let zone = rest.strip_prefix('.').unwrap_or(rest);
            let zone =
                if zone == rest { rest } else { zone.trim_start_matches(|c: char| c.is_ascii_digit()) };
            seconds.replace('T', " ") + zone
        }
        _ => timestamp.to_owned(),
    }
}

/// A share of 1 as percent.
pub fn percent(share: Option<f64>) -> String {
    finite(share).map_or(MISSING.to_owned(), |share| fixed(Some(share * 100.0), 1) + " %")
}

/// Part of whole in percent, as pgbench computes it: 0 of nothing.
pub fn percent_of(part: u64, whole: u64) -> f64 {
    if whole > 0 { 100.0 * part as f64 / whole as f64 } else { 0.0 }
}

/// Bytes, in PostgreSQL's units of 1024.
pub fn bytes(value: Option<f64>) -> String {
    let Some(mut value) = finite(value) else { return MISSING.to_owned() };
    let mut unit = "bytes";
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        // 1023.95 would be shown as 1024.0.
        if value.abs() < 1_023.95 {
            break;
        }
        value /= 1_024.0;
        unit = larger;
    }
    format!("{} {unit}", fixed(Some(value), if unit == "bytes" { 0 } else { 1 }))
}

/// A span of time given in seconds.
pub fn duration(secs: f64) -> String {
    if !secs.is_finite() {
        return MISSING.to_owned();
    }
    if secs < 120.0 || secs.fract() != 0.0 {
        // As short as it can be, but not with the noise of a clock.
        let text = format!("{:.if_long$}", secs, if_long = if secs < 10.0 { 3 } else { 1 });
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        return if secs.abs() < 1e18 { format!("{} s", grouped(text)) } else { fixed(Some(secs), 0) + " s" };
    }
    let secs = secs as u64;
    let parts = [(secs / 3_600, "h"), (secs / 60 % 60, "min"), (secs % 60, "s")];
    let parts =
        parts.iter().filter(|(value, _)| *value > 0).map(|(value, unit)| format!("{} {unit}", count(*value)));
    parts.collect::<Vec<_>>().join(" ")
}

/// A number on an axis, short, with the unit that fits the axis's end: `0.5M`, `1M`.
pub fn compact(value: f64, end: f64) -> String {
    let (unit, name) = match end.abs() {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    // Ticks are multiples of round steps; what is past six digits is an error of floating point.
    let text = format!("{:.6}", value / unit);
    let text = grouped(text.trim_end_matches('0').trim_end_matches('.'));
    if value == 0.0 { "0".to_owned() } else { text + name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(signed(Some(-1_234)), "-1,234");
        assert_eq!(signed(None), "-");
        assert_eq!(fixed(Some(1_234_567.891), 2), "1,234,567.89");
        assert_eq!(fixed(Some(-0.01), 1), "0.0");
        assert_eq!(tps(Some(999.94)), "999.9");
        assert_eq!(tps(Some(123_456.7)), "123,457");
    }

    #[test]
    fn five_digits_are_left() {
        for (value, shown) in [
            (0.014433054945054945, "0.014433"),
            (1.0002499, "1.0002"),
            (-71.95744190476186, "-71.957"),
            (9999.96, "10000"),
            (123_456.7, "123457"),
            (1.234_567e-30, "0.0000000000000000000000000000012346"),
            (0.0, "0"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(rounded(value).to_string(), shown);
        }
    }

    #[test]
    fn what_is_not_finite_is_missing() {
        for value in [None, Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY)] {
            for text in
                [fixed(value, 3), tps(value), ms(value), short_ms(value).0, percent(value), bytes(value)]
            {
                assert_eq!(text, MISSING);
            }
        }
        assert_eq!(duration(f64::NAN), MISSING);
    }

    #[test]
    fn units_fit() {
        assert_eq!(bytes(Some(1_023.0)), "1,023 bytes");
        assert_eq!(bytes(Some(1_024.0)), "1.0 kB");
        assert_eq!(bytes(Some(1_048_570.0)), "1.0 MB");
        assert_eq!(bytes(Some(-3.5 * 1024.0 * 1024.0)), "-3.5 MB");
        assert_eq!(
            bytes(Some(1e30)),
            "887,623,689,420,822.2 PB"
                .replace("887,623,689,420,822.2", &fixed(Some(1e30 / 1024f64.powi(5)), 1))
        );
        assert_eq!(short_ms(Some(0.0421)), ("42.1".to_owned(), "µs"));
        assert_eq!(short_ms(Some(4.217)), ("4.22".to_owned(), "ms"));
        assert_eq!(short_ms(Some(12_345.0)), ("12.3".to_owned(), "s"));
        assert_eq!(percent(Some(0.1234)), "12.3 %");
        assert_eq!(percent_of(1, 0), 0.0);
    }

    #[test]
    fn a_row_has_one_unit() {
        let row = |values: &[f64]| {
            let (shown, unit) = in_one_unit(&values.iter().map(|value| Some(*value)).collect::<Vec<_>>());
            shown.join(" ") + " " + unit
        };
        assert_eq!(row(&[0.0412, 0.101, 0.99]), "41.2 101 990 µs");
        assert_eq!(row(&[0.0412, 0.412, 4.217]), "0.041 0.41 4.22 ms");
        assert_eq!(row(&[12.0, 12_345.0]), "0.012 12.3 s");
        assert_eq!(row(&[0.5, 12_345.0]), "0.50 12,345 ms");
        assert_eq!(in_one_unit(&[None, Some(0.0)]), (vec![MISSING.to_owned(), "0.00".to_owned()], "ms"));
    }

    #[test]
    fn timestamps_end_at_the_second() {
        for (given, shown) in [
            ("2026-11-23T08:29:24.123456+00:00", "2026-11-23 08:29:24+00:00"),
            ("2026-11-23T08:29:24+05:30", "2026-11-23 08:29:24+05:30"),
            ("2026-11-23T08:29:24.5", "2026-11-23 08:29:24"),
            ("2026-11-21 22:03:17.482913+00", "2026-11-21 22:03:17+00"),
            ("yesterday", "yesterday"),
            ("2026-11-23Tнеделя", "2026-11-23Tнеделя"),
        ] {
            assert_eq!(to_the_second(given), shown);
        }
    }

    #[test]
    fn microseconds_have_the_digits_that_matter() {
        for (value, shown) in
            [(0.0, "0.00"), (8.914, "8.91"), (23.06, "23.1"), (999.96, "1,000.0"), (1_234.5, "1,234")]
        {
            assert_eq!(us(Some(value)), shown);
        }
        assert_eq!((us(None), us(Some(f64::NAN))), ("-".to_owned(), "-".to_owned()));
    }

    #[test]
    fn durations_and_ticks_are_short() {
        assert_eq!(duration(0.5), "0.5 s");
        assert_eq!(duration(60.0), "60 s");
        assert_eq!(duration(100.0), "100 s");
        assert_eq!(duration(600.0), "10 min");
        assert_eq!(duration(28_815.0), "8 h 15 s");
        assert_eq!(duration(600.004), "600 s");
        assert_eq!(compact(0.0, 0.0), "0");
        assert_eq!(compact(2_500.0, 2_500.0), "2,500");
        assert_eq!(compact(12_500.0, 12_500.0), "12.5k");
        assert_eq!(compact(7_500.0, 12_500.0), "7.5k");
        assert_eq!(compact(0.30000000000000004, 0.30000000000000004), "0.3");
    }
}
