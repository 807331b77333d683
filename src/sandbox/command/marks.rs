//! Finds in a script's standard output where it has begun and how it ended; whatever is between is its data. What
//! comes before is an engine's own chatter, and what comes after is nobody's.
//!
//! What the script says of itself begins with its mark and ends with the line. It need not begin a line: an output
//! may end without one.

/// How much of what came before the beginning is remembered, for an error's message.
const CHATTER: usize = 4096;
/// Longest word after `begin` or `end`, in bytes.
const LONGEST_WORD: usize = 8192;

/// Reads one script's output.
#[derive(Debug)]
pub(super) struct Marks {
    begin: Vec<u8>,
    end: Vec<u8>,
    state: State,
    /// What is not decided yet: chatter, the start of a line that may be ours, or its word.
    held: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// No line of the script yet.
    Waiting,
    /// After `begin`, up to the end of that line.
    Beginning,
    Running {
        word: String,
    },
    /// After `end`, up to the end of that line.
    Ending {
        word: String,
    },
    Ended {
        word: String,
        status: Option<i32>,
    },
}

impl Marks {
    pub(super) fn new(mark: &str) -> Self {
        Self {
            begin: format!("{mark} begin ").into_bytes(),
            end: format!("{mark} end ").into_bytes(),
            state: State::Waiting,
            held: Vec::new(),
        }
    }

    /// Takes what was printed; gives what of it is data for sure.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        self.held.extend_from_slice(bytes);
        while self.step(&mut data) {}
        data
    }

    /// What the script said as it began; `None` until it has.
    pub(super) fn begun(&self) -> Option<&str> {
        match &self.state {
            State::Waiting | State::Beginning => None,
            State::Running { word } | State::Ending { word } | State::Ended { word, .. } => Some(word),
        }
    }

    /// Whether the last line was read.
    pub(super) fn ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }

    /// The status in the last line; `None` where there was no such line, or no number in it.
    pub(super) fn status(&self) -> Option<i32> {
        match self.state {
            State::Ended { status, .. } => status,
            _ => None,
        }
    }

    /// What is left when nothing more comes: chatter before the beginning, data after it.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Returns whether there may be more to do.
    fn step(&mut self, data: &mut Vec<u8>) -> bool {
        match &mut self.state {
            State::Waiting => match find(&self.held, &self.begin) {
                Some(at) => {
                    self.held.drain(..at + self.begin.len());
                    self.state = State::Beginning;
                    true
                }
                None => {
                    let keep = CHATTER.max(self.begin.len());
                    self.held.drain(..self.held.len().saturating_sub(keep));
                    false
                }
            },
            State::Beginning => match word(&mut self.held) {
                Some(word) => {
                    self.state = State::Running { word };
                    true
                }
                None => false,
            },
            State::Running { word } => match find(&self.held, &self.end) {
                Some(at) => {
                    data.extend(self.held.drain(..at));
                    self.held.drain(..self.end.len());
                    let word = std::mem::take(word);
                    self.state = State::Ending { word };
                    true
                }
                None => {
                    let held = beginning(&self.held, &self.end);
                    data.extend(self.held.drain(..self.held.len() - held));
                    false
                }
            },
            State::Ending { word: begun } => match word(&mut self.held) {
                Some(status) => {
                    self.state = State::Ended {
                        word: std::mem::take(begun),
                        status: status.parse().ok(),
                    };
                    true
                }
                None => false,
            },
            State::Ended { .. } => {
                self.held.clear();
                false
            }
        }
    }
}

/// The rest of the line, without white space at its end; a line that never ends is cut.
fn word(held: &mut Vec<u8>) -> Option<String> {
    let end = held.iter().position(|byte| *byte == b'\n');
    let end = end.or_else(|| (held.len() > LONGEST_WORD).then_some(LONGEST_WORD - 1))?;
    let line: Vec<u8> = held.drain(..=end).collect();
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| *byte == what[0]) {
        let at = from + at;
        if text[at..].starts_with(what) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// How many bytes at the end of `text` may be the beginning of `what`.
fn beginning(text: &[u8], what: &[u8]) -> usize {
    let most = text.len().min(what.len() - 1);
    (1..=most)
        .rev()
        .find(|length| what.starts_with(&text[text.len() - length..]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Marks;

    /// The output in pieces of this size: begun, data, status.
    fn read(text: &[u8], piece: usize) -> (Option<String>, Vec<u8>, Option<i32>) {
        let mut marks = Marks::new("M");
        let mut data: Vec<u8> = text.chunks(piece).flat_map(|piece| marks.push(piece)).collect();
        if marks.begun().is_some() && !marks.ended() {
            data.extend(marks.rest());
        }
        (marks.begun().map(str::to_owned), data, marks.status())
    }

    #[test]
    fn data_is_what_is_between_the_lines_however_it_is_cut() {
        let text = b"Welcome!\nM begin /root/x y\nout\n\nput\nM en\nM end 7\nbye\n";
        for piece in 1..=text.len() {
            let (begun, data, status) = read(text, piece);
            assert_eq!(begun.as_deref(), Some("/root/x y"), "{piece}");
            assert_eq!(data, b"out\n\nput\nM en\n", "{piece}");
            assert_eq!(status, Some(7), "{piece}");
        }
    }

    #[test]
    fn lines_of_a_terminal_are_read_too() {
        assert_eq!(
            read(b"M begin w\r\nx\r\nM end 0\r\n", 64),
            (Some("w".to_owned()), b"x\r\n".to_vec(), Some(0))
        );
    }

    #[test]
    fn an_output_that_was_cut_off_has_no_status() {
        assert_eq!(
            read(b"M begin w\nhalf\nM en", 5),
            (Some("w".to_owned()), b"half\nM en".to_vec(), None)
        );
        assert_eq!(read(b"error: no such container\n", 5), (None, Vec::new(), None));
        assert_eq!(read(b"M begin w\nM end what\n", 5).2, None);
    }

    #[test]
    fn what_is_said_before_the_beginning_is_remembered_but_not_all_of_it() {
        let mut marks = Marks::new("M");
        for _ in 0..1000 {
            marks.push(b"0123456789");
        }
        marks.push(b"the end");
        let rest = marks.rest();
        assert!(rest.ends_with(b"the end") && rest.len() < 5000);
    }

    proptest! {
        #[test]
        fn any_data_comes_through(data in proptest::collection::vec(any::<u8>(), 0..200), piece in 1..50_usize) {
            let mut text = b"M begin w\n".to_vec();
            // A lone `M` is no mark: a real one is 32 digits that nothing else prints.
            let data: Vec<u8> = data.into_iter().filter(|byte| *byte != b'M').collect();
            text.extend(&data);
            text.extend(b"M end 0\n");
            prop_assert_eq!(read(&text, piece), (Some("w".to_owned()), data, Some(0)));
        }
    }
}
