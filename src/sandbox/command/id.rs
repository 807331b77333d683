//! What a user's `create` and `list` print: ids of sandboxes.

/// Longest id, in bytes.
const LONGEST: usize = 256;

/// A sandbox as `list` tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// What the engine calls it.
    pub(super) id: String,
    /// The second word of its line: the name that it was created with.
    pub(super) name: Option<String>,
}

/// The id that `create` has printed: the last line of its standard output that is not blank.
///
/// # Errors
/// What was expected, in words.
pub(super) fn created(output: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(output);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    let id = last.ok_or("it printed nothing\nit has to print the id of the sandbox on standard output")?;
    checked(id).map(str::to_owned)
}

/// The sandboxes that `list` has printed, one a line.
///
/// # Errors
/// What was expected, in words.
pub(super) fn listed(output: &[u8]) -> Result<Vec<Listed>, String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            Ok(Listed {
                id: checked(words.next().unwrap_or_default())?.to_owned(),
                name: words.next().map(str::to_owned),
            })
        })
        .collect()
}

/// An id goes into commands, also into those that two shells read, one after the other, and into paths that are
/// deleted.
fn checked(id: &str) -> Result<&str, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:/@+=,-".contains(c);
    let steps_up = id.split('/').any(|part| part == "." || part == "..");
    if id.len() <= LONGEST && id.starts_with(|c: char| c != '-') && id.chars().all(plain) && !steps_up {
        return Ok(id);
    }
    let shown: String = id.chars().take(80).collect();
    Err(format!(
        "it printed `{}`\nan id has to be one word of letters, digits and `._:/@+=,-` that does not begin with `-`, without `..`",
        shown.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use super::{Listed, created, listed};

    #[test]
    fn an_id_is_the_last_line_that_says_anything() {
        assert_eq!(created(b"0f3a\n").unwrap(), "0f3a");
        assert_eq!(created(b"Created.\r\n pod/a-1 \r\n\n").unwrap(), "pod/a-1");
        assert_eq!(created(b"/tmp/x").unwrap(), "/tmp/x");
        assert!(created(b" \n").unwrap_err().starts_with("it printed nothing"));
    }

    #[test]
    fn an_id_that_a_shell_would_take_apart_is_refused() {
        for id in [
            "a b",
            "-rf",
            "a;b",
            "$(x)",
            "a'b",
            "..",
            "a/../b",
            "é",
            "a\u{1b}[0m",
            "~",
        ] {
            let error = created(id.as_bytes()).unwrap_err();
            assert!(error.starts_with("it printed `"), "{id}: {error}");
        }
        assert!(created(&[b'a'; 300]).is_err());
    }

    #[test]
    fn a_list_has_a_line_a_sandbox() {
        let sandbox = |id: &str, name: Option<&str>| Listed {
            id: id.to_owned(),
            name: name.map(str::to_owned),
        };
        assert_eq!(
            listed(b"12\tr1-1-1-1 RUNNING\n\n13\n").unwrap(),
            [sandbox("12", Some("r1-1-1-1")), sandbox("13", None)]
        );
        assert!(listed(b"").unwrap().is_empty());
        assert!(listed(b"ID;NAME\n").is_err());
    }
}
