//! PostgreSQL's pseudo-random generator and pgbench's functions that draw from it, permute and hash, bit for bit, so that a
//! seed gives what it gives in pgbench.
//!
//! The random functions of expressions draw from `[min, max]`. pgbench leaves that range for some parameters – an exponential
//! one so small that `1 - exp(-parameter)` is mostly rounding, or one that is no number – and there the nearest number of the
//! range is given instead.
//!
//! Logarithms, sines and powers are the C library's here and in pgbench alike, for that is what `f64::ln` and its kin call:
//! their last bits may differ between libraries, not between the two programs on one machine.

#[cfg(test)]
mod tests;

use std::f64::consts::PI;
use std::hint::black_box;

use bench_base::error::UserError;

use crate::variables::format_fixed;

/// The integers from `min` to `max`, as many as a bigint can count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntegerRange {
    min: i64,
    max: i64,
}

impl IntegerRange {
    /// # Errors
    /// 22023 if it is empty or has more than 2⁶³ - 1 numbers.
    pub(crate) fn new(min: i64, max: i64) -> Result<IntegerRange, UserError> {
        if min > max {
            return Err(UserError::invalid("empty range given to random"));
        }
        if max.checked_sub(min).is_none_or(|difference| difference == i64::MAX) {
            return Err(UserError::invalid("random range is too large"));
        }
        Ok(IntegerRange { min, max })
    }

    /// How many numbers there are, at least one.
    fn count(self) -> i64 {
        self.max - self.min + 1
    }

    /// The number at `fraction`, of `[0, 1)`, of the way from the least to the greatest.
    fn at(self, fraction: f64) -> i64 {
        let offset = (self.count() as f64 * fraction) as i64;
        self.min + offset.clamp(0, self.count() - 1)
    }
}

/// Any number as likely as another (`getrand` in pgbench.c).
#[inline]
pub(crate) fn uniform(random: &mut Prng, range: IntegerRange) -> i64 {
    random.int64_range(range.min, range.max)
}

/// Numbers become less likely from the least to the greatest, where the density has fallen to
/// exp(-`parameter`) of the first (`getExponentialRand` in pgbench.c).
///
/// # Errors
/// 22023 for a parameter that is not above 0.
pub(crate) fn exponential(random: &mut Prng, range: IntegerRange, parameter: f64) -> Result<i64, UserError> {
    if parameter.is_nan() || parameter <= 0.0 {
        let parameter = format_fixed(parameter);
        return Err(UserError::invalid(format!(
            "exponential parameter must be greater than zero (not {parameter})"
        )));
    }
    let cut = (-parameter).exp();
    let uniform = 1.0 - random.unit_interval();
    Ok(range.at(-(cut + (1.0 - cut) * uniform).ln() / parameter))
}

/// A normal distribution around the middle of the range, whose ends are `parameter` standard deviations away
/// from it (`getGaussianRand` in pgbench.c).
///
/// # Errors
/// 22023 for a parameter below 2.
pub(crate) fn gaussian(random: &mut Prng, range: IntegerRange, parameter: f64) -> Result<i64, UserError> {
    const MIN_PARAMETER: f64 = 2.0;
    if parameter.is_nan() || parameter < MIN_PARAMETER {
        let (least, parameter) = (format_fixed(MIN_PARAMETER), format_fixed(parameter));
        return Err(UserError::invalid(format!(
            "gaussian parameter must be at least {least} (not {parameter})"
        )));
    }
    // What lies outside of the range is drawn again: 5 in 100 for the least parameter.
    let deviation = loop {
        let deviation = random.normal();
        if deviation >= -parameter && deviation < parameter {
            break deviation;
        }
    };
    Ok(range.at((deviation + parameter) / (parameter * 2.0)))
}

/// The `k`th number of the range is `k` to the power of `parameter` times less likely than the first
/// (`getZipfianRand` in pgbench.c).
///
/// # Errors
/// 22023 for a parameter outside of 1.001 to 1000.
pub(crate) fn zipfian(random: &mut Prng, range: IntegerRange, parameter: f64) -> Result<i64, UserError> {
    const MIN_PARAMETER: f64 = 1.001;
    const MAX_PARAMETER: f64 = 1000.0;
    if !(MIN_PARAMETER..=MAX_PARAMETER).contains(&parameter) {
        let parameter = format_fixed(parameter);
        return Err(UserError::invalid(format!(
            "zipfian parameter must be in range [{MIN_PARAMETER:.3}, {MAX_PARAMETER:.0}] (not {parameter})"
        )));
    }
    Ok(range.min + (zipfian_rank(random, range.count(), parameter) - 1))
}

/// A number of 1 … `count`, by rejection (`computeIterativeZipfian` in pgbench.c, after Devroye, Non-Uniform
/// Random Variate Generation, 1986, pages 550 and 551).
fn zipfian_rank(random: &mut Prng, count: i64, parameter: f64) -> i64 {
    if count <= 1 {
        return 1;
    }
    // Hidden from the compiler, which would otherwise call exp2 where pgbench calls pow.
    let b = black_box(2.0_f64).powf(parameter - 1.0);
    loop {
        let u = random.unit_interval();
        let v = random.unit_interval();
        let x = u.powf(-1.0 / (parameter - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
        if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
            // As a double a large count may have been rounded up.
            return (x as i64).min(count);
        }
    }
}

// The algorithm is xoroshiro128** 1.0 of Blackman and Vigna (https://prng.di.unimi.it/), seeded by splitmix64: PostgreSQL's
// src/common/pg_prng.c, the same in 15 and 18.

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
    pub(crate) fn normal(&mut self) -> f64 {
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

/// Where `value` modulo `size` comes to lie among 0 … `size` - 1, in the permutation of these numbers that
/// `seed` picks; 0 for a size below 2 (`permute` in pgbench.c). It scatters keys that a skewed distribution would leave side by
/// side.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
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

/// FNV-1a of the number's eight bytes, the lowest first, with a seed mixed into the offset basis
/// (`getHashFnv1a` in pgbench.c; http://www.isthe.com/chongo/tech/comp/fnv/).
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x100_0000_01B3;
    let hash = value.to_le_bytes().iter().fold(OFFSET_BASIS ^ seed.cast_unsigned(), |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    hash.cast_signed()
}

/// MurmurHash64A of the number's eight bytes (`getHashMurmur2` in pgbench.c, after Austin Appleby's
/// MurmurHash2.cpp).
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
    /// The multiplier times the length in bytes.
    const MULTIPLIER_TIMES_8: u64 = MULTIPLIER.wrapping_mul(8);
    const SHIFT: u32 = 47;
    let mut block = value.cast_unsigned().wrapping_mul(MULTIPLIER);
    block ^= block >> SHIFT;
    block = block.wrapping_mul(MULTIPLIER);

    let mut hash = seed.cast_unsigned() ^ MULTIPLIER_TIMES_8;
    hash = (hash ^ block).wrapping_mul(MULTIPLIER);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> SHIFT)).cast_signed()
}
