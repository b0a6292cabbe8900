// SPDX-License-Identifier: Apache-2.0
//! What reaches the governor: what programs write into its shared memory, pages, and what weir-control says.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use weir_events::layout::{HEADER_BYTES, Header};
use weir_events::{Memory, Reader};
use weir_governor::config;
use weir_governor::sense::{mesh, page, promql};
use weir_governor::sensed::Nanos;
use weir_governor::{admin, top as terminal};
use weir_tables::v1::HostRow;

use crate::laws::{accepted, is_a_line, message};

const NOW: u64 = 1 << 40;

/// The bytes of a file of events, of which lanes have been empty at first.
struct File(RefCell<Vec<u8>>);

impl Memory for &File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.borrow();
        let at = offset as usize;
        let wanted = bytes.get(at..at + buffer.len());
        buffer.copy_from_slice(wanted.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        unreachable!("nothing is freed")
    }
}

pub(crate) fn events(bytes: &[u8]) -> bool {
    let Some(header) = accepted(Header::check(bytes, bytes.len() as u64)) else {
        return false;
    };
    assert_eq!(header.encode()[..20], bytes[..20]);
    let mut empty = bytes.to_vec();
    empty[HEADER_BYTES as usize..].fill(0);
    let file = File(RefCell::new(empty));
    let mut reader = Reader::over(&file, "events", bytes.len() as u64).expect("it was checked");
    file.0.borrow_mut().copy_from_slice(bytes);
    let (lanes, most) = (header.geometry.lanes(), header.geometry.events_per_lane());
    let mut shown = 0;
    for again in [false, true] {
        let tick = reader.read(NOW, |lane| {
            assert!(lane.number < lanes && lane.events.len() <= most as usize);
            assert!(lane.since_ns.iter().all(|since| *since <= NOW));
            shown += lane.events.len() as u64;
        });
        let tick = tick.expect("the file is as long as it was");
        assert!(!again || tick.events == 0, "no event is shown twice");
        assert!(tick.claimed <= lanes);
    }
    shown > 0
}

/// Pages with a histogram, one after another, a second apart.
pub(crate) fn tail_page(bytes: &[u8]) -> bool {
    let page = config::Page {
        address: ([127, 0, 0, 1], 9901).into(),
        path: "/stats/prometheus".to_owned(),
        metric: "rq_time{cluster=\"search\"}".to_owned(),
        unit: 0.001,
    };
    let settings = config::Tail {
        source: config::TailSource::Page(page.clone()),
        quantile: 0.99,
        window: Duration::from_secs(10),
        every: Duration::from_secs(1),
    };
    let mut histogram = page::Histogram::new(page, &settings);
    let mut measured = false;
    for (second, text) in (1..).zip(bytes.split(|byte| *byte == 0)) {
        let now = Nanos(second * 1_000_000_000);
        let text = String::from_utf8_lossy(text).into_owned();
        match histogram.tail(now, Ok(text)) {
            Ok(tail) => measured |= tail.is_some(),
            Err(error) => is_a_line(&format!("{error:#}")),
        }
    }
    measured
}

/// Prometheus' answer to a query for the latency.
pub(crate) fn tail_query(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let latency = promql::latency(&text).map_err(|error| format!("{error:#}"));
    accepted(latency).is_some()
}

pub(crate) fn host_row(bytes: &[u8]) -> bool {
    let Some(message) = message::<HostRow>(bytes) else {
        return false;
    };
    let Some(row) = mesh::row(&message, Nanos(NOW)) else {
        return false;
    };
    assert!(row.at.0 <= NOW);
    let link = mesh::Link::default();
    link.said(Some(row));
    assert_eq!(link.row().map(|said| said.refuses), Some(row.refuses));
    true
}

/// A governor's page, as its terminal program shows it.
pub(crate) fn top(bytes: &[u8]) -> bool {
    let Ok(view) = serde_json::from_slice::<admin::View>(bytes) else {
        return false;
    };
    for lines in [0, 24, usize::MAX] {
        let shown = terminal::table(&view, lines);
        let most = lines.saturating_add(view.zones.len().min(4) + 30);
        assert!(shown.lines().count() <= most, "{shown}");
        // Whatever calls itself a governor does not write to the terminal.
        assert!(
            !shown.contains(|c: char| c.is_control() && c != '\n'),
            "{shown:?}"
        );
    }
    true
}
