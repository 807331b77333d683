//! The API's lists, page after page. Does not know of what.

use serde::de::DeserializeOwned;

use super::api::{Cursor, Pagination};
use super::client::{Ask, Client};
use super::error::VercelError;

/// How many a page has.
const PAGE: &str = "100";

/// A list that never ends is none.
const MOST_PAGES: usize = 1_000;

/// All that a question lists; `open` takes a page apart.
pub(super) async fn list<P: DeserializeOwned, T>(
    client: &Client,
    question: &Ask<'_>,
    open: impl Fn(P) -> (Vec<T>, Pagination),
) -> Result<Vec<T>, VercelError> {
    let mut all = Vec::new();
    let mut cursor: Option<Cursor> = None;
    for _ in 0..MOST_PAGES {
        let mut ask = question.clone();
        ask.query.push(("limit", PAGE));
        ask.query
            .extend(cursor.iter().map(|cursor| ("cursor", cursor.0.as_str())));
        let (page, pagination) = open(client.ask::<P>(&ask).await?);
        all.extend(page);
        match pagination.next {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => break,
        }
    }
    Ok(all)
}
