// SPDX-License-Identifier: Apache-2.0
//! The workload file: one request a line, in the order of their offsets.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;

use http::HeaderValue;
use serde::Serialize;
use serde_json::Value;
use weir_whole_file::WholeFile;

use crate::bodies::bad_name;
use crate::table::{BadInput, Lines, Row};

/// The fields of a line. The header of the CSV form has them in this order; `body` and `sender` may be missing.
pub static FIELDS: [&str; 8] = [
    "t_us", "key", "priority", "user", "run_us", "bytes", "body", "sender",
];
/// The same without `body`.
static WITHOUT_BODY: [&str; 7] = [
    "t_us", "key", "priority", "user", "run_us", "bytes", "sender",
];
/// How many fields no line may be without.
const REQUIRED: usize = 6;
/// Longest run that hosts accept.
pub(crate) const MAX_RUN_US: u64 = 3_600_000_000;

/// One request of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Offset from the start of the workload, microseconds.
    pub t_us: u64,
    /// What a host may have cached; empty: no key.
    pub key: String,
    /// Name of the priority class.
    pub priority: String,
    /// On whose behalf; empty: nobody's.
    pub user: String,
    /// Modelled run time on one core, microseconds.
    pub run_us: u64,
    /// Modelled size of the key's data.
    pub bytes: u64,
    /// File that is sent as the body, in the folder of bodies; `None`: no body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Who sends it: all requests of one sender come from one caller of a simulated fleet. It is not sent itself.
    /// `None`: the user, or nobody who sends anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
}

/// Reads a whole workload in either form: NDJSON if the first line begins with `{`, else CSV.
pub fn read(input: impl BufRead) -> Result<Vec<Request>, BadInput> {
    read_each(input, |_, _| Ok(()))
}

/// Like [`read`], and shows each request with its line to `each`, which may refuse it.
pub fn read_each(
    input: impl BufRead,
    mut each: impl FnMut(usize, &Request) -> Result<(), BadInput>,
) -> Result<Vec<Request>, BadInput> {
    Requests::new(input)?
        .map(|read| {
            let (line, request) = read?;
            each(line, &request)?;
            Ok(request)
        })
        .collect()
}

/// A workload in either form, read request by request: each with its line. Nothing comes after an error.
pub struct Requests<R> {
    lines: Lines<R>,
    /// Of the CSV form.
    columns: Option<&'static [&'static str]>,
    /// Read before it was wanted, to tell that there is one.
    first: Option<(usize, Request)>,
    /// Of the newest request.
    t_us: u64,
    failed: bool,
}

impl<R: BufRead> Requests<R> {
    /// Looks at the first lines.
    ///
    /// # Errors
    /// There is no request, or the first is bad.
    pub fn new(input: R) -> Result<Self, BadInput> {
        let mut lines = Lines::new(input);
        let Some((number, header)) = lines.next_line()? else {
            return Err(BadInput::new(1, "line", "the file is empty"));
        };
        let mut requests = Self {
            lines,
            columns: None,
            first: None,
            t_us: 0,
            failed: false,
        };
        if header.starts_with('{') {
            requests.first = Some(requests.parsed(number, &header)?);
        } else {
            requests.columns = Some(columns(number, &header)?);
            requests.first = requests.read()?;
        }
        match requests.first {
            Some(_) => Ok(requests),
            None => Err(BadInput::new(2, "line", "the file holds no request")),
        }
    }

    fn read(&mut self) -> Result<Option<(usize, Request)>, BadInput> {
        match self.lines.next_line()? {
            Some((number, text)) => self.parsed(number, &text).map(Some),
            None => Ok(None),
        }
    }

    fn parsed(&mut self, number: usize, text: &str) -> Result<(usize, Request), BadInput> {
        let request = match self.columns {
            Some(columns) => parse_csv(number, text, columns),
            None => parse_json(number, text),
        }?;
        check(self.t_us, &request, number)?;
        self.t_us = request.t_us;
        Ok((number, request))
    }
}

impl<R: BufRead> Iterator for Requests<R> {
    type Item = Result<(usize, Request), BadInput>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        if self.failed {
            return None;
        }
        let read = self.read();
        self.failed = read.is_err();
        read.transpose()
    }
}

/// Writes a workload to a file, whole or not at all.
pub fn save(requests: &[Request], file: &Path) -> io::Result<()> {
    let mut out = WholeFile::create(file)?;
    write(requests, &mut out)?;
    out.finish()
}

/// Writes a workload as NDJSON.
pub fn write(requests: &[Request], out: &mut impl Write) -> io::Result<()> {
    for request in requests {
        serde_json::to_writer(&mut *out, request)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// What the header of the CSV form promises of each line.
fn columns(line: usize, header: &str) -> Result<&'static [&'static str], BadInput> {
    let required = &FIELDS[..REQUIRED];
    let forms = [required, &FIELDS[..=REQUIRED], &WITHOUT_BODY, &FIELDS];
    let form = forms.into_iter().find(|form| header == form.join(","));
    form.ok_or_else(|| {
        let required = required.join(",");
        let reason = format!("expected the header {required}[,body][,sender] or a JSON object");
        BadInput::new(line, "line", reason)
    })
}

/// `above` is the `t_us` of the line above, or 0.
fn check(above: u64, request: &Request, line: usize) -> Result<(), BadInput> {
    let bad = |field: &str, reason: String| Err(BadInput::new(line, field, reason));
    if request.t_us < above {
        let reason = format!("{} is before {above} of the line above", request.t_us);
        return bad("t_us", reason);
    }
    if request.priority.is_empty() {
        return bad("priority", "is empty".to_owned());
    }
    if request.run_us > MAX_RUN_US {
        return bad("run_us", format!("is more than {MAX_RUN_US}"));
    }
    let texts = [&request.key, &request.priority, &request.user];
    for (field, text) in ["key", "priority", "user"].into_iter().zip(texts) {
        if HeaderValue::from_bytes(text.as_bytes()).is_err() {
            return bad(field, format!("{text:?} cannot be sent in a header"));
        }
    }
    if let Some(body) = &request.body
        && let Some(reason) = bad_name(body)
    {
        return bad("body", format!("{body:?} {reason}"));
    }
    Ok(())
}

fn parse_csv(line: usize, text: &str, columns: &[&str]) -> Result<Request, BadInput> {
    let row = Row::split(line, text, columns)?;
    let filled = |field| Some(row.text(field)).filter(|text| !text.is_empty());
    Ok(Request {
        t_us: row.whole("t_us")?,
        key: row.text("key").to_owned(),
        priority: row.text("priority").to_owned(),
        user: row.text("user").to_owned(),
        run_us: row.whole("run_us")?,
        bytes: row.whole("bytes")?,
        body: filled("body").map(str::to_owned),
        sender: filled("sender").map(str::to_owned),
    })
}

/// By hand rather than by derive, because serde does not say which field has the wrong type.
fn parse_json(line: usize, text: &str) -> Result<Request, BadInput> {
    let bad = |field: &str, reason: String| BadInput::new(line, field, reason);
    let mut object: BTreeMap<String, Value> =
        serde_json::from_str(text).map_err(|e| bad("line", format!("not a JSON object: {e}")))?;
    let (body, sender) = (object.remove("body"), object.remove("sender"));
    let mut value = |field: &str| {
        let value = object.remove(field);
        value.ok_or_else(|| bad(field, "is missing".to_owned()))
    };
    let whole = |field: &str, value: Value| {
        let reason = || format!("{value} is not a whole number in 0..2^64");
        value.as_u64().ok_or_else(|| bad(field, reason()))
    };
    let text = |field: &str, value: Value| match value {
        Value::String(text) => Ok(text),
        other => Err(bad(field, format!("{other} is not a string"))),
    };
    let request = Request {
        t_us: whole("t_us", value("t_us")?)?,
        key: text("key", value("key")?)?,
        priority: text("priority", value("priority")?)?,
        user: text("user", value("user")?)?,
        run_us: whole("run_us", value("run_us")?)?,
        bytes: whole("bytes", value("bytes")?)?,
        body: body.map(|value| text("body", value)).transpose()?,
        sender: sender.map(|value| text("sender", value)).transpose()?,
    };
    match object.keys().next() {
        Some(unknown) => Err(bad(unknown, "is not a field of a workload".to_owned())),
        None => Ok(request),
    }
}

/// The same seed gives the same bytes, and another seed others.
#[cfg(test)]
pub(crate) fn assert_seeded(of_seed: impl Fn(u64) -> Vec<Request>) {
    let bytes = |seed| bytes(&of_seed(seed));
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

/// As [`write`] writes them.
#[cfg(test)]
pub(crate) fn bytes(requests: &[Request]) -> Vec<u8> {
    let mut out = Vec::new();
    write(requests, &mut out).expect("memory takes all");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "t_us,key,priority,user,run_us,bytes\n";

    fn error(text: impl AsRef<[u8]>) -> String {
        read(text.as_ref()).unwrap_err().to_string()
    }

    #[test]
    fn both_forms_mean_the_same() {
        let csv = format!("{HEADER}0,a,high,u1,10,20\n5,,low,,0,0\n");
        let requests = read(csv.as_bytes()).unwrap();
        let mut json = Vec::new();
        write(&requests, &mut json).unwrap();
        assert_eq!(read(json.as_slice()).unwrap(), requests);
        assert_eq!(requests[1].key, "");
        assert!(!String::from_utf8(json).unwrap().contains("body"));
    }

    #[test]
    fn a_body_is_a_seventh_column_that_may_be_empty() {
        let header = HEADER.replace('\n', ",body\n");
        let csv = format!("{header}0,a,high,u1,0,20,rules/a.json\n5,,low,,0,0,\n");
        let requests = read(csv.as_bytes()).unwrap();
        let bodies: Vec<_> = requests.iter().map(|r| r.body.as_deref()).collect();
        assert_eq!(bodies, [Some("rules/a.json"), None]);
        let mut json = Vec::new();
        write(&requests, &mut json).unwrap();
        assert_eq!(read(json.as_slice()).unwrap(), requests);
        let text = String::from_utf8(json).unwrap();
        assert_eq!(text.matches("body").count(), 1, "{text}");
        let outside = format!("{header}0,a,high,u1,0,20,../a.json\n");
        assert!(error(outside).starts_with("line 2: body: \"../a.json\" is not a relative"));
    }

    #[test]
    fn a_sender_is_a_last_column_that_may_be_empty() {
        for (body, cell) in [("", ""), (",body", ",a.json")] {
            let header = HEADER.replace('\n', &format!("{body},sender\n"));
            let csv = format!("{header}0,a,high,u1,0,20{cell},app-7\n5,,low,,0,0{cell},\n");
            let requests = read(csv.as_bytes()).unwrap();
            let senders: Vec<_> = requests.iter().map(|r| r.sender.as_deref()).collect();
            assert_eq!(senders, [Some("app-7"), None]);
            assert_eq!(read(bytes(&requests).as_slice()).unwrap(), requests);
        }
        assert!(error("t_us,sender\n").contains("bytes[,body][,sender] or a JSON object"));
    }

    #[test]
    fn each_request_is_shown_with_its_line_and_may_be_refused() {
        let mut seen = Vec::new();
        let csv = format!("{HEADER}0,a,high,u,1,2\n1,b,high,u,1,2\n2,c,high,u,1,2\n");
        let refused = read_each(csv.as_bytes(), |line, request| {
            seen.push((line, request.key.clone()));
            match request.key.as_str() {
                "b" => Err(BadInput::new(line, "key", "is not wanted")),
                _ => Ok(()),
            }
        });
        assert_eq!(
            refused.unwrap_err().to_string(),
            "line 3: key: is not wanted"
        );
        assert_eq!(seen, [(2, "a".to_owned()), (3, "b".to_owned())]);
    }

    #[test]
    fn every_error_has_line_field_and_reason() {
        let good = "0,a,high,u,1,2\n";
        for (text, expected) in [
            (String::new(), "line 1: line: the file is empty"),
            (HEADER.to_owned(), "line 2: line: the file holds no request"),
            ("a,b\n".to_owned(), "line 1: line: expected the header"),
            (format!("{HEADER}{good}1,a\n"), "line 3: line: has 2 fields"),
            (
                format!("{HEADER}x,a,high,u,1,2\n"),
                "line 2: t_us: \"x\" is not a whole",
            ),
            (
                format!("{HEADER}0,a,high,u,1,-2\n"),
                "line 2: bytes: \"-2\" is not a whole",
            ),
            (
                format!("{HEADER}9,a,high,u,1,2\n{good}"),
                "line 3: t_us: 0 is before 9",
            ),
            (
                format!("{HEADER}0,a,,u,1,2\n"),
                "line 2: priority: is empty",
            ),
            (format!("{HEADER}0,a\u{1},low,u,1,2\n"), "line 2: key: "),
            (
                format!("{HEADER}0,a,low,u,3600000001,2\n"),
                "line 2: run_us: is more than",
            ),
            (format!("{HEADER}{good}\n"), "line 3: line: has 1 fields"),
        ] {
            let error = error(&text);
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn json_errors_name_the_field_too() {
        let with = |field: &str, value: &str| {
            let mut object: BTreeMap<&str, Value> = BTreeMap::from([
                ("t_us", 0.into()),
                ("key", "a".into()),
                ("priority", "low".into()),
                ("user", "u".into()),
                ("run_us", 1.into()),
                ("bytes", 2.into()),
            ]);
            object.insert(field, serde_json::from_str(value).unwrap());
            serde_json::to_string(&object).unwrap()
        };
        assert!(error(with("t_us", "1.5")).starts_with("line 1: t_us: 1.5 is not"));
        assert!(error(with("key", "7")).starts_with("line 1: key: 7 is not a string"));
        assert!(error(with("size", "7")).starts_with("line 1: size: is not a field"));
        assert!(error(with("body", "null")).starts_with("line 1: body: null is not a string"));
        assert!(error(with("body", "\"\"")).starts_with("line 1: body: \"\" is empty"));
        assert!(
            error(with("body", "\"/a\"")).starts_with("line 1: body: \"/a\" is not a relative")
        );
        assert!(error("{}").starts_with("line 1: t_us: is missing"));
        assert!(error("{oops").starts_with("line 1: line: not a JSON object"));
    }

    #[test]
    fn bytes_that_are_not_text_and_endless_lines_are_refused() {
        let bad = [HEADER.as_bytes(), b"\xff\xff\n"].concat();
        assert_eq!(error(bad), "line 2: line: is not UTF-8");
        let long = format!("{HEADER}{}", "x".repeat(70_000));
        assert!(error(long).starts_with("line 2: line: is longer than"));
    }
}
