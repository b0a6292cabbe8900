// SPDX-License-Identifier: Apache-2.0
//! What a replica is, by what the lock says, wherever that is. Pure: no clock, no I/O.

use std::sync::Arc;

use weir_fleet::role::{Leader, Role};

use super::lock::{Holder, Key};

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    /// The key was read.
    Read(Key),
    /// There is a session of this replica's.
    Opened(String),
    /// It goes on.
    Renewed,
    /// It is over.
    Expired,
    /// Whether the key is this session's now.
    Answered(bool),
    /// The session of this replica's former life is over.
    Buried,
    /// By this replica's own clock others may hold by now what it took.
    Lapsed,
    /// The lock's server did not do something.
    Failed {
        /// It was to tell the key, and not to change anything.
        reading: bool,
        /// Because this replica may not.
        denied: bool,
        /// What it said.
        what: String,
    },
    /// The lock's server has answered nothing, for longer than one waits.
    Silence,
}

impl Event {
    /// Whether the key may have changed since it was asked for: what it says now decides, and not what it said when
    /// the question began.
    pub(super) fn outdates_reading(&self) -> bool {
        matches!(
            self,
            Self::Answered(_) | Self::Expired | Self::Lapsed | Self::Buried
        )
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wish {
    /// Open a session.
    Open,
    /// Take the key.
    Acquire,
    /// End this session: it was that of this replica's former life, which cannot.
    Bury(Arc<str>),
    /// Keep the session alive.
    Renew,
}

/// A replica's view of the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Machine {
    address: String,
    role: Role,
    session: Option<String>,
    /// As last read; none where that is no longer so.
    key: Option<Key>,
    /// The lock's server has said something.
    heard: bool,
    /// What was asked of it last was answered.
    answered: bool,
    /// It leads because the lock said so, and that has not run out since.
    holds: bool,
    /// With which index it led by the lock last.
    led: u64,
    /// It led until others might, and has heard of nobody who leads since.
    lapsed: bool,
    /// It may not change the lock, as far as is known.
    barred: bool,
    /// Nobody of a former life is looked for any more.
    grown: bool,
    /// What is wrong with the key.
    unread: Option<String>,
    /// What could not be done.
    undone: Option<String>,
}

impl Machine {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            role: Role::Waiting,
            session: None,
            key: None,
            heard: false,
            answered: false,
            holds: false,
            led: 0,
            lapsed: false,
            barred: false,
            grown: false,
            unread: None,
            undone: None,
        }
    }

    /// This replica's session, as far as it knows.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Whether it leads by the lock, and not alone.
    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    /// Whether the lock's server says something by this, if only no. To one that has lapsed a no is nothing: its whole group
    /// may have lost the right, and would have no leader for ever.
    pub(super) fn is_answer(&self, event: &Event) -> bool {
        match event {
            Event::Silence | Event::Lapsed | Event::Failed { denied: false, .. } => false,
            Event::Failed { denied: true, .. } => !self.lapsed,
            Event::Read(Key::Free) => !(self.lapsed && self.barred),
            _ => true,
        }
    }

    /// Whether it waits for a server that does not answer: when that lasts, [`Event::Silence`] is due.
    pub(super) fn waits_in_vain(&self) -> bool {
        self.role == Role::Waiting && !self.answered
    }

    /// What is wrong with the lock.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.unread.as_deref().or(self.undone.as_deref())
    }

    /// Whether this session is the leader's that it follows.
    pub(super) fn follows(&self, session: &str) -> bool {
        matches!(&self.role, Role::Following(leader) if *leader.session == *session)
    }

    /// What is to be done next.
    pub(super) fn wish(&self) -> Option<Wish> {
        if !self.heard {
            return None;
        }
        match (&self.key, &self.session) {
            (_, None) => Some(Wish::Open),
            (Some(Key::Free), Some(_)) => Some(Wish::Acquire),
            (Some(Key::Held(holder)), Some(session))
                if !self.grown && holder.session != *session && self.was_us(holder) =>
            {
                Some(Wish::Bury(holder.session.as_str().into()))
            }
            _ => None,
        }
    }

    fn was_us(&self, holder: &Holder) -> bool {
        holder.address == self.address
    }

    /// Takes in what has happened; what this replica is now.
    pub(super) fn on(&mut self, event: Event) -> Role {
        if let Event::Opened(_) | Event::Renewed | Event::Answered(_) | Event::Buried = event {
            (self.undone, self.barred) = (None, false);
        }
        if !matches!(event, Event::Silence | Event::Lapsed) {
            self.answered = self.is_answer(&event);
        }
        match event {
            Event::Read(key) => {
                self.heard = true;
                self.read(&key);
                self.key = Some(key);
            }
            Event::Opened(session) => self.session = Some(session),
            Event::Renewed => {}
            Event::Expired => (self.session, self.key) = (None, None),
            Event::Lapsed => {
                // What it has pushed stays, and ages. Who leads is for the lock to say.
                (self.role, self.holds, self.key) = (Role::Waiting, false, None);
                self.lapsed = true;
            }
            Event::Answered(taken) => {
                self.grown |= taken;
                self.key = None;
            }
            Event::Buried => (self.grown, self.key) = (true, None),
            Event::Failed {
                reading,
                denied,
                what,
            } => {
                self.heard |= denied;
                match reading {
                    true => self.unread = Some(what),
                    false => (self.undone, self.barred) = (Some(what), denied),
                }
            }
            Event::Silence if self.waits_in_vain() => {
                // Whoever has taken the lock since has a higher index.
                self.role = Role::Leading { index: self.led };
            }
            Event::Silence => {}
        }
        self.role.clone()
    }

    fn read(&mut self, key: &Key) {
        self.unread = None;
        self.lapsed &= !matches!(key, Key::Held(_));
        match key {
            Key::Free => {}
            Key::Strange(why) => self.unread = Some(why.clone()),
            Key::Held(holder) if self.session.as_ref() == Some(&holder.session) => {
                (self.grown, self.holds, self.led) = (true, true, holder.index);
                self.role = Role::Leading {
                    index: holder.index,
                };
            }
            Key::Held(holder) if self.was_us(holder) => {
                if self.grown {
                    let (name, address) = (&holder.name, &holder.address);
                    let why = format!(
                        "{name} holds the lock with this replica's own address {address}: replicas.address must differ"
                    );
                    self.unread = Some(why);
                }
                // Whoever it is leads, and has told so later.
                if matches!(self.role, Role::Leading { index } if index < holder.index) {
                    (self.role, self.holds) = (Role::Waiting, false);
                }
            }
            Key::Held(holder) => {
                (self.grown, self.holds) = (true, false);
                let Holder {
                    name,
                    address,
                    index,
                    session,
                } = holder.clone();
                self.role = Role::Following(Arc::new(Leader {
                    name,
                    address,
                    index,
                    session: session.into(),
                }));
            }
        }
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests;
