//! The program `assay-gateway`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assay_runtime::run("assay-gateway", async |runtime, config| {
        assay_gateway::start(runtime, config).await.map(drop)
    })
}
