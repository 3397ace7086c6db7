//! The routes of TestRail's and ReportPortal's clients, called with too few permissions: each permission
//! alone is not enough if several are needed.

use assay_testkit::Api;
use reqwest::Method;
use serde_json::json;

use super::create_client;
use crate::world::World;

/// The methods of TestRail that read or report, and those that also change test cases.
const REPORT: [&str; 25] = [
    "GET get_projects",
    "GET get_project/1",
    "GET get_suites/1",
    "GET get_suite/1",
    "GET get_case_fields",
    "GET get_cases/1",
    "GET get_case/1",
    "GET get_sections/1",
    "GET get_runs/1",
    "GET get_run/1",
    "GET get_tests/1",
    "GET get_statuses",
    "GET get_priorities",
    "GET get_case_types",
    "GET get_result_fields",
    "GET get_templates/1",
    "GET get_plans/1",
    "GET get_milestones/1",
    "GET get_configs/1",
    "POST add_section/1",
    "POST add_run/1",
    "POST update_run/1",
    "POST close_run/1",
    "POST add_results/1",
    "POST add_result_for_case/1/1",
];
const CHANGE: [&str; 2] = ["POST add_case/1", "POST update_case/1"];

/// The routes of ReportPortal, in the project `Shop`.
const LAUNCHES: [&str; 12] = [
    "POST launch",
    "GET launch",
    "POST launch/merge",
    "GET launch/uuid/1",
    "PUT launch/1/finish",
    "PUT launch/1/stop",
    "PUT launch/1/update",
    "POST item",
    "POST item/1",
    "PUT item/1",
    "POST log",
    "POST log/entry",
];

async fn status(api: &Api, call: &str, prefix: &str) -> u16 {
    let (method, path) = call.split_once(' ').unwrap();
    let method: Method = method.parse().unwrap();
    let request = api.request(method.clone(), &format!("{prefix}{path}"));
    let request = if method == Method::GET { request } else { request.json(&json!({})) };
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_an_adapter_needs_all_of_its_permissions() {
    let world = World::start().await;
    let testrail = "/index.php?/api/v2/";
    for (calls, prefix, needed) in [
        (&REPORT[..], testrail, &["Read", "Execute"][..]),
        (&CHANGE[..], testrail, &["Read", "Write", "Execute"][..]),
        (&LAUNCHES[..], "/api/v1/Shop/", &["Execute"][..]),
    ] {
        let all = create_client(&world, &needed.join(", ")).await;
        for call in calls {
            let status = status(&all, call, prefix).await;
            assert!(status != 403 && status < 500, "{call} with {needed:?}: {status}");
        }
        for lacking in needed {
            let others = ["Read", "Write", "Execute", "Accept", "Reject", "Automation"];
            let others = others.into_iter().filter(|one| one != lacking).collect::<Vec<_>>();
            let client = create_client(&world, &others.join(", ")).await;
            for call in calls {
                let status = status(&client, call, prefix).await;
                assert_eq!(status, 403, "{call} without {lacking}");
            }
        }
    }
    world.stop().await;
}
