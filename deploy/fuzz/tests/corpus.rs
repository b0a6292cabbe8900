// SPDX-License-Identifier: Apache-2.0
//! Each decoder over its corpus, over each of its beginnings and over damaged copies: a short run of what
//! `cargo fuzz` does for as long as one likes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_fuzz::mutate::{below, mutate};
use weir_fuzz::{DECODERS, Decoder};

/// Damaged copies of the corpus of one decoder.
const DAMAGED: usize = 600;
/// Beginnings of one seed; of a longer one, so many evenly spread.
const BEGINNINGS: usize = 60;
/// Bytes of the whole corpus.
const MOST_BYTES: usize = 200_000;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Files of a decoder's corpus.
fn seeds(decoder: &Decoder) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = here().join("corpus").join(decoder.name);
    let files = names(&folder).into_iter().map(|name| folder.join(name));
    files
        .map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

/// Decodes; says on stderr which bytes they were if a law does not hold.
fn decode(decoder: &Decoder, bytes: &[u8]) -> bool {
    struct Told<'a>(&'a Decoder, &'a [u8]);
    impl Drop for Told<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("{}: {}", self.0.name, self.1.escape_ascii());
            }
        }
    }
    let _told = Told(decoder, bytes);
    decoder.decode(bytes)
}

/// Tries all decoders, also where some break a law, and says which.
fn each(check: impl Fn(&Decoder) + std::panic::RefUnwindSafe) {
    let breaks = |decoder: &&Decoder| {
        let tried = std::panic::catch_unwind(|| check(decoder));
        tried.is_err()
    };
    let broken: Vec<&str> = DECODERS
        .iter()
        .filter(breaks)
        .map(|decoder| decoder.name)
        .collect();
    assert!(broken.is_empty(), "laws are broken: {broken:?}");
}

#[test]
fn seeds_are_accepted_or_refused_as_their_names_say() {
    each(|decoder| {
        let mut kinds = BTreeSet::new();
        for (path, bytes) in seeds(decoder) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let kind = name.split_once('-').unwrap().0;
            let accepted = decode(decoder, &bytes);
            match kind {
                "good" => assert!(accepted, "{path:?} is refused"),
                "bad" => assert!(!accepted, "{path:?} is accepted"),
                _ => panic!("{path:?} is neither good nor bad"),
            }
            kinds.insert(kind.to_owned());
        }
        let both = BTreeSet::from(["good".to_owned(), "bad".to_owned()]);
        assert_eq!(kinds, both, "{} needs some of both", decoder.name);
    });
    let all = DECODERS.iter().flat_map(seeds);
    let total: usize = all.map(|(_, bytes)| bytes.len()).sum();
    assert!(total <= MOST_BYTES, "{total} bytes");
}

#[test]
fn every_beginning_of_a_seed_is_decoded_or_refused() {
    each(|decoder| {
        for (_, bytes) in seeds(decoder) {
            let step = bytes.len().div_ceil(BEGINNINGS).max(1);
            for end in (0..bytes.len()).step_by(step) {
                decode(decoder, &bytes[..end]);
            }
        }
    });
}

#[test]
fn damaged_seeds_are_decoded_or_refused() {
    each(|decoder| {
        let seeds = seeds(decoder);
        let mut rng = SmallRng::seed_from_u64(2);
        let mut accepted = 0;
        for _ in 0..DAMAGED {
            let mut bytes = seeds[below(&mut rng, seeds.len())].1.clone();
            mutate(&mut rng, &mut bytes);
            accepted += usize::from(decode(decoder, &bytes));
        }
        // Were nothing or everything accepted, what is behind the first check would not have been reached.
        let some = 1..DAMAGED;
        assert!(some.contains(&accepted), "{}: {accepted}", decoder.name);
    });
}

#[test]
fn arbitrary_bytes_are_decoded_or_refused() {
    use rand::Rng;
    each(|decoder| {
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..DAMAGED / 4 {
            let mut bytes = vec![0; below(&mut rng, 200)];
            rng.fill_bytes(&mut bytes);
            decode(decoder, &bytes);
        }
    });
}

#[test]
fn each_decoder_has_a_corpus_and_a_fuzz_target_and_there_are_no_others() {
    let expected: Vec<&str> = {
        let names: BTreeSet<&str> = DECODERS.iter().map(|decoder| decoder.name).collect();
        assert_eq!(names.len(), DECODERS.len(), "a name comes twice");
        names.into_iter().collect()
    };
    assert_eq!(names(&here().join("corpus")), expected);
    let folder = here().join("targets/fuzz_targets");
    let files: Vec<String> = expected.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names(&folder), files);
    let manifest = std::fs::read_to_string(here().join("targets/Cargo.toml")).unwrap();
    let readme = std::fs::read_to_string(here().join("README.md")).unwrap();
    for name in expected {
        let target = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        assert!(
            target.contains(&format!("fuzz(\"{name}\", bytes)")),
            "{name}"
        );
        let bin = format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"");
        assert!(manifest.contains(&bin), "{name} in targets/Cargo.toml");
        assert!(
            readme.contains(&format!("| `{name}` |")),
            "{name} in README.md"
        );
    }
}
