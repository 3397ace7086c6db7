//! The identity service as a program of its own.

use std::process::ExitCode;

use secrecy::ExposeSecret;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    assay_runtime::run("assay-identity", async |runtime, config| {
        let started = assay_identity::start(runtime, config).await?;
        runtime.spawn("first login", async {
            if let Ok(login) = started.first_login.await {
                let password = login.password.expose_secret();
                println!("Log in as {} with the password {password}, shown only now", login.email);
            }
            Ok(())
        });
        Ok(())
    })
}
