//! The gRPC service of files.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    Fault, FileId, ProjectId, UploadId,
    catalog::{
        AppendUploadRequest, CreateUploadRequest, DeleteFileRequest, DeleteUploadRequest,
        DownloadFileRequest, FileBatch, FileContentsBatch, GetFileRequest, GetUploadRequest,
        ListFilesRequest, StoredFile, Upload, UploadFileRequest, file_service_server,
    },
};
use assay_rpc::list::{self, Batches};
use assay_storage::{Wanted, parse_sha256};
use futures::stream;
use tonic::{Request, Response, Status, Streaming};

use super::{Files, reference, resumable, store};
use crate::project::store as projects;

#[tonic::async_trait]
impl file_service_server::FileService for Files {
    type ListFilesStream = Batches<FileBatch>;
    type UploadFileStream = Batches<StoredFile>;
    type AppendUploadStream = Batches<Upload>;
    type DownloadFileStream = Batches<FileContentsBatch>;

    async fn list_files(
        &self,
        request: Request<ListFilesRequest>,
    ) -> Result<Response<Self::ListFilesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListFilesRequest { project_id, page, sha256 } = request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let sha256 = sha256.filter(|text| !text.is_empty());
        let sha256 = sha256.map(|text| parse_sha256("sha256", &text)).transpose()?;
        let db = self.db.clone();
        list::answer(page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, project, sha256.as_ref(), &slice).await }
        })
        .await
    }

    async fn get_file(
        &self,
        request: Request<GetFileRequest>,
    ) -> Result<Response<StoredFile>, Status> {
        let customer = Caller::of(&request)?.customer;
        let GetFileRequest { project_id, id } = request.into_inner();
        let (project, id) = (ProjectId::from_path(&project_id)?, FileId::from_path(&id)?);
        Ok(Response::new(store::get(&self.db, customer, project, id).await?.file))
    }

    async fn upload_file(
        &self,
        request: Request<Streaming<UploadFileRequest>>,
    ) -> Result<Response<Self::UploadFileStream>, Status> {
        let caller = Caller::of(&request)?;
        let (this, messages) = (self.clone(), request.into_inner());
        let stored = async move { this.receive(&caller, messages).await };
        Ok(Response::new(Box::pin(stream::once(stored))))
    }

    async fn create_upload(
        &self,
        request: Request<CreateUploadRequest>,
    ) -> Result<Response<Upload>, Status> {
        let caller = Caller::of(&request)?;
        let CreateUploadRequest { project_id, creation } = request.into_inner();
        let creation = creation.unwrap_or_default();
        Ok(Response::new(self.begin_upload(&caller, &project_id, creation).await?))
    }

    async fn get_upload(
        &self,
        request: Request<GetUploadRequest>,
    ) -> Result<Response<Upload>, Status> {
        let customer = Caller::of(&request)?.customer;
        let GetUploadRequest { project_id, id } = request.into_inner();
        let (project, id) = (ProjectId::from_path(&project_id)?, UploadId::from_path(&id)?);
        Ok(Response::new(resumable::store::get(&self.db, customer, project, id).await?))
    }

    async fn append_upload(
        &self,
        request: Request<Streaming<AppendUploadRequest>>,
    ) -> Result<Response<Self::AppendUploadStream>, Status> {
        let caller = Caller::of(&request)?;
        let (this, messages) = (self.clone(), request.into_inner());
        let appended = async move { this.append(&caller, messages).await };
        Ok(Response::new(Box::pin(stream::once(appended))))
    }

    async fn delete_upload(
        &self,
        request: Request<DeleteUploadRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let DeleteUploadRequest { project_id, id } = request.into_inner();
        let (project, id) = (ProjectId::from_path(&project_id)?, UploadId::from_path(&id)?);
        let mut tx = begin(&self.db).await?;
        projects::lock_shared(&mut tx, customer, project).await?;
        resumable::removal::delete(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }

    async fn download_file(
        &self,
        request: Request<DownloadFileRequest>,
    ) -> Result<Response<Self::DownloadFileStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let DownloadFileRequest { project_id, id, range, if_sha256, head_only } =
            request.into_inner();
        let (project, id) = (ProjectId::from_path(&project_id)?, FileId::from_path(&id)?);
        let stored = store::get(&self.db, customer, project, id).await?;
        let wanted = Wanted { range, if_tag: if_sha256, head_only };
        Ok(Response::new(self.contents(customer, stored, wanted).await?))
    }

    async fn delete_file(
        &self,
        request: Request<DeleteFileRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let DeleteFileRequest { project_id, id } = request.into_inner();
        let (project, id) = (ProjectId::from_path(&project_id)?, FileId::from_path(&id)?);
        let mut tx = begin(&self.db).await?;
        projects::lock_exclusive(&mut tx, customer, project).await?;
        reference::check_none(&mut tx, customer, id).await?;
        let contents = store::delete(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        if let Some(contents) = contents {
            self.remove(contents).await;
        }
        Ok(Response::new(()))
    }
}
