//! The template of a project. A template that cannot be used is a remark in the document, which has the default
//! layout then: a report that is made at night should not fail since somebody changed its texts.

use assay_auth::Caller;
use assay_document::{Allowance, LARGEST_PICTURE, LARGEST_TEMPLATE, Picture, Template};
use assay_proto::catalog::{DownloadFileRequest, GetProjectRequest, Project};
use bytes::{Bytes, BytesMut};
use tonic::{Code, Status};
use uuid::Uuid;

use super::Documents;
use crate::problem::Problem;

/// Maximum length of the name of a project, in bytes.
const NAME: usize = 500;

/// The template of a project, with its logo.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) template: Template,
    pub(super) logo: Option<Picture>,
    /// Faults for the readers of the document.
    pub(super) notes: Vec<String>,
}

impl Documents {
    /// Returns the name of a project, and its template.
    pub(super) async fn project(
        &mut self,
        caller: &Caller,
        id: &str,
    ) -> Result<(String, Chosen), Problem> {
        let request = GetProjectRequest { id: id.to_owned() };
        let project = self.projects.get_project(caller.call(request)).await?.into_inner();
        let chosen = self.chosen(caller, &project).await;
        Ok((Allowance::new(NAME).line(&project.name, NAME), chosen))
    }

    async fn chosen(&mut self, caller: &Caller, project: &Project) -> Chosen {
        let id = project.report_template_id.as_deref().unwrap_or_default();
        if id.is_empty() {
            return Chosen::default();
        }
        let mut chosen = match self.template(caller, &project.id, id).await {
            Ok(template) => Chosen { template, ..Chosen::default() },
            Err(fault) => {
                let note = format!("The template of the project is not used, since {fault}.");
                return Chosen { notes: vec![note], ..Chosen::default() };
            }
        };
        if let Some(logo) = chosen.template.logo.clone() {
            match self.logo(caller, &project.id, &logo).await {
                Ok(logo) => chosen.logo = Some(logo),
                Err(fault) => {
                    chosen
                        .notes
                        .push(format!("The logo of the template is left out, since {fault}."));
                }
            }
        }
        chosen
    }

    async fn template(
        &mut self,
        caller: &Caller,
        project: &str,
        id: &str,
    ) -> Result<Template, String> {
        let json = self.contents(caller, project, id, LARGEST_TEMPLATE).await?;
        Template::read(&json).map_err(|fault| format!("it has a fault: {fault}"))
    }

    async fn logo(&mut self, caller: &Caller, project: &str, id: &str) -> Result<Picture, String> {
        let bytes = self.contents(caller, project, id, LARGEST_PICTURE).await?;
        Picture::read(bytes).map_err(|unusable| unusable.to_string())
    }

    /// Returns the contents of a file of a project, or why there are none.
    async fn contents(
        &mut self,
        caller: &Caller,
        project_id: &str,
        id: &str,
        most: usize,
    ) -> Result<Bytes, String> {
        if Uuid::try_parse(id).is_err() {
            return Err("its id is not that of a file of the project".to_owned());
        }
        let request = DownloadFileRequest {
            project_id: project_id.to_owned(),
            id: id.to_owned(),
            ..Default::default()
        };
        let mut parts = self
            .files
            .download_file(caller.call(request))
            .await
            .map_err(|status| reason(&status))?
            .into_inner();
        let mut contents = BytesMut::new();
        while let Some(part) = parts.message().await.map_err(|status| reason(&status))? {
            let size = part.file.map_or(0, |file| usize::try_from(file.size).unwrap_or(usize::MAX));
            if size > most || contents.len() + part.chunk.len() > most {
                return Err(format!("its file is larger than {} KiB", most >> 10));
            }
            contents.extend_from_slice(&part.chunk);
        }
        Ok(contents.freeze())
    }
}

fn reason(status: &Status) -> String {
    match status.code() {
        Code::NotFound | Code::InvalidArgument => "the project does not have a file with its id",
        _ => "its file cannot be read at the moment",
    }
    .to_owned()
}
