//! Share links: secret links by which readers without an account see one execution, and nothing
//! else.

mod instance;
mod rules;
mod service;
mod shared;
mod store;
mod view;

pub(crate) use self::{service::ShareLinkService, shared::SharedExecutionService};
