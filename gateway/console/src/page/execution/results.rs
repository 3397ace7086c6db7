//! Results of an execution, by their causes or as a list.

use maud::Markup;

use super::{
    causes::{self, Causes},
    list,
    listing::Listing,
};
use crate::{api::Api, failure::Failure, page::row::Rows};

/// The results of a page.
pub(in crate::page) struct Results(Found);

enum Found {
    ByCause(Causes),
    List(list::Results),
}

/// Reads the results of a page, and what is needed to judge them.
pub(in crate::page) async fn results(
    api: &Api,
    listing: Listing<'_>,
    is_judged: bool,
) -> Result<Results, Failure> {
    let found = if listing.query.filter.is_grouped(listing.tab) {
        Found::ByCause(causes::read(api, listing).await?)
    } else {
        Found::List(list::read(api, listing, is_judged).await?)
    };
    Ok(Results(found))
}

impl Results {
    /// Shows the results. `rows` says whether they can be judged.
    pub(in crate::page) fn section(&self, listing: Listing<'_>, rows: Rows<'_>) -> Markup {
        let from = listing.query.encode(listing.tab);
        let rows = Rows { below: &listing.place.reports, from: &from, ..rows };
        match &self.0 {
            Found::ByCause(causes) => causes.section(listing, rows),
            Found::List(results) => results.section(listing, rows),
        }
    }
}
