"""Good files that resemble blobs: code with tables, many lines of one shape, long literals, or words of other languages."""

NUMBERS = range(60)


def lines(template: str, count: int = 60) -> str:
    """Return copies of a template with § as a number, ¤ as that number squared, and ¶ as a name."""
    return "".join(
        template.replace("§", str(n)).replace("¤", str(n * n + 7)).replace("¶", f"{_WORDS[n % len(_WORDS)]}{n}")
        for n in range(count)
    )


_WORDS = ["amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll"]
_LOOKUP = "static const unsigned char steps[64] = {\n" + lines("  §,", 64) + "\n};\n"
_CRC = """
static unsigned update(unsigned crc, const unsigned char *data, unsigned long size) {
  while (size-- > 0) {
    crc = table[(crc ^ *data++) & 0xff] ^ (crc >> 8);
  }
  return crc ^ 0xffffffffu;
}

void reset(struct state *state) {
  state->crc = 0xffffffffu;
  state->size = 0;
  state->is_open = 1;
}

int finish(struct state *state, unsigned *result) {
  if (!state->is_open) return -1;
  *result = update(state->crc, state->buffer, state->size);
  state->is_open = 0;
  return 0;
}
"""
GOOD = {
    "unrolled_kernel.c": "void kernel(const float *a, const float *b, float *c) {\n"
    + lines("  c[§] += a[§] * b[0] + a[§ + 1] * b[1];\n")
    + "}\n",
    "opcode_switch.cc": "int step(Machine &m) {\n  switch (m.fetch()) {\n"
    + lines("    case §: m.push(m.pop() + m.¶(); m.next();\n      if (m.is_done()) return §;\n      break;\n")
    + "  }\n  return 0;\n}\n",
    "table_with_code.h": "#pragma once\n" + _LOOKUP + _CRC * 2,
    "constexpr_table.hpp": "template <int N> struct Table { int values[N]; };\nconstexpr Table<256> make() {\n  Table<256> t{};\n"
    "  for (int i = 0; i < 256; ++i) {\n    unsigned value = i;\n    for (int bit = 0; bit < 8; ++bit)\n"
    "      value = value & 1 ? (value >> 1) ^ 0xEDB88320u : value >> 1;\n    t.values[i] = value;\n  }\n  return t;\n}\n"
    + _LOOKUP,
    "simd.cc": "#include <immintrin.h>\nvoid add(const float *a, const float *b, float *c) {\n"
    + lines(
        "  __m256 ¶ = _mm256_loadu_ps(a + §);\n  _mm256_storeu_ps(c + §, _mm256_add_ps(¶, _mm256_set1_ps(¤.0f)));\n", 40
    )
    + "}\n",
    "documented_enum.h": "enum class Code {\n" + lines("  /// The state in which ¶ is ¤.\n  ¶,\n") + "};\n",
    "error_enum.h": "enum Error {\n" + lines("  kError¶ = §,\n", 90) + "};\nconst char *name_of(enum Error error);\n",
    "test_of_literals.cc": "#include <gtest/gtest.h>\n"
    + lines(
        'TEST(Parser, Reads¶) {\n  EXPECT_EQ(parse("¶=¤"), Pair("¶", ¤));\n  EXPECT_THROW(parse("¶"), ParseError);\n}\n'
    ),
    "table_test.cc": "struct Case { const char *text; int value; };\nconst Case cases[] = {\n"
    + lines('    {"§ + ¤", §},\n', 40)
    + "};\n"
    + _CRC * 3,
    "x_macro.h": "#define OPERATIONS(X) \\\n"
    + lines("  X(¶, emit_¶, is_¶) \\\n", 40)
    + "\n#define DECLARE(name, emit, is) void emit(Node *); bool is(const Node *);\nOPERATIONS(DECLARE)\n#undef DECLARE\n",
    "cuda_kernel.h": "#pragma once\n__global__ void reduce(const float *__restrict__ in, float *out, int n) {\n"
    "  extern __shared__ float part[];\n  int tid = threadIdx.x;\n  part[tid] = tid < n ? in[tid] : 0.f;\n  __syncthreads();\n"
    "  for (int s = blockDim.x / 2; s > 0; s >>= 1) {\n    if (tid < s) part[tid] += part[tid + s];\n    __syncthreads();\n  }\n"
    "  if (tid == 0) out[blockIdx.x] = part[0];\n}\ninline void run(const float *in, float *out, int n) {\n"
    "  reduce<<<n / 256, 256, 256 * sizeof(float)>>>(in, out, n);\n}\n",
    "opencl_kernel.c": "__kernel void scale(__global const float *in, __global float *out, float by) {\n"
    "  size_t i = get_global_id(0);\n  out[i] = in[i] * by;\n}\n"
    + lines("__kernel void ¶(__global int *a) { a[get_global_id(0)] += §; }\n", 20),
    "kr.c": "int\nmain(argc, argv)\n    int argc;\n    char **argv;\n{\n    register int i;\n"
    "    for (i = 1; i < argc; i++)\n        puts(argv[i]);\n    return 0;\n}\n"
    + lines("static int\n¶(a, b)\n    int a, b;\n{\n    return a * § + b;\n}\n", 20),
    "doc_header.h": lines(
        "/**\n * @brief Return the ¶ of a reader.\n * @param reader the reader\n */\nint get_¶(struct reader *reader, int §);\n",
        30,
    ),
    "bindings.cc": "PYBIND11_MODULE(example, m) {\n"
    + lines('  m.def("¶", &Example::¶, py::arg("x") = §, "Return the ¶ of x.");\n', 30)
    + "}\n",
    "registrations.cc": lines(
        'REGISTER_OPERATOR(¶, ¶Op)\n    .Input("x")\n    .Output("y")\n    .SetAttr("n", §);\n', 30
    ),
    "getters.hpp": "class Settings {\n public:\n"
    + lines("  int ¶() const { return ¶_; }\n  void set_¶(int value) { ¶_ = value; }\n", 40)
    + " private:\n"
    + lines("  int ¶_ = §;\n", 40)
    + "};\n",
    "registers.h": lines("#define REG_¶_OFFSET 0x¤\n#define REG_¶_MASK (1u << §)\n", 60)
    + "void write(unsigned, unsigned);\n",
    "register_fields.h": lines(
        "#define REG_¶_Pos (§U)\n#define REG_¶_Msk (0x1UL << REG_¶_Pos)\n#define REG_¶ REG_¶_Msk\n", 240
    ),
    "page_writer.cc": "void write(std::ostream &out, const Report &report) {\n"
    + lines('  out << "<td class=\\"¶\\">" << escape(report.¶) << "</td>\\n";\n', 70)
    + "}\n",
    "unrolled_cases.cc": "int step(Machine &m, int op) {\n  switch (op) {\n"
    + lines("    case §:\n      m.push();\n      m.add();\n      m.pop();\n      break;\n", 60)
    + "  }\n  return 0;\n}\n",
    "options.c": "static struct option options[] = {\n"
    + lines('    {"¶", required_argument, 0, §},\n', 20)
    + "};\n"
    + lines(
        "static int use_¶(const char *text) {\n  int value = atoi(text);\n  return value > ¤ ? -1 : value;\n}\n", 20
    ),
    "usage.c": "static void usage(void) {\n"
    + lines('  printf("  --¶  set the ¶ to a number\\n");\n', 20)
    + "}\n"
    + lines("static int check_¶(int value) {\n  if (value < § || value > ¤) return -1;\n  return value;\n}\n", 20),
    "shader.cc": 'const char *shader = R"(\nvoid main() {\n  gl_Position = vec4(0.0);\n}\n)";\n'
    + lines("void set_¶(Program &program, float value) { program.uniform(§).set(value * ¤); }\n", 30),
    "assembly.c": "void copy(void *to, const void *from) {\n  __asm__ volatile(\n"
    + lines('      "movq §(%1), %%rax\\n\\t"\n', 12)
    + '      : : "r"(to), "r"(from) : "rax", "memory");\n}\n'
    + _CRC * 2,
    "inline_assembly.h": lines(
        'static inline unsigned ¶(unsigned x) {\n  unsigned y;\n  asm("bsr %1, %0" : "=r"(y) : "r"(x + §));\n  return y;\n}\n',
        20,
    ),
    "state_machine.c": "int run(const char *p) {\n"
    + lines("state_¶:\n  if (*p == §) { ++p; goto state_amber0; }\n  if (*p > ¤) goto fail;\n", 30)
    + "fail:\n  return -1;\n}\n",
    "vectors.cc": "Polygon square() {\n  return Polygon({\n"
    + lines("      {§, ¤},\n", 14)
    + "  });\n}\n"
    + lines("double ¶(const Polygon &p) { return p.area() * § - p.length(); }\n", 40),
    "quadrature.hpp": "template <class F> double integrate(F f) {\n  static const double x[] = {"
    + lines("0.0§123456789, ", 20)
    + "};\n  double sum = 0;\n  for (double at : x)\n    sum += f(at) + f(-at);\n  return sum;\n}\n"
    + lines("template <> double moment<§>(double x) { return x * ¤ + moment<0>(x); }\n", 10),
    "special_function.hpp": lines(
        "template <class T> T ¶(T x) {\n  static const T p[] = {T(¤.5), T(-§.25), T(1.125)};\n"
        "  T y = p[2] * x + p[1];\n  return y * x + p[0];\n}\n",
        20,
    ),
    "traits.hpp": lines("template <> struct is_known<¶> : std::true_type { static constexpr int id = §; };\n"),
    "forward.h": "namespace geometry {\n" + lines("class ¶;\nstruct Point§;\n") + "}\n",
    "prototypes.h": lines("extern int ¶(const char *name, size_t size, int flags);\n"),
    "platform_headers.h": lines("#if defined(HAS_¶)\n#include <¶.h>\n#define USE_¶ 1\n#endif\n", 30)
    + "int all(void);\n",
    "concept.hpp": lines(
        "template <class T> concept ¶ = requires(T a) {\n  { a.¶() } -> std::convertible_to<int>;\n  requires sizeof(T) > §;\n};\n",
        20,
    ),
    "modules.cpp": "module;\nexport module geometry;\nimport std;\nimport <vector>;\n"
    + lines("export int ¶(int x) { return x * ¤; }\n", 30),
    "coroutines.cc": lines(
        "task<int> ¶(reader &in) {\n  auto text = co_await in.read(¤);\n  co_yield text.size();\n  co_return §;\n}\n",
        20,
    ),
    "operators.hpp": lines("Vec¶ operator+(Vec¶ a, Vec¶ b) { return {a.x + b.x, a.y + b.y}; }\n", 30),
    "old_names.c": lines(
        "int ¶(int def, int val, int fn) {\n  def = val + fn;\n  let = def;\n  return type * §;\n}\n", 20
    ),
    "json_test.cc": lines(
        'TEST(Json, ¶) {\n  auto v = parse(R"({"¶": [1, 2, §]})");\n  EXPECT_EQ(v["¶"][2].number(), §);\n}\n', 40
    ),
    "sql_client.cc": lines(
        'Rows ¶(Database &db, int id) {\n  return db.query("SELECT name FROM ¶ WHERE id = ?", id + §);\n}\n', 40
    ),
    "parser_user.c": "int yyparse(void);\nextern int yylineno;\nint yywrap(void) { return 1; }\n"
    + lines("void on_¶(int line) { if (line == yylineno) report(§); }\n", 30),
    "signals.h": "class Panel : public QWidget {\n  Q_OBJECT\n public slots:\n"
    + lines("  void on_¶_changed(int value);\n", 20)
    + " signals:\n"
    + lines("  void ¶_changed(int value);\n", 20)
    + "};\n",
    "message_user.cc": '#include "message.pb.h"\n'
    + lines("void set_¶(Message *message) { message->mutable_¶()->set_value(§); }\n", 30),
    "matrix_macros.h": lines("#define ¶(a, b) \\\n  do { \\\n    (a)[§] = (b)[§] * ¤; \\\n  } while (0)\n", 30),
}
"""Text by file name."""
