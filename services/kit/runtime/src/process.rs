//! The programs of one process, which call each other without a network.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::Router;

/// The gRPC servers of one process. A call to the address of one of them is a function call.
#[derive(Clone, Default)]
pub struct Process(Arc<Mutex<HashMap<SocketAddr, Router>>>);

/// A server of the process, until this is dropped.
pub struct Registration {
    process: Process,
    address: SocketAddr,
}

impl Process {
    /// Serves calls of this process to an address, until the registration is dropped.
    pub fn serve(&self, address: SocketAddr, app: Router) -> Registration {
        self.servers().insert(address, app);
        Registration { process: self.clone(), address }
    }

    /// Returns the server at an address, if it belongs to this process.
    pub fn server(&self, address: SocketAddr) -> Option<Router> {
        self.servers().get(&address).cloned()
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<SocketAddr, Router>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.process.servers().remove(&self.address);
    }
}
