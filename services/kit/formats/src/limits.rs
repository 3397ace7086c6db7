//! Limits of what is kept of a report. Texts are shortened and excess elements dropped, so that a
//! report of any size needs little memory; limits that only hostile files exceed refuse the file.

/// Size of the beginning of a file from which its format is recognized, in bytes. Playwright writes
/// its configuration and XML tools write comments before what identifies them.
pub(crate) const LOOK_AHEAD: usize = 16 << 10;

/// Maximum nesting depth of elements, objects and arrays. No tool nests deeper than its suites,
/// keywords or steps.
pub(crate) const DEEPEST: usize = 64;

/// Size of the beginning of a stack trace that is kept, in bytes. A step has 64 KiB.
pub(crate) const TEXT: usize = 32 << 10;

/// Size of the beginning of a message, class, name or path that is kept, in bytes.
pub(crate) const MESSAGE: usize = 4 << 10;

/// Size of the end of an output that is kept, in bytes. The end shows why a test failed.
pub(crate) const OUTPUT: usize = 4 << 10;

/// Maximum number of problems of an attempt.
pub(crate) const MOST_PROBLEMS: usize = 20;

/// Maximum number of attempts of a test. The last one always counts.
pub(crate) const MOST_ATTEMPTS: usize = 20;

/// Maximum number of steps of an attempt. Loops of Robot Framework have thousands of keywords.
pub(crate) const MOST_STEPS: usize = 500;

/// Size of the beginning of the name of a step that is kept, in bytes.
pub(crate) const STEP: usize = 1 << 10;

/// Maximum number of labels, links and parameters of a test, each.
pub(crate) const MOST_LABELS: usize = 50;

/// Size of the beginning of the target of a link that is stored, in bytes.
pub(crate) const TARGET: usize = 1000;

/// Maximum number of attachments of an attempt.
pub(crate) const MOST_ATTACHMENTS: usize = 50;

/// Maximum size of an attachment in a report that is kept, in bytes. Larger ones are only named.
pub(crate) const INLINE: usize = 1 << 20;

/// Maximum size of all kept attachments of a test, in bytes.
pub(crate) const INLINE_TOTAL: usize = 4 << 20;
