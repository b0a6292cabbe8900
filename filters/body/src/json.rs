// SPDX-License-Identifier: Apache-2.0
//! JSON (RFC 8259) as a machine that takes bytes as they come and tells what they are.
//!
//! It is as strict as the grammar, but for strings: bytes that are no UTF-8 are passed on as they are, and half of a
//! surrogate pair, as some clients write where they cut a text, is read as U+FFFD.

/// Containers within each other, at most: as in serde_json, so that a service that uses it reads what is read here.
pub(crate) const MAX_DEPTH: u8 = 127;

/// A part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Begin(Container),
    End(Container),
    /// A part of a member's name, unescaped; perhaps none of it.
    Name(&'a [u8]),
    NameEnd,
    /// The same of a string.
    Text(&'a [u8]),
    TextEnd,
    /// A part of a number, `true`, `false` or `null`, as written.
    Scalar(&'a [u8]),
    ScalarEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    Object,
    Array,
}

/// U+FFFD, in the place of half a pair.
const HALF: &[u8] = "\u{fffd}".as_bytes();

/// It is no JSON, or too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// How far the document has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Json {
    state: State,
    depth: u8,
    /// A bit for each container that is open, the innermost last: 1 for an object.
    objects: u128,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// A value is due.
    #[default]
    Value,
    /// The same, or the end of an array without one.
    ValueOrEnd,
    /// The name of an object's first member is due, or the object's end.
    NameOrEnd,
    /// The name of another member is due.
    Name,
    Colon,
    /// A value has ended: what comes is a comma or the end.
    Next,
    String(Kind, Escape),
    Number(Number),
    /// The rest of a word.
    Word(&'static [u8]),
}

/// What a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Text,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    None,
    /// Behind a backslash.
    Begun,
    /// So many digits of `\uXXXX` are due; these are the ones before them, and the first half of a pair.
    Digits {
        due: u8,
        value: u16,
        first: Option<u16>,
    },
    /// The second half of a pair is due.
    Pair(u16),
    /// The same, behind its backslash.
    PairBegun(u16),
}

/// What a number's last character was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl Json {
    /// Reads on, and hands over what comes.
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), Malformed> {
        while let Some((byte, rest)) = bytes.split_first() {
            bytes = match self.state {
                State::String(kind, Escape::None) => self.string(kind, bytes, take)?,
                State::String(kind, escape) => match self.escape(kind, escape, *byte, take)? {
                    true => rest,
                    false => bytes,
                },
                State::Number(number) => match number.then(*byte) {
                    Some(number) => {
                        take(Piece::Scalar(std::slice::from_ref(byte)));
                        self.state = State::Number(number);
                        rest
                    }
                    // It has ended before this byte, which is looked at again.
                    None if number.may_end() => {
                        self.scalar_ends(take);
                        bytes
                    }
                    None => return Err(Malformed),
                },
                State::Word(due) => {
                    let (wanted, due) = due.split_first().ok_or(Malformed)?;
                    if wanted != byte {
                        return Err(Malformed);
                    }
                    take(Piece::Scalar(std::slice::from_ref(byte)));
                    self.state = State::Word(due);
                    if due.is_empty() {
                        self.scalar_ends(take);
                    }
                    rest
                }
                _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => rest,
                State::Value | State::ValueOrEnd | State::NameOrEnd | State::Name => {
                    self.begin(*byte, take)?;
                    rest
                }
                State::Colon if *byte == b':' => {
                    self.state = State::Value;
                    rest
                }
                State::Next => {
                    self.next(*byte, take)?;
                    rest
                }
                State::Colon => return Err(Malformed),
            };
        }
        Ok(())
    }

    /// Nothing comes any more.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        let is_over = match self.state {
            State::Next => true,
            State::Number(number) => number.may_end(),
            _ => false,
        };
        match is_over && self.depth == 0 {
            true => Ok(()),
            false => Err(Malformed),
        }
    }

    /// The first byte of a value or name, or of what may stand in its place.
    fn begin(&mut self, byte: u8, take: &mut dyn FnMut(Piece<'_>)) -> Result<(), Malformed> {
        let is_value = matches!(self.state, State::Value | State::ValueOrEnd);
        self.state = match (byte, self.state) {
            (b'"', State::Name | State::NameOrEnd) => State::String(Kind::Name, Escape::None),
            (b'}', State::NameOrEnd) => return self.close(Container::Object, take),
            (b']', State::ValueOrEnd) => return self.close(Container::Array, take),
            _ if !is_value => return Err(Malformed),
            (b'"', _) => State::String(Kind::Text, Escape::None),
            (b'{', _) => self.open(Container::Object, take)?,
            (b'[', _) => self.open(Container::Array, take)?,
            (b't', _) => State::Word(b"rue"),
            (b'f', _) => State::Word(b"alse"),
            (b'n', _) => State::Word(b"ull"),
            (b'-', _) => State::Number(Number::Minus),
            (b'0', _) => State::Number(Number::Zero),
            (b'1'..=b'9', _) => State::Number(Number::Whole),
            _ => return Err(Malformed),
        };
        if matches!(self.state, State::Word(_) | State::Number(_)) {
            take(Piece::Scalar(&[byte]));
        }
        Ok(())
    }

    /// A byte behind a value.
    fn next(&mut self, byte: u8, take: &mut dyn FnMut(Piece<'_>)) -> Result<(), Malformed> {
        self.state = match (byte, self.inside().ok_or(Malformed)?) {
            (b',', Container::Object) => State::Name,
            (b',', Container::Array) => State::Value,
            (b'}', Container::Object) => return self.close(Container::Object, take),
            (b']', Container::Array) => return self.close(Container::Array, take),
            _ => return Err(Malformed),
        };
        Ok(())
    }

    /// The innermost container that is open.
    fn inside(&self) -> Option<Container> {
        (self.depth > 0).then_some(match self.objects & 1 {
            1 => Container::Object,
            _ => Container::Array,
        })
    }

    fn open(
        &mut self,
        container: Container,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Result<State, Malformed> {
        if self.depth == MAX_DEPTH {
            return Err(Malformed);
        }
        self.depth += 1;
        take(Piece::Begin(container));
        let (bit, state) = match container {
            Container::Object => (1, State::NameOrEnd),
            Container::Array => (0, State::ValueOrEnd),
        };
        self.objects = self.objects << 1 | bit;
        Ok(state)
    }

    fn close(
        &mut self,
        container: Container,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), Malformed> {
        self.depth = self.depth.checked_sub(1).ok_or(Malformed)?;
        self.objects >>= 1;
        self.state = State::Next;
        take(Piece::End(container));
        Ok(())
    }

    fn scalar_ends(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        self.state = State::Next;
        take(Piece::ScalarEnd);
    }

    /// Reads a string up to what is not plain in it; says what is behind that.
    fn string<'a>(
        &mut self,
        kind: Kind,
        bytes: &'a [u8],
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Result<&'a [u8], Malformed> {
        let (plain, rest) = bytes.split_at_checked(plain(bytes)).ok_or(Malformed)?;
        if !plain.is_empty() {
            take(kind.piece(plain));
        }
        let Some((byte, rest)) = rest.split_first() else {
            return Ok(rest);
        };
        match byte {
            b'"' => self.string_ends(kind, take),
            b'\\' => self.state = State::String(kind, Escape::Begun),
            _ => return Err(Malformed),
        }
        Ok(rest)
    }

    fn string_ends(&mut self, kind: Kind, take: &mut dyn FnMut(Piece<'_>)) {
        let (state, piece) = match kind {
            Kind::Name => (State::Colon, Piece::NameEnd),
            Kind::Text => (State::Next, Piece::TextEnd),
        };
        self.state = state;
        take(piece);
    }

    /// A byte of an escape; says whether it belongs to it, else it is looked at again.
    fn escape(
        &mut self,
        kind: Kind,
        escape: Escape,
        byte: u8,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Result<bool, Malformed> {
        let digits = |first| Escape::Digits {
            due: 4,
            value: 0,
            first,
        };
        let escape = match (escape, byte) {
            (Escape::Begun, b'u') => digits(None),
            (Escape::Begun, _) => {
                let meant = match byte {
                    b'"' | b'\\' | b'/' => byte,
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return Err(Malformed),
                };
                take(kind.piece(&[meant]));
                Escape::None
            }
            (Escape::Pair(first), b'\\') => Escape::PairBegun(first),
            (Escape::PairBegun(first), b'u') => digits(Some(first)),
            // The second half is missing.
            (Escape::Pair(_), _) => {
                take(kind.piece(HALF));
                self.state = State::String(kind, Escape::None);
                return Ok(false);
            }
            (Escape::PairBegun(_), _) => {
                take(kind.piece(HALF));
                self.state = State::String(kind, Escape::Begun);
                return Ok(false);
            }
            (Escape::Digits { due, value, first }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Malformed)?;
                let value = value << 4 | digit as u16;
                match due {
                    1 => unescape(kind, value, first, take),
                    _ => Escape::Digits {
                        due: due - 1,
                        value,
                        first,
                    },
                }
            }
            _ => return Err(Malformed),
        };
        self.state = State::String(kind, escape);
        Ok(true)
    }
}

/// How many bytes of a string from here on stand for themselves.
fn plain(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| *byte >= b' ' && *byte != b'"' && *byte != b'\\';
    // Eight at a time, where none is anything else.
    let (words, _) = bytes.as_chunks::<8>();
    let words = words.iter().take_while(|word| is_all_plain(**word));
    let begin = words.count() * 8;
    let rest = bytes.iter().skip(begin);
    begin + rest.take_while(|byte| is_plain(byte)).count()
}

/// Whether no byte is below a space, a quotation mark or a backslash; it may say no of others (*Bit Twiddling Hacks*,
/// Anderson, "Determine if a word has a byte less than n").
fn is_all_plain(word: [u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    let word = u64::from_le_bytes(word);
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | is(b'"') | is(b'\\')) & (ONES << 7) == 0
}

/// A number of UTF-16, perhaps behind the first half of a pair.
fn unescape(kind: Kind, value: u16, first: Option<u16>, take: &mut dyn FnMut(Piece<'_>)) -> Escape {
    let pair = first.map(|first| char::decode_utf16([first, value]).next());
    let character = match (pair, value) {
        (Some(Some(Ok(character))), _) => Some(character),
        (first, _) => {
            if first.is_some() {
                take(kind.piece(HALF));
            }
            if matches!(value, 0xd800..=0xdbff) {
                return Escape::Pair(value);
            }
            char::from_u32(value.into())
        }
    };
    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
    take(kind.piece(character.encode_utf8(&mut [0; 4]).as_bytes()));
    Escape::None
}

impl Kind {
    fn piece(self, part: &[u8]) -> Piece<'_> {
        match self {
            Self::Name => Piece::Name(part),
            Self::Text => Piece::Text(part),
        }
    }
}

impl Number {
    /// What the number is with this character behind it; none: it does not belong to it.
    fn then(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus | Self::Whole, b'0'..=b'9') => Some(Self::Whole),
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::Sign),
            (Self::Exponent | Self::Sign | Self::Power, b'0'..=b'9') => Some(Self::Power),
            _ => None,
        }
    }

    fn may_end(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Whole | Self::Fraction | Self::Power
        )
    }
}
