// SPDX-License-Identifier: Apache-2.0
//! How the jobs of a host share its cores: what it would tell of itself if it had some more jobs, or fewer.

use crate::figures::Figures;

/// The cores of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cores {
    Known(u32),
    AtLeast(u32),
}

/// The figures with so many jobs more, or fewer.
pub(crate) fn moved(figures: &Figures, change: i64, cores: Cores) -> Figures {
    let queued = figures.queued.as_deref().unwrap_or_default();
    let waited = figures.waiting();
    let jobs = figures.jobs().saturating_add_signed(change);
    let most = |jobs: u64| u32::try_from(jobs).unwrap_or(u32::MAX);
    let shared = |cores| {
        let sharing = Sharing::of(figures, cores);
        let waiting = jobs.saturating_sub(sharing.room);
        (waiting, sharing.busy(jobs - waiting))
    };
    let (waiting, busy_cores) = match cores {
        Cores::Known(cores) => {
            let (waiting, busy) = shared(cores);
            (Some(waiting), Some(busy))
        }
        Cores::AtLeast(cores) if figures.queued.is_some() && figures.in_progress.is_some() => {
            let (waiting, busy) = shared(cores);
            (Some(waiting), figures.busy_cores.map(|_| busy))
        }
        // How many of its jobs run is not known.
        Cores::AtLeast(_) => {
            let waiting = figures.queued.as_ref();
            let waiting = waiting.map(|_| waited.saturating_add_signed(change));
            (waiting, figures.busy_cores)
        }
    };
    Figures {
        in_progress: Some(most(jobs)),
        queued: waiting.map(|waiting| spread(queued, waited, most(waiting))),
        queuing_delay: figures.queuing_delay,
        delay_is_late: figures.delay_is_late,
        busy_cores,
        // Of the new ones nothing is known but that they are, and of the old ones how far they are by now.
        work: None,
    }
}

/// How the jobs of a host share its cores: each new one as the mean of those that it told.
#[derive(Debug)]
struct Sharing {
    cores: u64,
    /// Jobs that had a core, and the cores that they held.
    running: u64,
    held: u64,
    /// Jobs that can have a core at a time.
    room: u64,
}

impl Sharing {
    fn of(figures: &Figures, cores: u32) -> Self {
        let cores = u64::from(cores);
        let (Some(jobs), Some(_)) = (figures.in_progress, &figures.queued) else {
            // It does not say how many run: a core for each.
            return Self {
                cores,
                running: 0,
                held: 0,
                room: cores,
            };
        };
        let waiting = figures.waiting();
        let running = u64::from(jobs).saturating_sub(waiting);
        let held = figures.busy_cores.map_or(running, u64::from).min(cores);
        let idle = cores - held;
        // No less than a core for each: of one that waits for others' work it is not known for how long.
        let room = match (waiting, held > running && running > 0) {
            (0, true) => running + (idle * running + held / 2) / held,
            (0, false) => running + idle,
            // Whatever its cores: there is none for those that wait.
            _ => running,
        };
        Self {
            cores,
            running,
            held,
            room,
        }
    }

    /// Cores that so many jobs hold.
    fn busy(&self, running: u64) -> u32 {
        let held = match self.running {
            0 => self.held + running,
            before => (running * self.held + before / 2) / before,
        };
        u32::try_from(held.min(self.cores)).unwrap_or(u32::MAX)
    }
}

/// So many waiting jobs by class, in proportion to those `queued` before, `waited` in all. Where none waited, they count
/// for everybody.
fn spread(queued: &[u32], waited: u64, waiting: u32) -> Vec<u32> {
    if waited == 0 {
        return vec![waiting];
    }
    let (mut jobs, mut told) = (0, 0);
    let share = |class: &u32| {
        jobs += u64::from(*class);
        let all = (u128::from(jobs) * u128::from(waiting) / u128::from(waited)) as u32;
        let share = all - told;
        told = all;
        share
    };
    queued.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn jobs_hold_as_many_cores_as_the_host_told() {
        // 14 cores held by 7 jobs, of 16.
        let own = Figures {
            in_progress: Some(7),
            queued: Some(vec![0]),
            busy_cores: Some(14),
            ..Figures::default()
        };
        let figures = |change| {
            let Figures {
                in_progress,
                queued,
                busy_cores,
                ..
            } = moved(&own, change, Cores::Known(16));
            (in_progress.unwrap(), queued.unwrap(), busy_cores.unwrap())
        };
        assert_eq!(figures(0), (7, vec![0], 14));
        assert_eq!(figures(1), (8, vec![0], 16));
        assert_eq!(figures(3), (10, vec![2], 16), "not ten cores of 16");
        assert_eq!(figures(-2), (5, vec![0], 10));
        assert_eq!(figures(-9), (0, vec![0], 0));
    }

    #[test]
    fn where_jobs_wait_no_core_is_free_for_more_however_many_are_configured() {
        let own = Figures {
            in_progress: Some(5),
            queued: Some(vec![1, 2]),
            busy_cores: Some(2),
            ..Figures::default()
        };
        let waiting = |change| moved(&own, change, Cores::Known(8)).queued.unwrap();
        assert_eq!(waiting(0), [1, 2]);
        assert_eq!(waiting(3), [2, 4]);
        assert_eq!(waiting(-3), [0, 0]);
    }

    proptest! {
        #[test]
        fn a_change_moves_what_waits_by_no_more_and_none_leaves_what_the_host_told(
            (running, queued) in (any::<u16>(), prop::collection::vec(any::<u16>(), 1..5)),
            (busy, cores) in (any::<u16>(), 1..=u32::from(u16::MAX)),
            change in any::<i64>(),
        ) {
            let queued: Vec<u32> = queued.into_iter().map(u32::from).collect();
            let waited: u32 = queued.iter().sum();
            let figures = Figures {
                in_progress: Some(u32::from(running) + waited),
                queued: Some(queued),
                busy_cores: Some(u32::from(busy).min(cores)),
                ..Figures::default()
            };
            for known in [Cores::Known(cores), Cores::AtLeast(cores)] {
                prop_assert_eq!(&moved(&figures, 0, known), &figures);
                let moved = moved(&figures, change, known);
                let waiting = moved.waiting();
                prop_assert!(waiting.abs_diff(waited.into()) <= change.unsigned_abs());
                prop_assert!(moved.busy_cores.unwrap() <= cores);
            }
        }

        #[test]
        fn any_figures_and_any_change_make_figures(
            in_progress in prop::option::of(any::<u32>()),
            queued in prop::option::of(prop::collection::vec(any::<u32>(), 0..5)),
            work in prop::option::of(prop::collection::vec(any::<u64>(), 0..5)),
            busy_cores in prop::option::of(any::<u32>()),
            change in any::<i64>(),
            cores in 1..=u32::MAX,
        ) {
            let figures = Figures { in_progress, queued, work, busy_cores, ..Figures::default() };
            let known = moved(&figures, change, Cores::Known(cores));
            prop_assert!(known.waiting() <= known.in_progress.unwrap().into());
            prop_assert!(known.busy_cores.unwrap() <= cores);
            let seen = moved(&figures, change, Cores::AtLeast(cores));
            prop_assert_eq!(seen.queued.is_some(), figures.queued.is_some());
            prop_assert_eq!(seen.busy_cores.is_some(), figures.busy_cores.is_some());
        }
    }
}
