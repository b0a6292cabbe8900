// SPDX-License-Identifier: Apache-2.0
//! PEM files where a configuration wants some.

use std::fs;
use std::path::Path;

/// A certificate that has signed itself, and its key, under each of these names: readers take of a file what they
/// look for.
pub(crate) fn write<const N: usize>(folder: &Path, names: [&str; N]) {
    let made = rcgen::generate_simple_self_signed(["weir-control".to_owned()]).unwrap();
    for name in names {
        let key = name.ends_with("key");
        let pem = if key {
            made.signing_key.serialize_pem()
        } else {
            made.cert.pem()
        };
        fs::write(folder.join(name), pem).unwrap();
    }
}
