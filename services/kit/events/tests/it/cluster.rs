//! A NATS cluster of three servers.

use assay_testkit::{Cluster, eventually};
use async_nats::jetstream::{consumer::PullConsumer, stream::ClusterInfo};

use crate::world::World;

#[tokio::test]
async fn no_event_is_lost_when_any_server_of_a_cluster_is_killed() {
    let mut cluster = Cluster::start().await;
    let mut world = World::on(&cluster).await;
    world.relay();
    world.consumer();
    world.publish_each(0..10).await;
    world.wait_for_effects(10).await;

    let mut count = 10;
    for member in 0..Cluster::SIZE {
        cluster.member(member).kill().await;
        world.publish_each(count..count + 10).await;
        count += 10;
        world.wait_for_effects(usize::try_from(count).unwrap()).await;

        cluster.member(member).start().await;
        eventually("three servers with all messages", || async {
            let stream = world.stream("ASSAY_CATALOG").await;
            let consumer: PullConsumer = stream.get_consumer("notification").await.ok()?;
            let clusters = [&stream.cached_info().cluster, &consumer.cached_info().cluster];
            clusters.iter().all(|cluster| cluster.as_ref().is_some_and(is_in_sync)).then_some(())
        })
        .await;
    }
    assert_eq!(world.effects().await, (0..count).collect::<Vec<_>>(), "each once, in order");
}

fn is_in_sync(cluster: &ClusterInfo) -> bool {
    let current = cluster.replicas.iter().filter(|replica| replica.current).count();
    cluster.leader.is_some() && current == Cluster::SIZE - 1
}
