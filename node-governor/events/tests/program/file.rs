// SPDX-License-Identifier: Apache-2.0
//! The file that the governor makes, takes over, replaces or refuses.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use weir_events::layout::{HeaderError, RETIRED, STATE};
use weir_events::{Geometry, Opened, ReadError, Reader, Ring};
use weir_needs::Need;

use crate::{SCORE, place, read, word};

fn open(file: &Path) -> Result<(Reader<File>, Opened), ReadError> {
    Reader::create_or_adopt(file, Geometry::default(), None)
}

/// Without the path that it begins with.
fn refusal(file: &Path, named: &Path) -> String {
    let error = open(file).unwrap_err().to_string();
    let named = format!("{}: ", named.display());
    error
        .strip_prefix(&named)
        .unwrap_or_else(|| panic!("{error}"))
        .to_owned()
}

#[test]
fn a_new_file_is_whole_and_only_its_group_may_write() {
    let place = place();
    let (_, opened) = place.opened(Geometry::default());
    assert_eq!(opened, Opened::Created);
    let found = fs::metadata(&place.file).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o660);
    assert_eq!(found.len(), Geometry::default().file_bytes());
    assert!(
        found.blocks() * 512 >= found.len(),
        "no hole: a store never waits for room"
    );
    let directory = place.file.parent().unwrap();
    assert_eq!(fs::metadata(directory).unwrap().mode() & 0o7777, 0o755);
    let files = fs::read_dir(directory).unwrap().count();
    assert_eq!(files, 1, "what it was made from is gone");
}

#[test]
fn the_group_is_the_one_that_was_asked_for() {
    if !nix::unistd::geteuid().is_root() {
        return weir_needs::skip(Need::Root, "a file is given to any group");
    }
    let place = place();
    let geometry = Geometry::default();
    Reader::create_or_adopt(&place.file, geometry, Some(7)).unwrap();
    assert_eq!(fs::metadata(&place.file).unwrap().gid(), 7);
    let error = Reader::create_or_adopt(&place.file, geometry, Some(8)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("of group 7; expected group 8, the one that may write")
    );
}

#[test]
fn a_governor_that_starts_again_finds_its_producers() {
    let place = place();
    let reader = place.reader();
    let ring = Ring::attach(&place.file);
    drop(ring.enter(SCORE));
    let hot = ring.enter(SCORE);
    drop(reader);

    let (mut reader, opened) = place.opened(Geometry::default());
    assert_eq!(opened, Opened::Adopted);
    let (tick, seen) = read(&mut reader);
    assert_eq!(seen[0].running, [SCORE]);
    assert_eq!(
        (tick.events, tick.lost),
        (0, 0),
        "those are from before its time"
    );
    drop(hot);
    assert_eq!(read(&mut reader).0.events, 1);
}

#[test]
fn another_size_or_version_is_replaced_and_the_old_file_says_so() {
    let place = place();
    drop(place.reader());
    let old = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&place.file)
        .unwrap();
    let (reader, opened) = place.opened(Geometry::new(8, 256).unwrap());
    let field = HeaderError::Field {
        field: "lanes",
        found: 256,
        expected: "as configured",
    };
    assert_eq!(opened, Opened::Replaced(field));
    let mut state = [0; 8];
    old.read_exact_at(&mut state, STATE).unwrap();
    assert_eq!(u64::from_le_bytes(state), RETIRED);
    assert_ne!(word(&place.file, STATE), RETIRED);
    drop(reader);

    let file = fs::OpenOptions::new()
        .write(true)
        .open(&place.file)
        .unwrap();
    file.write_all_at(&[2], 8).unwrap();
    let (reader, opened) = place.opened(Geometry::default());
    assert_eq!(opened, Opened::Replaced(HeaderError::Version { found: 2 }));
    drop(reader);

    // Killed between telling the producers and putting the new file there.
    let file = fs::OpenOptions::new()
        .write(true)
        .open(&place.file)
        .unwrap();
    file.write_all_at(&RETIRED.to_le_bytes(), STATE).unwrap();
    assert!(matches!(
        place.opened(Geometry::default()).1,
        Opened::Replaced(_)
    ));
}

#[test]
fn a_file_that_is_truncated_is_an_error_and_the_next_one_is_good() {
    for left in [
        0,
        20,
        4096,
        4096 + 256 * 256,
        Geometry::default().file_bytes() - 1,
    ] {
        let place = place();
        let mut reader = place.reader();
        let ring = Ring::attach(&place.file);
        drop(ring.enter(SCORE));
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&place.file)
            .unwrap();
        file.set_len(left).unwrap();
        let error = reader.read(1, |_| ());
        // The events of the lane may be before the end.
        assert!(error.is_err() || left > 100_000);
        drop(reader);

        let (mut reader, opened) = place.opened(Geometry::default());
        assert!(matches!(
            opened,
            Opened::Replaced(HeaderError::Length { .. })
        ));
        let _hot = ring.enter(SCORE);
        assert_eq!(
            read(&mut reader).1[0].running,
            [SCORE],
            "the program lives, and has moved"
        );
    }
}

#[test]
fn what_is_not_the_governors_is_refused_and_left_as_it_is() {
    let place = place();
    let directory = place.file.parent().unwrap();
    drop(place.reader());
    fs::remove_file(&place.file).unwrap();

    fs::write(&place.file, "somebody's notes").unwrap();
    fs::set_permissions(&place.file, Permissions::from_mode(0o660)).unwrap();
    let error = refusal(&place.file, &place.file);
    assert!(
        error.ends_with("are \"WEIREVT1\"; expected a ring of events, or nothing"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&place.file).unwrap(), "somebody's notes");

    fs::set_permissions(&place.file, Permissions::from_mode(0o666)).unwrap();
    assert_eq!(
        refusal(&place.file, &place.file),
        "mode 666; expected mode 660"
    );

    let elsewhere = directory.join("elsewhere");
    fs::rename(&place.file, &elsewhere).unwrap();
    symlink(&elsewhere, &place.file).unwrap();
    let error = refusal(&place.file, &place.file);
    assert_eq!(error, "no plain file; expected a file, or nothing");
    fs::remove_file(&place.file).unwrap();

    fs::create_dir(&place.file).unwrap();
    let error = refusal(&place.file, &place.file);
    assert_eq!(error, "no plain file; expected a file, or nothing");
    fs::remove_dir(&place.file).unwrap();

    fs::set_permissions(directory, Permissions::from_mode(0o1777)).unwrap();
    let error = refusal(&place.file, directory);
    assert!(error.starts_with("a directory of user "), "{error}");
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1, "elsewhere");
}

#[test]
fn another_users_file_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        return weir_needs::skip(Need::Root, "a file is given away");
    }
    let place = place();
    drop(place.reader());
    chown(&place.file, Some(1), None).unwrap();
    let error = refusal(&place.file, &place.file);
    assert_eq!(
        error,
        "owned by user 1; expected user 0, who runs the governor"
    );
}

#[test]
fn two_governors_do_not_read_one_file() {
    let place = place();
    let reader = place.reader();
    let error = refusal(&place.file, &place.file);
    assert_eq!(
        error,
        "another governor reads it; expected one governor for each file"
    );
    drop(reader);
    place.reader();
}
