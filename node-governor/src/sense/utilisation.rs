// SPDX-License-Identifier: Apache-2.0
//! How busy each core is, from `/proc/stat`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::root::Root;
use crate::sensed::{Nanos, Sensed};

/// The kernel counts in hundredths of a second, so that a shorter time says little. A tick of 100 ms that wakes up sooner after
/// its time than the one before is a little shorter.
const EVERY: Duration = Duration::from_millis(90);
/// A line of the file: eleven numbers.
const LINE: usize = 256;

/// Why it cannot be known how busy cores are.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}; this policy goes by how busy cores are", path.display())]
pub struct Error {
    path: PathBuf,
    source: std::io::Error,
}

/// Reads the counters.
#[derive(Debug)]
pub(super) struct Utilisation {
    file: Option<File>,
    numbers: Vec<u32>,
    buffer: Vec<u8>,
    /// Busy and whole time, in ticks of the kernel.
    last: Vec<(u64, u64)>,
    read: Nanos,
}

impl Utilisation {
    /// `needed`: a policy goes by it, so that without the file there is no start.
    pub(super) fn new(root: &Root, numbers: &[u32], needed: bool) -> Result<Self, Error> {
        let path = root.path("proc/stat");
        let file = match File::open(&path) {
            Err(source) if needed => return Err(Error { path, source }),
            file => file.ok(),
        };
        let most = numbers.iter().max().map_or(0, |most| *most as usize + 1);
        Ok(Self {
            file,
            numbers: numbers.to_vec(),
            buffer: vec![0; (most + 1) * LINE],
            last: vec![(0, 0); numbers.len()],
            read: Nanos::default(),
        })
    }

    pub(super) fn sense(&mut self, now: Nanos, sensed: &mut Sensed) {
        if now.since(self.read) < EVERY {
            return;
        }
        let Some(file) = &self.file else { return };
        let Ok(bytes) = file.read_at(&mut self.buffer, 0) else {
            return;
        };
        self.read = now;
        sensed.busy_read = now;
        // The last line may be cut off, and it is none of a core then, or one beyond those that are governed.
        let lines = self.buffer[..bytes].split(|byte| *byte == b'\n');
        for (number, busy, whole) in lines.filter_map(counters) {
            let Ok(core) = self.numbers.binary_search(&number) else {
                continue;
            };
            let (last_busy, last_whole) = std::mem::replace(&mut self.last[core], (busy, whole));
            let passed = whole.saturating_sub(last_whole);
            if let Some(seen) = sensed.cores.get_mut(core)
                && passed > 0
                && last_whole > 0
            {
                seen.busy = (busy.saturating_sub(last_busy) as f64 / passed as f64).min(1.0);
            }
        }
    }
}

/// `cpu3 user nice system idle iowait irq softirq steal ...`; guests are in user already.
fn counters(line: &[u8]) -> Option<(u32, u64, u64)> {
    let line = std::str::from_utf8(line.strip_prefix(b"cpu")?).ok()?;
    let mut fields = line.split_ascii_whitespace();
    let number = fields.next()?.parse().ok()?;
    let (mut busy, mut whole) = (0, 0);
    for (index, field) in fields.take(8).enumerate() {
        let ticks: u64 = field.parse().ok()?;
        whole += ticks;
        // Idle, and waiting for a disk.
        busy += if matches!(index, 3 | 4) { 0 } else { ticks };
    }
    Some((number, busy, whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensed::Core;

    #[test]
    fn the_share_is_of_the_time_since_the_last_reading() {
        let folder = tempfile::tempdir().unwrap();
        let stat = folder.path().join("proc/stat");
        std::fs::create_dir_all(stat.parent().unwrap()).unwrap();
        let write = |cpu3: &str| {
            let text = format!("cpu  1 1 1 1\ncpu0 1 0 0 1 0 0 0 0\ncpu3 {cpu3}\nintr 9 9 9\n");
            std::fs::write(&stat, text).unwrap();
        };
        write("10 0 10 100 5 0 0 0 0 0");
        let mut sensed = Sensed {
            cores: vec![Core::default(); 1],
            ..Sensed::default()
        };
        let mut utilisation = Utilisation::new(&Root::new(folder.path()), &[3], true).unwrap();
        utilisation.sense(Nanos(1_000_000_000), &mut sensed);
        assert_eq!(sensed.cores[0].busy, 0.0);
        write("16 0 10 102 7 0 0 0 0 0");
        utilisation.sense(Nanos(1_050_000_000), &mut sensed);
        assert_eq!(sensed.cores[0].busy, 0.0, "too early");
        utilisation.sense(Nanos(1_099_900_000), &mut sensed);
        assert_eq!(sensed.cores[0].busy, 0.6);
    }
}
