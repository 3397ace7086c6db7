//! Processor time and memory of processes, from `/proc`.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};

/// Microseconds in a tick, the unit of processor times in `/proc`.
const MICROS_PER_TICK: f64 = 10_000.0;

const KIB_PER_MIB: f64 = 1024.0;

/// Processor time by name of the process, in ticks.
pub(crate) type Times = BTreeMap<String, u64>;

/// Fields of `/proc/<pid>/stat` that are used.
struct Stat {
    parent: u32,
    /// Processor time of the process.
    own: u64,
    /// Processor time of its children that have ended.
    ended_children: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may contain spaces.
    let fields: Vec<&str> = line.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: number(1)?.try_into().ok()?,
        own: number(11)? + number(12)?,
        ended_children: number(13)? + number(14)?,
    })
}

/// Returns the processor time of a process, in ticks.
pub(crate) fn ticks(pid: u32) -> u64 {
    stat(pid).map_or(0, |stat| stat.own)
}

/// Returns the processor time of a process and its children, such as PostgreSQL with its backends.
pub(crate) fn ticks_with_children(pid: u32) -> u64 {
    let own = stat(pid).map_or(0, |stat| stat.own + stat.ended_children);
    own + children(pid).map(|(_, stat)| stat.own).sum::<u64>()
}

fn children(pid: u32) -> impl Iterator<Item = (u32, Stat)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?))).filter(move |(_, stat)| stat.parent == pid)
}

/// Returns the differences in microseconds.
pub(crate) fn micros_since(before: &Times, after: &Times) -> BTreeMap<String, f64> {
    let spent = |name: &String, ticks: &u64| {
        let ticks = ticks.saturating_sub(before.get(name).copied().unwrap_or_default());
        ticks as f64 * MICROS_PER_TICK
    };
    after.iter().map(|(name, ticks)| (name.clone(), spent(name, ticks))).collect()
}

/// Memory of a process, in MiB.
pub(crate) struct Memory {
    pub(crate) resident: f64,
    /// Maximum since [`forget_peak`].
    pub(crate) peak: f64,
}

pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.map(|kib| kib / KIB_PER_MIB).with_context(|| format!("no {name} of process {pid}"))
    };
    Ok(Memory { resident: field("VmRSS:")?, peak: field("VmHWM:")? })
}

/// Resets the maximum of a process.
pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    Ok(fs::write(Path::new("/proc").join(pid.to_string()).join("clear_refs"), "5")?)
}
