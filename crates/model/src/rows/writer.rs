//! Rows as tuples, and the SELECT that gives the same rows.

use bench_script::Prng;
use serde::{Deserialize, Serialize};

use super::derived::{
    Derived, MAX_TEXT, SYLLABLES, hexadecimal, put_decimal, put_digits, put_text, put4, put8,
    round_to_seconds, short_header,
};
use super::{Key, KeySelection, Lines};

/// What a column holds in the row of an id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RowColumn {
    /// The id as an integer, which it must fit.
    Id4,
    /// The id as a bigint.
    Id8,
    /// The number of the group that the id is in, counted from 1, as an integer; with the number of ids in a group.
    Group4(i64),
    /// An integer.
    Constant4(i32),
    /// A uniformly random integer, from the first to the second, both included.
    Uniform4(i32, i32),
    /// A bigint.
    Constant8(i64),
    /// A text of at most [`MAX_TEXT`] bytes.
    Text(String),
    /// Blanks, at most [`MAX_TEXT`]: an empty text in a column of type char(n).
    Blanks(usize),
    /// The id's decimal digits and then this: at most [`MAX_TEXT`] bytes.
    IdText(String),
    /// 32 random hexadecimal digits: what the md5 of a random number is.
    RandomHex,
    /// When the row was made, with time zone.
    Clock,
    /// When the row was made, without time zone.
    LocalClock,
    /// When the row was made, without time zone, rounded to seconds.
    LocalClockSeconds,
    /// The transaction's begin, with time zone: now().
    Now,
    /// The transaction's begin as text: now()::text.
    NowText,
    /// A numeric: units of the last decimal place, and the number of decimal places.
    ConstantDecimal(i64, u8),
    /// No integer.
    Null4,
    /// No time.
    NullTime,
    /// What the key determines.
    Derived(Derived),
}

impl RowColumn {
    /// Whether there is no value in any row.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null4 | Self::NullTime)
    }

    /// Whether all values take as many bytes.
    fn is_fixed(&self) -> bool {
        match self {
            Self::IdText(_) => false,
            Self::Derived(derived) => derived.is_fixed(),
            _ => true,
        }
    }

    /// Whether it is the same in every row of a transaction.
    fn is_constant(&self) -> bool {
        matches!(
            self,
            Self::Constant4(_)
                | Self::Constant8(_)
                | Self::Text(_)
                | Self::Blanks(_)
                | Self::Now
                | Self::NowText
                | Self::ConstantDecimal(..)
                | Self::Null4
                | Self::NullTime
        )
    }
}

/// A key for values that do not depend on it.
const FIRST: Key = Key { id: 1, line: 0 };

/// The transaction's share of a row.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// now(), in microseconds since 2000.
    pub now_us: i64,
    /// now()::text.
    pub now_text: String,
    /// Local time less UTC in microseconds.
    pub local_offset_us: i64,
}

/// Rows of one kind.
#[derive(Clone, Debug)]
pub struct RowWriter {
    /// What is the same in every row, and stands at the same place: written once.
    constant: Vec<(usize, RowColumn)>,
    /// What differs from row to row and stands at the same place.
    varying: Vec<(usize, RowColumn)>,
    /// Where the first value of a length that differs begins, and all columns from there on.
    tail_at: usize,
    tail: Vec<RowColumn>,
    scene: Scene,
}

impl RowWriter {
    /// # Errors
    /// The text that is too long.
    pub fn new(columns: &[RowColumn], scene: Scene) -> Result<Self, String> {
        let too_long = columns.iter().find_map(|column| match column {
            RowColumn::Text(text) => (text.len() > MAX_TEXT).then(|| text.clone()),
            RowColumn::Blanks(count) => (*count > MAX_TEXT).then(|| " ".repeat(*count)),
            RowColumn::IdText(suffix) => (suffix.len() > MAX_TEXT - 20).then(|| suffix.clone()),
            RowColumn::NowText => (scene.now_text.len() > MAX_TEXT).then(|| scene.now_text.clone()),
            _ => None,
        });
        if let Some(text) = too_long {
            return Err(text);
        }
        let fixed = columns.iter().take_while(|column| column.is_fixed()).count();
        let tail = columns[fixed..].to_vec();
        let mut writer = Self { constant: Vec::new(), varying: Vec::new(), tail_at: 0, tail, scene };
        let mut scratch = vec![0; columns[..fixed].iter().map(|column| writer.longest(column)).sum()];
        for column in &columns[..fixed] {
            let place = (writer.tail_at, column.clone());
            writer.tail_at =
                writer.put(column, FIRST, 0, &mut Prng::from_seed(0), &mut scratch, writer.tail_at);
            if column.is_constant() { &mut writer.constant } else { &mut writer.varying }.push(place);
        }
        Ok(writer)
    }

    fn columns(&self) -> impl Iterator<Item = &RowColumn> {
        self.constant.iter().chain(&self.varying).map(|(_, column)| column).chain(&self.tail)
    }

    /// Whether a row has values of variable width, as HEAP_HASVARWIDTH has it.
    pub fn has_variable_width(&self) -> bool {
        self.columns().any(|column| match column {
            RowColumn::Text(_)
            | RowColumn::Blanks(_)
            | RowColumn::IdText(_)
            | RowColumn::RandomHex
            | RowColumn::NowText
            | RowColumn::ConstantDecimal(..) => true,
            RowColumn::Derived(derived) => derived.has_variable_width(),
            _ => false,
        })
    }

    /// Whether rows say when they were made.
    pub fn needs_clock(&self) -> bool {
        self.columns().any(|column| {
            matches!(column, RowColumn::Clock | RowColumn::LocalClock | RowColumn::LocalClockSeconds)
        })
    }

    /// The length that no row exceeds, in bytes.
    pub fn max_length(&self) -> usize {
        self.columns().map(|column| self.longest(column)).sum()
    }

    /// With the gap before it.
    fn longest(&self, column: &RowColumn) -> usize {
        const DIGITS: usize = 19;
        match column {
            RowColumn::Text(text) => 1 + text.len(),
            RowColumn::Blanks(count) => 1 + count,
            RowColumn::IdText(suffix) => 1 + DIGITS + suffix.len(),
            RowColumn::NowText => 1 + self.scene.now_text.len(),
            RowColumn::RandomHex => 33,
            RowColumn::ConstantDecimal(..) => 16,
            RowColumn::Derived(derived) => derived.longest(),
            _ => 15,
        }
    }

    /// Prepares a buffer of [`Self::max_length`] bytes at an alignment of eight, for [`Self::write`] to write one
    /// row after the other into it.
    pub fn prepare(&self, out: &mut [u8]) {
        out.fill(0);
        for (at, column) in &self.constant {
            self.put(column, FIRST, 0, &mut Prng::from_seed(0), out, *at);
        }
    }

    /// Writes the row of a key, made at a time in microseconds since 2000 (UTC), into a buffer that
    /// [`Self::prepare`] has seen; the row's length.
    #[inline]
    pub fn write(&self, key: Key, clock_us: i64, random: &mut Prng, out: &mut [u8]) -> usize {
        for (at, column) in &self.varying {
            self.put(column, key, clock_us, random, out, *at);
        }
        let mut at = self.tail_at;
        for column in &self.tail {
            at = self.put(column, key, clock_us, random, out, at);
        }
        at
    }

    /// Writes a value behind `at`; where it ends.
    #[inline]
    fn put(
        &self,
        column: &RowColumn,
        key: Key,
        clock_us: i64,
        random: &mut Prng,
        out: &mut [u8],
        at: usize,
    ) -> usize {
        let id = key.id;
        match column {
            RowColumn::Id4 => put4(out, at, id as i32),
            RowColumn::Id8 => put8(out, at, id),
            RowColumn::Group4(size) => put4(out, at, ((id - 1) / size + 1) as i32),
            RowColumn::Constant4(value) => put4(out, at, *value),
            RowColumn::Uniform4(least, most) => {
                put4(out, at, random.int64_range((*least).into(), (*most).into()) as i32)
            }
            RowColumn::Constant8(value) => put8(out, at, *value),
            RowColumn::Text(text) => put_text(out, at, text.as_bytes()),
            RowColumn::Blanks(count) => put_text(out, at, &[b' '; MAX_TEXT][..*count]),
            RowColumn::NowText => put_text(out, at, self.scene.now_text.as_bytes()),
            RowColumn::IdText(suffix) => {
                let digits = put_digits(out, at + 1, id);
                let length = digits + suffix.len();
                out[at] = short_header(length);
                out[at + 1 + digits..at + 1 + length].copy_from_slice(suffix.as_bytes());
                at + 1 + length
            }
            RowColumn::RandomHex => {
                out[at] = short_header(32);
                for half in 0..2 {
                    let from = at + 1 + 16 * half;
                    out[from..from + 16].copy_from_slice(&hexadecimal(random.next_u64()));
                }
                at + 33
            }
            RowColumn::Clock => put8(out, at, clock_us),
            RowColumn::LocalClock => put8(out, at, clock_us + self.scene.local_offset_us),
            RowColumn::LocalClockSeconds => {
                put8(out, at, round_to_seconds(clock_us + self.scene.local_offset_us))
            }
            RowColumn::Now => put8(out, at, self.scene.now_us),
            RowColumn::ConstantDecimal(units, places) => put_decimal(out, at, *units, *places),
            RowColumn::Null4 | RowColumn::NullTime => at,
            RowColumn::Derived(derived) => derived.put(key, out, at),
        }
    }
}

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
