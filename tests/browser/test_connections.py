"""Connections in a real browser: from the choice of a kind to documents that can be found."""

import re

import pytest
from playwright.sync_api import expect


@pytest.fixture
def wiki(tmp_path):
    """Return a folder with a document."""
    folder = tmp_path / "wiki"
    folder.mkdir()
    (folder / "otters.md").write_text("# Otters\n\nThe otter in the harbour is called Berthold.\n")
    return folder


def fill_in(page, folder):
    page.get_by_label("Name", exact=True).fill("Wiki")
    page.get_by_label("Path", exact=True).fill(str(folder))


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def expect_step(page, name):
    expect(page.locator(".wizard-mark[aria-current=step]")).to_contain_text(name)


def test_an_own_folder_is_searchable_after_six_clicks(alice, worker, wiki):
    page = alice.page
    alice.open("/overview/")
    page.get_by_role("link", name="Add a source").first.click()
    page.get_by_role("link", name=re.compile("^Folder")).click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    fill_in(page, wiki)
    press(page, "Test and continue")
    expect_step(page, "Access")
    # Two clicks: one opens the list.
    page.get_by_label("Compartment", exact=True).select_option("Engineering")
    expect(page.locator("#access-preview")).to_contain_text("can see it")
    expect(page.locator("#connection-form .is-primary:visible")).to_have_text("Continue")
    expect(page.locator("[data-wizard-found]")).to_contain_text("1 file found.")
    press(page, "Add source")
    expect_step(page, "First sync")
    worker()
    expect(page.get_by_role("heading", name="1 document is searchable")).to_be_visible(timeout=30_000)
    expect(page.locator("#announcement")).to_contain_text("1 added")
    page.get_by_role("link", name="Ask about this source").click()
    expect(page).to_have_url(re.compile(r"/chat/\?narrowed=1&source=wiki$"))
    alice.open("/explorer/?q=otter")
    expect(page.locator("[data-hits]")).to_contain_text("Berthold")


def test_own_files_are_searchable_after_six_clicks(alice, worker, wiki):
    page = alice.page
    alice.open("/overview/")
    page.get_by_role("link", name="Add a source").first.click()
    page.get_by_role("link", name=re.compile("^Uploaded files")).click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.get_by_label("Name", exact=True).fill("Wiki")
    # Two clicks: one opens the list.
    page.get_by_label("Compartment", exact=True).select_option("Engineering")
    press(page, "Add source")
    expect(page.get_by_role("button", name="Choose a folder")).to_be_visible()
    page.get_by_label("Add files").set_input_files([wiki / "otters.md"])
    expect(page.get_by_role("heading", name="Importing Wiki")).to_be_visible()
    worker()
    expect(page.get_by_role("heading", name="1 document is searchable")).to_be_visible(timeout=30_000)
    alice.open("/explorer/?q=otter")
    expect(page.locator("[data-hits]")).to_contain_text("Berthold")


def test_steps_go_back_and_forth_and_lose_no_input(alice, wiki, tmp_path):
    page = alice.page
    alice.open("/connections/new/folder/")
    expect(page.get_by_label("Compartment", exact=True)).to_be_hidden()
    fill_in(page, tmp_path / "nowhere")
    press(page, "Test and continue")
    expect(page.locator("#check")).to_contain_text("The source cannot be read")
    expect_step(page, "Source")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Wiki")
    page.get_by_label("Path", exact=True).fill(str(wiki))
    page.get_by_label("Path", exact=True).press("Enter")
    expect_step(page, "Access")
    page.get_by_label("Or add a compartment").press_sequentially("Engineering")
    expect(page.locator("#access-preview")).to_contain_text("Only you can see it")
    page.get_by_label("Compartment", exact=True).select_option("Finance")
    press(page, "Continue")
    expect_step(page, "Schedule")
    expect(page.get_by_label("Sync", exact=True)).to_have_value("1440")
    page.get_by_label("Sync", exact=True).select_option("Every hour")
    page.go_back()
    expect_step(page, "Access")
    expect(page.get_by_label("Compartment", exact=True)).to_be_visible()
    press(page, "Back")
    expect_step(page, "Source")
    expect(page.get_by_label("Path", exact=True)).to_have_value(str(wiki))
    press(page, "Test and continue")
    press(page, "Continue")
    expect(page.get_by_label("Sync", exact=True)).to_have_value("60")


def test_a_refused_path_is_explained_once_and_has_the_focus(alice):
    alice.watch.expect(422)
    page = alice.page
    alice.open("/connections/new/folder/")
    fill_in(page, "/etc")
    press(page, "Test and continue")
    expect(page.get_by_text("Connections may not read this path.")).to_have_count(1)
    expect(page.get_by_label("Path", exact=True)).to_be_focused()
    expect_step(page, "Source")


def test_an_error_is_at_its_field_to_which_a_link_on_top_leads(alice, world, wiki):
    alice.watch.expect(422)
    page = alice.page
    alice.open("/connections/new/folder/")
    fill_in(page, wiki)
    press(page, "Test and continue")
    page.get_by_label("Or add a compartment").fill("Engineering")
    press(page, "Add source")
    # The compartment of this name exists: the error is at its field, which a link on top leads to.
    expect(page.get_by_role("alert").first).to_contain_text("Or add a compartment")
    expect_step(page, "Access")
    page.get_by_role("link", name="Or add a compartment").click()
    expect(page.get_by_label("Or add a compartment")).to_be_focused()


def test_without_a_script_a_source_is_one_form(start, world, worker, wiki):
    browser = start(user="alice", java_script_enabled=False)
    page = browser.page
    browser.open("/connections/new/folder/")
    fill_in(page, wiki)
    page.get_by_label("Compartment", exact=True).select_option("Engineering")
    press(page, "Test connection")
    expect(page.locator("#check")).to_contain_text("The source can be read")
    press(page, "Add source")
    expect(page.get_by_role("heading", level=1)).to_have_text("Wiki")
    worker()
    state = page.locator("#first-sync")
    while state.get_attribute("data-state") in {"queued", "running"}:
        page.reload()
    expect(state).to_have_attribute("data-state", "done")


def test_a_folder_that_is_not_there_is_told_before_anything_is_saved(alice, tmp_path):
    page = alice.page
    alice.open("/connections/new/folder/")
    fill_in(page, tmp_path / "nowhere")
    press(page, "Test and continue")
    expect(page.locator("#check")).to_contain_text("does not exist")
    page.get_by_label("Add anyway").check()
    press(page, "Test and continue")
    expect_step(page, "Access")
    alice.open("/connections/")
    expect(page.get_by_role("link", name="Wiki")).to_have_count(0)


def test_a_field_of_the_settings_is_never_covered(alice, world):
    alice.open("/connections/runbooks/edit/")
    assert alice.page.evaluate("document.getElementById('connection-form').offsetHeight") < 1350
    for field in alice.page.locator("#connection-form :is(input, select):visible").all():
        field.focus()
        assert field.evaluate(
            "it => { const box = it.getBoundingClientRect();"
            " return it.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)); }"
        )


def test_documents_are_found_and_filtered_by_problem(alice, places):
    page = alice.page
    alice.open("/connections/runbooks/")
    documents = page.locator("#documents")
    page.get_by_label("Title or name").fill("rollb")
    expect(documents.get_by_role("row")).to_have_count(2)
    expect(page.get_by_label("Title or name")).to_be_focused()
    page.get_by_label("Title or name").fill("")
    page.locator("#documents-problem").select_option("any problem")
    expect(documents).to_contain_text("broken.pdf")
    expect(documents).to_contain_text("not indexed")
    group = page.locator("[data-reason=corrupt]")
    expect(group).to_contain_text("1 item")
    expect(group).to_contain_text("Replace the file")


def test_files_and_folders_are_uploaded_with_their_progress(alice, places, worker, tmp_path):
    page = alice.page
    (tmp_path / "small.md").write_text("# Small\n\nA file.\n")
    (tmp_path / "none.md").write_text("")
    alice.open("/connections/files/")
    page.get_by_label("Add files").set_input_files([tmp_path / "small.md", tmp_path / "none.md"])
    rows = page.locator(".upload-row")
    expect(rows.nth(0)).to_contain_text("uploaded")
    expect(rows.nth(1)).to_contain_text("Empty file")
    expect(page.locator("[data-upload-sum]")).to_contain_text("2 of 2 files, 1 failed")
    drop(page, "handbook/deep/otter.md", "# Otter\n\nBerthold.\n")
    worker()
    expect(page.locator("#documents")).to_contain_text("handbook/deep/otter.md", timeout=30_000)


def drop(page, path, text):
    """Drop a folder that holds one file; a script cannot make the entries of a real one."""
    page.evaluate(
        """([path, text]) => {
          const parts = path.split("/");
          const entryAt = (depth) => {
            const fullPath = `/${parts.slice(0, depth + 1).join("/")}`;
            const file = new File([text], parts.at(-1), { type: "text/markdown" });
            if (depth === parts.length - 1) {
              return { isFile: true, fullPath, file: (done) => done(file) };
            }
            let left = [entryAt(depth + 1)];
            return { isFile: false, fullPath, createReader: () => ({ readEntries: (done) => done(left.splice(0)) }) };
          };
          const event = new Event("drop", { bubbles: true, cancelable: true });
          event.dataTransfer = { items: [{ webkitGetAsEntry: () => entryAt(0) }], files: [] };
          document.querySelector("[data-upload]").dispatchEvent(event);
        }""",
        [path, text],
    )
