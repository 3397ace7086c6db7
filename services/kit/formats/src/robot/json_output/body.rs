//! Keywords and blocks of a test, which are steps, and messages, which are its output.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::result;
use crate::{
    Attempt, Step,
    durations::duration,
    json::{Array, Elements, Members, Number, Object, Text},
    limits::{MESSAGE, MOST_STEPS, OUTPUT, STEP},
    texts::keep_end,
};

/// A keyword, block or message while its object is open.
pub(super) struct Open<'a> {
    attempt: &'a mut Attempt,
    depth: usize,
    /// Its place in the test: `SETUP` or `TEARDOWN`.
    role: &'static str,
    name: Text<STEP>,
    kind: Text<64>,
    status: Text<16>,
    message: Text<MESSAGE>,
    /// Seconds.
    elapsed: Number,
    step: Place,
}

/// Place of a step, which is in front of those within it.
#[derive(Clone, Copy)]
enum Place {
    Open,
    /// Beyond the limit.
    None,
    At(usize),
}

impl<'a> Open<'a> {
    /// Returns an object that is not a step itself, with the steps within it at this depth.
    pub(super) fn new(attempt: &'a mut Attempt, depth: usize) -> Self {
        let (name, kind, status, message, elapsed) = Default::default();
        Self { attempt, depth, role: "", name, kind, status, message, elapsed, step: Place::Open }
    }

    /// Reads the member `setup`, `body` or `teardown`.
    pub(super) fn within<'de, A: MapAccess<'de>>(
        &mut self,
        member: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let depth = self.depth;
        let role = match member {
            "setup" => "SETUP",
            "teardown" => "TEARDOWN",
            _ => return map.next_value_seed(Array(&mut Body { attempt: self.attempt, depth })),
        };
        let mut keyword = Open { role, ..Open::new(self.attempt, depth) };
        map.next_value_seed(Object(&mut keyword))?;
        keyword.finish();
        Ok(())
    }

    /// Adds the step, if there is room.
    fn add_step(&mut self) {
        let steps = &mut self.attempt.steps;
        if !matches!(self.step, Place::Open) {
            return;
        }
        self.step = Place::None;
        if steps.len() < MOST_STEPS {
            self.step = Place::At(steps.len());
            steps.push(Step { depth: self.depth, ..Step::default() });
        }
    }

    fn finish(mut self) {
        if self.kind.0 == "MESSAGE" {
            keep_end(&mut self.attempt.output, self.message.0.trim(), OUTPUT);
            keep_end(&mut self.attempt.output, "\n", OUTPUT);
            return;
        }
        let kind = match self.kind.0.as_str() {
            "" => self.role,
            "KEYWORD" => "",
            "IF/ELSE ROOT" => "IF",
            "TRY/EXCEPT ROOT" => "TRY",
            "ITERATION" => "ITER",
            kind => kind,
        };
        let name = match (self.name.0.as_str(), kind) {
            (name, "") => name.to_owned(),
            ("", kind) => kind.to_owned(),
            (name, kind) => format!("{kind}: {name}"),
        };
        let (result, seconds) = (result(&self.status.0), duration(self.elapsed.0));
        self.add_step();
        if let Place::At(index) = self.step {
            let depth = self.depth;
            let message = self.message.0;
            self.attempt.steps[index] = Step { depth, name, result, seconds, message };
        }
    }
}

impl Members for Open<'_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "type" => self.kind = map.next_value()?,
            "status" => self.status = map.next_value()?,
            "message" => self.message = map.next_value()?,
            "elapsed_time" => self.elapsed = map.next_value()?,
            "setup" | "body" | "teardown" => {
                self.add_step();
                return Open::new(self.attempt, self.depth + 1).within(name, map);
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

struct Body<'a> {
    attempt: &'a mut Attempt,
    depth: usize,
}

impl Elements for Body<'_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let mut open = Open::new(self.attempt, self.depth);
        if sequence.next_element_seed(Object(&mut open))?.is_none() {
            return Ok(false);
        }
        open.finish();
        Ok(true)
    }
}
