use proptest::prelude::*;

use crate::random::*;

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
    for expected in [-1.0277857220540605, -0.29282685711847567, -0.15232037095154663, -1.3949359588563752] {
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
    fn draws_lie_within_their_range(seed: u64, first: i64, second: i64) {
        let (min, max) = (first.min(second), first.max(second));
        let mut random = Prng::from_seed(seed);
        for _ in 0..10 {
            prop_assert!((min..=max).contains(&random.int64_range(min, max)));
        }
    }
}

#[test]
fn hashes_are_pgbenchs() {
    // Value, seed, and what a C program printed that was made of pgbench 18's functions.
    for (value, seed, by_fnv1a, by_murmur2) in [
        (0, 0, -6284781860667377211, 8217090173679840641),
        (0, 5432, 5600063106439994301, 6045885599107954120),
        (0, -1, 4052466453699787802, -1429387546045227835),
        (0, i64::MIN, 2938590176187398597, 5365366227499048315),
        (1, 0, -8517097267634966620, -8089716718896805586),
        (1, 5432, 3367747699472404892, 8409120883607651217),
        (1, -1, 6284781860667377211, 8383142988610529298),
        (1, i64::MIN, 706274769219809188, 7505303408632055305),
        (-1, 0, -8289690350564177859, 4219408603045787357),
        (-1, 5432, 3795662180246657077, 3202824124722859978),
        (-1, -1, 9116541788052886162, 1317380444104773032),
        (-1, i64::MIN, 933681686290597949, 7071132549226612610),
        (10, 0, -2408371864701034737, -7188666914263997357),
        (10, 5432, -7793829335365542153, -5817877081768721676),
        (10, -1, 176056457733445328, 493381595602370344),
        (10, i64::MIN, 6815000172153741071, 8406353213264770424),
        (i64::MAX, 0, -8289549613075766851, -6118008551640328833),
        (i64::MAX, 5432, 3795802917735068085, -4755676558467274251),
        (i64::MAX, -1, 9116682525541297170, -7449049946749928351),
        (i64::MAX, i64::MIN, 933822423779008957, -8969732497821252539),
        (i64::MIN, 0, -6284922598155788219, 9158703207903963431),
        (i64::MIN, 5432, 5599922368951583293, -2711967873914999986),
        (i64::MIN, -1, 4052607191188198810, 5949093009533562506),
        (i64::MIN, i64::MIN, 2938449438698987589, -6436316919624885688),
        (123456789, 0, -2350796791908741607, -1652411274631746233),
        (123456789, 5432, 4266817465876938289, -6977665671479594339),
        (123456789, -1, 6091392141410076514, -8406561874705926337),
        (123456789, i64::MIN, 6872575244946034201, -4504135220812694119),
    ] {
        assert_eq!((fnv1a(value, seed), murmur2(value, seed)), (by_fnv1a, by_murmur2), "{value}, {seed}");
    }
}
