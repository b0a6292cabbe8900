// SPDX-License-Identifier: Apache-2.0
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::{FILE, OLD_FILE};
use super::*;
use crate::cores::Reason;
use crate::jobs::State;

fn book() -> SharesBook {
    let job = |name: &str| JobBook {
        name: name.into(),
        queue: "long",
        threads: 2,
        ..JobBook::default()
    };
    SharesBook {
        machine: [0, 1, 2, 3].into(),
        target: Some(Duration::from_micros(1500)),
        service: [0].into(),
        reason: Reason::Calm,
        jobs: vec![job("canneal"), job("dedup")],
        ..SharesBook::default()
    }
}

fn tail(at: u64, micros: u64) -> Option<Tail> {
    Some(Tail {
        latency: Duration::from_micros(micros),
        requests: 10,
        at: Nanos(at),
    })
}

fn lines(folder: &Path, file: &str) -> Vec<Line> {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let read = |line| serde_json::from_str(line).unwrap();
    text.lines()
        .filter(|line| !line.is_empty())
        .map(read)
        .collect()
}

#[test]
fn only_what_changed_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let mut recorder = Recorder::open(&logs).unwrap();
    let mut book = book();
    for at in 0..5 {
        recorder.record(5000 + at, &book, None);
    }
    book.jobs[1].state = State::Running;
    book.jobs[1].cores = [2, 3].into();
    recorder.record(5010, &book, None);
    (book.service, book.reason) = ([0, 1].into(), Reason::Busy);
    recorder.record(5020, &book, None);
    recorder.record(5030, &book, None);
    recorder.end(5040);
    let lines = lines(&logs, FILE);
    assert_eq!(lines.len(), 4, "{lines:?}");
    let start = lines[0].start.as_ref().unwrap();
    assert_eq!((&*start.cores, start.target_ms), ("0-3", Some(1.5)));
    assert_eq!(start.jobs[0].name, "canneal");
    assert_eq!(lines[0].service.as_ref().unwrap().cores, "0");
    let job = &lines[1].jobs["dedup"];
    assert_eq!((&*job.state, &*job.cores), ("running", "2-3"));
    assert_eq!((lines[1].jobs.len(), &lines[1].service), (1, &None));
    assert_eq!(lines[2].service.as_ref().unwrap().why, "busy");
    assert!(lines[2].jobs.is_empty());
    assert_eq!((lines[3].at, lines[3].end), (5040, true));
}

#[test]
fn a_sample_a_second_has_the_mean_use_and_the_highest_tail_that_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::open(folder.path()).unwrap();
    let mut book = book();
    recorder.record(10_000, &book, None);
    for (at, cpu, tail) in [
        (10_050, 0.5, tail(1, 900)),
        (10_500, 1.5, tail(2, 2500)),
        (10_950, 1.0, tail(2, 2500)),
        (11_000, 1.0, tail(2, 2500)),
        (12_500, 0.25, tail(2, 2500)),
        (12_600, 0.25, tail(3, 2500)),
    ] {
        book.cpu = Some(cpu);
        recorder.record(at, &book, tail);
    }
    recorder.end(13_000);
    let samples: Vec<(u64, Option<Sample>)> = lines(folder.path(), FILE)
        .into_iter()
        .skip(1)
        .map(|line| (line.at, line.sample))
        .collect();
    let sample = |cpu, tail_ms| {
        let cpu = Some(cpu);
        Some(Sample { cpu, tail_ms })
    };
    assert_eq!(
        samples,
        [
            (11_000, sample(1.0, Some(2.5))),
            (12_500, sample(0.25, None)),
            (13_000, None),
        ]
    );
}

/// A recorder and its writer without a thread between them.
struct Both {
    recorder: Recorder,
    lines: Receiver<Message>,
    writer: Writer,
    _ending: SyncSender<()>,
}

impl Both {
    fn over(writer: Writer) -> Both {
        let (recorder, lines, _ending) = Recorder::new();
        Both {
            recorder,
            lines,
            writer,
            _ending,
        }
    }

    /// How many lines came of it.
    fn record(&mut self, at: u64, book: &SharesBook) -> usize {
        self.recorder.record(at, book, None);
        let told = &self.recorder.told;
        let taken = self.lines.try_iter();
        taken.map(|line| self.writer.take(&line, told)).count()
    }

    /// From now on.
    fn with_disk(self, disk: fs::File) -> Both {
        let writer = self.writer.with_file(disk);
        Both { writer, ..self }
    }
}

/// Writes to it fail with "no space left on device".
fn full_disk() -> fs::File {
    fs::File::options().append(true).open("/dev/full").unwrap()
}

#[test]
fn a_full_file_is_kept_once_and_the_next_begins_with_everything() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 4000;
    let mut both = Both::over(Writer::open(folder.path(), limit).unwrap());
    let mut book = book();
    for at in 0..500 {
        book.service = [at as u32 % 4].into();
        both.record(at, &book);
    }
    let count = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(count, 2, "the file and the one before it");
    for file in [FILE, OLD_FILE] {
        let size = fs::metadata(folder.path().join(file)).unwrap().len();
        assert!(size < limit + 500, "{file}: {size}");
        let first = &lines(folder.path(), file)[0];
        assert!(first.start.as_ref().unwrap().goes_on, "{file}: {first:?}");
        assert_eq!(first.jobs.len(), 2);
    }
}

#[test]
fn a_line_that_was_cut_off_spoils_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    fs::write(&path, "{\"at\":1,\"serv").unwrap();
    let mut recorder = Recorder::open(folder.path()).unwrap();
    recorder.record(2, &book(), None);
    recorder.end(3);
    let text = fs::read_to_string(&path).unwrap();
    let whole = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let whole: Vec<Line> = whole.collect();
    assert_eq!((whole[0].at, whole[1].at), (2, 3), "{text}");
}

#[test]
fn a_full_disk_is_tried_once_a_second_and_what_follows_says_everything() {
    let folder = tempfile::tempdir().unwrap();
    let mut book = book();
    let mut both = Both::over(Writer::open(folder.path(), 4000).unwrap());
    assert_eq!(both.record(0, &book), 1);
    let mut both = both.with_disk(full_disk());
    let mut tries = 0;
    for at in 0..20_000 {
        book.service = [at as u32 % 4].into();
        tries += both.record(1000 + at, &book);
    }
    assert_eq!(tries, 21, "the one that failed, and each second");
    let room = fs::File::options()
        .append(true)
        .open(folder.path().join(FILE));
    let mut both = both.with_disk(room.unwrap());
    for at in 0..20 {
        book.service = [at as u32 % 4].into();
        both.record(21_000 + at, &book);
    }
    assert!(!folder.path().join(OLD_FILE).exists(), "nothing was full");
    let lines = lines(folder.path(), FILE);
    let whole = lines.iter().filter(|line| line.start.is_some());
    assert_eq!(whole.count(), 2, "{lines:?}");
    assert_eq!(lines[1].at, 21_002, "a second after the last: {lines:?}");
}

#[test]
fn a_file_that_cannot_be_turned_over_grows_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 4000;
    let mut both = Both::over(Writer::open(folder.path(), limit).unwrap());
    // No file takes the place of a folder.
    fs::create_dir(folder.path().join(OLD_FILE)).unwrap();
    let mut book = book();
    let mut record = |at: u64| {
        book.service = [at as u32 % 4].into();
        both.record(at, &book);
    };
    (0..10_000).for_each(&mut record);
    let size = || fs::metadata(folder.path().join(FILE)).unwrap().len();
    assert!(size() < limit + 500, "{}", size());
    fs::remove_dir(folder.path().join(OLD_FILE)).unwrap();
    (10_000..11_010).for_each(&mut record);
    assert!(folder.path().join(OLD_FILE).is_file(), "it is tried again");
    assert!(lines(folder.path(), FILE)[0].start.is_some());
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    drop(Recorder::open(&logs).unwrap());
    fs::set_permissions(&logs, fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = |folder: &Path| Recorder::open(folder).unwrap_err().to_string();
    assert!(refused(&logs).contains("others may write there"));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("logs", &link).unwrap();
    assert_eq!(refused(&link), "not a directory");
    fs::set_permissions(&logs, fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&logs, Some(12345), None).unwrap();
        assert_eq!(refused(&logs), "belongs to another user");
    }
}

#[test]
fn what_is_no_file_is_neither_written_nor_read() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, secret) = (folder.path().join(FILE), other.path().join("secret"));
    fs::write(&secret, "").unwrap();
    std::os::unix::fs::symlink(&secret, &path).unwrap();
    let refused = || {
        Recorder::open(folder.path()).unwrap_err();
        super::super::page::html(folder.path()).unwrap_err();
    };
    refused();
    fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused();
    assert_eq!(fs::read(&secret).unwrap(), b"");
}
