"""The spoken languages that a person may choose, by their ISO 639-1 (Whisper's) codes.

The one list for captions, uploads and the profile. What a running engine can do is narrower at
times; pages then offer what it declares, with the names from here.
"""

from __future__ import annotations

from collections.abc import Collection

DETECT = "Detect the language"
MIXED = "mul"
"""ISO 639's code for several languages: each stretch of speech is written in its own."""
MIXED_NAME = "Several languages, mixed"

CHINESE = frozenset({"zh", "yue"})
"""Written in simplified or traditional characters."""

OFTEN_USED = ("en", "zh", "es", "fr", "de", "ja", "ko")

LANGUAGES = {
    "af": "Afrikaans",
    "sq": "Albanian",
    "am": "Amharic",
    "ar": "Arabic",
    "hy": "Armenian",
    "as": "Assamese",
    "az": "Azerbaijani",
    "ba": "Bashkir",
    "eu": "Basque",
    "be": "Belarusian",
    "bn": "Bengali",
    "bs": "Bosnian",
    "br": "Breton",
    "bg": "Bulgarian",
    "my": "Burmese",
    "yue": "Cantonese",
    "ca": "Catalan",
    "zh": "Chinese",
    "hr": "Croatian",
    "cs": "Czech",
    "da": "Danish",
    "nl": "Dutch",
    "en": "English",
    "et": "Estonian",
    "fo": "Faroese",
    "fi": "Finnish",
    "fr": "French",
    "gl": "Galician",
    "ka": "Georgian",
    "de": "German",
    "el": "Greek",
    "gu": "Gujarati",
    "ht": "Haitian Creole",
    "ha": "Hausa",
    "haw": "Hawaiian",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "is": "Icelandic",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "jw": "Javanese",
    "kn": "Kannada",
    "kk": "Kazakh",
    "km": "Khmer",
    "ko": "Korean",
    "lo": "Lao",
    "la": "Latin",
    "lv": "Latvian",
    "ln": "Lingala",
    "lt": "Lithuanian",
    "lb": "Luxembourgish",
    "mk": "Macedonian",
    "mg": "Malagasy",
    "ms": "Malay",
    "ml": "Malayalam",
    "mt": "Maltese",
    "mi": "Maori",
    "mr": "Marathi",
    "mn": "Mongolian",
    "ne": "Nepali",
    "no": "Norwegian",
    "nn": "Norwegian (Nynorsk)",
    "oc": "Occitan",
    "ps": "Pashto",
    "fa": "Persian",
    "pl": "Polish",
    "pt": "Portuguese",
    "pa": "Punjabi",
    "ro": "Romanian",
    "ru": "Russian",
    "sa": "Sanskrit",
    "sr": "Serbian",
    "sn": "Shona",
    "sd": "Sindhi",
    "si": "Sinhala",
    "sk": "Slovak",
    "sl": "Slovenian",
    "so": "Somali",
    "es": "Spanish",
    "su": "Sundanese",
    "sw": "Swahili",
    "sv": "Swedish",
    "tl": "Tagalog",
    "tg": "Tajik",
    "ta": "Tamil",
    "tt": "Tatar",
    "te": "Telugu",
    "th": "Thai",
    "bo": "Tibetan",
    "tr": "Turkish",
    "tk": "Turkmen",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "uz": "Uzbek",
    "vi": "Vietnamese",
    "cy": "Welsh",
    "yi": "Yiddish",
    "yo": "Yoruba",
}

Choice = tuple[str, str]
Group = tuple[str, list[Choice]]


def language_name(code: str) -> str:
    """What a person calls the language; an empty code gives an empty name."""
    return LANGUAGES.get(code, code.upper())


def language_choices(
    offered: Collection[str] | None = None, *, can_mix: bool = False
) -> list[Choice | Group]:
    """Choices for a Django field: detection, the languages often used, then all by name.

    `offered` narrows them to what an engine declares. `can_mix` adds that they mix, which a
    recording may do and captions may not.
    """
    codes = LANGUAGES.keys() if offered is None else LANGUAGES.keys() & set(offered)
    often = [(code, LANGUAGES[code]) for code in OFTEN_USED if code in codes]
    others = [(code, name) for code, name in LANGUAGES.items() if code in codes]
    choices: list[Choice | Group] = [("", DETECT)]
    if can_mix:
        choices.append((MIXED, MIXED_NAME))
    if often:
        choices.append(("Often used", often))
    if len(others) > len(often):
        choices.append(("All", [pair for pair in others if pair not in often]))
    return choices
