"""Every page of the console, as tests and pictures visit it."""

import re
from dataclasses import dataclass

#: Name of a page's picture, and its address with places for what is looked at.
PAGES = {
    "chat": "/chat/",
    "chat-conversation": "/chat/{conversation}/",
    "chat-shared": "/chat/shared/{link}/",
    "overview": "/overview/",
    "overview-guide": "/overview/?guide=1",
    "explorer": "/explorer/",
    "explorer-hits": "/explorer/?q={query}",
    "explorer-ledger": "/explorer/?q={query}&hit=2",
    "explorer-stage": "/explorer/?q={query}&stage=assemble",
    "explorer-lanes": "/explorer/?q={query}&tab=lanes",
    "explorer-lanes-table": "/explorer/?q={query}&tab=lanes&view=table",
    "explorer-context": "/explorer/?q={query}&tab=context",
    "explorer-answer": "/explorer/?q={query}&tab=answer",
    "explorer-where": "/explorer/?q={query}&tab=where&find={title}&pin={document}",
    "explorer-where-lost": "/explorer/?q={query}&tab=where&as={person}&pin={hidden}",
    "explorer-scores": "/explorer/?q={query}&tab=scores",
    "explorer-trace": "/explorer/?q={query}&tab=trace",
    "explorer-scope": "/explorer/?q={query}&tab=scope",
    "explorer-run-as": "/explorer/?q={query}&as={person}",
    "explorer-nothing": "/explorer/?q={query}&as={person}&{without}",
    "explorer-failed": "/explorer/?q=%20",
    "explorer-section": "/explorer/?q={query}&preset=consolidated&section=report/how_it_works",
    "explorer-section-trace": "/explorer/?q={query}&preset=consolidated&section=report/how_it_works&tab=trace",
    "evidence": "/evidence/",
    "evidence-run": "/evidence/?set=report&about={query}&seconds=60&run=1",
    "evidence-find": "/evidence/?find={title}&document={document}",
    "evidence-failed": "/evidence/?set={nonsense}&run=1",
    "compare": "/compare/",
    "compare-modes": "/compare/?q={query}&a=corecube:live:fulltext&b=corecube:live:dense",
    "side-by-side": "/side-by-side/?q={query}",
    "side-by-side-empty": "/side-by-side/",
    "side-by-side-nothing": "/side-by-side/?q={query}&as={person}&{without}",
    "feedback": "/feedback/",
    "log": "/log/",
    "log-none": "/log/?q={nonsense}none",
    "record": "/log/{record}/",
    "compare-record": "/compare/?a=log:{record}&b=corecube:live:hybrid",
    "judgments": "/judgments/",
    "question-set": "/judgments/{question_set}/",
    "judging-queue": "/judgments/{question_set}/judge/",
    "disputed": "/judgments/{question_set}/disputed/",
    "unanswered": "/unanswered/",
    "connections": "/connections/",
    "connection-kinds": "/connections/new/",
    "connection-new": "/connections/new/folder/",
    "connection-new-git": "/connections/new/git/",
    "connection": "/connections/{connection}/",
    "connection-first-sync": "/connections/{connection}/first-sync/",
    "connection-documents": "/connections/{connection}/?problem=any",
    "connection-upload": "/connections/{upload}/",
    "connection-edit": "/connections/{connection}/edit/",
    "connection-delete": "/connections/{connection}/delete/",
    "connection-quality": "/connections/{connection}/quality/",
    "documents": "/documents/",
    "document": "/documents/{document}/",
    "jobs": "/jobs/",
    "job": "/jobs/{job}/",
    "compartments": "/access/compartments/",
    "compartment-new": "/access/compartments/new/",
    "compartment": "/access/compartments/{compartment}/",
    "compartment-delete": "/access/compartments/{compartment}/delete/",
    "clearances": "/access/clearances/",
    "give-access": "/access/give/?group={group}&compartment=1",
    "users": "/access/users/",
    "user-new": "/access/users/new/",
    "user": "/access/users/{user}/",
    "groups": "/access/groups/",
    "group-new": "/access/groups/new/",
    "group": "/access/groups/{group}/",
    "group-delete": "/access/groups/{group}/delete/",
    "keys": "/access/keys/",
    "keys-own": "/keys/",
    "key-new": "/keys/new/",
    "key-revoke": "/keys/{key}/revoke/",
    "key-forwarding": "/access/keys/{key}/forwarding/",
    "application-connect": "/oauth/authorize?{authorization}",
    "audit": "/access/audit/",
    "evaluation_run": "/runs/{run}/",
    "compare_runs": "/runs/compare/?a={run}&b={run}",
    "compare_runs-several": "/runs/compare/?a={run}&b={run}&b={other_run}",
    "experiments": "/experiments/",
    "sweeps": "/sweeps/",
    "sweep-new": "/sweeps/new/?set={question_set}",
    "sweep": "/sweeps/{sweep}/",
    "prompts": "/prompts/",
    "prompt": "/prompts/{prompt}/",
    "presets": "/presets/",
    "preset": "/presets/corecube/",
    "preset-promote": "/presets/corecube/promote/1/",
    "preset-consolidated": "/presets/consolidated/",
    "preset-reference": "/presets/corecube@reference/",
    "side-by-side-references": "/side-by-side/?q={query}&references=1",
    "section-sets": "/section-sets/",
    "section-set": "/section-sets/report/",
    "section": "/section-sets/report/sections/facts_and_figures/",
    "section-new": "/section-sets/report/new-section/",
    "section-set-reset": "/section-sets/report/reset/",
    "section-set-delete": "/section-sets/{section_set}/delete/",
    "models": "/models/",
    "index-switch": "/models/indexes/{index}/switch/",
    "index-drop": "/models/indexes/{index}/drop/",
    "routes": "/routes/",
    "language-models": "/language-models/",
    "language-model-new": "/language-models/new/",
    "language-models-local": "/language-models/local/",
    "language-model": "/language-models/{language_model}/",
    "language-model-delete": "/language-models/{language_model}/delete/",
    "usage": "/language-models/usage/",
    "find": "/find/?name=a",
    "health": "/health/",
    "password": "/password/",
    "not-found": "/no-such-page/",
}
#: Pages as somebody sees them who is no admin.
PLAIN_PAGES = {
    "plain-chat": "/chat/",
    "plain-explorer": "/explorer/?q={query}",
    "plain-documents": "/documents/",
    "plain-compare": "/compare/?q={query}",
    "plain-side-by-side": "/side-by-side/?q={query}&whole=1",
    "plain-log": "/log/",
    "plain-evidence": "/evidence/",
    "plain-keys": "/keys/",
}
#: Pages of what needs a language model.
MODEL_PAGES = {"queued-search": "/queued/{queued}/"}
#: Pages that are there for those who have not signed in.
OUTSIDE = {"sign-in": "/login/"}
#: Statuses that pages have which show an error.
ERRORS = {400, 404, 422}


@dataclass(frozen=True)
class Places:
    """What the addresses name."""

    query: str
    nonsense: str
    person: str
    without: str
    title: str
    document: str
    hidden: str
    record: str
    question_set: str
    connection: str
    #: One with uploaded files.
    upload: str
    job: str
    compartment: str
    user: str
    group: str
    key: str
    index: str
    conversation: str
    link: str
    run: str
    other_run: str
    sweep: str
    prompt: str
    #: The query with which an application asks to act for the viewer.
    authorization: str
    language_model: str
    #: One of the installation's own.
    section_set: str
    #: Only where `MODEL_PAGES` are looked at.
    queued: str = ""

    def addresses(self, pages):
        """Return the addresses of pages by their names."""
        return {name: address.format_map(vars(self)) for name, address in pages.items()}


def issue_key(page):
    """Issue a key, which its page shows this once."""
    page.goto("/keys/new/")
    page.get_by_label("Name", exact=True).fill("Nightly report")
    page.get_by_role("button", name="Create key").click()
    page.locator("[data-secret]").wait_for()


def make_link(page, user):
    """Make a link with which a user sets a password."""
    page.goto(f"/access/users/{user}/")
    page.get_by_role("button", name="Create password link").click()
    page.locator("[data-secret]").wait_for()


def follow_link(page, user):
    """Open such a link."""
    make_link(page, user)
    page.goto(page.locator("[data-secret]").input_value())


def leave_group(page, user):
    """Take a user out of the group that gives access; the change is to be confirmed."""
    page.goto(f"/access/users/{user}/")
    page.get_by_label("engineers", exact=True).uncheck()
    page.get_by_role("button", name="Save groups").click()
    page.get_by_role("button", name=re.compile("^(Give access to|Remove access for)")).wait_for()


#: Ways to the pages that have no address of their own: they answer a form, or a link that works once. The second
#: argument is whose password is to be set.
STEPS = {"key-issued": lambda page, _user: issue_key(page), "user-link": make_link, "password-link": follow_link}
#: Ways to what asks to confirm a change of access.
CONFIRMATIONS = {"groups-confirm": leave_group}
