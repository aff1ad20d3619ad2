use super::*;

fn told(baseline: &[Document], candidate: &[Document]) -> Vec<(String, Option<String>, Option<String>)> {
    let differences = compare(baseline, candidate, 0.02).unwrap().differences;
    differences.into_iter().map(|each| (each.what, each.baseline, each.candidate)).collect()
}

fn row(
    what: &str,
    baseline: Option<&str>,
    candidate: Option<&str>,
) -> (String, Option<String>, Option<String>) {
    (what.into(), baseline.map(str::to_owned), candidate.map(str::to_owned))
}

/// What a change to the candidate's runs makes of differences.
fn after(change: impl Fn(&mut Document)) -> Vec<(String, Option<String>, Option<String>)> {
    told(&side(1, 1000.0, 3), &changed(side(11, 1000.0, 3), change))
}

#[test]
fn ids_seeds_times_and_measurements_are_no_differences() {
    assert_eq!(told(&side(1, 1000.0, 3), &side(11, 700.0, 4)), []);
}

#[test]
fn every_option_is_told() {
    type Mutation = fn(&mut Run);
    let options: [(&str, Mutation, Option<&str>, &str); 18] = [
        ("workload", |run| run.workload = "pk_select".into(), Some("tpcb"), "pk_select"),
        ("fixture", |run| run.fixture = Some("small".into()), None, "small"),
        ("clients", |run| run.clients = 16, Some("8"), "16"),
        ("secs", |run| run.secs = Some(2.5), Some("10"), "2.5"),
        ("transactions", |run| run.transactions = Some(100), None, "100"),
        ("warmup", |run| run.warmup = Some(3.0), Some("0"), "3"),
        ("warmup", |run| run.warmup = None, Some("0"), "until steady"),
        ("rate", |run| run.rate = Some(50.0), None, "50"),
        ("latency_limit", |run| run.latency_limit = Some(20.0), None, "20"),
        ("max_tries", |run| run.max_tries = 5, Some("1"), "5"),
        ("query_mode", |run| run.query_mode = "simple".into(), Some("prepared"), "simple"),
        ("driver", |run| run.driver = "wire".into(), None, "wire"),
        ("target", |run| run.target = Some("replica".into()), None, "replica"),
        ("jobs", |run| run.jobs = Some(2), None, "2"),
        ("reconnect", |run| run.reconnect = true, None, "true"),
        ("on_disconnect", |run| run.on_disconnect = "reconnect".into(), None, "reconnect"),
        ("results", |run| run.results = "discard".into(), Some("serialize"), "discard"),
        ("sample_interval", |run| run.sample_interval = 0.5, Some("1"), "0.5"),
    ];
    for (what, change, before, now) in options {
        assert_eq!(after(|document| change(&mut document.run)), [row(what, before, Some(now))]);
    }
    let versions = after(|document| {
        document.run.server_version = "18.0".into();
        document.run.extension_version = "0.2.0".into();
        document.run.role = "bob".into();
    });
    assert_eq!(
        versions,
        [
            row("role", None, Some("bob")),
            row("server_version", Some("17.5"), Some("18.0")),
            row("extension_version", Some("0.1.0"), Some("0.2.0"))
        ]
    );
}

#[test]
fn every_trait_of_the_machine_is_told() {
    type Mutation = fn(&mut Environment);
    let traits: [(&str, Mutation, Option<&str>, &str); 15] = [
        ("server build", |of| of.version = Some("by clang".into()), None, "by clang"),
        ("data checksums", |of| of.data_checksums = Some(true), None, "on"),
        ("processors", |of| of.processors = Some(4), Some("8"), "4"),
        ("processor model", |of| of.processor_model = Some("EPYC".into()), None, "EPYC"),
        ("quota", |of| of.quota_processors = Some(1.5), None, "1.5 processors"),
        ("memory", |of| of.memory_bytes = Some(8 << 30), Some("16.0 GB"), "8.0 GB"),
        ("swap", |of| of.swap_bytes = Some(1 << 29), None, "0.5 GB"),
        ("kernel", |of| of.kernel = Some("Linux 6.1".into()), None, "Linux 6.1"),
        ("transparent huge pages", |of| of.transparent_huge_pages = Some("never".into()), None, "never"),
        (
            "kernel parameter vm.swappiness",
            |of| drop(of.kernel_parameters.insert("vm.swappiness".into(), "1".into())),
            None,
            "1",
        ),
        ("limit open files", |of| drop(of.limits.insert("open files".into(), "1024".into())), None, "1024"),
        ("filesystem", |of| of.filesystem = Some("xfs".into()), None, "xfs"),
        ("mount options", |of| of.mount_options = Some("noatime".into()), None, "noatime"),
        (
            "server setting shared_buffers",
            |of| of.server_settings = vec![setting("shared_buffers", "8GB")],
            Some("1GB"),
            "8GB",
        ),
        (
            "xmin horizon",
            |of| of.horizon_holder = Some("the session with pid 42".into()),
            None,
            "held back by another",
        ),
    ];
    for (what, change, before, now) in traits {
        assert_eq!(after(|document| change(&mut document.environment)), [row(what, before, Some(now))]);
    }
    assert_eq!(
        after(|document| document.run.horizon_held = true),
        [row("xmin horizon", None, Some("held back by the waiting caller"))]
    );
}

#[test]
fn noise_of_the_machine_is_no_difference() {
    // A new kernel keeps some more megabytes; the clock and the disk are a little slower; the address is another.
    assert_eq!(
        after(|document| {
            let of = &mut document.environment;
            of.memory_bytes = Some((16 << 30) - (20 << 20));
            of.clock_read_ns = Some(35.0);
            of.fsync_us = Some(620.0);
            of.server_settings[1].setting = "5433".into();
        }),
        []
    );
    assert_eq!(
        after(|document| {
            document.environment.clock_read_ns = Some(600.4);
            document.environment.fsync_us = Some(90.0);
        }),
        [
            row("clock reading", Some("24 ns"), Some("600 ns")),
            row("flush of 8 kB", Some("900 µs"), Some("90 µs"))
        ]
    );
    // One run with a slow disk does not make a side.
    let mut candidate = side(11, 1000.0, 3);
    candidate[1].environment.fsync_us = Some(9000.0);
    assert_eq!(told(&side(1, 1000.0, 3), &candidate), []);
}

#[test]
fn variables_and_settings_are_told_by_name() {
    let differences = after(|document| {
        document.run.variables = object(json!({"n": 5, "mode": "fast"}));
        document.run.settings = object(json!({"work_mem": "64MB", "enable_seqscan": false}));
    });
    assert_eq!(
        differences,
        [
            row("variable mode", None, Some("fast")),
            row("variable n", None, Some("5")),
            row("setting enable_seqscan", Some("default"), Some("false")),
            row("setting work_mem", Some("default"), Some("64MB")),
        ]
    );
}

#[test]
fn a_setting_of_the_run_takes_the_place_of_the_server_s() {
    // What a client was given is in force in its session, where the server's settings are read.
    let given = |value: &str| {
        let value = value.to_owned();
        move |document: &mut Document| {
            document.run.settings = object(json!({"Work_Mem": value}));
            document.environment.server_settings.push(setting("work_mem", &value));
        }
    };
    let servers = |document: &mut Document| {
        document.environment.server_settings.push(setting("work_mem", "8MB"));
    };
    let compare = |candidate: Vec<Document>| told(&changed(side(1, 1000.0, 3), servers), &candidate);
    assert_eq!(
        compare(changed(side(11, 1000.0, 3), given("64MB"))),
        [row("setting work_mem", Some("8MB"), Some("64MB"))]
    );
    assert_eq!(compare(changed(side(11, 1000.0, 3), given("8MB"))), []);
}

#[test]
fn several_values_of_a_side_are_told() {
    let mut candidate = side(11, 1000.0, 4);
    candidate[0].run.clients = 16;
    candidate[3].run.rate = Some(100.0);
    assert_eq!(
        told(&side(1, 1000.0, 3), &candidate),
        [row("clients", Some("8"), Some("16, 8")), row("rate", None, Some("100, none"))]
    );
    // Values that both sides have may still be spread unevenly.
    let mut baseline = side(1, 1000.0, 3);
    baseline[0].run.clients = 16;
    candidate[3].run.rate = None;
    assert_eq!(told(&baseline, &candidate), [row("clients", Some("16, 8"), Some("16, 8"))]);
}

#[test]
fn pairs_have_differences_too() {
    let pairs: Vec<(Document, Document)> =
        side(1, 1000.0, 3).into_iter().zip(changed(side(11, 1000.0, 3), |run| run.run.clients = 9)).collect();
    let differences = compare_pairs(&pairs, 0.02).unwrap().differences;
    assert_eq!(differences.len(), 1);
    assert_eq!((differences[0].what.as_str(), differences[0].candidate.as_deref()), ("clients", Some("9")));
}
