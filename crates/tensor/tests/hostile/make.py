"""Writes the small hostile files beside this script (plain Python). Large ones are made by the tests."""

from pathlib import Path

HERE = Path(__file__).parent


def npy(name, header, version=1, length=None, magic=b"\x93NUMPY", data=bytes(8)):
    header = header.encode()
    length = len(header) if length is None else length
    length = length.to_bytes(2 if version == 1 else 4, "little")
    (HERE / "npy" / f"{name}.npy").write_bytes(magic + bytes([version, 0]) + length + header + data)


def fields(descr="'<f4'", shape="(2,)", more=""):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}{more}}}"


def safetensors(name, header, length=None, data=bytes(4)):
    header = header if isinstance(header, bytes) else header.encode()
    length = len(header) if length is None else length
    (HERE / "safetensors" / f"{name}.safetensors").write_bytes(length.to_bytes(8, "little") + header + data)


def entry(offsets="[0,2]", shape="[2]"):
    return f'{{"dtype":"U8","shape":{shape},"data_offsets":{offsets}}}'


for directory in ["npy", "safetensors"]:
    (HERE / directory).mkdir(exist_ok=True)

npy("bad_magic", fields(), magic=b"\x93NUMPZ")
(HERE / "npy" / "only_magic.npy").write_bytes(b"\x93NUMPY")
npy("version9", fields(), version=9)
npy("header_past_end", fields()[:46], length=65535)
npy("huge_header_v2", fields(), version=2, length=0xFFFFFFFF)
npy("escape_in_key", "{'sha\\x70e': (2,), 'descr': '<f4', 'fortran_order': False}")
npy("eval", fields(shape="__import__('os').system('true')"))
npy("negative_size", fields(shape="(-2,)"))
npy("object", fields(descr="'|O'"), data=b"\x80\x03cos\nsystem\n.")
npy("structured", fields(descr="[('a', '<f4'), ('b', '|O')]"))
npy("shape_overflow", fields(shape="(4294967296, 4294967296, 4294967296)"))
npy("shape_overflow_with_zero", fields(shape="(9223372036854775807, 9223372036854775807, 0)"))
npy("size_over_64_bits", fields(shape="(18446744073709551616,)"))
npy("two_shapes", fields(more=", 'shape': (1,)"))

safetensors("duplicate_name", f'{{"a":{entry()},"a":{entry("[2,4]")}}}')
safetensors("header_2_to_63", "{}", length=1 << 63, data=b"")
safetensors("header_over_limit", "{}", length=100_000_001, data=b"")
safetensors("header_past_end", "{}", length=100_000_000, data=b"")
safetensors("header_zero", "", data=b"{}")
safetensors("header_cut", f'{{"a":{entry()}}}', length=30)
safetensors("header_is_a_list", f"[{entry()}]")
safetensors("missing_offsets", '{"a":{"dtype":"U8","shape":[2]}}')
safetensors("one_offset", f'{{"a":{entry("[0]")}}}')
safetensors("three_offsets", f'{{"a":{entry("[0,2,4]")}}}')
safetensors("negative_shape", f'{{"a":{entry(shape="[-1,-2]")}}}')
safetensors("not_utf8", b'{"\xff\xfe":' + entry().encode() + b"}")
safetensors("overlap", f'{{"a":{entry()},"b":{entry("[1,3]")}}}')
safetensors("trailing_json", f'{{"a":{entry()}}}{{}}')
