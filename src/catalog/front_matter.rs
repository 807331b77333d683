//! Labels from a file's front matter: a YAML map between two `---` lines at its start.

use std::io::Read;

use camino::Utf8Path;

use super::entries::Field;
use super::{CatalogError, EntryProblem, label, yaml};
use crate::model::Labels;

/// Front matter has to end within so many bytes of a file.
const MOST_BYTES: u64 = 256 << 10;

/// The labels in the front matter of `file`, none where it has no front matter.
///
/// Front matter is for other tools too: what cannot be a label (a map, text of several lines, a placeholder's name) is
/// left out. In a YAML file `---` begins a document, so that such a file has no front matter.
///
/// # Errors
/// A block that does not end, or is not a YAML map.
pub(super) fn labels(root: &Utf8Path, file: &Utf8Path) -> Result<Labels, CatalogError> {
    if matches!(file.extension(), Some("yml" | "yaml")) {
        return Ok(Labels::default());
    }
    let open = fs_err::File::open(root.join(file)).map_err(CatalogError::Read)?;
    let mut bytes = Vec::new();
    let mut reader = open.take(MOST_BYTES);
    // A glob may match large files, which need not be read to see that they begin with something else.
    reader
        .by_ref()
        .take(16)
        .read_to_end(&mut bytes)
        .map_err(CatalogError::Read)?;
    if !starts(&bytes) {
        return Ok(Labels::default());
    }
    reader.read_to_end(&mut bytes).map_err(CatalogError::Read)?;
    parse(&bytes).map_err(|Broken { line, source }| CatalogError::FrontMatter {
        file: file.to_owned(),
        line,
        source,
    })
}

struct Broken {
    line: usize,
    source: Box<dyn std::error::Error + Send + Sync>,
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Whether the first line is `---`.
fn starts(bytes: &[u8]) -> bool {
    let bytes = without_mark(bytes);
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.len() < bytes.len() && line.trim_ascii_end() == b"---"
}

fn parse(bytes: &[u8]) -> Result<Labels, Broken> {
    let mut lines = without_mark(bytes).split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default().len();
    let mut length = 0;
    let closed = lines.any(|line| {
        let end = matches!(line.trim_ascii_end(), b"---" | b"...");
        length += if end { 0 } else { line.len() };
        end
    });
    let broken = |line, source| Broken { line, source };
    if !closed {
        return Err(broken(
            1,
            "the block does not end: expected a second `---` line".into(),
        ));
    }
    let block = &without_mark(bytes)[first..first + length];
    let text = std::str::from_utf8(block).map_err(|error| {
        let before = block[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n');
        broken(2 + before.count(), "it is not UTF-8 text".into())
    })?;
    let fields = yaml::map(text).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        // The message counts lines from the block's start, and the file's line is said already.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        broken(line + 1, message.into())
    })?;
    let mut labels = Labels::default();
    for (index, (key, field)) in fields.iter().enumerate() {
        if fields[..index].iter().any(|(other, _)| other == key) {
            return Err(broken(1, EntryProblem::Repeated(key.clone()).into()));
        }
        let values: &[String] = match field {
            Field::Text(text) => std::slice::from_ref(text),
            Field::List(texts) => texts,
            Field::Absent | Field::Other(_) => &[],
        };
        let mut one = Labels::default();
        if label::add(&mut one, key, values.iter().map(String::as_str)).is_ok() {
            label::merge(&mut labels, &one);
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::{parse, starts};

    fn labels(text: &str) -> Vec<String> {
        let labels = parse(text.as_bytes()).unwrap_or_else(|broken| panic!("{}", broken.source));
        let joined = |(name, values): (String, Vec<String>)| format!("{name}={}", values.join("|"));
        labels.0.into_iter().map(joined).collect()
    }

    #[test]
    fn strings_lists_and_scalars_are_labels_as_they_are_written() {
        let text = "---\ntags: [a, b]\nversion: 1.10\nhard: true\nid: 007\nlong: |\n  two\n  lines\nnested: {a: b}\n\
                    empty:\nruns: 3\n---\n# text\n---\n";
        assert_eq!(labels(text), ["hard=true", "id=007", "tags=a|b", "version=1.10"]);
        assert!(labels("---\n---\n").is_empty());
        assert_eq!(labels("\u{feff}---\r\na: b\r\n---\r\n"), ["a=b"]);
    }

    #[test]
    fn only_a_first_line_of_three_dashes_begins_front_matter() {
        assert!(starts(b"---\na"));
        assert!(starts(b"--- \r\n"));
        for other in ["", "---", "----\n", "\n---\n", "--- a\n", "# x\n---\n"] {
            assert!(!starts(other.as_bytes()), "{other:?}");
        }
    }

    #[test]
    fn broken_front_matter_is_told_with_its_line() {
        let line = |text: &[u8]| parse(text).map_err(|broken| broken.line).unwrap_err();
        assert_eq!(line(b"---\na: b\n"), 1);
        assert_eq!(line(b"---\na: b\nc: [d\n---\n"), 4);
        assert_eq!(line(b"---\na: b\nc: \xff\n---\n"), 3);
        assert_eq!(line(b"---\n- a\n---\n"), 2);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            let _ = parse(&bytes);
            let mut block = b"---\n".to_vec();
            block.extend(bytes);
            block.extend(b"\n---\n");
            let _ = parse(&block);
        }

        #[test]
        fn no_text_of_yaml_marks_panics(text in "([-:,?&*!|>'\"%@`{}\\[\\] \n]|a|<<|1|~){0,30}") {
            let _ = parse(format!("---\n{text}\n---\n").as_bytes());
        }
    }
}
