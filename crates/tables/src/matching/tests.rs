use super::*;

#[test]
fn float_types_of_one_framework_are_interchangeable() {
    assert!(dtypes_agree("torch.float16", "torch.float32"));
    assert!(dtypes_agree("BFloat16", "Float32"));
    assert!(!dtypes_agree("torch.float64", "torch.float32"));
    assert!(!dtypes_agree("torch.int32", "torch.int64"));
    assert!(!dtypes_agree("Float32", "torch.float32"));
    assert!(dtypes_agree(fold_to_family("Float64"), fold_to_family("torch.float32")));
    assert!(dtypes_agree(fold_to_family("UInt8"), fold_to_family("torch.int64")));
    assert!(dtypes_agree(fold_to_family("Float8E4M3FN"), fold_to_family("torch.float8_e4m3fn")));
    assert_eq!(fold_to_family("<class 'int'>"), "<class 'int'>");
}
