//! The pages of a list.

use anyhow::{Result, bail, ensure};

/// Maximum number of pages.
const MOST: u32 = 20_000;

/// The pages of a list that were read. Of the link to the next one, which a server chooses, only the
/// query is used.
pub struct Pages {
    path: String,
    next: Option<String>,
    count: u32,
}

impl Pages {
    /// Returns the pages of a list, the first one with a query.
    pub fn of(path: &str, query: &str) -> Self {
        Self { path: path.to_owned(), next: Some(query.to_owned()), count: 0 }
    }

    /// Returns the path of the next page. `None` after the last one.
    pub fn next(&self) -> Option<String> {
        self.next.as_ref().map(|query| format!("{}?{query}", self.path))
    }

    /// Notes that a page was read, and its header `Link`. Fails if the pages have no end.
    pub fn turn(&mut self, link: Option<&str>) -> Result<()> {
        let next = link.and_then(next_query);
        self.count += 1;
        if next.is_some() && next == self.next {
            bail!("{}: the link to the next of the pages leads to the same one", self.path);
        }
        ensure!(self.count < MOST || next.is_none(), "{}: more than {MOST} pages", self.path);
        self.next = next;
        Ok(())
    }
}

/// Returns the query of the link to the next page.
fn next_query(link: &str) -> Option<String> {
    let target = link.split(',').find(|one| one.contains("rel=\"next\""))?;
    let target = target.split_once('<')?.1.split_once('>')?.0;
    target.split_once('?').map(|(_, query)| query.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_one_of_the_same_list() {
        let mut pages = Pages::of("/api/projects", "limit=2");
        assert_eq!(pages.next().unwrap(), "/api/projects?limit=2");
        let evil =
            "</other>; rel=\"prev\", <https://evil.example/api/users?cursor=a>; rel=\"next\"";
        pages.turn(Some(evil)).unwrap();
        assert_eq!(pages.next().unwrap(), "/api/projects?cursor=a");
        pages.turn(None).unwrap();
        assert_eq!(pages.next(), None);
    }

    #[test]
    fn pages_have_an_end() {
        let link = |number: u32| format!("</x?cursor={number}>; rel=\"next\"");
        let mut pages = Pages::of("/api/projects", "limit=2");
        pages.turn(Some(&link(1))).unwrap();
        assert!(pages.turn(Some(&link(1))).is_err());
        let turned = (2..=MOST + 1).find(|number| pages.turn(Some(&link(*number))).is_err());
        assert!(turned.is_some());
    }
}
