// SPDX-License-Identifier: Apache-2.0
//! Files that are broken, given to the real command: it says where and why, and writes nothing.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;

const KEYS: &str =
    "key,app,trigger,runs,avg_ms,min_ms,p1_ms,p25_ms,p50_ms,p75_ms,p99_ms,max_ms,mem_mb_p50
a,app1,http,9,10,0,1,5,10,20,100,1000,12.5
";
const SIZE: [&str; 6] = ["--minutes", "9", "--hosts", "2", "--cores", "2"];

/// A kind of trace: its command, its header, and two lines that are good.
struct Kind {
    name: &'static str,
    flag: &'static str,
    more: &'static [&'static str],
    header: &'static str,
    good: [&'static str; 2],
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "azure-functions",
        flag: "--counts",
        more: &SIZE,
        header: "t_ms,keys,count,cls",
        good: ["60000,a,50,http", "120000,a,60,http"],
    },
    Kind {
        name: "mooncake",
        flag: "--trace",
        more: &["--minutes", "9", "--prefix-keys"],
        header: "t_ms,keys,cost,size,cls",
        good: ["60000,0;1,10,1024,", "120000,0;2,10,1024,"],
    },
    Kind {
        name: "nasa",
        flag: "--trace",
        more: &SIZE,
        header: "t_ms,keys,cost,size,cls,client",
        good: ["60000,0,10,10,200,1", "120000,1,10,10,200,2"],
    },
    Kind {
        name: "flash-crowd",
        flag: "--counts",
        more: &SIZE,
        header: "t_ms,count",
        good: ["60000,50", "120000,60"],
    },
];

impl Kind {
    /// Runs the command in the folder.
    fn make(&self, folder: &Path, trace: &[u8]) -> Output {
        fs::write(folder.join("trace"), trace).unwrap();
        fs::write(folder.join("keys"), KEYS).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-replay"));
        command.current_dir(folder).args(["workload", self.name]);
        command.args([self.flag, "trace"]).args(self.more);
        command.args(["--out", "out.ndjson", "--report", "report.json"]);
        if self.name == "azure-functions" {
            command.args(["--keys", "keys"]);
        }
        command.output().unwrap()
    }

    fn text(&self, lines: &[&str]) -> Vec<u8> {
        let lines = [&[self.header], lines].concat();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        text.into_bytes()
    }

    /// It is refused with these words, and the folder has what it had.
    fn refuses(&self, trace: &[u8], words: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        // A workload of before stays as it was.
        fs::write(folder.path().join("out.ndjson"), "before").unwrap();
        let output = self.make(folder.path(), trace);
        assert!(!output.status.success(), "{}: {words:?}", self.name);
        let error = String::from_utf8(output.stderr).unwrap();
        for word in words {
            assert!(
                error.contains(word),
                "{}: no {word:?} in {error}",
                self.name
            );
        }
        let names = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["keys", "out.ndjson", "trace"], "{}", self.name);
        let left = fs::read(folder.path().join("out.ndjson")).unwrap();
        assert_eq!(left, b"before");
    }
}

/// The line with another cell in place of the n-th.
fn with(line: &str, n: usize, cell: &str) -> String {
    let mut cells: Vec<_> = line.split(',').collect();
    cells[n] = cell;
    cells.join(",")
}

#[test]
fn good_traces_are_taken_packed_or_not() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let text = kind.text(&kind.good);
        for trace in [text.clone(), packed(&text)] {
            let output = kind.make(folder.path(), &trace);
            assert!(output.status.success(), "{}: {output:?}", kind.name);
            assert!(folder.path().join("out.ndjson").exists());
        }
    }
}

#[test]
fn times_that_go_back_are_refused_with_the_line() {
    for kind in KINDS {
        let [first, second] = kind.good;
        kind.refuses(&kind.text(&[second, first]), &["line 3", "t_ms"]);
    }
}

#[test]
fn negative_and_missing_fields_are_refused_with_the_line() {
    for kind in KINDS {
        let [first, second] = kind.good;
        let columns: Vec<_> = kind.header.split(',').collect();
        let numbers = ["t_ms", "count", "size", "client"];
        for (n, column) in columns.iter().enumerate() {
            if numbers.contains(column) {
                for cell in ["-1", "", "x"] {
                    let bad = with(second, n, cell);
                    kind.refuses(&kind.text(&[first, &bad]), &["line 3", column, "is not"]);
                }
            }
        }
        let (short, _) = second.rsplit_once(',').unwrap();
        kind.refuses(
            &kind.text(&[first, short]),
            &["line 3", "fields instead of"],
        );
        kind.refuses(&kind.text(&[first, ""]), &["line 3", "fields instead of"]);
        kind.refuses(
            first.as_bytes(),
            &["line 1", "expected the header", kind.header],
        );
        kind.refuses(b"", &["line 1", "expected the header"]);
    }
}

#[test]
fn classes_that_nobody_knows_are_refused_with_the_line() {
    let [azure, _, nasa, _] = KINDS;
    let bad = with(azure.good[1], 3, "htpp");
    azure.refuses(
        &azure.text(&[azure.good[0], &bad]),
        &["line 3", "cls", "htpp", "http"],
    );
    let bad = with(nasa.good[1], 4, "2000");
    nasa.refuses(
        &nasa.text(&[nasa.good[0], &bad]),
        &["line 3", "cls", "2000"],
    );
}

#[test]
fn packed_files_that_were_cut_short_are_refused_wherever_the_cut_is() {
    for kind in KINDS {
        let whole = packed(&kind.text(&kind.good));
        for cut in [whole.len() - 1, whole.len() - 8, whole.len() / 2, 12, 2] {
            kind.refuses(&whole[..cut], &["line ", "cut short"]);
        }
    }
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}
