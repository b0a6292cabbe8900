// SPDX-License-Identifier: Apache-2.0
//! How many cores the service uses, or the jobs: the CPU clocks of their processes from tick to tick.
//!
//! Such a clock counts nanoseconds, while `/proc/PID/stat` counts hundredths of a second, a fifth of a tick. It has
//! no time of processes that came from it: one that comes and goes between two looks is not seen.

use std::time::Duration;

use nix::time::ClockId;
use rustix::process::Pid;

use crate::sensed::Nanos;

/// The clocks of the service's processes, or of the jobs'.
#[derive(Debug, Default)]
pub struct ServiceClock {
    processes: Vec<Process>,
    read: Option<Nanos>,
    vanished: bool,
}

#[derive(Debug)]
struct Process {
    pid: Pid,
    clock: ClockId,
    /// Its CPU time when it was read last; none of one that is new.
    used: Option<Duration>,
}

impl ServiceClock {
    /// Of these, from the next reading on.
    pub fn new(processes: Vec<Pid>) -> Self {
        let mut clock = Self::default();
        clock.look(processes);
        clock
    }

    /// The service's processes are these now: once a second, and at once when one [`vanished`](Self::vanished). A
    /// new one counts from its first reading.
    pub fn look(&mut self, processes: Vec<Pid>) {
        self.vanished = false;
        self.processes
            .retain(|known| processes.contains(&known.pid));
        for pid in processes {
            if self.processes.iter().any(|known| known.pid == pid) {
                continue;
            }
            // One that is gone already is none of them.
            if let Ok(clock) = ClockId::pid_cpu_clock_id(to_nix(pid)) {
                let used = None;
                self.processes.push(Process { pid, clock, used });
            }
        }
    }

    /// Whether a process has ended since the last look: there may be another in its place.
    pub fn vanished(&self) -> bool {
        self.vanished
    }

    /// Cores used on average since the last call; none where the service is gone or was not there then. Allocates
    /// nothing.
    pub fn sense(&mut self, now: Nanos) -> Option<f64> {
        let mut sum = None;
        let before = self.processes.len();
        self.processes.retain_mut(|process| {
            let Some(used) = process.read() else {
                return false;
            };
            if let Some(last) = process.used.replace(used) {
                // A number that is used anew begins with less.
                *sum.get_or_insert(Duration::ZERO) += used.saturating_sub(last);
            }
            true
        });
        self.vanished |= self.processes.len() < before;
        let elapsed = now.since(self.read.replace(now)?);
        (!elapsed.is_zero()).then_some(sum?.as_secs_f64() / elapsed.as_secs_f64())
    }
}

impl Process {
    fn read(&self) -> Option<Duration> {
        self.clock.now().ok().map(Duration::from)
    }
}

fn to_nix(pid: Pid) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(pid.as_raw_pid())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use proptest::prelude::*;
    use rustix::process::{Signal, kill_process};
    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;
    use crate::stat::Stat;

    /// Is ended with the test, however that ends.
    struct Busy(Child);

    impl Busy {
        /// On one core.
        fn start() -> Self {
            let child = Command::new("/bin/sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn();
            let busy = Self(child.unwrap());
            let mut first = CpuSet::new();
            let allowed = rustix::thread::sched_getaffinity(None).unwrap();
            let core = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core));
            first.set(core.unwrap());
            sched_setaffinity(Some(busy.pid()), &first).unwrap();
            busy
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.0)
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// `/proc/PID/stat` is behind the clock by so much at most: the tick that has not ended, and what is cut off of
    /// the user's time and of the system's.
    const BEHIND: Duration = Duration::from_millis(30);
    /// So much use makes that little of it.
    const TELLING: Duration = Duration::from_millis(300);

    /// What the kernel says that a process has used.
    fn used(pid: Pid) -> Duration {
        Stat::read(&pid.to_string()).unwrap().cpu
    }

    /// Senses twice and compares with what the kernel says of the process over the same time, as a machine that has
    /// other things to do gives it less than a core. What was sensed first comes back.
    fn senses_what_is_used(clock: &mut ServiceClock, pid: Pid) -> Option<f64> {
        let earliest = used(pid);
        let began = crate::sense::now();
        let first = clock.sense(began);
        let early = used(pid);
        for _ in 0..1_000 {
            if used(pid) >= early + TELLING {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let late = used(pid);
        let ended = crate::sense::now();
        let cores = clock.sense(ended).unwrap();
        let latest = used(pid);
        assert!(late >= early + TELLING, "it got no time");
        let sensed = ended.since(began).mul_f64(cores);
        let possible = late - early - BEHIND..=latest - earliest + BEHIND;
        assert!(possible.contains(&sensed), "{sensed:?} of {possible:?}");
        first
    }

    /// What is sensed over a fifth of a second, again and again until it `is` as it should be.
    fn sense_until(clock: &mut ServiceClock, is: impl Fn(Option<f64>) -> bool) -> Option<f64> {
        let mut cores = None;
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(200));
            cores = clock.sense(crate::sense::now());
            if is(cores) {
                break;
            }
        }
        cores
    }

    #[test]
    fn a_busy_process_uses_what_it_gets_a_stopped_one_nothing_and_of_a_killed_one_nothing_is_known()
    {
        let busy = Busy::start();
        let mut clock = ServiceClock::new(vec![busy.pid()]);
        assert_eq!(
            senses_what_is_used(&mut clock, busy.pid()),
            None,
            "nothing to compare with"
        );

        kill_process(busy.pid(), Signal::STOP).unwrap();
        assert_eq!(
            sense_until(&mut clock, |cores| cores == Some(0.0)),
            Some(0.0)
        );
        assert!(!clock.vanished());

        let pid = busy.pid();
        drop(busy);
        assert_eq!(sense_until(&mut clock, |cores| cores.is_none()), None);
        assert!(clock.vanished());
        clock.look(vec![pid]);
        assert!(!clock.vanished());
        assert_eq!(clock.sense(crate::sense::now()), None);
    }

    #[test]
    fn a_new_process_counts_from_its_first_reading() {
        let old = Busy::start();
        let mut clock = ServiceClock::new(vec![]);
        clock.sense(crate::sense::now());
        // What it has used by now is nobody's.
        senses_what_is_used(&mut ServiceClock::new(vec![old.pid()]), old.pid());
        clock.look(vec![old.pid()]);
        assert_eq!(senses_what_is_used(&mut clock, old.pid()), None);
        clock.look(vec![]);
        assert_eq!(clock.sense(crate::sense::now()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn use_is_never_negative_and_always_a_number(
            steps in proptest::collection::vec((0u64..3, 0usize..3), 1..40),
        ) {
            let own = rustix::process::getpid();
            let init = Pid::INIT;
            let gone = Pid::from_raw(i32::MAX).unwrap();
            let sets = [vec![], vec![own, gone], vec![init, own]];
            let mut clock = ServiceClock::new(vec![own]);
            let mut now = Nanos(0);
            for (later, set) in steps {
                now.0 += later * 1000;
                if later == 2 {
                    clock.look(sets[set].clone());
                }
                let cores = clock.sense(now);
                prop_assert!(cores.is_none_or(|cores| cores.is_finite() && cores >= 0.0));
            }
        }
    }
}
