// SPDX-License-Identifier: Apache-2.0

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow::array::{Array, AsArray};
use proptest::prelude::*;
use weir_rules::{Feed, Limits, Request, Stop};

use super::*;
use crate::{FeedLimits, Format, ItemStore};

fn small(seed: u64, format: Format) -> Settings {
    Settings {
        seed,
        projects: 5,
        items_min: 50,
        items_max: 20_000,
        format,
        ..Settings::default()
    }
}

fn generated(settings: &Settings) -> (tempfile::TempDir, Index) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path(), false).unwrap();
    let index = generate(settings, &folder, &mut |_| {}).unwrap();
    (place, index)
}

/// Every file and its content.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for sub in ["", "rules"] {
        for entry in std::fs::read_dir(folder.join(sub)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}

async fn fetched(folder: &Path, project: &str) -> Feed {
    let store = ItemStore::open(folder.to_str().unwrap()).unwrap();
    let object = store.find(project).await.unwrap();
    let (limits, stop) = (FeedLimits::default(), Stop::default());
    store.fetch(&object, 2, &limits, &stop).await.unwrap()
}

/// The items with their fields by name, absent ones left out.
fn items(feed: &Feed) -> Vec<BTreeMap<String, String>> {
    let mut items = Vec::new();
    for batch in feed.batches() {
        for row in 0..batch.num_rows() {
            let mut item = BTreeMap::new();
            for (field, column) in feed.schema().fields().iter().zip(batch.columns()) {
                if column.is_valid(row) {
                    let value = column.as_string::<i32>().value(row);
                    item.insert(field.name().clone(), value.to_owned());
                }
            }
            items.push(item);
        }
    }
    items
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_gives_others() {
    for format in Format::ALL {
        let (one, _) = generated(&small(7, format));
        let (two, _) = generated(&small(7, format));
        let (other, _) = generated(&small(8, format));
        let one = content(one.path());
        assert!(one == content(two.path()));
        let other = content(other.path());
        for (name, bytes) in one.iter().filter(|(name, _)| *name != ".weir-feeds") {
            assert!(other.get(name) != Some(bytes), "{name}");
        }
    }
}

#[tokio::test]
async fn the_index_tells_what_the_store_holds_and_formats_hold_the_same_items() {
    let (parquet, index) = generated(&small(3, Format::Parquet));
    let (ndjson, other) = generated(&small(3, Format::Ndjson));
    let text = std::fs::read(parquet.path().join("feeds.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Index>(&text).unwrap(), index);
    assert_eq!(index.projects.len(), 5);
    for (project, same) in index.projects.iter().zip(&other.projects) {
        let feed = fetched(parquet.path(), &project.project).await;
        assert_eq!(feed.items() as u64, project.items);
        let twin = fetched(ndjson.path(), &project.project).await;
        assert!(items(&feed) == items(&twin));
        for (folder, project, suffix) in [(&parquet, project, "parquet"), (&ndjson, same, "ndjson")]
        {
            let file = folder.path().join(format!("{}.{suffix}", project.project));
            assert_eq!(file.metadata().unwrap().len(), project.bytes);
            for rules in &project.rules {
                assert!(folder.path().join("rules").join(rules).is_file());
            }
        }
    }
}

#[tokio::test]
async fn every_generated_body_compiles_keeps_items_and_shows_some() {
    let settings = Settings {
        projects: 12,
        items_max: 300,
        channels_max: 12,
        ..small(5, Format::Parquet)
    };
    let (folder, index) = generated(&settings);
    let (limits, stop) = (Limits::default(), Stop::default());
    let mut shared_sets = BTreeSet::new();
    let mut channels = 0;
    for project in &index.projects {
        let feed = fetched(folder.path(), &project.project).await;
        let mut sets_of_project = BTreeSet::new();
        for name in &project.rules {
            let body = std::fs::read(folder.path().join("rules").join(name)).unwrap();
            let request =
                Request::parse(&body, &limits).unwrap_or_else(|bad| panic!("{name}: {bad}"));
            assert_eq!(
                (&request.project_id, &request.priority),
                (&project.project, &None)
            );
            let plan = request
                .compile(&limits, true)
                .unwrap_or_else(|bad| panic!("{name}: {bad}"));
            assert!(!plan.shared.is_empty() && !plan.own.is_empty());
            sets_of_project.insert(plan.shared.id());
            let shared = plan.shared.apply(&feed, 1, &limits, &stop).unwrap();
            let own = plan.own.apply(&shared, 1, &limits, &stop).unwrap();
            assert!(
                own.items() * 4 > feed.items(),
                "{name} keeps {} of {}",
                own.items(),
                feed.items()
            );
            assert!(own.items() < feed.items(), "{name} removes nothing");
            let mut bytes = 0;
            let mut sink = |part: bytes::Bytes| {
                bytes += part.len();
                Ok(())
            };
            plan.output
                .write(&own, 1, &limits, &stop, &mut sink)
                .unwrap();
            assert!(bytes > 100, "{name} shows {bytes} bytes");
            channels += 1;
        }
        assert!(sets_of_project.len() <= 2);
        shared_sets.extend(sets_of_project);
    }
    // Channels of a project share their shared rules, and projects do not.
    assert!(
        shared_sets.len() >= 12 && channels > shared_sets.len(),
        "{} {channels}",
        shared_sets.len()
    );
}

#[test]
fn progress_counts_every_item_once_and_in_batches() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path(), false).unwrap();
    let settings = Settings {
        projects: 2,
        items_min: 10_000,
        items_max: 10_000,
        ..small(1, Format::Ndjson)
    };
    let mut ends = Vec::new();
    let mut before = 0;
    let index = generate(&settings, &folder, &mut |progress| {
        assert!((1..=8192).contains(&(progress.written - before)));
        before = progress.written;
        if progress.written == progress.items {
            ends.push((progress.number, progress.items));
            before = 0;
        }
    });
    let expected = index.unwrap().projects;
    let expected = expected
        .iter()
        .enumerate()
        .map(|(at, project)| (at + 1, project.items));
    assert_eq!(ends, expected.collect::<Vec<_>>());
}

#[test]
fn a_foreign_folder_is_refused_and_its_other_files_are_never_touched() {
    let place = tempfile::tempdir().unwrap();
    let note = place.path().join("note.txt");
    std::fs::write(&note, "mine").unwrap();
    let refused = Folder::open(place.path(), false).unwrap_err();
    assert!(matches!(refused, GenerateError::Foreign(_)), "{refused}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);

    std::fs::write(place.path().join("old.parquet"), "old").unwrap();
    let folder = Folder::open(place.path(), true).unwrap();
    generate(&small(1, Format::Ndjson), &folder, &mut |_| {}).unwrap();
    assert_eq!(std::fs::read(note).unwrap(), b"mine");
    assert!(!place.path().join("old.parquet").exists());
}

#[test]
fn a_folder_of_ours_is_made_anew_without_leftovers() {
    let (folder, _) = generated(&Settings {
        projects: 9,
        ..small(1, Format::Parquet)
    });
    let again = Folder::open(folder.path(), false).unwrap();
    generate(&small(2, Format::Ndjson), &again, &mut |_| {}).unwrap();
    let (fresh, _) = generated(&small(2, Format::Ndjson));
    assert!(content(folder.path()) == content(fresh.path()));
}

#[test]
fn no_index_is_left_when_a_feed_cannot_be_written() {
    let (folder, _) = generated(&small(1, Format::Parquet));
    let again = Folder::open(folder.path(), false).unwrap();
    std::fs::create_dir(folder.path().join("shop-0003.ndjson")).unwrap();
    let error = generate(&small(1, Format::Ndjson), &again, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("shop-0003.ndjson"), "{error}");
    assert!(!folder.path().join("feeds.json").exists());
}

#[test]
fn a_setting_out_of_range_is_named() {
    let usual = Settings::default;
    for (settings, text) in [
        (
            Settings {
                projects: 0,
                ..usual()
            },
            "projects is 0, and must be from 1 to 100000",
        ),
        (
            Settings {
                items_min: 9,
                items_max: 8,
                ..usual()
            },
            "items-min is 9, and must be from 1 to 8",
        ),
        (
            Settings {
                items_shape: f64::NAN,
                ..usual()
            },
            "items-shape is NaN, and must be over 0 and at most 10",
        ),
        (
            Settings {
                channels_max: 0,
                ..usual()
            },
            "channels-max is 0, and must be from 1 to 1000",
        ),
    ] {
        assert_eq!(settings.check().unwrap_err().to_string(), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_seed_gives_bodies_that_compile(seed: u64) {
        let limits = Limits::default();
        let mut draw = draw::of(seed, "rules", 0);
        let shop = Shop::new("shop-0001", &mut draw);
        for body in rules::of_project(&shop, 8, &mut draw) {
            let body = serde_json::to_vec(&body).unwrap();
            let compiled = Request::parse(&body, &limits).and_then(|request| request.compile(&limits, true));
            prop_assert!(compiled.is_ok(), "{:?}", compiled.err());
        }
    }
}
