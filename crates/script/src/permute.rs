//! pgbench's pseudo-random permutation: it scatters keys that a skewed distribution would leave side by side.

use super::prng::Prng;

/// Where `value` modulo `size` comes to lie among 0 … `size` - 1, in the permutation of these numbers that
/// `seed` picks; 0 for a size below 2 (`permute` in pgbench.c).
pub(super) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    const ROUNDS: usize = 6;
    if size < 2 {
        return 0;
    }
    let mut random = Prng::from_seed(seed.cast_unsigned());
    let size = size.cast_unsigned();
    let mut value = value.cast_unsigned() % size;
    // The largest power of 2 that is not above the size, less one: what the bijections below work in.
    let mask_length = size.ilog2();
    let mask = (1 << mask_length) - 1;
    // A random odd factor separates neighbours, an exclusive or adds randomness where the mask is small, and
    // a rotation brings the high bits down, since multiplication leaves the low ones less random.
    let scatter = |value: u64, factor: u64, flip: u64| {
        let scattered = (value.wrapping_mul(factor) ^ flip) & mask;
        ((scattered << 1) & mask) | (scattered >> (mask_length - 1))
    };
    for _ in 0..ROUNDS {
        // The lower part of the range, and after it the upper one: they overlap unless the size is a power of
        // 2.
        let (factor, flip) = ((random.next_u64() & mask) | 1, random.next_u64() & mask);
        if value <= mask {
            value = scatter(value, factor, flip);
        }
        let (factor, flip) = ((random.next_u64() & mask) | 1, random.next_u64() & mask);
        let from_above = size - 1 - value;
        if from_above <= mask {
            value = size - 1 - scatter(from_above, factor, flip);
        }
        value = (value + random.uint64_range(0, size - 1)) % size;
    }
    value.cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn permutations_are_pgbenchs() {
        // What a C program printed that was made of pgbench 18's functions, for these values and seed 5432.
        let values = [0, 1, -1, 999, i64::MIN];
        let max = 4401802522294066805;
        for (size, permuted) in [
            (1, [0, 0, 0, 0, 0]),
            (2, [0, 1, 1, 1, 0]),
            (3, [0, 1, 0, 0, 2]),
            (5, [0, 3, 0, 2, 1]),
            (16, [12, 8, 4, 9, 12]),
            (1000, [609, 778, 708, 93, 730]),
            (1_000_003, [361525, 465619, 198361, 16014, 726309]),
            (i64::MAX, [8941447457790205183, max, max, 2531411345330485681, max]),
        ] {
            assert_eq!(values.map(|value| permute(value, size, 5432)), permuted, "size {size}");
        }
        assert_eq!((permute(7, 0, 1), permute(7, -3, 1)), (0, 0));
    }

    proptest! {
        #[test]
        fn a_permutation_takes_each_number_once(size in 1..2000i64, seed: i64) {
            let mut seen = vec![false; size as usize];
            for value in 0..size {
                let place = permute(value, size, seed) as usize;
                prop_assert!(!std::mem::replace(&mut seen[place], true));
            }
        }

        #[test]
        fn places_lie_in_the_range(value: i64, size in 1..=i64::MAX, seed: i64) {
            prop_assert!((0..size).contains(&permute(value, size, seed)));
        }
    }
}
