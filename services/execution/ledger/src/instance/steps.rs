//! The stored form of the steps of an instance: one compressed JSON array.
//!
//! Steps are most of the data of an installation, and are read one instance at a time. Compressed
//! JSON needs a fifth of the space of rows: on disk, on the connection to the database, and in the
//! memory of a request with thousands of steps.

use std::io;

use assay_proto::{
    EnumName, Fault, InstanceId, TestResult,
    execution::{Step, StepResultInput},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;
use zstd::bulk::{Compressor, decompress};

/// Maximum size of the steps of an instance as JSON, in bytes.
pub const LARGEST: usize = 1 << 20;

/// A stored step. Empty fields are omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StoredStep {
    pub step_nr: i32,
    #[serde(with = "EnumName::<TestResult>")]
    pub result: i32,
    pub duration_in_sec: f64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub test_input: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expected_result: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actual_result: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub screenshots: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thumbnail: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub soft_verification: Vec<String>,
}

impl From<StepResultInput> for StoredStep {
    fn from(step: StepResultInput) -> Self {
        Self {
            step_nr: step.step_nr,
            result: step.result,
            duration_in_sec: step.duration_in_sec,
            test_input: step.test_input.unwrap_or_default(),
            expected_result: step.expected_result.unwrap_or_default(),
            actual_result: step.actual_result.unwrap_or_default(),
            screenshots: step.screenshots,
            thumbnail: step.thumbnail.unwrap_or_default(),
            soft_verification: step.soft_verification,
        }
    }
}

impl StoredStep {
    pub fn result(&self) -> TestResult {
        TestResult::try_from(self.result).unwrap_or_default()
    }

    /// Returns the step that stands for those of an attempt with this result that are left out.
    fn left_out(result: i32) -> Self {
        let reason =
            "The steps of this attempt are left out, since those of later attempts are large.";
        Self { step_nr: 1, result, actual_result: reason.to_owned(), ..Self::default() }
    }

    /// Returns the step as clients see it, without its history.
    pub fn into_step(self, instance: InstanceId) -> Step {
        Step {
            id: id(instance, self.step_nr).to_string(),
            step_nr: self.step_nr,
            duration_in_sec: self.duration_in_sec,
            test_input: self.test_input,
            actual_result: self.actual_result,
            expected_result: self.expected_result,
            result: self.result,
            screenshots: self.screenshots,
            thumbnail: self.thumbnail,
            history: Vec::new(),
            soft_verification: self.soft_verification,
        }
    }
}

/// Returns the id of a step: that of the instance, with the number of the step added to the second
/// half, which is random. So the id is stable without being stored, and as unique as that of the
/// instance.
fn id(instance: InstanceId, step_nr: i32) -> Uuid {
    let (time, random) = instance.0.as_u64_pair();
    Uuid::from_u64_pair(time, random.wrapping_add(u64::from(step_nr.unsigned_abs())))
}

/// Converts steps to their stored form.
pub struct Writer {
    compressor: Compressor<'static>,
    json: Vec<u8>,
}

impl Writer {
    pub fn new() -> Result<Self, Fault> {
        let compressor = Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).map_err(internal)?;
        Ok(Self { compressor, json: Vec::new() })
    }

    /// Returns the stored form of steps. `None` if they are larger than [`LARGEST`].
    pub fn write(&mut self, steps: &[StoredStep]) -> Result<Option<Vec<u8>>, Fault> {
        if steps.is_empty() {
            return Ok(Some(Vec::new()));
        }
        self.json.clear();
        serde_json::to_writer(&mut self.json, steps).map_err(Fault::internal)?;
        if self.json.len() > LARGEST {
            return Ok(None);
        }
        let mut stored = self.compressor.compress(&self.json).map_err(internal)?;
        stored.shrink_to_fit();
        Ok(Some(stored))
    }
}

/// Maximum size of the steps of earlier attempts that are read with an instance, in bytes: stored, and as JSON. A
/// hundred attempts may have a mebibyte each.
pub const EARLIER: usize = 2 << 20;

/// Parses the stored steps of an earlier attempt with this result, and takes the size of their JSON off the room.
/// Returns a step that states that they are left out if they were not read, or need more than the room.
pub fn read_within(
    stored: Option<&[u8]>,
    result: i32,
    room: &mut usize,
) -> Result<Vec<StoredStep>, Fault> {
    let Some(stored) = stored else { return Ok(vec![StoredStep::left_out(result)]) };
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    let json = decompress(stored, LARGEST).map_err(internal)?;
    let Some(rest) = room.checked_sub(json.len()) else {
        return Ok(vec![StoredStep::left_out(result)]);
    };
    *room = rest;
    serde_json::from_slice(&json).map_err(Fault::internal)
}

/// Parses stored steps, as far as `T` has their fields.
pub fn read<T: DeserializeOwned>(stored: &[u8]) -> Result<Vec<T>, Fault> {
    if stored.is_empty() {
        return Ok(Vec::new());
    }
    let json = decompress(stored, LARGEST).map_err(internal)?;
    serde_json::from_slice(&json).map_err(Fault::internal)
}

fn internal(error: io::Error) -> Fault {
    Fault::internal(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step_nr: i32, actual_result: &str) -> StoredStep {
        let result = TestResult::Passed.into();
        let actual_result = actual_result.to_owned();
        StoredStep { step_nr, result, actual_result, ..StoredStep::default() }
    }

    #[test]
    fn stored_steps_are_compressed() {
        let text = "The page shows the name of the user who is logged in. ".repeat(3);
        let steps: Vec<StoredStep> = (1..=20).map(|nr| step(nr, &text)).collect();
        let stored = Writer::new().unwrap().write(&steps).unwrap().unwrap();
        assert!(stored.len() < 500, "{} bytes", stored.len());
        assert_eq!(read::<StoredStep>(&stored).unwrap(), steps);
    }

    #[test]
    fn empty_steps_need_no_space() {
        assert!(Writer::new().unwrap().write(&[]).unwrap().unwrap().is_empty());
        assert!(read::<StoredStep>(&[]).unwrap().is_empty());
    }

    #[test]
    fn steps_of_more_than_a_mebibyte_are_not_stored() {
        let steps = [step(1, &"x".repeat(LARGEST))];
        assert_eq!(Writer::new().unwrap().write(&steps).unwrap(), None);
    }

    #[test]
    fn ids_of_steps_are_distinct_and_stable() {
        let instance = InstanceId(Uuid::from_u64_pair(7, u64::MAX));
        assert_ne!(id(instance, 1), id(instance, 2));
        assert_eq!(id(instance, 1), Uuid::from_u64_pair(7, 0));
    }
}
