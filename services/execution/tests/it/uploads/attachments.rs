//! Attachments of reports become artifacts.

use std::io::{Cursor, Read};

use anyhow::Result;
use assay_proto::execution::{Execution, FormFile, OpenExecutionInput};
use assay_testkit::eventually;
use zip::ZipArchive;

use super::only_instance;
use crate::world::World;

const ALLURE: &[u8] = include_bytes!("../../../../kit/formats/tests/archives/pytest.zip");

/// Returns the links to artifacts in the instances of an execution.
async fn links(world: &World, execution: &Execution) -> Result<Vec<String>> {
    let mut links = Vec::new();
    for report in &execution.test_reports {
        let instance = only_instance(world, report).await?;
        let earlier = instance.attempts.into_iter().flat_map(|attempt| attempt.steps);
        links.extend(instance.steps.into_iter().chain(earlier).flat_map(|step| step.screenshots));
    }
    Ok(links)
}

fn part(name: &str, is_attachment: bool) -> FormFile {
    FormFile { name: name.to_owned(), is_attachment, ..FormFile::default() }
}

#[tokio::test]
async fn attachments_of_allure_results_become_artifacts() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[ALLURE]).await?;

    let statistic = execution.statistic.as_ref().unwrap();
    assert_eq!((statistic.test_cases_passed, statistic.test_cases_with_error), (3, 1));
    assert_eq!(world.count("select count(*) from artifact").await?, 2);
    assert_eq!(world.count("select count(*) from stray_file").await?, 0);
    let links = links(&world, &execution).await?;
    assert!(!links.is_empty());
    assert!(links.iter().all(|link| link.contains("/api/artifacts/")), "{links:?}");
    Ok(())
}

#[tokio::test]
async fn a_form_with_allure_results_is_read_as_their_folder() -> Result<()> {
    let world = World::new().await?;
    let mut archive = ZipArchive::new(Cursor::new(ALLURE))?;
    let mut files = Vec::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index)?;
        let mut contents = Vec::new();
        file.read_to_end(&mut contents)?;
        let name = file.name()?.rsplit('/').next().unwrap_or_default().to_owned();
        files.push((part(&name, false), contents));
    }
    files.retain(|(part, _)| !part.name.is_empty());
    let files: Vec<_> = files.iter().map(|(part, file)| (part.clone(), &file[..])).collect();

    let [of_form, of_archive] = [world.upload_form(&files).await?, world.upload(&[ALLURE]).await?];

    let counts = |execution: &Execution| {
        let statistic = execution.statistic.as_ref().unwrap();
        [statistic.test_cases_passed, statistic.test_cases_failed, statistic.test_cases_with_error]
    };
    assert_eq!(counts(&of_form), [3, 2, 1]);
    assert_eq!(counts(&of_form), counts(&of_archive));
    assert_eq!(links(&world, &of_form).await?.len(), links(&world, &of_archive).await?.len());
    assert_eq!(world.count("select count(*) from artifact").await?, 4);
    Ok(())
}

#[tokio::test]
async fn reports_refer_to_attachments_of_the_form_by_their_paths() -> Result<()> {
    const REPORT: &[u8] = b"<testsuite><testcase classname='shop' name='pays'><failure/>
        <system-out>[[ATTACHMENT|shots/a b.png]]
[[ATTACHMENT|video.webm]]
</system-out>
        </testcase></testsuite>";
    let world = World::new().await?;
    let picture = (part("shots/a b.png", true), &b"picture"[..]);
    let unused = (part("b.png", true), &b"unused"[..]);

    let execution =
        world.upload_form(&[picture, (part("junit.xml", false), REPORT), unused]).await?;

    let links = links(&world, &execution).await?;
    let [link] = &links[..] else { panic!("one file was sent: {links:?}") };
    assert!(link.contains("-a_b.png"), "{link}");
    let artifacts = "select count(*) from artifact where content_type = 'image/png' and size = 7";
    assert_eq!(world.count(artifacts).await?, 1);
    assert_eq!(world.count("select count(*) from artifact").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_repeated_report_has_no_effect_and_that_of_another_reporter_has() -> Result<()> {
    let world = World::new().await?;
    let open = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        ..OpenExecutionInput::default()
    };
    let open = world.open(open).await?;
    let mut accepted = Vec::new();
    for reporter in ["linux", "windows", "linux"] {
        accepted.push(world.add_report(&open.id, Some(reporter), ALLURE).await?.accepted);
    }
    assert!(accepted[0] > 0);
    assert_eq!(accepted, [accepted[0], accepted[0], 0]);
    assert_eq!(world.count("select count(*) from artifact").await?, 4);
    assert_eq!(world.count("select count(*) from stray_file").await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_attachment_that_is_being_removed_does_not_become_an_artifact() -> Result<()> {
    let world = World::new().await?;
    // The results wait while their files are stored.
    let mut lock = assay_database::begin(&world.db).await?;
    sqlx::query("lock table test_report in exclusive mode").execute(&mut *lock).await?;
    let removal = async {
        let stored = async || {
            (world.count("select count(*) from stray_file").await.ok()? == 2).then_some(())
        };
        eventually("the files", stored).await;
        world.change("update stray_file set is_removed = true").await?;
        lock.commit().await?;
        anyhow::Ok(())
    };

    let (uploaded, removed) = tokio::join!(world.upload(&[ALLURE]), removal);

    removed?;
    assert!(uploaded.is_err(), "the results refer to the files");
    assert_eq!(world.count("select count(*) from artifact").await?, 0);
    assert_eq!(world.count("select count(*) from execution").await?, 0);
    Ok(())
}
