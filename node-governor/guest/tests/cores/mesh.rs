// SPDX-License-Identifier: Apache-2.0
//! A real weir-control tells the governor of requests that wait at the service's host: a page whose figures the test
//! sets. By its use of CPU time alone the service would have neither the second core nor a higher frequency.

use anyhow::Result;
use weir_guest::{FREQUENCIES_KHZ, Guest};

use crate::layout::{self, CALM, FOUR};
use crate::stage::Scenario;
use crate::work;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "told_by_the_mesh_that_requests_wait_the_service_has_the_small_block_and_the_highest_frequency",
    acts_on_a_row,
)];

/// The host: a page, on which ten more jobs have waited so many seconds each time that it is written.
const HOST: &str = "
    mkdir -p /run/work/www
    httpd -p 127.0.0.1:9000 -h /run/work/www
    {
      jobs=0 waited=0
      while read -r delay < /run/work/delay; do
        jobs=$((jobs + 10)) waited=$((waited + 10 * delay))
        {
          echo weir_host_in_progress 1
          echo weir_host_queued 0
          echo weir_host_queuing_delay_seconds_sum $waited
          echo weir_host_queuing_delay_seconds_count $jobs
        } > /run/work/page
        mv /run/work/page /run/work/www/metrics
        usleep 200000
      done
    } > /dev/null 2>&1 &";

const CONTROL: &str = "
    cat > /etc/weir-control.yaml <<'YAML'
xds: { listen: \"127.0.0.1:9001\" }
admin: { listen: \"127.0.0.1:9002\" }
clusters:
  rules:
    hosts: [{ address: \"127.0.0.1:9000\", capacity_millicores: 1000 }]
    scrape: { interval: 500ms }
YAML
    weir-control --config /etc/weir-control.yaml > /run/work/control.log 2>&1 &";

const MESH: &str = "
mesh: { control: 'http://127.0.0.1:9001', cluster: rules, host: '127.0.0.1:9000', delay: 100ms, hold: 2s, stale: 20s }";

fn acts_on_a_row(guest: &mut Guest) -> Result<()> {
    waits(guest, 0)?;
    guest.sh(HOST)?;
    guest.sh(CONTROL)?;
    layout::begin_with(guest, CALM, &format!("{FOUR}{MESH}"))?;
    layout::wait_until_told(guest, |said| said["delay_ms"].is_number())?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    let (highest, lowest) = (
        FREQUENCIES_KHZ[0],
        FREQUENCIES_KHZ[FREQUENCIES_KHZ.len() - 1],
    );
    assert_eq!(guest.registers_khz()?, [lowest; 4]);

    waits(guest, 1)?;
    layout::wait_for_large(guest, "dedup", "freqmine")?;
    let pressed = layout::wait_until_told(guest, |said| said["pressed"] == true)?;
    assert_eq!(pressed["why"], "refused", "{pressed}");
    wait_for_khz(guest, [highest, highest, lowest, lowest])?;

    waits(guest, 0)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    wait_for_khz(guest, [lowest; 4])?;
    layout::finish(guest)
}

/// Seconds that each of the host's jobs waits from now on.
fn waits(guest: &mut Guest, seconds: u32) -> Result<()> {
    work::order(guest, "delay", &seconds.to_string())
}

/// Cores and frequencies are written one after the other.
pub(crate) fn wait_for_khz(guest: &mut Guest, wanted: [u32; 4]) -> Result<()> {
    let says = |(core, khz): (usize, &u32)| {
        format!("grep -qx {khz} /sys/devices/system/cpu/cpu{core}/cpufreq/scaling_setspeed")
    };
    let all: Vec<String> = wanted.iter().enumerate().map(says).collect();
    guest.wait_until(&format!("{{ {}; }}", all.join(" && ")))?;
    assert_eq!(guest.registers_khz()?, wanted, "from outside");
    Ok(())
}
