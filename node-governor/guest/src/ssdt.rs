// SPDX-License-Identifier: Apache-2.0
//! The ACPI table that gives each core P-states of its own.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use weir_processes::command::Run;

use crate::cores::CORES;

/// What the cores can run at, fastest first, as ACPI wants it: document 002's 1.0, 2.0 and 2.6 GHz
/// and what lies between.
pub const FREQUENCIES_KHZ: [u32; 9] = [
    2_600_000, 2_400_000, 2_200_000, 2_000_000, 1_800_000, 1_600_000, 1_400_000, 1_200_000,
    1_000_000,
];

/// Scratch registers of the PC's four serial ports (base + 7), one a core: the first that a byte
/// can be written to and read back from without anything else happening.
pub(crate) const REGISTERS: [u16; CORES] = [0x3FF, 0x2FF, 0x3EF, 0x2EF];

/// One step of the register.
const STEP_KHZ: u32 = 100_000;

/// The frequency that a register's value stands for; none for a value that is no P-state.
pub(crate) fn frequency_khz(register: u8) -> Option<u32> {
    let khz = u32::from(register) * STEP_KHZ;
    FREQUENCIES_KHZ.contains(&khz).then_some(khz)
}

/// Writes and compiles the table into `folder`; returns the compiled file.
pub(crate) fn compile(iasl: &Path, folder: &Path) -> Result<PathBuf> {
    let source = folder.join("ssdt.dsl");
    fs::write(&source, source_text()).with_context(|| format!("writing {}", source.display()))?;
    Command::new(iasl)
        .arg("-p")
        .arg(folder.join("ssdt"))
        .arg(&source)
        .captured()?;
    let compiled = folder.join("ssdt.aml");
    ensure!(
        compiled.is_file(),
        "iasl ended well and left no {}",
        compiled.display()
    );
    Ok(compiled)
}

/// The table in ACPI's own language. The names of the cores are those of QEMU's machine `q35`.
fn source_text() -> String {
    let mut text =
        String::from("DefinitionBlock (\"\", \"SSDT\", 2, \"WEIR\", \"CPUFREQ\", 1)\n{\n");
    for core in 0..CORES {
        text.push_str(&of_core(core));
    }
    text.push_str("}\n");
    text
}

fn of_core(core: usize) -> String {
    let path = format!("\\_SB.CPUS.C{core:03X}");
    let register = format!(
        "ResourceTemplate () {{ Register (SystemIO, 8, 0, 0x{:X}) }}",
        REGISTERS[core]
    );
    let states = FREQUENCIES_KHZ.map(|khz| {
        let (mhz, value) = (khz / 1000, khz / STEP_KHZ);
        // MHz, mW (nothing reads them here), µs of latency, µs of the bus, control, status.
        format!("      Package () {{ {mhz}, {mhz}, 10, 10, {value}, {value} }}")
    });
    let mut text = String::new();
    let _ = write!(
        text,
        "  External ({path}, DeviceObj)\n  Scope ({path})\n  {{\n\
         \x20   Name (_PCT, Package () {{\n      {register},\n      {register}\n    }})\n\
         \x20   Name (_PSS, Package () {{\n{}\n    }})\n\
         \x20   Name (_PPC, 0)\n\
         \x20   // A domain of one core, which the operating system coordinates by itself (0xFC).\n\
         \x20   Name (_PSD, Package () {{ Package () {{ 5, 0, {core}, 0xFC, 1 }} }})\n  }}\n",
        states.join(",\n")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_stands_for_a_frequency_of_the_table_and_for_no_other() {
        assert_eq!(frequency_khz(26), Some(2_600_000));
        assert_eq!(frequency_khz(10), Some(1_000_000));
        assert_eq!(frequency_khz(11), None);
        assert_eq!(frequency_khz(0), None);
    }

    #[test]
    fn every_core_has_a_register_of_its_own_in_the_table() {
        let text = source_text();
        for (core, register) in REGISTERS.iter().enumerate() {
            assert!(text.contains(&format!("Scope (\\_SB.CPUS.C{core:03X})")));
            // Written to and read from: control and status.
            assert_eq!(text.matches(&format!("0x{register:X}")).count(), 2);
        }
    }
}
