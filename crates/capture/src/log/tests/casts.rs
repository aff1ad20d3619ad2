//! Variables with several places.

use super::super::casts::{shared, with_casts};

#[test]
fn places_of_one_variable_share_a_number() {
    let text = "SELECT '$2', $1 WHERE a = $2 OR $3 IS NULL AND $4 > 0";
    let (renumbered, variables) = shared(text, &["a", "a", "b", "c"]).expect("one of them twice");
    assert_eq!(renumbered, "SELECT '$2', $1 WHERE a = $1 OR $2 IS NULL AND $3 > 0");
    assert_eq!(variables, ["a", "b", "c"]);
    assert_eq!(shared(text, &["a", "b", "c", "d"]), None);
    assert_eq!(shared("SELECT $1, $2, $3", &["a", "a"]), None);
}

#[test]
fn casts_stand_behind_whole_names_that_have_none() {
    let script = "SELECT :p1, :p12, :p1::int, a = :p1;\n\\sleep :p1_sleep us\n";
    let types = [("p1", "pg_catalog.text"), ("p12", "shop.\"Mood\"")].into();
    assert_eq!(
        with_casts(script, &types),
        "SELECT :p1::pg_catalog.text, :p12::shop.\"Mood\", :p1::int, a = :p1::pg_catalog.text;\n\
         \\sleep :p1_sleep us\n"
    );
}
