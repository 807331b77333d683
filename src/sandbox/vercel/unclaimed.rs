//! A sandbox that may have come to be, and is nobody's yet. Knows nothing of how it is asked for.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::Account;
use crate::sandbox::limit::Admission;
use crate::sandbox::under_way::UnderWay;

/// Dropped, it is deleted, and keeps its place until then.
#[derive(Debug)]
pub(super) struct Unclaimed {
    pub(super) account: Arc<Account>,
    pub(super) under_way: UnderWay,
    pub(super) name: String,
    pub(super) place: Option<Arc<Admission>>,
}

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
            let _under_way = under_way.begin().await;
            // One that cannot be deleted is found by its label, at the end of the run.
            let _ = account.reaper.delete(&name, None).await;
            drop(place);
        });
    }
}
