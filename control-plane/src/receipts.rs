// SPDX-License-Identifier: Apache-2.0
//! Files of receipts. What cannot be written is lost to them, and nothing else suffers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::mpsc;
use tracing::{info, warn};
use weir_fleet::receipts::MOST;
use weir_fleet::view::receipt::ReceiptView;

use crate::config::ReceiptFiles;
use crate::news::News;

/// Reports bring receipts each second; the state keeps those of many.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A line. An age says when only together with the time at which it was asked for.
#[derive(Serialize)]
struct Line<'a> {
    ended_unix_ms: u64,
    #[serde(flatten)]
    receipt: &'a ReceiptView,
}

/// Appends what comes. Lasts as long as the process.
pub(crate) async fn keep(files: ReceiptFiles, updates: mpsc::Sender<News>) {
    let mut files = Files::new(files);
    let mut after = 0;
    let mut failed = false;
    while let Some(receipts) = newer(&updates, after).await {
        if let Some(last) = receipts.last() {
            after = last.number;
            // Few bytes once a second, into the page cache.
            let written = files.append(&receipts, unix_ms());
            let file = files.told.file.display();
            match &written {
                Ok(()) if failed => info!(%file, "receipts are written again"),
                Err(error) if !failed => warn!(%file, %error, "receipts are lost to the file"),
                _ => {}
            }
            failed = written.is_err();
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    // The end of the owner is told elsewhere.
    std::future::pending().await
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

async fn newer(updates: &mpsc::Sender<News>, after: u64) -> Option<Vec<ReceiptView>> {
    News::ask(updates, |answer| News::Receipts(after, MOST, answer)).await
}

/// The newest file, and older ones by number.
struct Files {
    told: ReceiptFiles,
    /// None: to be opened, at first or after a failure.
    newest: Option<(File, usize)>,
}

impl Files {
    fn new(told: ReceiptFiles) -> Self {
        Self { told, newest: None }
    }

    fn append(&mut self, receipts: &[ReceiptView], now_ms: u64) -> io::Result<()> {
        let mut lines = Vec::new();
        for receipt in receipts {
            let ended_unix_ms = now_ms.saturating_sub(receipt.age_ms);
            let line = Line {
                ended_unix_ms,
                receipt,
            };
            serde_json::to_writer(&mut lines, &line)?;
            lines.push(b'\n');
        }
        let (mut file, bytes) = match self.newest.take() {
            Some(open) => open,
            None => self.open()?,
        };
        file.write_all(&lines)?;
        let bytes = bytes + lines.len();
        if bytes >= self.told.max_size {
            return self.rotate();
        }
        self.newest = Some((file, bytes));
        Ok(())
    }

    fn open(&self) -> io::Result<(File, usize)> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.told.file)?;
        let bytes = file.metadata()?.len();
        Ok((file, usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// The newest becomes an older one; what is too old goes.
    fn rotate(&self) -> io::Result<()> {
        let older = |number: u32| {
            let mut name = self.told.file.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        if self.told.keep == 0 {
            return fs::remove_file(&self.told.file);
        }
        for number in (1..self.told.keep).rev() {
            match fs::rename(older(number), older(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.told.file, older(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(number: u64) -> ReceiptView {
        let receipt = serde_json::json!({
            "number": number, "age_ms": 500, "id": "01", "proxy": "p", "cluster": "c", "table": "1.1", "table_age_ms": 1,
            "class": 16, "rank": 2048, "keys": [], "key_count": 0, "selection": "estimate", "reason": "known_cached",
            "outcome": "send", "chosen": [], "steered": true, "salt": "00", "limit": 5, "panics": false, "looks": [],
            "suspects": [], "instead": null, "host": null, "status": 200, "duration_ms": 12.5,
        });
        serde_json::from_value(receipt).unwrap()
    }

    fn numbers(file: &std::path::Path) -> Vec<u64> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let number = |line: &str| serde_json::from_str::<ReceiptView>(line).unwrap().number;
        text.lines().map(number).collect()
    }

    #[test]
    fn a_large_file_becomes_an_older_one_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("receipts.ndjson");
        let told = ReceiptFiles {
            file: file.clone(),
            // Two lines.
            max_size: 600,
            keep: 2,
        };
        let mut files = Files::new(told.clone());
        for number in 1..=7 {
            files.append(&[receipt(number)], 1_000_000).unwrap();
            if number == 3 {
                // As after a restart.
                files = Files::new(told.clone());
            }
        }
        let older = |number: u32| folder.path().join(format!("receipts.ndjson.{number}"));
        assert_eq!(numbers(&file), [7]);
        assert_eq!(numbers(&older(1)), [5, 6]);
        assert_eq!(numbers(&older(2)), [3, 4]);
        assert!(!older(3).exists());
        let line = fs::read_to_string(&file).unwrap();
        assert!(
            line.starts_with("{\"ended_unix_ms\":999500,\"number\":7,"),
            "{line}"
        );
    }

    #[test]
    fn what_cannot_be_written_is_tried_again_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("away").join("receipts.ndjson");
        let mut files = Files::new(ReceiptFiles {
            file: file.clone(),
            max_size: 1 << 20,
            keep: 0,
        });
        assert!(files.append(&[receipt(1)], 0).is_err());
        fs::create_dir(file.parent().unwrap()).unwrap();
        files.append(&[receipt(2)], 0).unwrap();
        assert_eq!(numbers(&file), [2]);
    }
}
