// Copyright (c) 2024 The Lantern Authors
#include <cstdlib>

#include "lantern/json.hpp"

namespace lantern::json {
namespace {

constexpr int kMaximumDepth = 512;

class Parser {
public:
    explicit Parser(std::string_view input) : lexer_(input) { advance(); }

    Value document() {
        Value value = parse_value(0);
        expect(TokenKind::kEnd, "end of document");
        return value;
    }

private:
    void advance() { token_ = lexer_.next(); }

    [[noreturn]] void fail(const std::string& wanted) const {
        throw ParseError(token_.position, wanted + " expected, found '" + std::string(token_.spelling) + "'");
    }

    void expect(TokenKind kind, const char* wanted) const {
        if (token_.kind != kind) fail(wanted);
    }

    bool accept(TokenKind kind) {
        if (token_.kind != kind) return false;
        advance();
        return true;
    }

    Value parse_value(int depth) {
        if (depth > kMaximumDepth) throw ParseError(token_.position, "nested too deeply");
        switch (token_.kind) {
            case TokenKind::kBraceOpen: return parse_object(depth);
            case TokenKind::kBracketOpen: return parse_array(depth);
            case TokenKind::kString: return Value(parse_string());
            case TokenKind::kNumber: return parse_number();
            case TokenKind::kTrue: advance(); return Value(true);
            case TokenKind::kFalse: advance(); return Value(false);
            case TokenKind::kNull: advance(); return Value();
            default: fail("value");
        }
    }

    Value parse_number() {
        const std::string copy(token_.spelling);
        advance();
        return Value(std::strtod(copy.c_str(), nullptr));
    }

    Value parse_array(int depth) {
        Array items;
        advance();
        while (token_.kind != TokenKind::kBracketClose) {
            items.push_back(parse_value(depth + 1));
            if (!accept(TokenKind::kComma)) break;
        }
        expect(TokenKind::kBracketClose, "']'");
        advance();
        return Value(std::move(items));
    }

    Value parse_object(int depth) {
        Object members;
        advance();
        while (token_.kind != TokenKind::kBraceClose) {
            expect(TokenKind::kString, "name of a member");
            std::string name = parse_string();
            if (!accept(TokenKind::kColon)) fail("':'");
            members.insert_or_assign(std::move(name), parse_value(depth + 1));
            if (!accept(TokenKind::kComma)) break;
        }
        expect(TokenKind::kBraceClose, "'}'");
        advance();
        return Value(std::move(members));
    }

    static unsigned hex_digit(char character) {
        if (character >= '0' && character <= '9') return static_cast<unsigned>(character - '0');
        return static_cast<unsigned>((character | 0x20) - 'a') + 10u;
    }

    static void append_utf8(std::string& out, unsigned code_point) {
        if (code_point < 0x80) {
            out += static_cast<char>(code_point);
        } else if (code_point < 0x800) {
            out += static_cast<char>(0xC0 | code_point >> 6);
            out += static_cast<char>(0x80 | (code_point & 0x3F));
        } else {
            out += static_cast<char>(0xE0 | code_point >> 12);
            out += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
            out += static_cast<char>(0x80 | (code_point & 0x3F));
        }
    }

    // Surrogate pairs are left as two three-byte sequences (CESU-8); the caller
    // that cares runs the text through ln_utf8_next.
    std::string parse_string() {
        const std::string_view body = token_.spelling.substr(1, token_.spelling.size() - 2);
        std::string out;
        out.reserve(body.size());
        for (std::size_t index = 0; index < body.size(); ++index) {
            if (body[index] != '\\') {
                out += body[index];
                continue;
            }
            switch (body[++index]) {
                case 'n': out += '\n'; break;
                case 't': out += '\t'; break;
                case 'r': out += '\r'; break;
                case 'b': out += '\b'; break;
                case 'f': out += '\f'; break;
                case 'u': {
                    if (body.size() - index < 5) fail("four hexadecimal digits");
                    unsigned code_point = 0;
                    for (int digit = 0; digit < 4; ++digit) {
                        code_point = code_point << 4 | hex_digit(body[++index]);
                    }
                    append_utf8(out, code_point);
                    break;
                }
                default: out += body[index];
            }
        }
        advance();
        return out;
    }

    Lexer lexer_;
    Token token_;
};

}  // namespace

const Array* Value::as_array() const {
    const auto* pointer = std::get_if<std::shared_ptr<Array>>(&data_);
    return pointer ? pointer->get() : nullptr;
}

const Object* Value::as_object() const {
    const auto* pointer = std::get_if<std::shared_ptr<Object>>(&data_);
    return pointer ? pointer->get() : nullptr;
}

const Value* Value::find(std::string_view path) const {
    const Value* current = this;
    while (!path.empty() && current != nullptr) {
        const std::size_t dot = path.find('.');
        const std::string_view key = path.substr(0, dot);
        const Object* object = current->as_object();
        if (object == nullptr) return nullptr;
        const auto found = object->find(key);
        current = found == object->end() ? nullptr : &found->second;
        path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    }
    return current;
}

Value parse(std::string_view input) {
    return Parser(input).document();
}

}  // namespace lantern::json
