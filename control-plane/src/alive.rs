// SPDX-License-Identifier: Apache-2.0
//! Whether the process works, which is not whether it has tables: the state's owner takes in news. One that waits for
//! Consul does, and to start it again would help nobody; one that hangs has to be started again.

use std::time::Duration;

use tokio::sync::mpsc;
use weir_notify::Manager;

use crate::news::News;

/// Longer than anything that the owner does at once, and less than a kubelet waits (`timeoutSeconds: 5`).
const LIMIT: Duration = Duration::from_secs(3);

/// The state's owner answers, in time.
pub(crate) async fn is_alive(updates: &mpsc::Sender<News>) -> bool {
    tokio::time::timeout(LIMIT, answer(updates)).await == Ok(true)
}

/// Waits for the owner's answer; false where there is no owner any more.
async fn answer(updates: &mpsc::Sender<News>) -> bool {
    News::ask(updates, News::Alive).await.is_some()
}

/// Tells the service manager, each time that the owner has answered. Lasts as long as the process.
pub(crate) async fn tell(manager: Manager, updates: mpsc::Sender<News>) {
    let mut news = weir_notify::News::Ready;
    while answer(&updates).await {
        manager.tell(news);
        news = weir_notify::News::Works;
        match manager.limit() {
            Some(limit) => tokio::time::sleep(limit / 2).await,
            None => std::future::pending().await,
        }
    }
    // The end of the owner is told elsewhere.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_answers_is_alive_and_one_that_hangs_or_is_gone_is_not() {
        let (updates, mut news) = mpsc::channel(1);
        let owner = async {
            let Some(News::Alive(answer)) = news.recv().await else {
                panic!("another question");
            };
            answer.send(()).unwrap();
        };
        assert!(tokio::join!(is_alive(&updates), owner).0);
        // The first waits to be answered, the second to be asked.
        assert!(!is_alive(&updates).await);
        assert!(!is_alive(&updates).await);
        drop(news);
        assert!(!is_alive(&updates).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_service_manager_hears_of_an_owner_until_that_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let heard = || {
            let mut buffer = [0; 64];
            let read = socket.recv(&mut buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..read]).into_owned())
        };
        let manager = Manager::of(|name| match name {
            "NOTIFY_SOCKET" => Some(path.clone().into()),
            "WATCHDOG_USEC" => Some("30000000".into()),
            _ => None,
        });
        let (updates, mut news) = mpsc::channel(1);
        let telling = tokio::spawn(tell(manager, updates));
        for _ in 0..3 {
            let Some(News::Alive(answer)) = news.recv().await else {
                panic!("another question");
            };
            answer.send(()).unwrap();
        }
        // It is there, and takes in nothing more. Nobody waits at the socket: what was sent is there.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(heard().as_deref(), Some("READY=1\nWATCHDOG=1"));
        assert_eq!(heard().as_deref(), Some("WATCHDOG=1"));
        assert_eq!(heard().as_deref(), Some("WATCHDOG=1"));
        assert_eq!(heard(), None);
        telling.abort();
    }
}
