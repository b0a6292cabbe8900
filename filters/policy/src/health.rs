// SPDX-License-Identifier: Apache-2.0
//! Whether a host fails what it is sent while the others do not. One that answers 500 in a millisecond looks
//! idle, so that every policy that looks for idle hosts would send it nearly everything.
//!
//! ```text
//!          5 failures, half of its endings, far more than the others'        1 s, doubled each time, to 30 s
//!  well ───────────────────────────────────────────────────────────> failing ──────────────────────────┐
//!   ^ ^                                                                 ^                               v
//!   │ └── 3 good answers in a row ── on trial, a request at a time ── fails                         on trial
//!   └──── or: the others fail as much                                   └───────────────────────────────┘
//! ```
//! The most important requests take no part in finding that out: they leave a host after two failures without a
//! good answer between, and trials to the others.
//!
//! A host is compared with what ended at the others since its first failure. So a dependency that breaks for
//! all takes nobody out; of a key that fails, few failures come here at all ([`crate::failed_keys`]). What is compared are counts: no clock is
//! read and nothing is decayed while all is well.

use std::time::Duration;

/// How much speaks against a host.
struct Evidence {
    failures: u32,
    /// By chance it would have failed so much less than once in e^this times, were it as the others are.
    doubt: f64,
}

impl Evidence {
    fn is_enough(&self, wanted: &Self) -> bool {
        self.failures >= wanted.failures && self.doubt >= wanted.doubt
    }
}

/// For all to leave it: as many as Envoy's outlier detection waits for (`consecutive_5xx`), and once in a million
/// times.
const FAILS: Evidence = Evidence {
    failures: 5,
    doubt: 13.8,
};
/// For the most important requests to leave it for a moment: what is not one request's own fault, once in 250 times.
/// So many of them have different keys.
const DOUBTED: Evidence = Evidence {
    failures: 2,
    doubt: 5.5,
};
/// Fewer are looked at together, so that what was long ago does not hide what is.
const WINDOW: u32 = 32;
/// So long together, for the same reason. Longer than five requests of a host that gets one a second.
const WINDOW_TIME: Duration = Duration::from_secs(10);
/// Until the first trial. Envoy's base_ejection_time is 30 s; here a trial costs one request and no more, so
/// it may come soon.
pub(crate) const BASE: Duration = Duration::from_secs(1);
/// The longest until a trial: Envoy's base_ejection_time.
pub(crate) const MOST: Duration = Duration::from_secs(30);
/// Good answers in a row, one request at a time, that end it.
const TRIALS: u32 = 3;
/// What is held of the others before anything ended there: as if so many more requests had.
const PRIOR_ENDINGS: f64 = 10.0;
/// Of them so many failed, or as many as of late at all hosts if that is more: where a quarter of everything fails,
/// five in a row are no wonder. Where all was well five are just enough although nobody else was asked.
const PRIOR_SHARE: f64 = 0.05;
/// The last ones, whose share that is: long beside what one host fails before it is left.
const LATE: f64 = 256.0;

/// How requests ended: how many, and how many of them badly. Counters that wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endings {
    all: u32,
    failed: u32,
}

impl Endings {
    pub(crate) fn count(&mut self, failed: bool) {
        self.all = self.all.wrapping_add(1);
        self.failed = self.failed.wrapping_add(failed.into());
    }

    /// What is here and not there.
    fn without(self, other: Self) -> Self {
        Self {
            all: self.all.wrapping_sub(other.all),
            failed: self.failed.wrapping_sub(other.failed),
        }
    }

    /// How much speaks against who has these, where half of them or more are bad and twice as many as of the
    /// others (Chernoff's bound: so many of n at the others' share are less likely than e^(-n D), D the relative
    /// entropy), of whom `prior` is held before anything is known.
    fn against(self, others: Self, prior: f64) -> Evidence {
        let all = f64::from(self.all);
        let share = f64::from(self.failed) / all;
        let usual = (f64::from(others.failed) + PRIOR_ENDINGS * prior)
            / (f64::from(others.all) + PRIOR_ENDINGS);
        let failures = self.failed;
        if share < 0.5 || share <= 2.0 * usual {
            let doubt = 0.0;
            return Evidence { failures, doubt };
        }
        let good = match self.all.saturating_sub(self.failed) {
            0 => 0.0,
            _ => (1.0 - share) * ((1.0 - share) / (1.0 - usual)).ln(),
        };
        let doubt = all * (share * (share / usual).ln() + good);
        Evidence { failures, doubt }
    }
}

/// How requests ended at all hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AllEndings {
    endings: Endings,
    /// The share of the last ones that failed.
    of_late: f64,
}

impl AllEndings {
    /// How many there were; a counter that wraps.
    pub(crate) fn ended(&self) -> u32 {
        self.endings.all
    }

    pub(crate) fn count(&mut self, failed: bool) {
        self.endings.count(failed);
        self.of_late += (f64::from(u8::from(failed)) - self.of_late) / LATE;
    }
}

/// What is known of one host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Health {
    own: Endings,
    /// Since its first failure, unless good answers have outnumbered the failures since.
    window: Option<Window>,
    state: State,
    /// How often its time without requests was doubled.
    doubled: u32,
    /// When it was well again.
    recovered: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    since: Duration,
    own: Endings,
    others: Endings,
    /// The share of the others' that is taken to have failed before.
    prior: f64,
    /// Failures that were the first of their keys.
    keys: u32,
    /// Until when the most important requests go elsewhere; a good answer ends it.
    doubted_until: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Well,
    Failing {
        until: Duration,
        /// Trials that ended well, since one did not.
        good: u32,
        /// When the one was sent that is on its way.
        trial: Option<Duration>,
    },
}

impl Health {
    /// Until when other hosts come first.
    pub(crate) fn avoided_until(&self) -> Duration {
        match self.state {
            State::Well => Duration::ZERO,
            State::Failing {
                trial: Some(sent), ..
            } => sent.saturating_add(MOST),
            State::Failing { until, .. } => until,
        }
    }

    /// Until when other hosts come first for the most important requests. Longer than for the others, who do the
    /// trials; but where there are no others these do them in the end.
    pub(crate) fn doubted_until(&self) -> Duration {
        match self.state {
            State::Well => self
                .window
                .map_or(Duration::ZERO, |seen| seen.doubted_until),
            State::Failing { .. } => self.avoided_until().saturating_add(BASE),
        }
    }

    /// How many requests have ended; a counter that wraps.
    pub(crate) fn ended(&self) -> u32 {
        self.own.all
    }

    pub(crate) fn is_failing(&self) -> bool {
        matches!(self.state, State::Failing { .. })
    }

    /// Whether the request that was sent then is the host's trial.
    pub(crate) fn is_trial(&self, sent: Duration) -> bool {
        matches!(self.state, State::Failing { trial: Some(of), .. } if of == sent)
    }

    /// A request is sent there; after a time without requests it is a trial.
    pub(crate) fn assigned(&mut self, now: Duration) {
        if let State::Failing { until, trial, .. } = &mut self.state
            && *until <= now
            && trial.is_none_or(|sent| now.saturating_sub(sent) >= MOST)
        {
            *trial = Some(now);
        }
    }

    /// The request that was sent then is over, whatever came of it.
    pub(crate) fn finished(&mut self, sent: Duration) {
        if let State::Failing { trial, .. } = &mut self.state
            && *trial == Some(sent)
        {
            *trial = None;
        }
    }

    /// A request that was sent then has ended well.
    pub(crate) fn did_well(&mut self, sent: Duration) {
        self.own.count(false);
        match &mut self.state {
            State::Well => {
                // Nearly always there is none.
                if let Some(window) = &mut self.window {
                    window.doubted_until = Duration::ZERO;
                    let own = self.own.without(window.own);
                    if 2 * own.failed < own.all {
                        self.window = None;
                    }
                }
            }
            State::Failing { good, trial, .. } if *trial == Some(sent) => {
                (*good, *trial) = (*good + 1, None);
                if *good == TRIALS {
                    self.is_well(sent);
                }
            }
            // Sent before it failed.
            State::Failing { .. } => {}
        }
    }

    /// A request that was sent then has failed; `all` is how all hosts' have ended, this one's included, and
    /// `is_first` says that none for the same key did so before. Says whether the host should come after the
    /// others: [`Health::avoid`] sees to it.
    pub(crate) fn record_failure(
        &mut self,
        sent: Duration,
        all: AllEndings,
        is_first: bool,
        now: Duration,
    ) -> bool {
        let others = |own| all.endings.without(own);
        let before = self.own;
        if let (State::Well, Some(window)) = (self.state, self.window)
            && now.saturating_sub(window.since) > WINDOW_TIME
        {
            self.window = None;
        }
        self.own.count(true);
        let window = self.window.get_or_insert(Window {
            since: now,
            own: before,
            // Without this one failure, which `all` has.
            others: others(self.own),
            prior: all.of_late.max(PRIOR_SHARE),
            keys: 0,
            doubted_until: Duration::ZERO,
        });
        window.keys += u32::from(is_first);
        let own = self.own.without(window.own);
        let usual = others(self.own).without(window.others);
        let evidence = own.against(usual, window.prior);
        if evidence.is_enough(&DOUBTED) && window.keys >= DOUBTED.failures {
            window.doubted_until = now.saturating_add(BASE);
        }
        let is_worse = evidence.is_enough(&FAILS);
        match self.state {
            State::Well if is_worse => {
                if now.saturating_sub(self.recovered) > MOST {
                    self.doubled = 0;
                }
                true
            }
            State::Well => {
                if own.all >= WINDOW {
                    self.window = None;
                }
                false
            }
            State::Failing { trial, .. } if trial == Some(sent) => {
                if !is_worse {
                    self.let_off(now);
                }
                is_worse
            }
            State::Failing { .. } => false,
        }
    }

    /// No requests for a while, if there are others that get them.
    pub(crate) fn avoid(&mut self, now: Duration) {
        let time = BASE.saturating_mul(1 << self.doubled).min(MOST);
        self.doubled = (self.doubled + 1).min(8);
        self.state = State::Failing {
            until: now.saturating_add(time),
            good: 0,
            trial: None,
        };
    }

    /// It is no worse than the others, or too many of those are out: it is looked at anew.
    pub(crate) fn let_off(&mut self, now: Duration) {
        self.is_well(now);
        self.doubled = 0;
    }

    fn is_well(&mut self, now: Duration) {
        self.state = State::Well;
        self.window = None;
        self.recovered = now;
    }
}
