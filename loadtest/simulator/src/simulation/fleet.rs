// SPDX-License-Identifier: Apache-2.0
//! What happens to hosts.

use std::time::Duration;

use rand::RngExt;

use super::{Event, Simulation};
use crate::ended::Ended;
use crate::host::Host;
use crate::scenario::HostFault;
use crate::workload::Job;

impl<J: Iterator<Item = Job>, F: FnMut(Ended)> Simulation<'_, J, F> {
    pub(super) fn plan_troubles(&mut self) {
        for trouble in &self.scenario.troubles {
            let event = Event::InjectFault(Box::new((trouble.host, trouble.what)));
            self.agenda.note(trouble.at, event);
        }
        if let Some(preemption) = &self.scenario.preemption {
            for host in 0..preemption.hosts {
                let part = (host as f64 + self.rng.random::<f64>()) / preemption.hosts as f64;
                self.plan_preemption(host, preemption.life.mul_f64(part));
            }
        }
    }

    /// The host will be taken away at this time, and says so before.
    fn plan_preemption(&mut self, host: usize, at: Duration) {
        if let Some(preemption) = &self.scenario.preemption {
            self.control.will_be_taken(host, at);
            self.hosts[host].goes = Some(at);
            let notice = at.saturating_sub(preemption.notice);
            self.agenda.note(notice, Event::Notice(host));
            self.agenda.note(at, Event::Preempt(host));
        }
    }

    pub(super) fn notice(&mut self, host: usize) {
        self.control.drain(host, true);
    }

    pub(super) fn preempt(&mut self, host: usize, now: Duration) {
        if let Some(preemption) = &self.scenario.preemption {
            let (from, to) = preemption.away;
            let away = from + (to - from).mul_f64(self.rng.random());
            self.inject_fault(host, HostFault::Lost, now);
            let back = now + away;
            let returns = Event::InjectFault(Box::new((host, HostFault::Back)));
            self.agenda.note(back, returns);
            self.plan_preemption(host, back + preemption.life);
        }
    }

    pub(super) fn inject_fault(&mut self, number: usize, fault: HostFault, now: Duration) {
        match fault {
            HostFault::Lost => {
                let notice = now + self.scenario.network;
                for request in self.hosts[number].lose() {
                    if let Some(pending) = self.pending.get_mut(&request) {
                        if pending
                            .second
                            .take_if(|second| second.host == number)
                            .is_some()
                        {
                            continue;
                        }
                        let reset = Event::Reset(request, pending.connection);
                        self.agenda.note(notice, reset);
                    }
                }
            }
            HostFault::Back if self.hosts[number].up => {}
            HostFault::Back => {
                self.lives += 1;
                let mut new = Host::new(self.scenario, self.lives);
                // That it will be taken away again is known already.
                new.goes = self.hosts[number].goes;
                self.hosts[number] = new;
                self.control.drain(number, false);
                self.feed(now);
            }
            HostFault::Slowed(factor) => self.hosts[number].slowed = factor,
        }
    }
}
