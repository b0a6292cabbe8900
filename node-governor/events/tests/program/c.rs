// SPDX-License-Identifier: Apache-2.0
//! A program in C, compiled with the header as its users do.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use weir_events::{FunctionId, Geometry, Kind, Reader};
use weir_needs::Need;

use crate::{MERGE, SCORE, free_dead, place, read};

use Kind::{Enter, Leave};

/// By the compiler, with all warnings; `None` where there is no such compiler.
fn compile(compiler: &'static str, flags: &[&str], sources: &[&str]) -> Option<TempDir> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().unwrap();
    let run = Command::new(compiler)
        .args(["-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-pthread"])
        .args(flags)
        .arg("-I")
        .arg(here.join("include"))
        .arg("-o")
        .arg(directory.path().join("program"))
        .args(
            sources
                .iter()
                .map(|source| here.join("tests/c").join(source)),
        )
        .output();
    match run {
        Ok(run) => {
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{compiler} {flags:?}: {said}");
            Some(directory)
        }
        Err(error) => {
            weir_needs::skip(Need::Installed(compiler), error);
            None
        }
    }
}

/// The program, which goes on by a step when it is told, and says how far it has come.
struct Program {
    process: Child,
    _directory: TempDir,
}

impl Program {
    fn start(ring: &Path) -> Option<Program> {
        let directory = compile("cc", &["-std=c11"], &["program.c", "other_file.c"])?;
        let process = Command::new(directory.path().join("program"))
            .env("WEIR_EVENTS", ring)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Program {
            process,
            _directory: directory,
        })
    }

    fn said(&mut self, expected: &str) {
        let mut line = String::new();
        // One line at a time is all that is in the pipe.
        BufReader::new(self.process.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line.trim_end(), expected);
    }

    fn go(&mut self) {
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(b"\n").unwrap();
    }
}

#[test]
fn a_program_in_c_is_understood() {
    const LOAD: FunctionId = FunctionId::new(9).unwrap();
    const SPIN: FunctionId = FunctionId::new(7).unwrap();
    let place = place();
    let (mut reader, _) = place.opened(Geometry::new(4, 256).unwrap());
    let Some(mut program) = Program::start(&place.file) else {
        return;
    };

    program.said("in");
    let (tick, seen) = read(&mut reader);
    assert_eq!((tick.claimed, tick.events, tick.lost), (1, 2, 0));
    assert_eq!(seen[0].running, [SCORE, MERGE]);
    assert_eq!(seen[0].events, [(Enter, SCORE), (Enter, MERGE)]);
    let pid = program.process.id();
    let owner = seen[0].owner.unwrap();
    assert_eq!((owner.pid, owner.tid), (pid, pid));
    assert_eq!(free_dead(&mut reader), 0, "it says when it was started");

    program.go();
    program.said("out");
    let (tick, seen) = read(&mut reader);
    assert_eq!((tick.claimed, tick.events), (1, 2));
    assert_eq!(seen[0].events, [(Leave, MERGE), (Leave, SCORE)]);

    // Three threads have room besides the first one.
    program.go();
    program.said("threads");
    let (tick, seen) = read(&mut reader);
    assert_eq!((tick.claimed, tick.events, tick.lost), (1, 3 * 80, 0));
    assert!(
        seen.iter()
            .flat_map(|lane| &lane.events)
            .all(|(_, function)| *function == SPIN)
    );

    program.go();
    program.said("child");
    let (tick, seen) = read(&mut reader);
    assert_eq!(tick.claimed, 2);
    let of = |is_child: bool| {
        let is_it = |owner: weir_events::Owner| (owner.pid != pid) == is_child;
        seen.iter()
            .find(|lane| lane.owner.is_some_and(is_it))
            .unwrap()
    };
    assert_eq!(of(false).running, [SCORE]);
    assert_eq!(
        of(true).running,
        [SCORE, LOAD],
        "it was forked within the first"
    );
    assert_eq!(of(true).since_ns[0], of(false).since_ns[0]);

    program.go();
    program.said("killed");
    assert_eq!(free_dead(&mut reader), 1, "the child, which was killed");
    let (_, seen) = read(&mut reader);
    assert_eq!(seen[0].running, [SCORE]);

    // It follows to another file at the next call.
    drop(reader);
    let (mut reader, _) = place.opened(Geometry::new(8, 16).unwrap());
    program.go();
    program.said("again");
    let (_, seen) = read(&mut reader);
    assert_eq!(seen[0].running, [SCORE, MERGE]);

    program.go();
    assert!(program.process.wait().unwrap().success());
    assert_eq!(read(&mut reader).0.claimed, 0, "it gave the lane back");
}

#[test]
fn only_the_group_may_write() {
    if !nix::unistd::geteuid().is_root() {
        return weir_needs::skip(Need::Root, "programs are started as other users");
    }
    const USER: u32 = 65534;
    const GROUP: u32 = 65533;
    let place = place();
    let file = &place.file;
    let geometry = Geometry::default();
    let (mut reader, _) = Reader::create_or_adopt(file, geometry, Some(GROUP)).unwrap();
    let Some(directory) = compile("cc", &[], &["program.c", "other_file.c"]) else {
        return;
    };
    for directory in [directory.path(), file.ancestors().nth(2).unwrap()] {
        fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    }
    let mut claimed = |group: u32| {
        let program = Command::new(directory.path().join("program"))
            .env("WEIR_EVENTS", file)
            .uid(USER)
            .gid(group)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut program = Program {
            process: program,
            _directory: tempfile::tempdir().unwrap(),
        };
        program.said("in");
        let claimed = read(&mut reader).0.claimed;
        program.process.kill().unwrap();
        let said = program.process.wait_with_output().unwrap().stderr;
        free_dead(&mut reader);
        (claimed, String::from_utf8(said).unwrap())
    };
    assert_eq!(claimed(GROUP), (1, String::new()));
    let (claimed, said) = claimed(USER);
    assert_eq!(claimed, 0);
    assert!(said.contains("Permission denied"), "{said}");
}

#[test]
fn a_program_in_c_goes_on_without_a_file() {
    let place = place();
    drop(place.reader());
    std::fs::OpenOptions::new()
        .write(true)
        .open(&place.file)
        .unwrap()
        .set_len(5000)
        .unwrap();
    let Some(mut program) = Program::start(&place.file) else {
        return;
    };
    for _ in ["in", "out", "threads", "child", "killed", "again"] {
        program.go();
    }
    let output = program.process.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "weir-events: {}: the file has 5000 bytes, expected 1118208; hot functions are not told to the governor \
         until that is over\n",
        place.file.display()
    );
    // Once by the program, and once more by the child, which cannot know.
    assert!(said.starts_with(&expected), "{said}");
    assert!(said.lines().count() <= 2, "{said}");
}

#[test]
fn the_header_compiles_without_a_warning_wherever_it_may_be_used() {
    for (compiler, flags) in [
        ("cc", &["-std=c99", "-pedantic"][..]),
        ("cc", &["-std=gnu17", "-O0"]),
        ("cc", &["-std=c11", "-fPIC", "-shared"]),
        ("c++", &["-x", "c++", "-std=c++17"]),
        ("clang", &["-std=c11", "-Weverything", "-Wno-error"]),
    ] {
        compile(compiler, flags, &["event.c", "other_file.c"]);
    }
}
