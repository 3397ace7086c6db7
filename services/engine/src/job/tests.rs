//! How a job runs a test, and how it ends.

use assay_proto::{TestType, execution::LeasedFile};
use tokio::net::TcpListener;

use super::*;

fn job(command: &str, minimum_duration_in_min: f64) -> Job {
    let config = Config::of(&["--", "sh", "-c", command]).unwrap();
    let mut lease = Lease { minimum_duration_in_min, ..Lease::default() };
    lease.set_test_type(TestType::Stability);
    let (api, stop) = (Api::new(&config).unwrap(), CancellationToken::new());
    let cache = Cache::open(&config).unwrap().map(Arc::new);
    Job { config: Arc::new(config), api, cache, stop, lease, requested: Instant::now() }
}

fn log() -> LiveLog {
    LiveLog::new(job("", 0.0).api, String::new(), false)
}

#[tokio::test]
async fn a_passing_test_is_repeated_for_its_minimum_duration() {
    let (_sender, mut interruption) = watch::channel(None);
    let once = job("exit 0", 0.0)
        .instance(1, &Files::default(), &log(), &mut interruption)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(once.result(), TestResult::Passed);

    let minimum = 0.01;
    let long = job("exit 0", minimum)
        .instance(1, &Files::default(), &log(), &mut interruption)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(long.result(), TestResult::Passed);
    assert!(long.duration_in_sec.unwrap() >= minimum * 60.0, "{long:?}");
    assert!(long.start_date_time.is_some());

    let failed = job("exit 1", 60.0)
        .instance(1, &Files::default(), &log(), &mut interruption)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(failed.result(), TestResult::Failed, "a failure is not repeated");
}

#[tokio::test]
async fn a_test_that_takes_too_long_is_stopped_with_its_children_and_keeps_its_output() {
    let (_sender, mut interruption) = watch::channel(None);
    let dir = tempfile::tempdir().unwrap();
    let child = dir.path().join("child");
    let script = format!(
        "echo begun; sh -c 'trap \"\" TERM; echo $$ >{0}.new; mv {0}.new {0}; while :; do sleep 1; done' & wait",
        child.display()
    );
    let mut job = job(&script, 0.0);
    job.lease.maximum_duration_in_min = 0.01;

    let late =
        job.instance(1, &Files::default(), &log(), &mut interruption).await.unwrap().unwrap();

    assert_eq!(late.result(), TestResult::Error);
    let text = late.steps[0].actual_result.as_deref().unwrap();
    assert!(text.starts_with("Timed out: ") && text.ends_with("begun"), "{text}");
    let pid = std::fs::read_to_string(child).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    assert!(stat.map_or(true, |stat| stat.contains(") Z ")), "a child that ignores SIGTERM");
}

#[tokio::test(start_paused = true)]
async fn a_job_ends_soon_after_the_grace_period_although_assay_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let mut job = job("exit 0", 0.0);
    job.api = Api::new(&Config::of(&["--url", &url, "--", "true"]).unwrap()).unwrap();
    job.lease.id = "019cade2-11c0-779f-8491-6e652d066e91".to_owned();
    job.lease.instance_numbers = vec![1];
    // The id of the file is not valid, so a result is reported at once.
    job.lease.files = vec![LeasedFile::default()];
    let grace = Duration::from_secs(job.config.grace_seconds.into());
    job.stop.cancel();

    let begun = Instant::now();
    Box::pin(job.run()).await;

    let took = begun.elapsed();
    assert!(took >= grace && took < grace + LAST + Duration::from_secs(1), "{took:?}");
}
