package codec // Your package. `go test` asks your function the inputs of a vector file.
import ("fmt"; "os"; "strings"; "testing")
const path = "testdata/vectors.txt"
func convert(bits uint64) uint64 { return Convert(bits) } // Your function of bits.

func TestEveryAnswerIsAllowed(t *testing.T) {
	var from, to, lines, asked, wrong, lo, hi, code, last, mask, step, other, next uint64
	kind, row, line, shown, bad, n := "", "", 1, 0, 0, 0
	need := func(ok bool, why string) { if !ok { t.Fatalf("%s:%d: damaged: %s", path, line, why) } }
	ask := func(x, count uint64) {
		for asked += count; count > 0; x, count = x+1, count-1 {
			answer, rise := convert(x), (x-lo)*step
			rest := (answer - rise) & mask
			if answer>>to == 0 && (rest-code <= last-code || n == 7 && answer == other) { continue }
			if wrong, bad = wrong+1, bad+1; bad > 1 || shown == 10 { continue }
			t.Errorf("%s:%d: input %x: answer %x, allowed %x by %s",
				path, line, x, answer, (code+rise)&mask, row)
			shown++ // the first input of each line
		}
	}
	text, _ := os.ReadFile(path)
	rows := strings.Split(string(text), "\n")
	fmt.Sscanf(rows[0], "vectors 1 %s %d %s %d %s %d", &kind, &from, &kind, &to, &kind, &lines)
	need(from-1 < 64 && to-1 < 64 && (kind == "all" || kind == "some"), "missing or no vector file")
	for line, row = range rows {
		if line++; line == 1 || strings.HasPrefix(row, "#") || row == "" && line == len(rows) { continue }
		mask, step = 1<<to-1, 0
		n, _ = fmt.Sscanf(row, "%x %x %x %x %x %x %x", &lo, &hi, &code, &last, &mask, &step, &other)
		if n == 3 { last = code }
		digits := strings.Trim(row, " 0123456789abcdef") == "" && line < len(rows)
		need(n > 2 && n-1 == strings.Count(row, " ") && digits && lo <= hi && hi>>from == 0 &&
			code <= last && (last|mask)>>to == 0, "not a data line")
		need(lo == next || kind == "some" && lo > next && (next > 0 || asked < 1), "missing or unordered")
		next, lines, bad = hi+1, lines-1, 0
		if from <= 32 || hi-lo < 256 { ask(lo, hi-lo+1); continue }
		for p := uint64(1); p-1 < hi-lo; p *= 2 { ask(lo+p-1, 2); ask(hi-p, 2) }
	}
	need(asked > 0 && lines == 0 && (kind == "some" || next == 1<<from), "lines are missing")
	t.Logf("%s: %d answers, %d wrong", path, asked, wrong)
}
