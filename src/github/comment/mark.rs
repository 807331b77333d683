//! The hidden lines that a comment of ours begins with: whose it is, and which run wrote it. Knows nothing of GitHub.

use jiff::Timestamp;

/// How far a run had got when it wrote a comment, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It goes on.
    Running,
    /// It ended before its end.
    Partial,
    /// It is done.
    Final,
}

impl State {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Running, "running"),
        (Self::Partial, "partial"),
        (Self::Final, "final"),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Partial => "partial",
            Self::Final => "final",
        }
    }
}

/// Which run wrote a comment, and when.
///
/// Of two, the one is newer whose run was created later, for GitHub counts runs up; of one run the later attempt; of one
/// attempt the state that is further on; of one state the later time. So a run that is started again does not overwrite
/// what a later commit's run has said, and an update that is late never takes back an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The suite: letters, digits, `.`, `_` and `-`.
    pub suite: String,
    /// `GITHUB_RUN_ID`.
    pub run_id: u64,
    /// `GITHUB_RUN_ATTEMPT`.
    pub run_attempt: u32,
    /// The commit that was measured.
    pub head: String,
    /// When it was written.
    pub time: Timestamp,
    /// How far the run had got.
    pub state: State,
}

/// What decides which of two stamps is newer.
pub(super) type Age = (u64, u32, State, Timestamp);

impl Stamp {
    pub(super) fn age(&self) -> Age {
        (self.run_id, self.run_attempt, self.state, self.time)
    }

    /// The lines that a body begins with, each with its end.
    pub(super) fn head_lines(&self) -> String {
        format!(
            "{}\n<!-- evalwave run={} attempt={} head={} state={} time={} -->\n",
            self.mark(),
            self.run_id,
            self.run_attempt,
            plain(&self.head),
            self.state.word(),
            self.time,
        )
    }

    /// Whether a body is a comment of the same suite.
    pub(super) fn is_marked(&self, body: &str) -> bool {
        body.strip_prefix(&self.mark())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['\n', '\r']))
    }

    fn mark(&self) -> String {
        format!("<!-- evalwave suite={} -->", plain(&self.suite))
    }
}

/// How new a body is; `None` where it does not say, which is older than any that does.
pub(super) fn age_of(body: &str) -> Option<Age> {
    let line = body.lines().nth(1)?;
    let inside = line
        .trim_end()
        .strip_prefix("<!-- evalwave ")?
        .strip_suffix(" -->")?;
    let value = |name: &str| {
        inside
            .split(' ')
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let state = value("state")?;
    let (state, _) = State::ALL.into_iter().find(|(_, word)| *word == state)?;
    Some((
        value("run")?.parse().ok()?,
        value("attempt")?.parse().ok()?,
        state,
        value("time")?.parse().ok()?,
    ))
}

/// Text that cannot end a hidden line.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|char| char.is_ascii_alphanumeric() || "._-".contains(*char))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Stamp, State, age_of};

    pub(in crate::github::comment) fn stamp(
        run_id: u64,
        run_attempt: u32,
        state: State,
        time: &str,
    ) -> Stamp {
        Stamp {
            suite: "all".to_owned(),
            run_id,
            run_attempt,
            head: "abc1234".to_owned(),
            time: time.parse().unwrap(),
            state,
        }
    }

    #[test]
    fn a_body_begins_with_its_suite_and_says_who_wrote_it() {
        let stamp = stamp(7, 2, State::Final, "2026-03-01T10:00:00Z");
        let body = format!("{}### Evals", stamp.head_lines());
        assert_eq!(
            body,
            "<!-- evalwave suite=all -->\n\
             <!-- evalwave run=7 attempt=2 head=abc1234 state=final time=2026-03-01T10:00:00Z -->\n\
             ### Evals"
        );
        assert!(stamp.is_marked(&body));
        assert_eq!(age_of(&body), Some(stamp.age()));
        assert_eq!(age_of(&body.replace('\n', "\r\n")), Some(stamp.age()));
    }

    #[test]
    fn another_suite_or_a_quotation_is_not_ours() {
        let stamp = stamp(7, 1, State::Final, "2026-03-01T10:00:00Z");
        for body in [
            "<!-- evalwave suite=all-slow -->\nx",
            "<!-- evalwave suite=al -->\nx",
            "> <!-- evalwave suite=all -->\nx",
            " <!-- evalwave suite=all -->\nx",
            "<!-- evalwave suite=all --> and more",
            "",
        ] {
            assert!(!stamp.is_marked(body), "{body}");
        }
    }

    #[test]
    fn nothing_from_outside_ends_a_hidden_line() {
        let hostile = Stamp {
            head: "abc --> [x](y)\n".to_owned(),
            suite: "a-->b".to_owned(),
            ..stamp(1, 1, State::Final, "2026-03-01T10:00:00Z")
        };
        let lines = hostile.head_lines();
        assert_eq!(lines.lines().count(), 2);
        assert_eq!(lines.matches("-->").count(), 2);
    }

    #[test]
    fn the_later_run_counts_then_the_later_attempt_then_the_state_then_the_time() {
        let ordered = [
            stamp(7, 1, State::Running, "2026-03-01T10:00:00Z"),
            stamp(7, 1, State::Running, "2026-03-01T10:01:00Z"),
            stamp(7, 1, State::Partial, "2026-03-01T10:00:00Z"),
            stamp(7, 1, State::Final, "2026-03-01T09:00:00Z"),
            stamp(7, 2, State::Running, "2026-03-01T08:00:00Z"),
            stamp(8, 1, State::Running, "2026-03-01T07:00:00Z"),
        ];
        assert!(ordered.is_sorted_by(|earlier, later| earlier.age() < later.age()));
    }

    #[test]
    fn a_line_that_somebody_has_edited_is_older_than_any() {
        for line in [
            "",
            "<!-- evalwave run=7 -->",
            "<!-- evalwave run=x attempt=1 state=final time=now -->",
        ] {
            assert_eq!(
                age_of(&format!("<!-- evalwave suite=all -->\n{line}\n")),
                None,
                "{line}"
            );
        }
    }
}
