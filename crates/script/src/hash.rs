//! pgbench's hash functions of a bigint: the same bits for the same seed, so that they spread keys as there.

/// FNV-1a of the number's eight bytes, the lowest first, with a seed mixed into the offset basis
/// (`getHashFnv1a` in pgbench.c; http://www.isthe.com/chongo/tech/comp/fnv/).
pub(super) fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x100_0000_01B3;
    let hash = value.to_le_bytes().iter().fold(OFFSET_BASIS ^ seed.cast_unsigned(), |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    hash.cast_signed()
}

/// MurmurHash64A of the number's eight bytes (`getHashMurmur2` in pgbench.c, after Austin Appleby's
/// MurmurHash2.cpp).
pub(super) fn murmur2(value: i64, seed: i64) -> i64 {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
