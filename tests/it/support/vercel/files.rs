//! Questions about files.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::answer::{Answer, Answered};
use super::routes::Question;
use super::state::CWD;
use super::{Shared, sessions};

#[derive(Deserialize)]
struct Asked {
    path: String,
    cwd: Option<String>,
    #[serde(default)]
    recursive: bool,
}

impl Asked {
    fn path(&self) -> String {
        let cwd = self.cwd.as_deref().unwrap_or(CWD);
        match self.path.starts_with('/') {
            true => self.path.clone(),
            false => format!("{cwd}/{}", self.path),
        }
    }
}

/// Without `recursive` the parent has to be there, as the official client's own fake has it.
pub(crate) async fn mkdir(shared: &Arc<Shared>, question: &Question) -> Answered {
    let asked: Asked = question.parsed()?;
    let machine = sessions::running(shared, &question.ids[0]).await?;
    let made = machine.mkdir(&asked.path(), asked.recursive).await;
    made.map_err(|error| Answer::bad_request(&format!("mkdir failed: {error}")))?;
    Ok(Answer::json(&json!({})))
}

/// Unpacks a compressed tar.
pub(crate) async fn write(shared: &Arc<Shared>, question: &Question) -> Answered {
    if question.content_type != "application/gzip" {
        return Err(Answer::bad_request("Expected content type application/gzip"));
    }
    let machine = sessions::running(shared, &question.ids[0]).await?;
    let directory = question.directory.as_deref().unwrap_or("/");
    let written = machine.write(directory, &question.body).await;
    written.map_err(|error| Answer::bad_request(&format!("write failed: {error}")))?;
    Ok(Answer::json(&json!({})))
}

pub(crate) async fn read(shared: &Arc<Shared>, question: &Question) -> Answered {
    let asked: Asked = question.parsed()?;
    let machine = sessions::running(shared, &question.ids[0]).await?;
    match machine.read(&asked.path()).await {
        Ok(Some(bytes)) => Ok(Answer::bytes(bytes)),
        Ok(None) => Err(Answer::not_found(&asked.path())),
        Err(error) => Err(Answer::bad_request(&format!("read failed: {error}"))),
    }
}
