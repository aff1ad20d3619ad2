//! Makes users' input harmless for readers of a report: names, scripts, messages and settings may contain anything.
//!
//! A control character in a terminal can move the cursor or worse, a character that changes the direction of writing
//! makes a script look like another one, and neither is allowed in HTML.

/// What stands for a character that is not shown.
const REPLACEMENT: char = '\u{FFFD}';

/// The text without what is not text; line ends and tabs stay.
pub fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars().map(|c| if c == '\n' || c == '\t' || is_text(c) { c } else { REPLACEMENT }).collect()
}

/// A cleaned text on one line: runs of blanks are one blank each.
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(clean);
    words.collect::<Vec<_>>().join(" ")
}

/// The text without anything that begins a tag or a comment of HTML, for where a `<` cannot be escaped: what is shown as it is,
/// or as code, may end up in a page of somebody who escapes nothing. To SQL the blank says nothing.
pub fn defused(text: &str) -> String {
    let mut defused = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        defused.push(c);
        let begins_tag = |next: &char| next.is_alphabetic() || matches!(next, '/' | '!' | '?');
        if c == '<' && characters.peek().is_some_and(begins_tag) {
            defused.push(' ');
        }
    }
    defused
}

/// JSON that means the same, with escapes for what a page or a terminal would take for its own.
pub fn json(written: &str) -> String {
    let mut escaped = String::with_capacity(written.len());
    for c in written.chars() {
        // Between tokens there are none of these.
        if matches!(c, '<' | '>' | '&') || !is_text(c) {
            let mut units = [0; 2];
            escaped.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a character shows as itself and leaves its neighbours alone.
fn is_text(c: char) -> bool {
    let turns_direction =
        matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let no_character = matches!(c as u32 & 0xFFFF, 0xFFFE | 0xFFFF) || matches!(c, '\u{FDD0}'..='\u{FDEF}');
    let separates_lines = matches!(c, '\u{2028}' | '\u{2029}');
    !c.is_control() && !turns_direction && !no_character && !separates_lines && c != '\u{FEFF}'
}

/// How many columns of a terminal a text takes, to the knowledge of most of them.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The columns of a character: none for what joins the one before, two for ideographs and pictures.
fn char_width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36F}'
        | '\u{200B}'..='\u{200D}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FE00}'..='\u{FE0F}' => 0,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}'
        | '\u{1F300}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFD}' => 2,
        _ => 1,
    }
}

/// The text's begin that fits into so many columns, with an ellipsis where something was cut.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut kept = String::new();
    for c in text.chars() {
        let Some(rest) = left.checked_sub(char_width(c)) else { break };
        left = rest;
        kept.push(c);
    }
    kept + "…"
}

/// The text's first characters, and a word on how many there are more.
pub fn shortened(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let (kept, rest) = text.split_at(end);
    format!("{kept}… ({} more characters)", bench_base::number::count(rest.chars().count() as u64))
}

/// The text's words in lines of at most so many columns; a word that is longer is broken.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        if used > 0 && used + 1 + width(word) <= columns {
            line.push(' ');
            used += 1;
        } else if used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for c in word.chars() {
            if used + char_width(c) > columns {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += char_width(c);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// The text with what HTML would take for its own made harmless, and without what HTML does not allow.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_text_is_replaced() {
        assert_eq!(
            clean("a\u{1b}[2Jb\u{202E}c\r\nd\te\0\u{9b}"),
            "a\u{FFFD}[2Jb\u{FFFD}c\nd\te\u{FFFD}\u{FFFD}"
        );
        assert_eq!(one_line("  SELECT\n\t1;\u{7}  "), "SELECT 1;\u{FFFD}");
        assert_eq!(clean("naïve 数据 🐘"), "naïve 数据 🐘");
    }

    #[test]
    fn no_tag_is_left() {
        let statement = "SELECT a <b, 1<2, x <> y, '</p>', p<->q, ARRAY[1] <@ z -- <!-- <?";
        assert_eq!(
            defused(statement),
            "SELECT a < b, 1<2, x <> y, '< /p>', p<->q, ARRAY[1] <@ z -- < !-- < ?"
        );
        assert_eq!(defused("<<script><"), "<< script><");
    }

    #[test]
    fn json_stays_what_it_was() {
        let value = serde_json::json!({"<b>": "a&b\u{9b}31m\u{202e}\u{7f}\u{1}", "n": [1.5, null, "\u{1fffe} naïve 数据"]});
        let written = json(&value.to_string());
        assert!(!written.contains(['<', '>', '&', '\u{9b}', '\u{202e}', '\u{7f}', '\u{1fffe}']), "{written}");
        assert!(written.contains("naïve 数据") && written.contains("\\ud83f\\udffe"), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).expect("JSON"), value);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width("数据"), 4);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(cut("数据库", 4), "数…");
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(shortened("abcdef", 2), "ab… (4 more characters)");
    }

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 7), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_asked(text in "(\\PC|[ \n\u{301}数🐘]){0,80}", columns in 2..40usize) {
            prop_assert!(width(&cut(&text, columns)) <= columns);
            let lines = wrapped(&text, columns);
            for line in &lines {
                prop_assert!(width(line) <= columns, "{line:?}");
            }
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }

    #[test]
    fn nothing_gets_out() {
        assert_eq!(
            escaped("<script>alert('a' & \"b\")</script>\0"),
            "&lt;script&gt;alert(&#39;a&#39; &amp; &quot;b&quot;)&lt;/script&gt;\u{FFFD}"
        );
    }
}
