//! The image of a run: its workspace is put into a container once, and kept as what all its sandboxes start from, so that
//! none has to be sent the same files again.

use std::sync::Arc;

use bollard::Docker;
use bollard::query_parameters::RemoveImageOptionsBuilder;
use camino::Utf8Path;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connection::{failed, is_absent};
use super::image::{Image, commit, say};
use super::{Shared, create};
use crate::model::with_causes;
use crate::sandbox::{Ledger, Sandbox as _, SandboxError, Setup};

/// Fewest sandboxes for which it is made: it costs as much as about two of them, and spares each about a fifth.
const WORTH: usize = 16;

const REPOSITORY: &str = "evalwave-workspace";

/// Makes it, and gives its name; `None` where it would not pay, could not hold the workspace, or cannot be made, which is
/// said: each sandbox is sent the files then. The ledger has it, under the name of the sandbox in which it was made, until
/// [`forget`].
pub(super) async fn keep(
    shared: &Arc<Shared>,
    image: &Image,
    setup: &Setup,
    ledger: &dyn Ledger,
    output: &mpsc::Sender<Vec<u8>>,
) -> Option<String> {
    if setup.sandboxes < WORTH || !can_hold(shared, image) {
        return None;
    }
    let line = format!(
        "putting the workspace into an image, for {} sandboxes",
        setup.sandboxes
    );
    say(output, &line).await;
    let why = match make(shared, image, setup, ledger).await {
        Ok(name) => return Some(name),
        Err(error) => with_causes(&error),
    };
    let line = format!("each sandbox is sent the workspace, as no image can be made of it: {why}");
    say(output, &line).await;
    None
}

/// What is written to a volume or a mount is in no image.
fn can_hold(shared: &Shared, image: &Image) -> bool {
    let covers =
        |target: &Utf8Path| target.starts_with(&image.workspace) || image.workspace.starts_with(target);
    let mut mounts = shared.config.mounts.iter();
    !shared.config.read_only
        && image.volumes.is_empty()
        && !mounts.any(|mount| covers(Utf8Path::new(&mount.target)))
}

async fn make(
    shared: &Arc<Shared>,
    image: &Image,
    setup: &Setup,
    ledger: &dyn Ledger,
) -> Result<String, SandboxError> {
    let run_id = &setup.spec.run_id;
    ledger.named(&setup.spec.name).await?;
    // That of an earlier session of the run.
    forget(&shared.docker, run_id).await?;
    let mut sandbox = create(shared, image, &setup.spec).await?;
    let filling = async {
        sandbox.upload(&setup.workspace).await?;
        let (docker, id, tag) = (shared.docker.clone(), sandbox.id.clone(), run_id.clone());
        let committing = async move { commit(&docker, &id, REPOSITORY, &tag).await };
        let (docker, tag) = (shared.docker.clone(), run_id.clone());
        let undo = async move |_| {
            let _ = forget(&docker, &tag).await;
        };
        let kept = shared.creating.carry(committing, undo).await;
        kept.map_err(|error| SandboxError::io("cannot keep the container as an image", error))?
    };
    let filled = timeout(setup.limit, filling).await;
    // What cannot be deleted the run finds by its label, at its end.
    let _ = Box::new(sandbox).stop().await;
    match filled {
        Ok(filled) => filled.map(|()| named(run_id)),
        Err(_) => Err(SandboxError::new("it took longer than `attempt.phases.setup`")),
    }
}

/// Deletes the image of a run; whether it was there. While a container uses it, that is an error: nobody would find it
/// without its name. What it was made of stays.
pub(super) async fn forget(docker: &Docker, run_id: &str) -> Result<bool, SandboxError> {
    let options = RemoveImageOptionsBuilder::default().noprune(true).build();
    match docker.remove_image(&named(run_id), Some(options), None).await {
        Ok(_) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(failed("cannot delete the image of the workspace", error)),
    }
}

fn named(run_id: &str) -> String {
    format!("{REPOSITORY}:{run_id}")
}
