//! The execution service as a program of its own.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assay_runtime::run("assay-execution", async |runtime, config| {
        assay_execution::start(runtime, config).await.map(drop)
    })
}
