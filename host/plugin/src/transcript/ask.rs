//! Every question to a plugin as one type, and every answer.

use std::sync::Arc;

use pintle_api::{Object, ObjectRef};
use serde::{Deserialize, Serialize};

use crate::{
    Call, CallResult, Checked, Desired, Export, Keyed, Mapped, Phase, Plugin, PostRendered, Rendered, Stepped,
};

/// What a plugin is asked, with what belongs to the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "function", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Ask {
    /// Chart values.
    MapValues,
    /// Changes of what was rendered.
    PostRender {
        /// What was rendered.
        objects: Vec<Rendered>,
    },
    /// Whether an object is ready.
    Check {
        /// The live object.
        target: Arc<Object>,
    },
    /// Whether a state may go on.
    OnPhase {
        /// When.
        phase: Phase,
        /// Objects of the state.
        rendered: Vec<Arc<Object>>,
        /// Live objects of the hook.
        applied: Vec<Keyed>,
    },
    /// What should be.
    Reconcile {
        /// Live objects of the reconciler.
        applied: Vec<Keyed>,
    },
    /// What shall still be.
    Finalize {
        /// Live objects of the reconciler.
        applied: Vec<Keyed>,
    },
}

/// What a plugin answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// To [`Ask::MapValues`].
    Mapped(Mapped),
    /// To [`Ask::PostRender`].
    PostRendered(PostRendered),
    /// To [`Ask::Check`].
    Checked(Checked),
    /// To [`Ask::OnPhase`].
    Stepped(Stepped),
    /// To [`Ask::Reconcile`] and [`Ask::Finalize`].
    Desired(Desired),
}

impl Plugin {
    /// Asks whatever is asked.
    ///
    /// # Cancellation
    /// Dropping the future ends the call; nothing was written.
    pub async fn answer(&self, ask: &Ask, call: Call) -> CallResult<Answered> {
        match ask {
            Ask::MapValues => self.map_values(call).await.map(Answered::Mapped),
            Ask::PostRender { objects } => {
                self.post_render(call, objects.clone()).await.map(Answered::PostRendered)
            }
            Ask::Check { target } => self.check(call, Arc::clone(target)).await.map(Answered::Checked),
            Ask::OnPhase { phase, rendered, applied } => {
                self.on_phase(call, *phase, rendered, applied).await.map(Answered::Stepped)
            }
            Ask::Reconcile { applied } => self.reconcile(call, applied).await.map(Answered::Desired),
            Ask::Finalize { applied } => self.finalize(call, applied).await.map(Answered::Desired),
        }
    }
}

// === impl Ask ===

impl Ask {
    /// The interface that has the function.
    #[must_use]
    pub fn export(&self) -> Export {
        match self {
            Self::MapValues => Export::ValueMapper,
            Self::PostRender { .. } => Export::PostRenderer,
            Self::Check { .. } => Export::Readiness,
            Self::OnPhase { .. } => Export::Hooks,
            Self::Reconcile { .. } | Self::Finalize { .. } => Export::Reconciler,
        }
    }

    /// The name of the function.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::MapValues => "map-values",
            Self::PostRender { .. } => "post-render",
            Self::Check { .. } => "check",
            Self::OnPhase { phase: Phase::Pre, .. } => "on-phase pre",
            Self::OnPhase { phase: Phase::Waiting, .. } => "on-phase waiting",
            Self::OnPhase { phase: Phase::Post, .. } => "on-phase post",
            Self::Reconcile { .. } => "reconcile",
            Self::Finalize { .. } => "finalize",
        }
    }

    /// The object that is asked about, where it is one.
    #[must_use]
    pub fn target(&self) -> Option<ObjectRef> {
        match self {
            Self::Check { target } => Some(target.reference()),
            _ => None,
        }
    }
}

// === impl Answered ===

impl From<Mapped> for Answered {
    fn from(answer: Mapped) -> Self {
        Self::Mapped(answer)
    }
}

impl From<PostRendered> for Answered {
    fn from(answer: PostRendered) -> Self {
        Self::PostRendered(answer)
    }
}

impl From<Checked> for Answered {
    fn from(answer: Checked) -> Self {
        Self::Checked(answer)
    }
}

impl From<Stepped> for Answered {
    fn from(answer: Stepped) -> Self {
        Self::Stepped(answer)
    }
}

impl From<Desired> for Answered {
    fn from(answer: Desired) -> Self {
        Self::Desired(answer)
    }
}
