// SPDX-License-Identifier: Apache-2.0
//! Chromium without a window, driven over two pipes by its DevTools protocol: one JSON a message, which a NUL ends.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::waits::until_there;

/// In a folder of unpacked packages, or on the machine itself.
const PROGRAM: &str = "usr/lib/chromium/chromium";
/// Of shared libraries, in the folder.
const LIBRARIES: [&str; 3] = [
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/pulseaudio",
];
/// A page of its own and nothing else: no account, no update, no question to anybody.
const FLAGS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
];

pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Value,
    last: u64,
    _profile: TempDir,
}

impl Browser {
    /// With this page of weir-control; none, and the test is skipped, where there is no browser.
    pub(crate) fn open(admin: SocketAddr) -> Option<Self> {
        let folder = weir_needs::provided_or_skip("WEIR_CHROMIUM_DIR")?;
        let profile = tempfile::tempdir().unwrap();
        // It reads from descriptor 3 and writes to 4.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(program(&folder))
            .env("LD_LIBRARY_PATH", libraries(&folder))
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut browser = Self {
            to: child.stdin.take().unwrap(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
            session: Value::Null,
            last: 0,
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": page["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", target)["sessionId"].take();
        browser.load(&format!("http://{admin}/"));
        Some(browser)
    }

    /// Chromium gives up what it fetches when a network of this machine comes or goes (`ERR_NETWORK_CHANGED`), as those
    /// of other tests do: a page without its scripts is loaded again.
    fn load(&mut self, url: &str) {
        until_there("the page and its scripts", || {
            self.call("Page.navigate", json!({ "url": url }));
            self.until("document.readyState", "complete");
            match self.value("document.querySelector('.hosts') !== null") {
                Value::Bool(true) => Ok(()),
                _ => Err("no table of hosts"),
            }
        });
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "{PROGRAM} has ended");
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// What a script in the page comes to, or what its promise does, or what is thrown.
    fn run(&mut self, script: &str) -> Result<Value, Value> {
        let parameters =
            json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", parameters);
        match answer["exceptionDetails"].take() {
            Value::Null => Ok(answer["result"]["value"].take()),
            thrown => Err(thrown),
        }
    }

    /// Shows the page to somebody with a screen of this width who prefers `light` or `dark` colours.
    pub(crate) fn show_on(&mut self, width: u32, colours: &str) {
        let screen =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 640 });
        self.call("Emulation.setDeviceMetricsOverride", screen);
        let colours = json!({ "name": "prefers-color-scheme", "value": colours });
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [colours] }),
        );
    }

    /// What a script in the page comes to.
    pub(crate) fn value(&mut self, script: &str) -> Value {
        self.run(script).unwrap()
    }

    /// Returns when a script comes to this.
    pub(crate) fn until(&mut self, script: &str, wanted: impl Into<Value> + Display) {
        let what = format!("{script} to be {wanted}");
        let wanted = wanted.into();
        until_there(&what, || match self.run(script) {
            Ok(seen) if seen == wanted => Ok(()),
            // What the page has not yet, a script cannot find.
            Ok(seen) | Err(seen) => Err(seen),
        });
    }
}

/// Where the browser is.
fn program(folder: &Path) -> PathBuf {
    let mut places = [folder, Path::new("/")]
        .map(|root| root.join(PROGRAM))
        .into_iter();
    let found = places.find(|place| place.is_file());
    found.unwrap_or_else(|| panic!("no {PROGRAM} in {} and none in /", folder.display()))
}

fn libraries(folder: &Path) -> OsString {
    std::env::join_paths(LIBRARIES.map(|path| folder.join(path))).unwrap()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its children end with it, which they do not when it is killed.
        let _ = self
            .to
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.wait();
    }
}
