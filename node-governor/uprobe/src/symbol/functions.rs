// SPDX-License-Identifier: Apache-2.0
//! Which function an address is in.

use std::path::Path;

use super::binary::{self, Binary, Function};
use crate::Error;

/// The functions of a file, in the order of its code.
#[derive(Debug)]
pub struct Functions {
    /// From the start of the file; several names of one function are one.
    all: Vec<(u64, Function)>,
}

impl Functions {
    /// Of a program or a library, with those of its debug symbols.
    pub fn of(path: &Path) -> Result<Functions, Error> {
        let data = binary::open(path)?;
        let binary = Binary::parse(path, &data)?;
        let placed = binary.all_functions()?.into_iter().filter_map(|function| {
            let offset = binary.offset(function.address)?;
            Some((offset, function))
        });
        let mut all: Vec<(u64, Function)> = placed.collect();
        all.sort_by_key(|(offset, _)| *offset);
        all.dedup_by_key(|(offset, _)| *offset);
        Ok(Functions { all })
    }

    /// The name, as the file has it, of the function with the instruction at `offset` in the file.
    #[must_use]
    pub fn at(&self, offset: u64) -> Option<&str> {
        let after = self.all.partition_point(|(start, _)| *start <= offset);
        let (start, function) = self.all.get(after.checked_sub(1)?)?;
        let is_within = function.size == 0 || offset - start < function.size;
        is_within.then_some(&*function.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let function = |offset, name: &str, size| {
            let function = Function {
                address: offset,
                name: name.to_owned(),
                size,
                indirect: false,
            };
            (offset, function)
        };
        let functions = Functions {
            all: vec![function(16, "first", 8), function(32, "open", 0)],
        };
        let at = |offset| functions.at(offset);
        assert_eq!(
            [at(15), at(16), at(23), at(24)],
            [None, Some("first"), Some("first"), None]
        );
        assert_eq!(at(99), Some("open"), "its end is not known");
    }

    #[test]
    fn functions_of_this_program_are_found_where_they_are_watched() {
        let path = std::env::current_exe().expect("it runs");
        let functions = Functions::of(&path).expect("it can be read");
        let name = &functions.all[functions.all.len() / 2].1.name;
        let site = crate::find(&path, name, true).expect("one function has this name");
        assert_eq!(functions.at(site.offset), Some(&**name));
    }
}
