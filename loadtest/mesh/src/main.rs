// SPDX-License-Identifier: Apache-2.0
//! `weir-mesh FOLDER`: the supervisor of the mesh that FOLDER describes. `cargo xtask mesh` starts it.

use std::env;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: weir-mesh FOLDER, as `cargo xtask mesh up` does");
        return ExitCode::from(64);
    };
    weir_stage::exit::code(weir_mesh::supervise(Path::new(&folder)))
}
