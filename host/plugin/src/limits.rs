//! What one plugin may use. Each number has a unit and says where it comes from.

use std::time::Duration;

use pintle_api::plugin;

/// One kibibyte, in bytes.
pub const KIB: usize = 1 << 10;
/// One mebibyte, in bytes.
pub const MIB: usize = 1 << 20;

/// Size of a component, in bytes. The largest useful guest known, Python with its interpreter, has 18.5 MB.
pub const COMPONENT: usize = 32 * MIB;
/// Wall time of one compilation. Python and JavaScript take 5 s on two cores, a hostile one took 126 s.
pub const COMPILE_TIME: Duration = Duration::from_secs(60);
/// The same where the compiler is not a process of its own, as in the kit: whoever waits there can stop it.
pub const COMPILE_TIME_IN_PROCESS: Duration = Duration::from_secs(300);
/// Wall time after which the one that waits for a compilation gives up, on top of the compiler's own.
pub const COMPILE_GRACE: Duration = Duration::from_secs(5);
/// Address space of the compiler's process, in bytes: four times what the largest useful guest takes.
pub const COMPILE_MEMORY: usize = 2 << 30;
/// Bytes of compiled code that are taken from the compiler: Python with its interpreter has 60 MB.
pub const COMPILED: usize = 512 * MIB;
/// Bytes of all compiled code that is kept on disk.
pub const CACHE: u64 = 1 << 30;
/// Bytes of the buffer that entries of the cache are read into, when it is kept for the next one: a plugin of ours has
/// 400 KB of code, an interpreter may have its own.
pub const CACHE_BUFFER: usize = MIB;
/// Components compiled at once: each may use hundreds of megabytes while it lasts.
pub const COMPILES: usize = 1;

/// Wall time of one call where the Plugin says nothing. A check of 10 KB takes 130 us.
pub const CALL_TIME: Duration = Duration::from_secs(5);
/// The most wall time a Plugin may ask for.
pub const CALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Wall time of `describe` and `validate-config` at load.
pub const DESCRIBE_TIME: Duration = Duration::from_secs(5);
/// How often running guests are interrupted. At 1 ms four spinners on two workers leave others 1.2 ms at p99.
pub const TICK: Duration = Duration::from_millis(1);
/// Interruptions after which a call goes on in the slow lane.
pub const FAST_TICKS: u32 = 2;
/// A call that takes no longer is quick: half a tick. A check of 10 KB takes a tenth of a tick.
pub const QUICK: Duration = Duration::from_micros(500);
/// Quick calls in a row after which a plugin is taken for quick.
pub const QUICK_IN_A_ROW: u32 = 8;

/// Linear memory of one call, all memories together, in bytes, where the Plugin says nothing.
pub const MEMORY: usize = 64 * MIB;
/// The most linear memory a Plugin may ask for, in bytes; the size of one slot of the pool.
pub const MEMORY_MAX: usize = 256 * MIB;
/// Elements of all tables of one call. JavaScript guests need 7,701.
pub const TABLE_ELEMENTS: usize = 10_000;
/// Bytes of a memory that stay with its slot in the pool after a call, so that the next one does not fault them in
/// again: a plugin of ours touches 100 KB, and a page that is faulted in takes longer than one that is cleared.
pub const MEMORY_WARM: usize = MIB;
/// The same of a table: 2,048 elements.
pub const TABLE_WARM: usize = 16 * KIB;
/// Stack of a guest, in bytes. Recursion without end traps in 0.4 ms.
pub const STACK: usize = 512 * KIB;
/// Stack of a call's fiber, in bytes: the guest's and that of the host functions on top of it.
pub const FIBER_STACK: usize = MIB;
/// Core instances inside one component. Python guests have 38.
pub const CORE_INSTANCES: u32 = 64;
/// Memories of one component; its sum is limited by [`MEMORY`].
pub const MEMORIES: u32 = 4;
/// Tables of one component; their sum is limited by [`TABLE_ELEMENTS`].
pub const TABLES: u32 = 8;
/// Handles that a guest may hold. Only WASI has any; a guest that prints holds fewer than ten.
pub const HANDLES: usize = 128;
/// Bytes that a guest may hand over in one call of the host, and in its answer.
pub const HOSTCALL: usize = 8 * MIB;

/// JSON given to one call, in bytes. etcd refuses objects over 1.5 MiB.
pub const INPUT: usize = 4 * MIB;
/// Texts of one answer together, in bytes.
pub const OUTPUT: usize = 4 * MIB;
/// Reads of objects in one call; each page of a list is one.
pub const READS: u32 = 100;
/// Reads of logs in one call: one for each node of a large cluster.
pub const TAILS: u32 = 1_000;
/// Bytes of objects and logs read in one call.
pub const READ_BYTES: usize = 4 * MIB;
/// Objects on one page of a list.
pub const PAGE: usize = 500;
/// Bytes of one page of a list; a page always has at least one object.
pub const PAGE_BYTES: usize = MIB;
/// Lines of one tail.
pub const TAIL_LINES: u32 = 10_000;
/// Bytes of one tail.
pub const TAIL_BYTES: u32 = 256 * KIB as u32;
/// Bytes of a pattern for a search in logs.
pub const PATTERN: usize = KIB;
/// Bytes of a compiled pattern.
pub const PATTERN_COMPILED: usize = MIB;

/// Lines that one call may log; more are dropped and counted.
pub const LOG_LINES: u32 = 100;
/// Bytes that one call may log, fields included; more are dropped and counted.
pub const LOG_BYTES: usize = 64 * KIB;
/// Lines that one plugin may log in a minute, over all its calls.
pub const LOG_LINES_A_MINUTE: u32 = 600;
/// Dropped lines after which the call is ended: no plugin logs that much by mistake once.
pub const LOG_FLOOD: u32 = 10_000;
/// Bytes of one logged message.
pub const LOG_MESSAGE: usize = 4 * KIB;
/// Fields of one logged line.
pub const LOG_FIELDS: usize = 16;

/// Bytes of a message for people: conditions, events, blockers, failures.
pub const MESSAGE: usize = KIB;
/// Bytes of a reason: what Kubernetes allows for an Event's.
pub const REASON: usize = 128;
/// Bytes of any name: what Kubernetes allows.
pub const NAME: usize = 253;
/// Blockers of one verdict; the last one counts the rest.
pub const BLOCKERS: usize = 256;
/// Conditions of one answer.
pub const CONDITIONS: usize = 16;
/// Events of one answer.
pub const EVENTS: usize = 16;
/// Actions of one answer.
pub const ACTIONS: usize = 16;
/// Bytes of an action's arguments.
pub const ARGUMENTS: usize = 4 * KIB;
/// Objects that one answer may want: a driver stack of a vendor has thirty.
pub const OBJECTS: usize = 512;
/// Bytes of one object: etcd takes no larger one.
pub const OBJECT: usize = 3 * MIB / 2;
/// Edits of one answer of a post-renderer.
pub const EDITS: usize = 2_048;
/// Node pools of one mapping, and labels of one pool.
pub const POOLS: usize = 64;
/// Characters of a pool's key: it ends names of objects, and names have 63.
pub const POOL_KEY: usize = 20;
/// Images that one call may look up.
pub const IMAGES: u32 = 64;
/// Different arguments of annotations that are remembered as checked, for one plugin.
pub const ARGS_REMEMBERED: usize = 256;
/// Bytes of answers that are kept to be given again, of all plugins together, where the host says
/// nothing.
pub const MEMO: usize = 8 * MIB;
/// Bytes of targets that are kept as text while their objects stay as they are, of all plugins together.
pub const TEXTS: usize = MIB;
/// Extra watches of one answer.
pub const WATCHES: usize = 64;
/// Bytes of what a plugin may keep.
pub const SAVE: usize = 16 * KIB;
/// Bytes of a plugin's part of a status.
pub const STATUS: usize = 16 * KIB;
/// Bytes of a manifest.
pub const MANIFEST: usize = 256 * KIB;
/// The least time until a call asks to be called again.
pub const RECHECK_MIN: Duration = Duration::from_secs(1);
/// The most time until a call asks to be called again.
pub const RECHECK_MAX: Duration = Duration::from_secs(3_600);

/// Calls of one plugin at once.
pub const CALLS_OF_ONE: usize = 4;
/// Calls at once for each core.
pub const CALLS_A_CORE: usize = 4;
/// Calls at once on a machine with few cores. Calls that spin share one thread, so more of them cost
/// others nothing, and sixteen plugins must hang at once before one waits for a slot.
pub const CALLS_LEAST: usize = 64;

/// Failures in a row that open a breaker.
pub const BREAKER_FAILURES: u32 = 3;
/// How long a breaker stays open at first; doubled each time.
pub const BREAKER_OPEN: Duration = Duration::from_secs(30);
/// The longest a breaker stays open.
pub const BREAKER_OPEN_MAX: Duration = Duration::from_secs(600);
/// Releases with an open breaker that open it for the whole plugin.
pub const BREAKER_RELEASES: usize = 3;

/// Changes of an answer within [`CHURN_WINDOW`], with the same inputs, that are still taken for a plugin
/// that makes up its mind.
pub const CHURN_CHANGES: usize = 5;
/// The time in which changes of an answer are counted.
pub const CHURN_WINDOW: Duration = Duration::from_secs(60);

/// A limit in a Plugin that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Not a Kubernetes quantity of bytes.
    #[error("spec.limits.memory {0:?} is no quantity such as 64Mi")]
    Memory(String),
    /// Not a duration.
    #[error("spec.limits.timeout {0:?} is no duration such as 2s")]
    Timeout(String),
    /// More than the host gives.
    #[error("spec.limits.{limit} is {wanted}, at most {most} are given")]
    TooMuch {
        /// Which limit.
        limit: &'static str,
        /// What the Plugin says.
        wanted: String,
        /// What the host gives.
        most: &'static str,
    },
}

/// Limits of a Plugin's calls, after defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Linear memory, in bytes.
    pub memory: usize,
    /// Wall time.
    pub timeout: Duration,
}

// === impl CallLimits ===

impl Default for CallLimits {
    fn default() -> Self {
        Self { memory: MEMORY, timeout: CALL_TIME }
    }
}

impl TryFrom<&plugin::Limits> for CallLimits {
    type Error = LimitError;

    fn try_from(limits: &plugin::Limits) -> Result<Self, LimitError> {
        let plugin::Limits { memory, timeout } = limits;
        let default = Self::default();
        let memory = if memory.is_empty() { default.memory } else { parse_memory(memory)? };
        let timeout = if timeout.is_empty() { default.timeout } else { parse_timeout(timeout)? };
        Ok(Self { memory, timeout })
    }
}

fn parse_memory(text: &str) -> Result<usize, LimitError> {
    let bytes = parse_quantity(text).ok_or_else(|| LimitError::Memory(text.to_owned()))?;
    if bytes > MEMORY_MAX {
        return Err(LimitError::TooMuch { limit: "memory", wanted: text.to_owned(), most: "256Mi" });
    }
    Ok(bytes)
}

fn parse_timeout(text: &str) -> Result<Duration, LimitError> {
    let wrong = || LimitError::Timeout(text.to_owned());
    let time = parse_duration(text).filter(|time| !time.is_zero()).ok_or_else(wrong)?;
    if time > CALL_TIME_MAX {
        return Err(LimitError::TooMuch { limit: "timeout", wanted: text.to_owned(), most: "30s" });
    }
    Ok(time)
}

fn parse_quantity(text: &str) -> Option<usize> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => KIB,
        "Mi" => MIB,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

fn parse_duration(mut text: &str) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    while !text.is_empty() {
        let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, rest) = text.split_at(digits);
        let letters = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(letters);
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            _ => return None,
        };
        sum = sum.checked_add(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?))?;
        text = rest;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn limits(memory: &str, timeout: &str) -> Result<CallLimits, LimitError> {
        CallLimits::try_from(&plugin::Limits { memory: memory.to_owned(), timeout: timeout.to_owned() })
    }

    #[test]
    fn a_plugin_without_limits_gets_the_defaults() {
        assert_eq!(limits("", "").unwrap(), CallLimits { memory: 64 * MIB, timeout: Duration::from_secs(5) });
    }

    #[test]
    fn limits_are_read_as_kubernetes_writes_them() {
        let read = limits("16Mi", "1m30s").map(|_| ()).unwrap_err();
        assert_eq!(read.to_string(), "spec.limits.timeout is 1m30s, at most 30s are given");
        let read = limits("16Mi", "1s500ms").unwrap();
        assert_eq!(read, CallLimits { memory: 16 * MIB, timeout: Duration::from_millis(1500) });
        assert_eq!(limits("1000000", "").unwrap().memory, 1_000_000);
    }

    #[test]
    fn what_is_no_limit_is_refused_by_its_field() {
        for memory in ["0", "-1", "1.5Mi", "x", "64MiB", "99999999999999999999"] {
            assert_eq!(limits(memory, ""), Err(LimitError::Memory(memory.to_owned())));
        }
        for timeout in ["0s", "5", "s", "1h"] {
            assert_eq!(limits("", timeout), Err(LimitError::Timeout(timeout.to_owned())));
        }
        assert!(matches!(limits("1Gi", ""), Err(LimitError::TooMuch { limit: "memory", .. })));
    }
}
