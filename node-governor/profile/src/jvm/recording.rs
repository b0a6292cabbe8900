// SPDX-License-Identifier: Apache-2.0
//! Stacks in what `jfr print` says of a recording.

use std::io::{self, BufRead};

use crate::stacks::{Function, Stacks};

/// Lines between which the frames are, the innermost first.
const BEGIN: &str = "stackTrace = [";
const END: &str = "]";

/// A frame is `a.b.Outer$Inner.method(Parameter, int) line: 7`; where one was cut off there are three dots.
pub(super) fn read(printed: impl BufRead) -> io::Result<Stacks> {
    let mut stacks = Stacks::default();
    let mut frames: Option<Vec<Function>> = None;
    for line in printed.lines() {
        let line = line?;
        let line = line.trim();
        match &mut frames {
            None if line == BEGIN => frames = Some(Vec::new()),
            None => {}
            Some(_) if line == END => {
                let mut stack = frames.take().unwrap_or_default();
                stack.reverse();
                stacks.add(stack);
            }
            Some(frames) => {
                if let Some((name, _)) = line.split_once('(') {
                    frames.push(Function::method(name));
                }
            }
        }
    }
    Ok(stacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the JDKs 17 and 25 print it.
    const PRINTED: &str = r#"jdk.ExecutionSample {
  startTime = 10:41:30.391
  sampledThread = "search][T#1]" (javaThreadId = 32)
  state = "STATE_RUNNABLE"
  stackTrace = [
    a.b.Outer$Inner.work(List, int) line: 109
    java.lang.Thread.run() line: 840
    ...
  ]
}

jdk.ExecutionSample {
  startTime = 10:41:30.424
  stackTrace = [
    a.b.Other.rest()
  ]
}
"#;

    #[test]
    fn stacks_are_read_from_the_outermost_frame_on() {
        let stacks = read(PRINTED.as_bytes()).expect("it can be read");
        assert_eq!(stacks.samples(), 2);
        let path = stacks.path();
        let path: Vec<&str> = path.iter().map(|(function, _)| &*function.name).collect();
        assert_eq!(path.len(), 2, "{path:?}");
        let shares = stacks.shares();
        let names: Vec<&str> = shares.iter().map(|share| &*share.function.name).collect();
        assert_eq!(names, ["a.b.Other.rest", "a.b.Outer$Inner.work"]);
        assert_eq!(shares[1].depth, 1.0);
    }

    #[test]
    fn what_is_no_recording_has_no_samples() {
        for other in ["", "no", "stackTrace = [\n a.b(", "stackTrace = [\n]"] {
            assert_eq!(
                read(other.as_bytes()).expect("it can be read").samples(),
                0,
                "{other}"
            );
        }
        assert!(read(&b"stackTrace = [\n\xff\n"[..]).is_err());
    }
}
