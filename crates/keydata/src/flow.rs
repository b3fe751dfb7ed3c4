//! How data flows through a step of reinforcement learning: which key is computed before which, by what, and how to
//! look into that.

/// A key the training loop is known to save.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stage {
    /// Its name.
    pub(super) key: &'static str,
    /// What to look at when it is the first to differ.
    pub(super) look_at: &'static str,
    /// Whether it comes from weights that the update of the step before has changed.
    pub(super) follows_update: bool,
    /// The collection that shows the layers behind it, if there is one.
    pub(super) layers: Option<Layers>,
}

/// A phase whose layers can be collected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layers {
    /// The key of `msprobe_config` that switches it on.
    pub(super) switch: &'static str,
    /// The phase, which is the directory of its dumps.
    pub(super) phase: &'static str,
}

impl Stage {
    const fn new(key: &'static str, look_at: &'static str) -> Stage {
        Stage { key, look_at, follows_update: false, layers: None }
    }

    const fn after_update(self) -> Stage {
        Stage { follows_update: true, ..self }
    }

    const fn with_layers(self, switch: &'static str, phase: &'static str) -> Stage {
        Stage { layers: Some(Layers { switch, phase }), ..self }
    }
}

/// From the prompt to the loss.
pub(super) const FLOW: [Stage; 9] = [
    Stage::new("prompts", "the data: order of samples, tokenizer, seed of the sampler"),
    Stage::new(
        "responses",
        "the rollout: sampling parameters and seed, the inference engine and the weights it was given",
    )
    .after_update()
    .with_layers("actor_infer_dump", "actor_generate_sequences"),
    Stage::new("values", "the critic")
        .after_update()
        .with_layers("critic_train_dump", "critic_compute_values"),
    Stage::new("old_log_prob", "the actor's forward pass before the update")
        .after_update()
        .with_layers("actor_train_dump", "actor_compute_log_prob"),
    Stage::new("ref_log_prob", "the reference model")
        .with_layers("reference_dump", "reference_compute_log_prob"),
    Stage::new("advantages", "rewards and how advantages are made of them"),
    Stage::new("log_prob", "the actor during the update")
        .after_update()
        .with_layers("actor_train_dump", "actor_update"),
    Stage::new("kl_loss", "the KL term of the loss"),
    Stage::new("loss", "the loss function"),
];

/// From here on keys are computed again for every micro batch, between updates.
const UPDATE: usize = 6;

/// The place of a key in the flow; unknown ones have none.
pub(super) fn position(key: &str) -> Option<usize> {
    FLOW.iter().position(|stage| stage.key == key)
}

/// What is known about a key.
pub(super) fn stage(key: &str) -> Option<&'static Stage> {
    FLOW.iter().find(|stage| stage.key == key)
}

/// Whether a model makes it, and not the data, the rewards or a formula of other keys.
pub(super) fn is_made_by_a_model(key: &str) -> bool {
    key != "responses" && stage(key).is_some_and(|stage| stage.layers.is_some())
}

/// Within a step: when an entry of a key came to be, compared with one of another key. Before the update everything
/// is computed key after key; in the update, micro batch after micro batch.
pub(super) fn moment(position: usize, micro_step: i64) -> (usize, i64, usize) {
    if (UPDATE..FLOW.len()).contains(&position) {
        (UPDATE, micro_step, position)
    } else {
        (position, 0, position)
    }
}

/// Whether a key holds tokens, so that a position in it means something to the reader.
pub(super) fn holds_tokens(key: &str) -> bool {
    matches!(key, "prompts" | "responses")
        || key.split(['_', '.', '-']).any(|word| matches!(word, "token" | "tokens" | "ids"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_has_the_order_of_the_manual() {
        let keys: Vec<&str> = FLOW.iter().map(|stage| stage.key).collect();
        assert_eq!(
            keys.join(" "),
            "prompts responses values old_log_prob ref_log_prob advantages log_prob kl_loss loss"
        );
        assert_eq!(FLOW[UPDATE].key, "log_prob");
    }

    #[test]
    fn micro_batches_of_the_update_follow_each_other() {
        let at = |key: &str, micro_step| moment(position(key).unwrap(), micro_step);
        assert!(at("responses", 3) < at("old_log_prob", 0));
        assert!(at("advantages", 7) < at("log_prob", 0));
        assert!(at("loss", 0) < at("log_prob", 1), "an update may lie between them");
        assert!(at("kl_loss", 1) < at("loss", 1));
        assert!(at("loss", 5) < moment(FLOW.len(), 0), "what is not known comes last");
    }

    #[test]
    fn tokens_are_known_by_name() {
        assert!(holds_tokens("responses") && holds_tokens("input_ids") && holds_tokens("response.tokens"));
        assert!(!holds_tokens("log_prob") && !holds_tokens("considered"));
    }
}
