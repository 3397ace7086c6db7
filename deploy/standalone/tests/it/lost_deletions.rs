//! Deletions whose events are neither in NATS nor in an outbox any more.

use assay_database::connect_options;
use assay_testkit::eventually;
use secrecy::SecretString;
use serde_json::json;
use sqlx::PgPool;

use crate::{
    junit::upload,
    world::{World, create_project, id},
};

async fn connect(database: &SecretString) -> PgPool {
    PgPool::connect_with(connect_options(database).unwrap()).await.unwrap()
}

/// Runs a statement that is bound to an id, and has to change something.
async fn change(db: &PgPool, statement: &'static str, id: &str) {
    let done = sqlx::query(statement).bind(id).execute(db).await.unwrap();
    assert!(done.rows_affected() > 0, "{statement} changed nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_deletions_of_a_project_and_a_customer_are_found_within_a_day() {
    let world = World::start().await;
    let api = &world.api;
    let (gone, kept) = (create_project(api).await, create_project(api).await);
    let mut executions = Vec::new();
    for project in [&gone, &kept] {
        let set = api.post(&format!("{project}/testsets"), json!({"Name": "Nightly"})).await;
        let set = format!("{project}/testsets/{}", id(&set.created()));
        let report = r#"<testsuite><testcase name="adds up"/></testsuite>"#;
        let execution = upload(api, &set, report).await.created();
        executions.push(format!("{project}/executions/{}", id(&execution)));
    }
    let customer = world.create_customer("gone").await;
    let customer = id(&customer);
    let [identity, catalog, execution, notification] = world.databases();
    let (identity, catalog) = (connect(identity).await, connect(catalog).await);
    let (execution, notification) = (connect(execution).await, connect(notification).await);
    let create = "insert into project (customer_id, id, name, description)
                  values ($1::uuid, gen_random_uuid(), 'Rocket', '')";
    change(&catalog, create, customer).await;
    let notified = "select count(*) from notification where customer_id = $1::uuid";
    eventually("a notification of the customer", async || {
        let notified = sqlx::query_scalar(notified).bind(customer).fetch_one(&notification);
        (notified.await.unwrap_or(0_i64) > 0).then_some(())
    })
    .await;

    // The owners have deleted them, and the events have expired.
    let delete = "update project set deleted_at = now() where id = $1::uuid";
    change(&catalog, delete, gone.rsplit_once('/').unwrap().1).await;
    let delete = "update customer set deleted_at = now() where id = $1::uuid";
    change(&identity, delete, customer).await;
    // The clock of the last database was a year ahead when it has asked.
    let ago = "update checked_deletions set checked_at = now() - interval '25 hours'
               where $1::text is not null";
    let ahead = "update checked_deletions set checked_at = now() + interval '1 year'
                 where $1::text is not null";
    for (db, asked) in [(&catalog, ago), (&execution, ago), (&notification, ahead)] {
        change(db, asked, "").await;
    }
    api.get(&executions[0]).await.ok();
    let world = world.restart().await;
    let api = &world.api;

    eventually("the deletion of the project", async || {
        (api.get(&executions[0]).await.status == 404).then_some(())
    })
    .await;
    api.get(&executions[1]).await.ok();
    let deleted = "select count(*) from deleted_customer where customer_id = $1::uuid";
    for db in [&catalog, &notification] {
        eventually("the deletion of the customer", async || {
            let deleted = sqlx::query_scalar(deleted).bind(customer).fetch_one(db);
            (deleted.await.unwrap_or(0_i64) == 1).then_some(())
        })
        .await;
    }
    world.stop().await;
}
