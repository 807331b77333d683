//! Format `junit`: JUnit XML, as many tools write it, each a little differently.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::ReadError;
use super::value::{failure, not_negative, note};
use crate::model::{Check, Reading, ReadingVerdict};
use crate::results::json::{self, BadJson};

/// More test cases than an attempt has.
const MOST_CASES: usize = 100_000;
/// Deeper than any report is nested.
const DEEPEST: usize = 100;

/// How a test case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Passed,
    Skipped,
    Failed,
    Errored,
}

struct Case {
    name: String,
    /// As its elements have it.
    ending: Ending,
    /// As its tag has it, which counts where there is no such element.
    status: Ending,
    message: Option<String>,
    /// The text in its `<failure>` or `<error>`.
    words: String,
}

/// An `<error>`, in whatever test case, is an error; else a `<failure>` fails; else no suite may count any, and at least
/// one test case has to have run. A failure that a later run of the same case made good (`flakyFailure`) is none.
pub(super) fn read(text: &str) -> Result<Reading, ReadError> {
    let report = Report::parse(text)?;
    let worst = report.cases.iter().map(|case| case.ending).max();
    let ran = report.cases.iter().any(|case| case.ending != Ending::Skipped);
    let (verdict, error) = match worst {
        Some(Ending::Errored) => (ReadingVerdict::Errored { retry: true }, report.error()),
        Some(Ending::Failed) => (ReadingVerdict::Failed, None),
        _ if report.counted.is_some() && !report.was_made_good => {
            (ReadingVerdict::Errored { retry: false }, report.counted.clone())
        }
        _ if !ran => {
            let why = match report.cases.len() {
                0 => "there is no test case in it".to_owned(),
                skipped => format!("every test case in it was skipped ({skipped})"),
            };
            (ReadingVerdict::Errored { retry: false }, Some(why))
        }
        _ => (ReadingVerdict::Passed, None),
    };
    let (error, throttled) = failure(&error.unwrap_or_default());
    let ran = report
        .cases
        .into_iter()
        .filter(|case| case.ending != Ending::Skipped);
    Ok(Reading {
        verdict,
        checks: ran
            .map(|case| Check {
                passed: case.ending == Ending::Passed,
                notes: case.message.as_deref().and_then(note),
                name: case.name,
            })
            .collect(),
        score: None,
        usage: None,
        seconds: report.seconds.and_then(not_negative),
        error,
        throttled,
    })
}

/// Bytes as the text of a report.
pub(super) fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    json::text(bytes).map_err(|problem| match problem {
        BadJson::Empty => ReadError::document("junit", "it is empty: expected XML"),
        BadJson::NotUtf8(byte) => {
            ReadError::document("junit", format!("byte {byte} is not UTF-8: expected XML"))
        }
        other => other.into(),
    })
}

#[derive(Default)]
struct Report {
    cases: Vec<Case>,
    /// The times of the outermost suites together, where they say them.
    seconds: Option<f64>,
    /// What the first suite that counts failures or errors says of them, for where there is neither to be seen: tools do not
    /// agree on which of both one is.
    counted: Option<String>,
    /// A failure was made good by a later run, which some tools count all the same.
    was_made_good: bool,
}

impl Report {
    fn parse(text: &str) -> Result<Self, ReadError> {
        let bad = |what: String| ReadError::document("junit", what);
        let mut reader = Reader::from_str(text);
        let mut report = Self::default();
        let mut open: Vec<String> = Vec::new();
        let mut case: Option<Case> = None;
        let mut begun = false;
        loop {
            let position = reader.buffer_position();
            let event = reader
                .read_event()
                .map_err(|error| bad(format!("byte {position}: {error}")))?;
            let more = match &event {
                Event::Text(text) => !text.trim().is_empty(),
                Event::Start(_) | Event::Empty(_) | Event::CData(_) | Event::GeneralRef(_) => true,
                _ => false,
            };
            if more && begun && open.is_empty() {
                return Err(bad(format!("byte {position}: there is more after its end")));
            }
            match event {
                Event::Start(tag) => {
                    if open.len() == DEEPEST {
                        return Err(bad(format!("it is nested more than {DEEPEST} deep")));
                    }
                    report.begin(&tag, &open, &mut case)?;
                    begun = true;
                    open.push(name_of(&tag));
                }
                Event::Empty(tag) => {
                    report.begin(&tag, &open, &mut case)?;
                    begun = true;
                    if name_of(&tag) == "testcase" {
                        report.end(&mut case)?;
                    }
                }
                Event::End(tag) => {
                    open.pop();
                    if tag.local_name().as_ref() == "testcase" {
                        report.end(&mut case)?;
                    }
                }
                Event::Text(text) => words(&open, &mut case, &text),
                Event::CData(text) => words(&open, &mut case, &text),
                Event::GeneralRef(name) => {
                    let known = resolve_predefined_entity(&name).map(str::to_owned);
                    let known = known.or_else(|| name.resolve_char_ref().ok().flatten().map(String::from));
                    // What no document type declares stays as it stands.
                    words(
                        &open,
                        &mut case,
                        &known.unwrap_or_else(|| format!("&{};", &*name)),
                    );
                }
                Event::Eof => break,
                _ => {}
            }
        }
        match open.last() {
            Some(name) => Err(bad(format!(
                "it ends in the middle of `<{name}>`\nwas it written to its end?"
            ))),
            None if begun => Ok(report),
            None => Err(bad(format!(
                "it is no XML: expected `<testsuites>`, found `{}`",
                json::excerpt(text, 0)
            ))),
        }
    }

    fn begin(
        &mut self,
        tag: &BytesStart<'_>,
        open: &[String],
        case: &mut Option<Case>,
    ) -> Result<(), ReadError> {
        let name = name_of(tag);
        let parent = open.last().map(String::as_str);
        match (&*name, parent) {
            ("testsuites" | "testsuite", None) => {}
            (_, None) => {
                let what = format!("it begins with `<{name}>`: expected `<testsuites>` or `<testsuite>`");
                return Err(ReadError::document("junit", what));
            }
            ("testcase", _) => {
                if case.is_some() {
                    return Err(ReadError::document(
                        "junit",
                        "a `<testcase>` stands in another one",
                    ));
                }
                *case = Some(Case {
                    name: title(tag),
                    ending: Ending::Passed,
                    status: status(tag),
                    message: None,
                    words: String::new(),
                });
            }
            ("failure" | "error" | "skipped", Some("testcase")) => {
                let ending = match &*name {
                    "failure" => Ending::Failed,
                    "error" => Ending::Errored,
                    _ => Ending::Skipped,
                };
                if let Some(case) = case
                    && ending > case.ending
                {
                    case.ending = ending;
                    case.message = attribute(tag, "message").filter(|message| !message.trim().is_empty());
                    case.words.clear();
                }
            }
            ("flakyFailure" | "flakyError", Some("testcase")) => self.was_made_good = true,
            // A suite that did not come to its cases.
            ("error" | "failure", Some("testsuite" | "testsuites")) => self.cases.push(Case {
                name: "the suite itself".to_owned(),
                ending: Ending::Errored,
                status: Ending::Errored,
                message: attribute(tag, "message"),
                words: String::new(),
            }),
            _ => {}
        }
        if ["testsuite", "testsuites"].contains(&&*name) {
            let counted = ["failures", "errors"].into_iter().find_map(|counter| {
                let number: u64 = attribute(tag, counter)?.trim().parse().ok()?;
                (number > 0)
                    .then(|| format!("`<{name}>` says `{counter}=\"{number}\"`, and there is none in it"))
            });
            self.counted = self.counted.take().or(counted);
        }
        if name == "testsuite" && open.iter().all(|name| name == "testsuites") {
            let seconds = attribute(tag, "time").and_then(|time| time.trim().parse::<f64>().ok());
            if let Some(seconds) = seconds {
                *self.seconds.get_or_insert_default() += seconds;
            }
        }
        Ok(())
    }

    fn end(&mut self, case: &mut Option<Case>) -> Result<(), ReadError> {
        if self.cases.len() == MOST_CASES {
            let what = format!("it has more than {MOST_CASES} test cases");
            return Err(ReadError::document("junit", what));
        }
        self.cases.extend(case.take().map(|case| {
            Case {
                ending: match case.ending {
                    Ending::Passed => case.status,
                    ending => ending,
                },
                message: case
                    .message
                    .or_else(|| Some(case.words).filter(|words| !words.trim().is_empty())),
                words: String::new(),
                ..case
            }
        }));
        Ok(())
    }

    /// What the first case that errored says.
    fn error(&self) -> Option<String> {
        let errored = self.cases.iter().find(|case| case.ending == Ending::Errored)?;
        Some(match &errored.message {
            Some(message) => format!("{}: {message}", errored.name),
            None => format!("{} ended with an error", errored.name),
        })
    }
}

/// Takes in the words of a failure, for where its `message` says nothing.
fn words(open: &[String], case: &mut Option<Case>, text: &str) {
    if let Some(case) = case
        && open.last().is_some_and(|name| is_ending(name))
    {
        case.words.push_str(text);
    }
}

fn is_ending(name: &str) -> bool {
    ["failure", "error", "skipped"].contains(&name)
}

fn name_of(tag: &BytesStart<'_>) -> String {
    tag.local_name().as_ref().to_owned()
}

/// A test case's name, with its class where the name alone would say less.
fn title(tag: &BytesStart<'_>) -> String {
    let name = attribute(tag, "name").filter(|name| !name.trim().is_empty());
    let class = attribute(tag, "classname").filter(|class| !class.trim().is_empty());
    match (class, name) {
        (Some(class), Some(name)) if !name.starts_with(&class) => format!("{class}.{name}"),
        (_, Some(name)) | (Some(name), None) => name,
        (None, None) => "a test case without a name".to_owned(),
    }
}

/// How a case ended as its tag has it: some tools say it in an attribute, and have no element for it.
fn status(tag: &BytesStart<'_>) -> Ending {
    let said = ["status", "result"].map(|name| attribute(tag, name).unwrap_or_default());
    let ending = |said: &String| match &*said.trim().to_ascii_lowercase() {
        "notrun" | "disabled" | "skipped" | "suppressed" => Ending::Skipped,
        "fail" | "failed" | "failure" => Ending::Failed,
        "error" | "errored" | "broken" => Ending::Errored,
        _ => Ending::Passed,
    };
    let [status, result] = [ending(&said[0]), ending(&said[1])];
    status.max(result)
}

/// An attribute's value; what cannot be unescaped stays as it stands.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok().flatten()?;
    Some(match attribute.normalized_value(XmlVersion::Implicit1_0) {
        Ok(value) => value.into_owned(),
        Err(_) => attribute.value.into_owned(),
    })
}
