// SPDX-License-Identifier: Apache-2.0
//! Programs inside that are in a hot function.

use anyhow::Result;
use weir_guest::Guest;

/// Starts a program with a thread on a core, in a hot function for as long as it lives.
pub(crate) fn forever(guest: &mut Guest, core: usize, function: u32) -> Result<()> {
    play(guest, core, function, "--hot-ms 600000")
}

/// The same for one call of so many milliseconds, after which it ends.
pub(crate) fn once(guest: &mut Guest, core: usize, function: u32, millis: u64) -> Result<()> {
    play(
        guest,
        core,
        function,
        &format!("--hot-ms {millis} --idle-ms 0 --times 1"),
    )
}

/// One program with a thread on each of two cores, in calls without a pause: threads that begin at once
/// may find the file being opened by the other, and tell of their next call first.
pub(crate) fn together(guest: &mut Guest, [one, other]: [usize; 2]) -> Result<()> {
    guest.sh(&format!(
        "weir-events-play --ring /run/weir/weir.events --sleep --threads 2 \
         --cores {one},{other} --hot-ms 1000 --idle-ms 1 > /run/play 2>&1 &"
    ))?;
    Ok(())
}

/// Calls of so many milliseconds on a core, with as long a pause after each.
pub(crate) fn calls(guest: &mut Guest, core: usize, millis: u64) -> Result<()> {
    play(
        guest,
        core,
        0,
        &format!("--hot-ms {millis} --idle-ms {millis}"),
    )
}

/// Ends all of them at once, in the middle of their calls.
pub(crate) fn kill(guest: &mut Guest) -> Result<()> {
    guest.sh("killall -9 weir-events-play")?;
    Ok(())
}

/// They sleep in their functions: what is hot here is what they say, not the core.
fn play(guest: &mut Guest, core: usize, function: u32, flags: &str) -> Result<()> {
    guest.sh(&format!(
        "weir-events-play --ring /run/weir/weir.events --sleep --cores {core} \
         --function {function} {flags} > /run/play.{core} 2>&1 &"
    ))?;
    Ok(())
}

/// Waits until a core's own file says that it is at this frequency.
pub(crate) fn wait_for_khz(guest: &mut Guest, core: usize, khz: u32) -> Result<()> {
    let file = format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
    guest.wait_until(&format!("read khz < {file} && [ $khz = {khz} ]"))
}
