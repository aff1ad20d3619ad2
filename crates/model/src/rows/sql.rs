//! The SELECT that makes the same rows as a [`super::RowWriter`] of columns that their keys determine.

use super::{Derived, KeySelection, Lines, RowColumn, SYLLABLES};

/// A SELECT of the rows of the ids $1 … $2.
///
/// # Errors
/// The column that has no expression, as it draws random numbers or reads the clock.
pub fn select(columns: &[RowColumn], keys: &KeySelection) -> Result<String, RowColumn> {
    // What hashes are taken of.
    let hashed = if keys.lines.is_some() { "h" } else { "k" };
    let values = columns
        .iter()
        .map(|column| expression(column, hashed).ok_or_else(|| column.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(format!("SELECT {} FROM {}", values.join(", "), source(keys)))
}

/// Rows with the key `k` and, where keys have lines, the line `l` and `h`.
fn source(keys: &KeySelection) -> String {
    const IDS: &str = "SELECT generate_series($1, $2)";
    let KeySelection { take, of, first, lines } = keys;
    let keys = if *of == 1 {
        format!("({IDS} AS k) AS keys")
    } else {
        format!(
            "(SELECT (id - 1) / {take} * {of} + (id - 1) % {take} + {first} AS k FROM ({IDS} AS id) AS ids) AS keys"
        )
    };
    match lines {
        None => keys,
        Some(Lines { seed, least, most }) => {
            let count = uniform("k", *seed, *least, *most);
            format!(
                "(SELECT k, l, k * 16 + l AS h FROM (SELECT k, generate_series(1, {count}) AS l FROM {keys}) AS lines) AS rows"
            )
        }
    }
}

fn expression(column: &RowColumn, h: &str) -> Option<String> {
    Some(match column {
        RowColumn::Id4 | RowColumn::Id8 => "k".to_owned(),
        RowColumn::Group4(size) => format!("(k - 1) / {size} + 1"),
        RowColumn::Constant4(value) => value.to_string(),
        RowColumn::Constant8(value) => value.to_string(),
        RowColumn::Text(text) => literal(text),
        RowColumn::Now => "now()".to_owned(),
        RowColumn::ConstantDecimal(units, places) => {
            let digits = format!("{:0width$}", units.unsigned_abs(), width = usize::from(*places) + 1);
            let (whole, fraction) = digits.split_at(digits.len() - usize::from(*places));
            format!("{}{whole}.{fraction}", if *units < 0 { "-" } else { "" })
        }
        RowColumn::Null4 | RowColumn::NullTime => "NULL".to_owned(),
        RowColumn::Derived(derived) => derived_expression(derived, h),
        _ => return None,
    })
}

fn derived_expression(derived: &Derived, h: &str) -> String {
    match derived {
        Derived::Part4(1, modulus) => format!("(k - 1) % {modulus} + 1"),
        Derived::Part4(divisor, modulus) => format!("(k - 1) / {divisor} % {modulus} + 1"),
        Derived::Line4 => "l".to_owned(),
        Derived::Uniform4 { seed, least, most } => uniform(h, *seed, *least, *most),
        Derived::Lines4 { seed, least, most } => uniform("k", *seed, *least, *most),
        Derived::Shuffled4 { seed, size } => {
            let x = format!("((k - 1) % {size})");
            let shift = uniform(&format!("(k - 1) / {size}"), *seed, 0, size - 1);
            format!("({x} * 1667 + {x} * {x} * 30 + {shift}) % {size} + 1")
        }
        Derived::Decimal { seed, least, most, places } => {
            let unit = format!("0.{:0>width$}", 1, width = usize::from(*places));
            format!("({}) * {unit}", uniform(h, *seed, *least, *most))
        }
        Derived::Hex { seed, least, most } => hex(h, *seed, *least, *most),
        Derived::Original { seed, least, most } => {
            let text = hex(h, *seed, *least, *most);
            let (is_original, from) = (uniform(h, seed + 31, 1, 10), uniform(h, seed + 32, 0, 18));
            format!(
                "CASE WHEN {is_original} = 1 THEN overlay({text} PLACING 'ORIGINAL' FROM ({from} + 1)::integer) ELSE {text} END"
            )
        }
        Derived::Digits { seed, count, suffix } => {
            let number = uniform(h, *seed, 0, 10i64.pow(*count as u32) - 1);
            let digits = format!("lpad(({number})::text, {count}, '0')");
            if suffix.is_empty() { digits } else { format!("{digits} || {}", literal(suffix)) }
        }
        Derived::Capitals { seed } => {
            let number = uniform(h, *seed, 0, 26 * 26 - 1);
            format!("chr(65 + ({number})::integer / 26) || chr(65 + ({number})::integer % 26)")
        }
        Derived::Rare { seed, one_in, rare, usual } => {
            let number = uniform(h, *seed, 1, *one_in);
            format!("CASE WHEN {number} = 1 THEN {} ELSE {} END", literal(rare), literal(usual))
        }
        Derived::LastName { seed, size, constant } => last_name(h, *seed, *size, *constant),
    }
}

fn last_name(h: &str, seed: i64, size: i64, constant: i64) -> String {
    let syllables = format!("'{{{}}}'::text[]", SYLLABLES.join(","));
    let (low, high) = (uniform(h, seed, 0, 255), uniform(h, seed + 1, 0, 999));
    let number = format!(
        "CASE WHEN (k - 1) % {size} < 1000 THEN (k - 1) % {size} ELSE ((({low}) | ({high})) + {constant}) % 1000 END"
    );
    format!(
        "(SELECT ({syllables})[n / 100 + 1] || ({syllables})[n / 10 % 10 + 1] || ({syllables})[n % 10 + 1] \
         FROM (SELECT ({number})::integer AS n) AS number)"
    )
}

fn uniform(of: &str, seed: i64, least: i64, most: i64) -> String {
    format!("(hashint8extended({of}, {seed}) & {}) % {} + {least}", i64::MAX, most - least + 1)
}

fn hex(h: &str, seed: i64, least: i64, most: i64) -> String {
    const OF_HASH: i64 = 16;
    let words = (most + OF_HASH - 1) / OF_HASH;
    let digits = if words <= 4 {
        let words: Vec<String> =
            (1..=words).map(|n| format!("int8send(hashint8extended({h}, {}))", seed + n)).collect();
        format!("encode({}, 'hex')", words.join(" || "))
    } else {
        format!(
            "(SELECT string_agg(encode(int8send(hashint8extended({h}, {seed} + n)), 'hex'), '' ORDER BY n) FROM generate_series(1, {words}) AS n)"
        )
    };
    let length = if least == most {
        most.to_string()
    } else {
        format!("({})::integer", uniform(h, seed, least, most))
    };
    format!("left({digits}, {length})")
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
