//! Encryption keys: resealing under a new key, and updates without the old one.

use assay_auth::{SealConfig, new_seal_key};
use assay_proto::catalog::*;
use secrecy::ExposeSecret;

use crate::{
    secrets::{CANARY, contents, insider, variable},
    user::web_page,
    world::{World, fault},
};

#[tokio::test]
async fn resealing_allows_the_removal_of_an_encryption_key() {
    let [old, new] = ["old", "new"].map(|id| new_seal_key(id).unwrap());
    let both = format!("{},{}", new.expose_secret(), old.expose_secret());
    let world = World::start_with(old).await;
    let user = world.user().await;
    let insider = insider(&world, &user).await;
    let project = user.project().await;
    let variables = vec![variable("token", true, CANARY), variable("user", false, "ada")];
    let subject = SubjectInput { variables: variables.clone(), ..web_page() };
    let subject = user.create_subject(&project, subject).await.unwrap();
    let mut environments = Vec::new();
    for password in [CANARY, ""] {
        let password = password.to_owned();
        let lab = EnvironmentInput { name: "Lab".into(), password, ..EnvironmentInput::default() };
        environments.push(user.create_environment(&project, lab).await.unwrap().id);
    }
    let case = user.case(&project, "login").await;
    let plan = TestPlanInput { variables, ..TestPlanInput::default() };
    let plan = user.create_plan(&case, plan).await.unwrap();
    let before = insider.get_subject(&project, &subject.id).await;

    let (url, keys) =
        (world.database_url.as_str().into(), SealConfig { encryption_keys: both.into() });
    assert_eq!(assay_catalog::reseal(&url, &keys).await.unwrap(), 3);
    assert_eq!(assay_catalog::reseal(&url, &keys).await.unwrap(), 0);
    let world = world.restarted_with(new).await;
    let insider = world.reconnected(&insider);
    assert_eq!(insider.get_subject(&project, &subject.id).await, before);
    assert_eq!(contents(&insider.get_plan(&plan.id).await.variables), [CANARY, "ada"]);
    for (id, password) in environments.iter().zip([CANARY, ""]) {
        assert_eq!(insider.get_environment(&project, id).await.password, password);
    }
}

#[tokio::test]
async fn an_update_fails_without_effect_if_its_secrets_cannot_be_decrypted() {
    assay_testkit::expect_failures();
    let world = World::start().await;
    let user = world.user().await;
    let insider = insider(&world, &user).await;
    let project = user.project().await;
    let variables = vec![variable("token", true, CANARY)];
    let subject = SubjectInput { variables: variables.clone(), ..web_page() };
    let subject = user.create_subject(&project, subject).await.unwrap();
    let subject = user.get_subject(&project, &subject.id).await;
    let case = user.case(&project, "login").await;
    let plan = TestPlanInput { variables, ..TestPlanInput::default() };
    let plan = user.create_plan(&case, plan).await.unwrap();
    let lab =
        EnvironmentInput { name: "Lab".into(), password: CANARY.into(), ..Default::default() };
    let lab = user.create_environment(&project, lab).await.unwrap();
    let lab = user.get_environment(&project, &lab.id).await;

    let world = world.restarted_with(new_seal_key("other").unwrap()).await;
    let (insider, user) = (world.reconnected(&insider), world.reconnected(&user));
    let events = world.events().await.len();
    let renamed = SubjectInput { name: "Renamed".into(), ..SubjectInput::default() };
    assert_eq!(fault(insider.update_subject(&subject, renamed, &["Name"]).await), "internal");
    let renamed = EnvironmentInput { name: "Renamed".into(), ..EnvironmentInput::default() };
    assert_eq!(fault(insider.update_environment(&lab, renamed, &["Name"]).await), "internal");
    let described = TestPlanInput { description: Some("x".into()), ..TestPlanInput::default() };
    let described = insider.update_plan(&case, &plan, described, &["Description"]).await;
    assert_eq!(fault(described), "internal");
    assert_eq!(user.get_subject(&project, &subject.id).await, subject);
    assert_eq!(user.get_environment(&project, &lab.id).await, lab);
    assert_eq!(user.get_plan(&plan.id).await, plan);
    assert_eq!(world.events().await.len(), events);
}
