//! PostgreSQL's pseudo-random generator, bit for bit, so that a seed gives what it gives in pgbench.
//!
//! The algorithm is xoroshiro128** 1.0 of Blackman and Vigna (https://prng.di.unimi.it/), seeded by splitmix64:
//! PostgreSQL 15's src/common/pg_prng.c.

/// One generator's state. `Copy`, so that a transaction that is retried can draw the same numbers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prng {
    s0: u64,
    s1: u64,
}

impl Prng {
    /// A generator seeded from 64 bits (`pg_prng_seed`).
    pub fn from_seed(seed: u64) -> Prng {
        let mut seed = seed;
        let (s0, s1) = (splitmix64(&mut seed), splitmix64(&mut seed));
        if s0 == 0 && s1 == 0 {
            // All zeroes are a fixed point: Knuth's LCG parameters instead (`pg_prng_seed_check`).
            return Prng { s0: 0x5851_F42D_4C95_7F2D, s1: 0x1405_7B7E_F767_814F };
        }
        Prng { s0, s1 }
    }

    /// The next number, evenly from all 64-bit ones (`pg_prng_uint64`, `xoroshiro128ss`).
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let sx = self.s1 ^ s0;
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number evenly from `[rmin, rmax]`; `rmin` where that is empty (`pg_prng_uint64_range`).
    #[inline]
    pub fn uint64_range(&mut self, rmin: u64, rmax: u64) -> u64 {
        if rmax <= rmin {
            return rmin;
        }
        // Bitmask rejection: a draw is below twice the range, so two draws suffice on average.
        let range = rmax - rmin;
        let shift = range.leading_zeros();
        loop {
            let offset = self.next_u64() >> shift;
            if offset <= range {
                return rmin + offset;
            }
        }
    }

    /// A number evenly from `[min, max]`, as pgbench.c's `getrand`; `min` where that is empty.
    #[inline]
    pub fn int64_range(&mut self, min: i64, max: i64) -> i64 {
        if max <= min {
            return min;
        }
        let offset = self.uint64_range(0, max.wrapping_sub(min) as u64);
        min.wrapping_add(offset as i64)
    }
}

/// The generator that a run's seed gives the client of an index counted from 0.
///
/// pgbench.c's `main` calls `initRandomState` once per client in order, and that seeds the client's generator from
/// the next number of the base sequence, which `set_random_seed` seeded from `--random-seed`.
pub fn client_generator(seed: u64, client: u32) -> Prng {
    let mut base_sequence = Prng::from_seed(seed);
    for _ in 0..client {
        base_sequence.next_u64();
    }
    Prng::from_seed(base_sequence.next_u64())
}

/// Steps `state` and returns its value (`splitmix64`).
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // The expected numbers are what a C program printed that was linked with PostgreSQL 15's pg_prng.c.

    #[test]
    fn numbers_are_postgresqls() {
        let expected: [(u64, [u64; 4]); 5] = [
            (0, [0xDEC90D521E93E35D, 0x6D33AC6F18895E08, 0xAB21904EEC6FA48A, 0x87AFDBC188423FBE]),
            (1, [0x65094A0AB526FA3A, 0xC768DA5CFFE53BAF, 0xEA499C65B6398C2D, 0xD5889106271CF596]),
            (42, [0x69E85B3631381BAA, 0x3BC32C541D626E1D, 0x3E35DE64B3B378D8, 0x106E3C0092B088BF]),
            (20240607, [0xD27871D1163823D3, 0x17AF1EB01D0F99D7, 0xFD0C848819E90E67, 0xE02306408F8555D8]),
            (u64::MAX, [0x1C78F7E86460D21C, 0x486D6868ED82DF60, 0x581A82CCC82B2157, 0x6C57341F66F46667]),
        ];
        for (seed, numbers) in expected {
            let mut random = Prng::from_seed(seed);
            assert_eq!(numbers.map(|_| random.next_u64()), numbers, "seed {seed}");
        }
    }

    #[test]
    fn ranges_are_postgresqls() {
        let mut random = Prng::from_seed(42);
        let numbers = [54225, 30599, 31852, 8413, 1946, 22480, 87225, 25666];
        assert_eq!(numbers.map(|_| random.uint64_range(1, 100_000)), numbers);
        // Empty ranges draw nothing.
        assert_eq!((random.uint64_range(0, 0), random.uint64_range(9, 5)), (0, 9));
        assert_eq!(random.uint64_range(0, u64::MAX), 14605574023334741547);
        let numbers = [0, 4, 1, 2, 6, 0, 5, 0];
        assert_eq!(numbers.map(|_| random.uint64_range(0, 7)), numbers);
    }

    #[test]
    fn clients_draw_what_pgbenchs_clients_draw() {
        let expected = [
            [83532, 83233, 7682, 38645, 86390],
            [81172, 73184, 37222, 24146, 6060],
            [18350, 86960, 74681, 70943, 19933],
        ];
        for (client, numbers) in expected.into_iter().enumerate() {
            let mut random = client_generator(42, client as u32);
            assert_eq!(numbers.map(|_| random.int64_range(1, 100_000)), numbers, "client {client}");
        }
        let mut random = client_generator(42, 0);
        let numbers = [5, 5, -5, -1, 5, -1, -1, -5];
        assert_eq!(numbers.map(|_| random.int64_range(-5, 5)), numbers);
    }

    proptest! {
        #[test]
        fn numbers_lie_within_their_range(seed: u64, first: i64, second: i64) {
            let (min, max) = (first.min(second), first.max(second));
            let mut random = Prng::from_seed(seed);
            for _ in 0..10 {
                prop_assert!((min..=max).contains(&random.int64_range(min, max)));
            }
        }
    }
}
