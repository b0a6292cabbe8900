// SPDX-License-Identifier: Apache-2.0
use std::net::SocketAddr;

use super::*;
use crate::book::Book;
use crate::book::shares::{JobBook, SharesBook};
use crate::get::get;
use crate::sensed::Nanos;
use crate::timeline::FILE;

/// What these pages say of this book.
async fn pages(book: Book, folder: Option<PathBuf>, paths: &[&str]) -> Vec<Result<String, String>> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let address = listener.local_addr().unwrap();
    let app = App::new(Shared::new(book), Vec::new()).with_timeline(folder);
    let ended = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, app, ended.clone()));
    let mut answers = Vec::new();
    for path in paths {
        answers.push(get(address, path).await.map_err(|error| error.to_string()));
    }
    ended.cancel();
    serving.await.unwrap();
    answers
}

#[tokio::test]
async fn without_frequencies_the_governor_is_ready_and_shows_the_jobs() {
    let job = JobBook {
        name: "dedup".into(),
        ..JobBook::default()
    };
    let book = Book {
        ticks: 1,
        shares: Some(SharesBook {
            service: [0, 1].into(),
            jobs: vec![job],
            ..SharesBook::default()
        }),
        ..Book::default()
    };
    let answers = pages(book, None, &["/ready", "/state", "/metrics"]).await;
    assert_eq!(answers[0].as_deref(), Ok("ready\n"));
    let view: View = serde_json::from_str(answers[1].as_ref().unwrap()).unwrap();
    let shares = view.shares.unwrap();
    assert!(view.cores.is_empty());
    assert_eq!((&*shares.cores, &*shares.jobs[0].state), ("0-1", "waiting"));
    let metrics = answers[2].as_ref().unwrap();
    assert!(
        metrics.contains("weir_governor_service_cores 2"),
        "{metrics}"
    );
    assert!(!metrics.contains("core=\""), "{metrics}");
}

#[tokio::test]
async fn a_loop_that_stands_still_is_not_live_and_one_that_waits_for_its_time_is() {
    let sleep = Duration::from_secs(10);
    let since = |seconds: u64| Nanos(now().0 - seconds * 1_000_000_000);
    let book = |seconds, ticks| Book {
        now: since(seconds),
        ticks,
        sleep,
        ..Book::default()
    };
    for (book, live) in [
        (book(9, 1), true),
        (book(24, 1), true),
        (book(60, 1), false),
        (book(60, 0), true),
    ] {
        let said = pages(book, None, &["/live"]).await.remove(0);
        assert_eq!(said.is_ok(), live, "{said:?}");
        assert!(live || said.unwrap_err().contains("503"));
    }
}

#[tokio::test]
async fn the_timeline_is_a_page_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let there = || Some(folder.path().to_owned());
    let missing = pages(Book::default(), there(), &["/timeline"]).await;
    let missing = missing[0].as_ref().unwrap_err();
    assert!(
        missing.contains("404") && missing.contains(FILE),
        "{missing}"
    );
    std::fs::write(folder.path().join(FILE), "").unwrap();
    let page = pages(Book::default(), there(), &["/timeline"]).await;
    assert!(page[0].as_ref().unwrap().starts_with("<!doctype html>"));
    let none = pages(Book::default(), None, &["/timeline"]).await;
    assert!(none[0].as_ref().unwrap_err().contains("404"), "{none:?}");
}

#[tokio::test]
async fn a_page_is_made_alone_though_who_asked_has_gone() {
    let turn = Arc::new(Semaphore::new(1));
    let (begun, begins) = oneshot::channel();
    let (end, ends) = std::sync::mpsc::channel::<()>();
    let first = alone(&turn, move || {
        let own = rustix::thread::gettid();
        begun
            .send(rustix::process::getpriority_process(Some(own)).ok())
            .unwrap();
        ends.recv().map_err(io::Error::other)
    });
    tokio::select! {
        biased;
        _ = first => panic!("it ends when it is told to"),
        nice = begins => assert_eq!(nice, Ok(Some(NICEST))),
    }
    assert!(alone(&turn, || Ok(())).await.is_none(), "two at once");
    end.send(()).unwrap();
    let free = tokio::time::timeout(Duration::from_secs(60), turn.acquire()).await;
    drop(free.expect("waited in vain for the end of the first"));
    assert!(alone(&turn, || Ok(())).await.is_some());
}
