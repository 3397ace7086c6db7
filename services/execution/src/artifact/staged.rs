//! Files that become artifacts together with the results that refer to them.

use assay_proto::{ArtifactId, CustomerId, ExecutionId, Fault};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgTransaction;
use tonic::Status;

use super::{Artifacts, place, stray};

/// Number of files of an upload that are being stored at the same time.
const FILES_AT_A_TIME: usize = 8;

/// A file to store.
#[derive(Debug)]
pub(crate) struct NewFile {
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) contents: Bytes,
}

/// A stored file that is not an artifact yet. If it does not become one, it is removed later.
pub(crate) struct Staged {
    id: ArtifactId,
    name: String,
    content_type: String,
    size: i64,
}

impl Artifacts {
    /// Stores files of a client as [`Artifacts::stage`] does, unless its customer would have too many.
    pub(crate) async fn receive(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        files: Vec<NewFile>,
    ) -> Result<Vec<Staged>, Status> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let ids = new_ids(&files)?;
        self.claim(customer, execution, &ids).await?;
        self.put(customer, execution, ids, files).await
    }

    /// Stores files for an execution, which does not have to exist yet.
    pub(crate) async fn stage(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        files: Vec<NewFile>,
    ) -> Result<Vec<Staged>, Status> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let ids = new_ids(&files)?;
        stray::insert(&self.db, customer, execution, &ids).await?;
        self.put(customer, execution, ids, files).await
    }

    /// Stores the bytes of files that are recorded.
    async fn put(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        ids: Vec<(ArtifactId, i64)>,
        files: Vec<NewFile>,
    ) -> Result<Vec<Staged>, Status> {
        let stored = ids.into_iter().zip(files).map(|((id, _), file)| async move {
            let NewFile { name, content_type, contents } = file;
            let contents = Box::pin(stream::iter([Ok(contents)]));
            let size = self.file_store.put(place(customer, execution, id), contents).await?;
            Ok(Staged { id, name, content_type, size })
        });
        stream::iter(stored).buffered(FILES_AT_A_TIME).try_collect().await
    }
}

/// Returns new ids of files, with their sizes.
fn new_ids(files: &[NewFile]) -> Result<Vec<(ArtifactId, i64)>, Fault> {
    let sizes = files.iter().map(|file| i64::try_from(file.contents.len()));
    let ids = sizes.map(|size| Ok((ArtifactId::new(), size.map_err(Fault::internal)?)));
    ids.collect()
}

/// Makes stored files artifacts of an execution. Those whose name the execution has already are left
/// out: the same attachment was sent before. Fails if one of the files is being removed.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    staged: &[Staged],
) -> Result<(), Fault> {
    if staged.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = staged.iter().map(|file| file.id).collect();
    stray::lock(tx, customer, &ids).await?;
    let insert = sqlx::query(
        "with added as (
             insert into artifact (customer_id, id, execution_id, owner_id, name, content_type, size)
             select $1, id, $2, $2, name, content_type, size
             from unnest($3::uuid[], $4::text[], $5::text[], $6::bigint[])
                 as staged (id, name, content_type, size)
             on conflict on constraint artifact_name_key do nothing
             returning id
         )
         delete from stray_file
         where customer_id = $1 and artifact_id in (select id from added)",
    );
    insert
        .bind(customer)
        .bind(execution)
        .bind(ids)
        .bind(staged.iter().map(|file| file.name.as_str()).collect::<Vec<_>>())
        .bind(staged.iter().map(|file| file.content_type.as_str()).collect::<Vec<_>>())
        .bind(staged.iter().map(|file| file.size).collect::<Vec<_>>())
        .execute(&mut **tx)
        .await?;
    Ok(())
}
