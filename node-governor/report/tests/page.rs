// SPDX-License-Identifier: Apache-2.0
//! What a reader's browser is given.

use std::fs;

use weir_report::{
    Axis, BarRow, Bars, Figure, Heat, HeatRow, Kind, Lane, Lanes, Panels, Plot, Report, Series,
    Stack, Stretch, Strip, Strips, Style, Table, VerticalMark,
};

/// A report with one of everything, `text` in every place that takes text.
fn report(text: &str) -> Report {
    let text = || text.to_owned();
    let mut report = Report::new(text(), text());
    report.heading(&text());
    report.text(&text());
    report.note(&text());
    report.command(&text());
    report.table(&Table {
        header: vec![text()],
        rows: vec![vec![text(), text()]],
    });
    report.bars(&Bars {
        title: text(),
        label: text(),
        series: vec![text()],
        rows: vec![BarRow {
            label: text(),
            values: vec![1.0],
        }],
        caption: text(),
    });
    let heat = Heat {
        title: text(),
        header: vec![text(), text()],
        rows: vec![HeatRow {
            label: text(),
            shares: vec![0.5],
        }],
        caption: text(),
    };
    report.heat(&heat);
    let strips = Strips {
        title: text(),
        x: Axis::linear(text()).range(0.0, 1.0),
        rows: vec![Strip {
            label: text(),
            values: vec![1.0],
        }],
        steps: vec![1.0],
        unit: text(),
        caption: text(),
    };
    report.strips(&strips);
    let lanes = Lanes {
        title: text(),
        x: Axis::linear(text()).range(0.0, 2.0),
        kinds: vec![Kind {
            name: text(),
            thin: false,
        }],
        rows: vec![Lane {
            label: text(),
            stretches: vec![Stretch {
                from: 0.0,
                to: 1.0,
                kind: 0,
            }],
            marks: vec![0.0, 1.0],
            note: text(),
            bad: true,
        }],
        caption: text(),
    };
    report.lanes(&lanes);
    report.stack(&Stack {
        title: text(),
        figures: vec![Figure::Lanes(lanes)],
        caption: text(),
    });
    report.fold(&text(), |report| {
        report.panels(&Panels {
            title: text(),
            figures: vec![Figure::Heat(heat), Figure::Strips(strips)],
            caption: text(),
        });
    });
    report.list(&[text()]);
    report.facts(&[(text(), text())]);
    let series = |style| Series {
        name: text(),
        points: vec![(1.0, 1.0), (2.0, 3.0)],
        style,
    };
    report.plot(&Plot {
        title: text(),
        x: Axis::linear(text()),
        y: Axis::log(text()),
        series: vec![
            series(Style::Line),
            series(Style::Step),
            series(Style::Points),
        ],
        marks: vec![VerticalMark {
            x: 1.5,
            label: text(),
        }],
        caption: text(),
    });
    report
}

#[test]
fn a_page_loads_nothing_and_runs_nothing() {
    let html = report("plain").html().replace("http-equiv", "");
    for outside in [
        "http", "//", "src=", "href", "url(", "@import", "<script", "<link", "<img", "<iframe",
        "onload",
    ] {
        assert!(!html.contains(outside), "{outside} in the page");
    }
}

#[test]
fn text_never_becomes_markup() {
    let html = report("<script>alert(\"1\")</script> & 'x' onload=\"y").html();
    assert!(!html.contains("<script") && !html.contains("alert(\""));
    assert!(html.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;"));
}

#[test]
fn text_stays_text_and_every_tag_is_closed() {
    let html = report("found").html();
    assert!(
        !html.contains("<text"),
        "text in a stretched drawing would be distorted"
    );
    for tag in [
        "main", "figure", "svg", "div", "table", "ul", "p", "span", "h2", "h3", "h4", "tr", "td",
        "details", "summary", "dl", "dt", "dd",
    ] {
        let opened =
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn the_same_calls_give_the_same_page() {
    assert_eq!(report("a").html(), report("a").html());
}

#[test]
fn a_written_report_replaces_the_old_one_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("order.html");
    fs::write(&path, "old").unwrap();
    report("new").write(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), report("new").html());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_failed_write_names_the_file_and_leaves_no_rest() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("inside"), "").unwrap();
    let error = report("a").write(&taken).unwrap_err();
    assert!(error.to_string().contains("taken"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// WCAG 2.2, 1.4.3 and 1.4.11: text 4.5:1, strokes 3:1 against the page.
#[test]
fn colours_stand_out_from_the_page_in_both_themes() {
    let html = report("a").html();
    let themes: Vec<&str> = html
        .split(":root {")
        .skip(1)
        .map(|rest| rest.split('}').next().unwrap())
        .collect();
    assert_eq!(themes.len(), 2);
    for theme in themes {
        let page = luminance(theme, "--page");
        let names = ["--text", "--soft", "--bad"]
            .map(str::to_owned)
            .into_iter()
            .map(|name| (name, 4.5));
        let series = (0..7).map(|n| (format!("--s{n}"), 3.0));
        // A nothing is written on the first shade in the soft colour.
        let nothing = contrast(luminance(theme, "--soft"), luminance(theme, "--f0"));
        assert!(nothing >= 4.5, "--soft on --f0: {nothing:.2}");
        // What else is written on a shade is in the colour of the text, or of the page.
        for n in 0..8 {
            let written = luminance(theme, if n < 4 { "--text" } else { "--page" });
            let contrast = contrast(written, luminance(theme, &format!("--f{n}")));
            assert!(contrast >= 4.5, "--f{n}: {contrast:.2}");
        }
        for (name, least) in names.chain(series) {
            let other = luminance(theme, &name);
            let contrast = contrast(page, other);
            assert!(contrast >= least, "{name}: {contrast:.2}");
        }
    }
}

fn contrast(a: f64, b: f64) -> f64 {
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Relative luminance of a colour `name: #rrggbb` (WCAG 2.2).
fn luminance(theme: &str, name: &str) -> f64 {
    let at = theme.find(&format!("{name}: #")).unwrap() + name.len() + 3;
    let part = |n: usize| {
        let byte = u8::from_str_radix(&theme[at + 2 * n..at + 2 * n + 2], 16).unwrap();
        let share = f64::from(byte) / 255.0;
        if share <= 0.04045 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2)
}
