//! The steps of an instance as they are stored: one compressed JSON array.
//!
//! Steps are by far the most of what an installation keeps, and are read one instance at a time. As
//! JSON compressed by the service they take a fifth of the room of rows, on disk, on the way to the
//! database and in the memory of a request that brings thousands of them.

use std::io;

use assay_proto::{
    EnumName, Fault, InstanceId, TestResult,
    execution::{Step, StepResultInput},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;
use zstd::bulk::{Compressor, decompress};

/// What the steps of one instance may have at most, as JSON.
pub(crate) const LARGEST: usize = 1 << 20;

/// A step as it is stored. What is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct StoredStep {
    pub(crate) step_nr: i32,
    #[serde(with = "EnumName::<TestResult>")]
    pub(crate) result: i32,
    pub(crate) duration_in_sec: f64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) test_input: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) expected_result: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) actual_result: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) screenshots: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) thumbnail: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) soft_verification: Vec<String>,
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
    pub(crate) fn result(&self) -> TestResult {
        TestResult::try_from(self.result).unwrap_or_default()
    }

    /// The step as clients see it, yet without its history.
    pub(crate) fn into_step(self, instance: InstanceId) -> Step {
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

/// The id of a step, which is not stored: the instance's with the step's number added to its second
/// half, which is random. So it is the same whenever it is read, and as unique as the instance's.
fn id(instance: InstanceId, step_nr: i32) -> Uuid {
    let (time, random) = instance.0.as_u64_pair();
    Uuid::from_u64_pair(time, random.wrapping_add(u64::from(step_nr.unsigned_abs())))
}

/// Writes steps as they are stored.
pub(crate) struct Writer {
    compressor: Compressor<'static>,
    json: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Result<Self, Fault> {
        let compressor = Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).map_err(internal)?;
        Ok(Self { compressor, json: Vec::new() })
    }

    /// The stored form of some steps; nothing if they are larger than [`LARGEST`].
    pub(crate) fn write(&mut self, steps: &[StoredStep]) -> Result<Option<Vec<u8>>, Fault> {
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

/// Reads stored steps, as far as `T` wants to know.
pub(crate) fn read<T: DeserializeOwned>(stored: &[u8]) -> Result<Vec<T>, Fault> {
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
    fn steps_survive_and_get_smaller() {
        let text = "The page shows the name of the user who is logged in. ".repeat(3);
        let steps: Vec<StoredStep> = (1..=20).map(|nr| step(nr, &text)).collect();
        let stored = Writer::new().unwrap().write(&steps).unwrap().unwrap();
        assert!(stored.len() < 500, "{} bytes", stored.len());
        assert_eq!(read::<StoredStep>(&stored).unwrap(), steps);
    }

    #[test]
    fn no_steps_take_no_room() {
        assert!(Writer::new().unwrap().write(&[]).unwrap().unwrap().is_empty());
        assert!(read::<StoredStep>(&[]).unwrap().is_empty());
    }

    #[test]
    fn steps_of_more_than_a_mebibyte_are_not_stored() {
        let steps = [step(1, &"x".repeat(LARGEST))];
        assert_eq!(Writer::new().unwrap().write(&steps).unwrap(), None);
    }

    #[test]
    fn each_step_has_an_id_of_its_own_that_stays() {
        let instance = InstanceId(Uuid::from_u64_pair(7, u64::MAX));
        assert_ne!(id(instance, 1), id(instance, 2));
        assert_eq!(id(instance, 1), Uuid::from_u64_pair(7, 0));
    }
}
