// SPDX-License-Identifier: Apache-2.0
//! What a governor's cores do, in the terminal: one screen of at least 80 by 24, drawn again every second.

mod shares;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;

use crate::admin::{CoreView, View};
use crate::get::get;

const EVERY: Duration = Duration::from_secs(1);
/// Of a terminal that does not say.
const LINES: usize = 24;
/// Cores keep so many lines beside jobs.
const CORES: usize = 5;
/// To the top, and from there on nothing but what is written now.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Shows the governor that listens there, until it is gone or the terminal is; or once, with every core.
pub async fn show(address: SocketAddr, once: bool) -> anyhow::Result<()> {
    loop {
        let page = tokio::time::timeout(EVERY, get(address, "/state")).await;
        let page = page.context("no answer in a second").flatten();
        let page = page.with_context(|| format!("no governor at {address}"))?;
        let view: View = serde_json::from_str(&page).context("this is no governor's page")?;
        let mut out = std::io::stdout().lock();
        if once {
            out.write_all(table(&view, usize::MAX).as_bytes())?;
            return Ok(());
        }
        let size = rustix::termios::tcgetwinsize(&out).ok();
        let lines = size
            .map_or(LINES, |size| usize::from(size.ws_row))
            .max(LINES);
        write!(out, "{CLEAR}{}", table(&view, lines - 1))?;
        out.flush()?;
        drop(out);
        tokio::time::sleep(EVERY).await;
    }
}

/// No more lines than that, and no line longer than 80.
pub fn table(view: &View, lines: usize) -> String {
    let mut text = String::new();
    let tail = view
        .tail_ms
        .map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    // Into a string nothing fails.
    let _ = writeln!(
        text,
        "tick {} ms  decisions {} ({} late)  tail {tail}",
        view.sleep_ms, view.ticks, view.ticks_late
    );
    let _ = writeln!(
        text,
        "lanes {}  events {} ({} lost)  lies {}",
        view.lanes, view.events, view.events_lost, view.lies
    );
    for zone in view.zones.iter().take(4) {
        let _ = writeln!(
            text,
            "{:<12} {:.1} J since the start",
            plain(&zone.name),
            zone.joules
        );
    }
    if let Some(view_of_shares) = &view.shares {
        // Cores have at least a line each of the first few, or one that says how many there are.
        let cores = view.cores.len().min(CORES) + usize::from(!view.cores.is_empty());
        let room = lines.saturating_sub(text.lines().count() + cores);
        text += &shares::table(view_of_shares, view.tail_ms, room);
    }
    if !view.cores.is_empty() {
        let room = lines.saturating_sub(text.lines().count());
        text += &cores(&view.cores, room);
    }
    text
}

fn cores(all: &[CoreView], lines: usize) -> String {
    let mut text = format!(
        "{:>5} {:>6} {:>4} {:>5} {:>9}  hot\n",
        "core", "MHz", "rung", "busy", "changes"
    );
    let room = lines.saturating_sub(1);
    let (shown, more) = match all.len() {
        all if all <= room => (all, 0),
        all => (room.saturating_sub(1), all - room.saturating_sub(1)),
    };
    // Those that do something first.
    let mut cores: Vec<&CoreView> = all.iter().collect();
    if more > 0 {
        cores.sort_by_key(|core| (std::cmp::Reverse(core.rung), core.core));
    }
    // Into a string nothing fails.
    for core in cores.iter().take(shown) {
        let _ = writeln!(text, "{}", row(core).trim_end());
    }
    if more > 0 {
        let _ = writeln!(text, "{:>5} more", format!("+{more}"));
    }
    text
}

/// A text of another program, which must not move the cursor or begin a line.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn row(core: &CoreView) -> String {
    let mhz = core.mhz.map_or("-".to_owned(), |mhz| mhz.to_string());
    let busy = format!("{:.0} %", core.busy * 100.0);
    let mut what = match (core.online, core.governed) {
        (false, _) => "offline".to_owned(),
        (true, false) => "left alone: written by another, or not to be written".to_owned(),
        _ => String::new(),
    };
    for hot in &core.hot {
        let _ = write!(what, "{} {:.0} ms  ", hot.function, hot.ms);
    }
    let what: String = plain(&what).chars().take(45).collect();
    format!(
        "{:>5} {mhz:>6} {:>4} {busy:>5} {:>9}  {what}",
        core.core, core.rung, core.transitions
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::HotView;

    fn view(cores: u32) -> View {
        let core = |core| CoreView {
            core,
            online: true,
            governed: core != 1,
            mhz: Some(2600),
            rung: usize::from(core == 60) * 2,
            busy: 0.934,
            hot: vec![HotView {
                function: "a.very.long.name.of.a.function.in.a.language.with.packages".into(),
                ms: 123_456.0,
            }],
            transitions: 123_456_789,
            write_errors: 0,
            foreign_writes: 0,
        };
        View {
            cores: (0..cores).map(core).collect(),
            ticks: 10,
            ticks_late: 1,
            sleep_ms: 50.0,
            lanes: 3,
            events: 4,
            events_lost: 0,
            lies: 0,
            tail_ms: Some(12.34),
            zones: Vec::new(),
            shares: None,
        }
    }

    #[test]
    fn names_of_functions_and_zones_do_not_steer_the_terminal() {
        let mut view = view(1);
        view.cores[0].hot[0].function = "a\u{1b}[2J\nb\u{7f}".into();
        view.zones = vec![crate::book::ZoneBook {
            name: "p\u{1b}]0;x\u{7}\n".into(),
            path: "/x".into(),
            joules: 1.0,
        }];
        let text = table(&view, 23);
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
        assert_eq!(text.lines().count(), 5, "{text:?}");
    }

    #[test]
    fn a_screen_of_80_by_24_is_enough_and_shows_who_is_fast() {
        let text = table(&view(64), 23);
        assert!(text.lines().count() <= 23, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let first = text.lines().nth(3).unwrap();
        assert!(
            first.starts_with("   60   2600    2  93 % 123456789  a.very"),
            "{first}"
        );
        assert!(text.contains("+45 more"), "{text}");
        assert_eq!(table(&view(64), usize::MAX).lines().count(), 3 + 64);
    }
    #[test]
    fn the_service_and_seven_jobs_fit_beside_cores_and_alone() {
        for cores in [0, 4, 64] {
            let view = View {
                shares: Some(shares::tests::view(7)),
                ..view(cores)
            };
            let text = table(&view, 23);
            assert!(text.lines().count() <= 23, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            assert_eq!(text.matches("a-job-with").count(), 7, "{text}");
            assert_eq!(text.contains("MHz"), cores > 0, "{text}");
            let shown = text.matches(" 2600 ").count();
            assert!(shown >= cores.min(4) as usize, "{text}");
        }
    }

    #[test]
    fn many_jobs_leave_room_for_cores() {
        let view = View {
            shares: Some(shares::tests::view(70)),
            ..view(64)
        };
        let text = table(&view, 23);
        assert_eq!(text.lines().count(), 23, "{text}");
        assert!(
            text.contains("+60 more\n") && text.contains("+60 more"),
            "{text}"
        );
        assert_eq!(
            table(&view, usize::MAX).lines().count(),
            2 + 5 + 70 + 1 + 64
        );
    }
}
