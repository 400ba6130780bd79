"""What counts as boilerplate, and above all what does not."""

import pytest
from django.conf import settings as installation
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.errors import IngestError
from retrieval.ingest.chunk import chunk
from retrieval.ingest.parse import parse
from retrieval.text.document import ChunkLimits, RawDocument
from retrieval.text.quality import (
    is_legal,
    is_navigation,
    is_noisy,
    link_characters,
    navigation_lines,
    noise,
    quality_of,
)
from tests.fakes import HashEncoder

#: Where the shipped preset drops.
LEAST = 0.3

MENU = "Home | About us | Products | Careers | Contact"
PROSE = "The staging database is restored from the nightly dump, which takes about forty minutes on a quiet day."


def test_each_part_is_its_share_of_the_characters():
    # 46 characters of menu, 103 of prose, 48 of copyright: 46/197 = 0.234, 48/197 = 0.244, and 0.522 is left.
    copyright_line = "© 2026 Nordlicht Logistics. All rights reserved."
    assert (len(MENU), len(PROSE), len(copyright_line)) == (46, 103, 48)
    found = quality_of(f"{MENU}\n\n{PROSE}\n\n{copyright_line}")
    assert found.parts == {"navigation": 0.234, "legal": 0.244}
    assert found.value == pytest.approx(0.522)


def test_content_is_whole_and_has_no_parts():
    assert (quality_of(PROSE).value, quality_of(PROSE).parts) == (1.0, {})
    assert quality_of("").value == 1.0


@pytest.mark.parametrize(
    "text",
    [
        MENU,
        "- Home\n- About us\n- Wholesale range\n- Contact\n- Log in",
        "Startseite · Über uns · Produkte · Kontakt · Impressum · Datenschutz",
        "Accueil » Produits » Tarifs » Nous contacter",
        "Inicio\nProductos\nPrecios\nContacto\nAviso legal",
        "Prev  Up  Home  Next",
        "Home > Cold storage > Tariffs",
        "Introduction ........ 1\nScope of the agreement . . . . . . 4\nTermination ________ 12",
        "Skip to main content\nBack to top",
        "© 2019-2026 Nordlicht Logistics GmbH",
        "Copyright (c) 2024 Example Inc. All rights reserved.",
        "Alle Rechte vorbehalten.",
        "© 2025 Exemple SA. Tous droits réservés.",
        "Todos los derechos reservados.",
        "We use cookies to improve your experience. By continuing to browse this site you agree to their use.",
        "Diese Website verwendet Cookies. Wenn Sie weiter surfen, stimmen Sie dem zu.",
        "Ce site utilise des cookies. En poursuivant votre navigation, vous acceptez leur utilisation.",
        "Utilizamos cookies propias. Si continúa navegando, acepta su uso.",
        "This e-mail is confidential and intended solely for the addressee. Please delete it otherwise.",
        "Diese E-Mail ist vertraulich. Wenn Sie nicht der richtige Adressat sind, löschen Sie sie bitte.",
        "Page 3 of 12\n- 4 -\nSeite 5 von 12",
        "Proudly powered by WordPress\nBuilt with MkDocs",
        "\n".join(f"https://cdn.example.org/assets/{number}/banner.png" for number in range(6)),
        "tbe qv|ck brwnx f0x jvmps ov~r tbe l¦zy dxg wh|le tbe m¬¬n sh|nes ov¨r tbe h|lls",
        "T h i s l i n e w a s s p a c e d o u t b y t h e t y p e s e t t e r",
    ],
)
def test_boilerplate_falls_below_the_threshold(text):
    assert quality_of(text).value < LEAST


@pytest.mark.parametrize(
    "text",
    [
        # Short answers, definitions, lists.
        "Yes.",
        "Contact us",
        "How do I get a badge?\nAsk the front desk.",
        "RTO: four hours\nRPO: fifteen minutes\nOwner: platform team\nTier: 1",
        "- Milk\n- Butter\n- Cheese\n- Yoghurt\n- Cream",
        "\n".join(
            f"- {name}: https://{name.lower()}.example.org/start"
            for name in ("Grafana", "Jenkins", "Wiki", "Mail", "HR")
        ),
        # Prose that speaks of menus, copyright, cookies and mail.
        "Open Home > Settings > Security and switch the second factor on.",
        "Session cookies are used to keep you signed in for 30 days; the basket's cookie lives for a week.",
        f"Copyright in what an employee writes at work since 2019 belongs to the company. {PROSE} {PROSE}",
        "Forward this e-mail to the press office when a journalist asks for a comment.",
        "The lift is powered by two 15 kW motors.",
        # Tables.
        "Temperature class | Set point | Price\nT1 ice cream | -25 °C | 0.58\nT2 frozen | -20 °C | 0.46",
        "index | shard | prirep | state | docs | store | node\nplugins | 0 | p | STARTED | 0 | 208b | n1",
        "Shop | Contact\nHarburg | +49 40 555 0101\nVessing | +49 40 555 0102",
        # Program text, JSON, paths.
        "def f(x: int) -> int:\n    return [y for y in range(x) if y % 2 == 0 and not y in SKIP][0]\n",
        '{"vrsn": 3, "ctl": {"mq_hst": "q1", "prts": [8080, 8443], "tls": true}, "rgx": "^a|b$"}',
        "kubectl -n prod get pods | grep -v Running | awk '{print $1}' | xargs -r kubectl -n prod delete pod",
        "/srv/pgsql/wal\n/srv/pgsql/xlog\n/srv/http/www\n/etc/ssl/crt",
        "SELECT cnt, dst FROM src_tbl t WHERE t.k = 'x' AND t.v <> 'y' ORDER BY 1;",
        "x y z a b c are the coordinates that the solver reads",
        # Other languages and scripts.
        "在每次发布之前,必须先清空队列,然后通知值班工程师。",
        "Перед выпуском нужно очистить очередь и предупредить дежурного инженера.",
        "出荷前に温度を確認してください。記録は倉庫の端末に残します。",
        "Před nočním přesunem vln zkontrolujte teplotu; smršť zmrzl, vlk, krk, prst, čtvrt a srst jsou slova.",
        "Vor jedem Schichtwechsel wird der Kühlraum geprüft, das Protokoll hängt am Eingang.",
        "يجب إفراغ قائمة الانتظار قبل كل إصدار وإبلاغ المهندس المناوب.",
    ],
)
def test_content_stays_well_above_the_threshold(text):
    assert quality_of(text).value > 2 * LEAST


def test_a_menu_needs_several_of_its_words():
    assert not is_navigation("Contact")
    assert not is_navigation("Milk | Butter | Cheese")
    assert not is_navigation("Search | Result | Latency | Owner")
    assert is_navigation("Search | Login | Latency | Owner")


def test_a_list_is_a_menu_as_a_whole_or_not_at_all():
    assert navigation_lines(["Home", "Blast freezing", "Contact", "Log in", PROSE, "Home"]) == {0, 1, 2, 3}
    # Three lines are too few, and two known words of seven as well.
    assert navigation_lines(["Home", "Contact", "Log in"]) == set()
    assert navigation_lines(["Home", "Ale", "Beer", "Cider", "Mead", "Perry", "Contact"]) == set()


INDEX_WORDS = (
    "apron",
    "bay",
    "crane",
    "dock",
    "eave",
    "frost",
    "gate",
    "hoist",
    "ice",
    "jack",
    "kit",
    "lift",
    "mast",
    "nest",
    "oven",
)


def test_a_books_index_and_a_numbered_table_of_contents_are_navigation():
    index = "\n".join(f"- {word}, Handling of the {word}" for word in INDEX_WORDS)
    contents = "\n".join(f"- 4.{number}. Handling of the {word}" for number, word in enumerate(INDEX_WORDS, 10))
    assert (quality_of(index).value, quality_of(contents).value) == (0.0, 0.0)


def test_a_list_in_alphabetical_order_and_a_list_of_pairs_are_content():
    names = "\n".join(f"- {word}" for word in INDEX_WORDS)
    pairs = "\n".join(f"- {word}, {place}" for word, place in zip(reversed(INDEX_WORDS), INDEX_WORDS, strict=True))
    sentences = "\n".join(f"- {word}, which is checked every week." for word in INDEX_WORDS)
    few = "\n".join(f"- {word}, Handling of the {word}" for word in INDEX_WORDS[:14])
    assert [quality_of(text).value for text in (names, pairs, sentences, few)] == [1.0, 1.0, 1.0, 1.0]


def test_a_long_line_that_mentions_copyright_is_prose():
    assert is_legal("Copyright 2024 Example Inc.")
    assert not is_legal("Copyright 2024 " + "word " * 24)


def test_bare_addresses_cost_what_they_are_long_and_described_ones_half():
    bare = ["https://example.org/1"] * 5
    assert link_characters(bare) == 5 * 21
    assert link_characters([f"the wiki: {line}" for line in bare]) == 5 * 21 / 2
    assert link_characters(bare[:4]) == 0


def test_noise_grows_from_a_fifth_of_the_words_to_three_fifths():
    # Of 20 words n are noisy: (n/20 - 0.2) / 0.4.
    def damaged(count):
        return [" ".join(["wxrtk"] * count + ["word"] * (20 - count))]

    assert [noise(damaged(count)) for count in (0, 4, 8, 12, 20)] == pytest.approx([0, 0, 0.5, 1, 1])
    assert noise(["wxrtk " * 11]) == 0


@pytest.mark.parametrize("word", ["wxrtk", "w|th", "¦¬", "sch\ufffdn"])
def test_a_noisy_word(word):
    assert is_noisy(word)


@pytest.mark.parametrize(
    "word", ["nth", "HTTPS", "rhythm", "x86_64", "|", "vowel", "B2B", "§", "“quoted”", "ß", "don't"]
)
def test_an_ordinary_word(word):
    assert not is_noisy(word)


@given(st.text(max_size=400))
def test_quality_is_one_less_its_parts_and_never_negative(text):
    found = quality_of(text)
    assert 0 <= found.value <= 1
    assert all(0 < share <= 1 for share in found.parts.values())
    assert found.value == pytest.approx(max(0, 1 - sum(found.parts.values())), abs=1e-9)


@settings(deadline=2000)
@given(st.lists(st.sampled_from(["|", ".", " ", "_", "© 2", "page 1", "a", "cookies "]), max_size=300))
def test_no_line_takes_long(pieces):
    quality_of("".join(pieces) * 20)


def test_no_chunk_of_the_sample_company_is_dropped():
    counter = HashEncoder()
    lowest = {}
    for path in installation.CORECUBE_SAMPLES_DIR.rglob("*"):
        if not path.is_file() or path.name == "company.toml":
            continue
        try:
            document = parse(RawDocument(path.name, path.read_bytes()))
        except IngestError:
            continue
        drafts = chunk(document, counter, ChunkLimits())
        lowest[path.name] = min(quality_of(draft.text).value for draft in drafts)
    assert len(lowest) > 40
    assert min(lowest.values()) > 2 * LEAST, min(lowest, key=lowest.get)


def test_an_address_among_broken_words_does_not_count_twice():
    addresses = [f"https://example.org/page{number}" for number in range(8)]
    found = quality_of("\n".join([*addresses, "x~k t^r brnkst qw|rt " * 12]))
    assert found.parts.keys() == {"links", "noise"}
    assert sum(found.parts.values()) == pytest.approx(1.0, abs=0.002)
