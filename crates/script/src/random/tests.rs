use proptest::prelude::*;

use super::*;

type DrawFn = fn(&mut Prng, IntegerRange, f64) -> Result<i64, UserError>;

/// Asserts what a generator of seed 42 gives. The expected numbers are what a C program printed that was made
/// of pgbench 18's functions.
#[track_caller]
fn check<const N: usize>(distribution: DrawFn, min: i64, max: i64, parameter: f64, expected: [i64; N]) {
    let mut random = Prng::from_seed(42);
    let range = IntegerRange::new(min, max).unwrap();
    assert_eq!(
        expected.map(|_| distribution(&mut random, range, parameter).unwrap()),
        expected,
        "parameter {parameter}"
    );
}

#[test]
fn exponential_numbers_are_pgbenchs() {
    for (parameter, numbers) in [
        (0.5, [35534, 19271, 20101, 5116, 1172, 13974, 60720, 16036]),
        (1.0, [30315, 15967, 16678, 4142, 943, 11476, 54587, 13214]),
        (2.5, [19105, 9647, 10096, 2429, 549, 6852, 37752, 7926]),
        (10.0, [5339, 2659, 2784, 664, 150, 1882, 10950, 2180]),
        (50.0, [1068, 532, 557, 133, 30, 377, 2191, 436]),
    ] {
        check(exponential, 1, 100_000, parameter, numbers);
    }
    let numbers =
        [-3076304973904270848, -3840603372654251520, -3804492633656022016, -4418224138067373088_i64];
    check(exponential, i64::MIN / 2, i64::MAX / 2 - 1, 3.0, numbers);
}

#[test]
fn gaussian_numbers_are_pgbenchs() {
    for (parameter, numbers) in [
        (2.0, [-25695, -7321, -3808, -34874, -29826, -25031, 18502, 5645]),
        (2.5, [-20556, -5857, -3046, -27899, -23861, -20025, 14801, 4516]),
        (5.0, [-10278, -2928, -1523, -13949, -11930, -10012, 7401, 2258]),
        (10.0, [-5139, -1464, -762, -6975, -5965, -5006, 3700, 1129]),
    ] {
        check(gaussian, -50_000, 50_000, parameter, numbers);
    }
    let numbers = [-1579941681445336064, -450141840931102720, -234151241679640576, -2144335552686515712];
    check(gaussian, i64::MIN / 2, i64::MAX / 2 - 1, 3.0, numbers);
}

#[test]
fn zipfian_numbers_are_pgbenchs() {
    for (parameter, numbers) in [
        (1.001, [39, 4405, 295, 4513, 1, 10, 2, 8648]),
        (1.07, [336, 28, 1197, 3, 11322, 5, 1, 9]),
        (1.5, [5, 16, 4540, 2, 1, 2, 24084, 1]),
        (2.0, [2, 4, 67, 1, 1, 1, 155, 1]),
        (10.0, [1, 1, 1, 1, 1, 1, 1, 1]),
        (1000.0, [1, 1, 1, 1, 1, 1, 1, 1]),
    ] {
        check(zipfian, 1, 100_000, parameter, numbers);
    }
    check(zipfian, 1, i64::MAX, 1.05, [46371735, 1938813261339, 3446, 106]);
}

#[test]
fn parameters_are_limited_as_pgbenchs() {
    let mut random = Prng::from_seed(42);
    let range = IntegerRange::new(0, 10).unwrap();
    let mut error = |distribution: DrawFn, p| distribution(&mut random, range, p).unwrap_err().to_string();
    let message = "gaussian parameter must be at least 2.000000 (not 1.000000) (22023)";
    assert_eq!(error(gaussian, 1.0), message);
    let message = "exponential parameter must be greater than zero (not 0.000000) (22023)";
    assert_eq!(error(exponential, 0.0), message);
    for (parameter, shown) in [(1.0, "1.000000"), (1000.5, "1000.500000"), (f64::INFINITY, "Infinity")] {
        let message = format!("zipfian parameter must be in range [1.001, 1000] (not {shown}) (22023)");
        assert_eq!(error(zipfian, parameter), message);
    }
    // pgbench takes this one: it draws beyond the range, or forever.
    for distribution in [exponential, gaussian, zipfian] {
        assert!(error(distribution, f64::NAN).ends_with("(not NaN) (22023)"));
    }
}

#[test]
fn ranges_are_limited_as_pgbenchs() {
    let error = |min, max| IntegerRange::new(min, max).unwrap_err().to_string();
    assert_eq!(error(5, 3), "empty range given to random (22023)");
    assert_eq!(error(i64::MIN, i64::MAX), "random range is too large (22023)");
    assert_eq!(error(0, i64::MAX), "random range is too large (22023)");
    assert_eq!(error(-1, i64::MAX), "random range is too large (22023)");
    assert_eq!(IntegerRange::new(1, i64::MAX).unwrap().count(), i64::MAX);
    assert_eq!(IntegerRange::new(i64::MIN, -2).unwrap().count(), i64::MAX);
}

fn range() -> impl Strategy<Value = IntegerRange> {
    (any::<i64>(), prop_oneof![1..10i64, 1..=i64::MAX]).prop_map(|(min, count)| {
        let min = min.min(i64::MAX - (count - 1));
        IntegerRange::new(min, min + (count - 1)).unwrap()
    })
}

proptest! {
    #[test]
    fn numbers_lie_within_their_range(
        seed: u64,
        range in range(),
        low in prop_oneof![Just(1e-300), Just(1e-16), 1e-9..10.0, Just(f64::INFINITY)],
        high in prop_oneof![2.0..10.0, Just(1e308), Just(f64::INFINITY)],
        zipf in prop_oneof![Just(1.001), 1.001..2.0, 2.0..1000.0],
    ) {
        let mut random = Prng::from_seed(seed);
        let numbers = range.min..=range.max;
        for _ in 0..5 {
            prop_assert!(numbers.contains(&uniform(&mut random, range)));
            prop_assert!(numbers.contains(&exponential(&mut random, range, low).unwrap()));
            prop_assert!(numbers.contains(&gaussian(&mut random, range, high).unwrap()));
            prop_assert!(numbers.contains(&zipfian(&mut random, range, zipf).unwrap()));
        }
    }
}
