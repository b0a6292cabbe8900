// SPDX-License-Identifier: Apache-2.0

mod bucket;

use std::time::Duration;

use object_store::gcp::GoogleCloudStorageBuilder;
use reqwest::Url;
use weir_rules::{Feed, Stop};

use super::*;
use bucket::{Bucket, Mood};

/// The result is this error.
macro_rules! is_refused {
    ($result:expr, $error:ident) => {
        let result = $result;
        assert!(
            matches!(result, Err(StoreError::$error { .. })),
            "{result:?}"
        );
    };
}

const ITEMS: &str = "{\"id\":\"1\",\"price\":15.00}\n{\"id\":\"2\"}\n";

async fn fetched(store: &ItemStore, object: &Object) -> Result<Feed, StoreError> {
    let (limits, stop) = (FeedLimits::default(), Stop::default());
    store.fetch(object, 2, &limits, &stop).await
}

/// Waits for little, because these tests wait for all of it.
fn impatient() -> Patience {
    Patience {
        connect: Duration::from_millis(500),
        silence: Duration::from_millis(200),
        retries: 1,
        ..Patience::default()
    }
}

fn folder_with(files: &[(&str, &str)]) -> (tempfile::TempDir, ItemStore) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let store = ItemStore::open(folder.path().to_str().unwrap()).unwrap();
    (folder, store)
}

#[tokio::test]
async fn a_project_in_a_folder_is_found_and_read() {
    let (folder, store) = folder_with(&[("shop.ndjson", ITEMS)]);
    let object = store.find("shop").await.unwrap();
    assert_eq!(
        (&*object.project, object.bytes),
        ("shop", ITEMS.len() as u64)
    );
    assert_eq!(object.format, Format::Ndjson);
    assert_eq!(fetched(&store, &object).await.unwrap().items(), 2);

    let url = Url::from_directory_path(folder.path()).unwrap();
    let same = ItemStore::open(url.as_str()).unwrap().find("shop").await;
    assert_eq!(same.unwrap(), object);
}

#[tokio::test]
async fn an_absent_project_is_unknown_and_a_name_that_is_no_name_is_refused() {
    let (_folder, store) = folder_with(&[]);
    let unknown = store.find("shop").await.unwrap_err();
    let text = unknown.to_string();
    assert!(
        text.contains("neither shop.parquet nor shop.ndjson is in"),
        "{text}"
    );
    is_refused!(store.find("../shop").await, BadProjectName);
}

#[tokio::test]
async fn parquet_is_preferred_and_what_is_none_is_refused_by_name() {
    let (_folder, store) = folder_with(&[("shop.ndjson", ITEMS), ("shop.parquet", "PAR1")]);
    let object = store.find("shop").await.unwrap();
    assert_eq!(object.format, Format::Parquet);
    let bad = fetched(&store, &object).await.unwrap_err();
    assert!(matches!(bad, StoreError::BadFeed { line: None, .. }));
    assert!(
        bad.to_string().contains("shop.parquet: not a Parquet file"),
        "{bad}"
    );
}

#[tokio::test]
async fn a_file_written_again_is_another_version_and_the_old_one_has_changed() {
    let (folder, store) = folder_with(&[("shop.ndjson", ITEMS)]);
    let old = store.find("shop").await.unwrap();
    std::fs::write(folder.path().join("shop.ndjson"), "{}\n{}\n{}\n").unwrap();
    is_refused!(fetched(&store, &old).await, Changed);
    let new = store.find("shop").await.unwrap();
    assert_ne!(old.version, new.version);
    assert_eq!(fetched(&store, &new).await.unwrap().items(), 3);

    std::fs::remove_file(folder.path().join("shop.ndjson")).unwrap();
    is_refused!(fetched(&store, &new).await, Changed);
}

#[tokio::test]
async fn an_object_over_the_limit_is_not_read_and_a_raised_flag_ends_reading() {
    let (_folder, store) = folder_with(&[("shop.ndjson", ITEMS)]);
    let object = store.find("shop").await.unwrap();
    let (mut limits, stop) = (FeedLimits::default(), Stop::default());
    limits.max_bytes = object.bytes - 1;
    is_refused!(store.fetch(&object, 1, &limits, &stop).await, TooLarge);
    stop.raise();
    is_refused!(
        store.fetch(&object, 1, &FeedLimits::default(), &stop).await,
        Stopped
    );
}

#[test]
fn a_url_that_names_no_store_says_what_to_write() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (url, reason) in [
        ("no-such-folder", "the folder cannot be opened"),
        (
            file.path().to_str().unwrap(),
            "this is a file; give the folder",
        ),
        ("ftp://host/x", "the scheme ftp is unknown; give a folder"),
        ("s3:///prefix", "the bucket is missing"),
        ("s3://bucket:1/prefix", "only a bucket and a prefix"),
        ("gs://user@bucket", "only a bucket and a prefix"),
    ] {
        let error = ItemStore::open(url).unwrap_err().to_string();
        assert!(error.starts_with(&format!("item store {url}: ")), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_bucket_of_google_is_opened_without_a_request() {
    let url = Url::parse("gs://items/eu").unwrap();
    let builder = GoogleCloudStorageBuilder::new().with_skip_signature(true);
    let (_, root) = place::gs(builder, &url, &impatient()).unwrap();
    assert_eq!(root.as_ref(), "eu");
}

#[tokio::test]
async fn a_project_in_a_bucket_is_found_under_its_prefix_and_read() {
    let bucket = Bucket::start("items/eu/shop.ndjson", ITEMS).await;
    let store = bucket.store("s3://items/eu/");
    let object = store.find("shop").await.unwrap();
    assert_eq!(object.bytes, ITEMS.len() as u64);
    assert_eq!(fetched(&store, &object).await.unwrap().items(), 2);
    is_refused!(store.find("other").await, UnknownProject);
}

#[tokio::test]
async fn an_etag_that_changes_between_finding_and_reading_is_a_change() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    let store = bucket.store("s3://items");
    let old = store.find("shop").await.unwrap();
    bucket.replace("{}\n");
    is_refused!(fetched(&store, &old).await, Changed);
    let new = store.find("shop").await.unwrap();
    assert_ne!(old.version, new.version);

    // Some stores ignore If-Match.
    bucket.set(Mood::IgnoresConditions);
    is_refused!(fetched(&store, &old).await, Changed);
    assert_eq!(fetched(&store, &new).await.unwrap().items(), 1);
}

#[tokio::test]
async fn who_may_not_list_a_bucket_finds_a_project_of_either_format() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    bucket.set(Mood::DeniesTheAbsent);
    let store = bucket.store("s3://items");
    assert_eq!(store.find("shop").await.unwrap().format, Format::Ndjson);
    is_refused!(store.find("other").await, Denied);
}

#[tokio::test]
async fn each_failure_of_a_bucket_is_told_apart() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    let store = bucket.store("s3://items");
    let object = store.find("shop").await.unwrap();
    for (mood, denied) in [
        (Mood::Fails(500), false),
        (Mood::Fails(503), false),
        (Mood::Fails(403), true),
        (Mood::Fails(401), true),
        (Mood::Hangs, false),
    ] {
        bucket.set(mood);
        for error in [
            store.find("shop").await.unwrap_err(),
            fetched(&store, &object).await.unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(text.starts_with("s3://items/shop."), "{text}");
            assert_eq!(matches!(error, StoreError::Denied { .. }), denied, "{text}");
            assert_eq!(
                matches!(error, StoreError::Unreachable { .. }),
                !denied,
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn a_body_that_is_cut_or_falls_silent_gives_nothing() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    let store = bucket.store("s3://items");
    let object = store.find("shop").await.unwrap();
    for mood in [Mood::CutsBodies, Mood::HangsInBodies] {
        bucket.set(mood);
        is_refused!(fetched(&store, &object).await, Unreachable);
    }
}

#[tokio::test]
async fn a_body_that_is_cut_once_is_read_to_its_end() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    let store = bucket.store("s3://items");
    let object = store.find("shop").await.unwrap();
    bucket.set(Mood::CutsOneBody);
    assert_eq!(fetched(&store, &object).await.unwrap().items(), 2);
}

#[tokio::test]
async fn a_bucket_that_is_down_is_unreachable() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    let store = bucket.store("s3://items");
    bucket.stop().await;
    is_refused!(store.find("shop").await, Unreachable);
}

#[tokio::test]
async fn plain_http_is_refused_unless_allowed() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    let url = Url::parse("s3://items").unwrap();
    let refused = place::s3(bucket.builder(false), &url, &impatient());
    assert!(refused.unwrap_err().contains("AWS_ALLOW_HTTP"));
}

#[tokio::test]
async fn a_raised_flag_ends_the_wait_for_a_silent_bucket() {
    let bucket = Bucket::start("items/shop.ndjson", ITEMS).await;
    let url = Url::parse("s3://items").unwrap();
    // It would wait for an hour.
    let patience = Patience {
        silence: Duration::from_secs(3600),
        download: Duration::from_secs(3600),
        ..impatient()
    };
    let (inner, root) = place::s3(bucket.builder(true), &url, &patience).unwrap();
    let store = ItemStore::new(url.as_str(), inner, root);
    let object = store.find("shop").await.unwrap();
    for mood in [Mood::Hangs, Mood::HangsInBodies] {
        bucket.set(mood);
        let stop = Stop::default();
        let (limits, asked) = (FeedLimits::default(), bucket.asked());
        let reading = store.fetch(&object, 1, &limits, &stop);
        let raising = async {
            bucket.asked_more_than(asked).await;
            stop.raise();
        };
        let (result, ()) = tokio::join!(reading, raising);
        is_refused!(result, Stopped);
    }
}
