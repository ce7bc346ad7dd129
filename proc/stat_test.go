package proc

import "testing"

func TestParseStat(t *testing.T) {
	t.Parallel()
	const tail = " S 10 11 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 4567 1000 20\n"
	for _, name := range []string{"42 (sh)", "42 (a b)", "42 (x) R 1 2 3)", "42 (()", "42 (\n)"} {
		s, err := parseStat([]byte(name + tail))
		if err != nil || s != (stat{state: 'S', parent: 10, group: 11, session: 12, threads: 3, start: "4567", noEnv: true}) {
			t.Errorf("%q: %+v %v", name, s, err)
		}
	}
	whole := "42 (sh)" + tail
	for n := range len(whole) {
		if s, err := parseStat([]byte(whole[:n])); err == nil {
			t.Errorf("cut at %d: %+v", n, s)
		}
	}
	for _, bad := range []string{"\n", "42 (sh) S\n", "42 (sh) SS" + tail[2:], "42 (sh) S x" + tail[5:], "42 sh" + tail} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

// What the kernel says of environments, for the four kinds there are.
func TestParseStatEnvironment(t *testing.T) {
	t.Parallel()
	line := func(flags, start, end string) []byte {
		return []byte("42 (sh) S 10 11 12 0 -1 " + flags + " 1 2 3 4 5 6 7 8 20 0 3 0 4567 1000 20 " +
			"1844 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 1 1 1 100 200 " + start + " " + end + " 0\n")
	}
	for _, tt := range []struct {
		name          string
		line          []byte
		kernel, noEnv bool
	}{
		{"has one", line("4194304", "200", "300"), false, false},
		{"has an empty one", line("4194304", "200", "200"), false, true},
		{"is executing", line("4194304", "0", "0"), false, false},
		{"is the kernel's", line("69238880", "0", "0"), true, false},
	} {
		s, err := parseStat(tt.line)
		if err != nil || s.kernel != tt.kernel || s.noEnv != tt.noEnv {
			t.Errorf("%s: %+v %v", tt.name, s, err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (sh) S 10 11 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 4567 1000 20\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := parseStat(line)
		if err == nil && s.start == "" {
			t.Errorf("%q has no start tick", line)
		}
	})
}

func TestOlderThan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"19", "20", true}, {"5", "", false}} {
		if got := olderThan(tt.a, tt.b); got != tt.want {
			t.Errorf("olderThan(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}
