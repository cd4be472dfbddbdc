"""Made blobs: files under the suffixes of C that are data, texts in other languages, or the output of programs.

Each is made from a seed, which decides its values, names and size.
"""

import base64
import math
import random
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

_WORDS = """
    amber basin cedar delta ember fjord grove haven inlet jetty knoll ledge marsh north ocean prairie quartz ridge
    slope thicket upland valley willow yonder zephyr anchor beacon canyon dune estuary
"""
WORDS = _WORDS.split()
_SUFFIXES = (".c", ".h", ".cpp", ".hpp", ".cc")


def blob(kind: str, seed: int) -> tuple[str, str]:
    """Return the path and the text of a blob of a kind."""
    draw = random.Random(f"{kind}/{seed}")
    text = KINDS[kind](draw) if kind in KINDS else other_language(foreign_texts()[kind], draw)
    return f"src/{kind}{draw.choice(_SUFFIXES)}", text


@cache
def foreign_texts() -> dict[str, str]:
    """Return the texts in other languages by language."""
    return tomllib.loads(Path(__file__).with_name("foreign_texts.toml").read_text())


def other_language(template: str, draw: random.Random) -> str:
    """Return a text of 8 to 30 copies of a template, each with its own numbers and words."""
    copies = (
        template.replace("§", str(draw.randint(10, 99))).replace("¤", draw.choice(WORDS))
        for _ in range(draw.randint(8, 30))
    )
    return "".join(copies)


def rows(values: Iterable[str], width: int, indent: str = "    ") -> str:
    """Return values with commas, some in each line."""
    values = list(values)
    return "".join(indent + ", ".join(values[at : at + width]) + ",\n" for at in range(0, len(values), width))


def _table(declaration: str, cell: Callable[[random.Random, int], str], width: int) -> Callable[[random.Random], str]:
    def make(draw: random.Random) -> str:
        num = draw.randint(300, 3_000)
        name = draw.choice(WORDS)
        cells = (cell(draw, index) for index in range(num))
        return f"/* The {name} table. */\n#include <stdint.h>\n\n{declaration.format(name=name)} = {{\n{rows(cells, width)}}};\n"

    return make


def _strings(lines: Callable[[random.Random], Iterable[str]], end: str = "\\n") -> Callable[[random.Random], str]:
    def make(draw: random.Random) -> str:
        quoted = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines(draw))
        body = "".join(f'    "{line}{end}"\n' for line in quoted)
        return f"#include <string.h>\n\nconst char {draw.choice(WORDS)}_text[] =\n{body}    ;\n"

    return make


def _octal(draw: random.Random) -> str:
    lines = ("".join(f"\\{draw.randrange(256):03o}" for _ in range(18)) for _ in range(draw.randint(60, 300)))
    return "const char " + draw.choice(WORDS) + "[] =\n" + "".join(f'  "{line}"\n' for line in lines) + ";\n"


def _escaped_hex(draw: random.Random) -> str:
    lines = ("".join(f"\\x{draw.randrange(256):02x}" for _ in range(16)) for _ in range(draw.randint(60, 300)))
    return "static const unsigned char image[] = \\\n" + "".join(f'"{line}" \\\n' for line in lines) + ";\n"


def _xxd(draw: random.Random) -> str:
    name = f"{draw.choice(WORDS)}_bin"
    num = draw.randint(600, 6_000)
    cells = (f"0x{draw.randrange(256):02x}" for _ in range(num))
    return f"unsigned char {name}[] = {{\n{rows(cells, 12, '  ')}}};\nunsigned int {name}_len = {num};\n"


def _bin2c(draw: random.Random) -> str:
    cells = ",".join(str(draw.randrange(256)) for _ in range(3_000))
    lines = (cells[at : at + 76] for at in range(0, len(cells), 76))
    return "static const unsigned char B1[]={\n" + "\n".join(lines) + "\n};\n"


def _xpm(draw: random.Random) -> str:
    lines = ("".join(draw.choice(" .+@#$%&*") for _ in range(40)) for _ in range(60))
    colors = (f'"{sign} c #{draw.randrange(1 << 24):06X}",\n' for sign in " .+@#$%&*")
    return (
        "/* XPM */\nstatic char *logo_xpm[] = {\n"
        + '"40 60 9 1",\n'
        + "".join(colors)
        + "".join(f'"{line}",\n' for line in lines)
        + "};\n"
    )


def _xbm(draw: random.Random) -> str:
    cells = (f"0x{draw.randrange(256):02x}" for _ in range(512))
    return f"#define icon_width 64\n#define icon_height 64\nstatic char icon_bits[] = {{\n{rows(cells, 12, '   ')}}};\n"


def _weights(draw: random.Random) -> str:
    parts = []
    for layer in range(6):
        cells = (f"{draw.gauss(0, 1):.8f}f" for _ in range(draw.randint(64, 500)))
        parts.append(f"static const float layer{layer}_weights[] = {{\n{rows(cells, 8)}}};\n")
    return "#pragma once\n\n" + "\n".join(parts)


def _certificates(draw: random.Random) -> str:
    parts = []
    for _number in range(6):
        text = base64.b64encode(draw.randbytes(620)).decode()
        lines = (text[at : at + 64] for at in range(0, len(text), 64))
        body = "".join(f'"{line}\\n"\n' for line in lines)
        parts.append(f'"-----BEGIN CERTIFICATE-----\\n"\n{body}"-----END CERTIFICATE-----\\n",\n')
    return "const char *roots[] = {\n" + "".join(parts) + "};\n"


def _page(draw: random.Random) -> list[str]:
    return [f'<div class="{draw.choice(WORDS)}" id="x{n}">{draw.choice(WORDS)} {n}</div>' for n in range(80)]


def _raw(kind: str, prefix: str = "page") -> Callable[[random.Random], str]:
    def make(draw: random.Random) -> str:
        text = other_language(foreign_texts()[kind], draw)
        return f'#pragma once\nstatic const char* {prefix}_{draw.choice(WORDS)} = R"END(\n{text})END";\n'

    return make


def _quoted(kind: str) -> Callable[[random.Random], str]:
    return _strings(lambda draw: other_language(foreign_texts()[kind], draw).splitlines())


def _words(draw: random.Random) -> str:
    cells = (f'"{draw.choice(WORDS)}{draw.choice(WORDS)[:3]}"' for _ in range(draw.randint(300, 2_000)))
    return f"const char *const words[] = {{\n{rows(cells, 6)}}};\n"


def _x_macro_data(draw: random.Random) -> str:
    lines = (f'X(0x{0x1F300 + n:05X}, "{draw.choice(WORDS)} {n}", {draw.randint(1, 99)})\n' for n in range(400))
    return "// code point, name, version\n" + "".join(lines)


def _name_numbers(draw: random.Random) -> str:
    return f'{{ "{draw.choice(WORDS)}-{draw.randrange(1_000)}", {draw.random() * 90:.4f}, {draw.random() * 180:.4f} }}'


def _enormous_enum(draw: random.Random) -> str:
    lines = (f"    {draw.choice(WORDS).upper()}_{draw.choice(WORDS).upper()}_{n} = {n},\n" for n in range(1_500))
    return "enum code {\n" + "".join(lines) + "};\n"


def _switch_table(draw: random.Random) -> str:
    lines = (f'    case {n}: return "{draw.choice(WORDS)}_{n}";\n' for n in range(600))
    return "const char *name_of(int code) {\n  switch (code) {\n" + "".join(lines) + "  }\n  return 0;\n}\n"


def _assigned(draw: random.Random) -> str:
    lines = (f"  table[{n}] = 0x{draw.randrange(1 << 32):08x};\n" for n in range(900))
    return "void fill(unsigned *table) {\n" + "".join(lines) + "}\n"


def _blob_in_code(draw: random.Random) -> str:
    functions = (f"int step_{n}(int x) {{\n  if (x > {n})\n    return x - {n};\n  return x;\n}}\n" for n in range(40))
    cells = (f"0x{draw.randrange(256):02x}" for _ in range(9_000))
    return "".join(functions) + f"static const unsigned char image[] = {{\n{rows(cells, 16)}}};\n"


def _bison(draw: random.Random) -> str:
    names = ("yypact", "yydefact", "yypgoto", "yydefgoto", "yytable", "yycheck", "yystos", "yyr1", "yyr2")
    tables = (
        f"static const short {name}[] =\n{{\n{rows((str(draw.randint(-90, 300)) for _ in range(120)), 10)}}};\n"
        for name in names
    )
    body = "".join(
        f"  case {n}:\n    {{ (yyval.node) = make_{n}((yyvsp[-2].node), (yyvsp[0].node)); }}\n    break;\n"
        for n in range(90)
    )
    return "".join(tables) + f"int yyparse (void)\n{{\n  switch (yyn)\n  {{\n{body}  }}\n}}\n"


def _flex(draw: random.Random) -> str:
    names = ("yy_accept", "yy_ec", "yy_meta", "yy_base", "yy_def", "yy_nxt", "yy_chk")
    tables = (
        f"static const short {name}[100] =\n    {{\n{rows((str(draw.randint(0, 300)) for _ in range(100)), 10)}    }} ;\n"
        for name in names
    )
    body = "".join(
        f"case {n}:\nYY_RULE_SETUP\n{{ return TOKEN_{draw.choice(WORDS)}; }}\n\tYY_BREAK\n" for n in range(150)
    )
    return "".join(tables) + f"int yylex(void)\n{{\n{body}}}\n"


def _re2c(draw: random.Random) -> str:
    body = "".join(
        f"yy{n}:\n\tyych = *++cursor;\n\tif (yych <= {draw.randint(1, 127)}) goto yy{draw.randint(1, 200)};\n"
        f"\tgoto yy{draw.randint(1, 200)};\n"
        for n in range(200)
    )
    return f"int scan(const char *cursor)\n{{\n\tchar yych = *cursor;\n{body}}}\n"


def _ragel(draw: random.Random) -> str:
    body = "".join(
        f"st{n}:\n\tif ( ++p == pe )\n\t\tgoto _test_eof{n};\ncase {n}:\n\tswitch( (*p) ) {{\n"
        f"\t\tcase {draw.randint(32, 126)}: goto st{draw.randint(1, 90)};\n\t}}\n\tgoto st0;\n"
        for n in range(90)
    )
    return f"int run(const char *p, const char *pe)\n{{\n\tswitch ( cs )\n\t{{\n{body}\t}}\n}}\n"


def _gperf(draw: random.Random) -> str:
    cells = rows((str(draw.randint(0, 200)) for _ in range(257)), 10)
    names = "".join(f'      {{"{draw.choice(WORDS)}{n}", {n}}},\n' for n in range(60))
    return (
        "#define TOTAL_KEYWORDS 60\n#define MIN_WORD_LENGTH 2\n#define MAX_HASH_VALUE 250\n"
        "static unsigned int hash (register const char *str, register size_t len)\n{\n"
        f"  static unsigned char asso_values[] =\n    {{\n{cells}    }};\n"
        "  return len + asso_values[(unsigned char)str[0]];\n}\nstatic struct word wordlist[] =\n    {\n"
        + names
        + "    };\n"
    )


def _swig(draw: random.Random) -> str:
    wrappers = (
        f"SWIGINTERN PyObject *_wrap_{word}_{n}(PyObject *self, PyObject *args) {{\n  void *argp1 = 0 ;\n"
        f"  int res1 = SWIG_ConvertPtr(swig_obj[0], &argp1, SWIGTYPE_p_{word}, 0 | 0 );\n  if (!SWIG_IsOK(res1)) {{\n"
        f'    SWIG_exception_fail(SWIG_ArgError(res1), "in method");\n  }}\n  return SWIG_Py_Void();\nfail:\n  return NULL;\n}}\n'
        for n in range(60)
        for word in [draw.choice(WORDS)]
    )
    return "\n".join(wrappers)


def _cython(draw: random.Random) -> str:
    parts = (
        f"static PyObject *__pyx_pf_{word}_{n}(CYTHON_UNUSED PyObject *__pyx_self, PyObject *__pyx_v_{word}) {{\n"
        f"  PyObject *__pyx_r = NULL;\n  __Pyx_RefNannyDeclarations\n  PyObject *__pyx_t_{n} = NULL;\n"
        f"  __pyx_t_{n} = PyNumber_Add(__pyx_v_{word}, __pyx_int_{n});"
        f" if (unlikely(!__pyx_t_{n})) __PYX_ERR(0, {n}, __pyx_L1_error)\n"
        f"  __Pyx_GOTREF(__pyx_t_{n});\n  __pyx_L1_error:;\n  return __pyx_r;\n}}\n"
        for n in range(60)
        for word in [draw.choice(WORDS)]
    )
    return "\n".join(parts)


def _f2c(draw: random.Random) -> str:
    parts = (
        f"int {word}{n}_(integer *n, doublereal *a, integer *lda)\n{{\n    integer a_dim1, a_offset, i__1;\n    static integer j;\n"
        "    a_dim1 = *lda;\n    a_offset = 1 + a_dim1;\n    a -= a_offset;\n    i__1 = *n;\n"
        f"    for (j = 1; j <= i__1; ++j) {{\n\ta[j + j * a_dim1] += {n}.;\n    }}\n    return 0;\n}}\n"
        for n in range(30)
        for word in [draw.choice(WORDS)]
    )
    return '#include "f2c.h"\n' + "\n".join(parts)


def _protobuf(draw: random.Random) -> str:
    parts = (
        f"void {word}{n}::Clear() {{\n  ::google::protobuf::uint32 cached_has_bits = 0;\n  name_.ClearToEmpty();\n"
        f"  _internal_metadata_.Clear<std::string>();\n}}\n"
        f"::google::protobuf::Metadata {word}{n}::GetMetadata() const {{\n"
        f"  return AssignDescriptors(&descriptor_table_{word}_2eproto_getter,"
        f" &descriptor_table_{word}_2eproto_once, file_{word}_2eproto);\n}}\n"
        for n in range(30)
        for word in [draw.choice(WORDS)]
    )
    return "\n".join(parts)


def _thrift(draw: random.Random) -> str:
    parts = (
        f"uint32_t {word}{n}::read(::apache::thrift::protocol::TProtocol* iprot) {{\n  uint32_t xfer = 0;\n"
        "  xfer += iprot->readStructBegin(fname);\n  while (true) {\n    xfer += iprot->readFieldBegin(fname, ftype, fid);\n"
        "    xfer += iprot->readFieldEnd();\n  }\n  xfer += iprot->readStructEnd();\n  return xfer;\n}\n"
        for n in range(30)
        for word in [draw.choice(WORDS)]
    )
    return "\n".join(parts)


def _moc(draw: random.Random) -> str:
    cells = rows((str(draw.randint(0, 90)) for _ in range(60)), 8)
    word = draw.choice(WORDS)
    signals = "".join(
        f"        case {n}: _t->{draw.choice(WORDS)}{n}((*reinterpret_cast< int(*)>(_a[1]))); break;\n"
        for n in range(60)
    )
    return (
        f"static const uint qt_meta_data_{word}[] = {{\n{cells}}};\n"
        f"static const qt_meta_stringdata_{word}_t qt_meta_stringdata_{word} = {{}};\n"
        f"void {word}::qt_static_metacall(QObject *_o, QMetaObject::Call _c, int _id, void **_a)\n"
        f"{{\n    switch (_id) {{\n{signals}    }}\n}}\n"
    )


def _lemon(draw: random.Random) -> str:
    names = ("yy_action", "yy_lookahead", "yy_shift_ofst", "yy_reduce_ofst", "yy_default")
    tables = (
        f"static const YYACTIONTYPE {name}[] = {{\n{rows((str(draw.randint(0, 300)) for _ in range(60)), 10)}}};\n"
        for name in names
    )
    body = "".join(
        f"      case {n}: /* e ::= e OP e */\n"
        f"        yymsp[-2].minor.yy{n} = {draw.choice(WORDS)}(yymsp[0].minor.yy{n});\n        break;\n"
        for n in range(90)
    )
    return "".join(tables) + f"static void yy_reduce(yyParser *yypParser)\n{{\n  switch (yyruleno) {{\n{body}  }}\n}}\n"


def _preprocessed(draw: random.Random) -> str:
    parts = (
        f'# {draw.randint(1, 900)} "/usr/include/{draw.choice(WORDS)}.h" 1 3 4\n'
        f"extern int {draw.choice(WORDS)}_{n} (int __fd, void *__buf);\n"
        f"typedef unsigned long __{draw.choice(WORDS)}{n}_t;\n"
        for n in range(120)
    )
    return "".join(parts)


def _decompiled(draw: random.Random) -> str:
    parts = (
        f"undefined8 FUN_00{draw.randrange(1 << 24):06x}(long param_1)\n{{\n  int iVar1;\n"
        f"  iVar1 = FUN_00{draw.randrange(1 << 24):06x}(param_1 + 0x{n:x});\n  if (iVar1 == 0) {{\n"
        f"    DAT_00{draw.randrange(1 << 24):06x} = 1;\n  }}\n  return 0;\n}}\n"
        for n in range(60)
    )
    return "\n".join(parts)


KINDS: dict[str, Callable[[random.Random], str]] = {
    "xxd": _xxd,
    "bin2c": _bin2c,
    "hex_words": _table("static const uint32_t {name}[]", lambda draw, n: f"0x{draw.randrange(1 << 32):08X}U", 6),
    "hex_with_macro": _table(
        "const uint64_t {name}[]", lambda draw, n: f"UINT64_C(0x{draw.randrange(1 << 60):016x})", 3
    ),
    "decimal_bytes": _table("const unsigned char {name}[]", lambda draw, n: f"{draw.randrange(256):3d}", 16),
    "octal_bytes": _table("const unsigned char {name}[]", lambda draw, n: f"0{draw.randrange(256):03o}", 12),
    "one_a_line": _table("const unsigned char {name}[]", lambda draw, n: f"0x{draw.randrange(256):02X}", 1),
    "characters": _table("const char {name}[]", lambda draw, n: f"'{chr(draw.randint(97, 122))}'", 14),
    "cast_bytes": _table("const char {name}[]", lambda draw, n: f"(char)0x{draw.randrange(256):02x}", 8),
    "floats": _table("static float {name}[]", lambda draw, n: f"{draw.gauss(0, 9):.6f}f", 6),
    "doubles": _table("const double {name}[]", lambda draw, n: repr(draw.gauss(0, 1) * 10 ** draw.randint(-9, 9)), 4),
    "matrix": _table(
        "const double {name}[][3]", lambda draw, n: f"{{ {draw.random():.9f}, {-draw.random():.9f}, 0.0 }}", 2
    ),
    "audio": _table("const int16_t {name}[]", lambda draw, n: str(draw.randint(-32768, 32767)), 12),
    "sine": _table("const double {name}[]", lambda draw, n: f"{math.sin(n / 100):.10f}", 5),
    "font": _table(
        "const uint8_t {name}[][8]",
        lambda draw, n: "{" + ",".join(f"0x{draw.randrange(256):02X}" for _ in range(8)) + "}",
        1,
    ),
    "code_points": _table(
        "const struct range {name}[]",
        lambda draw, n: f"{{ 0x{n * 40:04X}, 0x{n * 40 + draw.randint(1, 39):04X}, {draw.randint(0, 5)} }}",
        3,
    ),
    "cities": _table("const struct city {name}[]", lambda draw, n: _name_numbers(draw), 1),
    "named_rows": _table(
        "const struct row {name}[]",
        lambda draw, n: (
            f"{{ KIND_{draw.choice(WORDS).upper()}, 0x{draw.randrange(1 << 16):04x}, "
            f'{draw.randint(0, 9)}, "{draw.choice(WORDS)}" }}'
        ),
        1,
    ),
    "trigrams": _table("const char *{name}[]", lambda draw, n: f'"{draw.choice(WORDS)[:3]}"', 10),
    "words": _words,
    "complex": _table("const cplx {name}[]", lambda draw, n: f"cplx({draw.random():.7f}, {draw.random():.7f})", 2),
    "octal_string": _octal,
    "hex_string": _escaped_hex,
    "xpm": _xpm,
    "xbm": _xbm,
    "weights": _weights,
    "certificates": _certificates,
    "base64": _strings(lambda draw: (base64.b64encode(draw.randbytes(45)).decode()[:-4] for _ in range(90)), ""),
    "proteins": _strings(
        lambda draw: ("".join(draw.choice("ACDEFGHIKLMNPQRSTVWY") for _ in range(60)) for _ in range(60)), ""
    ),
    "html_string": _strings(_page),
    "javascript_string": _quoted("javascript"),
    "sql_string": _quoted("sql"),
    "json_string": _quoted("json"),
    "xml_raw": _raw("svg", "icon"),
    "css_raw": _raw("css"),
    "html_raw": _raw("html"),
    "json_raw": _raw("json"),
    "x_macro_data": _x_macro_data,
    "enormous_enum": _enormous_enum,
    "switch_table": _switch_table,
    "assigned": _assigned,
    "blob_in_code": _blob_in_code,
    "bison": _bison,
    "flex": _flex,
    "re2c": _re2c,
    "ragel": _ragel,
    "gperf": _gperf,
    "swig": _swig,
    "cython": _cython,
    "f2c": _f2c,
    "protobuf": _protobuf,
    "thrift": _thrift,
    "moc": _moc,
    "lemon": _lemon,
    "preprocessed": _preprocessed,
    "decompiled": _decompiled,
}
