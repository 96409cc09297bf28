//! What vendors' operators do in code of their own, done by plugins: one test each, named after the number
//! the scenario has in our list.

#[path = "scenarios/around.rs"]
mod around;
#[path = "scenarios/around_crash.rs"]
mod around_crash;
#[path = "scenarios/play.rs"]
mod play;
#[path = "scenarios/policy.rs"]
mod policy;
#[path = "scenarios/pools.rs"]
mod pools;
#[path = "scenarios/readiness.rs"]
mod readiness;
#[path = "scenarios/rendered.rs"]
mod rendered;
#[path = "scenarios/values.rs"]
mod values;
#[path = "scenarios/vendors.rs"]
mod vendors;

pub(crate) use around::script;
