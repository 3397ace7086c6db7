//! The reports of Cucumber and tools like it: JSON and messages.

mod attempts;
mod definitions;
mod element;
mod json_report;
mod messages;
mod status;
mod step;
mod tag;

pub use self::{json_report::CucumberJson, messages::CucumberMessages};
