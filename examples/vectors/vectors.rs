use codec::convert; // Your function of bits, fn(u64) -> u64. Copy this file to tests/vectors.rs.
const PATH: &str = "tests/vectors.txt"; // Your vector file. Then: cargo test --release
#[test] fn every_answer_is_allowed() {
    let need = |whole: bool, line: u32, why: &str| assert!(whole, "{PATH}:{line}: damaged: {why}");
    let text = std::fs::read_to_string(PATH).unwrap_or_default();
    let mut texts = (1..).zip(text.strip_suffix('\n').unwrap_or("").split('\n'));
    let head: Vec<&str> = texts.next().unwrap().1.split(' ').collect();
    let number = |i: usize| head.get(i).and_then(|word| word.parse().ok()).unwrap_or(0u64);
    let (from, to, all, mut lines) = (number(3), number(5), head.get(6) == Some(&"all"), number(7));
    let fits = matches!((from, to, head.get(6)), (1..=64, 1..=64, Some(&("all" | "some"))));
    need(fits && head.starts_with(&["vectors", "1"]), 1, "missing, cut, or not a vector file");
    let (top, ones) = (u64::MAX >> (64 - from), u64::MAX >> (64 - to));
    let (mut next, mut asked, mut wrong, mut out) = (0, 0, 0, Vec::new());
    for (line, text) in texts.filter(|(_, text)| !text.starts_with('#')) {
        let words = text.split(' ').map(|word| u64::from_str_radix(word, 16));
        let mut row: Vec<u64> = words.collect::<Result<_, _>>().unwrap_or_default();
        need(matches!(row.len(), 3..=7), line, "not a data line");
        row.extend_from_slice(&[row[2], ones, 0][row.len().min(6) - 3..]);
        let [lo, hi, code, last, mask, step]: [u64; 6] = row[..6].try_into().unwrap();
        need(lo <= hi && hi <= top && code <= last && last | mask <= ones, line, "out of range");
        need(lo == next || (!all && lo > next), line, "a line is missing or out of order");
        (next, lines) = (hi + u64::from(hi < top), lines.wrapping_sub(1));
        let powers = (0..64).map(|k| 1 << k).take_while(|power| *power <= hi - lo);
        let ends = powers.flat_map(|p| [lo + p - 1..=lo + p, hi - p..=hi - p + 1]);
        let runs = if from <= 32 || hi - lo < 256 { vec![lo..=hi] } else { ends.collect() };
        asked += runs.iter().map(|run| run.end() - run.start() + 1).sum::<u64>();
        let rise = |x: u64| (x - lo).wrapping_mul(step);
        let rest = |x: u64| convert(x).wrapping_sub(rise(x)) & mask;
        let right = |x| (code..=last).contains(&rest(x)) || row.get(6) == Some(&convert(x));
        let is_wrong = |x: &u64| !right(*x) || convert(*x) > ones;
        let mut bad = runs.into_iter().flatten().filter(is_wrong);
        if let Some(x) = bad.next() {
            let (y, z) = (convert(x), code.wrapping_add(rise(x)) & mask);
            out.push(format!("{PATH}:{line}: input {x:x}: answer {y:x}, allowed {z:x} by {text}"));
            wrong += 1 + bad.count();
        }
    }
    need(asked > 0 && lines == 0 && (!all || next == top), 0, "lines are missing at the end");
    assert!(wrong == 0, "{asked} answers, {wrong} wrong\n{}", out[..out.len().min(10)].join("\n"));
}
