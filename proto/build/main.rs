//! Compiles the contracts, and gives the generated types their JSON, OpenAPI and SQL shapes. So a
//! resource is defined once, in its `.proto` file. The rules:
//!
//! * JSON names are in PascalCase. A field is nullable if it is `optional` and not `blank`.
//! * In JSON, enums are the names of their variants, timestamps follow RFC 3339, and integers may
//!   have a fraction of zero.
//! * `…Request`, `…Batch` and `…Reply` messages are envelopes, which have no form in JSON or SQL.
//! * `…Input` messages are written by clients, and refuse fields that they do not have. Single fields
//!   can be moved from one to another (`Changes`), and each binds its fields to the columns it is
//!   written to (`InputColumns`).
//! * `…List` messages are nullable arrays.
//! * Every other message is read from a row. Its `COLUMNS` are the list of a `select`: the names of
//!   the fields, or the expressions in `[(assay.column) = "…"]`. `JSON` is the same as one object.
//! * The records of `…Batch` messages can also be rendered from rows (`Columned`).
//! * Messages with a `chunk` and `last` are pieces of a body that a call uploads (`UploadMessage`).
//! * The table `POLICY` has the permissions that each method requires.
//! * The table `EXAMPLES` has the examples of fields, and the table `ACCEPTED` the values that clients may
//!   send, where those are fewer than the type has.
//! * The table `READING` has the methods that only read, whose calls may be repeated, and how their
//!   responses arrive: those named Get, BatchGet, List, Find, Export, Download or Watch.
//! * The table `WAITING` has the methods that wait: those with a stream of requests or the option
//!   `assay.waits`.
//! * The table `ISSUING` has the methods with the option `assay.issues`.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes the output directory in the environment"
)]

mod batches;
mod changes;
mod columns;
mod examples;
mod policy;
mod rendered;
mod shape;
mod uploads;

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message;

/// Directory of the contracts.
const CONTRACTS: &str = "assay";

/// Path of the contract for the tests of this crate.
const TEST_CONTRACT: &str = "tests/it/shapes.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={CONTRACTS}");
    println!("cargo:rerun-if-changed={TEST_CONTRACT}");
    println!("cargo:rerun-if-changed=build");

    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(contracts_in(CONTRACTS.as_ref())?)?.open_file(TEST_CONTRACT)?;
    let pool = compiler.descriptor_pool();
    let files = compiler.file_descriptor_set();

    let out = env::var("OUT_DIR")?;
    let out = Path::new(&out);
    fs::write(out.join("policy.rs"), policy::table(&pool)?)?;
    fs::write(out.join("examples.rs"), examples::table(&pool)?)?;
    fs::write(out.join("accepted.rs"), examples::accepted(&pool)?)?;
    fs::write(out.join("changes.rs"), changes::impls(&pool)?)?;
    fs::write(out.join("columns.rs"), columns::impls(&pool)?)?;
    fs::write(out.join("uploads.rs"), uploads::impls(&pool)?)?;
    fs::write(out.join("batches.rs"), batches::impls(&pool)?)?;
    fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;
    shape::all(&pool).compile_fds(files)?;
    Ok(())
}

/// Lists the contracts below a directory, in the order of their paths.
fn contracts_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut contracts = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            contracts.extend(contracts_in(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            contracts.push(path);
        }
    }
    contracts.sort();
    Ok(contracts)
}
