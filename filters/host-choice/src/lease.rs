// SPDX-License-Identifier: Apache-2.0
//! Which of a proxy's VMs keeps the streams to weir-control: the holder of a lease in shared data.
//!
//! ```text
//!   vacant, expired or of an older configuration ──> take it (compare-and-swap)
//!   mine ──> renew it                     another's ──> wait
//! ```
//!
//! Two holders for a moment do no harm: weir-control ends the older stream, and neither replaces a table by an older
//! one (control.rs). `interleavings.rs` tries every order of their calls.

use std::time::Duration;

/// The lease as it stands in shared data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who holds it.
    pub holder: Holder,
    /// Until when it holds, on the proxy's monotonic clock.
    pub deadline: Duration,
}

/// A root context of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Drawn by each life of a VM; never 0.
    pub vm: u64,
    /// The root context within it.
    pub root: u32,
    /// Grows with each change of configuration: the newest configuration's root may take the lease from
    /// an older one, whose listener may live on for as long as it drains.
    pub generation: u64,
}

/// What to do about the lease now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Write this value if nobody else has written; whoever succeeds holds the lease.
    Write(Lease),
    /// Somebody else holds it.
    Wait,
    /// Held; no need to write yet.
    Hold,
}

impl Step {
    /// Whether the lease is held after this step. `write` writes it unless somebody else has, and says whether it did.
    pub fn holds(self, write: impl FnOnce(Lease) -> bool) -> bool {
        match self {
            Self::Hold => true,
            Self::Write(lease) => write(lease),
            Self::Wait => false,
        }
    }
}

/// The longest term that a configuration may ask for.
const LONGEST_TERM: Duration = Duration::from_secs(60);

/// Decides what `me` does about a lease that stands at `current`.
pub fn step(current: Option<Lease>, me: Holder, now: Duration, term: Duration) -> Step {
    let taken = Step::Write(Lease {
        holder: me,
        deadline: now + term,
    });
    match current {
        Some(lease) if lease.holder == me => {
            // Renewed at half the term: one missed tick does not lose it.
            if lease.deadline.saturating_sub(now) > term / 2 {
                Step::Hold
            } else {
                taken
            }
        }
        Some(lease) if lease.deadline > now && lease.holder.generation >= me.generation => {
            // A deadline further off than any configuration's term is from a clock that jumped.
            if lease.deadline - now > LONGEST_TERM * 2 {
                taken
            } else {
                Step::Wait
            }
        }
        _ => taken,
    }
}

/// Which configurations there are, the newest last, with the generation of each: 16 bytes apiece.
///
/// Several may be in use at once (two listeners, or one that drains), and every VM configures all of them in
/// its own time: a configuration that is known keeps its generation.
#[derive(Debug, Default)]
pub struct Generations {
    by_configuration: Vec<(u64, u64)>,
}

impl Generations {
    /// Configurations remembered: more than are ever in use at once.
    const MOST: usize = 64;

    /// Reads them; other bytes are none.
    pub fn decode(bytes: &[u8]) -> Self {
        let pair = |bytes: &[u8]| {
            let (hash, generation) = bytes.split_first_chunk::<8>()?;
            let generation = u64::from_le_bytes(*generation.first_chunk::<8>()?);
            Some((u64::from_le_bytes(*hash), generation))
        };
        let by_configuration = bytes.chunks_exact(16).filter_map(pair).collect();
        Self { by_configuration }
    }

    /// Their bytes.
    pub fn encode(&self) -> Vec<u8> {
        let numbers = self.by_configuration.iter();
        let numbers = numbers.flat_map(|(hash, generation)| [hash, generation]);
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The generation of the configuration with this hash, and whether it was given just now. `again`: the
    /// VM had this configuration before, so that somebody went back to it, and it is the newest once more.
    pub fn of(&mut self, configuration: u64, again: bool) -> (u64, bool) {
        let known = self.by_configuration.iter();
        let newest = known.clone().map(|(_, given)| *given).max().unwrap_or(0);
        let known = known
            .filter(|(hash, _)| *hash == configuration)
            .map(|(_, given)| *given)
            .next_back();
        if let Some(given) = known.filter(|given| !again || *given == newest) {
            return (given, false);
        }
        let given = newest.saturating_add(1);
        self.by_configuration
            .retain(|(hash, _)| *hash != configuration);
        if self.by_configuration.len() >= Self::MOST {
            self.by_configuration.remove(0);
        }
        self.by_configuration.push((configuration, given));
        (given, true)
    }
}

impl Lease {
    /// Its bytes in shared data.
    pub fn encode(&self) -> [u8; 28] {
        let mut bytes = [0; 28];
        let fields = self.holder.vm.to_le_bytes().into_iter();
        let fields = fields
            .chain(self.holder.generation.to_le_bytes())
            .chain((self.deadline.as_nanos() as u64).to_le_bytes())
            .chain(self.holder.root.to_le_bytes());
        for (byte, value) in bytes.iter_mut().zip(fields) {
            *byte = value;
        }
        bytes
    }

    /// None for a vacant lease: no bytes, or bytes that are none of a lease.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != 28 {
            return None;
        }
        let u64_at = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let root = u32::from_le_bytes(bytes.get(24..28)?.try_into().ok()?);
        let holder = Holder {
            vm: u64_at(0)?,
            root,
            generation: u64_at(8)?,
        };
        Some(Self {
            holder,
            deadline: Duration::from_nanos(u64_at(16)?),
        })
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TERM: Duration = Duration::from_secs(1);

    fn holder(vm: u64, generation: u64) -> Holder {
        Holder {
            vm,
            root: 1,
            generation,
        }
    }

    fn lease(holder: Holder, deadline_ms: u64) -> Lease {
        Lease {
            holder,
            deadline: Duration::from_millis(deadline_ms),
        }
    }

    #[test]
    fn a_vacant_or_expired_lease_is_taken_and_a_held_one_is_not() {
        let (me, other) = (holder(1, 1), holder(2, 1));
        let now = Duration::from_millis(5_000);
        let taken = Step::Write(lease(me, 6_000));
        assert_eq!(step(None, me, now, TERM), taken);
        assert_eq!(step(Some(lease(other, 5_000)), me, now, TERM), taken);
        assert_eq!(step(Some(lease(other, 5_001)), me, now, TERM), Step::Wait);
        assert_eq!(step(Some(lease(me, 5_900)), me, now, TERM), Step::Hold);
        assert_eq!(step(Some(lease(me, 5_400)), me, now, TERM), taken);
    }

    #[test]
    fn a_newer_configuration_takes_the_lease_and_an_older_one_waits() {
        let now = Duration::from_millis(5_000);
        let (old, new) = (holder(1, 1), holder(2, 2));
        assert_eq!(
            step(Some(lease(old, 5_900)), new, now, TERM),
            Step::Write(lease(new, 6_000))
        );
        assert_eq!(step(Some(lease(new, 5_900)), old, now, TERM), Step::Wait);
    }

    #[test]
    fn a_deadline_beyond_reason_does_not_keep_the_lease_for_ever() {
        let (me, other) = (holder(1, 1), holder(2, 1));
        let now = Duration::from_millis(5_000);
        let taken = Step::Write(lease(me, 6_000));
        assert_eq!(step(Some(lease(other, 500_000)), me, now, TERM), taken);
    }

    #[test]
    fn each_vm_finds_the_generations_that_the_first_gave() {
        let (a, b) = (7, 8);
        let mut generations = Generations::decode(&[0]);
        assert_eq!(generations.of(a, false), (1, true));
        assert_eq!(generations.of(b, false), (2, true));
        let mut generations = Generations::decode(&generations.encode());
        assert_eq!(generations.of(a, false), (1, false));
        assert_eq!(generations.of(b, false), (2, false));
    }

    #[test]
    fn a_configuration_that_comes_back_is_the_newest_again() {
        let (a, b) = (7, 8);
        let mut generations = Generations::default();
        generations.of(a, false);
        generations.of(b, false);
        assert_eq!(generations.of(a, true), (3, true), "the first VM goes back");
        assert_eq!(generations.of(a, true), (3, false), "and so does the next");
    }

    #[test]
    fn configurations_long_gone_are_forgotten() {
        let mut generations = Generations::default();
        for configuration in 0..1_000 {
            generations.of(configuration, false);
        }
        assert_eq!(generations.encode().len(), 16 * Generations::MOST);
        assert_eq!(generations.of(999, false), (1_000, false));
    }

    proptest! {
        #[test]
        fn a_lease_is_read_as_it_was_written(vm: u64, root: u32, generation: u64, deadline: u64) {
            let holder = Holder { vm, root, generation };
            let lease = Lease { holder, deadline: Duration::from_nanos(deadline) };
            prop_assert_eq!(Lease::decode(&lease.encode()), Some(lease));
        }

        #[test]
        fn any_other_bytes_are_a_vacant_lease(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Lease::decode(&bytes).is_some(), bytes.len() == 28);
        }
    }
}
