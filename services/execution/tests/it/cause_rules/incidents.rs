//! Incidents whose causes are joined and split.

use std::collections::BTreeSet;

use anyhow::Result;
use assay_proto::execution::{Execution, Incident, ListFailuresRequest};
use serde_json::{Value, json};

use super::{create, delete, derive, same};
use crate::{
    causes::failures,
    changes::{failed, passed},
    incidents::{get, list, run},
    world::World,
};

const BANK: &str = "503 from the bank";
const PRINTER: &str = "no paper in the printer";

/// Returns the results of the two tests of a set. The first fails without a bank, the second without a printer.
fn results(set: &str, [bank, printer]: [bool; 2]) -> Value {
    let test = |nr: usize, works: bool, message: &str| {
        let test = format!("{set} {nr}");
        if works { passed(&test) } else { failed(&test, message) }
    };
    json!([test(1, bank, BANK), test(2, printer, PRINTER)])
}

/// Returns the fingerprints of the causes of an execution.
async fn causes(world: &World, execution_id: &str) -> Result<BTreeSet<String>> {
    let execution_id = execution_id.to_owned();
    let causes = failures(world, ListFailuresRequest { execution_id, ..Default::default() });
    Ok(causes.await?.into_iter().map(|cause| cause.fingerprint).collect())
}

/// Returns the incidents, the oldest first. Their numbers are those of their executions, each of which has the
/// cause.
async fn recounted(world: &World) -> Result<Vec<Incident>> {
    let mut incidents = Vec::new();
    for entry in list(world).await?.into_iter().rev() {
        let incident = get(world, &world.user, &entry.id).await?;
        let executions: BTreeSet<_> =
            incident.affected.iter().map(|one| one.execution_id.as_str()).collect();
        let sets: BTreeSet<_> =
            incident.affected.iter().map(|one| one.test_set_id.as_str()).collect();
        let counted = [executions.len(), sets.len()].map(|count| i32::try_from(count).unwrap());
        assert_eq!([entry.executions, entry.test_sets], counted, "{incident:?}");
        assert_eq!([incident.executions, incident.test_sets], counted, "{incident:?}");
        let fingerprint = incident.fingerprint.clone().unwrap();
        for execution in executions {
            assert!(causes(world, execution).await?.contains(&fingerprint), "{incident:?}");
        }
        incidents.push(incident);
    }
    Ok(incidents)
}

/// Returns the fingerprint of the only cause of an execution.
async fn only_cause(world: &World, execution: &Execution) -> Result<String> {
    let causes = causes(world, &execution.id).await?;
    assert_eq!(causes.len(), 1);
    Ok(causes.into_iter().next().unwrap())
}

#[tokio::test]
async fn incidents_have_the_causes_of_their_executions_after_a_split() -> Result<()> {
    let world = World::new().await?;
    for set in ["web", "shop", "api", "app", "cli"] {
        run(&world, set, results(set, [true, true])).await?;
    }
    let web = run(&world, "web", results("web", [false, true])).await?;
    for set in ["shop", "api"] {
        run(&world, set, results(set, [false, false])).await?;
    }
    let app = run(&world, "app", results("app", [true, false])).await?;
    let (bank, printer) = (only_cause(&world, &web).await?, only_cause(&world, &app).await?);
    let fingerprints = |incidents: &[Incident]| {
        let fingerprints = incidents.iter().map(|one| one.fingerprint.clone().unwrap());
        fingerprints.collect::<Vec<_>>()
    };
    let before = recounted(&world).await?;
    assert_eq!(fingerprints(&before), [bank.clone(), printer.clone()]);
    assert_eq!(before.iter().map(|one| one.executions).collect::<Vec<_>>(), [3, 3]);

    // Both are of one cause while a rule joins theirs. A further execution belongs to the older one.
    let rule = create(&world, same(&bank, &printer)).await?;
    derive(&world).await?;
    assert_eq!(fingerprints(&recounted(&world).await?), [printer.clone(), printer.clone()]);
    run(&world, "web", results("web", [false, true])).await?;
    let joined = recounted(&world).await?;
    assert_eq!(joined.iter().map(|one| one.executions).collect::<Vec<_>>(), [4, 3]);
    assert!(joined.iter().all(|one| one.ended_at.is_none()), "{joined:?}");

    // Each has its own again, and further executions belong to the one with their cause.
    delete(&world, rule).await?;
    derive(&world).await?;
    assert_eq!(fingerprints(&recounted(&world).await?), [bank, printer]);
    run(&world, "app", results("app", [true, false])).await?;
    let split = recounted(&world).await?;
    assert_eq!(split.iter().map(|one| one.executions).collect::<Vec<_>>(), [4, 4]);
    Ok(())
}
