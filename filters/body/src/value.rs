// SPDX-License-Identifier: Apache-2.0
//! The value at a JSON pointer (RFC 6901).

use crate::json::{Container, Piece};

/// A longer value is no key.
pub const MAX_BYTES: usize = 1024;
/// Steps of a pointer, at most.
pub const MAX_STEPS: usize = 16;

/// The way to a value in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<Step>);

/// The next member or element.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: Vec<u8>,
    /// Where the name is a number as RFC 6901 writes them.
    element: Option<usize>,
}

impl Pointer {
    /// Reads `/session/id`, with `~1` for a slash in a name and `~0` for a tilde; none: it is something else, the whole
    /// document, or has more than [`MAX_STEPS`].
    pub fn parse(text: &str) -> Option<Self> {
        let steps = text.strip_prefix('/')?.split('/');
        let steps: Vec<Step> = steps.map(Step::parse).collect::<Option<_>>()?;
        (steps.len() <= MAX_STEPS).then_some(Self(steps))
    }
}

impl Step {
    fn parse(text: &str) -> Option<Self> {
        let mut name = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            name.push(match character {
                '~' => match characters.next()? {
                    '0' => '~',
                    '1' => '/',
                    _ => return None,
                },
                other => other,
            });
        }
        let is_number = name == "0" || !name.starts_with('0');
        let is_number = is_number && name.bytes().all(|byte| byte.is_ascii_digit());
        let element = is_number.then(|| name.parse().ok()).flatten();
        Some(Self {
            name: name.into_bytes(),
            element,
        })
    }
}

/// A value that is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pointer: Pointer,
    /// Containers that are open.
    depth: usize,
    /// Those of them that the way leads through, the outermost first.
    way: Vec<Place>,
    /// Of the value at the pointer, or of the name of a member beside the way.
    read: Vec<u8>,
    found: Found,
}

/// Where the reading is in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In an object; whether the way leads on by the member that was named last.
    Member(bool),
    /// In an array, at this element.
    Element(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Whole,
    /// A container, null, or a value that is too long: no key.
    Other,
}

impl Value {
    pub(crate) fn at(pointer: Pointer) -> Self {
        Self {
            pointer,
            depth: 0,
            way: Vec::new(),
            read: Vec::new(),
            found: Found::Nothing,
        }
    }

    /// Whether what is at the pointer is known.
    pub(crate) fn is_found(&self) -> bool {
        self.found != Found::Nothing
    }

    /// The value, unless it is empty.
    pub(crate) fn found(&self) -> Option<&[u8]> {
        (self.found == Found::Whole && !self.read.is_empty()).then_some(&self.read)
    }

    pub(crate) fn take(&mut self, piece: Piece<'_>) {
        if self.is_found() {
            return;
        }
        match piece {
            Piece::Begin(container) => self.begin(container),
            Piece::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.way.truncate(self.depth);
                self.passed();
            }
            Piece::Name(part) => {
                if let Some(step) = self.step() {
                    let room = (step.name.len() + 1).saturating_sub(self.read.len());
                    self.read.extend(part.iter().take(room));
                }
            }
            Piece::NameEnd => {
                let leads_on = self.step().is_some_and(|step| step.name == self.read);
                if let (true, Some(place)) = (self.is_on_way(), self.way.last_mut()) {
                    *place = Place::Member(leads_on);
                }
                self.read.clear();
            }
            Piece::Text(part) | Piece::Scalar(part) if self.is_target() => {
                self.read.extend(part);
                if self.read.len() > MAX_BYTES {
                    self.found = Found::Other;
                }
            }
            Piece::Text(_) | Piece::Scalar(_) => {}
            // Nothing in particular, which many requests would have in common.
            Piece::ScalarEnd if self.is_target() && self.read == b"null" => {
                self.found = Found::Other;
            }
            Piece::TextEnd | Piece::ScalarEnd if self.is_target() => self.found = Found::Whole,
            Piece::TextEnd | Piece::ScalarEnd => self.passed(),
        }
    }

    fn begin(&mut self, container: Container) {
        if self.is_target() {
            self.found = Found::Other;
        }
        let leads_on = self.leads_on();
        self.depth += 1;
        if leads_on {
            self.way.push(match container {
                Container::Object => Place::Member(false),
                Container::Array => Place::Element(0),
            });
        }
    }

    /// A value is over that was not looked for.
    fn passed(&mut self) {
        if self.is_on_way() {
            match self.way.last_mut() {
                Some(Place::Member(leads_on)) => *leads_on = false,
                Some(Place::Element(element)) => *element += 1,
                None => {}
            }
        }
    }

    /// Whether the way leads through the innermost container.
    fn is_on_way(&self) -> bool {
        self.depth == self.way.len()
    }

    /// The step from the innermost container on, if the way leads through it.
    fn step(&self) -> Option<&Step> {
        let last = self.way.len().checked_sub(1)?;
        self.pointer.0.get(last).filter(|_| self.is_on_way())
    }

    /// Whether the way leads through, or to, the value that comes.
    fn leads_on(&self) -> bool {
        match self.way.last() {
            // The document itself.
            None => self.depth == 0,
            Some(Place::Member(leads_on)) => *leads_on && self.is_on_way(),
            Some(Place::Element(element)) => {
                let step = self.step();
                step.is_some_and(|step| step.element == Some(*element))
            }
        }
    }

    /// Whether the value that comes is the one that is looked for.
    fn is_target(&self) -> bool {
        self.way.len() == self.pointer.0.len() && self.leads_on()
    }
}
