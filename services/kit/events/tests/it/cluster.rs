//! NATS as a cluster of three servers.

use assay_testkit::{Cluster, eventually};
use async_nats::jetstream::{consumer::PullConsumer, stream::ClusterInfo};

use crate::world::World;

#[tokio::test]
async fn each_server_of_a_cluster_may_be_killed() {
    let mut cluster = Cluster::start().await;
    let mut world = World::on(&cluster).await;
    world.relay();
    world.consumer();
    world.tell(0..10).await;
    world.has_effects(10).await;

    let mut told = 10;
    for member in 0..Cluster::SIZE {
        cluster.member(member).kill().await;
        world.tell(told..told + 10).await;
        told += 10;
        world.has_effects(usize::try_from(told).unwrap()).await;

        cluster.member(member).start().await;
        eventually("a third server that has everything", || async {
            let stream = world.stream("ASSAY_CATALOG").await;
            let consumer: PullConsumer = stream.get_consumer("notification").await.ok()?;
            let clusters = [&stream.cached_info().cluster, &consumer.cached_info().cluster];
            clusters.iter().all(|cluster| cluster.as_ref().is_some_and(is_whole)).then_some(())
        })
        .await;
    }
    assert_eq!(world.effects().await, (0..told).collect::<Vec<_>>(), "each once, in order");
}

fn is_whole(cluster: &ClusterInfo) -> bool {
    let current = cluster.replicas.iter().filter(|replica| replica.current).count();
    cluster.leader.is_some() && current == Cluster::SIZE - 1
}
