// SPDX-License-Identifier: Apache-2.0
//! Users and groups by name or number. Names are looked up in files alone: a statically linked governor has no other
//! way.

/// A group's number.
pub(super) fn group(text: &str) -> Result<u32, String> {
    match text.parse() {
        // It stands for no change where the kernel is told to change a group.
        Ok(u32::MAX) => return Err(format!("{text} is no group")),
        Ok(number) => return Ok(number),
        Err(_) => {}
    }
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let number = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(text)).then(|| fields.nth(1)?.parse().ok())?
    });
    number.ok_or_else(|| format!("/etc/group has no {text:?}; a number will do, too"))
}

/// Who owns nothing, on every Linux (`overflowuid` in the kernel's kernel/sys.c).
const NOBODY: (u32, u32) = (65534, 65534);

/// Whom jobs run as of which nothing is said: nobody, as far as this process may choose.
pub(super) fn unsaid() -> Option<(u32, u32)> {
    let may_choose = rustix::process::geteuid().is_root();
    may_choose.then(|| user("nobody").unwrap_or(NOBODY))
}

/// A user's number and that of its group. A number that is not there has the group of the same number.
pub(super) fn user(text: &str) -> Result<(u32, u32), String> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |line: &str| -> Option<(u32, u32)> {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let (number, group) = (fields.nth(1)?, fields.next()?);
        (name == text || number == text)
            .then(|| Some((number.parse().ok()?, group.parse().ok()?)))?
    };
    match (users.lines().find_map(ids), text.parse()) {
        (Some(ids), _) => Ok(ids),
        // It stands for no change where the kernel is told to change a user.
        (None, Ok(u32::MAX)) => Err(format!("{text} is no user")),
        (None, Ok(number)) => Ok((number, number)),
        (None, Err(_)) => Err(format!(
            "/etc/passwd has no {text:?}; a number will do, too"
        )),
    }
}
