// Begins with a byte order mark, which is no part of the text.
#include <string>

std::string greeting(const std::string& language) {
    if (language == "el") return "Καλημέρα";
    if (language == "ru") return "Доброе утро";
    if (language == "ja") return "おはようございます";
    if (language == "is") return "Góðan daginn";
    return "Good morning";
}
