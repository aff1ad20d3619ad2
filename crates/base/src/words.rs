//! Words that users write: enums that consist of them, and the name that was probably meant by a mistyped one.

use strsim::damerau_levenshtein;

/// A type whose values users write as words.
pub trait Word: Copy + 'static {
    /// Each word and its meaning.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the meaning of a word; `None` for others.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
    }

    /// Returns all words, in the order of the type's declaration.
    fn words() -> impl Iterator<Item = &'static str> {
        Self::WORDS.iter().map(|(word, _)| *word)
    }
}

/// Defines an enum whose variants are words that users write, in JSON as in SQL.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $vis:vis enum $name:ident { $($(#[$meaning:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[$meaning])* #[serde(rename = $word)] $variant,)*
        }

        impl $crate::words::Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];
        }

        impl $name {
            /// Returns the word that users write.
            $vis fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

/// A hint for a mistyped name: the nearest of the names where one is near enough, and in any case the list of those that
/// are known.
pub fn hint<'a>(mistyped: &str, names: impl IntoIterator<Item = &'a str>, list: String) -> String {
    match perhaps(mistyped, names) {
        Some(perhaps) => format!("{perhaps} {list}"),
        None => list,
    }
}

/// A hint with the nearest of the names, where one is near enough: at most a third of the letters mistyped, as distances of
/// Damerau and Levenshtein count them, or the one name that goes on where the mistyped one ends. Case does not matter.
///
/// ```
/// let names = ["pk_select", "pk_update"];
/// assert_eq!(bench_base::words::perhaps("pk_slect", names).as_deref(), Some("Perhaps you meant \"pk_select\"."));
/// assert_eq!(bench_base::words::perhaps("orders", names), None);
/// ```
pub fn perhaps<'a>(mistyped: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(mistyped, names).map(|name| format!("Perhaps you meant \"{name}\"."))
}

fn nearest<'a>(mistyped: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name is 63 bytes long; the time that a distance takes grows with the product of the lengths.
    if mistyped.len() > 200 {
        return None;
    }
    let folded = mistyped.to_lowercase();
    let names: Vec<&str> = names.into_iter().collect();
    let near = |name: &'a str| {
        let distance = damerau_levenshtein(&folded, &name.to_lowercase());
        let letters = folded.chars().count().max(name.chars().count());
        (distance * 3 <= letters).then_some((distance, name))
    };
    if let Some((_, name)) = names.iter().copied().filter_map(near).min() {
        return Some(name);
    }
    let mut longer =
        names.iter().filter(|name| !folded.is_empty() && name.to_lowercase().starts_with(&folded));
    longer.next().filter(|_| longer.next().is_none()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["log_insert", "pk_select", "pk_update", "tpcb_like", "wide_insert"];

    words! {
        enum Wish {
            Always = "always",
            IfPossible = "if possible",
        }
    }

    #[test]
    fn words_are_read_and_serialized_as_they_are_written() {
        for (word, wish) in Wish::WORDS {
            assert_eq!((Wish::from_word(word), wish.as_str()), (Some(*wish), *word));
            assert_eq!(serde_json::to_value(wish).unwrap(), *word);
        }
        assert_eq!(Wish::from_word("never"), None);
    }

    #[test]
    fn typing_errors_are_found() {
        for (mistyped, meant) in [
            ("pk_slect", "pk_select"),
            ("PK_UPDATE", "pk_update"),
            ("pk-select", "pk_select"),
            ("tpbc_like", "tpcb_like"),
            ("wideinsert", "wide_insert"),
            ("tpcb", "tpcb_like"),
            ("select", "pk_select"),
        ] {
            assert_eq!(nearest(mistyped, NAMES), Some(meant), "{mistyped}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for other in ["", "x", "orders", "pk", "insert_all", &"pk_select".repeat(30)] {
            assert_eq!(nearest(other, NAMES), None, "{other}");
        }
        assert_eq!(nearest("pk_select", []), None);
    }
}
