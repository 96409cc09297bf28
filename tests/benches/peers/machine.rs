//! What processes and the machine have used, from `/proc`.

use std::fs;

use anyhow::Context as _;

/// Clock ticks a second in `/proc`: fixed for programs, whatever the kernel's own clock is.
const TICKS: f64 = 100.0;

/// Resident memory of a process, in MiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub now: f64,
    pub peak: f64,
}

/// Seconds of processor time that the machine has spent since its start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    /// All of it but waiting.
    pub all: f64,
    /// Of it, programs that let others go first.
    pub nice: f64,
}

/// Seconds of processor time that a process has used, in itself and in the kernel.
pub(crate) fn cpu_of(pid: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("a measured process has ended")?;
    // The second field is the program's name in brackets and may contain anything.
    let fields = stat.rsplit_once(')').context("/proc/PID/stat has no name")?.1;
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS)
}

pub(crate) fn memory_of(pid: u32) -> anyhow::Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("a measured process has ended")?;
    let mebibytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
    };
    let both = mebibytes("VmRSS:").zip(mebibytes("VmHWM:"));
    both.map(|(now, peak)| Memory { now, peak }).context("/proc/PID/status tells no memory")
}

pub(crate) fn busy() -> anyhow::Result<Busy> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let seconds: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .map(|ticks: f64| ticks / TICKS)
        .collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft, ..] = seconds.as_slice() else {
        anyhow::bail!("/proc/stat has fewer fields than Linux gives it")
    };
    Ok(Busy { all: user + nice + system + interrupts + soft, nice: *nice })
}

/// Processors, their name, and the kernel.
pub(crate) fn description() -> String {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.map_or("of unknown make", |(_, model)| model);
    format!("{processors} processors ({model}), Linux {}", kernel.trim())
}

/// Processes that ran or waited to run in the last minute, on average.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}
