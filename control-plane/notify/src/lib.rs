// SPDX-License-Identifier: Apache-2.0
//! Tells the service manager that a program is ready and still works (`sd_notify(3)`), and never waits for it: a
//! manager that stands still holds up nobody's work.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// What can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The program does what it was started for.
    Ready,
    /// It still does. To be told in half of [`Manager::limit`], as systemd advises.
    Works,
    /// It ends, which may take long: from here on no [`News::Works`] is due.
    Ends,
}

impl News {
    fn text(self) -> &'static str {
        match self {
            Self::Ready => "READY=1\nWATCHDOG=1",
            Self::Works => "WATCHDOG=1",
            Self::Ends => "STOPPING=1",
        }
    }
}

/// Who has started this program, if it wants to hear of it.
#[derive(Debug)]
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    limit: Option<Duration>,
}

impl Manager {
    /// By `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` of the environment; nobody without the first.
    pub fn find() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    /// The same of another environment.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit = number("WATCHDOG_USEC").filter(|micros| is_ours && *micros > 0);
        let socket = variable("NOTIFY_SOCKET");
        Self {
            // One that cannot be reached hears nothing, and says what it thinks of that.
            socket: socket.and_then(|name| socket_to(&name).ok()),
            limit: limit.map(Duration::from_micros),
        }
    }

    /// How long it waits for [`News::Works`] before it ends the program; none where it does not.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Tells it. What finds no room is lost, and the next word comes soon.
    pub fn tell(&self, news: News) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(news.text().as_bytes(), address);
        }
    }
}

fn socket_to(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        // Of no file system.
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(variables: &[(&str, &str)]) -> Manager {
        Manager::of(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let read = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    }

    #[test]
    fn it_hears_by_a_path_and_by_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("weir-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, variable) in [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.to_str().unwrap().to_owned(),
            ),
            (
                UnixDatagram::bind_addr(&abstract_name).unwrap(),
                format!("@{name}"),
            ),
        ] {
            let manager = manager(&[("NOTIFY_SOCKET", &variable)]);
            for news in [News::Ready, News::Works, News::Ends] {
                manager.tell(news);
                assert_eq!(heard(&socket), news.text());
            }
        }
    }

    #[test]
    fn one_that_does_not_listen_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = manager(&[("NOTIFY_SOCKET", path.to_str().unwrap())]);
        manager.tell(News::Ready);
        let socket = UnixDatagram::bind(&path).unwrap();
        // More than a socket holds (net.unix.max_dgram_qlen).
        for _ in 0..10_000 {
            manager.tell(News::Works);
        }
        assert_eq!(heard(&socket), "WATCHDOG=1");
        super::tests::manager(&[]).tell(News::Ready);
    }

    #[test]
    fn a_limit_for_another_process_is_none() {
        let own = std::process::id().to_string();
        let limit = |variables: &[_]| manager(variables).limit();
        let micros = ("WATCHDOG_USEC", "30000000");
        let seconds = Some(Duration::from_secs(30));
        assert_eq!(limit(&[micros]), seconds);
        assert_eq!(limit(&[micros, ("WATCHDOG_PID", &own)]), seconds);
        assert_eq!(limit(&[micros, ("WATCHDOG_PID", "1")]), None);
        assert_eq!(limit(&[("WATCHDOG_USEC", "0")]), None);
        assert_eq!(limit(&[]), None);
    }
}
