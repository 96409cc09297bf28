//! What vendors' operators do in code of their own, done by plugins: one test each, named after the number
//! the scenario has in our list.

#[path = "scenarios/play.rs"]
mod play;
#[path = "scenarios/pools.rs"]
mod pools;
#[path = "scenarios/readiness.rs"]
mod readiness;
#[path = "scenarios/rendered.rs"]
mod rendered;
#[path = "scenarios/values.rs"]
mod values;
