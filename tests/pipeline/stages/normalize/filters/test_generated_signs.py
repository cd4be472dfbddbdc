"""The output of a generator has its signs, and code that uses such output has not."""

import pytest

from pipeline.stages.normalize.filters.generated_signs import GENERATOR_SIGNS, generator_of
from tests.pipeline.stages.normalize.filters.good_files import GOOD
from tests.pipeline.stages.normalize.filters.made_blobs import blob

NAMES = {
    "bison": "a parser of Bison",
    "flex": "a scanner of flex",
    "re2c": "a scanner of re2c",
    "ragel": "a state machine of Ragel",
    "gperf": "a perfect hash of gperf",
    "swig": "bindings of SWIG",
    "cython": "a module of Cython",
    "f2c": "Fortran translated by f2c",
    "protobuf": "protocol buffers",
    "thrift": "messages of Thrift",
    "moc": "meta-objects of Qt",
    "lemon": "a parser of Lemon",
    "preprocessed": "output of the preprocessor",
    "decompiled": "a decompiler",
}
EXAMPLES = {
    "a parser of Bison": "#define YYBISON 1\n",
    "a scanner of flex": "#define FLEX_SCANNER\n",
    "a parser of byacc": "static short yylhs[] = {}; short yylen[] = {}; short yydefred[] = {}; short yydgoto[] = {};",
    "gotos of a program": "".join(f"goto L_{n}; " for n in range(60)),
    "protocol buffers in C": "".join(f"foo{n}__descriptor foo{n}__field_descriptors " for n in range(6)),
    "messages of FlatBuffers": "VT_A = 4, VT_B = 6, VT_C = 8 }; verifier.VerifyTableStart(verifier)",
    "resources of Qt": "qt_resource_data qt_resource_name qt_resource_struct",
    "a form of Qt": "void setupUi(QWidget *Form) {} void retranslateUi(QWidget *Form) {}",
    "a parser of ANTLR": "".join(f"setState({n}); " for n in range(15)),
    "code of Vala": "".join(f"_tmp{n}_ = self; " for n in range(30)),
    "stubs of MIDL": "__MIDL_A __MIDL_B __MIDL_C __MIDL_D __MIDL_E",
    "bindings of gSOAP": "".join(f"soap_in_ns{n} " for n in range(40)),
    "types of asn1c": "asn_DEF_A asn_DEF_B asn_MBR_A asn_SPC_A",
    "a model of Verilator": "VL_SIG8 VL_IN8 VL_OUT8 vlSelf " * 5,
    "a model of Simulink": "".join(f"rtb_Sum{n} = a; rtb_Sum{n} += b; " for n in range(30)),
    "wasm2c": "".join(f"w2c_f{n} i32_load wasm_rt_trap " for n in range(20)),
    "a Haskell compiler": "".join(f"base_Main{n}_closure " for n in range(10)),
    "a Nim compiler": "NimStringDesc NIM_BOOL NIM_NIL nimZeroMem popFrame " * 2,
    "a Scheme compiler": "C_word C_fix C_trace C_slot C_i_car " * 6,
}


@pytest.mark.parametrize("kind", NAMES)
def test_the_output_of_a_generator_names_it(kind: str) -> None:
    assert generator_of(blob(kind, 1)[1].encode()) == NAMES[kind]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_least_number_of_matches_is_a_sign(name: str) -> None:
    assert generator_of(EXAMPLES[name].encode()) == name


def test_every_sign_has_an_example() -> None:
    assert {*NAMES.values(), *EXAMPLES} == {sign.name for sign in GENERATOR_SIGNS}


@pytest.mark.parametrize("path", GOOD)
def test_good_code_has_no_sign(path: str) -> None:
    assert generator_of(GOOD[path].encode()) == ""


def test_a_few_matches_are_no_sign() -> None:
    for text in EXAMPLES.values():
        assert generator_of(text[: len(text) // 3].encode()) == ""
