//! PostgreSQL's pseudo-random generator, bit for bit, so that a seed gives what it gives in pgbench.
//!
//! The algorithm is xoroshiro128** 1.0 of Blackman and Vigna (https://prng.di.unimi.it/), seeded by
//! splitmix64: PostgreSQL's src/common/pg_prng.c, the same in 15 and 18.
//!
//! Logarithms, sines and powers are the C library's here and in pgbench alike, for that is what `f64::ln` and
//! its kin call: their last bits may differ between libraries, not between the two programs on one machine.

use std::f64::consts::PI;

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

    /// A number evenly from those of `[0, 1)` that are multiples of 2⁻⁵² (`pg_prng_double`).
    pub fn unit_interval(&mut self) -> f64 {
        /// 2⁻⁵²
        const STEP: f64 = f64::EPSILON;
        (self.next_u64() >> 12) as f64 * STEP
    }

    /// A number from the normal distribution with mean 0 and standard deviation 1, by the Box–Muller
    /// transform (`pg_prng_double_normal`).
    pub(super) fn normal(&mut self) -> f64 {
        // In (0, 1], for the logarithm of 0 is infinite.
        let first = 1.0 - self.unit_interval();
        let second = 1.0 - self.unit_interval();
        (-2.0 * first.ln()).sqrt() * (2.0 * PI * second).sin()
    }

    /// A number from the exponential distribution with the mean `center`, rounded to an integer, in the unit
    /// of `center`: the time until the next event of a Poisson process (pgbench.c's `getPoissonRand`, which
    /// is asked for microseconds).
    pub fn poisson(&mut self, center: f64) -> i64 {
        (self.exponential() * center + 0.5) as i64
    }

    /// A number from the exponential distribution with the mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit_interval()).ln()
    }

    /// Draws and forgets `count` numbers.
    fn skip(&mut self, count: u64) {
        for _ in 0..count {
            self.next_u64();
        }
    }

    /// Another generator, seeded from the next number (pgbench.c's `initRandomState`).
    fn next_generator(&mut self) -> Prng {
        Prng::from_seed(self.next_u64())
    }
}

/// What a run's seed gives one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSeeds {
    /// The value of the variable `default_seed`, for hash functions and `permute`: the same for all clients.
    /// 0 where the variable was given.
    pub default_seed: i64,
    /// For the random functions of expressions.
    pub functions: Prng,
    /// For the choice of a script.
    pub choice: Prng,
    /// For the choice of transactions to log.
    pub sample: Prng,
}

/// What `pgbench --random-seed=seed --client=clients --jobs=clients` gives the client of an index counted
/// from 0.
///
/// `default_seed_given` is whether the variable `default_seed` was given a value: no number is drawn for it
/// then.
///
/// pgbench.c's `main` seeds generators from consecutive numbers of a base sequence (`initRandomState`), which
/// `set_random_seed` seeded: first one for each client's functions, then, after the default seed, three for
/// each thread.
pub fn client_seeds(seed: u64, clients: u32, client: u32, default_seed_given: bool) -> ClientSeeds {
    let mut base_sequence = Prng::from_seed(seed);
    base_sequence.skip(u64::from(client));
    let functions = base_sequence.next_generator();
    base_sequence.skip(u64::from(clients).saturating_sub(u64::from(client) + 1));
    let default_seed = if default_seed_given { 0 } else { base_sequence.next_u64().cast_signed() };
    base_sequence.skip(3 * u64::from(client));
    let choice = base_sequence.next_generator();
    // pgbench's delays under a rate come from the one between; here clients share them (`schedule`).
    base_sequence.skip(1);
    ClientSeeds { default_seed, functions, choice, sample: base_sequence.next_generator() }
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
    use proptest::prelude::*;

    use super::*;

    // The expected numbers are what C programs printed that were made of PostgreSQL's pg_prng.c and of functions of
    // pgbench.c.

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
            let mut random = client_seeds(42, 3, client as u32, false).functions;
            assert_eq!(numbers.map(|_| random.int64_range(1, 100_000)), numbers, "client {client}");
        }
        let mut random = client_seeds(42, 1, 0, true).functions;
        let numbers = [5, 5, -5, -1, 5, -1, -1, -5];
        assert_eq!(numbers.map(|_| random.int64_range(-5, 5)), numbers);
    }

    #[test]
    fn seeds_are_drawn_in_pgbenchs_order() {
        // The first number from 1 to 100000 of each generator of the clients of seed 42.
        let first = |seeds: ClientSeeds| {
            [seeds.functions, seeds.choice, seeds.sample].map(|mut random| random.int64_range(1, 100_000))
        };
        for (client, drawn, given) in [
            (0, [83532, 13852, 48501], [83532, 61450, 12488]),
            (1, [81172, 70588, 90479], [81172, 48501, 16341]),
            (2, [18350, 73720, 39578], [18350, 90479, 37169]),
        ] {
            let seeds = client_seeds(42, 3, client, false);
            assert_eq!((seeds.default_seed, first(seeds)), (1183949725203728575, drawn), "client {client}");
            let seeds = client_seeds(42, 3, client, true);
            assert_eq!((seeds.default_seed, first(seeds)), (0, given), "client {client}");
        }
    }

    #[test]
    fn doubles_are_postgresqls() {
        let mut random = Prng::from_seed(42);
        let numbers = [0x3FDA7A16CD8C4E04_u64, 0x3FCDE1962A0EB130, 0x3FCF1AEF3259D9B8, 0x3FB06E3C0092B080];
        assert_eq!(numbers.map(|_| random.unit_interval().to_bits()), numbers);

        let mut random = Prng::from_seed(42);
        for expected in [-1.0277857220540605, -0.29282685711847567, -0.15232037095154663, -1.3949359588563752]
        {
            // The C library may be another.
            assert!((random.normal() - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn delays_are_pgbenchs() {
        let mut random = Prng::from_seed(42);
        let numbers = [534, 266, 278, 66, 15, 188, 1095, 218];
        assert_eq!(numbers.map(|_| random.poisson(1000.0)), numbers);
        let mut random = Prng::from_seed(42);
        let numbers = [1, 1, 1, 0, 0, 0, 3, 1];
        assert_eq!(numbers.map(|_| random.poisson(2.5)), numbers);
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
