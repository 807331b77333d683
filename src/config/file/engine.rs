//! What the commands of an engine may and must say. It knows their placeholders, not their values.

use super::attempt::Command;
use super::sandbox::CommandEngine;
use crate::config::problem::{KeyPath, Problem};
use crate::config::template::CommandTemplate;

const CREATE: [&str; 7] = [
    "name",
    "run_id",
    "lifetime_sec",
    "expires",
    "experiment",
    "eval",
    "attempt",
];
const EXEC: [&str; 4] = ["sandbox", "name", "run_id", "file"];
const UPLOAD: [&str; 5] = ["sandbox", "name", "run_id", "file", "dir"];
const DOWNLOAD: [&str; 6] = ["sandbox", "name", "run_id", "file", "dir", "path"];
const DELETE: [&str; 3] = ["sandbox", "name", "run_id"];
const LIST: [&str; 1] = ["run_id"];

/// The first command that has a placeholder without a value, or does the same for every sandbox.
pub(super) fn check(engine: &CommandEngine) -> Result<(), Problem> {
    let keys: [(&str, Option<&Command>, &[&str]); 6] = [
        ("create", Some(&engine.create), &CREATE),
        ("exec", Some(&engine.exec), &EXEC),
        ("upload", engine.upload.as_ref(), &UPLOAD),
        ("download", engine.download.as_ref(), &DOWNLOAD),
        ("delete", Some(&engine.delete), &DELETE),
        ("list", engine.list.as_ref(), &LIST),
    ];
    for (key, command, known) in keys {
        let Some(command) = command else { continue };
        let template = CommandTemplate::from(command.clone());
        let at = KeyPath::of(key);
        if let Some(unknown) = template.placeholders().find(|name| !known.contains(name)) {
            let known: Vec<String> = known.iter().map(|name| format!("`{{{name}}}`")).collect();
            return Err(Problem::new(
                at,
                format!(
                    "unknown placeholder `{{{unknown}}}`\nknown here: {}; write `{{{{` and `}}}}` for braces",
                    known.join(", ")
                ),
            ));
        }
        let of_one = known.contains(&"sandbox");
        if of_one && !template.uses("sandbox") && !template.uses("name") {
            return Err(Problem::new(
                at,
                "expected `{sandbox}` in it: it would do the same for every sandbox",
            ));
        }
    }
    Ok(())
}
