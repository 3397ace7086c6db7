//! The list of the files in a store, whether a record has them or not.

use std::{collections::HashSet, fmt};

use assay_proto::{CustomerId, Fault};
use futures::{TryStreamExt, stream::BoxStream};
use object_store::{Error, ObjectMeta, ObjectStore, path::Path};
use uuid::Uuid;

use crate::{FileStore, Place, call::within};

/// Maximum number of files that are listed at a time.
const BATCH: usize = 1000;

/// A file in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub place: Place,
    /// In bytes.
    pub size: u64,
}

impl Found {
    /// Returns the customers and the ids of files, as a statement binds them.
    pub fn keys(files: &[Self]) -> (Vec<CustomerId>, Vec<Uuid>) {
        files.iter().map(|file| (file.place.customer, file.place.id)).unzip()
    }

    /// Returns the files that have none of these ids.
    pub fn without(files: Vec<Self>, ids: Vec<Uuid>) -> Vec<Self> {
        let ids: HashSet<Uuid> = ids.into_iter().collect();
        files.into_iter().filter(|file| !ids.contains(&file.place.id)).collect()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes", self.place.path(), self.size)
    }
}

/// The files of a store, as they are listed.
pub struct Listing {
    objects: BoxStream<'static, Result<ObjectMeta, Error>>,
    before: i64,
    is_empty: bool,
}

impl FileStore {
    /// Lists the files that were stored before a time, in seconds since 1970. Leaves out what is not at the place of a
    /// file.
    pub fn list(&self, before: i64) -> Listing {
        Listing { objects: self.store.list(None), before, is_empty: true }
    }
}

impl Listing {
    /// Returns up to 1,000 further files; none at the end.
    pub async fn batch(&mut self) -> Result<Vec<Found>, Fault> {
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Some(object) = within(self.objects.try_next()).await.map_err(Fault::internal)?
        {
            let Some(place) = place_of(&object.location) else { continue };
            self.is_empty = false;
            if object.last_modified.timestamp() < self.before {
                batch.push(Found { place, size: object.size });
            }
        }
        Ok(batch)
    }

    /// Whether the store had no file so far, of any age.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }
}

/// Returns the place of the file with a path, if it is the path of a file.
fn place_of(path: &Path) -> Option<Place> {
    let ids = path.parts().map(|part| Uuid::try_parse(part.as_ref()).ok());
    let ids: Vec<Uuid> = ids.collect::<Option<_>>()?;
    let &[customer, folder, id] = &ids[..] else { return None };
    let place = Place { customer: CustomerId(customer), folder, id };
    // An id can be written in several ways, and a file has only one of them.
    Some(place).filter(|place| place.path() == *path)
}
