// SPDX-License-Identifier: Apache-2.0
//! The governor inside: started, stopped, killed, asked.

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

/// For the shell: prints the process of the governor's watchdog, and fails where there is none.
const WATCHDOG: &str = "
    watchdog() {
      for pid in $(pidof weir-governor); do
        case $(tr '\\0' ' ' 2> /dev/null < /proc/$pid/cmdline) in
          *' watch '*) echo $pid; return 0 ;;
        esac
      done
      return 1
    }";

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
    ended(guest)
}

/// Waits until it has ended.
pub(crate) fn ended(guest: &mut Guest) -> Result<()> {
    guest.wait_until("[ -s /run/governor.code ]")
}

/// Kills it, and waits until its watchdog has done what it is for.
pub(crate) fn kill(guest: &mut Guest) -> Result<()> {
    stop(guest, "KILL")?;
    guest.sh(&format!(
        "{WATCHDOG}\nwhile watchdog; do usleep 100000; done"
    ))?;
    Ok(())
}

/// Kills it and its watchdog: whatever it has done stays.
pub(crate) fn abandon(guest: &mut Guest) -> Result<()> {
    guest.sh(&killing(true, true))?;
    ended(guest)
}

/// A script that kills the governor, its watchdog, or both. Of both the watchdog dies first, and the
/// governor has no time to start another.
pub(crate) fn killing(governor: bool, watchdog: bool) -> String {
    let mut script = format!("{WATCHDOG}\nread governor < /run/governor.pid\n");
    if watchdog {
        // The governor starts another within a second.
        script.push_str("until watchdog; do usleep 100000; done\n");
        if governor {
            script.push_str("kill -STOP $governor\n");
        }
        script.push_str("kill -9 $(watchdog)\n");
    }
    if governor {
        script.push_str("kill -9 $governor\n");
    }
    script
}

/// What it has said so far.
pub(crate) fn log(guest: &mut Guest) -> Result<String> {
    guest.sh("cat /run/governor.log 2>/dev/null || true")
}
