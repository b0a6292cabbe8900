// SPDX-License-Identifier: Apache-2.0
//! COMMANDS.md is what `--help` says.

use std::path::Path;

#[test]
fn reference_of_commands_is_of_this_code() {
    let program = Path::new(env!("CARGO_BIN_EXE_weirctl"));
    let head = weir_reference::head("Command line of weirctl", "`--help`");
    let page = head + &weir_reference::commands(program);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    weir_reference::hold(&folder.join("COMMANDS.md"), &page);
}
