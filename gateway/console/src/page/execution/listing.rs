//! Choice of the results of an execution that a page lists.

use super::{
    filter::{Filter, Tab},
    path::Place,
};
use crate::{page::paged::Paged, record::Changes};

/// Place, tab and filter of the results that a page lists, and the numbers of their execution.
#[derive(Clone, Copy)]
pub(in crate::page) struct Listing<'a> {
    pub(in crate::page) place: &'a Place,
    pub(in crate::page) tab: Tab,
    pub(in crate::page) query: &'a Paged<Filter>,
    pub(in crate::page) changes: Changes,
    pub(in crate::page) is_running: bool,
}
