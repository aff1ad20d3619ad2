//! Which sessions are good enough.

use super::super::SessionAttributes::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
use super::super::Suitability::{self, Ask, Suitable, Unsuitable};

const READ_ONLY: Suitability = Unsuitable("session is read-only");
const NOT_READ_ONLY: Suitability = Unsuitable("session is not read-only");
const IN_STANDBY: Suitability = Unsuitable("server is in hot standby mode");
const NOT_IN_STANDBY: Suitability = Unsuitable("server is not in hot standby mode");

/// A server that reports (in_hot_standby, default_transaction_read_only), and what becomes of it.
#[test]
fn servers_that_report_are_not_asked() {
    for (standby, read_only, [read_write, only, primary, in_standby]) in [
        ("off", "off", [Suitable, NOT_READ_ONLY, Suitable, NOT_IN_STANDBY]),
        ("off", "on", [READ_ONLY, Suitable, Suitable, NOT_IN_STANDBY]),
        ("on", "off", [READ_ONLY, Suitable, IN_STANDBY, Suitable]),
        ("on", "on", [READ_ONLY, Suitable, IN_STANDBY, Suitable]),
    ] {
        let decided = |attributes: super::super::SessionAttributes| {
            attributes.by_report(Some(standby), Some(read_only))
        };
        assert_eq!(decided(Any), Suitable);
        assert_eq!(decided(ReadWrite), read_write, "{standby} {read_only}");
        assert_eq!(decided(ReadOnly), only, "{standby} {read_only}");
        assert_eq!(decided(Primary), primary, "{standby} {read_only}");
        assert_eq!(decided(Standby), in_standby, "{standby} {read_only}");
    }
}

#[test]
fn other_servers_are_asked() {
    let read_only = Ask("SHOW transaction_read_only");
    let recovery = Ask("SELECT pg_catalog.pg_is_in_recovery()");
    assert_eq!(Any.by_report(None, None), Suitable);
    for (standby, default) in [(None, None), (Some("on"), None), (None, Some("on"))] {
        assert_eq!(ReadWrite.by_report(standby, default), read_only);
        assert_eq!(ReadOnly.by_report(standby, default), read_only);
    }
    assert_eq!(Primary.by_report(None, Some("off")), recovery);
    assert_eq!(Standby.by_report(None, None), recovery);
    assert_eq!(Standby.by_report(Some("on"), None), Suitable);
    for (attributes, answer, decision) in [
        (ReadWrite, "on", READ_ONLY),
        (ReadWrite, "off", Suitable),
        (ReadOnly, "on", Suitable),
        (ReadOnly, "off", NOT_READ_ONLY),
        (Primary, "t", IN_STANDBY),
        (Primary, "f", Suitable),
        (Standby, "t", Suitable),
        (Standby, "f", NOT_IN_STANDBY),
    ] {
        assert_eq!(attributes.by_answer(answer), decision, "{attributes:?} {answer}");
    }
}

#[test]
fn a_standby_is_looked_for_before_all_others() {
    assert_eq!(PreferStandby.passes(), [Standby, Any]);
    for attributes in [Any, ReadWrite, ReadOnly, Primary, Standby] {
        assert_eq!(attributes.passes(), [attributes]);
    }
}
