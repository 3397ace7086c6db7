//! Compiles the contracts and gives the generated types their JSON, OpenAPI and SQL shapes, so that
//! a resource is written down once: in its `.proto` file.
//!
//! * JSON names are PascalCase. A field is nullable exactly if it is marked `optional` and not `blank`.
//! * Enums travel as the names of their variants, timestamps as RFC 3339. An integer may be written
//!   with a fraction of zero.
//! * `…Request` and `…Batch` messages are envelopes: they never become JSON or come out of a row.
//! * `…Input` messages are what clients write; each can take over single fields from another.
//! * `…List` messages are arrays that may be null.
//! * Everything else can be read from a row with the same column names.
//! * Every method names who may call it; together they are the table `POLICY`.
//! * Fields say what they may hold: the table `EXAMPLES`.
//! * Methods that Get, List, Find, Export, Download or Watch change nothing, and may be called twice;
//!   together they are the table `READING`.
//! * Methods that wait, for the messages of their caller or because they say so, are the table
//!   `WAITING`.

#![expect(clippy::disallowed_methods, reason = "cargo tells a build script where to write so")]

mod batches;
mod changes;
mod examples;
mod policy;
mod shape;

use std::{env, error::Error, fs, path::Path};

use prost::Message;

/// The contracts; whatever they import comes with them.
const CONTRACTS: &[&str] = &[
    "assay/identity/v1/token.proto",
    "assay/identity/v1/customer.proto",
    "assay/identity/v1/user_group.proto",
    "assay/identity/v1/user.proto",
    "assay/identity/v1/user_settings.proto",
    "assay/identity/v1/api_token.proto",
    "assay/identity/v1/audit.proto",
    "assay/catalog/v1/favorite.proto",
    "assay/catalog/v1/import.proto",
    "assay/catalog/v1/project.proto",
    "assay/catalog/v1/test_case.proto",
    "assay/catalog/v1/test_plan.proto",
    "assay/catalog/v1/test_set.proto",
    "assay/catalog/v1/subject.proto",
    "assay/catalog/v1/environment.proto",
    "assay/catalog/v1/snapshot.proto",
    "assay/catalog/v1/lookup.proto",
    "assay/execution/v1/execution.proto",
    "assay/execution/v1/results.proto",
    "assay/execution/v1/statistics.proto",
    "assay/execution/v1/debug.proto",
    "assay/execution/v1/artifact.proto",
    "assay/catalog/v1/automation.proto",
    "assay/execution/v1/automation.proto",
    "assay/notification/v1/notification.proto",
    "assay/notification/v1/webhook.proto",
    "assay/events/v1/events.proto",
];

/// A contract that only the tests of this crate use.
const TEST_CONTRACT: &str = "tests/shapes.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=assay");
    println!("cargo:rerun-if-changed={TEST_CONTRACT}");
    println!("cargo:rerun-if-changed=build");

    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(CONTRACTS)?.open_file(TEST_CONTRACT)?;
    let pool = compiler.descriptor_pool();
    let files = compiler.file_descriptor_set();

    let out = env::var("OUT_DIR")?;
    let out = Path::new(&out);
    fs::write(out.join("policy.rs"), policy::table(&pool)?)?;
    fs::write(out.join("examples.rs"), examples::table(&pool)?)?;
    fs::write(out.join("changes.rs"), changes::impls(&pool)?)?;
    fs::write(out.join("batches.rs"), batches::impls(&pool)?)?;
    fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;
    shape::all(&pool).compile_fds(files)?;
    Ok(())
}
