//! Calls about results and artifacts.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use assay_execution::Artifacts;
use assay_proto::execution::{
    AddReportRequest, AddReportTarget, Artifact, DownloadArtifactRequest, Execution, FormFile,
    ReportResultsRequest, ReportResultsTarget, ReportedResults, UploadArtifactRequest,
    UploadArtifactTarget, UploadResultsRequest, UploadResultsTarget,
    artifact_service_client::ArtifactServiceClient, result_service_client::ResultServiceClient,
};
use assay_rpc::grpc::Channel;
use futures::{Stream, stream};
use serde_json::Value;
use tonic::Status;
use uuid::Uuid;

use super::{World, execution::collect};

impl World {
    pub(crate) fn artifacts(&self) -> ArtifactServiceClient<Channel> {
        ArtifactServiceClient::new(self.execution.clone())
    }

    pub(crate) fn artifacts_store(&self) -> &Artifacts {
        &self.artifacts
    }

    /// Uploads a file in these messages.
    pub(crate) async fn send_artifact(
        &self,
        messages: impl Stream<Item = UploadArtifactRequest> + Send + 'static,
    ) -> Result<Artifact, Status> {
        let stored = self.artifacts().upload_artifact(self.user.call(messages)).await?;
        Ok(stored.into_inner().message().await?.expect("the stored file"))
    }

    /// Uploads a small file.
    pub(crate) async fn upload_file(&self, execution: &str, name: &str) -> Result<(), Status> {
        let target = UploadArtifactTarget {
            project_id: self.project.clone(),
            execution_id: execution.to_owned(),
            name: name.to_owned(),
            content_type: "text/plain".to_owned(),
            ..UploadArtifactTarget::default()
        };
        let file = UploadArtifactRequest { target: Some(target), chunk: "x".into(), last: true };
        self.send_artifact(stream::iter([file])).await.map(drop)
    }

    /// Uploads a small file, and returns the request that its link stands for.
    pub(crate) async fn artifact_link(
        &self,
        execution: &str,
        name: &str,
    ) -> anyhow::Result<DownloadArtifactRequest> {
        let target = UploadArtifactTarget {
            project_id: self.project.clone(),
            execution_id: execution.to_owned(),
            name: name.to_owned(),
            content_type: "text/plain".to_owned(),
            ..UploadArtifactTarget::default()
        };
        let file = UploadArtifactRequest { target: Some(target), chunk: "x".into(), last: true };
        let uploaded = self.send_artifact(stream::iter([file])).await?;
        let link: url::Url = uploaded.uri.parse()?;
        let query: std::collections::HashMap<_, _> = link.query_pairs().into_owned().collect();
        Ok(DownloadArtifactRequest {
            id: uploaded.id,
            name: uploaded.name,
            customer_id: query["customer"].clone(),
            expires: query["expires"].parse()?,
            signature: query["signature"].clone(),
            share_link_id: query.get("share").cloned(),
            ..DownloadArtifactRequest::default()
        })
    }

    /// Adds a file that prevents the removal of an execution's files, and returns its path.
    pub(crate) fn obstruct_removal(&self, execution: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(self.user.customer.to_string()).join(execution);
        let path = folder.join(std::ffi::OsStr::from_bytes(b"\xff"));
        fs::write(&path, "x")?;
        Ok(path)
    }

    /// Stores a file for an execution without a record of it.
    pub(crate) fn store_stray_file(&self, execution: &str, id: Uuid) -> anyhow::Result<()> {
        let folder = self.folder.join(self.user.customer.to_string()).join(execution);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(id.to_string()), "x")?)
    }

    /// Counts the stored files.
    pub(crate) fn files(&self) -> usize {
        fn count(folder: &Path) -> usize {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
        }
        count(&self.folder)
    }

    pub(crate) fn results(&self) -> ResultServiceClient<Channel> {
        ResultServiceClient::new(self.execution.clone())
    }

    /// Reports a JSON value.
    pub(crate) async fn report(&self, id: &str, results: Value) -> Result<ReportedResults, Status> {
        self.report_text(id, false, results.to_string()).await
    }

    /// Reports a body in chunks.
    pub(crate) async fn report_text(
        &self,
        id: &str,
        lines: bool,
        body: String,
    ) -> Result<ReportedResults, Status> {
        let target = ReportResultsTarget {
            project_id: self.project.clone(),
            execution_id: id.to_owned(),
            lines,
        };
        let head = ReportResultsRequest { target: Some(target), ..ReportResultsRequest::default() };
        let size = if body.len() > 64 << 10 { 64 << 10 } else { 7 };
        let chunks: Vec<_> = body
            .as_bytes()
            .chunks(size)
            .map(|chunk| ReportResultsRequest {
                chunk: chunk.to_vec().into(),
                ..Default::default()
            })
            .collect();
        let end = ReportResultsRequest { last: true, ..Default::default() };
        let messages = stream::iter([head].into_iter().chain(chunks).chain([end]));
        Ok(self.results().report_results(self.user.call(messages)).await?.into_inner())
    }

    /// Adds a report to an open execution.
    pub(crate) async fn add_report(
        &self,
        id: &str,
        reporter: Option<&str>,
        file: &[u8],
    ) -> Result<ReportedResults, Status> {
        let target = AddReportTarget {
            project_id: self.project.clone(),
            execution_id: id.to_owned(),
            reporter: reporter.map(str::to_owned),
            ..AddReportTarget::default()
        };
        let chunk = file.to_vec().into();
        let message = AddReportRequest { target: Some(target), chunk, file: None, last: true };
        let messages = self.user.call(stream::iter([message]));
        Ok(self.results().add_report(messages).await?.into_inner())
    }

    pub(crate) fn upload_target(&self) -> UploadResultsTarget {
        UploadResultsTarget {
            project_id: self.project.clone(),
            test_set_id: self.set.clone(),
            ..UploadResultsTarget::default()
        }
    }

    /// Uploads reports.
    pub(crate) async fn upload(&self, files: &[&[u8]]) -> Result<Execution, Status> {
        let files: Vec<_> = files.iter().map(|file| (FormFile::default(), *file)).collect();
        self.upload_form(&files).await
    }

    /// Uploads a form.
    pub(crate) async fn upload_form(
        &self,
        files: &[(FormFile, &[u8])],
    ) -> Result<Execution, Status> {
        self.upload_to(self.upload_target(), files).await
    }

    /// Uploads a form to a target.
    pub(crate) async fn upload_to(
        &self,
        target: UploadResultsTarget,
        files: &[(FormFile, &[u8])],
    ) -> Result<Execution, Status> {
        let target = Some(target);
        let mut messages = vec![UploadResultsRequest { target, ..UploadResultsRequest::default() }];
        for (file, contents) in files {
            for (index, chunk) in contents.chunks(60_000).enumerate() {
                messages.push(UploadResultsRequest {
                    target: None,
                    chunk: chunk.to_vec().into(),
                    file: (index == 0).then(|| file.clone()),
                    last: false,
                });
            }
        }
        messages.push(UploadResultsRequest { last: true, ..UploadResultsRequest::default() });
        let request = self.user.call(stream::iter(messages));
        collect(self.results().upload_results(request).await?).await
    }
}
