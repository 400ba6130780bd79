from tests.browser.test_pages import *  # noqa
from tests.browser.test_pages import places  # noqa
def test_left(places):
    pages = places.addresses({**PAGES, **PLAIN_PAGES}); del pages["not-found"]
    print(pages["chat-conversation"])
    visited = {resolve(urlsplit(a).path).url_name for a in pages.values()}
    named = {n for n in get_resolver("explorer.urls").reverse_dict if isinstance(n, str)}
    print(sorted(named - visited - NO_PAGES)); assert 0
