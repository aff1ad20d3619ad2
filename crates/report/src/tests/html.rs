//! The page.

use std::time::Instant;

use bench_results::{Document, Severity};

use crate::formats::Format;
use crate::run::render;
use crate::tests::documents;
use crate::tests::example::{HOSTILE, believable, hostile};

/// Elements without an end tag.
const VOID: [&str; 1] = ["meta"];

/// The start tags of a page, each as its name and its attributes, after a check that all of them are closed in
/// their order and that text holds no bare `<`.
pub fn tags(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut open: Vec<String> = Vec::new();
    let mut tags = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        let end = rest.find('>').expect("a tag that ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "</{name}>");
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "<{tag}>");
        let mut pairs = Vec::new();
        while let Some((attribute, value)) = attributes.trim_start().split_once("=\"") {
            let (value, others) = value.split_once('"').expect("a value that ends");
            pairs.push((attribute.to_owned(), value.to_owned()));
            attributes = others;
        }
        assert!(["", "open"].contains(&attributes.trim()), "<{tag}>");
        if !is_empty && !VOID.contains(&name) {
            open.push(name.to_owned());
        }
        tags.push((name.to_owned(), pairs));
    }
    assert_eq!(open, Vec::<String>::new());
    tags
}

/// The value of an attribute.
fn attribute<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(attribute, _)| attribute == name).map(|(_, value)| value.as_str())
}

/// Whether a page is well-formed and needs nothing but itself.
pub fn check_page(name: &str, page: &str) {
    for (tag, attributes) in tags(page) {
        assert!(!["script", "link", "img", "iframe", "object", "base", "image", "use"].contains(&&*tag));
        for (attribute, value) in attributes {
            if (tag.as_str(), attribute.as_str()) == ("a", "href") {
                let id = value.strip_prefix('#').unwrap_or_else(|| panic!("{name}: a link to {value}"));
                assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{name}: where {value} leads");
                continue;
            }
            let is_known = ["charset", "name", "content", "lang", "class", "id", "style", "colspan"]
                .into_iter()
                .chain([
                    "xmlns",
                    "viewBox",
                    "role",
                    "aria-label",
                    "fill",
                    "stroke",
                    "stroke-width",
                    "stroke-dasharray",
                    "opacity",
                ])
                .chain(["x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height", "points", "dy"])
                .chain(["text-anchor", "font-family", "font-size"])
                .any(|known| known == attribute);
            assert!(is_known, "{name}: {attribute}=\"{value}\" in <{tag}>");
            assert!(attribute == "xmlns" || !value.contains("://"), "{name}: {attribute}=\"{value}\"");
        }
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"), "{name}");
    for part in ["<meta charset=\"utf-8\"", "<meta name=\"viewport\"", "prefers-color-scheme", "@media print"]
    {
        assert!(page.contains(part), "{name}: {part}");
    }
    let style = page.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>")).unwrap().0;
    assert!(!style.contains("url(") && !style.contains("@import"));
}

#[test]
fn pages_are_well_formed_and_load_nothing() {
    for (name, document) in documents() {
        check_page(name, &render(&document, Format::Html));
    }
}

#[test]
fn input_stays_text() {
    check_input(&render(&hostile(), Format::Html));
}

/// Whether hostile input is but text.
pub fn check_input(page: &str) {
    assert!(!page.contains(HOSTILE));
    assert!(!page.contains("<script") && !page.contains("</td>--") && page.matches("</style>").count() == 1);
    assert!(page.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;|&#39;&amp;amp;`*_[x]"));
    assert!(!page.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    assert!(!page.contains('\u{202e}'));
}

/// The ids of the plots of a run's page.
fn plots(document: &Document) -> Vec<String> {
    plot_ids(&render(document, Format::Html))
}

/// The ids of the plots of a page.
pub fn plot_ids(page: &str) -> Vec<String> {
    let figures = tags(page).into_iter().filter(|(tag, _)| tag == "figure");
    figures.filter_map(|(_, attributes)| attribute(&attributes, "id").map(str::to_owned)).collect()
}

#[test]
fn what_is_known_is_plotted() {
    let all = [
        "plot-tps",
        "plot-latency",
        "plot-heat",
        "plot-distribution",
        "plot-waits",
        "plot-wal",
        "plot-processors",
    ];
    let mut document = believable(90);
    assert_eq!(plots(&document), all);
    document.samples.cpu_user.fill(None);
    assert_eq!(plots(&document), all, "four of five are known");
    let samples = &mut document.samples;
    for series in
        [&mut samples.cpu_system, &mut samples.cpu_iowait, &mut samples.cpu_steal, &mut samples.cpu_idle]
    {
        series.fill(None);
    }
    assert_eq!(plots(&document), all[..6]);
    document.samples.wal_bytes.fill(None);
    assert_eq!(plots(&document), all[..6], "full-page images are known");
    document.samples.wal_fpi.fill(None);
    assert_eq!(plots(&document), all[..5]);
    document.samples.waits.clear();
    assert_eq!(plots(&document), all[..4]);
    document.latencies.clear();
    assert_eq!(plots(&document), all[..3]);
    document.samples.latency_histogram.clear();
    assert_eq!(plots(&document), all[..2], "a run without histograms of its intervals");
    document.samples = Default::default();
    assert_eq!(plots(&document), Vec::<String>::new());
}

/// Whether plots have names and known colours and stay in their frames.
pub fn check_plots(page: &str) {
    let inside = |value: &str, most: i32| {
        let value: i32 = value.parse().unwrap();
        assert!((0..=most).contains(&value), "{value} is not within {most}");
    };
    // Rows with names make a chart higher.
    let mut height = 600;
    for (tag, attributes) in tags(page) {
        let of = |name| attribute(&attributes, name);
        if tag == "svg" {
            height = of("viewBox").and_then(|of| of.rsplit(' ').next()?.parse().ok()).unwrap();
            assert_eq!(of("role"), Some("img"));
            assert!(of("aria-label").is_some_and(|label| !label.is_empty()));
            assert!(of("viewBox").is_some() && of("width").is_none());
        }
        for color in ["fill", "stroke"].into_iter().filter_map(of).filter(|color| *color != "none") {
            assert!(page.contains(&format!("svg [fill=\"{color}\"]{{")), "{color} in <{tag}>");
        }
        for (x, y) in [("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")] {
            if let (Some(x), Some(y)) = (of(x), of(y)) {
                inside(x, 1_280);
                inside(y, height);
            }
        }
        for point in of("points").unwrap_or_default().split_whitespace() {
            let (x, y) = point.split_once(',').unwrap();
            inside(x, 1_280);
            inside(y, height);
        }
    }
}

#[test]
fn plots_have_names_and_known_colors_and_stay_in_their_frames() {
    for document in [believable(90), hostile()] {
        check_plots(&render(&document, Format::Html));
    }
}

#[test]
fn dips_and_values_are_told() {
    let page = render(&believable(60), Format::Html);
    assert!(page.contains("<li class=\"warning\" id=\"finding-2\">"));
    assert!(page.contains("dip: finding 2</li>"));
    // Throughput, percentiles and heat map have its number.
    assert_eq!(page.matches(">2</text>").count(), 3);
    assert!(page.contains("<title>22 s to 23 s\ntps: "), "values");
    assert!(page.contains("</i>median 1"), "the median");
}

#[test]
fn throughput_comes_before_findings_and_notices_are_folded() {
    let mut document = believable(60);
    let page = render(&document, Format::Html);
    let places =
        ["id=\"plot-tps\"", "id=\"findings\"", "id=\"finding-1\"", "notice: ", "id=\"plot-latency\""];
    let places = places.map(|part| page.find(part).unwrap_or_else(|| panic!("{part}")));
    assert!(places.is_sorted(), "{places:?}");
    let folded =
        |page: &str| page.split_once("notice").map(|(_, rest)| rest.contains("class=\"notice\"")).unwrap();
    assert!(folded(&page));
    document.findings.retain(|finding| finding.severity == Severity::Notice);
    let page = render(&document, Format::Html);
    assert!(page.contains("Nothing that makes the figures doubtful.") && folded(&page));
    document.findings.clear();
    assert!(render(&document, Format::Html).contains("<p class=\"note\">None.</p>"));
}

#[test]
fn contents_name_all_parts() {
    let page = render(&believable(60), Format::Html);
    let parts = tags(&page).into_iter().filter(|(tag, _)| tag == "figure" || tag == "section").count();
    assert!(parts > 12);
    assert_eq!(page.matches("<li><a href=\"#").count(), parts);
    assert!(page.contains("<li><a href=\"#plot-tps\">Throughput</a></li>"));
}

#[test]
fn a_legend_names_no_share_of_nothing() {
    let mut document = believable(60);
    document.samples.cpu_steal.fill(Some(0.0004));
    let page = render(&document, Format::Html);
    assert!(!page.contains("0.0 %</li>"));
    assert!(page.contains("</i>idle "));
}

#[test]
fn a_soak_is_thinned() {
    let document = believable(28_800);
    let begin = Instant::now();
    let page = render(&document, Format::Html);
    println!("{} bytes in {:?}", page.len(), begin.elapsed());
    assert!(page.len() < 3_000_000, "{}", page.len());
    assert!(page.contains("of 40 intervals (40 s)"));
    assert_eq!(tags(&page).iter().filter(|(tag, _)| tag == "circle").count(), 720 + 4);
}

#[test]
fn plans_are_shown_and_cut() {
    let mut document = believable(90);
    document.statements[3].plan = Some("Seq Scan on a < b\n".repeat(100_000));
    let page = render(&document, Format::Html);
    assert!(page.contains("<pre>Seq Scan on a &lt; b\nSeq Scan"));
    assert!(page.contains("more characters)"));
    assert!(page.len() < 500_000, "{}", page.len());
}
