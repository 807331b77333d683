//! What evalwave asks of GitHub and what comes of it, against a GitHub that holds state.

mod artifact;
mod baseline;
mod comment;
mod described;
mod transport;

use std::time::Duration;

use evalwave::github::{Client, Secret};

use crate::support::github::{Github, TOKEN};

/// A client of the fake that does not wait between its tries.
fn client(github: &Github) -> Client {
    let client = Client::new(&github.api_url(), Some(&Secret::new(TOKEN))).unwrap();
    client.with_first_wait(Duration::ZERO)
}
