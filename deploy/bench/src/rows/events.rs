//! Costs of events: their way from an upload to subscribers, their size, and the processor time of everything that
//! follows from the commit of the results.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use async_nats::jetstream::{
    self,
    consumer::{
        DeliverPolicy,
        pull::{Ordered, OrderedConfig},
    },
};
use futures::StreamExt;
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use super::{measurement::Measurement, stream};
use crate::{
    fixture::{create_set, upload},
    report::{Figure, Section, Unit, median},
    usage,
};

/// Number of small reports, and of the tests in each.
const REPORTS: usize = 20;
const FEW: usize = 20;

/// Number of tests in the large report.
const MANY: usize = 3_400;

/// The stream of notifications.
const STREAM: &str = "ASSAY_NOTIFICATIONS";

/// Ends of the subjects of the results and of the end of an execution.
const RESULT: &str = ".testcase.finished";
const END: &str = ".testset.completed";

/// Maximum time until the end of an execution arrives.
const LONGEST: Duration = Duration::from_mins(2);

/// Minimum processor time of an event in a program that is shown, in microseconds.
const LEAST: f64 = 1.0;

/// A subscriber of all notifications, from its start on.
struct Subscriber(Ordered);

/// The events until the end of an execution.
struct Received {
    /// Arrival of the end.
    ended: Instant,
    count: usize,
    /// Sizes of the results, in bytes.
    results: Vec<f64>,
    /// Size of the end, in bytes.
    end: f64,
}

impl Subscriber {
    async fn open(url: &str) -> Result<Self> {
        let jetstream = jetstream::new(async_nats::connect(url).await?);
        let stream = jetstream.get_stream(STREAM).await?;
        let config =
            OrderedConfig { deliver_policy: DeliverPolicy::New, ..OrderedConfig::default() };
        Ok(Self(stream.create_consumer(config).await?.messages().await?))
    }

    async fn until_end(&mut self) -> Result<Received> {
        let (mut count, mut results) = (0, Vec::new());
        loop {
            let message = timeout(LONGEST, self.0.next()).await?.context("no subscriber")??;
            count += 1;
            let size = message.payload.len() as f64;
            if message.subject.ends_with(RESULT) {
                results.push(size);
            } else if message.subject.ends_with(END) {
                return Ok(Received { ended: Instant::now(), count, results, end: size });
            }
        }
    }
}

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let set = create_set(&to.system.client(), "Events").await?;
    upload(&to.system.client(), &set, "events", MANY).await?;
    to.system.rest().await;
    let mut subscriber = Subscriber::open(to.system.nats_url()?).await?;
    latency(to, &set, &mut subscriber).await?;
    to.system.rest().await;
    cost(to, &set, &mut subscriber).await
}

/// Measures the time from the request to the end of the execution at a subscriber and in an event stream.
async fn latency(to: &mut Measurement<'_>, set: &str, subscriber: &mut Subscriber) -> Result<()> {
    let (client, token) = (to.system.client(), to.system.token());
    let (sender, mut streamed) = mpsc::unbounded_channel();
    let mut streams = JoinSet::new();
    let query = "event=TestSet.Completed";
    stream::open(to.system.gateways()[0], token, query, sender, &mut streams).await?;
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..REPORTS {
        let began = Instant::now();
        let answered = async {
            upload(&client, set, "events", FEW).await?;
            anyhow::Ok(Instant::now())
        };
        let in_stream = async {
            tokio::select! {
                arrived = streamed.recv() => arrived.context("no event stream"),
                _ = streams.join_next() => bail!("the event stream has ended"),
            }
        };
        let (answered, received, in_stream) =
            tokio::try_join!(answered, subscriber.until_end(), in_stream)?;
        for (times, arrived) in times.iter_mut().zip([answered, received.ended, in_stream]) {
            times.push((arrived - began).as_secs_f64() * 1000.0);
        }
    }
    for (name, times) in
        ["answer", "end at a subscriber of NATS", "end in an event stream"].iter().zip(times)
    {
        let name = format!("report of {FEW} tests until its {name}");
        let figure = Figure::new(Section::Batches, &name, Unit::Millis);
        to.report.add(figure, to.system.shape, to.round, median(&times));
    }
    Ok(())
}

/// Measures the size of events, and the processor time for them. The results are stored while NATS is suspended, so
/// that what follows from their commit is measured alone: events are published and applied, and notifications are
/// stored and published.
async fn cost(to: &mut Measurement<'_>, set: &str, subscriber: &mut Subscriber) -> Result<()> {
    to.system.suspend_nats()?;
    let uploaded = upload(&to.system.client(), set, "events", MANY).await;
    to.system.rest().await;
    let (began, before) = (Instant::now(), to.system.times());
    to.system.resume_nats()?;
    uploaded?;
    let received = subscriber.until_end().await?;
    to.system.rest().await;
    let spent = usage::micros_since(&before, &to.system.times());

    let (shape, round) = (to.system.shape, to.round);
    let mut add = |section, name: &str, unit, value| {
        to.report.add(Figure::new(section, name, unit), shape, round, value);
    };
    let published = (received.ended - began).as_secs_f64();
    add(Section::Batches, "3,400 results until a subscriber has all", Unit::Seconds, published);
    add(Section::Batches, "event of a result", Unit::Bytes, median(&received.results));
    add(Section::Batches, "event of the end of an execution", Unit::Bytes, received.end);
    for (program, micros) in spent {
        let of_each = micros / received.count as f64;
        if of_each >= LEAST {
            let name = format!("event of a result after its commit: {program}");
            add(Section::Processor, &name, Unit::Micros, of_each);
        }
    }
    Ok(())
}
