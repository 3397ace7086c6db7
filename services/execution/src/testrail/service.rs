//! The gRPC service of runs.

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::deletion;
use assay_proto::{
    CustomerId, Fault, ProjectId,
    execution::{
        AddRunAttachmentRequest, AddRunResultsRequest, AddedRunAttachment, AddedRunResults,
        AssignNumbersRequest, FindNumbersRequest, ListNumbersRequest, NumberedRecord,
        NumberedRecords, UpdateDetailsRequest, run_service_server,
    },
};
use assay_rpc::body::{Body, Memory, open};
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use super::{
    RunService, attachment, body,
    number::{Kind, Numbered},
    store::{self, Record},
};

/// Maximum number of records in a request.
const MOST_RECORDS: usize = 1000;

/// Maximum length of a key, in bytes.
const LONGEST_KEY: usize = 2000;

impl RunService {
    async fn find(&self, customer: CustomerId, kind: Kind, number: i64) -> Result<Numbered, Fault> {
        let find = store::find(&self.db, customer, kind, number);
        self.results.limits.read(customer, find).await
    }
}

#[tonic::async_trait]
impl run_service_server::RunService for RunService {
    async fn assign_numbers(
        &self,
        request: Request<AssignNumbersRequest>,
    ) -> Result<Response<NumberedRecords>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let kind = Kind::of(request.kind())?;
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        if request.records.len() > MOST_RECORDS {
            return Err(too_many().into());
        }
        let records: Vec<Record> =
            request.records.into_iter().map(|one| record(kind, one)).collect::<Result<_, _>>()?;
        let mut tx = begin(&self.db).await?;
        if let Some(project) = project
            && deletion::store::is_deleted(&mut *tx, customer, project).await?
        {
            return Err(Fault::NotFound("project").into());
        }
        let numbered =
            store::assign(&mut tx, customer, kind, &records, request.with_details).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(answer(numbered)))
    }

    async fn find_numbers(
        &self,
        request: Request<FindNumbersRequest>,
    ) -> Result<Response<NumberedRecords>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.get_ref();
        let (kind, numbers) = (Kind::of(request.kind())?, &request.numbers);
        if numbers.len() > MOST_RECORDS {
            return Err(too_many().into());
        }
        Ok(Response::new(answer(store::find_all(&self.db, customer, kind, numbers).await?)))
    }

    async fn list_numbers(
        &self,
        request: Request<ListNumbersRequest>,
    ) -> Result<Response<NumberedRecords>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.get_ref();
        let (kind, project) =
            (Kind::of(request.kind())?, ProjectId::from_path(&request.project_id)?);
        let most = i64::try_from(MOST_RECORDS).unwrap_or(i64::MAX);
        let page = (request.offset.max(0), request.limit.clamp(0, most));
        let found = store::list(&self.db, customer, kind, project.0, page).await?;
        Ok(Response::new(answer(found)))
    }

    async fn update_details(
        &self,
        request: Request<UpdateDetailsRequest>,
    ) -> Result<Response<NumberedRecord>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (kind, request) = (Kind::of(request.get_ref().kind())?, request.into_inner());
        check_details(kind, &request.details)?;
        let updated =
            store::update(&self.db, customer, kind, request.number, &request.details).await?;
        Ok(Response::new(updated.into()))
    }

    async fn add_run_results(
        &self,
        request: Request<Streaming<AddRunResultsRequest>>,
    ) -> Result<Response<AddedRunResults>, Status> {
        let caller = Caller::of(&request)?;
        let (target, pieces) = open(request.into_inner()).await?;
        // Fail before the client sends megabytes in vain.
        let run = self.find(caller.customer, Kind::Run, target.run).await?;
        let parse = move |body: Body, memory: &mut Memory| {
            body::read(body.into_file(), target.test_case, memory)
        };
        let intake = &self.results.limits.intake;
        let (results, memory) = intake.read(caller.customer, pieces, parse).await?;
        Ok(Response::new(Box::pin(self.add(&caller, &run, results, memory)).await?))
    }

    async fn add_run_attachment(
        &self,
        request: Request<Streaming<AddRunAttachmentRequest>>,
    ) -> Result<Response<AddedRunAttachment>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (target, pieces) = open(request.into_inner()).await?;
        let result = self.find(customer, Kind::Result, target.result).await?;
        let parse = move |body, _: &mut _| attachment::read(body, target.result);
        let (file, memory) = self.results.limits.intake.read(customer, pieces, parse).await?;
        let number = self.attach(customer, &result, file).await?;
        drop(memory);
        Ok(Response::new(AddedRunAttachment { number }))
    }
}

fn record(kind: Kind, record: NumberedRecord) -> Result<Record, Fault> {
    let NumberedRecord { scope_id, key, details, .. } = record;
    let scope = Uuid::try_parse(&scope_id).map_err(|_| Fault::NotFound("record"))?;
    if key.len() > LONGEST_KEY || key.contains('\0') {
        let problem = format!("must have at most {LONGEST_KEY} bytes, without NUL characters");
        return Err(Fault::invalid("key", problem));
    }
    check_details(kind, &details)?;
    let details = if details.is_empty() { "{}".to_owned() } else { details };
    Ok(Record { scope, key, details })
}

fn check_details(kind: Kind, details: &str) -> Result<(), Fault> {
    let most = kind.largest_details();
    if details.len() <= most {
        return Ok(());
    }
    let (noun, most) = (kind.noun(), most >> 10);
    let reason =
        format!("the fields of a {noun} have too many bytes: at most {most} KiB are stored");
    Err(Fault::Refused { code: "too_large", reason })
}

fn too_many() -> Fault {
    Fault::invalid("records", format!("must be at most {MOST_RECORDS} records"))
}

fn answer(records: Vec<Numbered>) -> NumberedRecords {
    NumberedRecords { records: records.into_iter().map(Into::into).collect() }
}
