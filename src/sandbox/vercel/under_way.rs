//! Creations under way. Each comes to its end, whoever has gone meanwhile, and a sandbox that nobody takes is deleted. Knows
//! nothing of how often one is asked for.

use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{RwLock, oneshot};

use super::Account;
use super::api::Created;
use super::client::Ask;
use super::create::CREATION;
use super::error::{Problem, VercelError};
use crate::sandbox::limit::Admission;

/// What is under way in one run. Held for reading by each, so that whoever has it for writing knows that nothing is.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<RwLock<()>>);

/// A sandbox that may have come to be, and is nobody's yet: dropped, it is deleted, and keeps its place until then.
#[derive(Debug)]
pub(super) struct Unclaimed {
    pub(super) account: Arc<Account>,
    pub(super) under_way: UnderWay,
    pub(super) name: String,
    pub(super) place: Option<Arc<Admission>>,
}

impl UnderWay {
    /// Returns when nothing is under way.
    pub(super) async fn none(&self) {
        drop(self.0.write().await);
    }

    /// Asks for a sandbox, once.
    pub(super) async fn ask(
        &self,
        account: &Arc<Account>,
        place: &Arc<Admission>,
        version: &str,
        name: &str,
        body: &Arc<Value>,
    ) -> Result<Created, VercelError> {
        let under_way = Arc::clone(&self.0).read_owned().await;
        let (account, place, body) = (Arc::clone(account), Arc::clone(place), Arc::clone(body));
        let (version, name) = (version.to_owned(), name.to_owned());
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            let ask = Ask::post(WHAT, vec![&version, "sandboxes"], &body)
                .limit(Some(CREATION))
                .once();
            let created = account.client.ask::<Created>(&ask).await;
            if let Err(Ok(_)) = sender.send(created) {
                let _ = account.reaper.delete(&name, None).await;
            }
            drop((under_way, place));
        });
        receiver.await.unwrap_or_else(|error| {
            Err(VercelError {
                asked: WHAT.to_owned(),
                problem: Problem::Unexpected(error.to_string()),
            })
        })
    }
}

/// What follows `cannot`.
const WHAT: &str = "create the sandbox";

impl Unclaimed {
    /// It is somebody's, or there is none.
    pub(super) fn settled(mut self) {
        self.place = None;
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let (Some(place), Ok(runtime)) = (self.place.take(), Handle::try_current()) else {
            return;
        };
        let (account, under_way) = (Arc::clone(&self.account), self.under_way.clone());
        let name = std::mem::take(&mut self.name);
        runtime.spawn(async move {
            let _under_way = under_way.0.read().await;
            // One that cannot be deleted is found by its label, at the end of the run.
            let _ = account.reaper.delete(&name, None).await;
            drop(place);
        });
    }
}
