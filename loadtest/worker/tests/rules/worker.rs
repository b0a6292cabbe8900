// SPDX-License-Identifier: Apache-2.0
//! The program `weir-worker` as a process, which is killed when the test lets go of it.

use std::fs::File;
use std::ops::Deref;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::bucket::Bucket;
use crate::client::{Client, GIVE_UP};

pub(crate) struct Worker {
    client: Client,
    child: Child,
    pub(crate) folder: TempDir,
}

impl Deref for Worker {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Worker {
    /// A host of the items in a bucket.
    pub(crate) async fn start(bucket: &Bucket, flags: &[&str]) -> Self {
        Self::start_over("s3://items", bucket, flags).await
    }

    /// A host of the items in a store, which may be the bucket.
    pub(crate) async fn start_over(store: &str, bucket: &Bucket, flags: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let ports = folder.path().join("ports.json");
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir-worker"))
            .args(["--store", store, "--listen", "127.0.0.1:0"])
            .arg("--ports-file")
            .arg(&ports)
            .args(flags)
            .env_clear()
            .env("AWS_ENDPOINT", format!("http://{}", bucket.address))
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "eu-central-1")
            .env("RUST_LOG", "error")
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("errors")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().expect("it listens");
        let written: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&ports).unwrap()).unwrap();
        let address = written["listen"].as_str().unwrap();
        assert_eq!(line, format!("listening on {address}"));
        Self {
            client: Client(address.parse().unwrap()),
            child,
            folder,
        }
    }

    /// SIGTERM.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.unwrap().success());
    }

    /// SIGKILL.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for its end, which is to be a good one without a word about errors.
    pub(crate) async fn leaves_well(&mut self) {
        let status = timeout(GIVE_UP, self.child.wait()).await;
        let errors = std::fs::read_to_string(self.folder.path().join("errors")).unwrap();
        let status = status
            .unwrap_or_else(|_| panic!("waited in vain for its end: {errors}"))
            .unwrap();
        assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
    }
}
