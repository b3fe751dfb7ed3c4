//! Kernels against a naive oracle, over dtypes, shapes, layouts and awkward values.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod oracle;

use md5::{Digest, Md5};
use msprobe_tensor::{
    DType, Endian, Number, PairError, Statistics, TensorView, ViewError, compare_pair, crc32, hash128, md5,
    statistics,
};
use oracle::seeds_beside_the_test;
use oracle::tensors::{Closeness, Recipe, Tensor, any_dtype, any_recipe, closeness, large_recipe};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

type Outcome = Result<(), TestCaseError>;

/// Elements of most tensors tried here.
const MOST: usize = 5000;

/// `PROPTEST_CASES` scales every property; 256 are the default.
fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = (u64::from(cases) * u64::from(default.cases)).div_ceil(256) as u32;
    ProptestConfig { cases, failure_persistence: seeds_beside_the_test(), ..default }
}

fn check_statistics(tensor: &Tensor) -> Outcome {
    let values = oracle::decode_all(tensor.dtype, &tensor.row_major());
    oracle::statistics::check(&statistics(&tensor.view()), tensor.dtype, tensor.shape.is_empty(), &values)
}

fn check_checksums(tensor: &Tensor) -> Outcome {
    let bytes = tensor.row_major();
    prop_assert_eq!(
        crc32(&tensor.view()),
        oracle::crc32(&oracle::checksummed_bytes(tensor.dtype, &bytes)),
        "crc32"
    );
    prop_assert_eq!(md5(&tensor.view()), <[u8; 16]>::from(Md5::digest(&bytes)), "md5");
    prop_assert_eq!(hash128(&tensor.view()), hash128(&tensor.materialised().view()), "hash128");
    Ok(())
}

/// Everything but the sums, as text, in which NaN equals NaN and the sign of zero does not count.
fn without_sums(stats: &Statistics) -> String {
    let unsigned_zero = |number: Option<Number>| match number {
        Some(Number::Float(value)) => Some(Number::Float(value + 0.0)),
        other => other,
    };
    let (max, min) = (unsigned_zero(stats.max), unsigned_zero(stats.min));
    format!("{:?}", Statistics { max, min, mean: None, norm: None, ..*stats })
}

fn check_layout_does_not_matter(tensor: &Tensor) -> Outcome {
    let copy = tensor.materialised();
    prop_assert!(copy.view().as_bytes().is_some());
    check_statistics(&copy)?;
    let (here, there) = (statistics(&tensor.view()), statistics(&copy.view()));
    prop_assert_eq!(without_sums(&here), without_sums(&there));
    check_checksums(tensor)
}

/// Two tensors with as many elements; the target more or less like the golden.
#[derive(Debug, Clone)]
struct PairRecipe {
    target: Recipe,
    golden: Recipe,
    closeness: Closeness,
    flat: bool,
    seed: u64,
}

impl PairRecipe {
    fn build(&self) -> (Tensor, Tensor) {
        let golden = self.golden.build();
        let target = if self.flat {
            self.target.flattened(golden.shape.iter().product())
        } else {
            self.target.shaped_like(&self.golden)
        };
        let mut target = target.build();
        target.approach(&golden, self.closeness, self.seed);
        (target, golden)
    }
}

fn pair_of(
    target: impl Strategy<Value = Recipe>,
    golden: impl Strategy<Value = Recipe>,
) -> impl Strategy<Value = PairRecipe> {
    (target, golden, closeness(), any::<bool>(), any::<u64>()).prop_map(
        |(target, golden, closeness, flat, seed)| PairRecipe { target, golden, closeness, flat, seed },
    )
}

/// Pairs of the same dtype as often as of any two.
fn any_pair() -> impl Strategy<Value = PairRecipe> {
    let pair = pair_of(any_recipe(any_dtype(), MOST), any_recipe(any_dtype(), MOST));
    (pair, any::<bool>()).prop_map(|(mut pair, alike)| {
        if alike {
            pair.target.dtype = pair.golden.dtype;
        }
        pair
    })
}

fn check_pair(pair: &PairRecipe) -> Outcome {
    let (target, golden) = pair.build();
    let metrics = compare_pair(&target.view(), &golden.view()).unwrap();
    let (target_bytes, golden_bytes) = (target.row_major(), golden.row_major());
    prop_assert_eq!(metrics.is_none(), golden_bytes.is_empty());
    let Some(metrics) = metrics else { return Ok(()) };
    oracle::pair::check(
        &metrics,
        (target.dtype, golden.dtype),
        target.shape.is_empty() && golden.shape.is_empty(),
        &oracle::decode_all(target.dtype, &target_bytes),
        &oracle::decode_all(golden.dtype, &golden_bytes),
    )?;
    let plain = compare_pair(&target.materialised().view(), &golden.materialised().view()).unwrap();
    prop_assert_eq!(format!("{:?}", Some(metrics)), format!("{plain:?}"));
    Ok(())
}

/// What `measure` returns, as text that tells every bit (but those of NaNs), with 1, 2 and 5 threads.
fn check_threads_do_not_matter<T: std::fmt::Debug + Send>(measure: impl Fn() -> T + Sync) -> Outcome {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        format!("{:?}", pool.install(&measure))
    };
    let alone = with(1);
    prop_assert_eq!(&alone, &with(2));
    prop_assert_eq!(&alone, &with(5));
    Ok(())
}

#[test]
fn every_dtype_with_every_kind_of_value() {
    for dtype in DType::all() {
        let small = any_recipe(Just(dtype), MOST);
        proptest!(config(200), |(recipe in small)| check_statistics(&recipe.build())?);
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn layout_does_not_matter(recipe in any_recipe(any_dtype(), MOST)) {
        check_layout_does_not_matter(&recipe.build())?;
    }

    #[test]
    fn pairs(pair in any_pair()) {
        check_pair(&pair)?;
    }
}

#[test]
fn pairs_of_every_two_dtypes() {
    for target in DType::all() {
        for golden in DType::all() {
            let pair = pair_of(any_recipe(Just(target), 500), any_recipe(Just(golden), 500));
            proptest!(config(15), |(pair in pair)| check_pair(&pair)?);
        }
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn large_tensors(recipe in large_recipe(any_dtype())) {
        let tensor = recipe.build();
        check_statistics(&tensor)?;
        check_layout_does_not_matter(&tensor)?;
        check_threads_do_not_matter(|| {
            let view = tensor.view();
            (statistics(&view), crc32(&view), hash128(&view))
        })?;
    }

    #[test]
    fn large_pairs(pair in pair_of(large_recipe(any_dtype()), large_recipe(any_dtype()))) {
        check_pair(&pair)?;
        let (target, golden) = pair.build();
        check_threads_do_not_matter(|| compare_pair(&target.view(), &golden.view()))?;
    }
}

#[test]
fn counts_of_a_pair_must_agree() {
    let bytes = [0u8; 16];
    for (target, golden) in [(0, 1), (1, 0), (3, 4), (16, 15)] {
        let view = |numel: usize| TensorView::contiguous(DType::U8, vec![numel], &bytes).unwrap();
        let expected = Err(PairError::CountMismatch { target, golden });
        assert_eq!(compare_pair(&view(target), &view(golden)), expected);
    }
}

fn any_size() -> impl Strategy<Value = usize> {
    let extreme = [usize::MAX, usize::MAX / 2, 1 << 63, 1 << 62, 1 << 32, 1 << 31];
    prop_oneof![1 => Just(0), 20 => 1usize..6, 1 => prop::sample::select(extreme.to_vec()), 1 => any::<usize>()]
}

fn any_stride() -> impl Strategy<Value = isize> {
    let extreme = [isize::MIN, isize::MAX, isize::MIN / 2, isize::MAX / 2, 1 << 32];
    prop_oneof![12 => -8isize..9, 1 => prop::sample::select(extreme.to_vec()), 1 => any::<isize>()]
}

/// Elements and bytes, or `None` if they are too many to address.
fn addressable_numel(dtype: DType, shape: &[usize]) -> Option<i128> {
    let numel = if shape.contains(&0) {
        0
    } else {
        shape.iter().try_fold(1i128, |product, &size| product.checked_mul(size as i128))?
    };
    (numel.checked_mul(dtype.size_bytes() as i128)? <= isize::MAX as i128).then_some(numel)
}

/// Lowest and highest element index over all corners of the box of indices.
fn reach(shape: &[usize], strides: &[isize], offset: usize) -> (i128, i128) {
    let corner = |corner: u32| {
        let along =
            |dim: usize| (shape[dim] as i128 - 1) * strides[dim] as i128 * i128::from(corner >> dim & 1);
        offset as i128 + (0..shape.len()).map(along).sum::<i128>()
    };
    let corners = (0..1 << shape.len()).map(corner);
    (corners.clone().min().unwrap(), corners.max().unwrap())
}

/// Calls everything that takes a view; nothing may panic.
fn use_view(view: &TensorView<'_>) {
    let _ = (view.is_row_major(), view.as_bytes(), view.size_bytes(), view.real_part());
    let _ = view.leading_block(&vec![1; view.shape().len()]);
    let ordered = view.in_memory_order();
    assert_eq!(ordered.numel(), view.numel());
    // Broadcasting makes tensors no machine could walk through.
    if view.numel() < 100_000 {
        for view in [view, &ordered] {
            let _ = (statistics(view), crc32(view), md5(view), hash128(view), compare_pair(view, view));
            let _ = view.real_part().map(|real| statistics(&real));
        }
    }
}

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn a_view_is_made_exactly_if_its_elements_are_inside(
        dtype in any_dtype(),
        dims in prop::collection::vec((any_size(), any_stride()), 0..=5),
        odd_rank in prop::bool::weighted(0.02),
        offset in prop_oneof![12 => 0usize..40, 1 => any::<usize>(), 1 => Just(usize::MAX)],
        storage_bytes in 0usize..700,
        big in any::<bool>(),
    ) {
        let storage = vec![0x5a; storage_bytes];
        let (shape, mut strides): (Vec<usize>, Vec<isize>) = dims.into_iter().unzip();
        if odd_rank {
            strides.push(1);
        }
        let endian = if big { Endian::Big } else { Endian::Little };
        let view = TensorView::new(dtype, shape.clone(), strides.clone(), &storage, offset, endian);
        if odd_rank {
            let expected = ViewError::RankMismatch { shape: shape.len(), strides: strides.len() };
            prop_assert_eq!(view.err(), Some(expected));
            return Ok(());
        }
        let Some(numel) = addressable_numel(dtype, &shape) else {
            prop_assert_eq!(view.err(), Some(ViewError::TooLarge { shape }));
            return Ok(());
        };
        let available = storage_bytes / dtype.size_bytes();
        if numel > 0 {
            let (first, last) = reach(&shape, &strides, offset);
            if first < 0 || last >= available as i128 {
                prop_assert_eq!(view.err(), Some(ViewError::OutOfBounds { first, last, available }));
                return Ok(());
            }
        }
        let view = view.unwrap();
        prop_assert_eq!(view.numel() as i128, numel);
        use_view(&view);
    }
}
