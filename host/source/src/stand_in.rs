//! Stand in until the chart branch has sources.
use std::sync::Arc;
use pintle_api::{Answer, Facts, special_resource::HelmChart};
/// x
pub struct Sources;
/// x
#[derive(Debug, thiserror::Error)]
#[error("none")]
pub struct SourceError;
impl SourceError {
    /// x
    pub fn may_pass(&self) -> bool { false }
}
impl Sources {
    /// x
    pub fn new() -> Self { Self }
    /// x
    pub async fn fetch(&self, _: &HelmChart, _: &dyn Facts) -> Result<Answer<Arc<pintle_chart::Chart>>, SourceError> { Err(SourceError) }
}
