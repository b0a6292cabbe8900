// SPDX-License-Identifier: Apache-2.0
//! Finds a function in a file, by the name that the file or its language gives it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::read::{Object, ObjectSegment, ObjectSymbol, ReadCache};
use object::{ReadRef, SegmentFlags, SymbolFlags};

use crate::Error;

mod entry;
mod name;

pub use entry::Pace;

/// Where a function is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// As the file has it.
    pub name: String,
    /// Of the instruction that is watched, from the start of the file: what the kernel counts by.
    pub offset: u64,
    /// What an event costs there.
    pub pace: Pace,
}

const STT_GNU_IFUNC: u8 = 10;
const PF_X: u32 = 1;
/// How many names an error lists.
const LISTED: usize = 5;

/// A function of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    address: u64,
    name: String,
    indirect: bool,
}

struct Binary<'a> {
    path: &'a Path,
    data: &'a ReadCache<File>,
    file: object::File<'a, &'a ReadCache<File>>,
}

/// Looks `symbol` up: a name as the file has it, else as its language writes it, or an offset in the file.
pub(crate) fn find(path: &Path, symbol: &str) -> Result<Site, Error> {
    let data = open(path)?;
    let binary = Binary::parse(path, &data)?;
    let refuse = |reason: String| Error::Symbol {
        binary: path.to_owned(),
        symbol: symbol.to_owned(),
        reason,
    };
    if let Some(offset) = symbol.strip_prefix("0x") {
        let offset = u64::from_str_radix(offset, 16).map_err(|error| refuse(error.to_string()))?;
        let pace = binary
            .entry(offset)
            .ok_or_else(|| refuse("no code is at this offset".into()))?;
        return Ok(Site {
            name: symbol.to_owned(),
            offset,
            pace: pace.1,
        });
    }
    let mut functions = binary.functions();
    if let Some(debug) = binary.debug_file() {
        // A debug file holds the same addresses and none of the code.
        let data = open(&debug)?;
        functions.extend(Binary::parse(&debug, &data)?.functions());
    }
    let function = choose(&functions, symbol, binary.is_stripped()).map_err(refuse)?;
    if function.indirect {
        let reason = "it is chosen when the program starts (IFUNC): name the variant that runs, or its offset";
        return Err(refuse(reason.into()));
    }
    let (offset, pace) = binary
        .offset(function.address)
        .and_then(|offset| binary.entry(offset))
        .ok_or_else(|| refuse("it is not in a part of the file that is run".into()))?;
    Ok(Site {
        name: function.name.clone(),
        offset,
        pace,
    })
}

/// The offset of the instruction that a program starts with.
pub(crate) fn first_instruction(path: &Path) -> Result<u64, Error> {
    let data = open(path)?;
    let binary = Binary::parse(path, &data)?;
    let offset = binary.offset(binary.file.entry());
    offset.ok_or_else(|| refused(path, "it has no first instruction"))
}

fn open(path: &Path) -> Result<ReadCache<File>, Error> {
    let file = File::open(path).map_err(|error| refused(path, &error.to_string()))?;
    Ok(ReadCache::new(file))
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::Binary {
        binary: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn choose<'a>(
    functions: &'a BTreeSet<Function>,
    symbol: &str,
    stripped: bool,
) -> Result<&'a Function, String> {
    let exact = functions
        .iter()
        .filter(|one| one.name == symbol)
        .collect::<Vec<_>>();
    let found = match exact.is_empty() {
        false => exact,
        true => functions
            .iter()
            .filter(|one| name::is_written(&one.name, symbol))
            .collect(),
    };
    let mut addresses = found.iter().map(|one| one.address).collect::<Vec<_>>();
    addresses.dedup();
    match (found.first(), addresses.len()) {
        (Some(only), 1) => Ok(only),
        (Some(_), many) => {
            let listed = found.iter().take(LISTED).map(|one| one.name.as_str());
            let listed = listed.collect::<Vec<_>>().join(", ");
            Err(format!(
                "{many} functions have this name: give one as the file has it, or its offset as 0x...: {listed}"
            ))
        }
        (None, _) => Err(absent(functions, symbol, stripped)),
    }
}

fn absent(functions: &BTreeSet<Function>, symbol: &str, stripped: bool) -> String {
    let near = name::nearest(
        functions.iter().map(|one| one.name.as_str()),
        symbol,
        LISTED,
    );
    let near = match near.is_empty() {
        true => String::new(),
        false => format!("; near it: {}", near.join(", ")),
    };
    match stripped {
        true => format!(
            "the file is stripped and exports {} functions, not this one: install its debug symbols, or give the offset as 0x...{near}",
            functions.len()
        ),
        false => format!(
            "none of its {} functions; it may be inlined, or in a library{near}",
            functions.len()
        ),
    }
}

impl<'a> Binary<'a> {
    fn parse(path: &'a Path, data: &'a ReadCache<File>) -> Result<Self, Error> {
        let file = object::File::parse(data).map_err(|error| refused(path, &error.to_string()))?;
        Ok(Self { path, data, file })
    }

    fn is_stripped(&self) -> bool {
        self.file.symbol_table().is_none() && self.debug_file().is_none()
    }

    fn functions(&self) -> BTreeSet<Function> {
        let symbols = self.file.symbols().chain(self.file.dynamic_symbols());
        let functions = symbols.filter(|symbol| {
            symbol.is_definition()
                && symbol.kind() == object::SymbolKind::Text
                && symbol.address() != 0
        });
        functions
            .filter_map(|symbol| {
                let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
                    return None;
                };
                Some(Function {
                    address: symbol.address(),
                    name: symbol.name().ok()?.to_owned(),
                    indirect: st_info & 0xf == STT_GNU_IFUNC,
                })
            })
            .collect()
    }

    /// What distributions install beside a stripped program: `/usr/lib/debug/.build-id/ab/cdef.debug`.
    fn debug_file(&self) -> Option<PathBuf> {
        let id = self.file.build_id().ok()??;
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let (first, rest) = id.split_at_checked(1)?;
        let path = format!(
            "/usr/lib/debug/.build-id/{}/{}.debug",
            hex(first),
            hex(rest)
        );
        Some(PathBuf::from(path)).filter(|path| path.exists() && path != self.path)
    }

    /// Parts of the file that are run: address in memory, offset in the file, length in the file.
    fn code(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.file.segments().filter_map(|segment| {
            let SegmentFlags::Elf { p_flags } = segment.flags() else {
                return None;
            };
            let (offset, length) = segment.file_range();
            (p_flags & PF_X != 0).then_some((segment.address(), offset, length))
        })
    }

    fn offset(&self, address: u64) -> Option<u64> {
        let mut code = self.code();
        code.find_map(|(start, offset, length)| {
            let within = address.checked_sub(start)?;
            (within < length).then_some(offset + within)
        })
    }

    /// The offset of the instruction to watch for a function that starts at `offset`.
    fn entry(&self, offset: u64) -> Option<(u64, Pace)> {
        let (_, start, length) = self
            .code()
            .find(|(_, start, length)| (*start..start + length).contains(&offset))?;
        let length = (start + length - offset).min(entry::LOOKED_AT);
        let bytes = self.data.read_bytes_at(offset, length).ok()?;
        let (skip, pace) = entry::look(bytes, self.file.architecture());
        Some((offset + skip, pace))
    }
}
