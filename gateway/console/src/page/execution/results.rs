//! Results of an execution, by their causes or as a list.

use maud::Markup;

use super::{
    causes::{self, Causes},
    filter::{Filter, Tab},
    list,
    path::Place,
};
use crate::{
    api::Api,
    failure::Failure,
    page::{paged::Paged, row::Rows},
};

/// The results of a page.
pub(in crate::page) struct Results(Found);

enum Found {
    ByCause(Causes),
    List(list::Results),
}

/// Reads the results of a page, and what is needed to judge them.
pub(in crate::page) async fn results(
    api: &Api,
    place: &Place,
    tab: Tab,
    query: &Paged<Filter>,
    is_judged: bool,
) -> Result<Results, Failure> {
    let found = if query.filter.is_grouped(tab) {
        Found::ByCause(causes::read(api, place, tab, query).await?)
    } else {
        Found::List(list::read(api, place, tab, query, is_judged).await?)
    };
    Ok(Results(found))
}

impl Results {
    /// Shows the results. `rows` says whether they can be judged.
    pub(in crate::page) fn section(
        &self,
        place: &Place,
        tab: Tab,
        query: &Paged<Filter>,
        is_running: bool,
        rows: Rows<'_>,
    ) -> Markup {
        let from = query.encode(tab);
        let rows = Rows { below: &place.reports, from: &from, ..rows };
        match &self.0 {
            Found::ByCause(causes) => causes.section(place, tab, query, rows),
            Found::List(results) => results.section(place, tab, query, is_running, rows),
        }
    }
}
