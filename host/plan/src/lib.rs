//! One way to decide: what a release needs next, as data, from what is known now.
//!
//! [`decide`] takes rendered states, the memory of the release, answers of this pass and facts
//! about the cluster, and gives the next steps. It writes nothing and knows no clock: the caller
//! executes the steps, adds the answers, and asks again.

mod around;
pub mod build;
mod compare;
mod decide;
mod dress;
mod drift;
mod gate;
mod hold;
mod hook;
mod memory;
mod namespace;
mod normal;
mod outcome;
mod pool;
mod ready;
mod reconcile;
mod refusal;
pub mod remedy;
mod removal;
mod report;
mod runtime;
mod state;

pub use around::{
    Act, ActVerb, Around, Ask, AskKey, Declared, Deed, DeedRun, Done, Held, MissingPolicy, Moment, Owned,
    Part, Reference, Role, Site, SiteMemory, Tell, Told, ToldOutcome, Wanted,
};
pub use compare::{fields_mark, rendered_mark};
pub use decide::decide;
pub use dress::{Dress, DressError, Flavor, IN_STATE, dress, dress_own, is_per_pool};
pub use drift::{Contest, Drift, held_mark};
pub use gate::{Gate, GateError, Named, Term, parse_gate, parse_plugins, parse_wait};
pub use hold::hold;
pub use hook::{Hook, HookPhase, HookRun, word};
pub use memory::{Begun, Demand, Known, Memory, Operation, Pass, SCHEMA, Saved};
pub use namespace::{Fate, counts as counts_in_namespace, fate_of as fate_of_namespace, is_made_for};
pub use outcome::{Apply, ApplyMode, Call, CallAnswer, CallKey, Delete, Plan, StateView, Step};
pub use pool::{MappedPool, Pool, Pools, affinity_suffix, fnv1a};
pub use ready::{has_rule, judge};
pub use reconcile::{decide_finalizing, decide_reconciling};
pub use refusal::{Cause, Refusal, verdict_of};
pub use removal::decide_removal;
pub use report::{
    ConditionSet, Extra, OWN_FIELDS, REMARKS, Remark, StatusInput, Trouble, paused_status,
    special_resource_status, states_status, watch_status,
};
pub use runtime::{RuntimeFacts, observe_runtime};

pub use state::{
    Answers, CRDS, Input, Marks, Policy, PoolInput, REST, Release, RenderFault, Rendered, SkipsHooks,
    StateInput,
};
