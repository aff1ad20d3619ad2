//! The script variables `shard_key_1` … `shard_key_9`: values that are on different shards of a distributed table, so
//! that a statement touches as many shards as it has of them.

/// As many as a script has.
pub const SHARD_KEYS: usize = 9;

const PREFIX: &str = "shard_key_";

/// The names, in order.
pub fn names() -> impl Iterator<Item = String> {
    (1..=SHARD_KEYS).map(|number| format!("{PREFIX}{number}"))
}

/// The number, counted from 1, of a variable that is one of them.
pub fn number_of(variable: &str) -> Option<usize> {
    names().position(|name| name == variable).map(|index| index + 1)
}

/// What a client's variables hold, in order, out of one key for each shard: fewer where there are fewer shards. Each
/// client begins one shard further than the one before it, so that together they reach all.
pub fn of_client(keys: &[i64], client: u32) -> Vec<i64> {
    let first = client as usize % keys.len().max(1);
    keys.iter().cycle().skip(first).take(keys.len().min(SHARD_KEYS)).copied().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_known_by_its_number() {
        let names: Vec<String> = names().collect();
        assert_eq!((names[0].as_str(), names[8].as_str(), names.len()), ("shard_key_1", "shard_key_9", 9));
        for (index, name) in names.iter().enumerate() {
            assert_eq!(number_of(name), Some(index + 1));
        }
        for other in ["shard_key_0", "shard_key_10", "shard_key_01", "shard_key_", "rows", "SHARD_KEY_1"] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }

    #[test]
    fn each_client_begins_a_shard_further() {
        assert_eq!(of_client(&[5, 6, 7], 0), [5, 6, 7]);
        assert_eq!(of_client(&[5, 6, 7], 4), [6, 7, 5]);
        assert_eq!(of_client(&(1..=20).collect::<Vec<_>>(), 18), [19, 20, 1, 2, 3, 4, 5, 6, 7]);
        assert!(of_client(&[], 3).is_empty());
    }

    proptest! {
        #[test]
        fn a_clients_keys_are_different_and_all_clients_have_all(shards in 1usize..100, more in 0u32..50) {
            let keys: Vec<i64> = (0..shards as i64).map(|key| key * 7 - 3).collect();
            let mut firsts = BTreeSet::new();
            for client in more..more + shards as u32 {
                let own = of_client(&keys, client);
                prop_assert_eq!(own.len(), shards.min(SHARD_KEYS));
                prop_assert_eq!(own.iter().collect::<BTreeSet<_>>().len(), own.len());
                firsts.insert(own[0]);
            }
            prop_assert_eq!(firsts, keys.into_iter().collect::<BTreeSet<_>>());
        }
    }
}
