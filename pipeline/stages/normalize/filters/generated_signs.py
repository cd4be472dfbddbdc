"""Signs of generators: what the output of parser generators, binding generators and translators holds, whatever its comments say.

Each is a name and an expression for what only that program writes, with the number of different matches from which it is one.
"""

from dataclasses import dataclass, field
from functools import cache, cached_property

import re2


@dataclass(frozen=True)
class GeneratedSign:
    """The sign of one generator."""

    name: str
    expression: str
    min_distinct: int = 3
    """Different matches from which a text is this program's output. Code that uses such output has a few."""
    min_matches: int = field(default=0)
    """Matches from which it is, where they may be equal."""

    @cached_property
    def compiled(self) -> "re2._Regexp[bytes]":
        """The expression over bytes."""
        return re2.compile(self.expression.encode())

    def is_in(self, content: bytes) -> bool:
        """Return whether a text has enough matches."""
        distinct: set[bytes] = set()
        for num, match in enumerate(self.compiled.finditer(content), start=1):
            distinct.add(match[0])
            if len(distinct) >= self.min_distinct and num >= self.min_matches:
                return True
        return False


GENERATOR_SIGNS = (
    GeneratedSign("a parser of Bison", r"(?m)^# *define YYBISON\b|^/\* A Bison parser, made by GNU Bison", 1),
    GeneratedSign("a parser of byacc", r"(?m)^# *define YYBYACC\b", 1),
    GeneratedSign("a scanner of flex", r"(?m)^# *define +FLEX_SCANNER\b", 1),
    GeneratedSign("a parser of Bison",
                  r"\byy(?:pact|defact|pgoto|defgoto|table|check|stos|r1|r2"
                  r"|translate)\s*\[\s*(?:\w+\s*)?\]\s*=", 4),
    GeneratedSign("a parser of byacc", r"\byy(?:lhs|len|defred|dgoto|sindex|rindex|gindex|table|check)\s*\[\]\s*=", 4),
    GeneratedSign("a scanner of flex",
                  r"\byy_(?:accept|ec|meta|base|def|nxt|chk"
                  r"|rule_can_match_eol)\s*\[\s*\w+\s*\]\s*=", 4),
    GeneratedSign("a parser of Lemon", r"\byy_(?:action|lookahead|shift_ofst|reduce_ofst|default)\s*\[\]\s*=", 3),
    GeneratedSign("a scanner of re2c", r"\bgoto yy\d+;", 8),
    GeneratedSign("a state machine of Ragel", r"\bgoto (?:_test_eof|tr|st)\d+;", 8),
    GeneratedSign("a state machine of Ragel",
                  r"_(?:trans_keys|key_offsets|single_lengths|range_lengths|index_offsets"
                  r"|trans_targs)\s*\[\]\s*=", 3),
    GeneratedSign("gotos of a program", r"\bgoto [A-Za-z_]+_?\d+;", 60),
    GeneratedSign("a perfect hash of gperf",
                  r"\basso_values\s*\[\]\s*=|#define (?:TOTAL_KEYWORDS|M(?:IN|AX)_WORD_LENGTH"
                  r"|MAX_HASH_VALUE)\b", 3),
    GeneratedSign("bindings of SWIG",
                  r"\bSWIG(?:TYPE_p_\w+|INTERN\w* \w+|_(?:ConvertPtr|NewPointerObj|ArgError|exception_fail"
                  r"|AsVal_\w+|From_\w+))", 4, 20),
    GeneratedSign("a module of Cython", r"\b__pyx_(?:[a-z]+_)\w+", 40, 100),
    GeneratedSign("Fortran translated by f2c",
                  r"\b\w+_offset = 1 \+ \w+_dim1|\bi__[12] = |\b\w+_dim1 = \*\w+;"
                  r"|-- translated by f2c", 3),
    GeneratedSign("protocol buffers", r"\b\w+_2eproto\w*", 3, 6),
    GeneratedSign("protocol buffers in C",
                  r"\b\w+__(?:descriptor|field_descriptors|get_packed_size"
                  r"|free_unpacked)\b", 6, 12),
    GeneratedSign("messages of Thrift", r"\bxfer \+= [io]prot->\w+", 3, 10),
    GeneratedSign("messages of FlatBuffers", r"\bVT_[A-Z_0-9]+ = \d+|\bVerifyTableStart\(verifier\)", 4),
    GeneratedSign("meta-objects of Qt", r"\bqt_(?:meta_(?:stringdata|data)_\w+|static_metacall)\b", 3),
    GeneratedSign("resources of Qt", r"\bqt_resource_(?:data|name|struct)\b", 3),
    GeneratedSign("a form of Qt", r"\bvoid (?:setupUi|retranslateUi)\(Q\w+ \*\w+\)", 2),
    GeneratedSign("a parser of ANTLR", r"\bsetState\(\d+\);|\bserializedATN\w*|\b_la\d*_?\b", 15),
    GeneratedSign("code of Vala", r"\b_(?:tmp\d+_|g_object_unref0|g_free0)\b", 30),
    GeneratedSign("stubs of MIDL", r"\b__?MIDL_\w+", 5),
    GeneratedSign("bindings of gSOAP", r"\bsoap_(?:in|out|put|get|serialize|default|instantiate)_\w+", 40),
    GeneratedSign("types of asn1c", r"\basn_(?:DEF|MBR|SPC|TYP|MAP)_\w+", 4),
    GeneratedSign("a model of Verilator",
                  r"\bV(?:L_(?:SIG|IN|OUT|INLINE_OPT|CELL)\w*|lSym\w*|lSelf)\b|\bvlS(?:elf"
                  r"|ymsp)\b", 3, 20),
    GeneratedSign("a model of Simulink", r"\brtb_\w+|\b\w+_(?:DW|P|B|ConstP)\.\w+", 30, 60),
    GeneratedSign("a decompiler",
                  r"\b(?:FUN|DAT|LAB|PTR|sub|loc|dword|byte|unk|off)_(?:[0-9a-f]{6,}"
                  r"|[0-9A-F]{5,})\b", 10),
    GeneratedSign("wasm2c", r"\b(?:w2c_\w+|wasm_rt_\w+|[ijf](?:32|64)_(?:load|store|const)\w*)\b", 12, 50),
    GeneratedSign("a Haskell compiler", r"\b(?:base|ghczm\w+|main)_[A-Z]\w*_(?:closure|info|entry)\b", 10),
    GeneratedSign("a Nim compiler",
                  r"\b(?:NimStringDesc|nimZeroMem|NIM_(?:BOOL|NIL|CONST|TRUE|FALSE)|popFrame"
                  r"|nimfr_)\b", 4, 10),
    GeneratedSign("a Scheme compiler", r"\bC_(?:word|fix|trace|save_and_reclaim|slot|i_car|i_cdr|mutate)\b", 5, 30),
    GeneratedSign("output of the preprocessor", r"(?m)^# ?\d+ \"[^\"\n]*\"", 3),
)  # fmt: skip

_HINTS = re2.compile(
    rb"\byy|YYBISON|GNU Bison|YYBYACC|FLEX_SCANNER"
    rb"|_test_eof|_trans_keys|_key_offsets|\bgoto [A-Za-z_]+_?\d|asso_values|WORD_LENGTH|SWIG|__pyx_|_dim1\b|\bi__1\b|by f2c"
    rb"|_2eproto|__descriptor\b|\bxfer\b|VerifyTableStart|qt_meta_|qt_resource|setupUi|setState\(|_tmp\d+_|MIDL_|soap_in_|asn_DEF_"
    rb"|\bvlS|VL_|\brtb_|_DW\.|\b(?:FUN|DAT|sub|dword)_[0-9a-fA-F]{5}|w2c_|wasm_rt_|_closure\b|nimZeroMem|NimStringDesc|C_word"
    rb"|(?m:^# ?\d+ \")"
)
"""Words of which a text must hold one for its signs to be counted, searched once: each program writes one of these."""


def generator_of(content: bytes) -> str:
    """Return the name of the program whose output a text is by its signs; empty if there is none."""
    if not _HINTS.search(content):
        return ""
    possible = (GENERATOR_SIGNS[index] for index in sorted(_literals().Match(content, potential=True) or ()))
    return next((sign.name for sign in possible if sign.is_in(content)), "")


@cache
def _literals() -> "re2.Filter":
    """Return the filter of RE2 for the signs: it says, in one pass for literals, which of them a text may hold."""
    possible = re2.Filter()
    for sign in GENERATOR_SIGNS:
        possible.Add(sign.expression.encode())
    possible.Compile()
    return possible
