//! What the reference really made of recorded dumps, and what we make of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod recorded;

use msprobe_graph::names::Generation;
use msprobe_graph::run::LayerMapping;
use recorded::{Case, assert_same_db, assert_same_vis};

#[test]
fn a_build_shows_the_same_nodes() {
    let case = Case::new("build_mix_statistics");
    assert_same_vis(&case.run(Generation::First, false, |_| {}), &case.expected("out_default"));
    let complete = case.run(Generation::First, false, |options| options.complete_stacks = true);
    assert_same_vis(&complete, &case.expected("out_complete_stack"));
}

#[test]
fn checksums_are_compared() {
    let case = Case::new("compare_md5");
    assert_same_vis(&case.run(Generation::First, true, |_| {}), &case.expected("out"));
}

#[test]
fn statistics_are_compared_by_name_and_fuzzily() {
    let case = Case::new("compare_statistics_unmatched_and_fuzzy");
    assert_same_vis(&case.run(Generation::First, true, |_| {}), &case.expected("out_default"));
    let fuzzy = case.run(Generation::First, true, |options| options.fuzzy = true);
    assert_same_vis(&fuzzy, &case.expected("out_fuzzy"));
}

#[test]
fn steps_have_files_of_their_own_and_micro_steps_are_numbered() {
    let case = Case::new("compare_steps_micro_L0");
    assert_same_vis(&case.run(Generation::First, true, |_| {}), &case.expected("out"));
}

#[test]
fn structures_are_compared() {
    let case = Case::new("compare_structure");
    assert_same_vis(&case.run(Generation::First, true, |_| {}), &case.expected("out"));
}

#[test]
fn real_data_is_compared() {
    let case = Case::new("compare_tensor_L0");
    assert_same_vis(&case.run(Generation::First, true, |_| {}), &case.expected("out"));
}

#[test]
fn layers_are_mapped() {
    let case = Case::new("layer_mapping_L0");
    let mapping = LayerMapping::File(case.dir().join("mapping.yaml"));
    let mapped = case.run(Generation::First, true, |options| options.layer_mapping = Some(mapping.clone()));
    assert_same_vis(&mapped, &case.expected("out_mapping"));
}

#[test]
fn ranks_are_linked() {
    let case = Case::new("multi_rank_distributed_build");
    assert_same_vis(&case.run(Generation::First, false, |_| {}), &case.expected("out"));
    let case = Case::new("multi_rank_distributed_compare");
    assert_same_vis(&case.run(Generation::First, true, |_| {}), &case.expected("out"));
}

#[test]
fn overflow_is_marked() {
    let case = Case::new("overflow_check_build");
    let checked = case.run(Generation::First, false, |options| options.overflow_check = true);
    assert_same_vis(&checked, &case.expected("out"));
}

#[test]
fn the_newer_form_has_the_same_tables() {
    let case = Case::new("visdb_build_compare_statistics");
    assert_same_db(&case.run(Generation::Third, false, |_| {}), &case.expected("out_build"));
    assert_same_db(&case.run(Generation::Third, true, |_| {}), &case.expected("out_compare"));
}

#[test]
fn verdicts_are_the_same() {
    let case = Case::new("visdb_verdicts");
    assert_same_db(&case.run(Generation::Third, true, |_| {}), &case.expected("out"));
    assert_same_vis(&case.run(Generation::First, true, |_| {}), &case.expected("out_g1"));
}

#[test]
fn ranks_that_share_tensors_are_merged() {
    use msprobe_graph::merge::classes::Classes;
    use msprobe_graph::merge::{DEFAULT_ORDER, Strategies, Strategy};
    let strategy = |rank_size, tp| Strategy {
        rank_size,
        tp,
        pp: 1,
        vpp: 1,
        cp: 1,
        ep: 1,
        order: DEFAULT_ORDER.to_owned(),
    };
    let case = Case::new("visdb_parallel_merge_tp");
    let strategies = |golden| Strategies { target: strategy(2, 2), golden, classes: Classes::default() };
    let built = case.run(Generation::Third, false, |options| options.merge = Some(strategies(None)));
    assert_same_db(&built, &case.expected("out_build_merge"));
    let compared =
        case.run(Generation::Third, true, |options| options.merge = Some(strategies(Some(strategy(1, 1)))));
    assert_same_db(&compared, &case.expected("out_compare_merge"));
}
