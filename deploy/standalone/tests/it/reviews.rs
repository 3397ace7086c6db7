//! Reviews of many test reports in one request.

use serde_json::{Value, json};

use crate::{
    customer::Customer,
    junit::{report, upload},
    world::{create_project, id},
};

/// Maximum number of ids in a review.
const MOST: usize = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_test_reports_are_reviewed_by_their_ids() {
    let api = Customer::new().await.api;
    let project = create_project(&api).await;
    let sets = format!("{project}/testsets");
    let set = api.post(&sets, json!({"Name": "All"})).await.created();
    let set = format!("{sets}/{}", id(&set));
    let execution = upload(&api, &set, report(MOST)).await.created();
    let reports = execution["TestReports"].as_array().unwrap();
    let mut ids: Vec<Value> = reports.iter().map(|report| json!(id(report))).collect();
    let at = format!("{project}/executions/{}", id(&execution));

    let review = json!({"Reports": ids, "Status": "Accepted", "Comment": "Nothing has failed"});
    assert!(review.to_string().len() > 380 << 10, "the largest review is nearly 400 KiB");
    let reviewed = api.put(&format!("{at}/reviews"), review).await.ok();

    assert_eq!(reviewed["Reviewed"], MOST);
    let open = api.get(&format!("{at}/reports?status=InReview")).await.ok();
    assert_eq!(open, json!([]));
    ids.push(ids[0].clone());
    let review = json!({"Reports": ids, "Status": "Accepted"});
    let refused = api.put(&format!("{at}/reviews"), review).await.expect(422).body.clone();
    let refused: Value = serde_json::from_slice(&refused).unwrap();
    assert_eq!(refused["errors"][0]["pointer"], "/Reports", "{refused}");
}
