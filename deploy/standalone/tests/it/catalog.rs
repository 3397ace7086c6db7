//! The catalog over HTTP: fields of its answers, and rules for all records.

mod bulk;
mod forms;
mod gate;
mod pages;
mod paths;
mod recent;
mod records;
mod tags;
mod updates;
mod versions;
