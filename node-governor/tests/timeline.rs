// SPDX-License-Identifier: Apache-2.0
//! The page as the program makes it.

use std::fs;
use std::process::{Command, Output};

fn timeline(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-governor"));
    command.arg("timeline").args(arguments).output().unwrap()
}

#[test]
fn the_page_is_written_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().to_str().unwrap();
    let line =
        r#"{"at":1,"start":{"cores":"0-3","jobs":[{"name":"vips","queue":"long","threads":1}]}}"#;
    fs::write(folder.path().join("timeline.jsonl"), line.to_owned() + "\n").unwrap();
    let printed = timeline(&["--logs", logs]);
    assert!(printed.status.success(), "{printed:?}");
    let page = String::from_utf8(printed.stdout).unwrap();
    assert!(
        page.contains("vips") && page.ends_with("</html>\n"),
        "{page}"
    );
    let out = folder.path().join("page.html");
    let written = timeline(&["--logs", logs, "--out", out.to_str().unwrap()]);
    assert!(written.status.success() && written.stdout.is_empty());
    assert_eq!(fs::read_to_string(out).unwrap(), page);
}

#[test]
fn where_nothing_was_recorded_one_line_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().to_str().unwrap();
    let refused = timeline(&["--logs", logs]);
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(told, format!("{logs}: there is no timeline.jsonl yet\n"));
}
