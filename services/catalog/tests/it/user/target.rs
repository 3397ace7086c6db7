//! Subjects and environments of a user.

use assay_proto::catalog::*;
use tonic::Response;

use super::{User, owned};
use crate::world::Answer;

impl User {
    pub(crate) async fn subject(&self, project: &Project) -> SubjectEntry {
        self.create_subject(project, web_page()).await.unwrap()
    }

    pub(crate) async fn create_subject(
        &self,
        project: &Project,
        subject: SubjectInput,
    ) -> Answer<SubjectEntry> {
        let project_id = project.id.clone();
        let request = CreateSubjectRequest { project_id, subject: Some(subject) };
        self.subjects().create_subject(self.call(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn get_subject(&self, project: &Project, id: &str) -> Subject {
        let request = GetSubjectRequest { project_id: project.id.clone(), id: id.to_owned() };
        self.subjects().get_subject(self.call(request)).await.unwrap().into_inner()
    }

    pub(crate) async fn update_subject(
        &self,
        subject: &Subject,
        changes: SubjectInput,
        fields: &[&str],
    ) -> Answer<Subject> {
        let request = UpdateSubjectRequest {
            project_id: subject.project_id.clone(),
            id: subject.id.clone(),
            data_version: Some(subject.data_version.clone()),
            changes: Some(changes),
            fields: owned(fields),
        };
        self.subjects().update_subject(self.call(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn create_environment(
        &self,
        project: &Project,
        environment: EnvironmentInput,
    ) -> Answer<EnvironmentEntry> {
        let project_id = project.id.clone();
        let request = CreateEnvironmentRequest { project_id, environment: Some(environment) };
        self.environments().create_environment(self.call(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn environment(&self, project: &Project) -> EnvironmentEntry {
        let environment = EnvironmentInput { name: "Lab".into(), ..EnvironmentInput::default() };
        self.create_environment(project, environment).await.unwrap()
    }

    pub(crate) async fn get_environment(&self, project: &Project, id: &str) -> Environment {
        let request = GetEnvironmentRequest { project_id: project.id.clone(), id: id.to_owned() };
        self.environments().get_environment(self.call(request)).await.unwrap().into_inner()
    }

    pub(crate) async fn update_environment(
        &self,
        environment: &Environment,
        changes: EnvironmentInput,
        fields: &[&str],
    ) -> Answer<Environment> {
        let request = UpdateEnvironmentRequest {
            project_id: environment.project_id.clone(),
            id: environment.id.clone(),
            data_version: Some(environment.data_version.clone()),
            changes: Some(changes),
            fields: owned(fields),
        };
        self.environments().update_environment(self.call(request)).await.map(Response::into_inner)
    }
}

/// A valid input for a subject.
pub(crate) fn web_page() -> SubjectInput {
    let mut subject = SubjectInput {
        identifier: "1.0".into(),
        name: "Web shop".into(),
        uri: "https://shop.example".into(),
        ..SubjectInput::default()
    };
    subject.set_subject_type(SubjectType::Webpage);
    subject
}
