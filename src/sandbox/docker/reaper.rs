//! Deletes the containers of a run by its label, and the image of its workspace by its name, from any process.

use std::collections::HashMap;

use async_trait::async_trait;
use bollard::Docker;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures::StreamExt as _;

use super::connection::{DockerEngine, failed, is_absent};
use super::{RUN_LABEL, STARTING, workspace};
use crate::model::{LeftSandbox, Whereabouts, file_name};
use crate::sandbox::under_way::UnderWay;
use crate::sandbox::{Reaped, Reaper, SandboxError};

/// Deletes containers of runs.
#[derive(Clone, Debug)]
pub struct DockerReaper {
    engine: DockerEngine,
    creating: UnderWay,
}

impl DockerReaper {
    /// For runs that used this engine.
    pub fn new(engine: DockerEngine) -> Self {
        Self::after(engine, UnderWay::default())
    }

    /// For a run whose creations may still be under way.
    pub(super) fn after(engine: DockerEngine, creating: UnderWay) -> Self {
        Self { engine, creating }
    }

    pub(super) fn engine(&self) -> &DockerEngine {
        &self.engine
    }
}

#[async_trait]
impl Reaper for DockerReaper {
    fn whereabouts(&self) -> Whereabouts {
        Whereabouts::Docker {
            host: self.engine.host().to_owned(),
        }
    }

    /// The label is a container's from its very creation, so that names are not needed.
    async fn reap(&self, run_id: &str, _left: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        // Out of a file that anybody may have written, and part of what the engine is asked.
        if file_name(run_id) != run_id {
            return Err(SandboxError::new(format!(
                "cannot delete the containers of `{run_id}`: no run is called that"
            )));
        }
        let docker = self.engine.connect()?;
        self.engine.negotiate(&docker).await?;
        // A container that the engine is about to create is in no list yet.
        self.creating.none().await;
        let label = format!("{RUN_LABEL}={run_id}");
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&HashMap::from([("label", vec![label.as_str()])]))
            .build();
        let found = docker.list_containers(Some(options)).await;
        let found = found.map_err(|error| failed("cannot list the run's containers", error))?;
        let ids = found.into_iter().filter_map(|container| container.id);
        let mut deletions: Vec<Result<bool, SandboxError>> = futures::stream::iter(ids)
            .map(|id| {
                let docker = &docker;
                async move { delete(docker, &id).await }
            })
            .buffer_unordered(STARTING)
            .collect()
            .await;
        deletions.push(workspace::forget(&docker, run_id).await);
        Ok(deletions.into_iter().collect())
    }
}

/// Kills and deletes a container, with its volumes; returns when it is not there, and whether it was.
pub(super) async fn delete(docker: &Docker, id: &str) -> Result<bool, SandboxError> {
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    match docker.remove_container(id, Some(options)).await {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        // Somebody else is at it.
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 409, .. }) => {
            let options = WaitContainerOptionsBuilder::default()
                .condition("removed")
                .build();
            let removed = docker.wait_container(id, Some(options)).next().await;
            match removed {
                Some(Err(error)) if !is_absent(&error) => {
                    // A container that was killed has an exit code that is no success: it is gone all the same.
                    let is_exit = matches!(error, bollard::errors::Error::DockerContainerWaitError { .. });
                    if is_exit {
                        Ok(true)
                    } else {
                        Err(failed("cannot delete the container", error))
                    }
                }
                _ => Ok(true),
            }
        }
        Err(error) => Err(failed("cannot delete the container", error)),
    }
}
