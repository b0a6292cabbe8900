// SPDX-License-Identifier: Apache-2.0
//! The governor inside: started, stopped, asked.

use anyhow::{Context, Result};
use weir_guest::Guest;

/// Beside it waits a shell for its exit code.
const START: &str = "
    rm -f /run/ports /run/governor.pid /run/governor.code
    {
      weir-governor run --config /etc/weir-governor.yaml --ports-file /run/ports &
      echo $! > /run/governor.pid
      wait $! && code=0 || code=$?
      echo $code > /run/governor.code
    } > /run/governor.log 2>&1 &
    until [ -s /run/ports ] || [ -s /run/governor.code ]; do usleep 100000; done
    [ -s /run/ports ]";

/// Starts it with this configuration, and waits until it governs.
pub(crate) fn start(guest: &mut Guest, configuration: &str) -> Result<()> {
    guest
        .sh(&format!(
            "cat > /etc/weir-governor.yaml <<'YAML'\n{configuration}\nYAML\n{START}"
        ))
        .context("the governor ended instead of governing")?;
    Ok(())
}

/// Sends it a signal and waits until it has ended.
pub(crate) fn stop(guest: &mut Guest, signal: &str) -> Result<()> {
    guest.sh(&format!(
        "read pid < /run/governor.pid; kill -{signal} $pid"
    ))?;
    guest.wait_until("[ -s /run/governor.code ]")
}

/// What it has said so far.
pub(crate) fn log(guest: &mut Guest) -> Result<String> {
    guest.sh("cat /run/governor.log 2>/dev/null || true")
}
