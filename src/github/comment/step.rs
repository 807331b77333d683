//! What to do next about a comment, given which there are. Does nothing itself.

use super::mark::{Stamp, age_of};

/// A comment of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: u64,
    pub(super) url: String,
    pub(super) body: String,
}

/// A body to be written.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) text: String,
    head: String,
}

impl Body {
    pub(super) fn new(head: String, rest: &str) -> Self {
        Self {
            text: format!("{head}{rest}"),
            head,
        }
    }

    /// Whether a body says the same, but for the time at which it was written.
    fn is_said_by(&self, other: &str) -> bool {
        let (other_head, other_rest) = split(other);
        let rest = &self.text[self.head.len()..];
        same_text(rest, &other_rest) && without_time(&self.head) == without_time(&other_head)
    }
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// There is none: write it.
    Post,
    /// Write this one anew; `None` with our own text.
    Patch {
        /// Which.
        id: u64,
        /// What another run has said in a comment that is going to be deleted.
        text: Option<&'a str>,
    },
    /// These are too many.
    Delete(Vec<u64>),
    /// All is well.
    Rest {
        /// The comment's page.
        url: String,
        /// It is a newer run's.
        newer: bool,
    },
}

/// The oldest comment stays and gets the newest text; then the others go.
pub(super) fn decide<'a>(seen: &'a [Seen], stamp: &Stamp, body: &Body) -> Step<'a> {
    let Some((oldest, others)) = seen.split_first() else {
        return Step::Post;
    };
    let newest = seen.iter().max_by_key(|comment| age_of(&comment.body));
    let newer = newest.filter(|comment| age_of(&comment.body) > Some(stamp.age()));
    match newer {
        Some(newer) if newer.id != oldest.id && age_of(&newer.body) != age_of(&oldest.body) => {
            return Step::Patch {
                id: oldest.id,
                text: Some(&newer.body),
            };
        }
        None if !body.is_said_by(&oldest.body) => {
            return Step::Patch {
                id: oldest.id,
                text: None,
            };
        }
        _ => {}
    }
    if others.is_empty() {
        return Step::Rest {
            url: oldest.url.clone(),
            newer: newer.is_some(),
        };
    }
    Step::Delete(others.iter().map(|comment| comment.id).collect())
}

/// A body's hidden lines, and the rest.
fn split(body: &str) -> (String, String) {
    let body = body.replace("\r\n", "\n");
    let end = body
        .match_indices('\n')
        .nth(1)
        .map_or(body.len(), |(at, _)| at + 1);
    let (head, rest) = body.split_at(end);
    (head.to_owned(), rest.to_owned())
}

/// GitHub may drop white space at the end.
fn same_text(one: &str, other: &str) -> bool {
    one.replace("\r\n", "\n").trim_end() == other.trim_end()
}

fn without_time(head: &str) -> String {
    let words = head.trim_end().split(' ');
    let words: Vec<&str> = words.filter(|word| !word.starts_with("time=")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::mark::{Stamp, State, age_of};
    use super::{Body, Seen, Step, decide};

    fn stamp(run_id: u64) -> Stamp {
        Stamp {
            suite: "all".to_owned(),
            run_id,
            run_attempt: 1,
            head: "abc1234".to_owned(),
            time: "2026-03-01T10:00:00Z".parse().unwrap(),
            state: State::Final,
        }
    }

    fn body(run_id: u64, text: &str) -> Body {
        Body::new(stamp(run_id).head_lines(), text)
    }

    fn seen(id: u64, body: &Body) -> Seen {
        Seen {
            id,
            url: format!("/{id}"),
            body: body.text.clone(),
        }
    }

    #[test]
    fn the_same_text_of_the_same_run_is_not_sent_again_whatever_the_time() {
        let there = seen(1, &body(7, "text\r\nmore\n\n"));
        let later = Stamp {
            time: "2026-03-01T11:00:00Z".parse().unwrap(),
            ..stamp(7)
        };
        let now = Body::new(later.head_lines(), "text\nmore");
        let there = [there];
        assert!(matches!(
            decide(&there, &later, &now),
            Step::Rest { newer: false, .. }
        ));
        // A newer run has to be named, even if it says the same.
        assert!(matches!(
            decide(&there, &stamp(8), &body(8, "text\nmore")),
            Step::Patch { .. }
        ));
    }

    #[test]
    fn a_newer_text_is_moved_to_the_oldest_comment_before_its_own_goes() {
        let comments = [seen(1, &body(5, "old")), seen(2, &body(9, "new"))];
        let step = decide(&comments, &stamp(7), &body(7, "ours"));
        assert_eq!(
            step,
            Step::Patch {
                id: 1,
                text: Some(&comments[1].body)
            }
        );
    }

    proptest! {
        /// Whoever is the last to act, and whatever was there: one comment, the oldest, with the newest text.
        #[test]
        fn any_comments_come_down_to_the_oldest_with_the_newest_text(
            runs in proptest::collection::vec(1_u64..9, 0..5),
            ours in 1_u64..9,
        ) {
            let mut comments: Vec<Seen> =
                runs.iter().zip(1..).map(|(run, id)| seen(id, &body(*run, &format!("run {run}")))).collect();
            let own = body(ours, &format!("run {ours}"));
            for _ in 0..4 {
                match decide(&comments.clone(), &stamp(ours), &own) {
                    Step::Post => comments.push(seen(1, &own)),
                    Step::Patch { id, text } => {
                        let text = text.unwrap_or(&own.text).to_owned();
                        comments.iter_mut().find(|comment| comment.id == id).unwrap().body = text;
                    }
                    Step::Delete(ids) => comments.retain(|comment| !ids.contains(&comment.id)),
                    Step::Rest { .. } => break,
                }
            }
            let newest = runs.iter().copied().chain([ours]).max().unwrap();
            prop_assert_eq!(comments.len(), 1);
            prop_assert_eq!(comments[0].id, 1);
            prop_assert_eq!(age_of(&comments[0].body).unwrap().0, newest);
        }
    }
}
