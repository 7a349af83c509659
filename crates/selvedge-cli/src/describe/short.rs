//! Short names of C++ functions: without return types, parameters, and all template arguments but the
//! first.

/// The symbols of operators, longer ones before those that they begin with.
const OPERATORS: [&str; 41] = [
    "<=>",
    "<<=",
    ">>=",
    "->*",
    " new[]",
    " delete[]",
    "<<",
    ">>",
    "<=",
    ">=",
    "==",
    "!=",
    "&&",
    "||",
    "++",
    "--",
    "+=",
    "-=",
    "*=",
    "/=",
    "%=",
    "&=",
    "|=",
    "^=",
    "->",
    "()",
    "[]",
    "<",
    ">",
    "=",
    "!",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "~",
    ",",
];

/// A first template argument that is longer than this is left out as well.
const LONGEST_ARGUMENT: usize = 32;

const ANONYMOUS: &str = "(anonymous namespace)";

/// `boost::lockfree::queue<int, …>::push` for
/// `bool boost::lockfree::queue<int, boost::lockfree::capacity<2ul> >::push(int const&)`.
pub(super) fn function(full: &str) -> String {
    let mut short = String::new();
    let mut rest = full;
    while let Some(next) = rest.chars().next() {
        let symbol = operator(&short, rest);
        let taken = match next {
            _ if symbol > 0 => {
                short.push_str(&rest[..symbol]);
                // Arguments of an operator stand behind a space.
                match rest[symbol..].strip_prefix(' ') {
                    Some(after) if after.starts_with('<') => symbol + 1 + group(after),
                    _ => symbol,
                }
            }
            '<' => {
                let group = group(rest);
                short.push_str(&arguments(&rest[..group]));
                group
            }
            '(' if rest.starts_with(ANONYMOUS) => {
                short.push_str(ANONYMOUS);
                ANONYMOUS.len()
            }
            '(' => {
                let group = group(rest);
                // Behind the parameters comes a local function or class, or the name itself after a
                // type such as `decltype(auto)`.
                let after = &rest[group..];
                let qualifiers = ["", " const", " volatile", " &", " [", " noexcept"];
                if qualifiers[1..].iter().any(|q| after.starts_with(q)) || after.is_empty() {
                    break;
                }
                group
            }
            '{' => {
                let group = group(rest);
                short.push_str(&lambda(&rest[..group]));
                group
            }
            // The word before a space is the type that the function returns.
            ' ' => {
                short.clear();
                1
            }
            next => {
                short.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    match short.is_empty() {
        true => full.to_owned(),
        false => short,
    }
}

/// How much of `rest` is an operator's name, where `before` stands in front of it.
fn operator(before: &str, rest: &str) -> usize {
    const WORD: &str = "operator";
    let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let Some(after) = rest.strip_prefix(WORD).filter(|_| begins) else {
        return 0;
    };
    if after.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return 0;
    }
    let symbol = OPERATORS.iter().find(|symbol| after.starts_with(**symbol));
    // A conversion, `operator bool`, ends where its parameters begin.
    let conversion = || after.find('(').unwrap_or(after.len());
    WORD.len() + symbol.map_or_else(conversion, |symbol| symbol.len())
}

/// The length of the group in brackets that `text` begins with.
fn group(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            // Not the arrow of a return type.
            '>' if before == '-' => {}
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + c.len_utf8();
        }
        before = c;
    }
    text.len()
}

/// Template arguments with their brackets, shortened.
fn arguments(group_: &str) -> String {
    let inside = group_.strip_prefix('<').unwrap_or(group_);
    let inside = inside.strip_suffix('>').unwrap_or(inside).trim();
    let mut first = String::new();
    let mut rest = inside;
    while let Some(next) = rest.chars().next() {
        match next {
            ',' => break,
            '<' => {
                let group = group(rest);
                first.push_str(&arguments(&rest[..group]));
                rest = &rest[group..];
            }
            '(' | '{' | '[' => {
                let group = group(rest);
                first.push_str(&rest[..group]);
                rest = &rest[group..];
            }
            next => {
                first.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    let first = first.trim_end();
    match (first.chars().count() > LONGEST_ARGUMENT, rest.is_empty()) {
        (true, _) => "<…>".to_owned(),
        (false, true) => format!("<{first}>"),
        (false, false) => format!("<{first}, …>"),
    }
}

/// `{lambda#1}` for `{lambda(int)#1}`.
fn lambda(group_: &str) -> String {
    match group_.find('(') {
        Some(open) => {
            let close = open + group(&group_[open..]);
            format!("{}{}", &group_[..open], &group_[close..])
        }
        None => group_.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::function;

    #[track_caller]
    fn becomes(full: &str, short: &str) {
        assert_eq!(function(full), short);
    }

    #[test]
    fn parameters_return_types_and_later_arguments_are_left_out() {
        becomes(
            "boost::lockfree::queue<int, boost::lockfree::capacity<(unsigned long)2> >::pop(int&)",
            "boost::lockfree::queue<int, …>::pop",
        );
        becomes(
            "bool boost::lockfree::stack<int>::pop<int>(int&)",
            "boost::lockfree::stack<int>::pop<int>",
        );
        becomes("main", "main");
        becomes("f(std::map<int, char>) const", "f");
        becomes("decltype(auto) ns::f<int>(int)", "ns::f<int>");
        becomes(
            "std::vector<std::pair<int, char>, std::allocator<std::pair<int, char> > >::size() const",
            "std::vector<std::pair<int, …>, …>::size",
        );
        becomes("void f<void (*)(int)>(void (*)(int))", "f<void (*)(int)>");
        becomes(
            "g<std::chrono::duration<long, std::ratio<1, 1000> >, a_type_with_quite_a_long_name>()",
            "g<std::chrono::duration<long, …>, …>",
        );
        becomes(
            "g<a_type_with_such_a_long_name::that_it_is_left_out>()",
            "g<…>",
        );
    }

    #[test]
    fn operators_keep_their_symbols() {
        becomes("ns::S::operator()(int) const", "ns::S::operator()");
        becomes("bool operator< <int>(S<int>, S<int>)", "operator<");
        becomes("std::ostream& operator<<(std::ostream&, S)", "operator<<");
        becomes("S::operator->() const", "S::operator->");
        becomes("S::operator bool() const", "S::operator bool");
        becomes("operator new(unsigned long)", "operator new");
        becomes("operator new[](unsigned long)", "operator new[]");
        becomes("my_operator<int>(int)", "my_operator<int>");
        becomes("operators::f()", "operators::f");
    }

    #[test]
    fn local_and_anonymous_scopes_stay() {
        becomes(
            "main::{lambda(int)#1}::operator()(int) const",
            "main::{lambda#1}::operator()",
        );
        becomes("f(int)::S::g(char)", "f::S::g");
        becomes("(anonymous namespace)::f(int)", "(anonymous namespace)::f");
        becomes(
            "void f<main::{lambda()#1}>(main::{lambda()#1}&&)",
            "f<main::{lambda()#1}>",
        );
        becomes("f(int) [clone .cold]", "f");
        becomes(
            "__invoke<main()::<lambda()> >",
            "__invoke<main()::<lambda()>>",
        );
        becomes(
            "__invoke_impl<void, main()::<lambda()> >",
            "__invoke_impl<void, …>",
        );
    }
}
