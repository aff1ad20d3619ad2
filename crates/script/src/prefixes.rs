//! Which names begin with one of many prefixes.

/// A set of prefixes, none of which begins another.
pub(super) struct Prefixes<'a>(Vec<&'a str>);

impl Prefixes<'_> {
    /// Whether one of them is at the front of `name`.
    pub fn begin(&self, name: &str) -> bool {
        // In the order of texts, nothing but continuations of a prefix stands between it and a name it begins.
        let not_after = self.0.partition_point(|&prefix| prefix <= name);
        self.0[..not_after].last().is_some_and(|prefix| name.starts_with(prefix))
    }
}

impl<'a> FromIterator<&'a str> for Prefixes<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(prefixes: I) -> Self {
        let mut prefixes: Vec<&str> = prefixes.into_iter().collect();
        prefixes.sort_unstable();
        prefixes.dedup_by(|next, kept| next.starts_with(*kept));
        Prefixes(prefixes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_prefix_begins_everything() {
        assert!(Prefixes::from_iter([""]).begin(""));
        assert!(Prefixes::from_iter(["a", "", "b"]).begin("c"));
        assert!(!Prefixes::from_iter([]).begin("a"));
    }

    proptest! {
        #[test]
        fn any_of_them_counts(prefixes in prop::collection::vec("[ab]{1,3}", 0..6), name in "[ab]{0,5}") {
            let expected = prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
            prop_assert_eq!(prefixes.iter().map(String::as_str).collect::<Prefixes>().begin(&name), expected);
        }
    }
}
