// SPDX-License-Identifier: Apache-2.0
//! Every state that a model can reach, nearest first. For tests.
//!
//! ```text
//!  start ── step ──> state ── step ──> state ...     each: nothing is broken
//!                      └── calm ──> calm ──> settled      no faults from here on: within so many steps
//! ```
//! A [`Model`] calls the product's own functions in its steps. The first state in which something is broken comes
//! back with the shortest way there. Eventuality is asked of every state: from it, without further faults, the model
//! settles. That holds where the graph of states has cycles too.

use std::collections::{HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::rc::Rc;

use rustc_hash::FxHashMap;

/// A state that has to be reached: its name, and how it is told.
pub type Sight<S> = (&'static str, fn(&S) -> bool);

/// What can happen, and what must hold. The states that it reaches have to be finitely many.
pub trait Model {
    /// All that the future depends on.
    type State: Clone + Debug + Eq + Hash;
    /// One step.
    type Action: Debug;

    /// Where it begins.
    fn start(&self) -> Self::State;

    /// All that can happen next, faults included.
    fn steps(&self, state: &Self::State) -> Vec<(Self::Action, Self::State)>;

    /// What must always hold and does not.
    fn broken(&self, state: &Self::State) -> Option<String>;

    /// What happens next where nothing fails and everybody has a turn.
    fn calm(&self, state: &Self::State) -> Self::State;

    /// Whether all is as it should be when there have been no faults for a while.
    fn is_settled(&self, state: &Self::State) -> bool;

    /// States that have to be reached by name, or the model proves nothing.
    fn sights(&self) -> Vec<Sight<Self::State>>;
}

/// A model with more states takes gigabytes: it has to be made smaller.
const MOST_STATES: usize = 1_000_000;

/// How large a model is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Steps to the state that is furthest away.
    pub depth: usize,
    /// Calm steps until the slowest of them has settled.
    pub calm: usize,
}

/// How something that must hold is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What.
    pub what: String,
    /// The shortest way there.
    pub trace: Vec<String>,
    /// The state there.
    pub state: String,
}

/// How a state was come to.
struct Way<A> {
    /// The state before it, and the step from there; none of the first.
    before: Option<(usize, A)>,
    /// Steps from the start.
    depth: usize,
}

/// The states of a model so far, and how each was come to.
struct Found<'a, M: Model> {
    model: &'a M,
    states: Vec<Rc<M::State>>,
    numbers: FxHashMap<Rc<M::State>, usize>,
    /// By state.
    ways: Vec<Way<M::Action>>,
    /// Of states that settle: after how many calm steps.
    settling: FxHashMap<Rc<M::State>, usize>,
}

impl<M: Model> Found<'_, M> {
    /// Says whether the state is new.
    fn add(&mut self, state: M::State, way: Way<M::Action>) -> bool {
        if self.numbers.contains_key(&state) {
            return false;
        }
        let state = Rc::new(state);
        self.numbers.insert(state.clone(), self.states.len());
        self.states.push(state);
        self.ways.push(way);
        true
    }

    fn broken(&self, mut number: usize, what: String) -> Box<Broken> {
        let state = format!("{:#?}", self.states[number]);
        let mut trace = Vec::new();
        while let Some((before, step)) = &self.ways[number].before {
            trace.push(format!("{step:?}"));
            number = *before;
        }
        trace.reverse();
        Box::new(Broken { what, trace, state })
    }

    /// Calm steps from a state until the model has settled; none where it takes more than `patience`.
    fn calm(&mut self, number: usize, patience: usize) -> Option<usize> {
        let mut state = self.states[number].clone();
        let mut way = Vec::new();
        let left = loop {
            if let Some(steps) = self.settling.get(&state) {
                break *steps;
            }
            if self.model.is_settled(&state) {
                break 0;
            }
            if way.len() == patience {
                return None;
            }
            let next = Rc::new(self.model.calm(&state));
            way.push(std::mem::replace(&mut state, next));
        };
        let steps = way.len() + left;
        let known = way.into_iter().rev().zip(left + 1..);
        self.settling.extend(known);
        (steps <= patience).then_some(steps)
    }
}

/// Visits every state of the model, nearest first. Each has to settle within `patience` calm steps.
pub fn explore<M: Model>(model: &M, patience: usize) -> Result<Explored, Box<Broken>> {
    let mut found = Found {
        model,
        states: Vec::new(),
        numbers: FxHashMap::default(),
        ways: Vec::new(),
        settling: FxHashMap::default(),
    };
    let start = Way {
        before: None,
        depth: 0,
    };
    found.add(model.start(), start);
    let mut explored = Explored::default();
    let mut unseen: Vec<_> = model.sights();
    let mut waiting = VecDeque::from([0]);
    while let Some(number) = waiting.pop_front() {
        let state = found.states[number].clone();
        if let Some(what) = model.broken(&state) {
            return Err(found.broken(number, what));
        }
        let Some(calm) = found.calm(number, patience) else {
            let what = format!("it has not settled after {patience} calm steps");
            return Err(found.broken(number, what));
        };
        unseen.retain(|(_, is_seen)| !is_seen(&state));
        let depth = found.ways[number].depth;
        explored.calm = explored.calm.max(calm);
        explored.depth = explored.depth.max(depth);
        assert!(found.states.len() < MOST_STATES, "too large: {explored:?}");
        for (action, next) in model.steps(&state) {
            explored.steps += 1;
            let way = Way {
                before: Some((number, action)),
                depth: depth + 1,
            };
            if found.add(next, way) {
                waiting.push_back(found.states.len() - 1);
            }
        }
    }
    explored.states = found.states.len();
    let names: HashSet<&str> = unseen.iter().map(|(name, _)| *name).collect();
    assert!(names.is_empty(), "never reached: {names:?}");
    Ok(explored)
}
