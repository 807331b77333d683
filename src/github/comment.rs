//! The one comment of a suite on a pull request, updated in place. Knows its mark, not what it says.

mod mark;
mod step;

use serde::Deserialize;
use serde_json::json;

use super::Repository;
use super::client::{Ask, Client, TRIES, Write};
use super::error::{Again, GithubError, Problem};
pub use mark::{Stamp, State};
use step::{Body, Seen, Step, decide};

/// GitHub takes 65,536 characters; ours end well before that.
const MOST_BYTES: usize = 60_000;

/// What is tried where GitHub says that it is too much all the same.
const SMALLER: [usize; 4] = [MOST_BYTES, 30_000, 12_000, 4_000];

/// A pull request has at most 2,500 comments.
const MAX_PAGES: usize = 30;

/// Every round does one thing and looks again. Two runs that write at once need a few, and more would be a quarrel.
const MAX_ROUNDS: u32 = 12;

const PULL_REQUESTS_WRITE: &str = "pull-requests: write";

/// The author of what a workflow's own token writes.
const WORKFLOW_BOT: &str = "github-actions[bot]";

/// Where the comment goes.
#[derive(Clone, Debug)]
pub struct Target {
    /// The repository of the pull request.
    pub repository: Repository,
    /// Its number.
    pub pull_request: u64,
}

/// What has become of the comment, with its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// It was written for the first time.
    Created(String),
    /// It was written anew.
    Updated(String),
    /// It said the same already.
    Unchanged(String),
    /// It is a newer run's, or this run's own end, and stays as it is.
    Newer(String),
}

/// A comment that was not written.
#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    /// The token may not: a fork's run, Dependabot's, or a workflow without the permission.
    #[error(transparent)]
    Forbidden(GithubError),
    /// Anything else.
    #[error(transparent)]
    Github(#[from] GithubError),
}

/// Writes the comment, or writes it anew. `render` gives its text in at most so many bytes.
///
/// Which of two runs is newer is decided by [`Stamp`]'s order. Every write is followed by a look, so that two runs that
/// write at once end with one comment, the newer; and no write is sent a second time without a look before it. GitHub
/// has no conditional write: an older run that has looked before, and writes after, all that a newer one does would
/// stay unseen.
///
/// # Errors
/// The comment is not there as it should be; nothing else depends on it.
pub async fn publish(
    client: &Client,
    target: &Target,
    stamp: &Stamp,
    render: &(dyn Fn(usize) -> String + Sync),
) -> Result<Published, CommentError> {
    let written = write(client, target, stamp, render, true).await?;
    // With leave to begin one, there is always a comment in the end.
    Ok(written.unwrap_or_else(|| Published::Newer(String::new())))
}

/// Like [`publish`], but only where there is a comment already, which would say what no longer holds; `None` where there
/// is none.
///
/// # Errors
/// The comment is not as it should be; nothing else depends on it.
pub async fn update(
    client: &Client,
    target: &Target,
    stamp: &Stamp,
    render: &(dyn Fn(usize) -> String + Sync),
) -> Result<Option<Published>, CommentError> {
    write(client, target, stamp, render, false).await
}

async fn write(
    client: &Client,
    target: &Target,
    stamp: &Stamp,
    render: &(dyn Fn(usize) -> String + Sync),
    begin: bool,
) -> Result<Option<Published>, CommentError> {
    let mut thread = Thread::open(client, target, stamp.clone()).await?;
    let mut sizes = SMALLER.into_iter();
    let mut body = thread.body(&mut sizes, render);
    let mut done: Option<Published> = None;
    let mut failed = 0;
    // What was there before the last change, and how often it has been seen since.
    let mut before: Option<(Vec<Seen>, u32)> = None;
    for _ in 0..MAX_ROUNDS {
        let seen = match (thread.look().await, &done) {
            (Ok(seen), _) => seen,
            // What was written is written, even if nobody can look whether another run was there as well.
            (Err(_), Some(done)) => return Ok(Some(done.clone())),
            (Err(error), None) => return Err(error),
        };
        // A list may lag behind a change, and says nothing new then.
        if let Some((_, times)) = before.as_mut().filter(|(before, _)| *before == seen) {
            *times += 1;
            if *times < TRIES {
                client.wait(Again::Soon, *times).await;
                continue;
            }
            if done.is_some() {
                return Ok(done);
            }
        }
        let written = match decide(&seen, stamp, &body) {
            Step::Post if !begin => return Ok(done),
            Step::Post => thread.post(&body.text).await.map(Published::Created),
            Step::Patch { id, text } => {
                let patched = thread.patch(id, text.unwrap_or(&body.text)).await;
                patched.map(|url| done.clone().unwrap_or(Published::Updated(url)))
            }
            Step::Delete(ids) => {
                for id in ids {
                    thread.delete(id).await?;
                }
                before = Some((seen, 0));
                continue;
            }
            Step::Rest { url, newer: true } => return Ok(Some(Published::Newer(url))),
            Step::Rest { url, newer: false } => return Ok(Some(done.unwrap_or(Published::Unchanged(url)))),
        };
        match written {
            Ok(published) => {
                done = Some(published);
                before = Some((seen, 0));
            }
            Err(error) if error.status() == Some(422) && sizes.len() > 0 => {
                body = thread.body(&mut sizes, render);
            }
            // Someone else has deleted it in between.
            Err(error) if error.is_gone() && !seen.is_empty() => {}
            Err(error) if error.again != Again::Never && failed + 1 < TRIES => {
                failed += 1;
                client.wait(error.again, failed).await;
            }
            Err(error) => return Err(refused(error)),
        }
    }
    Err(CommentError::Github(thread.ask.failed(Problem::Quarrel)))
}

fn refused(error: GithubError) -> CommentError {
    match error.problem {
        Problem::Forbidden { .. } => CommentError::Forbidden(error),
        _ => CommentError::Github(error),
    }
}

/// The comments of a pull request, as whoever has the token.
struct Thread<'a> {
    client: &'a Client,
    target: &'a Target,
    stamp: Stamp,
    ask: Ask,
    login: String,
}

impl<'a> Thread<'a> {
    async fn open(client: &'a Client, target: &'a Target, stamp: Stamp) -> Result<Self, CommentError> {
        #[derive(Deserialize)]
        struct Answer {
            data: Option<Data>,
        }
        #[derive(Deserialize)]
        struct Data {
            viewer: Option<User>,
        }
        let ask = Ask::new("find out whose the token is", PULL_REQUESTS_WRITE);
        let answer = client.graphql::<Answer>(&ask, "query { viewer { login } }").await;
        let login = match answer {
            Ok(answer) => answer.data.and_then(|data| data.viewer?.login),
            // It may be refused to a token of few rights. The answer to the first comment will say it.
            Err(error) if matches!(error.problem, Problem::Forbidden { .. }) || error.is_gone() => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            client,
            target,
            stamp,
            ask: Ask::new(
                format!("comment on pull request {}", target.pull_request),
                PULL_REQUESTS_WRITE,
            ),
            login: login.unwrap_or_else(|| WORKFLOW_BOT.to_owned()),
        })
    }

    /// The body in the next smaller size.
    fn body(
        &self,
        sizes: &mut impl Iterator<Item = usize>,
        render: &(dyn Fn(usize) -> String + Sync),
    ) -> Body {
        let head = self.stamp.head_lines();
        let size = sizes.next().unwrap_or(MOST_BYTES).saturating_sub(head.len());
        Body::new(head, &render(size))
    }

    /// Our comments of this suite, oldest first.
    async fn look(&self) -> Result<Vec<Seen>, CommentError> {
        let mut seen = Vec::new();
        for page in 1..=MAX_PAGES {
            let path = format!("{}?per_page=100&page={page}", self.path());
            let (listed, more): (Vec<Listed>, bool) =
                self.client.page(&self.ask, &path).await.map_err(refused)?;
            seen.extend(listed.into_iter().filter_map(|listed| self.ours(listed)));
            if !more {
                break;
            }
        }
        seen.sort_by_key(|comment| comment.id);
        Ok(seen)
    }

    fn ours(&self, listed: Listed) -> Option<Seen> {
        let author = listed.user?.login?;
        let body = listed.body?;
        let is_ours = same_user(&author, &self.login) && self.stamp.is_marked(&body);
        is_ours.then_some(Seen {
            id: listed.id?,
            url: listed.html_url.unwrap_or_default(),
            body,
        })
    }

    async fn post(&mut self, text: &str) -> Result<String, GithubError> {
        let body = json!({ "body": text });
        let listed: Listed = self
            .client
            .write(&self.ask, Write::Post, &self.path(), &body)
            .await?;
        if let Some(login) = listed.user.and_then(|user| user.login) {
            self.login = login;
        }
        Ok(listed.html_url.unwrap_or_default())
    }

    async fn patch(&self, id: u64, text: &str) -> Result<String, GithubError> {
        let body = json!({ "body": text });
        let listed: Listed = self
            .client
            .write(&self.ask, Write::Patch, &self.path_of(id), &body)
            .await?;
        Ok(listed.html_url.unwrap_or_default())
    }

    async fn delete(&self, id: u64) -> Result<(), CommentError> {
        self.client
            .delete(&self.ask, &self.path_of(id))
            .await
            .map_err(refused)
    }

    fn path(&self) -> String {
        format!(
            "/repos/{}/issues/{}/comments",
            self.target.repository, self.target.pull_request
        )
    }

    fn path_of(&self, id: u64) -> String {
        format!("/repos/{}/issues/comments/{id}", self.target.repository)
    }
}

/// One API has `[bot]` at the end of an app's name, the other has not.
fn same_user(one: &str, other: &str) -> bool {
    let name = |login: &str| login.strip_suffix("[bot]").unwrap_or(login).to_ascii_lowercase();
    name(one) == name(other)
}

#[derive(Deserialize)]
struct Listed {
    id: Option<u64>,
    body: Option<String>,
    html_url: Option<String>,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    login: Option<String>,
}
