//! The image of a run that holds its workspace: when there is one, what is in it, and that it does not stay.

use std::collections::HashMap;

use bollard::models::ContainerConfig;
use bollard::query_parameters::{CommitContainerOptionsBuilder, ListImagesOptionsBuilder};
use evalwave::config::{DockerImage, DockerMount};
use evalwave::model::Boot;
use evalwave::sandbox::docker::DockerReaper;
use evalwave::sandbox::{Backend as _, Reaper as _, Sandbox, Setup, Warm};
use tokio::sync::mpsc;

use super::{Bench, setup, workspace};
use crate::support::docker::{IMAGE, containers};
use crate::support::sandbox::{Remembered, sh};

/// The first sandbox of many, after the workspace has changed: it holds `before` where it was sent before that.
async fn first_of_many(bench: &Bench) -> (Box<dyn Sandbox>, Warm, Remembered) {
    bench.write("lock.txt", "before");
    let backend = bench.backend();
    let many = Setup {
        sandboxes: 16,
        ..setup(bench, None)
    };
    let ledger = Remembered::default();
    let warm = backend
        .prepare(&many, &ledger, &mpsc::channel(64).0)
        .await
        .unwrap();
    bench.write("lock.txt", "after");
    let mut sandbox = backend
        .start(&bench.spec("a"), &Remembered::default())
        .await
        .unwrap();
    sandbox.upload(&workspace(bench)).await.unwrap();
    (sandbox, warm, ledger)
}

/// The images of the run, with a name and without: they have the label of the sandbox in which they were made.
async fn images(bench: &Bench) -> usize {
    let label = format!("evalwave.run={}", bench.run_id);
    let options = ListImagesOptionsBuilder::default()
        .filters(&HashMap::from([("label", vec![label.as_str()])]))
        .build();
    bench.client().list_images(Some(options)).await.unwrap().len()
}

#[tokio::test]
async fn many_sandboxes_start_with_the_workspace_in_them_and_what_held_it_is_deleted_with_them() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.user = Some("agent".to_owned());
    let (mut sandbox, warm, ledger) = first_of_many(&bench).await;
    assert_eq!((warm, sandbox.boot()), (Warm::Cold(None), Boot::Cold));
    let text = "cat lock.txt; ls; stat -c %U . lock.txt; id -un; echo mine >lock.txt";
    assert_eq!(
        sh(&mut *sandbox, text).await,
        "beforelock.txt\nagent\nagent\nagent\n"
    );
    let left = containers(&bench.host, &bench.run_id).await;
    assert_eq!(left.len(), 1, "the one in which it was made is gone");
    assert_eq!(images(&bench).await, 1);
    // So that it is found after any crash.
    assert_eq!(*ledger.named.lock().unwrap(), [bench.spec("setup").name]);
    assert_eq!(*ledger.gone.lock().unwrap(), [] as [&str; 0]);

    // An earlier session's gives way to that of the next.
    sandbox.stop().await.unwrap();
    let (mut next, ..) = first_of_many(&bench).await;
    assert_eq!(sh(&mut *next, "cat lock.txt").await, "before");

    // What another process does after this one was killed.
    let reaper = DockerReaper::new(bench.engine());
    let reaped = reaper.reap(&bench.run_id, &[]).await.unwrap();
    assert_eq!((reaped.deleted, reaped.failed.len()), (2, 0));
    assert!(containers(&bench.host, &bench.run_id).await.is_empty());
    assert_eq!(images(&bench).await, 0);
    assert_eq!(reaper.reap(&bench.run_id, &[]).await.unwrap().deleted, 0);
}

#[tokio::test]
async fn what_no_image_can_hold_is_sent_to_each() {
    let Some(mut bench) = Bench::new() else { return };
    let plain = bench.config.clone();
    bench.write("shared/file.txt", "");
    bench.write("image/Dockerfile", &format!("FROM {IMAGE}\nVOLUME /work/data\n"));
    let mount = |target: &str| DockerMount {
        source: "./shared".to_owned(),
        target: target.to_owned(),
        read_only: false,
    };
    let changes: [&dyn Fn(&mut Bench); 4] = [
        &|bench| bench.config.read_only = true,
        &|bench| bench.config.mounts = vec![mount("/work/cache/")],
        &|bench| bench.config.mounts = vec![mount("/work")],
        &|bench| {
            bench.config.image = DockerImage::Built {
                context: "image".into(),
                dockerfile: "Dockerfile".into(),
            }
        },
    ];
    for change in changes {
        bench.config = plain.clone();
        change(&mut bench);
        let (mut sandbox, warm, _) = first_of_many(&bench).await;
        assert_eq!(warm, Warm::Cold(None), "{:?}", bench.config);
        assert_eq!(
            sh(&mut *sandbox, "cat lock.txt").await,
            "after",
            "{:?}",
            bench.config
        );
        assert_eq!(images(&bench).await, 0);
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_workspace_that_cannot_be_put_into_an_image_is_said_and_sent_to_each() {
    let Some(bench) = Bench::new() else { return };
    let backend = bench.backend();
    let many = Setup {
        sandboxes: 16,
        ..setup(&bench, None)
    };
    let ledger = Remembered::default();
    // `lock.txt` is not there.
    let (sender, mut said) = mpsc::channel(64);
    let warm = backend.prepare(&many, &ledger, &sender).await.unwrap();
    assert_eq!(warm, Warm::Cold(None));
    said.recv().await.unwrap();
    let why = String::from_utf8(said.recv().await.unwrap()).unwrap();
    assert!(
        why.contains("no image can be made of it: cannot read the workspace: "),
        "{why}"
    );
    assert!(containers(&bench.host, &bench.run_id).await.is_empty());

    bench.write("lock.txt", "here by now");
    let mut sandbox = backend.start(&bench.spec("a"), &ledger).await.unwrap();
    sandbox.upload(&workspace(&bench)).await.unwrap();
    assert_eq!(sh(&mut *sandbox, "cat lock.txt").await, "here by now");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn an_image_that_is_in_use_keeps_its_name_and_is_not_called_deleted() {
    let Some(bench) = Bench::new() else { return };
    let (sandbox, ..) = first_of_many(&bench).await;
    // One that the engine still has, and that this run does not know of.
    let config = bollard::models::ContainerCreateBody {
        image: Some(format!("evalwave-workspace:{}", bench.run_id)),
        labels: Some(HashMap::from([("evalwave.run".to_owned(), String::new())])),
        ..Default::default()
    };
    let options = None::<bollard::query_parameters::CreateContainerOptions>;
    let other = bench.client().create_container(options, config).await.unwrap().id;
    sandbox.stop().await.unwrap();
    let reaper = DockerReaper::new(bench.engine());
    let reaped = reaper.reap(&bench.run_id, &[]).await.unwrap();
    assert_eq!((reaped.deleted, reaped.failed.len()), (0, 1));

    let options = None::<bollard::query_parameters::RemoveContainerOptions>;
    bench.client().remove_container(&other, options).await.unwrap();
    let reaped = reaper.reap(&bench.run_id, &[]).await.unwrap();
    assert_eq!((reaped.deleted, reaped.failed.len()), (1, 0));
    assert_eq!(images(&bench).await, 0);
}

#[tokio::test]
async fn the_image_that_it_was_made_of_stays_also_without_a_name() {
    let Some(mut bench) = Bench::new() else { return };
    let client = bench.client();
    let sandbox = bench.start().await;
    let name = format!("evalwave-{}-a", bench.run_id);
    let options = CommitContainerOptionsBuilder::default().container(&name).build();
    let base = client
        .commit_container(options, ContainerConfig::default())
        .await
        .unwrap()
        .id;
    sandbox.stop().await.unwrap();
    bench.config.image = DockerImage::Named(base.clone());
    let (sandbox, ..) = first_of_many(&bench).await;
    sandbox.stop().await.unwrap();
    let reaper = DockerReaper::new(bench.engine());
    assert_eq!(reaper.reap(&bench.run_id, &[]).await.unwrap().deleted, 1);
    client.inspect_image(&base).await.unwrap();
    let options = None::<bollard::query_parameters::RemoveImageOptions>;
    client.remove_image(&base, options, None).await.unwrap();
}

#[tokio::test]
async fn a_run_of_another_kind_of_name_is_nobodys_to_delete() {
    let Some(bench) = Bench::new() else { return };
    let reaper = DockerReaper::new(bench.engine());
    let error = reaper.reap("a/../../containers/db", &[]).await.unwrap_err();
    assert!(error.to_string().ends_with("no run is called that"), "{error}");
}
