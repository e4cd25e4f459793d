//! Counters of `xtask lint`: fragments, negations, sentences and names.

#[path = "../../src/lint/names.rs"]
mod names;
#[path = "../../src/lint/words.rs"]
mod words;

#[test]
fn a_comment_with_a_fragment_opener_is_a_fragment() {
    for fragment in ["What stands here.", "Of a group.", "whether it is", "The same for npm."] {
        assert!(words::is_fragment(fragment), "{fragment}");
    }
    for sentence in ["Returns the offset.", "Offers a lease.", "Assigns an id.", "Whatsoever"] {
        assert!(!words::is_fragment(sentence), "{sentence}");
    }
}

#[test]
fn a_negated_noun_is_found() {
    // The texts are built from pieces, because the lint reads this file too.
    for text in
        [concat!("It is ", "no name."), concat!("those are ", "none."), concat!("(was ", "no digest)")]
    {
        assert!(words::negates_a_noun(text), "{text}");
    }
    for text in ["There is no name.", "It is no longer used.", "It is no more than 3.", "It is not a name."] {
        assert!(!words::negates_a_noun(text), "{text}");
    }
}

#[test]
fn literals_are_found_between_their_quotes() {
    assert_eq!(words::string_literals(r#"a("b \" c", d, "")"#), [r#"b \" c"#, ""]);
}

#[test]
fn sentences_are_counted_without_code_and_addresses() {
    let page = "# Title\n\nOne two. [Three](four five.md) six!\n\n```\ncode. code.\n```\n| a b | c |\n| --- | --- |\n- item\n";
    let found = words::sentences(page);
    let lengths: Vec<usize> = found.iter().map(|sentence| sentence.split_whitespace().count()).collect();
    assert_eq!(lengths, [2, 2, 2, 1, 1], "{found:?}");
}

#[test]
fn names_are_those_that_a_file_defines() {
    let text = "pub(crate) struct ToldOff { pub heard: u8 }\nfn f(a: u8) { let mut kept = \"told: \"; g(said) } // let x\n";
    let found: Vec<&str> = names::defined(text).into_iter().collect();
    assert_eq!(found, ["ToldOff", "a", "f", "heard", "kept"]);
    assert!(names::is_jargon("ToldOff") && names::is_jargon("was_kept") && !names::is_jargon("keptness"));
    assert_eq!(names::types(text), ["ToldOff"]);
}
