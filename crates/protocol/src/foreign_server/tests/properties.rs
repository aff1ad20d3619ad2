//! What holds for every target.

use proptest::prelude::*;
use serde::Serialize;

use super::super::*;
use super::options;

/// Each word is read as it is written.
fn words_round_trip<T: Word + PartialEq + std::fmt::Debug + Serialize>() {
    for (word, meaning) in T::WORDS {
        assert_eq!(T::parse("option", word).as_ref(), Ok(meaning));
        assert_eq!(serde_json::to_value(meaning).expect("JSON"), serde_json::json!(word));
    }
}

#[test]
fn words_are_serialized_as_they_are_written() {
    words_round_trip::<SslMode>();
    words_round_trip::<SslNegotiation>();
    words_round_trip::<TlsVersion>();
    words_round_trip::<ChannelBinding>();
    words_round_trip::<LoadBalance>();
    words_round_trip::<SessionAttributes>();
}

fn a_word<T: Word + std::fmt::Debug>() -> impl Strategy<Value = String> {
    prop::sample::select(T::WORDS).prop_map(|(word, _)| word.to_owned())
}

/// Options of a server, without contradictions.
fn a_server() -> impl Strategy<Value = Vec<(String, String)>> {
    let word = (
        a_word::<SslMode>(),
        a_word::<ChannelBinding>(),
        a_word::<LoadBalance>(),
        a_word::<SessionAttributes>(),
        a_word::<TlsVersion>(),
    );
    let host = ("[a-z/@.0-9 ]{0,8}", 1..=u16::MAX);
    let text = ("[a-zA-Z0-9 ]{0,10}", "\\PC{0,10}", any::<i32>(), any::<bool>());
    (prop::collection::vec(host, 1..6), word, text).prop_map(|(hosts, word, text)| {
        let list = |elements: Vec<String>| elements.join(",");
        options(&[
            ("host", &list(hosts.iter().map(|(name, _)| name.clone()).collect())),
            ("port", &list(hosts.iter().map(|(_, port)| port.to_string()).collect())),
            ("sslmode", &word.0),
            ("channel_binding", &word.1),
            ("load_balance_hosts", &word.2),
            ("target_session_attrs", &word.3),
            ("ssl_min_protocol_version", &word.4),
            ("dbname", &text.0),
            ("application_name", &text.1),
            ("connect_timeout", &text.2.to_string()),
            ("sslsni", if text.3 { "1" } else { "0" }),
        ])
    })
}

proptest! {
    #[test]
    fn a_target_is_read_as_it_is_written(server in a_server(), role in "[a-z]{1,8}") {
        check_options(OptionOf::Server, &server, false).expect("good options");
        let (target, _) = Target::new(&server, &[], &role).expect("a target");
        let text = serde_json::to_string(&target).expect("JSON");
        prop_assert_eq!(&target, &serde_json::from_str::<Target>(&text).expect("a target"));
        let value = |name: &str| &server.iter().find(|(option, _)| option == name).expect("given").1;
        let names: Vec<&str> = target.hosts.iter().map(|host| host.name.as_str()).collect();
        let ports: Vec<String> = target.hosts.iter().map(|host| host.port.to_string()).collect();
        prop_assert_eq!(names.join(","), value("host").as_str());
        prop_assert_eq!(ports.join(","), value("port").as_str());
        let mode = serde_json::to_value(target.tls.sslmode).expect("JSON");
        prop_assert_eq!(mode.as_str(), Some(value("sslmode").as_str()));
    }

    #[test]
    fn a_password_is_nowhere_but_among_the_secrets(server in a_server(), password in "[A-Z]{12}[!-~]{0,8}") {
        let mapping = options(&[("user", "alice"), ("password", &password)]);
        let (target, secrets) = Target::new(&server, &mapping, "caller").expect("a target");
        let shown = format!("{target:?} {secrets:?} {}", serde_json::to_string(&target).expect("JSON"));
        prop_assert!(!shown.contains(&password));
        let text = serde_json::to_string(&secrets).expect("JSON");
        prop_assert_eq!(&secrets, &serde_json::from_str::<Secrets>(&text).expect("secrets"));
        prop_assert_eq!(secrets.password.as_deref(), Some(password.as_str()));
    }

    /// A validator is given whatever a user writes.
    #[test]
    fn any_option_is_checked_without_a_panic(name in "[a-z_]{0,20}", value in "\\PC{0,20}", is_superuser: bool) {
        for of in [OptionOf::Wrapper, OptionOf::Server, OptionOf::UserMapping, OptionOf::ForeignTable] {
            if let Err(error) = check_option(of, &name, &value, is_superuser) {
                prop_assert!(["HV00D", "22023", "42501"].contains(&error.sqlstate.as_str()), "{error:?}");
                prop_assert!(error.hint.is_some() || error.detail.is_some() || error.sqlstate == "22023");
            }
        }
    }
}
