//! The server's hash of integers, so that a SELECT and the code here make the same rows.

/// `hashint8extended(key, seed)` of PostgreSQL (access/hash/hashfunc.c and common/hashfn.c, which is Bob Jenkins'
/// lookup3): the same in all versions, because hash partitions rest on it.
#[inline]
pub fn hash(key: i64, seed: i64) -> i64 {
    let high = (key >> 32) as u32;
    let word = key as u32 ^ if key >= 0 { high } else { !high };
    // The initial value with the length of the key, four bytes.
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (start, start, start);
    if seed != 0 {
        a = a.wrapping_add((seed >> 32) as u32);
        b = b.wrapping_add(seed as u32);
        mix(&mut a, &mut b, &mut c);
    }
    a = a.wrapping_add(word);
    finish(&mut a, &mut b, &mut c);
    (u64::from(b) << 32 | u64::from(c)).cast_signed()
}

/// `(hashint8extended(key, seed) & 9223372036854775807) % (most - least + 1) + least`.
#[inline]
pub fn uniform(key: i64, seed: i64, least: i64, most: i64) -> i64 {
    (hash(key, seed) & i64::MAX) % (most - least + 1) + least
}

#[inline]
fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, rotation: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(rotation);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

#[inline]
fn finish(a: &mut u32, b: &mut u32, c: &mut u32) {
    let step = |x: &mut u32, y: &u32, rotation: u32| *x = (*x ^ *y).wrapping_sub(y.rotate_left(rotation));
    step(c, b, 14);
    step(a, c, 11);
    step(b, a, 25);
    step(c, b, 16);
    step(a, c, 4);
    step(b, a, 14);
    step(c, b, 24);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_servers() {
        // SELECT hashint8extended(k, s), PostgreSQL 15
        for (key, seed, expected) in HASHES {
            assert_eq!(hash(key, seed), expected, "{key} {seed}");
        }
    }

    const HASHES: [(i64, i64, i64); 7] = [
        (1, 0, -3_670_598_878_359_251_130),
        (1, 1, -7_620_678_293_940_249_823),
        (42, 1021, -606_531_833_182_639_731),
        (i64::MAX, 77, -8_990_219_497_821_492_798),
        (-5, 3, 4_566_310_048_417_840_633),
        (4_294_967_296, 12_345_678_901, 4_167_789_763_743_768_095),
        (300_000_016, 2140, -3_371_413_304_165_546_564),
    ];

    #[test]
    fn numbers_are_evenly_of_the_whole_range() {
        let mut counts = [0u32; 11];
        for key in 1..=11_000 {
            counts[usize::try_from(uniform(key, 7, 5, 15) - 5).unwrap()] += 1;
        }
        // About a thousand of each, with a standard deviation of 30.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
