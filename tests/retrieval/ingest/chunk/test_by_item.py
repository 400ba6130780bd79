def test_items_are_never_put_together(chunks, some_words):
    drafts = chunks(
        ("paragraph", "About."),
        (2, "One"),
        ("paragraph", "Short."),
        (2, "Two"),
        ("paragraph", some_words(35)),
        (3, "Part"),
        ("paragraph", some_words(35, 50)),
        source_type="feed",
    )
    assert [draft.heading_path for draft in drafts] == [(), ("One",), ("Two",), ("Two", "Part")]
    assert [draft.ordinal for draft in drafts] == [0, 1, 2, 3]
    assert [draft.text for draft in drafts[:2]] == ["About.", "Short."]
