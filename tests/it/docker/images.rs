//! Images: built, warm, and what is said of those that cannot be had.

use evalwave::config::DockerImage;
use evalwave::model::Boot;
use evalwave::sandbox::{Backend as _, Warm};
use tokio::sync::mpsc;

use super::{Bench, prepare, workspace};
use crate::support::docker::{IMAGE, containers};
use crate::support::sandbox::{Remembered, sh};

#[tokio::test]
async fn an_image_is_built_with_its_progress_told() {
    let Some(mut bench) = Bench::new() else { return };
    bench.write("lock.txt", "");
    bench.write(
        "image/Dockerfile",
        &format!("FROM {IMAGE}\nCOPY in.txt /in.txt\nRUN cat /in.txt >/out.txt\nWORKDIR /there\n"),
    );
    bench.write("image/in.txt", "into the image");
    bench.write("image/.dockerignore", "big\n");
    bench.write("image/big/file", "left out");
    bench.config.image = DockerImage::Built {
        context: "image".into(),
        dockerfile: "Dockerfile".into(),
    };
    let (prepared, said, _) = prepare(&bench, None).await;
    assert_eq!(prepared, Ok(Warm::Cold(None)), "{said}");
    assert!(
        said.contains("from 3 files\n") && said.contains("RUN cat /in.txt"),
        "{said}"
    );
    let mut sandbox = bench.start().await;
    assert_eq!(
        sh(&mut *sandbox, "cat /out.txt; pwd").await,
        "into the image/there\n"
    );
    sandbox.stop().await.unwrap();

    bench.write(
        "image/Dockerfile",
        &format!("FROM {IMAGE}\nRUN echo why it broke; exit 3\n"),
    );
    bench.write("image/.dockerignore", "*\n");
    bench.config.image = DockerImage::Built {
        context: "image".into(),
        dockerfile: "Dockerfile".into(),
    };
    let why = prepare(&bench, None).await.0.unwrap_err();
    assert!(why.starts_with("cannot build the image from `"), "{why}");
    assert!(why.contains("exit 3") && why.contains("why it broke"), "{why}");
}

#[tokio::test]
async fn an_image_with_a_volume_has_no_warm_image_which_would_not_hold_what_is_in_it() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.warm = true;
    bench.write("lock.txt", "");
    bench.write("image/Dockerfile", &format!("FROM {IMAGE}\nVOLUME /work\n"));
    bench.config.image = DockerImage::Built {
        context: "image".into(),
        dockerfile: "Dockerfile".into(),
    };
    let (prepared, said, _) = prepare(&bench, Some("true")).await;
    let Ok(Warm::Cold(Some(why))) = prepared else {
        panic!("{prepared:?} {said}")
    };
    assert!(why.contains("a volume at `/work`"), "{why}");
}

#[tokio::test]
async fn a_warm_image_is_made_once_and_made_anew_when_anything_in_it_changes() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.warm = true;
    bench.write("lock.txt", &bench.run_id);
    let setup = "cat lock.txt >installed.txt; echo installing";
    let (prepared, said, ledger) = prepare(&bench, Some(setup)).await;
    let Ok(Warm::From(name)) = prepared else {
        panic!("{prepared:?} {said}")
    };
    assert!(said.contains("installing\n"), "{said}");
    assert_eq!(*ledger.named.lock().unwrap(), [bench.spec("setup").name]);
    assert_eq!(*ledger.gone.lock().unwrap(), [bench.spec("setup").name]);
    assert!(containers(&bench.host, &bench.run_id).await.is_empty());

    let (again, said, ledger) = prepare(&bench, Some(setup)).await;
    assert_eq!(again, Ok(Warm::From(name.clone())));
    assert!(
        said.contains("done already") && !said.contains("installing"),
        "{said}"
    );
    assert!(ledger.named.lock().unwrap().is_empty());

    // A run of it: nothing is uploaded, all is there.
    let backend = bench.backend();
    let sent = mpsc::channel(64).0;
    let whole = super::setup(&bench, Some(setup));
    backend
        .prepare(&whole, &Remembered::default(), &sent)
        .await
        .unwrap();
    let mut sandbox = backend
        .start(&bench.spec("a"), &Remembered::default())
        .await
        .unwrap();
    assert_eq!(sandbox.boot(), Boot::Warm);
    sandbox.upload(&workspace(&bench)).await.unwrap();
    assert_eq!(
        sh(&mut *sandbox, "cat installed.txt lock.txt").await,
        bench.run_id.repeat(2)
    );
    sandbox.stop().await.unwrap();

    bench.write("lock.txt", "changed");
    let (changed, ..) = prepare(&bench, Some(setup)).await;
    let Ok(Warm::From(other)) = changed else {
        panic!("{changed:?}")
    };
    assert_ne!(other, name);
    bench.config.pids = Some(100);
    let (told, ..) = prepare(&bench, Some(setup)).await;
    let Ok(Warm::From(limited)) = told else {
        panic!("{told:?}")
    };
    assert_ne!(limited, other);
    for image in [name, other, limited] {
        let options = None::<bollard::query_parameters::RemoveImageOptions>;
        bench.client().remove_image(&image, options, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_setup_that_fails_is_left_to_each_sandbox_and_said() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.warm = true;
    bench.write("lock.txt", &bench.run_id);
    let (prepared, ..) = prepare(&bench, Some("exit 4")).await;
    let why = "`attempt.setup` ended with exit code 4".to_owned();
    assert_eq!(prepared, Ok(Warm::Cold(Some(why))));
    assert!(containers(&bench.host, &bench.run_id).await.is_empty());
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named() {
    let Some(mut bench) = Bench::new() else { return };
    bench.write("lock.txt", "");
    bench.config.image = DockerImage::Named("localhost:1/no/such/image:tag".to_owned());
    let why = prepare(&bench, None).await.0.unwrap_err();
    assert!(
        why.starts_with("cannot pull the image `localhost:1/no/such/image:tag`"),
        "{why}"
    );
    assert!(why.contains("`sandbox.image`"), "{why}");
}
