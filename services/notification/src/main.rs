//! The notification service as a program of its own.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assay_runtime::run("assay-notification", async |runtime, config| {
        assay_notification::start(runtime, config).await?;
        Ok(())
    })
}
