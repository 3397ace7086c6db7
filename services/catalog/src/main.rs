//! The catalog service as a program of its own.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assay_runtime::run("assay-catalog", async |runtime, config| {
        assay_catalog::start(runtime, config).await.map(drop)
    })
}
