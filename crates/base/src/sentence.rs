//! Numbers and lists within a sentence: rounded to two digits, with their units. Tables show more digits: [`crate::number`].

use crate::number;

/// A megabyte as PostgreSQL counts it (pg_size_pretty).
pub const MEGABYTE: f64 = 1_048_576.0;

/// A share of 1 as a percentage: "31 %", below 10 with a digit more.
pub fn percent(share: f64) -> String {
    let percentage = share * 100.0;
    if percentage != 0.0 && percentage.abs() < 9.95 {
        let rounded = format!("{percentage:.1}");
        format!("{} %", rounded.strip_suffix(".0").unwrap_or(&rounded))
    } else {
        format!("{percentage:.0} %")
    }
}

/// Seconds: "2.4 s", "31 s".
pub fn seconds(secs: f64) -> String {
    if secs.abs() < 9.95 { format!("{secs:.1} s") } else { format!("{} s", grouped(secs)) }
}

/// Milliseconds: "0.25 ms", "12 ms"; from a second on as seconds.
pub fn milliseconds(ms: f64) -> String {
    if ms >= 1000.0 { seconds(ms / 1000.0) } else { format!("{} ms", figure(ms)) }
}

/// A number of any size: two significant digits, thousands in groups.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if size >= 9.95 || size == 0.0 {
        grouped(value)
    } else if size >= 0.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A whole number in groups of three: "1,234".
pub fn grouped(value: f64) -> String {
    let text = number::grouped(&format!("{value:.0}"));
    if text == "-0" { "0".to_owned() } else { text }
}

/// A number with its noun: "1 table", "1,234 tables".
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as f64), if count == 1 { "" } else { "s" })
}

/// "a", "a and b", "a, b and c".
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// As [`listed`], the first three only, and how many more there are.
pub fn first_few(items: &[String]) -> String {
    const SHOWN: usize = 3;
    if items.len() <= SHOWN + 1 {
        return listed(items);
    }
    format!("{} and {} more", items[..SHOWN].join(", "), items.len() - SHOWN)
}

/// A line of text, cut to 60 characters for use in a sentence.
pub fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MOST {
        return line;
    }
    let kept: String = line.chars().take(MOST - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_what_matters() {
        for (shown, expected) in [
            (percent(0.312), "31 %"),
            (percent(0.05), "5 %"),
            (percent(0.0123), "1.2 %"),
            (percent(0.0), "0 %"),
            (seconds(2.44), "2.4 s"),
            (seconds(31.2), "31 s"),
            (milliseconds(0.254), "0.25 ms"),
            (milliseconds(2400.0), "2.4 s"),
            (figure(1234.4), "1,234"),
            (figure(0.02), "0.02"),
            (figure(3.12), "3.1"),
            (grouped(1_234_567.0), "1,234,567"),
            (grouped(-1234.0), "-1,234"),
            (grouped(f64::NAN), "NaN"),
            (counted(1, "table"), "1 table"),
            (counted(2, "table"), "2 tables"),
            (first_few(&["a", "b", "c", "d", "e"].map(String::from)), "a, b, c and 2 more"),
            (listed(&["a", "b"].map(String::from)), "a and b"),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
