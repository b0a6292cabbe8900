// SPDX-License-Identifier: Apache-2.0
//! Lines as real programs write them, and as nobody should.

use proptest::prelude::*;
use weir_exposition::{Fault, Series, lines};

/// Name, labels, value.
type Sample = (String, Vec<(String, String)>, f64);

/// The one sample of a line.
fn sample(text: &str) -> Result<Sample, String> {
    let mut all = lines(text);
    let line = all.next().ok_or("no line")?;
    assert_eq!(all.next(), None);
    let wrong = |fault: Fault| format!("column {}: {fault}", fault.column);
    let (series, value) = line.read().map_err(wrong)?;
    assert_eq!(series.name, line.name);
    let labels = series.labels.into_iter();
    let labels = labels.map(|(name, value)| (name.to_owned(), value.into_owned()));
    Ok((series.name.to_owned(), labels.collect(), value))
}

fn labels(labels: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    labels.iter().map(owned).collect()
}

#[test]
fn a_timestamp_and_an_exemplar_are_left_out() {
    let le = labels(&[("le", "0.1")]);
    for text in [
        "rq_bucket{le=\"0.1\"} 8",
        "rq_bucket{le=\"0.1\"} 8 1700000000000",
        "rq_bucket{le=\"0.1\"} 8 # {trace_id=\"x\"} 0.067",
        "rq_bucket{le=\"0.1\"} 8 1700000000.5 # {t=\"}\"} 0.067 1700000000",
    ] {
        assert_eq!(sample(text), Ok(("rq_bucket".into(), le.clone(), 8.0)));
    }
}

#[test]
fn blanks_may_stand_between_all_parts() {
    let ab = labels(&[("a", "1"), ("b", "2")]);
    for text in [
        "rq{a=\"1\",b=\"2\"} 3",
        "rq {a=\"1\",b=\"2\"} 3",
        "\trq\t{ a = \"1\" , b = \"2\" , }\t3 ",
        "rq{a=\"1\",b=\"2\"}3",
    ] {
        assert_eq!(sample(text), Ok(("rq".into(), ab.clone(), 3.0)), "{text}");
    }
    assert_eq!(sample("rq\t3"), Ok(("rq".into(), Vec::new(), 3.0)));
    assert_eq!(sample("rq{} +Inf").unwrap().2, f64::INFINITY);
}

#[test]
fn escapes_in_values_are_read() {
    let text = "rq{a=\"\\\",b=\\\"2}\",c=\"x\\\\\",d=\"\\n\"} 1";
    let expected = labels(&[("a", "\",b=\"2}"), ("c", "x\\"), ("d", "\n")]);
    assert_eq!(sample(text).unwrap().1, expected);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, expected) in [
        ("rq soon", "column 4: \"soon\" is not a number"),
        ("rq", "column 3: no value"),
        ("rq{} # {t=\"x\"} 1", "column 6: \"#\" is not a number"),
        ("rq{b=\"c} 1", "column 7: no closing quote"),
        ("rq{b} 1", "column 4: no label"),
        ("rq{=\"c\"} 1", "column 4: no label"),
        ("rq{b=c} 1", "column 6: a label's value is not quoted"),
        ("rq{b=\"c\" d=\"e\"} 1", "column 10: labels do not end"),
        ("rq{b=\"c\"", "column 9: labels do not end"),
        ("{b=\"c\"} 1", "column 1: no name"),
        ("rq-2 1", "column 3: no name"),
    ] {
        assert_eq!(sample(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn a_series_is_read_without_a_value() {
    let series = Series::parse("rq{c=\"a\"} ").unwrap();
    assert_eq!((series.name, series.label("c")), ("rq", Some("a")));
    assert_eq!(series.label("d"), None);
    assert!(Series::parse("rq 1").is_err());
    assert!(Series::parse("rq{c=\"a\"").is_err());
    assert!(Series::parse("").is_err());
}

#[test]
fn comments_and_empty_lines_are_counted_and_left_out() {
    let page = "# HELP rq x\n\n  # y\nrq 1\r\nrq2 2\n# EOF\n";
    let numbers: Vec<_> = lines(page).map(|line| (line.number, line.name)).collect();
    assert_eq!(numbers, [(4, "rq"), (5, "rq2")]);
}

proptest! {
    #[test]
    fn no_page_makes_it_panic(page in "[a_{}\"=,\\\\ 0-9é\n\t#.-]{0,200}") {
        for line in lines(&page) {
            if let Err(fault) = line.read() {
                prop_assert!(fault.to_string().len() < 300);
            }
        }
    }

    #[test]
    fn what_is_written_is_read(
        name in "[a-zA-Z_:][a-zA-Z0-9_:]{0,9}",
        written in prop::collection::vec(("[a-z_][a-z0-9_]{0,5}", "[^\n\r]{0,9}"), 0..4),
        value in -1e9f64..1e9,
    ) {
        let label = |(name, value): &(String, String)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            format!("{name}=\"{value}\"")
        };
        let inside: Vec<_> = written.iter().map(label).collect();
        let line = format!("{name}{{{}}} {value}\n", inside.join(","));
        prop_assert_eq!(sample(&line), Ok((name, written, value)));
    }
}
