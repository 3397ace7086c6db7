//! Classification of test cases, as test tools report it.

use assay_proto::{Classification, CustomerId, Fault, TestCaseId};
use assay_rpc::parts::bounded;
use aws_lc_rs::digest::{SHA256, digest};
use prost::Message;
use sqlx::{PgTransaction, types::Json};

/// The classification of a test case, as parameters of statements.
#[derive(Clone, Copy)]
pub(crate) struct Classified<'c> {
    pub(crate) case: TestCaseId,
    pub(crate) classification: &'c Classification,
    /// The first 64 bits of a SHA-256. They are stored: a test case with the same ones needs no update.
    pub(crate) digest: i64,
}

impl<'c> Classified<'c> {
    pub(crate) fn new(case: TestCaseId, classification: &'c Classification) -> Self {
        let digest = digest(&SHA256, &classification.encode_to_vec());
        let digest = digest.as_ref().first_chunk().copied().map_or(0, i64::from_be_bytes);
        Self { case, classification, digest }
    }

    /// Returns the suites, of which none contains a line break, on lines.
    pub(crate) fn suites(&self) -> String {
        self.classification.suites.join("\n")
    }

    pub(crate) fn labels(&self) -> Option<Json<&'c [assay_proto::Label]>> {
        let labels = &self.classification.labels;
        (!labels.is_empty()).then_some(Json(labels))
    }

    pub(crate) fn links(&self) -> Option<Json<&'c [assay_proto::Link]>> {
        let links = &self.classification.links;
        (!links.is_empty()).then_some(Json(links))
    }
}

/// Replaces the classifications of locked test cases.
pub(crate) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    classified: &[Classified<'_>],
) -> Result<(), Fault> {
    for part in bounded(classified, |one| one.classification.encoded_len()) {
        let update = sqlx::query(
            "update test_case
             set suites = string_to_array(new.suites, e'\\n'), labels = new.labels,
                 links = new.links, classification_digest = new.digest
             from unnest($2::uuid[], $3::text[], $4::jsonb[], $5::jsonb[], $6::bigint[])
                 as new (id, suites, labels, links, digest)
             where customer_id = $1 and test_case.id = new.id
               and classification_digest is distinct from new.digest",
        );
        let update = update
            .bind(customer)
            .bind(part.iter().map(|one| one.case).collect::<Vec<_>>())
            .bind(part.iter().map(Classified::suites).collect::<Vec<_>>())
            .bind(part.iter().map(Classified::labels).collect::<Vec<_>>())
            .bind(part.iter().map(Classified::links).collect::<Vec<_>>())
            .bind(part.iter().map(|one| one.digest).collect::<Vec<_>>());
        update.execute(&mut **tx).await?;
    }
    Ok(())
}
