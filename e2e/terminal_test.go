package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// terminal is a person's shell with Temporal's own CLI, which knows nothing of
// ours, and docs/operating.md to paste from.
type terminal struct {
	env      []string
	readable bool              // whether it can read what the house writes
	commands map[string]string // by the comment above each
	used     map[string]bool
}

// openTerminal gives a terminal for a house, and the codec endpoint of its door
// if it is to have one.
func openTerminal(t *testing.T, h *house, codec bool) *terminal {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink(binary(t, "TEMPORAL_CLI_BIN"), filepath.Join(dir, "temporal")))
	s := &terminal{
		env:      []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "TEMPORAL_ADDRESS=" + h.TemporalAddr()},
		commands: pasted(t, "../docs/operating.md"),
		used:     map[string]bool{},
	}
	export := strings.ReplaceAll(s.command(t, "through the codec endpoint"), "http://127.0.0.1:8080", h.shop.URL)
	if codec {
		out, err := exec.CommandContext(t.Context(), "bash", "-c", export+" && env").Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "TEMPORAL_CODEC_") {
				s.env = append(s.env, strings.TrimSpace(line))
			}
		}
	}
	return s
}

// pasted are the commands of a document: each stands below a comment that says
// what it is for.
func pasted(t *testing.T, file string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	found := map[string]string{}
	for i, part := range strings.Split(string(raw), "```") {
		block, ok := strings.CutPrefix(part, "sh\n")
		if i%2 == 0 || !ok {
			continue
		}
		what := ""
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			if comment, ok := strings.CutPrefix(line, "# "); ok {
				what = comment
				continue
			}
			require.NotEmpty(t, what, "%s: no comment above %q", file, line)
			require.NotContains(t, found, what, "%s: one name, one command", file)
			found[what], what = line, ""
		}
	}
	return found
}

func (s *terminal) command(t *testing.T, what string) string {
	t.Helper()
	require.Contains(t, s.commands, what, "docs/operating.md has no such command")
	s.used[what] = true
	return s.commands[what]
}

// paste runs a command of the document for a hold, an entry or a Payment. Pairs
// of texts are changed in it first.
func (s *terminal) paste(t *testing.T, what, id string, change ...string) string {
	t.Helper()
	return s.run(t, strings.NewReplacer(change...).Replace(s.command(t, what)), id)
}

func (s *terminal) run(t *testing.T, command, id string) string {
	t.Helper()
	out, err := s.try(t, command, id)
	require.NoError(t, err, "%s\n%s", command, out)
	return out
}

func (s *terminal) try(t *testing.T, command, id string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Env = append(slices.Clone(s.env), "HOLD_ID="+id, "ENTRY_ID="+id, "PAYMENT_ID="+id, "PERSON="+id)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var anyID = regexp.MustCompile(`(hold|entry|payment)_[a-z2-7]{26}|stock\.[A-Z]+|optout_[A-Za-z0-9_-]{22}`)

// lists waits until a filter of the document lists these ids, and no others.
func (s *terminal) lists(t *testing.T, what string, ids ...string) {
	t.Helper()
	slices.Sort(ids)
	require.NoError(t, until(t.Context(), what+" are listed", func() error {
		got := anyID.FindAllString(s.paste(t, what, ""), -1)
		slices.Sort(got)
		if !slices.Equal(got, ids) {
			return fmt.Errorf("%v are, and not %v", got, ids)
		}
		return nil
	}))
}

// answer is what the CLI shows of a query's or an update's result.
func (s *terminal) answer(t *testing.T, command, id string, out any) {
	t.Helper()
	text := s.run(t, command+" --output json", id)
	var said struct {
		QueryResult []json.RawMessage `json:"queryResult"`
		Result      json.RawMessage   `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &said), text)
	if len(said.QueryResult) > 0 {
		said.Result = said.QueryResult[0]
	}
	require.NoError(t, json.Unmarshal(said.Result, out), text)
}

// status is what the query says; without the key it cannot be read.
func (s *terminal) status(t *testing.T, id string) (out seen) {
	t.Helper()
	what := "the status of a hold"
	if strings.HasPrefix(id, "payment_") {
		what = "the status of a payment"
	}
	if !s.readable {
		s.cannotRead(t, s.paste(t, what, id))
		return out
	}
	s.answer(t, s.command(t, what), id, &out)
	return out
}

func (s *terminal) cannotRead(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, "customer")
	require.NotContains(t, text, "payment_ref")
}

// seen is what a person reads in a status.
type seen struct {
	State     string `json:"state"`
	Customer  string `json:"customer"`
	Extended  bool   `json:"extended"`
	Reference string `json:"reference"`
	Raw       []byte `json:"raw"`
}
