// SPDX-License-Identifier: Apache-2.0
use super::*;

const LATER: Duration = Duration::from_secs(60);

#[test]
fn a_large_file_is_neither_kept_nor_read_until_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, vec![b'a'; LARGE]).unwrap();
    let (read, mut file) = AsRead::read_at(&path, SystemTime::now() + LATER);
    assert_eq!(read.unwrap().len(), LARGE);
    assert!(matches!(file.0, Form::Large { .. }));
    assert!(file.is_known_to_be(&path) && file.is_now(&path));
    // Another one in its place, as long as it was.
    let other = folder.path().join("other");
    std::fs::write(&other, vec![b'b'; LARGE]).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert!(!file.is_known_to_be(&path) && !file.is_now(&path));
    std::fs::write(&path, vec![b'a'; LARGE]).unwrap();
    assert!(!file.is_known_to_be(&path) && file.is_now(&path));
    std::fs::write(&path, b"a").unwrap();
    assert!(!file.is_now(&path));
    std::fs::remove_file(&path).unwrap();
    assert!(!file.is_now(&path));
}

#[test]
fn a_file_that_has_just_changed_or_is_small_is_read_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![b'a'; LARGE]).unwrap();
    let (_, mut file) = AsRead::read_at(&path, UNIX_EPOCH);
    assert!(!file.is_known_to_be(&path) && file.is_now(&path));
    std::fs::write(&path, b"a").unwrap();
    let (_, mut file) = AsRead::read_at(&path, SystemTime::now() + LATER);
    assert!(!file.is_known_to_be(&path) && file.is_now(&path));
    std::fs::write(&path, b"b").unwrap();
    assert!(!file.is_now(&path));
    std::fs::remove_file(&path).unwrap();
    let (read, mut file) = AsRead::read(&path);
    assert!(read.is_err() && file.is_now(&path));
}
